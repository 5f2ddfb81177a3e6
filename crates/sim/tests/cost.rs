//! Workloads and costs in virtual time: what arithmetic says of them.

use core::time::Duration;
use syros_experiment::{Cost, Measured, VirtualRun};
use syros_regions::Regions;
use syros_sim::geo::Geo;

fn together(replicas: usize, rtt_ms: f64) -> Regions {
    let replicas = vec!["'here'"; replicas].join(", ");
    let text = format!(
        "replicas = [{replicas}]\nclients = ['here']\n[[line]]\nwithin-each = true\nrtt-ms = {rtt_ms}\n"
    );
    Regions::parse(&text).expect("it is well formed")
}

/// A protocol of some replicas under a load of so many clients.
fn measure(
    (protocol, regions): (&str, &Regions),
    workload: &str,
    distribution: &str,
    clients: usize,
    cost: &str,
) -> VirtualRun {
    geo((protocol, regions), workload, distribution, clients, cost)
        .measure()
        .unwrap_or_else(|problem| panic!("{protocol} {workload} {distribution} {cost}: {problem}"))
}

fn geo<'a>(
    (protocol, regions): (&str, &'a Regions),
    workload: &str,
    distribution: &str,
    clients: usize,
    cost: &str,
) -> Geo<'a> {
    Geo {
        regions,
        protocol: protocol.parse().expect("there is such a protocol"),
        blend: workload.parse().expect("there is such a workload"),
        choice: distribution.parse().expect("there is such a distribution"),
        keys: 1_000,
        clients,
        operations: 2_000,
        history_bytes_max: None,
        cost: cost.parse().expect("it is a cost"),
        failed: 0,
        seed: 1,
    }
}

fn mean_us(run: &VirtualRun) -> f64 {
    run.rows[0].all().mean_us()
}

fn per_second(run: &VirtualRun) -> f64 {
    run.ended as f64 / run.time.as_secs_f64()
}

/// Every operation is taken and answered: four microseconds each time, of one thread.
#[test]
fn throughput_has_the_peak_that_arithmetic_says() {
    let alone = together(1, 0.0);
    let cost = "receive=4us,send=4us";
    for clients in [1, 10, 100] {
        let run = measure(("unreplicated", &alone), "nilext", "uniform", clients, cost);
        let operations = per_second(&run);
        assert!((operations - 125_000.0).abs() < 1_250.0, "{clients} clients: {operations} a second");
        let busy = run.busy[0].as_secs_f64() / run.time.as_secs_f64();
        assert!(busy > 0.98, "{clients} clients: {busy}");
    }
    // With distance, one client waits 100 microseconds in each direction; many keep the replica busy. All begin at one moment
    // and stay together, so that the replica waits for a moment once in each round of theirs.
    let (near, nearer) = (together(1, 0.2), together(1, 0.05));
    let (one, many) = (
        measure(("unreplicated", &near), "nilext", "uniform", 1, cost),
        measure(("unreplicated", &nearer), "nilext", "uniform", 200, cost),
    );
    assert!((mean_us(&one) - 208.0).abs() < 0.1, "{}", mean_us(&one));
    assert!((per_second(&many) - 125_000.0).abs() < 2_500.0, "{}", per_second(&many));
}

#[test]
fn each_part_of_the_cost_is_taken_where_it_belongs() {
    let three = together(3, 0.2);
    let of = |protocol, workload, cost| mean_us(&measure((protocol, &three), workload, "uniform", 1, cost));
    for (protocol, workload, cost, expected) in [
        // To the replica and back.
        ("vr", "c", "receive=3us", 203.0),
        ("vr", "c", "send=3us", 203.0),
        ("vr", "c", "entry=3us", 203.0),
        ("vr", "c", "execute=3us", 203.0),
        // The leader receives the request, followers the entry, the leader from both that they have it, in one turn.
        ("vr-nobatch", "nilext", "receive=3us", 412.0),
        // The leader sends the first follower the entry, that one sends that it has it, the leader the answer.
        ("vr-nobatch", "nilext", "send=3us", 409.0),
        // The leader takes the request and sends it to the first follower, which takes it.
        ("vr-nobatch", "nilext", "entry=3us", 409.0),
    ] {
        let mean = of(protocol, workload, cost);
        assert!((mean - expected).abs() < 1.0, "{protocol} {workload} {cost}: {mean}, not {expected}");
    }
}

