//! What connections ask the front end about other connections, and what takes time: CLIENT LIST, KILL, PAUSE and UNPAUSE,
//! MONITOR, WAIT, DEBUG SLEEP, and clients that are idle for too long.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use syros_resp::{ClientFilter, PauseMode, ProcessAnswer, ProcessRequest, WaitRequest};
use syros_types::{Instant, Now};

use super::RedisFrontEnd;

/// Connections that are looked at in one go: a tenth of a millisecond's work or two.
const PIECE: usize = 256;

/// How often connections are looked at whose clients may have been idle for too long, and how many of them: ten thousand
/// within a second.
const IDLE_INTERVAL: Duration = Duration::from_millis(100);
const IDLE_PIECE: usize = 1024;

/// A request that is answered at a time.
#[derive(Debug)]
struct Timed {
    answer: ProcessAnswer,
    /// The time counts as that of the command.
    since: Option<Instant>,
}

/// A request for which all connections are looked at.
#[derive(Debug)]
struct Scan {
    /// The connection that asks.
    address: u64,
    filter: ClientFilter,
    /// The next place to be looked at.
    place: usize,
    kind: ScanKind,
}

#[derive(Debug)]
enum ScanKind {
    /// CLIENT LIST: the numbers of the clients, and their lines.
    List(Vec<(u64, Vec<u8>)>),
    /// CLIENT KILL.
    Kill {
        killed: u64,
        /// The client that asks is one of those that are to go.
        includes_asker: bool,
        is_single: bool,
    },
}

/// The requests that have not been answered, and what has come of earlier ones. There are no more than connections.
#[derive(Debug, Default)]
pub(super) struct Requests {
    scans: VecDeque<Scan>,
    timed: BTreeMap<(Instant, u64), Timed>,
    /// Until when these commands of all clients wait.
    pause: Option<(Instant, PauseMode)>,
    /// Connections with a command that waits for that.
    postponed: BTreeSet<u64>,
    /// Connections that see the commands of all clients.
    monitors: Vec<u64>,
    /// When idle connections are looked for, and where.
    idle_check: Instant,
    idle_place: usize,
}

impl Requests {
    fn deadline(&self) -> Instant {
        if !self.scans.is_empty() {
            return Instant(0);
        }
        let timed = self.timed.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
        self.pause.map_or(timed, |(until, _)| timed.min(until))
    }
}

impl RedisFrontEnd {
    /// When [`serve_due_requests`](Self::serve_due_requests) has something to do, at the latest.
    pub(super) fn request_deadline(&self) -> Instant {
        let idle = self.shared.idle_timeout().map_or(Instant::NEVER, |_| self.requests.idle_check);
        self.requests.deadline().min(idle)
    }

    /// Does what is due.
    pub(super) fn serve_due_requests(&mut self, now: Now) {
        while let Some(first) = self.requests.timed.first_entry().filter(|first| first.key().0 <= now.instant)
        {
            let ((_, address), Timed { answer, since }) = first.remove_entry();
            let took = since.map_or(Duration::ZERO, |since| now.instant.since(since));
            self.answer_request(now, address, &answer, took);
        }
        if self.requests.pause.is_some_and(|(until, _)| until <= now.instant) {
            self.end_pause();
        }
        self.scan(now);
        self.close_idle(now);
    }

    /// A connection is gone: whatever it has asked for is not answered.
    pub(super) fn forget_requests(&mut self, address: u64) {
        let Self { requests, shared, connections, .. } = self;
        requests.scans.retain(|scan| scan.address != address);
        requests.postponed.remove(&address);
        if let Some(at) = connections.get(address).and_then(|connection| connection.answered_at) {
            requests.timed.remove(&(at, address));
        }
        if let Some(place) = requests.monitors.iter().position(|monitor| *monitor == address) {
            requests.monitors.swap_remove(place);
            shared.set_monitors(requests.monitors.len());
        }
    }

