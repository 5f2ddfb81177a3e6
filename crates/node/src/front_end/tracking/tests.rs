use super::*;
use syros_commands::{Parsed, parse};
use syros_resp::TrackingChoice;
use syros_types::Database;

fn body(commands: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    for command in commands {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("{command}") };
        operation.encode(&mut body);
    }
    body
}

fn request(prefixes: &[&str], is_broadcast: bool) -> TrackingRequest {
    TrackingRequest {
        is_broadcast,
        prefixes: prefixes.iter().map(|prefix| prefix.as_bytes().to_vec()).collect(),
        choice: TrackingChoice::All,
        no_loop: false,
        redirect: None,
    }
}

fn changed(keys: &[&str]) -> Vec<Notification> {
    let of = |key: &&str| Notification {
        entry: 1,
        database: Database::FIRST,
        key: key.as_bytes().into(),
        event: KeyEvent::Set,
    };
    keys.iter().map(of).collect()
}

/// What clients have been told since the last call.
fn told(tracking: &mut Tracking) -> Vec<String> {
    let show = |Invalidation { address, keys }: Invalidation| match keys {
        None => format!("{address}: all"),
        Some(keys) => {
            let keys: Vec<_> = keys.iter().map(|key| String::from_utf8_lossy(key)).collect();
            format!("{address}: {}", keys.join(" "))
        }
    };
    tracking.take().into_iter().map(show).collect()
}

fn tracking() -> Tracking {
    let mut tracking = Tracking::new(10);
    tracking.set_told(true, true);
    tracking
}

/// A read that the own replica answers.
fn read(tracking: &mut Tracking, address: u64, commands: &[&str]) {
    tracking.on_submit(address, &body(commands), Freshness::Current, true);
    tracking.on_answer(address, true);
    tracking.before_reply(address);
    tracking.after_reply(address, true);
}

#[test]
fn a_key_is_invalidated_once_for_each_read() {
    let mut tracking = tracking();
    tracking.begin(1, request(&[], false), None);
    tracking.begin(2, request(&[], false), None);
    read(&mut tracking, 1, &["GET a", "HGET b f"]);
    read(&mut tracking, 2, &["GET a"]);
    assert_eq!(tracking.keys(), 2);
    tracking.on_changes(&changed(&["a", "other"]));
    assert_eq!(told(&mut tracking), ["1: a", "2: a"]);
    tracking.on_changes(&changed(&["a"]));
    assert!(told(&mut tracking).is_empty());
    tracking.end(1);
    tracking.on_changes(&changed(&["b"]));
    assert!(told(&mut tracking).is_empty() && tracking.keys() == 0);
}

#[test]
fn what_changes_while_it_is_read_is_invalidated_behind_the_reply() {
    let mut tracking = tracking();
    tracking.begin(1, request(&[], false), None);
    tracking.on_submit(1, &body(&["GET a"]), Freshness::Current, true);
    tracking.on_changes(&changed(&["a"]));
    assert!(told(&mut tracking).is_empty());
    tracking.before_reply(1);
    assert!(told(&mut tracking).is_empty());
    tracking.after_reply(1, true);
    assert_eq!(told(&mut tracking), ["1: a"]);
    tracking.on_submit(1, &body(&["GET a"]), Freshness::Stale, true);
    tracking.after_reply(1, true);
    assert_eq!(told(&mut tracking), ["1: a"], "nobody knows how old it is");
    tracking.on_submit(1, &body(&["GET a"]), Freshness::Current, false);
    tracking.after_reply(1, true);
    tracking.on_changes(&changed(&["a"]));
    assert!(told(&mut tracking).is_empty(), "it is not kept");
}

#[test]
fn a_reply_of_another_replica_comes_behind_an_invalidation() {
    let mut tracking = tracking();
    tracking.begin(1, request(&[], false), None);
    read(&mut tracking, 1, &["GET a"]);
    read(&mut tracking, 1, &["GET a"]);
    assert!(told(&mut tracking).is_empty());
    tracking.on_submit(1, &body(&["GET a"]), Freshness::Current, true);
    tracking.on_answer(1, false);
    tracking.before_reply(1);
    assert_eq!(told(&mut tracking), ["1: a"]);
    tracking.after_reply(1, true);
    tracking.on_submit(1, &body(&["SET a 1"]), Freshness::Current, true);
    tracking.before_reply(1);
    assert_eq!(told(&mut tracking), ["1: a"], "its own update");
}

#[test]
fn all_that_begins_with_a_prefix_is_told_of() {
    let mut tracking = tracking();
    tracking.begin(1, request(&["user:", "item:"], true), None);
    tracking.begin(2, request(&[], true), None);
    tracking.on_changes(&changed(&["item:1", "other", "user:2", "item:1"]));
    assert_eq!(told(&mut tracking), ["1: item:1 user:2", "2: item:1 other user:2"]);
    tracking.on_submit(1, &body(&["MGET user:1 other"]), Freshness::Current, true);
    tracking.on_changes(&changed(&["user:1"]));
    assert_eq!(told(&mut tracking), ["1: user:1", "2: user:1"]);
    tracking.on_answer(1, true);
    tracking.before_reply(1);
    tracking.after_reply(1, true);
    assert_eq!(told(&mut tracking), ["1: user:1"], "once more, behind the reply");
}

#[test]
fn the_table_is_limited_and_emptied() {
    let mut tracking = tracking();
    tracking.begin(1, request(&[], false), None);
    for key in 0..15 {
        read(&mut tracking, 1, &[&format!("GET {key}")]);
    }
    assert_eq!((told(&mut tracking).len(), tracking.keys()), (5, 10));
    tracking.set_keys_max(1);
    assert_eq!((told(&mut tracking).len(), tracking.keys()), (9, 1));
    let mut flushed = changed(&[""]);
    flushed[0].event = KeyEvent::Flushed;
    tracking.on_changes(&flushed);
    assert_eq!((told(&mut tracking), tracking.keys()), (vec!["1: all".to_owned()], 0));
}
