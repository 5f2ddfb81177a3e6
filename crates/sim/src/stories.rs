//! Known-wrong variants that random seeds take long to find, each as the shortest story that shows it: it ends well,
//! and it ends badly when the bug is planted. Bugs that were found are here, too.

use crate::scenario::DELAY as D;
use crate::swarm::{DiskEngineSettings, LeaseChange, MICRO, MILLI, Sizes, Swarm};
use crate::workload::{ClientCommand, encode};
use crate::{Node, Play, Scenario};
use core::time::Duration;
use syros_protocol::client::Outcome;
use syros_protocol::message::{Message, Path, Request, RoleName};
use syros_protocol::replica::PlantedBug;
use syros_types::{FastQuorum, OperationId, ReadPolicy, ReplicaSet, View};

/// A story of a known-wrong variant.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    /// What it shows.
    pub bug: PlantedBug,
    /// Its name.
    pub name: &'static str,
    /// Replicas it is about.
    replicas: usize,
    play: fn(Scenario) -> Result<(), String>,
}

macro_rules! stories {
    ($($bug:ident in a group of $replicas:literal: $story:ident;)*) => {
        /// Every one.
        pub const STORIES: &[Story] = &[
            $(Story { bug: PlantedBug::$bug, name: stringify!($story), replicas: $replicas, play: $story },)*
        ];
    };
}

stories! {
    ResentAcknowledgesMore in a group of 3: a_request_sent_again_acknowledges_nothing_new;
    AcksOfOtherViewsCounted in a group of 3: an_ok_of_an_earlier_view_does_not_count;
    SharedKeysAtLeaderOnly in a group of 3: an_update_is_not_acknowledged_after_one_of_several_keys_that_the_leader_lacks;
    SharedKeysIgnored in a group of 3: an_update_does_not_complete_one_of_several_keys_before_it;
    RinseOfOtherView in a group of 5: a_reread_counts_only_in_the_view_that_named_its_entry;
    UnattachedAccepted in a group of 3: a_stranger_cannot_use_the_session_of_another;
    UpdateLost in a group of 3: digests_tell_of_an_update_that_a_follower_lost;
    EngineLosesUpdate in a group of 3: digests_tell_of_an_update_that_an_engine_lost;
    AllKeysAsOne in a group of 3: an_update_of_all_keys_does_not_come_before_what_it_removed;
    PromiseForgotten in a group of 3: a_follower_that_has_promised_joins_no_other_view;
    EarlierPromiseForgotten in a group of 3: a_promise_outlives_the_setting_that_it_was_made_under;
    ExpiryOverlooked in a group of 3: an_expired_key_does_not_come_back_in_a_quorum;
    ReplacedGoesAlong in a group of 3: a_node_that_was_replaced_makes_no_quorum;
    OldQuorumSkipped in a group of 5: a_majority_of_a_larger_group_needs_one_of_the_group_before;
    FollowersAhead in a group of 3: an_expired_key_does_not_come_back_with_the_next_leader;
}

impl Story {
    /// Plays it, as the protocol is or with its bug planted.
    ///
    /// # Errors
    /// What was wrong, in words.
    pub fn play(&self, planted: bool) -> Result<(), String> {
        let scenario = Scenario::new(self.replicas);
        (self.play)(if planted { scenario.plant(self.bug) } else { scenario })
    }
}

fn set(key: u64, value: &str) -> ClientCommand {
    ClientCommand::Set(key, value.as_bytes().to_vec())
}

/// A group with a lease ten times as long, in which key 1 has an old value; a client that only reaches the followers;
/// and a reader that only reaches the leader.
fn divided_clients_and_a_long_lease(scenario: Scenario) -> (Play, usize, usize) {
    let change = LeaseChange { times: 10, at: u64::MAX };
    let mut play = scenario.with(|swarm| swarm.lease_change = Some(change)).start();
    let (writer, other) = (play.client(), play.client());
    let reader = play.reader(ReadPolicy::Leader);
    assert_eq!(play.call(writer, set(1, "old")), Outcome::Done);
    assert_eq!(play.get(reader, 1), Some(b"old".to_vec()));
    play.run(200 * MILLI);
    play.cut_client(reader, &[1, 2]);
    play.cut_client(other, &[0]);
    (play, other, reader)
}

