// What the theme's search does not know: questions, other spellings, typing errors, solutions kept apart, and excerpts
// from the article. Loaded on the search page only, after Sphinx's searchtools.js.
"use strict";

const FILLERS = new Set("a am an can could do does get have how i is me must my of please should the there to we what when where which who why you your".split(" "));

const SYNONYMS = {
  begin: ["start"], beginning: ["start"], first: ["start"], run: ["start"], launch: ["start"],
  install: ["setup", "troubleshooting"], setup: ["install", "troubleshooting"], error: ["troubleshooting"], help: ["troubleshooting"],
  answer: ["solution"], homework: ["assignment"], loss: ["error"], endian: ["byte"], endianness: ["little", "byte"],
  hub: ["hugging"], huggingface: ["hugging"], zeropoint: ["zero"], kquant: ["quants"], kquants: ["quants"], quantisation: ["quantization"],
  quantise: ["quantize"], quantised: ["quantized"], int4: ["four"], fp16: ["float16"], half: ["float16"], perplexities: ["perplexity"],
};

// Questions with one right answer: the words that ask them, the page, what to call it.
const ANSWERS = [
  [/^(start|begin|beginning|first|launch)( (course|lab|learning|here|with))*$/, "notebooks/00-five-minutes", "Start here: lab 00"],
  [/^(install|installation|setup|set up|requirements)( (course|labs|miniquant|python))*$/, "book/troubleshooting", "If the installation stops"],
  [/^(solution|solutions|answer|answers)$/, "book/solved", "The solved labs"],
];

const answerOf = (words) => {
  const { docnames, titles } = Search._index;
  const number = /^(?:lab )?(\d\d?)$/.exec(words)?.[1].padStart(2, "0"); // "lab 7"
  const at = docnames.findIndex((page) => number && page.startsWith(`notebooks/${number}-`));
  return at >= 0 ? [null, docnames[at], titles[at]] : ANSWERS.find(([question, page]) => question.test(words) && docnames.includes(page));
};

const wordsOf = (query) => splitQuery(query.toLowerCase()).filter((word) => !FILLERS.has(word));

const distance = (one, other, limit) => {
  if (Math.abs(one.length - other.length) > limit) return limit + 1;
  let before = [];
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  let first = row;
  for (let i = 1; i <= one.length; i++) {
    first = before;
    before = row;
    row = [i];
    for (let j = 1; j <= other.length; j++) {
      row[j] = Math.min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (one[i - 1] !== other[j - 1]));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
        row[j] = Math.min(row[j], first[j - 2] + 1); // two letters have changed places
      }
    }
  }
  return row[other.length];
};

const isKnown = (word) => {
  const stem = new Stemmer().stemWord(word);
  const { terms, titleterms } = Search._index;
  return Object.hasOwn(terms, stem) || Object.hasOwn(titleterms, stem) ||
    (stem.length > 2 && Object.keys(terms).some((term) => term.includes(stem)));
};

// The words of titles, whole, and the stems of all others.
const vocabulary = () => {
  const { alltitles, terms } = Search._index;
  const whole = Object.keys(alltitles).flatMap((title) => splitQuery(title.toLowerCase()));
  return [...new Set([...whole, ...Object.keys(terms)])].filter((word) => /^\p{Letter}{4,}$/u.test(word));
};

const meant = (word) => {
  const limit = word.length < 6 ? 1 : 2;
  let best = null;
  for (const known of vocabulary()) {
    const far = distance(word, known, limit);
    if (far <= limit && (best === null || far < best.far)) best = { far, known };
  }
  return best?.known;
};

// The word as the site spells it; the second value says whether the reader is told.
const corrected = (word) => {
  const american = word.replace(/is(e|ed|er|ing|ation)$/, "iz$1").replace(/our$/, "or");
  if (american !== word && isKnown(american)) return [american, false];
  if (/^\d+$/.test(word) || isKnown(word)) return [word, false];
  for (const other of SYNONYMS[word] ?? []) if (isKnown(other)) return [other, true];
  const known = meant(word);
  return known ? [known, true] : [word, false];
};

Scorer.score = ([page, , , description, score]) => {
  if (page.startsWith("notebooks/")) return score + 3;
  if (page.startsWith("solutions/")) return score - 20;
  if (page.startsWith("book/api") || description) return score - 8;
  return score;
};

const BLOCKS = "td, th, dt, dd, li, p, pre, h2, h3, h4, div, summary, label, button"; // a word does not go on across their edges

