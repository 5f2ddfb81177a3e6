//! "IONIA: High-Performance Replication for Modern Disk-based KV Stores", Xu et al., FAST 2024. Three replicas.

use super::{
    At, Bound, CLIENTS, Figure, Load, Metric, Panel, Paper, Point, READ_SHARE, Shape, Storage, claim, value,
};
use Bound::{About, AtLeast};
use Metric::{FastReads, Mean, Throughput};

const FOUR: &[&str] = &["vr", "skyros", "ionia-lr", "ionia"];

/// Clients where the storage is the limit: enough that it is.
const MANY: usize = 64;

/// What is not as in the paper where storage is the limit.
const SLOW: &str = "Storage is emulated: a replica answers 2,000 reads a second (20,000 in virtual time), one after the \
    other, and updates cost its storage nothing. Protocols with one executing thread get as much out of such a storage as \
    those with several, so `vr` and `skyros` are not slower here, as they are in the paper. In virtual time the gain gets \
    larger the longer it is measured: reads only, three replicas, 2.18 times with 5,000 operations, 2.81 with 20,000, 2.95 \
    with 60,000.";

/// Why protocols with one executing thread are not slower.
const SERIAL: &str =
    "the emulated storage answers one read after the other whatever the protocol's threads are";

const fn figure(name: &'static str, section: &'static str, title: &'static str) -> Figure {
    super::figure(name, Paper::Ionia, section, title)
}

/// All, in the paper's order.
pub(super) fn figures() -> Vec<Figure> {
    vec![
        write_only(),
        read_only(),
        mixed(),
        read_scaling(),
        fast_reads(),
        history(),
        ycsb(),
        unreplicated(),
        failures(),
    ]
}

fn three(workload: impl Into<String>) -> Load {
    Load { replicas: 3, ..Load::of(workload) }
}

/// Where storage is the limit.
fn slow(workload: impl Into<String>) -> Load {
    Load { clients: MANY, storage: Storage::Slow, ..three(workload) }
}

fn write_only() -> Figure {
    let load = |clients: usize| Load { clients, ..three("load") };
    let panel = Panel {
        title: "Mean latency over throughput, 1 to 200 clients, inserts",
        shape: Shape::Curve,
        metrics: &[Mean],
        protocols: &["unreplicated", "vr", "vr-pe", "skyros", "ionia"],
        points: CLIENTS.map(|clients| Point::at(clients as f64, load(clients))).into(),
    };
    let ten = |protocol| value(0, protocol, At::Point("10"), Mean);
    let peak = |protocol| value(0, protocol, At::Peak, Throughput);
    let threads =
        "nothing is executed in parallel here: data is in memory, or costs the same whoever executes";
    Figure {
        statement: "IONIA closely matches the throughput and the latency of an unreplicated server. MultiPaxos and Skyros \
                    have much less throughput, as one thread executes; MultiPaxos up to 5.8 times and Paxos-PE up to \
                    6.3 times the latency.",
        panels: vec![panel],
        claims: vec![
            claim("IONIA: the latency of an unreplicated server (10 clients)", ten("ionia"), ten("unreplicated"), About(1.0)),
            claim("IONIA: the throughput of an unreplicated server", peak("ionia"), peak("unreplicated"), About(1.0))
                .because(
                    "the leader's one thread is the limit here, and besides receiving, as an unreplicated server does, it \
                     orders; in the paper executing on SSDs is the limit",
                ),
            claim("Paxos-PE: several times the latency of IONIA (10 clients)", ten("vr-pe"), ten("ionia"), AtLeast(2.0))
                .because("two round trips for one: the queues of a store on SSDs are not there"),
            claim("IONIA: much more throughput than Skyros", peak("ionia"), peak("skyros"), AtLeast(2.0)).because(threads),
        ],
        differs: "Data is in memory, and records are as many as were measured, not 350 million.",
        ..figure("ionia-8", "5.1", "Write-only workload")
    }
}

fn read_only() -> Figure {
    let panel = Panel {
        title: "Throughput of reads, 64 clients, slow storage",
        shape: Shape::Bars { across: "workload" },
        metrics: &[Throughput],
        protocols: FOUR,
        points: vec![Point::named("reads, uniform", slow("c"))],
    };
    let of = |protocol| value(0, protocol, At::Point("reads, uniform"), Throughput);
    Figure {
        statement: "2.95 times the throughput of IONIA-LR, which reads at the leader only; MultiPaxos and Skyros have less \
                    than that, as one thread reads.",
        panels: vec![panel],
        claims: vec![
            claim("2.95 times the throughput of IONIA-LR", of("ionia"), of("ionia-lr"), AtLeast(2.8)),
            claim("IONIA-LR faster than Skyros", of("ionia-lr"), of("skyros"), AtLeast(1.1)).because(SERIAL),
        ],
        differs: SLOW,
        ..figure("ionia-9", "5.2", "Read-only throughput")
    }
}

