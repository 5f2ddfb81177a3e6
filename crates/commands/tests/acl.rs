//! Users: the rules of ACL SETUSER, their texts, and what they allow. Expectations are Valkey 8's.

use syros_commands::acl::limits::{
    CHECK_STEPS, CHECKS_STEPS_MAX, USER_BYTES_MAX, USER_NAME_BYTES_MAX, USERS_MAX,
};
use syros_commands::acl::{
    CheckBudget, NamedUser, Password, User, UserChange, UserNumber, Users, hide_passwords,
};
use syros_commands::{CommandError, parse};

/// Users after one ACL SETUSER of the user `u` with these rules, separated by blanks.
fn users(rules: &str) -> Users {
    let mut users = Users::default();
    set(&mut users, "u", rules).unwrap_or_else(|error| panic!("{rules}: {error}"));
    users
}

fn set(users: &mut Users, name: &str, rules: &str) -> Result<(), String> {
    let rules: Vec<&[u8]> = rules.split(' ').filter(|rule| !rule.is_empty()).map(str::as_bytes).collect();
    let result = users.set(name.as_bytes(), &rules, UserChange::Always);
    result.map_err(|text| String::from_utf8(text).unwrap())
}

fn line(users: &Users, name: &str) -> String {
    users.find(name.as_bytes()).map(|user| String::from_utf8(user.line()).unwrap()).unwrap_or_default()
}

fn words(command: &str) -> Vec<&[u8]> {
    command.split(' ').map(str::as_bytes).collect()
}

/// What ACL DRYRUN answers.
fn dry_run(users: &Users, command: &str) -> String {
    let user: &NamedUser = users.find(b"u").expect("the user");
    let admitted = user.user().admit(&words(command), &mut CheckBudget::default());
    assert_eq!(admitted, user.user().check(&words(command)), "{command}");
    match admitted {
        Ok(()) => "OK".to_owned(),
        Err(denial) => String::from_utf8(denial.sentence(user.name(), true)).unwrap(),
    }
}

const FOO: &str = "#2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

#[test]
fn the_text_of_a_user_is_valkeys() {
    let users_of_a_new_cluster = Users::default();
    assert_eq!(
        line(&users_of_a_new_cluster, "default"),
        "user default on nopass sanitize-payload ~* &* +@all"
    );
    for (rules, expected) in [
        ("", "off sanitize-payload resetchannels -@all"),
        ("on >foo", &*format!("on sanitize-payload {FOO} resetchannels -@all")),
        (
            "on nopass ~a* %R~b %W~c %RW~d &x &y* +get -set",
            "on nopass sanitize-payload ~a* %R~b %W~c ~d resetchannels &x &y* -@all +get -set",
        ),
        ("%R~k %W~k", "off sanitize-payload ~k resetchannels -@all"),
        ("allkeys allchannels allcommands", "off sanitize-payload ~* &* +@all"),
        ("+@all -@dangerous +keys +@all -get", "off sanitize-payload resetchannels +@all -get"),
        ("+@read -get +GET", "off sanitize-payload resetchannels -@all +@read +get"),
        ("+client|id +client|kill -client", "off sanitize-payload resetchannels -@all -client"),
        (
            "+client -client|kill +client|id",
            "off sanitize-payload resetchannels -@all +client -client|kill +client|id",
        ),
        ("+select|0 +select|1 +select|0", "off sanitize-payload resetchannels -@all +select|1 +select|0"),
        ("+@string -@STRING", "off sanitize-payload resetchannels -@all -@string"),
        (
            "(+get ~a) ( +set ~b )",
            "off sanitize-payload resetchannels -@all (~a resetchannels -@all +get) (~b resetchannels -@all +set)",
        ),
        ("(+get) clearselectors (~*)", "off sanitize-payload resetchannels -@all (~* resetchannels -@all)"),
        ("on >foo ~* +@all (+get) reset", "off sanitize-payload resetchannels -@all"),
        ("skip-sanitize-payload ON", "on skip-sanitize-payload resetchannels -@all"),
        ("~* resetkeys ~a &* resetchannels &b", "off sanitize-payload ~a resetchannels &b -@all"),
        ("nopass >foo", &*format!("off sanitize-payload {FOO} resetchannels -@all")),
        (">foo nopass", "off nopass sanitize-payload resetchannels -@all"),
        (">foo <foo", "off sanitize-payload resetchannels -@all"),
    ] {
        let made = users(rules);
        assert_eq!(line(&made, "u"), format!("user u {expected}"), "{rules}");
        // What is written is read as the same.
        let text = made.find(b"u").unwrap().user().describe();
        assert_eq!(User::of_text(&text).as_ref(), Ok(made.find(b"u").unwrap().user()), "{rules}");
        assert_eq!(Users::decode(&made.encode()).as_ref(), Ok(&made), "{rules}");
    }
}

