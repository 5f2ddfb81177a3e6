//! What a client sends, and when it calls an operation done.

use super::updates::TURN_UPDATES;
use super::*;
use crate::message::Path;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{
    Configuration, ConfigurationEpoch, FastQuorum, Group, OpNumber, ReadPolicy, SessionId, WritePolicy,
};

type Sent = Vec<(u8, Message)>;
type Done = Vec<(Token, Outcome)>;

struct Harness {
    client: Client,
    now: Now,
    /// Who was shown that a session is the client's, in order.
    attached: Vec<(u8, SessionId)>,
}

fn id(sequence: u64) -> OperationId {
    OperationId { session: SessionId(9), sequence }
}

impl Harness {
    /// A client with a session, connected to `connected` of `n` replicas.
    fn new(n: usize, mode: FastQuorum, connected: &[u8]) -> Self {
        Self::with(Config::new(Configuration::first(Group::new(n).unwrap(), mode), 1), connected)
    }

    fn with(config: Config, connected: &[u8]) -> Self {
        let now = Now { instant: Instant(1_000_000), wall: WallTime(1_000) };
        let mut client = Client::new(config, now);
        for replica in connected {
            client.handle(now, Event::Connected(ReplicaId(*replica)));
        }
        let mut harness = Self { client, now, attached: Vec::new() };
        harness.submit(Class::Update);
        let nonce = harness.drain().0.iter().find_map(|(_, message)| match message {
            Message::Register { nonce, .. } => Some(*nonce),
            _ => None,
        });
        let registered = Message::Registered { view: View(0), nonce: nonce.unwrap(), session: SessionId(9) };
        harness.receive(0, registered);
        let reply = Body::from([1]);
        let committed = Message::Committed { view: View(0), id: id(1), clock: WallTime(0), reply };
        harness.receive(0, committed);
        harness.drain();
        harness
    }

    fn submit(&mut self, class: Class) -> Token {
        self.client.submit(self.now, Body::from([7]), class, &Footprint::One(1)).unwrap()
    }

    fn receive(&mut self, from: u8, message: Message) {
        self.receive_in(ConfigurationEpoch::FIRST, from, message);
    }

    fn receive_in(&mut self, epoch: ConfigurationEpoch, from: u8, message: Message) {
        self.client.handle(self.now, Event::Message { from: ReplicaId(from), epoch, message });
    }

    fn ok(&mut self, from: u8, view: u64, sequence: u64) {
        self.receive(from, Message::Ok { view: View(view), id: id(sequence), clock: self.clock() });
    }

    /// What the replicas' clocks say: their wall clocks run as monotonic time does.
    fn clock(&self) -> WallTime {
        WallTime(self.now.instant.0 / 1000)
    }

    fn drain(&mut self) -> (Sent, Done) {
        let (mut sent, mut done) = (Vec::new(), Vec::new());
        while let Some(action) = self.client.poll() {
            match action {
                Action::Send { to, message } => {
                    assert!(!to.is_empty());
                    if let Message::Attach { session, .. } = message {
                        self.attached.extend(to.iter().map(|to| (to.0, session)));
                        continue;
                    }
                    sent.extend(to.iter().map(|to| (to.0, message.clone())));
                }
                Action::Completed { token, outcome, applied: _ } => done.push((token, outcome)),
            }
        }
        (sent, done)
    }

    fn pass(&mut self, duration: Duration) {
        self.now.instant = self.now.instant.after(duration);
        self.client.handle(self.now, Event::Tick);
    }
}

fn paths(sent: &[(u8, Message)]) -> Vec<(u8, Path, u64)> {
    let path = |(to, message): &(u8, Message)| match message {
        Message::Request { path, request, .. } => Some((*to, *path, request.id.sequence)),
        _ => None,
    };
    sent.iter().filter_map(path).collect()
}

#[test]
fn done_with_a_fast_quorum_that_includes_the_leader() {
    for (n, mode, quorum) in [
        (3, FastQuorum::Majority, 2),
        (3, FastQuorum::Supermajority, 3),
        (5, FastQuorum::Majority, 3),
        (5, FastQuorum::Supermajority, 4),
        (7, FastQuorum::Supermajority, 6),
        (1, FastQuorum::Majority, 1),
    ] {
        let all: Vec<u8> = (0..n as u8).collect();
        let mut harness = Harness::new(n, mode, &all);
        let token = harness.submit(Class::Overwrite);
        assert_eq!(harness.drain().0.len(), n, "sent to all");
        // All but the leader, twice each: never enough.
        for _ in 0..2 {
            (1..n as u8).for_each(|from| harness.ok(from, 0, 2));
        }
        let early = harness.drain().1;
        assert!(early.is_empty(), "n={n} {mode}: done without the leader");
        harness.ok(0, 0, 2);
        assert_eq!(harness.drain().1, [(token, Outcome::Done)]);

        let token = harness.submit(Class::Overwrite);
        (0..quorum as u8 - 1).for_each(|from| harness.ok(from, 0, 3));
        assert!(harness.drain().1.is_empty(), "n={n} {mode}: done too early");
        harness.ok(quorum as u8 - 1, 0, 3);
        assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
    }
}

