// The inspector's web worker: the library reads a file by slices, as it is asked. Answers are those of inspector.py.
import { addModules, serve, startPython } from "./boot.js";

let files;

// A file for Python: its bytes from a start to an end. Nothing else of it is ever read.
const reads = (file) => {
  const reader = new FileReaderSync();
  return (start, end) => new Uint8Array(reader.readAsArrayBuffer(file.slice(start, end)));
};

serve({
  async boot({ manifest }) {
    const python = await startPython(manifest, (status) => postMessage({ status }));
    await addModules(python, ["inspector_files.py"]);
    files = python.pyimport("inspector_files").Files();
  },
  async open({ which, file, beside, edits }) {
    const others = {};
    for (const [name, blob] of Object.entries(beside)) others[name] = new Uint8Array(await blob.arrayBuffer());
    return JSON.parse(files.open(which, reads(file), file.size, file.name ?? "bytes", others, JSON.stringify(edits)));
  },
  window: ({ which, start, length }) => JSON.parse(files.window(which, start, length)),
  at: ({ offset }) => JSON.parse(files.at(offset)),
  differences: ({ start, length }) => JSON.parse(files.differences(start, length)),
});
