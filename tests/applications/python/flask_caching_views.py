"""Flask-Caching: memoized functions, cached views, many values."""

from flask import Flask
from flask_caching import Cache

from common import HOST, PORT, check, done, equal, the_middle

application = Flask(__name__)
config = {"CACHE_TYPE": "RedisCache", "CACHE_REDIS_HOST": HOST, "CACHE_REDIS_PORT": PORT, "CACHE_REDIS_DB": 3}
cache = Cache(application, config=config)
calls = {"square": 0, "page": 0}


@cache.memoize(300)
def square(number):
    calls["square"] += 1
    return number * number


@application.route("/page/<name>")
@cache.cached(timeout=300)
def page(name):
    calls["page"] += 1
    return f"page {name}"


with application.app_context():
    cache.clear()
    for turn in range(3):
        for number in range(40):
            if (turn, number) == (1, 0):
                the_middle()
            equal(square(number), number * number, "a memoized function")
    equal(calls["square"], 40, "it was called once for each argument")
    cache.delete_memoized(square, 7)
    square(7)
    equal(calls["square"], 41, "one result was forgotten")
    cache.delete_memoized(square)
    square(1)
    equal(calls["square"], 42, "all results were forgotten")
    cache.set_many({f"k{number}": number for number in range(50)})
    equal(cache.get_many(*[f"k{number}" for number in range(50)]), list(range(50)), "many values")
    check(cache.add("once", 1) and not cache.add("once", 2), "add")
    cache.delete_many(*[f"k{number}" for number in range(50)])
    equal(cache.get("k1"), None, "deleted")
client = application.test_client()
for _ in range(5):
    equal(client.get("/page/one").data, b"page one", "a cached view")
equal(calls["page"], 1, "it was made once")
done()
