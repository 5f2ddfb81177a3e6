#!/usr/bin/env node
// Looks at the dashboard as a person does: with a browser, light and dark, at a cluster of `syros dev`.
//
//     tests/dashboard/run.mjs target/release/syros                       checks; pictures are in target/dashboard
//     tests/dashboard/run.mjs target/release/syros --keep 60             leaves the cluster running so many seconds
//
// Checks that what the page shows agrees with INFO, that counts grow, that an alert is shown when a node is killed, that it
// shows groups of one and of nine, groups without a leader and names that are markup, that text has contrast, and that nothing
// comes from elsewhere; and `syros top` of the same cluster. Ends with 1 if one of these fails, with 77 if there is no chromium.
//
// Needs node 20 with npm, and Debian's chromium (or CHROMIUM=/path). Half a minute.

import { spawn, execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const WORK = path.join(process.env.CARGO_TARGET_DIR ?? path.join(HERE, "../../target"), "dashboard");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const HOSTILE = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`;

const [binary, option, seconds] = process.argv.slice(2);
if (!binary) {
  console.error("tests/dashboard/run.mjs: name the program, such as target/release/syros");
  process.exit(2);
}
if (!fs.existsSync(CHROMIUM)) {
  console.error(`tests/dashboard/run.mjs: there is no ${CHROMIUM} on this machine: the dashboard was NOT CHECKED`);
  process.exit(77);
}

let failures = 0;
function check(is, what, found) {
  failures += is ? 0 : 1;
  console.log(`${is ? "ok  " : "FAIL"} ${what}${is ? "" : `: ${found}`}`);
}

/** The pinned browser driver, in a directory that is not in the source tree. */
function playwright() {
  fs.mkdirSync(WORK, { recursive: true });
  const lock = fs.readFileSync(path.join(HERE, "package-lock.json"), "utf8");
  const stamp = path.join(WORK, "installed");
  if (!fs.existsSync(stamp) || fs.readFileSync(stamp, "utf8") !== lock) {
    ["package.json", "package-lock.json"].forEach((name) => fs.copyFileSync(path.join(HERE, name), path.join(WORK, name)));
    execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"], { cwd: WORK, stdio: "ignore" });
    fs.writeFileSync(stamp, lock);
  }
  return createRequire(path.join(WORK, "package.json"))("playwright-core");
}

// ---- A cluster.

/** Sends commands over one connection; resolves to what comes, as text, when there are as many replies. */
function redis(port, commands, isWhole) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1");
    let text = "";
    socket.on("error", reject);
    socket.on("data", (data) => {
      text += data;
      if (isWhole(text)) {
        socket.destroy();
        resolve(text);
      }
    });
    const encoded = commands.map((words) => `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
    socket.write(encoded.join(""));
  });
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function eventually(what, look, within = 20_000) {
  const until = Date.now() + within;
  let found;
  while (Date.now() < until) {
    found = await look().catch((error) => error.message);
    if (found === true) {
      return check(true, what);
    }
    await pause(100);
  }
  return check(false, what, JSON.stringify(found));
}

async function info(port) {
  const text = await redis(port, [["INFO"]], (so) => so.startsWith("$") && so.length >= Number(/^\$(\d+)/.exec(so)?.[1] ?? Infinity));
  return Object.fromEntries(text.split("\r\n").filter((line) => line.includes(":")).map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]));
}

class Cluster {
  constructor() {
    this.directory = fs.mkdtempSync(path.join(os.tmpdir(), "syros-dashboard-"));
    this.port = 20_000 + (process.pid % 900) * 12;
    this.metrics = this.port + 6;
    const options = ["dev", "--port", this.port, "--metrics", this.metrics, "--dir", this.directory, "--no-restart", "--quiet"];
    this.child = spawn(binary, options.map(String), { stdio: ["ignore", "ignore", "pipe"] });
    this.errors = "";
    this.child.stderr.on("data", (data) => (this.errors += data));
    this.over = new Promise((resolve) => this.child.on("exit", resolve));
  }

