//! What a server sends, as a row of steps out of the fuzzer's bytes: a byte that says what it is, two for
//! its length, and so many bytes.

use picokube_tls::fuzzing::Sealer;

pub enum Step<'a> {
    /// Bytes as they are.
    Raw(&'a [u8]),
    /// A record that is protected as it should be, with this in it.
    Sealed(&'a [u8]),
    /// The same, in the next key from then on.
    SealedThenNextKey(&'a [u8]),
}

pub fn steps(mut input: &[u8]) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    while let Some((&[kind, high, low], rest)) = input.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
        let (content, rest) = rest.split_at(length);
        input = rest;
        steps.push(match kind % 4 {
            0 => Step::Raw(content),
            1 | 2 => Step::Sealed(content),
            _ => Step::SealedThenNextKey(content),
        });
    }
    steps
}

/// What goes over the wire.
pub fn wire(steps: &[Step<'_>], mut sealer: Sealer) -> Vec<u8> {
    let mut wire = Vec::new();
    let seal = |wire: &mut Vec<u8>, content: &[u8], sealer: &mut Sealer| {
        let mut record = vec![0; content.len() + 64];
        if let Some(count) = sealer.seal(content, &mut record) {
            wire.extend(&record[..count]);
        }
    };
    for step in steps {
        match step {
            Step::Raw(bytes) => wire.extend(*bytes),
            Step::Sealed(content) => seal(&mut wire, content, &mut sealer),
            Step::SealedThenNextKey(content) => {
                seal(&mut wire, content, &mut sealer);
                sealer.next_key();
            }
        }
    }
    wire
}
