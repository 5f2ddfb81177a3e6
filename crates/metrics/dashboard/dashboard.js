// The page: asks this process once a second how it is, and draws what it says.

import { Watch, sectionOf } from "./alerts.js";
import {
  NONE, bytes, chart, digits, duration, make, number, perSecond, percent, prose, span, sparkline, state, table, withUnit,
} from "./draw.js";
import { History, KEPT_MS, at, between, percentile } from "./history.js";

/** How often this process is asked. */
const INTERVAL_MS = 1000;

/** An answer that takes longer does not come. */
const PATIENCE_MS = 4000;

/** Figures that say "now" are those of so long. */
const NOW_MS = 10_000;

/** Tables and shares are those of so long. */
const MINUTE_MS = 60_000;

/** What members said longer ago than this is told with its age. */
const AGED_MS = 3000;

/** Rows of the table of commands. */
const COMMANDS_MAX = 10;

/** Commands that this process names: in a shorter list, a command that is not there has not come yet. */
const COMMANDS_NAMED = 24;

/** Rows of the table of slow commands. */
const SLOW_MAX = 8;

const history = new History();
const watch = new Watch();
const by = (id) => document.getElementById(id);

/** When an answer came last, and why none has come since. */
let heard;
let problem;
let runbooks;

// ---- Colours.

const THEME = "syros-theme";

function remembered() {
  try {
    return localStorage.getItem(THEME) ?? "auto";
  } catch {
    // Storage may be forbidden.
    return "auto";
  }
}

/** Where nothing is chosen, the browser says what people prefer. */
function showTheme(choice) {
  if (choice === "auto") {
    delete document.documentElement.dataset.theme;
  } else {
    document.documentElement.dataset.theme = choice;
  }
}

function startTheme() {
  const choose = (choice) => {
    try {
      localStorage.setItem(THEME, choice);
    } catch {
      // It holds until the page is closed.
    }
    showTheme(choice);
  };
  for (const input of document.querySelectorAll("input[name=theme]")) {
    input.checked = input.value === remembered();
    input.addEventListener("change", () => choose(input.value));
  }
  showTheme(remembered());
}

// ---- What is so now.

/** What the group does, in a word. */
function serving(status) {
  if (status.not_ready.length > 0) {
    return ["bad", `not serving: ${status.not_ready.join(", ")}`];
  }
  const down = status.members.filter((member) => member.problem !== undefined).length;
  return down > 0 ? ["warn", `serving, ${down} of ${status.group_size} members away`] : ["good", "serving"];
}

function showState(kind, word) {
  const shown = by("state").querySelector(".word");
  // A text that is set is spoken again, even if it is the same.
  if (shown.textContent !== word) {
    by("state").className = `state ${kind}`;
    shown.textContent = word;
  }
}

const WAYS = { form: "forms a cluster", join: "joins the cluster", replace: "takes the place of another node" };

/** What this process is, or what it is to be. */
function nameOf({ replica, role, to_be: toBe }) {
  if (toBe) {
    return `node ${toBe.replica}, ${WAYS[toBe.way] ?? "waits"}`;
  }
  return replica === null ? "gateway" : `node ${replica}, ${role}`;
}

function drawHeader(status) {
  const name = nameOf(status);
  by("self").textContent = name;
  document.title = `Syros: ${name}`;
  showState(...serving(status));
  const leader = status.leader === null ? "none" : `node ${status.leader}`;
  const certificate = status.certificate_expires && (status.certificate_expires - status.now_ms / 1000);
  const facts = [
    ["leader", leader],
    ["members", status.group_size],
    ["view", digits(status.view)],
    ["epoch", digits(status.epoch)],
    ["mode", status.mode],
    ["active", status.active ?? undefined],
    ["durability", status.durability],
    ["certificate", certificate ? `${span(certificate)} left` : undefined],
    ["up for", span(status.uptime_seconds)],
    ["version", status.version],
  ];
  const shown = facts.filter(([, value]) => value !== undefined);
  by("facts").replaceChildren(...shown.map(([term, value]) => make("div", {}, make("dt", {}, term), make("dd", {}, String(value)))));
}

function drawLive() {
  const silent = heard === undefined ? undefined : (Date.now() - heard) / 1000;
  const isLate = silent === undefined || silent > 3;
  by("live").textContent = isLate
    ? silent === undefined
      ? `no answer yet${problem ? `: ${problem}` : ""}`
      : `no answer for ${span(silent)}${problem ? `: ${problem}` : ""}`
    : `as of ${new Date(heard).toLocaleTimeString("en-GB")}`;
  if (isLate && silent !== undefined) {
    showState("bad", "this node does not answer");
  }
}

