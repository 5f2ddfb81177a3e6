//! Processes: a node, and a gateway.

mod ports;
mod process;

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::Arc;

use syros_machine::{MachineKind, StateMachine};
use syros_metrics::Server;
use syros_protocol::agreement::{EngineName, SharedSettings};
use syros_protocol::formation::{Decision, Formation};
use syros_protocol::replica::Config;
use syros_traces::Exporter;
use syros_types::{Configuration, ConfigurationEpoch, Group, Incarnation, Reconfiguration};
use syros_wire::Member;

use crate::clock::Clock;
use crate::config::{EngineKind, FirstStart, FrontConfig, GatewayConfig, NodeConfig};
use crate::descriptors::{self, Demand, Descriptors};
use crate::directory::{DataDirectory, Identity};
use crate::discover::discover;
use crate::disk_engine;
use crate::event_loop::{EndReason, Forming, Listener, REPLICA_LISTENER};
use crate::handshake::{Introduction, OwnMember};
use crate::inquiries::{Inquiries, MetricsSource};
use crate::loading::Loading;
use crate::local_replica::{LocalReplica, LocalReplicaParts};
use crate::machine_memory::machine_memory;
use crate::members::Members;
use crate::memory_engine::MemoryEngineFiles;
use crate::socket::ListenError;
use crate::start_error::{NotWanted, StartError, system};
use crate::stop::Stopper;
use crate::tls::ProcessTls;
use crate::tls_handshakes::Guard;
use crate::traces::{Tracing, start_exporter};
use ports::{log_address, warn_if_exposed, warn_without_secret};
use process::{ClusterSettings, NodeState, Process, ProcessBase, RedisListeners};

/// Log entries that an engine on disk may be given before the ones before them are executed: a fraction of a
/// second's worth, so that one slow lane does not stop the others.
const APPLY_AHEAD: u64 = 65_536;

/// One replica with its Redis front end, or with a state machine of somebody's own, ready to run.
pub struct Node {
    process: Process,
    config: NodeConfig,
    resources: Resources,
    metrics: Option<Server>,
}

/// What a node has as long as its process lives, however often it starts anew in it.
#[derive(Clone)]
struct Resources {
    machine: Option<MachineKind>,
    descriptors: Descriptors,
    tls: ProcessTls,
    inquiries: Arc<Inquiries>,
    /// Exports traces, if there are any.
    exporter: Option<Arc<Exporter>>,
}

/// A Redis front end without a replica, ready to run.
pub struct GatewayNode {
    process: Process,
    metrics: Option<Server>,
    /// Ends after the event loop.
    exporter: Option<Exporter>,
}

/// What the data directory of this node says of it.
fn identity_of(config: &NodeConfig, machine: Option<MachineKind>) -> Result<Identity, StartError> {
    let group = Group::new(config.replicas.len()).map_err(StartError::Group)?;
    let (listed, configured) = (group.size(), config.replica.configuration.size());
    if listed != configured {
        return Err(StartError::GroupMismatch { listed, configured });
    }
    let is_machine = matches!(config.engine.kind, EngineKind::Machine(_));
    if !config.engine.kind.is_built_in() || is_machine != machine.is_some() {
        return Err(StartError::NoSuchEngine(config.engine.kind));
    }
    if config.first_start.is_some_and(FirstStart::asks_for_place) && group.size() == 1 {
        return Err(StartError::NothingToReplace);
    }
    Ok(Identity {
        cluster: config.cluster,
        replica: config.replica.replica,
        group,
        fast_quorum: config.replica.configuration.mode,
        durability: config.replica.durability,
        engine: config.engine.kind,
    })
}

/// What the node will say of itself.
fn own_member(
    config: &Config,
    incarnation: Incarnation,
    engine: EngineName,
) -> Result<OwnMember, StartError> {
    let process =
        getrandom::u64().map_err(|error| system("a random number")(io::Error::other(error.to_string())))?;
    let settings = SharedSettings::of(config, engine);
    Ok(OwnMember {
        replica: config.replica,
        process,
        incarnation,
        group: config.configuration.id.group,
        settings,
    })
}

