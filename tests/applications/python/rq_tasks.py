"""What the workers of rq execute."""

import redis

from common import HOST, PORT


def record(number):
    redis.Redis(HOST, PORT).rpush("rq-done", number)
    return number


def fail_once():
    if redis.Redis(HOST, PORT).incr("rq-flaky") == 1:
        raise RuntimeError("the first time")


def fail():
    raise RuntimeError("every time")
