//! Stars with more that is wrong: larger groups, all modes, disks whose speed changes, links that differ, flap and lose messages,
//! members that end again and again, with their memory and without, one that lies about its patience, wrong clocks, groups
//! that grow and shrink; and groups that have healed. `SYROS_TROUBLES=10000` runs more of them, from `SYROS_TROUBLES_FROM` on.

use super::*;

/// A link that carries nothing for a part of each period.
#[derive(Clone, Debug)]
struct Flap {
    link: (usize, usize),
    period: u64,
    cut_for: u64,
    phase: u64,
}

/// A group and what is wrong with it. One member and `f` others, the leaves, hear each other and stay alive.
#[derive(Clone, Debug)]
struct Trouble {
    members: usize,
    mode: FastQuorum,
    durability: Durability,
    dead: Vec<usize>,
    /// Links that carry nothing.
    cut: Vec<(usize, usize)>,
    flaps: Vec<Flap>,
    /// Of a thousand messages between replicas, so many are lost.
    loss: u64,
    /// Milliseconds that a message takes from one to another.
    delays: [[u64; MOST]; MOST],
    /// Milliseconds that a record takes: least and most.
    disks: [(u64, u64); MOST],
    /// Who restarts, how often, and for how long it is down.
    restarts: Vec<(usize, u64, u64)>,
    /// A dead member whose process says that it is patient, in each member's view, so often.
    liar: Option<(usize, u64)>,
    /// Links that carry small messages only.
    limps: Vec<(usize, usize)>,
    /// How far each wall clock is ahead, microseconds, and how much too fast each monotonic one is, in parts per million.
    clocks: [(u64, u64); MOST],
    /// The group is asked to grow or to shrink by two at this millisecond.
    resize: Option<(u64, bool)>,
    seed: u64,
}

/// A group with trouble, and what is on its way.
struct Slow {
    passed: u64,
    count: u64,
    sent: BTreeMap<(u64, u64), Packet>,
    written_at: [VecDeque<u64>; MOST],
    prng: Prng,
}

impl Trouble {
    fn draw(seed: u64) -> Self {
        let mut prng = Prng::new(seed ^ 0x0057_A125);
        let members = [3, 5, 5, 5, 7, 7, 9][prng.below(7) as usize];
        let mode =
            [FastQuorum::Majority, FastQuorum::Mixed, FastQuorum::Supermajority][prng.below(3) as usize];
        let faults = members / 2;
        let (mut alive, mut dead): (Vec<usize>, _) = ((1..members).collect(), vec![0]);
        while dead.len() < faults && prng.chance(1, 2) {
            dead.push(alive.swap_remove(prng.below(alive.len() as u64) as usize));
        }
        let centre = alive.swap_remove(prng.below(alive.len() as u64) as usize);
        let mut leaves = alive.clone();
        while leaves.len() > faults {
            leaves.swap_remove(prng.below(leaves.len() as u64) as usize);
        }
        let others: Vec<usize> = alive.iter().copied().filter(|it| !leaves.contains(it)).collect();
        let flapping = prng.chance(1, 3);
        let (mut cut, mut flaps) = (Vec::new(), Vec::new());
        for (from, to) in (0..members).flat_map(|from| (0..members).map(move |to| (from, to))) {
            let is_needed =
                (from == centre && leaves.contains(&to)) || (to == centre && leaves.contains(&from));
            if from == to || is_needed {
                continue;
            }
            if flapping && prng.chance(1, 3) {
                let period = 50 + prng.below(3_000);
                flaps.push(Flap {
                    link: (from, to),
                    period,
                    cut_for: prng.below(period),
                    phase: prng.below(period),
                });
            } else if prng.chance(1, 2) {
                cut.push((from, to));
            }
        }
        let loss = if prng.chance(1, 3) { prng.below(150) } else { 0 };
        let slow_link = [0, 5, 20, 50][prng.below(4) as usize];
        let varies = prng.chance(1, 2);
        let mut delays = [[slow_link; MOST]; MOST];
        if varies {
            delays.iter_mut().flatten().for_each(|delay| *delay = prng.below(slow_link + 1));
        }
        let slowest = [1, 50, 100, 200, 300][prng.below(5) as usize];
        let disks = core::array::from_fn(|_| {
            let most = prng.below(slowest + 1);
            (if prng.chance(1, 2) { prng.below(most + 1) } else { most }, most)
        });
        let mut restarts = Vec::new();
        if prng.chance(1, 3) {
            for other in &others {
                if prng.chance(2, 3) {
                    let period = 300 + prng.below(5_000);
                    restarts.push((*other, period, prng.below(period)));
                }
            }
        }
        let liar = prng.chance(1, 4).then(|| (dead[0], 20 + prng.below(500)));
        let (durability, clocks) = (Durability::Fsync, [(0, 0); MOST]);
        let (limps, resize) = (Vec::new(), None);
        let plain = Self {
            members,
            mode,
            durability,
            dead,
            cut,
            flaps,
            loss,
            delays,
            disks,
            restarts,
            liar,
            limps,
            clocks,
            resize,
            seed,
        };
        plain.with_more(&others)
    }