/// Both followers are started again with a lease of a tenth, and no longer connected to their leader, who has the old one
/// and relies on what they promised. A client that reaches all of them writes through the next leader.
fn a_promise_outlives_the_setting_that_it_was_made_under(scenario: Scenario) -> Result<(), String> {
    let (mut play, other, reader) = divided_clients_and_a_long_lease(scenario);
    play.reconfigure(1);
    play.reconfigure(2);
    let write = play.submit(other, set(1, "new"));
    play.run(1_500 * MILLI);
    play.get(reader, 1);
    play.run(4_000 * MILLI);
    assert_eq!(play.outcome(write), Some(Outcome::Done), "service goes on when the promise has ended");
    play.reconfigure(0);
    play.mend_all();
    play.judge()
}

/// One follower no longer hears the leader and wants another view; the other follower has just promised the leader not
/// to join one. If it joins all the same, the old leader still answers reads when the next leader takes a write.
fn a_follower_that_has_promised_joins_no_other_view(scenario: Scenario) -> Result<(), String> {
    // The client's way to the next leader takes less than the long lease.
    let (mut play, other, reader) = divided_clients_and_a_long_lease(scenario);
    cut_both(&mut play, 0, &[1]);
    // The leader must not hear that the other follower leaves its view. It may rely on what that follower said last.
    play.run(1_500 * MILLI);
    play.cut(Node::Replica(2), Node::Replica(0));
    let joins = (0..8_000).any(|_| {
        play.run(MILLI);
        role(&mut play, 2).0 > 0
    });
    if joins {
        let write = play.submit(other, set(1, "new"));
        let completes = (0..1_000).any(|_| {
            play.run(MILLI);
            play.outcome(write) == Some(Outcome::Done)
        });
        assert!(completes, "the next leader takes updates");
    }
    play.submit(reader, ClientCommand::Get(1));
    play.run(1_000 * MILLI);
    play.mend_all();
    play.judge()
}

/// A node is replaced, and an update is complete at the leader and the new node. Then the leader fails, and somebody starts the
/// node that was replaced in the place of the new one. It and the member that was away are a majority by their number.
fn a_node_that_was_replaced_makes_no_quorum(scenario: Scenario) -> Result<(), String> {
    let mut play = scenario.start();
    let client = play.client();
    assert_eq!(play.call(client, set(1, "old")), Outcome::Done);
    play.crash(2);
    play.replace_node(2);
    play.until("the new node takes part", |play| {
        play.run(MILLI);
        play.world().replica(2).is_some_and(|process| process.core().is_normal())
    });
    let epoch = |play: &mut Play, replica: usize| {
        let process = play.world().replica(replica).expect("it runs");
        process.core().configuration().id.epoch.0
    };
    assert_eq!([0, 1, 2].map(|replica| epoch(&mut play, replica)), [1; 3]);
    cut_both(&mut play, 1, &[0, 2]);
    assert_eq!(play.call(client, set(1, "new")), Outcome::Done);
    play.run(200 * MILLI);
    play.crash(0);
    play.exchange_nodes(2);
    play.mend_all();
    let read = play.submit(client, ClientCommand::Get(1));
    play.run(VIEW_CHANGE);
    // Until the new node is back nobody can say.
    let is_answered = play.outcome(read).is_some();
    play.exchange_nodes(2);
    play.run(VIEW_CHANGE);
    play.restart(0);
    play.judge().and_then(|()| if is_answered { Err("the old node counts".to_owned()) } else { Ok(()) })
}

/// A group of three becomes one of five while one member is away. When the two that know of the last update fail, the one that was
/// away and the two new nodes are a majority of five, and know nothing of it.
fn a_majority_of_a_larger_group_needs_one_of_the_group_before(scenario: Scenario) -> Result<(), String> {
    let sizes = Sizes { smallest: 3, first: 3, older_builds: true };
    let mut play = scenario.with(|swarm| swarm.sizes = Some(sizes)).start();
    let client = play.client();
    assert_eq!(play.call(client, set(1, "old")), Outcome::Done);
    cut_both(&mut play, 2, &[0, 1]);
    assert_eq!(play.call(client, set(1, "new")), Outcome::Done);
    play.join();
    play.until("the new nodes are in the group", |play| {
        play.run(D / 20);
        [3, 4].iter().all(|replica| play.world().replica(*replica).is_some())
    });
    play.crash(0);
    play.crash(1);
    play.mend_all();
    let read = play.submit(client, ClientCommand::Get(1));
    play.run(2 * VIEW_CHANGE);
    let is_answered = play.outcome(read).is_some();
    play.restart(0);
    play.restart(1);
    play.run(VIEW_CHANGE);
    play.judge().and_then(|()| if is_answered { Err("nobody could know".to_owned()) } else { Ok(()) })
}

