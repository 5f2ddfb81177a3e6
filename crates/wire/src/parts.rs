//! What messages and records are made of.

use crate::error::Malformed;
use crate::primitive::{Reader, Writer};
use crate::tag;
use std::sync::Arc;
use syros_protocol::message::{
    Advice, Asked, Body, BodyHash, Describe, LogEntry, Path, Payload, Prepared, Refusal, Request, RoleName,
    Update, ViewChangeReason,
};
use syros_types::limits::BODY_BYTES_MAX;
use syros_types::{
    ConfigurationEpoch, FastQuorum, FastRule, Group, NodeId, OpNumber, OperationId, Reconfiguration,
    ReplicaSet, Roster, SessionId, View, WallTime,
};

/// Fewest bytes of a request in a list: session, sequence, clock, acknowledgement, length.
const REQUEST_BYTES_MIN: usize = 12;
/// Fewest bytes of a log entry: view, time, tag.
const ENTRY_BYTES_MIN: usize = 10;
/// About what an operation id takes, to reserve memory for.
const ID_BYTES_USUAL: usize = 10;

/// How references to updates are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum References {
    /// With the hash of the body: in a Prepare.
    Hashed,
    /// Without: in a record.
    Bare,
}

/// A body of its own, in one allocation. The empty one shares the allocation of all others.
pub(crate) fn body(bytes: &[u8]) -> Body {
    if bytes.is_empty() { Body::default() } else { Arc::from(bytes) }
}

impl Writer<'_> {
    #[inline]
    pub(crate) fn id(self, id: OperationId) -> Self {
        self.number(id.session.0).number(id.sequence)
    }

    /// The first tag if there is no rule, else the second one and the rule.
    #[inline]
    pub(crate) fn tag_and_rule(self, (without, with): (u8, u8), rule: Option<FastRule>) -> Self {
        match rule {
            None => self.byte(without),
            Some(rule) => self.byte(with).rule(rule),
        }
    }

    #[inline]
    pub(crate) fn rule(self, FastRule { mode, active }: FastRule) -> Self {
        self.byte(fast_quorum_tag(mode)).number(u64::from(active.0))
    }

    /// What a read asks for, unless it is the leader's answer.
    pub(crate) fn asked(self, asked: Asked) -> Self {
        match asked {
            Asked::Answer => unreachable!("that has a tag of its own"),
            Asked::Value { after } => self.byte(tag::asked::VALUE).number(after.0),
            Asked::LastChange => self.byte(tag::asked::LAST_CHANGE),
            Asked::StaleValue => self.byte(tag::asked::STALE_VALUE),
        }
    }

    /// All of a request but its body.
    pub(crate) fn request_head(self, request: &Request) -> Self {
        let distance = request.id.sequence.wrapping_sub(request.acked_below);
        self.id(request.id).fixed(request.micros).number(distance)
    }

    /// A request whose body gets its length before it.
    pub(crate) fn request(self, request: &Request) -> Self {
        self.request_head(request).number(request.body.len() as u64).bytes(&request.body)
    }

    pub(crate) fn requests(self, requests: &[Request]) -> Self {
        self.list(requests, REQUEST_BYTES_MIN, Self::request)
    }

    pub(crate) fn ids(self, ids: &[OperationId]) -> Self {
        self.list(ids, ID_BYTES_USUAL, |writer, id| writer.id(*id))
    }

    fn sessions(self, sessions: &[SessionId]) -> Self {
        self.list(sessions, ID_BYTES_USUAL, |writer, session| writer.number(session.0))
    }

    pub(crate) fn reconfiguration(self, next: &Reconfiguration) -> Self {
        let writer = self.number(next.epoch.0);
        let Some(before) = &next.before else { return writer.sized_roster(&next.roster) };
        writer.byte(tag::RESIZED).sized_roster(before).sized_roster(&next.roster)
    }

    pub(crate) fn sized_roster(self, roster: &Roster) -> Self {
        // A group has at most 9 members.
        self.byte(roster.group().size() as u8).roster(roster)
    }

    /// The nodes of a group whose size the reader knows.
    pub(crate) fn roster(self, roster: &Roster) -> Self {
        let nodes = roster.nodes().iter();
        nodes.fold(self, |writer, node| writer.fixed(node.map_or(0, NodeId::number)))
    }

    /// Entries of a Prepare, or of a record, which keeps no hashes.
    pub(crate) fn prepared(self, entries: &[Prepared], references: References) -> Self {
        self.list(entries, ID_BYTES_USUAL + 9, |writer, entry| match entry {
            Prepared::Reference { id, body_hash } => match references {
                References::Hashed => writer.byte(tag::prepared::HASHED_REFERENCE).id(*id).fixed(body_hash.0),
                References::Bare => writer.byte(tag::prepared::REFERENCE).id(*id),
            },
            Prepared::Full(request) => writer.byte(tag::prepared::FULL).request(request),
            Prepared::Register { nonce } => writer.byte(tag::prepared::REGISTER).fixed(*nonce),
            Prepared::Expire(sessions) => writer.byte(tag::prepared::EXPIRE).sessions(sessions),
            Prepared::Tick => writer.byte(tag::prepared::TICK),
            Prepared::Reconfigure(next) => writer.byte(tag::prepared::RECONFIGURE).reconfiguration(next),
        })
    }

    pub(crate) fn entries(self, entries: &[LogEntry]) -> Self {
        self.list(entries, ENTRY_BYTES_MIN, |writer, entry| {
            let writer = writer.number(entry.view.0).fixed(entry.time.0);
            match &entry.payload {
                Payload::Update(update) => writer.byte(tag::payload::UPDATE).request(&update.request),
                Payload::Recovered(updates) => {
                    let writer = writer.byte(tag::payload::RECOVERED);
                    writer.list(updates, REQUEST_BYTES_MIN, |writer, update| writer.request(&update.request))
                }
                Payload::Register { nonce } => writer.byte(tag::payload::REGISTER).fixed(*nonce),
                Payload::Expire(sessions) => writer.byte(tag::payload::EXPIRE).sessions(sessions),
                Payload::Tick => writer.byte(tag::payload::TICK),
                Payload::Reconfigure(next) => writer.byte(tag::payload::RECONFIGURE).reconfiguration(next),
            }
        })
    }
}

