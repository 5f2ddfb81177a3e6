//! Large collections in parts: for whoever must not take long over one, and reads or writes it a part at a time.
//!
//! A *head* says what the collection is and how many elements it has; a part has some of them, in order, from a rank on.
//! The head and all parts behind each other are the collection's encoding.

use crate::by_hash::{Form, Large};
use crate::field_expiries::{EXPIRY_MS_MAX, FieldExpiries};
use crate::fingerprint::Fingerprint;
use crate::hash::{Hash, Moments};
use crate::list::{self, List};
use crate::primitive::{InvalidValue, put_string, take_string, take_u8};
use crate::set::Set;
use crate::sorted_set::{self, SortedSet, TreesBuilder, bytes_of, score_of};
use crate::stream::{Stream, StreamBuilder};
use crate::{Kind, Value, form_tag};
use core::num::NonZeroU64;
use core::ops::ControlFlow;
use syros_tree::{Builder, ByHash, ByPosition, List as ListTree, Map, Members, Pairs, Scores};
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::varint::{put_varint, take_varint};

/// A collection that is being written. It is a clone: what is done to the original is not seen.
#[derive(Clone, Debug)]
pub struct ValueParts {
    tree: Tree,
    /// How many elements have been written.
    written: u64,
    fingerprint: Fingerprint,
}

impl ValueParts {
    /// The parts of a value; `None` if it is so small that it should be written as one.
    #[must_use]
    pub fn of(value: &Value) -> Option<Self> {
        let tree = Tree::of(value)?;
        Some(Self { fingerprint: Fingerprint::new(value.kind(), form_tag::TREE), tree, written: 0 })
    }

    /// Appends the head.
    pub fn put_head(&self, out: &mut Vec<u8>) {
        let expiries = if let Tree::Hash(tree, Some(expiries)) = &self.tree {
            Some(Moments::of(tree.len(), expiries))
        } else {
            None
        };
        let form = if expiries.is_some() { form_tag::EXPIRING } else { form_tag::TREE };
        out.extend_from_slice(&[self.tree.kind().tag(), form]);
        if let Some(moments) = expiries {
            moments.put(out);
        }
        put_varint(out, self.tree.len());
    }

    /// The rank of the element that comes next.
    #[must_use]
    pub const fn rank(&self) -> u64 {
        self.written
    }

    /// True if all elements have been written.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.written == self.tree.len()
    }

    /// Appends elements until `out` has `bytes` bytes more, at least one, or all that are left.
    pub fn put_part(&mut self, bytes: usize, out: &mut Vec<u8>) {
        let end = out.len().saturating_add(bytes);
        let is_hash = self.tree.kind() == Kind::Hash;
        self.tree.each_from(self.written, |strings| {
            strings.iter().for_each(|string| put_string(out, string));
            let shown = if is_hash { shown_of_field(strings) } else { strings };
            self.fingerprint.add(shown);
            self.written += 1;
            if out.len() >= end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    /// The tree.
    pub(crate) fn into_tree(self) -> Tree {
        self.tree
    }

    /// The fingerprint of the value, once all elements have been written.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint.finish()
    }
}

/// What the fingerprint of a hash has of a field: nothing of an expiry that it does not have.
fn shown_of_field<'a, 'b>(strings: &'a [&'b [u8]]) -> &'a [&'b [u8]] {
    match strings {
        [shown @ .., []] if shown.len() == 2 => shown,
        all => all,
    }
}

/// The tree of a large collection. A clone shares its memory.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Hash(Map, Option<Box<FieldExpiries>>),
    List(ListTree),
    Set(syros_tree::Set),
    SortedSet(Scores),
    Stream(Stream),
}

