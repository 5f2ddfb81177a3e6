//! Random messages and records, and a toy state machine that describes operations.

use std::sync::Arc;
use std::time::Duration;
use syros_protocol::message::{
    Advice, Advised, Asked, Body, BodyHash, DigestOf, DoViewChange, Freshness, LogEntry, Message, Path,
    Payload, Prepared, Refusal, Request, RoleName, StartView, StatusReport, Update, ViewChangeReason,
};
use syros_protocol::record::{Checkpoint, Record, SnapshotHead};
use syros_protocol::sessions::{Completion, SESSION_WINDOW_MAX, Session};
use syros_types::{
    Class, ConfigurationEpoch, Description, FastQuorum, FastRule, Footprint, Group, Instant, NodeId,
    OpNumber, OperationId, Prng, Reconfiguration, ReplicaId, ReplicaSet, Roster, SessionId, View, WallTime,
    key_hash,
};

/// The toy state machine: every operation is an overwrite of itself, and those that start with 0xff are
/// no operations.
pub(crate) fn describe(body: &[u8]) -> Option<Description> {
    let footprint = Footprint::One(key_hash(body));
    (body.first() != Some(&0xff)).then_some(Description {
        class: Class::Overwrite,
        footprint,
        growth: body.len(),
    })
}

/// Numbers of every length: encodings differ by length, so values are spread over lengths.
fn number(prng: &mut Prng) -> u64 {
    let shift = prng.below(65);
    prng.next_u64().checked_shr(shift as u32).unwrap_or(0)
}

fn view(prng: &mut Prng) -> View {
    View(number(prng))
}

fn mode(prng: &mut Prng) -> FastQuorum {
    FastQuorum::ALL[prng.below(FastQuorum::ALL.len() as u64) as usize]
}

fn rule(prng: &mut Prng) -> FastRule {
    FastRule { mode: mode(prng), active: ReplicaSet(prng.next_u64() as u16) }
}

fn told_rule(prng: &mut Prng) -> Option<FastRule> {
    let rule = rule(prng);
    (prng.below(2) == 0).then_some(rule)
}

fn digest_of(prng: &mut Prng) -> DigestOf {
    if prng.below(2) == 0 { DigestOf::Entries } else { DigestOf::Effects }
}

fn op_number(prng: &mut Prng) -> OpNumber {
    OpNumber(number(prng))
}

fn time(prng: &mut Prng) -> WallTime {
    WallTime(number(prng))
}

fn instant(prng: &mut Prng) -> Instant {
    Instant(number(prng))
}

fn id(prng: &mut Prng) -> OperationId {
    OperationId { session: SessionId(number(prng)), sequence: number(prng) }
}

fn list<T>(prng: &mut Prng, element: impl Fn(&mut Prng) -> T) -> Vec<T> {
    (0..prng.below(6)).map(|_| element(prng)).collect()
}

fn body(prng: &mut Prng) -> Body {
    let length = if prng.chance(1, 20) { prng.below(1000) } else { prng.below(20) };
    let mut bytes: Vec<u8> = (0..length).map(|_| prng.next_u64() as u8).collect();
    if let Some(first) = bytes.first_mut() {
        *first &= 0x7f;
    }
    Arc::from(bytes)
}

fn request(prng: &mut Prng) -> Request {
    let id = id(prng);
    let acked_below =
        if prng.chance(1, 2) { id.sequence.saturating_sub(prng.below(50)) } else { number(prng) };
    Request { id, micros: number(prng), acked_below, body: body(prng) }
}

fn update(prng: &mut Prng) -> Update {
    Update::describe(describe, request(prng)).unwrap()
}

fn reconfiguration(prng: &mut Prng) -> Reconfiguration {
    let roster = roster(prng);
    let before = if prng.chance(1, 2) { Some(self::roster(prng)) } else { None };
    Reconfiguration { epoch: ConfigurationEpoch(number(prng)), roster, before }
}

fn roster(prng: &mut Prng) -> Roster {
    let group = Group::new(1 + 2 * prng.below(5) as usize).unwrap();
    let with = |roster: Roster, member| match NodeId::new(number(prng)) {
        Some(node) => roster.with(member, node),
        None => roster,
    };
    group.members().fold(Roster::unknown(group), with)
}

