//! The virtual network: what becomes of a message that somebody sends.
//!
//! Every directed link has its own delay. Links lose, duplicate and reorder, hold single messages back
//! for long enough to arrive views later, and can be cut one way or both. What is in flight when a
//! link is cut arrives all the same unless the swarm says otherwise. A hold concerns one kind of message: all of
//! that kind wait until it ends, and all others overtake them: the schedules that a reviewer writes by hand.

use crate::clock::VirtualTime;
use std::collections::BTreeSet;
use syros_regions::{Line, Traffic};
use syros_types::Prng;

/// A process as the network sees it: replicas first, then client slots.
pub type NodeIndex = usize;

/// What the network does to messages; all probabilities in parts per million.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkFaults {
    /// Shortest and longest one-way delay a link may be given, nanoseconds.
    pub delay: (u64, u64),
    /// Longest additional delay of a single message, nanoseconds.
    pub jitter: u64,
    /// Messages that vanish.
    pub loss_ppm: u64,
    /// Links of a hundred that lose half of their messages.
    pub bad_link_percent: u64,
    /// Messages that arrive twice.
    pub duplicate_ppm: u64,
    /// Messages of which a bit flips on the way.
    pub flip_ppm: u64,
    /// Messages held back, each by up to `straggle`.
    pub straggler_ppm: u64,
    /// Longest time a straggler is held back, nanoseconds.
    pub straggle: u64,
    /// What so many of the processes send, replicas first, is neither lost nor held back.
    pub spared: usize,
    /// Cutting a link also drops what is in flight on it.
    pub cut_drops_in_flight: bool,
    /// Messages of one link never overtake each other.
    pub in_order: bool,
}

impl NetworkFaults {
    /// A network that delivers everything once, in order, after exactly `delay` nanoseconds.
    #[must_use]
    pub const fn none(delay: u64) -> Self {
        Self {
            delay: (delay, delay),
            jitter: 0,
            loss_ppm: 0,
            bad_link_percent: 0,
            duplicate_ppm: 0,
            flip_ppm: 0,
            straggler_ppm: 0,
            straggle: 0,
            spared: 0,
            cut_drops_in_flight: false,
            in_order: true,
        }
    }
}

/// What a bad link loses: enough to miss out on most of what the others know, not enough to be dead.
const BAD_LINK_LOSS_PPM: u64 = 500_000;

/// One direction between two processes.
#[derive(Clone, Debug)]
struct Link {
    delay: u64,
    loss_ppm: u64,
    cut: bool,
    /// When the last message on it arrives, for links that keep order.
    busy_until: VirtualTime,
    /// What decides when messages arrive instead, if the link is a line between regions.
    traffic: Option<Traffic>,
}

/// Messages of one kind that do not arrive before it ends.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Who sends them, if only one does.
    pub from: Option<NodeIndex>,
    /// To whom, if only to one.
    pub to: Option<NodeIndex>,
    /// Which kind: the first byte of a message says.
    pub kind: u8,
    /// When it ends.
    pub until: VirtualTime,
    /// They are lost instead.
    pub drops: bool,
}

impl Hold {
    fn concerns(&self, from: NodeIndex, to: NodeIndex, kind: u8) -> bool {
        self.kind == kind && self.from.is_none_or(|it| it == from) && self.to.is_none_or(|it| it == to)
    }
}

/// When a message arrives: not at all, once, or twice.
pub type Arrivals = [Option<VirtualTime>; 2];

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// When it arrives.
    pub arrivals: Arrivals,
    /// It vanishes; not if the link is cut, which is a fault of its own.
    pub lost: bool,
    /// So many of its arrivals are held back.
    pub held_back: u64,
    /// A bit of it flips: which one, counted on from the first to the last and again from the first.
    pub flipped: Option<u64>,
}

impl Fate {
    const fn never(lost: bool) -> Self {
        Self { arrivals: [None, None], lost, held_back: 0, flipped: None }
    }

    /// True if it arrives twice.
    #[must_use]
    pub const fn duplicated(&self) -> bool {
        self.arrivals[1].is_some()
    }
}

/// All links between all processes.
#[derive(Debug)]
pub struct Network {
    nodes: usize,
    links: Vec<Link>,
    faults: NetworkFaults,
    prng: Prng,
    /// No more than the nemesis strikes while the longest lasts.
    holds: Vec<Hold>,
    /// Kinds of messages that were sent.
    kinds: BTreeSet<u8>,
}

