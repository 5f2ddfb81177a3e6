//! Sets of commands and subcommands, and the rules that make them.

use super::rule_error::RuleError;
use crate::families::specification::{CommandSpec, SubcommandSpec};
use crate::table::{commands, number_of};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// A command, or a subcommand, and its place in the sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) place: usize,
    pub(super) spec: &'static CommandSpec,
    pub(super) subcommand: Option<&'static SubcommandSpec>,
}

impl Known {
    /// Its full name: that of a subcommand begins with its command and a bar.
    pub(super) const fn name(&self) -> &'static str {
        match self.subcommand {
            Some(subcommand) => subcommand.name,
            None => self.spec.name,
        }
    }

    const fn categories(&self) -> &'static [&'static str] {
        match self.subcommand {
            Some(subcommand) => subcommand.categories,
            None => self.spec.categories,
        }
    }

    /// True if a client may run it before it has said who it is.
    pub(super) fn needs_no_user(&self) -> bool {
        self.spec.flags.contains(&"no_auth")
    }
}

/// The places of commands: that of the command with each number in the table. Its subcommands have the next ones.
static PLACES: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let mut next = 0;
    let place = |spec: &CommandSpec| {
        let place = next;
        next += 1 + spec.subcommands.len();
        place
    };
    commands().iter().map(place).collect()
});

/// So many commands and subcommands there are.
static COUNT: LazyLock<usize> =
    LazyLock::new(|| commands().iter().map(|spec| 1 + spec.subcommands.len()).sum());

/// The commands and subcommands of each category, in the order of the table: a command before its subcommands.
static CATEGORIES: LazyLock<BTreeMap<&'static [u8], Vec<Known>>> = LazyLock::new(|| {
    let mut categories = BTreeMap::<&[u8], Vec<Known>>::new();
    for (spec, place) in commands().iter().zip(PLACES.iter()) {
        let command = Known { place: *place, spec, subcommand: None };
        let subcommands = spec.subcommands.iter().zip(place + 1..);
        let subcommands =
            subcommands.map(|(subcommand, place)| Known { place, spec, subcommand: Some(subcommand) });
        for known in core::iter::once(command).chain(subcommands) {
            for category in known.categories() {
                categories.entry(category.as_bytes()).or_default().push(known);
            }
        }
    }
    categories
});

/// The command of this name, or the subcommand with its command and a bar before it.
fn find(name: &[u8]) -> Option<Known> {
    let (command, second) = match name.iter().position(|byte| *byte == b'|') {
        Some(bar) => (&name[..bar], Some(&name[bar + 1..])),
        None => (name, None),
    };
    let known = find_command(command)?;
    let Some(second) = second else { return Some(known) };
    find_subcommand(known, second)
}

/// The command of this name.
fn find_command(name: &[u8]) -> Option<Known> {
    let number = number_of(name)?;
    Some(Known { place: PLACES[number], spec: &commands()[number], subcommand: None })
}

/// The subcommand of this name of a command.
fn find_subcommand(known: Known, name: &[u8]) -> Option<Known> {
    let is_it = |subcommand: &SubcommandSpec| {
        subcommand.name.split_once('|').is_some_and(|(_, own)| name.eq_ignore_ascii_case(own.as_bytes()))
    };
    let number = known.spec.subcommands.iter().position(is_it)?;
    let subcommand = known.spec.subcommands.get(number);
    Some(Known { place: known.place + 1 + number, subcommand, ..known })
}

/// The command of these words, or its subcommand if the second word names one.
pub(super) fn command_of(words: &[&[u8]]) -> Option<Known> {
    let known = find_command(words.first()?)?;
    let subcommand = words.get(1).and_then(|name| find_subcommand(known, name));
    Some(subcommand.unwrap_or(known))
}

/// A set of commands, as rules have made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandSet {
    /// All commands, and those that later builds bring: `+@all`. The rules are exceptions.
    begins_with_all: bool,
    /// It begins with all, and no rule takes anything away.
    is_all: bool,
    /// A bit for each place.
    bits: Vec<u64>,
    /// Commands that are allowed with these first arguments, in lower case, by their places.
    first_arguments: BTreeMap<usize, BTreeSet<Vec<u8>>>,
    /// The rules since `+@all` or `-@all`, in lower case, each with its sign.
    rules: Vec<String>,
}

impl CommandSet {
    /// No command.
    pub(super) fn none() -> Self {
        Self {
            begins_with_all: false,
            is_all: false,
            bits: vec![0; COUNT.div_ceil(64)],
            first_arguments: BTreeMap::new(),
            rules: Vec::new(),
        }
    }

