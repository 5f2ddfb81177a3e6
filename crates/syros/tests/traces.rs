//! Traces of operations that three nodes and a gateway export, as a collector gets them.

mod common;

use common::nodes::Nodes;
use common::{PATIENCE, Redis, Scratch, free_ports, kill, syros, wait_for, wait_for_end};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Clocks of two processes on one machine, read one after the other, may differ by this many nanoseconds.
const CLOCKS: u64 = 200_000;

/// A clock that is read in microseconds, and two clocks that are read one after the other, are off by no more nanoseconds.
const READING: u64 = 10_000;

/// What no trace may hold.
const KEY: &str = "key-that-nobody-else-knows";
const VALUE: &str = "value-that-nobody-else-knows";

/// A span as the collector gets it.
#[derive(Clone, Debug)]
struct Span {
    trace: String,
    id: String,
    parent: Option<String>,
    name: String,
    start: u64,
    end: u64,
    attributes: BTreeMap<String, Value>,
    /// The process that has exported it.
    instance: String,
}

impl Span {
    fn text(&self, attribute: &str) -> Option<&str> {
        self.attributes.get(attribute).and_then(Value::as_str)
    }
}

/// Attributes as OTLP has them: all values as texts, but for flags.
fn attributes(of: &Value) -> BTreeMap<String, Value> {
    let pair = |attribute: &Value| {
        let value = attribute["value"].as_object().unwrap().values().next().unwrap();
        (attribute["key"].as_str().unwrap().to_owned(), value.clone())
    };
    of["attributes"].as_array().unwrap().iter().map(pair).collect()
}

/// A collector of the test's own.
struct Collector {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bodies = Arc::<Mutex<Vec<String>>>::default();
        let collected = Arc::clone(&bodies);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let collected = Arc::clone(&collected);
                std::thread::spawn(move || serve(&stream.unwrap(), &collected));
            }
        });
        Self { address, bodies }
    }

    /// All spans so far.
    fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for body in self.bodies.lock().unwrap().iter() {
            let body: Value = serde_json::from_str(body).unwrap();
            let of_process = &body["resourceSpans"][0];
            let resource = attributes(&of_process["resource"]);
            assert_eq!(
                (&resource["service.name"], &resource["deployment"]),
                (&"cache".into(), &"test".into())
            );
            for span in of_process["scopeSpans"][0]["spans"].as_array().unwrap() {
                let text = |name: &str| span[name].as_str().map(str::to_owned);
                let time = |name| text(name).unwrap().parse().unwrap();
                spans.push(Span {
                    trace: text("traceId").unwrap(),
                    id: text("spanId").unwrap(),
                    parent: text("parentSpanId"),
                    name: text("name").unwrap(),
                    start: time("startTimeUnixNano"),
                    end: time("endTimeUnixNano"),
                    attributes: attributes(span),
                    instance: resource["service.instance.id"].as_str().unwrap().to_owned(),
                });
            }
        }
        spans
    }

    /// Runs one operation, and waits for the trace that comes of it: the root has this name, and so many replicas have a part.
    fn trace_of(&self, name: &str, replicas: usize, operation: impl FnOnce()) -> Vec<Span> {
        // Spans of operations before it may come later.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        operation();
        wait_for(&format!("a trace of {name}"), || {
            let spans = self.spans();
            let is_root = |span: &&Span| span.parent.is_none() && span.name == name;
            let root =
                spans.iter().find(|span| is_root(span) && span.start + READING >= since)?.trace.clone();
            let trace: Vec<Span> = spans.into_iter().filter(|span| span.trace == root).collect();
            (trace.iter().filter(|span| span.name == "replica").count() == replicas).then_some(trace)
        })
    }
}

fn serve(stream: &TcpStream, collected: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        collected.lock().unwrap().push(String::from_utf8(body).unwrap());
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}";
        if (&*stream).write_all(answer).is_err() {
            return;
        }
    }
}

/// Three nodes, each with these sections.
fn start(nodes: &mut Nodes, more: &str) {
    (0..3).for_each(|node| nodes.configure(node, node, "", more));
    nodes.start_all(&["--bootstrap"]);
    (0..3).for_each(|node| nodes.set(node, "warm", "up"));
}

fn children<'a>(trace: &'a [Span], of: &Span) -> Vec<&'a Span> {
    trace.iter().filter(|span| span.parent.as_deref() == Some(&of.id)).collect()
}

