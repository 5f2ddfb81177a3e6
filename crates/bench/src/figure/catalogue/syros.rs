//! The Syros paper: Skyros with quorum reads. Five replicas.

use super::{
    At, Bound, Claim, Figure, Load, Metric, Panel, Paper, Point, Shape, WRITE_SHARE, WRITES, claim, mix,
    sweep, value,
};
use Bound::{About, AtLeast, AtMost};
use Metric::{Mean, P99, Throughput};

const THREE: &[&str] = &["vr", "skyros", "syros"];

/// The last one is not in the paper: what this project does if it is told nothing.
const FOUR: &[&str] = &["vr", "skyros", "syros", "default"];

const fn figure(name: &'static str, section: &'static str, title: &'static str) -> Figure {
    super::figure(name, Paper::Syros, section, title)
}

/// All, in the paper's order.
pub(super) fn figures() -> Vec<Figure> {
    vec![
        far("syros-5", "a", "YCSB A with a far leader"),
        far("syros-6", "b", "YCSB B with a far leader"),
        far("syros-7", "c", "YCSB C with a far leader"),
        latency_by_clients(),
        latency_by_throughput(),
        throughput_by_clients(),
        by_writes("syros-11", "Latency by the share of writes, uniform keys", "uniform"),
        by_writes("syros-12", "Latency by the share of writes, zipfian keys", "zipfian"),
    ]
}

fn far(name: &'static str, workload: &'static str, title: &'static str) -> Figure {
    let load = Load { clients: 4, regions: Some("far-leader"), ..Load::of(workload) };
    let panel = Panel {
        title: "Mean latency, 4 clients in Wisconsin, the leader in Paris, 96.87 ms there and back",
        shape: Shape::Bars { across: "workload of YCSB" },
        metrics: &[Mean],
        protocols: FOUR,
        points: vec![Point::named(workload, load)],
    };
    let at = At::Point(workload);
    let half = |text, other| {
        let bound = if workload == "a" { About(0.5) } else { AtMost(0.55) };
        claim(text, value(0, "syros", at, Mean), value(0, other, at, Mean), bound)
    };
    let mut claims = vec![
        half("half the latency of Skyros", "skyros"),
        half("half the latency of Paxos", "vr").because(
            "writes of Paxos take two such round trips, which the paper's figures do not show: it is less than half",
        ),
        claim(
            "Skyros and Paxos alike",
            value(0, "skyros", at, Mean),
            value(0, "vr", at, Mean),
            About(1.0),
        )
        .because("a write of Paxos takes a round trip to the leader, and the leader's to the others"),
    ];
    if workload == "c" {
        claims.push(claim(
            "almost 300 times lower latency where there are only reads (abstract)",
            value(0, "skyros", at, Mean),
            value(0, "syros", at, Mean),
            AtLeast(300.0),
        ));
    }
    Figure {
        statement: "Syros takes half of the mean latency of Skyros and Paxos, which both take about as long as the way to \
                    the leader and back, on YCSB A, B and C.",
        panels: vec![panel],
        claims,
        differs: "Keys are uniform.",
        ..figure(name, "7.1", title)
    }
}

/// A load on replicas in one place, by the number of clients.
fn by_clients(title: &'static str, shape: Shape, metrics: &'static [Metric]) -> Panel {
    Panel { title, shape, metrics, protocols: THREE, points: sweep(&Load::of("a")) }
}

const CLIENTS: Shape = Shape::Lines { across: "clients", is_log: true };

/// What the paper says of clients as few as it must have had: its figures are of a system that is not yet busy.
const TEN: At = At::Point("10");

fn half_the_latency() -> Claim {
    claim(
        "half the latency of Paxos (10 clients)",
        value(0, "syros", TEN, Mean),
        value(0, "vr", TEN, Mean),
        AtMost(0.55),
    )
    .because("half of the operations are reads, of which Paxos answers each in one round trip too: 1 for 1.5")
}

const STATEMENT: &str = "Syros has lower latency and higher throughput than Paxos with any number of clients: half the \
    latency and 58 % more throughput. It is like Skyros but for 15 % less throughput, as its reads wait for a majority.";

fn latency_by_clients() -> Figure {
    Figure {
        statement: STATEMENT,
        panels: vec![by_clients("Mean latency by the number of clients", CLIENTS, &[Mean])],
        claims: vec![half_the_latency()],
        ..figure("syros-8", "7.2", "Latency and clients, YCSB A, one region")
    }
}

fn latency_by_throughput() -> Figure {
    Figure {
        statement: STATEMENT,
        panels: vec![by_clients("Mean latency over throughput, 1 to 200 clients", Shape::Curve, &[Mean])],
        claims: vec![half_the_latency()],
        ..figure("syros-9", "7.2", "Latency and throughput, YCSB A, one region")
    }
}

fn throughput_by_clients() -> Figure {
    let peak = |protocol| value(0, protocol, At::Peak, Throughput);
    let ten = |protocol| value(0, protocol, TEN, Throughput);
    Figure {
        statement: STATEMENT,
        panels: vec![by_clients("Throughput by the number of clients", CLIENTS, &[Throughput])],
        claims: vec![
            claim("58 % more throughput than Paxos (10 clients)", ten("syros"), ten("vr"), AtLeast(1.58)).because(
                "half of the operations are reads, of which Paxos answers each in one round trip too: 1 for 1.5",
            ),
            claim("15 % less than Skyros (the most of each)", peak("syros"), peak("skyros"), About(0.85)).because(
                "it has more: the leader's processor is the limit here, and reads of a majority of the others spare it",
            ),
        ],
        ..figure("syros-10", "7.2", "Throughput and clients, YCSB A, one region")
    }
}

fn by_writes(name: &'static str, title: &'static str, distribution: &'static str) -> Figure {
    let load = |writes: u8| Load { distribution, ..Load::of(mix(writes)) };
    let panel = Panel {
        title: "Mean and 99th percentile of latency, 10 clients",
        shape: Shape::Lines { across: WRITE_SHARE, is_log: false },
        metrics: &[Mean, P99],
        protocols: THREE,
        points: WRITES.map(|writes| Point::at(writes.into(), load(writes))).into(),
    };
    let ratio = |text, at, other, bound| {
        let at = At::Point(at);
        claim(text, value(0, "syros", at, Mean), value(0, other, at, Mean), bound)
    };
    Figure {
        statement: "Similar for uniform and zipfian keys; Syros is slightly slower than Skyros.",
        panels: vec![panel],
        claims: vec![
            ratio("10 % writes: slightly slower than Skyros", "10", "skyros", AtMost(1.15)),
            ratio("50 % writes: slightly slower than Skyros", "50", "skyros", AtMost(1.15)),
            ratio("90 % writes: slightly slower than Skyros", "90", "skyros", AtMost(1.15)),
            ratio("90 % writes: faster than Paxos", "90", "vr", AtMost(0.9)),
        ],
        ..figure(name, "7.3", title)
    }
}
