//! A node at the limits of what it is given: descriptors, connections, disk.

mod common;

use common::{
    Dev, DevNode, PATIENCE, Redis, Scratch, free_ports, kill, run, syros, text, wait_for, wait_for_end,
};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

/// A group of one, started by a shell that first runs `preparation`.
struct Node {
    process: Child,
    port: u16,
    log: PathBuf,
}

impl Node {
    /// Starts it and waits until it takes updates.
    fn start(scratch: &Scratch, preparation: &str, more: &str) -> Self {
        let node = Self::begin(scratch, preparation, more);
        wait_for("a node that takes updates", || {
            (Redis::try_connect(node.port).ok()?.try_ask(&["SET", "first", "1"]).ok()? == "+OK").then_some(())
        });
        node
    }

    fn begin(scratch: &Scratch, preparation: &str, more: &str) -> Self {
        let port = free_ports();
        let config = scratch.0.join("node.toml");
        let text = format!(
            "cluster = 9\nreplica = 0\nreplicas = [\"127.0.0.1:{}\"]\ndirectory = \"data\"\n\
             [listen]\nredis = \"127.0.0.1:{port}\"\n{more}",
            port + 100
        );
        std::fs::write(&config, text).unwrap();
        let program = syros().get_program().to_owned();
        let log = scratch.0.join("log");
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{preparation}; exec \"$0\" server --config \"$1\" --bootstrap"));
        shell.arg(program).arg(config).stderr(std::fs::File::create(&log).unwrap());
        Self { process: shell.spawn().unwrap(), port, log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Processor time used so far, in ticks of 10 ms.
    fn processor_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        // Fields 14 and 15 (proc(5)); the second field ends with the last parenthesis.
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    fn stop(mut self) {
        kill(self.process.id().try_into().unwrap(), Signal::TERM);
        assert!(wait_for_end(&mut self.process).success());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn without_descriptors_it_waits_quietly_and_goes_on_afterwards() {
    let scratch = Scratch::new("descriptors");
    let node = Node::start(&scratch, "true", "");
    // A node admits no more clients than its limit allows. What takes its descriptors here is a limit that was lowered
    // later, as others take them where the whole system has none left.
    let (pid, limit) = (node.process.id().try_into().unwrap(), Some(40));
    prlimit(Pid::from_raw(pid), Resource::Nofile, Rlimit { current: limit, maximum: limit }).unwrap();
    let mut friend = Redis::connect(node.port);
    assert_eq!(friend.ask(&["PING"]), "+PONG");
    let crowd = crowd(&node, 100);
    wait_for("a line in the log", || node.log().contains("cannot accept a connection").then_some(()));
    let before = node.processor_ticks();
    std::thread::sleep(Duration::from_secs(2));
    let used = node.processor_ticks() - before;
    assert!(used < 20, "{used} ticks in 2 s: it spins");
    assert_eq!(friend.ask(&["GET", "first"]), "1");
    drop(crowd);
    assert_eq!(Redis::connect(node.port).ask(&["GET", "first"]), "1");
    node.stop();
}

/// Connections that ask for nothing.
fn crowd(node: &Node, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, node.port)).unwrap()).collect()
}

#[test]
fn idle_clients_leave_the_log_its_descriptors() {
    let scratch = Scratch::new("idle");
    let node = Node::start(&scratch, "ulimit -n 200", "[disk]\nwal-segment = \"64KiB\"\n");
    let mut friend = Redis::connect(node.port);
    assert_eq!(friend.ask(&["PING"]), "+PONG");
    let admitted = info(&mut friend, "maxclients");
    assert!((20..160).contains(&admitted), "{admitted}");
    assert!(friend.ask(&["CONFIG", "GET", "maxclients"]).starts_with("*2"));
    assert_eq!(
        (friend.reply().unwrap(), friend.reply().unwrap()),
        ("maxclients".to_owned(), admitted.to_string())
    );
    let log = node.log();
    assert!(log.contains("limits.connections is 10000, but this process may have 200 files open"), "{log}");
    let crowd = crowd(&node, 250);
    wait_for("a client that is refused", || {
        node.log().contains("refused a connection of a Redis client").then_some(())
    });
    // Several segments of the log.
    let value = "x".repeat(30_000);
    for round in 0..20 {
        assert_eq!(friend.ask(&["SET", "large", &value]), "+OK", "update {round}");
    }
    assert!(!node.log().contains("ERROR"), "{}", node.log());
    drop(crowd);
    node.stop();
}

