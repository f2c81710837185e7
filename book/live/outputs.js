// What a cell gives, as Jupyter shows it: text, HTML, tables, pictures, errors.
const element = (tag, kind, text) => Object.assign(document.createElement(tag), { className: kind, textContent: text ?? "" });

// Puts one output of a notebook file below a cell; text that follows text is joined to it.
export function show(place, output) {
  put(place, output);
  window.reachScrolled(place);
}

function put(place, output) {
  const data = output.data ?? {};
  if (output.output_type === "stream") return addText(place, output);
  if (output.output_type === "error") {
    const box = element("div", "output traceback mq-live-error");
    box.append(element("pre", "", output.traceback.join("\n")));
    return place.append(box);
  }
  const box = element("div", "output");
  if (data["text/html"]) {
    box.classList.add("text_html");
    box.innerHTML = data["text/html"];
    for (const old of box.querySelectorAll("script")) {
      const fresh = document.createElement("script"); // one that comes as text is not run
      for (const { name, value } of old.attributes) fresh.setAttribute(name, value);
      fresh.textContent = old.textContent;
      old.replaceWith(fresh);
    }
  } else if (data["image/svg+xml"]) {
    box.innerHTML = data["image/svg+xml"];
  } else if (data["image/png"]) {
    const image = element("img", "");
    image.src = `data:image/png;base64,${data["image/png"]}`;
    image.alt = data["text/plain"];
    box.append(image);
  } else if (data["text/markdown"]) {
    box.append(markdown(data["text/markdown"]));
  } else {
    box.append(element("pre", "", data["text/plain"]));
  }
  place.append(box);
}

function addText(place, output) {
  const last = place.lastElementChild;
  if (last?.dataset.stream === output.name) {
    last.firstElementChild.textContent += output.text;
    return;
  }
  const box = element("div", "output stream");
  box.dataset.stream = output.name;
  box.append(element("pre", "", output.text));
  place.append(box);
}

// The little Markdown that labs print: one table, or text.
function markdown(text) {
  const rows = text.trim().split("\n").map((line) => line.trim());
  if (!(rows.length > 1 && rows.every((row) => row.startsWith("|")))) return element("pre", "", text);
  const table = element("table", "table");
  for (const [number, row] of rows.entries()) {
    if (number === 1) continue;
    const line = table.appendChild(element("tr"));
    for (const cell of row.replace(/^\||\|$/g, "").split(/(?<!\\)\|/)) {
      const place = line.appendChild(element(number ? "td" : "th"));
      for (const [i, part] of cell.trim().replaceAll("\\|", "|").split(/`|\*\*/).entries()) {
        place.append(i % 2 ? element(cell.includes("`") ? "code" : "strong", "", part) : part);
      }
    }
  }
  return table;
}

// Consecutive texts joined, as a notebook file keeps them.
export function kept(outputs, output) {
  const last = outputs.at(-1);
  if (output.output_type === "stream" && last?.output_type === "stream" && last.name === output.name) {
    last.text += output.text;
  } else {
    outputs.push({ ...output });
  }
}
