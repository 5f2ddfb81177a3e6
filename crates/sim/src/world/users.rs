//! The Redis clients that are users, and the administrator who changes what users may do. What they do is no part of the history:
//! `users_ledger` judges it. All of it has dice of its own.

use super::redis::SocketEvent;
use super::{SimEvent, World};
use crate::client::ClientProcess;
use crate::clock::VirtualTime;
use crate::resp_client::{Received, command_of};
use crate::swarm::{MILLI, SECOND, Swarm, UserWorld};
use crate::tally::Occurrence;
use crate::users_ledger::{
    COMMANDS, Change, DEFAULT, Deed, NAMES, Need, PASSWORDS, PREFIXES, USERS, UsersLedger, mark_of,
};
use std::collections::{BTreeMap, VecDeque};
use syros_types::Prng;

/// A script that runs one command. Its first argument says which, so that no static look at it could tell.
const SCRIPT: &[u8] = b"if ARGV[1] == 'strlen' then return redis.call('strlen', KEYS[1]) else return redis.call('setrange', KEYS[1], 0, ARGV[2]) end";

/// Changes that a world sees at most: the text of a user may have so many bytes only.
const CHANGES_MAX: usize = 400;

/// What a client waits for.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    /// Whether it may.
    Deed { words: &'static str, need: Need, sent: VirtualTime },
    /// The reply to MULTI.
    Multi,
    /// The reply to a command of a transaction.
    Queued { need: Need, sent: VirtualTime },
    /// The reply to DISCARD.
    Discarded,
    /// The reply to a change.
    Change(usize),
}

/// A client.
#[derive(Debug, Default)]
struct Actor {
    address: Option<u64>,
    /// The deed by which it is a user.
    login: Option<usize>,
    awaited: VecDeque<Awaited>,
    /// It is between MULTI and EXEC, with a command that needs this.
    queued: Option<Need>,
}

/// Everything about users in a world.
#[derive(Debug)]
pub(crate) struct Actors {
    dice: Prng,
    /// The clients of each front end; the last one is the administrator's.
    at: BTreeMap<usize, Vec<Actor>>,
    ledger: UsersLedger,
    /// The change that is under way, and by which client.
    changing: Option<(usize, usize)>,
    /// Nothing is asked for before then.
    next_change: VirtualTime,
    /// They do nothing by themselves any more.
    is_over: bool,
}

impl Actors {
    pub(super) fn new(swarm: &Swarm) -> Self {
        Self {
            dice: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0055),
            at: BTreeMap::new(),
            ledger: UsersLedger::default(),
            changing: None,
            next_change: 0,
            is_over: false,
        }
    }

    /// A process has ended, and with it its connections.
    pub(super) fn end(&mut self, slot: usize) {
        self.at.remove(&slot);
        if self.changing.is_some_and(|(at, _)| at == slot) {
            self.changing = None;
        }
    }

    fn place_of(&self, slot: usize, address: u64) -> Option<usize> {
        self.at.get(&slot)?.iter().position(|actor| actor.address == Some(address))
    }

    fn actor(&mut self, slot: usize, place: usize) -> Option<&mut Actor> {
        self.at.get_mut(&slot)?.get_mut(place)
    }

    /// The connection of a client is gone. False if it is one of another client.
    pub(super) fn forget(&mut self, slot: usize, address: u64) -> bool {
        let Some(place) = self.place_of(slot, address) else { return false };
        if self.changing == Some((slot, place)) {
            self.changing = None;
        }
        if let Some(actor) = self.actor(slot, place) {
            *actor = Actor::default();
        }
        true
    }
}

