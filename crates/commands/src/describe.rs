//! What a body is, told from its bytes alone.

use crate::database_key::DatabaseKey;
use crate::encoding::Encoding as _;
use crate::families::{Command, Get, HGet, StrLen, Type};
use crate::limits::{
    OPERATIONS_PER_BODY_MAX, SCRIPTS_FUEL_MAX, SCRIPTS_PER_BODY_MAX, WHOLE_KEYSPACE_OPERATIONS_MAX,
};
use crate::operation::Operation;
use crate::primitive::Malformed;
use syros_types::limits::BODY_BYTES_MAX;
use syros_types::{Class, Description, Footprint};

/// Class, footprint and growth of a body. A pure function of bytes that need not be trusted: every replica
/// gets the same answer. One pass, and no allocation if there is only one key.
///
/// # Errors
/// [`Malformed`] if the body is empty, above a limit, or contains anything but whole operations.
pub fn describe(body: &[u8]) -> Result<Description, Malformed> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Malformed::TooLong { length: body.len() as u64, limit: BODY_BYTES_MAX as u64 });
    }
    let mut rest = body;
    let first = Operation::decode(&mut rest)?;
    if rest.is_empty() {
        if first.fuel().is_some_and(|fuel| fuel > SCRIPTS_FUEL_MAX) {
            return Err(Malformed::Scripts);
        }
        return Ok(Description {
            class: first.class(),
            footprint: first.footprint(),
            growth: first.growth(body.len()),
        });
    }
    describe_packed(body, first)
}

/// Longest key or field whose length is one byte.
const SHORT_BYTES_MAX: u8 = 127;

/// True if a body has nothing but reads of single values, such as GET and HGET, of short keys. It is told from opcodes and
/// lengths, without decoding: of most bodies, before they are decoded for something else.
#[must_use]
pub fn looks_at_little(mut body: &[u8]) -> bool {
    while let [opcode, rest @ ..] = body {
        let Some(strings) = strings_of_short_read(*opcode) else { return false };
        body = rest;
        for _ in 0..strings {
            let [length @ 0..=SHORT_BYTES_MAX, rest @ ..] = body else { return false };
            let Some(behind) = rest.get(usize::from(*length)..) else { return false };
            body = behind;
        }
    }
    true
}

/// True if a body asks who the users are: everything else that the asking process serves may wait for that.
#[must_use]
pub fn asks_about_users(body: &[u8]) -> bool {
    matches!(operations(body).next(), Some(Ok(operation)) if matches!(operation.command, Command::UserLook(_)))
}

/// How many strings are all fields of the read with this opcode, if it looks at a single value.
const fn strings_of_short_read(opcode: u8) -> Option<u8> {
    const GET: u8 = Get::OPCODE as u8;
    const STRLEN: u8 = StrLen::OPCODE as u8;
    const TYPE: u8 = Type::OPCODE as u8;
    const HGET: u8 = HGet::OPCODE as u8;
    match opcode {
        GET | STRLEN | TYPE => Some(1),
        HGET => Some(2),
        _ => None,
    }
}

/// True of a body of updates that clients often send in vain, such as SADD of a member that is there: they may be no-ops. Of a
/// malformed body it is false, and of one with a blind operation.
#[must_use]
pub fn may_be_no_op(body: &[u8]) -> bool {
    let is_possible = |operation: Operation<'_>| !operation.blind && operation.command.may_be_no_op();
    !body.is_empty() && operations(body).all(|operation| operation.is_ok_and(is_possible))
}

/// Shorter bodies name so little that the values of their keys alone can make them take long.
const HEAVY_BODY_BYTES_MIN: usize = 128;

/// True if a body of updates may take far longer than the values of its keys are long: it names them again and again, or so do
/// its many operations.
#[must_use]
pub fn may_be_heavy(body: &[u8]) -> bool {
    body.len() >= HEAVY_BODY_BYTES_MIN
        && operations(body).flatten().any(|operation| operation.depends_on_values())
}

/// True if nothing is left of `older` once `newer` has run after it: both overwrite one key, and it
/// is the same key. The key itself is compared, with its database, not its hash.
#[must_use]
pub fn overwrites(newer: &[u8], older: &[u8]) -> bool {
    fn overwritten(body: &[u8]) -> Option<DatabaseKey<'_>> {
        let class = describe(body).ok()?.class;
        let first = operations(body).next()?.ok()?;
        if class == Class::Overwrite { first.single_key() } else { None }
    }
    overwritten(newer).is_some_and(|key| overwritten(older) == Some(key))
}

