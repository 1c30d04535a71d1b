//! The test programs: built by one cargo in one go, then run side by side.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::schedule::Lane;
use crate::{process, workspace};

/// Those that mostly wait, with how many of their tests wait at a time, and what they need besides
/// being built. All others keep a core busy.
///
/// Their tests have servers, devices or namespaces of their own.
const WAITING: [(&str, usize, &[&str]); 12] = [
    ("capacity", 2, &[]),
    ("demo", 1, &[]),
    ("driver", 4, &[]),
    ("embedding", 1, &["setup"]),
    ("firmware", 6, &["setup", "images", "log-decoder"]),
    ("kube_client", 4, &[]),
    ("kubectl", 6, &["setup"]),
    ("openssl", 4, &["setup"]),
    ("parity", 4, &[]),
    ("run", 6, &["setup"]),
    ("upstream", 12, &[]),
    ("workflow", 8, &["setup"]),
];

/// Those that are held to what happened in real time, in the same way.
const REAL_TIME: [(&str, usize, &[&str]); 4] = [
    ("economy", 1, &[]),
    ("election", 3, &["setup", "images", "log-decoder"]),
    ("golden", 10, &[]),
    ("golden_device", 3, &["setup", "images", "log-decoder"]),
];

/// Those that take longer than a developer likes to wait before every commit.
const LONG: [&str; 15] = [
    "capacity",
    "crowd",
    "demo",
    "election",
    "embedding",
    "firmware",
    "golden",
    "golden_device",
    "planted",
    "seeds",
    "shipped",
    "shipped_planted",
    "sweeps",
    "upstream",
    "xtask-bin",
];

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: String,
    executable: PathBuf,
    /// The folder of its package, where cargo would run it.
    folder: PathBuf,
    pub(super) lane: Lane,
    pub(super) threads: usize,
    pub(super) needs: &'static [&'static str],
}

impl Program {
    pub(super) fn new(name: &str, executable: PathBuf, folder: PathBuf) -> Self {
        let name = name.to_owned();
        let lanes = [(Lane::RealTime, &REAL_TIME[..]), (Lane::Waiting, &WAITING[..])];
        let found = lanes.into_iter().find_map(|(lane, programs)| {
            let (_, threads, needs) = programs.iter().find(|(program, ..)| *program == name)?;
            Some((lane, *threads, *needs))
        });
        let (lane, threads, needs) = found.unwrap_or((Lane::Core, 1, &[]));
        Self { name, executable, folder, lane, threads, needs }
    }

