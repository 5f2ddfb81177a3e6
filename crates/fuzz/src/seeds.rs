//! Inputs to begin with: valid ones of every kind.

/// Messages and records of every kind, as the tests of the codec make them.
#[path = "../../wire/tests/codec/random.rs"]
mod random;

use core::time::Duration;
use random::{MESSAGE_KINDS, RECORD_KINDS};
use syros_protocol::agreement::{EngineName, SharedSettings};
use syros_protocol::formation::{Declaration, Stage};
use syros_protocol::message::Body;
use syros_protocol::replica::Durability;
use syros_storage::conformance::body_of;
use syros_storage::{Engine as _, MemoryEngine};
use syros_types::{
    ConfigurationEpoch, ConfigurationId, Description, FastQuorum, Group, GroupId, Incarnation, NodeId, Prng,
    ReplicaId, Roster, SubscriptionKind, WallTime,
};
use syros_values::{Hash, List, ListEnd, Score, Set, SortedSet, Value};
use syros_wire::{FrontEndMessage, Hello, Interest, Member, Sender};

/// Commands of all shapes. A seed is a run of some of them.
const COMMANDS: &[&str] = &[
    "SET k v",
    "SET k 1 EX 100 GET",
    "SET k v PXAT 1000000 NX",
    "GET k",
    "MSET a 1 b 2 c 3",
    "MGET a b c none",
    "INCRBY k -9223372036854775808",
    "INCRBYFLOAT k 1.5e3",
    "APPEND k text",
    "SETRANGE k 5 x",
    "GETRANGE k -3 -1",
    "DEL a b",
    "RENAME k other",
    "RENAMENX other k",
    "EXPIRE k 10 GT",
    "PEXPIREAT k 2000000",
    "GETEX k PERSIST",
    "GETDEL k",
    "TTL k",
    "STRLEN k",
    "TYPE k",
    "HSET h f 1 g 2",
    "HMSET h n 5",
    "HSETNX h f 2",
    "HGET h f",
    "HMGET h f g none",
    "HGETALL h",
    "HKEYS h",
    "HEXISTS h f",
    "HSTRLEN h f",
    "HDEL h f",
    "HINCRBY h n -3",
    "HINCRBYFLOAT h n 1.5",
    "HRANDFIELD h -3 WITHVALUES",
    "HSCAN h 0 MATCH f* COUNT 5",
    "HLEN h",
    "LPUSH l a b a",
    "RPUSHX l c",
    "LINSERT l BEFORE c x",
    "LSET l -1 y",
    "LLEN l",
    "LINDEX l 2",
    "LRANGE l 0 -2",
    "LPOS l a RANK -1 COUNT 0 MAXLEN 10",
    "LMOVE l m RIGHT LEFT",
    "LREM l 1 a",
    "LPOP l",
    "RPOP none 2",
    "LTRIM l 0 1",
    "LMPOP 2 none l LEFT COUNT 3",
    "ZADD z 1 m 2.5 n",
    "ZADD z GT CH 0x1p3 m",
    "ZADD z INCR NX 1 m",
    "ZINCRBY z -inf m",
    "ZREM z m none",
    "ZREMRANGEBYRANK z 0 -5",
    "ZREMRANGEBYLEX z [a (b",
    "ZPOPMIN z 2",
    "ZMPOP 2 none z MAX COUNT 3",
    "ZRANGESTORE y z 1 +inf BYSCORE LIMIT 1 -1",
    "ZUNIONSTORE y 2 z s WEIGHTS 1 -2 AGGREGATE MAX",
    "ZDIFF 2 z y WITHSCORES",
    "ZINTERCARD 2 z y LIMIT 5",
    "ZSCORE z m",
    "ZMSCORE z m none",
    "ZCARD z",
    "ZCOUNT z (1 +inf",
    "ZLEXCOUNT z - (n",
    "ZRANK z m",
    "ZREVRANGEBYSCORE z 5 1 WITHSCORES LIMIT 0 2",
    "ZRANGE z [a + BYLEX",
    "ZRANDMEMBER z -3 WITHSCORES",
    "ZSCAN z 0 MATCH m* COUNT 5",
    "SADD s a b c",
    "SREM s b",
    "SMEMBERS s",
    "SISMEMBER s a",
    "SMISMEMBER s a none",
    "SCARD s",
    "SRANDMEMBER s -3",
    "SPOP s",
    "SPOP s 2",
    "SMOVE s t a",
    "SINTER s t none",
    "SUNION s t",
    "SDIFF s t",
    "SINTERCARD 2 s t LIMIT 1",
    "SUNIONSTORE d s t",
    "SDIFFSTORE s s t",
    "SSCAN s 0 MATCH a* COUNT 5",
    "SETBIT k 70 1",
    "GETBIT k 9",
    "BITCOUNT k 1 -2 BIT",
    "BITPOS k 1 2",
    "BITFIELD k GET u8 #3 OVERFLOW SAT SET i5 9 -40 INCRBY u63 100 7",
    "BITFIELD_RO k GET i64 5",
    "BITOP XOR k a b k",
    "PFADD p a bb ccc",
    "PFCOUNT p q",
    "PFMERGE q p",
    "LCS a b IDX MINMATCHLEN 2 WITHMATCHLEN",
    "GEOADD g XX CH 13.36 38.11 m 15 37.5 n",
    "GEOPOS g m none",
    "GEODIST g m n km",
    "GEOHASH g m",
    "GEOSEARCH g FROMLONLAT 15 37 BYBOX 400 300 km DESC COUNT 5 WITHCOORD",
    "GEORADIUSBYMEMBER_RO g m 100 mi WITHDIST",
    "GEOSEARCHSTORE h g FROMMEMBER m BYRADIUS 1e3 ft COUNT 2 ANY STOREDIST",
    "KEYS *[a-c]?\\*",
    "SCAN 0 MATCH k* COUNT 5 TYPE string",
    "FLUSHALL",
];

