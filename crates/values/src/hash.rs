//! Hashes: fields with values.
//!
//! Fields may expire. A hash of which one does is a tree from then on. It knows nothing of time: a field that has expired
//! is there until somebody [drops](Hash::drop_due) it, and whoever shows fields looks at the hash [at](Hash::at) a time.

use crate::by_hash::{Element, Form, FormIter, Large, Scan, find_packed};
use crate::field_expiries::{EXPIRY_MS_MAX, FieldExpiries};
use crate::fingerprint::Fingerprint;
use crate::primitive::InvalidValue;
use crate::{Kind, form_tag};
use core::cell::OnceCell;
use core::num::NonZeroU64;
use syros_tree::{Map, Pairs};
use syros_types::varint::{put_varint, take_varint};

/// Fields with values. Fields have an order: a packed hash has that in which they were added, a tree that of their
/// hashes.
#[derive(Clone, Debug, Default)]
pub struct Hash(pub(crate) Form<2, Pairs>);

/// About how many bytes the expiry of a field is.
const EXPIRY_BYTES: u64 = 64;

/// When something of a value expires, whether that moment has come or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// The first millisecond since the Unix epoch in which the first field is gone that expires.
    pub first: Option<NonZeroU64>,
    /// The first one in which all of it is gone, if each of its fields expires.
    pub gone: Option<NonZeroU64>,
}

impl Moments {
    /// Those of a hash of so many fields, of which these expire.
    pub(crate) fn of(fields: u64, expiries: &FieldExpiries) -> Self {
        let last = fields.checked_sub(1).filter(|_| expiries.len() == fields);
        Self { first: expiries.nth(0), gone: last.and_then(|last| expiries.nth(last)) }
    }

    /// Appends them, 0 for none.
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        for moment in [self.first, self.gone] {
            put_varint(out, moment.map_or(0, NonZeroU64::get));
        }
    }

    /// Takes them off the front of `input`. The first is there.
    pub(crate) fn take(input: &mut &[u8]) -> Result<Self, InvalidValue> {
        Self::take_any(input).and_then(|moments| moments.first.map(|_| moments).ok_or(InvalidValue::Expiry))
    }

    /// Takes them off the front of `input`. Neither may be there.
    pub(crate) fn take_any(input: &mut &[u8]) -> Result<Self, InvalidValue> {
        let (first, gone) = (take_varint(input)?, take_varint(input)?);
        Ok(Self { first: NonZeroU64::new(first), gone: NonZeroU64::new(gone) })
    }

    /// Those of the value that this is the encoding of, or the beginning of it, without a look at its elements.
    #[must_use]
    pub fn of_encoding(bytes: &[u8]) -> Self {
        match bytes {
            [kind, form_tag::EXPIRING, rest @ ..] if *kind == Kind::Hash.tag() => {
                Self::take(&mut { rest }).unwrap_or_default()
            }
            [_, form_tag::PAGED, rest @ ..] => Self::take_any(&mut { rest }).unwrap_or_default(),
            _ => Self::default(),
        }
    }
}

impl Element<2> for Pairs {
    const KIND: Kind = Kind::Hash;

    /// Of which fields it is known that they expire; `None` if there are none.
    type Beside = Option<Box<FieldExpiries>>;

    fn of_strings([field, value]: [&[u8]; 2]) -> (&[u8], &[u8]) {
        (field, value)
    }

    fn strings<'a: 'a>((field, value): (&'a [u8], &'a [u8])) -> [&'a [u8]; 2] {
        [field, value]
    }

    fn insert(tree: &mut Map, [field, value]: [&[u8]; 2]) -> bool {
        tree.insert(field, value)
    }
}

impl Hash {
    /// The latest moment at which a field can be gone, in milliseconds since the Unix epoch.
    pub const EXPIRY_MS_MAX: u64 = EXPIRY_MS_MAX;

    /// Number of fields, with those that have expired and were not dropped.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// True if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if it lies in one allocation.
    #[must_use]
    pub const fn is_packed(&self) -> bool {
        self.0.is_packed()
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        match &self.0 {
            Form::Packed(packed) => find_packed(packed, field).map(|(_, [_, value])| value),
            Form::Tree(large) => large.tree.get(field),
        }
    }

