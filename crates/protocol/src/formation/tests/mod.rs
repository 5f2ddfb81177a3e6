use super::*;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use syros_types::Prng;

mod handshakes;

/// One process of one member.
#[derive(Clone, Debug)]
enum Process {
    Forming(Box<Formation>),
    Acting(Box<Declaration>, Roster),
    Refused,
}

/// Processes that meet in pairs. Several may be of one member.
#[derive(Debug, Default)]
struct Meetings {
    processes: Vec<Process>,
    /// A known-wrong variant: a member acts as soon as it has voted.
    acts_alone: bool,
}

fn node(number: u64) -> NodeId {
    NodeId::new(number).unwrap()
}

fn group(size: usize) -> Group {
    Group::new(size).unwrap()
}

fn acting(formation: &Formation, epoch: ConfigurationEpoch, roster: Roster) -> Process {
    let declaration = Declaration { stage: Stage::Acting(roster), epoch, ..formation.declaration() };
    Process::Acting(Box::new(declaration), roster)
}

impl Meetings {
    fn new(processes: &[(u8, u64)], size: usize, bug: Option<PlantedBug>) -> Self {
        let forming = |(replica, number): &(u8, u64)| {
            let formation = Formation::new(group(size), ReplicaId(*replica), node(*number), None);
            #[cfg(feature = "planted-bugs")]
            let formation = formation.plant(bug);
            #[cfg(not(feature = "planted-bugs"))]
            assert!(bug.is_none());
            Process::Forming(Box::new(formation))
        };
        Self { processes: processes.iter().map(forming).collect(), acts_alone: false }
    }

    fn declaration(&self, process: usize) -> Option<Declaration> {
        match &self.processes[process] {
            Process::Forming(formation) => Some(formation.declaration()),
            Process::Acting(declaration, _) => Some(**declaration),
            Process::Refused => None,
        }
    }

    /// Two processes connect, and tell each other how far they have come until that changes nothing.
    fn meet(&mut self, a: usize, b: usize) {
        for _ in 0..4 {
            let (Some(ours), Some(theirs)) = (self.declaration(a), self.declaration(b)) else { return };
            let is_allowed = |process: &Process, theirs: &Declaration| match process {
                Process::Forming(formation) => formation.check(theirs).is_ok(),
                Process::Acting(ours, roster) => check(ours, roster, theirs).is_ok(),
                Process::Refused => false,
            };
            let both = is_allowed(&self.processes[a], &theirs) && is_allowed(&self.processes[b], &ours);
            self.tell(a, &theirs, both);
            self.tell(b, &ours, both);
        }
    }

    fn tell(&mut self, to: usize, theirs: &Declaration, is_connected: bool) {
        let Process::Forming(formation) = &mut self.processes[to] else { return };
        if is_connected || formation.objection(theirs).is_some() {
            formation.hear(theirs);
        }
        let process = loop {
            match formation.decide() {
                // Learners are in no group yet, as others are not that wait.
                Decision::Wait(_) | Decision::Learn(_) => return,
                Decision::Vote(roster) if !self.acts_alone => formation.voted(roster),
                Decision::Act(Reconfiguration { epoch, roster, .. }) => {
                    break acting(formation, epoch, roster);
                }
                Decision::Vote(roster) => break acting(formation, ConfigurationEpoch::FIRST, roster),
                Decision::Refuse(_) => break Process::Refused,
            }
        };
        self.processes[to] = process;
    }

    fn disconnect(&mut self, process: usize, replica: u8) {
        if let Process::Forming(formation) = &mut self.processes[process] {
            formation.lost(ReplicaId(replica));
        }
    }

    fn acts(&self, process: usize) -> bool {
        matches!(self.processes[process], Process::Acting(..))
    }

    /// True if some member acts with two nodes, and each has a quorum of members with it that would work with it.
    fn is_split(&self, size: usize) -> bool {
        let rosters: Vec<Roster> = self
            .processes
            .iter()
            .filter_map(|process| match process {
                Process::Acting(_, roster) => Some(*roster),
                _ => None,
            })
            .collect();
        let has_quorum = |roster: &&Roster| {
            rosters.iter().filter(|other| roster.conflict(other).is_none()).count() > size / 2
        };
        let with_quorum: Vec<&Roster> = rosters.iter().filter(has_quorum).collect();
        with_quorum.iter().any(|a| with_quorum.iter().any(|b| a.conflict(b).is_some()))
    }
}

