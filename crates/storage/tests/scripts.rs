//! Scripts and functions on both engines: what they answer, what is left of them, and that equal bodies leave equal states.

use syros_commands::access::{Announcement, Notification, ScriptMessage};
use syros_commands::acl::{CallingUser, UserNumber};
use syros_commands::families::{Abilities, RecordVersions};
use syros_commands::rdb::{dump_libraries, restore_libraries};
use syros_commands::{
    Generation, Operation, Parsed, Reply, ScriptUse, describe, operations, parse, without_memory,
};
use syros_storage::conformance::LEARNING;
use syros_storage::{DiskEngine, Engine, MemoryEngine, MemoryStore};
use syros_types::{Database, OpNumber, Prng, SubscriptionKind, WallTime};

fn disk() -> DiskEngine<MemoryStore> {
    DiskEngine::open(MemoryStore::new()).expect("a store in memory").0
}

/// A body of these words, whose updates draw from a seed.
fn body(words: &[&str], seed: u64) -> Vec<u8> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let Ok(Parsed::Data(mut operation)) = parse(&words) else { panic!("{words:?} is no operation") };
    if let Some(drawn) = operation.seed_mut() {
        *drawn = seed;
    }
    let mut body = Vec::new();
    operation.encode(&mut body);
    body
}

/// Applies a body, at an entry and a time of its own.
fn apply(engine: &mut impl Engine, number: u64, body: &[u8]) -> String {
    let mut reply = Vec::new();
    engine.begin_entry(OpNumber(number));
    engine.apply(WallTime(1_000_000 + number * 1_000), body, &mut reply);
    show(&Reply::decode_all(&reply).expect("replies"))
}

