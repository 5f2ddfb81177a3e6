//! MULTI, EXEC and DISCARD: what is submitted, and what is answered where.

mod common;

use common::{CONTEXT, TestStore, complete_all, connection, output, request, requests, serve, submissions};
use std::sync::Arc;
use syros_commands::{Operation, Reply, operations, put_array, put_bulk, put_integer};
use syros_resp::limits::{
    COMMANDS_MAX, NODE_COMMANDS_PER_TURN, TRANSACTION_COMMANDS_MAX, TRANSACTION_KEYS_MAX,
    TRANSACTION_NODE_COMMANDS_MAX,
};
use syros_resp::{Completion, Connection, Context, MessageAnswer, Submission, Unavailable};
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::{Class, Footprint, ReadPolicy, key_hash};

/// Receives lines; what may go.
fn submitted(connection: &mut Connection, lines: &[&str]) -> Vec<Submission> {
    let input = requests(lines);
    assert_eq!(connection.receive(&input, &CONTEXT), input.len());
    submissions(connection)
}

/// The replies to lines that are received and executed at once, by a server that has executed `before`.
fn replies_after(before: &[&str], lines: &[&str]) -> String {
    let (mut connection, mut store) = (connection(1), TestStore::default());
    serve(&mut connection, &mut store, &requests(before));
    let (replies, _) = serve(&mut connection, &mut store, &requests(lines));
    String::from_utf8(replies).unwrap()
}

fn replies(lines: &[&str]) -> String {
    replies_after(&[], lines)
}

/// Lines between MULTI and EXEC.
fn transaction<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    [&["MULTI"], lines, &["EXEC"]].concat()
}

fn hashes(keys: &[&str]) -> Footprint {
    Footprint::of(keys.iter().map(|key| key_hash(key.as_bytes())).collect())
}

#[test]
fn a_transaction_is_one_body_of_the_class_that_its_operations_have_together() {
    for (lines, class, footprint) in [
        (&["SET k 1", "SET k 2"][..], Class::Overwrite, hashes(&["k"])),
        (&["SET k 1", "SET l 2"], Class::Merge, hashes(&["k", "l"])),
        (&["SET k 1", "BLIND INCR k"], Class::Merge, hashes(&["k"])),
        (&["SET k 1", "PING", "GET k"], Class::Update, hashes(&["k"])),
        (&["SET k 1", "INCR l"], Class::Update, hashes(&["k", "l"])),
        (&["GET k", "GET l"], Class::Read, hashes(&["k", "l"])),
        (&["GET k", "STRLEN k"], Class::Read, hashes(&["k"])),
        (&["SET k 1", "FLUSHALL"], Class::Merge, Footprint::All),
        (&["INCR k", "DBSIZE"], Class::Update, Footprint::All),
        (&["DBSIZE", "GET k"], Class::Read, Footprint::All),
    ] {
        let bodies = submitted(&mut connection(1), &transaction(lines));
        let [submission] = &bodies[..] else { panic!("{lines:?}: {bodies:?}") };
        assert_eq!((submission.class, &submission.footprint), (class, &footprint), "{lines:?}");
        let count = lines.iter().filter(|line| **line != "PING").count();
        assert_eq!(operations(&submission.body).count(), count, "{lines:?}");
    }
}

/// Neither what comes before nor what comes after becomes a part of it.
#[test]
fn nothing_is_packed_with_a_transaction() {
    let lines = ["SET k 1", "MULTI", "INCR k", "GET l", "EXEC", "INCR k", "MULTI", "INCR k", "EXEC", "GET l"];
    let (mut connection, mut store) = (connection(1), TestStore::default());
    let mut turns = vec![submitted(&mut connection, &lines)];
    while let Some(turn) = turns.last().filter(|turn| !turn.is_empty()) {
        for submission in turn.clone() {
            let completion = store.run(&submission);
            assert!(connection.complete(submission.slot, completion));
        }
        turns.push(submissions(&mut connection));
    }
    let counts = |turn: &Vec<Submission>| -> Vec<usize> {
        turn.iter().map(|submission| operations(&submission.body).count()).collect()
    };
    let expected: [&[usize]; 5] = [&[1], &[2], &[1, 1], &[1], &[]];
    assert_eq!(turns.iter().map(counts).collect::<Vec<_>>(), expected);
    let expected = "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:2\r\n$-1\r\n:3\r\n\
                    +OK\r\n+QUEUED\r\n*1\r\n:4\r\n$-1\r\n";
    assert_eq!(String::from_utf8(output(&mut connection)).unwrap(), expected);
}

