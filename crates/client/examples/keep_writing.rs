//! Writes and reads at a cluster until its standard input ends: a client for tests of what operators do to clusters.
//!
//!     cargo run --release -p syros-client --example keep_writing -- 127.0.0.1:7379 127.0.0.1:7380 127.0.0.1:7381
//!
//! Counts one number up, and overwrites keys and reads them back. Fails with the first operation that fails, and with the
//! first answer that contradicts an earlier one; else it prints what it has done.

use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use syros_client::{Client, Error, Options};

/// Keys that are overwritten in turn.
const KEYS: i64 = 100;

fn main() -> ExitCode {
    let addresses: Vec<String> = std::env::args().skip(1).collect();
    if addresses.is_empty() {
        eprintln!("keep_writing: give the addresses of the replicas");
        return ExitCode::FAILURE;
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&is_over);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ended.store(true, Ordering::Relaxed);
    });
    match keep_writing(&addresses, &is_over) {
        Ok(done) => {
            println!("{done}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            println!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn keep_writing(addresses: &[String], is_over: &AtomicBool) -> Result<String, String> {
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let connecting = Client::connect(&addresses, Options::default()).map_err(|error| error.to_string())?;
    let client = connecting.wait().map_err(|error| error.to_string())?;
    let (mut count, mut slowest) = (0, Duration::ZERO);
    while !is_over.load(Ordering::Relaxed) {
        count += 1;
        let (key, value) = (format!("native:{}", count % KEYS), count.to_string());
        let begun = Instant::now();
        let failed = |error: Error| format!("operation {count} failed: {error}");
        client.set(&key, &value).wait().map_err(failed)?;
        let visits = client.increment("native:count", 1).wait().map_err(failed)?;
        let read = client.get(&key).wait().map_err(failed)?;
        slowest = slowest.max(begun.elapsed());
        if visits != count || read.as_deref() != Some(value.as_bytes()) {
            return Err(format!(
                "round {count}: the count is {visits}, and {key} is {read:?} instead of {value}"
            ));
        }
    }
    Ok(format!("{} operations, none failed; three of them took {slowest:.1?} at most", 3 * count))
}
