//! When an update is refused for good, and when its outcome is unknown.

use super::*;

#[test]
fn refused_means_nowhere_and_unknown_means_unknown() {
    let refused =
        |sequence, refusal| Message::Refused { view: View(0), id: id(sequence), clock: WallTime(0), refusal };
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let only_leader = harness.submit(Class::Update);
    let shared = harness.submit(Class::Overwrite);
    harness.receive(0, refused(2, Refusal::LogFull));
    harness.receive(0, refused(3, Refusal::LogFull));
    let done = harness.drain().1;
    assert_eq!(done, [(only_leader, Outcome::Refused(Refusal::LogFull))]);
    // Others may have it: it is sent again, until it is taken or nobody knows.
    for _ in 0..3 {
        harness.pass(Duration::from_millis(60));
        assert_eq!(paths(&harness.drain().0), [0, 1, 2].map(|to| (to, Path::Durability, 3)));
        harness.receive(0, refused(3, Refusal::Overloaded));
    }
    harness.pass(Duration::from_secs(11));
    assert_eq!(harness.drain().1, [(shared, Outcome::Unknown)]);

    let mut alone = Harness::new(1, FastQuorum::Majority, &[0]);
    let crowded_out = alone.submit(Class::Overwrite);
    assert_eq!(paths(&alone.drain().0), [(0, Path::Durability, 2)]);
    alone.receive(0, refused(2, Refusal::Overloaded));
    assert_eq!(alone.drain().1, [], "a copy of it may still be taken");
    alone.pass(Duration::from_secs(11));
    assert_eq!(alone.drain().1, [(crowded_out, Outcome::Unknown)]);
    let no_disk = alone.submit(Class::Overwrite);
    alone.drain();
    alone.receive(0, refused(3, Refusal::DiskFailed));
    assert_eq!(alone.drain().1, [(no_disk, Outcome::Refused(Refusal::DiskFailed))]);

    let silent = harness.submit(Class::Update);
    harness.pass(Duration::from_secs(11));
    assert_eq!(harness.drain().1, [(silent, Outcome::Unknown)]);
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let executed = harness.submit(Class::Update);
    harness.drain();
    harness.receive(0, refused(2, Refusal::ReplyDropped));
    assert_eq!(harness.drain().1, [(executed, Outcome::Unknown)]);
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0]);
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(0)));
    let unsent = harness.submit(Class::Update);
    let read = harness.submit(Class::Read);
    harness.pass(Duration::from_secs(11));
    assert_eq!(harness.drain().1, [(unsent, Outcome::TimedOut), (read, Outcome::TimedOut)]);
}

/// As soon as it is known that no majority can be reached, everything ends with what is known of it, and nothing that
/// needs one is sent.
#[test]
fn without_a_majority_nothing_hangs_and_nothing_is_refused_that_was_sent() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1]);
    let (sent, read) = (harness.submit(Class::Overwrite), harness.submit(Class::Read));
    assert!(!harness.drain().0.is_empty());
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(0)));
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(1)));
    let unsent = harness.submit(Class::Overwrite);
    harness.client.handle(harness.now, Event::QuorumReachable(false));
    let ended = [(sent, Outcome::Unknown), (unsent, Outcome::NoQuorum), (read, Outcome::NoQuorum)];
    assert_eq!(harness.drain(), (Vec::new(), ended.to_vec()));
    let refused =
        [harness.submit(Class::Overwrite), harness.submit(Class::Update), harness.submit(Class::Read)];
    assert_eq!(harness.drain(), (Vec::new(), refused.map(|token| (token, Outcome::NoQuorum)).to_vec()));
    harness.client.handle(harness.now, Event::Connected(ReplicaId(1)));
    let stale = harness.client.submit_with(
        harness.now,
        Body::from([7]),
        Class::Read,
        &Footprint::One(1),
        Some(ReadPolicy::Stale),
    );
    let (sent, done) = harness.drain();
    assert!(stale.is_ok() && sent.len() == 1 && done.is_empty(), "any state will do: {sent:?}");
    // A majority may answer reads though nobody leads.
    harness.client.handle(harness.now, Event::Connected(ReplicaId(0)));
    let read = harness.submit(Class::Read);
    let (sent, done) = harness.drain();
    assert!(!sent.is_empty() && done.is_empty(), "{done:?}");
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(0)));
    assert_eq!(harness.drain().1, [(read, Outcome::NoQuorum)]);
    harness.client.handle(harness.now, Event::QuorumReachable(true));
    harness.client.handle(harness.now, Event::Connected(ReplicaId(0)));
    harness.submit(Class::Overwrite);
    assert!(!harness.drain().0.is_empty());
}

