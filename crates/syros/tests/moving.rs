//! Data that moves from a real Redis into a cluster, by a file and by asking a server that runs, and back by a backup: key by
//! key, by what the commands of each type say. Files that are damaged, and clusters that have keys.

mod common;
#[allow(dead_code, reason = "these clients connect by a port")]
#[path = "../../resp/tests/redis_server/process.rs"]
mod process;

use common::{Dev, Scratch, free_ports, kill, run, syros, text, wait_for, wait_for_end};
use process::RedisProcess;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use syros_resp::ReceivedReply::{self, Array, Bulk, Integer};

/// A client of either server, which reads whole replies.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(port: u16) -> Self {
        let stream = wait_for("a server", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    fn ask(&mut self, words: &[&[u8]]) -> ReceivedReply {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        self.0.get_mut().write_all(&bytes).unwrap();
        syros_resp::read_reply(&mut self.0, 1 << 30).unwrap()
    }

    /// A command that must not fail, its words separated by spaces.
    fn tell(&mut self, command: &str) -> ReceivedReply {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let reply = self.ask(&words);
        assert!(!matches!(reply, ReceivedReply::Error(_)), "{command}: {reply:?}");
        reply
    }

    fn number(&mut self, command: &str) -> i64 {
        let reply = self.tell(command);
        let Integer(number) = reply else { panic!("{command}: {reply:?}") };
        number
    }

    /// The elements of an array that a command answers.
    fn list(&mut self, words: &[&[u8]]) -> Vec<ReceivedReply> {
        let reply = self.ask(words);
        let Array(elements) = reply else { panic!("{words:?}: {reply:?}") };
        elements
    }
}

fn bytes(reply: &ReceivedReply) -> Vec<u8> {
    let Bulk(bytes) = reply else { panic!("{reply:?} is no string") };
    bytes.clone()
}

/// Of what XINFO answers, the values of these names.
fn named(reply: &[ReceivedReply], names: &[&str]) -> String {
    let pairs = reply.chunks_exact(2).filter_map(|pair| {
        let name = String::from_utf8(bytes(&pair[0])).unwrap();
        names.contains(&&name[..]).then(|| format!("{name}: {:?}", pair[1]))
    });
    pairs.collect::<Vec<_>>().join(", ")
}

/// Long texts are compared by their lengths and hashes.
fn short(text: String) -> String {
    if text.len() < 1000 {
        return text;
    }
    format!("{} bytes, {:016x}", text.len(), syros_types::key_hash(text.as_bytes()))
}

/// What a key has, in words that say the same for both servers.
fn value(client: &mut Client, key: &[u8]) -> String {
    let kind = client.ask(&[b"TYPE", key]).to_string();
    let text = match &kind[..] {
        "string" => format!("{:?}", client.ask(&[b"GET", key])),
        "list" => format!("{:?}", client.list(&[b"LRANGE", key, b"0", b"-1"])),
        "set" => {
            let mut members: Vec<_> = client.list(&[b"SMEMBERS", key]).iter().map(bytes).collect();
            members.sort();
            format!("{members:?}")
        }
        "zset" => {
            let reply = client.list(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]);
            // Servers write the same number with more digits or fewer.
            let score = |score: &ReceivedReply| score.to_string().parse::<f64>().unwrap();
            let pairs = reply.chunks_exact(2).map(|pair| (bytes(&pair[0]), score(&pair[1])));
            format!("{:?}", pairs.collect::<Vec<_>>())
        }
        "hash" => {
            let reply = client.list(&[b"HGETALL", key]);
            let pairs: BTreeMap<_, _> =
                reply.chunks_exact(2).map(|pair| (bytes(&pair[0]), bytes(&pair[1]))).collect();
            format!("{pairs:?}")
        }
        "stream" => stream(client, key),
        // It has gone since somebody saw it.
        "none" => return String::new(),
        other => panic!("a key has type {other}"),
    };
    format!("{kind}, expires {}: {}", client.ask(&[b"PEXPIRETIME", key]), short(text))
}

