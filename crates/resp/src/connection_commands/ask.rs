//! Commands that a connection cannot answer by itself: what it asks its process.

use super::{Session, client_filter, debug, subcommand_error};
use crate::context::Context;
use crate::requests::{ProcessRequest, WaitRequest};
use crate::shared::PauseMode;
use crate::tracking::TrackingRequest;
use std::time::Duration;
use syros_commands::{CommandError, ConnectionCommand, lookup, parse_integer};

/// What a command asks the process, or what is wrong with it; `None` if the connection answers it by itself.
pub(crate) fn request(
    command: ConnectionCommand,
    words: &[&[u8]],
    session: &Session,
    context: &Context<'_>,
) -> Option<Result<ProcessRequest, Vec<u8>>> {
    match command {
        ConnectionCommand::Client => {
            let subcommand = words.get(1).copied()?;
            let is = |name: &[u8]| subcommand.eq_ignore_ascii_case(name);
            if subcommand_error(lookup(b"client")?, words).is_some() {
                return None;
            }
            if is(b"list") {
                Some(client_filter::list(&words[2..]))
            } else if is(b"kill") {
                Some(client_filter::kill(&words[2..], session))
            } else if is(b"pause") {
                Some(pause(&words[2..]))
            } else if is(b"tracking") {
                Some(tracking(&words[2..], session))
            } else if is(b"unpause") {
                Some(Ok(ProcessRequest::Unpause))
            } else {
                None
            }
        }
        ConnectionCommand::Debug => debug::sleep(words, session).map(|time| Ok(ProcessRequest::Sleep(time))),
        ConnectionCommand::Monitor => Some(Ok(ProcessRequest::Monitor)),
        ConnectionCommand::Wait => Some(wait(words)),
        ConnectionCommand::WaitAof => Some(wait_for_disk(words, context.info.report().fsync)),
        _ => None,
    }
}

/// True if the process may be asked, which cannot be done in a transaction. (WAIT can, as in Redis: it does not wait.)
pub(crate) fn asks_process(command: ConnectionCommand, words: &[&[u8]]) -> bool {
    let is = |name: &[u8]| words.get(1).is_some_and(|word| word.eq_ignore_ascii_case(name));
    match command {
        ConnectionCommand::Client => {
            is(b"list") || is(b"kill") || is(b"pause") || is(b"unpause") || is(b"tracking")
        }
        ConnectionCommand::Debug => is(b"sleep"),
        ConnectionCommand::Monitor => true,
        _ => false,
    }
}

/// CLIENT TRACKING: the words behind these two.
fn tracking(words: &[&[u8]], session: &Session) -> Result<ProcessRequest, Vec<u8>> {
    let present = session.tracking.as_ref().map(|tracking| &tracking.request);
    let is_on = words[0].eq_ignore_ascii_case(b"on");
    let request = TrackingRequest::parse(&words[1..], present, is_on)?;
    if is_on {
        Ok(ProcessRequest::Track(Some(request)))
    } else if words[0].eq_ignore_ascii_case(b"off") {
        Ok(ProcessRequest::Track(None))
    } else {
        Err(CommandError::Syntax.text())
    }
}

/// CLIENT PAUSE: the words behind these two.
fn pause(words: &[&[u8]]) -> Result<ProcessRequest, Vec<u8>> {
    let mode = match words {
        [_] => PauseMode::All,
        [_, mode] if mode.eq_ignore_ascii_case(b"write") => PauseMode::Write,
        [_, mode] if mode.eq_ignore_ascii_case(b"all") => PauseMode::All,
        [_, _] => return Err(b"ERR CLIENT PAUSE mode must be WRITE or ALL".to_vec()),
        _ => return Err(CommandError::Syntax.text()),
    };
    Ok(ProcessRequest::Pause(Duration::from_millis(timeout(words[0])?), mode))
}

/// A time in milliseconds.
fn timeout(word: &[u8]) -> Result<u64, Vec<u8>> {
    let millis =
        parse_integer(word).ok_or_else(|| b"ERR timeout is not an integer or out of range".to_vec())?;
    u64::try_from(millis).map_err(|_| b"ERR timeout is negative".to_vec())
}

/// The time until which an answer comes, whatever is true then: 0 is none.
fn patience(word: &[u8]) -> Result<Option<Duration>, Vec<u8>> {
    let millis = timeout(word)?;
    Ok((millis > 0).then(|| Duration::from_millis(millis)))
}

/// A number of replicas; a negative one is as good as none.
fn followers(word: &[u8]) -> Result<u64, Vec<u8>> {
    let count = parse_integer(word).ok_or_else(|| CommandError::NotInteger.text())?;
    Ok(u64::try_from(count).unwrap_or(0))
}

fn wait(words: &[&[u8]]) -> Result<ProcessRequest, Vec<u8>> {
    let (followers, timeout) = (followers(words[1])?, patience(words[2])?);
    Ok(ProcessRequest::Wait(WaitRequest {
        followers,
        timeout,
        is_all_known: true,
        on_disk: None,
        is_local_wanted: false,
    }))
}

/// WAITAOF. `fsync`: what is acknowledged is on disk, that of the leader included.
fn wait_for_disk(words: &[&[u8]], fsync: bool) -> Result<ProcessRequest, Vec<u8>> {
    let local = parse_integer(words[1]).filter(|count| matches!(count, 0 | 1));
    let local = local.ok_or_else(|| b"ERR value is out of range, must be between 0 and 1".to_vec())?;
    let count = parse_integer(words[2]).and_then(|count| u64::try_from(count).ok());
    let followers = count.ok_or_else(|| b"ERR value is out of range, must be positive".to_vec())?;
    let timeout = patience(words[3])?;
    if local > 0 && !fsync {
        let text = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
        return Err(text.as_bytes().to_vec());
    }
    Ok(ProcessRequest::Wait(WaitRequest {
        followers,
        timeout,
        is_all_known: true,
        on_disk: Some(fsync),
        is_local_wanted: local > 0,
    }))
}
