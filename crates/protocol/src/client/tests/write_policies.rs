//! Which way an update takes, by policy and by what updates have taken before.

use super::super::updates::ADVICE_LASTS;
use super::*;
use crate::message::{Advice, Advised};

/// Five replicas whose supermajority is 100 ms away, the leader and a majority 10 ms.
fn far_supermajority(policy: WritePolicy) -> Harness {
    let mut harness = Harness::new(5, FastQuorum::Supermajority, &[0, 1, 2, 3, 4]);
    harness.client.config.settings.write_policy = policy;
    // The update that began the session took no time.
    harness.client.write_times.forget_leader();
    harness
}

/// Lets an update run its course: the times at which each replica says `Ok` and the leader `Committed`.
/// Returns how often it was sent and to whom, and after how many milliseconds it was done.
fn play(harness: &mut Harness, sequence: u64, committed: u64) -> (usize, u64) {
    let millis = Duration::from_millis;
    let token = harness.submit(Class::Overwrite);
    let sent = paths(&harness.drain().0);
    let ordered = sent.iter().any(|(_, path, _)| *path == Path::Ordered);
    let shared = sent.iter().any(|(to, ..)| *to != 0);
    let begin = harness.now.instant;
    let mut done_at = None;
    for at in [10, 20, 100, 200] {
        harness.now.instant = begin.after(millis(at));
        match at {
            10 if shared => (0..3).for_each(|from| harness.ok(from, 0, sequence)),
            100 if shared => (3..5).for_each(|from| harness.ok(from, 0, sequence)),
            _ => {}
        }
        if at == committed && ordered {
            let (view, clock, reply) = (View(0), WallTime(0), Body::from([]));
            harness.receive(0, Message::Committed { view, id: id(sequence), clock, reply });
        }
        if harness.drain().1.contains(&(token, Outcome::Done)) {
            done_at.get_or_insert(at);
        }
    }
    (sent.len(), done_at.unwrap())
}

#[test]
fn the_leader_orders_at_once_where_that_is_faster() {
    let mut harness = far_supermajority(WritePolicy::Auto);
    // The first one finds out how far everybody is, the second one goes both ways.
    assert_eq!(play(&mut harness, 2, 20), (5, 100));
    assert_eq!(play(&mut harness, 3, 20), (6, 20));
    assert_eq!(play(&mut harness, 4, 20), (1, 20), "to the leader alone");
    // A second later it is time to compare again.
    harness.pass(Duration::from_secs(1));
    assert_eq!(play(&mut harness, 5, 20).0, 6);
}

#[test]
fn the_fast_quorum_is_used_where_the_leader_would_take_longer() {
    let mut harness = far_supermajority(WritePolicy::Auto);
    assert_eq!(play(&mut harness, 2, 200), (5, 100));
    assert_eq!(play(&mut harness, 3, 200), (6, 100));
    assert_eq!(play(&mut harness, 4, 200), (5, 100));
    // A near quorum leaves nothing to compare.
    let mut harness = Harness::new(5, FastQuorum::Majority, &[0, 1, 2, 3, 4]);
    for sequence in 2..6 {
        assert_eq!(play(&mut harness, sequence, 20), (5, 10));
    }
}

#[test]
fn a_write_policy_is_kept_to() {
    for (policy, expected) in [(WritePolicy::Fast, (5, 100)), (WritePolicy::Leader, (1, 20))] {
        let mut harness = far_supermajority(policy);
        for sequence in 2..6 {
            assert_eq!(play(&mut harness, sequence, 20), expected, "{policy}");
        }
        let counts = harness.client.write_counts();
        let (fast, leader) = if policy == WritePolicy::Fast { (4, 1) } else { (0, 5) };
        assert_eq!(counts, WriteCounts { fast, leader, ordered: 0 });
        // What is counted is timed.
        let times = harness.client.way_times();
        let timed = |way| -> u64 {
            let of = times.iter().filter(|times| times.way == way).flat_map(|times| &times.buckets);
            of.map(|(_, count)| *count).sum()
        };
        let expected = if cfg!(feature = "model") { (0, 0) } else { (fast, leader) };
        assert_eq!((timed(Way::WriteByQuorum), timed(Way::WriteByLeader)), expected);
    }
}

