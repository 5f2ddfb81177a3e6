//! What a connection does for a client that keeps copies of what it reads.

use super::{CommandPipeline, Connection};
use crate::tracking::{SessionTracking, TrackingRequest};
use crate::writer::{Protocol, write_array, write_bulk, write_integer, write_nil, write_push};
use syros_commands::ConnectionCommand;

/// The channel in which invalidations come to a client of RESP2 that subscribes to it.
const CHANNEL: &[u8] = b"__redis__:invalidate";

impl Connection {
    /// The client tracks from now on, or in another way, or no more. To be called before its request is answered.
    pub fn set_tracking(&mut self, request: Option<TrackingRequest>) {
        self.pipeline.session.tracking =
            request.map(|request| Box::new(SessionTracking { request, ..SessionTracking::default() }));
    }

    /// True if the client speaks RESP3.
    #[must_use]
    pub fn speaks_resp3(&self) -> bool {
        self.pipeline.session.protocol == Protocol::Resp3
    }

    /// True if the client tracks.
    #[must_use]
    pub const fn is_tracking(&self) -> bool {
        self.pipeline.session.tracking.is_some()
    }

    /// True if the client keeps what the command reads that is under way. A client that tracks has one under way at a time.
    #[must_use]
    pub const fn keeps_copies(&self) -> bool {
        self.pipeline.keeps_copies
    }

    /// Tells the client of keys to be dropped, `None` for all: the one that keeps them if it speaks RESP3, or
    /// another one that it has chosen. Bytes of output that wait for the client.
    pub fn push_invalidation(&mut self, keys: Option<&[Box<[u8]>]>) -> usize {
        let pipeline = &mut self.pipeline;
        let protocol = pipeline.session.protocol;
        if pipeline.closing || (protocol == Protocol::Resp2 && !pipeline.session.is_subscriber()) {
            return 0;
        }
        let out = if pipeline.is_partial { pipeline.pushes.tail() } else { pipeline.output.tail() };
        match protocol {
            Protocol::Resp3 => {
                write_push(out, protocol, 2);
                write_bulk(out, b"invalidate");
            }
            Protocol::Resp2 => {
                write_array(out, 3);
                write_bulk(out, b"message");
                write_bulk(out, CHANNEL);
            }
        }
        match keys {
            None => write_nil(out, protocol),
            Some(keys) => {
                write_array(out, keys.len());
                keys.iter().for_each(|key| write_bulk(out, key));
            }
        }
        pipeline.output.len() + pipeline.pushes.len()
    }

    /// The client that this one has chosen to be told has gone.
    pub fn redirection_broken(&mut self) {
        let pipeline = &mut self.pipeline;
        let Some(tracking) = &mut pipeline.session.tracking else { return };
        let is_new = !std::mem::replace(&mut tracking.is_broken, true);
        let id = tracking.request.redirect.unwrap_or_default();
        if is_new && pipeline.session.protocol == Protocol::Resp3 && !pipeline.closing {
            let out = if pipeline.is_partial { pipeline.pushes.tail() } else { pipeline.output.tail() };
            write_push(out, Protocol::Resp3, 2);
            write_bulk(out, b"tracking-redir-broken");
            write_integer(out, id.cast_signed());
        }
    }
}

impl CommandPipeline {
    /// A command has come: notes whether the client keeps what it reads, and what CLIENT CACHING has said of it.
    pub(super) fn note_tracking(&mut self, command: Option<ConnectionCommand>) {
        use ConnectionCommand as C;
        let Some(tracking) = &mut self.session.tracking else { return };
        // Nobody keeps the versions that WATCH asks for.
        self.keeps_copies = tracking.keeps() && command != Some(C::Watch);
        // What CLIENT CACHING says goes for the next command that is no CLIENT. What it says before a transaction goes for all of
        // that.
        let ends = matches!(command, Some(C::Exec | C::Discard));
        let is_inside = command == Some(C::Multi) || (self.queue.is_some() && !ends);
        if command != Some(C::Client) && !is_inside {
            tracking.is_caching_set = false;
        }
    }
}