/// Long enough for a view change and for whoever waits for one.
const VIEW_CHANGE: u64 = 2_000 * MILLI;

fn cut_both(play: &mut Play, replica: usize, others: &[usize]) {
    for other in others {
        play.cut(Node::Replica(replica), Node::Replica(*other));
        play.cut(Node::Replica(*other), Node::Replica(replica));
    }
}

fn role(play: &mut Play, replica: usize) -> (u64, RoleName) {
    let status = play.status(replica);
    (status.view, status.role)
}

/// The id that the last update of the history travelled under.
fn last_id(play: &mut Play) -> OperationId {
    let operations = play.world().history().operations();
    operations.iter().rev().find_map(|operation| operation.id).expect("an update was sent")
}

/// A follower has nothing in its log where the others have an update. Nobody sees that but the members themselves, which
/// compare digests of what they have executed.
fn digests_tell_of_an_update_that_a_follower_lost(scenario: Scenario) -> Result<(), String> {
    digests_tell(scenario, ClientCommand::Set)
}

/// All members have one log, and the engine of one does not execute all of it. What it returns later shows that.
fn digests_tell_of_an_update_that_an_engine_lost(scenario: Scenario) -> Result<(), String> {
    let command = |key, value: Vec<u8>| {
        let is_silent = !value[0].is_multiple_of(3);
        if is_silent { ClientCommand::Set(key, value) } else { ClientCommand::GetSet(key, value) }
    };
    digests_tell(scenario, command)
}

/// Members tell each other of a difference that nobody else sees.
fn digests_tell(scenario: Scenario, command: impl Fn(u64, Vec<u8>) -> ClientCommand) -> Result<(), String> {
    let mut play = scenario.with(|swarm| swarm.protocol.replica.digest_entries = 8).start();
    play.world().invariants.look_away();
    let writer = play.client();
    for round in 0..48_u8 {
        let operation = play.submit(writer, command(u64::from(round / 2 % 3), vec![round]));
        play.run(100 * MILLI);
        if let Some(told) = play.world().violation() {
            // The leader counts the segment, which operators see in INFO and in the status.
            assert_eq!(play.status(0).divergences, 1);
            return Err(told);
        }
        play.finish(operation);
    }
    play.judge()
}

/// A FLUSHALL follows a SET that has completed, whose client's clock is ahead, and that the durability logs alone hold. Were
/// the FLUSHALL accepted, the next leader would recover both in the order of their timestamps: the key would come back.
fn an_update_of_all_keys_does_not_come_before_what_it_removed(scenario: Scenario) -> Result<(), String> {
    let mut play = scenario.fast_quorum(FastQuorum::Supermajority).unhurried().start();
    let (writer, other, reader) = (play.client(), play.client(), play.client());
    play.jump_client_clock(writer, 200_000);
    assert_eq!(play.call(writer, set(1, "removed")), Outcome::Done);
    assert_eq!(play.call(other, ClientCommand::FlushAll), Outcome::Done);
    play.crash(0);
    play.run(VIEW_CHANGE);
    play.call(reader, ClientCommand::DbSize);
    play.get(reader, 1);
    play.judge()
}

/// A key has expired for the leader, and its followers have the entry that says so and have not executed it.
fn expire_at_the_leader(play: &mut Play, writer: usize) {
    play.call(writer, ClientCommand::SetFor(1, b"here".to_vec(), 300));
    play.run(100 * MILLI);
    let before = play.status(1).op_number;
    play.until("the followers have the entry that lets it expire", |play| {
        [1, 2].iter().all(|follower| play.status(*follower).op_number > before)
    });
    // They hear of its commitment late.
    [1, 2].iter().for_each(|follower| play.cut(Node::Replica(0), Node::Replica(*follower)));
    play.until("the leader has executed it", |play| play.status(0).applied > before);
}

