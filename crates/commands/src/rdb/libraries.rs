//! Libraries of functions, as FUNCTION DUMP answers them: for each a number and its text, and behind them all the version
//! and the checksum of a payload.

use super::input::Input;
use super::{InvalidPayload, VERSION, checked, closed, output};
use std::borrow::Cow;

/// The number of a library. Fixed by Redis.
pub const LIBRARY: u8 = 245;

/// The payload of libraries with these texts.
#[must_use]
pub fn dump_libraries<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    closed(output::texts(LIBRARY, texts), VERSION)
}

/// The texts of the libraries of a payload.
///
/// # Errors
/// [`InvalidPayload`]
pub fn restore_libraries(payload: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, InvalidPayload> {
    let mut input = Input::new(checked(payload)?);
    let mut texts = Vec::new();
    while !input.is_empty() {
        if input.take_u8()? != LIBRARY {
            return Err(InvalidPayload::Format);
        }
        texts.push(input.take_string()?);
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        let texts: [&[u8]; 3] = [b"#!lua name=a\n", b"", b"12"];
        let payload = dump_libraries(texts.into_iter());
        assert_eq!(restore_libraries(&payload).unwrap(), texts);
        assert_eq!(restore_libraries(&dump_libraries(std::iter::empty())), Ok(Vec::new()));
    }

    #[test]
    fn what_redis_dumps_is_read() {
        // Of redis-server 7.0.15, of no libraries.
        let none = b"\n\x00]\x9b\\@\x0f\x7f\xa2\xda";
        assert_eq!(dump_libraries(std::iter::empty()), none);
        assert_eq!(restore_libraries(none), Ok(Vec::new()));
    }

    #[test]
    fn other_payloads_are_refused() {
        let payload = dump_libraries([&b"text"[..]].into_iter());
        for end in 0..payload.len() {
            assert_eq!(restore_libraries(&payload[..end]), Err(InvalidPayload::VersionOrChecksum), "{end}");
        }
        for typed in [&b"\x00\x01x"[..], b"\xf5\x05x", b"\xf6\x01x", b"\xf5"] {
            assert_eq!(
                restore_libraries(&closed(typed.to_vec(), VERSION)),
                Err(InvalidPayload::Format),
                "{typed:?}"
            );
        }
    }
}
