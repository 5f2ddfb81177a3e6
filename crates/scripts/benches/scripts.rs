//! Nanoseconds that one run of a script takes, when it has run before on the same thread.
//!
//! `cargo bench -p syros-scripts` for all; `cargo bench -p syros-scripts -- NAME [RUNS]` for one, a number of times: for
//! profilers.

use std::hint::black_box;
use std::time::Instant;
use syros_scripts::{Host, Input, Limits, Outcome, Reply, call, run};

/// Executes nothing: what commands do costs the same with and without a script.
struct Idle;

impl Host for Idle {
    fn call(&mut self, words: &[&[u8]], _: bool, _: u64) -> (Reply, u64) {
        black_box(words);
        (Reply::Status(b"OK".to_vec()), 0)
    }

    fn is_doomed(&self) -> bool {
        false
    }
}

const SCRIPTS: [(&str, &str); 5] = [
    ("constant", "return 1"),
    ("set", "return redis.call('SET', KEYS[1], ARGV[1])"),
    (
        "unlock",
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end",
    ),
    ("json", "return cjson.encode({1, 2, 3})"),
    ("loop", "local sum = 0 for i = 1, 1000 do sum = sum + i end return sum"),
];

/// A library with a function that does what the script `set` does.
const LIBRARY: &str = "#!lua name=bench
redis.register_function('set', function(keys, arguments) return redis.call('SET', keys[1], arguments[1]) end)";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let runs = words.get(1).map_or(200_000_u32, |runs| runs.parse().expect("a number of runs"));
    for (name, text) in SCRIPTS.into_iter().chain([("function", LIBRARY)]) {
        if words.first().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let input = Input { keys: &[b"key:000000000001"], arguments: &[b"VXK"] };
        let limits = Limits { fuel: 100_000_000, seed: 7 << 60, counts_script_alone: true };
        let began = Instant::now();
        for _ in 0..runs {
            let outcome = if text == LIBRARY {
                call(text.as_bytes(), "set", input, limits, &mut Idle)
            } else {
                run(text.as_bytes(), input, limits, &mut Idle)
            };
            let is_done =
                matches!(black_box(outcome), Outcome::Reply(reply) if !matches!(reply, Reply::Error(_)));
            assert!(is_done, "{name} fails");
        }
        println!("{name:<10} {:>8.0} ns", began.elapsed().as_nanos() as f64 / f64::from(runs));
    }
}
