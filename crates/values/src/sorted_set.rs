//! Sorted sets: members with scores.

use crate::by_hash::{ALLOCATION_BYTES, Scan, step};
use crate::fingerprint::Fingerprint;
use crate::packed::{ELEMENTS_MAX, Packed, Place, fits};
use crate::{Kind, form_tag};
use core::ops::Range;
use syros_tree::{Builder, ByHash, ByScore, Edge, Iter, Map, Pairs, Score, Scores};
use syros_types::key_hash;

/// Members with scores, in the order of their scores, and of their bytes where these are equal.
///
/// A packed sorted set has no score of minus zero: it makes zero of it, as in Redis.
#[derive(Clone, Debug)]
pub struct SortedSet(pub(crate) Form);

/// How a sorted set lies in memory.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// A score and a member each, in order.
    Packed(Packed<2>),
    Tree(Box<Trees>),
}

/// The members of a large sorted set, twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trees {
    /// In order.
    pub(crate) by_score: Scores,
    /// Each with its score.
    pub(crate) members: Map,
}

/// The bytes of a score.
pub(crate) type ScoreBytes = [u8; size_of::<f64>()];

impl Default for SortedSet {
    fn default() -> Self {
        Self(Form::Packed(Packed::default()))
    }
}

impl SortedSet {
    /// The sorted set of these members, which have to be in its order, and none of them twice.
    ///
    /// # Panics
    /// If they are not.
    #[must_use]
    pub fn from_ascending(members: &[(&[u8], Score)]) -> Self {
        if members.len() > ELEMENTS_MAX || members.iter().any(|(member, _)| !fits(member)) {
            return Self(Form::Tree(Box::new(Trees::from_ascending(members))));
        }
        let scores: Vec<ScoreBytes> = members.iter().map(|(_, score)| packed_bytes(*score)).collect();
        let elements = scores.iter().zip(members).map(|(score, (member, _))| [&score[..], member]);
        Self(Form::Packed(Packed::of(&elements.collect::<Vec<_>>())))
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Form::Packed(packed) => packed.len() as u64,
            Form::Tree(trees) => trees.by_score.len(),
        }
    }

    /// True if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if it lies in one allocation.
    #[must_use]
    pub const fn is_packed(&self) -> bool {
        matches!(self.0, Form::Packed(_))
    }

    /// The score of a member.
    #[must_use]
    pub fn score(&self, member: &[u8]) -> Option<Score> {
        match &self.0 {
            Form::Packed(packed) => find(packed, member).map(|(_, score)| score),
            Form::Tree(trees) => trees.score(member),
        }
    }

    /// Gives a member a score. True if it had none. One that equals the score that it had, as zero equals minus zero,
    /// changes nothing.
    pub fn set(&mut self, member: &[u8], score: Score) -> bool {
        if let Form::Packed(packed) = &mut self.0
            && fits(member)
            && let Some(is_new) = set_packed(packed, member, score)
        {
            return is_new;
        }
        self.trees_mut().set(member, score)
    }

    /// Removes a member. False if there is none.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut self.0 {
            Form::Packed(packed) => match find(packed, member) {
                Some((place, _)) => {
                    packed.remove(place);
                    true
                }
                None => false,
            },
            Form::Tree(trees) => trees.remove(member),
        }
    }

    /// Removes the members of these ranks. Ranks that no member has are left out.
    pub fn remove_range(&mut self, ranks: Range<u64>) {
        match &mut self.0 {
            Form::Packed(packed) => {
                let elements = (0..).zip(packed.iter()).filter(|(rank, _)| !ranks.contains(rank));
                let kept = Packed::of(&elements.map(|(_, element)| element).collect::<Vec<_>>());
                *packed = kept;
            }
            Form::Tree(trees) => trees.remove_range(ranks),
        }
    }

    /// How many members are before a place in the order, in O(log n).
    #[must_use]
    pub fn count_before(&self, edge: Edge<'_>) -> u64 {
        match &self.0 {
            Form::Packed(packed) => packed
                .iter()
                .map(element)
                .take_while(|(member, score)| edge.is_behind(*score, member))
                .count() as u64,
            Form::Tree(trees) => trees.by_score.count_before(edge),
        }
    }

    /// The rank of a member, in O(log n).
    #[must_use]
    pub fn rank(&self, member: &[u8]) -> Option<u64> {
        match &self.0 {
            Form::Packed(packed) => {
                packed.iter().position(|[_, found]| found == member).map(|rank| rank as u64)
            }
            Form::Tree(trees) => trees.by_score.rank_of(trees.score(member)?, member),
        }
    }

    /// The member of this rank with its score, in O(log n).
    #[must_use]
    pub fn nth(&self, rank: u64) -> Option<(&[u8], Score)> {
        match &self.0 {
            Form::Packed(packed) => packed.iter().nth(usize::try_from(rank).ok()?).map(element),
            Form::Tree(trees) => trees.by_score.nth(rank).map(|(score, member)| (member, score)),
        }
    }

    /// The members in order.
    #[must_use]
    pub fn iter(&self) -> SortedSetIter<'_> {
        self.range(0..self.len())
    }

    /// The members of these ranks in order. Ranks that no member has are left out.
    #[must_use]
    pub fn range(&self, ranks: Range<u64>) -> SortedSetIter<'_> {
        SortedSetIter(match &self.0 {
            Form::Packed(packed) => {
                let start = usize::try_from(ranks.start).unwrap_or(usize::MAX);
                let count = usize::try_from(ranks.end.saturating_sub(ranks.start)).unwrap_or(usize::MAX);
                let elements: Vec<_> = packed.iter().skip(start).take(count).map(element).collect();
                FormIter::Packed(elements.into_iter())
            }
            Form::Tree(trees) => FormIter::Tree(trees.by_score.range(ranks)),
        })
    }

    /// As [`Hash::scan`](crate::Hash::scan), by members.
    #[must_use]
    pub fn scan(&self, cursor: u64, count: u64) -> Scan<SortedSetIter<'_>> {
        match &self.0 {
            Form::Packed(_) => Scan { items: self.iter(), cursor: 0 },
            Form::Tree(trees) => {
                let (ranks, cursor) = step::<2, Pairs>(&trees.members, cursor, count);
                Scan { items: SortedSetIter(FormIter::Hashed(trees.members.range(ranks))), cursor }
            }
        }
    }

    /// See [`Value::memory_bytes`](crate::Value::memory_bytes).
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        ALLOCATION_BYTES
            + match &self.0 {
                Form::Packed(packed) => packed.bytes(),
                Form::Tree(trees) => {
                    let bytes = trees.by_score.bytes() + trees.members.bytes();
                    size_of::<Trees>() + usize::try_from(bytes).unwrap_or(usize::MAX)
                }
            }
    }

    /// See [`Value::element_bytes`](crate::Value::element_bytes).
    #[must_use]
    pub fn element_bytes(&self) -> usize {
        match &self.0 {
            Form::Packed(packed) => packed.bytes(),
            Form::Tree(trees) => {
                let bytes = trees.by_score.element_bytes() + trees.members.element_bytes();
                usize::try_from(bytes).unwrap_or(usize::MAX)
            }
        }
    }

    /// See [`Value::fingerprint`](crate::Value::fingerprint): the members with their scores in their order, and the form.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let form = if self.is_packed() { form_tag::PACKED } else { form_tag::TREE };
        let mut fingerprint = Fingerprint::new(Kind::SortedSet, form);
        self.iter().for_each(|(member, score)| fingerprint.add(&[&bytes_of(score), member]));
        fingerprint.finish()
    }

    /// The trees; makes them if it is packed.
    fn trees_mut(&mut self) -> &mut Trees {
        if let Form::Packed(packed) = &self.0 {
            let members: Vec<_> = packed.iter().map(element).collect();
            self.0 = Form::Tree(Box::new(Trees::from_ascending(&members)));
        }
        match &mut self.0 {
            Form::Tree(trees) => trees,
            Form::Packed(_) => unreachable!("it has become a tree"),
        }
    }
}

