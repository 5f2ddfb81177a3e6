//! CRC-64 with the polynomial of Jones, reflected, from 0 on.

/// The polynomial 0xad93d23594c935a9 with its bits in reverse.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// What each byte does to a checksum.
const TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u64, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

/// The checksum of these bytes.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    extended(0, bytes)
}

/// The checksum of what has this checksum, and these bytes behind it.
#[must_use]
pub fn extended(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| TABLE[usize::from(sum as u8 ^ byte)] ^ sum >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_checksum_of_redis() {
        assert_eq!(checksum(b""), 0);
        assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
