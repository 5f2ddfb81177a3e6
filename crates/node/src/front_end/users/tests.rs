//! What a front end makes of answers about users.

use super::*;
use syros_commands::acl::UserChange;

const START: Instant = Instant(1_000_000);
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

const INTERVAL: Duration = Duration::from_millis(100);

fn changed() -> Users {
    let mut users = Users::default();
    users.set(b"u", &[b"on"], UserChange::Always).unwrap();
    users
}

fn answer(reply: &Reply) -> Outcome {
    let mut encoded = Vec::new();
    reply.encode(&mut encoded);
    Outcome::Reply(encoded.into())
}

fn submission(words: &[&[u8]]) -> Submission {
    let Ok(Parsed::Data(operation)) = parse(words) else { panic!("{words:?}") };
    let mut body = Vec::new();
    operation.encode(&mut body);
    let description = describe(&body).unwrap();
    let (class, footprint) = (description.class, description.footprint);
    Submission {
        slot: 4,
        body: body.into(),
        class,
        footprint,
        read_policy: None,
        waits: false,
        is_pack: false,
    }
}

fn reply(address: u64) -> Withheld {
    Withheld { from: (address, 4), since: START, completion: Completion::Done }
}

#[test]
fn users_are_read_at_once_and_then_again_and_again() {
    let mut watch = UserWatch::new(USERS_VALID, GIVE_UP_AFTER);
    assert!(watch.next_errand(START, View(0), None).is_none(), "nobody wants them");
    watch.begin(START, Vec::new());
    let errand = watch.next_errand(START, View(0), None).expect("they are read");
    assert_eq!((errand.kind, errand.class), (ErrandKind::Users, Class::Read));
    assert!(watch.next_errand(START.after(INTERVAL), View(0), None).is_none(), "one read at a time");
    let users = changed();
    let looked = watch.on_looked(START, &answer(&Reply::Bulk(users.encode())));
    assert!(matches!(looked, Looked::Users(found) if found == users));
    assert_eq!(watch.deadline(), START.after(INTERVAL));
    assert!(watch.next_errand(START, View(0), Some(&users)).is_none());
    let later = START.after(INTERVAL);
    assert!(watch.next_errand(later, View(0), Some(&users)).is_some());
    assert!(matches!(watch.on_looked(later, &answer(&Reply::Nil)), Looked::Same));
    for bad in [answer(&Reply::Ok), answer(&Reply::Bulk(b"x".to_vec())), Outcome::NoQuorum] {
        assert!(matches!(watch.on_looked(later, &bad), Looked::Nothing), "{bad:?}");
        assert_eq!(watch.deadline(), later.after(INTERVAL));
    }
}

#[test]
fn a_reply_to_a_change_waits_for_a_read_that_begins_after_it() {
    let mut watch = UserWatch::new(USERS_VALID, GIVE_UP_AFTER);
    watch.begin(START, Vec::new());
    watch.next_errand(START, View(0), None).expect("a read begins");
    watch.note(1, &submission(&[b"ACL", b"SETUSER", b"u", b"on"]));
    watch.note(2, &submission(&[b"FLUSHALL"]));
    watch.note(3, &submission(&[b"ACL", b"DELUSER", b"u"]));
    assert!(watch.withhold(START, reply(2)).is_some(), "it changes no users");
    assert!(watch.withhold(START, reply(1)).is_none());
    assert!(watch.withhold(START, reply(1)).is_some(), "once");
    // The read that was under way does not count.
    watch.on_looked(START, &answer(&Reply::Bulk(Users::default().encode())));
    assert!(watch.released(START).is_empty());
    watch.next_errand(START, View(0), None).expect("the next read begins at once");
    assert!(watch.withhold(START, reply(3)).is_none());
    // A read that fails releases nothing.
    watch.on_looked(START, &Outcome::TimedOut);
    let later = START.after(INTERVAL);
    watch.next_errand(later, View(0), None).expect("it is tried again");
    watch.on_looked(later, &answer(&Reply::Bulk(changed().encode())));
    let released: Vec<u64> = watch.released(later).iter().map(|reply| reply.from.0).collect();
    assert_eq!(released, [1, 3]);
    // What was refused at once has changed nothing.
    watch.note(1, &submission(&[b"ACL", b"SETUSER", b"u", b"on"]));
    watch.withdraw((1, 4));
    assert!(watch.withhold(later, reply(1)).is_some());
    // Who has gone waits for nothing.
    watch.note(5, &submission(&[b"ACL", b"SETUSER", b"u", b"on"]));
    watch.forget(5);
    assert!(watch.withhold(later, reply(5)).is_some());
}

