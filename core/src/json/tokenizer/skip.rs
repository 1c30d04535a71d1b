//! Passing over values that nobody wants to know about.

use super::{Literal, State, Tokenizer, number, scan};

impl Tokenizer {
    /// Passes over as much as possible of an array or object that nobody wants to know about, from
    /// where a key or a value is to come. Whether nothing more is to be passed over.
    #[inline]
    pub(super) fn skip_compact(&mut self, rest: &mut &[u8]) -> bool {
        if self.is_within_skipped() && matches!(self.state, State::Key | State::Value) {
            self.skip_members(rest);
        }
        !self.is_within_skipped()
    }

    /// The same rules as elsewhere, in a loop that knows by its place what may come next. What it
    /// cannot do in one go is left where it is, to the others: a token that is cut by the end of
    /// the input, a string that is not plain, a number that is no count, white space, an error.
    fn skip_members(&mut self, rest: &mut &[u8]) {
        let mut input = *rest;
        let mut kinds = self.kinds.marked(self.depth);
        let around = kinds.without_last((self.depth + 1).saturating_sub(self.skipped));
        let mut at_key = self.state == State::Key;
        (self.state, *rest) = 'key: loop {
            if at_key {
                let [b'"', text @ ..] = input else { break (State::Key, input) };
                let after = scan::after_string(text).or_else(|| scan::after_simple_string(text));
                let Some(after) = after else { break (State::Key, input) };
                input = match after {
                    // What `managedFields` is made of.
                    [b':', b'{', b'}', b',', after @ ..] if !kinds.is_full() => {
                        input = after;
                        continue;
                    }
                    [b':', after @ ..] => after,
                    _ => break (State::Colon, after),
                };
            }
            at_key = true;
            'value: loop {
                let [byte, tail @ ..] = input else { break 'key (State::Value, input) };
                let after = match (byte, tail) {
                    (b'"', _) => {
                        scan::after_string(tail).or_else(|| scan::after_simple_string(tail))
                    }
                    (b'{', [b'"', ..]) if !kinds.is_full() => {
                        kinds = kinds.and(true);
                        input = tail;
                        continue 'key;
                    }
                    (b'{', [b'}', after @ ..]) | (b'[', [b']', after @ ..]) if !kinds.is_full() => {
                        Some(after)
                    }
                    (b'[', [first, ..]) if *first > b' ' && !kinds.is_full() => {
                        kinds = kinds.and(false);
                        input = tail;
                        continue 'value;
                    }
                    (b'0'..=b'9', _) => number::after_count(input),
                    _ => Literal::after(input),
                };
                let Some(after) = after else { break 'key (State::Value, input) };
                input = after;
                loop {
                    input = match input {
                        [b',', tail @ ..] => {
                            input = tail;
                            if kinds.ends_in_object() { continue 'key } else { continue 'value }
                        }
                        [b'}', tail @ ..] if kinds.ends_in_object() => tail,
                        [b']', tail @ ..] if !kinds.ends_in_object() => tail,
                        _ => break 'key (State::CommaOrEnd, input),
                    };
                    kinds = kinds.without_last(1);
                    if kinds == around {
                        (self.depth, self.kinds) = kinds.unmarked();
                        self.end_value();
                        break 'key (self.state, input);
                    }
                }
            }
        };
        (self.depth, self.kinds) = kinds.unmarked();
    }
}
