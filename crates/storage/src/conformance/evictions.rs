//! Keys that go because memory is short.

use super::{apply, body, body_if_data, body_of, ms, read};
use crate::Engine;
use syros_commands::access::{Announcement, KeyEvent};
use syros_commands::families::{Evict, RecordVersions};
use syros_commands::{Arguments, Operation, Reply};
use syros_types::{Database, OpNumber};

/// What engines have to pass.
///
/// # Panics
/// If an engine does not.
pub(super) fn test<E: Engine>(make: &impl Fn() -> E) {
    test_what_goes(make);
    test_what_has_changed(make);
}

/// Evicts keys of this database that were chosen after this entry: a 1 for each that went.
fn evict<E: Engine>(
    engine: &mut E,
    (database, chosen_after): (Database, u64),
    of_expiring: bool,
    keys: &[&str],
) -> String {
    let words: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    let operation = Operation::new(Evict { chosen_after, of_expiring, keys: Arguments::new(&words) });
    let (mut body, mut evaluated) = (Vec::new(), Vec::new());
    operation.in_database(database).encode(&mut body);
    let is_certain = engine.evaluate(&body, &mut evaluated);
    let replies = apply(engine, ms(1), &body);
    if is_certain {
        assert_eq!(Reply::decode_all(&evaluated).as_deref(), Ok(&replies[..]));
    }
    let [Reply::Array(flags)] = &replies[..] else { panic!("{replies:?}") };
    flags.iter().map(|flag| if *flag == Reply::Integer(1) { '1' } else { '0' }).collect()
}

fn test_what_goes<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    engine.set_notifying(true);
    let third = Database::new(3).expect("a database");
    apply(&mut engine, ms(1), &body(&["MSET a 1 b 2", "SADD s m n", "SET e 1 PXAT 1000", "RPUSH l 1"]));
    apply(&mut engine, ms(1), &body_if_data(&[b"SET", b"a", b"3"], third).expect("data"));
    engine.take_announcements();
    assert_eq!(evict(&mut engine, (Database::FIRST, 0), true, &["a", "e", "s", "none"]), "0100");
    assert_eq!(evict(&mut engine, (Database::FIRST, 0), false, &["a", "e", "s", "none", "a"]), "10100");
    assert_eq!(evict(&mut engine, (third, 0), false, &["a"]), "1");
    let told = engine.take_announcements().into_iter().filter_map(Announcement::into_key_event);
    let told: Vec<_> = told.collect();
    assert!(told.iter().all(|one| one.event == KeyEvent::Evicted));
    let names: Vec<_> = told.iter().map(|one| (one.database.number(), &*one.key)).collect();
    assert_eq!(names, [(0, &b"e"[..]), (0, b"a"), (0, b"s"), (3, b"a")]);
    let exists = body_of(&[b"EXISTS", b"a", b"b", b"s", b"e", b"l"]);
    assert_eq!(read(&engine, ms(1), &exists), [Reply::Integer(2)]);
    assert_eq!(engine.len(), 2);
    // A key that has expired is gone already.
    apply(&mut engine, ms(1), &body(&["SET e 1 PXAT 5"]));
    engine.advance(ms(9));
    assert_eq!(evict(&mut engine, (Database::FIRST, 0), false, &["e"]), "0");
}

/// A key that has been changed since it was chosen stays, once versions are recorded.
fn test_what_has_changed<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let mut record = Vec::new();
    Operation::new(RecordVersions).encode(&mut record);
    for (number, commands) in [(1, ["SET early 1", "SET again 1"]), (5, ["SET again 2", "SET new 2"])] {
        engine.begin_entry(OpNumber(number));
        apply(&mut engine, ms(1), &body(&commands));
        if number == 1 {
            assert_eq!(apply(&mut engine, ms(1), &record), [Reply::Ok]);
        }
    }
    engine.begin_entry(OpNumber(6));
    assert_eq!(evict(&mut engine, (Database::FIRST, 4), false, &["early", "again", "new", "none"]), "1000");
    assert_eq!(evict(&mut engine, (Database::FIRST, 5), false, &["early", "again", "new", "none"]), "0110");
}
