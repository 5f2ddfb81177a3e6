//! Swarm testing (Groce et al., ISSTA 2012): every seed draws its own world. What faults there are and
//! how many, how large the group is, how the clocks run, how tight the limits are: a single average
//! configuration would never reach the corners that a thousand lopsided ones do.

mod engines;
mod hunts;

pub use engines::DiskEngineSettings;
pub use hunts::Hunt;

use crate::network::NetworkFaults;
use crate::workload::{ALL_KEYS_MAX, ALL_KEYS_OPERATIONS_MAX};
use core::time::Duration;
use syros_protocol::history::ChangeHistory;
use syros_protocol::replica::Durability;
use syros_protocol::sessions::{COMPLETIONS_MAX, REPLY_BYTES_MAX};
use syros_types::{Execution, FastQuorum, Group, Prng, Protocol, ReadPolicy, WritePolicy};

/// Nanoseconds in a microsecond.
pub const MICRO: u64 = 1_000;
/// Nanoseconds in a millisecond.
pub const MILLI: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// Everything a world is made of, drawn from one seed. Durations are in nanoseconds of true time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swarm {
    /// Seed of everything that happens in the world.
    pub seed: u64,
    /// Members of the group.
    pub replicas: usize,
    /// Fast quorum mode.
    pub fast_quorum: FastQuorum,
    /// When acknowledgements leave.
    pub durability: Durability,
    /// What clients do.
    pub workload: WorkloadSettings,
    /// What the network does.
    pub network: NetworkFaults,
    /// What the clocks do.
    pub clocks: ClockSettings,
    /// What the disks do.
    pub disk: DiskSettings,
    /// What breaks, and how often.
    pub nemesis: NemesisSettings,
    /// How the group comes about.
    pub formation: FormationSettings,
    /// Replica 0 was configured with a lease that is so many times as long as the others', until everything is repaired.
    pub odd_lease: Option<u32>,
    /// The lease is shortened while the group is at work.
    pub lease_change: Option<LeaseChange>,
    /// The protocol's own settings.
    pub protocol: ProtocolSettings,
    /// Longest time a process takes to get round to what has arrived.
    pub service_delay: u64,
    /// Longest time that an engine in memory leaves entries that it could execute.
    pub apply_delay: u64,
    /// Longest additional time to load a snapshot.
    pub load_delay: u64,
    /// See `Config::digest_entries`.
    pub digest_entries: u64,
    /// States of engines in memory are compared after every entry whose number this divides: a look at a state takes
    /// time in proportion to it. 1, but for experiments.
    pub compare_every: u64,
    /// Most bytes that the data of engines in memory may take.
    pub maxmemory: Option<usize>,
    /// Engines are on disk; else in memory.
    pub disk_engine: Option<DiskEngineSettings>,
    /// What the world is made for, if it is for something.
    pub hunt: Option<Hunt>,
    /// What stays broken in a phase of its own before everything is repaired.
    pub permanent: Option<PermanentFaults>,
    /// When everything has been repaired, service is judged.
    pub service_judged: bool,
}

/// A rolling restart that gives all replicas a shorter lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseChange {
    /// How many times as long the lease is before.
    pub times: u32,
    /// It begins when so many operations are left to be asked for.
    pub at: u64,
}

/// Faults that last while service is judged: a majority is alive and connected, and nobody else need be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermanentFaults {
    /// So often, who is dead returns, and others die.
    pub rounds: u64,
    /// Replicas that die in a round at most; never more than the group can do without.
    pub dead_max: usize,
    /// Links between replicas that are left.
    pub links: RemainingLinks,
    /// The leader dies while those who return fetch from it what they lack, bit by bit.
    pub chases: bool,
}

/// Links between replicas that permanent faults leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemainingLinks {
    /// All.
    All,
    /// Those within some majority, and some others.
    Majority,
    /// Those between one replica and the others of a majority, and no other.
    Star,
}

/// How the group comes about. By default it has been formed before time begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormationSettings {
    /// All disks are new, and so many of the members, the last ones, are started later.
    pub unformed: Option<usize>,
    /// Those are not started by themselves.
    pub late_on_demand: bool,
}

