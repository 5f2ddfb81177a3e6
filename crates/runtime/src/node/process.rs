//! The part of a process that nodes and gateways have in common: the event loop, and everything that it is made of.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;

use mio::{Poll, Registry, Waker};
use syros_node::front_end::{FrontEndSettings, RedisFrontEnd, USERS_VALID};
use syros_protocol::client;
use syros_protocol::replica::Durability;
use syros_types::{Configuration, Group, Prng};

use super::ports::{log_address, warn_if_exposed};
use crate::clock::Clock;
use crate::config::FrontConfig;
use crate::descriptors::Descriptors;
use crate::directory::Identity;
use crate::event_loop::{
    EventLoop, EventLoopParts, Forming, Learning, Link, Listener, REDIS_LISTENER, REDIS_TLS_LISTENER, WAKER,
};
use crate::handshake::Introduction;
use crate::info::{ProcessDescription, RedisPorts};
use crate::inquiries::Inquiries;
use crate::loading::Loading;
use crate::local_replica::LocalReplica;
use crate::machine_memory::machine_memory;
use crate::socket::ListenError;
use crate::start_error::{StartError, system};
use crate::stop::Stopper;
use crate::tls::ProcessTls;
use crate::tls_handshakes::Guard;
use crate::traces::{FrontEndTraces, Tracing};

/// A node or a gateway, ready to run.
pub(super) struct Process {
    pub(super) event_loop: EventLoop,
    pub(super) stopper: Stopper,
}

/// Where a process listens for Redis clients.
#[derive(Default)]
pub(super) struct RedisListeners {
    pub(super) plain: Option<Listener>,
    /// For those that speak TLS.
    pub(super) tls: Option<Listener>,
}

impl RedisListeners {
    /// Opens the ports.
    pub(super) fn open(
        plain: Option<SocketAddr>,
        tls: &ProcessTls,
        registry: &Registry,
    ) -> Result<Self, ListenError> {
        let open = |address, purpose, token, guard| Listener::open(address, purpose, registry, token, guard);
        let plain = plain.map(|address| open(address, "Redis clients", REDIS_LISTENER, None));
        let tls = tls.listen_redis();
        let tls = tls
            .map(|address| open(address, "Redis clients with TLS", REDIS_TLS_LISTENER, Some(Guard::Redis)));
        Ok(Self { plain: plain.transpose()?, tls: tls.transpose()? })
    }

    /// Says where a node listens.
    pub(super) fn log(&self, identity: &Identity, front: &FrontConfig) {
        if let Some(plain) = &self.plain {
            log_address(identity, plain.address, "Redis clients");
            warn_if_exposed(plain.address, "listen.redis", front);
        }
        if let Some(tls) = &self.tls {
            log_address(identity, tls.address, "Redis clients with TLS");
        }
    }
}

/// What a process is in its cluster.
pub(super) struct ClusterSettings {
    pub(super) introduction: Introduction,
    pub(super) configuration: Configuration,
    pub(super) durability: Durability,
    pub(super) replicas: Vec<String>,
    /// It connects to the replicas with ids below this.
    pub(super) connects_below: usize,
    pub(super) descriptors: Descriptors,
    pub(super) tls: ProcessTls,
    pub(super) tracing: Option<Tracing>,
}

impl RedisListeners {
    /// Those of a node that learns wait until it is a member: somebody else answers there.
    fn held_by(self, loading: Option<Loading>) -> (Self, Option<Learning>) {
        match loading {
            None => (self, None),
            Some(loading) => (Self::default(), Some(Learning::new(loading, [self.plain, self.tls]))),
        }
    }
}

/// How far a node has come.
pub(super) enum NodeState {
    /// It acts as a replica.
    Replica(Box<LocalReplica>),
    /// Its replica is no member yet. Meanwhile somebody answers Redis clients.
    Learner(Box<LocalReplica>, Loading),
    /// Its group is being formed: it has no replica yet.
    Forming(Box<Forming>),
}

impl NodeState {
    /// The replica, what there is instead, and what answers Redis clients meanwhile, if the replica is no member yet.
    fn into_parts(self) -> (Option<LocalReplica>, Option<Forming>, Option<Loading>) {
        match self {
            Self::Replica(local) => (Some(*local), None, None),
            Self::Learner(local, loading) => (Some(*local), None, Some(loading)),
            Self::Forming(forming) => (None, Some(*forming), None),
        }
    }
}

