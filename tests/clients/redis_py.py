#!/usr/bin/env python3
"""Runs redis-py against every node of a running cluster and checks each reply.

    redis_py.py --ports 7000,7001,7002

Commands go to the nodes in turn, so that nearly every reply depends on what another node was told just
before. With --redis the server is a plain Redis 7.0 that was started with `--databases 16
--proto-max-bulk-len 16mb`, and what Redis does not have is left out: this validates the expectations.

Deletes all keys. Prints `N checks passed`, or says what was wrong at the first check that fails, with
exit status 1.
"""

import argparse
import json
import pathlib
import random
import sys
import time
import warnings

import redis
from redis.exceptions import RedisError, ResponseError, WatchError

# Nothing is written next to the sources.
sys.dont_write_bytecode = True
from nodes import (  # noqa: E402
    KEY_BYTES_MAX,
    PATIENCE_SECONDS,
    REPLY_SECONDS_MAX,
    VALUE_BYTES_MAX,
    Failure,
    Nodes,
    as_map,
    in_threads,
    is_closed,
    read_reply,
    says,
    wait_until,
    wire_text,
)


def connections(nodes):
    nodes.gives(True, "ping")
    nodes.gives(b"some text", "echo", "some text")
    nodes.gives(b"", "echo", "")
    nodes.gives(True, "select", 0)
    seconds, what = nodes.ask(nodes.next_client(), "time")
    near = isinstance(seconds, tuple) and abs(seconds[0] - time.time()) < 30 and 0 <= seconds[1] < 1_000_000
    nodes.check(what, near, seconds, "the time of day")

    connection = nodes.connection()
    connection.send_command("CLIENT", "ID")
    identity = read_reply(connection)
    nodes.check("CLIENT ID", type(identity) is int and identity > 0, identity, "a positive integer")
    says(nodes, connection, identity, "CLIENT", "ID")
    says(nodes, connection, None, "CLIENT", "GETNAME")
    says(nodes, connection, b"OK", "CLIENT", "SETNAME", "a-name")
    says(nodes, connection, b"a-name", "CLIENT", "GETNAME")
    says(nodes, connection, b"PONG", "PING")
    says(nodes, connection, b"some text", "PING", "some text")
    if not nodes.is_redis:
        # Newer than the Redis that is imitated, but clients send it.
        says(nodes, connection, b"OK", "CLIENT", "SETINFO", "LIB-NAME", "redis-py")
        says(nodes, connection, b"OK", "CLIENT", "SETINFO", "LIB-VER", redis.__version__)
    says(nodes, connection, b"RESET", "RESET")
    # The server is back at RESP2, but redis-py's connection is not.
    connection.send_command("HELLO", nodes.protocol)
    reply = as_map(read_reply(connection))
    nodes.check("HELLO after RESET", reply.get(b"proto") == nodes.protocol, reply, nodes.protocol)
    says(nodes, connection, None, "CLIENT", "GETNAME")
    says(nodes, connection, b"OK", "QUIT")
    is_closed(nodes, connection, "QUIT")


def hello(nodes):
    names = [b"server", b"version", b"proto", b"id", b"mode", b"role", b"modules"]

    def introduces(reply, protocol):
        expected = dict(
            server=b"redis", version=b"7.0.15", proto=protocol, mode=b"standalone", role=b"master"
        )
        expected = {name.encode(): value for name, value in expected.items()} | {b"modules": []}
        if protocol == 2:
            nodes.check("HELLO 2", isinstance(reply, list) and reply[::2] == names, reply, names)
            reply = as_map(reply)
        nodes.check(f"HELLO {protocol}", isinstance(reply, dict), reply, "a map")
        identity = reply.pop(b"id", None)
        nodes.check(f"HELLO {protocol}", type(identity) is int and identity > 0, identity, "an id")
        nodes.check(f"HELLO {protocol}", reply == expected, reply, expected)

    for protocol in (2, 3):
        # The connection of RESP3 has said HELLO already.
        connection = nodes.connection(protocol)
        for words in (["HELLO"], ["HELLO", protocol], ["HELLO", protocol, "AUTH", "default", "any"]):
            connection.send_command(*words)
            introduces(read_reply(connection), protocol)
        connection.send_command("HELLO", protocol, "SETNAME", "hello-name")
        introduces(read_reply(connection), protocol)
        says(nodes, connection, b"hello-name", "CLIENT", "GETNAME")
        says(nodes, connection, "NOPROTO unsupported protocol version", "HELLO", 4)
        says(nodes, connection, None, "GET", "missing")
        connection.disconnect()


# Fields of INFO that redis_exporter, Datadog and the like expect.
MONITORED = """
    redis_version os uptime_in_seconds connected_clients blocked_clients used_memory used_memory_human
    used_memory_rss used_memory_peak used_memory_peak_human total_system_memory maxmemory
    mem_fragmentation_ratio loading rdb_last_save_time rdb_changes_since_last_save rdb_bgsave_in_progress
    rdb_last_bgsave_status aof_enabled total_connections_received total_commands_processed
    instantaneous_ops_per_sec total_net_input_bytes total_net_output_bytes expired_keys evicted_keys
    keyspace_hits keyspace_misses total_error_replies role connected_slaves used_cpu_sys used_cpu_user
    used_cpu_sys_children used_cpu_user_children cluster_enabled
""".split()


