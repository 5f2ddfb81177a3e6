//! A majority that is alive, and can talk to each other somehow, gets on.

use super::*;
use alloc::format;

impl Cluster {
    /// Lets time pass, and says whether some member that is alive has led to the end of it what a majority follows.
    fn gets_on_within(&mut self, millis: u64) -> bool {
        self.pass(millis);
        let before = self.replicas.iter().map(Replica::commit).max();
        let alive = |replica: &usize| !self.down.contains(replica) && self.replicas[*replica].is_leader();
        let leaders: Vec<usize> = (0..self.replicas.len()).filter(alive).collect();
        for (nonce, leader) in (100..).zip(leaders) {
            let view = self.replicas[leader].view();
            self.event(leader, Event::Message { from: CLIENT, message: Message::Register { view, nonce } });
        }
        self.pass(100);
        self.replicas.iter().map(Replica::commit).max() > before
    }

    /// The leader of view 0 orders updates with these sequence numbers.
    fn order(&mut self, session: SessionId, sequences: core::ops::Range<u64>) {
        for sequence in sequences {
            let request = self.request(session, sequence, sequence, Path::Ordered, "oA1");
            self.send(&[0], &request);
            self.pass(1);
        }
    }

    /// A member asks the leader of view 0 for its log from this entry on.
    fn fetch(&mut self, member: u8, first: u64) {
        let message = Message::GetState { view: View(0), from: OpNumber(first) };
        self.event(0, Event::Message { from: Peer::Replica(ReplicaId(member)), message });
    }
}

/// Plays a script as the protocol is, and, where planted bugs are compiled in, with one: then it must not get on.
fn compare(n: usize, bug: PlantedBug, millis: u64, script: impl Fn(&mut Cluster)) {
    for bug in [None, Some(bug)] {
        let mut cluster = Cluster::with(n, FastQuorum::Majority, planted(bug));
        script(&mut cluster);
        let expected = bug.is_none() || !cfg!(feature = "planted-bugs");
        assert_eq!(cluster.gets_on_within(millis), expected, "with {bug:?}");
    }
}

/// The leader of view 0 is cut off; the leader of view 1 dies; the first one returns. The third one cannot move without
/// its agreement, and it still thinks that it leads.
#[test]
fn a_leader_that_was_deposed_while_it_was_away_gives_way() {
    compare(3, PlantedBug::DeposedLeaderStays, 3000, |cluster| {
        cluster.cut_between(0, 1);
        cluster.cut_between(0, 2);
        // Too short for the old leader to notice that it is alone.
        cluster.pass(800);
        assert_eq!(cluster.leader(), 1);
        cluster.down.insert(1);
        cluster.cut.clear();
    });
}

/// What a leader sends arrives, and it hears nothing.
#[test]
fn a_leader_that_hears_nobody_gives_up_its_view() {
    for n in [3, 5] {
        compare(n, PlantedBug::UnheardLeaderStays, 4000, |cluster| {
            cluster.register();
            cluster.cut.extend((1..n).map(|member| (member, 0)));
        });
    }
}

/// All links are cut but those of one follower. The leader hears that one alone, and the others do not hear each other.
#[test]
fn the_centre_of_a_star_comes_to_lead() {
    compare(5, PlantedBug::UnheardLeaderStays, 20_000, |cluster| {
        for (a, b) in [(0, 2), (0, 3), (0, 4), (2, 3), (2, 4), (3, 4)] {
            cluster.cut_between(a, b);
        }
    });
}

/// The disk of a leader fails, and takes records again in a new log. Two members are dead, the other two hear each other,
/// and one of them the leader: they need its agreement to move, and it has nothing to tell them but that it is alive.
#[test]
fn a_leader_whose_disk_recovers_sends_signs_of_life_again() {
    for bug in [None, Some(PlantedBug::SilentForGood)] {
        let mut cluster = Cluster::with(5, FastQuorum::Majority, |config| {
            planted(bug)(config);
            config.durability = Durability::Replicated;
        });
        cluster.register();
        cluster.event(0, Event::PersistFailed);
        cluster.pass(100);
        cluster.down.extend([3, 4]);
        cluster.cut_between(0, 2);
        cluster.event(0, Event::LogReopened);
        let expected = bug.is_none() || !cfg!(feature = "planted-bugs");
        assert_eq!(cluster.gets_on_within(20_000), expected, "with {bug:?}");
    }
}

/// Updates come so fast that no sign of life is ever due, and none is answered before the leader's disk has it.
#[test]
fn a_leader_with_a_slow_disk_gives_way_under_steady_load() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    // It may have led for so long that it may go.
    cluster.pass(20_000);
    assert!(cluster.replicas[0].is_leader());
    cluster.unwritten.insert(0, Ticket(0));
    cluster.order(session, 1..3_000);
    assert!(!cluster.replicas[0].is_leader());
    assert!(cluster.gets_on_within(100));
}

