//! What a leader knows, for as long as it leads its view.

use super::ViewClients;
use super::advisor::Advisor;
use super::comparison::Comparison;
use super::waiting::{Waiter, WaitingRead};
use crate::durability_log::KeyIndex;
use crate::message::{Prepared, Request};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{Footprint, Group, Instant, NodeId, OpNumber, ReplicaId, ReplicaSet, Timestamp};

/// The member that leads a view.
#[derive(Clone, Debug)]
pub(in crate::replica) struct Leader {
    pub(in crate::replica) in_view: ViewClients,
    /// When it entered its view; `None` for the first one of its life.
    pub(in crate::replica) entered_at: Option<Instant>,
    /// The log as it was when the view began: others may have executed it.
    pub(in crate::replica) view_began_at: OpNumber,
    /// The time in which its view was to begin; `None` if the replica started with it.
    pub(in crate::replica) began_within: Option<Duration>,
    pub(in crate::replica) progress: Vec<Progress>,
    pub(in crate::replica) batch: Batch,
    /// An entry that `f` followers have on disk and this leader has not, and since when that is known.
    pub(in crate::replica) overtaken: Option<(OpNumber, Instant)>,
    pub(in crate::replica) waiters: BTreeMap<OpNumber, Vec<Waiter>>,
    /// Keys of the reads of several keys that wait for this leader's answer.
    pub(in crate::replica) reading: KeyIndex,
    pub(in crate::replica) reads_unconfirmed: VecDeque<WaitingRead>,
    pub(in crate::replica) comparison: Comparison,
    pub(in crate::replica) contact: Contact,
    /// How far the logs of a majority are durable, and how many reviews in a row they have not got on, though there is more in this one.
    pub(in crate::replica) got_to: (OpNumber, u32),
    /// Since when its own clock has contradicted the group's.
    pub(in crate::replica) clock_off_since: Option<Instant>,
    pub(in crate::replica) heartbeat_due: bool,
    /// Looked at some times in each second.
    pub(in crate::replica) advisor: Box<Advisor>,
    /// The nodes that have last asked for the two places by which the group would grow.
    pub(in crate::replica) newcomers: [Option<Newcomer>; 2],
}

/// A node that has asked for one of the two places by which the group would grow.
#[derive(Clone, Copy, Debug)]
pub(in crate::replica) struct Newcomer {
    /// The place.
    pub(in crate::replica) member: ReplicaId,
    pub(in crate::replica) node: NodeId,
    pub(in crate::replica) asked_at: Instant,
    /// It holds what the group does, but for the last few entries. (A node of an older build copies that when it is a member.)
    pub(in crate::replica) has_copied: bool,
}

/// What a leader knows of a member.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::replica) struct Progress {
    /// Its log is durable up to here, in this view.
    pub(in crate::replica) op_number: OpNumber,
    /// It has executed its log up to here.
    pub(in crate::replica) applied: OpNumber,
    /// The newest `sent_at` it has answered: it had not left the view when it did.
    pub(in crate::replica) heard: Option<Instant>,
    /// Until then, on this leader's clock, it has promised not to leave the view; less what clocks may drift.
    pub(in crate::replica) promised_until: Instant,
    /// When it last said that its disk is nearly full.
    pub(in crate::replica) disk_short: Option<Instant>,
    /// The furthest part of the log, or of a snapshot that replaces its beginning, that it has asked this leader for in
    /// order to enter the view: an entry and an offset.
    pub(in crate::replica) fetched: (OpNumber, u64),
    /// When that was.
    pub(in crate::replica) fetched_at: Option<Instant>,
    /// In so many reviews in a row it had answered nothing new.
    pub(in crate::replica) silent_reviews: u32,
    /// So many reviews ago it was silent for so long that it would have been left out, or had answered nothing yet.
    pub(in crate::replica) reviews_present: u32,
    /// What it had answered at the last review.
    pub(in crate::replica) heard_before: Option<Instant>,
    /// How long its answers took since the last review, in nanoseconds, and how many there were.
    pub(in crate::replica) answers: (u64, u32),
    /// How long they took on average before the last review, in nanoseconds; 0 if it has answered nothing.
    pub(in crate::replica) answer_time: u64,
    /// In so many reviews in a row it answered much later than others.
    pub(in crate::replica) slow_reviews: u32,
    /// So many reviews ago it last did so for long.
    pub(in crate::replica) prompt_reviews: u32,
}

impl Progress {
    /// The leader looks whether the member answers. One that has been silent for `absent_after` reviews is away.
    pub(in crate::replica) fn review(&mut self, absent_after: u32) {
        // One that fetches a part of the log is there, too.
        let heard = self.heard.max(self.fetched_at);
        if heard > self.heard_before {
            self.silent_reviews = 0;
        } else {
            self.silent_reviews = self.silent_reviews.saturating_add(1);
        }
        let is_present = heard.is_some() && self.silent_reviews < absent_after;
        self.reviews_present = if is_present { self.reviews_present.saturating_add(1) } else { 0 };
        self.heard_before = heard;
        let (took, count) = core::mem::take(&mut self.answers);
        if count > 0 {
            self.answer_time = (took / u64::from(count)).max(1);
        }
    }

    /// The member has answered what was sent to it so long ago.
    pub(in crate::replica) const fn on_answer(&mut self, took: Duration) {
        let (sum, count) = &mut self.answers;
        *sum = sum.saturating_add(took.as_nanos() as u64);
        *count = count.saturating_add(1);
    }

