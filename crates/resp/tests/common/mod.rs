//! A store of one hash table, and a driver that runs a connection against it.
#![allow(dead_code, reason = "every test file uses a part of this")]

mod lists;

mod sorted_sets;

use std::collections::BTreeMap;
use std::sync::Arc;
use syros_commands::access::Version;
use syros_commands::families::{
    Append, Del, Draws, Exists, FieldPart, Get, GetDel, HDel, HGetAll, HRandField, HScan, HSet, HSetNx,
    IncrBy, MGet, MSet, Move, Rename, SAdd, SCard, SInter, SInterCard, SInterStore, SMIsMember, SMembers,
    SMove, SPop, SRandMember, SScan, SetOperator, SetParts, StrLen, SwapDb, Unchanged, Versions,
};
use syros_commands::{
    Command, Condition, Operation, Reply, describe, operations, put_array, put_bulk, put_error, put_integer,
    put_map, put_nil, put_ok, put_pairs, put_set,
};
use syros_resp::{Completion, Connection, Context, Identity, ServerInfo, ServerReport, Submission};
use syros_types::{Database, WallTime};

pub(crate) struct Server;

impl ServerInfo for Server {
    fn report(&self) -> ServerReport {
        let mut report = ServerReport {
            version: "0.1.0".into(),
            clients_max: 10_000,
            role: "leader".into(),
            status: "normal".into(),
            ..ServerReport::default()
        };
        report.databases[0].keys = 3;
        report
    }
    fn reset_statistics(&self) {}
}

pub(crate) const CONTEXT: Context<'static> =
    Context { now: WallTime(1_700_000_000_123_456), info: &Server, unavailable: None };

pub(crate) fn connection(id: u64) -> Connection {
    let identity = Identity { id, address: "127.0.0.1:50000".into(), local_address: "127.0.0.1:6379".into() };
    Connection::new(identity, CONTEXT.now)
}

/// A request as client libraries send it.
pub(crate) fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// Requests of words separated by blanks, one request per line.
pub(crate) fn requests(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| request(&line.split(' ').collect::<Vec<_>>())).collect()
}

/// Keys and values of the first database, and others.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestStore(pub(crate) BTreeMap<Vec<u8>, Vec<u8>>, Changes, BTreeMap<Database, TestStore>);

/// Which body has changed a key last.
#[derive(Clone, Debug, Default)]
struct Changes {
    is_recorded: bool,
    body: u64,
    keys: BTreeMap<Vec<u8>, u64>,
}

impl TestStore {
    /// Executes a body; the encoded replies.
    pub(crate) fn execute(&mut self, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.1.body += 1;
        for operation in operations(body) {
            let operation = operation.expect("a well-formed body");
            let before = out.len();
            self.execute_one(&operation, &mut out);
            let is_condition = matches!(operation.command, Command::Unchanged(_));
            if is_condition && Reply::decode(&mut &out[before..]) == Ok(Reply::Nil) {
                break;
            }
        }
        out
    }

    fn insert(&mut self, key: &[u8], value: Vec<u8>) -> Option<Vec<u8>> {
        self.1.keys.insert(key.to_vec(), self.1.body);
        self.0.insert(key.to_vec(), value)
    }

    fn remove(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let old = self.0.remove(key)?;
        self.1.keys.insert(key.to_vec(), self.1.body);
        Some(old)
    }

    fn version(&self, key: &[u8]) -> Version {
        let changed = self.1.keys.get(key).copied().unwrap_or(0);
        match self.0.contains_key(key) {
            _ if !self.1.is_recorded => Version::UNKNOWN,
            true => Version::of_present(changed),
            false => Version::of_absent(changed),
        }
    }

    /// Executes a submission; how it would end.
    pub(crate) fn run(&mut self, submission: &Submission) -> Completion {
        let description = describe(&submission.body).expect("a well-formed body");
        assert_eq!(description.class, submission.class);
        assert_eq!(description.footprint, submission.footprint);
        let reply = self.execute(&submission.body);
        if submission.class.is_nilext() {
            let replies = Reply::decode_all(&reply).expect("replies");
            assert!(replies.iter().all(|reply| *reply == Reply::Ok), "nilext updates answer OK: {replies:?}");
            return Completion::Done;
        }
        Completion::Reply(Arc::from(reply))
    }

    fn execute_one(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        let before = out.len();
        self.execute_in(operation.database, &operation.command, out);
        if operation.blind {
            out.truncate(before);
            put_ok(out);
        }
    }

