//! What is in flight together, what is packed, and what holds a connection back.

mod common;

use common::{CONTEXT, TestStore, complete_all, connection, output, request, requests, serve, submissions};
use std::cell::Cell;
use std::sync::Arc;
use syros_commands::{operations, put_array, put_bulk, put_integer, put_map, put_nil, put_ok, put_pairs};
use syros_resp::limits::{COMMANDS_MAX, OPERATION_BYTES_MAX, REPLY_BYTES_MAX, REPLY_BYTES_PAUSE};
use syros_resp::{Completion, Connection, Context, DatabaseReport, ServerInfo, ServerReport};
use syros_types::{Class, EvictionPolicy, EvictionSettings, Footprint, ReadPolicy, fold, key_hash};

/// Receives lines and returns class and number of operations of what may go.
fn submitted(connection: &mut Connection, lines: &[&str]) -> Vec<(Class, usize)> {
    let input = requests(lines);
    assert_eq!(connection.receive(&input, &CONTEXT), input.len());
    submissions(connection)
        .into_iter()
        .map(|submission| (submission.class, operations(&submission.body).count()))
        .collect()
}

fn submitted_at_first(lines: &[&str]) -> Vec<(Class, usize)> {
    submitted(&mut connection(1), lines)
}

#[test]
fn commands_on_different_keys_go_together() {
    let classes = submitted_at_first(&["SET a 1", "GET b", "INCR c", "SET d 1"]);
    assert_eq!(classes, [(Class::Overwrite, 1), (Class::Read, 1), (Class::Update, 1), (Class::Overwrite, 1)]);
}

#[test]
fn a_run_on_one_key_is_one_submission() {
    assert_eq!(submitted_at_first(&["SET k 1"; 16]), [(Class::Overwrite, 16)]);
    assert_eq!(submitted_at_first(&["INCR k"; 16]), [(Class::Update, 16)]);
    assert_eq!(submitted_at_first(&["BLIND INCR k"; 3]), [(Class::Merge, 3)]);
    assert_eq!(submitted_at_first(&["SET k 1", "BLIND INCR k"]), [(Class::Merge, 2)]);
    assert_eq!(submitted_at_first(&["FLUSHALL", "FLUSHALL"]), [(Class::Merge, 1)]);
    assert_eq!(submitted_at_first(&["STRLEN k"; 16]), [(Class::Read, 16)]);
}

/// What nobody is told of is an update that returns nothing, and no read at all.
#[test]
fn what_wants_no_reply_goes_blind() {
    for lines in [
        &["CLIENT REPLY OFF", "INCR k", "GET k", "INCR j"][..],
        &["CLIENT REPLY SKIP", "INCR k", "CLIENT REPLY SKIP", "GET k", "CLIENT REPLY SKIP", "INCR j"],
    ] {
        assert_eq!(submitted_at_first(lines), [(Class::Merge, 1), (Class::Merge, 1)]);
    }
    assert_eq!(submitted_at_first(&["CLIENT REPLY SKIP", "DEL k"]), [(Class::Overwrite, 1)]);
    // The update after a skipped one is told what it returns, and is packed with it.
    assert_eq!(submitted_at_first(&["CLIENT REPLY SKIP", "INCR k", "INCR k"]), [(Class::Update, 2)]);
}

/// CLIENT BLIND: what counts is an update that returns nothing, and is answered by a number that no count is. What says
/// whether it took place, or what is there, is not touched.
#[test]
fn counts_that_a_client_gives_up_go_blind() {
    let counts = ["DEL a b", "UNLINK c", "APPEND d x", "SETRANGE e 1 x", "EXPIRE f 9", "PERSIST g"];
    let others = ["INCR h", "SETNX i 1", "GETDEL j", "EXPIRE k 9 NX", "RENAMENX l m", "GET n", "BLIND DEL o"];
    let lines = [&["CLIENT BLIND ON"][..], &counts, &others, &["CLIENT BLIND OFF", "DEL p"]].concat();
    let classes: Vec<Class> = submitted_at_first(&lines).into_iter().map(|(class, _)| class).collect();
    let (blind, rest) = classes.split_at(counts.len());
    assert!(blind.iter().all(|class| class.is_nilext()), "{blind:?}");
    let (update, overwrite) = (Class::Update, Class::Overwrite);
    assert_eq!(rest, [update, update, update, update, update, Class::Read, overwrite, update]);
    // Whether it is one submission or many, and packed with others or not.
    let mut served = TestStore::default();
    for (lines, expected) in [
        (
            &["CLIENT BLIND ON", "SET k 1", "APPEND k 2", "GET k", "DEL k"][..],
            "+OK\r\n+OK\r\n:-1\r\n$2\r\n12\r\n:-1\r\n",
        ),
        (&["CLIENT BLIND ON", "APPEND k 2", "RESET", "DEL k"], "+OK\r\n:-1\r\n+RESET\r\n:1\r\n"),
        (&["CLIENT BLIND on", "CLIENT BLIND off", "DEL k"], "+OK\r\n+OK\r\n:0\r\n"),
        (&["CLIENT BLIND maybe"], "-ERR syntax error\r\n"),
    ] {
        let mut connection = connection(1);
        let (replies, _) = serve(&mut connection, &mut served, &requests(lines));
        assert_eq!(String::from_utf8_lossy(&replies), expected, "{lines:?}");
    }
    // What goes wrong is told.
    let mut connection = connection(1);
    let input = requests(&["CLIENT BLIND ON", "DEL k"]);
    connection.receive(&input, &CONTEXT);
    let submission = connection.poll_submit().unwrap();
    connection.complete(submission.slot, Completion::Unknown);
    assert!(output(&mut connection).ends_with(
        b"-UNKNOWN the update may or may not have been executed: it was not confirmed in time\r\n"
    ));
}

