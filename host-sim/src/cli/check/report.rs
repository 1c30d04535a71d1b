//! Reports for machines: JSON, and JUnit's XML.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::sim::Tally;

use super::tale::Tale;

/// Everything as JSON.
pub(super) fn json(tally: &Tally, tales: &[Tale], elapsed: Duration, jobs: usize) -> Value {
    let judged =
        tally.judged.iter().map(|((plural, done), count)| (format!("{plural} {done}"), *count));
    let failures = tally.failed.iter().map(|failure| {
        let tale = tales.iter().find(|tale| tale.seed == failure.seed);
        json!({
            "seed": failure.seed,
            "property": failure.violation.property,
            "detail": failure.violation.detail,
            "atSeconds": failure.violation.at.as_secs_f64(),
            "repeat": tale.map(|tale| tale.repeat.as_str()),
            "least": tale.map(|tale| &tale.least),
        })
    });
    json!({
        "seeds": tally.runs,
        "violations": tally.failed.len(),
        "simulatedSeconds": tally.simulated_secs,
        "seconds": elapsed.as_secs_f64(),
        "jobs": jobs,
        "requests": tally.requests,
        "events": tally.events,
        "faults": tally.coverage().collect::<std::collections::BTreeMap<_, _>>(),
        "judged": judged.collect::<std::collections::BTreeMap<_, _>>(),
        "boots": tally.boots,
        "convergedWithinSeconds": {
            "median": tally.converged_within(50),
            "p99": tally.converged_within(99),
            "longest": tally.converged_within(100),
        },
        "failures": failures.collect::<Vec<_>>(),
    })
}

/// One test case a seed, as CI systems read it.
pub(super) fn junit(tally: &Tally, tales: &[Tale], elapsed: Duration) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let (tests, failures, seconds) = (tally.runs, tally.failed.len(), elapsed.as_secs_f64());
    // Writing to a String cannot fail.
    let _ = writeln!(
        xml,
        "<testsuite name=\"picokube check\" tests=\"{tests}\" failures=\"{failures}\" \
         errors=\"0\" time=\"{seconds:.3}\">"
    );
    for (seed, took) in &tally.seeds {
        let _ = write!(
            xml,
            "  <testcase classname=\"picokube.check\" name=\"seed {seed}\" time=\"{took:.3}\""
        );
        let Some(failure) = tally.failed.iter().find(|failure| failure.seed == *seed) else {
            xml.push_str("/>\n");
            continue;
        };
        let told = tales.iter().find(|tale| tale.seed == *seed).map(Tale::text);
        let _ = writeln!(
            xml,
            ">\n    <failure type=\"{}\" message=\"{}\">{}</failure>\n  </testcase>",
            escape(failure.violation.property),
            escape(&failure.violation.detail),
            escape(&told.unwrap_or_default()),
        );
    }
    xml.push_str("</testsuite>\n");
    xml
}

/// Text that is safe in XML and HTML: control characters are in neither.
pub(super) fn escape(text: &str) -> String {
    let visible = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    visible.fold(String::new(), |mut escaped, c| {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Failure, Moment, Violation};

    fn tally() -> Tally {
        let violation = Violation {
            property: "one pod per identity",
            detail: "it is <\"two\">\u{1} & more".to_owned(),
            at: Moment::from_millis(1_500),
        };
        let failed = vec![Failure { seed: 8, violation }];
        Tally { runs: 2, seeds: vec![(7, 0.25), (8, 0.5)], failed, ..Tally::default() }
    }

    #[test]
    fn a_violation_is_a_failed_test_case() {
        let xml = junit(&tally(), &[], Duration::from_secs(1));
        assert!(xml.contains("tests=\"2\" failures=\"1\" errors=\"0\" time=\"1.000\""), "{xml}");
        assert!(xml.contains("name=\"seed 7\" time=\"0.250\"/>"), "{xml}");
        let message = "message=\"it is &lt;&quot;two&quot;&gt; &amp; more\"";
        assert!(xml.contains(message), "{xml}");
        assert_eq!(xml.matches("</testcase>").count(), 1);
    }

    #[test]
    fn json_names_seed_property_and_moment() {
        let report = json(&tally(), &[], Duration::from_secs(1), 2);
        let failure = &report["failures"][0];
        assert_eq!(failure["seed"], 8);
        assert_eq!(failure["property"], "one pod per identity");
        assert_eq!(failure["atSeconds"], 1.5);
        assert_eq!(report["faults"]["link down"], 0);
    }
}