    /// Executes a command in a database.
    fn execute_in(&mut self, database: Database, command: &Command<'_>, out: &mut Vec<u8>) {
        match *command {
            Command::FlushAll(_) => {
                self.clear();
                let numbers: Vec<Database> = self.2.keys().copied().collect();
                numbers.iter().for_each(|database| self.of(*database).clear());
                put_ok(out);
            }
            Command::SwapDb(SwapDb { first, second }) => {
                if first != second {
                    let all = std::mem::take(&mut self.of(first).0);
                    let others = std::mem::replace(&mut self.of(second).0, all);
                    self.of(first).0 = others;
                    // Keys that exist in either have changed.
                    let names = |store: &Self| store.0.keys().cloned().collect::<Vec<_>>();
                    for name in [names(self.of(first)), names(self.of(second))].concat() {
                        for database in [first, second] {
                            let store = self.of(database);
                            store.1.keys.insert(name.clone(), store.1.body);
                        }
                    }
                }
                put_ok(out);
            }
            Command::Move(Move { to, .. }) if to == database => {
                put_error(out, b"ERR source and destination objects are the same");
            }
            Command::Move(Move { key, to }) => {
                let is_free = !self.of(to).0.contains_key(key);
                let moved = if is_free { self.of(database).remove(key) } else { None };
                put_integer(out, i64::from(moved.is_some()));
                moved.map(|value| self.of(to).insert(key, value));
            }
            _ => self.of(database).execute_command(command, out),
        }
    }

    /// The keys of a database.
    fn of(&mut self, database: Database) -> &mut Self {
        if database.is_first() {
            return self;
        }
        let Changes { is_recorded, body, .. } = self.1;
        let other = self.2.entry(database).or_default();
        (other.1.is_recorded, other.1.body) = (is_recorded, body);
        other
    }

    fn clear(&mut self) {
        let keys: Vec<Vec<u8>> = self.0.keys().cloned().collect();
        keys.iter().for_each(|key| drop(self.remove(key)));
    }

    fn put_value(&self, key: &[u8], out: &mut Vec<u8>) {
        match self.0.get(key) {
            Some(value) => put_bulk(out, value),
            None => put_nil(out),
        }
    }

    fn execute_command(&mut self, command: &Command<'_>, out: &mut Vec<u8>) {
        match *command {
            Command::Get(Get { key }) => self.put_value(key, out),
            Command::MGet(MGet { keys }) => {
                put_array(out, keys.len());
                keys.iter().for_each(|key| self.put_value(key, out));
            }
            Command::StrLen(StrLen { key }) => put_integer(out, self.0.get(key).map_or(0, Vec::len) as i64),
            Command::Exists(Exists { keys }) => {
                put_integer(out, keys.iter().filter(|key| self.0.contains_key(*key)).count() as i64);
            }
            Command::DbSize(_) => put_integer(out, self.0.len() as i64),
            Command::Set(set) => {
                let SetParts { key, value, condition, get, .. } = set.parts();
                let present = self.0.contains_key(key);
                let allowed = match condition {
                    Condition::Always => true,
                    Condition::IfAbsent => !present,
                    Condition::IfPresent => present,
                    Condition::IfEqual(expected) => self.0.get(key).is_some_and(|value| value == expected),
                };
                match (get, allowed) {
                    (true, _) => self.put_value(key, out),
                    (false, true) => put_ok(out),
                    (false, false) => put_nil(out),
                }
                if allowed {
                    self.insert(key, value.to_vec());
                }
            }
            Command::MSet(MSet { pairs }) => {
                for (key, value) in pairs.pairs() {
                    self.insert(key, value.to_vec());
                }
                put_ok(out);
            }
            Command::GetDel(GetDel { key }) => {
                self.put_value(key, out);
                self.remove(key);
            }
            Command::Append(Append { key, value }) => {
                let mut stored = self.0.get(key).cloned().unwrap_or_default();
                stored.extend_from_slice(value);
                put_integer(out, stored.len() as i64);
                self.insert(key, stored);
            }
            Command::IncrBy(IncrBy { key, delta }) => {
                let text = self.0.get(key).map_or("0", |value| str::from_utf8(value).unwrap_or("?"));
                match text.parse::<i64>().ok().and_then(|value| value.checked_add(delta)) {
                    Some(value) => {
                        self.insert(key, value.to_string().into_bytes());
                        put_integer(out, value);
                    }
                    None => put_error(out, b"ERR value is not an integer or out of range"),
                }
            }
            Command::Del(Del { keys }) => {
                let removed = keys.iter().filter(|key| self.remove(key).is_some()).count();
                put_integer(out, removed as i64);
            }
            Command::Rename(Rename { from, to }) => match self.remove(from) {
                Some(value) => {
                    self.insert(to, value);
                    put_ok(out);
                }
                None => put_error(out, b"ERR no such key"),
            },
            Command::FlushDb(_) => {
                self.clear();
                put_ok(out);
            }
            Command::Versions(Versions { keys }) => {
                put_array(out, keys.len());
                keys.iter().for_each(|key| put_integer(out, self.version(key).0.cast_signed()));
            }
            Command::Unchanged(Unchanged { pairs }) => {
                let changed = pairs.pairs().any(|(key, version)| self.version(key).to_bytes() != *version);
                if changed { put_nil(out) } else { put_ok(out) }
            }
            Command::RecordVersions(_) => {
                self.1.is_recorded = true;
                put_ok(out);
            }
            ref other => match self.execute_on_lists(other).or_else(|| self.execute_on_sorted_sets(other)) {
                Some(reply) => reply.encode(out),
                None => self.execute_on_fields(other, out),
            },
        }
    }

