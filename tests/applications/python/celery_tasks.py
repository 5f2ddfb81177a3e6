"""The Celery application: what its worker executes."""

import redis
from celery import Celery

from common import HOST, PORT, url

application = Celery("tasks", broker=url(0), backend=url(1))
application.conf.update(
    task_acks_late=True, worker_prefetch_multiplier=1, broker_connection_retry_on_startup=True, result_expires=600
)


@application.task
def add(left, right):
    return left + right


@application.task
def total(numbers):
    return sum(numbers)


@application.task(bind=True, max_retries=5, default_retry_delay=0.2)
def flaky(self, key):
    tries = redis.Redis(HOST, PORT, db=2).incr(key)
    if tries < 3:
        raise self.retry()
    return tries
