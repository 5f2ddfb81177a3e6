//! Traces of operations for OpenTelemetry, which several nodes export without a word to each other.
//!
//! No message carries a trace id. Every node derives the trace of an update from the update's own id, and so the ids of
//! its spans and their parents; from the trace id, each node decides alike whether the update is traced ([`Sampling`]). So the
//! spans of one update, exported by three nodes, make one trace.
//!
//! A [`Span`] goes to the [`Exporter`], whose thread sends batches to a collector. Nothing waits for it: spans that it has no
//! room for are dropped and counted.
#![forbid(unsafe_code)]

mod endpoint;
mod exporter;
mod ids;
mod otlp;
mod settings;
mod span;

pub use endpoint::{Endpoint, EndpointError};
pub use exporter::{Counts, Exporter, SPANS_QUEUED_MAX, SpanSink};
pub use ids::{DERIVATION_VERSION, Sampling, SpanId, Stage, TraceId, parent_of, span_of};
pub use settings::{ATTRIBUTES_MAX, TEXT_BYTES_MAX, TraceSettings, parse_attribute};
pub use span::{Resource, Span, SpanKind, Value};
