//! Every story ends well, and badly with the bug that it is about.

use syros_sim::stories::STORIES;

#[test]
fn every_story_shows_its_bug() {
    for story in STORIES {
        story.play(false).unwrap_or_else(|wrong| panic!("{}: {wrong}", story.name));
        let shown = story.play(true).expect_err(story.name);
        assert!(shown.contains("not linearizable"), "{}: {shown}", story.name);
    }
}
