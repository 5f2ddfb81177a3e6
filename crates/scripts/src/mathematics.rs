//! The functions of mathematics that Lua calls.
//!
//! Those of the C library differ between machines in the last bit, and choose at run time what to compute with. These
//! are the same instructions everywhere.
#![expect(
    unsafe_code,
    reason = "a function that C calls needs a name that is not mangled, and that is all that is unsafe here: each takes and \
              returns numbers, touches no memory, and does not panic; the prefix keeps the names apart from all others"
)]

/// Exports functions of `libm` to Lua, with a prefix.
macro_rules! export {
    ($($name:ident = $function:ident ($($argument:ident),*);)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name($($argument: f64),*) -> f64 {
            libm::$function($($argument),*)
        })*
    };
}

export! {
    syros_sin = sin(n);
    syros_sinh = sinh(n);
    syros_cos = cos(n);
    syros_cosh = cosh(n);
    syros_tan = tan(n);
    syros_tanh = tanh(n);
    syros_asin = asin(n);
    syros_acos = acos(n);
    syros_atan = atan(n);
    syros_atan2 = atan2(y, x);
    syros_exp = exp(n);
    syros_log = log(n);
    syros_log10 = log10(n);
    syros_pow = pow(base, exponent);
}
