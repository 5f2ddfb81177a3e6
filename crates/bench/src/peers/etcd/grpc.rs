//! Calls of gRPC over HTTP/2: one request, one response.

use super::messages::Malformed;
use bytes::{Buf, Bytes};
use core::fmt;
use core::str::FromStr;
use h2::client::SendRequest;
use http::{HeaderMap, Request, Uri};
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Before each message: whether it is compressed, and its length in four bytes, the highest first.
const PREFIX_BYTES: usize = 5;

/// What a call can fail with.
#[derive(Debug)]
pub(super) enum CallError {
    /// There is no connection.
    Connect(std::io::Error),
    /// The connection failed.
    Connection(h2::Error),
    /// The server refused, with this status and its reason.
    Status(u32, String),
    /// What it answered is no gRPC, or another message.
    Malformed,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "cannot connect: {error}"),
            Self::Connection(error) => write!(f, "connection: {error}"),
            Self::Status(status, reason) => write!(f, "gRPC status {status}: {reason}"),
            Self::Malformed => f.write_str("the answer is not as gRPC and etcd have it"),
        }
    }
}

impl From<h2::Error> for CallError {
    fn from(error: h2::Error) -> Self {
        Self::Connection(error)
    }
}

impl From<Malformed> for CallError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// A method at a server. Cloning it is cheap.
#[derive(Clone, Debug)]
pub(super) struct Method(Uri);

impl Method {
    /// By its path, as `/etcdserverpb.KV/Put`.
    pub(super) fn new(server: SocketAddr, path: &str) -> Self {
        let uri = Uri::from_str(&format!("http://{server}{path}"));
        Self(uri.expect("an address and a constant path are a URI"))
    }
}

/// A connection of its own to a server, whose other half is a task of this runtime.
pub(super) async fn connect(server: SocketAddr) -> Result<SendRequest<Bytes>, CallError> {
    let stream = TcpStream::connect(server).await.map_err(CallError::Connect)?;
    stream.set_nodelay(true).map_err(CallError::Connect)?;
    let (sender, connection) = h2::client::handshake(stream).await?;
    // Errors come to those that wait for answers.
    tokio::spawn(async { drop(connection.await) });
    Ok(sender)
}

/// A message with its prefix: what is sent. `write` appends the message.
pub(super) fn framed(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut bytes = vec![0; PREFIX_BYTES];
    write(&mut bytes);
    let length = u32::try_from(bytes.len() - PREFIX_BYTES).expect("messages are shorter than their limit");
    bytes[1..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    bytes.into()
}

/// Calls a method; `body` is [`framed`]. The message that it returns.
pub(super) async fn call(
    sender: SendRequest<Bytes>,
    method: &Method,
    body: Bytes,
) -> Result<Bytes, CallError> {
    let mut request = Request::post(method.0.clone()).body(()).map_err(|_| CallError::Malformed)?;
    let value = http::HeaderValue::from_static;
    request.headers_mut().insert(http::header::CONTENT_TYPE, value("application/grpc"));
    request.headers_mut().insert(http::header::TE, value("trailers"));
    let mut sender = sender.ready().await?;
    let (response, mut out) = sender.send_request(request, false)?;
    out.send_data(body, true)?;
    let response = response.await?;
    if response.status() != http::StatusCode::OK {
        return Err(CallError::Status(response.status().as_u16().into(), "HTTP".to_owned()));
    }
    // An error may come without any message, in what else would be only the headers.
    if response.headers().contains_key("grpc-status") {
        check(response.headers())?;
    }
    let mut stream = response.into_body();
    let mut message = Bytes::new();
    while let Some(part) = stream.data().await {
        let part = part?;
        stream.flow_control().release_capacity(part.len())?;
        // Nearly always it comes in one part.
        message = if message.is_empty() { part } else { [message, part].concat().into() };
    }
    check(&stream.trailers().await?.ok_or(CallError::Malformed)?)?;
    unframed(message)
}

/// What the server says of its success.
fn check(headers: &HeaderMap) -> Result<(), CallError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status").and_then(|status| status.parse().ok()) {
        Some(0) => Ok(()),
        Some(status) => Err(CallError::Status(status, text("grpc-message").unwrap_or_default().to_owned())),
        None => Err(CallError::Malformed),
    }
}

/// The one message of an answer, which is not compressed, as nobody said that it may be.
fn unframed(mut bytes: Bytes) -> Result<Bytes, CallError> {
    if bytes.len() < PREFIX_BYTES || bytes.get_u8() != 0 {
        return Err(CallError::Malformed);
    }
    let length = bytes.get_u32();
    if bytes.len() as u64 == u64::from(length) { Ok(bytes) } else { Err(CallError::Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_length_before_it() {
        assert_eq!(framed(|out| out.extend(b"abc"))[..], *b"\0\0\0\0\x03abc");
        assert_eq!(framed(|_| ())[..], *b"\0\0\0\0\0");
        assert_eq!(unframed(Bytes::from_static(b"\0\0\0\0\x03abc")).unwrap()[..], *b"abc");
        for wrong in [&b"\x01\0\0\0\x03abc"[..], b"\0\0\0\0\x04abc", b"\0\0\0\0\x02abc", b"\0\0\0", b""] {
            assert!(unframed(Bytes::copy_from_slice(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_status_that_is_not_zero_is_an_error_with_its_reason() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| {
                (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
            });
            check(&pairs.collect())
        };
        assert!(headers(&[("grpc-status", "0")]).is_ok());
        let refused = headers(&[("grpc-status", "14"), ("grpc-message", "no leader")]).unwrap_err();
        assert_eq!(refused.to_string(), "gRPC status 14: no leader");
        assert!(matches!(headers(&[]), Err(CallError::Malformed)));
    }
}
