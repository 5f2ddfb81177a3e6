//! The instruments: check, sim, bench.

mod common;

use common::{Scratch, free_ports, lab, lab_alone, run, server, text};
use std::process::{Command, Stdio};

#[test]
fn mixed_quorums_are_checked_and_what_cannot_be_is_named() {
    let check = |more: &[&str]| run(lab_alone().args(["check", "recovery"]).args(more));
    let output = check(&["--replicas", "3", "--rule", "mixed", "--updates", "w0,c01", "--active", "2"]);
    assert!(
        output.status.success() && text(&output).contains("configurations, 0 violations"),
        "{}",
        text(&output)
    );
    for (options, problem) in [
        (["--rule", "majority", "--active", "2"], "--active and --updates are for --rule mixed"),
        (["--rule", "mixed", "--active", "2"], "--active 2: of 5 replicas 3 to 5 are active"),
        (["--rule", "mixed", "--replicas", "9"], "--replicas 9: the rule mixed is checked for 7 at most"),
        (["--rule", "mixed", "--updates", "w0,x1"], "\"x1\" is no update: w0, w1"),
        (["--rule", "mixed", "--updates", "w0,w0,w0,w0,w0"], "--updates names 5: the most is 4"),
    ] {
        let output = check(&options);
        assert!(!output.status.success() && text(&output).contains(problem), "{}", text(&output));
    }
}

#[test]
fn the_published_recovery_rule_fails_and_ours_do_not() {
    let check = |rule: &str, replicas: &str, ops: &str| {
        run(lab_alone().args(["check", "recovery", "--replicas", replicas, "--ops", ops, "--rule", rule]))
    };
    let paper = check("paper", "5", "3");
    assert_eq!(paper.status.code(), Some(1), "{}", text(&paper));
    assert!(!text(&paper).contains(" 0 violations"), "{}", text(&paper));
    for (rule, replicas, ops) in [("majority", "3", "3"), ("supermajority", "3", "3"), ("paper", "3", "2")] {
        let output = check(rule, replicas, ops);
        assert!(output.status.success() && text(&output).contains(" 0 violations"), "{}", text(&output));
    }
    assert!(text(&check("majority", "4", "2")).contains("1, 3, 5, 7 or 9 replicas, not 4"));
}

#[test]
fn a_simulated_seed_runs_the_same_twice() {
    let simulate = || text(&run(lab_alone().args(["sim", "--seed", "7"])));
    let hash = |text: &str| text.lines().find(|line| line.contains("trace hash")).map(str::to_owned);
    let first = simulate();
    assert!(first.contains(" 0 violations"), "{first}");
    assert!(hash(&first).is_some() && hash(&first) == hash(&simulate()), "{first}");
    let planted = text(&run(lab_alone().args(["sim", "--list-planted"])));
    assert!(planted.contains("no-conflict-check"), "{planted}");
}

#[test]
fn bench_measures_a_running_cluster() {
    let (scratch, port) = (Scratch::new("bench"), free_ports());
    let program = lab().get_program().to_string_lossy().into_owned();
    let exec = format!(
        "'{program}' bench write --cluster {{cluster}} --writers 8 --connections 2 --warm-up 100ms \
         --duration 500ms --reads-percent 50 --json"
    );
    let mut command = Command::new(server());
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
        let mut command = lab();
        command.args(["bench", "failover", "--kills", "1", "--json", "--kind", kind]);
        let output = run(command.arg("--dir").arg(&directory));
        assert!(output.status.success(), "{}", text(&output));
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        for expected in ["\"kills\":1,", "\"lost_writes\":0,", "\"median_ms\":"] {
            assert!(report.contains(expected), "{expected} is missing in {report}");
        }
        assert!(!directory.exists(), "it cleans up");
    }
    let alone = run(lab().args(["bench", "failover", "--kills", "1", "--replicas", "1"]));
    assert!(!alone.status.success() && text(&alone).contains("nobody can take over"), "{}", text(&alone));
    std::fs::create_dir(&directory).unwrap();
    let output = run(lab().args(["bench", "failover", "--kills", "1"]).arg("--dir").arg(&directory));
    assert!(!output.status.success() && text(&output).contains("exists already"), "{}", text(&output));
}

#[test]
fn bench_cuts_links_only_as_root() {
    if !rustix::process::geteuid().is_root() {
        let output = run(lab().args(["bench", "failover", "--kills", "1", "--kind", "cut"]));
        assert!(!output.status.success() && text(&output).contains("take root"), "{}", text(&output));
    }
}

#[test]
fn bench_measures_what_distance_costs() {
    let scratch = Scratch::new("geo");
    let directory = scratch.0.join("clusters");
    let file = scratch.0.join("regions.toml");
    let description = "replicas = ['far', 'here', 'here']\nclients = ['here']\n\
                       [[line]]\nwithin-each = true\nrtt-ms = 0.1\n[[line]]\nbetween = ['far', 'here']\nrtt-ms = 60\n";
    std::fs::write(&file, description).unwrap();
    let geo = |more: &[&str]| {
        let mut command = lab();
        command.args(["bench", "geo", "--json", "--warm-up", "1s", "--duration", "30s"]);
        command.arg("--dir").arg(&directory).arg("--regions").arg(&file);
        run(command.args(more))
    };
    let output = geo(&["--protocols", "vr,pqr", "--workload", "50%", "--operations", "60", "--keys", "100"]);
    assert!(output.status.success(), "{}", text(&output));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |line: &str, name: &str| -> f64 {
        let after = line.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{name}: {line}")).1;
        after.split([',', '}']).next().unwrap().parse().unwrap()
    };
    let [vr, pqr] = report.lines().collect::<Vec<_>>()[..] else { panic!("{report}") };
    for (line, protocol) in [(vr, "vr"), (pqr, "pqr")] {
        assert!(line.starts_with(&format!("{{\"protocol\":\"{protocol}\",\"workload\":\"a\"")), "{line}");
        assert!(number(line, "operations") >= 60.0 && number(line, "failed") == 0.0, "{line}");
        // To the leader, from it to a follower, and back.
        assert!(number(line, "write_p50_us") >= 120_000.0, "{line}");
    }
    assert!(number(vr, "read_p50_us") >= 60_000.0, "{vr}");
    assert!(vr.contains("\"read_paths\":{\"leader\":1.0000}"), "{vr}");
    assert!(pqr.contains("\"quorum\":"), "{pqr}");
    assert!(!directory.exists(), "it cleans up");

    for (more, complaint) in [
        (&["--protocols", "raft"][..], "there is no protocol 'raft'; there are unreplicated, vr-nobatch"),
        (&["--protocols", "unreplicated"], "unreplicated has 1 replica, and "),
        (&["--workload", "d"], "'d' is no workload"),
        (&["--distribution", "zipfian:99"], "zipfian:S with S from 0 to 10"),
        (&["--keys", "0"], "0 is not in 1.."),
        (&["--clients", "0"], "number of clients must be at least 1"),
        (&["--clients", "100000"], "the limit is 2048"),
        (&["--value-bytes", "2GiB"], "above the limit"),
    ] {
        let output = geo(more);
        assert!(!output.status.success() && text(&output).contains(complaint), "{}", text(&output));
        assert!(!directory.exists(), "it started something for {more:?}");
    }
}

/// As in `syros-lab sim .. | head -1`.
#[test]
fn a_command_whose_output_nobody_reads_ends_quietly() {
    let mut command = lab_alone();
    command.args(["check", "recovery", "--replicas", "3", "--ops", "2", "--rule", "majority"]);
    // Closed before it starts: it may be done before this test goes on.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let process = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let ended = process.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(141));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}
