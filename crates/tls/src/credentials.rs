//! A certificate with its key, as the files have them at present.

use crate::configs::{Configs, Purpose, Whom};
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
    current: Mutex<Current>,
}

/// What was read last.
#[derive(Debug)]
struct Current {
    configs: Arc<Configs>,
    stamp: Stamp,
    /// Why the files could not be used when they were last looked at.
    problem: Option<String>,
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
        let current = Current { configs: Arc::new(configs), stamp, problem: None };
        Ok(Self { files, purpose, current: Mutex::new(current) })
    }

    /// Reads the files again if they have changed, or could not be used before. True if what they have counts from now on.
    ///
    /// # Errors
    /// [`TlsError`]: what was read before goes on to count. The same problem is told of once.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let stamp = self.files.stamp();
        {
            let current = self.lock();
            if current.stamp == stamp && current.problem.is_none() {
                return Ok(false);
            }
        }
        let loaded = Configs::load(&self.files, self.purpose);
        let mut current = self.lock();
        match loaded {
            Ok(configs) => {
                *current = Current { configs: Arc::new(configs), stamp, problem: None };
                Ok(true)
            }
            // What it has to do with may not be seen in the files: too many may be open, or the day may not have come.
            Err(error) => {
                let problem = error.to_string();
                if current.problem.replace(problem.clone()).is_some_and(|before| before == problem) {
                    Ok(false)
                } else {
                    Err(error)
                }
            }
        }
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
        self.configs().connect(Whom::Nodes)
    }

    /// The session of a connection to where a node or a gateway listens for Redis clients: it shows that it belongs to the
    /// cluster.
    ///
    /// # Errors
    /// None is expected.
    pub fn connect_to_front_end(&self) -> Result<ClientConnection, Error> {
        self.configs().connect(Whom::FrontEnds)
    }

    /// When the certificate is no longer valid, in seconds since 1970.
    #[must_use]
    pub fn expires(&self) -> i64 {
        self.configs().expires
    }

    fn configs(&self) -> Arc<Configs> {
        Arc::clone(&self.lock().configs)
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        // Nothing panics while it holds the lock.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