impl Tree {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Hash(Hash(Form::Tree(large))) => {
                Some(Self::Hash(large.tree.clone(), large.beside.clone()))
            }
            Value::List(List(list::Form::Tree(tree))) => Some(Self::List((**tree).clone())),
            Value::Set(Set(Form::Tree(large))) => Some(Self::Set(large.tree.clone())),
            Value::SortedSet(SortedSet(sorted_set::Form::Tree(trees))) => {
                Some(Self::SortedSet(trees.by_score.clone()))
            }
            Value::Stream(stream) => Some(Self::Stream(stream.clone())),
            Value::Hash(Hash(Form::Packed(_)))
            | Value::List(List(list::Form::Packed(_)))
            | Value::Set(Set(Form::Packed(_)))
            | Value::SortedSet(SortedSet(sorted_set::Form::Packed(_)))
            | Value::String(_) => None,
        }
    }

    const fn kind(&self) -> Kind {
        match self {
            Self::Hash(..) => Kind::Hash,
            Self::List(_) => Kind::List,
            Self::Set(_) => Kind::Set,
            Self::SortedSet(_) => Kind::SortedSet,
            Self::Stream(_) => Kind::Stream,
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Hash(tree, _) => tree.len(),
            Self::List(tree) => tree.len(),
            Self::Set(tree) => tree.len(),
            Self::SortedSet(tree) => tree.len(),
            Self::Stream(stream) => stream.elements_len(),
        }
    }

    /// Visits the strings of each element from a rank on, until `visit` breaks off.
    fn each_from(&self, rank: u64, mut visit: impl FnMut(&[&[u8]]) -> ControlFlow<()>) {
        let _ = match self {
            Self::Hash(tree, None) => {
                tree.range(rank..).try_for_each(|(field, value)| visit(&[field, value]))
            }
            Self::Hash(tree, Some(expiries)) => tree.range(rank..).try_for_each(|(field, value)| {
                let expiry = expiries.of(field).map(|expiry| expiry.get().to_le_bytes());
                visit(&[field, value, expiry.as_ref().map_or(&[], <[u8; 8]>::as_slice)])
            }),
            Self::List(tree) => tree.range(rank..).try_for_each(|element| visit(&[element])),
            Self::Set(tree) => tree.range(rank..).try_for_each(|member| visit(&[member])),
            Self::SortedSet(tree) => {
                tree.range(rank..).try_for_each(|(score, member)| visit(&[&bytes_of(score), member]))
            }
            Self::Stream(stream) => stream.each_element_from(rank, visit),
        };
    }
}

/// A collection that is being read.
pub struct ValueBuilder {
    tree: TreeBuilder,
    /// How many elements it will have.
    count: u64,
}

impl ValueBuilder {
    /// Takes a head off the front of `input`.
    ///
    /// # Errors
    /// [`InvalidValue`] if there is none.
    pub fn take_head(input: &mut &[u8]) -> Result<Self, InvalidValue> {
        let (kind, form) = (take_u8(input)?, take_u8(input)?);
        let kind = Kind::of_tag(kind).ok_or(InvalidValue::Kind(kind))?;
        Self::take_behind_tags(kind, form, input)
    }

    /// Takes what is behind the tags of a head.
    pub(crate) fn take_behind_tags(kind: Kind, form: u8, input: &mut &[u8]) -> Result<Self, InvalidValue> {
        let tree = match (kind, form) {
            (_, form_tag::TREE) => TreeBuilder::new(kind)?,
            (Kind::Hash, form_tag::EXPIRING) => {
                TreeBuilder::ExpiringHash(Box::new(ExpiringBuilder::new(Moments::take(input)?)))
            }
            _ => return Err(InvalidValue::Form(form)),
        };
        match take_varint(input)? {
            0 => Err(InvalidValue::Count(0)),
            count => Ok(Self { tree, count }),
        }
    }

    /// The rank of the element that comes next.
    #[must_use]
    pub fn rank(&self) -> u64 {
        self.tree.len()
    }

    /// True if all elements are there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.tree.len() == self.count
    }

    /// Adds the elements of a part, which has to begin with the one that comes next.
    ///
    /// # Errors
    /// [`InvalidValue`] if the bytes are no elements, or too many, or not in order.
    pub fn part(&mut self, mut bytes: &[u8]) -> Result<(), InvalidValue> {
        while !bytes.is_empty() {
            self.element(&mut bytes)?;
        }
        Ok(())
    }

    /// Takes an element off the front of `input`.
    pub(crate) fn element(&mut self, input: &mut &[u8]) -> Result<(), InvalidValue> {
        if self.is_complete() {
            return Err(InvalidValue::Count(self.count + 1));
        }
        self.tree.element(self.count, input)
    }

    /// The collection. All elements have to be there.
    #[must_use]
    pub fn finish(self) -> Value {
        self.tree.finish()
    }
}

