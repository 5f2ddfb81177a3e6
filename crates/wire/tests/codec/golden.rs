//! The bytes of every kind of message and record. A failing test here means that processes and data
//! directories of different releases no longer understand each other.

use crate::random::{MESSAGE_KINDS, RECORD_KINDS, describe};
use std::collections::BTreeSet;
use std::time::Duration;
use syros_protocol::message::{
    Advice, Advised, Asked, Body, BodyHash, DigestOf, DoViewChange, Freshness, LogEntry, Message, Path,
    Payload, Prepared, Refusal, Request, RoleName, StartView, StatusReport, Update, ViewChangeReason,
};
use syros_protocol::record::{Checkpoint, Record, SnapshotHead};
use syros_protocol::sessions::{Completion, SESSION_WINDOW_MAX, Session};
use syros_types::{
    ConfigurationEpoch, ConfigurationId, FastQuorum, FastRule, Group, GroupId, Instant, NodeId, OpNumber,
    OperationId, Reconfiguration, ReplicaId, ReplicaSet, Roster, SessionId, View, WallTime,
};
use syros_wire::{
    decode_message, decode_record, decode_record_of, decode_snapshot_head, encode_message, encode_record,
    encode_record_of, encode_snapshot_head,
};

const fn id(session: u64, sequence: u64) -> OperationId {
    OperationId { session: SessionId(session), sequence }
}

/// Of the members 0, 1, 3 and 8.
const RULE: Option<FastRule> = Some(FastRule { mode: FastQuorum::Mixed, active: ReplicaSet(0b1_0000_1011) });

/// Session 5, sequence 300, acknowledged below 298.
fn request() -> Request {
    Request { id: id(5, 300), micros: 0x0006_1122_3344_5566, acked_below: 298, body: b"set"[..].into() }
}
/// Session, sequence, clock, distance; then length and body, or the body alone.
const REQUEST_HEAD: &str = "05 ac02 6655443322110600 02";

fn update() -> Update {
    let request = request();
    Update::describe(describe, request).unwrap()
}

fn reconfiguration() -> Reconfiguration {
    let roster = Roster::unknown(Group::new(3).unwrap());
    let roster = roster.with(ReplicaId(0), NodeId::new(0x11).unwrap());
    Reconfiguration {
        epoch: ConfigurationEpoch(130),
        roster: roster.with(ReplicaId(2), NodeId::new(0x0102).unwrap()),
        before: None,
    }
}
/// The same of a group that had one node before.
fn resized() -> Reconfiguration {
    let before = Roster::unknown(Group::new(1).unwrap()).with(ReplicaId(0), NodeId::new(0x11).unwrap());
    Reconfiguration { before: Some(before), ..reconfiguration() }
}

/// Epoch, that the size is another one, the size and the nodes before, and those after.
const RESIZED: &str = "8201 10 01 1100000000000000 03 1100000000000000 0000000000000000 0201000000000000";

/// Epoch, size, and the node in each position, 0 if it is not known.
const RECONFIGURATION: &str = "8201 03 1100000000000000 0000000000000000 0201000000000000";

fn entries() -> Vec<LogEntry> {
    [
        Payload::Update(update()),
        Payload::Recovered([update(), update()].into()),
        Payload::Register { nonce: 0x0807_0605_0403_0201 },
        Payload::Expire([SessionId(1), SessionId(200)].into()),
        Payload::Tick,
        Payload::Reconfigure(Box::new(reconfiguration())),
    ]
    .into_iter()
    .map(|payload| LogEntry { view: View(3), time: WallTime(0x10), payload })
    .collect()
}
fn entries_hex() -> String {
    let start = "03 1000000000000000";
    let request = format!("{REQUEST_HEAD} 03 736574");
    format!(
        "06 {start} 01 {request} {start} 02 02 {request} {request} {start} 03 0102030405060708 \
         {start} 04 02 01 c801 {start} 05 {start} 06 {RECONFIGURATION}"
    )
}

