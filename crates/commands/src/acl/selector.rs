//! What a user may do at once: commands, keys and channels.

use super::command_set::{CommandSet, Known};
use super::denial::Denial;
use super::rule_error::RuleError;
use crate::families::ConnectionCommand;
use crate::families::specification::CommandKind;
use crate::glob::{Steps, glob_matches_within, weight};
use crate::key_access::AccessedKey;
use crate::words::is;

/// What may be done to keys, as bits.
const READ: u8 = 1;
const WRITE: u8 = 2;

/// Keys with names of this pattern may be used so.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyPattern {
    access: u8,
    pattern: Vec<u8>,
}

impl KeyPattern {
    fn describe(&self) -> Vec<u8> {
        let prefix: &[u8] = match self.access {
            READ => b"%R~",
            WRITE => b"%W~",
            _ => b"~",
        };
        [prefix, &self.pattern].concat()
    }
}

/// Commands, and the keys and channels that they may be used on. A user may run what one of its selectors allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    commands: CommandSet,
    /// `None`: all keys.
    keys: Option<Vec<KeyPattern>>,
    /// `None`: all channels.
    channels: Option<Vec<Vec<u8>>>,
}

impl Selector {
    /// Nothing is allowed.
    pub(super) fn nothing() -> Self {
        Self { commands: CommandSet::none(), keys: Some(Vec::new()), channels: Some(Vec::new()) }
    }

    /// Everything is allowed.
    pub(super) fn everything() -> Self {
        Self { commands: CommandSet::all(), keys: None, channels: None }
    }

    /// The one that rules make which stand in parentheses.
    ///
    /// # Errors
    /// [`RuleError`] of the first that is none.
    pub(super) fn of_rules(rules: &[u8]) -> Result<Self, RuleError> {
        let mut selector = Self::nothing();
        for rule in rules.split(u8::is_ascii_whitespace).filter(|rule| !rule.is_empty()) {
            selector.apply(rule)?;
        }
        Ok(selector)
    }

    /// True if no command is refused, whatever it names.
    pub(super) const fn is_everything(&self) -> bool {
        self.commands.is_all() && self.keys.is_none() && self.channels.is_none()
    }

