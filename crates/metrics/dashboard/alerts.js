// The conditions of docs/operate/alerts.yml that one node can judge by itself. A test of the crate holds both lists together.
// Prometheus waits a while before it tells of most of them; people who look at this page see what is so now.

import { at } from "./history.js";

const MINUTE = 60_000;

/** Left to Prometheus: they need more than ten minutes. */
export const ELSEWHERE = ["SyrosDiskFilling"];

const grown = (history, path) => {
  const [first, last] = [history.samples[0], history.last];
  const now = at(last.status, path) ?? 0;
  const before = at(first.status, path) ?? 0;
  return now < before ? now : now - before;
};

const names = (members) => members.map((member) => `node ${member.member}`).join(", ");

/** Each tells what is wrong in a few words, or nothing. */
export const ALERTS = [
  {
    name: "SyrosDown",
    severity: "critical",
    first: "The group serves as long as a majority of its members does. Look at the log of the node, and start it again.",
    look: ({ members }) => {
      const down = members.filter((member) => member.problem !== undefined);
      return down.length > 0 && `${names(down)} ${down.length > 1 ? "do" : "does"} not answer`;
    },
  },
  {
    name: "SyrosNoLeader",
    severity: "critical",
    first: "Clients get NOQUORUM. See whether the members reach each other.",
    look: ({ leader }) => leader === null && "this node knows of no leader",
  },
  {
    name: "SyrosNotNormal",
    severity: "critical",
    first: "This node takes no part in the group: it may be cut off, changing its view or recovering.",
    look: ({ status }) => status !== "normal" && `the status of this node is ${status}`,
  },
  {
    name: "SyrosLeaderChanges",
    severity: "warning",
    first: "A slow disk, a lossy line or a busy machine. The logs of the leaders before say what they saw.",
    look: (_, history) => {
      let changes = 0;
      history.samples.reduce((before, { status }) => {
        changes += before !== status.view ? 1 : 0;
        return status.view;
      }, history.samples[0].status.view);
      return changes > 3 && `the view has changed ${changes} times in ten minutes`;
    },
  },
  {
    name: "SyrosDiskBad",
    severity: "critical",
    first: "The log of the node says what is wrong with the disk.",
    look: ({ disk }) => disk && disk.state !== "ok" && `the disk of this node is ${disk.state}`,
  },
  {
    name: "SyrosDiskShort",
    severity: "critical",
    first: "Updates that make the data grow are refused. Make room, or delete keys: that works.",
    look: ({ disk }) => disk?.is_short === true && "the disk of this node is nearly full",
  },
  {
    name: "SyrosCertificateEnds",
    severity: "warning",
    first: "Write new files over the old ones: the process reads them by itself.",
    look: ({ certificate_expires: expires, now_ms: now }) => {
      const days = (expires - now / 1000) / 86_400;
      return Number.isFinite(expires) && days < 7 && `the certificate of this node ends in ${days.toFixed(1)} days`;
    },
  },
  {
    name: "SyrosMemoryNearLimit",
    severity: "warning",
    first: "Beyond maxmemory updates get OOM, or keys are evicted, as maxmemory-policy says.",
    look: ({ data }) => data.bytes_max > 0 && data.bytes > 0.9 * data.bytes_max && "the data take nine tenths of maxmemory",
  },
  {
    name: "SyrosBehind",
    severity: "warning",
    first: "It lacks processor time, or its disk is slow. Reads at it wait; nothing is lost.",
    look: ({ members }) => {
      const answering = members.filter((member) => member.problem === undefined);
      const committed = Math.max(0, ...answering.map((member) => member.commit ?? 0));
      const behind = answering.filter((member) => committed - (member.applied ?? committed) > 100_000);
      return behind.length > 0 && `${names(behind)} more than 100,000 entries behind`;
    },
  },
  {
    name: "SyrosDiverged",
    severity: "critical",
    first: "A bug, broken hardware or a hostile client. A majority that agrees goes on. Keep the data directories, and report it.",
    look: ({ answered }, history) =>
      (answered.diverged > 0 || grown(history, "answered.divergences") > 0) && "the data of members differ",
  },
  {
    name: "SyrosDamagedFrames",
    severity: "warning",
    first: "Checksums found it, and nothing was taken from them. Look at network cards and memory.",
    look: (_, history) => grown(history, "answered.damaged_frames") > 0 && "frames come damaged at this node",
  },
  {
    name: "SyrosConnectionsRefused",
    severity: "warning",
    first: "There are as many as limits.connections or the limit of open files allow, or as many from one address as limits.connections-per-address.",
    look: (_, history) => grown(history, "clients.rejected") > 0 && "this node refuses connections",
  },
  {
    name: "SyrosClientsEvicted",
    severity: "warning",
    first: "A client asks for more than it reads. CLIENT LIST at the node says which ones hold much.",
    look: (_, history) => grown(history, "clients.evicted") > 0 && "this node closed connections that held too much memory",
  },
  {
    name: "SyrosPeerAway",
    severity: "warning",
    first: "The process there has ended, or the network between the two is cut.",
    look: ({ peers }) => {
      const away = peers.filter((peer) => !peer.is_connected);
      return away.length > 0 && `no connection to ${names(away)}`;
    },
  },
  {
    name: "SyrosOperationsRefused",
    severity: "warning",
    first: "The reason says which limit was met; the node’s log and docs say what sets it.",
    look: ({ own }, history) => {
      const reasons = ["overloaded", "log-full", "disk-failed", "disk-full", "out-of-memory", "clock-skew"];
      const now = reasons.filter((reason) => grown(history, `own.refused.${reason}`) > 0);
      return own && now.length > 0 && `this node refused operations: ${now.join(", ")}`;
    },
  },
  {
    name: "SyrosSyncSlow",
    severity: "warning",
    first: "The disk is slow or shared. Acknowledgements wait for it, at a leader most of all.",
    look: (_, history) => {
      const micros = history.percentile(5 * MINUTE, 0.99, (status) => at(status, "own.sync_micros.buckets"));
      return micros > 100_000 && "one sync of the log in a hundred takes more than 0.1 s";
    },
  },
  {
    name: "SyrosSlow",
    severity: "warning",
    first: "The list of slow commands below says which. A slow disk shows in all of them.",
    look: (_, history) => {
      const slow = ["times.reads", "times.updates"].some(
        (path) => history.percentile(5 * MINUTE, 0.99, (status) => at(status, path)) > 500_000,
      );
      return slow && "one command in a hundred takes more than half a second";
    },
  },
];

/** What is wrong now, as far as this node can say, and since when the page has seen it. */
export class Watch {
  constructor() {
    this.since = new Map();
  }

  look(history) {
    const { time, status } = history.last;
    const found = [];
    for (const alert of ALERTS) {
      const text = alert.look(status, history);
      if (!text) {
        this.since.delete(alert.name);
        continue;
      }
      if (!this.since.has(alert.name)) {
        this.since.set(alert.name, time);
      }
      found.push({ ...alert, text, since: this.since.get(alert.name) });
    }
    return found.sort((a, b) => (a.severity === "critical" ? 0 : 1) - (b.severity === "critical" ? 0 : 1));
  }
}

/** The section of the runbooks about an alert. */
export function sectionOf(runbooks, name) {
  const [, rest] = runbooks.split(`\n## ${name}\n`);
  return rest?.split("\n## ")[0].trim();
}

