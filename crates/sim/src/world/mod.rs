//! The simulated world: every process, the network between them, the disks under them, and the one
//! queue of what happens next.

mod clients;
mod copying;
mod delivery;
mod disk_operations;
mod disks;
mod dispatch;
mod engines;
mod hostile_clients;
mod lifecycle;
mod messages;
mod nemesis;
mod redis;
mod replacements;
mod sizes;
mod tracking;
mod turns;
mod users;
mod waiting;

use crate::adapter;
use crate::client::{ClientEffect, ClientProcess};
use crate::clock::VirtualTime;
use crate::history::{History, OperationIndex};
use crate::invariants::Invariants;
use crate::journal::{Disk, Sizes};
use crate::network::{Network, NodeIndex};
use crate::process::{Effect, ReplicaProcess};
use crate::scheduler::Scheduler;
use crate::swarm::{CollectionSettings, Swarm};
use crate::tally::Tally;
use crate::trace::Trace;
use crate::workload::{Watching, Workload};
use copying::Copying;
use core::time::Duration;
use disks::Membership;
use hostile_clients::BrokenClient;
use messages::Conversation;
use nemesis::Fault;
use redis::SocketEvent;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use syros_experiment::Cost;
use syros_node::DiskState;
use syros_protocol::agreement::SharedSettings;
use syros_protocol::message::{Body, Message};
use syros_protocol::record::Ticket;
use syros_protocol::replica::{self, PlantedBug};
use syros_types::{Configuration, ConfigurationEpoch, Group, NodeId, OpNumber, Prng, ReplicaId, Roster};
use tracking::Tracking;
use turns::Turns;
use users::Actors;
use waiting::Waiting;

/// Things that happen.
#[derive(Debug)]
pub(crate) enum SimEvent {
    /// A message arrives.
    Arrival { from: NodeIndex, to: NodeIndex, in_flight: InFlight },
    /// A replica that takes time for what it does takes what has arrived.
    BeginTurn { replica: usize, life: u64 },
    /// It has taken it.
    EndTurn { replica: usize, life: u64, core: Option<usize> },
    /// A process looks at the time and at what has arrived.
    Wake { node: NodeIndex, life: u64 },
    /// A disk has finished a sync.
    Synced { replica: usize, life: u64, log: u64, ticket: Ticket },
    /// A replica with an engine in memory executes what it was to.
    Execute { replica: usize, life: u64 },
    /// A replica does the next thing there is to do with its snapshots.
    StepSnapshots { replica: usize, life: u64 },
    /// A replica's log is read for somebody who copies it.
    StepEntries { replica: usize, life: u64 },
    /// Threads of an engine on disk do the next things they have to do.
    StepEngine { replica: usize, life: u64 },
    /// The flush of a store of an engine on disk ends.
    Flushed { replica: usize, life: u64, store: u64 },
    /// A client tries to connect to a replica.
    Connect { slot: usize, life: u64, replica: usize },
    /// A connection is found to be broken.
    Disconnect { slot: usize, life: u64, replica: usize, address: u64 },
    /// A client asks for its next operation.
    Issue { slot: usize, life: u64 },
    /// Something breaks; `again` and again, as time passes.
    Strike { fault: Option<Fault>, again: bool },
    /// A replica is started again with its new settings.
    Reconfigure { replica: usize },
    /// One direction between two processes is cut.
    Cut { from: NodeIndex, to: NodeIndex },
    /// Cut links are mended.
    Mend,
    /// A crashed replica starts again.
    Restart { replica: usize, life: u64 },
    /// A replica with a new disk looks who is there.
    Greet { replica: usize, life: u64 },
    /// Another node is started at a place that two nodes have been started at.
    Exchange { replica: usize, newcomer: NodeId },
    /// Somebody replaces a process whose disk failed.
    Replace { replica: usize, life: u64 },
    /// A new client takes the place of one that died.
    Respawn { slot: usize, life: u64 },
    /// Something happens on the connection of a Redis client.
    Socket { slot: usize, life: u64, address: u64, event: SocketEvent },
    /// A process with a Redis front end is told to end.
    Terminate { slot: usize, life: u64 },
    /// Two front ends connect.
    PeersConnect { ends: (usize, usize), lives: (u64, u64) },
    /// The connection of two front ends, that of this number, is found to be broken.
    PeersPart { ends: (usize, usize), link: u64 },
    /// A message from one front end to another arrives.
    PeerMessage { ends: (usize, usize), link: u64, bytes: Rc<[u8]> },
    /// A client of a front end publishes or subscribes.
    Talk { slot: usize, life: u64 },
    /// A client of a front end asks for a command that waits.
    Wait { slot: usize, life: u64, place: usize },
    /// A client of a front end that keeps copies reads something.
    Track { slot: usize, life: u64, place: usize },
    /// A client of a front end that is a user does something.
    Act { slot: usize, life: u64, place: usize },
    /// Somebody copies entries of the log.
    CopyEntries,
}

