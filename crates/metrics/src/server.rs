//! HTTP, as much of it as those who ask for metrics speak.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Answer, CONTENT_TYPE, exposition, not_ready};

/// An event loop that answers later than this does not live: its turns take milliseconds.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Connections at a time. Each has a thread; who asks for metrics comes every few seconds.
pub const CONNECTIONS_MAX: usize = 32;

/// A request has come within this, and an answer is taken within it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest request, with its headers.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// Most headers of a request.
const HEADERS_MAX: usize = 64;

/// After an error of accepting, such as no file left, it is tried again so much later.
const PAUSE: Duration = Duration::from_millis(100);

/// What answers: the event loop, asked from another thread.
type Ask = dyn Fn() -> Answer + Send + Sync;

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
    /// Binds `address`, and answers from now on what `ask` says. It has to return within [`ANSWER_TIMEOUT`].
    ///
    /// # Errors
    /// The address is in use or not one of this machine, or there is no thread to be had.
    pub fn start(address: SocketAddr, ask: impl Fn() -> Answer + Send + Sync + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let ask: Arc<Ask> = Arc::new(ask);
        let is_over = Arc::<AtomicBool>::default();
        let theirs = Arc::clone(&is_over);
        let thread = thread::Builder::new().name("metrics".to_owned());
        let thread = thread.spawn(move || accept(&listener, &ask, &theirs))?;
        Ok(Self { address, is_over, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Counts a connection as long as it lives.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn accept(listener: &TcpListener, ask: &Arc<Ask>, is_over: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(error = %error, "the port for metrics accepts no connection");
                thread::sleep(PAUSE);
                continue;
            }
        };
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            // It is closed without a word: there is nobody to write one.
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (place, ask) = (Place(Arc::clone(&open)), Arc::clone(ask));
        let serve = move || {
            let _place = place;
            if let Err(error) = serve(stream, &*ask) {
                tracing::debug!(error = %error, "a client of the port for metrics was not answered");
            }
        };
        // If there is no thread, the connection is closed with what it was moved into.
        let _ = thread::Builder::new().name("metrics-client".to_owned()).spawn(serve);
    }
}

fn serve(mut stream: TcpStream, ask: &Ask) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    let response = loop {
        if let Some(response) = respond(&request, ask) {
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
fn respond(request: &[u8], ask: &Ask) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if request.len() <= REQUEST_BYTES_MAX => return None,
        Ok(httparse::Status::Partial) => {
            let text = format!("a request has {REQUEST_BYTES_MAX} bytes at most\n");
            return Some(response("431 Request Header Fields Too Large", PLAIN, &text, true));
        }
        Err(error) => return Some(response("400 Bad Request", PLAIN, &format!("{error}\n"), true)),
    }
    let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
    let has_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => {
            let text = "nothing can be changed here: GET and HEAD are answered\n";
            return Some(response("405 Method Not Allowed", PLAIN, text, true));
        }
    };
    let path = path_of(target);
    let (status, content_type, body) = page(path, ask);
    Some(response(status, content_type, &body, has_body))
}

/// The path of a target. A proxy may send it with scheme and host.
fn path_of(target: &str) -> &str {
    let behind_scheme = target.split_once("://").filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http"));
    let path = behind_scheme.map_or(target, |(_, rest)| rest.find('/').map_or("/", |place| &rest[place..]));
    path.split('?').next().unwrap_or_default()
}

const PLAIN: &str = "text/plain; charset=utf-8";
const UNAVAILABLE: &str = "503 Service Unavailable";
const OK: &str = "200 OK";

const SILENT: &str = "the event loop has not answered within a second\n";
const STARTING: &str = "it starts, and reads back what its disk holds\n";

/// The status, the type and the text of what stands at a path.
fn page(path: &str, ask: &Ask) -> (&'static str, &'static str, String) {
    let plain = |status, text: &str| (status, PLAIN, text.to_owned());
    match path {
        "/metrics" => match ask() {
            Answer::Told(told) => (OK, CONTENT_TYPE, exposition(*told)),
            Answer::Starting => plain(UNAVAILABLE, STARTING),
            Answer::Silent => plain(UNAVAILABLE, SILENT),
        },
        "/livez" => match ask() {
            Answer::Told(_) => plain(OK, "ok\n"),
            // To end it would not make it faster.
            Answer::Starting => plain(OK, STARTING),
            Answer::Silent => plain(UNAVAILABLE, SILENT),
        },
        "/readyz" | "/healthz" => match ask() {
            Answer::Told(told) => {
                let reasons = not_ready(&told.report);
                let status = if reasons.is_empty() { OK } else { UNAVAILABLE };
                let text = reasons.iter().map(|reason| format!("{reason}\n")).collect::<String>();
                (status, PLAIN, if text.is_empty() { "ok\n".to_owned() } else { text })
            }
            Answer::Starting => plain(UNAVAILABLE, STARTING),
            Answer::Silent => plain(UNAVAILABLE, SILENT),
        },
        "/" => plain(
            OK,
            "/metrics  everything that is counted, for Prometheus\n\
             /livez    200 unless the process stands still\n\
             /readyz   200 if clients can be served, otherwise 503 with the reasons\n\
             /healthz  the same\n",
        ),
        _ => plain("404 Not Found", "there are /metrics, /livez, /readyz and /healthz\n"),
    }
}

fn response(status: &str, content_type: &str, body: &str, has_body: bool) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\n\r\n"
    );
    let body = if has_body { body } else { "" };
    [head.as_bytes(), body.as_bytes()].concat()
}