/// A group goes on in the mode that it was made with, until its leader is asked to change it; what the configuration says
/// decides that of a new one.
fn take_mode(replica: &mut Config, configured: Identity, directory: &DataDirectory) -> Identity {
    let identity = directory.identity();
    if identity.fast_quorum != configured.fast_quorum {
        replica.configuration.mode = identity.fast_quorum;
        tracing::info!(
            node = identity.replica.0,
            made_with = %identity.fast_quorum,
            configured = %configured.fast_quorum,
            "the cluster was made with another fast-quorum than this node is configured with; syros mode tells by which one \
             it goes, and changes it"
        );
    }
    identity
}

/// A group has the size that its nodes have agreed upon last, whatever the configuration lists.
fn tell_of_another_size(listed: Group, identity: &Identity) {
    if listed != identity.group {
        tracing::info!(
            node = identity.replica.0,
            replicas = identity.group.size(),
            listed = listed.size(),
            "the cluster has another size than the list of nodes in this node's configuration; the list only says where nodes \
             are"
        );
    }
}

/// Opens the port for metrics, if there is to be one.
fn start_metrics(
    front: &FrontConfig,
    inquiries: &Arc<Inquiries>,
    tls: &ProcessTls,
) -> Result<Option<Server>, StartError> {
    let Some(address) = front.listen_metrics else { return Ok(None) };
    let source = MetricsSource { inquiries: Arc::clone(inquiries), members: Members::new(tls.links()) };
    let server = Server::start(address, source);
    let server = server.map_err(|source| ListenError { address, purpose: "metrics", source })?;
    Ok(Some(server))
}

/// With what the operations of a process are traced that has this exporter, if it has one.
fn tracing_of(
    exporter: Option<&Exporter>,
    front: &FrontConfig,
    cluster: u64,
    clock: Clock,
) -> Option<Tracing> {
    let (exporter, settings) = (exporter?, front.traces.as_ref()?);
    Some(Tracing::new(exporter, settings, cluster, clock.now()))
}

/// Logs where a process that runs tells its metrics.
fn log_metrics(metrics: Option<&Server>) {
    if let Some(server) = metrics {
        tracing::info!(address = %server.address(), "this process answers HTTP: a dashboard, /metrics, /livez, /readyz");
    }
}

/// The engine as members compare it: what stands behind an engine on disk is a member's own business.
fn engine_name(kind: EngineKind) -> EngineName {
    let name = match kind {
        EngineKind::RocksDb => EngineKind::Disk.to_string(),
        kind => kind.to_string(),
    };
    // Names of state machines are short enough.
    EngineName::new(&name).unwrap_or_else(|| unreachable!("{name} is the name of an engine"))
}

/// What a node has found that waited for its group.
#[derive(Clone, Copy, Debug)]
enum FoundGroup {
    /// It is a member in this configuration.
    Member(Reconfiguration),
    /// It is none in this configuration, and copies what the group holds before it becomes one.
    Learner(Reconfiguration),
}

impl Node {
    /// Opens or creates the data directory, reads the write-ahead log back and opens the ports.
    ///
    /// # Errors
    /// [`StartError`] names what is in the way.
    pub fn start(config: NodeConfig) -> Result<Self, StartError> {
        Self::start_any(config, None)
    }

    /// As [`Node::start`], with a state machine in memory in the place of the store of keys. What it says of operations
    /// takes the place of what `config.replica` says; there is no port for Redis clients. Clients submit operations
    /// with `Client::submit_to` of `syros-client`.
    ///
    /// ```no_run
    /// use syros_machine::StateMachine;
    /// use syros_runtime::{FastQuorum, FirstStart, Node, NodeConfig, ReplicaId};
    ///
    /// fn serve<M: StateMachine>(id: u8, bootstrap: bool) -> Result<(), Box<dyn std::error::Error>> {
    ///     let nodes = ["10.0.0.1:7000", "10.0.0.2:7000", "10.0.0.3:7000"].map(str::to_owned);
    ///     let listen = "0.0.0.0:7000".parse()?;
    ///     let mut config = NodeConfig::new(77, nodes.to_vec(), ReplicaId(id), listen, "/var/lib/mine".into())?;
    ///     config.replica.configuration.mode = FastQuorum::Supermajority;
    ///     config.first_start = bootstrap.then_some(FirstStart::Bootstrap);
    ///     Ok(Node::start_machine::<M>(config)?.run()?)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`StartError`] names what is in the way.
    pub fn start_machine<M: StateMachine>(mut config: NodeConfig) -> Result<Self, StartError> {
        let kind = MachineKind::of::<M>();
        config.replica.describe = kind.describe_function();
        config.replica.overwrites = kind.overwrites_function();
        config.engine.kind = EngineKind::Machine(kind.name());
        Self::start_any(config, Some(kind))
    }

