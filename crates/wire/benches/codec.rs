//! Nanoseconds to encode and decode the hot messages. `cargo bench -p syros-wire`

use std::hint::black_box;
use std::time::{Duration, Instant};
use syros_protocol::message::{BodyHash, Message, Path, Prepared, Request};
use syros_types::{ConfigurationId, OpNumber, OperationId, ReplicaSet, SessionId, View, WallTime};
use syros_wire::{Channel, decode_client_message, decode_message, put_message_frame, split_frame};

fn main() {
    let id = |sequence| OperationId { session: SessionId(40_000), sequence };
    let request = Request {
        id: id(1_000_000),
        micros: 1_700_000_000_000_000,
        acked_below: 999_990,
        body: [7; 48][..].into(),
    };
    let prepare = |count| Message::Prepare {
        view: View(1),
        first: OpNumber(5_000_000),
        commit: OpNumber(4_999_000),
        sent_at: syros_types::Instant(1_000_000_000_000),
        time: WallTime(1_700_000_000_000_000),
        entries: (0..count)
            .map(|index| Prepared::Reference { id: id(1_000_000 + index), body_hash: BodyHash(index) })
            .collect(),
    };
    for (name, message) in [
        (
            "Request, 48-byte body",
            Message::Request { view: View(1), path: Path::Durability, recipients: ReplicaSet(7), request },
        ),
        (
            "Ok",
            Message::Ok {
                view: View(1),
                rule: None,
                id: id(1_000_000),
                clock: WallTime(1_700_000_000_000_000),
            },
        ),
        ("Prepare, 1 reference", prepare(1)),
        ("Prepare, 100 references", prepare(100)),
        (
            "PrepareOk",
            Message::PrepareOk {
                view: View(1),
                op_number: OpNumber(5_000_000),
                applied: OpNumber(4_999_000),
                sent_at: syros_types::Instant(1_000_000_000_000),
                promise: Duration::from_millis(200),
                clock: WallTime(1_700_000_000_000_000),
            },
        ),
        (
            "ReadReply, 48 bytes",
            Message::ReadReply { view: View(1), number: 70_000, reply: [7; 48][..].into() },
        ),
    ] {
        measure(name, &message);
    }
}

/// Prints the best of several rounds: what disturbs a round only ever makes it slower.
fn measure(name: &str, message: &Message) {
    const COUNT: u32 = 1000;
    let mut out = Vec::new();
    put_message_frame(&mut out, Channel::Client, ConfigurationId::FIRST, message);
    let length = out.len();
    let (mut encode, mut decode) = (Duration::MAX, Duration::MAX);
    for _ in 0..200 {
        out.clear();
        let start = Instant::now();
        for _ in 0..COUNT {
            put_message_frame(&mut out, Channel::Client, ConfigurationId::FIRST, black_box(message));
        }
        encode = encode.min(start.elapsed());
        let mut rest = &out[..];
        let start = Instant::now();
        while let Ok(Some((frame, length))) = split_frame(rest, usize::MAX) {
            let decoded = match decode_client_message(frame.payload) {
                Ok(message) => message,
                Err(_) => decode_message(frame.payload, |_| None).expect("it has just been encoded"),
            };
            // Dropping it, and so freeing its body, is a part of the price.
            drop(black_box(decoded));
            rest = &rest[length..];
        }
        decode = decode.min(start.elapsed());
    }
    let nanoseconds = |total: Duration| total.as_secs_f64() * 1e9 / f64::from(COUNT);
    println!(
        "{name}: {length} bytes framed, encode {:.1} ns, decode and drop {:.1} ns",
        nanoseconds(encode),
        nanoseconds(decode)
    );
}
