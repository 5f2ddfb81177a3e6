use super::*;

/// Three nodes and a gateway, which are connected.
const GATEWAY: usize = 3;

/// The address by which nodes know the gateway.
const GATEWAY_ADDRESS: u64 = 77;

/// A client's connection at each process.
const CLIENT: u64 = 5;

const START: Instant = Instant(1_000);

/// Front ends, and messages on their way between them.
struct Net {
    processes: Vec<Messages>,
    /// Who has got what: process, channel, payload.
    got: Vec<(usize, String, String)>,
    now: Instant,
    /// Messages to this process vanish.
    cut: Option<usize>,
}

fn name_of(process: usize) -> MessagePeer {
    if process == GATEWAY {
        MessagePeer::Gateway(GATEWAY_ADDRESS)
    } else {
        MessagePeer::Member(ReplicaId(process as u8))
    }
}

fn process_of(peer: MessagePeer) -> usize {
    match peer {
        MessagePeer::Member(replica) => replica.index(),
        MessagePeer::Gateway(_) => GATEWAY,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Net {
    fn new() -> Self {
        let processes =
            (0..4).map(|process| Messages::new(100 + process as u64, process == GATEWAY)).collect();
        let mut net = Self { processes, got: Vec::new(), now: START, cut: None };
        for (one, two) in [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)] {
            net.connect(one, two);
        }
        net.pump();
        net
    }

    fn connect(&mut self, one: usize, two: usize) {
        for (process, other) in [(one, two), (two, one)] {
            if other != GATEWAY {
                self.processes[process].on_connected(self.now, name_of(other));
            }
        }
    }

    fn part(&mut self, one: usize, two: usize) {
        self.processes[one].on_lost(self.now, name_of(two));
        self.processes[two].on_lost(self.now, name_of(one));
    }

    /// Delivers what is on its way, until there is nothing more.
    fn pump(&mut self) {
        loop {
            let mut is_quiet = true;
            for from in 0..self.processes.len() {
                while let Some((to, message)) = self.processes[from].poll(self.now) {
                    is_quiet = false;
                    let to = process_of(to);
                    if self.cut != Some(to) {
                        self.deliver(from, to, message);
                    }
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    fn deliver(&mut self, from: usize, to: usize, message: FrontEndMessage) {
        let got = &mut self.got;
        self.processes[to].on_message(self.now, name_of(from), message, &mut |_, message| {
            got.push((to, text(message.channel), text(message.payload)));
        });
    }

    fn ask(&mut self, process: usize, request: MessageRequest) -> Asked {
        let got = &mut self.got;
        self.processes[process].ask(self.now, CLIENT, request, &mut |_, message| {
            got.push((process, text(message.channel), text(message.payload)));
        })
    }

    fn subscribe(&mut self, process: usize, kind: SubscriptionKind, name: &str) -> Asked {
        self.ask(process, MessageRequest::Subscribe { kind, names: vec![name.into()] })
    }

    fn publish(&mut self, process: usize, channel: &str, payload: &str) -> u64 {
        let (channel, payload) = (channel.into(), payload.into());
        let request = MessageRequest::Publish { kind: SubscriptionKind::Channel, channel, payload };
        let Asked::Now(MessageAnswer::Count(count)) = self.ask(process, request) else { panic!("a count") };
        self.pump();
        count
    }

    /// Who has got what since this was asked last, in the order of processes.
    fn heard(&mut self) -> Vec<(usize, String, String)> {
        let mut got = std::mem::take(&mut self.got);
        got.sort();
        got
    }

    fn pass(&mut self, duration: Duration) {
        self.now = self.now.after(duration);
        self.processes.iter_mut().for_each(|process| process.tick(self.now));
        self.pump();
    }
}

fn of(channel: &str, payload: &str, processes: &[usize]) -> Vec<(usize, String, String)> {
    processes.iter().map(|process| (*process, channel.to_owned(), payload.to_owned())).collect()
}

#[test]
fn a_message_reaches_every_subscriber_once_wherever_it_is_published() {
    let mut net = Net::new();
    for process in [1, GATEWAY] {
        net.subscribe(process, SubscriptionKind::Channel, "a");
    }
    net.subscribe(2, SubscriptionKind::Pattern, "a*");
    net.subscribe(2, SubscriptionKind::Shard, "a");
    net.pump();
    for publisher in 0..4 {
        assert_eq!(net.publish(publisher, "a", "x"), 3, "{publisher}");
        assert_eq!(net.heard(), of("a", "x", &[1, 2, GATEWAY]), "{publisher}");
        assert_eq!(net.publish(publisher, "ab", "y"), 1);
        assert_eq!(net.heard(), of("ab", "y", &[2]));
        assert_eq!(net.publish(publisher, "b", "z"), 0);
        assert_eq!(net.heard(), []);
    }
    for process in 0..4 {
        let counts = MessageRequest::Counts { kind: SubscriptionKind::Channel, names: vec![b"a".to_vec()] };
        let Asked::Now(answer) = net.ask(process, counts) else { panic!("at once") };
        assert_eq!(answer, MessageAnswer::Counts(vec![(b"a".to_vec(), 2)]), "{process}");
        let Asked::Now(answer) = net.ask(process, MessageRequest::Patterns) else { panic!("at once") };
        assert_eq!(answer, MessageAnswer::Count(1));
    }
    net.ask(1, MessageRequest::Unsubscribe { kind: SubscriptionKind::Channel, names: Vec::new() });
    net.processes[GATEWAY].end_all(CLIENT);
    net.pump();
    assert_eq!(net.publish(0, "a", "x"), 1);
    assert_eq!(net.heard(), of("a", "x", &[2]));
}

#[test]
fn a_subscribe_is_answered_when_all_know_of_it() {
    let mut net = Net::new();
    for process in [0, GATEWAY] {
        assert!(matches!(net.subscribe(process, SubscriptionKind::Channel, "a"), Asked::Later));
        assert!(net.processes[process].next_confirmed().is_none());
        net.pump();
        let (address, answer, early) = net.processes[process].next_confirmed().unwrap();
        assert_eq!(early, []);
        let change = SubscriptionChange { name: Some(b"a".to_vec()), left: 1 };
        let expected = MessageAnswer::Subscriptions { changes: vec![change], held: [1, 0, 0] };
        assert_eq!((address, answer), (CLIENT, expected));
        assert_eq!(net.publish(2, "a", "x"), if process == 0 { 1 } else { 2 });
    }
    let mut alone = Messages::new(1, false);
    let request = MessageRequest::Subscribe { kind: SubscriptionKind::Shard, names: vec![b"a".to_vec()] };
    assert!(matches!(alone.ask(START, CLIENT, request, &mut |_, _| {}), Asked::Now(_)));
}

#[test]
fn who_is_counted_hears_what_is_published_before_the_answer_behind_it() {
    let mut net = Net::new();
    net.subscribe(0, SubscriptionKind::Channel, "known");
    net.pump();
    assert!(net.processes[0].next_confirmed().is_some());
    net.cut = Some(2);
    assert!(matches!(net.subscribe(0, SubscriptionKind::Channel, "a"), Asked::Later));
    net.pump();
    assert_eq!(net.publish(0, "known", "first"), 1);
    assert_eq!(net.heard(), of("known", "first", &[0]), "nothing is to come before it");
    assert_eq!(net.publish(0, "a", "second"), 1);
    assert_eq!(net.publish(1, "a", "third"), 1);
    assert_eq!(net.publish(1, "known", "fourth"), 1);
    assert_eq!(net.heard(), [], "the SUBSCRIBE is not answered");
    net.pass(SETTLE_MAX);
    let (address, _, early) = net.processes[0].next_confirmed().unwrap();
    let early: Vec<_> = early
        .iter()
        .map(|message| (text(message.pushed().channel), text(message.pushed().payload)))
        .collect();
    let expected = [("a", "second"), ("a", "third"), ("known", "fourth")];
    assert_eq!(
        (address, early),
        (CLIENT, expected.map(|(channel, payload)| (channel.into(), payload.into())).to_vec())
    );
    assert_eq!(net.publish(1, "a", "fifth"), 1);
    assert_eq!(net.heard(), of("a", "fifth", &[0]));
}

#[test]
fn what_comes_early_is_bounded() {
    let mut net = Net::new();
    let large = "x".repeat(registry::EARLY_BYTES_MAX / 2);
    for turn in 0..2 {
        net.cut = Some(2);
        net.subscribe(0, SubscriptionKind::Pattern, &format!("{turn}*"));
        net.pump();
        for payload in [&large, &large, &"small".to_owned()] {
            net.publish(0, &format!("{turn}"), payload);
        }
        if turn == 0 {
            // It has not been told that one is silent.
            net.pass(SETTLE_MAX);
        }
        let (_, _, early) = net.processes[0].next_confirmed().unwrap();
        let lengths: Vec<usize> = early.iter().map(|message| message.pushed().payload.len()).collect();
        assert_eq!(lengths, if turn == 0 { vec![large.len(), 5] } else { vec![] }, "turn {turn}");
    }
}

#[test]
fn nobody_waits_long_for_a_peer_that_does_not_answer() {
    let mut net = Net::new();
    net.cut = Some(2);
    net.subscribe(0, SubscriptionKind::Channel, "a");
    net.pump();
    assert!(net.processes[0].next_confirmed().is_none());
    net.pass(SETTLE_MAX);
    assert!(net.processes[0].next_confirmed().is_some());
    net.subscribe(0, SubscriptionKind::Channel, "b");
    net.pump();
    assert!(net.processes[0].next_confirmed().is_some(), "it is known to be silent");
    net.cut = None;
    for _ in 0..2 {
        net.pass(peer::RESEND_AFTER);
    }
    assert_eq!(net.publish(2, "b", "x"), 1, "it is told everything anew");
}

#[test]
fn a_peer_that_is_connected_anew_is_told_everything_anew() {
    let mut net = Net::new();
    net.subscribe(1, SubscriptionKind::Channel, "a");
    net.pump();
    net.part(0, 1);
    assert_eq!(net.publish(0, "a", "lost"), 0);
    net.ask(1, MessageRequest::Unsubscribe { kind: SubscriptionKind::Channel, names: Vec::new() });
    net.subscribe(1, SubscriptionKind::Channel, "b");
    net.connect(0, 1);
    net.pump();
    assert_eq!((net.publish(0, "a", "x"), net.publish(0, "b", "y")), (0, 1));
    assert_eq!(net.heard(), of("b", "y", &[1]));
}

/// What happens to the subscription of a node to which another one is connected anew: how many hear a message then.
fn receivers_after_reconnection(planted: Option<PlantedBug>) -> u64 {
    let mut net = Net::new();
    let process = std::mem::replace(&mut net.processes[1], Messages::new(0, false));
    net.processes[1] = process.planted(planted);
    net.subscribe(1, SubscriptionKind::Channel, "a");
    net.pump();
    net.part(0, 1);
    net.connect(0, 1);
    net.pump();
    net.publish(0, "a", "x")
}

#[test]
fn a_front_end_that_does_not_tell_again_is_found_out() {
    assert_eq!(receivers_after_reconnection(None), 1);
    assert_eq!(receivers_after_reconnection(Some(PlantedBug::SubscriptionsForgotten)), 0);
}

#[test]
fn a_gateway_that_changes_its_home_hears_nothing_twice() {
    let mut net = Net::new();
    net.subscribe(GATEWAY, SubscriptionKind::Channel, "a");
    net.pump();
    let home = net.processes[GATEWAY].home.map(process_of).unwrap();
    let other = (home + 1) % 3;
    // The message is on its way to the new home, too, when the gateway changes.
    assert_eq!(net.publish(other, "a", "x"), 1);
    assert_eq!(net.heard(), of("a", "x", &[GATEWAY]));
    net.part(home, GATEWAY);
    net.pump();
    let message = FrontEndMessage::Published {
        origin: 100 + other as u64,
        number: 1,
        kind: SubscriptionKind::Channel,
        channel: b"a"[..].into(),
        payload: b"x"[..].into(),
    };
    let home = net.processes[GATEWAY].home.map(process_of).unwrap();
    net.deliver(home, GATEWAY, message);
    assert_eq!(net.heard(), []);
    for publisher in 0..4 {
        assert_eq!(net.publish(publisher, "a", "y"), 1, "{publisher}");
        assert_eq!(net.heard(), of("a", "y", &[GATEWAY]));
    }
}

#[test]
fn subscriptions_are_limited() {
    let mut messages = Messages::new(1, false);
    let names = |count: usize| (0..count).map(|name| name.to_string().into_bytes()).collect();
    let kind = SubscriptionKind::Channel;
    let mut ask = |request| messages.ask(START, CLIENT, request, &mut |_, _| {});
    let most = names(SUBSCRIPTIONS_PER_CONNECTION_MAX);
    assert!(matches!(
        ask(MessageRequest::Subscribe { kind, names: names(SUBSCRIPTIONS_PER_CONNECTION_MAX + 1) }),
        Asked::Now(MessageAnswer::Refused(_))
    ));
    assert!(matches!(
        ask(MessageRequest::Subscribe { kind, names: most }),
        Asked::Now(MessageAnswer::Subscriptions { .. })
    ));
    assert!(matches!(
        ask(MessageRequest::Subscribe { kind, names: vec![b"x".to_vec()] }),
        Asked::Now(MessageAnswer::Refused(_))
    ));
}

/// Events of keys: each node executes the same entries, and tells those for whom it is the one to tell.
mod key_events {
    use super::*;
    use syros_commands::access::{Announcement, KeyEvent, Notification, ScriptMessage};
    use syros_resp::KeyspaceEvents;
    use syros_types::Database;

    fn event(entry: u64, event: KeyEvent, key: &str) -> Announcement {
        let database = Database::FIRST;
        Announcement::KeyEvent(Notification { entry, database, key: key.as_bytes().into(), event })
    }

    fn message(entry: u64, kind: SubscriptionKind, channel: &str) -> Announcement {
        let (channel, payload) = (channel.as_bytes().into(), b"hello".as_slice().into());
        Announcement::Message(ScriptMessage { entry, kind, channel, payload })
    }

    impl Net {
        fn listen(&mut self, process: usize, letters: &str, pattern: &str) {
            let events = KeyspaceEvents::parse(letters.as_bytes()).expect("letters");
            self.processes[process].set_key_events(events);
            self.subscribe(process, SubscriptionKind::Pattern, pattern);
            self.pump();
        }

        fn execute(&mut self, process: usize, happened: &[Announcement]) {
            let got = &mut self.got;
            assert!(process != GATEWAY, "it has no replica");
            let wants = self.processes[process].wants_key_events();
            let happened = happened.iter().filter(|it| wants || matches!(it, Announcement::Message(_)));
            let happened: Vec<Announcement> = happened.cloned().collect();
            self.processes[process].announce(&happened, &mut |_, message| {
                got.push((process, text(message.channel), text(message.payload)));
            });
            self.pump();
        }

        fn execute_everywhere(&mut self, happened: &[Announcement]) -> Vec<(usize, String, String)> {
            (0..GATEWAY).for_each(|process| self.execute(process, happened));
            self.heard()
        }
    }

    #[test]
    fn an_event_is_told_once_wherever_one_listens() {
        let mut net = Net::new();
        net.listen(0, "KEA", "__key*__:*");
        net.listen(1, "Kl", "*");
        net.listen(GATEWAY, "E$", "__keyevent@0__:*");
        let heard = net.execute_everywhere(&[event(1, KeyEvent::Set, "k"), event(1, KeyEvent::LPush, "l")]);
        let of = |process, channel: &str, payload: &str| (process, channel.to_owned(), payload.to_owned());
        let expected = [
            of(0, "__keyevent@0__:lpush", "l"),
            of(0, "__keyevent@0__:set", "k"),
            of(0, "__keyspace@0__:k", "set"),
            of(0, "__keyspace@0__:l", "lpush"),
            of(1, "__keyspace@0__:l", "lpush"),
            of(GATEWAY, "__keyevent@0__:set", "k"),
        ];
        assert_eq!(heard, expected);
    }

    #[test]
    fn nothing_is_computed_for_nobody() {
        let mut net = Net::new();
        assert!(!net.processes[0].wants_key_events());
        net.listen(0, "KEA", "news.*");
        assert!(!net.processes[0].wants_key_events(), "nobody listens");
        net.listen(1, "", "*");
        assert!(!net.processes[1].wants_key_events(), "nobody is told");
        net.listen(0, "KEA", "_*");
        assert!(net.processes[0].wants_key_events());
        net.processes[0].end_all(CLIENT);
        assert!(!net.processes[0].wants_key_events());
        // A node does not know what a gateway tells its clients of.
        net.listen(GATEWAY, "", "*");
        let home = net.processes[GATEWAY].home.map(process_of).unwrap();
        for process in 0..GATEWAY {
            assert_eq!(net.processes[process].wants_key_events(), process == home);
        }
        assert_eq!(net.execute_everywhere(&[event(1, KeyEvent::Set, "k")]), []);
    }

    #[test]
    fn a_message_of_a_script_is_told_once_wherever_one_subscribes() {
        let mut net = Net::new();
        net.subscribe(0, SubscriptionKind::Pattern, "n*");
        net.subscribe(1, SubscriptionKind::Shard, "news");
        net.subscribe(GATEWAY, SubscriptionKind::Channel, "news");
        net.subscribe(GATEWAY, SubscriptionKind::Shard, "news");
        net.pump();
        let heard = |net: &mut Net, kind| {
            let heard = net.execute_everywhere(&[message(1, kind, "news"), message(1, kind, "other")]);
            heard.into_iter().map(|(process, channel, _)| (process, channel)).collect::<Vec<_>>()
        };
        let of = |process| (process, "news".to_owned());
        assert_eq!(heard(&mut net, SubscriptionKind::Channel), [of(0), of(GATEWAY)]);
        let shard = net.execute_everywhere(&[message(2, SubscriptionKind::Shard, "news")]);
        assert_eq!(shard.len(), 2, "{shard:?}");
        assert_eq!(heard(&mut net, SubscriptionKind::Channel), [of(0)], "the gateway has heard of entry 2");
    }

    #[test]
    fn a_gateway_that_changes_its_home_is_told_nothing_twice() {
        let mut net = Net::new();
        net.listen(GATEWAY, "KA", "*");
        let home = net.processes[GATEWAY].home.map(process_of).unwrap();
        let happened =
            |entry| [event(entry, KeyEvent::Set, "a"), message(entry, SubscriptionKind::Channel, "b")];
        net.execute(home, &happened(1));
        net.execute(home, &happened(2));
        assert_eq!(net.heard().len(), 4, "two of one entry are two");
        net.part(home, GATEWAY);
        net.pump();
        let next = net.processes[GATEWAY].home.map(process_of).unwrap();
        assert_ne!(next, home);
        // The new home lags.
        for entry in 1..=3 {
            net.execute(next, &happened(entry));
        }
        let heard = net.heard();
        assert_eq!(heard.len(), 2, "{heard:?}");
    }
}

/// Each byte of a long channel may be compared with each of a long pattern.
#[test]
fn a_channel_that_is_too_long_for_the_patterns_is_refused() {
    let mut net = Net::new();
    let pattern = format!("*{}b", "a".repeat(30_000));
    net.subscribe(0, SubscriptionKind::Pattern, &pattern);
    net.pump();
    let ask = |net: &mut Net, process, length: usize| {
        let (channel, payload) = (vec![b'a'; length], b"x".to_vec());
        net.ask(process, MessageRequest::Publish { kind: SubscriptionKind::Channel, channel, payload })
    };
    for process in [0, 1] {
        let begin = std::time::Instant::now();
        assert!(matches!(ask(&mut net, process, 60_000), Asked::Now(MessageAnswer::Refused(_))), "{process}");
        assert!(begin.elapsed() < Duration::from_secs(1));
        assert!(matches!(ask(&mut net, process, 100), Asked::Now(MessageAnswer::Count(0))));
        let request = |length: usize| MessageRequest::Publish {
            kind: SubscriptionKind::Channel,
            channel: vec![b'a'; length],
            payload: Vec::new(),
        };
        let messages = &net.processes[process];
        assert!(messages.steps_of(&request(1_000)) >= 30_000_000, "a turn has to end after it");
        assert!(messages.steps_of(&request(1)) < 100_000);
    }
}

#[test]
fn a_pattern_that_takes_long_to_be_compared_with_all_channels_is_refused() {
    let mut net = Net::new();
    let channel = "a".repeat(60_000);
    net.subscribe(0, SubscriptionKind::Channel, &channel);
    net.pump();
    for (length, is_refused) in [(1_000, false), (60_000, true)] {
        let pattern = Some(format!("*[{}", "b".repeat(length)).into_bytes());
        let names = MessageRequest::Names { kind: SubscriptionKind::Channel, pattern };
        let Asked::Now(answer) = net.ask(1, names) else { panic!("at once") };
        assert_eq!(matches!(answer, MessageAnswer::Refused(_)), is_refused, "{length}");
    }
}
