//! Who a client is, and what it may run: what a connection makes of the users that its process knows.

mod common;

use common::{CONTEXT, request};
use std::sync::Arc;
use syros_commands::acl::{UserChange, UserNumber, Users};
use syros_commands::{Command, describe, operations};
use syros_resp::{Completion, Connection, Context, Identity, Shared, Submission};
use syros_types::Footprint;

const LOOPBACK: &str = "127.0.0.1:50000";
const NOT_AUTHENTICATED: &str = "-NOAUTH Authentication required.\r\n";

struct Client {
    shared: Arc<Shared>,
    connection: Connection,
}

impl Client {
    /// A client of a process that knows users whom these rules have made, each behind a name.
    fn new(users: &[(&str, &str)]) -> Self {
        let shared = Arc::<Shared>::default();
        let client = Self::of(&shared, LOOPBACK);
        client.learn(users);
        client
    }

    fn of(shared: &Arc<Shared>, address: &str) -> Self {
        let identity = Identity { id: 7, address: address.into(), local_address: "127.0.0.1:6379".into() };
        let connection = Connection::with_shared(identity, CONTEXT.now, Arc::clone(shared));
        Self { shared: Arc::clone(shared), connection }
    }

    /// The process learns of changes.
    fn learn(&self, changes: &[(&str, &str)]) {
        let mut users = self.shared.known_users().unwrap_or_default();
        for (name, rules) in changes {
            let rules: Vec<&[u8]> =
                rules.split(' ').filter(|rule| !rule.is_empty()).map(str::as_bytes).collect();
            users.set(name.as_bytes(), &rules, UserChange::Always).unwrap();
        }
        self.shared.learn_users(users);
    }

    /// What is answered at once.
    fn ask(&mut self, line: &str) -> String {
        self.feed(&request(&line.split(' ').collect::<Vec<_>>()), &CONTEXT);
        self.take()
    }

    fn feed(&mut self, bytes: &[u8], context: &Context<'_>) -> usize {
        self.connection.receive(bytes, context)
    }

    fn take(&mut self) -> String {
        let output = String::from_utf8_lossy(self.connection.output()).into_owned();
        self.connection.sent(self.connection.output().len());
        output
    }

    /// What is submitted.
    fn submitted(&mut self, line: &str) -> Submission {
        assert_eq!(self.ask(line), "", "{line}");
        self.connection.poll_submit().unwrap_or_else(|| panic!("{line}"))
    }

    /// Answers OK.
    fn complete(&mut self, submission: &Submission) -> String {
        let reply: Vec<u8> = operations(&submission.body)
            .flat_map(|_| {
                let mut ok = Vec::new();
                syros_commands::put_ok(&mut ok);
                ok
            })
            .collect();
        assert!(self.connection.complete(submission.slot, Completion::Reply(reply.into())));
        self.take()
    }
}

#[test]
fn a_client_says_who_it_is_before_anything_else() {
    let mut client = Client::new(&[("default", ">secret"), ("bob", "on >word +get +acl|whoami +select ~b*")]);
    for command in
        ["PING", "GET k", "ACL WHOAMI", "INFO", "SUBSCRIBE c", "MULTI", "EXEC", "READ stale GET k", "COMMAND"]
    {
        assert_eq!(client.ask(command), NOT_AUTHENTICATED, "{command}");
    }
    assert_eq!(client.ask("NOSUCH"), "-ERR unknown command 'NOSUCH', with args beginning with: \r\n");
    assert_eq!(client.ask("GET"), "-ERR wrong number of arguments for 'get' command\r\n");
    assert!(
        client
            .ask("HELLO 3")
            .starts_with("-NOAUTH HELLO must be called with the client already authenticated")
    );
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    for command in ["AUTH word", "AUTH nobody secret", "AUTH bob secret", "HELLO 3 AUTH bob secret"] {
        assert_eq!(client.ask(command), wrong, "{command}");
    }
    assert_eq!(client.ask("AUTH a b c"), "-ERR syntax error\r\n");
    assert_eq!(client.ask("AUTH secret"), "+OK\r\n");
    assert_eq!(client.ask("ACL WHOAMI"), "$7\r\ndefault\r\n");
    assert!(client.ask("HELLO 2 AUTH bob word").starts_with("*14\r\n"));
    assert_eq!(client.ask("ACL WHOAMI"), "$3\r\nbob\r\n");
    assert_eq!(client.ask("PING"), "-NOPERM User bob has no permissions to run the 'ping' command\r\n");
    assert_eq!(client.ask("GET a"), "-NOPERM No permissions to access a key\r\n");
    client.submitted("GET b1");
    let mut other = Client::of(&client.shared, LOOPBACK);
    assert_eq!(other.ask("AUTH bob word"), "+OK\r\n");
    assert_eq!(other.ask("RESET"), "+RESET\r\n");
    assert_eq!(other.ask("ACL WHOAMI"), NOT_AUTHENTICATED);
    assert_eq!(other.ask("QUIT"), "+OK\r\n");
}

