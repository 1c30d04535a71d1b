//! RSA signatures of 2048 to 4096 bits, verified in fixed memory (RFC 8017).
//!
//! All that is handled here is public, so nothing has to take the same time for all numbers.

use pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id};
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::der::{self, Der};

/// A number's digits, the lowest first.
const LIMBS: usize = 4096 / 32;
const MOST_BYTES: usize = LIMBS * 4;
const LEAST_BYTES: usize = 2048 / 8;
const LONGEST_HASH: usize = 64;

pub(super) static PKCS1_SHA256: Rsa = Rsa(Padding::Pkcs1, Hash::Sha256);
pub(super) static PKCS1_SHA384: Rsa = Rsa(Padding::Pkcs1, Hash::Sha384);
pub(super) static PKCS1_SHA512: Rsa = Rsa(Padding::Pkcs1, Hash::Sha512);
pub(super) static PSS_SHA256: Rsa = Rsa(Padding::Pss, Hash::Sha256);
pub(super) static PSS_SHA384: Rsa = Rsa(Padding::Pss, Hash::Sha384);
pub(super) static PSS_SHA512: Rsa = Rsa(Padding::Pss, Hash::Sha512);

#[cfg(feature = "fuzzing")]
pub(crate) static ALL: [&Rsa; 6] =
    [&PKCS1_SHA256, &PKCS1_SHA384, &PKCS1_SHA512, &PSS_SHA256, &PSS_SHA384, &PSS_SHA512];

/// A kind of RSA signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rsa(Padding, Hash);

#[derive(Clone, Copy, Debug)]
enum Padding {
    /// RSASSA-PKCS1-v1_5
    Pkcs1,
    /// RSASSA-PSS, with a salt as long as the hash
    Pss,
}

#[derive(Clone, Copy, Debug)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl SignatureVerificationAlgorithm for Rsa {
    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::RSA_ENCRYPTION
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        match self {
            Self(Padding::Pkcs1, Hash::Sha256) => alg_id::RSA_PKCS1_SHA256,
            Self(Padding::Pkcs1, Hash::Sha384) => alg_id::RSA_PKCS1_SHA384,
            Self(Padding::Pkcs1, Hash::Sha512) => alg_id::RSA_PKCS1_SHA512,
            Self(Padding::Pss, Hash::Sha256) => alg_id::RSA_PSS_SHA256,
            Self(Padding::Pss, Hash::Sha384) => alg_id::RSA_PSS_SHA384,
            Self(Padding::Pss, Hash::Sha512) => alg_id::RSA_PSS_SHA512,
        }
    }

    fn verify_signature(
        &self,
        key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        if self.verify(key, message, signature) == Some(true) {
            Ok(())
        } else {
            Err(InvalidSignature)
        }
    }
}

impl Rsa {
    /// `None` if key or signature are none.
    fn verify(self, key: &[u8], message: &[u8], signature: &[u8]) -> Option<bool> {
        let Self(padding, hash) = self;
        let key = PublicKey::read(key)?;
        // RFC 8017, 8.1.2 and 8.2.2: as long as the modulus.
        if signature.len() != key.modulus.len() {
            return None;
        }
        let mut block = [0; MOST_BYTES];
        let block = block.get_mut(..signature.len())?;
        key.raise(signature, block)?;
        let digest = hash.of(&[message]);
        match padding {
            Padding::Pkcs1 => Some(is_pkcs1(block, hash, digest.bytes())),
            Padding::Pss => is_pss(block, hash, digest.bytes()),
        }
    }
}

/// A digest of any of the hashes.
struct Digested {
    bytes: [u8; LONGEST_HASH],
    length: usize,
}

