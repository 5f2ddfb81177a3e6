//! The Redis connections of a front end, by their addresses.

use syros_resp::Connection;
use syros_types::Instant;

/// A Redis connection, and what the front end is still to do for it.
#[derive(Debug)]
pub(super) struct RedisConnection {
    pub(super) redis: Connection,
    /// It is in the list of connections that may go on.
    pub(super) is_answered: bool,
    /// It waits in line for room for the replies to its reads.
    pub(super) waits_for_room: bool,
    /// When what it has asked the front end for is answered, if there is a time for it.
    pub(super) answered_at: Option<Instant>,
    /// Since when more messages wait for its client than should.
    pub(super) lags_since: Option<Instant>,
    /// Its client has closed its end, and waits for replies at most: for nothing that others have to do first.
    pub(super) has_input_ended: bool,
    /// It is about to be closed, because too many messages wait for its client.
    pub(super) is_overrun: bool,
}

/// All Redis connections. The lower half of an address is a place in a table, the upper half counts the uses of that place:
/// a place is used again, an address is not.
#[derive(Debug, Default)]
pub(super) struct RedisConnections {
    places: Vec<Option<(u64, Box<RedisConnection>)>>,
}

/// The place that an address names.
const fn place_of(address: u64) -> usize {
    (address & u32::MAX as u64) as usize
}

impl RedisConnections {
    /// Adds a connection, in the place of an earlier one that is gone.
    pub(super) fn insert(&mut self, address: u64, redis: Connection) {
        let place = place_of(address);
        if self.places.len() <= place {
            self.places.resize_with(place + 1, || None);
        }
        let connection = RedisConnection {
            redis,
            is_answered: false,
            waits_for_room: false,
            answered_at: None,
            lags_since: None,
            has_input_ended: false,
            is_overrun: false,
        };
        self.places[place] = Some((address, Box::new(connection)));
    }

    /// Takes a connection out.
    pub(super) fn remove(&mut self, address: u64) -> Option<Box<RedisConnection>> {
        let place = self.places.get_mut(place_of(address))?;
        place.take_if(|(known, _)| *known == address).map(|(_, connection)| connection)
    }

    /// The connection with this address, if it is still there.
    pub(super) fn get(&self, address: u64) -> Option<&RedisConnection> {
        let (known, connection) = self.places.get(place_of(address))?.as_ref()?;
        (*known == address).then_some(connection)
    }

    /// The address of the connection whose client has this number. Looks at all of them.
    pub(super) fn with_id(&self, id: u64) -> Option<u64> {
        let found = self.places.iter().flatten().find(|(_, connection)| connection.redis.id() == id);
        found.map(|(address, _)| *address)
    }

    /// How many places there are, taken or not.
    pub(super) const fn places(&self) -> usize {
        self.places.len()
    }

    /// The connection at a place, with its address.
    pub(super) fn at_mut(&mut self, place: usize) -> Option<(u64, &mut RedisConnection)> {
        let (address, connection) = self.places.get_mut(place)?.as_mut()?;
        Some((*address, connection))
    }

    /// The connection at the place that an address names, whether it has this address or not.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn at_place(&self, address: u64) -> Option<u64> {
        let (known, _) = self.places.get(place_of(address))?.as_ref()?;
        Some(*known)
    }

    /// As [`get`](Self::get), to change it.
    pub(super) fn get_mut(&mut self, address: u64) -> Option<&mut RedisConnection> {
        let (known, connection) = self.places.get_mut(place_of(address))?.as_mut()?;
        (*known == address).then_some(connection)
    }
}