/// Redis 7.0 leaves such a connection open, since it closes one with its last reply.
#[test]
fn a_client_that_wants_no_replies_can_quit() {
    let input = requests(&["CLIENT REPLY OFF", "SET k 1", "QUIT"]);
    assert_eq!(serve(&mut connection(1), &mut TestStore::default(), &input), (Vec::new(), true));
}

/// A pack is executed in one go, so operations that may take long are packed by few.
#[test]
fn a_pack_ends_where_it_would_take_long() {
    let lines = [
        ("INCRBYFLOAT k 1", 16),
        ("LREM l 0 v", 4),
        ("LINSERT l BEFORE v w", 4),
        ("ZUNIONSTORE d 1 s", 1),
        ("ZRANGESTORE d s 0 -1", 1),
        ("SUNIONSTORE d s t", 1),
    ];
    for (line, most) in lines {
        let packed = submitted_at_first(&[line; 40]);
        assert_eq!(packed.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [most], "{line}");
    }
    let far = submitted_at_first(&["SETRANGE s 16777215 x", "DEL s", "SETRANGE s 16777215 x", "DEL s"]);
    assert_eq!(far.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1]);
    let near = submitted_at_first(&["SETRANGE s 100 x"; 40]);
    assert_eq!(near.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [40]);
}

#[test]
fn interleaved_runs_are_packed_each() {
    let classes = submitted_at_first(&["SET a 1", "SET b 1", "SET a 2", "SET b 2", "SET a 3"]);
    assert_eq!(classes, [(Class::Overwrite, 3), (Class::Overwrite, 2)]);
}

#[test]
fn a_read_joins_updates_but_no_update_joins_a_read() {
    assert_eq!(submitted_at_first(&["SET k 1", "GET k", "SET k 2"]), [(Class::Update, 3)]);
    let mut connection = connection(1);
    assert_eq!(submitted(&mut connection, &["GET k", "SET k 1", "SET k 2"]), [(Class::Read, 1)]);
    let mut reply = Vec::new();
    put_bulk(&mut reply, b"old");
    assert!(connection.complete(1, Completion::Reply(Arc::from(reply))));
    assert_eq!(output(&mut connection), b"$3\r\nold\r\n");
    assert_eq!(submitted(&mut connection, &[]), [(Class::Overwrite, 2)]);
}

#[test]
fn a_command_on_some_keys_of_a_waiting_group_joins_it() {
    assert_eq!(submitted_at_first(&["MSET a 1 b 2", "SET a 3", "SET b 4"]), [(Class::Merge, 3)]);
    // `b` has been taken over by another group: joining the first would overtake it.
    let mut connection = connection(1);
    assert_eq!(submitted(&mut connection, &["MSET a 1 b 2"]), [(Class::Merge, 1)]);
    assert_eq!(submitted(&mut connection, &["SET b 3", "MSET a 4 b 5"]), []);
    let mut store = TestStore::default();
    connection.complete(1, Completion::Done);
    complete_all(&mut connection, &mut store);
    assert_eq!(store.0.get(&b"b"[..]), Some(&b"5".to_vec()));
}

#[test]
fn what_overlaps_waits_and_is_packed_meanwhile() {
    let mut connection = connection(1);
    assert_eq!(submitted(&mut connection, &["INCR k"]), [(Class::Update, 1)]);
    assert_eq!(submitted(&mut connection, &["INCR k"]), []);
    assert_eq!(submitted(&mut connection, &["SET other 1"]), [(Class::Overwrite, 1)]);
    assert_eq!(submitted(&mut connection, &["INCR k", "GET k"]), []);
    let mut reply = Vec::new();
    put_integer(&mut reply, 1);
    assert!(connection.complete(1, Completion::Reply(Arc::from(&reply[..]))));
    assert_eq!(output(&mut connection), b":1\r\n");
    let next = submissions(&mut connection);
    assert_eq!(next.len(), 1);
    assert_eq!((next[0].class, operations(&next[0].body).count()), (Class::Update, 3));
    assert_eq!(next[0].footprint, Footprint::One(key_hash(b"k")));
    // The replies of a pack go to their commands, and the one that ended before waits for its turn.
    assert!(connection.complete(3, Completion::Done));
    assert_eq!(output(&mut connection), b"");
    reply.clear();
    put_integer(&mut reply, 2);
    put_integer(&mut reply, 3);
    put_bulk(&mut reply, b"3");
    assert!(connection.complete(2, Completion::Reply(Arc::from(reply))));
    assert_eq!(output(&mut connection), b":2\r\n+OK\r\n:3\r\n$1\r\n3\r\n");
    assert_eq!(connection.outstanding(), 0);
}

#[test]
fn reads_of_one_key_go_together_and_hold_back_its_updates() {
    let mut connection = connection(1);
    assert_eq!(submitted(&mut connection, &["GET k"]), [(Class::Read, 1)]);
    assert_eq!(submitted(&mut connection, &["GET k", "MGET k j"]), [(Class::Read, 1), (Class::Read, 1)]);
    assert_eq!(submitted(&mut connection, &["SET k 1"]), []);
    // A read does not overtake the update that waits; it joins it.
    assert_eq!(submitted(&mut connection, &["GET k", "GET j"]), [(Class::Read, 1)]);
    for slot in [3, 1] {
        assert!(connection.complete(slot, Completion::TimedOut));
        assert_eq!(submissions(&mut connection), []);
    }
    assert!(connection.complete(2, Completion::TimedOut));
    assert_eq!(submissions(&mut connection).len(), 1);
}