impl Reader<'_> {
    pub(crate) fn id(&mut self) -> Result<OperationId, Malformed> {
        Ok(OperationId { session: SessionId(self.number()?), sequence: self.number()? })
    }

    /// A request whose body has its length before it.
    pub(crate) fn request(&mut self) -> Result<Request, Malformed> {
        let (id, micros, acked_below) = self.request_head()?;
        Ok(Request { id, micros, acked_below, body: body(self.bytes("operation", BODY_BYTES_MAX)?) })
    }

    /// A request whose body is the rest of the message.
    pub(crate) fn last_request(&mut self) -> Result<Request, Malformed> {
        let (id, micros, acked_below) = self.request_head()?;
        Ok(Request { id, micros, acked_below, body: body(self.remainder("operation", BODY_BYTES_MAX)?) })
    }

    fn request_head(&mut self) -> Result<(OperationId, u64, u64), Malformed> {
        let id = self.id()?;
        let micros = self.fixed()?;
        let acked_below = id.sequence.wrapping_sub(self.number()?);
        Ok((id, micros, acked_below))
    }

    pub(crate) fn requests(&mut self) -> Result<Vec<Request>, Malformed> {
        let count = self.count(REQUEST_BYTES_MIN)?;
        let mut requests = Vec::with_capacity(count);
        for _ in 0..count {
            requests.push(self.request()?);
        }
        Ok(requests)
    }

    fn update(&mut self, describe: Describe) -> Result<Update, Malformed> {
        let request = self.request()?;
        Update::describe(describe, request).ok_or(Malformed::Operation)
    }

    pub(crate) fn replicas(&mut self) -> Result<ReplicaSet, Malformed> {
        let limit = u64::from(u16::MAX);
        let value = self.number()?;
        let bits = u16::try_from(value);
        bits.map(ReplicaSet).map_err(|_| Malformed::OutOfRange { what: "set of replicas", value, limit })
    }

    /// The rule of a message or record, if its tag says that there is one.
    pub(crate) fn rule_if(&mut self, is_there: bool) -> Result<Option<FastRule>, Malformed> {
        is_there.then(|| self.rule()).transpose()
    }

    pub(crate) fn rule(&mut self) -> Result<FastRule, Malformed> {
        Ok(FastRule { mode: self.fast_quorum()?, active: self.replicas()? })
    }

    pub(crate) fn ids(&mut self) -> Result<Vec<OperationId>, Malformed> {
        let count = self.count(2)?;
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            ids.push(self.id()?);
        }
        Ok(ids)
    }

    fn sessions(&mut self) -> Result<Box<[SessionId]>, Malformed> {
        let count = self.count(1)?;
        let mut sessions = Vec::with_capacity(count);
        for _ in 0..count {
            sessions.push(SessionId(self.number()?));
        }
        Ok(sessions.into_boxed_slice())
    }

    pub(crate) fn reconfiguration(&mut self) -> Result<Reconfiguration, Malformed> {
        let epoch = ConfigurationEpoch(self.number()?);
        let size = self.byte()?;
        let (before, size) =
            if size == tag::RESIZED { (Some(self.sized_roster()?), self.byte()?) } else { (None, size) };
        Ok(Reconfiguration { epoch, roster: self.roster(group_of(size)?)?, before })
    }

    pub(crate) fn sized_roster(&mut self) -> Result<Roster, Malformed> {
        let group = self.group()?;
        self.roster(group)
    }

    pub(crate) fn group(&mut self) -> Result<Group, Malformed> {
        group_of(self.byte()?)
    }

    pub(crate) fn roster(&mut self, group: Group) -> Result<Roster, Malformed> {
        let mut roster = Roster::unknown(group);
        for member in group.members() {
            if let Some(node) = NodeId::new(self.fixed()?) {
                roster = roster.with(member, node);
            }
        }
        Ok(roster)
    }

    pub(crate) fn prepared(&mut self, references: References) -> Result<Vec<Prepared>, Malformed> {
        let count = self.count(1)?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            entries.push(match self.byte()? {
                tag::prepared::REFERENCE if references == References::Bare => {
                    Prepared::Reference { id: self.id()?, body_hash: BodyHash::default() }
                }
                tag::prepared::HASHED_REFERENCE if references == References::Hashed => {
                    Prepared::Reference { id: self.id()?, body_hash: BodyHash(self.fixed()?) }
                }
                tag::prepared::FULL => Prepared::Full(self.request()?),
                tag::prepared::REGISTER => Prepared::Register { nonce: self.fixed()? },
                tag::prepared::EXPIRE => Prepared::Expire(self.sessions()?),
                tag::prepared::TICK => Prepared::Tick,
                tag::prepared::RECONFIGURE => Prepared::Reconfigure(Box::new(self.reconfiguration()?)),
                tag => return Err(Malformed::Tag { what: "prepared entry", tag }),
            });
        }
        Ok(entries)
    }

    pub(crate) fn entries(&mut self, describe: Describe) -> Result<Vec<LogEntry>, Malformed> {
        let count = self.count(ENTRY_BYTES_MIN)?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            entries.push(self.entry(describe)?);
        }
        Ok(entries)
    }

    fn entry(&mut self, describe: Describe) -> Result<LogEntry, Malformed> {
        let (view, time) = (View(self.number()?), WallTime(self.fixed()?));
        let payload = match self.byte()? {
            tag::payload::UPDATE => Payload::Update(self.update(describe)?),
            tag::payload::RECOVERED => {
                let count = self.count(REQUEST_BYTES_MIN)?;
                let mut updates = Vec::with_capacity(count);
                for _ in 0..count {
                    updates.push(self.update(describe)?);
                }
                Payload::Recovered(updates.into_boxed_slice())
            }
            tag::payload::REGISTER => Payload::Register { nonce: self.fixed()? },
            tag::payload::EXPIRE => Payload::Expire(self.sessions()?),
            tag::payload::TICK => Payload::Tick,
            tag::payload::RECONFIGURE => Payload::Reconfigure(Box::new(self.reconfiguration()?)),
            tag => return Err(Malformed::Tag { what: "log entry", tag }),
        };
        Ok(LogEntry { view, time, payload })
    }

    pub(crate) fn advice(&mut self) -> Result<Advice, Malformed> {
        match self.byte()? {
            tag::advice::FREE => Ok(Advice::Free),
            tag::advice::LEADER => Ok(Advice::Leader),
            tag => Err(Malformed::Tag { what: "advice", tag }),
        }
    }

    pub(crate) fn path(&mut self) -> Result<Path, Malformed> {
        match self.byte()? {
            tag::path::DURABILITY => Ok(Path::Durability),
            tag::path::ORDERED => Ok(Path::Ordered),
            tag => Err(Malformed::Tag { what: "path", tag }),
        }
    }

    pub(crate) fn refusal(&mut self) -> Result<Refusal, Malformed> {
        Ok(match self.byte()? {
            tag::refusal::CLOCK_SKEW => Refusal::ClockSkew,
            tag::refusal::UNKNOWN_SESSION => Refusal::UnknownSession,
            tag::refusal::STALE => Refusal::Stale,
            tag::refusal::MALFORMED => Refusal::Malformed,
            tag::refusal::LOG_FULL => Refusal::LogFull,
            tag::refusal::OVERLOADED => Refusal::Overloaded,
            tag::refusal::DISK_FAILED => Refusal::DiskFailed,
            tag::refusal::NOT_NORMAL => Refusal::NotNormal,
            tag::refusal::OTHER_OPERATION => Refusal::OtherOperation,
            tag::refusal::NOT_ATTACHED => Refusal::NotAttached,
            tag::refusal::OUT_OF_MEMORY => Refusal::OutOfMemory,
            tag::refusal::DISK_FULL => Refusal::DiskFull,
            tag::refusal::REPLY_DROPPED => Refusal::ReplyDropped,
            tag::refusal::NOT_ACTIVE => Refusal::NotActive,
            tag => return Err(Malformed::Tag { what: "refusal", tag }),
        })
    }

    pub(crate) fn asked(&mut self) -> Result<Asked, Malformed> {
        match self.byte()? {
            tag::asked::VALUE => Ok(Asked::Value { after: OpNumber(self.number()?) }),
            tag::asked::LAST_CHANGE => Ok(Asked::LastChange),
            tag::asked::STALE_VALUE => Ok(Asked::StaleValue),
            tag => Err(Malformed::Tag { what: "part of a read", tag }),
        }
    }

    pub(crate) fn reason(&mut self) -> Result<ViewChangeReason, Malformed> {
        match self.byte()? {
            tag::reason::SUSPICION => Ok(ViewChangeReason::Suspicion),
            tag::reason::MOVED => Ok(ViewChangeReason::Moved),
            tag::reason::ABDICATION => Ok(ViewChangeReason::Abdication),
            tag => Err(Malformed::Tag { what: "reason of a view change", tag }),
        }
    }

    pub(crate) fn role(&mut self) -> Result<RoleName, Malformed> {
        match self.byte()? {
            tag::role::LEADER => Ok(RoleName::Leader),
            tag::role::FOLLOWER => Ok(RoleName::Follower),
            tag::role::VIEW_CHANGE => Ok(RoleName::ViewChange),
            tag::role::RECOVERING => Ok(RoleName::Recovering),
            tag => Err(Malformed::Tag { what: "role", tag }),
        }
    }

    pub(crate) fn fast_quorum(&mut self) -> Result<FastQuorum, Malformed> {
        let tag = self.byte()?;
        let mode = FastQuorum::ALL.into_iter().find(|mode| fast_quorum_tag(*mode) == tag);
        mode.ok_or(Malformed::Tag { what: "fast quorum mode", tag })
    }

    pub(crate) fn boolean(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            tag::boolean::FALSE => Ok(false),
            tag::boolean::TRUE => Ok(true),
            tag => Err(Malformed::Tag { what: "truth value", tag }),
        }
    }
}