/// A leader that has not had the chance to hear anybody, because it was stopped, does not give up its view.
#[test]
fn a_leader_that_was_stopped_listens_first() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.register();
    let view = cluster.replicas[0].view();
    // The whole machine slept: nobody's time-outs have run while nobody could hear.
    for replica in &mut cluster.replicas {
        if let Some(follower) = replica.role.following_mut() {
            follower.leader_contact = Instant(cluster.now.instant.0 + 60_000_000_000);
        }
        replica.timers.set(Timer::Suspect, Instant(cluster.now.instant.0 + 60_500_000_000));
    }
    cluster.now.instant.0 += 60_000_000_000;
    cluster.pass(100);
    assert!(cluster.replicas[0].is_leader() && cluster.replicas[0].view() == view);
}

/// A replica that fetches the log of a view from its leader joins a later view when that leader has died meanwhile.
#[test]
fn a_transfer_from_a_source_that_died_ends_with_the_next_view() {
    for bug in [None, Some(PlantedBug::DeadSourceAskedOn)] {
        let mut cluster = Cluster::with(5, FastQuorum::Majority, planted(bug));
        let session = cluster.register();
        for other in 0..4 {
            cluster.cut_between(4, other);
        }
        cluster.order(session, 1..10);
        cluster.pass(100);
        // It hears the next leader, which does not hear it.
        cluster.cut.remove(&(1, 4));
        cluster.event(0, Event::Message { from: CLIENT, message: Message::HandOver { to: ReplicaId(1) } });
        cluster.deliver_all();
        assert!(cluster.replicas[1].is_leader() && cluster.replicas[4].role.transfer().is_some());
        cluster.down.insert(1);
        cluster.pass(1000);
        let leader = cluster.leader();
        cluster.cut.clear();
        cluster.pass(3000);
        let joined = cluster.replicas[4].is_normal() && cluster.leader() == leader;
        assert_eq!(joined, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

/// A leader that has no room refuses what others have for now only: when there is room it takes it.
#[test]
fn what_others_have_is_taken_when_there_is_room_again() {
    for (recipients, taken) in [(ReplicaSet::ALL, true), (ReplicaSet(1), false)] {
        let mut cluster = Cluster::new(3, FastQuorum::Majority);
        let session = cluster.register();
        let Message::Request { view, path, request, .. } =
            cluster.request(session, 1, 5, Path::Ordered, "uA1")
        else {
            unreachable!()
        };
        let request = Message::Request { view, path, recipients, request };
        let limit = core::mem::replace(&mut cluster.replicas[0].config.settings.waiting_max, 0);
        cluster.send(&[0], &request);
        assert_eq!(cluster.answers(), [(0, "refused")]);
        cluster.replicas[0].config.settings.waiting_max = limit;
        cluster.send(&[0], &request);
        cluster.pass(30);
        // What nobody else has its client takes for refused for good: a copy on its way must not take effect.
        assert_eq!(cluster.answers(), [(0, if taken { "committed" } else { "refused" })]);
    }
}

/// The centre of a star in a view whose leader has died; one of those around it has never entered that view, and cannot,
/// because its leader is dead.
#[test]
fn members_that_are_behind_agree_to_any_later_view() {
    let mut cluster = Cluster::new(5, FastQuorum::Majority);
    for other in 0..4 {
        cluster.cut_between(4, other);
    }
    cluster.register();
    cluster.event(0, Event::Message { from: CLIENT, message: Message::HandOver { to: ReplicaId(1) } });
    cluster.deliver_all();
    cluster.down.extend([0, 1]);
    cluster.cut.clear();
    cluster.cut_between(3, 4);
    assert!(cluster.gets_on_within(3000));
}

/// A client gives up an update that one follower has, and has a later one answered. The leader dies. What was given up does
/// not take effect after what was answered.
#[test]
fn what_a_client_has_given_up_does_not_follow_what_it_was_answered() {
    for bug in [None, Some(PlantedBug::AcknowledgedInLogRecovered)] {
        let mut cluster = Cluster::with(3, FastQuorum::Majority, planted(bug));
        let session = cluster.register();
        let given_up = cluster.request(session, 1, 5, Path::Durability, "oA1");
        cluster.send(&[1], &given_up);
        let Message::Request { view, path, recipients, mut request } =
            cluster.request(session, 2, 6, Path::Ordered, "uA2")
        else {
            unreachable!()
        };
        request.acked_below = 2;
        cluster.answers();
        cluster.send(&[0], &Message::Request { view, path, recipients, request });
        cluster.deliver_all();
        assert_eq!(cluster.answers(), [(0, "committed")]);
        // Before the followers hear that it is committed.
        cluster.down.insert(0);
        cluster.pass(2000);
        let returns = bug.is_some() && cfg!(feature = "planted-bugs");
        let expected: &[&str] = if returns { &["uA2", "oA1"] } else { &["uA2"] };
        assert_eq!(cluster.executed[cluster.leader()], expected, "with {bug:?}");
    }
}

/// A leader that hears nobody but a follower that fetches the log to enter its view stays, for as long as that one gets
/// further.
#[test]
fn a_leader_waits_for_a_follower_that_gets_further() {
    let leads = |step: u64, bug| {
        let mut cluster = Cluster::with(3, FastQuorum::Majority, planted(bug));
        let session = cluster.register();
        cluster.order(session, 1..60);
        cluster.pass(100);
        cluster.down.insert(1);
        cluster.cut.insert((2, 0));
        for part in 1..50 {
            cluster.fetch(2, 1 + part * step);
            cluster.pass(100);
        }
        cluster.replicas[0].view() == View(0)
    };
    assert!(leads(1, None));
    assert!(!leads(0, None), "it gets no further");
    if cfg!(feature = "planted-bugs") {
        assert!(!leads(1, Some(PlantedBug::FetchingUnheard)));
    }
}

/// Five members. The leader hears one follower that answers, and one that fetches without end. The two others cannot reach
/// it, and hear the first one: these three are up to date, and could have a view of their own.
#[test]
fn a_follower_that_fetches_does_not_keep_the_others_from_going_on() {
    let one_way: &[(usize, usize)] = &[(3, 0), (4, 0)];
    let between_sites = &[(0, 3), (3, 0), (0, 4), (4, 0), (2, 3), (2, 4)];
    for cut in [one_way, between_sites] {
        let mut cluster = Cluster::new(5, FastQuorum::Majority);
        let session = cluster.register();
        cluster.order(session, 1..100);
        cluster.pass(100);
        cluster.cut.extend(cut.iter().copied());
        // Nothing else is heard of the one that fetches.
        cluster.cut.extend((0..5).map(|other| (2, other)));
        for part in 1..40 {
            cluster.fetch(2, 1 + part);
            cluster.pass(100);
        }
        assert!(cluster.gets_on_within(0));
    }
}

/// A member that asks for what no log has gets no further.
#[test]
fn numbers_beyond_the_log_are_no_progress() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.register();
    cluster.down.insert(1);
    cluster.cut.insert((2, 0));
    for part in 1..50 {
        cluster.fetch(2, (1 << 61) + part);
        cluster.pass(100);
    }
    assert_ne!(cluster.replicas[0].view(), View(0));
}

/// A member that has asked for what no log has is heard when it fetches.
#[test]
fn one_large_number_does_not_deafen_the_leader() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    cluster.order(session, 1..60);
    cluster.pass(100);
    cluster.fetch(2, 1 << 61);
    cluster.down.insert(1);
    cluster.cut.insert((2, 0));
    for part in 1..50 {
        cluster.fetch(2, 1 + part);
        cluster.pass(100);
    }
    assert_eq!(cluster.replicas[0].view(), View(0));
}

/// What is on its way to the disk has not been seen there yet: an update takes its room when it is accepted.
#[test]
fn updates_take_the_room_of_the_disk_before_they_are_on_it() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let requests = [(1, "oA1"), (2, "oB1"), (3, "oC1")]
        .map(|(sequence, key)| cluster.request(session, sequence, 5, Path::Durability, key));
    let give = |cluster: &mut Cluster, room| {
        (0..3).for_each(|replica| cluster.event(replica, Event::DiskRoom(room)));
    };
    give(&mut cluster, 1);
    cluster.send(&[0, 1, 2], &requests[0]);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    cluster.send(&[0, 1, 2], &requests[1]);
    assert_eq!(cluster.answers(), [(0, "refused"), (1, "refused"), (2, "refused")]);
    give(&mut cluster, u64::MAX);
    cluster.pass(300);
    cluster.send(&[0, 1, 2], &requests[2]);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
}

