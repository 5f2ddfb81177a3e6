//! Ports for a development cluster.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

/// The replicas' ports are looked for this far above the first Redis port.
const REPLICA_PORT_DISTANCE: u16 = 100;

/// Checks that the `count` ports from `first` on can be listened on, which `option` has chosen.
pub(super) fn check(option: &str, first: u16, count: usize) -> Result<(), String> {
    for offset in 0..count {
        let port = u16::try_from(offset).ok().and_then(|offset| first.checked_add(offset));
        let port =
            port.ok_or_else(|| format!("{option} {first} leaves no room for {count} ports below 65536"))?;
        if let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            let why = match error.kind() {
                ErrorKind::AddrInUse => "is in use already".to_owned(),
                _ => format!("cannot be used: {error}"),
            };
            return Err(format!("port {port} {why}; choose another with {option}"));
        }
    }
    Ok(())
}

/// Checks the `count` ports from `first` on for metrics: as [`check`], and none of them is a Redis port.
pub(super) fn check_metrics(first: u16, redis: u16, count: usize) -> Result<(), String> {
    if usize::from(first.abs_diff(redis)) < count {
        return Err(format!(
            "--metrics {first} and --port {redis}: {count} ports from each of them on overlap"
        ));
    }
    check("--metrics", first, count)
}

/// The `count` ports from `first` on.
fn ports_from(first: u16, count: usize) -> Range<u16> {
    first..first.saturating_add(u16::try_from(count).unwrap_or(u16::MAX))
}

/// Ports for the replicas: those they had if they are free, else the first free ones above the Redis
/// ports. None is a Redis port or, from `metrics` on, one for metrics. Not ones the system picks: those are
/// also given to outgoing connections, and a node that restarts could find its port taken.
pub(super) fn for_replicas(
    stored: &[u16],
    (redis, metrics): (u16, Option<u16>),
    count: usize,
) -> Result<Vec<u16>, String> {
    let taken = [Some(redis), metrics].map(|first| first.map(|first| ports_from(first, count)));
    let is_taken = |port: &u16| taken.iter().flatten().any(|ports| ports.contains(port));
    let usable = |port: &u16| !is_taken(port) && is_free(*port);
    if stored.len() == count && stored.iter().all(usable) {
        return Ok(stored.to_vec());
    }
    let first = redis.saturating_add(REPLICA_PORT_DISTANCE);
    let found: Vec<u16> = (first..u16::MAX).chain(1024..first).filter(usable).take(count).collect();
    if found.len() < count {
        return Err("there are not enough free ports for the replicas".to_owned());
    }
    Ok(found)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_ports_are_named_or_avoided() {
        let busy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = busy.local_addr().unwrap().port();
        let error = check("--port", port, 1).unwrap_err();
        assert!(error.contains(&format!("port {port} is in use already")), "{error}");
        assert!(check("--port", 65_535, 3).unwrap_err().contains("no room"));
        let error = check_metrics(65_534, 20_000, 3).unwrap_err();
        assert!(error.contains("--metrics 65534 leaves no room"), "{error}");
        assert!(check_metrics(20_002, 20_000, 3).unwrap_err().contains("overlap"));
        assert!(check_metrics(19_998, 20_000, 3).unwrap_err().contains("overlap"));

        let chosen = for_replicas(&[port, port - 1, port - 2], (20_000, None), 3).unwrap();
        assert!(!chosen.contains(&port) && chosen.len() == 3);
        assert_eq!(for_replicas(&chosen, (20_000, None), 3), Ok(chosen.clone()));
        for (redis, metrics) in [(chosen[0], None), (20_000, Some(chosen[0]))] {
            let moved = for_replicas(&chosen, (redis, metrics), 3).unwrap();
            assert!(moved.iter().all(|port| !(chosen[0]..chosen[0] + 3).contains(port)));
        }
    }
}
