//! Replicas that are not what they should be are named, with the reason.

use crate::fake::{Identity, cluster, cluster_of, start};
use std::time::Duration;
use syros_client::{Access, Client, ConnectError, LinkError, Options, status};
use syros_types::{FastQuorum, InvalidGroupSize, ReplicaId};
use syros_wire::{HelloError, VERSION, VERSION_MIN};

fn impatient() -> Options {
    Options { connect_timeout: Duration::from_millis(300), ..Options::default() }
}

/// The error of every replica, if none can be talked to.
fn errors(identities: &[Identity], options: Options) -> Vec<LinkError> {
    let cluster = cluster_of(identities);
    match Client::connect(&cluster.addresses, options).unwrap().wait() {
        Err(ConnectError::NoReplica(errors)) => {
            errors.into_iter().map(|(_, error)| error.expect("it has answered")).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn addresses_must_be_as_many_as_the_group_has() {
    let cluster = cluster(3);
    let error = Client::connect(&cluster.addresses[..2], impatient()).unwrap_err();
    assert!(matches!(error, ConnectError::GroupSize(InvalidGroupSize(2))));
    let found = errors(&[Identity::of(0, 3)], impatient());
    assert_eq!(found, [LinkError::GroupSize { found: 3, expected: 1 }]);
}

#[test]
fn addresses_must_be_in_order() {
    let found = errors(&[Identity::of(1, 3), Identity::of(2, 3), Identity::of(0, 3)], impatient());
    let wrong =
        |found, expected| LinkError::WrongReplica { found: ReplicaId(found), expected: ReplicaId(expected) };
    assert_eq!(found, [wrong(1, 0), wrong(2, 1), wrong(0, 2)]);
}

#[test]
fn the_cluster_must_be_the_one_asked_for() {
    let found = errors(&[Identity::of(0, 1)], Options { cluster: 5, ..impatient() });
    assert_eq!(found, [LinkError::Hello(HelloError::Cluster { theirs: 77, ours: 5 })]);
}

/// Replicas of before refuse whoever begins in a version that they do not know, and say which one they speak.
#[test]
fn replicas_of_an_older_version_are_spoken_to_in_theirs() {
    for version in [VERSION_MIN, VERSION - 1, VERSION] {
        // A write to a group of one waits for that one.
        let cluster = start(vec![Identity::of(0, 1).hello_as(version)]);
        let client = Client::connect(&cluster.addresses, Options::default()).unwrap().wait().unwrap();
        client.set("key", "value").wait().unwrap();
        let expected = if version == VERSION { vec![VERSION] } else { vec![VERSION, version] };
        assert_eq!(*cluster.greeted[0].lock().unwrap(), expected);
        cluster.stop();
    }
}

#[test]
fn another_version_is_refused_by_name() {
    let mut hello = Vec::new();
    syros_wire::put_frame(&mut hello, syros_wire::Channel::Handshake, |out| {
        out.extend_from_slice(b"SYRS");
        out.extend_from_slice(&(VERSION + 1).to_le_bytes());
        out.extend_from_slice(b" from the future");
    });
    let refusal = format!(
        "peer speaks wire format version {}, this process speaks {VERSION_MIN} to {VERSION}",
        VERSION + 1
    );
    let cluster = start(vec![hello]);
    let error = Client::connect(&cluster.addresses, impatient()).unwrap().wait().unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&refusal), "{text}");
    let error = status(cluster.addresses[0], Access::default(), Duration::from_secs(1)).unwrap_err();
    assert_eq!(error.to_string(), refusal);
}

#[test]
fn something_else_than_a_replica_is_refused() {
    let cluster = start(vec![b"-ERR unknown command\r\n".to_vec()]);
    match Client::connect(&cluster.addresses, impatient()).unwrap().wait() {
        Err(ConnectError::NoReplica(errors)) => {
            assert!(matches!(errors[0].1, Some(LinkError::Frame(_))), "{errors:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn replicas_must_agree_with_each_other() {
    use syros_client::{Driver, Endpoint};
    let mut identities = [Identity::of(0, 3), Identity::of(1, 3), Identity::of(2, 3)];
    identities[1].fast_quorum = FastQuorum::Supermajority;
    identities[2].cluster = 78;
    let cluster = cluster_of(&identities);
    let endpoints = cluster.addresses.iter().map(|address| Endpoint::from(*address)).collect();
    let mut driver = Driver::new(endpoints, Options::default()).unwrap();
    // Whoever answers first decides; of the three, no two agree.
    let mut completions = Vec::new();
    while driver.links().filter(|link| link.last_error.is_some()).count() < 2 {
        driver.run_once(Some(Duration::from_secs(5)), &mut completions).unwrap();
    }
    assert_eq!(driver.links().filter(|link| link.is_connected).count(), 1);
    for error in driver.links().filter_map(|link| link.last_error) {
        let is_named = matches!(
            error,
            LinkError::FastQuorum { .. }
                | LinkError::Hello(HelloError::Cluster { theirs: 77 | 78, ours: 77 | 78 })
        );
        assert!(is_named, "{error:?}");
    }
}

#[test]
fn a_status_report_can_be_had_without_a_client() {
    let cluster = cluster(3);
    let report = status(cluster.addresses[2], Access::default(), Duration::from_secs(5)).unwrap();
    assert_eq!((report.replica, report.replicas, report.applied), (2, 3, 42));
}
