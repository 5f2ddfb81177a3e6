//! The same requests to a connection and to a real Redis 7: the same replies.

mod common;
mod redis_server;

use common::{TestStore, connection, request, requests, serve};
use redis_server::{Redis, Value, value};

#[test]
fn protocol_errors_are_those_of_redis() {
    let Some(redis) = Redis::start("errors") else { return };
    let set = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
    for end in [
        "*1\r\nPING\r\n",
        "*1\r\n\r\n\r\n",
        "*1\r\n\n\r\n",
        "*1\r\n:3\r\n",
        "*1\r\n\x7f\r\n",
        "*1\r\n$x\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$\r\n",
        "*1\r\n$ 4\r\n",
        "*1\r\n$99999999999\r\n",
        "*1\r\n$18446744073709551617\r\n",
        "*x\r\n",
        "*\r\n",
        "*1 \r\n",
        "*+1\r\n",
        "*2147483648\r\n",
        "*99999999999999999999\r\n",
        "SET k \"v\r\n",
        "SET k 'v\r\n",
        "SET k \"v\"x\r\n",
        "SET k 'v'x\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\n\r\nSET k attacked\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\n\r\nSET k attacked\r\n",
        "Host:\r\n",
        "*1\r\n$4\r\npOst\r\n",
    ] {
        redis.compare(end.as_bytes());
        redis.compare(format!("{set}{end}").as_bytes());
    }
    redis.compare(&vec![b'a'; 3_000_000]);
    redis.compare(&[&b"*"[..], &vec![b'1'; 3_000_000]].concat());
    redis.compare(&[&b"*1\r\n$"[..], &vec![b'1'; 3_000_000]].concat());
}

#[test]
fn inline_commands_are_those_of_redis() {
    let Some(redis) = Redis::start("inline") else { return };
    for line in [
        "PING",
        "ping",
        "  PING  ",
        "\tPING\tx",
        "",
        "   ",
        "ECHO \"a b\"",
        "ECHO 'a b'",
        "ECHO \"\\x41\\n\\r\\t\\b\\a\\\\\\\"\\q\\xzz\\x4\"",
        "ECHO 'it\\'s \\n'",
        "ECHO a\"b c\"",
        "ECHO a'b c' ",
        "ECHO \"\"",
        "ECHO ''",
        "ECHO a\x0bb",
        "ECHO \"a\"\x0b",
        "PING\r",
        "ECHO a\rb",
        "SET k v",
        "NOSUCH \"a\\r\\nb\" c",
    ] {
        redis.compare(format!("{line}\r\n").as_bytes());
        redis.compare(format!("{line}\n").as_bytes());
    }
    redis.compare(b"*0\r\n*-5\r\n\r\nPING\r\n*1\r\n$4\r\nPINGxxPING\r\n");
}

