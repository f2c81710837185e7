// The inspector: any model file, byte by byte. Nothing is loaded before a file is chosen or a link names a sample.
const here = new URL("./", import.meta.url);
const place = document.getElementById("mq-inspector");
const SMALL = 2 ** 26; // bytes; a file up to this size can be saved with its edits
const PIECE = 2 ** 24; // bytes compared at once
const LINE = 150; // letters of a value in the explanation; a block's numbers stand below it
const LONGEST = 2 ** 31; // bytes that are compared before the page asks whether to go on

for (const name of ["live.css", "inspect.css"]) {
  document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL(name, here).href }));
}
const loaded = Promise.all(["inspect_parts.js", "inspect_bytes.js"].map((name) => import(`./${name}`)));
const samples = fetch(new URL("samples/samples.json", here)).then((answer) => answer.json());

class Page {
  constructor(parts, { Bytes }, known) {
    Object.assign(this, { parts, known, edits: new Map(), runs: [], at: 0, sample: "" });
    const { element } = parts;
    const button = (text, does, properties = {}) => {
      const made = element("button", { type: "button", textContent: text, ...properties });
      made.addEventListener("click", does);
      return made;
    };
    this.input = element("input", { type: "file", multiple: true, hidden: true, ariaLabel: "A model file" });
    this.second = element("input", { type: "file", hidden: true, ariaLabel: "A file to compare with" });
    this.select = element("select", {}, ...known.map((one) => element("option", { value: one.file, textContent: one.title })));
    this.status = element("p", { role: "status", className: "mq-insp-status" });
    this.status.textContent = "Choose a file, drop one here, or open a sample. The file stays on this computer.";
    this.input.addEventListener("change", () => this.given([...this.input.files]).finally(() => (this.input.value = "")));
    this.second.addEventListener("change", () => this.compare(this.second.files[0]).finally(() => (this.second.value = "")));
    const open = button("Choose a file", () => this.input.click(), { className: "first" });
    this.drop = element(
      "div",
      { className: "mq-live-bar mq-insp-drop" },
      open,
      element("label", {}, "Sample ", this.select),
      button("Open the sample", () => this.openSample(this.select.value)),
      this.input,
      this.second,
      this.status,
    );
    this.problem = element("div", { className: "mq-insp-problem", role: "alert", hidden: true });
    this.about = element("p", { className: "mq-insp-about" });
    this.title = element("h2", { tabIndex: -1 });
    const strip = element("div");
    this.strip = new parts.Strip(strip, (at) => this.go(at));
    const view = element("div", { className: "mq-insp-view" });
    this.bytes = new Bytes(view, {
      ask: (start, length) => this.window(start, length),
      choose: (at, focus) => this.go(at, focus),
      type: (at, byte) => this.type(at, byte),
    });
    this.said = element("div", { className: "mq-insp-line", role: "status" });
    this.key = element("p", { className: "mq-insp-key" });
    this.where = element("input", { type: "text", inputMode: "numeric", size: 12, autocomplete: "off" });
    const seek = element("form", { className: "mq-insp-seek" }, element("label", {}, "Byte ", this.where), element("button", { textContent: "Go" }));
    seek.addEventListener("submit", (event) => {
      event.preventDefault();
      this.seek(this.where.value.trim());
    });
    this.copy = button("Copy the link", () => this.copyLink());
    seek.append(this.copy);
    this.edited = element("div", { className: "mq-insp-edits" });
    this.compared = element("div", { className: "mq-insp-compared" });
    this.decoded = element("div", { className: "mq-insp-decoded" });
    this.tables = element("div");
    const comparing = element("div", { className: "mq-insp-tools" }, button("Compare with a file", () => this.second.click()));
    comparing.append(button("Compare with the sample", () => this.openSample(this.select.value, 0, "other")));
    this.body = element(
      "div",
      { className: "mq-insp-body", hidden: true },
      this.title,
      this.about,
      this.problem,
      element("h3", { textContent: "The whole file" }),
      strip,
      element("h3", { textContent: "Bytes" }),
      seek,
      this.key,
      element("div", { className: "mq-insp-two" }, element("div", {}, view, this.said), this.decoded),
      this.edited,
      element("h3", { textContent: "Tables" }),
      this.tables,
      element("h3", { textContent: "Two files" }),
      comparing,
      this.compared,
    );
    place.replaceChildren(this.drop, this.body);
    place.classList.add("mq-live", "mq-insp");
    this.button = button;
    for (const name of ["dragover", "drop"]) {
      document.addEventListener(name, (event) => {
        event.preventDefault();
        if (name === "drop" && event.dataTransfer.files.length) this.given([...event.dataTransfer.files]);
      });
    }
    addEventListener("hashchange", () => this.fromLink());
    place.dataset.state = "ready";
    this.fromLink();
  }

