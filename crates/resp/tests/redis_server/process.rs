//! A redis-server that a test has started, for the tests of all crates that compare something with Redis.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What the log of a server says, in all versions, once it takes connections.
const READY: &str = "eady to accept connections";

/// A Redis server, which ends with the test.
pub(crate) struct RedisProcess {
    process: Child,
    directory: PathBuf,
}

impl Drop for RedisProcess {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to be done.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl RedisProcess {
    /// Starts a server with these arguments, beside those that have it write nothing. No other test that may run at the same
    /// time has the same `name`. `None`, with a notice, where Redis is not installed.
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Option<Self> {
        // A port that was free a moment ago may have gone to the server of another test, and nobody would notice.
        let directory = std::env::temp_dir().join(format!("syros-redis-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the server");
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .args(arguments)
            .arg("--unixsocket")
            .arg(directory.join("redis.sock"))
            .current_dir(&directory)
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut process) = process else {
            eprintln!("skipped: redis-server is not installed");
            let _ = std::fs::remove_dir_all(&directory);
            return None;
        };
        let log = process.stdout.take().expect("its output is piped");
        let server = Self { process, directory };
        // Nobody reads the log from then on. Redis does not mind.
        let is_ready = BufReader::new(log).lines().map_while(Result::ok).any(|line| line.contains(READY));
        assert!(is_ready, "redis-server ended before it accepted connections");
        Some(server)
    }

    /// A connection to the server.
    pub(crate) fn connect(&self) -> std::io::Result<UnixStream> {
        UnixStream::connect(self.directory.join("redis.sock"))
    }
}
