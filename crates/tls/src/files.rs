//! The files with a certificate, its key, and the authorities that are believed.

use core::fmt;
use rustls::RootCertStore;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Largest file that is read, in bytes: a file with all authorities of the web has a fifth of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bits of a file's mode that let everybody read it. (That of a group may: distributions keep keys so.)
const EVERYBODY: u32 = 0o007;

/// How a certificate begins in PEM.
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// Where the certificate, its key and the authorities are, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificate, and those between it and an authority after it.
    pub certificate: PathBuf,
    /// Its private key, which only its owner and group may read.
    pub key: PathBuf,
    /// The certificates of the authorities that are believed.
    pub authorities: PathBuf,
}

/// Why there is no TLS.
#[derive(Debug)]
pub struct TlsError {
    /// The file that it concerns.
    pub file: PathBuf,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.problem)
    }
}

impl std::error::Error for TlsError {}

impl TlsError {
    pub(crate) fn new(file: &Path, problem: impl fmt::Display) -> Self {
        Self { file: file.to_owned(), problem: problem.to_string() }
    }
}

/// What the files have.
pub(crate) struct Content {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) authorities: RootCertStore,
}

/// What shows that a file has been written again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp([(u64, i64, i64, u64); 3]);

impl Files {
    /// What the files look like at present; a file that is not there looks like none.
    pub(crate) fn stamp(&self) -> Stamp {
        let of = |found: &Metadata| (found.ino(), found.mtime(), found.mtime_nsec(), found.len());
        Stamp(
            [&self.certificate, &self.key, &self.authorities]
                .map(|path| fs::metadata(path).map(|found| of(&found)).unwrap_or_default()),
        )
    }

    /// Reads them.
    pub(crate) fn read(&self) -> Result<Content, TlsError> {
        let chain = certificates(&self.certificate)?;
        let authorities_der = certificates(&self.authorities)?;
        let mut authorities = RootCertStore::empty();
        for (place, authority) in authorities_der.into_iter().enumerate() {
            authorities.add(authority).map_err(|error| {
                let problem = format!("block {} of it is no certificate of an authority: {error}", place + 1);
                TlsError::new(&self.authorities, problem)
            })?;
        }
        let text = text(&self.key, true)?;
        let key = PrivateKeyDer::from_pem_slice(&text)
            .map_err(|error| TlsError::new(&self.key, problem_of(&error, &text, "private key")))?;
        Ok(Content { chain, key, authorities })
    }
}

/// The certificates in a file in PEM, at least one, each in DER.
///
/// # Errors
/// [`TlsError`] names the file and says what is wrong with it.
pub fn certificates_in(path: &Path) -> Result<Vec<Vec<u8>>, TlsError> {
    Ok(certificates(path)?.iter().map(|certificate| certificate.to_vec()).collect())
}

/// The certificates in a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = text(path, false)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| TlsError::new(path, problem_of(&error, &text, "certificate")))?;
    if found.is_empty() {
        return Err(TlsError::new(path, problem_of(&PemError::NoItemsFound, &text, "certificate")));
    }
    // One that does not begin on a line of its own would be left out without a word.
    let begun = text.windows(CERTIFICATE.len()).filter(|window| *window == CERTIFICATE).count();
    if begun != found.len() {
        let read = found.len();
        let problem = format!(
            "it has {begun} certificates, and {read} can be read: is a line break missing between two?"
        );
        return Err(TlsError::new(path, problem));
    }
    Ok(found)
}

/// What is wrong with a file in which something is looked for.
fn problem_of(error: &PemError, text: &[u8], wanted: &str) -> String {
    let what = match error {
        PemError::MissingSectionEnd { end_marker } => format!(
            "a block {} has a beginning and no end: the file may have been cut off",
            String::from_utf8_lossy(end_marker)
        ),
        PemError::IllegalSectionStart { line } => {
            format!("a line is damaged that a block should begin with: {}", line.escape_ascii())
        }
        PemError::Base64Decode(problem) => format!("a block of it is damaged, and is no base64: {problem}"),
        PemError::NoItemsFound => return nothing_of(text, wanted),
        other => other.to_string(),
    };
    format!("it has no {wanted} in PEM that can be read: {what}")
}

/// That a file has nothing of what is looked for, and what it has instead.
fn nothing_of(text: &[u8], wanted: &str) -> String {
    const BEGINNING: &str = "-----BEGIN ";
    let lines = String::from_utf8_lossy(text);
    let kinds: Vec<&str> = lines
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(BEGINNING)?.strip_suffix("-----"))
        .filter(|kind| kind.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '))
        .collect();
    let is_der = matches!(text, [0x30, 0x80..=0x84, ..]);
    let instead = match (text.is_empty(), &kinds[..]) {
        (true, _) => "it is empty".to_owned(),
        (_, [first, ..]) if first.contains("ENCRYPTED") => {
            "the one that is there is encrypted, and has to be without a password".to_owned()
        }
        (_, [first, ..]) => format!("what is there begins with {BEGINNING}{first}-----"),
        (_, []) if is_der => "it is in DER; openssl makes PEM of it (-inform der)".to_owned(),
        (_, []) => format!("no line of it begins with {BEGINNING}"),
    };
    format!("it has no {wanted} in PEM: {instead}")
}

fn text(path: &Path, is_secret: bool) -> Result<Vec<u8>, TlsError> {
    let failed = |error: io::Error| TlsError::new(path, error);
    let found = fs::metadata(path).map_err(failed)?;
    if !found.is_file() {
        return Err(failed(io::Error::new(ErrorKind::InvalidInput, "it is not a file")));
    }
    if found.len() > FILE_BYTES_MAX {
        let problem = format!("it has {} bytes, and {FILE_BYTES_MAX} is the most that is read", found.len());
        return Err(TlsError::new(path, problem));
    }
    let mode = found.permissions().mode();
    if is_secret && mode & EVERYBODY != 0 {
        let problem = format!("everybody can read this private key (mode {:o}): chmod o= it", mode & 0o777);
        return Err(TlsError::new(path, problem));
    }
    fs::read(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n";

    #[test]
    fn garbage_is_named_for_what_it_is() {
        let path = std::env::temp_dir().join(format!("syros-garbage-{}.pem", std::process::id()));
        let der = [0x30, 0x82, 1, 2];
        for (bytes, words) in [
            (&b""[..], "it is empty"),
            (b"\xff\xfe garbage", "no line of it begins with -----BEGIN "),
            (&der[..], "it is in DER"),
            (
                b"-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n",
                "begins with -----BEGIN PRIVATE KEY-----",
            ),
            (b"-----BEGIN CERTIFICATE-----\nQUJD\n", "a block CERTIFICATE has a beginning and no end"),
            (b"-----BEGIN CERTIFICATE-----\nQ\xffJD\n-----END CERTIFICATE-----\n", "is no base64"),
        ] {
            fs::write(&path, bytes).unwrap();
            let problem = certificates_in(&path).unwrap_err().to_string();
            assert!(problem.contains("it has no certificate in PEM") && problem.contains(words), "{problem}");
            assert!(problem.contains("syros-garbage"), "{problem}");
        }
        fs::write(&path, WHOLE).unwrap();
        assert_eq!(certificates_in(&path).unwrap(), [b"ABC".to_vec()]);
        fs::remove_file(&path).unwrap();
    }
}
