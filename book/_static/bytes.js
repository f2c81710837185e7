// Byte views and ribbons work without this: they are radio buttons and style. Here Escape clears what is explained, and a
// field that is pointed at or chosen lights its block in every ribbon of the same file on the page.
"use strict";
{
  const fileOf = (box) => box.querySelector("strong")?.textContent.match(/^.*, \d+ bytes/)?.[0];
  const rangeOf = (pick) => {
    const found = pick.querySelector("input").ariaLabel.match(/(?:^|: )bytes? (\d+)(?: to (\d+))?/);
    return found && [Number(found[1]), Number(found[2] ?? found[1])];
  };

  function light(pick) {
    for (const lit of document.querySelectorAll(".mq-line .mq-lit")) {
      lit.classList.remove("mq-lit");
    }
    const range = pick?.matches(".mq-run") && rangeOf(pick);
    if (!range) {
      return;
    }
    const file = fileOf(pick.closest(".mq"));
    for (const block of document.querySelectorAll(".mq-line .mq-pick")) {
      const [start, end] = rangeOf(block) ?? [1, 0];
      if (start <= range[0] && range[0] <= end && file && fileOf(block.closest(".mq")) === file) {
        block.classList.add("mq-lit");
      }
    }
  }

  for (const kind of ["pointerover", "focusin", "change"]) {
    document.addEventListener(kind, (event) => {
      const pick = event.target.closest?.(".mq-pick");
      if (pick) {
        pick.closest(".mq-view").classList.remove("mq-quiet");
        light(pick);
      }
    });
  }
  document.addEventListener("keydown", (event) => {
    const view = event.key === "Escape" && document.querySelector(".mq-view:is(:focus-within, :hover)");
    if (view) {
      view.classList.add("mq-quiet");
      light();
    }
  });
}
