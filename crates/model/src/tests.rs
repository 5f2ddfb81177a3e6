//! The models themselves: that their scripts fit, that a fingerprint leaves nothing out, that a search
//! is the same every time. In tests, whenever two members have one fingerprint, `Tables` checks that
//! they do the same.

use crate::catalogue::models;
use crate::setup::Bounded;
use crate::world::{Action, State, World};
use syros_protocol::message::RoleName;
use syros_protocol::replica::PlantedBug;
use syros_types::Prng;

/// Enough to get past the first answers, and quick without optimization.
const TRANSITIONS: usize = 3000;

#[test]
fn every_model_holds_as_far_as_a_short_search_goes() {
    for model in models() {
        let report = model.check(None, Some(TRANSITIONS));
        assert!(report.counterexample.is_none(), "{}: {:?}", model.name(), report.counterexample);
        assert!(!report.exhausted, "{} has become too small to mean anything", model.name());
    }
}

/// Takes random steps until none is possible, so many times, and shows every state on the way.
fn wander(world: &World, times: usize, mut see: impl FnMut(&State)) {
    let mut prng = Prng::new(7);
    let mut actions: Vec<Action> = Vec::new();
    for _ in 0..times {
        let mut state = world.starts[0].clone();
        loop {
            see(&state);
            actions.clear();
            world.actions(&state, &mut actions);
            actions.retain(|action| world.step(&state, *action).is_some());
            if actions.is_empty() {
                break;
            }
            let choice = actions[prng.below(actions.len() as u64) as usize];
            state = world.step(&state, choice).expect("it was possible just now");
        }
    }
}

#[test]
fn members_with_one_fingerprint_do_the_same_along_random_paths() {
    for model in models() {
        let world = World::new(model.setup());
        wander(&world, 20, |_| {});
        assert!(world.table_sizes()[0] > 20, "{} went nowhere", model.name());
    }
}

#[test]
fn models_come_to_what_they_are_about() {
    for model in models() {
        let world = World::new(model.setup());
        let members = world.setup.members as u8;
        let first: Vec<u64> =
            (0..members).map(|member| world.node_view(&world.starts[0], member).view).collect();
        let (mut led, mut back, mut answered) = (false, false, false);
        wander(&world, 400, |state| {
            let views: Vec<_> = (0..members).map(|member| world.node_view(state, member)).collect();
            led |= views
                .iter()
                .any(|view| view.role == RoleName::Leader && first.iter().all(|first| *first < view.view));
            let restarted = state.budget.left(Bounded::Restart) < world.setup.budget.left(Bounded::Restart);
            let normal = |role| matches!(role, RoleName::Leader | RoleName::Follower);
            back |= restarted && views.iter().all(|view| view.view > 0 && normal(view.role));
            answered |= state.history.answered() & !world.starts[0].history.answered() != 0;
            assert_eq!(world.wrong(state), None, "{}", model.name());
        });
        let name = model.name();
        let is_last_view = first.contains(&world.setup.view_max);
        assert!(led || is_last_view, "{name}: nobody leads a new view");
        assert!(back || world.setup.budget.left(Bounded::Restart) == 0, "{name}: nobody comes back");
        assert!(answered, "{name}: nobody is answered");
    }
}

#[test]
fn a_search_is_the_same_every_time_and_finds_the_shortest_way() {
    for (name, bug, steps) in [
        ("normal", PlantedBug::ReadSkipsPending, 7),
        ("majority", PlantedBug::RecoverNothing, 6),
        ("supermajority", PlantedBug::RecoveryThresholdTooHigh, 6),
        ("rejoin", PlantedBug::AmnesiacRejoinsAtOnce, 5),
        ("slow-disk", PlantedBug::CommitTooEarly, 5),
        ("reads-over-views", PlantedBug::RinseOfOtherView, 11),
    ] {
        let model = models().into_iter().find(|model| model.name() == name).expect("it exists");
        let (one, other) = (model.check(Some(bug), None), model.check(Some(bug), None));
        assert_eq!(one.states, other.states, "{name}");
        assert_eq!(one.counterexample.map(|found| found.steps), Some(steps), "{name}");
        let text = other.counterexample.map(|found| found.text).unwrap_or_default();
        assert!(text.contains(" 1. "), "{name}: {text}");
    }
}

#[test]
fn every_variant_is_one_that_exists_and_is_listed_once() {
    for model in models() {
        let wrong = model.wrong();
        for (index, bug) in wrong.iter().enumerate() {
            assert!(PlantedBug::ALL.contains(bug));
            assert!(!wrong[..index].contains(bug), "{}: {}", model.name(), bug.name());
        }
    }
}
