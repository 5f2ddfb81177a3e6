//! Keys that no client can see: what the store keeps for its own use, beside a key of a client's.
//!
//! A hidden key belongs to one key of clients. Only operations that name that key touch it, so the footprint that has the
//! key covers the hidden one as well. KEYS, SCAN and RANDOMKEY do not show hidden keys, and their removal is no removal of a
//! key that a client may watch.

use syros_types::limits::KEY_BYTES_MAX;

/// What the names of hidden keys begin with.
const PREFIX: &[u8] = b"\0syros\0";

/// What stands behind the prefix of the key that holds those who wait for elements of a list.
const FOR_ELEMENTS: u8 = b'l';

/// The same of a sorted set.
const FOR_MEMBERS: u8 = b'z';

/// True if no client can see this key.
#[must_use]
#[inline]
pub fn is_hidden(key: &[u8]) -> bool {
    key.first() == Some(&0) && key.starts_with(PREFIX)
}

/// The hidden key that holds those who wait for elements of `key`, which is to be a list or a sorted set; `None` if its name
/// would be too long for a key.
#[must_use]
pub fn waiting_key(key: &[u8], is_list: bool) -> Option<Vec<u8>> {
    let length = PREFIX.len() + 1 + key.len();
    (length <= KEY_BYTES_MAX).then(|| {
        let mut name = Vec::with_capacity(length);
        name.extend_from_slice(PREFIX);
        name.push(if is_list { FOR_ELEMENTS } else { FOR_MEMBERS });
        name.extend_from_slice(key);
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_the_longest_name_has_no_hidden_one() {
        assert_eq!(waiting_key(b"k", true).as_deref(), Some(&b"\0syros\0lk"[..]));
        assert!(waiting_key(b"k", true).is_some_and(|key| is_hidden(&key)));
        assert!(!is_hidden(b"k") && !is_hidden(b"\0syro") && !is_hidden(b""));
        let longest = vec![b'k'; KEY_BYTES_MAX - PREFIX.len() - 1];
        assert!(waiting_key(&longest, true).is_some_and(|key| key.len() == KEY_BYTES_MAX));
        assert_eq!(waiting_key(&[longest, vec![b'k']].concat(), false), None);
    }
}
