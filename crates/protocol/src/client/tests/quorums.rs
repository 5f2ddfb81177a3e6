//! Which answers complete an update, and when the leader is asked to order it instead.

use super::*;

#[test]
fn done_with_a_fast_quorum_that_includes_the_leader() {
    for (n, mode, quorum) in [
        (3, FastQuorum::Majority, 2),
        (3, FastQuorum::Supermajority, 3),
        (5, FastQuorum::Majority, 3),
        (5, FastQuorum::Supermajority, 4),
        (7, FastQuorum::Supermajority, 6),
        (1, FastQuorum::Majority, 1),
    ] {
        let all: Vec<u8> = (0..n as u8).collect();
        let mut harness = Harness::new(n, mode, &all);
        let token = harness.submit(Class::Overwrite);
        assert_eq!(harness.drain().0.len(), n, "sent to all");
        // All but the leader, twice each: never enough.
        for _ in 0..2 {
            (1..n as u8).for_each(|from| harness.ok(from, 0, 2));
        }
        let early = harness.drain().1;
        assert!(early.is_empty(), "n={n} {mode}: done without the leader");
        harness.ok(0, 0, 2);
        assert_eq!(harness.drain().1, [(token, Outcome::Done)]);

        let token = harness.submit(Class::Overwrite);
        (0..quorum as u8 - 1).for_each(|from| harness.ok(from, 0, 3));
        assert!(harness.drain().1.is_empty(), "n={n} {mode}: done too early");
        harness.ok(quorum as u8 - 1, 0, 3);
        assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
    }
}

#[test]
fn acknowledgements_of_two_views_do_not_add_up() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    harness.submit(Class::Overwrite);
    harness.drain();
    harness.ok(0, 0, 2);
    harness.receive(2, Message::WrongView { view: View(3) });
    let (sent, _) = harness.drain();
    assert_eq!(sent.len(), 3, "sent again in the new view");
    harness.ok(1, 0, 2);
    harness.ok(1, 3, 2);
    assert!(harness.drain().1.is_empty());
    harness.ok(0, 3, 2);
    assert_eq!(harness.drain().1.len(), 1);
}

#[test]
fn conflicts_make_the_leader_order() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let token = harness.submit(Class::Overwrite);
    harness.drain();
    harness.ok(0, 0, 2);
    for from in [1, 2] {
        let conflict = Message::Conflict { view: View(0), id: id(2), clock: WallTime(0) };
        harness.receive(from, conflict);
    }
    let (sent, done) = harness.drain();
    assert!(done.is_empty());
    assert_eq!(paths(&sent), [(0, Path::Ordered, 2)]);
    let reply = Body::from([]);
    harness.receive(0, Message::Committed { view: View(0), id: id(2), clock: WallTime(0), reply });
    assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
}

/// A client that knows of view 3 and has nothing in flight, and replica 2, which has last said that it is in view 0.
fn with_one_behind(mode: FastQuorum, bug: Option<PlantedBug>) -> Harness {
    let mut harness = Harness::new(3, mode, &[0, 1, 2]);
    #[cfg(feature = "planted-bugs")]
    (harness.client.config.planted = bug);
    #[cfg(not(feature = "planted-bugs"))]
    (_ = bug);
    harness.receive(1, Message::WrongView { view: View(3) });
    harness.submit(Class::Overwrite);
    harness.drain();
    harness.receive(2, Message::WrongView { view: View(0) });
    let reply = Body::from([]);
    harness.receive(0, Message::Committed { view: View(3), id: id(2), clock: WallTime(0), reply });
    assert_eq!(harness.drain().1.len(), 1);
    harness
}

