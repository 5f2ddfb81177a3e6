//! What commands on keys of any type answer.

use super::{NOT_INTEGER, SYNTAX, Script, WRONGTYPE};

pub(super) const SCRIPTS: &[Script] =
    &[COPY, OBJECT, MEMORY, SORT, SORT_BY, SORT_STORE, RESTORE, GEORADIUS, STEPS];

const NO_DATABASE: &str = "ERR DB index is out of range";
const SAME: &str = "ERR source and destination objects are the same";
const NOT_DOUBLE: &str = "ERR One or more scores can't be converted into double";
const NO_FREQUENCY: &str = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
                            that when switching between policies at runtime LRU and LFU data will take some time to \
                            adjust.";

const COPY: Script = &[
    ("COPY none k", "0"),
    ("SET k v PX 100000", "OK"),
    ("COPY k l", "1"),
    ("GET l", "'v'"),
    ("PTTL l", "100000"),
    ("COPY k l", "0"),
    ("RPUSH list a b", "2"),
    ("COPY list l", "0"),
    ("COPY list l REPLACE", "1"),
    ("TTL l", "-1"),
    ("RPUSH l c", "3"),
    ("LRANGE list 0 -1", "['a' 'b']"),
    ("LRANGE l 0 -1", "['a' 'b' 'c']"),
    ("HSET hash f v", "1"),
    ("PEXPIRE hash 5000", "1"),
    ("COPY hash l db 0 replace", "1"),
    ("PTTL l", "5000"),
    ("HGETALL l", "{'f': 'v'}"),
    ("wait", "6000"),
    ("EXISTS hash l", "0"),
    ("COPY hash k REPLACE", "0"),
    ("EXISTS k", "1"),
    ("SADD s m", "1"),
    ("ZADD z 1 m", "1"),
    ("COPY s s2", "1"),
    ("COPY z z2", "1"),
    ("SMEMBERS s2", "#{'m'}"),
    ("ZRANGE z2 0 -1 WITHSCORES", "('m': ,1)"),
    ("COPY k k", SAME),
    ("COPY k l DB 16", NO_DATABASE),
    ("COPY k l DB 99999999999", "ERR value is out of range, value must between -2147483648 and 2147483647"),
    ("COPY k l DB x", NOT_INTEGER),
    ("COPY k l DB", SYNTAX),
    ("COPY k l NX", SYNTAX),
    ("TOUCH k none k", "2"),
];

const OBJECT: Script = &[
    ("OBJECT ENCODING none", "nil"),
    ("OBJECT FREQ none", "nil"),
    ("SET k 12", "OK"),
    ("OBJECT ENCODING k", "'int'"),
    ("OBJECT refcount k", "1"),
    ("OBJECT IDLETIME k", "0"),
    ("OBJECT FREQ k", NO_FREQUENCY),
    ("APPEND k x", "3"),
    ("OBJECT ENCODING k", "'embstr'"),
    ("SETRANGE k 60 x", "61"),
    ("OBJECT ENCODING k", "'raw'"),
    ("RPUSH l a", "1"),
    ("OBJECT ENCODING l", "'listpack'"),
    ("RPUSH l 12345678901234567890123456789012345678901234567890123456789012345", "2"),
    ("OBJECT ENCODING l", "'quicklist'"),
    ("SADD s 1 2", "2"),
    ("OBJECT ENCODING s", "'intset'"),
    ("SADD s a", "1"),
    ("OBJECT ENCODING s", "'listpack'"),
    ("SADD s 12345678901234567890123456789012345678901234567890123456789012345", "1"),
    ("OBJECT ENCODING s", "'hashtable'"),
    ("HSET h f v", "1"),
    ("OBJECT ENCODING h", "'listpack'"),
    ("HSET h f 12345678901234567890123456789012345678901234567890123456789012345", "0"),
    ("OBJECT ENCODING h", "'hashtable'"),
    ("ZADD z 1 m", "1"),
    ("OBJECT ENCODING z", "'listpack'"),
    ("ZADD z 1 12345678901234567890123456789012345678901234567890123456789012345", "1"),
    ("OBJECT ENCODING z", "'skiplist'"),
    ("OBJECT x", "ERR unknown subcommand 'x'. Try OBJECT HELP."),
    ("OBJECT ENCODING", "ERR wrong number of arguments for 'object|encoding' command"),
    ("OBJECT FREQ a b", "ERR wrong number of arguments for 'object|freq' command"),
];

