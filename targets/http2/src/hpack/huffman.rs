//! The Huffman code of HPACK (RFC 7541 §5.2 and appendix B).
//!
//! It is canonical: codes of one length are consecutive numbers in the order of their symbols, and the
//! first of a length follows from the last of the length before. So the lengths are all there is to know,
//! and three tables of 256 bytes are made of them at compile time.

/// How many bits the code of each symbol has. The end-of-string symbol, 30 ones, has none here: §5.2 wants a
/// string that contains it to be an error.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
const SHORTEST: u8 = 5;
const LONGEST: u8 = 30;
const KINDS: usize = (LONGEST - SHORTEST + 1) as usize;

/// The codes of one length.
#[derive(Clone, Copy)]
struct Codes {
    /// The first of them.
    first: u32,
    count: u8,
    /// Where their symbols begin in [`Table::symbols`].
    at: u8,
}

struct Table {
    /// By length.
    codes: [Codes; KINDS],
    /// By length, then by value.
    symbols: [u8; 256],
    /// Where a symbol stands among them.
    places: [u8; 256],
}

static TABLE: Table = Table::make();

impl Table {
    #[expect(clippy::indexing_slicing, reason = "at compile time")]
    const fn make() -> Self {
        let none = Codes { first: 0, count: 0, at: 0 };
        let mut table = Self { codes: [none; KINDS], symbols: [0; 256], places: [0; 256] };
        let (mut code, mut at, mut length) = (0u32, 0usize, SHORTEST);
        while length <= LONGEST {
            let (first, start) = (code, at);
            let mut symbol = 0;
            while symbol < 256 {
                if LENGTHS[symbol] == length {
                    table.symbols[at] = symbol as u8;
                    table.places[symbol] = at as u8;
                    at += 1;
                    code += 1;
                }
                symbol += 1;
            }
            let codes = Codes { first, count: (at - start) as u8, at: start as u8 };
            table.codes[(length - SHORTEST) as usize] = codes;
            code <<= 1;
            length += 1;
        }
        table
    }

    fn codes(&self, length: u8) -> Option<&Codes> {
        self.codes.get(usize::from(length.checked_sub(SHORTEST)?))
    }

    /// The code of a symbol, and how many bits it has.
    fn code(&self, symbol: u8) -> (u32, u8) {
        let length = LENGTHS.get(usize::from(symbol)).copied().unwrap_or(LONGEST);
        let place = self.places.get(usize::from(symbol)).copied().unwrap_or(0);
        let code = self.codes(length).map_or(0, |codes| codes.first + u32::from(place - codes.at));
        (code, length)
    }
}

/// A string that is not in this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// Decodes a string, byte by byte.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    /// The last bits that came. Only `length` of them belong to the next symbol.
    bits: u64,
    /// Less than 30 between two bytes.
    length: u8,
}

impl Decoder {
    /// At the start of a string.
    pub const START: Self = Self { bits: 0, length: 0 };

    /// Takes a byte in and hands every symbol out that ends in it.
    pub fn push(&mut self, byte: u8, mut symbol: impl FnMut(u8)) -> Result<(), Invalid> {
        self.bits = self.bits << 8 | u64::from(byte);
        self.length += 8;
        while let Some((found, length)) = self.first()? {
            self.length -= length;
            symbol(found);
        }
        Ok(())
    }

    /// The first symbol of what there is, and how many bits it takes. `None` if there are too few.
    fn first(&self) -> Result<Option<(u8, u8)>, Invalid> {
        let mut length = SHORTEST;
        while length <= self.length {
            let codes = TABLE.codes(length).ok_or(Invalid)?;
            let code = (self.bits >> (self.length - length)) as u32 & ((1 << length) - 1);
            let offset = code.wrapping_sub(codes.first);
            if offset < u32::from(codes.count) {
                let place = usize::from(codes.at) + offset as usize;
                return Ok(TABLE.symbols.get(place).map(|symbol| (*symbol, length)));
            }
            length += 1;
        }
        Ok(None)
    }

