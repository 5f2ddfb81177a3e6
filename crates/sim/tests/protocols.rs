//! What every protocol costs, exactly, in round trips of virtual time: without faults, every link one [`D`] long, and
//! nothing else takes time.

use syros_protocol::client::Outcome;
use syros_protocol::replica::{Durability, PlantedBug};
use syros_sim::scenario::DELAY as D;
use syros_sim::swarm::{DiskEngineSettings, MILLI};
use syros_sim::workload::ClientCommand;
use syros_sim::{Node, Play, Scenario};
use syros_types::{FastQuorum, Protocol, WritePolicy};

/// A round trip.
const TRIP: u64 = 2 * D;

fn protocol(name: &str) -> Protocol {
    name.parse().unwrap()
}

fn scenario(name: &str, replicas: usize) -> Scenario {
    let scenario = Scenario::new(replicas).durability(Durability::Replicated);
    scenario.with(|swarm| swarm.follow(&protocol(name)))
}

fn set(key: u64) -> ClientCommand {
    ClientCommand::Set(key, b"1".to_vec())
}

fn increment(key: u64, blind: bool) -> ClientCommand {
    ClientCommand::IncrBy { key, delta: 1, blind }
}

/// Round trips of an operation.
fn trips(play: &mut Play, client: usize, step: ClientCommand) -> u64 {
    let operation = play.submit(client, step);
    let took = play.finish(operation);
    assert_eq!(took % TRIP, 0, "{took}");
    took / TRIP
}

/// Round trips of two operations, the second asked for as soon as the first has ended.
fn both(play: &mut Play, client: usize, first: ClientCommand, second: ClientCommand) -> [u64; 2] {
    [trips(play, client, first), trips(play, client, second)]
}

