//! One member as the models see it: the real driver around the real replica, its disk; and one turn of it.
//!
//! A record is appended, is on disk, and is one that the core has been told of: three steps. Where a model does not tell
//! them apart for a member, all three are taken in the turn in which the driver has the record appended.

use crate::machine::{self, KeyValues, ModelEngine};
use crate::setup::{Bounded, DiskSteps, Setup, Time};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use syros_node::snapshots::SnapshotSizes;
use syros_node::{Execution, MemoryExecutor, Output, ReplicaDriver, data};
use syros_protocol::fingerprint::Moments;
use syros_protocol::message::{Body, LogEntry, Message, Peer, RoleName};
use syros_protocol::record::{Record, Ticket};
use syros_protocol::replica::{Boot, Config, Durability, Event, InvalidRecord, Replica, Restored};
use syros_storage::MemoryStore;
use syros_types::{
    Configuration, ConfigurationEpoch, Instant, NodeId, Now, OpNumber, ReadPolicy, Reconfiguration,
    ReplicaId, ReplicaSet, Roster, View, WallTime,
};

/// How long followers wait for their leader, in the clocks' unit. Below 8, so that there is no jitter.
pub(crate) const PATIENCE: u64 = 4;

/// Time between the heartbeats of an idle leader.
pub(crate) const HEARTBEAT: u64 = 2;

/// The replicas' wall clocks stand still.
const WALL: WallTime = WallTime(0);

/// A message with its ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Envelope {
    pub(crate) from: Peer,
    pub(crate) to: Peer,
    pub(crate) message: Message,
}

/// What can happen to a member.
#[derive(Clone, Debug)]
pub(crate) enum Input<'a> {
    Message(&'a Envelope),
    /// Timers that have ended are looked at.
    Tick,
    /// The next timer ends.
    Timeout,
    /// Records reach the disk: all, or with [`DiskSteps::Apart`] the next one.
    Flush,
    /// The core is told which records are on disk.
    Tell,
    /// What the engine was asked to execute is executed.
    Execute,
    /// It leads, and wants these members to be active.
    Activate(ReplicaSet),
    /// The process ends and starts again.
    Restart,
    /// The process ends and starts again, and its log cannot be read.
    Damage,
    /// It leads, and has these nodes become the members.
    Reconfigure(Roster),
    /// The node has been replaced, or the group is to grow by it: the one that has its place in the next configuration starts with an
    /// empty disk.
    Begin,
}

/// What drives a member's replica. The store is that of an engine on disk, which models have none of.
type Driver = ReplicaDriver<ModelEngine, MemoryStore, Envelope>;

/// A member.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    id: ReplicaId,
    driver: Driver,
    clock: Instant,
    /// It has not been started yet, and there is nobody else in its place.
    is_absent: bool,
    /// It is a node that has come into the group.
    is_new: bool,
    /// What its directory says: which node it is, and the configuration that it acts in.
    node: Option<NodeId>,
    configuration: Configuration,
    /// What has been appended to the log, and how much of it is on disk.
    records: Vec<Record>,
    written: usize,
    /// The last record's number since the process started.
    appended: Ticket,
    /// What the file of the view says, durably.
    view_file: View,
    /// An assertion failed, or the disk could not be read back.
    pub(crate) failure: Option<String>,
}

/// What invariants need to know of a member.
#[derive(Clone, Debug)]
pub(crate) struct NodeView {
    pub(crate) view: u64,
    pub(crate) role: RoleName,
    /// The active members of the last view in which it was normal.
    pub(crate) active: ReplicaSet,
    /// Hashes of the committed log up to each op number, from 1.
    pub(crate) committed: Vec<u64>,
    /// Leader: what each key holds once everything pending is executed: what a read will wait for.
    pub(crate) pending_reads: Option<KeyValues>,
    /// When the next timer ends.
    pub(crate) deadline: Instant,
    pub(crate) timer_is_due: bool,
    pub(crate) has_timer: bool,
    pub(crate) unwritten: bool,
    pub(crate) untold: bool,
    pub(crate) unexecuted: bool,
    pub(crate) failure: Option<String>,
    /// The newest configuration that it knows, if it is not the first.
    pub(crate) newest: Option<Reconfiguration>,
    /// It has not been started yet, and there is nobody else in its place.
    pub(crate) is_absent: bool,
    /// It is a node that has come into the group.
    pub(crate) is_new: bool,
}

