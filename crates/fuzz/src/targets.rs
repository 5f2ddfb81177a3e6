//! The targets: each takes any bytes, panics if something is wrong, and says whether it accepted the input.

use crate::seeds::{self, describe};
use core::time::Duration;
use std::convert::Infallible;
use syros_commands::acl::{User, UserChange, Users, hide_passwords};
use syros_commands::rdb::Format;
use syros_commands::{ReplyRef, rdb};
use syros_rdb::{FileWriter, Item, RdbError, commands, read_file};
use syros_resp::{
    Completion, Connection, Context, Identity, MessageAnswer, MessageRequest, ProcessAnswer, Protocol,
    PushedMessage, ServerInfo, ServerReport, SubscriptionChange, read_bulk_head, read_reply, write_reply,
};
use syros_scripts::{Host, Input, Limits, Reply as ScriptReply};
use syros_storage::{Engine, MemoryEngine};
use syros_types::{
    Class, ConfigurationEpoch, ConfigurationId, Description, Footprint, GroupId, OpNumber, Prng, ReplicaId,
    SubscriptionKind, WallTime,
};
use syros_values::{Value, ValueBuilder, ValueParts};
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{Disk as _, Options, Wal};

/// Something that reads bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Reads an input; true if it accepts it.
    pub run: fn(&[u8]) -> bool,
    /// Inputs to begin with.
    pub seeds: fn(&mut Prng) -> Vec<Vec<u8>>,
}

/// Every target.
pub const TARGETS: [Target; 16] = [
    Target { name: "encoded_reply", run: encoded_reply, seeds: seeds::replies },
    Target { name: "operation_body", run: operation_body, seeds: seeds::bodies },
    Target { name: "rdb_file", run: rdb_file, seeds: seeds::rdb_files },
    Target { name: "rdb_payload", run: rdb_payload, seeds: seeds::payloads },
    Target { name: "received_reply", run: received_reply, seeds: seeds::received_replies },
    Target { name: "resp_connection", run: resp_connection, seeds: seeds::requests },
    Target { name: "script", run: script, seeds: seeds::scripts },
    Target { name: "stored_value", run: stored_value, seeds: seeds::values },
    Target { name: "user_rules", run: user_rules, seeds: seeds::user_rules },
    Target { name: "users", run: users, seeds: seeds::users },
    Target { name: "wal_segment", run: wal_segment, seeds: seeds::segments },
    Target { name: "wire_front_end", run: wire_front_end, seeds: seeds::front_end_messages },
    Target { name: "wire_hello", run: wire_hello, seeds: seeds::hellos },
    Target { name: "wire_message", run: wire_message, seeds: seeds::messages },
    Target { name: "wire_record", run: wire_record, seeds: seeds::records },
    Target { name: "wire_snapshot_head", run: wire_snapshot_head, seeds: seeds::snapshot_heads },
];

/// Replies as a client receives them from a replica.
#[must_use]
pub fn encoded_reply(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Ok(reply) = ReplyRef::decode(&mut rest) {
        let mut out = Vec::new();
        write_reply(&mut out, Protocol::Resp2, reply);
        write_reply(&mut out, Protocol::Resp3, reply);
        if rest.is_empty() {
            return true;
        }
    }
    false
}

