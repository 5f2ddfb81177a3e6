//! Connections over real sockets.

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use syros_net::{Connection, Dialing, FlushOutcome, Limits, Progress, ReadOutcome, TlsSession};
use syros_tls::{Authority, Credentials, Files, Identity, Purpose, Role, ValidityDays};
use syros_types::ReplicaId;
use syros_wire::{Channel, FrameError, put_frame};

const LISTENER: Token = Token(0);
const DIALLED: Token = Token(1);
const ACCEPTED: Token = Token(2);

fn poll_once(poll: &mut Poll, events: &mut Events) {
    poll.poll(events, Some(Duration::from_secs(10))).unwrap();
    assert!(!events.is_empty(), "nothing happened for 10 s");
}

/// Tells both ends what has happened to them.
fn on_events(events: &Events, dialled: &mut Connection, accepted: &mut Connection) {
    for event in events {
        match event.token() {
            DIALLED => dialled.on_event(event),
            _ => accepted.on_event(event),
        }
    }
}

/// Tells one end what has happened to it.
fn tell(events: &Events, token: Token, end: &mut Connection) {
    events.iter().filter(|event| event.token() == token).for_each(|event| end.on_event(event));
}

/// Two ends of one connection: the one that dialled, the one that accepted.
fn pair(poll: &mut Poll, limits: Limits) -> (Connection, Connection) {
    pair_with(poll, limits, &Encryption::None)
}

/// What a connection is encrypted with.
enum Encryption {
    None,
    Tls(Box<Credentials>),
}

impl Encryption {
    fn dialled(&self) -> Option<TlsSession> {
        match self {
            Self::None => None,
            Self::Tls(credentials) => Some(TlsSession::new(credentials.connect().unwrap())),
        }
    }

    fn accepted(&self) -> Option<TlsSession> {
        match self {
            Self::None => None,
            Self::Tls(credentials) => Some(TlsSession::new(credentials.accept_node().unwrap())),
        }
    }
}

