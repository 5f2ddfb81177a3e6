//! The code in the guide is the code of the example.

use std::path::Path;

/// Without what `rustfmt` may change.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_guide_shows_this_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| {
        std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let sources = ["store", "client", "nodes"].map(|name| squeezed(&read(&format!("src/{name}.rs"))));
    let guide = read("../../docs/STATE_MACHINES.md");
    let blocks: Vec<&str> =
        guide.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 4, "{} blocks", blocks.len());
    for block in blocks {
        let block_squeezed = squeezed(block);
        assert!(
            sources.iter().any(|source| source.contains(&block_squeezed)),
            "not in the example:\n{block}"
        );
    }
}
