//! Members that keep durability logs in a view of the mixed mode, and those that are left out.

use super::*;
use crate::message::StartView;
use alloc::boxed::Box;

const SECONDS: u64 = 1_000;

impl Cluster {
    fn mixed(n: usize) -> Self {
        Self::new(n, FastQuorum::Mixed)
    }

    /// The active members of the view that this replica is in.
    fn active(&self, replica: usize) -> Vec<u8> {
        self.replicas[replica].rule.active.iter().map(|member| member.0).collect()
    }

    /// Which of those that are alive answer an update on its own key that its client sends to all.
    fn sent_to_all(&mut self, session: SessionId, sequence: u64, body: &str) -> Vec<(usize, &'static str)> {
        self.inbox.clear();
        let request = self.request(session, sequence, sequence, Path::Durability, body);
        let all: Vec<usize> = (0..self.replicas.len()).collect();
        self.send(&all, &request);
        self.answers()
    }
}

#[test]
fn a_silent_member_is_left_out_and_comes_back() {
    let mut cluster = Cluster::mixed(3);
    let session = cluster.register();
    let suspect_after = cluster.replicas[0].config.settings.suspect_after.as_millis() as u64;
    cluster.down.insert(2);
    cluster.pass(3 * suspect_after);
    assert_eq!((cluster.leader(), cluster.replicas[0].view()), (0, View(0)), "its disk may stand still");
    cluster.pass(2 * suspect_after);
    assert_eq!(
        (cluster.leader(), cluster.replicas[0].view()),
        (0, View(3)),
        "the same leader, its next view"
    );
    assert_eq!((cluster.active(0), cluster.active(1)), (vec![0, 1], vec![0, 1]));
    assert_eq!(cluster.sent_to_all(session, 2, "mA1"), [(0, "ok"), (1, "ok")]);
    cluster.down.clear();
    cluster.pass(3 * suspect_after);
    assert_eq!(cluster.active(2), [0, 1], "it takes part, and may be gone again soon");
    assert_eq!(cluster.sent_to_all(session, 3, "mB1"), [(0, "ok"), (1, "ok"), (2, "refused")]);
    assert_eq!(cluster.replicas[2].dlog.len(), 0);
    cluster.pass(2 * suspect_after);
    assert_eq!((cluster.leader(), cluster.replicas[0].view()), (0, View(6)));
    assert_eq!(cluster.active(2), [0, 1, 2]);
    assert_eq!(cluster.sent_to_all(session, 4, "mC1"), [(0, "ok"), (1, "ok"), (2, "ok")]);
}

#[test]
fn a_leader_that_hears_nobody_has_no_other_members() {
    let mut cluster = Cluster::mixed(5);
    cluster.register();
    cluster.down.extend([2, 3, 4]);
    let view = cluster.replicas[0].view();
    // Without a majority it gives its view up, as in any mode, and no later one begins.
    cluster.pass(20 * SECONDS);
    assert!(!cluster.replicas[0].is_leader() || cluster.replicas[0].view() == view);
    cluster.down.clear();
    cluster.pass(10 * SECONDS);
    assert_eq!(cluster.active(cluster.leader()).len(), 5, "all are back");
}

#[test]
fn members_that_go_and_come_wait_longer_each_time() {
    let mut cluster = Cluster::mixed(3);
    cluster.register();
    let mut absences = Vec::new();
    for _ in 0..4 {
        cluster.down.insert(2);
        while cluster.active(0).len() == 3 {
            cluster.pass(10);
        }
        cluster.down.clear();
        let since = cluster.now.instant;
        while cluster.active(0).len() == 2 {
            cluster.pass(10);
        }
        absences.push(cluster.now.instant.since(since).as_millis() / 500);
    }
    assert!(absences.is_sorted() && absences[3] >= 4 * absences[0], "{absences:?}");
}

