// Every cell of every lab, as students get it, in the page's Python under Node: which end with an error, or take too long?
//     node tools/live_labs.mjs _build/html/_live [00-five-minutes ...]
import fs from "node:fs";
import path from "node:path";
import { silent, startPython, startShell, unpack } from "./live_node.mjs";

const live = path.resolve(process.argv[2]);
const { labs } = JSON.parse(fs.readFileSync(path.join(live, "live.json"), "utf8"));
const chosen = process.argv.length > 3 ? process.argv.slice(3) : labs;
const textOf = (source) => (Array.isArray(source) ? source.join("") : source);
const total = { cells: 0, "left out": 0, error: 0 };

for (const lab of chosen) {
  const { python, manifest } = await startPython(live);
  const assets = `${python.runPython("import miniquant; miniquant.__path__[0]")}/assets`;
  for (const file of Object.keys(manifest.assets)) {
    python.FS.mkdirTree(path.posix.dirname(`${assets}/${file}`));
    python.FS.writeFile(`${assets}/${file}`, fs.readFileSync(path.join(live, "assets", file)));
  }
  python.FS.mkdirTree("/lab");
  for (const name of labs) python.FS.writeFile(`/lab/${name}.ipynb`, fs.readFileSync(path.join(live, "labs", `${name}.ipynb`)));
  python.runPython("import os; os.chdir('/lab')");
  const load = async (list) => {
    const [own, others] = [[], []];
    for (const name of JSON.parse(list)) (name in manifest.wheels ? own : others).push(name);
    await python.loadPackage(others, silent);
    for (const name of own) unpack(python, path.join(live, manifest.wheels[name]));
  };
  const shell = startShell(python, () => {}, load);
  const module = python.pyimport("shell");
  const limits = [module.SECONDS, module.CHECK_SECONDS];
  module.SECONDS = module.CHECK_SECONDS = 1000; // a busy machine is no fault of a cell: the time of the processor counts
  const cells = JSON.parse(fs.readFileSync(path.join(live, "labs", `${lab}.ipynb`), "utf8")).cells.filter((cell) => cell.cell_type === "code");
  const count = { cells: cells.length, "left out": 0, error: 0 };
  const needs = {};
  const longest = { seconds: 0, id: "" };
  const page = JSON.stringify(cells.map(({ id, source }) => ({ id, source: textOf(source), edited: false })));
  for (const { id, source } of cells) {
    const before = process.cpuUsage();
    const { state, needs: library, why } = JSON.parse(await shell.run(id, textOf(source), page));
    const { user, system } = process.cpuUsage(before);
    const seconds = (user + system) / 1e6;
    if (seconds > longest.seconds) Object.assign(longest, { seconds, id });
    if (state in count) count[state] += 1;
    if (library) needs[library] = (needs[library] ?? 0) + 1;
    if (seconds > limits[Number(textOf(source).includes("check("))]) console.log(`${lab} ${id}: takes ${seconds.toFixed(1)} s`);
    if (state === "error" || (why && !why.startsWith("ModuleNotFoundError"))) console.log(`${lab} ${id}: ${state}: ${why}`);
  }
  for (const [key, value] of Object.entries(count)) total[key] += value;
  console.log(`${lab}: ${count.cells} cells, ${count["left out"]} left out ${JSON.stringify(needs)}, ${count.error} errors; the longest took ${longest.seconds.toFixed(1)} s (${longest.id})`);
}
console.log(`${chosen.length} labs: ${total.cells} cells, ${total["left out"]} left out, ${total.error} errors`);
process.exitCode = total.error ? 1 : 0;
