//! Scripts of commands on HyperLogLogs.

use super::{Script, WRONGTYPE};

pub(super) const SCRIPTS: &[Script] = &[PFADD, PFMERGE, FORMS, WRONG_TYPE, BLIND];

const NONE: &str = "WRONGTYPE Key is not a valid HyperLogLog string value.";
const CORRUPT: &str = "INVALIDOBJ Corrupted HLL object detected";

const PFADD: Script = &[
    ("PFCOUNT h", "0"),
    ("PFCOUNT h i", "0"),
    ("PFADD h", "1"),
    ("GET h", r"'HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff'"),
    ("PFADD h", "0"),
    ("PFCOUNT h", "0"),
    ("PFADD h a b c d e f g", "1"),
    ("PFCOUNT h", "7"),
    ("PFADD h a b c d e f g", "0"),
    ("PFADD h a x", "1"),
    ("PFCOUNT h", "8"),
    // As Redis 7.0 has it but for its estimate.
    ("DEL h", "1"),
    ("PFADD h a", "1"),
    ("GET h", r"'HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80q\xa6\x84NW'"),
    ("PEXPIRE h 100", "1"),
    ("PFADD h b", "1"),
    ("PTTL h", "100"),
    ("TYPE h", "+string"),
    ("PFADD i a", "1"),
    ("PFCOUNT h i none", "2"),
    ("PFCOUNT i i i", "1"),
    ("wait", "101"),
    ("PFCOUNT h i", "1"),
    ("PFADD h", "1"),
    ("PFCOUNT h", "0"),
];

const PFMERGE: Script = &[
    ("PFMERGE d", "OK"),
    ("PFCOUNT d", "0"),
    ("PFADD a 1 2 3", "1"),
    ("PFADD b 3 4 5", "1"),
    ("PFMERGE d a b none", "OK"),
    ("PFCOUNT d", "5"),
    ("PFCOUNT a b", "5"),
    ("PEXPIRE d 100", "1"),
    ("PFADD c 6", "1"),
    ("PFMERGE d c", "OK"),
    ("PFCOUNT d", "6"),
    ("PTTL d", "100"),
    ("PFMERGE new d d", "OK"),
    ("PTTL new", "-1"),
    ("PFCOUNT new", "6"),
    ("EXISTS none", "0"),
];

/// What is dense stays dense, and makes dense what it is added to.
const FORMS: Script = &[
    ("PFADD h a", "1"),
    ("STRLEN h", "21"),
    ("PFADD h b", "1"),
    ("SETRANGE dense 12303 ''", "0"),
    ("SETRANGE dense 0 HYLL", "4"),
    ("SETBIT dense 98431 0", "0"),
    ("PFCOUNT dense", "0"),
    ("PFADD dense a", "1"),
    ("GETRANGE dense 8 15", r"'\x00\x00\x00\x00\x00\x00\x00\x80'"),
    ("PFADD dense a", "0"),
    ("PFCOUNT dense h", "2"),
    ("PFMERGE h dense", "OK"),
    ("STRLEN h", "12304"),
    ("PFCOUNT h", "2"),
    ("PFMERGE dense i", "OK"),
    ("STRLEN dense", "12304"),
];

const WRONG_TYPE: Script = &[
    ("HSET h f v", "1"),
    ("PFADD h a", WRONGTYPE),
    ("PFCOUNT h", WRONGTYPE),
    ("PFMERGE h", WRONGTYPE),
    ("PFMERGE d h", WRONGTYPE),
    ("SET s text", "OK"),
    ("PFADD s a", NONE),
    ("PFCOUNT s", NONE),
    ("PFCOUNT none s h", NONE),
    ("PFMERGE s", NONE),
    ("PFMERGE d s", NONE),
    ("EXISTS d", "0"),
    ("PFADD p a", "1"),
    ("APPEND p x", "22"),
    ("PFADD p a", CORRUPT),
    ("PFADD p", CORRUPT),
    ("PFCOUNT p", CORRUPT),
    ("PFCOUNT p s", CORRUPT),
    ("PFMERGE d p", CORRUPT),
    ("EXISTS d", "0"),
    ("SETRANGE p 4 x", "22"),
    ("PFCOUNT p", NONE),
];

const BLIND: Script = &[
    ("BLIND PFADD h a b", "OK"),
    ("BLIND PFMERGE d h", "OK"),
    ("PFCOUNT d", "2"),
    ("SET s text", "OK"),
    ("BLIND PFADD s a", "OK"),
    ("BLIND PFMERGE d s", "OK"),
    ("PFCOUNT d", "2"),
    ("GET s", "'text'"),
];
