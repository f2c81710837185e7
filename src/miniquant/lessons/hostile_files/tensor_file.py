"""A name that becomes a file."""

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, edit, omit


def tensor_file(name, taken):
    """The file that a tensor is written to.

    name: any text, from the file; taken: a set of the names of the files
        that exist already, which stays as it is
    ->   name + ".bin"; it raises FormatError unless the name has 1 to 64
         characters, all from A to Z, a to z, 0 to 9, ".", "_" and "-", does
         not begin with ".", and its file is not in taken. For taken alone,
         a capital is equal to its small letter
    """
    import re

    if not re.fullmatch(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}", name):
        raise FormatError(f"the name {name!r} cannot be a file's")
    file = name + ".bin"
    if file.lower() in {other.lower() for other in taken}:
        raise FormatError(f"two tensors want the file {file!r}")
    return file


def oracle(name, taken):
    """Letter by letter."""
    if len(name) not in range(1, 65) or name[0] == "." or any(letter not in SAFE for letter in name):
        raise FormatError("not a name for a file")
    for other in taken:
        if len(other) == len(name) + 4 and all(a.upper() == b.upper() for a, b in zip(other, f"{name}.bin")):
            raise FormatError("taken")
    return f"{name}.bin"


SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


def cases(random):
    """Harmless names, names that are not, names that are taken, then random ones."""
    good = [
        ("w", set()),
        ("blk.0.attn_q.weight", {"w.bin"}),
        ("Aa-Z_z.9", {"a.bin"}),
        ("n" * 64, set()),
        ("a..b", set()),
        ("-", set()),
        ("_x.", {"_x.bin", "x..bin"}),
        ("w.bin", {"w.bin"}),
        ("w", {"w", "w.bin.bin", "v.bin", "w.x.bin", "xw.bin", "w.bi", "w.bit", "w-bin"}),
        ("0", set()),
        ("nul", {"0.bin"}),
    ]
    bad = ["", "../../.profile", "/etc/passwd", "..\\..\\x", "a/../../x", "....//x", ".", "..", ".hidden", "a/b", "C:x"]
    bad += ["w\n", "a\0b", "\x1b[2J", "größe", "n" * 65, "a b", "layer/../../../x", "a\\b", "a^b", "[a]"]
    bad += ["w\u0663", "w\u00b2", "\u017f", "\u212a", "w ", " w", "a\r"]  # digits, s and k of other alphabets
    others = {f"{letter}.bin" for letter in "abcdefghijklmn"}  # a set has no first one: each may be the last that is looked at
    again = [("w", {"w.bin"}), ("W", {"w.bin"}), ("w", {"W.bin", *others}), ("Za.c", {"zA.C.bin", *others}), ("w", {"W.BIN"})]
    bad += ["+", "a+b", "a,b", "w`", "a@b", "a;b", "a~1", "a$b", "%41"]
    drawn = ["".join(SAFE[i] for i in random.integers(0, 52, 12)) for _ in range(3)]
    return [*good, *((name, set()) for name in bad), *again, *((name, {"w.bin"}) for name in drawn)]


EXERCISE = Exercise(
    goal="Turn a tensor's name into the name of a file, and refuse every name that is not plainly harmless.",
    reference=tensor_file, oracle=oracle, cases=cases, minutes=7, difficulty="core",
    hints=(
        "Do not list what is forbidden; list what is allowed: 1 to 64 ASCII letters, digits, `.`, `_` and `-`, and no `.` at the beginning. `re.fullmatch` looks at the whole name.",
        "A pattern of two parts: a class in square brackets for the first character, without the dot, then a class with the dot and `{0,63}`, how often. To some systems W and w are the same file: compare `lower` of the file with `lower` of those in `taken`.",
    ),
    why="a list of what is allowed also stops the trick that nobody has thought of yet.",
    mistakes=(
        Mistake("nothing checked", omit("if not re.fullmatch"),
            cause="The name goes into the path as it is, and `../` in it leaves the folder.",
            cure="Allow only letters, digits, `.`, `_` and `-`, and no `.` at the beginning.",
            see="`../../.profile.bin` returned"),
        Mistake("only at the beginning", edit(
                'not re.fullmatch(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}", name)',
                """not name or name.startswith(("../", "..\\\\", "/"))""",
            ),
            cause="You looked for `../` at the beginning, and `a/../../x` climbs as well.",
            cure="List what is allowed; then no slash gets through anywhere.", see="`a/../../x.bin` returned"),
        Mistake("cut out", edit("    file = name", '    file = name.replace("../", "")').omit("if not re.fullmatch"),
            cause="`../` was cut out, and what remains of `....//x` is `../x`.",
            cure="Refuse; do not repair.", see="`../x.bin` returned for `....//x`"),
        Mistake("only slashes", edit(
                'not re.fullmatch(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}", name)',
                """not name or "/" in name or name.startswith(".")""",
            ),
            cause="You refused `/`, and on Windows `\\` separates folders and `C:` names a disk.",
            cure="List what is allowed instead of what is not.", see="`..\\..\\x` or control characters accepted"),
        Mistake("only separators", edit(
                'not re.fullmatch(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}", name)',
                r"""not name or name.startswith(".") or re.search(r"[/\\:]", name)""",
            ),
            cause="Slashes are gone, and control characters are still there: a terminal obeys them when it lists the folder.",
            cure="List what is allowed instead of what is not.", see="a name with `\\x1b` or `\\n` accepted"),
        Mistake("letters of every alphabet", edit(
                'not re.fullmatch(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}", name)',
                r"""not re.fullmatch(r"[\w-][\w.-]{0,63}", name)""",
            ),
            cause="`\\w` means the letters of every alphabet, and systems do not agree on how a file's name writes them.",
            cure="Spell the class out: `[0-9A-Za-z_-]`.", see="`größe.bin` returned"),
        Mistake("capitals by a flag",
            edit('r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}", name', 'r"[0-9a-z_-][0-9a-z._-]{0,63}", name, re.I'),
            cause="`re.I` also takes two letters of other alphabets for s and k.",
            cure="Spell the class out: `[0-9A-Za-z_-]`.", see="a name with an old s or the sign of kelvin accepted"),
        Mistake("a newline at the end",
            edit('re.fullmatch(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}"', 're.match(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}$"'),
            cause="`$` also matches before a newline at the very end.",
            cure="Use `re.fullmatch`.", see="a name that ends in a newline accepted"),
        Mistake("a dot in front", edit("[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}", "[0-9A-Za-z._-]{1,64}"),
            cause="A name may begin with a dot here: such a file is hidden, and `..` is the folder above.",
            cure="Leave the dot out of the class for the first letter.", see="`.hidden.bin` returned"),
        Mistake("no limit to its length", edit("{0,63}", "*"),
            cause="A name may be as long as it likes, and file systems end at about 255 bytes.",
            cure="Allow 64 characters at most.", see="a name of 65 characters accepted"),
        Mistake("equal names forgotten", omit("if file.lower()"),
            cause="Two tensors of one name are written to one file, and the first of them is gone.",
            cure="Refuse a file that is in `taken`.", see="`w.bin` returned twice"),
        Mistake("capitals forgotten", edit("file.lower() in {other.lower() for other in taken}", "file in taken"),
            cause="`W.bin` and `w.bin` are one file on Windows and on most Macs.",
            cure="Compare in lower case.", see="`W.bin` returned beside `w.bin`"),
    ),
)
