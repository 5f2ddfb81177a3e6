//! Requests over real sockets: what is answered, and that nobody keeps others waiting.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use syros_metrics::{
    Answer, CONNECTIONS_MAX, Distribution, Member, Members, Peer, ReplicaActivity, Server, Source, Told,
    TraceActivity,
};
use syros_resp::{DatabaseReport, ServerReport};

fn told() -> Told {
    let mut report = ServerReport {
        version: "1.2.3".to_owned(),
        status: "normal".to_owned(),
        role: "leader".to_owned(),
        leader: Some(0),
        replica: Some(0),
        disk: "ok",
        fast_updates: 17,
        cpu_millis: [250, 1500],
        answered: vec![("reads_by_leader", 3), ("damaged_frames", 2), ("divergences", 0), ("diverged", 0)],
        ..ServerReport::default()
    };
    report.databases[3] = DatabaseReport { keys: 5, keys_with_expiry: 1 };
    let replica = ReplicaActivity {
        last_entry: 40,
        refusals: vec![("overloaded", 3)],
        view_changes: vec![("leader-silent", 2)],
        syncs: Distribution { sum: 5_000_000, buckets: vec![(1 << 19, 1), (1 << 20, 0), (1 << 21, 2)] },
        ..ReplicaActivity::default()
    };
    let peers = vec![Peer { member: 2, is_connected: true, acknowledged: Some(33) }];
    let ways = vec![("writes_by_quorum", Distribution { sum: 12, buckets: vec![(4, 3), (8, 1)] })];
    let traces = TraceActivity { exported: 70, dropped: vec![("queue", 6)], failures: 1 };
    Told {
        report,
        shared: Arc::default(),
        ways,
        peers,
        replica: Some(replica),
        to_be: None,
        traces: Some(traces),
    }
}

fn start(ask: impl Fn() -> Answer + Send + Sync + 'static) -> Server {
    Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), ask).expect("a port")
}

fn well() -> Server {
    start(|| Answer::Told(Box::new(told())))
}

/// Sends these bytes; what comes until the end.
fn exchange(server: &Server, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address()).expect("it listens");
    stream.write_all(request).expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn get(server: &Server, path: &str) -> String {
    exchange(server, format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").as_bytes())
}

#[test]
fn metrics_are_told_with_units_and_labels() {
    let answer = get(&well(), "/metrics");
    let (head, body) = answer.split_once("\r\n\r\n").expect("head and body");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    for line in [
        "syros_build_info{version=\"1.2.3\"} 1.0",
        "# UNIT syros_cpu_seconds seconds",
        "syros_cpu_seconds_total{mode=\"user\"} 1.5",
        "syros_role{role=\"leader\"} 1.0",
        "syros_role{role=\"follower\"} 0.0",
        "syros_has_leader 1.0",
        "syros_updates_total{path=\"fast\"} 17.0",
        "syros_operations_total{way=\"reads_by_leader\"} 3.0",
        "syros_damaged_frames_total 2.0",
        "syros_trace_spans_exported_total 70.0",
        "syros_trace_spans_dropped_total{reason=\"queue\"} 6.0",
        "syros_trace_export_failures_total 1.0",
        "syros_keys{database=\"3\"} 5.0",
        "syros_disk_state{state=\"ok\"} 1.0",
        "syros_peer_connected{member=\"2\"} 1.0",
        "syros_operation_duration_seconds_count{way=\"writes_by_quorum\"} 4",
        "syros_peer_lag_entries{member=\"2\"} 7.0",
        "syros_operations_refused_total{reason=\"overloaded\"} 3.0",
        "syros_view_changes_total{reason=\"leader-silent\"} 2.0",
        "syros_log_sync_duration_seconds_sum 5.0",
        "syros_log_sync_duration_seconds_bucket{le=\"0.524288\"} 1",
        "syros_log_sync_duration_seconds_bucket{le=\"1.048576\"} 1",
        "syros_log_sync_duration_seconds_bucket{le=\"+Inf\"} 3",
    ] {
        assert!(body.lines().any(|found| found == line), "{line} is not in:\n{body}");
    }
    // The format allows each metric once.
    let mut named: Vec<&str> = body.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let all = named.len();
    named.sort_unstable();
    named.dedup();
    assert_eq!(named.len(), all);
}

#[test]
fn a_gateway_has_no_metrics_of_a_member() {
    let server = start(|| {
        let mut told = told();
        (told.report.replica, told.report.disk, told.replica) = (None, "", None);
        Answer::Told(Box::new(told))
    });
    let body = get(&server, "/metrics");
    for absent in ["syros_disk_state", "syros_keys ", "syros_keys{", "syros_applied_entry"] {
        assert!(!body.contains(absent), "{absent}");
    }
}

/// A source whose members are asked.
struct Group(Answer);

impl Source for Group {
    fn ask(&self) -> Answer {
        self.0.clone()
    }

    fn ask_members(&self, addresses: &[String], own: Option<u8>) -> Members {
        assert_eq!(own, Some(0), "it asks itself in another way");
        let answer =
            |address: &String| Member { answer: Some(Err("gone".to_owned())), ..Member::at(address) };
        Members { all: addresses.iter().map(answer).collect(), age: Duration::ZERO }
    }
}

/// The status, the headers and the body of what comes for a path under this name.
fn get_as(server: &Server, host: &str, path: &str) -> (u16, String, String) {
    let answer = exchange(server, format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").expect("head and body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, head.to_owned(), body.to_owned())
}

fn group() -> Server {
    let mut told = told();
    told.report.replica_addresses = vec!["db0:7379".to_owned(), "db1:7379".to_owned()];
    Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), Group(Answer::Told(Box::new(told)))).expect("a port")
}

