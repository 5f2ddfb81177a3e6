//! What a process is told of TLS.

use std::net::SocketAddr;

use syros_tls::{ClientCertificates, Files};

/// Whether nodes talk to each other, and Syros clients to nodes, by TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodesTls {
    /// They do, and show each other by their certificates who they are.
    #[default]
    Required,
    /// They do where both can: for the time while nodes get their certificates, one after the other. It keeps nobody out.
    Optional,
    /// They do not.
    None,
}

impl NodesTls {
    /// All there are, with their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("required", Self::Required), ("optional", Self::Optional), ("none", Self::None)];
}

/// Settings of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The process's certificate, its key, and the authorities that it believes.
    pub files: Files,
    /// Where it listens for Redis clients that speak TLS; `None`: nowhere.
    pub listen_redis: Option<SocketAddr>,
    /// Whether those show certificates.
    pub redis_clients: ClientCertificates,
    /// How nodes talk to each other. Of a gateway: how it talks to nodes.
    pub nodes: NodesTls,
}
