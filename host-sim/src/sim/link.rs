//! The network between a controller and the server: how long bytes take, if they arrive at all.

use crate::random::Random;

use super::clock::Moment;

/// After so long without an answer from the other side a connection is given up: keep-alive
/// probes and retransmissions are not answered either.
pub(super) const GIVES_UP_AFTER_SECS: u64 = 60;
/// A local network: shortest delay, and how much longer it may be.
const SOUND_DELAY_MICROS: (u64, u64) = (200, 800);
/// A link at its worst: 1 kbit/s, 5 s away.
const SLOW_DELAY_MICROS: u64 = 5_000_000;
const SLOW_MICROS_PER_BYTE: u64 = 8_000;
/// A lost segment is sent again after about so long once the link is up.
const RETRANSMISSION_MICROS: u64 = 200_000;

/// A stretch of time in which the link is not what it should be.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Moment,
    to: Moment,
    trouble: Trouble,
    /// The only way that it is about, if it is not about both.
    way: Option<Way>,
}

#[derive(Clone, Copy, Debug)]
enum Trouble {
    Down,
    Flapping { period_micros: u64 },
    Slow,
}

/// One controller's way to the server. All its connections share it.
#[derive(Debug)]
pub(super) struct Link {
    /// Shortest delay, and how much longer it may be.
    delay_micros: (u64, u64),
    windows: Vec<Window>,
    /// On a slow link bytes queue up, in each direction.
    busy_until: [Moment; 2],
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToServer,
    FromServer,
}

/// When something that is sent arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// When it leaves: until then its sender can think better of it.
    pub(super) leaves: Moment,
    /// Its first byte.
    pub(super) begins: Moment,
    /// Its last byte.
    pub(super) ends: Moment,
}

impl Link {
    pub(super) fn new(delay_micros: (u64, u64)) -> Self {
        Self { delay_micros, windows: Vec::new(), busy_until: [Moment::default(); 2] }
    }

    pub(super) fn take_down(&mut self, from: Moment, seconds: u32) {
        self.add(from, seconds, Trouble::Down);
    }

    pub(super) fn flap(&mut self, from: Moment, seconds: u32, period_millis: u32) {
        let period_micros = u64::from(period_millis.max(2)) * 1000;
        self.add(from, seconds, Trouble::Flapping { period_micros });
    }

    pub(super) fn slow_down(&mut self, from: Moment, seconds: u32) {
        self.add(from, seconds, Trouble::Slow);
    }

    /// Nothing gets through in this direction.
    pub(super) fn cut(&mut self, from: Moment, seconds: u32, way: Way) {
        self.add(from, seconds, Trouble::Down);
        if let Some(window) = self.windows.last_mut() {
            window.way = Some(way);
        }
    }

    fn add(&mut self, from: Moment, seconds: u32, trouble: Trouble) {
        let to = from.plus_secs(u64::from(seconds));
        self.windows.push(Window { from, to, trouble, way: None });
    }

    /// Everything is as it should be from `now` on.
    pub(super) fn heal(&mut self, now: Moment) {
        self.delay_micros = SOUND_DELAY_MICROS;
        self.windows.clear();
        self.busy_until = [now; 2];
    }

    /// When `bytes` that are sent at `now` are through; `None` if both sides give up before.
    pub(super) fn pass(
        &mut self,
        now: Moment,
        bytes: usize,
        way: Way,
        random: &mut Random,
    ) -> Option<Passage> {
        let (least, spread) = self.delay_micros;
        let delay = least + random.below(spread + 1);
        if self.windows.is_empty() {
            let ends = now.plus_micros(delay);
            return Some(Passage { leaves: now, begins: ends, ends });
        }
        let leaves = self.up_from(now, way);
        if leaves.micros_since(now) > GIVES_UP_AFTER_SECS * 1_000_000 {
            return None;
        }
        let leaves = if leaves > now { leaves.plus_micros(RETRANSMISSION_MICROS) } else { leaves };
        if !self.is_slow(leaves) {
            let ends = leaves.plus_micros(delay);
            return Some(Passage { leaves, begins: ends, ends });
        }
        let busy = &mut self.busy_until[way as usize];
        let begins = leaves.max(*busy);
        *busy = begins.plus_micros(bytes as u64 * SLOW_MICROS_PER_BYTE);
        let begins = begins.plus_micros(SLOW_DELAY_MICROS);
        Some(Passage { leaves, begins, ends: busy.plus_micros(SLOW_DELAY_MICROS) })
    }

