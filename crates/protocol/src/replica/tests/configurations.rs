//! A node takes the place of another one.

use super::*;
use crate::replica::ReconfigurationObjection;
use alloc::string::ToString;
use syros_types::{ConfigurationEpoch, NodeId, Reconfiguration, Roster};

const NEW: u64 = 99;

fn node(number: u64) -> NodeId {
    NodeId::new(number).unwrap()
}

/// Node `m + 1` is member `m`.
fn first_roster(n: usize) -> Roster {
    let group = Group::new(n).unwrap();
    group
        .members()
        .fold(Roster::unknown(group), |roster, member| roster.with(member, node(u64::from(member.0) + 1)))
}

impl Cluster {
    fn of_nodes(n: usize, bug: Option<PlantedBug>) -> Self {
        Self::with(n, FastQuorum::Majority, |config| {
            planted(bug)(config);
            config.configuration.roster = first_roster(n);
            config.node = config.configuration.roster.node(config.replica);
        })
    }

    /// Member 2 is to be another node.
    fn wanted(&self) -> Roster {
        self.replicas[0].configuration().roster.with(ReplicaId(2), node(NEW))
    }

    fn reconfigure(&mut self, leader: usize) {
        let roster = self.wanted();
        self.propose_to(leader, &roster);
        self.deliver_all();
        self.pass(30);
    }

    fn objection(&self, replica: usize, roster: &Roster) -> Option<ReconfigurationObjection> {
        self.replicas[replica].objection_to(roster)
    }

    /// Member 2 dies, and the others have noticed.
    fn lose_a_node(&mut self) {
        self.down.insert(2);
        self.pass(300);
    }

    /// The new node starts as member 2, with the configuration that member 0 acts in.
    fn start_newcomer(&mut self, bug: Option<PlantedBug>) {
        let mut config = self.replicas[2].config.clone();
        config.configuration = *self.replicas[0].configuration();
        config.node = Some(node(NEW));
        planted(bug)(&mut config);
        self.replicas[2] = Replica::new(config, Boot::Fresh, self.now);
        self.executed[2].clear();
        self.down.remove(&2);
    }

    fn epochs(&self) -> Vec<u64> {
        let of = |replica: &Replica| replica.configuration().id.epoch.0;
        self.replicas.iter().map(of).collect()
    }

    fn update(&mut self, session: SessionId, sequence: u64) {
        let request = self.request(session, sequence, 5, Path::Ordered, "uA1");
        let leader = self.leader();
        self.send(&[leader], &request);
        self.deliver_all();
        self.pass(30);
    }
}

#[test]
fn a_new_node_takes_the_place_of_one_that_is_lost() {
    let mut cluster = Cluster::of_nodes(3, None);
    let session = cluster.register();
    cluster.update(session, 1);
    cluster.lose_a_node();
    let before = cluster.replicas[0].view();
    assert_eq!(cluster.objection(0, &cluster.wanted()), None);
    cluster.reconfigure(0);
    assert_eq!(cluster.epochs(), [1, 1, 0]);
    assert!(cluster.replicas[0].is_leader(), "its leader goes on leading");
    let after = cluster.replicas[0].view();
    assert!(after > before && after.number() > before.number());
    assert_eq!(after.epoch(), ConfigurationEpoch(1));
    cluster.inbox.clear();
    cluster.update(session, 2);
    assert!(cluster.answers().contains(&(0, "committed")), "a majority is there");

    cluster.start_newcomer(None);
    assert_eq!(cluster.replicas[2].role(), RoleName::Recovering, "it takes no part before it is let in");
    cluster.pass(200);
    assert!(cluster.replicas[2].is_normal());
    assert_eq!(cluster.replicas[2].view(), cluster.replicas[0].view());
    cluster.update(session, 3);
    assert_eq!(cluster.executed[2], ["uA1", "uA1", "uA1"]);

    // It is a member like the others: the group does without one of them.
    cluster.down.insert(0);
    cluster.pass(2_000);
    cluster.inbox.clear();
    cluster.update(session, 4);
    assert!(cluster.answers().iter().any(|(_, answer)| *answer == "committed"));
    assert_eq!(cluster.executed[2].len(), 4);
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let mut cluster = Cluster::of_nodes(3, None);
    cluster.pass(50);
    let (wanted, first) = (cluster.wanted(), first_roster(3));
    let objection = cluster.objection(0, &wanted).unwrap();
    assert!(matches!(objection, ReconfigurationObjection::Alive { member: ReplicaId(2), .. }), "{objection}");
    assert!(objection.to_string().contains("Stop it first"), "{objection}");
    let objection = cluster.objection(1, &wanted).unwrap();
    assert_eq!(objection, ReconfigurationObjection::NotLeader { leader: Some(ReplicaId(0)) });
    let itself = first.with(ReplicaId(0), node(NEW));
    assert_eq!(cluster.objection(0, &itself), Some(ReconfigurationObjection::Leader));
    for wrong in [
        first,
        wanted.with(ReplicaId(1), node(98)),
        first.with(ReplicaId(2), node(1)),
        Roster::unknown(Group::new(3).unwrap()).with(ReplicaId(2), node(NEW)),
    ] {
        assert_eq!(cluster.objection(0, &wrong), Some(ReconfigurationObjection::NotOneNode), "{wrong:?}");
    }
    cluster.lose_a_node();
    // Nobody stores what it says.
    cluster.cut_between(0, 1);
    let wanted = cluster.wanted();
    cluster.propose_to(0, &wanted);
    let objection = cluster.objection(0, &wanted).unwrap();
    assert_eq!(objection, ReconfigurationObjection::UnderWay { epoch: ConfigurationEpoch(1) });
    cluster.pass(100);
    assert_eq!(cluster.epochs(), [0, 0, 0], "it is not committed");
    // It does not know for sure that it is alone before it has not heard the others for long.
    cluster.cut.clear();
    cluster.pass(3_000);
    assert_eq!(cluster.epochs(), [1, 1, 0]);
    let objections = [0, 1].map(|replica| cluster.objection(replica, &wanted));
    assert!(objections.contains(&Some(ReconfigurationObjection::NotOneNode)), "it is in: {objections:?}");
    let mut alone = Cluster::of_nodes(3, None);
    alone.down.extend([1, 2]);
    alone.pass(300);
    let objection = alone.objection(0, &wanted).unwrap();
    assert_eq!(objection, ReconfigurationObjection::TooFew { heard: 1, needed: 2 });
}

