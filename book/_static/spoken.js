// What the scripts of a page say, in Spanish: texts and labels that the catalogue of the site has are replaced when they
// appear. "{0}" in a message stands for anything.
const FIELD = /\{(\w*)\}/;
const LABELS = ["aria-label", "title", "placeholder"];
const APART = "pre, code, script, style, .cm-editor, .highlight, textarea, .mq-report";

const spokenFrom = document.currentScript.src;

function templateOf(message, translation) {
  const parts = message.split(FIELD);
  const names = parts.filter((_, at) => at % 2);
  const escaped = parts.filter((_, at) => !(at % 2)).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return { pattern: new RegExp(`^${escaped.join("([^]*?)")}$`), names, translation };
}

async function speak() {
  const words = await fetch(new URL("spoken.json", spokenFrom)).then((answer) => answer.json());
  const templates = Object.entries(words).filter(([text]) => FIELD.test(text)).map((pair) => templateOf(...pair));
  const said = (text) => {
    const core = text.trim();
    if (!/[A-Za-z]{2}/.test(core)) return text;
    let found = words[core];
    for (const { pattern, names, translation } of found ? [] : templates) {
      const match = pattern.exec(core);
      if (match) {
        found = translation.replace(/\{(\w*)\}/g, (_, name) => said(match[names.indexOf(name) + 1]));
        break;
      }
    }
    return found ? text.replace(core, () => found) : text;
  };
  const speakText = (node) => {
    if (node.parentElement?.closest(APART)) return;
    const text = said(node.data);
    if (text !== node.data) node.data = text;
  };
  const speakLabels = (element) => {
    for (const name of LABELS) {
      const text = element.getAttribute(name);
      const new_ = text && said(text);
      if (new_ && new_ !== text) element.setAttribute(name, new_);
    }
  };
  const speakAll = (root) => {
    if (root.nodeType === Node.TEXT_NODE) return speakText(root);
    if (root.nodeType !== Node.ELEMENT_NODE || root.matches("article p, article li") ) return;
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = root; node; node = walker.nextNode()) {
      if (node.nodeType === Node.TEXT_NODE) speakText(node);
      else speakLabels(node);
    }
  };
  new MutationObserver((changes) => {
    for (const change of changes) {
      if (change.type === "characterData") speakText(change.target);
      else if (change.type === "attributes") speakLabels(change.target);
      else change.addedNodes.forEach(speakAll);
    }
  }).observe(document.body, { childList: true, subtree: true, characterData: true, attributeFilter: LABELS });
  speakAll(document.body);
}
speak();