impl Network {
    /// A network between `nodes` processes; link delays are drawn from `prng`.
    #[must_use]
    pub fn new(nodes: usize, faults: NetworkFaults, mut prng: Prng) -> Self {
        let (shortest, longest) = faults.delay;
        let links = (0..nodes * nodes)
            .map(|link| {
                let delay = shortest + prng.below(longest - shortest + 1);
                let bad = prng.chance(faults.bad_link_percent, 100);
                let loss_ppm = match bad {
                    _ if link / nodes < faults.spared => 0,
                    true => BAD_LINK_LOSS_PPM,
                    false => faults.loss_ppm,
                };
                Link { delay, loss_ppm, cut: false, busy_until: 0, traffic: None }
            })
            .collect();
        Self { nodes, links, faults, prng, holds: Vec::new(), kinds: BTreeSet::new() }
    }

    /// Decides what becomes of a message that is sent now.
    pub fn send(&mut self, from: NodeIndex, to: NodeIndex, now: VirtualTime, message: &[u8]) -> Fate {
        let fate = self.send_anyhow(from, to, now, message.len());
        let Some(kind) = message.first().copied() else { return fate };
        self.kinds.insert(kind);
        self.holds.retain(|hold| hold.until > now);
        let concerning = self.holds.iter().filter(|hold| hold.concerns(from, to, kind));
        let Some(hold) = concerning.max_by_key(|hold| (hold.drops, hold.until)) else { return fate };
        if from < self.faults.spared || fate.arrivals[0].is_none() {
            return fate;
        }
        if hold.drops {
            return Fate::never(true);
        }
        let mut held_back = 0;
        let arrivals = fate.arrivals.map(|arrival| {
            held_back += u64::from(arrival.is_some_and(|at| at < hold.until));
            arrival.map(|at| at.max(hold.until))
        });
        Fate { arrivals, held_back: fate.held_back + held_back, ..fate }
    }

    /// Holds one kind of message back, or loses it, from now on.
    pub fn hold(&mut self, hold: Hold) {
        self.holds.push(hold);
    }

    /// The kinds of messages that were sent until now.
    #[must_use]
    pub const fn kinds(&self) -> &BTreeSet<u8> {
        &self.kinds
    }

    fn send_anyhow(&mut self, from: NodeIndex, to: NodeIndex, now: VirtualTime, bytes: usize) -> Fate {
        let faults = &self.faults;
        let link = &mut self.links[from * self.nodes + to];
        let prng = &mut self.prng;
        if link.cut {
            return Fate::never(false);
        }
        if let Some(traffic) = &mut link.traffic {
            let arrivals = [Some(traffic.arrival(now, bytes)), None];
            return Fate { arrivals, lost: false, held_back: 0, flipped: None };
        }
        if link.loss_ppm > 0 && prng.chance(link.loss_ppm, 1_000_000) {
            return Fate::never(true);
        }
        let mut held_back = 0;
        let mut arrival = |prng: &mut Prng| {
            let mut at = now + link.delay;
            if faults.jitter > 0 {
                at += prng.below(faults.jitter);
            }
            if faults.straggler_ppm > 0
                && from >= faults.spared
                && prng.chance(faults.straggler_ppm, 1_000_000)
            {
                held_back += 1;
                at += prng.below(faults.straggle);
            } else if faults.in_order {
                at = at.max(link.busy_until);
                link.busy_until = at;
            }
            at
        };
        let first = arrival(prng);
        let mut second = None;
        if faults.duplicate_ppm > 0 && prng.chance(faults.duplicate_ppm, 1_000_000) {
            second = Some(arrival(prng));
        }
        let flipped =
            (faults.flip_ppm > 0 && prng.chance(faults.flip_ppm, 1_000_000)).then(|| prng.next_u64());
        Fate { arrivals: [Some(first), second], lost: false, held_back, flipped }
    }

    /// True if what arrives now on this link is to be dropped.
    #[must_use]
    pub fn drops_arrival(&self, from: NodeIndex, to: NodeIndex) -> bool {
        self.faults.cut_drops_in_flight && self.is_cut(from, to)
    }

    /// True if nothing gets from `from` to `to`.
    #[must_use]
    pub fn is_cut(&self, from: NodeIndex, to: NodeIndex) -> bool {
        self.links[from * self.nodes + to].cut
    }

