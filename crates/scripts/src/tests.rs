use super::*;

/// Answers what it is told, and counts.
#[derive(Default)]
struct Echo {
    calls: usize,
    is_doomed: bool,
}

impl Host for Echo {
    fn call(&mut self, words: &[&[u8]], _: bool, _: u64) -> (Reply, u64) {
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

const fn limits(fuel: u64, seed: u64) -> Limits {
    Limits { fuel, seed, counts_script_alone: true }
}

fn run_with(text: &str, fuel: u64) -> Outcome {
    let input = Input { keys: &[b"k"], arguments: &[b"a", b"b"] };
    run(text.as_bytes(), input, limits(fuel, 7 << 60), &mut Echo::default())
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
        ("local a = {} for i = 1, 7999 do a[i] = i end return #redis.call('x', unpack(a))", "8000"),
    ] {
        assert_eq!(show(text), expected, "{text}");
    }
}

#[test]
fn more_results_than_there_can_be_are_refused() {
    for bounds in ["-2^31, 2^31-1", "1, 2^31-1", "-2^31, -1", "-2^31+1, 2^31-1", "0, 2^31-1", "1, 10000"] {
        let text = format!("local ok, text = pcall(unpack, {{}}, {bounds}) return tostring(ok) .. text");
        assert_eq!(show(&text), "falsetoo many results to unpack", "{bounds}");
    }
    assert_eq!(show("return {unpack({7, 8, 9}, 2, 3)}"), "8 9");
    assert_eq!(show("return select('#', unpack({}, 2^31-2, 2^31-1))"), "2");
    assert_eq!(show("return select('#', unpack({}, -2^31, -2^31))"), "1");
    assert_eq!(show("return select('#', unpack({}, 3, 2))"), "0");
    assert_eq!(show("return select('#', string.byte('abc', -2^31, 2^31-1))"), "3");
}

#[test]
fn strings_with_zeros_have_an_order() {
    let ordered = ["", "\\0", "\\0\\0", "\\0a", "a", "a\\0", "a\\0\\0", "a\\0b", "a\\1", "b", "\\255"];
    for (at, one) in ordered.iter().enumerate() {
        for (other_at, other) in ordered.iter().enumerate() {
            let expected = if at < other_at { "1" } else { "0" };
            assert_eq!(
                show(&format!("return ('{one}' < '{other}') and 1 or 0")),
                expected,
                "{one:?} {other:?}"
            );
        }
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
        ("os.execute('ls')", "-ERR user_script:1: attempt to call field 'execute' (a nil value) script:"),
        ("return redis.log()", "-ERR redis.log() requires two arguments or more. script:"),
        ("retrun 1", "-ERR Error compiling script (new function): user_script:1: '=' expected near '1'"),
    ] {
        assert!(show(text).starts_with(expected), "{text}: {}", show(text));
    }
}

/// What a library has registered, or why it cannot be loaded.
fn registered(text: &str) -> Result<Vec<String>, String> {
    let functions = library(text.as_bytes(), limits(10_000_000, 0))?;
    Ok(functions.into_iter().map(|function| function.name).collect())
}

#[test]
fn libraries_are_loaded_as_by_valkey() {
    let register = "server.register_function('f', function() return 1 end)";
    for name in ["l", "\"l\""] {
        assert_eq!(registered(&format!("#!lua name={name}\n{register}")), Ok(vec!["f".to_owned()]), "{name}");
    }
    for (text, expected) in [
        ("#! name=l\n", "ERR Engine '' not found"),
        ("#!lua name=\"l\n", "ERR Library names can only contain"),
    ] {
        let refused = library_name(text.as_bytes()).unwrap_err();
        assert!(refused.contains(expected), "{text}: {refused}");
    }
    assert_eq!(library_name(b"#!lua name=\"l\"\n").as_deref(), Ok("l"));
    for (text, expected) in [
        ("#!lua name=l\nredis.setresp(3)", "nonexistent global variable 'setresp'"),
        ("#!lua name=l\nredis.set_repl(1)", "nonexistent global variable 'set_repl'"),
        ("#!lua name=l\nredis.acl_check_cmd('get')", "nonexistent global variable 'acl_check_cmd'"),
        (
            "#!lua name=l\nredis.register_function()",
            "ERR wrong number of arguments to server.register_function",
        ),
    ] {
        let refused = registered(text).unwrap_err();
        assert!(refused.contains(expected), "{text}: {refused}");
    }
}

#[test]
fn functions_register_no_others() {
    let text = "#!lua name=l\nlocal api = redis\n\
                api.register_function('f', function() api.register_function('g', function() end) end)";
    let input = Input { keys: &[], arguments: &[] };
    let outcome = call(text.as_bytes(), "f", input, limits(10_000_000, 0), &mut Echo::default());
    let Outcome::Reply(Reply::Error(text)) = outcome else { panic!("{outcome:?}") };
    let expected = "ERR server.register_function can only be called on FUNCTION LOAD command";
    assert!(String::from_utf8_lossy(&text).starts_with(expected));
}

/// Time is what a script has used up, equal everywhere.
#[test]
fn the_clock_is_fuel() {
    let text = "local t = os.clock() for i = 1, 1000 do end return tostring((os.clock() - t) * 1e8)";
    let first = show(text);
    let units: f64 = first.parse().unwrap();
    assert!((1_000.0..2_000.0).contains(&units), "{first}");
    assert_eq!(show(text), first);
    assert_eq!(show("while os.clock() < 0.05 do end return 1"), "1");
    assert_eq!(show("while os.clock() < 1 do end return 1"), "out of fuel");
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

/// What scripts can find out about the state that they run in: the fuel that everything has taken, numbers of objects, the
/// order of globals, chance, and what others may have left behind.
const LOOKS: &[&str] = &[
    "return 1",
    "return {KEYS[1], ARGV[1], ARGV[2], #KEYS}",
    "return tostring({}) .. tostring(function() end) .. tostring(coroutine.create(function() end))",
    "return {math.random(1000), math.random(1000)}",
    "local names = {} for name in pairs(_G) do names[#names + 1] = name end return names",
    "local names = {} for name in pairs(redis) do names[#names + 1] = name end return names",
    "local t = {} for i = 1, 3000 do t[i] = 'text ' .. i end return table.concat(t)",
    "return string.rep('x', 100000)",
    "local function deep(n) if n == 0 then return 0 end return 1 + deep(n - 1) end return deep(150)",
    "return select('#', unpack({}, 1, 5000))",
    "local words = {'x'} for i = 2, 300 do words[i] = i end return redis.call(unpack(words))",
    "local all = {} for i = 1, 300 do all[i] = redis.call('x', i) end return all",
    "return cjson.encode({1, 2, {a = cjson.null}})",
    "cjson.encode_max_depth(1) cjson.encode_sparse_array(true, 1, 1) cjson.decode_invalid_numbers(false) return 1",
    "return {pcall(cjson.encode, {{{}}}), cjson.encode_max_depth(), cjson.encode({[1] = 1, [90] = 2})}",
    "return cmsgpack.unpack(cmsgpack.pack({1, 2, 'three'}))",
    "return {bit.band(7, 3), struct.unpack('>I2', struct.pack('>I2', 258))}",
    "local first = type(redis.call('double')) redis.setresp(3) return {first, redis.call('double')}",
    "return redis.call('double')",
    "local first = cjson.encode_max_depth() cjson.encode_max_depth(first - 1) return first",
    "error('as it is')",
    "error({err = 'a table'})",
    "return redis.call('fail')",
    "return {redis.pcall('fail').err}",
    "return nosuch",
    "nosuch = 1",
    "return rawset(_G, 'nosuch', 1)",
    "return {pcall(rawset, redis, 'call', 1)}",
    "return {pcall(setmetatable, _G, {})}",
    "KEYS[1] = 'gone' ARGV = nil",
    "return {tostring(KEYS), tostring(ARGV), tostring({})}",
    "local t = {[KEYS] = 1, [{}] = 2, [{}] = 3, [ARGV] = 4} local r = {} for _, v in pairs(t) do r[#r + 1] = v end return r",
    // Of so many values this side cannot take note: an error of its own.
    "local words = {} for i = 1, 150 do words[i] = 'word ' .. i end
        local function call(n, ...)
            if n == 0 then return redis.call('x', ...) end
            return call(n - 1, unpack(words))
        end
        local function more(n, ...) if n == 0 then return redis.call(...) end return more(n - 1, 'x', unpack(words)) end
        return {type(pcall(call, 3)), type(pcall(more, 3)), type(pcall(redis.call, unpack(words, 1, 5000)))}",
    "local function more(n, ...)
            if n == 0 then return redis.call(...) end
            return more(n - 1, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', ...)
        end
        return {type(pcall(more, 600)), type(pcall(more, 640))}",
    "KEYS[1] = 'gone' KEYS.more = 1 return KEYS[1]",
    "string.nosuch = 1",
    "getmetatable('').__index = function() return 1 end",
    "local weak = setmetatable({}, {__mode = 'k'}) weak[{}] = 1 return next(weak) ~= nil",
    "local co = coroutine.wrap(function() coroutine.yield(1) end) return co()",
    "return ('key'):upper() .. ('arg'):rep(3)",
    "while true do end",
    "local t = {} while true do t[#t + 1] = ('x'):rep(1000) end",
    "redis.call('doom')",
    "local function f() return f() + 1 end return f()",
];

/// A script that answers what another one does, and all that could tell its state from another.
fn with_traces(text: &str) -> String {
    format!(
        "local answer = {{pcall(function() {text} end)}}
        return {{answer[1] and 1 or 0, answer[2], os.clock() * 1e8, tostring({{}}), math.random(1e6)}}"
    )
}

/// Whatever has run in a state, a script finds in it what it would find in a new one.
#[test]
fn states_that_have_run_scripts_cannot_be_told_from_new_ones() {
    let texts: Vec<String> = LOOKS.iter().flat_map(|text| [(*text).to_owned(), with_traces(text)]).collect();
    let ways: [(&[&[u8]], u64); 4] =
        [(&[b"a", b"b"], 3_000_000), (&[b"arg"], 3_000_000), (&[b"a", b"b"], 900), (&[b"a", b"b"], 20_000)];
    let run_in = |text: &str, way: usize, counts_script_alone: bool| {
        let (arguments, fuel) = ways[way];
        let limits = Limits { counts_script_alone, ..limits(fuel, 7 << 60) };
        run(text.as_bytes(), Input { keys: &[b"key"], arguments }, limits, &mut Echo::default())
    };
    let all = |run: &dyn Fn(&str, usize) -> Outcome| -> Vec<Vec<Outcome>> {
        texts.iter().map(|text| (0..ways.len()).map(|way| run(text, way)).collect()).collect()
    };
    let new = all(&|text, way| {
        idle::clear();
        run_in(text, way, true)
    });
    // Of builds before: no state is used twice.
    let once = all(&|text, way| run_in(text, way, false));
    assert_eq!(once, all(&|text, way| run_in(text, way, false)));
    let mut kept = 0;
    for (text, new) in texts.iter().zip(&new) {
        for round in 0..12 {
            kept += usize::from(idle::keeps(text.as_bytes(), Purpose::Script));
            assert_eq!(run_in(text, round % 4, true), new[round % 4], "{text}, round {round}");
        }
    }
    let ended = new.iter().flatten().filter(|outcome| **outcome != Outcome::OutOfFuel).count();
    // Each is kept that has not used up its fuel, and taken in the next round.
    assert!(kept + 3 * texts.len() > 3 * ended, "{kept} of {} were kept", 3 * ended);
}

/// A state serves as often as one likes: also after collections of all that it holds, which are seldom.
#[test]
fn states_stay_for_a_thousand_runs() {
    let library = "#!lua name=lib
        redis.register_function('f', function(keys, arguments) return redis.call('x', keys[1], arguments[1] .. 'y') end)";
    let scripts = [
        "return redis.call('x', KEYS[1], ARGV[1] .. 'y')",
        "return {pcall(redis.call, 'fail', ARGV[1]), tostring({}), math.random(9)}",
        "local co = coroutine.wrap(function(text) coroutine.yield(text) end) return co(ARGV[1])",
    ];
    let run_with = |text: &str, argument: usize| {
        let argument = format!("argument {argument}");
        let input = Input { keys: &[b"k"], arguments: &[argument.as_bytes()] };
        let limits = limits(1_000_000, 7 << 60);
        if text == library {
            call(text.as_bytes(), "f", input, limits, &mut Echo::default())
        } else {
            run(text.as_bytes(), input, limits, &mut Echo::default())
        }
    };
    for (text, purpose) in
        scripts.map(|text| (text, Purpose::Script)).into_iter().chain([(library, Purpose::Library)])
    {
        idle::clear();
        let new: Vec<_> = (0..7).map(|argument| run_with(text, argument)).collect();
        for round in 7..1_000 {
            assert!(idle::keeps(text.as_bytes(), purpose), "{text}, round {round}");
            assert_eq!(run_with(text, round % 7), new[round % 7], "{text}, round {round}");
        }
    }
}

/// A script uses up its fuel at the same step in any state: with each amount that is a little too little, or just enough.
#[test]
fn fuel_lasts_as_long_in_any_state() {
    for text in
        ["return 1", "return redis.call('x', KEYS[1])", "return cjson.encode({1, 2})", "error('as it is')"]
    {
        let run_with = |fuel: u64| {
            let input = Input { keys: &[b"k"], arguments: &[] };
            run(text.as_bytes(), input, limits(fuel, 3 << 60), &mut Echo::default())
        };
        let all = |before: &dyn Fn()| -> Vec<Outcome> {
            (0..1_200)
                .map(|fuel| {
                    before();
                    run_with(fuel)
                })
                .collect()
        };
        let new = all(&idle::clear);
        let again = all(&|| {
            run_with(100_000);
            assert!(idle::keeps(text.as_bytes(), Purpose::Script));
        });
        let differs = (0..1_200).find(|fuel| new[*fuel] != again[*fuel]);
        assert_eq!(differs, None, "{text}");
        let enough = new.iter().filter(|outcome| **outcome != Outcome::OutOfFuel).count();
        assert!((100..1_150).contains(&enough), "{text}: {enough}");
    }
}

/// Scripts put together of such parts, with any fuel: some stop in the middle.
#[test]
fn generated_scripts_find_the_same_in_any_state() {
    let mut prng = Prng(7);
    let mut kept = 0;
    for _ in 0..400 {
        let parts: Vec<&str> = (0..=prng.below(6)).map(|_| LOOKS[prng.below(LOOKS.len())]).collect();
        let part = |part: &&str| format!("all[#all + 1] = {{pcall(function() {part} end)}}\n");
        let parts: String = parts.iter().map(part).collect();
        let text = format!("local all = {{}} {parts} return {{all, os.clock() * 1e8, tostring(all)}}");
        let fuels = [3_000_000, prng.below(20_000) as u64, 3_000_000, prng.below(400_000) as u64];
        let run_with = |fuel: u64| {
            let input = Input { keys: &[b"k", b"l"], arguments: &[b"a"] };
            run(text.as_bytes(), input, limits(fuel, 3 << 60), &mut Echo::default())
        };
        let new = fuels.map(|fuel| {
            idle::clear();
            run_with(fuel)
        });
        for round in 0..8 {
            kept += usize::from(idle::keeps(text.as_bytes(), Purpose::Script));
            assert_eq!(run_with(fuels[round % 4]), new[round % 4], "{text}, round {round}");
        }
    }
    assert!(kept > 300, "{kept}");
}

/// Numbers that look like chance.
struct Prng(u64);

impl Prng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// A library finds nothing that calls before have left behind.
#[test]
fn libraries_are_new_each_time() {
    let text = b"#!lua name=lib
        local count, tables = 0, {}
        local first = math.random(1e6)
        redis.register_function('count', function(keys, arguments)
            count = count + 1 tables[#tables + 1] = {} keys.more = 1
            return {count, #tables, first, math.random(1e6), os.clock() * 1e8, tostring({}), arguments[1]}
        end)
        redis.register_function('fails', function() count = count + 1 error('as it is') end)
        redis.register_function('goes_on', function() while true do end end)
        pcall(redis.register_function, setmetatable({callback = function() end}, {__index = function(_, name)
            if name == 'function_name' then return {} end
        end}))";
    let call_with = |name: &str, seed: u64, fuel: u64, is_new: bool| {
        let input = Input { keys: &[b"k"], arguments: &[b"a"] };
        if is_new {
            idle::clear();
        }
        call(text, name, input, limits(fuel, seed), &mut Echo::default())
    };
    let cases = [("count", 7 << 60, 1_000_000), ("fails", 1 << 60, 1_000_000), ("count", 3 << 60, 1_000_000)];
    let others = [("goes_on", 3 << 60, 50_000), ("nosuch", 0, 50_000), ("count", 3 << 60, 100)];
    let cases: Vec<_> = cases.into_iter().chain(others).collect();
    let new: Vec<_> = cases.iter().map(|(name, seed, fuel)| call_with(name, *seed, *fuel, true)).collect();
    assert_ne!(new[0], new[2], "they have other seeds");
    for round in 0..30 {
        let at = round * 5 % cases.len();
        let (name, seed, fuel) = cases[at];
        assert_eq!(call_with(name, seed, fuel, false), new[at], "{name}, round {round}");
        let (name, seed, fuel) = cases[round % 3];
        assert_eq!(call_with(name, seed, fuel, false), new[round % 3], "{name}, round {round}");
        assert!(idle::keeps(text, Purpose::Library), "{name}, round {round}");
    }
}

/// All that a script could leave something in for the next one can be read alone.
#[test]
fn scripts_can_change_nothing_that_outlives_them() {
    let text = "local seen, open = {}, {}
        local function walk(value, path)
            if type(value) ~= 'table' or seen[value] or value == KEYS or value == ARGV then return end
            seen[value] = true
            if pcall(rawset, value, 'nosuch', 1) or pcall(setmetatable, value, {}) then open[#open + 1] = path end
            if getmetatable(value) then walk(getmetatable(value), path .. ' meta') end
            for name, part in next, value do walk(part, path .. '.' .. tostring(name)) end
        end
        walk(_G, '_G') walk(getmetatable(''), 'strings')
        local count = 0 for _ in pairs(seen) do count = count + 1 end
        return {table.concat(open, ' '), count}";
    assert_eq!(show(text), " 13");
}