#[test]
fn wrong_rules_have_valkeys_texts_and_change_nothing() {
    let syntax = "Syntax error";
    let unknown = "Unknown command or category name in ACL";
    for (rules, wrong, problem) in [
        ("on bogus", "bogus", syntax),
        ("+nosuch", "+nosuch", unknown),
        ("+@nosuch", "+@nosuch", unknown),
        ("-client|nosuch", "-client|nosuch", unknown),
        ("+client|nosuch", "+client|nosuch", unknown),
        ("+client|id|x", "+client|id|x", "Allowing first-arg of a subcommand is not supported"),
        ("+select|", "+select|", syntax),
        ("%~x", "%~x", syntax),
        ("%RR~x", "%RR~x", syntax),
        ("%X~x", "%X~x", syntax),
        ("%Rx", "%Rx", syntax),
        (
            "#zz",
            "#zz",
            "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters",
        ),
        ("<nosuch", "<nosuch", "The password you are trying to remove from the user does not exist"),
        (
            "~* ~x",
            "~x",
            "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try \
             'resetkeys' to start with an empty list of patterns",
        ),
        (
            "&* &x",
            "&x",
            "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try \
             'resetchannels' to start with an empty list of channels",
        ),
        ("(+get bogus)", "(+get bogus)", syntax),
        ("(on)", "(on)", syntax),
        ("(+get", "", "Unmatched parenthesis in acl selector starting at '(+get'."),
    ] {
        let mut made = users("on ~a");
        let before = made.clone();
        let error = set(&mut made, "u", rules).expect_err(rules);
        let expected = if wrong.is_empty() {
            format!("ERR {problem}")
        } else {
            format!("ERR Error in ACL SETUSER modifier '{wrong}': {problem}")
        };
        // The user of this table has a pattern already.
        assert_eq!(error, expected, "{rules}");
        assert_eq!(made, before, "{rules}");
    }
    let blank = Users::default().set(b"a b", &[], UserChange::Always);
    assert_eq!(blank, Err(b"ERR Usernames can't contain spaces or null characters".to_vec()));
}

