//! The score tree against a sorted vector.

use super::common::{assert_equal, bytes, ranks, removal_percent};
use syros_tree::{Builder, ByScore, Edge, Score, Scores};
use syros_types::Prng;

type Place = (Score, Vec<u8>);
type Model = Vec<Place>;

fn score(prng: &mut Prng) -> Score {
    let value = match prng.below(10) {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        2 => 0.0,
        3 => -0.0,
        4 => f64::MIN_POSITIVE,
        5 => prng.next_u64() as f64 - 1e19,
        _ => prng.below(40) as f64 / 4.0 - 5.0,
    };
    Score::new(value).unwrap()
}

fn member(prng: &mut Prng) -> Vec<u8> {
    match prng.below(4) {
        0 => bytes(prng),
        1 => [vec![b'm'; 200], vec![prng.below(256) as u8; prng.below(3) as usize]].concat(),
        _ => prng.below(300).to_string().into_bytes(),
    }
}

fn compare(tree: &Scores, model: &Model) {
    assert_equal(tree, model, |(score, member)| (score, member.to_vec()));
}

/// The counts of what is before each kind of edge.
fn ask(tree: &Scores, model: &Model, prng: &mut Prng) {
    let place = match prng.chance(1, 2) && !model.is_empty() {
        true => model[prng.below(model.len() as u64) as usize].clone(),
        false => (score(prng), member(prng)),
    };
    let count = |is_before: &dyn Fn(&Place) -> bool| model.partition_point(is_before) as u64;
    let (score, member) = (place.0, place.1.as_slice());
    assert_eq!(tree.count_before(Edge::Before(score)), count(&|other| other.0 < score));
    assert_eq!(tree.count_before(Edge::After(score)), count(&|other| other.0 <= score));
    assert_eq!(tree.count_before(Edge::At(score, member)), count(&|other| *other < place));
    assert_eq!(tree.count_before(Edge::Behind(score, member)), count(&|other| *other <= place));
    assert_eq!(tree.rank_of(score, member), model.binary_search(&place).ok().map(|rank| rank as u64));
}

fn run(seed: u64, steps: u64) {
    let mut prng = Prng::new(seed);
    let (mut tree, mut model) = (Scores::new(), Model::new());
    let mut kept = Vec::new();
    let equal_scores = prng.chance(1, 4);
    for step in 0..steps {
        let place = match prng.chance(1, 2) && !model.is_empty() {
            true => model[prng.below(model.len() as u64) as usize].clone(),
            false if equal_scores => (Score::new(1.0).unwrap(), member(&mut prng)),
            false => (score(&mut prng), member(&mut prng)),
        };
        let found = model.binary_search(&place);
        if prng.chance(removal_percent(step), 100) {
            assert_eq!(tree.remove(place.0, &place.1), found.is_ok());
            found.map(|index| model.remove(index)).ok();
        } else {
            assert_eq!(tree.insert(place.0, &place.1), found.is_err());
            if let Err(index) = found {
                model.insert(index, place);
            }
        }
        ask(&tree, &model, &mut prng);
        if step % 16 == 0 || model.len() < 20 {
            compare(&tree, &model);
        } else {
            assert_eq!(tree.check(), Ok(()));
        }
        match prng.below(60) {
            0 => kept.push((tree.clone(), model.clone())),
            1 => {
                let range = ranks(&mut prng, tree.len());
                drop(tree.remove_range(range.clone()));
                let mut rank = 0;
                model.retain(|_| {
                    rank += 1;
                    !range.contains(&(rank - 1))
                });
            }
            2 => {
                let popped = tree.pop_first(|(score, member)| (score, member.to_vec()));
                assert_eq!(popped, (!model.is_empty()).then(|| model.remove(0)));
            }
            3 => {
                let popped = tree.pop_last(|(score, member)| (score, member.to_vec()));
                assert_eq!(popped, model.pop());
            }
            _ => {}
        }
    }
    compare(&tree, &model);
    let mut builder = Builder::<ByScore>::new();
    for (score, member) in &tree {
        builder.push(&Scores::draft(score, member)).unwrap();
    }
    compare(&builder.finish(), &model);
    for (other, its_model) in kept {
        compare(&other, &its_model);
    }
}

#[test]
fn a_score_tree_is_a_sorted_vector() {
    for seed in 0..60 {
        run(seed, 1000);
    }
}

#[test]
fn minus_zero_equals_zero_and_stays_what_it_is() {
    let mut tree = Scores::new();
    let (minus, plus) = (Score::new(-0.0).unwrap(), Score::new(0.0).unwrap());
    assert!(tree.insert(minus, b"b") && tree.insert(plus, b"a") && tree.insert(plus, b"c"));
    assert!(!tree.insert(plus, b"b"));
    let found: Vec<_> = tree.iter().map(|(score, member)| (score.value().to_bits(), member)).collect();
    assert_eq!(found, [(0, &b"a"[..]), (1 << 63, b"b"), (0, b"c")]);
    assert_eq!(tree.rank_of(plus, b"b"), Some(1));
    assert!(tree.remove(plus, b"b"));
    assert!(Score::new(f64::NAN).is_none());
    assert!(Score::LEAST < minus && plus < Score::GREATEST);
}

#[test]
fn a_large_one_with_one_score_is_in_the_order_of_bytes() {
    let mut prng = Prng::new(9);
    let one = Score::new(1.0).unwrap();
    let mut tree = Scores::new();
    let mut model = std::collections::BTreeSet::new();
    for _ in 0..100_000 {
        let member = format!("member:{:08}", prng.below(150_000)).into_bytes();
        assert_eq!(tree.insert(one, &member), model.insert(member));
    }
    let model: Model = model.into_iter().map(|member| (one, member)).collect();
    compare(&tree, &model);
    let from = b"member:00050000";
    let rank = tree.count_before(Edge::Behind(one, from));
    let expected = model.partition_point(|place| place.1.as_slice() <= &from[..]);
    assert!(tree.range(rank..).map(|item| item.1).eq(model[expected..].iter().map(|place| &place.1[..])));
}