  async ready() {
    for (let tries = 0; tries < 600 && this.child.exitCode === null; tries += 1) {
      const answers = await Promise.all([0, 1, 2].map((node) => fetch(`http://127.0.0.1:${this.metrics + node}/readyz`).then((answer) => answer.ok, () => false)));
      if (answers.every(Boolean)) {
        return;
      }
      await pause(100);
    }
    throw new Error(`the cluster does not come up: ${this.errors}`);
  }

  /** Clients that never pause, until `stop`. */
  load() {
    this.isLoaded = true;
    const batch = (node, round) => {
      const key = (place) => `key:${(round * 7 + place * 13 + node) % 500}`;
      return Array.from({ length: 20 }, (_, place) =>
        place % 10 === 9 ? ["INCR", "counter"] : place % 4 === 3 ? ["GET", key(place)] : ["SET", key(place), `value ${round}`]);
    };
    const count = (text) => text.split("\r\n").filter((line) => /^[+:\-$]/.test(line)).length;
    const work = async (node) => {
      for (let round = 0; this.isLoaded; round += 1) {
        await redis(this.port + node, batch(node, round), (text) => count(text) >= 20).catch(() => pause(200));
        await pause(4);
      }
    };
    this.workers = [0, 0, 1, 1].map(work);
  }

  async stop() {
    this.isLoaded = false;
    await Promise.race([Promise.all(this.workers ?? []), pause(2000)]);
    this.child.kill("SIGTERM");
    await Promise.race([this.over, pause(10_000).then(() => this.child.kill("SIGKILL"))]);
    await this.over;
    fs.rmSync(this.directory, { recursive: true, force: true });
  }
}

// ---- Pages.

const complaints = [];

async function open(browser, address, scheme, { replace, quiet } = {}) {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width: 1280, height: 900 }, deviceScaleFactor: 1 });
  const page = await context.newPage();
  if (!quiet) {
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
  }
  page.on("request", (request) => !request.url().startsWith(address) && complaints.push(`asks ${request.url()}`));
  for (const [pattern, handler] of Object.entries(replace ?? {})) {
    await page.route(`**${pattern}`, handler);
  }
  await page.goto(address);
  return page;
}

/** Answers the page's question with what `change` makes of the true answer. */
const changed = (change) => async (route) => {
  const answer = await route.fetch();
  const status = await answer.json();
  change(status);
  await route.fulfill({ response: answer, json: status });
};

const text = (page, selector) => page.locator(selector).innerText();

/** Texts whose colour has too little contrast with what they stand on. */
const faint = (page) =>
  page.evaluate(() => {
    const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
    const luminance = ([red, green, blue]) => {
      const part = (value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
      return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
    };
    const ground = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = parse(getComputedStyle(at).backgroundColor);
        if (colour.length < 4 || colour[3] > 0) {
          return colour;
        }
      }
      return [255, 255, 255];
    };
    const found = [];
    for (const element of document.querySelectorAll("body *")) {
      const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
      const isSeen = element.checkVisibility() && !element.closest(".unseen, noscript");
      if (!own || !isSeen) {
        continue;
      }
      const style = getComputedStyle(element);
      const colour = parse(element instanceof SVGElement ? style.fill : style.color);
      const [light, dark] = [luminance(colour), luminance(ground(element))].sort((a, b) => b - a);
      const contrast = (light + 0.05) / (dark + 0.05);
      if (contrast < 4.5) {
        found.push(`${element.textContent.trim().slice(0, 30)}: ${contrast.toFixed(2)}`);
      }
    }
    return found;
  });