#[test]
fn without_cost_nothing_but_distance_takes_time() {
    let five = together(5, 0.2);
    for (protocol, workload, expected) in
        [("vr", "nilext", 400.0), ("skyros", "nilext", 200.0), ("vr", "c", 200.0), ("vr", "f", 400.0)]
    {
        let run = measure((protocol, &five), workload, "uniform", 10, "none");
        let reads_only = if workload == "f" { 200.0 * 0.5 + 600.0 * 0.5 } else { expected };
        let mean = mean_us(&run);
        assert!((mean - reads_only).abs() < 12.0, "{protocol} {workload}: {mean}");
        assert!(run.busy.iter().all(|busy| *busy == Duration::ZERO));
        let again = measure((protocol, &five), workload, "uniform", 10, &Cost::NONE.to_string());
        assert_eq!(run.trace_hash, again.trace_hash, "{protocol} {workload}");
        // The smallest cost makes another history.
        let other = measure((protocol, &five), workload, "uniform", 10, "receive=0.001us");
        assert_ne!(run.trace_hash, other.trace_hash, "{protocol} {workload}");
    }
}

/// Wherever cores or distance are the limit, operations of `writes = auto` and `reads = auto` take no more than 1.1 times as
/// long as with the best of the fixed ways. The leader needs seconds to find out which that is, and tries again every ten seconds.
#[test]
fn choosing_a_way_is_never_much_worse_than_the_best_one() {
    // A slow machine: little has to happen for it to be busy.
    let of_its_own = "receive=40us,send=40us,entry=20us,execute=4us";
    let shared = "receive=40us,send=40us,entry=20us,execute=4us,cores=2";
    let to_write = ["default+writes=fast", "default+writes=leader"];
    // (Reads by a member and the leader's word are never the best.)
    let to_read_and_write =
        ["default+leader+writes=fast", "default+leader+writes=leader", "default+quorum+writes=leader"];
    for (workload, ways, numbers, operations) in
        [("nilext", &to_write[..], &[1, 10, 50][..], 20_000), ("a", &to_read_and_write, &[10, 50], 40_000)]
    {
        // Places where one of them is clearly better than another one.
        let mut better = vec![0; ways.len()];
        for (replicas, rtt_ms) in [(3, 0.2), (5, 0.2), (3, 4.0)] {
            let regions = together(replicas, rtt_ms);
            for cost in [of_its_own, shared] {
                for clients in numbers.iter().copied() {
                    let of = |protocol: &&str| {
                        let geo = geo((protocol, &regions), workload, "uniform", clients, cost);
                        let run = Geo { operations, ..geo }.measure();
                        mean_us(&run.unwrap_or_else(|problem| panic!("{protocol} {cost}: {problem}")))
                    };
                    let fixed: Vec<f64> = ways.iter().map(of).collect();
                    let auto = of(&"default");
                    let place =
                        format!("{workload}, {replicas} replicas, {rtt_ms} ms, {clients} clients, {cost}");
                    println!("{place}: {auto:.0} us, and fixed {fixed:.0?} us");
                    let best = fixed.iter().copied().fold(f64::INFINITY, f64::min);
                    let worst = fixed.iter().copied().fold(0.0, f64::max);
                    // Three replicas near each other, each with a core to itself: only reads that do not involve the leader
                    // relieve it, and none of them is clearly sooner than its own.
                    let is_hard = (workload, replicas, rtt_ms, clients) == ("a", 3, 0.2, 50);
                    let most = if is_hard { 1.2 } else { 1.1 };
                    assert!(auto <= most * best, "{place}: {auto:.0} us, and fixed {fixed:.0?} us");
                    for (count, mean) in better.iter_mut().zip(&fixed) {
                        *count += usize::from(mean * 1.2 < worst);
                    }
                }
            }
        }
        let is_choice = better.iter().filter(|count| **count >= 2).count() >= 2;
        assert!(is_choice, "{workload}: {better:?}: there is something to find out");
    }
}

/// Each is judged: a wrong answer is an error of the run.
#[test]
fn every_workload_and_distribution_runs_and_is_linearizable() {
    let three = together(3, 0.2);
    for workload in ["load", "a", "d", "e", "f", "mix:45/45/10", "record-append", "record-append:3"] {
        for (protocol, cost) in
            [("vr", "none"), ("skyros-comm", "none"), ("curp-c", "none"), ("default", "measured")]
        {
            let run = measure((protocol, &three), workload, "latest", 10, cost);
            let row = &run.rows[0];
            assert_eq!((row.all().count(), row.failed), (2_000, 0), "{protocol} {workload}");
            // Operations and their requests; of some that were under way when the measurement began only the second.
            let counted: u64 = row.kinds.values().map(Measured::count).sum();
            let expected = 4_000 + row.pairs.count();
            assert!(
                (expected - 10..=expected).contains(&counted),
                "{protocol} {workload}: {counted}, {expected}"
            );
        }
    }
    for distribution in ["uniform", "sequential", "zipfian", "latest", "hotspot"] {
        let run = measure(("skyros", &three), "a", distribution, 10, "measured");
        assert_eq!(run.rows[0].all().count(), 2_000, "{distribution}");
    }
}