/// What clients do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadSettings {
    /// Clients at a time.
    pub clients: usize,
    /// Operations each client keeps in flight at most.
    pub in_flight: usize,
    /// Operations of the safety phase, over all clients.
    pub operations: u64,
    /// Distinct keys.
    pub keys: u64,
    /// Mean pause of a client between operations.
    pub think: u64,
    /// Operations of a hundred that go to the first key.
    pub hot_key_percent: u64,
    /// Relative weight of each kind of operation, in the order of [`crate::workload::KINDS`].
    pub weights: [u64; crate::workload::KINDS],
    /// Operations of a hundred that are packed with others on the same key into one body.
    pub packed_percent: u64,
    /// Operations of a hundred that set a key which expires.
    pub expiring_percent: u64,
    /// Longest lifetime of such a key, in milliseconds.
    pub lifetime_max: u64,
    /// As many operations read such keys, too.
    pub expiring_read: bool,
    /// Operations of a hundred that concern all keys: FLUSHALL, DBSIZE, KEYS.
    pub all_keys_percent: u64,
    /// Reads of a hundred that any replica may answer as it is. They are judged apart.
    pub stale_percent: u64,
    /// So many of the clients, the first ones, only read. A client that writes hears of a new view from
    /// whoever refuses its requests; one that only reads believes its leader for as long as it answers.
    pub readers: usize,
    /// How clients read; `None`: each in another of the linearizable ways.
    pub read_policy: Option<ReadPolicy>,
    /// How updates of clients go that may be fast; `None`: each client's in another way.
    pub write_policy: Option<WritePolicy>,
}

/// What the clocks do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockSettings {
    /// Monotonic clocks run fast or slow by up to this much.
    pub drift_ppm: u32,
    /// Wall clocks are ahead or behind by up to this many microseconds.
    pub skew_micros: u64,
    /// Only the clocks of so many replicas ever jump, the first ones, and no other replica fails: then lifetimes are
    /// judged by true time. `None`: any clock jumps, and it is only judged that what has expired stays gone.
    pub wrong: Option<usize>,
    /// Those clocks stay wrong when everything else is repaired.
    pub stay_wrong: bool,
}

/// What the disks do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSettings {
    /// Shortest and longest time of one sync.
    pub sync_delay: (u64, u64),
    /// Writes and syncs, in a million, at which the process crashes.
    pub crash_ppm: u64,
    /// Writes and syncs, in a million, that fail.
    pub fail_ppm: u64,
    /// Size of a segment of the log.
    pub segment_bytes: u64,
    /// Size of the pieces in which room for records is made in it.
    pub reserve_bytes: u64,
}

/// Size of a segment: small, so that a run goes through several.
const SEGMENT_BYTES: u64 = 8 * 1024;

/// What breaks. Weights are relative to each other; 0 switches a fault off, as all are by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NemesisSettings {
    /// Mean time between two faults; 0 for none in the course of time.
    pub interval: u64,
    /// Operations of a hundred that are followed by a fault within a few message delays: what is only
    /// wrong while something is under way is found by breaking things just then.
    pub per_operation_percent: u64,
    /// Snapshots of a hundred that are followed by a fault within a few message delays, when they are
    /// begun, finished or taken over.
    pub per_snapshot_percent: u64,
    /// Proposals to end sessions, of a hundred, that are followed by a crash before what is under way then can
    /// be ordered.
    pub per_ending_percent: u64,
    /// Requests sent again after another one of the client's had been completed, of a hundred, that are
    /// followed by such a crash.
    pub per_resend_percent: u64,
    /// Longest time a fault lasts.
    pub duration: u64,
    /// Faults of a hundred that single out the current leader.
    pub leader_percent: u64,
    /// Isolated replicas, of a hundred, that clients do not reach either.
    pub cut_clients_percent: u64,
    /// A replica crashes.
    pub crash: u64,
    /// A replica crashes and its disk is gone; only its view is known.
    pub lose_disk: u64,
    /// A replica crashes and is started with an empty disk as if it were a new one.
    pub bootstrap: u64,
    /// All replicas crash at once.
    pub crash_all: u64,
    /// The group falls apart into two or three pieces.
    pub partition: u64,
    /// One replica is cut off from all others, and perhaps from clients.
    pub isolate: u64,
    /// One direction between two replicas is cut.
    pub one_way: u64,
    /// A replica is cut off from the others one by one.
    pub creep: u64,
    /// A process stops and goes on later, as after SIGSTOP.
    pub pause: u64,
    /// A wall clock jumps.
    pub clock_jump: u64,
    /// A wall clock jumps ahead by as long as a session may be idle.
    pub end_sessions: u64,
    /// A client dies and another takes its place.
    pub client_crash: u64,
    /// A connection between a client and a replica breaks.
    pub disconnect: u64,
    /// All links of one replica become slow for good.
    pub slow: u64,
    /// A replica is asked to let another one lead.
    pub hand_over: u64,
    /// A replica crashes, and something on its disk rots before it starts again.
    pub rot: u64,
    /// The disk of a replica takes long to sync for a while.
    pub slow_disk: u64,
    /// The disk of a replica is full for a while, but for what it keeps in reserve.
    pub fill_disk: u64,
    /// Somebody sends updates under the ids that a client is about to use.
    pub stranger: u64,
    /// A client sends one or the other of two updates under one id, or both.
    pub broken_client: u64,
    /// When so many operations are left to be asked for, more replicas lose their disks at once than the
    /// group can do without. `None`: never.
    pub ruin_at: Option<u64>,
}