impl Trees {
    /// The trees of these members, which have to be in order, and none of them twice.
    fn from_ascending(members: &[(&[u8], Score)]) -> Self {
        let mut by_score = Builder::<ByScore>::new();
        for (member, score) in members {
            by_score.push(&Scores::draft(*score, member)).expect("members are in order");
        }
        let mut hashed: Vec<_> = members.iter().map(|element| (key_hash(element.0), element)).collect();
        hashed.sort_unstable_by_key(|(hash, (member, _))| (*hash, *member));
        let mut by_hash = Builder::new();
        for (_, (member, score)) in hashed {
            by_hash.push(&<Map>::draft(member, &bytes_of(*score))).expect("no member is there twice");
        }
        Self { by_score: by_score.finish(), members: by_hash.finish() }
    }

    fn score(&self, member: &[u8]) -> Option<Score> {
        self.members.get(member).map(trusted_score)
    }

    fn set(&mut self, member: &[u8], score: Score) -> bool {
        let old = self.score(member);
        if old == Some(score) {
            return false;
        }
        self.members.insert(member, &bytes_of(score));
        if let Some(old) = old {
            self.by_score.remove(old, member);
        }
        self.by_score.insert(score, member);
        old.is_none()
    }

    fn remove(&mut self, member: &[u8]) -> bool {
        let mut old = None;
        self.members.remove_with(member, |score| old = Some(trusted_score(score)));
        old.is_some_and(|score| self.by_score.remove(score, member))
    }