    /// Gives a field a value, and no expiry. True if it had no value.
    pub fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        self.stay(field);
        self.0.insert([field, value])
    }

    /// The same at a time at which the field may be gone.
    pub fn set_at(&mut self, field: &[u8], value: &[u8], now_ms: u64) -> bool {
        let was_gone = self.is_due(field, now_ms);
        self.set(field, value) || was_gone
    }

    /// Gives a field another value at a time at which it may be gone. If it is there, its expiry stays.
    pub fn replace_at(&mut self, field: &[u8], value: &[u8], now_ms: u64) {
        if self.is_due(field, now_ms) {
            self.stay(field);
        }
        self.0.insert([field, value]);
    }

    /// Removes a field. False if there is none.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        self.stay(field);
        self.0.remove(field)
    }

    /// Removes a field. False if there is none at this time.
    pub fn remove_at(&mut self, field: &[u8], now_ms: u64) -> bool {
        let was_gone = self.is_due(field, now_ms);
        self.remove(field) && !was_gone
    }

    /// Which fields expire.
    fn expiries(&self) -> Option<&FieldExpiries> {
        if let Form::Tree(large) = &self.0 { large.beside.as_deref() } else { None }
    }

    /// True if some field expires.
    #[must_use]
    #[inline]
    pub fn is_expiring(&self) -> bool {
        self.expiries().is_some()
    }

    /// When a field expires, if it does.
    #[must_use]
    pub fn expiry(&self, field: &[u8]) -> Option<NonZeroU64> {
        self.expiries()?.of(field)
    }

    /// True if the field has expired by this time.
    fn is_due(&self, field: &[u8], now_ms: u64) -> bool {
        self.expiries().is_some_and(|expiries| expiries.is_due(field, now_ms))
    }

    /// Has a field, which has to be there, expire at this moment, or never. The moment is
    /// [`EXPIRY_MS_MAX`](Self::EXPIRY_MS_MAX) at the latest.
    pub fn set_expiry(&mut self, field: &[u8], expiry: Option<NonZeroU64>) {
        match expiry {
            Some(expiry) => self.0.large_mut().beside.get_or_insert_default().set(field, expiry),
            None => self.stay(field),
        }
    }

    /// Has a field stay.
    fn stay(&mut self, field: &[u8]) {
        if let Form::Tree(large) = &mut self.0
            && let Some(expiries) = &mut large.beside
        {
            expiries.remove(field);
            if expiries.len() == 0 {
                large.beside = None;
            }
        }
    }

    /// When something of it expires.
    #[must_use]
    #[inline]
    pub fn moments(&self) -> Moments {
        self.expiries().map_or_else(Moments::default, |expiries| Moments::of(self.len(), expiries))
    }

    /// The first moment after this one at which a field expires.
    #[must_use]
    pub fn next_expiry(&self, now_ms: u64) -> Option<NonZeroU64> {
        let expiries = self.expiries()?;
        expiries.nth(expiries.due(now_ms))
    }

    /// Removes fields that are gone at this time, at most so many, the first of them first. How many.
    pub fn drop_due(&mut self, now_ms: u64, most: u64) -> u64 {
        let Form::Tree(large) = &mut self.0 else { return 0 };
        let Large { tree, beside } = &mut **large;
        let Some(expiries) = beside else { return 0 };
        let count = expiries.due(now_ms).min(most);
        if count > 0 {
            for field in expiries.first_fields(count) {
                tree.remove(field);
            }
            expiries.forget_first(count);
            if expiries.len() == 0 {
                *beside = None;
            }
        }
        count
    }

    /// What is there of it at this time.
    #[must_use]
    pub fn at(&self, now_ms: u64) -> LiveHash<'_> {
        let hidden = self.expiries().map(|expiries| (expiries, expiries.due(now_ms)));
        let hidden = hidden.filter(|(_, due)| *due > 0).map(|(expiries, due)| (expiries, now_ms, due));
        LiveHash { hash: self, hidden, live_before_hidden: OnceCell::new() }
    }

    /// Fields and values in order.
    #[must_use]
    pub fn iter(&self) -> HashIter<'_> {
        HashIter(self.0.iter())
    }

    /// The field of this rank and its value, without a look at all those before it if there are many.
    #[must_use]
    pub fn nth(&self, rank: u64) -> Option<(&[u8], &[u8])> {
        self.0.nth(rank)
    }

    /// A step of an iteration that goes on although fields are set and removed between its steps: about `count` fields
    /// from a cursor on, all of them if the hash is packed. The first step has cursor 0, and each other one that which
    /// the step before it returned; 0 is also the end. What is there from the first step to the last is in one of them.
    #[must_use]
    pub fn scan(&self, cursor: u64, count: u64) -> Scan<HashIter<'_>> {
        self.0.scan(cursor, count).map(HashIter)
    }

    /// See [`Value::memory_bytes`](crate::Value::memory_bytes).
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes() + self.expiries().map_or(0, FieldExpiries::memory_bytes)
    }

    /// See [`Value::fingerprint`](crate::Value::fingerprint).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint_at(0)
    }

    /// See [`Value::fingerprint_at`](crate::Value::fingerprint_at).
    #[must_use]
    pub fn fingerprint_at(&self, now_ms: u64) -> u64 {
        let Some(expiries) = self.expiries() else { return self.0.fingerprint() };
        let mut fingerprint = Fingerprint::new(Kind::Hash, form_tag::TREE);
        for (field, value) in &self.at(now_ms) {
            match expiries.of(field) {
                Some(expiry) => fingerprint.add(&[field, value, &expiry.get().to_le_bytes()]),
                None => fingerprint.add(&[field, value]),
            }
        }
        fingerprint.finish()
    }
}

