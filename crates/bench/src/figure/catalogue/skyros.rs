//! "Exploiting Nil-Externality for Fast Replicated Storage", Ganesan et al., SOSP 2021. Five replicas.

use super::{
    At, Bound, Figure, Load, Metric, Panel, Paper, Point, Shape, Storage, WRITE_SHARE, WRITES, claim, mix,
    sweep, value,
};
use At::{PeakAt, PeakOf};
use Bound::{About, AtLeast, AtMost};
use Metric::{Mean, P99, Throughput};

/// Only two protocols are in most of the figures.
const TWO: &[&str] = &["vr", "skyros"];

const fn figure(name: &'static str, section: &'static str, title: &'static str) -> Figure {
    super::figure(name, Paper::Skyros, section, title)
}

/// All, in the paper's order.
pub(super) fn figures() -> Vec<Figure> {
    let mut all =
        vec![nilext_only(), not_nilext(), reads(), all_kinds(), read_latest(), many_replicas(), ycsb()];
    all.extend([
        equal_throughput(),
        on_disk(),
        sets(),
        reads_of_a(),
        writes_of_a(),
        record_append(),
        commutative(),
    ]);
    all
}

fn nilext_only() -> Figure {
    let panel = Panel {
        title: "Mean latency over throughput, 1 to 200 clients",
        shape: Shape::Curve,
        metrics: &[Mean],
        protocols: &["vr-nobatch", "vr", "skyros"],
        points: sweep(&Load::of("nilext")),
    };
    let ten = At::Point("10");
    Figure {
        statement: "Skyros and Paxos have about 3 times the throughput of Paxos without batches. With few clients Skyros \
                    has half the latency of Paxos and twice its throughput; at about 100,000 operations/s 3.1 times \
                    lower latency.",
        panels: vec![panel],
        claims: vec![
            claim(
                "few clients (10): half the latency",
                value(0, "vr", ten, Mean),
                value(0, "skyros", ten, Mean),
                About(2.0),
            ),
            claim(
                "few clients (10): twice the throughput",
                value(0, "skyros", ten, Throughput),
                value(0, "vr", ten, Throughput),
                About(2.0),
            ),
            claim(
                "at the most throughput of Paxos: 3.1 times lower latency",
                value(0, "vr", PeakOf("vr"), Mean),
                value(0, "skyros", PeakOf("vr"), Mean),
                AtLeast(3.0),
            )
            .because("the leader of `vr` waits less here when it is busy: what is sent in one turn is written at once"),
            claim(
                "Paxos: about 3 times the throughput of Paxos without batches",
                value(0, "vr", At::Peak, Throughput),
                value(0, "vr-nobatch", At::Peak, Throughput),
                AtLeast(2.7),
            )
            .because("without batches there still is one system call for all that a turn sends, so they save little"),
        ],
        ..figure("skyros-8a", "5.1", "Nilext-only workload")
    }
}

fn not_nilext() -> Figure {
    let load = |percent: u8| Load::of(format!("mix:{}/{percent}/0", 100 - percent));
    let shares = [1, 5, 10, 25, 50, 100];
    let panel = Panel {
        title: "Throughput by the share of updates that are not nilext, 10 clients",
        shape: Shape::Lines { across: "updates that are not nilext, %", is_log: true },
        metrics: &[Throughput],
        protocols: TWO,
        points: shares.map(|percent| Point::at(percent.into(), load(percent))).into(),
    };
    let ratio = |text, at, bound| {
        claim(text, value(0, "skyros", at, Throughput), value(0, "vr", at, Throughput), bound)
    };
    Figure {
        statement: "Twice the throughput where few updates are not nilext, 1.78 times with 10 % of them; not less than \
                    Paxos even if none is nilext. Above the bars: 1.95, 1.85, 1.78, 1.56, 1.23.",
        panels: vec![panel],
        claims: vec![
            ratio("1 % not nilext: 1.95 times the throughput", At::Point("1"), About(1.95)),
            ratio("10 % not nilext: 1.78 times", At::Point("10"), About(1.78)),
            ratio("none nilext: not less", At::Point("100"), AtLeast(0.98)),
        ],
        differs: "Updates that are not nilext are INCRs of keys of their own; which shares the bars between 1 and 100 % \
                  stand for is not said in the paper's text.",
        ..figure("skyros-8b-i", "5.2", "Nilext and other updates")
    }
}