    fn start_any(config: NodeConfig, machine: Option<MachineKind>) -> Result<Self, StartError> {
        let demand = Demand {
            // The group may grow.
            members: Group::SIZE_MAX,
            has_store: config.engine.kind.is_on_disk(),
            redis_clients: machine.is_none().then_some(config.front.connections_max),
            peer_clients: Some(config.front.connections_max),
            unidentified: config.front.unidentified_max,
            handshakes: config.tls.as_ref().map_or(0, |_| config.front.handshakes_max),
        };
        let descriptors = descriptors::claim(demand, "limits.connections").map_err(system("enough files"))?;
        let inquiries = Arc::<Inquiries>::default();
        let tls = ProcessTls::load(config.tls.as_ref(), config.cluster, Some(config.replica.replica));
        let tls = tls.map_err(StartError::Tls)?;
        let metrics = start_metrics(&config.front, &inquiries, &tls)?;
        let instance = || format!("{:016x}/{}", config.cluster, config.replica.replica.0);
        let start = |settings| start_exporter(settings, config.cluster, ("node", instance()));
        let exporter = config.front.traces.as_ref().map(start).transpose();
        let exporter = exporter.map_err(system("a thread"))?.map(Arc::new);
        let resources = Resources { machine, descriptors, tls, inquiries, exporter };
        let process = Self::start_process(config.clone(), resources.clone(), None, None)?;
        log_metrics(metrics.as_ref());
        let config = NodeConfig { first_start: None, ..config };
        Ok(Self { process, config, resources, metrics })
    }

    fn start_process(
        mut config: NodeConfig,
        Resources { machine, descriptors, tls, inquiries, exporter }: Resources,
        stopper: Option<Stopper>,
        found: Option<FoundGroup>,
    ) -> Result<Process, StartError> {
        let identity = identity_of(&config, machine)?;
        let listed = identity.group;
        let mut directory = DataDirectory::open(&config.directory, identity, config.first_start)?;
        let identity = take_mode(&mut config.replica, identity, &directory);
        tell_of_another_size(listed, &identity);
        let group = identity.group;
        let mut base = ProcessBase::new()?;
        let formation =
            if directory.is_new() { Self::form_alone(&mut directory, identity, found)? } else { None };
        // The ports before the log: a node that cannot have them leaves everything as it was.
        let registry = base.poll.registry();
        let redis = match machine {
            None => RedisListeners::open(config.listen_redis, &tls, registry)?,
            Some(_) => RedisListeners::default(),
        };
        let guard = tls.nodes_guard();
        let replicas = Listener::open(config.listen_replicas, "replicas", registry, REPLICA_LISTENER, guard)?;
        let engine = engine_name(config.engine.kind);
        let member = own_member(&config.replica, directory.incarnation(), engine)?;
        if config.secret.is_none() && group.size() > 1 && guard != Some(Guard::Nodes) {
            warn_without_secret(identity.replica.0, replicas.address);
        }
        let introduction =
            Introduction { cluster: identity.cluster, member: Some(member), secret: config.secret.clone() };
        let cluster = ClusterSettings {
            introduction,
            configuration: Configuration::first(group, identity.fast_quorum).after(directory.configuration()),
            durability: config.replica.durability,
            replicas: config.replicas.clone(),
            connects_below: identity.replica.index(),
            descriptors,
            tls,
            tracing: tracing_of(exporter.as_deref(), &config.front, identity.cluster, base.clock),
        };
        if let Some(formation) = formation {
            log_address(&identity, replicas.address, "the other nodes, to form the cluster");
            // Redis clients find the port closed as long as nobody can serve them; that it can be had is known.
            drop(redis);
            let forming = NodeState::Forming(Box::new(Forming::new(formation, directory)));
            let rest = (stopper, inquiries);
            let none = RedisListeners::default();
            return base.into_process(cluster, &config.front, none, Some((replicas, forming)), rest);
        }
        if machine.is_some() {
            log_address(&identity, replicas.address, "the other nodes and Syros clients");
        }
        redis.log(&identity, &config.front);

        let hash_seed = base.prng.next_u64();
        let mut replica = Config { seed: base.prng.next_u64(), ..config.replica.clone() };
        replica.configuration = replica.configuration.after(directory.configuration());
        replica.node = Some(directory.node());
        let on_disk = config.engine.kind.is_on_disk().then(|| {
            replica.engine_is_durable = true;
            replica.apply_ahead = APPLY_AHEAD;
            replica.settings.snapshot_log_bytes =
                usize::try_from(config.engine.memtable_bytes).unwrap_or(usize::MAX);
            disk_engine::DiskEngineSettings::new(&directory, &config.engine, descriptors.tables)
        });
        let waker = Arc::clone(&base.waker);
        let maxmemory = config.maxmemory_of(machine_memory());
        if maxmemory.is_none() && config.engine.kind == EngineKind::Memory {
            tracing::warn!(
                node = identity.replica.0,
                "memory.maxmemory is 0: the data may take more memory than there is, which ends the node"
            );
        }
        let duplicate = |listener: &Option<Listener>| listener.as_ref().map(Listener::duplicate).transpose();
        let listeners = duplicate(&redis.plain).and_then(|plain| Ok([plain, duplicate(&redis.tls)?]));
        let loading = Loading::start(listeners.map_err(system("a socket"))?, base.clock);
        let loading = loading.map_err(system("a thread"))?;
        let local = LocalReplica::start(LocalReplicaParts {
            config: replica,
            cluster: identity.cluster,
            replicas: config.replicas,
            links_tls: cluster.tls.links(),
            directory,
            store: config.store,
            on_disk,
            in_memory: MemoryEngineFiles { hash_seed, machine },
            maxmemory,
            eviction: config.eviction,
            tracing: cluster.tracing.clone(),
            clock: base.clock,
            waker,
        })
        .map_err(|source| StartError::Log { directory: config.directory, source })?;
        let local = if matches!(found, Some(FoundGroup::Learner(_))) {
            NodeState::Learner(Box::new(local), loading)
        } else {
            drop(loading);
            NodeState::Replica(Box::new(local))
        };
        base.into_process(cluster, &config.front, redis, Some((replicas, local)), (stopper, inquiries))
    }

