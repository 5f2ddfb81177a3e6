//! What TLS sessions are made from.

use crate::files::{Content, Files, TlsError};
use crate::identity::{Identity, Role};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    ServerConfig, ServerConnection, SignatureScheme,
};
use std::sync::Arc;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Whether Redis clients have to show a certificate of one of the authorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They have to, as Redis has it by default.
    #[default]
    Required,
    /// They may; one that is shown has to be valid.
    Optional,
    /// They are not asked for one.
    None,
}

impl ClientCertificates {
    /// All there are, with their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("required", Self::Required), ("optional", Self::Optional), ("none", Self::None)];
}

/// What this process does with its certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purpose {
    /// The cluster that it is for; `None`: whichever.
    pub cluster: Option<u64>,
    /// The role that its own certificate has to name; `None`: whichever, or none.
    pub role: Option<Role>,
    /// What is asked of Redis clients.
    pub redis_clients: ClientCertificates,
}

/// Everything that is made from one state of the files.
#[derive(Debug)]
pub(crate) struct Configs {
    redis: Arc<ServerConfig>,
    nodes: Arc<ServerConfig>,
    to_nodes: Arc<ClientConfig>,
    to_front_ends: Arc<ClientConfig>,
    /// When the certificate is no longer valid, in seconds since 1970.
    pub(crate) expires: i64,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl Configs {
    pub(crate) fn load(files: &Files, purpose: Purpose) -> Result<Self, TlsError> {
        let content = files.read()?;
        let of_certificate = |problem: String| TlsError::new(&files.certificate, problem);
        let own = &content.chain[0];
        let (_, parsed) = X509Certificate::from_der(own)
            .map_err(|error| of_certificate(format!("it is no certificate: {error}")))?;
        let expires = parsed.validity().not_after.timestamp();
        if let Some(role) = purpose.role {
            let expected = Identity { cluster: purpose.cluster.unwrap_or_default(), role };
            let found = Identity::of_certificate(own).map_err(of_certificate)?;
            if found != Some(expected) {
                let found = found.map_or_else(|| "none of a cluster".to_owned(), |found| found.to_string());
                let problem = format!("its URI is {found}; {expected} is what this process needs");
                return Err(of_certificate(problem));
            }
        }
        let authorities = Arc::new(content.authorities.clone());
        let of_authorities = |error: &dyn std::fmt::Display| TlsError::new(&files.authorities, error);
        let of_key = |error: Error| TlsError::new(&files.key, error);
        let server = || {
            ServerConfig::builder_with_provider(provider())
                .with_safe_default_protocol_versions()
                .map_err(|error| of_certificate(error.to_string()))
        };
        let verifier = || WebPkiClientVerifier::builder_with_provider(Arc::clone(&authorities), provider());
        let required = verifier().build().map_err(|error| of_authorities(&error))?;
        let clients = match purpose.redis_clients {
            ClientCertificates::Required => Arc::clone(&required),
            ClientCertificates::Optional => {
                verifier().allow_unauthenticated().build().map_err(|error| of_authorities(&error))?
            }
            ClientCertificates::None => WebPkiClientVerifier::no_client_auth(),
        };
        let single = |verifier| {
            let chain = content.chain.clone();
            let config = server()?.with_client_cert_verifier(verifier);
            config.with_single_cert(chain, content.key.clone_key()).map_err(of_key)
        };
        let (mut redis, mut nodes) = (single(clients)?, single(required)?);
        for config in [&mut redis, &mut nodes] {
            // A session that is resumed goes by the certificate of the first time, which may have ended meanwhile.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        let client = |whom: Whom| {
            let verifier = NodeVerifier {
                authorities: Arc::clone(&authorities),
                algorithms: provider().signature_verification_algorithms,
                cluster: purpose.cluster,
                whom,
            };
            let mut client = ClientConfig::builder_with_provider(provider())
                .with_safe_default_protocol_versions()
                .map_err(|error| of_certificate(error.to_string()))?
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_client_auth_cert(content.chain.clone(), content.key.clone_key())
                .map_err(of_key)?;
            client.resumption = Resumption::disabled();
            client.enable_sni = false;
            Ok(Arc::new(client))
        };
        let (to_nodes, to_front_ends) = (client(Whom::Nodes)?, client(Whom::FrontEnds)?);
        if purpose.role.is_some() {
            // All nodes believe the same authorities: they would refuse it. It is better to say so here, and to go on with what
            // there was before. (Clients may believe others than those that have signed for them.)
            check_own(&content, &authorities).map_err(of_certificate)?;
        }
        Ok(Self { redis: Arc::new(redis), nodes: Arc::new(nodes), to_nodes, to_front_ends, expires })
    }

    pub(crate) fn accept_redis(&self) -> Result<ServerConnection, Error> {
        ServerConnection::new(Arc::clone(&self.redis))
    }

    pub(crate) fn accept_node(&self) -> Result<ServerConnection, Error> {
        ServerConnection::new(Arc::clone(&self.nodes))
    }

    pub(crate) fn connect(&self, whom: Whom) -> Result<ClientConnection, Error> {
        let config = match whom {
            Whom::Nodes => &self.to_nodes,
            Whom::FrontEnds => &self.to_front_ends,
        };
        // Nobody looks at it: see `NodeVerifier`.
        let name =
            ServerName::try_from("node.syros.invalid").map_err(|error| Error::General(error.to_string()))?;
        ClientConnection::new(Arc::clone(config), name)
    }
}

/// Who is expected at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// A node.
    Nodes,
    /// A node or a gateway, where Redis clients are listened for.
    FrontEnds,
}

/// Checks that others will take this process's certificate, if they believe the same authorities.
fn check_own(content: &Content, authorities: &Arc<RootCertStore>) -> Result<(), String> {
    let (own, intermediates) = content.chain.split_first().ok_or("it has no certificate")?;
    let now = UnixTime::now();
    let algorithms = provider().signature_verification_algorithms.all;
    let as_server = ParsedCertificate::try_from(own).and_then(|own| {
        verify_server_cert_signed_by_trust_anchor(&own, authorities, intermediates, now, algorithms)
    });
    as_server.map_err(|error| format!("nobody would take it from a server: {error}"))?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(authorities), provider());
    let verifier = verifier.build().map_err(|error| error.to_string())?;
    let as_client = verifier.verify_client_cert(own, intermediates, now);
    as_client.map(drop).map_err(|error| format!("nobody would take it from a client: {error}"))
}

/// Believes whoever shows a certificate of an authority that says that it is a node of the cluster, wherever it runs.
#[derive(Debug)]
struct NodeVerifier {
    authorities: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
    cluster: Option<u64>,
    whom: Whom,
}

impl ServerCertVerifier for NodeVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.authorities,
            intermediates,
            now,
            algorithms,
        )?;
        let found = Identity::of_certificate(end_entity).map_err(Error::General)?;
        match found {
            Some(Identity { cluster, role })
                if self.cluster.is_none_or(|expected| expected == cluster)
                    && (self.whom == Whom::FrontEnds || matches!(role, Role::Node(_))) =>
            {
                Ok(ServerCertVerified::assertion())
            }
            Some(identity) => Err(Error::General(format!(
                "its certificate is for {identity}, and not for a node of this cluster"
            ))),
            None => {
                Err(Error::General("its certificate does not say that it is a node of a cluster".to_owned()))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        None
    }
}
