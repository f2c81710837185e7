// Compiles, in the archives of a live site, the modules that a lab starts with: Python then starts in half the time.
//     node tools/live_compile.mjs _build/html/_live
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { startPython } from "./live_node.mjs";

const live = path.resolve(process.argv[2]);
const folder = path.join(live, "pyodide") + path.sep;
const { python, manifest } = await startPython(live, ["matplotlib"], ["live_compile.py"]); // and numpy with it
python.pyimport("shell");
const tool = python.pyimport("live_compile");
tool.run(tool.FIRST);
tool.run(tool.FIGURE);

const files = tool.used();
const place = (name) => python.runPython(`import ${name}; ${name}.__path__[0].rpartition("/")[0]`);
const lock = JSON.parse(fs.readFileSync(`${folder}pyodide-lock.json`, "utf8"));
function replace(file, inside, withSource) {
  const archive = python.toPy(new Uint8Array(fs.readFileSync(file)));
  const made = tool.compiled(archive.tobytes(), inside, files, withSource).toJs();
  fs.writeFileSync(file, made);
  return createHash("sha256").update(made).digest("hex");
}
replace(`${folder}python_stdlib.zip`, python.runPython("next(p for p in sys.path if p.endswith('.zip'))"), false);
replace(path.join(live, manifest.wheel), place("miniquant"), true);
for (const about of Object.values(lock.packages)) {
  const file = `${folder}${about.file_name}`;
  if (fs.existsSync(file)) about.sha256 = replace(file, place("numpy"), false);
}
fs.writeFileSync(`${folder}pyodide-lock.json`, JSON.stringify(lock));
