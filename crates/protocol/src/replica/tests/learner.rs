//! Nodes that copy what the group holds before it grows by them.

use super::sizes::{node, roster_of};
use super::*;
use crate::replica::ReconfigurationObjection;
use syros_types::{ConfigurationEpoch, Reconfiguration, Roster};

impl Cluster {
    /// A group whose members tell little in one answer.
    fn that_tells_little(n: usize, bug: Option<PlantedBug>) -> Self {
        let mut cluster = Self::with(n, FastQuorum::Mixed, |config| {
            planted(bug)(config);
            config.settings.transfer_entries_max = 4;
            config.configuration.roster = roster_of(n);
            config.node = config.configuration.roster.node(config.replica);
        });
        cluster.pass(300);
        cluster
    }

    /// The two nodes that the group is to grow by start.
    pub(super) fn start_learners(&mut self) {
        let known = *self.replicas[0].configuration();
        for member in known.group().larger().unwrap().members().skip(self.replicas.len()) {
            let mut config = self.replicas[0].config.clone();
            (config.replica, config.configuration) = (member, known);
            config.node = Some(node(u64::from(member.0) + 1));
            let learner = Replica::new(config, Boot::Fresh, self.now);
            self.replicas.push(learner);
            self.executed.push(Vec::new());
            self.ahead.push(0);
        }
    }

    fn write_all(&mut self, session: SessionId, sequences: core::ops::RangeInclusive<u64>) -> bool {
        sequences.into_iter().all(|sequence| self.write(session, sequence))
    }

    fn are_members(&self, n: usize) -> bool {
        self.sizes() == vec![n; n] && self.replicas.iter().all(Replica::is_normal)
    }
}

#[test]
fn learners_hold_what_the_group_does_before_it_grows_by_them() {
    for n in [1, 3, 5] {
        let mut cluster = Cluster::that_tells_little(n, None);
        let session = cluster.register();
        assert!(cluster.write_all(session, 1..=30));
        cluster.start_learners();
        // One alone is none of two.
        cluster.down.insert(n + 1);
        cluster.pass(3_000);
        assert_eq!(cluster.executed[n].len(), 30, "{n}");
        assert!(cluster.write_all(session, 31..=40));
        cluster.pass(100);
        assert_eq!((cluster.executed[n].len(), cluster.sizes()[..=n].to_vec()), (40, vec![n; n + 1]));
        assert!(
            cluster.replicas[n].status().role == RoleName::Recovering && !cluster.replicas[n].is_leader()
        );
        cluster.down.remove(&(n + 1));
        let mut stands_still = 0;
        for _ in 0..1_000 {
            cluster.pass(1);
            let newest = cluster.replicas.iter().find(|replica| replica.configuration().size() == n + 2);
            if newest.is_some_and(|_| cluster.executed[n + 1].len() < 40) {
                panic!("{n}: a node that holds {} of 40 has come in", cluster.executed[n + 1].len());
            }
            stands_still += usize::from(newest.is_some_and(|replica| !replica.is_established()));
        }
        assert!(cluster.are_members(n + 2), "{n}: {:?}", cluster.sizes());
        assert!(stands_still < 60, "{n}: {stands_still} ms");
        assert!(cluster.write_all(session, 41..=45));
        cluster.pass(300);
        assert!(cluster.executed.iter().all(|executed| executed.len() == 45));
    }
}

/// A leader that took nodes which hold nothing would wait for them.
#[test]
fn learners_are_not_counted_before_they_have_copied() {
    for bug in [None, Some(PlantedBug::LearnerCounted)] {
        let mut cluster = Cluster::that_tells_little(1, bug);
        let session = cluster.register();
        assert!(cluster.write_all(session, 1..=30));
        cluster.start_learners();
        // They hear nothing, and ask.
        cluster.cut.extend([(0, 1), (0, 2)]);
        cluster.pass(1_000);
        let is_served = cluster.sizes()[0] == 1 && cluster.write(session, 31);
        assert_eq!(is_served, bug.is_none() || !cfg!(feature = "planted-bugs"), "{bug:?}");
    }
}