fn mixed() -> Figure {
    let panel = Panel {
        title: "(a) Throughput by the share of reads, 64 clients, slow storage",
        shape: Shape::Lines { across: READ_SHARE, is_log: false },
        metrics: &[Throughput],
        protocols: FOUR,
        points: [0_u8, 25, 50, 75, 100]
            .map(|reads| Point::at(reads.into(), slow(format!("{reads}%"))))
            .into(),
    };
    let of = |protocol, at| value(0, protocol, At::Point(at), Throughput);
    Figure {
        statement: "The more reads, the more IONIA gains over IONIA-LR: with 75 % reads it has 1.8 times the throughput.",
        panels: vec![panel],
        claims: vec![
            claim("75 % reads: 1.8 times IONIA-LR", of("ionia", "75"), of("ionia-lr", "75"), AtLeast(1.8)),
            claim("50 % reads: more than IONIA-LR", of("ionia", "50"), of("ionia-lr", "50"), AtLeast(1.05)),
        ],
        differs: SLOW,
        missing: "(b) to (d), the utilisation of the leader's SSD: there is no such device here.",
        ..figure("ionia-10", "5.3", "Mixed workloads")
    }
}

fn read_scaling() -> Figure {
    let load = |replicas: usize| Load { replicas, ..slow("c") };
    let panel = Panel {
        title: "(a) Throughput of reads by the number of replicas, 64 clients, slow storage",
        shape: Shape::Bars { across: "replicas" },
        metrics: &[Throughput],
        protocols: &["ionia-lr", "ionia", "default"],
        points: [1, 3, 5].map(|replicas| Point::at(replicas as f64, load(replicas))).into(),
    };
    let ionia = |at| value(0, "ionia", At::Point(at), Throughput);
    Figure {
        statement: "The throughput of reads grows with the number of replicas: linearly from 3 to 5.",
        panels: vec![panel],
        claims: vec![
            claim("3 replicas: 3 times that of one", ionia("3"), ionia("1"), About(3.0)),
            claim("5 replicas: 5/3 of that of three", ionia("5"), ionia("3"), About(1.67)),
        ],
        differs: SLOW,
        missing: "(b), how many requests the leader and the followers take each: nobody counts them by replica here.",
        ..figure("ionia-11", "5.4", "Read scaling")
    }
}

fn fast_reads() -> Figure {
    let load = |distribution| Load { distribution, clients: 16, keys: 1_000_000, ..three("a") };
    let distributions = ["uniform", "zipfian:0.75", "zipfian:0.85", "zipfian:0.99"];
    let panel = Panel {
        title: "Reads that take one round trip, half reads and half writes, 16 clients",
        shape: Shape::Bars { across: "keys" },
        metrics: &[FastReads],
        protocols: &["ionia", "default"],
        points: distributions.map(|name| Point::named(name, load(name))).into(),
    };
    let unit = |text, at: &'static str, bound| {
        claim(
            text,
            value(0, "ionia", At::Point(at), FastReads),
            value(0, "ionia", At::Point("uniform"), FastReads),
            bound,
        )
    };
    Figure {
        statement: "Almost all reads take one round trip with uniform keys, hardly fewer with zipfian keys of 0.75 and 0.85, \
                    and 85 % with 0.99.",
        panels: vec![panel],
        claims: vec![
            unit("zipfian 0.75: hardly fewer than with uniform keys", "zipfian:0.75", AtLeast(0.97)),
            unit("zipfian 0.85: hardly fewer", "zipfian:0.85", AtLeast(0.95)),
            unit("zipfian 0.99: 85 % (of those with uniform keys)", "zipfian:0.99", AtLeast(0.85)),
        ],
        differs: "1,000,000 keys and 16 clients; the more clients, the more updates there are that a read can meet.",
        ..figure("ionia-12", "5.5", "Fast reads")
    }
}

fn history() -> Figure {
    let load =
        |history: u64| Load { history: Some(history), distribution: "zipfian", clients: 16, ..three("a") };
    let sizes = [32_u64, 128, 512, 2_048, 8_192];
    let panel = Panel {
        title: "Reads that take one round trip, by the bytes of the leader's history; half reads, zipfian keys, 16 clients",
        shape: Shape::Lines { across: "history, bytes", is_log: true },
        metrics: &[FastReads],
        protocols: &["ionia"],
        points: sizes.map(|size| Point::at(size as f64, load(size))).into(),
    };
    let of = |at| value(0, "ionia", At::Point(at), FastReads);
    Figure {
        statement: "Slow reads get fewer with larger histories, and a small history, 0.06 % of the data, is enough.",
        panels: vec![panel],
        claims: vec![
            claim("a larger history makes reads fast", of("8192"), of("32"), AtLeast(1.2)),
            claim("a small one is enough: 2 KiB like 8 KiB", of("2048"), of("8192"), AtLeast(0.97)),
        ],
        differs: "Our replicas execute at once, so much smaller histories than the paper's 50 MB are enough.",
        ..figure("ionia-13", "5.6", "Impact of history size")
    }
}

