//! Which answers a read counts, whom it asks again, and how a silent leader is noticed.

use super::*;
use crate::message::{Advice, Advised};

#[test]
fn a_silent_leader_is_looked_for() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    harness.client.config.settings.read_policy = ReadPolicy::Leader;
    harness.submit(Class::Read);
    harness.drain();
    harness.pass(Duration::from_millis(25));
    let (sent, _) = harness.drain();
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [0, 1, 2]);
    harness.receive(1, Message::WrongView { view: View(1) });
    let (sent, _) = harness.drain();
    assert!(matches!(sent.as_slice(), [(1, Message::Read { view: View(1), number: 1, .. })]));
}

#[test]
fn a_read_that_may_ask_others_does_not_wait_for_a_silent_leader() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    assert_eq!(harness.client.config.settings.read_policy, ReadPolicy::Auto);
    let read = harness.submit(Class::Read);
    let (sent, _) = harness.drain();
    assert!(
        matches!(sent.as_slice(), [(0, Message::Read { asked: Asked::Answer, .. })]),
        "nothing is known yet"
    );
    harness.pass(Duration::from_millis(25));
    let asked: Vec<u8> = harness.drain().0.iter().map(|(to, _)| *to).collect();
    assert_eq!(asked[..2], [1, 2], "a majority without it");
    for from in [1, 2] {
        let (view, applied, expiry, reply) = (View(0), OpNumber(0), WallTime(0), Body::from([7]));
        let freshness = crate::message::Freshness::default();
        harness.receive(from, Message::MemberReply { view, number: 1, applied, freshness, expiry, reply });
    }
    assert_eq!(harness.drain().1, [(read, Outcome::Reply(Body::from([7])))]);
}

/// An operation that took nine seconds does not keep a client from finding the next leader, whether the connection ends or
/// the leader only falls silent.
#[test]
fn one_slow_operation_does_not_make_a_client_blind() {
    for ends in [false, true] {
        let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
        // How far the leader is, it knows from what did not take long.
        for sequence in 2..12 {
            harness.submit(Class::Overwrite);
            harness.now.instant = harness.now.instant.after(Duration::from_millis(1));
            (0..3).for_each(|from| harness.ok(from, 0, sequence));
        }
        harness.submit(Class::Update);
        harness.now.instant = harness.now.instant.after(Duration::from_secs(9));
        let (view, clock, reply) = (View(0), harness.clock(), Body::from([1]));
        harness.receive(0, Message::Committed { view, id: id(12), clock, reply });
        harness.drain();
        harness.submit(Class::Update);
        harness.drain();
        if ends {
            harness.client.handle(harness.now, Event::Disconnected(ReplicaId(0)));
        }
        let mut asked = Vec::new();
        for _ in 0..5 {
            harness.pass(Duration::from_millis(10));
            asked.extend(
                harness
                    .drain()
                    .0
                    .into_iter()
                    .filter(|(_, message)| matches!(message, Message::Read { body, .. } if body.is_empty())),
            );
        }
        assert!(asked.iter().any(|(to, _)| *to == 1), "after 50 ms, connection ended: {ends}");
    }
}

/// What a member that answers a read says of itself.
#[derive(Clone, Copy)]
struct Says {
    view: u64,
    applied: u64,
    accepted: u64,
    unordered: bool,
}

impl Says {
    const fn new(view: u64, applied: u64, accepted: u64) -> Self {
        Self { view, applied, accepted, unordered: false }
    }
}

/// A client that reads of a majority and has heard of view 1, which replica 1 leads; replicas 0 and 4 are out of reach.
fn quorum_reader() -> Harness {
    let mut config = Config::new(Configuration::first(Group::new(5).unwrap(), FastQuorum::Majority), 1);
    config.settings.read_policy = ReadPolicy::Quorum;
    let mut harness = Harness::with(config, &[0, 1, 2, 3]);
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(0)));
    harness.receive(1, Message::WrongView { view: View(1) });
    harness.drain();
    harness
}

fn answer(harness: &mut Harness, from: u8, says: Says) -> (Sent, Done) {
    let Says { view, applied, accepted, unordered } = says;
    let freshness = crate::message::Freshness { accepted: OpNumber(accepted), unordered, time: WallTime(0) };
    let (view, applied, expiry) = (View(view), OpNumber(applied), WallTime(0));
    let reply = Body::from([applied.0 as u8]);
    harness.receive(from, Message::MemberReply { view, number: 1, applied, freshness, expiry, reply });
    harness.drain()
}

