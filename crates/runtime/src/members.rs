//! How the members of the group are, asked over their own port for whoever looks at the dashboard, as `syros status` asks them.
//!
//! Names may take the system's resolver half a minute, and members may not answer at all. So one thread asks, another one looks
//! up each name, and who looks at the dashboard waits for neither longer than a moment: he is told what was answered last, and
//! when that was.

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use syros_client::{Access, StatusReport};
use syros_metrics::{Member, MemberReport, Members as Told};
use syros_protocol::message::RoleName;

use crate::tls::LinksTls;

/// A member that does not answer within this time counts as down.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(600);

/// Members are asked so often at most, however many look: a page looks once a second.
const INTERVAL: Duration = Duration::from_millis(900);

/// Who looks waits so long at most: somewhat longer than members have for an answer.
const PATIENCE: Duration = Duration::from_millis(800);

/// A name is waited for so long. After that its member is asked where the name led before.
const NAME_TIMEOUT: Duration = Duration::from_millis(150);

/// Addresses of one name that are tried, so that all of them have time to answer.
const ADDRESSES_MAX: usize = 4;

/// Names that are remembered: those of all members, and of some that were members before.
const NAMES_MAX: usize = 32;

/// Asks members, and remembers what they said for a moment.
#[derive(Clone, Debug)]
pub(crate) struct Members(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tls: Option<LinksTls>,
    asked: Mutex<Asked>,
    /// All members have been asked.
    is_over: Condvar,
    names: Names,
    resolve: fn(&str) -> Result<Vec<SocketAddr>, String>,
}

/// What was asked last.
#[derive(Debug, Default)]
struct Asked {
    /// A thread asks now.
    is_asking: bool,
    /// When it began, and whom it asks.
    began: Option<Instant>,
    addresses: Vec<String>,
    /// What was answered last, and when. It may be of other addresses.
    told: Option<(Instant, Vec<Member>)>,
}

/// Where names lead.
#[derive(Debug, Default)]
struct Names {
    all: Mutex<HashMap<String, Name>>,
    /// A name has been looked up.
    is_known: Condvar,
}

#[derive(Debug, Default)]
struct Name {
    /// A thread looks it up now.
    is_looked_up: bool,
    /// Where it led last; the address that answered last comes first.
    leads_to: Vec<SocketAddr>,
    /// Why it could not be looked up the last time.
    problem: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Members {
    pub(crate) fn new(tls: Option<LinksTls>) -> Self {
        Self::with(tls, |name| {
            let found: Vec<SocketAddr> = name.to_socket_addrs().map_err(|error| error.to_string())?.collect();
            if found.is_empty() { Err("the name has no address".to_owned()) } else { Ok(found) }
        })
    }

    fn with(tls: Option<LinksTls>, resolve: fn(&str) -> Result<Vec<SocketAddr>, String>) -> Self {
        let (asked, is_over, names) = Default::default();
        Self(Arc::new(Shared { tls, asked, is_over, names, resolve }))
    }

    /// Asks all members at these addresses but the one in this position, or tells what they said less than a second ago. If they
    /// take longer than a moment, it tells what they said before that.
    pub(crate) fn ask(&self, addresses: &[String], own: Option<u8>) -> Told {
        let shared = &self.0;
        let mut asked = lock(&shared.asked);
        let is_recent =
            asked.began.is_some_and(|began| began.elapsed() < INTERVAL) && asked.addresses == addresses;
        if !asked.is_asking && !is_recent {
            (asked.began, asked.addresses) = (Some(Instant::now()), addresses.to_vec());
            let (theirs, whom) = (Arc::clone(shared), addresses.to_vec());
            let ask = move || {
                let _asking = Asking(&theirs);
                let members = theirs.ask_all(&whom, own);
                lock(&theirs.asked).told = Some((Instant::now(), members));
            };
            asked.is_asking = thread::Builder::new().name("members".to_owned()).spawn(ask).is_ok();
        }
        let waited = shared.is_over.wait_timeout_while(asked, PATIENCE, |asked| asked.is_asking);
        let (asked, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &asked.told {
            Some((at, members)) if members.iter().map(|member| &member.address).eq(addresses) => {
                Told { all: members.clone(), age: at.elapsed() }
            }
            _ => {
                let member = |(place, address): (usize, &String)| {
                    let is_own = own.is_some_and(|own| usize::from(own) == place);
                    let why = "it has not been asked yet";
                    if is_own || address.is_empty() { Member::at(address) } else { unknown(address, why) }
                };
                Told { all: addresses.iter().enumerate().map(member).collect(), age: Duration::ZERO }
            }
        }
    }
}

/// Members are asked as long as this lives.
struct Asking<'a>(&'a Shared);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        lock(&self.0.asked).is_asking = false;
        self.0.is_over.notify_all();
    }
}