fn reads() -> Figure {
    let panel = |title: &'static str, distribution: &'static str| {
        let load = |writes: u8| Load { distribution, ..Load::of(mix(writes)) };
        Panel {
            title,
            shape: Shape::Lines { across: WRITE_SHARE, is_log: false },
            metrics: &[Mean, P99],
            protocols: TWO,
            points: WRITES.map(|writes| Point::at(writes.into(), load(writes))).into(),
        }
    };
    let ratio = |text, panel: usize, at: &'static str, metric, bound| {
        let at = At::Point(at);
        claim(text, value(panel, "vr", at, metric), value(panel, "skyros", at, metric), bound)
    };
    let p99 = "a write of Paxos is two round trips and of Skyros one: half is all that there is to gain where nothing waits";
    Figure {
        statement: "Uniform keys: with 10 % writes 10 % lower mean latency and 80 % lower p99; with 90 % writes 2.2 \
                    times lower mean and 4.1 times lower p99. Zipfian keys: less, as reads of what was just written wait; \
                    with 90 % writes mean and p99 are still half.",
        panels: vec![panel("Uniform keys, 10 clients", "uniform"), panel("Zipfian keys (0.99), 10 clients", "zipfian")],
        claims: vec![
            ratio("uniform, 10 % writes: mean 10 % lower", 0, "10", Mean, About(1.11)),
            ratio("uniform, 10 % writes: p99 80 % lower", 0, "10", P99, AtLeast(5.0)).because(p99),
            ratio("uniform, 90 % writes: mean 2.2 times lower", 0, "90", Mean, AtLeast(2.2)).because(
                "with 90 % writes there are 1.9 round trips for one, and no more to gain where nothing waits",
            ),
            ratio("uniform, 90 % writes: p99 4.1 times lower", 0, "90", P99, AtLeast(4.1)).because(p99),
            ratio("zipfian, 90 % writes: mean half", 1, "90", Mean, About(2.0)),
            ratio("zipfian, 90 % writes: p99 half", 1, "90", P99, About(2.0)).because(
                "more than 1 % of the operations are reads of what was just written, which wait for a second round trip",
            ),
        ],
        ..figure("skyros-8b-ii", "5.2", "Nilext updates and reads")
    }
}

fn all_kinds() -> Figure {
    let load = |writes: u8| {
        let other = writes / 10;
        Load::of(format!("mix:{}/{other}/{}", writes - other, 100 - writes))
    };
    let panel = Panel {
        title: "Throughput by the share of writes, a tenth of which are not nilext; 10 clients",
        shape: Shape::Lines { across: WRITE_SHARE, is_log: false },
        metrics: &[Throughput],
        protocols: TWO,
        points: WRITES.map(|writes| Point::at(writes.into(), load(writes))).into(),
    };
    let ratio = |text, at: &'static str, number| {
        let at = At::Point(at);
        claim(text, value(0, "skyros", at, Throughput), value(0, "vr", at, Throughput), About(number))
    };
    Figure {
        statement: "Little to gain with few writes; with 90 % writes, 9 % of them not nilext, 1.72 times the throughput. \
                    Above the bars: 1.04, 1.33, 1.52, 1.60, 1.72.",
        panels: vec![panel],
        claims: vec![
            ratio("10 % writes: 1.04 times the throughput", "10", 1.04),
            ratio("30 % writes: 1.33 times", "30", 1.33),
            ratio("50 % writes: 1.52 times", "50", 1.52),
            ratio("70 % writes: 1.60 times", "70", 1.60),
            ratio("90 % writes: 1.72 times", "90", 1.72),
        ],
        ..figure("skyros-8b-iii", "5.2", "Nilext updates, other updates and reads")
    }
}

