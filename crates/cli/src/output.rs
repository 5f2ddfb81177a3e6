//! What commands print: results on the standard output, what happens meanwhile on the standard error. A disk behind one of them
//! may be full, and nobody may read what a command prints.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints a line on the standard error: about what happens meanwhile. If it cannot be written, the command goes on without.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::write_to_stderr(::core::format_args!("{}\n", ::core::format_args!($($text)*))) };
}

/// Prints a line of results on the standard output. If it cannot be written, the command goes on, and [`unwritten`] tells.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => { $crate::write_to_stdout(::core::format_args!("{}\n", ::core::format_args!($($text)*))) };
}

/// The first result that could not be written.
static UNWRITTEN: OnceLock<String> = OnceLock::new();

/// A command that only prints ends when nobody reads it.
static ENDS_UNREAD: AtomicBool = AtomicBool::new(false);

/// What [`say`] does.
pub fn write_to_stderr(text: fmt::Arguments<'_>) {
    // There is no other place to complain in.
    let _ = io::stderr().lock().write_fmt(text);
}

/// What [`tell`] does, without the end of the line.
pub fn write_to_stdout(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_fmt(text).and_then(|()| out.flush()) {
        note_unwritten(&error);
    }
}

fn note_unwritten(error: &io::Error) {
    if error.kind() == ErrorKind::BrokenPipe {
        if ENDS_UNREAD.load(Ordering::Relaxed) {
            end_unread();
        }
        // Whoever read it has seen enough: nobody misses the rest.
        return;
    }
    UNWRITTEN.get_or_init(|| error.to_string());
}

/// Why not all results could be written to the standard output, if some could not. To be asked when a command has done its work,
/// which is not undone.
#[must_use]
pub fn unwritten() -> Option<String> {
    UNWRITTEN
        .get()
        .map(|error| format!("not all that was to be said could be written to the standard output: {error}"))
}

/// With the exit status of a process that SIGPIPE ends, and without a word.
fn end_unread() -> ! {
    const ENDED_BY_SIGPIPE: i32 = 128 + 13;
    std::process::exit(ENDED_BY_SIGPIPE)
}

/// Ends a command that only prints when nobody reads what it prints any more, as `| head` does.
pub fn end_when_nobody_reads() {
    ENDS_UNREAD.store(true, Ordering::Relaxed);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // What `println!` says.
        let is_unread = info.payload().downcast_ref::<String>().is_some_and(|text| {
            text.starts_with("failed printing to stdout") && text.contains("Broken pipe")
        });
        if is_unread {
            end_unread();
        }
        before(info);
    }));
}
