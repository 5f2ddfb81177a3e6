//! Syros beside etcd and Redis: the same load on each, through its own protocol, in turns.
//!
//! A [`Peer`] is a system of real processes on loopback; [`Peer::run`] puts a [`CompareLoad`] on it, from clients on the
//! calling thread with a connection of their own each, and says what came of it, as protocols are compared
//! ([`crate::compare`]). [`Guarantees`] say what a system promises, and in what it differs from the others whatever is done.

mod error;
mod etcd;
mod redis;
mod report;
mod resp_client;
mod servers;
mod syros;

pub use error::PeerError;
pub use report::Promises;

use crate::clients::Request;
use crate::compare::CompareError;
use crate::compare::{CompareLoad, Contender, INTERRUPT_INTERVAL, Sample, run_load};
use crate::fleet::Fleet;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use servers::Servers;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;
use syros_experiment::{Blend, OperationKind};
use syros_types::{Prng, Protocol, WritePolicy};

/// Clients that write records before the measurement.
const FILLERS: usize = 64;

/// How long a process may take to end after it has closed its connections.
const ENDED_WITHIN: Duration = Duration::from_millis(100);

/// A system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerKind {
    /// etcd.
    Etcd,
    /// One redis-server, in memory.
    Redis,
    /// A redis-server with replicas; nothing waits for them.
    RedisAsync,
    /// A redis-server with replicas; writes wait for a majority (WAIT).
    RedisWait,
    /// One redis-server that fsyncs every write.
    RedisFsync,
    /// Syros, by its own clients.
    Syros,
    /// Syros, by clients of the Redis protocol.
    SyrosResp,
}

impl PeerKind {
    /// All.
    pub const ALL: [Self; 7] = [
        Self::Etcd,
        Self::Redis,
        Self::RedisAsync,
        Self::RedisWait,
        Self::RedisFsync,
        Self::Syros,
        Self::SyrosResp,
    ];

    /// What the command line calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Redis => "redis",
            Self::RedisAsync => "redis-async",
            Self::RedisWait => "redis-wait",
            Self::RedisFsync => "redis-fsync",
            Self::Syros => "syros",
            Self::SyrosResp => "syros-resp",
        }
    }

    /// Whether its servers are this project's.
    #[must_use]
    pub const fn is_syros(self) -> bool {
        matches!(self, Self::Syros | Self::SyrosResp)
    }

    /// Servers of it where so many replicas are asked for.
    #[must_use]
    pub const fn replicas(self, asked: usize) -> usize {
        match self {
            Self::Redis | Self::RedisFsync => 1,
            Self::Etcd | Self::RedisAsync | Self::RedisWait | Self::Syros | Self::SyrosResp => asked,
        }
    }

    /// True if it waits for a disk even where that is not asked for.
    #[must_use]
    pub const fn always_fsyncs(self) -> bool {
        matches!(self, Self::Etcd | Self::RedisFsync)
    }
}

impl fmt::Display for PeerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PeerKind {
    type Err = PeerError;

    fn from_str(text: &str) -> Result<Self, PeerError> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == text);
        kind.ok_or_else(|| PeerError::Unknown(text.to_owned()))
    }
}

/// What all systems are to have alike, as far as they can.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// The program `syros`.
    pub program: PathBuf,
    /// Replicas of those systems that have any.
    pub replicas: usize,
    /// Whether writes are to be on disks when they are acknowledged.
    pub fsync: bool,
    /// Clients of etcd and of Syros's Redis port connect to all nodes in turn, not only to the leader.
    pub spread: bool,
    /// What Syros runs.
    pub protocol: Protocol,
}

/// What a system promises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guarantees {
    /// Program and version; how it keeps data.
    pub engine: &'static str,
    /// When a write is acknowledged, in a word: `fsync`, `replicated` or `memory`.
    pub durability: &'static str,
    /// When a write is acknowledged.
    pub acknowledged: String,
    /// Whether what was acknowledged is there for everybody who asks later, whatever fails.
    pub consistency: &'static str,
    /// In what it differs from the others and cannot be made equal.
    pub not_equal: &'static str,
}