#[test]
fn a_change_counts_from_when_the_process_knows_it() {
    let mut client = Client::new(&[("bob", "on nopass +@all ~*")]);
    assert_eq!(client.ask("AUTH bob x"), "+OK\r\n");
    let submission = client.submitted("GET k");
    client.complete(&submission);
    client.learn(&[("bob", "-get")]);
    assert_eq!(client.ask("GET k"), "-NOPERM User bob has no permissions to run the 'get' command\r\n");
    // Who is switched off stays connected, as in Redis, and does not come in anew.
    client.learn(&[("bob", "+get off")]);
    client.submitted("GET k");
    let mut other = Client::of(&client.shared, LOOPBACK);
    assert!(other.ask("AUTH bob x").starts_with("-WRONGPASS"));
    // What was learned before counts no more.
    client.shared.learn_users(Users::default());
    assert!(client.shared.known_users().is_some_and(|users| users.find(b"bob").is_some()));
}

#[test]
fn who_is_removed_is_disconnected_also_if_there_is_one_of_the_name_again() {
    let mut client = Client::new(&[("bob", "on nopass +@all ~*")]);
    client.ask("AUTH bob x");
    let mut users = client.shared.known_users().unwrap();
    users.delete([&b"bob"[..]].into_iter()).unwrap();
    users.set(b"bob", &[b"on", b"nopass", b"+@all", b"~*"], UserChange::Always).unwrap();
    client.shared.learn_users(users);
    assert_eq!(client.ask("GET k"), NOT_AUTHENTICATED);
    assert!(client.connection.is_finished());
    let mut other = Client::of(&client.shared, LOOPBACK);
    assert!(!other.connection.on_users(false) && other.ask("AUTH bob x") == "+OK\r\n");
    let mut users = client.shared.known_users().unwrap();
    users.delete([&b"bob"[..]].into_iter()).unwrap();
    client.shared.learn_users(users);
    assert!(other.connection.on_users(true) && other.connection.is_finished());
}

#[test]
fn before_the_users_are_known_only_this_machine_may_ask_how_the_process_is() {
    let shared = Arc::<Shared>::default();
    shared.forget_users();
    let refused = |command: &str, answer: &str| {
        // Whoever says who he is hears that nobody knows yet whether that is true.
        if command.starts_with("AUTH") {
            answer.starts_with("-LOADING ")
        } else {
            answer.starts_with("-NOQUORUM ")
        }
    };
    for (address, answers) in [(LOOPBACK, true), ("10.1.1.1:5", false)] {
        let mut client = Client::of(&shared, address);
        for command in [
            "GET k",
            "AUTH x",
            "AUTH default x",
            "CONFIG GET port",
            "CLIENT LIST",
            "ACL LIST",
            "SUBSCRIBE c",
            "EVAL x 0",
        ] {
            let answer = client.ask(command);
            assert!(refused(command, &answer), "{command}: {answer}");
        }
        assert_eq!(client.ask("PING") == "+PONG\r\n", answers);
        assert_eq!(client.ask("INFO syros").starts_with('$'), answers);
    }
    let mut client = Client::of(&shared, LOOPBACK);
    client.ask("PING");
    client.learn(&[("default", ">secret")]);
    assert_eq!(client.ask("PING"), NOT_AUTHENTICATED, "what was answered before is no permission");
}

