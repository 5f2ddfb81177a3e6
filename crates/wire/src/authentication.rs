//! Proofs that a process knows the cluster's secret.
//!
//! Both sides put a fresh random number into their handshakes. A proof is the HMAC-SHA256, keyed with the
//! secret, of which side proves and of both handshakes as they were sent: so it is bound to the cluster, to
//! both members and their disks, and to this connection, and neither a recording nor a proof sent back passes.
//! The side that made the connection proves first: whoever only listens in on ports learns nothing.
//!
//! What follows on the connection is neither encrypted nor authenticated frame by frame: whoever can change
//! packets on their way can still do harm.

use core::fmt;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What every proof begins with: it is of use for nothing else.
const PURPOSE: &[u8] = b"syros handshake";

/// Bytes of a [`Nonce`].
pub const NONCE_BYTES: usize = 16;

/// A random number that is used once.
pub type Nonce = [u8; NONCE_BYTES];

/// Which side of a connection proves something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that made the connection.
    Dialer,
    /// The one that accepted it.
    Acceptor,
}

/// A proof that one side knows the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof(pub [u8; Self::BYTES]);

impl Proof {
    /// Its length.
    pub const BYTES: usize = 32;
}

/// What all nodes of a cluster know, and nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A secret that could be guessed, or is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretLength(pub usize);

impl fmt::Display for SecretLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a secret of {} bytes; it must have {} to {}", self.0, Secret::BYTES_MIN, Secret::BYTES_MAX)
    }
}

impl core::error::Error for SecretLength {}

impl Secret {
    /// Shortest secret: 128 random bits cannot be guessed.
    pub const BYTES_MIN: usize = 16;

    /// Longest one: more is no secret but some other file.
    pub const BYTES_MAX: usize = 4096;

    /// The secret with these bytes.
    ///
    /// # Errors
    /// [`SecretLength`] if they are too few or too many.
    pub fn new(bytes: &[u8]) -> Result<Self, SecretLength> {
        match bytes.len() {
            Self::BYTES_MIN..=Self::BYTES_MAX => Ok(Self(bytes.into())),
            length => Err(SecretLength(length)),
        }
    }

    /// The proof of one side, given both handshakes as they were sent.
    #[must_use]
    pub fn prove(&self, side: Side, dialer: &[u8], acceptor: &[u8]) -> Proof {
        Proof(self.mac(side, dialer, acceptor).finalize().into_bytes().into())
    }

    /// True if `proof` is the one of this side. Takes the same time wherever it differs.
    #[must_use]
    pub fn verify(&self, proof: &Proof, side: Side, dialer: &[u8], acceptor: &[u8]) -> bool {
        self.mac(side, dialer, acceptor).verify_slice(&proof.0).is_ok()
    }

    fn mac(&self, side: Side, dialer: &[u8], acceptor: &[u8]) -> Hmac<Sha256> {
        // A key of any length will do.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { unreachable!("HMAC takes any key") };
        let side = match side {
            Side::Dialer => 1_u8,
            Side::Acceptor => 2,
        };
        let length = (dialer.len() as u64).to_le_bytes();
        let parts: [&[u8]; 5] = [PURPOSE, &[side], &length, dialer, acceptor];
        for part in parts {
            mac.update(part);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_are_bound_to_secret_side_and_both_handshakes() {
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        let proof = secret.prove(Side::Dialer, b"one", b"two");
        assert!(secret.verify(&proof, Side::Dialer, b"one", b"two"));
        for (side, dialer, acceptor) in [
            (Side::Acceptor, &b"one"[..], &b"two"[..]),
            (Side::Dialer, b"two", b"one"),
            (Side::Dialer, b"onet", b"wo"),
            (Side::Dialer, b"one", b"twO"),
        ] {
            assert!(!secret.verify(&proof, side, dialer, acceptor), "{side:?} {dialer:?} {acceptor:?}");
        }
        let other = Secret::new(b"0123456789abcdeF").unwrap();
        assert!(!other.verify(&proof, Side::Dialer, b"one", b"two"));
    }

    #[test]
    fn a_proof_has_golden_bytes() {
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        let proof = secret.prove(Side::Acceptor, b"one", b"two");
        // printf 'syros handshake\x02\x03\0\0\0\0\0\0\0onetwo' | openssl dgst -sha256 -hmac 0123456789abcdef
        let hex: String = proof.0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "5ab51482764a62360c99c3dfe3185a73fd361bf56faf059f619b69b661d44db2");
    }

    #[test]
    fn secrets_are_neither_short_nor_shown() {
        assert_eq!(
            Secret::new(b"short").unwrap_err().to_string(),
            "a secret of 5 bytes; it must have 16 to 4096"
        );
        assert_eq!(format!("{:?}", Secret::new(&[7; 16]).unwrap()), "Secret");
        assert_eq!(Secret::new(&[7; 5000]).map(drop), Err(SecretLength(5000)));
    }
}