fn show(replies: &[Reply]) -> String {
    let one = |reply: &Reply| match reply {
        Reply::Nil | Reply::NilArray => "nil".to_owned(),
        Reply::Ok => "OK".to_owned(),
        Reply::Integer(integer) => integer.to_string(),
        Reply::Bulk(text) | Reply::Simple(text) => String::from_utf8_lossy(text).into_owned(),
        Reply::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
        Reply::Array(parts) => format!("[{}]", show(parts)),
        other => format!("{other:?}"),
    };
    replies.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Applies commands, whose words are separated by bars, to both engines: what the last one answers on both.
fn both(commands: &[&str]) -> String {
    let (mut memory, mut disk) = (MemoryEngine::new(), disk());
    let mut last = String::new();
    for (number, command) in (1..).zip(commands) {
        let body = body(&command.split('|').collect::<Vec<_>>(), number);
        last = apply(&mut memory, number, &body);
        assert_eq!(apply(&mut disk, number, &body), last, "{command}");
        assert_eq!(memory.digest(), disk.digest(), "{command}");
        assert_eq!(memory.take_effects(), disk.take_effects(), "{command}");
    }
    last
}

/// Members that execute a script differently say so to each other even if it returns the same: they compare effects.
#[test]
fn what_a_script_writes_is_an_effect_and_what_it_reads_is_none() {
    let effects = |script: &str| {
        let mut engine = MemoryEngine::new();
        apply(&mut engine, 1, &body(&["eval", script, "1", "k"], 1));
        engine.take_effects()
    };
    let write = |text: &str| effects(&format!("redis.call('set', KEYS[1], {text})"));
    assert_eq!(write("'a'"), write("'a'"));
    assert_ne!(write("'a'"), write("'b'"));
    assert_ne!(write("'a'"), effects("return nil"));
    assert_eq!(effects("redis.call('get', KEYS[1])"), effects("return nil"));
    // It is undone, and its text is one thing of the build.
    let undone = |script: &str| effects(&format!("redis.call('set', KEYS[1], 1) {script}"));
    assert_eq!(undone("error('one')"), undone("error('other')"));
}

#[test]
fn scripts_call_commands() {
    for (script, expected) in [
        ("return redis.call('set', KEYS[1], ARGV[1])", "OK"),
        ("redis.call('set', KEYS[1], 1) return redis.call('incr', KEYS[1])", "2"),
        ("redis.call('rpush', KEYS[1], 'a', 'b') return redis.call('lrange', KEYS[1], 0, -1)", "[a b]"),
        ("redis.call('hset', KEYS[1], 'f', 'v') return redis.call('hgetall', KEYS[1])", "[f v]"),
        ("return redis.call('get', KEYS[1])", "nil"),
        ("return redis.call('time')", "[1 1000]"),
        ("redis.call('set', KEYS[1], 'v', 'EX', 10) return redis.call('pttl', KEYS[1])", "10000"),
        ("return redis.pcall('lpush').err", "ERR Wrong number of args calling command from script"),
    ] {
        assert_eq!(both(&[&format!("eval|{script}|1|k|a")]), expected, "{script}");
    }
}

/// What engines tell of that have executed these commands: messages as channel and payload, a shard's with a bar before.
fn announced(commands: &[&str]) -> String {
    fn of(engine: &mut impl Engine, commands: &[&str]) -> String {
        for (number, command) in (1..).zip(commands) {
            apply(engine, number, &body(&command.split('|').collect::<Vec<_>>(), number));
        }
        let show = |announcement: Announcement| match announcement {
            Announcement::KeyEvent(Notification { key, event, .. }) => {
                format!("{} {}", event.name(), key.escape_ascii())
            }
            Announcement::Message(ScriptMessage { entry, kind, channel, payload }) => {
                let bar = if kind == SubscriptionKind::Shard { "|" } else { "" };
                format!("{entry}: {bar}{} {}", channel.escape_ascii(), payload.escape_ascii())
            }
        };
        engine.take_announcements().into_iter().map(show).collect::<Vec<_>>().join(", ")
    }
    let (mut memory, mut disk) = (MemoryEngine::new(), disk());
    let in_memory = of(&mut memory, commands);
    assert_eq!(of(&mut disk, commands), in_memory, "{commands:?}");
    in_memory
}

#[test]
fn scripts_publish_if_they_are_not_undone() {
    let hello = "eval|redis.call('set', KEYS[1], 1) return redis.call('publish', 'news', 'hello')|1|k";
    assert_eq!(both(&[hello]), "0", "a node does not know how many there are at the others");
    assert_eq!(announced(&["set|a|1", hello, hello]), "2: news hello, 3: news hello");
    let both_kinds = "eval|redis.call('spublish', 'c', 'one') redis.call('PUBLISH', 'c', 'two')|0";
    assert_eq!(announced(&[both_kinds]), "1: |c one, 1: c two");
    assert_eq!(announced(&["eval|redis.call('publish', 'c', 'm') while true do end|0"]), "");
    let undeclared = "eval|redis.call('publish', 'c', 'm') redis.call('set', 'other', 1)|0";
    assert_eq!(announced(&[undeclared]), "");
    // An error of the script itself undoes nothing, as in Redis.
    assert_eq!(announced(&["eval|redis.call('publish', 'c', 'm') error('late')|0"]), "1: c m");
    let reads = "#!lua flags=no-writes\nreturn redis.pcall('publish', 'c', 'm').err";
    let refused = "ERR Write commands are not allowed from read-only scripts.";
    assert_eq!(both(&[&format!("eval|{reads}|0")]), refused);
    assert_eq!(announced(&[&format!("eval|{reads}|0")]), "");
    let many = "eval|local n = 0 while true do \
                local answer = redis.pcall('publish', 'c', string.rep('x', 1000)) \
                if answer ~= 0 then return {n, answer.err} end n = n + 1 end|0";
    assert_eq!(both(&[many]), "[984 ERR the messages of a script take at most 1048576 bytes]");
}

#[test]
fn a_script_out_of_fuel_is_undone() {
    let text = "-ERR the script has used up its 10000000 units of fuel and was undone";
    for change in [
        "redis.call('set', KEYS[1], 'x')",
        "redis.call('del', KEYS[1])",
        "redis.call('append', KEYS[2], 'x') redis.call('expire', KEYS[2], 100)",
        "redis.call('rename', KEYS[1], KEYS[2])",
        "redis.call('del', KEYS[1]) redis.call('hset', KEYS[1], 'f', 'v') redis.call('del', KEYS[1])",
        "redis.call('rpush', KEYS[3], 'x') redis.call('lpop', KEYS[3], 9)",
        "for i = 1, 3 do redis.call('del', KEYS[i]) end redis.call('set', KEYS[4], 'n')",
    ] {
        let (mut memory, mut disk) = (MemoryEngine::new(), disk());
        let setup = ["set|a|1", "set|b|2|EX|1000", "rpush|c|1|2|3", "set|d|4", "set|e|5"];
        for (number, command) in (1..).zip(setup) {
            let body = body(&command.split('|').collect::<Vec<_>>(), 0);
            apply(&mut memory, number, &body);
            apply(&mut disk, number, &body);
        }
        let scan = |engine: &MemoryEngine| {
            let mut reply = Vec::new();
            engine.read(WallTime(0), &body(&["scan", "0", "count", "100"], 0), &mut reply);
            reply
        };
        let (keys, len) = (scan(&memory), memory.memory_bytes());
        let contents = |engine: &dyn Fn(&[u8]) -> Vec<u8>| {
            let reads = [
                body(&["mget", "a", "b", "d", "e"], 0),
                body(&["lrange", "c", "0", "-1"], 0),
                body(&["exists", "a", "b", "c", "d", "e", "f"], 0),
                body(&["pexpiretime", "b"], 0),
            ];
            engine(&reads.concat())
        };
        let read = |engine: &dyn Engine| {
            contents(&|body| {
                let mut reply = Vec::new();
                engine.read(WallTime(0), body, &mut reply);
                reply
            })
        };
        let before = (read(&memory), read(&disk));
        let script = format!("{change} while true do end");
        let script = body(&["eval", &script, "4", "a", "b", "c", "f"], 0);
        assert_eq!(apply(&mut memory, 9, &script), text);
        assert_eq!(apply(&mut disk, 9, &script), text);
        assert_eq!((read(&memory), read(&disk)), before, "{change}");
        assert_eq!(memory.digest(), disk.digest(), "{change}");
        assert_eq!(scan(&memory), keys, "{change}: keys come back to their places");
        // The script itself has been loaded.
        assert_eq!(memory.memory_bytes(), len, "{change}");
    }
}

/// What is told that the data may not grow answers as Redis does.
#[test]
fn scripts_run_without_memory_until_they_would_make_the_data_grow() {
    fn told(before: &[&str], command: &str) -> String {
        let words = |command: &str| -> Vec<u8> { body(&command.split('|').collect::<Vec<_>>(), 7) };
        let told = without_memory(&words(command)).expect("a script").body;
        assert_eq!(describe(&told).map(|described| described.growth), Ok(0));
        let (mut memory, mut disk) = (MemoryEngine::new(), disk());
        for (number, command) in (1..).zip(before) {
            apply(&mut memory, number, &words(command));
            apply(&mut disk, number, &words(command));
        }
        let answer = apply(&mut memory, 100, &told);
        assert_eq!(apply(&mut disk, 100, &told), answer, "{command}");
        assert_eq!(memory.digest(), disk.digest(), "{command}");
        answer
    }
    const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.";
    let eval = |text: &str| told(&["SET|k|v"], &format!("EVAL|{text}|1|k"));
    assert_eq!(eval("return redis.call('get', KEYS[1])"), "v");
    assert!(eval("redis.call('set', KEYS[1], 1)").starts_with(OOM));
    assert_eq!(eval("return redis.pcall('set', KEYS[1], 1).err"), OOM[1..]);
    assert_eq!(eval("return redis.call('rename', KEYS[1], KEYS[1])"), "OK");
    // What it has begun to change it goes on changing.
    assert_eq!(eval("redis.call('del', KEYS[1]) return redis.call('append', KEYS[1], 'xy')"), "2");
    assert_eq!(eval("redis.pcall('set', KEYS[1], 1) return redis.call('getdel', KEYS[1])"), "v");
    // One that speaks for itself is asked before.
    assert_eq!(without_memory(&body(&["EVAL", "#!lua\nreturn 1", "0"], 0)), None);
    assert_eq!(eval("#!lua flags=no-writes\nreturn 1"), "1");
    assert_eq!(eval("#!lua flags=allow-oom\nreturn redis.call('append', KEYS[1], 'x')"), "2");
    let library = "#!lua name=lib
        redis.register_function('writes', function() return 'w' end)
        redis.register_function{function_name='reads', callback=function() return 'r' end, flags={'no-writes'}}
        redis.register_function{function_name='grows',
            callback=function(keys) return redis.call('append', keys[1], 'x') end, flags={'allow-oom'}}";
    let load = format!("FUNCTION|LOAD|{library}");
    let call = |name: &str| told(&[&load], &format!("FCALL|{name}|1|k"));
    assert_eq!((call("writes"), call("reads"), call("grows")), (OOM.into(), "r".into(), "1".into()));
    let loaded = "return redis.call('append', KEYS[1], 'x')";
    let load = format!("SCRIPT|LOAD|{loaded}");
    let name = both(&[&load]);
    assert!(told(&[&load], &format!("EVALSHA|{name}|1|k")).starts_with(OOM));
    // What needs memory is left out; what needs none, and has been told, is not tried again.
    let (set, del) = (body(&["SET", "k", "v"], 0), body(&["DEL", "k"], 0));
    let script = body(&["EVAL", "return 1", "0"], 0);
    assert_eq!((without_memory(&set), without_memory(&del)), (None, None));
    let left = without_memory(&[script, set, del.clone()].concat()).expect("a script and a deletion");
    assert_eq!((&left.refused[..], left.is_whole()), (&[false, true, false][..], false));
    assert!(left.body.ends_with(&del));
    assert_eq!(without_memory(&left.body), None);
}

/// Scripts that only read, in a transaction with an update.
#[test]
fn scripts_that_read_are_executed_beside_updates() {
    let (mut memory, mut disk) = (MemoryEngine::new(), disk());
    let script = "return {redis.call('get', KEYS[1]), redis.pcall('set', KEYS[1], 2).err, math.random(1000)}";
    let library = "#!lua name=lib
        redis.register_function{function_name='f', callback=function() return 'f' end, flags={'no-writes'}}";
    let commands: [&[&str]; 5] = [
        &["FUNCTION", "LOAD", library],
        &["SET", "k", "1"],
        &["EVAL_RO", script, "1", "k"],
        &["FCALL_RO", "f", "0"],
        &["EVALSHA_RO", "0123456789012345678901234567890123456789", "0"],
    ];
    let all: Vec<u8> = commands.iter().flat_map(|words| body(words, 0)).collect();
    let answer = apply(&mut memory, 1, &all);
    assert_eq!(apply(&mut disk, 1, &all), answer);
    let (before, random) = answer.split_once("read-only scripts. ").expect("an error");
    assert_eq!(before, "lib OK [1 ERR Write commands are not allowed from ");
    assert!(random.ends_with("] f -NOSCRIPT No matching script. Please use EVAL."), "{random}");
}

/// Found by a user: EVAL_RO alone had no way to touch a key that it does not declare.
#[test]
fn a_script_that_reads_and_brings_its_text_may_touch_any_key_if_it_is_told_so() {
    for (script, told) in [("return redis.call('get', 'other')", "2"), ("return redis.call('dbsize')", "2")] {
        let run = |owns_everything: bool, engine: &mut dyn FnMut(u64, &[u8]) -> String| {
            let words = ["eval_ro", script, "1", "k"].map(str::as_bytes);
            let Ok(Parsed::Data(mut operation)) = parse(&words) else { panic!("a script") };
            let Some(ScriptUse::ReadText { owns_everything: told }) = operation.script_mut() else {
                panic!("it only reads")
            };
            *told = owns_everything;
            let mut body = Vec::new();
            operation.encode(&mut body);
            let (again, rest) = (Operation::decode(&mut &body[..]).expect("it is decoded"), &mut Vec::new());
            again.encode(rest);
            assert_eq!(*rest, body);
            let generation = if owns_everything { Generation::OwningReads } else { Generation::Programs };
            assert_eq!(Generation::of_body(&body), generation);
            engine(1, &crate::body(&["mset", "k", "1", "other", "2"], 0));
            engine(2, &body)
        };
        let (mut memory, mut disk) = (MemoryEngine::new(), disk());
        assert_eq!(run(true, &mut |number, body| apply(&mut memory, number, body)), told);
        assert_eq!(run(true, &mut |number, body| apply(&mut disk, number, body)), told);
        let refused = run(false, &mut |number, body| apply(&mut memory, number + 2, body));
        assert!(refused.starts_with("-ERR script tried to access key"), "{refused}");
    }
}

#[test]
fn a_script_stays_in_its_database_and_removes_no_other_keys_than_it_names() {
    let refused = "ERR This Redis command is not allowed from script";
    for call in ["'flushall'", "'flushdb'", "'swapdb', 0, 1", "'move', 'a', 1", "'copy', 'a', 'b', 'DB', 1"] {
        let script = format!("eval|#!lua flags=allow-undeclared-keys\nreturn redis.pcall({call}).err|0");
        assert_eq!(both(&["set|a|1", &script]), refused, "{call}");
        assert_eq!(both(&["set|a|1", &script, "get|a"]), "1", "{call}");
    }
}

/// A user is replicated: both engines come to the same ones, and check a script alike by those that there are at its place.
#[test]
fn a_script_needs_the_rights_of_its_user_at_every_replica() {
    let as_user = |words: &[&str], number: u16| {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let Ok(Parsed::Data(mut operation)) = parse(&words) else { panic!("a script") };
        *operation.user_mut().expect("a script") = CallingUser::new(UserNumber(number));
        let mut body = Vec::new();
        operation.encode(&mut body);
        assert_eq!(
            Operation::decode(&mut &body[..]).expect("it is decoded").user().number(),
            Some(UserNumber(number))
        );
        body
    };
    let (mut memory, mut disk) = (MemoryEngine::new(), disk());
    let mut number = 0;
    let mut run = |body: &[u8]| {
        number += 1;
        let answer = apply(&mut memory, number, body);
        assert_eq!(apply(&mut disk, number, body), answer);
        assert_eq!(memory.digest(), disk.digest());
        assert_eq!(memory.take_effects(), disk.take_effects());
        answer
    };
    let get = "return redis.pcall('get', KEYS[1])";
    let refused_key = "-ERR ACL failure in script: No permissions to access a key";
    let refused_get = "-ERR ACL failure in script: User u has no permissions to run the 'get' command";
    assert_eq!(run(&body(&["acl", "setuser", "u", "+@all", "~a"], 0)), "OK");
    assert_eq!(
        run(&body(&["acl", "setuser", "u", "bogus"], 0)),
        "-ERR Error in ACL SETUSER modifier 'bogus': Syntax error"
    );
    assert_eq!(run(&body(&["acl", "users"], 0)), "[default u]");
    assert_eq!(run(&body(&["set", "a", "1"], 0)), "OK");
    let calls = |command: &'static str, key: &'static str| as_user(&[command, get, "1", key], 2);
    for command in ["eval", "eval_ro"] {
        assert_eq!(run(&calls(command, "a")), "1");
        assert_eq!(run(&calls(command, "b")), refused_key);
    }
    let writes = "redis.call('set', 'a', '2') return redis.call('set', 'b', '2')";
    assert!(run(&as_user(&["eval", writes, "2", "a", "b"], 2)).starts_with(refused_key));
    assert_eq!(run(&body(&["get", "a"], 0)), "2", "as in Redis, what it had done before stays");
    assert_eq!(run(&body(&["script", "load", get], 0)).len(), 40);
    let name = run(&body(&["script", "load", get], 0));
    assert_eq!(run(&as_user(&["evalsha", &name, "1", "b"], 2)), refused_key);
    assert_eq!(run(&as_user(&["evalsha_ro", &name, "1", "b"], 2)), refused_key);
    assert_eq!(run(&body(&["acl", "setuser", "u", "-get"], 0)), "OK");
    assert_eq!(run(&calls("eval", "a")), refused_get);
    assert_eq!(run(&body(&["eval", get, "1", "a"], 0)), "2", "without a user nothing is checked");
    // It is told what its user may run, where all members can tell; a script of nobody may run everything.
    let may = |words: &'static str| {
        let script: &'static str = Box::leak(format!("return redis.acl_check_cmd({words})").into_boxed_str());
        let told = as_user(&["eval", script, "0"], 2);
        let Some(Ok(mut operation)) = operations(&told).next() else { panic!("an operation") };
        let terms = operation.terms_mut().expect("an update");
        terms.abilities = terms.abilities.with(Abilities::TELLS_RIGHTS, true);
        let mut body = Vec::new();
        operation.encode(&mut body);
        assert_eq!(Generation::of_body(&body), Generation::AskedRights);
        assert_eq!(Generation::of_body(&told), Generation::Users);
        (body, told)
    };
    for (words, answer) in [
        ("'set', 'a', '1'", "1"),
        ("'get', 'a'", "nil"),
        ("'set', 'b', '1'", "nil"),
        ("'bogus'", "-ERR Invalid command passed to server.acl_check_cmd()"),
    ] {
        let (told, untold) = may(words);
        assert!(run(&told).starts_with(answer), "{words}: {}", run(&told));
        assert_eq!(run(&untold), "1", "{words}");
    }
    assert_eq!(run(&body(&["eval", "return redis.acl_check_cmd('get', 'b')", "0"], 0)), "1");
    let acl = "return redis.pcall('acl', 'users')";
    assert_eq!(run(&body(&["eval", acl, "0"], 0)), "-ERR This Redis command is not allowed from script");
    assert_eq!(run(&body(&["acl", "deluser", "u", "nobody"], 0)), "1");
    assert_eq!(run(&calls("eval", "a")), "-NOPERM The user who calls the script does not exist any more");
    // One of the same name is another one.
    assert_eq!(run(&body(&["acl", "setuser", "u", "+@all", "~*"], 0)), "OK");
    assert_eq!(run(&calls("eval", "a")), "-NOPERM The user who calls the script does not exist any more");
    assert_eq!(run(&as_user(&["eval", get, "1", "a"], 3)), "2");
}

