"""Clusters of real processes, Redis clients and raw peers, for the cases of tests/operator/run."""

import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

from xxh3 import xxh3_64

GIB = 1 << 30

# No case may take the machine down: nodes get no more address space than this.
NODE_MEMORY_MAX = 3 * GIB

ANY_CLUSTER = 0
CLUSTER = 0x4711


class Skipped(Exception):
    """The case needs something that this machine does not have."""


class Closed(Exception):
    """The other end closed the connection."""


class Error(str):
    """An error reply."""


def free_ports(count):
    """The first of so many ports that nobody listens on, below those that the system gives to outgoing connections."""
    while True:
        first = random.randrange(10_000, 32_000)
        try:
            for offset in range(count):
                with socket.socket() as listener:
                    listener.bind(("127.0.0.1", first + offset))
            return first
        except OSError:
            continue


class Settings:
    """Settings that newer builds need or have. A build that does not know one gets the file without it."""

    def __init__(self, binary, scratch):
        self.binary = binary
        self.scratch = scratch
        self.known = {}

    def accepts(self, section, line):
        """True if the build takes this line of configuration."""
        key = line.split("=")[0].strip()
        if (section, key) not in self.known:
            directory = os.path.join(self.scratch, "settings")
            os.makedirs(directory, exist_ok=True)
            path = os.path.join(directory, "node.toml")
            with open(path, "w") as file:
                head = 'cluster = 1\nreplicas = ["127.0.0.1:1"]\nreplica = 0\ndirectory = "none/such"\n'
                # The directory does not exist: whatever is wrong with the file is said before that.
                file.write(f"{head}\n[{section}]\n{line}\n" if section else f"{line}\n{head}")
            done = subprocess.run(
                [self.binary, "server", "--config", path], capture_output=True, text=True, timeout=20
            )
            text = done.stdout + done.stderr
            # A port that is taken, by a node of the case before, is named by what it is for.
            is_unknown = "node.toml: " in text or (key in text and "in use" not in text)
            self.known[section, key] = not is_unknown
        return self.known[section, key]


class Context:
    """What a cluster needs to know that is no case of tests/operator/run."""

    def __init__(self, binary, scratch, case="cluster"):
        self.binary, self.scratch, self.case = binary, scratch, case
        self.port, self.settings = free_ports(30), Settings(binary, scratch)


class Node:
    def __init__(self, cluster, index):
        self.cluster, self.index = cluster, index
        self.redis_port = cluster.port + index
        self.peer_port = cluster.port + 20 + index
        self.directory = os.path.join(cluster.directory, f"node-{index}")
        self.config = os.path.join(cluster.directory, f"node-{index}.toml")
        self.log = os.path.join(cluster.directory, f"node-{index}.log")
        self.process = None

    def start(self, bootstrap=False, replace=False, join=False, memory=NODE_MEMORY_MAX, env=None, wait=True):
        arguments = [*self.cluster.wrapper, self.cluster.binary, "server", "--config", self.config]
        if bootstrap:
            arguments.append("--bootstrap")
        if replace:
            arguments.append("--replace")
        if join:
            arguments.append("--join")

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            os.setpgrp()

        environment = dict(os.environ, **(env or {}))
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=limit, env=environment
            )
        if wait:
            self.wait_for_port()
            self.ask_when_loaded("PING", seconds=20)
        return self

    def wait_for_port(self, seconds=20):
        end = time.time() + seconds
        while time.time() < end and self.is_alive():
            try:
                socket.create_connection(("127.0.0.1", self.redis_port), 1).close()
                return True
            except OSError:
                time.sleep(0.05)
        return False

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        if self.is_alive():
            self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self, seconds=15):
        self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds=15):
        if self.process is None:
            return None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def resident(self):
        """Bytes of memory that it has."""
        try:
            with open(f"/proc/{self.process.pid}/statm") as file:
                return int(file.read().split()[1]) * resource.getpagesize()
        except OSError:
            return 0

    def lines(self):
        with open(self.log, errors="replace") as file:
            return file.read()

    def redis(self, timeout=5):
        return Redis(self.redis_port, timeout)

    def ask(self, *words, timeout=5):
        """One command on a connection of its own. What goes wrong is an Error, too."""
        try:
            with self.redis(timeout) as redis:
                return redis.call(*words)
        except (OSError, Closed) as error:
            return Error(f"{type(error).__name__}: {error}")

    def ask_when_loaded(self, *words, seconds=5):
        """One command, again while the node says that it is starting, for so long."""
        end = time.time() + seconds
        while True:
            answer = self.ask(*words)
            if not str(answer).startswith("LOADING") or time.time() > end:
                return answer
            time.sleep(0.05)


