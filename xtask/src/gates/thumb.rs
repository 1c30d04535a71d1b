//! What Thumb-2 code does to the stack pointer: enough of an instruction set to tell how large the frame of a
//! function is, and not more.

const SP: u16 = 13;
const LR: u16 = 14;
const PC: u16 = 15;

/// The code of one function.
pub(super) struct Code<'d> {
    /// From its first instruction to the end of its constants.
    pub(super) bytes: &'d [u8],
    /// What of it are constants and tables, by offsets.
    pub(super) constants: Vec<std::ops::Range<usize>>,
}

/// What one instruction does to the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Room is taken.
    Take(u32),
    /// Room is given back, before the function is left.
    Give(u32),
    /// The return address is back from where it was during a call to outlined code: the function goes on.
    Restore(u32),
    /// Code ends here, or goes on elsewhere. What follows is reached from elsewhere.
    Leave,
    /// By a register that nobody knows the value of.
    Unknown,
}

/// The most that the function takes of the stack at a time, in bytes, without what it calls. `None` if that
/// is decided only while it runs.
///
/// Code is read from its beginning to its end, as it lies there: it takes its frame at the beginning, and
/// gives it back at each of its ends. Where this is not so, the answer is too large rather than too small.
pub(super) fn frame(code: &Code<'_>) -> Option<u32> {
    let (mut depth, mut deepest) = (0_u32, 0);
    // How deep it was before it was given back, for what follows the end that is being come to.
    let mut before = None;
    let mut registers = [None; 16];
    let mut at = 0;
    while let Some(first) = code.half(at) {
        if let Some(constants) = code.constants.iter().find(|range| range.contains(&at)) {
            at = constants.end;
            continue;
        }
        let second = if first >= 0xE800 { code.half(at + 2) } else { None };
        let effect = match second {
            Some(second) => wide(code, at, first, second, &mut registers),
            None => narrow(code, at, first, &mut registers),
        };
        match effect {
            Some(Effect::Take(bytes)) => depth = depth.saturating_add(bytes),
            Some(Effect::Give(bytes)) => {
                before.get_or_insert(depth);
                depth = depth.saturating_sub(bytes);
            }
            Some(Effect::Restore(bytes)) => depth = depth.saturating_sub(bytes),
            Some(Effect::Leave) => depth = before.take().unwrap_or(depth),
            Some(Effect::Unknown) => return None,
            None => {}
        }
        deepest = deepest.max(depth);
        at += if second.is_some() { 4 } else { 2 };
    }
    Some(deepest)
}

impl Code<'_> {
    fn half(&self, at: usize) -> Option<u16> {
        let bytes = self.bytes.get(at..at + 2)?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }

    /// A constant among the code.
    fn word(&self, at: Option<usize>) -> Option<u32> {
        let bytes = self.bytes.get(at?..at? + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }
}

type Registers = [Option<u32>; 16];

/// An instruction of two bytes.
fn narrow(code: &Code<'_>, at: usize, half: u16, registers: &mut Registers) -> Option<Effect> {
    let bytes_of_list = |list: u16| 4 * list.count_ones();
    match half {
        // push {…}, with lr as the ninth
        _ if half & 0xFE00 == 0xB400 => Some(Effect::Take(bytes_of_list(half & 0x1FF))),
        // pop {…, pc}; pop {…}
        _ if half & 0xFF00 == 0xBD00 => Some(Effect::Leave),
        _ if half & 0xFF00 == 0xBC00 => Some(Effect::Give(bytes_of_list(half & 0xFF))),
        // add sp, #…; sub sp, #…
        _ if half & 0xFF80 == 0xB000 => Some(Effect::Give(u32::from(half & 0x7F) * 4)),
        _ if half & 0xFF80 == 0xB080 => Some(Effect::Take(u32::from(half & 0x7F) * 4)),
        // add sp, rX
        _ if half & 0xFF87 == 0x4485 => Some(added(known(registers, half >> 3 & 0xF))),
        // bx
        _ if half & 0xFF87 == 0x4700 => Some(Effect::Leave),
        // b, with a condition (of which 14 and 15 are other instructions) and without
        _ if half & 0xF000 == 0xD000 && half & 0x0E00 != 0x0E00 => Some(Effect::Leave),
        _ if half & 0xF800 == 0xE000 => Some(Effect::Leave),
        // movs rX, #…
        _ if half & 0xF800 == 0x2000 => {
            set(registers, half >> 8 & 7, Some(u32::from(half & 0xFF)));
            None
        }
        // ldr rX, [pc, #…]
        _ if half & 0xF800 == 0x4800 => {
            let place = (at & !3) + 4 + usize::from(half & 0xFF) * 4;
            set(registers, half >> 8 & 7, code.word(Some(place)));
            None
        }
        _ => None,
    }
}

