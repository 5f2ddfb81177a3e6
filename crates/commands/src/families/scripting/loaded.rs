//! Commands that run what has been loaded.

/// A command that runs something loaded, and one that runs it and changes nothing: their documentation, names, opcodes and what
/// is special in their rows of the table; and which error a bad number of keys is.
macro_rules! runs_loaded {
    (
        $(#[$doc:meta])* $run:ident = $opcode:literal, { $($row:tt)* }
        $(#[$read_doc:meta])* $read:ident = $read_opcode:literal, { $($read_row:tt)* }
        $bad_count:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $run<'a> {
            /// What is run, and its keys and arguments.
            pub call: super::ScriptCall<'a>,
            /// What its commands and `math.random` draw from: see [`Operation::seed_mut`](crate::Operation::seed_mut).
            pub seed: u64,
            /// Units that it may use.
            pub fuel: u64,
            /// What the node that has made the operation knows.
            pub terms: super::RunTerms,
        }

        crate::encoding::fields!($run<'a> = $opcode {
            call: super::ScriptCall<'a>,
            seed: crate::encoding::Seed,
            fuel: crate::encoding::Unsigned,
            terms: super::RunTerms
        });

        $(#[$read_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $read<'a> {
            /// What is run, and its keys and arguments.
            pub call: super::ScriptCall<'a>,
            /// Units that it may use.
            pub fuel: u64,
            /// The node that has made the operation knows that it may touch any key.
            pub owns_everything: bool,
            /// See [`RunTerms::user`](super::RunTerms::user).
            pub user: crate::calling_user::CallingUser,
        }

        impl<'a> crate::encoding::Encoding<'a> for $read<'a> {
            const OPCODE: crate::encoding::Opcode = $read_opcode;

            fn encode(&self, out: &mut Vec<u8>) {
                use crate::encoding::Field as _;
                super::ScriptCall::put(out, self.call);
                super::ReadBudget::put(out, (self.fuel, self.user));
                crate::encoding::Flag::put(out, self.owns_everything);
            }

            fn decode(
                _opcode: crate::encoding::Opcode,
                input: &mut &'a [u8],
            ) -> Result<Self, crate::primitive::Malformed> {
                use crate::encoding::Field as _;
                let call = super::ScriptCall::take(input)?;
                let (fuel, user) = super::ReadBudget::take(input)?;
                let owns_everything = crate::encoding::Flag::take(input)?;
                Ok(Self { call, fuel, owns_everything, user })
            }
        }

        impl<'a> crate::families::definition::Definition<'a> for $run<'a> {
            const SPECS: &'static [CommandSpec] = &[CommandSpec {
                $($row)*,
                parser: |_, words| {
                    let call = super::ScriptCall::parse(words, $bad_count)?;
                    let fuel = crate::limits::SCRIPT_FUEL;
                    Ok($run { call, seed: 0, fuel, terms: super::RunTerms::default() }.into())
                },
                ..super::RUNS
            }];

            fn keys(&self) -> crate::families::definition::KeyNames<'a> {
                super::footprint(self.terms.owns_everything, self.call.input())
            }

            fn values(&self) -> u32 {
                1
            }
        }

        impl<'a> crate::families::definition::UpdateCommand<'a> for $run<'a> {
            fn growth(&self, encoded: usize) -> usize {
                self.terms.growth(encoded)
            }

            fn seed_mut(&mut self) -> Option<&mut u64> {
                Some(&mut self.seed)
            }

            /// Any command may be called, so it is executed above the families: see `script_execution`.
            fn apply<K: crate::access::KeysMut>(
                &self,
                _keys: &mut K,
                _now_ms: u64,
                _reply: &mut Vec<u8>,
            ) -> crate::families::definition::ExecutionResult {
                Err(crate::error::ExecutionError::NotRead)
            }
        }

        impl<'a> crate::families::definition::Definition<'a> for $read<'a> {
            const SPECS: &'static [CommandSpec] = &[CommandSpec {
                $($read_row)*,
                parser: |_, words| {
                    let call = super::ScriptCall::parse(words, $bad_count)?;
                    let (fuel, user) = (crate::limits::SCRIPT_FUEL, crate::calling_user::CallingUser::default());
                    Ok($read { call, fuel, owns_everything: false, user }.into())
                },
                ..super::READS
            }];

            fn keys(&self) -> crate::families::definition::KeyNames<'a> {
                super::footprint(self.owns_everything, self.call.input())
            }

            fn values(&self) -> u32 {
                1
            }
        }

        impl crate::families::definition::ReadCommand for $read<'_> {
            fn work_on<K: crate::access::Keys>(&self, _keys: &K) -> usize {
                // A read apart from the engine sees only the keys that it names.
                if self.owns_everything { 0 } else { super::eval::SCRIPT_WORK }
            }

            /// Any command may be called, so it is executed above the families: see `script_execution`.
            fn read<K: crate::access::Keys>(
                &self,
                _keys: &K,
                _view: crate::families::definition::View,
                _reply: &mut Vec<u8>,
            ) -> crate::families::definition::ExecutionResult {
                Err(crate::error::ExecutionError::NotRead)
            }
        }
    };
}

pub(super) use runs_loaded;
