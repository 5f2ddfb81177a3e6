//! Messages.

use crate::error::Malformed;
use crate::hello::{LEARNS_SINCE, VERSION_MIN};
use crate::parts::{
    References, advice_tag, body, boolean_tag, fast_quorum_tag, path_tag, reason_tag, refusal_tag, role_tag,
};
use crate::primitive::{Reader, Writer};
use crate::tag::message as tag;
use std::time::Duration;
use syros_protocol::message::{
    Advised, Asked, Describe, DigestOf, DoViewChange, Freshness, Message, Refusal, StartView, StatusReport,
};
use syros_types::limits::{BODY_BYTES_MAX, FRAME_BYTES_MAX};
use syros_types::{
    ConfigurationEpoch, Instant, NodeId, OpNumber, ReplicaId, SessionId, View, WallTime, micros,
};

/// Appends the encoding of `message`.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    let writer = Writer::new(out);
    match message {
        Message::Register { view, nonce } => writer.byte(tag::REGISTER).number(view.0).fixed(*nonce),
        Message::Attach { session, nonce } => writer.byte(tag::ATTACH).number(session.0).fixed(*nonce),
        Message::Request { view, path, recipients, request } => {
            let writer = writer.byte(tag::REQUEST).number(view.0).byte(path_tag(*path));
            let writer = writer.number(u64::from(recipients.0));
            writer.request_head(request).bytes(&request.body)
        }
        Message::Read { view, number, asked: Asked::Answer, body } => {
            writer.byte(tag::READ).number(view.0).number(*number).bytes(body)
        }
        Message::Read { view, number, asked, body } => {
            let writer = writer.byte(tag::READ_PART).number(view.0).number(*number);
            writer.asked(*asked).bytes(body)
        }
        Message::StatusRequest => writer.byte(tag::STATUS_REQUEST),
        Message::AnswerDirectly { session, nonce, lasting } => {
            writer.byte(tag::ANSWER_DIRECTLY).number(session.0).fixed(*nonce).number(micros(*lasting))
        }
        Message::HandOver { to } => writer.byte(tag::HAND_OVER).byte(to.0),
        Message::WantSnapshot { op_number } => writer.byte(tag::WANT_SNAPSHOT).number(op_number.0),
        Message::WantEntries { after, held, bytes_max } => {
            writer.byte(tag::WANT_ENTRIES).number(after.0).number(held.0).number(*bytes_max)
        }
        Message::CommittedEntries { after, after_view, base, applied, entries } => {
            let writer = writer.byte(tag::COMMITTED_ENTRIES).number(after.0).number(after_view.0);
            writer.number(base.0).number(applied.0).entries(entries)
        }
        Message::ChangeMode { mode } => writer.byte(tag::CHANGE_MODE).byte(fast_quorum_tag(*mode)),
        // A group has at most 9 members.
        Message::Shrink { to } => writer.byte(tag::SHRINK).byte(to.size() as u8),
        Message::Registered { view, nonce, session } => {
            writer.byte(tag::REGISTERED).number(view.0).fixed(*nonce).number(session.0)
        }
        Message::Ok { view, rule, id, clock } => {
            let writer = writer.tag_and_rule((tag::OK, tag::OK_OF_RULE), *rule);
            writer.number(view.0).id(*id).fixed(clock.0)
        }
        Message::Conflict { view, id, clock } => {
            writer.byte(tag::CONFLICT).number(view.0).id(*id).fixed(clock.0)
        }
        Message::Committed { view, id, clock, reply } => {
            writer.byte(tag::COMMITTED).number(view.0).id(*id).fixed(clock.0).bytes(reply)
        }
        Message::Evaluated { view, id, reply } => {
            writer.byte(tag::EVALUATED).number(view.0).id(*id).bytes(reply)
        }
        Message::FastRule { view, rule } => writer.byte(tag::FAST_RULE).rule(*rule).number(view.0),
        Message::Advise { view, of, advice } => {
            let tag = match of {
                Advised::Updates => tag::ADVISE,
                Advised::Reads => tag::ADVISE_READS,
            };
            writer.byte(tag).number(view.0).byte(advice_tag(*advice))
        }
        Message::ReadReply { view, number, reply } => {
            writer.with(|out| encode_read_reply(out, *view, *number, |out| out.extend_from_slice(reply)))
        }
        Message::MemberReply { view, number, applied, freshness, expiry, reply } => writer.with(|out| {
            let write = |out: &mut Vec<u8>| {
                out.extend_from_slice(reply);
                *expiry
            };
            encode_member_reply(out, (*view, *number), *applied, *freshness, write);
        }),
        Message::LastChange { view, number, op_number, time } => {
            let writer = writer.byte(tag::LAST_CHANGE).number(view.0).number(*number);
            writer.number(op_number.0).fixed(time.0)
        }
        Message::Refused { view, id, clock, refusal } => {
            let writer = writer.byte(tag::REFUSED).number(view.0).id(*id).fixed(clock.0);
            writer.byte(refusal_tag(*refusal))
        }
        Message::ReadRefused { view, number, refusal } => {
            writer.byte(tag::READ_REFUSED).number(view.0).number(*number).byte(refusal_tag(*refusal))
        }
        Message::WrongView { view } => writer.byte(tag::WRONG_VIEW).number(view.0),
        Message::Status(report) => encode_status(writer.byte(tag::STATUS), report),
        _ => encode_between_replicas(writer, message),
    };
}