#[test]
fn local_commands_are_those_of_redis() {
    let Some(redis) = Redis::start("local") else { return };
    for line in [
        "PING",
        "PING a",
        "PING a b",
        "ECHO",
        "ECHO a",
        "ECHO a b",
        "TIME a",
        "SELECT 0",
        "SELECT 16",
        "SELECT -1",
        "SELECT x",
        "SELECT 99999999999",
        "RESET a",
        "RESET",
        "QUIT",
        "QUIT a",
        "HELLO",
        "HELLO 2",
        "HELLO 3",
        "HELLO 4",
        "HELLO 1",
        "HELLO x",
        "HELLO 3 AUTH default any",
        "HELLO 3 AUTH other any",
        "HELLO 3 AUTH default",
        "HELLO 3 SETNAME me",
        "HELLO 3 SETNAME",
        "HELLO 2 setname me AUTH default x",
        "HELLO 3 NOSUCH",
        "HELLO SETNAME me",
        "CLIENT",
        "CLIENT ID",
        "CLIENT ID x",
        "CLIENT GETNAME",
        "CLIENT SETNAME",
        "CLIENT NOSUCH",
        "CLIENT nosuch a",
        "CLIENT NO-EVICT on",
        "CLIENT NO-EVICT x",
        "CONFIG",
        "CONFIG GET",
        "CONFIG GET nosuch",
        "CONFIG GET save",
        "CONFIG GET maxmemory",
        "CONFIG GET maxmem?ry",
        "CONFIG NOSUCH",
        "CONFIG RESETSTAT",
        "CONFIG RESETSTAT x",
        "CONFIG REWRITE",
        "CONFIG SET save",
        "CONFIG SET a b c",
        "CONFIG SET nosuch 1",
        "CONFIG SET maxmemory 1 nosuch 2",
        "CONFIG SET maxmemory much",
        "CONFIG SET maxmemory 1.5mb",
        "CONFIG SET maxmemory-policy noeviction",
        "CONFIG SET maxmemory-policy allkeys-ttl",
        "CONFIG GET maxmemory-policy",
        // Of several settings that one pattern names, redis-server has the order of a table with a seed.
        "CONFIG GET lfu-l*",
        "CONFIG GET lfu-d*",
        "CONFIG SET notify-keyspace-events KEq",
        "CONFIG GET notify-keyspace-events",
        "INFO nosuch",
        "NOSUCH",
        "NOSUCH a b",
        "GET",
        "GET a b",
        "SET k",
    ] {
        redis.compare(&requests(&[line]));
        redis.compare(&requests(&["HELLO 3", line, "CLIENT GETNAME"]));
        redis.compare(&requests(&["SET k v", line, "GET k", "GET j"]));
    }
    for lines in [
        &["CLIENT SETNAME me", "CLIENT GETNAME", "RESET", "CLIENT GETNAME"][..],
        &["HELLO 3 SETNAME me", "CLIENT GETNAME", "GET nosuch", "RESET", "GET nosuch"],
        &["HELLO 3", "HELLO 2", "GET nosuch"],
        &["CLIENT SETNAME me", "CLIENT SETNAME ", "CLIENT GETNAME"],
    ] {
        redis.compare(&requests(lines));
    }
    redis.compare(&request(&["CLIENT", "SETNAME", "a b"]));
    redis.compare(&request(&["CLIENT", "SETNAME", "a\nb"]));
    redis.compare(&request(&["HELLO", "3", "SETNAME", "a b"]));
    redis.compare(&request(&[&"x".repeat(300), &"y".repeat(300), "z"]));
}

