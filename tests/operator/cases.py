"""What FOUND.md found, played on real processes. Each case returns (is mended, what was seen)."""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from names import names
from nodes import (
    GIB,
    Closed,
    Cluster,
    Error,
    Node,
    Peer,
    Redis,
    Relay,
    Skipped,
    fixed,
    frame,
    number,
    read_number,
    request,
    set_body,
)
from probes import VALUE_BYTES, Clients, fill

MIB = 1 << 20


def a1(context):
    """--bootstrap on a wiped disk, with an acknowledged write on the wiped disk and the one that is away only."""
    with Cluster(context) as cluster:
        cluster.start().ready()
        zero, one, two = cluster.nodes
        # The lead is with node 0, as at the first start.
        one.stop()
        time.sleep(0.5)
        written = zero.ask("SET", "precious2", "gold2", timeout=12)
        if written != "OK":
            return False, f"SET with two of three nodes: {written}"
        zero.kill()
        two.stop()
        shutil.move(two.directory, two.directory + ".lost")
        two.start(bootstrap=True, wait=False)
        one.start(wait=False)
        time.sleep(4)
        seen = one.ask("GET", "precious2", timeout=4) if one.is_alive() else "node 1 is down"
        if seen is None:
            return False, "the acknowledged value is nil after a wiped node joined with --bootstrap"
        if not two.is_alive():
            how = "the wiped node refuses to start"
        else:
            how = f"the others do not serve with it (GET: {str(seen)[:60]})"
        zero.start()
        end, value = time.time() + 10, None
        while time.time() < end and value != "gold2":
            value = zero.ask("GET", "precious2", timeout=3)
        return value == "gold2", f"{how}; with node 0 back GET is {str(value)[:60]!r}"


def a2(context):
    """The leader has a lease of 10 s, the others 200 ms; then it is cut off."""
    port = context.port + 40
    relay = Relay(port, context.port + 20)
    addresses = [f"127.0.0.1:{port}"] + [f"127.0.0.1:{context.port + 20 + node}" for node in (1, 2)]
    long = '[timing]\nlease = "10s"\nsuspect-after = "10s"\n'
    try:
        with Cluster(context, each=lambda node: "" if node else long, addresses=addresses) as cluster:
            cluster.start(seconds=5)
            zero, one, _ = cluster.nodes
            refused = [line for node in cluster.nodes for line in node.lines().splitlines() if "lease" in line]
            if refused:
                return True, refused[-1].split("] ")[-1][-110:]
            end, old = time.time() + 6, None
            while time.time() < end and old != "OK":
                old = zero.ask("SET", "k", "old", timeout=2)
            relay.is_cut.set()
            end, new = time.time() + 15, None
            while time.time() < end and new != "OK":
                new = one.ask("SET", "k", "new", timeout=2)
            seen = zero.ask("READ", "leader", "GET", "k", timeout=3)
            if seen == "old" and new == "OK":
                return False, "the old leader answers 'old' when the new one has acknowledged 'new'"
            return new == "OK", f"the new leader took the write ({new}); GET at the old one: {str(seen)[:50]}"
    finally:
        relay.is_cut.clear()
        relay.close()


def a2_rolling(context):
    """Both followers are started again with a lease of 200 ms, while the leader counts on 4 s that they promised."""
    timing = '\n[timing]\nlease = "{0}"\nsuspect-after = "{0}"\n'
    with Cluster(context, extra=timing.format("4s")) as cluster:
        cluster.start(seconds=20).ready()
        leader = cluster.leader(10)
        followers = [node for node in cluster.nodes if node is not leader]
        leader.ask("SET", "k", "old", timeout=5)
        for node in followers:
            node.stop()
            with open(node.config) as file:
                text = file.read()
            with open(node.config, "w") as file:
                file.write(text.replace('"4s"', '"200ms"'))
            node.start(wait=False)
        end, new = time.time() + 20, None
        while time.time() < end and new != "OK":
            try:
                new = followers[0].ask("SET", "k", "new", timeout=1)
            except OSError:
                time.sleep(0.05)
        seen = leader.ask("READ", "leader", "GET", "k", timeout=2)
        if new == "OK" and seen == "old":
            return False, "the old leader answers 'old' when the others have acknowledged 'new'"
        return new == "OK", f"the others took the write ({new}); GET at the old leader: {str(seen)[:60]}"


def clock_library(context):
    """A library that lets a process read another time of day."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise Skipped("there is no C compiler")
    library = os.path.join(context.scratch, "clock.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def a3(context):
    """The leader's clock is an hour ahead for some seconds."""
    library = clock_library(context)
    offset = os.path.join(context.scratch, "offset")

    with open(offset, "wb") as file:
        file.write(bytes(8))

    def set_offset(seconds):
        # In place: the node has the file mapped.
        with open(offset, "r+b") as file:
            file.write(seconds.to_bytes(8, "little"))

    with Cluster(context) as cluster:
        moved = {"LD_PRELOAD": library, "SYROS_TEST_CLOCK": offset}
        cluster.start(env=lambda node: moved if node == 0 else {}).ready()
        one = cluster.nodes[1]
        one.ask("SET", "long", "lived", "EX", "600")
        set_offset(3600)
        end, gone = time.time() + 8, False
        while time.time() < end and not gone:
            one.ask("INCR", "other", timeout=2)
            gone = one.ask("GET", "long", timeout=2) is None
            time.sleep(0.2)
        set_offset(0)
        time.sleep(0.5)
        one.ask("SET", "short", "lived", "EX", "2", timeout=12)
        time.sleep(3.5)
        one.ask("INCR", "other", timeout=3)
        left = one.ask("TTL", "short", timeout=3)
        stands = isinstance(left, int) and not isinstance(left, bool) and left > 0
        if gone or stands:
            first = "a key with a TTL of 600 s is gone" if gone else "no key is gone"
            second = f"a key of 2 s has {left} s left after 3.5 s" if stands else "later TTLs end"
            return False, f"{first}; {second}"
        return left == -2, f"the key of 600 s stays, one of 2 s is gone after 3.5 s (TTL {left})"


