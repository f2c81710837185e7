// The byte view of the inspector: one window of the file at a time, one stop of the Tab key, the arrow keys go on.
import { element } from "./inspect_parts.js";

const KEYS = {
  ArrowLeft: () => -1,
  ArrowRight: () => 1,
  ArrowUp: (width) => -width,
  ArrowDown: (width) => width,
  PageUp: (width, rows) => -width * rows,
  PageDown: (width, rows) => width * rows,
};

export class Bytes {
  // ask(start, length) gives a window; choose(offset) and type(offset, byte) tell what was done.
  constructor(place, { ask, choose, type }) {
    Object.assign(this, { place, ask, choose, type, size: 0, start: 0, at: 0, digits: "", asked: 0, drawn: 0 });
    this.grid = element("div", { className: "mq-insp-grid", role: "grid", ariaLabel: "The bytes" });
    place.append(this.grid);
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("click", (event) => {
      const cell = event.target.closest("[data-at]");
      if (cell) this.choose(Number(cell.dataset.at), true);
    });
    new ResizeObserver(() => this.fit()).observe(place);
  }

  fit() {
    const width = this.place.clientWidth < 600 ? 8 : 16;
    if (width === this.width || !this.place.clientWidth) return;
    this.width = width;
    this.rows = width === 8 ? 12 : 16;
    if (this.size) this.show(this.at);
  }

  // A file, the colours and letters of its categories, the bytes that were typed over.
  open({ size, categories, edits }) {
    Object.assign(this, { size, categories, edits, drawn: 0 });
    this.digitsOf = Math.max(4, (size - 1).toString(16).length);
    this.fit();
  }

  // Marks the bytes of a block of numbers, or none.
  markBlock(found) {
    for (const cell of this.grid.querySelectorAll(".mq-insp-byte")) {
      const at = Number(cell.dataset.at);
      cell.classList.toggle("block", Boolean(found) && at >= found.start && at < found.end);
    }
  }

  // Brings a byte into the window and marks it; a window that holds it already stays where it is.
  async show(at, { focus = false, again = false } = {}) {
    this.at = at;
    this.digits = "";
    const { width } = this;
    const length = width * this.rows;
    const row = at - (at % width);
    const inside = this.drawn === width && row >= this.start && row < this.start + length;
    if (!inside) this.start = Math.max(0, Math.min(row - 2 * width, Math.ceil(this.size / width) * width - length));
    if (!inside || again) {
      const number = ++this.asked;
      const found = await this.ask(this.start, length);
      if (number !== this.asked) return;
      this.drawn = width;
      this.draw(found, width);
    }
    this.mark(focus);
  }

  draw({ main, other }, width) {
    const value = (hex, k) => hex.slice(2 * k, 2 * k + 2);
    const runOf = [];
    for (const run of main.runs) for (let at = run.start; at < run.end; at++) runOf[at - main.start] = run;
    const count = main.bytes.length / 2;
    const lines = [];
    for (let first = 0; first < count; first += width) {
      const line = element("div", { className: "mq-insp-row", role: "row" });
      line.append(element("span", { className: "mq-insp-at", role: "rowheader", textContent: (main.start + first).toString(16).padStart(this.digitsOf, "0") }));
      let letters = "";
      for (let k = first; k < Math.min(count, first + width); k++) {
        const at = main.start + k;
        const run = runOf[k];
        const typed = this.edits.get(at);
        const hex = typed === undefined ? value(main.bytes, k) : typed.toString(16).padStart(2, "0");
        const [letter, , colour] = this.categories[run.category];
        const cell = element("span", { className: "mq-insp-byte", role: "gridcell", tabIndex: -1, textContent: hex });
        Object.assign(cell.dataset, { at, field: run.field });
        cell.style.setProperty("--c", colour);
        if (at === run.start || k === first) cell.dataset.letter = letter;
        if (at === run.start && at > main.start) cell.classList.add("first");
        if (typed !== undefined) cell.classList.add("edited");
        if (other && value(other.bytes, k) !== value(main.bytes, k)) {
          cell.classList.add("differs");
          cell.dataset.other = value(other.bytes, k) || "--";
        }
        const code = parseInt(hex, 16);
        letters += code >= 32 && code < 127 ? String.fromCharCode(code) : "·";
        line.append(cell);
      }
      line.append(element("span", { className: "mq-insp-ascii", ariaHidden: "true", textContent: letters }));
      lines.push(line);
    }
    this.grid.replaceChildren(...lines);
  }

  cell(at) {
    return this.grid.querySelector(`[data-at="${at}"]`);
  }

  mark(focus) {
    const cell = this.cell(this.at);
    if (!cell) return;
    const had = focus || this.grid.contains(document.activeElement);
    for (const old of this.grid.querySelectorAll(".lit, .chosen")) {
      old.classList.remove("lit", "chosen");
      old.tabIndex = -1;
      old.removeAttribute("aria-selected");
    }
    for (const same of this.grid.querySelectorAll(`[data-field="${cell.dataset.field}"]`)) same.classList.add("lit");
    cell.classList.add("chosen");
    cell.tabIndex = 0;
    cell.setAttribute("aria-selected", "true");
    if (had) cell.focus({ preventScroll: true });
  }

  key(event) {
    const { key, ctrlKey, metaKey, altKey } = event;
    let to;
    if (key in KEYS) to = this.at + KEYS[key](this.width, this.rows);
    else if (key === "Home") to = ctrlKey ? 0 : this.at - (this.at % this.width);
    else if (key === "End") to = ctrlKey ? this.size - 1 : this.at - (this.at % this.width) + this.width - 1;
    else if (/^[0-9a-f]$/i.test(key) && !ctrlKey && !metaKey && !altKey) this.digit(key);
    else if (key === "Escape" && this.digits) this.show(this.at, { again: true });
    else if (key === "Backspace" || key === "Delete") this.type(this.at, undefined);
    else return;
    event.preventDefault();
    if (to !== undefined) this.choose(Math.max(0, Math.min(this.size - 1, to)), true);
  }

  digit(key) {
    this.digits += key.toLowerCase();
    const cell = this.cell(this.at);
    if (this.digits.length === 1) {
      cell.textContent = `${this.digits}_`;
      return;
    }
    const byte = parseInt(this.digits, 16);
    this.digits = "";
    this.type(this.at, byte);
  }
}
