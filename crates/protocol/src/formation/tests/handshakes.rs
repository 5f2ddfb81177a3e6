//! Members that form a group over connections: the frames of a handshake, votes and broken connections in any order.

use super::*;
use alloc::collections::VecDeque;

/// What goes over a connection. The dialer speaks first.
#[derive(Clone, Copy, Debug)]
enum Frame {
    /// What a member said of itself when it said it.
    Hello(Declaration),
    /// The dialer knows the secret.
    Proof,
    /// The acceptor takes the dialer.
    Welcome,
    /// How far a member has come.
    Stage(Stage),
}

/// One end of a connection.
#[derive(Debug, Default)]
struct End {
    /// What has been sent to this end.
    inbound: VecDeque<Frame>,
    /// What the other end said of itself.
    theirs: Option<Declaration>,
    /// The handshake is over.
    is_welcome: bool,
    is_closed: bool,
}

/// A connection. The member with the higher id dials.
#[derive(Debug)]
struct Connection {
    members: [usize; 2],
    /// The dialer's, and the acceptor's.
    ends: [End; 2],
}

#[derive(Debug)]
struct Cluster {
    formations: Vec<Formation>,
    acts: Vec<Option<Roster>>,
    /// Of each pair of members, the connection that a member uses, by the number of the connection.
    uses: Vec<Vec<Option<usize>>>,
    connections: Vec<Connection>,
}

impl Cluster {
    fn new(size: usize, bug: Option<PlantedBug>) -> Self {
        let forming = |id: u8| {
            let formation = Formation::new(group(size), ReplicaId(id), node(10 + u64::from(id)), None);
            #[cfg(feature = "planted-bugs")]
            let formation = formation.plant(bug);
            #[cfg(not(feature = "planted-bugs"))]
            assert!(bug.is_none());
            formation
        };
        Self {
            formations: (0..size as u8).map(forming).collect(),
            acts: alloc::vec![None; size],
            uses: alloc::vec![alloc::vec![None; size]; size],
            connections: Vec::new(),
        }
    }

    fn declaration(&self, member: usize) -> Declaration {
        let declaration = self.formations[member].declaration();
        match self.acts[member] {
            Some(roster) => Declaration { stage: Stage::Acting(roster), ..declaration },
            None => declaration,
        }
    }

    fn dial(&mut self, dialer: usize, acceptor: usize) {
        let hello = Frame::Hello(self.declaration(dialer));
        let mut ends = [End::default(), End::default()];
        ends[1].inbound.push_back(hello);
        self.connections.push(Connection { members: [dialer, acceptor], ends });
    }

    /// True if the dialer has a connection to the acceptor, or tries to get one.
    fn is_dialed(&self, dialer: usize, acceptor: usize) -> bool {
        let is_open = |connection: &Connection| !connection.ends[0].is_closed;
        self.connections.iter().any(|one| one.members == [dialer, acceptor] && is_open(one))
    }

    /// One end finds out that the connection is broken. What the other end has sent is lost, and that end hears of
    /// nothing yet.
    fn close(&mut self, number: usize, side: usize) {
        let connection = &mut self.connections[number];
        let (member, other) = (connection.members[side], connection.members[1 - side]);
        connection.ends[side].is_closed = true;
        connection.ends[side].inbound.clear();
        if self.uses[member][other] == Some(number) {
            self.uses[member][other] = None;
            self.formations[member].lost(ReplicaId(other as u8));
        }
    }

    fn send(&mut self, number: usize, from: usize, frame: Frame) {
        let to = &mut self.connections[number].ends[1 - from];
        if !to.is_closed {
            to.inbound.push_back(frame);
        }
    }

    /// The handshake is over for one end.
    fn welcome(&mut self, number: usize, side: usize) {
        let (member, other) =
            (self.connections[number].members[side], self.connections[number].members[1 - side]);
        if let Some(older) = self.uses[member][other] {
            let its_side = usize::from(self.connections[older].members[1] == member);
            self.close(older, its_side);
        }
        self.uses[member][other] = Some(number);
        let end = &mut self.connections[number].ends[side];
        end.is_welcome = true;
        let theirs = end.theirs.expect("a hello comes first");
        self.formations[member].connected(&theirs);
    }

    /// One end reads one frame, and its member does what comes of it. False if there is nothing to read.
    fn read(&mut self, number: usize, side: usize) -> bool {
        let member = self.connections[number].members[side];
        let end = &mut self.connections[number].ends[side];
        let Some(frame) = end.inbound.pop_front() else { return false };
        match (frame, side) {
            (Frame::Hello(theirs), _) => {
                end.theirs = Some(theirs);
                let ours = self.declaration(member);
                let answer = if side == 0 { Frame::Proof } else { Frame::Hello(ours) };
                self.send(number, side, answer);
            }
            (Frame::Proof, _) => {
                self.welcome(number, side);
                self.send(number, side, Frame::Welcome);
            }
            (Frame::Welcome, _) => self.welcome(number, side),
            (Frame::Stage(stage), _) => {
                let theirs = end.theirs.expect("a hello comes first");
                self.formations[member].hear(&Declaration { stage, ..theirs });
            }
        }
        self.form(member);
        true
    }