    /// The leader has compared the times that members take to answer. One that is late now and then, because messages take
    /// varying time, still counts as prompt; one that is late in so many reviews in a row as `lasting` does not.
    pub(in crate::replica) const fn judge(&mut self, is_slow: bool, lasting: u32) {
        self.slow_reviews = if is_slow { self.slow_reviews.saturating_add(1) } else { 0 };
        let is_prompt = self.slow_reviews < lasting;
        self.prompt_reviews = if is_prompt { self.prompt_reviews.saturating_add(1) } else { 0 };
    }
}

/// Entries at the end of the log that no Prepare has carried yet.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(in crate::replica) struct Batch {
    pub(in crate::replica) entries: Vec<Prepared>,
    /// Of the bodies that it carries.
    pub(in crate::replica) bytes: usize,
    /// Of those entries whose clients have not sent them to everybody: which they are, and who has been sent them.
    pub(in crate::replica) bodies: Vec<(usize, Request, ReplicaSet)>,
}

impl Batch {
    /// The next entry is this update; those its client has not sent it to get it with the Prepare.
    pub(in crate::replica) fn attach_body(&mut self, request: &Request, recipients: ReplicaSet) {
        self.bytes += request.body.len();
        self.bodies.push((self.entries.len(), request.clone(), recipients));
    }

    pub(in crate::replica) fn push(&mut self, prepared: Prepared) {
        if let Prepared::Full(request) = &prepared {
            self.bytes += request.body.len();
        }
        self.entries.push(prepared);
    }
}

/// Whether `f` followers answer the leader's signs of life.
#[derive(Clone, Copy, Debug)]
pub(in crate::replica) struct Contact {
    /// Signs of life that it has sent since `f` followers have answered one.
    pub(in crate::replica) unheard_signs: u32,
    /// When the next of them counts.
    pub(in crate::replica) unheard_again_at: Instant,
    /// The newest sign of life that `f` followers have answered.
    pub(in crate::replica) confirmed_until: Instant,
}

impl Contact {
    /// The leader sends a sign of life, which the followers are to answer. Counted are those that stay without an answer of
    /// `f` followers, and no more of them than heartbeats there would be.
    pub(in crate::replica) fn on_sign_sent(&mut self, now: Instant, heartbeat: Duration) {
        if now >= self.unheard_again_at {
            self.unheard_again_at = now.after(heartbeat);
            self.unheard_signs = self.unheard_signs.saturating_add(1);
        }
    }

    /// `f` followers have answered what was sent at this moment, or have got further at this moment.
    pub(in crate::replica) fn on_heard(&mut self, heard_at: Instant) {
        if self.confirmed_until < heard_at {
            self.confirmed_until = heard_at;
            self.unheard_signs = 0;
        }
    }
}

impl Leader {
    /// One that has just entered its view, with a log that ends with `view_began_at`.
    pub(in crate::replica) fn new(
        members: usize,
        now: Instant,
        entered_at: Option<Instant>,
        view_began_at: OpNumber,
    ) -> Self {
        Self {
            in_view: ViewClients::default(),
            entered_at,
            view_began_at,
            began_within: None,
            progress: vec![Progress::default(); members],
            batch: Batch::default(),
            overtaken: None,
            waiters: BTreeMap::new(),
            reading: KeyIndex::default(),
            reads_unconfirmed: VecDeque::new(),
            comparison: Comparison::default(),
            contact: Contact { unheard_signs: 0, unheard_again_at: now, confirmed_until: Instant(0) },
            got_to: (OpNumber(0), 0),
            clock_off_since: None,
            heartbeat_due: true,
            advisor: Box::default(),
            newcomers: [None; 2],
        }
    }

    /// The time in which its view was to begin, if that has not begun: `f` followers have never answered, and may hear nothing of
    /// it.
    pub(in crate::replica) fn missed_timeout(&self) -> Option<Duration> {
        self.began_within.filter(|_| self.contact.confirmed_until == Instant(0))
    }

    /// How far the logs of all members are durable, as far as this leader knows, which has its own up to `own`.
    pub(in crate::replica) fn durable(&self, me: ReplicaId, own: OpNumber) -> [OpNumber; Group::SIZE_MAX] {
        let mut durable = [OpNumber(0); Group::SIZE_MAX];
        for (place, progress) in durable.iter_mut().zip(&self.progress) {
            *place = progress.op_number;
        }
        durable[me.index()] = own;
        durable
    }

    /// A read waits for this leader's answer.
    pub(in crate::replica) fn on_read_waits(&mut self, footprint: &Footprint) {
        self.in_view.waiting += 1;
        if !footprint.is_one_key() {
            self.reading.add(footprint, Timestamp::default());
        }
    }

    /// A read does not wait any more.
    pub(in crate::replica) fn on_read_ends(&mut self, footprint: &Footprint) {
        self.in_view.waiting -= 1;
        if !footprint.is_one_key() {
            self.reading.remove(footprint);
        }
    }

    /// Computes anew which keys the waiting reads of several keys have.
    pub(in crate::replica) fn count_reading(&mut self) {
        self.reading.clear();
        let unapplied = self.in_view.reads_unapplied.values().flatten();
        for read in unapplied.chain(&self.reads_unconfirmed) {
            if !read.footprint.is_one_key() {
                self.reading.add(&read.footprint, Timestamp::default());
            }
        }
    }
}
