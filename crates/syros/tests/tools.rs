//! The subcommands that are tools: check, sim, bench.

mod common;

use common::{Scratch, free_ports, run, syros, text};

#[test]
fn the_published_recovery_rule_fails_and_ours_do_not() {
    let check = |rule: &str, replicas: &str, ops: &str| {
        run(syros().args(["check", "recovery", "--replicas", replicas, "--ops", ops, "--rule", rule]))
    };
    let paper = check("paper", "5", "3");
    assert_eq!(paper.status.code(), Some(1), "{}", text(&paper));
    assert!(!text(&paper).contains(" 0 violations"), "{}", text(&paper));
    for (rule, replicas, ops) in [("majority", "3", "3"), ("supermajority", "3", "3"), ("paper", "3", "2")] {
        let output = check(rule, replicas, ops);
        assert!(output.status.success() && text(&output).contains(" 0 violations"), "{}", text(&output));
    }
    assert!(text(&check("majority", "4", "2")).contains("1, 3, 5 or 7 replicas, not 4"));
}

#[cfg(feature = "sim")]
#[test]
fn a_simulated_seed_runs_the_same_twice() {
    let simulate = || text(&run(syros().args(["sim", "--seed", "7"])));
    let hash = |text: &str| text.lines().find(|line| line.contains("trace hash")).map(str::to_owned);
    let first = simulate();
    assert!(first.contains(" 0 violations"), "{first}");
    assert!(hash(&first).is_some() && hash(&first) == hash(&simulate()), "{first}");
    let planted = text(&run(syros().args(["sim", "--list-planted"])));
    assert!(planted.contains("no-conflict-check"), "{planted}");
}

#[test]
fn bench_measures_a_running_cluster() {
    let (scratch, port) = (Scratch::new("bench"), free_ports());
    let program = syros().get_program().to_string_lossy().into_owned();
    let exec = format!(
        "'{program}' bench write --cluster {{cluster}} --writers 8 --connections 2 --warm-up 100ms \
         --duration 500ms --reads-percent 50 --json"
    );
    let mut command = syros();
    command.arg("dev").arg("--dir").arg(scratch.0.join("cluster")).args(["--port", &port.to_string()]);
    let output = run(command.args(["--exec", &exec]));
    assert!(output.status.success(), "{}", text(&output));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("\"ops_per_s\":") && report.contains("\"refused\":0"), "{report}");
}

#[test]
fn bench_measures_failovers_and_loses_nothing() {
    let scratch = Scratch::new("failover");
    let directory = scratch.0.join("cluster");
    for kind in ["kill", "stop"] {
        let mut command = syros();
        command.args(["bench", "failover", "--kills", "1", "--json", "--kind", kind]);
        let output = run(command.arg("--dir").arg(&directory));
        assert!(output.status.success(), "{}", text(&output));
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        for expected in ["\"kills\":1,", "\"lost_writes\":0,", "\"median_ms\":"] {
            assert!(report.contains(expected), "{expected} is missing in {report}");
        }
        assert!(!directory.exists(), "it cleans up");
    }
    let alone = run(syros().args(["bench", "failover", "--kills", "1", "--replicas", "1"]));
    assert!(!alone.status.success() && text(&alone).contains("nobody can take over"), "{}", text(&alone));
    std::fs::create_dir(&directory).unwrap();
    let output = run(syros().args(["bench", "failover", "--kills", "1"]).arg("--dir").arg(&directory));
    assert!(!output.status.success() && text(&output).contains("exists already"), "{}", text(&output));
}

#[test]
fn bench_cuts_links_only_as_root() {
    if !rustix::process::geteuid().is_root() {
        let output = run(syros().args(["bench", "failover", "--kills", "1", "--kind", "cut"]));
        assert!(!output.status.success() && text(&output).contains("take root"), "{}", text(&output));
    }
}
