"""Which bug a damaged file has."""

from ...lab import Exercise, Mistake, edit
from ...lab.spec import Finding
from .mystery import BUGS, DAMAGE


def name_the_bug(file):
    """The bug of one damaged file, by the evidence above.

    file: "A", "B", "C", "D" or "E"   ->   one of the words in BUGS

    Write a dict with a word for each of the five letters, and look the
    letter up in it.
    """
    words = {
        "A": "scales shifted",
        "B": "nibbles swapped",
        "C": "scales truncated",
        "D": "tensors exchanged",
        "E": "sign lost",
    }
    return words[file]


def oracle(file):
    """The name of the function that damaged the file."""
    return DAMAGE[file].__name__.replace("_", " ")


def cases(random):
    """The five files."""
    return [(letter,) for letter in DAMAGE]


def _verdict(function, case):
    """Right, or a finding, so that a report never says the word that is right."""
    function(*case)  # the second answer counts: a dict that is emptied has no more
    word = function(*case)
    if not isinstance(word, str):
        raise Finding("this is not a word", f"{type(word).__name__}: {word!r}"[:200])
    if word not in BUGS:
        near = [bug for bug in BUGS if bug == word.strip().casefold()]
        what = "this is not a word of the list BUGS, which are written in small letters" if near else NO_WORD
        raise Finding(what, repr(word))
    if word != oracle(*case):
        why = f"{SIGNS[word]} File {case[0]} does not show that."
        raise Finding(f"{word!r} is not the bug of file {case[0]}", f"{word!r}. {why}")
    return f"the bug of file {case[0]}"


NO_WORD = "this is not a word of the list BUGS"
SIGNS = {  # what each bug would show
    "matrix transposed": "In a transposed matrix the first row holds what was the first column.",
    "nibbles swapped": "Swapped nibbles make neighbours change places: the weights 0 and 1, 2 and 3, and so on.",
    "offset wrong": "With a wrong offset a tensor begins inside another one, so that other bytes are read as its scales and weights.",
    "scales shifted": "Shifted scales change whole groups of 64 weights, each by a factor of its own, and most of them by far more than a thousandth.",
    "scales truncated": "In these files, a truncated scale changes a weight by less than a thousandth of itself.",
    "sign lost": "Where the sign is lost, no weight of the damaged tensor is negative.",
    "tensors exchanged": "Where two tensors are exchanged, exactly two are damaged, they have the same shape, and each holds the weights of the other.",
}


def _confused(letter, right, wrong):
    return Mistake(
        f"file {letter} taken for {wrong!r}", edit(f'"{letter}": "{right}"', f'"{letter}": "{wrong}"'),
        cause=f"{SIGNS[wrong]} File {letter} does not show that.",
        cure=f"Look again at how many tensors of file {letter} are damaged, at its first weights, and at the ratio below them.",
        see=f"`{wrong!r} is not the bug of file {letter}`",
    )  # fmt: skip


EXERCISE = Exercise(
    goal="Name the bug of each of the five damaged files, from the list `BUGS`.",
    reference=name_the_bug, oracle=oracle, cases=cases, minutes=12, difficulty="stretch", observe=_verdict,
    hints=(
        "Begin with what a bug cannot do: it cannot leave a sign, a ratio or a neighbour unchanged that it must change.",
        "Three numbers decide most cases: how many tensors have an error above 0, the ratio of the first weights, and `.min()` of a damaged tensor.",
    ),
    why="none of these files raised an error. The numbers named the bug, and the text alone would have missed two of them.",
    mistakes=(
        _confused("A", "scales shifted", "scales truncated"),
        _confused("A", "scales shifted", "tensors exchanged"),
        _confused("B", "nibbles swapped", "matrix transposed"),
        _confused("B", "nibbles swapped", "tensors exchanged"),
        _confused("B", "nibbles swapped", "sign lost"),
        _confused("C", "scales truncated", "scales shifted"),
        _confused("C", "scales truncated", "nibbles swapped"),
        _confused("D", "tensors exchanged", "matrix transposed"),
        _confused("D", "tensors exchanged", "offset wrong"),
        _confused("D", "tensors exchanged", "nibbles swapped"),
        _confused("E", "sign lost", "nibbles swapped"),
        _confused("E", "sign lost", "offset wrong"),
    ),
)
