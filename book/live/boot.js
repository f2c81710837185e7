// What the workers of the site have in common: Python with numpy and the library, and a queue of messages.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = new URL("./", import.meta.url).href;
export const quiet = { messageCallback: () => {} };

// Pyodide with numpy and the miniquant wheel. `say` gets a line on what is loading.
export async function startPython(manifest, say) {
  say("Python is loading");
  const wheel = fetch(`${here}${manifest.wheel}`).then((answer) => answer.arrayBuffer()); // beside Pyodide, not after it
  const python = await loadPyodide({
    indexURL: `${here}pyodide/`,
    packageBaseUrl: `${here}pyodide/`,
    packages: ["numpy"],
    stdout: () => {},
    stderr: () => {},
  });
  say("The library is loading");
  python.unpackArchive(await wheel, "wheel");
  return python;
}

// Puts files of the site where Python can import them.
export async function addModules(python, names) {
  python.FS.mkdirTree("/page");
  const texts = await Promise.all(names.map((name) => fetch(`${here}${name}`).then((answer) => answer.text())));
  for (const [i, name] of names.entries()) python.FS.writeFile(`/page/${name}`, texts[i]);
  python.runPython("import sys; sys.path.insert(0, '/page')");
}

// Answers messages {n, do, …} one after another, each with {n, result} or {n, error}.
export function serve(does) {
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
}
