//! HTTP, as much of it as those who ask for metrics speak.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use syros_resp::ServerReport;

use crate::dashboard::{HEADERS, file};
use crate::host::is_ours;
use crate::places::{Place, Places};
use crate::told::{Answer, Source, Told};
use crate::{CONTENT_TYPE, exposition, not_ready, snapshot};

/// An event loop that answers later than this does not live: its turns take milliseconds.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Connections at a time. Each has a thread; who asks for metrics comes every few seconds. When there are as many, the oldest
/// one that has not sent its whole request gives way to a new one.
pub const CONNECTIONS_MAX: usize = 32;

/// A request has come within this, and an answer is taken within it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest request, with its headers.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// Most headers of a request.
const HEADERS_MAX: usize = 64;

/// After an error of accepting, such as no file left, it is tried again so much later.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Its thread sees it when somebody connects. If nobody can, the process is about to end.
        let has_connected = TcpStream::connect_timeout(&reachable(self.address), PATIENCE).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| has_connected) {
            // It would have panicked, and told so.
            let _ = thread.join();
        }
    }
}

/// An address of this machine at which `address` listens.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let loopback =
            if address.is_ipv4() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { IpAddr::V6(Ipv6Addr::LOCALHOST) };
        address.set_ip(loopback);
    }
    address
}

impl Server {
    /// Binds `address`, and answers from now on what `source` says.
    ///
    /// # Errors
    /// The address is in use or not one of this machine, or there is no thread to be had.
    pub fn start(address: SocketAddr, source: impl Source) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let source: Arc<dyn Source> = Arc::new(source);
        let is_over = Arc::<AtomicBool>::default();
        let theirs = Arc::clone(&is_over);
        let thread = thread::Builder::new().name("metrics".to_owned());
        let thread = thread.spawn(move || accept(&listener, &source, &theirs))?;
        Ok(Self { address, is_over, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

fn accept(listener: &TcpListener, source: &Arc<dyn Source>, is_over: &AtomicBool) {
    let places = Arc::new(Places::new(CONNECTIONS_MAX));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => Arc::new(stream),
            Err(error) => {
                tracing::debug!(error = %error, "the port for metrics accepts no connection");
                thread::sleep(PAUSE);
                continue;
            }
        };
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        // Without a place it is closed without a word: there is nobody to write one.
        let Some(place) = Places::take(&places, &stream) else { continue };
        let source = Arc::clone(source);
        let serve = move || {
            if let Err(error) = serve(&stream, &place, &*source) {
                tracing::debug!(error = %error, "a client of the port for metrics was not answered");
            }
        };
        // If there is no thread, the connection is closed with what it was moved into.
        let _ = thread::Builder::new().name("metrics-client".to_owned()).spawn(serve);
    }
}

fn serve(mut stream: &TcpStream, place: &Place, source: &dyn Source) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    let response = loop {
        if let Some(response) = respond(&request, place, source) {
            break response;
        }
        stream.set_read_timeout(Some(left(until)?))?;
        let mut piece = [0; 1024];
        match stream.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => request.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    let (mut rest, until) = (&response[..], Instant::now() + PATIENCE);
    while !rest.is_empty() {
        // Who takes a little at a time has no more time than others.
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The time until then, if there is any.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// The response to what has come; `None` if that is no whole request yet.
fn respond(request: &[u8], place: &Place, source: &dyn Source) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Complete(_)) => place.keep(),
        Ok(httparse::Status::Partial) if request.len() <= REQUEST_BYTES_MAX => return None,
        Ok(httparse::Status::Partial) => {
            let text = format!("a request has {REQUEST_BYTES_MAX} bytes at most\n");
            return Some(Page::plain("431 Request Header Fields Too Large", &text).response(true));
        }
        Err(error) => return Some(Page::plain("400 Bad Request", &format!("{error}\n")).response(true)),
    }
    let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
    let has_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => {
            let text = "nothing can be changed here: GET and HEAD are answered\n";
            return Some(Page::plain("405 Method Not Allowed", text).response(true));
        }
    };
    let host = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"));
    // What comes in the target goes before the header.
    let host =
        authority_of(target).or_else(|| host.and_then(|header| std::str::from_utf8(header.value).ok()));
    Some(page(path_of(target), host.unwrap_or_default(), source).response(has_body))
}

