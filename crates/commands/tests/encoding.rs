//! The bytes of operations are fixed for ever: a change of any golden value here is a change of format.

use syros_commands::access::Version;
use syros_commands::families::{
    Append, FlushAll, Get, Keys, Leave, Persist, RecordVersions, Rename, SetRange, Turns, Unchanged,
    Versions, WaiterId, XNews,
};
use syros_commands::{
    Arguments, Command, Generation, Malformed, Operation, Parsed, ScriptUse, describe, limits, operations,
    overwrites, parse,
};
use syros_types::limits::{BODY_BYTES_MAX, KEY_BYTES_MAX, KEYS_PER_OPERATION_MAX, VALUE_BYTES_MAX};
use syros_types::{Class, Database, Footprint, Prng, key_hash, key_hash_in};

/// The body of a command given as words separated by spaces.
fn body(command: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("{command} is no operation") };
    let mut out = Vec::new();
    operation.encode(&mut out);
    out
}

/// The body of a command that may wait, as it is submitted.
fn to_wait(command: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("{command} is no operation") };
    assert!(operation.may_wait(), "{command}");
    let mut out = Vec::new();
    operation.encode_to_wait(&mut out);
    out
}

/// Ten seconds, and the millisecond after them: the first one in which the key is gone.
const SECONDS_10: [u8; 2] = [0x91, 0x4e];

/// Command, class, encoding.
fn golden() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Merge, Overwrite, Read, Update};
    let [low, high] = SECONDS_10;
    vec![
        ("GET k", Read, vec![1, 1, b'k']),
        ("GETEX k", Read, vec![1, 1, b'k']),
        ("MGET a bc", Read, vec![2, 2, 1, b'a', 2, b'b', b'c']),
        ("STRLEN k", Read, vec![3, 1, b'k']),
        ("LCS k l", Read, vec![127, 15, 1, b'k', 1, b'l', 0]),
        ("LCS k l withmatchlen LEN", Read, vec![127, 15, 1, b'k', 1, b'l', 1]),
        ("LCS k l IDX MINMATCHLEN -3", Read, vec![127, 15, 1, b'k', 1, b'l', 2, 0]),
        ("LCS k l IDX WITHMATCHLEN MINMATCHLEN 300", Read, vec![127, 15, 1, b'k', 1, b'l', 3, 0xac, 2]),
        ("GETRANGE k 1 -1", Read, vec![4, 1, b'k', 2, 1]),
        ("SUBSTR k 64 0", Read, vec![4, 1, b'k', 0x80, 1, 0]),
        ("EXISTS a", Read, vec![5, 1, 1, b'a']),
        ("TYPE k", Read, vec![6, 1, b'k']),
        ("TTL k", Read, vec![7, 1, b'k']),
        ("PTTL k", Read, vec![8, 1, b'k']),
        ("EXPIRETIME k", Read, vec![9, 1, b'k']),
        ("PEXPIRETIME k", Read, vec![10, 1, b'k']),
        ("SCAN 0", Read, vec![11, 0, 0, 10]),
        ("SCAN 300 MATCH * COUNT 5", Read, vec![11, 0, 0xac, 2, 5]),
        ("SCAN 1 MATCH a* TYPE string", Read, [&[11, 3, 1, 10, 2][..], b"a*", &[6], b"string"].concat()),
        ("KEYS *", Read, vec![12, 1, b'*']),
        ("RANDOMKEY", Read, vec![13]),
        ("DBSIZE", Read, vec![14]),
        ("SET k v", Overwrite, vec![32, 1, b'k', 1, b'v']),
        ("set k v NX", Update, vec![33, 1, 1, b'k', 1, b'v']),
        ("SET k v XX GET", Update, vec![33, 0x12, 1, b'k', 1, b'v']),
        ("SET k v ifeq w", Update, vec![33, 3, 1, b'k', 1, b'v', 1, b'w']),
        ("SET k v PX 10 GET IFEQ w", Update, vec![33, 0x1b, 11, 1, b'k', 1, b'v', 1, b'w']),
        ("SET k v KEEPTTL", Merge, vec![33, 4, 1, b'k', 1, b'v']),
        ("SET k v EX 10", Overwrite, vec![33, 8, low, high, 1, b'k', 1, b'v']),
        ("SETEX k 10 v", Overwrite, vec![33, 8, low, high, 1, b'k', 1, b'v']),
        ("PSETEX k 10 v", Overwrite, vec![33, 8, 11, 1, b'k', 1, b'v']),
        ("SET k v EXAT 10", Overwrite, vec![33, 12, low, high, 1, b'k', 1, b'v']),
        ("GETSET k v", Update, vec![33, 0x10, 1, b'k', 1, b'v']),
        ("BLIND GETSET k v", Merge, vec![0xa1, 0x10, 1, b'k', 1, b'v']),
        ("BLIND SET k v", Overwrite, vec![0xa0, 1, b'k', 1, b'v']),
        ("BLIND SET k v NX", Merge, vec![0xa1, 1, 1, b'k', 1, b'v']),
        ("MSET k v", Overwrite, vec![34, 2, 1, b'k', 1, b'v']),
        ("MSET a b c d", Merge, vec![34, 4, 1, b'a', 1, b'b', 1, b'c', 1, b'd']),
        ("MSETNX k v", Update, vec![35, 2, 1, b'k', 1, b'v']),
        ("SETNX k v", Update, vec![36, 1, b'k', 1, b'v']),
        ("GETDEL k", Update, vec![37, 1, b'k']),
        ("BLIND GETDEL k", Merge, vec![0xa5, 1, b'k']),
        ("GETEX k PERSIST", Update, vec![38, 1, b'k', 0]),
        ("GETEX k EX x", Update, vec![38, 1, b'k', 3]),
        ("GETEX k EX -5", Update, vec![38, 1, b'k', 4]),
        ("GETEX k PX 3", Update, vec![38, 1, b'k', 1, 4]),
        ("GETEX k PXAT 3", Update, vec![38, 1, b'k', 2, 4]),
        ("APPEND k v", Update, vec![39, 1, b'k', 1, b'v']),
        ("BLIND APPEND k v", Merge, vec![0xa7, 1, b'k', 1, b'v']),
        ("SETRANGE k 5 v", Update, vec![40, 1, b'k', 5, 1, b'v']),
        ("INCR k", Update, vec![41, 1, b'k', 2]),
        ("DECR k", Update, vec![41, 1, b'k', 1]),
        ("INCRBY k 5", Update, vec![41, 1, b'k', 10]),
        ("DECRBY k 5", Update, vec![41, 1, b'k', 9]),
        ("BLIND INCRBY k 5", Merge, vec![0xa9, 1, b'k', 10]),
        ("INCRBYFLOAT k 1", Update, vec![42, 1, b'k', 0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f]),
        ("DEL k", Update, vec![43, 1, 1, b'k']),
        ("BLIND DEL k", Overwrite, vec![0xab, 1, 1, b'k']),
        ("BLIND UNLINK k l", Merge, vec![0xab, 2, 1, b'k', 1, b'l']),
        ("RENAME a b", Update, vec![44, 1, b'a', 1, b'b']),
        ("RENAMENX a b", Update, vec![45, 1, b'a', 1, b'b']),
        ("EXPIRE k 10", Update, vec![46, 1, b'k', 1, low, high, 0]),
        ("PEXPIRE k 10 NX", Update, vec![46, 1, b'k', 1, 11, 1]),
        ("EXPIREAT k 10 XX", Update, vec![46, 1, b'k', 2, low, high, 2]),
        ("PEXPIREAT k 10 GT XX", Update, vec![46, 1, b'k', 2, 11, 3]),
        ("PEXPIREAT k -10 LT", Update, vec![46, 1, b'k', 2, 0, 4]),
        ("PEXPIREAT k 10 LT XX", Update, vec![46, 1, b'k', 2, 11, 5]),
        ("BLIND PERSIST k", Merge, vec![0xaf, 1, b'k']),
        ("FLUSHALL", Merge, vec![127, 247]),
        ("FLUSHDB ASYNC", Merge, vec![48]),
        ("MOVE k 3", Update, vec![127, 245, 1, b'k', 3]),
        ("SWAPDB 1 15", Merge, vec![127, 246, 1, 15]),
        ("BLIND FLUSHALL", Merge, vec![255, 247]),
        ("BLIND FLUSHDB", Merge, vec![176]),
    ]
}

