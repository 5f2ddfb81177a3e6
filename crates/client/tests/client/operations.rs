//! Operations that succeed, and operations that fail for a reason of their own.

use crate::fake::{Mood, cluster};
use std::time::{Duration, Instant};
use syros_client::{Class, Client, Driver, Endpoint, Error, Options, Outcome, Refusal, Reply, block_on};
use syros_commands::families::Get;
use syros_commands::{CommandError, Operation};

#[test]
fn values_come_back() {
    let cluster = cluster(3);
    let client = Client::connect(&cluster.addresses, Options::default()).unwrap().wait().unwrap();
    assert_eq!(client.get("key").wait(), Ok(None));
    assert_eq!(client.set("key", "value").wait(), Ok(()));
    assert_eq!(client.get("key").wait(), Ok(Some(b"value".to_vec())));
    assert_eq!(client.increment("counter", 5).wait(), Ok(5));
    assert_eq!(client.increment("counter", -7).wait(), Ok(-2));
    assert_eq!(client.increment_blindly("counter", 12).wait(), Ok(()));
    assert_eq!(client.command(&[b"get", b"counter"]).wait(), Ok(Reply::Bulk(b"10".to_vec())));
    assert_eq!(client.set_for("brief", "value", Duration::from_micros(1)).wait(), Ok(()));
}

#[test]
fn every_kind_of_failure_has_its_name() {
    let cluster = cluster(3);
    let client = Client::connect(&cluster.addresses, Options::default()).unwrap().wait().unwrap();
    client.set("text", "no number").wait().unwrap();
    let error = client.increment("text", 1).wait();
    assert_eq!(error, Err(Error::Execution("ERR value is not an integer or out of range".into())));
    assert_eq!(client.append("key", "value").wait(), Err(Error::UnexpectedReply));
    assert_eq!(client.command(&[b"GET"]).wait(), Err(Error::Command(CommandError::Arity("get"))));
    assert!(matches!(client.command(&[]).wait(), Err(Error::Command(_))));
    assert!(matches!(client.command(&[b"PING"]).wait(), Err(Error::Command(_))));
    assert!(matches!(client.execute(vec![0xff, 0xff]).wait(), Err(Error::Operation(_))));
    let long_key = vec![b'k'; syros_types::limits::KEY_BYTES_MAX + 1];
    let error = client.get(&long_key).wait();
    assert_eq!(error, Err(Error::Command(CommandError::KeyTooLong(long_key.len()))));
    cluster.set_mood(Mood::Refuse(Refusal::Malformed));
    assert_eq!(client.set("key", "value").wait(), Err(Error::Refused(Refusal::Malformed)));
    assert_eq!(client.get("key").wait(), Err(Error::Refused(Refusal::Malformed)));
}

#[test]
fn raw_bodies_of_several_operations_are_executed() {
    let cluster = cluster(1);
    let client = Client::connect(&cluster.addresses, Options::default()).unwrap().wait().unwrap();
    let mut body = Vec::new();
    for words in [&[&b"INCR"[..], b"a"][..], &[b"GET", b"a"]] {
        let Ok(syros_commands::Parsed::Data(operation)) = syros_commands::parse(words) else { panic!() };
        operation.encode(&mut body);
    }
    let replies = client.execute(body).wait().unwrap();
    assert_eq!(Reply::decode_all(&replies), Ok(vec![Reply::Integer(1), Reply::Bulk(b"1".to_vec())]));
    // The same, for a client that brings its own description.
    let mut body = Vec::new();
    let get = Operation::new(Get { key: b"a" });
    get.encode(&mut body);
    let reply = client.submit(body, Class::Read, get.footprint()).wait().unwrap();
    assert_eq!(Reply::decode_all(&reply), Ok(vec![Reply::Bulk(b"1".to_vec())]));
}

#[test]
fn many_operations_are_in_flight_from_many_threads() {
    const THREADS: i64 = 8;
    const EACH: i64 = 500;
    let cluster = cluster(3);
    let client = Client::connect(&cluster.addresses, Options::default()).unwrap().wait().unwrap();
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let client = client.clone();
            std::thread::spawn(move || {
                let pending: Vec<_> = (0..EACH).map(|_| client.increment("counter", 1)).collect();
                pending.into_iter().map(|pending| pending.wait().unwrap()).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut sums: Vec<i64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    sums.sort_unstable();
    assert_eq!(sums, (1..=THREADS * EACH).collect::<Vec<_>>());
}

#[test]
fn operations_are_futures() {
    let cluster = cluster(3);
    let connecting = Client::connect(&cluster.addresses, Options::default()).unwrap();
    let sum = block_on(async {
        let client = connecting.await.unwrap();
        let pending: Vec<_> = (0..10).map(|_| client.increment("counter", 1)).collect();
        let mut sum = 0;
        for pending in pending {
            sum += pending.await.unwrap();
        }
        // Nobody looks at this one; it takes place all the same. What is in flight together has no order: a read
        // may come first.
        drop(client.set("forgotten", "here"));
        let until = Instant::now() + Duration::from_secs(10);
        let mut found = None;
        while found.is_none() && Instant::now() < until {
            found = client.get("forgotten").await.unwrap();
        }
        assert_eq!(found, Some(b"here".to_vec()));
        sum
    });
    assert_eq!(sum, 55);
}

#[test]
fn a_fast_update_goes_to_every_replica_and_others_to_the_leader_alone() {
    use std::sync::atomic::Ordering::Relaxed;
    let cluster = cluster(3);
    let client = Client::connect(&cluster.addresses, Options::default()).unwrap().wait().unwrap();
    // Before all links are up an update may take the slow path.
    while cluster.durable.iter().any(|seen| seen.load(Relaxed) == 0) {
        client.set("key", "value").wait().unwrap();
    }
    for sum in 1..=20 {
        assert_eq!(client.increment("counter", 1).wait(), Ok(sum));
    }
    let ordered: Vec<u64> = cluster.ordered.iter().map(|seen| seen.load(Relaxed)).collect();
    assert!(ordered[0] >= 20 && ordered[1..] == [0, 0], "{ordered:?}");
}

#[test]
fn a_driver_completes_everything_it_is_given() {
    const COUNT: u64 = 5000;
    let cluster = cluster(3);
    let endpoints = cluster.addresses.iter().map(|address| Endpoint::from(*address)).collect();
    let mut driver = Driver::new(endpoints, Options::default()).unwrap();
    let submit = |driver: &mut Driver, user_token: u64| {
        let words: [&[u8]; 3] = [b"SET", b"key", &user_token.to_le_bytes()];
        let Ok(syros_commands::Parsed::Data(operation)) = syros_commands::parse(&words) else { panic!() };
        let mut body = Vec::new();
        operation.encode(&mut body);
        driver.submit(body.into(), operation.class(), &operation.footprint(), user_token).unwrap();
    };
    // Some before it is connected, the others as there is room.
    (0..64).for_each(|user_token| submit(&mut driver, user_token));
    let (mut next, mut ended, mut completions) = (64, vec![false; COUNT as usize], Vec::new());
    while next < COUNT || driver.in_flight() > 0 {
        driver.run_once(Some(Duration::from_secs(5)), &mut completions).unwrap();
        for completion in completions.drain(..) {
            assert_eq!(completion.outcome, Outcome::Done);
            assert!(!std::mem::replace(&mut ended[completion.user_token as usize], true));
            if next < COUNT {
                submit(&mut driver, next);
                next += 1;
            }
        }
    }
    assert!(ended.iter().all(|ended| *ended));
}
