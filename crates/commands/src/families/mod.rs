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
pub(crate) mod elements;
mod generic;
mod geo;
mod hashes;
mod hyperloglog;
mod indirect;
mod lists;
mod ranks;
mod scan_options;
mod scripting;
mod server;
mod sets;
mod sorted_sets;
mod streams;
mod strings;
mod transactions;
mod users;
mod waiting;

pub use bitmaps::bitop::BitOperator;
pub use bitmaps::field::{BitfieldOverflow, BitfieldSlot};
pub use bitmaps::operations::{BitfieldAction, BitfieldStep, BitfieldSteps, BitfieldStepsIter};
pub use bitmaps::range::BitRange;
pub use draws::Draws;
pub use generic::expire::ExpireCondition;
pub use generic::object::ObjectAspect;
pub use generic::ttl::Unit;
pub use geo::geodist::GeoDistParts;
pub use geo::geosearch::GeoSearchReadParts;
pub use geo::geosearchstore::GeoSearchStoreParts;
pub use geo::place::Place;
pub use geo::search::{Centre, GeoOrder, GeoSearch, Shape};
pub use geo::unit::DistanceUnit;
pub use hashes::field_options::FieldTtl;
pub use hashes::hexpire::HExpireParts;
pub use hashes::hgetall::FieldPart;
pub use hashes::hgetex::HGetExParts;
pub use hashes::hsetex::{FieldCondition, HSetExParts};
pub use hashes::httl::FieldTime;
pub use indirect::Indirect;
pub use lists::index::ListIndex;
pub use lists::linsert::{InsertSide, LInsertParts};
pub use lists::lpos::LPosParts;
pub use scan_options::ScanOptions;
pub(crate) use scripting::evalsha::script_name;
pub use scripting::library::LibraryAction;
pub use scripting::look::LibraryQuestion;
pub use scripting::{Abilities, RunTerms, ScriptCall, ScriptInput};
pub use sets::sinter::SetOperator;
pub use sorted_sets::combination::{Aggregate, Combination, SetOperation};
pub use sorted_sets::condition::ScoreCondition;
pub use sorted_sets::interval::{Interval, MemberBound, ScoreBound};
pub use sorted_sets::selection::Selection;
pub use sorted_sets::zcombine::ZCombineParts;
pub use sorted_sets::zcombinestore::ZCombineStoreParts;
pub use sorted_sets::zcount::ZCountParts;
pub use sorted_sets::zpop::ScoreEnd;
pub use sorted_sets::zrange::ZRangeParts;
pub use sorted_sets::zrangestore::ZRangeStoreParts;
pub use sorted_sets::zremrange::ZRemRangeParts;
pub use streams::trim::{Trim, TrimUntil};
pub use streams::xack::XAckParts;
pub use streams::xadd::{NewId, XAddParts};
pub use streams::xautoclaim::XAutoClaimParts;
pub use streams::xawait::{XAwaitParts, stream_position};
pub use streams::xclaim::{Delivered, XClaimParts};
pub use streams::xgroup::{GroupAction, XGroupParts};
pub use streams::xinfo::StreamSubject;
pub use streams::xpending::{PendingRange, XPendingParts};
pub use streams::xrange::XRangeParts;
pub use streams::xread::XReadParts;
pub use streams::xreadgroup::XReadGroupParts;
pub use streams::xsetid::XSetIdParts;
pub use streams::xtrim::XTrimParts;
pub use strings::getex::TtlChange;
pub use strings::lcs::LcsPart;
pub use strings::set::{Condition, Lifetime, SetParts};
pub use syros_values::ListEnd;
pub use users::look::UserQuestion;
pub use waiting::take::TakeParts;
pub use waiting::{TakeAction, WaiterId};

use crate::access;
use crate::encoding::{Encoding, Opcode, is_opcode};
use crate::error::ExecutionError;
use crate::primitive::Malformed;
use definition::{Definition, ExecutionResult, KeyNames, ReadCommand, UpdateCommand, View};
use specification::CommandSpec;
use syros_types::{Class, Database};

