//! A run as a picture: time from left to right, pods as lanes, faults and users as marks.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::plan::Plan;
use super::trace::{Actor, Line};
use super::world::Outcome;

const WIDTH: f64 = 1400.0;
const LEFT: f64 = 220.0;
const TOP: f64 = 90.0;
const LANE: f64 = 14.0;

/// What a pod is for a while.
struct Stretch {
    from: f64,
    colour: &'static str,
}

/// The life of a pod.
#[derive(Default)]
struct Life {
    stretches: Vec<Stretch>,
    end: Option<f64>,
}

/// Draws a run as an SVG document. Its trace has to be whole.
pub fn picture(plan: &Plan, outcome: &Outcome) -> String {
    let end = outcome.lasted.as_secs_f64().max(1.0);
    let x = |seconds: f64| LEFT + seconds / end * (WIDTH - LEFT - 20.0);
    let lives = lives(outcome.trace.lines());
    let height = TOP + lives.len() as f64 * LANE + 40.0;
    let mut svg = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"10\" y=\"20\" font-size=\"15\">picokube check --seed {}</text>\n\
         <text x=\"10\" y=\"38\">{:.0} s, {} requests, {} faults{}</text>",
        plan.seed,
        end,
        outcome.counts.requests,
        outcome.counts.faults,
        match &outcome.violation {
            Some(violation) => format!(", violated: {}", escape(violation.property)),
            None => String::new(),
        },
    );
    legend(&mut svg);
    scale(&mut svg, end, height, x);
    for (lane, (name, life)) in lives.iter().enumerate() {
        let y = TOP + lane as f64 * LANE;
        let _ = writeln!(svg, "<text x=\"10\" y=\"{:.0}\">{}</text>", y + 10.0, escape(name));
        for (index, stretch) in life.stretches.iter().enumerate() {
            let to = life.stretches.get(index + 1).map(|next| next.from).or(life.end);
            let (from, to) = (x(stretch.from), x(to.unwrap_or(end)));
            let _ = writeln!(
                svg,
                "<rect x=\"{from:.1}\" y=\"{y:.0}\" width=\"{:.1}\" height=\"{:.0}\" fill=\"{}\"/>",
                (to - from).max(0.5),
                LANE - 3.0,
                stretch.colour,
            );
        }
    }
    for line in outcome.trace.lines().filter(|line| is_mark(line)) {
        let (colour, y) = match line.actor {
            Actor::User => ("#1f6feb", 50.0),
            Actor::Controller(_) => ("#111", 62.0),
            _ => ("#d1242f", 74.0),
        };
        let at = x(line.at.as_secs_f64());
        let _ = writeln!(
            svg,
            "<g><title>{:.3} s: {}</title><line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{y}\" \
             y2=\"{:.0}\" stroke=\"{colour}\" stroke-opacity=\"0.18\"/>\
             <circle cx=\"{at:.1}\" cy=\"{y}\" r=\"4\" fill=\"{colour}\"/></g>",
            line.at.as_secs_f64(),
            escape(&line.text),
            height - 30.0,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn legend(svg: &mut String) {
    let entries = [
        ("user", "#1f6feb"),
        ("controller", "#111"),
        ("fault", "#d1242f"),
        ("pending", "#c9d1d9"),
        ("running", "#e3b341"),
        ("ready", "#2da44e"),
        ("going", "#f0883e"),
        ("ended", "#8250df"),
    ];
    for (index, (name, colour)) in entries.into_iter().enumerate() {
        let x = 420.0 + index as f64 * 90.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"11\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"20\">{name}</text>",
            x + 14.0
        );
    }
}

/// A line about every hundred pixels.
fn scale(svg: &mut String, end: f64, height: f64, x: impl Fn(f64) -> f64) {
    let step = [1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0];
    let step = step.into_iter().find(|step| end / step <= 12.0).unwrap_or(3600.0);
    let mut at = 0.0;
    while at <= end {
        let _ = writeln!(
            svg,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP}\" y2=\"{1:.0}\" stroke=\"#eee\"/>\
             <text x=\"{0:.1}\" y=\"{2:.0}\" fill=\"#888\">{at:.0} s</text>",
            x(at),
            height - 30.0,
            height - 12.0,
        );
        at += step;
    }
}

/// The lives of all pods, in the order in which they appeared.
fn lives<'l>(lines: impl Iterator<Item = &'l Line>) -> Vec<(String, Life)> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut lives: Vec<(String, Life)> = Vec::new();
    for line in lines {
        let Some((name, what)) = line.text.strip_prefix("pods/").and_then(|it| it.split_once(' '))
        else {
            continue;
        };
        let at = line.at.as_secs_f64();
        let place = *places.entry(name.to_owned()).or_insert_with(|| {
            lives.push((name.to_owned(), Life::default()));
            lives.len() - 1
        });
        let life = &mut lives[place].1;
        if what.starts_with("is gone") {
            life.end = Some(at);
            continue;
        }
        let colour = colour(what);
        if life.stretches.last().is_none_or(|last| last.colour != colour) {
            life.stretches.push(Stretch { from: at, colour });
        }
    }
    lives
}

fn colour(what: &str) -> &'static str {
    match what {
        _ if what.contains("(going)") => "#f0883e",
        _ if what.contains("ready") => "#2da44e",
        _ if what.contains("Running") => "#e3b341",
        _ if what.contains("Pending") => "#c9d1d9",
        _ => "#8250df",
    }
}

/// Boots, deaths, faults and what users do.
fn is_mark(line: &Line) -> bool {
    match line.actor {
        Actor::Fault => true,
        Actor::User => line.text.contains(": ") && !line.text.contains('/'),
        Actor::Controller(_) => matches!(&*line.text, "boots" | "dies" | "is switched off"),
        Actor::Nodes | Actor::Cluster => false,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::run;

    #[test]
    fn every_pod_has_a_lane_and_every_fault_a_mark() {
        let plan = (0..).map(Plan::from_seed).find(|plan| plan.faults.len() > 3);
        let plan = plan.expect("a plan with faults");
        let outcome = run(&plan, usize::MAX);
        let svg = picture(&plan, &outcome);
        let pods = lives(outcome.trace.lines());
        assert!(!pods.is_empty());
        for (name, _) in &pods {
            assert!(svg.contains(&escape(name)), "{name}");
        }
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
        assert!(svg.matches("#d1242f").count() as u64 > outcome.counts.faults);
    }
}