/// What stands behind the scheme of a target, if it has one: a proxy may send it so.
fn behind_scheme(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    scheme.eq_ignore_ascii_case("http").then_some(rest)
}

/// The path of a target.
fn path_of(target: &str) -> &str {
    let path =
        behind_scheme(target).map_or(target, |rest| rest.find('/').map_or("/", |place| &rest[place..]));
    path.split('?').next().unwrap_or_default()
}

/// The host of a target that has one.
fn authority_of(target: &str) -> Option<&str> {
    behind_scheme(target).map(|rest| rest.split(['/', '?']).next().unwrap_or_default())
}

const PLAIN: &str = "text/plain; charset=utf-8";
const UNAVAILABLE: &str = "503 Service Unavailable";
const OK: &str = "200 OK";
const MISDIRECTED: &str = "421 Misdirected Request";

const SILENT: &str = "the event loop has not answered within a second\n";
const STARTING: &str = "it starts, and reads back what its disk holds\n";
const NOT_OURS: &str = "this page is answered under an IP address of this machine, localhost, the name of this machine or that of a \
                        node, so that a stranger's page cannot pass for it; /metrics, /livez and /readyz are answered under any\n";

/// An answer.
#[derive(Debug)]
struct Page {
    status: &'static str,
    content_type: &'static str,
    headers: &'static str,
    body: String,
}

impl Page {
    fn plain(status: &'static str, text: &str) -> Self {
        Self { status, content_type: PLAIN, headers: "", body: text.to_owned() }
    }

    /// Something that a browser shows.
    fn for_people(content_type: &'static str, body: String) -> Self {
        Self { status: OK, content_type, headers: HEADERS, body }
    }

    fn response(&self, has_body: bool) -> Vec<u8> {
        let Self { status, content_type, headers, body } = self;
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\n{headers}\r\n"
        );
        let body = if has_body { body } else { "" };
        [head.as_bytes(), body.as_bytes()].concat()
    }
}

/// What stands at a path, for who has come by this host.
fn page(path: &str, host: &str, source: &dyn Source) -> Page {
    match path {
        "/metrics" => {
            answered(source, |told| Page { content_type: CONTENT_TYPE, ..Page::plain(OK, &exposition(told)) })
        }
        "/livez" => match source.ask() {
            Answer::Told(_) => Page::plain(OK, "ok\n"),
            // To end it would not make it faster.
            Answer::Starting => Page::plain(OK, STARTING),
            Answer::Silent => Page::plain(UNAVAILABLE, SILENT),
        },
        "/readyz" | "/healthz" => answered(source, |told| {
            let reasons = not_ready(&told.report);
            let text = reasons.iter().map(|reason| format!("{reason}\n")).collect::<String>();
            if reasons.is_empty() { Page::plain(OK, "ok\n") } else { Page::plain(UNAVAILABLE, &text) }
        }),
        "/status.json" => answered(source, |told| {
            let ServerReport { replica_addresses, .. } = &told.report;
            if !is_ours(host, replica_addresses) {
                return Page::plain(MISDIRECTED, NOT_OURS);
            }
            let members = source.ask_members(replica_addresses, told.place());
            Page::for_people("application/json", snapshot(&told, &members))
        }),
        // The same for everybody, and no secret.
        path => file(path).map_or_else(
            || {
                let text =
                    "there are / (a page for people), /status.json, /metrics, /livez, /readyz and /healthz\n";
                Page::plain("404 Not Found", text)
            },
            |file| Page::for_people(file.content_type, file.text.to_owned()),
        ),
    }
}

/// What is made of what the event loop says, or why it says nothing.
fn answered(source: &dyn Source, page: impl FnOnce(Told) -> Page) -> Page {
    match source.ask() {
        Answer::Told(told) => page(*told),
        Answer::Starting => Page::plain(UNAVAILABLE, STARTING),
        Answer::Silent => Page::plain(UNAVAILABLE, SILENT),
    }
}
