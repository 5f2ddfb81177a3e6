//! `syros member`: who is in a cluster, and how it becomes smaller. (It becomes larger when nodes are started that join it.)

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use syros_client::StatusReport;
use syros_types::{Group, View};

use crate::cluster::{ANSWER_TIMEOUT, Cluster, ClusterOptions, view_of_majority};
use crate::status::{order, query};

/// Within this time the smaller group serves: it takes two view changes at most, each of which takes milliseconds.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(15);

/// Options of `syros member`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros member list                            who is in the cluster of the node at 127.0.0.1:6379
  syros member remove 3 4                      a cluster of five becomes one of three
  syros member remove 3 4 --addr db1:6379,db2:6379 --secret-file syros-data/secret

A cluster becomes larger by two when two new nodes are started that join it: their configuration files list all nodes, the
new ones last, and they are started with `syros server --config FILE --join`. It becomes smaller by the two nodes with the
highest numbers. A node whose disk is lost is replaced, whatever its number: docs/OPERATING.md, \"Replacing a node\".
Requests under way are not lost, and none fails.")]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Show the nodes of the cluster
    List(ClusterOptions),
    /// Have the cluster go on without its two last nodes
    Remove {
        /// The numbers of the two last nodes
        #[arg(required = true, num_args = 2)]
        replicas: Vec<u8>,
        #[command(flatten)]
        cluster: ClusterOptions,
    },
}

/// Shows or changes the members.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    match &options.what {
        What::List(cluster) => list(&cluster.open()?),
        What::Remove { replicas: gone, cluster } => remove(&cluster.open()?, gone)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(cluster: &Cluster) {
    for (id, address) in cluster.replicas.iter().enumerate() {
        let address = if address.is_empty() { "(unknown)" } else { address };
        match query(address, cluster.access()) {
            Ok(StatusReport { role, view, replicas, .. }) => {
                syros_cli::tell!("replica {id}  {address}  {role}  view {}  of {replicas}", View(view));
            }
            Err(problem) => syros_cli::tell!("replica {id}  {address}  down: {problem}"),
        }
    }
}

/// Has the group become smaller, and waits until it serves so.
fn remove(cluster: &Cluster, gone: &[u8]) -> Result<(), String> {
    let (leader, report) = cluster.leader()?;
    let size = usize::from(report.replicas);
    let group = Group::new(size).map_err(|error| error.to_string())?;
    let Some(smaller) = group.smaller() else {
        return Err("the cluster has one node, and cannot become smaller".to_owned());
    };
    let mut gone = gone.to_vec();
    gone.sort_unstable();
    let last = [size as u8 - 2, size as u8 - 1];
    if gone != last {
        return Err(format!(
            "a cluster of {size} becomes smaller by replicas {} and {}, its last ones, and by no others. To do without the \
             machine of another one, have a new node take its place (syros server --replace)",
            last[0], last[1]
        ));
    }
    let began = Instant::now();
    let ask = |leader: &str| {
        order(leader, |address| syros_client::shrink(address, smaller, cluster.access(), ANSWER_TIMEOUT))
    };
    let changed = cluster.change(leader, CHANGE_TIMEOUT, ask, |reports| {
        view_of_majority(reports, smaller, |report| {
            usize::from(report.replicas) == smaller.size() && usize::from(report.replica) < smaller.size()
        })
    })?;
    let Some(view) = changed else {
        return Err(format!(
            "the cluster has not become smaller after {} s: majorities of both its nodes and those that stay have to be there, \
             and have to have been for half a second (syros status tells)",
            CHANGE_TIMEOUT.as_secs()
        ));
    };
    let nodes = if smaller.size() == 1 { "node" } else { "nodes" };
    syros_cli::tell!(
        "the cluster has {} {nodes} from view {} on, after {} ms. The processes of replicas {} and {} end by themselves when they \
         hear of it; nobody needs their data directories",
        smaller.size(),
        View(view),
        began.elapsed().as_millis(),
        last[0],
        last[1]
    );
    if smaller.faults() == 0 {
        syros_cli::tell!("It does not survive the loss of a node any more.");
    }
    Ok(())
}
