//! Scripts of commands on streams.

use super::{NO_SUCH_KEY, Script};

const WRONGTYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";
const NOT_GREATER: &str = "ERR The ID specified in XADD is equal or smaller than the target stream top item";
const NO_STREAM: &str = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
                         the MKSTREAM option to create an empty stream automatically.";

pub(super) const SCRIPTS: &[Script] = &[
    ENTRIES,
    IDS_OF_NOW,
    TRIMS,
    EMPTY_STREAMS,
    READS,
    GROUPS,
    CLAIMS,
    AUTO_CLAIMS,
    LAGS,
    STREAM_WRONG_TYPE,
    STREAM_LIFETIME,
    STREAM_BLIND,
    STREAM_DUMP,
];

const ENTRIES: Script = &[
    ("XLEN s", "0"),
    ("XRANGE s - +", "[]"),
    ("XADD s NOMKSTREAM 1-1 f v", "nil"),
    ("EXISTS s", "0"),
    ("XADD s 1-1 f v", "'1-1'"),
    ("TYPE s", "+stream"),
    ("XADD s 1-1 f v", NOT_GREATER),
    ("XADD s 0-5 f v", NOT_GREATER),
    ("XADD s 1-* f v f w", "'1-2'"),
    ("XADD s 0-* f v", NOT_GREATER),
    ("XADD s 3 '' ''", "'3-0'"),
    ("XADD s NOMKSTREAM 3-18446744073709551615 f v", "'3-18446744073709551615'"),
    ("XADD s 3-* f v", NOT_GREATER),
    ("XADD s 4-* f v", "'4-0'"),
    ("XLEN s", "5"),
    ("XRANGE s - 3-0", "[['1-1' ['f' 'v']] ['1-2' ['f' 'v' 'f' 'w']] ['3-0' ['' '']]]"),
    ("XREVRANGE s 3 1 COUNT 1", "[['3-18446744073709551615' ['f' 'v']]]"),
    ("XRANGE s (1-1 (3 COUNT 9", "[['1-2' ['f' 'v' 'f' 'w']] ['3-0' ['' '']]]"),
    ("XRANGE s + -", "[]"),
    ("XRANGE s - + COUNT 0", "nil array"),
    ("XRANGE s - + COUNT -1", "nil array"),
    ("XRANGE s x +", INVALID_ID),
    ("XDEL s 1-1 9-9 1-1 3-0", "2"),
    ("XDEL s 1-2 x", INVALID_ID),
    ("XDEL none x", "0"),
    ("XLEN s", "3"),
    ("XADD s 18446744073709551615-18446744073709551615 f v", "'18446744073709551615-18446744073709551615'"),
    ("XADD s * f v", "ERR The stream has exhausted the last possible ID, unable to add more items"),
];

const IDS_OF_NOW: Script = &[
    ("XADD s * f v", "'1000-0'"),
    ("XADD s * f v", "'1000-1'"),
    ("wait", "5"),
    ("XADD s * f v", "'1005-0'"),
    ("XADD s 2000-7 f v", "'2000-7'"),
    // Ids do not go back with the clock.
    ("XADD s * f v", "'2000-8'"),
    ("XADD s 2000-18446744073709551615 f v", "'2000-18446744073709551615'"),
    ("XADD s * f v", "'2001-0'"),
];

const TRIMS: Script = &[
    ("XADD s 1-1 f v", "'1-1'"),
    ("XADD s 2-1 f v", "'2-1'"),
    ("XADD s 3-1 f v", "'3-1'"),
    ("XADD s MAXLEN 2 4-1 f v", "'4-1'"),
    ("XRANGE s - +", "[['3-1' ['f' 'v']] ['4-1' ['f' 'v']]]"),
    // Only when there are more than a hundred too many.
    ("XTRIM s MAXLEN ~ 0", "0"),
    ("XTRIM s MINID = 4", "1"),
    ("XTRIM s MAXLEN 5", "0"),
    ("XTRIM none MAXLEN 5", "0"),
    ("XADD s MINID 5 5-1 f v", "'5-1'"),
    ("XLEN s", "1"),
    ("XTRIM s MAXLEN 0", "1"),
    ("XLEN s", "0"),
    ("EXISTS s", "1"),
    ("XADD s 5-* f v", "'5-2'"),
    ("XTRIM s MAXLEN 1 LIMIT 1", "ERR syntax error, LIMIT cannot be used without the special ~ option"),
];

