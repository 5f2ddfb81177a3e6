//! Looking up host names without waiting for the system's resolver.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// A host name that is being looked up, on a thread of its own. The system's resolver takes as long as it likes, for half
/// a minute if no name server answers: neither an event loop nor another name may wait for that. Whoever looks a name up
/// has no more than one look-up of it under way, which limits the threads.
#[derive(Debug)]
pub struct Lookup {
    answer: Receiver<io::Result<Vec<SocketAddr>>>,
}

impl Lookup {
    /// Starts to look up `name`, as `host:port`. `notify` is called when the answer is there, or there will be none.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(name: String, notify: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Self::start_with(move || name.to_socket_addrs().map(Iterator::collect), notify)
    }

    fn start_with(
        look: impl FnOnce() -> io::Result<Vec<SocketAddr>> + Send + 'static,
        notify: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (outgoing, answer) = channel();
        std::thread::Builder::new().name("resolver".to_owned()).spawn(move || {
            // Nobody may want it any more.
            let _ = outgoing.send(look());
            notify();
        })?;
        Ok(Self { answer })
    }

    /// The addresses, at least one, if the answer is there; to be asked until it is.
    ///
    /// # Errors
    /// Why there are none.
    pub fn take(&self) -> Option<Result<Vec<SocketAddr>, String>> {
        match self.answer.try_recv() {
            Ok(Ok(addresses)) if addresses.is_empty() => Some(Err("it has no address".to_owned())),
            Ok(Ok(addresses)) => Some(Ok(addresses)),
            Ok(Err(error)) => Some(Err(error.to_string())),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err("the system's resolver has failed".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when_there(lookup: &Lookup, told: &Receiver<()>) -> Result<Vec<SocketAddr>, String> {
        told.recv().unwrap();
        lookup.take().expect("the answer is there when it is said to be")
    }

    #[test]
    fn a_name_that_takes_long_keeps_no_other_waiting() {
        let (go_on, wait) = channel::<()>();
        let (tell, told) = channel();
        let slow = move || {
            let _ = wait.recv();
            Ok(vec![SocketAddr::from(([10, 0, 0, 1], 1))])
        };
        let tell_slow = tell.clone();
        let slow = Lookup::start_with(slow, move || tell_slow.send(()).unwrap()).unwrap();
        let other = Lookup::start("127.0.0.1:7".to_owned(), move || tell.send(()).unwrap()).unwrap();
        assert_eq!(when_there(&other, &told), Ok(vec![SocketAddr::from(([127, 0, 0, 1], 7))]));
        assert_eq!(slow.take(), None);
        go_on.send(()).unwrap();
        assert_eq!(when_there(&slow, &told), Ok(vec![SocketAddr::from(([10, 0, 0, 1], 1))]));
    }

    #[test]
    fn what_is_wrong_with_a_name_is_said() {
        let (tell, told) = channel();
        let tell_too = tell.clone();
        let nowhere = Lookup::start_with(|| Ok(Vec::new()), move || tell_too.send(()).unwrap()).unwrap();
        assert_eq!(when_there(&nowhere, &told), Err("it has no address".to_owned()));
        let no_port = Lookup::start("no port".to_owned(), move || tell.send(()).unwrap()).unwrap();
        assert!(when_there(&no_port, &told).is_err());
    }
}