/// The group of this size.
pub(crate) fn group_of(size: u8) -> Result<Group, Malformed> {
    let (value, limit) = (u64::from(size), Group::SIZE_MAX as u64);
    Group::new(usize::from(size)).map_err(|_| Malformed::OutOfRange { what: "group size", value, limit })
}

pub(crate) const fn advice_tag(advice: Advice) -> u8 {
    match advice {
        Advice::Free => tag::advice::FREE,
        Advice::Leader => tag::advice::LEADER,
    }
}

pub(crate) const fn path_tag(path: Path) -> u8 {
    match path {
        Path::Durability => tag::path::DURABILITY,
        Path::Ordered => tag::path::ORDERED,
    }
}

pub(crate) const fn refusal_tag(refusal: Refusal) -> u8 {
    match refusal {
        Refusal::ClockSkew => tag::refusal::CLOCK_SKEW,
        Refusal::UnknownSession => tag::refusal::UNKNOWN_SESSION,
        Refusal::Stale => tag::refusal::STALE,
        Refusal::Malformed => tag::refusal::MALFORMED,
        Refusal::LogFull => tag::refusal::LOG_FULL,
        Refusal::Overloaded => tag::refusal::OVERLOADED,
        Refusal::DiskFailed => tag::refusal::DISK_FAILED,
        Refusal::NotNormal => tag::refusal::NOT_NORMAL,
        Refusal::OtherOperation => tag::refusal::OTHER_OPERATION,
        Refusal::NotAttached => tag::refusal::NOT_ATTACHED,
        Refusal::OutOfMemory => tag::refusal::OUT_OF_MEMORY,
        Refusal::DiskFull => tag::refusal::DISK_FULL,
        Refusal::ReplyDropped => tag::refusal::REPLY_DROPPED,
        Refusal::NotActive => tag::refusal::NOT_ACTIVE,
    }
}

