// What the applications share: where the server is, checks that are counted, and the moment at which the leader is killed.

export const host = "127.0.0.1";
export const port = Number(process.env.APPLICATION_PORT);
// Everything that waits for something gives up after this time.
export const patience = Number(process.env.APPLICATION_PATIENCE ?? 90) * 1000;

let checks = 0;

export function check(holds, text) {
  if (!holds) {
    console.log(`FAILED: ${text}`);
    process.exit(1);
  }
  checks += 1;
}

export function equal(found, wanted, text) {
  const [left, right] = [JSON.stringify(found), JSON.stringify(wanted)];
  check(left === right, `${text}: found ${left?.slice(0, 300)}, wanted ${right?.slice(0, 300)}`);
}

// Tells the runner that now is the time to kill the leader.
export const theMiddle = () => console.log("MIDDLE");

export const sleep = (milliseconds) => new Promise((wake) => setTimeout(wake, milliseconds));

export async function waitUntil(holds, text) {
  const end = Date.now() + patience;
  while (!(await holds())) {
    check(Date.now() < end, `${text} within ${patience} ms`);
    await sleep(50);
  }
}

export function done() {
  console.log(`${checks} checks passed`);
  process.exit(0);
}

process.on("unhandledRejection", (error) => {
  console.log(`FAILED: ${error?.stack ?? error}`);
  process.exit(1);
});