impl PeerOptions {
    /// What a system promises with these options.
    #[must_use]
    pub fn terms(&self, kind: PeerKind) -> Guarantees {
        let majority = self.replicas / 2 + 1;
        let chosen = if self.fsync { "fsync" } else { "replicated" };
        let own = format!(
            "{} of {majority} of {} replicas at least",
            if self.fsync { "disks" } else { "memory" },
            self.replicas
        );
        let linearizable = "linearizable";
        match kind {
            PeerKind::Etcd => Guarantees {
                engine: "etcd (bbolt)",
                durability: "fsync",
                acknowledged: format!("disks of {majority} of {} members", self.replicas),
                consistency: linearizable,
                not_equal: if self.fsync {
                    "gRPC; every version of every key is kept"
                } else {
                    "fsyncs all the same, which 3.4 cannot be told not to; gRPC; every version of every key is kept"
                },
            },
            PeerKind::Redis => Guarantees {
                engine: "redis (memory)",
                durability: "memory",
                acknowledged: "memory of the one server".to_owned(),
                consistency: "one copy: a crash loses everything",
                not_equal: "no replication, no disk",
            },
            PeerKind::RedisAsync => Guarantees {
                engine: "redis (memory)",
                durability: "memory",
                acknowledged: "memory of the one primary".to_owned(),
                consistency: "a failover loses acknowledged writes",
                not_equal: "replicas follow when they can; no failover by itself",
            },
            PeerKind::RedisWait => Guarantees {
                engine: "redis (memory)",
                durability: "replicated",
                acknowledged: format!("memory of {majority} of {} servers (WAIT)", self.replicas),
                consistency: "not linearizable: a failover may lose acknowledged writes, reads do not wait",
                not_equal: "replicas acknowledge what they have received, not what is on disk; no failover by itself",
            },
            PeerKind::RedisFsync => Guarantees {
                engine: "redis (append-only file)",
                durability: "fsync",
                acknowledged: "disk of the one server".to_owned(),
                consistency: "one copy: linearizable as long as its disk and machine work",
                not_equal: "no replication",
            },
            PeerKind::Syros => Guarantees {
                engine: "syros (memory)",
                durability: chosen,
                acknowledged: own,
                consistency: linearizable,
                not_equal: match self.protocol.writes {
                    WritePolicy::Auto => {
                        "clients send a fast update to every replica as long as that is not slower, and pay for it"
                    }
                    WritePolicy::Fast => "clients send a fast update to every replica, and pay for it",
                    WritePolicy::Thrifty => {
                        "clients send a fast update to a fast quorum of replicas, and pay for it"
                    }
                    WritePolicy::Leader => "clients send to the leader only, as etcd's do",
                },
            },
            PeerKind::SyrosResp => Guarantees {
                engine: "syros (memory)",
                durability: chosen,
                acknowledged: own,
                consistency: linearizable,
                not_equal: "the node that a client is connected to is the client of the protocol",
            },
        }
    }

    /// Checks what can be known to be wrong before anything is started: the programs are there, and the load is one for
    /// each of these systems.
    ///
    /// # Errors
    /// [`PeerError`] names it.
    pub fn check(&self, kinds: &[PeerKind], load: &CompareLoad) -> Result<(), PeerError> {
        load.check(self.replicas, false)?;
        check_blend(load.blend)?;
        for kind in kinds {
            match kind {
                PeerKind::Syros | PeerKind::SyrosResp
                    if self.protocol.replicas(self.replicas) != self.replicas =>
                {
                    return Err(PeerError::Protocol { protocol: self.protocol, replicas: self.replicas });
                }
                PeerKind::Etcd if load.value_bytes as u64 > etcd::VALUE_BYTES_MAX => {
                    let (bytes, max) = (load.value_bytes as u64, etcd::VALUE_BYTES_MAX);
                    return Err(PeerError::ValueBytes { kind: *kind, bytes, max });
                }
                PeerKind::Etcd => drop(etcd::PROGRAM.find()?),
                PeerKind::RedisAsync | PeerKind::RedisWait if self.replicas < 3 => {
                    return Err(PeerError::Replicas { kind: *kind, replicas: self.replicas, min: 3 });
                }
                PeerKind::Redis | PeerKind::RedisAsync | PeerKind::RedisWait | PeerKind::RedisFsync => {
                    drop(redis::PROGRAM.find()?);
                }
                PeerKind::Syros | PeerKind::SyrosResp => {}
            }
        }
        Ok(())
    }
}

/// The program of a system and its version, as it says; `None` for Syros, whose commit is known.
fn version(kind: PeerKind) -> Result<Option<String>, PeerError> {
    match kind {
        PeerKind::Etcd => etcd::PROGRAM.version().map(Some),
        PeerKind::Redis | PeerKind::RedisAsync | PeerKind::RedisWait | PeerKind::RedisFsync => {
            redis::PROGRAM.version().map(Some)
        }
        PeerKind::Syros | PeerKind::SyrosResp => Ok(None),
    }
}

