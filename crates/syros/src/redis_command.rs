//! Commands, as Redis clients send them.

use std::io::Write;

/// Appends a command.
pub(crate) fn put_command(out: &mut Vec<u8>, words: &[impl AsRef<[u8]>]) {
    // Writing to memory does not fail.
    let _ = write!(out, "*{}\r\n", words.len());
    for word in words {
        let word = word.as_ref();
        let _ = write!(out, "${}\r\n", word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}
