//! How the members of the group are, asked over their own port for whoever looks at the dashboard, as `syros status` asks them.

use std::sync::{Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use syros_client::{Access, Endpoint, StatusReport};
use syros_metrics::{Member, MemberReport};
use syros_protocol::message::RoleName;
use syros_types::View;

use crate::tls::LinksTls;

/// A member that does not answer within this time counts as down.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(600);

/// Members are asked so often at most, however many look: a page looks once a second.
const INTERVAL: Duration = Duration::from_millis(900);

/// Asks members, and remembers what they said for a moment.
#[derive(Debug)]
pub(crate) struct Members {
    tls: Option<LinksTls>,
    last: Mutex<Asked>,
    /// What was answered last, for those who come while members are being asked.
    told: Mutex<Vec<Member>>,
}

/// When members were asked last.
#[derive(Debug, Default)]
struct Asked {
    at: Option<Instant>,
    addresses: Vec<String>,
}

impl Members {
    pub(crate) fn new(tls: Option<LinksTls>) -> Self {
        Self { tls, last: Mutex::default(), told: Mutex::default() }
    }

    /// Asks all members at these addresses but the one in this position, or tells what they said less than a second ago.
    pub(crate) fn ask(&self, addresses: &[String], own: Option<u8>) -> Vec<Member> {
        let told = || self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // Names may take the system's resolver long. One thread waits for it, and no other one.
        let mut last = match self.last.try_lock() {
            Ok(last) => last,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return told().clone(),
        };
        let is_recent = last.at.is_some_and(|at| at.elapsed() < INTERVAL) && last.addresses == addresses;
        if !is_recent {
            let members = self.ask_all(addresses, own);
            *told() = members;
            *last = Asked { at: Some(Instant::now()), addresses: addresses.to_vec() };
        }
        told().clone()
    }

    fn ask_all(&self, addresses: &[String], own: Option<u8>) -> Vec<Member> {
        thread::scope(|scope| {
            let ask = |(place, address): (usize, &String)| {
                let is_other = own.is_none_or(|own| usize::from(own) != place);
                let address = address.clone();
                // One that is not known yet is not asked.
                let is_asked = is_other && !address.is_empty();
                is_asked.then(|| thread::Builder::new().spawn_scoped(scope, move || self.ask_one(&address)))
            };
            let asked: Vec<_> = addresses.iter().enumerate().map(ask).collect();
            let answers = asked.into_iter().map(|asked| match asked? {
                Ok(thread) => Some(thread.join().unwrap_or_else(|_| Err("it could not be asked".to_owned()))),
                Err(error) => Some(Err(format!("no thread to ask it: {error}"))),
            });
            let member = |(address, answer): (&String, _)| Member { address: address.clone(), answer };
            addresses.iter().zip(answers).map(member).collect()
        })
    }

    fn ask_one(&self, address: &str) -> Result<MemberReport, String> {
        let endpoint = Endpoint::resolve(address).map_err(|error| error.to_string())?;
        let mut problem = String::new();
        for credentials in LinksTls::attempts(self.tls.as_ref()) {
            let access = Access { secret: None, credentials };
            match syros_client::status(endpoint.current(), access, ANSWER_TIMEOUT) {
                Ok(report) => return Ok(told_of(&report)),
                Err(error) => problem = error.to_string(),
            }
        }
        Err(problem)
    }
}

/// What a member says of itself, as the port for metrics tells it.
fn told_of(report: &StatusReport) -> MemberReport {
    let view = View(report.view);
    MemberReport {
        replica: report.replica,
        role: report.role.to_string(),
        has_no_quorum: report.no_quorum && matches!(report.role, RoleName::Leader | RoleName::Follower),
        has_disk_trouble: report.disk_failed,
        numbers: vec![
            ("view", view.number()),
            ("epoch", view.epoch().0),
            ("op", report.op_number),
            ("commit", report.commit),
            ("applied", report.applied),
            ("dlog", report.dlog_length),
            ("sessions", report.sessions),
            ("log_bytes", report.log_bytes),
            ("fast_updates", report.fast_updates),
            ("slow_updates", report.slow_updates),
            ("conflicts", report.conflicts),
            ("fast_reads", report.fast_reads),
            ("slow_reads", report.slow_reads),
            ("refused", report.refused),
            ("view_changes", report.view_changes),
            ("silent_ms", report.silent_ms),
        ],
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
            let told = members.ask(&addresses, Some(0));
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
    fn who_comes_while_members_are_asked_is_told_what_is_known() {
        let members = Members::new(None);
        let _asking = members.last.lock().unwrap();
        assert!(members.ask(&["127.0.0.1:1".to_owned()], None).is_empty());
    }
}