#[test]
fn acknowledgements_of_two_views_do_not_add_up() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    harness.submit(Class::Overwrite);
    harness.drain();
    harness.ok(0, 0, 2);
    harness.receive(2, Message::WrongView { view: View(3) });
    let (sent, _) = harness.drain();
    assert_eq!(sent.len(), 3, "sent again in the new view");
    harness.ok(1, 0, 2);
    harness.ok(1, 3, 2);
    assert!(harness.drain().1.is_empty());
    harness.ok(0, 3, 2);
    assert_eq!(harness.drain().1.len(), 1);
}

/// A thrifty client of five replicas that has heard of all of them: 1 and 2 are near, 3 and 4 a millisecond farther.
fn thrifty() -> Harness {
    let mut config = Config::new(Configuration::first(Group::new(5).unwrap(), FastQuorum::Majority), 1);
    config.settings.write_policy = WritePolicy::Thrifty;
    let mut harness = Harness::with(config, &[0, 1, 2, 3, 4]);
    harness.submit(Class::Overwrite);
    assert_eq!(recipients(&harness.drain().0), [0, 1, 2, 3, 4], "nobody has been heard of");
    (0..3).for_each(|from| harness.ok(from, 0, 2));
    harness.pass(Duration::from_millis(1));
    (3..5).for_each(|from| harness.ok(from, 0, 2));
    harness.drain();
    harness
}

fn recipients(sent: &[(u8, Message)]) -> Vec<u8> {
    paths(sent).into_iter().map(|(to, ..)| to).collect()
}

#[test]
fn a_thrifty_client_asks_the_nearest_fast_quorum() {
    let mut harness = thrifty();
    for sequence in 3..10 {
        let token = harness.submit(Class::Overwrite);
        let (sent, _) = harness.drain();
        assert_eq!(recipients(&sent), [0, 1, 2]);
        let Message::Request { recipients, .. } = &sent[0].1 else { panic!("no request") };
        assert!(recipients.iter().eq([0, 1, 2].map(ReplicaId)), "the leader is told");
        (0..3).for_each(|from| harness.ok(from, 0, sequence));
        assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
    }
    // Once a second all are asked, so that it is known who is near.
    harness.pass(Duration::from_secs(1));
    harness.submit(Class::Overwrite);
    assert_eq!(recipients(&harness.drain().0), [0, 1, 2, 3, 4]);
    harness.submit(Class::Overwrite);
    assert_eq!(recipients(&harness.drain().0), [0, 1, 2]);
}

#[test]
fn a_thrifty_client_asks_all_that_are_as_near_by_turns() {
    let mut harness = thrifty();
    // All are about as near now.
    for sequence in 3..20 {
        harness.now.instant = harness.now.instant.after(Duration::from_secs(1));
        harness.submit(Class::Overwrite);
        (0..5).for_each(|from| harness.ok(from, 0, sequence));
    }
    harness.drain();
    let mut asked = [0; 5];
    let mut before = Vec::new();
    let mut turns = 0;
    for sequence in 20..20 + 4 * TURN_UPDATES {
        harness.submit(Class::Overwrite);
        let to = recipients(&harness.drain().0);
        assert_eq!((to.len(), to[0]), (3, 0));
        to.iter().for_each(|replica| asked[usize::from(*replica)] += 1);
        (0..5).for_each(|from| harness.ok(from, 0, sequence));
        turns += u64::from(to != before);
        before = to;
    }
    // Many in a row go to the same ones.
    assert_eq!(turns, 5);
    let half = 2 * TURN_UPDATES;
    assert_eq!(asked, [2 * half, half, half, half, half]);
}

