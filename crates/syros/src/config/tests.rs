//! The sample file is the documentation: it must be complete and tell the truth.

use super::*;
use std::collections::BTreeSet;

const SAMPLE: &str = include_str!("../../../../docs/syros.sample.toml");

/// The sample with every `# key = value` line made active.
fn uncommented() -> String {
    let is_key = |line: &str| {
        line.strip_prefix("# ").and_then(|rest| rest.split_once(" = ")).is_some_and(|(key, _)| {
            !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        })
    };
    let activate = |line: &str| if is_key(line) { line[2..].to_owned() } else { line.to_owned() };
    SAMPLE.lines().map(activate).collect::<Vec<_>>().join("\n")
}

fn keys_of(text: &str) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for (name, value) in text.parse::<toml::Table>().unwrap() {
        match value {
            toml::Value::Table(section) => {
                keys.extend(section.keys().map(|key| format!("{name}.{key}")));
                keys.insert(name);
            }
            _ => drop(keys.insert(name)),
        }
    }
    keys
}

#[test]
fn sample_has_every_key_with_its_default() {
    let base = Path::new("/etc/syros");
    let commented = parse(SAMPLE, base, None).unwrap();
    let active = parse(&uncommented(), base, None).unwrap();
    assert_eq!(keys_of(&uncommented()), commented.keys.iter().cloned().collect::<BTreeSet<_>>());
    assert_eq!(format!("{:?}", commented.node), format!("{:?}", active.node), "a default is not as written");
    assert_eq!(commented.log, active.log);
    assert_eq!(active.node.directory, Path::new("/etc/syros/syros-data/node-0"));
}

#[test]
fn every_key_refuses_a_wrong_type_and_names_itself() {
    let text = uncommented();
    for name in keys_of(&text) {
        let mut table = text.parse::<toml::Table>().unwrap();
        // No key is a list of numbers.
        let wrong = toml::Value::Array(vec![toml::Value::Integer(1)]);
        match name.split_once('.') {
            Some((section, key)) => {
                let section = table.get_mut(section).and_then(toml::Value::as_table_mut).unwrap();
                section.insert(key.to_owned(), wrong);
            }
            None => drop(table.insert(name.clone(), wrong)),
        }
        let error = parse(&table.to_string(), Path::new(""), None).unwrap_err();
        assert_eq!(error.key, name, "{error}");
        assert!(error.problem.contains("[1] is not"), "{error}");
    }
}

/// The first line that sets `key` in `section` is replaced.
fn with(section: &str, key: &str, value: &str) -> String {
    let mut table = uncommented().parse::<toml::Table>().unwrap();
    let value = format!("x = {value}").parse::<toml::Table>().unwrap().remove("x").unwrap();
    let table_of = if section.is_empty() {
        &mut table
    } else {
        table.get_mut(section).and_then(toml::Value::as_table_mut).unwrap()
    };
    table_of.insert(key.to_owned(), value);
    table.to_string()
}

