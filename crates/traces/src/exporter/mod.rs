//! The thread that sends spans to a collector.
//!
//! Whoever has a span gives it to a [`SpanSink`], which never waits: beyond [`SPANS_QUEUED_MAX`] the span is dropped and counted.
//! The thread sends batches, one at a time, and has patience for each only so long. So a collector that is dead, silent or
//! slow costs spans, and nothing else.
//!
//! It decides nothing that an operation depends on, so the simulator does not run it; its tests run it against collectors
//! that misbehave.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::{Response, StatusCode};

use crate::endpoint::Endpoint;
use crate::otlp;
use crate::span::{Resource, Span};

/// Spans that wait for the thread: those of about a second at a million operations a second, of which one in a thousand is
/// traced by eight spans. They take some megabytes.
pub const SPANS_QUEUED_MAX: usize = 8192;

/// Spans of one request: some hundred kilobytes of JSON, far from what collectors refuse (the OpenTelemetry Collector: 20 MiB).
const SPANS_PER_BATCH_MAX: usize = 512;

/// Bytes of an answer that are read. It is `{}`, or some numbers and a text.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Bytes of the headers of an answer that are read.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// A process that ends waits no longer than this for its last spans to be sent.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often a collector that takes no spans is complained about.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// How long the thread waits for what. Tests have less patience.
#[derive(Clone, Copy, Debug)]
struct Patience {
    spans_queued_max: usize,
    spans_per_batch_max: usize,
    /// A batch that is not full is sent so long after its first span.
    period: Duration,
    /// From the name of the collector's host to the end of its answer.
    request: Duration,
    /// Before a batch is sent the second time; twice as long before the third time.
    backoff: Duration,
    backoff_max: Duration,
    /// Each batch is sent so often at most: the next ones wait meanwhile, and newer spans are worth more.
    attempts: u32,
}

impl Patience {
    const DEFAULT: Self = Self {
        spans_queued_max: SPANS_QUEUED_MAX,
        spans_per_batch_max: SPANS_PER_BATCH_MAX,
        period: Duration::from_secs(1),
        request: Duration::from_secs(5),
        backoff: Duration::from_secs(1),
        backoff_max: Duration::from_secs(30),
        attempts: 4,
    };
}

#[derive(Debug, Default)]
struct Counters {
    exported: AtomicU64,
    dropped_by_queue: AtomicU64,
    dropped_by_process: AtomicU64,
    dropped_by_collector: AtomicU64,
    failures: AtomicU64,
}

/// What has become of the spans of a process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// A collector has taken them.
    pub exported: u64,
    /// There was no room for them in the queue.
    pub dropped_by_queue: u64,
    /// The process followed as many operations as it may. Each counts as one span.
    pub dropped_by_process: u64,
    /// No collector took them.
    pub dropped_by_collector: u64,
    /// Requests to the collector that failed.
    pub failures: u64,
}

/// Takes the spans of a process. It never waits.
#[derive(Clone, Debug)]
pub struct SpanSink {
    /// `None` only has the thread look whether it is to end.
    sender: SyncSender<Option<Span>>,
    counters: Arc<Counters>,
}

impl SpanSink {
    /// A sink whose spans nobody exports: a test looks at what comes out. It has room for so many.
    #[must_use]
    pub fn detached(room: usize) -> (Self, Receiver<Option<Span>>) {
        let (sender, receiver) = sync_channel(room);
        (Self { sender, counters: Arc::default() }, receiver)
    }

    /// Has a span exported, if there is room for it.
    pub fn send(&self, span: Span) {
        if self.sender.try_send(Some(span)).is_err() {
            add(&self.counters.dropped_by_queue, 1);
        }
    }

    /// Counts an operation that should have been traced, and is not because too many are.
    pub fn note_untraced(&self) {
        add(&self.counters.dropped_by_process, 1);
    }

    /// What has become of the spans so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            exported: of(&self.counters.exported),
            dropped_by_queue: of(&self.counters.dropped_by_queue),
            dropped_by_process: of(&self.counters.dropped_by_process),
            dropped_by_collector: of(&self.counters.dropped_by_collector),
            failures: of(&self.counters.failures),
        }
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// How far the thread has come to its end.
#[derive(Debug, Default)]
struct Ending {
    state: Mutex<EndingState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct EndingState {
    is_wanted: bool,
    is_over: bool,
}

impl Ending {
    fn state(&self) -> MutexGuard<'_, EndingState> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_wanted(&self) -> bool {
        self.state().is_wanted
    }