def server(nodes):
    nodes.empty()
    commands, what = nodes.ask(nodes.next_client(), "command")
    named = isinstance(commands, dict) and {"get", "set", "incr", "scan", "ping"} <= set(commands)
    nodes.check(what, named, commands, "a map of commands")
    nodes.gives(len(commands), "command_count")
    names, what = nodes.ask(nodes.next_client(), "command_list")
    listed = {name.decode() for name in names if b"|" not in name}
    nodes.check(what, listed == set(commands), listed, set(commands))
    connection = nodes.connection()
    for name, arity, first, last, step in [("get", 2, 1, 1, 1), ("set", -3, 1, 1, 1), ("mset", -3, 1, -1, 2)]:
        connection.send_command("COMMAND", "INFO", name, "nosuch")
        reply = read_reply(connection)
        holds = isinstance(reply, list) and len(reply) == 2 and reply[1] is None
        holds = holds and [reply[0][at] for at in (0, 1, 3, 4, 5)] == [
            name.encode(),
            arity,
            first,
            last,
            step,
        ]
        nodes.check(f"COMMAND INFO {name} nosuch", holds, reply, [(name, arity, first, last, step), None])
    says(nodes, connection, [b"a", b"b"], "COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2")
    connection.send_command("COMMAND", "DOCS", "get", "nosuch")
    docs = read_reply(connection)
    connection.disconnect()
    fields = as_map(as_map(docs).get(b"get"))
    holds = fields.get(b"since") == b"1.0.0" and fields.get(b"group") == b"string"
    nodes.check(
        "COMMAND DOCS get", holds and fields.get(b"summary"), docs, "since 1.0.0, group string, a summary"
    )

    nodes.gives(True, "set", "key", "value")
    info, what = nodes.ask(nodes.next_client(), "info")
    # Clients make one map of all sections: no line may contradict another.
    for name, value in [("redis_version", "7.0.15"), ("redis_mode", "standalone"), ("role", "master")]:
        nodes.check(f"{name} of {what}", info.get(name) == value, info.get(name), value)
    nodes.check(f"loading of {what}", info.get("loading") == 0, info.get("loading"), 0)
    for section, name in [
        ("server", "redis_version"),
        ("memory", "used_memory"),
        ("stats", "total_commands_processed"),
    ]:
        info, what = nodes.ask(nodes.next_client(), "info", section)
        nodes.check(what, isinstance(info, dict) and name in info, info, f"a map with {name}")
    # What monitoring reads without asking whether it is there.
    info, what = nodes.ask(nodes.next_client(), "info", "everything")
    missing = [name for name in MONITORED if name not in info]
    nodes.check(what, not missing, missing, "no missing field")
    nodes.check(f"cmdstat_set of {what}", info.get("cmdstat_set", {}).get("calls", 0) >= 0, info, "calls")
    reply, what = nodes.ask(nodes.next_client(), "client_info")
    fields = ["id", "addr", "fd", "qbuf", "qbuf-free", "multi", "obl", "oll", "omem", "events", "cmd"]
    nodes.check(what, isinstance(reply, dict) and all(name in reply for name in fields), reply, fields)
    info, what = nodes.ask(nodes.next_client(), "info", "replication")
    nodes.check(what, info.get("role") == "master", info, "role master")
    # INFO is no operation on data: a node tells what it has applied so far.
    wait_until(nodes, "INFO keyspace counts one key", lambda: keys_counted(nodes) == 1)

    # Redis has no limit unless it is told, Syros one that follows from the machine's memory.
    info, _ = nodes.ask(nodes.next_client(), "info", "memory")
    nodes.gives({"maxmemory": str(info.get("maxmemory"))}, "config_get", "maxmemory")
    nodes.gives({"databases": "16", "timeout": "0"}, "config_get", "databases", "timeout")
    nodes.gives({"proto-max-bulk-len": str(VALUE_BYTES_MAX)}, "config_get", "proto-max-*")
    nodes.gives({}, "config_get", "no-such-setting")
    nodes.gives(True, "config_resetstat")

    nodes.gives(1, "dbsize")
    nodes.gives(True, "mset", {f"key{number}": "x" for number in range(20)})
    nodes.gives(21, "dbsize")
    nodes.gives(True, "flushdb")
    nodes.gives(0, "dbsize")
    for method, asynchronous in [("flushall", True), ("flushdb", True), ("flushall", False)]:
        nodes.gives(True, "set", "key", "value")
        nodes.gives(True, method, asynchronous=asynchronous)
        nodes.gives(None, "get", "key")
    nodes.gives(0, "dbsize")


def keys_counted(nodes):
    """Keys by INFO of the next node."""
    return nodes.next_client().info("keyspace").get("db0", {}).get("keys", 0)