/// DEBUG SET-DISABLE-DENY-SCRIPTS is a term of the call, so that all members execute it alike.
#[test]
fn a_script_calls_debug_if_its_terms_say_so() {
    let run = |script: &str, debugs: bool| {
        let words = ["eval", script, "1", "k"];
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let Ok(Parsed::Data(mut operation)) = parse(&words) else { panic!("a script") };
        operation.terms_mut().expect("an update").debugs = debugs;
        let mut body = Vec::new();
        operation.encode(&mut body);
        let (mut memory, mut disk) = (MemoryEngine::new(), disk());
        let answer = apply(&mut memory, 1, &body);
        assert_eq!(apply(&mut disk, 1, &body), answer, "{script}");
        answer
    };
    let refused = "-ERR This Redis command is not allowed from script";
    let object = "redis.call('set', KEYS[1], 'value') return redis.call('debug', 'object', KEYS[1])";
    for (script, expected) in [
        ("return redis.pcall('debug', 'sleep', 3600)", "OK"),
        ("return redis.pcall('debug', 'protocol', 'integer')", "12345"),
        ("return redis.pcall('debug', 'protocol', 'nosuch')", refused),
        ("return redis.pcall('debug', 'error', 'x')", refused),
        ("return redis.pcall('debug', 'set-disable-deny-scripts', 0)", refused),
        ("return redis.pcall('debug', 'protocol', 'map')", "[0 0 1 1 2 0]"),
        (object, "Value at:0x0 refcount:1 encoding:embstr serializedlength:6 lru:0 lru_seconds_idle:0"),
        ("return redis.pcall('debug', 'object', KEYS[1])", "-ERR no such key"),
        ("return redis.pcall('shutdown')", refused),
    ] {
        assert_eq!(run(script, true), expected, "{script}");
        assert!(run(script, false).starts_with(refused), "{script}");
    }
    assert!(run("return redis.call('debug', 'object', 'other')", true).contains("was not declared"));
}

