//! `syros certificate`: certificates for a cluster that has no authority of its own yet.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use syros_cli::read_text;
use syros_cli::tls::files_in;
use syros_tls::{Authority, Files, Identity, Role, ValidityDays};
use syros_types::{Group, ReplicaId};

/// Files of an authority.
pub(crate) const AUTHORITY: &str = "authority.pem";
const AUTHORITY_KEY: &str = "authority.key";

/// Most days that a certificate is made for: a hundred years.
const DAYS_MAX: u32 = 36_500;

/// Options of `syros certificate`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros certificate authority /root/ca
  syros certificate node 0 --authority /root/ca --cluster 0x4711 --host db1,10.0.0.1 --to /etc/syros/tls
  syros certificate client --authority /root/ca --cluster 0x4711 --host gateway1 --to gateway-tls
  syros certificate admin --authority /root/ca --cluster 0x4711 --to ~/syros-admin
  syros status --tls ~/syros-admin --replicas db1:7379,db2:7379,db3:7379

Any other authority will do as well: a certificate for node 0 of cluster 0x4711 has the URI syros://18193/node/0 among its
subject alternative names, for use by servers and clients; that of an application syros://18193/client, that of an
administrator syros://18193/admin. Redis clients look at the host names in a node's or gateway's certificate.")]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make a certificate authority: authority.pem, which everybody may see, and authority.key, which nobody may
    Authority {
        /// Directory to make, or an empty one
        directory: PathBuf,
        /// Name of the authority
        #[arg(long, value_name = "NAME", default_value = "Syros")]
        name: String,
        /// Days for which it is valid
        #[arg(long, value_name = "DAYS", default_value_t = ValidityDays::AUTHORITY.0, value_parser = clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX)))]
        days: u32,
    },
    /// Make the certificate of a node
    Node {
        /// Its replica id
        replica: u8,
        #[command(flatten)]
        holder: Holder,
    },
    /// Make a certificate for applications and gateways
    Client {
        #[command(flatten)]
        holder: Holder,
    },
    /// Make a certificate for those who may also change how the cluster works: syros lead, syros mode
    Admin {
        #[command(flatten)]
        holder: Holder,
    },
}

/// For whom a certificate is.
#[derive(Args, Debug)]
struct Holder {
    /// Directory of the authority
    #[arg(long, value_name = "DIR")]
    authority: PathBuf,
    /// The cluster's number, as its nodes' configuration has it
    #[arg(long, value_name = "NUMBER", value_parser = parse_cluster)]
    cluster: u64,
    /// Host names and IP addresses under which Redis clients reach it
    #[arg(long, value_name = "HOST,..", value_delimiter = ',', value_parser = parse_host)]
    host: Vec<String>,
    /// Directory for certificate.pem, key.pem and authorities.pem: a new one, or one whose files are to be renewed
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Days for which it is valid
    #[arg(long, value_name = "DAYS", default_value_t = ValidityDays::HOLDER.0, value_parser = clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX)))]
    days: u32,
}

pub(crate) fn parse_cluster(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed
        .ok()
        .filter(|number| (1..=i64::MAX as u64).contains(number))
        .ok_or_else(|| "a number above 0 is expected, such as 0x4711".to_owned())
}

fn parse_host(text: &str) -> Result<String, String> {
    let host = text.trim();
    let is_name = |host: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.*".contains(&byte);
        !host.is_empty() && host.bytes().all(is_part)
    };
    if host.parse::<std::net::IpAddr>().is_ok() || is_name(host) {
        return Ok(host.to_owned());
    }
    Err("a host name or an IP address is expected, without a port, such as db1.example.com or 10.0.0.1"
        .to_owned())
}

