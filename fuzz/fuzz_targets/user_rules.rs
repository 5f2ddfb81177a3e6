#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = syros_fuzz::targets::user_rules(bytes);
});
