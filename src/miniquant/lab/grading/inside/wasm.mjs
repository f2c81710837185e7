// The process for notebooks in WebAssembly: compiles Pyodide once and starts a worker for each notebook.
//     node --experimental-permission --allow-worker --allow-fs-read=… wasm.mjs PYODIDE DESCRIPTOR
// Lines of JSON come and go over the descriptor: {kit}, {start}, {data}, {end} from the grader; {ready}, {data}, {printed}, {ended} to it.
import fs from "node:fs";
import net from "node:net";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";

const [pyodide, descriptor] = process.argv.slice(2);
const script = fileURLToPath(new URL("./wasm_worker.mjs", import.meta.url));
const line = new net.Socket({ fd: Number(descriptor) });
const send = (message) => line.write(`${JSON.stringify(message)}\n`);
const binary = fs.readFileSync(`${pyodide}/pyodide.asm.wasm`);
const module = await WebAssembly.compile(binary);
let worker = null;
let flag = null;

let kit;

function start({ library, megabytes }) {
  flag = new Int32Array(new SharedArrayBuffer(4));
  const data = { module, pyodide, kit, library, megabytes, bytes: binary.byteLength, flag };
  const mine = new Worker(script, { workerData: data, env: {}, stdin: false, stdout: true, stderr: true });
  worker = mine;
  mine.on("message", (message) => {
    if (message.data) send({ data: Buffer.from(message.data).toString("latin1") });
    else send(message);
  });
  mine.on("error", (error) => send({ ended: String(error?.message ?? error) }));
}

async function end() {
  const old = worker;
  worker = null;
  await old?.terminate();
  send({ over: true });
}

let text = "";
line.setEncoding("latin1");
line.on("data", (piece) => {
  text += piece;
  const lines = text.split("\n");
  text = lines.pop();
  for (const each of lines) {
    const message = JSON.parse(each);
    if (message.kit) kit = Uint8Array.from(Buffer.from(message.kit, "base64"));
    else if (message.start) start(message.start);
    else if (message.end) end();
    else if (worker) {
      worker.postMessage(Uint8Array.from(Buffer.from(message.data, "latin1")));
      Atomics.add(flag, 0, 1);
      Atomics.notify(flag, 0);
    }
  }
});
line.on("close", () => process.exit(0));
send({ ready: process.version });