def strings(nodes):
    nodes.empty()
    nodes.gives(None, "get", "key")
    nodes.gives(True, "set", "key", "value")
    nodes.gives(b"value", "get", "key")
    nodes.gives(True, "set", "key", "")
    nodes.gives(b"", "get", "key")
    nodes.gives(True, "mset", {"a": "1", "b": "2", "c": "3"})
    nodes.gives([b"3", None, b"1", b"", b"3"], "mget", "c", "missing", "a", "key", "c")
    nodes.gives(True, "execute_command", "MSET", "twice", "first", "twice", "second")
    nodes.gives(b"second", "get", "twice")
    nodes.gives(False, "msetnx", {"d": "4", "a": "5"})
    nodes.gives([None, b"1"], "mget", "d", "a")
    nodes.gives(True, "msetnx", {"d": "4", "e": "5"})
    nodes.gives([b"4", b"5"], "mget", "d", "e")
    nodes.gives(False, "setnx", "a", "6")
    nodes.gives(b"1", "get", "a")
    nodes.gives(True, "setnx", "f", "6")
    nodes.gives(b"6", "get", "f")
    nodes.gives(None, "getset", "g", "7")
    nodes.gives(b"7", "getset", "g", "8")
    nodes.gives(b"8", "getdel", "g")
    nodes.gives(None, "getdel", "g")
    nodes.gives(0, "exists", "g")
    nodes.gives(b"1", "getex", "a")
    nodes.gives(None, "getex", "missing")

    nodes.gives(3, "append", "text", "abc")
    nodes.gives(6, "append", "text", "def")
    nodes.gives(6, "append", "text", "")
    nodes.gives(b"abcdef", "get", "text")
    nodes.gives(6, "strlen", "text")
    nodes.gives(0, "strlen", "missing")
    nodes.gives(6, "setrange", "text", 2, "XY")
    nodes.gives(b"abXYef", "get", "text")
    nodes.gives(9, "setrange", "text", 8, "!")
    nodes.gives(b"abXYef\0\0!", "get", "text")
    nodes.gives(0, "setrange", "missing", 5, "")
    nodes.gives(0, "exists", "missing")
    nodes.gives(5, "setrange", "padded", 3, "ab")
    nodes.gives(b"\0\0\0ab", "get", "padded")
    for start, end, part in [
        (0, 1, b"ab"),
        (0, -1, b"abXYef\0\0!"),
        (-3, -2, b"\0\0"),
        (4, 99, b"ef\0\0!"),
        (5, 4, b""),
        (20, 30, b""),
        (-99, 2, b"abX"),
        (-1, -3, b""),
    ]:
        nodes.gives(part, "getrange", "text", start, end)
    nodes.gives(b"", "getrange", "missing", 0, -1)
    nodes.gives(b"bX", "substr", "text", 1, 2)


def set_options(nodes):
    nodes.empty()
    nodes.gives(None, "set", "key", "1", xx=True)
    nodes.gives(None, "get", "key")
    nodes.gives(True, "set", "key", "1", nx=True)
    nodes.gives(None, "set", "key", "2", nx=True)
    nodes.gives(b"1", "get", "key")
    nodes.gives(True, "set", "key", "3", xx=True)
    nodes.gives(b"3", "set", "key", "4", get=True)
    nodes.gives(b"4", "get", "key")
    nodes.gives(b"4", "set", "key", "5", nx=True, get=True)
    nodes.gives(b"4", "set", "key", "5", xx=True, get=True)
    nodes.gives(None, "set", "new", "6", nx=True, get=True)
    nodes.gives(b"6", "get", "new")
    nodes.gives(None, "set", "missing", "7", xx=True, get=True)
    nodes.gives(0, "exists", "missing")
    nodes.gives(-1, "ttl", "key")

    now = int(time.time())
    for options, low, high in [
        (dict(ex=100), 90_000, 100_000),
        (dict(px=100_500), 90_000, 100_500),
        (dict(exat=now + 100), 80_000, 101_000),
        (dict(pxat=now * 1000 + 100_500), 80_000, 101_500),
    ]:
        nodes.gives(True, "set", "key", "value", **options)
        nodes.gives_between(low, high, "pttl", "key")
    nodes.gives(True, "set", "key", "kept", keepttl=True)
    nodes.gives(now * 1000 + 100_500, "pexpiretime", "key")
    nodes.gives(True, "set", "key", "kept again", keepttl=True, xx=True)
    nodes.gives(now + 101, "expiretime", "key")
    nodes.gives(b"kept again", "get", "key")
    nodes.gives(b"kept again", "set", "key", "gone", get=True)
    nodes.gives(-1, "ttl", "key")
    nodes.gives(True, "set", "fresh", "value", keepttl=True)
    nodes.gives(-1, "pttl", "fresh")
    nodes.gives(True, "set", "fresh", "value", ex=50, xx=True)
    nodes.gives_between(40, 50, "ttl", "fresh")
    nodes.gives(None, "set", "fresh", "value", ex=500, nx=True)
    nodes.gives_between(40, 50, "ttl", "fresh")
    nodes.gives(True, "set", "fresh", "value", exat=1)
    nodes.gives(0, "exists", "fresh")
    nodes.gives(True, "setex", "key", 100, "value")
    nodes.gives_between(90, 100, "ttl", "key")
    nodes.gives(True, "psetex", "key", 200_000, "value")
    nodes.gives_between(190_000, 200_000, "pttl", "key")
    # What sets a whole value takes its expiry away; what changes it does not.
    for words, remains in [
        (("append", "key", "x"), True),
        (("setrange", "key", 0, "1"), True),
        (("getset", "key", "5"), False),
        (("setex", "key", 100, "5"), True),
        (("incr", "key"), True),
        (("incrbyfloat", "key", 0.5), True),
        (("mset", {"key": "1"}), False),
    ]:
        got, what = nodes.ask(nodes.next_client(), *words)
        nodes.check(what, not isinstance(got, Exception), got, "no error")
        nodes.gives_between(90, 200, "ttl", "key") if remains else nodes.gives(-1, "ttl", "key")


def counters(nodes):
    nodes.empty()
    nodes.gives(1, "incr", "n")
    nodes.gives(11, "incrby", "n", 10)
    nodes.gives(10, "decr", "n")
    nodes.gives(-5, "decrby", "n", 15)
    nodes.gives(0, "incrby", "n", 5)
    nodes.gives(b"0", "get", "n")
    nodes.gives(-1, "decr", "m")
    nodes.gives(-8, "decrby", "o", 8)
    nodes.gives(True, "set", "n", str(2**63 - 2))
    nodes.gives(2**63 - 1, "incr", "n")
    nodes.fails("ERR increment or decrement would overflow", "incr", "n")
    nodes.gives(str(2**63 - 1).encode(), "get", "n")
    nodes.gives(True, "set", "n", str(-(2**63) + 1))
    nodes.gives(-(2**63), "incrby", "n", -1)
    for start, step, total in [
        ("3.0", "0.1", b"3.1"),
        ("10.50", "0.1", b"10.6"),
        ("5.0e3", "2.0e2", b"5200"),
        ("10.6", "-5", b"5.6"),
        ("1", "-1", b"0"),
        ("0", "1e-10", b"0.0000000001"),
    ]:
        nodes.gives(True, "set", "f", start)
        nodes.gives(float(total), "incrbyfloat", "f", step)
        nodes.gives(total, "get", "f")
    nodes.gives(2.5, "incrbyfloat", "new", 2.5)
    nodes.gives(b"2.5", "get", "new")


