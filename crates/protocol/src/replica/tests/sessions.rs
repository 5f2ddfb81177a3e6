//! Who may use a session, and what the session table has room for.

use super::*;

/// A session's id is an op number, which anybody can guess; its nonce is not.
#[test]
fn only_who_registered_a_session_can_use_it() {
    const STRANGER: Peer = Peer::Client(8);
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let stolen = cluster.request(session, 1, 5, Path::Durability, "oA9");
    let refusals = |cluster: &mut Cluster| -> Vec<_> {
        let refusal = |(client, _, message)| match message {
            Message::Refused { refusal, .. } => (client, Some(refusal)),
            _ => (client, None),
        };
        cluster.inbox.drain(..).map(refusal).collect()
    };
    for nonce in [None, Some(2), Some(0)] {
        for replica in 0..3 {
            if let Some(nonce) = nonce {
                let message = Message::Attach { session, nonce };
                cluster.event(replica, Event::Message { from: STRANGER, message });
            }
            cluster.event(replica, Event::Message { from: STRANGER, message: stolen.clone() });
        }
        let refused = (8, Some(Refusal::NotAttached));
        assert_eq!(refusals(&mut cluster), [refused; 3], "with nonce {nonce:?}");
    }
    // Each is counted by why it was refused, and nothing else is.
    let counted: Vec<_> = cluster.replicas[1].refusals().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted.iter().map(|(refusal, _)| *refusal).collect::<Vec<_>>(), [Refusal::NotAttached]);
    let own = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &own);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    // Nor is anybody else told what an operation has returned.
    cluster.pass(30);
    cluster.event(0, Event::Message { from: STRANGER, message: own.clone() });
    assert_eq!(refusals(&mut cluster), [(8, Some(Refusal::NotAttached))]);
    // Once its connection is closed, its number says nothing.
    cluster.event(0, Event::ClientGone(7));
    cluster.event(0, Event::Message { from: CLIENT, message: own });
    assert_eq!(cluster.answers(), [(0, "refused")]);
    assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]));
}

/// A follower whose log ends before the registration cannot judge a claim, and takes no update on it: in a view change, what
/// somebody else sent under the id of a completed update could be recovered in its place.
#[test]
fn a_follower_takes_no_claim_on_trust() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.down.insert(2);
    let session = cluster.register();
    cluster.down.remove(&2);
    cluster.attach(session);
    let request = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &request);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "refused")]);
    assert!(cluster.replicas[2].dlog.is_empty());
    // As soon as its log has the registration, it can.
    cluster.pass(200);
    cluster.attach(session);
    let next = cluster.request(session, 2, 6, Path::Durability, "oA2");
    cluster.inbox.clear();
    cluster.send(&[2], &next);
    assert_eq!(cluster.answers(), [(2, "ok")]);
}

/// Somebody takes all sessions that there are. Clients that come later get one all the same, and those in use keep theirs.
#[test]
fn sessions_that_nobody_uses_make_room() {
    const SESSIONS: u64 = 65_536;
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let view = View(0);
    let register = |cluster: &mut Cluster, client: u64, nonce: u64| {
        let message = Message::Register { view, nonce };
        cluster.event(0, Event::Message { from: Peer::Client(client), message });
    };
    let in_use = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &in_use);
    // One connection gets no further than its share.
    (0..1_000).for_each(|number| register(&mut cluster, 50, 10_000 + number));
    cluster.pass(50);
    assert!(cluster.replicas[0].sessions.len() <= 10, "{}", cluster.replicas[0].sessions.len());
    for batch in 0..SESSIONS / 1024 {
        (0..1024).map(|number| 1024 * batch + number).for_each(|number| {
            register(&mut cluster, 100 + number, 20_000 + number);
        });
        cluster.pass(5);
    }
    assert_eq!(cluster.replicas[0].sessions.len() as u64, SESSIONS);
    // A client that tries again until it has a session has one within a second.
    cluster.inbox.clear();
    let registered = |cluster: &Cluster, client: u64| {
        cluster
            .inbox
            .iter()
            .any(|(to, _, message)| *to == client && matches!(message, Message::Registered { .. }))
    };
    // A member's front end need not wait.
    cluster.event(0, Event::MemberConnected(60));
    register(&mut cluster, 60, 60);
    cluster.pass(20);
    assert!(registered(&cluster, 60));
    for millis in 0.. {
        assert!(millis < 1_000, "a client waits for a session");
        if millis % 200 == 0 {
            register(&mut cluster, 70, 70);
        }
        cluster.pass(1);
        if registered(&cluster, 70) {
            break;
        }
    }
    let next = cluster.request(session, 2, 6, Path::Durability, "oA2");
    cluster.inbox.clear();
    cluster.send(&[0, 1, 2], &next);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
}

