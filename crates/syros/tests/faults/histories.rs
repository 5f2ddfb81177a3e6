//! What clients saw: recorded, written to a file for others to judge, and judged by our own checker.

use crate::load::Ended;
use crate::setup::say;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use syros_checker::history::{History, Input, Operation, Outcome, Output};
use syros_checker::linearizability::{Verdict, check};

/// Fewer acknowledged operations than this show nothing.
const OPERATIONS_MIN: usize = 500;

/// A history in the making.
pub(crate) struct Recorder {
    origin: Instant,
    history: Mutex<History>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { origin: Instant::now(), history: Mutex::default() }
    }
}

impl Recorder {
    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().expect("no client has panicked")
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    fn now(&self) -> u64 {
        self.elapsed().as_nanos().try_into().unwrap()
    }

    /// Executes an operation and records how it went. It is recorded as longer than it was, if anything:
    /// that can hide a mistake, but never makes one up.
    pub(crate) fn record(&self, process: u64, input: &Input, execute: &mut dyn FnMut(&Input) -> Ended) {
        let invoked = self.now();
        let index = self.history().invoke(process, invoked, input.clone()).unwrap();
        let ended = execute(input);
        let completed = self.now();
        match ended {
            Ended::With(output) => self.history().acknowledge(index, completed, output).unwrap(),
            Ended::WithoutEffect => self.history().fail(index).unwrap(),
            Ended::Unknown => {}
        }
    }

    /// Updates acknowledged so far.
    pub(crate) fn updates(&self) -> usize {
        let is_update = |operation: &&Operation| {
            matches!(operation.outcome, Outcome::Acknowledged { .. }) && !operation.input.is_read()
        };
        self.history().operations().iter().filter(is_update).count()
    }

    /// Writes the history down, and with a stale read put into it; the checker must accept the first and
    /// reject the second.
    pub(crate) fn judge(&self, test: &str) {
        let history = self.history();
        store(test, &history);
        let operations = history.operations();
        let count = |outcome: fn(&Outcome) -> bool| {
            operations.iter().filter(|operation| outcome(&operation.outcome)).count()
        };
        let acknowledged = count(|outcome| matches!(outcome, Outcome::Acknowledged { .. }));
        let (unknown, failed) =
            (count(|outcome| *outcome == Outcome::Unknown), count(|outcome| *outcome == Outcome::Failed));
        say(&format!("{test}: {acknowledged} operations, {unknown} unknown, {failed} without effect"));
        assert!(acknowledged >= OPERATIONS_MIN, "{acknowledged} operations show nothing");
        match check(&history) {
            Verdict::Linearizable => {}
            verdict => panic!("{test}: {verdict:?}"),
        }
        let wrong = with_stale_read(&history);
        store(&format!("wrong-{test}"), &wrong);
        let verdict = check(&wrong);
        assert!(matches!(verdict, Verdict::Violation { .. }), "the checker is blind: {verdict:?}");
    }
}

/// When an acknowledged SET took place, if it is one.
fn acknowledged_set(operation: &Operation) -> Option<(u32, &[u8], u64)> {
    match (&operation.input, &operation.outcome) {
        (Input::Set(key, value), Outcome::Acknowledged { completed, .. }) => Some((*key, value, *completed)),
        _ => None,
    }
}

/// The same history, but one read that came after a SET gives the value that an earlier SET had written,
/// which had been overwritten by then whatever the order was.
fn with_stale_read(history: &History) -> History {
    let operations = history.operations();
    let stale_value = |read: &Operation| {
        let (Input::Get(key), Outcome::Acknowledged { .. }) = (&read.input, &read.outcome) else {
            return None;
        };
        let sets_of_key = || {
            let sets =
                operations.iter().filter_map(|operation| Some((operation, acknowledged_set(operation)?)));
            sets.filter(|(_, (of, ..))| of == key)
        };
        let newer = sets_of_key().filter(|(_, (_, _, completed))| *completed < read.invoked);
        let newer = newer.max_by_key(|(operation, _)| operation.invoked)?.0;
        let mut older = sets_of_key().filter(|(_, (_, _, completed))| *completed < newer.invoked);
        older.next().map(|(_, (_, value, _))| value.to_vec())
    };
    let (target, value) = operations
        .iter()
        .enumerate()
        .rev()
        .find_map(|(index, operation)| Some((index, stale_value(operation)?)))
        .expect("some key was set twice and then read");
    let mut wrong = History::new();
    for (index, operation) in operations.iter().enumerate() {
        let Operation { process, invoked, input, outcome, follows } = operation;
        let copy = wrong.invoke(*process, *invoked, input.clone()).unwrap();
        // A copy has the index of its original.
        follows.iter().for_each(|first| wrong.order(*first, copy).unwrap());
        match outcome {
            Outcome::Acknowledged { completed, .. } if index == target => {
                wrong.acknowledge(copy, *completed, Output::Value(Some(value.clone()))).unwrap();
            }
            Outcome::Acknowledged { completed, output } => {
                wrong.acknowledge(copy, *completed, output.clone()).unwrap();
            }
            Outcome::Failed => wrong.fail(copy).unwrap(),
            Outcome::Unknown => {}
        }
    }
    wrong
}

/// Writes a history in the form that tests/porcupine/main.go reads.
fn store(name: &str, history: &History) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("histories");
    std::fs::create_dir_all(&directory).unwrap();
    let mut text = String::new();
    for operation in history.operations() {
        writeln!(text, "{}", json(operation)).unwrap();
    }
    std::fs::write(directory.join(format!("{name}.jsonl")), text).unwrap();
}

/// One line. Values are plain text, without anything to escape.
fn json(operation: &Operation) -> String {
    let plain = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (name, key, argument) = match &operation.input {
        Input::Get(key) => ("get", key, String::new()),
        Input::Set(key, value) => ("set", key, plain(value)),
        Input::Exchange(key, value) => ("getset", key, plain(value)),
        Input::SetIfAbsent(key, value) => ("setnx", key, plain(value)),
        Input::Append(key, value) => ("append", key, plain(value)),
        Input::Increment(key, by) => ("incr", key, by.to_string()),
        Input::Delete(key) => ("del", key, String::new()),
        other => panic!("the clients do not use {other}"),
    };
    let (outcome, completed, output) = match &operation.outcome {
        Outcome::Acknowledged { completed, output: Output::Error } => ("error", *completed, "null".into()),
        Outcome::Acknowledged { completed, output } => {
            let output = match output {
                Output::Done | Output::Value(None) => "null".into(),
                Output::Value(Some(value)) => format!("\"{}\"", plain(value)),
                Output::Number(number) => number.to_string(),
                Output::Flag(flag) => flag.to_string(),
                other => panic!("the clients expect no {other}"),
            };
            ("ok", *completed, output)
        }
        Outcome::Failed => ("failed", operation.invoked, "null".into()),
        Outcome::Unknown => ("unknown", operation.invoked, "null".into()),
    };
    format!(
        "{{\"client\":{},\"call\":{},\"return\":{completed},\"op\":\"{name}\",\"key\":{key},\
         \"argument\":\"{argument}\",\"outcome\":\"{outcome}\",\"output\":{output}}}",
        operation.process, operation.invoked
    )
}