#[test]
fn a_reply_to_a_change_does_not_wait_for_ever() {
    let mut watch = UserWatch::new(USERS_VALID, GIVE_UP_AFTER);
    watch.begin(START, Vec::new());
    watch.note(1, &submission(&[b"BLIND", b"ACL", b"SETUSER", b"u", b"on"]));
    assert!(watch.withhold(START, reply(1)).is_none(), "a blind change is one, too");
    watch.next_errand(START, View(0), None).expect("a read begins");
    watch.on_looked(START, &Outcome::NoQuorum);
    assert!(watch.next_given_up(START.after(GIVE_UP_AFTER / 2)).is_none());
    assert!(watch.deadline() <= START.after(GIVE_UP_AFTER));
    let given_up = watch.next_given_up(START.after(GIVE_UP_AFTER)).expect("nobody can read the users");
    assert!(matches!(given_up.completion, Completion::Unknown));
    assert!(watch.next_given_up(START.after(GIVE_UP_AFTER)).is_none());
}

#[test]
fn a_new_cluster_gets_its_password_first() {
    let mut watch = UserWatch::new(USERS_VALID, GIVE_UP_AFTER);
    watch.begin(START, vec![b"resetpass".to_vec()]);
    watch.next_errand(START, View(0), None).expect("a read begins");
    watch.on_looked(START, &answer(&Reply::Bulk(Users::default().encode())));
    assert!(watch.is_first_change_due(&Users::default()) && !watch.is_first_change_due(&changed()));
    assert_eq!(watch.first_change().kind, ErrandKind::FirstUser);
    assert_eq!(watch.deadline(), Instant::NEVER);
    watch.on_changed(START);
    assert!(watch.next_errand(START, View(0), None).is_some());
}

mod front_end {
    use super::*;
    use crate::front_end::{FrontEndAction, FrontEndSettings};
    use syros_commands::Generation;
    use syros_protocol::client::{Config, Event};
    use syros_protocol::message::{Message, Refusal};
    use syros_resp::{Context, DebugAccess, Identity, ServerInfo, ServerReport};
    use syros_types::{Configuration, FastQuorum, Group, ReplicaId, View, WallTime};

    /// The wire format of builds that know of no users.
    const BEFORE_USERS: u16 = 17;

    struct NoServer;

    impl ServerInfo for NoServer {
        fn report(&self) -> ServerReport {
            ServerReport::default()
        }
        fn reset_statistics(&self) {}
    }

    const fn at(millis: u64) -> Now {
        Now {
            instant: Instant(1_000_000_000 + millis * 1_000_000),
            wall: WallTime(1_700_000_000_000_000 + millis * 1000),
        }
    }

    /// A front end that is connected to all replicas, one client of it, and the reads that it has sent to the leader, each once.
    struct Process {
        front_end: RedisFrontEnd,
        reads: Vec<(u64, Body)>,
        last: u64,
    }

    impl Process {
        fn new() -> Self {
            let group = Group::new(3).unwrap();
            let config = Config::new(Configuration::first(group, FastQuorum::Majority), 1);
            let settings = FrontEndSettings {
                client_memory: 1 << 30,
                quorum_timeout: Duration::from_secs(5),
                drain_timeout: Duration::from_secs(1),
                users_valid: USERS_VALID,
                is_gateway: false,
                debug: DebugAccess::Nobody,
            };
            let mut front_end = RedisFrontEnd::new(config, settings, at(0));
            for replica in 0..3 {
                front_end.handle(at(0), Event::Connected(ReplicaId(replica)));
            }
            front_end.require_users(at(0), Vec::new(), false);
            let identity = Identity { id: 7, address: "127.0.0.1:5".into(), local_address: String::new() };
            let connection = front_end.new_connection(identity, at(0));
            front_end.open(0, connection);
            Self { front_end, reads: Vec::new(), last: 0 }
        }