#[test]
fn a_new_leader_leaves_out_the_one_that_is_silent() {
    let mut cluster = Cluster::mixed(3);
    let session = cluster.register();
    cluster.down.insert(0);
    cluster.pass(SECONDS);
    assert_eq!(cluster.leader(), 1);
    assert_eq!(cluster.active(1), [1, 2]);
    cluster.attach(session);
    assert_eq!(cluster.sent_to_all(session, 2, "uA1"), [(1, "ok"), (2, "ok")]);
    assert_eq!(cluster.evaluated, 1);
}

#[test]
fn a_leader_that_hands_over_stays_active() {
    let mut cluster = Cluster::mixed(3);
    cluster.register();
    cluster.event(0, Event::StepDown);
    cluster.pass(100);
    assert_eq!(cluster.active(cluster.leader()), [0, 1, 2]);
}

#[test]
fn a_member_that_is_not_active_has_no_say_in_recovery() {
    let mut cluster = Cluster::mixed(3);
    let session = cluster.register();
    cluster.down.insert(2);
    cluster.pass(3 * SECONDS);
    cluster.down.clear();
    cluster.pass(100);
    assert_eq!(cluster.active(2), [0, 1]);
    // Complete, as both that are active have it; the leader dies before anybody hears of its order.
    cluster.cut_between(0, 1);
    cluster.cut_between(0, 2);
    assert_eq!(cluster.sent_to_all(session, 2, "mA1").len(), 3);
    cluster.down.insert(0);
    cluster.cut.clear();
    cluster.pass(5 * SECONDS);
    let leader = cluster.leader();
    assert_eq!(cluster.executed[leader], ["mA1"], "what the one active survivor has");
    assert!(cluster.active(leader).contains(&2), "the dead one is missed in its place");
}

#[test]
fn strong_updates_are_recovered_if_all_survivors_have_them() {
    let union = Some(PlantedBug::StrongByUnion);
    for (all, bug) in [(true, None), (false, None), (false, union)] {
        let mut cluster = Cluster::with(3, FastQuorum::Mixed, planted(bug));
        let session = cluster.register();
        for other in [1, 2] {
            cluster.cut_between(0, other);
        }
        let strong = cluster.request(session, 1, 1, Path::Durability, "mA1");
        cluster.send(if all { &[0, 1, 2] } else { &[0, 1] }, &strong);
        let overwrite = cluster.request(session, 2, 2, Path::Durability, "oB1");
        cluster.send(&[0, 1], &overwrite);
        cluster.down.insert(0);
        cluster.pass(2 * SECONDS);
        let is_planted = bug.is_some() && cfg!(feature = "planted-bugs");
        let expected: &[&str] = if all || is_planted { &["mA1", "oB1"] } else { &["oB1"] };
        let executed = cluster.executed[cluster.leader()].iter().take(expected.len());
        // Enough time has passed for what is left over to be handed to the leader; it comes later.
        assert!(executed.eq(expected), "{:?}", cluster.executed);
    }
}

#[test]
fn the_rule_of_a_view_outlives_a_restart() {
    let group = Group::new(3).unwrap();
    let config = || {
        let configuration = Configuration::first(group, FastQuorum::Mixed);
        Config::new(configuration, ReplicaId(1), describe, |newer, older| newer[1] == older[1])
    };
    let rule = FastRule { mode: FastQuorum::Mixed, active: [0, 1].map(ReplicaId).into_iter().collect() };
    let mut restored = Restored::new(&config(), []);
    restored.replay(1, Record::View { view: View(0), last_normal: View(0) }).unwrap();
    let (base, commit) = (OpNumber(0), OpNumber(0));
    let enter = Record::EnterView { view: View(3), rule: Some(rule), base, commit, suffix: Vec::new() };
    restored.replay(2, enter).unwrap();
    let now = Now { instant: Instant(1_000_000_000), wall: WallTime(1_000_000) };
    let replica = Replica::new(config(), Boot::Restored(restored.into()), now);
    assert_eq!((replica.rule, replica.told_rule()), (rule, Some(rule)));
    assert!(replica.is_normal() && replica.is_active());
}

