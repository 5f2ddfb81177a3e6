//! The first bytes of every connection.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(hello) = syros_wire::Hello::decode(bytes) {
        let mut encoded = Vec::new();
        hello.encode(&mut encoded);
        assert_eq!(encoded, bytes);
    }
});
