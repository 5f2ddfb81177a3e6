//! Clusters for the tests, and whether there can be any.

use crate::common::{Scratch, engine, syros};
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use syros_bench::cluster::{Cluster, ClusterOptions, Error};

/// How long a cluster may take to be whole again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// Clients of a test give up after this long. Long enough for every fault here that the cluster survives.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(5);

/// The tests are about time: they run one by one.
static ALONE: Mutex<()> = Mutex::new(());

/// A cluster of its own for one test.
pub(crate) struct Setup {
    // In the order in which they must go.
    pub(crate) cluster: Cluster,
    _scratch: Scratch,
    _alone: MutexGuard<'static, ()>,
}

/// Prints where even the output of tests that pass is seen.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// One test at a time, from here on.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cluster that is ready, in namespaces; none if this machine has no namespaces for us. Moves the calling
/// thread, and so this test, to where its clients are.
pub(crate) fn start(test: &str, replicas: usize) -> Option<Setup> {
    start_with_spare(test, replicas, 0)
}

/// A cluster that can grow by so many nodes.
pub(crate) fn start_with_spare(test: &str, replicas: usize, spare: usize) -> Option<Setup> {
    let (alone, scratch) = (alone(), Scratch::new(test));
    let started = Cluster::start(ClusterOptions {
        program: syros().get_program().into(),
        directory: scratch.0.clone(),
        replicas,
        spare,
        namespaces: true,
        regions: None,
        settings: format!(
            "engine = \"{}\"\n[timing]\noperation-timeout = \"{}ms\"",
            engine(),
            GIVE_UP_AFTER.as_millis()
        ),
    });
    let mut cluster = match started {
        Ok(cluster) => cluster,
        Err(error @ (Error::NotRoot | Error::NoNamespaces(_))) => {
            say(&format!("test {test} is skipped: {error}"));
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    cluster.wait_until_well(PATIENCE).unwrap();
    Some(Setup { cluster, _scratch: scratch, _alone: alone })
}

pub(crate) fn sleep(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}