/// Seeds for each kind of input.
const SEEDS_EACH: usize = 4;

fn words(command: &str) -> Vec<&[u8]> {
    command.split(' ').map(str::as_bytes).collect()
}

pub(crate) fn bodies(prng: &mut Prng) -> Vec<Vec<u8>> {
    let alone: Vec<Vec<u8>> = COMMANDS.iter().map(|command| body_of(&words(command))).collect();
    // The last three are never packed.
    let packed = (0..COMMANDS.len()).map(|_| {
        (0..2 + prng.below(4))
            .flat_map(|_| alone[prng.below(COMMANDS.len() as u64 - 3) as usize].clone())
            .collect()
    });
    let packed: Vec<Vec<u8>> = packed.collect();
    [alone, packed].concat()
}

pub(crate) fn replies(prng: &mut Prng) -> Vec<Vec<u8>> {
    let mut engine = MemoryEngine::new();
    let mut replies = Vec::new();
    for body in bodies(prng) {
        let mut reply = Vec::new();
        engine.apply(WallTime(1_000_000), &body, &mut reply);
        replies.push(reply);
    }
    replies
}

/// Collections of every kind and of both forms.
pub(crate) fn values(prng: &mut Prng) -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    for longest in [60, 200].repeat(SEEDS_EACH) {
        let (mut hash, mut list, mut set) = (Hash::default(), List::default(), Set::default());
        let mut sorted_set = SortedSet::default();
        for number in 0..1 + prng.below(20) {
            let string = vec![b'v'; prng.below(longest) as usize];
            hash.set(number.to_string().as_bytes(), &string);
            list.push(ListEnd::Right, &string);
            set.insert(&string);
            sorted_set.set(&string, Score::new(number as f64 / 4.0).unwrap_or(Score::LEAST));
        }
        values.extend([Value::from(hash), list.into(), set.into(), sorted_set.into()].map(|value| {
            let mut bytes = Vec::new();
            value.put(&mut bytes);
            bytes
        }));
    }
    values
}

/// Commands that are no operations on data, of subscribers and publishers.
const MESSAGES: &[&str] = &[
    "SUBSCRIBE a b",
    "PSUBSCRIBE a* [bc]",
    "SSUBSCRIBE a",
    "UNSUBSCRIBE a none",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "PUBLISH a x",
    "SPUBLISH a x",
    "PUBSUB CHANNELS a*",
    "PUBSUB NUMSUB a b",
    "PUBSUB NUMPAT",
    "PING",
    "HELLO 3",
    "RESET",
    "MULTI",
    "EXEC",
];

pub(crate) fn requests(prng: &mut Prng) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for _ in 0..SEEDS_EACH * COMMANDS.len() {
        let mut input = vec![prng.next_u64() as u8];
        for _ in 0..=prng.below(6) {
            let commands = if prng.chance(1, 5) { MESSAGES } else { COMMANDS };
            let command = commands[prng.below(commands.len() as u64) as usize];
            if prng.chance(1, 4) {
                input.extend_from_slice(command.as_bytes());
                input.extend_from_slice(b"\r\n");
                continue;
            }
            let words = words(command);
            input.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
            for word in words {
                input.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                input.extend_from_slice(word);
                input.extend_from_slice(b"\r\n");
            }
        }
        seeds.push(input);
    }
    seeds
}