/// A script that goes through long values again and again ends when it has used up its fuel, within a moment. Builds before
/// wire format 16 count each time as 64 KiB, so that ten seconds went by: they are told that a script is counted so.
#[test]
fn going_through_a_whole_value_takes_fuel_for_all_of_it() {
    let long = "x".repeat(4 << 20);
    let value = |command: &str| -> Vec<Vec<u8>> {
        let elements = (0..30_000).map(|number| format!("{number:060}"));
        let each = |number: usize, element: String| match command {
            "zadd" => vec![number.to_string(), element],
            _ => vec![element],
        };
        let elements = elements.enumerate().flat_map(|(number, element)| each(number, element));
        ["k".to_owned()].into_iter().chain(elements).map(String::into_bytes).collect()
    };
    for (make, call) in [
        ("set", "'bitcount', KEYS[1]"),
        ("set", "'bitpos', KEYS[1], 0"),
        ("set", "'bitop', 'not', KEYS[2], KEYS[1]"),
        ("set", "'copy', KEYS[1], KEYS[2], 'replace'"),
        ("rpush", "'lrem', KEYS[1], 0, 'none'"),
        ("rpush", "'linsert', KEYS[1], 'before', 'none', 'x'"),
        ("rpush", "'sort', KEYS[1], 'alpha', 'store', KEYS[2]"),
        ("sadd", "'sunionstore', KEYS[2], KEYS[1]"),
        ("zadd", "'zunionstore', KEYS[2], 1, KEYS[1]"),
        ("zadd", "'zrangestore', KEYS[2], KEYS[1], 0, -1"),
        ("sadd", "'sintercard', 2, KEYS[1], KEYS[1]"),
        ("zadd", "'zintercard', 2, KEYS[1], KEYS[1]"),
    ] {
        let run = |counts: bool| {
            let mut memory = MemoryEngine::new();
            let made: Vec<Vec<u8>> = match make {
                "set" => vec![b"k".to_vec(), long.clone().into_bytes()],
                command => value(command),
            };
            let words: Vec<&[u8]> =
                core::iter::once(make.as_bytes()).chain(made.iter().map(Vec::as_slice)).collect();
            let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("an update") };
            let mut body = Vec::new();
            operation.encode(&mut body);
            apply(&mut memory, 1, &body);
            let script = format!("for i = 1, 80 do redis.call({call}) end return 'done'");
            let words = ["eval", &script, "2", "k", "l"].map(str::as_bytes);
            let Ok(Parsed::Data(mut operation)) = parse(&words) else { panic!("a script") };
            let terms = operation.terms_mut().expect("an update");
            terms.abilities = terms.abilities.with(Abilities::COUNTS_WHOLE_VALUES, counts);
            body.clear();
            operation.encode(&mut body);
            apply(&mut memory, 2, &body)
        };
        assert!(run(true).contains("units of fuel and was undone"), "{call}: {}", run(true));
        assert_eq!(run(false), "done", "{call}");
    }
    // What touches a part of a long value does not pay for the rest.
    let short =
        "for i = 1, 1000 do redis.call('setbit', KEYS[1], i, 1) redis.call('getrange', KEYS[1], i, i) end";
    let set = format!("set|k|{}", "x".repeat(1 << 20));
    assert_eq!(both(&[&set, &format!("eval|{short} return 'done'|1|k")]), "done");
}

