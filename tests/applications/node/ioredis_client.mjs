// ioredis: pipelines, transactions, commands made of scripts, publish/subscribe, waiting pops, streams, scans.

import Redis from "ioredis";
import { check, done, equal, host, port, sleep, theMiddle, waitUntil } from "./common.mjs";

const redis = new Redis({ host, port });
await redis.flushdb();

for (let turn = 0; turn < 60; turn += 1) {
  if (turn === 20) theMiddle();
  const replies = await redis.pipeline().set("k", turn).incr("n").hset("h", `f${turn}`, turn).rpush("l", turn).exec();
  equal(replies.map(([error]) => error), [null, null, null, null], "no error in a pipeline");
  equal(replies[1][1], turn + 1, "the count of pipelines");
  await sleep(10);
}
equal(await redis.hlen("h"), 60, "fields");
equal(await redis.lrange("l", 0, -1), [...Array(60).keys()].map(String), "a list");
equal((await redis.multi().get("k").set("k", "x").get("k").exec()).map(([, value]) => value), ["59", "OK", "x"], "MULTI");

redis.defineCommand("addWithin", {
  numberOfKeys: 1,
  lua: `local v = tonumber(redis.call('GET', KEYS[1]) or '0')
        if v + ARGV[1] > tonumber(ARGV[2]) then return redis.error_reply('LIMIT reached') end
        return redis.call('INCRBY', KEYS[1], ARGV[1])`,
});
equal(await redis.addWithin("limited", 40, 100), 40, "a command made of a script");
equal(await redis.addWithin("limited", 40, 100), 80, "again");
const refusal = await redis.addWithin("limited", 40, 100).catch((error) => error.message);
check(String(refusal).startsWith("LIMIT reached"), `the error of a script: ${refusal}`);

const waiter = redis.duplicate();
const popped = waiter.blpop("queue-a", "queue-b", 30);
await sleep(100);
await redis.rpush("queue-b", "job");
equal(await popped, ["queue-b", "job"], "a pop that waited");
equal(await waiter.brpop("queue-a", 0.2), null, "a pop that waited in vain");

const subscriber = redis.duplicate();
const messages = [];
subscriber.on("message", (channel, message) => messages.push([channel, message]));
await subscriber.subscribe("news", "weather");
await waitUntil(async () => (await redis.publish("weather", "sunny")) >= 1, "the subscription is known");
await waitUntil(() => messages.length >= 1, "a message arrives");
equal(messages[0], ["weather", "sunny"], "it is the one that was sent");

const reading = waiter.xread("BLOCK", 30_000, "STREAMS", "events", "$");
await sleep(100);
const id = await redis.xadd("events", "*", "kind", "created");
equal(await reading, [["events", [[id, ["kind", "created"]]]]], "a stream that was waited for");

await redis.mset(...[...Array(500).keys()].flatMap((number) => [`scan:${number}`, number]));
const found = new Set();
for await (const keys of redis.scanStream({ match: "scan:*", count: 50 })) keys.forEach((key) => found.add(key));
equal(found.size, 500, "a scan");
done();