/// A stream stays without entries, and knows what it had.
const EMPTY_STREAMS: Script = &[
    ("XGROUP CREATE s g $ MKSTREAM", "OK"),
    ("TYPE s", "+stream"),
    ("XLEN s", "0"),
    ("DBSIZE", "1"),
    ("XGROUP DESTROY s g", "1"),
    ("EXISTS s", "1"),
    ("XADD t MAXLEN 0 5-1 f v", "'5-1'"),
    (
        "XINFO STREAM t",
        "{'length': 0 'radix-tree-keys': 0 'radix-tree-nodes': 1 'last-generated-id': '5-1' \
                        'max-deleted-entry-id': '0-0' 'entries-added': 1 'recorded-first-entry-id': '0-0' 'groups': 0 \
                        'first-entry': nil 'last-entry': nil}",
    ),
    ("XADD t 5-1 f v", NOT_GREATER),
    ("XADD t 6-1 f v", "'6-1'"),
    ("XDEL t 6-1", "1"),
    ("XSETID t 6-0", "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"),
    ("XSETID t 9-9 ENTRIESADDED 7 MAXDELETEDID 8-8", "OK"),
    ("XSETID none 1", NO_SUCH_KEY),
    ("XADD t 9-* f v", "'9-10'"),
    ("XSETID t 9-9", "ERR The ID specified in XSETID is smaller than the target stream top item"),
    (
        "XSETID t 9-10 ENTRIESADDED 0",
        "ERR The entries_added specified in XSETID is smaller than the target stream length",
    ),
    ("RENAME t u", "OK"),
    (
        "XINFO STREAM u",
        "{'length': 1 'radix-tree-keys': 1 'radix-tree-nodes': 2 'last-generated-id': '9-10' \
                        'max-deleted-entry-id': '8-8' 'entries-added': 8 'recorded-first-entry-id': '9-10' 'groups': 0 \
                        'first-entry': ['9-10' ['f' 'v']] 'last-entry': ['9-10' ['f' 'v']]}",
    ),
    ("DEL s u", "2"),
    ("XINFO STREAM s", NO_SUCH_KEY),
    ("DBSIZE", "0"),
];

const READS: Script = &[
    ("XREAD STREAMS s 0", "nil array"),
    ("XADD s 1-1 f v", "'1-1'"),
    ("XADD s 2-1 f w", "'2-1'"),
    ("XADD t 1-2 f x", "'1-2'"),
    ("XREAD STREAMS s 0", "<'s': [['1-1' ['f' 'v']] ['2-1' ['f' 'w']]]>"),
    ("XREAD COUNT 1 STREAMS s none t 1-1 0 0", "<'s': [['2-1' ['f' 'w']]] 't': [['1-2' ['f' 'x']]]>"),
    ("XREAD BLOCK 0 COUNT 1 STREAMS s t 2-1 1", "<'t': [['1-2' ['f' 'x']]]>"),
    ("XREAD STREAMS s t $ $", "nil array"),
    ("XREAD STREAMS s t + 9", "<'s': [['2-1' ['f' 'w']]]>"),
    (
        "XREAD STREAMS s >",
        "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
    ),
];

