//! Distance, in virtual time: what protocols cost where replicas and clients are far from each other.

use syros_experiment::{Cost, Distribution, Row};
use syros_regions::Regions;
use syros_sim::geo::Geo;
use syros_sim::scenario::DELAY as D;
use syros_sim::workload::ClientCommand;
use syros_sim::{Node, Scenario};
use syros_types::FastQuorum::Supermajority;

fn regions(name: &str) -> Regions {
    Regions::parse(Regions::shipped_text(name).expect("it is shipped")).expect("it can be read")
}

const ZIPFIAN: Distribution = Distribution::Zipfian { skew: 0.99 };

fn measure(name: &str, protocol: &str, mix: &str, distribution: Distribution) -> Vec<Row> {
    let regions = regions(name);
    let geo = Geo {
        regions: &regions,
        protocol: protocol.parse().expect("there is such a protocol"),
        blend: mix.parse().expect("there is such a mix"),
        choice: distribution.into(),
        keys: 100_000,
        clients: 2,
        operations: 2_000,
        history_bytes_max: None,
        cost: Cost::NONE,
        failed: 0,
        seed: 1,
    };
    geo.run().unwrap_or_else(|problem| panic!("{name} {protocol} {mix} {distribution}: {problem}"))
}

/// Mean latency over all regions, in microseconds.
fn mean(rows: &[Row]) -> f64 {
    assert!(rows.iter().all(|row| row.failed == 0));
    let count: u64 = rows.iter().map(|row| row.all().count()).sum();
    let sum: f64 = rows.iter().map(|row| row.all().mean_us() * row.all().count() as f64).sum();
    sum / count as f64
}

#[test]
fn a_far_leader_is_waited_for_by_writes_only() {
    // The Syros paper (7.1) reports half the latency of Skyros; these are the shares aimed at.
    for (mix, share) in [("a", 0.55), ("b", 0.15), ("c", 0.05)] {
        let of = |protocol| mean(&measure("far-leader", protocol, mix, Distribution::Uniform));
        let (skyros, default) = (of("skyros"), of("default"));
        assert!((skyros - 96_870.0).abs() < 0.1, "one round trip to Paris, not {skyros} us");
        assert!(default <= share * skyros, "{mix}: {default} us is more than {share} of {skyros} us");
    }
}

#[test]
fn what_each_protocol_costs_with_a_far_leader_is_exact() {
    let (far, near) = (96_870.0, 200.0);
    for (protocol, read, write) in [
        ("vr", far, 2.0 * far),
        ("pqr", near, 2.0 * far),
        ("skyros", far, far),
        ("syros", near, far),
        ("ionia", far, far),
        ("default", near, far),
    ] {
        let rows = measure("far-leader", protocol, "a", Distribution::Uniform);
        let (reads, writes) = (rows[0].reads.mean_us(), rows[0].writes.mean_us());
        // In 1,000 reads of 100,000 keys hardly any meets an update under way: none does with this seed.
        assert!((reads - read).abs() < 0.1 && (writes - write).abs() < 60.0, "{protocol}: {reads}, {writes}");
    }
}

#[test]
fn choosing_is_never_much_worse_than_the_best_choice() {
    for name in Regions::shipped() {
        for distribution in [Distribution::Uniform, ZIPFIAN] {
            for mix in ["a", "b"] {
                let of = |protocol| measure(name, protocol, mix, distribution);
                let fixed = ["default+leader", "default+meta", "default+quorum"].map(of);
                // What few reads of popular keys wait for is mostly chance: they count together with updates.
                let cost = |row: &Row| match distribution {
                    Distribution::Uniform | Distribution::Sequential => row.reads.mean_us(),
                    Distribution::Zipfian { .. } => row.all().mean_us(),
                };
                // Clients beside the leader ask for more than others: every region counts by itself.
                for (region, row) in of("default").iter().enumerate() {
                    let fixed = [0, 1, 2].map(|way: usize| cost(&fixed[way][region]));
                    let best = fixed.into_iter().fold(f64::INFINITY, f64::min);
                    let auto = cost(row);
                    let place = format!("{name}, {}, {mix} {distribution}", row.region);
                    assert!(auto <= 1.1 * best, "{place}: {auto:.0} us, and fixed {fixed:.0?} us");
                }
            }
        }
    }
}

#[test]
fn popular_keys_are_mostly_read_in_one_round_trip() {
    // IONIA's figure (5.5): 85 % with three replicas, half of the operations reads, zipfian 0.99.
    for row in measure("one-data-center", "default", "a", ZIPFIAN) {
        let share = row.reads_at_once as f64 / row.reads.count() as f64;
        assert!(share >= 0.85, "{share}");
    }
}

#[test]
fn jitter_does_not_stall_popular_keys() {
    // Updates overtake each other, so followers lack bodies that the leader has ordered, again and again. They
    // used to ask for the second one that was missing 50 ms after the first.
    let text = Regions::shipped_text("one-data-center").expect("it is shipped");
    let regions =
        Regions::parse(&text.replace("rtt-ms = 0.2", "rtt-ms = 0.2\njitter-ms = 0.3")).expect("as before");
    for protocol in ["skyros", "default"] {
        let geo = Geo {
            regions: &regions,
            protocol: protocol.parse().expect("there is such a protocol"),
            blend: "a".parse().expect("there is such a mix"),
            choice: Distribution::Uniform.into(),
            keys: 5,
            clients: 32,
            operations: 4_000,
            history_bytes_max: None,
            cost: Cost::NONE,
            failed: 0,
            seed: 1,
        };
        let all = geo.run().unwrap_or_else(|problem| panic!("{protocol}: {problem}"))[0].all();
        assert!(all.mean_us() < 2_000.0 && all.quantile_us(0.999) < 5_000.0, "{protocol}: {}", all.mean_us());
    }
}

#[test]
fn updates_go_to_the_leader_where_a_supermajority_is_too_far() {
    // Skyros 6: a majority around the client, two replicas of five far away.
    let mut play = Scenario::new(5).fast_quorum(Supermajority).start();
    let client = play.client();
    let far = 50 * D;
    for replica in [3, 4] {
        for near in [Node::Client(client), Node::Replica(0), Node::Replica(1), Node::Replica(2)] {
            play.set_delay(near, Node::Replica(replica), far);
            play.set_delay(Node::Replica(replica), near, far);
        }
    }
    let mut costs = Vec::new();
    for round in 0..8_u8 {
        let operation = play.submit(client, ClientCommand::Set(1, vec![b'v', round]));
        costs.push(play.finish(operation));
        play.run(200 * D);
    }
    // The first finds out, and is ordered after 20 ms; from then on the leader is asked as well, or alone: two
    // round trips nearby.
    assert_eq!(costs, [22 * D, 4 * D, 4 * D, 4 * D, 4 * D, 4 * D, 4 * D, 4 * D]);
    play.judge().expect("nothing is lost on either way");
}
