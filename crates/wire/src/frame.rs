//! Frames: how messages lie on a connection. 4 bytes, little-endian: the length of what follows; 1 byte: the channel; the
//! payload; 4 bytes, little-endian: a checksum.
//!
//! The checksum is the low half of XXH3-64 of channel and payload. TCP's own sum misses some damage that network cards,
//! switches and memory do, and a flipped bit in an operation would make replicas differ. (Of small frames, XXH3 costs a
//! quarter of what CRC32C does.) A frame on the handshake's channel has none: its layout is the same in all versions of the
//! format, so that processes of different versions can tell each other.
//!
//! Every other frame is for one configuration of one group. The channel's number says whether a varint with the group and
//! one with the epoch follow it, or whether the frame is for the first configuration of the only group, as all frames of
//! version 4 of the format are. Today's frames so take no byte more than those of version 4, and the frames of later
//! configurations take two more as long as both numbers are small. A frame that spells out the first configuration is
//! refused: a value has one encoding.

use crate::front_end::FrontEndMessage;
use crate::message::{encode_member_reply, encode_message, encode_read_reply};
use core::fmt;
use syros_protocol::message::{Freshness, Message};
use syros_types::limits::{BODY_BYTES_MAX, FRAME_BYTES_MAX};
use syros_types::varint::{put_varint, take_varint};
use syros_types::{ConfigurationEpoch, ConfigurationId, GroupId, OpNumber, View, WallTime};

/// Bytes before a frame's payload.
pub const FRAME_HEADER_BYTES: usize = 5;

/// Bytes of a frame besides its payload.
pub const FRAME_OVERHEAD_BYTES: usize = FRAME_HEADER_BYTES + CHECKSUM_BYTES;

/// Bytes after the payload of a frame that is no handshake.
const CHECKSUM_BYTES: usize = 4;

/// Longest frame that a client may send: one largest operation, with plenty of room for what else is
/// in a request. A client cannot make a replica reserve more.
pub const CLIENT_FRAME_BYTES_MAX: usize = BODY_BYTES_MAX + 64 * 1024;

const _: () = assert!(CLIENT_FRAME_BYTES_MAX < FRAME_BYTES_MAX);
const _: () = assert!(FRAME_BYTES_MAX < u32::MAX as usize);

/// Who a frame's payload is for. One connection between two nodes carries all channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Channel {
    /// From replica to replica: a message.
    Replica = 0,
    /// From a client to a replica or back: a message.
    Client = 1,
    /// The first frame in each direction, a [`Hello`](crate::Hello), and each [`HandshakeMessage`](crate::HandshakeMessage) after it.
    Handshake = 2,
    /// From front end to front end: a [`FrontEndMessage`]. Since version 12 of the format.
    FrontEnd = 5,
}

impl Channel {
    /// Whether its frames end with a checksum.
    const fn is_checked(self) -> bool {
        !matches!(self, Self::Handshake)
    }

    /// The number in a frame of this channel, for this configuration.
    const fn number(self, is_first: bool) -> u8 {
        match self {
            Self::Replica if !is_first => 3,
            Self::Client if !is_first => 4,
            Self::FrontEnd if !is_first => 6,
            channel => channel as u8,
        }
    }

    /// The channel of this number, and whether group and epoch follow it.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<(Self, bool)> {
        match number {
            0 => Some((Self::Replica, false)),
            1 => Some((Self::Client, false)),
            2 => Some((Self::Handshake, false)),
            3 => Some((Self::Replica, true)),
            4 => Some((Self::Client, true)),
            5 => Some((Self::FrontEnd, false)),
            6 => Some((Self::FrontEnd, true)),
            _ => None,
        }
    }
}

/// One frame, still in the buffer it was received into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Who it is for.
    pub channel: Channel,
    /// The configuration it is for, or is an answer out of. That of a handshake has no meaning.
    pub configuration: ConfigurationId,
    /// What it carries.
    pub payload: &'a [u8],
}