/// A key expires when the log says so, and no update of it is pending anywhere. Once somebody has found it
/// gone, a quorum whose members have not executed that entry may not find it.
fn an_expired_key_does_not_come_back_in_a_quorum(scenario: Scenario) -> Result<(), String> {
    let mut play = scenario.start();
    let (writer, reader) = (play.client(), play.reader(ReadPolicy::Quorum));
    play.cut(Node::Client(reader), Node::Replica(0));
    expire_at_the_leader(&mut play, writer);
    assert_eq!(play.get(writer, 1), None, "the leader has a lease");
    let read = play.submit(reader, ClientCommand::Get(1));
    play.run(100 * MILLI);
    play.mend_all();
    play.finish(read);
    play.judge()
}

/// The same across a view change: the next leader has the entry, and does not know that others have executed it.
fn an_expired_key_does_not_come_back_with_the_next_leader(scenario: Scenario) -> Result<(), String> {
    let mut play = scenario.start();
    let (writer, reader) = (play.client(), play.client());
    expire_at_the_leader(&mut play, writer);
    assert_eq!(play.get(writer, 1), None, "the leader has a lease");
    play.crash(0);
    let read = play.submit(reader, ClientCommand::Get(1));
    play.until("there is another leader", |play| {
        play.world().replica(1).is_some_and(|replica| replica.core().is_leader())
    });
    // One message tells it of both: that it has a lease, and that the entry is committed.
    play.cut(Node::Replica(2), Node::Replica(1));
    play.run(30 * D);
    play.mend(Node::Replica(2), Node::Replica(1));
    play.finish(read);
    play.judge()
}

/// Two replicas hold copies of one request that were sent at different times. If the later copy
/// acknowledged more than the earlier one, the follower that executes it would take another update for
/// dealt with which is only in the durability logs yet.
fn a_request_sent_again_acknowledges_nothing_new(scenario: Scenario) -> Result<(), String> {
    let scenario = scenario.with(|swarm| {
        swarm.network.in_order = false;
        swarm.protocol.replica.order_delay = Duration::from_millis(900);
        swarm.protocol.sync_after = Duration::from_secs(2);
    });
    let mut play = scenario.start();
    let (writer, reader) = (play.client(), play.client());
    // The first update is slow to reach the leader.
    let leader_link = (Node::Client(writer), Node::Replica(0));
    play.set_delay(leader_link.0, leader_link.1, 5 * MILLI);
    let first = play.submit(writer, set(1, "kept"));
    play.set_delay(leader_link.0, leader_link.1, MILLI);
    // The second reaches the leader alone, and a read has it ordered before the first is there.
    for follower in [1, 2] {
        play.cut(Node::Client(writer), Node::Replica(follower));
    }
    play.set_delay(Node::Replica(0), Node::Replica(1), 70 * MILLI);
    let second = play.submit(writer, set(2, "too"));
    play.run(1_200 * MICRO);
    play.submit(reader, ClientCommand::Get(2));
    play.run(5 * MILLI);
    play.finish(first);
    assert_eq!(play.outcome(first), Some(Outcome::Done));
    // The second is sent to one of the followers again, now that the first is done.
    play.mend(Node::Client(writer), Node::Replica(1));
    play.break_connection(writer, 1);
    play.run(180 * MILLI);
    assert_eq!(play.outcome(second), Some(Outcome::Done), "both have been vouched for");
    play.crash(0);
    play.run(2_000 * MILLI);
    play.get(reader, 1);
    play.judge()
}

/// An `Ok` of the previous view arrives late, from a replica that has cleared its durability log since.
fn an_ok_of_an_earlier_view_does_not_count(scenario: Scenario) -> Result<(), String> {
    let mut play = scenario.unhurried().start();
    let (writer, reader) = (play.client(), play.client());
    // Only replica 2 gets the update, and its answer takes long.
    play.set_delay(Node::Replica(2), Node::Client(writer), 400 * MILLI);
    play.cut_client(writer, &[0, 1]);
    play.submit(writer, set(1, "kept"));
    play.run(10 * MILLI);
    // The next view is made without it, and led by replica 1.
    play.isolate(2);
    play.crash(0);
    play.restart(0);
    play.run(100 * MILLI);
    assert_eq!(play.leader(), 1);
    play.mend(Node::Client(writer), Node::Replica(1));
    play.cut_client(writer, &[2]);
    // Replica 2 enters it, and the client hears of it from its leader.
    for replica in [0, 1] {
        play.mend(Node::Replica(replica), Node::Replica(2));
        play.mend(Node::Replica(2), Node::Replica(replica));
    }
    play.break_connection(writer, 1);
    play.run(280 * MILLI);
    play.isolate(1);
    play.run(100 * MILLI);
    play.crash(1);
    play.run(VIEW_CHANGE);
    play.get(reader, 1);
    play.judge()
}

