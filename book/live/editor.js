// The editor of a cell: CodeMirror 6 with Python's colours, in the page's own theme.
import { autocompletion, closeBrackets, closeBracketsKeymap } from "./editor/codemirror-autocomplete.js";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "./editor/codemirror-commands.js";
import { python } from "./editor/codemirror-lang-python.js";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "./editor/codemirror-language.js";
import { EditorState } from "./editor/codemirror-state.js";
import { drawSelection, EditorView, keymap } from "./editor/codemirror-view.js";
import { tags } from "./editor/lezer-highlight.js";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--mq-live-keyword)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--mq-live-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--mq-live-number)" },
  { tag: tags.comment, color: "var(--mq-live-comment)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.definition(tags.variableName))], color: "var(--mq-live-function)" },
]);

export function makeEditor({ parent, text, label, changed, run }) {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of("    "),
        EditorState.tabSize.of(4),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ activateOnTyping: false }),
        syntaxHighlighting(colours),
        python(),
        keymap.of([
          { key: "Shift-Enter", run: () => (run(), true) },
          { key: "Mod-Enter", run: () => (run(), true) },
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...historyKeymap,
          indentWithTab,
        ]),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", autocapitalize: "off", tabindex: "0" }),
        EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
      ],
    }),
  });
  return {
    get text() {
      return view.state.doc.toString();
    },
    set text(value) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } });
    },
    focus: () => view.focus(),
  };
}