fn read_latest() -> Figure {
    let panel = |title: &'static str, window: &'static str| {
        let load = |share: u8| Load::of(format!("read-latest:{share}/{window}"));
        Panel {
            title,
            shape: Shape::Lines { across: "reads that go to the window, %", is_log: true },
            metrics: &[Mean],
            protocols: TWO,
            points: [1, 10, 50, 100].map(|share| Point::at(share.into(), load(share))).into(),
        }
    };
    let ratio = |text, panel: usize, at: &'static str, bound| {
        let at = At::Point(at);
        claim(text, value(panel, "skyros", at, Mean), value(panel, "vr", at, Mean), bound)
    };
    Figure {
        statement: "Half updates, half reads, of which a share goes to what was updated in the last 0.1 ms (about a round \
                    trip), 0.2 ms or 1 ms. Where few do: about 70 % lower latency than Paxos; the more do, and the \
                    shorter the window, the higher it gets, as those reads wait for a second round trip (about 68 % \
                    of them in the worst case). Never worse than Paxos.",
        panels: vec![
            panel("Window of 0.2 ms (about a round trip), 10 clients", "200us"),
            panel("Window of 0.4 ms", "400us"),
            panel("Window of 2 ms", "2ms"),
        ],
        claims: vec![
            ratio("1 % of the reads: about 70 % lower latency", 0, "1", AtMost(0.33)).because(
                "Paxos takes 1.5 round trips here and Skyros 1: a third is all that there is to gain where nothing waits",
            ),
            ratio("all reads go to what is a round trip old: not worse than Paxos", 0, "100", AtMost(1.02)),
            ratio("all reads go to what is ten round trips old: not worse than Paxos", 2, "100", AtMost(1.02)),
        ],
        differs: "Windows are twice the paper's, as a round trip takes twice as long in virtual time. What was updated is what \
                  was acknowledged; where nothing was in the window, a read goes anywhere.",
        ..figure("skyros-9", "5.3", "Reads of what was just written")
    }
}

fn many_replicas() -> Figure {
    let load = |replicas: usize| Load { replicas, jitter_us: 100, ..Load::of("nilext") };
    let panel = Panel {
        title: "Mean latency by the number of replicas, 10 clients",
        shape: Shape::Bars { across: "replicas" },
        metrics: &[Mean],
        protocols: TWO,
        points: [5, 7, 9].map(|replicas| Point::at(replicas as f64, load(replicas))).into(),
    };
    let (five, seven, nine) = (At::Point("5"), At::Point("7"), At::Point("9"));
    let skyros = |at| value(0, "skyros", at, Mean);
    Figure {
        statement: "More answers to wait for add little: latencies with seven and nine replicas are similar to those with \
                    five, and about half those of Paxos.",
        panels: vec![panel],
        claims: vec![
            claim("seven replicas like five", skyros(seven), skyros(five), AtMost(1.15)),
            claim("nine replicas like five", skyros(nine), skyros(five), AtMost(1.15)),
            claim(
                "nine replicas: half the latency of Paxos",
                value(0, "vr", nine, Mean),
                skyros(nine),
                About(2.0),
            ),
        ],
        differs: "In virtual time each way takes up to 0.1 ms longer, all lengths alike. Without that everything arrives \
                  at the same moments, and with nine replicas the mean is 1.23 times that with five.",
        ..figure("skyros-10", "5.4", "Latency with many replicas")
    }
}

fn ycsb_load(workload: &str) -> Load {
    Load { distribution: "zipfian", ..Load::of(workload) }
}

