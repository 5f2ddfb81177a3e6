"""What the applications share: where the server is, checks that are counted, and the moment at which the leader is killed."""

import os
import sys
import time

HOST = "127.0.0.1"
PORT = int(os.environ["APPLICATION_PORT"])
# Everything that waits for something gives up after this time.
PATIENCE_SECONDS = float(os.environ.get("APPLICATION_PATIENCE", "90"))

checks = 0


def url(database=0):
    return f"redis://{HOST}:{PORT}/{database}"


def check(holds, text):
    """Counts a check; ends the application if it does not hold."""
    global checks
    if not holds:
        print(f"FAILED: {text}", flush=True)
        # Threads and children of the application must not keep it alive.
        os._exit(1)
    checks += 1


def equal(found, wanted, text):
    check(found == wanted, f"{text}: found {str(found)[:300]!r}, wanted {str(wanted)[:300]!r}")


def the_middle():
    """Tells the runner that now is the time to kill the leader."""
    print("MIDDLE", flush=True)


def wait_until(holds, text):
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        check(time.monotonic() < end, f"{text} within {PATIENCE_SECONDS} s")
        time.sleep(0.05)


def done():
    print(f"{checks} checks passed", flush=True)
    sys.stdout.flush()
    os._exit(0)
