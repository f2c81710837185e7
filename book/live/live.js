// Try it here: turns the cells of a lab's page into editors, runs them with Python in a worker, keeps what is typed.
// Nothing is loaded before the button is pressed. `tools/live.py` gives each cell of the page its id.
const here = new URL("./", import.meta.url);
const lab = location.pathname.split("/").pop().replace(/\.html$/, "");
const labs = document.documentElement.lang === "es" ? "labs/es" : "labs"; // the Spanish ones have the same ids of cells
const article = document.querySelector("article");
const CELL_SECONDS = 13; // Python ends a cell by itself after 10; this is for one that does not let it
const CHECK_SECONDS = 65; // a check has a limit of 10 s for each call, and may look for a cause

const button = (text, does, kind = "") => {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: text, className: kind });
  made.addEventListener("click", does);
  return made;
};

const bar = document.querySelector(".mq-live-bar"); // the page has it from the start, so that nothing moves
const start = bar.querySelector("button");
const status = document.createElement("p");
status.setAttribute("role", "status");
start.addEventListener("click", () => begin());
start.disabled = false;

async function begin() {
  start.disabled = true;
  start.remove();
  bar.classList.add("started");
  bar.prepend(status);
  status.textContent = "The lab is loading";
  try {
    const [manifest, original, modules] = await Promise.all([
      fetch(new URL("live.json", here)).then((answer) => answer.json()),
      fetch(new URL(`${labs}/${lab}.ipynb`, here)).then((answer) => answer.json()),
      Promise.all(["editor", "python", "saved", "outputs"].map((name) => import(`./${name}.js`))),
    ]);
    const files = await otherLabs(manifest, modules[2]);
    await new Lab(manifest, original, files, ...modules).begin();
  } catch (error) {
    status.textContent = `This did not work: ${error.message}. Load the page again to try once more.`;
    throw error;
  }
}

// What was typed in other labs, as the notebooks from which this one takes functions.
async function otherLabs(manifest, saved) {
  const files = {};
  for (const name of manifest.labs) {
    const cells = saved.load(name);
    if (name === lab || !Object.keys(cells).length) continue;
    const original = await fetch(new URL(`labs/${name}.ipynb`, here)).then((answer) => answer.json());
    for (const cell of original.cells) if (cell.id in cells) cell.source = cells[cell.id];
    files[`${name}.ipynb`] = JSON.stringify(original);
  }
  return files;
}

class Lab {
  constructor(manifest, original, files, { makeEditor }, { Python }, saved, outputs) {
    Object.assign(this, { manifest, original, makeEditor, saved, show: outputs.show, kept: outputs.kept });
    this.cells = original.cells.filter((cell) => cell.cell_type === "code").map((cell, at) => this.cell(cell, at + 1));
    this.byId = new Map(this.cells.map((cell) => [cell.id, cell]));
    this.order = []; // cells in the order in which they were run since Python was started
    this.work = Promise.resolve();
    this.python = new Python(
      () => ({
        manifest,
        files: { ...files, ".miniquant-progress.json": saved.record.get() || "{}" },
      }),
      { status: (text) => this.say(text), output: (output) => this.output(output) },
    );
  }

  say(text) {
    status.textContent = text;
  }

  cell(cell, number) {
    const given = this.saved.textOf(cell.source);
    const place = document.querySelector(`[data-cell="${CSS.escape(cell.id)}"]`);
    return { id: cell.id, number, given, about: cell.metadata?.miniquant ?? {}, place };
  }

  async begin() {
    const started = this.python.start();
    const typed = this.saved.load(lab);
    article.classList.add("mq-live");
    for (const cell of this.cells) this.edit(cell, typed[cell.id] ?? cell.given);
    const upload = Object.assign(document.createElement("input"), { type: "file", accept: ".ipynb", hidden: true });
    upload.setAttribute("aria-label", "A notebook file of this lab");
    upload.addEventListener("change", () => upload.files[0]?.text().then((text) => this.import(text)).finally(() => (upload.value = "")));
    bar.append(
      button("Export .ipynb", () => this.export()),
      button("Import .ipynb", () => upload.click()),
      button("Stop and start again", () => this.restart("Python was started again")),
      button("Reset the lab", () => confirm("Put every cell back as it was given?") && this.cells.forEach((cell) => this.reset(cell))),
      upload,
    );
    await started;
    this.say("Python is ready. Shift+Enter runs a cell; Tab indents, and Escape, then Tab, leaves the editor.");
    document.documentElement.dataset.live = "ready";
  }