class Cluster:
    """Some nodes in a directory of their own, ended with the `with`."""

    def __init__(self, context, count=3, extra="", each=None, addresses=None, root=None, top=""):
        self.binary, self.port = context.binary, context.port
        # A command that runs the program, where it is to see the machine in another way.
        self.wrapper = []
        self.directory = root or os.path.join(context.scratch, context.case)
        shutil.rmtree(self.directory, ignore_errors=True) if root is None else None
        os.makedirs(self.directory, exist_ok=True)
        self.nodes = [Node(self, index) for index in range(count)]
        self.top, self.extra = f"{self.secret(context)}\n{top}", extra
        for node in self.nodes:
            self.configure(node, addresses, each(node.index) if each else "")

    def configure(self, node, addresses=None, own=""):
        """Writes the configuration of a node, with all nodes that there are now."""
        addresses = addresses or [f"127.0.0.1:{other.peer_port}" for other in self.nodes]
        with open(node.config, "w") as file:
            listed = ", ".join(f'"{address}"' for address in addresses)
            file.write(
                f"cluster = {CLUSTER}\nreplicas = [{listed}]\nreplica = {node.index}\n"
                f'directory = "{node.directory}"\n{self.top}\n'
                f'[listen]\nredis = "127.0.0.1:{node.redis_port}"\nreplicas = "127.0.0.1:{node.peer_port}"\n'
                f"{self.extra}\n{own}\n"
            )

    def grow(self, **options):
        """Two more nodes join."""
        size = len(self.nodes)
        self.nodes += [Node(self, index) for index in range(size, size + 2)]
        for node in self.nodes[size:]:
            self.configure(node)
            node.start(join=True, wait=False, **options)
        return self.nodes[size:]

    def secret(self, context):
        """A line of configuration with the secret of the cluster, if this build has that."""
        path = os.path.join(self.directory, "secret")
        with open(path, "w") as file:
            file.write(os.urandom(24).hex())
        os.chmod(path, 0o600)
        line = f'secret-file = "{path}"'
        return line if context.settings.accepts("", line) else ""

    def start(self, seconds=20, env=lambda _: None, **options):
        # Together: a new cluster is formed by all of its nodes.
        for node in self.nodes:
            node.start(bootstrap=True, wait=False, env=env(node.index), **options)
        end = time.time() + seconds
        for node in self.nodes:
            node.wait_for_port(end - time.time())
        return self

    def restart(self):
        """Ends all nodes, and starts them with what they have on disk."""
        for node in self.nodes:
            node.stop()
        for node in self.nodes:
            node.start(wait=False)
        for node in self.nodes:
            node.wait_for_port()
        return self.ready()

    def ready(self, seconds=20):
        """Waits until the first nodes take a write."""
        end = time.time() + seconds
        while time.time() < end:
            if self.nodes[0].ask("SET", "ready", "1", timeout=2) == "OK":
                return self
            time.sleep(0.1)
        raise RuntimeError(f"the cluster does not start: {self.nodes[0].lines()[-500:]}")

    def leader(self, seconds=5):
        """The node that says it leads."""
        end = time.time() + seconds
        while time.time() < end:
            for node in self.nodes:
                if node.is_alive() and "replica_role:leader" in str(node.ask("INFO", "syros", timeout=1)):
                    return node
            time.sleep(0.05)
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.signal(signal.SIGCONT)
            node.kill()