/// All systems can be asked for the same only where it is reads and overwrites of what is there.
fn check_blend(blend: Blend) -> Result<(), PeerError> {
    let other = |kind: &OperationKind| {
        !matches!(kind, OperationKind::Read | OperationKind::Update | OperationKind::ReadModifyWrite)
    };
    if OperationKind::ALL.iter().filter(|kind| other(kind)).any(|kind| blend.percent(*kind) > 0) {
        return Err(PeerError::Workload(blend));
    }
    Ok(())
}

/// Servers of a system that are not asked by Syros's own clients. They are ended when it is dropped.
trait System {
    /// Processes of all servers.
    fn processes(&self) -> Vec<u32>;

    /// Fails if a server has ended, or if another one leads than when clients connected last.
    fn check(&mut self) -> Result<(), PeerError>;

    /// So many clients, connected, that write values of this length. They share so many connections if there is a way to
    /// tell whose answer is whose.
    fn fleet(
        &mut self,
        clients: usize,
        connections: usize,
        value_bytes: usize,
        prng: &mut Prng,
    ) -> Result<Box<dyn Fleet>, PeerError>;
}

/// What runs.
enum Running {
    Native(Box<Contender>),
    Other {
        system: Box<dyn System>,
        /// Number of records, and the length of their values, if they have been written.
        filled: Option<(u64, usize)>,
    },
}

/// A system that runs.
pub struct Peer {
    kind: PeerKind,
    running: Running,
}

impl Peer {
    /// Starts it in a directory that holds nothing yet, and waits until it is ready, or until `is_interrupted` says that
    /// nobody wants it any more.
    ///
    /// # Errors
    /// [`PeerError`]: it is not installed, or it does not become ready; what it logged last is shown.
    pub fn start(
        kind: PeerKind,
        directory: &Path,
        options: &PeerOptions,
        is_interrupted: Rc<dyn Fn() -> bool>,
    ) -> Result<Self, PeerError> {
        let PeerOptions { program, replicas, fsync, spread, protocol } = options;
        let replicas = kind.replicas(*replicas);
        let settings = format!("durability = \"{}\"\n", if *fsync { "fsync" } else { "replicated" });
        let servers = Servers::new(is_interrupted);
        let system: Box<dyn System> = match kind {
            PeerKind::Etcd => Box::new(etcd::Etcd::start(directory, replicas, *spread, servers)?),
            PeerKind::Redis | PeerKind::RedisAsync | PeerKind::RedisWait | PeerKind::RedisFsync => {
                Box::new(redis::Redis::start(directory, kind, replicas, servers)?)
            }
            PeerKind::SyrosResp => {
                let program = program.clone();
                let settings = format!("{settings}protocol = \"{}\"\n", protocol.name);
                Box::new(syros::SyrosResp::start(program, directory, replicas, settings, *spread)?)
            }
            PeerKind::Syros => {
                let (program, directory) = (program.clone(), directory.to_path_buf());
                let contender = Contender::start(program, directory, *protocol, replicas, &settings, None)?;
                return Ok(Self { kind, running: Running::Native(Box::new(contender)) });
            }
        };
        Ok(Self { kind, running: Running::Other { system, filled: None } })
    }

    /// Which system it is.
    #[must_use]
    pub const fn kind(&self) -> PeerKind {
        self.kind
    }

    /// Puts the load on it and measures. Calls `is_interrupted` several times a second, and ends early when it says so.
    ///
    /// # Errors
    /// [`PeerError`]: something is wrong with the system, or its leader changed meanwhile. Operations that fail are no
    /// error: they are in the sample.
    pub fn run(
        &mut self,
        load: &CompareLoad,
        is_interrupted: &dyn Fn(u64) -> bool,
    ) -> Result<Sample, PeerError> {
        let (system, filled) = match &mut self.running {
            Running::Native(contender) => return Ok(contender.run(load, is_interrupted)?),
            Running::Other { system, filled } => (system, filled),
        };
        check_blend(load.blend)?;
        // Not the seed of what the clients ask for.
        let mut prng = Prng::new(!load.seed);
        if *filled != Some((load.keys, load.value_bytes)) {
            let fillers = FILLERS.min(usize::try_from(load.keys).unwrap_or(FILLERS));
            let mut fleet = system.fleet(fillers, fillers, load.value_bytes, &mut prng)?;
            fill(fleet.as_mut(), fillers, load.keys, is_interrupted)?;
            *filled = Some((load.keys, load.value_bytes));
        }
        let mut fleet = system.fleet(load.clients, load.sessions(), load.value_bytes, &mut prng)?;
        let measured = run_load(fleet.as_mut(), &system.processes(), load, is_interrupted);
        // What has become of the system explains the rest.
        if !matches!(measured, Err(CompareError::Interrupted)) {
            if measured.is_err() {
                // A process that is killed closes its connections before it has ended.
                std::thread::sleep(ENDED_WITHIN);
            }
            system.check()?;
        }
        Ok(measured?)
    }
}

