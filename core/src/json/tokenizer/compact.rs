//! Compact JSON, as API servers write it: one whole token right after the other.

use super::{Literal, State, Tokenizer, number, scan};
use crate::json::{Flow, Fragment, Handler, Token};

impl Tokenizer {
    /// Reads on within an array or object as long as tokens come whole and plain; at most to where
    /// the handler pauses, which is returned.
    ///
    /// The same rules as elsewhere, in a loop that mostly knows by its place what may come next.
    /// What it cannot do in one go is left where it is, to the others: a token that is cut by the
    /// end of the input, a text that has to be put together, white space, an error.
    #[inline(never)]
    pub(super) fn read_compact(&mut self, rest: &mut &[u8], handler: &mut dyn Handler) -> Flow {
        let mut input = *rest;
        let mut flow = Flow::Next;
        self.state = self.state_at(input);
        'tokens: loop {
            if self.state == State::Key {
                let [b'"', text @ ..] = input else { break };
                let Some(after) = scan::after_string(text) else { break };
                let name = Fragment::whole(before(after, text, 1));
                input = after;
                self.end_key(name, handler);
            }
            if self.state == State::Colon {
                let [b':', after @ ..] = input else { break };
                input = after;
                self.state = State::Value;
            }
            if self.state == State::Value {
                let [byte, tail @ ..] = input else { break };
                let after = match byte {
                    b'"' => match scan::after_string(tail) {
                        None if self.is_skipping() => scan::after_simple_string(tail),
                        after => after,
                    },
                    b'{' | b'[' => {
                        if self.open(*byte == b'{', handler).is_err() {
                            break;
                        }
                        input = tail;
                        self.state = self.state_at(input);
                        if self.skip_compact(&mut input) { continue } else { break }
                    }
                    b'0'..=b'9' | b'-' => number::after_count(input),
                    _ => Literal::after(input),
                };
                let Some(after) = after else { break };
                if self.is_skipping() {
                    self.skipped = 0;
                } else {
                    handler.token(match byte {
                        b'"' => Token::String(Fragment::whole(before(after, tail, 1))),
                        b't' => Token::Bool(true),
                        b'f' => Token::Bool(false),
                        b'n' => Token::Null,
                        _ => Token::Number(Fragment::whole(before(after, input, 0))),
                    });
                }
                input = after;
                self.state = State::CommaOrEnd;
            }
            while self.state == State::CommaOrEnd {
                let [byte, tail @ ..] = input else { break 'tokens };
                match byte {
                    b',' => {
                        self.state =
                            if self.kinds.ends_in_object() { State::Key } else { State::Value }
                    }
                    b'}' | b']' if (*byte == b'}') == self.kinds.ends_in_object() => {
                        flow = self.close(handler);
                        if flow == Flow::Pause {
                            input = tail;
                            break 'tokens;
                        }
                    }
                    _ => break 'tokens,
                }
                input = tail;
            }
            if !matches!(self.state, State::Key | State::Value) {
                break;
            }
        }
        *rest = input;
        flow
    }

    /// Where it is, as far as the next byte tells more of an array or object that has just begun.
    fn state_at(&self, input: &[u8]) -> State {
        match (self.state, input) {
            (State::FirstKeyOrEnd, [b'"', ..]) => State::Key,
            (State::FirstKeyOrEnd, [b'}', ..]) => State::CommaOrEnd,
            (State::FirstElementOrEnd, [b']', ..]) => State::CommaOrEnd,
            (State::FirstElementOrEnd, [byte, ..]) if *byte > b' ' => State::Value,
            (state, _) => state,
        }
    }
}

/// The text that begins `whole`, ends `quotes` bytes before `after`, and has nothing else in it.
#[inline]
fn before<'a>(after: &[u8], whole: &'a [u8], quotes: usize) -> &'a [u8] {
    whole.get(..whole.len().wrapping_sub(after.len() + quotes)).unwrap_or_default()
}