/** Controls and regions without a name, and tables without headings. */
const nameless = (page) =>
  page.evaluate(() => {
    const unnamed = [...document.querySelectorAll("input, a, summary, [role=region], [role=img]")].filter((element) => {
      const label = element.getAttribute("aria-label") ?? document.getElementById(element.getAttribute("aria-labelledby"))?.textContent;
      return !(label ?? element.closest("label")?.textContent ?? element.textContent).trim();
    });
    const headless = [...document.querySelectorAll("table")].filter((table) => table.querySelectorAll("th[scope=col]").length === 0);
    return [...unnamed, ...headless].map((element) => element.outerHTML.slice(0, 80));
  });

const picture = (page, name) => page.screenshot({ path: path.join(WORK, `${name}.png`), fullPage: true });

function member(place, role, rest) {
  return {
    member: place, address: `db${place}.example:7379`, is_self: place === 0, is_connected: place === 0 ? null : true, role,
    has_no_quorum: false, has_disk_trouble: false, view: 3, epoch: 1, op: 5000 + place, commit: 5000, applied: 5000 - place * 40,
    dlog: 2, sessions: 3, log_bytes: 1 << 20, fast_updates: 1000, slow_updates: 20, conflicts: 3, fast_reads: 100, slow_reads: 5,
    refused: 0, view_changes: 1, silent_ms: 1, ...rest,
  };
}

// ---- What is checked.

/** Rates of a member that does not answer for a while, and of a command that enters the list: seconds made up, no browser. */
async function rates() {
  const source = fs.readFileSync(path.join(HERE, "../../crates/metrics/dashboard/history.js"), "utf8");
  const { History } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const history = new History();
  const updates = ({ members }) => members[0]?.updates;
  const times = ({ command }) => command;
  const wrong = [];
  for (let second = 0; second < 60; second += 1) {
    const isAway = second >= 20 && second < 40;
    const members = second === 0 ? [] : [isAway ? { problem: "timed out" } : { updates: 10_000_000 + 100 * second }];
    const command = second < 50 ? undefined : [[64, 4_000_000 + second], [1_000_000, 1_000_000]];
    history.add(second * 1000, { uptime_seconds: second, members, command });
    const [rate, p99] = [history.rate(10_000, updates), history.percentile(10_000, 0.99, times)];
    // With one answer there is no rate.
    const expected = isAway || second < 2 ? [undefined] : second === 40 ? [undefined, 100] : [100];
    if (!expected.includes(rate) || p99 !== (second < 51 ? undefined : 64)) {
      wrong.push(`second ${second}: ${rate}/s, ${p99} us`);
    }
  }
  check(wrong.length === 0, "counts that an answer lacks make no rates", wrong.slice(0, 4).join("; "));
}

async function againstInfo(cluster, page) {
  const { leader, view, fast_quorum: mode } = await info(cluster.port);
  await eventually("the page names the leader, the view and the mode of INFO", async () => {
    const facts = await text(page, "#facts");
    const has = [`leader\nnode ${leader}`, `view\n${view}`, `mode\n${mode}`].every((fact) => facts.includes(fact));
    return has || facts;
  });
  await eventually("it shows three members, of which that one leads", async () => {
    const roles = await page.locator("#group tbody tr").evaluateAll((rows) => rows.map((row) => row.cells[2].innerText));
    const expected = [0, 1, 2].map((place) => (place === Number(leader) ? "leader" : "follower"));
    return JSON.stringify(roles) === JSON.stringify(expected) || roles;
  });
  const processed = async () => Number((await text(page, "#tile-throughput .note")).replaceAll(/\D/g, ""));
  const before = Number((await info(cluster.port)).total_commands_processed);
  await eventually("the number of commands is that of INFO", async () => {
    const shown = await processed();
    return shown >= before || `${shown} < ${before}`;
  });
  const first = await processed();
  await eventually("it grows", async () => (await processed()) > first + 100 || (await processed()));
  const after = Number((await info(cluster.port)).total_commands_processed);
  check((await processed()) <= after + 100, "and is never ahead of INFO", after);
  await eventually("rates, percentiles and shares are shown", async () => {
    const values = await Promise.all(["throughput", "fast", "updates", "reads"].map((tile) => text(page, `#tile-${tile} .value`)));
    return values.every((value) => /[1-9]/.test(value)) || values;
  });
  await eventually("SET is among the commands, and its path among the paths", async () => {
    const [commands, paths] = await Promise.all([text(page, "#commands"), text(page, "#paths-updates")]);
    return (commands.includes("SET") && /one round trip.*\n?.*%.*\/s.*[µm]s/s.test(paths)) || [commands, paths];
  });
  await eventually("no alert is shown", async () => (await text(page, "#alerts")).startsWith("Nothing") || (await text(page, "#alerts")));
}