fn meet_all(meetings: &mut Meetings) {
    for _ in 0..3 {
        for a in 0..meetings.processes.len() {
            for b in 0..a {
                meetings.meet(a, b);
            }
        }
    }
}

#[test]
fn a_group_is_formed_when_all_have_met_and_not_before() {
    let mut meetings = Meetings::new(&[(0, 10), (1, 11), (2, 12)], 3, None);
    meetings.meet(0, 1);
    let Process::Forming(formation) = &meetings.processes[0] else { panic!("it acts") };
    assert_eq!(formation.decide(), Decision::Wait(ReplicaSet(0).with(ReplicaId(2))));
    meet_all(&mut meetings);
    assert!((0..3).all(|process| meetings.acts(process)));
}

#[test]
fn a_group_of_one_is_formed_at_once() {
    let mut formation = Formation::new(group(1), ReplicaId(0), node(5), None);
    let roster = Roster::unknown(group(1)).with(ReplicaId(0), node(5));
    assert_eq!(formation.decide(), Decision::Vote(roster));
    formation.voted(roster);
    let configuration = Reconfiguration { epoch: ConfigurationEpoch::FIRST, roster, before: None };
    assert_eq!(formation.decide(), Decision::Act(configuration));
}

#[test]
fn a_member_that_was_away_joins_by_one_that_acts() {
    let mut meetings = Meetings::new(&[(0, 10), (1, 11), (2, 12)], 3, None);
    meet_all(&mut meetings);
    // Its vote is durable; that it acted was not yet.
    let Process::Acting(_, roster) = meetings.processes[2] else { panic!("it does not act") };
    let again = Formation::new(group(3), ReplicaId(2), node(12), Some(roster));
    meetings.processes[2] = Process::Forming(Box::new(again));
    meetings.meet(2, 1);
    assert!(meetings.acts(2));
}

#[test]
fn a_wiped_node_is_refused_by_whoever_acts() {
    let mut meetings = Meetings::new(&[(0, 10), (1, 11), (2, 12)], 3, None);
    meet_all(&mut meetings);
    let (Process::Acting(ours, roster), wiped) =
        (meetings.processes[0].clone(), Formation::new(group(3), ReplicaId(2), node(99), None))
    else {
        panic!("it does not act")
    };
    let refused = check(&ours, &roster, &wiped.declaration()).unwrap_err().to_string();
    assert!(refused.contains("replica 2 is node 0000000000000063"), "{refused}");
    assert!(refused.contains("knows it as node 000000000000000c"), "{refused}");
    meetings.processes[2] = Process::Forming(Box::new(wiped));
    meetings.meet(2, 0);
    assert!(matches!(meetings.processes[2], Process::Refused));
}

#[test]
fn the_first_node_seen_is_trusted_where_none_is_known() {
    let me = Declaration {
        replica: ReplicaId(0),
        node: node(10),
        stage: Stage::Acting(Roster::unknown(group(3)).with(ReplicaId(0), node(10))),
        epoch: ConfigurationEpoch::FIRST,
        before: None,
    };
    let Stage::Acting(roster) = me.stage else { unreachable!() };
    let acting = |number: u64| {
        let roster = Roster::unknown(group(3)).with(ReplicaId(2), node(number));
        Declaration { replica: ReplicaId(2), node: node(number), stage: Stage::Acting(roster), ..me }
    };
    let learnt = check(&me, &roster, &acting(12)).unwrap().expect("it is news");
    assert_eq!(learnt.node(ReplicaId(2)), Some(node(12)));
    assert_eq!(check(&me, &learnt, &acting(12)), Ok(None));
    let refused = check(&me, &learnt, &acting(13)).unwrap_err();
    assert!(matches!(refused, Mismatch::TheirNode { .. }), "{refused}");
    // A new directory is none that the group has been acting with.
    let new = Declaration { stage: Stage::New, ..acting(14) };
    assert!(check(&me, &roster, &new).is_err());
    let mut formation = Formation::new(group(3), ReplicaId(2), node(14), None);
    formation.hear(&me);
    assert!(matches!(formation.decide(), Decision::Refuse(Mismatch::OurNode { expected: None, .. })));
}

/// What was found wrong with hearing all and acting: two nodes are started as replica 2.
fn two_nodes_with_one_id(acts_alone: bool) -> Meetings {
    let mut meetings = Meetings::new(&[(0, 10), (1, 11), (2, 12), (2, 22)], 3, None);
    meetings.acts_alone = acts_alone;
    meetings.meet(0, 2);
    meetings.meet(1, 3);
    meetings.meet(0, 1);
    meetings.meet(0, 2);
    meetings.meet(1, 3);
    meet_all(&mut meetings);
    meetings
}

