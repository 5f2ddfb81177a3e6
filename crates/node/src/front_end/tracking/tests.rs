use super::*;
use syros_commands::{Parsed, parse};
use syros_resp::TrackingChoice;
use syros_types::{Database, Prng, SessionId};

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

fn changed(keys: &[&str]) -> Vec<Announcement> {
    happened(KeyEvent::Set, keys)
}

/// This has happened to keys.
fn happened(event: KeyEvent, keys: &[&str]) -> Vec<Announcement> {
    let of =
        |key: &&str| Notification { entry: 1, database: Database::FIRST, key: key.as_bytes().into(), event };
    keys.iter().map(of).map(Announcement::KeyEvent).collect()
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
    tracking.on_submit(address, &body(commands), Freshness::Current, (true, false));
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
    assert_eq!(tracking.counts().keys, 2);
    tracking.on_changes(&changed(&["a", "other"]), &BTreeMap::new());
    assert_eq!(told(&mut tracking), ["1: a", "2: a"]);
    tracking.on_changes(&changed(&["a"]), &BTreeMap::new());
    assert!(told(&mut tracking).is_empty());
    tracking.end(1);
    tracking.on_changes(&changed(&["b"]), &BTreeMap::new());
    assert!(told(&mut tracking).is_empty() && tracking.counts().keys == 0);
}

#[test]
fn what_changes_while_it_is_read_is_invalidated_behind_the_reply() {
    let mut tracking = tracking();
    tracking.begin(1, request(&[], false), None);
    tracking.on_submit(1, &body(&["GET a"]), Freshness::Current, (true, false));
    tracking.on_changes(&changed(&["a"]), &BTreeMap::new());
    assert!(told(&mut tracking).is_empty());
    tracking.before_reply(1);
    assert!(told(&mut tracking).is_empty());
    tracking.after_reply(1, true);
    assert_eq!(told(&mut tracking), ["1: a"]);
    tracking.on_submit(1, &body(&["GET a"]), Freshness::Stale, (true, false));
    tracking.after_reply(1, true);
    assert_eq!(told(&mut tracking), ["1: a"], "nobody knows how old it is");
    tracking.on_submit(1, &body(&["GET a"]), Freshness::Current, (false, false));
    tracking.after_reply(1, true);
    tracking.on_changes(&changed(&["a"]), &BTreeMap::new());
    assert!(told(&mut tracking).is_empty(), "it is not kept");
}

#[test]
fn a_reply_of_another_replica_comes_behind_an_invalidation() {
    let mut tracking = tracking();
    tracking.begin(1, request(&[], false), None);
    read(&mut tracking, 1, &["GET a"]);
    read(&mut tracking, 1, &["GET a"]);
    assert!(told(&mut tracking).is_empty());
    tracking.on_submit(1, &body(&["GET a"]), Freshness::Current, (true, false));
    tracking.on_answer(1, false);
    tracking.before_reply(1);
    assert_eq!(told(&mut tracking), ["1: a"]);
    tracking.after_reply(1, true);
}

#[test]
fn what_a_client_writes_itself_is_told_behind_the_reply() {
    let mut tracking = tracking();
    tracking.begin(1, request(&[], false), None);
    // The replica of this process may have executed the update before, or may not.
    for is_executed in [false, true] {
        read(&mut tracking, 1, &["GET a", "GET b"]);
        tracking.on_submit(1, &body(&["INCR a", "GET b"]), Freshness::Current, (true, false));
        if is_executed {
            tracking.on_changes(&changed(&["a"]), &BTreeMap::new());
        }
        tracking.before_reply(1);
        assert_eq!(told(&mut tracking), ["1: b"], "another replica may have given it");
        tracking.after_reply(1, true);
        assert_eq!(told(&mut tracking), ["1: a"]);
    }
    read(&mut tracking, 1, &["LRANGE a 0 -1"]);
    tracking.on_submit(1, &body(&["RPUSH a 1"]), Freshness::Current, (true, false));
    tracking.on_changes(&changed(&["a"]), &BTreeMap::new());
    tracking.after_reply(1, false);
    assert_eq!(told(&mut tracking), ["1: a"], "whatever has become of its own");
    read(&mut tracking, 1, &["LRANGE a 0 -1"]);
    tracking.on_submit(1, &body(&["RPUSH a 1"]), Freshness::Current, (true, true));
    tracking.on_changes(&changed(&["a"]), &BTreeMap::new());
    assert_eq!(told(&mut tracking), ["1: a"], "it may wait for long");
    let flushed = happened(KeyEvent::Flushed, &[""]);
    tracking.on_submit(1, &body(&["FLUSHALL"]), Freshness::Current, (true, false));
    tracking.on_changes(&flushed, &BTreeMap::new());
    assert!(told(&mut tracking).is_empty());
    tracking.after_reply(1, true);
    assert_eq!(told(&mut tracking), ["1: all"]);
}

