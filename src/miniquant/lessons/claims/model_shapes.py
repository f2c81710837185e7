"""A strategy of hypothesis: the models with which the claims are attacked."""

from hypothesis import strategies as st

from ...lab import Exercise, Mistake, edit
from .stage import judged


def model_shapes(names):
    """A strategy that draws the shapes of a model's tensors.

    names: list of str, at least five, none of them twice
    ->   a strategy; each draw is a dict, name -> shape, of at most five
         names
    A shape is a tuple of ints, (n,) for a vector or (rows, n) for a matrix:
    rows from 1 to 8, n from 1 to 300.

    Of a hundred draws, at least five are dicts whose names, two or more,
    are not in sorted order, also if ``names`` is sorted; at least five have
    a vector; at least five a matrix of two rows or more whose n is a
    multiple of 32; at least five a matrix whose n is not. One is an
    empty dict; hypothesis draws it once if your strategy can give it.
    """
    n = st.sampled_from([32, 64, 96]) | st.integers(1, 300)
    shapes = st.tuples(n) | st.tuples(st.integers(1, 8), n)
    return st.dictionaries(st.sampled_from(names), shapes, max_size=5)


@st.composite
def oracle_draw(draw, names):
    """One model after another, name by name."""
    model = {}
    for name in draw(st.permutations(names))[: draw(st.integers(0, 5))]:
        n = 32 * draw(st.integers(1, 9)) if draw(st.booleans()) else draw(st.integers(1, 300))
        model[name] = (draw(st.integers(1, 8)), n) if draw(st.booleans()) else (n,)
    return model


def oracle(names):
    """The same kinds of models, drawn by a function."""
    return oracle_draw(names)


def cases(random):
    """Five names, those of a real model, and random ones, which are sorted."""
    drawn = ["".join(chr(c) for c in random.integers(97, 123, 6)) for _ in range(9)]
    return [(["c", "a", "e", "b", "d"],), (["output", "blk.2.w", "blk.10.w", "blk.1.b", "caf\u00e9", "Z"],), (sorted(drawn),)]


EXERCISE = Exercise(
    goal="Write the strategy that draws the models of all attacks: every draw valid, and the awkward models often enough.",
    reference=model_shapes, oracle=oracle, cases=cases, minutes=10, difficulty="core", observe=judged,
    hints=(
        "Begin with one number, build a shape out of numbers, and a model out of shapes. Where a kind is rare, give hypothesis a second strategy that draws only that kind.",
        "`st.dictionaries` takes a strategy for the keys, one for the values, and `max_size`. With `|` you join the strategy of rare numbers and the one of all numbers.",
    ),
    why="an attack is as good as its cases: what your strategy never draws, no claim is tested with.",
    mistakes=(
        Mistake("whole blocks left to chance", edit("st.sampled_from([32, 64, 96]) | st.integers(1, 300)", "st.integers(1, 300)"),
            cause="A hundred draws have too few matrices of two rows or more whose n is a multiple of 32. If n is any number from 1 to 300, only one in 32 is.",
            cure="Join a strategy that draws only multiples of 32 with the one of all numbers.",
            see="too few draws with matrices of whole blocks"),
        Mistake("whole blocks only", edit("st.sampled_from([32, 64, 96]) | st.integers(1, 300)", "st.integers(1, 9).map(lambda k: 32 * k)"),
            cause="Every n that was drawn is a multiple of 32, so matrices of other rows are too rare.",
            cure="Draw other numbers from 1 to 300 as well.", see="too few draws with matrices whose rows are not whole blocks"),
        Mistake("no empty model", edit("max_size=5", "min_size=1, max_size=5"),
            cause="No draw is empty, and a model without tensors is a valid model.",
            cure="Let a model have 0 to 5 names.", see="too few draws with a model without tensors"),
        Mistake("one tensor at most", edit("max_size=5", "max_size=1"),
            cause="No draw has two names or more, so nothing about their order can be seen.",
            cure="Let a model have up to five names.", see="too few draws with two names or more"),
        Mistake("no vectors", edit("st.tuples(n) | ", ""),
            cause="Vectors are too rare in the draws.",
            cure="Join a strategy for shapes of one dim with the one for shapes of two.", see="too few draws with a vector"),
        Mistake("no matrices", edit(" | st.tuples(st.integers(1, 8), n)", ""),
            cause="Matrices are too rare in the draws.",
            cure="Join a strategy for shapes of two dims with the one for shapes of one.",
            see="too few draws with both kinds of matrices"),
        Mistake("sorted names", edit("max_size=5)", "max_size=5).map(lambda d: dict(sorted(d.items())))"),
            cause="The names of every draw are sorted, so an exporter that sorts nothing would pass.",
            cure="Leave the names in the order in which they were drawn.",
            see="too few draws with two names or more that are not sorted"),
        Mistake("dims from 0", edit("st.integers(1, 300)", "st.integers(0, 300)"),
            cause="A draw has a shape with n = 0, and n begins at 1 here.",
            cure="Let the numbers begin at 1.", see="a draw that is not valid, with a 0 in it"),
        Mistake("a draw in place of a strategy", edit("return st.", "return draws(st.").edit("max_size=5)", "max_size=5))[-1]"),
            cause="Your function returns one model. hypothesis must draw a new one for every case, so it needs the strategy.",
            cure="Return the strategy itself.", see="a dict where a strategy is expected"),
        Mistake("lists for shapes", edit("st.tuples(n) | st.tuples(st.integers(1, 8), n)", "st.lists(n, min_size=1, max_size=1)"),
            cause="A drawn shape is a list, and a shape is a tuple.",
            cure="Build shapes with `st.tuples`.", see="a draw that is not valid, with a list in it"),
        Mistake("any number of names", edit(", max_size=5", ""),
            cause="A draw has more than five names.",
            cure="Give the largest size of the dict.", see="a draw that is not valid, with more than five names"),
    ),
)