    /// Cuts or mends one direction.
    pub fn set_cut(&mut self, from: NodeIndex, to: NodeIndex, cut: bool) {
        self.links[from * self.nodes + to].cut = cut;
    }

    /// Sets the delay of one direction, nanoseconds.
    pub fn set_delay(&mut self, from: NodeIndex, to: NodeIndex, delay: u64) {
        self.links[from * self.nodes + to].delay = delay;
    }

    /// Makes one direction a line between regions; nothing else happens to messages on it.
    pub(crate) fn set_line(&mut self, from: NodeIndex, to: NodeIndex, line: Line) {
        let link = &mut self.links[from * self.nodes + to];
        link.delay = line.delay.as_nanos() as u64;
        link.traffic = Some(Traffic::new(line, self.prng.fork()));
    }

    /// The delay of one direction, nanoseconds.
    #[must_use]
    pub fn delay(&self, from: NodeIndex, to: NodeIndex) -> u64 {
        self.links[from * self.nodes + to].delay
    }

    /// Mends every link.
    pub fn heal(&mut self) {
        self.links.iter_mut().for_each(|link| link.cut = false);
    }

    /// Ends loss, duplication, stragglers and holds for good; delays and jitter stay.
    pub fn calm(&mut self) {
        self.heal();
        self.holds.clear();
        self.links.iter_mut().for_each(|link| link.loss_ppm = 0);
        self.faults.duplicate_ppm = 0;
        self.faults.flip_ppm = 0;
        self.faults.straggler_ppm = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_network_is_exact() {
        let mut network = Network::new(3, NetworkFaults::none(700), Prng::new(1));
        let once = |at| Fate { arrivals: [Some(at), None], lost: false, held_back: 0, flipped: None };
        for now in [0, 10, 1_000] {
            assert_eq!(network.send(0, 2, now, &[1]), once(now + 700));
        }
        network.set_cut(0, 2, true);
        assert_eq!(network.send(0, 2, 0, &[1]), Fate::never(false));
        assert_eq!(network.send(2, 0, 0, &[1]), once(700), "the other direction is another link");
        network.heal();
        assert!(!network.is_cut(0, 2));
    }

    #[test]
    fn a_hold_concerns_one_kind_until_it_ends() {
        let mut network = Network::new(3, NetworkFaults::none(700), Prng::new(1));
        let arrives = |network: &mut Network, to, now, kind| network.send(0, to, now, &[kind, 9]).arrivals[0];
        network.hold(Hold { from: Some(0), to: None, kind: 7, until: 5_000, drops: false });
        network.hold(Hold { from: None, to: Some(2), kind: 8, until: 5_000, drops: true });
        assert_eq!(arrives(&mut network, 1, 0, 7), Some(5_000));
        assert_eq!(arrives(&mut network, 1, 4_900, 7), Some(5_600), "it would have come later anyway");
        assert_eq!(arrives(&mut network, 1, 4_900, 8), Some(5_600));
        assert_eq!(arrives(&mut network, 2, 4_900, 8), None);
        assert_eq!(arrives(&mut network, 2, 5_000, 8), Some(5_700));
        assert_eq!(arrives(&mut network, 1, 5_000, 7), Some(5_700));
        assert_eq!(network.kinds().iter().copied().collect::<Vec<_>>(), [7, 8]);
        network.hold(Hold { from: None, to: None, kind: 7, until: 9_000, drops: true });
        network.calm();
        assert_eq!(arrives(&mut network, 1, 5_100, 7), Some(5_800));
    }

    #[test]
    fn faults_happen_about_as_often_as_asked() {
        let faults = NetworkFaults {
            loss_ppm: 100_000,
            duplicate_ppm: 200_000,
            straggler_ppm: 50_000,
            straggle: 1_000_000,
            jitter: 10,
            in_order: false,
            ..NetworkFaults::none(100)
        };
        let mut network = Network::new(2, faults, Prng::new(7));
        let (mut lost, mut doubled, mut late) = (0, 0, 0);
        for _ in 0..10_000 {
            let fate = network.send(0, 1, 0, &[1]);
            lost += u64::from(fate.lost);
            doubled += u64::from(fate.duplicated());
            late += u64::from(fate.arrivals[0].is_some_and(|at| at > 200));
        }
        assert!((800..1_200).contains(&lost), "{lost}");
        assert!((1_500..2_100).contains(&doubled), "{doubled}");
        assert!((350..550).contains(&late), "{late}");
    }
}