#[test]
fn protected_mode_refuses_other_machines_while_there_is_no_password() {
    let shared = Arc::<Shared>::default();
    shared.set_protected(true);
    for (address, is_served) in [
        (LOOPBACK, true),
        ("[::1]:5", true),
        ("[::ffff:127.0.0.1]:5", true),
        ("10.1.1.1:5", false),
        ("[2001:db8::1]:5", false),
    ] {
        let mut client = Client::of(&shared, address);
        let answer = client.ask("PING");
        assert_eq!(answer == "+PONG\r\n", is_served, "{address}: {answer}");
        assert_eq!(answer.starts_with("-DENIED "), !is_served, "{address}: {answer}");
        assert_eq!(client.connection.is_finished(), !is_served);
        assert!(client.ask("CONFIG GET protected-mode").contains("yes") == is_served);
    }
    let mut client = Client::of(&shared, "10.1.1.1:5");
    client.learn(&[("default", ">secret")]);
    assert_eq!(client.ask("PING"), NOT_AUTHENTICATED);
    assert_eq!(client.ask("AUTH secret"), "+OK\r\n");
    assert_eq!(client.ask("PING"), "+PONG\r\n");
}

#[test]
fn commands_wait_until_the_users_are_known() {
    let shared = Arc::<Shared>::default();
    shared.forget_users();
    shared.set_patient(true);
    let mut client = Client::of(&shared, LOOPBACK);
    assert_eq!(client.ask("PING"), "+PONG\r\n");
    for command in ["AUTH secret", "GET k", "READ stale GET k", "ACL LIST"] {
        let mut client = Client::of(&shared, LOOPBACK);
        let words: Vec<&str> = command.split(' ').collect();
        let bytes = [request(&words), request(&["PING"])].concat();
        assert_eq!(client.feed(&bytes, &CONTEXT), 0, "{command}");
        assert!(
            client.take().is_empty() && client.connection.is_paused(),
            "{command}, and what comes after it"
        );
        assert_eq!(client.feed(&bytes, &CONTEXT), 0, "it does not go on by itself");
        assert!(client.connection.end_waiting_for_users() && !client.connection.is_paused());
    }
    let bytes = [request(&["AUTH", "secret"]), request(&["PING"])].concat();
    assert_eq!(client.feed(&bytes, &CONTEXT), 0);
    client.learn(&[("default", ">secret")]);
    client.connection.end_waiting_for_users();
    assert_eq!(client.feed(&bytes, &CONTEXT), bytes.len());
    assert_eq!(client.take(), "+OK\r\n+PONG\r\n");
}

#[test]
fn commands_wait_while_users_are_outdated() {
    let mut client = Client::new(&[("u", "on >p +@all ~*")]);
    assert_eq!(client.ask("AUTH u p"), "+OK\r\n");
    client.shared.set_outdated(true);
    client.shared.set_patient(true);
    for line in ["GET k", "AUTH u p", "EXEC", "BLIND DEL k", "PUBLISH c m"] {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(client.feed(&request(&words), &CONTEXT), 0, "{line}");
        assert!(client.connection.end_waiting_for_users());
    }
    assert_eq!(client.ask("PING"), "+PONG\r\n");
    Client::of(&client.shared, LOOPBACK).submitted("READ stale GET k");
    client.shared.set_patient(false);
    let refused = "-NOQUORUM the command was not executed: this node cannot reach a majority of the replicas, and does not \
                   know whether the users have changed\r\n";
    assert_eq!(client.ask("AUTH u other"), refused, "it may be right by now");
    assert_eq!(client.ask("AUTH u p"), refused, "it may be wrong by now");
    assert_eq!(client.ask("PING"), "+PONG\r\n");
    assert_eq!(client.ask("MULTI"), "+OK\r\n");
    assert_eq!(client.ask("GET k"), refused);
    let answer = client.ask("EXEC");
    assert!(answer.starts_with("-EXECABORT Transaction discarded because of: NOQUORUM"), "{answer}");
    client.shared.set_outdated(false);
    client.submitted("SET k v");
}