/// The same of commands on hashes.
fn golden_of_hashes() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Merge, Read, Update};
    vec![
        ("HGET k f", Read, vec![15, 1, b'k', 1, b'f']),
        ("HMGET k f gh", Read, vec![16, 1, b'k', 2, 1, b'f', 2, b'g', b'h']),
        ("HGETALL k", Read, vec![17, 1, b'k']),
        ("HKEYS k", Read, vec![127, 0, 1, b'k']),
        ("HVALS k", Read, vec![127, 1, 1, b'k']),
        ("HLEN k", Read, vec![127, 2, 1, b'k']),
        ("HEXISTS k f", Read, vec![127, 3, 1, b'k', 1, b'f']),
        ("HSTRLEN k f", Read, vec![127, 4, 1, b'k', 1, b'f']),
        ("HRANDFIELD k", Read, vec![127, 5, 1, b'k', 0]),
        ("HRANDFIELD k 5", Read, vec![127, 5, 1, b'k', 1, 10]),
        ("HRANDFIELD k -5 WITHVALUES", Read, vec![127, 5, 1, b'k', 2, 9]),
        ("HSCAN k 0", Read, vec![127, 6, 1, b'k', 0, 0, 10]),
        ("HSCAN k 300 MATCH f* COUNT 5", Read, vec![127, 6, 1, b'k', 0xac, 2, 1, 5, 2, b'f', b'*']),
        ("HSCAN k 0 MATCH", Read, vec![127, 6, 1, b'k', 0, 2]),
        ("HSCAN k 0 COUNT x", Read, vec![127, 6, 1, b'k', 0, 3]),
        ("HTTL k FIELDS 1 f", Read, vec![127, 196, 1, b'k', 0, 1, 1, b'f']),
        ("HPTTL k FIELDS 1 f", Read, vec![127, 196, 1, b'k', 1, 1, 1, b'f']),
        ("HEXPIRETIME k FIELDS 1 f", Read, vec![127, 196, 1, b'k', 2, 1, 1, b'f']),
        ("HPEXPIRETIME k FIELDS 2 f g", Read, vec![127, 196, 1, b'k', 3, 2, 1, b'f', 1, b'g']),
        ("HGETEX k FIELDS 1 f", Read, vec![16, 1, b'k', 1, 1, b'f']),
        ("HGETEX k PERSIST FIELDS 1 f", Update, vec![127, 197, 1, b'k', 0, 1, 1, b'f']),
        ("HGETEX k PX 3 FIELDS 1 f", Update, vec![127, 197, 1, b'k', 1, 4, 1, 1, b'f']),
        ("HGETEX k PXAT 3 FIELDS 1 f", Update, vec![127, 197, 1, b'k', 2, 4, 1, 1, b'f']),
        ("HSETEX k FIELDS 1 f v", Update, vec![127, 198, 1, b'k', 0, 0, 2, 1, b'f', 1, b'v']),
        ("HSETEX k FNX KEEPTTL FIELDS 1 f v", Update, vec![127, 198, 1, b'k', 1, 3, 2, 1, b'f', 1, b'v']),
        ("HSETEX k PX 3 FXX FIELDS 1 f v", Update, vec![127, 198, 1, b'k', 2, 1, 4, 2, 1, b'f', 1, b'v']),
        ("HGETDEL k FIELDS 1 f", Update, vec![127, 199, 1, b'k', 1, 1, b'f']),
        ("BLIND HGETDEL k FIELDS 1 f", Merge, vec![255, 199, 1, b'k', 1, 1, b'f']),
        ("HPEXPIRE k 3 FIELDS 1 f", Update, vec![127, 200, 1, b'k', 1, 4, 0, 1, 1, b'f']),
        ("HPEXPIREAT k 3 GT FIELDS 1 f", Update, vec![127, 200, 1, b'k', 2, 4, 3, 1, 1, b'f']),
        ("HEXPIRE k 0 NX FIELDS 1 f", Update, vec![127, 200, 1, b'k', 1, 0, 1, 1, 1, b'f']),
        ("HEXPIREAT k 0 LT FIELDS 1 f", Update, vec![127, 200, 1, b'k', 2, 0, 4, 1, 1, b'f']),
        ("HPERSIST k FIELDS 1 f", Update, vec![127, 252, 1, b'k', 1, 1, b'f']),
        ("HSET k f v", Update, vec![49, 1, b'k', 2, 1, b'f', 1, b'v']),
        ("BLIND HSET k f v", Merge, vec![0xb1, 1, b'k', 2, 1, b'f', 1, b'v']),
        ("HMSET k f v g w", Update, vec![50, 1, b'k', 4, 1, b'f', 1, b'v', 1, b'g', 1, b'w']),
        ("HDEL k f", Update, vec![51, 1, b'k', 1, 1, b'f']),
        ("BLIND HDEL k f", Merge, vec![0xb3, 1, b'k', 1, 1, b'f']),
        ("HINCRBY k f -5", Update, vec![52, 1, b'k', 1, b'f', 9]),
        ("HSETNX k f v", Update, vec![53, 1, b'k', 1, b'f', 1, b'v']),
        (
            "HINCRBYFLOAT k f 1",
            Update,
            vec![127, 32, 1, b'k', 1, b'f', 0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f],
        ),
        (
            "BLIND HINCRBYFLOAT k f 1",
            Merge,
            vec![0xff, 32, 1, b'k', 1, b'f', 0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f],
        ),
    ]
}

/// The same of commands on lists.
fn golden_of_lists() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Merge, Read, Update};
    vec![
        ("LRANGE k 1 -1", Read, vec![28, 1, b'k', 2, 1]),
        ("LLEN k", Read, vec![29, 1, b'k']),
        ("LINDEX k 5", Read, vec![30, 1, b'k', 0, 10]),
        ("LINDEX k x", Read, vec![30, 1, b'k', 1]),
        ("LPOS k e", Read, vec![127, 137, 1, b'k', 1, b'e', 2, 0, 0]),
        ("LPOS k e RANK -2 COUNT 0 MAXLEN 300", Read, vec![127, 137, 1, b'k', 1, b'e', 3, 1, 0xac, 2]),
        ("LPUSH k a bc", Update, vec![72, 1, b'k', 2, 1, b'a', 2, b'b', b'c']),
        ("BLIND LPUSH k a", Merge, vec![0xc8, 1, b'k', 1, 1, b'a']),
        ("RPUSH k a", Update, vec![73, 1, b'k', 1, 1, b'a']),
        ("LPUSHX k a", Update, vec![127, 147, 1, b'k', 1, 1, b'a']),
        ("RPUSHX k a", Update, vec![127, 148, 1, b'k', 1, 1, b'a']),
        ("LPOP k", Update, vec![74, 1, b'k', 0]),
        ("LPOP k 0", Update, vec![74, 1, b'k', 1]),
        ("RPOP k 5", Update, vec![75, 1, b'k', 6]),
        ("BLIND RPOP k", Merge, vec![0xcb, 1, b'k', 0]),
        ("LTRIM k 1 -1", Update, vec![76, 1, b'k', 2, 1]),
        ("BLIND LTRIM k 1 -1", Merge, vec![0xcc, 1, b'k', 2, 1]),
        ("LREM k -2 e", Update, vec![77, 1, b'k', 3, 1, b'e']),
        ("LSET k 1 e", Update, vec![78, 1, b'k', 0, 2, 1, b'e']),
        ("LSET k x e", Update, vec![78, 1, b'k', 1, 1, b'e']),
        ("LMOVE k l LEFT RIGHT", Update, vec![79, 1, b'k', 1, b'l', 0, 1]),
        ("RPOPLPUSH k l", Update, vec![79, 1, b'k', 1, b'l', 1, 0]),
        ("LINSERT k BEFORE p e", Update, vec![127, 149, 1, b'k', 0, 1, b'p', 1, b'e']),
        ("LINSERT k AFTER p e", Update, vec![127, 149, 1, b'k', 1, 1, b'p', 1, b'e']),
        ("LMPOP 1 k LEFT", Update, vec![127, 150, 1, 1, b'k', 0, 0]),
        ("LMPOP 2 k l RIGHT COUNT 3", Update, vec![127, 150, 2, 1, b'k', 1, b'l', 1, 4]),
    ]
}

/// The same of commands on sets. The parser leaves the seed of SPOP at 0.
fn golden_of_sets() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Merge, Read, Update};
    vec![
        ("SISMEMBER k m", Read, vec![20, 1, b'k', 1, b'm']),
        ("SMEMBERS k", Read, vec![21, 1, b'k']),
        ("SCARD k", Read, vec![22, 1, b'k']),
        ("SMISMEMBER k m no", Read, vec![127, 62, 1, b'k', 2, 1, b'm', 2, b'n', b'o']),
        ("SRANDMEMBER k", Read, vec![127, 63, 1, b'k', 0]),
        ("SRANDMEMBER k -5", Read, vec![127, 63, 1, b'k', 1, 9]),
        ("SSCAN k 300 MATCH m* COUNT 5", Read, vec![127, 64, 1, b'k', 0xac, 2, 1, 5, 2, b'm', b'*']),
        ("SSCAN k 0 COUNT x", Read, vec![127, 64, 1, b'k', 0, 3]),
        ("SINTER k l", Read, vec![127, 65, 2, 1, b'k', 1, b'l']),
        ("SUNION k", Read, vec![127, 66, 1, 1, b'k']),
        ("SDIFF k l", Read, vec![127, 67, 2, 1, b'k', 1, b'l']),
        ("SINTERCARD 2 k l", Read, vec![127, 68, 0, 2, 1, b'k', 1, b'l']),
        ("SINTERCARD 1 k LIMIT 300", Read, vec![127, 68, 0xac, 2, 1, 1, b'k']),
        ("SADD k m n", Update, vec![58, 1, b'k', 2, 1, b'm', 1, b'n']),
        ("BLIND SADD k m", Merge, vec![0xba, 1, b'k', 1, 1, b'm']),
        ("SREM k m", Update, vec![59, 1, b'k', 1, 1, b'm']),
        ("SPOP k", Update, vec![60, 1, b'k', 0, 0, 0, 0, 0, 0, 0, 0]),
        ("BLIND SPOP k", Merge, vec![0xbc, 1, b'k', 0, 0, 0, 0, 0, 0, 0, 0]),
        ("SMOVE k l m", Update, vec![61, 1, b'k', 1, b'l', 1, b'm']),
        ("SPOP k 300", Update, vec![62, 1, b'k', 0, 0, 0, 0, 0, 0, 0, 0, 0xac, 2]),
        ("SINTERSTORE d k l", Update, vec![127, 77, 3, 1, b'd', 1, b'k', 1, b'l']),
        ("SUNIONSTORE d k", Update, vec![127, 78, 2, 1, b'd', 1, b'k']),
        ("BLIND SDIFFSTORE d k", Merge, vec![0xff, 79, 2, 1, b'd', 1, b'k']),
    ]
}

