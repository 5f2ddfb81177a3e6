//! Operations as replicas receive them: described, and executed if they are any.
#![no_main]
use libfuzzer_sys::fuzz_target;
use syros_commands::ReplyRef;
use syros_storage::{Engine, MemoryEngine};
use syros_types::WallTime;

fuzz_target!(|bytes: &[u8]| {
    let described = syros_commands::describe(bytes);
    if described.is_ok() {
        assert!(syros_commands::operations(bytes).all(|operation| operation.is_ok()));
    }
    let mut engine = MemoryEngine::new();
    let mut reply = Vec::new();
    engine.apply(WallTime(1_000_000), bytes, &mut reply);
    engine.read(WallTime(1_000_000), bytes, &mut reply);
    let mut rest = reply.as_slice();
    while !rest.is_empty() {
        ReplyRef::decode(&mut rest).expect("an engine's reply decodes");
    }
});
