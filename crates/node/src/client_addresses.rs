//! How many clients are connected from each address.
//!
//! A client that opens connections without end, by mistake or on purpose, would take the places of all others. With a
//! limit for each address it takes its own.
//!
//! The simulator does not run this: where a simulated client comes from has no meaning, and a connection that is refused
//! has done nothing yet that a history could show. What can go wrong here is the count, and the tests below have that.

use core::fmt;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Whose connections count together: an IPv4 address, or a network of IPv6 with a prefix of 64 bits, because whoever has
/// one address of such a network can have any of them (RFC 6177).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientSource(IpAddr);

/// The part of an IPv6 address that names its network.
const NETWORK: u128 = u128::MAX << 64;

impl From<IpAddr> for ClientSource {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & NETWORK)),
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl fmt::Display for ClientSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => address.fmt(f),
            IpAddr::V6(network) => write!(f, "{network}/64"),
        }
    }
}

/// One more client may not be connected from an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyFromAddress {
    /// Where it comes from.
    pub source: ClientSource,
    /// Clients that are connected from there.
    pub open: usize,
    /// The limit.
    pub limit: usize,
}

impl fmt::Display for TooManyFromAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, open, limit } = self;
        write!(f, "{open} connections are open from {source}, and the limit for one address is {limit}")
    }
}

impl core::error::Error for TooManyFromAddress {}

/// The connected clients of one kind, by where they come from. Has no more entries than there are connections.
#[derive(Debug, Default)]
pub struct ClientAddresses {
    open: HashMap<ClientSource, usize>,
}

impl ClientAddresses {
    /// Counts a client, unless as many as may be are connected from its address. Clients are counted without a limit, too
    /// (`None`), so that one can be set while they are connected: those that exceed it then stay.
    ///
    /// # Errors
    /// [`TooManyFromAddress`]: it is not counted, and is not to be admitted.
    pub fn enter(&mut self, source: ClientSource, limit: Option<usize>) -> Result<(), TooManyFromAddress> {
        let open = self.open.get(&source).copied().unwrap_or(0);
        if let Some(limit) = limit.filter(|limit| open >= *limit) {
            return Err(TooManyFromAddress { source, open, limit });
        }
        self.open.insert(source, open + 1);
        Ok(())
    }

    /// A client that was counted has gone.
    ///
    /// # Panics
    /// If none from there was counted.
    pub fn leave(&mut self, source: ClientSource) {
        let open = self.open.get_mut(&source).expect("who leaves has entered");
        *open -= 1;
        if *open == 0 {
            self.open.remove(&source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> ClientSource {
        ClientSource::from(text.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn an_address_takes_no_more_than_its_places() {
        let mut addresses = ClientAddresses::default();
        let (near, far) = (source("10.0.0.1"), source("10.0.0.2"));
        for _ in 0..2 {
            addresses.enter(near, Some(2)).unwrap();
        }
        let refused = addresses.enter(near, Some(2)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "2 connections are open from 10.0.0.1, and the limit for one address is 2"
        );
        addresses.enter(far, Some(2)).unwrap();
        // Who was refused was not counted: one place is free when one has gone.
        addresses.leave(near);
        addresses.enter(near, Some(2)).unwrap();
        addresses.enter(near, Some(2)).unwrap_err();
    }

    #[test]
    fn a_limit_that_is_set_later_counts_those_that_are_there() {
        let mut addresses = ClientAddresses::default();
        let near = source("10.0.0.1");
        for _ in 0..5 {
            addresses.enter(near, None).unwrap();
        }
        assert_eq!(addresses.enter(near, Some(3)).unwrap_err().open, 5);
        for _ in 0..2 {
            addresses.leave(near);
        }
        addresses.enter(near, Some(3)).unwrap_err();
        addresses.leave(near);
        addresses.enter(near, Some(3)).unwrap();
    }

    #[test]
    fn those_that_have_gone_leave_nothing_behind() {
        let mut addresses = ClientAddresses::default();
        for host in 0..1000_u32 {
            let from = ClientSource::from(IpAddr::from(host.to_be_bytes()));
            addresses.enter(from, Some(1)).unwrap();
            addresses.leave(from);
        }
        assert!(addresses.open.is_empty());
    }

    #[test]
    fn addresses_of_one_network_count_together() {
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:1:2:3"));
        assert_ne!(source("2001:db8:0:1::1"), source("2001:db8:0:2::1"));
        assert_eq!(
            source("::ffff:10.0.0.1"),
            source("10.0.0.1"),
            "the same client, by a socket for both families"
        );
        assert_eq!(source("2001:db8::1").to_string(), "2001:db8::/64");
    }
}
