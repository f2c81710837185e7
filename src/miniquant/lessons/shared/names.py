"""Names and a text that become others, or several names one, where somebody changes blanks, capitals, ends or letters."""

ODD_NAMES = (
    "w.weight", "w.bias", " W.bias", "w", "W.bias", "w.bias ", "w bias", "w_bias", "_w", "w,b", "", "\N{LATIN SMALL LETTER E WITH ACUTE}",
    "e\N{COMBINING ACUTE ACCENT}", "layers.10.mlp.fc1.weight", "layers.10.mlp.fc1.bias",
)  # fmt: skip
ODD_TEXT = ' model.W, e\N{COMBINING ACUTE ACCENT}_"x"\t= 1/2\r\n\N{LLAMA}\0.weight'
LINE_ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # where `str.splitlines` ends a line, too