    /// What a node does after everything that it has read.
    fn form(&mut self, member: usize) {
        if self.acts[member].is_some() {
            return;
        }
        let formation = &mut self.formations[member];
        let acts = loop {
            match formation.decide() {
                Decision::Vote(roster) => formation.voted(roster),
                Decision::Act(configuration) => break Some(configuration.roster),
                Decision::Wait(_) | Decision::Learn(_) => break None,
                Decision::Refuse(mismatch) => panic!("{mismatch}"),
            }
        };
        while let Some((other, stage)) = self.formations[member].next_to_tell() {
            let number = self.uses[member][other.index()].expect("only members that are connected are told");
            let side = usize::from(self.connections[number].members[1] == member);
            self.send(number, side, Frame::Stage(stage));
        }
        self.acts[member] = acts;
        if acts.is_some() {
            // It starts anew as a replica.
            self.ends_of(member).for_each(|(number, side)| self.close(number, side));
        }
    }

    fn ends_of(&self, member: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let side = |one: &Connection| one.members.iter().position(|other| *other == member);
        let ends: Vec<(usize, usize)> = self
            .connections
            .iter()
            .enumerate()
            .filter_map(|(number, one)| Some((number, side(one)?)))
            .collect();
        ends.into_iter()
    }

    /// Every member finds out which of its connections are broken.
    fn find_broken(&mut self) {
        for number in 0..self.connections.len() {
            for side in 0..2 {
                if self.connections[number].ends[1 - side].is_closed {
                    self.close(number, side);
                }
            }
        }
    }

    /// True if every member has heard how far the members are that it is connected with, once all is read that they sent.
    fn is_up_to_date(&self) -> bool {
        self.connections.iter().enumerate().all(|(number, connection)| {
            (0..2).all(|side| {
                let (member, other) = (connection.members[side], connection.members[1 - side]);
                let is_forming = self.acts[member].is_none() && self.acts[other].is_none();
                let is_used = is_forming
                    && self.uses[member][other] == Some(number)
                    && self.uses[other][member] == Some(number);
                let heard = self.formations[member].heard[other].map(|(_, vote)| vote);
                !is_used
                    || !connection.ends[side].inbound.is_empty()
                    || heard == Some(self.formations[other].vote)
            })
        })
    }

    /// Reads a frame somewhere, if there is one.
    fn read_any(&mut self, prng: &mut Prng) -> bool {
        let ends = 2 * self.connections.len() as u64;
        if ends == 0 {
            return false;
        }
        let first = prng.below(ends);
        (0..ends).map(|end| ((first + end) % ends) as usize).any(|end| self.read(end / 2, end % 2))
    }
}

/// Three members connect, and connections break; in the end none breaks any more, and all that was sent arrives. Gives
/// back whether every member was told of every vote, and all members act then. (If all survive, the member with the lowest
/// id hears every vote, because others dial it; by it, the others learn of votes that they were not told.)
fn is_formed(seed: u64, bug: Option<PlantedBug>) -> bool {
    const SIZE: usize = 3;
    let mut prng = Prng::new(seed);
    let mut cluster = Cluster::new(SIZE, bug);
    let mut breaks = prng.below(3);
    for _ in 0..400 {
        let (a, b) = (prng.below(SIZE as u64) as usize, prng.below(SIZE as u64) as usize);
        match prng.below(8) {
            0 | 1 if a > b && !cluster.is_dialed(a, b) => cluster.dial(a, b),
            2 if breaks > 0 && !cluster.connections.is_empty() => {
                breaks -= 1;
                // The acceptor hears of it when the dialer has connected anew, or at the end.
                let number = prng.below(cluster.connections.len() as u64) as usize;
                cluster.close(number, 0);
            }
            _ => {
                cluster.read_any(&mut prng);
            }
        }
        if !cluster.is_up_to_date() {
            return false;
        }
    }
    // Twice: a member may act only after the first.
    for _ in 0..2 {
        cluster.find_broken();
        for (dialer, acceptor) in [(1, 0), (2, 0), (2, 1)] {
            if !cluster.is_dialed(dialer, acceptor) {
                cluster.dial(dialer, acceptor);
            }
        }
        while cluster.read_any(&mut prng) {}
    }
    cluster.acts.iter().all(Option::is_some)
}

#[test]
fn votes_and_handshakes_overlap_in_any_order_and_all_members_act() {
    for seed in 0..20_000 {
        assert!(is_formed(seed, None), "seed {seed}");
    }
}

#[cfg(feature = "planted-bugs")]
#[test]
fn a_member_that_takes_the_handshake_for_enough_does_not_tell_others_of_its_vote() {
    assert!((0..20_000).any(|seed| !is_formed(seed, Some(PlantedBug::HandshakeTellsEnough))));
}