/// Entries of a Prepare, or of a record, where a reference has no hash.
fn prepared(body_hash: BodyHash) -> Vec<Prepared> {
    vec![
        Prepared::Reference { id: id(1, 128), body_hash },
        Prepared::Full(request()),
        Prepared::Register { nonce: 1 },
        Prepared::Expire([SessionId(9)].into()),
        Prepared::Tick,
        Prepared::Reconfigure(Box::new(reconfiguration())),
    ]
}
fn prepared_hex(reference: &str) -> String {
    format!("06 {reference} 02 {REQUEST_HEAD} 03 736574 03 0100000000000000 04 01 09 05 07 {RECONFIGURATION}")
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| *byte != b' ').collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn check(golden: &[(Message, String)]) -> BTreeSet<u8> {
    for (message, hex) in golden {
        let mut out = Vec::new();
        encode_message(message, &mut out);
        assert_eq!(out, bytes(hex), "{message:?}");
        assert_eq!(decode_message(&out, describe).as_ref(), Ok(message));
    }
    golden.iter().map(|(_, hex)| bytes(hex)[0]).collect()
}

fn of_clients() -> Vec<(Message, String)> {
    let (view, id, clock) = (View(7), id(5, 300), WallTime(0x0102));
    let clock_hex = "0201000000000000";
    let status = StatusReport {
        replica: 2,
        replicas: 3,
        role: RoleName::Follower,
        fast_quorum: FastQuorum::Supermajority,
        view: 1,
        op_number: 2,
        commit: 3,
        applied: 4,
        dlog_length: 5,
        sessions: 6,
        log_bytes: 7,
        fast_updates: 8,
        conflicts: 9,
        slow_updates: 10,
        fast_reads: 11,
        slow_reads: 12,
        refused: 13,
        view_changes: 300,
        silent_ms: 14,
        no_quorum: true,
        disk_failed: false,
        divergences: 15,
        diverged: true,
    };
    let read = |asked: Asked| Message::Read { view, number: 128, asked, body: b"get"[..].into() };
    let freshness = Freshness { accepted: OpNumber(300), unordered: true, time: clock };
    let member_reply = Message::MemberReply {
        view,
        number: 128,
        applied: OpNumber(5),
        freshness,
        expiry: WallTime(0x0b),
        reply: b"r"[..].into(),
    };
    vec![
        (Message::Register { view, nonce: 0x0102 }, format!("01 07 {clock_hex}")),
        (Message::Attach { session: SessionId(300), nonce: 0x0102 }, format!("07 ac02 {clock_hex}")),
        (
            Message::AnswerDirectly {
                session: SessionId(300),
                nonce: 0x0102,
                lasting: Duration::from_micros(300),
            },
            format!("09 ac02 {clock_hex} ac02"),
        ),
        (
            Message::Request { view, path: Path::Durability, recipients: ReplicaSet(7), request: request() },
            format!("02 07 01 07 {REQUEST_HEAD} 736574"),
        ),
        (
            Message::Request { view, path: Path::Ordered, recipients: ReplicaSet(0x1ff), request: request() },
            format!("02 07 02 ff03 {REQUEST_HEAD} 736574"),
        ),
        (read(Asked::Answer), "03 07 8001 676574".into()),
        (read(Asked::Value { after: OpNumber(300) }), "06 07 8001 01 ac02 676574".into()),
        (read(Asked::LastChange), "06 07 8001 02 676574".into()),
        (read(Asked::StaleValue), "06 07 8001 03 676574".into()),
        (Message::StatusRequest, "04".into()),
        (Message::HandOver { to: ReplicaId(2) }, "0502".into()),
        (Message::WantEntries { after: OpNumber(300), held: OpNumber(7), bytes_max: 5 }, "0cac020705".into()),
        (Message::WantSnapshot { op_number: OpNumber(300) }, "0aac02".into()),
        (Message::ChangeMode { mode: FastQuorum::Mixed }, "0805".into()),
        (Message::Shrink { to: Group::new(3).unwrap() }, "0b03".into()),
        (Message::Registered { view, nonce: 0x0102, session: SessionId(9) }, format!("10 07 {clock_hex} 09")),
        (Message::Ok { view, rule: None, id, clock }, format!("11 07 05 ac02 {clock_hex}")),
        (Message::Ok { view, rule: RULE, id, clock }, format!("1c 05 8b02 07 05 ac02 {clock_hex}")),
        (Message::Conflict { view, id, clock }, format!("12 07 05 ac02 {clock_hex}")),
        (
            Message::Committed { view, id, clock, reply: b"r"[..].into() },
            format!("13 07 05 ac02 {clock_hex} 72"),
        ),
        (Message::Evaluated { view, id, reply: b"r"[..].into() }, "1b 07 05 ac02 72".into()),
        (Message::FastRule { view, rule: RULE.unwrap() }, "1e 05 8b02 07".into()),
        (Message::Advise { view, of: Advised::Updates, advice: Advice::Free }, "1d 07 01".into()),
        (Message::Advise { view, of: Advised::Updates, advice: Advice::Leader }, "1d 07 02".into()),
        (Message::Advise { view, of: Advised::Reads, advice: Advice::Leader }, "1f 07 02".into()),
        (Message::ReadReply { view, number: 128, reply: b"r"[..].into() }, "14 07 8001 72".into()),
        (Message::ReadReply { view, number: 128, reply: b""[..].into() }, "14 07 8001".into()),
        (member_reply, format!("19 07 8001 05 ac02 01 {clock_hex} 0b00000000000000 72")),
        (
            Message::LastChange { view, number: 128, op_number: OpNumber(300), time: clock },
            format!("1a 07 8001 ac02 {clock_hex}"),
        ),
        (
            Message::Refused { view, id, clock, refusal: Refusal::ClockSkew },
            format!("15 07 05 ac02 {clock_hex} 01"),
        ),
        (Message::ReadRefused { view, number: 128, refusal: Refusal::DiskFailed }, "16 07 8001 07".into()),
        (Message::WrongView { view: View(u64::MAX) }, "17 ffffffffffffffffff01".into()),
        (
            Message::Status(Box::new(status)),
            "18 02 03 02 02 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d ac02 0e 01 00 0f 01".into(),
        ),
    ]
}

