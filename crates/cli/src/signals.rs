//! The signals that ask a process to end.

use std::sync::mpsc::Sender;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Calls `on_signal` with the signal's number, on a thread of its own, whenever SIGINT or SIGTERM comes, or SIGHUP: a
/// program that runs in a terminal ends with it.
///
/// # Errors
/// The system lets nobody watch them.
pub fn watch(mut on_signal: impl FnMut(i32) + Send + 'static) -> Result<(), String> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| format!("cannot watch signals: {error}"))?;
    std::thread::spawn(move || signals.forever().for_each(&mut on_signal));
    Ok(())
}

/// As [`watch`], for services: SIGHUP does not end them. To those that have a log file it says to open it anew; the log
/// of a node is standard error, and there is nothing to open.
///
/// # Errors
/// As [`watch`].
pub fn watch_as_service(mut on_end: impl FnMut(i32) + Send + 'static) -> Result<(), String> {
    watch(move |signal| match signal {
        SIGHUP => {
            tracing::info!("SIGHUP: nothing to do, because the log goes to standard error");
        }
        signal => on_end(signal),
    })
}

/// Sends the number of every such signal to `sender`.
///
/// # Errors
/// As [`watch`].
pub fn forward(sender: Sender<i32>) -> Result<(), String> {
    watch(move |signal| {
        // Nobody listens any more: the process is about to end anyway.
        let _ = sender.send(signal);
    })
}

/// Name of a signal that [`watch`] watches.
#[must_use]
pub fn name(signal: i32) -> &'static str {
    match signal {
        SIGINT => "SIGINT",
        SIGTERM => "SIGTERM",
        SIGHUP => "SIGHUP",
        _ => "a signal",
    }
}