/// A message on the network.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    /// Address of the client's end, if there is a client at one end.
    address: u64,
    /// What the sending replica had executed: nobody is told but the judge.
    executed: OpNumber,
    /// Which of its lives the sending replica was in; for the judge, too.
    life: u64,
    /// The nodes that send and are to receive it, if both are replicas.
    nodes: Option<(NodeId, NodeId)>,
    bytes: Rc<[u8]>,
}

/// What a replica's data directory knows of the leases that it has promised.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PromisedLeases {
    /// The longest that has not been waited out, and the latest.
    longest: Duration,
    latest: Duration,
    /// When the process started that waits it out.
    since: VirtualTime,
}

impl PromisedLeases {
    /// A process starts that promises leases of this length. The longest that it may have promised before.
    fn begin(&mut self, lease: Duration, now: VirtualTime) -> Duration {
        *self = Self { longest: self.longest.max(lease), latest: lease, since: now };
        self.longest
    }

    /// The process ends.
    fn end(&mut self, now: VirtualTime) {
        if now >= self.since + self.longest.as_nanos() as u64 {
            self.longest = self.latest;
        }
    }
}

/// The place of a replica in the world, which outlives its processes.
#[derive(Debug)]
pub(crate) struct ReplicaSlot {
    /// The disk.
    pub(crate) disk: Disk,
    /// The process, while there is one.
    pub(crate) process: Option<ReplicaProcess>,
    /// Counts processes; what was meant for an earlier one is void.
    pub(crate) life: u64,
    /// The process does nothing before this.
    pub(crate) paused_until: VirtualTime,
    /// What takes it time.
    turns: Turns,
    /// How much longer syncs take, and until when.
    pub(crate) slow_disk: (u64, VirtualTime),
    /// The disk is nearly full until then.
    pub(crate) disk_full_until: VirtualTime,
    /// The leases it has promised.
    pub(crate) promised: PromisedLeases,
    /// It has been started since all were to have a shorter lease.
    pub(crate) is_reconfigured: bool,
    /// How far the machine's wall clock is ahead.
    pub(crate) wall_offset: i64,
    /// What the disk does.
    pub(crate) disk_state: DiskState,
    /// The disk is to be replaced by an empty one before the next start.
    pub(crate) lost_disk: bool,
    /// It is dead until the next round of permanent faults.
    pub(crate) stays_dead: bool,
    /// The group has no member here at present.
    pub(crate) is_absent: bool,
    /// Which disks it knows.
    pub(crate) membership: Membership,
    /// It has been started with a new disk.
    pub(crate) is_greeting: bool,
    /// What it says of its settings when it connects.
    pub(crate) settings: Option<SharedSettings>,
}

/// A connection of a client to a replica.
#[derive(Clone, Copy, Debug)]
struct Connection {
    slot: usize,
    life: u64,
    /// Life of the replica that took it.
    replica_life: u64,
}

/// The place of a client in the world.
#[derive(Debug)]
pub(crate) struct ClientSlot {
    pub(crate) process: Option<ClientProcess>,
    pub(crate) life: u64,
    pub(crate) wall_offset: i64,
}