  edit(cell, text) {
    const { place, number } = cell;
    place.id ||= `mq-cell-${number}`;
    const old = place.querySelector(".cell_input");
    const holder = document.createElement("div");
    old.hidden = true;
    old.after(holder);
    cell.editor = this.makeEditor({
      parent: holder,
      text,
      label: `Code of cell ${number}`,
      changed: () => this.save(),
      run: () => this.run(cell),
    });
    const tools = document.createElement("div");
    tools.className = "mq-live-tools";
    const run = button("Run", () => this.run(cell));
    run.setAttribute("aria-label", `Run cell ${number}`);
    tools.append(run);
    if (cell.about.part === "stub") {
      const reset = button("Reset", () => this.reset(cell));
      reset.setAttribute("aria-label", `Reset ${cell.about.exercise}`);
      tools.append(reset);
    }
    cell.note = document.createElement("span");
    tools.append(cell.note, Object.assign(document.createElement("span"), { className: "mq-live-number", textContent: `cell ${number}` }));
    holder.after(tools);
    cell.stored = place.querySelector(".cell_output");
    cell.fresh = document.createElement("div");
    cell.fresh.className = "cell_output";
    (cell.stored ?? tools).after(cell.fresh);
  }

  // ---- what is kept
  save() {
    const typed = this.cells.filter((cell) => cell.editor && cell.editor.text !== cell.given);
    const kept = this.saved.save(lab, Object.fromEntries(typed.map((cell) => [cell.id, cell.editor.text])));
    if (!kept) this.say("This browser keeps nothing: export your notebook before you leave the page.");
  }

  keepDone() {
    const stubs = this.cells.filter((cell) => cell.about.part === "stub");
    this.saved.keepDone(lab, stubs.map((cell) => cell.about.exercise));
  }

  reset(cell) {
    if (cell.editor.text !== cell.given) cell.editor.text = cell.given;
    cell.ran = undefined;
    this.clear(cell);
    if (cell.stored) cell.stored.hidden = false;
  }

  export() {
    const sources = new Map(this.cells.map((cell) => [cell.id, cell.editor.text]));
    const outputs = new Map(this.cells.filter((cell) => cell.outputs).map((cell) => [cell.id, cell.outputs]));
    const text = `${JSON.stringify(this.saved.notebook(this.original, sources, outputs), null, 1)}\n`;
    save(new Blob([text], { type: "application/x-ipynb+json" }), `${lab}.ipynb`);
    this.say(`${lab}.ipynb was saved; put it into the folder notebooks/ of the course to go on in Jupyter.`);
  }

  import(text) {
    try {
      const sources = this.saved.sourcesOf(text, this.original);
      for (const [id, source] of sources) if (this.byId.get(id).editor.text !== source) this.byId.get(id).editor.text = source;
      this.say(`${sources.size} cells were taken from the file.`);
    } catch (error) {
      this.say(error.message);
    }
  }

  // ---- running
  run(cell) {
    this.work = this.work.then(() => this.runWithAbove(cell)).catch((error) => this.say(error.message));
    return this.work;
  }

  async runWithAbove(cell) {
    await this.python.ready;
    for (const above of this.cells.slice(0, this.cells.indexOf(cell))) {
      if (above.ran === above.editor.text) continue;
      const state = await this.runOne(above, true);
      if (state === "error" && above.editor.text !== above.given) {
        this.say(`Cell ${above.number}, which you changed, ends with an error. Put that right first.`);
        return above.place.scrollIntoView({ block: "center" });
      }
      if (state === "stopped") return this.say(`Cell ${above.number} was stopped, so cell ${cell.number} was not run.`);
    }
    const state = await this.runOne(cell, false);
    this.say(state === "stopped" ? "A cell was stopped." : "Python is ready.");
    cell.place.dataset.runs = Number(cell.place.dataset.runs ?? 0) + 1;
  }

  async runOne(cell, quiet, replay = false) {
    const source = cell.editor.text;
    const page = this.cells.map(({ id, given, editor }) => ({ id, source: editor.text, edited: editor.text !== given }));
    this.running = { cell, outputs: [], cleared: false, replay };
    cell.place.classList.add("running");
    cell.note.textContent = "running";
    this.say("Python is running");
    const begun = performance.now();
    let done;
    try {
      done = await this.python.within(source.includes("check(") ? CHECK_SECONDS : CELL_SECONDS, "run", { id: cell.id, source, quiet, page });
    } catch (error) {
      return await this.stopped(cell, error);
    } finally {
      cell.place.classList.remove("running");
      cell.note.textContent = "";
    }
    cell.ran = source;
    this.order = [...this.order.filter((other) => other !== cell), cell];
    if (done.state === "skipped" || replay) return done.state;
    this.saved.record.set(done.record);
    this.keepDone();
    this.freshen();
    cell.outputs = this.running.outputs;
    cell.seconds = (performance.now() - begun) / 1000;
    if (done.needs || done.first) this.explain(cell, done);
    for (const file of done.files) this.offer(cell, file);
    cell.place.dataset.state = done.state;
    return done.state;
  }

