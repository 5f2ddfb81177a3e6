//! How many files and connections this process may have open, and who gets how many.
//!
//! Clients come in any number, and what a client takes the log may need for its next segment. So a node counts at its
//! start what its files, its links and those who have not yet said who they are take at most, raises the limit of the
//! process to what it needs, and admits only as many clients as are left.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that a node opens beside its connections and the tables of its engine: log, view, snapshots that are written,
/// read and sent at once, what the scrub reads, two for each name that is being looked up, and a connection that is about to
/// be refused.
const FILES: usize = 64;

/// Connections to one other member: one that works, one that takes its place, and two attempts.
const CONNECTIONS_PER_MEMBER: usize = 4;

/// Most tables of a store on disk whose files are kept open.
const TABLES: usize = 512;

/// Files of a store on disk that do not count as kept open: those that a merge reads and writes.
const MERGED: usize = 64;

/// What a process wants to have open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) members: usize,
    pub(crate) has_store: bool,
    /// Most connections of Redis clients; `None` where none can come.
    pub(crate) redis_clients: Option<usize>,
    /// Most connections of Syros clients; `None` where none can come.
    pub(crate) peer_clients: Option<usize>,
    /// Most connections to the port for replicas whose other end has not said who it is.
    pub(crate) unidentified: usize,
    /// Most TLS handshakes at a time; 0 without TLS.
    pub(crate) handshakes: usize,
}

/// What a process may have open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptors {
    /// Connections of Redis clients.
    pub(crate) redis_clients: usize,
    /// Connections of Syros clients.
    pub(crate) peer_clients: usize,
    /// Connections to the port for replicas whose other end has not said who it is.
    pub(crate) unidentified: usize,
    /// Connections whose TLS handshake is under way.
    pub(crate) handshakes: usize,
    /// Tables of one store on disk.
    pub(crate) tables: usize,
}

impl Demand {
    /// What there must be before any client.
    const fn files(self) -> usize {
        FILES + CONNECTIONS_PER_MEMBER * self.members
    }

    /// Files of the stores: a second store is open while it takes over a snapshot.
    const fn stores(self, tables: usize) -> usize {
        if self.has_store { 2 * tables + MERGED } else { 0 }
    }

    /// Everything that is wanted.
    fn all(self) -> usize {
        let clients = self.redis_clients.unwrap_or(0) + self.peer_clients.unwrap_or(0);
        self.files() + self.stores(TABLES) + self.unidentified + self.handshakes + clients
    }

    /// Distributes so many files and connections. An error: the least that there must be.
    fn share(self, available: usize) -> Result<Descriptors, usize> {
        let left = available.saturating_sub(self.files());
        // Where there is little, half of it is for clients at least.
        let unidentified = self.unidentified.min(left / 8);
        let handshakes = self.handshakes.min(left / 8);
        let tables = if self.has_store { TABLES.min(left / 8) } else { 0 };
        let room = left.saturating_sub(unidentified + handshakes + self.stores(tables));
        let (redis, peer) = (self.redis_clients.unwrap_or(0), self.peer_clients.unwrap_or(0));
        // Most clients are Redis's.
        let redis_clients = redis.min(if peer > 0 { room - room / 4 } else { room });
        let peer_clients = peer.min(room - redis_clients);
        let is_enough = redis_clients >= redis.min(1) && peer_clients >= peer.min(1) && room > 0;
        if !is_enough {
            return Err(self.files() + self.stores(TABLES / 32) + 16);
        }
        Ok(Descriptors { redis_clients, peer_clients, unidentified, handshakes, tables })
    }
}

/// What follows from too low a limit, and what an operator can do.
const FEWER_CLIENTS: &str = "it admits fewer clients, and keeps the rest for its files and the other nodes. Raise the limit \
                             (ulimit -n, LimitNOFILE= of systemd), or lower the setting";

