//! What a replica does with an update, as a span with one span for each stage.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use syros_protocol::message::{LogEntry, Message, Prepared};
use syros_protocol::record::Record;
use syros_traces::{Span, SpanKind, Stage, TraceId, Value, parent_of, span_of};
use syros_types::{Instant, Now, OpNumber, OperationId, ReplicaId, View};
use syros_wal::RecordNumber;

use super::{FOLLOWED_MAX, SyncTimes, Tracing};

/// Updates that have ended here of late. A request that was sent again and comes only now is not taken for a new one. Of one
/// connection fewer are in flight that are traced.
const ENDED_MAX: usize = 256;

/// Answers of a replica to one update that are told: `Ok` and `Committed`, and one that was sent again.
const ANSWERS_MAX: usize = 3;

/// An update that has not been executed after this long is told as far as it has come: its client has given it up.
const PATIENCE: Duration = Duration::from_secs(30);

/// As [`PATIENCE`], of an update that was refused: the leader may have taken it, and order it.
const REFUSED_PATIENCE: Duration = Duration::from_secs(1);

/// How often those are looked for.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What a replica is when an update ends there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) is_leader: bool,
    pub(crate) view: View,
}

/// A record that the update waits for.
#[derive(Clone, Copy, Debug)]
struct Written {
    at: Instant,
    record: RecordNumber,
    durable: Option<Instant>,
}

/// An answer.
#[derive(Clone, Copy, Debug)]
struct Answer {
    kind: &'static str,
    made: Instant,
    /// It leaves when this record is durable.
    after: Option<RecordNumber>,
    left: Option<Instant>,
}

/// An update that this replica has to do with.
#[derive(Clone, Debug)]
struct Followed {
    trace: TraceId,
    received: Instant,
    /// The update itself.
    accept: Option<Written>,
    /// The entry that orders it, where entries are logged.
    append: Option<Written>,
    ordered: Option<Instant>,
    number: Option<OpNumber>,
    committed: Option<Instant>,
    executed: Option<Instant>,
    answers: Vec<Answer>,
    is_refused: bool,
}

impl Followed {
    const fn new(trace: TraceId, received: Instant) -> Self {
        Self {
            trace,
            received,
            accept: None,
            append: None,
            ordered: None,
            number: None,
            committed: None,
            executed: None,
            answers: Vec::new(),
            is_refused: false,
        }
    }

    /// The first record that it waits for.
    fn awaited(&self) -> Option<RecordNumber> {
        let records = [self.accept, self.append].into_iter().flatten();
        let records = records.filter(|written| written.durable.is_none()).map(|written| written.record);
        let answers = self.answers.iter().filter(|answer| answer.left.is_none());
        records.chain(answers.filter_map(|answer| answer.after)).min()
    }

    /// Notes which of its records are durable: all up to `persisted`, of each since when `at` says.
    fn note_durable(&mut self, persisted: RecordNumber, at: impl Fn(RecordNumber) -> Instant) {
        for written in [&mut self.accept, &mut self.append].into_iter().flatten() {
            if written.record <= persisted && written.durable.is_none() {
                written.durable = Some(at(written.record).max(written.at));
            }
        }
        for answer in &mut self.answers {
            if let Some(after) = answer.after.filter(|after| *after <= persisted && answer.left.is_none()) {
                answer.left = Some(at(after).max(answer.made));
            }
        }
    }

    /// True if nothing more comes of it here, or nobody waits for that any more.
    fn is_over(&self, now: Instant, has_log: bool) -> bool {
        let is_executed = self.executed.is_some() && self.awaited().is_none();
        let has_begun = self.accept.is_some() || self.ordered.is_some();
        // Without a log it is not known what becomes of an update that is in no Prepare, as in a group of one.
        let is_brief = !has_begun && (self.is_refused || !has_log);
        let patience = if is_brief { REFUSED_PATIENCE } else { PATIENCE };
        is_executed || now.since(self.received) >= patience
    }

    /// The stages that have begun and ended, with their times.
    fn stages(&self) -> impl Iterator<Item = (Stage, Instant, Instant)> {
        let durable =
            |written: Option<Written>| written.and_then(|written| Some((written.at, written.durable?)));
        let ordered = self.ordered;
        [
            (Stage::Accept, durable(self.accept)),
            (Stage::Order, ordered.map(|ordered| (self.received, ordered))),
            (Stage::Append, durable(self.append)),
            (Stage::Commit, ordered.zip(self.committed)),
            (Stage::Execute, self.committed.zip(self.executed)),
        ]
        .into_iter()
        .filter_map(|(stage, times)| times.map(|(start, end)| (stage, start, end.max(start))))
    }
}