/// One, one and a half, and two, as scores.
const ONE: [u8; 8] = [0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
const ONE_AND_A_HALF: [u8; 8] = [0, 0, 0, 0, 0, 0, 0xf8, 0x3f];
const TWO: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 0x40];

/// The same of commands on sorted sets.
fn golden_of_sorted_sets() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Merge, Read, Update};
    let of = |parts: &[&[u8]]| parts.concat();
    vec![
        ("ZSCORE k m", Read, vec![23, 1, b'k', 1, b'm']),
        ("ZRANGE k 1 -1", Read, vec![24, 1, b'k', 0, 0, 2, 1, 0]),
        ("ZREVRANGE k 1 -1 WITHSCORES", Read, vec![24, 1, b'k', 1, 0, 2, 1, 1]),
        ("ZRANGE k 1 (2 BYSCORE", Read, of(&[&[24, 1, b'k', 0, 1, 0], &ONE, &[1], &TWO, &[0]])),
        (
            "ZREVRANGEBYSCORE k 2 1 LIMIT 3 -1 WITHSCORES",
            Read,
            of(&[&[24, 1, b'k', 3, 1, 0], &ONE, &[0], &TWO, &[6, 1, 1]]),
        ),
        ("ZRANGEBYLEX k - +", Read, vec![24, 1, b'k', 0, 2, 0, 1, 0]),
        ("ZREVRANGEBYLEX k [b (a", Read, vec![24, 1, b'k', 1, 2, 3, 1, b'a', 2, 1, b'b', 0]),
        ("ZRANK k m", Read, vec![25, 1, b'k', 1, b'm', 0, 0]),
        ("ZREVRANK k m WITHSCORE", Read, vec![25, 1, b'k', 1, b'm', 1, 1]),
        ("ZCARD k", Read, vec![26, 1, b'k']),
        ("ZMSCORE k m no", Read, vec![27, 1, b'k', 2, 1, b'm', 2, b'n', b'o']),
        ("ZCOUNT k (1 2", Read, of(&[&[127, 92, 1, b'k', 1, 1], &ONE, &[0], &TWO])),
        ("ZLEXCOUNT k - [m", Read, vec![127, 92, 1, b'k', 2, 0, 2, 1, b'm']),
        ("ZRANDMEMBER k -5 WITHSCORES", Read, vec![127, 93, 1, b'k', 2, 9]),
        ("ZSCAN k 300 MATCH m* COUNT 5", Read, vec![127, 94, 1, b'k', 0xac, 2, 1, 5, 2, b'm', b'*']),
        ("ZUNION 2 a b", Read, vec![127, 95, 0, 2, 1, b'a', 1, b'b', 0]),
        ("ZINTER 1 a WEIGHTS 2 AGGREGATE MAX WITHSCORES", Read, vec![127, 95, 25, 1, 1, b'a', 1, 1, b'2', 1]),
        ("ZDIFF 1 a WITHSCORES", Read, vec![127, 95, 2, 1, 1, b'a', 1]),
        ("ZINTERCARD 1 a LIMIT 300", Read, vec![127, 96, 1, 1, b'a', 0xac, 2]),
        ("ZADD k 1 m 2 n", Update, vec![64, 1, b'k', 4, 1, b'1', 1, b'm', 1, b'2', 1, b'n']),
        ("BLIND ZADD k 1 m", Merge, vec![0xc0, 1, b'k', 2, 1, b'1', 1, b'm']),
        ("ZADD k NX 1 m", Update, vec![67, 1, 1, b'k', 2, 1, b'1', 1, b'm']),
        ("ZADD k CH LT XX 1 m", Update, vec![67, 0x16, 1, b'k', 2, 1, b'1', 1, b'm']),
        ("ZREM k m", Update, vec![65, 1, b'k', 1, 1, b'm']),
        ("ZINCRBY k 1.5 m", Update, of(&[&[66, 1, b'k'], &ONE_AND_A_HALF, &[1, b'm']])),
        ("ZADD k INCR CH 1.5 m", Update, of(&[&[66, 1, b'k'], &ONE_AND_A_HALF, &[1, b'm']])),
        ("ZADD k INCR GT 1.5 m", Update, of(&[&[68, 3, 1, b'k'], &ONE_AND_A_HALF, &[1, b'm']])),
        ("ZPOPMIN k", Update, vec![69, 1, b'k', 0, 0]),
        ("ZPOPMAX k 0", Update, vec![69, 1, b'k', 1, 1]),
        ("ZREMRANGEBYRANK k 0 -1", Update, vec![127, 112, 1, b'k', 0, 0, 1]),
        ("BLIND ZREMRANGEBYLEX k - +", Merge, vec![0xff, 112, 1, b'k', 2, 0, 1]),
        ("ZMPOP 1 k MAX COUNT 3", Update, vec![127, 113, 1, 1, b'k', 1, 3]),
        ("ZRANGESTORE d k 0 1 REV", Update, vec![127, 114, 1, b'd', 1, b'k', 1, 0, 0, 2]),
        ("ZUNIONSTORE d 1 k", Update, vec![127, 115, 1, b'd', 0, 1, 1, b'k']),
    ]
}

/// The same of commands on places.
fn golden_of_places() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Merge, Read, Update};
    let of = |parts: &[&[u8]]| parts.concat();
    vec![
        ("GEOPOS k", Read, vec![127, 172, 1, b'k', 0]),
        ("GEOPOS k m", Read, vec![127, 172, 1, b'k', 1, 1, b'm']),
        ("GEODIST k m n", Read, vec![127, 173, 1, b'k', 1, b'm', 1, b'n', 0]),
        ("GEODIST k m n FT", Read, vec![127, 173, 1, b'k', 1, b'm', 1, b'n', 2]),
        ("GEOHASH k m", Read, vec![127, 174, 1, b'k', 1, 1, b'm']),
        (
            "GEOSEARCH k FROMLONLAT 1 2 BYRADIUS 1.5 km WITHDIST",
            Read,
            of(&[&[127, 175, 1, b'k', 0], &ONE, &TWO, &ONE_AND_A_HALF, &[1, 0, 1, 0, 0]]),
        ),
        (
            "GEOSEARCH k FROMMEMBER m BYBOX 1 2 mi DESC COUNT 300 WITHCOORD WITHHASH",
            Read,
            of(&[&[127, 175, 1, b'k', 11, 1, b'm'], &ONE, &TWO, &[3, 0xac, 2, 0, 1, 1]]),
        ),
        (
            "GEORADIUS_RO k 1 2 1.5 m COUNT 3",
            Read,
            of(&[&[127, 175, 1, b'k', 4], &ONE, &TWO, &ONE_AND_A_HALF, &[0, 3, 0, 0, 0]]),
        ),
        (
            "GEORADIUSBYMEMBER_RO k m 1 m COUNT 3 ANY",
            Read,
            of(&[&[127, 175, 1, b'k', 1, 1, b'm'], &ONE, &[0, 3, 0, 0, 0]]),
        ),
        ("GEOADD k 1 2 m", Update, vec![127, 182, 0, 1, b'k', 3, 1, b'1', 1, b'2', 1, b'm']),
        ("BLIND GEOADD k CH XX 1 2 m", Merge, vec![0xff, 182, 0x12, 1, b'k', 3, 1, b'1', 1, b'2', 1, b'm']),
        (
            "GEOSEARCHSTORE d k FROMMEMBER m BYRADIUS 1 m STOREDIST",
            Update,
            of(&[&[127, 183, 1, b'd', 1, b'k', 1, 1, b'm'], &ONE, &[0, 0, 1]]),
        ),
    ]
}

/// The same of commands on bits.
fn golden_of_bitmaps() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Merge, Read, Update};
    vec![
        ("GETBIT k 300", Read, vec![18, 1, b'k', 0xac, 2]),
        ("GETBIT k 4294967295", Read, vec![18, 1, b'k', 0xff, 0xff, 0xff, 0xff, 15]),
        ("BITCOUNT k", Read, vec![19, 1, b'k', 0]),
        ("BITCOUNT k 1 -1", Read, vec![19, 1, b'k', 1, 2, 1]),
        ("BITCOUNT k 1 -1 BYTE", Read, vec![19, 1, b'k', 1, 2, 1]),
        ("BITCOUNT k 1 -1 bit", Read, vec![19, 1, b'k', 2, 2, 1]),
        ("BITCOUNT k 1", Read, vec![19, 1, b'k', 3]),
        ("BITCOUNT k 1 x", Read, vec![19, 1, b'k', 4]),
        ("BITPOS k 1", Read, vec![127, 12, 1, b'k', 1, 0]),
        ("BITPOS k 0 -2", Read, vec![127, 12, 1, b'k', 0, 5, 3]),
        ("BITPOS k 0 0 5 BIT", Read, vec![127, 12, 1, b'k', 0, 2, 0, 10]),
        ("BITFIELD_RO k GET i8 #2", Read, vec![127, 13, 1, b'k', 1, 0, 0x88, 16]),
        ("BITFIELD k OVERFLOW FAIL", Read, vec![127, 13, 1, b'k', 0]),
        ("BITFIELD k GET u63 300", Read, vec![127, 13, 1, b'k', 1, 0, 63, 0xac, 2]),
        ("SETBIT k 9 1", Update, vec![54, 1, b'k', 9, 1]),
        ("BLIND SETBIT k 9 0", Merge, vec![0xb6, 1, b'k', 9, 0]),
        (
            "BITFIELD k GET u8 0 SET i5 9 -3 OVERFLOW sat INCRBY u2 1 7",
            Update,
            vec![56, 1, b'k', 3, 0, 8, 0, 1, 0x85, 9, 5, 5, 2, 1, 14],
        ),
        (
            "BITFIELD k OVERFLOW FAIL SET u1 0 1 OVERFLOW WRAP INCRBY i64 0 1",
            Update,
            vec![56, 1, b'k', 2, 3, 1, 0, 2, 4, 0xc0, 0, 2],
        ),
        ("BITOP AND d k", Update, vec![127, 34, 0, 2, 1, b'd', 1, b'k']),
        ("BITOP or d k l", Update, vec![127, 34, 1, 3, 1, b'd', 1, b'k', 1, b'l']),
        ("BITOP XOR d k", Update, vec![127, 34, 2, 2, 1, b'd', 1, b'k']),
        ("BLIND BITOP NOT d k", Merge, vec![0xff, 34, 3, 2, 1, b'd', 1, b'k']),
    ]
}