#[test]
fn operations_on_all_keys_wait_for_all_and_hold_back_all() {
    let mut connection = connection(1);
    assert_eq!(submitted(&mut connection, &["SET a 1", "FLUSHALL", "SET b 1"]), [(Class::Overwrite, 1)]);
    assert!(connection.complete(1, Completion::Done));
    assert_eq!(submitted(&mut connection, &[]), [(Class::Merge, 1)]);
    assert!(connection.complete(2, Completion::Done));
    assert_eq!(submitted(&mut connection, &["DBSIZE", "GET c"]), [(Class::Overwrite, 1)]);
    assert!(connection.complete(3, Completion::Done));
    assert_eq!(submitted(&mut connection, &[]), [(Class::Read, 1), (Class::Read, 1)]);
}

#[test]
fn a_pack_never_outgrows_a_reply() {
    let mut connection = connection(1);
    // Nothing is known of the values yet: none is asked for together with another.
    assert_eq!(submitted(&mut connection, &["GET k"; 16]), [(Class::Read, 1); 16]);
    let reply_with = |connection: &mut Connection, slot: u64, count: usize, bytes: usize| {
        let mut reply = Vec::new();
        (0..count).for_each(|_| put_bulk(&mut reply, &vec![b'v'; bytes]));
        assert!(connection.complete(slot, Completion::Reply(Arc::from(reply))));
        output(connection);
    };
    (1..=16).for_each(|slot| reply_with(&mut connection, slot, 1, 9));
    // They are short.
    let classes = submitted(&mut connection, &["GET k"; 16]);
    assert_eq!(classes, [(Class::Read, 7), (Class::Read, 7), (Class::Read, 2)]);
    (17..=18).for_each(|slot| reply_with(&mut connection, slot, 7, 9));
    // No longer.
    reply_with(&mut connection, 19, 2, 1 << 20);
    let classes = submitted(&mut connection, &["GET k", "GET k", "STRLEN k", "STRLEN k"]);
    assert_eq!(classes, [(Class::Read, 1), (Class::Read, 3)]);
    let value = "v".repeat(100_000);
    let line = format!("SET k {value}");
    assert_eq!(submitted_at_first(&[&line[..]; 4]), [(Class::Overwrite, 2)]);
}

/// Two keys of 16 bytes with the same hash: the second word of each brings the hash's state to zero.
fn keys_that_collide() -> [String; 2] {
    const SEED: u64 = 0xa076_1d64_78bd_642f ^ 16u64.wrapping_mul(FACTOR);
    const FACTOR: u64 = 0xe703_7ed1_a0b4_28db;
    let mut keys = (0..u64::MAX).filter_map(|first| {
        let second = fold(SEED ^ first, FACTOR);
        String::from_utf8([first.to_le_bytes(), second.to_le_bytes()].concat()).ok()
    });
    let keys = [(); 2].map(|()| keys.next().expect("one of a few thousand"));
    assert_eq!(key_hash(keys[0].as_bytes()), key_hash(keys[1].as_bytes()));
    keys
}

#[test]
fn keys_that_share_a_hash_are_told_apart() {
    let [a, b] = keys_that_collide();
    assert_ne!(a, b);
    let (mut connection, mut store) = (connection(1), TestStore::default());
    let input = [request(&["SET", &a, "1"]), request(&["SET", &b, "2"])].concat();
    connection.receive(&input, &CONTEXT);
    let submissions = submissions(&mut connection);
    // In one body they are no overwrite of one key: replicas would refuse it as such.
    assert_eq!((submissions.len(), submissions[0].class), (1, Class::Merge));
    let completion = store.run(&submissions[0]);
    assert!(connection.complete(1, completion));
    assert_eq!(output(&mut connection), b"+OK\r\n+OK\r\n");
    assert_eq!(store.0.len(), 2);
}

#[test]
fn every_ending_has_a_clear_text() {
    for (completion, text) in [
        (Completion::Done, "+OK"),
        (
            Completion::Refused("the log is full".into()),
            "-TRYAGAIN the command was not executed: the log is full",
        ),
        (
            Completion::Unknown,
            "-UNKNOWN the update may or may not have been executed: it was not confirmed in time",
        ),
        (Completion::TimedOut, "-TIMEOUT the command was not executed: there was no answer in time"),
        (
            Completion::NoQuorum,
            "-NOQUORUM the command was not executed: this node cannot reach a majority of the replicas",
        ),
        (
            Completion::Overloaded,
            "-OVERLOADED the command was not executed: too many operations are in flight",
        ),
    ] {
        let mut connection = connection(1);
        assert_eq!(submitted(&mut connection, &["SET k 1", "SET k 2"]), [(Class::Overwrite, 2)]);
        assert!(connection.complete(1, completion.clone()));
        assert_eq!(output(&mut connection), format!("{text}\r\n{text}\r\n").as_bytes());
        assert!(!connection.complete(1, completion), "twice");
    }
    // What a state machine must never do: acknowledge a read, or answer too little.
    let mut connection = connection(1);
    submitted(&mut connection, &["GET k", "INCR j", "INCR j"]);
    assert!(!connection.complete(0, Completion::Done) && !connection.complete(3, Completion::Done));
    assert!(connection.complete(1, Completion::Done));
    assert!(output(&mut connection).starts_with(b"-ERR internal error"));
    let mut one = Vec::new();
    put_ok(&mut one);
    assert!(connection.complete(2, Completion::Reply(Arc::from(one))));
    assert!(output(&mut connection).starts_with(b"+OK\r\n-ERR internal error"));
    assert!(!connection.complete(2, Completion::Done));
}