pub(crate) fn segments(prng: &mut Prng) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for count in 0..16 {
        let mut input = vec![count];
        for _ in 0..count {
            let length = 1 + prng.below(40) as u8;
            input.push(length);
            input.extend((0..length).map(|_| prng.next_u64() as u8));
        }
        input.extend_from_slice(&[prng.below(30) as u8, 0]);
        seeds.push(input);
    }
    seeds
}

pub(crate) fn hellos(prng: &mut Prng) -> Vec<Vec<u8>> {
    let nonces = [None, Some(core::array::from_fn(|_| prng.next_u64() as u8))];
    let hellos = nonces.map(|nonce| Hello { cluster: prng.next_u64(), nonce, sender: Sender::Client });
    let encoded = hellos.into_iter().chain([member()]).map(|hello| {
        let mut out = Vec::new();
        hello.encode(&mut out);
        out
    });
    encoded.collect()
}

/// As member 2 of 3 says it.
fn member() -> Hello {
    let group = Group::new(3).expect("3 is a group size");
    let node = |number| NodeId::new(number).expect("it is not 0");
    let roster = Roster::unknown(group).with(ReplicaId(0), node(0xaa)).with(ReplicaId(2), node(0x1122));
    let stage = Stage::Acting(roster);
    let member = Member {
        declaration: Declaration { replica: ReplicaId(2), node: node(0x1122), stage },
        process: 0x33,
        incarnation: Incarnation(7),
        configuration: ConfigurationId { group: GroupId(1), epoch: ConfigurationEpoch(130) },
        settings: SharedSettings {
            group,
            fast_quorum: FastQuorum::Supermajority,
            durability: Durability::Fsync,
            engine: EngineName::new("memory").expect("it is printable"),
            lease: Duration::from_micros(100),
            clock_drift_ppm: 50,
            session_timeout: Duration::from_micros(300),
        },
    };
    Hello { cluster: 7, nonce: None, sender: Sender::Replica(Box::new(member)) }
}

/// Some of each kind.
fn each(prng: &mut Prng, kinds: u64, encode: impl Fn(&mut Prng, u64, &mut Vec<u8>)) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for kind in 0..kinds {
        for _ in 0..SEEDS_EACH {
            let mut out = Vec::new();
            encode(prng, kind, &mut out);
            seeds.push(out);
        }
    }
    seeds
}

/// Names and payloads of messages between front ends: short ones, and one that is not.
fn name(prng: &mut Prng) -> Body {
    let length = if prng.chance(1, 8) { 300 } else { prng.below(6) as usize };
    vec![b'a' + prng.below(4) as u8; length].into()
}

pub(crate) fn front_end_messages(prng: &mut Prng) -> Vec<Vec<u8>> {
    each(prng, 3, |prng, kind, out| {
        let of = |prng: &mut Prng| SubscriptionKind::ALL[prng.below(3) as usize];
        let bits = prng.below(20);
        let number = prng.below(1 << bits);
        let message = match kind {
            0 => {
                let interest = |prng: &mut Prng| Interest {
                    kind: of(prng),
                    name: name(prng),
                    subscribers: prng.below(3),
                };
                let entries = (0..prng.below(4)).map(|_| interest(prng)).collect();
                FrontEndMessage::Interest { number, is_whole: prng.chance(1, 2), entries }
            }
            1 => FrontEndMessage::InterestKnown { number },
            _ => FrontEndMessage::Published {
                origin: prng.next_u64(),
                number,
                kind: of(prng),
                channel: name(prng),
                payload: name(prng),
            },
        };
        message.encode(out);
    })
}

pub(crate) fn messages(prng: &mut Prng) -> Vec<Vec<u8>> {
    each(prng, MESSAGE_KINDS, |prng, kind, out| {
        syros_wire::encode_message(&random::message(prng, kind), out);
    })
}

pub(crate) fn records(prng: &mut Prng) -> Vec<Vec<u8>> {
    each(prng, RECORD_KINDS, |prng, kind, out| {
        syros_wire::encode_record(&random::record(prng, kind), out);
    })
}

pub(crate) fn snapshot_heads(prng: &mut Prng) -> Vec<Vec<u8>> {
    each(prng, 8, |prng, _, out| syros_wire::encode_snapshot_head(&random::snapshot_head(prng), out))
}

/// What the seeds' bodies mean: the toy state machine of the codec's tests.
pub(crate) fn describe(body: &[u8]) -> Option<Description> {
    random::describe(body)
}