/// Updates of this replica that are traced.
#[derive(Debug)]
pub(crate) struct ReplicaTraces {
    tracing: Tracing,
    me: ReplicaId,
    /// The number of the node, which no other node has.
    node: u64,
    syncs: Arc<SyncTimes>,
    /// Updates and entries are logged before they are acknowledged.
    has_log: bool,
    /// Those that have not ended. [`FOLLOWED_MAX`] is their limit.
    followed: HashMap<OperationId, Followed>,
    ended: VecDeque<OperationId>,
    /// The first record that any of them waits for.
    awaited: Option<RecordNumber>,
    /// Up to where all were committed and executed when that was looked at last.
    progress: (OpNumber, OpNumber),
    /// One of them may have ended.
    has_news: bool,
    look_at: Instant,
}

impl ReplicaTraces {
    pub(crate) fn new(
        tracing: Tracing,
        me: ReplicaId,
        node: u64,
        syncs: Arc<SyncTimes>,
        has_log: bool,
    ) -> Self {
        Self {
            tracing,
            me,
            node,
            syncs,
            has_log,
            followed: HashMap::new(),
            ended: VecDeque::new(),
            awaited: None,
            progress: (OpNumber(0), OpNumber(0)),
            has_news: false,
            look_at: Instant(0),
        }
    }

    /// What the log's thread notes for it.
    pub(crate) const fn syncs(&self) -> &Arc<SyncTimes> {
        &self.syncs
    }

    /// The update, which is followed from now on if it is new.
    fn follow(&mut self, id: OperationId, trace: TraceId, now: Instant) -> Option<&mut Followed> {
        if !self.followed.contains_key(&id) {
            if self.ended.contains(&id) {
                return None;
            }
            if self.followed.len() >= FOLLOWED_MAX {
                self.tracing.sink().note_untraced();
                return None;
            }
        }
        Some(self.followed.entry(id).or_insert_with(|| Followed::new(trace, now)))
    }

    /// A client has sent an update.
    pub(crate) fn on_request(&mut self, now: Instant, id: OperationId) {
        if let Some(trace) = self.tracing.of_update(id) {
            self.follow(id, trace, now);
        }
    }

    /// A record is about to be appended to the log.
    pub(crate) fn on_record(&mut self, now: impl Fn() -> Instant, record: &Record, number: RecordNumber) {
        match record {
            Record::Accept(request) => self.on_accept(&now, request.id, number),
            Record::Append { first, entries, .. } => self.on_ordered(&now, *first, entries, Some(number)),
            Record::Transfer { base, entries } => self.on_entries(&now, *base, entries, number),
            Record::EnterView { base, suffix, .. } => self.on_entries(&now, *base, suffix, number),
            Record::View { .. } | Record::Checkpoint(_) | Record::Forgot { .. } => {}
        }
    }

    /// Entries are sent to a follower, or have come from the leader: where nothing is logged, that is how they are ordered.
    pub(crate) fn on_prepare(&mut self, now: impl Fn() -> Instant, first: OpNumber, entries: &[Prepared]) {
        if !self.has_log {
            self.on_ordered(now, first, entries, None);
        }
    }

    fn on_ordered(
        &mut self,
        now: impl Fn() -> Instant,
        first: OpNumber,
        entries: &[Prepared],
        record: Option<RecordNumber>,
    ) {
        let ids = entries.iter().map(|entry| match entry {
            Prepared::Reference { id, .. } => Some(*id),
            Prepared::Full(request) => Some(request.id),
            _ => None,
        });
        for (place, id) in (first.0..).zip(ids) {
            if let Some(id) = id
                && let Some(trace) = self.tracing.of_update(id)
            {
                self.on_entry(&now, (id, trace), OpNumber(place), record);
            }
        }
    }

    fn on_accept(&mut self, now: impl Fn() -> Instant, id: OperationId, record: RecordNumber) {
        let Some(trace) = self.tracing.of_update(id) else { return };
        let at = now();
        if let Some(followed) = self.follow(id, trace, at)
            && followed.accept.is_none()
        {
            followed.accept = Some(Written { at, record, durable: None });
            self.wait_for(record);
        }
    }

