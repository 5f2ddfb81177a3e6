//! The models themselves: that their scripts fit, that a fingerprint leaves nothing out, that a search
//! is the same every time. In tests, whenever two members have one fingerprint, `Tables` checks that
//! they do the same.

use crate::models;
use crate::setup::Bounded;
use crate::world::{Action, State, World};
use syros_protocol::message::{Peer, RoleName};
use syros_protocol::replica::PlantedBug;
use syros_types::{Prng, ReplicaId};

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
            let has_spent = |what| state.budget.left(what) < world.setup.budget.left(what);
            let restarted = has_spent(Bounded::Restart) || has_spent(Bounded::Damage);
            let normal = |role| matches!(role, RoleName::Leader | RoleName::Follower);
            back |= restarted && views.iter().all(|view| view.view > 0 && normal(view.role));
            answered |= state.history.answered() & !world.starts[0].history.answered() != 0;
            assert_eq!(world.wrong(state), None, "{}", model.name());
        });
        let name = model.name();
        let is_last_view = first.contains(&world.setup.view_max);
        assert!(led || is_last_view, "{name}: nobody leads a new view");
        let restarts = [Bounded::Restart, Bounded::Damage].map(|what| world.setup.budget.left(what));
        assert!(back || restarts == [0, 0], "{name}: nobody comes back");
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
        ("disk-steps", PlantedBug::SentBeforeRecord, 5),
        ("damaged-log", PlantedBug::ViewNotNoted, 9),
        ("reads-over-views", PlantedBug::RinseOfOtherView, 11),
        ("mixed-return", PlantedBug::RuleOfOwnView, 7),
    ] {
        let model = models().into_iter().find(|model| model.name() == name).expect("it exists");
        let (one, other) = (model.check(Some(bug), None), model.check(Some(bug), None));
        assert_eq!(one.states, other.states, "{name}");
        assert_eq!(one.counterexample.map(|found| found.steps), Some(steps), "{name}");
        let text = other.counterexample.map(|found| found.text).unwrap_or_default();
        assert!(text.contains(" 1. "), "{name}: {text}");
    }
}

/// Where a step leads that has to be possible.
fn take(world: &World, state: &State, action: Action) -> State {
    world.step(state, action).unwrap_or_else(|| panic!("{action:?} changes nothing"))
}

#[test]
fn a_crash_takes_what_is_not_on_disk_and_leaves_what_the_core_has_not_been_told_of() {
    let model = models().into_iter().find(|model| model.name() == "disk-steps").expect("it exists");
    let world = World::new(model.setup());
    let issued = take(&world, &world.starts[0], Action::Invoke(0));
    let request = issued.network.iter().copied().find(|number| {
        let envelope = world.envelope(*number);
        envelope.message.name() == "Request" && envelope.to == Peer::Replica(ReplicaId(0))
    });
    let appended = take(&world, &issued, Action::Deliver(request.expect("it is on its way")));
    let steps = |state: &State| {
        let view = world.node_view(state, 0);
        (view.unwritten, view.untold, world.node(state, 0).accepted().len())
    };
    assert_eq!(steps(&appended), (true, false, 1));
    let on_disk = take(&world, &appended, Action::Flush(0));
    assert_eq!(steps(&on_disk), (false, true, 1));
    let told = take(&world, &on_disk, Action::Tell(0));
    assert_eq!(steps(&told), (false, false, 1));
    let survivors = [appended, on_disk, told].map(|state| steps(&take(&world, &state, Action::Restart(0))).2);
    assert_eq!(survivors, [0, 1, 1]);
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