#[test]
fn who_came_while_users_were_outdated_is_the_default_user_only_if_nothing_had_changed() {
    for has_changed in [false, true] {
        let shared = Arc::<Shared>::default();
        let mut client = Client::of(&shared, LOOPBACK);
        shared.set_outdated(true);
        assert_eq!(client.ask("PING"), "+PONG\r\n");
        if has_changed {
            client.learn(&[("default", ">secret")]);
        }
        shared.set_outdated(false);
        assert_eq!(client.connection.on_users(false), has_changed);
        assert_eq!(client.connection.is_finished(), has_changed);
        if !has_changed {
            assert_eq!(client.ask("PING"), "+PONG\r\n");
            // It has come while no password was needed.
            client.learn(&[("default", ">secret")]);
            assert_eq!(client.ask("PING"), "+PONG\r\n");
        }
    }
}

#[test]
fn protected_mode_lets_in_who_has_shown_a_certificate() {
    let shared = Arc::<Shared>::default();
    shared.set_protected(true);
    let mut client = Client::of(&shared, "192.168.1.7:50000");
    client.connection.note_certificate();
    assert_eq!(client.ask("PING"), "+PONG\r\n");
    assert_eq!(client.ask("RESET"), "+RESET\r\n");
    assert_eq!(client.ask("PING"), "+PONG\r\n", "it has shown it all the same");
}

#[test]
fn no_password_is_submitted() {
    let mut client = Client::new(&[]);
    for line in [
        "ACL SETUSER bob >secret <other ~>k",
        "blind ACL SETUSER bob >secret <other ~>k",
        "CONFIG SET requirepass secret",
        "config set REQUIREPASS secret",
    ] {
        let submission = client.submitted(line);
        let body = String::from_utf8_lossy(&submission.body).into_owned();
        assert!(!body.contains("secret") && !body.contains("other"), "{body}");
        let hash = "#2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        assert!(body.contains(hash), "{body}");
        // What comes behind it may be of the new user: it waits.
        assert!(client.connection.is_paused());
        assert_eq!(client.complete(&submission), "+OK\r\n");
        assert!(!client.connection.is_paused());
    }
    let submission = client.submitted("ACL SETUSER bob ~>k");
    assert!(String::from_utf8_lossy(&submission.body).contains("~>k"));
    client.complete(&submission);
    let answer = client.ask("CONFIG SET timeout 0 requirepass x");
    assert!(
        answer.starts_with("-ERR CONFIG SET failed (possibly related to argument 'requirepass')"),
        "{answer}"
    );
    assert!(client.ask("SLOWLOG GET").starts_with("*0"), "{answer}");
}

#[test]
fn a_long_pattern_is_not_submitted_and_gives_no_rights() {
    let too_long = format!("a*{}", "?".repeat(1_023));
    let wild = format!("~*{}c", "?".repeat(1_000));
    let mut client = Client::new(&[
        ("old", &format!("on nopass +@all ~{too_long}")),
        ("wild", &format!("on nopass +@all {wild}")),
    ]);
    let refused = "-ERR pattern of 1025 bytes exceeds the maximum of 1024\r\n";
    for rule in ["~", "&", "%W~", "(~"] {
        assert_eq!(client.ask(&format!("ACL SETUSER bob on {rule}{too_long}")), refused, "{rule}");
    }
    assert_eq!(client.ask("MULTI"), "+OK\r\n");
    client.ask(&format!("BLIND ACL SETUSER bob ~{too_long}"));
    client.ask("EXEC");
    assert!(client.connection.poll_submit().is_none(), "nothing of it reaches the log");
    // A user of an older build has one. What it matches soon it matches.
    let key = "a".repeat(1_100);
    client.ask("AUTH old x");
    client.submitted(&format!("GET {key}"));
    let mut client = Client::of(&client.shared, LOOPBACK);
    client.ask("AUTH wild x");
    let no_key = "-NOPERM No permissions to access a key\r\n";
    assert_eq!(client.ask(&format!("GET {}c", "a".repeat(60_000))), no_key);
    let no_script = "-NOPERM User wild has no permissions to run the 'eval' command\r\n";
    assert_eq!(client.ask("EVAL x 0"), no_script);
}