fn entry(prng: &mut Prng) -> LogEntry {
    let payload = match prng.below(6) {
        0 => Payload::Update(update(prng)),
        1 => Payload::Recovered(list(prng, update).into_boxed_slice()),
        2 => Payload::Register { nonce: prng.next_u64() },
        3 => Payload::Expire(list(prng, |prng| SessionId(number(prng))).into_boxed_slice()),
        4 => Payload::Reconfigure(Box::new(reconfiguration(prng))),
        _ => Payload::Tick,
    };
    LogEntry { view: view(prng), time: time(prng), payload }
}

fn prepared(prng: &mut Prng) -> Prepared {
    match logged(prng) {
        Prepared::Reference { id, .. } => Prepared::Reference { id, body_hash: BodyHash(prng.next_u64()) },
        prepared => prepared,
    }
}

/// As a record has it.
fn logged(prng: &mut Prng) -> Prepared {
    match prng.below(6) {
        0 => Prepared::Reference { id: id(prng), body_hash: BodyHash::default() },
        1 => Prepared::Full(request(prng)),
        2 => Prepared::Register { nonce: prng.next_u64() },
        3 => Prepared::Expire(list(prng, |prng| SessionId(number(prng))).into_boxed_slice()),
        4 => Prepared::Reconfigure(Box::new(reconfiguration(prng))),
        _ => Prepared::Tick,
    }
}