    fn on_entry(
        &mut self,
        now: impl Fn() -> Instant,
        (id, trace): (OperationId, TraceId),
        number: OpNumber,
        record: Option<RecordNumber>,
    ) {
        let at = now();
        let Some(followed) = self.follow(id, trace, at) else { return };
        // A later view may order it anew.
        if followed.number != Some(number) && followed.executed.is_none() {
            (followed.number, followed.ordered) = (Some(number), Some(at));
            followed.append = record.map(|record| Written { at, record, durable: None });
            followed.committed = None;
            record.into_iter().for_each(|record| self.wait_for(record));
        }
    }

    /// Entries have come all at once. They are many, and of long ago, so only those are looked at that are followed already.
    fn on_entries(
        &mut self,
        now: impl Fn() -> Instant,
        base: OpNumber,
        entries: &[LogEntry],
        record: RecordNumber,
    ) {
        if self.followed.is_empty() {
            return;
        }
        for (number, entry) in (base.0 + 1..).zip(entries) {
            for update in entry.updates() {
                let id = update.request.id;
                if let Some(trace) = self.followed.get(&id).map(|followed| followed.trace) {
                    self.on_entry(&now, (id, trace), OpNumber(number), Some(record));
                }
            }
        }
    }

    fn wait_for(&mut self, record: RecordNumber) {
        if self.awaited.is_none_or(|awaited| awaited > record) {
            self.awaited = Some(record);
            self.syncs.wait_for(self.awaited);
        }
    }

    /// A message leaves for a client: at once, or when a record is durable.
    pub(crate) fn on_answer(
        &mut self,
        now: impl Fn() -> Instant,
        message: &Message,
        after: Option<RecordNumber>,
    ) {
        if self.followed.is_empty() {
            return;
        }
        let (id, kind) = match message {
            Message::Ok { id, .. } => (id, "ok"),
            Message::Conflict { id, .. } => (id, "conflict"),
            Message::Evaluated { id, .. } => (id, "evaluated"),
            Message::Committed { id, .. } => (id, "committed"),
            Message::Refused { id, .. } => (id, "refused"),
            _ => return,
        };
        let Some(followed) = self.followed.get_mut(id) else { return };
        if followed.answers.len() < ANSWERS_MAX {
            let made = now();
            let left = if after.is_some() { None } else { Some(made) };
            followed.answers.push(Answer { kind, made, after, left });
            followed.is_refused |= kind == "refused";
            self.has_news = true;
            after.into_iter().for_each(|record| self.wait_for(record));
        }
    }

    /// All records up to this one are durable.
    pub(crate) fn on_durable(&mut self, now: Instant, persisted: RecordNumber) {
        if self.awaited.is_none_or(|awaited| awaited > persisted) {
            return;
        }
        let times = self.syncs.take();
        let at = |record| {
            let noted = times.iter().find(|(durable, _)| *durable >= record);
            noted.map_or(now, |(_, at)| *at)
        };
        self.followed.values_mut().for_each(|followed| followed.note_durable(persisted, at));
        self.awaited = self.followed.values().filter_map(Followed::awaited).min();
        self.syncs.wait_for(self.awaited);
        self.has_news = true;
    }

    /// The log was opened anew: which records of the one before are durable is not known.
    pub(crate) fn on_log_reopened(&mut self) {
        for followed in self.followed.values_mut() {
            followed.accept = followed.accept.filter(|written| written.durable.is_some());
            followed.append = followed.append.filter(|written| written.durable.is_some());
            followed.answers.retain(|answer| answer.left.is_some());
        }
        self.awaited = None;
        self.syncs.wait_for(None);
    }

    /// Notes up to where the log is committed, and up to where it is executed.
    pub(crate) fn on_progress(&mut self, now: impl FnOnce() -> Instant, progress: (OpNumber, OpNumber)) {
        if self.followed.is_empty() || progress == self.progress {
            return;
        }
        self.progress = progress;
        let at = now();
        for followed in self.followed.values_mut() {
            let Some(number) = followed.number else { continue };
            if number <= progress.0 && followed.committed.is_none() {
                followed.committed = Some(at);
            }
            if number <= progress.1 && followed.executed.is_none() {
                followed.executed = Some(at);
                self.has_news = true;
            }
        }
    }

