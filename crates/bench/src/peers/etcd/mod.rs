//! etcd: members that replicate by Raft, asked through gRPC.

mod grpc;
mod messages;

use super::servers::{Program, Servers};
use super::{PeerError, System};
use crate::clients::{Request, Values, key_name};
use crate::cluster::free_addresses;
use crate::error::Error;
use crate::fleet::{Ended, Fleet};
use bytes::Bytes;
use core::time::Duration;
use grpc::{CallError, Method, call, connect, framed};
use h2::client::SendRequest;
use messages::{put_request, put_response, range_request, range_response, status_response};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use syros_types::Prng;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// The server.
pub(super) const PROGRAM: Program = Program { name: "etcd", package: "etcd-server" };

/// A member that does not answer within this time is not ready.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The longest value, in bytes: a request may have 1.5 MiB.
pub(super) const VALUE_BYTES_MAX: u64 = 1 << 20;

/// Most bytes on disk of a member: every version of every key stays. The default of 2 GiB may not be enough for a long
/// measurement; more than this is not recommended.
const QUOTA_BYTES: u64 = 8 << 30;

/// A runtime on the calling thread.
fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()
}

/// Members.
pub(super) struct Etcd {
    servers: Servers,
    /// Where each listens for clients.
    addresses: Vec<SocketAddr>,
    /// Clients connect to all members, not only to the leader.
    spread: bool,
    /// The leader when clients connected last.
    leader: Option<usize>,
}

impl Etcd {
    /// Starts them, and waits until all of them know the same leader.
    pub(super) fn start(
        directory: &Path,
        replicas: usize,
        spread: bool,
        mut servers: Servers,
    ) -> Result<Self, PeerError> {
        let addresses = free_addresses(replicas)?;
        let members: Vec<String> = addresses
            .iter()
            .enumerate()
            .map(|(number, [_, peers])| format!("etcd-{number}=http://{peers}"))
            .collect();
        for (number, [clients, peers]) in addresses.iter().enumerate() {
            let text = format!(
                "--name etcd-{number} --data-dir data --logger zap --log-level warn --log-outputs stderr \
                 --listen-client-urls http://{clients} --advertise-client-urls http://{clients} \
                 --listen-peer-urls http://{peers} --initial-advertise-peer-urls http://{peers} \
                 --initial-cluster {} --initial-cluster-state new --quota-backend-bytes {QUOTA_BYTES}",
                members.join(",")
            );
            let arguments: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
            servers.start(format!("etcd-{number}"), directory, PROGRAM, &arguments)?;
        }
        let addresses = addresses.into_iter().map(|[clients, _]| clients).collect();
        let mut etcd = Self { servers, addresses, spread, leader: None };
        etcd.find_leader()?;
        Ok(etcd)
    }

    /// Waits until all members know the same leader: which that is.
    fn find_leader(&mut self) -> Result<usize, PeerError> {
        let runtime = runtime().map_err(Error::System)?;
        let Self { servers, addresses, .. } = self;
        servers.wait_until(|| {
            let mut members = Vec::new();
            for address in &*addresses {
                let asked = async { tokio::time::timeout(ANSWER_WITHIN, status(*address)).await };
                let answer = runtime.block_on(asked).map_err(|_| format!("{address} does not answer"))?;
                members.push(answer.map_err(|error| format!("{address}: {error}"))?);
            }
            let leader = members.iter().position(|status| status.member == status.leader);
            let leader = leader.ok_or("no member leads")?;
            let same = members.iter().all(|status| status.leader == members[leader].member);
            if same { Ok(leader) } else { Err("members do not agree who leads".to_owned()) }
        })
    }
}

/// What a member says of itself.
async fn status(server: SocketAddr) -> Result<messages::Status, CallError> {
    let sender = connect(server).await?;
    let method = Method::new(server, "/etcdserverpb.Maintenance/Status");
    Ok(status_response(&call(sender, &method, framed(|_| ())).await?)?)
}

impl System for Etcd {
    fn processes(&self) -> Vec<u32> {
        self.servers.processes()
    }

    fn check(&mut self) -> Result<(), PeerError> {
        self.servers.check()?;
        let leader = self.find_leader()?;
        if self.leader.is_none_or(|before| before == leader) { Ok(()) } else { Err(PeerError::Leader) }
    }

