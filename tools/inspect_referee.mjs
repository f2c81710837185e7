// What two programs say of the files of a folder, one JSON line each: the library in Pyodide, and @huggingface/gguf.
//     node tools/inspect_referee.mjs _build/html/_live FOLDER MODULES
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [live, folder, modules] = process.argv.slice(2).map((name) => path.resolve(name));
const say = (entry) => fs.writeSync(1, `${JSON.stringify(entry, (_, value) => (typeof value === "bigint" ? String(value) : typeof value === "number" && !Number.isFinite(value) ? String(value) : value))}\n`);

// ---- the referee
const { gguf } = await import(pathToFileURL(path.join(modules, "@huggingface", "gguf", "dist", "index.mjs")));
for (const name of fs.readdirSync(folder).filter((name) => name.endsWith(".valid.gguf"))) {
  try {
    const { metadata, tensorInfos, tensorDataOffset } = await gguf(path.join(folder, name), { allowLocalFile: true });
    say({ by: "huggingface", name, metadata, tensorInfos, tensorDataOffset });
  } catch (error) {
    say({ by: "huggingface", name, error: String(error.message ?? error) });
  }
}

// ---- the library, as the page runs it
const { loadPyodide } = await import(pathToFileURL(path.join(live, "pyodide", "pyodide.mjs")));
const home = path.join(live, "pyodide") + path.sep;
const quiet = () => {};
const python = await loadPyodide({ indexURL: home, packageBaseUrl: home, stdout: quiet, stderr: quiet });
await python.loadPackage(["numpy"], { messageCallback: quiet });
const manifest = JSON.parse(fs.readFileSync(path.join(live, "live.json"), "utf8"));
python.unpackArchive(new Uint8Array(fs.readFileSync(path.join(live, manifest.wheel))), "wheel");
python.FS.mkdirTree("/page");
python.FS.writeFile("/page/inspector_files.py", fs.readFileSync(path.join(live, "inspector_files.py")));
python.runPython("import sys; sys.path.insert(0, '/page')");
const files = python.pyimport("inspector_files").Files();
for (const name of fs.readdirSync(folder).filter((name) => !name.endsWith(".json"))) {
  const bytes = fs.readFileSync(path.join(folder, name));
  const config = path.join(folder, `${name}.config.json`);
  const beside = fs.existsSync(config) ? { "config.json": new Uint8Array(fs.readFileSync(config)) } : {};
  const read = (start, end) => new Uint8Array(bytes.subarray(start, end));
  say({ by: "page", name, summary: JSON.parse(files.open("main", read, bytes.length, name, beside, "{}")) });
}