const GROUPS: Script = &[
    ("XGROUP CREATE s g 0", NO_STREAM),
    ("XADD s 1-1 f v", "'1-1'"),
    ("XADD s 2-1 f w", "'2-1'"),
    ("XGROUP CREATE s g 0", "OK"),
    ("XGROUP CREATE s g $", "BUSYGROUP Consumer Group name already exists"),
    (
        "XREADGROUP GROUP h c STREAMS s >",
        "NOGROUP No such key 's' or consumer group 'h' in XREADGROUP with GROUP option",
    ),
    ("XREADGROUP GROUP g c COUNT 1 STREAMS s >", "<'s': [['1-1' ['f' 'v']]]>"),
    ("XREADGROUP GROUP g d STREAMS s >", "<'s': [['2-1' ['f' 'w']]]>"),
    ("XREADGROUP GROUP g d BLOCK 5 STREAMS s >", "nil array"),
    ("XREADGROUP GROUP g c STREAMS s 0", "<'s': [['1-1' ['f' 'v']]]>"),
    ("wait", "250"),
    ("XPENDING s g", "[2 '1-1' '2-1' [['c' '1'] ['d' '1']]]"),
    ("XPENDING s g - + 10", "[['1-1' 'c' 250 2] ['2-1' 'd' 250 1]]"),
    ("XPENDING s g IDLE 251 - + 10", "[]"),
    ("XPENDING s g - + 10 nobody", "[]"),
    ("XDEL s 1-1", "1"),
    ("XREADGROUP GROUP g c STREAMS s 0", "<'s': [['1-1' nil array]]>"),
    ("XREADGROUP GROUP g c STREAMS s 1-1", "<'s': []>"),
    (
        "XINFO CONSUMERS s g",
        "[{'name': 'c' 'pending': 1 'idle': 0 'inactive': 250} \
                              {'name': 'd' 'pending': 1 'idle': 250 'inactive': 250}]",
    ),
    ("XACK s g 1-1 9-9", "1"),
    ("XACK s none x", "0"),
    ("XACK s g x", INVALID_ID),
    ("XGROUP DELCONSUMER s g d", "1"),
    ("XGROUP DELCONSUMER s g d", "0"),
    ("XPENDING s g", "[0 nil nil nil array]"),
    ("XGROUP CREATECONSUMER s g e", "1"),
    ("XGROUP CREATECONSUMER s g e", "0"),
    ("XGROUP SETID s g 0", "OK"),
    ("XREADGROUP GROUP g e NOACK STREAMS s >", "<'s': [['2-1' ['f' 'w']]]>"),
    (
        "XINFO GROUPS s",
        "[{'name': 'g' 'consumers': 2 'pending': 0 'last-delivered-id': '2-1' 'entries-read': 2 'lag': 0}]",
    ),
    ("XGROUP SETID s h 0", "NOGROUP No such consumer group 'h' for key name 's'"),
    ("XGROUP DESTROY s g", "1"),
    ("XGROUP DESTROY s g", "0"),
    ("XINFO GROUPS s", "[]"),
    ("XINFO CONSUMERS s g", "NOGROUP No such consumer group 'g' for key name 's'"),
    ("XPENDING s g", "NOGROUP No such key 's' or consumer group 'g'"),
];