    /// Fields are keys behind the key, which is none itself; their order is that of their names.
    fn execute_on_fields(&mut self, command: &Command<'_>, out: &mut Vec<u8>) {
        let put_all = |store: &Self, key: &[u8], part: FieldPart, out: &mut Vec<u8>| {
            for (name, value) in store.0.iter().filter(|(name, _)| name.starts_with(&place(key, b""))) {
                if part != FieldPart::Value {
                    put_bulk(out, &name[key.len() + 1..]);
                }
                if part != FieldPart::Name {
                    put_bulk(out, value);
                }
            }
        };
        let count = |store: &Self, key: &[u8]| {
            store.0.keys().filter(|name| name.starts_with(&place(key, b""))).count()
        };
        match *command {
            Command::HSet(HSet { key, pairs, says_ok }) => {
                let new = pairs
                    .pairs()
                    .filter(|(field, value)| self.0.insert(place(key, field), value.to_vec()).is_none());
                let new = new.count();
                if says_ok { put_ok(out) } else { put_integer(out, new as i64) }
            }
            Command::HSetNx(HSetNx { key, field, value }) => {
                let free = !self.0.contains_key(&place(key, field));
                if free {
                    self.0.insert(place(key, field), value.to_vec());
                }
                put_integer(out, i64::from(free));
            }
            Command::HDel(HDel { key, fields }) => {
                let removed = fields.iter().filter(|field| self.0.remove(&place(key, field)).is_some());
                let removed = removed.count();
                put_integer(out, removed as i64);
            }
            Command::HGetAll(HGetAll { key, part }) => {
                let put_head = if part == FieldPart::Both { put_map } else { put_array };
                put_head(out, count(self, key));
                put_all(self, key, part, out);
            }
            // Of counts that draw all of them.
            Command::HRandField(HRandField { key, draws: Draws::Many { with_values, .. } }) => {
                let put_head = if with_values { put_pairs } else { put_array };
                put_head(out, count(self, key));
                put_all(self, key, if with_values { FieldPart::Both } else { FieldPart::Name }, out);
            }
            Command::HScan(HScan { key, .. }) => {
                put_array(out, 2);
                put_bulk(out, b"0");
                put_array(out, 2 * count(self, key));
                put_all(self, key, FieldPart::Both, out);
            }
            ref other => self.execute_on_members(other, out),
        }
    }

    /// Members are fields without values.
    fn execute_on_members(&mut self, command: &Command<'_>, out: &mut Vec<u8>) {
        match *command {
            Command::SAdd(SAdd { key, members }) => {
                let new =
                    members.iter().filter(|member| self.0.insert(place(key, member), Vec::new()).is_none());
                put_integer(out, new.count() as i64);
            }
            Command::SCard(SCard { key }) => put_integer(out, self.members(key).len() as i64),
            Command::SMembers(SMembers { key }) => put_members(out, put_set, &self.members(key)),
            Command::SMIsMember(SMIsMember { key, members }) => {
                put_array(out, members.len());
                for member in members {
                    put_integer(out, i64::from(self.0.contains_key(&place(key, member))));
                }
            }
            Command::SScan(SScan { key, .. }) => {
                put_array(out, 2);
                put_bulk(out, b"0");
                put_members(out, put_array, &self.members(key));
            }
            // Of counts that draw all of them, and of sets of one member.
            Command::SRandMember(SRandMember { key, draws }) => match (draws, &self.members(key)[..]) {
                (Draws::One, [only, ..]) => put_bulk(out, only),
                (Draws::One, []) => put_nil(out),
                (Draws::Many { count: ..0, .. }, [only]) => {
                    put_members(out, put_array, &[only.clone(), only.clone()]);
                }
                (Draws::Many { .. }, members) => put_members(out, put_array, members),
            },
            Command::SPop(SPop { key, count, .. }) => {
                let mut members = self.members(key);
                members.truncate(count.unwrap_or(1) as usize);
                members.iter().for_each(|member| drop(self.0.remove(&place(key, member))));
                match (count, members.first()) {
                    (Some(_), _) => put_members(out, put_set, &members),
                    (None, Some(only)) => put_bulk(out, only),
                    (None, None) => put_nil(out),
                }
            }
            Command::SMove(SMove { source, destination, member }) => {
                let found = self.0.remove(&place(source, member)).is_some();
                if found {
                    self.0.insert(place(destination, member), Vec::new());
                }
                put_integer(out, i64::from(found));
            }
            ref other => self.execute_on_several_sets(other, out),
        }
    }