#[test]
fn a_configuration_that_is_not_committed_is_none() {
    let mut cluster = Cluster::of_nodes(3, None);
    cluster.lose_a_node();
    cluster.cut_between(0, 1);
    let wanted = cluster.wanted();
    cluster.propose_to(0, &wanted);
    assert_eq!(cluster.epochs(), [0; 3]);
    assert_eq!(cluster.replicas[0].known_configuration, None);
}

/// With the bug the new node and one of the others are a majority that knows nothing of what the old ones have completed.
#[test]
fn a_new_node_makes_no_quorum_before_it_has_been_let_in() {
    for bug in [None, Some(PlantedBug::NewcomerActs)] {
        let mut cluster = Cluster::of_nodes(3, None);
        cluster.lose_a_node();
        cluster.reconfigure(0);
        // Only these two are left, and one of them has nothing.
        cluster.down.insert(0);
        cluster.start_newcomer(bug);
        cluster.pass(3_000);
        let begins = cluster.replicas[1].is_normal() && cluster.replicas[2].is_normal();
        assert_eq!(begins, bug.is_some() && cfg!(feature = "planted-bugs"), "{bug:?}");
    }
}

#[test]
fn a_member_that_was_away_learns_of_the_configuration_first() {
    let mut cluster = Cluster::of_nodes(5, None);
    cluster.down.insert(2);
    for other in 0..4 {
        cluster.cut_between(other, 4);
    }
    cluster.pass(300);
    cluster.reconfigure(0);
    assert_eq!(cluster.epochs(), [1, 1, 0, 1, 0]);
    cluster.cut.clear();
    // It hears of a view before it hears whom that is of, and does nothing about it but ask.
    let (view, later) = (cluster.replicas[0].view(), ViewChangeReason::Moved);
    let message = Message::StartViewChange { view, reason: later };
    cluster.event(4, Event::Message { from: Peer::Replica(ReplicaId(0)), message });
    assert_eq!(cluster.epochs()[4], 0);
    let asked: Vec<_> = cluster.wire.iter().map(|(from, to, message)| (*from, *to, message.name())).collect();
    assert_eq!(asked, [(4, 0, "GetConfiguration")]);
    cluster.pass(1_000);
    assert_eq!(cluster.epochs(), [1, 1, 0, 1, 1]);
    assert!(cluster.replicas[4].is_normal());
}

#[test]
fn a_configuration_that_cannot_be_is_not_learnt() {
    let mut cluster = Cluster::of_nodes(3, None);
    let wanted = cluster.wanted();
    let beyond = ConfigurationEpoch(ConfigurationEpoch::MAX.0 + 1);
    for (epoch, roster) in [
        (ConfigurationEpoch(0), wanted),
        (beyond, wanted),
        (ConfigurationEpoch(5_000), wanted),
        (ConfigurationEpoch(1), Roster::unknown(Group::new(3).unwrap())),
        (ConfigurationEpoch(1), first_roster(5)),
    ] {
        let message = Message::Configuration(Box::new(Reconfiguration { epoch, roster, before: None }));
        cluster.event(1, Event::Message { from: Peer::Replica(ReplicaId(0)), message });
        assert_eq!(cluster.replicas[1].known_configuration, None, "{epoch:?} {roster:?}");
    }
}

