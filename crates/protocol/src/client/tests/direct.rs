//! Who is asked for direct answers, and when.

use super::*;
use crate::message::{Advice, Advised};
use alloc::vec;

/// A client in majority mode that knows nothing of distances.
fn client_of(replicas: usize) -> Harness {
    let members: Vec<u8> = (0..replicas as u8).collect();
    let mut harness = Harness::new(replicas, FastQuorum::Majority, &members);
    harness.client.write_times.distances = [Distance::UNKNOWN; Group::SIZE_MAX];
    harness
}

const A_SECOND: Duration = Duration::from_secs(1);

/// What a round trip takes, in microseconds.
const TRIP: u64 = 10_000;

fn committed(harness: &mut Harness, from: u8, sequence: u64) {
    let (view, clock, reply) = (View(0), harness.clock(), Body::from([1]));
    harness.receive(from, Message::Committed { view, id: id(sequence), clock, reply });
}

/// Who was told that its direct answers are wanted, or not.
fn told(sent: &[(u8, Message)]) -> Vec<(u8, bool)> {
    let told = |(to, message): &(u8, Message)| match message {
        Message::AnswerDirectly { session, lasting, .. } => {
            assert_eq!(*session, SessionId(9));
            Some((*to, !lasting.is_zero()))
        }
        _ => None,
    };
    sent.iter().filter_map(told).collect()
}

/// An update that these answer, one after the other, after so many microseconds each. Gives who was told what meanwhile.
fn answered(harness: &mut Harness, sequence: u64, answers: &[(u8, u64)]) -> Vec<(u8, bool)> {
    let token = harness.submit(Class::Update);
    let (mut all, mut done, mut passed) = (Vec::new(), Vec::new(), 0);
    for (from, micros) in answers {
        harness.pass(Duration::from_micros(micros - passed));
        passed = *micros;
        committed(harness, *from, sequence);
        let (sent, ended) = harness.drain();
        all.extend(told(&sent));
        done.extend(ended);
    }
    assert_eq!(done, [(token, Outcome::Reply(Body::from([1])))]);
    all
}

#[test]
fn a_follower_of_three_is_asked_if_something_can_be_gained() {
    for (replicas, micros, is_asked) in [(3, 900, false), (3, 1_000, true), (5, 10_000, false)] {
        let mut harness = client_of(replicas);
        let told = answered(&mut harness, 2, &[(0, micros)]);
        assert_eq!(told.len(), usize::from(is_asked), "{replicas} replicas, {micros} us: {told:?}");
    }
    for policy in [WritePolicy::Fast, WritePolicy::Thrifty, WritePolicy::Leader] {
        let mut harness = client_of(3);
        harness.client.config.settings.write_policy = policy;
        assert_eq!(answered(&mut harness, 2, &[(0, 2 * TRIP)]), [], "{policy}");
    }
}

#[test]
fn the_nearest_active_follower_is_asked() {
    let asked = |distances: [u64; 3], active: &[u8]| {
        let mut harness = client_of(3);
        for (distance, known) in harness.client.write_times.distances.iter_mut().zip(distances) {
            if known > 0 {
                distance.on_answer(known, harness.now.instant);
            }
        }
        harness.client.rule.active = active.iter().map(|member| ReplicaId(*member)).collect();
        answered(&mut harness, 2, &[(0, 2 * TRIP)])
    };
    let far = 10_000_000;
    assert_eq!(asked([far, 2 * far, far], &[0, 1, 2]), [(2, true)]);
    assert_eq!(asked([far, far, 2 * far], &[0, 1, 2]), [(1, true)]);
    assert_eq!(asked([far, 0, far], &[0, 1, 2]), [(2, true)], "one that has not answered yet comes last");
    assert_eq!(asked([far, far, 2 * far], &[0, 2]), [(2, true)], "one that is not active has no answers");
}

#[test]
fn a_follower_that_is_never_first_is_replaced_and_then_nobody_is_asked_for_a_while() {
    let mut harness = client_of(3);
    let nearest = answered(&mut harness, 2, &[(0, 2 * TRIP)])[0].0;
    let other = 3 - nearest;
    assert_eq!(answered(&mut harness, 3, &[(0, 2 * TRIP)]), [], "it may not have heard of it yet");
    harness.pass(A_SECOND);
    assert_eq!(answered(&mut harness, 4, &[(0, 2 * TRIP)]), [(nearest, false), (other, true)]);
    harness.pass(A_SECOND);
    assert_eq!(answered(&mut harness, 5, &[(0, 2 * TRIP)]), [(other, false)]);
    harness.pass(28 * A_SECOND);
    assert_eq!(answered(&mut harness, 6, &[(0, 2 * TRIP)]), []);
    harness.pass(2 * A_SECOND);
    assert_eq!(answered(&mut harness, 7, &[(0, 2 * TRIP)]).len(), 1, "things may have changed");
}

