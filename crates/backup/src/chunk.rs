//! A chunk: up to a mebibyte of data, compressed, with a checksum. All numbers are little-endian.
//!
//! ```text
//!   0  4  length of the data, 1..=CHUNK_BYTES_MAX
//!   4  4  length of what is stored, 1..=the length of the data; if they are equal, the data is stored as it is
//!   8  4  CRC-32C of the number of the part (8 bytes), the offset of the chunk in it (8 bytes), bytes 0..8, what is stored
//!  12     what is stored: an LZ4 block
//! ```

/// Most bytes of data in a chunk: enough that compression finds what there is to find, and little to hold in memory.
pub(crate) const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Bytes before what is stored.
pub(crate) const CHUNK_HEADER_BYTES: usize = 12;

/// Where a chunk is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkPlace {
    /// The number of its part.
    pub(crate) part: u64,
    /// Where it begins in the part, in bytes.
    pub(crate) offset: u64,
}

/// What stands before what is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkHeader {
    data_bytes: usize,
    stored_bytes: usize,
    checksum: u32,
}

impl ChunkHeader {
    /// The header that the bytes are.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn decode(bytes: [u8; CHUNK_HEADER_BYTES]) -> Result<Self, String> {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (data_bytes, stored_bytes) = (number(0) as usize, number(4) as usize);
        if data_bytes == 0 || data_bytes > CHUNK_BYTES_MAX || stored_bytes == 0 || stored_bytes > data_bytes {
            return Err(format!(
                "a chunk with {data_bytes} bytes in {stored_bytes}, where at most {CHUNK_BYTES_MAX} are possible"
            ));
        }
        Ok(Self { data_bytes, stored_bytes, checksum: number(8) })
    }

    /// How many bytes are stored behind the header.
    pub(crate) const fn stored_bytes(&self) -> usize {
        self.stored_bytes
    }

    /// The data, from what is stored.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn data(&self, place: ChunkPlace, stored: &[u8]) -> Result<Vec<u8>, String> {
        let lengths = (self.data_bytes as u32, self.stored_bytes as u32);
        if checksum(place, lengths, stored) != self.checksum {
            return Err("the checksum of a chunk does not match".to_owned());
        }
        if self.stored_bytes == self.data_bytes {
            return Ok(stored.to_vec());
        }
        let data = lz4_flex::block::decompress(stored, self.data_bytes)
            .map_err(|error| format!("a chunk cannot be decompressed: {error}"))?;
        if data.len() == self.data_bytes {
            return Ok(data);
        }
        Err(format!("a chunk has {} bytes instead of {}", data.len(), self.data_bytes))
    }
}

/// Appends the chunk with this data.
pub(crate) fn put_chunk(place: ChunkPlace, data: &[u8], out: &mut Vec<u8>) {
    let compressed = lz4_flex::block::compress(data);
    let stored = if compressed.len() < data.len() { &compressed } else { data };
    let lengths = (data.len() as u32, stored.len() as u32);
    out.extend_from_slice(&lengths.0.to_le_bytes());
    out.extend_from_slice(&lengths.1.to_le_bytes());
    out.extend_from_slice(&checksum(place, lengths, stored).to_le_bytes());
    out.extend_from_slice(stored);
}

/// Covers the place, so that chunks cannot change places.
fn checksum(place: ChunkPlace, lengths: (u32, u32), stored: &[u8]) -> u32 {
    let mut prefix = [0; 24];
    prefix[..8].copy_from_slice(&place.part.to_le_bytes());
    prefix[8..16].copy_from_slice(&place.offset.to_le_bytes());
    prefix[16..20].copy_from_slice(&lengths.0.to_le_bytes());
    prefix[20..].copy_from_slice(&lengths.1.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&prefix), stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: ChunkPlace = ChunkPlace { part: 3, offset: 700 };

    fn read(place: ChunkPlace, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let (header, stored) = bytes.split_first_chunk().expect("there is a header");
        let header = ChunkHeader::decode(*header)?;
        header.data(place, stored.get(..header.stored_bytes()).ok_or("too short")?)
    }

    #[test]
    fn a_chunk_comes_back_and_every_flipped_bit_is_found() {
        let noise: Vec<u8> = (0..2000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for data in [&b"x"[..], &[7; 5000], &noise] {
            let mut bytes = Vec::new();
            put_chunk(PLACE, data, &mut bytes);
            assert_eq!(read(PLACE, &bytes).as_deref(), Ok(data));
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(read(PLACE, &bytes).is_err(), "bit {bit} of {} bytes", data.len());
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            assert!(read(ChunkPlace { part: 4, ..PLACE }, &bytes).is_err(), "it is of another part");
            assert!(read(ChunkPlace { offset: 0, ..PLACE }, &bytes).is_err(), "it was moved");
        }
    }

    #[test]
    fn compression_is_worth_it() {
        let mut bytes = Vec::new();
        put_chunk(PLACE, &[7; 5000], &mut bytes);
        assert!(bytes.len() < 100);
        bytes.clear();
        put_chunk(PLACE, b"x", &mut bytes);
        assert_eq!(bytes.len(), CHUNK_HEADER_BYTES + 1);
    }
}