    /// Goes as far in forming the group as can be without the other nodes. Gives back what is left to be done.
    fn form_alone(
        directory: &mut DataDirectory,
        identity: Identity,
        found: Option<FoundGroup>,
    ) -> Result<Option<Formation>, StartError> {
        match found {
            None => {}
            Some(FoundGroup::Member(configuration)) => {
                // It may have been stopped while it learned.
                directory.forget_copy()?;
                directory.form(configuration);
                return Ok(None);
            }
            Some(FoundGroup::Learner(configuration)) => {
                directory.forget_copy()?;
                directory.learn_from(configuration);
                return Ok(None);
            }
        }
        let Identity { group, replica, .. } = identity;
        let formation = Formation::new(group, replica, directory.node(), directory.voted());
        let formation = match directory.place_wanted() {
            Some(FirstStart::Join) => formation.joining(),
            Some(_) => formation.replacing(),
            None => formation,
        };
        let first = |roster| Reconfiguration { epoch: ConfigurationEpoch::FIRST, roster, before: None };
        match formation.decide() {
            // Nobody else has to be asked.
            Decision::Vote(roster) => {
                directory.form(first(roster));
                Ok(None)
            }
            Decision::Act(configuration) => {
                directory.form(configuration);
                Ok(None)
            }
            Decision::Wait(_) | Decision::Refuse(_) | Decision::Learn(_) => Ok(Some(formation)),
        }
    }

    /// Serves until it is told to stop. A node whose disk was full and takes writes again, or holds damage
    /// that others can repair, starts anew from what the disk holds; its connections break.
    ///
    /// # Errors
    /// When the system does not let it wait for events any more, when it cannot start anew, or when it must not run
    /// ([`NotWanted`]).
    pub fn run(self) -> io::Result<()> {
        let Self { mut process, config, resources, metrics } = self;
        let node = config.replica.replica.0;
        loop {
            let mut found = None;
            let Process { event_loop, stopper } = process;
            match event_loop.run()? {
                EndReason::Stopped => {
                    drop(metrics);
                    return Ok(());
                }
                EndReason::DiskReturned => {
                    let directory = config.directory.display();
                    tracing::info!(node, directory = %directory, "the disk of this node takes writes again");
                }
                EndReason::Damaged => {
                    let directory = config.directory.display();
                    tracing::warn!(node, directory = %directory, "this node starts anew, to be repaired");
                }
                EndReason::Formed(configuration) => {
                    let epoch = configuration.epoch.0;
                    tracing::info!(node, epoch, "this node is in the cluster");
                    found = Some(FoundGroup::Member(configuration));
                }
                EndReason::Learns(configuration) => {
                    let (epoch, replicas) = (configuration.epoch.0, configuration.roster.group().size());
                    tracing::info!(
                        node,
                        epoch,
                        replicas,
                        "this node has found the cluster, and copies what it holds"
                    );
                    found = Some(FoundGroup::Learner(configuration));
                }
                EndReason::Refused(problem) => return Err(io::Error::other(NotWanted(problem))),
            }
            let started = Self::start_process(config.clone(), resources.clone(), Some(stopper), found);
            process = started.map_err(io::Error::other)?;
        }
    }

