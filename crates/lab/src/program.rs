//! The program `syros`, whose servers benchmarks start: the one beside this program, or another.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;

/// Which program the servers run.
#[derive(Args, Debug)]
pub(crate) struct Binary {
    /// What the servers run, for example an older build [default: the program syros beside this one]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// A program that says that it is `syros`.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The commit that it was built from, or "unknown".
    pub(crate) commit: String,
}

impl Binary {
    /// Where the program must be.
    ///
    /// # Errors
    /// The system does not tell where this program is.
    pub(crate) fn path(&self) -> Result<PathBuf, String> {
        if let Some(path) = &self.binary {
            return Ok(path.clone());
        }
        let this = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        Ok(this.with_file_name("syros"))
    }

    /// Finds the program, and asks it which commit it is from. Says so if that is another one than this program's: the
    /// clients of a measurement are in this program.
    ///
    /// # Errors
    /// There is none, or it is another one.
    pub(crate) fn find(&self) -> Result<Program, String> {
        let path = self.path()?;
        let path = path.canonicalize().map_err(|error| {
            let name = path.display();
            match &self.binary {
                Some(_) => format!("--binary: {name}: {error}"),
                None => format!(
                    "{name}: {error}; build the servers with: cargo build --release -p syros, or name them with --binary"
                ),
            }
        })?;
        let name = path.display();
        let output = Command::new(&path).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
        let output = output.map_err(|error| format!("cannot run {name}: {error}"))?;
        let commit = commit_of(&String::from_utf8_lossy(&output.stdout))
            .ok_or_else(|| format!("{name} is not syros: --version does not say so"))?;
        if commit != syros_cli::COMMIT {
            eprintln!("syros-lab: {name} is of commit {commit}, this program of {}", syros_cli::COMMIT);
        }
        Ok(Program { path, commit })
    }
}

/// The commit in what `syros --version` prints; those that came before this program say none.
fn commit_of(version: &str) -> Option<String> {
    let rest = version.strip_prefix("syros ")?;
    let commit = rest.split_once("(commit ").and_then(|(_, rest)| rest.split_once(')'));
    Some(commit.map_or("unknown", |(commit, _)| commit).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_another_program_is_named() {
        let binary = |path: &str| Binary { binary: Some(PathBuf::from(path)) };
        let problem = binary("/no/such/syros").find().unwrap_err();
        assert!(problem.starts_with("--binary: /no/such/syros: "), "{problem}");
        let problem = binary("/proc/self/exe").find().unwrap_err();
        assert!(problem.contains("is not syros"), "{problem}");
        // Nothing is beside a test.
        let beside = Binary { binary: None };
        let problem = beside.find().unwrap_err();
        let path = beside.path().unwrap();
        assert!(problem.contains(&path.display().to_string()) && problem.contains("-p syros"), "{problem}");
    }

    #[test]
    fn versions_name_commits() {
        assert_eq!(commit_of(&format!("syros {}\n", syros_cli::VERSION)).as_deref(), Some(syros_cli::COMMIT));
        assert_eq!(commit_of("syros 0.1.0\n").as_deref(), Some("unknown"));
        assert_eq!(commit_of("redis-server 7.0\n"), None);
    }
}