/// What is left of a body that was refused because the data has no memory for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WithoutMemory {
    /// The operations that need none, with scripts and functions that are told so.
    pub body: Vec<u8>,
    /// Of each operation of the body before: true if it needs memory, and is refused.
    pub refused: Vec<bool>,
}

impl WithoutMemory {
    /// True if all that the body asked for is tried once more.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.refused.contains(&true)
    }
}

/// What of a refused body can be tried without memory. `None` if that is nothing, or what has been refused already.
#[must_use]
pub fn without_memory(body: &[u8]) -> Option<WithoutMemory> {
    let mut left = WithoutMemory { body: Vec::with_capacity(body.len()), refused: Vec::new() };
    let mut has_told = false;
    for operation in operations(body) {
        let mut operation = operation.ok()?;
        if let Some(terms) = operation.terms_mut() {
            has_told |= !core::mem::replace(&mut terms.lacks_memory, true);
        }
        let needs_memory = operation.grows() || operation.wants_memory();
        left.refused.push(needs_memory);
        if !needs_memory {
            operation.encode(&mut left.body);
        }
    }
    let differs = has_told || !left.is_whole();
    (differs && !left.body.is_empty()).then_some(left)
}

/// The description of a body that has several operations and starts with `first`.
fn describe_packed(body: &[u8], first: Operation<'_>) -> Result<Description, Malformed> {
    let mut class = first.class();
    // As long as every operation names this one key, nothing is collected.
    let single = first.single_key();
    let mut hashes: Vec<u64> = Vec::new();
    let mut growth: usize = 0;
    let mut concerns_all_keys = false;
    let mut operations = operations(body);
    loop {
        let before = operations.rest.len();
        let Some(operation) = operations.next() else { break };
        let operation = operation?;
        growth = growth.saturating_add(operation.growth(before - operations.rest.len()));
        class = class.join(operation.class());
        if single.is_some() && operation.single_key() == single {
            continue;
        }
        concerns_all_keys |= operation.concerns_all_keys();
        operation.each_hash(|hash| hashes.push(hash));
    }
    // Overwrites of several keys are no overwrite of one, not even if the keys share a hash.
    if class == Class::Overwrite && !hashes.is_empty() {
        class = Class::Merge;
    }
    let footprint = match single {
        _ if concerns_all_keys => Footprint::All,
        Some(key) if hashes.is_empty() => Footprint::One(key.hash()),
        _ => {
            hashes.extend(single.map(DatabaseKey::hash));
            Footprint::of(hashes)
        }
    };
    Ok(Description { class, footprint, growth })
}

/// The operations of a body, in the order of their execution. Ends after the first error; a body
/// without operations is one.
#[must_use]
pub const fn operations(body: &[u8]) -> Operations<'_> {
    Operations { rest: body, taken: 0, of_all_keys: 0, scripts: 0, fuel: 0, failed: false }
}

/// Iterator over the [`operations`] of a body.
#[derive(Clone, Debug)]
pub struct Operations<'a> {
    rest: &'a [u8],
    taken: usize,
    /// Those taken that concern all keys and are no scripts.
    of_all_keys: usize,
    /// Scripts taken, and the fuel that they may use.
    scripts: usize,
    fuel: u64,
    failed: bool,
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<Operation<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || (self.rest.is_empty() && self.taken > 0) {
            return None;
        }
        let result = if self.taken == OPERATIONS_PER_BODY_MAX {
            let limit = OPERATIONS_PER_BODY_MAX as u64;
            Err(Malformed::TooLong { length: limit + 1, limit })
        } else {
            Operation::decode(&mut self.rest)
        };
        let result = result.and_then(|operation| {
            match operation.fuel() {
                Some(fuel) => {
                    self.scripts += 1;
                    self.fuel = self.fuel.saturating_add(fuel);
                }
                None => self.of_all_keys += usize::from(operation.concerns_all_keys()),
            }
            if self.of_all_keys > WHOLE_KEYSPACE_OPERATIONS_MAX {
                return Err(Malformed::WholeKeyspace);
            }
            if self.scripts > SCRIPTS_PER_BODY_MAX || self.fuel > SCRIPTS_FUEL_MAX {
                return Err(Malformed::Scripts);
            }
            Ok(operation)
        });
        self.taken += 1;
        self.failed = result.is_err();
        Some(result)
    }
}
