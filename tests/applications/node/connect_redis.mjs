// connect-redis: sessions of Express, kept with the client `redis`.

import { RedisStore } from "connect-redis";
import { createClient } from "redis";
import { check, done, equal, port, theMiddle, sleep } from "./common.mjs";

const client = await createClient({ url: `redis://127.0.0.1:${port}/4` }).on("error", () => {}).connect();
await client.flushDb();
const store = new RedisStore({ client, prefix: "session:", ttl: 100 });

for (let user = 0; user < 60; user += 1) {
  if (user === 20) theMiddle();
  await store.set(`s${user}`, { user, cookie: { maxAge: 60_000 } });
  equal((await store.get(`s${user}`)).user, user, "a session");
  await sleep(10);
}
equal(await store.length(), 60, "how many sessions there are");
equal((await store.all()).map(({ user }) => user).sort((a, b) => a - b), [...Array(60).keys()], "all sessions");
await store.touch("s1", { user: 1, cookie: { maxAge: 60_000 } });
check((await client.ttl("session:s1")) > 0, "a session expires");
await store.destroy("s1");
check(!(await store.get("s1")), "a session that was destroyed");
await store.clear();
equal(await store.length(), 0, "no session is left");
done();
