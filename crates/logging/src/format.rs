//! How an event becomes a line.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

use tracing::field::{Field, Visit};

use crate::escape::{Bounded, MESSAGE_BYTES_MAX, VALUE_BYTES_MAX, is_plain, push_escaped, push_quoted};
use crate::timestamp::utc;

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people: time, level, message, and `key=value` for each field.
    #[default]
    Human,
    /// For programs: one JSON object, with `time`, `level`, `target`, `message`, and a member for each field.
    Json,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Human, Self::Json];

    /// Its name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is not the name of a [`Format`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError(String);

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not one of \"human\", \"json\"", self.0)
    }
}

impl std::error::Error for FormatError {}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let found = Self::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| FormatError(text.to_owned()))
    }
}

/// Severity of a line, whichever library it came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Severity {
    /// Name, name of five characters for people, colour of a terminal.
    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Error => ("error", "ERROR", "\x1b[31m"),
            Self::Warn => ("warn", "WARN ", "\x1b[33m"),
            Self::Info => ("info", "INFO ", "\x1b[32m"),
            Self::Debug => ("debug", "DEBUG", "\x1b[34m"),
            Self::Trace => ("trace", "TRACE", "\x1b[35m"),
        }
    }
}

/// Where a line comes from.
pub(crate) struct Origin<'a> {
    pub(crate) since_epoch: Duration,
    pub(crate) severity: Severity,
    pub(crate) target: &'a str,
}

/// What a line says: the message, and the fields as they will be written.
pub(crate) struct Content {
    format: Format,
    is_coloured: bool,
    message: String,
    fields: String,
}

impl Content {
    pub(crate) const fn new(format: Format, is_coloured: bool) -> Self {
        Self { format, is_coloured, message: String::new(), fields: String::new() }
    }

    pub(crate) fn set_message(&mut self, message: fmt::Arguments<'_>) {
        self.message = Bounded::of(MESSAGE_BYTES_MAX, message);
    }

    fn push_key(&mut self, key: &str) {
        match self.format {
            Format::Json => {
                self.fields.push(',');
                push_quoted(&mut self.fields, key);
                self.fields.push(':');
            }
            Format::Human if self.is_coloured => {
                let _ = write!(self.fields, " \x1b[2m{key}=\x1b[0m");
            }
            Format::Human => {
                let _ = write!(self.fields, " {key}=");
            }
        }
    }

    /// Adds a field whose value is a number or a boolean.
    pub(crate) fn push_number(&mut self, key: &str, value: impl fmt::Display) {
        self.push_key(key);
        let _ = write!(self.fields, "{value}");
    }

    /// Adds the fields that every line of the process has.
    pub(crate) fn push_context(&mut self, context: &[(&'static str, u64)]) {
        for (key, value) in context {
            self.push_number(key, value);
        }
    }

    /// Adds a field whose value is text: for people in quotes only where it could be mistaken without.
    pub(crate) fn push_text(&mut self, key: &str, value: fmt::Arguments<'_>) {
        let text = Bounded::of(VALUE_BYTES_MAX, value);
        self.push_key(key);
        if self.format == Format::Human && is_plain(&text) {
            self.fields.push_str(&text);
        } else {
            push_quoted(&mut self.fields, &text);
        }
    }

    /// The line, with its end.
    pub(crate) fn line(mut self, origin: &Origin<'_>) -> String {
        let Origin { since_epoch, severity, target } = origin;
        let mut line = String::with_capacity(128 + self.message.len() + self.fields.len());
        let (seconds, milliseconds) = (utc(since_epoch.as_secs()), since_epoch.subsec_millis());
        let (name, padded, colour) = severity.names();
        match self.format {
            Format::Json => {
                let _ = write!(
                    line,
                    "{{\"time\":\"{seconds}.{milliseconds:03}Z\",\"level\":\"{name}\",\"target\":"
                );
                push_quoted(&mut line, target);
                line.push_str(",\"message\":");
                push_quoted(&mut line, &self.message);
                line.push_str(&self.fields);
                line.push('}');
            }
            Format::Human => {
                // Who reads these levels is looking for a module.
                if matches!(severity, Severity::Debug | Severity::Trace) {
                    self.push_text("target", format_args!("{target}"));
                }
                let (begin, end) = if self.is_coloured { (colour, "\x1b[0m") } else { ("", "") };
                let _ = write!(line, "{seconds}.{milliseconds:03}Z {begin}{padded}{end} ");
                push_escaped(&mut line, &self.message);
                line.push_str(&self.fields);
            }
        }
        line.push('\n');
        line
    }
}

impl Visit for Content {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.set_message(format_args!("{value:?}")),
            name => self.push_text(name, format_args!("{value:?}")),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.set_message(format_args!("{value}")),
            name => self.push_text(name, format_args!("{value}")),
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.push_text(field.name(), format_args!("{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push_number(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push_number(field.name(), value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.push_number(field.name(), value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.push_number(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push_number(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no other numbers.
        if value.is_finite() {
            self.push_number(field.name(), value);
        } else {
            self.push_text(field.name(), format_args!("{value}"));
        }
    }
}
