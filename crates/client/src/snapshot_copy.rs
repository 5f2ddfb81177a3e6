//! Copying a snapshot of one replica, part by part, for a backup.

use crate::status::{Access, StatusConnection, StatusError};
use core::time::Duration;
use std::net::SocketAddr;
use syros_protocol::message::{Body, Message};
use syros_types::OpNumber;

/// A snapshot file of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// The last entry of the log in it.
    pub op_number: OpNumber,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A connection to one replica over which a snapshot is copied, used by one thread that waits.
pub struct SnapshotCopy {
    connection: StatusConnection,
    timeout: Duration,
}

impl SnapshotCopy {
    /// Connects to the replica at `address`, whichever cluster it belongs to. Every later call waits for `timeout` at most. Where
    /// the cluster has a secret, only who knows it gets a snapshot; where nodes speak TLS, only administrators and nodes.
    ///
    /// # Errors
    /// As [`hand_over`](crate::hand_over); [`StatusError::TooOld`] if the replica cannot be asked for snapshots.
    pub fn connect(address: SocketAddr, access: Access<'_>, timeout: Duration) -> Result<Self, StatusError> {
        let want = Message::WantSnapshot { op_number: OpNumber(0) };
        let connection = StatusConnection::begin_authorized(&want, address, timeout, access)?;
        Ok(Self { connection, timeout })
    }

    /// The cluster of the replica.
    #[must_use]
    pub const fn cluster(&self) -> u64 {
        self.connection.cluster()
    }

    /// The replica's snapshot, if it goes up to `at_least`. Otherwise the replica takes one when it has executed the log up to
    /// there; whoever wants it asks again.
    ///
    /// # Errors
    /// [`StatusError`].
    pub fn find(&mut self, at_least: OpNumber) -> Result<Option<SnapshotFile>, StatusError> {
        self.connection.allow(self.timeout);
        let want = [Message::WantSnapshot { op_number: at_least }];
        let (op_number, bytes) = self.connection.converse(&want, |answer| match answer {
            Message::SnapshotOffer { op_number, bytes, .. } => Some((op_number, bytes)),
            _ => None,
        })?;
        Ok((bytes > 0 && op_number >= at_least).then_some(SnapshotFile { op_number, bytes }))
    }

    /// The part of a snapshot that begins at `offset`, which is in it; `None` if the replica has another snapshot by now.
    ///
    /// # Errors
    /// [`StatusError`].
    pub fn part(&mut self, of: SnapshotFile, offset: u64) -> Result<Option<Body>, StatusError> {
        self.connection.allow(self.timeout);
        let SnapshotFile { op_number, bytes } = of;
        let get = [Message::GetSnapshot { op_number, offset }];
        self.connection.converse(&get, |answer| match answer {
            Message::SnapshotPart { op_number: found, offset: at, part }
                if (found, at) == (op_number, offset)
                    && !part.is_empty()
                    && part.len() as u64 <= bytes - offset =>
            {
                Some(Some(part))
            }
            Message::SnapshotOffer { .. } => Some(None),
            _ => None,
        })
    }
}
