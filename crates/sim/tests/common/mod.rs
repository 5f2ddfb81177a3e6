//! What the files of scenarios share.
#![allow(dead_code, reason = "every test file uses a part of this")]

use syros_protocol::replica::PlantedBug;
use syros_sim::Scenario;

/// Plays a story twice: as the protocol is, and with the bug it is about.
pub(crate) fn assert_cures(bug: PlantedBug, story: impl Fn(Scenario) -> Result<(), String>) {
    assert_cures_as(&Scenario::new(3), bug, "not linearizable", story);
}

/// The same, beginning with this scenario, where this is said of the bug.
pub(crate) fn assert_cures_as(
    scenario: &Scenario,
    bug: PlantedBug,
    said: &str,
    story: impl Fn(Scenario) -> Result<(), String>,
) {
    story(scenario.clone()).unwrap();
    let shown = story(scenario.clone().plant(bug)).expect_err("the story shows the bug");
    assert!(shown.contains(said), "{shown}");
}