def a4(context):
    """Slow readers and unfinished requests."""
    with Cluster(context, count=1) as cluster:
        node = cluster.start().ready().nodes[0]
        node.ask("SET", "large", b"x" * (10 * MIB), timeout=20)
        before, most, held = node.resident(), 0, []
        try:
            for _ in range(10):
                reader = Redis(node.redis_port)
                reader.socket.sendall(request("GET", "large") * 300)
                held.append(reader)
            end = time.time() + 6
            while time.time() < end and node.is_alive():
                most = max(most, node.resident())
                time.sleep(0.05)
        except OSError:
            pass
        if not node.is_alive():
            return False, f"10 readers that never read: the node is dead at its limit of {3 * GIB >> 20} MiB"
        for reader in held:
            reader.socket.close()
        held.clear()
        first = most - before
        time.sleep(1)
        body = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16000000\r\n" + b"y" * (15 * MIB)
        before, most = node.resident(), 0
        for _ in range(60):
            try:
                writer = Redis(node.redis_port, timeout=1)
                held.append(writer)
                writer.socket.sendall(body)
            except OSError:
                pass
            most = max(most, node.resident())
            if not node.is_alive() or most > 2 * GIB:
                break
        for writer in held:
            writer.socket.close()
        second, alive = max(0, most - before), node.is_alive()
        seen = f"10 readers that never read: {first >> 20} MiB; 60 unfinished requests: {second >> 20} MiB"
        return alive and first < 1200 * MIB and second < 600 * MIB, seen


def a5(context):
    """Data beyond memory."""
    extra = ""
    settings = [
        ("memory", 'maxmemory = "256MiB"'),
        ("limits", 'log-memory = "64MiB"'),
        ("limits", 'log-keep = "16MiB"'),
    ]
    for section in ("memory", "limits"):
        lines = [line for of, line in settings if of == section and context.settings.accepts(of, line)]
        extra += "\n".join([f"[{section}]", *lines, ""]) if lines else ""
    with Cluster(context, extra=extra) as cluster:
        cluster.start(memory=GIB).ready()
        value, refused, written = b"x" * (2 * MIB), None, 0
        for index in range(600):
            answer = cluster.nodes[0].ask("SET", f"key-{index}", value, timeout=12)
            if answer == "OK":
                written += 1
            elif "OOM" in answer:
                refused = answer
                break
            elif not all(node.is_alive() for node in cluster.nodes):
                break
        time.sleep(0.5)
        dead = [node.index for node in cluster.nodes if not node.is_alive()]
        if dead:
            return False, f"after {written * 2} MiB of 1 GiB nodes {dead} are dead"
        if refused is None:
            return False, f"nothing is refused ({written * 2} MiB were taken)"
        return True, f"after {written * 2} MiB: {str(refused)[:80]}"


class SmallDisks:
    """Directories that hold few megabytes, each a file system of its own."""

    def __init__(self, context, sizes):
        if os.geteuid() != 0:
            raise Skipped("mounting a small file system takes root")
        self.root = os.path.join(context.scratch, context.case)
        shutil.rmtree(self.root, ignore_errors=True)
        self.mounted = []
        for index, size in enumerate(sizes):
            place = os.path.join(self.root, f"disk-{index}")
            os.makedirs(place)
            options = f"size={size}"
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], capture_output=True)
            if done.returncode != 0:
                self.close()
                raise Skipped("a file system cannot be mounted here")
            self.mounted.append(place)

    def close(self):
        for place in self.mounted:
            subprocess.run(["umount", "-l", place], capture_output=True)


def on_small_disks(context, sizes, play):
    """Three nodes, each with a disk of such a size."""
    disks = SmallDisks(context, sizes)
    try:
        extra = '[disk]\nwal-segment = "1MiB"\n'
        reserve = 'reserve = "4MiB"'
        if context.settings.accepts("disk", reserve):
            extra += reserve + "\n"
        with Cluster(context, extra=extra, root=disks.root) as cluster:
            for node in cluster.nodes:
                node.directory = os.path.join(disks.mounted[node.index], "data")
                with open(node.config) as file:
                    text = file.read()
                text = text.replace(os.path.join(cluster.directory, f"node-{node.index}\""), node.directory + '"')
                with open(node.config, "w") as file:
                    file.write(text)
            cluster.start().ready()
            return play(cluster)
    finally:
        disks.close()


def a6(context):
    """All disks are full."""

    def play(cluster):
        node, value = cluster.nodes[0], b"x" * (512 << 10)
        slowest, last, unknown = 0.0, "OK", 0
        for index in range(200):
            began = time.time()
            last = node.ask("SET", f"key-{index}", value, timeout=13)
            # Where one replica has room yet and the leader has none, nobody knows what becomes of the write. Its client
            # hears that when it gives up, after ten seconds. It happens only while the disks are running full.
            if str(last).startswith("UNKNOWN"):
                unknown += 1
                continue
            slowest = max(slowest, time.time() - began)
            if last != "OK":
                break
        # A small one may fit where the large one did not, or when a snapshot has made room.
        began = time.time()
        small = node.ask("SET", "one", "more", timeout=13)
        slowest = max(slowest, time.time() - began)
        reads = []
        for words in (("GET", "ready"), ("DBSIZE",)):
            began = time.time()
            reads.append((words[0], node.ask(*words, timeout=13), time.time() - began))
        flushed = node.ask("FLUSHALL", timeout=13)
        # Where the disk is short, a snapshot is tried every ten seconds.
        end, again = time.time() + 40, None
        while flushed == "OK" and time.time() < end and again != "OK":
            again = node.ask("SET", "after", "all", timeout=5)
        seen = ", ".join(f"{name} {str(value)[:24]!r} in {took:.1f} s" for name, value, took in reads)
        good = all(not isinstance(value, Error) and took < 3 for _, value, took in reads)
        is_refused = "was not executed" in str(last)
        is_clear = small == "OK" or "was not executed" in str(small) or str(small).startswith("UNKNOWN")
        mended = good and slowest < 5 and unknown < 3 and is_refused and is_clear and flushed == again == "OK"
        return (
            mended,
            f"{unknown} unknown; a write took {slowest:.1f} s and ended {str(last)[:60]!r}; {seen}; FLUSHALL {str(flushed)[:30]!r}, then {str(again)[:60]!r}",
        )

    return on_small_disks(context, ["40m"] * 3, play)


