//! View changes whose messages take longer than anything else: durability logs that are full, and links that are slow.

use core::time::Duration;
use syros_protocol::client::Outcome;
use syros_sim::swarm::MILLI;
use syros_sim::workload::ClientCommand;
use syros_sim::{Node, Play, Scenario};

/// Values that only durability logs hold.
const VALUES: u64 = 32;

/// A group whose durability logs hold [`VALUES`] of so many bytes, and whose replicas take `millis` to send each other all
/// of them.
fn full_logs(replicas: usize, value: usize, millis: u64) -> (Play, usize) {
    let unhurried = |swarm: &mut syros_sim::Swarm| {
        swarm.protocol.replica.order_delay = Duration::from_secs(30);
        swarm.protocol.replica.forward_after = Duration::from_secs(60);
        swarm.protocol.give_up_after = Duration::from_secs(60);
    };
    let mut play = Scenario::new(replicas).with(unhurried).start();
    let writer = play.client();
    for key in 0..VALUES {
        assert_eq!(play.call(writer, ClientCommand::Set(1_000 + key, vec![b'x'; value])), Outcome::Done);
    }
    let bytes_per_second = VALUES * value as u64 * 1_000 / millis;
    for one in 0..replicas {
        for other in 0..one {
            play.set_bandwidth(Node::Replica(one), Node::Replica(other), bytes_per_second);
        }
    }
    (play, writer)
}

/// Time-outs grow by what messages take that hold durability logs whole, and such a message is not sent again while it is
/// on its way. Before, 1 MiB at 400 ms a message, or any more, kept the group from ever having a leader again.
#[test]
fn a_view_change_with_full_durability_logs_comes_to_an_end() {
    const MIB: usize = 1 << 20;
    for (replicas, value, millis, most_millis) in
        // 1 MiB at 20 Mbit/s; 32 MiB at 1 Gbit/s and at 100 Mbit/s.
        [
            (3, MIB / 32, 400, 30_000),
            (5, MIB / 32, 400, 30_000),
            (5, MIB, 270, 2_000),
            (3, MIB, 2_700, 50_000),
        ]
    {
        let (mut play, writer) = full_logs(replicas, value, millis);
        play.crash(0);
        let begun = play.now();
        let write = play.submit(writer, ClientCommand::Set(1, b"after".to_vec()));
        while play.outcome(write).is_none() && play.now() - begun < most_millis * MILLI {
            play.run(10 * MILLI);
        }
        let statuses = play.world().statuses();
        assert_eq!(play.outcome(write), Some(Outcome::Done), "{replicas}, {value}, {millis}: {statuses}");
    }
}
