//! Inputs to begin with: valid ones of every kind.

/// Messages and records of every kind, as the tests of the codec make them.
#[path = "../../wire/tests/codec/random.rs"]
mod random;

use core::num::NonZeroU64;
use core::time::Duration;
use random::{MESSAGE_KINDS, RECORD_KINDS};
use syros_commands::acl::{UserChange, Users};
use syros_commands::rdb;
use syros_protocol::agreement::{EngineName, SharedSettings};
use syros_protocol::formation::{Declaration, Stage};
use syros_protocol::message::Body;
use syros_protocol::replica::Durability;
use syros_storage::conformance::{body_if_data, body_of};
use syros_storage::{Engine as _, MemoryEngine};
use syros_types::{
    ConfigurationEpoch, Database, Description, FastQuorum, Group, GroupId, Incarnation, NodeId, Prng,
    ReplicaId, Roster, SubscriptionKind, WallTime,
};
use syros_values::{Hash, List, ListEnd, Score, Set, SortedSet, Stream, StreamId, Value};
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
    "HPEXPIRE h 100 NX FIELDS 2 f g",
    "HEXPIREAT h 100 FIELDS 1 f",
    "HTTL h FIELDS 1 f",
    "HPERSIST h FIELDS 1 f",
    "HGETEX h PX 100 FIELDS 1 f",
    "HSETEX h FNX PX 100 FIELDS 1 f 2",
    "HGETDEL h FIELDS 1 f",
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
    "BLPOP none l 0.5",
    "BLMOVE l m RIGHT LEFT 0",
    "BLMPOP 0 2 none l LEFT COUNT 3",
    "BZPOPMAX none z 0",
    "BZMPOP 0 2 none z MAX COUNT 3",
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
    "XADD x 5-1 f v g w",
    "XADD x NOMKSTREAM MAXLEN ~ 1000 LIMIT 5 6-* f v",
    "XADD x * f v",
    "XGROUP CREATE x g 0 MKSTREAM ENTRIESREAD 3",
    "XGROUP CREATECONSUMER x g c",
    "XREADGROUP GROUP g c COUNT 2 NOACK STREAMS x >",
    "XREADGROUP GROUP g c BLOCK 100 STREAMS x y > 0",
    "XREAD COUNT 1 STREAMS x y 0-0 $",
    "XCLAIM x g d 0 5-1 6-0 IDLE 5 RETRYCOUNT 3 FORCE JUSTID LASTID 6-0",
    "XAUTOCLAIM x g d 10 0-0 COUNT 25",
    "XPENDING x g IDLE 5 - + 10 c",
    "XACK x g 5-1 6-0",
    "XRANGE x (5-1 + COUNT 3",
    "XREVRANGE x + -",
    "XDEL x 5-1",
    "XTRIM x MINID = 6",
    "XSETID x 9-9 ENTRIESADDED 5 MAXDELETEDID 3-3",
    "XINFO STREAM x FULL COUNT 5",
    "XINFO CONSUMERS x g",
    "XLEN x",
    "LCS a b IDX MINMATCHLEN 2 WITHMATCHLEN",
    "GEOADD g XX CH 13.36 38.11 m 15 37.5 n",
    "GEOPOS g m none",
    "GEODIST g m n km",
    "GEOHASH g m",
    "GEOSEARCH g FROMLONLAT 15 37 BYBOX 400 300 km DESC COUNT 5 WITHCOORD",
    "GEORADIUSBYMEMBER_RO g m 100 mi WITHDIST",
    "GEOSEARCHSTORE h g FROMMEMBER m BYRADIUS 1e3 ft COUNT 2 ANY STOREDIST",
    "MOVE k 3",
    "SWAPDB 0 3",
    "FLUSHDB",
    "COPY k l REPLACE",
    "TOUCH k l",
    "OBJECT ENCODING k",
    "MEMORY USAGE k SAMPLES 5",
    "DUMP k",
    "RESTORE k 100 \0\x01a\n\0\0\0\0\0\0\0\0\0 REPLACE",
    "SORT l ALPHA DESC LIMIT 0 5 GET #",
    "SORT_RO s BY nosort",
    "SORT l ALPHA STORE m",
    "GEORADIUS g 15 37 200 km STORE d",
    "HSCAN h 0 NOVALUES",
    "ZSCAN z 0 NOSCORES",
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
    let database = |number: usize| Database::all().nth(number % Database::COUNT).unwrap_or_default();
    let elsewhere = COMMANDS.iter().enumerate().skip(1).step_by(3);
    let elsewhere = elsewhere.filter_map(|(number, command)| body_if_data(&words(command), database(number)));
    let alone = alone.into_iter().chain(elsewhere).collect::<Vec<_>>();
    // The last five commands are never packed.
    let packed = (0..COMMANDS.len()).map(|_| {
        (0..2 + prng.below(4))
            .flat_map(|_| alone[prng.below(COMMANDS.len() as u64 - 5) as usize].clone())
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

/// Scripts, and libraries.
pub(crate) fn scripts(_prng: &mut Prng) -> Vec<Vec<u8>> {
    const SCRIPTS: [&str; 18] = [
        "return redis.call('SET', KEYS[1], ARGV[1])",
        "#!lua flags=no-writes,allow-stale\nreturn redis.pcall('GET', KEYS[1])",
        "local t = {} for i = 1, 10 do t[i] = i * 2 end return t",
        "return cjson.encode(cjson.decode('{\"a\":[1,2.5,null,true],\"b\":\"\\u00e9\"}'))",
        "return cmsgpack.pack({1, 'a', {b = 2}}, -1, 1.5)",
        "return {cmsgpack.unpack(ARGV[3])}",
        "return struct.pack('<I4>h!4sf', 1, -2, 'ab', 0.5)",
        "return struct.unpack('bBhHiIlLc2x', string.rep('a', 60))",
        "return bit.bor(bit.lshift(1, 31), bit.tohex(255, 4))",
        "redis.setresp(3) local r = redis.call('HGETALL', 'k') return r",
        "return redis.error_reply('MY error')",
        "error({err = 'ERR own', ignore = 1})",
        "return string.format('%5.2f %q %s %d', 1/3, 'a', {}, 7)",
        "for k, v in pairs({a = 1, b = 2, 3}) do redis.call('SET', k, v) end return math.random(10)",
        "return table.concat({string.gsub('hello world', '(o)(.)', '%2%1')}, ',')",
        "local f = coroutine and coroutine.wrap(function(a) return a end) return tostring(f) .. #ARGV",
        "while true do redis.call('INCR', 'k') end",
        "#!lua name=mine\nredis.register_function('f', function(keys, args) return {keys[1], args} end)\n\
         redis.register_function{function_name='g', callback=function() return 1 end, flags={'no-writes'}}",
    ];
    SCRIPTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Rules for a user, a line each.
pub(crate) fn user_rules(_prng: &mut Prng) -> Vec<Vec<u8>> {
    const RULES: [&str; 6] = [
        "on\n>secret\n~a*\n%R~b\n&c*\n+@all\n-@dangerous\n+select|0",
        "on\nnopass\n(+get ~a)\n(+@write\n%W~b)\nclearselectors\n(~* +@read -mget)",
        "off\n#9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n+client|id\n-client\nallchannels",
        "reset\nallkeys\nallcommands\nnocommands\nresetkeys\nresetchannels\nresetpass",
        "+config|get\n-@admin\n+@pubsub\n%RW~x y\nskip-sanitize-payload\nsanitize-payload",
        "+@all\n-config|set\n-@scripting\n+eval\n+function|list",
    ];
    RULES.iter().map(|rules| rules.as_bytes().to_vec()).collect()
}

/// Users that rules have made.
pub(crate) fn users(_prng: &mut Prng) -> Vec<Vec<u8>> {
    let rules: [&[&[u8]]; 3] = [
        &[b"on", b">secret", b"~a*", b"%R~b", b"&c*", b"+@all", b"-@dangerous", b"+select|0"],
        &[b"on", b"nopass", b"(+get ~a)", b"(+@write %W~b)"],
        &[b"+client|id", b"-client"],
    ];
    let with = |rules: &&[&[u8]]| {
        let mut users = Users::default();
        // The rules are good.
        let _ = users.set(b"u", rules, UserChange::Always);
        users.encode()
    };
    rules.iter().map(with).chain([Users::default().encode()]).collect()
}

/// Collections of every kind and of both forms.
pub(crate) fn values(prng: &mut Prng) -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    for longest in [60, 200].repeat(SEEDS_EACH) {
        let (mut hash, mut list, mut set) = (Hash::default(), List::default(), Set::default());
        let mut sorted_set = SortedSet::default();
        let mut stream = Stream::default();
        stream.create_group(b"group", StreamId::MIN, None);
        for number in 0..1 + prng.below(20) {
            let string = vec![b'v'; prng.below(longest) as usize];
            let field = number.to_string();
            hash.set(field.as_bytes(), &string);
            if longest == 200 && prng.chance(1, 3) {
                hash.set_expiry(field.as_bytes(), NonZeroU64::new(1 + prng.below(1000)));
            }
            list.push(ListEnd::Right, &string);
            set.insert(&string);
            stream.append(StreamId::new(number + 1, 7), 2, [&string[..], b"v"].into_iter());
            if let Some(group) = stream.group(b"group") {
                let consumer = stream.see_consumer(&group, &string, number);
                stream.deliver(&group, StreamId::new(number, 7), &consumer, (number, 3));
            }
            sorted_set.set(&string, Score::new(number as f64 / 4.0).unwrap_or(Score::LEAST));
        }
        values.extend([Value::from(hash), list.into(), set.into(), sorted_set.into(), stream.into()].map(
            |value| {
                let mut bytes = Vec::new();
                value.put(&mut bytes);
                bytes
            },
        ));
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

/// Commands that a connection or its process answers. The parsers of their words are in no other target.
const TOOL_COMMANDS: &[&str] = &[
    "ACL CAT read",
    "ACL DRYRUN default GET k",
    "CLIENT KILL ID 1 TYPE normal SKIPME no MAXAGE 5",
    "CLIENT LIST ID 1 2",
    "CLIENT PAUSE 10 WRITE",
    "COMMAND GETKEYSANDFLAGS MSET a 1 b 2",
    "CONFIG GET slow* timeout",
    "CONFIG SET slowlog-log-slower-than 0 maxmemory 1mb",
    "DEBUG SLEEP 0.1",
    "DEBUG OBJECT k",
    "DEBUG SET-DISABLE-DENY-SCRIPTS 1",
    "INFO everything",
    "LATENCY HISTOGRAM get",
    "MONITOR",
    "RESET",
    "SLOWLOG GET 5",
    "WAIT 1 0",
    "WAITAOF 0 1 0",
];

/// Values of every kind as DUMP writes them and, of small ones, as Redis packs them; without version and checksum.
pub(crate) fn payloads(prng: &mut Prng) -> Vec<Vec<u8>> {
    const PACKED: [&[u8]; 9] = [
        b"\x15\x01\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x1d\x1d\0\0\0\x0a\0\x01\x01\0\x01\x01\x01\x81f\x02\0\x01\
          \x02\x01\0\x01\0\x01\x81v\x02\x04\x01\xff\x01\x01\x01\x01\x01\0\0\x01\x01\x01g\x01\x01\x01\x01\0\0\0\0\0\0\0\x01\
          \0\0\0\0\0\0\0\x01\x05\0\0\0\0\0\0\0\x02\x01\x01c\x09\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x01\
          \0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01",
        b"\x19\xe8\x03\0\0\0\0\0\0\x11\x11\0\0\0\x03\0\x81f\x02\x81v\x02\xc3\xe8\x02\xff",
        b"\x0b\x0e\x02\0\0\0\x03\0\0\0\xff\xff\x01\0\x02\0",
        b"\x10\x0c\x0c\0\0\0\x02\0\x81a\x02\x05\x01\xff",
        b"\x11\x0c\x0c\0\0\0\x02\0\x81a\x02\x05\x01\xff",
        b"\x12\x02\x01\x01p\x02\x0c\x0c\0\0\0\x02\0\x81a\x02\x05\x01\xff",
        b"\x0d\x15\x15\0\0\0\x12\0\0\0\x04\0\0\x01f\x03\xf2\x02\x01g\x03\xf4\xff",
        b"\x09\x0e\x02\x01f\x02\x0112x\x01g\x00\x00\xff",
        b"\0\xc3\x09\x40\x64\x01aa\xe0\x57\0\x01aa",
    ];
    let dumped = values(prng).into_iter().filter_map(|bytes| {
        let payload = rdb::dump(&Value::take(&mut &bytes[..]).ok()?, usize::MAX)?;
        Some(payload[..payload.len() - 10].to_vec())
    });
    dumped.chain(PACKED.iter().map(|packed| packed.to_vec())).collect()
}

/// Files with a few keys, and with what stands between keys; without the checksum.
pub(crate) fn rdb_files(prng: &mut Prng) -> Vec<Vec<u8>> {
    const BETWEEN: [&[u8]; 8] = [
        b"\xfe\x03",
        b"\xfb\x05\x02",
        b"\xf8\x07",
        b"\xf9\x07",
        b"\xfd\x01\x02\x03\x04",
        b"\xfa\x09redis-ver\x067.0.15",
        b"\xf5\x0d#!lua name=a\n",
        b"\xf7\x81\x24\x91\x24\x91\x24\x91\x24\x01\x02\x01\x05\x01x\x03abcd\0",
    ];
    let payloads = payloads(prng);
    let file = |prng: &mut Prng| {
        let mut file = b"REDIS0012".to_vec();
        for _ in 0..=prng.below(4) {
            if prng.chance(1, 2) {
                file.extend_from_slice(BETWEEN[prng.below(BETWEEN.len() as u64) as usize]);
            }
            if prng.chance(1, 3) {
                file.push(0xfc);
                file.extend_from_slice(&prng.below(1 << 42).to_le_bytes());
            }
            let payload = &payloads[prng.below(payloads.len() as u64) as usize];
            file.extend_from_slice(&[payload[0], 1, b'a' + prng.below(3) as u8]);
            file.extend_from_slice(&payload[1..]);
        }
        file.push(0xff);
        file
    };
    (0..200).map(|_| file(prng)).collect()
}

/// Replies as servers write them.
pub(crate) fn received_replies(_: &mut Prng) -> Vec<Vec<u8>> {
    let replies: [&[u8]; 6] = [
        b"+OK\r\n",
        b"-ERR no\r\n",
        b":12\r\n",
        b"$-1\r\n",
        b"$3\r\nabc\r\n",
        b"*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    ];
    replies.map(<[u8]>::to_vec).into()
}

pub(crate) fn requests(prng: &mut Prng) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for _ in 0..SEEDS_EACH * COMMANDS.len() {
        let mut input = vec![prng.next_u64() as u8];
        for _ in 0..=prng.below(6) {
            if prng.chance(1, 8) {
                let command = TOOL_COMMANDS[prng.below(TOOL_COMMANDS.len() as u64) as usize];
                input.extend_from_slice(format!("{command}\r\n").as_bytes());
            }
            let commands = if prng.chance(1, 5) { MESSAGES } else { COMMANDS };
            let command = commands[prng.below(commands.len() as u64) as usize];
            if prng.chance(1, 10) {
                let number = prng.below(Database::COUNT as u64 + 1);
                input.extend_from_slice(format!("SELECT {number}\r\n").as_bytes());
            }
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
        declaration: Declaration {
            replica: ReplicaId(2),
            node: node(0x1122),
            stage,
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
            2 => FrontEndMessage::Nodes { addresses: vec!["db1:7000".to_owned(), String::new()] },
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
