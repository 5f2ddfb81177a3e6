//! Events as operators and their tools read them.

use super::*;
use crate::rate_limit::RateLimit;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const PATIENCE: Duration = Duration::from_secs(20);

/// What would be on standard error.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A sink whose time is virtual.
struct Stage {
    sink: Arc<Sink>,
    output: Output,
    seconds: Arc<AtomicU64>,
}

impl Stage {
    fn new(filter: &str, format: Format, is_coloured: bool) -> Self {
        Self::in_context(filter, format, is_coloured, &[])
    }

    fn in_context(filter: &str, format: Format, is_coloured: bool, context: &[(&'static str, u64)]) -> Self {
        let rate_limit = RateLimit { lines: 3, window: Duration::from_secs(60) };
        let settings =
            Settings { filter: filter.parse().unwrap(), format, rate_limit, context: context.to_vec() };
        let (output, seconds) = (Output::default(), Arc::<AtomicU64>::default());
        let queue = Queue::start(output.clone(), lost_lines(&settings, is_coloured)).unwrap();
        let now = Arc::clone(&seconds);
        let clock = move || {
            let running = Duration::from_secs(now.load(Ordering::Relaxed));
            Time { since_epoch: Duration::from_millis(951_827_696_007) + running, running }
        };
        let sink = Arc::new(Sink::new(&settings, is_coloured, Box::new(clock), queue));
        Self { sink, output, seconds }
    }

    fn play(&self, story: impl FnOnce()) -> String {
        tracing::subscriber::with_default(Arc::clone(&self.sink), story);
        self.text()
    }

    fn text(&self) -> String {
        assert!(self.sink.flush(PATIENCE));
        String::from_utf8(std::mem::take(&mut *self.output.0.lock().unwrap())).unwrap()
    }
}

fn objects(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// What a client may send to be taken for us: ends of lines, sequences for terminals, ends of strings and fields.
const FORGERY: &str =
    "x\n2026-01-01T00:00:00.000Z ERROR the disk is gone\r\n\u{1b}[2J\u{9b}31m\"} node=7 {\"a\":\"\u{2028}";

fn tell_everything() {
    let error = std::io::Error::other("no space left");
    tracing::warn!(
        node = 1_u8,
        view = u64::MAX,
        offset = -1_i64,
        is_leader = true,
        ratio = 0.5,
        peer = %std::net::SocketAddr::from(([127, 0, 0, 1], 6379)),
        group = None::<u64>,
        error = %error,
        "this node leads"
    );
}

#[test]
fn people_read_time_level_message_and_fields() {
    let text = Stage::new("info", Format::Human, false).play(tell_everything);
    assert_eq!(
        text,
        "2000-02-29T12:34:56.007Z WARN  this node leads node=1 view=18446744073709551615 offset=-1 is_leader=true \
         ratio=0.5 peer=127.0.0.1:6379 error=\"no space left\"\n"
    );
    // The module is for those who look for one.
    let text = Stage::new("debug", Format::Human, false).play(|| tracing::debug!("closed"));
    assert_eq!(text, format!("2000-02-29T12:34:56.007Z DEBUG closed target={}\n", module_path!()));
}

#[test]
fn terminals_get_colours_and_nothing_else_does() {
    let text = Stage::new("info", Format::Human, true).play(|| tracing::warn!(node = 1, "this node leads"));
    assert_eq!(
        text,
        "2000-02-29T12:34:56.007Z \u{1b}[33mWARN \u{1b}[0m this node leads \u{1b}[2mnode=\u{1b}[0m1\n"
    );
}

#[test]
fn programs_read_one_object_a_line() {
    let text = Stage::new("info", Format::Json, true).play(tell_everything);
    let expected = json!({
        "time": "2000-02-29T12:34:56.007Z", "level": "warn", "target": module_path!(), "message": "this node leads",
        "node": 1, "view": u64::MAX, "offset": -1, "is_leader": true, "ratio": 0.5, "peer": "127.0.0.1:6379",
        "error": "no space left"
    });
    assert_eq!(objects(&text), [expected]);
}

#[test]
fn what_is_the_same_for_the_process_is_in_every_line() {
    let story = || {
        for _ in 0..5 {
            tracing::info!(node = 1, "this node leads");
        }
    };
    let stage = Stage::in_context("info", Format::Human, false, &[("group", 3), ("shard", 4)]);
    let text = stage.play(story);
    assert_eq!(text.matches(" this node leads node=1 group=3 shard=4\n").count(), 3, "{text}");
    stage.seconds.fetch_add(120, Ordering::Relaxed);
    assert!(stage.play(story).contains(" node=1 group=3 shard=4 suppressed=2\n"));
    let lost = lost_lines(&Settings { context: vec![("group", 3)], ..Settings::default() }, false)(7);
    assert!(lost.ends_with(" group=3 lost=7\n"), "{lost}");
}

#[test]
fn numbers_that_json_has_not_are_text() {
    let text = Stage::new("info", Format::Json, false)
        .play(|| tracing::info!(ratio = f64::NAN, wide = u128::MAX, took = ?Duration::from_millis(5), "odd"));
    assert!(text.contains("\"ratio\":\"NaN\"") && text.contains("\"took\":\"5ms\""), "{text}");
    assert!(text.contains("\"wide\":340282366920938463463374607431768211455"), "{text}");
}

#[test]
fn bytes_of_others_cannot_forge_a_line_or_a_field() {
    let story = || {
        tracing::warn!(peer = FORGERY, name = ?FORGERY.as_bytes(), "refused a connection");
        tracing::warn!("{FORGERY}");
    };
    let text = Stage::new("info", Format::Json, false).play(story);
    let lines = objects(&text);
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["peer"], &lines[0]["node"]), (&json!(FORGERY), &Value::Null));
    assert_eq!(lines[1]["message"], json!(FORGERY));
    assert_eq!(lines[1].as_object().unwrap().len(), 4);

    let text = Stage::new("info", Format::Human, false).play(story);
    assert_eq!(text.lines().count(), 2, "{text}");
    let is_harmless =
        |character: char| character == '\n' || !character.is_control() && character != '\u{2028}';
    assert!(text.chars().all(is_harmless), "{text:?}");
    // The value is in quotes, and the quotes within it are escaped: it ends where it ends.
    let (_, value) = text.lines().next().unwrap().split_once(" peer=").unwrap();
    let value = serde_json::Deserializer::from_str(value).into_iter::<String>().next().unwrap().unwrap();
    assert_eq!(value, FORGERY);
}

#[test]
fn long_values_are_cut() {
    let stage = Stage::new("info", Format::Json, false);
    let text = stage.play(|| tracing::warn!(name = %"x".repeat(1 << 20), "{}", "y".repeat(1 << 20)));
    assert!(text.len() < 8 << 10, "{}", text.len());
    let line = &objects(&text)[0];
    assert!(
        line["name"].as_str().unwrap().ends_with("x…") && line["message"].as_str().unwrap().ends_with("y…")
    );
}

#[test]
fn a_call_site_that_writes_too_much_says_later_how_much() {
    let stage = Stage::new("info", Format::Json, false);
    let complain = || tracing::warn!(peer = FORGERY, "refused a connection");
    let text = stage.play(|| {
        (0..1_000_000).for_each(|_| complain());
        tracing::info!("another call site");
    });
    let lines = objects(&text);
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|line| line["suppressed"].is_null()), "{text}");
    stage.seconds.store(60, Ordering::Relaxed);
    let lines = objects(&stage.play(|| (0..2).for_each(|_| complain())));
    assert_eq!((&lines[0]["suppressed"], &lines[1]["suppressed"]), (&json!(999_997), &Value::Null));
}

