//! The handshake: the first frames in each direction of a connection.

use crate::authentication::{Nonce, Proof};
use crate::error::Malformed;
use crate::parts::{fast_quorum_tag, group_of};
use crate::primitive::{Reader, Writer};
use crate::tag;
use core::fmt;
use core::time::Duration;
use syros_protocol::agreement::{EngineName, SharedSettings};
use syros_protocol::formation::{Declaration, Stage};
use syros_protocol::replica::Durability;
use syros_types::{
    ConfigurationEpoch, ConfigurationId, Group, GroupId, Incarnation, NodeId, ReplicaId, Roster, micros,
};

/// Version of the wire format that this code speaks.
pub const VERSION: u16 = 25;

/// The oldest version that this code speaks as well, so that a cluster is upgraded one node after the other. It lacks what a
/// node says of its life and configuration; its frames are those of the first configuration. Versions 5 to 9, 12, 14, 17, 19 and 24 lack messages: see
/// [`version_of`](crate::version_of); no version before 7 knows the mixed mode, so that such a process and a node of a mixed
/// cluster refuse each other. Versions before 11 know no operations but those on strings,
/// those before 12 neither streams nor scripts nor what else `Generation::Programs` names, those before 13 no
/// transactions of many scripts and no payloads of streams, those before 14 no scripts that
/// are told that memory is short or how fuel is counted, those before 16 no DEBUG in scripts and none of data, those
/// before 17 no nodes that take the place of others, those before 18 no users, those before 19 no groups that grow and
/// shrink, those before 21 no scripts that are told which commands their user may run, those before 22 none in which KEYS and
/// SCAN count as the keys that they go through, those before 23 no EVAL_RO of a script that may touch any key without saying so, and those before 24 no learners: a node that a group is
/// to grow by tells them that it joins.
pub const VERSION_MIN: u16 = 4;

/// The version since which nodes can be replaced, and configurations are not all the first one.
pub const REPLACED_SINCE: u16 = 17;

/// The version since which groups can grow and shrink.
pub const RESIZED_SINCE: u16 = 19;

/// The version since which nodes that a group is to grow by copy what it holds before they are members.
pub const LEARNS_SINCE: u16 = 24;

/// What every handshake starts with.
const MAGIC: [u8; 4] = *b"SYRS";

/// The cluster id of a client that takes any cluster. No cluster has it.
pub const ANY_CLUSTER: u64 = 0;

/// Longest frame of a handshake, with its channel, in bytes: the longest [`Hello`] has fewer than 360.
pub const HANDSHAKE_BYTES_MAX: usize = 1024;

/// Longest reason of a refusal, in bytes; a longer one is cut.
const REASON_BYTES_MAX: usize = 800;

/// What a process says of itself when a connection is made. Magic and version come first in every
/// version of the format.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hello {
    /// The cluster the sender belongs to, or (a client) looks for; [`ANY_CLUSTER`] for any.
    pub cluster: u64,
    /// Drawn for this connection by a sender that knows the cluster's secret, and wants to show it and see it shown.
    pub nonce: Option<Nonce>,
    /// Who sends it.
    pub sender: Sender,
}

/// Who sends a handshake.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sender {
    /// A client, or a gateway on its own.
    Client,
    /// A node.
    Replica(Box<Member>),
}

/// What a node says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Which member it is, which node, and whether the group exists.
    pub declaration: Declaration,
    /// A random number of the process. Two processes of one node that run at a time differ in it, also if one has a copy of
    /// the data directory of the other, and so counts the same lives.
    pub process: u64,
    /// Which life of the node this is.
    pub incarnation: Incarnation,
    /// The group that it is, or is to be, a member of. The epoch is in the declaration.
    pub group: GroupId,
    /// What all nodes of a cluster must agree on.
    pub settings: SharedSettings,
}

