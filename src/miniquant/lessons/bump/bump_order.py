"""The order of the tensors."""

from ...lab import Exercise, Mistake, body, edit


def bump_order(layer, n_layers, tensors):
    """The tensors of a GGUF file in the order of a bump file.

    layer: list of str, the parts of one layer in their order, such as
        "attn_q.weight"
    n_layers: how many the file must have
    tensors: list of str, each once, the names in the GGUF file: those of
        the layers, "blk.0.attn_q.weight", ..., and
        before the layers   token_embd.weight, position_embd.weight (if
        there)
        after the layers    output_norm.weight, output_norm.bias (if there),
        output.weight (if there)
    ->  list: the names; where a bias of a layer is not in the file, None is
        in its place; the name of a bias ends with ".bias"

    Raises ValueError if a tensor is left over, and if one is missing; only
    biases of layers and the names marked (if there) may be missing.
    """
    optional = ("position_embd.weight", "output_norm.bias", "output.weight")
    wanted = ["token_embd.weight", "position_embd.weight"]
    wanted += [f"blk.{i}.{part}" for i in range(n_layers) for part in layer]
    wanted += ["output_norm.weight", "output_norm.bias", "output.weight"]
    wanted = [name for name in wanted if name in tensors or name not in optional]
    left = [name for name in tensors if name not in wanted]
    missing = [name for name in wanted if name not in tensors and not name.endswith(".bias")]
    if left or missing:
        raise ValueError(f"left over: {left}, missing: {missing}")
    return [name if name in tensors else None for name in wanted]


def oracle(layer, n_layers, tensors):
    """Tensors are crossed out on a list, one after another."""
    rest, found = list(tensors), []

    def take(name, needed):
        if name in rest:
            rest.remove(name)
            found.append(name)
        elif needed:
            raise ValueError(f"{name} is missing")

    take("token_embd.weight", True)
    take("position_embd.weight", False)
    for number in range(n_layers):
        for part in layer:
            before = len(found)
            take("blk." + str(number) + "." + part, part.split(".")[-1] != "bias")
            if len(found) == before:
                found.append(None)
    take("output_norm.weight", True)
    take("output_norm.bias", False)
    take("output.weight", False)
    if rest:
        raise ValueError(f"left over: {rest}")
    return found


TOY = ["attn_norm.weight", "attn_q.weight", "attn_q.bias", "ffn_up.weight", "ffn_up.bias"]
ENDS = ["token_embd.weight", "output_norm.weight"]


def toy_tensors(n_layers, drop=("bias",)):
    """Tensors of a toy as a GGUF file may have them: the ends first, then layer by layer, other parts first."""
    names = [f"blk.{i}.{part}" for i in range(n_layers) for part in sorted(TOY)]
    return [*ENDS, *(name for name in names if not name.endswith(drop))]


def cases(random):
    """Toys of none to twelve layers, optional ends, another order, a tensor too many, other layers, then one too few."""
    one, three = toy_tensors(1), toy_tensors(3, ("q.bias",))
    cases = [(TOY, 1, one), (TOY, 3, three), (TOY, 0, ENDS), (TOY, 12, toy_tensors(12, ()))]
    cases.append((TOY, 1, [*one, "output.weight"]))
    cases.append((TOY, 2, ["output_norm.bias", "position_embd.weight", *toy_tensors(2)]))
    shuffled = toy_tensors(11, ("up.bias",))
    random.shuffle(shuffled)
    cases.append((TOY, 11, shuffled))
    for extra in ("rope_freqs.weight", "blk.0.attn_q_norm.weight", "blk.1.attn_q.weight"):
        cases.append((TOY, 1, [*one, extra]))
    cases += [(TOY, n, toy_tensors(m)) for n, m in ((1, 2), (2, 1), (0, 1), (1, 0))]
    cases.append((TOY, 0, ["output.weight", "output_norm.bias", *ENDS[::-1], "position_embd.weight"]))
    named = ["token_embd.weight", "blk.0.attn_output.weight", "output_norm.weight"]  # `output.weight` is in a longer name
    cases += [(["attn_output.weight"], 1, named), (["attn_output.weight"], 1, [*named, "output.weight"])]
    cases += [(TOY, 1, [extra, *one]) for extra in ("token_embd.bias", "blk.0.ffn_down.bias", "blk.0.attn_q.weight2")]
    cases.append((TOY, 2, [name for name in toy_tensors(2, ()) if name != "blk.0.attn_q.bias"]))
    other = ["attn.k_bias.weight", "attn.k.norm.bias", "a.bias", "bias.scale_bias"]
    names = [f"blk.{i}.{part}" for i in range(2) for part in other]
    gone = (".bias", "0.bias.scale_bias", "1.attn.k_bias.weight")  # all biases; a part that only looks like one, of one layer alone
    cases += [(other, 2, [*ENDS, *(name for name in names if not name.endswith(lost))]) for lost in gone]
    cases += [(other, 2, [*ENDS, *names]), ([], 2, ENDS)]
    for lost in ("ffn_up", "attn_norm", "token_embd", "output_norm"):
        cases.append((TOY, 1, [name for name in one if lost not in name]))
    return cases


