//! Records of the write-ahead log.

use crate::error::Malformed;
use crate::primitive::{Reader, Writer};
use crate::tag::record as tag;
use syros_protocol::message::Describe;
use syros_protocol::record::Record;
use syros_types::{OpNumber, View, WallTime};

/// Appends the encoding of `record`. Length and checksum are the log's business.
pub fn encode_record(record: &Record, out: &mut Vec<u8>) {
    let writer = Writer::new(out);
    match record {
        Record::View { view, last_normal } => writer.byte(tag::VIEW).number(view.0).number(last_normal.0),
        Record::Accept(request) => writer.byte(tag::ACCEPT).request(request),
        Record::Append { first, view, time, commit, entries } => {
            let writer = writer.byte(tag::APPEND).number(first.0).number(view.0);
            writer.fixed(time.0).number(commit.0).prepared(entries)
        }
        Record::Transfer { base, entries } => writer.byte(tag::TRANSFER).number(base.0).entries(entries),
        Record::EnterView { view, base, commit, suffix } => {
            let writer = writer.byte(tag::ENTER_VIEW).number(view.0).number(base.0);
            writer.number(commit.0).entries(suffix)
        }
    };
}

/// The record that `bytes` encode. Each body gets one allocation of its own; the updates of log
/// entries are described by `describe`.
///
/// # Errors
/// [`Malformed`] if the bytes are anything but one whole record.
pub fn decode_record(bytes: &[u8], describe: Describe) -> Result<Record, Malformed> {
    let mut reader = Reader::new(bytes);
    let record = match reader.byte()? {
        tag::VIEW => Record::View { view: View(reader.number()?), last_normal: View(reader.number()?) },
        tag::ACCEPT => Record::Accept(reader.request()?),
        tag::APPEND => Record::Append {
            first: OpNumber(reader.number()?),
            view: View(reader.number()?),
            time: WallTime(reader.fixed()?),
            commit: OpNumber(reader.number()?),
            entries: reader.prepared()?,
        },
        tag::TRANSFER => {
            Record::Transfer { base: OpNumber(reader.number()?), entries: reader.entries(describe)? }
        }
        tag::ENTER_VIEW => Record::EnterView {
            view: View(reader.number()?),
            base: OpNumber(reader.number()?),
            commit: OpNumber(reader.number()?),
            suffix: reader.entries(describe)?,
        },
        tag => return Err(Malformed::Tag { what: "record", tag }),
    };
    reader.end()?;
    Ok(record)
}