/// The messages that only replicas send each other.
fn encode_between_replicas<'a>(writer: Writer<'a>, message: &Message) -> Writer<'a> {
    match message {
        Message::Prepare { view, first, commit, sent_at, time, entries } => {
            let writer = writer.byte(tag::PREPARE).number(view.0).number(first.0).number(commit.0);
            writer.fixed(sent_at.0).fixed(time.0).prepared(entries, References::Hashed)
        }
        Message::Commit { view, commit, op_number, sent_at } => {
            let writer = writer.byte(tag::COMMIT).number(view.0).number(commit.0);
            writer.number(op_number.0).fixed(sent_at.0)
        }
        Message::PrepareOk { view, op_number, applied, sent_at, promise, clock } => {
            let writer = writer.byte(tag::PREPARE_OK).number(view.0).number(op_number.0);
            writer.number(applied.0).fixed(sent_at.0).number(micros(*promise)).fixed(clock.0)
        }
        Message::Digest { view, op_number, of, digest } => {
            let tag = match of {
                DigestOf::Entries => tag::DIGEST,
                DigestOf::Effects => tag::DIGEST_OF_EFFECTS,
            };
            writer.byte(tag).number(view.0).number(op_number.0).fixed(*digest)
        }
        Message::HeldByAll { view, op_number } => {
            writer.byte(tag::HELD_BY_ALL).number(view.0).number(op_number.0)
        }
        Message::WatchLog { view } => writer.byte(tag::WATCH_LOG).number(view.0),
        Message::LogDurable { view, op_number } => {
            writer.byte(tag::LOG_DURABLE).number(view.0).number(op_number.0)
        }
        Message::Diverged { view, op_number, of, digest } => {
            let tag = match of {
                DigestOf::Entries => tag::DIVERGED,
                DigestOf::Effects => tag::DIVERGED_IN_EFFECTS,
            };
            writer.byte(tag).number(view.0).number(op_number.0).fixed(*digest)
        }
        Message::FetchBodies { view, ids } => writer.byte(tag::FETCH_BODIES).number(view.0).ids(ids),
        Message::Bodies { view, requests } => writer.byte(tag::BODIES).number(view.0).requests(requests),
        Message::Forward { view, requests } => writer.byte(tag::FORWARD).number(view.0).requests(requests),
        Message::GetState { view, from } => writer.byte(tag::GET_STATE).number(view.0).number(from.0),
        Message::NewState { view, first, commit, entries } => {
            let writer = writer.byte(tag::NEW_STATE).number(view.0).number(first.0);
            writer.number(commit.0).entries(entries)
        }
        Message::StartViewChange { view, reason } => {
            writer.byte(tag::START_VIEW_CHANGE).number(view.0).byte(reason_tag(*reason))
        }
        Message::Patience { view, times } => writer.byte(tag::PATIENCE).number(view.0).byte(*times),
        Message::DoViewChange(change) => {
            let DoViewChange { view, last_normal, rule, commit, commit_view, suffix, dlog, clock } =
                &**change;
            let writer = writer.tag_and_rule((tag::DO_VIEW_CHANGE, tag::DO_VIEW_CHANGE_OF_RULE), *rule);
            let writer = writer.number(view.0).number(last_normal.0);
            writer.number(commit.0).number(commit_view.0).entries(suffix).requests(dlog).fixed(clock.0)
        }
        Message::StartView(start) => {
            let StartView { view, rule, base, base_view, commit, suffix } = &**start;
            let writer = writer.tag_and_rule((tag::START_VIEW, tag::START_VIEW_OF_RULE), *rule);
            let writer = writer.number(view.0).number(base.0);
            writer.number(base_view.0).number(commit.0).entries(suffix)
        }
        Message::GetStartView { view, commit } => {
            writer.byte(tag::GET_START_VIEW).number(view.0).number(commit.0)
        }
        Message::Rejoin { view } => writer.byte(tag::REJOIN).number(view.0),
        Message::PlaceWanted { view, node, applied } => {
            writer.byte(tag::PLACE_WANTED).number(view.0).fixed(node.number()).number(applied.0)
        }
        Message::GetConfiguration { epoch } => writer.byte(tag::GET_CONFIGURATION).number(epoch.0),
        Message::Configuration(known) => writer.byte(tag::CONFIGURATION).reconfiguration(known),
        Message::DiskShort { view } => writer.byte(tag::DISK_SHORT).number(view.0),
        Message::SnapshotOffer { .. } | Message::GetSnapshot { .. } | Message::SnapshotPart { .. } => {
            encode_about_snapshots(writer, message)
        }
        // Named one by one, so that a new kind of message cannot be forgotten here.
        Message::Register { .. }
        | Message::Request { .. }
        | Message::Read { .. }
        | Message::Attach { .. }
        | Message::StatusRequest
        | Message::AnswerDirectly { .. }
        | Message::HandOver { .. }
        | Message::WantSnapshot { .. }
        | Message::WantEntries { .. }
        | Message::CommittedEntries { .. }
        | Message::ChangeMode { .. }
        | Message::Shrink { .. }
        | Message::Registered { .. }
        | Message::Ok { .. }
        | Message::Conflict { .. }
        | Message::Committed { .. }
        | Message::Evaluated { .. }
        | Message::FastRule { .. }
        | Message::Advise { .. }
        | Message::ReadReply { .. }
        | Message::MemberReply { .. }
        | Message::LastChange { .. }
        | Message::Refused { .. }
        | Message::ReadRefused { .. }
        | Message::WrongView { .. }
        | Message::Status(_) => unreachable!("encode_message encodes the messages of clients itself"),
    }
}

