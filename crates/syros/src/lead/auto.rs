//! `syros lead --auto`: asks the front ends again and again, and moves the lead to where their clients wait least, or to whom the
//! operator prefers.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use syros_client::{EntriesCopy, StatusReport};
use syros_types::Group;

use super::choice::{Chooser, FrontEnd, Move, Terms, Why};
use super::{Options, move_to};
use crate::cluster::{ANSWER_TIMEOUT, Cluster};
use crate::status::{info_of, leader_of, leads, order, problem, query, reports_of};

/// A replica that is so many entries behind the leader does not take over: it would have to catch up first.
const LAG_MAX: u64 = 10_000;

/// What a front end said last: the time, and the number of operations since its process began.
type Seen = BTreeMap<String, (Instant, u64)>;

/// Watches the cluster until somebody ends the process.
pub(super) fn run(options: &Options) -> Result<ExitCode, String> {
    let auto = &options.auto;
    let terms = Terms {
        gain: auto.gain / 100.0,
        least: auto.least,
        lasts: auto.lasts,
        pause: auto.pause,
        rate_min: auto.rate_min,
    };
    let mut chooser = Chooser::new(terms, auto.prefer.clone());
    let mut seen = Seen::new();
    let mut said = String::new();
    let mut say = |line: String| {
        // What goes on is said once.
        if line != said {
            syros_cli::tell!("{line}");
            said = line;
        }
    };
    // What is wrong from the beginning, such as a wrong secret, ends the command; what goes wrong later passes.
    let mut cluster = options.cluster.open()?;
    check_rights(&cluster)?;
    check_preferred(&auto.prefer, cluster.replicas.len())?;
    let mut leader = None;
    loop {
        let began = Instant::now();
        match options.cluster.open() {
            Ok(found) => cluster = found,
            Err(problem) => say(problem),
        }
        match look(&cluster, options, &mut seen, &mut chooser, &mut leader) {
            Ok(Look::Move { leader: present, group, found }) => {
                let to = found.to;
                let why = match found.why {
                    Why::Waits([wait, next]) => format!(
                        "an operation waits {} with replica {present} as the leader of {group}, and would wait {} with replica {to}",
                        milliseconds(wait),
                        milliseconds(next)
                    ),
                    Why::Preferred => {
                        format!("replica {present} leads, and replica {to} is preferred and can")
                    }
                };
                if auto.dry_run {
                    say(format!("{why}: the lead would move"));
                    chooser.not_moved();
                } else {
                    say(why);
                    match move_to(&cluster, to) {
                        Ok(line) => {
                            chooser.moved(Instant::now(), present, to);
                            leader = Some(to);
                            say(line);
                        }
                        Err(problem) => {
                            chooser.not_moved();
                            say(problem);
                        }
                    }
                }
            }
            Ok(Look::Nothing(line)) => say(line),
            Err(problem) => say(problem),
        }
        thread::sleep(auto.every.saturating_sub(began.elapsed()));
    }
}

/// What has come of asking all.
enum Look {
    Move { leader: u8, group: usize, found: Move },
    Nothing(String),
}

/// Finds out whether the lead may be moved with what the options give, before it has to.
fn check_rights(cluster: &Cluster) -> Result<(), String> {
    let (leader, _) = cluster.leader()?;
    order(leader, |address| EntriesCopy::connect(address, cluster.access(), ANSWER_TIMEOUT).map(drop))
}

/// Finds out whether these replicas can be there.
fn check_preferred(preferred: &[u8], replicas: usize) -> Result<(), String> {
    for (place, replica) in preferred.iter().enumerate() {
        if usize::from(*replica) >= replicas {
            return Err(format!(
                "there is no replica {replica} to prefer: the cluster has replicas 0 to {}",
                replicas - 1
            ));
        }
        if preferred[..place].contains(replica) {
            return Err(format!("replica {replica} stands twice in the list of those preferred"));
        }
    }
    Ok(())
}