#[test]
fn a_node_raises_its_limit_of_open_files() {
    let scratch = Scratch::new("raised");
    let node = Node::start(&scratch, "ulimit -S -n 100", "[limits]\nconnections = 300\n");
    let mut friend = Redis::connect(node.port);
    assert_eq!(info(&mut friend, "maxclients"), 300);
    let crowd = crowd(&node, 290);
    assert_eq!(Redis::connect(node.port).ask(&["GET", "first"]), "1");
    assert!(!node.log().contains("WARN"), "{}", node.log());
    drop(crowd);
    node.stop();
}

#[test]
fn too_few_descriptors_are_told_at_once() {
    let scratch = Scratch::new("few");
    let mut node = Node::begin(&scratch, "ulimit -n 40", "");
    assert!(!wait_for_end(&mut node.process).success());
    let log = node.log();
    assert!(
        log.contains("may have 40 files open at a time, and it needs") && log.contains("LimitNOFILE="),
        "{log}"
    );
}

#[test]
fn one_connection_too_many_is_told_so() {
    let scratch = Scratch::new("connections");
    let node = Node::start(&scratch, "true", "[limits]\nconnections = 3\n");
    let mut friends: Vec<Redis> = wait_for("three connections", || {
        let mut friends: Vec<Redis> = (0..3).map(|_| Redis::connect(node.port)).collect();
        friends
            .iter_mut()
            .all(|friend| friend.try_ask(&["PING"]).is_ok_and(|pong| pong == "+PONG"))
            .then_some(friends)
    });
    let refused = Redis::connect(node.port).reply().unwrap();
    assert_eq!(refused, "-ERR max number of clients reached");
    friends.pop();
    wait_for("a free place", || {
        (Redis::try_connect(node.port).ok()?.try_ask(&["PING"]).ok()? == "+PONG").then_some(())
    });
    node.stop();
}

/// A connection from `127.0.0.host` of this machine.
fn connect_from(host: u8, port: u16) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0)).into()).unwrap();
    socket.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The answer to a PING.
fn answer_to_ping(stream: &mut TcpStream) -> String {
    // Who is refused may not get so far.
    let _ = stream.write_all(b"PING\r\n");
    let mut answer = String::new();
    let mut byte = [0];
    while !answer.ends_with("\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
        answer.push(char::from(byte[0]));
    }
    answer
}

