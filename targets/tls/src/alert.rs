//! Alerts (§6): what peers tell each other when a connection ends.

use core::fmt;

/// The description of an alert. Levels have no meaning in TLS 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Alert(pub u8);

impl Alert {
    /// Nothing more will be sent.
    pub const CLOSE_NOTIFY: Self = Self(0);
    /// A message or record that does not belong here.
    pub const UNEXPECTED_MESSAGE: Self = Self(10);
    /// A record that cannot be deciphered.
    pub const BAD_RECORD_MAC: Self = Self(20);
    /// A record that is too long.
    pub const RECORD_OVERFLOW: Self = Self(22);
    /// No common ground.
    pub const HANDSHAKE_FAILURE: Self = Self(40);
    /// A certificate that is broken.
    pub const BAD_CERTIFICATE: Self = Self(42);
    /// A certificate of a kind that is not understood.
    pub const UNSUPPORTED_CERTIFICATE: Self = Self(43);
    /// A certificate that is over, or has not begun.
    pub const CERTIFICATE_EXPIRED: Self = Self(45);
    /// A certificate that is not acceptable for another reason.
    pub const CERTIFICATE_UNKNOWN: Self = Self(46);
    /// A value that is not allowed.
    pub const ILLEGAL_PARAMETER: Self = Self(47);
    /// A certificate of an authority that is not trusted.
    pub const UNKNOWN_CA: Self = Self(48);
    /// A message that cannot be read.
    pub const DECODE_ERROR: Self = Self(50);
    /// A signature or a proof that is wrong.
    pub const DECRYPT_ERROR: Self = Self(51);
    /// No common version.
    pub const PROTOCOL_VERSION: Self = Self(70);
    /// Something else is wrong at the sender's.
    pub const INTERNAL_ERROR: Self = Self(80);
    /// A user did not want to go on; the end follows.
    pub const USER_CANCELED: Self = Self(90);
    /// Something is missing.
    pub const MISSING_EXTENSION: Self = Self(109);
    /// Something that was not asked for.
    pub const UNSUPPORTED_EXTENSION: Self = Self(110);
    /// The server wants a client certificate.
    pub const CERTIFICATE_REQUIRED: Self = Self(116);
    /// No common application protocol.
    pub const NO_APPLICATION_PROTOCOL: Self = Self(120);

    /// The name that RFC 8446 gives it.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "close_notify",
            10 => "unexpected_message",
            20 => "bad_record_mac",
            22 => "record_overflow",
            40 => "handshake_failure",
            42 => "bad_certificate",
            43 => "unsupported_certificate",
            44 => "certificate_revoked",
            45 => "certificate_expired",
            46 => "certificate_unknown",
            47 => "illegal_parameter",
            48 => "unknown_ca",
            49 => "access_denied",
            50 => "decode_error",
            51 => "decrypt_error",
            70 => "protocol_version",
            71 => "insufficient_security",
            80 => "internal_error",
            86 => "inappropriate_fallback",
            90 => "user_canceled",
            109 => "missing_extension",
            110 => "unsupported_extension",
            112 => "unrecognized_name",
            113 => "bad_certificate_status_response",
            115 => "unknown_psk_identity",
            116 => "certificate_required",
            120 => "no_application_protocol",
            _ => return None,
        })
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "alert {}", self.0),
        }
    }
}
