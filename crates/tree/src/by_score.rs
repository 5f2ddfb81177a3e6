//! Elements in the order of their scores, and of their bytes where these are equal: sorted sets.

use crate::draft::Draft;
use crate::elements::Elements;
use crate::key_order::KeyOrder;
use crate::order::{Element, Order, take_chunk};
use crate::tree::Tree;
use core::cmp::Ordering;

/// A score: any number but NaN. Minus zero equals zero, and stays what it is.
#[derive(Clone, Copy, Debug)]
pub struct Score(f64);

impl Score {
    /// The least score.
    pub const LEAST: Self = Self(f64::NEG_INFINITY);

    /// The greatest score.
    pub const GREATEST: Self = Self(f64::INFINITY);

    /// A score of this value; none of NaN, which has no place in the order.
    #[must_use]
    #[inline]
    pub const fn new(value: f64) -> Option<Self> {
        if value.is_nan() { None } else { Some(Self(value)) }
    }

    /// The number.
    #[must_use]
    #[inline]
    pub const fn value(self) -> f64 {
        self.0
    }

    /// From the bytes of a block.
    #[inline]
    fn from_bytes(bytes: &[u8]) -> Self {
        let bytes = bytes.try_into().expect("the fixed part of an element has the length of a score");
        Self(f64::from_le_bytes(bytes))
    }
}

impl PartialEq for Score {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}

/// The order of (score, member).
#[derive(Debug)]
pub struct ByScore;

/// The members of a sorted set. A member may be there with several scores: that it is not is up to the user, who finds
/// the score of a member in a [`Map`](crate::Map).
pub type Scores = Tree<ByScore>;

/// A place in the order of (score, member).
#[derive(Clone, Copy, Debug)]
pub enum Edge<'a> {
    /// Before all members with this score.
    Before(Score),
    /// At this member.
    At(Score, &'a [u8]),
    /// Behind this member and before the next one.
    Behind(Score, &'a [u8]),
    /// Behind all members with this score.
    After(Score),
}

impl Edge<'_> {
    /// The score of the members that the place is among.
    #[inline]
    const fn score(self) -> Score {
        match self {
            Self::Before(score) | Self::At(score, _) | Self::Behind(score, _) | Self::After(score) => score,
        }
    }

    /// True if a member with a score is before it.
    #[must_use]
    pub fn is_behind(self, score: Score, member: &[u8]) -> bool {
        self.score().cmp(&score).then_with(|| self.compare(member)) == Ordering::Greater
    }

    /// How it compares with a member, or the tail of a separator, of its score.
    #[inline]
    fn compare(self, member: &[u8]) -> Ordering {
        match self {
            Self::Before(_) => Ordering::Less,
            Self::At(_, own) => own.cmp(member),
            Self::Behind(_, own) => own.cmp(member).then(Ordering::Greater),
            Self::After(_) => Ordering::Greater,
        }
    }
}

impl Order for ByScore {
    const FIXED: usize = size_of::<f64>();
    type Head = Score;
    const LEAST: Score = Score::LEAST;
    const GREATEST: Score = Score::GREATEST;
    type Item<'a> = (Score, &'a [u8]);

    fn put_head(head: Score, out: &mut Vec<u8>) {
        out.extend_from_slice(&head.0.to_le_bytes());
    }

    fn take_head(input: &mut &[u8]) -> Option<Score> {
        take_chunk(input).map(f64::from_le_bytes).and_then(Score::new)
    }

    #[inline]
    fn head(element: Element<'_>) -> Score {
        Score::from_bytes(element.fixed)
    }

    #[inline]
    fn tail(element: Element<'_>) -> &[u8] {
        element.rest
    }

    fn is_sound(element: Element<'_>) -> bool {
        Score::new(Score::from_bytes(element.fixed).0).is_some()
    }

    #[inline]
    fn item(element: Element<'_>) -> (Score, &[u8]) {
        (Score::from_bytes(element.fixed), element.rest)
    }
}

impl KeyOrder for ByScore {
    type Key<'a> = Edge<'a>;

    #[inline]
    fn key_head(key: Edge<'_>) -> Score {
        key.score()
    }

    #[inline]
    fn compare_tail(key: Edge<'_>, tail: &[u8]) -> Ordering {
        key.compare(tail)
    }

    #[inline]
    fn search(elements: Elements<'_, Self>, key: Edge<'_>) -> Result<usize, usize> {
        let scores = elements.fixed_parts().as_chunks::<{ size_of::<f64>() }>().0;
        let wanted = key.score().0;
        let first = scores.partition_point(|score| f64::from_le_bytes(*score) < wanted);
        // Few members share a score, or very many do.
        let behind = match scores.get(first) {
            Some(score) if f64::from_le_bytes(*score) == wanted => {
                first + scores[first..].partition_point(|score| f64::from_le_bytes(*score) <= wanted)
            }
            _ => return Err(first),
        };
        let (mut low, mut high) = (first, behind);
        while low < high {
            let middle = (low + high) / 2;
            match key.compare(elements.rest(middle)) {
                Ordering::Less => high = middle,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => low = middle + 1,
            }
        }
        Err(low)
    }
}

impl Scores {
    /// A member with its score, for a [`Builder`](crate::Builder).
    #[must_use]
    #[inline]
    pub fn draft(score: Score, member: &[u8]) -> Draft<'_> {
        Draft::new(&score.0.to_le_bytes(), member)
    }

    /// Adds a member with a score. False, and nothing is changed, if it is there with this score.
    pub fn insert(&mut self, score: Score, member: &[u8]) -> bool {
        self.insert_new(Edge::At(score, member), &Self::draft(score, member))
    }

    /// Removes a member with a score. False if it is not there with this score.
    pub fn remove(&mut self, score: Score, member: &[u8]) -> bool {
        self.take(Edge::At(score, member), &mut |_| ())
    }

    /// The rank of a member with a score.
    #[must_use]
    pub fn rank_of(&self, score: Score, member: &[u8]) -> Option<u64> {
        self.rank(Edge::At(score, member)).ok()
    }
}