def keyspace(nodes):
    nodes.empty()
    nodes.gives(None, "randomkey")
    nodes.gives([], "keys", "*")
    nodes.gives(True, "mset", {name: name for name in "abcdef"})
    nodes.gives(3, "exists", "a", "b", "missing", "a")
    nodes.gives(0, "exists", "missing")
    nodes.gives(2, "delete", "a", "missing", "b", "a")
    nodes.gives([None, None, b"c"], "mget", "a", "b", "c")
    nodes.gives(1, "unlink", "c", "a")
    nodes.gives(0, "delete", "a")
    nodes.gives(b"string", "type", "d")
    nodes.gives(b"none", "type", "a")
    nodes.gives(True, "set", "d", "value", ex=100)
    nodes.gives(True, "rename", "d", "e")
    nodes.gives([None, b"value"], "mget", "d", "e")
    nodes.gives_between(90, 100, "ttl", "e")
    nodes.gives(True, "rename", "f", "e")
    nodes.gives(-1, "ttl", "e")
    nodes.gives(True, "rename", "e", "e")
    nodes.gives(b"f", "get", "e")
    nodes.fails("ERR no such key", "rename", "missing", "e")
    nodes.gives(True, "set", "g", "1")
    nodes.gives(False, "renamenx", "g", "e")
    nodes.gives(True, "renamenx", "g", "h")
    nodes.gives_set([b"e", b"h"], "keys", "*")
    for _ in range(6):
        key, what = nodes.ask(nodes.next_client(), "randomkey")
        nodes.check(what, key in (b"e", b"h"), key, "one of the keys")
    nodes.gives(True, "mset", {"one:1": 1, "one:2": 1, "two:1": 1, "o*e": 1})
    nodes.gives_set([b"one:1", b"one:2"], "keys", "one:*")
    nodes.gives_set([b"one:1", b"two:1"], "keys", "*:1")
    nodes.gives_set([b"one:2"], "keys", "?ne:[^1]")
    nodes.gives_set([b"one:1", b"one:2", b"two:1"], "keys", "[not]*:[0-9]")
    nodes.gives_set([b"o*e"], "keys", "o\\*e")


def scans(nodes):
    nodes.empty()
    expected = {f"scan:{number}".encode() for number in range(1000)}
    pipeline = nodes.next_client().pipeline(transaction=False)
    for key in expected:
        pipeline.set(key, "x")
    replies = pipeline.execute()
    nodes.check("1000 SETs in a pipeline", replies == [True] * 1000, replies, "OK, 1000 times")
    for options in [dict(), dict(count=100), dict(count=1), dict(count=5000), dict(_type="string")]:
        if options.get("count") == 1:
            options["match"] = "scan:7*"
        client = nodes.next_client()
        found = list(client.scan_iter(**options))
        wanted = {key for key in expected if key.startswith(b"scan:7")} if "match" in options else expected
        what = f"scan_iter({options}) at port {nodes.port_of(client)}"
        nodes.check(what, set(found) == wanted, len(set(found)), f"{len(wanted)} keys")
        nodes.check(f"{what}: no key twice", len(found) == len(wanted), len(found), len(wanted))
    nodes.gives((0, []), "scan", 0, count=5000, match="nosuch*")
    nodes.gives((0, []), "scan", 0, count=5000, _type="list")
    # Keys that are there all the time are found, whatever comes and goes, and at whichever node.
    cursor, found, steps = None, set(), 0
    while cursor != 0:
        client = nodes.next_client()
        client.set(f"new:{steps}", "x")
        client.delete(f"new:{steps - 3}")
        cursor, keys = (client if nodes.is_redis else nodes.next_client()).scan(cursor or 0, count=50)
        found.update(keys)
        steps += 1
        nodes.check("SCAN ends", steps < 1000, steps, "far fewer steps")
    nodes.check("SCAN while keys come and go", expected <= found, len(expected & found), "1000 keys")
    nodes.empty()


