//! `syros status`: one line per replica.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use syros_cli::check_address;
use syros_cli::tls::TlsOptions;
use syros_client::{Access, Credentials, Endpoint, StatusError, StatusReport, numbers};
use syros_protocol::message::RoleName;
use syros_runtime::REDIS_ADDRESS;
use syros_tls::BlockingStream;

use crate::redis_command::put_command;
use crate::wrong_port::{answers_redis_clients, instead_of_redis};

/// A node that does not answer within this time counts as down.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait before asking again for what takes milliseconds to come.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Longest INFO that is read: it is a few kilobytes.
const INFO_BYTES_MAX: u64 = 1 << 20;

/// The password of the default user: redis-cli reads the same variable.
pub(crate) const PASSWORD_VARIABLE: &str = "REDISCLI_AUTH";

/// Names the user whose password that is, if it is not the default one.
pub(crate) const USER_VARIABLE: &str = "SYROS_USER";

/// What a replica answered, or why it did not, with its address.
pub(crate) type Answer = (String, Result<StatusReport, String>);

/// Options of `syros status`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros status                                   the cluster of the node at 127.0.0.1:6379
  syros status --addr db1:6379,db2:6379 --json   whichever of them answers tells about all replicas
  syros status --replicas db1:7379,db2:7379      exactly these replicas, by their own ports
  syros status --tls ~/syros-admin               where the nodes speak TLS

Where the default user has a password, --addr needs it in the environment variable REDISCLI_AUTH; where that user is off, a
user who may run INFO in SYROS_USER, and that one's password.

Exit status 0: all replicas of the cluster take part, one of them leads with a majority, and all disks take writes; 1:
something of that is not so, and a line says what. A cluster that serves without one of its replicas has status 1, and the last
line says that it serves. So has one of which --replicas does not name all replicas.")]
pub(crate) struct Options {
    #[command(flatten)]
    whom: ReplicaOptions,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

/// Whom to ask, where that needs no secret.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReplicaOptions {
    /// Redis address of any node or gateway of the cluster; further ones are tried if it is down
    #[arg(long, value_name = "H:P,..", value_delimiter = ',', default_values_t = [REDIS_ADDRESS.to_string()], value_parser = parse_address)]
    addr: Vec<String>,
    /// Ask these replicas, by the addresses at which they listen for each other
    #[arg(long, value_name = "H:P,..", value_delimiter = ',', value_parser = parse_address, conflicts_with = "addr")]
    replicas: Vec<String>,
    #[command(flatten)]
    pub tls: TlsOptions,
}

impl ReplicaOptions {
    /// Where the replicas are, as was said or as a node or gateway says.
    pub(crate) fn find(&self, credentials: Option<&Credentials>) -> Result<Vec<String>, String> {
        if self.replicas.is_empty() {
            replicas_of(&self.addr, credentials)
        } else {
            Ok(self.replicas.clone())
        }
    }
}

pub(crate) fn parse_address(text: &str) -> Result<String, String> {
    check_address(text).map(|()| text.to_owned())
}

/// Prints the status of all replicas of a cluster.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let credentials = options.whom.tls.credentials()?;
    let access = Access { credentials: credentials.as_ref(), secret: None };
    let replicas = options.whom.find(access.credentials)?;
    let mut answers = Vec::new();
    for address in replicas {
        let report = query(&address, access);
        let line = if options.json { json_line(&address, &report) } else { text_line(&address, &report) };
        syros_cli::tell!("{line}");
        answers.push((address, report));
    }
    let problems = problems_of(&answers);
    for problem in &problems {
        syros_cli::say!("{problem}");
    }
    if problems.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(service) = service_of(&answers) {
        syros_cli::say!("{service}");
    }
    Ok(ExitCode::FAILURE)
}

/// What is wrong with the replicas that were asked and with their group, a line for each.
pub(crate) fn problems_of(answers: &[Answer]) -> Vec<String> {
    let wrong =
        |(address, report): &Answer| problem_of(report).map(|problem| format!("{address}: {problem}"));
    let mut problems: Vec<String> = answers.iter().filter_map(wrong).collect();
    problems.extend(not_asked(answers));
    let without_memory = reports_in(answers).filter(|report| report.role == RoleName::Recovering).count();
    if without_memory > 0 && newest(answers).is_some_and(|report| without_memory >= majority_of(report)) {
        problems.push(memory_gone(without_memory));
    }
    if !reports_in(answers).any(leads) {
        let problem = match reports_in(answers).count() {
            0 => "no replica answers: whether the cluster serves cannot be told from here",
            _ => "no replica leads with a majority: nothing can be read or written",
        };
        problems.push(problem.to_owned());
    }
    problems
}

