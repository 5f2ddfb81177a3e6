//! CPU time of processes.

use crate::error::Error;
use core::time::Duration;

/// CPU time that a process has spent so far, all its threads together, in user and kernel mode. The
/// kernel counts in ticks, of 10 ms usually.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration, Error> {
    let statistics =
        std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|error| Error::Process(pid, error))?;
    let ticks = ticks(&statistics).ok_or(Error::ProcessStatistics(pid))?;
    let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(rustix::param::clock_ticks_per_second());
    Ok(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
}

/// proc(5): user and kernel time are the 14th and 15th field. The second one is the program's name
/// in parentheses, which may itself hold parentheses and spaces; the third follows the last of them.
fn ticks(statistics: &str) -> Option<u64> {
    let (_, rest) = statistics.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(14 - 3);
    let mut field = || fields.next()?.parse::<u64>().ok();
    field()?.checked_add(field()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_found_whatever_the_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 120 34 0 0 20 0 1 0 100";
        for name in ["syros", "a b", "x) S 1 2 (y", ")"] {
            assert_eq!(ticks(&format!("77 ({name}) {rest}")), Some(154));
        }
        assert_eq!(ticks("77 (syros) S 1 2 3"), None);
        assert_eq!(ticks(""), None);
    }

    #[test]
    fn own_time_passes() {
        let pid = std::process::id();
        let before = cpu_time(pid).unwrap();
        let started = std::time::Instant::now();
        while started.elapsed() < Duration::from_millis(100) {
            std::hint::spin_loop();
        }
        assert!(cpu_time(pid).unwrap() > before);
        assert!(matches!(cpu_time(u32::MAX), Err(Error::Process(u32::MAX, _))));
    }
}