/// What an update returned is not kept where the session table has no room for it. Whoever waits for it hears it; to the
/// copies that come later, nobody claims to know it, and no copy is executed.
#[test]
fn a_reply_that_is_not_kept_is_told_once() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| config.settings.reply_bytes_max = 0);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Ordered, "uA1");
    cluster.send(&[0], &request);
    cluster.pass(30);
    let told = cluster.inbox.drain(..).filter_map(|(_, from, message)| match message {
        Message::Committed { reply, .. } => Some((from, reply)),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(0, Body::from(*b"reply"))]);
    assert!(cluster.replicas.iter().all(|replica| replica.reply_bytes() == 0));
    cluster.send(&[0], &request);
    let refusal = Refusal::ReplyDropped;
    assert!(matches!(&cluster.inbox[0].2, Message::Refused { refusal: why, .. } if *why == refusal));
    assert_eq!(cluster.answers(), [(0, "refused")]);
    cluster.pass(30);
    assert!(cluster.executed.iter().all(|executed| executed == &["uA1"]));
}

/// A client that acknowledges nothing is refused everywhere once the session table is full, for now and without a trace;
/// what it acknowledges makes room again.
#[test]
fn a_full_session_table_takes_no_more_from_who_has_more_than_its_share() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
        config.settings.completions_max = 4;
    });
    let [greedy, modest] = [cluster.register(), cluster.register()];
    for far in [1, 100, 200, 300] {
        let request = cluster.request(greedy, far, 5, Path::Durability, &alloc::format!("oA{far}"));
        cluster.send(&[0, 1, 2], &request);
        assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
        cluster.pass(50);
    }
    let refused = cluster.request(greedy, 301, 5, Path::Durability, "oA301");
    cluster.send(&[0, 1, 2], &refused);
    let refusal = Refusal::Overloaded;
    assert!(matches!(&cluster.inbox[0].2, Message::Refused { refusal: why, .. } if *why == refusal));
    assert_eq!(cluster.answers(), [(0, "refused"), (1, "refused"), (2, "refused")]);
    assert!(cluster.replicas.iter().all(|replica| replica.dlog.is_empty()));
    cluster.send(&[0, 1, 2], &cluster.request(modest, 1, 5, Path::Durability, "oB1"));
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    cluster.pass(50);
    assert_eq!(cluster.replicas[1].sessions.completions(), 5);
    let mut acknowledging = refused;
    if let Message::Request { request, .. } = &mut acknowledging {
        request.acked_below = 301;
    }
    cluster.send(&[0, 1, 2], &acknowledging);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    cluster.pass(50);
    assert!(cluster.replicas.iter().all(|replica| replica.sessions.completions() == 2));
}

/// A client that sends an update to others, too, does not count on the leader's refusal of the first copy, which it may not
/// have heard: when there is room again, the update is welcome.
#[test]
fn an_update_that_was_refused_alone_is_welcome_among_all() {
    let last = |bug| {
        let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
            (config.settings.completions_max, config.settings.sessions_max) = (2, 1);
            planted(bug)(config);
        });
        let session = cluster.register();
        let alone = ReplicaSet::default().with(ReplicaId(0));
        let mut send = |sequence, acked_below, sent_to| {
            let body = alloc::format!("u{}{sequence}", char::from(b'A' + sequence as u8));
            let mut message = cluster.request(session, sequence, 5, Path::Ordered, &body);
            if let Message::Request { request, recipients, .. } = &mut message {
                (request.acked_below, *recipients) = (acked_below, sent_to);
            }
            cluster.send(&[0], &message);
            cluster.pass(50);
            cluster.answers()
        };
        assert_eq!(send(1, 1, alone), [(0, "committed")]);
        assert_eq!(send(2, 1, alone), [(0, "committed")]);
        assert_eq!(send(3, 1, alone), [(0, "refused")]);
        assert_eq!(send(4, 3, alone), [(0, "committed")], "which makes room");
        assert_eq!(send(3, 1, alone), [(0, "refused")], "a copy of the first");
        send(3, 1, ReplicaSet::ALL)
    };
    assert_eq!(last(None), [(0, "committed")]);
    if cfg!(feature = "planted-bugs") {
        assert_eq!(last(Some(PlantedBug::CrowdedOutForGood)), [(0, "refused")]);
    }
}