fn ycsb() -> Figure {
    let load = |workload: &str| Load { distribution: "zipfian", ..slow(workload) };
    let panel = Panel {
        title: "Throughput, 64 clients, slow storage",
        shape: Shape::Bars { across: "workload of YCSB" },
        metrics: &[Throughput],
        protocols: FOUR,
        points: ["a", "b", "c", "d", "f"].map(|name| Point::named(name, load(name))).into(),
    };
    let ratio = |text, at: &'static str, bound| {
        let at = At::Point(at);
        claim(text, value(0, "ionia", at, Throughput), value(0, "ionia-lr", at, Throughput), bound)
    };
    Figure {
        statement: "IONIA-LR has ten times the throughput of MultiPaxos and Skyros. IONIA has 23 % to 42 % more than \
                    IONIA-LR for A and F, and about twice as much for B, C and D.",
        panels: vec![panel],
        claims: vec![
            ratio("A: 23 % more than IONIA-LR", "a", AtLeast(1.23)),
            ratio("F: 23 % more", "f", AtLeast(1.23)),
            ratio("B: twice as much", "b", AtLeast(1.9)),
            ratio("C: twice as much", "c", AtLeast(1.9)),
            ratio("D: twice as much", "d", AtLeast(1.9)),
            claim(
                "A: IONIA-LR far ahead of Skyros",
                value(0, "ionia-lr", At::Point("a"), Throughput),
                value(0, "skyros", At::Point("a"), Throughput),
                AtLeast(2.0),
            )
            .because(SERIAL),
        ],
        differs: SLOW,
        ..figure("ionia-14", "5.7", "YCSB")
    }
}

fn unreplicated() -> Figure {
    let panel = Panel {
        title: "Throughput, 64 clients, slow storage",
        shape: Shape::Bars { across: READ_SHARE },
        metrics: &[Throughput],
        protocols: &["unreplicated", "ionia", "default"],
        points: [50_u8, 75, 100].map(|reads| Point::at(reads.into(), slow(format!("{reads}%")))).into(),
    };
    let ratio = |text, at: &'static str, number| {
        let at = At::Point(at);
        claim(
            text,
            value(0, "ionia", at, Throughput),
            value(0, "unreplicated", at, Throughput),
            AtLeast(number),
        )
    };
    Figure {
        statement: "2.8 times the throughput of an unreplicated server for reads, 1.22 to 1.45 times for mixes.",
        panels: vec![panel],
        claims: vec![
            ratio("reads: 2.8 times", "100", 2.8),
            ratio("75 % reads: at least 1.22 times", "75", 1.22),
            ratio("50 % reads: at least 1.22 times", "50", 1.22),
        ],
        differs: SLOW,
        ..figure("ionia-15", "5.8", "IONIA and an unreplicated server")
    }
}

fn failures() -> Figure {
    let load = |failed: usize| Load { failed, ..Load::of("nilext") };
    let (none, one, two) = (At::Point("none"), At::Point("one"), At::Point("two"));
    let panel = Panel {
        title: "Throughput of writes by the followers that have failed, of five replicas, 10 clients",
        shape: Shape::Bars { across: "followers that have failed" },
        metrics: &[Throughput],
        protocols: &["vr", "ionia", "default"],
        points: vec![
            Point::named("none", load(0)),
            Point::named("one", load(1)),
            Point::named("two", load(2)),
        ],
    };
    let ratio = |text, protocol, (of, by), bound| {
        claim(text, value(0, protocol, of, Throughput), value(0, protocol, by, Throughput), bound)
    };
    Figure {
        statement: "The throughput of a write-only workload, with five replicas, stays as high when one of them fails, as four \
                    are a supermajority.",
        panels: vec![panel],
        claims: vec![
            ratio("one fails: as high", "ionia", (one, none), AtLeast(0.95)),
            ratio(
                "two fail: writes take two round trips, half the throughput",
                "ionia",
                (two, none),
                About(0.5),
            ),
            ratio(
                "default, whose quorum is three of five: as high when two fail",
                "default",
                (two, none),
                AtLeast(0.95),
            ),
        ],
        differs: "Not over time: followers fail before the measurement. The statements about two of them are not the paper's. \
                  How long a leader that fails is missed: `syros-lab bench failover`.",
        ..figure("ionia-16", "5.9", "Performance under failures")
    }
}
