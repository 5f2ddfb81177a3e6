//! `--regions`: where replicas and clients are.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::time::Duration;

use syros_regions::Regions;

/// Longest description that is read, in bytes: many times what the most regions and lines take.
const TEXT_BYTES_MAX: u64 = 256 << 10;

/// The description that comes with the program under this name, else the one in this file.
///
/// # Errors
/// There is neither, or it is none.
pub fn load(name: &str) -> Result<Regions, String> {
    let text = match Regions::shipped_text(name) {
        Some(text) => text.to_owned(),
        None => read(name).map_err(|problem| format!("--regions {name}: {problem}"))?,
    };
    Regions::parse(&text).map_err(|problem| format!("--regions {name}: {problem}"))
}

fn read(name: &str) -> Result<String, String> {
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => {
            let shipped: Vec<_> = Regions::shipped().collect();
            format!("there is no such file, nor does it come with the program as {} do", shipped.join(", "))
        }
        _ => format!("it cannot be read: {error}"),
    };
    let mut text = String::new();
    File::open(name)
        .map_err(unreadable)?
        .take(TEXT_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        return Err(format!("the file is longer than {TEXT_BYTES_MAX} bytes"));
    }
    Ok(text)
}

/// What must be set in the table `timing` of the configuration of nodes in these regions; nothing if the
/// defaults suit them.
#[must_use]
pub fn timing(regions: &Regions) -> Vec<(&'static str, Duration)> {
    let patience = regions.patience();
    if patience <= 1 {
        return Vec::new();
    }
    let mut settings = syros_protocol::replica::Settings::new();
    settings.lengthen_timeouts(patience);
    vec![
        ("lease", settings.lease),
        ("suspect-after", settings.suspect_after),
        ("view-change-timeout", settings.view_change_timeout),
        ("resend", settings.resend),
    ]
}

/// The table `timing`, if there is anything in it.
#[must_use]
pub fn timing_table(timing: &[(&'static str, Duration)]) -> String {
    if timing.is_empty() {
        return String::new();
    }
    let lines = timing.iter().map(|(key, value)| format!("{key} = \"{}us\"\n", value.as_micros()));
    format!("\n[timing]\n{}", lines.collect::<String>())
}

/// The table `timing` of nodes in these regions, if they are in any and there is anything in it.
#[must_use]
pub fn timing_of(regions: Option<&Regions>) -> String {
    regions.map_or_else(String::new, |regions| timing_table(&timing(regions)))
}

/// So many replicas and all clients in one place, as `--rtt-ms` and `--jitter-ms` have it; `None` if the distance is this
/// machine's.
///
/// # Errors
/// There is no such distance.
pub fn one_place(replicas: usize, rtt_ms: Option<f64>, jitter_ms: f64) -> Result<Option<Regions>, String> {
    let regions = rtt_ms.map(|rtt_ms| Regions::one_place(replicas, rtt_ms, jitter_ms));
    regions.transpose().map_err(|problem| format!("--rtt-ms: {problem}"))
}

/// Names of the regions that have clients.
#[must_use]
pub fn client_names(regions: &Regions) -> Vec<&str> {
    regions.clients().iter().map(|region| regions.name(*region)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nothing_lists_those_that_are_something() {
        for name in Regions::shipped() {
            assert!(load(name).is_ok(), "{name}");
        }
        let problem = load("no-such-place").unwrap_err();
        assert!(problem.contains("five-continents") && problem.contains("no-such-place"), "{problem}");
        let problem = load("/").unwrap_err();
        assert!(problem.contains("cannot be read"), "{problem}");
        assert!(load("/dev/zero").unwrap_err().contains("longer than"));
    }

    #[test]
    fn the_example_of_the_manual_is_one() {
        let (_, rest) = include_str!("../../../docs/benchmarks/how-to.md").split_once("```toml\n").unwrap();
        let regions = Regions::parse(rest.split_once("```").unwrap().0).unwrap();
        assert_eq!(client_names(&regions), ["oslo", "rome"]);
    }

    #[test]
    fn far_replicas_are_waited_for() {
        assert_eq!(timing_table(&timing(&load("three-zones").unwrap())), "");
        let table = timing_table(&timing(&load("far-leader").unwrap()));
        assert!(table.contains("lease = \"400000us\"\nsuspect-after = \"450000us\""), "{table}");
    }
}