/// The words of a change.
fn words_of(number: usize, user: usize, change: Change) -> Vec<String> {
    let name = NAMES[user];
    let mark = mark_of(number);
    if change == Change::Delete {
        return ["ACL", "DELUSER", name, &mark].map(str::to_owned).to_vec();
    }
    let [first, second] = PREFIXES.map(|prefix| format!("~{prefix}*"));
    // Whoever may run a command may run it by a script and in a transaction.
    let transactions = ["+eval", "+multi", "+exec", "+discard"].map(str::to_owned);
    let rules = match change {
        Change::Create(password) => {
            let all = COMMANDS.map(|command| format!("+{command}"));
            let begin = ["reset".to_owned(), "on".to_owned(), format!(">p{password}"), first, second];
            [begin.to_vec(), all.to_vec(), transactions.to_vec()].concat()
        }
        Change::Grant(command) => {
            let granted = format!("+{}", COMMANDS[command]);
            [vec![granted], transactions.to_vec()].concat()
        }
        Change::Revoke(command) => vec![format!("-{}", COMMANDS[command])],
        Change::Narrow => vec!["resetkeys".to_owned(), first],
        Change::Widen => vec!["resetkeys".to_owned(), first, second],
        Change::Password(password) => vec!["resetpass".to_owned(), format!(">p{password}")],
        Change::Off => vec!["off".to_owned()],
        Change::On => vec!["on".to_owned()],
        Change::Delete => Vec::new(),
    };
    let selector = [String::from("clearselectors"), format!("(~{mark} +ping)")];
    ["ACL", "SETUSER", name].map(str::to_owned).into_iter().chain(rules).chain(selector).collect()
}

/// The words of a command that needs this, as a client sends them, or as a script runs them.
fn words_to(need: Need, by_script: bool, text: &str) -> Vec<String> {
    let Need::Run { command, prefix } = need else { return Vec::new() };
    let key = format!("{}1", PREFIXES[prefix]);
    let words: Vec<&str> = match (by_script, command) {
        (true, _) => vec!["EVAL", "", "1", &key, COMMANDS[command], text],
        (false, 0) => vec!["STRLEN", &key],
        (false, _) => vec!["SETRANGE", &key, "0", text],
    };
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    if by_script {
        words[1] = String::from_utf8_lossy(SCRIPT).into_owned();
    }
    words
}

/// What a reply says of what a client may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Done,
    Refused,
    /// Nothing.
    Open,
}

fn verdict(reply: &Received) -> Result<Verdict, String> {
    let Received::Error(text) = reply else { return Ok(Verdict::Done) };
    let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
    match code {
        b"NOPERM" | b"WRONGPASS" => Ok(Verdict::Refused),
        b"ERR" if text.starts_with(b"ERR ACL failure in script") => Ok(Verdict::Refused),
        b"NOAUTH" | b"EXECABORT" | b"NOQUORUM" | b"LOADING" | b"TRYAGAIN" | b"TIMEOUT" | b"UNKNOWN"
        | b"OVERLOADED" | b"OOM" => Ok(Verdict::Open),
        b"ERR"
            if text.starts_with(b"ERR EXEC without MULTI")
                || text.starts_with(b"ERR DISCARD without MULTI") =>
        {
            Ok(Verdict::Open)
        }
        _ => Err(format!("a user is answered {}", text.escape_ascii())),
    }
}

impl World {
    /// What there is about users, if there is anything.
    pub(super) fn user_world(&self) -> Option<UserWorld> {
        self.swarm.front_ends.and_then(|world| world.users)
    }

    /// A front end has started: clients come that are users.
    pub(super) fn begin_acting(&mut self, slot: usize) {
        let Some(world) = self.user_world() else { return };
        self.actors.at.insert(slot, (0..=world.actors).map(|_| Actor::default()).collect());
        (0..=world.actors).for_each(|place| self.schedule_act(slot, place, world));
    }

    fn schedule_act(&mut self, slot: usize, place: usize, world: UserWorld) {
        let at = self.now() + 1 + self.actors.dice.below(2 * world.act_pause);
        let life = self.clients[slot].life;
        self.scheduler.schedule(at, SimEvent::Act { slot, life, place });
    }

    /// Such a client does something.
    pub(super) fn act(&mut self, slot: usize, life: u64, place: usize) {
        let Some(world) = self.user_world() else { return };
        if self.clients[slot].life != life || self.clients[slot].process.is_none() || self.actors.is_over {
            return;
        }
        self.schedule_act(slot, place, world);
        if place == world.actors {
            self.administrate(slot, place, world);
        } else {
            self.use_rights(slot, place);
        }
    }