/// An instruction of four bytes.
fn wide(
    code: &Code<'_>,
    at: usize,
    first: u16,
    second: u16,
    registers: &mut Registers,
) -> Option<Effect> {
    let target = second >> 12;
    let eight = u32::from(second & 0xFF);
    let twelve = u32::from(first >> 10 & 1) << 11 | u32::from(second >> 12 & 7) << 8 | eight;
    let to_sp = second >> 8 & 0xF == SP && second >> 15 == 0;
    let sixteen = u32::from(first & 0xF) << 12 | twelve;
    // The amount of `add sp, sp, rX` and `sub sp, sp, rX`.
    let by_register = || known(registers, second & 0xF).filter(|_| second & 0x70F0 == 0);
    match first {
        // push.w {…}, of several and of one
        0xE92D => Some(Effect::Take(4 * second.count_ones())),
        0xF84D if second & 0x0F00 == 0x0D00 => Some(Effect::Take(eight)),
        // strd rX, rY, [sp, #-…]!
        0xE96D => Some(Effect::Take(eight * 4)),
        // vpush {…}; vpop {…}
        0xED2D | 0xED6D if second & 0x0E00 == 0x0A00 => Some(Effect::Take(eight * 4)),
        0xECBD | 0xECFD if second & 0x0E00 == 0x0A00 => Some(Effect::Give(eight * 4)),
        // pop.w {…}, of several and of one
        0xE8BD if second >> PC == 1 => Some(Effect::Leave),
        0xE8BD => Some(Effect::Give(4 * second.count_ones())),
        0xF85D if second & 0x0F00 == 0x0B00 => Some(match target {
            PC => Effect::Leave,
            LR => Effect::Restore(eight),
            _ => Effect::Give(eight),
        }),
        // ldrd rX, rY, [sp], #…
        0xE8FD => Some(Effect::Give(eight * 4)),
        // sub.w sp, sp, #…; subw sp, sp, #…
        _ if first & 0xFBEF == 0xF1AD && to_sp => Some(Effect::Take(expanded(twelve))),
        _ if first & 0xFBFF == 0xF2AD && to_sp => Some(Effect::Take(twelve)),
        // add.w sp, sp, #…; addw sp, sp, #…
        _ if first & 0xFBEF == 0xF10D && to_sp => Some(Effect::Give(expanded(twelve))),
        _ if first & 0xFBFF == 0xF20D && to_sp => Some(Effect::Give(twelve)),
        // sub.w sp, sp, rX; add.w sp, sp, rX
        _ if first & 0xFFEF == 0xEBAD && to_sp => Some(added(by_register().map(u32::wrapping_neg))),
        _ if first & 0xFFEF == 0xEB0D && to_sp => Some(added(by_register())),
        // b.w, with a condition (of which 14 and 15 are other instructions) and without
        _ if first & 0xF800 == 0xF000 && second & 0xD000 == 0x9000 => Some(Effect::Leave),
        _ if first & 0xF800 == 0xF000 && second & 0xD000 == 0x8000 => {
            (first & 0x0380 != 0x0380).then_some(Effect::Leave)
        }
        // movw rX, #…; movt rX, #…
        _ if first & 0xFBF0 == 0xF240 => {
            set(registers, second >> 8 & 0xF, Some(sixteen));
            None
        }
        _ if first & 0xFBF0 == 0xF2C0 => {
            let register = second >> 8 & 0xF;
            let low = known(registers, register);
            set(registers, register, low.map(|low| low & 0xFFFF | sixteen << 16));
            None
        }
        // mov.w rX, #…; mvn rX, #…
        _ if first & 0xFBEF == 0xF04F => {
            set(registers, second >> 8 & 0xF, Some(expanded(twelve)));
            None
        }
        _ if first & 0xFBEF == 0xF06F => {
            set(registers, second >> 8 & 0xF, Some(!expanded(twelve)));
            None
        }
        // ldr.w rX, [pc, #…]
        _ if first & 0xFF7F == 0xF85F => {
            let (base, offset) = ((at & !3) + 4, usize::from(second & 0xFFF));
            let place = match first & 0x80 {
                0 => base.checked_sub(offset),
                _ => Some(base + offset),
            };
            set(registers, target, code.word(place));
            None
        }
        _ => None,
    }
}

