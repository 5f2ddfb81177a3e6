//! `syros lead`: a planned change of leaders.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use syros_client::StatusReport;
use syros_protocol::message::RoleName;
use syros_types::{ReplicaId, View};

use crate::cluster::{ANSWER_TIMEOUT, ClusterOptions};
use crate::status::{order, poll, query};

/// Within this time the new leader leads: a view change between live replicas takes milliseconds.
const LEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Options of `syros lead`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros lead 2                                   in the cluster of the node at 127.0.0.1:6379
  syros lead 0 --addr db1:6379,db2:6379          whichever of them answers tells about all replicas
  syros lead 2 --secret-file syros-data/secret   where the nodes have a secret, as those of syros dev do

Requests under way are not lost, and none fails: they wait for the new leader. A node that is told to end
(SIGTERM) while it leads hands over by itself. Exit status 0: the replica leads.")]
pub(crate) struct Options {
    /// The replica that is to lead
    id: u8,
    #[command(flatten)]
    cluster: ClusterOptions,
}

/// Has a replica take over, and waits until it has.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let id = options.id;
    let cluster = options.cluster.open()?;
    let (replicas, access) = (&cluster.replicas, cluster.access());
    let query = |address: &str| query(address, access);
    let Some(next) = replicas.get(usize::from(id)) else {
        return Err(format!(
            "there is no replica {id}: the cluster has replicas 0 to {}",
            replicas.len() - 1
        ));
    };
    let target = query(next).map_err(|problem| format!("replica {id} at {next} is down: {problem}"))?;
    if target.role == RoleName::Leader {
        println!("replica {id} leads view {} already", View(target.view));
        return Ok(ExitCode::SUCCESS);
    }
    let leads = |address: &&String| query(address).is_ok_and(|report| report.role == RoleName::Leader);
    let leader = replicas.iter().find(leads).ok_or("no replica leads at the moment; try again")?;
    let began = Instant::now();
    order(leader, |address| syros_client::hand_over(address, ReplicaId(id), access, ANSWER_TIMEOUT))?;
    let led = poll(LEAD_TIMEOUT, || match query(next) {
        Ok(StatusReport { role: RoleName::Leader, view, .. }) => Some(view),
        _ => None,
    });
    let Some(view) = led else {
        return Err(format!(
            "replica {id} does not lead after {} s: the leader at {leader} may have had no answer from it lately",
            LEAD_TIMEOUT.as_secs()
        ));
    };
    println!("replica {id} leads view {}, after {} ms", View(view), began.elapsed().as_millis());
    Ok(ExitCode::SUCCESS)
}