fn ycsb() -> Figure {
    let distribution = |title: &'static str, workload: &'static str, kind| Panel {
        title,
        shape: Shape::Distribution(kind),
        metrics: &[Mean],
        protocols: TWO,
        points: vec![Point::named(workload, ycsb_load(workload))],
    };
    let throughput = Panel {
        title: "(a) Throughput, 10 clients",
        shape: Shape::Bars { across: "workload of YCSB" },
        metrics: &[Throughput],
        protocols: TWO,
        points: ["load", "a", "b", "c", "d", "f"].map(|name| Point::named(name, ycsb_load(name))).into(),
    };
    let ratio = |text, at: &'static str, bound| {
        let at = At::Point(at);
        claim(text, value(0, "skyros", at, Throughput), value(0, "vr", at, Throughput), bound)
    };
    let p99 = |text, panel: usize, at: &'static str| {
        let at = At::Point(at);
        claim(text, value(panel, "vr", at, P99), value(panel, "skyros", at, P99), AtLeast(1.7)).because(
            "more than 1 % of the operations read what was just written and wait for a second round trip; the paper has \
             4 % of the reads of A and 0.3 % of those of B",
        )
    };
    Figure {
        statement: "Load, A and F have 1.43 to 2.29 times the throughput; C the same. Most reads of A and B take one round \
                    trip (all but 4 % and 0.3 %), and the p99 of all operations is 1.7 times lower for both.",
        panels: vec![
            throughput,
            distribution("(b) Latency of the reads of A", "a", Some("read")),
            distribution("(c) Latency of all operations of A", "a", None),
            distribution("(d) Latency of the reads of B", "b", Some("read")),
            distribution("(e) Latency of all operations of B", "b", None),
        ],
        claims: vec![
            ratio("load: at least 1.43 times the throughput", "load", AtLeast(1.43)),
            ratio("A: at least 1.43 times", "a", AtLeast(1.43)),
            ratio("F: at least 1.43 times", "f", AtLeast(1.43)).because(
                "half of F is a GET and half a GET and a SET: (1 + 3) / (1 + 2) round trips, 1.33, is all that there is \
                 to gain",
            ),
            ratio("C: the same", "c", About(1.0)),
            p99("A: p99 of all operations 1.7 times lower", 2, "a"),
            p99("B: p99 of all operations 1.7 times lower", 4, "b"),
        ],
        differs: "A read-modify-write is a GET and then a SET; D is latest and load sequential.",
        ..figure("skyros-11", "5.5", "YCSB")
    }
}

fn equal_throughput() -> Figure {
    let clients = [10, 20, 50, 100, 150, 200];
    let points =
        |name: &'static str| clients.map(|clients| Point::named(name, Load { clients, ..ycsb_load(name) }));
    let panel = Panel {
        title: "Mean latency at the most throughput of vr",
        shape: Shape::AtPeakOf("vr"),
        metrics: &[Mean],
        protocols: TWO,
        points: ["a", "b", "d", "f"].map(points).concat(),
    };
    let ratio = |text, name: &'static str, number| {
        let at = PeakAt(name, "vr");
        claim(text, value(0, "vr", at, Mean), value(0, "skyros", at, Mean), AtLeast(number)).because(
            "the leader of `vr` waits less here when it is busy: what is sent in one turn is written at once",
        )
    };
    Figure {
        statement: "At the most throughput that Paxos has, Skyros has 2.14 times lower mean latency for A, 1.38 for B, 1.32 \
                    for D and 1.79 for F.",
        panels: vec![panel],
        claims: vec![
            ratio("A: 2.14 times lower latency", "a", 2.14),
            ratio("B: 1.38 times lower", "b", 1.38),
            ratio("D: 1.32 times lower", "d", 1.32),
            ratio("F: 1.79 times lower", "f", 1.79),
        ],
        differs: "Of 10, 20, 50, 100, 150 and 200 clients, those are taken with which Paxos has the most throughput; of Skyros \
                  the least latency with at least 98 % of it.",
        ..figure("skyros-12", "5.5", "Latency at equal throughput")
    }
}

