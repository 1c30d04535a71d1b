//! The times of an open connection: is the server still there?

use embassy_time::{Duration, Instant};

/// How long a server may be silent before it is asked for a sign of life.
const SILENCE: Duration = Duration::from_secs(30);
/// How long it may take to give one.
const ANSWER: Duration = Duration::from_secs(15);
/// How often a server is forgiven what it has done that was of no use.
const FORGIVE: Duration = Duration::from_secs(60);

/// When something was heard, and when to ask.
pub(super) struct Pulse {
    heard: Instant,
    asked: bool,
    forgive: Instant,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    Nothing,
    /// To ask for a sign of life.
    Ask,
    /// To forgive.
    Forgive,
    /// The server is not there any more.
    GiveUp,
}

impl Pulse {
    pub(super) fn new(now: Instant) -> Self {
        Self { heard: now, asked: false, forgive: now + FORGIVE }
    }

    /// Something has come.
    pub(super) fn heard(&mut self, now: Instant) {
        (self.heard, self.asked) = (now, false);
    }

    /// When to look again.
    pub(super) fn due(&self) -> Instant {
        self.silent_until().min(self.forgive)
    }

    pub(super) fn beat(&mut self, now: Instant) -> Beat {
        if now >= self.silent_until() {
            if self.asked {
                return Beat::GiveUp;
            }
            self.asked = true;
            return Beat::Ask;
        }
        if now >= self.forgive {
            self.forgive = now + FORGIVE;
            return Beat::Forgive;
        }
        Beat::Nothing
    }

    fn silent_until(&self) -> Instant {
        self.heard + if self.asked { SILENCE + ANSWER } else { SILENCE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(1000 + seconds)
    }

    #[test]
    fn a_silent_server_is_asked_once_and_then_given_up() {
        let mut pulse = Pulse::new(at(0));
        assert_eq!((pulse.due(), pulse.beat(at(29))), (at(30), Beat::Nothing));
        assert_eq!(pulse.beat(at(30)), Beat::Ask);
        assert_eq!((pulse.due(), pulse.beat(at(44))), (at(45), Beat::Nothing));
        assert_eq!(pulse.beat(at(45)), Beat::GiveUp);
    }

    #[test]
    fn an_answer_is_a_sign_of_life() {
        let mut pulse = Pulse::new(at(0));
        assert_eq!(pulse.beat(at(30)), Beat::Ask);
        pulse.heard(at(40));
        assert_eq!((pulse.due(), pulse.beat(at(60))), (at(60), Beat::Forgive));
        assert_eq!((pulse.due(), pulse.beat(at(69))), (at(70), Beat::Nothing));
        assert_eq!(pulse.beat(at(70)), Beat::Ask);
    }
}
