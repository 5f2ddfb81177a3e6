//! DEBUG: who may use it, and what scripts are told of it.

mod common;

use common::{CONTEXT, output, request, submissions};
use std::sync::Arc;
use syros_commands::{Generation, operations};
use syros_resp::{Connection, DebugAccess, Identity, Shared, Submission};

fn connection(shared: &Arc<Shared>, address: &str) -> Connection {
    let identity = Identity { id: 1, address: address.into(), local_address: "127.0.0.1:6379".into() };
    Connection::with_shared(identity, CONTEXT.now, Arc::clone(shared))
}

/// Receives a request; what goes to the members.
fn submitted(connection: &mut Connection, words: &[&str]) -> Vec<Submission> {
    let input = request(words);
    assert_eq!(connection.receive(&input, &CONTEXT), input.len());
    submissions(connection)
}

#[test]
fn debug_object_reaches_data_only_for_those_who_may_use_debug() {
    let [here, elsewhere] = ["127.0.0.1:50000", "10.0.0.1:50000"];
    for (access, address, is_allowed) in [
        (DebugAccess::Nobody, here, false),
        (DebugAccess::Local, elsewhere, false),
        (DebugAccess::Local, here, true),
        (DebugAccess::Everybody, elsewhere, true),
    ] {
        let shared = Arc::new(Shared::new(access));
        for words in [&["DEBUG", "OBJECT", "k"][..], &["READ", "stale", "debug", "object", "k"]] {
            let mut connection = connection(&shared, address);
            let sent = submitted(&mut connection, words).len();
            assert_eq!(sent, usize::from(is_allowed), "{access:?} {address} {words:?}");
            let answer = String::from_utf8(output(&mut connection)).unwrap();
            assert_eq!(answer.starts_with("-ERR"), !is_allowed, "{answer}");
        }
        let mut connection = connection(&shared, address);
        submitted(&mut connection, &["MULTI"]);
        submitted(&mut connection, &["DEBUG", "OBJECT", "k"]);
        let sent = submitted(&mut connection, &["EXEC"]).len();
        assert_eq!(sent, usize::from(is_allowed), "{access:?} {address} in a transaction");
    }
}

#[test]
fn scripts_may_call_debug_if_the_node_says_so_and_all_members_know_how() {
    let debugs = |shared: &Arc<Shared>, address| {
        let sent = submitted(&mut connection(shared, address), &["EVAL", "return 1", "1", "k"]);
        let operation = operations(&sent[0].body).next().unwrap().unwrap();
        operation.terms().expect("a script").debugs
    };
    let [here, elsewhere] = ["127.0.0.1:50000", "10.0.0.1:50000"];
    let shared = Arc::new(Shared::new(DebugAccess::Local));
    let set = |address, flag| {
        let mut connection = connection(&shared, address);
        submitted(&mut connection, &["DEBUG", "SET-DISABLE-DENY-SCRIPTS", flag]);
        output(&mut connection)
    };
    assert!(!debugs(&shared, here));
    assert!(set(elsewhere, "1").starts_with(b"-ERR DEBUG command not allowed"));
    assert!(!debugs(&shared, here));
    assert_eq!(set(here, "1"), b"+OK\r\n");
    assert!(debugs(&shared, here));
    assert!(!debugs(&shared, elsewhere), "its client could not call DEBUG either");
    shared.set_generation(Generation::ScriptTerms);
    assert!(!debugs(&shared, here), "a member would refuse the call");
    shared.set_generation(Generation::NEWEST);
    assert!(debugs(&shared, here));
    assert_eq!(set(here, "0"), b"+OK\r\n");
    assert!(!debugs(&shared, here));
}