#[test]
#[expect(clippy::too_many_lines, reason = "most of it is the list of what is asked")]
fn what_tools_ask_is_answered_as_by_redis() {
    let Some(redis) = Redis::start("tools") else { return };
    for line in [
        "ACL",
        "ACL CAT",
        "ACL CAT nosuch",
        "ACL CAT a b",
        "ACL DRYRUN default GET k",
        "ACL DRYRUN default GET",
        "ACL DRYRUN default nosuch",
        "ACL DRYRUN nosuch GET k",
        "ACL LOG",
        "ACL LOG 5",
        "ACL LOG RESET",
        "ACL NOSUCH",
        "ACL WHOAMI",
        "ACL WHOAMI x",
        "AUTH",
        "AUTH password",
        "AUTH default password",
        "AUTH nosuch password",
        "AUTH a b c",
        "CLIENT KILL ID x",
        "CLIENT KILL ID 0",
        "CLIENT KILL NOSUCH x",
        "CLIENT KILL SKIPME maybe",
        "CLIENT KILL TYPE nosuch",
        "CLIENT KILL TYPE normal SKIPME",
        "CLIENT KILL USER nosuch",
        "CLIENT LIST ID",
        "CLIENT LIST ID x",
        "CLIENT LIST TYPE",
        "CLIENT LIST TYPE nosuch",
        "CLIENT LIST nosuch",
        "CLIENT PAUSE",
        "CLIENT PAUSE x",
        "CLIENT PAUSE -1",
        "CLIENT PAUSE 1 nosuch",
        "CLUSTER",
        "CLUSTER INFO",
        "CLUSTER NOSUCH",
        "CLUSTER KEYSLOT k",
        "CLUSTER SLOTS",
        "CLUSTER MYID",
        "CONFIG SET timeout x",
        "CONFIG SET timeout -1",
        "CONFIG SET timeout 5",
        "CONFIG SET timeout 5 slowlog-log-slower-than 20000",
        "CONFIG SET timeout 5 timeout 6",
        "CONFIG SET timeout 5 slowlog-log-slower-than x",
        "CONFIG SET slowlog-log-slower-than -1",
        "CONFIG SET slowlog-max-len 100",
        "CONFIG SET latency-monitor-threshold 10",
        "CONFIG SET latency-tracking maybe",
        "CONFIG SET latency-tracking no",
        "CONFIG GET latency-tracking-info-percentiles",
        "CONFIG GET slowlog-max*",
        "CONFIG GET timeout",
        "DEBUG",
        "DEBUG SLEEP 0",
        "DEBUG OBJECT k",
        "DEBUG OBJECT",
        "DEBUG JMAP",
        "LASTSAVE x",
        "LATENCY",
        "LATENCY DOCTOR x",
        "LATENCY HELP x",
        "CLIENT HELP x",
        "CONFIG HELP x",
        "COMMAND HELP x",
        "OBJECT HELP x",
        "FUNCTION HELP x",
        "SCRIPT HELP x",
        "LATENCY GRAPH command",
        "LATENCY HISTOGRAM nosuch",
        "LATENCY HISTORY command",
        "LATENCY LATEST",
        "LATENCY NOSUCH",
        "LATENCY RESET",
        "LATENCY RESET command",
        "LOLWUT VERSION x",
        "MEMORY",
        "MEMORY NOSUCH",
        "MEMORY PURGE",
        "MEMORY STATS x",
        "MODULE",
        "MODULE LIST",
        "MODULE NOSUCH",
        "MONITOR x",
        "REPLICAOF NO ONE",
        "REPLICAOF host port",
        "ROLE",
        "ROLE x",
        "SLAVEOF NO ONE",
        "SLOWLOG",
        "SLOWLOG GET",
        "SLOWLOG GET -1",
        "SLOWLOG GET -2",
        "SLOWLOG GET x",
        "SLOWLOG GET 5 6",
        "SLOWLOG LEN",
        "SLOWLOG LEN x",
        "SLOWLOG NOSUCH",
        "SLOWLOG RESET",
        "WAIT",
        "WAIT a b",
        "WAIT 0 -1",
        "WAIT 0 x",
    ] {
        redis.compare(&requests(&[line]));
        redis.compare(&requests(&["HELLO 3", line, "PING"]));
        redis.ask(
            b"CONFIG SET timeout 0 latency-tracking yes latency-monitor-threshold 0 slowlog-max-len 128\r\n",
        );
        redis.ask(b"CONFIG SET slowlog-log-slower-than 10000\r\nSLOWLOG RESET\r\nACL LOG RESET\r\n");
    }
    for lines in [
        &["MULTI", "SAVE", "EXEC"][..],
        &["MULTI", "SHUTDOWN", "EXEC"],
        &["MULTI", "ROLE", "MODULE LIST", "ACL WHOAMI", "WAIT 0 0", "EXEC"],
        &["MULTI", "CONFIG SET timeout x", "CONFIG SET timeout 7", "EXEC", "CONFIG GET timeout"],
        &["MULTI", "SLOWLOG NOSUCH", "EXEC"],
    ] {
        redis.compare(&requests(lines));
        redis.ask(b"CONFIG SET timeout 0\r\n");
    }
    // With a limit of 0, all commands are in the slow log. Times differ, and so do addresses and numbers.
    let long = "x".repeat(200);
    let many: Vec<&str> = ["DEL"].into_iter().chain(["k"; 40]).collect();
    let input = [
        requests(&["CONFIG SET slowlog-log-slower-than 0", "SLOWLOG RESET", "PING", "GET k"]),
        request(&["SET", "k", &long]),
        request(&many),
        requests(&["CLIENT SETNAME me", "AUTH default x", "NOSUCH"]),
    ];
    let (input, question) = (input.concat(), requests(&["SLOWLOG GET 128"]));
    let words = |reply: Vec<u8>| {
        let text = String::from_utf8(reply).unwrap();
        let mut rest = &text[..];
        let Value::List(commands) = value(&mut rest) else { panic!("{text}") };
        let words = commands.into_iter().map(|command| match command {
            Value::List(mut parts) => (parts.len(), parts.swap_remove(3)),
            Value::Text(text) => panic!("{text}"),
        });
        let mut words: Vec<_> = words.map(|words| format!("{words:?}")).collect();
        words.sort_unstable();
        words
    };
    let (expected, _, id) = redis.ask(&[&*input, &question].concat());
    let (mut connection, mut store) = (connection(id), TestStore::default());
    // Replies of commands on data come when the connection has looked at all that it has got.
    serve(&mut connection, &mut store, &input);
    let (reply, _) = serve(&mut connection, &mut store, &question);
    let start = expected.windows(4).rposition(|bytes| bytes == b"*7\r\n").unwrap();
    assert_eq!(words(reply), words(expected[start..].to_vec()));
}