  say(text) {
    this.status.textContent = text;
  }

  // ---- files
  start() {
    this.started ??= (async () => {
      const [{ Python }, manifest] = await Promise.all([
        import("./python.js"),
        fetch(new URL("live.json", here)).then((answer) => answer.json()),
      ]);
      this.python = new Python(() => ({ manifest }), { status: (text) => this.say(text), script: "./inspect_worker.js" });
      await this.python.start();
    })();
    return this.started;
  }

  async given(list) {
    const file = list.find((one) => !one.name.endsWith(".json")) ?? list[0];
    if (!file) return;
    const beside = Object.fromEntries(list.filter((one) => one !== file).map((one) => [one.name, one]));
    await this.open(file, beside, "", 0);
  }

  async openSample(name, at = 0, which = "main") {
    const sample = this.known.find((one) => one.file === name);
    if (!sample) return this.say(`There is no sample ${name}.`);
    if (which === "main") this.select.value = name;
    this.say(`${name} is loading`);
    const get = async (url) => (await fetch(new URL(url, here))).blob();
    const bytes = await get(sample.url);
    const names = Object.keys(sample.beside);
    const others = await Promise.all(names.map((one) => get(sample.beside[one])));
    const file = new File([bytes], name);
    if (which === "other") return this.compare(file, Object.fromEntries(names.map((one, i) => [one, others[i]])));
    return this.open(file, Object.fromEntries(names.map((one, i) => [one, others[i]])), name, at);
  }

  async open(file, beside, sample, at) {
    this.edits.clear();
    this.closeOther();
    Object.assign(this, { file, beside, sample });
    await this.read(at, true);
  }

  // Reads the file, with what was typed over, and shows everything anew.
  async read(at, focus = false) {
    place.dataset.state = "reading";
    const begun = performance.now();
    try {
      await this.start();
      this.say(`${this.file.name} is read`);
      const read = performance.now();
      this.found = await this.python.ask("open", { which: "main", file: this.file, beside: this.beside, edits: Object.fromEntries(this.edits) });
      place.dataset.seconds = ((performance.now() - read) / 1000).toFixed(2);
      this.applied = new Map(this.edits);
      await this.show(at);
      this.say(`${this.file.name} was read in ${place.dataset.seconds} s, ${((performance.now() - begun) / 1000).toFixed(1)} s with Python's start.`);
      if (focus) this.title.focus({ preventScroll: true });
    } catch (error) {
      this.say(`This did not work: ${error.message.trim().split("\n").at(-1)}`);
      place.dataset.state = "failed";
      return;
    }
    place.dataset.state = "open";
  }

  async show(at) {
    const { element, number, Table } = this.parts;
    const { found } = this;
    this.body.hidden = false;
    this.title.textContent = this.file.name;
    const facts = [found.format + (found.version === null ? "" : ` version ${found.version}`)];
    if (found.architecture !== "unknown") facts.push(found.architecture);
    facts.push(`${number(found.n_bytes)} bytes`, `${number(found.n_fields)} named fields`);
    if (!found.error && !found.refused) facts.push(`${found.tensors.length} tensors`);
    if (found.data_start) facts.push(`data from byte ${found.data_start}`);
    if (found.alignment > 1) facts.push(`alignment ${found.alignment}`);
    this.about.textContent = facts.join(" · ");
    this.problem.hidden = !found.error && !found.refused;
    this.problem.replaceChildren();
    if (found.error) {
      const { message, offset } = found.error;
      this.problem.append(element("p", {}, element("strong", { textContent: "A reader stops here: " }), element("span", { textContent: message })));
      if (offset !== null && offset < found.n_bytes) this.problem.append(this.button(`Go to byte ${offset}`, () => this.go(offset, true)));
    }
    if (found.refused) this.problem.append(element("p", { textContent: `The library does not open this file: ${found.refused}` }));
    const choose = (to) => this.go(to);
    this.tables.replaceChildren();
    this.listed = {};
    const add = (name, table) => {
      this.listed[name] = table;
      this.tables.append(table.place);
    };
    const fieldCells = (row) => [[row.name, row.places[0]], row.value, row.what];
    if (found.header.length) add("header", new Table("Header", ["field", "value", "what it is"], found.header, fieldCells, choose));
    if (found.named.length) add("named", new Table("Fields that can be named", ["field", "value", "what it is"], found.named, fieldCells, choose));
    if (found.imports.length) {
      const cells = (row) => [[row.name, row.places[0]], row.pickle, row.listed ? "a state dict needs it" : "not on the list of what a state dict needs"];
      add("imports", new Table("What loading would import", ["name", "pickle", "the allow-list"], found.imports, cells, choose));
    }
    if (found.metadata.length) {
      const cells = (row) => [[row.key, row.places[0]], row.type, row.value];
      add("metadata", new Table("Metadata", ["key", "type", "value"], found.metadata, cells, choose));
    }
    if (found.tensors.length) {
      const cells = (row) => [[row.name, row.places[0]], row.type, row.shape.join(" × ") || "scalar", [String(row.start), row.n_bytes ? row.places.at(-1) : null], number(row.n_bytes)];
      add("tensors", new Table("Tensors", ["name", "type", "shape, out first", "first byte", "bytes"], found.tensors, cells, choose));
    }
    const used = Object.entries(found.categories).filter(([name]) => name !== "import" && name !== "call" && name !== "memo" ? true : found.format === "pickle");
    this.key.replaceChildren(
      ...used.map(([, [letter, what, colour]]) => {
        const one = element("span", { textContent: `${letter} ${what}` });
        one.style.setProperty("--c", colour);
        return one;
      }),
    );
    this.strip.open(found);
    this.bytes.open({ size: found.n_bytes, categories: found.categories, edits: this.edits });
    this.showEdits();
    this.copy.disabled = !this.sample;
    this.copy.title = this.sample ? "" : "A link can name a sample only: your own file stays on this computer.";
    if (found.n_bytes) await this.go(Math.min(at, found.n_bytes - 1), false, true);
  }