pub(crate) const fn reason_tag(reason: ViewChangeReason) -> u8 {
    match reason {
        ViewChangeReason::Suspicion => tag::reason::SUSPICION,
        ViewChangeReason::Moved => tag::reason::MOVED,
        ViewChangeReason::Abdication => tag::reason::ABDICATION,
    }
}

pub(crate) const fn role_tag(role: RoleName) -> u8 {
    match role {
        RoleName::Leader => tag::role::LEADER,
        RoleName::Follower => tag::role::FOLLOWER,
        RoleName::ViewChange => tag::role::VIEW_CHANGE,
        RoleName::Recovering => tag::role::RECOVERING,
    }
}

pub(crate) const fn fast_quorum_tag(mode: FastQuorum) -> u8 {
    match mode {
        FastQuorum::Majority => tag::fast_quorum::MAJORITY,
        FastQuorum::Supermajority => tag::fast_quorum::SUPERMAJORITY,
        FastQuorum::NilextOrCommutative => tag::fast_quorum::NILEXT_OR_COMMUTATIVE,
        FastQuorum::Commutative => tag::fast_quorum::COMMUTATIVE,
        FastQuorum::Mixed => tag::fast_quorum::MIXED,
    }
}

pub(crate) const fn boolean_tag(value: bool) -> u8 {
    if value { tag::boolean::TRUE } else { tag::boolean::FALSE }
}
