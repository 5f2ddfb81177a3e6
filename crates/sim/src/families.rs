//! How many round trips the updates of each family of commands take, in virtual time: every link is as long as every other,
//! nothing else takes time, and nothing fails.

use crate::clock::VirtualTime;
use crate::history::OperationIndex;
use crate::scenario::{DELAY, Node, Play, Scenario};
use crate::swarm::SECOND;
use crate::workload::ClientCommand;
use syros_commands::Reply;
use syros_experiment::{Blend, KeyChoice, OperationStream, Records};
use syros_protocol::client::Outcome;
use syros_protocol::replica::Durability;
use syros_types::{FastQuorum, Prng};

/// Updates that a front end or a gateway has in flight at any time.
const IN_FLIGHT: usize = 8;

/// An update that takes longer is one that never ends.
const PATIENCE: VirtualTime = 60 * SECOND;

/// From a front end to the replica of its process.
const IN_PROCESS: VirtualTime = DELAY / 1_000;

/// The key of an operation, in the words of an [`UpdateKind`].
const KEY: &str = "{key}";

/// Another key, which no other operation has.
const OTHER_KEY: &str = "{other}";

/// One kind of update of a family.
#[derive(Clone, Copy, Debug)]
pub struct UpdateKind {
    /// The family.
    pub family: &'static str,
    /// How tables name it.
    pub name: &'static str,
    /// A command that comes first, once.
    first: Option<&'static [&'static str]>,
    /// The commands, which are executed as one if there are several.
    commands: &'static [&'static [&'static str]],
}

/// The name of a script that does not say which keys it touches.
const EVAL_ANY: &str = "EVAL, any keys";

