//! A blocking client of one bucket.

use crate::endpoint::{Endpoint, query};
use crate::error::{Problem, S3Error, SettingsError};
use crate::patience::Patience;
use crate::settings::Settings;
use crate::sign::{Signed, authorization, hash, stamp};
use crate::xml::{element, elements};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use ureq::http::{HeaderMap, Request};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Error};

/// Longest error that is read, in bytes: stores need a few hundred.
const ERROR_BYTES_MAX: u64 = 64 << 10;

/// So much of a store's message is shown, in characters.
const MESSAGE_CHARS_MAX: usize = 300;

/// Longest page of a listing, in bytes: a thousand keys of 1024 bytes, each escaped, with what stands around them.
const PAGE_BYTES_MAX: u64 = 16 << 20;

/// Most names of one listing. A backup that is followed for a year with a file each half minute has as many.
const NAMES_MAX: usize = 1_100_000;

/// Most pages of one listing: each has up to a thousand names, and a store may give fewer.
const PAGES_MAX: usize = 20_000;

/// How soon a pause ends when nobody wants the answer any more.
const CANCEL_POLL: Duration = Duration::from_millis(20);

/// What an object is encrypted with at the store, as the header has it.
const ENCRYPTION: &str = "x-amz-server-side-encryption";

/// What stores encrypt with when they are asked to.
pub const ENCRYPTIONS: [&str; 3] = ["AES256", "aws:kms", "aws:kms:dsse"];

/// A part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The length of the whole object.
    pub total: u64,
}

/// What became of an object that was to be new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is there.
    Done,
    /// Another one with this key was there, and still is.
    Exists,
}

/// A client of one bucket. Threads may use it at the same time.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    endpoint: Endpoint,
    bucket: String,
    settings: Settings,
    patience: Patience,
    /// The store has said that it does not know conditions.
    lacks_conditions: AtomicBool,
    is_cancelled: AtomicBool,
}

/// A request.
#[derive(Clone, Copy, Debug)]
struct Ask<'a> {
    method: &'static str,
    key: &'a str,
    query: &'a str,
    /// First and last byte.
    range: Option<(u64, u64)>,
    body: &'a [u8],
    is_conditional: bool,
    /// Longest body of an answer.
    bytes_max: u64,
}

impl<'a> Ask<'a> {
    const fn new(method: &'static str, key: &'a str) -> Self {
        let (query, range, body) = ("", None, &[]);
        Self { method, key, query, range, body, is_conditional: false, bytes_max: ERROR_BYTES_MAX }
    }
}