/// A request that is sent again acknowledges no more than when it was stamped. While the session table is full, what a later one
/// acknowledges counts for it, though that one was refused: otherwise each would wait until the other was executed.
#[test]
fn a_refused_request_makes_room_by_what_it_acknowledges() {
    let last = |bug| {
        let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
            config.settings.completions_max = 0;
            planted(bug)(config);
        });
        let session = cluster.register();
        let mut send = |sequence, acked_below| {
            let mut message =
                cluster.request(session, sequence, 5, Path::Ordered, &alloc::format!("oA{sequence}"));
            if let Message::Request { request, .. } = &mut message {
                request.acked_below = acked_below;
            }
            cluster.send(&[0], &message);
            cluster.pass(50);
            cluster.answers()
        };
        assert_eq!(send(1, 1), [(0, "committed")]);
        assert_eq!(send(4, 1), [(0, "refused")], "it has its share");
        // The client has given up 2 and 3, which went nowhere, and has the answer to 1.
        assert_eq!(send(6, 2), [(0, "committed")]);
        assert_eq!(send(4, 1), [(0, "refused")]);
        assert_eq!(send(7, 4), [(0, "refused")], "6 is executed and not acknowledged");
        send(4, 1)
    };
    assert_eq!(last(None), [(0, "committed")]);
    if cfg!(feature = "planted-bugs") {
        assert_eq!(last(Some(PlantedBug::RefusedUnheard)), [(0, "refused")]);
    }
}

/// A client takes for refused for good what it has sent once, to the leader alone: a copy on its way must not take effect
/// when the session table has room again.
#[test]
fn a_full_session_table_refuses_for_good_what_went_to_the_leader_alone() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
        config.settings.completions_max = 1;
    });
    let session = cluster.register();
    cluster.send(&[0, 1, 2], &cluster.request(session, 1, 5, Path::Durability, "oA1"));
    cluster.pass(50);
    cluster.answers();
    let Message::Request { view, request, .. } = cluster.request(session, 9, 6, Path::Ordered, "uA9") else {
        unreachable!()
    };
    let alone = Message::Request { view, path: Path::Ordered, recipients: ReplicaSet(1), request };
    cluster.send(&[0], &alone);
    assert_eq!(cluster.answers(), [(0, "refused")]);
    for replica in &mut cluster.replicas {
        replica.config.settings.completions_max = 100;
    }
    cluster.send(&[0], &alone);
    cluster.pass(50);
    assert_eq!(cluster.answers(), [(0, "refused")]);
    assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]));
}

/// What is refused is in no log, so a session hears nothing of what its client has acknowledged since: after as many refusals in a
/// row as a window has operations, it would take no update any more.
#[test]
fn the_window_of_a_session_goes_by_what_its_client_has_acknowledged() {
    let far = 2 * crate::sessions::SESSION_WINDOW_MAX;
    let last = |bug| -> Vec<(usize, &str)> {
        let mut cluster = Cluster::with(3, FastQuorum::Majority, planted(bug));
        let session = cluster.register();
        let mut send = |sequence, acked_below| {
            let Message::Request { view, request, .. } =
                cluster.request(session, sequence, sequence, Path::Durability, "oA1")
            else {
                unreachable!()
            };
            let request = Request { acked_below, ..request };
            let recipients = ReplicaSet::ALL;
            cluster.send(&[0, 1, 2], &Message::Request { view, path: Path::Durability, recipients, request });
            let answers = cluster.answers();
            cluster.pass(50);
            answers
        };
        let ok = [(0, "ok"), (1, "ok"), (2, "ok")];
        assert_eq!(send(1, 1), ok);
        let refused = [(0, "refused"), (1, "refused"), (2, "refused")];
        assert_eq!(send(far, 1), refused, "it has far too many in flight");
        let answers = send(far, far);
        if answers == ok {
            assert_eq!(send(far + 1, far + 1), ok);
            assert!(cluster.executed.iter().all(|executed| executed.len() == 3), "{:?}", cluster.executed);
        }
        answers
    };
    assert_eq!(last(None), [(0, "ok"), (1, "ok"), (2, "ok")]);
    if cfg!(feature = "planted-bugs") {
        let refused = [(0, "refused"), (1, "refused"), (2, "refused")];
        assert_eq!(last(Some(PlantedBug::WindowOfExecuted)), refused);
    }
}