#[test]
fn too_many_commands_pause_the_connection() {
    let mut connection = connection(1);
    let input: Vec<u8> =
        (0..COMMANDS_MAX + 10).flat_map(|key| request(&["INCR", &format!("k{key:05}")])).collect();
    let consumed = connection.receive(&input, &CONTEXT);
    assert_eq!((connection.outstanding(), connection.is_paused()), (COMMANDS_MAX, true));
    assert_eq!(connection.receive(&input[consumed..], &CONTEXT), 0);
    assert_eq!(submissions(&mut connection).len(), COMMANDS_MAX);
    // It is the oldest that counts: the others keep their place until it is answered.
    assert!(connection.complete(2, Completion::Unknown));
    assert!(connection.is_paused());
    assert!(connection.complete(1, Completion::Unknown));
    assert!(!connection.is_paused());
    assert_eq!(connection.receive(&input[consumed..], &CONTEXT), 2 * request(&["INCR", "k00000"]).len());
}

#[test]
fn large_operations_and_unread_replies_pause_the_connection() {
    let mut connection1 = connection(1);
    let value = "v".repeat(1 << 20);
    let mut taken = 0;
    while !connection1.is_paused() {
        let input = request(&["SET", &format!("k{taken}"), &value]);
        assert_eq!(connection1.receive(&input, &CONTEXT), input.len());
        taken += 1;
    }
    assert_eq!(taken, OPERATION_BYTES_MAX.div_ceil(1 << 20));
    complete_all(&mut connection1, &mut TestStore::default());
    assert!(!connection1.is_paused());

    let mut connection2 = connection(2);
    let input = request(&["ECHO", &value]);
    for _ in 0..REPLY_BYTES_PAUSE >> 20 {
        assert_eq!(connection2.receive(&input, &CONTEXT), input.len());
    }
    assert!(connection2.is_paused());
    assert_eq!(connection2.receive(&input, &CONTEXT), 0);
    connection2.sent(1 << 20);
    assert!(!connection2.is_paused());
}

/// As many values are asked for at once as are expected to fit; nothing is lost or stuck.
#[test]
fn large_values_are_read_a_few_at_a_time() {
    let mut connection = connection(1);
    let mut store = TestStore::default();
    let keys = 300;
    for key in 0..keys {
        store.0.insert(format!("k{key}").into_bytes(), vec![b'v'; 1 << 20]);
    }
    let input: Vec<u8> = (0..keys).flat_map(|key| request(&["GET", &format!("k{key}")])).collect();
    assert_eq!(connection.receive(&input, &CONTEXT), input.len());
    let (mut most, mut received, mut answered) = (0, 0, 0);
    loop {
        let batch = submissions(&mut connection);
        if batch.is_empty() {
            break;
        }
        most = most.max(batch.len());
        answered += batch.len();
        for submission in batch {
            let completion = store.run(&submission);
            assert!(connection.complete(submission.slot, completion));
            received += output(&mut connection).len();
        }
    }
    assert_eq!((answered, connection.outstanding()), (keys, 0));
    assert_eq!(received, keys * ((1 << 20) + "$1048576\r\n\r\n".len()));
    assert!(most <= 256, "{most}");
}

#[test]
fn where_memory_is_short_replies_are_taken_one_after_the_other() {
    let mut connection = connection(1);
    assert_eq!(submitted(&mut connection, &["GET a", "GET b"]).len(), 2);
    connection.narrow();
    assert!(connection.has_room_for(1), "there is no output yet");
    let mut reply = Vec::new();
    put_bulk(&mut reply, &vec![b'v'; 1 << 20]);
    assert!(connection.complete(1, Completion::Reply(Arc::from(reply))));
    assert!(connection.has_room_for(2));
    connection.narrow();
    assert!(!connection.has_room_for(2) && connection.postpone(2, b"x"));
    assert_eq!(submissions(&mut connection), []);
    connection.sent(1 << 19);
    assert_eq!(submissions(&mut connection), []);
    connection.sent(1 << 19);
    let again = submissions(&mut connection);
    assert!(again.len() == 1 && again[0].slot == 2 && again[0].body[..] == b"x"[..]);
}

#[test]
fn a_read_that_was_postponed_comes_again_once_there_is_room_for_its_reply() {
    let mut connection = connection(1);
    assert_eq!(submitted(&mut connection, &["GET a", "GET b"]).len(), 2);
    for slot in [1, 2] {
        assert!(connection.postpone(slot, b"x"));
        connection.expect(slot, 5 << 20);
    }
    let mut asked = Vec::new();
    assert_eq!(
        connection.poll_submit_if(|expected| {
            asked.push(expected);
            false
        }),
        None
    );
    let again = connection
        .poll_submit_if(|expected| {
            asked.push(expected);
            true
        })
        .unwrap();
    assert_eq!((again.slot, &asked[..]), (1, &[5 << 20; 2][..]));
    assert_eq!(connection.poll_submit_if(|_| panic!("two are too much for the client")), None);
    let mut reply = Vec::new();
    put_bulk(&mut reply, b"v");
    assert!(connection.complete(1, Completion::Reply(Arc::from(reply))));
    assert_eq!(submissions(&mut connection)[0].slot, 2);
}

