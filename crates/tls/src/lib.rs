//! TLS for nodes, gateways and clients.
//!
//! A cluster has certificate authorities of its own. What a certificate lets its holder do in the cluster it says itself, in a
//! URI among its subject alternative names ([`Identity`]): nodes show each other that they are the member that they say.
//! Nothing here goes by host names: a node is who its certificate says, wherever it runs. Redis clients do look at host names,
//! as they are used to; that is theirs to decide.
//!
//! The files are read again when they have changed ([`Credentials`]), so that certificates are renewed while nodes serve.
#![forbid(unsafe_code)]

mod blocking;
mod configs;
mod credentials;
mod files;
mod identity;
mod issue;

pub use blocking::BlockingStream;
pub use configs::{ClientCertificates, Purpose};
pub use credentials::Credentials;
pub use files::{Files, TlsError, certificates_in};
pub use identity::{Identity, Role};
pub use issue::{Authority, IssueError, Issued, ValidityDays};
