//! TLS on real processes: who gets in where, and what happens when certificates are renewed, wrong or over.

mod common;

use common::nodes::Nodes;
use common::{Redis, Scratch, free_ports, run, syros, text, wait_for};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use syros_client::{Client, Connecting, Credentials, Files, Options, Purpose};
use syros_tls::{Authority, BlockingStream, Identity, Role, ValidityDays};
use syros_types::ReplicaId;
use syros_wire::{Channel, HandshakeMessage, Hello, Sender, put_frame, split_frame};

/// The cluster of `Nodes`.
const CLUSTER: u64 = 7;

/// Longest handshake frame.
const FRAME_BYTES_MAX: usize = 4096;

/// An authority, and the certificates that a test has it make.
struct Certificates {
    dir: PathBuf,
    authority: Authority,
    certificate: String,
}

impl Certificates {
    fn new(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        let (authority, issued) = Authority::make(&dir.display().to_string(), ValidityDays(100)).unwrap();
        Self { dir: dir.to_owned(), authority, certificate: issued.certificate }
    }

    /// Writes the files of somebody, over those that there are.
    fn issue(&self, name: &str, cluster: u64, role: Role, days: u32) -> Files {
        let hosts = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let issued = self.authority.issue(Identity { cluster, role }, &hosts, ValidityDays(days)).unwrap();
        let write = |file: &str, text: &str, mode| {
            let path = self.dir.join(format!("{name}-{file}"));
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        Files {
            key: write("key.pem", &issued.key, 0o600),
            certificate: write("certificate.pem", &issued.certificate, 0o644),
            authorities: write("authorities.pem", &self.certificate, 0o644),
        }
    }

    fn credentials(&self, name: &str, role: Role) -> Credentials {
        Credentials::load(self.issue(name, CLUSTER, role, 1), Purpose::default()).unwrap()
    }

    fn node(&self, node: u8) -> Files {
        self.issue(&format!("node-{node}"), CLUSTER, Role::Node(ReplicaId(node)), 1)
    }
}

/// The sections of a node that speaks TLS, at the `50 + node`th port to Redis clients.
fn sections(nodes: &Nodes, node: u16, Files { certificate, key, authorities }: &Files, more: &str) -> String {
    format!(
        "redis-tls = \"127.0.0.1:{}\"\n[tls]\ncertificate = \"{}\"\nkey = \"{}\"\nauthorities = \"{}\"\n{more}",
        nodes.port + 50 + node,
        certificate.display(),
        key.display(),
        authorities.display()
    )
}

/// Three nodes that speak TLS, and nothing else to each other.
fn start(scratch: &Scratch) -> (Nodes, Certificates) {
    let certificates = Certificates::new(&scratch.0.join("tls"));
    let mut nodes = Nodes::new(scratch);
    for node in 0..3 {
        let all_lines = "[log]\nlines = 0\n";
        let sections = sections(&nodes, node, &certificates.node(node as u8), all_lines);
        nodes.configure(node.into(), node.into(), "", &sections);
    }
    nodes.start_all(&["--bootstrap"]);
    (0..3).for_each(|node| nodes.set(node, "first", "1"));
    (nodes, certificates)
}

fn replica_port(nodes: &Nodes, node: u16) -> u16 {
    nodes.port + 100 + node
}

/// The operation of a native client, or why it cannot be had.
fn native(nodes: &Nodes, credentials: Option<Credentials>) -> Result<(), String> {
    let addresses: Vec<_> = (0..3)
        .map(|node| std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, replica_port(nodes, node))))
        .collect();
    let options = Options {
        credentials: credentials.map(std::sync::Arc::new),
        connect_timeout: Duration::from_secs(2),
        ..Options::default()
    };
    let client = Client::connect(&addresses, options).and_then(Connecting::wait);
    let client = client.map_err(|error| error.to_string())?;
    client.set("native", "yes").wait().map_err(|error| error.to_string())
}

