// The parts of the inspector's page that show what Python found: the strip, the tables, a decoded block.
const SVG = "http://www.w3.org/2000/svg";
const MOST_ROWS = 3000;

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "role") made.setAttribute("role", value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

export const number = (n) => n.toLocaleString("en").replaceAll(",", "\u00a0");
const range = ([start, end]) => (end === start + 1 ? `byte ${start}` : `bytes ${start} to ${end - 1}`);

// The whole file as one strip to scale, and its first bytes magnified where they are too thin to see.
export class Strip {
  constructor(place, choose) {
    this.choose = choose;
    this.place = place;
    this.slider = element("div", { className: "mq-insp-strip", role: "slider", tabIndex: 0, ariaLabel: "The parts of the file" });
    this.head = element("div", { className: "mq-insp-strip", ariaHidden: "true" });
    this.said = element("p", { className: "mq-insp-said" });
    this.note = element("p", { className: "mq-insp-small" });
    place.append(this.slider, this.note, this.head, this.said);
    this.slider.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
      if (step === undefined || !this.blocks.length) return;
      event.preventDefault();
      const to = Math.max(0, Math.min(this.blocks.length - 1, this.now + step));
      this.choose(this.blocks[to].start);
    });
    for (const drawn of [this.slider, this.head]) {
      drawn.addEventListener("click", (event) => {
        const box = drawn.getBoundingClientRect();
        const at = Math.floor(((event.clientX - box.left) / box.width) * (drawn === this.head ? this.headSize : this.size));
        this.choose(Math.max(0, Math.min(this.size - 1, at)));
      });
    }
  }

  open({ blocks, n_bytes, data_start }) {
    this.blocks = blocks;
    this.size = n_bytes;
    const thin = data_start && data_start < 0.09 * n_bytes;
    this.headSize = thin ? data_start : 0;
    this.slider.setAttribute("aria-valuemin", 0);
    this.slider.setAttribute("aria-valuemax", Math.max(0, blocks.length - 1));
    this.slider.replaceChildren(this.draw(blocks, n_bytes));
    this.head.hidden = this.note.hidden = !thin;
    this.note.textContent = thin ? `The first ${number(data_start)} bytes, magnified:` : "";
    this.head.replaceChildren(...(thin ? [this.draw(blocks.filter((b) => b.start < data_start), data_start)] : []));
  }

  draw(blocks, size) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 1000 40");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    for (const { what, name, start, length, colour } of blocks) {
      const rect = document.createElementNS(SVG, "rect");
      const wide = (1000 * length) / size;
      const low = what === "scales";
      const set = { x: (1000 * start) / size, width: Math.max(wide, 0.2), y: low ? 20 : 0, height: low ? 20 : 40 };
      for (const [key, value] of Object.entries(set)) rect.setAttribute(key, value);
      rect.style.fill = `rgba(${colour || "128,128,128"},.5)`;
      if (wide < 2) rect.classList.add("thin");
      rect.dataset.name = name;
      svg.append(rect);
    }
    const lit = document.createElementNS(SVG, "rect");
    lit.classList.add("lit");
    lit.setAttribute("y", 0);
    lit.setAttribute("height", 40);
    svg.append(lit);
    return svg;
  }

  mark(block, offset) {
    const found = this.blocks[block];
    this.now = block;
    const place = range([found.start, found.start + found.length]);
    const text = `${found.name}${found.what ? `, ${found.what}` : ""}: ${place}, ${number(found.length)} in all`;
    this.slider.setAttribute("aria-valuenow", block);
    this.slider.setAttribute("aria-valuetext", text);
    this.said.textContent = `Part ${block + 1} of ${this.blocks.length}: ${text}`;
    for (const [drawn, size] of [[this.slider, this.size], [this.head, this.headSize]]) {
      const lit = drawn.querySelector(".lit");
      if (!lit) continue;
      const inside = found.start < size;
      lit.setAttribute("x", inside ? (1000 * found.start) / size : 0);
      lit.setAttribute("width", inside ? Math.max((1000 * Math.min(found.length, size)) / size, 3) : 0);
      drawn.style.setProperty("--at", `${(100 * Math.min(offset, size)) / size}%`);
      drawn.classList.toggle("outside", offset >= size);
    }
  }
}

