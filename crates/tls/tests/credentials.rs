//! What credentials make of their files, and sessions in memory.

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, ServerConnection};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use syros_tls::{Authority, Credentials, Files, Identity, Issued, Purpose, Role, ValidityDays};
use syros_types::ReplicaId;

const CLUSTER: u64 = 7;

const NODE: Role = Role::Node(ReplicaId(0));

const OF_NODE: Purpose = Purpose {
    cluster: Some(CLUSTER),
    role: Some(NODE),
    redis_clients: syros_tls::ClientCertificates::Required,
};

/// A directory that goes when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("syros-tls-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn authority(name: &str) -> (Authority, String) {
    let (authority, issued) = Authority::make(name, ValidityDays(2)).unwrap();
    (authority, issued.certificate)
}

fn issue(authority: &Authority, role: Role) -> Issued {
    let identity = Identity { cluster: CLUSTER, role };
    authority.issue(identity, &["localhost".to_owned()], ValidityDays(1)).unwrap()
}

fn write(dir: &Path, issued: &Issued, authorities: &str) -> Files {
    let files = Files {
        certificate: dir.join("certificate"),
        key: dir.join("key"),
        authorities: dir.join("authorities"),
    };
    fs::write(&files.certificate, &issued.certificate).unwrap();
    fs::write(&files.key, &issued.key).unwrap();
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&files.authorities, authorities).unwrap();
    files
}

/// Lets two ends of a connection talk until neither has anything to say.
fn talk(client: &mut ClientConnection, server: &mut ServerConnection) {
    loop {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let is_quiet = bytes.is_empty();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets().unwrap();
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        if is_quiet && bytes.is_empty() {
            return;
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().unwrap();
        }
    }
}

/// A certificate that has ended would go on to count where sessions are resumed.
#[test]
fn no_session_is_resumed() {
    let scratch = Scratch::new("resumed");
    let (authority, certificate) = authority("one");
    let credentials =
        Credentials::load(write(&scratch.0, &issue(&authority, NODE), &certificate), OF_NODE).unwrap();
    let client = issue(&authority, Role::Client);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(client.certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(client.key.as_bytes()).unwrap(),
            )
            .unwrap();
        config.resumption = Resumption::in_memory_sessions(8);
        let config = Arc::new(config);
        for accept in [Credentials::accept_redis, Credentials::accept_node] {
            for round in 0..3 {
                let name = "localhost".try_into().unwrap();
                let mut client = ClientConnection::new(Arc::clone(&config), name).unwrap();
                let mut server = accept(&credentials).unwrap();
                talk(&mut client, &mut server);
                let kind = server.handshake_kind();
                assert!(!server.is_handshaking());
                assert_ne!(kind, Some(HandshakeKind::Resumed), "{version:?}, round {round}");
            }
        }
    }
}

#[test]
fn what_is_put_right_after_a_failed_renewal_is_noticed() {
    let scratch = Scratch::new("renewed");
    let (authority, certificate) = authority("one");
    let files = write(&scratch.0, &issue(&authority, NODE), &certificate);
    let credentials = Credentials::load(files.clone(), OF_NODE).unwrap();
    assert!(!credentials.refresh().unwrap(), "nothing has changed");

    write(&scratch.0, &issue(&authority, NODE), &certificate);
    let mode = |mode| fs::set_permissions(&files.key, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    let problem = credentials.refresh().unwrap_err().to_string();
    assert!(problem.contains("everybody can read this private key"), "{problem}");
    assert!(!credentials.refresh().unwrap(), "the same problem is told of once");
    mode(0o600);
    assert!(credentials.refresh().unwrap(), "neither length nor time of the file has changed");
    assert!(!credentials.refresh().unwrap());
}

#[test]
fn a_certificate_that_others_would_refuse_is_refused_here() {
    let scratch = Scratch::new("own");
    let ((one, certificate), (other, _)) = (authority("one"), authority("other"));
    let files = write(&scratch.0, &issue(&one, NODE), &certificate);
    let credentials = Credentials::load(files, OF_NODE).unwrap();
    // A node goes on with what it had.
    let files = write(&scratch.0, &issue(&other, NODE), &certificate);
    let problem = credentials.refresh().unwrap_err().to_string();
    assert!(
        problem.contains("nobody would take it from a server: invalid peer certificate: UnknownIssuer"),
        "{problem}"
    );
    assert!(Credentials::load(files.clone(), OF_NODE).is_err());
    // Applications may believe other authorities than those that have signed for them.
    assert!(Credentials::load(files, Purpose::default()).is_ok());
    // It has to be who it is.
    for role in [Role::Client, Role::Node(ReplicaId(1))] {
        let files = write(&scratch.0, &issue(&one, role), &certificate);
        let problem = Credentials::load(files, OF_NODE).unwrap_err().to_string();
        assert!(problem.contains("syros://7/node/0 is what this process needs"), "{problem}");
    }
}

#[test]
fn a_missing_line_break_leaves_out_no_authority() {
    let scratch = Scratch::new("line-break");
    let ((one, first), (_, second)) = (authority("one"), authority("two"));
    let issued = issue(&one, NODE);
    assert!(Credentials::load(write(&scratch.0, &issued, &format!("{first}{second}")), OF_NODE).is_ok());
    let joined = format!("{first}{}{first}", second.trim_end());
    let problem = Credentials::load(write(&scratch.0, &issued, &joined), OF_NODE).unwrap_err().to_string();
    assert!(problem.contains("is a line break missing between two?"), "{problem}");
}

#[test]
fn an_authority_is_one_with_its_own_key_and_days_left() {
    let ((_, first), (_, second)) =
        (Authority::make("one", ValidityDays(2)).unwrap(), Authority::make("two", ValidityDays(2)).unwrap());
    assert!(Authority::read(&first.certificate, &first.key).is_ok());
    let problem = Authority::read(&first.certificate, &second.key).unwrap_err().to_string();
    assert_eq!(problem, "its key does not belong to its certificate");
    let (authority, _) = Authority::make("three", ValidityDays(2)).unwrap();
    let leaf = issue(&authority, NODE);
    let problem = Authority::read(&leaf.certificate, &leaf.key).unwrap_err().to_string();
    assert_eq!(problem, "its certificate is not that of an authority");
    let identity = Identity { cluster: CLUSTER, role: NODE };
    let problem = authority.issue(identity, &[], ValidityDays(3)).unwrap_err().to_string();
    assert_eq!(problem, "3 days are more than the authority itself has left, which is 2");
}
