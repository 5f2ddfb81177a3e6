"""Django's cache (its own backend and django-redis) and its sessions."""

import django
from django.conf import settings

from common import check, done, equal, the_middle, url

settings.configure(
    CACHES={
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": url(1)},
        "django-redis": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url(2)},
    },
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    SECRET_KEY="not secret",
    USE_TZ=True,
)
django.setup()

from django.contrib.sessions.backends.cache import SessionStore  # noqa: E402
from django.core.cache import caches  # noqa: E402

for name in ("default", "django-redis"):
    cache = caches[name]
    cache.clear()
    for turn in range(60):
        if turn == 20:
            the_middle()
        cache.set(f"key-{turn}", {"turn": turn}, 300)
        equal(cache.get(f"key-{turn}"), {"turn": turn}, f"{name}: what was set")
    cache.set_many({f"many-{number}": number for number in range(50)}, timeout=60)
    equal(cache.get_many([f"many-{number}" for number in range(60)]), {f"many-{n}": n for n in range(50)}, f"{name}: many")
    check(cache.add("added", 1) and not cache.add("added", 2), f"{name}: add")
    equal(cache.incr("added", 5), 6, f"{name}: incr")
    equal(cache.decr("added"), 5, f"{name}: decr")
    check(cache.touch("added", 100), f"{name}: touch")
    equal(cache.get_or_set("computed", lambda: 42, 100), 42, f"{name}: get_or_set")
    check("computed" in cache and cache.delete("computed") and "computed" not in cache, f"{name}: delete")
    cache.delete_many([f"many-{number}" for number in range(50)])
    equal(cache.get_many([f"many-{number}" for number in range(60)]), {}, f"{name}: delete_many")
    cache.set("versioned", "old", version=1)
    cache.incr_version("versioned")
    equal(cache.get("versioned", version=2), "old", f"{name}: versions")
extended = caches["django-redis"]
extended.set("forever", 1, timeout=None)
equal(extended.ttl("forever"), None, "ttl of what does not expire")
check(sorted(extended.keys("key-1?")) == [f"key-1{n}" for n in range(10)], "keys by pattern")
equal(extended.delete_pattern("key-*"), 60, "delete_pattern")
with extended.lock("a lock", timeout=10):
    check(not extended.lock("a lock", timeout=10).acquire(blocking=False), "a lock excludes")

for user in range(20):
    session = SessionStore()
    session["user"] = user
    session.save()
    equal(SessionStore(session.session_key)["user"], user, "a session")
    old = session.session_key
    session.cycle_key()
    check(not SessionStore(old).exists(old), "the old name of a session is gone")
    session.flush()
done()
