//! Tests of simulated nodes against a real server, in virtual time.
