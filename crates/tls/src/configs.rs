//! What TLS sessions are made from.

use crate::files::{Files, TlsError};
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
    client: Arc<ClientConfig>,
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
        let authorities = Arc::new(content.authorities);
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
        let redis = single(clients)?;
        let mut nodes = single(required)?;
        // Nodes connect anew seldom, and then show what they have now.
        nodes.session_storage = Arc::new(NoServerSessionStorage {});
        nodes.send_tls13_tickets = 0;
        let verifier = NodeVerifier {
            authorities,
            algorithms: provider().signature_verification_algorithms,
            cluster: purpose.cluster,
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
        Ok(Self { redis: Arc::new(redis), nodes: Arc::new(nodes), client: Arc::new(client), expires })
    }

    pub(crate) fn accept_redis(&self) -> Result<ServerConnection, Error> {
        ServerConnection::new(Arc::clone(&self.redis))
    }

    pub(crate) fn accept_node(&self) -> Result<ServerConnection, Error> {
        ServerConnection::new(Arc::clone(&self.nodes))
    }

    pub(crate) fn connect(&self) -> Result<ClientConnection, Error> {
        // Nobody looks at it: see `NodeVerifier`.
        let name =
            ServerName::try_from("node.syros.invalid").map_err(|error| Error::General(error.to_string()))?;
        ClientConnection::new(Arc::clone(&self.client), name)
    }
}

/// Believes whoever shows a certificate of an authority that says that it is a node of the cluster, wherever it runs.
#[derive(Debug)]
struct NodeVerifier {
    authorities: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
    cluster: Option<u64>,
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
            Some(Identity { cluster, role: Role::Node(_) })
                if self.cluster.is_none_or(|expected| expected == cluster) =>
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