impl Digested {
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Hash {
    fn of(self, parts: &[&[u8]]) -> Digested {
        fn run<D: Digest>(parts: &[&[u8]]) -> Digested {
            let mut hash = D::new();
            parts.iter().for_each(|part| hash.update(part));
            let output = hash.finalize();
            let mut bytes = [0; LONGEST_HASH];
            bytes.iter_mut().zip(&output).for_each(|(place, byte)| *place = *byte);
            Digested { bytes, length: output.len() }
        }
        match self {
            Self::Sha256 => run::<Sha256>(parts),
            Self::Sha384 => run::<Sha384>(parts),
            Self::Sha512 => run::<Sha512>(parts),
        }
    }

    /// What stands before the digest in a DigestInfo (RFC 8017, 9.2, note 1).
    fn digest_info(self) -> [u8; 19] {
        let (last, length) = match self {
            Self::Sha256 => (1, 32),
            Self::Sha384 => (2, 48),
            Self::Sha512 => (3, 64),
        };
        let outer = 17 + length;
        [0x30, outer, 0x30, 13, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, last, 5, 0, 4, length]
    }
}

/// RFC 8017, 8.2.2: there is one right block, and this has to be it. Nothing of it is parsed.
fn is_pkcs1(block: &[u8], hash: Hash, digest: &[u8]) -> bool {
    let info = hash.digest_info();
    let Some(fill) = block.len().checked_sub(3 + info.len() + digest.len()) else { return false };
    let right = [0, 1].into_iter().chain(core::iter::repeat_n(0xff, fill)).chain([0]);
    right.chain(info).chain(digest.iter().copied()).eq(block.iter().copied())
}

/// EMSA-PSS-VERIFY (RFC 8017, 9.1.2). The modulus has all its bits, so the block has one less than its
/// bytes.
fn is_pss(block: &mut [u8], hash: Hash, digest: &[u8]) -> Option<bool> {
    let length = digest.len();
    let (block, [0xbc]) = block.split_last_chunk_mut::<1>()? else { return None };
    let (masked, seed) = block.split_at_mut_checked(block.len().checked_sub(length)?)?;
    if *masked.first()? & 0x80 != 0 {
        return None;
    }
    // MGF1 (RFC 8017, B.2.1)
    for (counter, piece) in (0u32..).zip(masked.chunks_mut(length)) {
        let mask = hash.of(&[seed, &counter.to_be_bytes()]);
        piece.iter_mut().zip(mask.bytes()).for_each(|(byte, mask)| *byte ^= mask);
    }
    *masked.first_mut()? &= 0x7f;
    let (padding, salt) = masked.split_at_checked(masked.len().checked_sub(length)?)?;
    let (1, zeros) = padding.split_last()? else { return None };
    if zeros.iter().any(|byte| *byte != 0) {
        return None;
    }
    Some(hash.of(&[&[0; 8], digest, salt]).bytes() == seed)
}

/// An RSA key: a modulus whose first bit is set, and a short exponent.
struct PublicKey<'a> {
    modulus: &'a [u8],
    exponent: u32,
}

impl<'a> PublicKey<'a> {
    /// `RSAPublicKey` (RFC 8017, A.1.1).
    fn read(key: &'a [u8]) -> Option<Self> {
        let mut outer = Der::new(key);
        let mut inner = outer.sequence()?;
        // A positive number whose first bit is set has a zero before it.
        let [0, modulus @ ..] = inner.expect(der::INTEGER)? else { return None };
        let exponent = inner.expect(der::INTEGER)?;
        let is_whole = outer.is_empty() && inner.is_empty();
        let has_length =
            (LEAST_BYTES..=MOST_BYTES).contains(&modulus.len()) && modulus.len() % 4 == 0;
        let is_odd = modulus.last()? & 1 == 1;
        if !is_whole || !has_length || *modulus.first()? < 0x80 || !is_odd {
            return None;
        }
        let exponent = match exponent {
            [0, rest @ ..] if rest.first()? & 0x80 == 0 => return None,
            [0, rest @ ..] => rest,
            [first, ..] if *first < 0x80 => exponent,
            _ => return None,
        };
        if exponent.len() > 4 {
            return None;
        }
        let exponent = exponent.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        // With 1, every block would be its own signature; even ones are no exponents.
        (exponent >= 3 && exponent & 1 == 1).then_some(Self { modulus, exponent })
    }

    /// RSAVP1 (RFC 8017, 5.2.2): `signature ^ exponent mod modulus`.
    fn raise(&self, signature: &[u8], block: &mut [u8]) -> Option<()> {
        let mut limbs = [0; LIMBS];
        let modulus = Modulus::new(load(self.modulus, &mut limbs)?)?;
        let (mut base, mut power, mut scratch) = ([0; LIMBS], [0; LIMBS], [0; LIMBS]);
        let base = load(signature, &mut base)?;
        let power = power.get_mut(..base.len())?;
        let scratch = scratch.get_mut(..base.len())?;
        if !modulus.is_above(base) {
            return None;
        }
        // Into Montgomery's form: times R² / R.
        modulus.r_squared(power, scratch);
        modulus.multiply_into(base, power, scratch);
        // The highest bit of the exponent is the base itself.
        power.copy_from_slice(base);
        for bit in (0..self.exponent.ilog2()).rev() {
            modulus.square(power, scratch);
            if self.exponent >> bit & 1 == 1 {
                modulus.multiply_into(power, base, scratch);
            }
        }
        // And out of it: times 1 / R.
        base.fill(0);
        *base.first_mut()? = 1;
        modulus.multiply_into(power, base, scratch);
        for (bytes, limb) in block.rchunks_exact_mut(4).zip(power.iter()) {
            bytes.copy_from_slice(&limb.to_be_bytes());
        }
        Some(())
    }
}