def a6_minority(context):
    """The disk of one node is full of the node's own data, and the others go on: it can be started again."""

    def play(cluster):
        small, other = cluster.nodes[0], cluster.nodes[1]
        for index in range(70):
            other.ask("SET", f"key-{index}", b"x" * (1 << 20), timeout=13)
        state = str(small.ask("INFO", "syros", timeout=5))
        flushed = other.ask("FLUSHALL", timeout=13)
        small.kill()
        small.start()
        end, again = time.time() + 40, None
        while time.time() < end and again != "OK":
            again = small.ask("SET", "after", "all", timeout=5)
        is_full = "disk:full" in state
        seen = f"its disk was {'' if is_full else 'not '}full; FLUSHALL {str(flushed)[:30]!r}; started again, SET there {str(again)[:50]!r}"
        return is_full and flushed == again == "OK", seen

    return on_small_disks(context, ["40m", "400m", "400m"], play)


def a7(context):
    """A majority is down: what is said, and how soon."""
    with Cluster(context) as cluster:
        cluster.start().ready()
        zero = cluster.nodes[0]
        for node in cluster.nodes[1:]:
            node.kill()
        time.sleep(3)
        info = str(zero.ask("INFO", "syros"))
        status = next((line for line in info.splitlines() if line.startswith("status:")), "no status")
        took = []
        for words in (("SET", "k", "v"), ("GET", "k")):
            began = time.time()
            answer = zero.ask(*words, timeout=13)
            took.append((words[0], time.time() - began, str(answer)[:24]))
        code = subprocess.run(
            [context.binary, "status", "--addr", f"127.0.0.1:{zero.redis_port}"], capture_output=True
        ).returncode
        seen = ", ".join(f"{name} {answer!r} after {seconds:.1f} s" for name, seconds, answer in took)
        mended = all(seconds < 3 for _, seconds, _ in took) and status != "status:normal" and code != 0
        return mended, f"{seen}; INFO {status}; exit code of status {code}"


def a7_disk(context):
    """One disk is full: does `syros status` tell?"""

    def play(cluster):
        node = cluster.nodes[2]
        filler = os.path.join(os.path.dirname(node.directory), "filler")
        with open(filler, "wb") as file:
            try:
                while True:
                    file.write(b"x" * MIB)
                    file.flush()
            except OSError:
                pass
        for index in range(40):
            cluster.nodes[0].ask("SET", f"key-{index}", b"x" * (100 << 10), timeout=12)
        time.sleep(1)
        done = subprocess.run(
            [context.binary, "status", "--addr", f"127.0.0.1:{cluster.nodes[0].redis_port}"],
            capture_output=True,
            text=True,
        )
        tells = "disk" in done.stdout + done.stderr
        return done.returncode != 0 and tells, f"exit code {done.returncode}, the disk is {'' if tells else 'not '}named"

    return on_small_disks(context, ["40m"] * 3, play)


def a7_loading(context):
    """A node that starts with much to read: does PING get an answer?"""
    with Cluster(context, count=1) as cluster:
        node = cluster.start().ready().nodes[0]
        with node.redis(30) as redis:
            for first in range(0, 300_000, 10_000):
                for index in range(first, first + 10_000):
                    redis.send("SET", f"key-{index}", "x" * 64)
                for _ in range(10_000):
                    redis.reply()
        node.kill()
        node.start(wait=False)
        end, answers = time.time() + 30, set()
        while time.time() < end and "PONG" not in answers and node.is_alive():
            answers.add(str(node.ask("PING", timeout=0.25))[:7])
            time.sleep(0.002)
        return "LOADING" in answers, f"answers to PING until it is ready: {sorted(answers)}"


def a11(context):
    """Data in memory only: all data directories are away for two seconds. No process ends; is the data still there?"""
    with Cluster(context, top='durability = "replicated"') as cluster:
        cluster.start().ready()
        cluster.nodes[0].ask("SET", "precious", "gold", timeout=12)
        for node in cluster.nodes:
            os.rename(node.directory, node.directory + ".away")
        time.sleep(2)
        for node in cluster.nodes:
            os.rename(node.directory + ".away", node.directory)
        end, disks = time.time() + 20, []
        while time.time() < end and disks != ["disk:ok"] * 3:
            time.sleep(0.5)
            infos = [str(node.ask("INFO", "syros", timeout=2)) for node in cluster.nodes]
            disks = [next((line for line in info.splitlines() if line.startswith("disk:")), "none") for info in infos]
        answers = [str(node.ask("GET", "precious", timeout=12)) for node in cluster.nodes]
        written = [str(node.ask("SET", "precious", "silver", timeout=12)) for node in cluster.nodes]
        # The log that was opened again is one that takes views.
        leader = cluster.leader() or cluster.nodes[0]
        leader.kill()
        other = next(node for node in cluster.nodes if node is not leader)
        last = str(other.ask("GET", "precious", timeout=20))
        mended = disks == ["disk:ok"] * 3 and answers == ["gold"] * 3 and written == ["OK"] * 3 and last == "silver"
        return mended, f"INFO {disks}, GET at each node: {answers}, SET: {written}, GET when the leader is dead: {last}"


def a11_one(context):
    """Data in memory only: one data directory is away for two seconds. Does its node work again?"""
    with Cluster(context, top='durability = "replicated"') as cluster:
        cluster.start().ready()
        cluster.nodes[0].ask("SET", "precious", "gold", timeout=12)
        node = cluster.nodes[2]
        os.rename(node.directory, node.directory + ".away")
        time.sleep(2)
        os.rename(node.directory + ".away", node.directory)
        end, disk = time.time() + 40, ""
        while time.time() < end and disk != "disk:ok":
            time.sleep(0.5)
            info = str(node.ask("INFO", "syros", timeout=2))
            disk = next((line for line in info.splitlines() if line.startswith("disk:")), "no answer")
        answers = [str(each.ask("GET", "precious", timeout=12)) for each in cluster.nodes]
        written = str(node.ask("SET", "precious", "silver", timeout=12))
        mended = disk == "disk:ok" and answers == ["gold"] * 3 and written == "OK"
        return mended, f"INFO {disk}, GET at each node: {answers}, SET at the node: {written}"


def files_of(directory):
    """What is in a directory: names and content."""
    found = {}
    for path, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.relpath(os.path.join(path, name), directory)] = file.read()
    return found


