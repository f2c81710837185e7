"""Two thousand lines that tokenizers disagree about, the same ones on every machine."""

from __future__ import annotations

import random
import unicodedata

CODE = [
    *("def f(x: int = 0, *args, **kwargs) -> str:", "    return f'{x!r:>10}'  # done"),
    *("if (a != b && !c) { return -1; }", "#include <stdio.h>", "\tfor (int i = 0; i < 100; i++)"),
    *("x_1, y2 = 3.14e-10, 0xFF_FF", "SELECT * FROM t WHERE id=7;", '<div class="a">&nbsp;</div>'),
    *("$HOME/bin:${PATH}", "lambda: (yield)", "a->b::c<T>()", "\\begin{align} x^2 \\\\ \\end{align}"),
    *("git commit -m 'fix #12'", "http://a.b/c?d=e&f=%20g", "{'k': [1, 2, {'z': None}]}"),
    *("/* --- */ //// ####", "@a.b\n"),
]  # fmt: skip
SPANISH = [
    *("¿Dónde está la biblioteca?", "El niño comió piña en Año Nuevo.", "¡Qué vergüenza!"),
    *("corazón, pingüino, mañana", "Lima, 22 de noviembre de 2026", "No sé; quizás él sí lo sepa…"),
    *("«comillas» y “otras”", "S/ 1.234,56 — 50 %"),
]  # fmt: skip
SYMBOLS = [
    *("🙂", "👩‍👩‍👧‍👦", "🇵🇪", "👍🏽", "❤️", "日本語", "中文", "한국어", "ไทย", "עברית", "العربية", "हिन्दी"),
    *("Ελλάδα", "𝄞", "½", "ﬁ", "µ", "²³", "Ⅷ", "٣٤٥", "İ", "ǅ", "∑∫≠", "→", "░▒▓", "€", "№"),
]  # fmt: skip
ODD = [
    *("\x00", "\x01", "\x07", "\x08", "\x0b", "\x0c", "\x1b[31m", "\x7f", "\x80", "\x85", "\x9f"),
    *("\xad", "\ufeff", "\u200b", "\u200e", "\u202e", "\u2028", "\u2029", "\u3000", "\xa0", "�"),
    *("\ufffe", "\uffff", "\U0010ffff", "\U000e0041", "\ue000", "\u0301", "҉҉", "Ã©Â¿", "ï»¿"),
    *("\\xc3\\x28", "\\ud800", "%C3%28", "&#xD800;", "▁", "▁▁", "Ġ"),
]  # fmt: skip
NAMES = [
    *("<s>", "</s>", "<unk>", "<pad>", "<0x0A>", "<0x41>", "[PAD7]", "<|endoftext|>", "<|im_start|>"),
    *("<|tool|>", "[INST]", "<<SYS>>", "<s", "s>", "<unk", "</s", "<0x4"),
]  # fmt: skip
SPACES = [
    *(" ", "  ", "   ", "       ", "                ", "                                 "),
    *("                                                                                                    ",),
    *("\t", "\t\t\t", "\n", "\n\n", "\r\n", "\r", " \n ", " \t "),
]  # fmt: skip
RUNS = [character * n for character in "-=a.0é\n \t" for n in (2, 3, 4, 5, 8, 17, 40)]


def awkward_lines(count: int = 2000, names: bool = True, nfc: bool = False) -> list[str]:
    """Lines of code, Spanish, emoji, control characters, runs of spaces, odd code points, and names of special tokens.

    Without ``names`` no line holds the name of a special token, begins with a space, or is empty; with ``nfc`` each is
    in the form NFC.
    """
    rng, lines = random.Random(14), []
    groups = [CODE, SPANISH, SYMBOLS, ODD, SPACES, RUNS, *([NAMES] if names else [])]
    while len(lines) < count:
        line = "".join(rng.choice(rng.choice(groups)) for _ in range(rng.choice((1, 1, 2, 3, 5, 9))))
        if rng.random() < 0.2:  # any code points at all, but halves of pairs, which no text may hold
            line += "".join(chr(c) for c in (rng.randrange(0x110000) for _ in range(4)) if not 0xD800 <= c < 0xE000)
        line = unicodedata.normalize("NFC", line) if nfc else line
        if names or line.lstrip(" ▁") == line:
            lines.append(line)
    return lines