/// The same of commands on HyperLogLogs.
fn golden_of_sketches() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Merge, Read, Update};
    vec![
        ("PFCOUNT k", Read, vec![127, 14, 1, 1, b'k']),
        ("PFCOUNT k l", Read, vec![127, 14, 2, 1, b'k', 1, b'l']),
        ("PFADD k", Update, vec![55, 1, b'k', 0]),
        ("PFADD k a bc", Update, vec![55, 1, b'k', 2, 1, b'a', 2, b'b', b'c']),
        ("BLIND PFADD k a", Merge, vec![0xb7, 1, b'k', 1, 1, b'a']),
        ("PFMERGE d", Update, vec![127, 35, 1, 1, b'd']),
        ("BLIND PFMERGE d k", Merge, vec![0xff, 35, 2, 1, b'd', 1, b'k']),
    ]
}

/// The same of commands on keys of any type that came later.
fn golden_of_keys() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Merge, Overwrite, Read, Update};
    // Without a checksum.
    let payload = b"\0\x01a\n\0\0\0\0\0\0\0\0\0";
    let with_payload = |bytes: &[u8]| [bytes, &[13], payload].concat();
    vec![
        ("TOUCH k", Read, vec![5, 1, 1, b'k']),
        ("COPY k l", Update, vec![127, 187, 1, b'k', 1, b'l', 0]),
        ("BLIND COPY k l REPLACE", Merge, vec![0xff, 187, 1, b'k', 1, b'l', 1]),
        ("COPY k l DB 3", Update, vec![127, 201, 1, b'k', 1, b'l', 3, 0]),
        ("BLIND COPY k l REPLACE DB 0", Merge, vec![0xff, 201, 1, b'k', 1, b'l', 0, 1]),
        ("OBJECT ENCODING k", Read, vec![127, 188, 0, 1, b'k']),
        ("OBJECT FREQ k", Read, vec![127, 188, 1, 1, b'k']),
        ("OBJECT IDLETIME k", Read, vec![127, 188, 2, 1, b'k']),
        ("OBJECT REFCOUNT k", Read, vec![127, 188, 3, 1, b'k']),
        ("MEMORY USAGE k SAMPLES 0", Read, vec![127, 189, 1, b'k']),
        ("DUMP k", Read, vec![127, 190, 1, b'k']),
        ("RESTORE k 0 \0\x01a\n\0\0\0\0\0\0\0\0\0", Update, with_payload(&[127, 191, 1, b'k', 0])),
        (
            "RESTORE k 5 \0\x01a\n\0\0\0\0\0\0\0\0\0 IDLETIME 5 ABSTTL FREQ 7",
            Update,
            with_payload(&[127, 191, 1, b'k', 2, 6]),
        ),
        ("RESTORE k 5 \0\x01a\n\0\0\0\0\0\0\0\0\0 REPLACE", Overwrite, with_payload(&[80, 1, b'k', 1, 6])),
        ("BLIND RESTORE k 0 \0\x01a\n\0\0\0\0\0\0\0\0\0", Merge, with_payload(&[0xff, 191, 1, b'k', 0])),
        ("SORT k", Read, vec![127, 192, 1, b'k', 0]),
        ("SORT_RO k alpha", Read, [&[127, 192, 1, b'k', 1, 5][..], b"alpha"].concat()),
        ("SORT k LIMIT 0 1", Read, [&[127, 192, 1, b'k', 3, 5][..], b"LIMIT", &[1, b'0', 1, b'1']].concat()),
        ("SORT k STORE l", Update, [&[127, 193, 1, b'k', 2, 5][..], b"STORE", &[1, b'l']].concat()),
        ("HSCAN k 0 NOVALUES", Read, vec![127, 194, 1, b'k', 0, 0, 10]),
        ("ZSCAN k 0 MATCH a NOSCORES", Read, vec![127, 195, 1, b'k', 0, 1, 10, 1, b'a']),
    ]
}

/// The bytes of the id 5-1.
const ID: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1];

/// The bytes of the id 5-1 as it was written, in a list of ids.
const WRITTEN_ID: [u8; 5] = [1, 3, b'5', b'-', b'1'];

/// A time that nobody has set.
const NO_TIME: [u8; 8] = [0; 8];

fn golden_of_streams() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Read, Update};
    const FIELDS: [u8; 5] = [2, 1, b'f', 1, b'v'];
    let of = |parts: &[&[u8]]| parts.concat();
    vec![
        ("XADD k * f v", Update, of(&[&[86, 1, b'k', 0], &NO_TIME, &FIELDS])),
        ("XADD k 5-* f v", Update, of(&[&[86, 1, b'k', 1, 5], &FIELDS])),
        ("XADD k 5-1 f v", Update, of(&[&[86, 1, b'k', 2], &ID, &FIELDS])),
        ("XADD k NOMKSTREAM 5-* f v", Update, of(&[&[127, 212, 1, b'k', 1, 5, 1, 4], &FIELDS])),
        (
            "XADD k NOMKSTREAM MAXLEN ~ 7 LIMIT 3 5-* f v",
            Update,
            of(&[&[127, 212, 1, b'k', 1, 5, 1, 1, 7, 3], &FIELDS]),
        ),
        ("XADD k MINID = 5-1 5-* f v", Update, of(&[&[127, 212, 1, b'k', 1, 5, 0, 2], &ID, &FIELDS])),
        ("XLEN k", Read, vec![127, 213, 1, b'k']),
        ("XRANGE k - +", Read, of(&[&[127, 214, 1, b'k'], &[0; 16], &[255; 16], &[0, 0]])),
        ("XREVRANGE k 5-1 - COUNT 3", Read, of(&[&[127, 214, 1, b'k'], &[0; 16], &ID, &[4, 1]])),
        ("XDEL k 5-1", Update, of(&[&[127, 215, 1, b'k'], &WRITTEN_ID])),
        ("XTRIM k MAXLEN 7", Update, vec![127, 216, 1, b'k', 0, 7]),
        ("XTRIM k MINID ~ 5-1", Update, of(&[&[127, 216, 1, b'k', 3], &ID, &[0x90, 0x4e]])),
        ("XSETID k 5-1", Update, of(&[&[127, 217, 1, b'k'], &ID, &[0], &[0; 16]])),
        (
            "XSETID k 5-1 ENTRIESADDED 9 MAXDELETEDID 5-1",
            Update,
            of(&[&[127, 217, 1, b'k'], &ID, &[10], &ID]),
        ),
        ("XREAD STREAMS k $", Read, vec![89, 0, 0, 1, 1, b'k', 1, 1, b'$']),
        ("XREAD COUNT 3 BLOCK 0 STREAMS k 5-1", Read, of(&[&[89, 3, 1, 1, 1, b'k'], &WRITTEN_ID])),
        ("XINFO STREAM k", Read, vec![127, 222, 1, b'k', 0]),
        ("XINFO STREAM k FULL", Read, vec![127, 222, 1, b'k', 1, 10]),
        ("XINFO GROUPS k", Read, vec![127, 222, 1, b'k', 2]),
        ("XINFO CONSUMERS k g", Read, vec![127, 222, 1, b'k', 3, 1, b'g']),
        ("XINFO HELP", Read, vec![127, 223, 0]),
    ]
}

fn golden_of_groups() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Read, Update};
    let of = |parts: &[&[u8]]| parts.concat();
    let group = |opcode: u8, rest: &[&[u8]]| [&[127, opcode, 1, b'k', 1, b'g'], &rest.concat()[..]].concat();
    vec![
        ("XGROUP CREATE k g $", Update, group(218, &[&[0, 0, 0, 0]])),
        ("XGROUP CREATE k g 5-1 MKSTREAM ENTRIESREAD 4", Update, group(218, &[&[0, 1], &ID, &[5, 1]])),
        ("XGROUP SETID k g $", Update, group(218, &[&[1, 0, 0]])),
        ("XGROUP DESTROY k g", Update, group(218, &[&[2]])),
        ("XGROUP CREATECONSUMER k g c", Update, group(218, &[&[3, 1, b'c'], &NO_TIME])),
        ("XGROUP DELCONSUMER k g c", Update, group(218, &[&[4, 1, b'c']])),
        ("XGROUP HELP", Read, vec![127, 223, 1]),
        (
            "XREADGROUP GROUP g c NOACK COUNT 3 BLOCK 8 STREAMS k >",
            Update,
            of(&[&[87, 1, b'g', 1, b'c', 1], &NO_TIME, &[3, 9, 1, 1, b'k', 1, 1, b'>']]),
        ),
        ("XACK k g 5-1", Update, of(&[&[88, 1, b'k', 1, b'g'], &WRITTEN_ID])),
        ("XCLAIM k g c 9 5-1", Update, group(219, &[&[1, b'c', 9], &NO_TIME, &[0], &WRITTEN_ID])),
        (
            "XCLAIM k g c 0 5-1 IDLE 3 RETRYCOUNT 4 FORCE JUSTID LASTID 5-1",
            Update,
            group(219, &[&[1, b'c', 0], &NO_TIME, &[31, 3, 4], &ID, &WRITTEN_ID]),
        ),
        ("XCLAIM k g c 0 5-1 TIME 3", Update, group(219, &[&[1, b'c', 0], &NO_TIME, &[32, 3], &WRITTEN_ID])),
        ("XAUTOCLAIM k g c 9 5-1", Update, group(220, &[&[1, b'c', 9], &ID, &[100, 0], &NO_TIME])),
        ("XPENDING k g", Read, group(221, &[&[0]])),
        ("XPENDING k g IDLE 9 - 5-1 3 c", Read, group(221, &[&[1, 9], &[0; 16], &ID, &[3, 1, 1, b'c']])),
    ]
}

