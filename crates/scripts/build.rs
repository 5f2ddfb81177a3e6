//! Builds the Lua of this crate: `lua/` has the sources of 5.1.5 with what `lua/README.md` says.

fn main() {
    println!("cargo::rerun-if-changed=lua");
    let mut sources: Vec<_> = std::fs::read_dir("lua")
        .expect("the folder of this crate")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    cc::Build::new()
        .files(sources)
        .define("LUA_USE_ULONGJMP", None)
        // Processors that fuse a multiplication and an addition would round once where others round twice.
        .flag("-ffp-contract=off")
        .flag("-fsigned-char")
        // Lua looks for sums that have overflowed after it has built them. The compiler is not to take that for impossible.
        .flag("-fwrapv")
        .std("gnu99")
        .opt_level(2)
        .warnings(false)
        .compile("syros-lua");
}
