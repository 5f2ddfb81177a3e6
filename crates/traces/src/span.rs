//! A span, and the process that it is of.

use std::borrow::Cow;

use crate::ids::{SpanId, TraceId};

/// What kind of work a span is, with its number in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SpanKind {
    /// A part of something.
    Internal = 1,
    /// A client of the process has asked for it.
    Server = 2,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
    /// True or false.
    Flag(bool),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u64> for Value {
    /// Numbers of OTLP are signed: one that is too large becomes the largest.
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// A part of a trace, which has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The trace.
    pub trace: TraceId,
    /// This span.
    pub id: SpanId,
    /// The span that it is a part of; `None` for the root.
    pub parent: Option<SpanId>,
    /// What it is called.
    pub name: Cow<'static, str>,
    /// What kind of work it is.
    pub kind: SpanKind,
    /// When it began, in nanoseconds since the Unix epoch.
    pub start: u64,
    /// When it ended, in nanoseconds since the Unix epoch.
    pub end: u64,
    /// What is known of it, by name.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed, if it did.
    pub error: Option<Cow<'static, str>>,
}

/// What a process says of itself with every batch: OpenTelemetry's resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Its attributes, by name.
    pub attributes: Vec<(String, String)>,
}

impl Resource {
    /// Adds an attribute, unless there is one of that name already.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        if self.attributes.iter().all(|(known, _)| known != name) {
            self.attributes.push((name.to_owned(), value.into()));
        }
        self
    }
}