    /// With limping links, wrong clocks, memory that is lost and a change of size; `others` are not needed for service.
    fn with_more(mut self, others: &[usize]) -> Self {
        let mut prng = Prng::new(self.seed ^ 0x000F_E11A);
        let spare = self.members / 2 - self.dead.len();
        if prng.chance(1, 2) {
            let (limps, cut) = self.cut.into_iter().partition(|_| prng.chance(1, 2));
            (self.limps, self.cut) = (limps, cut);
        }
        if prng.chance(1, 2) {
            for clock in self.clocks.iter_mut().take(self.members / 2) {
                clock.0 = prng.below(10_000_000);
            }
            self.clocks.iter_mut().for_each(|clock| clock.1 = prng.below(5_000));
            let by = prng.below(self.members as u64) as usize;
            self.clocks[..self.members].rotate_left(by);
        }
        if prng.chance(1, 2) && spare > 0 {
            self.durability = Durability::Replicated;
            self.restarts.truncate(spare);
            if self.restarts.is_empty() && !others.is_empty() {
                let period = 300 + prng.below(5_000);
                self.restarts.push((others[0], period, prng.below(period)));
            }
        } else if prng.chance(1, 4) && spare > 0 {
            self.durability = Durability::Replicated;
            self.restarts.clear();
        }
        if prng.chance(1, 3) && !others.is_empty() {
            self.liar = Some((others[0], 10 + prng.below(200)));
        }
        let may_resize = self.members <= 7 && self.durability == Durability::Fsync;
        self.resize = (prng.chance(1, 2) && may_resize).then(|| (prng.below(5_000), prng.chance(1, 2)));
        self
    }

    fn begin(&self, bug: Option<PlantedBug>) -> (World, Slow) {
        let mut world = World::of(self.seed, bug, Some((self.members, self.mode, self.durability)));
        for place in &mut world.places {
            place.config.settings.log_keep_bytes = 256 << 20;
            place.config.settings.snapshot_log_bytes = 256 << 20;
        }
        (0..40).for_each(|_| world.calm());
        for (place, (ahead, _)) in world.places.iter_mut().zip(self.clocks) {
            place.ahead.1 += ahead;
        }
        let slow = Slow {
            passed: 0,
            count: 0,
            sent: BTreeMap::new(),
            written_at: core::array::from_fn(|_| VecDeque::new()),
            prng: Prng::new(self.seed),
        };
        (world, slow)
    }

