//! Log lines of Syros's programs. Libraries write events with `tracing`; a program installs this subscriber, which puts
//! each event on one line of standard error.
//!
//! - [`Filter`]: which levels of which modules are written.
//! - [`Format`]: lines for people, or one JSON object a line.
//! - [`RateLimit`]: how many lines one call site may write in a window.
//! - A bounded queue and a thread of its own stand between an event and standard error: a reader that does not read, or a
//!   disk that is full, costs lines and never the time of the thread that logs.
//!
//! There are no spans: an event names its node, view and connection itself, and what is the same for the whole process is
//! in [`Settings::context`]. So a call site whose level is off costs one
//! relaxed load, and `tracing-subscriber`, whose registry keeps spans, is not needed.
#![forbid(unsafe_code)]

mod escape;
mod filter;
mod format;
mod queue;
mod rate_limit;
mod subscriber;
mod timestamp;

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use filter::{Filter, FilterError};
pub use format::{Format, FormatError};
pub use rate_limit::RateLimit;
pub use timestamp::utc;

use queue::Queue;
use subscriber::{LogBridge, Sink, Time};

/// How long a process that ends waits for standard error to take the last lines.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// What the log shows, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Which levels of which modules are written.
    pub filter: Filter,
    /// How a line looks.
    pub format: Format,
    /// How many lines one call site may write.
    pub rate_limit: RateLimit,
    /// Fields of every line, after its own: what is the same for all of the process, such as its group. No event may have
    /// a field of such a name.
    pub context: Vec<(&'static str, u64)>,
}

/// The sink that [`install`] made.
static INSTALLED: OnceLock<Arc<Sink>> = OnceLock::new();

/// Sends events to standard error from now on. A subscriber that was installed before goes on instead.
///
/// # Errors
/// The system has no thread for the writer.
pub fn install(settings: &Settings) -> Result<(), String> {
    let began = Instant::now();
    let clock = move || Time {
        since_epoch: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        running: began.elapsed(),
    };
    let is_coloured = is_coloured(std::io::stderr().is_terminal(), |name| std::env::var(name).ok());
    let queue = Queue::start(standard_error(), subscriber::lost_lines(settings, is_coloured));
    let queue = queue.map_err(|error| format!("cannot start the thread that writes the log: {error}"))?;
    let sink = Arc::new(Sink::new(settings, is_coloured, Box::new(clock), queue));
    if INSTALLED.set(Arc::clone(&sink)).is_err() {
        return Ok(());
    }
    // Both fail only if a program has installed another one, which then goes on.
    let _ = tracing::subscriber::set_global_default(Arc::clone(&sink));
    let _ = log::set_boxed_logger(Box::new(LogBridge(Arc::clone(&sink))));
    log::set_max_level(sink.max_level_of_log());
    if settings.format == Format::Json {
        std::panic::set_hook(Box::new(log_panic));
    }
    Ok(())
}

/// True if [`install`] was told to write JSON: standard error then takes nothing else.
#[must_use]
pub fn is_json() -> bool {
    INSTALLED.get().is_some_and(|sink| sink.format() == Format::Json)
}

/// Waits until standard error has taken all lines, for one second at most. For processes that end.
pub fn flush() {
    if let Some(sink) = INSTALLED.get() {
        sink.flush(FLUSH_PATIENCE);
    }
}

/// Standard error without the lock of the standard library: a writer that blocks must not block a panic's message.
fn standard_error() -> Box<dyn Write + Send> {
    match std::io::stderr().as_fd().try_clone_to_owned() {
        Ok(descriptor) => Box::new(File::from(descriptor)),
        Err(_) => Box::new(std::io::stderr()),
    }
}

/// Colours are for terminals, and for people who have not declined them (<https://no-color.org>).
fn is_coloured(is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let declines = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_terminal && !declines && variable("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Writes a panic as an event: the standard library's text of many lines would not be JSON.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let payload = panic.payload();
    let reason = payload.downcast_ref::<&str>().copied();
    let reason = reason.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
    let thread = std::thread::current();
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(
        thread = thread.name().unwrap_or_default(),
        location,
        error = reason,
        "a thread panicked"
    );
    flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_whose_user_wants_them() {
        let variables = |set: &'static [(&str, &str)]| {
            move |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            }
        };
        assert!(is_coloured(true, variables(&[])));
        assert!(is_coloured(true, variables(&[("NO_COLOR", ""), ("TERM", "xterm")])));
        assert!(!is_coloured(false, variables(&[])));
        assert!(!is_coloured(true, variables(&[("NO_COLOR", "1")])));
        assert!(!is_coloured(true, variables(&[("TERM", "dumb")])));
    }
}