fn encode_about_snapshots<'a>(writer: Writer<'a>, message: &Message) -> Writer<'a> {
    match message {
        Message::SnapshotOffer { view, op_number, bytes } => {
            writer.byte(tag::SNAPSHOT_OFFER).number(view.0).number(op_number.0).number(*bytes)
        }
        Message::GetSnapshot { op_number, offset } => {
            writer.byte(tag::GET_SNAPSHOT).number(op_number.0).number(*offset)
        }
        Message::SnapshotPart { op_number, offset, part } => {
            writer.byte(tag::SNAPSHOT_PART).number(op_number.0).number(*offset).bytes(part)
        }
        _ => unreachable!("only what is about snapshots comes here"),
    }
}

/// Appends the encoding of a `ReadReply` whose result `write` appends: the engine writes it where
/// it is sent from.
pub fn encode_read_reply(out: &mut Vec<u8>, view: View, number: u64, write: impl FnOnce(&mut Vec<u8>)) {
    Writer::new(out).byte(tag::READ_REPLY).number(view.0).number(number).with(write);
}

/// Appends the encoding of a `MemberReply` to the request of a view and number. `write` appends the result and
/// returns when the first of its keys expires.
pub fn encode_member_reply(
    out: &mut Vec<u8>,
    (view, number): (View, u64),
    applied: OpNumber,
    freshness: Freshness,
    write: impl FnOnce(&mut Vec<u8>) -> WallTime,
) {
    let Freshness { accepted, unordered, time } = freshness;
    let writer = Writer::new(out).byte(tag::MEMBER_REPLY).number(view.0).number(number);
    let writer = writer.number(applied.0).number(accepted.0).byte(boolean_tag(unordered)).fixed(time.0);
    writer.with(|out| {
        let place = out.len();
        out.extend_from_slice(&[0; 8]);
        let expiry = write(out);
        out[place..place + 8].copy_from_slice(&expiry.0.to_le_bytes());
    });
}

