//! Records of the write-ahead log.

use crate::error::Malformed;
use crate::parts::{References, body};
use crate::primitive::{Reader, Writer};
use crate::tag::completion;
use crate::tag::record as tag;
use syros_protocol::message::Describe;
use syros_protocol::record::{Checkpoint, Record, SnapshotHead};
use syros_protocol::sessions::{Completion, Completions, SESSION_WINDOW_MAX, Session};
use syros_types::limits::FRAME_BYTES_MAX;
use syros_types::{ConfigurationId, OpNumber, SessionId, View, WallTime};

/// Appends the encoding of a record that was written in this configuration. Length and checksum are the log's business.
///
/// A record carries its group and epoch itself, and not the header of its segment: one log is to be shared by several
/// groups, and an epoch may begin between two records. The first configuration of the only group goes without saying, as
/// in the logs of before; a record of any other begins with a tag and two varints.
pub fn encode_record_of(configuration: ConfigurationId, record: &Record, out: &mut Vec<u8>) {
    if configuration != ConfigurationId::FIRST {
        let ConfigurationId { group, epoch } = configuration;
        Writer::new(out).byte(tag::OF_CONFIGURATION).number(u64::from(group.0)).number(epoch.0);
    }
    encode_record(record, out);
}

/// Appends the encoding of a record of the first configuration of the only group.
pub fn encode_record(record: &Record, out: &mut Vec<u8>) {
    let writer = Writer::new(out);
    match record {
        Record::View { view, last_normal } => writer.byte(tag::VIEW).number(view.0).number(last_normal.0),
        Record::Accept(request) => writer.byte(tag::ACCEPT).request(request),
        Record::Append { first, view, time, commit, entries } => {
            let writer = writer.byte(tag::APPEND).number(first.0).number(view.0);
            writer.fixed(time.0).number(commit.0).prepared(entries, References::Bare)
        }
        Record::Transfer { base, entries } => writer.byte(tag::TRANSFER).number(base.0).entries(entries),
        Record::EnterView { view, rule, base, commit, suffix } => {
            let writer = writer.tag_and_rule((tag::ENTER_VIEW, tag::ENTER_VIEW_OF_RULE), *rule);
            let writer = writer.number(view.0).number(base.0);
            writer.number(commit.0).entries(suffix)
        }
        Record::Checkpoint(checkpoint) => {
            let Checkpoint {
                view,
                last_normal,
                rule,
                base,
                base_view,
                base_time,
                commit,
                suffix,
                dlog,
                amnesiac,
            } = &**checkpoint;
            let tags = match amnesiac {
                true => (tag::CHECKPOINT_OF_AMNESIAC, tag::CHECKPOINT_OF_RULE_AND_AMNESIAC),
                false => (tag::CHECKPOINT, tag::CHECKPOINT_OF_RULE),
            };
            let writer = writer.tag_and_rule(tags, *rule).number(view.0).number(last_normal.0);
            let writer = writer.number(base.0).number(base_view.0).fixed(base_time.0);
            writer.number(commit.0).entries(suffix).requests(dlog)
        }
        Record::Forgot { view } => writer.byte(tag::FORGOT).number(view.0),
    };
}

/// The layout of a snapshot's head whose sessions have nonces: 0 and this number come before the op number. A head of the
/// first layout begins with its op number, which is never 0, and has no nonces. Both are read.
const HEAD_WITH_NONCES: u64 = 2;

/// The layout of a head that names a configuration besides, which follows this number. A head without one is of the layout
/// before: older builds read it.
const HEAD_WITH_CONFIGURATION: u64 = 3;

/// A gap of so many sequence numbers between completions is written as one element. In a shorter one every number is an
/// element, as builds write it that know no other gaps: they read all heads but those with a long gap.
const GAP_MIN: u64 = 32;

