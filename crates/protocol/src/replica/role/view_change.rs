//! What a replica knows between two views.

use crate::message::{DoViewChange, StartView};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{Instant, ReplicaId, ReplicaSet};

/// A view change under way.
#[derive(Clone, Debug)]
pub(in crate::replica) struct ViewChange {
    /// When the DoViewChange is sent again, and how long that takes if it is large.
    pub(in crate::replica) resend_change_at: Instant,
    pub(in crate::replica) carrying: Duration,
    pub(in crate::replica) timeout: Duration,
    /// New leader: what it was sent, its own included.
    pub(in crate::replica) changes: BTreeMap<ReplicaId, DoViewChange>,
    /// New leader: the `f + 1` senders whose logs it goes by, once it has as many.
    pub(in crate::replica) chosen: Vec<ReplicaId>,
    /// New leader: it has waited for the clocks of those that know that the leader has gone, and waits for those of others.
    pub(in crate::replica) awaits_others: bool,
    /// New leader: the `f + 1` members of the configuration that take part. They are the same but for where the size of the
    /// group has changed.
    pub(in crate::replica) senders: ReplicaSet,
    /// New leader: whom it fetches committed entries from before it can start the view.
    pub(in crate::replica) source: Option<ReplicaId>,
    /// The view's log, which has to be fetched first.
    pub(in crate::replica) transfer: Option<Transfer>,
}

/// A StartView that cannot be installed before the log up to its base is here.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(in crate::replica) struct Transfer {
    pub(in crate::replica) from: ReplicaId,
    pub(in crate::replica) start: Box<StartView>,
}
