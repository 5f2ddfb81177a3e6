//! Waiting for a server that stands still: whoever watches hears of it, and it does not last for ever.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::time::{Duration, Instant};

/// How often it is told that a server stands still. The timeout of sockets, which shows that nothing has come.
pub(super) const INTERVAL: Duration = Duration::from_secs(5);

/// A connection whose socket has a timeout of [`INTERVAL`].
pub(super) struct Patient<S> {
    stream: S,
    /// Who is at the other end.
    address: String,
    patience: Duration,
}

impl<S> Patient<S> {
    /// The other end may stand still for so long.
    pub(super) const fn new(stream: S, address: String, patience: Duration) -> Self {
        Self { stream, address, patience }
    }

    /// The other end may stand still for so long from now on. With no patience, timeouts are the caller's.
    pub(super) const fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    pub(super) const fn stream(&self) -> &S {
        &self.stream
    }

    /// Tries again until the other end goes on, and tells of it with `tell`. `what` it has not done meanwhile.
    fn persist<T>(
        &mut self,
        what: &str,
        mut tell: impl FnMut(&str),
        mut attempt: impl FnMut(&mut S) -> Result<T>,
    ) -> Result<T> {
        let began = Instant::now();
        let seconds = || began.elapsed().as_secs();
        let (address, most) = (&self.address, self.patience.as_secs());
        let mut has_told = false;
        loop {
            match attempt(&mut self.stream) {
                Err(error) if is_timeout(&error) && self.patience.is_zero() => return Err(error),
                Err(error) if is_timeout(&error) && began.elapsed() >= self.patience => {
                    let problem = format!("it has {what} nothing for {most} s, and is given up");
                    return Err(Error::new(ErrorKind::TimedOut, problem));
                }
                Err(error) if is_timeout(&error) => {
                    has_told = true;
                    let still = seconds();
                    tell(&format!(
                        "{address} has {what} nothing for {still} s; it is given up after {most} s"
                    ));
                }
                result => {
                    if has_told && result.is_ok() {
                        tell(&format!("{address} goes on, after {} s", seconds()));
                    }
                    return result;
                }
            }
        }
    }
}

fn say(text: &str) {
    syros_cli::say!("syros: {text}");
}

/// True if the system says that nothing has come in time.
pub(super) fn is_timeout(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl<S: Read> Read for Patient<S> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.persist("sent", say, |stream| stream.read(buffer))
    }
}

impl<S: Write> Write for Patient<S> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.persist("taken", say, |stream| stream.write(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        self.persist("taken", say, S::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stands still so often, and then goes on.
    fn after(pauses: usize, patience: Duration) -> (Vec<String>, Result<u8>) {
        let mut patient = Patient::new(pauses, "old:6379".to_owned(), patience);
        let mut told = Vec::new();
        let result = patient.persist(
            "sent",
            |text| told.push(text.to_owned()),
            |left| match left.checked_sub(1) {
                None => Ok(7),
                Some(fewer) => {
                    *left = fewer;
                    Err(ErrorKind::WouldBlock.into())
                }
            },
        );
        (told, result)
    }

    #[test]
    fn who_stands_still_is_told_of_and_waited_for() {
        let minute = Duration::from_secs(60);
        let (told, result) = after(0, minute);
        assert_eq!((told.len(), result.unwrap()), (0, 7));
        let (told, result) = after(2, minute);
        assert_eq!(result.unwrap(), 7);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(
            told[0].starts_with("old:6379 has sent nothing for 0 s; it is given up after 60 s"),
            "{told:?}"
        );
        assert!(told[2].starts_with("old:6379 goes on, after 0 s"), "{told:?}");
    }

    #[test]
    fn patience_ends() {
        let (told, result) = after(usize::MAX, Duration::from_nanos(1));
        assert!(told.is_empty(), "{told:?}");
        assert_eq!(result.unwrap_err().to_string(), "it has sent nothing for 0 s, and is given up");
        // Those who have a patience of their own get what the system says.
        let (_, result) = after(1, Duration::ZERO);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
