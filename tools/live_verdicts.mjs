// The verdicts of the engine in Pyodide, under Node, with the files of a live site and the page's own shell.
//     node tools/live_verdicts.mjs _build/html/_live > page.jsonl
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { clock } from "../book/live/clock.mjs";

const live = path.resolve(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(path.join(live, "pyodide", "pyodide.mjs")));
const folder = path.join(live, "pyodide") + path.sep;
const quiet = () => {};
const python = await loadPyodide({ indexURL: folder, packageBaseUrl: folder, stdout: quiet, stderr: quiet });
await python.loadPackage(["numpy"], { messageCallback: quiet });
const manifest = JSON.parse(fs.readFileSync(path.join(live, "live.json"), "utf8"));
for (const wheel of [manifest.wheel, ...Object.values(manifest.wheels)]) {
  python.unpackArchive(new Uint8Array(fs.readFileSync(path.join(live, wheel))), "wheel");
}
python.FS.mkdirTree("/page");
for (const file of [path.join(live, "shell.py"), path.join(live, "stand_ins.py"), path.join(import.meta.dirname, "live_verdicts.py")]) {
  python.FS.writeFile(`/page/${path.basename(file)}`, fs.readFileSync(file));
}
const { alarm, arm } = clock();
python.setInterruptBuffer(alarm);
python.runPython("import sys; sys.path.insert(0, '/page')");
python.pyimport("shell").Shell(quiet, arm, quiet);
const names = python.toPy(process.argv.slice(3));
const dumps = python.pyimport("json").dumps;
for (const entry of python.pyimport("live_verdicts").verdicts(names)) fs.writeSync(1, `${dumps(entry)}\n`);
