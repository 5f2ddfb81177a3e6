//! Frames that leave from the log's thread, as soon as what they promise is on disk. What leaves when, and whom that
//! wakes, [`syros_node::DurableQueue`] decides.

use std::iter;
use std::sync::{Mutex, MutexGuard, PoisonError};

use syros_net::Outlet;
use syros_wal::RecordNumber;

/// Frames, and the connection that they are for.
type Frames = (Outlet, Vec<u8>);

/// What an event loop leaves with the thread of its log.
#[derive(Debug, Default)]
pub(crate) struct DurableSender(Mutex<syros_node::DurableQueue<RecordNumber, Frames>>);

impl DurableSender {
    fn lock(&self) -> MutexGuard<'_, syros_node::DurableQueue<RecordNumber, Frames>> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves frames for a connection until a record is on disk.
    pub(crate) fn add(&self, after: RecordNumber, outlet: Outlet, frames: Vec<u8>) {
        self.lock().add(after, (outlet, frames));
    }

    /// Says for which record the event loop is to be woken next.
    pub(crate) fn wake_at(&self, record: Option<RecordNumber>) {
        self.lock().wake_at(record);
    }

    /// True if nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Sends what may leave now that the records up to here are on disk. True if the event loop is to be woken.
    pub(crate) fn send(&self, persisted: RecordNumber) -> bool {
        let (due, wakes) = {
            let mut state = self.lock();
            let due: Vec<_> = iter::from_fn(|| state.pop(persisted)).collect();
            (due, state.wakes(persisted))
        };
        for (outlet, frames) in due {
            outlet.send(&frames);
        }
        wakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use mio::net::TcpStream;
    use mio::{Poll, Token};
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use syros_net::{Connection, Limits};

    /// A connection, and a stream at its other end.
    fn pair(poll: &Poll, token: usize) -> (Connection, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other_end, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let stream = TcpStream::from_std(stream);
        (
            Connection::register(stream, Limits::CLIENT, poll.registry(), Token(token), None).unwrap(),
            other_end,
        )
    }

    fn read(stream: &mut std::net::TcpStream) -> String {
        let mut bytes = [0; 64];
        let count = stream.read(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    }

    #[test]
    fn frames_leave_when_their_record_is_on_disk_and_not_before() {
        let poll = Poll::new().unwrap();
        let ((mut one, mut one_end), (mut two, mut two_end)) = (pair(&poll, 1), pair(&poll, 2));
        let sender = DurableSender::default();
        let mut add = |after, frames: &str| {
            let connection = if frames < "n" { &mut one } else { &mut two };
            let outlet = connection.outlet().unwrap();
            sender.add(RecordNumber(after), outlet, frames.as_bytes().to_vec());
        };
        for (after, frames) in [(3, "c"), (5, "e"), (5, "x"), (4, "d"), (3, "y"), (9, "f")] {
            add(after, frames);
        }
        sender.wake_at(Some(RecordNumber(5)));
        assert!(!sender.send(RecordNumber(2)));
        assert!(!sender.send(RecordNumber(4)));
        // Nothing else is there: what follows is behind it.
        assert_eq!((read(&mut one_end).as_str(), read(&mut two_end).as_str()), ("cd", "y"));
        assert!(sender.send(RecordNumber(7)), "the event loop waits for this");
        assert_eq!((read(&mut one_end).as_str(), read(&mut two_end).as_str()), ("e", "x"));
        assert!(!sender.is_empty());
        sender.wake_at(None);

        // A connection that is gone harms nobody.
        drop(one);
        assert!(!sender.send(RecordNumber(9)));
        assert!(sender.is_empty());
        two_end.write_all(b"still there").unwrap();
        assert_eq!(one_end.read(&mut [0; 8]).unwrap(), 0, "closed");
    }
}