#[test]
fn refused_on_one_of_both_ways_it_may_still_be_ordered() {
    let mut harness = far_supermajority(WritePolicy::Auto);
    play(&mut harness, 2, 20);
    let token = harness.submit(Class::Overwrite);
    assert_eq!(paths(&harness.drain().0).len(), 6, "both ways");
    let (view, clock) = (View(0), WallTime(0));
    let refused = || Message::Refused { view, id: id(3), clock, refusal: Refusal::Overloaded };
    harness.receive(0, refused());
    assert!(harness.drain().1.is_empty(), "the leader has another copy to read");
    harness.receive(0, Message::Committed { view, id: id(3), clock, reply: Body::from([]) });
    assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
    // Both copies refused: followers may hold it, so it is neither refused nor done. It is asked for again.
    harness.client.write_times.forget_leader();
    let token = harness.submit(Class::Overwrite);
    assert_eq!(paths(&harness.drain().0).len(), 6);
    for _ in 0..2 {
        harness.receive(0, Message::Refused { view, id: id(4), clock, refusal: Refusal::Overloaded });
    }
    assert_eq!(harness.drain().1, []);
    harness.pass(Duration::from_secs(2));
    assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, 4)]);
    harness.receive(0, Message::Committed { view, id: id(4), clock, reply: Body::from([]) });
    assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
}

/// A leader near by, one follower far away, and another one farther, which stops: the client has the leader order what it
/// would otherwise send again and again.
#[test]
fn a_far_follower_that_stops_is_done_without() {
    const TRIPS: [u64; 3] = [2, 40, 80];
    let mut config = Config::new(Configuration::first(Group::new(3).unwrap(), FastQuorum::Supermajority), 1);
    config.settings.write_policy = WritePolicy::Fast;
    let mut harness = Harness::with(config, &[0, 1, 2]);
    let mut arriving: Vec<(u64, u8, Message)> = Vec::new();
    let (mut millis, mut left) = (0_u64, 200);
    harness.submit(Class::Overwrite);
    while left > 0 {
        let (sent, done) = harness.drain();
        for (to, message) in sent {
            let Message::Request { path, request, .. } = message else { continue };
            let (view, id, clock, reply) = (View(0), request.id, harness.clock(), Body::from([]));
            let trip = TRIPS[usize::from(to)];
            if path == Path::Ordered {
                let message = Message::Committed { view, id, clock, reply };
                arriving.push((millis + trip + TRIPS[1], 0, message));
            } else if to != 2 || left > 6 {
                arriving.push((millis + trip, to, Message::Ok { view, rule: None, id, clock }));
            }
        }
        if let Some((_, outcome)) = done.first() {
            assert_eq!(*outcome, Outcome::Done, "{left} are left");
            left -= 1;
            // What returns something goes to the leader.
            harness.submit(if left % 4 == 0 { Class::Update } else { Class::Overwrite });
            continue;
        }
        millis += 1;
        harness.now.wall.0 += 1000;
        harness.pass(Duration::from_millis(1));
        let due: Vec<_> = arriving.extract_if(.., |(at, ..)| *at <= millis).collect();
        due.into_iter().for_each(|(_, from, message)| harness.receive(from, message));
    }
}

fn advise(harness: &mut Harness, from: u8, view: u64, advice: Advice) {
    harness.receive(from, Message::Advise { view: View(view), of: Advised::Updates, advice });
}