#[test]
fn a_thrifty_client_asks_the_rest_when_somebody_does_not_answer() {
    // Silent for a while.
    let mut harness = thrifty();
    harness.submit(Class::Overwrite);
    harness.drain();
    (0..2).for_each(|from| harness.ok(from, 0, 3));
    harness.pass(Duration::from_millis(3));
    assert!(harness.drain().0.is_empty());
    harness.pass(Duration::from_millis(3));
    assert_eq!(recipients(&harness.drain().0), [3, 4]);
    harness.ok(4, 0, 3);
    assert_eq!(harness.drain().1.len(), 1);
    // It is not asked again.
    harness.submit(Class::Overwrite);
    assert!(!recipients(&harness.drain().0).contains(&2));

    // Gone.
    let mut harness = thrifty();
    harness.submit(Class::Overwrite);
    harness.drain();
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(2)));
    assert_eq!(recipients(&harness.drain().0), [3, 4]);

    // Unwilling.
    let mut harness = thrifty();
    harness.submit(Class::Overwrite);
    harness.drain();
    harness.receive(1, Message::Conflict { view: View(0), id: id(3), clock: WallTime(0) });
    assert_eq!(recipients(&harness.drain().0), [3, 4]);
    [0, 2, 3].into_iter().for_each(|from| harness.ok(from, 0, 3));
    assert_eq!(harness.drain().1.len(), 1, "three of the others will do");
}

#[test]
fn conflicts_make_the_leader_order() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let token = harness.submit(Class::Overwrite);
    harness.drain();
    harness.ok(0, 0, 2);
    for from in [1, 2] {
        let conflict = Message::Conflict { view: View(0), id: id(2), clock: WallTime(0) };
        harness.receive(from, conflict);
    }
    let (sent, done) = harness.drain();
    assert!(done.is_empty());
    assert_eq!(paths(&sent), [(0, Path::Ordered, 2)]);
    let reply = Body::from([]);
    harness.receive(0, Message::Committed { view: View(0), id: id(2), clock: WallTime(0), reply });
    assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
}

/// A client that knows of view 3 and has nothing in flight, and replica 2, which has last said that it is in view 0.
fn with_one_behind(mode: FastQuorum, bug: Option<PlantedBug>) -> Harness {
    let mut harness = Harness::new(3, mode, &[0, 1, 2]);
    #[cfg(feature = "planted-bugs")]
    (harness.client.config.planted = bug);
    #[cfg(not(feature = "planted-bugs"))]
    (_ = bug);
    harness.receive(1, Message::WrongView { view: View(3) });
    harness.submit(Class::Overwrite);
    harness.drain();
    harness.receive(2, Message::WrongView { view: View(0) });
    let reply = Body::from([]);
    harness.receive(0, Message::Committed { view: View(3), id: id(2), clock: WallTime(0), reply });
    assert_eq!(harness.drain().1.len(), 1);
    harness
}

