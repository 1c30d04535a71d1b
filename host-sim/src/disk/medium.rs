//! A disk for tests: it loses power, tears, reorders, fails and is full when it is told to.

use std::io::{self, Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

use crate::random::Random;

/// What is written at once, whatever happens.
const SECTOR: usize = 512;

/// What was asked of a disk and done, or pretended to be.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Write {
        at: usize,
        bytes: Vec<u8>,
    },
    Length(usize),
    Sync,
    /// Of what was waiting, some got through and some never will: nobody tries again.
    FailedSync,
}

/// What goes wrong, once or from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    WriteFails,
    /// Half of it is written before it fails.
    WriteIsShort,
    SyncFails,
    /// For new bytes, and for those that were promised but had no place yet.
    Full,
}

impl Fault {
    pub(super) const ALL: [Self; 4] =
        [Self::WriteFails, Self::WriteIsShort, Self::SyncFails, Self::Full];

    /// What is said of it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::WriteFails | Self::WriteIsShort => "the disk does not answer",
            Self::SyncFails => "the disk could not keep it",
            Self::Full => "no storage space",
        }
    }

    fn error(self) -> Error {
        match self {
            Self::Full => ErrorKind::StorageFull.into(),
            _ => Error::other(self.words()),
        }
    }
}

/// What survives of that which was written since the last sync when the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Survival {
    All,
    Nothing,
    /// Some writes, in any order.
    Some,
    /// Some sectors of some writes, in any order.
    Torn,
}

impl Survival {
    pub(super) const ALL: [Self; 4] = [Self::All, Self::Nothing, Self::Some, Self::Torn];
}

/// A disk. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Medium(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// What whoever reads sees.
    bytes: Vec<u8>,
    calls: Vec<Call>,
    /// What goes wrong, after how many calls of its sort, and whether once only.
    plan: Option<(Fault, usize, bool)>,
    strikes: usize,
}

impl Medium {
    /// A disk with this on it.
    pub(super) fn holding(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(State { bytes, ..State::default() })))
    }

    /// From now on something goes wrong: after so many calls of its sort, once only or each time.
    pub(super) fn let_fail(&self, fault: Fault, after: usize, once: bool) {
        self.state().plan = Some((fault, after, once));
    }

    /// What a process sees that starts after this one has ended.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.state().bytes.clone()
    }

    /// What was done until now.
    pub(super) fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// How many calls there were until now.
    pub(super) fn count(&self) -> usize {
        self.state().calls.len()
    }

    /// How often something went wrong.
    pub(super) fn strikes(&self) -> usize {
        self.state().strikes
    }

    /// From now on all goes well.
    pub(super) fn mend(&self) {
        self.state().plan = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a call of this sort goes wrong.
    fn strikes(&mut self, faults: &[Fault]) -> Option<Fault> {
        let (fault, after, once) = self.plan.filter(|(fault, ..)| faults.contains(fault))?;
        if after > 0 {
            self.plan = Some((fault, after - 1, once));
            return None;
        }
        if once {
            self.plan = None;
        }
        self.strikes += 1;
        Some(fault)
    }

    fn do_and_note(&mut self, call: Call) {
        apply(&mut self.bytes, &call);
        self.calls.push(call);
    }
}

impl StorageBackend for Medium {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        let found = state.bytes.get(offset as usize..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        let grows = len as usize > state.bytes.len();
        if let Some(fault) = grows.then(|| state.strikes(&[Fault::Full])).flatten() {
            return Err(fault.error());
        }
        state.do_and_note(Call::Length(len as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        if let Some(fault) = state.strikes(&[Fault::SyncFails]) {
            state.calls.push(Call::FailedSync);
            return Err(fault.error());
        }
        state.do_and_note(Call::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let at = offset as usize;
        match state.strikes(&[Fault::WriteFails, Fault::WriteIsShort, Fault::Full]) {
            None => {
                state.do_and_note(Call::Write { at, bytes: data.to_vec() });
                Ok(())
            }
            Some(fault) => {
                if fault == Fault::WriteIsShort {
                    let half = data[..data.len() / 2].to_vec();
                    state.do_and_note(Call::Write { at, bytes: half });
                }
                Err(fault.error())
            }
        }
    }
}

/// What is on a disk, which held `before`, when the power goes after these calls; and whether something was
/// lost.
pub(super) fn after_power_cut(
    before: &[u8],
    calls: &[Call],
    survival: Survival,
    random: &mut Random,
) -> (Vec<u8>, bool) {
    let (mut bytes, mut waiting, mut lost) = (before.to_vec(), Vec::new(), false);
    for call in calls {
        match call {
            Call::Sync => waiting.drain(..).for_each(|call| apply(&mut bytes, call)),
            Call::FailedSync => {
                lost |= let_through(&mut bytes, &mut waiting, Survival::Some, random)
            }
            call => waiting.push(call),
        }
    }
    lost |= let_through(&mut bytes, &mut waiting, survival, random);
    (bytes, lost)
}

fn let_through(
    bytes: &mut Vec<u8>,
    waiting: &mut Vec<&Call>,
    survival: Survival,
    random: &mut Random,
) -> bool {
    let mut lost = false;
    while !waiting.is_empty() {
        let in_order = matches!(survival, Survival::All | Survival::Nothing);
        let next = if in_order { 0 } else { random.below(waiting.len() as u64) as usize };
        let call = waiting.remove(next);
        let survives = match survival {
            Survival::All => true,
            Survival::Nothing => false,
            Survival::Some | Survival::Torn => random.below(2) == 0,
        };
        lost |= !survives;
        match call {
            Call::Write { at, bytes: written } if survives && survival == Survival::Torn => {
                for (index, sector) in written.chunks(SECTOR).enumerate() {
                    if random.below(2) == 0 {
                        let (at, bytes_of) = (at + index * SECTOR, sector.to_vec());
                        apply(bytes, &Call::Write { at, bytes: bytes_of });
                    } else {
                        lost = true;
                    }
                }
            }
            call if survives => apply(bytes, call),
            _ => {}
        }
    }
    lost
}

fn apply(disk: &mut Vec<u8>, call: &Call) {
    match call {
        Call::Write { at, bytes } => {
            let end = at + bytes.len();
            if disk.len() < end {
                disk.resize(end, 0);
            }
            disk[*at..end].copy_from_slice(bytes);
        }
        Call::Length(length) => disk.resize(*length, 0),
        Call::Sync | Call::FailedSync => {}
    }
}