fn stream(client: &mut Client, key: &[u8]) -> String {
    let mut text = format!("{:?}", client.list(&[b"XRANGE", key, b"-", b"+"]));
    let about = client.list(&[b"XINFO", b"STREAM", key]);
    text +=
        &named(&about, &["length", "last-generated-id", "max-deleted-entry-id", "entries-added", "groups"]);
    for group in client.list(&[b"XINFO", b"GROUPS", key]) {
        let Array(group) = group else { panic!("{group:?}") };
        let name = bytes(&group[1]);
        let about = ["name", "consumers", "pending", "last-delivered-id", "entries-read", "lag"];
        text += &format!("\n{}", named(&group, &about));
        for consumer in client.list(&[b"XINFO", b"CONSUMERS", key, &name]) {
            let Array(consumer) = consumer else { panic!("{consumer:?}") };
            text += &format!("\n{}", named(&consumer, &["name", "pending"]));
        }
        for pending in client.list(&[b"XPENDING", key, &name, b"-", b"+", b"1000"]) {
            let Array(pending) = pending else { panic!("{pending:?}") };
            // The third one is for how long.
            text += &format!("\n{:?} {:?} {:?}", pending[0], pending[1], pending[3]);
        }
    }
    text
}

/// All keys of all databases, and what they have.
fn state(port: u16) -> BTreeMap<String, String> {
    let mut client = Client::connect(port);
    let mut all = BTreeMap::new();
    for database in 0..16 {
        client.tell(&format!("SELECT {database}"));
        for key in client.list(&[b"KEYS", b"*"]) {
            let key = bytes(&key);
            if key.starts_with(b"syros:import:") {
                // It notes how far a cluster is that follows a server.
                continue;
            }
            all.insert(format!("{database} {}", key.escape_ascii()), value(&mut client, &key));
        }
    }
    client.tell("SELECT 0");
    let libraries = client.list(&[b"FUNCTION", b"LIST", b"WITHCODE"]);
    let mut libraries: Vec<_> = libraries.iter().map(|library| format!("{library:?}")).collect();
    // Servers list them in whatever order.
    libraries.sort();
    all.insert("libraries".to_owned(), libraries.concat());
    all
}

/// Two states are the same.
fn compare(found: &BTreeMap<String, String>, expected: &BTreeMap<String, String>) {
    for (key, value) in expected {
        assert_eq!(found.get(key), Some(value), "{key}");
    }
    assert_eq!(found.len(), expected.len());
}

