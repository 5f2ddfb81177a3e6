"""Clients that note how long each of their requests takes, and data for them to wait behind."""

import random
import sys
import threading
import time

from nodes import Closed, Error

VALUE_BYTES = 8000
PAUSE = 0.002


class Clients:
    """Two clients at each of several nodes, which ask for something all the time: what was acknowledged, and what went wrong."""

    def __init__(self, nodes):
        self.written, self.errors, self.is_done = {}, [], threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(node, n)) for node in nodes for n in range(2)]
        for thread in self.threads:
            thread.start()

    def ask(self, redis, name, count):
        """Asks for something, for the client of this name. Gives the answers."""
        raise NotImplementedError

    def work(self, node, worker):
        count = 0
        try:
            with node.redis(15) as redis:
                while not self.is_done.is_set():
                    count += 1
                    answers = self.ask(redis, f"{node.index}-{worker}", count)
                    errors = [answer for answer in answers if isinstance(answer, Error)]
                    if errors:
                        self.errors += errors
                        return
        except (OSError, Closed) as error:
            self.errors.append(Error(f"node {node.index}: {error}"))

    def end(self):
        self.is_done.set()
        for thread in self.threads:
            thread.join(20)


class Probes(Clients):
    """Clients that write and read small values, and note how long each request took, and when."""

    def __init__(self, nodes):
        self.times = []
        super().__init__(nodes)

    def ask(self, redis, name, count):
        name, value = f"probe-{name}-{count % 500}", str(count)
        begun = time.time()
        answers = redis.call("SET", name, value), redis.call("INCR", f"{name}-count")
        self.times.append((begun, (time.time() - begun) / 2))
        if not any(isinstance(answer, Error) for answer in answers):
            self.written[name] = value
            time.sleep(PAUSE)
        return answers

    def between(self, begin, end):
        """Median, p99 and longest, in milliseconds, of the requests that began then."""
        times = sorted(took * 1000 for begun, took in self.times if begin <= begun < end)
        if not times:
            return "nothing was answered"
        median, late = times[len(times) // 2], times[len(times) * 99 // 100]
        return f"median {median:.2f} ms, p99 {late:.2f} ms, longest {times[-1]:.1f} ms, of {len(times)}"


def fill(node, count):
    """Values that nobody can compress, in pipelines."""
    noise = random.Random(7).randbytes(VALUE_BYTES * 64)
    with node.redis(120) as redis:
        for first in range(0, count, 64):
            keys = range(first, min(count, first + 64))
            for key in keys:
                start = key * 613 % (len(noise) - VALUE_BYTES)
                redis.send("SET", f"large-{key}", noise[start : start + VALUE_BYTES])
            for _ in keys:
                if redis.reply() != "OK":
                    raise RuntimeError("a SET was refused")
            if first and first % 16384 == 0:
                print(f"  filled {first} of {count}", file=sys.stderr)


class Busy:
    """Somebody who overwrites what `fill` has written, so many MiB a second."""

    def __init__(self, node, count, rate):
        self.written, self.is_done = 0, threading.Event()
        self.thread = threading.Thread(target=self.work, args=(node, count, rate)) if rate else None
        if self.thread:
            self.thread.start()

    def work(self, node, count, rate):
        noise = random.Random(8).randbytes(VALUE_BYTES * 256)
        begun, sent = time.time(), 0
        with node.redis(120) as redis:
            while not self.is_done.is_set():
                for key in range(sent, sent + 64):
                    start = key * 613 % (len(noise) - VALUE_BYTES)
                    redis.send("SET", f"large-{key % count}", noise[start : start + VALUE_BYTES])
                for _ in range(64):
                    redis.reply()
                sent += 64
                self.written = sent * VALUE_BYTES >> 20
                self.is_done.wait(max(0, begun + sent * VALUE_BYTES / (rate * (1 << 20)) - time.time()))

    def end(self):
        self.is_done.set()
        if self.thread:
            self.thread.join(60)


def applied(node):
    """The last entry that a node has executed, if it takes part."""
    info = str(node.ask("INFO", "syros", timeout=2))
    fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    return int(fields["applied"]) if fields.get("status") == "normal" and "applied" in fields else None