/// The message that `bytes` encode: any message, as replicas send them to each other. Each body gets
/// one allocation of its own; the updates of log entries are described by `describe`.
///
/// # Errors
/// [`Malformed`] if the bytes are anything but one whole message.
pub fn decode_message(bytes: &[u8], describe: Describe) -> Result<Message, Malformed> {
    let mut reader = Reader::new(bytes);
    let tag = reader.byte()?;
    let message = if tag < tag::PREPARE {
        decode_between_clients_and_replicas(tag, &mut reader)?
    } else {
        decode_between_replicas(tag, &mut reader, describe)?
    };
    reader.end()?;
    Ok(message)
}

/// The message that `bytes` encode, if it is one that clients send to replicas or replicas to clients.
///
/// # Errors
/// [`Malformed`] if the bytes are anything but one whole message of that kind.
pub fn decode_client_message(bytes: &[u8]) -> Result<Message, Malformed> {
    let mut reader = Reader::new(bytes);
    let tag = reader.byte()?;
    let message = match tag {
        tag::SNAPSHOT_OFFER..=tag::SNAPSHOT_PART => decode_about_snapshots(tag, &mut reader)?,
        tag::GET_CONFIGURATION | tag::CONFIGURATION => decode_about_configurations(tag, &mut reader)?,
        tag::PREPARE..=tag::BETWEEN_REPLICAS_LAST => return Err(Malformed::NotForClients { tag }),
        tag => decode_between_clients_and_replicas(tag, &mut reader)?,
    };
    reader.end()?;
    Ok(message)
}

fn decode_between_clients_and_replicas(tag: u8, reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::REGISTER => Message::Register { view: View(reader.number()?), nonce: reader.fixed()? },
        tag::ATTACH => Message::Attach { session: SessionId(reader.number()?), nonce: reader.fixed()? },
        tag::REQUEST => Message::Request {
            view: View(reader.number()?),
            path: reader.path()?,
            recipients: reader.replicas()?,
            request: reader.last_request()?,
        },
        tag::READ => Message::Read {
            view: View(reader.number()?),
            number: reader.number()?,
            asked: Asked::Answer,
            body: body(reader.remainder("operation", BODY_BYTES_MAX)?),
        },
        tag::READ_PART => Message::Read {
            view: View(reader.number()?),
            number: reader.number()?,
            asked: reader.asked()?,
            body: body(reader.remainder("operation", BODY_BYTES_MAX)?),
        },
        tag::STATUS_REQUEST => Message::StatusRequest,
        tag::ANSWER_DIRECTLY => {
            let (session, nonce) = (SessionId(reader.number()?), reader.fixed()?);
            Message::AnswerDirectly { session, nonce, lasting: Duration::from_micros(reader.number()?) }
        }
        tag::HAND_OVER | tag::WANT_SNAPSHOT | tag::WANT_ENTRIES | tag::CHANGE_MODE | tag::SHRINK => {
            decode_for_operators(tag, reader)?
        }
        tag::REGISTERED => Message::Registered {
            view: View(reader.number()?),
            nonce: reader.fixed()?,
            session: SessionId(reader.number()?),
        },
        tag::OK | tag::OK_OF_RULE => Message::Ok {
            rule: reader.rule_if(tag == tag::OK_OF_RULE)?,
            view: View(reader.number()?),
            id: reader.id()?,
            clock: WallTime(reader.fixed()?),
        },
        tag::CONFLICT => Message::Conflict {
            view: View(reader.number()?),
            id: reader.id()?,
            clock: WallTime(reader.fixed()?),
        },
        tag::COMMITTED => Message::Committed {
            view: View(reader.number()?),
            id: reader.id()?,
            clock: WallTime(reader.fixed()?),
            reply: body(reader.remainder("reply", FRAME_BYTES_MAX)?),
        },
        tag::EVALUATED => Message::Evaluated {
            view: View(reader.number()?),
            id: reader.id()?,
            reply: body(reader.remainder("reply", FRAME_BYTES_MAX)?),
        },
        tag::FAST_RULE => Message::FastRule { rule: reader.rule()?, view: View(reader.number()?) },
        tag::ADVISE | tag::ADVISE_READS => {
            let of = if tag == tag::ADVISE { Advised::Updates } else { Advised::Reads };
            Message::Advise { view: View(reader.number()?), of, advice: reader.advice()? }
        }
        tag::READ_REPLY => Message::ReadReply {
            view: View(reader.number()?),
            number: reader.number()?,
            reply: body(reader.remainder("reply", FRAME_BYTES_MAX)?),
        },
        tag::MEMBER_REPLY => Message::MemberReply {
            view: View(reader.number()?),
            number: reader.number()?,
            applied: OpNumber(reader.number()?),
            freshness: Freshness {
                accepted: OpNumber(reader.number()?),
                unordered: reader.boolean()?,
                time: WallTime(reader.fixed()?),
            },
            expiry: WallTime(reader.fixed()?),
            reply: body(reader.remainder("reply", FRAME_BYTES_MAX)?),
        },
        tag::LAST_CHANGE => Message::LastChange {
            view: View(reader.number()?),
            number: reader.number()?,
            op_number: OpNumber(reader.number()?),
            time: WallTime(reader.fixed()?),
        },
        tag::REFUSED => Message::Refused {
            view: View(reader.number()?),
            id: reader.id()?,
            clock: WallTime(reader.fixed()?),
            refusal: reader.refusal()?,
        },
        tag::READ_REFUSED => Message::ReadRefused {
            view: View(reader.number()?),
            number: reader.number()?,
            refusal: reader.refusal()?,
        },
        tag::WRONG_VIEW => Message::WrongView { view: View(reader.number()?) },
        tag::STATUS => Message::Status(Box::new(decode_status(reader)?)),
        tag => return Err(Malformed::Tag { what: "message", tag }),
    })
}