/// Why the bytes received are no frame. Nothing after them can be understood either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The frame says that it is longer than allowed.
    TooLong {
        /// The length it says, in bytes after the length itself.
        length: usize,
        /// The largest one allowed.
        limit: usize,
    },
    /// A frame without a channel, or without a checksum.
    Empty,
    /// No such channel.
    Channel(u8),
    /// The numbers of its group and epoch are none, or name the first configuration.
    Configuration,
    /// What came is not what was sent: the checksum is another one.
    Checksum {
        /// The one that the frame carries.
        carried: u32,
        /// That of its content.
        content: u32,
    },
}

impl FrameError {
    /// True if what came for a frame begins as a record of TLS does (RFC 8446, 5.1): its type, and version 3.
    #[must_use]
    pub fn looks_like_tls(&self) -> bool {
        let Some([kind, major, minor, _]) = self.first_bytes() else { return false };
        (0x14..=0x17).contains(&kind) && major == 3 && minor <= 4
    }

    /// True if what came for a frame begins as a command or a reply of the Redis protocol does, or as a command that somebody types.
    #[must_use]
    pub fn looks_like_redis(&self) -> bool {
        let Some([kind, rest @ ..]) = self.first_bytes() else { return false };
        let is_text = rest.iter().all(|byte| byte.is_ascii_graphic() || b" \r\n".contains(byte));
        let is_digit = rest[0].is_ascii_digit();
        let is_typed = kind.is_ascii_alphabetic() && rest.iter().all(u8::is_ascii_alphabetic);
        !self.looks_like_http()
            && is_text
            && (b"*$:".contains(&kind) && is_digit || b"+-".contains(&kind) || is_typed)
    }

    /// True if what came for a frame begins as a request or an answer of HTTP does.
    #[must_use]
    pub fn looks_like_http(&self) -> bool {
        self.first_bytes().is_some_and(|first| [b"HTTP", b"GET ", b"HEAD", b"POST"].contains(&&first))
    }

    /// The first bytes that came, which were taken for a length. (Text is above the limits
    /// of handshakes and of clients.)
    fn first_bytes(&self) -> Option<[u8; 4]> {
        let Self::TooLong { length, .. } = self else { return None };
        u32::try_from(*length).ok().map(u32::to_le_bytes)
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            error @ Self::TooLong { .. } if error.looks_like_tls() => {
                f.write_str("it speaks TLS, and this end of the connection does not")
            }
            error @ Self::TooLong { .. } if error.looks_like_redis() => f.write_str(
                "it speaks the Redis protocol, and this connection is one between nodes and clients of Syros: Redis clients have a \
                 port of their own (listen.redis), and replicas are asked at those for nodes (listen.replicas)",
            ),
            error @ Self::TooLong { .. } if error.looks_like_http() => f.write_str(
                "it speaks HTTP, and this connection is one between nodes and clients of Syros: metrics have a port of their own \
                 (listen.metrics), and replicas are asked at those for nodes (listen.replicas)",
            ),
            Self::TooLong { length, limit } => {
                write!(f, "a frame of {length} bytes is above the limit of {limit}")
            }
            Self::Empty => f.write_str("a frame without a channel or checksum"),
            Self::Channel(number) => write!(f, "a frame on channel {number}, which does not exist"),
            Self::Configuration => f.write_str("a frame whose group and epoch are malformed"),
            Self::Checksum { carried, content } => write!(
                f,
                "a frame was damaged on its way: its checksum is {carried:08x}, that of its content {content:08x}"
            ),
        }
    }
}

impl core::error::Error for FrameError {}

/// The checksum of a frame's channel and payload.
fn checksum(bytes: &[u8]) -> u32 {
    xxhash_rust::xxh3::xxh3_64(bytes) as u32
}

/// Appends a frame of a handshake, or for the first configuration of the only group, whose payload `write` appends.
///
/// # Panics
/// If the payload is longer than [`FRAME_BYTES_MAX`] allows: whatever is sent is bounded far below.
pub fn put_frame(out: &mut Vec<u8>, channel: Channel, write: impl FnOnce(&mut Vec<u8>)) {
    put_frame_of(out, channel, ConfigurationId::FIRST, write);
}

