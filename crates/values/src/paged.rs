//! Collections whose trees lie in pages (`syros-tree`), for whoever keeps values on disk: what is read and written for a
//! command grows with the elements that it names, and hardly with the collection.
//!
//! | what | bytes |
//! |---|---|
//! | head | the kind's tag, form (4), when the first field expires, when the last one does; which pages are the collection's; a number that none of them has |
//! | hash | tree; 0 if no field expires, or 1 and a packed sorted set of the fields that do, or 2 and its trees |
//! | list, set | tree |
//! | sorted set | members in order, members with their scores |
//! | stream | its numbers as one string; entries, records of its groups, what follows from these |
//!
//! Numbers are varints. Unlike other [encodings](crate::Value::put), equal collections may have different ones: numbers of pages
//! tell what has been done to a collection.

use crate::by_hash::{Form, Large};
use crate::field_expiries::FieldExpiries;
use crate::hash::{Hash, Moments};
use crate::list::{self, List};
use crate::primitive::{InvalidValue, put_string, take_string, take_u8};
use crate::set::Set;
use crate::sorted_set::{self, SortedSet, Trees};
use crate::stream::{State, Stream};
use crate::{Kind, Value, form_tag};
use syros_tree::{Order, Saved, Saver, Source, Tree};
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::varint::{put_varint, take_varint};

const NONE: u8 = 0;
const PACKED: u8 = 1;
const TREES: u8 = 2;

/// What stands before the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagedHead {
    /// The name of its page set.
    pub page_set: u64,
    /// None of its pages has this number, or a greater one.
    pub next: u64,
}

impl PagedHead {
    /// The head of the collection that this is the encoding of; `None` if that has no pages.
    #[must_use]
    pub fn of_encoding(bytes: &[u8]) -> Option<Self> {
        take_head(&mut { bytes }).ok().map(|(_, head)| head)
    }
}

fn take_head(input: &mut &[u8]) -> Result<(Kind, PagedHead), InvalidValue> {
    let tag = take_u8(input)?;
    let kind = Kind::of_tag(tag).ok_or(InvalidValue::Kind(tag))?;
    match take_u8(input)? {
        form_tag::PAGED => {}
        other => return Err(InvalidValue::Form(other)),
    }
    Moments::take_any(input)?;
    Ok((kind, PagedHead { page_set: take_varint(input)?, next: take_varint(input)? }))
}

/// What stands before the trees of a value that lies in pages, and where they are.
#[derive(Clone, Debug)]
pub struct Paged {
    /// What stands before the trees.
    pub head: PagedHead,
    /// Where the pages are.
    pub source: Source,
}

impl Paged {
    /// What becomes of the pages of a value that nobody needs any more. The value has to have been [taken](take_paged) from them.
    #[must_use]
    pub fn give_back(self) -> Saved {
        Saver::new(Some(self.source), self.head.next).finish()
    }
}

/// Visits the trees of a value. Not those of which it has none.
trait Visit {
    fn tree<O: Order>(&mut self, tree: &Tree<O>);
    /// What is not in a tree.
    fn bytes(&mut self, bytes: &[u8]);
}

impl Visit for &mut Saver {
    fn tree<O: Order>(&mut self, tree: &Tree<O>) {
        self.keep(tree);
    }

    fn bytes(&mut self, _: &[u8]) {}
}

impl Visit for (&mut Saver, &mut Vec<u8>) {
    fn tree<O: Order>(&mut self, tree: &Tree<O>) {
        self.0.put(tree, self.1);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.1.extend_from_slice(bytes);
    }
}

