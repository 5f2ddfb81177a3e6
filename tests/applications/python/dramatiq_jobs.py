"""dramatiq: its broker is one Lua script; a worker in threads of this process, delays and retries."""

import threading
import time

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker

from common import HOST, PORT, done, equal, the_middle, wait_until

JOBS = 80
connection = redis.Redis(HOST, PORT)
connection.flushdb()
broker = RedisBroker(host=HOST, port=PORT)
dramatiq.set_broker(broker)
tries = {}
lock = threading.Lock()


@dramatiq.actor(max_retries=5, min_backoff=100, max_backoff=500)
def record(number):
    with lock:
        tries[number] = tries.get(number, 0) + 1
        if number % 20 == 7 and tries[number] == 1:
            raise RuntimeError("the first time")
    connection.rpush("dramatiq-done", number)


worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=4)
worker.start()
for number in range(JOBS):
    record.send(number)
    if number == JOBS // 3:
        the_middle()
    time.sleep(0.02)
record.send_with_options(args=(JOBS,), delay=1500)
wait_until(lambda: connection.llen("dramatiq-done") >= JOBS + 1, "all messages are processed")
broker.join("default", timeout=60_000)
worker.stop()
numbers = sorted(int(number) for number in connection.lrange("dramatiq-done", 0, -1))
equal(numbers, list(range(JOBS + 1)), "each message was processed once")
equal(sorted(number for number, count in tries.items() if count > 1), [7, 27, 47, 67], "those that failed were tried again")
done()
