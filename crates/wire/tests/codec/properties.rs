//! What holds of every message and record.

use crate::random::{MESSAGE_KINDS, RECORD_KINDS, describe, message, record, snapshot_head};
use syros_protocol::message::Message;
use syros_types::{Prng, View};
use syros_wire::{
    Hello, Malformed, decode_client_message, decode_message, decode_record, decode_snapshot_head,
    encode_message, encode_read_reply, encode_record, encode_snapshot_head, split_frame, tag,
};

fn encoded(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    encode_message(message, &mut out);
    out
}

#[test]
fn every_message_comes_back() {
    let mut prng = Prng::new(1);
    for round in 0..400 * MESSAGE_KINDS {
        let message = message(&mut prng, round % MESSAGE_KINDS);
        let bytes = encoded(&message);
        assert_eq!(decode_message(&bytes, describe).as_ref(), Ok(&message));
        let about_snapshots = tag::message::SNAPSHOT_OFFER..=tag::message::SNAPSHOT_PART;
        let about_members = tag::message::GET_CONFIGURATION..=tag::message::CONFIGURATION;
        let is_for_clients = bytes[0] < tag::message::PREPARE
            || about_snapshots.contains(&bytes[0])
            || about_members.contains(&bytes[0]);
        match decode_client_message(&bytes) {
            Ok(decoded) => assert!(is_for_clients && decoded == message, "{message:?}"),
            Err(error) => {
                assert!(!is_for_clients, "{message:?}");
                assert_eq!(error, Malformed::NotForClients { tag: bytes[0] });
            }
        }
    }
}

#[test]
fn every_record_comes_back() {
    let mut prng = Prng::new(2);
    for round in 0..1000 * RECORD_KINDS {
        let record = record(&mut prng, round % RECORD_KINDS);
        let mut bytes = vec![0xee];
        encode_record(&record, &mut bytes);
        assert_eq!(decode_record(&bytes[1..], describe), Ok(record));
    }
}

#[test]
fn every_snapshot_head_comes_back() {
    let mut prng = Prng::new(9);
    for _ in 0..1000 {
        let head = snapshot_head(&mut prng);
        let mut bytes = Vec::new();
        encode_snapshot_head(&head, &mut bytes);
        assert_eq!(decode_snapshot_head(&bytes).as_ref(), Ok(&head));
        for length in 0..bytes.len() {
            assert_eq!(decode_snapshot_head(&bytes[..length]), Err(Malformed::Truncated));
        }
        mutate(&mut prng, &mut bytes);
        let _ = decode_snapshot_head(&bytes);
    }
}

/// True if the message ends with bytes that may be any number of bytes.
fn ends_with_a_body(message: &Message) -> bool {
    matches!(
        message,
        Message::Request { .. }
            | Message::Read { .. }
            | Message::Committed { .. }
            | Message::ReadReply { .. }
            | Message::MemberReply { .. }
            | Message::Evaluated { .. }
            | Message::SnapshotPart { .. }
    )
}

#[test]
fn a_truncated_message_is_refused() {
    let mut prng = Prng::new(3);
    for round in 0..40 * MESSAGE_KINDS {
        let message = message(&mut prng, round % MESSAGE_KINDS);
        let bytes = encoded(&message);
        for length in 0..bytes.len() {
            let decoded = decode_message(&bytes[..length], describe);
            if ends_with_a_body(&message) {
                // What is cut off may have been a part of the body only: the frame's length guards it.
                assert!(decoded.is_err() || decoded.as_ref().map(encoded).as_deref() == Ok(&bytes[..length]));
            } else {
                assert_eq!(decoded, Err(Malformed::Truncated), "{message:?} cut to {length} bytes");
            }
        }
        if !ends_with_a_body(&message) {
            let longer = [&bytes[..], &[0, 1]].concat();
            assert_eq!(decode_message(&longer, describe), Err(Malformed::Trailing { bytes: 2 }));
        }
    }
}

#[test]
fn a_truncated_record_is_refused() {
    let mut prng = Prng::new(4);
    for round in 0..100 * RECORD_KINDS {
        let record = record(&mut prng, round % RECORD_KINDS);
        let mut bytes = Vec::new();
        encode_record(&record, &mut bytes);
        for length in 0..bytes.len() {
            assert_eq!(decode_record(&bytes[..length], describe), Err(Malformed::Truncated));
        }
        bytes.extend_from_slice(&[0, 1, 2]);
        assert_eq!(decode_record(&bytes, describe), Err(Malformed::Trailing { bytes: 3 }));
    }
}

/// Changes a few bytes: at random, or to values that are likely to matter.
fn mutate(prng: &mut Prng, bytes: &mut [u8]) {
    const INTERESTING: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff];
    for _ in 0..=prng.below(3) {
        let index = prng.below(bytes.len() as u64) as usize;
        bytes[index] = match prng.below(3) {
            0 => prng.next_u64() as u8,
            1 => INTERESTING[prng.below(8) as usize],
            _ => bytes[index] ^ (1 << prng.below(8)),
        };
    }
}

