//! Feeds the targets with mutated inputs: `fuzz [--seconds N] [--seed N] [TARGET..]`, or one input again:
//! `fuzz TARGET --input HEX`. Without names, every target has its turn of so many seconds (default 10).

use std::process::ExitCode;
use std::time::{Duration, Instant};
use syros_fuzz::{TARGETS, Target, fuzz};

fn main() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn work() -> Result<(), String> {
    let (mut seconds, mut seed, mut input, mut chosen) = (10, 1, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().unwrap_or_default();
            value.parse().map_err(|_| format!("{argument} takes a number, not '{value}'"))
        };
        match argument.as_str() {
            "--seconds" => seconds = number()?,
            "--seed" => seed = number()?,
            "--input" => input = Some(bytes(&arguments.next().unwrap_or_default())?),
            name => chosen.push(named(name)?),
        }
    }
    if let Some(input) = input {
        let [target] = chosen[..] else { return Err("--input is for one target".to_owned()) };
        println!("{}: accepted: {}", target.name, (target.run)(&input));
        return Ok(());
    }
    let targets = if chosen.is_empty() { TARGETS.iter().collect() } else { chosen };
    for target in targets {
        let end = Instant::now() + Duration::from_secs(seconds);
        // Looking at the clock takes as long as some targets do.
        let report = fuzz(target, seed, |runs| runs % 16 != 0 || Instant::now() < end);
        let report = report.map_err(|failure| {
            format!("{failure}\nseed {seed}; once more: fuzz {} --input HEX", failure.target)
        })?;
        println!("{}: {} inputs, {} accepted, seed {seed}", target.name, report.runs, report.accepted);
    }
    Ok(())
}

fn named(name: &str) -> Result<&'static Target, String> {
    let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    let found = TARGETS.iter().find(|target| target.name == name);
    found.ok_or_else(|| format!("'{name}' is no target: {}", names.join(", ")))
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    bytes.filter(|_| rest.is_empty()).ok_or_else(|| "an input is hexadecimal, two digits a byte".to_owned())
}