/// Operations as replicas receive them: described, and executed if they are any. What is said of them before they are
/// executed is so, and reads of named keys find the same on a clone.
///
/// # Panics
/// If it is not so.
#[must_use]
pub fn operation_body(bytes: &[u8]) -> bool {
    let described = syros_commands::describe(bytes);
    if described.is_ok() {
        assert!(syros_commands::operations(bytes).all(|operation| operation.is_ok()));
    }
    let mut engine = MemoryEngine::new();
    let (mut reply, mut evaluated) = (Vec::new(), Vec::new());
    let is_certain = engine.evaluate(bytes, &mut evaluated);
    engine.begin_entry(OpNumber(1));
    engine.apply(WallTime(1_000_000), bytes, &mut reply);
    assert!(!is_certain || evaluated == reply, "{}", bytes.escape_ascii());
    let executed = reply.len();
    engine.read(WallTime(1_000_000), bytes, &mut reply);
    let is_detachable = |it: &Description| it.class == Class::Read && it.footprint != Footprint::All;
    if described.as_ref().is_ok_and(is_detachable) {
        let mut detached = reply[..executed].to_vec();
        engine.detach(WallTime(1_000_000), bytes).put(&mut detached);
        assert_eq!(detached, reply, "{}", bytes.escape_ascii());
    }
    let mut rest = reply.as_slice();
    while !rest.is_empty() {
        ReplyRef::decode(&mut rest).expect("an engine's reply decodes");
    }
    described.is_ok()
}

/// Values as RESTORE takes them, without their version and checksum, which hide all else from a fuzzer. What is accepted can
/// be dumped, and restored to the same value.
///
/// # Panics
/// If it is not so.
#[must_use]
pub fn rdb_payload(bytes: &[u8]) -> bool {
    let restore = |typed: &[u8]| rdb::restore_checked(&[typed, &[0; 10]].concat());
    let Ok(value) = restore(bytes) else { return false };
    let dumped = rdb::dump(&value, usize::MAX).expect("there is no limit");
    let again = rdb::restore(&dumped).expect("what was dumped can be restored");
    let [value, again] = [value, again].map(|value| {
        let mut encoded = Vec::new();
        value.put(&mut encoded);
        encoded
    });
    assert_eq!(value, again);
    true
}

/// An RDB file, without the checksum at its end: that it has none hides nothing from a fuzzer. What is in it can be written, and
/// read again.
///
/// # Panics
/// If it is not so.
#[must_use]
pub fn rdb_file(bytes: &[u8]) -> bool {
    let mut writer = FileWriter::create(Vec::new(), Format::Redis74, "fuzz").expect("memory takes it");
    let mut keys = 0;
    let read = read_file(&[bytes, &[0; 8]].concat()[..], |item| {
        if let Item::Piece(place, piece) = item
            && let Ok(value) = rdb::value_of(&piece.typed, 1 << 24)
        {
            keys += 1;
            let typed = rdb::typed(&value, Format::Redis74).expect("the newest format has all");
            writer.key(place.database, &place.key, place.expiry_ms, &typed).expect("memory takes it");
            commands(&place.key, &value, &mut |_| Ok::<(), RdbError>(()))?;
        }
        Ok::<(), RdbError>(())
    });
    let written = writer.finish().expect("memory takes it");
    let mut again = 0;
    let summary = read_file(&written[..], |item| {
        again += usize::from(matches!(item, Item::Piece(..)));
        Ok::<(), RdbError>(())
    });
    assert!(summary.is_ok_and(|summary| summary.is_checked) && again == keys);
    read.is_ok()
}

/// What a server answers a client.
#[must_use]
pub fn received_reply(bytes: &[u8]) -> bool {
    let _ = read_bulk_head(&mut { bytes });
    read_reply(&mut { bytes }, 1 << 16).is_ok()
}

struct NoServer;

impl ServerInfo for NoServer {
    fn report(&self) -> ServerReport {
        ServerReport::default()
    }
    fn reset_statistics(&self) {}
}

/// An answer to what a connection asks of the registry of subscriptions.
fn answer_to(request: &MessageRequest) -> MessageAnswer {
    let subscriptions = |names: &[Vec<u8>], left| {
        let change = |name: &Vec<u8>| SubscriptionChange { name: Some(name.clone()), left };
        MessageAnswer::Subscriptions { changes: names.iter().map(change).collect(), held: [left, 0, 0] }
    };
    match request {
        MessageRequest::Subscribe { names, .. } => subscriptions(names, names.len()),
        MessageRequest::Unsubscribe { names, .. } => subscriptions(names, 0),
        MessageRequest::UnsubscribeAll => subscriptions(&[], 0),
        MessageRequest::Publish { .. } | MessageRequest::Patterns => MessageAnswer::Count(1),
        MessageRequest::Names { pattern, .. } => MessageAnswer::Names(pattern.iter().cloned().collect()),
        MessageRequest::Counts { names, .. } => {
            MessageAnswer::Counts(names.iter().map(|name| (name.clone(), 2)).collect())
        }
    }
}

