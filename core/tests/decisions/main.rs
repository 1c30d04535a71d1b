//! The arithmetic of Deployments and the ranking of pods: known vectors, and random states
//! against plain models.

mod model;
mod random_states;
mod ranking;
mod support;
mod vectors;
mod whole;
mod whole_states;