def another_takes_the_place(context, rounds, top, extra="", key=lambda worker, count: f"key-{worker}"):
    """Writes while another directory takes the place of the data directory for a second, in several rounds. Gives the
    acknowledged writes that are lost, and the files that the node has made, changed or removed in the other directory."""
    with Cluster(context, count=1, top=top, extra=extra) as cluster:
        cluster.start().ready()
        node, written, lost, touched = cluster.nodes[0], {}, [], []
        away, other = node.directory + ".away", node.directory + ".other"
        for each in range(rounds):
            shutil.rmtree(other, ignore_errors=True)
            # An older copy, say.
            for name in ("identity", "lock", "reserve", "view/view", "snapshots/snapshot-1", "engine/0/tables/1", "wal/old"):
                os.makedirs(os.path.dirname(os.path.join(other, name)), exist_ok=True)
                with open(os.path.join(other, name), "w") as file:
                    file.write("precious")
            before, is_done = files_of(other), threading.Event()

            def work(worker, number=each):
                count = 0
                while not is_done.is_set():
                    try:
                        with node.redis(15) as redis:
                            while not is_done.is_set():
                                count += 1
                                name, value = key(worker, count), f"{number:03d}-{count:09d}-" + "x" * 30_000
                                if redis.call("SET", name, value) == "OK":
                                    written[name] = value
                                else:
                                    time.sleep(0.02)
                    except (OSError, Closed):
                        time.sleep(0.05)

            workers = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
            for worker in workers:
                worker.start()
            time.sleep(0.7)
            os.rename(node.directory, away)
            os.rename(other, node.directory)
            time.sleep(1)
            is_done.set()
            os.rename(node.directory, other)
            # Fails if the node has made something in the place meanwhile.
            os.rename(away, node.directory)
            for worker in workers:
                worker.join(20)
            after = files_of(other)
            touched += sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
            cluster.ready()
            for name, value in written.items():
                # A write that was not acknowledged may have come after it.
                found = str(node.ask("GETRANGE", name, 0, 12, timeout=12))
                if found < value[:13]:
                    lost.append(f"{name}: {value[:13]} was acknowledged, {found} is there")
            if lost or touched:
                break
        return lost, touched


def a12(context):
    """With fsync, another directory takes the place of the data directory for a second under load, and the own one returns.
    Are all acknowledged writes there, and is the other directory untouched?"""
    # The log begins a new segment several times in the tenth of a second in which the node does not know.
    extra = '[disk]\nwal-segment = "256KiB"'
    lost, touched = another_takes_the_place(context, 4, top='durability = "fsync"', extra=extra)
    seen = f"lost: {lost[:2] or 'nothing'}; touched in the other directory: {touched[:3] or 'nothing'}"
    return not lost and not touched, seen


def a12_engine(context):
    """The same with the engine on disk, which makes and removes files of its own, and without fsync."""
    lost, touched = another_takes_the_place(
        context,
        6,
        top='durability = "replicated"\nengine = "disk"',
        extra='[disk-engine]\nmemtable = "1MiB"\ncache = "1MiB"',
        key=lambda worker, count: f"key-{worker}-{count % 300}",
    )
    seen = f"lost: {lost[:2] or 'nothing'}; touched in the other directory: {touched[:3] or 'nothing'}"
    return not lost and not touched, seen


def a8(context):
    """Do logs say why a view changed?"""
    with Cluster(context) as cluster:
        cluster.start().ready()
        leader = cluster.leader()
        leader.kill()
        end = time.time() + 5
        while time.time() < end and cluster.leader(1) is None:
            time.sleep(0.1)
        lines = "".join(node.lines() for node in cluster.nodes if node is not leader).splitlines()
        reasons = [line for line in lines if "suspect" in line or "silent" in line]
        return bool(reasons), (reasons[0].split("] ")[-1][-90:] if reasons else "no line gives a reason")


def a9(context):
    """SIGTERM with 32 commands in flight."""
    with Cluster(context) as cluster:
        cluster.start().ready()
        node = cluster.leader() or cluster.nodes[0]
        cut, going, told = [], threading.Barrier(33), threading.Event()

        def work(index):
            redis = Redis(node.redis_port, timeout=15)
            going.wait()
            try:
                while True:
                    answer = redis.call("INCR", f"counter-{index}")
                    if isinstance(answer, Error) and told.is_set():
                        # It has been told to go elsewhere: no further command.
                        return
            except (OSError, Closed):
                cut.append(index)

        workers = [threading.Thread(target=work, args=(index,)) for index in range(32)]
        for worker in workers:
            worker.start()
        going.wait()
        time.sleep(0.5)
        told.set()
        began = time.time()
        code = node.stop()
        took = time.time() - began
        for worker in workers:
            worker.join(20)
        return not cut and code == 0, f"{len(cut)} of 32 commands in flight were cut; the end took {took:.1f} s"


def a10_lost_found(context):
    """A data directory on a fresh ext4."""
    with Cluster(context, count=1) as cluster:
        node = cluster.nodes[0]
        os.makedirs(os.path.join(node.directory, "lost+found"))
        node.start(bootstrap=True)
        seen = "is taken" if node.is_alive() else "is refused"
        return node.is_alive(), f"a directory with lost+found {seen}"


