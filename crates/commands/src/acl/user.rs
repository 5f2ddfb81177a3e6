//! One user: whether it may come in, its passwords, and what it may do.

use super::command_set::{Known, command_of};
use super::denial::Denial;
use super::limits::{CHECK_STEPS, CHECK_STEPS_PER_KEY, CHECKS_STEPS_MAX, SCRIPT_PATTERN_WEIGHT_MAX};
use super::password::Password;
use super::rule_error::RuleError;
use super::selector::Selector;
use crate::families::specification::CommandKind;
use crate::glob::Steps;
use crate::key_access::{AccessedKey, accessed_keys, subcommand_key_flags};
use crate::words::is;

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    is_on: bool,
    /// Any password is right.
    needs_no_password: bool,
    /// Redis looks at payloads of RESTORE more closely for some users. Here they are checked always; the flag is kept for tools.
    skips_sanitizing: bool,
    passwords: Vec<Password>,
    root: Selector,
    selectors: Vec<Selector>,
}

impl User {
    /// A user that may do nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            is_on: false,
            needs_no_password: false,
            skips_sanitizing: false,
            passwords: Vec::new(),
            root: Selector::nothing(),
            selectors: Vec::new(),
        }
    }

    /// True if whoever may do something by the user `before` may do it by this one, too. False also where that takes more than
    /// a look: rules that differ are not compared, unless these allow everything.
    #[must_use]
    pub fn takes_nothing_from(&self, before: &Self) -> bool {
        let has_its_passwords = !before.needs_no_password
            && before.passwords.iter().all(|password| self.passwords.contains(password));
        let has_its_rights = self.root == before.root && self.selectors == before.selectors;
        (self.is_on || !before.is_on)
            && (self.needs_no_password || has_its_passwords)
            && (has_its_rights || self.may_do_everything())
    }

    /// The default user of a new cluster, which may do everything and needs no password.
    #[must_use]
    pub fn unrestricted() -> Self {
        Self { is_on: true, needs_no_password: true, root: Selector::everything(), ..Self::new() }
    }

    /// The user of a text that [`describe`](Self::describe) has given.
    ///
    /// # Errors
    /// If it is none.
    pub fn of_text(text: &[u8]) -> Result<Self, RuleError> {
        let words: Vec<&[u8]> = text.split(|byte| *byte == b' ').collect();
        let mut user = Self::new();
        user.change(&words).map_err(|(_, error)| error.unwrap_or(RuleError::Syntax))?;
        // Bytes that are no text in a rule would be other ones the next time.
        if user.describe() == text { Ok(user) } else { Err(RuleError::Syntax) }
    }

    /// Applies the rules of ACL SETUSER in their order. The rules of a selector may be several words.
    ///
    /// # Errors
    /// The first rule that is none, and what is wrong with it; `None`: its parenthesis is not closed. The user has changed by
    /// the rules before that one.
    pub fn change(&mut self, rules: &[&[u8]]) -> Result<(), (Vec<u8>, Option<RuleError>)> {
        let mut rest = rules;
        while let Some((first, behind)) = rest.split_first() {
            rest = behind;
            let mut rule = first.to_vec();
            if rule.first() == Some(&b'(') {
                while rule.last() != Some(&b')') {
                    let Some((next, behind)) = rest.split_first() else { return Err((first.to_vec(), None)) };
                    rule.push(b' ');
                    rule.extend_from_slice(next);
                    rest = behind;
                }
            }
            self.apply(&rule).map_err(|error| (rule, Some(error)))?;
        }
        Ok(())
    }

    /// Applies one rule.
    fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match rule {
            [] => {}
            _ if is(rule, "on") => self.is_on = true,
            _ if is(rule, "off") => self.is_on = false,
            _ if is(rule, "skip-sanitize-payload") => self.skips_sanitizing = true,
            _ if is(rule, "sanitize-payload") => self.skips_sanitizing = false,
            _ if is(rule, "nopass") => (self.needs_no_password, self.passwords) = (true, Vec::new()),
            _ if is(rule, "resetpass") => (self.needs_no_password, self.passwords) = (false, Vec::new()),
            _ if is(rule, "clearselectors") => self.selectors.clear(),
            _ if is(rule, "reset") => *self = Self::new(),
            [b'>', password @ ..] => self.add_password(Password::of(password)),
            [b'#', digits @ ..] => {
                self.add_password(Password::from_hexadecimal(digits).ok_or(RuleError::Hash)?);
            }
            [b'<', password @ ..] => self.remove_password(Password::of(password))?,
            [b'!', digits @ ..] => {
                self.remove_password(Password::from_hexadecimal(digits).ok_or(RuleError::Hash)?)?;
            }
            [b'(', rules @ .., b')'] => self.selectors.push(Selector::of_rules(rules)?),
            _ => self.root.apply(rule)?,
        }
        Ok(())
    }

    fn add_password(&mut self, password: Password) {
        self.needs_no_password = false;
        if !self.passwords.contains(&password) {
            self.passwords.push(password);
        }
    }

    fn remove_password(&mut self, password: Password) -> Result<(), RuleError> {
        let place = self.passwords.iter().position(|known| *known == password);
        self.passwords.remove(place.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    /// True if a client may become this user.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.is_on
    }

    /// True if any password is right.
    #[must_use]
    pub const fn needs_no_password(&self) -> bool {
        self.needs_no_password
    }

    /// True if it refuses no command, whatever the command names.
    #[must_use]
    pub fn may_do_everything(&self) -> bool {
        self.root.is_everything() || self.selectors.iter().any(Selector::is_everything)
    }

    /// True if a client that knows this password may become this user. All passwords are compared, and each in a time that
    /// does not depend on where they differ.
    #[must_use]
    pub fn accepts(&self, password: &[u8]) -> bool {
        let given = Password::of(password);
        let is_known = self.passwords.iter().fold(false, |found, known| found | known.is_same(&given));
        self.is_on && (self.needs_no_password || is_known)
    }

    /// The flags, as ACL GETUSER shows them.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        let sanitizing = if self.skips_sanitizing { "skip-sanitize-payload" } else { "sanitize-payload" };
        let switch = if self.is_on { "on" } else { "off" };
        [Some(switch), self.needs_no_password.then_some("nopass"), Some(sanitizing)].into_iter().flatten()
    }

    /// The passwords.
    #[must_use]
    pub fn passwords(&self) -> &[Password] {
        &self.passwords
    }

    /// What the user may do by rules that stand in no parentheses.
    #[must_use]
    pub const fn root(&self) -> &Selector {
        &self.root
    }

    /// What the user may do besides.
    #[must_use]
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// All of it, as ACL LIST shows it behind the name.
    #[must_use]
    pub fn describe(&self) -> Vec<u8> {
        let mut parts: Vec<Vec<u8>> = self.flags().map(|flag| flag.as_bytes().to_vec()).collect();
        parts.extend(
            self.passwords.iter().map(|password| format!("#{}", password.hexadecimal()).into_bytes()),
        );
        parts.push(self.root.describe());
        parts.extend(self.selectors.iter().map(|selector| [b"(", &selector.describe()[..], b")"].concat()));
        parts.join(&b' ')
    }

    /// Whether the user may run a command, which exists and has a fitting number of words. BLIND and READ are what stands
    /// behind them. All replicas come to the same, however long it takes: this is for what scripts call, and for nobody else.
    ///
    /// # Errors
    /// Why not: if no selector has the command, that; else the last key or channel that none has.
    pub fn check(&self, words: &[&[u8]]) -> Result<(), Denial> {
        let Some(known) = command_of(words) else { return Ok(()) };
        if known.spec.kind == CommandKind::Blind {
            return self.check(&words[1..]);
        }
        self.check_known(&known, words, &keys_of(&known, words), &mut Steps::unlimited())
    }

    /// As [`check`](Self::check), before a command is submitted, in a bounded time: what cannot be decided in that is
    /// refused. So are scripts of a user whose patterns are such that each call of theirs could take long.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn admit(&self, words: &[&[u8]], budget: &mut CheckBudget) -> Result<(), Denial> {
        let Some(known) = command_of(words) else { return Ok(()) };
        if known.spec.kind == CommandKind::Blind {
            return self.admit(&words[1..], budget);
        }
        let keys = keys_of(&known, words);
        let mut steps = budget.of_command(keys.len());
        let before = steps;
        let checked = self.check_known(&known, words, &keys, &mut steps);
        budget.give(before, steps);
        checked?;
        if runs_commands(known.spec.name) && self.pattern_weight() > SCRIPT_PATTERN_WEIGHT_MAX {
            return Err(Denial::Command(known.name()));
        }
        Ok(())
    }

    /// See [`weight`](crate::glob::weight).
    fn pattern_weight(&self) -> usize {
        core::iter::once(&self.root).chain(&self.selectors).map(Selector::weight).sum()
    }

    fn check_known(
        &self,
        known: &Known,
        words: &[&[u8]],
        keys: &[AccessedKey<'_>],
        steps: &mut Steps,
    ) -> Result<(), Denial> {
        let mut worst = None;
        for selector in core::iter::once(&self.root).chain(&self.selectors) {
            match selector.check(known, words, keys, steps) {
                Ok(()) => return Ok(()),
                Err((position, denial)) => {
                    let weight = (rank(&denial), position);
                    if worst.as_ref().is_none_or(|(before, _)| weight > *before) {
                        worst = Some((weight, denial));
                    }
                }
            }
        }
        match worst {
            Some((_, denial)) => Err(denial),
            None => Ok(()),
        }
    }

    /// True if the user may be told what is published there, and that can be decided in a bounded time.
    #[must_use]
    pub fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        let mut steps = Steps::new(CHECK_STEPS);
        core::iter::once(&self.root)
            .chain(&self.selectors)
            .any(|selector| selector.allows_channel(channel, is_pattern, &mut steps))
    }
}

