//! A record that decodes encodes to something that decodes to the same record.
#![no_main]
use libfuzzer_sys::fuzz_target;
use syros_types::{Class, Footprint};

fn describe(body: &[u8]) -> Option<(Class, Footprint)> {
    syros_commands::describe(body).ok().map(|description| (description.class, description.footprint))
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = syros_wire::decode_record(bytes, describe) {
        let mut encoded = Vec::new();
        syros_wire::encode_record(&record, &mut encoded);
        assert_eq!(syros_wire::decode_record(&encoded, describe).ok(), Some(record));
    }
});