// ---- Alerts.

let shownAlerts;

async function showRunbook(name, into) {
  try {
    runbooks ??= await (await fetch("/runbooks.md")).text();
    into.replaceChildren(...prose(sectionOf(runbooks, name) ?? "The runbooks have no section of this name."));
  } catch (error) {
    into.textContent = `The runbooks cannot be read: ${error.message}`;
  }
}

function drawAlerts(found) {
  by("alerts-count").textContent = found.length > 0 ? `${found.length}` : "";
  const key = JSON.stringify(found.map(({ name, text }) => [name, text]));
  if (key !== shownAlerts) {
    shownAlerts = key;
    // Spoken once, and not whenever a figure changes.
    by("alerts-spoken").textContent = found.length > 0 ? `Alerts: ${found.map(({ text }) => text).join("; ")}` : "No alerts";
    const open = new Set([...document.querySelectorAll(".alert details[open]")].map((details) => details.dataset.name));
    by("alerts").replaceChildren(
      ...(found.length > 0 ? found.map((alert) => alertElement(alert, open.has(alert.name))) : [calm()]),
    );
  }
  found.forEach(({ since }, place) => {
    const element = by("alerts").children[place].querySelector(".since");
    element.textContent = `seen here for ${span((Date.now() - since) / 1000)}`;
  });
}

function calm() {
  const text = "Nothing that this node can see is wrong.";
  return make("p", { class: "card calm" }, make("span", { class: "mark", "aria-hidden": "true" }), text);
}

function alertElement({ name, severity, text, first }, isOpen) {
  const runbook = make("pre", {}, "…");
  const details = make("details", { "data-name": name }, make("summary", {}, `Runbook: ${name}`), runbook);
  details.addEventListener("toggle", () => details.open && showRunbook(name, runbook));
  details.open = isOpen;
  return make(
    "div",
    { class: `alert ${severity}` },
    make(
      "div",
      { class: "head" },
      make("span", { class: "severity" }, severity),
      make("span", { class: "title" }, text),
      make("span", { class: "since quiet" }),
    ),
    make("p", {}, first),
    details,
  );
}

// ---- At a glance.

const commandsOf = (status) => at(status, "clients.commands");
const fastOf = (status) => at(status, "answered.writes_by_quorum");

function updatesOf(status) {
  const { writes_by_quorum: fast, writes_by_leader: leader, writes_referred: referred } = status.answered;
  return (fast ?? 0) + (leader ?? 0) + (referred ?? 0);
}

function readsOf(status) {
  const reads = Object.entries(status.answered).filter(([name]) => name.startsWith("reads_"));
  return reads.reduce((sum, [, count]) => sum + count, 0);
}

const timesOf = (kind) => (status) => at(status, `times.${kind}`);

/** A percentile between two samples. */
const percentileBetween = (share, read) => (older, newer) =>
  percentile(between(read(older.status), read(newer.status)), share);

function fastShare(older, newer) {
  const all = History.rate(older, newer, updatesOf);
  return all > 0 ? History.rate(older, newer, fastOf) / all : undefined;
}

/** What charts show: as much as there is, in steps, up to ten minutes. */
function range() {
  const to = history.last.time;
  const age = to - history.samples[0].time;
  const shown = [1, 2, 5].map((minutes) => minutes * MINUTE_MS).find((length) => age <= length);
  return [to - (shown ?? KEPT_MS), to];
}

function tile(id, name) {
  const element = by(id);
  if (element) {
    return element;
  }
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  const made = make(
    "div",
    { class: "card tile", id },
    make("div", { class: "name" }, name),
    make("div", { class: "value" }),
    make("div", { class: "note" }),
    svg,
  );
  by("tiles").append(made);
  return made;
}

function fillTile(id, name, value, note, points) {
  const element = tile(id, name);
  element.querySelector(".value").replaceChildren(...withUnit(value).filter(Boolean));
  element.querySelector(".note").textContent = note;
  sparkline(element.querySelector("svg"), points, range());
}