async function withSlowCommand(cluster, page) {
  await redis(cluster.port, [["CONFIG", "SET", "slowlog-log-slower-than", "0"], ["SET", HOSTILE, "x"], ["CONFIG", "SET", "slowlog-log-slower-than", "10000"]], (so) => so.split("+OK").length > 3);
  await eventually("a slow command is named, without its words", async () => {
    const slow = await text(page, "#slow");
    return (slow.includes("SET") && !slow.includes("onerror")) || slow;
  });
}

async function unusual(browser, address) {
  const show = async (name, change, selector, expected) => {
    const page = await open(browser, address, name.length % 2 ? "dark" : "light", { replace: { "/status.json": changed(change) } });
    await eventually(`a page with ${name}`, async () => {
      const found = await text(page, selector);
      return found.includes(expected) || found;
    });
    await picture(page, name.replaceAll(" ", "-"));
    await page.context().close();
  };
  await show("no leader", (status) => {
    Object.assign(status, { leader: null, status: "no-quorum", not_ready: ["its status is no-quorum"], replica: 0 });
    status.members = [member(0, "follower", { has_no_quorum: true }), { member: 1, address: "db1:7379", is_self: false, is_connected: false, problem: "Connection refused (os error 111)" }, { member: 2, address: "db2:7379", is_self: false, is_connected: false, problem: "timed out" }];
    status.peers = [{ member: 1, is_connected: false, acknowledged: null }, { member: 2, is_connected: false, acknowledged: null }];
  }, "#alerts", "this node knows of no leader");
  await show("a group of one", (status) => {
    Object.assign(status, { group_size: 1, leader: 0, replica: 0, members: [member(0, "leader")], peers: [] });
  }, "#group", "this page");
  await show("nine nodes", (status) => {
    const members = Array.from({ length: 9 }, (_, place) => member(place, place === 4 ? "leader" : place === 7 ? "recovering" : "follower"));
    members[8] = { member: 8, address: "", is_self: false, is_connected: null };
    Object.assign(status, { group_size: 9, leader: 4, replica: 0, members });
  }, "#group", "not asked");
  const toJoin = (status) => {
    Object.assign(status, { replica: null, role: "", status: "forming", to_be: { replica: 3, way: "join" }, own: undefined, members_age_ms: 9000 });
    status.members = [0, 1, 2].map((place) => member(place, "follower", { is_self: false }));
    status.members[2] = { member: 2, address: "db2:7379", is_self: false, is_connected: null, unknown: "its name is being looked up" };
  };
  await show("a node that joins", toJoin, "#self", "node 3, joins the cluster");
  await show("a member that nobody knows", toJoin, "#group", "unknown");
  await show("members that were asked long ago", toJoin, "#group-title", "as of 9 s ago");
  await show("a gateway", (status) => {
    Object.assign(status, { replica: null, role: "gateway", disk: null, own: undefined });
    Object.assign(status.data, { bytes: null, bytes_max: 0 });
    status.members = [0, 1, 2].map((place) => member(place, place === 0 ? "leader" : "follower", { is_self: false }));
  }, "#self", "gateway");
}