/// What a Redis client may send, in pieces as long as the first byte says; every submission is answered. Accepts what
/// holds an operation.
#[must_use]
pub fn resp_connection(input: &[u8]) -> bool {
    let Some((piece, bytes)) = input.split_first() else { return false };
    let identity = Identity { id: 1, address: String::new(), local_address: String::new() };
    let mut connection = Connection::new(identity, WallTime(0));
    let context = Context { now: WallTime(0), info: &NoServer, unavailable: None };
    let (mut start, mut end, mut submissions) = (0, 0, 0);
    while end < bytes.len() {
        end = (end + 1 + usize::from(*piece)).min(bytes.len());
        start += connection.receive(&bytes[start..end], &context);
        while let Some(submission) = connection.poll_submit() {
            assert!(syros_commands::describe(&submission.body).is_ok());
            connection.complete(submission.slot, Completion::Unknown);
            submissions += 1;
        }
        while let Some(requests) = connection.poll_messages() {
            let answers: Vec<MessageAnswer> = requests.iter().map(answer_to).collect();
            connection.answer_messages(&answers);
            connection.push(&PushedMessage {
                kind: SubscriptionKind::Channel,
                pattern: requests.len().is_multiple_of(2).then_some(b"*"),
                channel: b"a",
                payload: bytes,
            });
        }
        if connection.take_request().is_some() {
            let answer = ProcessAnswer::Text(b"id=1\n".to_vec());
            connection.answer_request(&answer, Duration::from_secs(1), WallTime(0));
        }
        let written = connection.output().len();
        connection.sent(written);
    }
    submissions > 0
}

/// Answers the commands of a script by what they are, and takes notes.
#[derive(Default)]
struct Notes {
    called: Vec<Vec<u8>>,
}

impl Host for Notes {
    fn call(&mut self, words: &[&[u8]], is_newer: bool, _: u64) -> (ScriptReply, u64) {
        let all = words.join(&b' ');
        let bulk = |bytes: &[u8]| ScriptReply::Bulk(bytes.to_vec());
        let reply = match all.len() % 9 {
            0 => ScriptReply::Nil,
            1 => ScriptReply::Integer(all.len() as i64),
            2 => bulk(&all),
            3 => ScriptReply::Status(b"OK".to_vec()),
            4 => ScriptReply::Error(b"ERR no".to_vec()),
            5 => ScriptReply::Array(words.iter().map(|word| bulk(word)).collect()),
            6 => ScriptReply::Map(vec![(bulk(b"k"), ScriptReply::Double(-0.0))]),
            7 => ScriptReply::Set(vec![bulk(b"b"), bulk(b"a")]),
            _ => ScriptReply::Double(if is_newer { f64::INFINITY } else { 0.1 }),
        };
        self.called.push(all);
        (reply, 10)
    }

    fn is_doomed(&self) -> bool {
        false
    }
}

/// Texts of scripts, and of libraries. What one does follows from its text alone: it ends alike each time and has called
/// the same, whatever ran in between. Accepts what compiles.
///
/// # Panics
/// If that is not so.
#[must_use]
pub fn script(text: &[u8]) -> bool {
    const FUEL: u64 = 20_000;
    let limits = Limits { fuel: FUEL, seed: 7, counts_script_alone: true };
    let input = Input { keys: &[b"k", b"l"], arguments: &[b"-1", b"", b"\xff\0"] };
    let run = || {
        let mut host = Notes::default();
        let outcome = syros_scripts::run(text, input, limits, &mut host);
        // Numbers that are none differ from themselves.
        (format!("{outcome:?}"), host.called)
    };
    let (first, library) = (run(), syros_scripts::library(text, limits));
    if let Ok(functions) = &library {
        let call = || {
            let mut host = Notes::default();
            let outcome = syros_scripts::call(text, &functions[0].name, input, limits, &mut host);
            (format!("{outcome:?}"), host.called)
        };
        assert_eq!(call(), call());
    }
    assert_eq!(syros_scripts::library(text, limits), library);
    assert_eq!(run(), first);
    syros_scripts::check(text).is_ok() || library.is_ok()
}

