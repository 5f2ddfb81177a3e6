//! What a process observes of the operations that it traces, at its edge: where messages come and go, where the log's thread
//! has synced, where entries have been executed. The cores know nothing of it, and nothing that they do depends on it; so it is
//! here and not in the crates that the simulator runs.
//!
//! Which operations are traced, and the ids of all spans, follow from the operations' ids: see the crate `syros-traces`.

mod front_end;
mod replica;
mod syncs;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use syros_traces::{Exporter, Resource, Sampling, SpanSink, TraceId, TraceSettings};
use syros_types::{Instant, Now, OperationId};

pub(crate) use front_end::FrontEndTraces;
pub(crate) use replica::{ReplicaTraces, Standing};
pub(crate) use syncs::SyncTimes;

/// Operations that the front end of a process follows at a time, and as many that its replica follows: those of a second, if
/// one in a thousand of a million a second is traced. Each takes some hundred bytes.
const FOLLOWED_MAX: usize = 1024;

/// A wall clock that is set changes what times are shown as, if it is off by more than this many nanoseconds. Less would tear
/// the spans of one operation apart that end at different moments.
const CLOCK_STEP: u64 = 10_000_000;

/// What the parts of a process need to trace operations.
#[derive(Clone, Debug)]
pub(crate) struct Tracing {
    sink: SpanSink,
    sampling: Sampling,
    cluster: u64,
    /// Nanoseconds from the Unix epoch to the origin of the process's monotonic clock.
    origin: Arc<AtomicU64>,
}

impl Tracing {
    pub(crate) fn new(exporter: &Exporter, settings: &TraceSettings, cluster: u64, now: Now) -> Self {
        let origin = Arc::new(AtomicU64::new(origin_of(now)));
        Self { sink: exporter.sink().clone(), sampling: settings.sampling, cluster, origin }
    }

    /// The trace of an update, if it is traced.
    #[inline]
    fn of_update(&self, id: OperationId) -> Option<TraceId> {
        let trace = TraceId::of_update(self.cluster, id);
        self.sampling.takes(trace).then_some(trace)
    }

    /// The trace of a read of this process, if it is traced.
    #[inline]
    fn of_read(&self, process: u64, number: u64) -> Option<TraceId> {
        let trace = TraceId::of_read(process, number);
        self.sampling.takes(trace).then_some(trace)
    }

    /// Looks whether the wall clock has been set.
    fn look_at_clock(&self, now: Now) {
        let origin = origin_of(now);
        if origin.abs_diff(self.origin.load(Ordering::Relaxed)) > CLOCK_STEP {
            self.origin.store(origin, Ordering::Relaxed);
        }
    }

    /// A moment in nanoseconds since the Unix epoch.
    fn unix(&self, instant: Instant) -> u64 {
        self.origin.load(Ordering::Relaxed).saturating_add(instant.0)
    }

    /// What takes the spans.
    pub(crate) const fn sink(&self) -> &SpanSink {
        &self.sink
    }
}

const fn origin_of(now: Now) -> u64 {
    now.wall.0.saturating_mul(1000).saturating_sub(now.instant.0)
}

/// Starts the thread that exports spans. `instance` is unlike that of all other processes of the cluster.
pub(crate) fn start_exporter(
    settings: &TraceSettings,
    cluster: u64,
    (kind, instance): (&str, String),
) -> std::io::Result<Exporter> {
    let mut resource = Resource::default();
    for (name, value) in &settings.attributes {
        resource = resource.with(name, value);
    }
    let resource = resource
        .with("service.name", &settings.service_name)
        .with("service.version", env!("CARGO_PKG_VERSION"))
        .with("service.instance.id", instance)
        .with("syros.cluster", cluster.to_string())
        .with("syros.process", kind);
    let exporter = Exporter::start(&settings.endpoint, resource)?;
    tracing::info!(collector = settings.endpoint.url(), "this process exports traces of some operations");
    Ok(exporter)
}