    /// Waits so long, or until the end is wanted.
    fn wait_until_wanted(&self, longest: Duration) {
        let waiting = self.changed.wait_timeout_while(self.state(), longest, |state| !state.is_wanted);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until the thread is over, for so long at most.
    fn wait_until_over(&self, longest: Duration) {
        let waiting = self.changed.wait_timeout_while(self.state(), longest, |state| !state.is_over);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Exports spans until it is dropped, which gives the last ones half a second.
#[derive(Debug)]
pub struct Exporter {
    sink: SpanSink,
    ending: Arc<Ending>,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.ending.state().is_wanted = true;
        self.ending.changed.notify_all();
        // A full queue keeps it awake as well.
        let _ = self.sink.sender.try_send(None);
        self.ending.wait_until_over(LAST_WORDS);
    }
}

impl Exporter {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(endpoint: &Endpoint, resource: Resource) -> io::Result<Self> {
        Self::start_with(endpoint, resource, Patience::DEFAULT)
    }

    fn start_with(endpoint: &Endpoint, resource: Resource, patience: Patience) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(patience.spans_queued_max);
        let sink = SpanSink { sender, counters: Arc::default() };
        let ending = Arc::<Ending>::default();
        let worker = Worker {
            url: endpoint.url().to_owned(),
            resource,
            patience,
            receiver,
            counters: Arc::clone(&sink.counters),
            ending: Arc::clone(&ending),
            agent: agent(patience.request),
            complained: None,
            _tells_end: TellsEnd(Arc::clone(&ending)),
        };
        thread::Builder::new().name("traces".to_owned()).spawn(move || worker.run())?;
        Ok(Self { sink, ending })
    }

    /// What takes the spans.
    #[must_use]
    pub const fn sink(&self) -> &SpanSink {
        &self.sink
    }
}

/// What speaks HTTP. An address in the environment for a proxy is not for a program that says where it sends its traces.
fn agent(timeout: Duration) -> Agent {
    Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_response_header_size(HEADER_BYTES_MAX)
        .proxy(None)
        .user_agent(concat!("syros/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

/// What has come of a request.
enum Outcome {
    /// The collector has taken the spans, but for so many.
    Taken { rejected: u64 },
    /// It may take them later: at the earliest then, if it says so.
    Later { problem: Cow<'static, str>, after: Option<Duration> },
    /// It will never take them.
    Refused { problem: Cow<'static, str> },
}

/// The thread.
struct Worker {
    url: String,
    resource: Resource,
    patience: Patience,
    receiver: Receiver<Option<Span>>,
    counters: Arc<Counters>,
    ending: Arc<Ending>,
    agent: Agent,
    /// When the collector was complained about last.
    complained: Option<Instant>,
    /// The last to be dropped: whoever hears of the end finds that nobody receives spans any more.
    _tells_end: TellsEnd,
}

/// Tells that the thread is over when it is dropped, also if it panicked.
struct TellsEnd(Arc<Ending>);

impl Drop for TellsEnd {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.changed.notify_all();
    }
}

impl Worker {
    fn run(mut self) {
        while let Some(batch) = self.next_batch() {
            self.export(&batch);
        }
    }

    /// The next spans, one at least; `None` when the process ends and there are none.
    fn next_batch(&self) -> Option<Vec<Span>> {
        let mut batch = Vec::new();
        let mut until = None;
        while batch.len() < self.patience.spans_per_batch_max {
            let is_ending = self.ending.is_wanted();
            let received = if is_ending {
                self.receiver.try_recv().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                })
            } else {
                let longest = until.map_or(self.patience.period, |until: Instant| {
                    until.saturating_duration_since(Instant::now())
                });
                self.receiver.recv_timeout(longest)
            };
            match received {
                Ok(Some(span)) => {
                    until.get_or_insert_with(|| Instant::now() + self.patience.period);
                    batch.push(span);
                }
                Ok(None) => {}
                Err(RecvTimeoutError::Timeout) if batch.is_empty() && !is_ending => {}
                Err(_) => break,
            }
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// Sends a batch, several times if need be.
    fn export(&mut self, batch: &[Span]) {
        let body = otlp::request(&self.resource, batch);
        let count = batch.len() as u64;
        let mut backoff = self.patience.backoff;
        let mut attempt = 1;
        let problem = loop {
            let (problem, after) = match self.post(&body) {
                Outcome::Taken { rejected } => {
                    let rejected = rejected.min(count);
                    add(&self.counters.exported, count - rejected);
                    add(&self.counters.dropped_by_collector, rejected);
                    return;
                }
                Outcome::Later { problem, after } => (problem, after),
                Outcome::Refused { problem } => {
                    add(&self.counters.failures, 1);
                    break problem;
                }
            };
            add(&self.counters.failures, 1);
            if attempt == self.patience.attempts || self.ending.is_wanted() {
                break problem;
            }
            attempt += 1;
            let pause = after.unwrap_or_else(|| with_jitter(backoff)).min(self.patience.backoff_max);
            self.ending.wait_until_wanted(pause);
            backoff *= 2;
        };
        add(&self.counters.dropped_by_collector, count);
        if self.complained.is_none_or(|at| at.elapsed() >= COMPLAINT_INTERVAL) {
            self.complained = Some(Instant::now());
            tracing::warn!(
                collector = self.url,
                spans = count,
                error = %problem,
                "the collector takes no traces: their spans are dropped"
            );
        }
    }

    fn post(&self, body: &str) -> Outcome {
        let request = self.agent.post(&self.url).header("Content-Type", otlp::CONTENT_TYPE);
        // Who ends has no time for more.
        let timeout = if self.ending.is_wanted() { LAST_WORDS } else { self.patience.request };
        let request = request.config().timeout_global(Some(timeout.min(self.patience.request))).build();
        match request.send(body) {
            Ok(response) => self.on_response(response),
            Err(error) => Outcome::Later { problem: error.to_string().into(), after: None },
        }
    }

    fn on_response(&self, mut response: Response<ureq::Body>) -> Outcome {
        let status = response.status();
        if status.is_success() {
            let answer = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
            // The collector has the spans, whatever becomes of the rest of its answer.
            return Outcome::Taken { rejected: answer.map_or(0, |answer| otlp::rejected(&answer)) };
        }
        let problem = Cow::from(format!("it answered {status}"));
        // Those that the specification of OTLP says are worth another try.
        let is_temporary = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        if !is_temporary {
            return Outcome::Refused { problem };
        }
        let after = response.headers().get("Retry-After").and_then(|value| value.to_str().ok());
        let after = after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        Outcome::Later { problem, after }
    }
}

/// Between half of a duration and all of it, so that the nodes of a cluster do not come back at one time.
fn with_jitter(duration: Duration) -> Duration {
    // Seeded by the system, and another one each time.
    let part = RandomState::new().hash_one(duration) % 1024;
    duration / 2 + duration * u32::try_from(part).unwrap_or(0) / 2048
}