/// The leader answers half a round trip later, or hardly: its disk is slow and not the way to it.
#[test]
fn a_client_goes_on_with_direct_answers_for_as_long_as_they_gain_enough() {
    for (later, is_enough) in [(TRIP / 2, true), (400, false)] {
        let mut harness = client_of(3);
        let follower = answered(&mut harness, 2, &[(0, 2 * TRIP)])[0].0;
        let answers = [(follower, 2 * TRIP - later), (0, 2 * TRIP)];
        let told: Vec<_> = (3..103).flat_map(|sequence| answered(&mut harness, sequence, &answers)).collect();
        assert_eq!(told, if is_enough { vec![] } else { vec![(follower, false)] }, "{later} us later");
    }
}

#[test]
fn a_follower_is_asked_again_before_it_forgets_or_when_it_has_forgotten() {
    let mut harness = client_of(3);
    let lasting = harness.client.config.settings.direct_lasting;
    let follower = answered(&mut harness, 2, &[(0, 2 * TRIP)])[0].0;
    let answers = [(follower, TRIP * 3 / 2), (0, 2 * TRIP)];
    assert_eq!(answered(&mut harness, 3, &answers), []);
    harness.pass(lasting / 2);
    assert_eq!(answered(&mut harness, 4, &answers), [(follower, true)]);
    assert_eq!(answered(&mut harness, 5, &answers), []);
    assert_eq!(answered(&mut harness, 6, &[(0, 2 * TRIP)]), [], "it was held up");
    harness.pass(lasting);
    assert_eq!(answered(&mut harness, 7, &[(0, 2 * TRIP)]), [(follower, true)]);
    // If it is not sooner after that either, the other one is tried.
    harness.pass(A_SECOND);
    let told = answered(&mut harness, 8, &[(0, 2 * TRIP)]);
    assert_eq!(told, [(follower, false), (3 - follower, true)]);
    let follower = 3 - follower;
    // A connection that ends forgets it, and the leader is first again.
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(follower)));
    harness.client.handle(harness.now, Event::Connected(ReplicaId(follower)));
    harness.drain();
    assert_eq!(answered(&mut harness, 9, &[(0, 2 * TRIP)]).len(), 1);
}

/// The leader's answers to some updates never come: it has said before what they return.
#[test]
fn a_comparison_that_never_ends_is_given_up() {
    let mut harness = client_of(3);
    let follower = answered(&mut harness, 2, &[(0, 2 * TRIP)])[0].0;
    assert_eq!(answered(&mut harness, 3, &[(follower, TRIP)]), []);
    harness.pass(A_SECOND);
    let hardly = [(follower, 2 * TRIP - 400), (0, 2 * TRIP)];
    let told: Vec<_> = (4..12).flat_map(|sequence| answered(&mut harness, sequence, &hardly)).collect();
    assert_eq!(told, [(follower, false)]);
}

/// Nearly all updates have been answered by the fast quorum when the follower answers them once more.
#[test]
fn a_client_stops_answers_of_which_it_needs_few() {
    let mut harness = client_of(3);
    let follower = answered(&mut harness, 2, &[(0, 2 * TRIP)])[0].0;
    answered(&mut harness, 3, &[(follower, TRIP * 3 / 2)]);
    let mut needless = 0;
    while told(&harness.drain().0).is_empty() {
        committed(&mut harness, follower, 3);
        needless += 1;
        assert!(needless <= 64, "it has not stopped them");
    }
    assert_eq!(needless, 64);
}

/// One and a half round trips tell a client that it waits for distance, as two do that the leader answers after.
#[test]
fn a_far_client_with_direct_answers_does_not_follow_advice_for_long() {
    let mut harness = client_of(3);
    let trip = Duration::from_micros(TRIP);
    harness.client.write_times.oks[..3].fill(trip.as_nanos() as u64);
    let follower = answered(&mut harness, 2, &[(0, 2 * TRIP)])[0].0;
    harness.receive(0, Message::Advise { view: View(0), of: Advised::Updates, advice: Advice::Leader });
    let mut sent_to = |sequence| {
        let token = harness.submit(Class::Overwrite);
        let sent = paths(&harness.drain().0).len();
        harness.pass(trip * 3 / 2);
        let (view, clock) = (View(0), harness.clock());
        let committed = Message::Committed { view, id: id(sequence), clock, reply: Body::from([]) };
        harness.receive(follower, committed);
        assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
        sent
    };
    let sent: Vec<usize> = (3..12).map(&mut sent_to).collect();
    assert_eq!(sent, [1, 1, 1, 1, 1, 1, 3, 3, 3], "it tries for about eight times 10 ms");
}
