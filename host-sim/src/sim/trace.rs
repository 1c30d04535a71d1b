//! What happened, line by line, and a hash over all of it.

use std::collections::VecDeque;
use std::fmt;

use super::clock::Moment;

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// A user, by the workload.
    User,
    /// Scheduler and kubelets.
    Nodes,
    /// The server's own work: garbage collection, namespaces.
    Cluster,
    /// A controller, by its number.
    Controller(usize),
    /// What breaks.
    Fault,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Nodes => f.write_str("nodes"),
            Self::Cluster => f.write_str("cluster"),
            Self::Controller(number) => write!(f, "ctrl-{number}"),
            Self::Fault => f.write_str("FAULT"),
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Line {
    /// When.
    pub at: Moment,
    /// Who did it.
    pub actor: Actor,
    /// What it was.
    pub text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:<8} {}", self.at, self.actor.to_string(), self.text)
    }
}

/// Everything that happened, or the last of it; the hash covers all.
#[derive(Debug)]
pub struct Trace {
    lines: VecDeque<Line>,
    keep: usize,
    hash: u64,
    count: u64,
}

impl Trace {
    /// A trace that remembers its last `keep` lines.
    pub(super) fn new(keep: usize) -> Self {
        // The offset basis of FNV-1a.
        Self { lines: VecDeque::new(), keep, hash: 0xcbf2_9ce4_8422_2325, count: 0 }
    }

    pub(super) fn note(&mut self, at: Moment, actor: Actor, text: fmt::Arguments<'_>) {
        self.count += 1;
        let line = Line { at, actor, text: text.to_string() };
        let mut hasher = Fnv(self.hash);
        // Hashing cannot fail.
        let _ = fmt::write(&mut hasher, format_args!("{} {actor} {}\n", at.as_micros(), line.text));
        self.hash = hasher.0;
        if self.keep > 0 {
            if self.lines.len() == self.keep {
                self.lines.pop_front();
            }
            self.lines.push_back(line);
        }
    }

    /// A hash over every line: equal traces have equal hashes.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How many lines there were in all.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The lines that are remembered.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }
}

struct Fnv(u64);

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_covers_lines_that_are_forgotten() {
        let trace = |first: &str| {
            let mut trace = Trace::new(1);
            trace.note(Moment::from_secs(1), Actor::User, format_args!("{first}"));
            trace.note(Moment::from_secs(2), Actor::Nodes, format_args!("b"));
            assert_eq!((trace.count(), trace.lines().count()), (2, 1));
            trace.hash()
        };
        assert_eq!(trace("a"), trace("a"));
        assert_ne!(trace("a"), trace("c"));
    }
}