/// Appends the encoding of what a snapshot holds besides the engine's state. Length and checksum are the
/// snapshot file's business.
pub fn encode_snapshot_head(head: &SnapshotHead, out: &mut Vec<u8>) {
    let SnapshotHead { op_number, view, time, sessions, configuration } = head;
    let writer = Writer::new(out).number(0);
    let writer = match configuration {
        None => writer.number(HEAD_WITH_NONCES),
        Some(known) => writer.number(HEAD_WITH_CONFIGURATION).reconfiguration(known),
    };
    let mut writer = writer.number(op_number.0).number(view.0).fixed(time.0);
    writer = writer.number(sessions.iter().len() as u64);
    for (id, session) in sessions.iter() {
        let Session { nonce, acked_below, completions, last_active } = session;
        writer = writer.number(id.0).fixed(*nonce).number(*acked_below).fixed(last_active.0);
        let elements =
            with_gaps(*acked_below, completions).map(|(gap, _)| 1 + if gap < GAP_MIN { gap } else { 1 });
        writer = writer.number(elements.sum());
        for (gap, known) in with_gaps(*acked_below, completions) {
            writer = if gap < GAP_MIN {
                (0..gap).fold(writer, |writer, _| writer.byte(completion::NONE))
            } else {
                writer.byte(completion::GAP).number(gap)
            };
            writer = match known {
                Completion::Nilext => writer.byte(completion::NILEXT),
                Completion::Dropped => writer.byte(completion::DROPPED),
                Completion::Reply(reply) => {
                    writer.byte(completion::REPLY).number(reply.len() as u64).bytes(reply)
                }
            };
        }
    }
}

/// Every completion, and how many sequence numbers without one come before it.
fn with_gaps(acked_below: u64, completions: &Completions) -> impl Iterator<Item = (u64, &Completion)> {
    completions.iter().scan(acked_below, |next, (sequence, completion)| {
        let gap = sequence.saturating_sub(*next);
        *next = sequence.saturating_add(1);
        Some((gap, completion))
    })
}

/// What a snapshot holds besides the engine's state.
///
/// # Errors
/// [`Malformed`] if the bytes are anything but one whole encoding.
pub fn decode_snapshot_head(bytes: &[u8]) -> Result<SnapshotHead, Malformed> {
    /// Fewest bytes of a session: id, acknowledgement, time, number of completions.
    const SESSION_BYTES_MIN: usize = 11;
    let mut reader = Reader::new(bytes);
    let first = reader.number()?;
    let has_nonces = first == 0;
    let mut configuration = None;
    let op_number = if has_nonces {
        match reader.number()? {
            HEAD_WITH_NONCES => {}
            HEAD_WITH_CONFIGURATION => configuration = Some(reader.reconfiguration()?),
            value => {
                let what = "layout of a snapshot's head";
                return Err(Malformed::OutOfRange { what, value, limit: HEAD_WITH_CONFIGURATION });
            }
        }
        OpNumber(reader.number()?)
    } else {
        OpNumber(first)
    };
    let view = View(reader.number()?);
    let time = WallTime(reader.fixed()?);
    let count = reader.count(SESSION_BYTES_MIN)?;
    let mut sessions = Vec::with_capacity(count);
    for _ in 0..count {
        let id = SessionId(reader.number()?);
        let nonce = if has_nonces { reader.fixed()? } else { 0 };
        let acked_below = reader.number()?;
        let last_active = WallTime(reader.fixed()?);
        let completions = reader.completions(acked_below)?;
        sessions.push((id, Session { nonce, acked_below, completions, last_active }));
    }
    reader.end()?;
    Ok(SnapshotHead { op_number, view, time, sessions: sessions.into_iter().collect(), configuration })
}

