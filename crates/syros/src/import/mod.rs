//! `syros import`: all data of a Redis or Valkey server, or of a file that one wrote, into a cluster that serves.

mod account;
mod address;
mod connection;
mod follow;
mod from_file;
mod from_server;
mod loader;
mod patient;
mod repeater;
mod replication;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use syros_cli::tls::TlsOptions;
use syros_runtime::REDIS_ADDRESS;

use crate::secret;
use crate::status::{PASSWORD_VARIABLE, parse_address};
use address::{From, parse_from};
use connection::Login;
use loader::Loader;
use target::{Existing, Target};

/// The password of the server that data comes from.
const FROM_PASSWORD_VARIABLE: &str = "SYROS_FROM_PASSWORD";

/// Options of `syros import`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros import --from dump.rdb --dry-run                         reads all of it, and says what would be done
  syros import --from dump.rdb --to db1:6379,db2:6379
  syros import --from redis://old:6379 --to db1:6379             every database of a server that runs
  syros import --from redis://old:6379 --to db1:6379 --follow    and every update after that, until Ctrl-C
  syros import --from redis://reader@old:6379/3 --from-password-file old-password --merge
  syros import --from dump.rdb --to db1:6380 --tls ~/syros-admin where the nodes speak TLS

A file is read twice: everything in it is checked, checksum included, before anything is written. A running server is asked for
each key: what clients write there meanwhile may come or not, so stop them first. With --follow the command is a replica of the
server: it gets a file, as of one moment, imports it, and repeats every update in the cluster, until Ctrl-C.

Keys go to the database that they are in. Nothing is written if the cluster has keys, unless --replace or --merge is given. A key
whose type is that of a module cannot be imported, nor one that exceeds a limit of Syros: such keys are named, and nothing is
written, unless --skip-unsupported leaves them out. The import may be run again: with --replace it ends as if run once.

Passwords do not stand on the command line. The cluster's is in the file that --to-password-file names, or in the environment
variable REDISCLI_AUTH; the server's in that of --from-password-file, or in SYROS_FROM_PASSWORD.

Exit status 0: everything is in the cluster, but for what a line says; 1: it is not, and a line says why.")]
pub(crate) struct Options {
    /// An RDB file, or a Redis or Valkey server: redis://HOST:PORT, with USER@ before and /DATABASE after that where needed
    #[arg(long, value_name = "FILE|URL", value_parser = parse_from)]
    from: From,
    /// Redis address of any node or gateway of the cluster; further ones are tried if it is down
    #[arg(long, value_name = "H:P,..", value_delimiter = ',', default_values_t = [REDIS_ADDRESS.to_string()], value_parser = parse_address)]
    to: Vec<String>,
    /// User of the cluster; without one the default user
    #[arg(long, value_name = "NAME")]
    to_user: Option<String>,
    /// File with the password of the cluster's user, which only its owner may read
    #[arg(long, value_name = "FILE")]
    to_password_file: Option<PathBuf>,
    /// File with the password of the server that data comes from
    #[arg(long, value_name = "FILE")]
    from_password_file: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsOptions,
    /// Keys that are in the cluster get what they have here; the cluster's other keys stay
    #[arg(long, conflicts_with = "merge")]
    replace: bool,
    /// Keys that are in the cluster stay as they are, and are not imported
    #[arg(long)]
    merge: bool,
    /// Leave out what Syros cannot hold, and name it
    #[arg(long)]
    skip_unsupported: bool,
    /// Be a replica of the server: everything as of one moment, and then every update, until Ctrl-C
    #[arg(long, conflicts_with_all = ["merge", "skip_unsupported", "dry_run"])]
    follow: bool,
    /// Directory for what the server sends while --follow imports its file; by default that for temporary files
    #[arg(long, value_name = "DIR", requires = "follow")]
    spool: Option<PathBuf>,
    /// Write nothing: check the source, look whether the cluster is empty, and say what there is
    #[arg(long)]
    dry_run: bool,
}

impl Options {
    fn existing(&self) -> Existing {
        match (self.replace, self.merge) {
            (true, _) => Existing::Replaced,
            (false, true) => Existing::Kept,
            (false, false) => Existing::None,
        }
    }

    fn target(&self) -> Result<Target, String> {
        let login = Login {
            user: self.to_user.clone(),
            password: password(self.to_password_file.as_deref(), PASSWORD_VARIABLE)?,
            credentials: self.tls.credentials()?.map(Arc::new),
        };
        let mut target = Target::new(self.to.clone(), login);
        target.check_kind()?;
        let keys = target.keys()?;
        if keys > 0 && self.existing() == Existing::None {
            return Err(format!(
                "the cluster has {keys} keys, and nothing was written: --replace overwrites those that are imported, --merge \
                 keeps them and imports the others"
            ));
        }
        Ok(target)
    }
}

/// Imports.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    match &options.from {
        From::File(_) if options.follow => {
            Err("--follow wants a server: --from redis://HOST:PORT".to_owned())
        }
        From::File(path) => from_file::import(options, path),
        From::Server(server) if options.follow => {
            let password = password(options.from_password_file.as_deref(), FROM_PASSWORD_VARIABLE)?;
            follow::import(options, server, password)
        }
        From::Server(server) => {
            let password = password(options.from_password_file.as_deref(), FROM_PASSWORD_VARIABLE)?;
            from_server::import(options, server, password)
        }
    }
}

/// The password in a file, or in the environment.
fn password(file: Option<&std::path::Path>, variable: &str) -> Result<Option<String>, String> {
    match file {
        Some(file) => secret::read_password_text(file).map(Some),
        None => Ok(std::env::var(variable).ok().filter(|password| !password.is_empty())),
    }
}

/// The loader for a target.
fn loader(options: &Options, target: Target) -> Loader {
    Loader::new(target, options.existing(), options.skip_unsupported)
}