#[test]
fn everybody_shows_who_he_is() {
    let scratch = Scratch::new("tls");
    let (nodes, certificates) = start(&scratch);
    let client = certificates.credentials("client", Role::Client);

    let mut redis = Redis::connect_by_tls(nodes.port + 51, &client).unwrap();
    assert_eq!(redis.ask(&["SET", "large", &"x".repeat(300_000)]), "+OK");
    assert_eq!(Redis::connect(nodes.port).ask(&["STRLEN", "large"]), ":300000");
    let mut other = Redis::connect_by_tls(nodes.port + 52, &client).unwrap();
    assert_eq!(other.ask(&["GET", "large"]).len(), 300_000);

    native(&nodes, Some(client)).unwrap();
    let refused = native(&nodes, None).unwrap_err();
    assert!(refused.contains("no replica can be reached"), "{refused}");
    let stranger = Certificates::new(&scratch.0.join("stranger"));
    let refused = native(&nodes, Some(stranger.credentials("client", Role::Client))).unwrap_err();
    assert!(refused.contains("its certificate is of no authority that this client believes"), "{refused}");
    // Who believes the nodes, and is not believed by them.
    let mut files = stranger.issue("half", CLUSTER, Role::Client, 1);
    files.authorities = certificates.node(0).authorities;
    let half = Credentials::load(files, Purpose::default()).unwrap();
    let refused = native(&nodes, Some(half)).unwrap_err();
    assert!(refused.contains("it refuses this client's certificate"), "{refused}");
    nodes.wait_for_log(0, "invalid peer certificate: UnknownIssuer");
    let expired = certificates.issue("expired", CLUSTER, Role::Client, 0);
    wait_for("the end of a certificate", || {
        let expired = Credentials::load(expired.clone(), Purpose::default()).unwrap();
        native(&nodes, Some(expired))
            .err()
            .filter(|error| error.contains("it refuses this client's certificate"))
    });
    nodes.wait_for_log(0, "invalid peer certificate: certificate expired");
    let foreign = certificates.issue("foreign", CLUSTER + 1, Role::Client, 1);
    let foreign = Credentials::load(foreign, Purpose::default()).unwrap();
    assert!(native(&nodes, Some(foreign)).is_err());
    nodes.wait_for_log(0, "its certificate is for syros://8/client; this is cluster 7");
    // A client that does not check whom it talks to would talk to anybody.
    let elsewhere = Purpose { cluster: Some(CLUSTER + 1), ..Purpose::default() };
    let elsewhere =
        Credentials::load(certificates.issue("client", CLUSTER, Role::Client, 1), elsewhere).unwrap();
    let refused = native(&nodes, Some(elsewhere)).unwrap_err();
    assert!(refused.contains("does not say that it is a node of this cluster"), "{refused}");
}

