//! A client beside a store that fails as it is told to.

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};
use syros_s3::test_server::{BUCKET, Conditions, Fault, KEYS, TestServer};
use syros_s3::{Client, Credentials, Settings, Written};
use syros_tls::{Authority, Identity, Role, ValidityDays};
use syros_types::ReplicaId;

/// Eight kilobytes that are nowhere the same.
fn noise() -> Vec<u8> {
    (0..8_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn asked(server: &TestServer, request: &str) -> usize {
    server.requests().iter().filter(|found| *found == &format!("{request} {BUCKET}/a b")).count()
}

#[test]
fn objects_are_written_once_read_in_ranges_listed_and_removed() {
    let server = TestServer::start();
    let client = server.client();
    let bytes = noise();
    assert_eq!(client.get("p/a", 0, 10), Ok(None));
    assert_eq!(client.put_new("p/a", &bytes), Ok(Written::Done));
    assert_eq!(client.put_new("p/a", b"other"), Ok(Written::Exists));
    assert_eq!(client.put_new("p/nothing", b""), Ok(Written::Done));
    for (start, length) in [(0, 10), (0, 8_000), (0, 9_000), (7_990, 100), (8_000, 5), (0, 0)] {
        let found = client.get("p/a", start, length).expect("the store answers").expect("it is there");
        let end = 8_000.min(start + length.max(1)) as usize;
        assert_eq!(found.bytes, bytes[start as usize..end], "{start} {length}");
        assert_eq!(found.total, 8_000);
    }
    let found = client.get("p/nothing", 0, 10).expect("the store answers").expect("it is there");
    assert_eq!((found.bytes.len(), found.total), (0, 0));
    // Several pages, a key that XML escapes, and what is behind a further slash.
    for name in ["b", "c&d", "e", "f/1", "f/2", "g"] {
        assert_eq!(client.put_new(&format!("p/{name}"), b"x"), Ok(Written::Done));
    }
    assert_eq!(client.put_new("q/h", b"x"), Ok(Written::Done));
    let mut names = client.list("p/").expect("the store answers");
    names.sort();
    assert_eq!(names, ["a", "b", "c&d", "e", "f/", "g", "nothing"]);
    assert_eq!(client.list("absent/").expect("the store answers").len(), 0);
    client.remove("p/a").expect("the store answers");
    client.remove("p/a").expect("it is gone, as it should be");
    assert_eq!(client.get("p/a", 0, 10), Ok(None));
}

#[test]
fn what_may_pass_is_tried_again_and_what_will_not_is_not() {
    let bytes = noise();
    for fault in [
        Fault::Status(500, "InternalError"),
        Fault::Status(503, "SlowDown"),
        Fault::Status(429, ""),
        Fault::Status(400, "RequestTimeout"),
        Fault::Reset,
        Fault::Lost,
        Fault::Stall,
        Fault::Drip,
        Fault::Cut,
    ] {
        let server = TestServer::start();
        let client = server.client();
        server.fail("PUT", "a b", 2, fault.clone());
        assert_eq!(client.put_new("a b", &bytes), Ok(Written::Done), "{fault:?}");
        server.fail("GET", "a b", 3, fault.clone());
        let found = client.get("a b", 0, 9_000).expect("it is answered at last").expect("it is there");
        assert_eq!(found.bytes, bytes, "{fault:?}");
        // One time more than it is tried.
        server.fail("GET", "a b", 4, fault.clone());
        let told = client.get("a b", 0, 9_000).expect_err("it fails each time").to_string();
        assert!(told.starts_with(&format!("GET s3://{BUCKET}/a b: ")), "{told}");
        assert!(told.contains("tried 4 times"), "{fault:?}: {told}");
    }
    for (status, code, advice) in [
        (403, "AccessDenied", "s3:ListBucket"),
        (403, "InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"),
        (403, "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"),
        (403, "RequestTimeTooSkewed", "clock"),
        (400, "ExpiredToken", "AWS_SESSION_TOKEN"),
        (404, "NoSuchBucket", "make the bucket"),
        (301, "PermanentRedirect", "another region"),
        (507, "InsufficientStorage", ""),
    ] {
        let server = TestServer::start();
        server.fail("GET", "a b", u32::MAX, Fault::Status(status, code));
        let error = server.client().get("a b", 0, 10).expect_err("it is refused");
        assert_eq!((error.status(), error.code(), asked(&server, "GET")), (Some(status), code, 1));
        let told = error.to_string();
        assert!(told.contains(&format!("{status} {code}")) && told.contains(advice), "{told}");
        // What the test server tells has the secret in it.
        assert!(told.contains("(told by ***)") && !told.contains(KEYS.1), "{told}");
    }
}

/// The answer is lost that says that an object was written. It is not taken for another's, nor another's for its own.
#[test]
fn an_object_whose_answer_was_lost_is_known_again() {
    let server = TestServer::start();
    server.fail("PUT", "a b", 1, Fault::Lost);
    assert_eq!(server.client().put_new("a b", b"own"), Ok(Written::Done));
    server.fail("PUT", "a b", 1, Fault::Lost);
    assert_eq!(server.client().put_new("a b", b"others"), Ok(Written::Exists));
    assert_eq!(server.objects()["a b"], b"own");
    server.set_conditions(Conditions::Refused);
    let client = server.client();
    assert_eq!((client.put_new("a b", b"others"), client.knows_conditions()), (Ok(Written::Exists), false));
    assert_eq!(client.put_new("c", b"new"), Ok(Written::Done));
}

/// Whatever a store answers, it takes bounded time and memory, and is no answer.
#[test]
fn what_is_no_answer_of_a_store_is_refused() {
    let endless = b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>".to_vec();
    let same = b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>";
    for (body, told) in [
        (endless, "does not say where it goes on"),
        (same.to_vec(), "does not say where it goes on"),
        (b"<html>hello</html>".to_vec(), "no listing"),
        (vec![b'x'; 17 << 20], "longer than"),
    ] {
        let server = TestServer::start();
        server.fail("GET", "", u32::MAX, Fault::Body(200, body));
        let error = server.client().list("p/").expect_err("it is no listing").to_string();
        assert!(error.contains(told), "{error}");
    }
    for (status, body, told) in [
        (206, vec![0; 11], "longer than 10 bytes"),
        (200, vec![0; 11], "longer than 10 bytes"),
        (206, vec![0; 10], "does not say how long"),
        (418, vec![b'x'; 1 << 20], "418 the store gives no reason"),
        (
            404,
            b"<Error><Code>NoSuchBucket</Code><Message>\x1b[31mred\n</Message></Error>".to_vec(),
            "( [31mred )",
        ),
    ] {
        let server = TestServer::start();
        server.fail("GET", "a b", u32::MAX, Fault::Body(status, body));
        let error = server.client().get("a b", 0, 10).expect_err("it is no object").to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn wrong_keys_and_addresses_are_told_and_secrets_are_not() {
    let server = TestServer::start();
    let credentials = Credentials {
        access_key: "wrong".to_owned(),
        secret_key: "hidden".to_owned(),
        session_token: Some("token".to_owned()),
    };
    let settings = Settings { credentials, ..server.settings() };
    let client = Client::new(&settings, BUCKET, TestServer::patience()).expect("the settings are possible");
    let told = client.list("").expect_err("the key is wrong").to_string();
    assert!(told.contains("403 InvalidAccessKeyId") && told.contains("delimiter=%2F"), "{told}");
    assert!(!told.contains("hidden") && !told.contains("token="), "{told}");
    assert!(!format!("{client:?}").contains("hidden"), "{client:?}");
    for (endpoint, region, encryption) in
        [("x", "a-1", None), ("http://h", "a b", None), ("http://h", "a-1", Some("rot13"))]
    {
        let encryption = encryption.map(str::to_owned);
        let (endpoint, region) = (Some(endpoint.to_owned()), region.to_owned());
        let settings = Settings { endpoint, region, encryption, ..server.settings() };
        assert!(Client::new(&settings, BUCKET, TestServer::patience()).is_err());
    }
    let settings = Settings { endpoint: Some("http://127.0.0.1:1".to_owned()), ..server.settings() };
    let client = Client::new(&settings, BUCKET, TestServer::patience()).expect("the settings are possible");
    let told = client.get("a", 0, 1).expect_err("nobody listens there").to_string();
    assert!(told.contains("tried 4 times"), "{told}");
}

/// Nobody waits for long who has given up.
#[test]
fn a_client_that_is_cancelled_asks_no_more() {
    let server = TestServer::start();
    let mut patience = TestServer::patience();
    (patience.first_pause, patience.longest_pause) = (Duration::from_secs(600), Duration::from_secs(600));
    let client = Client::new(&server.settings(), BUCKET, patience).expect("the settings are right");
    server.fail("PUT", "a b", u32::MAX, Fault::Reset);
    let began = Instant::now();
    std::thread::scope(|threads| {
        let put = threads.spawn(|| client.put_new("a b", b"x"));
        while asked(&server, "PUT") == 0 {
            std::thread::yield_now();
        }
        client.cancel();
        assert!(put.join().expect("it does not panic").is_err());
    });
    assert!(began.elapsed() < Duration::from_secs(300));
    assert_eq!(asked(&server, "PUT"), 1);
    client.resume();
    assert_eq!(client.put_new("other", b"x"), Ok(Written::Done));
}

/// A server that shows a certificate, and says of everything that it is not there.
fn serve_tls(certificate: &str, key: &str) -> String {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<Vec<_>, _>>();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the versions are known")
        .with_no_client_auth()
        .with_single_cert(
            chain.expect("it is in PEM"),
            PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("it is in PEM"),
        )
        .expect("they belong together");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let endpoint = format!("https://{}", listener.local_addr().expect("it has an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let session =
                rustls::ServerConnection::new(Arc::clone(&config)).expect("the configuration is right");
            let mut stream = rustls::StreamOwned::new(session, stream.expect("it is a connection"));
            // One that does not believe the certificate goes.
            if stream.read(&mut [0; 4096]).is_ok() {
                let _ = stream.write_all(b"HTTP/1.1 404 x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        }
    });
    endpoint
}

#[test]
fn a_certificate_is_believed_if_its_authority_is() {
    let (authority, root) = Authority::make("test", ValidityDays(2)).expect("it can be made");
    let issued = authority
        .issue(
            Identity { cluster: 1, role: Role::Node(ReplicaId(0)) },
            &["127.0.0.1".to_owned()],
            ValidityDays(1),
        )
        .expect("it can be issued");
    let endpoint = serve_tls(&issued.certificate, &issued.key);
    let (_, other) = Authority::make("other", ValidityDays(2)).expect("it can be made");
    let server = TestServer::start();
    for (root, is_believed) in [(&root, true), (&other, false)] {
        let file = std::env::temp_dir().join(format!("syros-s3-{}-{is_believed}.pem", std::process::id()));
        std::fs::write(&file, &root.certificate).expect("it can be written");
        let settings = Settings {
            endpoint: Some(endpoint.clone()),
            authorities: Some(file.clone()),
            ..server.settings()
        };
        let client = Client::new(&settings, BUCKET, TestServer::patience()).expect("the settings are right");
        let found = client.get("a", 0, 1);
        let _ = std::fs::remove_file(&file);
        if is_believed {
            assert_eq!(found, Ok(None));
        } else {
            let told = found.expect_err("nobody has signed it who is believed").to_string();
            assert!(told.contains("--s3-ca") && !told.contains("tried"), "{told}");
        }
    }
    let absent =
        Settings { endpoint: Some(endpoint), authorities: Some("/absent".into()), ..server.settings() };
    let told =
        Client::new(&absent, BUCKET, TestServer::patience()).expect_err("there is no file").to_string();
    assert!(told.contains("/absent"), "{told}");
}
