// Names that screen readers announce: what is seen is what is said, and every part lies in a landmark.
// Loaded with "defer", so the page is there, and the theme's own scripts come after.
for (const icon of document.querySelectorAll(".theme-switch-button i")) {
  icon.removeAttribute("title"); // the button has a name of its own
}
for (const button of document.querySelectorAll(".search-button-field")) {
  button.removeAttribute("aria-label"); // its text, "Search", is its name
}
for (const key of document.querySelectorAll(".search-button__kbd-shortcut")) {
  key.setAttribute("aria-hidden", "true");
}
for (const summary of document.querySelectorAll("summary[aria-label='Toggle hidden content']")) {
  summary.removeAttribute("aria-label"); // its text, "Show the code", is its name
}
for (const entry of document.querySelectorAll(".citation, .citation-list")) {
  entry.removeAttribute("role"); // one is deprecated, the other allows no links between its entries
}
for (const sidebar of document.querySelectorAll(".bd-sidebar-primary")) {
  sidebar.setAttribute("role", "region");
  sidebar.setAttribute("aria-label", "The book");
}

// What is wider than the page scrolls by itself; the keyboard must reach it. live/outputs.js and site.js report boxes that come later.
const SCROLLED = ".cell_output pre, .highlight pre, .mq-figure, .mq-printed, .pst-scrollable-table-container, mjx-container[display]";
const fits = new ResizeObserver((boxes) => {
  for (const { target } of boxes) {
    if (target.scrollWidth > target.clientWidth + 1) {
      target.tabIndex = 0;
    } else {
      target.removeAttribute("tabindex");
    }
  }
});
window.reachScrolled = (place) => place.querySelectorAll(SCROLLED).forEach((box) => fits.observe(box));
addEventListener("load", () => reachScrolled(document));

// Paper is white, whatever the screen is.
const paper = matchMedia("print");
let themeOnScreen = null;
function followPaper(printing) {
  const html = document.documentElement;
  if (printing && themeOnScreen === null) {
    themeOnScreen = html.dataset.theme;
    html.dataset.theme = "light";
  } else if (!printing && themeOnScreen !== null) {
    html.dataset.theme = themeOnScreen;
    themeOnScreen = null;
  }
}
paper.addEventListener("change", () => followPaper(paper.matches));
addEventListener("beforeprint", () => followPaper(true));
addEventListener("afterprint", () => followPaper(false));

// Opened as a file, a page may not fetch another one: the search lists titles without excerpts, and no lab runs here.
if (location.protocol === "file:") {
  document.querySelector(".mq-live-bar")?.remove();
  if (typeof DOCUMENTATION_OPTIONS === "object") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