/// Found by a user: EVAL_RO was told nothing, and nothing was that came behind READ.
#[test]
fn scripts_may_touch_any_key_however_they_are_asked_for() {
    for line in [
        "EVAL x 0",
        "EVAL_RO x 0",
        "READ meta EVAL_RO x 0",
        "READ quorum EVALSHA_RO x 0",
        "READ stale FCALL_RO x 0",
    ] {
        let body = Client::new(&[]).submitted(line).body;
        assert_eq!(describe(&body).unwrap().footprint, Footprint::All, "{line}");
    }
}

#[test]
fn scripts_carry_the_user_unless_it_may_do_everything() {
    let mut client = Client::new(&[("bob", "on nopass +@all ~a")]);
    let callers = |client: &mut Client| -> Vec<Option<UserNumber>> {
        let lines = [
            "EVAL x 0",
            "EVALSHA x 0",
            "FCALL x 0",
            "EVAL_RO x 0",
            "EVALSHA_RO x 0",
            "FCALL_RO x 0",
            "READ meta EVAL_RO x 0",
        ];
        let caller = |line: &&str| {
            let submission = client.submitted(line);
            let operation = operations(&submission.body).next().unwrap().unwrap();
            let caller = operation.user().number();
            client.complete(&submission);
            caller
        };
        lines.iter().map(caller).collect()
    };
    assert_eq!(callers(&mut client), [None; 7]);
    assert_eq!(client.ask("AUTH bob x"), "+OK\r\n");
    assert_eq!(callers(&mut client), [Some(UserNumber(2)); 7]);
    client.learn(&[("bob", "~* &*")]);
    // The next command finds out.
    assert_eq!(callers(&mut client), [None; 7]);
}

#[test]
fn a_transaction_is_checked_again_if_the_users_have_changed() {
    let mut client = Client::new(&[("bob", "on nopass +@all ~a")]);
    client.ask("AUTH bob x");
    assert_eq!(client.ask("MULTI"), "+OK\r\n");
    assert_eq!(client.ask("GET b"), "-NOPERM No permissions to access a key\r\n");
    assert_eq!(client.ask("EXEC"), "-EXECABORT Transaction discarded because of previous errors.\r\n");
    let changed = "-EXECABORT Transaction discarded because of: NOPERM ACLs rules changed between the moment the transaction \
                   was accumulated and the EXEC call. This command is no longer allowed for the following reason: ";
    for (change, refusal) in [
        (("other", "on"), None),
        (("bob", "-get"), Some("User bob has no permissions to run the 'get' command")),
        (("bob", "+get"), None),
        (("bob", "resetkeys"), Some("No permissions to access a key")),
    ] {
        let before = client.shared.known_users().unwrap();
        client.ask("MULTI");
        let queued = client.ask("GET a");
        assert_eq!(queued == "+QUEUED\r\n", change != ("bob", "+get"), "{queued}");
        client.learn(&[change]);
        let answer = client.ask("EXEC");
        match refusal {
            Some(refusal) => assert_eq!(answer, format!("{changed}{refusal}\r\n")),
            None if queued == "+QUEUED\r\n" => {
                let submission = client.connection.poll_submit().expect("it is executed");
                client.complete(&submission);
            }
            None => assert!(answer.starts_with("-EXECABORT")),
        }
        drop(before);
    }
    // A user who could do everything, and cannot any more.
    let mut client = Client::new(&[]);
    client.ask("MULTI");
    assert_eq!(client.ask("GET a"), "+QUEUED\r\n");
    client.learn(&[("default", "-set")]);
    assert_eq!(client.ask("EXEC"), format!("{changed}the user could do everything when it was queued\r\n"));
}

