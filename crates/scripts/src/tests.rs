use super::*;

/// Answers what it is told, and counts.
#[derive(Default)]
struct Echo {
    calls: usize,
    is_doomed: bool,
}

impl Host for Echo {
    fn call(&mut self, words: &[&[u8]], _: bool) -> (Reply, u64) {
        self.calls += 1;
        match words {
            [b"fail", ..] => (Reply::Error(b"ERR failed".to_vec()), 0),
            [b"doom", ..] => {
                self.is_doomed = true;
                (Reply::Nil, 0)
            }
            [b"double", ..] => (Reply::Double(0.1), 0),
            words => (Reply::Array(words.iter().map(|word| Reply::Bulk(word.to_vec())).collect()), 0),
        }
    }

    fn is_doomed(&self) -> bool {
        self.is_doomed
    }
}

fn run_with(text: &str, fuel: u64) -> Outcome {
    let input = Input { keys: &[b"k"], arguments: &[b"a", b"b"] };
    run(text.as_bytes(), input, Limits { fuel, seed: 7 << 60 }, &mut Echo::default())
}

/// What a script answers, as text: strings as they are, errors behind a minus.
fn show(text: &str) -> String {
    fn text_of(reply: &Reply) -> String {
        match reply {
            Reply::Bulk(bytes) | Reply::Status(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Reply::Error(bytes) => format!("-{}", String::from_utf8_lossy(bytes)),
            Reply::Integer(integer) => integer.to_string(),
            Reply::Array(parts) => parts.iter().map(text_of).collect::<Vec<_>>().join(" "),
            other => format!("{other:?}"),
        }
    }
    match run_with(text, 10_000_000) {
        Outcome::Reply(reply) => text_of(&reply),
        Outcome::OutOfFuel => "out of fuel".to_owned(),
    }
}

#[test]
fn scripts_answer_as_in_redis() {
    for (text, expected) in [
        ("return 1", "1"),
        ("return 3.99", "3"),
        ("return redis.call('x', 1.5, KEYS[1])", "x 1.5 k"),
        ("return {redis.pcall('fail').err}", "ERR failed"),
        ("return {double = 0.1}", "Double(0.1)"),
        ("return redis.call('double')", "0.10000000000000001"),
        ("redis.setresp(3) return redis.call('double')", "Double(0.1)"),
        ("return cjson.encode({a = {1, 2, cjson.null}})", "{\"a\":[1,2,null]}"),
        ("return cjson.encode({})", "{}"),
        ("return cjson.encode(1e15)", "1e+15"),
        ("return cjson.decode('[1, 2.5, \"\\\\u00e9\"]')[3]", "\u{e9}"),
        ("return bit.tohex(bit.band(7, 3))", "00000003"),
        ("return {struct.unpack('>I2', struct.pack('>I2', 258))}", "258 3"),
        ("return cmsgpack.unpack(cmsgpack.pack({1, 'x'}))[2]", "x"),
        ("return redis.sha1hex('')", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        ("return tostring(0/0)", "-nan"),
        ("return {pcall(error, {err = 'q'})}", "Nil q"),
    ] {
        assert_eq!(show(text), expected, "{text}");
    }
}

#[test]
fn errors_have_the_words_of_redis() {
    for (text, expected) in [
        ("return redis.call('fail')", "-ERR failed script:"),
        ("x = 1", "-ERR user_script:1: Attempt to modify a readonly table script:"),
        ("string.x = 1", "-ERR user_script:1: Attempt to modify a readonly table script:"),
        ("rawset(_G, 'a', 1)", "-ERR Attempt to modify a readonly table script:"),
        (
            "return x",
            "-ERR user_script:1: Script attempted to access nonexistent global variable 'x' script:",
        ),
        (
            "return load('return 1')",
            "-ERR user_script:1: Script attempted to access nonexistent global variable 'load'",
        ),
        (
            "return cjson.decode('[1')",
            "-ERR user_script:1: Expected comma or array end but found T_END at character 3",
        ),
        ("return redis.log()", "-ERR redis.log() requires two arguments or more. script:"),
        ("retrun 1", "-ERR Error compiling script (new function): user_script:1: '=' expected near '1'"),
    ] {
        assert!(show(text).starts_with(expected), "{text}: {}", show(text));
    }
}

#[test]
fn nothing_goes_on_without_fuel() {
    for text in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "coroutine.wrap(function() while true do end end)()",
        "return string.rep('x', 1e9)",
        "local s = 'x' while true do s = s .. s end",
        "return string.find(string.rep('a', 100000), string.rep('a?', 100) .. 'b')",
        "local t = {} while true do t[{}] = 1 end",
        "redis.call('doom') return 1",
    ] {
        assert_eq!(show(text), "out of fuel", "{text}");
    }
}

/// A script takes the same fuel each time, to the unit.
#[test]
fn fuel_is_exact() {
    let text =
        "local t = {} for i = 1, 100 do t[i] = tostring({}) .. i end return redis.call('x', table.concat(t))";
    let least = (0..1 << 20).collect::<Vec<u64>>();
    let enough = least.partition_point(|fuel| run_with(text, *fuel) == Outcome::OutOfFuel);
    assert!(enough > 1_000 && enough < 100_000, "{enough}");
    for _ in 0..3 {
        assert_eq!(run_with(text, enough as u64 - 1), Outcome::OutOfFuel);
        assert_ne!(run_with(text, enough as u64), Outcome::OutOfFuel);
    }
}

/// What takes long must take fuel, too: else a line of script stops all replicas for minutes. A tenth of a second of one
/// processor is what a script may take with all its fuel; here it has a hundredth of that, on a machine that does other things.
#[test]
fn fuel_bounds_time() {
    const FUEL: u64 = 100_000;
    let spread = |call: &str| {
        format!(
            "local t = {{}} for i = 1, 7900 do t[i] = i end local function f(...) for i = 1, 1e9 do {call} end end f(unpack(t))"
        )
    };
    let scripts = [
        "local t = {} for i = 1, 1e9 do unpack(t, 1, 7900) end".to_owned(),
        "local s = string.rep('x', 7900) for i = 1, 1e9 do s:byte(1, -1) end".to_owned(),
        spread("select(-1, ...)"),
        spread("math.max(...)"),
        spread("(function(...) return ... end)(...)"),
        spread("bit.band(...)"),
        spread("redis.pcall('x', ...)"),
        "local function f(n, ...) return f(n, ...) end f(1, unpack({}, 1, 7900))".to_owned(),
        "local c = coroutine.wrap(function(...) while true do coroutine.yield(...) end end) \
         local function f(...) for i = 1, 1e9 do c(...) end end f(unpack({}, 1, 7900))"
            .to_owned(),
        "local t = {} for i = 1, 98 do t = setmetatable({}, {__index = t}) end for i = 1, 1e9 do local x = t.y end"
            .to_owned(),
        "local f = string.format for i = 1, 1e9 do f('%99.99f', 1e308) end".to_owned(),
        "local s = '0.' .. string.rep('1', 900) for i = 1, 1e9 do local x = s + 1 end".to_owned(),
        "for i = 1, 1e9 do tostring(1.7e308) end".to_owned(),
        "local t = {[string.rep('x', 1e5)] = 1} local a = {} for i = 1, 1e4 do a[i] = t end cjson.encode(a)".to_owned(),
        "local t = {} for i = 1, 100 do t[i] = t end cmsgpack.pack(t)".to_owned(),
        "local e = {err = string.rep('x', 1e5)} local t = {} for i = 1, 1e3 do t[i] = e end return t".to_owned(),
        "local t = {} for i = 1, 60 do t = {t, t} end return t".to_owned(),
        "local s = string.rep('x', 1e5) local t = {} for i = 1, 7900 do t[i] = s end redis.call('x', unpack(t))".to_owned(),
        // Compiling takes fuel, too.
        format!("if nil then {} end", "elseif nil then ".repeat(20_000)),
        format!("return {} 1", "a and ".repeat(20_000)),
        format!("{}{}{}", format!("local a{} ", ",b".repeat(190)).repeat(1), "x = x ".repeat(5_000), ""),
    ];
    for text in &scripts {
        let begin = std::time::Instant::now();
        let outcome = run_with(text, FUEL);
        let taken = begin.elapsed();
        let shown = &text[..text.len().min(80)];
        assert!(taken < core::time::Duration::from_secs(1), "{shown}: {taken:?}");
        assert_eq!(outcome, Outcome::OutOfFuel, "{shown}");
    }
}