#[test]
fn the_dashboard_is_whole_and_asks_for_nothing_from_elsewhere() {
    let server = group();
    for path in [
        "/",
        "/dashboard",
        "/dashboard.css",
        "/icon.svg",
        "/dashboard.js",
        "/draw.js",
        "/history.js",
        "/alerts.js",
        "/runbooks.md",
    ] {
        let (status, head, body) = get_as(&server, "127.0.0.1:9121", path);
        assert_eq!(status, 200, "{path}");
        assert!(
            head.contains("Content-Security-Policy: default-src 'none'; script-src 'self'"),
            "{path}: {head}"
        );
        assert!(head.contains("X-Content-Type-Options: nosniff\r\n"), "{path}: {head}");
        assert!(!head.contains("Access-Control"), "{path}: {head}");
        let is_from_elsewhere = |link: &str| !link.starts_with("www.w3.org/2000/svg");
        assert!(!body.split("://").skip(1).any(is_from_elsewhere), "{path} names another place");
        for unsafe_use in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!body.contains(unsafe_use), "{path} has {unsafe_use}");
        }
    }
    // The policy allows no script and no style in the page.
    let (_, _, page) = get_as(&server, "localhost", "/");
    assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick="));
    for script in page.split("<script").skip(1) {
        assert!(script.contains("src=\"") && script.contains("></script>"), "{script}");
    }
}

#[test]
fn the_status_is_one_object_of_json() {
    let (status, head, body) = get_as(&group(), "localhost:9121", "/status.json");
    assert_eq!(status, 200, "{body}");
    assert!(head.contains("Content-Type: application/json\r\n"), "{head}");
    let json: serde_json::Value = serde_json::from_str(&body).expect("it is JSON");
    assert_eq!(json["members"][0]["role"], "leader");
    assert_eq!(json["members"][1]["problem"], "gone");
    assert_eq!(json["answered"]["reads_by_leader"], 3);
    assert_eq!(json["own"]["refused"]["overloaded"], 3);
    let starting = start(|| Answer::Starting);
    assert_eq!(get_as(&starting, "localhost", "/status.json").0, 503);
    // The page is there, and says that it hears nothing.
    assert_eq!(get_as(&starting, "localhost", "/").0, 200);
}