#[test]
fn first_values_are_taken_to_be_like_those_that_others_got() {
    let mut connection = connection(1);
    connection.expect_first_values(5 << 20);
    let lines =
        ["GET a", "GET b", "GET c", "GET d"].map(|line| request(&line.split(' ').collect::<Vec<_>>()));
    let input = lines.concat();
    assert_eq!(connection.receive(&input, &CONTEXT), input.len());
    let mut asked = 0;
    let first = connection.poll_submit_if(|expected| {
        asked = expected;
        true
    });
    assert_eq!((first.unwrap().slot, asked), (1, 5 << 20));
    assert_eq!(connection.poll_submit_if(|_| panic!("two are too much for the client")), None);
    // Its own tell more.
    let mut reply = Vec::new();
    put_bulk(&mut reply, b"v");
    assert!(connection.complete(1, Completion::Reply(Arc::from(reply))));
    assert_eq!(submissions(&mut connection).len(), 3);
}

#[test]
fn a_connection_whose_replies_outgrow_all_memory_is_cut_off() {
    let mut connection = connection(1);
    let lines: Vec<String> = (0..12).map(|key| format!("GET k{key}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(submitted(&mut connection, &lines).len(), 12);
    // The oldest is not answered, so that the others pile up; they share their memory in this test.
    let reply: Arc<[u8]> = vec![0; 128 << 20].into();
    let before = (2..=12).take_while(|slot| {
        assert!(connection.complete(*slot, Completion::Reply(reply.clone())));
        !connection.is_finished()
    });
    assert_eq!(before.count(), REPLY_BYTES_MAX >> 27);
    assert_eq!((connection.outstanding(), output(&mut connection).len()), (0, 0));
    assert!(!connection.complete(1, Completion::Done) && !connection.complete(12, Completion::Done));
    assert_eq!(connection.receive(b"PING\r\n", &CONTEXT), 6);
    assert_eq!(output(&mut connection), b"");
}

#[test]
fn quit_and_protocol_errors_end_a_connection_after_what_came_before() {
    for (end, reply) in [
        (&b"QUIT\r\nSET k 2\r\n"[..], &b"+OK\r\n"[..]),
        (b"*1\r\nx\r\nSET k 2\r\n", b"-ERR Protocol error: expected '$', got 'x'\r\n"),
    ] {
        let mut connection = connection(1);
        let input = [&requests(&["SET k 1"]), end].concat();
        assert_eq!(connection.receive(&input, &CONTEXT), input.len());
        assert!(!connection.is_finished());
        assert_eq!(connection.receive(b"SET k 3\r\n", &CONTEXT), 9);
        assert_eq!(submissions(&mut connection).len(), 1);
        assert!(connection.complete(1, Completion::Done));
        assert_eq!(output(&mut connection), [b"+OK\r\n", reply].concat());
        assert!(connection.is_finished());
    }
}

#[test]
fn local_replies_keep_their_turn_and_their_protocol() {
    let mut connection = connection(1);
    let lines = ["PING", "STRLEN k", "PING", "HELLO 3 SETNAME me", "STRLEN k", "ECHO x", "CLIENT GETNAME"];
    assert_eq!(submitted(&mut connection, &lines), [(Class::Read, 2)]);
    assert_eq!(output(&mut connection), b"+PONG\r\n");
    let mut reply = Vec::new();
    put_nil(&mut reply);
    put_nil(&mut reply);
    assert!(connection.complete(1, Completion::Reply(Arc::from(reply))));
    let text = String::from_utf8(output(&mut connection)).unwrap();
    assert!(text.starts_with("$-1\r\n+PONG\r\n%7\r\n"), "{text}");
    assert!(text.ends_with("*0\r\n_\r\n$1\r\nx\r\n$2\r\nme\r\n"), "{text}");
}

#[test]
fn info_shows_what_the_server_reports() {
    let mut connection = connection(1);
    let (out, _) = serve(&mut connection, &mut TestStore::default(), b"INFO\r\n");
    let text = String::from_utf8(out).unwrap();
    for expected in [
        "# Server\r\nredis_version:7.0.15\r\n",
        "\r\n\r\n# Clients\r\nconnected_clients:0\r\nmaxclients:10000\r\n",
        "# Memory\r\nused_memory:0\r\n",
        "# Replication\r\nrole:master\r\n",
        "# Keyspace\r\ndb0:keys=3,expires=0,avg_ttl=0\r\n",
        "# Syros\r\nreplica_role:leader\r\nstatus:normal\r\n",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
    let (out, _) = serve(&mut connection, &mut TestStore::default(), b"INFO syros KEYSPACE nosuch\r\n");
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains("\r\n# Keyspace\r\n") && text.contains("# Syros\r\n") && !text.contains("# Server")
    );
}

#[test]
fn a_long_array_is_written_in_parts() {
    const KEYS: usize = 100_000;
    let mut connection = connection(1);
    assert_eq!(submitted(&mut connection, &["KEYS *", "PING"]), [(Class::Read, 1)]);
    let mut reply = Vec::new();
    put_array(&mut reply, KEYS);
    (0..KEYS).for_each(|number| put_bulk(&mut reply, format!("key:{number:09}").as_bytes()));
    let encoded = reply.len();
    assert!(connection.complete(1, Completion::Reply(Arc::from(reply))));
    let mut expected = format!("*{KEYS}\r\n").into_bytes();
    (0..KEYS).for_each(|number| expected.extend_from_slice(format!("$13\r\nkey:{number:09}\r\n").as_bytes()));
    expected.extend_from_slice(b"+PONG\r\n");
    let mut got = Vec::new();
    while !connection.output().is_empty() {
        let there = connection.output().len();
        assert!(there < 600_000, "{there} bytes at a time");
        assert!(connection.memory_bytes() < encoded + 2_000_000, "it is in memory once");
        // Whatever the socket takes.
        let taken = there.min(77_777);
        got.extend_from_slice(&connection.output()[..taken]);
        connection.sent(taken);
    }
    assert!(got == expected, "{} of {} bytes", got.len(), expected.len());
    assert_eq!((connection.outstanding(), connection.reply_bytes()), (0, 0));
}

#[test]
fn long_maps_and_pairs_are_written_in_parts() {
    const FIELDS: usize = 40_000;
    for (hello, is_map) in [("HELLO 2", true), ("HELLO 2", false), ("HELLO 3", true), ("HELLO 3", false)] {
        let mut connection = connection(1);
        let hello = requests(&[hello]);
        assert_eq!(connection.receive(&hello, &CONTEXT), hello.len());
        output(&mut connection);
        let command = if is_map { "HGETALL h" } else { "HRANDFIELD h 40000 WITHVALUES" };
        assert_eq!(submitted(&mut connection, &[command, "PING"]).len(), 1);
        let mut reply = Vec::new();
        if is_map {
            put_map(&mut reply, FIELDS);
        } else {
            put_pairs(&mut reply, FIELDS);
        }
        let is_resp3 = hello.ends_with(b"3\r\n");
        let mut expected = match (is_map, is_resp3) {
            (_, false) => format!("*{}\r\n", 2 * FIELDS),
            (true, true) => format!("%{FIELDS}\r\n"),
            (false, true) => format!("*{FIELDS}\r\n"),
        };
        for number in 0..FIELDS {
            put_bulk(&mut reply, format!("{number:09}").as_bytes());
            put_integer(&mut reply, 7);
            if is_resp3 && !is_map {
                expected += "*2\r\n";
            }
            expected += &format!("$9\r\n{number:09}\r\n:7\r\n");
        }
        expected += "+PONG\r\n";
        assert!(connection.complete(1, Completion::Reply(Arc::from(reply))));
        assert!(connection.output().len() < 600_000, "not all at a time");
        let got = String::from_utf8(output(&mut connection)).expect("text");
        assert!(got == expected, "{} of {} bytes", got.len(), expected.len());
    }
}

#[test]
fn a_client_that_ignores_counts_sets_fields_blind() {
    let mut connection = connection(1);
    let input = requests(&["CLIENT BLIND ON"]);
    assert_eq!(connection.receive(&input, &CONTEXT), input.len());
    output(&mut connection);
    let mut store = TestStore::default();
    let lines = ["HSET h f 1 g 2", "HDEL h g", "HMSET h a 3", "HSETNX h a 4", "HGETALL h"];
    let (reply, _) = serve(&mut connection, &mut store, &requests(&lines));
    let text = String::from_utf8(reply).expect("text");
    assert_eq!(text, ":-1\r\n:-1\r\n+OK\r\n:0\r\n*4\r\n$1\r\na\r\n$1\r\n3\r\n$1\r\nf\r\n$1\r\n1\r\n");
}

/// LTRIM and LSET say OK, blind or not.
#[test]
fn a_client_that_ignores_counts_changes_lists_blind() {
    let blind = ["LPUSH a x", "RPUSH b x", "LREM c 1 x", "LTRIM d 0 5", "LSET e 0 x"];
    let others = ["LPUSHX f x", "RPUSHX g x", "LPOP h", "RPOP i 2", "LINSERT j BEFORE x y", "RPOPLPUSH k l"];
    let lines = [&["CLIENT BLIND ON"][..], &blind, &others].concat();
    let classes: Vec<Class> = submitted_at_first(&lines).into_iter().map(|(class, _)| class).collect();
    assert_eq!(classes, [&[Class::Merge; 5][..], &[Class::Update; 6]].concat());
    let lines = ["CLIENT BLIND ON", "LPUSH l a b", "LTRIM l 0 5", "LSET l 0 x", "LSET l 9 x", "LPOP l 9"];
    let (replies, _) = serve(&mut connection(1), &mut TestStore::default(), &requests(&lines));
    let expected = "+OK\r\n:-1\r\n+OK\r\n+OK\r\n+OK\r\n*2\r\n$1\r\nx\r\n$1\r\na\r\n";
    assert_eq!(String::from_utf8_lossy(&replies), expected);
}

/// What says whether it took place, or what is there, is not touched.
#[test]
fn a_client_that_ignores_counts_changes_sorted_sets_blind() {
    let blind = [
        "ZADD z 1 m",
        "ZREM z m",
        "ZREMRANGEBYRANK z 0 1",
        "ZREMRANGEBYSCORE z 0 1",
        "ZREMRANGEBYLEX z - +",
        "ZRANGESTORE z z 0 -1",
        "ZUNIONSTORE z 1 z",
        "GEOADD g 1 2 m",
    ];
    let others = [
        "ZADD z NX 1 m",
        "ZADD z CH 1 m",
        "ZADD z INCR 1 m",
        "ZINCRBY z 1 m",
        "ZPOPMIN z",
        "ZMPOP 1 z MIN",
        "GEOADD g CH 1 2 m",
    ];
    for (lines, class) in [(&blind[..], Class::Merge), (&others, Class::Update)] {
        for line in lines {
            assert_eq!(submitted_at_first(&["CLIENT BLIND ON", line]), [(class, 1)], "{line}");
        }
    }
    let lines = ["CLIENT BLIND ON", "ZADD z 1 m 2 n", "ZREM z n", "ZINCRBY z 1 m"];
    let (replies, _) = serve(&mut connection(1), &mut TestStore::default(), &requests(&lines));
    assert_eq!(String::from_utf8_lossy(&replies), "+OK\r\n:-1\r\n:-1\r\n$1\r\n2\r\n");
}

/// A server whose limit can be set, up to 1 GiB, and what happens then.
struct Limited(Cell<u64>, Cell<EvictionSettings>);

impl ServerInfo for Limited {
    fn report(&self) -> ServerReport {
        ServerReport { maxmemory: self.0.get(), eviction: self.1.get(), ..ServerReport::default() }
    }
    fn set_maxmemory(&self, bytes: u64) -> Result<(), &'static str> {
        if bytes > 1 << 30 {
            return Err("no");
        }
        self.0.set(bytes);
        Ok(())
    }
    fn set_eviction(&self, settings: EvictionSettings) -> Result<(), &'static str> {
        self.1.set(settings);
        Ok(())
    }
    fn reset_statistics(&self) {}
}

