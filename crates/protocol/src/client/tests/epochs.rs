//! Answers of different configurations never count together.

use super::*;

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

/// Half of the fast quorum answers in each of two epochs, then the rest of it in the later one. (An `Ok` counts with those of
/// its view, which is of one epoch.)
#[test]
fn only_oks_of_one_epoch_make_a_quorum() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
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
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
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
    let mut harness = planted(config, bug);
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