#[test]
fn a_replica_that_was_behind_is_shown_the_session_again() {
    for bug in [None, Some(PlantedBug::AttachmentKept)] {
        let mut harness = with_one_behind(FastQuorum::Majority, bug);
        harness.attached.clear();
        harness.submit(Class::Overwrite);
        harness.drain();
        let is_shown = harness.attached == [(2, SessionId(9))];
        assert_eq!(is_shown, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

#[test]
fn a_replica_that_was_behind_may_answer_the_next_update() {
    for bug in [None, Some(PlantedBug::BehindForGood)] {
        let mut harness = with_one_behind(FastQuorum::Supermajority, bug);
        harness.submit(Class::Overwrite);
        harness.drain();
        harness.pass(harness.client.config.settings.sync_after / 2);
        let is_awaited = paths(&harness.drain().0).is_empty();
        assert_eq!(is_awaited, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

/// With the known-wrong variant, the client waits for its next update as if updates took as long as this one waited.
#[test]
fn an_update_that_failed_tells_nothing_of_how_long_updates_take() {
    for bug in [None, Some(PlantedBug::FailuresMeasured)] {
        let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
        #[cfg(feature = "planted-bugs")]
        (harness.client.config.planted = bug);
        harness.submit(Class::Overwrite);
        harness.drain();
        harness.pass(harness.client.config.settings.give_up_after);
        assert_eq!(harness.drain().1.len(), 1, "given up");
        harness.submit(Class::Overwrite);
        assert_eq!(paths(&harness.drain().0).len(), 3);
        harness.pass(harness.client.config.settings.sync_after);
        let is_ordered = paths(&harness.drain().0) == [(0, Path::Ordered, 3)];
        assert_eq!(is_ordered, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

/// Played with and without a known-wrong variant: replica 2 is away, so replica 1's refusal ends the hope of a fast quorum.
#[test]
fn a_replica_that_is_away_is_not_waited_for() {
    for bug in [None, Some(PlantedBug::AbsentAwaited)] {
        let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1]);
        #[cfg(feature = "planted-bugs")]
        (harness.client.config.planted = bug);
        harness.submit(Class::Overwrite);
        assert_eq!(paths(&harness.drain().0).len(), 2);
        harness.ok(0, 0, 2);
        harness.receive(1, Message::Conflict { view: View(0), id: id(2), clock: WallTime(0) });
        let is_ordered = paths(&harness.drain().0) == [(0, Path::Ordered, 2)];
        assert_eq!(is_ordered, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

/// Replica 4 has been silent, so replica 3's refusal ends the hope of a fast quorum of four.
#[test]
fn a_silent_replica_is_not_waited_for_again() {
    let mut harness = Harness::new(5, FastQuorum::Supermajority, &[0, 1, 2, 3, 4]);
    harness.client.config.settings.write_policy = WritePolicy::Fast;
    for sequence in 2..4 {
        harness.submit(Class::Overwrite);
        assert_eq!(paths(&harness.drain().0).len(), 5);
        (0..3).for_each(|from| harness.ok(from, 0, sequence));
        if sequence == 2 {
            assert_eq!(harness.drain().0, []);
            harness.pass(harness.client.config.settings.sync_after);
            harness.ok(3, 0, sequence);
        } else {
            let (view, clock) = (View(0), harness.clock());
            let refusal = Refusal::NotNormal;
            harness.receive(3, Message::Refused { view, id: id(sequence), clock, refusal });
        }
        assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, sequence)]);
    }
}

/// Updates that have taken long make a client wait, and not for so long that its session ends meanwhile.
#[test]
fn the_leader_is_asked_before_the_session_ends() {
    let mut harness = Harness::new(3, FastQuorum::Supermajority, &[0, 1, 2]);
    harness.client.config.settings.write_policy = WritePolicy::Fast;
    harness.client.config.settings.session_idle_max = Duration::from_millis(50);
    for sequence in 2..12 {
        harness.submit(Class::Overwrite);
        harness.now.instant = harness.now.instant.after(Duration::from_millis(40));
        (0..3).for_each(|from| harness.ok(from, 0, sequence));
    }
    harness.submit(Class::Overwrite);
    (0..2).for_each(|from| harness.ok(from, 0, 12));
    harness.drain();
    let mut waited = 0;
    while paths(&harness.drain().0).is_empty() {
        harness.pass(Duration::from_millis(5));
        waited += 5;
    }
    assert!((50..75).contains(&waited), "{waited} ms");
}

#[test]
fn without_a_fast_quorum_in_reach_the_leader_orders_from_the_start() {
    let mut harness = Harness::new(3, FastQuorum::Supermajority, &[0, 1]);
    harness.submit(Class::Merge);
    assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, 2)]);
    // A silent replica is waited for once.
    let mut harness = Harness::new(3, FastQuorum::Supermajority, &[0, 1, 2]);
    harness.client.config.settings.write_policy = WritePolicy::Fast;
    harness.submit(Class::Merge);
    harness.drain();
    harness.ok(0, 0, 2);
    harness.ok(1, 0, 2);
    harness.pass(Duration::from_millis(20));
    assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, 2)]);
    harness.submit(Class::Merge);
    assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, 3)]);
    harness.ok(2, 0, 2);
    harness.submit(Class::Merge);
    assert_eq!(paths(&harness.drain().0).len(), 3);
}

#[test]
fn refused_means_nowhere_and_unknown_means_unknown() {
    let refused =
        |sequence, refusal| Message::Refused { view: View(0), id: id(sequence), clock: WallTime(0), refusal };
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let only_leader = harness.submit(Class::Update);
    let shared = harness.submit(Class::Overwrite);
    harness.receive(0, refused(2, Refusal::LogFull));
    harness.receive(0, refused(3, Refusal::LogFull));
    let done = harness.drain().1;
    assert_eq!(done, [(only_leader, Outcome::Refused(Refusal::LogFull))]);
    // Others may have it: it is sent again, until it is taken or nobody knows.
    for _ in 0..3 {
        harness.pass(Duration::from_millis(60));
        assert_eq!(paths(&harness.drain().0), [0, 1, 2].map(|to| (to, Path::Durability, 3)));
        harness.receive(0, refused(3, Refusal::Overloaded));
    }
    harness.pass(Duration::from_secs(11));
    assert_eq!(harness.drain().1, [(shared, Outcome::Unknown)]);

    let mut alone = Harness::new(1, FastQuorum::Majority, &[0]);
    let crowded_out = alone.submit(Class::Overwrite);
    assert_eq!(paths(&alone.drain().0), [(0, Path::Durability, 2)]);
    alone.receive(0, refused(2, Refusal::Overloaded));
    assert_eq!(alone.drain().1, [], "a copy of it may still be taken");
    alone.pass(Duration::from_secs(11));
    assert_eq!(alone.drain().1, [(crowded_out, Outcome::Unknown)]);
    let no_disk = alone.submit(Class::Overwrite);
    alone.drain();
    alone.receive(0, refused(3, Refusal::DiskFailed));
    assert_eq!(alone.drain().1, [(no_disk, Outcome::Refused(Refusal::DiskFailed))]);

    let silent = harness.submit(Class::Update);
    harness.pass(Duration::from_secs(11));
    assert_eq!(harness.drain().1, [(silent, Outcome::Unknown)]);
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let executed = harness.submit(Class::Update);
    harness.drain();
    harness.receive(0, refused(2, Refusal::ReplyDropped));
    assert_eq!(harness.drain().1, [(executed, Outcome::Unknown)]);
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0]);
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(0)));
    let unsent = harness.submit(Class::Update);
    let read = harness.submit(Class::Read);
    harness.pass(Duration::from_secs(11));
    assert_eq!(harness.drain().1, [(unsent, Outcome::TimedOut), (read, Outcome::TimedOut)]);
}

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