    /// Does what a connection asks for, if it does, or begins to.
    pub(super) fn serve_request(&mut self, now: Now, address: u64) {
        self.deal_out_monitored(address);
        let Some(connection) = self.connections.get_mut(address) else { return };
        let Some(request) = connection.redis.take_request() else { return };
        match request {
            ProcessRequest::ListClients(filter) => {
                self.begin_scan(now, address, filter, ScanKind::List(Vec::new()));
            }
            ProcessRequest::KillClients { filter, is_single } => {
                let kind = ScanKind::Kill { killed: 0, includes_asker: false, is_single };
                self.begin_scan(now, address, filter, kind);
            }
            ProcessRequest::Pause(time, mode) => {
                let until = now.instant.after(time);
                // As in Redis, a second pause neither shortens the first nor lets through what waits.
                self.requests.pause = Some(match self.requests.pause {
                    Some((earlier, PauseMode::All)) => (until.max(earlier), PauseMode::All),
                    Some((earlier, PauseMode::Write)) => (until.max(earlier), mode),
                    None => (until, mode),
                });
                self.shared.set_pause(self.requests.pause.map(|(_, mode)| mode));
                self.answer_request(now, address, &ProcessAnswer::Ok, Duration::ZERO);
            }
            ProcessRequest::Unpause => {
                self.end_pause();
                self.answer_request(now, address, &ProcessAnswer::Ok, Duration::ZERO);
            }
            ProcessRequest::Monitor => {
                if !self.requests.monitors.contains(&address) {
                    self.requests.monitors.push(address);
                    self.shared.set_monitors(self.requests.monitors.len());
                }
                self.answer_request(now, address, &ProcessAnswer::Ok, Duration::ZERO);
            }
            ProcessRequest::Sleep(time) => {
                let timed = Timed { answer: ProcessAnswer::Ok, since: Some(now.instant) };
                self.answer_at(now.instant.after(time), address, timed);
            }
            ProcessRequest::Wait(wait) => self.wait(now, address, wait),
            ProcessRequest::Track(request) => {
                let answer = self.track(address, request);
                self.answer_request(now, address, &answer, Duration::ZERO);
            }
        }
    }

    /// WAIT and WAITAOF. Whoever has got the reply to an update knows that a majority has it, the leader among them: that
    /// many followers, and no more is known of others.
    fn wait(&mut self, now: Now, address: u64, wait: WaitRequest) {
        let WaitRequest { followers, timeout, is_all_known, on_disk, is_local_wanted } = wait;
        let known = if is_all_known && on_disk != Some(false) { self.followers } else { 0 };
        let is_local = is_all_known && on_disk == Some(true);
        let answer = match on_disk {
            None => ProcessAnswer::Integer(known),
            Some(_) => ProcessAnswer::Pair(u64::from(is_local), known),
        };
        if known >= followers && (is_local || !is_local_wanted) {
            return self.answer_request(now, address, &answer, Duration::ZERO);
        }
        if self.connections.get(address).is_some_and(|connection| connection.has_input_ended) {
            self.answer_request(now, address, &answer, Duration::ZERO);
        } else {
            let at = timeout.map_or(Instant::NEVER, |timeout| now.instant.after(timeout));
            self.answer_at(at, address, Timed { answer, since: None });
        }
    }

    /// WAIT and WAITAOF of a client that has gone end.
    pub(super) fn end_request(&mut self, now: Now, address: u64) {
        let Self { requests, connections, .. } = self;
        let Some(at) = connections.get(address).and_then(|connection| connection.answered_at) else { return };
        let is_wait = requests.timed.get(&(at, address)).is_some_and(|timed| timed.since.is_none());
        if is_wait && let Some(Timed { answer, .. }) = requests.timed.remove(&(at, address)) {
            self.answer_request(now, address, &answer, Duration::ZERO);
        }
    }

    fn answer_at(&mut self, at: Instant, address: u64, timed: Timed) {
        if let Some(connection) = self.connections.get_mut(address) {
            connection.answered_at = Some(at);
            self.requests.timed.insert((at, address), timed);
        }
    }