/// The certificate of a node, which both ends have.
fn credentials(name: &str) -> Encryption {
    let directory = std::env::temp_dir().join(format!("syros-net-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (authority, of_authority) = Authority::make("test", ValidityDays(1)).unwrap();
    let identity = Identity { cluster: 7, role: Role::Node(ReplicaId(0)) };
    let issued = authority.issue(identity, &[], ValidityDays(1)).unwrap();
    let write = |file: &str, text: &str, mode: u32| {
        let path = directory.join(file);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let files = Files {
        certificate: write("certificate", &issued.certificate, 0o644),
        key: write("key", &issued.key, 0o600),
        authorities: write("authorities", &of_authority.certificate, 0o644),
    };
    let credentials = Credentials::load(files, Purpose::default()).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    Encryption::Tls(Box::new(credentials))
}

fn pair_with(poll: &mut Poll, limits: Limits, encryption: &Encryption) -> (Connection, Connection) {
    let mut listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE).unwrap();
    let address = listener.local_addr().unwrap();
    let mut dialing = Some(Dialing::start(address, poll.registry(), DIALLED).unwrap());
    let (mut dialled, mut accepted) = (None, None);
    let mut events = Events::with_capacity(16);
    while dialled.is_none() || accepted.is_none() {
        poll_once(poll, &mut events);
        for event in &events {
            if event.token() == LISTENER {
                let (stream, _) = listener.accept().unwrap();
                accepted = Some({
                    let session = encryption.accepted();
                    Connection::register(stream, limits, poll.registry(), ACCEPTED, session).unwrap()
                });
            } else if let Some(some) = dialing.take() {
                match some.progress() {
                    Progress::Pending(pending) => dialing = Some(pending),
                    Progress::Connected(stream) => {
                        dialled = Some(Connection::adopt(stream, limits, encryption.dialled()).unwrap());
                    }
                    Progress::Failed(error) => panic!("{error}"),
                }
            }
        }
    }
    (dialled.unwrap(), accepted.unwrap())
}

#[test]
fn large_and_small_frames_arrive_in_order() {
    let mut poll = Poll::new().unwrap();
    let (mut sender, mut receiver) = pair(&mut poll, Limits::NODE);
    exchange_frames(&mut poll, (&mut sender, DIALLED), &mut receiver);
    assert_eq!(sender.counters().bytes_out, receiver.counters().bytes_in);
}

#[test]
fn encrypted_frames_arrive_in_order_both_ways() {
    let mut poll = Poll::new().unwrap();
    let encryption = credentials("frames");
    let (mut dialled, mut accepted) = pair_with(&mut poll, Limits::NODE, &encryption);
    exchange_frames(&mut poll, (&mut dialled, DIALLED), &mut accepted);
    exchange_frames(&mut poll, (&mut accepted, ACCEPTED), &mut dialled);
    // Whoever reads along sees nothing of it, and the other end knows who it talks to.
    assert!(dialled.counters().bytes_out > accepted.received().len() as u64);
    let certificate = accepted.peer_certificate().unwrap();
    assert_eq!(Identity::role_in(7, &certificate), Ok(Role::Node(ReplicaId(0))));
}

/// Sends small and large frames, more than the socket takes at once.
fn exchange_frames(poll: &mut Poll, (sender, token): (&mut Connection, Token), receiver: &mut Connection) {
    let payload = |round: usize| vec![round as u8; if round % 10 == 9 { 3_000_000 } else { round * 7 }];
    for round in 0..40 {
        put_frame(sender.outbound(), Channel::Replica, |out| out.extend_from_slice(&payload(round)));
    }
    let mut events = Events::with_capacity(16);
    let mut received = 0;
    while received < 40 {
        if sender.is_readable() {
            // Its part of a handshake, if there is one.
            assert!(!matches!(sender.read(), ReadOutcome::Failed(_)));
        }
        if sender.wants_flush()
            && let FlushOutcome::Failed(error) = sender.flush()
        {
            panic!("{error}");
        }
        if !receiver.is_readable() {
            poll_once(poll, &mut events);
            for event in &events {
                let end = if event.token() == token { &mut *sender } else { &mut *receiver };
                end.on_event(event);
            }
            continue;
        }
        if let ReadOutcome::Failed(error) = receiver.read() {
            panic!("{error}");
        }
        while let Some(frame) = receiver.next_frame().unwrap() {
            assert_eq!(frame.channel, Channel::Replica);
            assert!(frame.payload == payload(received), "frame {received}");
            received += 1;
        }
    }
    assert_eq!(sender.backlog(), 0);
}

/// A receiver without room takes what was read before once it has some.
#[test]
fn what_was_decrypted_waits_for_room() {
    let mut poll = Poll::new().unwrap();
    let encryption = credentials("room");
    let limits = Limits { frame_bytes_max: 10_000, backlog_bytes_max: 1 << 20 };
    let (mut sender, mut receiver) = pair_with(&mut poll, limits, &encryption);
    let frame = |round: usize| vec![round as u8; 100 + round * 13 % 9000];
    for round in 0..200 {
        put_frame(sender.outbound(), Channel::Client, |out| out.extend_from_slice(&frame(round)));
    }
    let mut events = Events::with_capacity(16);
    let (mut received, mut was_full) = (0, false);
    while received < 200 {
        if sender.wants_flush() {
            assert!(!matches!(sender.flush(), FlushOutcome::Failed(_)));
        }
        let timeout = if receiver.is_readable() { Duration::ZERO } else { Duration::from_secs(10) };
        poll.poll(&mut events, Some(timeout)).unwrap();
        on_events(&events, &mut sender, &mut receiver);
        if sender.is_readable() {
            // Its part of the handshake.
            sender.read();
        }
        // Reads until there is no room, and only then takes one frame.
        loop {
            match receiver.read() {
                ReadOutcome::Received(_) if receiver.is_readable() => {}
                ReadOutcome::Full => {
                    was_full = true;
                    break;
                }
                ReadOutcome::Received(_) | ReadOutcome::Nothing => break,
                outcome => panic!("{outcome:?}"),
            }
        }
        while let Some(next) = receiver.next_frame().unwrap() {
            assert!(next.payload == frame(received), "frame {received}");
            received += 1;
        }
    }
    assert!(was_full, "it never lacked room");
}

#[test]
fn an_encrypted_connection_ends_with_a_word() {
    let mut poll = Poll::new().unwrap();
    let encryption = credentials("end");
    let (mut sender, mut receiver) = pair_with(&mut poll, Limits::NODE, &encryption);
    exchange_frames(&mut poll, (&mut sender, DIALLED), &mut receiver);
    drop(sender);
    let mut events = Events::with_capacity(16);
    let end = loop {
        if !receiver.is_readable() {
            poll_once(&mut poll, &mut events);
            tell(&events, ACCEPTED, &mut receiver);
        }
        match receiver.read() {
            ReadOutcome::Nothing => {}
            end => break end,
        }
    };
    assert!(matches!(end, ReadOutcome::Closed), "{end:?}");
}

#[test]
fn who_does_not_speak_tls_is_told_apart() {
    let mut poll = Poll::new().unwrap();
    let encryption = credentials("plain");
    let (mut plain, mut guarded) = {
        let mut listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE).unwrap();
        let plain = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = loop {
            if let Ok(accepted) = listener.accept() {
                break accepted;
            }
        };
        let session = encryption.accepted();
        let guarded = Connection::register(stream, Limits::NODE, poll.registry(), DIALLED, session).unwrap();
        (plain, guarded)
    };
    std::io::Write::write_all(&mut plain, b"PING\r\n").unwrap();
    let mut events = Events::with_capacity(16);
    let outcome = loop {
        match guarded.read() {
            ReadOutcome::Nothing => {
                poll_once(&mut poll, &mut events);
                tell(&events, DIALLED, &mut guarded);
            }
            outcome => break outcome,
        }
    };
    let ReadOutcome::Failed(error) = outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("corrupt message"), "{error}");
}