/// Found by seed 2800285320: each refused registration was followed by another one, which came while the leader was busy with
/// what was sent again of the last one, for ever.
#[test]
fn a_refused_registration_is_the_next_one() {
    for bug in [None, Some(PlantedBug::RegistrationAbandoned)] {
        let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
        #[cfg(feature = "planted-bugs")]
        (harness.client.config.planted = bug);
        let registered = |harness: &mut Harness| {
            let sent = harness.drain().0;
            sent.iter().find_map(|(_, message)| match message {
                Message::Register { nonce, .. } => Some(*nonce),
                _ => None,
            })
        };
        let refused = |harness: &mut Harness, id: OperationId, refusal: Refusal| {
            let (view, clock) = (View(0), harness.clock());
            harness.receive(0, Message::Refused { view, id, clock, refusal });
        };
        harness.submit(Class::Update);
        harness.drain();
        refused(&mut harness, id(2), Refusal::UnknownSession);
        harness.submit(Class::Update);
        let first = registered(&mut harness).unwrap();
        refused(&mut harness, OperationId { session: SessionId(0), sequence: first }, Refusal::Overloaded);
        assert_eq!(harness.drain().1.len(), 1, "refused");
        harness.submit(Class::Update);
        assert_eq!(registered(&mut harness) == Some(first), bug.is_none() || !cfg!(feature = "planted-bugs"));
        // The leader had taken another copy.
        harness.receive(0, Message::Registered { view: View(0), nonce: first, session: SessionId(9) });
        let is_sent = !paths(&harness.drain().0).is_empty();
        assert_eq!(is_sent, bug.is_none() || !cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}

#[test]
fn the_window_is_bounded_and_an_expired_session_is_replaced() {
    let mut harness = Harness::new(1, FastQuorum::Majority, &[0]);
    harness.client.config.settings.in_flight_max = 2;
    harness.submit(Class::Update);
    harness.submit(Class::Update);
    let busy = harness.client.submit(harness.now, Body::from([7]), Class::Update, &Footprint::One(1));
    assert_eq!(busy, Err(Busy { in_flight_max: 2 }));
    let refusal = Refusal::UnknownSession;
    harness.receive(0, Message::Refused { view: View(0), id: id(2), clock: WallTime(0), refusal });
    assert_eq!(harness.drain().1.len(), 2);
    harness.submit(Class::Update);
    assert!(matches!(harness.drain().0.as_slice(), [(0, Message::Register { .. })]));
}

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
    }
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

/// A follower whose clock is an hour ahead moves nobody's timestamps; a leader whose clock was ahead for a moment does for
/// no longer than that.
#[test]
fn timestamps_follow_no_single_clock_and_come_back() {
    let micros = |harness: &mut Harness| {
        let (sent, _) = harness.drain();
        let request = sent.into_iter().find_map(|(_, message)| match message {
            Message::Request { request, .. } => Some(request.micros),
            _ => None,
        });
        request.map(|micros| micros.abs_diff(harness.clock().0))
    };
    let ahead = |harness: &Harness| WallTime(harness.clock().0 + 3_600_000_000);
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let view = View(0);
    for sequence in 2..5 {
        harness.submit(Class::Overwrite);
        let (right, wrong) = (harness.clock(), ahead(&harness));
        for (from, clock) in [(0, right), (1, wrong), (2, right)] {
            harness.receive(from, Message::Ok { view, id: id(sequence), clock });
        }
        assert!(micros(&mut harness) < Some(1000));
    }
    // Two clocks of three are ahead, then none.
    harness.submit(Class::Overwrite);
    let wrong = ahead(&harness);
    for from in [0, 1] {
        harness.receive(from, Message::Ok { view, id: id(5), clock: wrong });
    }
    harness.drain();
    harness.submit(Class::Overwrite);
    assert!(micros(&mut harness) > Some(3_000_000_000));
    (0..2).for_each(|from| harness.ok(from, 0, 6));
    // The session's timestamps only grow: so there is another session now.
    let token = harness.submit(Class::Overwrite);
    let (sent, _) = harness.drain();
    let Some((0, Message::Register { nonce, .. })) = sent.last() else { unreachable!("{sent:?}") };
    harness.receive(0, Message::Registered { view, nonce: *nonce, session: SessionId(10) });
    assert!(micros(&mut harness) < Some(1000));
    let id = OperationId { session: SessionId(10), sequence: 1 };
    let clock = harness.clock();
    (0..2).for_each(|from| harness.receive(from, Message::Ok { view, id, clock }));
    assert_eq!(harness.drain().1, [(token, Outcome::Done)]);
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

/// As soon as it is known that no majority can be reached, everything ends with what is known of it, and nothing that
/// needs one is sent.
#[test]
fn without_a_majority_nothing_hangs_and_nothing_is_refused_that_was_sent() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1]);
    let (sent, read) = (harness.submit(Class::Overwrite), harness.submit(Class::Read));
    assert!(!harness.drain().0.is_empty());
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(0)));
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(1)));
    let unsent = harness.submit(Class::Overwrite);
    harness.client.handle(harness.now, Event::QuorumReachable(false));
    let ended = [(sent, Outcome::Unknown), (unsent, Outcome::NoQuorum), (read, Outcome::NoQuorum)];
    assert_eq!(harness.drain(), (Vec::new(), ended.to_vec()));
    let refused =
        [harness.submit(Class::Overwrite), harness.submit(Class::Update), harness.submit(Class::Read)];
    assert_eq!(harness.drain(), (Vec::new(), refused.map(|token| (token, Outcome::NoQuorum)).to_vec()));
    harness.client.handle(harness.now, Event::Connected(ReplicaId(1)));
    let stale = harness.client.submit_with(
        harness.now,
        Body::from([7]),
        Class::Read,
        &Footprint::One(1),
        Some(ReadPolicy::Stale),
    );
    let (sent, done) = harness.drain();
    assert!(stale.is_ok() && sent.len() == 1 && done.is_empty(), "any state will do: {sent:?}");
    // A majority may answer reads though nobody leads.
    harness.client.handle(harness.now, Event::Connected(ReplicaId(0)));
    let read = harness.submit(Class::Read);
    let (sent, done) = harness.drain();
    assert!(!sent.is_empty() && done.is_empty(), "{done:?}");
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(0)));
    assert_eq!(harness.drain().1, [(read, Outcome::NoQuorum)]);
    harness.client.handle(harness.now, Event::QuorumReachable(true));
    harness.client.handle(harness.now, Event::Connected(ReplicaId(0)));
    harness.submit(Class::Overwrite);
    assert!(!harness.drain().0.is_empty());
}