impl Command<'_> {
    /// True if it concerns all databases, whichever one the client uses. SWAPDB names its own.
    pub(crate) const fn is_of_all_databases(&self) -> bool {
        matches!(self, Self::FlushAll(_) | Self::SwapDb(_) | Self::RecordVersions(_))
    }

    /// On what terms it runs a script or a function that may change keys, if it runs one.
    pub(crate) const fn terms(&self) -> Option<RunTerms> {
        match self {
            Self::Eval(Eval { terms, .. })
            | Self::EvalSha(EvalSha { terms, .. })
            | Self::FCall(FCall { terms, .. }) => Some(*terms),
            _ => None,
        }
    }

    /// True of an update that clients often send although it changes nothing, such as SADD of a member that is there, SET NX of
    /// a lock that is held, and LPOP of an empty queue: it is worth a look whether it is a no-op. Each of them tells of what it
    /// changes ([`KeysMut::notify`](access::KeysMut::notify)), or changes it as a whole.
    pub(crate) fn may_be_no_op(&self) -> bool {
        match self {
            // What returns a value takes as much memory as that, for which reads have to wait.
            Self::Set(set) => set.parts().condition != Condition::Always && !set.parts().get,
            Self::LPush(push) => push.if_present,
            other => matches!(
                other,
                Self::Copy(_)
                    | Self::Del(_)
                    | Self::Expire(_)
                    | Self::GetDel(_)
                    | Self::HDel(_)
                    | Self::HSetNx(_)
                    | Self::LMove(_)
                    | Self::LMPop(_)
                    | Self::LPop(_)
                    | Self::LRem(_)
                    | Self::MSetNx(_)
                    | Self::Persist(_)
                    | Self::PfAdd(_)
                    | Self::RenameNx(_)
                    | Self::SAdd(_)
                    | Self::SetNx(_)
                    | Self::SMove(_)
                    | Self::SPop(_)
                    | Self::SRem(_)
                    | Self::ZAdd(_)
                    | Self::ZMPop(_)
                    | Self::ZPop(_)
                    | Self::ZRem(_)
                    | Self::ZRemRange(_)
            ),
        }
    }

    /// True if it may go through all of the values that its keys have, and neither what it says nor
    /// [`Operation::work_on`](crate::Operation::work_on) tells how long they are.
    pub(crate) const fn goes_through_values(&self) -> bool {
        matches!(
            self,
            Self::BitCount(_)
                | Self::BitOp(_)
                | Self::BitPos(_)
                | Self::Copy(_)
                | Self::CopyAcross(_)
                | Self::GeoSearchStore(_)
                | Self::LInsert(_)
                | Self::LRem(_)
                | Self::SInterStore(_)
                | Self::SortStore(_)
                | Self::ZCombineStore(_)
                | Self::ZRangeStore(_)
        )
    }

    /// True of a read whose [`work_on`](crate::Operation::work_on) members of builds before wire format 16 do not know.
    pub(crate) const fn was_free(&self) -> bool {
        matches!(self, Self::SInterCard(_) | Self::ZInterCard(_))
    }

    /// True if the keys that it names are used by it. To ask when a key expires, or what kind of value it has, is no use, as in
    /// Redis; nor is what nodes ask for themselves.
    pub(crate) const fn uses_keys(&self) -> bool {
        !matches!(
            self,
            Self::Evict(_)
                | Self::ExpireTime(_)
                | Self::Leave(_)
                | Self::MemoryUsage(_)
                | Self::Object(_)
                | Self::Ttl(_)
                | Self::Turns(_)
                | Self::Type(_)
                | Self::Versions(_)
                | Self::XNews(_)
        )
    }
}