/// The protocol's own settings that are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolSettings {
    /// Everything that measures in heartbeats is divided by this.
    pub speed: u32,
    /// What measures in messages between replicas is multiplied by this: they are far from each other.
    pub patience: u32,
    /// See `Config::order_delay`.
    pub order_delay: Duration,
    /// See `Config::fetch_delay`.
    pub fetch_delay: Duration,
    /// See `Config::batch_max`.
    pub batch_max: usize,
    /// See `Config::dlog_length_max`.
    pub dlog_length_max: usize,
    /// See `Config::waiting_max`.
    pub waiting_max: usize,
    /// See `Config::log_keep_bytes`.
    pub log_keep_bytes: usize,
    /// So many of the replicas, the first ones, trim their logs; the others keep everything.
    pub trimming: usize,
    /// See `Config::snapshot_log_bytes`.
    pub snapshot_log_bytes: usize,
    /// Changes that a replica's history may hold.
    pub history_changes_max: usize,
    /// See `Config::transfer_rate`.
    pub transfer_rate: u64,
    /// About how many bytes of state are written to a snapshot at a time.
    pub snapshot_block_bytes: usize,
    /// Bytes in a part of a snapshot that is sent.
    pub snapshot_part_bytes: usize,
    /// See `Config::forward_after`.
    pub forward_after: Duration,
    /// See `Config::session_timeout`.
    pub session_timeout: Duration,
    /// See `Config::sync_after` of the client.
    pub sync_after: Duration,
    /// See `Config::sessions_max`.
    pub sessions_max: usize,
    /// See `Config::log_bytes_max`.
    pub log_bytes_max: usize,
    /// See `Config::dlog_bytes_max`.
    pub dlog_bytes_max: usize,
    /// See `Config::uncommitted_bytes_max`.
    pub uncommitted_bytes_max: usize,
    /// See `Config::unexecuted_bytes_max`.
    pub unexecuted_bytes_max: usize,
    /// See `Config::reply_bytes_max`.
    pub reply_bytes_max: usize,
    /// See `Config::completions_max`.
    pub completions_max: usize,
    /// See `Config::batch_bytes_max`.
    pub batch_bytes_max: usize,
    /// See `Config::apply_chunk`.
    pub apply_chunk: u64,
    /// See `Config::transfer_bytes_max`.
    pub transfer_bytes_max: usize,
    /// See `Config::transfer_entries_max`.
    pub transfer_entries_max: u64,
    /// See `Config::in_flight_max` of the client.
    pub in_flight_max: usize,
    /// Until a client whose connection broke has another.
    pub client_reconnect: Duration,
    /// See `Config::resend` of the client.
    pub client_resend: Duration,
    /// See `Config::give_up_after` of the client.
    pub give_up_after: Duration,
}

/// Draws parameters.
struct Draw(Prng);

impl Draw {
    /// True once in `n`.
    const fn one_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u64) as usize]
    }

    const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// 0 as often as not, else one of `choices`.
    fn sometimes(&mut self, choices: &[u64]) -> u64 {
        if self.one_in(2) { 0 } else { self.of(choices) }
    }
}