#[test]
fn fields_of_an_event_that_is_off_are_not_computed() {
    let computed = AtomicU64::new(0);
    let value = || computed.fetch_add(1, Ordering::Relaxed);
    let stage = Stage::new("info,syros_logging::nowhere=trace", Format::Human, false);
    let text = stage.play(|| {
        tracing::debug!(value = value(), "off");
        tracing::trace!(value = value(), "off");
        tracing::debug!(target: "syros_logging::nowhere::deep", value = value(), "on");
    });
    assert_eq!((computed.load(Ordering::Relaxed), text.lines().count()), (1, 1), "{text}");
}

#[test]
fn spans_cost_nothing_and_are_not_written() {
    let stage = Stage::new("trace", Format::Human, false);
    let text = stage.play(|| {
        let span = tracing::info_span!("request", number = 1);
        assert!(span.is_disabled());
        span.in_scope(|| tracing::info!("inside"));
    });
    assert_eq!(text, "2000-02-29T12:34:56.007Z INFO  inside\n");
}

#[test]
fn libraries_that_use_log_are_written_filtered_and_limited_too() {
    let stage = Stage::new("info,fjall=off", Format::Json, false);
    let bridge = LogBridge(Arc::clone(&stage.sink));
    let record = |target, level, line| {
        let record = log::Record::builder()
            .args(format_args!("compaction failed"))
            .level(level)
            .target(target)
            .module_path_static(Some("lsm_tree::worker"))
            .line(Some(line))
            .build();
        bridge.log(&record);
    };
    (0..1000).for_each(|_| record("lsm_tree::worker", log::Level::Error, 7));
    record("lsm_tree::worker", log::Level::Debug, 8);
    record("fjall::flush", log::Level::Error, 9);
    let lines = objects(&stage.text());
    assert_eq!(lines.len(), 3);
    assert_eq!(
        (&lines[0]["level"], &lines[0]["target"], &lines[0]["message"]),
        (&json!("error"), &json!("lsm_tree::worker"), &json!("compaction failed"))
    );
    assert_eq!(stage.sink.max_level_of_log(), log::LevelFilter::Info);
    assert_eq!(Stage::new("off", Format::Json, false).sink.max_level_of_log(), log::LevelFilter::Off);
}
