//! What has to be true of every tree. Tests ask after each step.

use crate::block::{BLOCK_BYTES_MAX, Block, has_too_much_slack};
use crate::extent::Extent;
use crate::node::{CHILDREN_MAX, Child, Inner};
use crate::order::{Element, Order};
use crate::separators::Separator;
use crate::tree::Tree;
use core::fmt;

/// Something that is wrong with a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A node's number of elements is not what its parent, or the tree, says.
    Count,
    /// A node's bytes are not what its parent says.
    Bytes,
    /// An element is not greater than the one before it.
    Order,
    /// An element lies on the wrong side of a separator.
    Separator,
    /// Two leaves are not at the same distance from the root.
    Depth,
    /// A node has no elements, too many of them, or too much slack; or the root has a single child.
    Size,
    /// Neighbours should have been merged.
    Fill,
    /// The bytes of a block have not the format of one.
    Format,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "a count of elements is wrong",
            Self::Bytes => "a sum of bytes is wrong",
            Self::Order => "elements are out of order",
            Self::Separator => "an element is on the wrong side of a separator",
            Self::Depth => "leaves are at different levels",
            Self::Size => "a node is empty, too large, or needless",
            Self::Fill => "neighbours should have been merged",
            Self::Format => "a block is malformed",
        })
    }
}

impl core::error::Error for Flaw {}

impl<O: Order> Tree<O> {
    /// Looks at every element.
    ///
    /// # Errors
    /// The first flaw.
    pub fn check(&self) -> Result<(), Flaw> {
        let Some(root) = &self.root else {
            return if self.count == 0 { Ok(()) } else { Err(Flaw::Count) };
        };
        if matches!(root, Child::Inner(inner) if inner.len() == 1) {
            return Err(Flaw::Size);
        }
        let mut walk = Walk { depth: None, before: None };
        match walk.visit(root, 0, None, None)? {
            0 => Err(Flaw::Size),
            count if count == self.count => Ok(()),
            _ => Err(Flaw::Count),
        }
    }
}

/// What is known of the elements so far.
struct Walk<'a> {
    /// The level of the leaves.
    depth: Option<usize>,
    /// The last element.
    before: Option<Element<'a>>,
}

impl<'a> Walk<'a> {
    /// Looks at a node and all below it, whose elements are not before `from` and before `to`. Returns their number.
    fn visit<O: Order>(
        &mut self,
        node: &'a Child<O>,
        level: usize,
        from: Option<&Separator<O::Head>>,
        to: Option<&Separator<O::Head>>,
    ) -> Result<u64, Flaw> {
        let inner = match node {
            Child::Leaf(block) => {
                if *self.depth.get_or_insert(level) != level {
                    return Err(Flaw::Depth);
                }
                return self.visit_block(block, from, to);
            }
            Child::Inner(inner) => inner,
            Child::Paged(page) => return self.visit(page.node(), level, from, to),
        };
        check_shape(inner)?;
        let mut sum = 0;
        for (index, child) in inner.children.iter().enumerate() {
            let own = inner.separators.get(index);
            let next = (index + 1 < inner.len()).then(|| inner.separators.get(index + 1));
            let from = if index == 0 { from } else { Some(&own) };
            let count = self.visit(child, level + 1, from, next.as_ref().or(to))?;
            if count != inner.counts[index] || child.count() != count {
                return Err(Flaw::Count);
            }
            sum += count;
        }
        // Of children that are well formed.
        if inner.children.iter().map(Child::extent).sum::<Extent>() != inner.extent {
            return Err(Flaw::Bytes);
        }
        Ok(sum)
    }

    /// Looks at the elements of a leaf.
    fn visit_block<O: Order>(
        &mut self,
        block: &'a Block<O>,
        from: Option<&Separator<O::Head>>,
        to: Option<&Separator<O::Head>>,
    ) -> Result<u64, Flaw> {
        let elements = block.elements();
        check_format(block)?;
        for index in 0..elements.len() {
            let element = elements.get(index);
            if !O::is_sound(element) {
                return Err(Flaw::Format);
            }
            if self.before.is_some_and(|before| !O::is_ascending(before, element)) {
                return Err(Flaw::Order);
            }
            if from.is_some_and(|from| is_before::<O>(element, from)) {
                return Err(Flaw::Separator);
            }
            self.before = Some(element);
        }
        // An order of positions has separators that say nothing.
        if size_of::<O::Head>() > 0
            && let (Some(to), Some(last)) = (to, self.before)
            && !is_before::<O>(last, to)
        {
            return Err(Flaw::Separator);
        }
        Ok(elements.len() as u64)
    }
}

/// True if an element belongs before a separator.
fn is_before<O: Order>(element: Element<'_>, separator: &Separator<O::Head>) -> bool {
    (O::head(element), O::tail(element)) < (separator.head, separator.tail.bytes())
}

/// Looks at an inner node, but not below it.
fn check_shape<O: Order>(inner: &Inner<O>) -> Result<(), Flaw> {
    let length = inner.len();
    if length == 0
        || length > CHILDREN_MAX
        || inner.separators.len() != length
        || inner.counts.len() != length
    {
        return Err(Flaw::Size);
    }
    let is_leaf = inner.children[0].is_leaf();
    if inner.children.iter().any(|child| child.is_leaf() != is_leaf) {
        return Err(Flaw::Depth);
    }
    if inner.children.windows(2).any(|pair| pair[0].fits_with(&pair[1])) {
        return Err(Flaw::Fill);
    }
    Ok(())
}

/// Looks at how a block is laid out.
fn check_format<O: Order>(block: &Block<O>) -> Result<(), Flaw> {
    let elements = block.elements();
    let count = elements.len();
    if count == 0 || (count > 1 && block.allocated() > BLOCK_BYTES_MAX) {
        return Err(Flaw::Size);
    }
    if elements.used() > block.allocated() || elements.start(0) != 0 {
        return Err(Flaw::Format);
    }
    if has_too_much_slack(block.allocated(), elements.used()) {
        return Err(Flaw::Size);
    }
    if (0..count).any(|index| elements.start(index) > elements.start(index + 1)) {
        return Err(Flaw::Format);
    }
    Ok(())
}