impl Swarm {
    /// The world of this seed. In one of three, engines are on disk.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        if engines::are_on_disk(seed) { Self::draw_on_disk(seed) } else { Self::draw_in_memory(seed) }
    }

    /// In one world of six some reads are stale. Rolled apart.
    fn draw_stale(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0015));
        if draw.one_in(6) {
            self.workload.stale_percent = draw.of(&[20, 60]);
        }
    }

    /// In one world of six some operations concern all keys, unless the world has too many keys for that. Rolled apart.
    fn draw_all_keys(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0014));
        let workload = &mut self.workload;
        if draw.one_in(6) && workload.keys <= ALL_KEYS_MAX {
            workload.all_keys_percent = draw.of(&[3, 10, 25]);
            let most = workload.operations.min(ALL_KEYS_OPERATIONS_MAX);
            workload.operations = most;
            // Otherwise the group would not be ruined before the end.
            self.nemesis.ruin_at = self.nemesis.ruin_at.map(|at| at.min(most.saturating_sub(1)));
        }
    }

    /// The world that this seed has, or would have if its engines were in memory.
    #[must_use]
    pub fn draw_in_memory(seed: u64) -> Self {
        let mut draw = Draw(Prng::new(seed ^ 0x5397_0a11_5eed_0001));
        let replicas = draw.of(&[3, 3, 3, 3, 5, 5, 5, 5, 7, 1]);
        let fast_quorum = draw.of(&[FastQuorum::Majority, FastQuorum::Supermajority]);
        let durability = draw.of(&[Durability::Fsync, Durability::Replicated]);
        let speed = draw.of(&[1, 3, 10]);
        let operations = draw.between(80, 240);
        let workload = WorkloadSettings::draw(&mut draw, operations, u64::from(speed));
        let network = draw_network(&mut draw, u64::from(speed));
        let nemesis = NemesisSettings::draw(&mut draw, u64::from(speed));
        let protocol = ProtocolSettings::draw(&mut draw, speed);
        let hunt = Hunt::draw(&mut draw);
        let mut swarm = Self {
            seed,
            replicas,
            fast_quorum,
            durability,
            workload,
            network,
            clocks: ClockSettings {
                drift_ppm: draw.of(&[0, 100, 5_000]) as u32,
                skew_micros: draw.of(&[0, 100, 2_000, 50_000, 400_000]),
                wrong: None,
                stay_wrong: false,
            },
            disk: DiskSettings {
                sync_delay: draw.of(&[(0, 50 * MICRO), (100 * MICRO, 2 * MILLI), (0, 20 * MILLI)]),
                crash_ppm: draw.sometimes(&[500, 5_000, 20_000]),
                fail_ppm: if draw.one_in(6) { draw.of(&[1_000, 5_000]) } else { 0 },
                segment_bytes: SEGMENT_BYTES,
                // Rolled apart, so that the worlds of all seeds stay what they were.
                reserve_bytes: Draw(Prng::new(seed ^ 0x5397_0a11_5eed_0007)).of(&[1, 600, SEGMENT_BYTES]),
            },
            nemesis,
            formation: FormationSettings::default(),
            odd_lease: None,
            lease_change: None,
            protocol,
            service_delay: draw.sometimes(&[10 * MICRO, 300 * MICRO]),
            apply_delay: draw.sometimes(&[20 * MICRO, 2 * MILLI]),
            load_delay: 0,
            digest_entries: 4096,
            compare_every: 1,
            maxmemory: None,
            disk_engine: None,
            hunt,
            permanent: None,
            service_judged: false,
        };
        swarm.make_for(hunt, &mut draw);
        swarm.draw_disturbances();
        swarm.draw_commutation();
        swarm.draw_thrift();
        swarm.draw_damage();
        swarm.draw_last_phases();
        swarm.draw_limits();
        swarm.draw_budgets();
        swarm.draw_formation();
        swarm.draw_clock_hunt();
        swarm.draw_odd_lease();
        swarm.draw_all_keys();
        swarm.draw_stale();
        swarm.draw_session_table();
        swarm
    }

    /// In one world of eight, the session tables have little room for replies, and in one of eight for completions. Rolled
    /// apart.
    fn draw_session_table(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0025));
        if draw.one_in(8) {
            // A small reply counts for some 20 bytes.
            self.protocol.reply_bytes_max = draw.of(&[0, 10, 50, 200]);
        }
        if draw.one_in(8) {
            self.protocol.completions_max = draw.of(&[0, 3, 10, 30]);
        }
    }

    /// In one of four worlds that are about leases, one replica has a much longer one; in half of the others, all have, until
    /// they are started again one by one. Rolled apart. Corrected, the odd one is started again, which it must survive.
    fn draw_odd_lease(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0013));
        if self.hunt != Some(Hunt::Leases) || self.durability != Durability::Fsync {
            return;
        }
        if draw.one_in(4) {
            self.odd_lease = Some(draw.of(&[5, 50]) as u32);
        } else if draw.one_in(2) {
            let (times, at) = (draw.of(&[3, 10]) as u32, draw.0.below(self.workload.operations));
            self.lease_change = Some(LeaseChange { times, at });
        }
    }

    /// In one world of eight disks are wiped and started as new ones; in some of those the group is to be formed yet.
    /// Rolled apart.
    fn draw_formation(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0012));
        if self.replicas == 1 || !draw.one_in(8) {
            return;
        }
        self.nemesis.bootstrap = draw.of(&[1, 4, 12]);
        if draw.one_in(3) {
            self.formation.unformed = Some(draw.0.below(self.replicas as u64 / 2 + 1) as usize);
        }
    }

    /// In one world of four, bits flip on the network; in one of four, somebody tries to use the sessions of others. Rolled
    /// apart.
    fn draw_damage(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0010));
        if draw.one_in(4) {
            self.network.flip_ppm = draw.of(&[1_000, 20_000]);
        }
        if draw.one_in(4) {
            self.digest_entries = draw.of(&[4, 32]);
        }
        if draw.one_in(4) && self.nemesis.interval > 0 {
            self.nemesis.stranger = draw.of(&[3, 9]);
            self.nemesis.broken_client = self.nemesis.stranger;
        }
    }

    /// The world of this seed, with the settings of this protocol.
    #[must_use]
    pub fn draw_for(seed: u64, protocol: &Protocol) -> Self {
        let mut swarm = Self::draw(seed);
        let drawn = swarm.fast_quorum;
        swarm.follow(protocol);
        if swarm.fast_quorum != drawn {
            swarm.draw_returning(&mut Self::commutation_dice(seed));
        }
        swarm
    }

    /// Gives the group another size; everything else stays as it was drawn.
    pub fn resize(&mut self, group: Group) {
        if self.network.spared == self.replicas {
            self.network.spared = group.size();
        }
        self.replicas = group.size();
    }

    /// Takes over the settings of a protocol.
    pub fn follow(&mut self, protocol: &Protocol) {
        self.replicas = protocol.replicas(self.replicas);
        self.fast_quorum = protocol.fast_quorum;
        self.workload.read_policy = Some(protocol.reads);
        self.workload.write_policy = Some(protocol.writes);
        if let Some(batch) = protocol.batch {
            self.protocol.batch_max = batch.into();
        }
        if let Some(engine) = &mut self.disk_engine
            && protocol.execution == Execution::Serial
        {
            engine.lanes = 1;
        }
    }

    /// In one world of eight all clients send updates to no more replicas than they have to: from dice of its own.
    fn draw_thrift(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0006));
        if self.hunt.is_none() && draw.one_in(8) {
            self.workload.write_policy = Some(WritePolicy::Thrifty);
        }
    }

    /// In one world of four some replicas stay dead, and some links cut, while clients must be served: from dice of its own.
    fn draw_last_phases(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_000d));
        if draw.one_in(4) {
            self.draw_permanent();
        }
    }

    /// Entries that an engine in memory executes in one turn: few in half of the worlds where it takes its time.
    pub const fn entries_per_turn(&self) -> u64 {
        if self.apply_delay > 0 && self.seed.is_multiple_of(2) {
            1 + self.seed / 2 % 4
        } else {
            syros_node::ENTRIES_PER_TURN
        }
    }

    /// Gives the world permanent faults, from dice of their own.
    pub fn draw_permanent(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0009));
        // Where a fast quorum is not to be had, a client must get its update ordered before its session ends.
        let protocol = &mut self.protocol;
        protocol.sync_after = protocol.sync_after.min(protocol.session_timeout / 8);
        self.permanent = Some(PermanentFaults {
            rounds: draw.between(1, 3),
            dead_max: draw.of(&[1, 2, 2, 4]) as usize,
            links: draw.of(&[
                RemainingLinks::All,
                RemainingLinks::All,
                RemainingLinks::Majority,
                RemainingLinks::Star,
            ]),
            chases: false,
        });
        if Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0018)).one_in(4) {
            self.make_sources_die();
        }
    }

    /// Has leaders die while others fetch from them.
    fn make_sources_die(&mut self) {
        if let Some(permanent) = &mut self.permanent {
            permanent.chases = true;
            permanent.rounds = permanent.rounds.max(4);
            self.protocol.transfer_entries_max = 1;
        }
    }

    /// In one world of four some limits are so small that they are reached, from dice of its own.
    fn draw_limits(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_000a));
        if !draw.one_in(4) {
            return;
        }
        let protocol = &mut self.protocol;
        let mut bytes = |limit: &mut usize, small: &[usize]| {
            if draw.one_in(3) {
                *limit = draw.of(small);
            }
        };
        // A small update takes some 100 bytes.
        bytes(&mut protocol.dlog_bytes_max, &[150, 400, 2_000]);
        bytes(&mut protocol.uncommitted_bytes_max, &[200, 800, 4_000]);
        bytes(&mut protocol.unexecuted_bytes_max, &[200, 800, 4_000]);
        bytes(&mut protocol.batch_bytes_max, &[1, 100, 500]);
        bytes(&mut protocol.transfer_bytes_max, &[1, 150, 1_000]);
        bytes(&mut protocol.in_flight_max, &[1, 2, 4]);
        if draw.one_in(3) {
            protocol.apply_chunk = draw.of(&[1, 2, 5]);
        }
        if draw.one_in(3) {
            protocol.transfer_entries_max = draw.of(&[1, 2, 10]);
        }
        // Log time that is seconds ahead keeps the sessions of clients that are gone: until the clocks have come that far,
        // nobody new would get in.
        if draw.one_in(6) && self.nemesis.end_sessions + self.nemesis.clock_jump == 0 {
            protocol.sessions_max = self.workload.clients + draw.between(2, 6) as usize;
            // Those of clients that are gone have to end, or nobody new gets in.
            protocol.session_timeout = Duration::from_millis(2_000) / protocol.speed;
        }
    }

    /// One world of eight has little memory for its data, or disks that fill up, or both: updates are refused then, and
    /// must be nowhere. Rolled apart.
    fn draw_budgets(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0016));
        if !draw.one_in(8) {
            return;
        }
        let both = draw.one_in(3);
        let memory = draw.one_in(2);
        if both || memory {
            // A key takes some 100 bytes.
            self.maxmemory = Some(draw.of(&[200, 500, 1_500]));
        }
        if both || !memory {
            self.nemesis.fill_disk = draw.of(&[3, 10]);
        }
    }

    /// One world of ten is about clocks, from dice of its own.
    fn draw_clock_hunt(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_000b));
        if draw.one_in(10) {
            self.hunt = Some(Hunt::Clocks);
            self.become_clock_hunt(&mut draw);
        }
    }

    const fn commutation_dice(seed: u64) -> Draw {
        Draw(Prng::new(seed ^ 0x5397_0a11_5eed_0005))
    }

    /// Half of the worlds in supermajority mode let updates that commute be fast too: from dice of their own, so that
    /// all others are as they would be without.
    fn draw_commutation(&mut self) {
        use FastQuorum::{Commutative, NilextOrCommutative, Supermajority};
        if self.fast_quorum == Supermajority {
            let mut draw = Self::commutation_dice(self.seed);
            self.fast_quorum = draw.of(&[Supermajority, Supermajority, NilextOrCommutative, Commutative]);
            self.draw_returning(&mut draw);
        }
    }

    /// Where updates that return state may be fast, there are some.
    fn draw_returning(&mut self, draw: &mut Draw) {
        if matches!(self.fast_quorum, FastQuorum::NilextOrCommutative | FastQuorum::Commutative) {
            // INCRBY, APPEND, GETSET, SETNX and DEL with their replies.
            for kind in [2, 4, 5, 6, 10] {
                self.workload.weights[kind] += draw.sometimes(&[1, 4]);
            }
        }
    }

    /// What comes on top, from dice of its own, so that a world is the same but for this. A hunt is left to
    /// what it is after, but for one in eight.
    fn draw_disturbances(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0003));
        if self.hunt.is_none() || draw.one_in(8) {
            self.draw_snapshots(&mut draw);
            // Disks can be relied upon, or they rot or are slow.
            let relied_upon = self.durability == Durability::Fsync;
            if relied_upon && draw.one_in(3) {
                self.nemesis.rot = draw.of(&[1, 3, 9]);
            }
            if relied_upon && draw.one_in(4) {
                self.nemesis.slow_disk = draw.of(&[1, 3]);
            }
        }
        self.workload.read_policy = match self.hunt {
            Some(Hunt::Leases) => {
                draw.of(&[Some(ReadPolicy::Leader), Some(ReadPolicy::Leader), Some(ReadPolicy::Meta)])
            }
            Some(Hunt::Reads) => {
                draw.of(&[None, Some(ReadPolicy::Meta), Some(ReadPolicy::Quorum), Some(ReadPolicy::Quorum)])
            }
            _ => draw.of(&[None, Some(ReadPolicy::Leader)]),
        };
        if draw.one_in(50) {
            self.nemesis.ruin_at = Some(draw.0.below(self.workload.operations));
        }
        self.workload.write_policy = draw.of(&[None, Some(WritePolicy::Auto), Some(WritePolicy::Fast)]);
    }

    /// Half of the worlds never trim a log.
    fn draw_snapshots(&mut self, draw: &mut Draw) {
        if self.hunt == Some(Hunt::Snapshots) || draw.one_in(2) {
            return;
        }
        let speed = u64::from(self.protocol.speed);
        let protocol = &mut self.protocol;
        // An entry takes about 150 bytes.
        protocol.log_keep_bytes = draw.of(&[0, 500, 3_000, 10_000]);
        protocol.snapshot_log_bytes = draw.of(&[100, 1_000, 5_000, usize::MAX]);
        protocol.transfer_rate = draw.of(&[u64::MAX, 1_000_000, 50_000]).saturating_mul(speed);
        protocol.snapshot_block_bytes = draw.of(&[1, 100, 100_000]);
        protocol.snapshot_part_bytes = draw.of(&[100, 1_000, 100_000]);
        // What is not needed any more goes by whole segments.
        self.disk.segment_bytes = draw.of(&[100, 1_000, SEGMENT_BYTES]);
    }

    /// A world without faults: `replicas` replicas one exact `delay` apart, clocks in step, disks that
    /// take no time. What scenarios start from.
    #[must_use]
    pub fn quiet(replicas: usize, fast_quorum: FastQuorum, durability: Durability, delay: u64) -> Self {
        Self {
            seed: 1,
            replicas,
            fast_quorum,
            durability,
            workload: WorkloadSettings {
                clients: 0,
                in_flight: 1,
                operations: 0,
                keys: 4,
                think: 0,
                hot_key_percent: 0,
                weights: [1; crate::workload::KINDS],
                packed_percent: 0,
                expiring_percent: 0,
                lifetime_max: 200,
                expiring_read: false,
                all_keys_percent: 0,
                stale_percent: 0,
                readers: 0,
                read_policy: Some(ReadPolicy::Leader),
                write_policy: Some(WritePolicy::Auto),
            },
            network: NetworkFaults::none(delay),
            clocks: ClockSettings { drift_ppm: 0, skew_micros: 0, wrong: None, stay_wrong: false },
            disk: DiskSettings {
                sync_delay: (0, 0),
                crash_ppm: 0,
                fail_ppm: 0,
                segment_bytes: SEGMENT_BYTES,
                reserve_bytes: SEGMENT_BYTES,
            },
            nemesis: NemesisSettings::default(),
            formation: FormationSettings::default(),
            odd_lease: None,
            lease_change: None,
            protocol: ProtocolSettings::default(),
            service_delay: 0,
            apply_delay: 0,
            load_delay: 0,
            digest_entries: 4096,
            compare_every: 1,
            maxmemory: None,
            disk_engine: None,
            hunt: None,
            permanent: None,
            service_judged: false,
        }
    }
}

