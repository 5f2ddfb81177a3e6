//! The simulated world: every process, the network between them, the disks under them, and the one
//! queue of what happens next.

mod clients;
mod disks;
mod engines;
mod hostile_clients;
mod turns;

use crate::adapter;
use crate::client::{ClientEffect, ClientProcess};
use crate::clock::{Clock, VirtualTime};
use crate::history::History;
use crate::invariants::Invariants;
use crate::journal::{Disk, DiskFault, DiskTrouble, Sizes};
use crate::nemesis::Fault;
use crate::network::{Fate, Network, NodeIndex};
use crate::process::{Effect, ProcessContext, ReplicaProcess};
use crate::scheduler::Scheduler;
use crate::swarm::{MILLI, Swarm};
use crate::tally::{Occurrence, Tally};
use crate::trace::Trace;
use crate::workload::Workload;
use core::time::Duration;
use disks::Membership;
use engines::Opened;
use hostile_clients::BrokenClient;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use syros_experiment::Cost;
use syros_node::data::boot;
use syros_node::snapshots::SnapshotSizes;
use syros_protocol::agreement::SharedSettings;
use syros_protocol::client;
use syros_protocol::history::ChangeHistory;
use syros_protocol::message::{Body, Message, Peer, RoleName};
use syros_protocol::record::Ticket;
use syros_protocol::replica::{self, Boot, Durability, PlantedBug};
use syros_types::{Group, OpNumber, Prng, ReplicaId};
use turns::{Departure, Turns};

/// Things that happen.
#[derive(Debug)]
pub(crate) enum SimEvent {
    /// A message arrives.
    Arrival { from: NodeIndex, to: NodeIndex, in_flight: InFlight },
    /// A replica that takes time for what it does takes what has arrived.
    BeginTurn { replica: usize, life: u64 },
    /// It has taken it.
    EndTurn { replica: usize, life: u64 },
    /// A process looks at the time and at what has arrived.
    Wake { node: NodeIndex, life: u64 },
    /// A disk has finished a sync.
    Synced { replica: usize, life: u64, ticket: Ticket },
    /// A replica with an engine in memory executes what it was to.
    Execute { replica: usize, life: u64 },
    /// A replica does the next thing there is to do with its snapshots.
    StepSnapshots { replica: usize, life: u64 },
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
    /// Somebody replaces a process whose disk failed.
    Replace { replica: usize, life: u64 },
    /// A new client takes the place of one that died.
    Respawn { slot: usize, life: u64 },
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
    /// The disk has refused a write.
    pub(crate) disk_failed: bool,
    /// The disk is to be replaced by an empty one before the next start.
    pub(crate) lost_disk: bool,
    /// It is dead until the next round of permanent faults.
    pub(crate) stays_dead: bool,
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
    /// Of faults when views are noted.
    pub(crate) view: Prng,
}

