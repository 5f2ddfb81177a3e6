//! A store in memory on a port of loopback, for tests. It fails as it is told to.

use crate::{Client, Credentials, Patience, Settings};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The bucket that is there.
pub const BUCKET: &str = "bucket";

/// The key that is known, and its secret.
pub const KEYS: (&str, &str) = ("test-key", "test-secret");

/// Names of one page of a listing: few, so that tests have several.
const PAGE_NAMES: usize = 3;

/// What goes wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This status, with this code in the body.
    Status(u16, &'static str),
    /// The connection ends, and nothing is done.
    Reset,
    /// It is done, and the connection ends without an answer.
    Lost,
    /// No answer comes.
    Stall,
    /// The answer comes byte by byte.
    Drip,
    /// The connection ends in the middle of the answer.
    Cut,
    /// A bit of the answer's body is flipped.
    Flip,
    /// The body of the answer is another one, with this status.
    Body(u16, Vec<u8>),
}

/// What the store makes of `If-None-Match: *`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conditions {
    /// What it means.
    #[default]
    Known,
    /// Nothing.
    Ignored,
    /// It answers that it has not learnt that.
    Refused,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    /// For requests with this method whose key ends so: how often, and what.
    faults: Vec<(&'static str, String, u32, Fault)>,
    requests: Vec<String>,
    conditions: Conditions,
}

/// The store. It ends with this.
#[derive(Debug)]
pub struct TestServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TestServer {
    /// Starts an empty one.
    ///
    /// # Panics
    /// If no port is free.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let (state, ends) = (Arc::<Mutex<State>>::default(), Arc::<AtomicBool>::default());
        let (shared, stops) = (Arc::clone(&state), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stops.load(Ordering::SeqCst) {
                    return;
                }
                let (state, ends) = (Arc::clone(&shared), Arc::clone(&stops));
                if let Ok(stream) = stream {
                    // A connection that breaks is a fault of the client, or one that was asked for.
                    std::thread::spawn(move || drop(serve(stream, &state, &ends)));
                }
            }
        });
        Self { address, state, ends, thread: Some(thread) }
    }

    /// Where it is.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What a client has to know.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            endpoint: Some(self.endpoint()),
            region: "test-1".to_owned(),
            credentials: Credentials {
                access_key: KEYS.0.to_owned(),
                secret_key: KEYS.1.to_owned(),
                session_token: None,
            },
            authorities: None,
            encryption: None,
        }
    }

    /// A client that does not wait for long.
    ///
    /// # Panics
    /// Never: the settings are right.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(&self.settings(), BUCKET, Self::patience()).expect("the settings are right")
    }

    /// That of tests.
    #[must_use]
    pub const fn patience() -> Patience {
        Patience {
            attempts: 4,
            first_pause: Duration::from_millis(2),
            longest_pause: Duration::from_millis(10),
            connect: Duration::from_secs(5),
            answer: Duration::from_millis(500),
            bytes_per_second: 4 << 20,
        }
    }

    /// The next `times` requests with this method for keys that end so go wrong.
    pub fn fail(&self, method: &'static str, key_end: &str, times: u32, fault: Fault) {
        locked(&self.state).faults.push((method, key_end.to_owned(), times, fault));
    }

    /// What `If-None-Match` means from now on.
    pub fn set_conditions(&self, conditions: Conditions) {
        locked(&self.state).conditions = conditions;
    }

    /// All objects.
    #[must_use]
    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        locked(&self.state).objects.clone()
    }

    /// Puts an object there, or takes it away.
    pub fn set(&self, key: &str, bytes: Option<Vec<u8>>) {
        let objects = &mut locked(&self.state).objects;
        match bytes {
            Some(bytes) => drop(objects.insert(key.to_owned(), bytes)),
            None => drop(objects.remove(key)),
        }
    }

    /// All requests so far, as `PUT key`.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        locked(&self.state).requests.clone()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // It looks at that when somebody connects.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A request as it came.
