"""What the checks of redis-py are made of: clients of all nodes, a count, and messages that say enough."""

import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.connection import Connection
from redis.exceptions import ConnectionError, RedisError, ResponseError
from redis.retry import Retry

# A reply that takes longer is as good as none.
REPLY_SECONDS_MAX = 60
# What is to happen by itself happens within this time.
PATIENCE_SECONDS = 30
# The longest value, as CONFIG GET proto-max-bulk-len has to say.
VALUE_BYTES_MAX = 16 * 1024 * 1024
KEY_BYTES_MAX = 64 * 1024


class Failure(Exception):
    """A check failed."""


def shown(value):
    """A value as messages show it: not all of a long one."""
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:250]}... ({len(text)} characters)"


def wire_text(error):
    """The text of an error as the server sent it: redis-py takes the code off the ones that it knows."""
    code = getattr(error, "status_code", None)
    return f"{code} {error}" if code else str(error)


class Nodes:
    """The nodes of the cluster, a client for each, and the count of checks."""

    def __init__(self, ports, protocol, is_redis):
        self.ports = ports
        self.protocol = protocol
        self.is_redis = is_redis
        self.checks = 0
        self.turn = 0
        # Only the main thread counts on `turn`; checks are counted by all.
        self.lock = threading.Lock()
        self.clients = [self.client(port) for port in ports]

    def client(self, port):
        """A client of one node. It never sends a command twice: that would hide lost replies."""
        return redis.Redis(
            port=port,
            protocol=self.protocol,
            socket_timeout=REPLY_SECONDS_MAX,
            retry=Retry(NoBackoff(), 0),
        )

    def connection(self, protocol=None):
        """A connection to the next node."""
        connection = Connection(
            port=self.next_port(), protocol=protocol or self.protocol, socket_timeout=REPLY_SECONDS_MAX
        )
        connection.connect()
        return connection

    def next_port(self):
        self.turn += 1
        return self.ports[self.turn % len(self.ports)]

    def next_client(self):
        self.turn += 1
        return self.clients[self.turn % len(self.clients)]

    def port_of(self, client):
        return client.connection_pool.connection_kwargs["port"]

    def check(self, what, holds, got, expected):
        """Counts a check, or ends the run with what was asked, got and expected."""
        if not holds:
            raise Failure(f"{what}: expected {shown(expected)}, got {shown(got)}")
        with self.lock:
            self.checks += 1

    def ask(self, client, method, *arguments, **options):
        """What a method of redis-py returns, and a description of the call; an error is returned too."""
        words = [repr(argument) for argument in arguments]
        words += [f"{name}={value!r}" for name, value in options.items()]
        call = ", ".join(word if len(word) <= 100 else f"{word[:80]}..." for word in words)
        what = f"{method}({call}) at port {self.port_of(client)}, RESP{self.protocol}"
        try:
            return getattr(client, method)(*arguments, **options), what
        except Exception as error:
            # Of redis-py's own kinds, or raised while it looked at a reply that it did not expect.
            return error, what

    def gives(self, expected, method, *arguments, **options):
        """The next node returns exactly this."""
        got, what = self.ask(self.next_client(), method, *arguments, **options)
        self.check(what, type(got) is type(expected) and got == expected, got, expected)

    def gives_between(self, low, high, method, *arguments, **options):
        """The next node returns an integer between these, both included."""
        got, what = self.ask(self.next_client(), method, *arguments, **options)
        self.check(what, type(got) is int and low <= got <= high, got, f"{low} to {high}")

    def gives_set(self, expected, method, *arguments, **options):
        """The next node returns a list of these, each once, in any order."""
        got, what = self.ask(self.next_client(), method, *arguments, **options)
        holds = isinstance(got, list) and sorted(got) == sorted(expected)
        self.check(what, holds, got, sorted(expected))

    def fails(self, text, method, *arguments, **options):
        """The next node answers with this error."""
        got, what = self.ask(self.next_client(), method, *arguments, **options)
        got = wire_text(got) if isinstance(got, RedisError) else got
        self.check(what, got == text, got, text)

    def empty(self):
        self.gives(True, "flushall")
        self.gives(0, "dbsize")


def read_reply(connection):
    """One reply, or the error that it is."""
    try:
        return connection.read_response()
    except RedisError as error:
        return error


def says(nodes, connection, expected, *words):
    """A connection answers these words with exactly this; the text of an error starts with its code."""
    connection.send_command(*words)
    reply = read_reply(connection)
    got = wire_text(reply) if isinstance(reply, ResponseError) else reply
    what = f"{words} at port {connection.port}, RESP{nodes.protocol}"
    nodes.check(what, type(got) is type(expected) and got == expected, got, expected)


def as_map(reply):
    """A map, which RESP2 sends as a flat list; an empty one if it is neither."""
    if isinstance(reply, list):
        return dict(zip(reply[::2], reply[1::2], strict=False))
    return reply if isinstance(reply, dict) else {}


def is_closed(nodes, connection, what):
    """The server has closed this connection."""
    reply = read_reply(connection)
    nodes.check(f"{what}: the connection", isinstance(reply, ConnectionError), reply, "closed")
    connection.disconnect()


def wait_until(nodes, what, holds):
    """Waits for something that happens by itself."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            nodes.check(what, False, "nothing", f"this within {PATIENCE_SECONDS} seconds")
        time.sleep(0.02)
    nodes.check(what, True, None, None)


def in_threads(nodes, work, count):
    """Runs `work(client, number)` in threads, each with a client of its own; passes failures on."""
    failures = []

    def run(number):
        try:
            client = nodes.client(nodes.ports[number % len(nodes.ports)])
            work(client, number)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
