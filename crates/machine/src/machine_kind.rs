//! State machines as the runtime holds them: whichever it is, one that executes, and what is known of its operations.

use crate::{MachineName, Pieces, StateMachine, Unreadable};
use std::fmt;
use syros_types::limits::BODY_BYTES_MAX;
use syros_types::{Class, Description, WallTime};

/// What the protocol needs to know of an operation, from its bytes alone; `None` if they are none.
pub type Describe = fn(&[u8]) -> Option<Description>;

/// Of two overwrites with equal footprints: whether nothing is left of `older` once `newer` has run.
pub type Overwrites = fn(newer: &[u8], older: &[u8]) -> bool;

/// Class and footprint of an operation, as the protocol asks for them; `None` if the bytes are no operation.
#[must_use]
pub fn describe<M: StateMachine>(operation: &[u8]) -> Option<Description> {
    if operation.len() > BODY_BYTES_MAX {
        return None;
    }
    let class = M::class(operation)?;
    let footprint = M::footprint(operation);
    let class = match class {
        Class::Overwrite if !footprint.is_one_key() => Class::Merge,
        class => class,
    };
    // Of what it does with its bytes nothing is known.
    Some(Description { class, footprint, growth: operation.len().max(1) })
}

/// Whether nothing is left of `older` once `newer` has run, as the protocol asks for it.
#[must_use]
pub fn overwrites<M: StateMachine>(newer: &[u8], older: &[u8]) -> bool {
    // The protocol only asks of overwrites with equal hashes; whoever else asks shall not be told more than is true.
    let key = |operation| {
        let overwrite = describe::<M>(operation).filter(|known| known.class == Class::Overwrite);
        overwrite.map(|known| known.footprint)
    };
    key(newer).is_some_and(|newer| key(older) == Some(newer)) && M::overwrites(newer, older)
}

/// A [`StateMachine`], whichever it is.
pub trait Executor: Send {
    /// See [`StateMachine::execute`].
    fn execute(&mut self, time: WallTime, operation: &[u8], reply: &mut Vec<u8>);
    /// See [`StateMachine::read`].
    fn read(&self, operation: &[u8], reply: &mut Vec<u8>);
    /// See [`StateMachine::evaluate`].
    fn evaluate(&self, operation: &[u8], reply: &mut Vec<u8>) -> bool;
    /// See [`StateMachine::snapshot`].
    fn snapshot(&self) -> Pieces;
    /// See [`StateMachine::snapshot_bytes`].
    fn snapshot_bytes(&self) -> usize;
}

impl<M: StateMachine> Executor for M {
    fn execute(&mut self, time: WallTime, operation: &[u8], reply: &mut Vec<u8>) {
        StateMachine::execute(self, time, operation, reply);
    }

    fn read(&self, operation: &[u8], reply: &mut Vec<u8>) {
        StateMachine::read(self, operation, reply);
    }

    fn evaluate(&self, operation: &[u8], reply: &mut Vec<u8>) -> bool {
        let before = reply.len();
        let is_known = StateMachine::evaluate(self, operation, reply);
        if !is_known {
            reply.truncate(before);
        }
        is_known
    }

    fn snapshot(&self) -> Pieces {
        StateMachine::snapshot(self)
    }

    fn snapshot_bytes(&self) -> usize {
        StateMachine::snapshot_bytes(self)
    }
}

type Restore = fn(&[u8]) -> Result<Box<dyn Executor>, Unreadable>;

/// A kind of state machine: everything that a node needs to run one.
#[derive(Clone, Copy)]
pub struct MachineKind {
    name: MachineName,
    describe: Describe,
    overwrites: Overwrites,
    empty: fn() -> Box<dyn Executor>,
    restore: Restore,
}