    /// True if a client can send something. One that is not connected connects first.
    fn is_ready(&mut self, slot: usize, place: usize) -> Option<u64> {
        let is_scarce = self.swarm.protocol.in_flight_max <= 4;
        let actors = self.actors.at.get(&slot)?;
        let awaits = |actor: &Actor| !actor.awaited.is_empty();
        let actor = actors.get(place)?;
        if awaits(actor) || (is_scarce && actors.iter().any(awaits)) {
            return None;
        }
        if let Some(address) = actor.address {
            return Some(address);
        }
        let time = self.now();
        let process = self.clients[slot].process.as_mut()?;
        let now = process.clock.now(time);
        let address = process.host()?.connect_talker(now)?;
        self.actors.actor(slot, place)?.address = Some(address);
        Some(address)
    }

    fn send_as_user(&mut self, slot: usize, place: usize, commands: &[(Vec<String>, Awaited)]) {
        let mut bytes = Vec::new();
        let time = self.now();
        let Some(actor) = self.actors.actor(slot, place) else { return };
        let Some(address) = actor.address else { return };
        for (words, awaited) in commands {
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            command_of(&words, &mut bytes);
            actor.awaited.push_back(*awaited);
            self.trace.line(time, format_args!("client {slot} {address:x} asks {awaited:?}"));
        }
        self.send_in_pieces(slot, address, &bytes);
    }

    /// The administrator changes something, if nothing is being changed.
    fn administrate(&mut self, slot: usize, place: usize, world: UserWorld) {
        let is_early = self.now() < self.actors.next_change;
        if self.actors.changing.is_some() || is_early || self.actors.ledger.changes() >= CHANGES_MAX {
            return;
        }
        self.actors.next_change = self.now() + self.actors.dice.below(2 * world.change_pause);
        let user = self.actors.dice.below(USERS as u64) as usize;
        let dice = &mut self.actors.dice;
        let command = dice.below(2) as usize;
        let change = match dice.below(if user == DEFAULT { 2 } else { 10 }) {
            0 => Change::Grant(command),
            1 => Change::Revoke(command),
            2..=4 => Change::Create(dice.below(PASSWORDS)),
            5 => Change::Narrow,
            6 => Change::Widen,
            7 => Change::Password(dice.below(PASSWORDS)),
            8 if dice.chance(1, 2) => Change::Off,
            8 => Change::On,
            _ => Change::Delete,
        };
        self.change(slot, place, user, change);
    }

    /// Has the administrator change something by a client of this front end. False if that is not ready.
    fn change(&mut self, slot: usize, place: usize, user: usize, change: Change) -> bool {
        if self.is_ready(slot, place).is_none() {
            return false;
        }
        let number = self.actors.ledger.ask(user, change);
        self.actors.changing = Some((slot, place));
        let now = self.now();
        self.trace.line(now, format_args!("change {number}: {} {change:?}", NAMES[user]));
        let mut words = words_of(number, user, change);
        if number % 4 == 3 {
            words.insert(0, "BLIND".to_owned());
        }
        self.send_as_user(slot, place, &[(words, Awaited::Change(number))]);
        true
    }

    /// A client does something that it may, or may not.
    fn use_rights(&mut self, slot: usize, place: usize) {
        let Some(address) = self.is_ready(slot, place) else { return };
        let (sent, life) = (self.now(), self.clients[slot].life);
        let Some(actor) = self.actors.actor(slot, place) else { return };
        let (is_user, queued) = (actor.login.is_some(), actor.queued.take());
        let dice = &mut self.actors.dice;
        let need = Need::Run { command: dice.below(2) as usize, prefix: dice.below(2) as usize };
        let text = dice.below(10).to_string();
        if let Some(need) = queued {
            let exec = Awaited::Deed { words: "EXEC", need, sent };
            let (words, awaited) =
                if dice.chance(5, 6) { ("EXEC", exec) } else { ("DISCARD", Awaited::Discarded) };
            return self.send_as_user(slot, place, &[(vec![words.to_owned()], awaited)]);
        }
        match dice.below(12) {
            0 if !self.is_healed && dice.chance(1, 4) => {
                self.socket_event(slot, life, address, SocketEvent::Closes);
            }
            roll @ (0..=2) => {
                if is_user && roll > 0 {
                    return;
                }
                let user = 1 + dice.below(USERS as u64 - 1) as usize;
                let password = dice.below(PASSWORDS);
                let password = if dice.chance(1, 3) {
                    password
                } else {
                    self.actors.ledger.password_of(user).unwrap_or(password)
                };
                self.log_in(slot, place, user, password);
            }
            3 | 4 => {
                let commands = [
                    (vec!["MULTI".to_owned()], Awaited::Multi),
                    (words_to(need, false, &text), Awaited::Queued { need, sent }),
                ];
                self.send_as_user(slot, place, &commands);
            }
            roll => self.run_one(slot, place, need, roll < 8, &text),
        }
    }

