//! Kubernetes' short hashes for names: FNV in decimal, in an alphabet without vowels.

use super::Digest;
use heapless::String;

/// The letters of generated names: no vowels, so no words, and none that are easily mixed up.
pub const NAME_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Decimal digits of the largest 32-bit hash.
pub const SHORT_HASH_LEN: usize = 10;

/// A hash as it appears in names and labels.
pub type ShortHash = String<SHORT_HASH_LEN>;

const FNV_OFFSET: u32 = 2_166_136_261;
const FNV_PRIME: u32 = 16_777_619;

/// The 32-bit FNV-1a hash of all `parts` in a row.
pub fn fnv1a(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().copied().flatten();
    bytes.fold(FNV_OFFSET, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(FNV_PRIME))
}

/// The 32-bit FNV-1 hash, which a stream of bytes continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fnv1(u32);

impl Fnv1 {
    /// The hash of nothing.
    pub const fn new() -> Self {
        Self(FNV_OFFSET)
    }

    /// Takes in more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(FNV_PRIME) ^ u32::from(*byte);
        }
    }

    /// The hash of all bytes so far.
    pub const fn finish(self) -> u32 {
        self.0
    }
}

impl Default for Fnv1 {
    fn default() -> Self {
        Self::new()
    }
}

/// A hash in the form that names carry: its decimal digits in [`NAME_ALPHABET`].
pub fn encode_short_hash(hash: u32) -> ShortHash {
    let mut encoded = ShortHash::new();
    let mut divisor = 1_000_000_000;
    while divisor > 0 {
        let digit = hash / divisor % 10;
        if digit > 0 || divisor == 1 || !encoded.is_empty() {
            let letter = (u32::from(b'0') + digit) as usize % NAME_ALPHABET.len();
            let letter = NAME_ALPHABET.get(letter).copied().unwrap_or_default();
            // Ten digits always fit.
            let _ = encoded.push(char::from(letter));
        }
        divisor /= 10;
    }
    encoded
}

/// The value of the `pod-template-hash` label for a template with this digest.
///
/// Kubernetes hashes a text that changes with each of its versions and never computes it again to
/// recognise a ReplicaSet, so any stable hash of the template will do. As there, a collision
/// count of 0 is not the same as none.
pub fn template_hash(template: Digest, collision_count: Option<i32>) -> ShortHash {
    let template = template.to_bits().to_le_bytes();
    let hash = match collision_count {
        None => fnv1a(&[&template]),
        Some(count) => fnv1a(&[&template, &count.to_le_bytes(), &[0; 4]]),
    };
    encode_short_hash(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fnv1(parts: &[&[u8]]) -> u32 {
        let mut hash = Fnv1::new();
        parts.iter().for_each(|part| hash.push(part));
        hash.finish()
    }

    #[test]
    fn fnv_and_its_encoding_match_known_vectors() {
        assert_eq!(fnv1a(&[b"a"]), 3_826_002_220);
        assert_eq!(encode_short_hash(3_826_002_220), "7d6b446664");
        assert_eq!(fnv1a(&[b"foo", b"bar"]), 3_214_735_720);
        assert_eq!(encode_short_hash(3_214_735_720), "7658c79c64");
        assert_eq!(encode_short_hash(4_287_989_072), "86dcfdf4c6");
        assert_eq!(fnv1(&[b"foo", b"bar"]), 837_857_890);
        assert_eq!(encode_short_hash(837_857_890), "d7cd9cdf4");
        assert_eq!(encode_short_hash(0), "4");
        assert_eq!(encode_short_hash(u32::MAX), "86f8fbc6f9");
    }

    /// The data of a StatefulSet's ControllerRevision, followed by the collision count as text.
    #[test]
    fn revision_hashes_match_known_vectors() {
        let revision: &[u8] =
            br#"{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"#;
        let labels: &[u8] =
            br#""labels":{"app":"nginx"}},"spec":{"containers":[{"image":"nginx:1.14.2","#;
        let policy: &[u8] = br#""imagePullPolicy":"IfNotPresent","name":"nginx","resources":{},"#;
        let paths: &[u8] = br#""terminationMessagePath":"/dev/termination-log","#;
        let more: &[u8] = br#""terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","#;
        let rest: &[u8] = br#""restartPolicy":"Always","schedulerName":"default-scheduler","#;
        let last: &[u8] = br#""securityContext":{},"terminationGracePeriodSeconds":30}}}}"#;
        let parts = [revision, labels, policy, paths, more, rest, last];
        assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), 443);
        for (count, hash, name) in
            [(&b"0"[..], 3_421_775_293, "7865cc96f7"), (b"1", 3_421_775_292, "7865cc96f6")]
        {
            let [a, b, c, d, e, f, g] = parts;
            assert_eq!(fnv1(&[a, b, c, d, e, f, g, count]), hash);
            assert_eq!(encode_short_hash(hash), name);
        }
    }

    #[test]
    fn no_collision_count_and_zero_give_different_names() {
        let template = Digest::from_bits(1);
        let names = [None, Some(0), Some(1), Some(256)].map(|count| template_hash(template, count));
        for (i, one) in names.iter().enumerate() {
            assert!((1..=SHORT_HASH_LEN).contains(&one.len()));
            assert!(one.bytes().all(|letter| b"456789bcdf".contains(&letter)), "{one}");
            assert!(!names[i + 1..].contains(one), "{one}");
        }
    }
}
