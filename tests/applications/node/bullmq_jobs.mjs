// BullMQ: jobs, delays, retries, priorities and events. Everything that it does is a Lua script; its worker waits in BZPOPMIN.

import { FlowProducer, Queue, QueueEvents, Worker } from "bullmq";
import { check, done, equal, host, port, sleep, theMiddle, waitUntil } from "./common.mjs";

const jobs = 60;
const connection = { host, port, maxRetriesPerRequest: null };
const queue = new Queue("orders", { connection });
await queue.obliterate({ force: true });
const events = new QueueEvents("orders", { connection });
await events.waitUntilReady();
const completed = [];
events.on("completed", ({ jobId }) => completed.push(jobId));

const executed = [];
const tries = new Map();
const worker = new Worker(
  "orders",
  async (job) => {
    tries.set(job.data.number, (tries.get(job.data.number) ?? 0) + 1);
    if (job.data.fails && tries.get(job.data.number) === 1) throw new Error("the first time");
    executed.push(job.data.number);
    return job.data.number * 2;
  },
  { connection, concurrency: 4 },
);
worker.on("error", (error) => console.log(`worker: ${error.message}`));

const added = [];
for (let number = 0; number < jobs; number += 1) {
  const fails = number % 20 === 7;
  added.push(await queue.add("job", { number, fails }, { attempts: 3, backoff: { type: "fixed", delay: 200 } }));
  if (number === Math.floor(jobs / 3)) theMiddle();
  await sleep(20);
}
const later = await queue.add("job", { number: jobs }, { delay: 1500 });
await queue.add("job", { number: jobs + 1 }, { priority: 3 });
equal(await later.waitUntilFinished(events, 60_000), jobs * 2, "a delayed job");
await waitUntil(() => executed.length >= jobs + 2, "all jobs are executed");
equal(executed.slice().sort((a, b) => a - b), [...Array(jobs + 2).keys()], "each job was executed once");
await waitUntil(async () => (await queue.getCompletedCount()) === jobs + 2, "all jobs are marked as completed");
equal(await queue.getFailedCount(), 0, "no job failed for good");
await waitUntil(() => completed.length >= jobs + 2, "all events were heard");
equal(new Set(completed).size, jobs + 2, "an event for each job");
equal((await queue.getJob(added[5].id)).returnvalue, 10, "the result of a job");
check((await queue.getJob(added[7].id)).attemptsMade >= 2, "a job that failed was tried again");
await queue.pause();
await queue.add("job", { number: 1000 });
await sleep(300);
check(!executed.includes(1000), "a queue that pauses");
await queue.resume();
await waitUntil(() => executed.includes(1000), "a queue that goes on");

// Many scripts in one transaction.
const first = 2000;
const flow = new FlowProducer({ connection });
const data = (count, from) => [...Array(count).keys()].map((n) => ({ name: "job", data: { number: from + n } }));
const children = data(100, first).map((child) => ({ ...child, queueName: "orders" }));
const parent = await flow.add({ name: "job", queueName: "orders", data: { number: first + 100 }, children });
equal(await parent.job.waitUntilFinished(events, 60_000), (first + 100) * 2, "a job that waits for a hundred others");
await queue.addBulk(data(200, first + 101));
await waitUntil(() => executed.filter((number) => number >= first).length === 301, "many jobs at once");
await flow.close();
done();
