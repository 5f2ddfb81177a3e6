//! Nanoseconds and bytes per element of the trees, beside the collections of the standard library.
//!
//! `cargo bench -p syros-tree` for 10^3 and 10^6 elements; `cargo bench -p syros-tree -- 10000000 [name]` for others.
//! Each collection has a process of its own, and memory is what the system gave that process: with what the allocator
//! adds, which a sum of sizes would not have.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};
use syros_tree::{Builder, ByHash, Edge, List, Log, Map, Order, Pairs, Score, Scores, Tree};
use syros_types::{Prng, mix};

/// How often a collection of few elements is filled, to have a time that can be measured.
const OPERATIONS_MIN: u64 = 1_000_000;

const NAMES: [&str; 9] = [
    "map: tree",
    "map: HashMap",
    "map: BTreeMap",
    "sorted set: trees",
    "sorted set: BTreeSet, HashMap",
    "list: tree",
    "list: VecDeque",
    "log: tree",
    "log: BTreeMap",
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [child, name, count] = &words[..]
        && child == "child"
    {
        return measure(name, count.parse().expect("a number of elements"));
    }
    let mut counts: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if counts.is_empty() {
        counts = vec![1000, 1_000_000];
    }
    let wanted = words.iter().find(|word| word.parse::<u64>().is_err());
    for count in counts {
        for name in NAMES.iter().filter(|name| wanted.is_none_or(|wanted| name.contains(wanted.as_str()))) {
            let itself = std::env::current_exe().expect("a program knows its path");
            let mut child = Command::new(itself);
            let status = child.args(["child", name, &count.to_string()]).status().expect("it starts");
            assert!(status.success(), "{name}");
        }
    }
}

fn measure(name: &str, count: u64) {
    println!("\n{name}, {count} elements");
    match name {
        "map: tree" => map_tree(count),
        "map: HashMap" => hash_map(count),
        "map: BTreeMap" => b_tree_map(count),
        "sorted set: trees" => sorted_trees(count),
        "sorted set: BTreeSet, HashMap" => sorted_std(count),
        "list: tree" => list_tree(count),
        "list: VecDeque" => list_std(count),
        "log: tree" => log_tree(count),
        _ => log_std(count),
    }
}

/// Bytes of memory that the system has given this process.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    (pages * 4096) as f64
}

/// Ten bytes that differ for each number.
fn key(number: u64) -> [u8; 10] {
    let mut key = [b'k'; 10];
    key[..8].copy_from_slice(&mix(number).to_le_bytes());
    key
}

/// Twelve bytes that differ for each number.
fn member(number: u64) -> [u8; 12] {
    let mut member = [b'm'; 12];
    member[..8].copy_from_slice(&mix(number).to_le_bytes());
    member
}

fn score(number: u64) -> Score {
    Score::new(mix(number ^ 0x5555) as f64).expect("an integer is no NaN")
}

/// Time that this thread has had a processor for: other programs on the machine do not make it longer. The kernel
/// counts it when a tick comes, so it is good for many milliseconds only.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0))
}

/// How long single steps take. The longest of a million are those in which another program had the processor, so
/// what is told is what all but a few keep within.
#[derive(Default)]
struct Steps {
    /// By the logarithm of their length, in sixteenths.
    counts: BTreeMap<u32, u64>,
    longest: Duration,
}

impl Steps {
    fn add(&mut self, step: Duration) {
        self.longest = self.longest.max(step);
        let class = (step.as_nanos().max(1) as f64).log2() * 16.0;
        *self.counts.entry(class as u32).or_default() += 1;
    }

    fn print(&self, what: &str) {
        let total: u64 = self.counts.values().sum();
        for (name, few) in [("99 % of ", total / 100), ("99.99 % of ", total / 10_000)] {
            let mut above = 0;
            let within = self.counts.iter().rev().find(|(_, count)| {
                above += **count;
                above > few
            });
            let within = within.map_or(0.0, |(class, _)| (f64::from(*class + 1) / 16.0).exp2());
            println!("  {:<40} {:>9.1} µs", [name, what].concat(), within / 1000.0);
        }
        println!(
            "  {:<40} {:>9.1} µs",
            ["longest of ", what].concat(),
            self.longest.as_nanos() as f64 / 1000.0
        );
    }
}

