"""A test file whose name leaves the folder."""

from ...lab import Exercise, Mistake, edit
from ...lab.spec import Finding
from ..shared.by_hand import by_digits
from .build import gguf_file, info
from .limited import ran


def climbing_file(name, levels):
    """A file with one F32 tensor of one number, whose name makes the naive
    reader write outside its folder.

    name: the text before ".bin" in the name of the file that appears,
        ASCII, without "/"; levels: how many folders above `export`, the
        reader's folder, it appears, 1 to 3
    ->   bytes: a GGUF file. In paths on the reader's machine "/" separates
         folders, and no other letter does
    """
    return gguf_file(info(b"../" * levels + name.encode("ascii"), (1,)), data=bytes(4))


def oracle(name, levels):
    """Byte after byte, by way of a folder that is left again."""
    path = []
    for _ in range(levels):
        path.append("..")
    text = "/".join(["x", "..", *path, name])
    out = b"GGUF" + by_digits(3, 4) + by_digits(1, 8) + bytes(8) + by_digits(len(text), 8)
    out += bytes(ord(letter) for letter in text) + by_digits(1, 4) + by_digits(1, 8) + bytes(4 + 8)
    while len(out) % 32:
        out += b"\0"
    return out + b"\0\0\0\0"


def _what_it_does(function, case):
    """The files that exist afterwards; none is a finding, and so are weights of more or less than one number."""
    found = ran(function, case)
    if found and not found.files:
        raise Finding("the reader writes no file", str(found))
    if found and (asked := sum(found.asked.values())) != 4:
        raise Finding("the tensor must hold one F32 number, which has 4 bytes", f"the reader asked for {asked} bytes")
    return found and found.files


def cases(random):
    """Each level, then other names."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    made = [("profile", 1), ("profile", 2), (" my notes.bin", 3), (".Settings", 2)]
    return [*made, *(("".join(letters[i] for i in random.integers(0, 26, 6)), int(random.integers(1, 4))) for _ in "ab")]


EXERCISE = Exercise(
    goal="Make a file whose tensor is written outside the reader's folder, a given number of folders above it.",
    reference=climbing_file, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up", observe=_what_it_does,
    hints=(
        "The reader puts the tensor's name and `.bin` after the name of its folder. In a path `..` is the folder above.",
        "Bytes can be repeated with `*`. `info` takes the name as bytes, and `name` is text: `encode` makes bytes of it.",
    ),
    why="a program that makes paths of names lets every file choose what it overwrites.",
    mistakes=(
        Mistake("no step up", edit('b"../" * levels + ', ""),
            cause="The name has no `..` in it, so the file is in the reader's folder.",
            cure="Put `../` before it, `levels` times.", see="home/you/models/export/profile.bin"),
        Mistake("always one level", edit('b"../" * levels', 'b"../"'),
            cause="The name climbs one level, whatever `levels` is.",
            cure="Repeat `../` as often as `levels` says.", see="right for one level, too low for more"),
        Mistake("the folder's name first", edit('b"../" * levels', 'b"export/" + b"../" * levels'),
            cause="The name climbs one level too few: a `../` is missing, or one only comes back from a folder that the name goes into.",
            cure="Begin with `../`, and repeat it `levels` times.", see="one level too low"),
        Mistake("one level too many", edit("* levels", "* (levels + 1)"),
            cause="The name climbs one step too far.",
            cure="`levels` steps are enough: one `../` is the folder above.", see="one level too high"),
        Mistake("a path from the root", edit('b"../" * levels', 'b"/"'),
            cause="A path that begins with a slash starts at the root of the disk; this process does not write there.",
            cure="Climb with `../`.", see="file outside the sandbox, and no file"),
        Mistake(".bin twice", edit('name.encode("ascii")', 'name.encode("ascii") + b".bin"'),
            cause="The reader adds `.bin` by itself.",
            cure="Leave `.bin` out of the name.", see="profile.bin.bin"),
        Mistake("backslashes", edit('b"../"', 'b"..\\\\"'),
            cause="A backslash stands between folders on Windows alone; here it is a letter of the file's own name.",
            cure="Write `../`, with a slash.", see="a file in the reader's folder with backslashes in its name"),
        Mistake("dots without a slash", edit('b"../"', 'b".."'),
            cause="Without the slash the dots are a part of the file's own name.",
            cure="Write `../`, with the slash.", see="..profile.bin in the reader's folder"),
        Mistake("four numbers", edit("(1,)), data=bytes(4)", "(4,)), data=bytes(16)"),
            cause="The tensor holds four numbers, and one is asked for.",
            cure="Give the tensor the dims `(1,)` and four bytes of data.", see="16 bytes asked for, and 4 expected"),
        Mistake("a folder after the climb", edit("* levels +", '* levels + b"home/" +'),
            cause="After the climb the name goes down into another folder again.",
            cure="Put the name right after the last `../`.", see="a folder home before profile.bin"),
    ),
)