#[test]
fn config_sets_maxmemory_and_its_policy() {
    let server = Limited(Cell::new(5), Cell::default());
    let mut connection = connection(1);
    let mut ask = |line: &str| {
        let input = requests(&[line]);
        assert_eq!(connection.receive(&input, &Context { info: &server, ..CONTEXT }), input.len());
        String::from_utf8(output(&mut connection)).unwrap()
    };
    let failed = |name: &str, why: &str| {
        format!("-ERR CONFIG SET failed (possibly related to argument '{name}') - {why}\r\n")
    };
    assert_eq!(ask("CONFIG SET maxmemory 100mb"), "+OK\r\n");
    assert_eq!(ask("CONFIG GET maxmemory"), "*2\r\n$9\r\nmaxmemory\r\n$9\r\n104857600\r\n");
    assert_eq!(ask("CONFIG SET MaxMemory 7 maxmemory-policy noeviction appendonly no"), "+OK\r\n");
    for (line, answer) in [
        ("CONFIG SET maxmemory much", failed("maxmemory", "argument must be a memory value")),
        ("CONFIG SET maxmemory -1", failed("maxmemory", "argument must be a memory value")),
        ("CONFIG SET maxmemory 1 maxmemory 2", failed("maxmemory", "duplicate parameter")),
        ("CONFIG SET maxmemory 2gb", failed("maxmemory", "no")),
        ("CONFIG SET maxmemory 1 nosuch 2", {
            "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'\r\n".to_owned()
        }),
        ("CONFIG SET a b c", "-ERR syntax error\r\n".to_owned()),
    ] {
        assert_eq!(ask(line), answer, "{line}");
    }
    let refused = ask("CONFIG SET maxmemory 1 io-threads 4");
    assert!(refused.starts_with("-ERR CONFIG SET failed (possibly related to argument 'io-threads')"));
    assert!(refused.contains("configuration file"), "{refused}");
    assert_eq!(server.0.get(), 7, "all of them or none");
    assert_eq!(ask("CONFIG SET maxmemory-policy Volatile-TTL maxmemory-samples 9"), "+OK\r\n");
    assert_eq!(ask("CONFIG SET maxmemory-policy allkeys-lfu maxmemory 2gb"), failed("maxmemory", "no"));
    assert_eq!(ask("CONFIG SET lfu-decay-time 0 lfu-log-factor 3"), "+OK\r\n");
    let policies = "argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, \
                    volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction";
    assert_eq!(ask("CONFIG SET maxmemory-policy any"), failed("maxmemory-policy", policies));
    assert!(ask("CONFIG GET maxmemory-policy").contains("\r\nvolatile-ttl\r\n"));
    let policy = EvictionPolicy::VolatileTtl;
    let expected = EvictionSettings { policy, samples: 9, lfu_log_factor: 3, lfu_decay_minutes: 0 };
    assert_eq!(server.1.get(), expected);
    assert_eq!(ask("CONFIG SET notify-keyspace-events KEA"), "+OK\r\n");
    assert!(ask("CONFIG GET notify-keyspace-events").ends_with("$3\r\nAKE\r\n"));
    assert!(ask("CONFIG SET notify-keyspace-events KEq").contains("Invalid event class character"));
}

