//! What becomes of keys when the data takes more memory than it may.

use crate::by_name::by_name;

/// Which keys go when the data has reached its limit: the policies of Redis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EvictionPolicy {
    /// None: updates that make the data grow are refused.
    #[default]
    NoEviction,
    /// Those used longest ago.
    AllKeysLru,
    /// Those used least often.
    AllKeysLfu,
    /// Any.
    AllKeysRandom,
    /// Of those that expire, those used longest ago.
    VolatileLru,
    /// Of those that expire, those used least often.
    VolatileLfu,
    /// Any that expire.
    VolatileRandom,
    /// Those that expire first.
    VolatileTtl,
}

/// By what a policy compares keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionOrder {
    /// Used longest ago.
    LastUse,
    /// Used least often.
    Frequency,
    /// It compares none.
    Chance,
    /// Expires first.
    Expiry,
}

impl EvictionPolicy {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::NoEviction,
        Self::AllKeysLru,
        Self::AllKeysLfu,
        Self::AllKeysRandom,
        Self::VolatileLru,
        Self::VolatileLfu,
        Self::VolatileRandom,
        Self::VolatileTtl,
    ];

    /// Its name, in configuration and to Redis clients.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoEviction => "noeviction",
            Self::AllKeysLru => "allkeys-lru",
            Self::AllKeysLfu => "allkeys-lfu",
            Self::AllKeysRandom => "allkeys-random",
            Self::VolatileLru => "volatile-lru",
            Self::VolatileLfu => "volatile-lfu",
            Self::VolatileRandom => "volatile-random",
            Self::VolatileTtl => "volatile-ttl",
        }
    }

    /// By what it compares keys; `None` if it lets none go.
    #[must_use]
    pub const fn order(self) -> Option<EvictionOrder> {
        match self {
            Self::NoEviction => None,
            Self::AllKeysLru | Self::VolatileLru => Some(EvictionOrder::LastUse),
            Self::AllKeysLfu | Self::VolatileLfu => Some(EvictionOrder::Frequency),
            Self::AllKeysRandom | Self::VolatileRandom => Some(EvictionOrder::Chance),
            Self::VolatileTtl => Some(EvictionOrder::Expiry),
        }
    }

    /// True if it lets only keys go that expire.
    #[must_use]
    pub const fn is_of_expiring(self) -> bool {
        matches!(self, Self::VolatileLru | Self::VolatileLfu | Self::VolatileRandom | Self::VolatileTtl)
    }

    /// True if it has to know when or how often keys are used.
    #[must_use]
    pub const fn needs_uses(self) -> bool {
        matches!(self.order(), Some(EvictionOrder::LastUse | EvictionOrder::Frequency))
    }
}

by_name!(
    EvictionPolicy,
    /// A name that no eviction policy has.
    UnknownEvictionPolicy,
    "an eviction policy is noeviction, or allkeys- or volatile- with lru, lfu or random, or volatile-ttl"
);

/// How keys are chosen that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EvictionSettings {
    /// Which ones.
    pub policy: EvictionPolicy,
    /// So many keys are looked at for each that goes.
    pub samples: u32,
    /// The larger, the more uses it takes to count one more.
    pub lfu_log_factor: u32,
    /// Minutes without a use after which one use less is counted; 0: never.
    pub lfu_decay_minutes: u32,
}

impl EvictionSettings {
    /// Most keys that may be looked at for each that goes: Valkey's limit.
    pub const SAMPLES_MAX: u32 = 64;

    /// Most of the other two.
    pub const LFU_MAX: u32 = i32::MAX as u32;

    /// Those of Redis.
    pub const DEFAULT: Self =
        Self { policy: EvictionPolicy::NoEviction, samples: 5, lfu_log_factor: 10, lfu_decay_minutes: 1 };
}

impl Default for EvictionSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_known_by_their_names() {
        for policy in EvictionPolicy::ALL {
            assert_eq!(policy.name().to_ascii_uppercase().parse(), Ok(policy));
            assert_eq!(policy.is_of_expiring(), policy.name().starts_with("volatile"));
        }
        assert_eq!("allkeys-ttl".parse::<EvictionPolicy>(), Err(UnknownEvictionPolicy));
    }
}