#[test]
fn an_address_has_its_own_places_and_no_others() {
    let scratch = Scratch::new("addresses");
    let node = Node::start(&scratch, "true", "[limits]\nconnections-per-address = 3\n");
    let mut here = Redis::connect(node.port);
    // Those by which the node was started may not have been missed yet.
    let mut three: Vec<TcpStream> = (0..3).map(|_| connect_from(2, node.port)).collect();
    for stream in &mut three {
        assert_eq!(answer_to_ping(stream), "+PONG\r\n");
    }
    let refused = answer_to_ping(&mut connect_from(2, node.port));
    assert_eq!(
        refused,
        "-ERR max number of clients reached for this address: 3 connections are open from 127.0.0.2, and the limit for \
         one address is 3\r\n"
    );
    let mut other = connect_from(3, node.port);
    assert_eq!(answer_to_ping(&mut other), "+PONG\r\n");
    assert_eq!(
        (info(&mut here, "rejected_connections"), info(&mut here, "rejected_connections_by_address")),
        (1, 1)
    );
    three.pop();
    wait_for("a free place", || {
        (answer_to_ping(&mut connect_from(2, node.port)) == "+PONG\r\n").then_some(())
    });

    // The port for replicas counts its own clients, and tells them the same.
    let rejected = info(&mut here, "rejected_connections_by_address");
    let hello = b"\x11\0\0\0\x02SYRS\x04\0\0\0\0\0\0\0\0\0\0\x01";
    let greet = |host| {
        let mut stream = connect_from(host, node.port + 100);
        stream.write_all(hello).unwrap();
        stream
    };
    let mut clients: Vec<TcpStream> = (0..4).map(|_| greet(2)).collect();
    let mut told = Vec::new();
    let _ = clients.pop().unwrap().read_to_end(&mut told);
    let told = String::from_utf8_lossy(&told);
    assert!(
        told.contains("3 connections are open from 127.0.0.2, and the limit for one address is 3"),
        "{told}"
    );
    assert_eq!(info(&mut here, "rejected_connections_by_address"), rejected + 1);

    // The limit can be changed while the node runs; who is there stays.
    assert_eq!(here.ask(&["CONFIG", "SET", "maxclients-per-address", "1"]), "+OK");
    assert_eq!(answer_to_ping(&mut three[1]), "+PONG\r\n");
    assert!(
        answer_to_ping(&mut connect_from(3, node.port)).contains("1 connections are open from 127.0.0.3")
    );
    assert_eq!(here.ask(&["CONFIG", "SET", "maxclients-per-address", "0"]), "+OK");
    let mut many: Vec<TcpStream> = (0..20).map(|_| connect_from(2, node.port)).collect();
    assert!(many.iter_mut().all(|stream| answer_to_ping(stream) == "+PONG\r\n"));
    node.stop();
}

#[test]
fn a_full_disk_stops_updates_and_nothing_else() {
    let scratch = Scratch::new("disk");
    // Writes beyond the limit fail as on a full disk, because the signal that they raise is ignored.
    let node =
        Node::start(&scratch, "trap '' XFSZ; ulimit -f 1000", "[timing]\noperation-timeout = \"2s\"\n");
    let mut redis = Redis::connect(node.port);
    let value = "x".repeat(100_000);
    let refused =
        (0..50).map(|n| redis.ask(&["SET", &format!("k{n}"), &value])).find(|answer| answer != "+OK");
    let refused = refused.expect("the disk is full at some time");
    assert!(refused.starts_with('-'), "{refused}");
    assert!(redis.ask(&["INCR", "n"]).starts_with('-'));
    assert_eq!(redis.ask(&["GET", "k0"]), value);
    let log = node.log();
    assert_eq!(log.matches("takes no updates until the disk takes writes again").count(), 1, "{log}");
    node.stop();
    std::fs::remove_file(scratch.0.join("log")).unwrap();
}

/// A node with 64 MiB for its clients, which may not take more than 3 GiB of addresses.
fn node_with_little_memory(scratch: &Scratch) -> Node {
    Node::start(scratch, "ulimit -v 3000000", "[limits]\nclient-memory = \"64MiB\"\n")
}

/// A field of INFO.
fn info(redis: &mut Redis, name: &str) -> u64 {
    let text = redis.ask(&["INFO"]);
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).trim_end().parse().unwrap()
}