fn row(what: &str, elapsed: Duration, operations: u64) {
    println!("  {what:<40} {:>9.1} ns", elapsed.as_nanos() as f64 / operations as f64);
}

/// Fills collections of `count` elements until enough has been done, and returns the last one. The memory and the
/// longest step are those of another one.
fn fill<T>(count: u64, new: impl Fn() -> T, mut insert: impl FnMut(&mut T, u64)) -> T {
    let before = resident();
    let (mut collection, mut steps) = (new(), Steps::default());
    for number in 0..count {
        let start = Instant::now();
        insert(&mut collection, number);
        steps.add(start.elapsed());
    }
    if count >= 100_000 {
        println!("  {:<40} {:>9.1} bytes", "memory per element", (resident() - before) / count as f64);
    }
    steps.print("insertions");
    let start = Instant::now();
    drop(collection);
    row("drop", start.elapsed(), count);
    let rounds = (OPERATIONS_MIN / count).max(1);
    let mut collection = new();
    let start = processor_time();
    for _ in 0..rounds {
        collection = new();
        for number in 0..count {
            insert(&mut collection, number);
        }
    }
    row("insert", processor_time() - start, count * rounds);
    collection
}

/// Does something with elements that are there, in random order.
fn each(what: &str, count: u64, mut operation: impl FnMut(u64)) {
    let mut prng = Prng::new(1);
    let start = processor_time();
    for _ in 0..OPERATIONS_MIN {
        operation(prng.below(count));
    }
    row(what, processor_time() - start, OPERATIONS_MIN);
}

/// Does something with half of the elements, each once.
fn half(what: &str, count: u64, mut operation: impl FnMut(u64)) {
    let start = processor_time();
    for number in (0..count).step_by(2) {
        operation(number);
    }
    row(what, processor_time() - start, count.div_ceil(2));
}

/// What trees of every order can do.
fn of_trees<O: Order>(tree: &Tree<O>, mut update: impl FnMut(&mut Tree<O>, u64)) {
    println!("  {:<40} {:>9.1} bytes", "bytes() per element", tree.bytes() as f64 / tree.len() as f64);
    let count = tree.len();
    each("nth", count, |rank| {
        black_box(tree.nth(rank));
    });
    let start = processor_time();
    for item in tree {
        black_box(item);
    }
    row("iterate", processor_time() - start, count);
    let start = processor_time();
    for item in tree.iter().rev() {
        black_box(item);
    }
    row("iterate backwards", processor_time() - start, count);
    let mut prng = Prng::new(2);
    let mut copy = tree.clone();
    let mut steps = Steps::default();
    let start = Instant::now();
    let mut other = copy.clone();
    row("clone", start.elapsed(), 1);
    let start = Instant::now();
    for _ in 0..1000 {
        let number = prng.below(count);
        let start = Instant::now();
        update(&mut other, number);
        steps.add(start.elapsed());
    }
    row("update, the first 1000 behind a clone", start.elapsed(), 1000);
    steps.print("these updates");
    let start = Instant::now();
    drop(other);
    row("drop of that clone, per update", start.elapsed(), 1000);
    for _ in 0..1000 {
        update(&mut copy, prng.below(count));
    }
    let start = Instant::now();
    drop(copy.remove_range(count / 3..count / 3 * 2));
    row("remove_range of a third, shared", start.elapsed(), 1);
}

/// Gives a tree back in steps.
fn dismantle<O: Order>(tree: Tree<O>) {
    let count = tree.len().max(1);
    let mut dismantle = tree.dismantle();
    let mut steps = Steps::default();
    let start = Instant::now();
    loop {
        let start = Instant::now();
        let goes_on = dismantle.step(100);
        steps.add(start.elapsed());
        if !goes_on {
            break;
        }
    }
    row("dismantle", start.elapsed(), count);
    steps.print("steps of 100 nodes");
}

