//! Passwords: no process keeps more of one than its SHA-256.

use core::fmt;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The SHA-256 of a password. The state, the log and snapshots have nothing else of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Password([u8; 32]);

impl Password {
    /// Of this password.
    #[must_use]
    pub fn of(password: &[u8]) -> Self {
        Self(Sha256::digest(password).into())
    }

    /// The one with these 64 hexadecimal digits, which are in lower case.
    #[must_use]
    pub fn from_hexadecimal(digits: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let digits: &[u8; 64] = digits.try_into().ok()?;
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(hash))
    }

    /// Its hexadecimal digits.
    #[must_use]
    pub fn hexadecimal(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// True if both are of one password, in a time that does not depend on where they differ.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// The rules of ACL SETUSER with `#hash` in the place of `>password`, and `!hash` in the place of `<password`: what is
/// submitted, so that no password is in the log.
#[must_use]
pub fn hide_passwords(rules: &[&[u8]]) -> Vec<Vec<u8>> {
    let hidden = |rule: &&[u8]| match rule {
        [b'>', password @ ..] => format!("#{}", Password::of(password).hexadecimal()).into_bytes(),
        [b'<', password @ ..] => format!("!{}", Password::of(password).hexadecimal()).into_bytes(),
        other => other.to_vec(),
    };
    rules.iter().map(hidden).collect()
}