class Redis:
    """A connection of a Redis client."""

    def __init__(self, port, timeout=5):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.settimeout(timeout)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def call(self, *words):
        self.send(*words)
        return self.reply()

    def send(self, *words):
        self.socket.sendall(request(*words))

    def reply(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return Error(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            length = int(rest)
            if length < 0:
                return None
            while len(self.buffer) < length + 2:
                self.more()
            text, self.buffer = self.buffer[:length], self.buffer[length + 2 :]
            return text.decode(errors="replace")
        if kind == b"*":
            return None if int(rest) < 0 else [self.reply() for _ in range(int(rest))]
        raise Closed(f"a strange reply: {line[:40]!r}")

    def line(self):
        while b"\r\n" not in self.buffer:
            self.more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def more(self):
        piece = self.socket.recv(1 << 18)
        if not piece:
            raise Closed("the connection was closed")
        self.buffer += piece


def request(*words):
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts += [f"${len(word)}\r\n".encode(), word, b"\r\n"]
    return b"".join(parts)


# ---- Raw peers: frames and handshake as crates/wire has them, in version 3 of the format and in version 4.


def number(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def read_number(data, at):
    """A number and where it ends."""
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fixed(value):
    return struct.pack("<Q", value)


def frame(channel, payload, version=3):
    # A handshake has no checksum in any version.
    checked = version > 3 and channel != 2
    content = bytes([channel]) + payload
    end = struct.pack("<I", xxh3_64(content) & 0xFFFFFFFF) if checked else b""
    return struct.pack("<I", len(content) + len(end)) + content + end


def client_hello(version, cluster=ANY_CLUSTER):
    nonce = b"" if version == 3 else b"\x00"
    return b"SYRS" + struct.pack("<H", version) + fixed(cluster) + nonce + b"\x01"


def replica_hello(version, replica, size, theirs):
    """Says what a member would say. `theirs` is what a node says of itself, from which a stranger can learn most of it."""
    head = b"SYRS" + struct.pack("<H", version) + fixed(CLUSTER)
    if version == 3:
        return head + bytes([2, replica, size, 1])
    at = 15 + (16 if theirs[14] else 0)
    if theirs[at : at + 1] != b"\x02":
        return head + b"\x00\x02"
    fields = at + 5
    length, after = read_number(theirs, fields)
    after += length
    for _ in range(3):
        _, after = read_number(theirs, after)
    # Disk and process; the stage, and the disks of all members.
    roster = theirs[after + 17 : after + 17 + 8 * size]
    disk = roster[8 * replica : 8 * replica + 8] or fixed(7)
    own = bytes([replica]) + theirs[at + 2 : after] + disk + os.urandom(8) + theirs[after + 16 :]
    return head + b"\x00\x02" + own


def set_body(key, value):
    """The operation SET key value."""
    return b"\x20" + number(len(key)) + key + number(len(value)) + value


class Peer:
    """A process that says it is a replica, or a client, of the cluster, and does not know its secret."""

    REPLICA, CLIENT = 0, 1

    def __init__(self, node, replica=None, size=3, timeout=3):
        theirs = self.connect(node, timeout, client_hello(3))
        if theirs[4:6] != b"\x03\0":
            theirs = self.connect(node, timeout, client_hello(4))
        self.version = int.from_bytes(theirs[4:6], "little")
        if replica is not None:
            self.connect(node, timeout, replica_hello(self.version, replica, size, theirs))
        self.refusal = None

    def connect(self, node, timeout, hello):
        """Connects and says hello; what the node says of itself."""
        if getattr(self, "socket", None):
            self.socket.close()
        self.socket = socket.create_connection(("127.0.0.1", node.peer_port), timeout)
        self.socket.settimeout(timeout)
        self.buffer, self.version = b"", 3
        self.socket.sendall(frame(2, hello))
        try:
            return self.receive()[1]
        except Closed:
            return b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, channel, payload):
        self.socket.sendall(frame(channel, payload, self.version))

    def receive(self):
        """Channel and payload of the next frame."""
        while True:
            if len(self.buffer) >= 4:
                (length,) = struct.unpack("<I", self.buffer[:4])
                if len(self.buffer) >= 4 + length:
                    channel = self.buffer[4]
                    end = 4 if self.version > 3 and channel != 2 else 0
                    payload = self.buffer[5 : 4 + length - end]
                    self.buffer = self.buffer[4 + length :]
                    return channel, payload
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise Closed("the node closed the connection")
            self.buffer += piece

    def is_welcome(self):
        """True if the node goes on listening."""
        try:
            self.socket.settimeout(0.7)
            while True:
                channel, payload = self.receive()
                if channel == 2 and payload[:1] == b"\x04":
                    _, at = read_number(payload, 1)
                    self.refusal = payload[at:].decode(errors="replace")
        except socket.timeout:
            return self.refusal is None
        except (OSError, Closed):
            return False
        finally:
            self.socket.settimeout(3)


class Relay:
    """Stands before a node's port for replicas; what goes through it can be stopped, as by a network that fails. It keeps what
    those who connect have said first."""

    RECORDED_MAX = 1 << 20

    def __init__(self, listen, to):
        self.to, self.pairs, self.is_cut, self.recorded = to, [], threading.Event(), []
        self.server = socket.create_server(("127.0.0.1", listen))
        self.address = f"127.0.0.1:{listen}"
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()

    def accept(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.to), 2)
            except OSError:
                client.close()
                continue
            self.pairs += [client, server]
            self.recorded.append(bytearray())
            for source, sink, record in ((client, server, self.recorded[-1]), (server, client, None)):
                threading.Thread(target=self.pump, args=(source, sink, record), daemon=True).start()

    def pump(self, source, sink, record):
        try:
            while piece := source.recv(1 << 16):
                if record is not None and len(record) < self.RECORDED_MAX:
                    record += piece
                while self.is_cut.is_set():
                    time.sleep(0.02)
                sink.sendall(piece)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        # A socket that a thread waits at listens on until that thread comes back, closed or not.
        self.server.shutdown(socket.SHUT_RDWR)
        self.accepting.join()
        self.server.close()
        for end in self.pairs:
            end.close()
