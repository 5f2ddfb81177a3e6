//! Who was allowed what, and who did what: the rights of Redis clients are linearizable.
//!
//! An administrator changes users, and clients act for them. The judge knows of each change when it was asked for, when its
//! reply came, and from the log when it was executed; of each command when it was sent and answered. With that
//!
//! - whatever was done, a state of the users allowed that was no older than the last change whose reply had come before the
//!   command was sent: a right that is gone is gone at every front end once somebody has been told so;
//! - whatever was refused, a state forbade that held no longer ago than front ends may go by what they know.
//!
//! The judge has its own notion of users, which shares nothing with `syros_commands::acl`.

use crate::clock::VirtualTime;
use std::collections::{BTreeMap, BTreeSet};

/// The user of a client that has not said who it is, which may always do what clients do that are not in this ledger.
pub(crate) const DEFAULT: usize = 0;

/// Users that there may be, the default user among them.
pub(crate) const USERS: usize = 4;

/// Their names.
pub(crate) const NAMES: [&str; USERS] = ["default", "ann", "bob", "cem"];

/// The commands that users may lose, which nobody else uses.
pub(crate) const COMMANDS: [&str; 2] = ["strlen", "setrange"];

/// Keys begin with one of these.
pub(crate) const PREFIXES: [&str; 2] = ["ua", "ub"];

/// How many passwords there are.
pub(crate) const PASSWORDS: u64 = 3;

/// A front end may go by what it knows for so long, in parts of 64 of the time that its clock shows: that may be a little slow.
const VALID_64THS: u64 = 66;

/// What an administrator does to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is made, or made anew, with all rights and this password.
    Create(u64),
    /// It may use a command.
    Grant(usize),
    /// It may use the command no more.
    Revoke(usize),
    /// It may touch the keys of the first prefix, and no others.
    Narrow,
    /// It may touch the keys of both prefixes.
    Widen,
    /// This is its password, and no other.
    Password(u64),
    /// Nobody may become this user.
    Off,
    /// Whoever has the password may.
    On,
    /// It is removed.
    Delete,
}

/// What a client needs for what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// To become this user by this password.
    Login { user: usize, password: u64 },
    /// To run a command on a key with this prefix.
    Run { command: usize, prefix: usize },
}

/// A user, as far as the judge is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    /// Which of those that have had this name.
    number: u64,
    is_on: bool,
    password: Option<u64>,
    commands: [bool; COMMANDS.len()],
    prefixes: [bool; PREFIXES.len()],
}

impl Account {
    const fn new(number: u64) -> Self {
        Self { number, is_on: false, password: None, commands: [false; 2], prefixes: [false; 2] }
    }
}

/// All users after some change.
#[derive(Clone, Debug)]
struct Accounts {
    accounts: [Option<Account>; USERS],
    numbers: u64,
}

impl Accounts {
    fn first() -> Self {
        let default = Account { is_on: true, commands: [true; 2], prefixes: [true; 2], ..Account::new(0) };
        Self { accounts: [Some(default), None, None, None], numbers: 0 }
    }

    fn carry_out(&mut self, user: usize, change: Change) {
        let place = &mut self.accounts[user];
        if change == Change::Delete {
            *place = None;
            return;
        }
        let account = place.get_or_insert_with(|| {
            self.numbers += 1;
            Account::new(self.numbers)
        });
        match change {
            Change::Create(password) => {
                *account = Account {
                    is_on: true,
                    password: Some(password),
                    commands: [true; 2],
                    prefixes: [true; 2],
                    ..Account::new(account.number)
                };
            }
            Change::Grant(command) => account.commands[command] = true,
            Change::Revoke(command) => account.commands[command] = false,
            Change::Narrow => account.prefixes = [true, false],
            Change::Widen => account.prefixes = [true; 2],
            Change::Password(password) => account.password = Some(password),
            Change::Off => account.is_on = false,
            Change::On => account.is_on = true,
            Change::Delete => {}
        }
    }