  // ---- one byte
  // Everything that is linked to a byte: its field, its row, its part of the strip, the block that it belongs to.
  async go(at, focus = false, again = false) {
    this.at = at;
    const asked = (this.asked = (this.asked ?? 0) + 1);
    const [found] = await Promise.all([this.python.ask("at", { offset: at }), this.bytes.show(at, { focus, again })]);
    if (asked !== this.asked) return;
    const { field, byte } = found;
    const typed = this.edits.get(at);
    const bits = byte.toString(2).padStart(8, "0");
    const lines = [
      `Byte ${at} (0x${at.toString(16)}) is ${byte.toString(16).padStart(2, "0")}: ${byte}, bits ${bits.slice(0, 4)} ${bits.slice(4)}.`,
      `${field.name}: ${field.value.length > LINE ? `${field.value.slice(0, LINE)} …` : field.value}`,
      field.end === field.start + 1 ? field.what : `${field.what}; bytes ${field.start} to ${field.end - 1}`,
    ];
    if (typed !== undefined && this.applied.get(at) !== typed) lines[0] += ` You typed ${typed.toString(16).padStart(2, "0")}; it is not read yet.`;
    const other = this.bytes.cell(at)?.dataset.other;
    if (other) lines[0] += ` The other file has ${other}.`;
    this.said.replaceChildren(...lines.map((text) => this.parts.element("p", { textContent: text })));
    this.decoded.replaceChildren(this.parts.element("h3", { textContent: "The block" }), ...this.parts.block(found.decoded, (to) => this.go(to)));
    this.bytes.markBlock(found.decoded);
    this.strip.mark(found.block, at);
    for (const [name, table] of Object.entries(this.listed)) table.mark(name === found.row?.table ? found.row.number : this.rowOf(name, at));
    this.where.value = String(at);
    if (this.sample) history.replaceState(null, "", `#sample=${encodeURIComponent(this.sample)}&at=${at}`);
    Object.assign(place.dataset, { at, field: field.name });
  }

  rowOf(name, at) {
    return this.found[name].findIndex((row) => row.places?.some(([start, end]) => start <= at && at < end));
  }

  async window(start, length) {
    const main = await this.python.ask("window", { which: "main", start, length });
    const other = this.other ? await this.python.ask("window", { which: "other", start, length }) : null;
    return { main, other };
  }

  seek(text) {
    const at = /^0x[0-9a-f]+$/i.test(text) ? parseInt(text, 16) : /^\d+$/.test(text) ? Number(text) : NaN;
    if (at < this.found.n_bytes) this.go(at, true);
    else this.say(`The file has the bytes 0 to ${this.found.n_bytes - 1}; ${text || "nothing"} is none of them.`);
  }

  // ---- edits
  type(at, byte) {
    if (byte === undefined) this.edits.delete(at);
    else this.edits.set(at, byte);
    this.showEdits();
    this.go(byte === undefined ? at : Math.min(at + 1, this.found.n_bytes - 1), true, true);
  }