fn of_replicas() -> Vec<(Message, String)> {
    let (view, sent_at, time) = (View(7), Instant(0x0a), WallTime(0x0b));
    let (sent_hex, time_hex) = ("0a00000000000000", "0b00000000000000");
    let (first, commit, op_number) = (OpNumber(10), OpNumber(9), OpNumber(200));
    let entries_hex = entries_hex();
    let change = |rule| {
        Message::DoViewChange(Box::new(DoViewChange {
            view,
            last_normal: View(6),
            rule,
            commit,
            commit_view: View(5),
            suffix: entries(),
            dlog: vec![request()],
            clock: time,
        }))
    };
    let start = |rule| {
        let (base, base_view, suffix) = (first, View(6), entries());
        Message::StartView(Box::new(StartView { view, rule, base, base_view, commit, suffix }))
    };
    vec![
        (
            Message::Prepare { view, first, commit, sent_at, time, entries: prepared(BodyHash(2)) },
            format!("20 07 0a 09 {sent_hex} {time_hex} {}", prepared_hex("06 01 8001 0200000000000000")),
        ),
        (Message::Commit { view, commit, op_number, sent_at }, format!("21 07 09 c801 {sent_hex}")),
        (
            Message::PrepareOk {
                view,
                op_number,
                applied: OpNumber(8),
                sent_at,
                promise: Duration::from_micros(200),
                clock: time,
            },
            format!("22 07 c801 08 {sent_hex} c801 {time_hex}"),
        ),
        (Message::FetchBodies { view, ids: vec![id(1, 2), id(128, 3)] }, "23 07 02 01 02 8001 03".into()),
        (Message::Bodies { view, requests: vec![request()] }, format!("24 07 01 {REQUEST_HEAD} 03 736574")),
        (Message::Forward { view, requests: vec![request()] }, format!("25 07 01 {REQUEST_HEAD} 03 736574")),
        (Message::GetState { view, from: first }, "26 07 0a".into()),
        (
            Message::CommittedEntries {
                after: OpNumber(9),
                after_view: view,
                base: OpNumber(8),
                applied: OpNumber(300),
                entries: entries(),
            },
            format!("3a 09 07 08 ac02 {entries_hex}"),
        ),
        (Message::NewState { view, first, commit, entries: entries() }, format!("27 07 0a 09 {entries_hex}")),
        (Message::StartViewChange { view, reason: ViewChangeReason::Suspicion }, "28 07 01".into()),
        (Message::StartViewChange { view, reason: ViewChangeReason::Moved }, "28 07 02".into()),
        (Message::StartViewChange { view, reason: ViewChangeReason::Abdication }, "28 07 03".into()),
        (Message::Patience { view, times: 8 }, "3f 07 08".into()),
        (change(None), format!("29 07 06 09 05 {entries_hex} 01 {REQUEST_HEAD} 03 736574 {time_hex}")),
        (
            change(RULE),
            format!("33 05 8b02 07 06 09 05 {entries_hex} 01 {REQUEST_HEAD} 03 736574 {time_hex}"),
        ),
        (start(None), format!("2a 07 0a 06 09 {entries_hex}")),
        (start(RULE), format!("34 05 8b02 07 0a 06 09 {entries_hex}")),
        (Message::GetStartView { view, commit }, "2b 07 09".into()),
        (
            Message::Digest { view, op_number: OpNumber(300), of: DigestOf::Entries, digest: 0x0102 },
            "3c 07 ac02 0201000000000000".into(),
        ),
        (
            Message::Digest { view, op_number: OpNumber(300), of: DigestOf::Effects, digest: 0x0102 },
            "36 07 ac02 0201000000000000".into(),
        ),
        (
            Message::Diverged { view, op_number: OpNumber(300), of: DigestOf::Entries, digest: 0x0102 },
            "3d 07 ac02 0201000000000000".into(),
        ),
        (
            Message::Diverged { view, op_number: OpNumber(300), of: DigestOf::Effects, digest: 0x0102 },
            "37 07 ac02 0201000000000000".into(),
        ),
        (Message::GetConfiguration { epoch: ConfigurationEpoch(130) }, "38 8201".into()),
        (Message::Configuration(Box::new(reconfiguration())), format!("39 {RECONFIGURATION}")),
        (Message::Configuration(Box::new(resized())), format!("39 {RESIZED}")),
        (Message::HeldByAll { view, op_number: OpNumber(300) }, "35 07 ac 02".into()),
        (Message::WatchLog { view }, "31 07".into()),
        (Message::LogDurable { view, op_number: OpNumber(300) }, "32 07 ac 02".into()),
        (Message::Rejoin { view }, "2c 07".into()),
        (
            Message::PlaceWanted { view, node: NodeId::new(0x0102).unwrap(), applied: OpNumber(300) },
            "3e 07 0201000000000000 ac 02".into(),
        ),
        (Message::DiskShort { view }, "30 07".into()),
        (Message::SnapshotOffer { view, op_number: OpNumber(9), bytes: 300 }, "2d 07 09 ac 02".into()),
        (Message::GetSnapshot { op_number: OpNumber(9), offset: 300 }, "2e 09 ac 02".into()),
        (
            Message::SnapshotPart { op_number: OpNumber(9), offset: 300, part: Body::from([1, 2]) },
            "2f 09 ac 02 01 02".into(),
        ),
    ]
}