#[test]
fn pipelines_are_answered_as_by_redis() {
    let Some(redis) = Redis::start("pipelines") else { return };
    redis.compare(&requests(&[
        "SET k 1",
        "INCR k",
        "GET k",
        "PING",
        "APPEND k 0",
        "GET k",
        "INCR k",
        "MSET a 1 b 2",
        "MGET a b nosuch k",
        "DEL a nosuch",
        "EXISTS a b",
        "DBSIZE",
        "SET k x NX",
        "GET k",
        "INCR b",
        "GETSET b x",
        "INCR b",
        "GETDEL k",
        "FLUSHALL",
        "DBSIZE",
        "GET b",
        "HELLO 3",
        "GET b",
        "MGET a b",
        "SET b 1 GET",
        "STRLEN b",
    ]));
    redis.compare(&requests(&["INCR k"; 100]));
    redis.compare(&requests(&["SET k v", "GET k"].repeat(100)));
}

#[test]
fn hashes_are_answered_as_by_redis() {
    let Some(redis) = Redis::start("hashes") else { return };
    for hello in ["HELLO 2", "HELLO 3"] {
        redis.compare(&requests(&[
            hello,
            "HGETALL h",
            "HKEYS h",
            "HRANDFIELD h 5",
            "HRANDFIELD h 5 WITHVALUES",
            "HSCAN h 0",
            "HSET h a 1 b 2 c 3",
            "HMSET h d 4",
            "HGETALL h",
            "HKEYS h",
            "HVALS h",
            "HRANDFIELD h 5",
            "HRANDFIELD h 5 WITHVALUES",
            "HSCAN h 0",
            "HDEL h a no d",
            "HSETNX h b 5",
            "HGETALL h",
            "HSET h",
            "HSET h f v g",
            "HRANDFIELD h x",
            "HSCAN h x",
            "HINCRBYFLOAT h f inf",
        ]));
    }
}

/// With one member at most, because Redis has another order.
#[test]
fn sets_are_answered_as_by_redis() {
    let Some(redis) = Redis::start("sets") else { return };
    for hello in ["HELLO 2", "HELLO 3"] {
        redis.compare(&requests(&[
            hello,
            "SMEMBERS s",
            "SINTER s t",
            "SUNION s t",
            "SDIFF s t",
            "SRANDMEMBER s",
            "SRANDMEMBER s 5",
            "SPOP s",
            "SPOP s 5",
            "SSCAN s 0",
            "SMISMEMBER s a b",
            "SADD s a",
            "SADD t a b",
            "SMEMBERS s",
            "SINTER t s",
            "SUNION s s",
            "SDIFF s u",
            "SDIFF t s",
            "SINTERCARD 2 s t",
            "SRANDMEMBER s",
            "SRANDMEMBER s 5",
            "SRANDMEMBER s -2",
            "SSCAN s 0",
            "SMISMEMBER t c b",
            "SPOP s 0",
            "SINTERSTORE d s t",
            "SMEMBERS d",
            "SMOVE d u a",
            "SPOP s 5",
            "SPOP u",
            "SCARD t",
            "SADD s",
            "SPOP s x",
            "SPOP s 1 2",
            "SRANDMEMBER s x",
            "SSCAN s x",
            "SINTERCARD 0 s",
        ]));
    }
}

#[test]
fn lists_are_answered_as_by_redis() {
    let Some(redis) = Redis::start("lists") else { return };
    for hello in ["HELLO 2", "HELLO 3"] {
        redis.compare(&requests(&[
            hello,
            "LRANGE l 0 -1",
            "LPOP l",
            "LPOP l 2",
            "RPOP l 0",
            "LMPOP 2 l m LEFT",
            "LPUSH l b a",
            "RPUSH l c d e f g",
            "LPUSHX no x",
            "LRANGE l 1 -2",
            "LPOP l",
            "RPOP l 2",
            "LPOP l 0",
            "LMPOP 2 no l RIGHT COUNT 2",
            "LTRIM l 0 1",
            "LSET l 0 x",
            "LSET l 7 x",
            "LRANGE l 0 -1",
            "LPUSH l",
            "LPOP l x",
            "LPOP l 1 2",
            "LRANGE l x 1",
            "LMPOP 0 l LEFT",
            "BLPOP no l 0",
            "RPUSH l h i j k",
            "BRPOP l 0",
            "BLMPOP 0 2 no l LEFT COUNT 2",
            "BLMOVE l m LEFT RIGHT 0",
            "BRPOPLPUSH m m 1",
            "MULTI",
            "BLPOP no 0",
            "BLMOVE no l LEFT LEFT 0",
            "BRPOPLPUSH no l 0",
            "BLMPOP 0 1 no LEFT",
            "EXEC",
            "BLPOP l x",
            "BLPOP l -1",
            "BLPOP l",
            "BLMPOP 0 0 l LEFT",
            "BLMOVE l m UP LEFT 0",
            "CLIENT UNBLOCK x",
            "CLIENT UNBLOCK 1 x",
            "DEL l m",
            "LPOS l a RANK 0",
            "LMOVE l m UP DOWN",
        ]));
    }
}

