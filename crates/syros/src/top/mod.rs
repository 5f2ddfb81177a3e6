//! `syros top`: what `syros status` tells, again and again, with rates.

mod picture;
mod terminal;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use syros_cli::signals;
use syros_client::{Access, Credentials};

use crate::status::{Answer, ReplicaOptions, problems_of, query};
use picture::{Moment, picture};
use terminal::{Screen, read_keys};

/// Replicas are asked so often.
const INTERVAL: Duration = Duration::from_secs(1);

/// After so many questions it is asked where the replicas are: the group may have grown, or a node have moved.
const SEARCH_AFTER: u32 = 10;

/// Options of `syros top`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros top                                 the cluster of the node at 127.0.0.1:6379; q ends
  syros top --addr db1:6379,db2:6379        whichever of them answers tells where all replicas are
  syros top --replicas db1:7379,db2:7379    exactly these replicas, by their own ports
  syros top --tls ~/syros-admin             where the nodes speak TLS
  syros top --once                          one picture after a second, for a script or a mail

Where the default user has a password, --addr needs it in the environment variable REDISCLI_AUTH; where that user is off, a
user who may run INFO in SYROS_USER, and that one's password.

A line for each replica: its role, view, applied entries, how many entries it is behind (lag), updates that are durable and
not ordered yet (unordered), updates and reads a second, the share of updates that took one round trip, refusals a second, and
memory of the log. With --once, or where the output is no terminal, the exit status is that of `syros status`.")]
pub(crate) struct Options {
    #[command(flatten)]
    whom: ReplicaOptions,
    /// Print one picture and end
    #[arg(long)]
    once: bool,
}

/// What replicas answered, or why they did not.
type Answers = Vec<Answer>;

/// What happens while the screen is shown.
enum Event {
    /// All replicas have been asked, at this moment.
    Asked(Instant, Answers),
    /// A key.
    Key(u8),
    /// Somebody wants the process to end.
    Signal,
}

/// Asks the replicas of a cluster.
struct Asking {
    whom: ReplicaOptions,
    replicas: Vec<String>,
    credentials: Option<Credentials>,
    questions: u32,
}

impl Asking {
    fn begin(whom: &ReplicaOptions) -> Result<Self, String> {
        let credentials = whom.tls.credentials()?;
        let replicas = whom.find(credentials.as_ref())?;
        Ok(Self { whom: whom.clone(), replicas, credentials, questions: 0 })
    }

    /// Asks all replicas at once: one that is down keeps none of the others waiting.
    fn ask(&mut self) -> Answers {
        self.questions += 1;
        if self.questions.is_multiple_of(SEARCH_AFTER)
            // While nobody tells, the replicas are where they were.
            && let Ok(replicas) = self.whom.find(self.credentials.as_ref())
        {
            self.replicas = replicas;
        }
        let access = Access { credentials: self.credentials.as_ref(), secret: None };
        thread::scope(|scope| {
            let ask = |replica| scope.spawn(move || query(replica, access));
            let asked: Vec<_> = self.replicas.iter().map(String::as_str).map(ask).collect();
            let answer = |asked: thread::ScopedJoinHandle<'_, _>| {
                asked.join().unwrap_or_else(|_| Err("it could not be asked".to_owned()))
            };
            self.replicas.iter().cloned().zip(asked.into_iter().map(answer)).collect()
        })
    }

    /// Asks once a second, until nobody listens.
    fn ask_for_ever(mut self, events: &Sender<Event>) {
        let mut next = Instant::now();
        loop {
            let answers = self.ask();
            if events.send(Event::Asked(Instant::now(), answers)).is_err() {
                return;
            }
            next = (next + INTERVAL).max(Instant::now());
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }
}

/// Shows the replicas of a cluster until somebody ends it.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let mut asking = Asking::begin(&options.whom)?;
    if options.once || !std::io::stdout().is_terminal() {
        let before = Moment::new(Instant::now(), asking.ask());
        thread::sleep(INTERVAL);
        let now = Moment::new(Instant::now(), asking.ask());
        syros_cli::tell!("{}", picture(Some(&before), &now).join("\n"));
        return Ok(if problems(&now).is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let (events, received) = channel();
    let (signalled, keys) = (events.clone(), events.clone());
    signals::watch(move |_| drop(signalled.send(Event::Signal)))?;
    let mut screen = Screen::open()?;
    thread::spawn(move || read_keys(|key| keys.send(Event::Key(key)).is_ok()));
    thread::spawn(move || asking.ask_for_ever(&events));
    let mut before: Option<Moment> = None;
    for event in received {
        match event {
            Event::Asked(at, answers) => {
                let now = Moment::new(at, answers);
                screen.show(&picture(before.as_ref(), &now))?;
                before = Some(now);
            }
            Event::Key(key) if terminal::is_end(key) => break,
            Event::Key(_) => {}
            Event::Signal => break,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is wrong, a line for each.
fn problems(moment: &Moment) -> Vec<String> {
    problems_of(&moment.answers)
}
