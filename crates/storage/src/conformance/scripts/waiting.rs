//! Scripts of commands that may wait, where they do not: as in a transaction.

use super::{Script, WRONGTYPE};

pub(super) const SCRIPTS: &[Script] = &[AT_ONCE, WAITING_ERRORS];

const AT_ONCE: Script = &[
    ("BLPOP a 0", "nil array"),
    ("BRPOP a b 1.5", "nil array"),
    ("BLMOVE a b LEFT RIGHT 0", "nil"),
    ("BRPOPLPUSH a b 0", "nil"),
    ("BLMPOP 0 2 a b LEFT", "nil array"),
    ("BZPOPMIN a 0", "nil array"),
    ("BZPOPMAX a b 0", "nil array"),
    ("BZMPOP 0 1 a MIN COUNT 2", "nil array"),
    ("RPUSH b 1 2 3 4 5 6 7", "7"),
    ("BLPOP a b c 0", "['b' '1']"),
    ("BRPOP b b 0", "['b' '7']"),
    ("BLMOVE b c LEFT LEFT 0", "'2'"),
    ("BRPOPLPUSH b c 0", "'6'"),
    ("LRANGE c 0 -1", "['6' '2']"),
    ("BLMPOP 1 3 a b c RIGHT COUNT 2", "['b' ['5' '4']]"),
    ("BLMPOP 0.1 2 a b LEFT", "['b' ['3']]"),
    ("EXISTS b", "0"),
    ("BRPOPLPUSH c c 0", "'2'"),
    ("LRANGE c 0 -1", "['2' '6']"),
    ("ZADD z 1 a 2 b 3 c 4 d", "4"),
    ("BZPOPMIN y z 0", "['z' 'a' ,1]"),
    ("BZPOPMAX z 0", "['z' 'd' ,4]"),
    ("BZMPOP 0 2 y z MAX COUNT 9", "['z' [['c' ,3] ['b' ,2]]]"),
    ("EXISTS z", "0"),
    ("DBSIZE", "1"),
];

const WAITING_ERRORS: Script = &[
    ("SET s x", "OK"),
    ("BLPOP s 0", WRONGTYPE),
    ("BLPOP a s 0", WRONGTYPE),
    ("BZPOPMIN s 0", WRONGTYPE),
    ("BLMOVE a s LEFT LEFT 0", "nil"),
    ("RPUSH a 1", "1"),
    ("BLMOVE a s LEFT LEFT 0", WRONGTYPE),
    ("LLEN a", "1"),
    ("BZPOPMIN a 0", WRONGTYPE),
    ("BLPOP a -1", "ERR timeout is negative"),
    ("BLPOP a x", "ERR timeout is not a float or out of range"),
    ("BLPOP a inf", "ERR timeout is out of range"),
    ("BLPOP a", "ERR wrong number of arguments for 'blpop' command"),
    ("BLMOVE a b UP LEFT 0", "ERR syntax error"),
    ("BLMOVE a b LEFT LEFT x", "ERR timeout is not a float or out of range"),
    ("BLMPOP 0 0 a LEFT", "ERR numkeys should be greater than 0"),
    ("BLMPOP x 0 a LEFT", "ERR timeout is not a float or out of range"),
    ("BLMPOP 0 1 a UP", "ERR syntax error"),
    ("BLMPOP 0 1 a LEFT COUNT 0", "ERR count should be greater than 0"),
    ("BZMPOP 0 1 a LEFT", "ERR syntax error"),
    ("BZMPOP 0 2 a MIN", "ERR syntax error"),
    ("BLIND BLPOP a 0", "ERR BLIND needs an update, and 'blpop' is none"),
    ("LLEN a", "1"),
];