    fn answer_request(&mut self, now: Now, address: u64, answer: &ProcessAnswer, took: Duration) {
        if let Some(connection) = self.connections.get_mut(address) {
            connection.answered_at = None;
            connection.redis.answer_request(answer, took, now.wall);
            self.mark_answered(address);
        }
    }

    /// Clients are not paused any more.
    fn end_pause(&mut self) {
        self.requests.pause = None;
        self.shared.set_pause(None);
        for address in std::mem::take(&mut self.requests.postponed) {
            if let Some(connection) = self.connections.get_mut(address) {
                connection.redis.resume();
                self.mark_answered(address);
            }
        }
    }

    /// Takes note of a connection whose command waits because clients are paused.
    pub(super) fn note_postponed(&mut self, address: u64) {
        if self.connections.get(address).is_some_and(|connection| connection.redis.is_postponed()) {
            self.requests.postponed.insert(address);
        }
    }

    /// How many clients have commands that wait because clients are paused.
    pub(super) fn postponed(&self) -> usize {
        self.requests.postponed.len()
    }

    // ---- Looking at all connections.

    fn begin_scan(&mut self, now: Now, address: u64, filter: ClientFilter, kind: ScanKind) {
        self.requests.scans.push_back(Scan { address, filter, place: 0, kind });
        if self.requests.scans.len() == 1 {
            self.scan(now);
        }
    }

    /// Looks at the next connections for the first request.
    fn scan(&mut self, now: Now) {
        let Some(mut scan) = self.requests.scans.pop_front() else { return };
        let end = self.connections.places().min(scan.place + PIECE);
        for place in scan.place..end {
            let Some((address, connection)) = self.connections.at_mut(place) else { continue };
            let redis = &mut connection.redis;
            if !redis.is_meant(&scan.filter, now.wall) {
                continue;
            }
            match &mut scan.kind {
                ScanKind::List(lines) => {
                    let mut line = Vec::new();
                    redis.describe(now.wall, &mut line);
                    lines.push((redis.id(), line));
                }
                ScanKind::Kill { killed, includes_asker, .. } => {
                    *killed += 1;
                    if address == scan.address {
                        *includes_asker = true;
                    } else {
                        redis.cut_off();
                        self.mark_answered(address);
                    }
                }
            }
        }
        scan.place = end;
        if end < self.connections.places() {
            self.requests.scans.push_front(scan);
        } else {
            self.end_scan(now, scan);
        }
    }

    fn end_scan(&mut self, now: Now, scan: Scan) {
        let address = scan.address;
        match scan.kind {
            ScanKind::List(mut lines) => {
                lines.sort_unstable_by_key(|(id, _)| *id);
                let length = lines.iter().map(|(_, line)| line.len()).sum();
                let mut text = Vec::with_capacity(length);
                lines.iter().for_each(|(_, line)| text.extend_from_slice(line));
                self.answer_request(now, address, &ProcessAnswer::Text(text), Duration::ZERO);
            }
            ScanKind::Kill { killed, includes_asker, is_single } => {
                let answer = match (is_single, killed) {
                    (false, _) => ProcessAnswer::Integer(killed),
                    (true, 0) => ProcessAnswer::Error("ERR No such client"),
                    (true, _) => ProcessAnswer::Ok,
                };
                self.answer_request(now, address, &answer, Duration::ZERO);
                if includes_asker && let Some(connection) = self.connections.get_mut(address) {
                    connection.redis.close_after_replies();
                }
            }
        }
    }

    /// Ends connections whose clients have sent nothing for too long.
    fn close_idle(&mut self, now: Now) {
        let Some(timeout) = self.shared.idle_timeout() else { return };
        if now.instant < self.requests.idle_check {
            return;
        }
        self.requests.idle_check = now.instant.after(IDLE_INTERVAL);
        let begin = self.requests.idle_place;
        let end = self.connections.places().min(begin + IDLE_PIECE);
        for place in begin..end {
            if let Some((address, connection)) = self.connections.at_mut(place)
                && connection.redis.may_be_idle()
                && connection.redis.idle(now.wall) > timeout
            {
                connection.redis.cut_off();
                self.mark_answered(address);
            }
        }
        self.requests.idle_place = if end < self.connections.places() { end } else { 0 };
    }