impl WorkloadSettings {
    /// How a client reads.
    pub(crate) fn read_policy_of(&self, client: usize) -> ReadPolicy {
        const LINEARIZABLE: [ReadPolicy; 4] =
            [ReadPolicy::Quorum, ReadPolicy::Meta, ReadPolicy::Leader, ReadPolicy::Auto];
        self.read_policy.unwrap_or(LINEARIZABLE[client % LINEARIZABLE.len()])
    }

    /// How a client's updates go.
    pub(crate) fn write_policy_of(&self, client: usize) -> WritePolicy {
        self.write_policy.unwrap_or(WritePolicy::ALL[client % WritePolicy::ALL.len()])
    }

    fn draw(draw: &mut Draw, operations: u64, speed: u64) -> Self {
        let mut weights = [0; crate::workload::KINDS];
        for weight in &mut weights {
            *weight = draw.of(&[0, 1, 1, 2, 8]);
        }
        if weights.iter().all(|weight| *weight == 0) {
            weights = [1; crate::workload::KINDS];
        }
        // The search for a linearization is exponential in what runs at one time; with more than this,
        // histories over several keys are not decided in reasonable time.
        const CONCURRENT_MAX: usize = 10;
        let clients = draw.between(2, 6) as usize;
        Self {
            clients,
            in_flight: draw.of(&[1, 2, 4, 8]).min(CONCURRENT_MAX / clients),
            operations,
            keys: draw.between(2, 6),
            think: draw.of(&[0, MILLI, 10 * MILLI, 40 * MILLI]) / speed,
            hot_key_percent: draw.of(&[0, 50, 90]),
            weights,
            packed_percent: draw.sometimes(&[5, 30]),
            expiring_percent: 0,
            lifetime_max: 200,
            expiring_read: false,
            all_keys_percent: 0,
            stale_percent: 0,
            readers: draw.sometimes(&[1, 2]) as usize,
            read_policy: None,
            write_policy: None,
        }
    }
}