/// Has clients write all records.
fn fill(
    fleet: &mut dyn Fleet,
    clients: usize,
    keys: u64,
    is_interrupted: &dyn Fn(u64) -> bool,
) -> Result<(), PeerError> {
    let mut idle: Vec<usize> = (0..clients).collect();
    let (mut asked, mut answered, mut failed, mut ended) = (0, 0, 0, Vec::new());
    while answered < keys {
        while asked < keys
            && let Some(client) = idle.pop()
        {
            fleet.ask(client, Request::Set(asked));
            asked += 1;
        }
        if is_interrupted(0) {
            return Err(PeerError::Compare(CompareError::Interrupted));
        }
        fleet.turn(Instant::now() + INTERRUPT_INTERVAL, &mut ended)?;
        for end in ended.drain(..) {
            answered += 1;
            failed += u64::from(!end.is_good);
            idle.push(end.client);
        }
    }
    if failed == 0 {
        return Ok(());
    }
    Err(PeerError::Fill { failed, of: keys, refusal: fleet.last_refusal() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(blend: &str) -> CompareLoad {
        CompareLoad {
            blend: blend.parse().unwrap(),
            choice: "uniform".parse().unwrap(),
            clients: 2,
            connections: None,
            keys: 10,
            value_bytes: 100,
            rate: None,
            warm_up: Duration::ZERO,
            duration: Duration::from_millis(100),
            failed: 0,
            seed: 1,
        }
    }

    pub(super) fn options(replicas: usize, fsync: bool) -> PeerOptions {
        PeerOptions {
            program: PathBuf::from("syros"),
            replicas,
            fsync,
            spread: false,
            protocol: Protocol::default(),
        }
    }

    #[test]
    fn names_are_read_back_and_others_refused() {
        for kind in PeerKind::ALL {
            assert_eq!(kind.to_string().parse::<PeerKind>().unwrap(), kind);
            assert!(!options(3, true).terms(kind).not_equal.is_empty());
        }
        let problem = "consul".parse::<PeerKind>().unwrap_err().to_string();
        assert!(
            problem.contains("there is no system 'consul': etcd, redis, redis-async, redis-wait,"),
            "{problem}"
        );
    }

    #[test]
    fn what_cannot_be_is_named_with_its_limit() {
        let syros = [PeerKind::Syros, PeerKind::SyrosResp];
        for blend in ["a", "b", "c", "f", "nilext", "30%"] {
            assert!(options(3, true).check(&syros, &load(blend)).is_ok());
        }
        for blend in ["d", "e", "load", "record-append", "mix:50/10/40"] {
            let problem = options(3, true).check(&syros, &load(blend)).unwrap_err().to_string();
            assert!(problem.contains(&format!("workload {blend}: ")), "{problem}");
        }
        let long = CompareLoad { value_bytes: 2 << 20, ..load("a") };
        let problem = options(3, true).check(&[PeerKind::Etcd], &long).unwrap_err().to_string();
        assert_eq!(problem, "etcd takes values of 1048576 bytes at most, not of 2097152");
        let alone = PeerOptions { protocol: "unreplicated".parse().unwrap(), ..options(3, true) };
        let problem = alone.check(&syros, &load("a")).unwrap_err().to_string();
        assert_eq!(problem, "--protocol: unreplicated has 1 replica, not 3");
        let problem = options(1, true).check(&[PeerKind::RedisWait], &load("a")).unwrap_err().to_string();
        assert_eq!(problem, "redis-wait takes 3 replicas at least, not 1");
    }

    #[test]
    fn who_fsyncs_whatever_is_asked_for_says_so() {
        for kind in PeerKind::ALL {
            let terms = options(5, false).terms(kind);
            assert_eq!(terms.durability == "fsync", kind.always_fsyncs(), "{kind}");
        }
        assert!(options(5, false).terms(PeerKind::Etcd).not_equal.contains("fsyncs all the same"));
        let protocol = "default+writes=thrifty".parse().unwrap();
        let thrifty = PeerOptions { protocol, ..options(3, true) };
        assert!(thrifty.terms(PeerKind::Syros).not_equal.contains("a fast quorum"));
        assert_eq!(options(5, true).terms(PeerKind::Syros).acknowledged, "disks of 3 of 5 replicas at least");
    }
}