/// What a hash is equal in shows: fields and values, their order, the form, and expiries.
impl PartialEq for Hash {
    fn eq(&self, other: &Self) -> bool {
        let expiries = |hash: &Self| -> Vec<_> { hash.iter().map(|(field, _)| hash.expiry(field)).collect() };
        self.0 == other.0 && expiries(self) == expiries(other)
    }
}

impl Eq for Hash {}

/// A hash at some time: without the fields that have expired.
pub struct LiveHash<'a> {
    hash: &'a Hash,
    /// The expiries, the time, and how many fields have expired: there are some.
    hidden: Option<(&'a FieldExpiries, u64, u64)>,
    /// How many fields are before each of those in the order, ascending, once somebody has asked for a field by its rank.
    live_before_hidden: OnceCell<Vec<u64>>,
}

impl<'a> LiveHash<'a> {
    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.hash.len() - self.hidden.map_or(0, |(_, _, due)| due)
    }

    /// True if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if this field has expired.
    fn hides(&self, field: &[u8]) -> bool {
        self.hidden.is_some_and(|(expiries, now_ms, _)| expiries.is_due(field, now_ms))
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, field: &[u8]) -> Option<&'a [u8]> {
        self.hash.get(field).filter(|_| !self.hides(field))
    }

    /// When a field expires, if it is there and does.
    #[must_use]
    pub fn expiry(&self, field: &[u8]) -> Option<NonZeroU64> {
        self.hash.expiry(field).filter(|_| !self.hides(field))
    }

    /// Fields and values in order.
    #[must_use]
    pub fn iter(&self) -> LiveFields<'a> {
        self.live(self.hash.iter())
    }

    /// Those of these fields that are there.
    fn live(&self, all: HashIter<'a>) -> LiveFields<'a> {
        LiveFields { all, hidden: self.hidden.map(|(expiries, now_ms, _)| (expiries, now_ms)) }
    }

    /// See [`Hash::nth`].
    #[must_use]
    pub fn nth(&self, rank: u64) -> Option<(&'a [u8], &'a [u8])> {
        let Some((expiries, _, due)) = self.hidden else { return self.hash.nth(rank) };
        let live_before = self.live_before_hidden.get_or_init(|| {
            let Form::Tree(large) = &self.hash.0 else { return Vec::new() };
            let rank_of = |field| large.tree.rank(<Map>::position(field)).ok();
            let mut ranks: Vec<u64> = expiries.first_fields(due).filter_map(rank_of).collect();
            ranks.sort_unstable();
            (0..).zip(ranks).map(|(hidden, rank)| rank - hidden).collect()
        });
        self.hash.nth(rank + live_before.partition_point(|live| *live <= rank) as u64)
    }

    /// See [`Hash::scan`].
    #[must_use]
    pub fn scan(&self, cursor: u64, count: u64) -> Scan<LiveFields<'a>> {
        self.hash.scan(cursor, count).map(|all| self.live(all))
    }

    /// See [`Value::element_bytes`](crate::Value::element_bytes). Looks up each field that has expired and was not dropped.
    #[must_use]
    pub fn element_bytes(&self) -> usize {
        let all = self.hash.0.element_bytes();
        let Form::Tree(large) = &self.hash.0 else { return all };
        let expiring = self.hash.expiries().map_or(0, FieldExpiries::len);
        let (mut due, mut hidden_bytes) = (0, 0);
        if let Some((expiries, _, hidden)) = self.hidden {
            due = hidden;
            hidden_bytes = expiries
                .first_fields(hidden)
                .filter_map(|field| large.tree.rank(<Map>::position(field)).ok())
                .map(|rank| large.tree.element_bytes_at(rank))
                .sum();
        }
        let bytes = all as u64 - hidden_bytes + (expiring - due) * EXPIRY_BYTES;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

impl<'a> IntoIterator for &LiveHash<'a> {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = LiveFields<'a>;

    fn into_iter(self) -> LiveFields<'a> {
        self.iter()
    }
}

/// Fields and values in order, without those that have expired.
pub struct LiveFields<'a> {
    all: HashIter<'a>,
    hidden: Option<(&'a FieldExpiries, u64)>,
}

impl<'a> Iterator for LiveFields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.all.next()?;
        let Some((expiries, now_ms)) = self.hidden else { return Some(next) };
        if expiries.is_due(next.0, now_ms) {
            return self.all.find(|(field, _)| !expiries.is_due(field, now_ms));
        }
        Some(next)
    }
}

impl<'a> IntoIterator for &'a Hash {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = HashIter<'a>;

    fn into_iter(self) -> HashIter<'a> {
        self.iter()
    }
}

/// Fields and values in order.
pub struct HashIter<'a>(FormIter<'a, 2, Pairs>);

impl<'a> Iterator for HashIter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for HashIter<'_> {}