/// The same of commands that may wait, as a connection makes them.
fn golden_of_waiting() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::Update;
    // No owner, number, renewal, lease and lost members, and then the timeout.
    let of = |timeout: &[u8], rest: &[u8]| [&[82][..], &[0; 8], &[0; 4], timeout, rest].concat();
    vec![
        ("BLPOP k 0", Update, of(&[0], &[0, 0, 1, 1, b'k'])),
        ("BRPOP k l 0.3", Update, of(&[0xac, 2], &[0, 1, 2, 1, b'k', 1, b'l'])),
        ("BLMOVE k l LEFT RIGHT 0", Update, of(&[0], &[1, 1, b'l', 0, 1, 1, 1, b'k'])),
        ("BRPOPLPUSH k l 0.001", Update, of(&[1], &[1, 1, b'l', 1, 0, 1, 1, b'k'])),
        ("BLMPOP 0 1 k RIGHT COUNT 3", Update, of(&[0], &[2, 1, 4, 1, 1, b'k'])),
        ("BZPOPMIN k 0", Update, of(&[0], &[3, 0, 1, 1, b'k'])),
        ("BZPOPMAX k 0", Update, of(&[0], &[3, 1, 1, 1, b'k'])),
        ("BZMPOP 0 1 k MIN", Update, of(&[0], &[4, 0, 0, 1, 1, b'k'])),
    ]
}

/// The same of scripts, whose seed is 0.
fn golden_of_scripts() -> Vec<(&'static str, Class, Vec<u8>)> {
    use Class::{Merge, Read, Update};
    /// Ten million.
    const FUEL: [u8; 4] = [0x80, 0xad, 0xe2, 4];
    let with = |head: &[u8], middle: &[u8], tail: &[u8]| [head, middle, &FUEL, tail].concat();
    vec![
        ("EVAL s 1 k a", Update, with(&[90, 1, b's', 1, 1, b'k', 1, 1, b'a'], &[0; 8], &[1, 0])),
        ("BLIND EVAL s 0", Merge, with(&[0xda, 1, b's', 0, 0], &[0; 8], &[1, 0])),
        ("EVALSHA s 0 a", Update, with(&[91, 1, b's', 0, 1, 1, b'a'], &[0; 8], &[0])),
        ("FCALL f 1 k", Update, with(&[92, 1, b'f', 1, 1, b'k', 0], &[0; 8], &[0])),
        ("EVAL_RO s 1 k", Read, with(&[127, 237, 1, b's', 1, 1, b'k', 0], &[], &[])),
        ("EVALSHA_RO s 0", Read, with(&[127, 238, 1, b's', 0, 0], &[], &[0])),
        ("FCALL_RO f 0", Read, with(&[127, 239, 1, b'f', 0, 0], &[], &[0])),
        ("SCRIPT LOAD s", Update, vec![127, 240, 1, b's']),
        ("SCRIPT FLUSH ASYNC", Merge, vec![127, 241]),
        ("SCRIPT EXISTS a", Read, vec![127, 242, 1, 1, b'a', 0]),
        ("SCRIPT SHOW a", Read, vec![127, 242, 1, 1, b'a', 1]),
        ("FUNCTION LOAD s", Update, with(&[127, 243, 0, 1, b's'], &[], &[])),
        ("FUNCTION LOAD REPLACE s", Update, with(&[127, 243, 1, 1, b's'], &[], &[])),
        ("FUNCTION DELETE l", Update, with(&[127, 243, 2, 1, b'l'], &[], &[])),
        ("FUNCTION FLUSH", Merge, with(&[127, 243, 3, 0], &[], &[])),
        ("FUNCTION LIST", Read, vec![127, 244, 0, 1, b'*']),
        ("FUNCTION LIST WITHCODE LIBRARYNAME l", Read, vec![127, 244, 1, 1, b'l']),
        ("FUNCTION STATS", Read, vec![127, 244, 2, 1, b'*']),
    ]
}

fn all_golden() -> Vec<(&'static str, Class, Vec<u8>)> {
    [
        golden(),
        golden_of_hashes(),
        golden_of_lists(),
        golden_of_sets(),
        golden_of_sorted_sets(),
        golden_of_places(),
        golden_of_bitmaps(),
        golden_of_scripts(),
        golden_of_sketches(),
        golden_of_keys(),
        golden_of_streams(),
        golden_of_groups(),
        golden_of_waiting(),
    ]
    .concat()
}

fn encoded<'a>(command: impl Into<Command<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    Operation::new(command).encode(&mut out);
    out
}

#[test]
fn operations_have_golden_bytes_and_classes() {
    for (command, class, bytes) in all_golden() {
        assert_eq!(body(command), bytes, "{command}");
        assert_eq!(describe(&bytes).map(|description| description.class), Ok(class), "{command}");
        let mut rest = &bytes[..];
        let operation = Operation::decode(&mut rest).unwrap();
        assert!(rest.is_empty(), "{command}");
        let mut again = Vec::new();
        operation.encode(&mut again);
        assert_eq!(again, bytes, "{command}");
    }
}

#[test]
fn commands_that_their_clients_want_to_wait_for_are_known() {
    for (command, waits) in [
        ("BLPOP k 0", true),
        ("XREAD BLOCK 0 STREAMS k $", true),
        ("XREAD STREAMS k $", false),
        ("XREADGROUP GROUP g c BLOCK 5 STREAMS k >", true),
        ("XREADGROUP GROUP g c STREAMS k >", false),
        ("BLIND XREADGROUP GROUP g c BLOCK 5 STREAMS k >", false),
        ("GET k", false),
    ] {
        let body = body(command);
        let operation = operations(&body).next().unwrap().unwrap();
        assert_eq!(operation.may_wait(), waits, "{command}");
        let mut to_wait = Vec::new();
        operation.encode_to_wait(&mut to_wait);
        assert_eq!(to_wait != body, command.starts_with("XREAD BLOCK"), "{command}");
    }
}

/// What a connection sends for WATCH and EXEC, or a front end for commands that wait, and no client.
#[test]
fn conditions_have_golden_bytes_and_classes() {
    let version = Version::of_present(300).to_bytes();
    assert_eq!((version, Version::of_absent(300).0), ([0, 0, 0, 0, 0, 0, 2, 0x59], 600));
    let pairs: [&[u8]; 4] = [b"k", &version, b"l", &version];
    let both = Footprint::of(vec![key_hash(b"k"), key_hash(b"l")]);
    let waiter = WaiterId { owner: WaiterId::owner(Some(2), 0), sequence: 300 };
    let of_pair = |name: u8| [&[1, name, 8][..], &version].concat();
    for (bytes, class, footprint, golden) in [
        (
            encoded(Versions { keys: Arguments::new(&[b"k", b"l"]) }),
            Class::Read,
            both.clone(),
            vec![127, 162, 2, 1, b'k', 1, b'l'],
        ),
        (
            encoded(Unchanged { pairs: Arguments::new(&pairs) }),
            Class::Update,
            both.clone(),
            [&[127, 163, 4][..], &of_pair(b'k'), &of_pair(b'l')].concat(),
        ),
        (encoded(RecordVersions), Class::Merge, Footprint::All, vec![127, 164]),
        (
            encoded(Leave { waiter, is_list: true, keys: Arguments::new(&[b"k", b"l"]) }),
            Class::Merge,
            both.clone(),
            vec![83, 1, 0, 0, 0, 0, 0, 0, 2, 0xac, 2, 1, 2, 1, b'k', 1, b'l'],
        ),
        (
            encoded(Turns { owner: waiter.owner, absent: 4, is_list: false, key: b"k" }),
            Class::Read,
            Footprint::One(key_hash(b"k")),
            vec![127, 202, 1, 0, 0, 0, 0, 0, 0, 2, 4, 0, 1, b'k'],
        ),
        (
            to_wait("XREAD COUNT 3 BLOCK 5 STREAMS k l $ 1-2"),
            Class::Read,
            both.clone(),
            [&[127, 224, 0, 3, 6, 2, 1, b'k', 1, b'l', 2, 1, b'$', 3][..], b"1-2"].concat(),
        ),
        (
            encoded(XNews { key: b"k", of_group: true, group: b"g" }),
            Class::Read,
            Footprint::One(key_hash(b"k")),
            vec![127, 225, 1, b'k', 1, 1, b'g'],
        ),
    ] {
        assert_eq!(bytes, golden);
        let description = describe(&bytes).unwrap();
        assert_eq!((description.class, description.footprint, description.growth), (class, footprint, 0));
        let again: Vec<_> = operations(&bytes).collect::<Result<_, _>>().unwrap();
        let mut encoded = Vec::new();
        again.iter().for_each(|operation| operation.encode(&mut encoded));
        assert_eq!(encoded, golden);
    }
    // A transaction that watches keys is an update of all of them, even if it only reads.
    let watching = [encoded(Unchanged { pairs: Arguments::new(&pairs[..2]) }), body("GET l")].concat();
    let description = describe(&watching).unwrap();
    assert_eq!((description.class, description.footprint), (Class::Update, both));
}