impl Shared {
    fn ask_all(self: &Arc<Self>, addresses: &[String], own: Option<u8>) -> Vec<Member> {
        thread::scope(|scope| {
            let ask = |(place, address): (usize, &String)| {
                let is_other = own.is_none_or(|own| usize::from(own) != place);
                let address = address.clone();
                // One that is not known yet is not asked.
                let is_asked = is_other && !address.is_empty();
                is_asked.then(|| thread::Builder::new().spawn_scoped(scope, move || self.ask_one(&address)))
            };
            let asked: Vec<_> = addresses.iter().enumerate().map(ask).collect();
            let members = addresses.iter().zip(asked).map(|(address, asked)| match asked {
                None => Member::at(address),
                Some(Ok(thread)) => {
                    thread.join().unwrap_or_else(|_| unknown(address, "it could not be asked"))
                }
                Some(Err(error)) => unknown(address, &format!("no thread to ask it: {error}")),
            });
            members.collect()
        })
    }

    fn ask_one(self: &Arc<Self>, address: &str) -> Member {
        let places = match address.parse() {
            Ok(address) => vec![address],
            Err(_) => match self.look_up(address) {
                Ok(places) => places,
                Err(problem) => return unknown(address, &problem),
            },
        };
        let tried = places.len().min(ADDRESSES_MAX);
        let timeout = ANSWER_TIMEOUT / u32::try_from(tried).unwrap_or(1).max(1);
        let mut problem = String::new();
        for place in &places[..tried] {
            for credentials in LinksTls::attempts(self.tls.as_ref()) {
                let access = Access { secret: None, credentials };
                match syros_client::status(*place, access, timeout) {
                    Ok(report) => {
                        self.names.answered(address, *place);
                        return Member { answer: Some(Ok(told_of(&report))), ..Member::at(address) };
                    }
                    Err(error) => problem = error.to_string(),
                }
            }
        }
        Member { answer: Some(Err(problem)), ..Member::at(address) }
    }

    /// Where a name leads or, if it is not looked up at once, where it led before.
    fn look_up(self: &Arc<Self>, name: &str) -> Result<Vec<SocketAddr>, String> {
        let mut names = lock(&self.names.all);
        if names.len() >= NAMES_MAX && !names.contains_key(name) {
            names.retain(|_, known| known.is_looked_up);
        }
        let known = names.entry(name.to_owned()).or_default();
        if !known.is_looked_up {
            let (theirs, whose) = (Arc::clone(self), name.to_owned());
            let look_up = move || {
                let found = (theirs.resolve)(&whose);
                theirs.names.found(&whose, found);
            };
            known.is_looked_up = thread::Builder::new().name("resolver".to_owned()).spawn(look_up).is_ok();
        }
        let is_looked_up =
            |names: &mut HashMap<String, Name>| names.get(name).is_some_and(|known| known.is_looked_up);
        let waited = self.names.is_known.wait_timeout_while(names, NAME_TIMEOUT, is_looked_up);
        let (names, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match names.get(name) {
            Some(known) if !known.leads_to.is_empty() => Ok(known.leads_to.clone()),
            Some(Name { problem: Some(problem), .. }) => {
                Err(format!("its name cannot be looked up: {problem}"))
            }
            _ => Err("its name is being looked up".to_owned()),
        }
    }
}

fn unknown(address: &str, why: &str) -> Member {
    Member { unknown: Some(why.to_owned()), ..Member::at(address) }
}

impl Names {
    /// A name has been looked up. Where that failed, it leads where it led before.
    fn found(&self, name: &str, found: Result<Vec<SocketAddr>, String>) {
        if let Some(known) = lock(&self.all).get_mut(name) {
            known.is_looked_up = false;
            match found {
                Ok(mut places) => {
                    let first = known.leads_to.first();
                    places.sort_by_key(|place| Some(place) != first);
                    (known.leads_to, known.problem) = (places, None);
                }
                Err(problem) => known.problem = Some(problem),
            }
        }
        self.is_known.notify_all();
    }

