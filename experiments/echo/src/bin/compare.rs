//! Runs servers against the load in interleaved rounds and prints medians with their spread.
//!
//! `compare --rounds 5 --seconds 2 --shapes 50x1,3x50,50x16 --servers "mio;tokio --style tasks"`: each round
//! runs every server once, in an order that turns by one with each round. `--pin 1` holds the server on core
//! 0 and the load on core 1.

use echo::option;
use std::io::{BufRead, BufReader, Error, Read, Result};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Figures of one run, in the order of [`NAMES`].
type Run = [f64; 6];
const NAMES: [&str; 6] = ["us", "rate", "user", "busy", "reads", "writes"];

fn command(folder: &Path, program: &str, core: &str, pin: bool) -> Command {
    let path = folder.join(program);
    if !pin {
        return Command::new(path);
    }
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(path);
    command
}

/// The number after `name` in a line of `name value` pairs.
fn figure(line: &str, name: &str) -> Result<f64> {
    let mut words = line.split_whitespace().skip_while(|word| *word != name).skip(1);
    let value = words.next().and_then(|word| word.parse().ok());
    value.ok_or_else(|| Error::other(format!("no {name} in {line:?}")))
}

fn measure(server: &mut Child, folder: &Path, shape: &str, pin: bool) -> Result<Run> {
    let mut out = BufReader::new(server.stdout.take().expect("piped"));
    let mut port = String::new();
    out.read_line(&mut port)?;
    let (connections, depth) = shape.split_once('x').ok_or_else(|| Error::other("a shape is CxD"))?;
    let load = command(folder, "load", "1", pin)
        .args(["--connections", connections, "--depth", depth, "--port", port.trim()])
        .args(["--server-pid", &server.id().to_string()])
        .args(["--seconds", &option("--seconds", String::from("2"))])
        .output()?;
    let mut line = String::from_utf8_lossy(&load.stdout).into_owned();
    if !load.status.success() {
        return Err(Error::other(String::from_utf8_lossy(&load.stderr).into_owned()));
    }
    // The server ends by itself once the load has gone, and says what it counted.
    out.read_to_string(&mut line)?;
    let messages = figure(&line, "messages")?;
    let mut run = Run::default();
    for (slot, name) in run.iter_mut().zip(NAMES) {
        *slot = figure(&line, name)?;
    }
    run[4] /= messages;
    run[5] /= messages;
    Ok(run)
}

fn run(server: &str, folder: &Path, shape: &str, pin: bool) -> Result<Run> {
    let mut words = server.split_whitespace();
    let program = format!("server_{}", words.next().unwrap_or_default());
    let mut child = command(folder, &program, "0", pin).args(words).stdout(Stdio::piped()).spawn()?;
    let result = measure(&mut child, folder, shape, pin);
    if result.is_err() {
        child.kill()?;
    }
    child.wait()?;
    result
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let servers = option("--servers", String::from("mio;tokio --style tasks"));
    let servers: Vec<&str> = servers.split(';').map(str::trim).collect();
    let shapes = option("--shapes", String::from("50x1,3x50,50x16"));
    let (rounds, pin) = (option("--rounds", 5usize), option("--pin", 0) == 1);
    let program = std::env::current_exe()?;
    let folder = program.parent().ok_or_else(|| Error::other("a program has a folder"))?;
    for shape in shapes.split(',') {
        let mut runs: Vec<Vec<Run>> = vec![Vec::new(); servers.len()];
        for round in 0..rounds {
            for turn in 0..servers.len() {
                let index = (round + turn) % servers.len();
                runs[index].push(run(servers[index], folder, shape, pin)?);
            }
        }
        println!("{shape:<28} us/msg  [min   max ]    msg/s  user  busy  reads/msg writes/msg  ratio");
        for (server, own) in servers.iter().zip(&runs) {
            let low = own.iter().map(|run| run[0]).fold(f64::INFINITY, f64::min);
            let high = own.iter().map(|run| run[0]).fold(0.0, f64::max);
            let median = |column: usize| median(own.iter().map(|run| run[column]));
            let us = median(0);
            // Against the first server in the same round: a slow minute of the machine hits both.
            let ratio = crate::median(own.iter().zip(&runs[0]).map(|(run, first)| run[0] / first[0]));
            let [rate, user, busy] = [median(1), median(2), median(3)];
            let [reads, writes] = [median(4), median(5)];
            println!(
                "  {server:<26} {us:6.3}  [{low:.3} {high:.3}] {rate:8.0}  {user:.2}  {busy:.2}  {reads:9.3} {writes:10.3}  {ratio:.2}"
            );
        }
    }
    Ok(())
}