/// Name; overwrite, merge, update that returns state, read; then two overwrites, an overwrite and an update that
/// returns state, and two of those on one key, one after the other.
type Cost = (&'static str, [u64; 4], [[u64; 2]; 3]);

const COSTS: [Cost; 13] = [
    ("unreplicated", [1, 1, 1, 1], [[1, 1], [1, 1], [1, 1]]),
    ("vr-nobatch", [2, 2, 2, 1], [[2, 2], [2, 2], [2, 2]]),
    ("vr", [2, 2, 2, 1], [[2, 2], [2, 2], [2, 2]]),
    ("vr-pe", [2, 2, 2, 1], [[2, 2], [2, 2], [2, 2]]),
    ("pqr", [2, 2, 2, 1], [[2, 2], [2, 2], [2, 2]]),
    ("skyros", [1, 1, 2, 1], [[1, 1], [1, 2], [2, 2]]),
    // What follows an update in the same key's footsteps is not alone there: the leader orders it.
    ("skyros-comm", [1, 1, 1, 1], [[1, 1], [1, 2], [1, 2]]),
    ("curp-c", [1, 1, 1, 1], [[1, 2], [1, 2], [1, 2]]),
    ("syros", [1, 1, 2, 1], [[1, 1], [1, 2], [2, 2]]),
    ("ionia-lr", [1, 1, 2, 1], [[1, 1], [1, 2], [2, 2]]),
    ("ionia", [1, 1, 2, 1], [[1, 1], [1, 2], [2, 2]]),
    ("majority", [1, 2, 2, 1], [[1, 1], [1, 2], [2, 2]]),
    ("default", [1, 1, 1, 1], [[1, 1], [1, 2], [1, 2]]),
];

#[test]
fn every_protocol_costs_what_it_should() {
    assert_eq!(COSTS.map(|(name, ..)| name), Protocol::ALL.map(|protocol| protocol.name));
    for (name, alone, together) in COSTS {
        for replicas in [3, 5, 7, 9] {
            let mut play = scenario(name, replicas).start();
            let client = play.client();
            // Different keys; each operation ends before the next begins.
            let steps = [set(1), increment(2, true), increment(3, false), ClientCommand::Get(4)];
            assert_eq!(steps.map(|step| trips(&mut play, client, step)), alone, "{name}, n={replicas}");
            play.run(200 * MILLI);
            let pairs =
                [(set(5), set(5)), (set(6), increment(6, false)), (increment(7, false), increment(7, false))];
            let costs = pairs.map(|(first, second)| both(&mut play, client, first, second));
            assert_eq!(costs, together, "{name}, n={replicas}");
            play.judge().unwrap();
        }
    }
}

/// One replica stops. At first whoever waits for it learns that it is away; when the leader leaves it out everything takes
/// one round trip again, and does so still when it has come back.
#[test]
fn with_a_replica_stopped_everything_takes_one_round_trip_again() {
    for replicas in [3, 5] {
        let mut play = scenario("default", replicas).start();
        let client = play.client();
        let each = |play: &mut Play, keys: u64| {
            // With this one a client that has done nothing for a while learns of the view, and who is active in it.
            play.call(client, increment(keys + 3, false));
            let steps = [set(keys), increment(keys + 1, true), increment(keys + 2, false)];
            let steps = steps.map(|step| trips(play, client, step));
            play.run(200 * MILLI);
            steps
        };
        assert_eq!(each(&mut play, 10), [1, 1, 1]);
        let leader = play.leader();
        let other = (leader + 1) % replicas;
        play.crash(other);
        // The connection is gone, so that nobody waits for it.
        assert_eq!(each(&mut play, 20), [1, 2, 2], "n={replicas}");
        play.run(3_000 * MILLI);
        assert_eq!(play.leader(), leader);
        assert_eq!(each(&mut play, 30), [1, 1, 1], "n={replicas}: it is left out");
        play.restart(other);
        play.run(5_000 * MILLI);
        assert_eq!(each(&mut play, 40), [1, 1, 1], "n={replicas}: it is back");
        play.crash(leader);
        play.run(3_000 * MILLI);
        play.call(client, set(1));
        assert_eq!(
            each(&mut play, 50),
            [1, 1, 1],
            "n={replicas}: another one leads, and leaves out the first"
        );
        play.judge().unwrap();
    }
}

/// A replica that is far from all is waited for at first, or the leader is asked; when the leader leaves it out everything takes
/// one round trip among the near, and it is taken back when it is near again.
#[test]
fn with_a_replica_far_away_everything_takes_one_round_trip_again() {
    for (replicas, bug) in [(3, None), (5, None), (3, Some(PlantedBug::SlowStaysActive))] {
        let scenario =
            scenario("default", replicas).with(|swarm| swarm.workload.write_policy = Some(WritePolicy::Fast));
        let mut play = match bug {
            Some(bug) => scenario.plant(bug).start(),
            None => scenario.start(),
        };
        let client = play.client();
        let each = |play: &mut Play, keys: u64| {
            play.call(client, increment(keys + 3, false));
            let steps = [set(keys), increment(keys + 1, true), increment(keys + 2, false)];
            let steps = steps.map(|step| {
                let operation = play.submit(client, step);
                play.finish(operation)
            });
            play.run(200 * MILLI);
            steps
        };
        assert_eq!(each(&mut play, 10), [TRIP; 3]);
        let leader = play.leader();
        let far = (leader + 1) % replicas;
        let move_away = |play: &mut Play, delay: u64| {
            let others = (0..replicas).filter(|other| *other != far).map(Node::Replica);
            for other in others.chain([Node::Client(client)]) {
                play.set_delay(Node::Replica(far), other, delay);
                play.set_delay(other, Node::Replica(far), delay);
            }
        };
        move_away(&mut play, 10 * D);
        let [overwrite, merge, update] = each(&mut play, 20);
        assert_eq!(overwrite, TRIP, "n={replicas}: a majority is near");
        assert!(merge > TRIP && update > TRIP, "n={replicas}: {merge}, {update}");
        play.run(3_000 * MILLI);
        assert_eq!(play.leader(), leader);
        // Who waits for it in vain asks the leader after a while.
        let expected = if bug.is_some() { [TRIP, 2 * TRIP, 2 * TRIP] } else { [TRIP; 3] };
        assert_eq!(each(&mut play, 30), expected, "n={replicas}: it is left out");
        move_away(&mut play, D);
        play.run(5_000 * MILLI);
        assert_eq!(each(&mut play, 40), [TRIP; 3], "n={replicas}: it is back");
        play.judge().unwrap();
    }
}

/// Where one member is far and another one comes and goes, the far one stays: nobody is taken back early for its sake, and view
/// changes do not go on for ever. A member that dies just when another one gets slow is left out.
#[test]
fn a_slow_member_is_better_than_one_that_comes_and_goes() {
    for pause in [0, 5, 10, 15, 20, 25] {
        let mut play = scenario("default", 3).durability(Durability::Fsync).start();
        let client = play.client();
        let (near, far) = (1, 2);
        for other in [Node::Replica(0), Node::Replica(near), Node::Client(client)] {
            play.set_delay(Node::Replica(far), other, 10 * D);
            play.set_delay(other, Node::Replica(far), 10 * D);
        }
        play.run(pause * MILLI);
        play.crash(near);
        play.run(3_000 * MILLI);
        assert_eq!(play.leader(), 0);
        let active = play.world().active_members(0);
        assert_eq!(active, [0, far], "{pause} ms: the dead one is left out, the slow one is needed");
        let before = play.status(0).view;
        for _ in 0..20 {
            play.restart(near);
            play.run(1_200 * MILLI);
            play.crash(near);
            play.run(1_200 * MILLI);
        }
        let changes = (play.status(play.leader()).view - before) / 3;
        assert!(changes <= 8, "{pause} ms: {changes} view changes in 48 s");
        play.restart(near);
        play.run(1_000 * MILLI);
        play.judge().unwrap();
    }
}

/// A client that has only ever had the leader order its updates is told that they may be fast, and one whose updates are fast
/// no longer that they may not; the mode outlives leaders, and the restart of everybody.
#[test]
fn the_mode_of_a_running_group_is_changed() {
    for replicas in [3, 5] {
        let mut play = scenario("majority", replicas).durability(Durability::Fsync).start();
        let client = play.client();
        let cost = |play: &mut Play, key| {
            // With this one it learns of the view, and of its mode.
            play.call(client, increment(key, false));
            let trips = trips(play, client, increment(key + 1, false));
            play.run(200 * MILLI);
            trips
        };
        assert_eq!(cost(&mut play, 10), 2);
        let leader = play.leader();
        play.change_mode(leader, FastQuorum::Mixed);
        play.run(200 * MILLI);
        assert_eq!(play.leader(), leader);
        assert_eq!(cost(&mut play, 20), 1, "n={replicas}");
        play.crash(leader);
        play.run(4_000 * MILLI);
        assert_eq!(cost(&mut play, 30), 1, "n={replicas}: another one leads");
        for other in (0..replicas).filter(|other| *other != leader) {
            play.crash(other);
        }
        (0..replicas).for_each(|replica| play.restart(replica));
        play.run(6_000 * MILLI);
        play.call(client, set(1));
        assert_eq!(cost(&mut play, 40), 1, "n={replicas}: all have started again");
        let leader = play.leader();
        play.change_mode(leader, FastQuorum::Majority);
        play.run(200 * MILLI);
        assert_eq!(cost(&mut play, 50), 2, "n={replicas}");
        play.judge().unwrap();
    }
}

#[test]
fn what_commutes_is_answered_with_what_it_returns() {
    for name in ["skyros-comm", "curp-c", "default"] {
        let mut play = scenario(name, 5).start();
        let (one, other) = (play.client(), play.client());
        for (number, client) in [one, other, one].into_iter().enumerate() {
            let Outcome::Reply(reply) = play.call(client, increment(1, false)) else { panic!("no reply") };
            assert_eq!(play.get(client, 1), Some((number + 1).to_string().into_bytes()), "{reply:?}");
            play.run(100 * MILLI);
            // Nothing is pending: one round trip.
            assert_eq!(trips(&mut play, client, ClientCommand::GetSet(2, b"7".to_vec())), 1, "{name}");
            play.run(100 * MILLI);
        }
        play.judge().unwrap();
    }
}

/// Two operations meet at some followers, not at the leader: the client hears of it and asks the leader.
#[test]
fn a_conflict_at_followers_alone_takes_three() {
    // The leader has not ordered the second one yet when it is asked to, or has, and sent the followers its id.
    for (order_delay, pause) in [(10 * D, 10 * D + D / 2), (D / 2, D)] {
        for name in ["skyros-comm", "curp-c"] {
            let order_delay = core::time::Duration::from_nanos(order_delay);
            let mut play =
                scenario(name, 3).with(|swarm| swarm.protocol.replica.order_delay = order_delay).start();
            let client = play.client();
            assert_eq!(trips(&mut play, client, increment(1, false)), 1);
            // It is ordered, committed and executed at the leader; followers hear of that a little later.
            play.run(pause);
            assert_eq!(trips(&mut play, client, increment(1, false)), 3, "{name}, {order_delay:?}");
            play.judge().unwrap();
        }
    }
}

#[test]
fn what_depends_on_a_key_that_expires_is_executed_first() {
    for name in ["skyros-comm", "curp-c", "default"] {
        let mut play = scenario(name, 3).start();
        let client = play.client();
        play.call(client, ClientCommand::SetFor(2, b"1".to_vec(), 60_000));
        play.run(200 * MILLI);
        // The leader cannot promise what it returns, so it orders it when it knows.
        assert_eq!(trips(&mut play, client, increment(2, false)), 2, "{name}");
        assert_eq!(play.get(client, 2), Some(b"2".to_vec()));
    }
}

/// The leader is asked again, over a new connection, for an update that its engine has executed meanwhile, and that
/// is still on its way to far followers. It must not say what the update would return if it were executed once more.
#[test]
fn what_an_update_returns_is_evaluated_once() {
    let play = |bug: Option<PlantedBug>| {
        let scenario = Scenario::new(5).durability(Durability::Replicated).with(|swarm| {
            swarm.fast_quorum = FastQuorum::NilextOrCommutative;
            swarm.disk_engine = Some(DiskEngineSettings {
                lanes: 1,
                apply_ahead: 1_000,
                step_delay: 20 * MILLI,
                steps_max: 1,
                readers_one_in: 2,
                report_delay: 0,
                flush_delay: 0,
                refused_percent: 0,
            });
            swarm.protocol.client_reconnect = core::time::Duration::from_millis(3);
            swarm.protocol.sync_after = core::time::Duration::from_secs(4);
        });
        let scenario = match bug {
            Some(bug) => scenario.plant(bug),
            None => scenario,
        };
        let mut play = scenario.start();
        let client = play.client();
        play.run(1_000 * MILLI);
        for far in [3, 4] {
            play.set_delay(Node::Client(client), Node::Replica(far), 60 * MILLI);
        }
        let operation = play.submit(client, increment(1, false));
        play.run(5 * D);
        play.break_connection(client, 0);
        play.finish(operation);
        play.judge()
    };
    assert_eq!(play(None), Ok(()));
    let shown = play(Some(PlantedBug::EvaluatedAgain));
    assert!(shown.as_ref().is_err_and(|problem| problem.contains("linearizable")), "{shown:?}");
}
