//! Ports for a development cluster.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

/// The replicas' ports are looked for this far above the first Redis port.
const REPLICA_PORT_DISTANCE: u16 = 100;

/// Checks that the `count` ports from `first` on can be listened on, which `option` has chosen.
fn check(option: &str, first: u16, count: usize) -> Result<(), String> {
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

/// Checks the `count` ports from the first one of each option on: as [`check`], and no two options have the same.
pub(super) fn check_all(options: &[(&str, u16)], count: usize) -> Result<(), String> {
    for (position, (option, first)) in options.iter().enumerate() {
        let overlaps = |(_, other): &&(&str, u16)| usize::from(first.abs_diff(*other)) < count;
        if let Some((other_option, other)) = options[..position].iter().find(overlaps) {
            return Err(format!(
                "{option} {first} and {other_option} {other}: {count} ports from each of them on overlap"
            ));
        }
        check(option, *first, count)?;
    }
    Ok(())
}

/// The `count` ports from `first` on.
fn ports_from(first: u16, count: usize) -> Range<u16> {
    first..first.saturating_add(u16::try_from(count).unwrap_or(u16::MAX))
}

/// Ports for the replicas: those they had if they are free, else the first free ones above the Redis
/// ports, the first of `taken`. None is in a range that begins with one of those. Not ones the system picks: those are
/// also given to outgoing connections, and a node that restarts could find its port taken.
pub(super) fn for_replicas(stored: &[u16], taken: &[u16], count: usize) -> Result<Vec<u16>, String> {
    let is_taken = |port: &u16| taken.iter().any(|first| ports_from(*first, count).contains(port));
    let usable = |port: &u16| !is_taken(port) && is_free(*port);
    if stored.len() == count && stored.iter().all(usable) {
        return Ok(stored.to_vec());
    }
    let first = taken[0].saturating_add(REPLICA_PORT_DISTANCE);
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
        let with_metrics = |metrics| check_all(&[("--port", 20_000), ("--metrics", metrics)], 3);
        let error = with_metrics(65_534).unwrap_err();
        assert!(error.contains("--metrics 65534 leaves no room"), "{error}");
        assert!(with_metrics(20_002).unwrap_err().contains("overlap"));
        assert!(with_metrics(19_998).unwrap_err().contains("overlap"));

        let chosen = for_replicas(&[port, port - 1, port - 2], &[20_000], 3).unwrap();
        assert!(!chosen.contains(&port) && chosen.len() == 3);
        assert_eq!(for_replicas(&chosen, &[20_000], 3), Ok(chosen.clone()));
        for taken in [vec![chosen[0]], vec![20_000, chosen[0]]] {
            let moved = for_replicas(&chosen, &taken, 3).unwrap();
            assert!(moved.iter().all(|port| !(chosen[0]..chosen[0] + 3).contains(port)));
        }
    }
}