fn reports_in(answers: &[Answer]) -> impl Iterator<Item = &StatusReport> {
    answers.iter().filter_map(|(_, report)| report.as_ref().ok())
}

/// What the replica says that knows the latest view, and with it the size that the group has now.
fn newest(answers: &[Answer]) -> Option<&StatusReport> {
    reports_in(answers).max_by_key(|report| report.view)
}

fn majority_of(report: &StatusReport) -> usize {
    usize::from(report.replicas) / 2 + 1
}

/// Which replicas of the group nobody has asked, if there are any: the list of addresses may be that of a smaller group, may
/// name one replica twice, or may name a part of the replicas on purpose.
fn not_asked(answers: &[Answer]) -> Option<String> {
    let size = newest(answers)?.replicas;
    let is_silent = |place: &u8| reports_in(answers).all(|report| report.replica != *place);
    let silent: Vec<String> = (0..size).filter(is_silent).map(|place| place.to_string()).collect();
    let failed = answers.iter().filter(|(_, report)| report.is_err()).count();
    // One that is down stands in a line of its own.
    (silent.len() > failed).then(|| {
        let names = silent.join(", ");
        format!(
            "the cluster has {size} replicas, and not all of them were asked: nothing is known of replica {names}. Name the \
             addresses of all replicas, or ask a node with --addr"
        )
    })
}

/// That the group serves although something is wrong, and what it bears, if it serves.
fn service_of(answers: &[Answer]) -> Option<String> {
    let leader = reports_in(answers).find(|report| leads(report) && !report.disk_failed)?;
    let well = reports_in(answers).filter(|report| problem(report).is_none()).count();
    let (size, more) = (leader.replicas, well.saturating_sub(majority_of(leader)));
    let bears = match more {
        0 => "it stops when another one fails".to_owned(),
        more => format!("it bears the loss of {more} more"),
    };
    Some(format!(
        "the cluster serves: replica {} leads, and {well} of {size} replicas are known to take part; {bears}",
        leader.replica
    ))
}

/// Asks a replica, at the address where it listens for others.
pub(crate) fn query(address: &str, access: Access<'_>) -> Result<StatusReport, String> {
    let endpoint = Endpoint::resolve(address).map_err(|error| error.to_string())?;
    let status = endpoint.ask(|address| syros_client::status(address, access, ANSWER_TIMEOUT));
    status.map_err(|error| match error {
        StatusError::Io(error) if error.kind() == ErrorKind::TimedOut => {
            let hint = if answers_redis_clients(&endpoint) {
                ". It is a port for Redis clients, and replicas are asked at those for nodes (listen.replicas): name it with --addr, \
                 if there is this option"
            } else {
                ""
            };
            format!("it has not answered within {} s{hint}", ANSWER_TIMEOUT.as_secs())
        }
        error => plain(&error.to_string()),
    })
}

/// What the replicas say that answer.
pub(crate) fn reports_of<'a>(replicas: &'a [String], access: Access<'_>) -> Vec<(&'a String, StatusReport)> {
    replicas.iter().filter_map(|replica| Some((replica, query(replica, access).ok()?))).collect()
}

/// The replica that leads, and what it says.
pub(crate) fn leader_of(reports: Vec<(&String, StatusReport)>) -> Option<(&String, StatusReport)> {
    let leads = |(_, report): &(&String, StatusReport)| report.role == RoleName::Leader;
    // One that has been deposed may not know it yet.
    reports.into_iter().filter(leads).max_by_key(|(_, report)| report.view)
}

/// Has the leader, at the address where it listens for others, do what only those may ask for who know the secret.
pub(crate) fn order<T>(
    leader: &str,
    order: impl FnMut(SocketAddr) -> Result<T, StatusError>,
) -> Result<(), String> {
    let endpoint = Endpoint::resolve(leader).map_err(|error| error.to_string())?;
    endpoint.ask(order).map(drop).map_err(|error| match error {
        StatusError::SecretNeeded => {
            format!("the leader at {leader}: {error}: give it with --secret-file FILE")
        }
        error => format!("the leader at {leader}: {error}"),
    })
}