        fn poll(&mut self, now: Now) {
            self.front_end.tick(now);
            loop {
                while let Some(action) = self.front_end.poll(now) {
                    if let FrontEndAction::Send { message: Message::Read { number, body, .. }, .. } = action
                        && number > self.last
                    {
                        self.last = number;
                        self.reads.push((number, body));
                    }
                }
                if self.front_end.go_on(now).is_none() {
                    break;
                }
            }
        }

        /// The client sends a command, or what it has sent before and was not taken.
        fn send(&mut self, now: Now, line: &str) {
            let bytes = format!("{line}\r\n").into_bytes();
            let context = Context { now: now.wall, info: &NoServer, unavailable: None };
            let (connection, _) = self.front_end.connection_mut(now, 0).unwrap();
            connection.receive(&bytes, &context);
            self.front_end.on_received(now, 0);
            self.poll(now);
        }

        /// The first read that was sent and has not been looked at.
        fn read(&mut self) -> Option<(u64, Body)> {
            (!self.reads.is_empty()).then(|| self.reads.remove(0))
        }

        fn hear(&mut self, now: Now, message: Message) {
            self.front_end.on_message(now, ReplicaId(0), message);
            self.poll(now);
        }

        fn answer(&mut self, now: Now, number: u64, reply: &Reply) {
            let mut encoded = Vec::new();
            reply.encode(&mut encoded);
            self.hear(now, Message::ReadReply { view: View(0), number, reply: encoded.into() });
        }

        /// The leader does not know what it is asked.
        fn refuse(&mut self, now: Now, number: u64) {
            self.hear(now, Message::ReadRefused { view: View(0), number, refusal: Refusal::Malformed });
        }

        fn output(&mut self) -> String {
            let output = String::from_utf8_lossy(self.front_end.output(0)).into_owned();
            self.front_end.sent(0, output.len());
            output
        }

        fn knows_users(&self) -> bool {
            self.front_end.shared().known_users().is_some()
        }
    }

    /// A member that was away while users were changed, and comes back as it was, says nothing about users.
    #[test]
    fn a_member_of_an_older_build_is_no_proof_that_users_were_never_changed() {
        let mut process = Process::new();
        process.front_end.set_oldest_version(BEFORE_USERS);
        process.poll(at(0));
        process.send(at(1), "GET k");
        assert!(!process.knows_users(), "nobody has told it of the users");
        let (number, body) = process.read().expect("the leader is asked, which may be of this build");
        assert_eq!(Generation::of_body(&body), Generation::Users);
        assert!(process.read().is_none(), "the client waits");
        let mut users = changed();
        users.set(b"default", &[b"resetpass"], UserChange::Always).unwrap();
        process.answer(at(2), number, &Reply::Bulk(users.encode()));
        assert!(process.knows_users());
        process.send(at(3), "GET k");
        assert_eq!(process.output(), "-NOAUTH Authentication required.\r\n");
        assert!(process.read().is_none());
    }

    /// The users that a cluster begins with.
    fn untouched() -> Reply {
        Reply::Bulk(Users::default().encode())
    }

    #[test]
    fn a_leader_of_an_older_build_that_still_leads_knows_that_users_were_never_changed() {
        let mut process = Process::new();
        process.front_end.set_oldest_version(BEFORE_USERS);
        process.poll(at(0));
        process.send(at(1), "GET k");
        let (number, _) = process.read().unwrap();
        process.refuse(at(1), number);
        let (number, body) = process.read().expect("the leader is asked something else");
        assert_eq!(Generation::of_body(&body), Generation::Strings);
        assert!(!process.knows_users(), "it may lead no more");
        process.answer(at(2), number, &Reply::Integer(0));
        assert!(process.knows_users());
        process.send(at(3), "GET k");
        assert!(process.read().is_some(), "the client is served");
    }

