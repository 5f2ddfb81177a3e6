//! What completes an update in the mixed mode: with all active members, whom the answers name.

use super::*;
use syros_types::ReplicaSet;

fn rule(members: &[u8]) -> Option<FastRule> {
    let active = members.iter().map(|member| ReplicaId(*member)).collect::<ReplicaSet>();
    Some(FastRule { mode: FastQuorum::Mixed, active })
}

impl Harness {
    fn ok_of(&mut self, from: u8, view: u64, rule: Option<FastRule>, sequence: u64) {
        let clock = self.clock();
        self.receive(from, Message::Ok { view: View(view), rule, id: id(sequence), clock });
    }
}

#[test]
fn overwrites_need_a_majority_and_others_everybody() {
    let mut harness = Harness::new(5, FastQuorum::Mixed, &[0, 1, 2, 3, 4]);
    let overwrite = harness.submit(Class::Overwrite);
    (0..3).for_each(|from| harness.ok(from, 0, 2));
    assert_eq!(harness.drain().1, [(overwrite, Outcome::Done)]);
    let merge = harness.submit(Class::Merge);
    (0..4).for_each(|from| harness.ok(from, 0, 3));
    assert!(harness.drain().1.is_empty());
    harness.ok(4, 0, 3);
    assert_eq!(harness.drain().1, [(merge, Outcome::Done)]);
    let update = harness.submit(Class::Update);
    (0..5).for_each(|from| harness.ok(from, 0, 4));
    assert!(harness.drain().1.is_empty(), "the leader has not said what it returns");
    harness.receive(0, Message::Evaluated { view: View(0), id: id(4), reply: Body::from([5]) });
    assert_eq!(harness.drain().1, [(update, Outcome::Reply(Body::from([5])))]);
}

/// A client that was told of another mode goes by it, in both directions.
#[test]
fn the_mode_that_the_leader_tells_counts() {
    let told = |mode, members: &[u8]| {
        let active = members.iter().map(|member| ReplicaId(*member)).collect::<ReplicaSet>();
        Message::FastRule { view: View(0), rule: FastRule { mode, active } }
    };
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    harness.submit(Class::Update);
    assert_eq!(harness.drain().0.len(), 1, "to the leader");
    harness.receive(1, told(FastQuorum::Mixed, &[0, 1, 2]));
    harness.submit(Class::Update);
    assert_eq!(harness.drain().0.len(), 1, "another member says nothing of it");
    harness.receive(0, told(FastQuorum::Supermajority, &[0, 1, 2]));
    harness.submit(Class::Update);
    assert_eq!(harness.drain().0.len(), 1, "its mode cannot become that one");
    harness.receive(0, told(FastQuorum::Mixed, &[0, 1]));
    harness.submit(Class::Update);
    let sent = harness.drain().0;
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [0, 1]);

    let mut harness = Harness::new(3, FastQuorum::Mixed, &[0, 1, 2]);
    harness.submit(Class::Update);
    assert_eq!(harness.drain().0.len(), 3);
    harness.receive(0, told(FastQuorum::Majority, &[0, 1, 2]));
    let sent = harness.drain().0;
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [0], "the leader is to order it");
    let overwrite = harness.submit(Class::Overwrite);
    assert_eq!(harness.drain().0.len(), 3);
    let rule = Some(FastRule { mode: FastQuorum::Majority, active: ReplicaSet::of(Group::new(3).unwrap()) });
    (0..2).for_each(|from| harness.ok_of(from, 0, rule, 3));
    assert_eq!(harness.drain().1, [(overwrite, Outcome::Done)]);
}

#[test]
fn only_active_members_count() {
    let mut harness = Harness::new(5, FastQuorum::Mixed, &[0, 1, 2, 3, 4]);
    let token = harness.submit(Class::Overwrite);
    assert_eq!(harness.drain().0.len(), 5, "it does not know yet who is active");
    harness.ok_of(0, 0, rule(&[0, 1, 2]), 2);
    // They vouch for what is in their logs.
    harness.ok_of(3, 0, rule(&[0, 1, 2]), 2);
    harness.ok_of(4, 0, rule(&[0, 1, 2]), 2);
    harness.ok_of(1, 0, rule(&[0, 1, 2]), 2);
    assert!(harness.drain().1.is_empty());
    harness.ok_of(2, 0, rule(&[0, 1, 2]), 2);
    assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
    let strong = harness.submit(Class::Merge);
    let sent = harness.drain().0;
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [0, 1, 2], "the others keep no such log");
    (0..3).for_each(|from| harness.ok_of(from, 0, rule(&[0, 1, 2]), 3));
    assert_eq!(harness.drain().1, [(strong, Outcome::Done)]);
}

#[test]
fn the_active_members_of_one_view_say_nothing_of_the_next() {
    for bug in [None, Some(PlantedBug::ActiveOfOtherView)] {
        let configuration = Configuration::first(Group::new(3).unwrap(), FastQuorum::Mixed);
        let mut config = Config::new(configuration, 1);
        #[cfg(feature = "planted-bugs")]
        (config.planted = bug);
        #[cfg(not(feature = "planted-bugs"))]
        (_ = (&mut config, bug));
        let mut harness = Harness::with(config, &[0, 1, 2]);
        harness.submit(Class::Merge);
        harness.ok_of(0, 0, rule(&[0, 1]), 2);
        harness.receive(1, Message::WrongView { view: View(3) });
        harness.drain();
        for from in [0, 1] {
            harness.ok_of(from, 3, None, 2);
        }
        let is_planted = bug.is_some() && cfg!(feature = "planted-bugs");
        assert_eq!(harness.drain().1.len(), usize::from(is_planted), "{bug:?}");
    }
}

