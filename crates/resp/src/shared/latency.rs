//! LATENCY: when events took long.

use std::collections::{BTreeMap, VecDeque};
use syros_types::WallTime;

/// So many samples of an event are kept: as in Redis.
const HISTORY_LENGTH: usize = 160;

/// What is known of one event.
#[derive(Debug, Default)]
pub(crate) struct LatencySamples {
    /// Seconds since 1970, and the longest time in milliseconds of the events of that second; the newest last.
    pub(crate) samples: VecDeque<(u64, u64)>,
    /// The longest time ever, in milliseconds.
    pub(crate) max: u64,
}

/// Every event that took long, by its name. There are as many as there are names in the sources.
#[derive(Debug, Default)]
pub(crate) struct LatencyEvents(pub(crate) BTreeMap<&'static str, LatencySamples>);

impl LatencyEvents {
    /// An event took so many milliseconds.
    pub(crate) fn record(&mut self, event: &'static str, millis: u64, now: WallTime) {
        let LatencySamples { samples, max } = self.0.entry(event).or_default();
        let second = now.0 / 1_000_000;
        *max = millis.max(*max);
        if let Some((last, longest)) = samples.back_mut()
            && *last == second
        {
            *longest = millis.max(*longest);
            return;
        }
        if samples.len() == HISTORY_LENGTH {
            samples.pop_front();
        }
        samples.push_back((second, millis));
    }

    /// The event with this name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&LatencySamples> {
        str::from_utf8(name).ok().and_then(|name| self.0.get(name))
    }

    /// Forgets these events, or all; how many there were.
    pub(crate) fn reset(&mut self, names: &[&[u8]]) -> usize {
        let before = self.0.len();
        self.0.retain(|event, _| !names.is_empty() && !names.contains(&event.as_bytes()));
        before - self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_one_sample_and_the_history_is_bounded() {
        let mut events = LatencyEvents::default();
        for (second, millis) in [(1, 5), (1, 7), (1, 6), (2, 1)] {
            events.record("command", millis, WallTime(second * 1_000_000));
        }
        assert_eq!(events.get(b"command").unwrap().samples, [(1, 7), (2, 1)]);
        (3..1000).for_each(|second| events.record("command", 1, WallTime(second * 1_000_000)));
        let LatencySamples { samples, max } = events.get(b"command").unwrap();
        assert_eq!((samples.len(), *max), (HISTORY_LENGTH, 7));
        events.record("fast-command", 1, WallTime(0));
        assert_eq!((events.reset(&[b"other"]), events.reset(&[b"command"])), (0, 1));
        assert_eq!((events.reset(&[]), events.reset(&[])), (1, 0));
    }
}