/// Values of all types, small and large, in all encodings that Redis 7.0 writes; expiries; two databases; a library.
fn fill(redis: &mut Client) {
    for command in [
        "SET text hello",
        "SET number 12345",
        "SET negative -7 PXAT 4102444800123",
        "SET wide 123456789012",
        "SETBIT bits 70000 1",
        "PFADD log a b c d",
        "RPUSH list a 1 -1 300 70000 5000000000",
        "SADD integers 1 2 3 -70000",
        "SADD members 1 x",
        "HSET hash f v g 12",
        "ZADD sorted 1.5 a -inf b inf c 3 d",
        "GEOADD places 13.4 52.5 berlin",
        "XADD stream 5-1 f v g 1",
        "XADD stream 5-2 f w g 2",
        "XADD stream 6-0 other 1 f x",
        "XDEL stream 5-2",
        "XGROUP CREATE stream readers 0",
        "XGROUP CREATE stream idle $",
        "XGROUP CREATECONSUMER stream idle nobody",
        "XREADGROUP GROUP readers one COUNT 1 STREAMS stream >",
        "XREADGROUP GROUP readers two COUNT 1 STREAMS stream >",
        "XGROUP CREATE untouched g $ MKSTREAM",
        "EXPIREAT list 4102444800",
        "SELECT 9",
        "SET elsewhere 1 PXAT 4102444800000",
        "SADD nine a b c",
        "SELECT 0",
    ] {
        redis.tell(command);
    }
    redis.ask(&[b"SET", b"binary\r\n\0\xff", &(0..=255).collect::<Vec<u8>>()]);
    redis.ask(&[b"SET", b"compressible", &[b'a'; 100_000]]);
    redis.ask(&[b"SET", b"", b"the empty key"]);
    let noise: Vec<u8> = (0..20_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    redis.ask(&[b"RPUSH", b"long elements", b"short", &noise, &[b'b'; 20_000], b"short"]);
    let script = b"for i = 1, 5000 do
            redis.call('RPUSH', 'large list', 'element ' .. i)
            redis.call('SADD', 'large set', 'member ' .. i)
            redis.call('SADD', 'large integers', i * 7)
            redis.call('HSET', 'large hash', 'field ' .. i, i)
            redis.call('ZADD', 'large sorted', i / 3, 'member ' .. i)
            redis.call('XADD', 'large-stream', i .. '-1', 'field', i, 'text', 'some of it comes again')
        end
        redis.call('XGROUP', 'CREATE', 'large-stream', 'g', '17-1')";
    assert_eq!(redis.ask(&[b"EVAL", script, b"0"]), ReceivedReply::Nil);
    redis.tell("XREADGROUP GROUP g c COUNT 300 STREAMS large-stream >");
    let library = b"#!lua name=lib\nredis.register_function('f', function() return 7 end)";
    assert_eq!(redis.ask(&[b"FUNCTION", b"LOAD", library]), Bulk(b"lib".to_vec()));
}

/// Values that are too long for one command.
fn fill_with_long_values(redis: &mut Client) {
    let script = b"local text = string.rep('x', 1000000)
        for i = 1, 20 do
            redis.call('RPUSH', 'longlist', i .. text)
            redis.call('HSET', 'longhash', i, text .. i)
            redis.call('SADD', 'longset', text .. i)
            redis.call('ZADD', 'longsorted', i / 7, text .. i)
            redis.call('XADD', 'longstream', i .. '-1', 'f', text .. i)
        end
        redis.call('PEXPIREAT', 'longlist', 4102444800777)
        redis.call('SET', 'longstring', string.rep('y', 16777216))
        redis.call('XGROUP', 'CREATE', 'longstream', 'g', '0')";
    redis.tell("CONFIG SET rdbcompression no");
    assert_eq!(redis.ask(&[b"EVAL", script, b"0"]), ReceivedReply::Nil);
    redis.tell("XREADGROUP GROUP g c COUNT 3 STREAMS longstream >");
}

/// A Redis with a port, whose files are in this directory; `None` where it is not installed.
fn redis(name: &str, directory: &Path, port: u16, arguments: &[&str]) -> Option<RedisProcess> {
    fs::create_dir_all(directory).unwrap();
    let (directory, port) = (directory.to_str().unwrap().to_owned(), port.to_string());
    let mut all = vec!["--port", &port, "--bind", "127.0.0.1", "--dir", &directory];
    all.extend_from_slice(arguments);
    RedisProcess::start(&format!("moving-{name}"), &all)
}

/// `syros import` into a cluster.
fn import(from: &str, port: u16, options: &[&str]) -> Output {
    let to = format!("127.0.0.1:{port}");
    run(syros().args(["import", "--from", from, "--to", &to]).args(options))
}

fn is_done(output: &Output, words: &str) {
    assert!(output.status.success() && text(output).contains(words), "{words}: {}", text(output));
}

fn is_refused(output: &Output, words: &str) {
    assert!(!output.status.success() && text(output).contains(words), "{words}: {}", text(output));
}

#[test]
fn everything_moves_from_redis_and_back() {
    let scratch = Scratch::new("moving");
    let (old_port, new_port) = (free_ports(), free_ports());
    let Some(old) = redis("old", &scratch.0.join("old"), old_port, &[]) else { return };
    let mut client = Client::connect(old_port);
    fill(&mut client);
    client.tell("SAVE");
    let expected = state(old_port);
    let file = scratch.0.join("old/dump.rdb");
    let file = file.to_str().unwrap();
    let dev = Dev::start(&scratch.0.join("dev"), free_ports(), &[]);
    let keys = expected.len() - 1;
    let summary = format!("{keys} keys ({} in database 0, 2 in database 9)", keys - 2);

    is_done(
        &import(file, dev.port, &["--dry-run"]),
        &format!("nothing was written; to be imported: {summary}"),
    );
    assert_eq!(Client::connect(dev.port).number("DBSIZE"), 0);
    is_done(&import(file, dev.port, &[]), &format!("imported {summary}"));
    compare(&state(dev.port), &expected);

    // Again, by asking the server.
    let mut cluster = Client::connect(dev.port);
    let from = format!("redis://127.0.0.1:{old_port}");
    is_refused(&import(&from, dev.port, &[]), &format!("the cluster has {keys} keys"));
    cluster.tell("FLUSHALL");
    cluster.tell("FUNCTION FLUSH");
    is_done(&import(&from, dev.port, &[]), &format!("imported {summary}"));
    compare(&state(dev.port), &expected);
    is_done(&import(&format!("{from}/9"), dev.port, &["--replace"]), "imported 2 keys\n");
    drop(old);

    // And back.
    let (backup, out) = (scratch.0.join("backup"), scratch.0.join("new/dump.rdb"));
    let mut command = syros();
    command.arg("backup").arg(&backup).args(["--addr", &format!("127.0.0.1:{}", dev.port)]);
    let output = run(command.arg("--secret-file").arg(scratch.0.join("dev/secret")));
    assert!(output.status.success(), "{}", text(&output));
    fs::create_dir(scratch.0.join("new")).unwrap();
    let export = || run(syros().arg("export").arg(&backup).arg(&out));
    is_done(&export(), &format!("holds {keys} keys, 1 libraries of functions"));
    is_refused(&export(), "is there already, and nothing is overwritten");
    let _new = redis("new", &scratch.0.join("new"), new_port, &[]).unwrap();
    compare(&state(new_port), &expected);

    // A backup with a flipped bit makes no file.
    let part = backup.join("data-00001");
    let mut flipped = fs::read(&part).unwrap();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 4;
    fs::write(&part, flipped).unwrap();
    fs::remove_file(&out).unwrap();
    is_refused(&export(), "data-00001 is damaged at offset");
    assert_eq!(fs::read_dir(scratch.0.join("new")).unwrap().count(), 0, "nothing is left");
}

#[test]
fn values_that_are_too_long_for_one_command_come_by_several() {
    let scratch = Scratch::new("moving-long");
    let port = free_ports();
    let Some(_old) = redis("long", &scratch.0, port, &["--requirepass", "opensesame"]) else { return };
    let mut client = Client::connect(port);
    client.tell("AUTH opensesame");
    fill_with_long_values(&mut client);
    client.tell("SAVE");
    client.ask(&[b"CONFIG", b"SET", b"requirepass", b""]);
    let expected = state(port);
    client.tell("CONFIG SET requirepass opensesame");
    let dev = Dev::start(&scratch.0.join("dev"), free_ports(), &[]);
    let file = scratch.0.join("dump.rdb");
    is_done(&import(file.to_str().unwrap(), dev.port, &[]), "6 of them had values too long for one command");
    compare(&state(dev.port), &expected);
    // Once more, over what is there, and by asking the server, which has a password.
    let from = format!("redis://127.0.0.1:{port}");
    is_refused(&import(&from, dev.port, &["--replace"]), "wants a password");
    let password = scratch.0.join("password");
    fs::write(&password, "opensesame\n").unwrap();
    fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
    let options = ["--replace", "--from-password-file", password.to_str().unwrap()];
    is_done(&import(&from, dev.port, &options), "imported 6 keys");
    compare(&state(dev.port), &expected);
    let options = ["--merge", "--from-password-file", password.to_str().unwrap()];
    is_done(&import(&from, dev.port, &options), "6 keys exist in the cluster, and were left as they are");
}

/// An RDB file of these keys and values, each a string, in database 0.
fn file_of(keys: &[(&str, &str)]) -> Vec<u8> {
    let mut writer =
        syros_rdb::FileWriter::create(Vec::new(), syros_commands::rdb::Format::Redis70, "a test").unwrap();
    for (key, value) in keys {
        let typed = [&[0, value.len() as u8], value.as_bytes()].concat();
        writer.key(0, key.as_bytes(), None, &typed).unwrap();
    }
    writer.finish().unwrap()
}

/// A server that has one key as it says, and answers SCAN when it is told to.
fn server_that_stands_still(goes_on: Receiver<()>) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut input = BufReader::new(stream);
        while let Ok(Array(words)) = syros_resp::read_reply(&mut input, 1 << 20) {
            let words: Vec<String> =
                words.iter().map(|word| String::from_utf8(bytes(word)).unwrap()).collect();
            let reply = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["PING"] => "+PONG\r\n",
                ["PEXPIRETIME", _] => ":-2\r\n",
                ["INFO", "keyspace"] => "$20\r\ndb0:keys=1,expires=0\r\n",
                ["INFO", _] => "$0\r\n\r\n",
                ["SELECT", "0"] => "+OK\r\n",
                ["SCAN", ..] => {
                    goes_on.recv().unwrap();
                    "*2\r\n$1\r\n0\r\n*0\r\n"
                }
                _ => "-ERR unknown command\r\n",
            };
            input.get_mut().write_all(reply.as_bytes()).unwrap();
        }
    });
    port
}