const MEMORY: Script = &[
    ("MEMORY USAGE none", "nil"),
    ("MEMORY USAGE none SAMPLES 0 samples 5", "nil"),
    ("MEMORY USAGE none SAMPLES", SYNTAX),
    ("MEMORY USAGE none SAMPLES -1", SYNTAX),
    ("MEMORY USAGE none SAMPLES x", NOT_INTEGER),
    ("MEMORY USAGE none x 1", SYNTAX),
    ("MEMORY USAGE", "ERR wrong number of arguments for 'memory|usage' command"),
];

const SORT: Script = &[
    ("SORT none", "[]"),
    ("RPUSH l 3 1 10 2", "4"),
    ("SORT l", "['1' '2' '3' '10']"),
    ("SORT_RO l DESC", "['10' '3' '2' '1']"),
    ("SORT l ALPHA", "['1' '10' '2' '3']"),
    ("SORT l LIMIT 1 2", "['2' '3']"),
    ("SORT l LIMIT -5 2", "['1' '2']"),
    ("SORT l LIMIT 2 -1", "['3' '10']"),
    ("SORT l LIMIT 9 2", "[]"),
    ("SORT l BY nosort", "['3' '1' '10' '2']"),
    ("SORT l BY nosort DESC LIMIT 0 2", "['2' '10']"),
    ("SORT l GET # GET none", "['1' nil '2' nil '3' nil '10' nil]"),
    ("RPUSH l x", "5"),
    ("SORT l", NOT_DOUBLE),
    ("SORT l ALPHA DESC LIMIT 0 1", "['x']"),
    ("RPUSH spaces 2 '' 1.5", "3"),
    ("SORT spaces", "['' '1.5' '2']"),
    ("ZADD z 3 1 2 5 1 3", "3"),
    ("SORT z", "['1' '3' '5']"),
    ("SORT z BY nosort", "['3' '5' '1']"),
    ("SORT z BY nosort DESC LIMIT 0 2", "['1' '5']"),
    ("SET k v", "OK"),
    ("SORT k", WRONGTYPE),
    ("SORT l LIMIT 1", SYNTAX),
    ("SORT l LIMIT 1 x", NOT_INTEGER),
    ("SORT l BY", SYNTAX),
    ("SORT l x", SYNTAX),
    ("SORT_RO l STORE k", SYNTAX),
];

const SORT_BY: Script = &[
    ("SADD s 1 2 3", "3"),
    ("MSET w_1 30 w_2 20 w_3 10 o_1 one o_2 two", "OK"),
    ("SORT s BY w_*", "['3' '2' '1']"),
    ("SORT s BY w_* GET o_*", "[nil 'two' 'one']"),
    ("SORT s BY w_* DESC GET # GET o_*", "['1' 'one' '2' 'two' '3' nil]"),
    ("HSET h_1 f 5 g a", "2"),
    ("HSET h_2 f 4 g b", "2"),
    ("SORT s BY h_*->f GET h_*->g", "[nil 'b' 'a']"),
    ("SORT s BY h_*->g ALPHA DESC", "['2' '1' '3']"),
    ("SORT s BY h_*->", "['1' '2' '3']"),
    ("SORT s BY o_* DESC", NOT_DOUBLE),
    ("SORT s BY o_* ALPHA", "['3' '1' '2']"),
    ("SORT s GET w_*->f", "[nil nil nil]"),
];

