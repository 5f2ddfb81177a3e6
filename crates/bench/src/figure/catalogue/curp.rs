//! "Exploiting Commutativity For Practical Fast Replication", Park and Ousterhout, NSDI 2019: what popular keys cost.

use super::{At, Bound, Figure, Load, Metric, Panel, Paper, Point, Shape, claim, value};
use Bound::{About, AtLeast, AtMost};
use Metric::{Mean, Throughput};

/// Exponents of the popularity of keys.
const SKEWS: [(f64, &str); 5] = [
    (0.5, "zipfian:0.5"),
    (0.7, "zipfian:0.7"),
    (0.8, "zipfian:0.8"),
    (0.9, "zipfian:0.9"),
    (0.99, "zipfian:0.99"),
];

const PROTOCOLS: &[&str] = &["unreplicated", "vr", "curp-c"];

const DIFFERS: &str = "The paper's CURP has a master and backups; this is CURP as the Skyros paper's baseline has it, over \
    consensus, with three replicas; 64 clients where it is about throughput, 16 where it is about latency. The paper's \"original\" is a master that waits for its backups; here \
    it is `vr`.";

const fn figure(name: &'static str, title: &'static str) -> Figure {
    super::figure(name, Paper::Curp, "its evaluation in RAMCloud", title)
}

/// Both.
pub(super) fn figures() -> Vec<Figure> {
    vec![throughput(), latency()]
}

fn panel(title: &'static str, workload: &'static str, metrics: &'static [Metric]) -> Panel {
    let load = |distribution| Load {
        distribution,
        clients: if metrics.contains(&Mean) { 16 } else { 64 },
        keys: 1_000_000,
        replicas: 3,
        ..Load::of(workload)
    };
    Panel {
        title,
        shape: Shape::Lines { across: "skew of the popularity of keys (zipfian)", is_log: false },
        metrics,
        protocols: PROTOCOLS,
        points: SKEWS.map(|(skew, name)| Point::at(skew, load(name))).into(),
    }
}

const LOW: At = At::Point("0.5");
const HIGH: At = At::Point("0.99");

fn throughput() -> Figure {
    let of = |panel, protocol, at| value(panel, protocol, at, Throughput);
    Figure {
        statement: "Writes of half of the operations (A): with little skew the throughput of CURP is like that of an \
                    unreplicated server; from 0.8 on it gets less, and at 0.99 almost nothing is left of what it gains. \
                    With 5 % writes (B) skew matters less.",
        panels: vec![
            panel("YCSB A: throughput, 64 clients", "a", &[Throughput]),
            panel("YCSB B: throughput, 64 clients", "b", &[Throughput]),
        ],
        claims: vec![
            claim("A, skew 0.5: like an unreplicated server", of(0, "curp-c", LOW), of(0, "unreplicated", LOW), About(1.0))
                .because("the leader's one thread is the limit here, and besides receiving, as an unreplicated server does, it orders"),
            claim("A: less at 0.99 than at 0.5", of(0, "curp-c", HIGH), of(0, "curp-c", LOW), AtMost(0.99)),
            claim("A, skew 0.99: hardly more than the original", of(0, "curp-c", HIGH), of(0, "vr", HIGH), AtMost(1.1)),
            claim("B: hardly less at 0.99 than at 0.5", of(1, "curp-c", HIGH), of(1, "curp-c", LOW), AtLeast(0.9)),
        ],
        differs: DIFFERS,
        ..figure("curp-8", "Throughput and skew")
    }
}

fn latency() -> Figure {
    let of = |panel, protocol, at| value(panel, protocol, at, Mean);
    Figure {
        statement: "A: the latency of CURP grows from a skew of 0.85 on, and is still 42 % lower than the original's at 0.99. \
                    B: less to gain, as 5 % are writes.",
        panels: vec![
            panel("YCSB A: mean latency, 16 clients", "a", &[Mean]),
            panel("YCSB B: mean latency, 16 clients", "b", &[Mean]),
        ],
        claims: vec![
            claim("A: more at 0.99 than at 0.5", of(0, "curp-c", HIGH), of(0, "curp-c", LOW), AtLeast(1.01)),
            claim(
                "A, skew 0.99: 42 % lower than the original",
                of(0, "curp-c", HIGH),
                of(0, "vr", HIGH),
                AtMost(0.58),
            ),
            claim(
                "B, skew 0.99: not above the original",
                of(1, "curp-c", HIGH),
                of(1, "vr", HIGH),
                AtMost(1.0),
            ),
        ],
        differs: DIFFERS,
        ..figure("curp-9", "Latency and skew")
    }
}