#[test]
fn a_server_that_stands_still_is_told_of_while_it_is_waited_for() {
    let scratch = Scratch::new("moving-still");
    let dev = Dev::start(&scratch.0.join("dev"), free_ports(), &[]);
    let (go_on, goes_on) = channel();
    let from = format!("redis://127.0.0.1:{}", server_that_stands_still(goes_on));
    let mut command = syros();
    command.args(["import", "--from", &from, "--to", &format!("127.0.0.1:{}", dev.port)]);
    let mut import = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(import.stderr.take().unwrap()).lines().map(Result::unwrap);
    let still = told.find(|line| line.contains("has sent nothing for")).unwrap();
    assert!(still.ends_with("s; it is given up after 60 s"), "{still}");
    go_on.send(()).unwrap();
    assert!(told.any(|line| line.contains("goes on, after")));
    assert!(wait_for_end(&mut import).success());
    assert!(dev.stop().success());
}

#[test]
fn data_for_a_cluster_is_not_written_into_another_server() {
    let scratch = Scratch::new("moving-other");
    let port = free_ports();
    let Some(_other) = redis("other", &scratch.0, port, &[]) else { return };
    let mut client = Client::connect(port);
    let file = scratch.0.join("dump.rdb");
    fs::write(&file, file_of(&[("key", "value")])).unwrap();
    let words = "is no node or gateway of Syros, but another server that speaks the Redis protocol";
    is_refused(&import(file.to_str().unwrap(), port, &[]), words);
    // Nor into itself.
    let from = format!("redis://127.0.0.1:{port}");
    is_refused(&import(&from, port, &["--merge"]), words);
    is_refused(&import(&from, port, &["--follow"]), words);
    assert_eq!(client.number("DBSIZE"), 0);
}