#[test]
fn commands_keys_and_channels_are_checked() {
    let no_command = |name: &str| format!("User u has no permissions to run the '{name}' command");
    let no_key = |key: &str| format!("User u has no permissions to access the '{key}' key");
    let no_channel = |name: &str| format!("User u has no permissions to access the '{name}' channel");
    let ok = || "OK".to_owned();
    for (rules, command, expected) in [
        ("+get ~a*", "get ab", ok()),
        ("+get ~a*", "GET b", no_key("b")),
        ("+get ~a*", "set a b", no_command("set")),
        ("+mget ~a ~b", "mget a b c", no_key("c")),
        ("+@all ~a", "rename a b", no_key("b")),
        ("+@all %R~a %W~b", "copy a b", ok()),
        ("+@all %R~a %W~b", "copy b a", no_key("b")),
        ("+@all %R~a", "get a", ok()),
        ("+@all %R~a", "getdel a", no_key("a")),
        ("+@all %W~a", "set a b", ok()),
        ("+@all %W~a", "set a b get", no_key("a")),
        ("+@all %W~a", "append a b", ok()),
        ("+@all %W~a", "incr a", no_key("a")),
        ("+@all %W~a", "del a", ok()),
        ("+@all ~a", "eval return 2 a b", no_key("b")),
        ("+@all ~a", "xread streams b 0", no_key("b")),
        ("+@all ~a", "xgroup create b g $", no_key("b")),
        ("+@all ~a", "memory usage b", no_key("b")),
        ("+@all ~a", "zunionstore a 2 a b", no_key("b")),
        ("+@all ~a", "georadius a 1 1 1 m store b", no_key("b")),
        ("+@all ~a", "blind set b 1", no_key("b")),
        ("+@all ~a", "ping", ok()),
        (
            "+@all ~a",
            "sort a by w*",
            "BY option of SORT denied due to insufficient ACL permissions.".to_owned(),
        ),
        ("+@all ~a", "sort a by nosort get #", ok()),
        (
            "+@all ~a",
            "sort a get w*",
            "GET option of SORT denied due to insufficient ACL permissions.".to_owned(),
        ),
        ("+@all ~* ", "sort a by w* get w*", ok()),
        (
            "+@all %W~* %R~a",
            "sort a get w*",
            "GET option of SORT denied due to insufficient ACL permissions.".to_owned(),
        ),
        ("+client|id", "client id", ok()),
        ("+client|id", "client list", no_command("client|list")),
        ("+client -client|list", "client list", no_command("client|list")),
        ("+client -client|list", "client id", ok()),
        ("+select|0", "select 0", ok()),
        ("+select|0", "select 1", no_command("select")),
        ("+@all -@admin", "acl list", no_command("acl|list")),
        ("+@all -@admin", "acl whoami", ok()),
        ("-@all", "auth a b", ok()),
        ("-@all", "hello", ok()),
        ("-@all", "ping", no_command("ping")),
        ("+publish &a*", "publish ab x", ok()),
        ("+publish &a*", "publish b x", no_channel("b")),
        ("+subscribe &a*", "subscribe ab ac b", no_channel("b")),
        ("+ssubscribe &a*", "ssubscribe b", no_channel("b")),
        ("+psubscribe &a*", "psubscribe a*", ok()),
        ("+psubscribe &a*", "psubscribe ab", no_channel("ab")),
        ("+psubscribe &*", "psubscribe x*", ok()),
        ("+unsubscribe", "unsubscribe x", ok()),
        ("(+get ~a) (+set ~b)", "get a", ok()),
        ("(+get ~a) (+set ~b)", "set b 1", ok()),
        ("(+get ~a) (+set ~b)", "get b", no_key("b")),
        ("(+get ~a) (+set ~b)", "del b", no_command("del")),
        ("+@all ~a (+@all ~b)", "mget a b", no_key("b")),
        ("+@all ~a (+@all ~a ~b)", "mget a b", ok()),
    ] {
        assert_eq!(dry_run(&users(rules), command), expected, "{rules}: {command}");
    }
}

/// Found by a hostile client: a pattern of 60 kB and a key like it took a node seconds.
#[test]
fn what_takes_too_long_to_compare_is_refused() {
    let worst = |tail: &str| format!("*{}{tail}", "[ab]".repeat(250));
    let key = "a".repeat(65_000);
    let get = format!("get {key}");
    let users_of = |pattern: &str| users(&format!("+@all ~{pattern} &{pattern}"));
    let admits = |users: &Users, command: &str, budget: &mut CheckBudget| {
        users.find(b"u").unwrap().user().admit(&words(command), budget).is_ok()
    };
    // Both are matched. Only the one is matched soon enough.
    let (hard, easy) = (users_of(&worst("*")), users_of(&format!("*{}*", "a".repeat(1_000))));
    assert!(admits(&hard, &get, &mut CheckBudget::default()), "it matches at once");
    assert!(admits(&easy, &get, &mut CheckBudget::default()));
    let never = users_of(&worst("c"));
    let mut budget = CheckBudget::default();
    assert!(!admits(&never, &get, &mut budget));
    assert!(!admits(&never, &format!("publish {key} m"), &mut budget));
    assert!(!never.find(b"u").unwrap().user().allows_channel(key.as_bytes(), false));
    // One that would be matched, behind one that uses up all the steps.
    let late = users(&format!("+@all ~{} ~a*", worst("c")));
    assert!(!admits(&late, &get, &mut CheckBudget::default()));
    assert!(
        late.find(b"u").unwrap().user().check(&words(&get)).is_ok(),
        "what scripts may call stays what it was"
    );
    // All commands of a transaction have one budget.
    let commands = (0..).take_while(|_| !admits(&never, &get, &mut budget) && budget.has_steps()).count();
    assert!((commands as u64) < CHECKS_STEPS_MAX / CHECK_STEPS, "{commands}");
    assert!(!admits(&easy, "get a", &mut budget));
}