#[test]
fn two_nodes_with_one_id_are_never_both_counted() {
    let meetings = two_nodes_with_one_id(false);
    assert!(!meetings.is_split(3), "{meetings:?}");
}

#[test]
fn without_votes_two_nodes_with_one_id_split_the_group() {
    assert!(two_nodes_with_one_id(true).is_split(3));
}

/// A quorum is enough, says the bug: the wiped node forms a group with a member that was not there before.
fn wiped_while_one_was_away(bug: Option<PlantedBug>) -> Meetings {
    let mut meetings = Meetings::new(&[(0, 10), (1, 11), (2, 12), (1, 21)], 3, bug);
    for _ in 0..3 {
        meetings.meet(0, 1);
    }
    for _ in 0..3 {
        meetings.meet(2, 3);
    }
    meetings
}

#[test]
fn a_quorum_of_new_directories_forms_nothing() {
    let meetings = wiped_while_one_was_away(None);
    assert!((0..4).all(|process| !meetings.acts(process)));
}

#[cfg(feature = "planted-bugs")]
#[test]
fn formed_by_a_quorum_a_group_is_formed_twice() {
    assert!(wiped_while_one_was_away(Some(PlantedBug::FormationByQuorum)).is_split(3));
}

#[test]
fn whatever_meets_in_whatever_order_no_group_is_formed_twice() {
    for seed in 0..20_000 {
        let mut prng = Prng::new(seed);
        let size = if prng.chance(1, 3) { 5 } else { 3 };
        let mut processes: Vec<(u8, u64)> = (0..size as u8).map(|id| (id, 10 + u64::from(id))).collect();
        for extra in 0..prng.below(3) {
            processes.push((prng.below(size) as u8, 100 + extra));
        }
        let mut meetings = Meetings::new(&processes, size as usize, None);
        for _ in 0..60 {
            let (a, b) =
                (prng.below(processes.len() as u64) as usize, prng.below(processes.len() as u64) as usize);
            if processes[a].0 != processes[b].0 {
                meetings.meet(a, b);
                if prng.chance(1, 2) {
                    meetings.disconnect(a, processes[b].0);
                    meetings.disconnect(b, processes[a].0);
                }
            }
        }
        assert!(!meetings.is_split(size as usize), "seed {seed}: {meetings:?}");
    }
}

/// Three members, and one more node that is to take the place of the last one, as the others learn one after the other.
#[test]
fn a_node_takes_the_place_of_another_one_when_members_act_with_it() {
    let mut meetings = Meetings::new(&[(0, 10), (1, 11), (2, 12), (2, 13)], 3, None);
    let Process::Forming(newcomer) = meetings.processes[3].clone() else { unreachable!() };
    meetings.processes[3] = Process::Forming(Box::new(newcomer.replacing()));
    for (a, b) in [(3, 0), (0, 1), (3, 1), (1, 2), (0, 2), (0, 1), (3, 0)] {
        meetings.meet(a, b);
    }
    assert!((0..3).all(|process| meetings.acts(process)), "it took no part in forming the group");
    assert!(matches!(meetings.processes[3], Process::Forming(_)), "it waits");
    let (Some(wants), Process::Acting(ours, before)) =
        (meetings.declaration(3), meetings.processes[0].clone())
    else {
        panic!("it waits, and they act")
    };
    let refused = check(&ours, &before, &wants).unwrap_err();
    let (replica, found) = (ReplicaId(2), node(13));
    assert_eq!(refused, Mismatch::NotAdmitted { replica, found, expected: Some(node(12)) });

    // The first member acts in the next configuration.
    let (epoch, roster) = (ConfigurationEpoch::FIRST.next(), before.with(replica, found));
    let next = Declaration { stage: Stage::Acting(roster), epoch, ..*ours };
    meetings.processes[0] = Process::Acting(Box::new(next), roster);
    meetings.meet(3, 1);
    assert!(matches!(meetings.processes[3], Process::Forming(_)), "the second one does not know of it");
    meetings.meet(3, 0);
    assert!(meetings.acts(3));
    let declaration = |process: usize| meetings.declaration(process).expect("it acts");
    let check = |process: usize, other: usize| match &meetings.processes[process] {
        Process::Acting(ours, roster) => check(ours, roster, &declaration(other)),
        _ => panic!("it acts"),
    };
    assert_eq!((check(0, 1), check(1, 0)), (Ok(None), Ok(None)), "who stays, stays connected");
    let (found, by) = (node(12), node(13));
    assert_eq!(check(0, 2), Err(Mismatch::Replaced { replica, found, by }));
    assert_eq!(check(2, 0), Err(Mismatch::WeAreReplaced { replica: ReplicaId(0), me: replica, by }));
    assert_eq!((check(1, 3), check(3, 1)), (Ok(None), Ok(None)), "the second one learns from it");
    assert_eq!((check(3, 0), check(0, 3)), (Ok(None), Ok(None)));
    assert!(check(1, 2).is_ok(), "and knows the other one until then");
}

