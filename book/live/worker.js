// The web worker in which a lab's Python runs. Messages: {boot}, {run, id, source}, {read, path}; answers carry the same n.
import { clock } from "./clock.mjs";
import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = new URL("./", import.meta.url).href;
let python, shell;

async function boot({ manifest, files }) {
  const say = (text) => postMessage({ status: text });
  say("Python is loading");
  python = await loadPyodide({
    indexURL: `${here}pyodide/`,
    packageBaseUrl: `${here}pyodide/`,
    stdout: () => {},
    stderr: () => {},
  });
  say("numpy is loading");
  const quiet = { messageCallback: () => {} };
  const wheel = fetch(`${here}${manifest.wheel}`).then((answer) => answer.arrayBuffer());
  await python.loadPackage(["numpy"], quiet);
  python.unpackArchive(await wheel, "wheel");
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
  for (const name of ["shell.py", "stand_ins.py"]) {
    fs.mkdirTree("/page");
    fs.writeFile(`/page/${name}`, await (await fetch(`${here}${name}`)).text());
  }
  for (const [name, text] of Object.entries(files)) fs.writeFile(`/lab/${name}`, text);
  const { alarm, arm } = clock();
  python.setInterruptBuffer(alarm);
  python.runPython("import sys, os; sys.path.insert(0, '/page'); os.chdir('/lab')");
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
}

const does = {
  boot,
  async run({ id, source, quiet, edited }) {
    if (quiet && python.pyimport("shell").only_shows(source)) return { state: "skipped", needs: "", files: [] };
    const done = JSON.parse(await shell.run(id, source, JSON.stringify(edited)));
    const record = "/lab/.miniquant-progress.json";
    done.record = python.FS.analyzePath(record).exists ? python.FS.readFile(record, { encoding: "utf8" }) : "";
    return done;
  },
  read: ({ path }) => python.FS.readFile(`/lab/${path}`),
};

let queue = Promise.resolve();
addEventListener("message", ({ data }) => {
  queue = queue.then(async () => {
    try {
      postMessage({ n: data.n, result: await does[data.do](data) });
    } catch (error) {
      postMessage({ n: data.n, error: String(error.message ?? error) });
    }
  });
});
