//! Whether memory is copied and filled as it should be: by the firmware's own functions, which only this
//! kind of processor has.

use core::hint::black_box;

const SIZE: usize = 96;
const LONGEST: usize = 70;
/// Where pieces begin: at every alignment, and so that they overlap.
const PLACES: usize = 20;

/// Moves and fills pieces of every length, from and to every alignment, whichever way they overlap:
/// whether all bytes are right, those around the pieces too.
pub fn memory_is_right() -> bool {
    (0..LONGEST).all(|length| {
        let pairs = (0..PLACES).flat_map(|from| (0..PLACES).map(move |to| (from, to)));
        pairs.into_iter().all(|(from, to)| moves(from, to, length) && copies(from, to, length))
            && (0..PLACES).all(|at| fills(at, length, 0) && fills(at, length, 0xa5))
    })
}

/// What stands somewhere before. A loop that copies would become what is to be checked.
fn before(at: usize) -> u8 {
    (at * 7 + 1) as u8
}

/// Memory that is aligned, and of which the compiler knows nothing.
#[repr(align(8))]
struct Memory([u8; SIZE]);

impl Memory {
    #[inline(never)]
    fn new() -> Self {
        let mut memory = Self([0; SIZE]);
        for (at, byte) in memory.0.iter_mut().enumerate() {
            *byte = black_box(before(at));
        }
        memory
    }

    /// Whether each byte is what `expected` says.
    #[inline(never)]
    fn is(&self, expected: &dyn Fn(usize) -> u8) -> bool {
        self.0.iter().enumerate().all(|(at, byte)| *byte == expected(at))
    }
}

fn moves(from: usize, to: usize, length: usize) -> bool {
    let mut memory = Memory::new();
    let (from, to, length) = black_box((from, to, length));
    memory.0.copy_within(from..from + length, to);
    memory.is(&|at| match (to..to + length).contains(&at) {
        true => before(from + at - to),
        false => before(at),
    })
}

fn copies(from: usize, to: usize, length: usize) -> bool {
    let (source, mut target) = (Memory::new(), Memory([0x5a; SIZE]));
    let (from, to, length) = black_box((from, to, length));
    target.0[to..to + length].copy_from_slice(&source.0[from..from + length]);
    target.is(&|at| match (to..to + length).contains(&at) {
        true => before(from + at - to),
        false => 0x5a,
    })
}

fn fills(start: usize, length: usize, with: u8) -> bool {
    let mut memory = Memory::new();
    let (start, length, with) = black_box((start, length, with));
    memory.0[start..start + length].fill(with);
    memory.is(&|at| if (start..start + length).contains(&at) { with } else { before(at) })
}
