// The web worker in which a lab's Python runs. Messages: {boot}, {run, id, source}, {read, path}; answers carry the same n.
import { addModules, quiet, serve, startPython } from "./boot.js";
import { clock } from "./clock.mjs";

const here = new URL("./", import.meta.url).href;
let python, shell;

async function boot({ manifest, files }) {
  const say = (text) => postMessage({ status: text });
  python = await startPython(manifest, say);
  const fs = python.FS;
  const assets = `${python.runPython("import miniquant; miniquant.__path__[0]")}/assets`;
  for (const [path, size] of Object.entries(manifest.assets)) {
    const slash = path.lastIndexOf("/");
    const folder = slash < 0 ? assets : `${assets}/${path.slice(0, slash)}`;
    fs.mkdirTree(folder);
    if (!fs.analyzePath(`${assets}/${path}`).exists) {
      fs.createLazyFile(folder, path.slice(slash + 1), `${here}assets/${path}`, true, false);
    }
  }
  fs.mkdirTree("/lab");
  await addModules(python, ["shell.py", "stand_ins.py", "statements.py"]);
  for (const [name, text] of Object.entries(files)) fs.writeFile(`/lab/${name}`, text);
  for (const name of manifest.labs.map((lab) => `${lab}.ipynb`)) { // the other labs as they are given, beside those that were worked on
    if (!(name in files)) fs.createLazyFile("/lab", name, `${here}labs/${name}`, true, false);
  }
  const { alarm, arm } = clock();
  python.setInterruptBuffer(alarm);
  python.runPython("import os; os.chdir('/lab')");
  const { Shell } = python.pyimport("shell");
  const emit = (text) => postMessage({ output: JSON.parse(text) });
  const load = async (list) => {
    const names = JSON.parse(list);
    say(`${names.at(-1)} is loading`);
    await python.loadPackage(names.filter((name) => !(name in manifest.wheels)), quiet);
    for (const name of names.filter((name) => name in manifest.wheels)) {
      const answer = await fetch(`${here}${manifest.wheels[name]}`);
      python.unpackArchive(await answer.arrayBuffer(), "wheel");
    }
  };
  shell = Shell(emit, arm, load);
  setTimeout(() => python.runPython("import miniquant.lab")); // while the reader reads
}

const does = {
  boot,
  async run({ id, source, quiet, page }) {
    if (quiet && python.pyimport("shell").only_shows(source)) return { state: "skipped", needs: "", files: [] };
    const done = JSON.parse(await shell.run(id, source, JSON.stringify(page)));
    const record = "/lab/.miniquant-progress.json";
    done.record = python.FS.analyzePath(record).exists ? python.FS.readFile(record, { encoding: "utf8" }) : "";
    return done;
  },
  read: ({ path }) => python.FS.readFile(`/lab/${path}`),
};

serve(does);
