//! `syros health`: asks a process whether it lives, or is ready, as the health check of a container does that has no shell and
//! no HTTP client.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::wrong_port::instead_of_http;

/// A process answers within a second and a half, or says that it stands still.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer has at most so many bytes: a status line, and reasons.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Options of `syros health`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros health                          does the process at 127.0.0.1:9121 live?
  syros health --ready 127.0.0.1:9122   can clients be served?

The process needs listen.metrics in its configuration, a gateway --metrics. Exit status 0: yes; 1: no, and it says why.")]
pub(crate) struct Options {
    /// Where the process answers HTTP requests
    #[arg(value_name = "IP:PORT", default_value = "127.0.0.1:9121")]
    address: SocketAddr,
    /// Ask whether clients can be served, and not only whether the process lives
    #[arg(long)]
    ready: bool,
}

/// Asks, and prints what the process answers.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let path = if options.ready { "/readyz" } else { "/livez" };
    let answer = ask(options.address, path).map_err(|error| format!("{}: {error}", options.address))?;
    let (status, text) = read_answer(&answer)
        .ok_or_else(|| format!("{}: {}", options.address, instead_of_http(answer.as_bytes())))?;
    syros_cli::tell!("{}", text.trim_end());
    Ok(if status == 200 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = Vec::new();
    match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer) {
        // A port for something else closes the connection before it has taken all, and what it has said counts.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        read => drop(read?),
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The status and the body of an answer of HTTP.
fn read_answer(answer: &str) -> Option<(u16, &str)> {
    let (head, text) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.split(' ').next()?.parse().ok()?;
    Some((status, text))
}

#[cfg(test)]
mod tests {
    use super::read_answer;

    #[test]
    fn answers_are_read() {
        let answer = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 10\r\n\r\nno leader\n";
        assert_eq!(read_answer(answer), Some((503, "no leader\n")));
        for garbage in ["", "-ERR unknown command\r\n", "HTTP/1.1 x\r\n\r\n", "HTTP/1.1 200 OK\r\n"] {
            assert_eq!(read_answer(garbage), None, "{garbage:?}");
        }
    }
}
