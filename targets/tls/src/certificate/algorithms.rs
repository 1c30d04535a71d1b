//! Which signatures are understood (§4.2.3), as webpki wants them.

use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{Signature, VerifyingKey};
use pki_types::{
    AlgorithmIdentifier, CertificateDer, InvalidSignature, SignatureVerificationAlgorithm, alg_id,
};
use webpki::EndEntityCert;

use super::rsa;
use crate::error::{Error, Violation};

pub(crate) const ECDSA_SECP256R1_SHA256: u16 = 0x0403;
const RSA_PSS_RSAE_SHA256: u16 = 0x0804;
const RSA_PSS_RSAE_SHA384: u16 = 0x0805;
const RSA_PSS_RSAE_SHA512: u16 = 0x0806;
const RSA_PKCS1_SHA256: u16 = 0x0401;
const RSA_PKCS1_SHA384: u16 = 0x0501;
const RSA_PKCS1_SHA512: u16 = 0x0601;

/// What a hello offers, in the order of our liking. The last three are for certificates only (§4.2.3).
pub(crate) const SCHEMES: [u16; 7] = [
    ECDSA_SECP256R1_SHA256,
    RSA_PSS_RSAE_SHA256,
    RSA_PSS_RSAE_SHA384,
    RSA_PSS_RSAE_SHA512,
    RSA_PKCS1_SHA256,
    RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512,
];

/// What certificates may be signed with.
pub(super) static FOR_CERTIFICATES: &[&dyn SignatureVerificationAlgorithm] = &[
    &EcdsaP256Sha256,
    &rsa::PKCS1_SHA256,
    &rsa::PKCS1_SHA384,
    &rsa::PKCS1_SHA512,
    &rsa::PSS_SHA256,
    &rsa::PSS_SHA384,
    &rsa::PSS_SHA512,
];

/// What a handshake may be signed with (§4.4.3): PKCS #1 v1.5 is not among it.
fn for_handshakes(scheme: u16) -> Option<&'static dyn SignatureVerificationAlgorithm> {
    Some(match scheme {
        ECDSA_SECP256R1_SHA256 => &EcdsaP256Sha256,
        RSA_PSS_RSAE_SHA256 => &rsa::PSS_SHA256,
        RSA_PSS_RSAE_SHA384 => &rsa::PSS_SHA384,
        RSA_PSS_RSAE_SHA512 => &rsa::PSS_SHA512,
        _ => return None,
    })
}

/// Checks that `signature` was made with the key of a certificate that has been accepted.
pub(crate) fn is_signature(
    certificate: &[u8],
    scheme: u16,
    message: &[u8],
    signature: &[u8],
) -> Result<(), Error> {
    let algorithm = for_handshakes(scheme).ok_or(Violation::SignatureScheme)?;
    let certificate = CertificateDer::from(certificate);
    let certificate = EndEntityCert::try_from(&certificate).map_err(|_| Error::NotTheKey)?;
    certificate.verify_signature(algorithm, message, signature).map_err(|error| match error {
        // §4.4.3: a scheme that does not go with the key of the certificate.
        webpki::Error::UnsupportedSignatureAlgorithmForPublicKeyContext(_) => {
            Violation::SignatureScheme.into()
        }
        _ => Error::NotTheKey,
    })
}

/// ECDSA on P-256 with SHA-256.
#[derive(Debug)]
struct EcdsaP256Sha256;

impl SignatureVerificationAlgorithm for EcdsaP256Sha256 {
    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_P256
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_SHA256
    }

    fn verify_signature(
        &self,
        key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let key = VerifyingKey::from_sec1_bytes(key).map_err(|_| InvalidSignature)?;
        let signature = Signature::from_der(signature).map_err(|_| InvalidSignature)?;
        key.verify(message, &signature).map_err(|_| InvalidSignature)
    }
}
