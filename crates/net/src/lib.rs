//! Non-blocking connections for event loops on mio: replicas and clients share them.
//!
//! One turn of a loop: poll; [`on_event`](Connection::on_event) every event; of every connection that
//! [`is_readable`](Connection::is_readable), one [`read`](Connection::read), then its frames
//! ([`next_frame`](Connection::next_frame)) or raw bytes; at the end one
//! [`flush`](Connection::flush) of every connection with output. A connection that is still readable
//! after its read goes first in the next turn, which then polls without waiting: mio reports edges,
//! and an edge comes only once.
#![forbid(unsafe_code)]

mod connection;
mod counters;
mod dial;
mod dial_schedule;
mod inbound;
mod lookup;
mod outbound;
mod outlet;
mod tls;

pub use connection::{Connection, Limits};
pub use counters::Counters;
pub use dial::{Dialing, Progress};
pub use dial_schedule::DialSchedule;
pub use inbound::{Inbound, ReadOutcome};
pub use lookup::Lookup;
pub use outbound::FlushOutcome;
pub use outlet::Outlet;
pub use tls::TlsSession;
