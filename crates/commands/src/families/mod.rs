//! Every command, in one file of its family: its rows of the table, how its words become an operation, the operation's
//! bytes, class, keys and growth, and what it does.
//!
//! `commands!` at the end lists them all, and makes [`Command`] of them. A number that has been an opcode is never used
//! again: one that is retired stays in this list, in a comment.

pub(crate) mod definition;
pub(crate) mod specification;

mod bitmaps;
mod connection;
mod counts;
mod draws;
mod elements;
mod generic;
mod geo;
mod hashes;
mod hyperloglog;
mod lists;
mod ranks;
mod scan_options;
mod scripting;
mod server;
mod sets;
mod sorted_sets;
mod strings;
mod transactions;

pub use bitmaps::bitop::BitOperator;
pub use bitmaps::field::{BitfieldOverflow, BitfieldSlot};
pub use bitmaps::operations::{BitfieldAction, BitfieldStep, BitfieldSteps, BitfieldStepsIter};
pub use bitmaps::range::BitRange;
pub use draws::Draws;
pub use generic::expire::ExpireCondition;
pub use generic::ttl::Unit;
pub use geo::place::Place;
pub use geo::search::{Centre, GeoOrder, GeoSearch, Shape};
pub use geo::unit::DistanceUnit;
pub use hashes::hgetall::FieldPart;
pub use lists::index::ListIndex;
pub use lists::linsert::InsertSide;
pub use scan_options::ScanOptions;
pub use scripting::ScriptInput;
pub use scripting::library::LibraryAction;
pub use scripting::look::LibraryQuestion;
pub use sets::sinter::SetOperator;
pub use sorted_sets::combination::{Aggregate, Combination, SetOperation};
pub use sorted_sets::condition::ScoreCondition;
pub use sorted_sets::interval::{Interval, MemberBound, ScoreBound};
pub use sorted_sets::selection::Selection;
pub use sorted_sets::zpop::ScoreEnd;
pub use strings::getex::TtlChange;
pub use strings::lcs::LcsPart;
pub use strings::set::{Condition, Lifetime};
pub use syros_values::ListEnd;

use crate::access;
use crate::encoding::{Encoding, Opcode, is_opcode};
use crate::error::ExecutionError;
use crate::primitive::Malformed;
use definition::{Definition, ExecutionResult, KeyNames, ReadCommand, UpdateCommand, View};
use specification::CommandSpec;
use syros_types::Class;