const fn of(
    family: &'static str,
    name: &'static str,
    commands: &'static [&'static [&'static str]],
) -> UpdateKind {
    UpdateKind { family, name, first: None, commands }
}

/// What is measured of each family. The first ones answer OK whatever there was.
pub const UPDATE_KINDS: [UpdateKind; 21] = [
    of("string", "SET", &[&["SET", KEY, "v"]]),
    of("string", "APPEND", &[&["APPEND", KEY, "v"]]),
    of("string", "INCR", &[&["INCR", KEY]]),
    of("string", "SET NX", &[&["SET", KEY, "v", "NX"]]),
    of("string", "MSET of 2", &[&["MSET", KEY, "v", OTHER_KEY, "v"]]),
    of("generic", "DEL", &[&["DEL", KEY]]),
    of("generic", "EXPIRE", &[&["EXPIRE", KEY, "100"]]),
    of("hash", "HSET", &[&["HSET", KEY, "f", "v"]]),
    of("list", "RPUSH", &[&["RPUSH", KEY, "v"]]),
    of("list", "LPOP", &[&["LPOP", KEY]]),
    of("set", "SADD", &[&["SADD", KEY, "m"]]),
    of("sorted-set", "ZADD", &[&["ZADD", KEY, "1", "m"]]),
    of("stream", "XADD", &[&["XADD", KEY, "MAXLEN", "100", "1-*", "f", "v"]]),
    of("bitmap", "SETBIT", &[&["SETBIT", KEY, "7", "1"]]),
    of("hyperloglog", "PFADD", &[&["PFADD", KEY, "m"]]),
    of("geo", "GEOADD", &[&["GEOADD", KEY, "13", "38", "m"]]),
    of("transactions", "MULTI of 2 keys", &[&["INCR", KEY], &["INCR", OTHER_KEY]]),
    UpdateKind {
        first: Some(&["SCRIPT", "LOAD", "return redis.call('incr', KEYS[1])"]),
        ..of(
            "scripting",
            "EVALSHA, keys declared",
            &[&["EVALSHA", "2bab3b661081db58bd2341920e0ba7cf5dc77b25", "1", KEY]],
        )
    },
    of(
        "scripting",
        EVAL_ANY,
        &[&["EVAL", "#!lua flags=allow-undeclared-keys\nreturn redis.call('incr', KEYS[1])", "1", KEY]],
    ),
    of("databases", "MOVE", &[&["MOVE", KEY, "1"]]),
    of("databases", "SWAPDB", &[&["SWAPDB", "2", "3"]]),
];

impl UpdateKind {
    /// True if no update leaves it alone.
    #[must_use]
    pub fn concerns_everything(&self) -> bool {
        !self.commands.iter().flat_map(|words| words.iter()).any(|word| *word == KEY) || self.name == EVAL_ANY
    }

    /// The commands for a key.
    fn steps(&self, key: u64, number: u64) -> Vec<ClientCommand> {
        let word = |word: &&str| match *word {
            // Keys of their own: those of the simulator's clients are called otherwise, and have counters.
            KEY => format!("record{key}").into_bytes(),
            OTHER_KEY => format!("other{number}").into_bytes(),
            word => word.as_bytes().to_vec(),
        };
        self.commands.iter().map(|words| ClientCommand::Unjudged(words.iter().map(word).collect())).collect()
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The Redis ports of all nodes.
    Nodes,
    /// So many gateways or native clients.
    Gateways(usize),
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Families {
    /// Size of the group, which goes by the default rule for fast quorums.
    pub replicas: usize,
    /// Who asks. Each has eight updates in flight.
    pub place: Place,
    /// Of which keys.
    pub choice: KeyChoice,
    /// Number of keys.
    pub keys: u64,
    /// Updates that are counted, for each kind. A tenth as many come first and are not.
    pub updates: u64,
    /// Seed of the choice of keys.
    pub seed: u64,
}

/// How many updates took how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// All.
    pub updates: u64,
    /// One round trip, or less.
    pub one: u64,
    /// Longer than that, and one and a half at most.
    pub one_and_a_half: u64,
    /// Longer than that, and two at most.
    pub two: u64,
}

impl RoundTrips {
    fn add(&mut self, took: VirtualTime) {
        // A front end's own replica is near, not nowhere.
        let halves = took.saturating_sub(2 * IN_PROCESS).div_ceil(DELAY);
        self.updates += 1;
        match halves {
            0..=2 => self.one += 1,
            3 => self.one_and_a_half += 1,
            4 => self.two += 1,
            _ => {}
        }
    }
}

impl Families {
    /// Measures one kind of update, in a group of its own.
    ///
    /// # Errors
    /// An update that failed, or did not end; more than the simulator has room for.
    pub fn measure(&self, kind: &UpdateKind) -> Result<RoundTrips, String> {
        let mut load = Load::start(self, kind)?;
        load.run()?;
        Ok(load.counted)
    }
}

/// A measurement under way.
struct Load<'a> {
    families: &'a Families,
    kind: &'a UpdateKind,
    play: Play,
    clients: Vec<usize>,
    keys: OperationStream,
    records: Records,
    /// What is in flight, and whose it is.
    asked: Vec<(usize, OperationIndex)>,
    /// Updates asked for so far.
    begun: u64,
    counted: RoundTrips,
}

impl<'a> Load<'a> {
    fn start(families: &'a Families, kind: &'a UpdateKind) -> Result<Self, String> {
        let blend: Blend = "nilext".parse().map_err(|error| format!("{error:?}"))?;
        let keys = OperationStream::new(blend, families.choice, families.keys, Prng::new(families.seed))
            .map_err(|error| error.to_string())?;
        let scenario = Scenario::new(families.replicas)
            .fast_quorum(FastQuorum::Mixed)
            .durability(Durability::Replicated);
        let has_front_ends = families.place == Place::Nodes;
        let mut play = scenario
            .with(|swarm| {
                swarm.own_front_ends = has_front_ends;
                swarm.protocol.direct_gain_min = syros_protocol::client::Settings::new().direct_gain_min;
            })
            .start();
        let count = match families.place {
            Place::Nodes => families.replicas,
            Place::Gateways(count) => count,
        };
        let mut clients = Vec::new();
        for number in 0..count {
            let client = play.client();
            if has_front_ends {
                let (client, replica) = (Node::Client(client), Node::Replica(number));
                play.set_delay(client, replica, IN_PROCESS);
                play.set_delay(replica, client, IN_PROCESS);
            }
            clients.push(client);
        }
        if let (Some(words), Some(client)) = (kind.first, clients.first()) {
            let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            play.call(*client, ClientCommand::Unjudged(words));
            // Until nothing of it is pending any more.
            play.run(100 * DELAY);
        }
        Ok(Self {
            families,
            kind,
            play,
            clients,
            keys,
            records: Records::new(families.keys),
            asked: Vec::new(),
            begun: 0,
            counted: RoundTrips::default(),
        })
    }

    fn run(&mut self) -> Result<(), String> {
        for client in self.clients.clone() {
            for _ in 0..IN_FLIGHT {
                self.ask(client);
            }
        }
        while !self.asked.is_empty() {
            let world = self.play.world();
            let deadline = world.now() + PATIENCE;
            world.run_until_one_ends(deadline).map_err(|problem| format!("{}: {problem}", self.kind.name))?;
            let (ended, asked): (Vec<_>, Vec<_>) = core::mem::take(&mut self.asked)
                .into_iter()
                .partition(|(_, operation)| world.history.get(*operation).finished.is_some());
            self.asked = asked;
            for (client, operation) in ended {
                self.end(operation)?;
                self.ask(client);
            }
        }
        Ok(())
    }

    /// Has a client ask for its next update, if there are any left.
    fn ask(&mut self, client: usize) {
        if self.begun == self.families.updates + self.families.updates / 10 {
            return;
        }
        self.begun += 1;
        let key = self.keys.draw(&mut self.records, core::time::Duration::ZERO).key;
        let operation = self.play.world().submit(client, self.kind.steps(key, self.begun));
        self.asked.push((client, operation));
    }

    fn end(&mut self, operation: OperationIndex) -> Result<(), String> {
        let world = self.play.world();
        let invocation = world.history.get(operation);
        let Some(finished) = &invocation.finished else { return Ok(()) };
        let is_good = match &finished.outcome {
            Outcome::Done => true,
            Outcome::Reply(body) => {
                let replies = Reply::decode_all(body).unwrap_or_default();
                !replies.is_empty() && !replies.iter().any(|reply| matches!(reply, Reply::Error(_)))
            }
            _ => false,
        };
        if !is_good {
            return Err(format!("{} ended as {:?}", self.kind.name, finished.outcome));
        }
        // The first ones in the history are those of clients that connect.
        if self.begun > self.families.updates / 10 {
            self.counted.add(finished.at - invocation.invoked_at);
        }
        Ok(())
    }
}