/// A script that goes through the keys again and again ends when it has used up its fuel, within a moment. Builds before wire format
/// 22 count each time as a call, so that a quarter of an hour went by.
#[test]
fn going_through_keys_takes_fuel_for_all_of_them() {
    for (call, times) in [("'keys', 'none*'", 7_000), ("'scan', 0, 'match', 'none', 'count', 100000", 700)] {
        let run = |engine: &mut dyn FnMut(u64, &[u8]) -> String, counts: bool| {
            for number in 1..=3_000 {
                engine(number, &body(&["set", &format!("k{number}"), "x"], 0));
            }
            let script = format!("{ANY}for i = 1, {times} do redis.call({call}) end return 'done'");
            let words = ["eval", &script, "0"].map(str::as_bytes);
            let Ok(Parsed::Data(mut operation)) = parse(&words) else { panic!("a script") };
            let terms = operation.terms_mut().expect("an update");
            terms.abilities = terms.abilities.with(Abilities::COUNTS_KEYS, counts);
            let mut body = Vec::new();
            operation.encode(&mut body);
            let generation = if counts { Generation::CountedKeys } else { Generation::Programs };
            assert_eq!(Generation::of_body(&body), generation);
            engine(4_000, &body)
        };
        for counts in [true, false] {
            let (mut memory, mut disk) = (MemoryEngine::new(), disk());
            let told = run(&mut |number, body| apply(&mut memory, number, body), counts);
            assert_eq!(told.contains("units of fuel and was undone"), counts, "{call}: {told}");
            if call.contains("scan") {
                assert_eq!(run(&mut |number, body| apply(&mut disk, number, body), counts), told);
            }
        }
    }
    // Whoever looks for keys a few times is not bothered.
    let few =
        format!("{ANY}for i = 1, 100 do redis.call('keys', '*') redis.call('scan', 0) end return 'done'");
    assert_eq!(both(&["mset|a|1|b|2", &format!("eval|{few}|0")]), "done");
}

const ANY: &str = "#!lua flags=allow-undeclared-keys\n";

#[test]
fn a_script_chooses_databases_and_the_caller_keeps_its_own() {
    let script = format!(
        "eval|{ANY}redis.call('set', 'a', 1) redis.call('select', 3) redis.call('set', 'a', 2) return redis.call('get', \
         'a')|0"
    );
    assert_eq!(both(&[&script]), "2");
    assert_eq!(both(&[&script, "get|a"]), "1");
    assert_eq!(both(&[&script, "swapdb|0|3", "get|a"]), "2");
    // It is undone in all of them.
    let endless = format!(
        "eval|{ANY}for i = 0, 15 do redis.call('select', i) redis.call('set', 'a', i + 7) end while true do end|0"
    );
    for (database, expected) in [(0, "1"), (3, "2"), (5, "nil")] {
        let swap = format!("swapdb|0|{database}");
        assert_eq!(both(&[&script, &endless, &swap, "get|a"]), expected, "{database}");
    }
    for (number, expected) in
        [("16", "ERR DB index is out of range"), ("x", "ERR value is not an integer or out of range")]
    {
        let script = format!("eval|{ANY}return redis.pcall('select', '{number}').err|0");
        assert_eq!(both(&[&script]), expected);
    }
}