const CLAIMS: Script = &[
    ("XADD s 1-1 f v", "'1-1'"),
    ("XADD s 2-1 f w", "'2-1'"),
    ("XADD s 3-1 f x", "'3-1'"),
    ("XCLAIM s g c 0 1-1", "NOGROUP No such key 's' or consumer group 'g'"),
    ("XGROUP CREATE s g 0", "OK"),
    ("XREADGROUP GROUP g c COUNT 2 STREAMS s >", "<'s': [['1-1' ['f' 'v']] ['2-1' ['f' 'w']]]>"),
    ("wait", "100"),
    ("XCLAIM s g d 101 1-1 2-1", "[]"),
    ("XCLAIM s g d 100 1-1 3-1", "[['1-1' ['f' 'v']]]"),
    ("XCLAIM s g d 0 3-1 FORCE JUSTID", "['3-1']"),
    ("XCLAIM s g c 0 2-1 IDLE 50 RETRYCOUNT 7 LASTID 9-9", "[['2-1' ['f' 'w']]]"),
    ("XPENDING s g - + 9", "[['1-1' 'd' 0 2] ['2-1' 'c' 50 7] ['3-1' 'd' 0 1]]"),
    ("XCLAIM s g c 0 2-1 TIME 900 JUSTID", "['2-1']"),
    ("XPENDING s g - + 9 c", "[['2-1' 'c' 200 7]]"),
    ("XDEL s 2-1", "1"),
    ("XCLAIM s g d 0 2-1", "[]"),
    ("XPENDING s g", "[2 '1-1' '3-1' [['d' '2']]]"),
    (
        "XINFO STREAM s FULL",
        "{'length': 2 'radix-tree-keys': 1 'radix-tree-nodes': 2 'last-generated-id': '3-1' \
                             'max-deleted-entry-id': '2-1' 'entries-added': 3 'recorded-first-entry-id': '1-1' 'entries': \
                             [['1-1' ['f' 'v']] ['3-1' ['f' 'x']]] 'groups': [{'name': 'g' 'last-delivered-id': '9-9' \
                             'entries-read': 2 'lag': 1 'pel-count': 2 'pending': [['1-1' 'd' 1100 2] ['3-1' 'd' 1100 1]] \
                             'consumers': [{'name': 'c' 'seen-time': 1100 'active-time': 1100 'pel-count': 0 'pending': []} \
                             {'name': 'd' 'seen-time': 1100 'active-time': 1100 'pel-count': 2 'pending': [['1-1' 1100 2] \
                             ['3-1' 1100 1]]}]}]}",
    ),
];

const AUTO_CLAIMS: Script = &[
    ("XADD s 1-1 f v", "'1-1'"),
    ("XADD s 2-1 f w", "'2-1'"),
    ("XADD s 3-1 f x", "'3-1'"),
    ("XADD s 4-1 f y", "'4-1'"),
    ("XGROUP CREATE s g 0", "OK"),
    (
        "XREADGROUP GROUP g c STREAMS s >",
        "<'s': [['1-1' ['f' 'v']] ['2-1' ['f' 'w']] ['3-1' ['f' 'x']] ['4-1' ['f' 'y']]]>",
    ),
    ("XDEL s 2-1", "1"),
    ("wait", "10"),
    ("XAUTOCLAIM s g d 11 0", "['0-0' [] ['2-1']]"),
    ("XAUTOCLAIM s g d 10 0 COUNT 1", "['3-1' [['1-1' ['f' 'v']]] []]"),
    ("XAUTOCLAIM s g d 10 3-1 JUSTID", "['0-0' ['3-1' '4-1'] []]"),
    ("XPENDING s g - + 9", "[['1-1' 'd' 0 2] ['3-1' 'd' 0 1] ['4-1' 'd' 0 1]]"),
    ("XAUTOCLAIM s h d 10 0", "NOGROUP No such key 's' or consumer group 'h'"),
    ("XAUTOCLAIM s g d 0 (3-1 COUNT 1", "['0-0' [['4-1' ['f' 'y']]] []]"),
];

const LAGS: Script = &[
    ("XADD s 1-1 f v", "'1-1'"),
    ("XADD s 2-1 f v", "'2-1'"),
    ("XADD s 3-1 f v", "'3-1'"),
    ("XGROUP CREATE s g 0", "OK"),
    ("XGROUP CREATE s h 2-1", "OK"),
    (
        "XINFO GROUPS s",
        "[{'name': 'g' 'consumers': 0 'pending': 0 'last-delivered-id': '0-0' 'entries-read': nil 'lag': 3} \
                         {'name': 'h' 'consumers': 0 'pending': 0 'last-delivered-id': '2-1' 'entries-read': nil 'lag': nil}]",
    ),
    ("XREADGROUP GROUP g c COUNT 1 STREAMS s >", "<'s': [['1-1' ['f' 'v']]]>"),
    ("XREADGROUP GROUP h c COUNT 1 STREAMS s >", "<'s': [['3-1' ['f' 'v']]]>"),
    ("XDEL s 2-1", "1"),
    (
        "XINFO GROUPS s",
        "[{'name': 'g' 'consumers': 1 'pending': 1 'last-delivered-id': '1-1' 'entries-read': 1 'lag': nil} \
                         {'name': 'h' 'consumers': 1 'pending': 1 'last-delivered-id': '3-1' 'entries-read': 3 'lag': 0}]",
    ),
];