    /// Exports what has ended, at the end of a turn of the event loop: answers that follow from what it has executed have left.
    pub(crate) fn end_turn(&mut self, now: Now, standing: Standing) {
        if self.followed.is_empty() {
            return;
        }
        let is_time = now.instant >= self.look_at;
        if !self.has_news && !is_time {
            return;
        }
        self.has_news = false;
        self.look_at = now.instant.after(LOOK_INTERVAL);
        self.tracing.look_at_clock(now);
        let has_log = self.has_log;
        let ended: Vec<_> =
            self.followed.extract_if(|_, followed| followed.is_over(now.instant, has_log)).collect();
        for (id, followed) in ended {
            if self.ended.len() == ENDED_MAX {
                self.ended.pop_front();
            }
            self.ended.push_back(id);
            self.export(id, &followed, standing);
        }
    }

    fn export(&self, id: OperationId, followed: &Followed, standing: Standing) {
        let (trace, received) = (followed.trace, followed.received);
        let mut end = received;
        for (stage, start, stage_end) in followed.stages() {
            end = end.max(stage_end);
            self.send((trace, stage, 0), (start, stage_end), Vec::new());
        }
        for (repetition, answer) in (0..).zip(&followed.answers) {
            let Some(left) = answer.left else { continue };
            end = end.max(left);
            let attributes = vec![("syros.answer", answer.kind.into())];
            self.send((trace, Stage::Answer, repetition), (answer.made, left), attributes);
        }
        let role = if standing.is_leader { "leader" } else { "follower" };
        let mut attributes: Vec<(&'static str, Value)> = vec![
            ("syros.operation", id.to_string().into()),
            ("syros.replica", u64::from(self.me.0).into()),
            ("syros.node", format!("{:016x}", self.node).into()),
            ("syros.role", role.into()),
            ("syros.view", standing.view.number().into()),
        ];
        attributes.extend(followed.number.map(|number| ("syros.entry", number.0.into())));
        if followed.executed.is_none() && !followed.is_refused {
            attributes.push(("syros.unfinished", Value::Flag(true)));
        }
        self.send((trace, Stage::Replica, 0), (received, end), attributes);
    }

