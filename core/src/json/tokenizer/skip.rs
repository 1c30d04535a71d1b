//! Passing over values that nobody wants to know about.

use super::number::Number;
use super::{MAX_DEPTH, State, Tokenizer, scan};

impl Tokenizer {
    /// Passes over as much as possible of a value that nobody wants to know about. The same rules
    /// as elsewhere, in a loop that has nothing else to do. What it cannot do in one go (a token
    /// that is cut by the end of the input, white space, an error) is left to the others.
    pub(super) fn skip_structure(&mut self, rest: &mut &[u8]) {
        let Self { mut state, mut depth, mut in_object, .. } = *self;
        let mut input = *rest;
        while let [byte, tail @ ..] = input {
            match state {
                State::Key | State::FirstKeyOrEnd if *byte == b'"' => {
                    let Some(after) = scan::after_simple_string(tail) else { break };
                    (state, input) = match after {
                        // What `managedFields` is made of.
                        [b':', b'{', b'}', b',', after @ ..] if usize::from(depth) < MAX_DEPTH => {
                            (State::Key, after)
                        }
                        [b':', after @ ..] => (State::Value, after),
                        _ => (State::Colon, after),
                    };
                    continue;
                }
                State::Value | State::FirstElementOrEnd => match byte {
                    b'"' => {
                        let Some(after) = scan::after_simple_string(tail) else { break };
                        input = after;
                    }
                    b'{' | b'[' if usize::from(depth) < MAX_DEPTH => {
                        in_object = *byte == b'{';
                        self.set_kind(depth, in_object);
                        depth += 1;
                        input = tail;
                        state = match in_object {
                            true => State::FirstKeyOrEnd,
                            false => State::FirstElementOrEnd,
                        };
                        continue;
                    }
                    b'0'..=b'9' | b'-' => {
                        let mut number = Number::START;
                        let Ok(run) = number.run(input) else { break };
                        match input.get(run..) {
                            Some(after @ [_, ..]) if number.finish().is_ok() => input = after,
                            _ => break,
                        }
                    }
                    b't' | b'f' | b'n' => match input {
                        [b't', b'r', b'u', b'e', after @ ..]
                        | [b'n', b'u', b'l', b'l', after @ ..]
                        | [b'f', b'a', b'l', b's', b'e', after @ ..] => input = after,
                        _ => break,
                    },
                    b']' if state == State::FirstElementOrEnd => {
                        input = tail;
                        depth -= 1;
                        in_object = depth > 0 && self.is_object(depth - 1);
                    }
                    _ => break,
                },
                State::CommaOrEnd if *byte == b',' => {
                    input = tail;
                    state = if in_object { State::Key } else { State::Value };
                    continue;
                }
                State::CommaOrEnd | State::FirstKeyOrEnd => {
                    if *byte != if in_object { b'}' } else { b']' } {
                        break;
                    }
                    input = tail;
                    depth -= 1;
                    in_object = depth > 0 && self.is_object(depth - 1);
                }
                State::Colon if *byte == b':' => {
                    input = tail;
                    state = State::Value;
                    continue;
                }
                _ => break,
            }
            // A value is over.
            state = State::CommaOrEnd;
            if depth == self.skip_depth {
                self.skipping = false;
                break;
            }
        }
        *rest = input;
        self.depth = depth;
        self.in_object = in_object;
        self.state = if !self.skipping && depth == 0 { State::Done } else { state };
    }
}