#[test]
fn nothing_is_submitted_before_exec_or_without_it() {
    let mut connection = connection(1);
    for end in ["DISCARD", "RESET"] {
        assert!(submitted(&mut connection, &["MULTI", "SET k 1", "INCR l"]).is_empty());
        assert!(submitted(&mut connection, &[end, "PING"]).is_empty());
        assert_eq!(connection.outstanding(), 0);
        output(&mut connection);
    }
    assert_eq!(
        replies(&["MULTI", "SET k 1", "RESET", "EXEC"]).split("\r\n").nth(3),
        Some("-ERR EXEC without MULTI")
    );
    assert_eq!(submitted(&mut connection, &["MULTI", "SET k 1", "EXEC"]).len(), 1);
    // What is queued counts as memory, until it is dropped.
    let before = connection.memory_bytes();
    submitted(&mut connection, &["MULTI", &format!("SET k {}", "v".repeat(100_000))]);
    assert!(connection.memory_bytes() > before + 100_000);
    submitted(&mut connection, &["DISCARD"]);
    assert!(connection.memory_bytes() < before + 1000);
}

#[test]
fn what_the_connection_answers_itself_has_its_place() {
    let lines = ["PING", "SET k 1", "ECHO x", "CLIENT SETNAME me", "GET k", "SET k", "CLIENT GETNAME"];
    assert!(
        replies(&transaction(&lines))
            .ends_with("-EXECABORT Transaction discarded because of previous errors.\r\n")
    );
    let lines = [
        "PING",
        "SET k 1",
        "ECHO x",
        "CLIENT SETNAME me",
        "GET k",
        "SET k 1 XY",
        "CLIENT GETNAME",
        "INCR no x",
    ];
    let lines = &lines[..7];
    let expected = "*7\r\n+PONG\r\n+OK\r\n$1\r\nx\r\n+OK\r\n$1\r\n1\r\n-ERR syntax error\r\n$2\r\nme\r\n";
    assert!(replies(&transaction(lines)).ends_with(expected));
    // Without data, with others that wait, and with nothing at all.
    assert_eq!(replies(&transaction(&["PING", "TIME"])).split("\r\n").nth(3), Some("*2"));
    assert_eq!(replies(&["MULTI", "EXEC"]), "+OK\r\n*0\r\n");
    let lines = ["GET k", "MULTI", "PING", "EXEC", "MULTI", "EXEC", "GET k"];
    assert_eq!(replies(&lines), "$-1\r\n+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n+OK\r\n*0\r\n$-1\r\n");
    // What is set before EXEC does not show before it.
    let lines = ["MULTI", "CLIENT SETNAME me", "DISCARD", "CLIENT GETNAME"];
    assert_eq!(replies(&lines), "+OK\r\n+QUEUED\r\n+OK\r\n$-1\r\n");
}

/// HELLO takes effect at its place.
#[test]
fn each_element_is_written_in_the_protocol_of_its_place() {
    let lines = transaction(&["GET no", "HELLO 3", "GET no", "HELLO 2", "GET no"]);
    let replies = replies(&lines);
    let nils: Vec<_> = replies.split("\r\n").filter(|line| ["$-1", "_"].contains(line)).collect();
    assert_eq!(nils, ["$-1", "_", "$-1"]);
}

#[test]
fn commands_that_are_refused_doom_the_transaction() {
    let doomed = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    for line in [
        "NOSUCH",
        "GET",
        "SET k",
        "CLIENT NOSUCH",
        "CLIENT ID x",
        "READ leader GET k",
        "CLIENT REPLY OFF",
        "XGROUP CREATECONSUMER s g",
        "XINFO STREAM",
        "OBJECT ENCODING",
        "MEMORY USAGE",
        "SCRIPT LOAD",
        "FUNCTION DUMP x",
    ] {
        let (mut connection, mut store) = (connection(1), TestStore::default());
        let lines = ["MULTI", "SET k 1", line, "SET k 2", "EXEC", "GET k"];
        let (replies, _) = serve(&mut connection, &mut store, &requests(&lines));
        let replies = String::from_utf8(replies).unwrap();
        assert!(replies.starts_with("+OK\r\n+QUEUED\r\n-ERR "), "{line}: {replies}");
        assert!(replies.ends_with(&format!("+QUEUED\r\n{doomed}$-1\r\n")), "{line}: {replies}");
    }
    // A request that is too large to be one.
    let mut connection = connection(1);
    let value = "x".repeat(VALUE_BYTES_MAX + 1);
    let input =
        [requests(&["MULTI"]), request(&["SET", "k", &value]), requests(&["SET k 1", "EXEC"])].concat();
    let (replies, _) = serve(&mut connection, &mut TestStore::default(), &input);
    assert!(String::from_utf8_lossy(&replies).ends_with(doomed));
    // As in Valkey 8, nested ones as well. Redis 7.0 refuses these and goes on.
    for line in ["MULTI", "WATCH k"] {
        let expected = format!(
            "+OK\r\n-ERR Command not allowed inside a transaction\r\n+QUEUED\r\n{doomed}\
             -ERR EXEC without MULTI\r\n-ERR DISCARD without MULTI\r\n"
        );
        assert_eq!(self::replies(&["MULTI", line, "SET k 1", "EXEC", "EXEC", "DISCARD"]), expected, "{line}");
    }
}