/// Asks again and again, until there is an answer or `timeout` is over. (Replicas tell nobody of what they do by themselves.)
pub(crate) fn poll<T>(timeout: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        let answer = ask();
        if answer.is_some() || began.elapsed() >= timeout {
            return answer;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// What it means that so many replicas, a majority, have lost their memory.
fn memory_gone(replicas: usize) -> String {
    format!(
        "{replicas} replicas have lost their memory, and they are a majority: nobody can tell what the data was. With \
         durability \"replicated\" that is what comes of a majority that restarts at once: the data is gone. Stop all \
         nodes, and start a new cluster with empty data directories and --bootstrap"
    )
}

/// True if the replica leads, and hears the majority that it needs for it.
pub(crate) fn leads(report: &StatusReport) -> bool {
    report.role == RoleName::Leader && !report.no_quorum
}

/// What is wrong with a replica that was asked, if something is.
pub(crate) fn problem_of(asked: &Result<StatusReport, String>) -> Option<String> {
    match asked {
        Ok(report) => problem(report),
        Err(problem) => Some(format!("down: {problem}")),
    }
}

/// What is wrong with a replica that answers, if something is.
pub(crate) fn problem(report: &StatusReport) -> Option<String> {
    if report.disk_failed {
        return Some(
            "its disk is full, is gone or has failed: it takes no updates, or none but deletions. INFO of the node (disk, disk_is_short) and its log say what".to_owned(),
        );
    }
    let silent = report.silent_ms;
    match report.role {
        RoleName::Leader if report.no_quorum => {
            Some(format!("it leads, and has not heard a majority for {silent} ms"))
        }
        RoleName::Follower if report.no_quorum => {
            Some(format!("it has not heard its leader for {silent} ms"))
        }
        RoleName::Leader | RoleName::Follower => None,
        RoleName::ViewChange => Some(format!("it has been between views for {silent} ms")),
        RoleName::Recovering => Some("it has lost its memory and waits for a new view".to_owned()),
    }
}

/// What a replica is and, in a word, what is wrong with it.
pub(crate) fn state(report: &StatusReport) -> String {
    let mut text = report.role.to_string();
    if report.no_quorum && matches!(report.role, RoleName::Leader | RoleName::Follower) {
        text.push_str(", no quorum");
    }
    if report.disk_failed {
        text.push_str(", disk takes no updates");
    }
    text
}

fn text_line(address: &str, report: &Result<StatusReport, String>) -> String {
    let report = match report {
        Ok(report) => report,
        Err(problem) => return format!("{address}  down: {problem}"),
    };
    let mut line = format!(
        "{address}  replica {} of {}  {:11}  mode {}",
        report.replica,
        report.replicas,
        state(report),
        report.fast_quorum
    );
    for (name, value) in numbers(report) {
        let _ = write!(line, "  {name} {value}");
    }
    line
}

fn json_line(address: &str, report: &Result<StatusReport, String>) -> String {
    let mut line = format!("{{\"address\":{}", json_text(address));
    match report {
        Ok(report) => {
            let _ = write!(
                line,
                ",\"replica\":{},\"replicas\":{},\"role\":\"{}\",\"fast_quorum\":\"{}\",\"no_quorum\":{},\"disk_failed\":{}",
                report.replica,
                report.replicas,
                report.role,
                report.fast_quorum,
                report.no_quorum,
                report.disk_failed
            );
            for (name, value) in numbers(report) {
                let _ = write!(line, ",\"{name}\":{value}");
            }
        }
        Err(problem) => {
            let _ = write!(line, ",\"role\":\"down\",\"problem\":{}", json_text(problem));
        }
    }
    line.push('}');
    line
}

/// A text that moves no terminal's cursor: what comes from elsewhere may hold anything.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

/// A text as JSON.
pub(crate) fn json_text(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Where the replicas of a cluster listen, as the first node or gateway that answers says.
pub(crate) fn replicas_of(
    addresses: &[String],
    credentials: Option<&Credentials>,
) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    for address in addresses {
        match info_of(address, credentials).map(|text| (replicas_in(&text), is_loading(&text))) {
            Ok((replicas, _)) if !replicas.is_empty() => return Ok(replicas),
            Ok((_, true)) => problems.push(format!(
                "{address}: this node reads its data, or copies what its cluster holds before it comes in; its log says how far it is. \
                 Ask another node"
            )),
            Ok(_) => problems.push(format!(
                "{address}: no node of Syros answers there, but another server that speaks the Redis protocol"
            )),
            Err(problem) => problems.push(format!("{address}: {problem}")),
        }
    }
    Err(format!("no status: {}", problems.join("; ")))
}

/// The Syros section of a front end's INFO, as the user that [`USER_VARIABLE`] names or the default one, by the password of
/// [`PASSWORD_VARIABLE`] if there is one.
pub(crate) fn info_of(address: &str, credentials: Option<&Credentials>) -> Result<String, String> {
    let password = std::env::var(PASSWORD_VARIABLE).ok();
    let password = password.as_deref();
    match (credentials, password) {
        // A password is not for those who read along.
        (Some(_), Some(_)) => info(address, password, credentials),
        // The port may be the one without TLS, though nodes speak TLS to each other. What is asked is no secret.
        (Some(_), None) => match info(address, None, None) {
            Err(problem) if !problem.contains(PASSWORD_VARIABLE) => info(address, None, credentials),
            answered => answered,
        },
        (None, _) => info(address, password, None),
    }
}

/// True if INFO is of a node of Syros that serves nobody yet.
fn is_loading(info: &str) -> bool {
    info.lines().any(|line| line.trim_end() == "status:loading")
}

/// The addresses in the text of INFO: lines `replica_0_address:host:port`, in order.
pub(crate) fn replicas_in(info: &str) -> Vec<String> {
    let address = |line: &str| {
        let (place, address) = line.strip_prefix("replica_")?.split_once("_address:")?;
        place.parse::<u8>().ok().map(|_| plain(address))
    };
    info.lines().filter_map(address).collect()
}

/// The Syros section of INFO, over the Redis protocol.
fn info(address: &str, password: Option<&str>, credentials: Option<&Credentials>) -> Result<String, String> {
    let mut stream =
        BlockingStream::to_front_end(connect(address)?, credentials).map_err(|error| error.to_string())?;
    let user = std::env::var(USER_VARIABLE).ok();
    let mut request = Vec::new();
    if let Some(password) = password {
        let words = [Some("AUTH"), user.as_deref(), Some(password)];
        put_command(&mut request, &words.into_iter().flatten().collect::<Vec<_>>());
    }
    request.extend_from_slice(b"INFO syros\r\n");
    let sent = stream.write_all(&request);
    let timely = Timely { stream, until: Instant::now() + ANSWER_TIMEOUT };
    let mut reader = BufReader::new(timely.take(INFO_BYTES_MAX));
    let first = match reader.fill_buf() {
        Ok(first) => first,
        // A port that closes connections may do so before it has taken anything.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => &[],
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            return Err(format!("it has not answered within {} s", ANSWER_TIMEOUT.as_secs()));
        }
        Err(error) => return Err(error.to_string()),
    };
    if let Some(problem) = instead_of_redis(first) {
        return Err(problem.to_owned());
    }
    sent.map_err(|error| error.to_string())?;
    let mut head = String::new();
    let mut is_wrong = false;
    if password.is_some() {
        reader.read_line(&mut head).map_err(|error| error.to_string())?;
        // That a node needs no password is no reason to give up.
        is_wrong = head.starts_with("-WRONGPASS");
        head.clear();
    }
    reader.read_line(&mut head).map_err(|error| error.to_string())?;
    let is_unknown = head.starts_with("-NOAUTH");
    if is_wrong || (is_unknown && password.is_some()) {
        return Err(format!(
            "the password in the environment variable {PASSWORD_VARIABLE} is not that of the user '{}', or that user is off; \
             {USER_VARIABLE} names another one",
            plain(user.as_deref().unwrap_or("default"))
        ));
    }
    if is_unknown {
        return Err(format!(
            "it asks for a password: set the environment variable {PASSWORD_VARIABLE}, as for redis-cli"
        ));
    }
    let length = head.trim_end().strip_prefix('$').and_then(|length| length.parse::<usize>().ok());
    let length = length.filter(|length| *length as u64 <= INFO_BYTES_MAX);
    let length = length.ok_or_else(|| match head.trim_end().strip_prefix('-') {
        Some(error) => plain(error),
        None => format!("unexpected answer {:?}", head.trim_end()),
    })?;
    let mut text = vec![0; length];
    reader.read_exact(&mut text).map_err(|error| error.to_string())?;
    String::from_utf8(text).map_err(|_| "its answer is no text".to_owned())
}

/// Reads what comes until some moment, and not what drips on for ever.
struct Timely<S> {
    stream: S,
    until: Instant,
}

impl<S: Read> Read for Timely<S> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if Instant::now() >= self.until {
            let text = format!("it has not answered within {} s", ANSWER_TIMEOUT.as_secs());
            return Err(std::io::Error::new(ErrorKind::TimedOut, text));
        }
        self.stream.read(bytes)
    }
}

