//! The program: nodes of a replicated file store, and a client on the command line.

#![forbid(unsafe_code)]

mod bench;
mod nodes;

use std::io::{BufRead, Write};
use std::net::ToSocketAddrs;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use record_append::Files;
use syros_client::{Access, Options, ReadPolicy, StatusReport};

/// How long a node may take to say how it is.
const STATUS_PATIENCE: Duration = Duration::from_secs(2);

/// A replicated file store: append records to named files, read ranges of them
#[derive(Parser, Debug)]
#[command(
    version,
    after_help = "Examples:
  record-append cluster                          three nodes on this machine; Ctrl-C ends them, the data stays
  record-append append log 'first' 'second'      two records, each durable on a quorum before the next is sent
  seq 1000 | record-append append numbers        one record for each line
  record-append append-at log 'third'            prints which record it is: 2
  record-append read log --from 1 --count 10     one record on each line
  record-append list                             lengths and names of all files
  record-append remove log
  record-append status                           which node leads
  record-append bench --protocols vr,curp-c,skyros --clients 4

Limits: names of files 255 bytes, records 1 MiB, files 1 GiB. All files are in the memory of every node.
How it is made, and how to make your own: docs/STATE_MACHINES.md"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Where the nodes are.
#[derive(Args, Clone, Debug)]
struct Connection {
    /// Addresses of all nodes, in the order of their ids
    #[arg(
        long,
        value_name = "HOST:PORT,..",
        value_delimiter = ',',
        default_value = "127.0.0.1:7500,127.0.0.1:7501,127.0.0.1:7502"
    )]
    nodes: Vec<String>,
    /// How reads are answered: auto, leader, meta, quorum or stale
    #[arg(long, value_name = "POLICY", default_value = "auto")]
    reads: ReadPolicy,
}

impl Connection {
    fn files(&self) -> Result<Files, String> {
        let files = Files::connect(&self.nodes, Options::default()).map_err(|error| error.to_string())?;
        Ok(files.reading(self.reads))
    }
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Runs three nodes in this process
    Cluster(nodes::ClusterOptions),
    /// Measures appends of several clients to one file, by protocol
    Bench(bench::BenchOptions),
    /// Runs one node
    Node(nodes::NodeOptions),
    /// Appends records to a file: one round trip each
    Append {
        #[command(flatten)]
        connection: Connection,
        /// The file; it need not exist
        file: String,
        /// The records; if there are none, the lines of standard input
        records: Vec<String>,
    },
    /// Appends a record to a file and prints which one it is
    AppendAt {
        #[command(flatten)]
        connection: Connection,
        /// The file; it need not exist
        file: String,
        /// The record
        record: String,
    },
    /// Prints records of a file, one on each line
    Read {
        #[command(flatten)]
        connection: Connection,
        /// The file
        file: String,
        /// The first record
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Most records
        #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
        count: u64,
    },
    /// Prints how many records a file has
    Length {
        #[command(flatten)]
        connection: Connection,
        /// The file
        file: String,
    },
    /// Prints lengths and names of all files
    List {
        #[command(flatten)]
        connection: Connection,
    },
    /// Prints what every node is and how much it has executed
    Status {
        #[command(flatten)]
        connection: Connection,
    },
    /// Removes a file: one round trip
    Remove {
        #[command(flatten)]
        connection: Connection,
        /// The file
        file: String,
    },
}

fn main() -> ExitCode {
    let result = run(Arguments::parse().command);
    syros_logging::flush();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("record-append: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), String> {
    let failed = |error: record_append::Error| error.to_string();
    let mut out = std::io::stdout().lock();
    let mut print = |line: &[u8]| {
        out.write_all(line)
            .and_then(|()| out.write_all(b"\n"))
            .map_err(|error| format!("cannot print: {error}"))
    };
    match command {
        Command::Cluster(options) => nodes::run_cluster(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Node(options) => nodes::run_node(&options),
        Command::Append { connection, file, records } => {
            let files = connection.files()?;
            let append = |record: &[u8]| files.append(file.as_bytes(), record).map_err(failed);
            if records.is_empty() {
                let mut lines = std::io::stdin().lock().split(b'\n');
                return lines.try_for_each(|line| {
                    append(&line.map_err(|error| format!("cannot read standard input: {error}"))?)
                });
            }
            records.iter().try_for_each(|record| append(record.as_bytes()))
        }
        Command::AppendAt { connection, file, record } => {
            let number = connection.files()?.append_at(file.as_bytes(), record.as_bytes()).map_err(failed)?;
            print(number.to_string().as_bytes())
        }
        Command::Read { connection, file, from, count } => {
            let records = connection.files()?.read(file.as_bytes(), from, count).map_err(failed)?;
            records.iter().try_for_each(|record| print(record))
        }
        Command::Length { connection, file } => {
            let length = connection.files()?.length(file.as_bytes()).map_err(failed)?;
            print(length.to_string().as_bytes())
        }
        Command::List { connection } => {
            let files = connection.files()?.list().map_err(failed)?;
            files.iter().try_for_each(|(name, records)| {
                print(format!("{records}\t{}", String::from_utf8_lossy(name)).as_bytes())
            })
        }
        Command::Status { connection } => connection.nodes.iter().try_for_each(|node| {
            let address = node.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
            let address = address.ok_or_else(|| format!("{node} is no address, or nobody knows it"))?;
            print(
                match syros_client::status(address, Access::default(), STATUS_PATIENCE) {
                    Ok(status) => {
                        let StatusReport { role, view, applied, .. } = status;
                        format!("{node}\t{role} of view {view}, has executed {applied} entries")
                    }
                    Err(error) => format!("{node}\t{error}"),
                }
                .as_bytes(),
            )
        }),
        Command::Remove { connection, file } => connection.files()?.remove(file.as_bytes()).map_err(failed),
    }
}