#[test]
fn refusals_are_in_the_log_of_the_process() {
    let mut client = Client::new(&[("bob", "on >word +get ~a +multi +exec")]);
    client.ask("AUTH bob wrong");
    client.ask("AUTH bob word");
    client.ask("GET b");
    client.ask("GET b");
    client.ask("MULTI");
    client.ask("SET a 1");
    let mut administrator = Client::of(&client.shared, LOOPBACK);
    let log = administrator.ask("ACL LOG");
    assert!(log.starts_with("*3\r\n"), "{log}");
    let entries: Vec<&str> = log.split("*20\r\n").skip(1).collect();
    for (entry, parts) in entries.iter().zip([
        ["$5\r\ncount\r\n:1\r\n", "$7\r\ncommand\r\n", "$5\r\nmulti\r\n", "$3\r\nset\r\n"],
        ["$5\r\ncount\r\n:2\r\n", "$3\r\nkey\r\n", "$8\r\ntoplevel\r\n", "$1\r\nb\r\n"],
        ["$5\r\ncount\r\n:1\r\n", "$4\r\nauth\r\n", "$8\r\ntoplevel\r\n", "$4\r\nAUTH\r\n"],
    ]) {
        assert!(parts.iter().all(|part| entry.contains(part)) && entry.contains("$3\r\nbob\r\n"), "{entry}");
    }
    assert!(entries[0].contains(" cmd=set user=bob "), "{}", entries[0]);
    assert_eq!(administrator.ask("ACL LOG 1").matches("entry-id").count(), 1);
    assert_eq!(administrator.ask("CONFIG SET acllog-max-len 1"), "+OK\r\n");
    assert_eq!(
        administrator.ask("ACL LOG").matches("entry-id").count(),
        3,
        "entries go when another one comes"
    );
    administrator.ask("AUTH bob wrong");
    assert_eq!(
        administrator.ask("ACL LOG").matches("entry-id").count(),
        1,
        "{}",
        administrator.ask("ACL LOG")
    );
    let info = administrator.ask("INFO stats");
    for line in ["auth:2", "cmd:1", "key:2", "channel:0"] {
        assert!(info.contains(&format!("acl_access_denied_{line}\r\n")), "{line}: {info}");
    }
    assert_eq!(administrator.ask("ACL LOG RESET"), "+OK\r\n");
    assert_eq!(administrator.ask("ACL LOG"), "*0\r\n");
    assert_eq!(administrator.ask("ACL LOG x"), "-ERR value is not an integer or out of range\r\n");
}

#[test]
fn what_one_node_answers_about_users() {
    let mut client = Client::new(&[("bob", "on >word +get ~a")]);
    for (line, answer) in [
        ("ACL SAVE", "+OK\r\n"),
        ("ACL LOAD", "+OK\r\n"),
        ("ACL DRYRUN bob GET a", "+OK\r\n"),
        ("ACL DRYRUN bob GET b", "$49\r\nUser bob has no permissions to access the 'b' key\r\n"),
        ("ACL DRYRUN nobody GET b", "-ERR User 'nobody' not found\r\n"),
        ("ACL DRYRUN bob NOSUCH", "-ERR Command 'NOSUCH' not found\r\n"),
        ("ACL DRYRUN bob GET", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("ACL GENPASS", "-ERR this server has no source of chance for passwords\r\n"),
        (
            "ACL GENPASS 0",
            "-ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096\r\n",
        ),
        ("ACL NOSUCH", "-ERR unknown subcommand 'NOSUCH'. Try ACL HELP.\r\n"),
        ("ACL SETUSER", "-ERR wrong number of arguments for 'acl|setuser' command\r\n"),
        ("CLIENT KILL USER nobody", "-ERR No such user 'nobody'\r\n"),
        ("CONFIG GET requirepass", "*2\r\n$11\r\nrequirepass\r\n$0\r\n\r\n"),
        (
            "AUTH x",
            "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n",
        ),
    ] {
        assert_eq!(client.ask(line), answer, "{line}");
    }
    assert!(matches!(
        operations(&client.submitted("ACL GETUSER bob").body).next(),
        Some(Ok(operation)) if matches!(operation.command, Command::UserLook(_))
    ));
}
