//! Passing over values that nobody wants to know about.

use super::number::Number;
use super::{MAX_DEPTH, State, Tokenizer, scan};

impl Tokenizer {
    /// Passes over as much as possible of a value that nobody wants to know about. The same rules
    /// as elsewhere, in a loop that has nothing else to do: key, value, and what follows a value.
    /// What it cannot do in one go (a token that is cut by the end of the input, white space, an
    /// error) is left to the others.
    pub(super) fn skip_structure(&mut self, rest: &mut &[u8]) {
        let Self { mut state, mut depth, mut in_object, .. } = *self;
        let mut input = *rest;
        match (state, input) {
            (State::Colon, [b':', tail @ ..]) => (state, input) = (State::Value, tail),
            (State::FirstKeyOrEnd, [b'"', ..]) => state = State::Key,
            (State::FirstElementOrEnd, [byte, ..]) if begins_value(*byte) => state = State::Value,
            _ => {}
        }
        'skip: loop {
            while state == State::Key {
                let [b'"', tail @ ..] = input else { break 'skip };
                let Some(after) = scan::after_simple_string(tail) else { break 'skip };
                (state, input) = match after {
                    // What `managedFields` is made of.
                    [b':', b'{', b'}', b',', after @ ..] if usize::from(depth) < MAX_DEPTH => {
                        (State::Key, after)
                    }
                    [b':', after @ ..] => (State::Value, after),
                    _ => (State::Colon, after),
                };
            }
            if state == State::Value {
                let [byte, tail @ ..] = input else { break };
                input = match byte {
                    b'"' => match scan::after_simple_string(tail) {
                        Some(after) => after,
                        None => break,
                    },
                    b'{' | b'[' if usize::from(depth) < MAX_DEPTH => match (byte, tail) {
                        (b'{', [b'}', after @ ..]) | (b'[', [b']', after @ ..]) => after,
                        _ => {
                            in_object = *byte == b'{';
                            self.set_kind(depth, in_object);
                            depth += 1;
                            input = tail;
                            state = match tail {
                                [b'"', ..] if in_object => State::Key,
                                _ if in_object => State::FirstKeyOrEnd,
                                [byte, ..] if begins_value(*byte) => State::Value,
                                _ => State::FirstElementOrEnd,
                            };
                            continue;
                        }
                    },
                    b'0'..=b'9' | b'-' => match after_number(input) {
                        Some(after) => after,
                        None => break,
                    },
                    _ => match input {
                        [b't', b'r', b'u', b'e', after @ ..]
                        | [b'n', b'u', b'l', b'l', after @ ..]
                        | [b'f', b'a', b'l', b's', b'e', after @ ..] => after,
                        _ => break,
                    },
                };
                state = State::CommaOrEnd;
                if depth == self.skip_depth {
                    self.skipping = false;
                    break;
                }
            }
            while state == State::CommaOrEnd {
                let [byte, tail @ ..] = input else { break 'skip };
                match byte {
                    b',' => state = if in_object { State::Key } else { State::Value },
                    b'}' | b']' if (*byte == b'}') == in_object => {
                        depth -= 1;
                        in_object = depth > 0 && self.is_object(depth - 1);
                        self.skipping = depth != self.skip_depth;
                    }
                    _ => break 'skip,
                }
                input = tail;
                if !self.skipping {
                    break 'skip;
                }
            }
            if !matches!(state, State::Key | State::Value) {
                break;
            }
        }
        *rest = input;
        self.depth = depth;
        self.in_object = in_object;
        self.state = if !self.skipping && depth == 0 { State::Done } else { state };
    }
}

/// Whether a byte is the first of a value, if anything.
fn begins_value(byte: u8) -> bool {
    !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b']')
}

/// What follows a number, unless it is cut or wrong.
fn after_number(input: &[u8]) -> Option<&[u8]> {
    // Most are counts.
    if let [b'0'..=b'9', b',' | b'}' | b']', ..] = input {
        return input.get(1..);
    }
    let mut number = Number::START;
    let run = number.run(input).ok()?;
    let after = input.get(run..).filter(|after| !after.is_empty())?;
    number.finish().ok().map(|()| after)
}