    fn fleet(
        &mut self,
        clients: usize,
        connections: usize,
        value_bytes: usize,
        prng: &mut Prng,
    ) -> Result<Box<dyn Fleet>, PeerError> {
        let leader = self.find_leader()?;
        self.leader = Some(leader);
        let members = if self.spread { &self.addresses[..] } else { &self.addresses[leader..=leader] };
        let fleet = EtcdFleet::new(members, connections, clients, Values::new(value_bytes, prng));
        Ok(Box::new(fleet?))
    }
}

/// What tasks tell the load.
#[derive(Default)]
struct Shared {
    ended: Mutex<Vec<(usize, Result<bool, CallError>)>>,
    woken: Notify,
}

impl Shared {
    /// Nothing that can panic happens while it is locked, and all of it is on one thread.
    fn ended(&self) -> MutexGuard<'_, Vec<(usize, Result<bool, CallError>)>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection, and what is called on it.
#[derive(Clone)]
struct Connection {
    sender: SendRequest<Bytes>,
    put: Method,
    range: Method,
}

/// Clients of etcd.
struct EtcdFleet {
    runtime: Runtime,
    /// Each client's, which it may share.
    connections: Vec<Connection>,
    /// What nobody has been told yet.
    asked: Vec<(usize, Request, Bytes)>,
    shared: Arc<Shared>,
    values: Values,
    last_refusal: Option<String>,
}

impl EtcdFleet {
    /// So many clients, which share so many connections, which go to these members in turn.
    fn new(
        members: &[SocketAddr],
        connections: usize,
        clients: usize,
        values: Values,
    ) -> Result<Self, PeerError> {
        let runtime = runtime().map_err(Error::System)?;
        let made = (0..connections).zip(members.iter().cycle()).map(|(_, member)| {
            let sender = runtime.block_on(connect(*member));
            let sender = sender.map_err(|error| PeerError::Connect(format!("{member}: {error}")))?;
            let (put, range) = (
                Method::new(*member, "/etcdserverpb.KV/Put"),
                Method::new(*member, "/etcdserverpb.KV/Range"),
            );
            Ok(Connection { sender, put, range })
        });
        let made = made.collect::<Result<Vec<Connection>, PeerError>>()?;
        let connections = made.iter().cycle().take(clients).cloned().collect();
        let shared = Arc::new(Shared::default());
        Ok(Self { runtime, connections, asked: Vec::new(), shared, values, last_refusal: None })
    }
}

/// True if the request did what it was to do.
fn is_good(request: Request, message: &[u8]) -> Result<bool, CallError> {
    match request {
        Request::Get(_) => Ok(range_response(message)?.is_some()),
        _ => Ok(put_response(message).map(|()| true)?),
    }
}

impl Fleet for EtcdFleet {
    fn ask(&mut self, client: usize, request: Request) {
        let body = match request {
            Request::Get(key) => framed(|out| range_request(key_name(key).as_bytes(), out)),
            Request::Set(key) => framed(|out| put_request(key_name(key).as_bytes(), self.values.draw(), out)),
            other => unreachable!("peers are asked for reads and overwrites only, not for {other:?}"),
        };
        self.asked.push((client, request, body));
    }

    fn turn(&mut self, until: Instant, ended: &mut Vec<Ended>) -> Result<(), Error> {
        let Self { runtime, connections, asked, shared, .. } = self;
        runtime.block_on(async {
            for (client, request, body) in asked.drain(..) {
                let Connection { sender, put, range } = &connections[client];
                let method = if matches!(request, Request::Get(_)) { range } else { put };
                let (sender, method, shared) = (sender.clone(), method.clone(), Arc::clone(shared));
                tokio::spawn(async move {
                    let answer = call(sender, &method, body).await;
                    let answer = answer.and_then(|message| is_good(request, &message));
                    shared.ended().push((client, answer));
                    shared.woken.notify_one();
                });
            }
            // If the time is over, the load knows.
            let _ = tokio::time::timeout_at(until.into(), shared.woken.notified()).await;
        });
        for (client, answer) in self.shared.ended().drain(..) {
            let is_good = match answer {
                Ok(is_good) => is_good,
                Err(error @ CallError::Status(..)) => {
                    self.last_refusal = Some(error.to_string());
                    false
                }
                Err(error) => return Err(Error::System(std::io::Error::other(format!("etcd: {error}")))),
            };
            ended.push(Ended { client, is_good });
        }
        Ok(())
    }