    /// Applies a rule on commands, keys or channels.
    ///
    /// # Errors
    /// [`RuleError`]; nothing has changed then.
    pub(super) fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match rule {
            _ if is(rule, "allkeys") || rule == b"~*" => self.keys = None,
            _ if is(rule, "resetkeys") => self.keys = Some(Vec::new()),
            _ if is(rule, "allchannels") || rule == b"&*" => self.channels = None,
            _ if is(rule, "resetchannels") => self.channels = Some(Vec::new()),
            _ if is(rule, "allcommands") || is(rule, "+@all") => self.commands = CommandSet::all(),
            _ if is(rule, "nocommands") || is(rule, "-@all") => self.commands = CommandSet::none(),
            [b'~', pattern @ ..] => self.add_keys(READ | WRITE, pattern)?,
            [b'%', access @ ..] => {
                let bar = access.iter().position(|byte| *byte == b'~').ok_or(RuleError::Syntax)?;
                let access_bits = access_of(&access[..bar]).ok_or(RuleError::Syntax)?;
                self.add_keys(access_bits, &access[bar + 1..])?;
            }
            [b'&', pattern @ ..] => self.add_channels(pattern)?,
            [b'+', name @ ..] => self.commands.apply(true, name)?,
            [b'-', name @ ..] => self.commands.apply(false, name)?,
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    fn add_keys(&mut self, access: u8, pattern: &[u8]) -> Result<(), RuleError> {
        let patterns = self.keys.as_mut().ok_or(RuleError::AllKeys)?;
        check_pattern(pattern)?;
        match patterns.iter_mut().find(|known| known.pattern == pattern) {
            Some(known) => known.access |= access,
            None => patterns.push(KeyPattern { access, pattern: pattern.to_vec() }),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        let patterns = self.channels.as_mut().ok_or(RuleError::AllChannels)?;
        check_pattern(pattern)?;
        if !patterns.iter().any(|known| known == pattern) {
            patterns.push(pattern.to_vec());
        }
        Ok(())
    }

    /// How long a comparison with all patterns can take: the sum of their [weights](weight).
    pub(super) fn weight(&self) -> usize {
        let of_keys = self.keys.iter().flatten().map(|known| weight(&known.pattern));
        let of_channels = self.channels.iter().flatten().map(|pattern| weight(pattern));
        of_keys.chain(of_channels).sum()
    }

    /// Why a command with these words, which names these keys, is not allowed, and the position of what is not: that of the key
    /// or channel. What cannot be decided in so many steps is not allowed.
    pub(super) fn check<'a>(
        &self,
        known: &Known,
        words: &[&'a [u8]],
        keys: &[AccessedKey<'a>],
        steps: &mut Steps,
    ) -> Result<(), (usize, Denial)> {
        if !self.commands.allows(known, words) {
            return Err((0, Denial::Command(known.name())));
        }
        for (position, (key, flags)) in keys.iter().enumerate() {
            if !self.allows_key(key, access_of_flags(flags), steps) {
                return Err((position, Denial::Key(key.to_vec())));
            }
        }
        if let Some(option) = sort_option(known, words).filter(|_| !self.reads_all_keys()) {
            return Err((usize::MAX, Denial::SortOption(option)));
        }
        let (channels, is_pattern) = channels_of(known, words);
        for (position, channel) in channels.iter().enumerate() {
            if !self.allows_channel(channel, is_pattern, steps) {
                return Err((position, Denial::Channel(channel.to_vec())));
            }
        }
        Ok(())
    }

    fn allows_key(&self, key: &[u8], access: u8, steps: &mut Steps) -> bool {
        let Some(patterns) = &self.keys else { return true };
        patterns.iter().any(|known| known.access & access == access && matches(&known.pattern, key, steps))
    }

    fn reads_all_keys(&self) -> bool {
        let Some(patterns) = &self.keys else { return true };
        patterns.iter().any(|known| known.access & READ != 0 && known.pattern == b"*")
    }

    /// True if a channel, or a pattern of channels, may be used.
    pub(super) fn allows_channel(&self, channel: &[u8], is_pattern: bool, steps: &mut Steps) -> bool {
        let Some(patterns) = &self.channels else { return true };
        patterns.iter().any(|known| {
            // A pattern could match channels that the user may not use: it has to be the same.
            if is_pattern { known == channel } else { matches(known, channel, steps) }
        })
    }

    /// The rules about commands, as ACL GETUSER shows them.
    #[must_use]
    pub fn describe_commands(&self) -> String {
        self.commands.describe()
    }

    /// The rules about keys, as ACL GETUSER shows them.
    #[must_use]
    pub fn describe_keys(&self) -> Vec<u8> {
        let Some(patterns) = &self.keys else { return b"~*".to_vec() };
        let patterns: Vec<_> = patterns.iter().map(KeyPattern::describe).collect();
        patterns.join(&b' ')
    }

    /// The rules about channels, as ACL GETUSER shows them.
    #[must_use]
    pub fn describe_channels(&self) -> Vec<u8> {
        let Some(patterns) = &self.channels else { return b"&*".to_vec() };
        let patterns: Vec<_> = patterns.iter().map(|pattern| [b"&", &pattern[..]].concat()).collect();
        patterns.join(&b' ')
    }

    /// All of it, as ACL LIST shows it.
    pub(super) fn describe(&self) -> Vec<u8> {
        let mut parts = vec![self.describe_keys()];
        if self.channels.is_some() {
            parts.push(b"resetchannels".to_vec());
        }
        parts.push(self.describe_channels());
        parts.push(self.describe_commands().into_bytes());
        parts.retain(|part| !part.is_empty());
        parts.join(&b' ')
    }
}

/// True if a name certainly matches a pattern. Whoever has used up its steps gets nothing more.
fn matches(pattern: &[u8], name: &[u8], steps: &mut Steps) -> bool {
    glob_matches_within(pattern, name, steps) == Some(true)
}

/// Letters between `%` and `~`, each of them once.
fn access_of(letters: &[u8]) -> Option<u8> {
    let mut access = 0;
    for letter in letters {
        let bit = match letter.to_ascii_uppercase() {
            b'R' => READ,
            b'W' => WRITE,
            _ => return None,
        };
        if access & bit != 0 {
            return None;
        }
        access |= bit;
    }
    (access != 0).then_some(access)
}

/// What a command does to a key.
fn access_of_flags(flags: &[&str]) -> u8 {
    let bit = |flag: &&str| match *flag {
        "access" => READ,
        "insert" | "delete" | "update" => WRITE,
        _ => 0,
    };
    flags.iter().map(bit).fold(0, |access, bit| access | bit)
}

/// A pattern stands in a text with blanks between rules.
fn check_pattern(pattern: &[u8]) -> Result<(), RuleError> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b);
    if pattern.iter().any(is_blank) { Err(RuleError::Syntax) } else { Ok(()) }
}

/// The first option of SORT that looks up keys which the words do not name.
fn sort_option(known: &Known, words: &[&[u8]]) -> Option<&'static str> {
    if !matches!(known.spec.name, "sort" | "sort_ro") {
        return None;
    }
    let mut pairs = words.windows(2).skip(2);
    pairs.find_map(|pair| match pair {
        [option, pattern] if is(option, "by") && pattern.contains(&b'*') => Some("BY"),
        [option, pattern] if is(option, "get") && *pattern != b"#" => Some("GET"),
        _ => None,
    })
}

/// The channels that a command publishes to or subscribes to, and whether they are patterns.
fn channels_of<'a, 'b>(known: &Known, words: &'b [&'a [u8]]) -> (&'b [&'a [u8]], bool) {
    let CommandKind::Local(command) = known.spec.kind else { return (&[], false) };
    let arguments = words.get(1..).unwrap_or_default();
    match command {
        ConnectionCommand::Publish | ConnectionCommand::SPublish => {
            (&arguments[..arguments.len().min(1)], false)
        }
        ConnectionCommand::Subscribe | ConnectionCommand::SSubscribe => (arguments, false),
        ConnectionCommand::PSubscribe => (arguments, true),
        _ => (&[], false),
    }
}