def a10_lock(context):
    """A restart while the system still takes the old process apart."""
    import fcntl

    with Cluster(context, count=1) as cluster:
        node = cluster.start().ready().nodes[0]
        node.kill()
        with open(os.path.join(node.directory, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            node.start(wait=False)
            time.sleep(1)
        node.wait_for_port(5)
        answer = node.ask_when_loaded("GET", "ready") if node.is_alive() else "it has ended"
        return answer == "1", f"with the lock held for another second: {answer!r}"


def a10_hangup(context):
    """SIGHUP."""
    with Cluster(context, count=1) as cluster:
        node = cluster.start().ready().nodes[0]
        node.signal(signal.SIGHUP)
        time.sleep(1.5)
        return node.is_alive(), "the node " + ("goes on" if node.is_alive() else "has ended")


def a10_scan(context):
    """SCAN with a COUNT of a billion."""
    with Cluster(context, count=1) as cluster:
        node = cluster.start().ready().nodes[0]
        with node.redis(30) as redis:
            for first in range(0, 200_000, 10_000):
                words = [word for index in range(first, first + 10_000) for word in (f"key-{index}", "x")]
                redis.call("MSET", *words)
            began = time.time()
            _, keys = redis.call("SCAN", "0", "COUNT", "1000000000")
            took = time.time() - began
        return len(keys) < 200_000, f"one call looks at {len(keys)} of 200,001 keys, in {took * 1000:.0f} ms"


def a10_resumed(context):
    """A leader that was stopped for some seconds and goes on."""
    with Cluster(context) as cluster:
        cluster.start().ready()
        old = cluster.leader()
        old.signal(signal.SIGSTOP)
        others = [node for node in cluster.nodes if node is not old]
        end, new = time.time() + 10, None
        while time.time() < end and new is None:
            new = next((n for n in others if "replica_role:leader" in str(n.ask("INFO", "syros", timeout=1))), None)
            time.sleep(0.1)
        if new is None:
            return False, "nobody leads"
        time.sleep(1)
        old.signal(signal.SIGCONT)
        time.sleep(3)
        after = cluster.leader()
        views = [line for line in str(new.ask("INFO", "syros")).splitlines() if line.startswith("view:")]
        where = "stays with the new leader" if after is new else f"is back with node {after and after.index}"
        return after is new, f"the lead {where} ({views[0] if views else 'no view'})"


def forged_view(context):
    """B1: StartViewChange of the last view there can be, from a process that says it is replica 2."""
    with Cluster(context) as cluster:
        cluster.start().ready()
        welcome = False
        for node in cluster.nodes[:2]:
            with Peer(node, replica=2) as peer:
                try:
                    peer.send(Peer.REPLICA, bytes([40]) + number((1 << 64) - 1) + b"\x02")
                    welcome |= peer.is_welcome()
                    time.sleep(0.5)
                except OSError:
                    pass
        end, answer = time.time() + 8, None
        while time.time() < end and answer != "OK":
            answer = cluster.nodes[1].ask("SET", "k", "v", timeout=4) if cluster.nodes[1].is_alive() else "down"
        leader = cluster.leader(2)
        if leader is not None:
            leader.kill()
        end, later = time.time() + 10, None
        alive = [node for node in cluster.nodes if node.is_alive()]
        while alive and time.time() < end and later != "OK":
            later = alive[0].ask("SET", "k", "v", timeout=4)
        mended = answer == "OK" and later == "OK"
        took = "the frame was taken" if welcome else "the connection was ended"
        return mended, f"{took}; SET then: {str(answer)[:40]!r}, after the leader's death: {str(later)[:40]!r}"


def forged_state(context):
    """B2: NewState with an old time."""
    with Cluster(context) as cluster:
        cluster.start().ready()
        one = cluster.nodes[1]
        info = dict(
            line.split(":", 1) for line in str(one.ask("INFO", "syros")).splitlines() if ":" in line
        )
        end, view = time.time() + 5, int(info["view"])
        time.sleep(0.5)
        first = int(dict(l.split(":", 1) for l in str(one.ask("INFO", "syros")).splitlines() if ":" in l)["commit"])
        welcome = False
        try:
            with Peer(one, replica=2) as peer:
                for op in range(max(1, first - 2), first + 4):
                    # One entry at the time 1: a tick.
                    entry = number(view) + fixed(1) + b"\x05"
                    state = bytes([39]) + number(view) + number(op) + number(op) + number(1) + entry
                    peer.send(Peer.REPLICA, state)
                welcome = peer.is_welcome()
        except OSError:
            pass
        time.sleep(1)
        took = "the frame was taken" if welcome else "the connection was ended"
        return one.is_alive(), f"{took}; the follower " + ("goes on" if one.is_alive() else "is dead")


def forged_ok(context):
    """B3: a process that answers Ok for a dead follower."""
    with Cluster(context) as cluster:
        cluster.start().ready()
        leader = cluster.leader()
        if leader.index != 0:
            return False, "node 0 does not lead"
        for node in cluster.nodes[1:]:
            node.kill()
        acknowledged, done = [], threading.Event()

        def forge():
            try:
                with Peer(leader, replica=1) as peer:
                    while not done.is_set():
                        channel, payload = peer.receive()
                        if channel == Peer.CLIENT and payload[:1] == b"\x02":
                            # View, path, recipients, session, sequence.
                            fields, at = [], 1
                            while len(fields) < 5:
                                value, at = read_number(payload, at)
                                fields.append(value)
                            view, _, _, session, sequence = fields
                            clock = fixed(int(time.time() * 1e6))
                            answer = bytes([17]) + number(view) + number(session) + number(sequence) + clock
                            peer.send(Peer.CLIENT, answer)
            except (OSError, Closed):
                pass

        forger = threading.Thread(target=forge)
        forger.start()
        time.sleep(0.3)
        acknowledged = leader.ask("SET", "forged", "value", timeout=4)
        done.set()
        leader.kill()
        forger.join(5)
        return acknowledged != "OK", f"a write with both followers dead: {str(acknowledged)[:60]!r}"


def stolen_session(context):
    """B4: an anonymous client uses the session of a node."""
    with Cluster(context) as cluster:
        cluster.start().ready()
        zero = cluster.nodes[0]
        for index in range(3):
            zero.ask("SET", f"mine-{index}", "1")
        for session in range(1, 6):
            try:
                with Peer(zero) as peer:
                    for sequence in range(1, 60):
                        # View 0, to be ordered, for everybody; acknowledges nothing.
                        micros = fixed(int(time.time() * 1e6))
                        head = b"\x02" + number(0) + b"\x02" + number(0x1FF) + number(session) + number(sequence)
                        peer.send(Peer.CLIENT, head + micros + number(sequence - 1) + set_body(b"theirs", b"x"))
                    peer.is_welcome()
            except OSError:
                pass
        time.sleep(0.5)
        lost = []
        for index in range(20):
            answer = zero.ask("SET", f"owner-{index}", "1", timeout=12)
            if answer == "OK" and zero.ask("GET", f"owner-{index}", timeout=5) is None:
                lost.append(index)
        theirs = zero.ask("GET", "theirs")
        taken = "" if isinstance(theirs, Error) or theirs is None else " (the stranger's writes were taken)"
        return not lost and not taken, f"{len(lost)} of 20 acknowledged writes of the owner were not executed{taken}"


def session_flood(context):
    """B5: 65,000 sessions of anonymous clients."""
    with Cluster(context) as cluster:
        cluster.start().ready()
        zero = cluster.nodes[0]
        try:
            with Peer(zero, timeout=10) as peer:
                for first in range(0, 70_000, 1_000):
                    frames = b""
                    for nonce in range(first + 1, first + 1_001):
                        frames += frame(Peer.CLIENT, b"\x01" + number(0) + fixed(nonce), peer.version)
                    peer.socket.sendall(frames)
                    # What is refused for want of room would have to be sent again.
                    time.sleep(0.1)
                time.sleep(1)
        except OSError:
            pass
        two = cluster.nodes[2]
        two.stop()
        two.start()
        end, answer = time.time() + 6, None
        while time.time() < end and answer != "OK":
            answer = two.ask("SET", "k", "v", timeout=4)
        return answer == "OK", f"SET at a node that was started after that: {str(answer)[:80]!r}"


def idle_peers(context):
    """B5: idle clients on the port for replicas take the Redis port's places."""
    limit = "[limits]\nconnections = 40\n"
    with Cluster(context, extra=limit) as cluster:
        cluster.start().ready()
        zero, held = cluster.nodes[0], []
        try:
            for _ in range(60):
                held.append(Peer(zero))
        except OSError:
            pass
        time.sleep(0.5)
        answer, two = zero.ask("PING"), cluster.nodes[2]
        two.stop()
        two.start()
        end, written = time.time() + 5, None
        while time.time() < end and written != "OK":
            written = two.ask("SET", "k", "v", timeout=3)
        for peer in held:
            peer.socket.close()
        seen = f"with 60 clients on the port for replicas: PING on the Redis port {str(answer)[:40]!r}"
        return answer == "PONG" and written == "OK", f"{seen}, SET at a node that comes back {str(written)[:40]!r}"


def http_post(context):
    """B6, D1: what a browser can be made to send."""
    with Cluster(context, count=1) as cluster:
        node = cluster.start().ready().nodes[0]
        with socket.create_connection(("127.0.0.1", node.redis_port), 3) as client:
            try:
                client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET ssrf owned\r\n")
                client.settimeout(2)
                while client.recv(4096):
                    pass
            except OSError:
                pass
        value = node.ask("GET", "ssrf")
        return value is None, f"the command in the body was {'not ' if value is None else ''}executed"


def replayed_handshake(context):
    """B8: somebody has recorded how one node connected to another, and says the same."""
    port = context.port + 40
    relay = Relay(port, context.port + 20)
    addresses = [f"127.0.0.1:{port}"] + [f"127.0.0.1:{context.port + 20 + node}" for node in (1, 2)]
    try:
        with Cluster(context, addresses=addresses) as cluster:
            zero = cluster.start().ready().nodes[0]
            end, said = time.time() + 10, b""
            while len(said) < 4000 and time.time() < end:
                time.sleep(0.1)
                said = bytes(max(relay.recorded, key=len, default=b""))
            if len(said) < 4000:
                return False, f"only {len(said)} bytes were recorded: nobody has connected through the relay"
            ends = []
            for pause in (0, 0.2):
                with socket.create_connection(("127.0.0.1", context.port + 20), 3) as stranger:
                    stranger.settimeout(5)
                    heard = b""
                    try:
                        # At once, and one step after the other.
                        for piece in [said] if not pause else [said[:200], said[200:400], said[400:]]:
                            stranger.sendall(piece)
                            time.sleep(pause)
                        while more := stranger.recv(1 << 16):
                            heard += more
                        ends.append("closed")
                    except TimeoutError:
                        ends.append(f"open, {len(heard)} bytes heard")
                    except OSError as error:
                        ends.append(f"closed: {error.strerror}")
            answers = {node.ask("SET", "after", str(node.index), timeout=5) for node in cluster.nodes}
            why = [line for line in zero.lines().splitlines() if "refused" in line]
            told = why[-1][-110:] if why else "nothing is logged"
            fine = all(end.startswith("closed") for end in ends) and answers == {"OK"} and bool(why)
            return fine, f"the connections are {', '.join(ends)}; {told}; others are answered {answers}"
    finally:
        relay.close()


def large_value(context):
    """D3: a value over the limit."""
    with Cluster(context, count=1) as cluster:
        node = cluster.start().ready().nodes[0]
        with node.redis(10) as redis:
            try:
                answer = redis.call("SET", "k", b"x" * (17 * MIB))
                after = redis.call("PING")
            except (OSError, Closed) as error:
                return False, f"the connection is cut: {error}"
            return after == "PONG", f"{str(answer)[:80]!r}, and the connection goes on"


def gone_clients(context):
    """Clients that close their connection just after they have sent a command that waits."""
    with Cluster(context) as cluster:
        cluster.start().ready()
        commands = (
            request("BLPOP", "jobs", "0"),
            request("BLPOP", "none", "0.01") + request("BLPOP", "jobs", "0") + request("PING"),
            request("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">") + request("WAIT", "3", "0"),
        )
        for node in cluster.nodes:
            for index in range(200):
                with socket.create_connection(("127.0.0.1", node.redis_port), 3) as client:
                    client.sendall(commands[index % len(commands)])
        end, waiting = time.time() + 10, None
        while time.time() < end and waiting != 0:
            lists = [str(node.ask("CLIENT", "LIST")) for node in cluster.nodes]
            waiting = sum(text.count("flags=b") + text.count("cmd=wait") for text in lists)
            time.sleep(0.1)
        pushed = cluster.nodes[0].ask("RPUSH", "jobs", "a", "b", "c")
        time.sleep(0.5)
        left = cluster.nodes[1].ask("LLEN", "jobs")
        return waiting == 0 and left == 3, f"{waiting} of 600 clients that have gone wait; of {pushed} jobs {left} are left"


def http(port, path):
    """Status and text of a page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def metrics(context):
    """Do /livez, /readyz and /metrics tell how a node is, while others form the cluster with it, die and return?"""
    ports = [context.port + 40 + index for index in range(3)]
    if not context.settings.accepts("listen", f'metrics = "127.0.0.1:{ports[0]}"'):
        raise Skipped("this build has no metrics")
    each = lambda index: f'metrics = "127.0.0.1:{ports[index]}"'  # noqa: E731
    with Cluster(context, each=each) as cluster:

        def waits_for(status, text, seconds=20):
            end = time.time() + seconds
            while time.time() < end:
                found = http(ports[0], "/readyz")
                if found[0] == status and text in found[1]:
                    return True
                time.sleep(0.1)
            return False

        cluster.nodes[0].start(bootstrap=True, wait=False)
        problems = [] if waits_for(503, "forming") else [f"forming: {http(ports[0], '/readyz')}"]
        for node in cluster.nodes[1:]:
            node.start(bootstrap=True, wait=False)
        cluster.ready()
        if not waits_for(200, "ok"):
            problems.append(f"formed: {http(ports[0], '/readyz')}")
        cluster.nodes[0].ask("SET", "key", "value")
        text = http(ports[0], "/metrics")[1]
        for line in ('syros_commands_total{command="set"}', 'syros_command_duration_seconds_bucket{le="+Inf",command="set"}'):
            if line not in text and line.replace('le="+Inf",command="set"', 'command="set",le="+Inf"') not in text:
                problems.append(f"{line} is not told")
        for node in cluster.nodes[1:]:
            node.kill()
        if not waits_for(503, "no-quorum"):
            problems.append(f"alone: {http(ports[0], '/readyz')}")
        if http(ports[0], "/livez")[0] != 200:
            problems.append("it lives, and /livez says otherwise")
        for node in cluster.nodes[1:]:
            node.start(wait=False)
        if not waits_for(200, "ok"):
            problems.append(f"together again: {http(ports[0], '/readyz')}")
        return not problems, "; ".join(problems) or "forming, ready, without a majority, ready again"


class Writers(Clients):
    """Clients that write all the time, and note the longest that one waited."""

    def __init__(self, nodes):
        self.slowest = 0.0
        super().__init__(nodes)

    def ask(self, redis, name, count):
        name, value = f"key-{name}-{count % 2000}", f"value-{count}"
        words = ("SET", name, value) if count % 4 else ("GETSET", name, value)
        begun = time.time()
        answer = redis.call(*words)
        self.slowest = max(self.slowest, time.time() - begun)
        if not isinstance(answer, Error):
            self.written[name] = value
        return [answer]


def replaced(cluster, victim):
    """Kills a node under load, destroys its disk, and has a new node take its place. Gives what went wrong, how long it took
    until the new node takes part, and the longest that a client at one of the others waited."""
    others = [node for node in cluster.nodes if node is not victim]
    writers, problems = Writers(others), []
    time.sleep(0.5)
    victim.kill()
    old = victim.directory + ".old"
    shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(victim.directory, old)
    shutil.rmtree(victim.directory)
    begun = time.time()
    victim.start(replace=True, wait=False)
    while time.time() - begun < 30 and "status:normal" not in str(victim.ask("INFO", "syros", timeout=1)):
        time.sleep(0.02)
    took = time.time() - begun
    if took >= 30:
        problems.append(f"node {victim.index} takes no part: {victim.lines()[-600:]}")
    time.sleep(0.5)
    writers.end()
    problems += [f"a client was told {error}" for error in writers.errors[:2]]
    # It has all that was acknowledged, and the group does without another one.
    others[0].kill()
    end = time.time() + 20
    while time.time() < end and victim.ask("SET", "there", "yes", timeout=2) != "OK":
        time.sleep(0.1)
    with victim.redis(15) as redis:
        lost = [name for name, value in writers.written.items() if redis.call("GET", name) != value]
    if lost:
        problems.append(f"lost: {lost[:3]} of {len(writers.written)}")
    others[0].start()
    cluster.ready()
    return problems, took, writers.slowest


def replace(context):
    """A node's disk is destroyed under load, a follower's and then a leader's, and a new node takes its place with one command.
    Does everybody go on, is nothing lost, and does the old node stay out?"""
    if "--replace" not in subprocess.run([context.binary, "server", "--help"], capture_output=True, text=True).stdout:
        return False, "this build has no --replace"
    with Cluster(context) as cluster:
        cluster.start().ready()
        problems, seen = [], []
        for kind in ("follower", "leader"):
            leader = cluster.leader()
            follower = next(node for node in cluster.nodes if node is not leader)
            victim = leader if kind == "leader" else follower
            found, took, slowest = replaced(cluster, victim)
            problems += [f"{kind}: {problem}" for problem in found]
            seen.append(f"{kind}: there after {took:.1f} s, nobody waited for more than {slowest:.1f} s")
            # Somebody finds the disk, and starts the node that was there.
            victim.stop()
            shutil.move(victim.directory, victim.directory + ".new")
            shutil.move(victim.directory + ".old", victim.directory)
            victim.start(wait=False)
            if victim.wait(20) in (None, 0) or "has taken the place of this one" not in victim.lines():
                problems.append(f"{kind}: the old node stays: {victim.lines()[-600:]}")
            victim.kill()
            shutil.rmtree(victim.directory)
            shutil.move(victim.directory + ".new", victim.directory)
            victim.start()
        # It is remembered.
        cluster.restart()
        again = cluster.nodes[0]
        again.stop()
        again.start(replace=True, wait=False)
        if again.wait(10) in (None, 0) or "start it without --replace" not in again.lines():
            problems.append(f"a node that has its disk is replaced: {again.lines()[-300:]}")
        return not problems, "; ".join(problems or seen)


def resized(cluster, size, seconds=30):
    """Waits until every node of the cluster takes part in a group of this size; how long that took, or None."""
    begun = time.time()
    while time.time() - begun < seconds:
        said = [str(node.ask("INFO", "syros", timeout=1)) for node in cluster.nodes[:size]]
        if all(f"group_size:{size}\r" in text and "status:normal" in text for text in said):
            return time.time() - begun
        time.sleep(0.02)
    return None


def connected(port, seconds=20):
    """A connection of a Redis client, when somebody listens there."""
    end = time.time() + seconds
    while True:
        try:
            return Redis(port, 10)
        except OSError:
            if time.time() >= end:
                raise
            time.sleep(0.1)


def grow(context):
    """A cluster of three becomes one of five and of seven and small again while clients write, the leader among the nodes that
    go. Does everybody go on, is nothing lost, do the nodes that go end, and is the size remembered?"""
    if "--join" not in subprocess.run([context.binary, "server", "--help"], capture_output=True, text=True).stdout:
        return False, "this build has no --join"
    with Cluster(context) as cluster:
        cluster.start().ready()
        time.sleep(0.5)
        problems, seen = [], []
        secret = os.path.join(cluster.directory, "secret")

        def member(*words):
            address = f"127.0.0.1:{cluster.nodes[0].redis_port}"
            words = [context.binary, *words, "--addr", address, "--secret-file", secret]
            return subprocess.run(words, capture_output=True, text=True, timeout=60)

        writers = Writers(cluster.nodes[:3])
        for size in (5, 7):
            time.sleep(0.7)
            cluster.grow()
            took = resized(cluster, size)
            if took is None:
                return False, f"it does not become {size}: {cluster.nodes[-1].lines()[-600:]}"
            seen.append(f"{size} after {took:.1f} s")
        for size in (5, 3):
            time.sleep(0.7)
            # The leader goes, too, and later a node that is down meanwhile.
            member("lead", str(size))
            if size == 3:
                cluster.nodes[-1].kill()
                time.sleep(1)
            done = member("member", "remove", str(size), str(size + 1))
            took = resized(cluster, size)
            gone, cluster.nodes = cluster.nodes[size:], cluster.nodes[:size]
            if done.returncode != 0 or took is None:
                return False, f"it does not become {size}: {done.stderr}"
            seen.append(f"{size}: {done.stdout.split(', after ')[1].split('.')[0]}")
            if size == 3:
                gone[-1].start(wait=False)
            for node in gone:
                if node.wait(20) in (None, 0) or "was removed from the cluster" not in node.lines():
                    problems.append(f"node {node.index} stays: {node.lines()[-400:]}")
                node.kill()
                shutil.rmtree(node.directory)
        writers.end()
        problems += [f"a client was told {error}" for error in writers.errors[:2]]
        seen.append(f"nobody waited for more than {writers.slowest:.1f} s")
        # Back to five, and everything is started again: the first nodes' configurations still list three.
        cluster.grow()
        if resized(cluster, 5) is None:
            return False, f"it does not become 5 again: {cluster.nodes[-1].lines()[-600:]}"
        # A gateway with the list of before finds the new nodes.
        gateway_port = cluster.port + 15
        listed = ",".join(f"127.0.0.1:{node.peer_port}" for node in cluster.nodes[:3])
        words = [context.binary, "gateway", "--cluster", listed, "--port", str(gateway_port)]
        gateway = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            member("lead", "4")
            with connected(gateway_port) as redis:
                answer = redis.call("SET", "by-gateway", "yes")
            if answer != "OK":
                problems.append(f"a gateway with the list of before says {answer}")
        except (OSError, Closed) as error:
            problems.append(f"a gateway with the list of before: {type(error).__name__}: {error}")
        finally:
            gateway.kill()
            gateway.wait()
        # A wrong number takes nobody's place.
        last = cluster.nodes[-1]
        last.stop()
        time.sleep(1)
        wrong = Node(cluster, last.index)
        wrong.directory += ".wrong"
        wrong.log += ".wrong"
        cluster.configure(wrong)
        wrong.start(join=True, wait=False)
        time.sleep(2)
        if "the cluster has a node there" not in wrong.lines():
            problems.append(f"a node joins in the place of one that is down: {wrong.lines()[-400:]}")
        wrong.kill()
        cluster.configure(last)
        cluster.restart()
        if resized(cluster, 5) is None:
            problems.append("the size is forgotten")
        # Two of five may fail.
        for node in cluster.nodes[:2]:
            node.kill()
        end = time.time() + 20
        while time.time() < end and last.ask("SET", "there", "yes", timeout=2) != "OK":
            time.sleep(0.1)
        with last.redis(15) as redis:
            lost = [name for name, value in writers.written.items() if redis.call("GET", name) != value]
        if lost:
            problems.append(f"lost: {lost[:3]} of {len(writers.written)}")
        return not problems, "; ".join(problems or seen)


def grow_alone(context):
    """A cluster of one becomes one of three, and a copy of its data takes seconds; one of the new nodes is killed while it copies, and
    started again. Do clients notice anything, and do the new nodes have everything when the first one dies?"""
    rate, values = 4 << 20, 3000
    with Cluster(context, count=1, extra=f"[limits]\nsnapshot-rate = {rate}") as cluster:
        cluster.start().ready()
        fill(cluster.nodes[0], values)
        first = cluster.nodes[0]
        writers = Writers([first])
        begun = time.time()
        new = cluster.grow()
        end = begun + 10
        said = ""
        while time.time() < end and "LOADING" not in said:
            time.sleep(0.05)
            said = str(new[0].ask("GET", "key", timeout=1))
        if "LOADING" not in said:
            return False, f"a client of a new node is told {said}"
        time.sleep(1.5)
        new[1].kill()
        new[1].start(wait=False)
        took = resized(cluster, 3, 60)
        took = took and time.time() - begun
        writers.end()
        if took is None:
            return False, f"it does not become 3: {new[1].lines()[-600:]}"
        problems = [f"a client was told {error}" for error in writers.errors[:2]]
        # Twice for the one that has begun anew.
        if took < VALUE_BYTES * values / rate:
            problems.append(f"the copy took {took:.1f} s only: nobody would have had to wait")
        if writers.slowest > 1:
            problems.append(f"somebody waited for {writers.slowest:.1f} s")
        first.kill()
        end = time.time() + 20
        while time.time() < end and new[0].ask("SET", "there", "yes", timeout=2) != "OK":
            time.sleep(0.1)
        with new[0].redis(15) as redis:
            lost = [name for name, value in writers.written.items() if redis.call("GET", name) != value]
            count = redis.call("DBSIZE")
        if lost or count < values + len(writers.written):
            problems.append(f"lost: {lost[:3]} of {len(writers.written)}; keys: {count}")
        return not problems, "; ".join(problems) or (
            f"3 after {took:.1f} s; nobody waited for more than {writers.slowest:.1f} s"
        )


# In the order in which they are played; names are those of the rows of FOUND.md.
CASES = {
    "A1": a1,
    "A2": a2,
    "A2-rolling": a2_rolling,
    "A3": a3,
    "A4": a4,
    "A5": a5,
    "A6": a6,
    "A6-minority": a6_minority,
    "A7": a7,
    "A7-disk": a7_disk,
    "A7-loading": a7_loading,
    "A11": a11,
    "A11-one": a11_one,
    "A12": a12,
    "A12-engine": a12_engine,
    "A8": a8,
    "A9": a9,
    "A10-lost+found": a10_lost_found,
    "A10-lock": a10_lock,
    "A10-hangup": a10_hangup,
    "A10-scan": a10_scan,
    "A10-resumed": a10_resumed,
    "B1": forged_view,
    "B2": forged_state,
    "B3": forged_ok,
    "B4": stolen_session,
    "B5-sessions": session_flood,
    "B5-idle": idle_peers,
    "B6": http_post,
    "B8": replayed_handshake,
    "D3": large_value,
    "B7": gone_clients,
    "metrics": metrics,
    "replace": replace,
    "grow": grow,
    "grow-alone": grow_alone,
    "names": names,
}