  showEdits() {
    const { element } = this.parts;
    const rows = [...this.edits].sort(([a], [b]) => a - b);
    const open = rows.length !== this.applied.size || rows.some(([at, byte]) => this.applied.get(at) !== byte);
    this.edited.replaceChildren();
    if (!rows.length && !open) {
      this.edited.append(element("p", { className: "mq-insp-small", textContent: "To change a byte, choose it and type two hexadecimal digits. Your file stays as it is." }));
      return;
    }
    const list = rows.map(([at, byte]) => {
      const undo = this.button("Undo", () => this.type(at, undefined), { ariaLabel: `Undo byte ${at}` });
      return element("li", {}, `byte ${at} is now ${byte.toString(16).padStart(2, "0")} `, undo);
    });
    const tools = element("div", { className: "mq-insp-tools" });
    tools.append(this.button("Read again", () => this.read(this.at), { disabled: !open, className: "first" }));
    if (rows.length) tools.append(this.button("Undo all", () => (this.edits.clear(), this.read(this.at))));
    if (rows.length && this.found.n_bytes <= SMALL) tools.append(this.button("Save the changed file", () => this.save()));
    this.edited.append(element("p", { textContent: rows.length ? "Bytes that you changed:" : "Your changes are undone." }), element("ul", {}, ...list), tools);
  }

  async save() {
    const bytes = new Uint8Array(await this.file.arrayBuffer());
    for (const [at, byte] of this.edits) bytes[at] = byte;
    const link = this.parts.element("a", { href: URL.createObjectURL(new Blob([bytes])), download: `changed-${this.file.name}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  // ---- two files
  closeOther() {
    Object.assign(this, { other: null, runs: [], comparing: (this.comparing ?? 0) + 1 });
    this.compared.replaceChildren();
  }

  async compare(file, beside = {}) {
    if (!file) return;
    this.closeOther();
    const number = this.comparing;
    this.other = file;
    await this.python.ask("open", { which: "other", file, beside, edits: {} });
    const total = { count: 0, fields: new Map(), runs: [], end: 0 };
    const size = Math.min(this.file.size, file.size);
    await this.goOn(total, size, number);
    if (number === this.comparing) await this.go(total.runs[0]?.[0] ?? this.at, false, true);
    place.dataset.differs = total.count;
  }

  async goOn(total, size, number) {
    const stop = Math.min(size, total.end + LONGEST);
    while (total.end < stop) {
      const found = await this.python.ask("differences", { start: total.end, length: Math.min(PIECE, stop - total.end) });
      if (number !== this.comparing) return;
      total.end = found.end;
      total.count += found.count;
      for (const [name, n] of Object.entries(found.fields)) total.fields.set(name, (total.fields.get(name) ?? 0) + n);
      if (total.runs.length < 5000) total.runs.push(...found.runs);
      this.say(`${this.parts.number(total.end)} of ${this.parts.number(size)} bytes are compared`);
    }
    this.showDifferences(total, size, number);
  }

  showDifferences(total, size, number) {
    const { element, Table } = this.parts;
    const n = this.parts.number;
    this.runs = total.runs;
    const { size: ours } = this.file;
    const { size: theirs, name } = this.other;
    const lengths = ours === theirs ? "Both have the same length." : `${this.file.name} has ${n(ours)} bytes, ${name} ${n(theirs)}.`;
    const some = total.end < size ? ` in the first ${n(total.end)}` : "";
    const said = element("p", { textContent: `${n(total.count)} of ${n(total.end)} bytes differ from ${name}${some}, in ${total.fields.size} ${total.fields.size === 1 ? "field" : "fields"}. ${lengths}` });
    const tools = element("div", { className: "mq-insp-tools" });
    if (total.runs.length) {
      tools.append(
        this.button("Previous difference", () => this.jump(-1)),
        this.button("Next difference", () => this.jump(1)),
      );
    }
    if (total.end < size) tools.append(this.button("Compare more", () => this.goOn(total, size, number)));
    tools.append(this.button("End the comparison", () => (this.closeOther(), this.go(this.at, false, true))));
    const rows = [...total.fields].map(([field, count]) => ({ field, count }));
    const table = new Table("Differences by field", ["field", "bytes that differ"], rows, (row) => [row.field, n(row.count)], () => {});
    this.compared.replaceChildren(said, tools, ...(rows.length ? [table.place] : []));
    this.say(said.textContent);
  }

  jump(step) {
    const to = step > 0 ? this.runs.find(([start]) => start > this.at) : this.runs.findLast(([start]) => start < this.at);
    if (to) this.go(to[0]);
    else this.say(step > 0 ? "This is the last difference." : "This is the first difference.");
  }

  // ---- a link to a byte
  fromLink() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const name = asked.get("sample");
    const at = Math.max(0, Number(asked.get("at")) || 0);
    if (!name) return;
    if (name !== this.sample) this.openSample(name, at);
    else if (at !== this.at && at < this.found?.n_bytes) this.go(at);
  }

  async copyLink() {
    try {
      await navigator.clipboard.writeText(location.href);
      this.say("The link to this byte is copied.");
    } catch {
      this.say(`The link to this byte: ${location.href}`);
    }
  }
}

Promise.all([loaded, samples]).then(([[parts, bytes], known]) => new Page(parts, bytes, known)).catch((error) => {
  place.textContent = `The inspector could not be loaded: ${error.message}. Load the page again to try once more.`;
  throw error;
});
