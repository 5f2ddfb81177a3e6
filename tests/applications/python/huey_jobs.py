"""huey: tasks with results, schedules, and locks."""

import threading
import time

from huey import RedisHuey
from huey.consumer import Consumer

from common import HOST, PORT, done, equal, the_middle

JOBS = 60
huey = RedisHuey("orders", host=HOST, port=PORT, blocking=True)
huey.flush()
executed = []


@huey.task()
def add(left, right):
    executed.append((left, right))
    return left + right


consumer = Consumer(huey, workers=2, periodic=False, worker_type="thread", scheduler_interval=1)
consumer.start()
results = []
for number in range(JOBS):
    results.append(add(number, 1))
    if number == JOBS // 3:
        the_middle()
    time.sleep(0.02)
later = add.schedule((100, 1), delay=1)
for number, result in enumerate(results):
    equal(result(blocking=True, timeout=60), number + 1, f"the result of task {number}")
equal(later(blocking=True, timeout=60), 101, "a scheduled task")
equal(len(executed), JOBS + 1, "each task was executed once")
threading.Thread(target=consumer.stop, daemon=True).start()
done()