/// What it has declared are keys of the caller's database.
#[test]
fn a_declared_key_is_not_one_of_another_database() {
    let script = "eval|redis.call('select', 1) return redis.call('set', KEYS[1], 1)|1|k";
    assert!(both(&[script]).starts_with("-ERR script tried to access key 'k', which was not declared"));
}

#[test]
fn commands_that_wait_do_not_wait_in_scripts() {
    for (call, expected) in [
        ("'blpop', 'l', 0", "nil"),
        ("'brpop', 'l', 0", "nil"),
        ("'brpoplpush', 'l', 'm', 0", "nil"),
        ("'blmove', 'l', 'm', 'LEFT', 'RIGHT', 0", "nil"),
        ("'bzpopmin', 'l', 0", "nil"),
        ("'bzpopmax', 'l', 0", "nil"),
        ("'wait', 1, 0", "0"),
        ("'waitaof', 0, 1, 0", "[0 0]"),
    ] {
        let script = format!("eval|{ANY}return redis.pcall({call})|0");
        assert_eq!(both(&[&script]), expected, "{call}");
    }
    let pop = "eval|return redis.call('blpop', KEYS[1], 0)|1|l";
    assert_eq!(both(&["rpush|l|a|b", pop]), "[l a]");
    assert_eq!(both(&["rpush|l|a|b", pop, "lrange|l|0|-1"]), "[b]");
    let group = ["xgroup|create|s|g|$|mkstream", "xadd|s|1-1|f|v"];
    let xread = |start: &str| {
        format!("eval|return redis.call('xread', 'block', 0, 'streams', KEYS[1], '{start}')|1|s")
    };
    let next =
        "eval|return redis.call('xreadgroup', 'group', 'g', 'c', 'block', 0, 'streams', KEYS[1], '>')|1|s";
    assert_eq!(both(&[group[0], &xread("$")]), "nil");
    assert_eq!(both(&[group[0], next]), "nil");
    assert_eq!(both(&[group[0], group[1], &xread("0")]), "[[s [[1-1 [f v]]]]]");
    assert_eq!(both(&[group[0], group[1], &xread("$")]), "nil");
    assert_eq!(both(&[group[0], group[1], next]), "[[s [[1-1 [f v]]]]]");
    assert_eq!(both(&[group[0], group[1], next, next]), "nil");
}

#[test]
fn an_error_of_the_script_keeps_what_it_has_done() {
    assert_eq!(both(&["eval|redis.call('set', KEYS[1], 1) error('x')|1|k", "get|k"]), "1");
}

#[test]
fn other_keys_are_refused() {
    let refused = both(&["eval|redis.call('set', KEYS[1], 1) pcall(redis.call, 'get', 'other')|1|k"]);
    let text = "-ERR script tried to access key 'other', which was not declared; pass it in KEYS, or begin the script with \
                #!lua flags=allow-undeclared-keys";
    assert_eq!(refused, text);
    assert_eq!(both(&["eval|redis.call('set', KEYS[1], 1) redis.call('get', 'other')|1|k", "get|k"]), "nil");
    let allowed = "eval|#!lua flags=allow-undeclared-keys\nreturn redis.call('set', 'other', 1)|0";
    assert_eq!(both(&[allowed, "get|other"]), "1");
}

#[test]
fn scripts_are_loaded_and_forgotten() {
    let name = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let by_name = format!("evalsha|{name}|0");
    assert!(both(&[&by_name]).starts_with("-NOSCRIPT"));
    assert_eq!(both(&["script|load|return 1"]), name);
    assert_eq!(both(&["script|load|return 1", &by_name]), "1");
    assert_eq!(both(&["eval|return 1|0", &by_name.to_uppercase().replace("EVALSHA", "evalsha")]), "1");
    assert!(both(&["script|load|return 1", "script|flush", &by_name]).starts_with("-NOSCRIPT"));
    assert!(
        both(&["script|load|retrun 1"])
            .starts_with("-ERR Error compiling script (new function): user_script:1:")
    );
}

#[test]
fn functions_are_loaded_and_called() {
    let library = "function|load|#!lua name=l\nredis.register_function('f', function(keys, args) \
                   return redis.call('incrby', keys[1], args[1]) end)";
    assert_eq!(both(&[library]), "l");
    assert_eq!(both(&[library, "fcall|f|1|k|5", "fcall|f|1|k|5"]), "10");
    assert_eq!(both(&[library, library]), "-ERR Library 'l' already exists");
    assert_eq!(both(&[library, "function|delete|l", "fcall|f|0"]), "-ERR Function not found");
    assert_eq!(
        both(&[library, "fcall|f|1|k|x"]),
        "-ERR value is not an integer or out of range script: f, on @user_function:2."
    );
}

/// Applies FUNCTION RESTORE of these texts after the commands; what it answers, and what FUNCTION DUMP then has.
fn restore(commands: &[&str], texts: &[&str], policy: &str) -> (String, Vec<String>) {
    let payload = dump_libraries(texts.iter().map(|text| text.as_bytes()));
    let (mut memory, mut disk) = (MemoryEngine::new(), disk());
    for (number, command) in (1..).zip(commands) {
        let body = body(&command.split('|').collect::<Vec<_>>(), number);
        apply(&mut memory, number, &body);
        apply(&mut disk, number, &body);
    }
    let words: [&[u8]; 4] = [b"function", b"restore", &payload, policy.as_bytes()];
    let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("{policy} is no policy") };
    let mut restore = Vec::new();
    operation.encode(&mut restore);
    let answer = apply(&mut memory, 9, &restore);
    assert_eq!(apply(&mut disk, 9, &restore), answer);
    let mut reply = Vec::new();
    memory.read(WallTime(0), &body(&["function", "dump"], 0), &mut reply);
    let [Reply::Bulk(dumped)] = &Reply::decode_all(&reply).expect("a reply")[..] else { panic!("{reply:?}") };
    let texts = restore_libraries(dumped).expect("libraries");
    (answer, texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect())
}