struct Received {
    method: String,
    key: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

fn receive(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Received>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, path) = (method.to_owned(), decoded(path));
    let query = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = query.map(|(name, value)| (decoded(name), decoded(value))).collect();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let key = path.trim_start_matches('/').to_owned();
    Ok(Some(Received { method, key, query, headers, body }))
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut out) = (text.bytes(), Vec::new());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next().unwrap_or(b'0'), bytes.next().unwrap_or(b'0')];
            out.push(u8::from_str_radix(&String::from_utf8_lossy(&digits), 16).unwrap_or(b'?'));
        } else {
            out.push(byte);
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What is answered.
struct Reply {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl Reply {
    fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: String::new(), body: body.into() }
    }

    fn error(status: u16, code: &str) -> Self {
        Self::new(status, format!("<Error><Code>{code}</Code><Message>told by {}</Message></Error>", KEYS.1))
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>, ends: &AtomicBool) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = receive(&mut reader)? {
        if ends.load(Ordering::SeqCst) {
            return Ok(());
        }
        let fault = locked(state).fault(&request);
        let mut reply = match &fault {
            Some(Fault::Reset) => return out.shutdown(Shutdown::Both),
            Some(Fault::Status(status, code)) => Reply::error(*status, code),
            Some(Fault::Body(status, body)) => Reply::new(*status, body.clone()),
            _ => locked(state).reply(&request),
        };
        let middle = reply.body.len() / 2;
        if fault == Some(Fault::Flip)
            && let Some(byte) = reply.body.get_mut(middle)
        {
            *byte ^= 8;
        }
        let length = if reply.status == 204 {
            String::new()
        } else {
            format!("content-length: {}\r\n", reply.body.len())
        };
        let head = format!("HTTP/1.1 {} x\r\n{length}{}\r\n", reply.status, reply.headers);
        match fault {
            Some(Fault::Lost) => return out.shutdown(Shutdown::Both),
            Some(Fault::Stall) => wait_for_end(&mut reader, ends),
            Some(Fault::Cut) => {
                out.write_all(head.as_bytes())?;
                out.write_all(&reply.body[..reply.body.len() / 2])?;
                return out.shutdown(Shutdown::Both);
            }
            Some(Fault::Drip) => {
                out.write_all(head.as_bytes())?;
                for byte in reply.body {
                    out.write_all(&[byte])?;
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            _ => out.write_all(&[head.as_bytes(), &reply.body].concat())?,
        }
    }
    Ok(())
}

/// Waits until the client gives up.
fn wait_for_end(reader: &mut BufReader<TcpStream>, ends: &AtomicBool) {
    let _ = reader.get_ref().set_read_timeout(Some(Duration::from_millis(20)));
    while !ends.load(Ordering::SeqCst) {
        if reader.read(&mut [0]).is_ok() {
            return;
        }
    }
}

impl State {
    fn fault(&mut self, request: &Received) -> Option<Fault> {
        self.requests.push(format!("{} {}", request.method, request.key));
        let concerns = |(method, end, times, _): &&mut (&str, String, u32, Fault)| {
            *times > 0 && *method == request.method && request.key.ends_with(&end[..])
        };
        let (_, _, times, fault) = self.faults.iter_mut().find(concerns)?;
        *times -= 1;
        Some(fault.clone())
    }

    fn reply(&mut self, request: &Received) -> Reply {
        let authorization = request.headers.get("authorization").cloned().unwrap_or_default();
        if !authorization.contains(&format!("Credential={}/", KEYS.0)) {
            return Reply::error(403, "InvalidAccessKeyId");
        }
        if request.headers.get("x-amz-content-sha256") != Some(&crate::sign::hash(&request.body)) {
            return Reply::error(400, "XAmzContentSHA256Mismatch");
        }
        let Some(key) = request.key.strip_prefix(BUCKET) else { return Reply::error(404, "NoSuchBucket") };
        let key = key.trim_start_matches('/');
        match &request.method[..] {
            "GET" if key.is_empty() => self.listing(request),
            "GET" => self.range(key, request),
            "PUT" => {
                let is_conditional = request.headers.contains_key("if-none-match");
                match self.conditions {
                    Conditions::Refused if is_conditional => return Reply::error(501, "NotImplemented"),
                    Conditions::Known if is_conditional && self.objects.contains_key(key) => {
                        return Reply::error(412, "PreconditionFailed");
                    }
                    _ => {}
                }
                self.objects.insert(key.to_owned(), request.body.clone());
                Reply::new(200, "")
            }
            "DELETE" => {
                self.objects.remove(key);
                Reply::new(204, "")
            }
            _ => Reply::error(405, "MethodNotAllowed"),
        }
    }

    fn range(&self, key: &str, request: &Received) -> Reply {
        let Some(object) = self.objects.get(key) else { return Reply::error(404, "NoSuchKey") };
        let range =
            request.headers.get("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
        let Some((first, last)) = range else { return Reply::new(200, object.clone()) };
        let (first, last): (usize, usize) = (first.parse().unwrap_or(0), last.parse().unwrap_or(0));
        if first >= object.len() {
            return Reply::error(416, "InvalidRange");
        }
        let end = object.len().min(last + 1);
        let headers = format!("content-range: bytes {first}-{}/{}\r\n", end - 1, object.len());
        Reply { headers, ..Reply::new(206, &object[first..end]) }
    }

    fn listing(&self, request: &Received) -> Reply {
        let field = |name: &str| request.query.get(name).map_or("", String::as_str);
        let (prefix, after) = (field("prefix"), field("continuation-token"));
        let mut names: Vec<String> = Vec::new();
        for key in self.objects.keys().filter(|key| key.starts_with(prefix)) {
            let name = &key[prefix.len()..];
            let name = name.split_once('/').map_or(key.clone(), |(folder, _)| format!("{prefix}{folder}/"));
            if &name[..] > after && names.last() != Some(&name) {
                names.push(name);
            }
        }
        let is_cut = names.len() > PAGE_NAMES;
        names.truncate(PAGE_NAMES);
        let escaped = |name: &String| name.replace('&', "&amp;");
        let entries: String = names
            .iter()
            .map(|name| match name.ends_with('/') {
                true => format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(name)),
                false => format!("<Contents><Key>{}</Key><Size>1</Size></Contents>", escaped(name)),
            })
            .collect();
        let next = names.last().filter(|_| is_cut).map(escaped).unwrap_or_default();
        let next =
            if is_cut { format!("<NextContinuationToken>{next}</NextContinuationToken>") } else { next };
        Reply::new(
            200,
            format!(
                "<ListBucketResult><IsTruncated>{is_cut}</IsTruncated>{next}{entries}</ListBucketResult>"
            ),
        )
    }
}
