//! Members that stay dead, and links that stay cut, where disks and links take their time: a client is served all the same, as long
//! as one member and `f` others hear each other.

use super::*;

/// What is on its way, and to disks.
struct Slow {
    /// How long a message takes from one end to another, in microseconds.
    link: u64,
    /// How long a record takes to each disk.
    disks: [u64; MOST],
    passed: u64,
    sent: VecDeque<(u64, Packet)>,
    /// When each record is on disk.
    written_at: [VecDeque<u64>; MOST],
}

/// A group and what is wrong with it for good.
#[derive(Clone, Debug)]
struct Star {
    members: usize,
    dead: Vec<usize>,
    /// Links that carry nothing: (from, to).
    cut: Vec<(usize, usize)>,
    /// Milliseconds that each disk takes for a record.
    disks: [u64; MOST],
    /// Milliseconds that a message takes.
    link: u64,
}

impl Star {
    /// Of those that are alive, one hears `f` others and is heard by them; other links fail in one direction or in both.
    fn draw(prng: &mut Prng) -> Self {
        let members = if prng.chance(1, 4) { 3 } else { 5 };
        let faults = members / 2;
        let (mut alive, mut dead): (Vec<usize>, _) = ((1..members).collect(), vec![0]);
        while dead.len() < faults && prng.chance(2, 3) {
            dead.push(alive.swap_remove(prng.below(alive.len() as u64) as usize));
        }
        let centre = alive.swap_remove(prng.below(alive.len() as u64) as usize);
        while alive.len() > faults {
            alive.swap_remove(prng.below(alive.len() as u64) as usize);
        }
        let links = (0..DRAWN).flat_map(|from| (0..DRAWN).map(move |to| (from, to)));
        let is_needed =
            |from, to| (from == centre && alive.contains(&to)) || (to == centre && alive.contains(&from));
        let cut =
            links.filter(|(from, to)| from != to && !is_needed(*from, *to) && prng.chance(1, 2)).collect();
        let slowest = [1, 50, 100, 200, 300][prng.below(5) as usize];
        let disks = core::array::from_fn(|at| if at < DRAWN { prng.below(slowest + 1) } else { 0 });
        Self { members, dead, cut, disks, link: [0, 5, 20, 50][prng.below(4) as usize] }
    }

    /// A world of so many members that has just begun, with fsync, in majority mode.
    fn begin(&self, bug: Option<PlantedBug>) -> World {
        let is_right = |world: &World| {
            world.durability == Durability::Fsync
                && world.places.iter().filter(|place| !place.is_gone).count() == self.members
                && world.places[0].config.configuration.mode == FastQuorum::Majority
        };
        let mut world = (0..).map(|seed| World::new(seed, bug)).find(is_right).unwrap();
        (0..40).for_each(|_| world.calm());
        world
    }

    /// Milliseconds until an update is answered, if one is within a minute.
    fn served_after(&self, bug: Option<PlantedBug>) -> Option<u64> {
        let mut world = self.begin(bug);
        let disks = self.disks.map(|millis| millis * 1_000);
        let (sent, written_at) = (VecDeque::new(), core::array::from_fn(|_| VecDeque::new()));
        let mut slow = Slow { link: self.link * 1_000, disks, passed: 0, sent, written_at };
        self.dead.iter().for_each(|replica| world.crash(*replica, &mut Prng::new(0)));
        world.cut = self.cut.iter().copied().collect();
        while slow.passed < 60_000_000 {
            world.ops.clear();
            world.submit(0, b'u', 0);
            while !world.users[0].tokens.is_empty() {
                world.pass_slowly(&mut slow);
            }
            if world.ops.iter().any(|op| op.ended.is_some()) {
                return Some(slow.passed / 1_000);
            }
        }
        None
    }
}

impl World {
    /// A millisecond passes.
    fn pass_slowly(&mut self, slow: &mut Slow) {
        const MILLISECOND: u64 = 1_000;
        self.pass(MILLISECOND * 1_000);
        slow.passed += MILLISECOND;
        self.tick_what_is_due();
        while self.go_on_slowly(slow) {}
        self.admit();
    }

    /// What is due arrives, at replicas and at disks. False if nothing was.
    fn go_on_slowly(&mut self, slow: &mut Slow) -> bool {
        let sent_at = slow.passed;
        slow.sent.extend(self.wire.drain(..).map(|packet| (sent_at + slow.link, packet)));
        let mut has_gone_on = false;
        while slow.sent.front().is_some_and(|(at, _)| *at <= sent_at)
            && let Some((_, packet)) = slow.sent.pop_front()
        {
            has_gone_on = true;
            self.arrive(packet);
        }
        for replica in 0..MOST {
            let written_at = &mut slow.written_at[replica];
            // A process that has ended has left fewer.
            written_at.resize(self.places[replica].unwritten.len(), sent_at + slow.disks[replica]);
            let written = written_at.iter().take_while(|at| **at <= sent_at).count();
            written_at.drain(..written);
            has_gone_on |= self.disk_has_written(replica, written);
        }
        has_gone_on
    }
}

impl World {
    /// A packet comes to the end of its link, if that carries anything and both ends are there.
    pub(super) fn arrive(&mut self, packet: Packet) {
        let is_open = |peer: Peer| match peer {
            Peer::Client(connection) => self.is_open(connection),
            Peer::Replica(_) => true,
        };
        let link = (self.end(packet.from.0), self.end(packet.to.0));
        if is_open(packet.from.0) && is_open(packet.to.0) && !self.cut.contains(&link) {
            self.deliver(packet);
        }
    }

    /// A disk has taken so many records; the replica hears of these, and of all that its other threads have done. False if there was
    /// nothing to be heard of.
    pub(super) fn disk_has_written(&mut self, replica: usize, records: usize) -> bool {
        (0..records).for_each(|_| self.write(replica));
        if records > 0 || self.places[replica].taking.is_some() {
            self.tell_written(replica);
        }
        let has_news = records > 0 || !self.places[replica].reports.is_empty();
        while !self.places[replica].reports.is_empty() {
            self.report(replica);
        }
        has_news
    }
}

#[test]
fn stars_with_slow_disks_are_served() {
    let (from, count) = (number("SYROS_SCHEDULES_FROM", 0), number("SYROS_SCHEDULES", 300) * 4);
    let is_served = |seed: &u64| Star::draw(&mut Prng::new(*seed)).served_after(None).is_some();
    let unserved: Vec<u64> = (from..from + count).filter(|seed| !is_served(seed)).collect();
    assert!(unserved.is_empty(), "within a minute nobody is served of the stars {unserved:?}");
}

/// - A leader that one follower never answers leaves its view, and so does the centre of the star when it leads next, if it takes that
///   view for one that has begun.
/// - Members that have followed leaders whom nobody else answers have little patience with the centre of the star.
#[cfg(feature = "planted-bugs")]
#[test]
fn stars_that_are_never_served_are_found() {
    for (seed, bug) in [(4_888, PlantedBug::UnansweredViewBegan), (2_743, PlantedBug::OwnPatience)] {
        let star = Star::draw(&mut Prng::new(seed));
        assert_eq!(star.served_after(Some(bug)), None, "{star:?}");
        assert!(star.served_after(None).is_some(), "{star:?}");
    }
}