/// What is said on the handshake's channel after both sides have sent their [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeMessage {
    /// The side that made the connection proves that it knows the secret.
    Proof(Proof),
    /// The other side takes the connection, and if there is a secret, proves that it knows it.
    Welcome(Option<Proof>),
    /// The other side does not, for this reason, and closes it.
    Refused(String),
    /// A member whose group is being formed has come farther.
    Stage(Stage),
    /// From version 24 on: a leader tells a learner why it has to wait for its place.
    NotYet(String),
}

/// Why a handshake fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloError {
    /// The other side speaks another protocol.
    NotSyros,
    /// The other side speaks another version of the wire format.
    Version {
        /// Its version.
        theirs: u16,
        /// This process's version.
        ours: u16,
    },
    /// The other side belongs to another cluster.
    Cluster {
        /// Its cluster.
        theirs: u64,
        /// This process's cluster.
        ours: u64,
    },
    /// The bytes after the version make no sense.
    Malformed(Malformed),
}

impl fmt::Display for HelloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSyros => f.write_str("peer does not speak the Syros protocol"),
            Self::Version { theirs, ours } => {
                write!(
                    f,
                    "peer speaks wire format version {theirs}, this process speaks {VERSION_MIN} to {ours}"
                )
            }
            Self::Cluster { theirs, ours } => {
                write!(f, "peer belongs to cluster {theirs:016x}, this process to cluster {ours:016x}")
            }
            Self::Malformed(malformed) => write!(f, "malformed handshake: {malformed}"),
        }
    }
}

impl core::error::Error for HelloError {}

impl From<Malformed> for HelloError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl Hello {
    /// Appends the encoding in the version that the sender begins with: of a node the newest, of a client the oldest,
    /// which has all that a client says.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let version = if matches!(self.sender, Sender::Client) { VERSION_MIN } else { VERSION };
        self.encode_as(version, out);
    }

    /// Appends the encoding in this version. A node whose configuration is not the first one says so in the newest version,
    /// which a process of a build refuses by name that knows no other configuration: it would take the epoch of a view for a part
    /// of its number, and another member for its leader.
    pub fn encode_as(&self, version: u16, out: &mut Vec<u8>) {
        let since = match &self.sender {
            Sender::Client => VERSION_MIN,
            Sender::Replica(member) => {
                let Member { declaration, group, .. } = &**member;
                let is_resized = match &declaration.stage {
                    Stage::Acting(roster) => {
                        declaration.before.is_some() || roster.group() != member.settings.group
                    }
                    Stage::Joining | Stage::Learning => true,
                    _ => false,
                };
                match (*group, declaration.epoch) {
                    _ if is_resized => RESIZED_SINCE,
                    (GroupId::ONLY, ConfigurationEpoch::FIRST) => VERSION_MIN,
                    _ => REPLACED_SINCE,
                }
            }
        };
        let version = if version >= since { version } else { VERSION };
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&version.to_le_bytes());
        let writer = Writer::new(out).fixed(self.cluster);
        let writer = match &self.nonce {
            None => writer.byte(tag::boolean::FALSE),
            Some(nonce) => writer.byte(tag::boolean::TRUE).bytes(nonce),
        };
        match &self.sender {
            Sender::Client => writer.byte(tag::sender::CLIENT),
            Sender::Replica(member) => encode_member(member, version, writer.byte(tag::sender::REPLICA)),
        };
    }

    /// The version to answer this handshake in: its own, if this process speaks it.
    #[must_use]
    pub fn version_of_answer(bytes: &[u8]) -> u16 {
        let theirs = bytes.get(4..6).map(|version| u16::from_le_bytes([version[0], version[1]]));
        theirs.filter(|theirs| (VERSION_MIN..=VERSION).contains(theirs)).unwrap_or(VERSION)
    }

    /// The handshake that `bytes` encode.
    ///
    /// # Errors
    /// [`HelloError`], in this order: not this protocol, another version, malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, HelloError> {
        let Some(([magic @ .., low, high], rest)) = bytes.split_first_chunk::<6>() else {
            return Err(HelloError::NotSyros);
        };
        if *magic != MAGIC {
            return Err(HelloError::NotSyros);
        }
        let theirs = u16::from_le_bytes([*low, *high]);
        if !(VERSION_MIN..=VERSION).contains(&theirs) {
            return Err(HelloError::Version { theirs, ours: VERSION });
        }
        let mut reader = Reader::new(rest);
        let cluster = reader.fixed()?;
        let nonce = if reader.boolean()? { Some(reader.array()?) } else { None };
        let sender = match reader.byte()? {
            tag::sender::CLIENT => Sender::Client,
            tag::sender::REPLICA => Sender::Replica(Box::new(decode_member(&mut reader, theirs)?)),
            tag => return Err(Malformed::Tag { what: "sender", tag }.into()),
        };
        reader.end()?;
        Ok(Self { cluster, nonce, sender })
    }

    /// Checks that the sender of this handshake belongs to the receiver's cluster, `ours`. Either may
    /// be [`ANY_CLUSTER`], if it is a client.
    ///
    /// # Errors
    /// [`HelloError::Cluster`] if not.
    pub const fn check_cluster(&self, ours: u64) -> Result<(), HelloError> {
        let theirs = self.cluster;
        let is_any = ours == ANY_CLUSTER || (theirs == ANY_CLUSTER && matches!(self.sender, Sender::Client));
        if is_any || theirs == ours { Ok(()) } else { Err(HelloError::Cluster { theirs, ours }) }
    }
}

