//! What tests of programs share, whatever program it is: directories, ports, processes. Everything that waits has a
//! deadline, and every process is ended by its own id.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of its own, deleted at the end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("syros-test-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The first of 150 ports, of which those for 7 nodes are free now. Below the range that the system
/// gives to outgoing connections.
pub(crate) fn free_ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let pid = u16::try_from(std::process::id() % 1000).unwrap();
        let place = NEXT.fetch_add(1, Ordering::Relaxed);
        let first = 10_000 + (pid * 7 + place) % 140 * 150;
        let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if (first..first + 7).chain(first + 100..first + 107).all(is_free) {
            return first;
        }
    }
}

/// Waits until `ready` gives something.
pub(crate) fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} did not happen within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the end of a process.
pub(crate) fn wait_for_end(process: &mut Child) -> ExitStatus {
    wait_for("the end of a process", || process.try_wait().unwrap())
}

/// Runs a command that should end soon.
pub(crate) fn run(command: &mut Command) -> Output {
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // What these commands print fits into a pipe.
    wait_for_end(&mut process);
    process.wait_with_output().unwrap()
}

/// Both streams of a command's output, for messages and searches.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

pub(crate) fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// True as long as a process with this id runs.
pub(crate) fn is_running(pid: i32) -> bool {
    // A zombie has ended; its status waits for its parent.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z')))
}

/// Copies a directory with all that is in it.
pub(crate) fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, target) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy_directory(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}