/// Makes certificates.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let (role, holder) = match &options.command {
        Command::Authority { directory, name, days } => {
            make_authority(directory, name, ValidityDays(*days))?;
            syros_cli::tell!(
                "{}: an authority, for {days} days. Keep authority.key away from the nodes",
                directory.display()
            );
            return Ok(ExitCode::SUCCESS);
        }
        Command::Node { replica, holder } => {
            if usize::from(*replica) >= Group::SIZE_MAX {
                let most = Group::SIZE_MAX - 1;
                return Err(format!(
                    "there is no replica {replica}: the ids of replicas go from 0 to {most}"
                ));
            }
            (Role::Node(ReplicaId(*replica)), holder)
        }
        Command::Client { holder } => (Role::Client, holder),
        Command::Admin { holder } => (Role::Administrator, holder),
    };
    let identity = Identity { cluster: holder.cluster, role };
    issue(&holder.authority, identity, &holder.host, ValidityDays(holder.days), &holder.to)?;
    syros_cli::tell!("{}: a certificate for {identity}, for {} days", holder.to.display(), holder.days);
    Ok(ExitCode::SUCCESS)
}

/// Has the authority in a directory make a certificate, whose files come into another directory.
pub(crate) fn issue(
    authority: &Path,
    identity: Identity,
    hosts: &[String],
    days: ValidityDays,
    to: &Path,
) -> Result<(), String> {
    let authority_certificate = read(&authority.join(AUTHORITY))?;
    let issuer = Authority::read(&authority_certificate, &read(&authority.join(AUTHORITY_KEY))?)
        .map_err(|error| format!("{}: it is no authority: {error}", authority.display()))?;
    let issued = issuer
        .issue(identity, hosts, days)
        .map_err(|error| format!("there is no certificate for {identity}: {error}"))?;
    if to.join(AUTHORITY_KEY).exists() {
        return Err(format!("{} is the directory of an authority: choose another one", to.display()));
    }
    make_directory(to)?;
    let Files { certificate, key, authorities } = files_in(to);
    // One that is renewed has the same name.
    if let Ok(text) = read_text(&certificate)
        && let Some(theirs) = Identity::of_pem(&text)
        && theirs != identity
    {
        return Err(format!(
            "{} holds a certificate for {theirs}, which is not written over with one for {identity}: choose another directory",
            to.display()
        ));
    }
    // Whoever reads in between finds a pair that does not fit, and keeps what it has.
    write(&key, &issued.key, 0o600)?;
    write(&certificate, &issued.certificate, 0o644)?;
    // Those that are believed already stay: while another authority takes the place of one, both are.
    let believed = match read_text(&authorities) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("cannot read {}: {error}", authorities.display())),
    };
    if believed.contains(authority_certificate.trim_end()) {
        return Ok(());
    }
    let separator = if believed.is_empty() || believed.ends_with('\n') { "" } else { "\n" };
    write(&authorities, &format!("{believed}{separator}{authority_certificate}"), 0o644)
}

/// Makes an authority in a directory that has none.
pub(crate) fn make_authority(directory: &Path, name: &str, days: ValidityDays) -> Result<(), String> {
    make_directory(directory)?;
    for file in [AUTHORITY, AUTHORITY_KEY] {
        let path = directory.join(file);
        if path.exists() {
            return Err(format!("{} is there already: it is not written over", path.display()));
        }
    }
    let (_, issued) =
        Authority::make(name, days).map_err(|error| format!("there is no authority \"{name}\": {error}"))?;
    write(&directory.join(AUTHORITY_KEY), &issued.key, 0o600)?;
    write(&directory.join(AUTHORITY), &issued.certificate, 0o644)
}

fn read(path: &Path) -> Result<String, String> {
    read_text(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn make_directory(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))
}

/// Writes a whole file, or leaves the one that is there.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = File::options().create_new(true).write(true).mode(mode).open(&new).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    // A node that runs as another user has to be able to read what is renewed for it.
    if let Ok(before) = fs::metadata(path) {
        let owner = (Some(before.uid()), Some(before.gid()));
        let _ = std::os::unix::fs::chown(&new, owner.0, owner.1);
    }
    fs::rename(&new, path).map_err(failed)
}
