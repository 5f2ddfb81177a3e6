// What the page has seen: the answers of the last ten minutes, and rates and percentiles between two of them.

/** How long the page remembers, in milliseconds. */
export const KEPT_MS = 600_000;

/** Answers at most: one a second, and some to spare. */
const SAMPLES_MAX = 700;

/** What is not there is not none: a member that did not answer has counted on meanwhile. */
const isThere = (value) => value !== undefined && value !== null && !Number.isNaN(value);

/** The value behind a path of names, such as "clients.commands", or undefined. */
export function at(status, path) {
  return path.split(".").reduce((value, name) => (value == null ? undefined : value[name]), status);
}

/** How often there was which value since `older`: bounds with counts, in order. Undefined if one of the two is not there. */
export function between(older, newer) {
  if (!isThere(older) || !isThere(newer)) {
    return undefined;
  }
  const before = new Map(older);
  const grown = newer.map(([bound, total]) => [bound, total - (before.get(bound) ?? 0)]);
  // Somebody has started the counters anew.
  return grown.some(([, total]) => total < 0) ? newer : grown.filter(([, total]) => total > 0);
}

/** The bound below which so large a share of all values is; undefined without values. */
export function percentile(buckets, share) {
  if (buckets === undefined) {
    return undefined;
  }
  const all = buckets.reduce((sum, [, total]) => sum + total, 0);
  let seen = 0;
  for (const [bound, total] of buckets) {
    seen += total;
    if (seen >= all * share) {
      return bound;
    }
  }
  return undefined;
}

export class History {
  constructor() {
    this.samples = [];
  }

  /** Takes an answer that came at `time`, in milliseconds. */
  add(time, status) {
    const last = this.samples.at(-1);
    // Another process answers: what it has counted has nothing to do with what was counted before.
    if (last && status.uptime_seconds < last.status.uptime_seconds) {
      this.samples = [];
    }
    this.samples.push({ time, status });
    const forgotten = this.samples.findIndex((sample) => sample.time > time - KEPT_MS);
    this.samples.splice(0, Math.max(forgotten, this.samples.length - SAMPLES_MAX, 0));
  }

  get last() {
    return this.samples.at(-1);
  }

  /** The newest sample that is at least so old, or the oldest there is. */
  before(milliseconds, sample = this.last) {
    const until = (sample?.time ?? 0) - milliseconds;
    let found = this.samples[0];
    for (const candidate of this.samples) {
      if (candidate.time > until) {
        break;
      }
      found = candidate;
    }
    return found;
  }

  /** The oldest sample of the last so many milliseconds that has what `read` reads, or undefined. */
  first(milliseconds, read) {
    const from = this.samples.indexOf(this.before(milliseconds));
    return this.samples.slice(Math.max(0, from)).find(({ status }) => isThere(read(status)));
  }

  /** What one sample and an older one say: how much a count grew in a second. Undefined if one of them lacks the count. */
  static rate(older, newer, read) {
    const seconds = newer && older ? (newer.time - older.time) / 1000 : 0;
    if (seconds <= 0) {
      return undefined;
    }
    const [before, now] = [read(older.status), read(newer.status)];
    if (!Number.isFinite(before) || !Number.isFinite(now)) {
      return undefined;
    }
    // Somebody has started the counter anew.
    return (now < before ? now : now - before) / seconds;
  }

  /** How much a count grew in a second, over the last so many milliseconds. */
  rate(milliseconds, read) {
    return History.rate(this.first(milliseconds, read), this.last, read);
  }

  /** A percentile of the values of the last so many milliseconds. */
  percentile(milliseconds, share, read) {
    const older = this.first(milliseconds, read);
    if (!older || older === this.last) {
      return undefined;
    }
    return percentile(between(read(older.status), read(this.last.status)), share);
  }

  /** A series: [time, value] for each sample, where `value` is made of it and of the one `milliseconds` before. */
  series(milliseconds, value) {
    let first = 0;
    return this.samples.map((sample, place) => {
      while (first + 1 < place && this.samples[first + 1].time <= sample.time - milliseconds) {
        first += 1;
      }
      const older = this.samples[first];
      return [sample.time, older === sample ? undefined : value(older, sample)];
    });
  }
}
