//! What the process tests share: clusters of real processes on loopback, and a small Redis client.
//! Everything that waits has a deadline, and every process is ended by its own id.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub(crate) mod nodes;
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use syros_tls::{BlockingStream, Credentials};

pub(crate) use support::*;

/// The program under test.
pub(crate) fn syros() -> Command {
    Command::new(env!("CARGO_BIN_EXE_syros"))
}

/// The engine under test: `SYROS_TEST_ENGINE`, or the one in memory.
pub(crate) fn engine() -> String {
    std::env::var("SYROS_TEST_ENGINE").unwrap_or_else(|_| "memory".to_owned())
}

/// A cluster run by `syros dev`.
pub(crate) struct Dev {
    pub(crate) process: Child,
    pub(crate) port: u16,
    pub(crate) nodes: Vec<DevNode>,
    lines: BufReader<std::process::ChildStdout>,
}

#[derive(Clone, Debug)]
pub(crate) struct DevNode {
    pub(crate) redis: u16,
    pub(crate) replica: u16,
    pub(crate) pid: i32,
    pub(crate) leads: bool,
}

impl Dev {
    /// Starts it and waits until it says that it is ready.
    pub(crate) fn start(dir: &Path, port: u16, options: &[&str]) -> Self {
        let mut command = syros();
        command.arg("dev").arg("--quiet").arg("--dir").arg(dir).arg("--port").arg(port.to_string());
        let is_new = !dir.join("dev.toml").exists() || options.contains(&"--fresh");
        if is_new && !options.contains(&"--engine") {
            command.arg("--engine").arg(engine());
        }
        let mut process = command.args(options).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut dev = Self { process, port, nodes: Vec::new(), lines };
        loop {
            let mut line = String::new();
            assert!(dev.lines.read_line(&mut line).unwrap() > 0, "syros dev ended before it was ready");
            if line.starts_with("Ctrl-C") {
                return dev;
            }
            if let Some(node) = parse_node(&line) {
                dev.nodes.push(node);
            }
        }
    }

    /// The node that led when the cluster was ready.
    pub(crate) fn leader(&self) -> &DevNode {
        self.nodes.iter().find(|node| node.leads).expect("a node leads")
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(mut self) -> ExitStatus {
        kill(self.process.id().try_into().unwrap(), Signal::TERM);
        wait_for_end(&mut self.process)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // Its nodes end with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `  node 0  redis 127.0.0.1:6379  replica 127.0.0.1:6479  pid 17  leader`
fn parse_node(line: &str) -> Option<DevNode> {
    let mut words = line.split_whitespace();
    if words.next() != Some("node") {
        return None;
    }
    let words: Vec<&str> = words.collect();
    let port = |word: &str| word.rsplit_once(':').unwrap().1.parse().unwrap();
    let leads = words.get(7) == Some(&"leader");
    Some(DevNode { redis: port(words[2]), replica: port(words[4]), pid: words[6].parse().unwrap(), leads })
}

/// A blocking Redis client.
pub(crate) struct Redis {
    stream: BufReader<BlockingStream>,
}

impl Redis {
    pub(crate) fn connect(port: u16) -> Self {
        Self::try_connect(port).unwrap()
    }

    pub(crate) fn try_connect(port: u16) -> std::io::Result<Self> {
        Self::connect_to((Ipv4Addr::LOCALHOST, port).into(), PATIENCE)
    }

    /// Waits for no more than `patience`, for the connection and for every reply.
    pub(crate) fn connect_to(address: SocketAddr, patience: Duration) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        Ok(Self { stream: BufReader::new(BlockingStream::new(stream, None)?) })
    }

    /// By TLS, to a node.
    pub(crate) fn connect_by_tls(port: u16, credentials: &Credentials) -> std::io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(BlockingStream::new(stream, Some(credentials))?) })
    }

    /// One command, and its reply: `+OK`, `-ERR ..`, `:7`, the text of a bulk string, or `nil`.
    pub(crate) fn ask(&mut self, words: &[&str]) -> String {
        self.try_ask(words).unwrap()
    }

    pub(crate) fn try_ask(&mut self, words: &[&str]) -> std::io::Result<String> {
        self.send(words)?;
        self.reply()
    }

    /// One command; [`Redis::reply`] reads its reply.
    pub(crate) fn send(&mut self, words: &[&str]) -> std::io::Result<()> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.stream.get_mut().write_all(request.as_bytes())
    }

    pub(crate) fn reply(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        match line.strip_prefix('$') {
            Some("-1") => Ok("nil".to_owned()),
            Some(length) => {
                let mut bytes = vec![0; length.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            None => Ok(line.to_owned()),
        }
    }
}