impl Default for User {
    fn default() -> Self {
        Self::new()
    }
}

/// How long checks of commands that are to be submitted together may take.
#[derive(Clone, Copy, Debug)]
pub struct CheckBudget(Steps);

impl Default for CheckBudget {
    fn default() -> Self {
        Self(Steps::new(CHECKS_STEPS_MAX))
    }
}

impl CheckBudget {
    /// False if nothing more can be decided.
    #[must_use]
    pub fn has_steps(&self) -> bool {
        self.0 != Steps::new(0)
    }

    /// What a command with so many keys may use of it.
    fn of_command(self, keys: usize) -> Steps {
        self.0.at_most(CHECK_STEPS + CHECK_STEPS_PER_KEY * keys as u64)
    }

    /// A command had so many, and has left so many.
    fn give(&mut self, had: Steps, left: Steps) {
        self.0.use_up(had, left);
    }
}

/// True for commands that call others.
fn runs_commands(name: &str) -> bool {
    matches!(name, "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro")
}

/// Which of two reasons is told: the greater one.
const fn rank(denial: &Denial) -> u8 {
    match denial {
        Denial::Command(_) => 0,
        Denial::Key(_) => 1,
        Denial::Channel(_) => 2,
        Denial::SortOption(_) => 3,
    }
}

/// The keys that a command names.
fn keys_of<'a>(known: &Known, words: &[&'a [u8]]) -> Vec<AccessedKey<'a>> {
    if !known.spec.accepts(words.len()) {
        return Vec::new();
    }
    if let Some(subcommand) = known.subcommand {
        let flags = subcommand_key_flags(subcommand);
        let key = words.get(2).filter(|_| !flags.is_empty());
        return key.map(|key| (*key, flags)).into_iter().collect();
    }
    let mut keys = accessed_keys(known.spec, words).unwrap_or_default();
    // Shard channels stand where keys do.
    keys.retain(|(_, flags)| !flags.contains(&"not_key"));
    keys
}
