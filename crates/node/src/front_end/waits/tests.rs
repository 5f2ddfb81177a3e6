//! Commands that wait, against a group that answers what the test says.

use super::*;
use syros_commands::{Parsed, parse, put_array, put_bulk, put_integer, put_waits};
use syros_types::WallTime;

/// A front end of node 0 of three, at a time that the test moves on.
struct Bench {
    waits: Waits,
    waited: WaitedKeys,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let mut waits = Waits::new(Some(ReplicaId(0)), 7 << 8, Duration::from_secs(10), Instant(0));
        let mut waited = WaitedKeys::default();
        waits.exchange(&mut waited);
        Self { waits, waited, now: Instant(0) }
    }

    fn pass(&mut self, millis: u64) -> Vec<WaitEnd> {
        self.now = self.now.after(Duration::from_millis(millis));
        self.waits.tick(self.now)
    }

    fn begin(&mut self, address: u64, command: &str) {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("{command} is no operation") };
        let mut body = Vec::new();
        operation.encode(&mut body);
        self.waits.begin(self.now, (address, 1, address), &Body::from(body), &operation.footprint());
    }

    fn errand(&mut self) -> Option<Errand> {
        self.waits.next_errand(Now { instant: self.now, wall: WallTime(0) })
    }

    /// The numbers of the commands that are submitted, and whether each is renewed.
    fn asked(&mut self) -> Vec<(u64, bool)> {
        let mut asked = Vec::new();
        while let Some(errand) = self.errand() {
            let ErrandKind::Ask(number) = errand.kind else { panic!("{errand:?} is submitted") };
            let (take, _) = take_of(&errand.body).expect("a command that waits");
            assert_eq!(take.waiter.sequence, number);
            asked.push((number, take.is_renewed));
        }
        asked
    }

    /// The number of the command that leaves the queues.
    fn leaving(&mut self) -> Option<u64> {
        match self.errand()?.kind {
            ErrandKind::Leave(number) => Some(number),
            other => panic!("{other:?} is submitted"),
        }
    }

    fn answer(&mut self, number: u64, put: impl FnOnce(&mut Vec<u8>)) -> Option<WaitEnd> {
        let mut reply = Vec::new();
        put(&mut reply);
        self.waits.on_asked(self.now, number, Outcome::Reply(Body::from(reply)))
    }

    /// Answers the questions to the state: so many stand in a queue, and it is the turn of these.
    fn answer_looks(&mut self, standing: i64, turns: &[i64]) -> usize {
        let mut looks = 0;
        while let Some(Errand { kind: ErrandKind::Look(key), .. }) = self.waits.next_look() {
            let mut reply = Vec::new();
            put_array(&mut reply, 1 + turns.len());
            put_integer(&mut reply, standing);
            turns.iter().for_each(|turn| put_integer(&mut reply, *turn));
            self.waits.on_look(self.now, key, Some(&reply));
            looks += 1;
        }
        looks
    }
}

fn nil_array(out: &mut Vec<u8>) {
    syros_commands::put_nil_array(out);
}

fn end_with(address: u64, put: impl FnOnce(&mut Vec<u8>)) -> WaitEnd {
    let mut reply = Vec::new();
    put(&mut reply);
    WaitEnd { address, slot: 1, completion: Completion::Reply(reply.into()) }
}

#[test]
fn a_command_is_submitted_again_when_it_is_its_turn() {
    let mut bench = Bench::new();
    bench.begin(5, "BLPOP k l 0");
    assert_eq!(bench.asked(), [(1, false)]);
    assert_eq!(bench.answer(1, put_waits), None);
    bench.waits.exchange(&mut bench.waited);
    // Elements may have come while it was on its way.
    assert_eq!((bench.pass(0), bench.answer_looks(1, &[])), (Vec::new(), 2));
    assert!(bench.asked().is_empty());
    bench.waited.on_state_replaced();
    bench.waits.exchange(&mut bench.waited);
    assert_eq!(bench.answer_looks(1, &[1]), 2);
    assert_eq!(bench.asked(), [(1, true)], "once");
    // Somebody else was faster: it is not tried again at once.
    assert_eq!(bench.answer(1, put_waits), None);
    bench.waited.on_state_replaced();
    bench.waits.exchange(&mut bench.waited);
    bench.answer_looks(1, &[1]);
    assert!(bench.asked().is_empty());
    bench.pass(1);
    bench.answer_looks(1, &[1]);
    assert_eq!(bench.asked(), [(1, true)]);
    let end = bench.answer(1, |out| put_bulk(out, b"element"));
    assert_eq!(end, Some(end_with(5, |out| put_bulk(out, b"element"))));
    assert!(bench.errand().is_none(), "it has left the queues with its element");
    bench.waits.exchange(&mut bench.waited);
    assert!(bench.waited.is_empty());
    assert_eq!(bench.waits.deadline(), Instant::NEVER);
}

