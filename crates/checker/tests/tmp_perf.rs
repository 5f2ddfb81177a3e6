mod support;
use support::*;
use std::time::Instant;
use syros_checker::linearizability::*;
#[test]
fn perf() {
    for (operations, clients, keys, unknown_percent) in
        [(200, 20, 3, 5), (600, 12, 6, 3),(600, 12, 6, 0), (1000, 20, 10, 2), (2000, 20, 10, 10), (2000, 20, 10, 0), (500, 20, 1, 8), (500,20,1,0)]
    { for joined in [false, true] {
        let mut out = vec![]; 
        for seed in 0..10 {
            let shape = Shape { operations, clients, keys, unknown_percent, joined, hot_percent: 20, bug: Bug::None, bug_rarity: 1 };
            let h = make_up(shape, seed);
            let mut budget = 100; let t = Instant::now();
            loop { match check_within(&h, budget) { Verdict::Undecided{..} if budget < 3_000_000 => budget *= 4, Verdict::Undecided{..} => { budget = 0; break }, Verdict::Linearizable => break, v => panic!("{v:?}") } }
            let t=t.elapsed().as_millis();
            out.push(format!("{budget}({t}ms)"));
        }
        println!("{operations} ops {clients} clients {keys} keys {unknown_percent}% joined {joined}: {}", out.join(" "));
    }}
}