/// Found by an operator: a disk of an earlier cluster with the same number came back, whose members had been replaced, and every node of
/// the new cluster ended, because it took itself for a node that was replaced or removed.
#[test]
fn a_node_of_another_cluster_with_the_same_number_makes_nobody_go() {
    let of = |n: usize, first: u64| {
        group(n).members().fold(Roster::unknown(group(n)), |roster, member| {
            roster.with(member, node(u64::from(member.0) + first))
        })
    };
    let acting = |member: u8, first: u64, epoch, roster, before| {
        let known = Reconfiguration { epoch: ConfigurationEpoch(epoch), roster, before };
        Declaration::acting(ReplicaId(member), node(u64::from(member) + first), known)
    };
    let (ours, earlier) = (of(3, 1), of(3, 100));
    for theirs in [acting(2, 100, 1, earlier, None), acting(2, 100, 1, of(5, 100), Some(earlier))] {
        for member in [0, 1] {
            let refused = check(&acting(member, 1, 0, ours, None), &ours, &theirs);
            let (found, expected) = (node(102), Some(node(3)));
            assert_eq!(refused, Err(Mismatch::TheirNode { replica: ReplicaId(2), found, expected }));
        }
    }
    // One that goes by a smaller group.
    let larger = of(5, 1);
    let refused = check(&acting(4, 1, 0, larger, None), &larger, &acting(2, 100, 1, earlier, None));
    assert!(matches!(refused, Err(Mismatch::TheirNode { replica: ReplicaId(2), .. })), "{refused:?}");
    // Of our own cluster, with two replaced while we were away: one that we know is there.
    let later = ours.with(ReplicaId(1), node(11)).with(ReplicaId(2), node(12));
    let theirs = Declaration { node: node(12), ..acting(2, 1, 2, later, None) };
    assert_eq!(check(&acting(0, 1, 0, ours, None), &ours, &theirs), Ok(None));
    let replaced = check(&acting(1, 1, 0, ours, None), &ours, &theirs);
    assert!(matches!(replaced, Err(Mismatch::WeAreReplaced { me: ReplicaId(1), .. })), "{replaced:?}");
}

/// What a group that has shrunk from five to three says of its fourth node, and that node of it.
#[test]
fn nodes_that_a_group_has_shrunk_by_are_told_when_they_are_not_needed_any_more() {
    let of = |n: usize| {
        group(n).members().fold(Roster::unknown(group(n)), |roster, member| {
            roster.with(member, node(u64::from(member.0) + 1))
        })
    };
    let (three, five) = (of(3), of(5));
    let acting = |member: u8, epoch, roster, before| {
        let known = Reconfiguration { epoch: ConfigurationEpoch(epoch), roster, before };
        Declaration::acting(ReplicaId(member), node(u64::from(member) + 1), known)
    };
    let needed = acting(0, 1, three, Some(five));
    let over = acting(0, 1, three, None);
    for theirs in [acting(3, 0, five, None), acting(3, 1, three, Some(five))] {
        assert_eq!(check(&needed, &three, &theirs), Ok(None), "it may have to vote");
        let refused = check(&over, &three, &theirs);
        assert!(matches!(refused, Err(Mismatch::Removed { replica: ReplicaId(3), .. })), "{refused:?}");
        let Stage::Acting(known) = theirs.stage else { unreachable!("it acts") };
        assert_eq!(check(&theirs, &known, &needed), Ok(None));
        let told = check(&theirs, &known, &over);
        assert!(matches!(told, Err(Mismatch::WeAreRemoved { me: ReplicaId(3), .. })), "{told:?}");
    }
    // A stranger where there never was a member.
    let stranger = acting(7, 1, of(9), None);
    assert!(matches!(check(&over, &three, &stranger), Err(Mismatch::Removed { .. })));
}