    fn execute_on_several_sets(&mut self, command: &Command<'_>, out: &mut Vec<u8>) {
        match *command {
            Command::SInter(SInter { operator, keys }) => {
                put_members(out, put_set, &self.combined(operator, keys.iter()));
            }
            Command::SInterCard(SInterCard { keys, .. }) => {
                put_integer(out, self.combined(SetOperator::Intersection, keys.iter()).len() as i64);
            }
            Command::SInterStore(SInterStore { operator, keys }) => {
                let (result, key) =
                    (self.combined(operator, keys.iter().skip(1)), keys.iter().next().unwrap_or_default());
                let old = self.members(key);
                old.iter().for_each(|member| drop(self.0.remove(&place(key, member))));
                for member in &result {
                    self.0.insert(place(key, member), Vec::new());
                }
                put_integer(out, result.len() as i64);
            }
            ref other => panic!("the test store does not know {other:?}"),
        }
    }

    fn members(&self, key: &[u8]) -> Vec<Vec<u8>> {
        let names = self.0.keys().filter_map(|name| name.strip_prefix(&place(key, b"")[..]));
        names.map(<[u8]>::to_vec).collect()
    }

    fn combined<'k>(&self, operator: SetOperator, keys: impl Iterator<Item = &'k [u8]>) -> Vec<Vec<u8>> {
        let sets = keys.map(|key| self.members(key));
        let combine = |mut set: Vec<Vec<u8>>, other: Vec<Vec<u8>>| {
            match operator {
                SetOperator::Intersection => set.retain(|member| other.contains(member)),
                SetOperator::Difference => set.retain(|member| !other.contains(member)),
                SetOperator::Union => set.extend(other),
            }
            set.sort();
            set.dedup();
            set
        };
        sets.reduce(combine).unwrap_or_default()
    }
}

/// The key of a field.
fn place(key: &[u8], field: &[u8]) -> Vec<u8> {
    [key, b"\0", field].concat()
}

fn put_members(out: &mut Vec<u8>, put_head: fn(&mut Vec<u8>, usize), members: &[Vec<u8>]) {
    put_head(out, members.len());
    members.iter().for_each(|member| put_bulk(out, member));
}

/// Every submission that may go now.
pub(crate) fn submissions(connection: &mut Connection) -> Vec<Submission> {
    std::iter::from_fn(|| connection.poll_submit()).collect()
}

/// Completes everything at once, in order, until nothing is left to do.
pub(crate) fn complete_all(connection: &mut Connection, store: &mut TestStore) {
    while let Some(submission) = connection.poll_submit() {
        let completion = store.run(&submission);
        assert!(connection.complete(submission.slot, completion));
    }
}

/// Takes the output.
pub(crate) fn output(connection: &mut Connection) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A long reply comes in parts.
    while !connection.output().is_empty() {
        let part = connection.output().len();
        bytes.extend_from_slice(connection.output());
        connection.sent(part);
    }
    bytes
}

/// Feeds whole input to a connection that answers at once; the output, and whether it ended.
pub(crate) fn serve(connection: &mut Connection, store: &mut TestStore, input: &[u8]) -> (Vec<u8>, bool) {
    let (mut rest, mut out) = (input, Vec::new());
    loop {
        let consumed = connection.receive(rest, &CONTEXT);
        rest = &rest[consumed..];
        complete_all(connection, store);
        out.extend(output(connection));
        if consumed == 0 || connection.is_finished() {
            return (out, connection.is_finished());
        }
    }
}
