"""Celery with Redis as broker and as result backend: tasks, groups, chains, a chord, retries."""

import subprocess
import sys

from celery import chain, chord, group

from celery_tasks import add, application, flaky, total
from common import done, equal, the_middle

JOBS = 60

application.control.purge()
command = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "--pool", "threads", "--concurrency", "4"]
worker = subprocess.Popen(
    [*command, "--loglevel", "WARNING", "--without-gossip", "--without-mingle"],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)
try:
    results = [add.delay(number, 1) for number in range(JOBS)]
    for number, result in enumerate(results):
        equal(result.get(timeout=90), number + 1, f"task {number}")
        if number == JOBS // 3:
            the_middle()
    many = group(add.s(number, number) for number in range(20))().get(timeout=90)
    equal(many, [2 * number for number in range(20)], "a group")
    equal(chain(add.s(1, 2), add.s(3), add.s(4))().get(timeout=90), 10, "a chain")
    equal(chord([add.s(number, 1) for number in range(10)])(total.s()).get(timeout=90), 55, "a chord")
    equal(flaky.delay("celery-flaky").get(timeout=90), 3, "a task that is tried again")
finally:
    worker.terminate()
    try:
        worker.wait(30)
    except subprocess.TimeoutExpired:
        worker.kill()
done()