    /// The number of the user that a login makes of a client, if it may.
    fn lets_in(&self, user: usize, password: u64) -> Option<u64> {
        let account = self.accounts[user].as_ref()?;
        (account.is_on && account.password == Some(password)).then_some(account.number)
    }

    /// True if the user, one of those with these numbers, may.
    fn allows(&self, user: usize, numbers: &BTreeSet<u64>, command: usize, prefix: usize) -> bool {
        self.accounts[user].as_ref().is_some_and(|account| {
            numbers.contains(&account.number) && account.commands[command] && account.prefixes[prefix]
        })
    }
}

/// A change that somebody has asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    user: usize,
    change: Change,
    answered: Option<VirtualTime>,
}

/// Something that a client did, or was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deed {
    /// The client.
    pub(crate) client: (usize, u64),
    /// What was asked, for people.
    pub(crate) words: &'static str,
    pub(crate) need: Need,
    /// The login by which it was the user that it was; the default user without one.
    pub(crate) login: Option<usize>,
    pub(crate) sent: VirtualTime,
    pub(crate) answered: VirtualTime,
    pub(crate) is_done: bool,
}

/// Changes and deeds of a world.
#[derive(Debug, Default)]
pub(crate) struct UsersLedger {
    changes: Vec<Asked>,
    deeds: Vec<Deed>,
}

/// What stands in every change, so that the log tells which entry it is.
pub(crate) fn mark_of(change: usize) -> String {
    format!("mark{change}x")
}

/// The changes whose marks these bytes have.
fn marked(bytes: &[u8]) -> Vec<usize> {
    let after = |at: usize| {
        let digits: Vec<u8> = bytes[at + 4..].iter().copied().take_while(u8::is_ascii_digit).collect();
        let is_whole = bytes.get(at + 4 + digits.len()) == Some(&b'x');
        core::str::from_utf8(&digits).ok().filter(|_| is_whole)?.parse().ok()
    };
    let starts = bytes.windows(4).enumerate().filter(|(_, window)| window == b"mark");
    starts.filter_map(|(at, _)| after(at)).collect()
}

impl UsersLedger {
    /// Somebody is about to ask for a change: its number.
    pub(crate) fn ask(&mut self, user: usize, change: Change) -> usize {
        self.changes.push(Asked { user, change, answered: None });
        self.changes.len() - 1
    }

    /// The reply has come.
    pub(crate) fn answered(&mut self, change: usize, now: VirtualTime) {
        self.changes[change].answered = Some(now);
    }

    /// True if the reply has come.
    pub(crate) fn is_answered(&self, change: usize) -> bool {
        self.changes.get(change).is_some_and(|asked| asked.answered.is_some())
    }

    /// What a deed needed.
    pub(crate) fn need_of(&self, deed: usize) -> Need {
        self.deeds[deed].need
    }

    /// How many deeds there are.
    pub(crate) fn deeds(&self) -> usize {
        self.deeds.len()
    }

    /// True if a client of this front end has done, or was refused, what needs this, behind so many deeds.
    pub(crate) fn has_since(&self, deeds: usize, slot: usize, need: Need, is_done: bool) -> bool {
        let later = self.deeds[deeds..].iter();
        later.filter(|deed| deed.client.0 == slot && deed.need == need).any(|deed| deed.is_done == is_done)
    }

    /// How many changes have been asked for.
    pub(crate) fn changes(&self) -> usize {
        self.changes.len()
    }

    /// The last password that somebody has wanted a user to have.
    pub(crate) fn password_of(&self, user: usize) -> Option<u64> {
        self.changes.iter().rev().filter(|asked| asked.user == user).find_map(|asked| match asked.change {
            Change::Create(password) | Change::Password(password) => Some(password),
            _ => None,
        })
    }

    /// A client has done something, or was refused: the number of the deed, by which a login is known.
    pub(crate) fn record(&mut self, deed: Deed) -> usize {
        self.deeds.push(deed);
        self.deeds.len() - 1
    }

    /// What was done, and what was refused.
    pub(crate) fn counts(&self) -> [u64; 2] {
        let done = self.deeds.iter().filter(|deed| deed.is_done).count();
        [done as u64, (self.deeds.len() - done) as u64]
    }