def expiry(nodes):
    nodes.empty()
    for method in ("ttl", "pttl", "expiretime", "pexpiretime"):
        nodes.gives(-2, method, "key")
    for method, argument in [("expire", 10), ("pexpire", 10), ("expireat", 9**10), ("pexpireat", 9**13)]:
        nodes.gives(False, method, "key", argument)
    nodes.gives(False, "persist", "key")
    nodes.gives(True, "set", "key", "value")
    for method in ("ttl", "pttl", "expiretime", "pexpiretime"):
        nodes.gives(-1, method, "key")
    nodes.gives(True, "expire", "key", 100)
    nodes.gives_between(90, 100, "ttl", "key")
    nodes.gives_between(90_000, 100_000, "pttl", "key")
    nodes.gives(True, "pexpire", "key", 200_000)
    nodes.gives_between(190, 200, "ttl", "key")
    later = int(time.time()) + 1000
    nodes.gives(True, "expireat", "key", later)
    nodes.gives(later, "expiretime", "key")
    nodes.gives(later * 1000, "pexpiretime", "key")
    nodes.gives(True, "pexpireat", "key", later * 1000 + 400)
    nodes.gives(later * 1000 + 400, "pexpiretime", "key")
    nodes.gives_between(900, 1001, "ttl", "key")
    nodes.gives(False, "expireat", "key", later + 1, nx=True)
    nodes.gives(True, "expireat", "key", later + 10, xx=True)
    nodes.gives(False, "expireat", "key", later + 9, gt=True)
    nodes.gives(True, "expireat", "key", later + 11, gt=True)
    nodes.gives(False, "expireat", "key", later + 12, lt=True)
    nodes.gives(True, "expireat", "key", later + 5, lt=True)
    nodes.gives(later + 5, "expiretime", "key")
    nodes.gives(True, "persist", "key")
    nodes.gives(False, "persist", "key")
    nodes.gives(-1, "ttl", "key")
    nodes.gives(False, "expire", "key", 100, xx=True)
    nodes.gives(False, "expire", "key", 100, gt=True)
    nodes.gives(True, "expire", "key", 100, nx=True)
    nodes.gives(b"value", "getex", "key", persist=True)
    nodes.gives(-1, "ttl", "key")
    nodes.gives(b"value", "getex", "key", ex=100)
    nodes.gives_between(90, 100, "ttl", "key")
    nodes.gives(b"value", "getex", "key", pxat=later * 1000 + 1)
    nodes.gives(later * 1000 + 1, "pexpiretime", "key")
    nodes.gives(b"value", "getex", "key", exat=later)
    nodes.gives(later, "expiretime", "key")
    nodes.gives(b"value", "get", "key")
    # An expiry in the past deletes.
    for method, past in [("expire", -1), ("expire", 0), ("pexpire", -5), ("expireat", 1), ("pexpireat", 1)]:
        nodes.gives(True, "set", "gone", "value")
        nodes.gives(True, method, "gone", past)
        nodes.gives(None, "get", "gone")
    nodes.gives(1, "dbsize")


def expiry_happens(nodes):
    """Keys vanish when their time has come, not before, at all nodes at once."""
    nodes.empty()
    seconds = 1.5
    ms = int(seconds * 1000)
    made = {}

    def make(key, method, *arguments, **options):
        made[key] = time.time()
        got, what = nodes.ask(nodes.next_client(), method, *arguments, **options)
        nodes.check(what, got in (True, b"x"), got, "success")

    for key in ("expire", "getex"):
        nodes.gives(True, "set", key, "x")
    nodes.gives(True, "set", "stays", "x")
    make("px", "set", "px", "x", px=ms)
    make("pxat", "set", "pxat", "x", pxat=int(time.time() * 1000) + ms)
    make("psetex", "psetex", "psetex", ms, "x")
    make("expire", "pexpire", "expire", ms)
    make("getex", "getex", "getex", px=ms)
    there = set(made)
    deadline = time.monotonic() + seconds + PATIENCE_SECONDS
    while there and time.monotonic() < deadline:
        for key in sorted(made):
            client = nodes.next_client()
            value = client.get(key)
            age = time.time() - made[key]
            what = f"GET {key} at port {nodes.port_of(client)}, {age:.3f} s after it was given {seconds} s"
            if key not in there:
                nodes.check(f"{what}, and after it was gone", value is None, value, None)
            elif value is None:
                # Clocks are read in milliseconds.
                nodes.check(what, age >= seconds - 0.005, value, b"x")
                there.remove(key)
        time.sleep(0.01)
    nodes.check("expiry", not there, sorted(there), "no key left")
    nodes.gives(0, "exists", *made)
    nodes.gives(-2, "ttl", "px")
    nodes.gives(b"none", "type", "px")
    nodes.gives([b"stays"], "keys", "*")
    nodes.gives(1, "dbsize")
    nodes.gives(True, "set", "px", "again", nx=True)
    nodes.gives(1, "incr", "pxat")
    nodes.gives(1, "append", "psetex", "y")
    nodes.gives(None, "set", "expire", "y", xx=True)
    nodes.gives(None, "getset", "getex", "y")
    nodes.gives([b"again", b"1", b"y", None, b"y"], "mget", "px", "pxat", "psetex", "expire", "getex")


def errors(nodes):
    """Errors in Redis's words; nothing changes by them."""
    nodes.empty()
    table = json.loads(pathlib.Path(__file__).with_name("errors.json").read_text())
    for words in table["state"]:
        nodes.gives(True, "execute_command", *words)
    cases = table["errors"] + ([] if nodes.is_redis else table["syros"])
    for words, text in cases:
        nodes.fails(text, "execute_command", *words)
    nodes.gives(
        [words[2].encode() for words in table["state"]], "mget", [words[1] for words in table["state"]]
    )
    nodes.gives(len(table["state"]), "dbsize")


def transactions(nodes):
    """All of a transaction or nothing, and nothing if a watched key has changed at another node."""
    nodes.empty()
    pipeline = nodes.next_client().pipeline(transaction=True)
    pipeline.set("n", 1).incr("n").ping().hset("h", "f", "v").lrange("none", 0, -1)
    nodes.check("a transaction", (got := pipeline.execute()) == [True, 2, True, 1, []], got, "five replies")
    nodes.gives(b"2", "get", "n")
    watching = nodes.next_client().pipeline()
    watching.watch("n")
    nodes.gives(3, "incr", "n")
    watching.multi()
    watching.set("n", "overwritten")
    try:
        got = watching.execute()
    except WatchError as error:
        got = error
    nodes.check("a watched key that has changed", isinstance(got, WatchError), got, "WatchError")
    nodes.gives(b"3", "get", "n")

    def double(pipeline):
        value = int(pipeline.get("n"))
        pipeline.multi()
        pipeline.set("n", 2 * value)

    got = nodes.next_client().transaction(double, "n")
    nodes.check("transaction(f, key)", got == [True], got, [True])
    nodes.gives(b"6", "get", "n")