/// Makes of the list of all commands what has an arm or an entry for each of them. An operation is named by the path of
/// its type, from its family on; behind a bar stands the constant that is the opcode of a second form. The commands of a
/// connection are named by the modules with their rows and the names of their variants.
macro_rules! commands {
    (
        reads { $($read_family:ident::$read_file:ident::$read:ident $(<$read_life:lifetime>)? $(| $read_form:ident)*,)* }
        updates { $($family:ident::$file:ident::$update:ident $(<$life:lifetime>)? $(| $form:ident)*,)* }
        connection { $($local_file:ident::$local:ident,)* }
        others { $($other_family:ident::$other_file:ident,)* }
    ) => {
        $(pub use $read_family::$read_file::$read;)*
        $(pub use $family::$file::$update;)*

        /// What an operation does to the data. Byte strings are borrowed from the client's words or the body.
        ///
        /// Commands that differ in syntax only share a variant: SETEX is a SET with a lifetime, DECR an increment by
        /// -1, UNLINK a DEL, GETSET a SET that returns the old value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each variant is the operation of the same name")]
        pub enum Command<'a> {
            $($read($read $(<$read_life>)?),)*
            $($update($update $(<$life>)?),)*
        }

        /// The commands that a connection answers by itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is the Redis command of the same name")]
        pub enum ConnectionCommand {
            $($local,)*
        }

        /// The rows of all commands, in the order of the list.
        pub(crate) const SPECS: &[&[CommandSpec]] = &[
            $($read::SPECS,)*
            $($update::SPECS,)*
            $(connection::$local_file::SPECS,)*
            $($other_family::$other_file::SPECS,)*
        ];

        $(impl<'a> From<$read $(<$read_life>)?> for Command<'a> {
            fn from(operation: $read $(<$read_life>)?) -> Self {
                Self::$read(operation)
            }
        })*

        $(impl<'a> From<$update $(<$life>)?> for Command<'a> {
            fn from(operation: $update $(<$life>)?) -> Self {
                Self::$update(operation)
            }
        })*

        impl<'a> Command<'a> {
            /// True if it changes nothing.
            #[must_use]
            pub const fn is_read(&self) -> bool {
                matches!(self, $(Self::$read(_))|*)
            }

            pub(crate) fn opcode(&self) -> Opcode {
                match self {
                    $(Self::$read(operation) => operation.opcode(),)*
                    $(Self::$update(operation) => operation.opcode(),)*
                }
            }

            /// Appends the fields of its encoding.
            pub(crate) fn encode_fields(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$read(operation) => operation.encode(out),)*
                    $(Self::$update(operation) => operation.encode(out),)*
                }
            }

            /// Takes the fields of the operation with this opcode off the front of `input`.
            pub(crate) fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
                #[deny(unreachable_patterns, reason = "an opcode belongs to one operation")]
                Ok(match opcode {
                    $(
                        $read::OPCODE => Self::$read(Encoding::decode($read::OPCODE, input)?),
                        $($read::$read_form => Self::$read(Encoding::decode($read::$read_form, input)?),)*
                    )*
                    $(
                        $update::OPCODE => Self::$update(Encoding::decode($update::OPCODE, input)?),
                        $($update::$form => Self::$update(Encoding::decode($update::$form, input)?),)*
                    )*
                    other => return Err(Malformed::Opcode(other)),
                })
            }

            /// The keys that it names.
            #[inline]
            pub(crate) fn keys(&self) -> KeyNames<'a> {
                match self {
                    $(Self::$read(operation) => operation.keys(),)*
                    $(Self::$update(operation) => operation.keys(),)*
                }
            }

            pub(crate) fn values(&self) -> u32 {
                match self {
                    $(Self::$read(operation) => operation.values(),)*
                    $(Self::$update(operation) => operation.values(),)*
                }
            }

            #[inline]
            pub(crate) fn class(&self, blind: bool) -> Class {
                match self {
                    $(Self::$read(_))|* => Class::Read,
                    $(Self::$update(operation) => operation.class(blind),)*
                }
            }

            pub(crate) fn counts(&self) -> bool {
                match self {
                    $(Self::$read(_))|* => false,
                    $(Self::$update(operation) => operation.counts(),)*
                }
            }

            pub(crate) fn confirms(&self) -> bool {
                match self {
                    $(Self::$read(_))|* => false,
                    $(Self::$update(operation) => operation.confirms(),)*
                }
            }

            #[inline]
            pub(crate) fn growth(&self, encoded: usize) -> usize {
                match self {
                    $(Self::$read(_))|* => 0,
                    $(Self::$update(operation) => operation.growth(encoded),)*
                }
            }

            pub(crate) fn work(&self) -> usize {
                match self {
                    $(Self::$read(operation) => operation.work(),)*
                    $(Self::$update(operation) => operation.work(),)*
                }
            }

            pub(crate) fn seed_mut(&mut self) -> Option<&mut u64> {
                match self {
                    $(Self::$read(_))|* => None,
                    $(Self::$update(operation) => operation.seed_mut(),)*
                }
            }

            #[inline]
            pub(crate) fn work_on<K: access::Keys>(&self, keys: &K) -> usize {
                match self {
                    $(Self::$read(operation) => operation.work_on(keys),)*
                    $(Self::$update(_))|* => 0,
                }
            }

            #[inline]
            pub(crate) fn operand(&self) -> Option<(&'a [u8], access::Operand<'a>)> {
                match self {
                    $(Self::$read(_))|* => None,
                    $(Self::$update(operation) => operation.operand(),)*
                }
            }

            /// Executes it where only reads are allowed.
            pub(crate) fn read<K: access::Keys>(
                &self,
                keys: &K,
                view: View,
                reply: &mut Vec<u8>,
            ) -> ExecutionResult {
                match self {
                    $(Self::$read(operation) => operation.read(keys, view, reply),)*
                    $(Self::$update(_))|* => Err(ExecutionError::NotRead),
                }
            }

            /// Executes it.
            pub(crate) fn apply<K: access::KeysMut>(
                &self,
                keys: &mut K,
                view: View,
                reply: &mut Vec<u8>,
            ) -> ExecutionResult {
                match self {
                    $(Self::$read(operation) => operation.read(keys, view, reply),)*
                    $(Self::$update(operation) => operation.apply(keys, view.now.as_millis(), reply),)*
                }
            }
        }

        $($(const _: () = assert!(is_opcode($read::$read_form));)*)*
        $($(const _: () = assert!(is_opcode($update::$form));)*)*
        $(const _: () = assert!(is_opcode($read::OPCODE));)*
        $(const _: () = assert!(is_opcode($update::OPCODE));)*
    };
}