#[test]
fn libraries_are_dumped_and_restored() {
    let library = |name: &str, function: &str, answer: u8| {
        format!("#!lua name={name}\nredis.register_function('{function}', function() return {answer} end)")
    };
    let (first, second) = (library("a", "f", 1), library("b", "g", 2));
    let load = |text: &str| format!("function|load|{text}");
    let texts = [&*first, &*second];
    assert_eq!(restore(&[], &texts, "append"), ("OK".to_owned(), vec![first.clone(), second.clone()]));
    // One is there: all stay as they are.
    let other = library("b", "h", 3);
    let (answer, left) = restore(&[&load(&other)], &texts, "append");
    assert_eq!((&*answer, left), ("-ERR Library b already exists", vec![other.clone()]));
    let (answer, left) = restore(&[&load(&other)], &texts, "replace");
    assert_eq!((&*answer, left), ("OK", vec![first.clone(), second.clone()]));
    let (answer, left) = restore(&[&load(&library("c", "f", 4))], &texts, "flush");
    assert_eq!((&*answer, left), ("OK", vec![first.clone(), second.clone()]));
    let taken = library("c", "F", 4);
    let (answer, left) = restore(&[&load(&taken)], &texts, "replace");
    assert_eq!((&*answer, left), ("-ERR Function f already exists", vec![taken]));
    let (answer, left) = restore(&[&load(&other)], &[&first, "#!lua name=x\nerror('x')"], "flush");
    assert!(answer.starts_with("-ERR "), "{answer}");
    assert_eq!(left, [other]);
}

/// What a script has removed before it was undone may still be recorded as removed: then at all members, whatever their
/// engines, and however their lanes go.
#[test]
fn what_an_undone_script_leaves_recorded_is_the_same_everywhere() {
    let undone = "redis.call('get', 'stray')";
    for changes in [
        "redis.call('del', KEYS[1])",
        "redis.call('del', KEYS[1]) redis.call('getset', KEYS[2], 'v')",
        "redis.call('set', KEYS[1], 'v', 'ex', 10)",
        "redis.call('set', KEYS[2], 'v', 'ex', 10)",
        "redis.call('expire', KEYS[1], 0)",
        "redis.call('rename', KEYS[1], KEYS[2])",
        "redis.call('getdel', KEYS[1])",
        "redis.call('persist', KEYS[1])",
    ] {
        for first in ["set|k|v", "set|k|v|ex|1000", "set|k|v|px|1", "del|k"] {
            for database in [0, 1] {
                let (mut memory, mut disk) = (MemoryEngine::new(), disk());
                let mut record = Vec::new();
                Operation::new(RecordVersions).encode(&mut record);
                let script = format!("eval|{changes} {undone}|2|k|l");
                let bodies = [record, in_database(first, database), in_database(&script, database)];
                for (number, body) in (1..).zip(&bodies) {
                    let answer = apply(&mut memory, number, body);
                    assert_eq!(apply(&mut disk, number, body), answer, "{changes}, {first}");
                    assert_eq!(memory.digest(), disk.digest(), "{changes} after {first}, entry {number}");
                }
            }
        }
    }
}

/// The body of a command, whose words are separated by bars, in a database.
fn in_database(command: &str, number: u8) -> Vec<u8> {
    let words: Vec<&[u8]> = command.split('|').map(str::as_bytes).collect();
    let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("{command} is no operation") };
    let mut body = Vec::new();
    operation.in_database(Database::new(number).expect("a database")).encode(&mut body);
    body
}

#[test]
fn functions_are_called_in_any_case() {
    let library = "function|load|#!lua name=l\nredis.register_function('Name', function() return 7 end)";
    for name in ["Name", "NAME", "name"] {
        assert_eq!(both(&[library, &format!("fcall|{name}|0")]), "7");
    }
}

