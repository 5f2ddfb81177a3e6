// Runs ioredis against every node of a running cluster and checks each reply.
//
//     node ioredis.mjs --ports 7000,7001,7002
//
// Commands go to the nodes in turn, so that nearly every reply depends on what another node was told just
// before. With --redis the server is a plain Redis 7.0 that was started with `--databases 16
// --proto-max-bulk-len 16mb`, and what Redis does not have is left out: this validates the expectations.
//
// Deletes all keys. Prints `N checks passed`, or says what was wrong at the first check that fails, with
// exit status 1.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Draw, Failure, KEY_BYTES_MAX, Nodes, PATIENCE_MS, REPLY_MS_MAX, VALUE_BYTES_MAX } from './nodes.mjs';

const VERSION = createRequire(import.meta.url)('ioredis/package.json').version;

/** A list of names and values in turn, as ioredis shows maps, as an object. */
const asObject = (list) => Object.fromEntries(list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1]]] : [])));

async function connections(nodes) {
  await nodes.gives('PONG', 'ping');
  await nodes.gives('some text', 'ping', 'some text');
  await nodes.gives('some text', 'echo', 'some text');
  await nodes.gives('', 'echo', '');
  await nodes.gives('OK', 'select', 0);
  await nodes.fails('ERR DB index is out of range', 'select', 16);
  const [time, what] = await nodes.ask(nodes.nextClient(), 'time');
  const near = Array.isArray(time) && Math.abs(Number(time[0]) - Date.now() / 1000) < 30 && Number(time[1]) < 1e6;
  nodes.check(what, near, time, 'the time of day');

  const client = nodes.client(nodes.nextPort());
  const says = async (expected, ...words) => {
    const [got, what] = await nodes.ask(client, 'call', ...words);
    nodes.equal(what, got, expected);
  };
  const [identity] = await nodes.ask(client, 'client', 'ID');
  nodes.check('CLIENT ID', Number.isInteger(identity) && identity > 0, identity, 'a positive integer');
  await says(identity, 'CLIENT', 'ID');
  await says(null, 'CLIENT', 'GETNAME');
  await says('OK', 'CLIENT', 'SETNAME', 'a-name');
  await says('a-name', 'CLIENT', 'GETNAME');
  if (!nodes.isRedis) {
    // Newer than the Redis that is imitated, but clients send it.
    await says('OK', 'CLIENT', 'SETINFO', 'LIB-NAME', 'ioredis');
    await says('OK', 'CLIENT', 'SETINFO', 'LIB-VER', VERSION);
  }
  for (const version of [2, 3, 2]) {
    const hello = asObject(await client.call('HELLO', String(version)));
    const { id, ...rest } = hello;
    nodes.equal(`id of HELLO ${version}`, id, identity);
    const expected = { server: 'redis', version: '7.0.15', proto: version, mode: 'standalone', role: 'master' };
    nodes.equal(`HELLO ${version}`, rest, { ...expected, modules: [] });
    await says(null, 'GET', 'missing');
  }
  await says('RESET', 'RESET');
  await says(null, 'CLIENT', 'GETNAME');
  await says('OK', 'QUIT');
  const [refused] = await nodes.ask(client, 'get', 'key');
  nodes.check('a command after QUIT', refused instanceof Error, refused, 'a closed connection');

  const named = nodes.client(nodes.nextPort(), { connectionName: 'named' });
  nodes.equal('connectionName', await named.client('GETNAME'), 'named');
  named.disconnect();
}

