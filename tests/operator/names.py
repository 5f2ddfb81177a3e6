"""Nodes that find each other by names: a node moves to another address while a name server does not answer."""

import os
import shutil
import socket
import subprocess
import time

from nodes import Closed, Cluster, Redis, Skipped

# A name server that nobody hears from. Its port is 53, so only root can play it.
SILENT = "127.0.0.77"

# Its own file of hosts and its own name server, for one process and what it starts.
WITH_NAMES = 'mount --bind "$0" /etc/hosts && mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'

# The file of hosts always has this length: a file that only ever has other bytes than before is never empty.
HOSTS_BYTES = 1024


class Names:
    """Files that processes take for /etc/hosts and /etc/resolv.conf."""

    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        self.hosts, self.resolver = os.path.join(directory, "hosts"), os.path.join(directory, "resolv.conf")
        with open(self.resolver, "w") as file:
            file.write(f"nameserver {SILENT}\n")
        self.hosts_file = open(self.hosts, "wb")
        self.server = socket.socket(type=socket.SOCK_DGRAM)
        try:
            self.server.bind((SILENT, 53))
        except OSError as error:
            raise Skipped(f"a name server cannot be played: {error}") from error
        self.set({})
        self.wrapper = ["unshare", "--mount", "sh", "-c", WITH_NAMES, self.hosts, self.resolver]
        if subprocess.run([*self.wrapper, "true"], capture_output=True).returncode != 0:
            raise Skipped("files cannot be mounted over others")

    def set(self, addresses):
        # In place, because the processes have the file mounted. At one stroke, because a process that reads an empty or a
        # short file finds no name in it and waits for the name server, which takes longer than this case allows.
        lines = "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in addresses.items())
        os.pwrite(self.hosts_file.fileno(), lines.ljust(HOSTS_BYTES, "\n").encode(), 0)


def written(node, seconds):
    """How long it took until a node took a write, or None."""
    begun = time.time()
    while time.time() - begun < seconds:
        if node.ask("SET", "there", "1", timeout=1) == "OK":
            return time.time() - begun
        time.sleep(0.02)
    return None


def names(context):
    """The leader moves to another address, and the name of a node that is down is known to a name server alone that does not
    answer. Do the two that are there find each other in time, and do a gateway and a native client find them?"""
    if os.getuid() != 0 or not shutil.which("unshare"):
        raise Skipped("files can be mounted by root only")
    known = Names(os.path.join(context.scratch, "name-files"))
    home = {f"db{number}.syros": "127.0.0.1" for number in range(3)}
    known.set(home)
    addresses = [f"db{number}.syros:{context.port + 20 + number}" for number in range(3)]
    programs = []
    with Cluster(context, addresses=addresses) as cluster:
        cluster.wrapper = known.wrapper
        try:
            cluster.start(seconds=30).ready()
            zero, one, two = cluster.nodes
            port = context.port + 15
            listed = ",".join(addresses)
            gateway = [context.binary, "gateway", "--cluster", listed, "--port", str(port)]
            programs.append(subprocess.Popen([*known.wrapper, *gateway], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            # The native client, where somebody has built it: cargo build --release -p syros-client --example keep_writing
            writer = os.environ.get("SYROS_KEEP_WRITING")
            if writer:
                native = subprocess.Popen(
                    [*known.wrapper, writer, *addresses], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
                programs.append(native)
            time.sleep(2)
            one.stop()
            known.set({name: address for name, address in home.items() if not name.startswith("db1")})
            # By then node 2 is looking for it.
            time.sleep(2)
            zero.stop()
            with open(zero.config) as file:
                text = file.read()
            with open(zero.config, "w") as file:
                file.write(text.replace(f'replicas = "127.0.0.1:{zero.peer_port}"', f'replicas = "127.0.0.9:{zero.peer_port}"'))
            known.set({"db0.syros": "127.0.0.9", "db2.syros": "127.0.0.1"})
            zero.start(wait=False)
            took = written(two, 25)
            if took is None:
                return False, f"the two do not find each other: {two.lines()[-400:]}"
            try:
                with Redis(port, 15) as redis:
                    answer = redis.call("SET", "by-gateway", "1")
            except (OSError, Closed) as error:
                answer = error
            if answer != "OK":
                return False, f"the gateway says {answer}"
            said = ""
            if writer:
                output, _ = native.communicate("", timeout=30)
                said = f"; native client: {output.strip().splitlines()[-1]}"
                if native.returncode != 0:
                    return False, said
            # A name server is given up after 10 s.
            return took < 6, f"they serve {took:.1f} s after one has moved{said}"
        finally:
            for program in programs:
                program.kill()
                program.wait()
            known.server.close()
            known.hosts_file.close()