/// With one of three dead the group may grow if both new nodes hold what it does: three of five are needed at once.
#[test]
fn a_group_of_which_one_is_dead_grows_by_learners() {
    let mut cluster = Cluster::that_tells_little(3, None);
    let session = cluster.register();
    assert!(cluster.write_all(session, 1..=20));
    cluster.down.insert(1);
    cluster.pass(4_000);
    let too_few = ReconfigurationObjection::TooFew { heard: 2, needed: 3 };
    assert_eq!(cluster.replicas[cluster.leader()].objection_to(&roster_of(5)), Some(too_few));
    cluster.start_learners();
    cluster.pass(1_000);
    assert_eq!(cluster.sizes(), [5, 3, 5, 5, 5]);
    assert!(cluster.write_all(session, 21..=25));
    cluster.down.insert(cluster.leader());
    cluster.pass(3_000);
    assert!(cluster.write_all(session, 26..=30), "three of five are there, and hold everything");
}

/// What is in a leader's log may never be committed.
#[test]
fn learners_take_over_only_what_is_committed() {
    let bugs = [None, Some(PlantedBug::LearnerTakesAll), Some(PlantedBug::LearnerActsEarly)];
    for bug in bugs {
        let mut cluster = Cluster::of_known_nodes(3, FastQuorum::Mixed, bug);
        let session = cluster.register();
        assert!(cluster.write_all(session, 1..=3));
        let leader = cluster.leader();
        cluster.cut.extend((0..3).filter(|other| *other != leader).flat_map(|other| [(leader, other)]));
        let request = cluster.request(session, 4, 5, Path::Ordered, "uA1");
        cluster.send(&[leader], &request);
        cluster.propose_to(leader, &roster_of(5));
        cluster.start_learners();
        cluster
            .cut
            .extend((0..3).filter(|other| *other != leader).flat_map(|other| [(other, 3), (3, other)]));
        cluster.pass(10);
        let is_planted = bug.is_some() && cfg!(feature = "planted-bugs");
        let is_deposed = !cluster.replicas[leader].is_leader();
        assert_eq!(is_deposed, is_planted, "{bug:?}");
        let (executed, size) = (cluster.executed[3].len(), cluster.sizes()[3]);
        let takes_all = is_planted && bug == Some(PlantedBug::LearnerTakesAll);
        assert_eq!(executed > 3, takes_all, "{bug:?}: {executed}");
        assert_eq!(size == 5, is_planted, "{bug:?}: {size}");
    }
}

/// Other nodes may come and go while one learns.
#[test]
fn learners_follow_the_configurations_of_the_group() {
    let mut cluster = Cluster::that_tells_little(3, None);
    let session = cluster.register();
    assert!(cluster.write_all(session, 1..=10));
    cluster.start_learners();
    cluster.down.insert(4);
    cluster.pass(300);
    let replaced = (0..3).find(|member| *member != cluster.leader()).unwrap();
    cluster.down.insert(replaced);
    cluster.pass(4_000);
    let leader = cluster.leader();
    let roster = roster_of(3).with(ReplicaId(replaced as u8), node(50));
    cluster.propose_to(leader, &roster);
    cluster.deliver_all();
    cluster.pass(1_000);
    assert!(cluster.write_all(session, 11..=20));
    cluster.pass(300);
    let learner = &cluster.replicas[3];
    assert_eq!((learner.configuration().roster, cluster.executed[3].len()), (roster, 20));
    cluster.down.remove(&4);
    cluster.pass(1_000);
    assert_eq!(cluster.sizes()[leader], 5);
    assert!(cluster.write_all(session, 21..=25));
}

impl Cluster {
    /// One that is to be this member, in a group that has this configuration.
    fn learner(&self, member: usize, number: u64, known: Configuration) -> Replica {
        let mut config = self.replicas[0].config.clone();
        (config.replica, config.configuration) = (ReplicaId(member as u8), known);
        config.node = Some(node(number));
        Replica::new(config, Boot::Fresh, self.now)
    }
}

/// Found by a reviewer: they had copied everything once, and the leader heard them; they did not hear it.
#[test]
fn learners_that_hear_nothing_any_more_do_not_come_in() {
    let mut cluster = Cluster::that_tells_little(1, None);
    let session = cluster.register();
    assert!(cluster.write_all(session, 1..=30));
    cluster.start_learners();
    cluster.down.insert(2);
    cluster.pass(1_000);
    cluster.down.insert(1);
    cluster.pass(3_000);
    cluster.down.remove(&2);
    cluster.pass(1_000);
    assert_eq!((cluster.executed[1].len(), cluster.executed[2].len(), cluster.sizes()[0]), (30, 30, 1));
    cluster.cut.extend([(0, 1), (0, 2)]);
    cluster.down.clear();
    cluster.pass(10_000);
    assert_eq!(cluster.sizes()[0], 1);
    assert!(cluster.write(session, 31));
    cluster.cut.clear();
    cluster.pass(1_000);
    assert!(cluster.are_members(3), "they hear it again");
}

