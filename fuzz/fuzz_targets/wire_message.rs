//! A message that decodes encodes to something that decodes to the same message.
#![no_main]
use libfuzzer_sys::fuzz_target;
use syros_types::{Class, Footprint};

fn describe(body: &[u8]) -> Option<(Class, Footprint)> {
    syros_commands::describe(body).ok().map(|description| (description.class, description.footprint))
}

fuzz_target!(|bytes: &[u8]| {
    let _ = syros_wire::split_frame(bytes, 1 << 20);
    if let Ok(message) = syros_wire::decode_message(bytes, describe) {
        let mut encoded = Vec::new();
        syros_wire::encode_message(&message, &mut encoded);
        assert_eq!(syros_wire::decode_message(&encoded, describe).ok(), Some(message));
    }
    let _ = syros_wire::decode_client_message(bytes);
});