/// Raises the limit of the process as far as needed and possible, and distributes what it allows. Warns if that is less
/// than `setting` says.
pub(crate) fn claim(demand: Demand, setting: &str) -> io::Result<Descriptors> {
    let open = open_now();
    let needed = open + demand.all();
    let limit = raise(needed);
    let share = demand.share(limit.saturating_sub(open)).map_err(|least| {
        io::Error::other(format!(
            "this process may have {limit} files open at a time, and it needs {} at least. Raise the limit (ulimit -n, \
             LimitNOFILE= of systemd)",
            open + least
        ))
    })?;
    let fits = |wanted: Option<usize>, got| wanted.is_none_or(|wanted| wanted == got);
    let (redis_fit, all_fit) = (
        fits(demand.redis_clients, share.redis_clients),
        fits(demand.redis_clients, share.redis_clients) && fits(demand.peer_clients, share.peer_clients),
    );
    if !all_fit {
        let wanted = demand.redis_clients.or(demand.peer_clients).unwrap_or(0);
        let problem =
            format!("{setting} is {wanted}, but this process may have {limit} files open at a time");
        let (redis_clients, syros_clients) = (share.redis_clients, share.peer_clients);
        // Syros clients are few.
        if redis_fit && demand.redis_clients.is_some() {
            tracing::info!(limit, needed, redis_clients, syros_clients, "{problem}: {FEWER_CLIENTS}");
        } else {
            tracing::warn!(limit, needed, redis_clients, syros_clients, "{problem}: {FEWER_CLIENTS}");
        }
    }
    Ok(share)
}

/// Raises the limit of open files to `needed`, or as far as this process may; the limit from now on.
fn raise(needed: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let number = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
    // No limit is what the system gives as none.
    let Some(current) = current else { return usize::MAX };
    let wanted = maximum.map_or(needed as u64, |maximum| maximum.min(needed as u64));
    if wanted <= current {
        return number(current);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => {
            tracing::debug!(limit = wanted, before = current, "the limit of open files has been raised");
            number(wanted)
        }
        Err(error) => {
            tracing::debug!(limit = current, wanted, error = %error, "the limit of open files cannot be raised");
            number(current)
        }
    }
}

/// Files and connections that this process has open already.
fn open_now() -> usize {
    /// What is assumed where the system does not say.
    const ASSUMED: usize = 16;
    // The directory itself is open while it is read.
    fs::read_dir("/proc/self/fd").map_or(ASSUMED, |files| files.count().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Demand = Demand {
        members: 3,
        has_store: false,
        redis_clients: Some(10_000),
        peer_clients: Some(10_000),
        unidentified: 256,
        handshakes: 0,
    };

    #[test]
    fn who_needs_no_more_than_there_is_gets_all() {
        for has_store in [false, true] {
            let demand = Demand { has_store, ..NODE };
            let tables = if has_store { TABLES } else { 0 };
            let all = Descriptors {
                redis_clients: 10_000,
                peer_clients: 10_000,
                unidentified: 256,
                handshakes: 0,
                tables,
            };
            assert_eq!(demand.share(demand.all()), Ok(all));
            assert_eq!(demand.share(usize::MAX), Ok(all));
        }
    }

    #[test]
    fn clients_get_what_files_and_links_leave() {
        let demands = [
            NODE,
            Demand { has_store: true, ..NODE },
            Demand { handshakes: 512, ..NODE },
            Demand { redis_clients: None, ..NODE },
            Demand { peer_clients: None, unidentified: 0, ..NODE },
            Demand { members: 9, redis_clients: Some(7), ..NODE },
        ];
        for demand in demands {
            let mut enough = 0;
            for available in 0..40_000 {
                let Ok(share) = demand.share(available) else {
                    assert_eq!(enough, 0, "more is enough, too");
                    continue;
                };
                enough += 1;
                let Descriptors { redis_clients, peer_clients, unidentified, handshakes, tables } = share;
                let taken = demand.files()
                    + demand.stores(tables)
                    + unidentified
                    + handshakes
                    + redis_clients
                    + peer_clients;
                assert!(taken <= available, "{share:?} of {available}");
                assert!(redis_clients <= demand.redis_clients.unwrap_or(0));
                assert!(peer_clients <= demand.peer_clients.unwrap_or(0));
                assert!(redis_clients > 0 || demand.redis_clients.is_none());
            }
            let least = demand.share(0).unwrap_err();
            assert!(demand.share(least).is_ok(), "{demand:?}: the least is enough");
        }
        // What systemd and shells give by default.
        let usual = NODE.share(1024).unwrap();
        assert!((600..900).contains(&usual.redis_clients), "{usual:?}");
    }
}
