//! The wire format of protobuf: reading and writing fields.

/// A field as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::api) enum Field<'a> {
    /// A number; also booleans and enumerations.
    Varint(u64),
    /// Eight bytes: a double.
    Fixed64([u8; 8]),
    /// Text, bytes, or a message.
    Bytes(&'a [u8]),
    /// Four bytes; nothing in Kubernetes has them.
    Fixed32([u8; 4]),
}

/// The bytes end or mean nothing where a field should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) struct Malformed;

/// Reads the fields of a message one by one.
pub(in crate::api) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(in crate::api) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let (first, rest) = self.rest.split_first().ok_or(Malformed)?;
            self.rest = rest;
            let bits = u64::from(first & 0x7f);
            value |= bits.checked_shl(shift).ok_or(Malformed)?;
            if first & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u32, Field<'a>), Malformed> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| Malformed)?;
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(self.take(8)?.try_into().map_err(|_| Malformed)?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Fixed32(self.take(4)?.try_into().map_err(|_| Malformed)?),
            _ => return Err(Malformed),
        };
        Ok((number, field))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u32, Field<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Writes the fields of a message.
#[derive(Default)]
pub(in crate::api) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(in crate::api) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(in crate::api) fn bytes(&mut self, number: u32, value: &[u8]) {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    pub(in crate::api) fn text(&mut self, number: u32, value: &str) {
        if !value.is_empty() {
            self.bytes(number, value.as_bytes());
        }
    }

    pub(in crate::api) fn flag(&mut self, number: u32, value: bool) {
        if value {
            self.varint(u64::from(number) << 3);
            self.varint(1);
        }
    }

    pub(in crate::api) fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(number, &inner.bytes);
    }

    pub(in crate::api) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}