#[test]
fn a_member_that_is_not_active_makes_nothing_impossible() {
    let mut harness = Harness::new(3, FastQuorum::Mixed, &[0, 1, 2]);
    let token = harness.submit(Class::Merge);
    harness.drain();
    harness.ok_of(0, 0, rule(&[0, 1]), 2);
    let refused =
        Message::Refused { view: View(0), id: id(2), clock: harness.clock(), refusal: Refusal::NotActive };
    harness.receive(2, refused);
    let (sent, done) = harness.drain();
    assert!(sent.is_empty() && done.is_empty(), "{sent:?}");
    harness.ok_of(1, 0, rule(&[0, 1]), 2);
    assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
}

#[test]
fn with_a_member_out_of_reach_strong_updates_are_ordered_unless_it_is_left_out() {
    for left_out in [false, true] {
        let mut harness = Harness::new(3, FastQuorum::Mixed, &[0, 1]);
        let token = harness.submit(Class::Merge);
        assert_eq!(paths(&harness.drain().0), [(0, Path::Durability, 2), (1, Path::Durability, 2)]);
        let told = if left_out { rule(&[0, 1]) } else { None };
        harness.ok_of(0, 0, told, 2);
        let sent = paths(&harness.drain().0);
        harness.ok_of(1, 0, told, 2);
        let done = harness.drain().1;
        if left_out {
            assert_eq!((sent, done), (Vec::new(), [(token, Outcome::Done)].into()));
        } else {
            assert_eq!((sent, done), ([(0, Path::Ordered, 2)].into(), Vec::new()));
            harness.submit(Class::Merge);
            assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, 3)], "it knows");
        }
        harness.submit(Class::Overwrite);
        assert_eq!(harness.drain().0.len(), 2, "two of three are enough for it");
    }
}

/// What completes an update is for the leader to say, and it cannot be anything.
#[test]
fn a_rule_that_is_not_the_leaders_or_not_possible_completes_nothing() {
    let of_other_mode = rule(&[0, 1, 2, 3, 4]).map(|rule| FastRule { mode: FastQuorum::Commutative, ..rule });
    for (from, wrong) in [
        (4, rule(&[0, 1, 4])),
        (0, rule(&[0])),
        (0, rule(&[])),
        (0, Some(FastRule { mode: FastQuorum::Mixed, active: ReplicaSet::ALL })),
        (0, rule(&[1, 2, 3])),
        (0, of_other_mode),
    ] {
        let mut harness = Harness::new(5, FastQuorum::Mixed, &[0, 1, 2, 3, 4]);
        harness.submit(Class::Merge);
        harness.submit(Class::Merge);
        for from in [0, 1] {
            harness.ok(from, 0, 2);
            harness.ok(from, 0, 3);
        }
        harness.ok_of(from, 0, wrong, 3);
        assert!(harness.drain().1.is_empty(), "{from} {wrong:?}");
        harness.now.instant.0 += 1_000_000_000;
        harness.client.handle(harness.now, Event::Tick);
    }
}

/// A client whose update two of three members have accepted, and the third does not answer. These members have taken a second on
/// average of late.
fn one_is_silent_after_a_second_of(late: &[usize]) -> Harness {
    let mut harness = Harness::new(3, FastQuorum::Mixed, &[0, 1, 2]);
    let token = harness.submit(Class::Merge);
    harness.pass(Duration::from_millis(1));
    (0..3).for_each(|from| harness.ok(from, 0, 2));
    assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
    harness.submit(Class::Merge);
    for member in late {
        harness.client.write_times.oks[*member] = Duration::from_secs(1).as_nanos() as u64;
    }
    harness.pass(Duration::from_millis(1));
    harness.drain();
    (0..2).for_each(|from| harness.ok(from, 0, 3));
    harness
}

/// A member that was cut off has answered late, which its average remembers. When it is silent again, nobody waits for so long.
#[test]
fn the_wait_for_a_silent_member_is_not_what_it_once_took() {
    let mut harness = one_is_silent_after_a_second_of(&[2]);
    let sync_after = harness.client.config.settings.sync_after;
    harness.pass(sync_after);
    assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, 3)]);
}

/// Updates have taken long of late, and so a client waits for long until it gives a silent member up. It looks around meanwhile:
/// its leader may have ended.
#[test]
fn who_waits_for_a_silent_member_looks_for_another_leader_meanwhile() {
    let mut harness = one_is_silent_after_a_second_of(&[0, 1, 2]);
    let sync_after = harness.client.config.settings.sync_after;
    let asked = (0..4).flat_map(|_| {
        harness.pass(sync_after / 2);
        harness.drain().0
    });
    let asked = asked.filter(|(_, message)| matches!(message, Message::Read { number: 0, .. }));
    let asked: Vec<u8> = asked.map(|(to, _)| to).collect();
    assert!((0..3).all(|member| asked.contains(&member)), "{asked:?}");
}