impl HandshakeMessage {
    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let writer = Writer::new(out);
        match self {
            Self::Proof(proof) => writer.byte(tag::step::PROOF).bytes(&proof.0),
            Self::Welcome(None) => writer.byte(tag::step::WELCOME),
            Self::Welcome(Some(proof)) => writer.byte(tag::step::WELCOME_WITH_PROOF).bytes(&proof.0),
            Self::Refused(reason) => {
                let reason = &reason.as_bytes()[..reason.len().min(REASON_BYTES_MAX)];
                writer.byte(tag::step::REFUSED).number(reason.len() as u64).bytes(reason)
            }
            Self::NotYet(reason) => {
                let reason = &reason.as_bytes()[..reason.len().min(REASON_BYTES_MAX)];
                writer.byte(tag::step::NOT_YET).number(reason.len() as u64).bytes(reason)
            }
            Self::Stage(stage) => {
                let writer = writer.byte(tag::step::STAGE);
                let size = match stage {
                    Stage::New | Stage::Replacing | Stage::Joining | Stage::Learning => 0,
                    Stage::Voted(roster) | Stage::Acting(roster) => roster.group().size(),
                };
                // A group has at most 9 members.
                encode_stage(stage, writer.byte(size as u8))
            }
        };
    }

    /// The step that `bytes` encode.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let step = match reader.byte()? {
            tag::step::PROOF => Self::Proof(Proof(reader.array()?)),
            tag::step::WELCOME => Self::Welcome(None),
            tag::step::WELCOME_WITH_PROOF => Self::Welcome(Some(Proof(reader.array()?))),
            step @ (tag::step::REFUSED | tag::step::NOT_YET) => {
                let reason = reader.bytes("reason of a refusal", REASON_BYTES_MAX)?;
                // It is for people, and goes into a log: nothing in it may look like something else.
                let text = String::from_utf8_lossy(reason);
                let text = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                if step == tag::step::REFUSED { Self::Refused(text) } else { Self::NotYet(text) }
            }
            tag::step::STAGE => {
                let size = reader.byte()?;
                let group = if size == 0 { None } else { Some(group_of(size)?) };
                let (stage, before) = decode_stage(&mut reader, group, VERSION)?;
                let is_sized = matches!(stage, Stage::Acting(roster) if Some(roster.group()) != group);
                if before.is_some() || is_sized {
                    // Only handshakes say that much.
                    return Err(Malformed::Tag { what: "stage", tag: tag::stage::ACTING_RESIZED });
                }
                Self::Stage(stage)
            }
            tag => return Err(Malformed::Tag { what: "handshake step", tag }),
        };
        reader.end()?;
        Ok(step)
    }
}