/// Found by a reviewer: thousands of entries are few only if they are small.
#[test]
fn learners_that_lack_much_do_not_come_in() {
    let mut cluster = Cluster::that_tells_little(1, None);
    cluster.replicas[0].config.settings.transfer_bytes_max = 1_000;
    let session = cluster.register();
    assert!(cluster.write_all(session, 1..=100));
    let of_two = |cluster: &mut Cluster, lacking: u64| {
        let applied = OpNumber(cluster.replicas[0].commit().0 - lacking);
        for member in [1, 2] {
            let message = Message::PlaceWanted { view: View(0), node: node(u64::from(member) + 1), applied };
            cluster.event(0, Event::Message { from: Peer::Replica(ReplicaId(member)), message });
        }
        cluster.sizes()[0]
    };
    assert_eq!(of_two(&mut cluster, 100), 1, "more than sixteen answers");
    assert_eq!(of_two(&mut cluster, 20), 3);
}

/// Found by an operator: the leader that they copied from went on leading when a node had been replaced, and answered nobody who
/// asked for its earlier view.
#[test]
fn learners_go_on_when_the_configuration_changes_while_they_copy() {
    let mut cluster = Cluster::that_tells_little(3, None);
    let session = cluster.register();
    assert!(cluster.write_all(session, 1..=30));
    let leader = cluster.leader();
    let replaced = (0..3).find(|member| *member != leader).unwrap();
    cluster.down.insert(replaced);
    cluster.pass(4_000);
    cluster.start_learners();
    let leader = cluster.leader();
    // In the middle of a copy: it has been told what is committed, and nothing more.
    cluster.now.instant.0 += 1;
    cluster.event(3, Event::Tick);
    while !cluster.replicas[3].awaits_transfer() {
        let (from, to, message) = cluster.wire.pop_front().expect("the leader answers");
        cluster.event(to, Event::Message { from: Peer::Replica(ReplicaId(from as u8)), message });
    }
    cluster.cut.extend([(leader, 3), (leader, 4)]);
    let roster = roster_of(3).with(ReplicaId(replaced as u8), node(50));
    cluster.propose_to(leader, &roster);
    cluster.deliver_all();
    cluster.pass(1_000);
    cluster.cut.clear();
    cluster.pass(2_000);
    assert_eq!(cluster.sizes()[leader], 5);
    assert!(cluster.write_all(session, 31..=35));
}

/// Another node has got its place: it acts in no configuration in which its position is that one's.
#[test]
fn a_learner_whose_place_another_node_has_stays_outside() {
    let mut cluster = Cluster::of_known_nodes(3, FastQuorum::Majority, None);
    let session = cluster.register();
    assert!(cluster.write(session, 1));
    let mut other = cluster.learner(3, 40, *cluster.replicas[0].configuration());
    cluster.start_learners();
    cluster.pass(1_000);
    assert!(cluster.are_members(5));
    let leader = cluster.leader();
    let (from, now) = (Peer::Replica(ReplicaId(leader as u8)), cluster.now);
    let known = cluster.replicas[leader].configuration().reconfiguration();
    other.handle(now, Event::Message { from, message: Message::Configuration(Box::new(known)) });
    other.handle(now, Event::Message { from, message: cluster.replicas[leader].start_view_message() });
    assert_eq!(other.configuration().size(), 3);
    assert!(!other.awaits_transfer());
    // Nor does a leader give it the place of a member.
    let (view, applied) = (cluster.replicas[leader].view(), cluster.replicas[leader].commit());
    cluster.down.insert(3);
    cluster.pass(4_000);
    let leader = cluster.leader();
    let message = Message::PlaceWanted { view, node: node(40), applied };
    cluster.event(leader, Event::Message { from: Peer::Replica(ReplicaId(3)), message });
    cluster.pass(100);
    assert_eq!(cluster.replicas[leader].configuration().roster.node(ReplicaId(3)), Some(node(4)));
}

