//! A member that says what no right member says: it is refused, and the others go on.

use super::*;
use crate::message::{DoViewChange, StartView, Update};

const HOSTILE: Peer = Peer::Replica(ReplicaId(2));

/// What the checks are for.
#[test]
#[cfg(feature = "planted-bugs")]
#[should_panic(expected = "time never decreases")]
fn without_checks_one_message_stops_a_replica() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
        config.planted = Some(PlantedBug::PeersNotValidated);
    });
    cluster.register();
    let (view, commit) = (View(0), cluster.replicas[1].log.op_number());
    let entries = vec![LogEntry { view, time: WallTime(1), payload: Payload::Tick }];
    cluster.hear(1, Message::NewState { view, first: commit.next(), commit, entries });
}

impl Cluster {
    fn hear(&mut self, to: usize, message: Message) {
        self.event(to, Event::Message { from: HOSTILE, message });
        self.deliver_all();
    }

    /// True if the two others can still change views, and complete updates, without the hostile one.
    fn others_get_on(&mut self) -> bool {
        self.down.insert(2);
        let session = self.register();
        let leader = self.leader();
        self.event(leader, Event::StepDown);
        self.pass(2000);
        let request = self.request(session, 1, self.now.wall.0, Path::Ordered, "oA1");
        let leader = self.leader();
        // What a connection has shown does not survive everything; clients show it again.
        self.attach(session);
        self.inbox.clear();
        self.send(&[leader], &request);
        self.pass(100);
        self.answers().contains(&(leader, "committed"))
    }
}

#[test]
fn the_last_view_is_not_to_be_had() {
    let reasons = [ViewChangeReason::Suspicion, ViewChangeReason::Moved, ViewChangeReason::Abdication];
    for view in [u64::MAX, u64::MAX - 1, 1 << 62, 1 << 40] {
        for reason in reasons {
            let mut cluster = Cluster::new(3, FastQuorum::Majority);
            for to in [0, 1] {
                cluster.hear(to, Message::StartViewChange { view: View(view), reason });
                cluster.hear(to, Message::WrongView { view: View(view) });
                cluster.hear(to, Message::Rejoin { view: View(view) });
            }
            assert!(cluster.replicas[..2].iter().all(|replica| replica.view() < View(1 << 34)));
            assert!(cluster.others_get_on(), "{view} {reason:?}");
        }
    }
}

#[test]
fn entries_from_before_the_log_are_refused() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.register();
    let view = cluster.replicas[0].view();
    let op_number = cluster.replicas[1].log.op_number();
    let old = LogEntry { view, time: WallTime(1), payload: Payload::Tick };
    let (first, commit) = (op_number.next(), op_number);
    cluster.hear(1, Message::NewState { view, first, commit, entries: vec![old.clone()] });
    cluster.hear(
        1,
        Message::Prepare {
            view,
            first,
            commit,
            sent_at: Instant(1),
            time: WallTime(1),
            entries: vec![Prepared::Tick],
        },
    );
    let start = StartView {
        view: View(2),
        rule: None,
        base: op_number,
        base_view: view,
        commit,
        suffix: vec![old.clone()],
    };
    cluster.hear(1, Message::StartView(Box::new(start)));
    let change = DoViewChange {
        view: View(4),
        last_normal: View(3),
        rule: None,
        commit: op_number,
        commit_view: view,
        suffix: vec![old],
        dlog: Vec::new(),
        clock: WallTime(0),
    };
    cluster.hear(1, Message::DoViewChange(Box::new(change)));
    assert!(cluster.others_get_on());
}

/// Random messages, most numbers small or as large as can be, from a member that has proved who it is.
#[test]
fn no_message_stops_a_replica() {
    for seed in 0..400 {
        let mut prng = Prng::new(seed);
        let mut cluster = Cluster::new(3, FastQuorum::Majority);
        cluster.register();
        for _ in 0..40 {
            let to = prng.below(2) as usize;
            let message = random_message(&mut prng, &cluster.replicas[to]);
            cluster.event(to, Event::Message { from: HOSTILE, message });
            if prng.below(4) == 0 {
                cluster.deliver_all();
            }
            if prng.below(4) == 0 {
                let millis = prng.below(300);
                cluster.pass(millis);
            }
        }
        let views = cluster.replicas[..2].iter().map(Replica::view);
        assert!(views.max() < Some(View(1 << 40)), "seed {seed}");
    }
}