    /// At this address of the name somebody answered: it is the first to be asked the next time.
    fn answered(&self, name: &str, at: SocketAddr) {
        if let Some(known) = lock(&self.all).get_mut(name) {
            known.leads_to.sort_by_key(|place| *place != at);
        }
    }
}

/// What a member says of itself, as the port for metrics tells it.
fn told_of(report: &StatusReport) -> MemberReport {
    MemberReport {
        replica: report.replica,
        role: report.role.to_string(),
        has_no_quorum: report.no_quorum && matches!(report.role, RoleName::Leader | RoleName::Follower),
        has_disk_trouble: report.disk_failed,
        numbers: syros_client::numbers(report).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn members_are_asked_once_in_a_while_and_never_the_own_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let accepted = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&accepted);
        // It closes connections at once: it is no node.
        thread::spawn(move || {
            for _ in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let members = Members::new(None);
        let addresses = [address.clone(), address, String::new()];
        for _ in 0..5 {
            let told = members.ask(&addresses, Some(0)).all;
            assert_eq!(told.len(), 3);
            assert!(told[0].answer.is_none() && told[2].answer.is_none());
            assert!(matches!(told[1].answer, Some(Err(_))), "{:?}", told[1]);
        }
        assert_eq!(accepted.load(Ordering::SeqCst), 1);
        // The group has grown: there are others to be asked.
        members.ask(&addresses[..2], None);
        assert_eq!(accepted.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn who_comes_while_members_are_asked_is_told_soon() {
        let members = Members::new(None);
        // Another thread asks, and does not come to an end.
        lock(&members.0.asked).is_asking = true;
        let began = Instant::now();
        let told = members.ask(&["127.0.0.1:1".to_owned()], None);
        assert!(told.all[0].answer.is_none() && told.all[0].unknown.is_some(), "{told:?}");
        let at = Instant::now();
        lock(&members.0.asked).told = Some((at, vec![Member::at("127.0.0.1:1")]));
        let told = members.ask(&["127.0.0.1:1".to_owned()], None);
        assert!(
            told.all[0].unknown.is_none() && told.age >= PATIENCE && told.age <= at.elapsed(),
            "{told:?}"
        );
        assert!(began.elapsed() < 4 * PATIENCE, "{:?}", began.elapsed());
    }

    #[test]
    fn a_name_that_cannot_be_looked_up_is_asked_where_it_led_before() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let members = Members::with(None, |name| match name {
            "gone.test:1" => Err("no such name".to_owned()),
            // A name server that says nothing.
            _ => loop {
                thread::park();
            },
        });
        let names = ["gone.test:1", "silent.test:1"].map(str::to_owned);
        let began = Instant::now();
        let told = members.ask(&names, None);
        for (member, why) in told.all.iter().zip(["no such name", "is being looked up"]) {
            assert!(member.answer.is_none(), "it is not down: {member:?}");
            assert!(member.unknown.as_ref().is_some_and(|unknown| unknown.contains(why)), "{member:?}");
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
        // Both led to somebody before.
        for name in &names {
            lock(&members.0.names.all).get_mut(name).unwrap().leads_to = vec![address];
        }
        drop(listener);
        lock(&members.0.asked).began = None;
        let told = members.ask(&names, None);
        assert!(told.all.iter().all(|member| matches!(member.answer, Some(Err(_)))), "{told:?}");
    }
}