#[test]
fn every_prefix_is_truncated_and_every_byte_is_read() {
    for (command, _, bytes) in all_golden() {
        for length in 0..bytes.len() {
            assert_eq!(describe(&bytes[..length]), Err(Malformed::Truncated), "{command} cut to {length}");
        }
        for index in 0..bytes.len() {
            let mut other = bytes.clone();
            other[index] ^= 0x41;
            let decoded: Result<Vec<_>, _> = operations(&other).collect();
            let original: Result<Vec<_>, _> = operations(&bytes).collect();
            assert_ne!(decoded, original, "{command} with another byte {index}");
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "most of it is the list of bodies")]
fn malformed_bodies_are_refused() {
    for (bytes, error) in [
        (&[][..], Malformed::Truncated),
        (&[0], Malformed::Opcode(0)),
        (&[31], Malformed::Opcode(31)),
        (&[57, 0], Malformed::Opcode(57)),
        (&[19, 1, b'k', 6], Malformed::Options(6)),
        (
            &[18, 1, b'k', 0x80, 0x80, 0x80, 0x80, 16],
            Malformed::TooLong { length: 1 << 32, limit: (1 << 32) - 1 },
        ),
        (&[54, 1, b'k', 0, 2], Malformed::Options(2)),
        (
            &[54, 1, b'k', 0x80, 0x80, 0x80, 0x40, 0],
            Malformed::TooLong { length: 1 << 27, limit: (1 << 27) - 1 },
        ),
        (&[56, 1, b'k', 1, 0, 8, 0], Malformed::Count(0)),
        (&[56, 1, b'k', 1, 7, 8, 0, 0], Malformed::Options(7)),
        (&[56, 1, b'k', 1, 1, 64, 0, 0], Malformed::Options(64)),
        (&[56, 1, b'k', 1, 1, 0x80, 0, 0], Malformed::Options(0x80)),
        (
            &[56, 1, b'k', 1, 1, 2, 0xff, 0xff, 0xff, 0x3f, 0],
            Malformed::TooLong { length: (1 << 27) + 1, limit: 1 << 27 },
        ),
        (&[127, 13, 1, b'k', 1, 5, 8, 0, 0], Malformed::Options(5)),
        (&[127, 15, 0, 0, 4], Malformed::Options(4)),
        (&[127, 34, 4, 2, 1, b'd', 1, b'k'], Malformed::Options(4)),
        (&[127, 34, 0, 1, 1, b'd'], Malformed::Count(1)),
        (&[127, 34, 3, 3, 1, b'd', 1, b'k', 1, b'l'], Malformed::Count(3)),
        (&[127], Malformed::Truncated),
        (&[127, 255, 0], Malformed::Opcode(383)),
        (&[82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2], Malformed::Options(2)),
        (&[82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5], Malformed::Options(5)),
        (
            &[82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 1],
            Malformed::TooLong { length: 1 << 28, limit: limits::LEASE_MS_MAX },
        ),
        (&[1, 7, 0, b's', b'y', b'r', b'o', b's', 0], Malformed::HiddenKey),
        (&[0xff, 0, 1, b'k'], Malformed::BlindRead(128)),
        (&[16, 1, b'k', 0], Malformed::Count(0)),
        (&[49, 1, b'k', 1, 1, b'f'], Malformed::Count(1)),
        (&[127, 5, 1, b'k', 3, 0], Malformed::Options(3)),
        (
            &[127, 5, 1, b'k', 1, 0x81, 0x80, 0x80, 1],
            Malformed::TooLong { length: (1 << 20) + 1, limit: 1 << 20 },
        ),
        (&[127, 63, 1, b'k', 2, 9], Malformed::Options(2)),
        (&[127, 77, 1, 1, b'd'], Malformed::Count(1)),
        (&[127, 6, 1, b'k', 0, 4], Malformed::Options(4)),
        (&[127, 6, 1, b'k', 0, 0, 0], Malformed::Count(0)),
        (&[30, 1, b'k', 2], Malformed::Options(2)),
        (&[72, 1, b'k', 0], Malformed::Count(0)),
        (&[79, 1, b'k', 1, b'l', 0, 2], Malformed::Options(2)),
        (&[127, 149, 1, b'k', 2, 1, b'p', 1, b'e'], Malformed::Options(2)),
        (&[127, 150, 0, 0, 0], Malformed::Count(0)),
        (&[24, 1, b'k', 4, 0, 0, 0, 0], Malformed::Options(4)),
        (&[24, 1, b'k', 2, 0, 0, 0, 0], Malformed::Options(2)),
        (&[24, 1, b'k', 0, 3, 0, 0, 0], Malformed::Options(3)),
        (&[24, 1, b'k', 0, 2, 4, 0, 0], Malformed::Options(4)),
        (&[24, 1, b'k', 0, 0, 0, 0, 2], Malformed::Options(2)),
        (&[64, 1, b'k', 1, 1, b'm'], Malformed::Count(1)),
        (&[67, 0, 1, b'k', 2, 0, 0], Malformed::Options(0)),
        (&[67, 7, 1, b'k', 2, 0, 0], Malformed::Options(7)),
        (&[68, 0, 1, b'k'], Malformed::Options(0)),
        (&[66, 1, b'k', 0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0], Malformed::Number),
        (&[127, 95, 3, 1, 1, b'a', 0], Malformed::Options(3)),
        (&[127, 95, 6, 1, 1, b'a', 0], Malformed::Options(6)),
        (&[127, 95, 12, 1, 1, b'a', 0], Malformed::Options(12)),
        (&[127, 95, 32, 1, 1, b'a', 0], Malformed::Options(32)),
        (&[127, 95, 16, 1, 1, b'a', 2, 0, 0, 0], Malformed::Count(2)),
        (&[127, 113, 0, 0, 1], Malformed::Count(0)),
        (&[127, 182, 3, 1, b'k', 3, 0, 0, 0], Malformed::Options(3)),
        (&[127, 182, 0, 1, b'k', 2, 0, 0], Malformed::Count(2)),
        (&[127, 173, 0, 0, 0, 4], Malformed::Options(4)),
        (&[127, 175, 0, 12], Malformed::Options(12)),
        (&[127, 175, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0xbf], Malformed::Number),
        (&[0x81, 1, b'k'], Malformed::BlindRead(1)),
        (&[1, 0x81, 0, b'k'], Malformed::Number),
        (&[2, 0], Malformed::Count(0)),
        (&[34, 1, 1, b'k'], Malformed::Count(1)),
        (&[33, 0, 1, b'k', 1, b'v'], Malformed::Options(0)),
        (&[33, 3, 1, b'k', 1, b'v'], Malformed::Truncated),
        (&[33, 0x20, 1, b'k', 1, b'v'], Malformed::Options(0x20)),
        (&[11, 4, 0, 1], Malformed::Options(4)),
        (&[11, 0, 0, 0], Malformed::Count(0)),
        (&[38, 1, b'k', 5, 3], Malformed::Options(5)),
        (&[46, 1, b'k', 0, 3, 0], Malformed::Options(0)),
        (&[46, 1, b'k', 1, 3, 6], Malformed::Options(6)),
        (&[42, 1, b'k', 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x3f], Malformed::Number),
        (&[41, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], Malformed::Number),
        (&[1, 0, 0], Malformed::Opcode(0)),
        (&[127, 187, 1, b'k', 1, b'l', 2], Malformed::Options(2)),
        (&[127, 188, 4, 1, b'k'], Malformed::Options(4)),
        (&[80, 1, b'k', 3, 1, 0], Malformed::Options(3)),
        (&[127, 192, 1, b'k', 1, 1, b'x'], Malformed::Options(0)),
        (&[127, 192, 1, b'k', 2, 5, b's', b't', b'o', b'r', b'e', 1, b'l'], Malformed::Options(0)),
        (&[127, 193, 1, b'k', 0], Malformed::Options(0)),
        (&[86, 1, b'k', 3, 0], Malformed::Options(3)),
        (&[127, 212, 1, b'k', 1, 5, 0, 4], Malformed::Options(0)),
        (&[127, 216, 1, b'k', 4], Malformed::Options(4)),
        (&[89, 0, 0, 1, 1, b'k', 1, 1, b'>'], Malformed::Number),
        (&[89, 0, 0, 1, 1, b'k', 2, 1, b'1', 1, b'2'], Malformed::Count(2)),
        (&[127, 218, 1, b'k', 1, b'g', 5], Malformed::Options(5)),
        (&[127, 219, 1, b'k', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64], Malformed::Options(64)),
        (&[127, 219, 1, b'k', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 48], Malformed::Options(48)),
        (&[127, 222, 1, b'k', 4], Malformed::Options(4)),
        (&[127, 223, 2], Malformed::Options(2)),
        (&[14; 9], Malformed::WholeKeyspace),
        (&[1, 0, 48, 14, 14, 14, 14, 14, 14, 14, 14], Malformed::WholeKeyspace),
    ] {
        assert_eq!(describe(bytes), Err(error), "{bytes:?}");
    }
}

#[test]
fn limits_are_enforced() {
    fn too_long(length: usize, limit: usize) -> Malformed {
        Malformed::TooLong { length: length as u64, limit: limit as u64 }
    }
    let long = vec![b'x'; VALUE_BYTES_MAX + 1];
    let get = |length| describe(&encoded(Get { key: &long[..length] })).map(|_| ());
    assert_eq!(get(KEY_BYTES_MAX), Ok(()));
    assert_eq!(get(KEY_BYTES_MAX + 1), Err(too_long(KEY_BYTES_MAX + 1, KEY_BYTES_MAX)));
    let append = |length| describe(&encoded(Append { key: b"k", value: &long[..length] })).map(|_| ());
    assert_eq!(append(VALUE_BYTES_MAX), Ok(()));
    assert_eq!(append(VALUE_BYTES_MAX + 1), Err(too_long(VALUE_BYTES_MAX + 1, VALUE_BYTES_MAX)));
    let set_range = encoded(SetRange { key: b"k", offset: VALUE_BYTES_MAX as u64, value: b"v" });
    assert_eq!(describe(&set_range), Err(too_long(VALUE_BYTES_MAX + 1, VALUE_BYTES_MAX)));
    let keys = encoded(Keys { pattern: &long[..limits::PATTERN_BYTES_MAX + 1] });
    let too_long_pattern = too_long(limits::PATTERN_BYTES_MAX + 1, limits::PATTERN_BYTES_MAX);
    assert_eq!(describe(&keys), Err(too_long_pattern));
    // A count that promises more than is there must not make anybody allocate.
    let many = [2, 0x81, 0x80, 0x04];
    assert_eq!(describe(&many), Err(too_long(KEYS_PER_OPERATION_MAX + 1, KEYS_PER_OPERATION_MAX)));
    assert_eq!(describe(&[1, 0].repeat(limits::OPERATIONS_PER_BODY_MAX)).map(|_| ()), Ok(()));
    let packed = [1, 0].repeat(limits::OPERATIONS_PER_BODY_MAX + 1);
    let limit = limits::OPERATIONS_PER_BODY_MAX;
    assert_eq!(describe(&packed), Err(too_long(limit + 1, limit)));
    let huge = vec![14; BODY_BYTES_MAX + 1];
    assert_eq!(describe(&huge), Err(too_long(BODY_BYTES_MAX + 1, BODY_BYTES_MAX)));
}

#[test]
fn what_parse_accepts_within_limits_decodes() {
    let key = vec![b'k'; KEY_BYTES_MAX];
    let value = vec![b'v'; VALUE_BYTES_MAX];
    let words: [&[u8]; 5] = [b"SET", &key, &value, b"PXAT", b"9223372036854775807"];
    let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("the largest SET is refused") };
    let mut out = Vec::new();
    operation.encode(&mut out);
    assert_eq!(describe(&out).map(|description| description.class), Ok(Class::Overwrite));
}