#[test]
fn every_message_has_golden_bytes() {
    let mut kinds = check(&of_clients());
    kinds.extend(check(&of_replicas()));
    // A Read has two tags, an Advise, too, and so have the messages that may carry a rule: Ok, DoViewChange, StartView; and
    // those about digests, of entries and of effects: Digest and Diverged.
    assert_eq!(kinds.len() as u64, MESSAGE_KINDS + 7, "a kind of message is missing here");
}

#[test]
fn every_refusal_has_golden_bytes() {
    let refusals = [
        Refusal::ClockSkew,
        Refusal::UnknownSession,
        Refusal::Stale,
        Refusal::Malformed,
        Refusal::LogFull,
        Refusal::Overloaded,
        Refusal::DiskFailed,
        Refusal::NotNormal,
        Refusal::OtherOperation,
        Refusal::NotAttached,
        Refusal::OutOfMemory,
        Refusal::DiskFull,
        Refusal::ReplyDropped,
        Refusal::NotActive,
    ];
    for (refusal, byte) in refusals.into_iter().zip(1..) {
        let mut out = Vec::new();
        encode_message(&Message::ReadRefused { view: View(1), number: 2, refusal }, &mut out);
        assert_eq!(out, [22, 1, 2, byte]);
    }
}

#[test]
fn every_record_has_golden_bytes() {
    let (first, commit) = (OpNumber(10), OpNumber(9));
    let checkpoint = |amnesiac, rule| {
        Record::Checkpoint(Box::new(Checkpoint {
            view: View(7),
            last_normal: View(6),
            rule,
            base: OpNumber(8),
            base_view: View(5),
            base_time: WallTime(0x0102),
            commit,
            suffix: entries(),
            dlog: Vec::new(),
            amnesiac,
        }))
    };
    let enter = |rule| Record::EnterView { view: View(7), rule, base: first, commit, suffix: entries() };
    let golden = [
        (Record::View { view: View(7), last_normal: View(6) }, "01 07 06".into()),
        (Record::Accept(request()), format!("02 {REQUEST_HEAD} 03 736574")),
        (
            Record::Append {
                first,
                view: View(7),
                time: WallTime(0x0b),
                commit,
                entries: prepared(BodyHash::default()),
            },
            format!("03 0a 07 0b00000000000000 09 {}", prepared_hex("01 01 8001")),
        ),
        (Record::Transfer { base: first, entries: entries() }, format!("04 0a {}", entries_hex())),
        (enter(None), format!("05 07 0a 09 {}", entries_hex())),
        (enter(RULE), format!("0a 05 8b02 07 0a 09 {}", entries_hex())),
        (checkpoint(false, None), format!("06 07 06 08 05 02 01 00 00 00 00 00 00 09 {} 00", entries_hex())),
        (checkpoint(true, None), format!("08 07 06 08 05 02 01 00 00 00 00 00 00 09 {} 00", entries_hex())),
        (
            checkpoint(false, RULE),
            format!("0b 05 8b02 07 06 08 05 02 01 00 00 00 00 00 00 09 {} 00", entries_hex()),
        ),
        (
            checkpoint(true, RULE),
            format!("0c 05 8b02 07 06 08 05 02 01 00 00 00 00 00 00 09 {} 00", entries_hex()),
        ),
        (Record::Forgot { view: View(7) }, "07 07".into()),
    ];
    for (record, hex) in &golden {
        let mut out = Vec::new();
        encode_record(record, &mut out);
        assert_eq!(out, bytes(hex), "{record:?}");
        assert_eq!(decode_record(&out, describe).as_ref(), Ok(record));
    }
    // Of checkpoints there are two, and of these and of EnterView as many that carry a rule.
    assert_eq!(golden.len() as u64, RECORD_KINDS + 4);
}

