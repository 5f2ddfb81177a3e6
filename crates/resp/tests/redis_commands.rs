//! What is said of commands, by a connection and by a real Redis 7: the same.

mod common;
mod redis_server;

use common::{TestStore, connection, request, requests, serve};
use redis_server::{Redis, Value, value};

/// Questions about commands.
const QUESTIONS: &[&str] = &[
    "COMMAND NOSUCH",
    "COMMAND COUNT x",
    "COMMAND GETKEYS SET k v",
    "COMMAND GETKEYS MSET k v j w",
    "COMMAND GETKEYS DEL a b c",
    "COMMAND GETKEYS RENAME a b",
    "COMMAND GETKEYS PING",
    "COMMAND GETKEYS NOSUCH",
    "COMMAND GETKEYS GET",
    "COMMAND GETKEYS PING x",
    "COMMAND GETKEYS NOSUCH x",
    "COMMAND GETKEYS GET k j",
    "COMMAND INFO nosuch",
    "COMMAND DOCS nosuch",
    "COMMAND INFO get set",
    "COMMAND INFO client|id",
    "COMMAND INFO CLIENT|GETNAME",
    "COMMAND INFO client|nosuch",
    "COMMAND INFO command|getkeysandflags",
    "COMMAND INFO config|get",
    "COMMAND LIST FILTERBY MODULE x",
    "COMMAND LIST FILTERBY ACLCAT nosuch",
    "COMMAND LIST FILTERBY PATTERN config|*set",
    "COMMAND LIST FILTERBY PATTERN Mset",
    "COMMAND LIST FILTERBY x y",
    "COMMAND LIST FILTERBY PATTERN",
    "COMMAND LIST x",
    "COMMAND GETKEYS ZUNION 2 a b WEIGHTS 1 2",
    "COMMAND GETKEYSANDFLAGS GEORADIUS k 1 2 3 m store a storedist b",
    "COMMAND GETKEYS GEORADIUS k 1 2 3 m store",
    "COMMAND GETKEYS GEORADIUS k 1 2 3 m count 3 STORE a store b",
    "COMMAND GETKEYS GEORADIUSBYMEMBER k m 1 m asc",
    "COMMAND GETKEYS GEORADIUSBYMEMBER k m 1 m storedist x",
    "COMMAND GETKEYSANDFLAGS SORT k BY w_* GET p_* STORE t",
    "COMMAND GETKEYS SORT k STORE",
    "COMMAND GETKEYS SORT k STORE a STORE b STORE c",
    "COMMAND GETKEYS SORT_RO k BY w_*",
    "COMMAND GETKEYS BLPOP a b 0",
    "COMMAND GETKEYSANDFLAGS BLPOP a b 0",
    "COMMAND GETKEYS BLMOVE a b LEFT LEFT 0",
    "COMMAND GETKEYS BLMPOP 0 2 a b LEFT",
    "COMMAND GETKEYS BZMPOP 0 1 a MIN",
    "COMMAND INFO blpop brpop blmove brpoplpush blmpop bzpopmin bzpopmax bzmpop",
    "COMMAND GETKEYS ZUNIONSTORE d 2 a b",
    "COMMAND GETKEYS ZMPOP 3 a b MIN",
    "COMMAND GETKEYS ZMPOP 4 a b MIN",
    "COMMAND GETKEYS ZINTERCARD 0 a",
    "COMMAND GETKEYS EVAL script 0",
    "COMMAND GETKEYS EVAL script 1",
    "COMMAND GETKEYS EVAL script x a",
    "COMMAND GETKEYS EVAL script -1 a",
    "COMMAND GETKEYS EVAL script 2 a b c",
    "COMMAND GETKEYS FCALL_RO f 5 a",
    "COMMAND GETKEYS ZINTERCARD x a",
    "COMMAND GETKEYSANDFLAGS ZUNIONSTORE d 2 a b",
    "COMMAND GETKEYSANDFLAGS ZRANGESTORE a b 0 1",
    "COMMAND GETKEYSANDFLAGS SET k v",
    "COMMAND GETKEYSANDFLAGS MSET k v j w",
    "COMMAND GETKEYSANDFLAGS RENAME a b",
    "COMMAND GETKEYSANDFLAGS DEL a b c",
    "COMMAND GETKEYSANDFLAGS GET",
    "COMMAND GETKEYSANDFLAGS PING x",
    "COMMAND GETKEYSANDFLAGS NOSUCH x",
    "COMMAND GETKEYSANDFLAGS GET k j",
    "COMMAND GETKEYS LMOVE a b LEFT RIGHT",
    "COMMAND GETKEYSANDFLAGS LMOVE a b LEFT RIGHT",
    "COMMAND GETKEYS LMPOP 2 a b LEFT",
    "COMMAND GETKEYSANDFLAGS LMPOP 2 a b LEFT",
    "COMMAND GETKEYS LMPOP 3 a b LEFT",
    "COMMAND GETKEYS LMPOP 4 a b LEFT",
    "COMMAND GETKEYS LMPOP 0 a LEFT",
    "COMMAND GETKEYS LMPOP x a LEFT",
    "COMMAND GETKEYS LMPOP 1",
    "COMMAND GETKEYS SINTERCARD 2 a b LIMIT 3",
    "COMMAND GETKEYS SINTERCARD 3 a b",
    "COMMAND GETKEYS SINTERCARD 0 a b",
    "COMMAND GETKEYS SINTERCARD -1 a b",
    "COMMAND GETKEYS SINTERCARD x a b",
    "COMMAND GETKEYS SINTERCARD 1",
    "COMMAND GETKEYSANDFLAGS SINTERCARD 2 a b",
    "COMMAND GETKEYS SUNIONSTORE d a b",
    "COMMAND GETKEYSANDFLAGS SUNIONSTORE d a b",
    "COMMAND GETKEYSANDFLAGS SMOVE a b m",
    "COMMAND GETKEYS BITOP AND d a b",
    "COMMAND GETKEYSANDFLAGS BITOP AND d a b",
    "COMMAND GETKEYSANDFLAGS PFMERGE d a b",
    "COMMAND GETKEYSANDFLAGS LCS a b",
    "COMMAND GETKEYSANDFLAGS PFCOUNT a b",
    "COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0",
    "COMMAND GETKEYS XADD k * f v",
    "COMMAND GETKEYS XREAD COUNT 2 STREAMS a b 0 0",
    "COMMAND GETKEYS XREAD COUNT 2 STREAMS a b 0",
    "COMMAND GETKEYS XREAD COUNT 2 x y",
    "COMMAND GETKEYSANDFLAGS XREADGROUP GROUP a b STREAMS x y > >",
    "COMMAND GETKEYS XGROUP CREATE k g 0",
    "COMMAND GETKEYS XGROUP CREATE k g",
    "COMMAND GETKEYS XGROUP FOO k g",
    "COMMAND GETKEYS XGROUP HELP",
    "COMMAND GETKEYSANDFLAGS XINFO STREAM k",
    "COMMAND INFO xgroup|create xgroup|help xinfo|consumers",
    "COMMAND INFO function|dump function|restore",
    "FUNCTION DUMP x",
    "FUNCTION RESTORE",
    "FUNCTION RESTORE a b",
    "FUNCTION RESTORE a FLUSH",
    "FUNCTION RESTORE a b c",
    "FUNCTION FLUSH SYNC x",
    "COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0 SET u8 0 1",
];