/// Checks the trace of an update that a client has sent to the process `instance`, and that all three replicas have executed.
fn check(trace: &[Span], instance: &str) {
    let ids: BTreeSet<&str> = trace.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), trace.len(), "each span has an id of its own: {trace:#?}");
    for span in trace {
        assert!(span.start <= span.end, "{span:?}");
        if let Some(parent) = &span.parent {
            assert!(ids.contains(parent.as_str()), "the parent of {span:?} is missing in {trace:#?}");
        }
    }
    let [root] = trace.iter().filter(|span| span.parent.is_none()).collect::<Vec<_>>()[..] else {
        panic!("one root: {trace:#?}");
    };
    assert_eq!(root.instance, instance);
    assert_eq!(root.text("db.system.name"), Some("syros"));
    assert_eq!(root.text("db.namespace"), Some("0"));
    assert!(root.text("syros.way").unwrap().starts_with("writes_"), "{root:?}");
    let replicas = children(trace, root);
    let instances: BTreeSet<&str> = replicas.iter().map(|replica| replica.instance.as_str()).collect();
    assert_eq!((replicas.len(), instances.len()), (3, 3), "{trace:#?}");
    let leaders = replicas.iter().filter(|replica| replica.text("syros.role") == Some("leader"));
    assert_eq!(leaders.count(), 1);
    for replica in replicas {
        assert_eq!(replica.name, "replica");
        assert_eq!(replica.text("syros.operation"), root.text("syros.operation"));
        assert!(root.start <= replica.start + CLOCKS, "{root:?} {replica:?}");
        let stages = children(trace, replica);
        let names: BTreeSet<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
        for needed in ["order", "append", "commit", "execute"] {
            assert!(names.contains(needed), "{needed} is missing in {names:?}");
        }
        for stage in &stages {
            assert_eq!(stage.instance, replica.instance);
            assert!(replica.start <= stage.start && stage.end <= replica.end, "{replica:?} {stage:?}");
            assert!(children(trace, stage).is_empty());
        }
        let of = |name: &str| stages.iter().find(|stage| stage.name == name).unwrap();
        assert_eq!(of("order").end, of("append").start);
        assert_eq!(of("commit").end, of("execute").start);
    }
}

/// Checks that the answers of replicas are those that the update was answered by: `fast`, among others, if a quorum of them had
/// it, and else the leader's, which has executed it.
fn check_answers(trace: &[Span], leader: &Span, fast: &str) {
    let root = trace.iter().find(|span| span.parent.is_none()).unwrap();
    let answers: Vec<&Span> = trace.iter().filter(|span| span.name == "answer").collect();
    let is_in_time = |kind: &str| {
        let is_one = |answer: &&&Span| answer.text("syros.answer") == Some(kind);
        answers.iter().filter(is_one).any(|answer| answer.end <= root.end + CLOCKS)
    };
    if root.text("syros.way") == Some("writes_by_quorum") {
        return assert!(is_in_time("ok") && is_in_time(fast), "{trace:#?}");
    }
    assert!(is_in_time("committed"), "{trace:#?}");
    let executed = |span: &&Span| span.name == "execute" && span.instance == leader.instance;
    let executed = trace.iter().find(executed).unwrap();
    assert!(executed.end <= root.end + CLOCKS, "{executed:?} {root:?}");
}

#[test]
fn one_operation_is_one_trace_from_all_nodes() {
    let collector = Collector::start();
    let scratch = Scratch::new("traces");
    let mut nodes = Nodes::new(&scratch);
    let traces = format!(
        "[traces]\nendpoint = \"http://{}\"\nsample = 1\nservice-name = \"cache\"\nattributes = [\"deployment=test\"]",
        collector.address
    );
    start(&mut nodes, &traces);
    let mut redis: Vec<Redis> = (0..3).map(|node| Redis::connect(nodes.port + node)).collect();
    let instance = |node: usize| format!("{:016x}/{node}", 7);

    // The traces say who leads.
    let trace = collector.trace_of("SET", 3, || assert_eq!(redis[0].ask(&["SET", "who", "leads"]), "+OK"));
    check(&trace, &instance(0));
    let leader = trace.iter().find(|span| span.text("syros.role") == Some("leader")).unwrap();
    let follower = (0..3).find(|node| leader.instance != instance(*node)).unwrap();
    let redis = &mut redis[follower];

    let trace = collector.trace_of("SET", 3, || assert_eq!(redis.ask(&["SET", KEY, VALUE]), "+OK"));
    check(&trace, &instance(follower));
    check_answers(&trace, leader, "ok");

    let trace = collector.trace_of("INCRBY", 3, || assert_eq!(redis.ask(&["INCR", "counter"]), ":1"));
    check(&trace, &instance(follower));
    check_answers(&trace, leader, "evaluated");

    // Messages of reads do not say of which session they are: the front end tells of them alone.
    let trace = collector.trace_of("GET", 0, || assert_eq!(redis.ask(&["GET", KEY]), VALUE));
    let [root] = &trace[..] else { panic!("{trace:#?}") };
    assert!(root.text("syros.way").unwrap().starts_with("reads_"), "{root:?}");
    assert_eq!((root.text("error.type"), root.text("syros.operation")), (None, None));

    let trace = collector.trace_of("INCRBY", 3, || assert!(redis.ask(&["INCR", KEY]).starts_with("-ERR")));
    check(&trace, &instance(follower));
    let root = trace.iter().find(|span| span.parent.is_none()).unwrap();
    assert_eq!((root.text("error.type"), root.text("db.response.status_code")), (Some("ERR"), Some("ERR")));

    for body in collector.bodies.lock().unwrap().iter() {
        assert!(!body.contains(KEY) && !body.contains(VALUE), "{body}");
    }
}

