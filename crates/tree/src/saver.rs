//! Trees that are written as pages, and read again.

use crate::node::{Child, Page};
use crate::order::Order;
use crate::page::{About, HEIGHT_MAX, Source, Subtree, put_separator};
use crate::tree::Tree;
use std::sync::Arc;
use syros_types::varint::{put_varint, take_varint};

/// What has to be done so that trees can be read from pages again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The pages to be written, with their numbers.
    pub written: Vec<(u64, Vec<u8>)>,
    /// The pages to be deleted.
    pub deleted: Vec<u64>,
    /// Pages that are to be deleted with all below them, which nobody has looked at.
    pub dead: Vec<Subtree>,
    /// No page has this number or a greater one.
    pub next: u64,
}

/// Writes the trees of one value as pages. Nodes that are pages of the value already stay where they are, so an update of one
/// element costs one page of each level.
///
/// All trees have to be [noted](Self::keep) before the first one is [put](Self::put). Whatever was a page of the value and is
/// in none of them is given back.
#[derive(Debug)]
pub struct Saver {
    source: Option<Source>,
    kept: Vec<u64>,
    /// Pages that are not needed any more; `None` before the first tree is put.
    free: Option<Vec<u64>>,
    saved: Saved,
}

impl Saver {
    /// Writes a value that was read from these pages, if from any. No page of it has the number `next`, or a greater one.
    #[must_use]
    pub fn new(source: Option<Source>, next: u64) -> Self {
        Self { source, kept: Vec::new(), free: None, saved: Saved { next, ..Saved::default() } }
    }

    /// Notes which pages a tree has.
    pub fn keep<O: Order>(&mut self, tree: &Tree<O>) {
        if let Some(root) = &tree.root {
            self.keep_below(root);
        }
    }

    fn keep_below<O: Order>(&mut self, node: &Child<O>) {
        match node {
            Child::Leaf(_) => {}
            Child::Inner(inner) => inner.children.iter().for_each(|child| self.keep_below(child)),
            Child::Paged(page) => {
                // What is below a page of another value belongs to that one, too.
                if page.is_of(self.source.as_ref()) {
                    self.kept.push(page.about.number);
                    if let Some(node) = page.fetched() {
                        self.keep_below(node);
                    }
                }
            }
        }
    }

    /// Appends a tree to `out`, and notes which pages are to be written for it.
    pub fn put<O: Order>(&mut self, tree: &Tree<O>, out: &mut Vec<u8>) {
        self.settle();
        put_varint(out, tree.count);
        if let Some(root) = &tree.root {
            let about = self.write(root);
            put_varint(out, u64::from(about.height));
            about.put(out);
        }
    }

    /// What is to be done. If no tree was put, all pages of the value are given back.
    #[must_use]
    pub fn finish(mut self) -> Saved {
        self.settle();
        self.saved.deleted = self.free.unwrap_or_default();
        self.saved
    }

    /// Finds out which pages are left, unless that is known.
    fn settle(&mut self) {
        if let (None, Some(source)) = (&self.free, &self.source) {
            let (free, dead) = source.left_by(&mut self.kept);
            (self.free, self.saved.dead) = (Some(free), dead);
        }
    }

    fn write<O: Order>(&mut self, node: &Child<O>) -> About {
        let (height, bytes) = match node {
            Child::Paged(page) if page.is_of(self.source.as_ref()) => return page.about,
            Child::Paged(page) => return self.write(page.node()),
            Child::Leaf(block) => (0, block.used_bytes().to_vec()),
            Child::Inner(inner) => {
                let mut height = 0;
                let mut bytes = Vec::with_capacity(inner.len() * 32);
                put_varint(&mut bytes, inner.len() as u64);
                for child in &inner.children {
                    let about = self.write(child);
                    height = about.height + 1;
                    about.put(&mut bytes);
                }
                for index in 0..inner.len() {
                    put_separator::<O>(&inner.separators.get(index), &mut bytes);
                }
                (height, bytes)
            }
        };
        let number = self.number();
        self.saved.written.push((number, bytes));
        About { number, height, count: node.count(), size: node.size(), extent: node.extent() }
    }