#[test]
fn sorted_sets_are_answered_as_by_redis() {
    let Some(redis) = Redis::start("sorted-sets") else { return };
    for hello in ["HELLO 2", "HELLO 3"] {
        redis.compare(&requests(&[
            hello,
            "ZRANGE z 0 -1",
            "ZRANGE z 0 -1 WITHSCORES",
            "ZRANDMEMBER z 3 WITHSCORES",
            "ZPOPMIN z",
            "ZPOPMIN z 2",
            "ZMPOP 2 y z MIN",
            "ZSCORE z m",
            "ZRANK z m",
            "ZSCAN z 0",
            "ZADD z 1.1 a 2 b inf c -inf d 1e300 e",
            "ZADD z 5 f 1 a",
            "ZRANGE z 0 -1",
            "ZRANGE z 0 -1 WITHSCORES",
            "ZREVRANGE z 0 -1 WITHSCORES",
            "ZSCORE z c",
            "ZMSCORE z a no b",
            "ZINCRBY z 1.5 a",
            "ZINCRBY z -inf c",
            "ZADD z INCR 1 a",
            "ZRANK z a",
            "ZSCAN z 0",
            "ZPOPMIN z",
            "ZPOPMIN z 2",
            "ZPOPMIN z 0",
            "ZMPOP 2 no z MIN COUNT 2",
            "MULTI",
            "BZPOPMIN no 0",
            "BZMPOP 0 1 no MAX",
            "EXEC",
            "ZREM z f no",
            "ZRANDMEMBER z 9 WITHSCORES",
            "ZRANGE z 0 -1 WITHSCORES",
            "ZADD z x m",
            "ZRANGE z 0 -1 LIMIT 1 2",
            "ZUNION 0 z",
        ]));
    }
}

#[test]
fn numbers_of_databases_are_those_of_redis() {
    let Some(redis) = Redis::start("numbers-of-databases") else { return };
    for line in [
        "SELECT 15",
        "SELECT 007",
        "MOVE k 16",
        "MOVE k -1",
        "MOVE k x",
        "MOVE k 99999999999",
        "MOVE k 0",
        "MOVE k 1",
        "MOVE k",
        "SWAPDB 0",
        "SWAPDB x 1",
        "SWAPDB 1 x",
        "SWAPDB 16 0",
        "SWAPDB 0 -1",
        "SWAPDB 0 99999999999",
        "SWAPDB 99999999999 16",
        "SWAPDB 3 3",
        "FLUSHDB x",
        "FLUSHDB SYNC ASYNC",
        "CONFIG GET databases",
    ] {
        redis.compare(&requests(&[line]));
    }
}

