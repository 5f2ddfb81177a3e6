//! What the examples measure with.

use std::hint::black_box;
use syros_storage::{Engine, MemoryEngine};
use syros_types::WallTime;

/// Nanoseconds that this thread has had a processor for.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Nanoseconds that `run` takes.
pub(crate) fn timed(run: impl FnOnce()) -> f64 {
    let start = processor_ns();
    run();
    (processor_ns() - start) as f64
}

/// Prints what each of these bodies takes on average.
pub(crate) fn measure(what: &str, engine: &mut MemoryEngine, bodies: &[Vec<u8>]) {
    let mut reply = Vec::new();
    let each = timed(|| {
        for body in bodies {
            reply.clear();
            engine.apply(WallTime(1), black_box(body), &mut reply);
        }
    }) / bodies.len() as f64;
    println!("{what:<48} {each:>9.0} ns");
}

/// Prints what this takes once.
pub(crate) fn once(what: &str, run: impl FnOnce()) {
    println!("{what:<48} {:>9.3} ms", timed(run) / 1e6);
}