fn map_tree(count: u64) {
    let mut tree = fill(count, <Map>::new, |tree, number| {
        tree.insert(&key(number), &key(number));
    });
    each("lookup", count, |number| {
        black_box(tree.get(&key(number)));
    });
    each("lookup of what is not there", count, |number| {
        black_box(tree.get(&key(number + count)));
    });
    each("overwrite", count, |number| {
        tree.insert(&key(number), &key(number + 1));
    });
    each("rank", count, |number| {
        black_box(tree.count_before(<Map>::position(&key(number))));
    });
    of_trees(&tree, |tree, number| {
        tree.insert(&key(number), &key(number + 1));
    });
    let start = processor_time();
    let mut builder = Builder::<ByHash<Pairs>>::new();
    for (key, value) in &tree {
        builder.push(&<Map>::draft(key, value)).expect("a tree is in order");
    }
    let built = builder.finish();
    row("build in order", processor_time() - start, count);
    println!("  {:<40} {:>9.1} bytes", "bytes() per element", built.bytes() as f64 / count as f64);
    drop(built);
    half("remove, half of all", count, |number| {
        tree.remove(&key(number));
    });
    dismantle(tree);
}

fn hash_map(count: u64) {
    let mut map = fill(count, HashMap::<Vec<u8>, Vec<u8>>::new, |map, number| {
        map.insert(key(number).to_vec(), key(number).to_vec());
    });
    each("lookup", count, |number| {
        black_box(map.get(&key(number)[..]));
    });
    each("overwrite", count, |number| {
        map.insert(key(number).to_vec(), key(number + 1).to_vec());
    });
    half("remove, half of all", count, |number| {
        map.remove(&key(number)[..]);
    });
}

fn b_tree_map(count: u64) {
    let mut map = fill(count, BTreeMap::<Vec<u8>, Vec<u8>>::new, |map, number| {
        map.insert(key(number).to_vec(), key(number).to_vec());
    });
    each("lookup", count, |number| {
        black_box(map.get(&key(number)[..]));
    });
    half("remove, half of all", count, |number| {
        map.remove(&key(number)[..]);
    });
}

/// A sorted set as its user makes it.
#[derive(Default, Clone)]
struct Sorted {
    scores: Scores,
    members: Map,
}

impl Sorted {
    fn add(&mut self, score: Score, member: &[u8]) {
        let mut old = None;
        self.members.insert_with(member, &score.value().to_le_bytes(), |bytes| {
            old = bytes.try_into().ok().map(f64::from_le_bytes).and_then(Score::new);
        });
        if let Some(old) = old {
            self.scores.remove(old, member);
        }
        self.scores.insert(score, member);
    }

    fn remove(&mut self, member: &[u8]) {
        let mut old = None;
        self.members.remove_with(member, |bytes| {
            old = bytes.try_into().ok().map(f64::from_le_bytes).and_then(Score::new);
        });
        if let Some(old) = old {
            self.scores.remove(old, member);
        }
    }
}

fn sorted_trees(count: u64) {
    let mut set = fill(count, Sorted::default, |set, number| set.add(score(number), &member(number)));
    println!(
        "  {:<40} {:>9.1} bytes",
        "bytes() per element, both",
        (set.scores.bytes() + set.members.bytes()) as f64 / count as f64
    );
    each("score of a member", count, |number| {
        black_box(set.members.get(&member(number)));
    });
    each("rank of a member with its score", count, |number| {
        black_box(set.scores.rank_of(score(number), &member(number)));
    });
    each("count before a score", count, |number| {
        black_box(set.scores.count_before(Edge::Before(score(number))));
    });
    each("change of a score", count, |number| set.add(score(number + 7), &member(number)));
    of_trees(&set.scores, |tree, number| {
        tree.insert(score(number + 5), &member(number));
    });
    let pops = count / 4;
    let start = processor_time();
    for _ in 0..pops {
        set.scores.pop_first(|(score, member)| {
            black_box(score);
            set.members.remove(member);
        });
    }
    row("pop of the least", processor_time() - start, pops);
    half("remove, half of all", count, |number| set.remove(&member(number)));
    dismantle(set.scores);
    equal_scores(count);
}

