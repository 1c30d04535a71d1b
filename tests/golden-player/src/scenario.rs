//! A scenario: steps, and what was recorded when the real controllers went through them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::facets::Facets;
use super::invariants::Bounds;
use super::kubelet::{Settings, SettingsChange};
use super::resource::Resource;
use super::step::{Operation, Step};

/// A scenario with its recording.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, which is that of its directory.
    pub name: String,
    /// What it is about.
    pub description: String,
    /// What is watched and recorded.
    pub watch: Vec<Resource>,
    /// How the fake kubelet behaves at first.
    pub kubelet: Settings,
    /// Bounds that must hold throughout, by Deployment.
    pub invariants: BTreeMap<String, Bounds>,
    /// The feature gates that must be on.
    pub gates: Vec<String>,
    /// How long nothing must happen before the final state is read.
    pub final_quiet_ms: u64,
    /// What is done.
    pub steps: Vec<Step>,
    /// What happened with the real controllers.
    pub recording: Recording,
}

/// What happened with the real controllers.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Every transition.
    pub trace: Vec<Value>,
    /// The projections of all objects at the end.
    pub finals: Vec<Value>,
    /// The [whole](super::whole) objects at the end, as far as they were recorded.
    pub objects: Option<Vec<Value>>,
    /// How each step was answered.
    pub answers: Vec<Value>,
    /// The facets that were the same in every run.
    pub stable: Vec<String>,
}

impl Recording {
    /// The recording from each side.
    pub fn facets(&self) -> Facets {
        let facets = Facets::of(&self.trace, &self.finals, &self.answers);
        match &self.objects {
            Some(objects) => facets.with_objects(objects),
            None => facets,
        }
    }

    /// How long a step took.
    pub fn duration(&self, step: usize) -> Duration {
        let milliseconds = self.answers.get(step).and_then(|answer| answer["ms"].as_u64());
        Duration::from_millis(milliseconds.unwrap_or_default())
    }
}

impl Scenario {
    /// Reads a scenario from its directory.
    pub fn load(directory: &Path) -> Result<Self> {
        Self::read(directory).with_context(|| format!("scenario {}", directory.display()))
    }

    /// Reads every scenario in a directory whose name `wanted` likes, by name.
    pub fn load_all(directory: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<Self>> {
        let entries = fs::read_dir(directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.join("steps.json").is_file() && wanted(&name) {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| Self::load(path)).collect()
    }

    fn read(directory: &Path) -> Result<Self> {
        let file: File = serde_json::from_value(json(&directory.join("steps.json"))?)?;
        let mut kubelet = Settings::default();
        kubelet.change(&file.kubelet);
        let mut steps = Vec::new();
        for (number, source) in file.steps.iter().enumerate() {
            let step = Step::parse(source).and_then(|step| with_manifest(step, directory));
            steps.push(step.with_context(|| format!("step {number}"))?);
        }
        Ok(Self {
            name: file.name,
            description: file.description,
            watch: file.watch,
            kubelet,
            invariants: file.invariants,
            gates: file.gates,
            final_quiet_ms: file.final_quiet_ms,
            steps,
            recording: Recording::read(directory)?,
        })
    }
}

impl Recording {
    fn read(directory: &Path) -> Result<Self> {
        let trace = directory.join("trace.jsonl");
        let trace = fs::read_to_string(&trace).with_context(|| trace.display().to_string())?;
        let trace: Result<Vec<Value>, _> = trace.lines().map(serde_json::from_str).collect();
        let result: ResultFile = serde_json::from_value(json(&directory.join("result.json"))?)?;
        let stability: Stability =
            serde_json::from_value(json(&directory.join("stability.json"))?)?;
        let objects = directory.join("final.full.json");
        let objects = match objects.is_file() {
            true => Some(serde_json::from_value(json(&objects)?)?),
            false => None,
        };
        Ok(Self {
            trace: trace.context("trace.jsonl")?,
            objects,
            finals: serde_json::from_value(json(&directory.join("final.json"))?)?,
            answers: result.steps,
            stable: stability.stable,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default = "usual_resources")]
    watch: Vec<Resource>,
    #[serde(default)]
    kubelet: SettingsChange,
    #[serde(default)]
    invariants: BTreeMap<String, Bounds>,
    #[serde(default)]
    gates: Vec<String>,
    #[serde(default = "usual_quiet_ms")]
    final_quiet_ms: u64,
    steps: Vec<Value>,
}

#[derive(Deserialize)]
struct ResultFile {
    steps: Vec<Value>,
}

#[derive(Deserialize)]
struct Stability {
    stable: Vec<String>,
}

fn usual_resources() -> Vec<Resource> {
    vec![Resource::Deployments, Resource::ReplicaSets, Resource::Pods, Resource::Events]
}

fn usual_quiet_ms() -> u64 {
    800
}

fn json(path: &PathBuf) -> Result<Value> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| path.display().to_string())
}

/// Reads the manifest a step names, so that it holds the object itself.
fn with_manifest(mut step: Step, directory: &Path) -> Result<Step> {
    if let Operation::Create { manifest, object } = &mut step.operation {
        match (manifest.take(), object.is_some()) {
            (Some(name), false) => *object = Some(json(&directory.join(name))?),
            (None, true) => {}
            _ => bail!("create wants either a manifest or an object"),
        }
    }
    Ok(step)
}