#[test]
fn databases_are_answered_as_by_redis() {
    let Some(redis) = Redis::start("databases") else { return };
    for lines in [
        &["SET k 0", "SELECT 1", "GET k", "SET k 1", "SELECT 0", "GET k", "SELECT 1", "GET k", "DBSIZE"][..],
        &["SET k 0", "MOVE k 1", "MOVE k 1", "EXISTS k", "SELECT 1", "GET k", "MOVE k 1", "MOVE k 15"],
        &["SET k 0", "SELECT 1", "SET k 1", "MOVE k 0", "GET k", "SELECT 0", "GET k"],
        &["SET a 0", "SELECT 1", "SET b 1", "SWAPDB 0 1", "MGET a b", "SELECT 0", "MGET a b", "DBSIZE"],
        &["SELECT 2", "SET a 0", "SWAPDB 2 3", "GET a", "SELECT 3", "GET a", "SWAPDB 3 3", "GET a"],
        &["SET a 0", "SELECT 1", "SET b 1", "FLUSHDB", "DBSIZE", "SELECT 0", "DBSIZE", "FLUSHALL", "DBSIZE"],
        &[
            "SELECT 1",
            "SET b 1",
            "SELECT 0",
            "FLUSHALL ASYNC",
            "SELECT 1",
            "DBSIZE",
            "RESET",
            "SET a 0",
            "DBSIZE",
        ],
        &["SELECT 1", "SET k 1", "HELLO 3", "GET k", "RESET", "GET k", "SELECT 1", "GET k"],
        // What is queued behind SELECT is executed in the database that it chooses, as what comes behind EXEC is.
        &[
            "MULTI", "SET k 0", "SELECT 1", "SET k 1", "GET k", "SELECT 0", "GET k", "EXEC", "SELECT 1",
            "GET k",
        ],
        &[
            "MULTI",
            "SELECT 1",
            "SET k 1",
            "SELECT x",
            "SELECT 16",
            "GET k",
            "EXEC",
            "GET k",
            "SELECT 0",
            "GET k",
        ],
        &["MULTI", "SELECT 1", "DISCARD", "SET k 0", "SELECT 1", "GET k"],
        &["MULTI", "SELECT 1", "NOSUCH", "EXEC", "SET k 0", "SELECT 1", "GET k"],
        &[
            "MULTI",
            "SET k 0",
            "MOVE k 1",
            "SELECT 1",
            "GET k",
            "SWAPDB 0 1",
            "GET k",
            "FLUSHDB",
            "EXEC",
            "DBSIZE",
        ],
        // Of two keys of one name each is watched by itself.
        &["WATCH k", "SELECT 1", "SET k 1", "MULTI", "PING", "EXEC", "DBSIZE"],
        &["SELECT 1", "WATCH k", "SELECT 0", "SET k 1", "MULTI", "PING", "EXEC", "DBSIZE"],
        &["WATCH k", "SELECT 1", "WATCH k", "SELECT 0", "SET k 1", "MULTI", "PING", "EXEC"],
        &["WATCH k", "SELECT 1", "WATCH k", "SET k 1", "MULTI", "PING", "EXEC"],
        &["WATCH k", "SELECT 1", "WATCH k l", "SELECT 2", "MULTI", "SET k 1", "EXEC", "GET k"],
        &["WATCH k", "SET k 1", "MULTI", "SELECT 1", "SET k 1", "EXEC", "GET k", "SELECT 1", "GET k"],
        &["SELECT 1", "SET k 1", "SELECT 0", "WATCH k", "SWAPDB 0 1", "MULTI", "PING", "EXEC"],
        &["SET k 1", "WATCH k", "SWAPDB 1 0", "MULTI", "PING", "EXEC"],
        &["SET k 1", "WATCH k", "SWAPDB 1 2", "MULTI", "PING", "EXEC"],
        &["WATCH k", "SWAPDB 0 1", "MULTI", "PING", "EXEC"],
        &[
            "SET k 1", "WATCH k", "MOVE k 1", "MULTI", "PING", "EXEC", "SELECT 1", "WATCH k", "MULTI",
            "PING", "EXEC",
        ],
        &["CLIENT REPLY OFF", "SELECT 1", "SET k 1", "CLIENT REPLY ON", "GET k", "SELECT 0", "GET k"],
        &["CLIENT REPLY OFF", "MULTI", "SELECT 1", "SET k 1", "EXEC", "CLIENT REPLY ON", "GET k"],
        &["COMMAND INFO move swapdb select flushdb flushall", "COMMAND GETKEYS MOVE a 1"],
    ] {
        redis.compare(&requests(lines));
    }
    // Commands on keys of one name in several databases, in one pipeline.
    let lines = ["SELECT 0", "INCR k", "SELECT 1", "INCR k", "INCR k", "SELECT 2", "INCR k", "GET k"];
    redis.compare(&requests(&lines.repeat(100)));
}