/** The lines of INFO as one map, as clients make it. */
function infoMap(text) {
  const lines = text.split('\r\n').filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

async function server(nodes) {
  await nodes.empty();
  const [commands, what] = await nodes.ask(nodes.nextClient(), 'command');
  const names = new Set(commands.map((command) => command[0]));
  nodes.check(what, ['get', 'set', 'incr', 'scan', 'ping'].every((name) => names.has(name)), [...names], 'commands');
  await nodes.gives(commands.length, 'command', 'COUNT');
  for (const [name, arity, first, last, step] of [['get', 2, 1, 1, 1], ['set', -3, 1, 1, 1], ['mset', -3, 1, -1, 2]]) {
    const [reply, what] = await nodes.ask(nodes.nextClient(), 'command', 'INFO', name, 'nosuch');
    nodes.equal(what, [0, 1, 3, 4, 5].map((at) => reply[0][at]), [name, arity, first, last, step]);
    nodes.equal(what, reply.slice(1), [null]);
  }
  const docs = asObject(await nodes.nextClient().command('DOCS', 'get', 'nosuch'));
  const { since, group, summary } = asObject(docs.get);
  nodes.equal('COMMAND DOCS get nosuch', [Object.keys(docs), since, group], [['get'], '1.0.0', 'string']);
  nodes.check('summary of COMMAND DOCS get', summary.length > 0, summary, 'some text');
  await nodes.gives(['a', 'b'], 'command', 'GETKEYS', 'MSET', 'a', '1', 'b', '2');

  await nodes.gives('OK', 'set', 'key', 'value');
  for (const sections of [[], ['everything'], ['server', 'replication', 'persistence']]) {
    const [text, what] = await nodes.ask(nodes.nextClient(), 'info', ...sections);
    const info = infoMap(text);
    // Clients make one map of all sections: no line may contradict another.
    const expected = { redis_version: '7.0.15', redis_mode: 'standalone', role: 'master', loading: '0' };
    for (const [name, value] of Object.entries(expected)) nodes.equal(`${name} of ${what}`, info.get(name), value);
  }
  // INFO is no operation on data: a node tells what it has applied so far.
  await nodes.waitUntil('INFO keyspace counts one key', async () => {
    const line = infoMap(await nodes.nextClient().info('keyspace')).get('db0') ?? '';
    return line.startsWith('keys=1,expires=0,');
  });
  // Redis has no limit unless it is told, Syros one that follows from the machine's memory.
  const memory = infoMap(await nodes.nextClient().info('memory'));
  await nodes.gives(['maxmemory', memory.get('maxmemory')], 'config', 'GET', 'maxmemory');
  await nodes.gives(['proto-max-bulk-len', String(VALUE_BYTES_MAX)], 'config', 'GET', 'proto-max-*');
  await nodes.gives([], 'config', 'GET', 'no-such-setting');

  await nodes.gives('OK', 'mset', new Map(Array.from({ length: 20 }, (_, number) => [`key${number}`, 'x'])));
  await nodes.gives(21, 'dbsize');
  for (const words of [['flushdb'], ['flushall', 'ASYNC'], ['flushdb', 'SYNC'], ['flushall']]) {
    await nodes.gives('OK', 'set', 'key', 'value');
    await nodes.gives('OK', ...words);
    await nodes.gives(null, 'get', 'key');
    await nodes.gives(0, 'dbsize');
  }
}

async function strings(nodes) {
  await nodes.empty();
  // What is expected, and the command.
  for (const [expected, ...words] of [
    [null, 'get', 'key'],
    ['OK', 'set', 'key', 'value'],
    ['value', 'get', 'key'],
    ['OK', 'set', 'key', ''],
    ['', 'get', 'key'],
    ['OK', 'mset', 'a', '1', 'b', '2', 'c', '3'],
    [['3', null, '1', '', '3'], 'mget', 'c', 'missing', 'a', 'key', 'c'],
    ['OK', 'mset', 'twice', 'first', 'twice', 'second'],
    ['second', 'get', 'twice'],
    [0, 'msetnx', 'd', '4', 'a', '5'],
    [[null, '1'], 'mget', 'd', 'a'],
    [1, 'msetnx', 'd', '4', 'e', '5'],
    [['4', '5'], 'mget', ['d', 'e']],
    [0, 'setnx', 'a', '6'],
    ['1', 'get', 'a'],
    [1, 'setnx', 'f', '6'],
    [null, 'getset', 'g', '7'],
    ['7', 'getset', 'g', '8'],
    ['8', 'getdel', 'g'],
    [null, 'getdel', 'g'],
    ['1', 'getex', 'a'],
    [null, 'getex', 'missing'],
    [3, 'append', 'text', 'abc'],
    [6, 'append', 'text', 'def'],
    [6, 'append', 'text', ''],
    ['abcdef', 'get', 'text'],
    [6, 'strlen', 'text'],
    [0, 'strlen', 'missing'],
    [6, 'setrange', 'text', 2, 'XY'],
    [9, 'setrange', 'text', 8, '!'],
    ['abXYef\0\0!', 'get', 'text'],
    [0, 'setrange', 'missing', 5, ''],
    [0, 'exists', 'missing'],
    [5, 'setrange', 'padded', 3, 'ab'],
    ['\0\0\0ab', 'get', 'padded'],
    ['ab', 'getrange', 'text', 0, 1],
    ['abXYef\0\0!', 'getrange', 'text', 0, -1],
    ['\0\0', 'getrange', 'text', -3, -2],
    ['ef\0\0!', 'getrange', 'text', 4, 99],
    ['', 'getrange', 'text', 5, 4],
    ['', 'getrange', 'text', 20, 30],
    ['abX', 'getrange', 'text', -99, 2],
    ['', 'getrange', 'text', -1, -3],
    ['', 'getrange', 'missing', 0, -1],
    ['bX', 'substr', 'text', 1, 2],
    [1, 'incr', 'n'],
    [11, 'incrby', 'n', 10],
    [10, 'decr', 'n'],
    [-5, 'decrby', 'n', 15],
    [0, 'incrby', 'n', 5],
    [-1, 'decr', 'm'],
    ['2.5', 'incrbyfloat', 'x', '2.5'],
    ['2.6', 'incrbyfloat', 'x', '0.1'],
    ['5200', 'incrbyfloat', 'y', '5.2e3'],
    ['-0.25', 'incrbyfloat', 'y', '-5200.25'],
    ['-0.25', 'get', 'y'],
  ]) {
    await nodes.gives(expected, ...words);
  }
}

async function setOptions(nodes) {
  await nodes.empty();
  const now = Math.floor(Date.now() / 1000);
  for (const [expected, ...options] of [
    [null, '1', 'XX'],
    ['OK', '1', 'NX'],
    [null, '2', 'NX'],
    ['OK', '3', 'XX'],
    ['3', '4', 'GET'],
    ['4', '5', 'NX', 'GET'],
    ['4', '5', 'XX', 'GET'],
    ['5', '6', 'GET', 'EX', 100],
    ['6', '7', 'KEEPTTL', 'GET'],
    ['7', '8', 'PX', 5000, 'XX', 'GET'],
  ]) {
    await nodes.gives(expected, 'set', 'key', ...options);
  }
  await nodes.gives('8', 'get', 'key');
  for (const [option, argument, low, high] of [
    ['EX', 100, 90_000, 100_000],
    ['PX', 100_500, 90_000, 100_500],
    ['EXAT', now + 100, 80_000, 101_000],
    ['PXAT', now * 1000 + 100_500, 80_000, 101_500],
  ]) {
    await nodes.gives('OK', 'set', 'key', 'value', option, argument);
    await nodes.givesBetween(low, high, 'pttl', 'key');
  }
  await nodes.gives('OK', 'set', 'key', 'kept', 'KEEPTTL');
  await nodes.gives(now * 1000 + 100_500, 'pexpiretime', 'key');
  await nodes.gives(now + 101, 'expiretime', 'key');
  await nodes.gives('kept', 'get', 'key');
  await nodes.gives('OK', 'set', 'key', 'value');
  await nodes.gives(-1, 'ttl', 'key');
  await nodes.gives('OK', 'set', 'key', 'value', 'EXAT', 1);
  await nodes.gives(0, 'exists', 'key');
  await nodes.gives('OK', 'setex', 'key', 100, 'value');
  await nodes.givesBetween(90, 100, 'ttl', 'key');
  await nodes.gives('OK', 'psetex', 'key', 200_000, 'value');
  await nodes.givesBetween(190_000, 200_000, 'pttl', 'key');
}

async function keyspace(nodes) {
  await nodes.empty();
  await nodes.gives(null, 'randomkey');
  await nodes.gives([], 'keys', '*');
  for (const [expected, ...words] of [
    ['OK', 'mset', 'a', '1', 'b', '2', 'c', '3', 'd', '4', 'e', '5', 'f', '6'],
    [3, 'exists', 'a', 'b', 'missing', 'a'],
    [2, 'del', 'a', 'missing', 'b', 'a'],
    [1, 'unlink', 'c', 'a'],
    [0, 'del', 'a'],
    ['string', 'type', 'd'],
    ['none', 'type', 'a'],
    ['OK', 'rename', 'd', 'e'],
    [[null, '4'], 'mget', 'd', 'e'],
    ['OK', 'rename', 'e', 'e'],
    [0, 'renamenx', 'e', 'f'],
    [1, 'renamenx', 'e', 'one:1'],
    ['OK', 'mset', 'one:2', '1', 'two:1', '1', 'o*e', '1'],
  ]) {
    await nodes.gives(expected, ...words);
  }
  await nodes.givesSet(['one:1', 'one:2'], 'keys', 'one:*');
  await nodes.givesSet(['one:2'], 'keys', '?ne:[^1]');
  await nodes.givesSet(['o*e'], 'keys', 'o\\*e');
  await nodes.givesSet(['f', 'one:1', 'one:2', 'two:1', 'o*e'], 'keys', '*');
  for (let round = 0; round < 6; round += 1) {
    const [key, what] = await nodes.ask(nodes.nextClient(), 'randomkey');
    nodes.check(what, ['f', 'one:1', 'one:2', 'two:1', 'o*e'].includes(key), key, 'one of the keys');
  }
}

async function scans(nodes) {
  await nodes.empty();
  const expected = Array.from({ length: 1000 }, (_, number) => `scan:${number}`).sort();
  await nodes.gives('OK', 'mset', expected.flatMap((key) => [key, 'x']));
  for (const options of [{}, { count: 100 }, { count: 1, match: 'scan:7*' }, { count: 5000 }, { type: 'string' }]) {
    const client = nodes.nextClient();
    const found = [];
    for await (const keys of client.scanStream(options)) found.push(...keys);
    const wanted = options.match ? expected.filter((key) => key.startsWith('scan:7')) : expected;
    nodes.equal(`scanStream of ${JSON.stringify(options)} at port ${client.options.port}`, found.sort(), wanted);
  }
  await nodes.gives(['0', []], 'scan', 0, 'COUNT', 5000, 'MATCH', 'nosuch*');
  await nodes.gives(['0', []], 'scan', 0, 'COUNT', 5000, 'TYPE', 'list');
  await nodes.gives(1000, 'unlink', expected);
}

async function expiry(nodes) {
  await nodes.empty();
  for (const method of ['ttl', 'pttl', 'expiretime', 'pexpiretime']) await nodes.gives(-2, method, 'key');
  for (const method of ['expire', 'pexpire', 'expireat', 'pexpireat']) await nodes.gives(0, method, 'key', 4e9);
  await nodes.gives(0, 'persist', 'key');
  await nodes.gives('OK', 'set', 'key', 'value');
  for (const method of ['ttl', 'pttl', 'expiretime', 'pexpiretime']) await nodes.gives(-1, method, 'key');
  await nodes.gives(1, 'expire', 'key', 100);
  await nodes.givesBetween(90, 100, 'ttl', 'key');
  await nodes.gives(1, 'pexpire', 'key', 200_000);
  await nodes.givesBetween(190_000, 200_000, 'pttl', 'key');
  const later = Math.floor(Date.now() / 1000) + 1000;
  for (const [expected, ...words] of [
    [1, 'expireat', 'key', later],
    [later, 'expiretime', 'key'],
    [1, 'pexpireat', 'key', later * 1000 + 400],
    [later * 1000 + 400, 'pexpiretime', 'key'],
    [0, 'expireat', 'key', later + 1, 'NX'],
    [1, 'expireat', 'key', later + 10, 'XX'],
    [0, 'expireat', 'key', later + 9, 'GT'],
    [1, 'expireat', 'key', later + 11, 'GT'],
    [0, 'expireat', 'key', later + 12, 'LT'],
    [1, 'expireat', 'key', later + 5, 'LT'],
    [later + 5, 'expiretime', 'key'],
    [1, 'persist', 'key'],
    [0, 'persist', 'key'],
    ['value', 'getex', 'key', 'PXAT', later * 1000 + 1],
    [later * 1000 + 1, 'pexpiretime', 'key'],
    ['value', 'getex', 'key', 'EXAT', later],
    [later, 'expiretime', 'key'],
    ['value', 'getex', 'key', 'PERSIST'],
    [-1, 'ttl', 'key'],
    [1, 'expire', 'key', -1],
    [null, 'get', 'key'],
  ]) {
    await nodes.gives(expected, ...words);
  }
}

/** Keys vanish when their time has come, not before, at all nodes at once. */
async function expiryHappens(nodes) {
  await nodes.empty();
  const ms = 1200;
  const made = new Map();
  const make = async (key, ...words) => {
    made.set(key, Date.now());
    const [got, what] = await nodes.ask(nodes.nextClient(), ...words);
    nodes.check(what, ['OK', 1, 'x'].includes(got), got, 'success');
  };
  await nodes.gives('OK', 'mset', 'expire', 'x', 'getex', 'x', 'stays', 'x');
  await make('px', 'set', 'px', 'x', 'PX', ms);
  await make('pxat', 'set', 'pxat', 'x', 'PXAT', Date.now() + ms);
  await make('psetex', 'psetex', 'psetex', ms, 'x');
  await make('expire', 'pexpire', 'expire', ms);
  await make('getex', 'getex', 'getex', 'PX', ms);
  const there = new Set(made.keys());
  const deadline = Date.now() + ms + PATIENCE_MS;
  while (there.size > 0 && Date.now() < deadline) {
    for (const [key, since] of made) {
      const client = nodes.nextClient();
      const value = await client.get(key);
      const age = Date.now() - since;
      const what = `GET ${key} at port ${client.options.port}, ${age} ms after it was given ${ms} ms`;
      if (!there.has(key)) {
        nodes.equal(`${what}, and after it was gone`, value, null);
      } else if (value === null) {
        // Clocks are read in milliseconds.
        nodes.check(what, age >= ms - 5, value, 'x');
        there.delete(key);
      }
    }
    await sleep(10);
  }
  nodes.equal('keys that did not expire', [...there], []);
  await nodes.gives(0, 'exists', ...made.keys());
  await nodes.gives(['stays'], 'keys', '*');
  await nodes.gives(1, 'dbsize');
  await nodes.gives('OK', 'set', 'px', 'again', 'NX');
  await nodes.gives(1, 'incr', 'pxat');
}

/** Errors in Redis's words; nothing changes by them. */
async function errors(nodes) {
  await nodes.empty();
  const table = JSON.parse(readFileSync(new URL('errors.json', import.meta.url), 'utf8'));
  for (const words of table.state) await nodes.gives('OK', 'call', ...words);
  for (const [words, text] of [...table.errors, ...(nodes.isRedis ? [] : table.syros)]) {
    await nodes.fails(text, 'call', ...words);
  }
  await nodes.gives(table.state.map((words) => words[2]), 'mget', table.state.map((words) => words[1]));
  await nodes.gives(table.state.length, 'dbsize');
}

/** All of a transaction or nothing, and nothing if a watched key has changed at another node. */
async function transactions(nodes) {
  await nodes.empty();
  const got = await nodes.nextClient().multi().set('n', 1).incr('n').ping().hset('h', 'f', 'v').exec();
  nodes.equal('multi()', got, [[null, 'OK'], [null, 2], [null, 'PONG'], [null, 1]]);
  await nodes.gives('2', 'get', 'n');
  const watching = nodes.nextClient();
  await watching.watch('n');
  await nodes.gives(3, 'incr', 'n');
  nodes.equal('a watched key that has changed', await watching.multi().set('n', 'overwritten').exec(), null);
  await nodes.gives('3', 'get', 'n');
}

/** BLIND runs any update and always answers OK; the next read at any node sees what it did. */
async function blind(nodes) {
  await nodes.empty();
  for (const [words, expected, ...question] of [
    [['SET', 'key', 'value'], 'value', 'get', 'key'],
    [['APPEND', 'key', '!'], 'value!', 'get', 'key'],
    [['DEL', 'key', 'missing'], null, 'get', 'key'],
    [['INCRBY', 'n', '5'], '5', 'get', 'n'],
    [['INCR', 'n'], '6', 'get', 'n'],
    [['DECRBY', 'n', '10'], '-4', 'get', 'n'],
    [['DECR', 'n'], '-5', 'get', 'n'],
    [['INCRBYFLOAT', 'n', '0.5'], '-4.5', 'get', 'n'],
    [['INCR', 'n'], '-4.5', 'get', 'n'],
    [['GETSET', 'n', '1'], '1', 'get', 'n'],
    [['SETNX', 'n', '2'], '1', 'get', 'n'],
    [['SET', 'n', '3', 'NX'], '1', 'get', 'n'],
    [['SETRANGE', 'n', '1', '23'], '123', 'get', 'n'],
    [['MSET', 'a', '1', 'b', '2'], ['1', '2'], 'mget', 'a', 'b'],
    [['MSETNX', 'b', '3', 'c', '3'], ['2', null], 'mget', 'b', 'c'],
    [['RENAME', 'b', 'c'], [null, '2'], 'mget', 'b', 'c'],
    [['RENAME', 'b', 'd'], [null, '2'], 'mget', 'b', 'c'],
    [['GETDEL', 'c'], 0, 'exists', 'c'],
    [['UNLINK', 'a'], 0, 'exists', 'a'],
    [['PEXPIREAT', 'n', '4000000000000'], 4000000000000, 'pexpiretime', 'n'],
    [['GETEX', 'n', 'PERSIST'], -1, 'ttl', 'n'],
    [['FLUSHALL'], 0, 'dbsize'],
  ]) {
    await nodes.gives('OK', 'call', 'BLIND', ...words);
    await nodes.gives(expected, ...question);
  }
}

/** Keys and values are any bytes, of any length up to the limits. */
async function binary(nodes) {
  await nodes.empty();
  const every = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const keys = [Buffer.from([0]), '\r\n', '*1\r\n$4\r\nPING\r\n', every, 'schlüssel-\u2603', '', Buffer.from([255, 254])];
  for (const key of keys.map((key) => Buffer.from(key))) {
    for (const value of ['', '\0\0', '\r\n$-1\r\n', every, Buffer.concat(Array(40).fill(every))]) {
      await nodes.gives('OK', 'set', key, value);
      await nodes.gives(Buffer.from(value), 'getBuffer', key);
    }
    await nodes.gives([key], 'keysBuffer', '*');
    await nodes.gives(1, 'del', key);
  }
  const key = 'k'.repeat(KEY_BYTES_MAX);
  await nodes.gives('OK', 'set', key, 'long key');
  await nodes.gives('long key', 'get', key);
  if (!nodes.isRedis) {
    const text = `ERR key of ${KEY_BYTES_MAX + 1} bytes exceeds the maximum of ${KEY_BYTES_MAX}`;
    await nodes.fails(text, 'set', `${key}k`, 'x');
    await nodes.fails(text, 'get', `${key}k`);
  }
}

async function large(nodes) {
  await nodes.empty();
  const draw = new Draw(7);
  const values = nodes.ports.map(() => draw.bytes(1024 * 1024));
  for (const [number, value] of values.entries()) {
    await nodes.gives('OK', 'set', `large:${number}`, value);
    for (let round = 0; round < nodes.ports.length; round += 1) await nodes.gives(value, 'getBuffer', `large:${number}`);
  }
  await nodes.gives(values, 'mgetBuffer', values.map((_, number) => `large:${number}`));
  await nodes.gives(1024 * 1024 + 3, 'append', 'large:0', 'end');
  await nodes.gives('end', 'getrange', 'large:0', -3, -1);
  const tooLong = 'ERR string exceeds maximum allowed size (proto-max-bulk-len)';
  await nodes.fails(tooLong, 'setrange', 'large:0', VALUE_BYTES_MAX, 'x');
  await nodes.gives('OK', 'set', 'largest', Buffer.alloc(VALUE_BYTES_MAX, 'v'));
  await nodes.fails(tooLong, 'append', 'largest', 'y');
  await nodes.gives(VALUE_BYTES_MAX, 'strlen', 'largest');
  await nodes.gives(1, 'del', 'largest');
  // redis-server closes the connection, which the rest then meets; here the connection goes on.
  const client = nodes.client(nodes.nextPort());
  const [reply, what] = await nodes.ask(client, 'set', 'largest', Buffer.alloc(VALUE_BYTES_MAX + 1, 'v'));
  nodes.check(what, reply instanceof Error, reply, 'an error');
  if (!nodes.isRedis) {
    const text = `ERR value of ${VALUE_BYTES_MAX + 1} bytes exceeds the maximum of ${VALUE_BYTES_MAX} (proto-max-bulk-len)`;
    nodes.check(what, reply.message === text, reply.message, text);
    const [pong] = await nodes.ask(client, 'ping');
    nodes.check('PING after it', pong === 'PONG', pong, 'PONG');
  }
  client.disconnect();
  await nodes.gives(0, 'exists', 'largest');
  await nodes.empty();
}

/** What a few commands do, in a few lines. */
function modelled(values, name, key, argument) {
  const old = values.get(key) ?? null;
  switch (name) {
    case 'GET':
      return old;
    case 'STRLEN':
      return (old ?? '').length;
    case 'EXISTS':
      return old === null ? 0 : 1;
    case 'SET':
      values.set(key, argument);
      return 'OK';
    case 'GETSET':
      values.set(key, argument);
      return old;
    case 'SETNX':
      if (old === null) values.set(key, argument);
      return old === null ? 1 : 0;
    case 'APPEND':
      values.set(key, (old ?? '') + argument);
      return values.get(key).length;
    case 'DEL':
      return values.delete(key) ? 1 : 0;
    case 'GETDEL':
      values.delete(key);
      return old;
    default:
      values.set(key, String(Number(old ?? 0) + Number(argument)));
      return Number(values.get(key));
  }
}

const TAKES_ARGUMENT = ['SET', 'GETSET', 'SETNX', 'APPEND', 'INCRBY'];

/** 1000 commands on so many keys, sent by `send`; the replies are those of the model. */
async function drawnCommands(nodes, draw, values, keys, run) {
  const sent = [];
  const expected = [];
  for (let place = 0; place < 1000; place += 1) {
    const number = draw.below(keys);
    const changes = Array(4).fill(number % 2 === 0 ? 'INCRBY' : 'APPEND');
    const name = draw.of(['GET', 'SET', 'GETSET', 'SETNX', 'DEL', 'GETDEL', 'EXISTS', 'STRLEN', ...changes]);
    const [key, argument] = [`drawn:${number}`, String(draw.below(200) - 100)];
    const reply = modelled(values, name, key, argument);
    const words = TAKES_ARGUMENT.includes(name) ? [name, key, argument] : [name, key];
    const isBlind = !nodes.isRedis && ['SET', 'INCRBY', 'APPEND', 'DEL'].includes(name) && draw.below(3) === 0;
    sent.push(isBlind ? ['BLIND', ...words] : words);
    expected.push(isBlind ? 'OK' : reply);
  }
  const replies = await run(sent);
  nodes.equal(`number of replies on ${keys} keys`, replies.length, sent.length);
  for (const [place, words] of sent.entries()) {
    nodes.equal(`reply ${place} of a pipeline on ${keys} keys, ${words}`, replies[place], expected[place]);
  }
}

/** The replies of a pipeline come in its order and are those of its commands, run one after the other. */
async function pipelines(nodes) {
  await nodes.empty();
  const draw = new Draw(11);
  const values = new Map();
  const explicit = async (sent) => {
    const replies = await nodes.nextClient().pipeline(sent.map((words) => ['call', ...words])).exec();
    return replies.map(([error, reply]) => error ?? reply);
  };
  const implicit = (sent) => {
    const client = nodes.nextClient();
    return Promise.all(sent.map((words) => client.call(...words)));
  };
  for (const keys of [1, 2, 7, 400, 1, 40]) {
    await drawnCommands(nodes, draw, values, keys, explicit);
    await drawnCommands(nodes, draw, values, keys, implicit);
  }
  const numbers = Array.from({ length: 1000 }, (_, number) => number);
  const sets = numbers.map((number) => ['SET', `distinct:${number}`, String(number)]);
  const gets = numbers.map((number) => ['GET', `distinct:${number}`]);
  const replies = await explicit([...sets, ...gets]);
  nodes.equal('a pipeline on 1000 keys', replies, [...sets.map(() => 'OK'), ...numbers.map(String)]);
  nodes.equal('1000 INCRs', await explicit(numbers.map(() => ['INCR', 'counter'])), numbers.map((number) => number + 1));
  const mixed = await explicit([['SET', 'text', 'abc'], ['INCR', 'text'], ['GET', 'text'], ['NOSUCH'], ['PING']]);
  nodes.equal(
    'errors within a pipeline',
    mixed.map((reply) => (reply instanceof Error ? reply.message : reply)),
    ['OK', 'ERR value is not an integer or out of range', 'abc',
      "ERR unknown command 'NOSUCH', with args beginning with: ", 'PONG'],
  );

  const automatic = nodes.client(nodes.nextPort(), { enableAutoPipelining: true });
  const increments = await Promise.all(numbers.map(() => automatic.incr('automatic')));
  nodes.equal('1000 INCRs with automatic pipelining', increments, numbers.map((number) => number + 1));
  automatic.disconnect();
}

/** What one node has acknowledged, all others show at once. */
async function acrossNodes(nodes) {
  await nodes.empty();
  const count = nodes.clients.length;
  for (let number = 0; number < 500; number += 1) {
    const writer = nodes.clients[number % count];
    const reader = nodes.clients[(number + 1 + (Math.floor(number / count) % (count - 1))) % count];
    const what = `round ${number}: write at port ${writer.options.port}, read at ${reader.options.port}`;
    const value = `value ${number}`;
    if (number % 4 === 0) {
      await writer.set('shared', value);
      nodes.equal(what, await reader.get('shared'), value);
    } else if (number % 4 === 1) {
      const total = await writer.incr('count');
      nodes.equal(what, await reader.get('count'), String(total));
    } else if (number % 4 === 2) {
      await writer.del('shared');
      nodes.equal(what, await reader.get('shared'), null);
    } else {
      await writer.mset('left', value, 'right', value);
      nodes.equal(what, await reader.mget('right', 'left'), [value, value]);
    }
  }
}

/** Clients at all nodes at the same time. */
async function atOnce(nodes) {
  await nodes.empty();
  const totals = [];
  const winners = new Map();
  const clients = [0, 1, 2, 3, 4, 5].map((number) => nodes.client(nodes.ports[number % nodes.ports.length]));
  await Promise.all(clients.map(async (client, number) => {
    for (let place = 0; place < 100; place += 1) {
      totals.push(await client.incr('total'));
      if ((await client.set(`race:${place}`, number, 'NX')) === 'OK') {
        nodes.check(`SET race:${place} NX`, !winners.has(place), number, `only ${winners.get(place)} wins`);
        winners.set(place, String(number));
      }
    }
  }));
  const expected = Array.from({ length: 600 }, (_, number) => number + 1);
  nodes.equal('6 times 100 INCRs at once', totals.sort((a, b) => a - b), expected);
  for (let place = 0; place < 100; place += 1) await nodes.gives(winners.get(place), 'get', `race:${place}`);

  // A single writer: a read returns at least what was acknowledged before it began and at most what was
  // under way when it ended, and no reader goes back.
  const state = { acknowledged: 0, sent: 0, isOver: false };
  const write = async () => {
    for (let value = 1; value <= 400; value += 1) {
      state.sent = value;
      await nodes.clients[value % nodes.clients.length].set('register', value);
      state.acknowledged = value;
    }
    state.isOver = true;
  };
  const read = async (client) => {
    let last = 0;
    // The writer may have failed: do not read for ever.
    const deadline = Date.now() + REPLY_MS_MAX;
    while (!state.isOver && Date.now() < deadline) {
      const low = Math.max(last, state.acknowledged);
      const value = Number(await client.get('register'));
      const holds = low <= value && value <= state.sent;
      nodes.check(`a read at port ${client.options.port} during writes`, holds, value, `${low} to ${state.sent}`);
      last = value;
    }
  };
  await Promise.all([write(), ...clients.slice(0, 3).map(read)]);
  await nodes.gives('400', 'get', 'register');
  for (const client of clients) client.disconnect();
}

/** What is published at one node is heard at all of them, in order. */
async function messages(nodes) {
  const channel = `ioredis ${nodes.protocol}`;
  const listeners = nodes.clients.map((client) => client.duplicate());
  const heard = listeners.map(() => []);
  for (const [place, listener] of listeners.entries()) {
    listener.on('message', (name, message) => heard[place].push([name, message]));
    listener.on('pmessage', (pattern, name, message) => heard[place].push([pattern, name, message]));
    nodes.equal('SUBSCRIBE', await listener.subscribe(channel), 1);
    nodes.equal('PSUBSCRIBE', await listener.psubscribe('ioredis *'), 2);
  }
  const expected = [];
  for (const [number, publisher] of nodes.clients.entries()) {
    nodes.equal('PUBLISH', await publisher.publish(channel, `${number}`), 2 * listeners.length);
    expected.push([channel, `${number}`], ['ioredis *', channel, `${number}`]);
  }
  const deadline = Date.now() + PATIENCE_MS;
  while (heard.some((messages) => messages.length < expected.length) && Date.now() < deadline) await sleep(5);
  // Messages of different nodes may overtake each other.
  const byNumber = (left, right) => Number(left.at(-1)) - Number(right.at(-1));
  for (const messages of heard) nodes.equal('what is heard', messages.toSorted(byNumber), expected);
  for (const listener of listeners) listener.disconnect();
}

const SECTIONS = [
  connections, server, strings, setOptions, keyspace, scans, expiry, expiryHappens, errors, binary, large, pipelines,
  acrossNodes, atOnce,
  transactions,
  messages,
];
// What Redis has not, or not so.
const SYROS_SECTIONS = [blind];

async function main() {
  const { values } = parseArgs({ options: { ports: { type: 'string' }, redis: { type: 'boolean', default: false } } });
  const ports = (values.ports ?? '').split(',').map(Number);
  if (ports.length < 2 || !ports.every((port) => Number.isInteger(port) && port > 0)) {
    console.error('usage: node ioredis.mjs --ports PORT,PORT,.. [--redis]; a single port may be repeated');
    return 2;
  }
  let checks = 0;
  for (const protocol of [2, 3]) {
    const nodes = new Nodes(ports, protocol, values.redis);
    for (const section of [...SECTIONS, ...(values.redis ? [] : SYROS_SECTIONS)]) {
      try {
        await section(nodes);
      } catch (error) {
        const passed = checks + nodes.checks;
        const place = `${section.name}, RESP${protocol}, after ${passed} checks`;
        console.log(`ioredis ${VERSION}: FAILED in ${place}: ${error instanceof Failure ? error.message : error.stack}`);
        return 1;
      }
    }
    nodes.close();
    checks += nodes.checks;
  }
  console.log(`${checks} checks passed`);
  return 0;
}

process.exit(await main());