#[test]
fn a_replica_that_was_behind_is_shown_the_session_again() {
    for bug in [None, Some(PlantedBug::AttachmentKept)] {
        let mut harness = with_one_behind(FastQuorum::Majority, bug);
        harness.attached.clear();
        harness.submit(Class::Overwrite);
        harness.drain();
        let is_shown = harness.attached == [(2, SessionId(9))];
        assert_eq!(is_shown, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

#[test]
fn a_replica_that_was_behind_may_answer_the_next_update() {
    for bug in [None, Some(PlantedBug::BehindForGood)] {
        let mut harness = with_one_behind(FastQuorum::Supermajority, bug);
        harness.submit(Class::Overwrite);
        harness.drain();
        harness.pass(harness.client.config.settings.sync_after / 2);
        let is_awaited = paths(&harness.drain().0).is_empty();
        assert_eq!(is_awaited, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

/// With the known-wrong variant, the client waits for its next update as if updates took as long as this one waited.
#[test]
fn an_update_that_failed_tells_nothing_of_how_long_updates_take() {
    for bug in [None, Some(PlantedBug::FailuresMeasured)] {
        let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
        #[cfg(feature = "planted-bugs")]
        (harness.client.config.planted = bug);
        harness.submit(Class::Overwrite);
        harness.drain();
        harness.pass(harness.client.config.settings.give_up_after);
        assert_eq!(harness.drain().1.len(), 1, "given up");
        harness.submit(Class::Overwrite);
        assert_eq!(paths(&harness.drain().0).len(), 3);
        harness.pass(harness.client.config.settings.sync_after);
        let is_ordered = paths(&harness.drain().0) == [(0, Path::Ordered, 3)];
        assert_eq!(is_ordered, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

/// Played with and without a known-wrong variant: replica 2 is away, so replica 1's refusal ends the hope of a fast quorum.
#[test]
fn a_replica_that_is_away_is_not_waited_for() {
    for bug in [None, Some(PlantedBug::AbsentAwaited)] {
        let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1]);
        #[cfg(feature = "planted-bugs")]
        (harness.client.config.planted = bug);
        harness.submit(Class::Overwrite);
        assert_eq!(paths(&harness.drain().0).len(), 2);
        harness.ok(0, 0, 2);
        harness.receive(1, Message::Conflict { view: View(0), id: id(2), clock: WallTime(0) });
        let is_ordered = paths(&harness.drain().0) == [(0, Path::Ordered, 2)];
        assert_eq!(is_ordered, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

/// Replica 4 has been silent, so replica 3's refusal ends the hope of a fast quorum of four.
#[test]
fn a_silent_replica_is_not_waited_for_again() {
    let mut harness = Harness::new(5, FastQuorum::Supermajority, &[0, 1, 2, 3, 4]);
    harness.client.config.settings.write_policy = WritePolicy::Fast;
    for sequence in 2..4 {
        harness.submit(Class::Overwrite);
        assert_eq!(paths(&harness.drain().0).len(), 5);
        (0..3).for_each(|from| harness.ok(from, 0, sequence));
        if sequence == 2 {
            assert_eq!(harness.drain().0, []);
            harness.pass(harness.client.config.settings.sync_after);
            harness.ok(3, 0, sequence);
        } else {
            let (view, clock) = (View(0), harness.clock());
            let refusal = Refusal::NotNormal;
            harness.receive(3, Message::Refused { view, id: id(sequence), clock, refusal });
        }
        assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, sequence)]);
    }
}

/// Updates that have taken long make a client wait, and not for so long that its session ends meanwhile.
#[test]
fn the_leader_is_asked_before_the_session_ends() {
    let mut harness = Harness::new(3, FastQuorum::Supermajority, &[0, 1, 2]);
    harness.client.config.settings.write_policy = WritePolicy::Fast;
    harness.client.config.settings.session_idle_max = Duration::from_millis(50);
    for sequence in 2..12 {
        harness.submit(Class::Overwrite);
        harness.now.instant = harness.now.instant.after(Duration::from_millis(40));
        (0..3).for_each(|from| harness.ok(from, 0, sequence));
    }
    harness.submit(Class::Overwrite);
    (0..2).for_each(|from| harness.ok(from, 0, 12));
    harness.drain();
    let mut waited = 0;
    while paths(&harness.drain().0).is_empty() {
        harness.pass(Duration::from_millis(5));
        waited += 5;
    }
    assert!((50..75).contains(&waited), "{waited} ms");
}

#[test]
fn without_a_fast_quorum_in_reach_the_leader_orders_from_the_start() {
    let mut harness = Harness::new(3, FastQuorum::Supermajority, &[0, 1]);
    harness.submit(Class::Merge);
    assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, 2)]);
    // A silent replica is waited for once.
    let mut harness = Harness::new(3, FastQuorum::Supermajority, &[0, 1, 2]);
    harness.client.config.settings.write_policy = WritePolicy::Fast;
    harness.submit(Class::Merge);
    harness.drain();
    harness.ok(0, 0, 2);
    harness.ok(1, 0, 2);
    harness.pass(Duration::from_millis(20));
    assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, 2)]);
    harness.submit(Class::Merge);
    assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, 3)]);
    harness.ok(2, 0, 2);
    harness.submit(Class::Merge);
    assert_eq!(paths(&harness.drain().0).len(), 3);
}

/// Three of five members answer, one is stopped, and the connection to another one comes and goes: what three members have
/// is ordered soon.
#[test]
fn a_connection_that_comes_and_goes_does_not_put_off_the_order() {
    let mut harness = Harness::new(5, FastQuorum::Supermajority, &[0, 1, 2, 3, 4]);
    harness.submit(Class::Overwrite);
    harness.drain();
    harness.now.instant = harness.now.instant.after(Duration::from_millis(5));
    (0..5).for_each(|from| harness.ok(from, 0, 2));
    harness.submit(Class::Overwrite);
    harness.drain();
    (0..3).for_each(|from| harness.ok(from, 0, 3));
    let is_ordered = (1..200).any(|millis| {
        harness.pass(Duration::from_millis(1));
        match millis % 15 {
            0 => harness.client.handle(harness.now, Event::Connected(ReplicaId(4))),
            5 => harness.client.handle(harness.now, Event::Disconnected(ReplicaId(4))),
            _ => {}
        }
        paths(&harness.drain().0).iter().any(|(to, path, _)| *to == 0 && *path == Path::Ordered)
    });
    assert!(is_ordered);
}