fn config(setup: &Setup, id: ReplicaId, configuration: Configuration, node: Option<NodeId>) -> Config {
    let unit = Duration::from_nanos;
    // Long enough that it never ends.
    let never = Duration::from_secs(3600);
    let mut config = Config::new(configuration, id, machine::describe, machine::overwrites);
    config.node = node;
    config.durability = setup.durability;
    config.planted = setup.planted;
    config.open_sessions = true;
    config.settings.heartbeat = unit(HEARTBEAT);
    config.settings.lease = unit(if setup.time == Time::Leases { PATIENCE } else { 0 });
    config.settings.suspect_after = unit(PATIENCE);
    config.settings.view_change_timeout = unit(3);
    config.settings.resend = unit(1);
    config.settings.order_delay = unit(0);
    config.settings.fetch_delay = unit(0);
    config.settings.forward_after = never;
    config.settings.session_timeout = never * 24;
    config.settings.clock_skew_max = never;
    if setup.reads == ReadPolicy::Meta {
        // What is in the history is as good as what is forgotten: it is with what is forgotten that it can err.
        config.settings.history_bytes_max = 0;
    }
    // Snapshots come and go in the simulator; here the log is short.
    config.settings.slow_disk_after = never;
    config.apply_ahead = u64::from(setup.slow_engine == Some(id.0));
    config.settings.snapshot_log_bytes = usize::MAX;
    config.settings.log_keep_bytes = usize::MAX;
    config
}

/// The driver of a member's process that has just started.
fn driver(setup: &Setup, config: Config, boot: Boot, clock: Instant) -> Driver {
    let now = Now { instant: clock, wall: WALL };
    let replica = Replica::new(config, boot, now);
    let engine = MemoryExecutor::new(ModelEngine::default(), OpNumber(0));
    let execution = Execution::InMemory(Box::new(engine));
    let mut driver = Driver::new(replica, execution, SnapshotSizes::SERVER, now);
    driver.plant(setup.planted);
    driver
}

impl Node {
    /// A member of a new cluster, and what it does first; or one that is to come.
    pub(crate) fn new(setup: &Setup, id: u8) -> (Self, Vec<Envelope>) {
        let id = ReplicaId(id);
        // Not 0, which messages use for "no clock".
        let clock = Instant(1);
        let is_absent = setup.is_absent_at_first(id);
        let first = setup.configuration();
        let configuration = if is_absent { first.after(setup.next()) } else { first };
        let node = configuration.roster.node(id);
        let mut node = Self {
            id,
            is_absent,
            is_new: false,
            driver: driver(setup, config(setup, id, configuration, node), Boot::Fresh, clock),
            clock,
            node,
            configuration,
            records: Vec::new(),
            written: 0,
            appended: Ticket(0),
            view_file: View(0),
            failure: None,
        };
        let mut sent = Vec::new();
        node.drain(setup, None, &mut sent);
        if is_absent {
            // It does nothing before it starts.
            sent.clear();
        }
        (node, sent)
    }

    /// One turn: an event, and everything that follows from it here. `now`: if all clocks are one.
    pub(crate) fn turn(
        &self,
        setup: &Setup,
        input: &Input<'_>,
        now: Option<Instant>,
    ) -> (Self, Vec<Envelope>) {
        let mut node = self.clone();
        let mut sent = Vec::new();
        let ran = catch_unwind(AssertUnwindSafe(|| node.run(setup, input, now, &mut sent)));
        if let Err(panic) = ran {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            node = self.clone();
            node.failure = Some(text.unwrap_or_else(|| "an assertion failed".to_owned()));
            sent.clear();
        }
        (node, sent)
    }