/// A replica that was started again knows of no refusal: what it was sent since, it may have taken.
#[test]
fn an_update_is_refused_by_all_only_if_nobody_has_been_sent_it_again() {
    let refused =
        || Message::Refused { view: View(0), id: id(2), clock: WallTime(0), refusal: Refusal::DiskFull };
    let outcome = |is_restarted: bool, bug: Option<PlantedBug>| {
        let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
        #[cfg(feature = "planted-bugs")]
        (harness.client.config.planted = bug);
        #[cfg(not(feature = "planted-bugs"))]
        let _ = bug;
        let token = harness.submit(Class::Overwrite);
        assert_eq!(harness.drain().0.len(), 3);
        harness.receive(1, refused());
        if is_restarted {
            harness.client.handle(harness.now, Event::Disconnected(ReplicaId(1)));
            harness.client.handle(harness.now, Event::Connected(ReplicaId(1)));
            let (sent, _) = harness.drain();
            assert!(paths(&sent).iter().any(|(to, ..)| *to == 1), "sent again: {:?}", paths(&sent));
        }
        harness.receive(2, refused());
        harness.receive(0, refused());
        let (_, done) = harness.drain();
        assert_eq!(done.len(), 1);
        assert_eq!(done[0].0, token);
        done[0].1.clone()
    };
    let refused = Outcome::Refused(Refusal::DiskFull);
    assert_eq!(outcome(false, None), refused);
    assert_eq!(outcome(true, None), Outcome::Unknown);
    if cfg!(feature = "planted-bugs") {
        assert_eq!(outcome(true, Some(PlantedBug::RefusalOutlivesProcess)), refused);
    }
}

fn no_room(sequence: u64) -> Message {
    Message::Refused { view: View(0), id: id(sequence), clock: WallTime(0), refusal: Refusal::DiskFull }
}

/// Every replica has been sent an update once, one of them late.
#[test]
fn a_late_connection_is_no_second_copy() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1]);
    let token = harness.submit(Class::Overwrite);
    let mut sent = paths(&harness.drain().0);
    harness.client.handle(harness.now, Event::Connected(ReplicaId(2)));
    sent.extend(paths(&harness.drain().0));
    sent.sort_unstable_by_key(|(to, ..)| *to);
    assert_eq!(sent.iter().map(|(to, ..)| *to).collect::<Vec<_>>(), [0, 1, 2]);
    (0..3).for_each(|from| harness.receive(from, no_room(2)));
    assert_eq!(harness.drain().1, [(token, Outcome::Refused(Refusal::DiskFull))]);
}

/// An update was sent to the leader alone, and the connection to a follower comes back.
#[test]
fn the_connection_of_who_was_not_asked_is_no_second_copy() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let token = harness.submit(Class::Update);
    assert_eq!(paths(&harness.drain().0).len(), 1);
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(1)));
    harness.client.handle(harness.now, Event::Connected(ReplicaId(1)));
    assert!(paths(&harness.drain().0).is_empty());
    harness.receive(0, no_room(2));
    assert_eq!(harness.drain().1, [(token, Outcome::Refused(Refusal::DiskFull))]);
}

/// A leader that is started again leaves its view: the process that refused a second copy had refused the first.
#[test]
fn a_second_copy_for_the_leader_is_refused_as_the_first() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let token = harness.submit(Class::Update);
    harness.drain();
    harness.pass(Duration::from_millis(120));
    assert_eq!(paths(&harness.drain().0).len(), 1, "sent again, because the answer took 120 ms");
    harness.receive(0, no_room(2));
    assert_eq!(harness.drain().1, [(token, Outcome::Refused(Refusal::DiskFull))]);
}

/// A follower asks to be shown the session when the leader has been asked to order the update: it is sent no other copy, and
/// is not waited for.
#[test]
fn who_was_not_shown_the_session_is_not_waited_for() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let token = harness.submit(Class::Overwrite);
    harness.drain();
    harness.pass(Duration::from_millis(25));
    assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, 2)]);
    let (view, clock) = (View(0), WallTime(0));
    harness.receive(1, Message::Refused { view, id: id(2), clock, refusal: Refusal::NotAttached });
    harness.receive(2, no_room(2));
    harness.receive(0, no_room(2));
    assert_eq!(harness.drain().1, [(token, Outcome::Unknown)]);
}

/// The same, while the leader has no room for the update for a moment.
#[test]
fn a_connection_that_comes_and_goes_does_not_put_off_what_was_crowded_out() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    harness.submit(Class::Update);
    harness.drain();
    // Sent again once, so that no refusal is final.
    harness.pass(Duration::from_millis(110));
    harness.drain();
    let (view, clock) = (View(0), WallTime(0));
    harness.receive(0, Message::Refused { view, id: id(2), clock, refusal: Refusal::Overloaded });
    let is_asked_again = (1..200).any(|millis| {
        harness.pass(Duration::from_millis(1));
        if millis % 30 == 0 {
            let follower = ReplicaId(1 + (millis / 30 % 2) as u8);
            harness.client.handle(harness.now, Event::Disconnected(follower));
            harness.client.handle(harness.now, Event::Connected(follower));
        }
        !paths(&harness.drain().0).is_empty()
    });
    assert!(is_asked_again);
}