/// False if it has no trees.
fn visit(value: &Value, mut visitor: impl Visit) -> bool {
    match value {
        Value::Hash(Hash(Form::Tree(large))) => {
            visitor.tree(&large.tree);
            match large.beside.as_deref().map(FieldExpiries::as_sorted_set) {
                None => visitor.bytes(&[NONE]),
                Some(SortedSet(sorted_set::Form::Tree(trees))) => {
                    visitor.bytes(&[TREES]);
                    visitor.tree(&trees.by_score);
                    visitor.tree(&trees.members);
                }
                Some(packed @ SortedSet(sorted_set::Form::Packed(_))) => {
                    let mut bytes = vec![PACKED];
                    Value::SortedSet(packed.clone()).put(&mut bytes);
                    visitor.bytes(&bytes);
                }
            }
        }
        Value::List(List(list::Form::Tree(tree))) => visitor.tree(tree),
        Value::Set(Set(Form::Tree(large))) => visitor.tree(&large.tree),
        Value::SortedSet(SortedSet(sorted_set::Form::Tree(trees))) => {
            visitor.tree(&trees.by_score);
            visitor.tree(&trees.members);
        }
        Value::Stream(Stream(state)) => {
            let State { entries, records, index, .. } = &**state;
            let mut numbers = Vec::new();
            put_string(&mut numbers, &state.numbers_encoded());
            visitor.bytes(&numbers);
            visitor.tree(entries);
            visitor.tree(records);
            visitor.tree(index);
        }
        Value::Hash(Hash(Form::Packed(_)))
        | Value::List(List(list::Form::Packed(_)))
        | Value::Set(Set(Form::Packed(_)))
        | Value::SortedSet(SortedSet(sorted_set::Form::Packed(_)))
        | Value::String(_) => return false,
    }
    true
}

/// Appends the paged encoding of a value that has the pages `old`, or gets some under another name. Returns the name, and what
/// becomes of the pages. `None`, and nothing is appended, if it is packed, or a string.
pub fn put_paged(
    value: &Value,
    old: Option<&Paged>,
    page_set: impl FnOnce() -> u64,
    out: &mut Vec<u8>,
) -> Option<(u64, Saved)> {
    let mut saver = Saver::new(old.map(|old| old.source.clone()), old.map_or(0, |old| old.head.next));
    if !visit(value, &mut saver) {
        return None;
    }
    let page_set = old.map_or_else(page_set, |old| old.head.page_set);
    let mut trees = Vec::new();
    visit(value, (&mut saver, &mut trees));
    let saved = saver.finish();
    out.extend_from_slice(&[value.kind().tag(), form_tag::PAGED]);
    value.moments().put(out);
    put_varint(out, page_set);
    put_varint(out, saved.next);
    out.extend_from_slice(&trees);
    Some((page_set, saved))
}

/// The value of a paged encoding, whose pages are these. None of them is looked at.
///
/// # Errors
/// [`InvalidValue`] if the bytes are none.
pub fn take_paged(mut input: &[u8], source: &Source) -> Result<Value, InvalidValue> {
    let (kind, _) = take_head(&mut input)?;
    let rest = &mut input;
    let value = match kind {
        Kind::Hash => {
            let tree = take_tree(rest, source)?;
            let expiries = match take_u8(rest)? {
                NONE => None,
                PACKED => match Value::take(rest)? {
                    Value::SortedSet(set) => Some(set),
                    _ => return Err(InvalidValue::Expiry),
                },
                TREES => Some(take_sorted_set(rest, source)?),
                other => return Err(InvalidValue::Form(other)),
            };
            let beside = expiries.map(|set| Box::new(FieldExpiries::of_sorted_set(set)));
            Value::Hash(Hash(Form::Tree(Box::new(Large { tree, beside }))))
        }
        Kind::List => Value::List(List(list::Form::Tree(Box::new(take_tree(rest, source)?)))),
        Kind::Set => Value::Set(Set(Form::Tree(Box::new(Large::new(take_tree(rest, source)?))))),
        Kind::SortedSet => Value::SortedSet(take_sorted_set(rest, source)?),
        Kind::Stream => {
            let numbers = take_string(rest, VALUE_BYTES_MAX)?;
            let entries = take_tree(rest, source)?;
            let records = (take_tree(rest, source)?, take_tree(rest, source)?);
            Value::Stream(Stream::of_trees(numbers, entries, records)?)
        }
        Kind::String => return Err(InvalidValue::Kind(kind.tag())),
    };
    if rest.is_empty() { Ok(value) } else { Err(InvalidValue::Truncated) }
}

fn take_tree<O: Order>(input: &mut &[u8], source: &Source) -> Result<Tree<O>, InvalidValue> {
    Tree::of_pages(input, source).ok_or(InvalidValue::Truncated)
}

fn take_sorted_set(input: &mut &[u8], source: &Source) -> Result<SortedSet, InvalidValue> {
    let (by_score, members) = (take_tree(input, source)?, take_tree(input, source)?);
    Ok(SortedSet(sorted_set::Form::Tree(Box::new(Trees { by_score, members }))))
}