#[test]
fn heads_of_snapshots_have_golden_bytes_and_those_without_nonces_are_read() {
    let session = |nonce| Session {
        nonce,
        acked_below: 4,
        completions: [(5, Completion::Nilext), (6, Completion::Reply(Body::from(*b"r")))]
            .into_iter()
            .collect(),
        last_active: WallTime(0x0b),
    };
    let head = |nonce| SnapshotHead {
        op_number: OpNumber(300),
        view: View(7),
        time: WallTime(0x0a),
        sessions: [(SessionId(5), session(nonce))].into_iter().collect(),
        configuration: None,
    };
    let mut out = Vec::new();
    encode_snapshot_head(&head(0x0102), &mut out);
    let known = "04 0b00000000000000 03 00 01 02 01 72";
    let golden = format!("00 02 ac02 07 0a00000000000000 01 05 0201000000000000 {known}");
    assert_eq!(out, bytes(&golden));
    assert_eq!(decode_snapshot_head(&out), Ok(head(0x0102)));
    let older = format!("ac02 07 0a00000000000000 01 05 {known}");
    assert_eq!(decode_snapshot_head(&bytes(&older)), Ok(head(0)));
    let reconfigured = SnapshotHead { configuration: Some(reconfiguration()), ..head(0x0102) };
    out.clear();
    encode_snapshot_head(&reconfigured, &mut out);
    let golden = golden.strip_prefix("00 02").unwrap();
    assert_eq!(out, bytes(&format!("00 03 {RECONFIGURATION} {golden}")));
    assert_eq!(decode_snapshot_head(&out), Ok(reconfigured));
    let later = format!("00 04 {older}");
    assert!(decode_snapshot_head(&bytes(&later)).is_err());
}