/// An answer that is no error.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Client {
    /// A client of a bucket. Nothing is asked yet.
    ///
    /// # Errors
    /// [`SettingsError`] says what is wrong with the endpoint, or with the certificates that are to be believed.
    pub fn new(settings: &Settings, bucket: &str, patience: Patience) -> Result<Self, SettingsError> {
        let endpoint = Endpoint::new(settings.endpoint.as_deref(), &settings.region, bucket)?;
        let is_region = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if settings.region.is_empty() || !settings.region.chars().all(is_region) {
            return Err(SettingsError::new(format!("the region {:?} is no name of one", settings.region)));
        }
        if let Some(name) = settings.encryption.as_deref().filter(|name| !ENCRYPTIONS.contains(name)) {
            let known = ENCRYPTIONS.join(", ");
            return Err(SettingsError::new(format!("the encryption {name:?} is none of {known}")));
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("syros/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(patience.connect))
            .timeout_connect(Some(patience.connect))
            .timeout_per_read(Some(patience.answer))
            .timeout_per_write(Some(patience.answer));
        if endpoint.is_loopback() {
            config = config.proxy(None);
        }
        if endpoint.is_tls {
            config = config.tls_config(tls(settings.authorities.as_deref())?);
        }
        Ok(Self {
            agent: config.build().new_agent(),
            endpoint,
            bucket: bucket.to_owned(),
            settings: settings.clone(),
            patience,
            lacks_conditions: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
        })
    }

    /// Ends what other threads wait for: no request is sent again, and none is begun.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
    }

    /// Requests are sent again after [`Self::cancel`].
    pub fn resume(&self) {
        self.is_cancelled.store(false, Ordering::SeqCst);
    }

    /// False if the store has said that it does not know conditions: it then cannot keep two writers apart.
    #[must_use]
    pub fn knows_conditions(&self) -> bool {
        !self.lacks_conditions.load(Ordering::SeqCst)
    }

    /// Whoever has seen that the store does not heed conditions says so here.
    pub fn lacks_conditions(&self) {
        self.lacks_conditions.store(true, Ordering::SeqCst);
    }

    /// Up to `length` bytes of an object from `start` on, and at least one that is there; `None` if there is no such object.
    ///
    /// # Errors
    /// [`S3Error`].
    pub fn get(&self, key: &str, start: u64, length: u64) -> Result<Option<Fetched>, S3Error> {
        let length = length.max(1);
        let range = Some((start, start + length - 1));
        let ask = Ask { range, bytes_max: length, ..Ask::new("GET", key) };
        let fetched = self.repeat(ask, |answer| {
            let whole = answer.body.len() as u64;
            if answer.status != 206 {
                let problem = "the store sends all of the object where a part was asked for";
                return if start == 0 {
                    Ok((answer.body, whole))
                } else {
                    Err(Problem::Answer(problem.to_owned()))
                };
            }
            let total = total_of(&answer.headers).ok_or_else(|| {
                Problem::Answer("the answer does not say how long the object is".to_owned())
            })?;
            let expected = total.saturating_sub(start).min(length);
            if whole != expected {
                let problem = format!("the answer has {whole} bytes, and {expected} were asked for");
                return Err(Problem::Transport { problem, may_pass: true });
            }
            Ok((answer.body, total))
        });
        match fetched {
            Ok((bytes, total)) => Ok(Some(Fetched { bytes, total })),
            // Nothing is behind the end. An object without bytes has only that.
            Err(error) if error.status() == Some(416) => {
                Ok(Some(Fetched { bytes: Vec::new(), total: start }))
            }
            Err(error) if error.status() == Some(404) && matches!(error.code(), "NoSuchKey" | "") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes an object that must be new: all of it or nothing, durably. If the store has no conditions
    /// ([`Self::knows_conditions`]), it is only looked at whether the object is there.
    ///
    /// # Errors
    /// [`S3Error`]. The object may be there then.
    pub fn put_new(&self, key: &str, body: &[u8]) -> Result<Written, S3Error> {
        let mut ask = Ask { body, is_conditional: self.knows_conditions(), ..Ask::new("PUT", key) };
        loop {
            if !ask.is_conditional && self.get(key, 0, 1)?.is_some() {
                return Ok(Written::Exists);
            }
            let mut sent = 0;
            let written = self.repeat_counting(ask, &mut sent, |_| Ok(()));
            match written {
                Ok(()) => return Ok(Written::Done),
                Err(error) if error.status() == Some(501) && ask.is_conditional => {
                    self.lacks_conditions.store(true, Ordering::SeqCst);
                    ask.is_conditional = false;
                }
                // An answer may have been lost that said that it was written.
                Err(error) if error.status() == Some(412) && sent > 1 && self.holds(key, body)? => {
                    return Ok(Written::Done);
                }
                Err(error) if error.status() == Some(412) => return Ok(Written::Exists),
                Err(error) => return Err(error),
            }
        }
    }

    /// The object is just these bytes.
    fn holds(&self, key: &str, bytes: &[u8]) -> Result<bool, S3Error> {
        let found = self.get(key, 0, bytes.len() as u64 + 1)?;
        Ok(found.is_some_and(|found| found.bytes == bytes))
    }

    /// The names of the objects behind a prefix that ends with a slash or is empty. Of what is behind a further slash only
    /// the beginning up to that is listed, once.
    ///
    /// # Errors
    /// [`S3Error`], also if there are more names than any backup has.
    pub fn list(&self, prefix: &str) -> Result<Vec<String>, S3Error> {
        let (mut names, mut token): (Vec<String>, Option<String>) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let mut pairs = vec![("delimiter", "/"), ("list-type", "2"), ("prefix", prefix)];
            pairs.extend(token.as_deref().map(|token| ("continuation-token", token)));
            let query = query(&pairs);
            let ask = Ask { query: &query, bytes_max: PAGE_BYTES_MAX, ..Ask::new("GET", "") };
            let before = token.take();
            token = self.repeat(ask, |answer| {
                let text = String::from_utf8_lossy(&answer.body);
                let page = element(&text, "ListBucketResult").is_some() || text.contains("<ListBucketResult");
                if !page {
                    return Err(Problem::Answer(
                        "the answer is no listing: is the endpoint a store?".to_owned(),
                    ));
                }
                let found = elements(&text, "Contents").filter_map(|inner| element(inner, "Key"));
                let folders = elements(&text, "CommonPrefixes").filter_map(|inner| element(inner, "Prefix"));
                let found =
                    found.chain(folders).filter_map(|key| key.strip_prefix(prefix).map(str::to_owned));
                names.extend(found.filter(|name| !name.is_empty()));
                if names.len() > NAMES_MAX {
                    return Err(Problem::Answer(format!("there are more than {NAMES_MAX} objects")));
                }
                let is_cut = element(&text, "IsTruncated").as_deref() == Some("true");
                let next = is_cut.then(|| element(&text, "NextContinuationToken")).flatten();
                // Else the same page might come for ever.
                if is_cut && (next.is_none() || next == before) {
                    return Err(Problem::Answer("the listing does not say where it goes on".to_owned()));
                }
                Ok(next)
            })?;
            if token.is_none() {
                return Ok(names);
            }
        }
        let problem = Problem::Answer(format!("the listing has more than {PAGES_MAX} pages"));
        Err(S3Error { what: format!("GET s3://{}/?list-type=2", self.bucket), problem, attempts: 1 })
    }

    /// Removes an object, if it is there.
    ///
    /// # Errors
    /// [`S3Error`].
    pub fn remove(&self, key: &str) -> Result<(), S3Error> {
        match self.repeat(Ask::new("DELETE", key), |_| Ok(())) {
            Err(error) if error.status() == Some(404) && error.code() != "NoSuchBucket" => Ok(()),
            removed => removed,
        }
    }

    fn repeat<T>(&self, ask: Ask<'_>, read: impl FnMut(Answer) -> Result<T, Problem>) -> Result<T, S3Error> {
        self.repeat_counting(ask, &mut 0, read)
    }

    /// Sends a request until it is answered, or it is clear that it will not be. `sent` says how often.
    fn repeat_counting<T>(
        &self,
        ask: Ask<'_>,
        sent: &mut u32,
        mut read: impl FnMut(Answer) -> Result<T, Problem>,
    ) -> Result<T, S3Error> {
        loop {
            let problem = if self.is_cancelled.load(Ordering::SeqCst) {
                Problem::Cancelled
            } else {
                *sent += 1;
                match self.send(ask).and_then(&mut read) {
                    Ok(answer) => return Ok(answer),
                    Err(problem) => problem,
                }
            };
            if !problem.may_pass() || *sent >= self.patience.attempts {
                let place = format!("s3://{}/{}", self.bucket, ask.key);
                let place = if ask.query.is_empty() { place } else { format!("{place}?{}", ask.query) };
                return Err(S3Error { what: format!("{} {place}", ask.method), problem, attempts: *sent });
            }
            self.pause(self.patience.pause(*sent));
        }
    }

    fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.is_cancelled.load(Ordering::SeqCst) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(CANCEL_POLL));
        }
    }

    /// Sends a request once.
    fn send(&self, ask: Ask<'_>) -> Result<Answer, Problem> {
        let patience = self.patience.for_bytes(ask.bytes_max + ask.body.len() as u64);
        let request = self.signed(ask).map_err(|error| Problem::Answer(error.to_string()))?;
        let run = |request: Request<&[u8]>| {
            self.agent.run(self.agent.configure_request(request).timeout_global(Some(patience)).build())
        };
        let sent = if ask.method == "PUT" {
            run(request)
        } else {
            let (parts, _) = request.into_parts();
            let bare = Request::from_parts(parts, ());
            self.agent.run(self.agent.configure_request(bare).timeout_global(Some(patience)).build())
        };
        let mut response = sent.map_err(|error| transport(&error, patience))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if (200..300).contains(&status) {
            let read = response.body_mut().with_config().limit(ask.bytes_max).read_to_vec();
            let body = read.map_err(|error| transport(&error, patience))?;
            return Ok(Answer { status, headers, body });
        }
        // What cannot be read says nothing.
        let body = response.body_mut().with_config().limit(ERROR_BYTES_MAX).read_to_vec().unwrap_or_default();
        Err(self.refusal(status, &headers, &String::from_utf8_lossy(&body)))
    }

    fn refusal(&self, status: u16, headers: &HeaderMap, text: &str) -> Problem {
        let clean = |text: String| {
            let text = self.settings.credentials.redacted(&text);
            text.chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .take(MESSAGE_CHARS_MAX)
                .collect::<String>()
        };
        let field = |name: &str| element(text, name).map(clean).unwrap_or_default();
        let region = headers.get("x-amz-bucket-region").and_then(|value| value.to_str().ok());
        let region = region.map(|region| clean(region.to_owned())).or_else(|| Some(field("Region")));
        Problem::Refused {
            status,
            code: field("Code"),
            message: field("Message"),
            region: region.filter(|region| !region.is_empty()),
        }
    }

    fn signed<'a>(&self, ask: Ask<'a>) -> Result<Request<&'a [u8]>, ureq::http::Error> {
        let stamp = stamp(OffsetDateTime::now_utc());
        let (payload_hash, path) = (hash(ask.body), self.endpoint.path(ask.key));
        let range = ask.range.map(|(first, last)| format!("bytes={first}-{last}"));
        let credentials = &self.settings.credentials;
        // In the order of their names.
        let mut headers = vec![("host", &self.endpoint.authority[..])];
        headers.extend(ask.is_conditional.then_some(("if-none-match", "*")));
        headers.extend(range.as_deref().map(|range| ("range", range)));
        headers.push(("x-amz-content-sha256", &payload_hash));
        headers.push(("x-amz-date", &stamp));
        headers.extend(credentials.session_token.as_deref().map(|token| ("x-amz-security-token", token)));
        let encryption = self.settings.encryption.as_deref().filter(|_| ask.method == "PUT");
        headers.extend(encryption.map(|name| (ENCRYPTION, name)));
        headers.sort_unstable();
        let (method, query) = (ask.method, ask.query);
        let signed = Signed { method, path: &path, query, headers: &headers, payload_hash: &payload_hash };
        let authorization = authorization(signed, credentials, &self.settings.region, &stamp);
        let mut request = Request::builder().method(method).uri(self.endpoint.url(&path, query));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.header("authorization", authorization).body(ask.body)
    }
}

