//! A report for people: one page, with nothing to load.

use std::fmt::Write as _;
use std::time::Duration;

use crate::sim::Tally;

use super::report::escape;
use super::tale::Tale;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;\
padding:0 1rem;color:#1f2328}h1{font-size:1.6rem}h2{margin-top:2.5rem;font-size:1.2rem}\
table{border-collapse:collapse}td,th{padding:.2rem 1rem .2rem 0;text-align:left;\
border-bottom:1px solid #eee}td.n{text-align:right;font-variant-numeric:tabular-nums}\
.held{color:#1a7f37}.failed,.none{color:#cf222e}pre{background:#f6f8fa;padding:1rem;overflow:auto}\
.picture{overflow:auto;border:1px solid #eee}.side{display:flex;gap:4rem;flex-wrap:wrap}\
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}pre{background:#161b22}\
td,th{border-color:#30363d}.held{color:#3fb950}.failed,.none{color:#f85149}}";

/// The page. `told` are those failures of which there is more to say.
pub(super) fn page(
    tally: &Tally,
    told: &[Tale],
    command: &str,
    elapsed: Duration,
    jobs: usize,
) -> String {
    let mut html = String::from("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n");
    let failed = tally.failed.len();
    let (class, verdict) = match failed {
        0 => ("held", "Every property held.".to_owned()),
        1 => ("failed", "One seed violates a property.".to_owned()),
        many => ("failed", format!("{many} seeds violate a property.")),
    };
    // Writing to a String cannot fail.
    let _ = write!(
        html,
        "<meta name=\"viewport\" content=\"width=device-width\"><title>picokube check</title>\n\
         <style>{STYLE}</style>\n<h1>picokube check: <span class=\"{class}\">{verdict}</span></h1>\n\
         <p><code>{}</code></p>\n<h2>What was tried</h2>\n<table>\n",
        escape(command)
    );
    for (name, value) in tally.rows(elapsed, jobs) {
        let _ = writeln!(html, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
    }
    html.push_str("</table>\n<div class=\"side\"><section><h2>Faults that struck</h2>\n<table>\n");
    for (sort, count) in tally.coverage() {
        row(&mut html, sort, count);
    }
    html.push_str(
        "</table></section>\n<section><h2>Changes of controllers that were judged</h2>\n<table>\n",
    );
    for ((plural, done), count) in &tally.judged {
        row(&mut html, &format!("{plural}: {done}"), *count);
    }
    html.push_str("</table></section></div>\n");
    if failed > 0 {
        html.push_str("<h2>Properties that did not hold</h2>\n<table>\n");
        for failure in &tally.failed {
            let _ = writeln!(
                html,
                "<tr><th scope=\"row\">seed {}</th><td>{}</td><td>{}</td></tr>",
                failure.seed,
                escape(failure.violation.property),
                escape(&failure.violation.detail)
            );
        }
        html.push_str("</table>\n");
    }
    for tale in told {
        let _ = write!(
            html,
            "<h2 id=\"seed-{0}\">Seed {0}</h2>\n<div class=\"picture\">{1}</div>\n<pre>{2}</pre>\n",
            tale.seed,
            tale.picture,
            escape(&tale.text())
        );
    }
    html.push_str("</html>\n");
    html
}

fn row(html: &mut String, name: &str, count: u64) {
    let class = if count == 0 { "n none" } else { "n" };
    let _ = writeln!(html, "<tr><td>{}</td><td class=\"{class}\">{count}</td></tr>", escape(name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_tells_what_did_not_strike() {
        let tally = Tally { runs: 3, ..Tally::default() };
        let html = page(&tally, &[], "picokube check --seeds <3>", Duration::from_secs(1), 2);
        assert!(html.contains("Every property held."));
        assert!(html.contains("--seeds &lt;3&gt;"));
        assert!(html.contains("<tr><td>link down</td><td class=\"n none\">0</td></tr>"), "{html}");
    }
}