/// Sends the handshake of node 1 to node 0, as the holder of a certificate.
fn pretend_to_be_node_1(nodes: &Nodes, credentials: &Credentials) -> String {
    let exchange = |port: u16, hello: &Hello| -> Vec<u8> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        socket.set_read_timeout(Some(common::PATIENCE)).unwrap();
        let mut stream = BlockingStream::new(socket, Some(credentials)).unwrap();
        let mut out = Vec::new();
        put_frame(&mut out, Channel::Handshake, |out| hello.encode(out));
        stream.write_all(&out).unwrap();
        let (mut received, mut piece) = (Vec::new(), [0; 512]);
        while let Ok(count) = stream.read(&mut piece)
            && count > 0
        {
            received.extend_from_slice(&piece[..count]);
            if matches!(hello.sender, Sender::Client)
                && split_frame(&received, FRAME_BYTES_MAX).unwrap().is_some()
            {
                break;
            }
        }
        received
    };
    let client = Hello { cluster: CLUSTER, nonce: None, sender: Sender::Client };
    let answer = exchange(replica_port(nodes, 1), &client);
    let (frame, _) = split_frame(&answer, FRAME_BYTES_MAX).unwrap().unwrap();
    let node_1 = Hello::decode(frame.payload).unwrap();
    assert!(matches!(node_1.sender, Sender::Replica(_)));
    let answer = exchange(replica_port(nodes, 0), &node_1);
    let (_, first) = split_frame(&answer, FRAME_BYTES_MAX).unwrap().unwrap();
    let (frame, _) = split_frame(&answer[first..], FRAME_BYTES_MAX).unwrap().unwrap();
    match HandshakeMessage::decode(frame.payload).unwrap() {
        HandshakeMessage::Refused(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_is_only_who_its_certificate_says() {
    let scratch = Scratch::new("tls-roles");
    let (mut nodes, certificates) = start(&scratch);
    for role in [Role::Client, Role::Administrator, Role::Node(ReplicaId(2))] {
        let refused = pretend_to_be_node_1(&nodes, &certificates.credentials("liar", role));
        let expected = format!("it says that it is replica 1, and its certificate says that it is {role}");
        assert_eq!(refused, expected);
    }
    // Nobody is the worse for it.
    nodes.set(1, "k", "v");

    // A node whose certificate is another one's does not even start.
    nodes.stop(2, Signal::TERM);
    let other = certificates.issue("node-2", CLUSTER, Role::Node(ReplicaId(1)), 1);
    nodes.start(2, &[]);
    let log = nodes.refused(2);
    let expected = "its URI is syros://7/node/1; syros://7/node/2 is what this process needs";
    assert!(log.contains(expected) && log.contains("node-2-certificate.pem"), "{log}");
    drop(other);

    // Who may administer is told by certificates, too.
    let directory = |name: &str, role: Role| {
        let directory = scratch.0.join(name);
        std::fs::create_dir(&directory).unwrap();
        let files = certificates.issue(name, CLUSTER, role, 1);
        for (from, to) in
            [(files.certificate, "certificate"), (files.key, "key"), (files.authorities, "authorities")]
        {
            std::fs::rename(from, directory.join(format!("{to}.pem"))).unwrap();
        }
        directory
    };
    let (admin, client) = (directory("admin", Role::Administrator), directory("client", Role::Client));
    let address = format!("127.0.0.1:{}", nodes.port);
    let lead = |id: &str, who: &Path| run(syros().args(["lead", id, "--addr", &address, "--tls"]).arg(who));
    let refused = lead("1", &client);
    assert!(
        !refused.status.success() && text(&refused).contains("only administrators and nodes may ask"),
        "{refused:?}"
    );
    let led = lead("1", &admin);
    assert!(led.status.success(), "{led:?}");
    let status = run(syros().args(["status", "--addr", &address]));
    assert!(text(&status).contains("down: "), "without a certificate: {status:?}");
}

#[test]
fn certificates_are_renewed_while_nodes_serve() {
    let scratch = Scratch::new("tls-renewed");
    let (mut nodes, certificates) = start(&scratch);
    let client = certificates.credentials("client", Role::Client);
    let mut early = Redis::connect_by_tls(nodes.port + 50, &client).unwrap();
    let expires = |redis: &mut Redis| {
        let info = redis.ask(&["INFO", "syros"]);
        let line = info.lines().find_map(|line| line.strip_prefix("tls_certificate_expires:"));
        line.unwrap().parse::<i64>().unwrap()
    };
    let before = expires(&mut early);

    // Half of what is needed changes nothing.
    let files = certificates.issue("node-0", CLUSTER, Role::Node(ReplicaId(0)), 30);
    let key = std::fs::read(&files.key).unwrap();
    std::fs::write(&files.key, "no key").unwrap();
    nodes.wait_for_log(0, "new connections go by what they had before");
    assert_eq!(expires(&mut early), before);
    assert_eq!(Redis::connect_by_tls(nodes.port + 50, &client).unwrap().ask(&["PING"]), "+PONG");

    std::fs::write(&files.key, key).unwrap();
    wait_for("another certificate", || (expires(&mut early) > before + 28 * 86_400).then_some(()));
    assert_eq!(early.ask(&["SET", "k", "v"]), "+OK", "connections go on");
    let mut late = Redis::connect_by_tls(nodes.port + 50, &client).unwrap();
    assert_eq!(late.ask(&["GET", "k"]), "v");
    // So do nodes: node 2 connects anew, and is shown the new certificate.
    nodes.stop(2, Signal::TERM);
    nodes.start(2, &[]);
    nodes.set(2, "k", "w");
}

/// One node after the other gets its certificates, and then insists on them; and back. The cluster serves all the time.
#[test]
fn tls_comes_and_goes_while_the_cluster_serves() {
    let scratch = Scratch::new("tls-rolling");
    let certificates = Certificates::new(&scratch.0.join("tls"));
    let mut nodes = Nodes::new(&scratch);
    nodes.start_all(&["--bootstrap"]);
    nodes.set(0, "round", "0");
    let mut round = 0;
    for setting in ["optional", "required", "optional", "none"] {
        for node in 0..3 {
            let more = format!("nodes = \"{setting}\"\n");
            let sections = sections(&nodes, node, &certificates.node(node as u8), &more);
            nodes.configure(node.into(), node.into(), "", &sections);
            nodes.stop(node.into(), Signal::TERM);
            nodes.start(node.into(), &[]);
            round += 1;
            // With the node that has just started, and one that has not.
            nodes.set(node.into(), "round", &round.to_string());
            assert_eq!(nodes.get((usize::from(node) + 1) % 3, "round"), round.to_string());
        }
    }
    assert!(nodes.log(0).contains("it does not speak TLS") || nodes.log(1).contains("cannot connect"));
}

/// Bytes that are no handshake, handshakes that do not end, and more of them than there may be.
#[test]
fn strangers_at_the_ports_keep_nobody_out() {
    let scratch = Scratch::new("tls-strangers");
    let (nodes, certificates) = start(&scratch);
    let client = certificates.credentials("client", Role::Client);
    let connect = |port: u16| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let ports = [nodes.port + 50, replica_port(&nodes, 0)];
    let mut silent = Vec::new();
    for port in ports {
        for garbage in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0; 4096],
            &[0x16, 3, 1, 0xff, 0xff, 1, 0, 0xff],
            b"\x16\x03\x03",
        ] {
            let mut stream = connect(port);
            stream.write_all(garbage).unwrap();
            silent.push(stream);
        }
        // More than are kept at a time.
        for _ in 0..700 {
            silent.push(connect(port));
        }
    }
    let began = Instant::now();
    let mut redis = Redis::connect_by_tls(ports[0], &client).unwrap();
    assert_eq!(redis.ask(&["SET", "k", "v"]), "+OK");
    native(&nodes, Some(client)).unwrap();
    assert!(began.elapsed() < Duration::from_secs(4), "they had to wait until strangers were given up");
    nodes.wait_for_log(0, "it takes long with its TLS handshake, and others wait to begin theirs");
    // The others are given up, each in its time.
    let last = silent.last_mut().unwrap();
    last.set_read_timeout(Some(common::PATIENCE)).unwrap();
    assert!(matches!(last.read(&mut [0; 16]), Ok(0) | Err(_)));
}