/// Independent sources of randomness, so that changing one setting leaves the others' draws alone.
#[derive(Debug)]
pub(crate) struct Dice {
    pub(crate) nemesis: Prng,
    pub(crate) disk: Prng,
    pub(crate) clocks: Prng,
    pub(crate) clients: Prng,
    pub(crate) service: Prng,
    pub(crate) snapshots: Prng,
    pub(crate) rot: Prng,
    pub(crate) engine: Prng,
    pub(crate) permanent: Prng,
    pub(crate) formation: Prng,
    pub(crate) replacements: Prng,
    pub(crate) sizes: Prng,
    pub(crate) holds: Prng,
    /// Of faults when views are noted.
    pub(crate) view: Prng,
    /// Of Redis clients.
    pub(crate) redis: Prng,
    /// Of what they ask for as one.
    pub(crate) asked: Prng,
}

/// What stands in for the real world.
#[derive(Debug)]
pub struct World {
    pub(crate) swarm: Swarm,
    /// What the group can bear: the size that it has, while it changes the smaller one.
    pub(crate) group: Group,
    /// That with which it began.
    pub(crate) first_group: Group,
    /// No configuration of an earlier epoch tells whether what was to make the group smaller last has happened.
    shrinks_after: u64,
    /// Nodes that have asked for a place which there was not going to be: none of them is to be a member.
    mistaken: BTreeSet<NodeId>,
    /// Configurations that members act in.
    configurations: Vec<(ConfigurationEpoch, Roster)>,
    /// What takes replicas time.
    pub(crate) cost: Cost,
    /// Until when each of the cores that replicas share is at work.
    pub(crate) cores: Vec<VirtualTime>,
    pub(crate) planted: Option<PlantedBug>,
    pub(crate) scheduler: Scheduler<SimEvent>,
    pub(crate) network: Network,
    pub(crate) replicas: Vec<ReplicaSlot>,
    pub(crate) clients: Vec<ClientSlot>,
    clients_max: usize,
    /// The connection that each address was given to.
    addresses: Vec<Connection>,
    pub(crate) workload: Workload,
    pub(crate) left_to_issue: u64,
    pub(crate) history: History,
    pub(crate) invariants: Invariants,
    pub(crate) trace: Trace,
    pub(crate) dice: Dice,
    pub(crate) tally: Tally,
    /// Nothing breaks any more.
    pub(crate) is_healed: bool,
    /// Since when.
    pub(crate) healed_at: VirtualTime,
    /// Until when goes on what had begun before that: what slow disks and links hold back, and promises of replicas'
    /// earlier lives.
    pub(crate) lingers_until: VirtualTime,
    /// Operations that had been asked for when too many replicas lost their disks, if that has happened.
    pub(crate) ruined_after: Option<usize>,
    /// Messages sent by kind, if anybody counts them.
    counts: Option<BTreeMap<&'static str, u64>>,
    /// While a client handles the result of a read: what the replica had executed when it read.
    read_at: Option<OpNumber>,
    /// While a client handles a member's answer: which replica gave it, in which of its lives.
    answered_by: Option<(usize, u64)>,
    /// The last answers of members, and what each has seen: what it says itself is what had been executed, and told to
    /// the core, when it was asked for.
    seen: VecDeque<(Body, OpNumber)>,
    effects: Vec<Effect>,
    client_effects: Vec<ClientEffect>,
    /// Where clients stand that watch keys, by the operation that they wait for.
    watching: BTreeMap<OperationIndex, Watching>,
    /// Happenings in a row without time passing.
    standstill: u64,
    /// What strangers were told: which one, by whom, and what.
    overheard: Vec<(u32, usize, Message)>,
    broken_client: BrokenClient,
    conversation: Conversation,
    pub(crate) waiting: Waiting,
    tracking: Tracking,
    actors: Actors,
    copying: Copying,
    /// Scripts that clients have run.
    scripts: u64,
    /// So many may go on until they have no fuel: it takes long.
    exhausting: u64,
    /// A Redis client got something that is no answer to what it asked for.
    pub(crate) misanswered: Option<String>,
}

/// Clients that a world has room for unless it is made for more.
const CLIENTS: usize = 16;

/// More events than this without time passing are an endless loop.
const STANDSTILL_MAX: u64 = 100_000;