const SORT_STORE: Script = &[
    ("SADD s 3 1 2", "3"),
    ("SORT s STORE l", "3"),
    ("LRANGE l 0 -1", "['1' '2' '3']"),
    ("SORT s BY nosort STORE l", "3"),
    ("LRANGE l 0 -1", "['1' '2' '3']"),
    ("SET k_1 one", "OK"),
    ("SORT s DESC GET # GET k_* STORE s", "6"),
    ("LRANGE s 0 -1", "['3' '' '2' '' '1' 'one']"),
    ("PEXPIRE s 1000", "1"),
    ("SORT l LIMIT 0 2 STORE s", "2"),
    ("TTL s", "-1"),
    ("SORT none STORE s", "0"),
    ("EXISTS s", "0"),
    ("BLIND SORT l STORE s", "OK"),
    ("LLEN s", "3"),
    ("BLIND SORT l", "ERR BLIND needs an update, and 'sort' is none"),
];

const RESTORE: Script = &[
    ("DUMP none", "nil"),
    ("SET k a", "OK"),
    ("DUMP k", r"'\x00\x01a\n\x00\xbf\xfe\xef\x9b\x8f6}\xb4'"),
    ("RESTORE k 0 \0\x01b\n\0\0\0\0\0\0\0\0\0", "BUSYKEY Target key name already exists."),
    ("RESTORE k 500 \0\x01b\n\0\0\0\0\0\0\0\0\0 REPLACE IDLETIME 5 FREQ 255", "OK"),
    ("GET k", "'b'"),
    ("PTTL k", "500"),
    ("RESTORE k 5 \0\x01b\n\0\0\0\0\0\0\0\0\0 REPLACE ABSTTL", "OK"),
    ("EXISTS k", "0"),
    ("RESTORE k 2000 \x01\x01\x01e\n\0\0\0\0\0\0\0\0\0 ABSTTL", "OK"),
    ("PEXPIRETIME k", "2000"),
    ("LRANGE k 0 -1", "['e']"),
    ("RESTORE l 0 \x01\0\n\0\0\0\0\0\0\0\0\0", "ERR Bad data format"),
    ("RESTORE l 0 a", "ERR DUMP payload version or checksum are wrong"),
    ("RESTORE l -1 a", "ERR Invalid TTL value, must be >= 0"),
    ("RESTORE l x a", NOT_INTEGER),
    ("RESTORE l 0 a IDLETIME -1", "ERR Invalid IDLETIME value, must be >= 0"),
    ("RESTORE l 0 a FREQ 256", "ERR Invalid FREQ value, must be >= 0 and <= 255"),
    ("RESTORE l 0 a FREQ", SYNTAX),
    ("RESTORE l 0 a NX", SYNTAX),
];

const STORE_ANSWERS: &str =
    "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options";

const GEORADIUS: Script = &[
    ("GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", "2"),
    ("GEORADIUS g 15 37 200 km ASC", "['Catania' 'Palermo']"),
    ("GEORADIUS g 15 37 200 km STORE d", "2"),
    ("ZRANGE d 0 -1", "['Palermo' 'Catania']"),
    ("GEORADIUSBYMEMBER g Catania 100 km STORE a STOREDIST d", "1"),
    ("EXISTS a", "0"),
    ("ZRANGE d 0 -1 WITHSCORES", "('Catania': ,0)"),
    ("GEORADIUS none 15 37 200 km STORE d", "0"),
    ("EXISTS d", "0"),
    ("GEORADIUS g 15 37 200 km STORE d WITHDIST", STORE_ANSWERS),
    ("GEORADIUS g 15 37 200 km STORE", SYNTAX),
    ("GEORADIUSBYMEMBER g none 200 km", "ERR could not decode requested zset member"),
    ("GEORADIUS g 15 37 200 km ANY", "ERR the ANY argument requires COUNT argument"),
];

const STEPS: Script = &[
    ("HSET h f 1 g 2", "2"),
    ("HSCAN h 0 NOVALUES", "['0' ['f' 'g']]"),
    ("HSCAN h 0 MATCH g COUNT 5 NOVALUES", "['0' ['g']]"),
    ("HSCAN none 0 NOVALUES", "['0' []]"),
    ("ZADD z 1 a 2 b", "2"),
    ("ZSCAN z 0 NOSCORES", "['0' ['a' 'b']]"),
    ("HSCAN h 0 NOSCORES", SYNTAX),
];