function drawTiles(status) {
  const p99 = (kind) => duration(history.percentile(NOW_MS, 0.99, timesOf(kind)));
  const p50 = (kind) => `median ${duration(history.percentile(NOW_MS, 0.5, timesOf(kind)))}`;
  const [older, newer] = [history.before(NOW_MS), history.last];
  const rate = history.rate(NOW_MS, commandsOf);
  const { clients } = status;
  fillTile(
    "tile-throughput",
    "Throughput",
    perSecond(rate),
    `${digits(clients.commands)} since the start`,
    history.series(5000, (before, sample) => History.rate(before, sample, commandsOf)),
  );
  fillTile(
    "tile-fast",
    "Updates in one round trip",
    percent(older === newer ? undefined : fastShare(older, newer)),
    `of ${perSecond(history.rate(NOW_MS, updatesOf))}`,
    history.series(5000, fastShare),
  );
  fillTile("tile-updates", "Update, p99", p99("updates"), p50("updates"), history.series(5000, percentileBetween(0.99, timesOf("updates"))));
  fillTile("tile-reads", "Read, p99", p99("reads"), p50("reads"), history.series(5000, percentileBetween(0.99, timesOf("reads"))));
  fillTile(
    "tile-clients",
    "Clients",
    digits(clients.connected),
    `of ${digits(clients.connected_max)}; ${digits(clients.waiting)} wait`,
    history.samples.map((sample) => [sample.time, sample.status.clients.connected]),
  );
}

// ---- The group.

function memberState(member, status) {
  if (member.problem !== undefined) {
    return state("bad", "down");
  }
  if (member.unknown !== undefined) {
    return state("warn", "unknown");
  }
  if (member.role === undefined) {
    return state("", member.is_self && status.to_be ? WAYS[status.to_be.way] ?? "waits" : "not asked");
  }
  if (member.has_disk_trouble) {
    return state("bad", `${member.role}, disk trouble`);
  }
  if (member.has_no_quorum) {
    return state("bad", `${member.role}, no quorum`);
  }
  if (member.role === "view-change" || member.role === "recovering") {
    return state("warn", member.role);
  }
  return state(status.leader === member.member ? "good" : "", member.role);
}

const memberOf = (place) => (status) => status.members.find((member) => member.member === place);

function memberRate(place, read) {
  return history.rate(NOW_MS, (status) => {
    const member = memberOf(place)(status);
    return member?.role === undefined ? undefined : read(member);
  });
}

function drawGroup(status) {
  const age = status.members_age_ms;
  by("group-age").textContent = age > AGED_MS ? `as of ${span(age / 1000)} ago` : "";
  const answering = status.members.filter((member) => member.op !== undefined);
  const newest = Math.max(0, ...answering.map((member) => member.op));
  const columns = [
    { title: "Node" }, { title: "Address" }, { title: "State" }, { title: "View", n: true },
    { title: "Applied", n: true }, { title: "Lag", n: true }, { title: "Unordered", n: true }, { title: "Updates", n: true },
    { title: "One round trip", n: true }, { title: "Reads", n: true }, { title: "Log", n: true }, { title: "Connected" },
  ];
  const rows = status.members.map((member) => {
    const place = member.member;
    const name = make("td", {}, String(place), member.is_self ? make("span", { class: "here" }, "this page") : undefined);
    const head = [name, member.address || NONE, make("td", {}, memberState(member, status))];
    const why = member.problem ?? member.unknown;
    if (why !== undefined) {
      const connected = member.is_connected === null ? NONE : member.is_connected ? "yes" : "no";
      return [...head, make("td", { class: "problem", colspan: 8 }, why), make("td", {}, connected)];
    }
    const fast = memberRate(place, (figures) => figures.fast_updates);
    const updates = memberRate(place, (figures) => figures.fast_updates + figures.slow_updates);
    const reads = memberRate(place, (figures) => figures.fast_reads + figures.slow_reads);
    return [
      ...head,
      digits(member.view),
      digits(member.applied),
      member.applied === undefined ? NONE : digits(Math.max(0, newest - member.applied)),
      digits(member.dlog),
      perSecond(updates),
      percent(updates > 0 ? fast / updates : undefined),
      perSecond(reads),
      bytes(member.log_bytes),
      member.is_self ? "itself" : member.is_connected === null ? NONE : member.is_connected ? "yes" : "no",
    ];
  });
  table(by("group"), columns, rows, "This process knows of no members yet.");
}

// ---- Paths.

const UPDATE_PATHS = [
  ["writes_by_quorum", "one round trip, by the fast quorum"],
  ["writes_by_leader", "by the leader, which was asked at once"],
  ["writes_referred", "by the leader, after the fast quorum failed"],
];

const READ_PATHS = [
  ["reads_by_leader", "by the leader"],
  ["reads_by_meta", "by a member with the leader’s word"],
  ["reads_by_quorum", "by a majority"],
  ["reads_rinsed", "by a member, asked a second time"],
  ["reads_referred", "by the leader, after others were asked"],
  ["reads_of_several_keys", "by the leader, of several keys"],
  ["reads_stale", "stale, as the client asked for"],
];

