//! `syros member`: who is in a cluster, and how it becomes smaller. (It becomes larger when nodes are started that join it.)

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use syros_cli::tls::TlsOptions;
use syros_client::{Access, StatusReport};
use syros_protocol::message::RoleName;
use syros_runtime::REDIS_ADDRESS;
use syros_types::{Group, View};

use crate::secret;
use crate::status::{leader_of, order, parse_address, poll, query, replicas_of, reports_of};

/// How long a replica may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Within this time the smaller group serves: it takes two view changes at most, each of which takes milliseconds.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(15);

/// How long there may be no leader.
const LEADER_TIMEOUT: Duration = Duration::from_secs(3);

/// A leader that has not changed the members after this long is asked again: it may have let another one lead first.
const ASK_AGAIN: Duration = Duration::from_millis(500);

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
    List(Cluster),
    /// Have the cluster go on without its two last nodes
    Remove {
        /// The numbers of the two last nodes
        #[arg(required = true, num_args = 2)]
        replicas: Vec<u8>,
        #[command(flatten)]
        access: Cluster,
    },
}

/// Where the cluster is, and what is needed to ask it.
#[derive(Args, Debug)]
struct Cluster {
    /// Redis address of any node or gateway of the cluster; further ones are tried if it is down
    #[arg(long, value_name = "H:P,..", value_delimiter = ',', default_values_t = [REDIS_ADDRESS.to_string()], value_parser = parse_address)]
    addr: Vec<String>,
    /// File with the cluster's secret, if the nodes have one (secret-file in their configuration)
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsOptions,
}

/// Shows or changes the members.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let of = match &options.what {
        What::List(access) | What::Remove { access, .. } => access,
    };
    let secret = of.secret_file.as_deref().map(secret::read).transpose()?;
    let credentials = of.tls.credentials()?;
    let access = Access { secret: secret.as_ref(), credentials: credentials.as_ref() };
    let replicas = replicas_of(&of.addr, access.credentials)?;
    match &options.what {
        What::List(_) => list(&replicas, access),
        What::Remove { replicas: gone, .. } => return remove(&replicas, gone, access),
    }
    Ok(ExitCode::SUCCESS)
}

fn list(replicas: &[String], access: Access<'_>) {
    for (id, address) in replicas.iter().enumerate() {
        let address = if address.is_empty() { "(unknown)" } else { address };
        match query(address, access) {
            Ok(StatusReport { role, view, replicas, .. }) => {
                println!("replica {id}  {address}  {role}  view {}  of {replicas}", View(view));
            }
            Err(problem) => println!("replica {id}  {address}  down: {problem}"),
        }
    }
}

/// Has the group become smaller, and waits until it serves so.
fn remove(replicas: &[String], gone: &[u8], access: Access<'_>) -> Result<ExitCode, String> {
    let Some((leader, report)) = poll(LEADER_TIMEOUT, || leader_of(reports_of(replicas, access))) else {
        return Err(format!(
            "no replica has led for {} s: too few may be there; syros status tells",
            LEADER_TIMEOUT.as_secs()
        ));
    };
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
    let ask = |leader: &str| {
        order(leader, |address| syros_client::shrink(address, smaller, access, ANSWER_TIMEOUT))
    };
    let began = Instant::now();
    ask(leader)?;
    let mut asked_at = Instant::now();
    let stay = &replicas[..smaller.size().min(replicas.len())];
    let changed = poll(CHANGE_TIMEOUT, || {
        if let Some(view) = view_of_majority(&reports_of(stay, access), smaller) {
            return Some(Ok(view));
        }
        if asked_at.elapsed() > ASK_AGAIN
            && let Some((leader, _)) = leader_of(reports_of(replicas, access))
        {
            asked_at = Instant::now();
            return ask(leader).err().map(Err);
        }
        None
    });
    let Some(view) = changed.transpose()? else {
        return Err(format!(
            "the cluster has not become smaller after {} s: majorities of both its nodes and those that stay have to be there, \
             and have to have been for half a second (syros status tells)",
            CHANGE_TIMEOUT.as_secs()
        ));
    };
    println!(
        "the cluster has {} nodes from view {} on, after {} ms. The processes of replicas {} and {} end by themselves when they \
         hear of it; nobody needs their data directories",
        smaller.size(),
        View(view),
        began.elapsed().as_millis(),
        last[0],
        last[1]
    );
    Ok(ExitCode::SUCCESS)
}

/// The newest view of a group of this size, if a majority of it takes part in that.
fn view_of_majority(reports: &[(&String, StatusReport)], group: Group) -> Option<u64> {
    let takes_part = |report: &StatusReport| {
        let is_normal = matches!(report.role, RoleName::Leader | RoleName::Follower);
        (is_normal && usize::from(report.replicas) == group.size()).then_some(report.view)
    };
    let views = || reports.iter().filter_map(|(_, report)| takes_part(report));
    let newest = views().max()?;
    (views().filter(|view| *view == newest).count() >= group.majority()).then_some(newest)
}
