//! Replicas that answer at once, or as they are told, and replicate nothing: they share one store.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use syros_commands::families::{Get, IncrBy, Set};
use syros_commands::{Command, put_bulk, put_error, put_integer, put_nil, put_ok};
use syros_protocol::agreement::{EngineName, SharedSettings};
use syros_protocol::formation::{Declaration, Stage};
use syros_protocol::message::{Body, Message, Path, Refusal, RoleName, StatusReport};
use syros_protocol::replica::Durability;
use syros_types::{
    ConfigurationEpoch, FastQuorum, Group, GroupId, Incarnation, NodeId, ReplicaId, Roster, SessionId, View,
    WallTime,
};
use syros_wire::{
    Channel, Hello, Member, Sender, VERSION, decode_client_message, put_frame, put_message_frame, split_frame,
};

/// What the replicas do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Answer,
    Silent,
    Refuse(Refusal),
}

/// What all replicas share.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) mood: Mutex<Mood>,
    store: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    sessions: AtomicU64,
    /// Requests for the durability log seen by each replica.
    pub(crate) durable: Vec<AtomicU64>,
    /// Requests to be ordered seen by each replica.
    pub(crate) ordered: Vec<AtomicU64>,
    /// Open connections of each replica, to be cut.
    connections: Vec<Mutex<Vec<TcpStream>>>,
    is_stopped: AtomicBool,
    /// The versions in which clients have begun their connections to each replica.
    pub(crate) greeted: Vec<Mutex<Vec<u16>>>,
}

/// What one replica says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) cluster: u64,
    pub(crate) replica: u8,
    pub(crate) replicas: usize,
    pub(crate) fast_quorum: FastQuorum,
}

impl Identity {
    pub(crate) const fn of(replica: u8, replicas: usize) -> Self {
        Self { cluster: 77, replica, replicas, fast_quorum: FastQuorum::Majority }
    }

    fn hello(self) -> Vec<u8> {
        self.hello_as(VERSION)
    }

    pub(crate) fn hello_as(self, version: u16) -> Vec<u8> {
        let group = Group::new(self.replicas).unwrap();
        let node = NodeId::new(1 + u64::from(self.replica)).unwrap();
        let stage = Stage::Acting(Roster::unknown(group));
        let member = Member {
            declaration: Declaration {
                replica: ReplicaId(self.replica),
                node,
                stage,
                epoch: ConfigurationEpoch::FIRST,
                before: None,
            },
            process: 1,
            incarnation: Incarnation(1),
            group: GroupId::ONLY,
            settings: SharedSettings {
                group,
                fast_quorum: self.fast_quorum,
                durability: Durability::Fsync,
                engine: EngineName::new("memory").unwrap(),
                lease: Duration::from_millis(200),
                clock_drift_ppm: 10_000,
                session_timeout: Duration::from_secs(600),
            },
        };
        let mut out = Vec::new();
        let hello = Hello { cluster: self.cluster, nonce: None, sender: Sender::Replica(Box::new(member)) };
        put_frame(&mut out, Channel::Handshake, |out| hello.encode_as(version, out));
        out
    }
}

/// A healthy cluster.
pub(crate) fn cluster(replicas: u8) -> Arc<Cluster> {
    start((0..replicas).map(|replica| Identity::of(replica, usize::from(replicas)).hello()).collect())
}

/// Replicas that say this of themselves.
pub(crate) fn cluster_of(identities: &[Identity]) -> Arc<Cluster> {
    start(identities.iter().map(|identity| identity.hello()).collect())
}

/// Replicas that send these bytes first.
pub(crate) fn start(hellos: Vec<Vec<u8>>) -> Arc<Cluster> {
    let listeners: Vec<TcpListener> =
        hellos.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let cluster = Arc::new(Cluster {
        addresses: listeners.iter().map(|listener| listener.local_addr().unwrap()).collect(),
        mood: Mutex::new(Mood::Answer),
        store: Mutex::default(),
        sessions: AtomicU64::new(1),
        durable: hellos.iter().map(|_| AtomicU64::new(0)).collect(),
        ordered: hellos.iter().map(|_| AtomicU64::new(0)).collect(),
        connections: hellos.iter().map(|_| Mutex::default()).collect(),
        is_stopped: AtomicBool::new(false),
        greeted: hellos.iter().map(|_| Mutex::default()).collect(),
    });
    for (replica, (listener, hello)) in listeners.into_iter().zip(hellos).enumerate() {
        let cluster = Arc::clone(&cluster);
        std::thread::spawn(move || accept(&cluster, replica, &listener, &hello));
    }
    cluster
}

fn accept(cluster: &Arc<Cluster>, replica: usize, listener: &TcpListener, hello: &[u8]) {
    while let Ok((stream, _)) = listener.accept() {
        if cluster.is_stopped.load(Ordering::Relaxed) {
            return;
        }
        cluster.connections[replica].lock().unwrap().push(stream.try_clone().unwrap());
        let (cluster, hello) = (Arc::clone(cluster), hello.to_vec());
        std::thread::spawn(move || serve(&cluster, replica, stream, &hello));
    }
}

