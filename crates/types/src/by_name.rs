//! Enumerations whose values have names: shown by these, and read from them in letters of either case.

/// Implements `Display` and `FromStr` of an enumeration with `ALL` and `name`, and the error of a name that no value has.
macro_rules! by_name {
    ($kind:ident, $(#[$doc:meta])* $unknown:ident, $text:literal) => {
        impl core::fmt::Display for $kind {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())
            }
        }

        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $unknown;

        impl core::fmt::Display for $unknown {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str($text)
            }
        }

        impl core::error::Error for $unknown {}

        impl core::str::FromStr for $kind {
            type Err = $unknown;

            fn from_str(name: &str) -> Result<Self, $unknown> {
                Self::ALL.into_iter().find(|value| value.name().eq_ignore_ascii_case(name)).ok_or($unknown)
            }
        }
    };
}

pub(crate) use by_name;