/// What is loaded is a part of snapshots, and of what a disk engine keeps.
#[test]
fn programs_are_in_snapshots() {
    let commands =
        ["script|load|return 1", "function|load|#!lua name=l\nredis.register_function('f', function() end)"];
    let (mut memory, mut disk) = (MemoryEngine::new(), disk());
    for (number, command) in (1..).zip(commands) {
        let body = body(&command.split('|').collect::<Vec<_>>(), 0);
        apply(&mut memory, number, &body);
        apply(&mut disk, number, &body);
    }
    fn blocks(engine: &mut impl Engine) -> Vec<Vec<u8>> {
        engine.begin_snapshot();
        let mut blocks = Vec::new();
        loop {
            let mut block = Vec::new();
            let more = engine.snapshot_block(10, &mut block);
            blocks.push(block);
            if !more {
                return blocks;
            }
        }
    }
    let mut loader = MemoryEngine::loader(0);
    blocks(&mut memory).iter().for_each(|block| loader.block(block).expect("a block"));
    assert_eq!(loader.finish().expect("a snapshot").digest(), memory.digest());
    let mut loader = DiskEngine::loader(MemoryStore::new());
    blocks(&mut disk).iter().for_each(|block| loader.block(block).expect("a block"));
    let mut restored = loader.finish().expect("a snapshot");
    assert_eq!(restored.digest(), disk.digest());
    let by_name = body(&["evalsha", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"], 0);
    assert_eq!(apply(&mut restored, 9, &by_name), "1");
}

#[test]
fn chance_is_the_same_everywhere_and_another_for_another_seed() {
    let script = "redis.call('sadd', KEYS[1], 1, 2, 3, 4, 5, 6, 7, 8, 9) return {math.random(1000000), \
                  redis.call('spop', KEYS[1]), redis.call('spop', KEYS[1]), redis.call('srandmember', KEYS[1])}";
    let run = |seed| {
        let body = body(&["eval", script, "1", "k"], seed);
        let answers = [apply(&mut MemoryEngine::new(), 1, &body), apply(&mut disk(), 1, &body)];
        assert_eq!(answers[0], answers[1]);
        answers[0].clone()
    };
    assert_eq!(run(1 << 50), run(1 << 50));
    assert_ne!(run(1 << 50), run(2 << 50));
}

/// Scripts that are put together by chance leave the same on both engines, and take the same fuel.
#[test]
fn generated_scripts_leave_equal_states() {
    const PARTS: [&str; 17] = [
        "redis.call('set', KEYS[1], ARGV[1])",
        "redis.pcall('incr', KEYS[2])",
        "redis.call('del', KEYS[3]) redis.call('rpush', KEYS[3], 1, 2, 3)",
        "t[{}] = 1 t[function() end] = 2",
        "for k, v in pairs(t) do out[#out + 1] = tostring(k) end",
        "out[#out + 1] = tostring(math.random()) .. 2 ^ 0.3 .. math.sin(#out)",
        "redis.pcall('hset', KEYS[4], #out, tostring({}))",
        "redis.pcall('sadd', KEYS[1], math.random(10)) out[#out + 1] = tostring(redis.pcall('spop', KEYS[1]))",
        "t['k' .. #out] = out",
        "table.sort(out)",
        "string.gsub('abc', '.', function(c) out[#out + 1] = c end)",
        "pcall(error, {err = 'x'})",
        "redis.pcall('expire', KEYS[2], 1)",
        "for i = 1, 3000 do t[i] = i * 0.1 end",
        "coroutine.wrap(function() for i = 1, 9 do coroutine.yield(i) end end)()",
        "redis.pcall('set', KEYS[4], cjson.encode(out))",
        "redis.pcall('hset', KEYS[4], tostring(KEYS), os.clock() * 1e8)",
    ];
    let (mut memory, mut again, mut disk) = (MemoryEngine::new(), MemoryEngine::new(), disk());
    let mut prng = Prng::new(11);
    for number in 1..400 {
        let mut script = "local t, out = {}, {} ".to_owned();
        for _ in 0..=prng.below(8) {
            script.push_str(PARTS[prng.below(PARTS.len() as u64) as usize]);
            script.push(' ');
        }
        script.push_str("return {out, tostring(t)}");
        let words = ["eval", &script, "4", "a", "b", "c", "d", "value"];
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let Ok(Parsed::Data(mut operation)) = parse(&words) else { panic!("a script") };
        if let Some(seed) = operation.seed_mut() {
            *seed = prng.next_u64();
        }
        // Some run out of fuel.
        if let syros_commands::Command::Eval(eval) = &mut operation.command {
            eval.fuel = 1 << (8 + prng.below(16));
        }
        // The second engine uses the state of the first one once more, the third has a new one.
        if let Some(terms) = operation.terms_mut() {
            terms.abilities = terms.abilities.with(Abilities::COUNTS_SCRIPT_ALONE, number % 4 != 0);
        }
        let mut body = Vec::new();
        Operation { blind: false, ..operation }.encode(&mut body);
        let answer = apply(&mut memory, number, &body);
        assert_eq!(apply(&mut disk, number, &body), answer, "{script}");
        let (third, body, expected) = (&mut again, &body, &answer);
        std::thread::scope(|scope| {
            scope.spawn(move || assert_eq!(&apply(third, number, body), expected));
        });
        assert_eq!(memory.digest(), disk.digest(), "{script}");
        assert_eq!(memory.digest(), again.digest(), "{script}");
    }
}

/// Commands that build a collection, with more elements on the way than are left, and its type.
fn with_a_past(kind: &str) -> Vec<Vec<String>> {
    let number = |index: usize| format!("{:05}", index * 7919 % 4001);
    let id = |index: usize| format!("{}-1", index + 1);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let add = |index: usize| match kind {
        "set" => words(&["sadd", "k", &number(index)]),
        "hash" => words(&["hset", "k", &number(index), &"v".repeat(index % 90)]),
        "expiring" if index.is_multiple_of(2) => {
            words(&["hsetex", "k", "px", &(3000 + index).to_string(), "fields", "1", &number(index), "v"])
        }
        "expiring" => words(&["hset", "k", &number(index), "v"]),
        "zset" => words(&["zadd", "k", &index.to_string(), &number(index)]),
        "list" => words(&["rpush", "k", &number(index)]),
        _ => words(&["xadd", "k", &id(index), "f", &number(index)]),
    };
    let remove = |index: usize| match kind {
        "set" => words(&["srem", "k", &number(index)]),
        "hash" | "expiring" => words(&["hdel", "k", &number(index)]),
        "zset" => words(&["zrem", "k", &number(index)]),
        "list" => words(&["lrem", "k", "0", &number(index)]),
        _ => words(&["xdel", "k", &id(index)]),
    };
    (0..4000).map(add).chain((0..4000).filter(|index: &usize| !index.is_multiple_of(3)).map(remove)).collect()
}

/// What a script may learn of a key but its elements must follow from these alone, or replicas would part: one of them may
/// have got the key in a snapshot.
#[test]
fn scripts_do_not_learn_how_a_key_came_about() {
    fn learnt(engine: &mut impl Engine) -> String {
        // Half of the fields that expire are gone, in some engines only for those who ask.
        apply(engine, 5_500, &body(&["eval", LEARNING, "1", "k"], 1))
    }
    for kind in ["set", "hash", "expiring", "zset", "list", "stream"] {
        let (mut memory, mut disk) = (MemoryEngine::new(), disk());
        for (number, words) in (1..).zip(with_a_past(kind)) {
            let body = body(&words.iter().map(String::as_str).collect::<Vec<_>>(), number);
            let number = number.min(4_000);
            assert_eq!(apply(&mut memory, number, &body), apply(&mut disk, number, &body), "{kind}");
        }
        let mut loader = MemoryEngine::loader(1);
        memory.begin_snapshot();
        let mut more = true;
        while more {
            let mut block = Vec::new();
            more = memory.snapshot_block(1 << 16, &mut block);
            loader.block(&block).expect("a block of a snapshot");
        }
        let mut restored = loader.finish().expect("all blocks of a snapshot");
        let expected = learnt(&mut memory);
        assert!(expected.contains("0."), "{expected}");
        assert_eq!(learnt(&mut restored), expected, "{kind}: restored from a snapshot");
        assert_eq!(learnt(&mut disk), expected, "{kind}: on disk");
    }
}