    /// What ends the node from another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.process.stopper.clone()
    }
}

impl GatewayNode {
    /// Asks the replicas what cluster this is, and opens the port.
    ///
    /// # Errors
    /// [`StartError`] names what is in the way.
    pub fn start(mut config: GatewayConfig) -> Result<Self, StartError> {
        let group = Group::new(config.replicas.len()).map_err(StartError::Group)?;
        let demand = Demand {
            members: config.replicas.len(),
            has_store: false,
            redis_clients: Some(config.front.connections_max),
            peer_clients: None,
            unidentified: 0,
            handshakes: config.tls.as_ref().map_or(0, |_| config.front.handshakes_max),
        };
        let descriptors = descriptors::claim(demand, "--connections").map_err(system("enough files"))?;
        let base = ProcessBase::new()?;
        let registry = base.poll.registry();
        let tls = ProcessTls::load(config.tls.as_ref(), config.cluster, None).map_err(StartError::Tls)?;
        let redis = RedisListeners::open(config.listen_redis, &tls, registry)?;
        if let Some(plain) = &redis.plain {
            warn_if_exposed(plain.address, "--bind", &config.front);
        }
        // It lives while it looks for the cluster.
        let inquiries = Arc::<Inquiries>::default();
        let metrics = start_metrics(&config.front, &inquiries, &tls)?;
        let links = tls.links();
        let (cluster, Member { settings, declaration, .. }) =
            discover(&config.replicas, config.cluster, config.connect_timeout, links.as_ref())
                .map_err(StartError::Discover)?;
        let first = Configuration::first(group, settings.fast_quorum);
        let configuration = declaration.configuration().map_or(first, |known| first.after(known));
        // Nobody gives a gateway a name of its own.
        let instance = || format!("gateway-{:016x}", RandomState::new().hash_one("gateway"));
        let start = |settings| start_exporter(settings, cluster, ("gateway", instance()));
        let exporter = config.front.traces.as_ref().map(start).transpose().map_err(system("a thread"))?;
        let addresses = [&redis.plain, &redis.tls].into_iter().flatten().map(|listener| listener.address);
        let addresses: Vec<String> = addresses.map(|address| address.to_string()).collect();
        tracing::info!(
            cluster = %format_args!("{cluster:016x}"),
            replicas = settings.group.size(),
            fast_quorum = %settings.fast_quorum,
            address = addresses.join(", "),
            "this gateway listens for Redis clients"
        );
        // The cluster ends sessions that nobody has used for so long: this process takes a new one before that.
        let idle_max = &mut config.front.client.session_idle_max;
        *idle_max = (*idle_max).min(settings.session_timeout / 2);
        let cluster = ClusterSettings {
            introduction: Introduction { cluster, member: None, secret: None },
            configuration,
            durability: settings.durability,
            connects_below: config.replicas.len(),
            descriptors,
            replicas: config.replicas,
            tls,
            tracing: tracing_of(exporter.as_ref(), &config.front, cluster, base.clock),
        };
        let process = base.into_process(cluster, &config.front, redis, None, (None, inquiries))?;
        log_metrics(metrics.as_ref());
        Ok(Self { process, metrics, exporter })
    }

    /// Serves until it is told to stop.
    ///
    /// # Errors
    /// When the system does not let it wait for events any more.
    pub fn run(self) -> io::Result<()> {
        let Self { process, metrics, exporter } = self;
        let ended = process.event_loop.run();
        drop((metrics, exporter));
        ended.map(drop)
    }

    /// What ends the gateway from another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.process.stopper.clone()
    }
}