/// A second copy of an update that all have refused comes when there is room, and after as many other refusals as are
/// remembered.
#[test]
fn a_copy_that_comes_after_many_other_refusals() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let first = cluster.request(session, 1, 5, Path::Durability, "oA1");
    let second = cluster.request(session, 1, 5, Path::Ordered, "oA1");
    for replica in 0..3 {
        cluster.event(replica, Event::DiskRoom(0));
    }
    cluster.send(&[0, 1, 2], &first);
    assert_eq!(cluster.answers(), [(0, "refused"), (1, "refused"), (2, "refused")]);
    // Other sessions, each with nearly as many in flight as a client may have.
    for _ in 0..5 {
        let session = cluster.register();
        for sequence in 1..=60_000 {
            let other = cluster.request(session, sequence, 5, Path::Durability, "oB1");
            cluster.event(0, Event::Message { from: CLIENT, message: other });
        }
        assert_eq!(cluster.inbox.len(), 60_000);
        assert!(cluster.answers().iter().all(|(_, answer)| *answer == "refused"));
    }
    for replica in 0..3 {
        cluster.event(replica, Event::DiskRoom(u64::MAX));
    }
    // The leader hears that the others have space again.
    cluster.pass(300);
    assert_eq!(cluster.replicas[0].view(), View(0));
    cluster.send(&[0], &second);
    cluster.pass(50);
    assert!(cluster.executed[0].is_empty(), "executed though all refused it: {:?}", cluster.executed[0]);
}