#[test]
fn the_end_of_a_connection_is_found_behind_its_last_bytes() {
    let mut poll = Poll::new().unwrap();
    let (mut sender, mut receiver) = pair(&mut poll, Limits::CLIENT);
    put_frame(sender.outbound(), Channel::Client, |out| out.extend_from_slice(b"last words"));
    assert!(matches!(sender.flush(), FlushOutcome::Done));
    drop(sender);
    let mut events = Events::with_capacity(16);
    let mut frames = 0;
    loop {
        while !receiver.is_readable() {
            poll_once(&mut poll, &mut events);
            tell(&events, ACCEPTED, &mut receiver);
        }
        match receiver.read() {
            ReadOutcome::Closed => break,
            ReadOutcome::Received(_) | ReadOutcome::Nothing => {}
            outcome => panic!("{outcome:?}"),
        }
        while let Some(frame) = receiver.next_frame().unwrap() {
            assert_eq!(frame.payload, b"last words");
            frames += 1;
        }
    }
    assert_eq!(frames, 1);
    assert!(!receiver.is_readable());
}

#[test]
fn a_peer_that_does_not_read_clogs_the_connection() {
    let mut poll = Poll::new().unwrap();
    let limits = Limits { frame_bytes_max: 1 << 20, backlog_bytes_max: 1 << 20 };
    let (mut sender, mut receiver) = pair(&mut poll, limits);
    while !sender.is_clogged() {
        put_frame(sender.outbound(), Channel::Client, |out| out.resize(out.len() + 100_000, 1));
        assert!(!matches!(sender.flush(), FlushOutcome::Failed(_)));
    }
    assert!(!sender.wants_flush(), "the socket is full");
    let mut events = Events::with_capacity(16);
    while sender.is_clogged() {
        receiver.read();
        while receiver.next_frame().unwrap().is_some() {}
        poll.poll(&mut events, Some(Duration::from_millis(1))).unwrap();
        on_events(&events, &mut sender, &mut receiver);
        if sender.wants_flush() {
            sender.flush();
        }
    }
}

/// The event loop and two other threads send at the same time, more than the socket takes.
/// What it has not taken before that is nowhere any more.
#[test]
fn a_peer_that_does_not_read_may_be_dropped_with_what_it_was_sent() {
    for drops in [false, true] {
        let mut poll = Poll::new().unwrap();
        let (mut sender, mut receiver) = pair(&mut poll, Limits::CLIENT);
        // Less than the sockets hold.
        put_frame(sender.outbound(), Channel::Client, |out| out.resize(out.len() + 10_000, 1));
        assert!(matches!(sender.flush(), FlushOutcome::Done));
        if drops {
            sender.drop_untaken().unwrap();
        }
        drop(sender);
        let mut events = Events::with_capacity(16);
        let end = loop {
            while !receiver.is_readable() {
                poll_once(&mut poll, &mut events);
                tell(&events, ACCEPTED, &mut receiver);
            }
            match receiver.read() {
                ReadOutcome::Received(_) | ReadOutcome::Nothing => {}
                end => break end,
            }
        };
        let was_reset =
            matches!(&end, ReadOutcome::Failed(error) if error.kind() == std::io::ErrorKind::ConnectionReset);
        assert_eq!(was_reset, drops, "{end:?}");
    }
}