#[test]
fn errors_of_one_command_leave_the_others_alone() {
    let lines = transaction(&["SET k text", "INCR k", "APPEND k s", "GET k"]);
    let error = "-ERR value is not an integer or out of range";
    assert!(replies(&lines).ends_with(&format!("*4\r\n+OK\r\n{error}\r\n:5\r\n$5\r\ntexts\r\n")));
}

/// Nobody is told anything: the updates are blind, and the reads are left out.
#[test]
fn a_transaction_without_replies_goes_blind() {
    let mut connection = connection(1);
    let lines = ["CLIENT REPLY OFF", "MULTI", "INCR k", "GET l", "PING", "DEL k", "EXEC"];
    let bodies = submitted(&mut connection, &lines);
    let [submission] = &bodies[..] else { panic!("{bodies:?}") };
    assert_eq!((submission.class, &submission.footprint), (Class::Merge, &hashes(&["k"])));
    for completion in [Completion::Done, Completion::Unknown] {
        let submission = submitted(&mut connection, &["MULTI", "SET j 1", "EXEC"]).remove(0);
        connection.complete(submission.slot, completion);
    }
    connection.complete(submission.slot, Completion::Done);
    assert!(
        submitted(&mut connection, &["MULTI", "GET k", "EXEC"]).is_empty(),
        "a read that nobody is told of"
    );
    submitted(&mut connection, &["CLIENT REPLY ON", "PING"]);
    assert_eq!(output(&mut connection), b"+OK\r\n+PONG\r\n");
    assert_eq!(connection.outstanding(), 0);
    // Only the first reply is skipped: MULTI's own.
    let lines = ["CLIENT REPLY SKIP", "MULTI", "SET k 1", "EXEC"];
    assert_eq!(replies(&lines), "+QUEUED\r\n*1\r\n+OK\r\n");
}

#[test]
fn counts_that_a_client_gives_up_go_blind_in_a_transaction() {
    let mut connection = connection(1);
    let lines =
        ["CLIENT BLIND ON", "MULTI", "APPEND k 1", "DEL l", "SET m 1", "CLIENT BLIND OFF", "EXEC", "DEL k"];
    let bodies = submitted(&mut connection, &lines);
    assert_eq!(bodies[0].class, Class::Merge);
    connection.complete(bodies[0].slot, Completion::Done);
    let text = String::from_utf8(output(&mut connection)).unwrap();
    assert!(text.ends_with("*4\r\n:-1\r\n:-1\r\n+OK\r\n+OK\r\n"), "{text}");
    assert_eq!(submissions(&mut connection)[0].class, Class::Update, "DEL counts again");
    // One by one, and what it answers then.
    let lines = transaction(&["BLIND INCR k", "SET l 1", "BLIND GET k", "BLIND"]);
    assert!(replies(&lines).contains("-ERR wrong number of arguments for 'blind' command"));
    assert!(
        replies(&transaction(&["BLIND INCR k", "BLIND GET k"]))
            .ends_with("*2\r\n+OK\r\n-ERR BLIND needs an update, and 'get' is none\r\n")
    );
}