/// Two keys are set at once, and the leader does not receive that; then one of them is set again and acknowledged by
/// all, and the other one is read as it was. A view change puts the two in the order of their timestamps: so the
/// last one may not be acknowledged by those who hold the first, or what was read was not there any more.
///
/// Found by seed 40032899, one of a million.
fn an_update_is_not_acknowledged_after_one_of_several_keys_that_the_leader_lacks(
    scenario: Scenario,
) -> Result<(), String> {
    let scenario = scenario.fast_quorum(FastQuorum::Supermajority).unhurried();
    let mut play = scenario.start();
    let (both, one) = (play.client(), play.client());
    assert_eq!(play.call(one, set(2, "old")), Outcome::Done);
    play.run(2_000 * MILLI);
    play.cut_client(both, &[0]);
    play.submit(both, ClientCommand::MSet(vec![(1, b"new".to_vec()), (2, b"new".to_vec())]));
    play.run(5 * MILLI);
    assert_eq!(play.call(one, set(1, "later")), Outcome::Done);
    assert_eq!(play.get(one, 2), Some(b"old".to_vec()));
    play.crash(0);
    play.run(VIEW_CHANGE);
    play.get(one, 1);
    play.get(one, 2);
    play.judge()
}

/// Two keys are set at once, through the log; before that is committed, one of them is deleted. If the leader
/// vouched for the deletion at once, whoever sees the key gone knows that both had been set: but a quorum
/// of followers knows nothing of the other one yet.
///
/// Found by seed 10210 of the first generator with such reads. The papers have no updates of several keys.
fn an_update_does_not_complete_one_of_several_keys_before_it(scenario: Scenario) -> Result<(), String> {
    let mut play = scenario.start();
    let (both, one) = (play.client(), play.client());
    let reader = play.reader(ReadPolicy::Quorum);
    assert_eq!(play.call(both, set(2, "old")), Outcome::Done);
    play.run(100 * MILLI);
    // The leader's Prepares take long, and the reader hears of no leader.
    [1, 2].iter().for_each(|follower| {
        play.set_delay(Node::Replica(0), Node::Replica(*follower), 40 * MILLI);
    });
    play.cut(Node::Client(reader), Node::Replica(0));
    play.submit(both, ClientCommand::MSet(vec![(1, b"new".to_vec()), (2, b"new".to_vec())]));
    play.run(2 * D);
    play.submit(one, ClientCommand::Del { key: 1, blind: true });
    play.run(3 * D);
    let read = play.submit(reader, ClientCommand::Get(2));
    play.run(10 * D);
    play.mend(Node::Client(reader), Node::Replica(0));
    play.finish(read);
    let other = play.client();
    play.get(other, 1);
    play.judge()
}