#[test]
fn a_user_of_many_patterns_may_use_many_keys() {
    let patterns: Vec<String> = (0..200).map(|number| format!("~tenant:{number}:*")).collect();
    let users = users(&format!("+@all {}", patterns.join(" ")));
    let keys: Vec<String> = (0..60_000).map(|number| format!("tenant:199:{number}")).collect();
    let user = users.find(b"u").unwrap().user();
    assert!(user.admit(&words(&format!("mget {}", keys.join(" "))), &mut CheckBudget::default()).is_ok());
}

#[test]
fn who_has_patterns_that_take_long_runs_no_scripts() {
    let (mild, harsh) = ("*:[ab]?:*", "*".to_owned() + &"?".repeat(300));
    for command in ["eval x 0", "evalsha_ro x 0", "fcall f 0"] {
        let admit = |rules: &str| {
            let users = users(&format!("+@all {rules}"));
            users.find(b"u").unwrap().user().admit(&words(command), &mut CheckBudget::default()).is_ok()
        };
        assert!(admit("~*") && admit(&format!("~{mild} &{mild} ~k*")), "{command}");
        assert!(!admit(&format!("~{harsh}")) && !admit(&format!("~* &{harsh}")), "{command}");
        assert!(!admit(&format!("~* (~{harsh})")), "{command}");
    }
}

/// Rules that are in the log or in a snapshot stay what they are.
#[test]
fn only_clients_are_refused_long_patterns() {
    let (longest, too_long) = ("a".repeat(1_024), "a".repeat(1_025));
    let set_by_client = |rules: &str| parse(&words(&format!("acl setuser u {rules}"))).map(|_| ());
    for prefix in ["~", "%R~", "%RW~", "&", "on (+get ~", "(~a &"] {
        let end = if prefix.contains('(') { ")" } else { "" };
        assert_eq!(set_by_client(&format!("{prefix}{longest}{end}")), Ok(()), "{prefix}");
        let rules = format!("{prefix}{too_long}{end}");
        assert_eq!(set_by_client(&rules), Err(CommandError::PatternTooLong(1_025)), "{prefix}");
        let made = users(&rules);
        assert_eq!(Users::decode(&made.encode()).as_ref(), Ok(&made), "{prefix}");
    }
    assert_eq!(
        parse(&[b"acl", b"setuser", b"u", &[b"(+get ~", too_long.as_bytes(), b")"].concat()]).map(|_| ()),
        Err(CommandError::PatternTooLong(1_025))
    );
    assert_eq!(set_by_client(&format!(">{too_long} +get|{too_long}")), Ok(()));
}

#[test]
fn a_user_whose_text_would_be_read_as_another_is_refused() {
    let refused = "ERR Error in ACL SETUSER: a rule has a character that no text of a user can have";
    for rule in [&b"(~a))"[..], b"(+select|1 &b)) ~c)", b"+select|a b", b"+select|\xff"] {
        let mut made = users("on");
        let before = made.clone();
        assert_eq!(made.set(b"u", &[rule], UserChange::Always), Err(refused.into()), "{rule:?}");
        assert_eq!(made, before);
    }
}

/// Rules are kept as text: bytes that are none would be other ones when they are read back.
#[test]
fn a_rule_is_text() {
    let mut users = Users::default();
    assert!(users.set(b"u", &[b"+select|\xb2"], UserChange::Always).is_err());
    // Nor from a snapshot, which is this one but for the last byte.
    assert!(users.set(b"u", &[b"+select|x"], UserChange::Always).is_ok());
    let mut bytes = users.encode();
    assert!(Users::decode(&bytes).is_ok());
    *bytes.last_mut().unwrap() = 0xb2;
    assert!(Users::decode(&bytes).is_err());
    assert!(users.set(b"u", &["+select|\u{b2}".as_bytes()], UserChange::Always).is_ok());
    assert_eq!(Users::decode(&users.encode()).as_ref(), Ok(&users));
}

#[test]
fn a_user_who_may_do_everything_is_known_as_such() {
    let may = |rules: &str| users(rules).find(b"u").unwrap().user().may_do_everything();
    assert!(may("~* &* +@all") && may("(~* &* +@all)") && may("~* &* +@all -@admin +@admin"));
    for rules in ["~* +@all", "&* +@all", "~* &* +@all -get", "~* &* +@read +@write"] {
        assert!(!may(rules), "{rules}");
    }
}