const STREAM_WRONG_TYPE: Script = &[
    ("SET k v", "OK"),
    ("XADD k * f v", WRONGTYPE),
    ("XLEN k", WRONGTYPE),
    ("XRANGE k - +", WRONGTYPE),
    ("XDEL k x", WRONGTYPE),
    ("XTRIM k MAXLEN 0", WRONGTYPE),
    ("XREAD STREAMS none k 0 0", WRONGTYPE),
    ("XSETID k 1", WRONGTYPE),
    ("XGROUP CREATE k g $ MKSTREAM", WRONGTYPE),
    ("XREADGROUP GROUP g c STREAMS k >", WRONGTYPE),
    ("XACK k g 1", WRONGTYPE),
    ("XCLAIM k g c 0 1", WRONGTYPE),
    ("XAUTOCLAIM k g c 0 0", WRONGTYPE),
    ("XPENDING k g", WRONGTYPE),
    ("XINFO STREAM k", WRONGTYPE),
    ("XADD s 1 f v", "'1-0'"),
    ("GET s", WRONGTYPE),
    ("HSET s f v", WRONGTYPE),
    ("SET s v", "OK"),
];

const STREAM_LIFETIME: Script = &[
    ("XADD s 1 f v", "'1-0'"),
    ("PEXPIRE s 50", "1"),
    ("XADD s 2 f v", "'2-0'"),
    ("XTRIM s MAXLEN 0", "2"),
    ("PTTL s", "50"),
    ("wait", "51"),
    ("EXISTS s", "0"),
    ("XADD s 1 f v", "'1-0'"),
    ("PTTL s", "-1"),
];

const STREAM_BLIND: Script = &[
    ("BLIND XADD s 1-1 f v", "OK"),
    ("BLIND XGROUP CREATE s g 0", "OK"),
    ("BLIND XREADGROUP GROUP g c STREAMS s >", "OK"),
    ("XPENDING s g", "[1 '1-1' '1-1' [['c' '1']]]"),
    ("BLIND XACK s g 1-1", "OK"),
    ("BLIND XACK s g x", "OK"),
    ("XPENDING s g", "[0 nil nil nil array]"),
];

const STREAM_DUMP: Script = &[
    ("XADD s 1-1 f v", "'1-1'"),
    ("XADD s 2-300 f w", "'2-300'"),
    ("XADD s 3-1 other -7", "'3-1'"),
    ("XGROUP CREATE s g 1-1", "OK"),
    (
        "DUMP s",
        r"'\x13\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01==\x00\x00\x00\x16\x00\x03\x01\x00\x01\x01\x01\x81f\x02\x00\x01\x02\x01\x00\x01\x00\x01\x81v\x02\x04\x01\x02\x01\x01\x01\xc1+\x02\x81w\x02\x04\x01\x00\x01\x02\x01\x00\x01\x01\x01\x85other\x06\xdf\xf9\x02\x06\x01\xff\x03\x03\x01\x01\x01\x00\x00\x03\x01\x01g\x01\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\n\x00\xee)\xf9\x9b\x0f\x92\x93\xef'",
    ),
    ("COPY s t", "1"),
    (
        "DUMP t",
        r"'\x13\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01==\x00\x00\x00\x16\x00\x03\x01\x00\x01\x01\x01\x81f\x02\x00\x01\x02\x01\x00\x01\x00\x01\x81v\x02\x04\x01\x02\x01\x01\x01\xc1+\x02\x81w\x02\x04\x01\x00\x01\x02\x01\x00\x01\x01\x01\x85other\x06\xdf\xf9\x02\x06\x01\xff\x03\x03\x01\x01\x01\x00\x00\x03\x01\x01g\x01\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\n\x00\xee)\xf9\x9b\x0f\x92\x93\xef'",
    ),
];