#[test]
fn a_data_directory_that_is_gone_is_told_at_once_and_used_again_when_it_is_back() {
    let scratch = Scratch::new("gone");
    let dev = Dev::start(&scratch.0.join("data"), free_ports(), &[]);
    let (leader, number) = (dev.leader().clone(), dev.nodes.iter().position(|node| node.leads).unwrap());
    let other = dev.nodes.iter().find(|node| !node.leads).unwrap().clone();
    let ask = |node: &DevNode, words: &[&str]| Redis::connect(node.redis).ask(words);
    assert_eq!(ask(&leader, &["SET", "k", "before"]), "+OK");
    let place = scratch.0.join(format!("data/node-{number}"));
    let away = scratch.0.join("away");
    std::fs::rename(&place, &away).unwrap();
    // Nobody writes meanwhile.
    wait_for("another leader", || {
        ask(&other, &["INFO", "syros"]).contains("replica_role:leader").then_some(())
    });
    std::fs::create_dir(&place).unwrap();
    assert_eq!(ask(&other, &["SET", "k", "meanwhile"]), "+OK");
    assert_eq!(ask(&leader, &["GET", "k"]), "meanwhile");
    assert!(ask(&leader, &["INFO"]).contains("\r\ndisk:missing\r\n"), "{}", ask(&leader, &["INFO"]));
    let addresses: Vec<String> = dev.nodes.iter().map(|node| format!("127.0.0.1:{}", node.replica)).collect();
    let status = run(syros().args(["status", "--replicas", &addresses.join(",")]));
    let status = text(&status);
    assert!(
        status.contains("disk takes no updates") && status.contains("is gone") && !status.contains("down"),
        "{status}"
    );
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "what took its place is left alone");

    std::fs::remove_dir(&place).unwrap();
    std::fs::rename(&away, &place).unwrap();
    wait_for("a disk that works", || {
        let info = Redis::try_connect(leader.redis).ok()?.try_ask(&["INFO"]).ok()?;
        info.contains("\r\ndisk:ok\r\n").then_some(())
    });
    assert_eq!(ask(&leader, &["SET", "k", "after"]), "+OK");
    assert!(dev.stop().success());
}