/// Reads a number whose bytes are a multiple of four, the highest first.
fn load<'l>(bytes: &[u8], limbs: &'l mut [u32; LIMBS]) -> Option<&'l mut [u32]> {
    let limbs = limbs.get_mut(..bytes.len() / 4)?;
    for (limb, chunk) in limbs.iter_mut().zip(bytes.rchunks_exact(4)) {
        *limb = u32::from_be_bytes(chunk.try_into().ok()?);
    }
    Some(limbs)
}

/// Montgomery's arithmetic, with R one more than what the limbs of the modulus can hold.
struct Modulus<'a> {
    limbs: &'a [u32],
    /// `-1 / limbs[0] mod 2^32`
    inverse: u32,
}

impl<'a> Modulus<'a> {
    fn new(limbs: &'a [u32]) -> Option<Self> {
        let lowest = *limbs.first()?;
        // Newton: right to 3 bits at first, to twice as many with each step.
        let mut inverse = lowest;
        for _ in 0..4 {
            inverse = inverse.wrapping_mul(2u32.wrapping_sub(lowest.wrapping_mul(inverse)));
        }
        Some(Self { limbs, inverse: inverse.wrapping_neg() })
    }

    fn is_above(&self, number: &[u32]) -> bool {
        number.iter().rev().lt(self.limbs.iter().rev())
    }

    /// `R² mod modulus`: R times two, as often as R has bits; squares do most of it.
    fn r_squared(&self, number: &mut [u32], scratch: &mut [u32]) {
        // R - modulus, which is R mod modulus since the first bit of the modulus is set.
        number.fill(0);
        self.subtract(number);
        let bits = self.limbs.len() * 32;
        for bit in (0..=bits.ilog2()).rev() {
            self.square(number, scratch);
            if bits >> bit & 1 == 1 {
                self.double(number);
            }
        }
    }

    /// `number = number² / R`
    fn square(&self, number: &mut [u32], scratch: &mut [u32]) {
        self.multiply(number, number, scratch);
        number.copy_from_slice(scratch);
    }

    /// `number = number * factor / R`
    fn multiply_into(&self, number: &mut [u32], factor: &[u32], scratch: &mut [u32]) {
        self.multiply(number, factor, scratch);
        number.copy_from_slice(scratch);
    }

    /// `product = left * right / R mod modulus`, for factors below the modulus.
    fn multiply(&self, left: &[u32], right: &[u32], product: &mut [u32]) {
        product.fill(0);
        let mut top = 0;
        for digit in left {
            let carry = add_multiple(product, right, *digit);
            let upper = u64::from(top) + u64::from(carry);
            // As much of the modulus as makes the lowest digit zero, which is then left out.
            let lowest = product.first().copied().unwrap_or_default();
            let carry = add_multiple(product, self.limbs, lowest.wrapping_mul(self.inverse));
            let upper = upper + u64::from(carry);
            product.copy_within(1.., 0);
            if let Some(last) = product.last_mut() {
                *last = upper as u32;
            }
            top = (upper >> 32) as u32;
        }
        if top != 0 || !self.is_above(product) {
            self.subtract(product);
        }
    }

    fn double(&self, number: &mut [u32]) {
        let mut carry = 0;
        for limb in number.iter_mut() {
            let high = *limb >> 31;
            *limb = *limb << 1 | carry;
            carry = high;
        }
        if carry != 0 || !self.is_above(number) {
            self.subtract(number);
        }
    }

    /// `number - modulus`, without what is borrowed at the top.
    fn subtract(&self, number: &mut [u32]) {
        let mut borrow = false;
        for (limb, other) in number.iter_mut().zip(self.limbs) {
            let (difference, first) = limb.overflowing_sub(*other);
            let (difference, second) = difference.overflowing_sub(borrow.into());
            *limb = difference;
            borrow = first || second;
        }
    }
}