/// A server whose keys have to be counted before INFO can tell their number.
struct Uncounted(u64);

impl ServerInfo for Uncounted {
    fn report(&self) -> ServerReport {
        let mut report = ServerReport::default();
        report.databases[0] = DatabaseReport { keys: self.0, keys_with_expiry: 2 };
        report
    }
    fn has_to_count_keys(&self) -> bool {
        true
    }
    fn reset_statistics(&self) {}
}

#[test]
fn info_waits_until_the_keys_are_counted() {
    let mut connection = connection(1);
    let context = |info| Context { info, ..CONTEXT };
    let old = Uncounted(1);
    let without = requests(&["PING", "INFO server"]);
    assert_eq!(connection.receive(&without, &context(&old)), without.len());
    assert!(!connection.takes_count(), "these sections do not tell it");
    output(&mut connection);

    let (input, rest) = (requests(&["STRLEN k", "INFO keyspace"]), requests(&["PING"]));
    assert_eq!(connection.receive(&[&*input, &*rest].concat(), &context(&old)), input.len());
    assert!(connection.is_paused() && connection.takes_count() && !connection.takes_count());
    assert_eq!(connection.outstanding(), 2);
    let submission = connection.poll_submit().expect("STRLEN");
    connection.counted(&context(&Uncounted(7)));
    assert!(!connection.is_paused());
    assert_eq!(connection.receive(&rest, &context(&old)), rest.len());
    assert_eq!(output(&mut connection), b"", "the reply of STRLEN comes first");
    let mut reply = Vec::new();
    put_nil(&mut reply);
    assert!(connection.complete(submission.slot, Completion::Reply(Arc::from(reply))));
    let text = String::from_utf8(output(&mut connection)).unwrap();
    assert_eq!(text, "$-1\r\n$44\r\n# Keyspace\r\ndb0:keys=7,expires=2,avg_ttl=0\r\n\r\n+PONG\r\n");
    connection.counted(&context(&old));
    assert_eq!((output(&mut connection).len(), connection.outstanding()), (0, 0));
}