fn draw_network(draw: &mut Draw, speed: u64) -> NetworkFaults {
    let near = draw.of(&[20 * MICRO, 200 * MICRO, 2 * MILLI]) / speed;
    let far = near * draw.of(&[1, 3, 10]);
    NetworkFaults {
        delay: (near, far),
        jitter: draw.sometimes(&[near, 10 * near, 5 * MILLI / speed]),
        loss_ppm: draw.sometimes(&[1_000, 20_000, 100_000]),
        bad_link_percent: if draw.one_in(4) { 10 } else { 0 },
        duplicate_ppm: draw.sometimes(&[1_000, 20_000, 200_000]),
        flip_ppm: 0,
        straggler_ppm: draw.sometimes(&[1_000, 20_000, 100_000]),
        straggle: draw.of(&[20 * MILLI, 500 * MILLI, 3 * SECOND]) / speed,
        spared: 0,
        cut_drops_in_flight: draw.one_in(2),
        in_order: draw.one_in(3),
    }
}

impl NemesisSettings {
    fn draw(draw: &mut Draw, speed: u64) -> Self {
        let mut weight = || draw.of(&[0, 0, 1, 3, 9]);
        let weights: [u64; 13] = core::array::from_fn(|_| weight());
        let [
            crash,
            lose_disk,
            crash_all,
            partition,
            isolate,
            one_way,
            creep,
            pause,
            clock_jump,
            client_crash,
            disconnect,
            slow,
            hand_over,
        ] = weights;
        Self {
            interval: if draw.one_in(16) {
                0
            } else {
                draw.of(&[50 * MILLI, 200 * MILLI, 800 * MILLI]) / speed
            },
            per_operation_percent: draw.sometimes(&[1, 5]),
            duration: draw.of(&[50 * MILLI, 500 * MILLI, 2 * SECOND]) / speed,
            leader_percent: draw.of(&[0, 50, 90]),
            cut_clients_percent: 50,
            crash,
            lose_disk: lose_disk / 3,
            crash_all: crash_all / 3,
            partition,
            isolate,
            one_way,
            creep,
            pause,
            clock_jump,
            client_crash,
            disconnect,
            slow: slow / 3,
            hand_over,
            ..Self::default()
        }
    }
}