#[test]
fn what_is_there_is_kept_or_replaced_as_one_says() {
    let scratch = Scratch::new("moving-merge");
    let dev = Dev::start(&scratch.0.join("dev"), free_ports(), &[]);
    let mut cluster = Client::connect(dev.port);
    cluster.tell("MSET a old mine kept");
    let file = scratch.0.join("dump.rdb");
    fs::write(&file, file_of(&[("a", "new"), ("b", "new")])).unwrap();
    let file = file.to_str().unwrap();
    is_refused(&import(file, dev.port, &[]), "the cluster has 2 keys, and nothing was written");
    is_done(&import(file, dev.port, &["--merge"]), "imported 1 keys\n  1 keys exist in the cluster");
    assert_eq!(cluster.tell("MGET a b mine").to_string(), "an array of 3");
    let all = |cluster: &mut Client| {
        cluster.list(&[b"MGET", b"a", b"b", b"mine"]).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(all(&mut cluster), ["old", "new", "kept"]);
    is_done(&import(file, dev.port, &["--replace"]), "imported 2 keys");
    assert_eq!(all(&mut cluster), ["new", "new", "kept"]);
    is_refused(&import(file, dev.port, &["--replace", "--merge"]), "cannot be used with");
}

#[test]
fn an_import_goes_on_at_another_node_when_its_node_is_killed() {
    import_and_kill("moving-killed", true);
}

#[test]
fn an_import_goes_on_when_the_leader_is_killed_behind_its_node() {
    import_and_kill("moving-killed-leader", false);
}

/// The leader is killed in the middle of an import; its node is the one that the import uses, or is not.
fn import_and_kill(name: &str, is_used: bool) {
    const KEYS: i64 = 400_000;
    let scratch = Scratch::new(name);
    let dev = Dev::start(&scratch.0.join("dev"), free_ports(), &[]);
    let names: Vec<String> = (0..KEYS).map(|key| format!("key {key}")).collect();
    let keys: Vec<(&str, &str)> = names.iter().map(|name| (&name[..], &name[4..])).collect();
    let file = scratch.0.join("dump.rdb");
    fs::write(&file, file_of(&keys)).unwrap();
    let leader = dev.leader().clone();
    let mut nodes = dev.nodes.clone();
    // The first one is used.
    nodes.sort_by_key(|node| node.leads != is_used);
    let all: Vec<String> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.redis)).collect();
    let mut command = syros();
    command.args(["import", "--to", &all.join(","), "--from"]).arg(&file);
    let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let other = dev.nodes.iter().find(|node| !node.leads).unwrap().redis;
    let mut client = Client::connect(other);
    wait_for("some keys", || {
        let found = client.ask(&[b"READ", b"stale", b"DBSIZE"]);
        matches!(found, Integer(1000..)).then_some(())
    });
    kill(leader.pid, Signal::KILL);
    let output = process.wait_with_output().unwrap();
    is_done(&output, &format!("imported {KEYS} keys"));
    assert!(text(&output).contains("trying again") || !is_used, "it had ended before: {}", text(&output));
    let mut client = Client::connect(other);
    assert_eq!(client.number("DBSIZE"), KEYS);
    for name in names.iter().step_by(1009) {
        assert_eq!(client.ask(&[b"GET", name.as_bytes()]).to_string(), name[4..]);
    }
}