fn refusal(prng: &mut Prng) -> Refusal {
    const ALL: [Refusal; 14] = [
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
    ALL[prng.below(ALL.len() as u64) as usize]
}

fn status(prng: &mut Prng) -> StatusReport {
    const ROLES: [RoleName; 4] =
        [RoleName::Leader, RoleName::Follower, RoleName::ViewChange, RoleName::Recovering];
    StatusReport {
        replica: prng.next_u64() as u8,
        replicas: prng.next_u64() as u8,
        role: ROLES[prng.below(4) as usize],
        fast_quorum: mode(prng),
        view: number(prng),
        op_number: number(prng),
        commit: number(prng),
        applied: number(prng),
        dlog_length: number(prng),
        sessions: number(prng),
        log_bytes: number(prng),
        fast_updates: number(prng),
        conflicts: number(prng),
        slow_updates: number(prng),
        fast_reads: number(prng),
        slow_reads: number(prng),
        refused: number(prng),
        view_changes: number(prng),
        silent_ms: number(prng),
        no_quorum: prng.below(2) == 0,
        disk_failed: prng.below(2) == 0,
        divergences: number(prng),
        diverged: prng.below(2) == 0,
    }
}

/// Kinds of messages that [`message`] makes.
pub(crate) const MESSAGE_KINDS: u64 = 52;

/// A random message of the given kind.
pub(crate) fn message(prng: &mut Prng, kind: u64) -> Message {
    match kind {
        0 => Message::Register { view: view(prng), nonce: prng.next_u64() },
        1 => {
            let path = if prng.chance(1, 2) { Path::Durability } else { Path::Ordered };
            let recipients = ReplicaSet(prng.next_u64() as u16);
            Message::Request { view: view(prng), path, recipients, request: request(prng) }
        }
        2 => {
            let asked = match prng.below(4) {
                0 => Asked::Answer,
                1 => Asked::Value { after: op_number(prng) },
                2 => Asked::LastChange,
                _ => Asked::StaleValue,
            };
            Message::Read { view: view(prng), number: number(prng), asked, body: body(prng) }
        }
        3 => Message::StatusRequest,
        4 => {
            Message::Registered { view: view(prng), nonce: prng.next_u64(), session: SessionId(number(prng)) }
        }
        5 => Message::Ok { view: view(prng), rule: told_rule(prng), id: id(prng), clock: time(prng) },
        6 => Message::Conflict { view: view(prng), id: id(prng), clock: time(prng) },
        7 => Message::Committed { view: view(prng), id: id(prng), clock: time(prng), reply: body(prng) },
        8 => Message::ReadReply { view: view(prng), number: number(prng), reply: body(prng) },
        9 => Message::Refused { view: view(prng), id: id(prng), clock: time(prng), refusal: refusal(prng) },
        10 => Message::ReadRefused { view: view(prng), number: number(prng), refusal: refusal(prng) },
        11 => Message::WrongView { view: view(prng) },
        12 => Message::Status(Box::new(status(prng))),
        30 => Message::MemberReply {
            view: view(prng),
            number: number(prng),
            applied: op_number(prng),
            freshness: Freshness {
                accepted: op_number(prng),
                unordered: prng.chance(1, 2),
                time: time(prng),
            },
            expiry: time(prng),
            reply: body(prng),
        },
        31 => Message::LastChange {
            view: view(prng),
            number: number(prng),
            op_number: op_number(prng),
            time: time(prng),
        },
        32 => Message::Evaluated { view: view(prng), id: id(prng), reply: body(prng) },
        46 => Message::WantSnapshot { op_number: op_number(prng) },
        26 => Message::HandOver { to: ReplicaId(prng.below(7) as u8) },
        _ => between_replicas(prng, kind),
    }
}

fn place_wanted(prng: &mut Prng) -> Message {
    let node = NodeId::new(prng.next_u64() | 1).expect("it is above 0");
    Message::PlaceWanted { view: view(prng), node, applied: op_number(prng) }
}

fn between_replicas(prng: &mut Prng, kind: u64) -> Message {
    const REASONS: [ViewChangeReason; 3] =
        [ViewChangeReason::Suspicion, ViewChangeReason::Moved, ViewChangeReason::Abdication];
    match kind {
        13 => Message::Prepare {
            view: view(prng),
            first: op_number(prng),
            commit: op_number(prng),
            sent_at: instant(prng),
            time: time(prng),
            entries: list(prng, prepared),
        },
        14 => Message::Commit {
            view: view(prng),
            commit: op_number(prng),
            op_number: op_number(prng),
            sent_at: instant(prng),
        },
        15 => Message::PrepareOk {
            view: view(prng),
            op_number: op_number(prng),
            applied: op_number(prng),
            sent_at: instant(prng),
            promise: Duration::from_micros(prng.next_u64()),
            clock: time(prng),
        },
        16 => Message::FetchBodies { view: view(prng), ids: list(prng, id) },
        17 => Message::Bodies { view: view(prng), requests: list(prng, request) },
        18 => Message::Forward { view: view(prng), requests: list(prng, request) },
        19 => Message::GetState { view: view(prng), from: op_number(prng) },
        20 => Message::NewState {
            view: view(prng),
            first: op_number(prng),
            commit: op_number(prng),
            entries: list(prng, entry),
        },
        21 => Message::StartViewChange { view: view(prng), reason: REASONS[prng.below(3) as usize] },
        22 => Message::DoViewChange(Box::new(DoViewChange {
            view: view(prng),
            last_normal: view(prng),
            rule: told_rule(prng),
            commit: op_number(prng),
            commit_view: view(prng),
            suffix: list(prng, entry),
            dlog: list(prng, request),
            clock: time(prng),
        })),
        23 => Message::StartView(Box::new(StartView {
            view: view(prng),
            rule: told_rule(prng),
            base: op_number(prng),
            base_view: view(prng),
            commit: op_number(prng),
            suffix: list(prng, entry),
        })),
        24 => Message::GetStartView { view: view(prng), commit: op_number(prng) },
        25 => Message::Rejoin { view: view(prng) },
        27 => Message::SnapshotOffer { view: view(prng), op_number: op_number(prng), bytes: number(prng) },
        28 => Message::GetSnapshot { op_number: op_number(prng), offset: number(prng) },
        34 => Message::DiskShort { view: view(prng) },
        29 => Message::SnapshotPart { op_number: op_number(prng), offset: number(prng), part: body(prng) },
        33 => Message::Attach { session: SessionId(number(prng)), nonce: prng.next_u64() },
        35 => {
            let (view, op_number, of) = (view(prng), op_number(prng), digest_of(prng));
            Message::Digest { view, op_number, of, digest: prng.next_u64() }
        }
        36 => {
            let (view, op_number, of) = (view(prng), op_number(prng), digest_of(prng));
            Message::Diverged { view, op_number, of, digest: prng.next_u64() }
        }
        37 => Message::WatchLog { view: view(prng) },
        38 => Message::LogDurable { view: view(prng), op_number: op_number(prng) },
        39 => {
            let advice = if prng.below(2) == 0 { Advice::Free } else { Advice::Leader };
            let of = Advised::ALL[prng.below(2) as usize];
            Message::Advise { view: view(prng), of, advice }
        }
        40 => Message::ChangeMode { mode: mode(prng) },
        41 => Message::FastRule { view: view(prng), rule: rule(prng) },
        42 => Message::AnswerDirectly {
            session: SessionId(number(prng)),
            nonce: prng.next_u64(),
            lasting: Duration::from_micros(number(prng)),
        },
        43 => Message::HeldByAll { view: view(prng), op_number: op_number(prng) },
        44 => Message::GetConfiguration { epoch: ConfigurationEpoch(number(prng)) },
        45 => Message::Configuration(Box::new(reconfiguration(prng))),
        47 => Message::Shrink { to: roster(prng).group() },
        48 => Message::WantEntries { after: op_number(prng), held: op_number(prng), bytes_max: number(prng) },
        49 => Message::CommittedEntries {
            after: op_number(prng),
            after_view: view(prng),
            base: op_number(prng),
            applied: op_number(prng),
            entries: list(prng, entry),
        },
        50 => place_wanted(prng),
        51 => Message::Patience { view: view(prng), times: prng.below(256) as u8 },
        _ => panic!("there are {MESSAGE_KINDS} kinds of messages, not {kind}"),
    }
}

/// Kinds of records that [`record`] makes.
pub(crate) const RECORD_KINDS: u64 = 7;

/// A random record of the given kind.
pub(crate) fn record(prng: &mut Prng, kind: u64) -> Record {
    match kind {
        0 => Record::View { view: view(prng), last_normal: view(prng) },
        1 => Record::Accept(request(prng)),
        2 => Record::Append {
            first: op_number(prng),
            view: view(prng),
            time: time(prng),
            commit: op_number(prng),
            entries: list(prng, logged),
        },
        3 => Record::Transfer { base: op_number(prng), entries: list(prng, entry) },
        4 => Record::EnterView {
            view: view(prng),
            rule: told_rule(prng),
            base: op_number(prng),
            commit: op_number(prng),
            suffix: list(prng, entry),
        },
        5 => Record::Checkpoint(Box::new(Checkpoint {
            view: view(prng),
            last_normal: view(prng),
            rule: told_rule(prng),
            base: op_number(prng),
            base_view: view(prng),
            base_time: time(prng),
            commit: op_number(prng),
            suffix: list(prng, entry),
            dlog: list(prng, request),
            amnesiac: prng.below(2) == 0,
        })),
        6 => Record::Forgot { view: view(prng) },
        _ => panic!("there are {RECORD_KINDS} kinds of records, not {kind}"),
    }
}

fn completion(prng: &mut Prng) -> Completion {
    match prng.below(3) {
        0 => Completion::Nilext,
        1 => Completion::Dropped,
        _ => Completion::Reply(body(prng)),
    }
}

/// A random head of a snapshot.
pub(crate) fn snapshot_head(prng: &mut Prng) -> SnapshotHead {
    let session = |prng: &mut Prng| {
        let nonce = prng.next_u64();
        let acked_below = number(prng).min(u64::MAX - SESSION_WINDOW_MAX);
        let spread = [4, 100, SESSION_WINDOW_MAX][prng.below(3) as usize];
        let sequence = |prng: &mut Prng| (acked_below + prng.below(spread), completion(prng));
        let completions = list(prng, sequence).into_iter().collect();
        let session = Session { nonce, acked_below, completions, last_active: time(prng) };
        (SessionId(number(prng)), session)
    };
    SnapshotHead {
        op_number: op_number(prng),
        view: view(prng),
        time: time(prng),
        sessions: list(prng, session).into_iter().collect(),
        configuration: prng.chance(1, 2).then(|| reconfiguration(prng)),
    }
}