/// A client shows once on each connection that the session is its own, and again when it is asked to.
#[test]
fn a_client_attaches_before_its_first_update() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    assert_eq!(harness.attached, [(0, SessionId(9))], "the first update went to the leader alone");
    harness.attached.clear();
    harness.submit(Class::Overwrite);
    harness.drain();
    assert_eq!(harness.attached, [(1, SessionId(9)), (2, SessionId(9))]);
    harness.submit(Class::Overwrite);
    harness.drain();
    assert_eq!(harness.attached.len(), 2, "once is enough");
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(1)));
    harness.client.handle(harness.now, Event::Connected(ReplicaId(1)));
    assert!(harness.drain().0.iter().all(|(to, _)| *to == 1));
    assert_eq!(harness.attached[2..], [(1, SessionId(9))]);
    let (view, clock, refusal) = (View(0), WallTime(0), Refusal::NotAttached);
    harness.receive(2, Message::Refused { view, id: id(3), clock, refusal });
    assert_eq!(paths(&harness.drain().0), [(2, Path::Durability, 3)]);
    assert_eq!(harness.attached[3..], [(2, SessionId(9))]);
}

/// A replica that was started again knows of no refusal: what it was sent since, it may have taken.
#[test]
fn an_update_is_refused_by_all_only_if_nobody_has_been_sent_it_again() {
    let refused =
        || Message::Refused { view: View(0), id: id(2), clock: WallTime(0), refusal: Refusal::DiskFull };
    let outcome = |is_restarted: bool, bug: Option<PlantedBug>| {
        let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
        #[cfg(feature = "planted-bugs")]
        (harness.client.config.planted = bug);
        #[cfg(not(feature = "planted-bugs"))]
        let _ = bug;
        let token = harness.submit(Class::Overwrite);
        assert_eq!(harness.drain().0.len(), 3);
        harness.receive(1, refused());
        if is_restarted {
            harness.client.handle(harness.now, Event::Disconnected(ReplicaId(1)));
            harness.client.handle(harness.now, Event::Connected(ReplicaId(1)));
            let (sent, _) = harness.drain();
            assert!(paths(&sent).iter().any(|(to, ..)| *to == 1), "sent again: {:?}", paths(&sent));
        }
        harness.receive(2, refused());
        harness.receive(0, refused());
        let (_, done) = harness.drain();
        assert_eq!(done.len(), 1);
        assert_eq!(done[0].0, token);
        done[0].1.clone()
    };
    let refused = Outcome::Refused(Refusal::DiskFull);
    assert_eq!(outcome(false, None), refused);
    assert_eq!(outcome(true, None), Outcome::Unknown);
    if cfg!(feature = "planted-bugs") {
        assert_eq!(outcome(true, Some(PlantedBug::RefusalOutlivesProcess)), refused);
    }
}

