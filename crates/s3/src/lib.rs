//! Objects in an S3-compatible store: whole objects are written, read in ranges, listed and removed.
//!
//! A request is signed without any I/O (`sign`), and a blocking HTTP client sends it (`client`). A request that the store
//! answers with a fault of its own, or that the network loses, is sent again after a pause ([`Patience`]). What a store
//! answers is bounded: the length of a body, of an error, and the number of names in a listing.
//!
//! # Why not a client library
//!
//! Measured on 2026-11-29 with `cargo tree` as crates that the server does not have yet (it has 160):
//!
//! | way | crates | |
//! |---|---|---|
//! | `object_store` 0.14, feature `aws-base` (no TLS, no HTTP client: both would be ours) | 58 | tokio and hyper, a second `syn`; an async interface |
//! | `rusty-s3` 0.11 and `ureq` 3.5 | 34 | `url` with its Unicode tables, `jiff`; a licence (BSD-2-Clause) that deny.toml does not list |
//! | `ureq` 3.5 and the signing here | 8 | two of them find the system's certificates |
//!
//! `rusty-s3` signs the address of a request. An address with a signature in it, and with the session token, comes to
//! stand in the logs of proxies; and the store cannot check the body. Here a header has the signature, which covers the
//! SHA-256 of the body: a store refuses a body that has changed on its way.
#![forbid(unsafe_code)]

mod client;
mod credentials;
mod endpoint;
mod error;
mod location;
mod patience;
mod settings;
mod sign;
#[cfg(feature = "test-server")]
pub mod test_server;
mod xml;

pub use client::{Client, ENCRYPTIONS, Fetched, Written};
pub use credentials::Credentials;
pub use error::{S3Error, SettingsError};
pub use location::Location;
pub use patience::Patience;
pub use settings::Settings;
