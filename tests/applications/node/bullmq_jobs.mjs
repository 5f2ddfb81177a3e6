// BullMQ: jobs, delays, retries, priorities and events. Everything that it does is a Lua script; its worker waits in BZPOPMIN.

import { Queue, QueueEvents, Worker } from "bullmq";
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
done();