    /// All commands.
    pub(super) fn all() -> Self {
        Self { begins_with_all: true, is_all: true, bits: vec![u64::MAX; COUNT.div_ceil(64)], ..Self::none() }
    }

    /// True if nothing is left out.
    pub(super) const fn is_all(&self) -> bool {
        self.is_all
    }

    fn has(&self, place: usize) -> bool {
        self.bits.get(place / 64).is_some_and(|bits| bits >> (place % 64) & 1 != 0)
    }

    fn set(&mut self, place: usize, is_allowed: bool) {
        let Some(bits) = self.bits.get_mut(place / 64) else { return };
        let bit = 1 << (place % 64);
        *bits = if is_allowed { *bits | bit } else { *bits & !bit };
    }

    /// True if a command with these words is one of them.
    pub(super) fn allows(&self, known: &Known, words: &[&[u8]]) -> bool {
        if self.is_all || known.needs_no_user() || self.has(known.place) {
            return true;
        }
        let (Some(arguments), Some(first)) = (self.first_arguments.get(&known.place), words.get(1)) else {
            return false;
        };
        arguments.contains(&first.to_ascii_lowercase())
    }

    /// Adds or removes a command with its subcommands, or one subcommand.
    fn change(&mut self, known: &Known, is_allowed: bool) {
        self.set(known.place, is_allowed);
        self.first_arguments.remove(&known.place);
        if known.subcommand.is_none() {
            (1..=known.spec.subcommands.len()).for_each(|number| self.set(known.place + number, is_allowed));
        }
    }

    /// Remembers a rule in the place of those that it makes void.
    fn note(&mut self, rule: &[u8], is_allowed: bool) {
        let rule = String::from_utf8_lossy(rule).to_ascii_lowercase();
        let is_void = |earlier: &String| {
            let earlier = &earlier[1..];
            earlier.strip_prefix(rule.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        };
        self.rules.retain(|earlier| !is_void(earlier));
        self.rules.push(format!("{}{rule}", if is_allowed { '+' } else { '-' }));
        self.is_all = self.begins_with_all && self.rules.iter().all(|rule| rule.starts_with('+'));
    }

    /// Applies `+command`, `-command|subcommand`, `+@category` and their like: a sign, and what stands behind it.
    ///
    /// # Errors
    /// [`RuleError`]; nothing has changed then.
    pub(super) fn apply(&mut self, is_allowed: bool, name: &[u8]) -> Result<(), RuleError> {
        if let [b'@', ..] = name {
            return self.apply_category(is_allowed, name);
        }
        match (is_allowed, name.iter().rposition(|byte| *byte == b'|')) {
            (true, Some(bar)) => self.allow_part(name, bar),
            _ => {
                let known = find(name).ok_or(RuleError::Unknown)?;
                self.change(&known, is_allowed);
                self.note(known.name().as_bytes(), is_allowed);
                Ok(())
            }
        }
    }

    /// Allows a subcommand, or a command with one first argument: the bar before which the command stands is here.
    fn allow_part(&mut self, name: &[u8], bar: usize) -> Result<(), RuleError> {
        let (command, part) = (&name[..bar], &name[bar + 1..]);
        let known = find(command).ok_or(RuleError::Unknown)?;
        if known.subcommand.is_some() {
            return Err(RuleError::ArgumentOfSubcommand);
        }
        if part.is_empty() {
            return Err(RuleError::Syntax);
        }
        if known.spec.subcommands.is_empty() {
            self.first_arguments.entry(known.place).or_default().insert(part.to_ascii_lowercase());
        } else {
            let subcommand = find_subcommand(known, part).ok_or(RuleError::Unknown)?;
            self.change(&subcommand, true);
        }
        self.note(name, true);
        Ok(())
    }

    fn apply_category(&mut self, is_allowed: bool, category: &[u8]) -> Result<(), RuleError> {
        let members = CATEGORIES.get(category.to_ascii_lowercase().as_slice()).ok_or(RuleError::Unknown)?;
        members.iter().for_each(|known| self.change(known, is_allowed));
        self.note(category, is_allowed);
        Ok(())
    }

    /// The rules that make this set, as ACL LIST and ACL GETUSER show them.
    pub(super) fn describe(&self) -> String {
        let begin = if self.begins_with_all { "+@all" } else { "-@all" };
        self.rules.iter().fold(begin.to_owned(), |text, rule| text + " " + rule)
    }
}
