//! A certificate with its key, as the files have them at present.

use crate::configs::{Configs, Purpose};
use crate::files::{Files, Stamp, TlsError};
use rustls::{ClientConnection, Error, ServerConnection};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A process's certificate, its key, and the authorities that it believes.
///
/// Sessions that begin after the files have changed are made from what they have then, and those that there are go on.
#[derive(Debug)]
pub struct Credentials {
    files: Files,
    purpose: Purpose,
    current: Mutex<(Arc<Configs>, Stamp)>,
}

impl Credentials {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`] names the file, and what is wrong with it.
    pub fn load(files: Files, purpose: Purpose) -> Result<Self, TlsError> {
        // If they change in between, they are read once more than they need to be.
        let stamp = files.stamp();
        let configs = Configs::load(&files, purpose)?;
        Ok(Self { files, purpose, current: Mutex::new((Arc::new(configs), stamp)) })
    }

    /// Reads the files again if they have changed. True if they had, and what they have counts from now on.
    ///
    /// # Errors
    /// [`TlsError`]: what was read before goes on to count. The same state of the files is told of once.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let stamp = self.files.stamp();
        if self.lock().1 == stamp {
            return Ok(false);
        }
        self.lock().1 = stamp;
        let configs = Configs::load(&self.files, self.purpose)?;
        self.lock().0 = Arc::new(configs);
        Ok(true)
    }

    /// The session of a connection that a Redis client has made.
    ///
    /// # Errors
    /// None is expected.
    pub fn accept_redis(&self) -> Result<ServerConnection, Error> {
        self.configs().accept_redis()
    }

    /// The session of a connection to the nodes' port: the other end shows a certificate of one of the authorities.
    ///
    /// # Errors
    /// None is expected.
    pub fn accept_node(&self) -> Result<ServerConnection, Error> {
        self.configs().accept_node()
    }

    /// The session of a connection to a node: it shows that it is one.
    ///
    /// # Errors
    /// None is expected.
    pub fn connect(&self) -> Result<ClientConnection, Error> {
        self.configs().connect()
    }

    /// When the certificate is no longer valid, in seconds since 1970.
    #[must_use]
    pub fn expires(&self) -> i64 {
        self.configs().expires
    }

    fn configs(&self) -> Arc<Configs> {
        Arc::clone(&self.lock().0)
    }

    fn lock(&self) -> MutexGuard<'_, (Arc<Configs>, Stamp)> {
        // Nothing panics while it holds the lock.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