  output(output) {
    if (!this.running || this.running.replay) return;
    this.freshen();
    this.kept(this.running.outputs, output);
    this.show(this.running.cell.fresh, output);
  }

  // The old outputs stay until there is something new, so that the page does not jump.
  freshen() {
    const { cell } = this.running;
    if (this.running.cleared) return;
    this.running.cleared = true;
    this.clear(cell);
    if (cell.stored) cell.stored.hidden = true;
  }

  clear(cell) {
    cell.fresh.replaceChildren();
    cell.outputs = undefined;
  }

  // Why a cell was left out, or which cell comes before the one that failed.
  explain(cell, { needs, first, ...own }) {
    const note = document.createElement("p");
    note.className = "mq-live-note";
    const lacks = (first?.needs || needs) === "time" ? "takes longer than a cell of the page may run" : `needs ${(first ?? own).title}, which is not to be had in a page`;
    if (first) {
      const other = this.byId.get(first.cell);
      const name = Object.assign(document.createElement("code"), { textContent: first.name });
      const link = Object.assign(document.createElement("a"), { href: `#${other.place.id}`, textContent: `cell ${other.number}` });
      const then = {
        "left out": `, which was left out: it ${lacks}.`,
        error: ", which ended with an error. Put that right first.",
        "not run": ". Run that cell first.",
      };
      note.append(needs ? "This cell uses " : "", name, needs ? " of " : " is made in ", link, then[first.state]);
      note.dataset.first = first.cell;
    } else {
      note.append(`This cell ${lacks}.`);
    }
    cell.fresh.append(note);
    if (!needs) return;
    note.dataset.needs = needs;
    if (!cell.stored) return;
    note.append(" Below is the output that is stored in the lab.");
    cell.fresh.after(cell.stored);
    cell.stored.hidden = false;
  }

  async stopped(cell, error) {
    const text = error.message === "no end" ? "Stopped: this cell has no end. Python was started again; nothing else was lost." : `Stopped: ${error.message}`;
    this.freshen();
    this.show(cell.fresh, { output_type: "error", traceback: [text] });
    cell.place.dataset.state = "stopped";
    await this.again(cell);
    return "stopped";
  }

  restart(text) {
    this.python.end(new Error("Python was stopped."));
    this.work = this.work.then(() => this.again()).then(() => this.say(text));
  }

  // A new worker, in which the cells that had been run are run again without showing anything.
  async again(without) {
    this.python.end(new Error("Python was stopped."));
    const order = this.order.filter((cell) => cell !== without);
    this.order = [];
    for (const cell of this.cells) cell.ran = undefined;
    await this.python.start();
    for (const cell of order) if (!(cell.ran === cell.editor.text)) await this.runOne(cell, true, true);
    this.say("Python is ready.");
  }

  // ---- llama.cpp
  offer(cell, file) {
    const box = document.createElement("div");
    box.className = "mq-live-llama";
    const name = file.split("/").pop();
    const label = Object.assign(document.createElement("label"), { textContent: "A text for the model to go on with " });
    const prompt = Object.assign(document.createElement("input"), { value: "An exception is raised when" });
    const said = document.createElement("pre");
    said.setAttribute("role", "status");
    label.append(prompt);
    const bytes = () => this.python.ask("read", { path: file });
    const load = button(`Load ${name} in llama.cpp`, async () => {
      load.disabled = true;
      said.textContent = "llama.cpp is loading";
      try {
        const { complete } = await import("./llama.js");
        const { error, text, ids } = await complete(await bytes(), prompt.value, 11);
        said.textContent = error ? `llama.cpp says:\n${error}` : `${prompt.value}${text}\n\n${ids.length} tokens: ${ids.join(" ")}`;
        box.dataset.state = error ? "refused" : "spoke";
      } catch (error) {
        said.textContent = error.message;
      } finally {
        load.disabled = false;
      }
    });
    const keep = button(`Save ${name}`, async () => save(new Blob([await bytes()]), name));
    box.append(label, load, keep, said);
    cell.fresh.append(box);
  }
}

// Gives the reader a file.
function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
