//! Intersections, unions and differences of sets.
//!
//! The order of a result is that of a set to which its members have been added one by one: those of an intersection as
//! they come in the smallest set, those of a difference as they come in the first, those of a union as they come in one
//! set after the other. What is done here is only faster.

use crate::set::Set;

impl Set {
    /// The members that all these sets have, in the order of the smallest one, or the first of the smallest.
    pub fn intersection<'a>(sets: &[&'a Self]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut sets = sets.to_vec();
        sets.sort_by_key(|set| set.len());
        let mut sets = sets.into_iter();
        let smallest = sets.next().map(Self::iter);
        let are_in_all = move |member: &&[u8]| sets.clone().all(|set| set.contains(member));
        smallest.into_iter().flatten().filter(are_in_all)
    }

    /// The members of all these sets: first those of the first one in its order.
    #[must_use]
    pub fn union(sets: &[&Self]) -> Self {
        let largest = sets.iter().enumerate().max_by_key(|(_, set)| set.len());
        // The order of a union that is a tree does not depend on what was added first.
        let first = largest.filter(|(_, set)| set.is_large()).map_or(0, |(index, _)| index);
        let mut union = sets.get(first).map_or_else(Self::default, |set| set.repacked());
        let others = sets.iter().enumerate().filter(|(index, _)| *index != first);
        for member in others.flat_map(|(_, set)| set.iter()) {
            union.insert(member);
        }
        union
    }

    /// The members of the first of these sets that no other one has, in its order.
    #[must_use]
    pub fn difference(sets: &[&Self]) -> Self {
        let Some((first, others)) = sets.split_first() else { return Self::default() };
        let lookups = first.len().saturating_mul(others.len() as u64);
        let removals = others.iter().fold(0_u64, |sum, set| sum.saturating_add(set.len()));
        // A removal takes about as long as two lookups, and a lookup may be the last one for its member.
        if lookups / 2 <= removals {
            return first.iter().filter(|member| !others.iter().any(|set| set.contains(member))).collect();
        }
        let mut difference = (*first).clone();
        for member in others.iter().flat_map(|set| set.iter()) {
            difference.remove(member);
        }
        difference.repacked()
    }

    /// The set to which the members of this one have been added in their order: a packed one, if it has room for them.
    fn repacked(&self) -> Self {
        if self.is_packed() || self.is_large() { self.clone() } else { self.iter().collect() }
    }
}
