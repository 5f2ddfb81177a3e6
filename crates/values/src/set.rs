//! Sets: members, each of them once.

use crate::Kind;
use crate::by_hash::{Element, Form, FormIter, Scan, find_packed};
use crate::packed::ELEMENTS_MAX;
use syros_tree::{Builder, Members};

/// Members. They have an order: a packed set has that in which they were added, a tree that of their hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set(pub(crate) Form<1, Members>);

impl Element<1> for Members {
    const KIND: Kind = Kind::Set;

    type Beside = ();

    fn of_strings([member]: [&[u8]; 1]) -> &[u8] {
        member
    }

    fn strings<'a: 'a>(member: &'a [u8]) -> [&'a [u8]; 1] {
        [member]
    }

    fn insert(tree: &mut syros_tree::Set, [member]: [&[u8]; 1]) -> bool {
        tree.insert(member)
    }
}

impl Set {
    /// Number of members.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// True if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if it lies in one allocation.
    #[must_use]
    pub const fn is_packed(&self) -> bool {
        self.0.is_packed()
    }

    /// True if it has so many members that it is a tree for that alone.
    pub(crate) fn is_large(&self) -> bool {
        self.len() > ELEMENTS_MAX as u64
    }

    /// True if this is a member.
    #[must_use]
    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.0 {
            Form::Packed(packed) => find_packed(packed, member).is_some(),
            Form::Tree(large) => large.tree.contains(member),
        }
    }

    /// Adds a member. True if it was none.
    pub fn insert(&mut self, member: &[u8]) -> bool {
        self.0.insert([member])
    }

    /// Removes a member. False if it was none.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        self.0.remove(member)
    }

    /// Removes the member of this rank. False if there is none.
    pub fn remove_at(&mut self, rank: u64) -> bool {
        match &mut self.0 {
            Form::Packed(packed) => {
                let mut ranks = 0..;
                let found = packed.find(|_| ranks.next() == Some(rank)).map(|(place, _)| place);
                found.map(|place| packed.remove(place)).is_some()
            }
            Form::Tree(large) => large.tree.remove_at(rank, |_| ()).is_some(),
        }
    }

    /// The members in order.
    #[must_use]
    pub fn iter(&self) -> SetIter<'_> {
        SetIter(self.0.iter())
    }

    /// The member of this rank, without a look at all those before it if there are many.
    #[must_use]
    pub fn nth(&self, rank: u64) -> Option<&[u8]> {
        self.0.nth(rank)
    }

    /// A step of an iteration that goes on although members come and go between its steps: about `count` members from a
    /// cursor on, all of them if the set is packed. The first step has cursor 0, and each other one that which the step
    /// before it returned; 0 is also the end. What is there from the first step to the last is in one of them.
    #[must_use]
    pub fn scan(&self, cursor: u64, count: u64) -> Scan<SetIter<'_>> {
        self.0.scan(cursor, count).map(SetIter)
    }

    /// See [`Value::memory_bytes`](crate::Value::memory_bytes).
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// See [`Value::element_bytes`](crate::Value::element_bytes).
    #[must_use]
    pub fn element_bytes(&self) -> usize {
        self.0.element_bytes()
    }

    /// See [`Value::fingerprint`](crate::Value::fingerprint).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.0.fingerprint()
    }
}

/// The set to which these members have been added in their order.
impl<'a> FromIterator<&'a [u8]> for Set {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(members: I) -> Self {
        let mut set = Self::default();
        let mut members = members.into_iter();
        while set.is_packed()
            && let Some(member) = members.next()
        {
            set.insert(member);
        }
        if let Form::Tree(large) = &mut set.0 {
            let last = extend_in_order(&mut large.tree, &mut members);
            for member in last.into_iter().chain(members) {
                large.tree.insert(member);
            }
        }
        set
    }
}

/// Adds members to a tree as long as each comes behind all that are there, which is faster than to look for the place of
/// each. The first one that does not, if there is one.
fn extend_in_order<'a>(
    tree: &mut syros_tree::Set,
    members: &mut impl Iterator<Item = &'a [u8]>,
) -> Option<&'a [u8]> {
    let mut builder = Builder::new();
    let mut append = |member: &[u8]| builder.push(&<syros_tree::Set>::draft(member)).is_ok();
    let are_in_order = tree.iter().all(&mut append);
    assert!(are_in_order, "a tree is in its order");
    let last = members.find(|member| !append(member));
    *tree = builder.finish();
    last
}

impl<'a> IntoIterator for &'a Set {
    type Item = &'a [u8];
    type IntoIter = SetIter<'a>;

    fn into_iter(self) -> SetIter<'a> {
        self.iter()
    }
}

/// Members in order.
pub struct SetIter<'a>(FormIter<'a, 1, Members>);

impl<'a> Iterator for SetIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for SetIter<'_> {}
