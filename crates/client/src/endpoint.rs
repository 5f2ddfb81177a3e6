//! Where a replica listens.

use core::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};

use crate::status::StatusError;

/// The addresses of one replica, each of which is tried in turn: a name may have several. A name is looked up again when
/// the connection is lost or cannot be made, because the replica may have moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As `host:port`, unless it is an address.
    name: Option<String>,
    addresses: Vec<SocketAddr>,
    next: usize,
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self { name: None, addresses: vec![address], next: 0 }
    }
}

impl Endpoint {
    /// Resolves a name, or takes an address. May block for as long as the system's resolver does.
    ///
    /// # Errors
    /// Whatever the resolver says; `NotFound` if it finds no address.
    pub fn resolve(name: impl ToSocketAddrs + Display) -> std::io::Result<Self> {
        let addresses: Vec<SocketAddr> = name.to_socket_addrs()?.collect();
        if addresses.is_empty() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        let text = name.to_string();
        let name = text.parse::<SocketAddr>().is_err().then_some(text);
        Ok(Self { name, addresses, next: 0 })
    }

    /// The address to try now.
    #[must_use]
    pub fn current(&self) -> SocketAddr {
        self.addresses[self.next]
    }

    /// Asks at one address after the other, until somebody answers, or says why not.
    ///
    /// # Errors
    /// What `ask` says at the last address that was asked: [`StatusError::Io`] means that nobody could be asked there.
    pub fn ask<T>(
        &self,
        mut ask: impl FnMut(SocketAddr) -> Result<T, StatusError>,
    ) -> Result<T, StatusError> {
        let mut others = self.addresses.iter().cycle().skip(self.next).take(self.addresses.len());
        let first = others.next().expect("an endpoint has an address");
        others.fold(ask(*first), |answer, address| match answer {
            Err(StatusError::Io(_) | StatusError::ClosedAtOnce { .. }) => ask(*address),
            answer => answer,
        })
    }

    /// The current address has failed: the next one's turn.
    pub(crate) const fn rotate(&mut self) {
        self.next = (self.next + 1) % self.addresses.len();
    }

    /// The name to look up again, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The name leads there now. Where that is nothing new, in whatever order, the address whose turn it is stays.
    pub(crate) fn replace(&mut self, addresses: Vec<SocketAddr>) {
        let is_known = |address| self.addresses.contains(address);
        let is_new = addresses.len() != self.addresses.len() || !addresses.iter().all(is_known);
        if is_new && !addresses.is_empty() {
            self.addresses = addresses;
            self.next = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 7379))
    }

    #[test]
    fn an_address_has_no_name_to_look_up() {
        assert_eq!(Endpoint::resolve("127.0.0.1:7379").unwrap().name(), None);
        assert_eq!(Endpoint::resolve("localhost:7379").unwrap().name(), Some("localhost:7379"));
        assert_eq!(Endpoint::from(address(1)).name(), None);
    }

    #[test]
    fn all_addresses_are_asked_until_somebody_answers() {
        let endpoint = Endpoint { name: None, addresses: (1..5).map(address).collect(), next: 1 };
        let mut asked = Vec::new();
        let answer = endpoint.ask(|to| {
            asked.push(to);
            if to == address(4) { Ok(4) } else { Err(StatusError::Io(std::io::ErrorKind::TimedOut.into())) }
        });
        assert_eq!((answer.unwrap(), asked), (4, vec![address(2), address(3), address(4)]));
        let mut asked = 0;
        let refused = endpoint.ask(|_| -> Result<(), _> {
            asked += 1;
            Err(StatusError::SecretNeeded)
        });
        assert!(matches!(refused, Err(StatusError::SecretNeeded)));
        assert_eq!(asked, 1, "that is an answer");
        let nobody = |_| -> Result<(), _> { Err(StatusError::Io(std::io::ErrorKind::TimedOut.into())) };
        assert!(matches!(endpoint.ask(nobody), Err(StatusError::Io(_))));
    }

    #[test]
    fn what_a_name_leads_to_now_is_tried_from_the_first() {
        let name = Some("db1:7379".to_owned());
        let mut endpoint = Endpoint { name, addresses: vec![address(1), address(2)], next: 0 };
        endpoint.rotate();
        endpoint.replace(vec![address(2), address(1)]);
        assert_eq!(endpoint.current(), address(2), "the name server has only changed the order");
        endpoint.replace(Vec::new());
        assert_eq!(endpoint.current(), address(2));
        endpoint.replace(vec![address(3), address(2)]);
        assert_eq!(endpoint.current(), address(3));
    }
}