#[test]
fn a_command_whose_time_has_passed_leaves_the_queues() {
    let mut bench = Bench::new();
    bench.begin(5, "BLPOP k 0.05");
    bench.begin(6, "BLPOP k 0.05");
    assert_eq!(bench.asked(), [(1, false), (2, false)]);
    bench.answer(1, put_waits);
    // The second one's first answer comes when its time has passed.
    assert!(bench.pass(49).is_empty());
    assert_eq!(bench.pass(1), [end_with(5, nil_array)]);
    assert_eq!(bench.leaving(), Some(1));
    assert_eq!(bench.answer(2, put_waits), Some(end_with(6, nil_array)));
    assert_eq!(bench.leaving(), Some(2));
    // What has not been confirmed is tried again.
    bench.waits.on_left(bench.now, 1, &Outcome::Done);
    bench.waits.on_left(bench.now, 2, &Outcome::Unknown);
    assert_eq!(bench.leaving(), None);
    bench.pass(1000);
    assert_eq!(bench.leaving(), Some(2));
}

/// How often a command is taken out of the queues of which nobody knows what has become, and how many seconds pass until the last
/// time.
fn departures_of_unknown(mut waits: Waits) -> (u32, u64) {
    let mut waited = WaitedKeys::default();
    waits.exchange(&mut waited);
    let mut bench = Bench { waits, waited, now: Instant(0) };
    bench.begin(5, "BLPOP k 0");
    assert_eq!(bench.asked(), [(1, false)]);
    assert!(bench.waits.on_asked(bench.now, 1, Outcome::Unknown).is_some());
    let (mut departures, mut last) = (0, 0);
    for second in 0..30 {
        while let Some(number) = bench.leaving() {
            bench.waits.on_left(bench.now, number, &Outcome::Done);
            (departures, last) = (departures + 1, second);
        }
        bench.pass(1000);
    }
    assert_eq!(bench.waits.deadline(), Instant::NEVER);
    (departures, last)
}

#[test]
fn a_command_that_may_be_executed_yet_leaves_until_it_cannot() {
    let waits = || Waits::new(Some(ReplicaId(0)), 7 << 8, Duration::from_secs(10), Instant(0));
    assert_eq!(departures_of_unknown(waits()), (11, 10));
    #[cfg(feature = "planted-bugs")]
    assert_eq!(departures_of_unknown(waits().planted(Some(PlantedBug::LeftOnce))), (1, 0));
}

#[test]
fn what_is_on_its_way_when_a_client_goes_is_waited_for() {
    let mut bench = Bench::new();
    bench.begin(5, "BLPOP k 0");
    assert_eq!(bench.waits.give_up(bench.now, 5), None);
    let unblocking = Unblocking { client: 5, with_error: true };
    assert_eq!(bench.waits.unblock(bench.now, unblocking), (false, None));
    assert_eq!(bench.asked(), [(1, false)]);
    assert!(bench.answer(1, put_waits).is_some());
    assert_eq!(bench.leaving(), Some(1));
    bench.begin(6, "BLPOP k 0");
    assert_eq!(bench.asked(), [(2, false)]);
    bench.answer(2, put_waits);
    let unblocking = Unblocking { client: 6, with_error: true };
    let end = end_with(6, |out| put_error(out, UNBLOCKED));
    assert_eq!(bench.waits.unblock(bench.now, unblocking), (true, Some(end)));
    assert_eq!(bench.leaving(), Some(2));
    // Nobody knows whether it has been executed: its client hears that, and it leaves the queues.
    bench.begin(7, "BLPOP k 0");
    assert_eq!(bench.asked(), [(3, false)]);
    let end = bench.waits.on_asked(bench.now, 3, Outcome::Unknown);
    assert_eq!(end, Some(WaitEnd { address: 7, slot: 1, completion: Completion::Unknown }));
    assert_eq!(bench.leaving(), Some(3));
}

#[test]
fn a_command_that_is_missing_in_a_queue_says_again_that_it_waits() {
    let mut bench = Bench::new();
    bench.begin(5, "BLPOP k 0");
    bench.asked();
    bench.answer(1, put_waits);
    bench.pass(0);
    // The state that was looked at may not have come so far.
    bench.answer_looks(0, &[]);
    assert!(bench.asked().is_empty());
    bench.pass(100);
    assert_eq!(bench.answer_looks(0, &[]), 1);
    assert_eq!(bench.asked(), [(1, true)]);
    // One that has ended is taken out when it stands before others.
    bench.answer(1, put_waits);
    bench.pass(2000);
    bench.answer_looks(1, &[9]);
    assert_eq!(bench.leaving(), Some(9));
}

