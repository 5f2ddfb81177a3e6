//! The table of commands: the rows of all families, in alphabetical order, and an index of their names.

use crate::families::SPECS;
use crate::families::specification::CommandSpec;

/// Every command, in alphabetical order.
#[must_use]
pub const fn commands() -> &'static [CommandSpec] {
    &TABLE
}

/// Number of commands.
const COUNT: usize = {
    let (mut count, mut list) = (0, 0);
    while list < SPECS.len() {
        count += SPECS[list].len();
        list += 1;
    }
    count
};

static TABLE: [CommandSpec; COUNT] = sorted();

/// The rows in the order of their names. A compiler refuses rows of one name, and rows that lack something.
const fn sorted() -> [CommandSpec; COUNT] {
    let mut rows = [CommandSpec::ROW; COUNT];
    let (mut count, mut list) = (0, 0);
    while list < SPECS.len() {
        let mut number = 0;
        while number < SPECS[list].len() {
            let row = SPECS[list][number];
            assert!(
                !row.name.is_empty() && !row.group.is_empty() && !row.summary.is_empty() && row.arity != 0
            );
            let mut place = count;
            while place > 0 && is_before(row.name.as_bytes(), rows[place - 1].name.as_bytes()) {
                rows[place] = rows[place - 1];
                place -= 1;
            }
            rows[place] = row;
            count += 1;
            number += 1;
        }
        list += 1;
    }
    rows
}

/// True if a name comes before another one, which must be another.
const fn is_before(name: &[u8], other: &[u8]) -> bool {
    let mut index = 0;
    while index < name.len() && index < other.len() {
        if name[index] != other[index] {
            return name[index] < other[index];
        }
        index += 1;
    }
    assert!(name.len() != other.len(), "two commands have one name");
    name.len() < other.len()
}

/// Slots of the index: a power of two, at least four times the number of commands, so that a search
/// seldom meets a second name.
const SLOTS: usize = (4 * COUNT).next_power_of_two();

/// Slot to number of the command plus one; 0 is free.
static INDEX: [u16; SLOTS] = build_index();

/// Length of the longest name, in bytes.
const NAME_BYTES_MAX: usize = {
    let (mut longest, mut row) = (0, 0);
    while row < COUNT {
        if TABLE[row].name.len() > longest {
            longest = TABLE[row].name.len();
        }
        row += 1;
    }
    longest
};

/// FNV-1a over the name in lower case, folded into a slot.
const fn slot_of(name: &[u8]) -> usize {
    let mut hash = 0x811c_9dc5_u32;
    let mut index = 0;
    while index < name.len() {
        hash = (hash ^ name[index].to_ascii_lowercase() as u32).wrapping_mul(0x0100_0193);
        index += 1;
    }
    ((hash >> 16) ^ hash) as usize % SLOTS
}

const fn build_index() -> [u16; SLOTS] {
    let mut index = [0; SLOTS];
    let mut row = 0;
    while row < COUNT {
        let mut slot = slot_of(TABLE[row].name.as_bytes());
        while index[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        row += 1;
        index[slot] = row as u16;
    }
    index
}

/// The command of this name, in any case. Allocates nothing.
#[must_use]
pub fn lookup(name: &[u8]) -> Option<&'static CommandSpec> {
    number_of(name).map(|number| &TABLE[number])
}

/// The place in [`commands`] of the command of this name.
pub(crate) fn number_of(name: &[u8]) -> Option<usize> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let mut slot = slot_of(name);
    loop {
        let row = usize::from(INDEX[slot]).checked_sub(1)?;
        let spec = &TABLE[row];
        if spec.name.as_bytes().eq_ignore_ascii_case(name) {
            return Some(row);
        }
        slot = (slot + 1) % SLOTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::specification::CommandKind;
    use syros_types::Class;

    #[test]
    fn every_command_is_found_in_any_case() {
        for spec in commands() {
            assert_eq!(lookup(spec.name.as_bytes()).map(|found| found.name), Some(spec.name));
            let upper = spec.name.to_ascii_uppercase();
            assert_eq!(lookup(upper.as_bytes()).map(|found| found.name), Some(spec.name));
        }
        for name in ["", "ge", "gett", "incrbyfloatx", "nosuchcommand", "\0get"] {
            assert!(lookup(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_consistent() {
        assert!(commands().is_sorted_by(|a, b| a.name < b.name));
        for spec in commands() {
            let write = spec.flags.contains(&"write");
            let changes = match spec.kind {
                CommandKind::Data(class) => class != Class::Read,
                CommandKind::Blind => true,
                CommandKind::Local(_) => false,
            };
            // Of a command with keys in its subcommands, these have the flags.
            // What a script does is not known from its name. Users, which ACL changes, are no keys.
            if spec.group == "scripting" || spec.name == "acl" {
                continue;
            }
            if spec.subcommand_keys.is_empty() {
                assert_eq!(write, changes, "{}", spec.name);
                assert_eq!(spec.categories.contains(&"@write"), changes, "{}", spec.name);
            } else {
                let writes = spec.subcommands.iter().any(|subcommand| subcommand.flags.contains(&"write"));
                assert_eq!(writes, changes, "{}", spec.name);
                assert_eq!(spec.subcommand_keys.len(), spec.subcommands.len(), "{}", spec.name);
            }
            assert!(spec.summary.ends_with('.'), "{}", spec.name);
            assert_eq!(spec.keys.first == 0, spec.keys.step == 0, "{}", spec.name);
            let movable = spec.movable_keys();
            let placed = spec.key_flags.len() - movable;
            match spec.keys.last {
                last if last < 0 => assert!(placed > 0, "{}", spec.name),
                0 => assert_eq!(placed, 0, "{}", spec.name),
                last => {
                    let keys = last - spec.keys.first + 1;
                    assert!((1..=keys).contains(&(placed as i8)), "{}", spec.name);
                }
            }
            assert!(movable == 0 || spec.flags.contains(&"movablekeys"), "{}", spec.name);
            assert!(spec.subcommands.is_sorted_by(|a, b| a.name < b.name), "{}", spec.name);
            for subcommand in spec.subcommands {
                assert_eq!(subcommand.name.split_once('|').map(|(name, _)| name), Some(spec.name));
            }
        }
    }
}
