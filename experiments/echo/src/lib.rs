//! What both echo servers and the load generator share: the frames, the core that answers them, the
//! buffers of one connection. Nothing here does IO, so a difference between two servers is a difference
//! between their event loops.

/// Bytes of one request on the wire, its 4-byte length prefix included.
pub const REQUEST_BYTES: usize = 100;
/// Bytes of one reply on the wire, its 4-byte length prefix included.
pub const REPLY_BYTES: usize = 30;
/// Bytes of the length prefix (little-endian, counts the body alone).
pub const PREFIX_BYTES: usize = 4;
/// Input buffer of one connection: many times what the deepest load shape keeps in flight (50 requests).
pub const INPUT_BYTES: usize = 16 * 1024;
/// Output buffer of one connection: replies are smaller than requests, so the answers to one full input
/// buffer always fit twice.
pub const OUTPUT_BYTES: usize = 16 * 1024;

/// The stand-in for the replica: it reads every byte of a request and answers with a small reply.
#[derive(Debug, Default)]
pub struct Core {
    /// Requests handled.
    pub messages: u64,
    digest: u64,
}

impl Core {
    /// Handles the body of one request and appends one framed reply to `output`.
    pub fn handle(&mut self, body: &[u8], output: &mut Vec<u8>) {
        self.messages += 1;
        for byte in body {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut reply = [0; REPLY_BYTES];
        reply[..PREFIX_BYTES].copy_from_slice(&((REPLY_BYTES - PREFIX_BYTES) as u32).to_le_bytes());
        reply[4..12].copy_from_slice(&self.messages.to_le_bytes());
        reply[12..20].copy_from_slice(&self.digest.to_le_bytes());
        output.extend_from_slice(&reply);
    }
}

/// The buffers of one connection, allocated once.
#[derive(Debug)]
pub struct Buffers {
    input: Box<[u8]>,
    filled: usize,
    /// Framed replies not written yet.
    pub output: Vec<u8>,
}

impl Default for Buffers {
    fn default() -> Self {
        Self { input: vec![0; INPUT_BYTES].into(), filled: 0, output: Vec::with_capacity(OUTPUT_BYTES) }
    }
}

impl Buffers {
    /// Where the next read goes. Never empty: [`Buffers::received`] leaves less than one frame behind.
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.input[self.filled..]
    }

    /// Whether the peer leaves so many replies unread that its requests must wait.
    pub fn is_clogged(&self) -> bool {
        self.output.len() > OUTPUT_BYTES / 2
    }

    /// Hands every whole frame among the input, of which `count` bytes are new, to `handle` with the
    /// output buffer, and keeps the rest for the next read. `Err` names a length no frame may have.
    pub fn received(
        &mut self,
        count: usize,
        mut handle: impl FnMut(&[u8], &mut Vec<u8>),
    ) -> Result<(), usize> {
        self.filled += count;
        let mut rest = &self.input[..self.filled];
        while let Some((prefix, after)) = rest.split_first_chunk::<PREFIX_BYTES>() {
            let length = u32::from_le_bytes(*prefix) as usize;
            if length > INPUT_BYTES - PREFIX_BYTES {
                return Err(length);
            }
            let Some((body, next)) = after.split_at_checked(length) else { break };
            handle(body, &mut self.output);
            rest = next;
        }
        let left = rest.len();
        self.input.copy_within(self.filled - left..self.filled, 0);
        self.filled = left;
        Ok(())
    }

    /// Forgets the first `count` bytes of the output, which the socket has taken.
    pub fn sent(&mut self, count: usize) {
        self.output.drain(..count);
    }
}

/// What a server prints when its last connection has closed.
#[derive(Debug, Default)]
pub struct Counters {
    /// Calls of `read`, the ones that found nothing included.
    pub reads: u64,
    /// Calls of `write`.
    pub writes: u64,
}

/// Prints the counters of a server as one line of `name value` pairs.
pub fn print_counters(core: &Core, counters: &Counters) {
    println!("messages {} reads {} writes {}", core.messages, counters.reads, counters.writes);
}

/// The value after `name` among the command-line arguments, or `default`.
///
/// # Panics
/// If the value is missing or does not parse: an experiment must not run with another setting than asked.
pub fn option<T: std::str::FromStr>(name: &str, default: T) -> T {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    if arguments.next().is_none() {
        return default;
    }
    match arguments.next().map(|value| value.parse()) {
        Some(Ok(value)) => value,
        _ => panic!("{name} needs a value"),
    }
}
