// The panels of a phone, the buttons that copy a line. Loaded with "defer".
for (const button of document.querySelectorAll(".mq-copy")) {
  button.addEventListener("click", async () => {
    const line = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(line.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(line); // a page opened as a file may not write there
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}

// The theme moves what a side panel holds into a dialog on a phone. A tap on a link or on the first button closes it.
for (const which of ["primary", "secondary"]) {
  const panel = document.getElementById(`pst-${which}-sidebar`);
  const dialog = document.getElementById(`pst-${which}-sidebar-modal`);
  const toggle = document.querySelector(`.${which}-toggle`);
  if (!panel || !dialog || !toggle) {
    continue;
  }
  const close = document.createElement("button");
  close.type = "button";
  close.className = "mq-close";
  close.textContent = "Close";
  panel.prepend(close);
  dialog.setAttribute("aria-label", toggle.getAttribute("aria-label"));
  for (const place of [panel, dialog]) {
    place.addEventListener("click", (event) => {
      if (dialog.open && event.target.closest("a[href], .mq-close")) {
        dialog.close();
      }
    });
  }
  const wide = matchMedia("(min-width: 992px)");
  const say = () => {
    const shown = wide.matches ? which === "primary" && !panel.classList.contains("pst-sidebar-hidden") : dialog.open;
    toggle.setAttribute("aria-expanded", String(shown));
  };
  new MutationObserver(say).observe(panel, { attributes: true, attributeFilter: ["class"] });
  new MutationObserver(say).observe(dialog, { attributes: true, attributeFilter: ["open"] });
  wide.addEventListener("change", say);
  toggle.addEventListener("click", () => setTimeout(() => dialog.open || toggle.focus({ preventScroll: true }))); // the theme takes it away
  dialog.addEventListener("close", () => setTimeout(() => toggle.focus({ preventScroll: true })));
  say();
}

// Formulas: MathJax is loaded when one of them comes near the screen. Until then the page shows their source.
const mathjax = document.getElementById("mq-formulas");
let formulas;
function showFormulas() {
  formulas ??= mathjax && new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = mathjax.dataset.src;
    script.onload = () => resolve(MathJax.startup.promise.then(() => reachScrolled(document)));
    script.onerror = reject;
    document.head.append(script);
  });
  return formulas;
}
window.showFormulas = showFormulas;
if (mathjax) {
  const near = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && showFormulas(), {
    rootMargin: "600px",
  });
  addEventListener("load", () => document.querySelectorAll(".math").forEach((formula) => near.observe(formula)));
  addEventListener("beforeprint", showFormulas);
}

// What was passed in this browser, beside the labs in the list of pages. live/saved.js keeps it and says when it changes.
function showDone() {
  let done = {};
  try {
    done = JSON.parse(localStorage.getItem("miniquant:labs") ?? "{}");
  } catch {
    return; // this browser keeps nothing
  }
  for (const link of document.querySelectorAll(".bd-links a[href]")) {
    const [folder, page] = new URL(link.href).pathname.split("/").slice(-2);
    const found = folder === "notebooks" && done[page.replace(/\.html$/, "")];
    if (!found) continue;
    const mark = link.querySelector(".mq-done") ?? link.appendChild(document.createElement("span"));
    const [passed, all] = found;
    mark.className = "mq-done";
    mark.textContent = passed === all ? "✓ done" : `${passed} of ${all}`;
    mark.title = `${passed} of ${all} exercises passed in this browser`;
  }
}
addEventListener("miniquant:done", showDone);
addEventListener("storage", showDone); // another window
showDone();

// The switch between the languages leads to the same heading of the other page: both have the same anchors.
document.querySelector(".mq-languages a")?.addEventListener("click", (event) => {
  const above = [...document.querySelectorAll("article section[id]")].filter(
    (section) => section.getBoundingClientRect().top < innerHeight / 3,
  );
  event.currentTarget.hash = scrollY > 50 && above.length ? above.at(-1).id : "";
});