    /// Whether a string may end here: what is left has to be the first bits of the end-of-string symbol,
    /// which are ones, and less than a byte of them (§5.2).
    pub fn may_end(&self) -> bool {
        self.length < 8 && (self.bits | u64::MAX << self.length) == u64::MAX
    }
}

/// How many bytes a string takes in this code.
pub fn encoded_len(text: &[u8]) -> usize {
    let bits = |byte: &u8| LENGTHS.get(usize::from(*byte)).copied().map_or(0, usize::from);
    text.iter().map(bits).sum::<usize>().div_ceil(8)
}

/// Hands out the bytes of a string in this code.
pub fn encode<E>(text: &[u8], mut put: impl FnMut(u8) -> Result<(), E>) -> Result<(), E> {
    let (mut bits, mut length) = (0u64, 0u8);
    for symbol in text {
        let (code, more) = TABLE.code(*symbol);
        bits = bits << more | u64::from(code);
        length += more;
        while length >= 8 {
            length -= 8;
            put((bits >> length) as u8)?;
        }
    }
    if length > 0 {
        // Padded with ones.
        put((bits << (8 - length)) as u8 | 0xff >> length)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;
    use std::vec::Vec;

    use super::*;

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Ok(()) = encode(text, |byte| {
            bytes.push(byte);
            Ok::<(), Infallible>(())
        });
        assert_eq!(bytes.len(), encoded_len(text));
        bytes
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<u8>, Invalid> {
        let (mut decoder, mut text) = (Decoder::START, Vec::new());
        for byte in bytes {
            decoder.push(*byte, |symbol| text.push(symbol))?;
        }
        if decoder.may_end() { Ok(text) } else { Err(Invalid) }
    }

    /// A code in which every sequence of bits means something has 2^30 leaves of 30 bits; one of them is
    /// the end of a string.
    #[test]
    fn the_code_is_complete() {
        let leaves: u32 = LENGTHS.iter().map(|length| 1 << (LONGEST - length)).sum();
        assert_eq!(leaves + 1, 1 << LONGEST);
    }

    #[test]
    fn codes_are_those_of_appendix_b() {
        for (symbol, code, length) in [
            (b'0', 0x0, 5),
            (b't', 0x9, 5),
            (b' ', 0x14, 6),
            (b':', 0x5c, 7),
            (b'&', 0xf8, 8),
            (b'?', 0x3fc, 10),
            (b'|', 0x7fc, 11),
            (0, 0x1ff8, 13),
            (b'\\', 0x7fff0, 19),
            (128, 0xfffe6, 20),
            (1, 0x7f_ffd8, 23),
            (255, 0x3ff_ffee, 26),
            (249, 0xfff_fffe, 28),
            (10, 0x3fff_fffc, 30),
            (22, 0x3fff_fffe, 30),
        ] {
            assert_eq!(TABLE.code(symbol), (code, length), "{symbol}");
        }
    }

    #[test]
    fn every_string_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        for start in 0..256 {
            let text: Vec<u8> = all.iter().cycle().skip(start).take(300).copied().collect();
            assert_eq!(decoded(&encoded(&text)), Ok(text));
        }
        assert_eq!(decoded(&[]), Ok(Vec::new()));
    }

    #[test]
    fn padding_is_checked() {
        let a = 0b0001_1000; // "a" is 00011
        assert_eq!(decoded(&[a | 0b111]), Ok(b"a".to_vec()));
        for wrong in [0b000, 0b110, 0b011, 0b101] {
            assert_eq!(decoded(&[a | wrong]), Err(Invalid), "{wrong:b}");
        }
        // A whole byte of padding, and the end of a string inside of one.
        assert_eq!(decoded(&[a | 0b111, 0xff]), Err(Invalid));
        assert_eq!(decoded(&[0xff]), Err(Invalid));
        assert_eq!(decoded(&[0xff; 4]), Err(Invalid));
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc | 0b11]), Err(Invalid));
    }

    /// The longest codes, so that as many bits as there can be are in hand.
    #[test]
    fn long_codes_follow_each_other() {
        let text = [10, 22, 13, 249, 10, 255, 10];
        assert_eq!(decoded(&encoded(&text)), Ok(text.to_vec()));
    }
}
