// A trainer in a language without torch: logistic regression by plain SGD, as a member of a flock.
// It speaks with `gossipnode bridge` over the bridge's standard input and output, and shares the
// values as a file in memory (docs/BRIDGE.md). No package is needed.
//
//     node train.mjs [--bridge PROGRAM] [--join ADDRESS] [--seed N] [--steps N] [--members N]
import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

// Flock is a place in a flock for a vector of values.
class Flock {
  constructor(program, values) {
    this.values = values;
    this.folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "flock-"));
    this.path = join(this.folder, "values");
    this.file = openSync(this.path, "w+", 0o600);
    this.bridge = spawn(program, ["bridge"], { stdio: ["pipe", "pipe", "inherit"], detached: true }); // Ctrl-C is for us
    this.ended = new Promise((resolve) => this.bridge.once("exit", resolve).once("error", resolve));
    this.bridge.stdin.on("error", () => {}); // it has ended: the answers do, too
    this.answers = createInterface({ input: this.bridge.stdout })[Symbol.asyncIterator]();
  }

  // ask sends a request, with the values as they are, and takes those that come back.
  async ask(request) {
    writeSync(this.file, this.values, 0, this.values.byteLength, 0);
    this.bridge.stdin.write(JSON.stringify(request) + "\n");
    const { value, done } = await this.answers.next();
    if (done) throw new Error("the bridge has ended; the values are as they were");
    const answer = JSON.parse(value);
    if (!answer.ok) throw new Error(`${answer.error.code}: ${answer.error.detail}: ${answer.error.remedy}`);
    readSync(this.file, this.values, 0, this.values.byteLength, 0);
    return answer;
  }

  // join tells the ranges and what the run is, and waits until the peer has joined.
  join(layout, run) {
    return this.ask({ op: "hello", v: 1, layout, memory: this.path, ...run });
  }

  // close leaves the flock, with the model that the peer ends with.
  async close() {
    try {
      return await this.ask({ op: "leave" });
    } finally {
      this.bridge.stdin.end();
      await this.ended;
      closeSync(this.file);
      rmSync(this.folder, { recursive: true });
    }
  }
}

const { values: flags } = parseArgs({
  options: {
    bridge: { type: "string", default: "gossipnode" }, join: { type: "string", multiple: true, default: [] },
    seed: { type: "string", default: "1" }, steps: { type: "string", default: "400" }, members: { type: "string", default: "1" },
  },
});

// Each seed has points of its own; the same line divides those of all.
const inputs = 8, batch = 16, rate = 0.5;
let state = Number(flags.seed) * 2654435761 % 2 ** 32;
const random = () => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32) * 2 - 1;
const points = Array.from({ length: 500 }, () => {
  const x = Float32Array.from({ length: inputs }, random);
  return { x, y: x[0] + 2 * x[1] - x[2] > 0.1 ? 1 : 0 };
});

const model = new Float32Array(inputs + 1); // the weights, and the bias
const predict = (x) => 1 / (1 + Math.exp(-x.reduce((sum, v, i) => sum + v * model[i], model[inputs])));

const flock = new Flock(flags.bridge, model);
let now = await flock.join(
  [{ name: "weight", shape: [1, inputs] }, { name: "bias", shape: [1], kind: "bias" }],
  { run: "line", join: flags.join, listen: ["127.0.0.1:0"], settings: { steps: Number(flags.steps), final: "merge" } },
);
console.log(JSON.stringify({ address: now.addresses[0] }));
for (; now.members < flags.members && !now.over; now = await flock.ask({ op: "commit" })) await sleep(50);
while (!now.over) {
  let loss = 0;
  for (let step = 0; step < now.quantum; step++) {
    for (let i = 0; i < batch; i++) {
      const { x, y } = points[Math.floor(((random() + 1) / 2) * points.length)];
      const p = predict(x), off = (rate / batch) * (p - y);
      loss -= Math.log(Math.max(y ? p : 1 - p, 1e-9)) / (batch * now.quantum);
      x.forEach((v, k) => (model[k] -= off * v));
      model[inputs] -= off;
    }
  }
  now = await flock.ask({ op: "commit", steps: now.quantum, samples: batch * now.quantum, loss });
}
const end = await flock.close();
const right = points.filter(({ x, y }) => predict(x) > 0.5 === (y === 1)).length;
console.log(JSON.stringify({ steps: end.steps, flock_steps: end.flock_steps, accuracy: right / points.length, model: [...model] }));
