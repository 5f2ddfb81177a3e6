//! What it costs a replica to do something, where time is virtual.
//!
//! A replica is one thread, as a node's event loop is. In turns it takes all that has arrived, hands it to the core,
//! executes, and sends what comes of that. A turn takes time for each other process that it receives from, for each
//! that it sends to (however many messages: a connection is read and written once in a turn), for each request and each
//! entry in these messages, and for each operation executed. What arrives meanwhile waits for the next turn.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// What each step of a replica's turn takes. Clients cost nothing: there are machines enough for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// To receive what one other process has sent, once in a turn.
    pub receive: Duration,
    /// To send one other process what there is for it, once in a turn.
    pub send: Duration,
    /// For each request or entry of the log in a message, for its receiver and, between replicas, for its sender.
    pub entry: Duration,
    /// To execute an update or a read.
    pub execute: Duration,
    /// To fetch what is read from a storage that does one thing after the other, while the replica goes on.
    pub fetch: Duration,
    /// Cores that all replicas share, as processes of one machine; 0: each has one of its own.
    pub cores: u32,
}

/// Most cores that replicas share.
const CORES_MAX: u32 = 64;

/// The longest that anything can take, in microseconds: less than it takes to suspect a leader.
const MICROS_MAX: f64 = 100_000.0;

const fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

impl Cost {
    /// Nothing takes time: round trips are exact.
    pub const NONE: Self = Self {
        receive: Duration::ZERO,
        send: Duration::ZERO,
        entry: Duration::ZERO,
        execute: Duration::ZERO,
        fetch: Duration::ZERO,
        cores: 0,
    };

    /// Fitted to the CPU time of nodes on the machine of docs/BENCHMARKS.md, which says how.
    pub const MEASURED: Self = Self {
        receive: nanos(2_000),
        send: nanos(2_000),
        entry: nanos(1_000),
        execute: nanos(200),
        fetch: Duration::ZERO,
        cores: 0,
    };

    /// True if nothing takes time.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// How long it takes to receive from, or to send to, so many others, with so many requests or entries in all.
    #[must_use]
    pub fn messages(&self, each: Duration, others: usize, entries: u64) -> Duration {
        let times = |duration: Duration, count: u64| {
            Duration::from_nanos((duration.as_nanos() as u64).saturating_mul(count))
        };
        times(each, others as u64).saturating_add(times(self.entry, entries))
    }
}

impl fmt::Display for Cost {
    /// As it can be read again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str("none");
        }
        let micros = |duration: Duration| duration.as_nanos() as f64 / 1_000.0;
        let Self { receive, send, entry, execute, fetch, cores } = *self;
        write!(
            f,
            "receive={}us,send={}us,entry={}us,execute={}us",
            micros(receive),
            micros(send),
            micros(entry),
            micros(execute)
        )?;
        if fetch > Duration::ZERO {
            write!(f, ",fetch={}us", micros(fetch))?;
        }
        if cores > 0 {
            write!(f, ",cores={cores}")?;
        }
        Ok(())
    }
}

/// A text that is no cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidCost(String);

impl fmt::Display for InvalidCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no cost: none, measured, or some of receive=T,send=T,entry=T,execute=T,fetch=T with T from 0us to \
             {MICROS_MAX}us and cores=N with N from 1 to {CORES_MAX}, after measured or alone",
            self.0
        )
    }
}

impl std::error::Error for InvalidCost {}

impl FromStr for Cost {
    type Err = InvalidCost;

    fn from_str(text: &str) -> Result<Self, InvalidCost> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        let mut cost = Self::NONE;
        for part in text.split(',') {
            let invalid = || InvalidCost(part.to_owned());
            if part == "measured" && cost == Self::NONE {
                cost = Self::MEASURED;
                continue;
            }
            if let Some(cores) = part.strip_prefix("cores=") {
                let cores = cores.parse().ok().filter(|cores| (1..=CORES_MAX).contains(cores));
                cost.cores = cores.ok_or_else(invalid)?;
                continue;
            }
            let (name, time) = part.split_once('=').ok_or_else(invalid)?;
            let micros: Option<f64> = time.strip_suffix("us").and_then(|number| number.parse().ok());
            let micros = micros.filter(|micros| (0.0..=MICROS_MAX).contains(micros)).ok_or_else(invalid)?;
            let place = match name {
                "receive" => &mut cost.receive,
                "send" => &mut cost.send,
                "entry" => &mut cost.entry,
                "execute" => &mut cost.execute,
                "fetch" => &mut cost.fetch,
                _ => return Err(invalid()),
            };
            *place = nanos((micros * 1_000.0).round() as u64);
        }
        Ok(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_back_and_others_refused() {
        let slow = Cost { entry: nanos(1_500), fetch: nanos(50_000), ..Cost::NONE };
        let shared = Cost { cores: 2, ..Cost::MEASURED };
        assert_eq!("measured,cores=2".parse(), Ok(shared));
        for cost in [Cost::NONE, Cost::MEASURED, slow, shared] {
            assert_eq!(cost.to_string().parse(), Ok(cost));
        }
        assert_eq!("measured".parse(), Ok(Cost::MEASURED));
        assert_eq!("send=2us".parse(), Ok(Cost { send: nanos(2_000), ..Cost::NONE }));
        for text in ["send=2us,measured", "cores=0", "cores=65", "measured,cores=x"] {
            assert!(text.parse::<Cost>().is_err(), "{text}");
        }
        for text in ["", "cheap", "send", "send=2", "send=-1us", "send=NaNus", "send=100001us", "disk=1us"] {
            let error = text.parse::<Cost>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}'")) && error.contains("100000us"), "{error}");
        }
    }

    #[test]
    fn a_turn_costs_by_the_process_and_by_the_entry() {
        let cost = Cost { entry: nanos(3), ..Cost::NONE };
        assert_eq!(cost.messages(nanos(10), 2, 7), nanos(41));
    }
}
