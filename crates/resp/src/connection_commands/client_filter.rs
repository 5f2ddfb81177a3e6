//! Which clients CLIENT LIST and CLIENT KILL mean.

use super::{SHOWN_BYTES_MAX, Session};
use crate::requests::{ClientFilter, ClientKind, ProcessRequest};
use std::collections::BTreeSet;
use std::time::Duration;
use syros_commands::{CommandError, parse_integer};

/// CLIENT LIST: the words behind these two.
pub(super) fn list(words: &[&[u8]]) -> Result<ProcessRequest, Vec<u8>> {
    let mut filter = ClientFilter::default();
    match words {
        [] => {}
        [option, name] if option.eq_ignore_ascii_case(b"type") => filter.kind = Some(kind(name)?),
        [option, ids @ ..] if option.eq_ignore_ascii_case(b"id") && !ids.is_empty() => {
            let ids: Option<BTreeSet<u64>> =
                ids.iter().map(|id| parse_integer(id).and_then(|id| u64::try_from(id).ok())).collect();
            filter.ids = Some(ids.ok_or_else(|| b"ERR Invalid client ID".to_vec())?);
        }
        _ => return Err(CommandError::Syntax.text()),
    }
    Ok(ProcessRequest::ListClients(filter))
}

/// CLIENT KILL: the words behind these two, sent by a client.
pub(super) fn kill(words: &[&[u8]], session: &Session) -> Result<ProcessRequest, Vec<u8>> {
    if let [address] = words {
        let filter = ClientFilter { address: Some(address.to_vec()), ..ClientFilter::default() };
        return Ok(ProcessRequest::KillClients { filter, is_single: true });
    }
    let mut filter = ClientFilter { skipped: Some(session.identity.id), ..ClientFilter::default() };
    let mut pairs = words.chunks_exact(2);
    for pair in &mut pairs {
        let value = pair[1];
        let is = |name: &[u8]| pair[0].eq_ignore_ascii_case(name);
        if is(b"id") {
            let id = parse_integer(value).and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
            let id = id.ok_or_else(|| b"ERR client-id should be greater than 0".to_vec())?;
            filter.ids = Some(BTreeSet::from([id]));
        } else if is(b"maxage") {
            let seconds = parse_integer(value).ok_or_else(|| CommandError::NotInteger.text())?;
            let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
            let seconds = seconds.ok_or_else(|| b"ERR maxage should be greater than 0".to_vec())?;
            filter.age_min = Some(Duration::from_secs(seconds));
        } else if is(b"type") {
            filter.kind = Some(kind(value)?);
        } else if is(b"addr") {
            filter.address = Some(value.to_vec());
        } else if is(b"laddr") {
            filter.local_address = Some(value.to_vec());
        } else if is(b"user") {
            let users = session.shared.known_users();
            if users.is_none_or(|users| users.find(value).is_none()) {
                return Err(quoted("ERR No such user '", value));
            }
            filter.user = Some(value.to_vec());
        } else if is(b"skipme") {
            filter.skipped = match value {
                yes if yes.eq_ignore_ascii_case(b"yes") => Some(session.identity.id),
                no if no.eq_ignore_ascii_case(b"no") => None,
                _ => return Err(CommandError::Syntax.text()),
            };
        } else {
            return Err(CommandError::Syntax.text());
        }
    }
    if !pairs.remainder().is_empty() {
        return Err(CommandError::Syntax.text());
    }
    Ok(ProcessRequest::KillClients { filter, is_single: false })
}

fn kind(name: &[u8]) -> Result<ClientKind, Vec<u8>> {
    ClientKind::parse(name).ok_or_else(|| quoted("ERR Unknown client type '", name))
}

/// An error that ends with this word and a quote.
fn quoted(error: &str, word: &[u8]) -> Vec<u8> {
    [error.as_bytes(), &word[..word.len().min(SHOWN_BYTES_MAX)], b"'"].concat()
}
