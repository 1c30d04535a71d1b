//! What kinds of records there are (§5.1).

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ChangeCipherSpec,
    Alert,
    Handshake,
    Data,
}

impl Kind {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::ChangeCipherSpec => 20,
            Self::Alert => 21,
            Self::Handshake => 22,
            Self::Data => 23,
        }
    }

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        [Self::ChangeCipherSpec, Self::Alert, Self::Handshake, Self::Data]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}