impl ProtocolSettings {
    fn draw(draw: &mut Draw, speed: u32) -> Self {
        let scaled = |millis: u64| Duration::from_micros(millis * 1_000 / u64::from(speed));
        Self {
            speed,
            patience: 1,
            order_delay: draw.of(&[
                Duration::ZERO,
                Duration::from_micros(500),
                scaled(5),
                scaled(60),
                scaled(400),
            ]),
            fetch_delay: draw.of(&[Duration::from_micros(500), scaled(5), scaled(60)]),
            batch_max: draw.of(&[1, 2, 7, 1024]),
            dlog_length_max: draw.of(&[4, 32, 262_144, 262_144]),
            waiting_max: draw.of(&[8, 262_144, 262_144]),
            log_keep_bytes: usize::MAX,
            trimming: usize::MAX,
            snapshot_log_bytes: usize::MAX,
            history_changes_max: draw.of(&[1, 10, 1_000]),
            transfer_rate: u64::MAX,
            snapshot_block_bytes: 0,
            snapshot_part_bytes: 0,
            forward_after: draw.of(&[scaled(100), scaled(1_000)]),
            session_timeout: draw.of(&[scaled(2_000), Duration::from_secs(600), Duration::from_secs(600)]),
            sync_after: draw.of(&[scaled(5), scaled(20), scaled(200)]),
            client_reconnect: draw.of(&[scaled(5), scaled(50)]),
            client_resend: draw.of(&[scaled(30), scaled(200)]),
            give_up_after: draw.of(&[scaled(1_500), scaled(10_000)]),
            ..Self::default()
        }
    }
}

