//! The Rust client of Syros.
//!
//! [`Client`] is the library's front door: one I/O thread, any number of handles, any number of
//! operations in flight. Every operation is a [`Pending`], to be awaited in any async runtime or
//! waited for on the spot; it is on its way as soon as it exists.
//!
//! ```no_run
//! use syros_client::{Client, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(&["10.0.0.1:7000", "10.0.0.2:7000", "10.0.0.3:7000"], Options::default())?.wait()?;
//! // One round trip: a SET only answers that it is durable.
//! client.set("greeting", "hello").wait()?;
//! // Both are in flight before the first is waited for.
//! let (visits, greeting) = (client.increment("visits", 1), client.get("greeting"));
//! assert_eq!(greeting.wait()?.as_deref(), Some(&b"hello"[..]));
//! println!("visit {}", visits.wait()?);
//! # Ok(())
//! # }
//! ```
//!
//! The same, asynchronously:
//!
//! ```no_run
//! use syros_client::{Client, Error, Options};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(&["127.0.0.1:7000"], Options::default())?.await?;
//! match client.set("key", "value").await {
//!     Ok(()) => println!("durable on a quorum"),
//!     Err(Error::Unknown) => println!("it may or may not have taken effect"),
//!     Err(error) => println!("it has not taken effect: {error}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! For programs with an event loop of their own there are two layers below: [`Driver`] is a client
//! that the caller's thread runs, turn by turn; [`EmbeddedClient`] is one that shares the caller's
//! `mio::Poll` with other connections.
#![forbid(unsafe_code)]

mod clock;
mod commands;
mod driver;
mod embedded;
mod endpoint;
mod entries_copy;
mod error;
mod handle;
mod link;
mod options;
mod pending;
mod snapshot_copy;
mod status;
mod thread;

pub use driver::Driver;
pub use embedded::{Completion, EmbeddedClient};
pub use endpoint::Endpoint;
pub use entries_copy::EntriesCopy;
pub use error::{ConnectError, Error, LinkError, TlsProblem};
pub use handle::{Client, Connecting};
pub use link::LinkStatus;
pub use options::Options;
pub use pending::{Pending, block_on};
pub use snapshot_copy::{SnapshotCopy, SnapshotFile};
pub use status::{
    Access, StatusError, change_mode, hand_over, knows_changes_of_mode, numbers, shrink, status,
};
pub use syros_commands::Reply;
pub use syros_protocol::client::{Busy, Outcome, ReadCounts, Settings, WriteCounts};
pub use syros_protocol::message::{Body, Refusal, StatusReport};
pub use syros_tls::{ClientCertificates, Credentials, Files, Purpose, TlsError};
pub use syros_types::{Class, Footprint, ReadPolicy, WritePolicy};
