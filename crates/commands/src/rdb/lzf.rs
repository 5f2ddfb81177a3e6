//! What LZF has compressed.

use super::InvalidPayload;

/// The most bytes that one compressed byte can stand for: three of them repeat up to 264.
const EXPANSION_MAX: usize = 88;

/// Controls below this are followed by as many literal bytes, and one more.
const LITERALS: u8 = 32;

/// Repetitions of this many bytes have their length in a byte of its own.
const LONG: usize = 7;

/// The `length` bytes that these were made of.
pub(super) fn decompress(mut input: &[u8], length: usize) -> Result<Vec<u8>, InvalidPayload> {
    if length > input.len().saturating_mul(EXPANSION_MAX) {
        return Err(InvalidPayload::Format);
    }
    let mut out = Vec::with_capacity(length);
    while let Some((&control, rest)) = input.split_first() {
        input = rest;
        if control < LITERALS {
            let literals = usize::from(control) + 1;
            let (bytes, rest) = input.split_at_checked(literals).ok_or(InvalidPayload::Format)?;
            out.extend_from_slice(bytes);
            input = rest;
        } else {
            let mut repeated = usize::from(control >> 5);
            if repeated == LONG {
                repeated += usize::from(take(&mut input)?);
            }
            let distance = (usize::from(control & 0x1f) << 8 | usize::from(take(&mut input)?)) + 1;
            repeat(&mut out, distance, repeated + 2)?;
        }
        if out.len() > length {
            return Err(InvalidPayload::Format);
        }
    }
    if out.len() == length { Ok(out) } else { Err(InvalidPayload::Format) }
}

fn take(input: &mut &[u8]) -> Result<u8, InvalidPayload> {
    let (&byte, rest) = input.split_first().ok_or(InvalidPayload::Format)?;
    *input = rest;
    Ok(byte)
}

/// Appends so many bytes that stand at this distance before the end, among them those that are appended.
fn repeat(out: &mut Vec<u8>, distance: usize, count: usize) -> Result<(), InvalidPayload> {
    let start = out.len().checked_sub(distance).ok_or(InvalidPayload::Format)?;
    let mut left = count;
    while left > 0 {
        // What has been appended is there to be repeated, too.
        let piece = left.min(out.len() - start);
        out.extend_from_within(start..start + piece);
        left -= piece;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_repetitions() {
        assert_eq!(decompress(&[2, b'a', b'b', b'c'], 3), Ok(b"abc".to_vec()));
        assert_eq!(decompress(&[0, b'a', 0x20, 0], 4), Ok(b"aaaa".to_vec()));
        assert_eq!(decompress(&[0, b'a', 0xe0, 255, 0], 265), Ok(vec![b'a'; 265]));
        assert_eq!(decompress(&[1, b'a', b'b', 0x60, 1], 7), Ok(b"abababa".to_vec()));
        assert_eq!(decompress(&[2, b'a', b'b', b'c', 0x20, 2], 6), Ok(b"abcabc".to_vec()));
    }

    #[test]
    fn damage_is_found() {
        for (input, length) in [
            (&[2, b'a'][..], 3),
            (&[0, b'a'], 2),
            (&[1, b'a', b'b'], 1),
            (&[0, b'a', 0x20, 1], 4),
            (&[0, b'a', 0x20], 4),
            (&[0, b'a', 0xe0, 255], 265),
            (&[0, b'a'], 1 << 40),
        ] {
            assert_eq!(decompress(input, length), Err(InvalidPayload::Format), "{input:?}");
        }
    }
}
