//! What happens in a step of a schedule.

use super::*;

impl World {
    pub(super) fn tick(&mut self, replica: usize) {
        let Some(core) = &self.places[replica].replica else { return };
        let now = self.clock(self.places[replica].ahead).instant;
        let nanos = core.deadline().since(now).min(Duration::from_millis(500)).as_nanos() as u64;
        if self.clocks_agree {
            self.pass(nanos);
        } else {
            self.places[replica].ahead.0 += nanos;
        }
        self.event(replica, Event::Tick);
    }

    pub(super) fn tick_client(&mut self, user: usize) {
        let now = self.clock(self.users[user].ahead).instant;
        let User { client, ahead, .. } = &mut self.users[user];
        ahead.0 += client.deadline().since(now).min(Duration::from_millis(500)).as_nanos() as u64;
        self.client_event(user, client::Event::Tick);
    }

    /// Everybody whose moment has come does something.
    pub(super) fn tick_what_is_due(&mut self) {
        for replica in 0..MOST {
            let place = &self.places[replica];
            let now = self.clock(place.ahead).instant;
            if place.replica.as_ref().is_some_and(|core| core.deadline() <= now) {
                self.event(replica, Event::Tick);
            }
        }
        for user in 0..self.users.len() {
            if self.users[user].client.deadline() <= self.clock(self.users[user].ahead).instant {
                self.client_event(user, client::Event::Tick);
            }
        }
    }

    pub(super) fn pass(&mut self, nanos: u64) {
        self.now.instant.0 += nanos;
        self.now.wall.0 += nanos / 1_000;
    }

    /// All that is on its way arrives, disks write, and time goes on to the next moment at which somebody does something.
    pub(super) fn calm(&mut self) {
        for _ in 0..2_000 {
            for replica in 0..MOST {
                while !self.places[replica].unwritten.is_empty() {
                    self.write(replica);
                }
                self.tell_written(replica);
                while !self.places[replica].reports.is_empty() {
                    self.report(replica);
                }
            }
            let Some(at) = self.arriving().first().copied() else { break };
            let packet = self.wire.remove(at);
            self.deliver(packet);
        }
        let replicas = self.places.iter().filter_map(|place| {
            Some(place.replica.as_ref()?.deadline().since(self.clock(place.ahead).instant))
        });
        let users = self.users.iter().map(|it| it.client.deadline().since(self.clock(it.ahead).instant));
        let nanos = replicas.chain(users).min().unwrap().as_nanos() as u64;
        self.pass(nanos.clamp(1_000, 50_000_000));
        self.tick_what_is_due();
        self.admit();
    }

    pub(super) fn tell_written(&mut self, replica: usize) {
        let place = &self.places[replica];
        let written = place.written;
        if written > Ticket(0) {
            self.event(replica, Event::Persisted(written));
        }
        if let Some((snapshot, _)) = self.places[replica].taking.take_if(|(_, ticket)| *ticket <= written) {
            let op_number = snapshot.0.op_number;
            self.places[replica].snapshots.insert(op_number, snapshot);
            self.event(replica, Event::SnapshotTaken { op_number, bytes: FILE_BYTES });
        }
    }

    pub(super) fn report(&mut self, replica: usize) {
        if let Some(event) = self.places[replica].reports.pop_front() {
            self.event(replica, event);
        }
    }

    /// Nodes that want places ask leaders for them, and start when a configuration has them.
    pub(super) fn admit(&mut self) {
        for place in 0..MOST {
            let Some(wanted) = self.places[place].wanted else { continue };
            for replica in 0..MOST {
                let Some(core) = &self.places[replica].replica else { continue };
                let newest = core.newest_configuration();
                if newest.roster.node(member(place)) == Some(wanted) {
                    self.places[place].config.configuration = core.config.configuration.after(newest);
                    self.places[place].config.node = Some(wanted);
                    self.places[place].wanted = None;
                    self.places[place].clear_disk();
                    self.start(place, Boot::Fresh);
                    break;
                }
                self.event(replica, Event::PlaceWanted { member: member(place), node: wanted });
            }
        }
    }

