//! Processes of somebody else's servers.

use super::PeerError;
use crate::cluster::{last_lines, open_log};
use crate::compare::CompareError;
use core::time::Duration;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Instant;

/// How often servers that are waited for are asked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long servers may take to become ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A program that is in PATH, and what Debian calls the package that has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
}

impl Program {
    /// Where it is.
    pub(super) fn find(self) -> Result<PathBuf, PeerError> {
        let path = std::env::var_os("PATH");
        find(self.name, path.as_deref())
            .ok_or(PeerError::NotInstalled { program: self.name, package: self.package })
    }

    /// The first line that it prints about its version.
    pub(super) fn version(self) -> Result<String, PeerError> {
        let output = Command::new(self.find()?).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| PeerError::Start(self.name.to_owned(), error))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().next().unwrap_or_default();
        // What else redis-server says is for its developers.
        Ok(line.split_once(" sha=").map_or(line, |(version, _)| version).to_owned())
    }
}

/// A file of this name in one of these directories.
fn find(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// A server.
#[derive(Debug)]
struct Server {
    name: String,
    process: Child,
    log: PathBuf,
}

/// Processes of one system. They are killed when it is dropped, and where there is setpriv(1) also when this process
/// is killed; the directory stays.
pub(super) struct Servers {
    servers: Vec<Server>,
    is_interrupted: Rc<dyn Fn() -> bool>,
}

impl Servers {
    /// None yet. They are not waited for any longer when `is_interrupted` says so.
    pub(super) fn new(is_interrupted: Rc<dyn Fn() -> bool>) -> Self {
        Self { servers: Vec::new(), is_interrupted }
    }

    /// Starts one more, with its log and a directory of its own, which is made, below this one.
    pub(super) fn start(
        &mut self,
        name: String,
        directory: &Path,
        program: Program,
        arguments: &[String],
    ) -> Result<(), PeerError> {
        let own = directory.join(&name);
        let log = own.with_extension("log");
        std::fs::create_dir_all(&own).map_err(|error| PeerError::File(own.clone(), error))?;
        let file = open_log(&log)?;
        let program = program.find()?;
        // It becomes the server, whose id is then that of its process.
        let mut command = match find("setpriv", std::env::var_os("PATH").as_deref()) {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "KILL"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        let output = file.try_clone().map_err(|error| PeerError::File(log.clone(), error))?;
        // What is meant for others must not configure these.
        for (variable, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ETCD_"))
        {
            if variable != "ETCD_UNSUPPORTED_ARCH" {
                command.env_remove(variable);
            }
        }
        command.args(arguments).current_dir(&own).stdin(Stdio::null()).stdout(output).stderr(file);
        // A signal of the terminal is for this process, which then ends them.
        command.process_group(0);
        let process = command.spawn().map_err(|error| PeerError::Start(name.clone(), error))?;
        self.servers.push(Server { name, process, log });
        Ok(())
    }

    /// Ids of the processes, in order.
    pub(super) fn processes(&self) -> Vec<u32> {
        self.servers.iter().map(|server| server.process.id()).collect()
    }

    /// Fails if a process has ended.
    pub(super) fn check(&mut self) -> Result<(), PeerError> {
        for Server { name, process, log } in &mut self.servers {
            if let Ok(Some(status)) = process.try_wait() {
                let last = last_lines(&std::fs::read_to_string(log).unwrap_or_default());
                return Err(PeerError::Ended { server: name.clone(), status, last });
            }
        }
        Ok(())
    }

    /// Waits until this gives something; what else it says is what is missing.
    pub(super) fn wait_until<T>(
        &mut self,
        mut is_ready: impl FnMut() -> Result<T, String>,
    ) -> Result<T, PeerError> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            self.check()?;
            if (self.is_interrupted)() {
                return Err(CompareError::Interrupted.into());
            }
            match is_ready() {
                Ok(ready) => return Ok(ready),
                Err(problem) if Instant::now() >= deadline => {
                    let log = self.servers.first().map(|server| std::fs::read_to_string(&server.log));
                    let last = last_lines(&log.and_then(Result::ok).unwrap_or_default());
                    return Err(PeerError::NotReady { patience: READY_WITHIN, problem, last });
                }
                Err(_) => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for Server { process, .. } in &mut self.servers {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: Program = Program { name: "sh", package: "dash" };

    #[test]
    fn a_program_that_is_missing_is_named_with_its_package() {
        let missing = Program { name: "no-such-server", package: "no-such-package" };
        let problem = missing.find().unwrap_err().to_string();
        assert!(problem.contains("no-such-server is not in PATH (Debian: apt-get install no-such-package)"));
        assert!(SHELL.find().is_ok() && find("sh", None).is_none());
    }

    #[test]
    fn a_server_that_ends_is_told_with_its_last_words_and_others_are_ended() {
        let directory = std::env::temp_dir().join(format!("syros-peers-{}-servers", std::process::id()));
        let mut servers = Servers::new(Rc::new(|| false));
        let arguments = |script: &str| ["-c", script].map(str::to_owned);
        servers.start("sleeper".to_owned(), &directory, SHELL, &arguments("exec sleep 600")).unwrap();
        let pid = servers.processes()[0];
        assert!(servers.check().is_ok());
        let arguments = arguments("echo no port is left >&2; exit 3");
        servers.start("fake".to_owned(), &directory, SHELL, &arguments).unwrap();
        let problem = servers.wait_until(|| Err::<(), _>("it is a fake".to_owned())).unwrap_err().to_string();
        assert!(problem.contains("fake has ended by itself, exit status: 3"), "{problem}");
        assert!(problem.ends_with("no port is left"), "{problem}");
        drop(servers);
        assert!(!Path::new("/proc").join(pid.to_string()).exists());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