// A table whose rows lead to bytes: one stop of the Tab key, the arrow keys go from row to row.
export class Table {
  constructor(title, head, rows, cells, choose, open = true) {
    const shown = rows.slice(0, MOST_ROWS);
    this.rows = shown.map((row) => {
      const line = element("tr");
      for (const cell of cells(row)) {
        if (!Array.isArray(cell)) {
          line.append(element("td", { textContent: cell }));
          continue;
        }
        const [text, place] = cell;
        const go = place && element("button", { type: "button", tabIndex: -1, textContent: text });
        go?.addEventListener("click", () => choose(place[0]));
        line.append(element("td", {}, go ?? text));
      }
      return line;
    });
    const columns = element("tr", {}, ...head.map((text) => element("th", { scope: "col", textContent: text })));
    const table = element("table", {}, element("thead", {}, columns), element("tbody", {}, ...this.rows));
    this.scroll = element("div", { className: "mq-insp-scroll", role: "group", ariaLabel: title }, table);
    const more = rows.length > shown.length ? ` The first ${MOST_ROWS} are listed.` : "";
    this.place = element("details", { open, className: "mq-insp-table" }, element("summary", { textContent: `${title}: ${number(rows.length)}${more}` }), this.scroll);
    this.buttons = [...this.scroll.querySelectorAll("button")];
    if (this.buttons[0]) this.buttons[0].tabIndex = 0;
    else this.scroll.tabIndex = 0;
    this.scroll.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const now = event.target.closest("button");
    if (!now) return;
    const row = now.closest("tr");
    const column = [...row.querySelectorAll("button")].indexOf(now);
    let to;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      let next = row;
      do next = event.key === "ArrowDown" ? next.nextElementSibling : next.previousElementSibling;
      while (next && !next.querySelector("button"));
      const buttons = next?.querySelectorAll("button");
      to = buttons?.[Math.min(column, buttons.length - 1)];
    } else if (event.key === "ArrowRight") to = row.querySelectorAll("button")[column + 1];
    else if (event.key === "ArrowLeft") to = row.querySelectorAll("button")[column - 1];
    else if (event.key === "Home") to = this.buttons[0];
    else if (event.key === "End") to = this.buttons.at(-1);
    else return;
    event.preventDefault();
    if (to) this.focus(to);
  }

  focus(button) {
    for (const old of this.scroll.querySelectorAll("button[tabindex='0']")) old.tabIndex = -1;
    button.tabIndex = 0;
    button.focus();
  }

  // Lights a row, or none, and brings it into the table's own window without moving the page.
  mark(which) {
    for (const old of this.scroll.querySelectorAll("tr.lit")) {
      old.classList.remove("lit");
      old.removeAttribute("aria-current");
    }
    const row = this.rows[which];
    if (!row) return;
    row.classList.add("lit");
    row.setAttribute("aria-current", "true");
    const { scroll } = this;
    const top = row.offsetTop - scroll.querySelector("thead").offsetHeight;
    if (top < scroll.scrollTop || row.offsetTop + row.offsetHeight > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top;
  }
}

// The block of numbers in which the byte lies.
export function block(found, choose) {
  if (!found) return [element("p", { textContent: "This byte is in no block of numbers. Choose a byte of a tensor's data to see what it decodes to." })];
  const place = found.end === found.start + 1 ? `byte ${found.start}` : `bytes ${found.start} to ${found.end - 1}`;
  const out = [element("p", { textContent: `Block ${number(found.number)} of type ${found.type}, ${place}: ${found.values.length === 1 ? "element" : "elements"} ${found.place}.` })];
  if (found.parts.length) {
    const rows = found.parts.map((part) => ({ ...part, places: [[part.start, part.end]] }));
    const cells = (part) => [[part.name, part.places[0]], range(part.places[0]), part.value, part.what];
    out.push(new Table("Parts of the block", ["part", "bytes", "value", "what it is"], rows, cells, choose).place);
  }
  if (found.scale) {
    const go = element("button", { type: "button", textContent: `Go to byte ${found.scale.start}` });
    go.addEventListener("click", () => choose(found.scale.start));
    out.push(element("p", {}, `Its scale is number ${found.scale.number}: ${found.scale.value}. Each integer times the scale is a weight. `, go));
  }
  if (found.nibbles) {
    const [low, high] = found.nibbles;
    out.push(element("p", { textContent: `The two halves of this byte: low ${low} (${low.toString(2).padStart(4, "0")}), high ${high} (${high.toString(2).padStart(4, "0")}).` }));
  }
  const numbers = element("ol", { className: "mq-insp-numbers" }, ...found.values.map((value) => element("li", { textContent: value })));
  numbers.setAttribute("aria-label", "The numbers of the block");
  numbers.tabIndex = 0;
  out.push(element("p", { textContent: found.scale ? "The integers:" : "The numbers:" }), numbers);
  return out;
}