/** Names that are markup stay text. `isSafe` false: a page that takes them for markup is to be caught. */
async function hostile(browser, address, isSafe) {
  const change = (status) => {
    status.members.forEach((one) => Object.assign(one, { address: HOSTILE, problem: HOSTILE }));
    status.slow = [{ number: 1, at_ms: status.now_ms, command: HOSTILE, words: 2, micros: 5 }];
    status.errors = { [HOSTILE]: 5 };
    Object.assign(status, { role: HOSTILE, mode: HOSTILE, version: HOSTILE, not_ready: [HOSTILE] });
    status.commands.forEach((command) => Object.assign(command, { name: HOSTILE, calls: status.now_ms }));
  };
  const careless = async (route) => {
    const answer = await route.fetch();
    const body = (await answer.text()).replace("element.append(...children.filter(", "element.innerHTML = children.filter((child) => typeof child === 'string').join(''); element.append(...children.filter((child) => typeof child !== 'string').filter(");
    await route.fulfill({ response: answer, body });
  };
  const replace = { "/status.json": changed(change), ...(isSafe ? {} : { "/draw.js": careless }) };
  const page = await open(browser, address, "light", { replace, quiet: !isSafe });
  await page.waitForFunction(() => document.querySelector("#group tbody tr"));
  const [elements, shown, ran] = await page.evaluate(() => [document.querySelectorAll("main img, main script, header img, header script").length, document.body.innerText, window.pwned]);
  if (isSafe) {
    check(elements === 0 && ran === undefined && shown.includes(HOSTILE), "names that are markup are shown as text", `${elements} elements`);
    await picture(page, "hostile");
  } else {
    check(elements > 0, "a page that takes them for markup would be caught", elements);
    check(ran === undefined, "and the policy would keep it from running what they say", ran);
  }
  await page.context().close();
}