/// Appends a frame for this configuration whose payload `write` appends. A handshake is for no configuration.
///
/// # Panics
/// See [`put_frame`].
pub fn put_frame_of(
    out: &mut Vec<u8>,
    channel: Channel,
    configuration: ConfigurationId,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    let is_first = configuration == ConfigurationId::FIRST || channel == Channel::Handshake;
    out.extend_from_slice(&[0, 0, 0, 0, channel.number(is_first)]);
    if !is_first {
        put_varint(out, u64::from(configuration.group.0));
        put_varint(out, configuration.epoch.0);
    }
    write(out);
    if channel.is_checked() {
        let checksum = checksum(&out[start + 4..]);
        out.extend_from_slice(&checksum.to_le_bytes());
    }
    let length = out.len() - start - 4;
    assert!(length <= FRAME_BYTES_MAX, "a frame of {length} bytes is above the limit of {FRAME_BYTES_MAX}");
    out[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
}

/// Appends a frame that carries `message`.
///
/// # Panics
/// See [`put_frame`].
pub fn put_message_frame(
    out: &mut Vec<u8>,
    channel: Channel,
    configuration: ConfigurationId,
    message: &Message,
) {
    put_frame_of(out, channel, configuration, |out| encode_message(message, out));
}

/// Appends a frame that carries a message between front ends.
///
/// # Panics
/// See [`put_frame`].
pub fn put_front_end_frame(out: &mut Vec<u8>, configuration: ConfigurationId, message: &FrontEndMessage) {
    put_frame_of(out, Channel::FrontEnd, configuration, |out| message.encode(out));
}

/// A buffer for a frame that goes to several connections, so that its message is encoded once.
#[derive(Debug, Default)]
pub struct FrameBuffer(Vec<u8>);

impl FrameBuffer {
    /// What longer frames take is given back: most are short.
    const BYTES_KEPT_MAX: usize = 64 * 1024;

    /// The frame that carries `message`.
    ///
    /// # Panics
    /// See [`put_frame`].
    pub fn of(&mut self, channel: Channel, configuration: ConfigurationId, message: &Message) -> &[u8] {
        self.0.clear();
        self.0.shrink_to(Self::BYTES_KEPT_MAX);
        put_message_frame(&mut self.0, channel, configuration, message);
        &self.0
    }
}

/// Appends a frame on the clients' channel that carries a `ReadReply` whose result `write` appends.
///
/// # Panics
/// See [`put_frame`].
pub fn put_read_reply_frame(
    out: &mut Vec<u8>,
    configuration: ConfigurationId,
    (view, number): (View, u64),
    write: impl FnOnce(&mut Vec<u8>),
) {
    put_frame_of(out, Channel::Client, configuration, |out| encode_read_reply(out, view, number, write));
}

/// Appends a frame on the clients' channel that carries a `MemberReply`, as [`encode_member_reply`] does.
///
/// # Panics
/// See [`put_frame`].
pub fn put_member_reply_frame(
    out: &mut Vec<u8>,
    configuration: ConfigurationId,
    request: (View, u64),
    applied: OpNumber,
    freshness: Freshness,
    write: impl FnOnce(&mut Vec<u8>) -> WallTime,
) {
    put_frame_of(out, Channel::Client, configuration, |out| {
        encode_member_reply(out, request, applied, freshness, write);
    });
}

/// The first frame in `received` and the number of bytes it takes there; `None` if more bytes must
/// come. `limit` bounds the frame's length as its header tells it.
///
/// # Errors
/// [`FrameError`] if the bytes are no frame.
pub fn split_frame(received: &[u8], limit: usize) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((header, rest)) = received.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*header) as usize;
    if length > limit {
        return Err(FrameError::TooLong { length, limit });
    }
    if length == 0 {
        return Err(FrameError::Empty);
    }
    // The channel is checked as soon as it is there: a peer that speaks something else is found out early.
    let Some(number) = rest.first() else { return Ok(None) };
    let (channel, is_named) = Channel::from_number(*number).ok_or(FrameError::Channel(*number))?;
    let Some(content) = rest.get(..length) else { return Ok(None) };
    let content = if channel.is_checked() { verify(content)? } else { content };
    let mut payload = &content[1..];
    let configuration = if is_named { take_configuration(&mut payload)? } else { ConfigurationId::FIRST };
    Ok(Some((Frame { channel, configuration, payload }, length + 4)))
}