    fn remove_range(&mut self, ranks: Range<u64>) {
        for (_, member) in self.by_score.range(ranks.clone()) {
            self.members.remove(member);
        }
        drop(self.by_score.remove_range(ranks));
    }
}

/// Members that are inserted into the tree by hash at a time, and the bytes of their names, about: enough that most find a
/// place next to one before them, and so few that no step takes long, not even the last one.
const TOGETHER_MAX: usize = 131_072;
const TOGETHER_BYTES_MAX: usize = 8 << 20;

/// The trees of members that come in their order.
pub(crate) struct TreesBuilder {
    by_score: Builder<ByScore>,
    members: Map,
    /// Members that are not in the tree by hash yet: hash, score, and where the name stands in `names`.
    together: Vec<(u64, Score, Range<usize>)>,
    names: Vec<u8>,
}

impl TreesBuilder {
    pub(crate) fn new() -> Self {
        Self { by_score: Builder::new(), members: Map::new(), together: Vec::new(), names: Vec::new() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.by_score.len()
    }

    /// Adds a member of so many; false if it is not behind the one before it, or one is found to be there twice.
    pub(crate) fn push(&mut self, count: u64, score: Score, member: &[u8]) -> bool {
        if self.by_score.push(&Scores::draft(score, member)).is_err() {
            return false;
        }
        let begin = self.names.len();
        self.names.extend_from_slice(member);
        self.together.push((key_hash(member), score, begin..self.names.len()));
        let is_full = self.together.len() >= TOGETHER_MAX || self.names.len() >= TOGETHER_BYTES_MAX;
        !(is_full || self.len() == count) || self.insert()
    }

    /// Inserts members into the tree by hash, in its order; false if one is there twice.
    fn insert(&mut self) -> bool {
        self.together.sort_unstable_by_key(|(hash, ..)| *hash);
        let Self { members, together, names, .. } = self;
        let are_new =
            together.iter().all(|(_, score, name)| members.insert(&names[name.clone()], &bytes_of(*score)));
        together.clear();
        names.clear();
        are_new
    }

    pub(crate) fn finish(self) -> SortedSet {
        let Self { by_score, members, together, .. } = self;
        debug_assert!(together.is_empty(), "the last of all members has been pushed");
        SortedSet(Form::Tree(Box::new(Trees { by_score: by_score.finish(), members })))
    }
}

/// Gives a member of a packed sorted set a score. True if it had none, and `None`, without a change, if there is no room
/// for it.
fn set_packed(packed: &mut Packed<2>, member: &[u8], score: Score) -> Option<bool> {
    let old = find(packed, member);
    let is_new = old.is_none();
    match old {
        Some((_, old)) if old == score => return Some(false),
        Some((place, _)) => packed.remove(place),
        None => {}
    }
    let behind = |[other, found]: &[&[u8]; 2]| (trusted_score(other), *found) > (score, member);
    let place = packed.find(behind).map_or_else(|| packed.end(), |(place, _)| place);
    packed.insert(place, [&packed_bytes(score), member]).then_some(is_new)
}

/// Where a member of a packed sorted set is, and its score.
fn find(packed: &Packed<2>, member: &[u8]) -> Option<(Place, Score)> {
    packed.find(|[_, found]| *found == member).map(|(place, [score, _])| (place, trusted_score(score)))
}

/// A member and its score.
fn element([score, member]: [&[u8]; 2]) -> (&[u8], Score) {
    (member, trusted_score(score))
}

/// A member and its score, from the tree by hash.
fn hashed<'a>((member, score): (&'a [u8], &[u8])) -> (&'a [u8], Score) {
    (member, trusted_score(score))
}