#[test]
fn the_limit_of_data_can_be_set_while_a_node_runs() {
    let scratch = Scratch::new("maxmemory");
    let node = Node::start(&scratch, "true", "[memory]\nmaxmemory = 0\n");
    let mut redis = Redis::connect(node.port);
    let value = "v".repeat(100_000);
    assert_eq!(redis.ask(&["SET", "large", &value]), "+OK");
    assert_eq!(redis.ask(&["CONFIG", "SET", "maxmemory", "50kb"]), "+OK");
    assert_eq!(info(&mut redis, "maxmemory"), 50 << 10);
    let refused = redis.ask(&["SET", "more", &value]);
    assert!(refused.starts_with("-OOM command not allowed"), "{refused}");
    assert_eq!(redis.ask(&["GET", "first"]), "1");
    // Scripts run, as far as they make nothing grow.
    assert_eq!(redis.ask(&["EVAL", "return redis.call('GET', KEYS[1])", "1", "first"]), "1");
    let refused = redis.ask(&["EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "more", "v"]);
    assert!(refused.starts_with("-OOM command not allowed"), "{refused}");
    let refused = redis.ask(&["EVAL", "#!lua\nreturn 1", "0"]);
    assert!(refused.starts_with("-OOM command not allowed"), "{refused}");
    // However little it is: the leader's margin is a part of it.
    assert_eq!(redis.ask(&["CONFIG", "SET", "maxmemory", "1"]), "+OK");
    let refused = redis.ask(&["SET", "small", "v"]);
    assert!(refused.starts_with("-OOM command not allowed"), "{refused}");
    assert_eq!(redis.ask(&["CONFIG", "SET", "maxmemory", "0"]), "+OK");
    assert_eq!(redis.ask(&["SET", "more", &value]), "+OK");
    node.stop();
}

/// Found by an adversary: a transaction of a megabyte held all replicas for half a minute.
#[test]
fn updates_that_would_keep_the_replicas_for_minutes_are_refused() {
    let scratch = Scratch::new("work-of-updates");
    let node = Node::start(&scratch, "true", "");
    let mut redis = Redis::connect(node.port);
    let members: Vec<String> = (0..20_000).map(|number| format!("member{number:034}")).collect();
    for command in ["SADD", "RPUSH"] {
        let words: Vec<&str> =
            [command, command].into_iter().chain(members.iter().map(String::as_str)).collect();
        assert_eq!(redis.ask(&words), ":20000");
    }
    let mut store = |times| {
        let words: Vec<&str> =
            ["SINTERSTORE", "store"].into_iter().chain(std::iter::repeat_n("SADD", times)).collect();
        redis.ask(&words)
    };
    assert_eq!(store(10), ":20000");
    let refused = store(3_000);
    assert!(refused.starts_with("-ERR this would go through") && refused.ends_with("1024 MiB"), "{refused}");
    let mut search = |times| {
        assert_eq!(redis.ask(&["MULTI"]), "+OK");
        assert_eq!(redis.ask(&["INCR", "searches"]), "+QUEUED");
        (0..times).for_each(|_| assert_eq!(redis.ask(&["LPOS", "RPUSH", "none"]), "+QUEUED"));
        redis.ask(&["EXEC"])
    };
    let refused = search(3_000);
    assert!(refused.starts_with("-ERR this would go through"), "{refused}");
    assert_eq!(search(10), "*11");
    assert_eq!(Redis::connect(node.port).ask(&["GET", "searches"]), "1");
    node.stop();
}

/// Before the first keys go, the members begin to record when keys change, which takes an update of its own.
#[test]
fn keys_are_evicted_though_nobody_asks_for_anything() {
    let scratch = Scratch::new("idle-evictions");
    let dev = Dev::start(&scratch.0.join("data"), free_ports(), &[]);
    let mut nodes: Vec<Redis> = dev.nodes.iter().map(|node| Redis::connect(node.redis)).collect();
    let value = "v".repeat(100_000);
    assert_eq!(nodes[0].ask(&["SET", "large", &value]), "+OK");
    wait_for("nodes that have executed it", || {
        nodes.iter_mut().all(|node| info(node, "used_memory") > 100_000).then_some(())
    });
    // A command wakes a node: the one that leads gets none any more.
    let leads = |node: &mut Redis| node.ask(&["INFO"]).contains("\r\nreplica_role:leader\r\n");
    let follows = nodes.iter_mut().position(|node| !leads(node)).expect("a follower");
    for node in &mut nodes {
        let set = ["CONFIG", "SET", "maxmemory-policy", "allkeys-random", "maxmemory", "50kb"];
        assert_eq!(node.ask(&set), "+OK");
    }
    let follower = &mut nodes[follows];
    wait_for("evictions", || (info(follower, "used_memory") < 50 << 10).then_some(()));
    assert!(dev.stop().success());
}

/// Three nodes whose data may take 300 KiB each, which keep what is used.
#[test]
fn writes_go_on_while_keys_are_evicted_and_all_nodes_evict_the_same() {
    let scratch = Scratch::new("evictions");
    let dev = Dev::start(&scratch.0.join("data"), free_ports(), &[]);
    let mut nodes: Vec<Redis> = dev.nodes.iter().map(|node| Redis::connect(node.redis)).collect();
    for node in &mut nodes {
        let set = [
            "CONFIG",
            "SET",
            "maxmemory",
            "300kb",
            "maxmemory-policy",
            "allkeys-lfu",
            "maxmemory-samples",
            "10",
        ];
        assert_eq!(node.ask(&set), "+OK");
    }
    let value = "v".repeat(100);
    for number in 0..6_000 {
        let (writer, reader) = (number % 3, number / 3 % 3);
        assert_eq!(nodes[writer].ask(&["SET", &format!("key:{number}"), &value]), "+OK", "{number}");
        if number % 3 == 0 {
            nodes[reader].ask(&["SET", "used", "1"]);
        }
    }
    let figures = |node: &mut Redis| {
        ["applied", "used_memory", "evicted_keys", "divergences"].map(|name| info(node, name))
    };
    // Nodes go on evicting though nobody asks for anything: only what is the same before and after the
    // keys were counted belongs together.
    let ([_, used, evicted, divergences], keys) = wait_for("nodes that have executed the same", || {
        let all: Vec<_> = nodes.iter_mut().map(figures).collect();
        let keys = nodes[0].ask(&["DBSIZE"]).trim_start_matches(':').parse::<u64>().unwrap();
        let after: Vec<_> = nodes.iter_mut().map(figures).collect();
        (all == after && all[0] == all[1] && all[1] == all[2]).then_some((all[0], keys))
    });
    assert!(used < 300 << 10 && evicted > 4_000 && divergences == 0, "{used} {evicted} {divergences}");
    assert_eq!(keys + evicted, 6_001);
    for node in &mut nodes {
        assert_eq!(node.ask(&["GET", "used"]), "1");
        assert!(node.ask(&["INFO"]).contains("\r\nmaxmemory_policy:allkeys-lfu\r\n"));
    }
    // What cannot be evicted is refused.
    for node in &mut nodes {
        assert_eq!(
            node.ask(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl", "maxmemory", "200kb"]),
            "+OK"
        );
    }
    let refused = nodes[0].ask(&["SET", "more", &value]);
    assert!(refused.starts_with("-OOM command not allowed"), "{refused}");
    assert!(dev.stop().success());
}

/// While others hold much, a client with small requests is served, and the node takes no more memory than it may.
fn is_served_well(friend: &mut Redis) {
    for _ in 0..100 {
        assert_eq!(friend.ask(&["GET", "first"]), "1");
        // One reply, and what the allocator keeps, come on top of the budget.
        let used = info(friend, "mem_clients_normal");
        assert!(used < 100 << 20, "{used} bytes");
        let resident = info(friend, "used_memory_rss");
        assert!(resident < 512 << 20, "{resident} bytes");
    }
}

#[test]
fn replies_that_nobody_takes_stay_within_a_budget() {
    let scratch = Scratch::new("replies");
    let node = node_with_little_memory(&scratch);
    let mut friend = Redis::connect(node.port);
    let value = "x".repeat(10 << 20);
    assert_eq!(friend.ask(&["SET", "big", &value]), "+OK");
    let deaf: Vec<TcpStream> = (0..10)
        .map(|_| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, node.port)).unwrap();
            stream.write_all("GET big\r\n".repeat(300).as_bytes()).unwrap();
            stream
        })
        .collect();
    is_served_well(&mut friend);
    assert_eq!(friend.ask(&["GET", "big"]).len(), value.len());
    let log = node.log();
    assert!(info(&mut friend, "evicted_clients") > 0 && log.contains("limits.client-memory"), "{log}");
    drop(deaf);
    wait_for("memory to be given back", || (info(&mut friend, "mem_clients_normal") < 1 << 20).then_some(()));

    // Whoever takes what it has asked for gets it, however much it is.
    let reader = TcpStream::connect((Ipv4Addr::LOCALHOST, node.port)).unwrap();
    (&reader).write_all("GET big\r\n".repeat(30).as_bytes()).unwrap();
    let mut taken = vec![0; 30 * (value.len() + "$10485760\r\n\r\n".len())];
    reader.set_read_timeout(Some(PATIENCE)).unwrap();
    (&reader).read_exact(&mut taken).unwrap();
    node.stop();
}

