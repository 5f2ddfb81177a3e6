//! redis-server: alone, with a log that it fsyncs, or with replicas.

use super::resp_client::{RespFleet, ask_once};
use super::servers::{Program, Servers};
use super::{PeerError, PeerKind, System};
use crate::cluster::free_addresses;
use crate::fleet::Fleet;
use core::time::Duration;
use std::net::SocketAddr;
use std::path::Path;
use syros_types::Prng;

/// The server.
pub(super) const PROGRAM: Program = Program { name: "redis-server", package: "redis-server" };

/// A server that does not answer within this time is not ready.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A primary, and maybe replicas of it.
pub(super) struct Redis {
    servers: Servers,
    primary: SocketAddr,
    /// A write waits for so many replicas.
    copies: Option<usize>,
}

impl Redis {
    /// Starts them. With [`PeerKind::RedisFsync`], the primary acknowledges nothing that is not on disk; else it keeps
    /// everything in memory. With [`PeerKind::RedisWait`], a write waits for as many replicas as make a majority together with
    /// the primary.
    pub(super) fn start(
        directory: &Path,
        kind: PeerKind,
        replicas: usize,
        servers: Servers,
    ) -> Result<Self, PeerError> {
        let fsync = kind == PeerKind::RedisFsync;
        let addresses: Vec<SocketAddr> =
            free_addresses(replicas)?.into_iter().map(|[address, _]| address).collect();
        let Some((primary, others)) = addresses.split_first() else { unreachable!("there is a primary") };
        let copies = (kind == PeerKind::RedisWait).then_some(replicas / 2);
        let mut redis = Self { servers, primary: *primary, copies };
        redis.start_one(directory, 0, *primary, fsync, "")?;
        redis.servers.wait_until(|| ask(*primary, &[b"PING"]).map(drop))?;
        let primary_words = format!("--replicaof {} {}", primary.ip(), primary.port());
        for (number, address) in others.iter().enumerate() {
            redis.start_one(directory, number + 1, *address, fsync, &primary_words)?;
        }
        redis.servers.wait_until(|| {
            let info = ask(*primary, &[b"INFO", b"replication"])?;
            let online = info.matches("state=online").count();
            if online == others.len() { Ok(()) } else { Err(format!("{online} replicas are online")) }
        })?;
        Ok(redis)
    }

    fn start_one(
        &mut self,
        directory: &Path,
        number: usize,
        address: SocketAddr,
        fsync: bool,
        more: &str,
    ) -> Result<(), PeerError> {
        let log = if fsync { "--appendonly yes --appendfsync always" } else { "--appendonly no" };
        let (host, port) = (address.ip(), address.port());
        let text =
            format!("--bind {host} --port {port} --daemonize no --repl-diskless-sync-delay 0 {log} {more}");
        let mut arguments: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
        // No snapshots.
        arguments.extend(["--save".to_owned(), String::new()]);
        self.servers.start(format!("redis-{number}"), directory, PROGRAM, &arguments)
    }
}

fn ask(server: SocketAddr, words: &[&[u8]]) -> Result<String, String> {
    let answer = ask_once(server, words, ANSWER_WITHIN).map_err(|error| format!("{server}: {error}"))?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

impl System for Redis {
    fn processes(&self) -> Vec<u32> {
        self.servers.processes()
    }

    fn check(&mut self) -> Result<(), PeerError> {
        self.servers.check()
    }

    fn fleet(
        &mut self,
        clients: usize,
        connections: usize,
        value_bytes: usize,
        prng: &mut Prng,
    ) -> Result<Box<dyn Fleet>, PeerError> {
        let fleet = RespFleet::new(&[self.primary], (clients, connections), value_bytes, self.copies, prng);
        Ok(Box::new(fleet.map_err(|error| PeerError::Connect(format!("{}: {error}", self.primary)))?))
    }
}
