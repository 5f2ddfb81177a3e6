//! Which files a backup has, and what its parts begin with.

/// The name of the manifest.
pub const MANIFEST: &str = "manifest";

/// The name of what keeps a place for one backup that is being made. It goes when the backup is finished.
pub(crate) const CLAIM: &str = "claim";

/// What stands behind the name of a file in a directory until it is whole.
pub(crate) const TEMPORARY: &str = ".tmp";

/// The format of a backup that this build writes, and the only one it reads.
pub const FORMAT: u64 = 1;

/// What every part begins with; format and number of the part follow, 4 bytes each.
const MAGIC: [u8; 8] = *b"SYROSBAK";

/// Bytes of a part before its first chunk.
pub(crate) const PART_HEADER_BYTES: usize = 16;

/// What the part with this number begins with.
pub(crate) fn part_header(number: u64) -> [u8; PART_HEADER_BYTES] {
    let mut header = [0; PART_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&(FORMAT as u32).to_le_bytes());
    header[12..].copy_from_slice(&(number as u32).to_le_bytes());
    header
}

/// The name of a part; the first has number 1.
pub(crate) fn part_name(number: u64) -> String {
    format!("data-{number:05}")
}

/// True for the names of files with data.
pub(crate) fn is_part_name(name: &str) -> bool {
    name.strip_prefix("data-")
        .is_some_and(|digits| digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}