/// Found by a hostile client: what was done for each key of a command was done for each command that waited for the key, and for
/// each of its other keys.
#[test]
fn what_many_commands_on_many_keys_cost_is_in_proportion_to_both() {
    let (commands, keys) = (100, 100);
    let names: Vec<String> = (0..keys).map(|number| format!("k{number}")).collect();
    let mut bench = Bench::new();
    let mut looks = 0;
    for address in 1..=commands {
        bench.begin(address, &format!("BLPOP {} 0", names.join(" ")));
    }
    assert_eq!(bench.asked().len() as u64, commands);
    for number in 1..=commands {
        assert_eq!(bench.answer(number, put_waits), None);
        bench.waited.on_state_replaced();
        bench.waits.exchange(&mut bench.waited);
        // The others are on their way.
        bench.pass(0);
        looks += bench.answer_looks(number.cast_signed(), &[]);
    }
    let pairs = commands as usize * keys;
    assert!(looks <= 2 * pairs, "{looks}");
    assert!(bench.waits.work <= 4 * pairs, "{}", bench.waits.work);
    // It is the turn of one of them at all keys, and it has got nothing a moment ago.
    bench.waits.work = 0;
    bench.waited.on_state_replaced();
    bench.waits.exchange(&mut bench.waited);
    bench.answer_looks(commands.cast_signed(), &[1]);
    assert_eq!(bench.asked(), [(1, true)], "once");
    assert_eq!(bench.answer(1, put_waits), None);
    bench.waited.on_state_replaced();
    bench.waits.exchange(&mut bench.waited);
    bench.answer_looks(commands.cast_signed(), &[1]);
    assert!(bench.waits.work <= 4 * keys, "{}", bench.waits.work);
}

#[test]
fn a_command_says_in_time_that_it_still_waits() {
    let mut bench = Bench::new();
    bench.begin(5, "BLPOP k 0");
    bench.asked();
    bench.answer(1, put_waits);
    bench.pass(LEASE.as_millis() as u64 / 3);
    assert_eq!(bench.asked(), [(1, true)]);
}

#[test]
fn who_waits_at_a_member_that_is_lost_does_not_count() {
    let mut bench = Bench::new();
    let members = || (0..3).map(ReplicaId);
    let all = members().fold(ReplicaSet(0), ReplicaSet::with);
    bench.begin(5, "BLPOP k 0");
    bench.asked();
    bench.answer(1, put_waits);
    bench.answer_looks(1, &[]);
    // Members that have never been reached may yet come.
    bench.waits.set_reachable(bench.now, ReplicaSet(0), members());
    assert_eq!(bench.waits.absent, 0);
    bench.waits.set_reachable(bench.now, all, members());
    bench.waits.set_reachable(bench.now, all.without(ReplicaId(2)), members());
    assert_eq!(bench.waits.absent, 1 << 2);
    assert_eq!(bench.answer_looks(1, &[1]), 1);
    let errand = bench.errand().expect("it is its turn");
    assert_eq!(take_of(&errand.body).map(|(take, _)| take.absent), Some(1 << 2));
    bench.waits.set_reachable(bench.now, all, members());
    assert_eq!(bench.waits.absent, 0);
}

#[test]
fn departures_that_may_not_go_yet_are_no_deadline() {
    let mut bench = Bench::new();
    for address in 0..300 {
        bench.begin(address, "BLPOP k 0.05");
    }
    for (number, _) in bench.asked() {
        bench.answer(number, put_waits);
    }
    assert_eq!(bench.pass(60).len(), 300);
    while bench.leaving().is_some() {}
    bench.waits.tick(bench.now);
    assert!(bench.waits.deadline() > bench.now, "the event loop would turn without a pause");
}

#[test]
fn a_member_that_is_late_is_not_lost_at_once() {
    let mut bench = Bench::new();
    let (all, two) = (ReplicaSet(7), ReplicaSet(7).without(ReplicaId(2)));
    assert_eq!(bench.waits.with_late(bench.now, two, all), all);
    let later = bench.now.after(LATE_MAX);
    assert_eq!(bench.waits.with_late(later, two, all), two);
    // One that answers again is late anew.
    assert_eq!(bench.waits.with_late(later, all, all), all);
    assert_eq!(bench.waits.with_late(later, two, all), all);
    // Without a connection it is lost.
    assert_eq!(bench.waits.with_late(later, two, two), two);
    // It is asked whether it answers, once a second, and when it does, no more.
    assert_eq!(bench.waits.with_late(bench.now, two, all), all);
    assert_eq!(bench.waits.deadline(), bench.now.after(LATE_ASKED_EVERY));
    assert_eq!(bench.waits.late_to_ask(bench.now), []);
    assert_eq!(bench.waits.late_to_ask(later), [ReplicaId(2)]);
    assert_eq!(bench.waits.late_to_ask(later), []);
    assert_eq!(bench.waits.deadline(), later.after(LATE_ASKED_EVERY));
    assert_eq!(bench.waits.with_late(later, all, all), all);
    assert_eq!(bench.waits.late_to_ask(later.after(LATE_MAX)), []);
}