/// What stands in for the real world.
#[derive(Debug)]
pub struct World {
    pub(crate) swarm: Swarm,
    pub(crate) group: Group,
    /// What takes replicas time.
    pub(crate) cost: Cost,
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
    /// Happenings in a row without time passing.
    standstill: u64,
    /// What strangers were told: which one, by whom, and what.
    overheard: Vec<(u32, usize, Message)>,
    broken_client: BrokenClient,
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
        swarm: Swarm,
        planted: Option<PlantedBug>,
        verbose: bool,
        clients_max: usize,
    ) -> Self {
        let group = Group::new(swarm.replicas).expect("the swarm draws sizes that exist");
        let mut swarm = swarm;
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
            view: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0020),
        };
        let skew = swarm.clocks.skew_micros;
        let replicas = (0..swarm.replicas)
            .map(|replica| ReplicaSlot {
                disk: Disk::new(Sizes {
                    segment: swarm.disk.segment_bytes,
                    reserve: swarm.disk.reserve_bytes,
                }),
                process: None,
                life: 0,
                paused_until: 0,
                turns: Turns::default(),
                slow_disk: (0, 0),
                disk_full_until: 0,
                promised: PromisedLeases::default(),
                is_reconfigured: false,
                wall_offset: offset(&mut dice.clocks, skew),
                disk_failed: false,
                lost_disk: false,
                stays_dead: false,
                membership: Membership::formed(group, ReplicaId(replica as u8)),
                is_greeting: false,
                settings: None,
            })
            .collect();
        let mut world = Self {
            group,
            cost: Cost::NONE,
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
            standstill: 0,
            overheard: Vec::new(),
            broken_client: BrokenClient::default(),
            swarm,
        };
        if world.swarm.workload.stale_percent > 0 {
            world.invariants.keep_log();
        }
        match world.swarm.formation.unformed {
            Some(late) => world.begin_unformed(late),
            None => (0..world.swarm.replicas).for_each(|replica| world.start_replica(replica)),
        }
        world
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

    /// Lets one thing happen, if it happens no later than `until`. False if nothing does.
    pub fn step(&mut self, until: VirtualTime) -> bool {
        let before = self.now();
        let Some(event) = self.scheduler.take(until) else { return false };
        self.standstill = if self.now() == before { self.standstill + 1 } else { 0 };
        assert!(self.standstill < STANDSTILL_MAX, "time stands still");
        match event {
            SimEvent::Arrival { from, to, in_flight } => self.arrive(from, to, &in_flight),
            SimEvent::BeginTurn { replica, life } => self.begin_turn(replica, life),
            SimEvent::EndTurn { replica, life } => self.end_turn(replica, life),
            SimEvent::Wake { node, life } => self.wake(node, life),
            SimEvent::Synced { replica, life, ticket } => self.synced(replica, life, ticket),
            SimEvent::Execute { replica, life } => self.execute(replica, life),
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
            SimEvent::Replace { replica, life } => {
                if self.replicas[replica].life == life && !self.is_healed {
                    self.replace_failed(replica);
                }
            }
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

    // ---- Replicas.

    fn replica_config(&mut self, replica: usize) -> replica::Config {
        let now = self.now();
        let mut config = replica::Config::new(
            self.group,
            ReplicaId(replica as u8),
            adapter::describe,
            syros_commands::overwrites,
        );
        config.leader_memory_margin = self.swarm.maxmemory.map_or(0, |limit| limit / 8);
        let settings = &self.swarm.protocol;
        config.fast_quorum = self.swarm.fast_quorum;
        config.durability = self.swarm.durability;
        config.seed = self.dice.clocks.next_u64();
        for duration in [
            &mut config.heartbeat,
            &mut config.lease,
            &mut config.suspect_after,
            &mut config.view_change_timeout,
            &mut config.slow_disk_after,
            &mut config.resend,
        ] {
            *duration /= settings.speed;
        }
        config.lengthen_timeouts(settings.patience);
        let odd = self.swarm.odd_lease.filter(|_| replica == 0);
        let before = self.swarm.lease_change.filter(|_| !self.replicas[replica].is_reconfigured);
        if let Some(times) = odd.or(before.map(|change| change.times)) {
            config.lease *= times;
            config.suspect_after *= times;
        }
        let slot = &mut self.replicas[replica];
        config.promised_before = slot.promised.begin(config.lease, now);
        // By a clock that may be a little slow.
        let promise = config.promised_before.as_nanos() as u64;
        self.lingers_until = self.lingers_until.max(now + promise + promise / 64);
        config.order_delay = settings.order_delay;
        config.forward_after = settings.forward_after;
        config.session_timeout = settings.session_timeout;
        config.registration_interval /= settings.speed;
        config.digest_entries = self.swarm.digest_entries;
        config.fetch_delay = settings.fetch_delay;
        config.batch_max = settings.batch_max;
        config.dlog_length_max = settings.dlog_length_max;
        config.waiting_max = settings.waiting_max;
        config.sessions_max = settings.sessions_max;
        config.log_bytes_max = settings.log_bytes_max;
        config.dlog_bytes_max = settings.dlog_bytes_max;
        config.uncommitted_bytes_max = settings.uncommitted_bytes_max;
        config.unexecuted_bytes_max = settings.unexecuted_bytes_max;
        config.reply_bytes_max = settings.reply_bytes_max;
        config.completions_max = settings.completions_max;
        config.batch_bytes_max = settings.batch_bytes_max;
        config.apply_chunk = settings.apply_chunk;
        config.transfer_bytes_max = settings.transfer_bytes_max;
        config.transfer_entries_max = settings.transfer_entries_max;
        config.log_keep_bytes =
            if replica < settings.trimming { settings.log_keep_bytes } else { usize::MAX };
        config.history_bytes_max = settings.history_changes_max * ChangeHistory::CHANGE_BYTES;
        config.snapshot_log_bytes = settings.snapshot_log_bytes;
        config.transfer_rate = settings.transfer_rate;
        if let Some(engine) = &self.swarm.disk_engine {
            config.engine_is_durable = true;
            config.apply_ahead = engine.apply_ahead;
        }
        config.planted = self.planted;
        config
    }

    fn clock(&mut self, wall_offset: i64) -> Clock {
        let drift = offset(&mut self.dice.clocks, u64::from(self.swarm.clocks.drift_ppm));
        let origin = 1 + self.dice.clocks.below(1 << 40);
        Clock::new(self.now(), origin, drift as i32, wall_offset)
    }

    /// Starts a replica, if it does not run, from what its disk holds.
    pub(crate) fn start_replica(&mut self, replica: usize) {
        if self.replicas[replica].process.is_some() {
            return;
        }
        if self.replicas[replica].membership.is_forming() {
            if self.is_healed {
                self.end_forming(replica);
            }
            return;
        }
        let config = self.replica_config(replica);
        self.set_settings(replica, &config);
        if std::mem::take(&mut self.replicas[replica].lost_disk) {
            let view = self.invariants.told(ReplicaId(replica as u8));
            self.replicas[replica].disk.replace(&config, view);
        }
        let strike = self.draw_stop(replica, 20);
        let is_new = !self.replicas[replica].disk.is_used();
        let opened = self.open(replica, &config);
        self.replicas[replica].disk.cancel_faults();
        let Opened { journal, restored, view, snapshot_store, files, engine } = match opened {
            Ok(opened) => opened,
            // Its operator would have to put back a copy.
            Err(DiskTrouble::Alone) => return,
            Err(_) => {
                assert!(strike, "only a planned fault keeps a replica from starting");
                return self.stopped_while_starting(replica);
            }
        };
        let id = ReplicaId(replica as u8);
        if config.durability == Durability::Fsync {
            self.invariants.remembers(id, restored.is_amnesiac(), restored.last_normal());
        }
        self.invariants.noted(id, view.view());
        let boot = boot(config.durability, is_new, restored, view.view());
        let settings = &self.swarm.protocol;
        let block_bytes = settings.snapshot_block_bytes;
        let sizes = SnapshotSizes {
            block_bytes,
            part_bytes: settings.snapshot_part_bytes,
            // A few blocks: the disk is what takes the time.
            unwritten_max: 2 * block_bytes + 1,
            hurry_bytes: 4 * block_bytes,
            ..SnapshotSizes::SERVER
        };
        if matches!(boot, Boot::Amnesiac { .. }) {
            self.tally.record(Occurrence::MemoryLost);
        }
        let clock = self.clock(self.replicas[replica].wall_offset);
        let now = self.now();
        let mut process = ReplicaProcess::new(
            config,
            boot,
            (journal, view, snapshot_store),
            (files, sizes),
            engine,
            clock,
            now,
        );
        process.maxmemory = self.swarm.maxmemory;
        self.trace.fold(0x5741_5254 + replica as u64);
        self.trace.line(now, format_args!("replica {replica} starts: {}", process.summary()));
        self.invariants.started(ReplicaId(replica as u8), process.core());
        let slot = &mut self.replicas[replica];
        slot.life += 1;
        slot.paused_until = 0;
        slot.turns = Turns::default();
        slot.disk_failed = false;
        slot.process = Some(process);
        self.run_replica(replica);
    }

    /// The machine went down while the replica read its log back; it tries again later.
    fn stopped_while_starting(&mut self, replica: usize) {
        self.tally.record(Occurrence::StoppedStarting);
        let now = self.now();
        self.trace.line(now, format_args!("replica {replica} crashes while it starts"));
        let slot = &mut self.replicas[replica];
        slot.disk.crash(&mut self.dice.disk);
        slot.disk.stores().crash(&mut self.dice.engine);
        let life = slot.life;
        self.scheduler.schedule(now + MILLI, SimEvent::Restart { replica, life });
    }

    /// Ends a replica process: with `power`, as a power failure does, and what was not synced may be
    /// lost or torn; without, as `kill -9` does.
    pub fn crash(&mut self, replica: usize, power: bool) {
        let now = self.now();
        let slot = &mut self.replicas[replica];
        if slot.process.take().is_none() {
            return;
        }
        slot.promised.end(now);
        if power {
            slot.disk.crash(&mut self.dice.disk);
        }
        // What an engine has not flushed is in the memory of the process.
        slot.disk.stores().crash(&mut self.dice.engine);
        slot.life += 1;
        self.trace.fold(0xc4a5_0000 + replica as u64);
        self.trace.line(now, format_args!("replica {replica} crashes, power {power}"));
        for index in 0..self.clients.len() {
            let life = self.clients[index].life;
            let Some(client) = &self.clients[index].process else { continue };
            if let Some(address) = client.connections[replica] {
                let at = now + self.network.delay(replica, self.client_node(index));
                let broken = SimEvent::Disconnect { slot: index, life, replica, address };
                self.scheduler.schedule(at, broken);
            }
        }
    }

    /// Starts a crashed replica.
    pub fn restart(&mut self, replica: usize) {
        self.start_replica(replica);
    }

    /// Stops a replica process for a while, as SIGSTOP does: what arrives waits for it.
    pub fn pause(&mut self, replica: usize, duration: u64) {
        let until = self.now() + duration;
        let slot = &mut self.replicas[replica];
        slot.paused_until = slot.paused_until.max(until);
        self.trace.line(self.scheduler.now(), format_args!("replica {replica} stops for {duration} ns"));
    }

    /// Members that are down, have not got their memory back, or are about to lose it because their
    /// disk failed.
    pub(crate) fn without_memory(&self) -> usize {
        let fsync = self.swarm.durability == Durability::Fsync;
        let recovering = |process: &ReplicaProcess| {
            process.core().status().role == RoleName::Recovering || (fsync && !process.journal.remembers())
        };
        let lost = |slot: &&ReplicaSlot| slot.disk_failed || slot.process.as_ref().is_none_or(recovering);
        self.replicas.iter().filter(lost).count()
    }

    /// Hands an event to a replica process, if it is still the one it was meant for.
    pub(crate) fn tell(&mut self, replica: usize, life: u64, event: replica::Event) {
        let slot = &mut self.replicas[replica];
        let Some(process) = slot.process.as_mut().filter(|_| slot.life == life) else { return };
        process.inbox.push(event);
        self.rouse(replica);
    }

    /// Has a process look soon at what has come for it.
    fn rouse(&mut self, replica: usize) {
        let delay = self.swarm.service_delay;
        if delay == 0 {
            self.run_replica(replica);
        } else {
            let at = self.now() + self.dice.service.below(delay);
            self.poke(replica, at);
        }
    }

    /// Has a process run at `at`, unless it will before.
    fn poke(&mut self, node: NodeIndex, at: VirtualTime) {
        let n = self.replicas.len();
        let (wake_at, life) = if node < n {
            let slot = &mut self.replicas[node];
            let Some(process) = &mut slot.process else { return };
            (&mut process.wake_at, slot.life)
        } else {
            let slot = &mut self.clients[node - n];
            let Some(process) = &mut slot.process else { return };
            (&mut process.wake_at, slot.life)
        };
        if wake_at.is_none_or(|planned| at < planned) {
            let at = at.max(self.scheduler.now());
            *wake_at = Some(at);
            self.scheduler.schedule(at, SimEvent::Wake { node, life });
        }
    }

    fn wake(&mut self, node: NodeIndex, life: u64) {
        let now = self.now();
        let n = self.replicas.len();
        if node < n {
            let slot = &mut self.replicas[node];
            let Some(process) = slot.process.as_mut().filter(|_| slot.life == life) else { return };
            if process.wake_at == Some(now) {
                process.wake_at = None;
                self.run_replica(node);
            }
        } else {
            let slot = &mut self.clients[node - n];
            let Some(process) = slot.process.as_mut().filter(|_| slot.life == life) else { return };
            if process.wake_at == Some(now) {
                process.wake_at = None;
                process.handle(now, client::Event::Tick);
                self.drain_client(node - n);
            }
        }
    }

    /// The disk of a replica is nearly full until then.
    pub(crate) fn fill_disk(&mut self, replica: usize, until: VirtualTime) {
        self.replicas[replica].disk_full_until = until;
        self.run_replica(replica);
    }

    /// Lets a replica process do what there is to do.
    pub(crate) fn run_replica(&mut self, replica: usize) {
        let time = self.now();
        let before = self.tally.moments();
        let may_fail = (self.swarm.disk.crash_ppm > 0 || self.swarm.disk.fail_ppm > 0) && self.may_crash();
        let slot = &mut self.replicas[replica];
        let Some(process) = &mut slot.process else { return };
        let until = slot.paused_until.max(slot.turns.busy_until());
        if until > time {
            self.poke(replica, until);
            return;
        }
        process.disk_is_short = slot.disk_full_until > time;
        let mut effects = core::mem::take(&mut self.effects);
        let (crash_ppm, fail_ppm) =
            if may_fail { (self.swarm.disk.crash_ppm, self.swarm.disk.fail_ppm) } else { (0, 0) };
        let mut context = ProcessContext {
            time,
            invariants: &mut self.invariants,
            trace: &mut self.trace,
            tally: &mut self.tally,
            effects: &mut effects,
            apply_at_once: self.swarm.apply_delay == 0,
            entries_per_turn: self.swarm.entries_per_turn(),
            executed: 0,
            compare_every: self.swarm.compare_every,
            disk: &slot.disk,
            view_faults: &mut self.dice.view,
            view_faults_ppm: (20 * crash_ppm, 20 * fail_ppm),
        };
        process.run(&mut context);
        let executed_now = context.executed;
        slot.disk.cancel_faults();
        let trouble = process.take_trouble();
        if trouble == Some(DiskTrouble::Stopped) {
            // What it was about to send when the machine went down has not left.
            effects.clear();
        }
        self.carry_out(replica, executed_now, &mut effects);
        self.effects = effects;
        if let Some(trouble) = trouble {
            return self.in_trouble(replica, trouble, Occurrence::NoteFailed);
        }
        self.strike_at_moments(before);
        self.begin_sync(replica);
        if let Some(process) = &self.replicas[replica].process
            && let Some(at) = process.deadline()
        {
            self.poke(replica, at);
        }
    }

    /// Does what a replica process wants, which has just executed so many updates.
    fn carry_out(&mut self, replica: usize, executed_now: u64, effects: &mut Vec<Effect>) {
        let (time, life) = (self.now(), self.replicas[replica].life);
        let mut departures = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, kind, binds, executed, entries, answers_read, bytes } => {
                    if let Some(view) = binds {
                        self.invariants.told_view(ReplicaId(replica as u8), view);
                    }
                    if let Some(counts) = &mut self.counts {
                        *counts.entry(kind).or_default() += 1;
                    }
                    if let Peer::Client(address) = to {
                        self.overhear(address, replica, &bytes);
                    }
                    if let Some((to, in_flight)) = self.address(to, (executed, life), bytes) {
                        departures.push(Departure { to, entries, answers_read, in_flight });
                    }
                }
                Effect::Execute => {
                    let delay = self.dice.service.below(self.swarm.apply_delay + 1);
                    self.scheduler.schedule(time + 1 + delay, SimEvent::Execute { replica, life });
                }
                Effect::Snapshots => self.plan_snapshot_step(replica),
                Effect::Engine => self.plan_engine_step(replica),
                Effect::Flush => self.begin_flush(replica),
            }
        }
        self.depart(replica, executed_now, departures);
    }

    /// Where a replica's message goes, unless nobody is there any more.
    fn address(
        &self,
        to: Peer,
        (executed, life): (OpNumber, u64),
        bytes: Rc<[u8]>,
    ) -> Option<(NodeIndex, InFlight)> {
        let (to, address) = match to {
            Peer::Replica(id) => (id.index(), 0),
            Peer::Client(address) => {
                let Connection { slot, life, .. } = *self.addresses.get(address as usize)?;
                if self.clients[slot].life != life {
                    return None;
                }
                (self.client_node(slot), address)
            }
        };
        Some((to, InFlight { address, executed, life, bytes }))
    }

    // ---- Disks.

    /// Perhaps plans a stop of the machine at one of its next disk operations, `times` as likely as the
    /// swarm says for one operation. True if it did.
    fn draw_stop(&mut self, replica: usize, times: u64) -> bool {
        let ppm = self.swarm.disk.crash_ppm * times;
        if ppm == 0 || !self.dice.disk.chance(ppm, 1_000_000) || !self.may_crash() {
            return false;
        }
        // The first operation most of the time; a new segment takes several.
        let after = if self.dice.disk.chance(3, 4) { 0 } else { self.dice.disk.below(8) };
        self.replicas[replica].disk.plan(DiskFault::Stop(after));
        true
    }

    /// Perhaps plans that the disk refuses the next write or sync.
    fn draw_failure(&mut self, replica: usize, fault: impl Fn(&mut Prng) -> DiskFault) {
        let ppm = self.swarm.disk.fail_ppm;
        if ppm > 0 && self.dice.disk.chance(ppm, 1_000_000) && self.may_crash() {
            let fault = fault(&mut self.dice.disk);
            self.replicas[replica].disk.plan(fault);
        }
    }

    /// A disk operation of the replica's process did not succeed; `occurrence` is what that counts as if the
    /// machine is still up.
    fn in_trouble(&mut self, replica: usize, trouble: DiskTrouble, occurrence: Occurrence) {
        match trouble {
            DiskTrouble::Stopped => {
                self.tally.record(Occurrence::DiskStopped);
                self.crash_for_a_while(replica, true);
            }
            DiskTrouble::Failed | DiskTrouble::Alone => {
                self.tally.record(occurrence);
                let now = self.now();
                self.trace.line(now, format_args!("the disk of replica {replica} fails"));
                let slot = &mut self.replicas[replica];
                slot.disk_failed = true;
                let life = slot.life;
                let at = now + self.fault_duration();
                self.scheduler.schedule(at, SimEvent::Replace { replica, life });
                self.tell(replica, life, replica::Event::PersistFailed);
            }
        }
    }

    /// Writes what the process wants on disk, unless a sync is under way.
    fn begin_sync(&mut self, replica: usize) {
        let slot = &self.replicas[replica];
        if !slot.process.as_ref().is_some_and(|process| process.journal.wants_sync()) {
            return;
        }
        self.draw_stop(replica, 1);
        self.draw_failure(replica, |prng| DiskFault::Write(prng.below(200) as usize));
        let slot = &mut self.replicas[replica];
        let Some(process) = &mut slot.process else { return };
        let written = process.journal.write();
        slot.disk.cancel_faults();
        match written {
            Ok(ticket) => {
                let life = slot.life;
                let (shortest, longest) = self.swarm.disk.sync_delay;
                let mut at = self.now() + shortest + self.dice.disk.below(longest - shortest + 1);
                let (delay, until) = self.replicas[replica].slow_disk;
                if !self.is_healed && self.now() < until {
                    at += delay;
                    self.lingers_until = self.lingers_until.max(at);
                }
                self.scheduler.schedule(at, SimEvent::Synced { replica, life, ticket });
            }
            Err(trouble) => self.in_trouble(replica, trouble, Occurrence::WriteFailed),
        }
    }

    /// Lets a replica's work on snapshots go on after a while.
    fn plan_snapshot_step(&mut self, replica: usize) {
        let (_, longest) = self.swarm.disk.sync_delay;
        let mut at = self.now() + 1 + self.dice.snapshots.below(longest + MILLI / 10);
        if self.replicas[replica].process.as_ref().is_some_and(ReplicaProcess::loads_next) {
            at += self.dice.snapshots.below(self.swarm.load_delay + 1);
        }
        let life = self.replicas[replica].life;
        self.scheduler.schedule(at, SimEvent::StepSnapshots { replica, life });
    }

    fn step_snapshots(&mut self, replica: usize, life: u64) {
        if self.replicas[replica].life != life {
            return;
        }
        let resumes_at = self.replicas[replica].paused_until;
        if resumes_at > self.now() {
            return self.scheduler.schedule(resumes_at, SimEvent::StepSnapshots { replica, life });
        }
        self.draw_stop(replica, 1);
        self.draw_failure(replica, |prng| DiskFault::Write(prng.below(200) as usize));
        let slot = &mut self.replicas[replica];
        let Some(process) = &mut slot.process else { return };
        let has_report = process.step_snapshots();
        let again = process.wants_step();
        process.step_planned = again;
        slot.disk.cancel_faults();
        if slot.disk.has_stopped() {
            // The worker may go on without what failed; the machine does not.
            return self.in_trouble(replica, DiskTrouble::Stopped, Occurrence::SnapshotFailed);
        }
        if again {
            self.plan_snapshot_step(replica);
        }
        if has_report {
            self.rouse(replica);
        }
    }

    fn synced(&mut self, replica: usize, life: u64, ticket: Ticket) {
        if self.replicas[replica].life != life {
            return;
        }
        let resumes_at = self.replicas[replica].paused_until;
        if resumes_at > self.now() {
            return self.scheduler.schedule(resumes_at, SimEvent::Synced { replica, life, ticket });
        }
        self.draw_stop(replica, 1);
        self.draw_failure(replica, |_| DiskFault::Sync);
        let slot = &mut self.replicas[replica];
        let Some(process) = &mut slot.process else { return };
        let result = process.journal.sync();
        slot.disk.cancel_faults();
        match result {
            Ok(()) => {
                let mut effects = Vec::new();
                let wakes = process.on_synced(ticket, &mut effects);
                self.carry_out(replica, 0, &mut effects);
                if wakes {
                    self.rouse(replica);
                }
                self.begin_sync(replica);
            }
            Err(trouble) => self.in_trouble(replica, trouble, Occurrence::SyncFailed),
        }
    }

    // ---- Messages.

    /// Puts a message on the network, at `now` or later.
    fn transmit(&mut self, from: NodeIndex, to: NodeIndex, now: VirtualTime, mut in_flight: InFlight) {
        let fate = self.network.send(from, to, now, in_flight.bytes.len());
        let Fate { arrivals, lost, held_back, flipped } = fate;
        let [first, second] = arrivals;
        self.tally.record_times(Occurrence::Lost, u64::from(lost));
        self.tally.record_times(Occurrence::Duplicated, u64::from(fate.duplicated()));
        self.tally.record_times(Occurrence::Delayed, held_back);
        if held_back > 0 {
            self.lingers_until =
                arrivals.iter().flatten().fold(self.lingers_until, |until, at| until.max(*at));
        }
        if let (Some(at), Some(bit)) = (first, flipped) {
            self.tally.record(Occurrence::Flipped);
            let trusting = self.planted == Some(PlantedBug::ChecksumIgnored);
            match adapter::damaged(&in_flight.bytes, bit, trusting) {
                Some(bytes) => in_flight.bytes = bytes,
                None => return self.found_damaged(from, to, at, in_flight.address),
            }
        }
        if let Some(at) = second {
            self.scheduler.schedule(at, SimEvent::Arrival { from, to, in_flight: in_flight.clone() });
        }
        if let Some(at) = first {
            self.scheduler.schedule(at, SimEvent::Arrival { from, to, in_flight });
        }
    }

    /// A frame is found to be damaged when it arrives: the receiver takes nothing of it, and ends the connection.
    fn found_damaged(&mut self, from: NodeIndex, to: NodeIndex, at: VirtualTime, address: u64) {
        let n = self.replicas.len();
        let (replica, client) = if from < n { (from, to) } else { (to, from) };
        if client >= n {
            let (slot, life) = (client - n, self.clients[client - n].life);
            self.scheduler.schedule(at, SimEvent::Disconnect { slot, life, replica, address });
        }
    }

    fn arrive(&mut self, from: NodeIndex, to: NodeIndex, in_flight: &InFlight) {
        if self.network.drops_arrival(from, to) || self.refuse_each_other(from, to) {
            return;
        }
        let now = self.now();
        self.trace.fold(now);
        self.trace.fold((from * 64 + to) as u64);
        self.trace.fold_bytes(&in_flight.bytes);
        let n = self.replicas.len();
        let message = adapter::decode_message(&in_flight.bytes);
        if self.trace.is_verbose() {
            let (from, to) = (self.node_name(from), self.node_name(to));
            self.trace.line(now, format_args!("{from} -> {to}: {}", message_text(&message)));
        }
        if to >= n {
            return self.arrive_at_client(from, to - n, in_flight, message);
        }
        if from >= n && self.addresses[in_flight.address as usize].replica_life != self.replicas[to].life {
            // No connection outlives the process that took it.
            return;
        }
        if !self.cost.is_none() {
            return self.await_turn(from, to, in_flight.address, message);
        }
        let from =
            if from < n { Peer::Replica(ReplicaId(from as u8)) } else { Peer::Client(in_flight.address) };
        let life = self.replicas[to].life;
        self.tell(to, life, replica::Event::Message { from, message });
    }

    fn node_name(&self, node: NodeIndex) -> String {
        let n = self.replicas.len();
        if node < n { format!("replica {node}") } else { format!("client {}", node - n) }
    }

    /// Whether something is wrong already.
    #[must_use]
    pub fn violation(&self) -> Option<String> {
        self.invariants.broken().map(ToString::to_string)
    }
}

/// A number between `-most` and `most`.
fn offset(prng: &mut Prng, most: u64) -> i64 {
    prng.below(2 * most + 1) as i64 - most as i64
}

/// A message for the diary: long contents cut.
fn message_text(message: &Message) -> String {
    let mut text = format!("{message:?}");
    if text.len() > 2_000 {
        text.truncate(2_000);
        text.push('…');
    }
    text
}
