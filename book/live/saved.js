// A lab's work, kept in this browser: cell id -> what was typed, and the record of all checks.
const key = (lab) => `miniquant:lab:${lab}`;

export function load(lab) {
  try {
    const found = JSON.parse(localStorage.getItem(key(lab)) ?? "{}");
    return found && typeof found.cells === "object" ? found.cells : {};
  } catch {
    return {};
  }
}

// Keeps the cells that differ from the lab as it is given; whether that worked.
export function save(lab, cells) {
  try {
    if (Object.keys(cells).length) localStorage.setItem(key(lab), JSON.stringify({ version: 1, cells }));
    else localStorage.removeItem(key(lab));
    return true;
  } catch {
    return false; // storage is full, or the browser keeps none
  }
}

export const record = {
  get: () => localStorage.getItem("miniquant:progress") ?? "",
  set: (text) => text && localStorage.setItem("miniquant:progress", text),
};

// How many of a lab's exercises the record has as passed; the list of pages shows it (site.js).
export function keepDone(lab, exercises) {
  try {
    const passed = JSON.parse(record.get() || "{}");
    const count = exercises.filter((name) => passed[name]?.status === "passed").length;
    const done = JSON.parse(localStorage.getItem("miniquant:labs") ?? "{}");
    if (!count && !done[lab]) return;
    localStorage.setItem("miniquant:labs", JSON.stringify({ ...done, [lab]: [count, exercises.length] }));
    dispatchEvent(new Event("miniquant:done"));
  } catch {
    // what cannot be kept is not shown either
  }
}

export const textOf = (source) => (Array.isArray(source) ? source.join("") : source);

const lines = (text) => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

// The lab as a notebook file: what was typed, and the outputs of the cells that were run here.
export function notebook(original, sources, outputs) {
  const cells = original.cells.map((cell) => {
    if (cell.cell_type !== "code") return cell;
    const found = outputs.get(cell.id) ?? [];
    return { ...cell, source: lines(sources.get(cell.id)), outputs: found, execution_count: null };
  });
  return { ...original, cells };
}

// The code of a notebook file by the ids of this lab's cells; an error in words if it is another lab's.
export function sourcesOf(text, original) {
  let found;
  try {
    found = JSON.parse(text).cells.filter((cell) => cell.cell_type === "code");
  } catch {
    throw new Error("This file is no notebook.");
  }
  const known = new Set(original.cells.filter((cell) => cell.cell_type === "code").map((cell) => cell.id));
  const sources = new Map(found.filter((cell) => known.has(cell.id)).map((cell) => [cell.id, textOf(cell.source)]));
  if (!sources.size) throw new Error("This notebook has no cell of this lab.");
  return sources;
}