/// `sum += number * digit`; what is carried over the top.
fn add_multiple(sum: &mut [u32], number: &[u32], digit: u32) -> u32 {
    let mut carry = 0u64;
    for (place, limb) in sum.iter_mut().zip(number) {
        carry += u64::from(*place) + u64::from(*limb) * u64::from(digit);
        *place = carry as u32;
        carry >>= 32;
    }
    carry as u32
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;
    use std::vec::Vec;

    use super::*;

    const LENGTH: usize = 256;

    /// EMSA-PSS-ENCODE (RFC 8017, 9.1.1), with whatever stands before the salt.
    fn pss(hash: Hash, digest: &[u8], before: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let salt = vec![0x5a; digest.len()];
        let seed = hash.of(&[&[0; 8], digest, &salt]);
        let mut block = vec![0; LENGTH - 2 * digest.len() - 2];
        block.push(0);
        before(&mut block);
        *block.last_mut().unwrap() ^= 1;
        block.extend(&salt);
        for (counter, piece) in (0u32..).zip(block.chunks_mut(digest.len())) {
            let mask = hash.of(&[seed.bytes(), &counter.to_be_bytes()]);
            piece.iter_mut().zip(mask.bytes()).for_each(|(byte, mask)| *byte ^= mask);
        }
        block[0] &= 0x7f;
        block.extend(seed.bytes());
        block.push(0xbc);
        block
    }

    #[test]
    fn pss_has_one_form() {
        for hash in [Hash::Sha256, Hash::Sha384, Hash::Sha512] {
            let digest = hash.of(&[b"message"]);
            let digest = digest.bytes();
            let right = pss(hash, digest, |_| {});
            assert_eq!(right.len(), LENGTH);
            assert_eq!(is_pss(&mut right.clone(), hash, digest), Some(true));
            let other = hash.of(&[b"other"]);
            assert_ne!(is_pss(&mut right.clone(), hash, other.bytes()), Some(true));
            for at in 0..LENGTH {
                let mut wrong = right.clone();
                wrong[at] ^= 0x80 >> (at % 8);
                assert_ne!(is_pss(&mut wrong, hash, digest), Some(true), "{at}");
            }
            // What the hash does not cover: zeros, and the one before the salt.
            for at in [1, 2, 50, LENGTH - 2 * digest.len() - 3] {
                let mut wrong = pss(hash, digest, |before| before[at] = 4);
                assert_ne!(is_pss(&mut wrong, hash, digest), Some(true), "{at}");
            }
            let mut wrong = pss(hash, digest, |before| *before.last_mut().unwrap() = 3);
            assert_ne!(is_pss(&mut wrong, hash, digest), Some(true));
        }
    }

    #[test]
    fn pkcs1_has_one_form() {
        for hash in [Hash::Sha256, Hash::Sha384, Hash::Sha512] {
            let digest = hash.of(&[b"message"]);
            let mut right = vec![0, 1];
            right.resize(LENGTH - 20 - digest.length, 0xff);
            right.push(0);
            right.extend(hash.digest_info());
            right.extend(digest.bytes());
            assert!(is_pkcs1(&right, hash, digest.bytes()));
            for at in 0..LENGTH {
                let mut wrong = right.clone();
                wrong[at] ^= 1 << (at % 8);
                assert!(!is_pkcs1(&wrong, hash, digest.bytes()), "{at}");
            }
            // Bleichenbacher's: less padding, and room behind.
            let mut wrong = right.clone();
            wrong.drain(2..100);
            wrong.resize(LENGTH, 0);
            assert!(!is_pkcs1(&wrong, hash, digest.bytes()));
            assert!(!is_pkcs1(&right[right.len() - 40..], hash, digest.bytes()));
        }
    }

    #[test]
    fn keys_that_are_none() {
        let key = |modulus: &[u8], exponent: &[u8]| {
            let element = |tag: u8, content: &[u8]| {
                let length = (content.len() as u16).to_be_bytes();
                match content.len() {
                    short @ ..=0x7f => [&[tag, short as u8], content].concat(),
                    middle @ ..=0xff => [&[tag, 0x81, middle as u8], content].concat(),
                    _ => [&[tag, 0x82, length[0], length[1]], content].concat(),
                }
            };
            let both = [element(2, modulus), element(2, exponent)].concat();
            PublicKey::read(&element(0x30, &both)).map(|key| key.exponent)
        };
        let modulus = |bytes: usize| {
            let mut modulus = vec![0xff; bytes + 1];
            modulus[0] = 0;
            modulus
        };
        assert_eq!(key(&modulus(256), &[1, 0, 1]), Some(65_537));
        assert_eq!(key(&modulus(512), &[3]), Some(3));
        // Of too few or too many bits, even, negative; and exponents that would let everything pass.
        for bytes in [128, 255, 252, 257, 516] {
            assert_eq!(key(&modulus(bytes), &[3]), None, "{bytes}");
        }
        let mut even = modulus(256);
        even[256] = 0xfe;
        assert_eq!(key(&even, &[3]), None);
        assert_eq!(key(&modulus(256)[1..], &[3]), None);
        let wrong: [&[u8]; 8] = [&[], &[0], &[1], &[2], &[4], &[0x83], &[0, 3], &[1, 0, 0, 0, 1]];
        for exponent in wrong {
            assert_eq!(key(&modulus(256), exponent), None, "{exponent:?}");
        }
    }
}