fn on_disk() -> Figure {
    let load = |workload: &str| Load { storage: Storage::Disk, ..ycsb_load(workload) };
    let panel = Panel {
        title: "Throughput with data on disk, 10 clients",
        shape: Shape::Bars { across: "workload of YCSB" },
        metrics: &[Throughput],
        protocols: TWO,
        points: ["load", "a"].map(|name| Point::named(name, load(name))).into(),
    };
    let ratio = |text, at: &'static str, number| {
        let at = At::Point(at);
        claim(text, value(0, "skyros", at, Throughput), value(0, "vr", at, Throughput), AtLeast(number)).because(
            "all replicas and clients share this machine's cores, where a message costs more than a round trip takes",
        )
    };
    Figure {
        statement: "With RocksDB replicated, 1.83 times the throughput for load and 1.50 times for A.",
        panels: vec![panel],
        claims: vec![
            ratio("load: 1.83 times the throughput", "load", 1.83),
            ratio("A: 1.50 times", "a", 1.5),
        ],
        differs: "The engine is `disk`, a tree in Rust, as RocksDB is not in every build of this program.",
        ..figure("skyros-13", "5.6", "A store on disk (the paper: RocksDB)")
    }
}

const THREE: &[&str] = &["vr", "curp-c", "skyros"];

/// Without conflicts, and with.
fn conflicts(workload: &str) -> Vec<Point> {
    vec![
        Point::named("no conflict (uniform)", Load::of(workload)),
        Point::named("zipfian", ycsb_load(workload)),
    ]
}

const NO_CONFLICT: At = At::Point("no conflict (uniform)");
const ZIPFIAN: At = At::Point("zipfian");

fn sets() -> Figure {
    let panel = |title, metrics| Panel {
        title,
        shape: Shape::Bars { across: "keys" },
        metrics,
        protocols: THREE,
        points: conflicts("nilext"),
    };
    Figure {
        statement: "SETs only. Without conflicts CURP-c and Skyros are alike and twice as fast as Paxos. With zipfian keys \
                    CURP-c gets slower and Skyros does not: 2.7 times lower p99.",
        panels: vec![
            panel("Throughput, 10 clients", &[Throughput]),
            panel("99th percentile of latency", &[P99]),
        ],
        claims: vec![
            claim(
                "no conflicts: Skyros twice as fast as Paxos",
                value(0, "skyros", NO_CONFLICT, Throughput),
                value(0, "vr", NO_CONFLICT, Throughput),
                About(2.0),
            ),
            claim(
                "no conflicts: CURP-c like Skyros",
                value(0, "curp-c", NO_CONFLICT, Throughput),
                value(0, "skyros", NO_CONFLICT, Throughput),
                About(1.0),
            ),
            claim(
                "zipfian: p99 of Skyros 2.7 times lower than of CURP-c",
                value(1, "curp-c", ZIPFIAN, P99),
                value(1, "skyros", ZIPFIAN, P99),
                AtLeast(2.7),
            ),
            claim(
                "zipfian: Skyros as fast as without conflicts",
                value(0, "skyros", ZIPFIAN, Throughput),
                value(0, "skyros", NO_CONFLICT, Throughput),
                About(1.0),
            ),
        ],
        ..figure("skyros-14a", "5.7.1", "Comparison to commutative protocols: SETs")
    }
}

fn of_a(title: &'static str, kind: &'static str) -> Panel {
    Panel {
        title,
        shape: Shape::Distribution(Some(kind)),
        metrics: &[Mean],
        protocols: THREE,
        points: vec![Point::named("a", ycsb_load("a"))],
    }
}

fn reads_of_a() -> Figure {
    let at = At::Point("a");
    Figure {
        statement: "Paxos's reads take one round trip; a small share of Skyros's take two, and a similar share of CURP-c's.",
        panels: vec![of_a("Latency of the reads of YCSB A (zipfian), 10 clients", "read")],
        claims: vec![
            claim(
                "CURP-c's reads take as long as Skyros's (mean)",
                value(0, "curp-c", at, Mean),
                value(0, "skyros", at, Mean),
                About(1.0),
            ),
            claim(
                "Skyros's reads take hardly longer than Paxos's (mean)",
                value(0, "skyros", at, Mean),
                value(0, "vr", at, Mean),
                AtMost(1.1),
            ),
        ],
        ..figure("skyros-14b", "5.7.1", "Comparison to commutative protocols: reads of A")
    }
}