/// Two views that nobody but their leaders has begun give one completed update two places in the log: entry 2 of view 1
/// is abandoned, and in view 2, whose log begins with ten entries more, it is entry 12. A reader that was told in view 1
/// to wait for entry 2 asks the same replica, which has joined view 2 and executes it bit by bit: it has executed
/// entry 2 of *that* log, and the update is still to come.
fn a_reread_counts_only_in_the_view_that_named_its_entry(scenario: Scenario) -> Result<(), String> {
    let slowly = |swarm: &mut Swarm| {
        swarm.protocol.replica.order_delay = Duration::from_secs(2);
        swarm.protocol.sync_after = Duration::from_secs(4);
        swarm.protocol.client_resend = Duration::from_secs(4);
        swarm.disk_engine = Some(DiskEngineSettings {
            lanes: 1,
            apply_ahead: 1,
            step_delay: 20 * MILLI,
            steps_max: 1,
            readers_one_in: 1,
            report_delay: 0,
            flush_delay: 0,
            refused_percent: 0,
        });
    };
    let mut play = scenario.with(slowly).start();
    let (writer, other) = (play.client(), play.client());
    let reader = play.reader(ReadPolicy::Quorum);
    assert_eq!(play.call(writer, set(1, "old")), Outcome::Done);
    assert_eq!(play.get(writer, 1), Some(b"old".to_vec()));
    play.run(3_000 * MILLI);
    let old = play.status(0).op_number;
    // The reader reaches replicas 1, 2, and 3; it takes long to hear of the last two.
    for replica in [0, 4] {
        play.cut(Node::Client(reader), Node::Replica(replica));
        play.break_connection(reader, replica);
    }
    for replica in [2, 3] {
        play.set_delay(Node::Replica(replica), Node::Client(reader), 400 * MILLI);
    }
    // Replica 0 orders ten updates that only replica 4 gets, and completes one more with replicas 1 and 4.
    for follower in [1, 2, 3] {
        cut_both(&mut play, 0, &[follower]);
    }
    for _ in 0..10 {
        play.submit(other, ClientCommand::IncrBy { key: 2, delta: 1, blind: false });
    }
    [2, 3].iter().for_each(|replica| play.cut(Node::Client(writer), Node::Replica(*replica)));
    assert_eq!(play.call(writer, set(1, "new")), Outcome::Done);
    // Now somebody reads. Replica 1 does not get the question before it leads.
    play.cut(Node::Client(reader), Node::Replica(1));
    let (read, asked_at) = (play.submit(reader, ClientCommand::Get(1)), play.now());
    play.until("replica 1 moves to view 1", |play| role(play, 1) == (1, RoleName::ViewChange));
    [2, 3, 4].iter().for_each(|replica| play.cut(Node::Replica(1), Node::Replica(*replica)));
    play.until("replica 1 leads view 1", |play| role(play, 1) == (1, RoleName::Leader));
    assert_eq!(play.status(1).op_number, old + 1, "the update is recovered as the next entry");
    cut_both(&mut play, 1, &[2, 3, 4]);
    play.mend(Node::Client(reader), Node::Replica(1));
    // The reader hears of view 1 from replica 1 and asks anew; then it gets what the others said in view 0, no more.
    [2, 3].iter().for_each(|replica| play.cut(Node::Replica(*replica), Node::Client(reader)));
    play.submit(reader, ClientCommand::Get(3));
    play.run(10 * MILLI);
    play.set_delay(Node::Client(reader), Node::Replica(1), 1_500 * MILLI);
    // Replica 4 loses touch with replica 0, too. With 2 and 3 it makes view 2, and its log is the longest.
    cut_both(&mut play, 0, &[4]);
    play.until("replica 2 leads view 2", |play| role(play, 2) == (2, RoleName::Leader));
    assert_eq!(play.status(2).op_number, old + 11);
    play.until("replica 2 has executed it", |play| play.status(2).applied == old + 11);
    // It takes replica 1 along just before the reader's second question arrives there.
    play.run(asked_at + 1_850 * MILLI - play.now());
    play.mend(Node::Replica(2), Node::Replica(1));
    play.mend(Node::Replica(1), Node::Replica(2));
    play.until("replica 1 follows", |play| role(play, 1) == (2, RoleName::Follower));
    play.run(2_000 * MILLI);
    play.mend_all();
    play.finish(read);
    play.judge()
}

/// Somebody uses a session's next id before its owner does. The owner would be told `Ok` for an update that is never
/// executed.
fn a_stranger_cannot_use_the_session_of_another(scenario: Scenario) -> Result<(), String> {
    let mut play = scenario.start();
    let (writer, reader) = (play.client(), play.client());
    assert_eq!(play.call(writer, ClientCommand::Set(1, b"old".to_vec())), Outcome::Done);
    play.run(200 * MILLI);
    let last = last_id(&mut play);
    let id = OperationId { sequence: last.sequence + 1, ..last };
    let body = encode(&[ClientCommand::Set(2, b"stolen".to_vec())]);
    for replica in 0..3 {
        let request = Request { id, micros: 1, acked_below: last.sequence, body: body.clone().into() };
        let (view, path, recipients) = (View(0), Path::Durability, ReplicaSet::ALL);
        play.world().intrude(0, replica, Message::Request { view, path, recipients, request });
    }
    play.run(200 * MILLI);
    assert_eq!(play.call(writer, ClientCommand::Set(1, b"new".to_vec())), Outcome::Done);
    play.get(reader, 1);
    play.judge()
}