    fn is_slow(&self, at: Moment) -> bool {
        let slow = |w: &&Window| matches!(w.trouble, Trouble::Slow) && w.from <= at && at < w.to;
        self.windows.iter().any(|window| slow(&window))
    }

    /// The first moment from `at` on at which the link is up.
    fn up_from(&self, at: Moment, way: Way) -> Moment {
        let mut up = at;
        // Windows may follow each other: each of them moves the moment at most once per period.
        for _ in 0..1000 {
            let blocked = self.windows.iter().filter_map(|window| window.down_until(up, way)).max();
            match blocked {
                Some(until) => up = until,
                None => break,
            }
        }
        up
    }
}

impl Window {
    /// If the link is down at `at` because of this window: until when.
    fn down_until(&self, at: Moment, way: Way) -> Option<Moment> {
        if self.way.is_some_and(|only| only != way) || at < self.from || at >= self.to {
            return None;
        }
        match self.trouble {
            Trouble::Slow => None,
            Trouble::Down => Some(self.to),
            Trouble::Flapping { period_micros } => {
                let into = at.micros_since(self.from) % period_micros;
                let half = period_micros / 2;
                (into < half).then(|| at.plus_micros(half - into).min(self.to))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> (Link, Random) {
        (Link::new((1_000, 0)), Random::from_seed(1))
    }

    #[test]
    fn a_sound_link_only_delays() {
        let (mut link, mut random) = link();
        let passage = link.pass(Moment::from_secs(1), 9999, Way::ToServer, &mut random);
        assert_eq!(passage.map(|p| p.ends), Some(Moment::from_micros(1_001_000)));
    }

    #[test]
    fn what_is_sent_while_down_comes_when_it_is_up_or_never() {
        let (mut link, mut random) = link();
        link.take_down(Moment::from_secs(10), 30);
        let passage = link.pass(Moment::from_secs(15), 1, Way::FromServer, &mut random);
        assert!(passage.is_some_and(|p| p.ends > Moment::from_secs(40)));
        link.take_down(Moment::from_secs(40), 60);
        assert!(link.pass(Moment::from_secs(15), 1, Way::FromServer, &mut random).is_none());
        link.heal(Moment::from_secs(15));
        assert!(link.pass(Moment::from_secs(15), 1, Way::FromServer, &mut random).is_some());
    }

    #[test]
    fn a_flapping_link_is_down_half_of_the_time() {
        let (mut link, _) = link();
        link.flap(Moment::from_secs(0), 10, 1000);
        assert_eq!(link.up_from(Moment::from_millis(100), Way::ToServer), Moment::from_millis(500));
        assert_eq!(link.up_from(Moment::from_millis(700), Way::ToServer), Moment::from_millis(700));
        assert_eq!(
            link.up_from(Moment::from_millis(1200), Way::ToServer),
            Moment::from_millis(1500)
        );
    }

    #[test]
    fn a_link_may_be_cut_in_one_direction() {
        let (mut link, mut random) = link();
        link.cut(Moment::from_secs(10), 30, Way::FromServer);
        let mut ends = |way| link.pass(Moment::from_secs(15), 1, way, &mut random).map(|p| p.ends);
        assert_eq!(ends(Way::ToServer), Some(Moment::from_micros(15_001_000)));
        assert!(ends(Way::FromServer) > Some(Moment::from_secs(40)));
    }

    #[test]
    fn bytes_queue_on_a_slow_link() {
        let (mut link, mut random) = link();
        link.slow_down(Moment::from_secs(0), 1000);
        let one = link.pass(Moment::from_secs(1), 125, Way::ToServer, &mut random);
        let two = link.pass(Moment::from_secs(1), 125, Way::ToServer, &mut random);
        assert_eq!(one.map(|p| p.ends), Some(Moment::from_secs(7)));
        assert_eq!(two.map(|p| p.ends), Some(Moment::from_secs(8)));
    }
}
