// The verdicts of the engine in Pyodide, under Node, with the files of a live site and the page's own shell.
//     node tools/live_verdicts.mjs _build/html/_live > page.jsonl
import fs from "node:fs";
import path from "node:path";
import { startPython, startShell, unpack } from "./live_node.mjs";

const live = path.resolve(process.argv[2]);
const { python, manifest } = await startPython(live, ["numpy"], ["live_verdicts.py"]);
for (const wheel of Object.values(manifest.wheels)) unpack(python, path.join(live, wheel));
startShell(python);
const names = python.toPy(process.argv.slice(3));
const dumps = python.pyimport("json").dumps;
for (const entry of python.pyimport("live_verdicts").verdicts(names)) fs.writeSync(1, `${dumps(entry)}\n`);