/// The name of an operation of this type, which these rows of the table become: see [`Command::name`].
const fn name_of(rows: &[CommandSpec], of_type: &'static str) -> &'static str {
    if let [only] = rows { only.name } else { of_type }
}

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

            /// The name of the command that becomes such an operation. Where several do, it is the name of the type.
            pub(crate) const fn name(&self) -> &'static str {
                match self {
                    $(Self::$read(_) => name_of($read::SPECS, stringify!($read)),)*
                    $(Self::$update(_) => name_of($update::SPECS, stringify!($update)),)*
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

            pub(crate) fn now_mut(&mut self) -> Option<&mut u64> {
                match self {
                    $(Self::$read(_))|* => None,
                    $(Self::$update(operation) => operation.now_mut(),)*
                }
            }

            #[inline]
            pub(crate) fn work_on<K: access::Keys>(&self, keys: &K) -> usize {
                match self {
                    $(Self::$read(operation) => operation.work_on(keys),)*
                    $(Self::$update(_))|* => 0,
                }
            }

            pub(crate) fn bytes_gone_through<K: access::Keys>(&self, keys: &K) -> usize {
                match self {
                    $(Self::$read(_))|* => 0,
                    $(Self::$update(operation) => operation.bytes_gone_through(keys),)*
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
            pub(crate) fn read<D: access::Databases>(
                &self,
                databases: &D,
                database: Database,
                view: View,
                reply: &mut Vec<u8>,
            ) -> ExecutionResult {
                match self {
                    $(Self::$read(operation) => operation.read_of(databases, database, view, reply),)*
                    $(Self::$update(_))|* => Err(ExecutionError::NotRead),
                }
            }

            /// Executes it in this database.
            pub(crate) fn apply<D: access::DatabasesMut>(
                &self,
                databases: &mut D,
                database: Database,
                view: View,
                reply: &mut Vec<u8>,
            ) -> ExecutionResult {
                match self {
                    $(Self::$read(operation) => operation.read_of(databases, database, view, reply),)*
                    $(Self::$update(operation) => {
                        operation.apply_to(databases, database, view.now.as_millis(), reply)
                    })*
                }
            }
        }

        /// The names of all operations, and how many bytes each takes when it is decoded.
        #[cfg(test)]
        const SIZES: &[(&str, usize)] = &[
            $((stringify!($read), size_of::<$read>()),)*
            $((stringify!($update), size_of::<$update>()),)*
        ];

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
        generic::dump::Dump<'a>,
        generic::exists::Exists<'a>,
        generic::key_type::Type<'a>,
        generic::keys::Keys<'a>,
        generic::memory_usage::MemoryUsage<'a>,
        generic::object::Object<'a>,
        generic::randomkey::RandomKey,
        generic::scan::Scan<'a>,
        generic::sort::Sort<'a>,
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
        hashes::hscan::HScanFields<'a>,
        hashes::hstrlen::HStrLen<'a>,
        hashes::httl::HTtl<'a>,
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
        sorted_sets::zscan::ZScanMembers<'a>,
        sorted_sets::zscore::ZScore<'a>,
        streams::xawait::XAwait<'a>,
        streams::xhelp::XHelp,
        streams::xinfo::XInfo<'a>,
        streams::xlen::XLen<'a>,
        streams::xnews::XNews<'a>,
        streams::xpending::XPending<'a>,
        streams::xrange::XRange<'a>,
        streams::xread::XRead<'a>,
        strings::get::Get<'a>,
        strings::getrange::GetRange<'a>,
        strings::lcs::Lcs<'a>,
        strings::mget::MGet<'a>,
        strings::strlen::StrLen<'a>,
        transactions::versions::Versions<'a>,
        users::look::UserLook<'a>,
        waiting::turns::Turns<'a>,
    }
    updates {
        bitmaps::bitfield::BitField<'a>,
        bitmaps::bitop::BitOp<'a>,
        bitmaps::setbit::SetBit<'a>,
        generic::copy::Copy<'a>,
        generic::copy::CopyAcross<'a>,
        generic::del::Del<'a>,
        generic::evict::Evict<'a>,
        generic::expire::Expire<'a>,
        generic::move_key::Move<'a>,
        generic::persist::Persist<'a>,
        generic::rename::Rename<'a>,
        generic::rename::RenameNx<'a>,
        generic::restore::Restore<'a>,
        generic::restore::RestoreReplace<'a>,
        generic::sort::SortStore<'a>,
        geo::geoadd::GeoAdd<'a>,
        geo::geosearchstore::GeoSearchStore<'a>,
        hashes::hdel::HDel<'a>,
        hashes::hexpire::HExpire<'a>,
        hashes::hgetdel::HGetDel<'a>,
        hashes::hgetex::HGetEx<'a>,
        hashes::hincrby::HIncrBy<'a>,
        hashes::hincrbyfloat::HIncrByFloat<'a>,
        hashes::hpersist::HPersist<'a>,
        hashes::hset::HSet<'a> | OPCODE_SAYS_OK,
        hashes::hsetex::HSetEx<'a>,
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
        server::flushall::FlushDb,
        server::swapdb::SwapDb,
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
        streams::xack::XAck<'a>,
        streams::xadd::XAdd<'a> | OPCODE_WITH_OPTIONS,
        streams::xautoclaim::XAutoClaim<'a>,
        streams::xclaim::XClaim<'a>,
        streams::xdel::XDel<'a>,
        streams::xgroup::XGroup<'a>,
        streams::xreadgroup::XReadGroup<'a>,
        streams::xsetid::XSetId<'a>,
        streams::xtrim::XTrim<'a>,
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
        users::delete::UserDelete<'a>,
        users::set::UserSet<'a>,
        waiting::leave::Leave<'a>,
        waiting::take::Take<'a>,
    }
    connection {
        acl::Acl,
        auth::Auth,
        bgrewriteaof::BgRewriteAof,
        bgsave::BgSave,
        client::Client,
        cluster::Cluster,
        command::Command,
        config::Config,
        debug::Debug,
        discard::Discard,
        echo::Echo,
        exec::Exec,
        failover::Failover,
        hello::Hello,
        help::Help,
        info::Info,
        lastsave::LastSave,
        latency::Latency,
        lolwut::Lolwut,
        memory::Memory,
        module::Module,
        monitor::Monitor,
        multi::Multi,
        ping::Ping,
        psync::PSync,
        psubscribe::PSubscribe,
        publish::Publish,
        pubsub::PubSub,
        punsubscribe::PUnsubscribe,
        quit::Quit,
        replicaof::ReplicaOf,
        reset::Reset,
        role::Role,
        save::Save,
        select::Select,
        shutdown::Shutdown,
        slaveof::SlaveOf,
        slowlog::SlowLog,
        sync::Sync,
        spublish::SPublish,
        ssubscribe::SSubscribe,
        subscribe::Subscribe,
        sunsubscribe::SUnsubscribe,
        time::Time,
        unsubscribe::Unsubscribe,
        unwatch::Unwatch,
        wait::Wait,
        waitaof::WaitAof,
        watch::Watch,
    }
    others {
        generic::blind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;

    /// What a decoded operation takes decides how long the most frequent ones take. One with many options is
    /// [`Indirect`].
    #[test]
    fn operations_are_small() {
        let limit = |name| if name == "Set" { 56 } else { 48 };
        let large: Vec<_> = SIZES.iter().filter(|(name, size)| *size > limit(*name)).collect();
        assert!(large.is_empty(), "{large:?}");
        assert_eq!(size_of::<Command<'_>>(), 56);
        assert_eq!(size_of::<Operation<'_>>(), 64);
    }
}
