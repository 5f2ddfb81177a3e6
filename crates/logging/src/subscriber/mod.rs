//! The way of an event from a call site to the queue.

use std::sync::Arc;
use std::time::Duration;

use log::Log;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::Settings;
use crate::filter::Filter;
use crate::format::{Content, Format, Origin, Severity};
use crate::queue::Queue;
use crate::rate_limit::{CallSite, Limiter};

/// What a clock says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    /// Since the Unix epoch, for people.
    pub(crate) since_epoch: Duration,
    /// Since the program began: goes on evenly when the system's clock is set.
    pub(crate) running: Duration,
}

pub(crate) type Clock = Box<dyn Fn() -> Time + Send + Sync>;

/// Decides which events are written, and writes them.
pub(crate) struct Sink {
    filter: Filter,
    format: Format,
    is_coloured: bool,
    limiter: Limiter,
    context: Vec<(&'static str, u64)>,
    clock: Clock,
    queue: Queue,
}

impl Sink {
    pub(crate) fn new(settings: &Settings, is_coloured: bool, clock: Clock, queue: Queue) -> Self {
        Self {
            filter: settings.filter.clone(),
            format: settings.format,
            is_coloured,
            limiter: Limiter::new(settings.rate_limit),
            context: settings.context.clone(),
            clock,
            queue,
        }
    }

    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    pub(crate) fn flush(&self, patience: Duration) -> bool {
        self.queue.flush(patience)
    }

    pub(crate) fn max_level_of_log(&self) -> log::LevelFilter {
        let most = self.filter.most();
        let levels = log::LevelFilter::iter()
            .filter(|level| level.to_level().is_some_and(|level| tracing_level(level) <= most));
        levels.max().unwrap_or(log::LevelFilter::Off)
    }

    /// Writes a line of `site`, with what `fill` says, unless the site has written too many.
    fn write(&self, site: CallSite, severity: Severity, target: &str, fill: impl FnOnce(&mut Content)) {
        let now = (self.clock)();
        let Some(suppressed) = self.limiter.admit(site, now.running) else { return };
        let mut content = Content::new(self.format, self.is_coloured);
        fill(&mut content);
        content.push_context(&self.context);
        if suppressed > 0 {
            content.push_number("suppressed", suppressed);
        }
        self.queue.push(&content.line(&Origin { since_epoch: now.since_epoch, severity, target }));
    }
}

/// Makes the line that says how many lines were lost.
pub(crate) fn lost_lines(settings: &Settings, is_coloured: bool) -> Box<dyn Fn(u64) -> String + Send> {
    let (format, context) = (settings.format, settings.context.clone());
    Box::new(move |lost| {
        let mut content = Content::new(format, is_coloured);
        content
            .set_message(format_args!("standard error took no lines for a while, and later ones were lost"));
        content.push_context(&context);
        content.push_number("lost", lost);
        let since_epoch =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        content.line(&Origin { since_epoch, severity: Severity::Warn, target: module_path!() })
    })
}

fn severity(level: Level) -> Severity {
    match level {
        Level::ERROR => Severity::Error,
        Level::WARN => Severity::Warn,
        Level::INFO => Severity::Info,
        Level::DEBUG => Severity::Debug,
        Level::TRACE => Severity::Trace,
    }
}

const fn tracing_level(level: log::Level) -> Level {
    match level {
        log::Level::Error => Level::ERROR,
        log::Level::Warn => Level::WARN,
        log::Level::Info => Level::INFO,
        log::Level::Debug => Level::DEBUG,
        log::Level::Trace => Level::TRACE,
    }
}

impl Subscriber for Sink {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.filter.enables(*metadata.level(), metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter.most())
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let site = CallSite::Event(metadata.callsite());
        self.write(site, severity(*metadata.level()), metadata.target(), |content| event.record(content));
    }

    // Spans are never enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Takes what libraries of others write with `log`.
pub(crate) struct LogBridge(pub(crate) Arc<Sink>);

impl Log for LogBridge {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        self.0.filter.enables(tracing_level(metadata.level()), metadata.target())
    }

    fn log(&self, record: &log::Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        // All that do not say where they are share one place.
        let site =
            CallSite::Record(record.module_path_static().unwrap_or_default(), record.line().unwrap_or(0));
        let severity = severity(tracing_level(record.level()));
        self.0.write(site, severity, record.target(), |content| content.set_message(*record.args()));
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests;