EXERCISE = Exercise(
    goal="Put a GGUF file's tensors into a bump file's order, with None where zeros keep the place of a missing bias.",
    reference=bump_order, oracle=oracle, cases=cases, minutes=8, difficulty="core",
    hints=(
        "First make the list of all names that the layout asks for, `blk.{i}.{part}` layer by layer between the two ends; then compare it with the tensors that are there, in both directions.",
        "`left = set(tensors) - set(wanted)` must be empty. What is wanted and not there becomes None if it is a bias of a layer, is left out if it is an optional end, and is a ValueError otherwise.",
    ),
    why="the file has no names: its place says which tensor it is, so nothing may be missing or left over.",
    mistakes=(
        Mistake("the order of the GGUF file",
            edit("return [name if name in tensors else None for name in wanted]", "return list(tensors)"),
            cause="The tensors stayed in the order in which GGUF has them, and a bump file has its own.",
            cure="Go through the layout, and look each name up among the tensors.",
            see="output_norm.weight in second place"),
        Mistake("no placeholders", edit(
                "return [name if name in tensors else None for name in wanted]",
                "return [name for name in wanted if name in tensors]",
            ),
            cause="A bias that the model does not have was left out, so everything after it moved up one place.",
            cure="Put None there: zeros will keep the place.", see="a list that is too short"),
        Mistake("left over, and left out", edit("if left or missing", "if missing"),
            cause="A tensor for which the layout has no place was dropped silently, and the model is a different one now.",
            cure="Raise ValueError if a tensor is not in the layout.", see="no error for rope_freqs.weight"),
        Mistake("two ends and no questions", body("""
                names = [f"blk.{i}.{part}" for i in range(n_layers) for part in layer]
                return ["token_embd.weight", *(name if name in tensors else None for name in names), "output_norm.weight"]
            """),
            cause="Only the two ends that every model has were written; positions, a head, and anything unknown were dropped silently.",
            cure="Take each optional end if it is there, and raise ValueError if anything is left over.",
            see="right for the smallest toy, too short where there is an output.weight"),
        Mistake("missing weights taken for zeros", edit("if left or missing", "if left"),
            cause="A matrix that is not in the file became None; only a bias may be zeros.",
            cure="Raise ValueError for anything missing that does not end with `.bias`.",
            see="no error for a file without ffn_up"),
        Mistake("every end optional", edit("name not in optional", 'name.startswith("blk.")'),
            cause="token_embd.weight and output_norm.weight were left out where the file does not have them, and no model runs without them.",
            cure="Only position_embd.weight, output_norm.bias and output.weight may be left out; raise ValueError for the other two.",
            see="no error for a file without token_embd.weight"),
        Mistake("n_layers ignored", edit("    optional =", '    n_layers = len({name.split(".")[1] for name in tensors if name.startswith("blk.")})\n    optional ='),
            cause="The layers were counted from the names, so a file with a layer too few or too many is accepted.",
            cure="Ask for the layers 0 to n_layers - 1.", see="no error for a file with another number of layers"),
        Mistake("layers in the order of text", edit("range(n_layers)", "sorted(range(n_layers), key=str)"),
            cause="Sorted as text, layer 10 comes before layer 2.",
            cure="Count with `range(n_layers)`.", see="right up to ten layers, `blk.10.` after `blk.1.` for more"),
        Mistake("part by part",
            edit("for i in range(n_layers) for part in layer", "for part in layer for i in range(n_layers)"),
            cause="All layers' norms came first, then all layers' queries; a layer is to lie in one piece.",
            cure="Make the loop over the layers the outer one.",
            see="`blk.1.` in the place of the second part of `blk.0.`"),
        Mistake("biases after the matrices",
            edit("in layer]", 'in sorted(layer, key=lambda part: part.endswith(".bias"))]'),
            cause="The biases come together at the end of each layer, and each belongs after its matrix.",
            cure="Keep the order of `layer`.", see="right parts of each layer in another order"),
        Mistake("the ends together",
            edit("wanted += [f", "middle = [f").edit('"output.weight"]', '"output.weight"] + middle'),
            cause="output_norm follows the embedding, as in many GGUF files, and here it comes last.",
            cure="Put output_norm after the last layer.",
            see="output_norm.weight in second place, the layers after it"),
        Mistake("None at the ends", edit("    wanted = [name for name in wanted if name in tensors or name not in optional]\n", "").edit(
                'not name.endswith(".bias")', 'not name.endswith(".bias") and name not in optional'
            ),
            cause="None stands for positions, for the norm's bias or for a head that the model does not have.",
            cure="Leave an end out that is not there; zeros keep a place for the biases of the layers alone.",
            see="None in second place, and too many names"),
        Mistake("the head forgotten",
            edit(', "output.weight"]', "]").edit("if name not in wanted", 'if name not in [*wanted, "output.weight"]'),
            cause="output.weight, the head of a model that does not share it with the embedding, was dropped.",
            cure="Append it at the very end if it is there.", see="one name too few where the model has output.weight"),
    ),
)
