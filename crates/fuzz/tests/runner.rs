//! The runner finds a planted panic, and every target runs.

use syros_fuzz::{TARGETS, Target, fuzz};
use syros_types::Prng;
use syros_types::varint::take_varint;

/// A decoder with a bug: it believes a count, and panics on one that is larger than the input.
fn believes_a_count(mut input: &[u8]) -> bool {
    let Ok(count) = take_varint(&mut input) else { return false };
    if count > 1 << 20 {
        return false;
    }
    let elements = &input[..count as usize];
    !elements.is_empty()
}

fn seeds(_: &mut Prng) -> Vec<Vec<u8>> {
    vec![vec![3, 1, 2, 3], vec![1, 9]]
}

#[test]
fn a_planted_panic_is_found_and_comes_again() {
    let target = Target { name: "planted", run: believes_a_count, seeds };
    for seed in 0..20 {
        let failure = fuzz(&target, seed, |runs| runs < 10_000).expect_err("it panics");
        assert_eq!(failure.target, "planted");
        assert!(failure.message.contains("out of range"), "{failure}");
        assert!(std::panic::catch_unwind(|| believes_a_count(&failure.input)).is_err());
        assert_eq!(fuzz(&target, seed, |runs| runs < 10_000), Err(failure), "inputs follow from the seed");
    }
}

#[test]
fn a_panic_behind_accepted_inputs_is_found() {
    /// Panics on five bytes in a row that are each one more than the one before: each step has to be kept.
    fn counts_up(input: &[u8]) -> bool {
        let steps = input.windows(2).take_while(|pair| pair[1] == pair[0].wrapping_add(1)).count();
        assert!(steps < 4, "five in a row");
        steps > 0 && steps + 1 == input.len()
    }
    let target = Target { name: "counts_up", run: counts_up, seeds: |_| vec![vec![7, 8]] };
    let failure = fuzz(&target, 1, |runs| runs < 2_000_000).expect_err("it panics");
    assert_eq!(failure.message, "five in a row");
}

#[test]
fn every_target_takes_its_seeds_and_what_becomes_of_them() {
    for target in &TARGETS {
        let seeds = (target.seeds)(&mut Prng::new(1));
        assert!(!seeds.is_empty(), "{}", target.name);
        let report = fuzz(target, 1, |runs| runs < seeds.len() as u64 + 500)
            .unwrap_or_else(|failure| panic!("{failure}"));
        assert!(report.accepted > seeds.len() as u64 / 2, "{}: {report:?}", target.name);
        assert_eq!(report.runs, seeds.len() as u64 + 500, "{}", target.name);
    }
}

#[test]
fn libfuzzer_has_every_target() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("there is a manifest");
    for Target { name, .. } in TARGETS {
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name} is not in the manifest"
        );
        let file =
            std::fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).unwrap_or_default();
        assert!(file.contains(&format!("targets::{name}(bytes)")), "fuzz_targets/{name}.rs does not call it");
    }
}

/// Inputs in which somebody has found something wrong.
#[test]
fn what_was_found_stays_mended() {
    // SETNX k other, SORT l .., MEMORY USAGE k: how much memory a key takes is not known before it is there.
    let body =
        b"$\x01k\x05other\x7f\xc0\x01l\x07\x05ALPHA\x04DESC\x05LIMIT\x010\x015\x03GET\x01#\x7f\xbd\x01k";
    assert!(syros_fuzz::targets::operation_body(body));
}
