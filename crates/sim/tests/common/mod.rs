//! What the files of scenarios share.
#![allow(dead_code, reason = "every test file uses a part of this")]

use syros_protocol::replica::PlantedBug;
use syros_sim::Scenario;

/// Plays a story twice: as the protocol is, and with the bug it is about.
pub(crate) fn assert_cures(bug: PlantedBug, story: impl Fn(Scenario) -> Result<(), String>) {
    assert_cures_in(&Scenario::new(3), bug, story);
}

/// The same, beginning with this scenario.
pub(crate) fn assert_cures_in(
    scenario: &Scenario,
    bug: PlantedBug,
    story: impl Fn(Scenario) -> Result<(), String>,
) {
    story(scenario.clone()).unwrap();
    let shown = story(scenario.clone().plant(bug)).expect_err("the story shows the bug");
    let is_shown = ["not linearizable", "is recovered at"].iter().any(|said| shown.contains(said));
    assert!(is_shown, "{shown}");
}
