//! `syros-lab bench peers`: other systems' servers beside Syros. Where a server is not installed, what would need it says so
//! and is left out; a fake stands in for what can be tested without it.

mod common;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{Scratch, kill, lab, run, text, wait_for, wait_for_end};
use rustix::process::Signal;

/// Whether a program is in PATH; if not, says that what needs it is left out.
fn has(program: &str, package: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    if !is_there {
        // Not with eprintln!, of which nothing is to be seen where a test succeeds.
        let problem = format!("left out: {program} is not in PATH (Debian: apt-get install {package})\n");
        std::io::stderr().write_all(problem.as_bytes()).unwrap();
    }
    is_there
}

/// Short rounds with data in this directory, which the command deletes.
fn peers(directory: &Path, more: &[&str]) -> Command {
    let mut command = lab();
    command.args(["bench", "peers", "--rounds", "1", "--warm-up", "100ms", "--duration", "300ms"]);
    // A directory for temporary files may be in memory.
    command.args(["--keys", "100", "--clients", "4", "--durability", "replicated", "--dir"]).arg(directory);
    command.args(more);
    command
}

/// The lines for machines: one for each system and load, in order, without failures.
fn lines(output: &Output, expected: &[&str]) -> Vec<serde_json::Value> {
    assert!(output.status.success(), "{}", text(output));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<serde_json::Value> =
        report.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let systems: Vec<&str> = lines.iter().filter_map(|line| line["protocol"].as_str()).collect();
    assert_eq!(systems, expected);
    for line in &lines {
        assert!(line["failed"] == 0 && line["ops_per_s"].as_f64() > Some(0.0), "{line}");
        assert!(line["p99_us"].as_f64() >= line["p50_us"].as_f64(), "{line}");
        assert!(line["cpu_us_per_op"].is_number() && line["client_cpu_us_per_op"].is_number(), "{line}");
        for field in ["version", "acknowledged", "consistency", "not_equal", "commit", "machine", "command"] {
            assert!(line[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {line}");
        }
    }
    lines
}

/// Processes whose working directory is below this one.
fn processes_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let of = entries.map(|entry| entry.path());
    of.filter(|path| std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory)))
        .collect()
}

#[test]
fn syros_is_measured_by_its_own_clients_and_by_those_of_redis() {
    let scratch = Scratch::new("peers-syros");
    let (directory, page) = (scratch.0.join("data"), scratch.0.join("page.html"));
    let more =
        ["--systems", "syros,syros-resp", "--workload", "nilext,f", "--json", "--connect", "all", "--html"];
    let output = run(peers(&directory, &more).arg(&page));
    let lines = lines(&output, &["syros", "syros-resp", "syros", "syros-resp"]);
    assert_eq!((&lines[0]["workload"], &lines[3]["workload"]), (&"nilext".into(), &"f".into()));
    assert_eq!((&lines[1]["durability"], &lines[1]["replicas"]), (&"replicated".into(), &3.into()));
    assert!(!directory.exists(), "it cleans up");
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("What is not equal") && page.contains("<svg") && page.ends_with("</html>\n"));
}

#[test]
fn redis_is_measured_in_each_of_its_four_ways() {
    if !has("redis-server", "redis-server") {
        return;
    }
    let scratch = Scratch::new("peers-redis");
    let directory = scratch.0.join("data");
    let systems = ["redis", "redis-async", "redis-wait", "redis-fsync"];
    // Each client with a connection of its own, and all on one.
    for shared in [&[][..], &["--connections", "1"]] {
        let more = ["--systems", "redis,redis-async,redis-wait,redis-fsync", "--workload", "a", "--json"];
        let more = [&more[..], shared].concat();
        let lines = lines(&run(&mut peers(&directory, &more)), &systems);
        let of = |field: &str| lines.iter().map(|line| line[field].to_string()).collect::<Vec<_>>();
        assert_eq!(of("replicas"), ["1", "3", "3", "1"]);
        assert_eq!(of("durability"), ["\"memory\"", "\"memory\"", "\"replicated\"", "\"fsync\""]);
        assert!(of("version").iter().all(|version| version.contains("Redis server v=")));
    }
    assert!(!directory.exists() && processes_in(&directory).is_empty(), "it cleans up");
}

#[test]
fn etcd_is_measured_by_its_own_protocol() {
    if !has("etcd", "etcd-server") {
        return;
    }
    let scratch = Scratch::new("peers-etcd");
    let directory = scratch.0.join("data");
    for connect in ["leader", "all"] {
        let more = ["--systems", "etcd", "--workload", "a", "--connect", connect, "--json"];
        let lines = lines(&run(&mut peers(&directory, &more)), &["etcd"]);
        assert_eq!((&lines[0]["durability"], &lines[0]["replicas"]), (&"fsync".into(), &3.into()));
        assert!(lines[0]["not_equal"].as_str().unwrap().contains("fsyncs all the same"));
    }
    assert!(!directory.exists() && processes_in(&directory).is_empty(), "it cleans up");
}

/// A directory with a program of this name that runs this script.
fn fake(scratch: &Scratch, program: &str, script: &str) -> OsString {
    let path = scratch.0.join("bin").join(program);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.parent().unwrap().as_os_str().to_owned()
}

#[test]
fn a_server_that_does_not_start_has_its_log_shown_and_one_that_is_missing_its_package_named() {
    let scratch = Scratch::new("peers-fake");
    let directory = scratch.0.join("data");
    for (program, system, servers) in [("etcd", "etcd", 3), ("redis-server", "redis", 1)] {
        let path = fake(&scratch, program, "echo \"$0: the address is taken\"; exit 7");
        let output = run(peers(&directory, &["--systems", system]).env("PATH", path));
        let said = text(&output);
        assert!(!output.status.success(), "{said}");
        // Its servers end at once: the machine decides which is seen first.
        let is_named =
            |server| said.contains(&format!("{system}-{server} has ended by itself, exit status: 7"));
        assert!((0..servers).any(is_named), "{said}");
        assert!(said.contains("the address is taken"), "{said}");
        assert!(!directory.exists(), "it cleans up");
    }
    for (system, package) in [("etcd", "etcd-server"), ("redis-wait", "redis-server")] {
        let output = run(peers(&directory, &["--systems", system]).env("PATH", scratch.0.join("empty")));
        let said = text(&output);
        assert!(!output.status.success() && said.contains(&format!("apt-get install {package}")), "{said}");
        assert!(!directory.exists(), "nothing was started");
    }
}

#[test]
fn a_signal_ends_servers_that_do_not_hear_it_themselves() {
    let scratch = Scratch::new("peers-signal");
    let directory = scratch.0.join("data");
    // It never answers.
    let path = fake(&scratch, "etcd", "case $1 in --version) echo fake; exit;; esac\nexec /bin/sleep 600");
    let mut command = peers(&directory, &["--systems", "syros-resp,etcd"]);
    let mut process = command.env("PATH", path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("three members", || (processes_in(&directory).len() == 3).then_some(()));
    kill(process.id().cast_signed(), Signal::INT);
    assert!(!wait_for_end(&mut process).success());
    assert!(processes_in(&directory).is_empty() && !directory.exists(), "it cleans up");
}