#[test]
fn damaged_bytes_never_panic_and_what_decodes_has_one_encoding() {
    let mut prng = Prng::new(5);
    let (mut refused, mut accepted) = (0, 0);
    for round in 0..2000 * MESSAGE_KINDS {
        let mut bytes = encoded(&message(&mut prng, round % MESSAGE_KINDS));
        mutate(&mut prng, &mut bytes);
        match decode_message(&bytes, describe) {
            Ok(message) => {
                assert_eq!(encoded(&message), bytes);
                accepted += 1;
            }
            Err(_) => refused += 1,
        }
        if let Ok(message) = decode_client_message(&bytes) {
            assert_eq!(encoded(&message), bytes);
        }
        let _ = (split_frame(&bytes, 1 << 20), Hello::decode(&bytes));
    }
    for round in 0..4000 * RECORD_KINDS {
        let mut bytes = Vec::new();
        encode_record(&record(&mut prng, round % RECORD_KINDS), &mut bytes);
        mutate(&mut prng, &mut bytes);
        match decode_record(&bytes, describe) {
            Ok(record) => {
                let mut again = Vec::new();
                encode_record(&record, &mut again);
                assert_eq!(again, bytes);
                accepted += 1;
            }
            Err(_) => refused += 1,
        }
    }
    // Both happen often, or the test shows nothing.
    assert!(refused > 5000 && accepted > 5000, "{refused} refused, {accepted} accepted");
}

#[test]
fn random_bytes_never_panic() {
    let mut prng = Prng::new(6);
    for _ in 0..50_000 {
        let mut bytes: Vec<u8> = (0..prng.below(60)).map(|_| prng.next_u64() as u8).collect();
        if let Some(first) = bytes.first_mut() {
            *first = prng.below(48) as u8;
        }
        let _ = decode_message(&bytes, describe);
        let _ = decode_client_message(&bytes);
        let _ = decode_record(&bytes, describe);
    }
}

#[test]
fn an_operation_that_the_state_machine_does_not_know_is_refused_in_the_log_only() {
    // A log entry: view 1, time, update, of session 1, sequence 1, clock, distance 0, one byte: 0xff.
    let entry = [1, 8, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff];
    let transfer = [&[tag::record::TRANSFER, 0, 1][..], &entry].concat();
    assert_eq!(decode_record(&transfer, describe), Err(Malformed::Operation));
    let state = [&[tag::message::NEW_STATE, 1, 1, 0, 1][..], &entry].concat();
    assert_eq!(decode_message(&state, describe), Err(Malformed::Operation));
    // A replica that gets it from a client answers with a refusal, so it must get through.
    let accept = [&[tag::record::ACCEPT][..], &entry[10..]].concat();
    assert!(decode_record(&accept, describe).is_ok());
}

#[test]
fn lengths_are_checked_before_memory_is_reserved() {
    // Counts and lengths of 2^40, in the place of every list and body.
    let huge = [0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
    for start in [
        &[tag::message::PREPARE, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
        &[tag::message::FETCH_BODIES, 1],
        &[tag::message::BODIES, 1],
        &[tag::message::NEW_STATE, 1, 1, 1],
        &[tag::message::DO_VIEW_CHANGE, 1, 1, 1, 1, 0],
        &[tag::message::PREPARE, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4],
    ] {
        let bytes = [start, &huge].concat();
        assert_eq!(decode_message(&bytes, describe), Err(Malformed::Truncated), "{start:?}");
    }
    let accept = [&[tag::record::ACCEPT, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &huge].concat();
    let limit = syros_types::limits::BODY_BYTES_MAX as u64;
    let error = Malformed::TooLong { what: "operation", length: 1 << 40, limit };
    assert_eq!(decode_record(&accept, describe), Err(error));
}

#[test]
fn an_operation_above_the_limit_is_refused() {
    let limit = syros_types::limits::BODY_BYTES_MAX;
    let mut bytes = vec![tag::message::READ, 1, 1];
    bytes.resize(3 + limit, 0);
    assert!(decode_client_message(&bytes).is_ok());
    bytes.push(0);
    let error = Malformed::TooLong { what: "operation", length: limit as u64 + 1, limit: limit as u64 };
    assert_eq!(decode_client_message(&bytes), Err(error));
}

#[test]
fn a_read_reply_written_in_place_is_the_same() {
    let reply: syros_protocol::message::Body = (0..100).collect();
    let message = Message::ReadReply { view: View(300), number: 70_000, reply: reply.clone() };
    let mut out = Vec::new();
    encode_read_reply(&mut out, View(300), 70_000, |out| out.extend_from_slice(&reply));
    assert_eq!(out, encoded(&message));
}