fn no_room(sequence: u64) -> Message {
    Message::Refused { view: View(0), id: id(sequence), clock: WallTime(0), refusal: Refusal::DiskFull }
}

/// Every replica has been sent an update once, one of them late.
#[test]
fn a_late_connection_is_no_second_copy() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1]);
    let token = harness.submit(Class::Overwrite);
    let mut sent = paths(&harness.drain().0);
    harness.client.handle(harness.now, Event::Connected(ReplicaId(2)));
    sent.extend(paths(&harness.drain().0));
    sent.sort_unstable_by_key(|(to, ..)| *to);
    assert_eq!(sent.iter().map(|(to, ..)| *to).collect::<Vec<_>>(), [0, 1, 2]);
    (0..3).for_each(|from| harness.receive(from, no_room(2)));
    assert_eq!(harness.drain().1, [(token, Outcome::Refused(Refusal::DiskFull))]);
}

/// An update was sent to the leader alone, and the connection to a follower comes back.
#[test]
fn the_connection_of_who_was_not_asked_is_no_second_copy() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let token = harness.submit(Class::Update);
    assert_eq!(paths(&harness.drain().0).len(), 1);
    harness.client.handle(harness.now, Event::Disconnected(ReplicaId(1)));
    harness.client.handle(harness.now, Event::Connected(ReplicaId(1)));
    assert!(paths(&harness.drain().0).is_empty());
    harness.receive(0, no_room(2));
    assert_eq!(harness.drain().1, [(token, Outcome::Refused(Refusal::DiskFull))]);
}

/// A leader that is started again leaves its view: the process that refused a second copy had refused the first.
#[test]
fn a_second_copy_for_the_leader_is_refused_as_the_first() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let token = harness.submit(Class::Update);
    harness.drain();
    harness.pass(Duration::from_millis(120));
    assert_eq!(paths(&harness.drain().0).len(), 1, "sent again, because the answer took 120 ms");
    harness.receive(0, no_room(2));
    assert_eq!(harness.drain().1, [(token, Outcome::Refused(Refusal::DiskFull))]);
}

/// A follower asks to be shown the session when the leader has been asked to order the update: it is sent no other copy, and
/// is not waited for.
#[test]
fn who_was_not_shown_the_session_is_not_waited_for() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    let token = harness.submit(Class::Overwrite);
    harness.drain();
    harness.pass(Duration::from_millis(25));
    assert_eq!(paths(&harness.drain().0), [(0, Path::Ordered, 2)]);
    let (view, clock) = (View(0), WallTime(0));
    harness.receive(1, Message::Refused { view, id: id(2), clock, refusal: Refusal::NotAttached });
    harness.receive(2, no_room(2));
    harness.receive(0, no_room(2));
    assert_eq!(harness.drain().1, [(token, Outcome::Unknown)]);
}