/// Checks that a Redis front end on this host answers.
pub(crate) fn ping(port: u16) -> Result<(), String> {
    let mut stream = connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).to_string())?;
    let mut answer = [0; 7];
    stream
        .write_all(b"PING\r\n")
        .and_then(|()| stream.read_exact(&mut answer))
        .map_err(|error| format!("no answer to PING on port {port}: {error}"))?;
    // One that asks for a password first knows its users, and serves those who have one.
    let is_up = &answer == b"+PONG\r\n" || &answer == b"-NOAUTH";
    if is_up { Ok(()) } else { Err(format!("a strange answer to PING on port {port}")) }
}

fn connect(address: &str) -> Result<TcpStream, String> {
    let mut last = "it has no address".to_owned();
    for candidate in address.to_socket_addrs().map_err(|error| error.to_string())? {
        let stream = TcpStream::connect_timeout(&candidate, ANSWER_TIMEOUT).and_then(|stream| {
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
            Ok(stream)
        });
        match stream {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_info() {
        let info = "# Syros\r\nreplica_role:leader\r\nreplica:0\r\nreplica_0_address:db1:7379\r\nreplica_1_address:[::1]:5\r\n";
        assert_eq!(replicas_in(info), ["db1:7379", "[::1]:5"]);
        assert_eq!(replicas_in("replica_0_address:\u{1b}[2Jdb1:7379\r\n"), ["?[2Jdb1:7379"]);
        assert!(replicas_in("# Server\r\nredis_version:7.0.0\r\n").is_empty());
    }

    #[test]
    fn who_drips_is_not_waited_for() {
        struct Drip;
        impl Read for Drip {
            fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
                bytes[0] = b'x';
                Ok(1)
            }
        }
        let mut timely = Timely { stream: Drip, until: Instant::now() + Duration::from_millis(20) };
        let error = std::io::copy(&mut timely, &mut std::io::sink()).expect_err("it never ends");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    fn answer(replica: u8, replicas: u8, role: RoleName) -> Answer {
        (format!("db{replica}:1"), Ok(StatusReport { replica, replicas, role, ..StatusReport::default() }))
    }

    fn down(replica: u8) -> Answer {
        (format!("db{replica}:1"), Err("it is away".to_owned()))
    }

    #[test]
    fn a_replica_that_nobody_asked_is_a_problem() {
        let well = [
            answer(0, 3, RoleName::Leader),
            answer(1, 3, RoleName::Follower),
            answer(2, 3, RoleName::Follower),
        ];
        assert_eq!(problems_of(&well), Vec::<String>::new());
        let problems = problems_of(&well[..2]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("nothing is known of replica 2."), "{problems:?}");
        // Two addresses of one replica are one replica.
        let twice = [well[0].clone(), well[1].clone(), well[1].clone()];
        assert!(problems_of(&twice)[0].contains("nothing is known of replica 2."));
        // One that is down is told of once.
        let lacking = [well[0].clone(), well[1].clone(), down(2)];
        assert_eq!(problems_of(&lacking), ["db2:1: down: it is away"]);
        // The list is that of the group before it grew.
        let mut grown = well.clone();
        for (_, report) in &mut grown {
            let report = report.as_mut().unwrap();
            (report.replicas, report.view) = (5, 9);
        }
        assert!(problems_of(&grown)[0].contains("nothing is known of replica 3, 4."));
    }

    #[test]
    fn a_group_that_serves_without_a_member_says_so_and_what_it_bears() {
        let three = [answer(0, 3, RoleName::Leader), answer(1, 3, RoleName::Follower), down(2)];
        let service = service_of(&three).unwrap();
        assert_eq!(
            service,
            "the cluster serves: replica 0 leads, and 2 of 3 replicas are known to take part; it stops when another one fails"
        );
        let five = [
            answer(0, 5, RoleName::Leader),
            answer(1, 5, RoleName::Follower),
            answer(2, 5, RoleName::Follower),
            answer(3, 5, RoleName::Follower),
            down(4),
        ];
        assert!(service_of(&five).unwrap().ends_with("it bears the loss of 1 more"));
        assert_eq!(service_of(&three[1..]), None);
        assert!(problems_of(&three[1..]).last().unwrap().contains("no replica leads with a majority"));
    }

    #[test]
    fn lines_of_both_kinds() {
        let report = StatusReport { replica: 1, replicas: 3, view: 7, ..StatusReport::default() };
        let text = text_line("a:1", &Ok(report.clone()));
        assert!(text.starts_with("a:1  replica 1 of 3  view-change  mode mixed  view 7  "), "{text}");
        let json = json_line("a:1", &Ok(report));
        assert!(json.starts_with("{\"address\":\"a:1\",\"replica\":1,\"replicas\":3,"), "{json}");
        let json = json_line("a:1", &Err("he said \"no\"".to_owned()));
        assert_eq!(json, "{\"address\":\"a:1\",\"role\":\"down\",\"problem\":\"he said \\\"no\\\"\"}");
    }
}