    fn log_in(&mut self, slot: usize, place: usize, user: usize, password: u64) {
        let words = ["AUTH", NAMES[user], &format!("p{password}")].map(str::to_owned).to_vec();
        let awaited = Awaited::Deed { words: "AUTH", need: Need::Login { user, password }, sent: self.now() };
        self.send_as_user(slot, place, &[(words, awaited)]);
    }

    fn run_one(&mut self, slot: usize, place: usize, need: Need, by_script: bool, text: &str) {
        let words = if by_script { "EVAL" } else { "STRLEN or SETRANGE" };
        let awaited = Awaited::Deed { words, need, sent: self.now() };
        self.send_as_user(slot, place, &[(words_to(need, by_script, text), awaited)]);
    }

    /// Hands bytes to a client if it is one that is a user. False if it is another one.
    pub(super) fn hears_as_user(&mut self, slot: usize, address: u64, bytes: &[u8]) -> bool {
        let Some(place) = self.actors.place_of(slot, address) else { return false };
        let now = self.now();
        let host = self.clients[slot].process.as_mut().and_then(ClientProcess::host);
        let Some(what) = host.map(|host| host.hear(address, bytes)) else { return true };
        let heard = what.and_then(|replies| {
            replies.into_iter().try_for_each(|reply| {
                self.trace.line(now, format_args!("client {slot} {address:x} hears {reply:?}"));
                self.user_hears((slot, place), address, &reply)
            })
        });
        if let Err(problem) = heard {
            _ = self.misanswered.get_or_insert(problem);
        }
        true
    }

    fn user_hears(
        &mut self,
        (slot, place): (usize, usize),
        address: u64,
        reply: &Received,
    ) -> Result<(), String> {
        let now = self.now();
        let actors = &mut self.actors;
        let Some(actor) = actors.at.get_mut(&slot).and_then(|actors| actors.get_mut(place)) else {
            return Ok(());
        };
        let Some(awaited) = actor.awaited.pop_front() else {
            return Err(format!("a user that has asked for nothing gets {reply:?}"));
        };
        let verdict = verdict(reply)?;
        let deed = |words, need, login, sent, is_done| Deed {
            client: (slot, address),
            words,
            need,
            login,
            sent,
            answered: now,
            is_done,
        };
        match awaited {
            Awaited::Multi | Awaited::Discarded => {}
            Awaited::Change(number) => {
                actors.changing = None;
                match verdict {
                    Verdict::Done => actors.ledger.answered(number, now),
                    Verdict::Open => {}
                    Verdict::Refused => return Err(format!("the administrator is answered {reply:?}")),
                }
            }
            Awaited::Queued { need, sent } => {
                if *reply == Received::Simple(b"QUEUED".to_vec()) {
                    actor.queued = Some(need);
                } else if verdict == Verdict::Refused {
                    actors.ledger.record(deed("in MULTI", need, actor.login, sent, false));
                }
                // What came without MULTI before it was done at once.
                if matches!(reply, Received::Integer(_)) {
                    actors.ledger.record(deed("without MULTI", need, actor.login, sent, true));
                }
                if actor.queued.is_none() && verdict != Verdict::Done {
                    // Whether it is in a transaction that is doomed or in none, that ends.
                    let words = vec!["DISCARD".to_owned()];
                    self.send_as_user(slot, place, &[(words, Awaited::Discarded)]);
                }
            }
            Awaited::Deed { words, need, sent } => {
                if verdict != Verdict::Open {
                    let is_done = verdict == Verdict::Done;
                    let number = actors.ledger.record(deed(words, need, actor.login, sent, is_done));
                    if is_done && matches!(need, Need::Login { .. }) {
                        actor.login = Some(number);
                    }
                }
            }
        }
        Ok(())
    }

