"""What each matrix costs in each type, measured while all others stay as they are."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from .toys import Measure, Store


def one_at_a_time(weights, kinds, store, measure):
    """What each matrix costs in each type, while all others stay float.

    weights: dict, name -> (out, in) float32; kinds: a list of types, by
        their names; it may be empty, and then each name has an empty dict
    store: store(w, kind) gives two things, the bytes that a matrix takes in
        this type, and the weights that a file gives back
    measure: measure(weights) gives the KL of the model with these weights,
        a dict like the first argument, with all names
    ->   dict, name -> dict, kind -> (bytes, KL), a tuple, the KL right to
         1e-9
    """
    costs = {}
    for name, w in weights.items():
        costs[name] = {}
        for kind in kinds:
            n_bytes, restored = store(w, kind)
            kl = measure({**weights, name: restored})
            costs[name][kind] = n_bytes, kl
    return costs


def oracle(weights, kinds, store, measure):
    """Every pair of a matrix and a type: a whole copy of the model, and one matrix of it replaced."""
    found = {name: {} for name in weights}
    for kind in reversed(kinds):
        for name in reversed(list(weights)):
            copy = {other: w.copy() for other, w in weights.items()}
            size, copy[name] = store(copy[name], kind)
            found[name][kind] = (size, measure(copy))
    return found


def cases(random):
    """One matrix in one type, two types, two matrices, several of several shapes, no type."""

    def case(weights, *kinds):
        arrays = {name: np.array(w, np.float32) for name, w in weights.items()}
        return arrays, list(kinds), Store(), Measure({name: w.copy() for name, w in arrays.items()})

    two = {"a": [[1.25, 3.0]], "b": [[0.5], [7.5], [2.0]]}
    drawn = {f"w{i}": random.normal(0, 4, (2 + i // 2, 3)).round(2) for i in range(4)}
    return [
        case({"a": [[1.25, 3.0]]}, "wholes"),
        case({"a": [[1.25, 3.0]]}, "wholes", "tens"),
        case(two, "wholes"),
        case(two, "tens", "wholes"),
        case(two, "halves", "wholes", "tens"),
        case(two),
        case(drawn, "tens", "halves"),
        case(drawn, "halves", "wholes", "tens"),
    ]


EXERCISE = Exercise(
    goal="Measure what each matrix costs in each type: one matrix at a time, with all others as they are.",
    reference=one_at_a_time, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-9,
    hints=(
        "Two loops, one in the other: over the matrices and over the types. In the inner one you need a model in which a single matrix is replaced, and the next measurement must begin with the float weights again.",
        "`{**weights, name: restored}` is a new dict with one other entry. Begin with an empty dict for each name, and put the tuple for each type into it.",
    ),
    why="this table is all that the choice needs: how many bytes, and how much harm.",
    mistakes=(
        Mistake("all others not put back", body("""
                costs, changed = {}, dict(weights)
                for name, w in weights.items():
                    costs[name] = {}
                    for kind in kinds:
                        n_bytes, changed[name] = store(w, kind)
                        costs[name][kind] = n_bytes, measure(changed)
                return costs
            """),
            cause="A matrix that was measured stays quantized while the next ones are measured.",
            cure="Begin each measurement with the float weights.", see="the first matrix right, and later ones too large"),
        Mistake("weights overwritten", body("""
                costs = {}
                for name in weights:
                    costs[name] = {}
                    for kind in kinds:
                        n_bytes, weights[name] = store(weights[name], kind)
                        costs[name][kind] = n_bytes, measure(weights)
                return costs
            """),
            cause="The rounded matrices were written into `weights`. So the float weights are gone, and the caller's dict has changed.",
            cure="Measure a new dict, `{**weights, name: restored}`.", see="the first measurement right, and a changed argument"),
        Mistake("the float model measured", edit("measure({**weights, name: restored})", "measure(weights)"),
            cause="The model that was measured has its float weights.",
            cure="Measure a model in which the one matrix is replaced.", see="0 for every KL"),
        Mistake("all matrices in the type", edit("measure({**weights, name: restored})", "measure({other: store(x, kind)[1] for other, x in weights.items()})"),
            cause="All matrices were quantized at once.",
            cure="Replace one matrix, and leave the others.", see="right for one matrix, and the same KL for all matrices otherwise"),
        Mistake("the others left out", edit("{**weights, name: restored}", "{name: restored}"),
            cause="The dict that was measured has one matrix only.",
            cure="Give `measure` all names: the others with their float weights.", see="a KeyError, except for one matrix"),
        Mistake("the bytes of the float weights", edit("costs[name][kind] = n_bytes, kl", "costs[name][kind] = w.nbytes, kl"),
            cause="These are the bytes of float32 weights.",
            cure="Use the bytes that `store` gives.", see="the same bytes for every type"),
        Mistake("KL first", edit("= n_bytes, kl", "= kl, n_bytes"),
            cause="The KL came first.",
            cure="Put the bytes first.", see="the two numbers of each tuple exchanged"),
        Mistake("the last type only", edit("costs[name][kind] = n_bytes, kl", "costs[name] = {kind: (n_bytes, kl)}"),
            cause="For each type a new dict replaced the one before.",
            cure="Begin one dict for each matrix, before the inner loop.", see="one type for each matrix"),
        Mistake("types first", body("""
                costs = {kind: {} for kind in kinds}
                for name, w in weights.items():
                    for kind in kinds:
                        n_bytes, restored = store(w, kind)
                        costs[kind][name] = n_bytes, measure({**weights, name: restored})
                return costs
            """),
            cause="The outer dict has the types as its keys.",
            cure="The outer keys are the names of the matrices.", see="types where names are expected"),
        Mistake("a list in place of a tuple", edit("= n_bytes, kl", "= [n_bytes, kl]"),
            cause="The two numbers are in a list.",
            cure="Make a tuple, with a comma or round brackets.", see="square brackets where round ones are expected"),
        Mistake("the KL alone", edit("= n_bytes, kl", "= kl"),
            cause="The bytes are not in the result.",
            cure="Store both numbers, as a tuple.", see="a number where a tuple is expected"),
    ),
)