#[test]
fn info_counts_what_clients_do() {
    let mut connection = connection(1);
    let input = requests(&[
        "SET a 1",
        "GET a",
        "GET b",
        "MGET a b c",
        "EXISTS a b",
        "GET",
        "NOSUCH",
        "INCR a x",
        "SET t text",
        "INCR t",
    ]);
    serve(&mut connection, &mut TestStore::default(), &input);
    let mut info = |section: &str| {
        let (out, _) = serve(&mut connection, &mut TestStore::default(), &request(&["INFO", section]));
        String::from_utf8(out).unwrap()
    };
    let stats = info("stats");
    for line in ["keyspace_hits:3\r\n", "keyspace_misses:3\r\n", "total_error_replies:4\r\n"] {
        assert!(stats.contains(line), "{line:?} in {stats}");
    }
    assert!(
        !stats.contains("total_net_input_bytes:0\r\n") && !stats.contains("total_net_output_bytes:0\r\n")
    );
    let commands = info("commandstats");
    for line in [
        "cmdstat_get:calls=2,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0\r\n",
        "cmdstat_incr:calls=1,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=1\r\n",
        "cmdstat_set:calls=2,",
    ] {
        assert!(commands.contains(line), "{line:?} in {commands}");
    }
    assert!(info("errorstats").contains("errorstat_ERR:count=4\r\n"));
    assert!(info("cluster").contains("cluster_enabled:0\r\n"));
    assert!(!info("default").contains("cmdstat_get") && info("everything").contains("cmdstat_get"));
    serve(&mut connection, &mut TestStore::default(), &request(&["CONFIG", "RESETSTAT"]));
    let (out, _) = serve(&mut connection, &mut TestStore::default(), &request(&["INFO", "all"]));
    let all = String::from_utf8(out).unwrap();
    assert!(all.contains("keyspace_hits:0\r\n") && !all.contains("cmdstat_get"), "{all}");
}

#[test]
fn reads_say_how_they_are_to_be_answered() {
    let mut connection = connection(1);
    let mut policies = |lines: &[&str]| -> Vec<(Class, Option<ReadPolicy>)> {
        let input = requests(lines);
        assert_eq!(connection.receive(&input, &CONTEXT), input.len());
        let taken = submissions(&mut connection);
        for submission in &taken {
            assert!(connection.complete(submission.slot, Completion::TimedOut));
        }
        taken.into_iter().map(|submission| (submission.class, submission.read_policy)).collect()
    };
    let quorum = Some(ReadPolicy::Quorum);
    assert_eq!(policies(&["GET a", "read QUORUM get b"]), [(Class::Read, None), (Class::Read, quorum)]);
    // Only reads of one kind are packed, and what may be old is not taken for what an update leaves.
    let stale = Some(ReadPolicy::Stale);
    assert_eq!(policies(&["READ stale GET k", "READ stale STRLEN k"]), [(Class::Read, stale)]);
    assert_eq!(policies(&["GET k", "READ stale GET k"]), [(Class::Read, None), (Class::Read, stale)]);
    assert_eq!(policies(&["SET k 1", "READ meta GET k"]), [(Class::Update, None)]);
    assert_eq!(
        policies(&["READ quorum", "GET a", "READ leader GET b", "SET c 1"]),
        [(Class::Read, quorum), (Class::Read, Some(ReadPolicy::Leader)), (Class::Overwrite, quorum),]
    );
    assert_eq!(policies(&["RESET", "GET a"]), [(Class::Read, None)]);
    let before = output(&mut connection).len();
    assert!(before > 0);
    for (line, text) in [
        ("READ", "-ERR READ takes a policy"),
        ("READ nearest GET k", "-ERR READ takes a policy"),
        ("READ quorum SET k 1", "-ERR READ quorum is for commands that only read"),
        ("READ quorum PING", "-ERR READ quorum is for commands that only read"),
        ("READ quorum GET", "-ERR wrong number of arguments for 'get' command"),
        ("READ quorum READ stale GET k", "-ERR unknown command"),
    ] {
        let input = requests(&[line]);
        assert_eq!(connection.receive(&input, &CONTEXT), input.len());
        assert!(submissions(&mut connection).is_empty());
        let reply = String::from_utf8(output(&mut connection)).expect("text");
        assert!(reply.starts_with(text), "{line}: {reply}");
    }
}