    /// What is wrong at this millisecond.
    fn apply(&self, world: &mut World, slow: &Slow) {
        let now = slow.passed;
        for (place, (_, fast)) in world.places.iter_mut().zip(self.clocks) {
            place.ahead.0 += fast;
        }
        if let Some((at, grows)) = self.resize
            && at == now
        {
            if grows {
                world.grow_any(self.members);
            } else if let Some(to) = self.members.checked_sub(2).filter(|to| *to >= 3) {
                world.tell_all(&Message::Shrink { to: Group::new(to).unwrap() });
            }
        }
        world.cut = self.cut.iter().copied().collect();
        for flap in &self.flaps {
            if (now + flap.phase) % flap.period < flap.cut_for {
                world.cut.insert(flap.link);
            }
        }
        for (replica, period, down) in &self.restarts {
            match now % period {
                0 if world.places[*replica].replica.is_some() => world.crash(*replica, &mut Prng::new(now)),
                at if at == *down => {
                    world.restart(*replica);
                    world.connect();
                }
                _ => {}
            }
        }
        if let Some((liar, every)) = self.liar
            && now.is_multiple_of(every)
        {
            for to in (0..self.members).filter(|to| *to != liar) {
                let Some(core) = &world.places[to].replica else { continue };
                let message = Message::Patience { view: core.view(), times: 255 };
                let (from, node) =
                    ((Peer::Replica(member(liar)), world.places[liar].life), world.places[liar].config.node);
                let to = (Peer::Replica(member(to)), world.places[to].life);
                world.wire.push(Packet { from, to, node, message });
            }
        }
    }

    /// Milliseconds until an update is answered, if one is within so many.
    fn served_after(&self, bug: Option<PlantedBug>, within: u64) -> Option<u64> {
        let (mut world, mut slow) = self.begin(bug);
        self.dead.iter().for_each(|replica| world.crash(*replica, &mut Prng::new(0)));
        self.until_served(&mut world, &mut slow, within, true)
    }

    fn until_served(&self, world: &mut World, slow: &mut Slow, within: u64, is_ill: bool) -> Option<u64> {
        let began = slow.passed;
        while slow.passed < began + within {
            world.ops.clear();
            world.submit(0, b'u', 0);
            while !world.users[0].tokens.is_empty() {
                if is_ill {
                    self.apply(world, slow);
                }
                world.pass_in_trouble(slow, self, is_ill);
                if slow.passed >= began + within * 2 {
                    return None;
                }
            }
            if world.ops.iter().any(|op| op.ended.is_some()) {
                return Some(slow.passed - began);
            }
        }
        None
    }
}

/// True if this is never large.
const fn is_small(message: &Message) -> bool {
    !matches!(
        message,
        Message::Prepare { .. }
            | Message::NewState { .. }
            | Message::StartView(_)
            | Message::DoViewChange(_)
            | Message::Bodies { .. }
            | Message::Forward { .. }
            | Message::SnapshotPart { .. }
    )
}

impl World {
    /// Two nodes want to be members of a group of this size.
    fn grow_any(&mut self, members: usize) {
        let Some(known_to) = (0..members).find(|at| self.places[*at].replica.is_some()) else { return };
        let known = self.places[known_to].replica.as_ref().unwrap().config.configuration;
        if known.size() != members || members + 2 > MOST {
            return;
        }
        self.start_newcomers(members..members + 2, known);
    }

    fn pass_in_trouble(&mut self, slow: &mut Slow, trouble: &Trouble, is_ill: bool) {
        self.pass(1_000_000);
        slow.passed += 1;
        self.tick_what_is_due();
        if trouble.resize.is_some() {
            self.connect();
        }
        while self.go_on_in_trouble(slow, trouble, is_ill) {}
        self.admit();
    }