/// Found by a reviewer: a learner that had not heard that it had come in, and whose vote was needed when the group shrank by it again.
#[test]
fn a_learner_that_missed_that_it_had_come_in_votes_when_it_goes() {
    let mut cluster = Cluster::of_known_nodes(3, FastQuorum::Majority, None);
    let session = cluster.register();
    assert!(cluster.write(session, 1));
    cluster.start_learners();
    cluster.down.insert(4);
    cluster.pass(500);
    cluster.down.remove(&4);
    // It asks, and hears nothing.
    cluster.cut.extend((0..5).filter(|other| *other != 3).map(|other| (other, 3)));
    cluster.pass(350);
    cluster.cut.extend((0..5).filter(|other| *other != 3).map(|other| (3, other)));
    cluster.pass(1_500);
    assert_eq!(cluster.sizes(), [5, 5, 5, 3, 5]);
    assert!(cluster.write(session, 2));
    let leader = cluster.leader();
    assert!(leader < 3);
    let away = (0..3).rev().find(|other| *other != leader).unwrap();
    // Committed; what is said in the next view is lost, and two of the five die.
    cluster.propose_to(leader, &roster_of(3));
    while cluster.replicas[leader].configuration().size() == 5 {
        let (from, to, message) = cluster.wire.pop_front().expect("they acknowledge it");
        if !cluster.cut.contains(&(from, to)) {
            let from = Peer::Replica(ReplicaId(from as u8));
            cluster.event(to, Event::Message { from, message });
        }
    }
    cluster.wire.clear();
    cluster.down.extend([away, 4]);
    cluster.cut.clear();
    cluster.pass(10_000);
    let leads = |it: &Replica| it.is_leader() && it.configuration().size() == 3 && it.is_established();
    assert!(cluster.replicas.iter().any(leads), "three of the five are there, and two of the three");
    assert!(cluster.write(session, 3));
}

/// The group had shrunk by positions whose nodes nobody had known.
#[test]
fn a_node_that_starts_with_nothing_learns_whoever_had_its_place() {
    let cluster = Cluster::of_known_nodes(3, FastQuorum::Majority, None);
    let (three, five) = (Roster::unknown(Group::new(3).unwrap()), Roster::unknown(Group::new(5).unwrap()));
    let known = Reconfiguration { epoch: ConfigurationEpoch(1), roster: three, before: Some(five) };
    let learner = cluster.learner(3, 40, cluster.replicas[0].configuration().after(known));
    assert!(learner.is_learner() && !learner.is_departing() && !learner.has_lost_memory());
}

/// Found by a reviewer and an operator: all members held everything, so it went from the log before the learner had fetched it,
/// which took snapshots for ever.
#[test]
fn what_a_learner_has_yet_to_fetch_stays_in_the_log() {
    for asks in [false, true] {
        let mut cluster = Cluster::with(3, FastQuorum::Mixed, |config| {
            config.settings.log_keep_bytes = 2_000;
            config.configuration.roster = roster_of(3);
            config.node = config.configuration.roster.node(config.replica);
        });
        cluster.pass(300);
        let session = cluster.register();
        assert!(cluster.write_all(session, 1..=10));
        let leader = cluster.leader();
        let first = cluster.replicas[leader].commit();
        if asks {
            let message = Message::GetState { view: cluster.replicas[leader].view(), from: first };
            cluster.event(leader, Event::Message { from: Peer::Replica(ReplicaId(3)), message });
        }
        assert!(cluster.write_all(session, 11..=60));
        assert_eq!(cluster.replicas[leader].log_base() < first, asks);
    }
}

/// Found by an operator: a learner was killed when it had asked, and came in with the next one, which was started at once.
#[test]
fn a_learner_that_is_gone_does_not_come_in() {
    for is_told in [true, false] {
        let mut cluster = Cluster::that_tells_little(3, None);
        let session = cluster.register();
        assert!(cluster.write_all(session, 1..=5));
        let leader = cluster.leader();
        let (view, applied) = (cluster.replicas[leader].view(), cluster.replicas[leader].commit());
        let ask = |cluster: &mut Cluster, member: u8| {
            let message = Message::PlaceWanted { view, node: node(u64::from(member) + 1), applied };
            cluster.event(leader, Event::Message { from: Peer::Replica(ReplicaId(member)), message });
        };
        ask(&mut cluster, 3);
        if is_told {
            cluster.event(leader, Event::LearnerGone(ReplicaId(3)));
        } else {
            // Its machine is gone, and nobody is told.
            cluster.pass(500);
        }
        ask(&mut cluster, 4);
        assert_eq!(cluster.sizes()[leader], 3, "{is_told}");
        ask(&mut cluster, 3);
        cluster.deliver_all();
        assert_eq!(cluster.sizes()[leader], 5, "{is_told}");
    }
}