    #[test]
    fn a_leader_of_an_older_build_that_leads_no_more_knows_nothing() {
        let mut process = Process::new();
        process.poll(at(0));
        let (number, _) = process.read().unwrap();
        process.refuse(at(1), number);
        let (number, _) = process.read().unwrap();
        process.hear(at(2), Message::WrongView { view: View(1) });
        process.reads.clear();
        let mut encoded = Vec::new();
        Reply::Integer(0).encode(&mut encoded);
        let message = Message::ReadReply { view: View(1), number, reply: encoded.into() };
        process.front_end.on_message(at(3), ReplicaId(1), message);
        process.poll(at(3));
        assert!(!process.knows_users());
        process.poll(at(200));
        assert!(process.read().is_some(), "the next one is asked");
    }

    #[test]
    fn users_that_were_read_long_ago_serve_nobody_before_they_are_read_again() {
        let mut process = Process::new();
        process.poll(at(0));
        let (number, _) = process.read().unwrap();
        process.answer(at(300), number, &untouched());
        process.send(at(999), "GET a");
        let of_client = |(_, body): &(u64, Body)| Generation::of_body(body) == Generation::Strings;
        assert!(process.read().as_ref().is_some_and(of_client), "until a second after they were asked for");
        let (number, _) = process.read().expect("they are asked for again");
        process.send(at(1000), "GET b");
        assert!(process.read().is_none(), "they are no longer valid");
        process.answer(at(1001), number, &Reply::Nil);
        // What was not taken is sent again.
        process.send(at(1001), "GET b");
        assert!(process.read().as_ref().is_some_and(of_client));
    }

    #[test]
    fn whoever_takes_a_right_away_waits_until_nobody_goes_by_it() {
        let mut process = Process::new();
        process.poll(at(0));
        let (number, _) = process.read().unwrap();
        process.answer(at(0), number, &untouched());
        // A change that is acknowledged now, when the users are these: does its client hear of it at once?
        let released = |process: &mut Process, time: u64, found: &Users| {
            let users = &mut process.front_end.users;
            let now = at(time).instant;
            let (from, completion) = ((0, 4), Completion::Reply(vec![].into()));
            users.changing.insert(from);
            assert!(users.withhold(now, Withheld { from, since: now, completion }).is_none());
            users.next_errand(now, View(0), None).expect("the users are read");
            users.on_looked(now, &answer(&Reply::Bulk(found.encode())));
            !users.released(now).is_empty()
        };
        let change = |users: &Users, rules: &[&[u8]]| {
            let mut changed = users.clone();
            changed.set(b"u", rules, UserChange::Always).unwrap();
            changed
        };
        let one = change(&Users::default(), &[b"on", b"+get", b"+set"]);
        assert!(released(&mut process, 10, &one), "there is one more");
        let more = change(&one, &[b"nopass"]);
        assert!(released(&mut process, 11, &more), "it may do more");
        let two_later = change(&change(&more, &[b"~a"]), &[b"~b"]);
        assert!(
            !released(&mut process, 12, &two_later),
            "of several changes one may have taken something away"
        );
        let due = |time: u64| at(time).instant.after(USERS_VALID + USERS_VALID / 16);
        let users = &mut process.front_end.users;
        assert!(
            users.next_expired(at(12).instant.after(USERS_VALID)).is_none(),
            "another clock may be slower"
        );
        assert!(users.withholds(0) && users.deadline() <= due(12));
        assert!(users.next_expired(due(12)).is_some());
        let less = change(&two_later, &[b"-get"]);
        assert!(!released(&mut process, 2000, &less));
        assert!(process.front_end.users.next_expired(due(2000)).is_some());
        // Whoever is told of this must not see elsewhere that GET is allowed: that it was taken away, nobody may have been told.
        let later = change(&less, &[b"nopass"]);
        assert!(!released(&mut process, 2500, &later));
        let users = &mut process.front_end.users;
        assert!(users.next_expired(due(1999)).is_none() && users.next_expired(due(2000)).is_some());
        assert!(released(&mut process, 4000, &change(&later, &[b"on"])), "all is settled");
        // A front end that starts does not know what has just been taken away.
        let mut started = Process::new();
        started.poll(at(0));
        let (number, _) = started.read().unwrap();
        started.answer(at(0), number, &Reply::Bulk(later.encode()));
        assert!(!released(&mut started, 100, &change(&later, &[b"on"])));
        assert!(started.front_end.users.next_expired(due(0)).is_some());
    }
}