    /// Runs it.
    pub(super) fn command(&self) -> Command {
        let mut command = self.lane.command(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.env(workspace::BUILT, built());
        command
    }

    /// Whether it is for every commit.
    pub(super) fn is_quick(&self) -> bool {
        !LONG.contains(&self.name.as_str())
    }

    /// Whether one of its tests has this in its name.
    pub(super) fn has_test(&self, part: &str) -> bool {
        let list = process::output(Command::new(&self.executable).args(["--list", part]));
        list.is_ok_and(|list| list.lines().any(|line| line.ends_with(": test")))
    }
}

/// Builds programs by one cargo in one go: one set of features for all. Gives those that are tests, and
/// keeps the others for them.
pub(super) fn build(words: &[&[&str]], log: &Path) -> Result<Vec<Program>> {
    let (programs, others) = run(crate::gates::with_clippy(&mut cargo(words)), log)?;
    others.iter().try_for_each(|other| keep(other, &built()))?;
    // Documents are followed to the letter, and this is what they call `cargo xtask`.
    keep(&std::env::current_exe()?, &built())?;
    Ok(programs)
}

/// Builds programs of another sort than all others. Gives those that are tests, and where the others
/// are, which no test may start.
pub(super) fn build_apart(words: &[&[&str]], log: &Path) -> Result<(Vec<Program>, Vec<PathBuf>)> {
    run(crate::gates::with_clippy(&mut cargo(words)), log)
}

/// cargo with these words, which gets out of the way of what waits for it.
pub(super) fn cargo(words: &[&[&str]]) -> Command {
    let mut cargo = process::patient(Path::new(env!("CARGO")));
    crate::cargo::as_a_user(&mut cargo).current_dir(workspace::root()).args(words.concat());
    cargo
}

fn run(cargo: &mut Command, log: &Path) -> Result<(Vec<Program>, Vec<PathBuf>)> {
    cargo.arg("--message-format=json-render-diagnostics");
    let mut programs = Vec::new();
    let mut others = Vec::new();
    process::run_read(cargo, log, |message| match program(message) {
        Some(Built::Test(program)) => programs.push(program),
        Some(Built::Other(path)) => others.push(path),
        None => {}
    })?;
    // Whatever nothing may run beside begins first, then what takes longest.
    programs.sort_by_key(|program| {
        (program.lane != Lane::RealTime, !LONG.contains(&program.name.as_str()))
    });
    Ok((programs, others))
}

/// Where programs are that tests start: the next build of anything does not touch them.
pub(super) fn built() -> PathBuf {
    workspace::target().join("built")
}

fn keep(program: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let name = program.file_name().context("a program without a name")?;
    let kept = folder.join(name);
    let fresh = kept.with_extension("fresh");
    // One that is there already may be running: the new one takes its place as a whole. If both are the
    // same file, nothing happens, and the second link stays.
    let linked = fs::hard_link(program, &fresh).and_then(|()| fs::rename(&fresh, &kept));
    let _ = fs::remove_file(&fresh);
    linked.with_context(|| format!("cannot write {}", kept.display()))
}

/// A program that cargo has built.
enum Built {
    Test(Program),
    Other(PathBuf),
}

/// What a message of cargo's says of a program that it has built.
fn program(message: &str) -> Option<Built> {
    let message: Value = serde_json::from_str(message).ok()?;
    let executable = PathBuf::from(message["executable"].as_str()?);
    if message["profile"]["test"] != true {
        return Some(Built::Other(executable));
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    // `path+file:///…/host-sim#picokube@0.1.0`, without the name if the folder has it.
    let identity = message["package_id"].as_str()?.rsplit('#').next()?;
    let package = match identity.split_once('@') {
        Some((package, _)) => package.to_owned(),
        None => folder.file_name()?.to_str()?.to_owned(),
    };
    let target = &message["target"];
    let name = match target["kind"][0].as_str()? {
        "bench" => return None,
        "test" => target["name"].as_str()?.to_owned(),
        "bin" => format!("{}-bin", target["name"].as_str()?),
        _ => package,
    };
    Some(Built::Test(Program::new(&name, executable, folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_kept_again_and_again_and_replaced_by_a_new_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let (program, kept) = (folder.path().join("program"), folder.path().join("kept"));
        for text in ["old", "old", "new"] {
            fs::write(folder.path().join("next"), text).expect("written");
            if fs::read(&program).ok().as_deref() != Some(text.as_bytes()) {
                fs::rename(folder.path().join("next"), &program).expect("renamed");
            }
            keep(&program, &kept).expect("kept");
            assert_eq!(fs::read_to_string(kept.join("program")).expect("there"), text);
            assert_eq!(kept.read_dir().expect("a folder").count(), 1, "nothing else is left");
        }
    }

    #[test]
    fn messages_of_cargo_are_understood() {
        let message = |test: bool, kind: &str, target: &str| {
            let identity = "path+file:///work/host-sim#picokube@0.1.0";
            serde_json::json!({
                "reason": "compiler-artifact", "package_id": identity, "profile": {"test": test},
                "manifest_path": "/work/host-sim/Cargo.toml", "target": {"name": target, "kind": [kind]},
                "executable": "/work/target/debug/program",
            })
        };
        let name = |kind, target| match program(&message(true, kind, target).to_string()) {
            Some(Built::Test(program)) => program.name,
            _ => panic!("no test"),
        };
        assert_eq!(name("lib", "picokube"), "picokube");
        assert_eq!(name("bin", "picokube"), "picokube-bin");
        assert_eq!(name("test", "sweeps"), "sweeps");
        assert!(program(&message(true, "bench", "decode").to_string()).is_none(), "not to be run");
        let other = program(&message(false, "bin", "picokube").to_string());
        assert!(matches!(other, Some(Built::Other(path)) if path.ends_with("program")));
        assert!(program(r#"{"reason":"build-finished","success":true}"#).is_none());
    }
}