/// Updates of many kinds, some of chance, some of several keys, in two databases.
fn update(client: &mut Client, number: usize) {
    for command in [
        &format!("INCRBYFLOAT counter 1.{number}")[..],
        &format!("RPUSH queue {number}"),
        &format!("SADD bag {number}"),
        &format!("XADD journal * number {number}"),
        &format!("SET brief {number} EX 4000"),
        "SPOP bag",
        "LMOVE queue done LEFT RIGHT",
        "XREADGROUP GROUP readers one COUNT 1 STREAMS stream >",
        "MULTI",
        &format!("SET one {number}"),
        &format!("HSET two number {number}"),
        "EXEC",
        "SELECT 5",
        &format!("SETEX other{} 3000 {number}", number % 7),
        "SELECT 0",
    ] {
        client.tell(command);
    }
    let script = b"redis.call('ZADD', KEYS[1], ARGV[1], 'm' .. ARGV[1]); redis.call('DEL', KEYS[2])";
    client.ask(&[b"EVAL", script, b"2", b"ranking", b"brief", number.to_string().as_bytes()]);
}

#[test]
fn a_cluster_follows_a_server_until_it_is_in_step_though_its_leader_is_killed() {
    let scratch = Scratch::new("moving-follow");
    let port = free_ports();
    let Some(old) = redis("follow", &scratch.0.join("old"), port, &[]) else { return };
    let mut client = Client::connect(port);
    fill(&mut client);
    let dev = Dev::start(&scratch.0.join("dev"), free_ports(), &[]);
    let leader = dev.leader().clone();
    let mut nodes = dev.nodes.clone();
    nodes.sort_by_key(|node| !node.leads);
    let to = nodes.iter().map(|node| format!("127.0.0.1:{}", node.redis)).collect::<Vec<_>>().join(",");
    let follow = || {
        let from = format!("redis://127.0.0.1:{port}");
        let mut command = syros();
        command.args(["import", "--from", &from, "--to", &to, "--follow", "--spool"]).arg(&scratch.0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let process = follow();
    for number in 0..600 {
        update(&mut client, number);
        std::thread::sleep(Duration::from_millis(5));
        if number == 200 {
            // Each update is executed once all the same.
            kill(leader.pid, Signal::KILL);
            client.ask(&[
                b"FUNCTION",
                b"LOAD",
                b"#!lua name=late\nredis.register_function('g', function() end)",
            ]);
        }
    }
    // What it reads is in a file as long as it runs.
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 3);
    let expected = state(port);
    let deadline = Instant::now() + Duration::from_secs(30);
    while state(dev.port) != expected && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    if state(dev.port) != expected {
        // What it says tells more than the difference.
        kill(process.id().try_into().unwrap(), Signal::INT);
        eprintln!("{}", text(&process.wait_with_output().unwrap()));
        return compare(&state(dev.port), &expected);
    }
    let replicas = client.ask(&[b"INFO", b"replication"]).to_string();
    assert!(replicas.contains("connected_slaves:1"), "{replicas}");
    kill(process.id().try_into().unwrap(), Signal::INT);
    let output = process.wait_with_output().unwrap();
    is_done(&output, "the cluster is in step with");
    is_done(&output, "the cluster has all that had come when this was ended");
    is_done(&output, "trying again");
    compare(&state(dev.port), &expected);
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 2, "nothing is left of what was read");

    // A server that goes away is told of; what it had is there.
    let mut cluster = Client::connect(dev.port);
    cluster.tell("FLUSHALL");
    cluster.tell("FUNCTION FLUSH");
    let process = follow();
    wait_for("the same in the cluster", || (state(dev.port) == expected).then_some(()));
    drop(old);
    let output = process.wait_with_output().unwrap();
    is_refused(&output, "sends nothing more: it closed the connection; the cluster has what came until then");
}