fn asked(sent: &[(u8, Message)]) -> Vec<(u8, Asked)> {
    let question = |(to, message): &(u8, Message)| match message {
        Message::Read { asked, .. } => Some((*to, *asked)),
        _ => None,
    };
    sent.iter().filter_map(question).collect()
}

/// A quorum that names entry 9 of view 1, so that replica 1 is asked for a value after it.
fn rereading() -> (Harness, Token) {
    let mut harness = quorum_reader();
    let token = harness.submit(Class::Read);
    let now_known = Asked::Value { after: OpNumber(0) };
    let first = asked(&harness.drain().0);
    assert!(first.len() == 3 && first.iter().all(|(_, asked)| *asked == now_known), "{first:?}");
    assert!(answer(&mut harness, 2, Says::new(0, 7, 7)).1.is_empty());
    assert!(answer(&mut harness, 3, Says::new(0, 7, 7)).1.is_empty());
    let (sent, done) = answer(&mut harness, 1, Says::new(1, 7, 9));
    assert!(done.is_empty());
    assert_eq!(asked(&sent), [(1, Asked::Value { after: OpNumber(9) })]);
    (harness, token)
}

/// A member whose clock is an hour off gives the value of a key that expires. What TTL answers would count from that clock,
/// so the leader is asked. The value of a key without an expiry counts.
#[test]
fn a_lifetime_by_a_wrong_clock_does_not_count() {
    const HOUR: u64 = 3_600_000_000;
    let lasting = WallTime(10 * HOUR);
    let right = WallTime(5 * HOUR);
    for (wrong, counts) in [(4 * HOUR, false), (6 * HOUR, false), (5 * HOUR + 300_000, true)] {
        for (expiry, counts) in [(lasting, counts), (WallTime(0), true)] {
            for policy in [ReadPolicy::Quorum, ReadPolicy::Meta] {
                let mut config =
                    Config::new(Configuration::first(Group::new(3).unwrap(), FastQuorum::Majority), 1);
                config.settings.read_policy = policy;
                let mut harness = Harness::with(config, &[0, 1, 2]);
                let token = harness.submit(Class::Read);
                let sent = harness.drain().0;
                let member = |time| {
                    let (applied, reply) = (OpNumber(7), Body::from([7]));
                    let freshness = crate::message::Freshness { accepted: applied, unordered: false, time };
                    Message::MemberReply { view: View(0), number: 1, applied, freshness, expiry, reply }
                };
                harness.receive(1, member(WallTime(wrong)));
                if policy == ReadPolicy::Quorum {
                    harness.receive(2, member(right));
                } else {
                    assert!(asked(&sent).contains(&(0, Asked::LastChange)), "{sent:?}");
                    let (view, op_number) = (View(0), OpNumber(7));
                    harness.receive(0, Message::LastChange { view, number: 1, op_number, time: right });
                }
                let (sent, done) = harness.drain();
                let context = format!("{policy}, {wrong}, {expiry:?}");
                if counts {
                    assert_eq!(done, [(token, Outcome::Reply(Body::from([7])))], "{context}");
                } else {
                    assert!(done.is_empty(), "{context}: {done:?}");
                    assert_eq!(asked(&sent), [(0, Asked::Answer)], "{context}");
                }
            }
        }
    }
}

