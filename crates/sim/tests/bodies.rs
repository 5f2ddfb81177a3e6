//! Clients that send two bodies under one id.

use syros_protocol::message::{Message, Path, Request};
use syros_protocol::replica::PlantedBug;
use syros_sim::swarm::MILLI;
use syros_sim::workload::{ClientCommand, encode};
use syros_sim::{Play, Scenario};
use syros_types::{OperationId, ReplicaSet, SessionId, View};

/// Has a stranger register a session.
fn session(play: &mut Play, nonce: u64) -> SessionId {
    play.world().intrude(0, 0, Message::Register { view: View(0), nonce });
    play.run(100 * MILLI);
    let answers = play.world().overheard();
    let registered = answers.into_iter().find_map(|(_, _, message)| match message {
        Message::Registered { session, .. } => Some(session),
        _ => None,
    });
    let session = registered.expect("the session is registered");
    for replica in 0..3 {
        play.world().intrude(0, replica, Message::Attach { session, nonce });
    }
    session
}

/// The first update of a session: `SET key value`, as a stranger sends it.
fn update(play: &mut Play, session: SessionId, value: &str) -> Message {
    let id = OperationId { session, sequence: 1 };
    let micros = play.world().now() / 1000;
    let body = encode(&[ClientCommand::Set(77, value.as_bytes().to_vec())]);
    let request = Request { id, micros, acked_below: 1, body: body.into() };
    Message::Request { view: View(0), path: Path::Durability, recipients: ReplicaSet::ALL, request }
}

/// The leader and one follower are sent one body, the other follower another one.
fn two_bodies(scenario: Scenario) -> Result<(), String> {
    let mut play = scenario.start();
    let session = session(&mut play, 17);
    for (replica, value) in [(0, "one"), (1, "one"), (2, "two")] {
        let message = update(&mut play, session, value);
        play.world().intrude(0, replica, message);
    }
    play.run(200 * MILLI);
    play.judge()
}

#[test]
fn a_follower_executes_the_body_that_its_leader_means() {
    two_bodies(Scenario::new(3)).unwrap();
    let shown = two_bodies(Scenario::new(3).plant(PlantedBug::ReferenceById)).unwrap_err();
    assert!(shown.contains("disagree on committed entry"), "{shown}");
}

/// How many replicas say `Ok` to the second of two bodies, which none of them will execute.
fn oks_for_the_second(scenario: Scenario) -> usize {
    let mut play = scenario.start();
    let session = session(&mut play, 17);
    for value in ["one", "two"] {
        play.world().overheard();
        for replica in 0..3 {
            let message = update(&mut play, session, value);
            play.world().intrude(0, replica, message);
        }
    }
    play.run(200 * MILLI);
    let answers = play.world().overheard();
    play.judge().unwrap();
    let oks = answers.iter().filter(|(_, _, message)| matches!(message, Message::Ok { .. })).count();
    // Three are for the first.
    oks - 3
}

#[test]
fn nobody_vouches_for_a_second_body() {
    assert_eq!(oks_for_the_second(Scenario::new(3)), 0);
    assert_eq!(oks_for_the_second(Scenario::new(3).plant(PlantedBug::DuplicateById)), 3);
}

/// A bit flips in most of what clients and replicas send each other.
#[test]
fn damaged_frames_are_refused() {
    let noisy = |swarm: &mut syros_sim::Swarm| swarm.network.flip_ppm = 300_000;
    let story = |scenario: Scenario| -> Result<(), String> {
        let mut play = scenario.with(noisy).start();
        let writer = play.client();
        for round in 0..40_u8 {
            let _ = play.call(writer, ClientCommand::Set(u64::from(round % 3), vec![round; 40]));
            play.get(writer, u64::from(round % 3));
        }
        play.judge()
    };
    story(Scenario::new(3)).unwrap();
    let shown = std::panic::catch_unwind(|| story(Scenario::new(3).plant(PlantedBug::ChecksumIgnored)));
    assert!(!matches!(shown, Ok(Ok(()))), "damage is believed");
}
