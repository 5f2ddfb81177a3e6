//! Time, when clocks are wrong.

use super::*;

const HOUR: i64 = 3_600_000_000;

impl Cluster {
    /// Log time of the last entry, as far as it is ahead of the true time, in microseconds.
    fn log_time_ahead(&self) -> i64 {
        let last = self.replicas.iter().map(|replica| replica.log.last_time()).max().unwrap();
        last.0.cast_signed() - self.now.wall.0.cast_signed()
    }

    /// Has an entry appended now.
    fn append(&mut self) {
        let (leader, nonce) = (self.leader(), self.now.instant.0);
        let view = self.replicas[leader].view();
        // One connection registers a few sessions a second.
        let from = Peer::Client(nonce);
        self.event(leader, Event::Message { from, message: Message::Register { view, nonce } });
        self.pass(20);
    }
}

fn group(n: usize, bug: Option<PlantedBug>) -> Cluster {
    Cluster::with(n, FastQuorum::Majority, planted(bug))
}

#[test]
fn log_time_follows_no_single_clock() {
    for n in [3, 5] {
        for wrong in [HOUR, -HOUR] {
            for replica in 0..n {
                let mut cluster = group(n, None);
                cluster.now.wall.0 += 2 * HOUR as u64;
                cluster.pass(100);
                cluster.ahead[replica] = wrong;
                for _ in 0..100 {
                    cluster.append();
                    let ahead = cluster.log_time_ahead();
                    assert!((-200_000..=5_000).contains(&ahead), "{n} {wrong} {replica}: {ahead}");
                }
            }
        }
    }
}

#[test]
#[cfg(feature = "planted-bugs")]
fn with_one_clock_log_time_is_an_hour_ahead() {
    let mut cluster = group(3, Some(PlantedBug::LogTimeByOneClock));
    cluster.pass(100);
    cluster.ahead[0] = HOUR;
    cluster.append();
    assert!(cluster.log_time_ahead() > HOUR - 100_000);
}

/// What TTL answers counts from the members' time, not from the clock of the leader that answers.
#[test]
fn a_leader_counts_lifetimes_from_the_members_time() {
    for wrong in [HOUR, -HOUR] {
        let mut cluster = group(3, None);
        cluster.now.wall.0 += 2 * HOUR as u64;
        cluster.pass(100);
        cluster.append();
        cluster.ahead[0] = wrong;
        let view = cluster.replicas[0].view();
        for asked in [Asked::Answer, Asked::Value { after: OpNumber(0) }] {
            cluster.send(&[0], &Message::Read { view, number: 1, asked, body: Body::from(*b"rA") });
            assert_eq!(cluster.reads.pop(), Some((0, 1)));
            let ahead = cluster.counted_from.0.cast_signed() - cluster.now.wall.0.cast_signed();
            assert!((-200_000..=5_000).contains(&ahead), "{wrong} {asked:?}: {ahead}");
        }
    }
}

/// The next leader knows nobody's clock but from the view change; the wrong one may be among the first.
#[test]
fn a_new_leader_does_not_go_by_one_clock_either() {
    for wrong in [HOUR, -HOUR] {
        for replica in 0..3 {
            let mut cluster = group(3, None);
            cluster.now.wall.0 += 2 * HOUR as u64;
            cluster.pass(100);
            cluster.append();
            cluster.ahead[replica] = wrong;
            cluster
                .event(0, Event::Message { from: CLIENT, message: Message::HandOver { to: ReplicaId(1) } });
            cluster.pass(100);
            cluster.append();
            let ahead = cluster.log_time_ahead();
            assert!((-200_000..=5_000).contains(&ahead), "{wrong} {replica}: {ahead}");
        }
    }
}

/// Two wrong clocks among the three that a leader knows do not decide for a group of five: the other two are right.
#[test]
fn clocks_that_have_not_been_heard_count_as_right() {
    let mut cluster = group(5, None);
    cluster.pass(100);
    for (unheard, other) in [(2, 0), (2, 1), (2, 4), (3, 0), (3, 1), (3, 4)] {
        cluster.cut_between(unheard, other);
    }
    cluster.event(0, Event::Message { from: CLIENT, message: Message::HandOver { to: ReplicaId(1) } });
    cluster.pass(100);
    assert_eq!(cluster.leader(), 1);
    (cluster.ahead[0], cluster.ahead[1]) = (HOUR, 2 * HOUR);
    cluster.pass(200);
    for _ in 0..10 {
        cluster.append();
        let ahead = cluster.log_time_ahead();
        assert!((-500_000..=5_000).contains(&ahead), "{ahead}");
    }
}

#[test]
fn a_leader_whose_clock_is_off_hands_over_to_one_whose_clock_is_right() {
    for wrong in [HOUR, -HOUR] {
        let mut cluster = group(5, None);
        cluster.now.wall.0 += 2 * HOUR as u64;
        cluster.pass(25_000);
        (cluster.ahead[0], cluster.ahead[1]) = (wrong, wrong / 2);
        cluster.pass(3_000);
        assert!(cluster.leader() > 1, "{wrong}");
        let view = cluster.replicas[cluster.leader()].view();
        cluster.pass(30_000);
        assert_eq!(cluster.replicas[cluster.leader()].view(), view, "one change, and no more");
    }
}

/// They are set one after the other, within moments.
#[test]
fn clocks_that_are_set_together_are_not_complained_of() {
    for step in [HOUR, -HOUR] {
        let mut cluster = group(3, None);
        cluster.now.wall.0 += 2 * HOUR as u64;
        cluster.pass(25_000);
        for member in [0, 2, 1] {
            cluster.ahead[member] = step;
            cluster.pass(100);
        }
        cluster.pass(3_000);
        let complaints = |traced: &Vec<(usize, TraceEvent)>| {
            traced.iter().filter(|(_, event)| matches!(event, TraceEvent::WrongClock(_))).count()
        };
        assert_eq!(complaints(&cluster.traced), 0, "{:?}", cluster.traced);
        assert_eq!(cluster.leader(), 0);
        cluster.ahead[0] = 0;
        cluster.pass(3_000);
        assert_eq!(complaints(&cluster.traced), 1, "one clock is wrong, and stays so");
    }
}

/// A follower that promises less than the leader's own lease is believed no more than it promises.
#[test]
fn a_promise_lasts_as_long_as_the_follower_says() {
    for bug in [None, Some(PlantedBug::PromiseByOwnLease)] {
        let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
            if config.replica == ReplicaId(0) {
                config.settings.lease = Duration::from_secs(10);
                config.settings.suspect_after = Duration::from_secs(11);
            }
            planted(bug)(config);
        });
        cluster.register();
        cluster.cut_between(0, 1);
        cluster.cut_between(0, 2);
        cluster.pass(600);
        assert_eq!(cluster.leader(), 1);
        let (view, asked) = (View(0), Asked::Answer);
        cluster.send(&[0], &Message::Read { view, number: 1, asked, body: Body::from(*b"rA") });
        let answered = !cluster.reads.is_empty();
        assert_eq!(answered, bug.is_some() && cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}
