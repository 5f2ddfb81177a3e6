//! LCS, from the pairs of equal bytes.

use super::{Twin, error};
use syros_commands::Reply;
use syros_commands::families::{Lcs, LcsPart};

/// A pair of equal bytes, by their indices.
type Pair = (usize, usize);

/// The pairs that Redis chooses, from the last to the first.
fn pairs(first: &[u8], second: &[u8]) -> Vec<Pair> {
    // How long the longest common subsequences of two beginnings are.
    let mut lengths = vec![vec![0; second.len() + 1]; first.len() + 1];
    for i in 1..=first.len() {
        for j in 1..=second.len() {
            lengths[i][j] = if first[i - 1] == second[j - 1] {
                lengths[i - 1][j - 1] + 1
            } else {
                lengths[i - 1][j].max(lengths[i][j - 1])
            };
        }
    }
    let (mut pairs, mut i, mut j) = (Vec::<Pair>::new(), first.len(), second.len());
    while i > 0 && j > 0 {
        if first[i - 1] == second[j - 1] {
            (i, j) = (i - 1, j - 1);
            pairs.push((i, j));
        } else if lengths[i - 1][j] > lengths[i][j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    pairs
}

fn range(last: usize, length: usize) -> Reply {
    Reply::Array([last + 1 - length, last].map(|index| Reply::Integer(index as i64)).to_vec())
}

impl Twin {
    /// What LCS answers.
    pub(super) fn lcs(&self, Lcs { first, second, part }: Lcs<'_>) -> Reply {
        if [first, second].iter().any(|key| self.is_collection(key)) {
            return error("ERR The specified keys must contain string values");
        }
        let [first, second] = [first, second].map(|key| self.value(key).cloned().unwrap_or_default());
        if (first.len() + 1) * (second.len() + 1) > 4 << 20 {
            return error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
        }
        let pairs = pairs(&first, &second);
        let count = Reply::Integer(pairs.len() as i64);
        let LcsPart::Matches { length_min, with_length } = part else {
            let text = pairs.iter().rev().map(|(index, _)| first[*index]).collect();
            return if part == LcsPart::Length { count } else { Reply::Bulk(text) };
        };
        let runs = pairs.chunk_by(|(i, j), (i_before, j_before)| (i_before + 1, j_before + 1) == (*i, *j));
        let matches = runs.filter(|run| run.len() as u64 >= length_min).map(|run| {
            let mut parts = vec![range(run[0].0, run.len()), range(run[0].1, run.len())];
            if with_length {
                parts.push(Reply::Integer(run.len() as i64));
            }
            Reply::Array(parts)
        });
        let name = |name: &str| Reply::Bulk(name.as_bytes().to_vec());
        Reply::Map(vec![(name("matches"), Reply::Array(matches.collect())), (name("len"), count)])
    }
}
