//! An operation: a command, and whether its reply is wanted.

use crate::access::{Databases, Keys as _};
use crate::calling_user::CallingUser;
use crate::database_key::DatabaseKey;
use crate::encoding::{IN_DATABASE, put_head, take_opcode};
use crate::families::definition::KeyNames;
use crate::families::elements::length_of;
use crate::families::{
    Command, Eval, EvalRo, EvalSha, EvalShaRo, FCall, FCallRo, LibraryChange, RunTerms, XAwaitParts,
};
use crate::limits::WAITED_KEYS_MAX;
use crate::primitive::{Malformed, take_u8};
use syros_scripts::Flags;
use syros_types::{Class, Database, Footprint};

/// Bytes that an operation could touch while it goes through a key: 300,000 keys take 11 ms, and a script may go through some 20
/// million.
pub(crate) const KEY_WORK: usize = 8;

/// One operation: a command and whether its reply is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// What to do.
    pub command: Command<'a>,
    /// True for `BLIND <command>`: the reply is always `+OK`, whatever the command would have answered,
    /// an error included. Only an update can be blind.
    pub blind: bool,
    /// Where the keys are that it names. Of an operation that concerns all databases, such as FLUSHALL, it is the first.
    pub database: Database,
}

/// How an operation uses a script or a function.
#[derive(Debug)]
pub enum ScriptUse<'o, 'a> {
    /// It runs this text, and loads it so that others find it by its name: for that, all keys are its footprint.
    Text {
        /// The script.
        text: &'a [u8],
        /// False if it is loaded already.
        loads: &'o mut bool,
        /// It may touch keys that it does not declare.
        owns_everything: &'o mut bool,
    },
    /// It runs the script that is called so.
    Name {
        /// Hexadecimal digits.
        name: &'a [u8],
        /// True if the script may touch keys that it does not declare.
        owns_everything: &'o mut bool,
    },
    /// It calls this function.
    Function {
        /// The function's name.
        name: &'a [u8],
        /// True if the function may touch keys that it does not declare.
        owns_everything: &'o mut bool,
    },
    /// It runs a text that changes nothing, and does not load it.
    ReadText {
        /// It may touch keys that it does not declare.
        owns_everything: &'o mut bool,
    },
    /// It unloads all scripts.
    Flush,
}

/// The footprint of a script that declares no key: that of the key without a name. No key is touched, but an operation has a
/// footprint, and which one that is matters to nobody else.
const NO_KEY: &[u8] = b"";

impl<'a> Operation<'a> {
    /// The operation in the first database that wants its reply.
    #[must_use]
    pub fn new(command: impl Into<Command<'a>>) -> Self {
        Self { command: command.into(), blind: false, database: Database::FIRST }
    }

    /// The same in this database.
    #[must_use]
    pub fn in_database(self, database: Database) -> Self {
        if self.command.is_of_all_databases() { self } else { Self { database, ..self } }
    }

