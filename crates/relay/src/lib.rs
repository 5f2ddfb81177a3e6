//! Lines between regions, on one machine: a relay that lets bytes arrive as late as they would.
//!
//! ```text
//!  process in region a ──▶ relay's address of (a, replica 1) ──▶ replica 1, in region b
//!                               line a → b, line b → a
//! ```
//!
//! Whoever is in a region reaches a replica at the address that the relay has for the two. What is sent on
//! such a connection waits in the relay until [`Traffic`](syros_regions::Traffic) says that it has arrived. One
//! thread does it all, and a timer of the system tells it the time: a delay is exact to some ten microseconds
//! as long as the machine has a processor to spare.

#![forbid(unsafe_code)]

mod connection;
mod event_loop;
mod flow;

pub use event_loop::CONNECTIONS_MAX;

use event_loop::{EventLoop, RelayListener, WAKE};
use mio::net::TcpListener;
use mio::{Poll, Waker};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use syros_regions::Regions;
use syros_types::Prng;

/// A relay at work. Its connections are closed and its thread ends when it is dropped.
#[derive(Debug)]
pub struct Relay {
    replicas: Vec<SocketAddr>,
    regions_of_replicas: Vec<usize>,
    /// By region and replica.
    addresses: BTreeMap<(usize, usize), SocketAddr>,
    is_stopped: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Listens, on loopback, for connections from each region to each of the replicas, which are at these
    /// addresses. Jitter and loss follow from the seed.
    ///
    /// # Errors
    /// The system refuses a socket, a timer or a thread.
    ///
    /// # Panics
    /// If there is not one address for each replica of the regions.
    pub fn start(regions: &Regions, replicas: &[SocketAddr], seed: u64) -> io::Result<Self> {
        assert_eq!(regions.replicas().len(), replicas.len(), "each replica has an address");
        raise_file_limit();
        let places: BTreeSet<usize> = regions.replicas().iter().chain(regions.clients()).copied().collect();
        let (mut listeners, mut addresses) = (Vec::new(), BTreeMap::new());
        for from in places {
            for (replica, (to, address)) in regions.replicas().iter().zip(replicas).enumerate() {
                let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
                addresses.insert((from, replica), listener.local_addr()?);
                let lines = [regions.line(from, *to), regions.line(*to, from)];
                listeners.push(RelayListener { listener, to: *address, lines });
            }
        }
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let mut event_loop = EventLoop::new(poll, listeners, Prng::new(seed), Arc::clone(&is_stopped))?;
        let work = move || {
            // Without it nobody reaches anybody, which whoever waits for the cluster will say.
            if let Err(error) = event_loop.run() {
                eprintln!("syros: the relay between regions has ended: {error}");
            }
        };
        let thread = std::thread::Builder::new().name("relay".to_owned()).spawn(work)?;
        Ok(Self {
            replicas: replicas.to_vec(),
            regions_of_replicas: regions.replicas().to_vec(),
            addresses,
            is_stopped,
            waker,
            thread: Some(thread),
        })
    }

    /// Where whoever is in this region, one of a replica or of clients, reaches the replicas, in order.
    #[must_use]
    pub fn addresses_from(&self, region: usize) -> Vec<SocketAddr> {
        (0..self.replicas.len()).map(|replica| self.addresses[&(region, replica)]).collect()
    }

    /// Where this replica reaches the others, in order; it itself is where it listens.
    #[must_use]
    pub fn addresses_for_replica(&self, replica: usize) -> Vec<SocketAddr> {
        let mut addresses = self.addresses_from(self.regions_of_replicas[replica]);
        addresses[replica] = self.replicas[replica];
        addresses
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
        // If it cannot be woken it is not waited for.
        if self.waker.wake().is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// Every connection takes two files, and whoever starts a relay often has the clients too. If the system does not
/// let us have as many, connections are refused.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

#[cfg(test)]
mod tests;