/// A client chooses how far apart its sequence numbers are, and must not choose how many bytes of a snapshot that takes.
#[test]
fn a_gap_between_completions_takes_a_few_bytes_and_the_gaps_of_earlier_builds_are_read() {
    let head = |sequence| {
        let completions = [(sequence, Completion::Nilext)].into_iter().collect();
        let session = Session { nonce: 1, acked_below: 4, completions, last_active: WallTime(0x0b) };
        let sessions = [(SessionId(5), session)].into_iter().collect();
        let (op_number, time) = (OpNumber(300), WallTime(0x0a));
        SnapshotHead { op_number, view: View(7), time, sessions, configuration: None }
    };
    let before = "00 02 ac02 07 0a00000000000000 01 05 0100000000000000 04 0b00000000000000";
    let element_each = |gap: usize| {
        let elements = match gap {
            0..0x7f => format!("{:02x}", gap + 1),
            gap => format!(
                "{:02x} {:02x} {:02x}",
                (gap + 1) & 0x7f | 0x80,
                (gap + 1) >> 7 & 0x7f | 0x80,
                (gap + 1) >> 14
            ),
        };
        format!("{before} {elements} {} 01", "00".repeat(gap))
    };
    let last = SESSION_WINDOW_MAX as usize - 1;
    for (gap, golden) in [
        (0, element_each(0)),
        (31, element_each(31)),
        (32, format!("{before} 02 04 20 01")),
        (last, format!("{before} 02 04 ffff07 01")),
    ] {
        let mut out = Vec::new();
        encode_snapshot_head(&head(4 + gap as u64), &mut out);
        assert_eq!(out, bytes(&golden), "a gap of {gap}");
        assert_eq!(decode_snapshot_head(&out), Ok(head(4 + gap as u64)));
        assert_eq!(decode_snapshot_head(&bytes(&element_each(gap))), Ok(head(4 + gap as u64)));
    }
    for beyond in [
        element_each(last + 1),
        format!("{before} 02 04 808008 01"),
        format!("{before} 03 04 20 04 e0ff07 01"),
    ] {
        assert!(decode_snapshot_head(&bytes(&beyond)).is_err(), "{beyond}");
    }
}

#[test]
fn records_of_later_configurations_name_group_and_epoch() {
    let (record, first) = (Record::Forgot { view: View(5) }, ConfigurationId::FIRST);
    let later = ConfigurationId { group: GroupId(300), epoch: ConfigurationEpoch(2) };
    let mut out = Vec::new();
    encode_record_of(later, &record, &mut out);
    assert_eq!(out, [9, 0xac, 2, 2, 7, 5]);
    assert_eq!(decode_record_of(later, &out, describe), Ok(record.clone()));
    let refused = decode_record(&out, describe).unwrap_err().to_string();
    assert!(refused.contains("it names group 300, epoch 2; here it is group 0, epoch 0"), "{refused}");
    out.clear();
    encode_record_of(first, &record, &mut out);
    assert_eq!(out, [7, 5], "as in logs of before");
    assert!(decode_record_of(later, &out, describe).is_err());
    for malformed in [&[9, 0, 0, 7, 5][..], &[9, 1, 1, 9, 1, 1, 7, 5], &[9, 1], &[9, 1, 1]] {
        let ours = ConfigurationId { group: GroupId(1), epoch: ConfigurationEpoch(1) };
        assert!(decode_record_of(ours, malformed, describe).is_err(), "{malformed:?}");
    }
}
