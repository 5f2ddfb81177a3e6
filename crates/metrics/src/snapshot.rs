//! What the dashboard shows, as one object of JSON.
//!
//! It has the figures of `/metrics` and, in the place of names that clients choose, those of tables of ours: a command that took
//! long is told by its name in the table of commands, without its words. Times are counted since the start of the process: who
//! reads the object twice takes the difference.

use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};
use syros_resp::{CommandTimes, CommandUse, ServerReport, Shared};

use crate::not_ready;
use crate::told::{Distribution, Member, MemberReport, Members, Peer, ReplicaActivity, ToBe, Told};

/// Commands that are told of one by one: those that have come most often. Others are in the sums alone.
const COMMANDS_MAX: usize = 24;

/// Commands that took long that are told of: as many as fit on a screen.
const SLOW_MAX: usize = 24;

/// Characters of an address or of a problem: a line on a screen.
const TEXT_MAX: usize = 200;

/// The object. It has less than 256 KiB, whatever clients do.
#[must_use]
pub fn snapshot(told: &Told, members: &Members) -> String {
    let Told { report, shared, ways, peers, replica, to_be, traces: _ } = told;
    let commands = shared.statistics.times_of_commands();
    let mut all = json!({
        "now_ms": now_ms(),
        "version": report.version,
        "uptime_seconds": report.uptime_seconds,
        "role": report.role,
        "status": report.status,
        "not_ready": not_ready(report),
        "replica": report.replica,
        "to_be": to_be.map(|ToBe { replica, way }| json!({ "replica": replica, "way": way.name() })),
        "group_size": report.group_size,
        "mode": report.fast_quorum,
        "active": report.active,
        "durability": if report.fsync { "fsync" } else { "replicated" },
        "view": report.view,
        "epoch": report.epoch,
        "leader": report.leader,
        "silent_ms": report.silent_ms,
        "members": members_of(told, &members.all),
        "members_age_ms": u64::try_from(members.age.as_millis()).unwrap_or(u64::MAX),
        "answered": counts(report.answered.iter().map(|(name, count)| (*name, *count))),
        "clients": clients(report, shared),
        "process": {
            "cpu_ms": report.cpu_millis.iter().sum::<u64>(),
            "resident_bytes": report.memory_bytes,
            "machine_bytes": report.memory_total_bytes,
        },
        "data": {
            "bytes": report.data_bytes,
            "bytes_max": report.maxmemory,
            "keys": report.databases.iter().map(|database| database.keys).sum::<u64>(),
            "keys_expired": report.keys_expired,
            "keys_evicted": report.keys_evicted,
        },
        "disk": disk(report),
        "certificate_expires": report.certificate_expires,
        "errors": counts(shared.statistics.errors().iter().map(|(code, count)| (code.as_str(), *count))),
        "commands": most_used(&commands),
        "times": {
            "reads": times_of(&commands, CommandUse::Reads),
            "updates": times_of(&commands, CommandUse::Updates),
        },
        "slow": slow(shared),
    });
    all["ways"] =
        ways.iter().map(|(way, times)| ((*way).to_owned(), distribution(times)["buckets"].take())).collect();
    all["peers"] = peers.iter().map(|peer| peer_of(*peer)).collect();
    if let Some(replica) = replica {
        all["own"] = own(report, replica);
    }
    all.to_string()
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

fn counts<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> Value {
    Value::Object(counts.map(|(name, count)| (name.to_owned(), json!(count))).collect())
}

fn clients(report: &ServerReport, shared: &Shared) -> Value {
    let totals = shared.statistics.totals_of_clients();
    json!({
        "connected": report.clients,
        "connected_max": report.clients_max,
        "waiting": totals.waiting,
        "memory_bytes": report.client_memory_bytes,
        "memory_bytes_max": report.client_memory_max,
        "evicted": report.clients_evicted,
        "rejected": report.connections_rejected,
        "received": report.connections_received,
        "input_bytes": totals.input_bytes,
        "output_bytes": totals.output_bytes,
        "hits": totals.hits,
        "misses": totals.misses,
        "commands": report.commands_processed,
    })
}

/// The disk of a process that has one.
fn disk(report: &ServerReport) -> Value {
    if report.disk.is_empty() {
        return Value::Null;
    }
    json!({
        "state": report.disk,
        "is_short": report.disk_is_short,
        "free_bytes": report.disk_free_bytes,
        "reserve_bytes": report.disk_reserve_bytes,
        "free_inodes": report.disk_free_inodes,
    })
}

fn peer_of(peer: Peer) -> Value {
    json!({
        "member": peer.member,
        "is_connected": peer.is_connected,
        "acknowledged": peer.acknowledged,
    })
}

/// The replica of this process.
fn own(report: &ServerReport, replica: &ReplicaActivity) -> Value {
    json!({
        "commit": report.commit,
        "applied": report.applied,
        "last_entry": replica.last_entry,
        "durability_log": report.durability_log,
        "log_bytes": replica.log_bytes,
        "sessions": replica.sessions,
        "fast_updates": report.fast_updates,
        "ordered_updates": report.slow_updates,
        "conflicts": replica.conflicts,
        "refused": counts(replica.refusals.iter().copied()),
        "view_changes": counts(replica.view_changes.iter().copied()),
        "sync_micros": distribution(&replica.syncs),
        "sync_records": distribution(&replica.sync_records),
        "sync_bytes": distribution(&replica.sync_bytes),
    })
}

fn distribution(Distribution { sum, buckets }: &Distribution) -> Value {
    let filled: Vec<&(u64, u64)> = buckets.iter().filter(|(_, count)| *count > 0).collect();
    json!({ "sum": sum, "buckets": filled })
}

/// All members: what they answered, and of this process itself what it knows.
fn members_of(told: &Told, members: &[Member]) -> Value {
    let Told { report, peers, replica, .. } = told;
    let own_place = told.place();
    let member = |(place, member): (usize, &Member)| {
        let place = u8::try_from(place).unwrap_or(u8::MAX);
        let peer = peers.iter().find(|peer| peer.member == place);
        let own =
            replica.as_ref().filter(|_| own_place == Some(place)).map(|replica| own_report(report, replica));
        let answer = own.map(Ok).or_else(|| member.answer.clone());
        let mut all = Map::new();
        all.insert("member".to_owned(), json!(place));
        all.insert("address".to_owned(), json!(cut(&member.address)));
        all.insert("is_self".to_owned(), json!(own_place == Some(place)));
        all.insert("is_connected".to_owned(), json!(peer.map(|peer| peer.is_connected)));
        all.insert("acknowledged".to_owned(), json!(peer.and_then(|peer| peer.acknowledged)));
        match answer {
            Some(Ok(report)) => {
                all.insert("role".to_owned(), json!(report.role));
                all.insert("has_no_quorum".to_owned(), json!(report.has_no_quorum));
                all.insert("has_disk_trouble".to_owned(), json!(report.has_disk_trouble));
                all.extend(report.numbers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
            }
            Some(Err(problem)) => drop(all.insert("problem".to_owned(), json!(cut(&problem)))),
            None => {}
        }
        if let Some(why) = &member.unknown {
            all.insert("unknown".to_owned(), json!(cut(why)));
        }
        Value::Object(all)
    };
    members.iter().enumerate().map(member).collect()
}

/// What this process would answer another one that asks how it is.
fn own_report(report: &ServerReport, replica: &ReplicaActivity) -> MemberReport {
    let [fast_reads, slow_reads] = replica.reads;
    MemberReport {
        replica: report.replica.unwrap_or(0),
        role: match report.status.as_str() {
            "view-change" | "recovering" => report.status.clone(),
            _ => report.role.clone(),
        },
        has_no_quorum: report.status == "no-quorum",
        has_disk_trouble: report.disk != "ok" || report.disk_is_short,
        numbers: vec![
            ("view", report.view),
            ("epoch", report.epoch),
            ("op", replica.last_entry),
            ("commit", report.commit),
            ("applied", report.applied),
            ("dlog", report.durability_log),
            ("sessions", replica.sessions),
            ("log_bytes", replica.log_bytes),
            ("fast_updates", report.fast_updates),
            ("slow_updates", report.slow_updates),
            ("conflicts", replica.conflicts),
            ("fast_reads", fast_reads),
            ("slow_reads", slow_reads),
            ("refused", replica.refused),
            ("view_changes", replica.views_entered),
            ("silent_ms", report.silent_ms),
        ],
    }
}

/// The commands that have come most often, each with its times.
fn most_used(commands: &[CommandTimes]) -> Value {
    let mut commands: Vec<&CommandTimes> = commands.iter().collect();
    commands.sort_by_key(|command| Reverse(command.calls));
    commands
        .iter()
        .take(COMMANDS_MAX)
        .map(|CommandTimes { name, calls, errors, times, .. }| {
            json!({ "name": name, "calls": calls, "errors": errors, "times": times })
        })
        .collect()
}

/// The times of all commands of one use.
fn times_of(commands: &[CommandTimes], used_for: CommandUse) -> Vec<(u64, u64)> {
    let mut sum = BTreeMap::new();
    for command in commands.iter().filter(|command| command.used_for == used_for) {
        for (end, count) in &command.times {
            *sum.entry(*end).or_insert(0) += count;
        }
    }
    sum.into_iter().collect()
}

fn slow(shared: &Shared) -> Value {
    let one = |slow: syros_resp::SlowCommandName| {
        json!({
            "number": slow.number,
            "at_ms": slow.at.0 / 1000,
            "micros": u64::try_from(slow.took.as_micros()).unwrap_or(u64::MAX),
            "command": slow.name,
            "words": slow.words,
        })
    };
    shared.slow_commands(SLOW_MAX).into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::told::Way;
    use std::sync::Arc;
    use std::time::Duration;

    fn told() -> Told {
        let report = ServerReport {
            role: "leader".to_owned(),
            status: "normal".to_owned(),
            disk: "ok",
            replica: Some(1),
            leader: Some(1),
            group_size: 3,
            commit: 90,
            applied: 88,
            ..ServerReport::default()
        };
        let replica = ReplicaActivity { last_entry: 100, ..ReplicaActivity::default() };
        let peers = vec![
            Peer { member: 0, is_connected: true, acknowledged: Some(97) },
            Peer { member: 2, is_connected: false, acknowledged: Some(5) },
        ];
        let ways = vec![("reads_by_leader", Distribution { sum: 9, buckets: vec![(1, 0), (8, 3), (16, 0)] })];
        Told {
            report,
            shared: Arc::default(),
            ways,
            peers,
            replica: Some(replica),
            to_be: None,
            traces: None,
        }
    }

    fn member(address: &str, answer: Option<Result<MemberReport, String>>) -> Member {
        Member { answer, ..Member::at(address) }
    }

    #[test]
    fn each_member_says_how_it_is_and_this_one_is_not_asked() {
        let follower = MemberReport {
            role: "follower".to_owned(),
            numbers: vec![("op", 97)],
            ..MemberReport::default()
        };
        let down = "connection <refused> \"\u{1b}[31m".to_owned();
        let members =
            [member("a:1", Some(Ok(follower))), member("b:1", None), member("c:1", Some(Err(down.clone())))];
        let members = Members { all: members.into(), age: Duration::from_secs(9) };
        let json: Value = serde_json::from_str(&snapshot(&told(), &members)).unwrap();
        assert_eq!(json["members_age_ms"], json!(9000));
        let of = |place: usize, name: &str| json["members"][place][name].clone();
        assert_eq!(
            (of(0, "role"), of(0, "op"), of(0, "acknowledged")),
            (json!("follower"), json!(97), json!(97))
        );
        assert_eq!(
            (of(1, "role"), of(1, "op"), of(1, "is_self")),
            (json!("leader"), json!(100), json!(true))
        );
        assert_eq!((of(1, "is_connected"), of(2, "is_connected")), (Value::Null, json!(false)));
        assert_eq!((of(2, "problem"), of(2, "role")), (json!(down), Value::Null));
        assert_eq!((&json["leader"], &json["own"]["applied"]), (&json!(1), &json!(88)));
        assert_eq!(json["ways"], json!({ "reads_by_leader": [[8, 3]] }));
    }

    #[test]
    fn a_process_without_replica_disk_and_leader_says_so() {
        let mut told = told();
        (told.report.replica, told.report.leader, told.report.disk) = (None, None, "");
        told.replica = None;
        let json: Value = serde_json::from_str(&snapshot(&told, &Members::default())).unwrap();
        assert_eq!(
            (&json["leader"], &json["disk"], &json["own"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
        assert_eq!(json["members"], json!([]));
        assert_eq!(json["not_ready"], json!(["it knows of no leader"]));
    }

    #[test]
    fn a_node_that_joins_says_which_one_it_is_to_be() {
        let mut told = told();
        (told.report.replica, told.replica) = (None, None);
        told.to_be = Some(ToBe { replica: 1, way: Way::Join });
        let unknown = Member { unknown: Some("its name is being looked up".to_owned()), ..Member::at("a:1") };
        let members = Members { all: vec![unknown, Member::at("b:1")], age: Duration::ZERO };
        let json: Value = serde_json::from_str(&snapshot(&told, &members)).unwrap();
        assert_eq!(
            (&json["replica"], &json["to_be"]),
            (&Value::Null, &json!({ "replica": 1, "way": "join" }))
        );
        assert_eq!(json["members"][1]["is_self"], json!(true));
        assert_eq!(json["members"][0]["unknown"], json!("its name is being looked up"));
        assert_eq!(json["members"][0]["problem"], Value::Null);
    }

    /// As many commands as there are, each with times of all lengths, cannot make it long; nor can long names.
    #[test]
    fn its_length_is_bounded() {
        let times: Vec<(u64, u64)> = (0..304).map(|place| (u64::MAX - place, u64::MAX)).collect();
        let command = |number: u64| CommandTimes {
            name: "georadiusbymember_ro",
            used_for: CommandUse::Reads,
            calls: number,
            errors: u64::MAX,
            times: times.clone(),
        };
        let commands: Vec<CommandTimes> = (0..500).map(command).collect();
        let told_of = most_used(&commands);
        assert_eq!((told_of.as_array().unwrap().len(), &told_of[0]["calls"]), (COMMANDS_MAX, &json!(499)));
        let commands_bytes = told_of.to_string().len()
            + 2 * json!(times_of(&commands[..1], CommandUse::Reads)).to_string().len();
        let members: Vec<Member> =
            (0..9).map(|_| member(&"x".repeat(100_000), Some(Err("y".repeat(100_000))))).collect();
        let rest = snapshot(&told(), &Members { all: members, age: Duration::ZERO }).len();
        // Ends of buckets have 13 digits at most, where these have 20.
        assert!(commands_bytes + rest < (400 << 10), "{commands_bytes} {rest}");
    }
}