/// The mode is the view's: it changes with a view that the leader begins for it, and what is recovered is recovered by the
/// mode of its own view.
#[test]
fn the_mode_of_a_running_group_changes() {
    for bug in [None, Some(PlantedBug::ModeOfConfiguration)] {
        let mut cluster = Cluster::with(3, FastQuorum::Majority, planted(bug));
        let session = cluster.register();
        cluster.pass(100);
        let ask = |cluster: &mut Cluster, replica, mode| {
            cluster.event(replica, Event::Message { from: CLIENT, message: Message::ChangeMode { mode } });
            cluster.pass(100);
        };
        // A client that takes the mode for another one gets an answer all the same.
        assert_eq!(cluster.sent_to_all(session, 2, "mA1"), [(1, "conflict"), (2, "conflict")]);
        cluster.pass(100);
        assert_eq!(cluster.answers(), [(0, "committed")]);
        // Only a leader can, and not to every mode.
        ask(&mut cluster, 1, FastQuorum::Mixed);
        ask(&mut cluster, 0, FastQuorum::Supermajority);
        ask(&mut cluster, 0, FastQuorum::Majority);
        assert_eq!(cluster.replicas[0].view(), View(0));
        ask(&mut cluster, 0, FastQuorum::Mixed);
        for replica in &cluster.replicas {
            assert_eq!((replica.view(), replica.rule.mode), (View(3), FastQuorum::Mixed));
            assert_eq!(replica.status().fast_quorum, FastQuorum::Mixed);
        }
        cluster.cut_between(0, 1);
        cluster.cut_between(0, 2);
        let update = cluster.request(session, 3, 3, Path::Durability, "mB1");
        cluster.send(&[0, 1], &update);
        cluster.down.insert(0);
        cluster.pass(2 * SECONDS);
        // One of the two that are left has it: it was not complete.
        let leader = cluster.leader();
        let executed = cluster.executed[leader].iter().any(|body| body == "mB1");
        let is_planted = bug.is_some() && cfg!(feature = "planted-bugs");
        assert_eq!(executed, is_planted, "{:?}", cluster.executed);
        assert_eq!(cluster.replicas[leader].rule.mode, FastQuorum::Mixed, "the next view goes on with it");
    }
}

#[test]
fn an_absent_member_that_stays_active_is_waited_for() {
    for bug in [None, Some(PlantedBug::AbsentStaysActive)] {
        let mut cluster = Cluster::with(3, FastQuorum::Mixed, planted(bug));
        cluster.register();
        cluster.down.insert(2);
        cluster.pass(3 * SECONDS);
        let is_planted = bug.is_some() && cfg!(feature = "planted-bugs");
        assert_eq!(cluster.active(0).len(), if is_planted { 3 } else { 2 }, "{bug:?}");
    }
}

/// A rule that no right member tells is refused as a whole.
#[test]
fn impossible_rules_are_refused() {
    let mut cluster = Cluster::mixed(3);
    let view = View(4);
    let rule = |members: &[u8]| {
        let active = members.iter().map(|member| ReplicaId(*member)).collect();
        Some(FastRule { mode: FastQuorum::Mixed, active })
    };
    for wrong in [rule(&[0, 2]), rule(&[1]), rule(&[1, 2, 3]), rule(&[])] {
        let (base, base_view, commit, suffix) = (OpNumber(0), View(0), OpNumber(0), Vec::new());
        let start = StartView { view, rule: wrong, base, base_view, commit, suffix };
        let message = Message::StartView(Box::new(start));
        cluster.event(0, Event::Message { from: Peer::Replica(ReplicaId(1)), message });
        assert_eq!(cluster.replicas[0].view(), View(0), "{wrong:?}");
    }
}