/// Takes group and epoch off the front of a payload.
fn take_configuration(payload: &mut &[u8]) -> Result<ConfigurationId, FrameError> {
    let mut number = || take_varint(payload).map_err(|_| FrameError::Configuration);
    let group = u32::try_from(number()?).map_err(|_| FrameError::Configuration)?;
    let configuration = ConfigurationId { group: GroupId(group), epoch: ConfigurationEpoch(number()?) };
    if configuration == ConfigurationId::FIRST { Err(FrameError::Configuration) } else { Ok(configuration) }
}

/// Channel and payload of a frame that ends with a checksum.
fn verify(frame: &[u8]) -> Result<&[u8], FrameError> {
    let Some((content, carried)) = frame.split_last_chunk().filter(|(content, _)| !content.is_empty()) else {
        return Err(FrameError::Empty);
    };
    let (carried, content_sum) = (u32::from_le_bytes(*carried), checksum(content));
    if carried != content_sum {
        return Err(FrameError::Checksum { carried, content: content_sum });
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_golden_bytes_and_come_back() {
        let mut out = vec![0xee];
        put_frame(&mut out, Channel::Client, |out| out.extend_from_slice(b"abc"));
        let first = ConfigurationId::FIRST;
        put_message_frame(&mut out, Channel::Replica, first, &Message::WrongView { view: View(7) });
        put_read_reply_frame(&mut out, first, (View(7), 9), |out| out.push(0xaa));
        put_frame(&mut out, Channel::Handshake, |out| out.extend_from_slice(b"hello"));
        let first = [8, 0, 0, 0, 1, b'a', b'b', b'c', 153, 170, 110, 199];
        let second = [7, 0, 0, 0, 0, 23, 7, 210, 251, 24, 252];
        let third = [9, 0, 0, 0, 1, 20, 7, 9, 0xaa, 238, 35, 37, 140];
        let fourth = [6, 0, 0, 0, 2, b'h', b'e', b'l', b'l', b'o'];
        assert_eq!(out, [&[0xee][..], &first, &second, &third, &fourth].concat());

        let mut rest = &out[1..];
        for (channel, frame) in [
            (Channel::Client, &first[..]),
            (Channel::Replica, &second),
            (Channel::Client, &third),
            (Channel::Handshake, &fourth),
        ] {
            let checksum_bytes = if channel == Channel::Handshake { 0 } else { 4 };
            let payload = &frame[5..frame.len() - checksum_bytes];
            for length in 0..frame.len() {
                assert_eq!(split_frame(&rest[..length], 100), Ok(None));
            }
            let (frame, length) = split_frame(rest, 100).unwrap().unwrap();
            assert_eq!(frame, Frame { channel, configuration: ConfigurationId::FIRST, payload });
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn a_buffered_frame_is_the_same_and_long_ones_are_not_kept() {
        let mut buffer = FrameBuffer::default();
        let body = vec![7; 4 * FrameBuffer::BYTES_KEPT_MAX];
        let long = Message::ReadReply { view: View(1), number: 2, reply: body.into() };
        for message in [Message::WrongView { view: View(7) }, long, Message::WrongView { view: View(8) }] {
            let mut expected = Vec::new();
            put_message_frame(&mut expected, Channel::Client, ConfigurationId::FIRST, &message);
            assert_eq!(buffer.of(Channel::Client, ConfigurationId::FIRST, &message), expected);
        }
        assert!(buffer.0.capacity() <= FrameBuffer::BYTES_KEPT_MAX);
    }

    #[test]
    fn no_flipped_bit_passes() {
        let mut sent = Vec::new();
        put_frame(&mut sent, Channel::Client, |out| out.extend_from_slice(&[7; 300]));
        // What the length says is another matter: the frame ends where its checksum is not.
        for bit in 4 * 8..sent.len() * 8 {
            let mut frame = sent.clone();
            frame[bit / 8] ^= 1 << (bit % 8);
            match split_frame(&frame, 1000) {
                Err(FrameError::Checksum { .. } | FrameError::Channel(_)) => {}
                // A handshake has no checksum, and is taken at the beginning of a connection only.
                Ok(Some((Frame { channel: Channel::Handshake, .. }, _))) => assert_eq!(bit / 8, 4),
                other => panic!("bit {bit}: {other:?}"),
            }
        }
        for short in 1..=4_u8 {
            assert_eq!(split_frame(&[short, 0, 0, 0, 1, 0, 0, 0], 10), Err(FrameError::Empty));
        }
    }

    #[test]
    fn bad_frames_are_refused_as_early_as_possible() {
        assert_eq!(split_frame(&[11, 0, 0, 0], 10), Err(FrameError::TooLong { length: 11, limit: 10 }));
        assert_eq!(split_frame(&[10, 0, 0, 0], 10), Ok(None));
        assert_eq!(split_frame(&[0, 0, 0, 0], 10), Err(FrameError::Empty));
        assert_eq!(split_frame(&[9, 0, 0, 0, 7], 10), Err(FrameError::Channel(7)));
    }

    #[test]
    fn frames_of_later_configurations_name_group_and_epoch() {
        let later = ConfigurationId { group: GroupId(0), epoch: ConfigurationEpoch(1) };
        let other = ConfigurationId { group: GroupId(300), epoch: ConfigurationEpoch(2) };
        for (configuration, channel, bytes) in [
            (later, Channel::Client, &[4, 0, 1, b'a', b'b'][..]),
            (later, Channel::FrontEnd, &[6, 0, 1, b'a', b'b']),
            (other, Channel::Replica, &[3, 0xac, 2, 2, b'a', b'b']),
        ] {
            let mut out = Vec::new();
            put_frame_of(&mut out, channel, configuration, |out| out.extend_from_slice(b"ab"));
            assert_eq!(out[4..out.len() - CHECKSUM_BYTES], *bytes);
            let (frame, length) = split_frame(&out, 100).unwrap().unwrap();
            assert_eq!((frame, length), (Frame { channel, configuration, payload: b"ab" }, out.len()));
        }
    }

    #[test]
    fn malformed_configurations_are_refused() {
        // The first configuration spelled out, a group of more than 32 bits, a number too long, and no epoch.
        for numbers in [&[0, 0][..], &[0x80, 0x80, 0x80, 0x80, 0x10, 1], &[0x80, 0, 1], &[7]] {
            let mut out = vec![0, 0, 0, 0, 4];
            out.extend_from_slice(numbers);
            let sum = checksum(&out[4..]);
            out.extend_from_slice(&sum.to_le_bytes());
            out[0] = (out.len() - 4) as u8;
            assert_eq!(split_frame(&out, 100), Err(FrameError::Configuration), "{numbers:?}");
        }
    }

    #[test]
    fn what_is_spoken_instead_is_recognized() {
        let error = |first: &[u8]| split_frame(first, CLIENT_FRAME_BYTES_MAX).unwrap_err();
        for redis in [&b"*2\r\n$3\r\nGET\r\n"[..], b"PING\r\n", b"-ERR no\r\n", b"+PONG\r\n", b"$12\r\n"] {
            assert!(error(redis).looks_like_redis(), "{redis:?}");
            assert!(error(redis).to_string().starts_with("it speaks the Redis protocol"));
        }
        for http in [&b"GET /livez HTTP/1.1\r\n"[..], b"HTTP/1.1 400 Bad Request\r\n"] {
            assert!(error(http).looks_like_http() && !error(http).looks_like_redis(), "{http:?}");
        }
        let tls = error(b"\x16\x03\x01\x02\x00");
        assert!(tls.looks_like_tls() && !tls.looks_like_redis() && !tls.looks_like_http());
        let garbage = error(b"\xff\xff\xff\xff");
        assert!(!garbage.looks_like_tls() && !garbage.looks_like_redis() && !garbage.looks_like_http());
    }
}