/// What adding a number to the stack pointer does.
fn added(number: Option<u32>) -> Effect {
    match number.map(u32::cast_signed) {
        None => Effect::Unknown,
        Some(number @ ..0) => Effect::Take(number.unsigned_abs()),
        Some(number) => Effect::Give(number.unsigned_abs()),
    }
}

fn known(registers: &Registers, register: u16) -> Option<u32> {
    registers.get(usize::from(register)).copied().flatten()
}

fn set(registers: &mut Registers, register: u16, value: Option<u32>) {
    if let Some(place) = registers.get_mut(usize::from(register)) {
        *place = value;
    }
}

/// The number that twelve bits of an instruction stand for (`ThumbExpandImm`).
fn expanded(twelve: u32) -> u32 {
    let byte = twelve & 0xFF;
    match twelve >> 8 {
        0 => byte,
        1 => byte << 16 | byte,
        2 => byte << 24 | byte << 8,
        3 => byte << 24 | byte << 16 | byte << 8 | byte,
        _ => (0x80 | byte & 0x7F).rotate_right(twelve >> 7),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame_of(halves: &[u16]) -> Option<u32> {
        let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
        frame(&Code { bytes: &bytes, constants: Vec::new() })
    }

    #[test]
    fn every_way_to_take_room_is_counted() {
        for (text, halves, bytes) in [
            ("push {r4, r5, r6, r7, lr}", &[0xB5F0][..], 20),
            ("push {r7}", &[0xB480], 4),
            ("push.w {r8, r9, r10, r11}", &[0xE92D, 0x0F00], 16),
            ("str r11, [sp, #-4]!", &[0xF84D, 0xBD04], 4),
            ("strd r0, r1, [sp, #-8]!", &[0xE96D, 0x0102], 8),
            ("vpush {d8, d9}", &[0xED2D, 0x8B04], 16),
            ("vpush {s16}", &[0xED2D, 0x8A01], 4),
            ("vpush {s17}", &[0xED6D, 0x8A01], 4),
            ("sub sp, #508", &[0xB0FF], 508),
            ("sub.w sp, sp, #4384", &[0xF5AD, 0x5D89], 4384),
            ("sub.w sp, sp, #512", &[0xF5AD, 0x7D00], 512),
            ("subw sp, sp, #1300", &[0xF2AD, 0x5D14], 1300),
            ("subw sp, sp, #4095", &[0xF6AD, 0x7DFF], 4095),
            ("movw r4, #5004; sub.w sp, sp, r4", &[0xF241, 0x348C, 0xEBAD, 0x0D04], 5004),
            (
                "movw r4, #4464; movt r4, #1; sub.w sp, sp, r4",
                &[0xF241, 0x1470, 0xF2C0, 0x0401, 0xEBAD, 0x0D04],
                70_000,
            ),
            (
                "movw r12, #60532; movt r12, #65535; add sp, r12",
                &[0xF64E, 0x4C74, 0xF6CF, 0x7CFF, 0x44E5],
                5004,
            ),
            ("mov.w r4, #4608; sub.w sp, sp, r4", &[0xF44F, 0x5490, 0xEBAD, 0x0D04], 4608),
            ("mvn r4, #255; add.w sp, sp, r4", &[0xF06F, 0x04FF, 0xEB0D, 0x0D04], 256),
            ("movs r4, #200; sub.w sp, sp, r4", &[0x24C8, 0xEBAD, 0x0D04], 200),
            // The number stands behind the code, at 4 + 4.
            (
                "ldr r4, =-1284; add sp, r4; bx lr; -1284",
                &[0x4C01, 0x44A5, 0x4770, 0x0000, 0xFAFC, 0xFFFF],
                1284,
            ),
            (
                "ldr.w r4, =-1284; add sp, r4; bx lr; -1284",
                &[0xF8DF, 0x4004, 0x44A5, 0x4770, 0xFAFC, 0xFFFF],
                1284,
            ),
        ] {
            assert_eq!(frame_of(halves), Some(bytes), "{text}");
        }
    }

    #[test]
    fn a_frame_is_the_sum_of_its_parts() {
        // push {r4-r7, lr}; push.w {r8-r11}; sub.w sp, sp, #4384; sub sp, #4
        let code = [0xB5F0, 0xE92D, 0x0F00, 0xF5AD, 0x5D89, 0xB081];
        assert_eq!(frame_of(&code), Some(20 + 16 + 4384 + 4));
    }

    #[test]
    fn what_only_resembles_a_frame_is_none() {
        for (text, halves) in [
            ("sub.w r0, sp, #512", &[0xF5AD, 0x7000][..]),
            ("sub.w sp, r7, #24", &[0xF1A7, 0x0D18]),
            ("sub.w r0, r0, #512", &[0xF5A0, 0x7000]),
            ("add r7, sp, #12", &[0xAF03]),
            ("str r0, [sp, #4]", &[0x9001]),
            ("str.w r0, [sp, #13]", &[0xF8CD, 0x000D]),
            ("bl", &[0xF003, 0xFB77]),
            ("nop", &[0xBF00]),
        ] {
            assert_eq!(frame_of(halves), Some(0), "{text}");
        }
    }

    #[test]
    fn code_behind_one_end_still_has_its_frame() {
        // push {r4, lr}; sub sp, #80; beq; add sp, #80; pop {r4, pc}; then a call around which lr is saved:
        // str lr, [sp, #-8]!; bl; ldr lr, [sp], #8; add sp, #80; pop {r4, pc}
        let call = [0xF84D, 0xED08, 0xF000, 0xF800, 0xF85D, 0xEB08];
        let end = [0xB014, 0xBD10];
        let code = [&[0xB510, 0xB094, 0xD001][..], &end, &call, &call, &end].concat();
        assert_eq!(frame_of(&code), Some(8 + 80 + 8));
        // The same with a tail call: pop.w {r4, lr}; b.w
        let tail = [0xB014, 0xE8BD, 0x4010, 0xF000, 0xB800];
        let code = [&[0xB510, 0xB094][..], &tail, &call, &tail].concat();
        assert_eq!(frame_of(&code), Some(8 + 80 + 8));
    }

    #[test]
    fn constants_are_no_code() {
        // bx lr; then a table that would read as `sub sp, #508`.
        let bytes = [0x70, 0x47, 0xFF, 0xB0];
        assert_eq!(frame(&Code { bytes: &bytes, constants: Vec::new() }), Some(508));
        let constants = std::iter::once(2..4).collect();
        assert_eq!(frame(&Code { bytes: &bytes, constants }), Some(0));
    }

    #[test]
    fn a_frame_that_is_decided_while_code_runs_is_none() {
        // sub.w sp, sp, r4; sub.w sp, sp, r4, lsl #2 with a known r4; add sp, r4
        assert_eq!(frame_of(&[0xEBAD, 0x0D04]), None);
        assert_eq!(frame_of(&[0x2401, 0xEBAD, 0x0D84]), None);
        assert_eq!(frame_of(&[0x44A5]), None);
    }

    #[test]
    fn numbers_in_instructions_are_understood() {
        for (twelve, number) in [
            (0x0AB, 0xAB),
            (0x1AB, 0x00AB_00AB),
            (0x2AB, 0xAB00_AB00),
            (0x3AB, 0xABAB_ABAB),
            (0x400, 0x8000_0000),
            (0xFFF, 0x1FE),
            (0xD89, 4384),
        ] {
            assert_eq!(expanded(twelve), number, "{twelve:#x}");
        }
    }
}