/// A new leader's followers have yet to enter its view. What a client measured while nobody led would have it wait for
/// long; but they have answered, so it asks again soon.
#[test]
fn a_read_that_was_refused_is_asked_for_again_soon() {
    for bug in [None, Some(PlantedBug::RefusedReadAwaited)] {
        let mut harness = quorum_reader();
        #[cfg(feature = "planted-bugs")]
        (harness.client.config.planted = bug);
        // A read that took long.
        harness.submit(Class::Read);
        harness.drain();
        harness.now.instant = harness.now.instant.after(Duration::from_secs(1));
        for from in [1, 2, 3] {
            answer(&mut harness, from, Says::new(1, 7, 7));
        }
        harness.submit(Class::Read);
        harness.drain();
        for from in [1, 2, 3].into_iter().cycle().take(30) {
            let (view, refusal) = (View(1), Refusal::NotNormal);
            harness.receive(from, Message::ReadRefused { view, number: 2, refusal });
        }
        harness.drain();
        harness.pass(harness.client.config.settings.resend);
        let is_asked = asked(&harness.drain().0).contains(&(1, Asked::Value { after: OpNumber(0) }));
        assert_eq!(is_asked, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

#[test]
fn a_refusal_that_names_no_view_is_heard_in_every_epoch() {
    let first = ConfigurationEpoch::FIRST;
    for epoch in [first, first.next()] {
        let mut config = Config::new(Configuration::first(Group::new(3).unwrap(), FastQuorum::Majority), 1);
        config.configuration.id.epoch = epoch;
        config.settings.read_policy = ReadPolicy::Quorum;
        let mut harness = Harness::with(config, &[0, 1, 2]);
        harness.drain();
        harness.submit(Class::Read);
        let (member, _) = *asked(&harness.drain().0).last().expect("members are asked");
        let refusal = Refusal::NotNormal;
        harness.receive(member, Message::ReadRefused { view: View(0), number: 1, refusal });
        assert!(!asked(&harness.drain().0).is_empty(), "another one is asked at once, in {epoch:?}");
    }
}

#[test]
fn a_reread_counts_in_the_view_that_named_its_entry_and_in_earlier_ones() {
    for view in [0, 1] {
        let (mut harness, token) = rereading();
        // Entries that were accepted since are of no concern.
        let (_, done) = answer(&mut harness, 1, Says::new(view, 9, 12));
        assert_eq!(done, [(token, Outcome::Reply(Body::from([9])))], "view {view}");
    }
}

#[test]
fn a_reread_that_is_answered_out_of_a_later_view_does_not_count() {
    let (mut harness, token) = rereading();
    let (sent, done) = answer(&mut harness, 1, Says::new(2, 10, 18));
    assert!(done.is_empty(), "entry 9 of view 2 is another one: {done:?}");
    // In view 2, which replica 2 leads, the read has begun again.
    let again = asked(&sent);
    assert!(again.contains(&(2, Asked::Value { after: OpNumber(0) })), "{again:?}");
    // Each later view makes it begin again at most once.
    for from in [1, 2] {
        assert!(answer(&mut harness, from, Says::new(2, 18, 18)).1.is_empty(), "not yet a majority");
    }
    let (_, done) = answer(&mut harness, 3, Says::new(1, 7, 9));
    assert_eq!(done, [(token, Outcome::Reply(Body::from([18])))]);
}

#[test]
fn a_later_view_that_knows_of_nothing_more_ends_a_reread() {
    let (mut harness, token) = rereading();
    let (_, done) = answer(&mut harness, 1, Says::new(2, 10, 10));
    assert_eq!(done, [(token, Outcome::Reply(Body::from([10])))]);
}

#[test]
fn what_members_know_counts_for_the_latest_view_among_them() {
    let abandoned = Says { view: 0, applied: 7, accepted: 40, unordered: true };
    for order in [[1, 2, 3], [3, 2, 1], [2, 1, 3]] {
        let mut harness = quorum_reader();
        let token = harness.submit(Class::Read);
        harness.drain();
        let mut done = Vec::new();
        for from in order {
            assert!(done.is_empty(), "a majority is needed");
            let says = if from == 2 { Says::new(1, 7, 7) } else { abandoned };
            done = answer(&mut harness, from, says).1;
        }
        assert_eq!(done, [(token, Outcome::Reply(Body::from([7])))], "{order:?}");
    }
}

/// A leader whose cores all wait for asks for reads, and takes longer than others would. Where it is far away, distance is what
/// reads wait for.
#[test]
fn reads_go_to_the_leader_that_asks_for_them_unless_it_is_far() {
    let asks_leader_alone = |leader_micros: u64, advised: &[(Advised, Advice)], wait: Duration| {
        let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
        for replica in 0..3 {
            let (nearest, usual) =
                if replica == 0 { (leader_micros, leader_micros + 4_000) } else { (300, 600) };
            for micros in [nearest].into_iter().chain([usual; 20]) {
                harness.client.latencies.on_value(ReplicaId(replica), micros * 1_000, harness.now.instant);
            }
        }
        for (of, advice) in advised.iter().copied() {
            harness.receive(0, Message::Advise { view: View(0), of, advice });
        }
        harness.pass(wait);
        harness.submit(Class::Read);
        let sent = harness.drain().0;
        matches!(sent.first(), Some((0, Message::Read { asked: Asked::Answer, .. })))
    };
    let (near, far, at_once) = (300, 5_000, Duration::ZERO);
    let asked = (Advised::Reads, Advice::Leader);
    assert!(asks_leader_alone(near, &[asked], at_once));
    assert!(!asks_leader_alone(near, &[], at_once));
    assert!(!asks_leader_alone(near, &[(Advised::Updates, Advice::Leader)], at_once));
    assert!(!asks_leader_alone(near, &[asked, (Advised::Reads, Advice::Free)], at_once));
    assert!(!asks_leader_alone(near, &[asked], updates::ADVICE_LASTS), "its last word may have been lost");
    assert!(!asks_leader_alone(far, &[asked], at_once));
}