#[test]
fn a_file_that_cannot_be_imported_as_a_whole_leaves_the_cluster_as_it_is() {
    let scratch = Scratch::new("moving-damaged");
    let dev = Dev::start(&scratch.0.join("dev"), free_ports(), &[]);
    let path = scratch.0.join("dump.rdb");
    let name = path.to_str().unwrap();
    let intact = file_of(&[("a", "one"), ("b", "two"), ("c", "three")]);
    let mut damaged: Vec<Vec<u8>> = (0..intact.len() - 8)
        .step_by(7)
        .map(|at| {
            let mut bytes = intact.clone();
            bytes[at] ^= 16;
            bytes
        })
        .collect();
    damaged.extend([intact[..intact.len() - 9].to_vec(), [&intact[..], b"*1"].concat(), Vec::new()]);
    for bytes in damaged {
        fs::write(&path, bytes).unwrap();
        is_refused(&import(name, dev.port, &[]), name);
    }
    // A key of a module, and one of a database that there is not: they are named.
    let mut bytes = intact[..intact.len() - 9].to_vec();
    bytes.extend_from_slice(
        b"\x07\x04json\x81\x24\x91\x24\x91\x24\x91\x24\x01\x05\x01x\0\xfe\x10\x00\x03far\x01v\xff",
    );
    bytes.extend_from_slice(&[0; 8]);
    fs::write(&path, bytes).unwrap();
    let output = import(name, dev.port, &[]);
    is_refused(&output, "2 keys cannot be imported, and nothing was written");
    is_refused(&output, "key 'json' of database 0: it is of the type");
    is_refused(&output, "key 'far' of database 16: Syros has databases 0 to 15, and no 16");
    assert_eq!(Client::connect(dev.port).number("DBSIZE"), 0);
    is_done(&import(name, dev.port, &["--skip-unsupported"]), "imported 3 keys\n  2 keys were left out:");
    assert_eq!(Client::connect(dev.port).number("DBSIZE"), 3);
    is_refused(&import("redis://me:secret@127.0.0.1:1", dev.port, &[]), "--from-password-file");
    is_refused(&import("no such file", dev.port, &[]), "cannot read no such file");
}
