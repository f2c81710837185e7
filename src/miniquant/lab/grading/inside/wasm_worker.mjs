// A worker for one notebook: Python in WebAssembly, with no file, no network and no object of the host.
import fs from "node:fs";
import { pathToFileURL } from "node:url";
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";

const { module, pyodide, kit, library, bytes, flag } = workerData;
const KEPT = [ // names of JavaScript that Pyodide uses while Python runs; all others are taken away
  ..."Object Function Array Number parseFloat parseInt Infinity NaN undefined Boolean String Symbol Date Promise".split(" "),
  ..."RegExp Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError JSON Math".split(" "),
  ..."ArrayBuffer Uint8Array Int8Array Uint16Array Int16Array Uint32Array Int32Array Float32Array Float64Array".split(" "),
  ..."Uint8ClampedArray BigUint64Array BigInt64Array DataView Map BigInt Set WeakMap WeakSet WeakRef Proxy Reflect".split(" "),
  ..."FinalizationRegistry SharedArrayBuffer Atomics isFinite isNaN WebAssembly TextDecoder TextEncoder".split(" "),
  ..."performance globalThis console".split(" "),
];

process.binding = () => ({ fs: fs.constants }); // Emscripten asks for the numbers of open(), which Node no longer gives
const { compile, instantiate } = WebAssembly;
WebAssembly.instantiate = async (source, imports) => { // the large module is compiled once, by the parent
  if (source.byteLength !== bytes) return instantiate(source, imports);
  return { module, instance: await instantiate(module, imports) };
};
const grow = WebAssembly.Memory.prototype.grow;
const most = workerData.megabytes * 16; // pages of 64 KB
WebAssembly.Memory.prototype.grow = function (pages) {
  if (this.buffer.byteLength / 65536 + pages > most) throw new RangeError("no memory is left");
  return grow.call(this, pages);
};

const say = (text) => parentPort.postMessage({ printed: text });
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${pyodide}/`, jsglobals: Object.create(null), stdout: say, stderr: say });
await python.loadPackage(["numpy"], { messageCallback: () => {}, checkIntegrity: false });
python.unpackArchive(kit, "zip", { extractDir: "/kit" });

let rest = new Uint8Array(0);
function hear() { // waits for the grader; nothing else can happen in this thread meanwhile
  for (;;) {
    const seen = Atomics.load(flag, 0);
    const found = receiveMessageOnPort(parentPort);
    if (found) return found.message;
    Atomics.wait(flag, 0, seen);
  }
}
const { FS } = python;
const device = FS.makedev(99, 0);
FS.registerDevice(device, {
  read(stream, buffer, offset, length) {
    if (!rest.length) rest = hear();
    const part = rest.subarray(0, length);
    rest = rest.subarray(part.length);
    buffer.set(part, offset);
    return part.length;
  },
  write(stream, buffer, offset, length) {
    parentPort.postMessage({ data: new Uint8Array(buffer.slice(offset, offset + length)) });
    return length;
  },
});
FS.mkdev("/dev/line", 0o666, device);

const post = parentPort.postMessage.bind(parentPort);
for (const name of Object.getOwnPropertyNames(globalThis)) if (!KEPT.includes(name)) delete globalThis[name];
let why = "";
try {
  python.runPython(`import sys; sys.path.insert(0, "/kit"); import wasm_start; wasm_start.run(${library ? "True" : "False"})`);
} catch (error) {
  why = String(error.message ?? error).trim().split("\n").at(-1);
}
post({ ended: why });
for (;;) hear(); // no promise of this thread is ever kept from here on: the parent ends it