    /// Judges all of it. `executed`: the bodies of all updates in the order of the log, and when somebody first executed them;
    /// front ends may go by what they know for `valid`.
    ///
    /// # Errors
    /// What must not have been done or refused, in words.
    pub(crate) fn judge<'a>(
        &self,
        executed: impl Iterator<Item = (&'a [u8], VirtualTime)>,
        valid: u64,
    ) -> Result<(), String> {
        // States in order, with the moment from which on each may have been seen, and the change that made it.
        let mut states = vec![(Accounts::first(), 0, usize::MAX)];
        let mut place_of = BTreeMap::new();
        for (body, at) in executed {
            for number in marked(body) {
                let Some(asked) = self.changes.get(number) else { continue };
                let (mut next, _, _) = states[states.len() - 1].clone();
                next.carry_out(asked.user, asked.change);
                place_of.insert(number, states.len());
                states.push((next, at, number));
            }
        }
        let mut told: Vec<(VirtualTime, usize)> = Vec::new();
        for (number, asked) in self.changes.iter().enumerate() {
            let Some(answered) = asked.answered else { continue };
            let Some(place) = place_of.get(&number) else {
                return Err(format!("change {number}, {asked:?}, was acknowledged and is not in the log"));
            };
            told.push((answered, *place));
        }
        let mut numbers: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for (number, deed) in self.deeds.iter().enumerate() {
            let last = states.partition_point(|(_, at, _)| *at <= deed.answered).max(1);
            let oldest = if deed.is_done {
                // The last that somebody had been told of.
                let before = told.iter().filter(|(answered, _)| *answered < deed.sent);
                before.map(|(_, place)| *place).max().unwrap_or(0)
            } else {
                let since = deed.sent.saturating_sub(valid / 64 * VALID_64THS + 64);
                states.partition_point(|(_, at, _)| *at <= since).saturating_sub(1)
            };
            let window = &states[oldest.min(last - 1)..last];
            let is_explained = match deed.need {
                Need::Login { user, password } if deed.is_done => {
                    let found: BTreeSet<u64> =
                        window.iter().filter_map(|(state, ..)| state.lets_in(user, password)).collect();
                    let is_possible = !found.is_empty();
                    numbers.insert(number, found);
                    is_possible
                }
                Need::Login { user, password } => {
                    window.iter().any(|(state, ..)| state.lets_in(user, password).is_none())
                }
                Need::Run { command, prefix } => {
                    let (user, of_login) = self.user_of(deed.login, &numbers);
                    let allows =
                        |(state, ..): &(Accounts, u64, usize)| state.allows(user, &of_login, command, prefix);
                    window.iter().any(|state| allows(state) == deed.is_done)
                }
            };
            if !is_explained {
                return Err(explain(number, deed, self, window));
            }
        }
        Ok(())
    }

    /// The user that a login has made of a client, and the numbers that this may have.
    fn user_of(
        &self,
        login: Option<usize>,
        numbers: &BTreeMap<usize, BTreeSet<u64>>,
    ) -> (usize, BTreeSet<u64>) {
        let login = login.and_then(|login| Some((login, self.deeds.get(login)?)));
        match login {
            Some((number, Deed { need: Need::Login { user, .. }, .. })) => {
                (*user, numbers.get(&number).cloned().unwrap_or_default())
            }
            _ => (DEFAULT, BTreeSet::from([0])),
        }
    }
}

