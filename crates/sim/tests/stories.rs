//! Every story ends well, and badly with the bug that it is about.

use syros_protocol::replica::PlantedBug;
use syros_sim::stories::STORIES;

/// What is said of a history in which the bug shows.
const fn told_of(bug: PlantedBug) -> &'static str {
    match bug {
        // Clients see nothing of these.
        PlantedBug::UpdateLost | PlantedBug::EngineLosesUpdate => "says that members differ",
        PlantedBug::DeadSourceAskedOn => "does not join view 2",
        PlantedBug::ReplacedGoesAlong | PlantedBug::OldQuorumSkipped => "disagree on committed entry",
        _ => "not linearizable",
    }
}

#[test]
fn every_story_shows_its_bug() {
    for story in STORIES {
        story.play(false).unwrap_or_else(|wrong| panic!("{}: {wrong}", story.name));
        let shown = story.play(true).expect_err(story.name);
        assert!(shown.contains(told_of(story.bug)), "{}: {shown}", story.name);
    }
}
