//! Standard output that nobody reads any more.

/// Ends a command that only prints when nobody reads what it prints any more, as `| head` does: with the exit status of a
/// process that SIGPIPE ends, and without a word.
pub fn end_when_nobody_reads() {
    const ENDED_BY_SIGPIPE: i32 = 128 + 13;
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // What `println!` says.
        let is_unread = info.payload().downcast_ref::<String>().is_some_and(|text| {
            text.starts_with("failed printing to stdout") && text.contains("Broken pipe")
        });
        if is_unread {
            std::process::exit(ENDED_BY_SIGPIPE);
        }
        before(info);
    }));
}