    fn go_on_in_trouble(&mut self, slow: &mut Slow, trouble: &Trouble, is_ill: bool) -> bool {
        let now = slow.passed;
        for packet in self.wire.drain(..).collect::<Vec<_>>() {
            let delay = match (packet.from.0, packet.to.0) {
                (Peer::Replica(from), Peer::Replica(to)) => {
                    if is_ill && trouble.loss > 0 && slow.prng.below(1_000) < trouble.loss {
                        continue;
                    }
                    let link = (from.index(), to.index());
                    if is_ill && trouble.limps.contains(&link) && !is_small(&packet.message) {
                        continue;
                    }
                    trouble.delays[from.index()][to.index()]
                }
                _ => trouble.delays[0][0],
            };
            slow.count += 1;
            slow.sent.insert((now + delay, slow.count), packet);
        }
        let mut has_gone_on = false;
        while let Some(entry) = slow.sent.first_entry()
            && entry.key().0 <= now
        {
            let packet = entry.remove();
            has_gone_on = true;
            self.arrive(packet);
        }
        for replica in 0..MOST {
            let unwritten = self.places[replica].unwritten.len();
            let written_at = &mut slow.written_at[replica];
            written_at.truncate(unwritten);
            while written_at.len() < unwritten {
                let (least, most) = trouble.disks[replica];
                let takes = if least == most { least } else { least + slow.prng.below(most - least + 1) };
                let at = (now + takes).max(written_at.back().copied().unwrap_or(0));
                written_at.push_back(at);
            }
            let written = written_at.iter().take_while(|at| **at <= now).count();
            written_at.drain(..written);
            has_gone_on |= self.disk_has_written(replica, written);
        }
        has_gone_on
    }
}

/// These, and no others: what a failing one needs is a cure, and not another commit.
fn seeds() -> core::ops::Range<u64> {
    let (from, count) = (number("SYROS_TROUBLES_FROM", 0), number("SYROS_TROUBLES", 150));
    from..from + count
}

#[test]
fn hostile_stars_are_served() {
    let is_served = |seed: &u64| Trouble::draw(*seed).served_after(None, 60_000).is_some();
    let unserved: Vec<u64> = seeds().filter(|seed| !is_served(seed)).collect();
    assert!(unserved.is_empty(), "within a minute nobody is served of the hostile stars {unserved:?}");
}

/// A group that was in any trouble for some time, and has healed.
#[test]
fn groups_that_have_healed_serve_soon() {
    let is_late = |(_, took): &(u64, u64)| *took > 10_000;
    let late: Vec<(u64, u64)> = seeds().map(|seed| (seed, healed_after(seed))).filter(is_late).collect();
    assert!(late.is_empty(), "healed groups that serve late, and after how many milliseconds: {late:?}");
}

/// Milliseconds until an update is answered after the trouble has ended.
fn healed_after(seed: u64) -> u64 {
    let mut trouble = Trouble::draw(seed);
    let mut prng = Prng::new(seed ^ 0xBEA1);
    // Nobody has to be able to serve: any link may be cut, and any member may be dead.
    for from in 0..trouble.members {
        for to in 0..trouble.members {
            if from != to && prng.chance(1, 3) {
                trouble.cut.push((from, to));
            }
        }
    }
    for replica in 0..trouble.members {
        let may_die = trouble.durability == Durability::Fsync && !trouble.dead.contains(&replica);
        if may_die && prng.chance(1, 6) {
            trouble.dead.push(replica);
        }
    }
    if prng.chance(1, 3) {
        trouble.dead.remove(0);
        trouble.liar = None;
    }
    let (mut world, mut slow) = trouble.begin(None);
    trouble.dead.iter().for_each(|replica| world.crash(*replica, &mut Prng::new(0)));
    let outage = [2_000, 10_000, 30_000, 60_000][prng.below(4) as usize];
    while slow.passed < outage {
        if world.users[0].tokens.is_empty() {
            world.ops.clear();
            world.submit(0, b'u', 0);
        }
        trouble.apply(&mut world, &slow);
        world.pass_in_trouble(&mut slow, &trouble, true);
    }
    let healed = slow.passed;
    world.cut.clear();
    (0..MOST).for_each(|replica| world.restart(replica));
    for (one, other) in (0..MOST).flat_map(|one| (0..one).map(move |other| (one, other))) {
        world.shake_hands(one, other);
    }
    world.connect();
    let mut asked = world.ops.len();
    world.submit(1, b'u', 0);
    while world.ops[asked].ended.is_none() && slow.passed < healed + 60_000 {
        world.pass_in_trouble(&mut slow, &trouble, false);
        if world.users[1].tokens.is_empty() && world.ops[asked].ended.is_none() {
            asked = world.ops.len();
            world.submit(1, b'u', 0);
        }
    }
    slow.passed - healed
}