#[test]
fn what_is_wrong_with_the_files_is_named() {
    let scratch = Scratch::new("tls-files");
    let certificates = Certificates::new(&scratch.0.join("tls"));
    let files = certificates.node(0);
    let mut nodes = Nodes::new(&scratch);
    let mut refused = |files: &Files, more: &str, why: &str| {
        let sections = sections(&nodes, 0, files, more);
        nodes.configure(0, 0, "", &sections);
        let _ = std::fs::remove_file(nodes.dir.join("log-0"));
        nodes.start(0, &["--bootstrap"]);
        let log = nodes.refused(0);
        assert!(log.contains(why), "{why}: {log}");
    };
    let missing = Files { key: "/no/such/key".into(), ..files.clone() };
    refused(&missing, "", "TLS: /no/such/key: No such file");
    let swapped = Files { key: scratch.0.join("no.key"), ..files.clone() };
    std::fs::copy(&files.certificate, &swapped.key).unwrap();
    std::fs::set_permissions(&swapped.key, std::fs::Permissions::from_mode(0o640)).unwrap();
    refused(&swapped, "", "it has no private key in PEM");
    let other = certificates.node(1);
    let mixed = Files { key: other.key, ..files.clone() };
    refused(&mixed, "", "node-1-key.pem: keys may not be consistent");
    std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o644)).unwrap();
    refused(&files, "", "everybody can read this private key (mode 644)");
    refused(&files, "nodes = \"maybe\"\n", "key 'tls.nodes'");
    // Whoever asks for TLS and has no certificate does not get a node without it.
    nodes.configure(0, 0, "", "[tls]\nnodes = \"required\"\n");
    nodes.start(0, &["--bootstrap"]);
    let log = nodes.refused(0);
    assert!(log.contains("key 'tls.certificate': missing"), "{log}");
    assert!(!scratch.0.join("data-0").exists(), "nothing was made");
}

