//! The processes of the nodes: started, watched, restarted, ended.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::layout::{Cluster, Layout};

/// A node that ended by itself is started again after this long; doubling up to the most.
const RESTART_DELAY: Duration = Duration::from_millis(200);
const RESTART_DELAY_MAX: Duration = Duration::from_secs(5);

/// A node that ran this long has its restarts forgiven.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// A node that does not end by itself within this time is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// Longest line of a node's log; the rest is cut. Keeps a broken node from filling our memory.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Lines of a node's log that are kept to be shown if it does not start.
const LINES_KEPT: usize = 5;

/// A node's process.
struct Running {
    process: Child,
    /// The node ends when this closes; the system closes it when we end, however we end.
    stdin: ChildStdin,
    reader: JoinHandle<()>,
    since: Instant,
}

struct Node {
    running: Option<Running>,
    restart_at: Option<Instant>,
    delay: Duration,
    last_lines: Arc<Mutex<Vec<String>>>,
}

/// All nodes of the cluster.
pub(super) struct Children<'a> {
    layout: &'a Layout,
    cluster: Cluster,
    nodes: Vec<Node>,
    shown: ShownLogs,
}

/// Whether nodes' log lines go to standard error too, not only to their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownLogs {
    None,
    /// Each line begins with the number of its node.
    WithNode,
    /// The line is for programs, and names its node itself.
    AsTheyAre,
}

/// A node has ended though nobody asked it to.
pub(super) struct Ended {
    pub(super) node: usize,
    pub(super) pid: u32,
    pub(super) status: ExitStatus,
    /// The last lines it logged.
    pub(super) last_lines: Vec<String>,
}

impl<'a> Children<'a> {
    pub(super) fn new(layout: &'a Layout, cluster: Cluster, shown: ShownLogs) -> Self {
        let node =
            |_| Node { running: None, restart_at: None, delay: RESTART_DELAY, last_lines: Arc::default() };
        let nodes = (0..cluster.group.size()).map(node).collect();
        Self { layout, cluster, nodes, shown }
    }

    /// All nodes have started: from now on a node without its data has lost it.
    pub(super) const fn set_complete(&mut self) {
        self.cluster.is_complete = true;
    }

    /// Starts every node.
    pub(super) fn start_all(&mut self) -> Result<(), String> {
        (0..self.nodes.len()).try_for_each(|node| self.start(node))
    }

    /// Process id of a node, if it runs.
    pub(super) fn pid(&self, node: usize) -> Option<u32> {
        Some(self.nodes.get(node)?.running.as_ref()?.process.id())
    }

    fn start(&mut self, node: usize) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("cannot start node {node}: {error}");
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.arg("server").arg("--config").arg(self.layout.config(node)).arg("--until-stdin-closes");
        if self.layout.needs_bootstrap(&self.cluster, node)? {
            command.arg("--bootstrap");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let name = self.layout.log(node);
        let log = OpenOptions::new().create(true).append(true).open(&name);
        let log = log.map_err(|error| format!("cannot write {}: {error}", name.display()))?;
        let mut process = command.spawn().map_err(failed)?;
        let (Some(stdin), Some(stderr)) = (process.stdin.take(), process.stderr.take()) else {
            return Err(format!("cannot start node {node}: it has no standard streams"));
        };
        let last_lines = Arc::clone(&self.nodes[node].last_lines);
        let prefix = match self.shown {
            ShownLogs::None => None,
            ShownLogs::WithNode => Some(format!("node {node} | ")),
            ShownLogs::AsTheyAre => Some(String::new()),
        };
        let reader = std::thread::spawn(move || copy_lines(stderr, log, prefix.as_deref(), &last_lines));
        let running = Running { process, stdin, reader, since: Instant::now() };
        self.nodes[node].running = Some(running);
        Ok(())
    }

    /// A node that has ended by itself since the last call. It is started again after a while by
    /// [`Children::restart_due`] if `restart` says so.
    pub(super) fn take_ended(&mut self, restart: bool) -> Option<Ended> {
        for (id, node) in self.nodes.iter_mut().enumerate() {
            let Some(running) = &mut node.running else { continue };
            let Ok(Some(status)) = running.process.try_wait() else { continue };
            let pid = running.process.id();
            if running.since.elapsed() > STABLE_AFTER {
                node.delay = RESTART_DELAY;
            }
            if let Some(running) = node.running.take() {
                // Its last words; the pipe is closed, so this does not wait for long.
                let _ = running.reader.join();
            }
            if restart {
                node.restart_at = Some(Instant::now() + node.delay);
                node.delay = (2 * node.delay).min(RESTART_DELAY_MAX);
            }
            let last_lines = node.last_lines.lock().map(|lines| lines.clone()).unwrap_or_default();
            return Some(Ended { node: id, pid, status, last_lines });
        }
        None
    }

    /// Starts the nodes whose restart is due; returns which.
    pub(super) fn restart_due(&mut self) -> Result<Vec<usize>, String> {
        let is_due = |node: &Node| node.restart_at.is_some_and(|at| at <= Instant::now());
        let due: Vec<usize> = (0..self.nodes.len()).filter(|&node| is_due(&self.nodes[node])).collect();
        for &node in &due {
            self.nodes[node].restart_at = None;
            self.start(node)?;
        }
        Ok(due)
    }

    /// Ends all nodes: asks them, waits, and kills those that do not listen.
    pub(super) fn stop(&mut self) {
        let mut stopping: Vec<(Child, JoinHandle<()>)> = Vec::new();
        for node in &mut self.nodes {
            node.restart_at = None;
            if let Some(Running { process, stdin, reader, .. }) = node.running.take() {
                drop(stdin);
                stopping.push((process, reader));
            }
        }
        let deadline = Instant::now() + STOP_PATIENCE;
        for (mut process, reader) in stopping {
            while matches!(process.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            if matches!(process.try_wait(), Ok(None)) {
                let _ = process.kill();
                let _ = process.wait();
            }
            let _ = reader.join();
        }
    }
}

impl Drop for Children<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Copies a node's log to its file, and with a prefix to standard error.
fn copy_lines(stderr: impl Read, mut log: File, prefix: Option<&str>, last_lines: &Mutex<Vec<String>>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match stderr.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.ends_with(b"\n") => {}
            Ok(_) => line.push(b'\n'),
        }
        let _ = log.write_all(&line);
        let text = String::from_utf8_lossy(&line);
        if let Some(prefix) = prefix {
            let _ = std::io::stderr().write_all(format!("{prefix}{text}").as_bytes());
        }
        if let Ok(mut lines) = last_lines.lock() {
            if lines.len() == LINES_KEPT {
                lines.remove(0);
            }
            lines.push(text.trim_end().to_owned());
        }
    }
}
