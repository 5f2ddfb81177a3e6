//! Syntax and error texts. The texts are those of redis-server 7.0.15; a differential test in the
//! storage crate compares many more with a running one.

use syros_commands::{CommandError, CommandKind, ConnectionCommand, Parsed, commands, parse};
use syros_types::limits::{KEY_BYTES_MAX, KEYS_PER_OPERATION_MAX, VALUE_BYTES_MAX};

fn error(words: &[&[u8]]) -> String {
    match parse(words) {
        Ok(parsed) => panic!("accepted as {parsed:?}"),
        Err(error) => String::from_utf8(error.text()).unwrap(),
    }
}

fn error_of(command: &str) -> String {
    error(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>())
}

const INTEGER: &str = "ERR value is not an integer or out of range";
const SYNTAX: &str = "ERR syntax error";
const STREAM_ID: &str = "ERR Invalid stream ID specified as stream command argument";
const BIT_OFFSET: &str = "ERR bit offset is not an integer or out of range";
const FIELD_TYPE: &str =
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";

/// What is wrong with commands, in Redis's words.
const ERRORS: &[(&str, &str)] = &[
    ("foo a b", "ERR unknown command 'foo', with args beginning with: 'a' 'b' "),
    ("get", "ERR wrong number of arguments for 'get' command"),
    ("GET a b", "ERR wrong number of arguments for 'get' command"),
    ("mset a b c", "ERR wrong number of arguments for 'mset' command"),
    ("set k v ex", SYNTAX),
    ("set k v nx xx", SYNTAX),
    ("set k v ifeq", SYNTAX),
    ("set k v ifeq a ifeq b", SYNTAX),
    ("set k v ifeq a nx", SYNTAX),
    ("set k v xx ifeq a", SYNTAX),
    ("set k v keepttl ex 10", SYNTAX),
    ("set k v ex 10 keepttl", SYNTAX),
    ("set k v ex 10 px 10", SYNTAX),
    ("set k v persist", SYNTAX),
    ("set k v ex x", INTEGER),
    ("set k v ex 0", "ERR invalid expire time in 'set' command"),
    ("set k v px 9223372036854775807", "ERR invalid expire time in 'set' command"),
    ("setex k 0 v", "ERR invalid expire time in 'setex' command"),
    ("psetex k -1 v", "ERR invalid expire time in 'psetex' command"),
    ("getex k ex 10 persist", SYNTAX),
    ("getex k keepttl", SYNTAX),
    ("expire k 9223372036854775807", "ERR invalid expire time in 'expire' command"),
    ("expire k -9223372036854775808", "ERR invalid expire time in 'expire' command"),
    ("expire k 10 foo", "ERR Unsupported option foo"),
    ("expire k abc nx gt", "ERR NX and XX, GT or LT options at the same time are not compatible"),
    ("expire k 10 gt lt", "ERR GT and LT options at the same time are not compatible"),
    ("expire k 1.5", INTEGER),
    ("decrby k -9223372036854775808", "ERR decrement would overflow"),
    ("incrbyfloat k abc", "ERR value is not a valid float"),
    ("setrange k -1 v", "ERR offset is out of range"),
    ("setrange k 16777216 v", "ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
    ("getrange k 0 x", INTEGER),
    ("lcs a b idx len", "ERR If you want both the length and indexes, please just use IDX."),
    ("lcs a b minmatchlen", SYNTAX),
    ("lcs a b minmatchlen x", INTEGER),
    ("lcs a b bogus", SYNTAX),
    ("setbit k -1 1", BIT_OFFSET),
    ("setbit k 4294967296 x", BIT_OFFSET),
    ("setbit k 0 2", "ERR bit is not an integer or out of range"),
    ("setbit k 134217728 1", "ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
    ("getbit k #1", BIT_OFFSET),
    ("bitpos k 2", "ERR The bit argument must be 1 or 0."),
    ("bitpos k x", INTEGER),
    ("bitop nand d k", SYNTAX),
    ("bitop not d k l", "ERR BITOP NOT must be called with a single source key."),
    ("bitfield k get u8", SYNTAX),
    ("bitfield k get u64 0", FIELD_TYPE),
    ("bitfield k get U8 0", FIELD_TYPE),
    ("bitfield k get i08 0", FIELD_TYPE),
    ("bitfield k get u8 #536870912", BIT_OFFSET),
    ("bitfield k get u8 #9223372036854775807", BIT_OFFSET),
    ("bitfield k set u8 x y", BIT_OFFSET),
    ("bitfield k set u8 0 y", INTEGER),
    ("bitfield k set u8 134217721 0", "ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
    ("bitfield k overflow never", "ERR Invalid OVERFLOW type specified"),
    ("bitfield_ro k set u8 0 0", "ERR BITFIELD_RO only supports the GET subcommand"),
    ("scan x", "ERR invalid cursor"),
    ("scan 0 count 0", SYNTAX),
    ("scan 0 match", SYNTAX),
    ("scan 0 count x", INTEGER),
    ("lpop k -1", "ERR value is out of range, must be positive"),
    ("rpop k 1 2", "ERR wrong number of arguments for 'rpop' command"),
    ("lmpop 0 k left", "ERR numkeys should be greater than 0"),
    ("lmpop 2 k left", SYNTAX),
    ("lpos k e rank x", INTEGER),
    ("linsert k beside a b", SYNTAX),
    ("spop k -1", "ERR value is out of range, must be positive"),
    ("spop k x", "ERR value is out of range, must be positive"),
    ("spop k 1 2", SYNTAX),
    ("srandmember k x y", SYNTAX),
    ("srandmember k x", INTEGER),
    ("sintercard 0 k", "ERR numkeys should be greater than 0"),
    ("sintercard x k", "ERR numkeys should be greater than 0"),
    ("sintercard 3 k l", "ERR Number of keys can't be greater than number of args"),
    ("sintercard 1 k limit", SYNTAX),
    ("sintercard 1 k l", SYNTAX),
    ("sintercard 1 k limit -1", "ERR LIMIT can't be negative"),
    ("sintercard 1 k limit x", "ERR LIMIT can't be negative"),
    ("xadd k * f", "ERR wrong number of arguments for 'xadd' command"),
    ("xadd k maxlen 1 * f v w", "ERR wrong number of arguments for 'xadd' command"),
    ("xadd k 0-0 f v", "ERR The ID specified in XADD must be greater than 0-0"),
    ("xadd k x f v", STREAM_ID),
    ("xadd k maxlen -1 * f v", "ERR The MAXLEN argument must be >= 0."),
    ("xadd k maxlen 5 limit 3 * f v", "ERR syntax error, LIMIT cannot be used without the special ~ option"),
    (
        "xadd k limit 3 * f v w x",
        "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
    ),
    (
        "xadd k maxlen 5 minid 3 * f v",
        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
    ),
    ("xtrim k maxlen ~ 5 limit -1", "ERR The LIMIT argument must be >= 0."),
    ("xtrim k limit 0", "ERR syntax error, XTRIM must be called with a trimming strategy"),
    ("xtrim k maxlen 5 foo", SYNTAX),
    ("xrange k (18446744073709551615-18446744073709551615 +", "ERR invalid start ID for the interval"),
    ("xrange k - (0-0", "ERR invalid end ID for the interval"),
    ("xrange k - + count", SYNTAX),
    ("xread streams k", "ERR wrong number of arguments for 'xread' command"),
    (
        "xread count 3 streams k l 0",
        "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified.",
    ),
    ("xread block -1 streams k 0", "ERR timeout is negative"),
    ("xread block x streams k 0", "ERR timeout is not an integer or out of range"),
    ("xread count x streams k 0", INTEGER),
    ("xread foo streams k 0", SYNTAX),
    ("xreadgroup count 1 noack streams k >", "ERR Missing GROUP option for XREADGROUP"),
    ("xgroup foo k g", "ERR unknown subcommand 'foo'. Try XGROUP HELP."),
    ("xgroup create k g", "ERR wrong number of arguments for 'xgroup|create' command"),
    (
        "xgroup CREATE k g 0 foo",
        "ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.",
    ),
    ("xgroup create k g 0 entriesread -2", "ERR value for ENTRIESREAD must be positive or -1"),
    ("xinfo foo", "ERR unknown subcommand 'foo'. Try XINFO HELP."),
    ("xclaim k g c 0 1-1 foo", "ERR Unrecognized XCLAIM option 'foo'"),
    ("xclaim k g c x 1-1", "ERR Invalid min-idle-time argument for XCLAIM"),
    ("xautoclaim k g c 0 0 count 0", "ERR COUNT must be > 0"),
    ("xpending k g 1 2", SYNTAX),
    ("xsetid k 1 entriesadded -1", "ERR entries_added must be positive"),
    (
        "xsetid k 1 maxdeletedid 2",
        "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
    ),
    ("flushall now", SYNTAX),
    ("flushall async sync", SYNTAX),
    ("zadd k 1 m 2", SYNTAX),
    ("zadd k x m", "ERR value is not a valid float"),
    ("zadd k nx xx 1 m", "ERR XX and NX options at the same time are not compatible"),
    ("zadd k gt lt 1 m", "ERR GT, LT, and/or NX options at the same time are not compatible"),
    ("zadd k incr 1 m 2 n", "ERR INCR option supports a single increment-element pair"),
    (
        "zrange k 0 1 limit 0 1",
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
    ),
    ("zrange k - + bylex withscores", "ERR syntax error, WITHSCORES not supported in combination with BYLEX"),
    ("zcount k x 1", "ERR min or max is not a float"),
    ("zlexcount k a b", "ERR min or max not valid string range item"),
    ("zpopmin k -1", "ERR value is out of range, must be positive"),
    ("zmpop 0 k min", "ERR numkeys should be greater than 0"),
    ("zmpop 1 k min count 0", "ERR count should be greater than 0"),
    ("zunionstore d 0 k", "ERR at least 1 input key is needed for 'zunionstore' command"),
    ("zunion 1 k weights x", "ERR weight value is not a float"),
    ("zintercard 1 k limit -1", "ERR LIMIT can't be negative"),
    ("eval s x", "ERR value is not an integer or out of range"),
    ("eval s -1", "ERR Number of keys can't be negative"),
    ("eval s 2 k", "ERR Number of keys can't be greater than number of args"),
    ("fcall f x", "ERR Bad number of keys provided"),
    ("script foo", "ERR unknown subcommand 'foo'. Try SCRIPT HELP."),
    ("script load", "ERR wrong number of arguments for 'script|load' command"),
    ("script flush now", "ERR SCRIPT FLUSH only support SYNC|ASYNC option"),
    ("script kill", "NOTBUSY No scripts in execution right now."),
    ("function flush now", "ERR FUNCTION FLUSH only supports SYNC|ASYNC option"),
    ("function list foo", "ERR Unknown argument foo"),
    ("geoadd k 200 100 m", "ERR invalid longitude,latitude pair 200.000000,100.000000"),
    ("geodist k m n x", "ERR unsupported unit provided. please use M, KM, FT, MI"),
    (
        "geosearch k bybox 1 2 km asc",
        "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for geosearch",
    ),
    ("blind", "ERR wrong number of arguments for 'blind' command"),
    ("blind get k", "ERR BLIND needs an update, and 'get' is none"),
    ("blind getex k", "ERR BLIND needs an update, and 'getex' is none"),
    ("blind ping", "ERR BLIND needs an update, and 'ping' is none"),
    ("blind blind set k v", "ERR BLIND needs an update, and 'blind' is none"),
    ("blind foo k", "ERR unknown command 'foo', with args beginning with: 'k' "),
    ("blind del", "ERR wrong number of arguments for 'del' command"),
];

#[test]
fn errors_have_the_words_of_redis() {
    for (command, text) in ERRORS {
        assert_eq!(error_of(command), *text, "{command}");
    }
}

#[test]
fn unknown_commands_are_quoted_within_bounds() {
    let long = vec![b'x'; 300];
    let text = error(&[&long, &long, b"never"]);
    let (name, argument) = ("x".repeat(128), "x".repeat(128));
    assert_eq!(text, format!("ERR unknown command '{name}', with args beginning with: '{argument}' "));
    assert_eq!(
        error(&[b"a\r\nb\0c", b"d\ne"]),
        "ERR unknown command 'a  b', with args beginning with: 'd e' "
    );
    assert_eq!(error(&[]), "ERR unknown command '', with args beginning with: ");
}

#[test]
fn limits_have_errors_of_their_own() {
    let key = vec![b'k'; KEY_BYTES_MAX + 1];
    let value = vec![b'v'; VALUE_BYTES_MAX + 1];
    let keys = vec![&b"k"[..]; KEYS_PER_OPERATION_MAX + 2];
    assert_eq!(parse(&[b"GET", &key]), Err(CommandError::KeyTooLong(KEY_BYTES_MAX + 1)));
    assert_eq!(parse(&[b"SET", b"k", &value]), Err(CommandError::ValueTooLong));
    let mut words = keys.clone();
    words[0] = b"MGET";
    assert_eq!(parse(&words), Err(CommandError::TooManyKeys(KEYS_PER_OPERATION_MAX + 1)));
    let fits = &value[..VALUE_BYTES_MAX];
    let Err(CommandError::OperationTooLong(_)) = parse(&[b"MSET", b"a", fits, b"b", fits]) else {
        panic!("two largest values fit into one operation")
    };
    assert_eq!(parse(&[b"KEYS", &key[..2000]]), Err(CommandError::PatternTooLong(2000)));
}

#[test]
fn local_commands_are_passed_on() {
    assert_eq!(parse(&[b"ping"]), Ok(Parsed::Local(ConnectionCommand::Ping)));
    assert_eq!(parse(&[b"HELLO", b"3"]), Ok(Parsed::Local(ConnectionCommand::Hello)));
    assert_eq!(error_of("echo"), "ERR wrong number of arguments for 'echo' command");
}

/// The table's class of every command is that of a simple use of it.
#[test]
fn the_table_knows_the_classes() {
    for spec in commands() {
        let CommandKind::Data(class) = spec.kind else { continue };
        // As many keys as the command can name at once, and one option where it changes the class.
        let arguments: &[&str] = match spec.name {
            "mget" | "exists" | "touch" | "del" | "unlink" => &["a", "b"],
            "mset" | "msetnx" => &["a", "1", "b", "2"],
            "getrange" | "substr" | "lrange" | "ltrim" | "lset" | "lrem" => &["k", "0", "1"],
            "setex" | "psetex" | "setrange" => &["k", "1", "v"],
            "getex" => &["k", "PERSIST"],
            "scan" => &["0"],
            "keys" => &["*"],
            "hget" | "hdel" | "hexists" | "hstrlen" | "hmget" => &["k", "f"],
            "hset" | "hmset" | "hsetnx" | "hincrby" | "hincrbyfloat" => &["k", "f", "1"],
            "hexpire" | "hpexpire" | "hexpireat" | "hpexpireat" => &["k", "1", "FIELDS", "1", "f"],
            "httl" | "hpttl" | "hexpiretime" | "hpexpiretime" | "hpersist" | "hgetdel" => {
                &["k", "FIELDS", "1", "f"]
            }
            "hgetex" => &["k", "PERSIST", "FIELDS", "1", "f"],
            "hsetex" => &["k", "FIELDS", "1", "f", "v"],
            "hscan" | "sscan" | "lindex" | "lpos" | "zscan" => &["k", "0"],
            "linsert" => &["k", "BEFORE", "a", "b"],
            "lmove" => &["k", "l", "LEFT", "RIGHT"],
            "lmpop" => &["2", "k", "l", "LEFT"],
            "sismember" | "smismember" | "sadd" | "srem" => &["k", "m"],
            "smove" => &["k", "l", "m"],
            "sinter" | "sunion" | "sdiff" | "sinterstore" | "sunionstore" | "sdiffstore" => &["k", "l"],
            "sintercard" => &["1", "k"],
            "zadd" | "zincrby" => &["k", "1", "m"],
            "zlexcount" | "zremrangebylex" | "zrangebylex" | "zrevrangebylex" => &["k", "-", "+"],
            "geoadd" => &["k", "1", "2", "m"],
            "geodist" => &["k", "m", "n"],
            "georadius_ro" => &["k", "1", "2", "3", "m"],
            "georadiusbymember_ro" => &["k", "m", "3", "m"],
            "geosearch" => &["k", "FROMMEMBER", "m", "BYRADIUS", "3", "m"],
            "geosearchstore" => &["d", "k", "FROMMEMBER", "m", "BYRADIUS", "3", "m"],
            "zmpop" => &["2", "k", "l", "MIN"],
            "blpop" | "brpop" | "brpoplpush" | "bzpopmin" | "bzpopmax" => &["k", "l", "0"],
            "blmove" => &["k", "l", "LEFT", "RIGHT", "0"],
            "blmpop" => &["0", "2", "k", "l", "LEFT"],
            "bzmpop" => &["0", "2", "k", "l", "MIN"],
            "zunion" | "zinter" | "zdiff" | "zintercard" => &["2", "k", "l"],
            "zunionstore" | "zinterstore" | "zdiffstore" => &["d", "2", "k", "l"],
            "zrangestore" => &["d", "k", "0", "1"],
            _ if spec.group == "sorted-set" && spec.arity.unsigned_abs() == 4 => &["k", "0", "1"],
            "bitpos" | "getbit" => &["k", "1"],
            "setbit" => &["k", "1", "1"],
            "bitfield" => &["k", "SET", "u8", "0", "1"],
            "bitop" => &["AND", "k", "l"],
            "copy" => &["k", "l"],
            "georadius" => &["k", "1", "2", "3", "m", "STORE", "d"],
            "georadiusbymember" => &["k", "m", "3", "m", "STORE", "d"],
            "acl" => &["SETUSER", "u"],
            "debug" => &["OBJECT", "k"],
            "memory" => &["USAGE", "k"],
            "object" => &["ENCODING", "k"],
            "restore" => &["k", "0", "\0\x01a\n\0\0\0\0\0\0\0\0\0"],
            "sort" => &["k", "STORE", "d"],
            "xadd" => &["k", "*", "f", "v"],
            "xrange" | "xrevrange" => &["k", "-", "+"],
            "xtrim" => &["k", "MAXLEN", "5"],
            "xread" => &["STREAMS", "k", "l", "0", "$"],
            "xreadgroup" => &["GROUP", "g", "c", "STREAMS", "k", "l", ">", "0"],
            "xgroup" => &["CREATE", "k", "g", "$"],
            "xinfo" => &["STREAM", "k"],
            "xack" => &["k", "g", "1"],
            "xpending" => &["k", "g"],
            "xclaim" | "xautoclaim" => &["k", "g", "c", "0", "1"],
            "dbsize" | "randomkey" | "flushall" | "flushdb" => &[],
            "swapdb" => &["1", "2"],
            "script" => &["LOAD", "return 1"],
            "function" => &["LOAD", "#!lua name=l"],
            "eval" | "evalsha" | "eval_ro" | "evalsha_ro" | "fcall" | "fcall_ro" => &["s", "1", "k"],
            _ if spec.accepts(2) => &["k"],
            _ => &["k", "1"],
        };
        let words: Vec<&[u8]> =
            core::iter::once(spec.name).chain(arguments.iter().copied()).map(str::as_bytes).collect();
        match parse(&words) {
            Ok(Parsed::Data(operation)) => assert_eq!(operation.class(), class, "{}", spec.name),
            other => panic!("{}: {other:?}", spec.name),
        }
    }
}
