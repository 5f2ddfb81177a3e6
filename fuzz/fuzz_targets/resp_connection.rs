//! What a Redis client may send, in pieces; every submission is answered.
#![no_main]
use libfuzzer_sys::fuzz_target;
use syros_resp::{Completion, Connection, Context, Identity, ServerInfo, ServerReport};
use syros_types::WallTime;

struct NoServer;

impl ServerInfo for NoServer {
    fn report(&self) -> ServerReport {
        ServerReport::default()
    }
    fn reset_statistics(&self) {}
}

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (piece, bytes) = input;
    let identity = Identity { id: 1, address: String::new(), local_address: String::new() };
    let mut connection = Connection::new(identity, WallTime(0));
    let context = Context { now: WallTime(0), info: &NoServer, unavailable: None };
    let mut start = 0;
    let mut end = 0;
    while end < bytes.len() {
        end = (end + 1 + usize::from(piece)).min(bytes.len());
        start += connection.receive(&bytes[start..end], &context);
        while let Some(submission) = connection.poll_submit() {
            assert!(syros_commands::describe(&submission.body).is_ok());
            connection.complete(submission.slot, Completion::Unknown);
        }
        let written = connection.output().len();
        connection.sent(written);
    }
});