    /// A number for a page: of one that is not needed any more, so that it need not be deleted.
    fn number(&mut self) -> u64 {
        if let Some(number) = self.free.as_mut().and_then(Vec::pop) {
            return number;
        }
        let next = self.saved.next + 1;
        core::mem::replace(&mut self.saved.next, next)
    }
}

impl<O: Order> Tree<O> {
    /// Takes a tree off the front of `input`, whose pages are these. `None` if there is none.
    pub fn of_pages(input: &mut &[u8], source: &Source) -> Option<Self> {
        let count = take_varint(input).ok()?;
        if count == 0 {
            return Some(Self::new());
        }
        let height = u8::try_from(take_varint(input).ok()?).ok().filter(|height| *height <= HEIGHT_MAX)?;
        let about = About::take(height, input)?;
        if about.count != count {
            return None;
        }
        source.knows(about.number, height);
        Some(Self { root: Some(Child::Paged(Arc::new(Page::new(source.clone(), about)))), count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByPosition, ByScore, Edge, List, Map, Pages, Score, Scores};
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use syros_types::Prng;

    /// Pages in memory.
    #[derive(Clone, Default)]
    struct Store(Arc<Mutex<Inside>>);

    #[derive(Default)]
    struct Inside {
        pages: BTreeMap<u64, Vec<u8>>,
        reads: usize,
        next: u64,
    }

    impl Pages for Store {
        fn read(&self, number: u64, see: &mut dyn FnMut(&[u8])) {
            let mut inside = self.0.lock().unwrap();
            inside.reads += 1;
            let page = inside.pages.get(&number).cloned();
            drop(inside);
            see(&page.unwrap_or_else(|| panic!("page {number} is not there")));
        }

        fn damaged(&self, number: u64) -> ! {
            panic!("page {number} is damaged")
        }
    }

    impl Store {
        fn source(&self) -> Source {
            Source::new(Box::new(self.clone()))
        }

        fn saver(&self, source: Option<Source>) -> Saver {
            Saver::new(source, self.0.lock().unwrap().next)
        }

        fn reads(&self) -> usize {
            core::mem::take(&mut self.0.lock().unwrap().reads)
        }

        fn len(&self) -> usize {
            self.0.lock().unwrap().pages.len()
        }

        /// Does what is to be done, and whether each page of it was there or not, as it had to be.
        fn apply(&self, saved: Saved) {
            let mut inside = self.0.lock().unwrap();
            inside.next = saved.next;
            for (number, page) in saved.written {
                assert!(number < saved.next);
                inside.pages.insert(number, page);
            }
            for number in saved.deleted {
                inside.pages.remove(&number).expect("it is there");
            }
            let mut dead = saved.dead;
            while let Some(tree) = dead.pop() {
                let page = inside.pages.remove(&tree.number).expect("it is there");
                if tree.height > 0 {
                    dead.extend(tree.children(&page).expect("an inner page"));
                }
            }
        }

        /// Saves two trees of one value, and reads them again.
        fn again<A: Order, B: Order>(
            &self,
            source: &Source,
            trees: (&Tree<A>, &Tree<B>),
        ) -> (Source, Tree<A>, Tree<B>) {
            let mut saver = self.saver(Some(source.clone()));
            saver.keep(trees.0);
            saver.keep(trees.1);
            let mut head = Vec::new();
            saver.put(trees.0, &mut head);
            saver.put(trees.1, &mut head);
            self.apply(saver.finish());
            let source = self.source();
            let mut rest = head.as_slice();
            let (a, b) =
                (Tree::of_pages(&mut rest, &source).unwrap(), Tree::of_pages(&mut rest, &source).unwrap());
            assert!(rest.is_empty());
            (source, a, b)
        }
    }

    /// Number of nodes of a tree, with all that lie elsewhere.
    fn nodes<O: Order>(tree: &Tree<O>) -> usize {
        fn below<O: Order>(node: &Child<O>) -> usize {
            match node {
                Child::Leaf(_) => 1,
                Child::Inner(inner) => 1 + inner.children.iter().map(below).sum::<usize>(),
                Child::Paged(page) => below(page.node()),
            }
        }
        tree.root.as_ref().map_or(0, below)
    }

    fn element(prng: &mut Prng) -> Vec<u8> {
        let length = if prng.below(20) == 0 { prng.below(3000) } else { prng.below(120) };
        let byte = prng.below(256) as u8;
        vec![byte; length as usize]
    }

    fn change_list(list: &mut List, seed: u64) {
        let mut prng = Prng::new(seed);
        let length = list.len();
        match prng.below(12) {
            0..5 => drop(list.insert(prng.below(length + 1), &element(&mut prng))),
            5 => list.push_back(&element(&mut prng)),
            6 => list.push_front(&element(&mut prng)),
            7 => drop(list.pop_first(|_| ())),
            8 => drop(list.set(prng.below(length + 1), &element(&mut prng))),
            9 => drop(list.remove_at(prng.below(length + 1), |_| ())),
            10 if prng.below(20) == 0 => {
                let from = prng.below(length + 1);
                drop(list.remove_range(from..from + prng.below(length + 1)));
            }
            10 => {}
            _ => {
                let clone = list.clone();
                let rest = list.split_off(prng.below(length + 1));
                match prng.below(40) {
                    0 => {}
                    1 => *list = rest,
                    _ => *list = clone,
                }
            }
        }
    }

    fn change_scores(scores: &mut Scores, seed: u64) {
        let mut prng = Prng::new(seed);
        let score = Score::new(prng.below(40) as f64).unwrap();
        let member = element(&mut prng);
        match prng.below(10) {
            0..6 => drop(scores.insert(score, &member)),
            6 => {
                let from = scores.count_before(Edge::Before(score));
                drop(scores.remove_range(from..from + prng.below(30)));
            }
            _ => drop(scores.remove_at(prng.below(scores.len() + 1), |_| ())),
        }
    }

    #[test]
    fn paged_trees_are_what_they_would_be_in_memory_and_have_no_page_too_many() {
        let mut most = 0;
        for seed in 0..60 {
            let mut prng = Prng::new(seed);
            let store = Store::default();
            let (mut list, mut scores) = (List::new(), Scores::new());
            let (mut source, mut paged, mut paged_scores) = (store.source(), List::new(), Scores::new());
            for step in 0..150 {
                for _ in 0..prng.below(if step < 20 { 120 } else { 8 }) {
                    let seed = prng.next_u64();
                    if prng.below(3) == 0 {
                        change_scores(&mut scores, seed);
                        change_scores(&mut paged_scores, seed);
                    } else {
                        change_list(&mut list, seed);
                        change_list(&mut paged, seed);
                    }
                }
                (source, paged, paged_scores) = store.again(&source, (&paged, &paged_scores));
                let mut known = 0;
                if prng.below(3) == 0 {
                    paged.check().unwrap();
                    paged_scores.check().unwrap();
                    known = nodes(&paged) + nodes(&paged_scores);
                    assert_eq!(store.len(), known, "pages of seed {seed}, step {step}");
                    assert!(paged.iter().eq(list.iter()), "seed {seed}, step {step}");
                    assert!(paged_scores.iter().eq(scores.iter()), "seed {seed}, step {step}");
                    assert_eq!((paged.bytes(), paged.element_bytes()), (list.bytes(), list.element_bytes()));
                }
                most = most.max(known);
            }
            let mut saver = store.saver(Some(source));
            saver.keep(&List::new());
            store.apply(saver.finish());
            assert_eq!(store.len(), 0, "seed {seed}");
        }
        assert!(most > 60, "{most} nodes are too few");
    }

    #[test]
    fn one_element_costs_a_page_of_each_level() {
        let store = Store::default();
        let (mut map, mut list) = (Map::<crate::KeyHash>::new(), List::new());
        for number in 0..20_000u32 {
            map.insert(&number.to_be_bytes(), b"value");
            list.push_back(&number.to_be_bytes());
        }
        let (mut source, mut map, mut list) = store.again(&store.source(), (&map, &list));
        let levels = 8;
        for number in 0..200u32 {
            store.reads();
            assert_eq!(map.get(&number.to_be_bytes()), Some(&b"value"[..]));
            assert!(store.reads() <= levels);
            map.insert(&number.to_be_bytes(), b"other");
            assert!(!map.remove(b"absent") && !list.set(1 << 40, b"absent"));
            list.set(u64::from(number) * 90, b"elem");
            assert!(store.reads() <= 3 * levels, "of both");
            let mut saver = store.saver(Some(source.clone()));
            saver.keep(&map);
            saver.keep(&list);
            let mut head = Vec::new();
            saver.put(&map, &mut head);
            saver.put(&list, &mut head);
            let saved = saver.finish();
            let (written, deleted) = (saved.written.len(), saved.deleted.len());
            assert!(written <= 2 * levels && deleted == 0 && saved.dead.is_empty(), "{written} {deleted}");
            assert_eq!(saved.next, store.0.lock().unwrap().next, "pages are overwritten");
            store.apply(saved);
            source = store.source();
            let mut rest = head.as_slice();
            map = Tree::of_pages(&mut rest, &source).unwrap();
            list = Tree::of_pages(&mut rest, &source).unwrap();
        }
        drop(list.remove_range(100..19_900));
        let mut saver = store.saver(Some(source.clone()));
        saver.keep(&map);
        saver.keep(&list);
        store.reads();
        saver.put(&map, &mut Vec::new());
        saver.put(&list, &mut Vec::new());
        let saved = saver.finish();
        assert_eq!(store.reads(), 0, "nobody looks at what goes");
        assert!(!saved.dead.is_empty() && saved.written.len() < 20);
    }

    #[test]
    fn pages_of_another_value_are_copied() {
        let (from, to) = (Store::default(), Store::default());
        let mut list = List::new();
        (0..5000u32).for_each(|number| list.push_back(&number.to_be_bytes()));
        let (_, list, _) = from.again(&from.source(), (&list, &List::new()));
        let mut saver = to.saver(None);
        saver.keep(&list);
        let mut head = Vec::new();
        saver.put(&list, &mut head);
        to.apply(saver.finish());
        assert_eq!(to.len(), nodes(&list));
        let copy = Tree::<ByPosition>::of_pages(&mut head.as_slice(), &to.source()).unwrap();
        assert!(copy.check().is_ok() && copy.iter().eq(list.iter()));
    }

    #[test]
    fn damage_is_found() {
        let store = Store::default();
        let mut scores = Scores::new();
        for number in 0..3000u32 {
            scores.insert(Score::new(f64::from(number)).unwrap(), &number.to_be_bytes());
        }
        let mut saver = store.saver(None);
        saver.keep(&scores);
        let mut head = Vec::new();
        saver.put(&scores, &mut head);
        store.apply(saver.finish());
        let pages = store.0.lock().unwrap().pages.clone();
        let (mut found, mut cases) = (0, 0);
        for (number, page) in &pages {
            for cut in [0, 1, 7, page.len() / 2, page.len() - 1] {
                let source = store.source();
                store.0.lock().unwrap().pages.insert(*number, page[..cut].to_vec());
                let tree = Tree::<ByScore>::of_pages(&mut head.as_slice(), &source).unwrap();
                let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tree.iter().count()));
                cases += 1;
                found += usize::from(looked.is_err_and(|panic| {
                    panic.downcast_ref::<String>().is_some_and(|text| text.ends_with("is damaged"))
                }));
                store.0.lock().unwrap().pages.insert(*number, page.clone());
            }
        }
        assert_eq!(found, cases, "what is cut off is damaged");
        for cut in 0..head.len() {
            assert!(Tree::<ByScore>::of_pages(&mut &head[..cut], &store.source()).is_none(), "{cut}");
        }
    }
}
