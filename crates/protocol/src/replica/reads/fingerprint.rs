//! What a model checker sees of a waiting read.

use super::WaitingRead;
use crate::fingerprint::Clock;
use core::hash::{Hash, Hasher};

impl WaitingRead {
    pub(in crate::replica) fn fingerprint(&self, clock: Clock, hasher: &mut impl Hasher) {
        let Self { to, number, asked, body, footprint: _, invoked, time } = self;
        (to, number, asked, body, time).hash(hasher);
        clock.exact(*invoked, hasher);
    }
}
