"""rq: two workers of their own processes carry out jobs, one of them scheduled, some of which fail."""

import subprocess
import sys
import time
from datetime import timedelta

import redis
from rq import Queue, Retry

import rq_tasks
from common import HOST, PORT, check, done, equal, the_middle, url, wait_until

JOBS = 60

connection = redis.Redis(HOST, PORT)
connection.delete("rq-done", "rq-flaky")
queue = Queue("orders", connection=connection)
# SimpleWorker executes jobs in its own process: a fork for each would take most of the time.
command = [sys.executable, "-m", "rq.cli", "worker", "orders", "--url", url(), "--with-scheduler"]
workers = [
    subprocess.Popen([*command, "--worker-class", "rq.SimpleWorker"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(2)
]
try:
    jobs = []
    for number in range(JOBS):
        jobs.append(queue.enqueue(rq_tasks.record, number))
        if number == JOBS // 3:
            the_middle()
        time.sleep(0.02)
    flaky = queue.enqueue(rq_tasks.fail_once, retry=Retry(max=3))
    later = queue.enqueue_in(timedelta(seconds=2), rq_tasks.record, JOBS)
    broken = queue.enqueue(rq_tasks.fail)

    wait_until(lambda: connection.llen("rq-done") >= JOBS + 1, "all jobs are executed")
    wait_until(lambda: flaky.get_status(refresh=True) == "finished", "a job that failed once is executed again")
    wait_until(lambda: broken.get_status(refresh=True) == "failed", "a job that fails is marked as failed")
    numbers = sorted(int(number) for number in connection.lrange("rq-done", 0, -1))
    equal(numbers, list(range(JOBS + 1)), "each job was executed once")
    for number, job in enumerate(jobs):
        wait_until(lambda job=job: job.get_status(refresh=True) == "finished", f"job {number} is finished")
        equal(job.return_value(refresh=True), number, f"the result of job {number}")
    check(broken.id in queue.failed_job_registry.get_job_ids(), "the registry of failed jobs has it")
finally:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        try:
            worker.wait(20)
        except subprocess.TimeoutExpired:
            worker.kill()
done()