fn writes_of_a() -> Figure {
    let at = At::Point("a");
    Figure {
        statement: "Nilext writes of Skyros always take one round trip; those of CURP-c take two or three where they \
                    conflict. Skyros has 34 % lower p99.",
        panels: vec![of_a("Latency of the writes of YCSB A (zipfian), 10 clients", "update")],
        claims: vec![
            claim(
                "p99 of Skyros 34 % lower than of CURP-c",
                value(0, "skyros", at, P99),
                value(0, "curp-c", at, P99),
                AtMost(0.66),
            ),
            claim(
                "half the latency of Paxos (mean)",
                value(0, "vr", at, Mean),
                value(0, "skyros", at, Mean),
                About(2.0),
            ),
        ],
        ..figure("skyros-14c", "5.7.1", "Comparison to commutative protocols: writes of A")
    }
}

fn record_append() -> Figure {
    let load = Load { clients: 4, ..Load::of("record-append") };
    let panel = Panel {
        title: "Throughput of four clients that append records to one file",
        shape: Shape::Bars { across: "workload" },
        metrics: &[Throughput],
        protocols: THREE,
        points: vec![Point::named("record append", load)],
    };
    let at = At::Point("record append");
    let ratio = |text, other| {
        claim(text, value(0, "skyros", at, Throughput), value(0, other, at, Throughput), AtLeast(2.0))
    };
    Figure {
        statement: "Appends to one file do not commute: CURP-c is slower than Paxos, and Skyros has twice the throughput of \
                    both.",
        panels: vec![panel],
        claims: vec![
            ratio("twice the throughput of Paxos", "vr"),
            ratio("twice the throughput of CURP-c", "curp-c"),
            claim(
                "CURP-c slower than Paxos",
                value(0, "curp-c", at, Throughput),
                value(0, "vr", at, Throughput),
                AtMost(1.0),
            ),
        ],
        ..figure("skyros-14d", "5.7.1", "Comparison to commutative protocols: record append")
    }
}

fn commutative() -> Figure {
    let panel = Panel {
        title: "Throughput with 10 % of the updates not nilext, 10 clients",
        shape: Shape::Bars { across: "keys" },
        metrics: &[Throughput],
        protocols: &["skyros", "curp-c", "skyros-comm"],
        points: conflicts("mix:90/10/0"),
    };
    let ratio = |text, at, (one, other), bound| {
        claim(text, value(0, one, at, Throughput), value(0, other, at, Throughput), bound)
    };
    Figure {
        statement: "Without conflicts CURP-c is faster than Skyros, and Skyros-Comm as fast as CURP-c. With zipfian keys \
                    Skyros is like CURP-c, and Skyros-Comm faster than both.",
        panels: vec![panel],
        claims: vec![
            ratio("no conflicts: CURP-c faster than Skyros", NO_CONFLICT, ("curp-c", "skyros"), AtLeast(1.0)),
            ratio("no conflicts: Skyros-Comm like CURP-c", NO_CONFLICT, ("skyros-comm", "curp-c"), About(1.0)),
            ratio("zipfian: Skyros like CURP-c", ZIPFIAN, ("skyros", "curp-c"), About(1.0)).because(
                "Skyros is faster here: one update in ten takes its second round trip, and more than that conflict in CURP-c",
            ),
            ratio("zipfian: Skyros-Comm faster than CURP-c", ZIPFIAN, ("skyros-comm", "curp-c"), AtLeast(1.05)),
            ratio("zipfian: Skyros-Comm faster than Skyros", ZIPFIAN, ("skyros-comm", "skyros"), AtLeast(1.05)),
        ],
        ..figure("skyros-14e", "5.7.2", "Nil-externality and commutativity")
    }
}