impl Reader<'_> {
    /// What is remembered of a session's operations.
    fn completions(&mut self, acked_below: u64) -> Result<Completions, Malformed> {
        let elements = self.count(1)?;
        let mut completions = Completions::default();
        let mut offset = 0_u64;
        for _ in 0..elements {
            let tag = self.byte()?;
            let completion = match tag {
                completion::NONE => None,
                completion::GAP => {
                    offset = offset.saturating_add(self.number()?);
                    continue;
                }
                completion::NILEXT => Some(Completion::Nilext),
                completion::DROPPED => Some(Completion::Dropped),
                completion::REPLY => Some(Completion::Reply(body(self.bytes("reply", FRAME_BYTES_MAX)?))),
                tag => return Err(Malformed::Tag { what: "completion", tag }),
            };
            if offset >= SESSION_WINDOW_MAX {
                let what = "list of completions";
                return Err(Malformed::TooLong { what, length: offset, limit: SESSION_WINDOW_MAX });
            }
            if let Some(completion) = completion {
                let sequence = acked_below.checked_add(offset).ok_or(Malformed::OutOfRange {
                    what: "sequence number of a completion",
                    value: acked_below,
                    limit: u64::MAX - offset,
                })?;
                completions.insert(sequence, completion);
            }
            offset += 1;
        }
        Ok(completions)
    }
}

/// The record that `bytes` encode, of the first configuration of the only group: see [`decode_record_of`].
///
/// # Errors
/// As [`decode_record_of`].
pub fn decode_record(bytes: &[u8], describe: Describe) -> Result<Record, Malformed> {
    decode_record_of(ConfigurationId::FIRST, bytes, describe)
}

/// The record of this configuration that `bytes` encode. Each body gets one allocation of its own; the updates of log
/// entries are described by `describe`.
///
/// # Errors
/// [`Malformed`] if the bytes are anything but one whole record of this configuration.
pub fn decode_record_of(
    ours: ConfigurationId,
    bytes: &[u8],
    describe: Describe,
) -> Result<Record, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut tag = reader.byte()?;
    let mut theirs = ConfigurationId::FIRST;
    if tag == tag::OF_CONFIGURATION {
        theirs = reader.configuration()?;
        if theirs == ConfigurationId::FIRST {
            // It goes without saying.
            return Err(Malformed::Tag { what: "record", tag });
        }
        tag = reader.byte()?;
    }
    ours.check(theirs)?;
    let record = match tag {
        tag::VIEW => Record::View { view: View(reader.number()?), last_normal: View(reader.number()?) },
        tag::ACCEPT => Record::Accept(reader.request()?),
        tag::APPEND => Record::Append {
            first: OpNumber(reader.number()?),
            view: View(reader.number()?),
            time: WallTime(reader.fixed()?),
            commit: OpNumber(reader.number()?),
            entries: reader.prepared(References::Bare)?,
        },
        tag::TRANSFER => {
            Record::Transfer { base: OpNumber(reader.number()?), entries: reader.entries(describe)? }
        }
        tag::ENTER_VIEW | tag::ENTER_VIEW_OF_RULE => Record::EnterView {
            rule: reader.rule_if(tag == tag::ENTER_VIEW_OF_RULE)?,
            view: View(reader.number()?),
            base: OpNumber(reader.number()?),
            commit: OpNumber(reader.number()?),
            suffix: reader.entries(describe)?,
        },
        tag::CHECKPOINT
        | tag::CHECKPOINT_OF_AMNESIAC
        | tag::CHECKPOINT_OF_RULE
        | tag::CHECKPOINT_OF_RULE_AND_AMNESIAC => Record::Checkpoint(Box::new(Checkpoint {
            rule: reader
                .rule_if(matches!(tag, tag::CHECKPOINT_OF_RULE | tag::CHECKPOINT_OF_RULE_AND_AMNESIAC))?,
            view: View(reader.number()?),
            last_normal: View(reader.number()?),
            base: OpNumber(reader.number()?),
            base_view: View(reader.number()?),
            base_time: WallTime(reader.fixed()?),
            commit: OpNumber(reader.number()?),
            suffix: reader.entries(describe)?,
            dlog: reader.requests()?,
            amnesiac: matches!(tag, tag::CHECKPOINT_OF_AMNESIAC | tag::CHECKPOINT_OF_RULE_AND_AMNESIAC),
        })),
        tag::FORGOT => Record::Forgot { view: View(reader.number()?) },
        tag => return Err(Malformed::Tag { what: "record", tag }),
    };
    reader.end()?;
    Ok(record)
}
