//! Whom a thrifty client asks.

use super::*;
use crate::client::updates::TURN_UPDATES;

/// A thrifty client of five replicas that has heard of all of them: 1 and 2 are near, 3 and 4 a millisecond farther.
fn thrifty() -> Harness {
    let mut config = Config::new(Configuration::first(Group::new(5).unwrap(), FastQuorum::Majority), 1);
    config.settings.write_policy = WritePolicy::Thrifty;
    let mut harness = Harness::with(config, &[0, 1, 2, 3, 4]);
    harness.submit(Class::Overwrite);
    assert_eq!(recipients(&harness.drain().0), [0, 1, 2, 3, 4], "nobody has been heard of");
    (0..3).for_each(|from| harness.ok(from, 0, 2));
    harness.pass(Duration::from_millis(1));
    (3..5).for_each(|from| harness.ok(from, 0, 2));
    harness.drain();
    harness
}

fn recipients(sent: &[(u8, Message)]) -> Vec<u8> {
    paths(sent).into_iter().map(|(to, ..)| to).collect()
}

#[test]
fn a_thrifty_client_asks_the_nearest_fast_quorum() {
    let mut harness = thrifty();
    for sequence in 3..10 {
        let token = harness.submit(Class::Overwrite);
        let (sent, _) = harness.drain();
        assert_eq!(recipients(&sent), [0, 1, 2]);
        let Message::Request { recipients, .. } = &sent[0].1 else { panic!("no request") };
        assert!(recipients.iter().eq([0, 1, 2].map(ReplicaId)), "the leader is told");
        (0..3).for_each(|from| harness.ok(from, 0, sequence));
        assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
    }
    // Once a second all are asked, so that it is known who is near.
    harness.pass(Duration::from_secs(1));
    harness.submit(Class::Overwrite);
    assert_eq!(recipients(&harness.drain().0), [0, 1, 2, 3, 4]);
    harness.submit(Class::Overwrite);
    assert_eq!(recipients(&harness.drain().0), [0, 1, 2]);
}

#[test]
fn a_thrifty_client_asks_all_that_are_as_near_by_turns() {
    let mut harness = thrifty();
    // All are about as near now.
    for sequence in 3..20 {
        harness.now.instant = harness.now.instant.after(Duration::from_secs(1));
        harness.submit(Class::Overwrite);
        (0..5).for_each(|from| harness.ok(from, 0, sequence));
    }
    harness.drain();
    let mut asked = [0; 5];
    let mut before = Vec::new();
    let mut turns = 0;
    for sequence in 20..20 + 4 * TURN_UPDATES {
        harness.submit(Class::Overwrite);
        let to = recipients(&harness.drain().0);
        assert_eq!((to.len(), to[0]), (3, 0));
        to.iter().for_each(|replica| asked[usize::from(*replica)] += 1);
        (0..5).for_each(|from| harness.ok(from, 0, sequence));
        turns += u64::from(to != before);
        before = to;
    }
    // Many in a row go to the same ones.
    assert_eq!(turns, 5);
    let half = 2 * TURN_UPDATES;
    assert_eq!(asked, [2 * half, half, half, half, half]);
}

#[test]
fn a_thrifty_client_asks_the_rest_when_somebody_does_not_answer() {
    // Silent for a while.
    let mut harness = thrifty();
    harness.submit(Class::Overwrite);
    harness.drain();
    (0..2).for_each(|from| harness.ok(from, 0, 3));
    harness.pass(Duration::from_millis(3));
    assert!(harness.drain().0.is_empty());
    harness.pass(Duration::from_millis(3));
    assert_eq!(recipients(&harness.drain().0), [3, 4]);
    harness.ok(4, 0, 3);
    assert_eq!(harness.drain().1.len(), 1);
    // It is not asked again.
    harness.submit(Class::Overwrite);
    assert!(!recipients(&harness.drain().0).contains(&2));

    // Gone.
    let mut harness = thrifty();
    harness.submit(Class::Overwrite);
    harness.drain();
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(2)));
    assert_eq!(recipients(&harness.drain().0), [3, 4]);

    // Unwilling.
    let mut harness = thrifty();
    harness.submit(Class::Overwrite);
    harness.drain();
    harness.receive(1, Message::Conflict { view: View(0), id: id(3), clock: WallTime(0) });
    assert_eq!(recipients(&harness.drain().0), [3, 4]);
    [0, 2, 3].into_iter().for_each(|from| harness.ok(from, 0, 3));
    assert_eq!(harness.drain().1.len(), 1, "three of the others will do");
}
