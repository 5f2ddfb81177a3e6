//! Processes of replicas: how they start and end, and what they carry out.

use super::*;

impl World {
    pub(super) fn clock(&self, (nanos, micros): (u64, u64)) -> Now {
        let instant = self.now.instant.after(Duration::from_nanos(nanos));
        Now { instant, wall: WallTime(self.now.wall.0 + micros) }
    }

    pub(super) fn start(&mut self, replica: usize, boot: Boot) {
        let now = self.clock(self.places[replica].ahead);
        let place = &mut self.places[replica];
        tell(|| format!("{replica} starts: {boot:?}"));
        place.life += 1;
        (place.written, place.found, place.checked) = (Ticket(0), place.disk.len(), 0);
        (place.keeps, place.taking, place.received) = (None, None, None);
        (place.state, place.executed) = (State::default(), OpNumber(0));
        if let Boot::Restored(restored) = &boot
            && let Some(base) = restored.needed_snapshot().unwrap()
        {
            (place.state, place.executed) = (place.snapshots[&base].1.clone(), base);
        }
        place.reports.clear();
        place.heard = [0; MOST];
        let mut config = place.config.clone();
        config.node = config.node.or_else(|| node_of(replica));
        config.promised_before = config.settings.lease;
        place.config.node = config.node;
        place.replica = Some(Replica::new(config, boot, now));
        place.learns = place.replica.as_ref().is_some_and(Replica::is_learner);
        self.carry_out(replica);
        self.event(replica, Event::Tick);
    }

    pub(super) fn restart(&mut self, replica: usize) {
        let place = &mut self.places[replica];
        if place.replica.is_some() || place.is_gone || place.wanted.is_some() {
            return;
        }
        let boot = if place.learns {
            place.clear_disk();
            Boot::Fresh
        } else {
            match place.restored() {
                Some(restored) if !restored.is_amnesiac() => Boot::Restored(restored.into()),
                restored => {
                    place.snapshots.clear();
                    let view = restored.map_or_else(|| place.noted_view(), |restored| restored.view());
                    Boot::Amnesiac { view }
                }
            }
        };
        self.start(replica, boot);
        (0..MOST).for_each(|other| self.shake_hands(replica, other));
    }

    /// The process ends. Of the records that are on their way to the disk some, the first ones, get there.
    pub(super) fn crash(&mut self, replica: usize, prng: &mut Prng) {
        let place = &mut self.places[replica];
        let written = prng.below(place.unwritten.len() as u64 + 1) as usize;
        place.disk.extend(place.unwritten.drain(..).take(written));
        place.waiting.clear();
        place.replica = None;
        let life = place.life;
        let peer = Peer::Replica(member(replica));
        self.wire.retain(|packet| packet.to != (peer, life));
        for user in 0..self.users.len() {
            self.disconnect(user, replica);
        }
    }

    /// So many members are without memory, or would be if they started now.
    pub(super) fn forgetful(&self) -> usize {
        let is_forgetful = |place: &&Place| {
            let in_memory = || place.replica.as_ref().is_none_or(Replica::has_lost_memory);
            let forgets = place.restored().map_or_else(in_memory, |restored| restored.is_amnesiac());
            !place.is_gone && !place.learns && (forgets || place.wanted.is_some())
        };
        self.places.iter().filter(is_forgetful).count()
    }

    /// True if one more may lose its memory, or its disk `for_good`. From the moment on at which the entry is in a log by which the
    /// group shrinks, it bears what the smaller one does; and no more lost disks even before: see the tests in `first_views`.
    pub(super) fn may_forget(&self, for_good: bool) -> bool {
        let shrinks = self.weights.iter().any(|(step, weight)| *step == Step::Shrink && *weight > 0);
        let faults = |place: &Place| {
            let core = place.replica.as_ref();
            let next = core.and_then(|core| {
                core.next_configuration().or(core.backlog.reconfiguration.map(|(_, next)| next))
            });
            let faults = next.map_or(MOST, |next| next.roster.group().faults());
            // Until a view of its own has committed something, a configuration needs the one before.
            let is_unproven = core.is_some_and(|core| !core.is_established());
            let before = place.config.configuration.before.filter(|_| is_unproven);
            let of_before = before.map_or(MOST, |before| before.group().faults());
            faults.min(of_before).min(place.config.configuration.faults())
        };
        let members = self.places.iter().filter(|place| !place.is_gone && !place.learns);
        let least = members.map(faults).min().unwrap_or(0);
        self.forgetful() < if for_good && shrinks { least.min(1) } else { least }
    }

    pub(super) fn event(&mut self, replica: usize, event: Event) {
        let now = self.clock(self.places[replica].ahead);
        let Some(core) = &mut self.places[replica].replica else { return };
        core.handle(now, event);
        self.carry_out(replica);
    }