#[test]
fn footprints_name_the_keys() {
    let hash = |key: &str| key_hash(key.as_bytes());
    for (command, footprint) in [
        ("GET k", Footprint::One(hash("k"))),
        ("MGET k", Footprint::One(hash("k"))),
        ("MGET k k", Footprint::One(hash("k"))),
        ("MSET a x b y", Footprint::of(vec![hash("a"), hash("b")])),
        ("RENAME a b", Footprint::of(vec![hash("b"), hash("a")])),
        ("LMOVE a b LEFT LEFT", Footprint::of(vec![hash("a"), hash("b")])),
        ("LMPOP 1 a LEFT", Footprint::One(hash("a"))),
        ("LMPOP 2 a b LEFT", Footprint::of(vec![hash("a"), hash("b")])),
        ("DEL a b a", Footprint::of(vec![hash("a"), hash("b")])),
        ("BLIND DEL a", Footprint::One(hash("a"))),
        ("SMOVE a b m", Footprint::of(vec![hash("a"), hash("b")])),
        ("SINTERCARD 2 a b LIMIT 5", Footprint::of(vec![hash("a"), hash("b")])),
        ("SUNIONSTORE a b b", Footprint::of(vec![hash("a"), hash("b")])),
        ("SUNIONSTORE a a", Footprint::One(hash("a"))),
        ("ZUNIONSTORE d 2 a b", Footprint::of(vec![hash("a"), hash("b"), hash("d")])),
        ("ZUNION 1 a", Footprint::One(hash("a"))),
        ("ZMPOP 2 a b MIN", Footprint::of(vec![hash("a"), hash("b")])),
        ("BITOP OR d a b", Footprint::of(vec![hash("d"), hash("a"), hash("b")])),
        ("SCAN 0", Footprint::All),
        ("KEYS a", Footprint::All),
        ("DBSIZE", Footprint::All),
        ("RANDOMKEY", Footprint::All),
        ("FLUSHALL", Footprint::All),
        ("FLUSHDB", Footprint::All),
        ("SWAPDB 0 1", Footprint::All),
        ("MOVE a 0", Footprint::One(hash("a"))),
        ("COPY a b", Footprint::of(vec![hash("a"), hash("b")])),
        ("SORT a GET # BY nosort", Footprint::One(hash("a"))),
        ("SORT a STORE b", Footprint::of(vec![hash("a"), hash("b")])),
        ("SORT a BY w_*", Footprint::All),
        ("SORT a GET w_* STORE b", Footprint::All),
    ] {
        assert_eq!(describe(&body(command)).unwrap().footprint, footprint, "{command}");
    }
}

#[test]
fn scripts_that_declare_no_key_have_a_footprint_together_as_each_has_alone() {
    let script: &[&[u8]] = &[b"EVAL", b"return 1", b"0"];
    let Ok(Parsed::Data(mut operation)) = parse(script) else { panic!("a script is refused") };
    if let Some(ScriptUse::Text { loads, .. }) = operation.script_mut() {
        *loads = false;
    }
    let mut body = Vec::new();
    operation.encode(&mut body);
    let alone = describe(&body).unwrap().footprint;
    assert_eq!(alone.keys().map(<[u64]>::len), Some(1));
    operation.encode(&mut body);
    assert_eq!(describe(&body).unwrap().footprint, alone);
}

/// The database of this number.
fn database(number: u8) -> Database {
    Database::new(number).expect("below 16")
}

/// The body of a command in a database.
fn body_in(number: u8, command: &str) -> Vec<u8> {
    let bytes = body(command);
    let mut out = Vec::new();
    operations(&bytes)
        .flatten()
        .for_each(|operation| operation.in_database(database(number)).encode(&mut out));
    out
}

#[test]
fn operations_in_other_databases_have_golden_bytes() {
    assert_eq!(body_in(0, "GET k"), body("GET k"));
    assert_eq!(body_in(3, "GET k"), [94, 3, 1, 1, b'k']);
    assert_eq!(body_in(15, "BLIND DEL k"), [&[94, 15][..], &body("BLIND DEL k")].concat());
    assert_eq!(body_in(2, "HGET h f"), [&[94, 2][..], &body("HGET h f")].concat());
    assert_eq!(body_in(2, "FLUSHDB"), [94, 2, 48]);
    // They concern all databases, or name their own.
    for command in ["FLUSHALL", "SWAPDB 1 2"] {
        assert_eq!(body_in(2, command), body(command));
    }
    for (bytes, malformed) in [
        (&[94][..], Malformed::Truncated),
        (&[94, 1], Malformed::Truncated),
        (&[94, 0, 1, 1, b'k'], Malformed::Database(0)),
        (&[94, 16, 1, 1, b'k'], Malformed::Database(16)),
        (&[94, 1, 94, 1, 1, 1, b'k'], Malformed::Opcode(94)),
        (&[94 | 128, 1, 1, 1, b'k'], Malformed::Opcode(94)),
        (&[94, 1, 127, 247], Malformed::Database(1)),
        (&[94, 1, 127, 246, 1, 2], Malformed::Database(1)),
        (&[127, 246, 1, 16], Malformed::Database(16)),
    ] {
        assert_eq!(describe(bytes).map(|_| ()), Err(malformed), "{bytes:?}");
    }
}

/// Keys of one name in two databases are two keys, wherever keys are told apart.
#[test]
fn the_database_belongs_to_the_key() {
    let footprint = |body: &[u8]| describe(body).expect("a body").footprint;
    let hash = |number, key: &str| key_hash_in(database(number), key.as_bytes());
    assert_eq!(footprint(&body_in(1, "GET k")), Footprint::One(hash(1, "k")));
    assert_eq!(footprint(&body_in(1, "MGET k l")), Footprint::of(vec![hash(1, "k"), hash(1, "l")]));
    assert_eq!(footprint(&body_in(1, "MOVE k 2")), Footprint::of(vec![hash(1, "k"), hash(2, "k")]));
    assert_eq!(footprint(&body_in(1, "MOVE k 0")), Footprint::of(vec![hash(1, "k"), hash(0, "k")]));
    let pack = [body_in(0, "SET k 1"), body_in(1, "SET k 1"), body_in(1, "SET k 2")].concat();
    let description = describe(&pack).expect("a body");
    assert_eq!(description.footprint, Footprint::of(vec![hash(0, "k"), hash(1, "k")]));
    assert_eq!(description.class, Class::Merge, "it overwrites two keys");
    let one = [body_in(1, "SET k 1"), body_in(1, "SET k 2")].concat();
    assert_eq!(describe(&one).map(|description| description.class), Ok(Class::Overwrite));
    assert!(overwrites(&body_in(1, "SET k 1"), &one));
    assert!(!overwrites(&body_in(1, "SET k 1"), &body_in(2, "SET k 1")));
    assert!(!overwrites(&body_in(1, "SET k 1"), &body("SET k 1")));
}

