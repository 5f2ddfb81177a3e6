//! Replies as a client receives them from a replica.
#![no_main]
use libfuzzer_sys::fuzz_target;
use syros_commands::ReplyRef;
use syros_resp::{Protocol, write_reply};

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(reply) = ReplyRef::decode(&mut rest) {
        let mut out = Vec::new();
        write_reply(&mut out, Protocol::Resp2, reply);
        write_reply(&mut out, Protocol::Resp3, reply);
        if rest.is_empty() {
            break;
        }
    }
});