    pub(super) fn take_step(&mut self, step: u64) {
        let mut prng = Prng::new(step);
        self.pass(20_000);
        let mut drawn = prng.below(self.weights.iter().map(|(_, weight)| weight).sum::<u64>().max(1));
        let what = self.weights.iter().find(|(_, weight)| {
            let found = drawn < *weight;
            drawn = drawn.saturating_sub(*weight);
            found
        });
        let what = what.map_or(Step::Deliver, |(what, _)| *what);
        let replica = prng.below(DRAWN as u64) as usize;
        let other = prng.below((DRAWN + self.users.len()) as u64) as usize;
        let other = if other < DRAWN { other } else { other - DRAWN + MOST };
        let user = prng.below(self.users.len() as u64) as usize;
        if !matches!(what, Step::Deliver | Step::DeliverOldest) {
            tell(|| format!("{what:?} {replica} {other} {user}"));
        }
        match what {
            Step::Deliver | Step::DeliverOldest | Step::Lose | Step::Duplicate => {
                let arriving = self.arriving();
                if arriving.is_empty() {
                    return;
                }
                let at =
                    if what == Step::DeliverOldest { 0 } else { prng.below(arriving.len() as u64) as usize };
                let packet = self.wire[arriving[at]].clone();
                let ends = (packet.from.0, packet.to.0);
                match (what, ends) {
                    (Step::Deliver | Step::DeliverOldest, _) => {
                        self.wire.remove(arriving[at]);
                        self.deliver(packet);
                    }
                    (Step::Lose, (Peer::Client(connection), _) | (_, Peer::Client(connection))) => {
                        let (user, replica) = self.connections[connection as usize];
                        self.disconnect(user, replica);
                    }
                    (Step::Lose, _) => _ = self.wire.remove(arriving[at]),
                    (_, (Peer::Replica(_), Peer::Replica(_))) => self.deliver(packet),
                    _ => {}
                }
            }
            Step::Write => {
                (0..=prng.below(4)).for_each(|_| self.write(replica));
            }
            Step::TellWritten => self.tell_written(replica),
            Step::Report => self.report(replica),
            Step::Tick => self.tick(replica),
            Step::TickClient => self.tick_client(user),
            Step::Submit => {
                let classes: &[u8] = if self.clocks_agree { b"ooommuuwrr" } else { b"ooommuuw" };
                let class = classes[prng.below(classes.len() as u64) as usize];
                self.submit_if_free(user, class, prng.below(2) as u8);
            }
            Step::Rush => self.rush(),
            Step::Crash => self.crash_if_possible(replica, &mut prng),
            Step::Restart => self.restart(replica),
            Step::Cut => _ = self.cut.insert((replica, other)),
            Step::Part => self.part(&mut prng),
            Step::Without => self.go_on_without(&mut prng),
            Step::Mend => {
                self.cut.clear();
                self.connect();
            }
            Step::Calm => {
                (0..1 + prng.below(20)).for_each(|_| self.calm());
            }
            Step::HandOver => (0..MOST).for_each(|replica| self.event(replica, Event::StepDown)),
            Step::ChangeMode => {
                let mode = if prng.chance(1, 2) { FastQuorum::Majority } else { FastQuorum::Mixed };
                self.tell_all(&Message::ChangeMode { mode });
            }
            Step::Shrink => {
                self.tell_all(&Message::Shrink { to: Group::new(3).unwrap() });
                if prng.chance(1, 2) {
                    self.part(&mut prng);
                    self.submit_if_free(user, b'o', 0);
                    self.rush();
                }
            }
            Step::Grow => self.grow(replica),
            Step::Replace => {
                let place = &mut self.places[replica];
                let is_member = place.replica.is_none() && !place.is_gone && !place.learns;
                if is_member && place.wanted.is_none() {
                    self.nodes += 1;
                    let wanted = node(self.nodes);
                    // It is without memory, in any case.
                    self.places[replica].is_gone = true;
                    let may = self.may_forget(true);
                    self.places[replica].is_gone = false;
                    if may {
                        tell(|| format!("{wanted} wants the place of {replica}"));
                        self.places[replica].wanted = Some(wanted);
                    }
                }
                self.admit();
            }
        }
    }

