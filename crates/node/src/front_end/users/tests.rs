//! What a front end makes of answers about users.

use super::*;
use syros_commands::acl::UserChange;

const START: Instant = Instant(1_000_000);

fn changed() -> Users {
    let mut users = Users::default();
    users.set(b"u", &[b"on"], UserChange::Always).unwrap();
    users
}

fn answer(reply: &Reply) -> Outcome {
    let mut encoded = Vec::new();
    reply.encode(&mut encoded);
    Outcome::Reply(encoded.into())
}

fn submission(words: &[&[u8]]) -> Submission {
    let Ok(syros_commands::Parsed::Data(operation)) = syros_commands::parse(words) else {
        panic!("{words:?}")
    };
    let mut body = Vec::new();
    operation.encode(&mut body);
    let description = describe(&body).unwrap();
    let (class, footprint) = (description.class, description.footprint);
    Submission { slot: 4, body: body.into(), class, footprint, read_policy: None, waits: false }
}

fn reply(address: u64) -> Withheld {
    Withheld { from: (address, 4), since: START, completion: Completion::Done }
}

#[test]
fn users_are_read_at_once_and_then_again_and_again() {
    let mut watch = UserWatch::default();
    assert!(watch.next_errand(START, None).is_none(), "nobody wants them");
    watch.begin(START, Vec::new());
    let errand = watch.next_errand(START, None).expect("they are read");
    assert_eq!((errand.kind, errand.class), (ErrandKind::Users, Class::Read));
    assert!(watch.next_errand(START.after(INTERVAL), None).is_none(), "one read at a time");
    let users = changed();
    let looked = watch.on_looked(START, &answer(&Reply::Bulk(users.encode())));
    assert!(matches!(looked, Looked::Users(found) if found == users));
    assert_eq!(watch.deadline(), START.after(INTERVAL));
    assert!(watch.next_errand(START, Some(&users)).is_none());
    let later = START.after(INTERVAL);
    assert!(watch.next_errand(later, Some(&users)).is_some());
    assert!(matches!(watch.on_looked(later, &answer(&Reply::Nil)), Looked::Same));
    for bad in [answer(&Reply::Ok), answer(&Reply::Bulk(b"x".to_vec())), Outcome::NoQuorum] {
        assert!(matches!(watch.on_looked(later, &bad), Looked::Nothing), "{bad:?}");
        assert_eq!(watch.deadline(), later.after(INTERVAL));
    }
}

#[test]
fn a_reply_to_a_change_waits_for_a_read_that_begins_after_it() {
    let mut watch = UserWatch::default();
    watch.begin(START, Vec::new());
    watch.next_errand(START, None).expect("a read begins");
    watch.note(1, &submission(&[b"ACL", b"SETUSER", b"u", b"on"]));
    watch.note(2, &submission(&[b"FLUSHALL"]));
    watch.note(3, &submission(&[b"ACL", b"DELUSER", b"u"]));
    assert!(watch.withhold(START, reply(2)).is_some(), "it changes no users");
    assert!(watch.withhold(START, reply(1)).is_none());
    assert!(watch.withhold(START, reply(1)).is_some(), "once");
    // The read that was under way does not count.
    watch.on_looked(START, &answer(&Reply::Nil));
    assert!(watch.released().is_empty());
    watch.next_errand(START, None).expect("the next read begins at once");
    assert!(watch.withhold(START, reply(3)).is_none());
    // A read that fails releases nothing.
    watch.on_looked(START, &Outcome::TimedOut);
    let later = START.after(INTERVAL);
    watch.next_errand(later, None).expect("it is tried again");
    watch.on_looked(later, &answer(&Reply::Bulk(changed().encode())));
    let released: Vec<u64> = watch.released().iter().map(|reply| reply.from.0).collect();
    assert_eq!(released, [1, 3]);
    // What was refused at once has changed nothing.
    watch.note(1, &submission(&[b"ACL", b"SETUSER", b"u", b"on"]));
    watch.withdraw((1, 4));
    assert!(watch.withhold(later, reply(1)).is_some());
    // Who has gone waits for nothing.
    watch.note(5, &submission(&[b"ACL", b"SETUSER", b"u", b"on"]));
    watch.forget(5);
    assert!(watch.withhold(later, reply(5)).is_some());
}

#[test]
fn a_new_cluster_gets_its_password_first() {
    let mut watch = UserWatch::default();
    watch.begin(START, vec![b"resetpass".to_vec()]);
    watch.next_errand(START, None).expect("a read begins");
    watch.on_looked(START, &answer(&Reply::Bulk(Users::default().encode())));
    assert!(watch.is_first_change_due(&Users::default()) && !watch.is_first_change_due(&changed()));
    assert_eq!(watch.first_change().kind, ErrandKind::FirstUser);
    assert_eq!(watch.deadline(), Instant::NEVER);
    watch.on_changed(START);
    assert!(watch.next_errand(START, None).is_some());
}
