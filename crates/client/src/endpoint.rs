//! Where a replica listens.

use std::net::{SocketAddr, ToSocketAddrs};

/// The addresses of one replica, each of which is tried in turn: a name may have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    addresses: Vec<SocketAddr>,
    next: usize,
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self { addresses: vec![address], next: 0 }
    }
}

impl Endpoint {
    /// Resolves a name, or takes an address. May block for as long as the system's resolver does.
    ///
    /// # Errors
    /// Whatever the resolver says; `NotFound` if it finds no address.
    pub fn resolve(name: impl ToSocketAddrs) -> std::io::Result<Self> {
        let addresses: Vec<SocketAddr> = name.to_socket_addrs()?.collect();
        if addresses.is_empty() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        Ok(Self { addresses, next: 0 })
    }

    /// The address to try now.
    #[must_use]
    pub fn current(&self) -> SocketAddr {
        self.addresses[self.next]
    }

    /// The current address has failed: the next one's turn.
    pub(crate) const fn rotate(&mut self) {
        self.next = (self.next + 1) % self.addresses.len();
    }
}
