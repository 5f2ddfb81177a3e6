//! Answers of different configurations never count together.

use super::*;
use alloc::boxed::Box;
use syros_types::{Reconfiguration, Roster};

fn planted(config: Config, bug: Option<PlantedBug>) -> Harness {
    let mut harness = Harness::with(config, &[0, 1, 2]);
    #[cfg(feature = "planted-bugs")]
    (harness.client.config.planted = bug);
    #[cfg(not(feature = "planted-bugs"))]
    (_ = bug);
    // Without the feature nothing else is changed.
    harness.client.now = harness.now;
    harness
}

impl Harness {
    /// All replicas are of builds that tell clients no configurations.
    fn of_old_builds(mut self) -> Self {
        for replica in 0..3 {
            self.client.handle(self.now, Event::TellsNoConfiguration(ReplicaId(replica)));
        }
        self
    }
}

/// Half of the fast quorum answers in each of two epochs, then the rest of it in the later one. (An `Ok` counts with those of
/// its view, which is of one epoch.)
#[test]
fn only_oks_of_one_epoch_make_a_quorum() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]).of_old_builds();
    harness.submit(Class::Overwrite);
    harness.drain();
    let (first, second) = (ConfigurationEpoch::FIRST, ConfigurationEpoch::FIRST.next());
    let ended = [(first, 0), (second, 1), (first, 2), (second, 0)].map(|(epoch, from)| {
        let view = View::of_epoch(epoch, 0);
        harness.receive(from, Message::Ok { view, rule: None, id: id(2), clock: harness.clock() });
        harness.drain().1.len()
    });
    assert_eq!(ended, [0, 0, 0, 1], "the answer of the old epoch is dropped");
}

#[test]
fn a_newer_epoch_has_everything_sent_again() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]).of_old_builds();
    harness.submit(Class::Overwrite);
    // The driver has not sent it yet.
    let second = ConfigurationEpoch::FIRST.next();
    let view = View::of_epoch(second, 0);
    harness.receive(1, Message::WrongView { view });
    let requests =
        |sent: &Sent| sent.iter().filter(|(_, message)| matches!(message, Message::Request { .. })).count();
    assert_eq!(requests(&harness.drain().0), 3, "once to each replica, in the new epoch");
    assert_eq!(harness.client.view().epoch(), second);
    for from in [0, 2] {
        harness.receive(from, Message::Ok { view, rule: None, id: id(2), clock: harness.clock() });
    }
    assert_eq!(harness.drain().1.len(), 1);
}

/// A quorum read whose first answer is of the old epoch and whose second one is of the new epoch: the update that
/// completed in the new epoch is seen by neither. Then another member of the new epoch answers.
fn values_of_two_epochs(bug: Option<PlantedBug>) -> (usize, Done) {
    let mut config = Config::new(Configuration::first(Group::new(3).unwrap(), FastQuorum::Majority), 1);
    config.settings.read_policy = ReadPolicy::Quorum;
    let mut harness = planted(config, bug).of_old_builds();
    harness.submit(Class::Read);
    harness.drain();
    let value = |epoch, applied: u64, text: u8| {
        let (applied, expiry) = (OpNumber(applied), WallTime(0));
        let freshness = crate::message::Freshness { accepted: applied, unordered: false, time: WallTime(0) };
        Message::MemberReply {
            view: View::of_epoch(epoch, 0),
            number: 1,
            applied,
            freshness,
            expiry,
            reply: Body::from([text]),
        }
    };
    let (first, second) = (ConfigurationEpoch::FIRST, ConfigurationEpoch::FIRST.next());
    harness.receive(0, value(first, 4, b'a'));
    harness.receive(2, value(second, 4, b'a'));
    let early = harness.drain().1.len();
    harness.receive(1, value(second, 5, b'b'));
    (early, harness.drain().1)
}

#[test]
fn only_values_of_one_epoch_make_a_read_quorum() {
    let (early, late) = values_of_two_epochs(None);
    assert_eq!((early, late.len()), (0, 1));
    assert!(matches!(&late[0].1, Outcome::Reply(reply) if **reply == *b"b"), "{late:?}");
    if cfg!(feature = "planted-bugs") {
        let early = values_of_two_epochs(Some(PlantedBug::MixedEpochAnswers)).0;
        assert_eq!(early, 1, "what completed is not seen");
    }
}

/// A group of three has become one of five. Two answers are a majority of three.
fn oks_in_a_larger_group(bug: Option<PlantedBug>) -> Vec<usize> {
    let config = Config::new(Configuration::first(Group::new(3).unwrap(), FastQuorum::Majority), 1);
    let mut harness = planted(config, bug);
    harness.submit(Class::Overwrite);
    harness.drain();
    let epoch = ConfigurationEpoch::FIRST.next();
    // Member 0 leads it, whether they are three or five.
    let view = View::of_epoch(epoch, 15);
    harness.receive(0, Message::WrongView { view });
    let asked = harness.drain().0;
    let epoch_asked = |(to, message): &(u8, Message)| match message {
        Message::GetConfiguration { epoch } => Some((*to, *epoch)),
        _ => None,
    };
    if bug.is_none() {
        assert_eq!(
            asked.iter().filter_map(epoch_asked).collect::<Vec<_>>(),
            [(0, ConfigurationEpoch::FIRST)]
        );
        let group = Group::new(5).unwrap();
        let before = Some(Roster::unknown(Group::new(3).unwrap()));
        let known = Reconfiguration { epoch, roster: Roster::unknown(group), before };
        harness.receive(0, Message::Configuration(Box::new(known)));
        assert_eq!(harness.client.members().count(), 5);
        for replica in [3, 4] {
            harness.client.handle(harness.now, Event::Connected(ReplicaId(replica)));
        }
        harness.receive(0, Message::WrongView { view });
    }
    harness.drain();
    [0, 1, 4]
        .map(|from| {
            harness.receive(from, Message::Ok { view, rule: None, id: id(2), clock: harness.clock() });
            harness.drain().1.len()
        })
        .into()
}

#[test]
fn answers_count_by_the_size_that_the_group_has_then() {
    assert_eq!(oks_in_a_larger_group(None), [0, 0, 1]);
    if cfg!(feature = "planted-bugs") {
        assert_eq!(oks_in_a_larger_group(Some(PlantedBug::SizeOfBefore)), [0, 1, 0], "two of five");
    }
}

#[test]
fn a_client_forgets_members_that_a_group_has_shrunk_by() {
    let mut harness = Harness::new(5, FastQuorum::Majority, &[0, 1, 2, 3, 4]);
    harness.submit(Class::Overwrite);
    harness.drain();
    let (epoch, three) = (ConfigurationEpoch::FIRST.next(), Group::new(3).unwrap());
    let before = Some(Roster::unknown(Group::new(5).unwrap()));
    let known = Reconfiguration { epoch, roster: Roster::unknown(three), before };
    harness.receive(2, Message::Configuration(Box::new(known)));
    let to = harness.drain().0.iter().map(|(to, _)| *to).max();
    assert_eq!(to, Some(2), "it is sent again, to those that are left");
    assert_eq!(harness.client.connected().len(), 3);
    let view = View::of_epoch(epoch, 3);
    harness.receive(0, Message::WrongView { view });
    for from in [4, 0, 1] {
        assert_eq!(harness.drain().1.len(), 0, "one that has gone does not count");
        harness.receive(from, Message::Ok { view, rule: None, id: id(2), clock: harness.clock() });
    }
    assert_eq!(harness.drain().1.len(), 1);
}
