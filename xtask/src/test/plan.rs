//! What a test run does, and what of it is wanted.

use clap::Args;

use super::programs::Program;
use super::schedule::Lane;
use crate::workspace::{APART, ON_A_PC};

/// A part of a test run. Test programs come on top, when they are built.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) lane: Lane,
    /// Steps that must have succeeded before.
    pub(super) needs: &'static [&'static str],
    pub(super) work: Work,
    when: When,
}

/// Which runs a step is part of, unless it is asked for by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// That of a developer before every commit, and the whole one.
    Always,
    /// The one before every commit: in the whole one, another step does the same.
    Quick,
    /// The whole one.
    Whole,
}

/// What a step does.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// A command of `cargo xtask`.
    Command(&'static [&'static str]),
    /// Builds programs by `cargo` with these words, looked at by clippy. Those that are tests are then run.
    Build(&'static [&'static [&'static str]]),
    /// Builds programs that no other test may start.
    BuildApart(&'static [&'static [&'static str]]),
    /// Runs tests by `cargo` with these words.
    Test(&'static [&'static [&'static str]]),
}

const ALL_TESTS: &[&[&str]] = &[&["test", "--no-run"], &ON_A_PC];
/// Not run: they are to build, and clippy is to look at them.
const BENCHES: &[&[&str]] = &[&["test", "--no-run", "--bench", "*"], &ON_A_PC];
const LOG_DECODER: &[&[&str]] = &[&["build"], &APART];
const DOC_TESTS: &[&[&str]] = &[&["test", "--doc"], &ON_A_PC];
/// Neither sockets nor a command line, and all the optimisation that pays for itself only here. One build
/// for all: with the feature there are mistakes to choose from, and only two of the programs choose any.
const SIMULATION: &[&[&str]] = &[
    &["test", "--no-run", "--profile", "simulation"],
    &["--package", "picokube", "--no-default-features", "--features", "driver,planted-bugs"],
    &["--test", "planted", "--test", "seeds", "--test", "sweeps"],
    &["--test", "shipped", "--test", "shipped_planted"],
];

/// All steps. Of those that can begin, the first ones do: what others wait for stands above.
const STEPS: [Step; 17] = [
    quick("fmt", Lane::Light, &[], Work::Command(&["fmt"])),
    quick("tidy", Lane::Light, &[], Work::Command(&["tidy"])),
    quick("deny", Lane::Light, &[], Work::Command(&["deny"])),
    quick("setup", Lane::Light, &[], Work::Command(&["setup"])),
    step("log-decoder", Lane::Host, &[], Work::Build(LOG_DECODER)),
    quick("build", Lane::Host, &[], Work::Build(ALL_TESTS)),
    step("images", Lane::Embedded, &["setup"], Work::Command(&["firmware", "build", "--all"])),
    step("simulation", Lane::Host, &[], Work::BuildApart(SIMULATION)),
    step("sizes", Lane::Waiting, &["build", "log-decoder", "images"], Work::Command(&["sizes"])),
    quick("benches", Lane::Host, &["build"], Work::BuildApart(BENCHES)),
    only_quick("clippy-rest", Lane::Host, &[], Work::Command(&["clippy-rest"])),
    quick("doc", Lane::Host, &[], Work::Command(&["doc"])),
    quick("doc-tests", Lane::Host, &[], Work::Test(DOC_TESTS)),
    step("clippy-firmware", Lane::Embedded, &["setup"], Work::Command(&["clippy-firmware"])),
    step("purity", Lane::Embedded, &["images"], Work::Command(&["purity"])),
    step("boards", Lane::Embedded, &["setup"], Work::Command(&["boards"])),
    step("fuzz", Lane::Embedded, &["setup"], Work::Command(&["fuzz", "--brief"])),
];

const fn step(name: &'static str, lane: Lane, needs: &'static [&'static str], work: Work) -> Step {
    Step { name, lane, needs, work, when: When::Whole }
}

const fn quick(name: &'static str, lane: Lane, needs: &'static [&'static str], work: Work) -> Step {
    Step { when: When::Always, ..step(name, lane, needs, work) }
}

const fn only_quick(
    name: &'static str,
    lane: Lane,
    needs: &'static [&'static str],
    work: Work,
) -> Step {
    Step { when: When::Quick, ..step(name, lane, needs, work) }
}

/// Which part of a test run is wanted.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Selection {
    /// What to run before every commit: no firmware, no boards, no long simulations
    #[arg(long)]
    quick: bool,
    /// Only this, and what it needs: a step (`doc`, `sizes`), a test program (`kubectl`), tests of a
    /// program (`kubectl::applying`), or all tests with this in their names (of the simulation, those of
    /// `seeds`, `shipped`, `sweeps` or `planted`)
    #[arg(long, value_name = "NAME", conflicts_with = "quick")]
    only: Option<String>,
}

impl Selection {
    /// The steps, in order.
    pub(super) fn steps(&self) -> Vec<Step> {
        let Some(only) = &self.only else {
            let other = if self.quick { When::Whole } else { When::Quick };
            return STEPS.into_iter().filter(|step| step.when != other).collect();
        };
        if let Some(step) = STEPS.iter().find(|step| step.name == only) {
            return with_needs(&[step.name]);
        }
        // A test, then; which ones there are is known when they are built.
        match only.split("::").next() {
            Some("planted" | "seeds" | "shipped" | "shipped_planted" | "sweeps") => {
                with_needs(&["simulation"])
            }
            _ => with_needs(&["setup", "build", "images", "log-decoder"]),
        }
    }

    /// Whether a test program is to run, and of its tests only those with something in their names.
    pub(super) fn filter(&self, program: &Program) -> Option<Option<String>> {
        let Some(only) = &self.only else {
            return (!self.quick || program.is_quick()).then_some(None);
        };
        if STEPS.iter().any(|step| step.name == only) {
            // All tests of a build, if it is that build that is wanted.
            return ["build", "simulation"].contains(&&**only).then_some(None);
        }
        if program.name == *only {
            return Some(None);
        }
        if let Some((name, filter)) = only.split_once("::")
            && program.name == name
        {
            return Some(Some(filter.to_owned()));
        }
        program.has_test(only).then(|| Some(only.clone()))
    }
}

/// Steps and all that they need, in order.
fn with_needs(names: &[&'static str]) -> Vec<Step> {
    let mut wanted = names.to_vec();
    let mut seen = 0;
    while let Some(name) = wanted.get(seen) {
        let step = STEPS.iter().find(|step| step.name == *name);
        let needs = step.map_or(&[][..], |step| step.needs);
        wanted.extend(needs);
        seen += 1;
    }
    STEPS.into_iter().filter(|step| wanted.contains(&step.name)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::Parser;

    use super::*;

    fn names(selection: &Selection) -> Vec<&'static str> {
        selection.steps().iter().map(|step| step.name).collect()
    }

    fn only(name: &str) -> Selection {
        Selection { only: Some(name.to_owned()), ..Selection::default() }
    }

    #[test]
    fn a_step_needs_steps_that_there_are_and_that_stand_above() {
        for (place, step) in STEPS.iter().enumerate() {
            for need in step.needs {
                let at = STEPS.iter().position(|step| step.name == *need);
                assert!(at.is_some_and(|at| at < place), "{} needs {need}", step.name);
            }
        }
    }

    #[test]
    fn every_command_is_one() {
        for step in STEPS {
            if let Work::Command(words) = step.work {
                let words = ["cargo xtask"].iter().chain(words);
                let parsed = crate::Arguments::try_parse_from(words);
                assert!(parsed.is_ok(), "{}", step.name);
            }
        }
    }

    #[test]
    fn one_step_comes_with_what_it_needs() {
        assert_eq!(names(&only("fmt")), ["fmt"]);
        assert_eq!(names(&only("sweeps")), ["simulation"]);
        assert_eq!(names(&only("planted::every")), ["simulation"]);
        assert_eq!(names(&only("purity")), ["setup", "images", "purity"]);
        assert_eq!(names(&only("sizes")), ["setup", "log-decoder", "build", "images", "sizes"]);
        assert_eq!(names(&only("clippy-rest")), ["clippy-rest"]);
    }

    #[test]
    fn every_step_is_part_of_a_run() {
        let whole = names(&Selection::default());
        let quick = names(&Selection { quick: true, ..Selection::default() });
        for Step { name, .. } in STEPS {
            // The simulation's build does what clippy-rest does.
            assert_eq!(whole.contains(&name), name != "clippy-rest", "{name}");
        }
        assert!(quick.contains(&"build") && quick.contains(&"clippy-rest"));
        assert!(!quick.contains(&"simulation"));
    }

    #[test]
    fn one_program_or_some_of_its_tests_are_chosen() {
        let nowhere = PathBuf::from("no such program");
        let program = Program::new("kubectl", nowhere.clone(), nowhere);
        assert_eq!(Selection::default().filter(&program), Some(None));
        assert_eq!(only("kubectl").filter(&program), Some(None));
        assert_eq!(only("kubectl::applying").filter(&program), Some(Some("applying".to_owned())));
        assert_eq!(only("golden").filter(&program), None);
        assert_eq!(only("fmt").filter(&program), None);
        assert_eq!(only("build").filter(&program), Some(None));
        assert_eq!(only("simulation").filter(&program), Some(None));
    }
}
