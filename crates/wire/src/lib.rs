//! Bytes to messages and back.
//!
//! One hand-written format for what travels between processes ([`encode_message`]) and for what lies
//! in the write-ahead log ([`encode_record`]). It has no padding, no schema and no choices: a value has
//! exactly one encoding, and bytes that decode encode to themselves again.
//!
//! | piece | bytes |
//! |---|---|
//! | small number (view, op number, session, sequence, count, length) | varint: 7 bits a byte, low bits first, high bit set on all but the last byte; no needless bytes |
//! | clock reading | 8 bytes, little-endian |
//! | `acked_below` of a request | varint of `sequence - acked_below` (wrapping), for that is small |
//! | enumeration | one byte, its tag |
//! | list | count, then the elements |
//! | body, in a list | length, then the bytes |
//! | body, last in a message | the bytes, up to the end of the message |
//! | message, record | tag, then the fields in the order of their declaration |
//!
//! Tags are listed in [`mod@tag`]. **A tag that was ever in a release keeps its meaning for ever; one that is
//! no longer used is retired, and its number never given to anything else.** A change of the layout
//! behind a tag is a new tag; a change that old processes must not overlook is a new
//! [`VERSION`] of the wire format, which the handshake ([`Hello`]) compares.
//!
//! Decoding trusts nothing: counts and lengths are compared with what is left of the input before
//! memory is reserved, so that memory use is bounded by a constant times the length of the input.
#![forbid(unsafe_code)]

mod authentication;
mod error;
mod frame;
mod front_end;
mod hello;
mod message;
mod parts;
mod primitive;
mod record;
pub mod tag;

pub use authentication::{NONCE_BYTES, Nonce, Proof, Secret, SecretLength, Side};
pub use error::Malformed;
pub use frame::{
    CLIENT_FRAME_BYTES_MAX, Channel, FRAME_HEADER_BYTES, FRAME_OVERHEAD_BYTES, Frame, FrameBuffer,
    FrameError, put_frame, put_frame_of, put_front_end_frame, put_member_reply_frame, put_message_frame,
    put_read_reply_frame, split_frame,
};
pub use front_end::{FrontEndMessage, Interest};
pub use hello::{
    ANY_CLUSTER, HANDSHAKE_BYTES_MAX, HandshakeMessage, Hello, HelloError, LEARNS_SINCE, Member,
    REPLACED_SINCE, RESIZED_SINCE, Sender, VERSION, VERSION_MIN,
};
pub use message::{
    decode_client_message, decode_message, encode_member_reply, encode_message, encode_read_reply, version_of,
};
pub use record::{
    decode_record, decode_record_of, decode_snapshot_head, encode_record, encode_record_of,
    encode_snapshot_head,
};
