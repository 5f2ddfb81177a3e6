use super::*;
use std::time::Instant;

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

fn show(text: &str) -> String {
    format!("{:?}", run_with(text, 10_000_000))
}

#[test]
fn time() {
    let begun = Instant::now();
    for _ in 0..1_000 {
        std::hint::black_box(&State::new(b"", Purpose::Script).expect("a state"));
    }
    println!("a state {:?}", begun.elapsed() / 1_000);
    let begun = Instant::now();
    for _ in 0..1_000 {
        std::hint::black_box(&run_with("return redis.call('get', KEYS[1])", 1_000));
    }
    println!("a script {:?}", begun.elapsed() / 1_000);
}

#[test]
fn some() {
    for text in [
        "return 1",
        "return redis.call('x', 1.5, KEYS[1])",
        "return redis.call('fail')",
        "return {redis.pcall('fail').err}",
        "return tostring({})",
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "return string.rep('x', 1e9)",
        "local s='x' while true do s=s..s end",
        "redis.call('doom') return 1",
        "x=1",
        "return x",
        "return cjson.encode({a={1,2}})",
        "return cjson.decode('[1')",
        "return bit.tohex(bit.band(7,3))",
        "return struct.pack('>I2',5)",
        "return cmsgpack.pack({1,2})",
        "return math.random(100)",
        "return 2^0.5",
        "for k in pairs({a=1}) do end return table.concat({1,2},',')",
        "error('x')",
        "retrun 1",
        "return {double=0.1}",
        "redis.setresp(3) return redis.call('double')",
        "return redis.sha1hex('')",
        "return redis.log()",
        "return coroutine.wrap(function() while true do end end)()",
        "return string.find(string.rep('a',100000), string.rep('a?',100)..'b')",
        "return string.find('a', string.rep('a?',1000)..'b')",
        "local t={} for i=1,100000 do t[i]=i end table.sort(t,function(a,b) return a>b end) return t[1]",
        "string.x=1",
        "rawset(_G,'a',1)",
        "setmetatable(_G,{})",
        "table.insert(redis,1)",
        "getmetatable('').x=1",
    ] {
        println!("{text}\n    {}", show(text).chars().take(300).collect::<String>());
    }
}
