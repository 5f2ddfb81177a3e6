//! What becomes of a data directory at its starts, and whose it is taken for.

use super::*;
use crate::config::EngineKind;
use syros_machine::MachineName;
use syros_protocol::replica::Durability;
use syros_types::{ConfigurationEpoch, FastQuorum, Group, Reconfiguration, ReplicaId};

fn identity() -> Identity {
    Identity {
        cluster: 0x77,
        replica: ReplicaId(2),
        group: Group::new(3).unwrap(),
        fast_quorum: FastQuorum::Majority,
        durability: Durability::Fsync,
        engine: EngineKind::Memory,
    }
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("syros-directory-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

#[test]
fn a_directory_that_is_not_there_any_more_is_noticed_and_its_place_left_alone() {
    let (path, away) = (scratch("anchor"), scratch("anchor-away"));
    let mut directory = DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap();
    let presence = directory.presence().unwrap();
    let problem = || presence.problem().unwrap_or_default();
    assert_eq!(problem(), "", "it has a file of before it is formed");
    directory.claim().unwrap();
    assert_eq!(problem(), "");
    directory.try_writing().unwrap();

    fs::rename(&path, &away).unwrap();
    assert!(problem().contains("removed or renamed") && problem().contains("anchor"), "{}", problem());
    // As what is below a file system that was unmounted.
    fs::create_dir(&path).unwrap();
    assert!(problem().contains("unmounted"), "{}", problem());
    assert!(directory.try_writing().unwrap_err().to_string().contains("unmounted"));
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "nothing is written there");
    fs::write(path.join(LOCK_FILE), "").unwrap();
    assert!(problem().contains("another one"), "{}", problem());
    fs::remove_dir_all(&path).unwrap();

    fs::rename(&away, &path).unwrap();
    assert_eq!(problem(), "");
    fs::remove_file(path.join(IDENTITY.name)).unwrap();
    assert!(problem().contains("identity has been removed"), "{}", problem());
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_link_that_leads_nowhere_is_named() {
    let path = scratch("dangling");
    let _ = fs::remove_file(&path);
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    let refused =
        DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap_err().to_string();
    assert!(refused.contains("is a symbolic link to nowhere, which does not exist"), "{refused}");
    fs::remove_file(&path).unwrap();
}

#[test]
fn first_start_then_later_starts() {
    let path = scratch("starts");
    let refused = DataDirectory::open(&path, identity(), None).unwrap_err();
    assert!(matches!(refused, DirectoryError::Empty(_)), "{refused}");
    assert!(!path.exists(), "a refused start creates nothing");

    let mut first = DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap();
    assert!(first.is_new());
    let roster = Roster::unknown(identity().group).with(identity().replica, first.node());
    first.vote(roster).unwrap();
    first.form(Reconfiguration { epoch: ConfigurationEpoch::FIRST, roster, before: None });
    let node = first.node();
    drop(first);
    // It is interrupted, and repeated without being told so.
    let mut first = DataDirectory::open(&path, identity(), None).unwrap();
    assert!(first.is_new());
    assert_eq!((first.node(), first.voted()), (node, Some(roster)));
    first.form(Reconfiguration { epoch: ConfigurationEpoch::FIRST, roster, before: None });
    first.claim().unwrap();
    assert!(!path.join(FORMATION.name).exists());
    let refused = DataDirectory::open(&path, identity(), None).unwrap_err();
    assert!(matches!(refused, DirectoryError::Locked { process: Some(_), .. }), "{refused}");
    drop(first);

    let refused = DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap_err();
    assert!(matches!(refused, DirectoryError::AlreadyInUse { .. }), "{refused}");
    let again = DataDirectory::open(&path, identity(), None).unwrap();
    assert!(!again.is_new());
    assert_eq!(again.incarnation(), Incarnation(3), "it was opened twice before");
    assert_eq!((again.node(), again.configuration().roster), (node, roster));
    assert_eq!(read_identity(&path).unwrap(), Some(identity()));
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_longer_lease_is_remembered_until_it_has_been_waited_out() {
    let path = scratch("lease");
    let (long, short) = (Duration::from_secs(20), Duration::from_millis(200));
    let mut new = DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap();
    assert_eq!(new.begin_promises(long).unwrap(), long);
    new.claim().unwrap();
    drop(new);
    // Whoever ends before the promise does begins anew with waiting.
    for _ in 0..2 {
        let mut again = DataDirectory::open(&path, identity(), None).unwrap();
        assert_eq!(again.begin_promises(short).unwrap(), long);
    }
    let mut again = DataDirectory::open(&path, identity(), None).unwrap();
    assert_eq!(again.begin_promises(short).unwrap(), long);
    again.end_promises(short).unwrap();
    drop(again);
    let mut again = DataDirectory::open(&path, identity(), None).unwrap();
    assert_eq!(again.begin_promises(short).unwrap(), short);
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_directory_without_a_node_gets_one_and_learns_the_others() {
    let path = scratch("before");
    DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap().claim().unwrap();
    let file = path.join(IDENTITY.name);
    let text = fs::read_to_string(&file).unwrap();
    let unknown = ["node", "incarnation", "group", "epoch", "engine"];
    let lines = text.lines().filter(|line| !unknown.iter().any(|key| line.starts_with(key)));
    let before: String = lines.map(|line| format!("{line}\n")).collect();
    let before = before.replace("format = 3", "format = 1");
    fs::write(&file, before).unwrap();

    let mut opened = DataDirectory::open(&path, identity(), None).unwrap();
    let node = opened.node();
    assert!(!opened.is_new());
    assert_eq!(
        opened.configuration().roster,
        Roster::unknown(identity().group).with(identity().replica, node)
    );
    let learnt = opened.configuration().roster.with(ReplicaId(0), NodeId::new(5).unwrap());
    opened.learn(learnt).unwrap();
    drop(opened);
    let again = DataDirectory::open(&path, identity(), None).unwrap();
    assert_eq!((again.node(), again.configuration().roster), (node, learnt));
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_file_system_of_its_own_is_no_stranger_s_directory() {
    let path = scratch("mount");
    fs::create_dir_all(path.join("lost+found")).unwrap();
    assert!(DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap().is_new());
    fs::write(path.join("novel.txt"), "").unwrap();
    let refused = DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap_err();
    assert!(matches!(refused, DirectoryError::NotEmpty { .. }), "{refused}");
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_first_start_that_was_cut_short_while_a_file_was_written_is_repeated() {
    let path = scratch("torn");
    drop(DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap());
    for torn in ["identity.tmp", "formation.tmp", "identity.new", "formation.new"] {
        fs::write(path.join(torn), "syros repl").unwrap();
    }
    let mut again = DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap();
    assert!(again.is_new());
    again.claim().unwrap();
    drop(again);
    assert_eq!(read_identity(&path).unwrap(), Some(identity()));
    assert!(!path.join("identity.tmp").exists());
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_lock_is_waited_for() {
    let path = scratch("lock");
    let mut first = DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap();
    first.claim().unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| DataDirectory::open(&path, identity(), None));
        // Whether it is let go before the other asks or after makes no difference.
        drop(first);
        assert!(second.join().unwrap().is_ok());
    });
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_state_machine_is_not_given_the_data_of_another() {
    let path = scratch("machine");
    let machine = |name| EngineKind::Machine(MachineName::new(name).unwrap());
    let written = Identity { engine: machine("record-append"), ..identity() };
    DataDirectory::open(&path, written, Some(FirstStart::Bootstrap)).unwrap().claim().unwrap();
    assert_eq!(read_identity(&path).unwrap(), Some(written));
    for engine in [EngineKind::Memory, machine("record-append-2")] {
        let refused = DataDirectory::open(&path, Identity { engine, ..written }, None).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("engine machine record-append,"), "{refused}");
        assert!(refused.contains(&format!("engine {engine}.")), "{refused}");
    }
    let file = path.join("identity");
    let text = fs::read_to_string(&file).unwrap().replace("machine record", "machine Record");
    fs::write(&file, text).unwrap();
    let refused = read_identity(&path).unwrap_err().to_string();
    assert!(refused.contains("engine = machine Record-append is none of"), "{refused}");
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn somebody_elses_directory_is_refused_by_name() {
    let path = scratch("mismatch");
    DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap().claim().unwrap();
    let others = [
        Identity { cluster: 0x78, ..identity() },
        Identity { replica: ReplicaId(1), ..identity() },
        Identity { group: Group::new(5).unwrap(), ..identity() },
        Identity { fast_quorum: FastQuorum::Supermajority, ..identity() },
        Identity { durability: Durability::Replicated, ..identity() },
    ];
    let mixed = Identity { fast_quorum: FastQuorum::Mixed, ..identity() };
    assert_eq!(DataDirectory::open(&path, mixed, None).unwrap().identity(), identity(), "as it was made");
    for other in others {
        let refused = DataDirectory::open(&path, other, None).unwrap_err().to_string();
        assert!(refused.contains("belongs to replica 2 of 3 of cluster 0000000000000077"), "{refused}");
        assert!(refused.contains(&other.to_string()), "{refused}");
    }
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn nothing_is_left_behind_in_a_directory_that_is_refused() {
    let path = scratch("refused");
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    fs::create_dir(&path).unwrap();
    fs::write(path.join("holiday.jpg"), "").unwrap();
    for first_start in [FirstStart::Bootstrap, FirstStart::Replace, FirstStart::Join] {
        let refused = DataDirectory::open(&path, identity(), Some(first_start)).unwrap_err();
        assert!(matches!(refused, DirectoryError::NotEmpty { .. }), "{refused}");
        assert_eq!(names(), ["holiday.jpg"]);
    }
    fs::remove_dir_all(&path).unwrap();

    // A copy without its lock, of another node.
    DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap().claim().unwrap();
    fs::remove_file(path.join(LOCK_FILE)).unwrap();
    let other = Identity { replica: ReplicaId(1), ..identity() };
    for (identity, first_start) in [(other, None), (identity(), Some(FirstStart::Bootstrap))] {
        let _ = DataDirectory::open(&path, identity, first_start).unwrap_err();
        assert_eq!(names(), [IDENTITY.name]);
    }
    assert!(!DataDirectory::open(&path, identity(), None).unwrap().is_new());
    assert_eq!(names(), [IDENTITY.name, LOCK_FILE]);
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_node_that_is_to_replace_another_one_says_so_until_it_has() {
    let path = scratch("replace");
    let first = DataDirectory::open(&path, identity(), Some(FirstStart::Replace)).unwrap();
    assert!(first.is_new() && first.place_wanted() == Some(FirstStart::Replace));
    let node = first.node();
    drop(first);
    let mut again = DataDirectory::open(&path, identity(), None).unwrap();
    assert!(again.place_wanted().is_some() && again.node() == node, "it was stopped while it waited");
    let roster = (0..3).fold(again.configuration().roster, |roster, member| {
        roster.with(ReplicaId(member), NodeId::new(u64::from(member) + 7).unwrap())
    });
    let roster = roster.with(identity().replica, node);
    let configuration = Reconfiguration { epoch: ConfigurationEpoch(3), roster, before: None };
    again.form(configuration);
    again.claim().unwrap();
    drop(again);
    let mut member = DataDirectory::open(&path, identity(), None).unwrap();
    assert!(member.place_wanted().is_none() && !member.is_new());
    assert_eq!(member.configuration(), configuration);
    let next = Reconfiguration {
        epoch: ConfigurationEpoch(4),
        roster: roster.with(ReplicaId(0), NodeId::new(99).unwrap()),
        before: None,
    };
    member.adopt(next).unwrap();
    drop(member);
    assert_eq!(DataDirectory::open(&path, identity(), None).unwrap().configuration(), next);
    let refused = DataDirectory::open(&path, identity(), Some(FirstStart::Replace)).unwrap_err();
    assert!(refused.to_string().contains("start it without --replace"), "{refused}");
    fs::remove_dir_all(&path).unwrap();
}

/// Until it is a member, what it has copied is nothing that a node could be started from.
#[test]
fn a_node_that_learns_is_none_of_the_group_until_it_is() {
    let path = scratch("learner");
    let three = identity().group;
    let identity = Identity { replica: ReplicaId(3), group: Group::new(5).unwrap(), ..identity() };
    let known = |size: Group, epoch, node: Option<NodeId>| {
        let roster = node.map_or(roster_of(size), |node| roster_of(size).with(ReplicaId(3), node));
        let before = node.map(|_| roster_of(three));
        Reconfiguration { epoch: ConfigurationEpoch(epoch), roster, before }
    };
    let mut learner = DataDirectory::open(&path, identity, Some(FirstStart::Join)).unwrap();
    let node = learner.node();
    learner.learn_from(known(three, 2, None));
    // As a replica does that starts.
    learner.begin_promises(Duration::from_millis(100)).unwrap();
    learner.claim().unwrap();
    let names = [WAL, SNAPSHOTS, ENGINE, VIEW];
    for name in names {
        fs::create_dir(path.join(name)).unwrap();
        fs::write(path.join(name).join("copied"), "in part").unwrap();
    }
    learner.adopt(known(three, 3, None)).unwrap();
    learner.learn(known(three, 3, None).roster).unwrap();
    assert_eq!(learner.configuration(), known(three, 3, None));
    drop(learner);

    // It was stopped.
    let again = DataDirectory::open(&path, identity, None).unwrap();
    assert!(again.is_new() && again.node() == node && !again.holds_state());
    assert_eq!(again.place_wanted(), Some(FirstStart::Join));
    again.forget_copy().unwrap();
    assert!(names.iter().all(|name| !path.join(name).exists()));
    drop(again);
    let mut again = DataDirectory::open(&path, identity, Some(FirstStart::Join)).unwrap();
    again.learn_from(known(three, 3, None));
    again.claim().unwrap();
    let member = known(Group::new(5).unwrap(), 4, Some(node));
    again.adopt(member).unwrap();
    assert!(again.presence().unwrap().problem().is_none() && !path.join(FORMATION.name).exists());
    fs::create_dir(path.join(WAL)).unwrap();
    drop(again);
    let again = DataDirectory::open(&path, identity, None).unwrap();
    assert!(!again.is_new() && again.node() == node && again.configuration() == member);
    again.forget_copy().unwrap();
    assert!(path.join(WAL).exists(), "it is no copy any more");
    fs::remove_dir_all(&path).unwrap();
}

fn roster_of(size: Group) -> Roster {
    size.members().fold(Roster::unknown(size), |roster, member| {
        roster.with(member, NodeId::new(u64::from(member.0) + 7).unwrap())
    })
}

#[test]
fn strange_contents_are_refused_by_name() {
    let path = scratch("strange");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("thesis.tex"), "important").unwrap();
    let refused =
        DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap_err().to_string();
    assert!(refused.contains("thesis.tex"), "{refused}");
    fs::remove_file(path.join("thesis.tex")).unwrap();

    DataDirectory::open(&path, identity(), Some(FirstStart::Bootstrap)).unwrap().claim().unwrap();
    let file = path.join("identity");
    let good = fs::read_to_string(&file).unwrap();
    for (from, to, complaint) in [
        ("format = 3", "format = 9", "format 9"),
        ("format = 3", "format = x", "format = x is not a number"),
        ("replica = 2", "replica = 3", "replica = 3 is not below 3"),
        ("replicas = 3", "replicas = 4", "replicas = 4"),
        ("majority", "minority", "fast-quorum = minority"),
        ("fsync", "hope", "durability = hope"),
        ("cluster = 0000000000000077\n", "", "no line 'cluster'"),
        ("node = ", "node = x", "is not a hexadecimal number above 0"),
        ("nodes = ", "nodes = 1 ", "are not 3 hexadecimal numbers"),
        ("incarnation = ", "lives = ", "no line 'incarnation'"),
        ("group = 0", "group = 4294967296", "group = 4294967296 is above 4294967295"),
        ("epoch = 0", "epoch = 4194304", "epoch = 4194304 is above 4194303"),
        ("group = 0", "group = 7", "it names group 7, epoch 0; here it is group 0, epoch 0"),
        ("identity", "garbage", "first line"),
    ] {
        fs::write(&file, good.replacen(from, to, 1)).unwrap();
        let refused = DataDirectory::open(&path, identity(), None).unwrap_err().to_string();
        assert!(refused.contains(complaint), "{refused} should say {complaint}");
    }
    fs::write(&file, vec![b'x'; 10_000]).unwrap();
    assert!(read_identity(&path).unwrap_err().to_string().contains("10000 bytes"));
    fs::write(&file, [0xff, 0xfe]).unwrap();
    assert!(read_identity(&path).unwrap_err().to_string().contains("not text"));
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_directory_that_was_made_from_a_backup_is_of_the_cluster_that_follows_from_it() {
    let scratch = scratch("restored");
    let path = scratch.join("data");
    let backup = BackupId(5);
    let restored = Identity { cluster: backup.cluster(identity().cluster), ..identity() };
    RestoringDirectory::create(&path).unwrap().finish(restored, backup).unwrap();
    let refused = RestoringDirectory::create(&path).expect_err("it is a node's").to_string();
    assert!(refused.contains("is not empty"), "{refused}");
    let named = |cluster| Identity { cluster, ..identity() };
    // By the number that the configuration had, or by that of the new cluster; with --bootstrap or without.
    for first_start in [None, Some(FirstStart::Bootstrap)] {
        for cluster in [identity().cluster, restored.cluster] {
            let opened = DataDirectory::open(&path, named(cluster), first_start).unwrap();
            assert_eq!(opened.identity(), restored);
            assert!(opened.is_new() && opened.holds_state());
        }
    }
    assert!(DataDirectory::open(&path, named(0x78), None).is_err(), "another cluster's");
    let mut opened = DataDirectory::open(&path, identity(), None).unwrap();
    let node = opened.node();
    opened.claim().unwrap();
    drop(opened);
    for cluster in [identity().cluster, restored.cluster] {
        let opened = DataDirectory::open(&path, named(cluster), None).unwrap();
        assert_eq!((opened.identity(), opened.node()), (restored, node));
        assert!(!opened.is_new() && opened.holds_state());
    }
}

#[test]
fn a_restore_that_was_interrupted_leaves_a_directory_that_no_node_starts_with() {
    let scratch = scratch("restoring");
    let path = scratch.join("data");
    drop(RestoringDirectory::create(&path).unwrap());
    for first_start in [None, Some(FirstStart::Bootstrap), Some(FirstStart::Replace)] {
        assert!(DataDirectory::open(&path, identity(), first_start).is_err(), "{first_start:?}");
    }
    assert!(RestoringDirectory::create(&path).is_err());
    let other = scratch.join("other");
    RestoringDirectory::create(&other).unwrap().give_up();
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    assert!(!DataDirectory::open(&other, identity(), Some(FirstStart::Bootstrap)).unwrap().holds_state());
}
