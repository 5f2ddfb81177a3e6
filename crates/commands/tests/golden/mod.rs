//! What each kind of operation is as bytes. None of it may ever change.

use syros_types::Class;

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
        ("DEBUG OBJECT k", Read, vec![127, 188, 4, 1, b'k']),
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
        ("FUNCTION DUMP", Read, vec![127, 244, 3, 1, b'*']),
    ]
}

/// Commands with their classes and their bytes.
pub(crate) fn all() -> Vec<(&'static str, Class, Vec<u8>)> {
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
