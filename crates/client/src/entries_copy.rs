//! Copying the log of a group from one of its members, for a backup.

use crate::status::{Access, StatusConnection, StatusError};
use core::time::Duration;
use std::net::SocketAddr;
use syros_protocol::message::Message;
use syros_types::{Class, Description, Footprint, OpNumber};

/// A connection to one replica over which entries of its log are copied, used by one thread that waits.
pub struct EntriesCopy {
    connection: StatusConnection,
    timeout: Duration,
}

impl EntriesCopy {
    /// Connects to the replica at `address`, whichever cluster it belongs to. Every later call waits for `timeout` at most. Who gets
    /// a snapshot gets entries, too.
    ///
    /// # Errors
    /// As [`SnapshotCopy::connect`](crate::SnapshotCopy::connect).
    pub fn connect(address: SocketAddr, access: Access<'_>, timeout: Duration) -> Result<Self, StatusError> {
        let want = Message::WantEntries { after: OpNumber(0), held: OpNumber(0), bytes_max: 0 };
        let connection = StatusConnection::begin_authorized(&want, address, timeout, access)?;
        Ok(Self { connection, timeout })
    }

    /// The cluster of the replica.
    #[must_use]
    pub const fn cluster(&self) -> u64 {
        self.connection.cluster()
    }

    /// Asks for entries ([`LogCopy::want`](syros_protocol::log_copy::LogCopy::want)), and returns the answer, which
    /// [`LogCopy::take`](syros_protocol::log_copy::LogCopy::take) knows what to do with. Nothing is known of the operations in the
    /// entries: they are to be stored, and not to be executed.
    ///
    /// # Errors
    /// [`StatusError`].
    pub fn ask(&mut self, want: Message) -> Result<Message, StatusError> {
        self.connection.allow(self.timeout);
        self.connection.converse_about_entries(&[want], any_operation, |answer| match answer {
            Message::CommittedEntries { .. } => Some(answer),
            _ => None,
        })
    }
}

fn any_operation(_: &[u8]) -> Option<Description> {
    Some(Description { class: Class::Merge, footprint: Footprint::All, growth: 1 })
}