/// The tree of a large collection that is being read.
enum TreeBuilder {
    Hash(Builder<ByHash<Pairs>>),
    ExpiringHash(Box<ExpiringBuilder>),
    List(Builder<ByPosition>),
    Set(Builder<ByHash<Members>>),
    SortedSet(TreesBuilder),
    Stream(Box<StreamBuilder>),
}

impl TreeBuilder {
    /// One without elements.
    fn new(kind: Kind) -> Result<Self, InvalidValue> {
        match kind {
            Kind::Hash => Ok(Self::Hash(Builder::new())),
            Kind::List => Ok(Self::List(Builder::new())),
            Kind::Set => Ok(Self::Set(Builder::new())),
            Kind::SortedSet => Ok(Self::SortedSet(TreesBuilder::new())),
            Kind::Stream => Ok(Self::Stream(Box::default())),
            Kind::String => Err(InvalidValue::Kind(kind.tag())),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Hash(builder) => builder.len(),
            Self::ExpiringHash(hash) => hash.fields.len(),
            Self::List(builder) => builder.len(),
            Self::Set(builder) => builder.len(),
            Self::SortedSet(builder) => builder.len(),
            Self::Stream(builder) => builder.len(),
        }
    }

    /// Takes the next element of so many off the front of `input`.
    fn element(&mut self, count: u64, input: &mut &[u8]) -> Result<(), InvalidValue> {
        let mut string = || take_string(input, VALUE_BYTES_MAX);
        match self {
            Self::Hash(builder) => {
                let (field, value) = (string()?, string()?);
                builder.push(&<Map>::draft(field, value)).map_err(|_| InvalidValue::Order)
            }
            Self::ExpiringHash(hash) => hash.element(count, [string()?, string()?, string()?]),
            Self::List(builder) => builder.push(&ListTree::draft(string()?)).map_err(|_| InvalidValue::Order),
            Self::Set(builder) => {
                builder.push(&<syros_tree::Set>::draft(string()?)).map_err(|_| InvalidValue::Order)
            }
            Self::SortedSet(builder) => {
                let (score, member) = (string()?, string()?);
                let score = score_of(score).ok_or(InvalidValue::Score)?;
                if builder.push(count, score, member) { Ok(()) } else { Err(InvalidValue::Order) }
            }
            Self::Stream(builder) => builder.element(count, input),
        }
    }

    fn finish(self) -> Value {
        match self {
            Self::Hash(builder) => Value::Hash(Hash(Form::Tree(Box::new(Large::new(builder.finish()))))),
            Self::ExpiringHash(hash) => Value::Hash(hash.finish()),
            Self::List(builder) => Value::List(List(list::Form::Tree(Box::new(builder.finish())))),
            Self::Set(builder) => Value::Set(Set(Form::Tree(Box::new(Large::new(builder.finish()))))),
            Self::SortedSet(builder) => Value::SortedSet(builder.finish()),
            Self::Stream(builder) => Value::Stream(builder.finish()),
        }
    }
}

/// A hash of which fields expire, while it is being read.
struct ExpiringBuilder {
    fields: Builder<ByHash<Pairs>>,
    expiries: FieldExpiries,
    /// What its head says.
    moments: Moments,
}

impl ExpiringBuilder {
    /// One without fields.
    fn new(moments: Moments) -> Self {
        Self { fields: Builder::new(), expiries: FieldExpiries::default(), moments }
    }

    /// Adds the next field of so many, with its value and its expiry, which is empty if it has none.
    fn element(&mut self, count: u64, [field, value, expiry]: [&[u8]; 3]) -> Result<(), InvalidValue> {
        self.fields.push(&<Map>::draft(field, value)).map_err(|_| InvalidValue::Order)?;
        if !expiry.is_empty() {
            let ms = expiry.try_into().map_or(0, u64::from_le_bytes);
            let expiry = NonZeroU64::new(ms).filter(|_| ms <= EXPIRY_MS_MAX).ok_or(InvalidValue::Expiry)?;
            self.expiries.set(field, expiry);
        }
        if self.fields.len() < count || Moments::of(count, &self.expiries) == self.moments {
            Ok(())
        } else {
            Err(InvalidValue::Expiry)
        }
    }

    fn finish(self) -> Hash {
        let beside = (self.expiries.len() > 0).then(|| Box::new(self.expiries));
        Hash(Form::Tree(Box::new(Large { tree: self.fields.finish(), beside })))
    }
}