impl ProtocolSettings {
    /// Nothing is refused for want of room: a world that is about something else.
    const fn lift_limits(&mut self) {
        self.dlog_length_max = 262_144;
        self.waiting_max = 262_144;
    }
}

impl Default for ProtocolSettings {
    /// The defaults of replica and client.
    fn default() -> Self {
        Self {
            speed: 1,
            patience: 1,
            order_delay: Duration::from_micros(500),
            fetch_delay: Duration::from_micros(500),
            batch_max: 1024,
            dlog_length_max: 262_144,
            waiting_max: 262_144,
            log_keep_bytes: 256 << 20,
            trimming: usize::MAX,
            snapshot_log_bytes: 256 << 20,
            history_changes_max: (4 << 20) / ChangeHistory::CHANGE_BYTES,
            transfer_rate: 100_000_000,
            snapshot_block_bytes: 256 << 10,
            snapshot_part_bytes: 256 << 10,
            forward_after: Duration::from_secs(1),
            session_timeout: Duration::from_secs(600),
            sync_after: Duration::from_millis(20),
            client_reconnect: Duration::from_millis(50),
            client_resend: Duration::from_millis(200),
            give_up_after: Duration::from_secs(10),
            sessions_max: 65_536,
            log_bytes_max: 1 << 30,
            dlog_bytes_max: 64 << 20,
            uncommitted_bytes_max: 64 << 20,
            unexecuted_bytes_max: 64 << 20,
            reply_bytes_max: REPLY_BYTES_MAX,
            completions_max: COMPLETIONS_MAX,
            batch_bytes_max: 1 << 20,
            apply_chunk: 16_384,
            transfer_bytes_max: 1 << 20,
            transfer_entries_max: 8192,
            in_flight_max: 65_536,
        }
    }
}
