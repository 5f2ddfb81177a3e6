//! How a client registers and uses a session, and when it begins another one.

use super::*;

/// Found by seed 2800285320: each refused registration was followed by another one, which came while the leader was busy with
/// what was sent again of the last one, for ever.
#[test]
fn a_refused_registration_is_the_next_one() {
    for bug in [None, Some(PlantedBug::RegistrationAbandoned)] {
        let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
        #[cfg(feature = "planted-bugs")]
        (harness.client.config.planted = bug);
        let registered = |harness: &mut Harness| {
            let sent = harness.drain().0;
            sent.iter().find_map(|(_, message)| match message {
                Message::Register { nonce, .. } => Some(*nonce),
                _ => None,
            })
        };
        let refused = |harness: &mut Harness, id: OperationId, refusal: Refusal| {
            let (view, clock) = (View(0), harness.clock());
            harness.receive(0, Message::Refused { view, id, clock, refusal });
        };
        harness.submit(Class::Update);
        harness.drain();
        refused(&mut harness, id(2), Refusal::UnknownSession);
        harness.submit(Class::Update);
        let first = registered(&mut harness).unwrap();
        refused(&mut harness, OperationId { session: SessionId(0), sequence: first }, Refusal::Overloaded);
        assert_eq!(harness.drain().1.len(), 1, "refused");
        harness.submit(Class::Update);
        assert_eq!(registered(&mut harness) == Some(first), bug.is_none() || !cfg!(feature = "planted-bugs"));
        // The leader had taken another copy.
        harness.receive(0, Message::Registered { view: View(0), nonce: first, session: SessionId(9) });
        let is_sent = !paths(&harness.drain().0).is_empty();
        assert_eq!(is_sent, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

#[test]
fn the_window_is_bounded_and_an_expired_session_is_replaced() {
    let mut harness = Harness::new(1, FastQuorum::Majority, &[0]);
    harness.client.config.settings.in_flight_max = 2;
    harness.submit(Class::Update);
    harness.submit(Class::Update);
    let busy = harness.client.submit(harness.now, Body::from([7]), Class::Update, &Footprint::One(1));
    assert_eq!(busy, Err(Busy { in_flight_max: 2 }));
    let refusal = Refusal::UnknownSession;
    harness.receive(0, Message::Refused { view: View(0), id: id(2), clock: WallTime(0), refusal });
    assert_eq!(harness.drain().1.len(), 2);
    harness.submit(Class::Update);
    assert!(matches!(harness.drain().0.as_slice(), [(0, Message::Register { .. })]));
}

/// A follower whose clock is an hour ahead moves nobody's timestamps; a leader whose clock was ahead for a moment does for
/// no longer than that.
#[test]
fn timestamps_follow_no_single_clock_and_come_back() {
    let micros = |harness: &mut Harness| {
        let (sent, _) = harness.drain();
        let request = sent.into_iter().find_map(|(_, message)| match message {
            Message::Request { request, .. } => Some(request.micros),
            _ => None,
        });
        request.map(|micros| micros.abs_diff(harness.clock().0))
    };
    let ahead = |harness: &Harness| WallTime(harness.clock().0 + 3_600_000_000);
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let view = View(0);
    for sequence in 2..5 {
        harness.submit(Class::Overwrite);
        let (right, wrong) = (harness.clock(), ahead(&harness));
        for (from, clock) in [(0, right), (1, wrong), (2, right)] {
            harness.receive(from, Message::Ok { view, rule: None, id: id(sequence), clock });
        }
        assert!(micros(&mut harness) < Some(1000));
    }
    // Two clocks of three are ahead, then none.
    harness.submit(Class::Overwrite);
    let wrong = ahead(&harness);
    for from in [0, 1] {
        harness.receive(from, Message::Ok { view, rule: None, id: id(5), clock: wrong });
    }
    harness.drain();
    harness.submit(Class::Overwrite);
    assert!(micros(&mut harness) > Some(3_000_000_000));
    (0..2).for_each(|from| harness.ok(from, 0, 6));
    // The session's timestamps only grow: so there is another session now.
    let token = harness.submit(Class::Overwrite);
    let (sent, _) = harness.drain();
    let Some((0, Message::Register { nonce, .. })) = sent.last() else { unreachable!("{sent:?}") };
    harness.receive(0, Message::Registered { view, nonce: *nonce, session: SessionId(10) });
    assert!(micros(&mut harness) < Some(1000));
    let id = OperationId { session: SessionId(10), sequence: 1 };
    let clock = harness.clock();
    (0..2).for_each(|from| harness.receive(from, Message::Ok { view, rule: None, id, clock }));
    assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
}

/// A client shows once on each connection that the session is its own, and again when it is asked to.
#[test]
fn a_client_attaches_before_its_first_update() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    assert_eq!(harness.attached, [(0, SessionId(9))], "the first update went to the leader alone");
    harness.attached.clear();
    harness.submit(Class::Overwrite);
    harness.drain();
    assert_eq!(harness.attached, [(1, SessionId(9)), (2, SessionId(9))]);
    harness.submit(Class::Overwrite);
    harness.drain();
    assert_eq!(harness.attached.len(), 2, "once is enough");
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(1)));
    harness.client.handle(harness.now, Event::Connected(ReplicaId(1)));
    assert!(harness.drain().0.iter().all(|(to, _)| *to == 1));
    assert_eq!(harness.attached[2..], [(1, SessionId(9))]);
    let (view, clock, refusal) = (View(0), WallTime(0), Refusal::NotAttached);
    harness.receive(2, Message::Refused { view, id: id(3), clock, refusal });
    assert_eq!(paths(&harness.drain().0), [(2, Path::Durability, 3)]);
    assert_eq!(harness.attached[3..], [(2, SessionId(9))]);
}
