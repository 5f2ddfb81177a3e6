//! What a connection asks of the registry of subscriptions, and what it is told.
//!
//! The registry is its owner's: it knows the subscriptions of all connections and of other processes.

use syros_types::SubscriptionKind;

/// What a connection asks of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageRequest {
    /// Subscribe to these names; to be answered with [`MessageAnswer::Subscriptions`] or [`MessageAnswer::Refused`].
    Subscribe {
        /// What the names are of.
        kind: SubscriptionKind,
        /// The names; one at least.
        names: Vec<Vec<u8>>,
    },
    /// End the subscriptions to these names, or to all of this kind; to be answered with
    /// [`MessageAnswer::Subscriptions`].
    Unsubscribe {
        /// What the names are of.
        kind: SubscriptionKind,
        /// The names; all if there are none.
        names: Vec<Vec<u8>>,
    },
    /// End all subscriptions; to be answered with [`MessageAnswer::Subscriptions`] without changes.
    UnsubscribeAll,
    /// Send a message to subscribers; to be answered with [`MessageAnswer::Count`], the number of its receivers.
    Publish {
        /// Where it is published: a channel or a shard channel.
        kind: SubscriptionKind,
        /// The name of the channel.
        channel: Vec<u8>,
        /// The message.
        payload: Vec<u8>,
    },
    /// The names of channels with subscribers; to be answered with [`MessageAnswer::Names`].
    Names {
        /// Channels or shard channels.
        kind: SubscriptionKind,
        /// Only those that this glob pattern matches.
        pattern: Option<Vec<u8>>,
    },
    /// The numbers of subscribers of these channels; to be answered with [`MessageAnswer::Counts`].
    Counts {
        /// Channels or shard channels.
        kind: SubscriptionKind,
        /// The names.
        names: Vec<Vec<u8>>,
    },
    /// How many patterns have subscribers; to be answered with [`MessageAnswer::Count`].
    Patterns,
}

/// What the registry answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageAnswer {
    /// Subscriptions have begun or ended.
    Subscriptions {
        /// Each change, in the order of the request.
        changes: Vec<SubscriptionChange>,
        /// Subscriptions that the connection has now, by kind.
        held: [usize; 3],
    },
    /// The request would exceed a limit, and has changed nothing: the text of the error.
    Refused(String),
    /// A number.
    Count(u64),
    /// Names of channels.
    Names(Vec<Vec<u8>>),
    /// Channels and the numbers of their subscribers.
    Counts(Vec<(Vec<u8>, u64)>),
}

/// One subscription that has begun or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionChange {
    /// The name; `None` if there was no subscription to end.
    pub name: Option<Vec<u8>>,
    /// How many the connection has after it: channels and patterns together, or shard channels.
    pub left: usize,
}

/// A message for a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushedMessage<'a> {
    /// Where it was published: a channel or a shard channel.
    pub kind: SubscriptionKind,
    /// The pattern that has brought it, if one has.
    pub pattern: Option<&'a [u8]>,
    /// The name of the channel.
    pub channel: &'a [u8],
    /// The message.
    pub payload: &'a [u8],
}