async function afterKill(cluster, page) {
  const { leader } = await info(cluster.port);
  const victim = [1, 2].find((place) => place !== Number(leader));
  const pid = Number((await info(cluster.port + victim)).process_id);
  process.kill(pid, "SIGKILL");
  await eventually("a node that is killed is an alert", async () => {
    const found = await text(page, "#alerts");
    return (found.includes(`node ${victim} does not answer`) && /critical/i.test(found)) || found;
  });
  await eventually("its row says that it is down, and the head that it is away", async () => {
    const [row, head] = [await text(page, `#group tbody tr:nth-child(${victim + 1})`), await text(page, "#state")];
    return (row.includes("down") && head.includes("1 of 3 members away")) || [row, head];
  });
  await eventually("the metrics tell of it, and why the view was left", async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${cluster.metrics + Number(leader)}/metrics`)).text();
    const value = (name) => Number(metrics.split("\n").find((line) => line.startsWith(`${name} `))?.split(" ")[1]);
    const other = 3 - victim - Number(leader);
    const told = [
      value(`syros_peer_connected{member="${victim}"}`) === 0,
      value(`syros_peer_connected{member="${other}"}`) === 1,
      value(`syros_peer_lag_entries{member="${victim}"}`) > value(`syros_peer_lag_entries{member="${other}"}`),
      value('syros_view_changes_total{reason="active-members"}') > 0,
      value("syros_log_sync_duration_seconds_count") > 0,
      value("syros_log_sync_records_sum") >= value("syros_log_sync_records_count"),
    ];
    return told.every(Boolean) || told;
  });
  await page.locator(".alert summary").first().click();
  await eventually("the runbook opens", async () => {
    const found = await text(page, ".alert details[open] pre");
    return found.includes("Start it again") || found.includes("start it again") || found;
  });
  await pause(1500);
  check(await page.locator(".alert details[open]").count() === 1, "and stays open while figures change", "it closed");
}

/** What `syros top` says of the same cluster: once, and in a terminal until `q`. */
async function top(cluster) {
  const { leader } = await info(cluster.port);
  const address = `127.0.0.1:${cluster.port + 1}`;
  const once = spawn(binary, ["top", "--once", "--addr", address], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  once.stdout.on("data", (data) => (said += data));
  once.stderr.on("data", (data) => (said += data));
  const status = await new Promise((resolve) => once.on("close", resolve));
  const rows = said.split("\n").filter((line) => /^ *\d/.test(line));
  check(status === 0 && said.includes(`leader ${leader} `) && rows.length === 3, "syros top --once shows the leader and three nodes", said);
  const rates = rows.map((row) => Number(row.trim().split(/ {2,}/)[7]));
  check(rates.some((rate) => rate > 0), "and rates", said);
  // `script` gives it a terminal.
  const shown = spawn("script", ["-qec", `${binary} top --addr ${address}`, "/dev/null"], { stdio: ["pipe", "pipe", "ignore"] });
  let [screen, isAsked] = ["", false];
  shown.stdout.on("data", (data) => {
    screen += data;
    if (!isAsked && screen.split("APPLIED").length > 2) {
      isAsked = true;
      shown.stdin.write("q");
    }
  });
  const ended = await Promise.race([new Promise((resolve) => shown.on("close", resolve)), pause(15_000).then(() => "never")]);
  shown.kill();
  check(ended === 0 && screen.includes("\x1b[?1049h") && screen.trimEnd().endsWith("\x1b[?1049l"), "q ends it, and the terminal is as it was", `${ended}: ${JSON.stringify(screen.slice(-80))}`);
}

function strangers(port) {
  return new Promise((resolve) => {
    const request = http.get({ port, path: "/status.json", headers: { Host: "stranger.example" } }, (answer) => resolve(answer.statusCode));
    request.on("error", () => resolve(0));
  });
}

await rates();
const { chromium } = playwright();
const profile = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu"];
const cluster = new Cluster();
let browser;
try {
  [browser] = await Promise.all([chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", ...profile] }), cluster.ready()]);
  cluster.load();
  const address = `http://127.0.0.1:${cluster.metrics}/`;
  const [light, dark] = [await open(browser, address, "light"), await open(browser, address, "dark")];
  await againstInfo(cluster, light);
  await withSlowCommand(cluster, light);
  await top(cluster);
  await unusual(browser, address);
  await hostile(browser, address, true);
  await hostile(browser, address, false);
  check((await strangers(cluster.metrics)) === 421, "a stranger's name gets no status", "it does");
  const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  check((await ground(light)) !== (await ground(dark)), "light and dark differ", await ground(light));
  await picture(light, "light");
  await picture(dark, "dark");
  await dark.locator("input[value=light]").check();
  check((await ground(light)) === (await ground(dark)), "the switch wins over what the browser says", await ground(dark));
  await dark.reload();
  check((await ground(light)) === (await ground(dark)), "and is remembered", await ground(dark));
  await dark.locator("input[value=auto]").check();
  await afterKill(cluster, light);
  for (const [page, name] of [[light, "light"], [dark, "dark"]]) {
    const [unread, unnamed] = [await faint(page), await nameless(page)];
    check(unread.length === 0, `every text has contrast (${name})`, unread.slice(0, 5).join("; "));
    check(unnamed.length === 0, `everything has a name (${name})`, unnamed.join("; "));
    await picture(page, `${name}-alert`);
  }
  await light.setViewportSize({ width: 420, height: 900 });
  const overflow = await light.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(overflow <= 0, "a narrow window needs no scrolling sideways", `${overflow} px`);
  await picture(light, "narrow");
  check(complaints.length === 0, "the browser complains of nothing, and nothing comes from elsewhere", complaints.slice(0, 5).join("; "));
  if (option === "--keep") {
    console.log(`at ${address} for ${seconds} s`);
    await pause(Number(seconds) * 1000);
  }
} catch (error) {
  check(false, "the checks come to their end", error.stack);
} finally {
  await browser?.close();
  await cluster.stop();
}
console.log(failures > 0 ? `${failures} failed; pictures are in ${WORK}` : `all passed; pictures are in ${WORK}`);
process.exit(failures > 0 ? 1 : 0);