/// How a score is written.
pub(crate) const fn bytes_of(score: Score) -> ScoreBytes {
    score.value().to_le_bytes()
}

/// How a score is written in a packed sorted set: minus zero plus zero is zero.
fn packed_bytes(score: Score) -> ScoreBytes {
    (score.value() + 0.0).to_le_bytes()
}

/// The score that these bytes are, if they are one.
pub(crate) fn score_of(bytes: &[u8]) -> Option<Score> {
    Score::new(f64::from_le_bytes(bytes.try_into().ok()?))
}

/// The score that these bytes are, if they are one that a packed sorted set can have.
pub(crate) fn packed_score_of(bytes: &[u8]) -> Option<Score> {
    score_of(bytes).filter(|score| packed_bytes(*score) == bytes)
}

/// The score that these bytes of a sorted set are.
fn trusted_score(bytes: &[u8]) -> Score {
    score_of(bytes).expect("a sorted set has the bytes of scores")
}

/// What a sorted set is equal in shows: members, scores, and the form.
impl PartialEq for SortedSet {
    fn eq(&self, other: &Self) -> bool {
        let bytes = |(member, score)| (member, bytes_of(score));
        self.is_packed() == other.is_packed() && self.iter().map(bytes).eq(other.iter().map(bytes))
    }
}

impl Eq for SortedSet {}

impl<'a> IntoIterator for &'a SortedSet {
    type Item = (&'a [u8], Score);
    type IntoIter = SortedSetIter<'a>;

    fn into_iter(self) -> SortedSetIter<'a> {
        self.iter()
    }
}

/// Members with their scores in order, from either end; those of a [scan](SortedSet::scan) have an order of their own.
pub struct SortedSetIter<'a>(FormIter<'a>);

enum FormIter<'a> {
    Packed(std::vec::IntoIter<(&'a [u8], Score)>),
    Tree(Iter<'a, ByScore>),
    Hashed(Iter<'a, ByHash<Pairs>>),
}

impl<'a> Iterator for SortedSetIter<'a> {
    type Item = (&'a [u8], Score);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            FormIter::Packed(elements) => elements.next(),
            FormIter::Tree(elements) => elements.next().map(|(score, member)| (member, score)),
            FormIter::Hashed(elements) => elements.next().map(hashed),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            FormIter::Packed(elements) => elements.size_hint(),
            FormIter::Tree(elements) => elements.size_hint(),
            FormIter::Hashed(elements) => elements.size_hint(),
        }
    }
}

impl DoubleEndedIterator for SortedSetIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            FormIter::Packed(elements) => elements.next_back(),
            FormIter::Tree(elements) => elements.next_back().map(|(score, member)| (member, score)),
            FormIter::Hashed(elements) => elements.next_back().map(hashed),
        }
    }
}

impl ExactSizeIterator for SortedSetIter<'_> {}