/// Whatever becomes of a submission, it is one reply.
#[test]
fn a_transaction_that_fails_has_one_reply() {
    for (completion, text) in [
        (Completion::Unknown, "-UNKNOWN "),
        (Completion::Refused("it is full".into()), "-TRYAGAIN "),
        (Completion::TimedOut, "-TIMEOUT "),
        (Completion::NoQuorum, "-NOQUORUM "),
        (Completion::OutOfMemory, "-OOM "),
        (Completion::Overloaded, "-OVERLOADED "),
    ] {
        let mut connection = connection(1);
        let lines = ["MULTI", "INCR k", "PING", "INCR l", "EXEC", "PING"];
        let submission = submitted(&mut connection, &lines).remove(0);
        assert_eq!(output(&mut connection), b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
        assert!(connection.complete(submission.slot, completion));
        let reply = String::from_utf8(output(&mut connection)).unwrap();
        assert!(reply.starts_with(text) && reply.ends_with("\r\n+PONG\r\n"), "{reply}");
        assert_eq!(reply.lines().count(), 2, "{reply}");
        assert_eq!((connection.outstanding(), connection.reply_bytes()), (0, 0));
    }
}

/// What was refused for want of memory and runs scripts is submitted once more: the scripts are told. What comes after it on
/// the same keys waits for that.
#[test]
fn scripts_that_were_refused_for_want_of_memory_are_told_and_tried_again() {
    for lines in [
        &["EVAL return+1 1 k"][..],
        &["EVALSHA 0123456789012345678901234567890123456789 1 k"],
        &["FCALL f 1 k"],
        &["MULTI", "DEL k", "EVAL return+1 1 k", "EXEC"],
    ] {
        let mut connection = connection(1);
        // It is known from now on.
        let first = submitted(&mut connection, &["SCRIPT LOAD return+1"]).remove(0);
        connection.complete(first.slot, Completion::Overloaded);
        let refused = submitted(&mut connection, &[lines, &["GET k"]].concat());
        assert_eq!(refused.len(), 1, "{lines:?}");
        let of = |submission: &Submission| -> Vec<String> {
            operations(&submission.body)
                .map(|operation| format!("{:?}", operation.unwrap().command))
                .collect()
        };
        output(&mut connection);
        assert!(connection.complete(refused[0].slot, Completion::OutOfMemory));
        assert_eq!(output(&mut connection), b"");
        let told = submissions(&mut connection);
        assert_eq!(told.len(), 1, "{lines:?}: GET waits");
        assert_eq!((told[0].slot, &told[0].footprint), (refused[0].slot, &refused[0].footprint));
        let texts = of(&told[0]).join(" ");
        assert!(texts.contains("lacks_memory: true"), "{texts}");
        assert_eq!(texts.replace("lacks_memory: true", "lacks_memory: false"), of(&refused[0]).join(" "));
        // Nobody asks a third time.
        assert!(connection.complete(told[0].slot, Completion::OutOfMemory));
        assert!(String::from_utf8(output(&mut connection)).unwrap().starts_with("-OOM "), "{lines:?}");
        assert_eq!(submissions(&mut connection).len(), 1, "GET");
    }
    // A transaction that wants memory for anything else is refused as a whole.
    let mut connection = connection(1);
    let submission = submitted(&mut connection, &["MULTI", "SET k 1", "EVAL return+1 1 k", "EXEC"]).remove(0);
    connection.complete(submission.slot, Completion::OutOfMemory);
    assert!(String::from_utf8(output(&mut connection)).unwrap().contains("\r\n-OOM "));
    assert!(submissions(&mut connection).is_empty());
}

/// Of commands that were packed and refused for want of memory, those that need none are submitted once more.
#[test]
fn what_needs_no_memory_is_not_refused_with_what_does() {
    let mut connection = connection(1);
    let first = submitted(&mut connection, &["GET k", "APPEND k x", "GET k", "DEL k", "SET k 2"]).remove(0);
    connection.complete(first.slot, reply_of(&[Reply::Nil]));
    let packed = submissions(&mut connection).remove(0);
    assert_eq!(names(&packed), ["Append", "Get", "Del", "Set"]);
    assert!(connection.complete(packed.slot, Completion::OutOfMemory));
    let again = submissions(&mut connection).remove(0);
    assert_eq!((names(&again), again.slot), (vec!["Get".to_owned(), "Del".to_owned()], packed.slot));
    assert_eq!((again.class, &again.footprint), (Class::Update, &hashes(&["k"])));
    assert!(connection.complete(again.slot, reply_of(&[Reply::Bulk(b"v".to_vec()), Reply::Integer(1)])));
    let oom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    let expected = format!("$-1\r\n{oom}$1\r\nv\r\n:1\r\n{oom}");
    assert_eq!(String::from_utf8(output(&mut connection)).unwrap(), expected);
    assert_eq!((connection.outstanding(), connection.reply_bytes()), (0, 0));

    // From now on they are not packed together. What only reads is a read then, and what answers OK alone needs no reply.
    submitted(&mut connection, &["GET k"]);
    let bodies = submitted(&mut connection, &["SET k 1", "GET k", "SET k 2"]);
    assert!(bodies.is_empty(), "GET k is in flight");
    for (refused, left, done, answer) in [
        (&["SET k 1", "LTRIM k 0 1", "SET k 2"][..], &["LTrim"][..], Completion::Done, "+OK\r\n"),
        (&["APPEND k x", "GET k"], &["Get"], reply_of(&[Reply::Nil]), "$-1\r\n"),
        (&["APPEND k x", "GET k"], &["Get"], Completion::Unknown, ""),
    ] {
        let mut connection = common::connection(1);
        let first = submitted(&mut connection, &["DEL k"]).remove(0);
        assert!(submitted(&mut connection, refused).is_empty(), "DEL k is in flight");
        connection.complete(first.slot, reply_of(&[Reply::Integer(0)]));
        let packed = submissions(&mut connection).remove(0);
        assert_eq!(names(&packed).len(), refused.len());
        output(&mut connection);
        connection.complete(packed.slot, Completion::OutOfMemory);
        let again = submissions(&mut connection).remove(0);
        assert_eq!(names(&again), left);
        assert_eq!(again.class == Class::Read, left == ["Get"]);
        connection.complete(again.slot, done.clone());
        let found = String::from_utf8(output(&mut connection)).unwrap();
        let unknown = if done == Completion::Unknown { refused.len() } else { 0 };
        assert_eq!(found.matches("-UNKNOWN").count(), unknown, "{found}");
        let refusals = if unknown == 0 { refused.len() - left.len() } else { 0 };
        assert_eq!((found.matches(oom).count(), found.contains(answer)), (refusals, true), "{found}");
    }
}

fn reply_of(replies: &[Reply]) -> Completion {
    let mut encoded = Vec::new();
    replies.iter().for_each(|reply| reply.encode(&mut encoded));
    Completion::Reply(encoded.into())
}

#[test]
fn a_server_that_takes_no_commands_takes_no_transaction() {
    let loading = Context { unavailable: Some(Unavailable::Loading), ..CONTEXT };
    let mut connection = connection(1);
    let mut answers = |lines: &[&str], context: &Context<'_>| {
        connection.receive(&requests(lines), context);
        assert!(submissions(&mut connection).is_empty());
        String::from_utf8(output(&mut connection)).unwrap()
    };
    let error = "LOADING Redis is loading the dataset in memory";
    let aborted = "-EXECABORT Transaction discarded because of";
    let expected = format!("+OK\r\n-{error}\r\n{aborted} previous errors.\r\n");
    assert_eq!(answers(&["MULTI", "GET k", "EXEC"], &loading), expected);
    answers(&["MULTI", "GET k"], &CONTEXT);
    assert_eq!(answers(&["EXEC"], &loading), format!("{aborted}: {error}\r\n"));
    assert_eq!(answers(&["MULTI", "CLIENT ID", "EXEC"], &loading), "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
}

#[test]
fn a_transaction_that_only_reads_is_read_as_the_connection_wants_it() {
    let mut connection = connection(1);
    let lines = ["READ quorum", "MULTI", "GET k", "GET l", "EXEC", "MULTI", "GET m", "SET m 1", "EXEC"];
    let bodies = submitted(&mut connection, &lines);
    let policies: Vec<_> = bodies.iter().map(|submission| submission.read_policy).collect();
    assert_eq!(policies, [Some(ReadPolicy::Quorum), None]);
    // It may come again.
    assert!(connection.postpone(bodies[0].slot, &bodies[0].body));
    assert_eq!(submissions(&mut connection), bodies[..1]);
}

/// A long array comes in parts, each when the client has taken the one before.
#[test]
fn long_replies_come_in_parts() {
    const VALUES: usize = 40;
    let mut connection = connection(1);
    let lines = ["MULTI".to_owned()].into_iter().chain((0..VALUES).map(|number| format!("GET k{number}")));
    let lines: Vec<String> = lines.chain(["MGET a b", "PING", "EXEC", "PING"].map(String::from)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let submission = submitted(&mut connection, &lines).remove(0);
    output(&mut connection);
    let (mut reply, value) = (Vec::new(), vec![b'v'; 100_000]);
    (0..VALUES).for_each(|_| put_bulk(&mut reply, &value));
    put_array(&mut reply, 2);
    (0..2).for_each(|_| put_bulk(&mut reply, &value));
    connection.complete(submission.slot, Completion::Reply(Arc::from(reply)));
    let (mut parts, mut all) = (0, Vec::new());
    while !connection.output().is_empty() {
        assert!(connection.output().len() < 500_000, "{}", connection.output().len());
        parts += 1;
        all.extend_from_slice(connection.output());
        connection.sent(connection.output().len());
    }
    assert!(parts > 10, "{parts}");
    let bulk = [b"$100000\r\n", &value[..], b"\r\n"].concat();
    let head = format!("*{}\r\n", VALUES + 2).into_bytes();
    let tail = b"+PONG\r\n+PONG\r\n".to_vec();
    assert_eq!(all, [head, bulk.repeat(VALUES), b"*2\r\n".to_vec(), bulk.repeat(2), tail].concat());
    assert_eq!((connection.outstanding(), connection.reply_bytes()), (0, 0));
}

#[test]
fn transactions_have_limits() {
    let after = |lines: &[&str], last: &str| {
        let (mut connection, mut store) = (connection(1), TestStore::default());
        let replies = serve(&mut connection, &mut store, &requests(lines)).0;
        let replies = String::from_utf8(replies).unwrap();
        let executed = serve(&mut connection, &mut store, &requests(&["EXEC"])).0;
        assert!(executed.starts_with(if last.is_empty() { b"*" } else { b"-EXECABORT" }), "{last}");
        assert!(last.is_empty() || replies.trim_end().ends_with(last), "{last}");
    };
    let begun = |line: &'static str, count: usize| [vec!["MULTI"], vec![line; count]].concat();
    let most = begun("PING", TRANSACTION_COMMANDS_MAX);
    after(&most, "");
    after(&[&most[..], &["PING"]].concat(), "-ERR a transaction has at most 65536 commands");
    const { assert!(TRANSACTION_COMMANDS_MAX > COMMANDS_MAX) };
    let keys = vec!["k"; TRANSACTION_KEYS_MAX - 1].join(" ");
    let exists = format!("EXISTS {keys}");
    after(&["MULTI", &exists, "GET k"], "");
    after(&["MULTI", &exists, "GET k", "GET k"], "-ERR a transaction names at most 65536 keys");
    after(&begun("DBSIZE", 8), "");
    after(&begun("DBSIZE", 9), "-ERR a transaction has at most 8 commands on all keys");
    after(&begun("EVAL_RO return 0", 2_049), "-ERR a transaction has at most 2048 scripts");
    // A node does nothing else while it answers all of them.
    after(&begun("INFO", TRANSACTION_NODE_COMMANDS_MAX), "");
    let about_node = "-ERR a transaction has at most 256 commands about its node, such as INFO";
    for line in ["INFO", "COMMAND", "CONFIG GET *", "LASTSAVE", "SLOWLOG GET", "ACL CAT", "MEMORY DOCTOR"] {
        after(&begun(line, TRANSACTION_NODE_COMMANDS_MAX + 1), about_node);
    }
    for line in ["SELECT 1", "ECHO x", "TIME", "CLIENT ID"] {
        after(&begun(line, TRANSACTION_NODE_COMMANDS_MAX + 1), "");
    }
    after(&begun("SETRANGE k 16000000 x", 68), "-ERR the transaction would take too long to execute");
    let value = "v".repeat(9 << 20);
    for line in [format!("SET k {value}"), format!("ECHO {value}")] {
        let text = "-ERR transaction of ";
        let (mut connection, lines) = (connection(1), ["MULTI", &line, &line]);
        let (replies, _) = serve(&mut connection, &mut TestStore::default(), &requests(&lines));
        assert!(String::from_utf8_lossy(&replies).split("\r\n").nth(2).unwrap().starts_with(text));
        assert!(connection.memory_bytes() < 1 << 20, "what is never executed is not kept");
    }
}

/// Found by a hostile client: ten thousand commands about the node came in one piece, and all other clients waited for seconds.
#[test]
fn commands_about_the_node_leave_others_their_turn() {
    let mut connection = connection(1);
    let transaction = [vec!["MULTI"], vec!["LASTSAVE"; 100], vec!["EXEC"]].concat();
    for (lines, turns) in [
        (vec!["PING"; 1000], 1),
        (vec!["LASTSAVE"; 10 * NODE_COMMANDS_PER_TURN], 10),
        ([&transaction[..], &transaction[..], &["PING"]].concat(), 3),
        (vec!["LASTSAVE"; NODE_COMMANDS_PER_TURN], 1),
    ] {
        let input = requests(&lines);
        let (mut rest, mut taken) = (&input[..], 0);
        loop {
            rest = &rest[connection.receive(rest, &CONTEXT)..];
            taken += 1;
            if !connection.rests() {
                break;
            }
            assert!(!connection.is_paused(), "nobody says when it goes on");
        }
        assert_eq!((rest.len(), taken), (0, turns), "{}", lines[lines.len() / 2]);
        connection.sent(connection.output().len());
    }
}

/// As client libraries send it: in one piece, again and again.
#[test]
fn pipelined_transactions_are_answered_in_order() {
    let (mut connection, mut store) = (connection(1), TestStore::default());
    let one = transaction(&["INCR a", "INCR b", "MGET a b"]);
    let (replies, _) = serve(&mut connection, &mut store, &requests(&one.repeat(3000)));
    let expected: String = (1..=3000)
        .map(|number: usize| {
            let bulk = format!("${}\r\n{number}\r\n", number.to_string().len());
            let queued = "+QUEUED\r\n".repeat(3);
            format!("+OK\r\n{queued}*3\r\n:{number}\r\n:{number}\r\n*2\r\n{bulk}{bulk}")
        })
        .collect();
    assert_eq!(String::from_utf8(replies).unwrap(), expected);
    // Beside others whose replies have not come.
    let lines = ["GET x", "MULTI", "SET y 1", "EXEC", "MULTI", "PING", "EXEC", "GET z"];
    let bodies = submitted(&mut connection, &lines);
    assert_eq!(bodies.len(), 3);
    let mut reply = Vec::new();
    put_integer(&mut reply, 7);
    connection.complete(bodies[1].slot, Completion::Done);
    connection.complete(bodies[2].slot, Completion::Reply(Arc::from(reply.clone())));
    assert!(connection.output().is_empty());
    connection.complete(bodies[0].slot, Completion::Reply(Arc::from(reply)));
    let expected = ":7\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n:7\r\n";
    assert_eq!(String::from_utf8(output(&mut connection)).unwrap(), expected);
    complete_all(&mut connection, &mut store);
    assert_eq!(connection.outstanding(), 0);
}

/// What comes behind a transaction, and asks the registry of subscriptions, waits for it, and not it for that.
#[test]
fn a_transaction_is_answered_before_what_asks_behind_it() {
    for (inside, behind) in
        [(None, "PUBLISH c y"), (Some("PUBLISH c x"), "PUBLISH c y"), (None, "PUBSUB NUMPAT")]
    {
        let (mut connection, mut store) = (connection(1), TestStore::default());
        let lines: Vec<&str> =
            ["MULTI", "INCR a"].into_iter().chain(inside).chain(["EXEC", behind, "PING"]).collect();
        let input = requests(&lines);
        let mut taken = connection.receive(&input, &CONTEXT);
        let mut got = Vec::new();
        for _ in 0..4 {
            complete_all(&mut connection, &mut store);
            while let Some(asked) = connection.poll_messages() {
                connection.answer_messages(&vec![MessageAnswer::Count(3); asked.len()]);
            }
            taken += connection.receive(&input[taken..], &CONTEXT);
            got.extend(output(&mut connection));
        }
        let got = String::from_utf8(got).unwrap();
        assert!(taken == input.len() && connection.outstanding() == 0, "{got}");
        let elements = if inside.is_some() {
            "+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:3\r\n"
        } else {
            "+QUEUED\r\n*1\r\n:1\r\n"
        };
        assert!(
            got.starts_with(&format!("+OK\r\n{elements}")) && got.to_lowercase().contains("pong"),
            "{got}"
        );
    }
}

/// Commands are counted when they are executed, as in Redis.
#[test]
fn what_is_executed_is_counted() {
    let lines = transaction(&["SET k text", "GET k", "INCR k", "PING"]);
    let text = replies_after(
        &[&lines[..], &["MULTI", "GET k", "DISCARD", "MULTI", "NOSUCH", "EXEC"]].concat(),
        &["INFO commandstats"],
    );
    for expected in [
        "cmdstat_multi:calls=3,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0",
        "cmdstat_exec:calls=1,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0",
        "cmdstat_get:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0",
        "cmdstat_incr:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=1",
        "cmdstat_ping:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// A body's operations, by their names.
fn names(submission: &Submission) -> Vec<String> {
    let name = |operation: Operation<'_>| {
        let shown = format!("{:?}", operation.command);
        shown.split(['(', ' ']).next().unwrap().to_owned()
    };
    operations(&submission.body).map(|operation| name(operation.unwrap())).collect()
}

/// WATCH waits for the versions, and nothing overtakes it; EXEC depends on them.
#[test]
fn watch_asks_for_versions_and_exec_depends_on_them() {
    let (mut connection, mut store) = (connection(1), TestStore::default());
    let input = requests(&["GET k", "WATCH k", "GET l"]);
    let mut rest = &input[connection.receive(&input, &CONTEXT)..];
    assert!(connection.is_paused() && !rest.is_empty());
    let step = |connection: &mut Connection, store: &mut TestStore, expected: &[&[&str]]| {
        let bodies = submissions(connection);
        assert_eq!(bodies.iter().map(names).collect::<Vec<_>>(), expected);
        for submission in &bodies {
            connection.complete(submission.slot, store.run(submission));
        }
        bodies
    };
    // No versions are recorded before the first WATCH.
    let asked = step(&mut connection, &mut store, &[&["Get"], &["Versions"]]);
    assert_eq!((asked[1].class, asked[1].read_policy), (Class::Read, Some(ReadPolicy::Auto)));
    let recording = step(&mut connection, &mut store, &[&["RecordVersions"]]);
    assert_eq!((recording[0].class, &recording[0].footprint), (Class::Merge, &Footprint::All));
    assert!(connection.is_paused());
    step(&mut connection, &mut store, &[&["Versions"]]);
    assert_eq!(output(&mut connection), b"$-1\r\n+OK\r\n");
    assert!(!connection.is_paused());
    rest = &rest[connection.receive(rest, &CONTEXT)..];
    assert!(rest.is_empty());
    step(&mut connection, &mut store, &[&["Get"]]);
    for (line, reply) in [("PING", "*2\r\n+OK\r\n+PONG\r\n"), ("SET k 1", "*-1\r\n")] {
        output(&mut connection);
        serve(&mut connection, &mut store, &requests(&["WATCH k j", line]));
        let input = requests(&["MULTI", "SET l 1", "PING", "EXEC", "GET m"]);
        let mut rest = &input[connection.receive(&input, &CONTEXT)..];
        assert!(
            connection.is_paused() && !rest.is_empty(),
            "what comes next depends on whether it is executed"
        );
        let bodies = step(&mut connection, &mut store, &[&["Unchanged", "Set"]]);
        assert_eq!((bodies[0].class, &bodies[0].footprint), (Class::Update, &hashes(&["j", "k", "l"])));
        rest = &rest[connection.receive(rest, &CONTEXT)..];
        assert!(rest.is_empty());
        complete_all(&mut connection, &mut store);
        let replies = String::from_utf8(output(&mut connection)).unwrap();
        assert_eq!(replies, format!("+OK\r\n+QUEUED\r\n+QUEUED\r\n{reply}$-1\r\n"));
    }
    // The next transaction depends on nothing.
    let bodies = submitted(&mut connection, &["MULTI", "SET k 1", "EXEC"]);
    assert_eq!(names(&bodies[0]), ["Set"]);
}

#[test]
fn a_watch_that_fails_is_an_error() {
    for (step, completion, text) in [
        (0, Completion::NoQuorum, "-NOQUORUM "),
        (1, Completion::Unknown, "-UNKNOWN "),
        (2, Completion::TimedOut, "-TIMEOUT "),
        (2, Completion::Reply([].into()), "-ERR internal error"),
    ] {
        let (mut connection, mut store) = (connection(1), TestStore::default());
        let input = requests(&["WATCH k"]);
        assert_eq!(connection.receive(&input, &CONTEXT), input.len());
        for _ in 0..step {
            let submission = connection.poll_submit().unwrap();
            connection.complete(submission.slot, store.run(&submission));
        }
        let submission = connection.poll_submit().unwrap();
        connection.complete(submission.slot, completion);
        let reply = String::from_utf8(output(&mut connection)).unwrap();
        assert!(reply.starts_with(text) && reply.ends_with("\r\n"), "{reply}");
        assert!(!connection.is_paused() && connection.outstanding() == 0);
        let bodies = submitted(&mut connection, &["MULTI", "SET k 1", "EXEC"]);
        assert_eq!(names(&bodies[0]), ["Set"], "it watches nothing");
    }
    let loading = Context { unavailable: Some(Unavailable::Loading), ..CONTEXT };
    let mut connection = connection(1);
    connection.receive(&requests(&["WATCH k", "PING"]), &loading);
    assert!(connection.output().starts_with(b"-LOADING") && submissions(&mut connection).is_empty());
}

/// What the connection has answered by itself is as if it had not been, if the transaction executes nothing.
#[test]
fn nothing_is_left_of_a_transaction_that_executes_nothing() {
    for (change, completion, name) in [
        ("PING", None, "$2\r\nme\r\n"),
        ("SET k 1", None, "$-1\r\n"),
        ("PING", Some(Completion::NoQuorum), "$-1\r\n"),
    ] {
        let (mut connection, mut store) = (connection(1), TestStore::default());
        serve(&mut connection, &mut store, &requests(&["WATCH k", change]));
        let input = requests(&["MULTI", "CLIENT SETNAME me", "EXEC", "CLIENT GETNAME"]);
        let rest = &input[connection.receive(&input, &CONTEXT)..];
        let submission = connection.poll_submit().unwrap();
        let completion = completion.unwrap_or_else(|| store.run(&submission));
        connection.complete(submission.slot, completion);
        connection.receive(rest, &CONTEXT);
        let replies = String::from_utf8(output(&mut connection)).unwrap();
        assert!(replies.ends_with(name), "{change}: {replies}");
    }
}

#[test]
fn watched_keys_have_limits() {
    let (mut connection, mut store) = (connection(1), TestStore::default());
    let keys: Vec<String> = (0..TRANSACTION_KEYS_MAX).map(|number| format!("k{number}")).collect();
    let line = format!("WATCH {}", keys.join(" "));
    assert_eq!(serve(&mut connection, &mut store, &requests(&[&line])).0, b"+OK\r\n");
    let (replies, _) = serve(&mut connection, &mut store, &requests(&["WATCH other", "MULTI", "GET k0"]));
    let replies = String::from_utf8(replies).unwrap();
    let mut lines = replies.lines();
    assert_eq!(lines.next(), Some("-ERR a connection watches at most 65536 keys"));
    assert_eq!(lines.nth(1), Some("-ERR a transaction names at most 65536 keys"));
    serve(&mut connection, &mut store, &requests(&["DISCARD"]));
    let key = "k".repeat(65_000);
    let keys: Vec<String> = (0..129).map(|number| format!("{key}{number}")).collect();
    let line = format!("WATCH {}", keys.join(" "));
    let (reply, _) =
        serve(&mut connection, &mut store, &requests(&[&line[..line.len() - 65_010], "MULTI", "EXEC"]));
    assert_eq!(reply, b"+OK\r\n+OK\r\n*0\r\n");
    let (reply, _) = serve(&mut connection, &mut store, &requests(&[&line, &line]));
    assert!(reply.ends_with(b"-ERR a connection watches keys of at most 8454144 bytes\r\n"));
    let (reply, _) = serve(&mut connection, &mut store, &request(&["WATCH", &"k".repeat(65_537)]));
    assert_eq!(reply, b"-ERR key of 65537 bytes exceeds the maximum of 65536\r\n");
}