/// What a process needs of the system before anything else.
pub(super) struct ProcessBase {
    pub(super) poll: Poll,
    pub(super) waker: Arc<Waker>,
    pub(super) clock: Clock,
    pub(super) prng: Prng,
}

impl ProcessBase {
    /// Asks the system for an event queue and its waker.
    pub(super) fn new() -> Result<Self, StartError> {
        let poll = Poll::new().map_err(system("an event queue"))?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(system("a waker"))?;
        // RandomState is seeded by the system; what is drawn here decides jitter, nonces and the places
        // of keys in tables.
        let prng = Prng::new(RandomState::new().hash_one("syros"));
        Ok(Self { poll, waker: Arc::new(waker), clock: Clock::start(), prng })
    }

    /// Puts the process together. `stopper` is that of the process before, if it starts anew.
    pub(super) fn into_process(
        mut self,
        cluster: ClusterSettings,
        front: &FrontConfig,
        redis: RedisListeners,
        node: Option<(Listener, NodeState)>,
        (stopper, inquiries): (Option<Stopper>, Arc<Inquiries>),
    ) -> Result<Process, StartError> {
        let ClusterSettings {
            introduction,
            configuration,
            durability,
            replicas,
            connects_below,
            descriptors,
            tls,
            tracing,
        } = cluster;
        let mut config = client::Config::new(configuration, self.prng.next_u64());
        config.settings = front.client.clone();
        let link = |(index, address): (usize, &String)| {
            let dials = (index < connects_below).then(|| address.clone());
            Link::new(dials, self.prng.next_u64())
        };
        let mut links: Vec<Link> = replicas.iter().enumerate().map(link).collect();
        // The nodes that the group may grow by connect to those that there are, and gateways are told where they are.
        links.resize_with(Group::SIZE_MAX, || Link::new(None, 0));
        let position = introduction.member.as_ref().map(|member| member.replica.0);
        let run_id =
            format!("{:016x}{:016x}{:08x}", self.prng.next_u64(), self.prng.next_u64(), std::process::id());
        let port =
            |listener: &Option<Listener>| listener.as_ref().map_or(0, |listener| listener.address.port());
        let redis_ports = RedisPorts { plain: port(&redis.plain), tls: port(&redis.tls) };
        let (tls_handshakes, links_tls) = (
            tls.start_handshakes(position, &self.waker, descriptors.handshakes)
                .map_err(system("a thread"))?,
            tls.links(),
        );
        let clients_max = Cell::new(descriptors.redis_clients);
        let clients_per_address_max = Cell::new(front.connections_per_address_max);
        let configuration = configuration.as_frames_name_it();
        let description = ProcessDescription {
            run_id,
            redis_ports,
            tls,
            configuration,
            durability,
            replicas,
            clients_max,
            clients_per_address_max,
        };
        let (replica_listener, state) = node.unzip();
        let (local, forming, loading) = state.map_or((None, None, None), NodeState::into_parts);
        config.own_replica = local.as_ref().map(|local| local.me);
        let waker = Arc::clone(&self.waker);
        let stopper = match stopper {
            None => Stopper::new(self.waker),
            Some(stopper) => {
                stopper.wake_instead(self.waker);
                stopper
            }
        };
        let client_memory = front.client_memory_of(machine_memory());
        let settings = FrontEndSettings {
            client_memory,
            quorum_timeout: front.quorum_timeout,
            drain_timeout: front.drain_timeout,
            debug: front.debug,
            users_valid: USERS_VALID,
            is_gateway: replica_listener.is_none(),
        };
        let now = self.clock.now();
        let mut front_end = RedisFrontEnd::new(config, settings, now);
        let traces = tracing.map(|tracing| {
            front_end.show_outcomes();
            let listeners = [&redis.plain, &redis.tls].into_iter().flatten();
            let server = listeners.map(|listener| listener.address).next();
            FrontEndTraces::new(tracing, self.prng.next_u64(), server)
        });
        front_end.require_users(now, front.first_rules.clone(), front.protected);
        let (redis, learning) = redis.held_by(loading);
        let event_loop = EventLoop::new(EventLoopParts {
            front_end,
            poll: self.poll,
            clock: self.clock,
            stop: Arc::clone(&stopper.flag),
            redis_listener: redis.plain,
            redis_tls_listener: redis.tls,
            tls_handshakes,
            links_tls,
            replica_listener,
            links,
            introduction,
            local,
            forming,
            learning,
            description,
            descriptors,
            client_memory,
            output_bytes_max: front.output_bytes_max,
            inquiries,
            waker,
            traces,
        });
        Ok(Process { event_loop, stopper })
    }
}
