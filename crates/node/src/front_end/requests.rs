//! What connections ask the front end about other connections, and what takes time: CLIENT LIST, KILL, PAUSE and UNPAUSE,
//! MONITOR, WAIT, DEBUG SLEEP, and clients that are idle for too long.

use std::collections::{BTreeMap, VecDeque};
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
        while let Some(first) = self.requests.timed.first_entry().filter(|first| first.key().0 <= now.instant) {
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
        if let Some(timeout) = timeout {
            self.answer_at(now.instant.after(timeout), address, Timed { answer, since: None });
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
        for place in 0..self.connections.places() {
            if let Some((address, connection)) = self.connections.at_mut(place)
                && connection.redis.is_postponed()
            {
                connection.redis.resume();
                self.mark_answered(address);
            }
        }
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
        let is_over = |address: &u64| !self.connections.get(*address).is_some_and(|other| other.redis.is_monitor());
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