    /// The name of its command, in upper or lower case. Commands that differ in syntax only have one name: that of SETEX is
    /// `Set`, that of INCR and DECR `IncrBy`, and that of ZUNION and ZINTER `ZCombine`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.command.name()
    }

    /// Appends the operation's only encoding. What [`parse`](crate::parse) returns is within all
    /// limits; an operation built by hand has to be, or [`Operation::decode`] will refuse it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_head(out, self.database, self.command.opcode(), self.blind);
        self.command.encode_fields(out);
    }

    /// True if it is a command that its client wants to wait for: BLPOP and its like, XREAD and XREADGROUP with BLOCK.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        !self.blind
            && match &self.command {
                Command::Take(_) => true,
                Command::XRead(read) => read.get().block_ms.is_some(),
                Command::XReadGroup(read) => read.get().block_ms.is_some(),
                _ => false,
            }
    }

    /// False of one that may wait for entries of more streams than a command may wait for. One that waits for elements is
    /// refused when it has to wait.
    #[must_use]
    pub fn has_room_to_wait(&self) -> bool {
        matches!(self.command, Command::Take(_)) || self.keys().len() <= WAITED_KEYS_MAX
    }

    /// Appends the encoding of the operation as it is submitted for a client that may have to wait: XREAD is to say from
    /// where reading goes on if there is nothing. Its class and its keys are the same.
    pub fn encode_to_wait(&self, out: &mut Vec<u8>) {
        match &self.command {
            Command::XRead(read) if self.may_wait() => {
                XAwaitParts { is_renewed: false, read: read.get() }.encode_in(self.database, out);
            }
            _ => self.encode(out),
        }
    }

    /// Takes one operation off the front of `input`, which is left behind it.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no operation within the limits; `input` is then unspecified.
    #[inline]
    pub fn decode(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        match input.split_first() {
            Some((&IN_DATABASE, rest)) => {
                *input = rest;
                Self::decode_elsewhere(input)
            }
            _ => Self::decode_in_first(input),
        }
    }

    /// Takes an operation in another database than the first off the front of `input`, behind its mark.
    #[cold]
    fn decode_elsewhere(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let number = take_u8(input)?;
        let database = Database::new(number).filter(|database| !database.is_first());
        let database = database.ok_or(Malformed::Database(number))?;
        let operation = Self::decode_in_first(input)?;
        if operation.command.is_of_all_databases() {
            return Err(Malformed::Database(number));
        }
        Ok(Self { database, ..operation })
    }

    /// Takes an operation in the first database off the front of `input`.
    fn decode_in_first(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (opcode, blind) = take_opcode(input)?;
        let command = Command::decode(opcode, input)?;
        if blind && command.is_read() {
            return Err(Malformed::BlindRead(opcode));
        }
        Ok(Self { command, blind, database: Database::FIRST })
    }

    /// The operation's class, which its definition decides.
    ///
    /// An *overwrite* names one key and neither its effect on that key nor its reply depends on what
    /// was there before. A *merge* answers `+OK` whatever happens, and is no overwrite.
    #[must_use]
    #[inline]
    pub fn class(&self) -> Class {
        self.command.class(self.blind)
    }

    /// Bytes by which it may make the data grow, at most, but for what an engine keeps of each key beside its bytes; it
    /// takes `encoded` bytes itself. More than 0 for the commands that Redis refuses when there is no memory (`denyoom`),
    /// and for one that gives a key a longer name: what one replica has no room for, no other has.
    #[must_use]
    pub fn growth(&self, encoded: usize) -> usize {
        self.command.growth(encoded)
    }

    /// True if it may make the data grow.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.growth(0) > 0
    }

    /// True if it is an update whose reply is a count or a length that many applications ignore. A reply that says whether
    /// the update took place, or what is there, is none.
    #[must_use]
    pub fn counts(&self) -> bool {
        !self.blind && self.command.counts()
    }

    /// True if it is an update that answers OK unless the state forbids it, such as LTRIM, and many applications ignore
    /// that. It is none of those that answer OK in any case.
    #[must_use]
    pub fn confirms(&self) -> bool {
        !self.blind && self.command.confirms()
    }

    /// How many values its reply may hold.
    #[must_use]
    pub fn values(&self) -> u32 {
        if self.blind { 0 } else { self.command.values() }
    }

    /// About how many bytes are touched by executing it, beyond those of its encoding and its reply.
    #[must_use]
    pub fn work(&self) -> usize {
        self.command.work()
    }

    /// What an update draws from that depends on chance, such as SPOP; `None` of all others.
    ///
    /// Replicas have to draw the same, and the leader has to know the answer before the update has its place in the log. So
    /// the seed is a part of the body, like all else that an update depends on besides the data.
    /// [`parse`](crate::parse) knows nothing of chance and leaves 0 here: whoever makes bodies of what clients say draws a
    /// seed for each of them, once, and sends the same body again if there is no answer.
    pub fn seed_mut(&mut self) -> Option<&mut u64> {
        self.command.seed_mut()
    }

    /// The time that an update takes for the present, in milliseconds since the Unix epoch, such as XADD for the id of an
    /// entry; `None` of all updates whose result does not depend on it.
    ///
    /// Log time will not do: the leader has to know the answer before the update has its place in the log. So it is a part of
    /// the body, as the seed is, and [`parse`](crate::parse) leaves 0 here, too. The clocks of nodes differ, so what follows
    /// from it may only depend on more than it where time must not go back.
    pub fn now_mut(&mut self) -> Option<&mut u64> {
        self.command.now_mut()
    }

    /// The script that it runs, if it runs one, and what whoever makes the operation has to know of the script.
    pub fn script_mut(&mut self) -> Option<ScriptUse<'_, 'a>> {
        match &mut self.command {
            Command::Eval(Eval { call, loads, terms, .. }) => {
                let owns_everything = &mut terms.owns_everything;
                Some(ScriptUse::Text { text: call.subject(), loads, owns_everything })
            }
            Command::EvalSha(EvalSha { call, terms: RunTerms { owns_everything, .. }, .. })
            | Command::EvalShaRo(EvalShaRo { call, owns_everything, .. }) => {
                Some(ScriptUse::Name { name: call.subject(), owns_everything })
            }
            Command::FCall(FCall { call, terms: RunTerms { owns_everything, .. }, .. })
            | Command::FCallRo(FCallRo { call, owns_everything, .. }) => {
                Some(ScriptUse::Function { name: call.subject(), owns_everything })
            }
            Command::EvalRo(EvalRo { owns_everything, .. }) => Some(ScriptUse::ReadText { owns_everything }),
            Command::ScriptFlush(_) => Some(ScriptUse::Flush),
            _ => None,
        }
    }

    /// Visits the keys that the script or the function declares which it runs, also if that may touch others. False if it runs
    /// none.
    pub fn each_declared_key(&self, mut visit: impl FnMut(DatabaseKey<'a>)) -> bool {
        let call = match &self.command {
            Command::Eval(Eval { call, .. })
            | Command::EvalRo(EvalRo { call, .. })
            | Command::EvalSha(EvalSha { call, .. })
            | Command::EvalShaRo(EvalShaRo { call, .. })
            | Command::FCall(FCall { call, .. })
            | Command::FCallRo(FCallRo { call, .. }) => call,
            _ => return false,
        };
        call.input().keys.iter().for_each(|name| visit(self.key_of(name)));
        true
    }

    /// On what terms it runs a script or a function that may change keys, if it runs one.
    #[must_use]
    pub const fn terms(&self) -> Option<RunTerms> {
        self.command.terms()
    }

    /// The same, to be changed by whoever knows.
    pub const fn terms_mut(&mut self) -> Option<&mut RunTerms> {
        match &mut self.command {
            Command::Eval(Eval { terms, .. })
            | Command::EvalSha(EvalSha { terms, .. })
            | Command::FCall(FCall { terms, .. }) => Some(terms),
            _ => None,
        }
    }

    /// The user who runs the script or function that it runs, to be changed by whoever knows; `None` if it runs none.
    pub const fn user_mut(&mut self) -> Option<&mut CallingUser> {
        match &mut self.command {
            Command::Eval(Eval { terms, .. })
            | Command::EvalSha(EvalSha { terms, .. })
            | Command::FCall(FCall { terms, .. }) => Some(&mut terms.user),
            Command::EvalRo(EvalRo { user, .. })
            | Command::EvalShaRo(EvalShaRo { user, .. })
            | Command::FCallRo(FCallRo { user, .. }) => Some(user),
            _ => None,
        }
    }

    /// The same.
    #[must_use]
    pub fn user(&self) -> CallingUser {
        let mut operation = *self;
        operation.user_mut().copied().unwrap_or_default()
    }

    /// True if it changes users, unless it fails.
    #[must_use]
    pub const fn changes_users(&self) -> bool {
        matches!(self.command, Command::UserSet(_) | Command::UserDelete(_))
    }

    /// True if it runs a script with a line of flags that allows it to make the data grow, and not to do without memory. What is
    /// loaded is not looked at.
    pub(crate) fn wants_memory(&self) -> bool {
        let Command::Eval(Eval { call, .. }) = self.command else { return false };
        let flags = Flags::of_script(call.subject());
        flags.is_ok_and(|flags| flags.has_line && !flags.no_writes && !flags.out_of_memory)
    }

    /// True if it runs a script or a function that may change keys, as far as it says: what is loaded is not looked at.
    #[must_use]
    pub fn runs_writer(&self) -> bool {
        match self.command {
            Command::Eval(Eval { call, .. }) => {
                !Flags::of_script(call.subject()).is_ok_and(|flags| flags.no_writes)
            }
            Command::EvalSha(_) | Command::FCall(_) => true,
            _ => false,
        }
    }

    /// Units of fuel that a script, a function or a library may use; `None` of everything else.
    #[must_use]
    pub const fn fuel(&self) -> Option<u64> {
        match &self.command {
            Command::Eval(Eval { fuel, .. })
            | Command::EvalRo(EvalRo { fuel, .. })
            | Command::EvalSha(EvalSha { fuel, .. })
            | Command::EvalShaRo(EvalShaRo { fuel, .. })
            | Command::FCall(FCall { fuel, .. })
            | Command::FCallRo(FCallRo { fuel, .. })
            | Command::LibraryChange(LibraryChange { fuel, .. }) => Some(*fuel),
            _ => None,
        }
    }

    /// Lets a script, a function or a library use no more than so many units of fuel.
    pub fn limit_fuel(&mut self, most: u64) {
        if let Command::Eval(Eval { fuel, .. })
        | Command::EvalRo(EvalRo { fuel, .. })
        | Command::EvalSha(EvalSha { fuel, .. })
        | Command::EvalShaRo(EvalShaRo { fuel, .. })
        | Command::FCall(FCall { fuel, .. })
        | Command::FCallRo(FCallRo { fuel, .. })
        | Command::LibraryChange(LibraryChange { fuel, .. }) = &mut self.command
        {
            *fuel = most.min(*fuel);
        }
    }

    /// True if the keys that it names are used by it, to a policy of eviction.
    #[must_use]
    pub const fn uses_keys(&self) -> bool {
        self.command.uses_keys()
    }

    /// About how many bytes of large collections a read looks at, one after the other, that these keys have; looking for
    /// an element by itself counts as many. Of a read that looks at a few elements only, 0.
    #[must_use]
    #[inline]
    pub fn work_on(&self, databases: &impl Databases) -> usize {
        self.command.work_on(databases.database(self.database))
    }

    /// How long the values are that its keys have, in bytes, if it goes through whole values; of what goes through a part that
    /// its keys alone know, as many bytes as take so long. Otherwise 0. A script may do so thousands of times with the longest.
    pub(crate) fn bytes_gone_through(&self, databases: &impl Databases) -> usize {
        if !self.command.goes_through_values() {
            return self.command.bytes_gone_through(databases.database(self.database));
        }
        let mut bytes: usize = 0;
        self.each_key(|key| {
            let keys = databases.database(key.database);
            if let Some(found) = keys.get(key.name) {
                bytes = bytes.saturating_add(length_of(&found, keys.time_ms()));
            }
        });
        bytes
    }

    /// How many keys it goes through, whatever their values: all of a database, or as many as it is told to.
    pub(crate) fn keys_gone_through(&self, databases: &impl Databases) -> usize {
        match &self.command {
            Command::Keys(_) => databases.database(self.database).count(),
            Command::Scan(scan) => scan.keys_at_most(),
            _ => 0,
        }
    }

    /// True if the values of its keys decide how long it takes.
    pub(crate) const fn depends_on_values(&self) -> bool {
        self.command.goes_through_values()
            || self.command.is_read()
            || matches!(self.command, Command::XAutoClaim(_))
    }

    /// About how many bytes it touches, of itself and of the values that its keys have, when a replica executes it from the log.
    #[must_use]
    pub fn work_from_log(&self, databases: &impl Databases) -> usize {
        let of_keys = self.keys_gone_through(databases).saturating_mul(KEY_WORK);
        let of_values = self.work_on(databases).saturating_add(self.bytes_gone_through(databases));
        self.work().saturating_add(of_values).saturating_add(of_keys)
    }

    /// The hashes of the keys it touches.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        let keys = self.keys();
        match (keys, keys.single()) {
            (KeyNames::All, _) => Footprint::All,
            (_, Some(name)) => Footprint::One(self.key_of(name).hash()),
            (_, None) => {
                let mut hashes = Vec::with_capacity(keys.len().max(1));
                self.each_hash(|hash| hashes.push(hash));
                Footprint::of(hashes)
            }
        }
    }

    /// Visits the hashes of the keys it touches, one at least: a script that declares no key has one that nothing else has.
    pub(crate) fn each_hash(&self, mut visit: impl FnMut(u64)) {
        if matches!(self.keys(), KeyNames::Declared(list) if list.is_empty()) {
            visit(syros_types::key_hash(NO_KEY));
        }
        self.each_key(|key| visit(key.hash()));
    }

    /// The key of this name in its database.
    const fn key_of(&self, name: &'a [u8]) -> DatabaseKey<'a> {
        DatabaseKey { database: self.database, name }
    }

    /// Visits the keys it names. False, without a visit, if it concerns all there are.
    pub fn each_key(&self, mut visit: impl FnMut(DatabaseKey<'a>)) -> bool {
        match self.keys() {
            KeyNames::All => return false,
            KeyNames::Across { from, to, database } => {
                visit(self.key_of(from));
                visit(DatabaseKey { database, name: to });
            }
            keys => keys.each(|name| visit(self.key_of(name))),
        }
        true
    }

    /// The key, if it names exactly one, once: what may be packed into one body with others on the
    /// same key.
    #[must_use]
    pub fn single_key(&self) -> Option<DatabaseKey<'a>> {
        self.keys().single().map(|name| self.key_of(name))
    }

    /// True if it concerns all keys there are, or all of its database, which is taken for the same: SCAN, KEYS, RANDOMKEY,
    /// DBSIZE, FLUSHDB, FLUSHALL, SWAPDB. A body has few of them:
    /// [`WHOLE_KEYSPACE_OPERATIONS_MAX`](crate::limits::WHOLE_KEYSPACE_OPERATIONS_MAX).
    #[must_use]
    pub fn concerns_all_keys(&self) -> bool {
        matches!(self.keys(), KeyNames::All)
    }

    /// The keys it names.
    pub(crate) fn keys(&self) -> KeyNames<'a> {
        self.command.keys()
    }
}