def blind(nodes):
    """BLIND runs any update and always answers OK; the next read at any node sees what it did."""
    nodes.empty()

    def blindly(*words):
        nodes.gives(b"OK", "execute_command", "BLIND", *words)

    blindly("SET", "key", "value")
    nodes.gives(b"value", "get", "key")
    blindly("DEL", "key")
    nodes.gives(None, "get", "key")
    blindly("DEL", "key", "missing")
    for total in range(1, 21):
        blindly("INCRBY", "n", 5)
        nodes.gives(str(5 * total).encode(), "get", "n")
    blindly("INCR", "n")
    blindly("DECR", "n")
    blindly("DECRBY", "n", 58)
    nodes.gives(43, "incr", "n")
    for number in range(20):
        blindly("APPEND", "text", f"{number},")
    nodes.gives("".join(f"{number}," for number in range(20)).encode(), "get", "text")
    blindly("SET", "x", "1", "NX")
    blindly("SET", "x", "2", "NX")
    blindly("SETNX", "x", "3")
    nodes.gives(b"1", "get", "x")
    blindly("SET", "x", "4", "XX", "EX", "100")
    nodes.gives_between(90, 100, "ttl", "x")
    blindly("PERSIST", "x")
    nodes.gives(-1, "ttl", "x")
    blindly("EXPIRE", "x", 100)
    nodes.gives_between(90, 100, "ttl", "x")
    blindly("GETSET", "x", "5")
    blindly("SETRANGE", "x", 1, "!")
    nodes.gives(b"5!", "get", "x")
    blindly("RENAME", "x", "y")
    blindly("RENAME", "missing", "z")
    blindly("MSET", "a", "1", "b", "2")
    blindly("MSETNX", "a", "3", "c", "3")
    blindly("INCRBYFLOAT", "a", "0.5")
    nodes.gives([b"1.5", b"2", None, b"5!"], "mget", "a", "b", "c", "y")
    blindly("GETDEL", "a")
    blindly("UNLINK", "b", "y")
    blindly("SETEX", "e", 100, "v")
    blindly("PSETEX", "p", 100_000, "v")
    blindly("GETEX", "e", "PERSIST")
    nodes.gives([None, None, None, b"v", b"v"], "mget", "a", "b", "y", "e", "p")
    # Nobody is told of an error, and nothing changes by it.
    blindly("INCR", "text")
    nodes.gives(50, "strlen", "text")
    blindly("FLUSHALL")
    nodes.gives(0, "dbsize")


def binary(nodes):
    """Keys and values are any bytes, of any length up to the limits."""
    nodes.empty()
    every = bytes(range(256))
    for key in (
        b"\0",
        b"\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        every,
        "schlüssel-\u2603".encode(),
        b"",
        b" ",
        b"\xff\xfe",
    ):
        for value in (b"", b"\0\0", b"\r\n$-1\r\n", every, every * 40):
            nodes.gives(True, "set", key, value)
            nodes.gives(value, "get", key)
        nodes.gives([key], "keys", "*")
        nodes.gives(1, "delete", key)
    key = b"k" * KEY_BYTES_MAX
    nodes.gives(True, "set", key, "long key")
    nodes.gives(b"long key", "get", key)
    if not nodes.is_redis:
        text = f"ERR key of {KEY_BYTES_MAX + 1} bytes exceeds the maximum of {KEY_BYTES_MAX}"
        nodes.fails(text, "set", key + b"k", "x")
        nodes.fails(text, "get", key + b"k")
    nodes.gives(1, "delete", key)


def large(nodes):
    nodes.empty()
    draw = random.Random(7)
    values = [draw.randbytes(1024 * 1024) for _ in nodes.ports]
    for number, value in enumerate(values):
        nodes.gives(True, "set", f"large:{number}", value)
        for _ in nodes.ports:
            nodes.gives(value, "get", f"large:{number}")
    nodes.gives(values, "mget", [f"large:{number}" for number in range(len(values))])
    nodes.gives(1024 * 1024 + 3, "append", "large:0", "end")
    nodes.gives(1024 * 1024 + 3, "strlen", "large:0")
    nodes.gives(values[0][-2:] + b"end", "getrange", "large:0", -5, -1)
    nodes.gives(len(values), "delete", *[f"large:{number}" for number in range(len(values))])

    too_long = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
    nodes.fails(too_long, "setrange", "largest", VALUE_BYTES_MAX, "x")
    nodes.gives(0, "exists", "largest")
    nodes.gives(VALUE_BYTES_MAX, "setrange", "largest", VALUE_BYTES_MAX - 1, "x")
    nodes.fails(too_long, "append", "largest", "y")
    nodes.gives(VALUE_BYTES_MAX, "strlen", "largest")
    nodes.gives(b"\0x", "getrange", "largest", -2, -1)
    nodes.gives(True, "set", "largest", b"v" * VALUE_BYTES_MAX)
    nodes.gives(b"vv", "getrange", "largest", -2, -1)
    nodes.gives(1, "delete", "largest")

    if nodes.is_redis:
        # Refused when its length has been read; the rest meets a closed connection.
        connection = nodes.connection()
        header = f"*3\r\n$3\r\nSET\r\n$7\r\nlargest\r\n${VALUE_BYTES_MAX + 1}\r\n"
        connection.send_packed_command([header.encode()])
        expected = "ERR Protocol error: invalid bulk length"
        text = wire_text(read_reply(connection))
        nodes.check("the header of a value above the limit", text == expected, text, expected)
        is_closed(nodes, connection, "a value above the limit")
    else:
        # The bytes are skipped, and the connection goes on.
        connection = nodes.connection()
        largest = f"maximum of {VALUE_BYTES_MAX} (proto-max-bulk-len)"
        for expected, words in (
            (
                f"ERR value of {VALUE_BYTES_MAX + 1} bytes exceeds the {largest}",
                ["SET", "largest", b"v" * (VALUE_BYTES_MAX + 1)],
            ),
            ("ERR command of 300000 arguments exceeds the maximum of 262144", ["DEL"] * 300_000),
        ):
            connection.send_command(*words)
            text = wire_text(read_reply(connection))
            nodes.check("a command above a limit", text == expected, text, expected)
        says(nodes, connection, b"PONG", "PING")
        says(nodes, connection, 0, "EXISTS", "largest")
        connection.disconnect()
    for first in (b"POST", b"GET"):
        connection = nodes.connection()
        connection.send_packed_command([first + b" / HTTP/1.1\r\nHost: x\r\n\r\nSET attacked 1\r\n"])
        is_closed(nodes, connection, "an HTTP request")
    nodes.gives(0, "exists", "attacked")
    nodes.gives(0, "exists", "largest")
    nodes.gives(0, "dbsize")


