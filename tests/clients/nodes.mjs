// What the checks of ioredis are made of: clients of all nodes, a count, and messages that say enough.

import { setTimeout as sleep } from 'node:timers/promises';
import { inspect, isDeepStrictEqual } from 'node:util';
import { Redis } from 'ioredis';

// A reply that takes longer is as good as none.
export const REPLY_MS_MAX = 60_000;
// What is to happen by itself happens within this time.
export const PATIENCE_MS = 30_000;
// The longest value, as CONFIG GET proto-max-bulk-len has to say.
export const VALUE_BYTES_MAX = 16 * 1024 * 1024;
export const KEY_BYTES_MAX = 64 * 1024;

/** A check failed. */
export class Failure extends Error {}

/** A value as messages show it: not all of a long one. */
function shown(value) {
  const text = value instanceof Error ? `error '${value.message}'` : inspect(value, { depth: 6, breakLength: Infinity });
  return text.length <= 300 ? text : `${text.slice(0, 250)}... (${text.length} characters)`;
}

/** Numbers that look random, the same ones in every run: a linear congruential generator's high bits. */
export class Draw {
  constructor(seed) {
    this.state = BigInt(seed);
  }

  /** A number from 0 to below `limit`. */
  below(limit) {
    this.state = BigInt.asUintN(64, this.state * 6364136223846793005n + 1442695040888963407n);
    return Number((this.state >> 33n) % BigInt(limit));
  }

  of(list) {
    return list[this.below(list.length)];
  }

  bytes(length) {
    const bytes = Buffer.alloc(length);
    for (let place = 0; place + 4 <= length; place += 4) bytes.writeUInt32LE(this.below(2 ** 31), place);
    return bytes;
  }
}

/** The nodes of the cluster, a client for each, and the count of checks. */
export class Nodes {
  constructor(ports, protocol, isRedis) {
    this.ports = ports;
    this.protocol = protocol;
    this.isRedis = isRedis;
    this.checks = 0;
    this.turn = 0;
    this.opened = [];
    this.clients = ports.map((port) => this.client(port));
  }

  /** A client of one node. It never sends a command twice: that would hide lost replies. */
  client(port, options = {}) {
    const client = new Redis({
      host: '127.0.0.1',
      port,
      protocol: this.protocol,
      commandTimeout: REPLY_MS_MAX,
      retryStrategy: null,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      ...options,
    });
    // Every command reports the error too.
    client.on('error', () => {});
    this.opened.push(client);
    return client;
  }

  close() {
    for (const client of this.opened) client.disconnect();
  }

  nextClient() {
    this.turn += 1;
    return this.clients[this.turn % this.clients.length];
  }

  nextPort() {
    return this.nextClient().options.port;
  }

  /** Counts a check, or ends the run with what was asked, got and expected. */
  check(what, holds, got, expected) {
    if (!holds) throw new Failure(`${what}: expected ${shown(expected)}, got ${shown(got)}`);
    this.checks += 1;
  }

  equal(what, got, expected) {
    this.check(what, isDeepStrictEqual(got, expected), got, expected);
  }

  /** What a method of ioredis returns, or the error, and a description of the call. */
  async ask(client, method, ...words) {
    const call = words.map((word) => shown(word).slice(0, 100)).join(', ');
    const what = `${method}(${call}) at port ${client.options.port}, RESP${this.protocol}`;
    try {
      return [await client[method](...words), what];
    } catch (error) {
      return [error, what];
    }
  }

  /** The next node returns exactly this. */
  async gives(expected, method, ...words) {
    const [got, what] = await this.ask(this.nextClient(), method, ...words);
    this.equal(what, got, expected);
  }

  /** The next node returns an integer between these, both included. */
  async givesBetween(low, high, method, ...words) {
    const [got, what] = await this.ask(this.nextClient(), method, ...words);
    this.check(what, Number.isInteger(got) && low <= got && got <= high, got, `${low} to ${high}`);
  }

  /** The next node returns a list of these, each once, in any order. */
  async givesSet(expected, method, ...words) {
    const [got, what] = await this.ask(this.nextClient(), method, ...words);
    this.equal(what, Array.isArray(got) ? [...got].sort() : got, [...expected].sort());
  }

  /** The next node answers with this error. */
  async fails(text, method, ...words) {
    const [got, what] = await this.ask(this.nextClient(), method, ...words);
    this.equal(what, got instanceof Error ? got.message : got, text);
  }

  /** Waits for something that happens by itself. */
  async waitUntil(what, holds) {
    const deadline = Date.now() + PATIENCE_MS;
    while (!(await holds())) {
      this.check(what, Date.now() < deadline, 'nothing', `this within ${PATIENCE_MS} ms`);
      await sleep(20);
    }
    this.checks += 1;
  }

  async empty() {
    await this.gives('OK', 'flushall');
    await this.gives(0, 'dbsize');
  }
}