#[test]
fn values_out_of_range_are_named_with_the_range() {
    for (section, key, value, complaint) in [
        ("", "cluster", "0", "0 is not a whole number from 1 to 9223372036854775807"),
        ("", "cluster", "-1", "-1 is not a whole number"),
        ("", "replica", "3", "3 is not a whole number from 0 to 2"),
        ("", "replicas", "[\"a:1\", \"b:2\"]", "1, 3, 5, 7 or 9 replicas, not 2"),
        ("", "replicas", "[]", "1, 3, 5, 7 or 9 replicas, not 0"),
        ("", "replicas", "[\"a:1\", \"b:2\", \"a:1\"]", "a:1 is listed twice"),
        (
            "",
            "replicas",
            "[\"localhost:1\", \"b:2\", \"127.0.0.1:1\"]",
            "replica 0, localhost:1, and replica 2, 127.0.0.1:1, are one address",
        ),
        ("", "replicas", "[\"a:1\", \"b\", \"c:3\"]", "\"b\" is not host:port"),
        ("", "replicas", "[\"a:1\", \":2\", \"c:3\"]", "\":2\" is not host:port"),
        ("", "replicas", "[\"a:1\", \"b:0\", \"c:3\"]", "\"b:0\" is not host:port"),
        ("", "replicas", "[\"a:1\", \"b:70000\", \"c:3\"]", "\"b:70000\" is not host:port"),
        ("", "protocol", "\"raft\"", "one of \"unreplicated\", \"vr-nobatch\", \"vr\""),
        ("", "protocol", "\"unreplicated\"", "\"unreplicated\" has 1 replica, not 3"),
        ("", "fast-quorum", "\"minority\"", "\"supermajority-comm\", \"curp\""),
        ("", "durability", "\"hope\"", "one of \"fsync\", \"replicated\""),
        ("listen", "redis", "\"localhost\"", "not an IP address and port"),
        ("listen", "replicas", "\"7379\"", "not an IP address and port"),
        ("timing", "heartbeat", "\"0ms\"", "a duration from 1ms to 10s"),
        ("timing", "heartbeat", "\"200ms\"", ""),
        ("timing", "lease", "\"30ms\"", "twice the heartbeat"),
        ("timing", "suspect-after", "\"100ms\"", "less than the lease"),
        ("timing", "view-change-timeout", "\"1h\"", "from 1ms to 2m"),
        ("timing", "resend", "\"fast\"", "\"fast\" is not a duration"),
        ("timing", "order-delay", "\"2s\"", "from 0s to 1s"),
        ("timing", "fetch-delay", "\"0us\"", "from 1us to 1s"),
        ("timing", "forward-after", "\"2m\"", "from 1ms to 1m"),
        ("timing", "clock-skew", "\"48h\"", "from 1ms to 1d"),
        ("timing", "clock-drift-ppm", "500001", "from 0 to 500000"),
        ("timing", "session-timeout", "\"1s\"", "from 10s to 7d"),
        ("timing", "operation-timeout", "\"1ms\"", "from 100ms to 10m"),
        ("timing", "sync-after", "\"1m\"", "from 1ms to 10s"),
        ("", "directory", "\"\"", "names no directory"),
        ("listen", "redis", "\"127.0.0.1:0\"", "with a port from 1 to 65535"),
        ("limits", "connections", "0", "from 1 to 1000000"),
        ("limits", "in-flight", "0", "from 1 to 16777216"),
        ("limits", "sessions", "0", "from 1 to 16777216"),
        ("limits", "batch", "100000", "from 1 to 65536"),
        ("limits", "dlog-length", "0", "from 1 to 16777216"),
        ("limits", "waiting", "0", "from 1 to 16777216"),
        ("limits", "log-memory", "\"1MiB\"", "a size from 64MiB to 1TiB"),
        ("limits", "client-output", "1000", "a size from 1MiB to 1GiB"),
        ("limits", "client-memory", "\"1MiB\"", "\"auto\" or a size from 64MiB to 1TiB"),
        ("memory", "maxmemory", "\"much\"", "\"auto\" or a size from 0 to 1024TiB"),
        ("memory", "maxmemory-policy", "\"allkeys-ttl\"", "one of \"noeviction\""),
        ("memory", "maxmemory-samples", "0", "from 1 to 64"),
        ("disk", "wal-segment", "\"1KiB\"", "a size from 64KiB to 1GiB"),
        ("disk", "scrub-interval", "\"often\"", "a duration from 0s to"),
        ("disk", "scrub-rate", "\"1KiB\"", "a size from 64KiB to 1TiB"),
        ("disk", "reserve", "\"some\"", "a size from 0 to 1TiB"),
        ("traces", "endpoint", "\"https://collector:4318\"", "let a collector on this machine"),
        ("traces", "endpoint", "\"collector:4318\"", "is not a URL"),
        ("traces", "sample", "1.5", "a number from 0 to 1"),
        ("traces", "sample", "-0.1", "a number from 0 to 1"),
        ("traces", "service-name", "\"\"", "has 0 bytes; from 1 to 256 are allowed"),
        ("traces", "attributes", "[\"a\"]", "\"a\" is not NAME=VALUE"),
        ("log", "level", "\"chatty\"", "one of \"error\", \"warn\", \"info\", \"debug\""),
        ("log", "level", "\"info,syros_wal=loud\"", "\"loud\" is not one of \"error\""),
        ("log", "level", "\"info,=debug\"", "\"\" is not the path of a module"),
        ("log", "format", "\"xml\"", "one of \"human\", \"json\""),
        ("log", "lines", "-1", "from 0 to 1000000"),
        ("log", "window", "\"1ms\"", "a duration from 1s to 1d"),
    ] {
        let error = parse(&with(section, key, value), Path::new(""), None).unwrap_err();
        // A longer heartbeat is fine in itself: it is the lease that no longer fits.
        let key = if complaint.is_empty() { "lease" } else { key };
        assert_eq!(error.key.rsplit('.').next(), Some(key), "{error}");
        assert!(error.problem.contains(complaint), "{error}");
    }
}