/// The most memory that a process has had resident so far, in bytes.
fn peak_of(process: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn values_that_other_members_have_to_confirm_stay_within_a_budget() {
    let scratch = Scratch::new("confirmed");
    let dev = Dev::start(&scratch.0, free_ports(), &[]);
    let node = dev.nodes.iter().find(|node| !node.leads).unwrap();
    let mut friend = Redis::connect(node.redis);
    let value = "x".repeat(10 << 20);
    assert_eq!(friend.ask(&["SET", "big", &value]), "+OK");
    assert_eq!(friend.ask(&["SET", "first", "1"]), "+OK");
    for policy in ["meta", "quorum"] {
        assert_eq!(friend.ask(&["READ", policy, "GET", "big"]).len(), value.len());
        let deaf: Vec<TcpStream> = (0..10)
            .map(|_| {
                let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, node.redis)).unwrap();
                stream.write_all(format!("READ {policy} GET big\r\n").repeat(50).as_bytes()).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream
            })
            .collect();
        for stream in &deaf {
            // All of them get something: those that are not read do not stop the others.
            assert_eq!(stream.peek(&mut [0]).unwrap(), 1);
        }
        assert_eq!(friend.ask(&["READ", policy, "GET", "first"]), "1");
        // Each of the connections may hold 8 MiB and a reply, and an eighth of 1 GiB is for replies on their way. Sixteen
        // values are asked for by each, which nobody has room for.
        let peak = peak_of(node.pid);
        assert!(peak < 1 << 30, "{peak} bytes with reads by {policy}");
        // Whoever takes what it has asked for gets it in the end.
        let mut taken = vec![0; 10 * (value.len() + "$10485760\r\n\r\n".len())];
        (&deaf[0]).read_exact(&mut taken).unwrap();
        assert!(taken.ends_with(b"x\r\n"));
    }
    assert!(dev.stop().success());
}