#[test]
fn certificates_from_the_command_line() {
    let scratch = Scratch::new("tls-command");
    let path = |name: &str| scratch.0.join(name);
    let certificate = |words: &[&str]| run(syros().arg("certificate").args(words).current_dir(&scratch.0));
    assert!(certificate(&["authority", "old"]).status.success());
    assert!(!certificate(&["authority", "old"]).status.success(), "it is not written over");
    assert!(certificate(&["authority", "new"]).status.success());
    let node = |more: &[&str]| {
        let words: Vec<_> = ["node", "0", "--cluster", "0x7", "--host", "db1, 10.0.0.1"]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        certificate(&words)
    };
    assert!(node(&["--authority", "old", "--to", "n"]).status.success());
    let before = std::fs::read_to_string(path("n/authorities.pem")).unwrap();
    // Another authority takes the place of the old one, which goes on to be believed.
    assert!(node(&["--authority", "new", "--to", "n"]).status.success());
    assert!(node(&["--authority", "new", "--to", "n"]).status.success());
    let after = std::fs::read_to_string(path("n/authorities.pem")).unwrap();
    assert!(after.starts_with(&before) && after.matches("BEGIN CERTIFICATE").count() == 2, "{after}");
    assert_eq!(std::fs::metadata(path("n/key.pem")).unwrap().permissions().mode() & 0o777, 0o600);
    let refused = |words: &[&str], why: &str| {
        let output = certificate(words);
        let said = text(&output);
        assert!(!output.status.success() && said.contains(why), "{why}: {said}");
    };
    let of = |extra: &[&'static str]| -> Vec<&'static str> {
        ["client", "--authority", "old", "--cluster", "7"].into_iter().chain(extra.iter().copied()).collect()
    };
    refused(&of(&["--to", "old"]), "is the directory of an authority");
    refused(&of(&["--to", "c", "--host", "db1:6379"]), "without a port");
    refused(&of(&["--to", "c", "--host", ""]), "a host name or an IP address is expected");
    refused(&of(&["--to", "c", "--days", "36500"]), "days are more than the authority itself has left");
    refused(&["node", "9", "--authority", "old", "--cluster", "7", "--to", "c"], "from 0 to 8");
    refused(
        &["client", "--authority", "none", "--cluster", "7", "--to", "c"],
        "cannot read none/authority.pem",
    );
    assert!(!path("c").exists());
}

#[test]
fn a_development_cluster_and_a_gateway_speak_tls() {
    let scratch = Scratch::new("tls-dev");
    let port = free_ports();
    let dev = common::Dev::start(&scratch.0.join("d"), port, &["--tls", &(port + 50).to_string()]);
    let tls = |who: &str| scratch.0.join("d/tls").join(who);
    let credentials = |who: &str| {
        let file = |name: &str| tls(who).join(name);
        let files = Files {
            certificate: file("certificate.pem"),
            key: file("key.pem"),
            authorities: file("authorities.pem"),
        };
        Credentials::load(files, Purpose::default()).unwrap()
    };
    let mut redis = Redis::connect_by_tls(port + 52, &credentials("client")).unwrap();
    assert_eq!(redis.ask(&["SET", "k", "v"]), "+OK");
    assert_eq!(redis.ask(&["CONFIG", "GET", "tls-port"]), "*2");
    let status =
        run(syros().args(["status", "--addr", &format!("127.0.0.1:{port}"), "--tls"]).arg(tls("admin")));
    assert!(status.status.success(), "{status:?}");

    let cluster =
        dev.nodes.iter().map(|node| format!("127.0.0.1:{}", node.replica)).collect::<Vec<_>>().join(",");
    let mut gateway = syros()
        .args(["gateway", "--cluster", &cluster, "--port", &(port + 60).to_string()])
        .args(["--tls-port", &(port + 61).to_string(), "--tls"])
        .arg(tls("client"))
        .spawn()
        .unwrap();
    let by_tls = format!("127.0.0.1:{}", port + 61);
    wait_for("the gateway", || {
        let mut redis = Redis::try_connect(port + 60).ok()?;
        (redis.try_ask(&["GET", "k"]).ok()? == "v").then_some(())
    });
    // Any node or gateway tells about the replicas.
    let status = run(syros().args(["status", "--addr", &by_tls, "--tls"]).arg(tls("admin")));
    assert!(status.status.success(), "{status:?}");
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    assert!(dev.stop().success());
}
