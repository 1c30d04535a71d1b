//! Plans as text: what has failed once is kept as it was, whatever seeds are drawn into later.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::plan::Plan;

impl Plan {
    /// The plan as JSON, with one thing that happens a line.
    pub fn to_text(&self) -> String {
        let lines = |things: Vec<Value>| {
            let things: Vec<String> =
                things.into_iter().map(|thing| format!("\n  {thing}")).collect();
            things.join(",")
        };
        let actions = lines(self.actions.iter().map(|action| json!(action)).collect());
        let faults = lines(self.faults.iter().map(|fault| json!(fault)).collect());
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{{\"seed\":{},\n \"shape\":{},\n \"actions\":[{actions}],\n \"faults\":[{faults}]}}",
            self.seed,
            json!(self.shape),
        );
        text
    }

    /// The plan that a text is.
    pub fn from_text(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("this is no plan of the simulation")
    }
}

/// Kinds, by their names.
pub(super) mod by_name {
    use picokube_core::kind::Kind;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::sim) fn serialize<S: Serializer>(kind: &Kind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(kind.info().name)
    }

    pub(in crate::sim) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Kind, D::Error> {
        let name = String::deserialize(from)?;
        let known = Kind::ALL.iter().find(|kind| kind.info().name == name);
        known.copied().ok_or_else(|| D::Error::custom(format!("there is no kind {name}")))
    }
}

/// Rates of requests.
pub(super) mod pace {
    use picokube_core::manager::Rate;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Pace {
        qps: u32,
        burst: u32,
    }

    pub(in crate::sim) fn serialize<S: Serializer>(
        rate: &Option<Rate>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        rate.map(|Rate { qps, burst }| Pace { qps, burst }).serialize(to)
    }

    pub(in crate::sim) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Rate>, D::Error> {
        let pace = Option::<Pace>::deserialize(from)?;
        Ok(pace.map(|Pace { qps, burst }| Rate { qps, burst }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use super::*;

    #[test]
    fn a_plan_is_what_was_kept_of_it() {
        for seed in 0..300 {
            for plan in [
                Plan::from_seed(seed),
                Plan::with_election(seed),
                Plan::of_workload(seed, Workload::Both),
            ] {
                let text = plan.to_text();
                assert_eq!(Plan::from_text(&text).expect("a plan"), plan, "{text}");
                assert_eq!(text.lines().count(), parts(&plan) + 4, "one line each: {text}");
            }
        }
    }

    fn parts(plan: &Plan) -> usize {
        plan.actions.len() + plan.faults.len()
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        let plan = Plan::with_election(3).to_text();
        for text in ["", "{}", &plan.replace("seed", "need"), &plan.replace("default", "x")[1..]] {
            assert!(Plan::from_text(text).is_err(), "{text}");
        }
    }
}