function drawPaths(element, paths) {
  const rates = paths.map(([name, what]) => ({ name, what, rate: history.rate(MINUTE_MS, (status) => status.answered[name]) }));
  const all = rates.reduce((sum, { rate }) => sum + (rate ?? 0), 0);
  if (all === 0) {
    const text = history.samples.length > 1 ? "None in the last minute." : "Known after the next answer.";
    element.replaceChildren(make("p", { class: "none" }, text));
    return;
  }
  const used = rates.map((path, place) => ({ ...path, place })).filter(({ rate }) => rate > 0);
  const bar = make("div", { class: "stack", "aria-hidden": "true" });
  for (const { rate, place } of used) {
    const part = make("i", { class: `k${(place % 6) + 1}` });
    part.style.flexGrow = rate / all;
    bar.append(part);
  }
  const columns = [
    { title: "Path" }, { title: "Share", n: true }, { title: "Rate", n: true }, { title: "p50", n: true }, { title: "p99", n: true },
  ];
  const rows = used.map(({ name, what, rate, place }) => {
    // Ways that there were not yet are not named.
    const time = (share) => history.percentile(MINUTE_MS, share, (status) => status.ways[name] ?? []);
    const key = make("span", { class: `key k${(place % 6) + 1}`, "aria-hidden": "true" });
    return [
      make("td", { class: "what" }, key, what),
      make("td", { class: "n share" }, percent(rate / all)),
      perSecond(rate),
      duration(time(0.5)),
      duration(time(0.99)),
    ];
  });
  const shares = make("table");
  table(shares, columns, rows, "");
  element.replaceChildren(bar, shares);
}

// ---- History.

function figure(id) {
  const found = by(id);
  if (found) {
    return found;
  }
  const made = make("figure", { class: "card", id });
  by("charts").append(made);
  return made;
}

function drawCharts(status) {
  const rateOf = (read) => history.series(5000, (older, newer) => History.rate(older, newer, read));
  const times = (kind, share) => history.series(10_000, percentileBetween(share, timesOf(kind)));
  const rates = [
    { name: "updates", points: rateOf(updatesOf) },
    { name: "reads", points: rateOf(readsOf) },
  ];
  chart(figure("chart-throughput"), "Operations a second", rates, range(), number, 10);
  const latencies = [
    { name: "update p50", points: times("updates", 0.5) },
    { name: "update p99", points: times("updates", 0.99) },
    { name: "read p50", points: times("reads", 0.5) },
    { name: "read p99", points: times("reads", 0.99) },
  ].filter(({ name, points }) => name.startsWith("update") || points.some(([, value]) => value !== undefined));
  chart(figure("chart-latency"), "Latency", latencies, range(), duration, 1000);
  const lag = (place) => (sample) => {
    const newest = Math.max(...sample.status.members.map((member) => member.op ?? 0));
    const applied = memberOf(place)(sample.status)?.applied;
    return [sample.time, applied === undefined ? undefined : Math.max(0, newest - applied)];
  };
  const lags = status.members.map(({ member }) => ({ name: `node ${member}`, points: history.samples.map(lag(member)) }));
  if (lags.length > 0) {
    chart(figure("chart-lag"), "Lag, in entries of the log", lags, range(), number, 100);
  }
  if (status.own) {
    const syncs = (share) => history.series(10_000, percentileBetween(share, (older) => at(older, "own.sync_micros.buckets")));
    const lines = [{ name: "p50", points: syncs(0.5) }, { name: "p99", points: syncs(0.99) }];
    chart(figure("chart-sync"), "Sync of the log", lines, range(), duration, 1000);
  }
}

// ---- Commands.

function drawCommands(status) {
  const unused = { calls: 0, errors: 0, times: [] };
  const commandIn = (name) => ({ commands }) =>
    commands.find((command) => command.name === name) ?? (commands.length < COMMANDS_NAMED ? unused : undefined);
  const rows = status.commands
    .map(({ name }) => {
      const read = commandIn(name);
      const rate = history.rate(MINUTE_MS, (older) => read(older)?.calls);
      const share = (part) => history.percentile(MINUTE_MS, part, (older) => read(older)?.times);
      return { name, rate, p50: share(0.5), p99: share(0.99), errors: history.rate(MINUTE_MS, (older) => read(older)?.errors) };
    })
    .filter(({ rate }) => rate > 0)
    .sort((a, b) => b.rate - a.rate)
    .slice(0, COMMANDS_MAX);
  const columns = [
    { title: "Command" }, { title: "Rate", n: true }, { title: "p50", n: true }, { title: "p99", n: true },
    { title: "Errors", n: true },
  ];
  const cells = ({ name, rate, p50, p99, errors }) => [
    name.toUpperCase(), perSecond(rate), duration(p50), duration(p99), errors > 0 ? perSecond(errors) : NONE,
  ];
  table(by("commands"), columns, rows.map(cells), "None in the last minute.");
  const slow = status.slow.slice(0, SLOW_MAX);
  const slowColumns = [{ title: "When" }, { title: "Command" }, { title: "Words", n: true }, { title: "Took", n: true }];
  const slowCells = ({ at_ms: when, command, words, micros }) => [
    `${span((status.now_ms - when) / 1000)} ago`, String(command).toUpperCase(), digits(words), duration(micros),
  ];
  table(by("slow"), slowColumns, slow.map(slowCells), "None since the start, or since SLOWLOG RESET.");
}