    // ---- MONITOR.

    /// Shows commands that have come to those who monitor; a connection that does so no more is none of them.
    fn deal_out_monitored(&mut self, received: u64) {
        if self.requests.monitors.is_empty() {
            return;
        }
        let commands = self.shared.take_monitored();
        let is_over =
            |address: &u64| !self.connections.get(*address).is_some_and(|other| other.redis.is_monitor());
        if self.requests.monitors.contains(&received) && is_over(&received) {
            self.requests.monitors.retain(|address| *address != received);
            self.shared.set_monitors(self.requests.monitors.len());
        }
        if commands.is_empty() {
            return;
        }
        for address in self.requests.monitors.clone() {
            if let Some(connection) = self.connections.get_mut(address) {
                connection.redis.show(&commands);
                self.mark_answered(address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use syros_protocol::client::Config;
    use syros_resp::{Context, DebugAccess, Identity, ServerInfo, ServerReport};
    use syros_types::{Configuration, FastQuorum, Group, Instant, Now, WallTime};

    use crate::front_end::{FrontEndSettings, RedisFrontEnd};

    /// A server that keeps what it acknowledges on disk.
    struct OnDisk;

    impl ServerInfo for OnDisk {
        fn report(&self) -> ServerReport {
            ServerReport { fsync: true, ..ServerReport::default() }
        }
        fn reset_statistics(&self) {}
    }

    struct Clients {
        front_end: RedisFrontEnd,
        millis: u64,
        /// What each connection has received and not taken.
        unread: Vec<Vec<u8>>,
        /// It is read again when it is no longer paused, and not before its client sends more.
        is_stalled: Vec<bool>,
    }

    impl Clients {
        fn new(count: u64) -> Self {
            let configuration = Configuration::first(Group::new(5).unwrap(), FastQuorum::Majority);
            let settings = FrontEndSettings {
                client_memory: 1 << 30,
                quorum_timeout: Duration::from_secs(3600),
                drain_timeout: Duration::ZERO,
                users_valid: crate::front_end::USERS_VALID,
                debug: DebugAccess::Everybody,
                is_gateway: false,
            };
            let start = Now { instant: Instant(0), wall: WallTime(1_000_000_000_000) };
            let front_end = RedisFrontEnd::new(Config::new(configuration, 1), settings, start);
            let (unread, is_stalled) = (vec![Vec::new(); count as usize], vec![false; count as usize]);
            let mut clients = Self { front_end, millis: 0, unread, is_stalled };
            for place in 0..count {
                let address = format!("10.0.0.{}:{}", place / 100, 1000 + place);
                let identity = Identity { id: place + 1, address, local_address: "10.0.0.1:6379".to_owned() };
                let redis = clients.front_end.new_connection(identity, clients.now());
                clients.front_end.open(place, redis);
            }
            clients
        }

        fn now(&self) -> Now {
            let wall = WallTime(1_000_000_000_000 + self.millis * 1000);
            Now { instant: Instant(0).after(Duration::from_millis(self.millis)), wall }
        }

        /// A client sends a line.
        fn send(&mut self, client: u64, line: &str) {
            self.unread[client as usize].extend_from_slice(format!("{line}\r\n").as_bytes());
            self.feed(client);
            self.go_on();
        }

        fn feed(&mut self, client: u64) {
            let now = self.now();
            loop {
                let input = std::mem::take(&mut self.unread[client as usize]);
                let Some((redis, _)) = self.front_end.connection_mut(now, client) else { return };
                let context = Context { now: now.wall, info: &OnDisk, unavailable: None };
                let consumed = redis.receive(&input, &context);
                self.unread[client as usize] = input[consumed..].to_vec();
                if !self.front_end.on_received(now, client) || self.unread[client as usize].is_empty() {
                    break;
                }
            }
            self.is_stalled[client as usize] = self.is_paused(client);
        }

        fn is_paused(&self, client: u64) -> bool {
            self.front_end.connection(client).is_some_and(syros_resp::Connection::is_paused)
        }

        fn go_on(&mut self) {
            while let Some(client) = self.front_end.go_on(self.now()) {
                if self.is_stalled[client as usize] && !self.is_paused(client) {
                    self.feed(client);
                }
            }
        }

        /// Time passes; what is due is done.
        fn pass(&mut self, millis: u64) {
            self.millis += millis;
            self.front_end.tick(self.now());
            self.go_on();
        }

        /// What a client has got since the last time.
        fn got(&mut self, client: u64) -> String {
            let output = String::from_utf8(self.front_end.output(client).to_vec()).unwrap();
            self.front_end.sent(client, output.len());
            output
        }

        fn is_finished(&self, client: u64) -> bool {
            self.front_end.connection(client).unwrap().is_finished()
        }
    }

    #[test]
    fn clients_are_listed_by_what_they_are() {
        let mut clients = Clients::new(3);
        clients.send(2, "CLIENT SETNAME me");
        assert_eq!(clients.got(2), "+OK\r\n");
        clients.millis += 5000;
        clients.send(0, "CLIENT LIST");
        let text = clients.got(0);
        let lines: Vec<&str> = text.lines().skip(1).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].starts_with("id=1 addr=10.0.0.0:1000 laddr=10.0.0.1:6379 "), "{text}");
        assert!(
            lines[0].contains(" age=5 idle=0 flags=N ") && lines[0].contains(" cmd=client|list "),
            "{text}"
        );
        assert!(
            lines[2].contains(" name=me age=5 idle=5 ") && lines[2].contains(" cmd=client|setname "),
            "{text}"
        );
        assert!(lines[1].contains(" cmd=NULL "), "{text}");
        for (line, listed) in [("ID 3 1 77", 2), ("TYPE normal", 3), ("TYPE pubsub", 0), ("TYPE master", 0)] {
            clients.send(0, &format!("CLIENT LIST {line}"));
            assert_eq!(clients.got(0).matches("id=").count(), listed, "{line}");
        }
        clients.front_end.close(1);
        clients.send(0, "CLIENT LIST");
        assert_eq!(clients.got(0).matches("id=").count(), 2);
    }

    #[test]
    fn many_clients_are_listed_in_pieces() {
        let mut clients = Clients::new(5 * super::PIECE as u64 + 1);
        clients.send(7, "CLIENT LIST\r\nPING");
        clients.send(8, "CLIENT LIST ID 3");
        for _ in 0..4 {
            assert_eq!(clients.front_end.deadline(), Instant(0), "there is more to do at once");
            clients.pass(0);
        }
        assert_eq!(clients.got(7), "");
        clients.pass(0);
        let text = clients.got(7);
        assert_eq!(text.matches("id=").count(), 5 * super::PIECE + 1);
        assert!(text.ends_with("\r\n+PONG\r\n"));
        (0..6).for_each(|_| clients.pass(0));
        assert_eq!(clients.got(8).matches("id=").count(), 1);
        // One that goes meanwhile is forgotten.
        clients.send(7, "CLIENT LIST");
        clients.front_end.close(7);
        clients.pass(0);
        assert_ne!(clients.front_end.deadline(), Instant(0));
    }

    #[test]
    fn clients_are_killed() {
        let mut clients = Clients::new(6);
        clients.send(0, "CLIENT KILL 10.0.0.0:1001");
        clients.send(0, "CLIENT KILL 10.0.0.0:1");
        assert_eq!(clients.got(0), "+OK\r\n-ERR No such client\r\n");
        assert!(clients.is_finished(1) && !clients.is_finished(2));
        clients.send(0, "CLIENT KILL ID 3 LADDR 10.0.0.1:1");
        clients.send(0, "CLIENT KILL ID 3");
        clients.send(0, "CLIENT KILL MAXAGE 2");
        assert_eq!(clients.got(0), ":0\r\n:1\r\n:0\r\n");
        assert!(clients.is_finished(2) && !clients.is_finished(3));
        [1, 2].iter().for_each(|client| clients.front_end.close(*client));
        clients.send(3, "CLIENT SETNAME lost");
        clients.millis += 3000;
        clients.send(0, "CLIENT KILL MAXAGE 2 SKIPME no\r\nPING");
        assert_eq!(clients.got(0), ":4\r\n", "it takes no further commands");
        assert!(clients.is_finished(0) && clients.is_finished(3));
        assert_eq!(clients.got(3), "", "it gets nothing more");
    }

    #[test]
    fn scripts_wait_like_what_they_may_do() {
        for (line, waits) in [
            ("EVAL return 0", true),
            ("EVALSHA 0123456789012345678901234567890123456789 0", true),
            ("FCALL f 0", true),
            ("EVAL_RO return 0", false),
            // Refused.
            ("EVAL return", false),
            ("SET k", false),
            ("NOSUCH", false),
        ] {
            let mut clients = Clients::new(2);
            clients.send(0, "CLIENT PAUSE 1000 WRITE");
            clients.send(1, line);
            assert_eq!(clients.front_end.postponed(), usize::from(waits), "{line}");
            let mut clients = Clients::new(2);
            clients.send(0, "CLIENT PAUSE 1000 WRITE");
            clients.send(1, &format!("MULTI\r\n{line}\r\nEXEC"));
            assert_eq!(clients.front_end.postponed(), usize::from(waits), "{line} in a transaction");
        }
        let mut clients = Clients::new(2);
        clients.send(0, "CLIENT PAUSE 1000 ALL");
        for line in ["SET k", "NOSUCH"] {
            clients.send(1, line);
            assert!(clients.got(1).starts_with("-ERR "), "{line}");
        }
    }

    #[test]
    fn commands_wait_while_clients_are_paused() {
        let mut clients = Clients::new(3);
        clients.send(0, "CLIENT PAUSE 1000 WRITE");
        clients.send(1, "PING\r\nSET k v\r\nPING");
        clients.send(2, "MULTI\r\nEXEC\r\nBLIND SET k v");
        assert_eq!((clients.got(0), clients.got(1)), ("+OK\r\n".to_owned(), "+PONG\r\n".to_owned()));
        assert_eq!(clients.got(2), "+OK\r\n*0\r\n");
        let is_postponed =
            |clients: &Clients, client| clients.front_end.connection(client).unwrap().is_postponed();
        assert!(is_postponed(&clients, 1) && is_postponed(&clients, 2));
        assert_eq!(clients.front_end.postponed(), 2);
        // A shorter one that lets more through changes neither.
        clients.send(0, "CLIENT PAUSE 10 ALL");
        clients.send(0, "PING");
        assert_eq!(clients.got(0), "+OK\r\n");
        clients.pass(999);
        assert!(is_postponed(&clients, 1) && is_postponed(&clients, 0));
        clients.pass(1);
        assert!(!is_postponed(&clients, 1) && !is_postponed(&clients, 2));
        assert_eq!(clients.front_end.postponed(), 0);
        assert_eq!(clients.got(0), "+PONG\r\n");
        // The SET has been submitted, and the PING waits for its turn.
        assert_eq!(clients.front_end.connection(1).unwrap().outstanding(), 2);
        clients.send(0, "CLIENT PAUSE 1000 ALL");
        clients.send(2, "PING");
        assert_eq!(clients.front_end.postponed(), 1);
        clients.front_end.close(2);
        assert_eq!(clients.front_end.postponed(), 0);
        assert_eq!(clients.got(0), "+OK\r\n");
        clients.pass(1000);
        clients.send(0, "CLIENT PAUSE 1000 WRITE\r\nCLIENT UNPAUSE\r\nSET k v");
        assert_eq!(clients.got(0), "+OK\r\n+OK\r\n");
        assert_eq!(clients.front_end.connection(0).unwrap().outstanding(), 1);
    }

    #[test]
    fn monitors_see_what_others_send() {
        let mut clients = Clients::new(3);
        clients.send(0, "MONITOR");
        clients.send(1, "PING");
        clients.send(2, "CONFIG GET x");
        clients.send(2, "AUTH a b");
        let seen = clients.got(0);
        assert_eq!(seen.lines().collect::<Vec<_>>(), ["+OK", r#"+1000000.000000 [0 10.0.0.0:1001] "PING""#]);
        clients.send(0, "RESET");
        clients.send(1, "PING");
        assert_eq!(clients.got(0), "+RESET\r\n");
        clients.send(0, "MONITOR");
        clients.front_end.close(0);
        clients.send(1, "PING");
        assert!(clients.front_end.shared().take_monitored().is_empty());
        // A client that does not take what it is shown is cut off.
        clients.send(2, "MONITOR");
        let long = format!("ECHO {}", "x".repeat(60_000));
        for _ in 0..600 {
            clients.send(1, &long);
            clients.got(1);
        }
        assert!(clients.is_finished(2) && clients.got(2).is_empty());
    }

    #[test]
    fn wait_says_what_is_known() {
        let mut clients = Clients::new(2);
        clients.send(0, "WAIT 2 0\r\nWAITAOF 1 2 0\r\nWAIT 3 100\r\nPING");
        assert_eq!(clients.got(0), ":2\r\n*2\r\n:1\r\n:2\r\n");
        clients.pass(99);
        assert_eq!(clients.got(0), "");
        clients.pass(1);
        assert_eq!(clients.got(0), ":2\r\n+PONG\r\n");
        // It waits for the reply to an earlier update, which never comes here.
        clients.send(1, "SET k v\r\nWAIT 0 10");
        clients.pass(1000);
        assert_eq!(clients.got(1), "");
        // One that waits for ever ends with its connection.
        clients.send(0, "WAIT 3 0");
        clients.front_end.close(0);
        clients.pass(1_000_000);
    }

    #[test]
    fn a_client_that_has_gone_waits_for_nothing() {
        let mut clients = Clients::new(3);
        let outstanding =
            |clients: &Clients, client| clients.front_end.connection(client).unwrap().outstanding();
        for (client, line) in [(0, "WAIT 3 0\r\nWAITAOF 1 3 0"), (1, "WAIT 3 60000\r\nBLPOP k 0")] {
            clients.send(client, line);
            assert!(outstanding(&clients, client) > 0, "{line}");
            clients.front_end.on_input_end(clients.now(), client);
            clients.pass(0);
            assert_eq!(outstanding(&clients, client), 0, "{line}");
        }
        // What begins to wait when its client is gone already.
        clients.front_end.on_input_end(clients.now(), 2);
        clients
            .send(2, "BLPOP k 0\r\nBRPOPLPUSH k l 0\r\nXREADGROUP GROUP g c BLOCK 0 STREAMS s >\r\nWAIT 3 0");
        clients.pass(0);
        assert_eq!(outstanding(&clients, 2), 0);
    }

    #[test]
    fn one_sleeps_and_others_do_not() {
        let mut clients = Clients::new(2);
        clients.send(0, "CONFIG SET slowlog-log-slower-than 1000\r\nDEBUG SLEEP 0.5\r\nPING");
        clients.send(1, "PING");
        assert_eq!((clients.got(0), clients.got(1)), ("+OK\r\n".to_owned(), "+PONG\r\n".to_owned()));
        clients.pass(500);
        assert_eq!(clients.got(0), "+OK\r\n+PONG\r\n");
        clients.send(1, "SLOWLOG GET");
        let slow = clients.got(1);
        assert!(slow.contains(":500000\r\n") && slow.contains("$5\r\nSLEEP\r\n$3\r\n0.5"), "{slow}");
    }

    #[test]
    fn clients_that_send_nothing_are_closed() {
        let mut clients = Clients::new(3);
        clients.send(0, "CONFIG SET timeout 2");
        clients.send(1, "MONITOR");
        for _ in 0..21 {
            clients.pass(100);
        }
        clients.send(2, "PING");
        assert!(!clients.is_finished(0) || clients.millis > 2000);
        (0..3).for_each(|_| clients.pass(100));
        assert!(clients.is_finished(0) && !clients.is_finished(1));
    }
}