const fn durability_tag(durability: Durability) -> u8 {
    match durability {
        Durability::Fsync => tag::durability::FSYNC,
        Durability::Replicated => tag::durability::REPLICATED,
    }
}

fn encode_member<'a>(member: &Member, version: u16, writer: Writer<'a>) -> Writer<'a> {
    let Member { declaration, process, incarnation, group, settings } = member;
    // A group has at most 9 members.
    let writer = writer.byte(declaration.replica.0).byte(settings.group.size() as u8);
    let writer = writer.byte(fast_quorum_tag(settings.fast_quorum)).byte(durability_tag(settings.durability));
    let engine = settings.engine.as_str().as_bytes();
    let writer = writer.number(engine.len() as u64).bytes(engine);
    let writer = writer.number(micros(settings.lease)).number(u64::from(settings.clock_drift_ppm));
    let writer = writer.number(micros(settings.session_timeout));
    let writer = writer.fixed(declaration.node.number()).fixed(*process);
    let writer = if version == VERSION_MIN {
        writer
    } else {
        writer.number(incarnation.0).number(u64::from(group.0)).number(declaration.epoch.0)
    };
    match (&declaration.stage, &declaration.before) {
        // Of a node that the group has shrunk by, the group's size leaves no place for it.
        (Stage::Acting(roster), before) if before.is_some() || roster.group() != settings.group => {
            let writer = writer.byte(tag::stage::ACTING_RESIZED).sized_roster(roster);
            match before {
                None => writer.byte(tag::boolean::FALSE),
                Some(before) => writer.byte(tag::boolean::TRUE).sized_roster(before),
            }
        }
        (Stage::Learning, _) if version < LEARNS_SINCE => encode_stage(&Stage::Joining, writer),
        (stage, _) => encode_stage(stage, writer),
    }
}

fn encode_stage<'a>(stage: &Stage, writer: Writer<'a>) -> Writer<'a> {
    match stage {
        Stage::New => writer.byte(tag::stage::NEW),
        Stage::Replacing => writer.byte(tag::stage::REPLACING),
        Stage::Joining => writer.byte(tag::stage::JOINING),
        Stage::Learning => writer.byte(tag::stage::LEARNING),
        Stage::Voted(roster) => writer.byte(tag::stage::VOTED).roster(roster),
        Stage::Acting(roster) => writer.byte(tag::stage::ACTING).roster(roster),
    }
}

fn decode_member(reader: &mut Reader<'_>, version: u16) -> Result<Member, Malformed> {
    let replica = reader.byte()?;
    let group = reader.group()?;
    if usize::from(replica) >= group.size() {
        let (value, limit) = (u64::from(replica), group.size() as u64 - 1);
        return Err(Malformed::OutOfRange { what: "replica", value, limit });
    }
    let fast_quorum = reader.fast_quorum()?;
    let durability = match reader.byte()? {
        tag::durability::FSYNC => Durability::Fsync,
        tag::durability::REPLICATED => Durability::Replicated,
        tag => return Err(Malformed::Tag { what: "durability", tag }),
    };
    let engine = reader.bytes("name of an engine", EngineName::BYTES_MAX)?;
    let engine = core::str::from_utf8(engine).ok().and_then(EngineName::new).ok_or(Malformed::Engine)?;
    let lease = Duration::from_micros(reader.number()?);
    let drift = reader.number()?;
    let limit = u64::from(u32::MAX);
    let clock_drift_ppm = u32::try_from(drift).map_err(|_| Malformed::OutOfRange {
        what: "clock drift",
        value: drift,
        limit,
    })?;
    let session_timeout = Duration::from_micros(reader.number()?);
    let node = NodeId::new(reader.fixed()?).ok_or(Malformed::NoNode)?;
    let process = reader.fixed()?;
    let (incarnation, configuration) = if version == VERSION_MIN {
        (Incarnation::UNKNOWN, ConfigurationId::FIRST)
    } else {
        (Incarnation(reader.number()?), reader.configuration()?)
    };
    if version < REPLACED_SINCE && configuration != ConfigurationId::FIRST {
        // No build that speaks this version has another one.
        let (what, value) = ("epoch", configuration.epoch.0.max(u64::from(configuration.group.0)));
        return Err(Malformed::OutOfRange { what, value, limit: 0 });
    }
    let (stage, before) = decode_stage(reader, Some(group), version)?;
    let settings =
        SharedSettings { group, fast_quorum, durability, engine, lease, clock_drift_ppm, session_timeout };
    let (replica, epoch) = (ReplicaId(replica), configuration.epoch);
    let declaration = Declaration { replica, node, stage, epoch, before };
    Ok(Member { declaration, process, incarnation, group: configuration.group, settings })
}