fn random_message(prng: &mut Prng, replica: &Replica) -> Message {
    fn number(prng: &mut Prng, near: u64) -> u64 {
        match prng.below(8) {
            0 => u64::MAX - prng.below(3),
            1 => prng.below(3),
            2 => (1 << prng.below(64)) - prng.below(2),
            _ => (near + prng.below(6)).saturating_sub(2),
        }
    }
    fn request(prng: &mut Prng) -> Request {
        let id = OperationId { session: SessionId(number(prng, 1)), sequence: number(prng, 1) };
        let body = ["oA1", "uB2", "rA", "mC", "x", ""][prng.below(6) as usize];
        let (micros, acked_below) = (number(prng, 1_000_000), number(prng, 1));
        Request { id, micros, acked_below, body: Body::from(body.as_bytes()) }
    }
    let view = View(number(prng, replica.view().0));
    let (first, commit) = (OpNumber(number(prng, replica.log.op_number().0)), OpNumber(number(prng, 1)));
    let time = WallTime(number(prng, replica.log.last_time().0));
    let sent_at = Instant(number(prng, replica.now.instant.0));
    let entries: Vec<LogEntry> = (0..prng.below(4))
        .map(|_| LogEntry {
            view: View(number(prng, replica.view().0)),
            time: WallTime(number(prng, replica.log.last_time().0)),
            payload: match prng.below(4) {
                0 => Payload::Tick,
                1 => Payload::Register { nonce: number(prng, 0) },
                2 => Payload::Expire(Box::from([SessionId(number(prng, 1))])),
                _ => Update::describe(describe, request(prng)).map_or(Payload::Tick, Payload::Update),
            },
        })
        .collect();
    match prng.below(17) {
        0 => Message::StartViewChange { view, reason: ViewChangeReason::Moved },
        1 => Message::StartViewChange { view, reason: ViewChangeReason::Suspicion },
        2 => Message::NewState { view, first, commit, entries },
        3 => {
            let (base_view, suffix) = (View(number(prng, 0)), entries);
            Message::StartView(Box::new(StartView {
                view,
                rule: None,
                base: first,
                base_view,
                commit,
                suffix,
            }))
        }
        4 | 5 => {
            let dlog = (0..prng.below(4)).map(|_| request(prng)).collect();
            let (last_normal, commit_view) = (View(number(prng, 0)), View(number(prng, 0)));
            let (commit, suffix, clock) = (first, entries, time);
            let change =
                DoViewChange { view, last_normal, rule: None, commit, commit_view, suffix, dlog, clock };
            Message::DoViewChange(Box::new(change))
        }
        6 | 7 => {
            let entries = (0..prng.below(4)).map(|_| Prepared::Full(request(prng))).collect();
            Message::Prepare { view, first, commit, sent_at, time, entries }
        }
        8 => Message::Commit { view, commit: first, op_number: commit, sent_at },
        9 => Message::PrepareOk {
            view,
            op_number: first,
            applied: commit,
            sent_at,
            promise: Duration::from_nanos(number(prng, 0)),
            clock: time,
        },
        10 => Message::GetState { view, from: first },
        11 => Message::Forward { view, requests: (0..prng.below(4)).map(|_| request(prng)).collect() },
        12 => Message::Bodies { view, requests: (0..prng.below(4)).map(|_| request(prng)).collect() },
        13 => Message::FetchBodies { view, ids: (0..prng.below(4)).map(|_| request(prng).id).collect() },
        14 => Message::WrongView { view },
        15 => Message::HeldByAll { view, op_number: first },
        _ => Message::Rejoin { view },
    }
}