#[test]
fn a_protocol_decides_defaults_and_nothing_else() {
    let read = |text: &str| parse(text, Path::new(""), None).unwrap().node;
    let settings = |node: &NodeConfig| {
        let (core, front) = (&node.replica, &node.front);
        (
            core.configuration.mode,
            core.settings.batch_max,
            node.engine.execution_threads,
            front.client.read_policy,
            front.client.write_policy,
        )
    };
    let base = "cluster = 1\nreplicas = [\"a:1\", \"b:2\", \"c:3\"]\nreplica = 0\ndirectory = \"d\"\n\
                listen.replicas = \"127.0.0.1:1\"\n";
    let [usual, batch] = ["", "limits.batch = 7\n"].map(|more| read(&format!("{base}{more}")));
    assert_eq!(settings(&usual), settings(&read(&format!("{base}protocol = \"default\"\n"))));
    for protocol in Protocol::ALL.iter().filter(|protocol| !protocol.is_alone) {
        let text = format!("{base}protocol = \"{protocol}\"\n");
        let threads = match protocol.execution {
            Execution::Serial => 1,
            Execution::Parallel => usual.engine.execution_threads,
        };
        let batch_max = protocol.batch.map_or(usual.replica.settings.batch_max, usize::from);
        let expected = (protocol.fast_quorum, batch_max, threads, protocol.reads, protocol.writes);
        assert_eq!(settings(&read(&text)), expected, "{protocol}");
        assert_eq!(
            read(&format!("{text}limits.batch = 7\n")).replica.settings.batch_max,
            batch.replica.settings.batch_max
        );
    }
}

#[test]
fn a_replica_alone_keeps_no_log_for_others() {
    let kept = |replicas: &str, more: &str| {
        let text = format!(
            "cluster = 1\nreplicas = [{replicas}]\nreplica = 0\ndirectory = \"d\"\n\
             listen.replicas = \"127.0.0.1:1\"\n{more}"
        );
        parse(&text, Path::new(""), None).unwrap().node.replica.settings.log_keep_bytes
    };
    assert_eq!(kept("\"a:1\"", ""), 0);
    assert_eq!(kept("\"a:1\"", "limits.log-keep = \"1MiB\"\n"), 1 << 20);
    assert!(kept("\"a:1\", \"b:2\", \"c:3\"", "") > 1 << 20);
}

#[test]
fn missing_keys_are_named() {
    for key in ["cluster", "replicas", "replica", "directory"] {
        let mut table = uncommented().parse::<toml::Table>().unwrap();
        table.remove(key);
        let error = parse(&table.to_string(), Path::new(""), None).unwrap_err();
        assert_eq!((error.key.as_str(), error.problem.contains("missing")), (key, true), "{error}");
    }
    let names =
        with("", "replicas", "[\"a:1\", \"b:2\", \"c:3\"]").replace("replicas = \"127.0.0.1:7379\"", "");
    let error = parse(&names, Path::new(""), None).unwrap_err();
    assert_eq!(error.key, "listen.replicas", "{error}");
}

#[test]
fn what_the_longest_delays_need_is_within_the_limits() {
    let regions = "replicas = ['a', 'b', 'b']\nclients = ['a']\n[[line]]\nwithin-each = true\nrtt-ms = 1\n\
                   [[line]]\nbetween = ['a', 'b']\ndelay-ms = 10000\n";
    let regions = syros_regions::Regions::parse(regions).unwrap();
    let timing = syros_cli::regions::timing_of(Some(&regions));
    let node = format!("cluster = 1\nreplica = 0\nreplicas = [\"127.0.0.1:1\"]\ndirectory = \"d\"\n{timing}");
    assert!(timing.contains("lease"), "{timing}");
    assert!(parse(&node, Path::new("/"), None).is_ok(), "{timing}");
}
