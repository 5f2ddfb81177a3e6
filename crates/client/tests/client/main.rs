//! The client against a small fake cluster on loopback sockets.

mod agreement;
mod fake;
mod operations;
mod trouble;