#[test]
fn transactions_are_answered_as_by_redis() {
    let Some(redis) = Redis::start("transactions") else { return };
    for lines in [
        &["MULTI", "EXEC"][..],
        &["MULTI", "SET k 1", "INCR k", "GET k", "PING", "ECHO x", "PING x", "EXEC", "GET k"],
        &["MULTI", "SET k 1", "DISCARD", "GET k", "EXEC", "DISCARD", "MULTI", "DISCARD"],
        &["MULTI", "NOSUCH x", "SET k 1", "EXEC", "GET k", "MULTI", "GET", "DISCARD", "EXEC"],
        &["MULTI x", "MULTI", "MULTI x", "SET k 1", "EXEC", "GET k"],
        &["EXEC x", "MULTI", "SET k 1", "EXEC x", "EXEC", "DISCARD x", "MULTI", "DISCARD x", "DISCARD"],
        &[
            "MULTI",
            "SET k text",
            "INCR k",
            "SET k 1 XY",
            "MSET a",
            "MSET a b c",
            "INCRBY k x",
            "GET k",
            "EXEC",
        ],
        &["MULTI", "CLIENT NOSUCH", "CLIENT ID x", "CONFIG", "CONFIG NOSUCH", "COMMAND NOSUCH", "EXEC"],
        &["MULTI", "CLIENT ID", "CLIENT SETNAME me", "CLIENT GETNAME", "COMMAND COUNT x", "EXEC"],
        &["MULTI", "CLIENT SETNAME me", "SELECT 0", "SELECT x", "SELECT 99", "EXEC", "CLIENT GETNAME"],
        &["MULTI", "GET no", "HELLO 3", "GET no", "MGET a b", "EXEC", "GET no"],
        &["HELLO 3", "MULTI", "GET no", "HELLO 2", "GET no", "EXEC", "GET no"],
        &["MULTI", "SET k 1", "RESET", "EXEC", "GET k"],
        &["MULTI", "SET k 1", "QUIT", "EXEC"],
        &["MULTI", "DBSIZE", "MSET a 1 b 2", "DBSIZE", "FLUSHALL", "DBSIZE", "SET c 1", "DBSIZE", "EXEC"],
        &["CLIENT REPLY OFF", "MULTI", "INCR k", "PING", "GET k", "EXEC", "CLIENT REPLY ON", "GET k"],
        &["CLIENT REPLY SKIP", "MULTI", "INCR k", "EXEC", "GET k"],
        &["COMMAND INFO multi exec discard watch unwatch"],
        &["WATCH k", "MULTI", "SET k 1", "EXEC", "GET k"],
        &["WATCH k", "SET k 1", "MULTI", "SET k 2", "EXEC", "GET k", "MULTI", "SET k 3", "EXEC"],
        &["SET k 1", "WATCH k", "SET k 1", "MULTI", "SET k 2", "EXEC", "GET k"],
        &["WATCH k l", "SET l 1", "UNWATCH", "MULTI", "SET k 2", "EXEC", "GET k"],
        &["WATCH k", "SET k 1", "MULTI", "DISCARD", "MULTI", "SET k 2", "EXEC"],
        &["WATCH k", "SET k 1", "RESET", "MULTI", "SET k 2", "EXEC"],
        &["WATCH k", "SET k 1", "EXEC", "DISCARD", "MULTI", "SET k 2", "EXEC"],
        &["WATCH k", "SET k 1", "EXEC x", "MULTI", "SET k 2", "EXEC"],
        &["WATCH k", "SET k 1", "MULTI", "NOSUCH", "EXEC", "MULTI", "SET k 2", "EXEC"],
        &["WATCH k", "WATCH k l", "SET k 1", "WATCH k", "MULTI", "EXEC", "MULTI", "EXEC"],
        &["WATCH k", "MULTI", "EXEC", "WATCH", "MULTI", "UNWATCH", "SET k 1", "EXEC"],
        &["WATCH k", "DEL k", "MULTI", "PING", "EXEC", "WATCH k", "INCR k", "DEL k", "MULTI", "PING", "EXEC"],
        &["WATCH k", "SET k 1", "MULTI", "CLIENT SETNAME me", "HELLO 3", "EXEC", "CLIENT GETNAME", "GET no"],
        &["WATCH k", "MULTI", "CLIENT SETNAME me", "HELLO 3", "EXEC", "CLIENT GETNAME", "GET no"],
        &["HELLO 3", "WATCH k", "SET k 1", "MULTI", "GET k", "EXEC", "WATCH j", "MULTI", "GET j", "EXEC"],
        &["CLIENT REPLY OFF", "WATCH k", "SET k 1", "MULTI", "SET k 2", "EXEC", "CLIENT REPLY ON", "GET k"],
        &["CLIENT REPLY OFF", "WATCH k", "MULTI", "SET k 2", "PING", "EXEC", "CLIENT REPLY ON", "GET k"],
        &["CLIENT REPLY SKIP", "WATCH k", "SET k 1", "MULTI", "SET k 2", "EXEC", "GET k"],
    ] {
        redis.compare(&requests(lines));
    }
    redis.compare(&requests(&["MULTI", "INCR a", "INCR b", "MGET a b", "EXEC"].repeat(200)));
}