    fn last_refusal(&self) -> Option<String> {
        self.last_refusal.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::messages::tests::{HEADER, PAIR};
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::mpsc::{Sender, channel};
    use tokio::net::TcpListener;

    /// Number of the key that the fake does not write.
    const REFUSED: u64 = 13;

    type Written = Arc<Mutex<BTreeSet<Vec<u8>>>>;

    /// Answers one call, as a server of gRPC does.
    async fn answer(
        request: http::Request<h2::RecvStream>,
        mut respond: h2::server::SendResponse<Bytes>,
        written: Written,
    ) -> Result<(), h2::Error> {
        assert_eq!(request.headers()["content-type"], "application/grpc");
        let path = request.uri().path().to_owned();
        let mut stream = request.into_body();
        let mut body = Vec::new();
        while let Some(part) = stream.data().await {
            body.extend_from_slice(&part?);
        }
        // A prefix of five bytes; then the key, after its tag and its length.
        let key = body[7..7 + usize::from(body[6])].to_vec();
        let headers = || http::Response::builder().header("content-type", "application/grpc");
        if key == key_name(REFUSED).as_bytes() {
            let refusal = headers().header("grpc-status", "14").header("grpc-message", "no leader");
            return respond.send_response(refusal.body(()).unwrap(), true).map(drop);
        }
        let message = match path.as_str() {
            "/etcdserverpb.KV/Put" => {
                written.lock().unwrap().insert(key);
                HEADER.to_vec()
            }
            "/etcdserverpb.KV/Range" if written.lock().unwrap().contains(&key) => [HEADER, PAIR].concat(),
            _ => HEADER.to_vec(),
        };
        let mut out = respond.send_response(headers().body(()).unwrap(), false)?;
        let whole = framed(|out| out.extend(message));
        // In two parts, as a long one comes.
        out.send_data(whole.slice(..7), false)?;
        out.send_data(whole.slice(7..), false)?;
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
        out.send_trailers(trailers)
    }

    /// A fake of a member; ends with the process.
    async fn serve(address: Sender<SocketAddr>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        address.send(listener.local_addr().unwrap()).unwrap();
        let written = Written::default();
        while let Ok((stream, _)) = listener.accept().await {
            let written = Arc::clone(&written);
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, respond))) = connection.accept().await {
                    tokio::spawn(answer(request, respond, Arc::clone(&written)));
                }
            });
        }
    }

    #[test]
    fn clients_put_and_range_and_know_what_was_refused() {
        let (sender, address) = channel();
        std::thread::spawn(|| runtime().unwrap().block_on(serve(sender)));
        let address = address.recv().unwrap();
        for connections in [1, 3] {
            let values = Values::new(100, &mut Prng::new(1));
            let mut fleet = EtcdFleet::new(&[address], connections, 3, values).unwrap();
            let mut round = |requests: [Request; 3]| {
                let (mut ended, until) = (Vec::new(), Instant::now() + Duration::from_secs(10));
                requests.into_iter().enumerate().for_each(|(client, request)| fleet.ask(client, request));
                while ended.len() < requests.len() && Instant::now() < until {
                    fleet.turn(until, &mut ended).unwrap();
                }
                ended.sort_by_key(|ended| ended.client);
                (ended.iter().map(|ended| ended.is_good).collect::<Vec<bool>>(), fleet.last_refusal())
            };
            let (good, refusal) = round([Request::Set(1), Request::Set(2), Request::Get(3)]);
            assert_eq!((good, refusal), (vec![true, true, false], None), "what is missing is not found");
            let (good, refusal) = round([Request::Set(REFUSED), Request::Get(1), Request::Get(2)]);
            assert_eq!(good, [false, true, true]);
            assert_eq!(refusal.unwrap(), "gRPC status 14: no leader");
        }
    }

    #[test]
    fn nobody_at_the_address_is_an_error() {
        let address = free_addresses(1).unwrap()[0][0];
        let problem = EtcdFleet::new(&[address], 1, 1, Values::new(1, &mut Prng::new(1))).err().unwrap();
        assert!(problem.to_string().contains("cannot connect"), "{problem}");
    }
}
