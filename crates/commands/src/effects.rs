//! A hash of what updates have done, as far as it shows: members that execute one entry of the log must agree on it.
//!
//! What a client's update is called with stands in the log; what it has done shows in its reply. A script calls commands with
//! what it has computed, so those calls are effects, too. Reads are none: where members may answer them differently, such as
//! the order of KEYS, they do so in a transaction as well.

use crate::reply::ReplyRef;
use syros_types::{fold, key_hash};

/// The effects of the updates that a database has executed since they were taken last.
///
/// Two replies that say the same have one hash: of a set and of a map the order does not matter, and of an error only its
/// code, because its text may differ between builds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Effects(u64);

impl Effects {
    /// An update has been answered so: with one reply, encoded.
    pub(crate) fn add_reply(&mut self, encoded: &[u8]) {
        // No engine answers what cannot be decoded.
        let hash = ReplyRef::decode(&mut &*encoded).map_or(0, |reply| of_reply(reply));
        self.0 = with(self.0, hash);
    }

    /// A script has called this update, encoded, and was answered so; an update that failed has no reply.
    pub(crate) fn add_call(&mut self, operation: &[u8], reply: &[u8]) {
        self.0 = with(self.0, key_hash(operation));
        self.add_reply(reply);
    }

    /// What has been added since this was called last; of nothing it is 0.
    pub const fn take(&mut self) -> u64 {
        core::mem::replace(&mut self.0, 0)
    }
}

/// Takes one more hash in: the order matters.
const fn with(before: u64, one: u64) -> u64 {
    fold(before ^ one ^ 0x9e37_79b9_7f4a_7c15, 0xe703_7ed1_a0b4_28db) ^ one.rotate_left(29)
}

fn of_reply(reply: ReplyRef<'_>) -> u64 {
    let of_pair = |(first, second)| with(of_reply(first), of_reply(second));
    let tagged = |tag, bytes| with(tag, key_hash(bytes));
    match reply {
        ReplyRef::Nil | ReplyRef::NilArray => 1,
        ReplyRef::Ok => 2,
        ReplyRef::Waits => 3,
        ReplyRef::Integer(number) => with(4, number.cast_unsigned()),
        ReplyRef::Boolean(flag) => with(5, u64::from(flag)),
        ReplyRef::Double(number) | ReplyRef::Decimal(number) => with(6, number.value().to_bits()),
        ReplyRef::Bulk(bytes) | ReplyRef::Verbatim(_, bytes) => tagged(7, bytes),
        ReplyRef::Simple(text) => tagged(8, text),
        ReplyRef::BigNumber(digits) => tagged(9, digits),
        ReplyRef::Error(text) => tagged(10, text.split(|byte| *byte == b' ').next().unwrap_or(text)),
        ReplyRef::Array(parts) => parts.fold(11, |hash, part| with(hash, of_reply(part))),
        ReplyRef::Pairs(pairs) => pairs.fold(12, |hash, pair| with(hash, of_pair(pair))),
        ReplyRef::Set(members) => members.fold(13, |sum: u64, member| sum.wrapping_add(of_reply(member))),
        ReplyRef::Map(pairs) | ReplyRef::Keyed(pairs) => {
            pairs.fold(14, |sum: u64, pair| sum.wrapping_add(of_pair(pair)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;

    fn hash(reply: &Reply) -> u64 {
        let mut encoded = Vec::new();
        reply.encode(&mut encoded);
        let mut effects = Effects::default();
        effects.add_reply(&encoded);
        effects.take()
    }

    #[test]
    fn replies_that_say_the_same_have_one_hash_and_no_others() {
        let bulk = |text: &str| Reply::Bulk(text.into());
        let (a, b) = (|| bulk("a"), || bulk("b"));
        let same = [
            (Reply::Set(vec![a(), b()]), Reply::Set(vec![b(), a()])),
            (Reply::Map(vec![(a(), a()), (b(), b())]), Reply::Map(vec![(b(), b()), (a(), a())])),
            (Reply::Error(b"ERR no".to_vec()), Reply::Error(b"ERR other".to_vec())),
        ];
        for (one, other) in &same {
            assert_eq!(hash(one), hash(other), "{one:?} {other:?}");
        }
        let different = [
            Reply::Nil,
            Reply::Ok,
            Reply::Integer(0),
            Reply::Integer(1),
            Reply::Boolean(false),
            Reply::Boolean(true),
            Reply::Double(crate::reply::Double::new(0.0)),
            a(),
            b(),
            bulk(""),
            Reply::Simple(b"a".to_vec()),
            Reply::BigNumber(b"1".to_vec()),
            Reply::Error(b"ERR no".to_vec()),
            Reply::Error(b"WRONGTYPE no".to_vec()),
            Reply::Array(vec![]),
            Reply::Array(vec![a(), b()]),
            Reply::Array(vec![b(), a()]),
            Reply::Array(vec![Reply::Array(vec![a()]), b()]),
            Reply::Set(vec![a(), b()]),
            Reply::Pairs(vec![(a(), b())]),
            Reply::Pairs(vec![(b(), a())]),
            Reply::Map(vec![(a(), b())]),
            Reply::Map(vec![(b(), a())]),
            Reply::Map(vec![(a(), a()), (b(), b())]),
            Reply::Map(vec![(a(), b()), (b(), a())]),
        ];
        let mut hashes: Vec<u64> = different.iter().map(hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), different.len());
    }

    #[test]
    fn what_a_script_calls_is_an_effect_and_so_is_the_order() {
        let of = |order: &[u8]| {
            let mut effects = Effects::default();
            order.iter().for_each(|operation| effects.add_call(&[*operation], &[2, 2]));
            (effects.take(), effects.take())
        };
        assert_eq!(of(&[0, 1]), of(&[0, 1]));
        assert_ne!(of(&[0, 1]), of(&[1, 0]));
        assert_ne!(of(&[0]), of(&[1]));
        assert_ne!(of(&[0]), of(&[0, 0]));
        assert_eq!((of(&[]), of(&[0]).1), ((0, 0), 0));
    }
}