    fn run(&mut self, setup: &Setup, input: &Input<'_>, now: Option<Instant>, sent: &mut Vec<Envelope>) {
        if let Some(now) = now {
            self.clock = self.clock.max(now);
        }
        let disk = setup.slow_disk.filter(|(member, _)| *member == self.id.0).map(|(_, steps)| steps);
        match input {
            Input::Message(envelope) => {
                if setup.time == Time::Clocks && matches!(envelope.message, Message::Read { .. }) {
                    // Time has passed since this leader last said anything.
                    self.clock.0 += 1;
                }
                let (from, message) = (envelope.from, envelope.message.clone());
                self.handle(Event::Message { from, message });
            }
            Input::Tick => self.handle(Event::Tick),
            Input::Timeout => {
                self.clock = self.clock.max(self.replica().deadline());
                self.handle(Event::Tick);
            }
            Input::Flush => self.flush(disk, sent),
            Input::Tell => self.tell(),
            Input::Execute => {
                let now = self.now();
                self.driver.resume(u64::MAX, now, || now.instant, &mut ());
                self.driver.pause();
            }
            Input::Activate(active) => {
                let now = self.now();
                self.driver.want_active_members(now, *active);
            }
            Input::Reconfigure(roster) => {
                let now = self.now();
                self.driver.replace_members(now, *roster);
            }
            Input::Begin => {
                (self.is_absent, self.is_new) = (false, true);
                self.configuration = setup.begins_in();
                self.node = setup.next().roster.node(self.id);
                (self.records, self.written, self.appended) = (Vec::new(), 0, Ticket(0));
                self.view_file = View(0);
                let config = config(setup, self.id, self.configuration, self.node);
                self.driver = driver(setup, config, Boot::Fresh, self.clock);
            }
            Input::Restart | Input::Damage => {
                if let Err(problem) = self.restart(setup, matches!(input, Input::Damage)) {
                    self.failure = Some(format!("the log cannot be read back: {problem}"));
                    return;
                }
            }
        }
        self.drain(setup, disk, sent);
    }

    const fn now(&self) -> Now {
        Now { instant: self.clock, wall: WALL }
    }

    const fn replica(&self) -> &Replica {
        self.driver.replica()
    }

    fn handle(&mut self, event: Event) {
        self.driver.handle(self.now(), event);
    }

    /// The process starts again with what is on disk.
    fn restart(&mut self, setup: &Setup, is_damaged: bool) -> Result<(), InvalidRecord> {
        let config = config(setup, self.id, self.configuration, self.node);
        self.records.truncate(self.written);
        if is_damaged {
            self.records = vec![Record::Forgot { view: self.view_file }];
            self.written = 1;
        }
        self.appended = Ticket(0);
        let mut restored = Restored::new(&config, []);
        for (number, record) in (1..).zip(&self.records) {
            restored.replay(number, record.clone())?;
        }
        self.view_file = self.view_file.max(restored.view());
        let boot = data::boot(setup.durability, false, restored, self.view_file);
        self.driver = driver(setup, config, boot, self.clock);
        Ok(())
    }

    /// Does what the driver asks for until it asks for nothing more. `disk`: if records do not reach it in this turn.
    fn drain(&mut self, setup: &Setup, disk: Option<DiskSteps>, sent: &mut Vec<Envelope>) {
        let now = self.now();
        if setup.slow_engine != Some(self.id.0) {
            self.driver.resume(u64::MAX, now, || now.instant, &mut ());
        }
        loop {
            while let Some(output) = self.driver.poll(now, || now.instant, &mut ()) {
                self.carry_out(setup, disk, output, sent);
            }
            if disk.is_some() || !self.driver.has_news() {
                break;
            }
            self.tell();
            if setup.durability == Durability::Replicated {
                // Only the newest view is ever read back.
                self.records.drain(..self.records.len() - 1);
                self.written = self.records.len();
            }
        }
        self.driver.pause();
    }

    fn carry_out(
        &mut self,
        setup: &Setup,
        disk: Option<DiskSteps>,
        output: Output<MemoryStore>,
        sent: &mut Vec<Envelope>,
    ) {
        match output {
            Output::Send { to, message } => sent.push(self.envelope(setup, to, message)),
            Output::SendAfter { after, to, message } => {
                let held = self.envelope(setup, to, message);
                self.driver.hold(after, held);
            }
            Output::Answer { to, message } | Output::Evaluated { to, message } => {
                sent.push(Envelope { from: Peer::Replica(self.id), to, message });
            }
            Output::NoteView(view) => self.view_file = view,
            Output::NoteConfiguration(configuration) => self.configuration = *configuration,
            Output::Append { ticket, record } => {
                self.appended = ticket;
                self.records.push(record);
                if disk.is_none() {
                    self.flush(disk, sent);
                }
            }
            Output::Read(job) => {
                if let Some((to, message)) = self.driver.read(self.now(), job) {
                    sent.push(Envelope { from: Peer::Replica(self.id), to, message });
                }
            }
            Output::Nothing | Output::Notice(_) | Output::Trace(_) => {}
            Output::SnapshotJobs
            | Output::RemoveBefore(_)
            | Output::DropKept
            | Output::ReadEntries(_)
            | Output::Adopted { .. }
            | Output::Deal
            | Output::Flush(_)
            | Output::Counted(..)
            | Output::PutTogether(_) => {
                unreachable!("a model has no snapshots, no engine on disk, and no long reads")
            }
        }
    }

