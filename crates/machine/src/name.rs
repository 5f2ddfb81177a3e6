//! Names of state machines.

use std::fmt;

/// Longest name, in bytes. They are for people, and in messages.
const NAME_BYTES_MAX: usize = 32;

/// Name of a state machine: 1 to 32 of `a-z`, `0-9` and `-`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MachineName {
    /// Zeros follow the name.
    bytes: [u8; NAME_BYTES_MAX],
}

impl MachineName {
    /// The name, if it is one.
    #[must_use]
    pub const fn new(name: &str) -> Option<Self> {
        let name = name.as_bytes();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return None;
        }
        let mut bytes = [0; NAME_BYTES_MAX];
        let mut at = 0;
        while at < name.len() {
            if !matches!(name[at], b'a'..=b'z' | b'0'..=b'9' | b'-') {
                return None;
            }
            bytes[at] = name[at];
            at += 1;
        }
        Some(Self { bytes })
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES_MAX);
        // Only ASCII gets in.
        str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let longest = "x".repeat(NAME_BYTES_MAX);
        for good in ["a", "record-append", "v2", &longest] {
            assert_eq!(MachineName::new(good).expect(good).as_str(), good);
        }
        for bad in ["", "Record", "a b", "a:b", "ä", "a\0", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert_eq!(MachineName::new(bad), None, "{bad:?}");
        }
    }
}
