//! TLS of a process, and what follows for its ports.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use mio::Waker;
use syros_tls::{Credentials, Purpose, TlsError};
use syros_types::ReplicaId;

use crate::tls_config::{NodesTls, TlsConfig};
use crate::tls_handshakes::{Guard, TlsHandshakes};

/// With what this process shows other nodes by TLS who it is.
#[derive(Clone, Debug)]
pub(crate) struct LinksTls {
    pub(crate) credentials: Arc<Credentials>,
    /// A node that does not take TLS is connected to without it: not all nodes have certificates yet.
    pub(crate) is_optional: bool,
}

impl LinksTls {
    /// With what to ask a node something, one after the other, until one does.
    pub(crate) fn attempts(links: Option<&Self>) -> impl Iterator<Item = Option<&Credentials>> {
        let plain = links.is_none_or(|links| links.is_optional).then_some(None);
        links.map(|links| Some(&*links.credentials)).into_iter().chain(plain)
    }
}

/// What a process has of TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessTls(Option<(TlsConfig, Arc<Credentials>)>);

impl ProcessTls {
    /// Reads the files. `cluster` is 0 for whichever; the certificate of a node that talks TLS to others has to say which one it
    /// is.
    pub(crate) fn load(
        config: Option<&TlsConfig>,
        cluster: u64,
        node: Option<ReplicaId>,
    ) -> Result<Self, TlsError> {
        let Some(config) = config else { return Ok(Self(None)) };
        let role = node.filter(|_| config.nodes != NodesTls::None).map(syros_tls::Role::Node);
        let cluster = (cluster != 0).then_some(cluster);
        let purpose = Purpose { cluster, role, redis_clients: config.redis_clients };
        let credentials = Credentials::load(config.files.clone(), purpose)?;
        Ok(Self(Some((config.clone(), Arc::new(credentials)))))
    }

    /// Where to listen for Redis clients that speak TLS.
    pub(crate) fn listen_redis(&self) -> Option<SocketAddr> {
        self.0.as_ref().and_then(|(config, _)| config.listen_redis)
    }

    /// How who comes to the port for nodes shows who it is; `None`: not by TLS.
    pub(crate) fn nodes_guard(&self) -> Option<Guard> {
        match self.0.as_ref()?.0.nodes {
            NodesTls::Required => Some(Guard::Nodes),
            NodesTls::Optional => Some(Guard::NodesOrPlain),
            NodesTls::None => None,
        }
    }

    /// With what the process shows other nodes who it is.
    pub(crate) fn links(&self) -> Option<LinksTls> {
        let (config, credentials) = self.0.as_ref().filter(|(config, _)| config.nodes != NodesTls::None)?;
        let is_optional = config.nodes == NodesTls::Optional;
        Some(LinksTls { credentials: Arc::clone(credentials), is_optional })
    }

    /// Starts the thread on which handshakes take place.
    pub(crate) fn start_handshakes(
        &self,
        node: Option<u8>,
        waker: &Arc<Waker>,
        handshakes_max: usize,
    ) -> io::Result<Option<TlsHandshakes>> {
        let Some((_, credentials)) = &self.0 else { return Ok(None) };
        let started = TlsHandshakes::start(node, Arc::clone(credentials), Arc::clone(waker), handshakes_max);
        started.map(Some)
    }

    /// When the certificate is no longer valid, in seconds since 1970.
    pub(crate) fn expires(&self) -> Option<i64> {
        self.0.as_ref().map(|(_, credentials)| credentials.expires())
    }
}