// The article of a page, or the part of it that an anchor names; a term of the glossary with what it means.
const partOf = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const article = page.querySelector("article.bd-article") ?? page.querySelector("article");
  const place = (anchor && article?.querySelector(`#${CSS.escape(anchor.slice(1))}`)) || article;
  if (!place?.matches("dt")) return place;
  const both = page.createElement("div");
  const meaning = place.nextElementSibling;
  both.append(place, meaning ?? "");
  return both;
};

Search.htmlToText = (html, anchor, prose = false) => {
  const place = partOf(html, anchor);
  if (!place) return "";
  const code = prose ? ", .cell, pre" : "";
  for (const gone of place.querySelectorAll(`.headerlink, script, style, svg, h1, .mq-bar, .mq-live-bar, .mq-solved, .mq-start, .mq-help, nav${code}`)) gone.remove();
  for (const block of place.querySelectorAll(BLOCKS)) block.append(" ");
  return place.textContent.replace(/\s+/g, " ").trim();
};

const excerpt = async (page, anchor, terms) => {
  const answer = await fetch(document.documentElement.dataset.content_root + page + DOCUMENTATION_OPTIONS.FILE_SUFFIX);
  const html = await answer.text();
  const placesIn = (text) => [...terms].map((term) => text.toLowerCase().indexOf(term.toLowerCase())).filter((at) => at >= 0);
  let text = Search.htmlToText(html, anchor, true); // what people wrote, and code only if the words stand nowhere else
  if (!placesIn(text).length) text = Search.htmlToText(html, anchor);
  const places = placesIn(text);
  const from = places.length ? Math.max(Math.min(...places) - 90, 0) : 0;
  const start = from && text.indexOf(" ", from) + 1;
  const box = document.createElement("p");
  box.className = "context";
  box.textContent = (start ? "… " : "") + text.slice(start, start + 220).trim() + (start + 220 < text.length ? " …" : "");
  return box;
};

const entry = (list, [page, title, anchor, description], terms, highlight) => {
  const item = list.appendChild(document.createElement("li"));
  const link = item.appendChild(document.createElement("a"));
  link.href = page + DOCUMENTATION_OPTIONS.LINK_SUFFIX + anchor;
  link.innerHTML = title;
  if (anchor.startsWith("#term-")) link.append(`: ${decodeURIComponent(anchor.slice(6)).replaceAll("-", " ")}`);
  if (description) {
    item.append(` (${description})`);
  } else if (DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY) {
    excerpt(page, anchor, terms).then((box) => {
      item.append(box);
      highlight.forEach((term) => _highlightText(box, term, "highlighted"));
    }).catch(() => {});
  }
  return item;
};

const heading = (text) => {
  const title = document.createElement("h3");
  title.textContent = text;
  return title;
};

const MOST = 40; // more than that nobody reads, and each excerpt loads its page

Search.query = (query) => {
  const words = wordsOf(query);
  const pairs = words.map(corrected);
  const used = pairs.map(([word]) => word).join(" ");
  const told = pairs.some(([, tell]) => tell);
  const parsed = Search._parseQuery(used || query);
  const results = Search._performSearch(...parsed).reverse();
  const solved = results.filter(([page]) => page.startsWith("solutions/"));
  const others = results.filter(([page]) => !page.startsWith("solutions/"));
  const answer = answerOf(words.join(" "));
  if (told) {
    const note = document.createElement("p");
    note.className = "mq-meant";
    note.append("Did you mean ");
    const link = note.appendChild(document.createElement("a"));
    link.href = `?q=${encodeURIComponent(used)}`;
    link.textContent = used;
    note.append("? These are its results.");
    Search.output.before(note);
  }
  const [terms, highlight] = [parsed[1], parsed[3]];
  if (answer) {
    const [, page, title] = answer;
    entry(Search.output, [page, title, "", null], new Set(), new Set()).className = "mq-best";
  }
  const listed = others.filter(([page, , anchor]) => !answer || page !== answer[1] || anchor).slice(0, MOST);
  listed.forEach((result) => entry(Search.output, result, terms, highlight));
  if (solved.length) {
    const list = document.createElement("ul");
    list.className = "search";
    Search.output.after(heading("In solved labs"), list);
    solved.slice(0, MOST).forEach((result) => entry(list, result, terms, highlight));
  }
  const total = listed.length + Math.min(solved.length, MOST) + (answer ? 1 : 0);
  _finishSearch(total);
  if (total) Search.status.textContent = `${total} ${total === 1 ? "place" : "places"} found. Search finished.`;
};