impl MachineKind {
    /// The machines of this type.
    #[must_use]
    pub fn of<M: StateMachine>() -> Self {
        let name = const {
            MachineName::new(M::NAME).expect("the name of a state machine is 1 to 32 of a-z, 0-9 and '-'")
        };
        Self {
            name,
            describe: describe::<M>,
            overwrites: overwrites::<M>,
            empty: || Box::new(M::default()),
            restore: |state| M::restore(state).map(|machine| -> Box<dyn Executor> { Box::new(machine) }),
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> MachineName {
        self.name
    }

    /// Class and footprint of an operation, `None` if the bytes are none.
    #[must_use]
    pub fn describe(&self, operation: &[u8]) -> Option<Description> {
        (self.describe)(operation)
    }

    /// [`describe`], as a function pointer for the protocol.
    #[must_use]
    pub const fn describe_function(&self) -> Describe {
        self.describe
    }

    /// [`overwrites`], as a function pointer for the protocol.
    #[must_use]
    pub const fn overwrites_function(&self) -> Overwrites {
        self.overwrites
    }

    /// A machine that has executed nothing.
    #[must_use]
    pub fn empty(&self) -> Box<dyn Executor> {
        (self.empty)()
    }

    /// The machine whose state a snapshot holds.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn restore(&self, state: &[u8]) -> Result<Box<dyn Executor>, Unreadable> {
        (self.restore)(state)
    }
}

impl fmt::Debug for MachineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MachineKind").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_types::{Footprint, key_hash};

    /// `s` and a key overwrites it; `d` and two keys claims to overwrite both.
    #[derive(Default)]
    struct Letters(Vec<u8>);

    impl StateMachine for Letters {
        const NAME: &'static str = "letters";

        fn class(operation: &[u8]) -> Option<Class> {
            match operation {
                [b's', _] | [b'd', _, _] => Some(Class::Overwrite),
                [b'u'] => Some(Class::Update),
                _ => None,
            }
        }

        fn footprint(operation: &[u8]) -> Footprint {
            Footprint::of(operation[1..].iter().map(|key| key_hash(&[*key])).collect())
        }

        fn execute(&mut self, _: WallTime, operation: &[u8], reply: &mut Vec<u8>) {
            self.0.extend_from_slice(operation);
            reply.push(self.0.len() as u8);
        }

        fn read(&self, _: &[u8], reply: &mut Vec<u8>) {
            reply.extend_from_slice(&self.0);
        }

        fn evaluate(&self, operation: &[u8], reply: &mut Vec<u8>) -> bool {
            reply.push(0);
            operation == b"u"
        }

        fn snapshot(&self) -> Pieces {
            let bytes = self.0.clone();
            Box::new(bytes.into_iter().map(|byte| vec![byte]))
        }

        fn restore(state: &[u8]) -> Result<Self, Unreadable> {
            if state.contains(&b'x') { Err(Unreadable("an x".to_owned())) } else { Ok(Self(state.to_vec())) }
        }
    }

    #[test]
    fn what_the_protocol_is_told() {
        let kind = MachineKind::of::<Letters>();
        let known = kind.describe(b"sa").unwrap();
        assert_eq!((known.class, known.footprint), (Class::Overwrite, Footprint::One(key_hash(b"a"))));
        assert_eq!(
            kind.describe(b"dab").map(|known| known.class),
            Some(Class::Merge),
            "two keys are no overwrite"
        );
        assert_eq!(kind.describe(b"?"), None);
        assert_eq!(kind.describe(&vec![b's'; BODY_BYTES_MAX + 1]), None);
        let overwrites = kind.overwrites_function();
        assert!(overwrites(b"sa", b"sa"));
        assert!(!overwrites(b"sa", b"sb") && !overwrites(b"dab", b"dab") && !overwrites(b"?", b"?"));
    }

    #[test]
    fn a_machine_behind_a_pointer() {
        let kind = MachineKind::of::<Letters>();
        let mut machine = kind.empty();
        let mut reply = Vec::new();
        machine.execute(WallTime(1), b"sa", &mut reply);
        assert_eq!(reply, [2]);
        assert!(machine.evaluate(b"u", &mut reply) && !machine.evaluate(b"sa", &mut reply));
        assert_eq!(reply, [2, 0], "what was appended in vain is gone");
        let state: Vec<u8> = machine.snapshot().flatten().collect();
        let restored = kind.restore(&state).map_err(|error| error.to_string()).expect("its own snapshot");
        reply.clear();
        restored.read(b"", &mut reply);
        assert_eq!(reply, b"sa");
        assert_eq!(kind.restore(b"x").err(), Some(Unreadable("an x".to_owned())));
        assert_eq!(format!("{kind:?}"), "MachineKind(\"letters\")");
    }
}