/// Members that share one score, and the beginnings of their names.
fn equal_scores(count: u64) {
    let one = Score::new(1.0).expect("1 is no NaN");
    let mut tree = Scores::new();
    let start = processor_time();
    for number in 0..count {
        tree.insert(one, format!("user:{:012}", mix(number) % 1_000_000_000_000).as_bytes());
    }
    row("insert, equal scores, text", processor_time() - start, count);
    println!("  {:<40} {:>9.1} bytes", "bytes() per element", tree.bytes() as f64 / count as f64);
    each("rank, equal scores, text", count, |number| {
        let member = format!("user:{:012}", mix(number) % 1_000_000_000_000);
        black_box(tree.rank_of(one, member.as_bytes()));
    });
}

fn sorted_std(count: u64) {
    type Both = (BTreeSet<(Score, Vec<u8>)>, HashMap<Vec<u8>, Score>);
    let add = |(set, map): &mut Both, score: Score, member: &[u8]| {
        if let Some(old) = map.insert(member.to_vec(), score) {
            set.remove(&(old, member.to_vec()));
        }
        set.insert((score, member.to_vec()));
    };
    let mut both = fill(count, Both::default, |both, number| add(both, score(number), &member(number)));
    each("score of a member", count, |number| {
        black_box(both.1.get(&member(number)[..]));
    });
    each("change of a score", count, |number| add(&mut both, score(number + 7), &member(number)));
    let pops = count / 4;
    let start = processor_time();
    for _ in 0..pops {
        if let Some((_, member)) = both.0.pop_first() {
            both.1.remove(&member);
        }
    }
    row("pop of the least", processor_time() - start, pops);
}

fn list_tree(count: u64) {
    let mut list = fill(count, List::new, |list, number| list.push_back(&key(number)));
    of_trees(&list, |list, number| {
        list.set(number, b"0123456789");
    });
    each("set", count, |number| {
        list.set(number, &key(number));
    });
    each("insert in the middle", count, |number| {
        list.insert(number, &key(number));
    });
    let added = list.len() - count;
    each("remove in the middle", count, |number| {
        list.remove_at(number, |bytes| {
            black_box(bytes);
        });
    });
    assert_eq!(added, OPERATIONS_MIN);
    each("push at the front", count, |number| list.push_front(&key(number)));
    each("pop at the front", count, |_| {
        list.pop_first(|bytes| {
            black_box(bytes);
        });
    });
    each("push at the back, pop at the front", count, |number| {
        list.push_back(&key(number));
        list.pop_first(|bytes| {
            black_box(bytes);
        });
    });
    dismantle(list);
}

fn list_std(count: u64) {
    let mut list = fill(count, VecDeque::<Vec<u8>>::new, |list, number| list.push_back(key(number).to_vec()));
    each("nth", count, |rank| {
        black_box(list.get(rank as usize));
    });
    each("set", count, |number| list[number as usize] = key(number).to_vec());
    each("push at the back, pop at the front", count, |number| {
        list.push_back(key(number).to_vec());
        black_box(list.pop_front());
    });
}

fn log_tree(count: u64) {
    let id = |number: u64| u128::from(1_700_000_000_000 + number / 3) << 64 | u128::from(number % 3);
    let log = fill(count, Log::new, |log, number| {
        log.insert(id(number), &key(number));
    });
    each("lookup", count, |number| {
        black_box(log.get(id(number)));
    });
    of_trees(&log, |log, number| {
        log.insert(id(number), b"0123456789");
    });
    dismantle(log);
}

fn log_std(count: u64) {
    let id = |number: u64| u128::from(1_700_000_000_000 + number / 3) << 64 | u128::from(number % 3);
    let log = fill(count, BTreeMap::<u128, Vec<u8>>::new, |log, number| {
        log.insert(id(number), key(number).to_vec());
    });
    each("lookup", count, |number| {
        black_box(log.get(&id(number)));
    });
}