#[test]
fn what_several_threads_send_arrives_in_whole_frames() {
    const FRAMES: usize = 300;
    const LOOP: u8 = 2;
    let mut poll = Poll::new().unwrap();
    let (mut sender, mut receiver) = pair(&mut poll, Limits::NODE);
    let payload = |who: u8, round: usize| vec![who ^ round as u8; 9 + round * 97];
    let frame = |who: u8, round: usize| {
        let mut frame = Vec::new();
        put_frame(&mut frame, Channel::Client, |out| {
            out.push(who);
            out.extend_from_slice(&payload(who, round));
        });
        frame
    };
    std::thread::scope(|scope| {
        for who in 0..LOOP {
            let outlet = sender.outlet().unwrap();
            scope.spawn(move || (0..FRAMES).for_each(|round| outlet.send(&frame(who, round))));
        }
        let mut events = Events::with_capacity(16);
        let (mut sent, mut received) = (0, [0; 3]);
        while received.iter().any(|received| *received < FRAMES) {
            if sent < FRAMES {
                sender.outbound().extend_from_slice(&frame(LOOP, sent));
                sent += 1;
            }
            if sender.wants_flush() {
                assert!(!matches!(sender.flush(), FlushOutcome::Failed(_)));
            }
            if sent == FRAMES && !receiver.is_readable() {
                poll_once(&mut poll, &mut events);
            } else {
                poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
            }
            on_events(&events, &mut sender, &mut receiver);
            receiver.read();
            while let Some(frame) = receiver.next_frame().unwrap() {
                let (who, rest) = frame.payload.split_first().unwrap();
                let next = &mut received[usize::from(*who)];
                assert!(rest == payload(*who, *next), "frame {next} of {who}");
                *next += 1;
            }
        }
    });
    while sender.wants_flush() {
        sender.flush();
    }
    assert_eq!(sender.backlog(), 0);
}

#[test]
fn what_an_outlet_leaves_goes_out_when_the_socket_has_room() {
    let mut poll = Poll::new().unwrap();
    let (mut sender, mut receiver) = pair(&mut poll, Limits::NODE);
    let outlet = sender.outlet().unwrap();
    let mut frame = Vec::new();
    put_frame(&mut frame, Channel::Client, |out| out.resize(out.len() + 16_000_000, 1));
    outlet.send(&frame);
    assert_eq!(sender.backlog(), 0, "the event loop has not looked");
    assert!(sender.outlet().is_none(), "the socket is full");
    assert!(sender.backlog() > 0 && !sender.wants_flush());
    let mut events = Events::with_capacity(16);
    let mut is_received = false;
    while !is_received {
        poll_once(&mut poll, &mut events);
        on_events(&events, &mut sender, &mut receiver);
        if sender.wants_flush() {
            sender.flush();
        }
        while receiver.is_readable() {
            receiver.read();
            is_received |= receiver.next_frame().unwrap().is_some();
        }
    }
    drop(sender);
    // Its connection is gone.
    outlet.send(&frame);
    assert!(matches!(receiver.read(), ReadOutcome::Closed));
}

#[test]
fn a_frame_above_the_limit_is_refused() {
    let mut poll = Poll::new().unwrap();
    let limits = Limits { frame_bytes_max: 100, backlog_bytes_max: 1000 };
    let (mut sender, mut receiver) = pair(&mut poll, limits);
    put_frame(sender.outbound(), Channel::Client, |out| out.resize(out.len() + 100, 1));
    sender.flush();
    while !matches!(receiver.read(), ReadOutcome::Received(_)) {}
    assert_eq!(receiver.next_frame(), Err(FrameError::TooLong { length: 105, limit: 100 }));
}

#[test]
fn a_port_that_nobody_listens_on_is_refused() {
    let mut poll = Poll::new().unwrap();
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut dialing = match Dialing::start(address, poll.registry(), DIALLED) {
        Ok(dialing) => dialing,
        Err(_) => return,
    };
    let mut events = Events::with_capacity(16);
    loop {
        poll_once(&mut poll, &mut events);
        match dialing.progress() {
            Progress::Pending(pending) => dialing = pending,
            Progress::Connected(_) => panic!("connected to nobody"),
            Progress::Failed(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
                return;
            }
        }
    }
}
