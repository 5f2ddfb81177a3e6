//! SINTER, SUNION and SDIFF.

use super::{SLOW_READ, put_members, with_sets};
use crate::access::{KeyEvent, Keys};
use crate::arguments::Arguments;
use crate::encoding::{Encoding, Field as _, List, Opcode};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_all;
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::primitive::Malformed;
use crate::words::{Words, arguments};
use syros_values::Set;

/// SINTER, SUNION, SDIFF: the members of the set that [`SInterStore`](super::sinterstore::SInterStore) would store, in
/// their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SInter<'a> {
    /// What becomes of the sets.
    pub operator: SetOperator,
    /// The keys. One that does not exist is an empty set.
    pub keys: Arguments<'a>,
}

/// How sets become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    /// SINTER: the members that all of them have, in the order of the smallest one, or the first of the smallest.
    Intersection,
    /// SUNION: all members, those of the first set first.
    Union,
    /// SDIFF: the members of the first set that no other one has, in its order.
    Difference,
}

impl SetOperator {
    /// The event that its result has been stored.
    pub(super) const fn stored(self) -> KeyEvent {
        match self {
            Self::Intersection => KeyEvent::SInterStore,
            Self::Union => KeyEvent::SUnionStore,
            Self::Difference => KeyEvent::SDiffStore,
        }
    }

    /// The set that these sets become. Its members are added to a new set in the order that the operator says.
    pub(super) fn result(self, sets: &[&Set]) -> Set {
        match self {
            Self::Intersection => Set::intersection(sets).collect(),
            Self::Union => Set::union(sets),
            Self::Difference => Set::difference(sets),
        }
    }

    /// Of the opcodes of intersection, union and difference, that of this operator.
    pub(super) const fn opcode(self, [intersection, union, difference]: [Opcode; 3]) -> Opcode {
        match self {
            Self::Intersection => intersection,
            Self::Union => union,
            Self::Difference => difference,
        }
    }

    /// The operator that has this one of the opcodes of intersection, union and difference.
    pub(super) const fn of_opcode(opcode: Opcode, [_, union, difference]: [Opcode; 3]) -> Self {
        if opcode == union {
            Self::Union
        } else if opcode == difference {
            Self::Difference
        } else {
            Self::Intersection
        }
    }
}

impl SInter<'_> {
    /// The opcode of SUNION.
    pub(crate) const OPCODE_UNION: Opcode = 194;

    /// The opcode of SDIFF.
    pub(crate) const OPCODE_DIFFERENCE: Opcode = 195;

    const OPCODES: [Opcode; 3] = [Self::OPCODE, Self::OPCODE_UNION, Self::OPCODE_DIFFERENCE];
}

impl<'a> Encoding<'a> for SInter<'a> {
    const OPCODE: Opcode = 193;

    fn opcode(&self) -> Opcode {
        self.operator.opcode(Self::OPCODES)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        List::<1>::put(out, self.keys);
    }

    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let operator = SetOperator::of_opcode(opcode, Self::OPCODES);
        Ok(Self { operator, keys: List::<1>::take(input)? })
    }
}

/// What the rows have in common.
const ROW: CommandSpec =
    CommandSpec { arity: -2, keys: KeyPositions::ALL, tips: &["nondeterministic_output_order"], ..SLOW_READ };

fn of(operator: SetOperator, words: Words<'_>) -> SInter<'_> {
    SInter { operator, keys: arguments(words) }
}

impl<'a> Definition<'a> for SInter<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "sinter",
            summary: "Returns the members that all of several sets have.",
            parser: |_, words| Ok(of(SetOperator::Intersection, words).into()),
            ..ROW
        },
        CommandSpec {
            name: "sunion",
            summary: "Returns the members that any of several sets has.",
            parser: |_, words| Ok(of(SetOperator::Union, words).into()),
            ..ROW
        },
        CommandSpec {
            name: "sdiff",
            summary: "Returns the members of a set that no other set has.",
            parser: |_, words| Ok(of(SetOperator::Difference, words).into()),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }

    /// Any number of them.
    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for SInter<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let result = with_sets(keys, self.keys.iter(), |sets| self.operator.result(sets))?;
        put_members(reply, &result, view)
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        work_of_all(keys, self.keys.iter())
    }
}
