//! TLS on command lines.

use std::path::{Path, PathBuf};

use clap::Args;
use syros_tls::{Credentials, Files, Purpose};

/// The certificate of whoever uses a command.
#[derive(Args, Clone, Debug, Default)]
pub struct TlsOptions {
    /// Directory with certificate.pem, key.pem and authorities.pem, where the nodes speak TLS (syros certificate makes one)
    #[arg(long, value_name = "DIR")]
    tls: Option<PathBuf>,
}

impl TlsOptions {
    /// The files, if TLS is wanted.
    #[must_use]
    pub fn files(&self) -> Option<Files> {
        self.tls.as_deref().map(files_in)
    }

    /// What the files have, for a program that connects to nodes.
    ///
    /// # Errors
    /// What is wrong with which file.
    pub fn credentials(&self) -> Result<Option<Credentials>, String> {
        self.tls.as_deref().map(credentials_in).transpose()
    }
}

/// The files in a directory with a certificate, as `syros certificate` makes them.
#[must_use]
pub fn files_in(directory: &Path) -> Files {
    Files {
        certificate: directory.join("certificate.pem"),
        key: directory.join("key.pem"),
        authorities: directory.join("authorities.pem"),
    }
}

/// What the files in a directory have, for a program that connects to nodes.
///
/// # Errors
/// What is wrong with which file.
pub fn credentials_in(directory: &Path) -> Result<Credentials, String> {
    Credentials::load(files_in(directory), Purpose::default()).map_err(|error| format!("TLS: {error}"))
}
