//! The exporter against collectors that work, and against those that do not.

use super::*;

use crate::ids::{Stage, TraceId, parent_of, span_of};
use crate::span::SpanKind;
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use syros_types::{OperationId, SessionId};

/// Longer than anything here takes. Only a test that fails waits for it.
const LONG: Duration = Duration::from_secs(60);

/// A period that no test waits for: batches are full.
const IMPATIENT: Patience = Patience {
    spans_queued_max: 8,
    spans_per_batch_max: 2,
    period: LONG,
    request: Duration::from_millis(300),
    backoff: Duration::from_millis(2),
    backoff_max: Duration::from_millis(4),
    attempts: 3,
};

fn span(sequence: u64) -> Span {
    let trace = TraceId::of_update(1, OperationId { session: SessionId(2), sequence });
    Span {
        trace,
        id: span_of(trace, 3, Stage::Replica, 0),
        parent: parent_of(trace, 3, Stage::Replica),
        name: "replica".into(),
        kind: SpanKind::Internal,
        start: 1,
        end: 2,
        attributes: Vec::new(),
        error: None,
    }
}

/// A collector: each connection is handled by what it is made of, on a thread of its own.
struct Collector {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

impl Collector {
    /// `answer` is called with each request, its number from 0 on, and the stream; true if another one may come on it.
    fn start(answer: impl Fn(usize, &mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (is_over, requests) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (theirs, noted, answer) = (Arc::clone(&is_over), Arc::clone(&requests), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if theirs.load(Ordering::Relaxed) {
                    return;
                }
                let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    while let Some(request) = read_request(&stream) {
                        let number = {
                            let mut noted = noted.lock().unwrap();
                            noted.push(request);
                            noted.len() - 1
                        };
                        if !answer(number, &mut stream) {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, is_over, requests }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::parse(&format!("http://{}", self.address)).unwrap()
    }

    fn exporter(&self) -> Exporter {
        Exporter::start_with(&self.endpoint(), Resource::default(), IMPATIENT).unwrap()
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// The head and the body of a request.
fn read_request(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let before = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        let line = head[before..].trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(head + &String::from_utf8(body).unwrap())
}

fn respond(stream: &mut TcpStream, status: &str, body: &str) -> bool {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nContent-Type: application/json\r\n\r\n");
    stream.write_all(head.as_bytes()).is_ok() && stream.write_all(body.as_bytes()).is_ok()
}

/// Gives the exporter two spans, which make a batch, and waits until the counts are as expected.
fn counts_after(exporter: &Exporter, is_expected: impl Fn(Counts) -> bool) -> Counts {
    exporter.sink().send(span(1));
    exporter.sink().send(span(2));
    wait_for(exporter, is_expected)
}

fn wait_for(exporter: &Exporter, is_expected: impl Fn(Counts) -> bool) -> Counts {
    let until = Instant::now() + LONG;
    loop {
        let counts = exporter.sink().counts();
        if is_expected(counts) {
            return counts;
        }
        assert!(Instant::now() < until, "{counts:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

const NONE: Counts =
    Counts { exported: 0, dropped_by_queue: 0, dropped_by_process: 0, dropped_by_collector: 0, failures: 0 };

#[test]
fn a_collector_gets_the_spans_in_batches_on_one_connection() {
    let collector = Collector::start(|_, stream| respond(stream, "200 OK", "{}"));
    let exporter = collector.exporter();
    assert_eq!(counts_after(&exporter, |counts| counts.exported == 2), Counts { exported: 2, ..NONE });
    assert_eq!(counts_after(&exporter, |counts| counts.exported == 4), Counts { exported: 4, ..NONE });
    let requests = collector.requests();
    assert_eq!(requests.len(), 2);
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("\r\ncontent-type: application/json"), "{head}");
    let body: Json = serde_json::from_str(body).unwrap();
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let ids: Vec<_> = spans.iter().map(|span| span["spanId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, [span(1).id.to_string(), span(2).id.to_string()]);
}

#[test]
fn a_batch_that_is_not_full_leaves_after_a_while() {
    let collector = Collector::start(|_, stream| respond(stream, "200 OK", "{}"));
    let patience = Patience { period: Duration::from_millis(5), ..IMPATIENT };
    let exporter = Exporter::start_with(&collector.endpoint(), Resource::default(), patience).unwrap();
    exporter.sink().send(span(1));
    assert_eq!(wait_for(&exporter, |counts| counts.exported == 1), Counts { exported: 1, ..NONE });
}

#[test]
fn beyond_the_limit_of_the_queue_spans_are_dropped_and_counted() {
    // It never answers, and holds the connection.
    let collector = Collector::start(|_, stream| stream.read(&mut [0]).is_ok_and(|_| false));
    let patience = Patience { request: LONG, ..IMPATIENT };
    let exporter = Exporter::start_with(&collector.endpoint(), Resource::default(), patience).unwrap();
    // The thread takes two, and waits for its answer.
    (1..=2).for_each(|sequence| exporter.sink().send(span(sequence)));
    let until = Instant::now() + LONG;
    while collector.requests().is_empty() {
        assert!(Instant::now() < until);
        thread::yield_now();
    }
    (3..=10).for_each(|sequence| exporter.sink().send(span(sequence)));
    assert_eq!(exporter.sink().counts(), NONE, "there is room for eight");
    (11..=110).for_each(|sequence| exporter.sink().send(span(sequence)));
    exporter.sink().note_untraced();
    assert_eq!(exporter.sink().counts(), Counts { dropped_by_queue: 100, dropped_by_process: 1, ..NONE });
    // A process that ends does not wait for it.
    let begun = Instant::now();
    drop(exporter);
    assert!(begun.elapsed() < LONG / 4, "{:?}", begun.elapsed());
}

#[test]
fn a_collector_that_is_not_there_costs_the_spans() {
    // Nobody listens there any more.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = Endpoint::parse(&format!("http://{address}")).unwrap();
    let exporter = Exporter::start_with(&endpoint, Resource::default(), IMPATIENT).unwrap();
    let counts = counts_after(&exporter, |counts| counts.dropped_by_collector > 0);
    assert_eq!(counts, Counts { dropped_by_collector: 2, failures: 3, ..NONE });
}

#[test]
fn a_collector_that_does_not_answer_is_given_up() {
    let collector = Collector::start(|_, stream| stream.read(&mut [0]).is_ok_and(|_| false));
    let exporter = collector.exporter();
    let counts = counts_after(&exporter, |counts| counts.dropped_by_collector > 0);
    assert_eq!(counts, Counts { dropped_by_collector: 2, failures: 3, ..NONE });
    assert_eq!(collector.requests().len(), 3);
}

/// Sends the same again and again, until the other end has enough of it.
fn drip(stream: &mut TcpStream, first: &str, piece: &[u8]) -> bool {
    let mut is_open = stream.write_all(first.as_bytes()).is_ok();
    while is_open {
        is_open = stream.write_all(piece).is_ok();
        thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn a_collector_whose_answer_drips_is_given_up() {
    let collector = Collector::start(|_, stream| drip(stream, "HTTP/1.1 200 OK\r\nX-Long: ", b"x"));
    let exporter = collector.exporter();
    let counts = counts_after(&exporter, |counts| counts.dropped_by_collector > 0);
    assert_eq!(counts, Counts { dropped_by_collector: 2, failures: 3, ..NONE });
}

#[test]
fn of_an_endless_answer_only_the_beginning_is_read() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let patience = Patience { request: LONG, ..IMPATIENT };
    let chunk = [b"2000\r\n".to_vec(), vec![b'x'; 0x2000], b"\r\n".to_vec()].concat();
    let collector = Collector::start(move |_, stream| drip(stream, head, &chunk));
    let exporter = Exporter::start_with(&collector.endpoint(), Resource::default(), patience).unwrap();
    // It has taken them; what it says then does not matter.
    assert_eq!(counts_after(&exporter, |counts| counts.exported > 0), Counts { exported: 2, ..NONE });
}

#[test]
fn a_collector_that_has_no_time_is_asked_again() {
    let collector = Collector::start(|number, stream| match number {
        0 => respond(stream, "503 Service Unavailable", "later"),
        1 => respond(stream, "429 Too Many Requests\r\nRetry-After: 0", ""),
        _ => respond(stream, "200 OK", ""),
    });
    let exporter = collector.exporter();
    let counts = counts_after(&exporter, |counts| counts.exported > 0);
    assert_eq!(counts, Counts { exported: 2, failures: 2, ..NONE });
    let requests = collector.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].split_once("\r\n\r\n").unwrap().1, requests[2].split_once("\r\n\r\n").unwrap().1);
}

#[test]
fn what_a_collector_refuses_is_not_sent_again() {
    for status in ["400 Bad Request", "404 Not Found", "307 Temporary Redirect\r\nLocation: /elsewhere"] {
        let collector = Collector::start(|_, stream| respond(stream, status, "{}"));
        let exporter = collector.exporter();
        let counts = counts_after(&exporter, |counts| counts.dropped_by_collector > 0);
        assert_eq!(counts, Counts { dropped_by_collector: 2, failures: 1, ..NONE }, "{status}");
        assert_eq!(collector.requests().len(), 1, "{status}");
    }
}

#[test]
fn spans_that_a_collector_rejects_are_not_exported() {
    for (rejected, exported) in [("1", 1), ("99", 0)] {
        let answer = format!(r#"{{"partialSuccess":{{"rejectedSpans":"{rejected}"}}}}"#);
        let collector = Collector::start(move |_, stream| respond(stream, "200 OK", &answer));
        let exporter = collector.exporter();
        let counts = counts_after(&exporter, |counts| counts.dropped_by_collector > 0);
        assert_eq!(counts, Counts { exported, dropped_by_collector: 2 - exported, ..NONE });
    }
}

#[test]
fn the_last_spans_of_a_process_are_sent_when_it_ends() {
    let collector = Collector::start(|_, stream| respond(stream, "200 OK", "{}"));
    let exporter = collector.exporter();
    let sink = exporter.sink().clone();
    (1..=5).for_each(|sequence| sink.send(span(sequence)));
    drop(exporter);
    assert_eq!(sink.counts(), Counts { exported: 5, ..NONE });
    // Nobody takes any now.
    sink.send(span(6));
    assert_eq!(sink.counts(), Counts { exported: 5, dropped_by_queue: 1, ..NONE });
}
