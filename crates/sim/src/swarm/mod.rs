//! Swarm testing (Groce et al., ISSTA 2012): every seed draws its own world. What faults there are and
//! how many, how large the group is, how the clocks run, how tight the limits are: a single average
//! configuration would never reach the corners that a thousand lopsided ones do.

mod collections;
mod draw;
mod draw_settings;
mod engines;
mod evictions;
mod front_ends;
mod hunts;
mod settings;
mod tracking;
mod users;
mod waits;
mod watches;

pub use engines::DiskEngineSettings;
pub use front_ends::FrontEndWorld;
pub use hunts::Hunt;
pub use settings::{
    ClockSettings, DiskSettings, FormationSettings, LeaseChange, NemesisSettings, PermanentFaults,
    ProtocolSettings, RemainingLinks, Sizes,
};

pub use users::UserWorld;

pub use crate::workload::{CollectionSettings, WatchSettings, WorkloadSettings};

use crate::network::NetworkFaults;
use draw_settings::Draw;
use syros_protocol::replica::Durability;
use syros_types::{EvictionSettings, Execution, FastQuorum, Group, Protocol, ReadPolicy, WritePolicy};

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
    /// Members of the group; where it grows and shrinks, the most that it may have.
    pub replicas: usize,
    /// The group grows and shrinks.
    pub sizes: Option<Sizes>,
    /// Somebody copies the log.
    pub copies_log: bool,
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
    /// Time that the clock of an engine in memory shows executing an entry to take; true time does not go on meanwhile.
    pub execution_time: u64,
    /// Longest additional time to load a snapshot.
    pub load_delay: u64,
    /// States of engines in memory are compared after every entry whose number this divides: a look at a state takes
    /// time in proportion to it. 1, but for experiments.
    pub compare_every: u64,
    /// Most bytes that the data of engines in memory may take.
    pub maxmemory: Option<usize>,
    /// What happens when they take as many.
    pub eviction: EvictionSettings,
    /// Engines are on disk; else in memory.
    pub disk_engine: Option<DiskEngineSettings>,
    /// What the world is made for, if it is for something.
    pub hunt: Option<Hunt>,
    /// Some clients are processes with a Redis front end.
    pub front_ends: Option<FrontEndWorld>,
    /// What stays broken in a phase of its own before everything is repaired.
    pub permanent: Option<PermanentFaults>,
    /// Clients are the front ends of replicas, which answer them as soon as they have executed something.
    pub own_front_ends: bool,
    /// When everything has been repaired, service is judged.
    pub service_judged: bool,
}

/// Size of a segment: small, so that a run goes through several.
const SEGMENT_BYTES: u64 = 8 * 1024;

impl Swarm {
    /// Gives the group another size; everything else stays as it was drawn.
    pub fn resize(&mut self, group: Group) {
        if self.network.spared == self.replicas {
            self.network.spared = group.size();
        }
        self.replicas = group.size();
        self.sizes = None;
    }

    /// Has the group keep the size that it has at the beginning.
    pub fn keep_size(&mut self) {
        if let Some(Sizes { first, .. }) = self.sizes {
            self.resize(Group::new(first).expect("the swarm draws sizes that exist"));
            self.nemesis.resize = 0;
        }
    }

    /// The fewest members that the group may have.
    pub fn replicas_min(&self) -> usize {
        self.sizes.map_or(self.replicas, |sizes| sizes.smallest)
    }

    /// Takes over the settings of a protocol.
    pub fn follow(&mut self, protocol: &Protocol) {
        self.replicas = protocol.replicas(self.replicas);
        self.sizes = None;
        self.fast_quorum = protocol.fast_quorum;
        self.workload.read_policy = Some(protocol.reads);
        self.workload.write_policy = Some(protocol.writes);
        if let Some(batch) = protocol.batch {
            self.protocol.replica.batch_max = batch.into();
        }
        if let Some(engine) = &mut self.disk_engine
            && protocol.execution == Execution::Serial
        {
            engine.lanes = 1;
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

    /// A world without faults: `replicas` replicas one exact `delay` apart, clocks in step, disks that
    /// take no time. What scenarios start from.
    #[must_use]
    pub fn quiet(replicas: usize, fast_quorum: FastQuorum, durability: Durability, delay: u64) -> Self {
        Self {
            seed: 1,
            replicas,
            sizes: None,
            copies_log: false,
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
                transaction_percent: 0,
                expiring_percent: 0,
                lifetime_max: 200,
                expiring_read: false,
                collections: None,
                watches: None,
                all_keys_percent: 0,
                stale_percent: 0,
                value_bytes: 0,
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
                keep_bytes: 0,
            },
            nemesis: NemesisSettings::default(),
            formation: FormationSettings::default(),
            odd_lease: None,
            lease_change: None,
            protocol: ProtocolSettings::default(),
            service_delay: 0,
            apply_delay: 0,
            execution_time: 0,
            load_delay: 0,
            compare_every: 1,
            maxmemory: None,
            eviction: EvictionSettings::DEFAULT,
            disk_engine: None,
            hunt: None,
            front_ends: None,
            permanent: None,
            own_front_ends: false,
            service_judged: false,
        }
    }
}