/// Three of five members answer, one is stopped, and the connection to another one comes and goes: what three members have
/// is ordered soon.
#[test]
fn a_connection_that_comes_and_goes_does_not_put_off_the_order() {
    let mut harness = Harness::new(5, FastQuorum::Supermajority, &[0, 1, 2, 3, 4]);
    harness.submit(Class::Overwrite);
    harness.drain();
    harness.now.instant = harness.now.instant.after(Duration::from_millis(5));
    (0..5).for_each(|from| harness.ok(from, 0, 2));
    harness.submit(Class::Overwrite);
    harness.drain();
    (0..3).for_each(|from| harness.ok(from, 0, 3));
    let is_ordered = (1..200).any(|millis| {
        harness.pass(Duration::from_millis(1));
        match millis % 15 {
            0 => harness.client.handle(harness.now, Event::Connected(ReplicaId(4))),
            5 => harness.client.handle(harness.now, Event::Disconnected(ReplicaId(4))),
            _ => {}
        }
        paths(&harness.drain().0).iter().any(|(to, path, _)| *to == 0 && *path == Path::Ordered)
    });
    assert!(is_ordered);
}

/// The same, while the leader has no room for the update for a moment.
#[test]
fn a_connection_that_comes_and_goes_does_not_put_off_what_was_crowded_out() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    harness.submit(Class::Update);
    harness.drain();
    // Sent again once, so that no refusal is final.
    harness.pass(Duration::from_millis(110));
    harness.drain();
    let (view, clock) = (View(0), WallTime(0));
    harness.receive(0, Message::Refused { view, id: id(2), clock, refusal: Refusal::Overloaded });
    let is_asked_again = (1..200).any(|millis| {
        harness.pass(Duration::from_millis(1));
        if millis % 30 == 0 {
            let follower = ReplicaId(1 + (millis / 30 % 2) as u8);
            harness.client.handle(harness.now, Event::Disconnected(follower));
            harness.client.handle(harness.now, Event::Connected(follower));
        }
        !paths(&harness.drain().0).is_empty()
    });
    assert!(is_asked_again);
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
                arriving.push((millis + trip, to, Message::Ok { view, id, clock }));
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

/// Half of the fast quorum answers in each of two epochs, then the rest of it in the later one. How many updates have
/// ended after each answer.
fn oks_of_two_epochs(bug: Option<PlantedBug>) -> Vec<usize> {
    let config = Config::new(Configuration::first(Group::new(3).unwrap(), FastQuorum::Majority), 1);
    let mut harness = planted(config, bug);
    harness.submit(Class::Overwrite);
    harness.drain();
    let (first, second) = (ConfigurationEpoch::FIRST, ConfigurationEpoch::FIRST.next());
    [(first, 0), (second, 1), (first, 2), (second, 0)]
        .map(|(epoch, from)| {
            let ok = Message::Ok { view: View(0), id: id(2), clock: harness.clock() };
            harness.receive_in(epoch, from, ok);
            harness.drain().1.len()
        })
        .to_vec()
}

#[test]
fn only_oks_of_one_epoch_make_a_quorum() {
    assert_eq!(oks_of_two_epochs(None), [0, 0, 0, 1], "the answer of the old epoch is dropped");
    if cfg!(feature = "planted-bugs") {
        assert_eq!(oks_of_two_epochs(Some(PlantedBug::MixedEpochAnswers)), [0, 1, 0, 0]);
    }
}

#[test]
fn a_newer_epoch_has_everything_sent_again() {
    let mut harness = Harness::new(3, FastQuorum::Majority, &[0, 1, 2]);
    harness.submit(Class::Overwrite);
    // The driver has not sent it yet.
    let second = ConfigurationEpoch::FIRST.next();
    harness.receive_in(second, 1, Message::WrongView { view: View(0) });
    let requests =
        |sent: &Sent| sent.iter().filter(|(_, message)| matches!(message, Message::Request { .. })).count();
    assert_eq!(requests(&harness.drain().0), 3, "once to each replica, in the new epoch");
    assert_eq!(harness.client.epoch(), second);
    harness.receive_in(second, 0, Message::Ok { view: View(0), id: id(2), clock: harness.clock() });
    harness.receive_in(second, 2, Message::Ok { view: View(0), id: id(2), clock: harness.clock() });
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
    let value = |applied: u64, text: u8| {
        let (applied, expiry) = (OpNumber(applied), WallTime(0));
        let freshness = crate::message::Freshness { accepted: applied, unordered: false, time: WallTime(0) };
        Message::MemberReply {
            view: View(0),
            number: 1,
            applied,
            freshness,
            expiry,
            reply: Body::from([text]),
        }
    };
    let (first, second) = (ConfigurationEpoch::FIRST, ConfigurationEpoch::FIRST.next());
    harness.receive_in(first, 0, value(4, b'a'));
    harness.receive_in(second, 2, value(4, b'a'));
    let early = harness.drain().1.len();
    harness.receive_in(second, 1, value(5, b'b'));
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