/// What is wrong with a deed, for people.
fn explain(
    number: usize,
    deed: &Deed,
    ledger: &UsersLedger,
    window: &[(Accounts, VirtualTime, usize)],
) -> String {
    let what =
        if deed.is_done { "was done though no state allows it" } else { "was refused without a reason" };
    let states = window.iter().map(|(state, at, change)| {
        let change = ledger.changes.get(*change);
        format!("at {at} after {change:?}: {:?}", state.accounts)
    });
    let login = deed.login.and_then(|login| ledger.deeds.get(login));
    format!(
        "users: deed {number}, {} of {}, {deed:?}, {what}; its login: {login:?}; states: {}",
        deed.words,
        deed.client.0,
        states.collect::<Vec<_>>().join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: u64 = 640;

    /// A ledger in which ann was made at 10, and lost the first command at 2000, which somebody was told at 2010.
    fn ledger() -> (UsersLedger, Vec<(Vec<u8>, u64)>) {
        let mut ledger = UsersLedger::default();
        let mut log = Vec::new();
        for (change, at) in [(Change::Create(1), 10), (Change::Revoke(0), 2000)] {
            let number = ledger.ask(1, change);
            log.push((format!("..{}..", mark_of(number)).into_bytes(), at));
            ledger.answered(number, at + 10);
        }
        (ledger, log)
    }

    fn judge(ledger: &UsersLedger, log: &[(Vec<u8>, u64)]) -> bool {
        ledger.judge(log.iter().map(|(body, at)| (body.as_slice(), *at)), VALID).is_ok()
    }

    fn deed(need: Need, login: Option<usize>, sent: u64, is_done: bool) -> Deed {
        Deed { client: (0, 1), words: "", need, login, sent, answered: sent + 10, is_done }
    }

    fn run(sent: u64, is_done: bool) -> bool {
        let (mut ledger, log) = ledger();
        let need = Need::Login { user: 1, password: 1 };
        let login = ledger.record(deed(need, None, 30, true));
        let need = Need::Run { command: 0, prefix: 0 };
        ledger.record(deed(need, Some(login), sent, is_done));
        judge(&ledger, &log)
    }

    #[test]
    fn a_right_is_gone_once_somebody_has_been_told() {
        assert!(run(1950, true) && run(2005, true), "nobody had been told");
        assert!(!run(2011, true) && run(2011, false));
        assert!(run(1995, false), "the reply may have come after the change");
        assert!(!run(1900, false), "it was allowed then, and had been for long");
    }

    #[test]
    fn a_grant_holds_once_front_ends_have_to_know_it() {
        let (mut ledger, mut log) = ledger();
        let number = ledger.ask(1, Change::Grant(0));
        log.push((mark_of(number).into_bytes(), 3000));
        let need = Need::Login { user: 1, password: 1 };
        let login = ledger.record(deed(need, None, 30, true));
        let need = Need::Run { command: 0, prefix: 1 };
        ledger.record(deed(need, Some(login), 3500, false));
        assert!(judge(&ledger, &log));
        ledger.record(deed(need, Some(login), 3800, false));
        assert!(!judge(&ledger, &log));
    }

    #[test]
    fn logins_need_the_password_and_who_is_removed_does_not_come_back() {
        let (mut ledger, mut log) = ledger();
        for (change, at) in [(Change::Delete, 2200), (Change::Create(2), 2300)] {
            let number = ledger.ask(1, change);
            log.push((mark_of(number).into_bytes(), at));
            ledger.answered(number, at + 10);
        }
        let first = ledger.record(deed(Need::Login { user: 1, password: 1 }, None, 30, true));
        let need = Need::Run { command: 0, prefix: 0 };
        assert!(judge(&ledger, &log));
        ledger.record(deed(need, Some(first), 2400, true));
        assert!(!judge(&ledger, &log), "it is another ann");
        ledger.deeds.pop();
        let second = ledger.record(deed(Need::Login { user: 1, password: 2 }, None, 2320, true));
        ledger.record(deed(need, Some(second), 2400, true));
        assert!(judge(&ledger, &log));
        ledger.record(deed(Need::Login { user: 1, password: 1 }, None, 2400, true));
        assert!(!judge(&ledger, &log));
    }

    #[test]
    fn what_was_acknowledged_is_in_the_log() {
        let (mut ledger, log) = ledger();
        ledger.ask(2, Change::Create(1));
        assert!(judge(&ledger, &log));
        ledger.answered(2, 2500);
        assert!(!judge(&ledger, &log));
        assert_eq!(marked(b"mark12x mark7 marky mark0x"), [12, 0]);
    }
}
