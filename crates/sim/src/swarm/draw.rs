//! Draws a whole world from its seed: each concern from a stream of random numbers of its own.

use super::draw_settings::{Draw, draw_network};
use super::{
    ClockSettings, DiskSettings, FormationSettings, Hunt, LeaseChange, MICRO, MILLI, NemesisSettings,
    PermanentFaults, ProtocolSettings, RemainingLinks, SEGMENT_BYTES, Swarm, WorkloadSettings, engines,
};
use crate::workload::{ALL_KEYS_MAX, ALL_KEYS_OPERATIONS_MAX};
use core::time::Duration;
use syros_protocol::replica::Durability;
use syros_types::{EvictionSettings, FastQuorum, Group, Prng, Protocol, ReadPolicy, WritePolicy};

impl Swarm {
    /// The world of this seed. In one of three, engines are on disk.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        if engines::are_on_disk(seed) { Self::draw_on_disk(seed) } else { Self::draw_in_memory(seed) }
    }

    /// In one world of three where some client chooses its way, leaders change their minds about it. Rolled apart.
    pub(super) fn draw_advice(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0041));
        let chooses = matches!(self.workload.write_policy, None | Some(WritePolicy::Auto));
        if chooses && draw.one_in(3) {
            self.nemesis.advice = draw.of(&[1, 3, 9]);
        }
    }

    /// In one world of two of three replicas, clients have followers answer them however near all are, for times of all lengths. Rolled apart.
    pub(super) fn draw_direct_answers(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0043));
        if self.replicas == 3 && draw.one_in(2) {
            self.protocol.direct_gain_min = Duration::ZERO;
            self.protocol.direct_lasting = Duration::from_millis(10 << (2 * draw.0.below(5)));
        }
    }

    /// In one world of four whose mode can be changed, it is, again and again. Rolled apart.
    pub(super) fn draw_change_of_mode(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0042));
        if self.fast_quorum.is_changeable() && draw.one_in(4) {
            self.nemesis.change_mode = draw.of(&[1, 3, 9]);
            if self.fast_quorum != FastQuorum::Mixed {
                self.with_mode(FastQuorum::Mixed, &mut draw);
            }
        }
    }

    /// Has updates that return state where a mode that the group may come to have lets them be fast.
    fn with_mode(&mut self, mode: FastQuorum, draw: &mut Draw) {
        let own = core::mem::replace(&mut self.fast_quorum, mode);
        self.draw_returning(draw);
        self.fast_quorum = own;
    }

    /// In one world of six some reads are stale. Rolled apart.
    pub(super) fn draw_stale(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0015));
        if draw.one_in(6) {
            self.workload.stale_percent = draw.of(&[20, 60]);
        }
    }

    /// In one world of six some operations concern all keys, unless the world has too many keys for that. Rolled apart.
    pub(super) fn draw_all_keys(&mut self) {
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

    /// In one world of six some operations are transactions. They join the histories of their keys like operations on all
    /// keys, and have the same limits. Rolled apart.
    pub(super) fn draw_transactions(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0045));
        let workload = &mut self.workload;
        if self.hunt.is_none() && draw.one_in(6) && workload.keys <= ALL_KEYS_MAX {
            workload.transaction_percent = draw.of(&[5, 15, 40]);
            let most = workload.operations.min(ALL_KEYS_OPERATIONS_MAX);
            workload.operations = most;
            self.nemesis.ruin_at = self.nemesis.ruin_at.map(|at| at.min(most.saturating_sub(1)));
        }
    }

    /// The world that this seed has, or would have if its engines were in memory.
    #[must_use]
    pub fn draw_in_memory(seed: u64) -> Self {
        let mut swarm = Self::draw_wherever(seed);
        // An engine on disk evicts nothing.
        swarm.draw_evictions();
        swarm.draw_users();
        swarm.draw_sizes();
        swarm
    }

    /// In one world of four somebody copies snapshots. Rolled apart.
    pub(super) fn draw_copies_of_snapshots(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0053));
        if draw.one_in(4) {
            self.nemesis.copy_snapshot = draw.of(&[2, 8, 32]);
        }
    }

    /// In one world of four, one kind of message is held back for a while, again and again. Rolled apart.
    pub(super) fn draw_holds(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_005e));
        if self.nemesis.interval > 0 && draw.one_in(4) {
            self.nemesis.hold_kind = draw.of(&[3, 9, 27]);
        }
    }

    /// What the world of this seed has wherever its engines are.
    pub(super) fn draw_wherever(seed: u64) -> Self {
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
            sizes: None,
            copies_log: false,
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
                keep_bytes: 0,
            },
            nemesis,
            formation: FormationSettings::default(),
            odd_lease: None,
            lease_change: None,
            protocol,
            service_delay: draw.sometimes(&[10 * MICRO, 300 * MICRO]),
            apply_delay: draw.sometimes(&[20 * MICRO, 2 * MILLI]),
            execution_time: 0,
            load_delay: 0,
            compare_every: 1,
            maxmemory: None,
            eviction: EvictionSettings::DEFAULT,
            disk_engine: None,
            hunt,
            front_ends: None,
            permanent: None,
            own_front_ends: false,
            service_judged: false,
        };
        swarm.make_for(hunt, &mut draw);
        swarm.draw_disturbances();
        swarm.draw_commutation();
        swarm.draw_mixed();
        swarm.draw_thrift();
        swarm.draw_damage();
        swarm.draw_last_phases();
        swarm.draw_limits();
        swarm.draw_budgets();
        swarm.draw_own_front_ends();
        swarm.draw_formation();
        swarm.draw_clock_hunt();
        swarm.draw_odd_lease();
        swarm.draw_all_keys();
        swarm.draw_stale();
        swarm.draw_session_table();
        swarm.draw_front_ends();
        swarm.draw_polls();
        swarm.draw_size();
        swarm.draw_advice();
        swarm.draw_direct_answers();
        swarm.draw_change_of_mode();
        swarm.draw_replacements();
        swarm.draw_collections();
        swarm.draw_transactions();
        swarm.draw_watches();
        swarm.draw_waits();
        swarm.draw_tracking();
        swarm.draw_copies_of_snapshots();
        swarm.draw_execution_time();
        swarm.draw_suspicion();
        swarm.draw_holds();
        // Rolled apart, too.
        swarm.copies_log = Draw(Prng::new(seed ^ 0x5397_0a11_5eed_0057)).one_in(3);
        if swarm.copies_log {
            let mut draw = Draw(Prng::new(seed ^ 0x5397_0a11_5eed_005a));
            swarm.disk.keep_bytes = draw.of(&[0, 3_000, u64::MAX, u64::MAX]);
        }
        swarm
    }

    /// In one world of eight, leaders are suspected and view changes given up sooner or later than is usual, and not both alike, as
    /// operators may set them. Rolled apart.
    pub(super) fn draw_suspicion(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_005c));
        if draw.one_in(8) {
            let settings = &mut self.protocol.replica;
            settings.suspect_after *= draw.of(&[1, 2, 4]) as u32;
            settings.view_change_timeout = settings.view_change_timeout * draw.of(&[1, 2, 4, 8]) as u32 / 2;
        }
    }

    /// In one world of eight, the session tables have little room for replies, and in one of eight for completions. Rolled
    /// apart.
    pub(super) fn draw_session_table(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0025));
        if draw.one_in(8) {
            // A small reply counts for some 20 bytes.
            self.protocol.replica.reply_bytes_max = draw.of(&[0, 10, 50, 200]);
        }
        if draw.one_in(8) {
            self.protocol.replica.completions_max = draw.of(&[0, 3, 10, 30]);
        }
    }

    /// In one of four worlds that are about leases, one replica has a much longer one; in half of the others, all have, until
    /// they are started again one by one. Rolled apart. Corrected, the odd one is started again, which it must survive.
    pub(super) fn draw_odd_lease(&mut self) {
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
    pub(super) fn draw_formation(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0012));
        if self.replicas == 1 || !draw.one_in(8) {
            return;
        }
        self.nemesis.bootstrap = draw.of(&[1, 4, 12]);
        if draw.one_in(3) {
            self.formation.unformed = Some(draw.0.below(self.replicas as u64 / 2 + 1) as usize);
        }
    }

    /// In one world of five, nodes are replaced. Rolled apart.
    pub(super) fn draw_replacements(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0050));
        if self.replicas > 1
            && self.nemesis.bootstrap == 0
            && self.nemesis.ruin_at.is_none()
            && draw.one_in(5)
        {
            self.nemesis.replace_node = draw.of(&[2, 6, 20]);
        }
    }

    /// In one world of five, the group grows and shrinks, but where something else is about which nodes there are. Rolled apart.
    pub(super) fn draw_sizes(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0055));
        let is_about_nodes =
            self.nemesis.bootstrap > 0 || self.nemesis.ruin_at.is_some() || self.formation.unformed.is_some();
        if is_about_nodes || self.nemesis.interval == 0 || !draw.one_in(5) {
            return;
        }
        let smallest = self.replicas.min(7);
        let steps = if draw.one_in(3) { 2 } else { 1 };
        let largest = (smallest + 2 * steps).min(Group::SIZE_MAX);
        let first = smallest + 2 * draw.0.below((largest - smallest) as u64 / 2 + 1) as usize;
        self.resize(Group::new(largest).expect("it is odd, and no more than nine"));
        self.sizes = Some(super::Sizes { smallest, first, older_builds: false });
        self.nemesis.resize = draw.of(&[6, 20, 60]);
        // Rolled apart. The first view of a configuration is a short time after it has been adopted.
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_005d));
        self.nemesis.per_adoption_percent = draw.of(&[0, 0, 15, 50]);
    }

    /// In one world of four, bits flip on the network; in one of four, somebody tries to use the sessions of others. Rolled
    /// apart.
    pub(super) fn draw_damage(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0010));
        if draw.one_in(4) {
            self.network.flip_ppm = draw.of(&[1_000, 20_000]);
        }
        if draw.one_in(4) {
            self.protocol.replica.digest_entries = draw.of(&[4, 32]);
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

    /// In one world of eight all clients send updates to no more replicas than they have to: from dice of its own.
    pub(super) fn draw_thrift(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0006));
        if self.hunt.is_none() && draw.one_in(8) {
            self.workload.write_policy = Some(WritePolicy::Thrifty);
        }
    }

    /// In one world of four some replicas stay dead, and some links cut, while clients must be served: from dice of its own.
    pub(super) fn draw_last_phases(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_000d));
        if draw.one_in(4) {
            self.draw_permanent();
        }
    }

    /// Gives the world permanent faults, from dice of their own.
    pub fn draw_permanent(&mut self) {
        // A front end that shares the process of a dead replica serves nobody.
        self.front_ends = None;
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0009));
        // Where a fast quorum is not to be had, a client must get its update ordered before its session ends.
        let protocol = &mut self.protocol;
        protocol.sync_after = protocol.sync_after.min(protocol.replica.session_timeout / 8);
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
        if Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0044)).one_in(4) {
            self.make_sources_die();
        }
    }

    /// Has leaders die while others fetch from them.
    pub(super) fn make_sources_die(&mut self) {
        if let Some(permanent) = &mut self.permanent {
            permanent.chases = true;
            permanent.rounds = permanent.rounds.max(4);
            self.protocol.replica.transfer_entries_max = 1;
        }
    }

    /// In one world of four some limits are so small that they are reached, from dice of its own.
    pub(super) fn draw_limits(&mut self) {
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
        bytes(&mut protocol.replica.dlog_bytes_max, &[150, 400, 2_000]);
        bytes(&mut protocol.replica.uncommitted_bytes_max, &[200, 800, 4_000]);
        bytes(&mut protocol.replica.unexecuted_bytes_max, &[200, 800, 4_000]);
        bytes(&mut protocol.replica.batch_bytes_max, &[1, 100, 500]);
        bytes(&mut protocol.replica.transfer_bytes_max, &[1, 150, 1_000]);
        bytes(&mut protocol.in_flight_max, &[1, 2, 4]);
        if draw.one_in(3) {
            protocol.replica.apply_chunk = draw.of(&[1, 2, 5]);
        }
        if draw.one_in(3) {
            protocol.replica.transfer_entries_max = draw.of(&[1, 2, 10]);
        }
        // Log time that is seconds ahead keeps the sessions of clients that are gone: until the clocks have come that far,
        // nobody new would get in.
        if draw.one_in(6) && self.nemesis.end_sessions + self.nemesis.clock_jump == 0 {
            protocol.replica.sessions_max = self.workload.clients + draw.between(2, 6) as usize;
            // Those of clients that are gone have to end, or nobody new gets in.
            protocol.replica.session_timeout = Duration::from_millis(2_000) / protocol.speed;
        }
    }

    /// One world of eight has little memory for its data, or disks that fill up, or both: updates are refused then, and
    /// must be nowhere. Rolled apart.
    pub(super) fn draw_budgets(&mut self) {
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

    /// In one world of four, clients are the front ends of replicas, which answer them as soon as they have executed
    /// something: from dice of their own.
    pub(super) fn draw_own_front_ends(&mut self) {
        self.own_front_ends = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0018)).one_in(4);
    }

    /// One world of ten is about clocks, from dice of its own.
    pub(super) fn draw_clock_hunt(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_000b));
        if draw.one_in(10) {
            self.hunt = Some(Hunt::Clocks);
            self.become_clock_hunt(&mut draw);
        }
    }

    pub(super) const fn commutation_dice(seed: u64) -> Draw {
        Draw(Prng::new(seed ^ 0x5397_0a11_5eed_0005))
    }

    /// Half of the worlds in supermajority mode let updates that commute be fast too: from dice of their own, so that
    /// all others are as they would be without.
    pub(super) fn draw_commutation(&mut self) {
        use FastQuorum::{Commutative, NilextOrCommutative, Supermajority};
        if self.fast_quorum == Supermajority {
            let mut draw = Self::commutation_dice(self.seed);
            self.fast_quorum = draw.of(&[Supermajority, Supermajority, NilextOrCommutative, Commutative]);
            self.draw_returning(&mut draw);
        }
    }

    /// One of three worlds counts by the mixed mode: from dice of its own, so that all others are as they would be without.
    pub(super) fn draw_mixed(&mut self) {
        let mut draw = Self::mixed_dice(self.seed);
        if draw.one_in(3) {
            self.fast_quorum = FastQuorum::Mixed;
            self.draw_returning(&mut draw);
        }
    }

    const fn mixed_dice(seed: u64) -> Draw {
        Draw(Prng::new(seed ^ 0x5397_0a11_5eed_0026))
    }

    /// Has the world count by the mixed mode, as one of three does.
    pub fn become_mixed(&mut self) {
        self.fast_quorum = FastQuorum::Mixed;
        self.draw_returning(&mut Self::mixed_dice(self.seed));
    }

    /// In one world of eight, executing an entry takes seconds, as far as the engine's clock can tell. Rolled apart.
    pub(super) fn draw_execution_time(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_005b));
        if draw.one_in(8) {
            self.execution_time = draw.of(&[400 * MILLI, 2_000 * MILLI]);
        }
    }

    /// Where updates that return state may be fast, there are some.
    pub(super) fn draw_returning(&mut self, draw: &mut Draw) {
        let returning = [FastQuorum::NilextOrCommutative, FastQuorum::Commutative, FastQuorum::Mixed];
        if returning.contains(&self.fast_quorum) {
            // INCRBY, APPEND, GETSET, SETNX and DEL with their replies.
            for kind in [2, 4, 5, 6, 10] {
                self.workload.weights[kind] += draw.sometimes(&[1, 4]);
            }
        }
    }

    /// What comes on top, from dice of its own, so that a world is the same but for this. A hunt is left to
    /// what it is after, but for one in eight.
    pub(super) fn draw_disturbances(&mut self) {
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
    pub(super) fn draw_snapshots(&mut self, draw: &mut Draw) {
        if self.hunt == Some(Hunt::Snapshots) || draw.one_in(2) {
            return;
        }
        let speed = u64::from(self.protocol.speed);
        let protocol = &mut self.protocol;
        // An entry takes about 150 bytes.
        protocol.replica.log_keep_bytes = draw.of(&[0, 500, 3_000, 10_000]);
        protocol.replica.snapshot_log_bytes = draw.of(&[100, 1_000, 5_000, usize::MAX]);
        protocol.replica.transfer_rate = draw.of(&[u64::MAX, 1_000_000, 50_000]).saturating_mul(speed);
        protocol.snapshot_block_bytes = draw.of(&[1, 100, 100_000]);
        protocol.snapshot_part_bytes = draw.of(&[100, 1_000, 100_000]);
        // What is not needed any more goes by whole segments.
        self.disk.segment_bytes = draw.of(&[100, 1_000, SEGMENT_BYTES]);
    }
}
