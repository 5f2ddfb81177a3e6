//! Which record of the write-ahead log a ticket of the core is.

use syros_protocol::record::Ticket;
use syros_wal::RecordNumber;

/// Records of one opened log, numbered as the core numbers them. A core outlives its log when the log is opened again:
/// the records that were not durable may be lost then, and the first record of the new log stands for all of them.
#[derive(Clone, Copy, Debug)]
pub struct RecordNumbering {
    /// The last record that the log held when it was opened.
    found: RecordNumber,
    /// The last ticket of the core whose record went to an earlier log.
    earlier: Ticket,
}

impl RecordNumbering {
    /// For a log that holds records up to `found`, and a core that has emitted tickets up to `earlier`.
    #[must_use]
    pub const fn new(found: RecordNumber, earlier: Ticket) -> Self {
        Self { found, earlier }
    }

    /// The record that has to be durable for this ticket.
    #[must_use]
    pub const fn record(&self, ticket: Ticket) -> RecordNumber {
        match ticket.0.saturating_sub(self.earlier.0) {
            0 if self.earlier.0 == 0 => self.found,
            // The next record covers what may be lost.
            0 => RecordNumber(self.found.0 + 1),
            after => RecordNumber(self.found.0 + after),
        }
    }

    /// Every ticket up to this one is durable when all records up to `durable` are.
    #[must_use]
    pub const fn ticket(&self, durable: RecordNumber) -> Ticket {
        match durable.0.saturating_sub(self.found.0) {
            // What an earlier log held, only that log could tell.
            0 => Ticket(0),
            after => Ticket(self.earlier.0 + after),
        }
    }

    /// The first record that is needed if those before this ticket are not. `None` if only an earlier log could tell.
    #[must_use]
    pub const fn first_needed(&self, ticket: Ticket) -> Option<RecordNumber> {
        if ticket.0 > self.earlier.0 || self.earlier.0 == 0 { Some(self.record(ticket)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_count_from_the_end_of_the_log_that_was_found() {
        let numbering = RecordNumbering::new(RecordNumber(40), Ticket(0));
        assert_eq!([0, 1, 7].map(|ticket| numbering.record(Ticket(ticket)).0), [40, 41, 47]);
        assert_eq!([39, 40, 41, 47].map(|record| numbering.ticket(RecordNumber(record)).0), [0, 0, 1, 7]);
        assert_eq!(numbering.first_needed(Ticket(7)), Some(RecordNumber(47)));
    }

    #[test]
    fn the_first_record_of_a_log_that_was_opened_again_stands_for_all_that_may_be_lost() {
        let numbering = RecordNumbering::new(RecordNumber(12), Ticket(30));
        assert_eq!(
            [1, 29, 30, 31, 33].map(|ticket| numbering.record(Ticket(ticket)).0),
            [13, 13, 13, 13, 15]
        );
        assert_eq!(numbering.ticket(RecordNumber(12)), Ticket(0), "nothing is known to be durable yet");
        assert_eq!(numbering.ticket(RecordNumber(13)), Ticket(31));
        assert_eq!(numbering.first_needed(Ticket(30)), None);
        assert_eq!(numbering.first_needed(Ticket(32)), Some(RecordNumber(14)));
    }
}
