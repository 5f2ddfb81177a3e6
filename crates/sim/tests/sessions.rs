//! Sessions that others try to use, or to use up.

mod common;

use common::assert_cures;
use syros_protocol::client::Outcome;
use syros_protocol::message::{Message, Path, Request};
use syros_protocol::replica::PlantedBug;
use syros_sim::Play;
use syros_sim::swarm::MILLI;
use syros_sim::workload::{Step, encode};
use syros_types::{OperationId, ReplicaSet, View};

/// The id that the last update of the history travelled under.
fn last_id(play: &mut Play) -> OperationId {
    let operations = play.world().history().operations();
    operations.iter().rev().find_map(|operation| operation.id).expect("an update was sent")
}

/// Somebody uses a session's next id before its owner does. The owner would be told `Ok` for an update that is never
/// executed.
#[test]
fn a_stranger_cannot_use_the_session_of_another() {
    assert_cures(PlantedBug::UnattachedAccepted, |scenario| {
        let mut play = scenario.start();
        let (writer, reader) = (play.client(), play.client());
        assert_eq!(play.call(writer, Step::Set(1, b"old".to_vec())), Outcome::Done);
        play.run(200 * MILLI);
        let last = last_id(&mut play);
        let id = OperationId { sequence: last.sequence + 1, ..last };
        let body = encode(&[Step::Set(2, b"stolen".to_vec())]);
        for replica in 0..3 {
            let request = Request { id, micros: 1, acked_below: last.sequence, body: body.clone().into() };
            let (view, path, recipients) = (View(0), Path::Durability, ReplicaSet::ALL);
            play.world().intrude(0, replica, Message::Request { view, path, recipients, request });
        }
        play.run(200 * MILLI);
        assert_eq!(play.call(writer, Step::Set(1, b"new".to_vec())), Outcome::Done);
        play.get(reader, 1);
        play.judge()
    });
}
