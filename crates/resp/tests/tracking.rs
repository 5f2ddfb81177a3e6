//! A client that keeps copies of what it reads: one command at a time, and messages between replies.

mod common;

use common::{CONTEXT, TestStore, complete_all, connection, output, requests, submissions};
use std::sync::Arc;
use syros_commands::put_bulk;
use syros_resp::{Completion, Connection, ProcessRequest, TrackingChoice, TrackingRequest};

fn text(connection: &mut Connection) -> String {
    String::from_utf8_lossy(&output(connection)).into_owned()
}

/// A connection that has sent these lines, the last of them a CLIENT TRACKING.
fn tracking(lines: &[&str]) -> Connection {
    let mut connection = connection(7);
    connection.receive(&requests(lines), &CONTEXT);
    let Some(ProcessRequest::Track(request)) = connection.take_request() else { panic!("it tracks") };
    connection.set_tracking(request);
    connection.answer_request(&syros_resp::ProcessAnswer::Ok, Default::default(), CONTEXT.now);
    text(&mut connection);
    connection
}

fn bulk(value: &str) -> Completion {
    let mut reply = Vec::new();
    put_bulk(&mut reply, value.as_bytes());
    Completion::Reply(Arc::from(reply))
}

#[test]
fn a_client_that_tracks_has_one_command_under_way() {
    let mut connection = tracking(&["HELLO 3", "CLIENT TRACKING ON"]);
    let input = requests(&["GET a", "GET b"]);
    let consumed = connection.receive(&input, &CONTEXT);
    assert!(consumed < input.len() && connection.is_paused() && connection.keeps_copies());
    let [first] = submissions(&mut connection).try_into().expect("one");
    connection.push_invalidation(Some(&[b"a"[..].into()]));
    connection.complete(first.slot, bulk("1"));
    connection.push_invalidation(Some(&[b"a"[..].into(), b"b"[..].into()]));
    connection.push_invalidation(None);
    let expected = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n$1\r\n1\r\n\
                    >2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n";
    assert_eq!(text(&mut connection), expected);
    assert!(!connection.is_paused());
    assert_eq!(connection.receive(&input[consumed..], &CONTEXT), input.len() - consumed);
    complete_all(&mut connection, &mut TestStore::default());
}

#[test]
fn clients_say_what_they_keep() {
    let keeps = |connection: &mut Connection, lines: &[&str]| {
        let input = requests(lines);
        let mut consumed = 0;
        while consumed < input.len() {
            let taken = connection.receive(&input[consumed..], &CONTEXT);
            consumed += taken;
            if taken == 0 {
                complete_all(connection, &mut TestStore::default());
            }
        }
        let keeps = connection.keeps_copies();
        complete_all(connection, &mut TestStore::default());
        keeps
    };
    let mut by_choice = tracking(&["CLIENT TRACKING ON OPTIN"]);
    assert!(!keeps(&mut by_choice, &["GET a"]));
    assert!(keeps(&mut by_choice, &["CLIENT CACHING YES", "GET a"]));
    assert!(!keeps(&mut by_choice, &["GET a"]));
    assert!(keeps(&mut by_choice, &["CLIENT CACHING YES", "MULTI", "GET a", "GET b", "EXEC"]));
    assert!(!keeps(&mut by_choice, &["GET a"]));
    let mut unless = tracking(&["CLIENT TRACKING ON OPTOUT"]);
    assert!(keeps(&mut unless, &["GET a"]));
    assert!(!keeps(&mut unless, &["CLIENT CACHING NO", "GET a"]));
    assert!(keeps(&mut unless, &["GET a"]));
    text(&mut unless);
    keeps(&mut unless, &["CLIENT CACHING YES"]);
    let wrong = "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.\r\n";
    assert_eq!(text(&mut unless), wrong);
}

#[test]
fn a_client_of_resp2_hears_of_others_only() {
    let mut listener = connection(8);
    assert_eq!(listener.push_invalidation(None), 0);
    assert_eq!(text(&mut listener), "", "it subscribes to nothing");
    let mut asked = connection(9);
    let redirect = TrackingRequest { redirect: Some(8), ..TrackingRequest::default() };
    asked.set_tracking(Some(redirect));
    asked.receive(
        &requests(&["CLIENT GETREDIR", "CLIENT TRACKINGINFO", "RESET", "CLIENT GETREDIR"]),
        &CONTEXT,
    );
    let info = "*6\r\n$5\r\nflags\r\n*1\r\n$2\r\non\r\n$8\r\nredirect\r\n:8\r\n$8\r\nprefixes\r\n*0\r\n";
    assert_eq!(text(&mut asked), format!(":8\r\n{info}+RESET\r\n:-1\r\n"));
    assert!(!asked.is_tracking());
    let choice = TrackingChoice::OptIn;
    asked.set_tracking(Some(TrackingRequest { choice, ..TrackingRequest::default() }));
    asked.receive(&requests(&["CLIENT CACHING YES", "CLIENT TRACKINGINFO"]), &CONTEXT);
    let flags = "+OK\r\n*6\r\n$5\r\nflags\r\n*3\r\n$2\r\non\r\n$5\r\noptin\r\n$11\r\ncaching-yes\r\n";
    assert!(text(&mut asked).starts_with(flags));
}