#[test]
fn a_client_may_be_spared_its_own_updates() {
    let id = |sequence| OperationId { session: SessionId(3), sequence };
    let mut tracking = tracking();
    for (address, prefixes) in [(1, None), (2, Some([]))] {
        let request =
            TrackingRequest { no_loop: true, ..request(&prefixes.unwrap_or([]), prefixes.is_some()) };
        tracking.begin(address, request, None);
    }
    assert!(tracking.spares_own());
    for address in [1, 2] {
        read(&mut tracking, address, &["MGET a b"]);
        tracking.on_submit(address, &body(&["SET a 1"]), Freshness::Current, (true, false));
        tracking.on_sent(address, id(address));
        tracking.before_reply(address);
        tracking.after_reply(address, true);
    }
    assert!(told(&mut tracking).is_empty());
    let by = |update| BTreeMap::from([(1, update)]);
    tracking.on_changes(&changed(&["a", "b"]), &by(id(1)));
    assert_eq!(told(&mut tracking), ["1: b", "2: a b"], "it has not said that it writes the other one");
    tracking.on_changes(&changed(&["a"]), &by(id(1)));
    assert_eq!(told(&mut tracking), ["1: a", "2: a"], "an update is executed once");
    let expired = happened(KeyEvent::Changed, &["b"]);
    tracking.on_changes(&expired, &by(id(2)));
    assert_eq!(told(&mut tracking), ["2: b"], "by the way");
}

#[test]
fn all_that_begins_with_a_prefix_is_told_of() {
    let mut tracking = tracking();
    tracking.begin(1, request(&["user:", "item:"], true), None);
    tracking.begin(2, request(&[], true), None);
    tracking.on_changes(&changed(&["item:1", "other", "user:2", "item:1"]), &BTreeMap::new());
    let expected = ["1: item:1", "1: user:2", "2: item:1 other user:2"];
    assert_eq!(told(&mut tracking), expected, "one message for each prefix");
    let counts = TrackingCounts { clients: 2, keys: 0, items: 0, prefixes: 3 };
    assert_eq!(tracking.counts(), counts);
    tracking.on_submit(1, &body(&["MGET user:1 other"]), Freshness::Current, (true, false));
    tracking.on_changes(&changed(&["user:1"]), &BTreeMap::new());
    assert_eq!(told(&mut tracking), ["1: user:1", "2: user:1"]);
    tracking.on_answer(1, true);
    tracking.before_reply(1);
    tracking.after_reply(1, true);
    assert_eq!(told(&mut tracking), ["1: user:1"], "once more, behind the reply");
}

/// Prefixes are looked up by halves: any of them has to be found, and no other.
#[test]
fn the_prefix_of_a_key_is_found_among_many() {
    let mut prng = Prng::new(1);
    for _ in 0..2_000 {
        let mut word = |letters: u64| -> String {
            (0..letters).map(|_| if prng.chance(1, 2) { 'a' } else { 'b' }).collect()
        };
        let prefixes: Vec<String> = (0..6).map(|number| word(1 + number % 4)).collect();
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        let key = word(3);
        let mut tracking = tracking();
        tracking.begin(1, request(&prefixes, true), None);
        tracking.on_changes(&changed(&[&key]), &BTreeMap::new());
        let expected = prefixes.iter().any(|prefix| key.starts_with(prefix)).then(|| format!("1: {key}"));
        assert_eq!(told(&mut tracking), Vec::from_iter(expected), "{key} of {prefixes:?}");
    }
}

#[test]
fn too_many_changes_for_too_many_prefixes_are_told_at_once() {
    let mut tracking = tracking();
    for address in 1..=2 {
        tracking.begin(address, request(&["user:"], true), None);
    }
    tracking.begin(3, request(&[], false), None);
    read(&mut tracking, 3, &["GET user:7"]);
    let keys: Vec<String> = (0..BROADCAST_MAX / 2).map(|key| format!("user:{key}")).collect();
    let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    tracking.on_changes(&changed(&keys), &BTreeMap::new());
    let told_of_each = told(&mut tracking);
    assert!(told_of_each.len() == 3 && told_of_each[1].starts_with("1: user:0 user:1 "));
    read(&mut tracking, 3, &["GET user:7"]);
    keys.push("other");
    tracking.on_changes(&changed(&keys), &BTreeMap::new());
    assert_eq!(told(&mut tracking), ["1: all", "2: all", "3: user:7"]);
}

#[test]
fn the_table_is_limited_and_emptied() {
    let mut tracking = tracking();
    tracking.begin(1, request(&[], false), None);
    for key in 0..15 {
        read(&mut tracking, 1, &[&format!("GET {key}")]);
    }
    assert_eq!((told(&mut tracking).len(), tracking.counts().keys), (5, 10));
    tracking.set_keys_max(1);
    assert_eq!((told(&mut tracking).len(), tracking.counts().keys), (9, 1));
    let flushed = happened(KeyEvent::Flushed, &[""]);
    tracking.on_changes(&flushed, &BTreeMap::new());
    assert_eq!((told(&mut tracking), tracking.counts().keys), (vec!["1: all".to_owned()], 0));
}
