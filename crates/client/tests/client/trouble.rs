//! Replicas that are slow, away, or gone.

use crate::fake::{Mood, cluster};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use syros_client::{
    Access, Busy, Client, ConnectError, Error, LinkError, Options, Settings, StatusError, status,
};

fn hasty() -> Options {
    let settings = Settings { give_up_after: Duration::from_millis(300), ..Settings::default() };
    Options { settings, connect_timeout: Duration::from_millis(300), ..Options::default() }
}

#[test]
fn without_an_answer_an_update_is_unknown_and_a_read_has_timed_out() {
    let cluster = cluster(3);
    let client = Client::connect(&cluster.addresses, hasty()).unwrap().wait().unwrap();
    client.set("key", "value").wait().unwrap();
    cluster.set_mood(Mood::Silent);
    let (update, read) = (client.set("key", "other"), client.get("key"));
    assert_eq!(update.wait(), Err(Error::Unknown));
    assert_eq!(read.wait(), Err(Error::TimedOut));
    cluster.set_mood(Mood::Answer);
    assert_eq!(client.set("key", "value").wait(), Ok(()));
}

#[test]
fn too_many_operations_are_busy() {
    let cluster = cluster(1);
    let mut options = hasty();
    options.settings.in_flight_max = 2;
    let client = Client::connect(&cluster.addresses, options).unwrap().wait().unwrap();
    cluster.set_mood(Mood::Silent);
    let pending: Vec<_> = (0..4).map(|_| client.get("key")).collect();
    let results: Vec<_> = pending.into_iter().map(|pending| pending.wait().unwrap_err()).collect();
    let busy = Error::Busy(Busy { in_flight_max: 2 });
    assert_eq!(results.iter().filter(|error| **error == busy).count(), 2, "{results:?}");
    assert_eq!(results.iter().filter(|error| **error == Error::TimedOut).count(), 2);
}

#[test]
fn lost_connections_are_made_again() {
    let cluster = cluster(3);
    let client = Client::connect(&cluster.addresses, Options::default()).unwrap().wait().unwrap();
    for round in 0..12 {
        cluster.cut(round % 3);
        assert_eq!(client.increment("counter", 1).wait(), Ok(round as i64 + 1));
        assert_eq!(client.set("key", round.to_string()).wait(), Ok(()));
        assert_eq!(client.get("key").wait(), Ok(Some(round.to_string().into_bytes())));
    }
}

#[test]
fn a_replica_that_is_late_is_found() {
    // Nobody listens at first; the port is free, or the test cannot tell.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let connecting = Client::connect(&[address], Options::default()).unwrap();
    std::thread::sleep(Duration::from_millis(150));
    let Ok(listener) = TcpListener::bind(address) else { return };
    let accepted = std::thread::spawn(move || listener.accept().is_ok());
    assert!(accepted.join().unwrap());
    drop(connecting);
}

#[test]
fn without_replicas_everything_says_so() {
    let cluster = cluster(3);
    let client = Client::connect(&cluster.addresses, hasty()).unwrap().wait().unwrap();
    client.set("key", "value").wait().unwrap();
    cluster.stop();
    // Notices that the connections are gone, at the latest, when an operation ends.
    let ended = client.get("key").wait();
    assert!(matches!(ended, Err(Error::TimedOut | Error::Disconnected)), "{ended:?}");
    assert_eq!(client.set("key", "value").wait(), Err(Error::Disconnected));

    let started = Instant::now();
    match Client::connect(&cluster.addresses, hasty()).unwrap().wait() {
        Err(ConnectError::NoReplica(errors)) => {
            assert_eq!(errors.len(), 3);
            let refused = LinkError::Io(ErrorKind::ConnectionRefused);
            assert!(errors.iter().all(|(_, error)| *error == Some(refused)), "{errors:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(started.elapsed() < Duration::from_secs(3));
    assert!(matches!(
        status(cluster.addresses[0], Access::default(), Duration::from_secs(1)),
        Err(StatusError::Io(_))
    ));
}

#[test]
fn operations_outlive_their_handles() {
    let cluster = cluster(3);
    let client = Client::connect(&cluster.addresses, Options::default()).unwrap().wait().unwrap();
    let pending = client.increment("counter", 1);
    drop(client);
    assert_eq!(pending.wait(), Ok(1));
}

#[test]
fn a_silent_replica_has_no_status() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    match status(address, Access::default(), Duration::from_millis(100)) {
        Err(StatusError::Io(error)) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        other => panic!("{other:?}"),
    }
}
