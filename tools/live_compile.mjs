// Compiles, in the archives of a live site, the modules that a lab starts with: Python then starts in half the time.
//     node tools/live_compile.mjs _build/html/_live
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const live = path.resolve(process.argv[2]);
const folder = path.join(live, "pyodide") + path.sep;
const { loadPyodide } = await import(pathToFileURL(`${folder}pyodide.mjs`));
const quiet = () => {};
const python = await loadPyodide({ indexURL: folder, packageBaseUrl: folder, stdout: quiet, env: { HOME: "/home/pyodide", PYTHONHASHSEED: "0" } });
await python.loadPackage(["matplotlib"], { messageCallback: quiet }); // and numpy with it
const manifest = JSON.parse(fs.readFileSync(path.join(live, "live.json"), "utf8"));
python.unpackArchive(new Uint8Array(fs.readFileSync(path.join(live, manifest.wheel))), "wheel");
python.FS.mkdirTree("/page");
for (const file of [path.join(live, "shell.py"), path.join(live, "stand_ins.py"), path.join(import.meta.dirname, "live_compile.py")]) {
  python.FS.writeFile(`/page/${path.basename(file)}`, fs.readFileSync(file));
}
python.runPython("import sys; sys.path.insert(0, '/page'); import shell");
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