/// A page of a stranger whose name leads here (DNS rebinding) reads nothing that is for people.
#[test]
fn names_of_strangers_get_no_status() {
    let server = group();
    for (host, expected) in
        [("db1:9121", 200), ("[::1]:9121", 200), ("evil.example", 421), ("evil.example:9121", 421), ("", 421)]
    {
        assert_eq!(get_as(&server, host, "/status.json").0, expected, "{host}");
    }
    let targets =
        exchange(&server, b"GET http://evil.example/status.json HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(targets.starts_with("HTTP/1.1 421"), "{targets}");
    let without = exchange(&server, b"GET /status.json HTTP/1.0\r\n\r\n");
    assert!(without.starts_with("HTTP/1.1 421"), "{without}");
    // Prometheus may come by any name.
    assert_eq!(get_as(&server, "metrics.example", "/metrics").0, 200);
}

#[test]
fn a_process_lives_and_is_ready_or_says_why_not() {
    let status = |server: &Server, path| get(server, path)["HTTP/1.1 ".len()..][..3].to_owned();
    let server = well();
    assert_eq!(
        ["/livez", "/readyz", "/healthz", "/metrics", "/"].map(|path| status(&server, path)),
        ["200"; 5]
    );
    assert_eq!(status(&server, "/metrics?collect=all"), "200");
    let starting = start(|| Answer::Starting);
    assert_eq!(["/livez", "/readyz", "/metrics"].map(|path| status(&starting, path)), ["200", "503", "503"]);
    let silent = start(|| Answer::Silent);
    assert_eq!(["/livez", "/readyz", "/metrics"].map(|path| status(&silent, path)), ["503"; 3]);
    let cut_off = start(|| {
        let mut told = told();
        (told.report.status, told.report.leader) = ("no-quorum".to_owned(), None);
        told.report.disk = "full";
        Answer::Told(Box::new(told))
    });
    assert_eq!(["/livez", "/readyz"].map(|path| status(&cut_off, path)), ["200", "503"]);
    let answer = get(&cut_off, "/readyz");
    assert!(answer.ends_with("\r\n\r\nits status is no-quorum\nits disk is full\n"), "{answer}");
}

#[test]
fn what_is_no_request_gets_an_error() {
    let server = well();
    let status = |request: &[u8]| {
        let answer = exchange(&server, request);
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status(b"GET /nosuch HTTP/1.1\r\n\r\n"), "404");
    assert_eq!(status(b"GET http://here:1/livez?x HTTP/1.1\r\n\r\n"), "200");
    assert_eq!(status(b"GET http://here HTTP/1.1\r\n\r\n"), "200");
    assert_eq!(status(b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), "405");
    assert_eq!(status(b"PING\r\n\r\n"), "400");
    assert_eq!(status(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), "400", "TLS");
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(9_000));
    assert_eq!(status(long.as_bytes()), "431");
    let many: String = (0..100).map(|number| format!("h{number}: x\r\n")).collect();
    assert_eq!(status(format!("GET / HTTP/1.1\r\n{many}\r\n").as_bytes()), "400");
    let answer = exchange(&server, b"HEAD /livez HTTP/1.1\r\n\r\n");
    assert!(answer.contains("Content-Length: 3\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    // A client that says nothing and goes.
    drop(TcpStream::connect(server.address()).expect("it listens"));
    assert_eq!(status(b"GET /livez HTTP/1.0\r\n\r\n"), "200");
}

#[test]
fn silent_clients_keep_nobody_waiting_and_are_let_go() {
    let server = well();
    let mut silent: Vec<TcpStream> =
        (0..CONNECTIONS_MAX - 1).map(|_| TcpStream::connect(server.address()).expect("it listens")).collect();
    silent.iter_mut().for_each(|stream| stream.write_all(b"GET /met").expect("it is read"));
    let began = Instant::now();
    assert!(get(&server, "/livez").starts_with("HTTP/1.1 200"));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // Each is closed, whether it reads or not.
    for mut stream in silent {
        let mut rest = Vec::new();
        // A reset is an end, too.
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty());
    }
}

#[test]
fn the_oldest_silent_connection_gives_way() {
    let server = well();
    let mut silent: Vec<TcpStream> =
        (0..2 * CONNECTIONS_MAX).map(|_| TcpStream::connect(server.address()).expect("it listens")).collect();
    let began = Instant::now();
    for _ in 0..3 {
        assert!(get(&server, "/livez").starts_with("HTTP/1.1 200"));
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // A newer one than those that gave way may still ask.
    let newest = silent.last_mut().expect("there are some");
    newest.write_all(b"GET /livez HTTP/1.1\r\n\r\n").expect("it is read");
    let mut answer = String::new();
    newest.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn no_more_connections_are_served_than_may_be() {
    let asked = Arc::new((Mutex::new(0), Condvar::new()));
    let counted = Arc::clone(&asked);
    let (over, is_over) = sync_channel::<()>(0);
    let is_over = Mutex::new(is_over);
    let server = start(move || {
        *counted.0.lock().expect("no panic") += 1;
        counted.1.notify_one();
        // They wait for an answer together, until the test is over.
        let _ = is_over.lock().expect("no panic").recv();
        Answer::Starting
    });
    let ask = || {
        let mut stream = TcpStream::connect(server.address()).expect("it listens");
        let _ = stream.write_all(b"GET /livez HTTP/1.1\r\n\r\n");
        stream
    };
    let _waiting: Vec<TcpStream> = (0..CONNECTIONS_MAX).map(|_| ask()).collect();
    let all = asked.1.wait_while(asked.0.lock().expect("no panic"), |asked| *asked < CONNECTIONS_MAX);
    drop(all.expect("no panic"));
    // They have sent whole requests, and keep their places: this one is closed without an answer.
    let mut rest = Vec::new();
    let _ = ask().read_to_end(&mut rest);
    assert!(rest.is_empty());
    assert_eq!(*asked.0.lock().expect("no panic"), CONNECTIONS_MAX);
    drop(over);
}

#[test]
fn the_port_is_free_again_when_the_server_has_gone() {
    let server = well();
    let address = server.address();
    drop(server);
    assert!(TcpListener::bind(address).is_ok(), "nobody listens any more");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let error =
        Server::start(taken.local_addr().expect("an address"), || Answer::Starting).expect_err("it is taken");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

/// All names that samples may have, of metrics that there are.
fn names_of_samples() -> BTreeSet<String> {
    let mut told = told();
    told.report.data_bytes = Some(1);
    told.report.certificate_expires = Some(1_800_000_000);
    let text = syros_metrics::exposition(told);
    let metrics = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let ends = |kind| match kind {
        "counter" => &["_total"][..],
        "histogram" => &["_bucket", "_count", "_sum"],
        _ => &[""],
    };
    metrics.flat_map(|(name, kind)| ends(kind).iter().map(move |end| format!("{name}{end}"))).collect()
}

/// Names beginning with `syros_` in a text, but for those that a document abbreviates.
fn names_in(text: &str) -> BTreeSet<&str> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(|letter| !is_of_name(letter)).filter(|word| word.starts_with("syros_")).collect()
}

#[test]
fn alerts_dashboard_and_documents_name_metrics_that_exist() {
    let samples = names_of_samples();
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
    for (file, of_data) in [
        ("operate/alerts.yml", true),
        ("operate/grafana.json", true),
        ("OPERATING.md", false),
        ("operate/runbooks.md", false),
    ] {
        let text = std::fs::read_to_string(format!("{docs}{file}")).expect("it is there");
        let named = names_in(&text);
        assert!(named.len() > 10, "{file}");
        for name in named {
            // Documents name histograms without what is said of them, and modules of the program.
            let is_known = samples.contains(name)
                || (!of_data && (samples.contains(&format!("{name}_bucket")) || name == "syros_runtime"));
            assert!(is_known, "{file}: {name}");
        }
    }
}
