//! Patterns that a node compares by itself, on the loop that serves everybody: they have a length limit, as those of KEYS have.

mod common;

use common::{CONTEXT, output, request};
use syros_resp::{Connection, Identity};

fn answer(words: &[&str]) -> String {
    let identity =
        Identity { id: 1, address: "127.0.0.1:50000".into(), local_address: "127.0.0.1:6379".into() };
    let mut connection = Connection::new(identity, CONTEXT.now);
    let input = request(words);
    assert_eq!(connection.receive(&input, &CONTEXT), input.len());
    String::from_utf8(output(&mut connection)).expect("text")
}

#[test]
fn long_patterns_are_refused() {
    let (longest, longer) = ("*".repeat(1024), "*".repeat(1025));
    for words in [["CONFIG", "GET"].as_slice(), &["COMMAND", "LIST", "FILTERBY", "PATTERN"]] {
        let with = |pattern: &str| answer(&[words, &[pattern]].concat());
        assert!(with(&longest).starts_with('*'), "{words:?}");
        let refused = with(&longer);
        assert!(
            refused.starts_with("-ERR") && refused.contains("1025") && refused.contains("1024"),
            "{refused}"
        );
    }
    let many = [&["CONFIG", "GET"][..], &[longest.as_str(); 9]].concat();
    let refused = answer(&many);
    assert!(refused.starts_with("-ERR the patterns have 9216 bytes, and 8192"), "{refused}");
    assert!(answer(&many[..10]).starts_with('*'));
}
