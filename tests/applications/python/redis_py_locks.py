"""redis-py: locks (Lua scripts), transactions with WATCH, pipelines, publish/subscribe, streams."""

import threading
import time

import redis

from common import HOST, PORT, check, done, equal, the_middle, wait_until

THREADS, TURNS = 4, 30
client = redis.Redis(HOST, PORT, decode_responses=True)
client.flushdb()
client.set("counter", 0)
client.set("watched", 0)
client.set("scripted", 0)


def parallel(work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    return threads


def under_lock(number):
    mine = redis.Redis(HOST, PORT)
    for turn in range(TURNS):
        if number == 0 and turn == TURNS // 3:
            the_middle()
        with mine.lock("mutex", timeout=30, sleep=0.005):
            value = int(mine.get("counter"))
            time.sleep(0.001)
            mine.set("counter", value + 1)


for thread in parallel(under_lock):
    thread.join()
equal(client.get("counter"), str(THREADS * TURNS), "what was added under a lock")

lock = client.lock("extended", timeout=2)
check(lock.acquire(blocking=False) and lock.owned(), "a lock is had")
check(lock.extend(10) and client.pttl("extended") > 2000, "a lock is extended")
lock.release()
check(not client.exists("extended"), "a lock is given back")


def watched(_):
    mine = redis.Redis(HOST, PORT)
    for _ in range(TURNS):
        mine.transaction(add_one, "watched")


def add_one(pipe):
    value = int(pipe.get("watched"))
    pipe.multi()
    pipe.set("watched", value + 1)


for thread in parallel(watched):
    thread.join()
equal(client.get("watched"), str(THREADS * TURNS), "what was added in transactions")

script = client.register_script("local v = redis.call('INCRBY', KEYS[1], ARGV[1]) return v")


def scripted(_):
    for _ in range(TURNS):
        script(keys=["scripted"], args=[1], client=client)


for thread in parallel(scripted):
    thread.join()
equal(client.get("scripted"), str(THREADS * TURNS), "what was added by a script")

with client.pipeline(transaction=False) as pipe:
    for number in range(500):
        pipe.rpush("pipelined", number)
    equal(pipe.execute(), list(range(1, 501)), "a pipeline")

subscriber = client.pubsub(ignore_subscribe_messages=True)
subscriber.subscribe("news")
subscriber.psubscribe("n?ws*")
received = []
wait_until(lambda: client.pubsub_numsub("news") == [("news", 1)], "the subscription is known")
for number in range(20):
    client.publish("news", number)
end = time.monotonic() + 20
while len(received) < 40 and time.monotonic() < end:
    message = subscriber.get_message(timeout=1)
    if message:
        received.append((message["type"], int(message["data"])))
equal([number for kind, number in received if kind == "message"], list(range(20)), "messages of a channel")
equal([number for kind, number in received if kind == "pmessage"], list(range(20)), "messages of a pattern")

for number in range(50):
    client.xadd("events", {"n": number})
client.xgroup_create("events", "readers", id="0")
seen = []
while True:
    entries = client.xreadgroup("readers", "one", {"events": ">"}, count=7)
    if not entries:
        break
    for identifier, fields in (entries[0][1] if isinstance(entries, list) else next(iter(entries.values()))[0]):
        seen.append(int(fields["n"]))
        client.xack("events", "readers", identifier)
equal(seen, list(range(50)), "a stream read by a group")
equal(client.xpending("events", "readers")["pending"], 0, "nothing is left unacknowledged")
done()