    /// Records reach the disk, and what waits for them leaves, as the thread of the log sends it.
    fn flush(&mut self, disk: Option<DiskSteps>, sent: &mut Vec<Envelope>) {
        self.written = match disk {
            Some(DiskSteps::Apart) => self.records.len().min(self.written + 1),
            Some(DiskSteps::Together) | None => self.records.len(),
        };
        self.driver.on_durable(Ticket(self.appended.0 - (self.records.len() - self.written) as u64));
        sent.extend(std::iter::from_fn(|| self.driver.pop_held()));
        if disk == Some(DiskSteps::Together) {
            self.tell();
        }
    }

    fn tell(&mut self) {
        self.driver.tell_durable(self.now());
    }

    fn envelope(&self, setup: &Setup, to: Peer, mut message: Message) -> Envelope {
        if setup.time == Time::Timers
            && let Message::Prepare { sent_at, .. } | Message::Commit { sent_at, .. } = &mut message
        {
            // Without leases and reads nothing depends on it.
            *sent_at = Instant(0);
        }
        Envelope { from: Peer::Replica(self.id), to, message }
    }

    /// Two members with the same fingerprint behave alike.
    pub(crate) fn fingerprint(&self, setup: &Setup) -> u64 {
        let moments = if setup.time == Time::Timers { Moments::Remaining } else { Moments::Absolute };
        let mut hasher = DefaultHasher::new();
        self.id.hash(&mut hasher);
        self.driver.fingerprint(moments, &mut hasher);
        (&self.failure, self.is_absent, self.is_new, self.node, self.configuration).hash(&mut hasher);
        if setup.durability == Durability::Fsync {
            (&self.records, self.written).hash(&mut hasher);
        } else {
            self.records.hash(&mut hasher);
        }
        if setup.budget.left(Bounded::Damage) > 0 {
            // Elsewhere the log says it as well whenever it is asked.
            self.view_file.hash(&mut hasher);
        }
        hasher.finish()
    }

    pub(crate) fn view(&self) -> NodeView {
        let (status, deadline) = (self.replica().status(), self.replica().deadline());
        let mut hasher = DefaultHasher::new();
        let committed = (1..=status.commit).map(|number| {
            self.replica().entry(OpNumber(number)).hash(&mut hasher);
            hasher.finish()
        });
        NodeView {
            view: status.view,
            role: status.role,
            active: self.replica().rule().active,
            committed: committed.collect(),
            pending_reads: (status.role == RoleName::Leader).then(|| self.pending_reads(status.op_number)),
            deadline,
            timer_is_due: deadline <= self.clock,
            has_timer: deadline != Instant::NEVER,
            unwritten: self.written < self.records.len(),
            untold: self.driver.has_news(),
            unexecuted: self.engine().has_work(),
            failure: self.failure.clone(),
            newest: Some(self.replica().newest_configuration())
                .filter(|known| known.epoch > ConfigurationEpoch::FIRST),
            is_absent: self.is_absent,
            is_new: self.is_new,
        }
    }

    /// What each key holds once log and durability log are executed.
    fn pending_reads(&self, op_number: u64) -> KeyValues {
        let mut engine = *self.engine().engine();
        for number in self.replica().applied().0 + 1..=op_number {
            for update in self.replica().entry(OpNumber(number)).updates() {
                engine.execute(&update.request.body);
            }
        }
        let unordered =
            self.replica().accepted().filter(|update| !self.replica().is_ordered(update.request.id));
        for update in unordered {
            engine.execute(&update.request.body);
        }
        engine.0
    }

    const fn engine(&self) -> &MemoryExecutor<ModelEngine> {
        self.driver.memory().expect("the engine of a model is in memory")
    }

    #[cfg(test)]
    pub(crate) const fn peer(&self) -> Peer {
        Peer::Replica(self.id)
    }

    /// The whole log and what else a reader of a counterexample wants to see.
    pub(crate) fn log(&self) -> Vec<&LogEntry> {
        (1..=self.replica().status().op_number).map(|number| self.replica().entry(OpNumber(number))).collect()
    }

    pub(crate) fn accepted(&self) -> Vec<Body> {
        let unordered =
            self.replica().accepted().filter(|update| !self.replica().is_ordered(update.request.id));
        unordered.map(|update| update.request.body.clone()).collect()
    }

    pub(crate) fn commit(&self) -> u64 {
        self.replica().commit().0
    }
}