/// Rules of ACL SETUSER, a line each. What the rules make of a user can be stored and is the same when it is read back: nodes
/// could not start otherwise. What hides passwords leaves none.
///
/// # Panics
/// If it is not so.
#[must_use]
pub fn user_rules(bytes: &[u8]) -> bool {
    let rules: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    for (rule, shown) in rules.iter().zip(hide_passwords(&rules)) {
        assert!(!(rule.starts_with(b">") && rule.len() > 1) || shown != *rule);
    }
    let mut users = Users::default();
    let is_good = users.set(b"u", &rules, UserChange::Always).is_ok();
    let again = Users::decode(&users.encode());
    assert_eq!(again.as_ref(), Ok(&users));
    for user in users.iter() {
        assert_eq!(User::of_text(&user.user().describe()).as_ref(), Ok(user.user()));
        let _ = user.user().check(&[b"mget", b"k", b"l"]);
    }
    is_good
}

/// Values as they are found in snapshots and on disk. What is accepted has been written in the only way that there is, and
/// its parts make the same value.
///
/// # Panics
/// If it is not so.
#[must_use]
pub fn stored_value(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let Ok(value) = Value::take(&mut rest) else { return false };
    let mut again = Vec::new();
    value.put(&mut again);
    assert_eq!(again, bytes[..bytes.len() - rest.len()]);
    if let Some(mut parts) = ValueParts::of(&value) {
        let mut head = Vec::new();
        parts.put_head(&mut head);
        let mut builder = ValueBuilder::take_head(&mut &head[..]).expect("a head");
        while !parts.is_complete() {
            let mut part = Vec::new();
            parts.put_part(50, &mut part);
            builder.part(&part).expect("a part");
        }
        assert_eq!(builder.finish().fingerprint(), value.fingerprint());
    }
    true
}

/// Users as a front end gets them from a replica: what is read is written as it was, or as the same users.
///
/// # Panics
/// If it is not so.
#[must_use]
pub fn users(bytes: &[u8]) -> bool {
    let Ok(users) = Users::decode(bytes) else { return false };
    assert_eq!(Users::decode(&users.encode()).as_ref(), Ok(&users));
    for user in users.iter() {
        let _ = user.user().check(&[b"mget", b"k", b"l"]);
        let _ = user.user().accepts(b"password");
    }
    true
}