    pub(super) fn carry_out(&mut self, replica: usize) {
        while let Some(action) = self.places[replica].replica.as_mut().and_then(Replica::poll) {
            let place = &mut self.places[replica];
            match action {
                Action::Persist { record, .. } => place.unwritten.push_back(record),
                Action::Send { to, message, after } => {
                    if after <= place.written {
                        self.send(replica, to, message);
                    } else {
                        place.waiting.push((after, to, message));
                    }
                }
                Action::Apply { through } => {
                    let core = place.replica.as_ref().unwrap();
                    let mut replies = Vec::new();
                    for number in (place.executed.0 + 1..=through.0).map(OpNumber) {
                        for update in core.entry(number).updates() {
                            let reply = execute(&mut place.state, &update.request.body);
                            if !update.class.is_nilext() {
                                replies.push(Returned { number, reply: Body::from(reply), effects: 0 });
                            }
                        }
                    }
                    place.executed = through;
                    place.reports.push_back(Event::Applied { through, replies });
                }
                Action::TakeSnapshot { head, ticket, .. } => {
                    assert!(head.op_number == place.executed, "it is of what is executed");
                    place.taking = Some(((head, place.state.clone()), ticket));
                }
                Action::KeepFrom { op_number, ticket } => place.keeps = Some((op_number, ticket)),
                Action::SendSnapshotPart { to, op_number, offset } => match place.snapshots.get(&op_number) {
                    Some(snapshot) => {
                        let part = Body::from((self.files.len() as u64).to_le_bytes());
                        self.files.push(snapshot.clone());
                        self.send(replica, to, Message::SnapshotPart { op_number, offset, part });
                    }
                    None => place.reports.push_back(Event::SnapshotUnreadable { op_number }),
                },
                Action::WriteSnapshotPart { op_number, offset, part } => {
                    let file = u64::from_le_bytes(part[..].try_into().unwrap());
                    place.received = Some(self.files[file as usize].clone());
                    let received = offset + FILE_BYTES;
                    place.reports.push_back(Event::SnapshotPartWritten { op_number, received });
                }
                Action::LoadSnapshot { op_number } => {
                    let snapshot = place.received.clone().unwrap();
                    let head = snapshot.0.clone();
                    place.snapshots.insert(op_number, snapshot);
                    place.reports.push_back(Event::SnapshotLoaded { head, bytes: FILE_BYTES });
                }
                Action::AdoptSnapshot { op_number } => {
                    (place.state, place.executed) = (place.snapshots[&op_number].1.clone(), op_number);
                }
                Action::ReadEntries(wanted) => {
                    let from = if self.moments.is_multiple_of(2) { place.removed } else { 0 };
                    let found = place.read_entries(&wanted, from);
                    let EntriesWanted { copier, after, .. } = wanted;
                    place.reports.push_back(Event::EntriesRead { copier, after, found });
                }
                Action::Read { to, view, number, applied, body, freshness, .. } => {
                    let reply = Body::from(execute(&mut place.state.clone(), &body));
                    let message = match freshness {
                        None => Message::ReadReply { view, number, reply },
                        Some(freshness) => {
                            let expiry = WallTime(0);
                            Message::MemberReply { view, number, applied, freshness, expiry, reply }
                        }
                    };
                    self.send(replica, to, message);
                }
                Action::Evaluate { to, view, id, body } => {
                    let reply = Body::from(execute(&mut place.state.clone(), &body));
                    self.send(replica, to, Message::Evaluated { view, id, reply });
                }
                Action::Reconfigured(configuration) => place.config.configuration = configuration,
                Action::Trace(event) => tell(|| format!("{replica}: {event:?}")),
            }
        }
        self.look_at(replica);
    }

    /// What a replica has committed is what others have.
    pub(super) fn look_at(&mut self, replica: usize) {
        let place = &mut self.places[replica];
        let Some(core) = &place.replica else { return };
        place.learns = core.is_learner();
        while place.checked < core.commit().0 {
            place.checked += 1;
            let Some(entry) = core.log.entry(OpNumber(place.checked)) else { continue };
            match self.committed.get(&place.checked) {
                None => _ = self.committed.insert(place.checked, entry.clone()),
                Some(known) if known != entry => {
                    let wrong = format!(
                        "entry {} is committed twice: {known:?}, and at {replica} {entry:?}",
                        place.checked
                    );
                    _ = self.wrong.get_or_insert(wrong);
                }
                Some(_) => {}
            }
        }
    }

    pub(super) fn write(&mut self, replica: usize) {
        let place = &mut self.places[replica];
        let Some(record) = place.unwritten.pop_front() else { return };
        place.disk.push(record);
        place.written.0 += 1;
        let written = place.written;
        if let Some((op_number, ticket)) = place.keeps.take_if(|(_, ticket)| *ticket <= written) {
            // Of a snapshot that was there when the process began, the record is known to be there already.
            if ticket > Ticket(0) {
                place.removed = place.found + ticket.0 as usize - 1;
            }
            place.snapshots.retain(|of, _| *of >= op_number);
        }
        let ready = place.waiting.extract_if(.., |(after, ..)| *after <= written);
        for (_, to, message) in ready.collect::<Vec<_>>() {
            self.send(replica, to, message);
        }
    }
}