/// `group`: how many nodes a roster has; none if there must be no roster. Beside it the roster before, if that is told.
fn decode_stage(
    reader: &mut Reader<'_>,
    group: Option<Group>,
    version: u16,
) -> Result<(Stage, Option<Roster>), Malformed> {
    let tag = reader.byte()?;
    let since = match tag {
        tag::stage::ACTING_RESIZED | tag::stage::JOINING => RESIZED_SINCE,
        tag::stage::LEARNING => LEARNS_SINCE,
        _ => VERSION_MIN,
    };
    if version < since {
        return Err(Malformed::Tag { what: "stage", tag });
    }
    let mut roster = || reader.roster(group.ok_or(Malformed::Truncated)?);
    let stage = match tag {
        tag::stage::NEW => Stage::New,
        tag::stage::REPLACING => Stage::Replacing,
        tag::stage::JOINING => Stage::Joining,
        tag::stage::LEARNING => Stage::Learning,
        tag::stage::VOTED => Stage::Voted(roster()?),
        tag::stage::ACTING => Stage::Acting(roster()?),
        tag::stage::ACTING_RESIZED => {
            let roster = reader.sized_roster()?;
            let before = if reader.boolean()? { Some(reader.sized_roster()?) } else { None };
            // What can be said without sizes is.
            if before.is_none() && Some(roster.group()) == group {
                return Err(Malformed::Tag { what: "stage", tag });
            }
            return Ok((Stage::Acting(roster), before));
        }
        tag => return Err(Malformed::Tag { what: "stage", tag }),
    };
    Ok((stage, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authentication::NONCE_BYTES;
    use syros_types::FastQuorum;

    fn member() -> Hello {
        let group = Group::new(3).unwrap();
        let roster = Roster::unknown(group).with(ReplicaId(0), NodeId::new(0xaa).unwrap());
        let roster = roster.with(ReplicaId(2), NodeId::new(0x1122).unwrap());
        let member = Member {
            declaration: Declaration {
                replica: ReplicaId(2),
                node: NodeId::new(0x1122).unwrap(),
                stage: Stage::Acting(roster),
                epoch: ConfigurationEpoch(130),
                before: None,
            },
            process: 0x33,
            incarnation: Incarnation(7),
            group: GroupId(1),
            settings: SharedSettings {
                group,
                fast_quorum: FastQuorum::Supermajority,
                durability: Durability::Fsync,
                engine: EngineName::new("memory").unwrap(),
                lease: Duration::from_micros(100),
                clock_drift_ppm: 50,
                session_timeout: Duration::from_micros(300),
            },
        };
        let sender = Sender::Replica(Box::new(member));
        Hello { cluster: 0x0102_0304_0506_0708, nonce: Some([0xee; NONCE_BYTES]), sender }
    }

    fn encoded(hello: &Hello) -> Vec<u8> {
        let mut out = Vec::new();
        hello.encode(&mut out);
        out
    }

    #[test]
    fn handshakes_have_golden_bytes_and_come_back() {
        let client = Hello { cluster: ANY_CLUSTER, nonce: None, sender: Sender::Client };
        assert_eq!(encoded(&client), *b"SYRS\x04\0\0\0\0\0\0\0\0\0\0\x01");
        let parts: [&[u8]; 10] = [
            b"SYRS\x19\0\x08\x07\x06\x05\x04\x03\x02\x01",
            &[1],
            &[0xee; 16],
            // Member 2 of 3, supermajority, fsync, the engine.
            b"\x02\x02\x03\x02\x01\x06memory",
            // 100, 50 and 300.
            &[100, 50, 0xac, 2],
            // Node and process.
            &[0x22, 0x11, 0, 0, 0, 0, 0, 0, 0x33, 0, 0, 0, 0, 0, 0, 0],
            // Incarnation, group and epoch.
            &[7, 1, 0x82, 1],
            &[3],
            &[0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x22, 0x11, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(encoded(&member()), parts.concat());
        for hello in [client, member()] {
            assert_eq!(Hello::decode(&encoded(&hello)), Ok(hello));
        }
    }

    #[test]
    fn the_version_before_is_spoken_as_well() {
        let mut hello = member();
        let Sender::Replica(member) = &mut hello.sender else { panic!("it is a member") };
        let mut later = Vec::new();
        (member.incarnation, member.group) = (Incarnation::UNKNOWN, GroupId::ONLY);
        member.declaration.epoch = ConfigurationEpoch::FIRST;
        hello.encode_as(VERSION_MIN, &mut later);
        let golden: [&[u8]; 9] = [
            b"SYRS\x04\0\x08\x07\x06\x05\x04\x03\x02\x01",
            &[1],
            &[0xee; 16],
            b"\x02\x02\x03\x02\x01\x06memory",
            &[100, 50, 0xac, 2],
            &[0x22, 0x11, 0, 0, 0, 0, 0, 0, 0x33, 0, 0, 0, 0, 0, 0, 0],
            &[3],
            &[0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x22, 0x11, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(later, golden.concat());
        assert_eq!(Hello::version_of_answer(&later), VERSION_MIN);
        assert_eq!(Hello::decode(&later), Ok(hello));
        // Those in between are laid out as the newest, if they know the configuration.
        for version in VERSION_MIN + 1..REPLACED_SINCE {
            let (mut between, mut hello) = (Vec::new(), self::member());
            hello.encode_as(version, &mut between);
            assert_eq!(Hello::version_of_answer(&between), VERSION);
            let Sender::Replica(member) = &mut hello.sender else { panic!("it is a member") };
            (member.group, member.declaration.epoch) = (GroupId::ONLY, ConfigurationEpoch::FIRST);
            between.clear();
            hello.encode_as(version, &mut between);
            assert_eq!((between[4], Hello::version_of_answer(&between)), (version as u8, version));
            assert_eq!(Hello::decode(&between), Ok(hello));
            let mut wrong = encoded(&self::member());
            wrong[4] = version as u8;
            assert!(Hello::decode(&wrong).is_err());
        }
    }

    #[test]
    fn a_configuration_that_the_version_before_cannot_name_is_not_hidden_from_it() {
        let mut out = Vec::new();
        member().encode_as(VERSION_MIN, &mut out);
        assert_eq!(out, encoded(&member()), "which a process of version 4 refuses by name");
        assert_eq!(Hello::version_of_answer(&out), VERSION);
        assert_eq!(Hello::version_of_answer(b"SYRS\x19\0"), VERSION);
    }

    #[test]
    fn the_longest_handshake_fits() {
        let Hello { cluster, nonce, sender } = member();
        let Sender::Replica(mut longest) = sender else { panic!("it is a member") };
        let group = Group::new(Group::SIZE_MAX).unwrap();
        longest.settings.group = group;
        longest.settings.engine = EngineName::new(&"x".repeat(EngineName::BYTES_MAX)).unwrap();
        longest.settings.session_timeout = Duration::from_micros(u64::MAX);
        longest.settings.lease = Duration::from_micros(u64::MAX);
        longest.incarnation = Incarnation(u64::MAX);
        (longest.group, longest.declaration.epoch) = (GroupId(u32::MAX), ConfigurationEpoch(u64::MAX));
        longest.declaration.stage = Stage::Acting(Roster::unknown(group));
        longest.declaration.before = Some(Roster::unknown(group));
        let hello = Hello { cluster, nonce, sender: Sender::Replica(longest) };
        let bytes = encoded(&hello);
        assert!(bytes.len() < 360, "{} bytes", bytes.len());
        assert_eq!(Hello::decode(&bytes), Ok(hello));
    }

    /// A node that the group has shrunk by says which group that is, and no build that cannot read it takes it for another one.
    #[test]
    fn sizes_come_back() {
        let (three, five) = (Group::new(3).unwrap(), Group::new(5).unwrap());
        let Sender::Replica(member) = member().sender else { panic!("it is a member") };
        let said = |settings, roster, before: Option<Group>| {
            let mut member = member.clone();
            (member.group, member.declaration.epoch) = (GroupId::ONLY, ConfigurationEpoch(2));
            (member.settings.group, member.declaration.replica) = (settings, ReplicaId(2));
            member.declaration.stage = Stage::Acting(Roster::unknown(roster));
            member.declaration.before = before.map(Roster::unknown);
            Hello { cluster: 7, nonce: None, sender: Sender::Replica(member) }
        };
        for (hello, since) in [
            (said(three, three, None), REPLACED_SINCE),
            (said(five, five, Some(three)), RESIZED_SINCE),
            (said(five, three, Some(five)), RESIZED_SINCE),
            (said(five, three, None), RESIZED_SINCE),
        ] {
            assert_eq!(Hello::decode(&encoded(&hello)).as_ref(), Ok(&hello));
            for version in [REPLACED_SINCE, RESIZED_SINCE - 1] {
                let mut out = Vec::new();
                hello.encode_as(version, &mut out);
                let expected = if version >= since { version } else { VERSION };
                assert_eq!(Hello::version_of_answer(&out), expected);
                assert_eq!(Hello::decode(&out).as_ref(), Ok(&hello));
            }
        }
    }

    /// A build that knows no learners takes one for a node that joins.
    #[test]
    fn learners_join_older_groups() {
        let Sender::Replica(mut member) = member().sender else { panic!("it is a member") };
        (member.declaration.stage, member.declaration.epoch) = (Stage::Learning, ConfigurationEpoch::FIRST);
        let hello = Hello { cluster: 7, nonce: None, sender: Sender::Replica(member) };
        assert_eq!(Hello::decode(&encoded(&hello)).as_ref(), Ok(&hello));
        for version in [RESIZED_SINCE, LEARNS_SINCE - 1] {
            let mut out = Vec::new();
            hello.encode_as(version, &mut out);
            assert_eq!(Hello::version_of_answer(&out), version);
            let Sender::Replica(heard) = Hello::decode(&out).unwrap().sender else {
                panic!("it is a member")
            };
            assert_eq!(heard.declaration.stage, Stage::Joining);
            out[4] = LEARNS_SINCE as u8;
            assert!(Hello::decode(&out).is_ok());
            let learning = out.iter().rposition(|byte| *byte == tag::stage::JOINING).unwrap();
            out[learning] = tag::stage::LEARNING;
            assert!(Hello::decode(&out).is_ok());
            out[4] = version as u8;
            assert!(Hello::decode(&out).is_err(), "no build of that version says so");
        }
    }

    #[test]
    fn steps_have_golden_bytes_and_come_back() {
        let roster = Roster::unknown(Group::new(1).unwrap()).with(ReplicaId(0), NodeId::new(7).unwrap());
        let steps = [
            (HandshakeMessage::Proof(Proof([5; 32])), [&[1][..], &[5; 32]].concat()),
            (HandshakeMessage::Welcome(None), vec![2]),
            (HandshakeMessage::Welcome(Some(Proof([6; 32]))), [&[3][..], &[6; 32]].concat()),
            (HandshakeMessage::Refused("no".to_owned()), b"\x04\x02no".to_vec()),
            (HandshakeMessage::NotYet("no".to_owned()), b"\x06\x02no".to_vec()),
            (HandshakeMessage::Stage(Stage::New), vec![5, 0, 1]),
            (HandshakeMessage::Stage(Stage::Replacing), vec![5, 0, 4]),
            (HandshakeMessage::Stage(Stage::Joining), vec![5, 0, 6]),
            (HandshakeMessage::Stage(Stage::Learning), vec![5, 0, 7]),
            (HandshakeMessage::Stage(Stage::Voted(roster)), vec![5, 1, 2, 7, 0, 0, 0, 0, 0, 0, 0]),
        ];
        for (step, golden) in steps {
            let mut out = Vec::new();
            step.encode(&mut out);
            assert_eq!(out, golden);
            assert_eq!(HandshakeMessage::decode(&out), Ok(step));
            for length in 0..out.len() {
                assert!(HandshakeMessage::decode(&out[..length]).is_err());
            }
        }
        let mut out = Vec::new();
        HandshakeMessage::Refused("x".repeat(5000)).encode(&mut out);
        assert!(out.len() < HANDSHAKE_BYTES_MAX && HandshakeMessage::decode(&out).is_ok());
        assert_eq!(
            HandshakeMessage::decode(b"\x04\x03a\nb"),
            Ok(HandshakeMessage::Refused("a b".to_owned()))
        );
    }
    #[test]
    fn other_protocols_and_versions_are_refused_by_name() {
        assert_eq!(Hello::decode(b"*1\r\n$4\r\nPING"), Err(HelloError::NotSyros));
        assert_eq!(Hello::decode(b""), Err(HelloError::NotSyros));
        let error = Hello::decode(b"SYRS\x1a\0whatever").unwrap_err();
        assert_eq!(error, HelloError::Version { theirs: 26, ours: 25 });
        assert_eq!(error.to_string(), "peer speaks wire format version 26, this process speaks 4 to 25");
    }

    #[test]
    fn bad_handshakes_are_refused() {
        let good = encoded(&member());
        for length in 6..good.len() {
            assert_eq!(Hello::decode(&good[..length]), Err(HelloError::Malformed(Malformed::Truncated)));
        }
        let with = |index: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[index] = byte;
            Hello::decode(&bytes)
        };
        let out_of_range = |what, value, limit| Err(Malformed::OutOfRange { what, value, limit }.into());
        assert_eq!(with(14, 9), Err(Malformed::Tag { what: "truth value", tag: 9 }.into()));
        assert_eq!(with(31, 9), Err(Malformed::Tag { what: "sender", tag: 9 }.into()));
        assert_eq!(with(32, 3), out_of_range("replica", 3, 2));
        assert_eq!(with(33, 4), out_of_range("group size", 4, 9));
        assert_eq!(with(34, 0), Err(Malformed::Tag { what: "fast quorum mode", tag: 0 }.into()));
        assert_eq!(with(35, 0), Err(Malformed::Tag { what: "durability", tag: 0 }.into()));
        assert_eq!(with(37, 0xff), Err(Malformed::Engine.into()));
        assert_eq!(with(67, 9), Err(Malformed::Tag { what: "stage", tag: 9 }.into()));
        let mut nowhere = good.clone();
        nowhere[47..55].fill(0);
        assert_eq!(Hello::decode(&nowhere), Err(Malformed::NoNode.into()));
        let longer = [&good[..], &[0]].concat();
        assert_eq!(Hello::decode(&longer), Err(Malformed::Trailing { bytes: 1 }.into()));
    }

    #[test]
    fn clusters_must_agree() {
        let mut hello = member();
        assert_eq!(hello.check_cluster(hello.cluster), Ok(()));
        assert_eq!(hello.check_cluster(ANY_CLUSTER), Ok(()));
        let refused = Err(HelloError::Cluster { theirs: hello.cluster, ours: 5 });
        assert_eq!(hello.check_cluster(5), refused);
        hello.cluster = ANY_CLUSTER;
        assert_eq!(hello.check_cluster(5), Err(HelloError::Cluster { theirs: 0, ours: 5 }));
        hello.sender = Sender::Client;
        assert_eq!(hello.check_cluster(5), Ok(()));
    }
}
