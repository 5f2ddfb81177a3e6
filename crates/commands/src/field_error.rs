//! Errors of commands on fields of hashes that expire.

/// Why a command on fields that expire is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// FIELDS is not where it has to be.
    Missing,
    /// HEXPIRE of a number of fields that is no number, or below one.
    ExpireCountNotPositive,
    /// A number of fields that is no number, or below one.
    CountNotPositive,
    /// A number of fields that is not that of the words behind it.
    CountDiffers,
    /// HSETEX with several of its options that say when fields expire.
    SeveralExpiries,
    /// HSETEX with FNX and FXX.
    SeveralConditions,
}

impl FieldError {
    /// As Redis says it.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Missing => "ERR Mandatory argument FIELDS is missing or not at the right position",
            Self::ExpireCountNotPositive => "ERR Parameter `numFields` should be greater than 0",
            Self::CountNotPositive => "ERR Number of fields must be a positive integer",
            Self::CountDiffers => "ERR The `numfields` parameter must match the number of arguments",
            Self::SeveralExpiries => {
                "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"
            }
            Self::SeveralConditions => "ERR Only one of FXX or FNX arguments can be specified",
        }
    }
}