    fn send(
        &self,
        (trace, stage, repetition): (TraceId, Stage, u8),
        (start, end): (Instant, Instant),
        attributes: Vec<(&'static str, Value)>,
    ) {
        self.tracing.sink().send(Span {
            trace,
            id: span_of(trace, self.node, stage, repetition),
            parent: parent_of(trace, self.node, stage),
            name: stage.name().into(),
            kind: SpanKind::Internal,
            start: self.tracing.unix(start),
            end: self.tracing.unix(end),
            attributes,
            error: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::clock::Clock;
    use std::collections::BTreeMap;
    use std::sync::mpsc::Receiver;
    use syros_protocol::message::{Body, Refusal, Request};
    use syros_traces::{Sampling, SpanSink};
    use syros_types::{SessionId, WallTime};

    const NOW: Now = Now { instant: Instant(1_000), wall: WallTime(5_000_000) };
    const LEADER: Standing = Standing { is_leader: true, view: View(0) };

    fn id(sequence: u64) -> OperationId {
        OperationId { session: SessionId(9), sequence }
    }

    fn request(sequence: u64) -> Request {
        Request { id: id(sequence), micros: 0, acked_below: 0, body: Body::from([1]) }
    }

    fn ok(sequence: u64) -> Message {
        Message::Ok { view: View(0), rule: None, id: id(sequence), clock: WallTime(0) }
    }

    fn committed(sequence: u64) -> Message {
        let (view, clock, reply) = (View(0), WallTime(0), Body::from([]));
        Message::Committed { view, id: id(sequence), clock, reply }
    }

    fn entries(first: u64, sequences: &[u64]) -> Record {
        let entry = |sequence: &u64| Prepared::Reference { id: id(*sequence), body_hash: Default::default() };
        Record::Append {
            first: OpNumber(first),
            view: View(0),
            time: WallTime(0),
            commit: OpNumber(0),
            entries: sequences.iter().map(entry).collect(),
        }
    }

    fn traces(share: f64) -> (ReplicaTraces, Receiver<Option<Span>>) {
        traces_of(share, true)
    }

    fn traces_of(share: f64, has_log: bool) -> (ReplicaTraces, Receiver<Option<Span>>) {
        let (sink, spans) = SpanSink::detached(4 * FOLLOWED_MAX);
        let sampling = Sampling::of_share(share).unwrap();
        let tracing = Tracing { sink, sampling, cluster: 7, origin: Arc::default() };
        tracing.look_at_clock(NOW);
        let syncs = Arc::new(SyncTimes::new(Clock::start()));
        (ReplicaTraces::new(tracing, ReplicaId(2), 77, syncs, has_log), spans)
    }

    /// The spans that have been exported since, by name, with their times in nanoseconds of the monotonic clock.
    fn exported(spans: &Receiver<Option<Span>>) -> BTreeMap<String, (u64, u64)> {
        let origin = NOW.wall.0 * 1000 - NOW.instant.0;
        let times = |span: Span| (span.name.into_owned(), (span.start - origin, span.end - origin));
        spans.try_iter().flatten().map(times).collect()
    }

    fn named<const COUNT: usize>(spans: [(&str, (u64, u64)); COUNT]) -> BTreeMap<String, (u64, u64)> {
        spans.map(|(name, times)| (name.to_owned(), times)).into()
    }

    /// So many seconds later.
    fn later(seconds: u64) -> Now {
        let passed = Duration::from_secs(seconds);
        Now { instant: NOW.instant.after(passed), wall: NOW.wall.after(passed) }
    }

    fn at(instant: u64) -> impl Fn() -> Instant {
        move || Instant(instant)
    }

    #[test]
    fn a_fast_update_is_answered_when_it_is_durable_and_ordered_and_executed_later() {
        let (mut traces, spans) = traces(1.0);
        traces.on_request(Instant(1_100), id(1));
        traces.on_record(at(1_110), &Record::Accept(request(1)), RecordNumber(41));
        traces.on_answer(at(1_120), &ok(1), Some(RecordNumber(41)));
        traces.on_durable(Instant(1_200), RecordNumber(40));
        traces.end_turn(NOW, LEADER);
        traces.on_durable(Instant(1_300), RecordNumber(41));
        traces.on_record(at(1_400), &entries(5, &[1]), RecordNumber(42));
        traces.on_progress(at(1_500), (OpNumber(4), OpNumber(4)));
        traces.on_progress(at(1_600), (OpNumber(5), OpNumber(4)));
        traces.on_progress(at(1_700), (OpNumber(6), OpNumber(5)));
        traces.end_turn(NOW, LEADER);
        assert_eq!(exported(&spans), BTreeMap::new(), "a record is not durable");
        traces.on_durable(Instant(1_800), RecordNumber(50));
        traces.end_turn(NOW, LEADER);
        let expected = named([
            ("replica", (1_100, 1_800)),
            ("accept", (1_110, 1_300)),
            ("answer", (1_120, 1_300)),
            ("order", (1_100, 1_400)),
            ("append", (1_400, 1_800)),
            ("commit", (1_400, 1_600)),
            ("execute", (1_600, 1_700)),
        ]);
        assert_eq!(exported(&spans), expected);
        // A copy of the request that comes late makes no second trace.
        traces.on_request(Instant(1_900), id(1));
        traces.on_answer(at(1_950), &committed(1), None);
        assert!(traces.followed.is_empty());
    }

    #[test]
    fn what_a_replica_hears_of_from_the_leader_begins_with_that() {
        let (mut traces, spans) = traces(1.0);
        traces.on_record(at(1_400), &entries(5, &[1]), RecordNumber(42));
        traces.on_durable(Instant(1_500), RecordNumber(42));
        traces.on_progress(at(1_600), (OpNumber(5), OpNumber(5)));
        traces.end_turn(NOW, LEADER);
        let expected = named([
            ("replica", (1_400, 1_600)),
            ("order", (1_400, 1_400)),
            ("append", (1_400, 1_500)),
            ("commit", (1_400, 1_600)),
            ("execute", (1_600, 1_600)),
        ]);
        assert_eq!(exported(&spans), expected);
    }

    /// With durability `replicated`.
    #[test]
    fn where_nothing_is_logged_a_prepare_orders_an_update() {
        let (mut traces, spans) = traces_of(1.0, false);
        let Record::Append { first, entries, .. } = entries(5, &[1]) else { unreachable!("it appends") };
        traces.on_request(Instant(1_100), id(1));
        traces.on_prepare(at(1_200), first, &entries);
        // To the next follower.
        traces.on_prepare(at(1_300), first, &entries);
        traces.on_progress(at(1_600), (OpNumber(5), OpNumber(5)));
        traces.end_turn(NOW, LEADER);
        let expected = named([
            ("replica", (1_100, 1_600)),
            ("order", (1_100, 1_200)),
            ("commit", (1_200, 1_600)),
            ("execute", (1_600, 1_600)),
        ]);
        assert_eq!(exported(&spans), expected);
        // In a group of one there is no Prepare.
        traces.on_request(Instant(1_700), id(2));
        let later = Now { instant: Instant(1_700).after(REFUSED_PATIENCE), ..NOW };
        traces.end_turn(later, LEADER);
        assert!(traces.followed.is_empty());
        // Where entries are logged, the record says when.
        let (mut traces, _) = traces_of(1.0, true);
        traces.on_prepare(at(1_200), first, &entries);
        assert!(traces.followed.is_empty());
    }

    #[test]
    fn the_time_of_a_sync_is_that_of_the_logs_thread() {
        let (mut traces, spans) = traces(1.0);
        traces.on_record(at(1_400), &entries(5, &[1]), RecordNumber(42));
        traces.syncs.on_durable(RecordNumber(41));
        traces.syncs.on_durable(RecordNumber(43));
        traces.on_durable(Instant(u64::MAX / 2), RecordNumber(43));
        traces.on_progress(at(1_600), (OpNumber(5), OpNumber(5)));
        traces.end_turn(NOW, LEADER);
        let (_, end) = exported(&spans)["append"];
        assert!(end < u64::MAX / 4, "{end}");
        // Nothing is waited for any more.
        traces.syncs.on_durable(RecordNumber(99));
        assert_eq!(traces.syncs.take(), []);
    }

    #[test]
    fn a_refused_update_ends_with_its_answer_unless_the_leader_orders_it() {
        let (mut traces, spans) = traces(1.0);
        let refused = |sequence| {
            let refusal = Refusal::Overloaded;
            Message::Refused { view: View(0), id: id(sequence), clock: WallTime(0), refusal }
        };
        traces.on_request(Instant(1_100), id(2));
        traces.on_answer(at(1_150), &refused(2), None);
        traces.end_turn(NOW, LEADER);
        traces.on_record(at(1_400), &entries(5, &[2]), RecordNumber(42));
        traces.on_durable(Instant(1_500), RecordNumber(42));
        traces.on_progress(at(1_600), (OpNumber(5), OpNumber(5)));
        traces.end_turn(NOW, LEADER);
        let told = exported(&spans);
        assert_eq!((told["replica"], told["answer"], told.len()), ((1_100, 1_600), (1_150, 1_150), 6));

        traces.on_request(Instant(1_100), id(1));
        traces.on_answer(at(1_150), &refused(1), None);
        traces.end_turn(NOW, LEADER);
        assert_eq!(exported(&spans), BTreeMap::new());
        traces.end_turn(later(2), LEADER);
        assert_eq!(exported(&spans), named([("replica", (1_100, 1_150)), ("answer", (1_150, 1_150))]));
    }

    #[test]
    fn an_update_that_does_not_end_is_told_in_the_end() {
        let (mut traces, spans) = traces(1.0);
        traces.on_request(Instant(1_100), id(1));
        traces.on_record(at(1_110), &Record::Accept(request(1)), RecordNumber(41));
        // The disk fails, and another log begins.
        traces.on_log_reopened();
        traces.end_turn(later(29), LEADER);
        assert_eq!(exported(&spans), BTreeMap::new());
        traces.end_turn(later(31), LEADER);
        assert_eq!(exported(&spans), named([("replica", (1_100, 1_100))]));
        assert!(traces.followed.is_empty());
    }

    #[test]
    fn what_is_not_sampled_leaves_no_trace_and_too_many_are_counted() {
        let (mut none, spans) = traces(0.0);
        none.on_request(Instant(1_100), id(1));
        none.on_record(at(1_110), &Record::Accept(request(1)), RecordNumber(41));
        none.on_record(at(1_110), &entries(5, &[1]), RecordNumber(42));
        none.on_answer(at(1_150), &committed(1), None);
        assert!(none.followed.is_empty() && none.awaited.is_none());
        assert_eq!(exported(&spans), BTreeMap::new());
        let (mut all, _spans) = traces(1.0);
        (0..FOLLOWED_MAX as u64 + 5).for_each(|sequence| all.on_request(Instant(1_100), id(sequence)));
        assert_eq!(all.followed.len(), FOLLOWED_MAX);
        assert_eq!(all.tracing.sink().counts().dropped_by_process, 5);
    }
}