#[test]
fn the_front_end_of_a_gateway_is_the_root_of_its_traces() {
    let collector = Collector::start();
    let scratch = Scratch::new("traces-gateway");
    let mut nodes = Nodes::new(&scratch);
    let endpoint = format!("http://{}", collector.address);
    let name = "service-name = \"cache\"\nattributes = [\"deployment=test\"]";
    start(&mut nodes, &format!("[traces]\nendpoint = \"{endpoint}\"\nsample = 1\n{name}"));
    let cluster: Vec<String> = (0..3).map(|node| format!("127.0.0.1:{}", nodes.port + 100 + node)).collect();
    let port = free_ports();
    let mut gateway = syros();
    gateway.args(["gateway", "--cluster", &cluster.join(","), "--port", &port.to_string()]);
    gateway.args(["--traces", &endpoint, "--trace-sample", "1", "--trace-service-name", "cache"]);
    gateway.args(["--trace-attribute", "deployment=test", "--writes", "leader"]);
    let mut gateway = gateway.stderr(Stdio::null()).spawn().unwrap();
    let mut redis = wait_for("the gateway", || {
        let mut redis = Redis::try_connect(port).ok()?;
        (redis.try_ask(&["SET", "warm", "up"]).ok()? == "+OK").then_some(redis)
    });
    let trace = collector.trace_of("INCRBY", 3, || assert_eq!(redis.ask(&["INCR", "counter"]), ":1"));
    let root = trace.iter().find(|span| span.parent.is_none()).unwrap();
    assert!(root.instance.starts_with("gateway-"), "{root:?}");
    check(&trace, &root.instance);
    assert_eq!(root.text("syros.way"), Some("writes_by_leader"));
    let leader = trace.iter().find(|span| span.text("syros.role") == Some("leader")).unwrap();
    check_answers(&trace, leader, "committed");
    kill(gateway.id().try_into().unwrap(), Signal::TERM);
    assert!(wait_for_end(&mut gateway).success());
}

/// What a node says of the spans of its traces.
fn metric(port: u16, name: &str) -> Option<u64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.parse::<f64>().ok().map(|value| value as u64)
}

#[test]
fn a_collector_that_is_dead_or_silent_costs_spans_and_nothing_else() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // Connections wait in its queue for ever.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_address = silent.local_addr().unwrap();
    let scratch = Scratch::new("traces-dead");
    let mut nodes = Nodes::new(&scratch);
    let metrics = nodes.port + 20;
    for (node, collector) in [(0, dead), (1, silent_address), (2, dead)] {
        let listen = if node == 0 { format!("metrics = \"127.0.0.1:{metrics}\"\n") } else { String::new() };
        let traces = format!("{listen}[traces]\nendpoint = \"http://{collector}\"\nsample = 1.0");
        nodes.configure(node, node, "", &traces);
    }
    nodes.start_all(&["--bootstrap"]);
    (0..3).for_each(|node| nodes.set(node, "warm", "up"));
    for node in 0..3 {
        let mut redis = Redis::connect(nodes.port + node);
        for _ in 0..5_000 {
            assert!(redis.ask(&["INCR", "counter"]).starts_with(':'));
        }
    }
    assert_eq!(nodes.get(2, "counter"), "15000");
    wait_for("a request to the collector that fails", || {
        metric(metrics, "syros_trace_export_failures_total").filter(|failures| *failures > 0)
    });
    assert_eq!(metric(metrics, "syros_trace_spans_exported_total"), Some(0));
    let dropped = metric(metrics, "syros_trace_spans_dropped_total{reason=\"queue\"}").unwrap();
    assert!(dropped > 10_000, "more than 100,000 spans, and there is room for some thousand: {dropped}");
    let begun = std::time::Instant::now();
    (0..3).for_each(|node| nodes.stop(node, Signal::TERM));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}