/// Commands as they come, in transactions and outside of them, some of them no good.
#[test]
fn random_transactions_are_answered_as_by_redis() {
    const LINES: [&str; 42] = [
        "WATCH a",
        "WATCH b c",
        "WATCH a b",
        "UNWATCH",
        "WATCH",
        "MULTI",
        "MULTI",
        "MULTI",
        "EXEC",
        "EXEC",
        "EXEC",
        "DISCARD",
        "GET a",
        "GET b",
        "SET a 5",
        "SET b text",
        "SET a 7 NX",
        "SET b 1 GET",
        "INCR a",
        "INCR b",
        "INCRBY a 3",
        "APPEND a 1",
        "DEL a b",
        "MGET a b c",
        "MSET a 1 c 2",
        "GETDEL b",
        "EXISTS a b a",
        "STRLEN a",
        "DBSIZE",
        "PING",
        "ECHO x",
        "RENAME a b",
        "SET a 1 XY",
        "CLIENT GETNAME",
        "INCRBY a x",
        "NOSUCH a",
        "SELECT 0",
        "SELECT 0",
        "SELECT 1",
        "MOVE a 1",
        "SWAPDB 0 1",
        "FLUSHDB",
    ];
    let Some(redis) = Redis::start("random-transactions") else { return };
    let mut prng = syros_types::Prng::new(5);
    for _ in 0..60 {
        let (mut lines, mut is_open) = (Vec::new(), false);
        // At most eight commands on all keys are in one transaction.
        while lines.len() < 120 {
            let line = LINES[prng.below(LINES.len() as u64) as usize];
            // What Valkey 8 refuses inside a transaction, and Redis 7.0 does not.
            if is_open && (line == "MULTI" || line.starts_with("WATCH ")) {
                continue;
            }
            if line != "NOSUCH a" || prng.chance(1, 5) {
                is_open = (is_open || line == "MULTI") && !["EXEC", "DISCARD"].contains(&line);
                lines.push(line);
            }
        }
        lines.push("DISCARD");
        redis.compare(&requests(&lines));
    }
}

#[test]
fn clients_that_want_no_replies_get_those_that_redis_gives() {
    let Some(redis) = Redis::start("replies") else { return };
    for lines in [
        &["CLIENT REPLY ON", "PING"][..],
        &["SET k 1", "CLIENT REPLY OFF", "INCR k", "GET k", "PING", "NOSUCH", "CLIENT REPLY ON", "GET k"],
        &["CLIENT REPLY SKIP", "INCR k", "GET k", "CLIENT REPLY SKIP", "PING", "ECHO x"],
        // Words that are no mode, and what goes on afterwards.
        &["CLIENT REPLY MAYBE", "PING", "CLIENT REPLY", "CLIENT REPLY OFF x", "PING"],
        &["CLIENT REPLY OFF", "CLIENT REPLY MAYBE", "CLIENT REPLY SKIP", "PING", "CLIENT REPLY ON", "PING"],
        // One that wants replies again, and is itself skipped.
        &["CLIENT REPLY SKIP", "CLIENT REPLY ON", "PING"],
        &["CLIENT REPLY SKIP", "CLIENT REPLY OFF", "PING", "CLIENT REPLY ON"],
        &["CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "PING", "ECHO x"],
        &[
            "CLIENT REPLY OFF",
            "SET k text",
            "INCR k",
            "APPEND k s",
            "HELLO 3",
            "CLIENT REPLY ON",
            "GET k",
            "GET no",
        ],
        &[
            "CLIENT REPLY OFF",
            "CLIENT SETNAME me",
            "SET a 1",
            "MSET a 2 b 3",
            "CLIENT REPLY ON",
            "CLIENT GETNAME",
            "MGET a b",
        ],
        &["CLIENT REPLY OFF", "RESET", "PING"],
        &["CLIENT REPLY SKIP", "RESET", "PING"],
        &["SET k 1", "GET k", "CLIENT REPLY SKIP", "DEL k", "GET k", "EXISTS k"],
    ] {
        redis.compare(&requests(lines));
    }
    redis.compare(b"CLIENT REPLY SKIP\r\n\r\nPING\r\nECHO x\r\n");
    redis.compare(b"CLIENT REPLY SKIP\r\n*0\r\nPING\r\nECHO x\r\n");
    // Many at a time, whose replies wait for each other.
    let mut lines = vec!["CLIENT REPLY OFF"];
    lines.extend(["INCR k", "INCR other", "GET k"].repeat(100));
    lines.extend(["CLIENT REPLY ON", "GET k", "GET other"]);
    redis.compare(&requests(&lines));
    let skipped: Vec<&str> = ["INCR k", "CLIENT REPLY SKIP", "INCR k", "GET k"].repeat(50);
    redis.compare(&requests(&skipped));
}