// ---- Memory and disk.

function resource(name, value, share, note) {
  const kind = share > 0.97 ? "bad" : share > 0.9 ? "warn" : "";
  const children = [make("div", { class: "head" }, make("span", {}, name), make("b", {}, value))];
  if (share !== undefined && Number.isFinite(share)) {
    const fill = make("i");
    fill.style.width = `${Math.min(100, Math.max(0, share * 100))}%`;
    children.push(make("div", { class: `meter ${kind}`, "aria-hidden": "true" }, fill));
  }
  return make("div", { class: "resource" }, ...children, note ? make("div", { class: "quiet" }, note) : undefined);
}

function of(used, all) {
  return `${bytes(used)} of ${bytes(all)}`;
}

function drawResources(status) {
  const { data, process, clients, disk, own } = status;
  const shown = [];
  if (data.bytes !== null) {
    const limit = data.bytes_max > 0 ? data.bytes_max : undefined;
    const value = limit ? of(data.bytes, limit) : `${bytes(data.bytes)}, no limit`;
    shown.push(resource("Data", value, limit && data.bytes / limit, `${digits(data.keys)} keys, ${digits(data.keys_evicted)} evicted`));
  }
  const busy = history.rate(NOW_MS, ({ process: { cpu_ms: cpu } }) => cpu);
  const cpu = busy === undefined ? NONE : `${(busy / 1000).toFixed(2)} cores busy`;
  shown.push(resource("Process", of(process.resident_bytes, process.machine_bytes), process.resident_bytes / process.machine_bytes, cpu));
  shown.push(resource("Clients’ connections", of(clients.memory_bytes, clients.memory_bytes_max), clients.memory_bytes / clients.memory_bytes_max));
  if (own) {
    const records = history.rate(NOW_MS, (older) => at(older, "own.sync_records.sum"));
    const size = history.rate(NOW_MS, (older) => at(older, "own.sync_bytes.sum"));
    const note = `${perSecond(records)} records to the disk, ${size === undefined ? NONE : `${bytes(size)}/s`}`;
    shown.push(resource("Log in memory", bytes(own.log_bytes), undefined, note));
  }
  if (disk) {
    const inodes = disk.free_inodes > 0 ? `, ${number(disk.free_inodes)} files` : "";
    const note = `${disk.state}${disk.is_short ? ", short" : ""}; reserve of ${bytes(disk.reserve_bytes)} beside it`;
    shown.push(resource("Disk, free", `${bytes(disk.free_bytes)}${inodes}`, undefined, note));
  }
  const errors = Object.entries(status.errors).sort(([, a], [, b]) => b - a).slice(0, 4);
  const text = errors.map(([code, count]) => `${code} ${digits(count)}`).join(", ");
  shown.push(resource("Error replies", digits(Object.values(status.errors).reduce((sum, count) => sum + count, 0)), undefined, text));
  by("resources").replaceChildren(...shown);
}

// ---- The loop.

function draw(status) {
  drawHeader(status);
  drawAlerts(watch.look(history));
  drawTiles(status);
  drawGroup(status);
  drawPaths(by("paths-updates"), UPDATE_PATHS);
  drawPaths(by("paths-reads"), READ_PATHS);
  drawCharts(status);
  drawCommands(status);
  drawResources(status);
}

async function ask() {
  try {
    const answer = await fetch("/status.json", { signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!answer.ok) {
      throw new Error((await answer.text()).trim());
    }
    const status = await answer.json();
    heard = Date.now();
    problem = undefined;
    history.add(heard, status);
    draw(status);
  } catch (error) {
    problem = error.name === "TypeError" ? "it cannot be reached" : error.message;
  }
  drawLive();
  setTimeout(ask, INTERVAL_MS);
}

startTheme();
ask();
