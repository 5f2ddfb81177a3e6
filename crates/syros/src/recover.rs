//! `syros recover`: what is left of a cluster that has lost its majority for good, as a backup.

use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use syros_logging::utc;
use syros_runtime::{RecoveryPlan, Stamp};
use syros_types::{ReplicaId, WallTime};

use crate::backup;
use crate::place::{PlaceOptions, is_bucket, warn};

/// Options of `syros recover`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros recover /mnt/node1                               tells what could be recovered, and what may be lost
  syros recover /mnt/node1 /mnt/node3                    of five nodes two are left
  syros recover /mnt/node1 --to /backups/rest --force    makes a backup of it
  syros restore /backups/rest --config node0.toml        then makes the nodes of a new cluster, like any backup

Only for a cluster whose majority is lost for good: updates that were acknowledged may be lost. Stop all nodes, bring copies of all
data directories that are left to one machine, and name all of them: each one more may hold what the others lack. They are not
changed, except that an engine on disk removes unfinished files of its own. Without --force nothing is written.

Exit status 0: it was told what can be recovered, or the backup is made; 1: nothing can be, and a line says why.")]
pub(crate) struct Options {
    /// Data directories of the nodes that are left
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// Where the backup goes: a directory or s3://BUCKET/PREFIX, new or empty
    #[arg(long, value_name = "TARGET", requires = "force")]
    to: Option<PathBuf>,
    /// Make the backup, although acknowledged updates may be lost
    #[arg(long, requires = "to")]
    force: bool,
    #[command(flatten)]
    place: PlaceOptions,
}

/// Tells what can be recovered, and does it if it is told to.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    if let Some(target) = options.to.as_deref().filter(|target| !is_bucket(target)) {
        check_target(target, &options.directories)?;
    }
    let plan = RecoveryPlan::make(&options.directories).map_err(|error| error.to_string())?;
    tell(&plan);
    let Some(target) = options.to.as_deref().filter(|_| options.force) else {
        syros_cli::tell!("nothing was written: with --to TARGET --force this becomes a backup");
        return Ok(ExitCode::SUCCESS);
    };
    let stamp =
        Stamp { id: backup::random_id()?, product: syros_cli::VERSION.to_owned(), created: backup::now() };
    let target = &options.place.open(target)?;
    let manifest = plan.write(target, stamp).map_err(|error| format!("{error}; there is no backup"))?;
    warn(target);
    backup::print_summary(target, "was made of what is left", &manifest);
    syros_cli::tell!("syros restore makes the nodes of a new cluster of it");
    Ok(ExitCode::SUCCESS)
}

/// Checks that a backup has a place of its own: what is left of the cluster is not to be touched, and a node does not start in a
/// directory with a backup in it.
fn check_target(target: &Path, directories: &[PathBuf]) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("cannot find {}: {error}", path.display());
    let place = resolved(target).map_err(|error| failed(target, error))?;
    for directory in directories {
        let data = resolved(directory).map_err(|error| failed(directory, error))?;
        let relation = if place == data {
            "is"
        } else if place.starts_with(&data) {
            "is inside"
        } else if data.starts_with(&place) {
            "contains"
        } else {
            continue;
        };
        return Err(format!(
            "--to {} {relation} the data directory {}, of which this command changes nothing: the backup needs a new directory \
             elsewhere",
            target.display(),
            directory.display()
        ));
    }
    Ok(())
}

/// Where a path leads, though its last parts may not be there yet.
fn resolved(path: &Path) -> std::io::Result<PathBuf> {
    let mut place = PathBuf::new();
    for component in std::path::absolute(path)?.components() {
        match component {
            Component::ParentDir => drop(place.pop()),
            component => place.push(component),
        }
        match place.canonicalize() {
            Ok(real) => place = real,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(place)
}

/// Says exactly what there is, and what may be lost.
fn tell(plan: &RecoveryPlan) {
    for (at, survivor) in plan.survivors.iter().enumerate() {
        let (path, replica) = (survivor.path.display(), survivor.identity.replica);
        let Some(remains) = &survivor.remains else {
            syros_cli::tell!("{path}: {replica}, which had lost its memory: it knows nothing");
            continue;
        };
        syros_cli::tell!(
            "{path}: {replica}, normal in view {}, log up to entry {} of {}, committed up to {}, {} updates in its durability \
             log{}",
            remains.last_normal,
            remains.op_number().0,
            time(remains.time_at(remains.op_number())),
            remains.commit.0,
            remains.dlog.len(),
            if at == plan.chosen { "; its log is taken" } else { "" }
        );
    }
    for left_out in &plan.left_out {
        let (path, replica) = (left_out.path.display(), left_out.identity.replica);
        syros_cli::tell!(
            "{path}: {replica}, which was replaced or removed before: the cluster has gone on without it, and it is left out"
        );
    }
    let RecoveryPlan { certain, last, kept, obsolete, .. } = plan;
    let lost: Vec<String> = plan.lost.iter().map(|ReplicaId(replica)| replica.to_string()).collect();
    syros_cli::tell!("replicas without a directory: {}", lost.join(", "));
    syros_cli::tell!("certain      everything up to entry {}: the cluster had agreed on it", certain.0);
    syros_cli::tell!(
        "kept         {} entries behind it, up to {}, and up to {} updates of durability logs: they may have been acknowledged, \
         and the lost replicas may have ordered them otherwise",
        last.op_number.0 - certain.0,
        last.op_number.0,
        kept.len()
    );
    if *obsolete > 0 {
        syros_cli::tell!(
            "left out     {obsolete} updates of durability logs of earlier views: the view that is taken had dealt with them"
        );
    }
    syros_cli::tell!(
        "may be lost  every other update: those that were acknowledged and that only the lost replicas had. Entry {} has the time {}, \
         and entry {}, the last one that is left, {}: look at what was written from shortly before the first of them on",
        certain.0,
        time(plan.certain_time),
        last.op_number.0,
        time(last.time)
    );
}

/// A log time, for people.
fn time(time: WallTime) -> String {
    utc(time.0 / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::check_target;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_backup_has_a_place_of_its_own() {
        let base = std::env::temp_dir().join(format!("syros-recover-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        let [one, three] = ["mnt/node1", "mnt/node3"].map(|name| base.join(name));
        for data in [&one, &three] {
            fs::create_dir_all(data.join("wal")).unwrap();
        }
        symlink(&three, base.join("link")).unwrap();
        let directories = [one, three];
        for (target, complaint) in [
            ("mnt/node3", "is the data directory"),
            ("mnt/node1/.", "is the data directory"),
            ("link", "is the data directory"),
            ("mnt/node1/new/deep", "is inside the data directory"),
            ("mnt/node3/wal", "is inside the data directory"),
            ("link/new", "is inside the data directory"),
            ("new/../mnt/node1/new", "is inside the data directory"),
            ("mnt", "contains the data directory"),
            ("", "contains the data directory"),
        ] {
            let problem = check_target(&base.join(target), &directories).unwrap_err();
            assert!(problem.contains(complaint), "{target}: {problem}");
        }
        for target in ["mnt/node2", "mnt/node11", "new/deep", "link/../node1-rest"] {
            assert_eq!(check_target(&base.join(target), &directories), Ok(()), "{target}");
        }
        fs::remove_dir_all(&base).unwrap();
    }
}