class Model:
    """What a few commands do, in a few lines."""

    def __init__(self):
        self.values = {}

    def run(self, name, key, argument):
        old = self.values.get(key)
        if name == "GET":
            return old
        if name == "STRLEN":
            return len(old or b"")
        if name == "EXISTS":
            return int(old is not None)
        if name == "SET":
            self.values[key] = argument
            return True
        if name == "GETSET":
            self.values[key] = argument
            return old
        if name == "SETNX":
            self.values.setdefault(key, argument)
            return old is None
        if name == "APPEND":
            self.values[key] = (old or b"") + argument
            return len(self.values[key])
        if name == "DEL":
            self.values.pop(key, None)
            return int(old is not None)
        if name == "GETDEL":
            self.values.pop(key, None)
            return old
        total = int(old or b"0") + int(argument)
        self.values[key] = str(total).encode()
        return total


def drawn_command(draw, keys):
    """A command on one of so many keys; those with an even number hold integers."""
    number = draw.randrange(keys)
    names = ["GET", "SET", "GETSET", "SETNX", "DEL", "GETDEL", "EXISTS", "STRLEN"]
    name = draw.choice(names + ["INCRBY" if number % 2 == 0 else "APPEND"] * 4)
    return name, f"drawn:{number}", str(draw.randrange(-99, 100)).encode()


def drawn_pipeline(nodes, draw, model, keys):
    """1000 commands on so many keys, and some on none, in one pipeline: what was sent, got and expected."""
    pipeline = nodes.next_client().pipeline(transaction=False)
    sent, expected = [], []

    def send(reply, *words):
        pipeline.execute_command(*words)
        sent.append(words)
        expected.append(reply)

    for number in range(1000):
        name, key, argument = drawn_command(draw, keys)
        reply = model.run(name, key, argument)
        words = [name, key] + ([argument] if name in ("SET", "GETSET", "SETNX", "INCRBY", "APPEND") else [])
        if not nodes.is_redis and name in ("SET", "INCRBY", "APPEND", "DEL") and draw.random() < 0.3:
            send(b"OK", "BLIND", *words)
        else:
            send(reply, *words)
        if number % 50 == 0:
            send(str(number).encode(), "ECHO", number)
    return sent, pipeline.execute(raise_on_error=False), expected


def pipelines(nodes):
    """The replies of a pipeline come in its order and are those of its commands, run one after the other."""
    nodes.empty()
    draw = random.Random(11)
    model = Model()
    for keys in (1, 2, 7, 400, 1, 40):
        sent, replies, expected = drawn_pipeline(nodes, draw, model, keys)
        for place, (words, got, wanted) in enumerate(zip(sent, replies, expected, strict=True)):
            nodes.check(f"reply {place} of a pipeline on {keys} keys, {words}", got == wanted, got, wanted)

    pipeline = nodes.next_client().pipeline(transaction=False)
    for number in range(1000):
        pipeline.set(f"distinct:{number}", number)
    for number in range(1000):
        pipeline.get(f"distinct:{number}")
    replies = pipeline.execute()
    expected = [True] * 1000 + [str(number).encode() for number in range(1000)]
    for place, (got, wanted) in enumerate(zip(replies, expected, strict=True)):
        nodes.check(f"reply {place} of a pipeline on 1000 keys", got == wanted, got, wanted)
    nodes.gives(expected[1000:], "mget", [f"distinct:{number}" for number in range(1000)])

    pipeline = nodes.next_client().pipeline(transaction=False)
    for _ in range(1000):
        pipeline.incr("counter")
    replies = pipeline.execute()
    nodes.check("1000 INCRs in a pipeline", replies == list(range(1, 1001)), replies, "1 to 1000")
    pipeline.set("text", "abc").incr("text").get("text").execute_command("NOSUCH")
    replies = pipeline.ping().execute(raise_on_error=False)
    texts = [wire_text(reply) if isinstance(reply, ResponseError) else reply for reply in replies]
    expected = [
        True,
        "ERR value is not an integer or out of range",
        b"abc",
        "ERR unknown command 'NOSUCH', with args beginning with: ",
        True,
    ]
    nodes.check("errors within a pipeline", texts == expected, texts, expected)


