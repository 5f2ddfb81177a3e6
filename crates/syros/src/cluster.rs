//! The cluster that a command is about: where it is, what its nodes want to be shown, and how its leader is asked to change it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use syros_cli::tls::TlsOptions;
use syros_client::{Access, Credentials, StatusReport};
use syros_protocol::message::RoleName;
use syros_runtime::{REDIS_ADDRESS, Secret};
use syros_types::Group;

use crate::secret;
use crate::status::{leader_of, parse_address, poll, replicas_of, reports_of};

/// How long a replica may take to answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long there may be no leader: one that has just died has a successor within a second.
const LEADER_TIMEOUT: Duration = Duration::from_secs(3);

/// A leader that has not done what it was asked for after this long is asked again: it may have given way to another one just then.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// Where the cluster is, and what is needed to ask it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClusterOptions {
    /// Redis address of any node or gateway of the cluster; further ones are tried if it is down
    #[arg(long, value_name = "H:P,..", value_delimiter = ',', default_values_t = [REDIS_ADDRESS.to_string()], value_parser = parse_address)]
    addr: Vec<String>,
    /// File with the cluster's secret, if the nodes have one (secret-file in their configuration)
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsOptions,
}

impl ClusterOptions {
    /// Reads the files that the options name, and asks a node who the replicas are.
    pub(crate) fn open(&self) -> Result<Cluster, String> {
        let (secret, credentials) = self.keys()?;
        let replicas = self.replicas(credentials.as_ref())?;
        Ok(Cluster { replicas, secret, credentials })
    }

    /// The front ends that were named.
    pub(crate) fn addresses(&self) -> &[String] {
        &self.addr
    }

    /// What the named files hold.
    pub(crate) fn keys(&self) -> Result<(Option<Secret>, Option<Credentials>), String> {
        let secret = self.secret_file.as_deref().map(secret::read).transpose()?;
        Ok((secret, self.tls.credentials()?))
    }

    /// Where the replicas listen for others, as a node or gateway says.
    pub(crate) fn replicas(&self, credentials: Option<&Credentials>) -> Result<Vec<String>, String> {
        replicas_of(&self.addr, credentials)
    }
}

/// A cluster whose replicas are known.
pub(crate) struct Cluster {
    /// Where each replica listens for others, in the order of their numbers; empty where nobody knows.
    pub replicas: Vec<String>,
    secret: Option<Secret>,
    credentials: Option<Credentials>,
}

impl Cluster {
    /// What is shown to the replicas.
    pub(crate) const fn access(&self) -> Access<'_> {
        Access { secret: self.secret.as_ref(), credentials: self.credentials.as_ref() }
    }

    /// The replica that leads, and what it says: within some seconds there is one, unless too few are there.
    pub(crate) fn leader(&self) -> Result<(&String, StatusReport), String> {
        poll(LEADER_TIMEOUT, || leader_of(reports_of(&self.replicas, self.access()))).ok_or_else(|| {
            format!(
                "no replica has led for {} s: too few may be there; syros status tells",
                LEADER_TIMEOUT.as_secs()
            )
        })
    }

    /// Asks `leader` for a change, and asks whoever leads again while what `done` looks for is not there; `None`: it is not there
    /// after `timeout`.
    pub(crate) fn change<T>(
        &self,
        leader: &str,
        timeout: Duration,
        ask: impl Fn(&str) -> Result<(), String>,
        done: impl Fn(&[(&String, StatusReport)]) -> Option<T>,
    ) -> Result<Option<T>, String> {
        ask(leader)?;
        let mut asked_at = Instant::now();
        let changed = poll(timeout, || {
            let reports = reports_of(&self.replicas, self.access());
            if let Some(answer) = done(&reports) {
                return Some(Ok(answer));
            }
            if asked_at.elapsed() <= ASK_AGAIN {
                return None;
            }
            let (leader, _) = leader_of(reports)?;
            asked_at = Instant::now();
            ask(leader).err().map(Err)
        });
        changed.transpose()
    }
}

/// The newest view that a majority of the group takes part in, among the replicas that `is_changed` is true of: only such a view
/// outlives its leader.
pub(crate) fn view_of_majority(
    reports: &[(&String, StatusReport)],
    group: Group,
    is_changed: impl Fn(&StatusReport) -> bool,
) -> Option<u64> {
    let takes_part = |report: &&StatusReport| {
        matches!(report.role, RoleName::Leader | RoleName::Follower) && is_changed(report)
    };
    let views = || reports.iter().map(|(_, report)| report).filter(takes_part).map(|report| report.view);
    let newest = views().max()?;
    (views().filter(|view| *view == newest).count() >= group.majority()).then_some(newest)
}
