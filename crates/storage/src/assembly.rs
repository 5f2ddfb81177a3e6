//! A large collection of which parts come in any order.

use crate::snapshot::DamagedSnapshot;
use crate::stamp::Stamp;
use std::collections::BTreeMap;
use syros_values::{Value, ValueBuilder};

/// A large collection, of which some parts have been read.
#[derive(Default)]
pub(crate) struct Assembly {
    /// The key, what is kept of it, and the collection up to the first part that is missing; `None` as long as the head is.
    begun: Option<(Box<[u8]>, Stamp, ValueBuilder)>,
    /// Parts behind the first one that is missing, by the rank of their first element.
    waiting: BTreeMap<u64, Box<[u8]>>,
}

impl Assembly {
    /// Adds the head, and what has waited for it.
    pub(crate) fn head(
        &mut self,
        position: u64,
        (key, stamp): (&[u8], Stamp),
        builder: ValueBuilder,
    ) -> Result<(), DamagedSnapshot> {
        if self.begun.replace((key.into(), stamp, builder)).is_some() {
            return Err(DamagedSnapshot::DuplicatePosition(position));
        }
        self.catch_up(position)
    }

    /// Adds a part, and what has waited for it.
    pub(crate) fn part(&mut self, position: u64, rank: u64, elements: &[u8]) -> Result<(), DamagedSnapshot> {
        let next = self.begun.as_ref().map_or(0, |(_, _, builder)| builder.rank());
        if rank < next || self.waiting.contains_key(&rank) {
            return Err(DamagedSnapshot::DuplicatePart(position));
        }
        match &mut self.begun {
            Some((_, _, builder)) if rank == next => builder.part(elements)?,
            _ => drop(self.waiting.insert(rank, elements.into())),
        }
        self.catch_up(position)
    }

    /// Adds the parts that wait and now come next.
    fn catch_up(&mut self, position: u64) -> Result<(), DamagedSnapshot> {
        let Some((_, _, builder)) = &mut self.begun else { return Ok(()) };
        while let Some(first) = self.waiting.first_entry() {
            if *first.key() > builder.rank() {
                return Ok(());
            }
            let (rank, elements) = first.remove_entry();
            if rank < builder.rank() {
                return Err(DamagedSnapshot::DuplicatePart(position));
            }
            builder.part(&elements)?;
        }
        Ok(())
    }

    /// True if nothing is missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.begun.as_ref().is_some_and(|(_, _, builder)| builder.is_complete())
    }

    /// The key, what is kept of it, and the collection, which is complete.
    pub(crate) fn finish(self, position: u64) -> Result<(Box<[u8]>, Stamp, Value), DamagedSnapshot> {
        match self {
            Self { begun: Some((key, stamp, builder)), waiting } if waiting.is_empty() => {
                Ok((key, stamp, builder.finish()))
            }
            _ => Err(DamagedSnapshot::DuplicatePart(position)),
        }
    }
}