commands! {
    reads {
        bitmaps::bitcount::BitCount<'a>,
        bitmaps::bitfield::BitFieldRo<'a>,
        bitmaps::bitpos::BitPos<'a>,
        bitmaps::getbit::GetBit<'a>,
        generic::exists::Exists<'a>,
        generic::key_type::Type<'a>,
        generic::keys::Keys<'a>,
        generic::randomkey::RandomKey,
        generic::scan::Scan<'a>,
        generic::ttl::ExpireTime<'a> | OPCODE_MILLISECONDS,
        generic::ttl::Ttl<'a> | OPCODE_MILLISECONDS,
        geo::geodist::GeoDist<'a>,
        geo::geohash::GeoHash<'a>,
        geo::geopos::GeoPos<'a>,
        geo::geosearch::GeoSearchRead<'a>,
        hashes::hexists::HExists<'a>,
        hashes::hget::HGet<'a>,
        hashes::hgetall::HGetAll<'a> | OPCODE_NAMES | OPCODE_VALUES,
        hashes::hlen::HLen<'a>,
        hashes::hmget::HMGet<'a>,
        hashes::hrandfield::HRandField<'a>,
        hashes::hscan::HScan<'a>,
        hashes::hstrlen::HStrLen<'a>,
        lists::lindex::LIndex<'a>,
        lists::llen::LLen<'a>,
        lists::lpos::LPos<'a>,
        lists::lrange::LRange<'a>,
        hyperloglog::pfcount::PfCount<'a>,
        scripting::eval::EvalRo<'a>,
        scripting::evalsha::EvalShaRo<'a>,
        scripting::fcall::FCallRo<'a>,
        scripting::look::LibraryLook<'a>,
        scripting::look::ScriptLook<'a>,
        server::dbsize::DbSize,
        sets::scard::SCard<'a>,
        sets::sinter::SInter<'a> | OPCODE_UNION | OPCODE_DIFFERENCE,
        sets::sintercard::SInterCard<'a>,
        sets::sismember::SIsMember<'a>,
        sets::smembers::SMembers<'a>,
        sets::smismember::SMIsMember<'a>,
        sets::srandmember::SRandMember<'a>,
        sets::sscan::SScan<'a>,
        sorted_sets::zcard::ZCard<'a>,
        sorted_sets::zcombine::ZCombine<'a>,
        sorted_sets::zcount::ZCount<'a>,
        sorted_sets::zintercard::ZInterCard<'a>,
        sorted_sets::zmscore::ZMScore<'a>,
        sorted_sets::zrandmember::ZRandMember<'a>,
        sorted_sets::zrange::ZRange<'a>,
        sorted_sets::zrank::ZRank<'a>,
        sorted_sets::zscan::ZScan<'a>,
        sorted_sets::zscore::ZScore<'a>,
        strings::get::Get<'a>,
        strings::getrange::GetRange<'a>,
        strings::lcs::Lcs<'a>,
        strings::mget::MGet<'a>,
        strings::strlen::StrLen<'a>,
        transactions::versions::Versions<'a>,
    }
    updates {
        bitmaps::bitfield::BitField<'a>,
        bitmaps::bitop::BitOp<'a>,
        bitmaps::setbit::SetBit<'a>,
        generic::del::Del<'a>,
        generic::expire::Expire<'a>,
        generic::persist::Persist<'a>,
        generic::rename::Rename<'a>,
        generic::rename::RenameNx<'a>,
        geo::geoadd::GeoAdd<'a>,
        geo::geosearchstore::GeoSearchStore<'a>,
        hashes::hdel::HDel<'a>,
        hashes::hincrby::HIncrBy<'a>,
        hashes::hincrbyfloat::HIncrByFloat<'a>,
        hashes::hset::HSet<'a> | OPCODE_SAYS_OK,
        hashes::hsetnx::HSetNx<'a>,
        lists::linsert::LInsert<'a>,
        lists::lmove::LMove<'a>,
        lists::lmpop::LMPop<'a>,
        lists::lpop::LPop<'a> | OPCODE_RIGHT,
        lists::lpush::LPush<'a> | OPCODE_RIGHT | OPCODE_LEFT_IF_PRESENT | OPCODE_RIGHT_IF_PRESENT,
        lists::lrem::LRem<'a>,
        lists::lset::LSet<'a>,
        lists::ltrim::LTrim<'a>,
        hyperloglog::pfadd::PfAdd<'a>,
        hyperloglog::pfmerge::PfMerge<'a>,
        scripting::eval::Eval<'a>,
        scripting::evalsha::EvalSha<'a>,
        scripting::fcall::FCall<'a>,
        scripting::library::LibraryChange<'a>,
        scripting::load::ScriptFlush,
        scripting::load::ScriptLoad<'a>,
        server::flushall::FlushAll,
        sets::sadd::SAdd<'a>,
        sets::sinterstore::SInterStore<'a> | OPCODE_UNION | OPCODE_DIFFERENCE,
        sets::smove::SMove<'a>,
        sets::spop::SPop<'a> | OPCODE_WITH_COUNT,
        sets::srem::SRem<'a>,
        sorted_sets::zadd::ZAdd<'a> | OPCODE_WITH_OPTIONS,
        sorted_sets::zcombinestore::ZCombineStore<'a>,
        sorted_sets::zincrby::ZIncrBy<'a> | OPCODE_IF,
        sorted_sets::zmpop::ZMPop<'a>,
        sorted_sets::zpop::ZPop<'a>,
        sorted_sets::zrangestore::ZRangeStore<'a>,
        sorted_sets::zrem::ZRem<'a>,
        sorted_sets::zremrange::ZRemRange<'a>,
        strings::append::Append<'a>,
        strings::getdel::GetDel<'a>,
        strings::getex::GetEx<'a>,
        strings::incrby::IncrBy<'a>,
        strings::incrbyfloat::IncrByFloat<'a>,
        strings::mset::MSet<'a>,
        strings::mset::MSetNx<'a>,
        strings::set::Set<'a> | OPCODE_WITH_OPTIONS,
        strings::setnx::SetNx<'a>,
        strings::setrange::SetRange<'a>,
        transactions::record::RecordVersions,
        transactions::unchanged::Unchanged<'a>,
    }
    connection {
        client::Client,
        command::Command,
        config::Config,
        discard::Discard,
        echo::Echo,
        exec::Exec,
        hello::Hello,
        info::Info,
        multi::Multi,
        ping::Ping,
        quit::Quit,
        reset::Reset,
        select::Select,
        time::Time,
        unwatch::Unwatch,
        watch::Watch,
    }
    others {
        generic::blind,
    }
}