/// Views follow each other for as long as nobody can begin one. The time-outs double up to eight times, and no longer: the group has a
/// leader soon after it can have one.
#[test]
fn attempts_that_fail_for_minutes_do_not_outlast_their_cause() {
    for (body, seconds) in [(0, 60), (64 << 10, 300)] {
        let mut cluster = Cluster::new(3, FastQuorum::Majority);
        let session = cluster.register();
        let request = cluster.request(session, 1, 5, Path::Durability, &format!("oA{}", "x".repeat(body)));
        cluster.down.insert(0);
        cluster.send(&[1, 2], &request);
        // Only what is small gets through.
        for _ in 0..seconds * 1_000 {
            cluster.pass_silently();
            while let Some((from, to, message)) = cluster.wire.pop_front() {
                if !matches!(message, Message::DoViewChange(_)) {
                    cluster.deliver(from, to, message);
                }
            }
        }
        let view = cluster.replicas[1..].iter().map(Replica::view).max();
        assert!(view > Some(View(20)), "{view:?}");
        cluster.pass(5_000);
        assert!(cluster.replicas[1..].iter().any(Replica::is_leader), "{body} bytes, {seconds} s");
    }
}

/// From the leader to a member that it needs, only signs of life pass: the leader is heard, and answered, and commits nothing for
/// ever. Member 2 hears both and is heard by both.
#[test]
fn a_leader_that_is_answered_and_commits_nothing_gives_up() {
    for bug in [None, Some(PlantedBug::FruitlessLeaderStays)] {
        let mut cluster = Cluster::with(5, FastQuorum::Majority, planted(bug));
        let session = cluster.register();
        let request = cluster.request(session, 1, 1_000_100, Path::Ordered, "ua");
        cluster.down.extend([3, 4]);
        cluster.send(&[0], &request);
        let is_done = |cluster: &Cluster| cluster.executed[2].iter().any(|body| body == "ua");
        for _ in 0..60_000 {
            cluster.pass_silently();
            while let Some((from, to, message)) = cluster.wire.pop_front() {
                if (from, to) != (0, 1) || matches!(message, Message::Commit { .. }) {
                    cluster.deliver(from, to, message);
                }
            }
            if is_done(&cluster) {
                break;
            }
        }
        assert_eq!(is_done(&cluster), bug.is_none() || !cfg!(feature = "planted-bugs"), "{bug:?}");
    }
}

/// Members 5 and 6 are dead, 2 and 3 do not hear the leader, 1 hears all and is heard by all, and 4 loses its memory each second, soon
/// after it has come back. The leader is answered by 1 and 4 at most, and leads again each time that 4 asks to be let in.
#[test]
fn a_member_that_crashes_again_and_again_keeps_no_unheard_leader_in_place() {
    for bug in [None, Some(PlantedBug::RestartsUnheard)] {
        let mut cluster = Cluster::with(7, FastQuorum::Majority, |config| {
            planted(bug)(config);
            config.durability = Durability::Replicated;
        });
        cluster.register();
        cluster.down.extend([5, 6]);
        cluster.cut.extend([(0, 2), (0, 3)]);
        let committed = |cluster: &Cluster| cluster.replicas[1].commit;
        let before = committed(&cluster);
        for _ in 0..60 {
            let config = cluster.replicas[4].config.clone();
            let view = cluster.replicas[4].view();
            cluster.replicas[4] = Replica::new(config, Boot::Amnesiac { view }, cluster.now);
            cluster.executed[4].clear();
            cluster.event(4, Event::Tick);
            for leader in 0..4 {
                let view = cluster.replicas[leader].view();
                let message = Message::Register { view, nonce: 2 };
                cluster.event(leader, Event::Message { from: CLIENT, message });
            }
            cluster.pass(850);
        }
        let expected = bug.is_none() || !cfg!(feature = "planted-bugs");
        assert_eq!(committed(&cluster) > before, expected, "with {bug:?}");
    }
}
