//! A member that executed something else than the others.

use super::*;

/// A follower executes something else than the others: the leader finds that out by itself, and the follower hears of it.
#[test]
fn a_member_that_executed_something_else_is_found_and_answers_no_reads() {
    const SEGMENT: u64 = 8;
    for wrong in [0, 2] {
        let mut cluster = Cluster::new(3, FastQuorum::Majority);
        for replica in &mut cluster.replicas {
            replica.config.settings.digest_entries = SEGMENT;
            replica.restart_digests(OpNumber(0));
        }
        let session = cluster.register();
        for sequence in 1..SEGMENT {
            let request = cluster.request(session, sequence, 5 + sequence, Path::Ordered, "oA1");
            cluster.send(&[0], &request);
            if sequence == 3 {
                // As if the memory of one had changed.
                let replica = &mut cluster.replicas[wrong];
                let entry = LogEntry { view: View(0), time: WallTime(9), payload: Payload::Tick };
                replica.digests.executed(OpNumber(SEGMENT + 1), &entry);
            }
            cluster.pass(30);
        }
        cluster.pass(100);
        let diverged: Vec<bool> = cluster.replicas.iter().map(|replica| replica.status().diverged).collect();
        assert_eq!(diverged, [wrong == 0, false, wrong == 2]);
        assert_eq!(cluster.replicas[0].status().divergences, 1);
        cluster.inbox.clear();
        let asked = Asked::StaleValue;
        let read = Message::Read { view: View(0), number: 1, asked, body: Body::from(*b"rA") };
        cluster.reads.clear();
        cluster.send(&[0, 1, 2], &read);
        let readers: Vec<usize> = cluster.reads.iter().map(|(replica, _)| *replica).collect();
        assert_eq!(readers, (0..3).filter(|replica| *replica != wrong).collect::<Vec<_>>());
        // One that leads does not for long.
        cluster.pass(2_000);
        assert!(cluster.leader() != wrong || wrong != 0);
        // The next segment is right again, and changes nothing of that; another's snapshot would.
        assert!(cluster.replicas[wrong].status().diverged);
        cluster.replicas[wrong].restart_digests(OpNumber(SEGMENT));
        assert!(!cluster.replicas[wrong].status().diverged);
    }
}