/// The length of an object, from `bytes 0-9/443`.
fn total_of(headers: &HeaderMap) -> Option<u64> {
    headers.get("content-range")?.to_str().ok()?.rsplit_once('/')?.1.parse().ok()
}

/// What to make of the failure of a connection.
fn transport(error: &Error, patience: Duration) -> Problem {
    let (problem, may_pass) = match error {
        Error::BodyExceedsLimit(limit) => {
            return Problem::Answer(format!(
                "the answer is longer than {limit} bytes, which no store may send here"
            ));
        }
        Error::Timeout(which) => (
            format!(
                "no answer in time ({which}; the whole request may take {} s)",
                patience.as_secs_f64().ceil()
            ),
            true,
        ),
        // So TLS says that it does not believe a certificate.
        Error::Io(source) if source.kind() == std::io::ErrorKind::InvalidData => (
            format!(
                "{source}: is the authority of the store's certificate in --s3-ca FILE, or known to the system?"
            ),
            false,
        ),
        Error::Rustls(source) => (source.to_string(), false),
        Error::HostNotFound => ("the name of the host is not known: check the endpoint".to_owned(), true),
        Error::Http(_) | Error::BadUri(_) | Error::Tls(_) | Error::TlsRequired => (error.to_string(), false),
        error => (error.to_string(), true),
    };
    Problem::Transport { problem, may_pass }
}

/// Which certificates are believed.
fn tls(authorities: Option<&Path>) -> Result<TlsConfig, SettingsError> {
    let certificates = match authorities {
        Some(path) => {
            syros_tls::certificates_in(path).map_err(|error| SettingsError::new(error.to_string()))?
        }
        None => system_certificates()?,
    };
    let certificates: Vec<Certificate<'static>> =
        certificates.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

fn system_certificates() -> Result<Vec<Vec<u8>>, SettingsError> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let reason = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(SettingsError::new(format!(
            "this system has no certificate authorities{reason}: install the package ca-certificates, or name a file with --s3-ca"
        )));
    }
    Ok(found.certs.iter().map(|certificate| certificate.to_vec()).collect())
}