#[test]
fn what_is_said_of_commands_is_what_redis_says() {
    let Some(redis) = Redis::start("command") else { return };
    for line in QUESTIONS {
        redis.compare(&requests(&[line]));
        redis.compare(&requests(&["HELLO 3", line, "CLIENT GETNAME"]));
    }
}

/// What Redis 7.0 does not have.
const OF_FIELDS_THAT_EXPIRE: [&str; 12] = [
    "hexpire",
    "hexpireat",
    "hexpiretime",
    "hgetdel",
    "hgetex",
    "hpersist",
    "hpexpire",
    "hpexpireat",
    "hpexpiretime",
    "hpttl",
    "hsetex",
    "httl",
];

/// COMMAND INFO says of every command of the table what Redis says of it. Of the subcommands, some are left out; one is of a
/// later version, and one Redis does not have.
#[test]
fn the_table_is_described_as_by_redis() {
    let Some(redis) = Redis::start("table") else { return };
    let names: Vec<&str> = syros_commands::commands()
        .iter()
        .map(|spec| spec.name)
        .filter(|name| !["blind", "waitaof"].contains(name) && !OF_FIELDS_THAT_EXPIRE.contains(name))
        .collect();
    assert!(names.len() > 50);
    let mut words = vec!["COMMAND", "INFO"];
    words.extend(&names);
    for hello in ["HELLO 2", "HELLO 3"] {
        let input = [requests(&[hello]), request(&words)].concat();
        let (expected, _, id) = redis.ask(&input);
        let (reply, _) = serve(&mut connection(id), &mut TestStore::default(), &input);
        let (expected, reply) = (String::from_utf8(expected).unwrap(), String::from_utf8(reply).unwrap());
        let (mut expected, mut reply) = (&expected[..], &reply[..]);
        assert_eq!(value(&mut reply), value(&mut expected));
        let (Value::List(reply), Value::List(expected)) = (value(&mut reply), value(&mut expected)) else {
            panic!("lists")
        };
        assert_eq!(reply.len(), names.len());
        let mut wrong = Vec::new();
        for (mine, theirs) in reply.iter().zip(&expected) {
            let (Value::List(mine), Value::List(theirs)) = (mine, theirs) else {
                panic!("{mine:?} {theirs:?}")
            };
            assert_eq!((mine.len(), theirs.len()), (10, 10));
            // These take WITHSCORE, as in Redis 7.2.
            let is_later =
                [r#"Text("zrank")"#, r#"Text("zrevrank")"#].contains(&&format!("{:?}", mine[0])[..]);
            if is_later {
                assert_eq!((&mine[1], &theirs[1]), (&Value::Text(":-3".into()), &Value::Text(":3".into())));
            } else if mine[1] != theirs[1] {
                wrong.push(format!("{:?}: {:?}, Redis: {:?}", mine[0], mine[1], theirs[1]));
            }
            if (&mine[0], &mine[2..9]) != (&theirs[0], &theirs[2..9]) {
                wrong.push(format!("{:?}: {:?}, Redis: {:?}", mine[0], &mine[2..9], &theirs[2..9]));
            }
            let (Value::List(mine), Value::List(theirs)) = (&mine[9], &theirs[9]) else { panic!("lists") };
            let name = |info: &Value| match info {
                Value::List(info) => format!("{:?}", info[0]),
                Value::Text(text) => panic!("{text}"),
            };
            let others = ["client|setinfo", "client|blind", "client|no-touch", "script|show"];
            let is_other = |name: &str| others.iter().any(|other| name.contains(other));
            for mine in mine.iter().filter(|mine| !is_other(&name(mine))) {
                if !theirs.contains(mine) {
                    wrong.push(format!("{mine:?}"));
                }
            }
        }
        // All of them, because commands come in families.
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