/// What operators ask for.
fn decode_for_operators(tag: u8, reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::HAND_OVER => Message::HandOver { to: ReplicaId(reader.byte()?) },
        tag::WANT_SNAPSHOT => Message::WantSnapshot { op_number: OpNumber(reader.number()?) },
        tag::WANT_ENTRIES => {
            let (after, held) = (OpNumber(reader.number()?), OpNumber(reader.number()?));
            Message::WantEntries { after, held, bytes_max: reader.number()? }
        }
        tag::CHANGE_MODE => Message::ChangeMode { mode: reader.fast_quorum()? },
        tag::SHRINK => Message::Shrink { to: reader.group()? },
        tag => return Err(Malformed::Tag { what: "message", tag }),
    })
}

/// What replicas tell each other of snapshots, and clients that make backups.
fn decode_about_configurations(tag: u8, reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::GET_CONFIGURATION => Message::GetConfiguration { epoch: ConfigurationEpoch(reader.number()?) },
        _ => Message::Configuration(Box::new(reader.reconfiguration()?)),
    })
}

fn decode_about_snapshots(tag: u8, reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::SNAPSHOT_OFFER => Message::SnapshotOffer {
            view: View(reader.number()?),
            op_number: OpNumber(reader.number()?),
            bytes: reader.number()?,
        },
        tag::GET_SNAPSHOT => {
            Message::GetSnapshot { op_number: OpNumber(reader.number()?), offset: reader.number()? }
        }
        tag::SNAPSHOT_PART => Message::SnapshotPart {
            op_number: OpNumber(reader.number()?),
            offset: reader.number()?,
            part: body(reader.remainder("part of a snapshot", FRAME_BYTES_MAX)?),
        },
        tag => return Err(Malformed::Tag { what: "message", tag }),
    })
}