/// Greets in answer to a greeting: who learns the version of a replica may leave at once, and what it has said is unread.
fn serve(cluster: &Cluster, replica: usize, mut stream: TcpStream, hello: &[u8]) {
    let (mut received, mut piece, mut out) = (Vec::new(), vec![0; 1 << 16], Vec::new());
    let mut is_greeted = false;
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        received.extend_from_slice(&piece[..count]);
        while let Some((frame, length)) = split_frame(&received, 1 << 28).unwrap() {
            if is_greeted {
                assert_eq!(frame.channel, Channel::Client);
                let message = decode_client_message(frame.payload).unwrap();
                if let Some(answer) = cluster.answer(replica, message) {
                    put_message_frame(&mut out, Channel::Client, frame.configuration, &answer);
                }
            } else {
                assert_eq!(frame.channel, Channel::Handshake);
                assert_eq!(Hello::decode(frame.payload).unwrap().sender, Sender::Client);
                let version = Hello::version_of_answer(frame.payload);
                cluster.greeted[replica].lock().unwrap().push(version);
                is_greeted = true;
                out.extend_from_slice(hello);
            }
            received.drain(..length);
        }
        if stream.write_all(&out).is_err() {
            return;
        }
        out.clear();
    }
}

impl Cluster {
    pub(crate) fn set_mood(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// Cuts every connection of a replica. It accepts new ones.
    pub(crate) fn cut(&self, replica: usize) {
        for stream in self.connections[replica].lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Nobody can connect to any replica any more.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        for (replica, address) in self.addresses.iter().enumerate() {
            let _ = TcpStream::connect(address);
            self.cut(replica);
        }
    }

    fn answer(&self, replica: usize, message: Message) -> Option<Message> {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let (view, clock) = (View(0), WallTime(since_epoch.as_micros() as u64));
        let mood = *self.mood.lock().unwrap();
        if let Message::Request { path, .. } = &message {
            let seen = if *path == Path::Durability { &self.durable } else { &self.ordered };
            seen[replica].fetch_add(1, Ordering::Relaxed);
        }
        match (message, mood) {
            (Message::StatusRequest, _) => Some(Message::Status(Box::new(StatusReport {
                replica: replica as u8,
                replicas: self.addresses.len() as u8,
                role: if replica == 0 { RoleName::Leader } else { RoleName::Follower },
                applied: 42,
                ..StatusReport::default()
            }))),
            (Message::Register { nonce, .. }, _) => {
                let session = SessionId(self.sessions.fetch_add(1, Ordering::Relaxed));
                Some(Message::Registered { view, nonce, session })
            }
            (Message::Request { request, .. }, Mood::Refuse(refusal)) => {
                Some(Message::Refused { view, id: request.id, clock, refusal })
            }
            (Message::Request { request, path, .. }, Mood::Answer) => {
                let id = request.id;
                // The leader executes; the others only say that they have it.
                let reply = if replica == 0 { self.execute(&request.body) } else { Body::default() };
                let is_nilext = syros_commands::describe(&request.body).unwrap().class.is_nilext();
                let reply = if is_nilext { Body::default() } else { reply };
                Some(match path {
                    Path::Durability => Message::Ok { view, rule: None, id, clock },
                    Path::Ordered => Message::Committed { view, id, clock, reply },
                })
            }
            (Message::Read { number, .. }, Mood::Refuse(refusal)) => {
                Some(Message::ReadRefused { view, number, refusal })
            }
            (Message::Read { number, body, .. }, Mood::Answer) if !body.is_empty() => {
                Some(Message::ReadReply { view, number, reply: self.execute(&body) })
            }
            _ => None,
        }
    }

    fn execute(&self, body: &[u8]) -> Body {
        let mut store = self.store.lock().unwrap();
        let mut out = Vec::new();
        for operation in syros_commands::operations(body) {
            match operation.unwrap().command {
                Command::Set(Set { key, value, .. }) => {
                    store.insert(key.to_vec(), value.to_vec());
                    put_ok(&mut out);
                }
                Command::Get(Get { key }) => match store.get(key) {
                    Some(value) => put_bulk(&mut out, value),
                    None => put_nil(&mut out),
                },
                Command::IncrBy(IncrBy { key, delta }) => {
                    let text = store.get(key).map_or("0", |value| std::str::from_utf8(value).unwrap());
                    match text.parse::<i64>() {
                        Ok(old) => {
                            put_integer(&mut out, old + delta);
                            store.insert(key.to_vec(), (old + delta).to_string().into_bytes());
                        }
                        Err(_) => put_error(&mut out, b"ERR value is not an integer or out of range"),
                    }
                }
                // An answer of a kind that no command expects here.
                _ => put_nil(&mut out),
            }
        }
        out.into()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}