impl World {
    /// A world as `swarm` describes it, before anything has happened. All replicas run.
    #[must_use]
    pub fn new(swarm: Swarm, planted: Option<PlantedBug>, verbose: bool) -> Self {
        Self::with_room(swarm, planted, verbose, CLIENTS)
    }

    /// As [`World::new`], with room for so many clients.
    pub(crate) fn with_room(
        mut swarm: Swarm,
        planted: Option<PlantedBug>,
        verbose: bool,
        clients_max: usize,
    ) -> Self {
        adapter::plant(planted);
        let first = swarm.sizes.map_or(swarm.replicas, |sizes| sizes.first);
        let group = Group::new(first).expect("the swarm draws sizes that exist");
        // Groups may have been given another size since the world was drawn.
        let wrong = swarm.clocks.wrong.map(|wrong| wrong.min(group.faults()));
        swarm.clocks.wrong = wrong.filter(|wrong| *wrong > 0);
        let mut prng = Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0002);
        let network = Network::new(swarm.replicas + clients_max, swarm.network.clone(), prng.fork());
        let workload = Workload::new(swarm.workload.clone(), prng.fork());
        let mut dice = Dice {
            nemesis: prng.fork(),
            disk: prng.fork(),
            clocks: prng.fork(),
            clients: prng.fork(),
            service: prng.fork(),
            snapshots: prng.fork(),
            rot: prng.fork(),
            engine: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0005),
            permanent: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0008),
            formation: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0011),
            replacements: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0051),
            sizes: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0056),
            holds: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_005f),
            view: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0020),
            redis: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0031),
            asked: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0046),
        };
        let skew = swarm.clocks.skew_micros;
        let replicas = (0..swarm.replicas)
            .map(|replica| ReplicaSlot {
                disk: Disk::new(Sizes::of(&swarm.disk)),
                process: None,
                life: 0,
                paused_until: 0,
                turns: Turns::default(),
                slow_disk: (0, 0),
                disk_full_until: 0,
                promised: PromisedLeases::default(),
                is_reconfigured: false,
                wall_offset: offset(&mut dice.clocks, skew),
                disk_state: DiskState::Works,
                lost_disk: false,
                stays_dead: false,
                is_absent: !group.has(ReplicaId(replica as u8)),
                membership: Membership::formed(group, ReplicaId(replica as u8)),
                is_greeting: false,
                settings: None,
            })
            .collect();
        let mut world = Self {
            group,
            first_group: group,
            shrinks_after: 0,
            mistaken: BTreeSet::new(),
            configurations: Vec::new(),
            cost: Cost::NONE,
            cores: Vec::new(),
            planted,
            scheduler: Scheduler::default(),
            network,
            replicas,
            clients: Vec::new(),
            clients_max,
            addresses: Vec::new(),
            workload,
            left_to_issue: swarm.workload.operations,
            history: History::default(),
            invariants: Invariants::new(swarm.replicas),
            trace: Trace::new(verbose),
            dice,
            tally: Tally::default(),
            is_healed: false,
            healed_at: 0,
            lingers_until: 0,
            ruined_after: None,
            counts: None,
            read_at: None,
            answered_by: None,
            seen: VecDeque::new(),
            effects: Vec::new(),
            client_effects: Vec::new(),
            watching: BTreeMap::new(),
            standstill: 0,
            overheard: Vec::new(),
            broken_client: BrokenClient::default(),
            misanswered: None,
            conversation: Conversation::new(swarm.seed),
            waiting: Waiting::new(&swarm),
            tracking: Tracking::new(&swarm),
            actors: Actors::new(&swarm),
            copying: Copying::new(swarm.seed),
            scripts: 0,
            exhausting: u64::from(swarm.seed.is_multiple_of(8)),
            swarm,
        };
        world.keep_what_the_judge_needs();
        match world.swarm.formation.unformed {
            Some(late) => world.begin_unformed(late),
            None => (0..world.swarm.replicas).for_each(|replica| world.start_replica(replica)),
        }
        world
    }

    /// Has the entries that are executed, and the answers to them, kept for the judge where it needs them.
    fn keep_what_the_judge_needs(&mut self) {
        let has_sets =
            |settings: CollectionSettings| settings.weights[crate::workload::collections::SETS] > 0;
        let takes_any = self.swarm.workload.collections.is_some_and(has_sets);
        let looks = self.swarm.front_ends.is_some_and(|world| world.waiters + world.keepers > 0);
        let evicts = self.swarm.eviction.policy.order().is_some();
        // Of a script that nobody hears of, only its answer says whether memory was short for it; of a transaction, whether what it
        // watched had changed.
        let undone = self.swarm.maxmemory.is_some() || self.swarm.workload.watches.is_some();
        if takes_any || looks || evicts || undone {
            self.invariants.keep_answers();
        }
        if evicts || self.swarm.workload.stale_percent > 0 || self.user_world().is_some() {
            self.invariants.keep_log();
        }
    }

    /// True time.
    #[must_use]
    pub const fn now(&self) -> VirtualTime {
        self.scheduler.now()
    }

    /// Counts messages by kind from now on.
    pub fn count_messages(&mut self) {
        self.counts = Some(BTreeMap::new());
    }

    /// Messages sent by kind since [`World::count_messages`].
    #[must_use]
    pub fn message_counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.clone().unwrap_or_default()
    }

    /// What clients asked for and were told.
    #[must_use]
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// The replica process, if it runs.
    #[must_use]
    pub fn replica(&self, replica: usize) -> Option<&ReplicaProcess> {
        self.replicas[replica].process.as_ref()
    }

    /// The leader of the newest view that has one.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        let running = self.replicas.iter().enumerate();
        let leaders = running.filter_map(|(index, slot)| {
            let core = slot.process.as_ref()?.core();
            core.is_leader().then(|| (core.view(), index))
        });
        leaders.max().map(|(_, index)| index)
    }

    /// The active members of the view that a replica takes part in; nobody, if it does not run.
    #[must_use]
    pub fn active_members(&self, replica: usize) -> Vec<usize> {
        let process = self.replicas[replica].process.as_ref();
        process
            .map_or(Vec::new(), |process| process.core().rule().active.iter().map(ReplicaId::index).collect())
    }

    /// Lets time pass until an operation has ended.
    ///
    /// # Errors
    /// In words, if none ends until then, or an invariant breaks.
    pub(crate) fn run_until_one_ends(&mut self, until: VirtualTime) -> Result<(), String> {
        let open = self.history.open();
        while self.history.open() == open {
            if !self.step(until) {
                return Err(format!("operations do not end: {}", self.statuses()));
            }
            if let Some(violation) = self.violation() {
                return Err(violation);
            }
        }
        Ok(())
    }

    /// Lets one thing happen, if it happens no later than `until`. False if nothing does.
    pub fn step(&mut self, until: VirtualTime) -> bool {
        let before = self.now();
        let Some(event) = self.scheduler.take(until) else { return false };
        self.standstill = if self.now() == before { self.standstill + 1 } else { 0 };
        assert!(self.standstill < STANDSTILL_MAX, "time stands still");
        match event {
            SimEvent::Arrival { from, to, in_flight } => self.arrive(from, to, &in_flight),
            SimEvent::BeginTurn { replica, life } => self.begin_turn(replica, life),
            SimEvent::EndTurn { replica, life, core } => self.end_turn(replica, life, core),
            SimEvent::Wake { node, life } => self.wake(node, life),
            SimEvent::Synced { replica, life, log, ticket } => self.synced(replica, (life, log), ticket),
            SimEvent::Execute { replica, life } => self.execute(replica, life),
            SimEvent::StepEntries { replica, life } => self.step_entries(replica, life),
            SimEvent::StepSnapshots { replica, life } => self.step_snapshots(replica, life),
            SimEvent::StepEngine { replica, life } => self.step_engine(replica, life),
            SimEvent::Flushed { replica, life, store } => self.flushed(replica, life, store),
            SimEvent::Connect { slot, life, replica } => self.connect(slot, life, replica),
            SimEvent::Disconnect { slot, life, replica, address } => {
                self.disconnect(slot, life, replica, address);
            }
            SimEvent::Issue { slot, life } => self.issue(slot, life),
            SimEvent::Strike { fault, again } => self.strike(fault, again),
            SimEvent::Cut { from, to } => {
                if !self.is_healed {
                    self.network.set_cut(from, to, true);
                }
            }
            SimEvent::Mend => self.network.heal(),
            SimEvent::Reconfigure { replica } => self.reconfigure(replica),
            SimEvent::Restart { replica, life } => {
                if self.replicas[replica].life == life {
                    self.start_replica(replica);
                }
            }
            SimEvent::Greet { replica, life } => self.greet(replica, life),
            SimEvent::Exchange { replica, newcomer } => self.exchange(replica, newcomer),
            SimEvent::Replace { replica, life } => {
                if self.replicas[replica].life == life && !self.is_healed {
                    self.disk_returns(replica);
                }
            }
            SimEvent::Socket { slot, life, address, event } => self.socket_event(slot, life, address, event),
            SimEvent::Terminate { slot, life } => self.terminate(slot, life),
            SimEvent::PeersConnect { ends, lives } => self.connect_peers(ends, lives),
            SimEvent::PeersPart { ends, link } => self.part_peers(ends, link),
            SimEvent::PeerMessage { ends, link, bytes } => self.peer_message(ends, link, &bytes),
            SimEvent::Talk { slot, life } => self.talk(slot, life),
            SimEvent::Wait { slot, life, place } => self.wait(slot, life, place),
            SimEvent::Track { slot, life, place } => self.track(slot, life, place),
            SimEvent::Act { slot, life, place } => self.act(slot, life, place),
            SimEvent::CopyEntries => self.copy_entries(),
            SimEvent::Respawn { slot, life } => {
                if self.clients[slot].life == life {
                    self.start_client(slot);
                }
            }
        }
        true
    }

    /// Lets everything happen up to `until`, or until an invariant breaks.
    pub fn run_until(&mut self, until: VirtualTime) {
        while self.invariants.broken().is_none() && self.step(until) {}
    }
    fn replica_config(&mut self, replica: usize) -> replica::Config {
        let now = self.now();
        let membership = &self.replicas[replica].membership;
        let first = Configuration::first(self.first_group, self.swarm.fast_quorum);
        let mut config = replica::Config::new(
            first.after(membership.configuration),
            ReplicaId(replica as u8),
            adapter::describe,
            syros_commands::overwrites,
        );
        config.node = Some(membership.node());
        config.durability = self.swarm.durability;
        config.seed = self.dice.clocks.next_u64();
        let protocol = &self.swarm.protocol;
        let settings = &mut config.settings;
        *settings = protocol.replica.clone();
        for duration in [
            &mut settings.heartbeat,
            &mut settings.lease,
            &mut settings.suspect_after,
            &mut settings.view_change_timeout,
            &mut settings.slow_disk_after,
            &mut settings.resend,
            &mut settings.registration_interval,
        ] {
            *duration /= protocol.speed;
        }
        settings.lengthen_timeouts(protocol.patience);
        let odd = self.swarm.odd_lease.filter(|_| replica == 0);
        let before = self.swarm.lease_change.filter(|_| !self.replicas[replica].is_reconfigured);
        if let Some(times) = odd.or(before.map(|change| change.times)) {
            settings.lease *= times;
            settings.suspect_after *= times;
        }
        if replica >= protocol.trimming {
            settings.log_keep_bytes = usize::MAX;
        }
        let slot = &mut self.replicas[replica];
        config.promised_before = slot.promised.begin(config.settings.lease, now);
        // By a clock that may be a little slow.
        let promise = config.promised_before.as_nanos() as u64;
        self.lingers_until = self.lingers_until.max(now + promise + promise / 64);
        if let Some(engine) = &self.swarm.disk_engine {
            config.engine_is_durable = true;
            config.apply_ahead = engine.apply_ahead;
        }
        config.planted = self.planted;
        config
    }

    /// Whether something is wrong already.
    #[must_use]
    pub fn violation(&self) -> Option<String> {
        self.invariants.broken().map(ToString::to_string).or_else(|| self.misanswered.clone())
    }
}

/// A number between `-most` and `most`.
fn offset(prng: &mut Prng, most: u64) -> i64 {
    prng.below(2 * most + 1) as i64 - most as i64
}
