//! Values that no RESTORE takes, as commands that fill a key with them.

use syros_commands::write_double;
use syros_values::{Consumer, Group, Hash, Stream, StreamId, Value};

/// A command ends when its words have so many bytes, or it names so many elements: others are served between commands.
const COMMAND_BYTES: usize = 1 << 20;
const COMMAND_ELEMENTS: usize = 2_000;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOf {
    /// Its words, its name first.
    pub words: Vec<Vec<u8>>,
    /// It may be executed twice, and the result is the same.
    pub is_repeatable: bool,
}

/// The command that gives a key its expiry.
#[must_use]
pub fn expiry_command(key: &[u8], expiry_ms: u64) -> CommandOf {
    let words = vec![b"PEXPIREAT".to_vec(), key.to_vec(), digits(expiry_ms)];
    CommandOf { words, is_repeatable: true }
}

/// Hands on the commands that add a value to a key, which has the pieces before it and nothing else.
///
/// # Errors
/// What `take` says.
pub fn commands<E>(
    key: &[u8],
    value: &Value,
    take: &mut impl FnMut(CommandOf) -> Result<(), E>,
) -> Result<(), E> {
    match value {
        Value::String(string) => take(CommandOf {
            words: vec![b"SET".to_vec(), key.to_vec(), string.clone()],
            is_repeatable: true,
        }),
        Value::List(list) => {
            let mut batch = Batch::new("RPUSH", key, false, take);
            list.iter().try_for_each(|element| batch.add(vec![element.to_vec()]))?;
            batch.end()
        }
        Value::Set(set) => {
            let mut batch = Batch::new("SADD", key, true, take);
            set.iter().try_for_each(|member| batch.add(vec![member.to_vec()]))?;
            batch.end()
        }
        Value::SortedSet(set) => {
            let mut batch = Batch::new("ZADD", key, true, take);
            set.iter().try_for_each(|(member, score)| {
                let mut digits = Vec::new();
                write_double(&mut digits, score.value());
                batch.add(vec![digits, member.to_vec()])
            })?;
            batch.end()
        }
        Value::Hash(hash) => put_hash(key, hash, take),
        Value::Stream(stream) => put_stream(key, stream, take),
    }
}

fn put_hash<E>(key: &[u8], hash: &Hash, take: &mut impl FnMut(CommandOf) -> Result<(), E>) -> Result<(), E> {
    let mut batch = Batch::new("HSET", key, true, take);
    hash.iter().try_for_each(|(field, value)| batch.add(vec![field.to_vec(), value.to_vec()]))?;
    batch.end()?;
    for (field, _) in hash {
        if let Some(gone) = hash.expiry(field) {
            // Commands name the last millisecond in which it is there.
            let words = ["HPEXPIREAT".into(), key.to_vec(), digits(gone.get() - 1), b"FIELDS".to_vec()];
            let words = words.into_iter().chain([b"1".to_vec(), field.to_vec()]).collect();
            take(CommandOf { words, is_repeatable: true })?;
        }
    }
    Ok(())
}

fn put_stream<E>(
    key: &[u8],
    stream: &Stream,
    take: &mut impl FnMut(CommandOf) -> Result<(), E>,
) -> Result<(), E> {
    let mut command = |words: Vec<Vec<u8>>, is_repeatable| take(CommandOf { words, is_repeatable });
    for (id, strings) in stream.range(StreamId::MIN, StreamId::MAX) {
        let head = [b"XADD".to_vec(), key.to_vec(), text(id)];
        command(head.into_iter().chain(strings.map(<[u8]>::to_vec)).collect(), false)?;
    }
    let numbers = [
        b"XSETID".to_vec(),
        key.to_vec(),
        text(stream.last_id()),
        b"ENTRIESADDED".to_vec(),
        digits(stream.entries_added()),
        b"MAXDELETEDID".to_vec(),
        text(stream.max_deleted_id()),
    ];
    command(numbers.into(), true)?;
    for (name, group) in stream.groups() {
        let mut words: Vec<Vec<u8>> =
            vec![b"XGROUP".into(), b"CREATE".into(), key.into(), name.into(), text(group.last)];
        if let Some(read) = group.entries_read {
            words.extend([b"ENTRIESREAD".to_vec(), digits(read)]);
        }
        command(words, false)?;
        for (consumer, state) in stream.consumers(&group) {
            let words: [&[u8]; 5] = [b"XGROUP", b"CREATECONSUMER", key, name, consumer];
            command(words.map(<[u8]>::to_vec).into(), true)?;
            for words in claims((key, stream), (name, &group), (consumer, &state)) {
                command(words, true)?;
            }
        }
    }
    Ok(())
}

/// The commands by which a consumer owns what is pending at it. What is pending of entries that are gone is no more.
fn claims<'a>(
    (key, stream): (&'a [u8], &'a Stream),
    (name, group): (&'a [u8], &'a Group),
    (consumer, state): (&'a [u8], &'a Consumer),
) -> impl Iterator<Item = Vec<Vec<u8>>> + 'a {
    let owned =
        stream.owned(group, state, StreamId::MIN).filter_map(|id| Some((id, stream.pending(group, id)?)));
    owned.map(move |(id, pending)| {
        let head: [&[u8]; 5] = [b"XCLAIM", key, name, consumer, b"0"];
        let head = head.map(<[u8]>::to_vec);
        let tail = [
            text(id),
            b"TIME".to_vec(),
            digits(pending.delivered_ms),
            b"RETRYCOUNT".to_vec(),
            digits(pending.deliveries),
            b"FORCE".to_vec(),
            b"JUSTID".to_vec(),
        ];
        head.into_iter().chain(tail).collect()
    })
}

fn digits(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn text(id: StreamId) -> Vec<u8> {
    format!("{}-{}", id.ms(), id.sequence()).into_bytes()
}

/// Elements that are collected for commands.
struct Batch<'a, F> {
    head: [&'a [u8]; 2],
    is_repeatable: bool,
    words: Vec<Vec<u8>>,
    elements: usize,
    bytes: usize,
    take: &'a mut F,
}

impl<'a, F> Batch<'a, F> {
    const fn new(name: &'a str, key: &'a [u8], is_repeatable: bool, take: &'a mut F) -> Self {
        Self { head: [name.as_bytes(), key], is_repeatable, words: Vec::new(), elements: 0, bytes: 0, take }
    }

    fn add<E>(&mut self, element: Vec<Vec<u8>>) -> Result<(), E>
    where
        F: FnMut(CommandOf) -> Result<(), E>,
    {
        let bytes = element.iter().map(Vec::len).sum::<usize>();
        if self.elements == COMMAND_ELEMENTS || self.bytes + bytes > COMMAND_BYTES {
            self.end()?;
        }
        self.elements += 1;
        self.bytes += bytes;
        self.words.extend(element);
        Ok(())
    }

    fn end<E>(&mut self) -> Result<(), E>
    where
        F: FnMut(CommandOf) -> Result<(), E>,
    {
        (self.elements, self.bytes) = (0, 0);
        if self.words.is_empty() {
            return Ok(());
        }
        let mut words: Vec<Vec<u8>> = self.head.map(<[u8]>::to_vec).into();
        words.append(&mut self.words);
        (self.take)(CommandOf { words, is_repeatable: self.is_repeatable })
    }
}