#[test]
fn older_builds_get_nothing_of_other_databases() {
    assert_eq!(Generation::of_body(&body("SET k 1")), Generation::Strings);
    assert_eq!(Generation::of_body(&body("FLUSHDB")), Generation::Strings);
    assert_eq!(Generation::of_body(&body("HGET k f")), Generation::Collections);
    for newer in [
        body_in(1, "SET k 1"),
        body_in(1, "FLUSHDB"),
        [body("SET k 1"), body_in(1, "GET k")].concat(),
        body("MOVE k 1"),
        body("SWAPDB 0 1"),
        body("FLUSHALL"),
    ] {
        assert_eq!(Generation::of_body(&newer), Generation::Programs, "{newer:?}");
    }
}

#[test]
fn packed_operations_are_joined() {
    let hash = |key: &str| key_hash(key.as_bytes());
    let one = Footprint::One(hash("k"));
    let both = Footprint::of(vec![hash("k"), hash("l")]);
    for (commands, class, footprint) in [
        (&["SET k 1", "SET k 2"][..], Class::Overwrite, one.clone()),
        (&["SET k 1", "BLIND DEL k"], Class::Overwrite, one.clone()),
        (&["SET k 1", "BLIND INCR k"], Class::Merge, one.clone()),
        (&["SET k 1", "INCR k"], Class::Update, one.clone()),
        (&["SET k 1", "GET k"], Class::Update, one.clone()),
        (&["GET k", "TTL k"], Class::Read, one),
        (&["SET k 1", "SET l 2"], Class::Merge, both.clone()),
        (&["SET k 1", "SET l 2", "SET k 3"], Class::Merge, both.clone()),
        (&["MGET k l", "GET k"], Class::Read, both.clone()),
        (&["SET k 1", "INCR l", "GET k"], Class::Update, both),
        (&["FLUSHALL", "SET k 1"], Class::Merge, Footprint::All),
        (&["SET k 1", "DBSIZE"], Class::Update, Footprint::All),
        (&["KEYS *", "GET k"], Class::Read, Footprint::All),
    ] {
        let packed: Vec<u8> = commands.iter().flat_map(|command| body(command)).collect();
        let description = describe(&packed).unwrap();
        assert_eq!((description.class, description.footprint), (class, footprint), "{commands:?}");
        assert_eq!(operations(&packed).count(), commands.len());
    }
}

#[test]
fn random_bytes_never_panic_and_reencode_to_themselves() {
    let golden = all_golden();
    let mut prng = Prng::new(1);
    let mut accepted = 0;
    for _ in 0..200_000 {
        let (_, _, bytes) = &golden[prng.below(golden.len() as u64) as usize];
        let mut bytes = bytes.clone();
        for _ in 0..prng.below(3) {
            let index = prng.below(bytes.len() as u64) as usize;
            bytes[index] = prng.next_u64() as u8;
        }
        let decoded: Result<Vec<_>, _> = operations(&bytes).collect();
        let described = describe(&bytes);
        assert_eq!(decoded.as_ref().err(), described.as_ref().err(), "{bytes:?}");
        let Ok(decoded) = decoded else { continue };
        let mut again = Vec::new();
        decoded.iter().for_each(|operation| operation.encode(&mut again));
        assert_eq!(again, bytes, "an operation has exactly one encoding");
        accepted += 1;
    }
    assert!(accepted > 50_000, "only {accepted} bodies were accepted");
}

#[test]
fn only_an_overwrite_of_the_same_key_overwrites() {
    let body = |words: &[&[u8]]| {
        let mut body = Vec::new();
        let Ok(Parsed::Data(operation)) = parse(words) else { panic!("{words:?}") };
        operation.encode(&mut body);
        body
    };
    let set = body(&[b"SET", b"k", b"1"]);
    let delete = body(&[b"BLIND", b"DEL", b"k"]);
    let other = body(&[b"SET", b"l", b"1"]);
    let increment = body(&[b"BLIND", b"INCR", b"k"]);
    assert!(overwrites(&set, &delete) && overwrites(&delete, &set) && overwrites(&set, &set));
    assert!(!overwrites(&set, &other) && !overwrites(&set, &increment) && !overwrites(&increment, &set));
    assert!(!overwrites(&set, b"garbage") && !overwrites(b"", b""));
}

/// What a replica with little room goes by before it takes an operation.
#[test]
fn operations_say_by_how_much_the_data_may_grow() {
    fn growth<'a>(command: impl Into<Command<'a>>) -> usize {
        describe(&encoded(command)).unwrap().growth
    }
    let (key, long) = (&b"k"[..], &[b'l'; 60_000][..]);
    for command in [Command::Get(Get { key }), Command::Persist(Persist { key }), Command::FlushAll(FlushAll)]
    {
        assert_eq!(growth(command), 0, "{command:?}");
    }
    // A few bytes ask for megabytes of zeros.
    assert!(growth(SetRange { key, offset: 16_000_000, value: b"x" }) > 16_000_000);
    assert!(growth(Append { key, value: &[7; 1000] }) > 1000);
    assert_eq!(growth(Rename { from: long, to: key }), 0);
    assert!(growth(Rename { from: key, to: long }) > 59_000);
    let words = [&b"HSET"[..], key, b"f", &[7; 1000], b"g", b""];
    let Ok(Parsed::Data(set_fields)) = parse(&words) else { panic!("HSET is refused") };
    assert!(growth(set_fields.command) > 1000 + 2 * 16);
    let words = [&b"RPUSH"[..], key, &[7; 1000], b""];
    let Ok(Parsed::Data(push)) = parse(&words) else { panic!("RPUSH is refused") };
    assert!(growth(push.command) > 1000 + 2 * 16);
    assert_eq!(describe(&body("LTRIM k 0 0")).map(|description| description.growth), Ok(0));
    let words = [&b"ZADD"[..], key, b"1", &[7; 1000], b"2", b""];
    let Ok(Parsed::Data(add_members)) = parse(&words) else { panic!("ZADD is refused") };
    assert!(growth(add_members.command) > 1000 + 2 * 32);
    assert_eq!(describe(&body("ZREM k m")).map(|description| description.growth), Ok(0));
    assert!(describe(&body("SETBIT k 134217727 0")).unwrap().growth >= 16 << 20);
    assert!(describe(&body("BITFIELD k SET u8 8000000 1")).unwrap().growth > 1_000_000);
    // Two bits may be all that there is of 16 MiB in the end.
    assert!(describe(&body("BITOP OR d k l")).unwrap().growth > 16 << 20);
    assert!(describe(&body("PFADD k a")).unwrap().growth > 12_304);
    assert_eq!(describe(&body("HDEL k f")).map(|description| description.growth), Ok(0));
    let growth_of = |command| describe(&body(command)).unwrap().growth;
    assert_eq!(growth_of("HDEL k f"), 0);
    assert!(growth_of("SADD k m") > 0 && growth_of("SINTERSTORE d k") > 0 && growth_of("SMOVE k l m") > 0);
    assert_eq!((growth_of("SREM k m"), growth_of("SPOP k 5")), (0, 0));
    // Those of a body count together.
    let twice = encoded(SetRange { key, offset: 1 << 20, value: b"x" }).repeat(2);
    assert!(describe(&twice).unwrap().growth > 2 << 20);
}

/// SPOP draws, and scripts that may change something.
#[test]
fn a_seed_is_what_is_drawn_from() {
    for (command, _, bytes) in all_golden() {
        let mut operation = Operation::decode(&mut &bytes[..]).unwrap();
        let seed = operation.seed_mut();
        let is_script = ["EVAL ", "EVALSHA ", "FCALL "].iter().any(|name| command.contains(name));
        assert_eq!(seed.is_some(), is_script || command.contains("SPOP"), "{command}");
        let Some(seed) = seed else { continue };
        *seed = 0x0807_0605_0403_0201;
        let mut again = Vec::new();
        operation.encode(&mut again);
        assert!(again.windows(8).any(|bytes| bytes == [1, 2, 3, 4, 5, 6, 7, 8]), "{command}");
    }
}

/// Those commands on streams whose result depends on the present have it in their bodies.
#[test]
fn the_present_is_a_part_of_the_body() {
    let named = ["XADD k *", "XREADGROUP", "XCLAIM", "XAUTOCLAIM", "XGROUP CREATECONSUMER"];
    for (command, _, bytes) in all_golden() {
        let mut operation = Operation::decode(&mut &bytes[..]).unwrap();
        let now = operation.now_mut();
        assert_eq!(now.is_some(), named.iter().any(|name| command.starts_with(name)), "{command}");
        let Some(now) = now else { continue };
        *now = 0x0807_0605_0403_0201;
        let mut again = Vec::new();
        operation.encode(&mut again);
        let place = again.windows(8).position(|window| window == [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(place.is_some() && again.len() == bytes.len(), "{command}");
        // It is the same whether the operation was made of bytes or of words.
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let Ok(Parsed::Data(mut operation)) = parse(&words) else { panic!("{command} is no operation") };
        *operation.now_mut().expect("it has a time") = 0x0807_0605_0403_0201;
        let mut of_words = Vec::new();
        operation.encode(&mut of_words);
        assert_eq!(of_words, again, "{command}");
        assert_eq!(Ok(operation), Operation::decode(&mut &again[..]), "{command}");
    }
}
