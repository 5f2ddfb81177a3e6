//! `syros-lab bench compare` with real processes.

mod common;

use common::{Scratch, lab, run, text};
use std::collections::BTreeSet;
use std::process::Output;

/// Exactly these fields has a line for machines.
const FIELDS: [&str; 23] = [
    "protocol",
    "workload",
    "distribution",
    "replicas",
    "clients",
    "round",
    "ops_per_s",
    "mean_us",
    "p50_us",
    "p99_us",
    "p999_us",
    "cpu_us_per_op",
    "client_cpu_us_per_op",
    "fast_share",
    "busiest_share",
    "durability",
    "engine",
    "value_bytes",
    "keys",
    "failed",
    "commit",
    "machine",
    "command",
];

fn compare(more: &[&str]) -> Output {
    let mut command = lab();
    command.args(["bench", "compare", "--rounds", "1", "--warm-up", "100ms", "--duration", "300ms"]);
    run(command.args(["--keys", "200", "--clients", "4"]).args(more))
}

/// The lines for machines, each of which must have all fields and no failure.
fn lines(output: &Output) -> Vec<serde_json::Value> {
    assert!(output.status.success(), "{}", text(output));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = report.lines().map(|line| {
        let value: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let fields: BTreeSet<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, BTreeSet::from(FIELDS));
        assert!(value["failed"] == 0 && value["ops_per_s"].as_f64().unwrap() > 0.0, "{line}");
        value
    });
    lines.collect()
}

#[test]
fn protocols_are_compared_side_by_side_and_everything_is_cleaned_up() {
    let scratch = Scratch::new("compare");
    let (directory, page) = (scratch.0.join("clusters"), scratch.0.join("page.html"));
    let paths = [directory.to_str().unwrap(), page.to_str().unwrap()];
    let output = compare(&[
        "--protocols",
        "vr,skyros",
        "--workload",
        "load,d,e,f,mix:40,30,30,record-append:2",
        "--replicas",
        "3",
        "--json",
        "--dir",
        paths[0],
        "--html",
        paths[1],
    ]);
    let lines = lines(&output);
    let of = |line: &serde_json::Value, field: &str| line[field].as_str().unwrap().to_owned();
    let order: Vec<(String, String)> =
        lines.iter().map(|line| (of(line, "workload"), of(line, "protocol"))).collect();
    let workloads = ["load", "d", "e", "f", "mix:40/30/30", "record-append:2"];
    let expected =
        workloads.iter().flat_map(|workload| ["vr", "skyros"].map(|protocol| (workload, protocol)));
    assert!(
        order.iter().map(|(a, b)| (a.as_str(), b.as_str())).eq(expected.map(|(a, b)| (*a, b))),
        "{order:?}"
    );
    // Inserts: none of them in one round trip through the leader.
    assert!(
        lines[0]["fast_share"].as_f64().unwrap() < 0.01 && lines[1]["fast_share"].as_f64().unwrap() > 0.5
    );
    assert_eq!(of(&lines[2], "distribution"), "latest:0.99");
    assert!(!directory.exists(), "it cleans up");
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("<svg") && page.contains("skyros") && page.ends_with("</html>\n"));
}

#[test]
fn operations_that_are_due_are_asked_for_and_one_replica_needs_nobody() {
    let output = compare(&["--protocols", "unreplicated,vr", "--rate", "400", "--workload", "a", "--json"]);
    let lines = lines(&output);
    assert_eq!((lines[0]["replicas"].as_u64(), lines[1]["replicas"].as_u64()), (Some(1), Some(3)));
    assert!(lines[0]["fast_share"].as_f64() > Some(0.5), "{lines:?}");
}

#[test]
fn virtual_time_is_exact() {
    let mut command = lab();
    command.args(["bench", "compare", "--virtual", "--operations", "300", "--rounds", "1", "--json"]);
    let lines = lines(&run(command.args(["--protocols", "vr,skyros", "--clients", "2"])));
    let mean = |line: usize| lines[line]["mean_us"].as_f64().unwrap();
    // To the leader, from it to the others, and back; against one round trip.
    assert!((mean(0) - 400.0).abs() < 1.0 && (mean(1) - 200.0).abs() < 1.0, "{lines:?}");
    assert!(lines[0]["cpu_us_per_op"].is_null() && lines[0]["busiest_share"].is_null());
}

#[test]
fn in_virtual_time_work_takes_what_it_is_said_to() {
    let mut command = lab();
    command.args(["bench", "compare", "--virtual", "--operations", "300", "--rounds", "1", "--json"]);
    command.args(["--protocols", "unreplicated,skyros", "--clients", "1", "--rtt-ms", "1"]);
    let lines =
        lines(&run(command.args(["--workload", "record-append", "--cost", "receive=30us,send=20us"])));
    let of = |line: usize, field: &str| lines[line][field].as_f64().unwrap();
    assert!(
        (of(0, "mean_us") - 1_050.0).abs() < 1.0 && (of(0, "cpu_us_per_op") - 50.0).abs() < 1.0,
        "{lines:?}"
    );
    assert!((of(0, "busiest_share") - 50.0 / 1_050.0).abs() < 0.001, "{lines:?}");
    // Each of three takes and answers it; they order it too, which the next one may have to wait for.
    assert!(of(1, "mean_us") > 1_049.0 && of(1, "cpu_us_per_op") > 150.0, "{lines:?}");
}
