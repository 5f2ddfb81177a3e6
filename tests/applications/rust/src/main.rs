//! redis-rs: pipelines, transactions, scripts, waiting pops, publish/subscribe.

use redis::{Commands, Connection, Script};
use std::fmt::Debug;
use std::thread;
use std::time::Duration;

static CHECKS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

fn equal<T: PartialEq + Debug>(found: T, wanted: T, text: &str) {
    if found != wanted {
        println!("FAILED: {text}: found {found:?}, wanted {wanted:?}");
        std::process::exit(1);
    }
    CHECKS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
}

fn connect() -> Connection {
    let port = std::env::var("APPLICATION_PORT").expect("APPLICATION_PORT is set");
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/5")).expect("an address");
    client.get_connection().expect("a connection")
}

fn main() -> redis::RedisResult<()> {
    let mut connection = connect();
    let () = redis::cmd("FLUSHDB").query(&mut connection)?;
    for turn in 0..60_i64 {
        if turn == 20 {
            println!("MIDDLE");
        }
        let (count, length): (i64, i64) =
            redis::pipe().incr("n", 1).rpush("l", turn).query(&mut connection)?;
        equal((count, length), (turn + 1, turn + 1), "a pipeline");
        thread::sleep(Duration::from_millis(10));
    }
    let workers: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(|| {
                let mut connection = connect();
                for _ in 0..25 {
                    let _: Vec<i64> = redis::transaction(&mut connection, &["watched"], |connection, pipe| {
                        let old: Option<i64> = connection.get("watched")?;
                        pipe.set("watched", old.unwrap_or(0) + 1).ignore().incr("transactions", 1).query(connection)
                    })
                    .expect("a transaction");
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
    equal(connection.get("watched")?, 100, "what was added in transactions");
    equal(connection.get("transactions")?, 100, "how many there were");

    let script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1]) * 2");
    equal(script.key("scripted").arg(21).invoke::<i64>(&mut connection)?, 42, "a script");

    let pusher = thread::spawn(|| {
        thread::sleep(Duration::from_millis(100));
        let _: i64 = connect().rpush("queue", "job").expect("a push");
    });
    let popped: (String, String) = connection.blpop("queue", 30.0)?;
    equal(popped, ("queue".to_owned(), "job".to_owned()), "a pop that waited");
    pusher.join().expect("a pusher");

    let mut listening = connect();
    let mut subscriber = listening.as_pubsub();
    subscriber.subscribe("news")?;
    while connection.publish::<_, _, i64>("news", "hello")? == 0 {
        thread::sleep(Duration::from_millis(50));
    }
    equal(subscriber.get_message()?.get_payload::<String>()?, "hello".to_owned(), "a message");
    println!("{} checks passed", CHECKS.load(std::sync::atomic::Ordering::Relaxed));
    Ok(())
}