/// Found by an operator: a node that was started with --join and a wrong number took the place of one that was down for a moment.
#[test]
fn a_node_that_joins_takes_nobodys_place_and_one_that_replaces_needs_one() {
    let three = group(3)
        .members()
        .fold(Roster::unknown(group(3)), |roster, member| roster.with(member, node(u64::from(member.0) + 1)));
    let known = Reconfiguration { epoch: ConfigurationEpoch(1), roster: three, before: None };
    let ours = Declaration::acting(ReplicaId(0), node(1), known);
    let says = |n: usize, member: u8, joins: bool| {
        let formation = Formation::new(group(n), ReplicaId(member), node(50), None);
        let formation = if joins { formation.joining().without_learning() } else { formation.replacing() };
        assert!(formation.replaces());
        check(&ours, &three, &formation.declaration()).unwrap_err()
    };
    assert!(matches!(says(5, 3, true), Mismatch::NotAdmitted { expected: None, .. }));
    assert!(matches!(says(5, 2, true), Mismatch::PlaceTaken { replica: ReplicaId(2), .. }));
    assert!(matches!(says(3, 2, false), Mismatch::NotAdmitted { expected: Some(_), .. }));
    assert!(matches!(says(5, 3, false), Mismatch::NoSuchPlace { replica: ReplicaId(3), .. }));
}

/// Members are connected to a node that has the next place, and to no other one; that one stays where another would be told that it is gone.
#[test]
fn learners_are_connected_to_before_they_are_members() {
    let of = |n: usize| {
        group(n).members().fold(Roster::unknown(group(n)), |roster, member| {
            roster.with(member, node(u64::from(member.0) + 1))
        })
    };
    let (three, five, nine) = (of(3), of(5), of(9));
    let acting = |member: u8, epoch, roster, before| {
        let known = Reconfiguration { epoch: ConfigurationEpoch(epoch), roster, before };
        Declaration::acting(ReplicaId(member), node(u64::from(member) + 1), known)
    };
    let learner = |member: u8, number| {
        Formation::new(group(9), ReplicaId(member), node(number), None).joining().declaration()
    };
    let ours = acting(0, 1, three, None);
    assert_eq!(check(&ours, &three, &learner(3, 50)), Ok(None));
    assert_eq!(check(&ours, &three, &learner(4, 50)), Ok(None));
    let elsewhere = check(&ours, &three, &learner(5, 50));
    assert!(matches!(elsewhere, Err(Mismatch::NotAdmitted { expected: None, .. })), "{elsewhere:?}");
    let taken = check(&ours, &three, &learner(2, 50));
    assert!(matches!(taken, Err(Mismatch::PlaceTaken { replica: ReplicaId(2), .. })), "{taken:?}");
    let full = check(&acting(0, 1, nine, None), &nine, &learner(8, 50));
    assert!(matches!(full, Err(Mismatch::PlaceTaken { .. })), "{full:?}");
    // What the learner makes of members, whether it has heard of their configuration or of the one before.
    for epoch in [0, 1, 2] {
        let said = Declaration { epoch: ConfigurationEpoch(epoch), ..learner(3, 4) };
        assert_eq!(check(&said, &three, &ours), Ok(None), "epoch {epoch}");
        assert_eq!(check(&said, &three, &acting(1, 2, five, Some(three))), Ok(None), "it is in");
        assert_eq!(check(&said, &three, &learner(4, 50)), Ok(None));
    }
    let other = five.with(ReplicaId(3), node(77));
    let taken = check(&learner(3, 4), &three, &acting(1, 2, other, Some(three)));
    assert!(matches!(taken, Err(Mismatch::WeAreReplaced { me: ReplicaId(3), .. })), "{taken:?}");

    let mut formation = Formation::new(group(5), ReplicaId(3), node(4), None).joining();
    assert_eq!(formation.declaration().stage, Stage::Learning);
    assert!(matches!(formation.decide(), Decision::Wait(_)));
    formation.connected(&ours);
    let found = |epoch, roster| Reconfiguration { epoch: ConfigurationEpoch(epoch), roster, before: None };
    assert_eq!(formation.decide(), Decision::Learn(found(1, three)));
    let replaced = three.with(ReplicaId(1), node(60));
    formation.connected(&acting(2, 2, replaced, None));
    formation.connected(&ours);
    assert_eq!(formation.decide(), Decision::Learn(found(2, replaced)), "the newest one");
    assert_eq!(formation.next_to_tell(), None);
    formation.connected(&acting(2, 3, five, Some(three)));
    assert!(matches!(formation.decide(), Decision::Act(Reconfiguration { roster, .. }) if roster == five));
}