fn decode_between_replicas(
    tag: u8,
    reader: &mut Reader<'_>,
    describe: Describe,
) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::COMMITTED_ENTRIES => Message::CommittedEntries {
            after: OpNumber(reader.number()?),
            after_view: View(reader.number()?),
            base: OpNumber(reader.number()?),
            applied: OpNumber(reader.number()?),
            entries: reader.entries(describe)?,
        },
        tag::PREPARE => Message::Prepare {
            view: View(reader.number()?),
            first: OpNumber(reader.number()?),
            commit: OpNumber(reader.number()?),
            sent_at: Instant(reader.fixed()?),
            time: WallTime(reader.fixed()?),
            entries: reader.prepared(References::Hashed)?,
        },
        tag::COMMIT => Message::Commit {
            view: View(reader.number()?),
            commit: OpNumber(reader.number()?),
            op_number: OpNumber(reader.number()?),
            sent_at: Instant(reader.fixed()?),
        },
        tag::PREPARE_OK => Message::PrepareOk {
            view: View(reader.number()?),
            op_number: OpNumber(reader.number()?),
            applied: OpNumber(reader.number()?),
            sent_at: Instant(reader.fixed()?),
            promise: Duration::from_micros(reader.number()?),
            clock: WallTime(reader.fixed()?),
        },
        tag::DIGEST | tag::DIGEST_OF_EFFECTS => Message::Digest {
            view: View(reader.number()?),
            op_number: OpNumber(reader.number()?),
            of: if tag == tag::DIGEST { DigestOf::Entries } else { DigestOf::Effects },
            digest: reader.fixed()?,
        },
        tag::GET_CONFIGURATION | tag::CONFIGURATION => decode_about_configurations(tag, reader)?,
        tag::WATCH_LOG => Message::WatchLog { view: View(reader.number()?) },
        tag::HELD_BY_ALL => {
            Message::HeldByAll { view: View(reader.number()?), op_number: OpNumber(reader.number()?) }
        }
        tag::LOG_DURABLE => {
            Message::LogDurable { view: View(reader.number()?), op_number: OpNumber(reader.number()?) }
        }
        tag::DIVERGED | tag::DIVERGED_IN_EFFECTS => Message::Diverged {
            view: View(reader.number()?),
            op_number: OpNumber(reader.number()?),
            of: if tag == tag::DIVERGED { DigestOf::Entries } else { DigestOf::Effects },
            digest: reader.fixed()?,
        },
        tag::FETCH_BODIES => Message::FetchBodies { view: View(reader.number()?), ids: reader.ids()? },
        tag::BODIES => Message::Bodies { view: View(reader.number()?), requests: reader.requests()? },
        tag::FORWARD => Message::Forward { view: View(reader.number()?), requests: reader.requests()? },
        tag::GET_STATE => {
            Message::GetState { view: View(reader.number()?), from: OpNumber(reader.number()?) }
        }
        tag::NEW_STATE => Message::NewState {
            view: View(reader.number()?),
            first: OpNumber(reader.number()?),
            commit: OpNumber(reader.number()?),
            entries: reader.entries(describe)?,
        },
        tag::START_VIEW_CHANGE => {
            Message::StartViewChange { view: View(reader.number()?), reason: reader.reason()? }
        }
        tag::DO_VIEW_CHANGE | tag::DO_VIEW_CHANGE_OF_RULE => Message::DoViewChange(Box::new(DoViewChange {
            rule: reader.rule_if(tag == tag::DO_VIEW_CHANGE_OF_RULE)?,
            view: View(reader.number()?),
            last_normal: View(reader.number()?),
            commit: OpNumber(reader.number()?),
            commit_view: View(reader.number()?),
            suffix: reader.entries(describe)?,
            dlog: reader.requests()?,
            clock: WallTime(reader.fixed()?),
        })),
        tag::START_VIEW | tag::START_VIEW_OF_RULE => Message::StartView(Box::new(StartView {
            rule: reader.rule_if(tag == tag::START_VIEW_OF_RULE)?,
            view: View(reader.number()?),
            base: OpNumber(reader.number()?),
            base_view: View(reader.number()?),
            commit: OpNumber(reader.number()?),
            suffix: reader.entries(describe)?,
        })),
        tag::PATIENCE => Message::Patience { view: View(reader.number()?), times: reader.byte()? },
        tag::GET_START_VIEW => {
            Message::GetStartView { view: View(reader.number()?), commit: OpNumber(reader.number()?) }
        }
        tag::REJOIN => Message::Rejoin { view: View(reader.number()?) },
        tag::PLACE_WANTED => Message::PlaceWanted {
            view: View(reader.number()?),
            node: NodeId::new(reader.fixed()?).ok_or(Malformed::NoNode)?,
            applied: OpNumber(reader.number()?),
        },
        tag::DISK_SHORT => Message::DiskShort { view: View(reader.number()?) },
        tag::SNAPSHOT_OFFER..=tag::SNAPSHOT_PART => decode_about_snapshots(tag, reader)?,
        tag => return Err(Malformed::Tag { what: "message", tag }),
    })
}