    /// When everything has been repaired, users get and lose rights by one front end after the other, and are served or refused
    /// at each.
    ///
    /// # Errors
    /// What does not happen in time.
    pub(crate) fn users_phase(&mut self) -> Result<(), String> {
        let Some(world) = self.user_world() else { return Ok(()) };
        self.actors.is_over = true;
        let front_ends: Vec<usize> = self.actors.at.keys().copied().collect();
        for round in 0..2 {
            let user = 1 + (round + self.actors.dice.below(2) as usize) % (USERS - 1);
            let password = self.actors.dice.below(PASSWORDS);
            let by = front_ends[self.actors.dice.below(front_ends.len() as u64) as usize];
            self.until_changed(by, world, user, Change::Create(password))?;
            for slot in &front_ends {
                self.until_logged_in(*slot, user, password)?;
                self.until_answered(*slot, Verdict::Done)?;
            }
            self.until_changed(by, world, user, Change::Revoke(0))?;
            for slot in &front_ends {
                self.until_answered(*slot, Verdict::Refused)?;
            }
        }
        // What is under way is answered.
        self.advance(2 * SECOND / u64::from(self.swarm.protocol.speed))
    }

    /// Lets time pass until something holds, which is tried again and again.
    fn until(&mut self, what: &str, mut attempt: impl FnMut(&mut Self) -> bool) -> Result<(), String> {
        let speed = u64::from(self.swarm.protocol.speed);
        let deadline = self.now() + self.liveness_bound();
        while !attempt(self) {
            if self.now() > deadline {
                return Err(format!("users: {what} takes too long; {}", self.statuses()));
            }
            self.advance(MILLI / speed)?;
        }
        Ok(())
    }

    fn until_changed(
        &mut self,
        by: usize,
        world: UserWorld,
        user: usize,
        change: Change,
    ) -> Result<(), String> {
        let mut asked = None;
        self.until("a change", |this| {
            let ledger = &this.actors.ledger;
            if asked.is_some_and(|number| ledger.is_answered(number)) {
                return true;
            }
            if this.actors.changing.is_none() {
                let number = ledger.changes();
                if this.change(by, world.actors, user, change) {
                    asked = Some(number);
                }
            }
            false
        })
    }

    fn until_logged_in(&mut self, slot: usize, user: usize, password: u64) -> Result<(), String> {
        self.until("a login", |this| {
            let need = Need::Login { user, password };
            let Some(actor) = this.actors.actor(slot, 0) else { return false };
            if actor.queued.take().is_some() {
                this.send_as_user(slot, 0, &[(vec!["DISCARD".to_owned()], Awaited::Discarded)]);
                return false;
            }
            let login = actor.login;
            if login.is_some_and(|login| this.actors.ledger.need_of(login) == need) {
                return true;
            }
            if this.is_ready(slot, 0).is_some() {
                this.log_in(slot, 0, user, password);
            }
            false
        })
    }

    /// The first client of a front end gets this answer to the first command.
    fn until_answered(&mut self, slot: usize, verdict: Verdict) -> Result<(), String> {
        let need = Need::Run { command: 0, prefix: 0 };
        let mut asked = None;
        self.until("an answer", |this| {
            let deeds = this.actors.ledger.deeds();
            if asked.is_some_and(|before| {
                this.actors.ledger.has_since(before, slot, need, verdict == Verdict::Done)
            }) {
                return true;
            }
            if this.is_ready(slot, 0).is_some() {
                asked = asked.or(Some(deeds));
                this.run_one(slot, 0, need, deeds.is_multiple_of(2), "1");
            }
            false
        })
    }

    /// Judges what users have done and were refused.
    ///
    /// # Errors
    /// What must not have been.
    pub(crate) fn judge_users(&mut self) -> Result<(), String> {
        let Some(world) = self.user_world() else { return Ok(()) };
        let [done, refused] = self.actors.ledger.counts();
        self.tally.record_times(Occurrence::UserDid, done);
        self.tally.record_times(Occurrence::UserRefused, refused);
        self.tally.record_times(Occurrence::UserChanged, self.actors.ledger.changes() as u64);
        let invariants = &self.invariants;
        let entries = invariants.log().iter().enumerate().flat_map(|(index, entry)| {
            let number = syros_types::OpNumber(index as u64 + 1);
            let at = invariants.executed_at(number).unwrap_or(0);
            entry.updates().iter().map(move |update| (&*update.request.body, at))
        });
        self.actors.ledger.judge(entries, world.valid)
    }
}
