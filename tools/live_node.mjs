// The page's Python under Node, from the files of a live site: for the tools that test it.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { clock } from "../book/live/clock.mjs";

const quiet = () => {};
export const silent = { messageCallback: quiet };

// Python with the packages, the library, the page's modules and those of ../tools that are named.
export async function startPython(live, packages = ["numpy"], tools = []) {
  const folder = path.join(live, "pyodide") + path.sep;
  const { loadPyodide } = await import(pathToFileURL(`${folder}pyodide.mjs`));
  const env = { HOME: "/home/pyodide", PYTHONHASHSEED: "0" };
  const python = await loadPyodide({ indexURL: folder, packageBaseUrl: folder, stdout: quiet, stderr: quiet, env });
  const manifest = JSON.parse(fs.readFileSync(path.join(live, "live.json"), "utf8"));
  await python.loadPackage(packages, silent);
  unpack(python, path.join(live, manifest.wheel));
  const own = ["shell.py", "stand_ins.py", "statements.py"].map((name) => path.join(live, name));
  const modules = [...own, ...tools.map((name) => path.join(import.meta.dirname, name))];
  python.FS.mkdirTree("/page");
  for (const file of modules) python.FS.writeFile(`/page/${path.basename(file)}`, fs.readFileSync(file));
  python.runPython("import sys; sys.path.insert(0, '/page')");
  return { python, manifest };
}

export const unpack = (python, file) => python.unpackArchive(new Uint8Array(fs.readFileSync(file)), "wheel");

// The page's shell in this Python. `emit` gets each output as JSON, `load` the names of packages that a cell needs.
export function startShell(python, emit = quiet, load = quiet) {
  const { alarm, arm } = clock();
  python.setInterruptBuffer(alarm);
  return python.pyimport("shell").Shell(emit, arm, load);
}