fn look(
    cluster: &Cluster,
    options: &Options,
    seen: &mut Seen,
    chooser: &mut Chooser,
    led: &mut Option<u8>,
) -> Result<Look, String> {
    let reports = reports_of(&cluster.replicas, cluster.access());
    let by_replica: BTreeMap<u8, StatusReport> =
        reports.iter().map(|(_, report)| (report.replica, report.clone())).collect();
    if by_replica.is_empty() {
        let first = cluster.replicas.iter().find(|replica| !replica.is_empty());
        let problem = first.and_then(|replica| query(replica, cluster.access()).err());
        return Err(format!("no replica answers: {}", problem.unwrap_or_else(|| "try again".to_owned())));
    }
    let Some((_, leader)) = leader_of(reports).filter(|(_, report)| leads(report)) else {
        return Err("no replica leads with a majority at the moment".to_owned());
    };
    let Ok(group) = Group::new(usize::from(leader.replicas)) else {
        return Err(format!("the leader says that the group has {} members", leader.replicas));
    };
    let now = Instant::now();
    if let Some(before) = led.replace(leader.replica).filter(|before| *before != leader.replica) {
        chooser.moved(now, before, leader.replica);
    }
    let (mut front_ends, mut silent, mut length) = (Vec::new(), Vec::new(), Duration::ZERO);
    for address in options.cluster.addresses() {
        let Ok((front_end, total)) = info_of(address, cluster.access().credentials).map(|text| read(&text))
        else {
            // Its clients cannot be served by it either.
            seen.remove(address);
            silent.push(address.as_str());
            continue;
        };
        // A process that was started again counts from nothing.
        let before = seen.insert(address.clone(), (now, total)).filter(|(_, before)| *before <= total);
        if let Some((at, before)) = before {
            length = length.max(now.duration_since(at));
            front_ends.push(FrontEnd { operations: total - before, ..front_end });
        } else {
            front_ends.push(front_end);
        }
    }
    let may_lead = |replica: u8| {
        by_replica.get(&replica).is_some_and(|report| {
            problem(report).is_none()
                && report.view == leader.view
                && report.commit + LAG_MAX >= leader.commit
        })
    };
    let found = chooser.consider((now, length), leader.replica, (&front_ends, group), may_lead);
    if let Some(found) = found {
        return Ok(Look::Move { leader: leader.replica, group: group.size(), found });
    }
    let mut line = format!("replica {} leads", leader.replica);
    if !silent.is_empty() {
        line += &format!("; no answer from {}", silent.join(", "));
    }
    Ok(Look::Nothing(line))
}

/// What a front end says of itself in INFO, and how many operations of its clients have been answered in all.
fn read(info: &str) -> (FrontEnd, u64) {
    let mut front_end = FrontEnd::default();
    let (mut total, mut own) = (0, 0);
    for (name, value) in info.lines().filter_map(|line| line.split_once(':')) {
        let Ok(value) = value.trim().parse::<u64>() else { continue };
        if name == "replica" {
            front_end.replica = u8::try_from(value).ok();
        } else if name.starts_with("writes_") || name.starts_with("reads_") && name != "reads_stale" {
            // Those that were answered without a look at the leader would not be sooner with another one: stale ones, by choice.
            total += value;
        } else if name == "own_reads" {
            own = value;
        } else if let Some(replica) = name.strip_prefix("round_trip_us_").and_then(|place| place.parse().ok())
        {
            front_end.round_trips.insert(replica, Duration::from_micros(value));
        }
    }
    (front_end, u64::saturating_sub(total, own))
}

/// A time as people read it.
fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_end_is_read_from_info() {
        let info = "# Syros\r\nreplica_role:follower\r\nreplica:2\r\nleader:0\r\nreads:99\r\nreads_by_leader:3\r\nown_reads:2\r\nreads_stale:7\r\n\
            writes_by_quorum:5\r\nwrites_by_leader:x\r\nround_trip_us_0:40000\r\nround_trip_us_x:1\r\nreplica_0_address:db1:7379\r\n";
        let round_trips = BTreeMap::from([(0, Duration::from_millis(40))]);
        assert_eq!(read(info), (FrontEnd { replica: Some(2), operations: 0, round_trips }, 6));
        assert_eq!(read("garbage"), (FrontEnd::default(), 0));
    }
}