#[test]
fn passwords_are_compared_by_their_hashes() {
    let of = |rules: &str| users(rules).find(b"u").unwrap().user().clone();
    let user = of("on >one >two");
    assert!(user.accepts(b"one") && user.accepts(b"two") && !user.accepts(b"three") && !user.accepts(b""));
    assert!(!of(">one").accepts(b"one"), "it is off");
    assert!(of("on nopass").accepts(b"whatever") && !of("on resetpass").accepts(b""));
    let hidden = hide_passwords(&[b"on", b">foo", b"<foo", b"~>x", b"+get"]);
    let removed = FOO.replace('#', "!");
    assert_eq!(hidden, [&b"on"[..], FOO.as_bytes(), removed.as_bytes(), b"~>x", b"+get"]);
    assert_eq!(format!("{:?}", Password::of(b"foo")), "Password(..)");
    assert!(!format!("{user:?}").contains("2c26"));
}

#[test]
fn users_are_told_apart_by_numbers() {
    let mut made = users("on");
    let number = |users: &Users| users.find(b"u").map(|user| user.number());
    assert_eq!(number(&made), Some(UserNumber(2)));
    assert_eq!(made.version(), 1);
    set(&mut made, "u", "+get").unwrap();
    assert_eq!((number(&made), made.version()), (Some(UserNumber(2)), 2));
    let deleted = made.delete([&b"u"[..], b"nobody"].into_iter());
    assert_eq!((deleted, number(&made), made.version()), (Ok(1), None, 3));
    assert_eq!((made.delete([&b"u"[..]].into_iter()), made.version()), (Ok(0), 3), "nothing has changed");
    set(&mut made, "u", "").unwrap();
    assert_eq!(number(&made), Some(UserNumber(3)), "it is another one");
    let refused = made.delete([&b"u"[..], b"default"].into_iter());
    assert_eq!(refused, Err(b"ERR The 'default' user cannot be removed".to_vec()));
    // What a new cluster begins with does not undo what has been changed.
    made.set(b"default", &[b"off"], UserChange::IfUntouched).unwrap();
    assert!(made.default_user().user().is_on());
    let mut new = Users::default();
    new.set(b"default", &[b"off"], UserChange::IfUntouched).unwrap();
    assert!(!new.default_user().user().is_on());
}

#[test]
fn users_have_limits() {
    let mut made = Users::default();
    let long = "n".repeat(USER_NAME_BYTES_MAX + 1);
    assert_eq!(
        set(&mut made, &long, ""),
        Err("ERR user name of 257 bytes exceeds the maximum of 256".to_owned())
    );
    let rules: Vec<String> = (0..4000).map(|number| format!("~key-number-{number:06}")).collect();
    let error = set(&mut made, "u", &rules.join(" ")).expect_err("it is long");
    assert!(
        error.starts_with("ERR a user of ") && error.ends_with(&format!("the maximum of {USER_BYTES_MAX}")),
        "{error}"
    );
    for number in 1..USERS_MAX {
        set(&mut made, &number.to_string(), "").unwrap();
    }
    assert_eq!(
        set(&mut made, "one more", ""),
        Err("ERR Usernames can't contain spaces or null characters".to_owned())
    );
    assert_eq!(set(&mut made, "more", ""), Err("ERR 1024 users are the maximum".to_owned()));
    assert_eq!(Users::decode(&made.encode()), Ok(made.clone()));
}

#[test]
fn a_number_comes_again_only_when_all_others_have_been_used() {
    let mut made = users("on");
    let mut last = UserNumber(2);
    for _ in 0..66_000 {
        set(&mut made, "x", "").unwrap();
        let number = made.find(b"x").unwrap().number();
        assert!(number.0 > 2 && number != last, "{number:?}");
        last = number;
        made.delete([&b"x"[..]].into_iter()).unwrap();
    }
    assert!(last.0 < 1000, "they have all been used");
}

#[test]
fn bytes_that_are_no_users_are_refused() {
    let good = users("on >foo ~a +get (+set)").encode();
    for end in 0..good.len() {
        assert!(Users::decode(&good[..end]).is_err(), "{end}");
    }
    assert!(Users::decode(&[good.clone(), vec![0]].concat()).is_err());
    assert!(Users::decode(&[0, 2, 0]).is_err(), "there is no default user");
    let wrong = good.iter().map(|byte| if *byte == b'+' { b'!' } else { *byte }).collect::<Vec<_>>();
    assert!(Users::decode(&wrong).is_err());
}