    /// Links are cut between two sides: all of them, or those between replicas, or those between replicas and users.
    pub(super) fn part(&mut self, prng: &mut Prng) {
        let (sides, ends, kind) = (prng.next_u64(), MOST + self.users.len(), prng.below(3));
        let (is_one_way, side) = (prng.chance(1, 4), |end: usize| sides >> end & 1);
        let is_cut = |(from, to): &(usize, usize)| {
            let is_between = from.max(to) < &MOST;
            (kind == 0 || is_between == (kind == 1))
                && (side(*from) > side(*to) || (side(*from) < side(*to) && !is_one_way))
        };
        let pairs = (0..ends).flat_map(|from| (0..ends).map(move |to| (from, to)));
        self.cut = pairs.filter(is_cut).collect();
    }

    /// All that users and replicas have to say to each other arrives, and nothing of what replicas tell each other: fast updates are
    /// complete before any of them is in a log elsewhere.
    pub(super) fn rush(&mut self) {
        loop {
            (0..MOST).for_each(|replica| (0..8).for_each(|_| self.write(replica)));
            let is_of_user = |at: &usize| {
                let Packet { from, to, .. } = &self.wire[*at];
                matches!((from.0, to.0), (Peer::Client(_), _) | (_, Peer::Client(_)))
            };
            let Some(at) = self.arriving().into_iter().find(is_of_user) else { return };
            let packet = self.wire.remove(at);
            self.deliver(packet);
        }
    }

    pub(super) fn crash_if_possible(&mut self, replica: usize, prng: &mut Prng) {
        let forgets = self.durability == Durability::Replicated && !self.places[replica].learns;
        if self.places[replica].replica.is_some() && (!forgets || self.may_forget(false)) {
            self.crash(replica, prng);
        }
    }

    /// One or two replicas reach no other one for a while, and all others run.
    pub(super) fn go_on_without(&mut self, prng: &mut Prng) {
        let away = [prng.below(DRAWN as u64) as usize, prng.below(DRAWN as u64) as usize];
        let pairs = (0..MOST).flat_map(|from| (0..MOST).map(move |to| (from, to)));
        self.cut = pairs.filter(|(from, to)| away.contains(from) || away.contains(to)).collect();
        for replica in (0..MOST).filter(|replica| !away.contains(replica)) {
            if prng.chance(1, 4) {
                self.crash_if_possible(replica, prng);
            }
            self.restart(replica);
        }
        self.connect();
        (0..20 + prng.below(60)).for_each(|_| self.calm());
    }

    /// An operator says something, which only leaders act upon.
    pub(super) fn tell_all(&mut self, message: &Message) {
        for replica in 0..MOST {
            self.event(replica, Event::Message { from: Peer::Client(u64::MAX), message: message.clone() });
        }
    }

    /// New nodes that know this configuration are started in these places.
    pub(super) fn start_newcomers(&mut self, places: core::ops::Range<usize>, known: Configuration) {
        for place in places {
            self.nodes += 1;
            let new = node(self.nodes);
            let place_there = &mut self.places[place];
            (place_there.config.configuration, place_there.config.node) = (known, Some(new));
            place_there.is_gone = false;
            place_there.clear_disk();
            self.start(place, Boot::Fresh);
        }
    }

    /// Two nodes want to be members, if the group has three and knows of no others.
    pub(super) fn grow(&mut self, known_to: usize) {
        let Some(core) = &self.places[known_to].replica else { return };
        let known = core.config.configuration;
        let is_free = |place: &Place| place.is_gone;
        if known.size() != 3 || self.places[known_to].learns || !self.places[3..DRAWN].iter().all(is_free) {
            return;
        }
        self.start_newcomers(3..DRAWN, known);
    }
}
