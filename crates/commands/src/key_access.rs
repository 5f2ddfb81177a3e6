//! Which of a command's words are keys, and what the command does to each: what COMMAND GETKEYS answers, and what decides
//! whether a user may run the command.

use crate::families::specification::{CommandSpec, KeyWord, KeysBehind, SubcommandSpec};
use crate::number::parse_integer;
use crate::parse::{Parsed, parse};
use crate::table::lookup;

/// A key among the words of a command, and what the command does to it, in Redis's words.
pub type AccessedKey<'a> = (&'a [u8], &'static [&'static str]);

/// The keys of a command of this specification, whose number of words fits it; `None` if its words do not say which they are.
/// Keys of subcommands are not looked at.
#[must_use]
pub fn accessed_keys<'a>(spec: &CommandSpec, words: &[&'a [u8]]) -> Option<Vec<AccessedKey<'a>>> {
    let movable = movable_keys(spec, words)?;
    let numbered = placed_keys(spec, words).into_iter().chain(movable);
    Some(numbered.map(|(number, key)| (key, flags_of(spec, number, words))).collect())
}

/// What a subcommand does to the key behind its name; nothing, if it has none.
#[must_use]
pub fn subcommand_key_flags(spec: &SubcommandSpec) -> &'static [&'static str] {
    let name = spec.name.split_once('|').map_or(spec.name, |(name, _)| name);
    let Some(command) = lookup(name.as_bytes()) else { return &[] };
    let mut flags = command.subcommands.iter().zip(command.subcommand_keys);
    flags.find(|(subcommand, _)| subcommand.name == spec.name).map_or(&[], |(_, flags)| flags)
}

/// What a command does to the keys of its specification with this number.
#[must_use]
pub fn key_flags(spec: &CommandSpec, number: usize) -> &'static [&'static str] {
    spec.key_flags.get(number).copied().unwrap_or_default()
}

/// The number of the specification of the first of the words behind which keys stand.
#[must_use]
pub fn first_word_specification(spec: &CommandSpec) -> usize {
    spec.key_flags.len() - spec.key_words.len()
}

/// What this command does to its key with this number.
fn flags_of(spec: &CommandSpec, number: usize, words: &[&[u8]]) -> &'static [&'static str] {
    let flags = key_flags(spec, number);
    if !flags.contains(&"variable_flags") {
        return flags;
    }
    match spec.name {
        "set" if !words.iter().skip(3).any(|word| looks_at_the_old_value(word)) => &["OW", "update"],
        "bitfield" if is_read(words) => &["RO", "access"],
        _ => &["RW", "access", "update"],
    }
}

/// True for the options of SET that do.
fn looks_at_the_old_value(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"get") || word.eq_ignore_ascii_case(b"ifeq")
}

fn is_read(words: &[&[u8]]) -> bool {
    matches!(parse(words), Ok(Parsed::Data(operation)) if operation.command.is_read())
}

/// The keys whose positions are fixed, each with the number of its specification.
fn placed_keys<'a>(spec: &CommandSpec, words: &[&'a [u8]]) -> Vec<(usize, &'a [u8])> {
    if spec.keys.first == 0 {
        return Vec::new();
    }
    let first = usize::from(spec.keys.first.unsigned_abs());
    let last = match spec.keys.last {
        negative if negative < 0 => words.len() - usize::from(negative.unsigned_abs()),
        last => usize::from(last.unsigned_abs()),
    };
    let keys = words[first..=last].iter().step_by(usize::from(spec.keys.step.unsigned_abs()));
    let last = spec.key_flags.len().saturating_sub(1 + spec.movable_keys());
    keys.enumerate().map(|(number, key)| (number.min(last), *key)).collect()
}

/// The keys whose positions are not fixed, each with the number of its specification; `None` if the words do not say where
/// they are.
fn movable_keys<'a>(spec: &CommandSpec, words: &[&'a [u8]]) -> Option<Vec<(usize, &'a [u8])>> {
    if spec.key_count > 0 {
        let number = spec.key_flags.len() - 1;
        // Of a script without keys Redis says so, and of one with the wrong number of them the same.
        let none = (spec.group == "scripting").then_some(&[][..]);
        let keys = counted_keys(spec, words).or(none)?;
        return Some(keys.iter().map(|key| (number, *key)).collect());
    }
    let mut found = Vec::new();
    for (key_word, number) in spec.key_words.iter().zip(first_word_specification(spec)..) {
        let keys = keys_behind(key_word, words);
        // Options may be left out. Nothing else may say that there are keys.
        if keys.is_empty() && key_word.keys == KeysBehind::Half {
            return None;
        }
        found.extend(keys.iter().map(|key| (number, *key)));
    }
    Some(found)
}

/// The keys behind a word; none, if it is not there.
fn keys_behind<'a, 'b>(key_word: &KeyWord, words: &'b [&'a [u8]]) -> &'b [&'a [u8]] {
    let from = usize::from(key_word.from);
    let is_word = |other: &&[u8]| other.eq_ignore_ascii_case(key_word.word.as_bytes());
    let mut options = words.get(from..).unwrap_or_default().iter();
    let found = match key_word.keys {
        // Where Redis looks at the options themselves, the last one counts.
        KeysBehind::Untold(_) => options.rposition(is_word),
        _ => options.position(is_word),
    };
    let Some(at) = found else { return &[] };
    let behind = words.get(from + at + 1..).unwrap_or_default();
    let keys = match key_word.keys {
        KeysBehind::Pattern(_) => 0,
        KeysBehind::One | KeysBehind::Untold(_) => behind.len().min(1),
        // As many words as keys should follow them, which Redis does not check here either.
        KeysBehind::Half => behind.len() / 2,
    };
    &behind[..keys]
}

/// The keys behind their number; `None` if there are not so many, or it is no number.
fn counted_keys<'a, 'b>(spec: &CommandSpec, words: &'b [&'a [u8]]) -> Option<&'b [&'a [u8]]> {
    let (count, behind) = words.get(usize::from(spec.key_count)..)?.split_first()?;
    let count = usize::try_from(parse_integer(count)?).ok().filter(|count| *count > 0)?;
    behind.get(..count)
}
