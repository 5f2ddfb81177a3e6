//! What a process says of itself when a connection is made, and the proof that goes with it.

use std::io;

use syros_protocol::agreement::SharedSettings;
use syros_protocol::formation::{Declaration, Stage};
use syros_types::{GroupId, Incarnation, ReplicaId};
use syros_wire::{Hello, Member, Nonce, Proof, Secret, Sender, Side};

/// What never changes about what a process says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Introduction {
    pub(crate) cluster: u64,
    /// None of a gateway.
    pub(crate) member: Option<OwnMember>,
    pub(crate) secret: Option<Secret>,
}

/// What never changes about what a node says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnMember {
    pub(crate) replica: ReplicaId,
    /// Drawn when the process starts.
    pub(crate) process: u64,
    pub(crate) incarnation: Incarnation,
    pub(crate) group: GroupId,
    pub(crate) settings: SharedSettings,
}

impl Introduction {
    /// What to say on a new connection. An error: the system gives no random numbers.
    pub(crate) fn hello(&self, declaration: Option<Declaration>) -> io::Result<Hello> {
        let nonce = self.secret.is_some().then(random_nonce).transpose()?;
        let sender = match (&self.member, declaration) {
            (Some(own), Some(declaration)) => {
                let OwnMember { replica: _, process, incarnation, group, mut settings } = *own;
                // The group may have grown or shrunk since the process started, even by this node.
                if let Stage::Acting(roster) = &declaration.stage
                    && roster.group().has(own.replica)
                {
                    settings.group = roster.group();
                }
                Sender::Replica(Box::new(Member { declaration, process, incarnation, group, settings }))
            }
            _ => Sender::Client,
        };
        Ok(Hello { cluster: self.cluster, nonce, sender })
    }
}

/// A number that nobody can foresee, and that is not drawn twice.
fn random_nonce() -> io::Result<Nonce> {
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(nonce)
}

/// A connection on which it has not been settled yet who is at the other end.
#[derive(Debug, Default)]
pub(crate) struct Greeting {
    /// If we made the connection: the replica that should be there.
    pub(crate) dialed: Option<ReplicaId>,
    /// What we have said, as it was sent.
    pub(crate) ours: Vec<u8>,
    /// What the other end has said, and as it was received.
    pub(crate) theirs: Option<(Box<Member>, Vec<u8>)>,
    /// The version of the wire format that it has said it in.
    pub(crate) version: u16,
}

/// Both handshakes of a connection that the other end made, as they were sent.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) dialer: Vec<u8>,
    pub(crate) acceptor: Vec<u8>,
}

impl Transcript {
    /// The proof of one side.
    pub(crate) fn prove(&self, secret: &Secret, side: Side) -> Proof {
        secret.prove(side, &self.dialer, &self.acceptor)
    }

    /// Checks the proof of the other side.
    pub(crate) fn verify(&self, secret: &Secret, proof: &Proof, side: Side) -> Result<(), String> {
        if secret.verify(proof, side, &self.dialer, &self.acceptor) {
            return Ok(());
        }
        Err("it does not know the cluster's secret; all nodes must have the same secret-file".to_owned())
    }
}