/// A leader that is replaced while it cannot be heard comes back, finds that out, and does not lead any more.
#[test]
fn a_node_that_has_been_replaced_hands_over() {
    let mut cluster = Cluster::of_nodes(3, None);
    cluster.pass(50);
    // It is told by its log: it has committed it.
    let (epoch, roster) = (ConfigurationEpoch(1), first_roster(3).with(ReplicaId(0), node(NEW)));
    let message = Message::Configuration(Box::new(Reconfiguration { epoch, roster, before: None }));
    cluster.event(0, Event::Message { from: Peer::Replica(ReplicaId(1)), message });
    cluster.deliver_all();
    cluster.pass(1_000);
    assert!(!cluster.replicas[0].is_leader());
    assert_eq!(cluster.epochs()[0], 0, "it is not of that configuration");
    let leader = cluster.leader();
    assert!(leader != 0 && cluster.traced.iter().any(|(replica, event)| {
        let reason = HandOverReason::Replaced;
        *replica == 0 && matches!(event, TraceEvent::LeftView { cause: ViewChangeCause::HandedOver(_, why), .. } if *why == reason)
    }));
}

/// Found by a reviewer: the directory said that it was a member, and its log was empty.
#[test]
fn a_new_node_that_was_stopped_before_it_wrote_anything_has_no_memory() {
    let mut cluster = Cluster::of_nodes(3, None);
    cluster.lose_a_node();
    cluster.reconfigure(0);
    let mut config = cluster.replicas[2].config.clone();
    assert!(!Restored::new(&config, []).is_amnesiac(), "a member of the first configuration");
    config.configuration = *cluster.replicas[0].configuration();
    let restored = Restored::new(&config, []);
    assert!(restored.is_amnesiac() && restored.is_empty());
}

#[test]
fn members_do_not_believe_one_that_cannot_be_right() {
    let mut cluster = Cluster::of_nodes(5, None);
    cluster.pass(50);
    let foreign = (0..5).fold(first_roster(5), |roster, member| {
        roster.with(ReplicaId(member), node(u64::from(member) + 500))
    });
    // Three nodes more than can be others in two epochs.
    let message = Message::Configuration(Box::new(Reconfiguration {
        epoch: ConfigurationEpoch(2),
        roster: foreign,
        before: None,
    }));
    cluster.event(1, Event::Message { from: Peer::Replica(ReplicaId(4)), message });
    assert_eq!(cluster.replicas[1].known_configuration, None);
    // An entry of a view says the next epoch, and no other.
    let (view, time) = (cluster.replicas[0].view(), WallTime(1_100_000));
    for (epoch, is_taken) in [(ConfigurationEpoch(2), false), (ConfigurationEpoch(1), true)] {
        let before = cluster.replicas[1].last_entry();
        let next = Box::new(Reconfiguration { epoch, roster: cluster.wanted(), before: None });
        let entries = vec![Prepared::Reconfigure(next)];
        let (first, commit, sent_at) = (before.next(), OpNumber(0), cluster.now.instant);
        let message = Message::Prepare { view, first, commit, sent_at, time, entries };
        cluster.event(1, Event::Message { from: Peer::Replica(ReplicaId(0)), message });
        assert_eq!(cluster.replicas[1].last_entry() > before, is_taken, "{epoch:?}");
    }
}

/// A view of number 0 of a later configuration has never begun.
#[test]
fn no_view_of_number_0_begins_in_a_later_configuration() {
    let mut cluster = Cluster::of_nodes(3, None);
    cluster.pass(50);
    let (epoch, roster) = (ConfigurationEpoch(1), cluster.wanted());
    let message = Message::Configuration(Box::new(Reconfiguration { epoch, roster, before: None }));
    cluster.event(1, Event::Message { from: Peer::Replica(ReplicaId(0)), message });
    let before = cluster.replicas[1].view();
    for (number, reason) in
        [(0, ViewChangeReason::Moved), (0, ViewChangeReason::Abdication), (1, ViewChangeReason::Suspicion)]
    {
        let message = Message::StartViewChange { view: View::of_epoch(epoch, number), reason };
        cluster.event(1, Event::Message { from: Peer::Replica(ReplicaId(0)), message });
        assert_eq!(cluster.replicas[1].view(), before, "{number} {reason:?}");
    }
}

#[test]
fn a_leader_that_has_just_begun_replaces_nobody() {
    let mut cluster = Cluster::of_nodes(3, None);
    cluster.pass(50);
    cluster.down.insert(0);
    cluster.pass(700);
    let leader = cluster.leader();
    let entered = cluster.replicas[leader].role.leading().and_then(|leader| leader.entered_at).unwrap();
    let patience = cluster.replicas[leader].config.settings.suspect_after;
    let roster = first_roster(3).with(ReplicaId(0), node(NEW));
    let before = cluster.now.instant;
    cluster.replicas[leader].now.instant = entered;
    assert_eq!(cluster.objection(leader, &roster), Some(ReconfigurationObjection::JustBegun));
    cluster.replicas[leader].now.instant = before;
    cluster.pass(patience.as_millis() as u64 + 50);
    assert_eq!(cluster.objection(leader, &roster), None);
}