fn encode_status<'a>(writer: Writer<'a>, report: &StatusReport) -> Writer<'a> {
    let StatusReport {
        replica,
        replicas,
        role,
        fast_quorum,
        view,
        op_number,
        commit,
        applied,
        dlog_length,
        sessions,
        log_bytes,
        fast_updates,
        conflicts,
        slow_updates,
        fast_reads,
        slow_reads,
        refused,
        view_changes,
        silent_ms,
        no_quorum,
        disk_failed,
        divergences,
        diverged,
    } = report;
    let writer = writer.number(u64::from(*replica)).number(u64::from(*replicas));
    let writer = writer.byte(role_tag(*role)).byte(fast_quorum_tag(*fast_quorum));
    let numbers = [
        view,
        op_number,
        commit,
        applied,
        dlog_length,
        sessions,
        log_bytes,
        fast_updates,
        conflicts,
        slow_updates,
        fast_reads,
        slow_reads,
        refused,
        view_changes,
    ];
    let writer = numbers.into_iter().fold(writer, |writer, number| writer.number(*number));
    let writer = writer.number(*silent_ms).byte(boolean_tag(*no_quorum)).byte(boolean_tag(*disk_failed));
    writer.number(*divergences).byte(boolean_tag(*diverged))
}

fn decode_status(reader: &mut Reader<'_>) -> Result<StatusReport, Malformed> {
    Ok(StatusReport {
        replica: reader.small("replica")?,
        replicas: reader.small("number of replicas")?,
        role: reader.role()?,
        fast_quorum: reader.fast_quorum()?,
        view: reader.number()?,
        op_number: reader.number()?,
        commit: reader.number()?,
        applied: reader.number()?,
        dlog_length: reader.number()?,
        sessions: reader.number()?,
        log_bytes: reader.number()?,
        fast_updates: reader.number()?,
        conflicts: reader.number()?,
        slow_updates: reader.number()?,
        fast_reads: reader.number()?,
        slow_reads: reader.number()?,
        refused: reader.number()?,
        view_changes: reader.number()?,
        silent_ms: reader.number()?,
        no_quorum: reader.boolean()?,
        disk_failed: reader.boolean()?,
        divergences: reader.number()?,
        diverged: reader.boolean()?,
    })
}

/// The version of the wire format since which a message is known: one that the other end of a connection does not know must
/// not be sent to it.
#[must_use]
pub fn version_of(message: &Message) -> u16 {
    match message {
        Message::WatchLog { .. } | Message::LogDurable { .. } => 6,
        Message::Ok { rule: Some(_), .. } | Message::Refused { refusal: Refusal::NotActive, .. } => 7,
        Message::DoViewChange(change) if change.rule.is_some() => 7,
        Message::StartView(start) if start.rule.is_some() => 7,
        Message::Advise { of: Advised::Updates, .. } => 8,
        Message::ChangeMode { .. }
        | Message::FastRule { .. }
        | Message::Advise { of: Advised::Reads, .. } => 9,
        Message::AnswerDirectly { .. } => 10,
        Message::HeldByAll { .. } => 13,
        Message::Digest { of: DigestOf::Effects, .. } | Message::Diverged { of: DigestOf::Effects, .. } => 15,
        Message::Configuration(known) if known.before.is_some() => 19,
        Message::Shrink { .. } => 19,
        Message::GetConfiguration { .. } | Message::Configuration(_) => 17,
        Message::WantSnapshot { .. } => 18,
        Message::WantEntries { .. } | Message::CommittedEntries { .. } => 20,
        Message::PlaceWanted { .. } => LEARNS_SINCE,
        Message::Patience { .. } => 25,
        _ => VERSION_MIN,
    }
}