/// The leader of a near group says that cores are what all wait for.
#[test]
fn updates_go_to_the_leader_alone_for_as_long_as_it_asks_for_that() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let mut sequence = 1;
    let mut sent_to = |harness: &mut Harness| {
        sequence += 1;
        let token = harness.submit(Class::Overwrite);
        let sent = paths(&harness.drain().0);
        let message = match sent[0].1 {
            Path::Ordered => {
                let reply = Body::from([]);
                Message::Committed { view: harness.client.view, id: id(sequence), clock: WallTime(0), reply }
            }
            Path::Durability => {
                let follower = (harness.client.leader().0 + 1) % 3;
                harness.ok(follower, harness.client.view.0, sequence);
                Message::Ok {
                    view: harness.client.view,
                    rule: None,
                    id: id(sequence),
                    clock: harness.clock(),
                }
            }
        };
        harness.receive(harness.client.leader().0, message);
        assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
        sent.len()
    };
    assert_eq!(sent_to(&mut harness), 3);
    advise(&mut harness, 1, 0, Advice::Leader);
    assert_eq!(sent_to(&mut harness), 3, "a follower has no say in it");
    advise(&mut harness, 0, 0, Advice::Leader);
    assert_eq!([sent_to(&mut harness), sent_to(&mut harness)], [1, 1]);
    advise(&mut harness, 0, 0, Advice::Free);
    assert_eq!(sent_to(&mut harness), 3);
    // What it says while the connection is away does not arrive.
    advise(&mut harness, 0, 0, Advice::Leader);
    assert_eq!(sent_to(&mut harness), 1);
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(0)));
    harness.client.handle(harness.now, Event::Connected(ReplicaId(0)));
    harness.drain();
    assert_eq!(sent_to(&mut harness), 3, "it says so again if that still holds");
    // Nor does what a client has no room for.
    advise(&mut harness, 0, 0, Advice::Leader);
    assert_eq!(sent_to(&mut harness), 1);
    harness.pass(ADVICE_LASTS);
    assert_eq!(sent_to(&mut harness), 3);
    advise(&mut harness, 0, 0, Advice::Leader);
    harness.receive(1, Message::WrongView { view: View(1) });
    assert_eq!(sent_to(&mut harness), 3, "another leader has not said so");
    advise(&mut harness, 0, 0, Advice::Leader);
    assert_eq!(sent_to(&mut harness), 3, "nor does what the last one says count");
    advise(&mut harness, 1, 1, Advice::Leader);
    assert_eq!(sent_to(&mut harness), 1);
    for policy in [WritePolicy::Fast, WritePolicy::Thrifty] {
        harness.client.config.settings.write_policy = policy;
        assert!(sent_to(&mut harness) > 1, "{policy} is what its user wants");
    }
}

/// Followers are near the client and each other, the leader's other round trip is not: what the client waits for is distance.
#[test]
fn what_takes_a_far_client_much_longer_it_does_for_no_leader() {
    let mut harness = far_supermajority(WritePolicy::Auto);
    assert_eq!(play(&mut harness, 2, 200), (5, 100));
    assert_eq!(play(&mut harness, 3, 200), (6, 100));
    advise(&mut harness, 0, 0, Advice::Leader);
    for sequence in 4..9 {
        assert_eq!(play(&mut harness, sequence, 200), (1, 200), "it tries for eight times 100 ms");
    }
    assert_eq!(play(&mut harness, 9, 200).1, 100, "and has seen enough");
    // Had the fast quorum taken as long by then, because of all that waited, it would follow.
    let mut harness = far_supermajority(WritePolicy::Auto);
    assert_eq!(play(&mut harness, 2, 20), (5, 100));
    advise(&mut harness, 0, 0, Advice::Leader);
    for sequence in 3..6 {
        assert_eq!(play(&mut harness, sequence, 100), (1, 100));
    }
}

/// It is asked before it has seen how far anybody is.
#[test]
fn a_far_client_that_comes_later_does_not_follow_for_long_either() {
    let mut harness = far_supermajority(WritePolicy::Auto);
    advise(&mut harness, 0, 0, Advice::Leader);
    assert_eq!(play(&mut harness, 2, 200), (5, 100), "it finds out");
    for sequence in 3..8 {
        assert_eq!(play(&mut harness, sequence, 200), (1, 200));
    }
    assert_eq!(play(&mut harness, 8, 200).1, 100);
}