/// A segment of the write-ahead log as found on disk: whole records, then bytes changed and the end
/// cut off. What is recovered is a prefix of what was written; anything else never panics.
///
/// The input: how many records, the length of each and its bytes; two bytes of how much is cut off; changes of three
/// bytes each.
///
/// # Panics
/// If a log in memory cannot be written.
#[must_use]
pub fn wal_segment(input: &[u8]) -> bool {
    let Some((count, mut rest)) = input.split_first() else { return false };
    let mut payloads = Vec::new();
    for _ in 0..count % 16 {
        let Some((length, after)) = rest.split_first() else { break };
        let (payload, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        if !payload.is_empty() {
            payloads.push(payload);
        }
    }
    let (cut, changes) = match rest {
        [low, high, changes @ ..] => (usize::from(u16::from_le_bytes([*low, *high])), changes),
        _ => (0, rest),
    };
    let mut disk = MemoryDisk::new();
    let options = Options { may_create: true, reserve_bytes: 64, ..Options::new(7, ReplicaId(1)) };
    let opened = Wal::open(disk.clone(), options, |_, _| Ok::<(), Infallible>(()));
    let Ok((mut wal, _)) = opened else { panic!("a new log opens") };
    for payload in &payloads {
        wal.append(&[payload]).expect("there is room");
    }
    wal.flush().expect("the disk works");
    wal.sync().expect("the disk works");
    let name = disk.list().expect("the disk works").into_iter().find(|name| name.ends_with(".log"));
    let mut bytes = disk.contents(&name.expect("there is a segment")).expect("it can be read");
    for change in changes.as_chunks::<3>().0 {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[at] ^= change[2];
    }
    bytes.truncate(bytes.len().saturating_sub(cut));
    let Ok(contents) = syros_wal::recover_segment(&bytes) else { return false };
    for (recovered, written) in contents.records.iter().zip(&payloads) {
        assert_eq!(recovered, written);
    }
    assert!(contents.records.len() <= payloads.len());
    true
}

/// Messages between front ends: one that decodes encodes to the same bytes.
#[must_use]
pub fn wire_front_end(bytes: &[u8]) -> bool {
    let Ok(message) = syros_wire::FrontEndMessage::decode(bytes) else { return false };
    let mut encoded = Vec::new();
    message.encode(&mut encoded);
    assert_eq!(encoded, bytes, "a message has one encoding");
    true
}

/// The first bytes of every connection.
#[must_use]
pub fn wire_hello(bytes: &[u8]) -> bool {
    let Ok(hello) = syros_wire::Hello::decode(bytes) else { return false };
    let mut encoded = Vec::new();
    hello.encode_as(syros_wire::Hello::version_of_answer(bytes), &mut encoded);
    assert_eq!(encoded, bytes, "a handshake of one version has one encoding");
    true
}

/// A message that decodes encodes to something that decodes to the same message.
#[must_use]
pub fn wire_message(bytes: &[u8]) -> bool {
    if let Ok(Some((frame, length))) = syros_wire::split_frame(bytes, 1 << 20) {
        let mut again = Vec::new();
        let put = |out: &mut Vec<u8>| out.extend_from_slice(frame.payload);
        syros_wire::put_frame_of(&mut again, frame.channel, frame.configuration, put);
        assert_eq!(again, bytes[..length], "a frame has one encoding");
    }
    let _ = syros_wire::decode_client_message(bytes);
    let Ok(message) = syros_wire::decode_message(bytes, describe) else { return false };
    let mut encoded = Vec::new();
    syros_wire::encode_message(&message, &mut encoded);
    assert_eq!(syros_wire::decode_message(&encoded, describe).ok(), Some(message));
    true
}

/// A record that decodes encodes to something that decodes to the same record.
#[must_use]
pub fn wire_record(bytes: &[u8]) -> bool {
    let later = ConfigurationId { group: GroupId(1), epoch: ConfigurationEpoch(130) };
    if let Ok(record) = syros_wire::decode_record_of(later, bytes, describe) {
        let mut encoded = Vec::new();
        syros_wire::encode_record_of(later, &record, &mut encoded);
        assert_eq!(syros_wire::decode_record_of(later, &encoded, describe).ok(), Some(record));
    }
    let Ok(record) = syros_wire::decode_record(bytes, describe) else { return false };
    let mut encoded = Vec::new();
    syros_wire::encode_record(&record, &mut encoded);
    assert_eq!(syros_wire::decode_record(&encoded, describe).ok(), Some(record));
    true
}

/// The head of a snapshot that decodes encodes to something that decodes to the same head.
#[must_use]
pub fn wire_snapshot_head(bytes: &[u8]) -> bool {
    let Ok(head) = syros_wire::decode_snapshot_head(bytes) else { return false };
    let mut encoded = Vec::new();
    syros_wire::encode_snapshot_head(&head, &mut encoded);
    assert_eq!(syros_wire::decode_snapshot_head(&encoded).ok(), Some(head));
    true
}