#[test]
fn lists_of_keys_that_nobody_takes_stay_within_a_budget() {
    let scratch = Scratch::new("lists");
    let node = node_with_little_memory(&scratch);
    let mut friend = Redis::connect(node.port);
    let name = "k".repeat(1000);
    for part in 0..20 {
        let pairs: Vec<String> = (0..200).map(|key| format!("{name}{part}-{key}")).collect();
        let words: Vec<&str> =
            std::iter::once("MSET").chain(pairs.iter().flat_map(|key| [key, "v"])).collect();
        assert_eq!(friend.ask(&words), "+OK");
    }
    let deaf: Vec<TcpStream> = (0..10)
        .map(|_| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, node.port)).unwrap();
            stream.write_all("KEYS *\r\n".repeat(20).as_bytes()).unwrap();
            stream
        })
        .collect();
    is_served_well(&mut friend);
    drop(deaf);
    node.stop();
}

/// More than a connection has under way at a time: what waits behind them has been received, and is taken.
#[test]
fn commands_that_were_sent_before_the_end_are_executed() {
    const COUNT: usize = 30_000;
    let scratch = Scratch::new("sent-before-the-end");
    let node = node_with_little_memory(&scratch);
    let mut friend = Redis::connect(node.port);
    for (key, first, end) in [
        ("answered", "PING\r\n", Shutdown::Write),
        ("unanswered", "CLIENT REPLY OFF\r\n", Shutdown::Write),
        ("closed", "CLIENT REPLY OFF\r\n", Shutdown::Both),
    ] {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, node.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut reader = stream.try_clone().unwrap();
        let replies = std::thread::spawn(move || {
            let mut replies = Vec::new();
            let _ = reader.read_to_end(&mut replies);
            replies.iter().filter(|byte| **byte == b'\n').count()
        });
        stream.write_all(first.as_bytes()).unwrap();
        stream.write_all(format!("INCR {key}\r\n").repeat(COUNT).as_bytes()).unwrap();
        // Half a command is none.
        stream.write_all(b"INCR ").unwrap();
        stream.shutdown(end).unwrap();
        let replies = replies.join().unwrap();
        assert_eq!(replies, if key == "answered" { COUNT + 1 } else { 0 }, "{key}");
        let count = COUNT.to_string();
        wait_for("all of them to be executed", || (friend.ask(&["GET", key]) == count).then_some(()));
    }
    node.stop();
}

#[test]
fn requests_that_never_end_stay_within_a_budget() {
    let scratch = Scratch::new("requests");
    let node = node_with_little_memory(&scratch);
    let mut friend = Redis::connect(node.port);
    let value = vec![b'x'; 15 << 20];
    let slow: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, node.port)).unwrap();
            let value = value.clone();
            std::thread::spawn(move || {
                stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
                // Most of these are closed before they are through.
                let begun = stream.write_all(b"*3\r\n$4\r\nMSET\r\n$15728640\r\n");
                let _ = begun.and_then(|()| stream.write_all(&value));
                stream
            })
        })
        .collect();
    is_served_well(&mut friend);
    let slow: Vec<TcpStream> = slow.into_iter().map(|thread| thread.join().unwrap()).collect();
    is_served_well(&mut friend);
    let large = "y".repeat(5 << 20);
    assert_eq!(friend.ask(&["SET", "large", &large]), "+OK", "a large request finds room, too");
    drop(slow);
    node.stop();
}