def across_nodes(nodes):
    """What one node has acknowledged, all others show at once."""
    nodes.empty()
    count = len(nodes.clients)
    for number in range(500):
        writer = nodes.clients[number % count]
        reader = nodes.clients[(number + 1 + number // count % (count - 1)) % count]
        what = f"round {number}: write at port {nodes.port_of(writer)}, read at {nodes.port_of(reader)}"
        value = f"value {number}".encode()
        kind = number % 5
        if kind == 0:
            writer.set("shared", value)
            got, wanted = reader.get("shared"), value
        elif kind == 1:
            writer.set(f"own:{number}", value)
            got, wanted = reader.get(f"own:{number}"), value
        elif kind == 2:
            total = writer.incr("count")
            got, wanted = reader.get("count"), str(total).encode()
        elif kind == 3:
            writer.delete("shared")
            got, wanted = reader.get("shared"), None
        else:
            writer.mset({"left": value, "right": value})
            got, wanted = reader.mget("right", "left"), [value, value]
        nodes.check(what, got == wanted, got, wanted)


def at_once(nodes):
    """Clients at all nodes at the same time."""
    nodes.empty()
    totals, winners = [], []

    def count(client, number):
        for place in range(100):
            totals.append(client.incr("total"))
            if client.set(f"race:{place}", number, nx=True):
                winners.append((place, number))

    in_threads(nodes, count, 6)
    nodes.check(
        "6 times 100 INCRs at once", sorted(totals) == list(range(1, 601)), sorted(totals), "1 to 600"
    )
    nodes.check(
        "one SET NX wins", sorted(place for place, _ in winners) == list(range(100)), winners, "one each"
    )
    for place, number in winners:
        nodes.gives(str(number).encode(), "get", f"race:{place}")

    # A single writer: a read returns at least what was acknowledged before it began and at most what was
    # under way when it ended, and no reader goes back.
    state = {"acknowledged": 0, "sent": 0, "over": False}

    def write_and_read(client, number):
        if number == 0:
            writers = [nodes.client(port) for port in nodes.ports]
            for value in range(1, 401):
                state["sent"] = value
                writers[value % len(writers)].set("register", value)
                state["acknowledged"] = value
            state["over"] = True
            return
        last = 0
        # The writer may have failed: do not read for ever.
        deadline = time.monotonic() + REPLY_SECONDS_MAX
        while not state["over"] and time.monotonic() < deadline:
            low = state["acknowledged"]
            value = int(client.get("register") or 0)
            high = state["sent"]
            what = f"a read at port {nodes.port_of(client)} during writes"
            nodes.check(what, max(low, last) <= value <= high, value, f"{max(low, last)} to {high}")
            last = value

    in_threads(nodes, write_and_read, 4)
    nodes.gives(b"400", "get", "register")


def messages(nodes):
    """What is published at one node is heard at all of them, in order."""
    channel, ports = f"channel {nodes.protocol}", nodes.ports
    listeners = [nodes.client(port).pubsub() for port in ports]
    for listener in listeners:
        listener.subscribe(channel)
        listener.psubscribe(f"{channel[:-1]}?")
        got = [listener.get_message(timeout=PATIENCE_SECONDS)["type"] for _ in range(2)]
        nodes.check("subscriptions", got == ["subscribe", "psubscribe"], got, "two confirmations")
    for number, publisher in enumerate(nodes.clients):
        got = publisher.publish(channel, number)
        # The ports of a single server may be repeated.
        expected = 2 * len(ports)
        nodes.check("publish", got == expected, got, expected)
        for listener in listeners:
            kinds = []
            for _ in range(2):
                message = listener.get_message(timeout=PATIENCE_SECONDS)
                kinds.append((message["type"], message["data"]))
            data = str(number).encode()
            expected_kinds = [("message", data), ("pmessage", data)]
            nodes.check("a message", kinds == expected_kinds, kinds, expected_kinds)
    pipeline = nodes.next_client().pipeline(transaction=True)
    pipeline.set("n", 7).publish(channel, "set")
    pipeline.execute()
    for listener, client in zip(listeners, nodes.clients):
        message = listener.get_message(timeout=PATIENCE_SECONDS)
        nodes.check("a message of a transaction", message["data"] == b"set", message, "set")
        nodes.check("what was set before", (got := client.get("n")) == b"7", got, b"7")
    for listener in listeners:
        listener.close()


SECTIONS = [
    connections,
    hello,
    server,
    strings,
    set_options,
    counters,
    keyspace,
    scans,
    expiry,
    expiry_happens,
    errors,
    binary,
    large,
    pipelines,
    across_nodes,
    at_once,
    transactions,
    messages,
]
# What Redis has not, or not so.
SYROS_SECTIONS = [blind]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ports", required=True, help="Redis ports of the nodes, with commas")
    parser.add_argument("--redis", action="store_true", help="the server is a plain Redis 7.0")
    options = parser.parse_args()
    # Old commands have to work as long as clients have them.
    warnings.simplefilter("ignore", DeprecationWarning)
    ports = [int(port) for port in options.ports.split(",")]
    if len(ports) < 2:
        parser.error("two ports or more are needed; that of a single server may be repeated")
    checks = 0
    for protocol in (2, 3):
        nodes = Nodes(ports, protocol, options.redis)
        for section in SECTIONS + ([] if options.redis else SYROS_SECTIONS):
            try:
                section(nodes)
            except (Failure, RedisError) as error:
                kind = "" if isinstance(error, Failure) else f"{type(error).__name__}: "
                passed = checks + nodes.checks
                print(
                    f"redis-py {redis.__version__}: FAILED in {section.__name__}, RESP{protocol}, after "
                    f"{passed} checks: {kind}{error}"
                )
                sys.exit(1)
        checks += nodes.checks
    print(f"{checks} checks passed")


if __name__ == "__main__":
    main()
