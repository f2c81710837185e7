"""Which imports are not on an allow-list."""

from ...lab import Exercise, Mistake, edit


def off_the_list(found, allowed):
    """The imports that are not allowed.

    found: [(offset, module, name), ...], allowed: a set of (module, name)   ->   the entries of found that are not in it
    """
    return [(offset, module, name) for offset, module, name in found if (module, name) not in allowed]


def oracle(found, allowed):
    """Every entry against every pair, one comparison at a time."""
    bad = []
    for offset, module, name in found:
        if not any(module == m and name == n for m, n in allowed):
            bad.append((offset, module, name))
    return bad


def cases(random):
    """Listed and unlisted names, and names that resemble listed ones; nothing allowed, nothing found; random imports."""
    rebuild, ordered = ("torch._utils", "_rebuild_tensor_v2"), ("collections", "OrderedDict")
    listed = {rebuild, ordered}
    pairs = [rebuild, ordered, ("os", "system"), ("builtins", "print"), ("torch._utils", "os.system")]
    drawn = [[(n, *pairs[n % 5]) for n in random.integers(0, 200, 6).tolist()] for _ in range(2)]
    made = [
        [(0, "builtins", "print")],
        [(0, *ordered)],
        [(0, *ordered), (9, *rebuild), (30, "torch._utils", "warnings")],
        [(0, "mycollections", "OrderedDict"), (40, "torch._utils_evil", "run")],
        [(0, "torch._utils", "_rebuild_tensor_v2.__globals__")],
        [(5, "torch", "_utils._rebuild_tensor_v2")],
        [(0, "?", "?"), (3, "builtins", "?")],
        [(0, "os", "system"), (20, *ordered), (41, "posix", "system"), (60, "nt", "system")],
        [(7, "copyreg extension", "7")],
        [],
        *drawn,
    ]
    return [*((found, listed) for found in made), ([(0, *ordered)], set())]


EXERCISE = Exercise(
    goal="Say which imports are not on an allow-list of (module, name) pairs.",
    reference=off_the_list, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up",
    hints=(
        "An import passes if its module and its name stand on the list together, letter for letter.",
        "`[entry for entry in found if (entry[1], entry[2]) not in allowed]`.",
    ),
    why="an allow-list fails safe: what nobody thought of is refused.",
    mistakes=(
        Mistake("the module alone compared",
            edit("(module, name) not in allowed", "module not in {m for m, _ in allowed}"),
            cause="Whatever lies in a listed module passes, and a module holds all that it imports, too.",
            cure="Compare the pair.", see="torch._utils.warnings let through"),
        Mistake("the name alone compared",
            edit("(module, name) not in allowed", "name not in {n for _, n in allowed}"),
            cause="A listed name passes from any module, from the attacker's own too.",
            cure="Compare the pair.", see="mycollections.OrderedDict let through"),
        Mistake("the beginning compared", edit(
                "(module, name) not in allowed",
                'not any(f"{module}.{name}".startswith(f"{m}.{n}") for m, n in allowed)',
            ),
            cause="A name that begins like a listed one passes; since protocol 4 a dot in a name means an attribute.",
            cure="Compare the whole pair.", see="_rebuild_tensor_v2.__globals__ let through"),
        Mistake("module and name joined",
            edit("(module, name) not in allowed", 'f"{module}.{name}" not in {f"{m}.{n}" for m, n in allowed}'),
            cause="Joined with a dot, different pairs become the same text.",
            cure="Compare pairs; they need no joining.", see="the module torch with a dotted name let through"),
        Mistake("a list of what is bad",
            edit("(module, name) not in allowed", 'module in ("os", "posix", "nt", "subprocess", "builtins")'),
            cause="This names a few bad modules and lets the rest through.",
            cure="Report what is not in `allowed`.", see="an extension code let through"),
        Mistake("unknown names let through", edit("if (module", 'if "?" not in (module, name) and (module'),
            cause="A name that cannot be known was let through.",
            cure="Treat `?` like any other name: it is not on the list.", see="('?', '?') let through"),
        Mistake("only the first", edit("allowed]", "allowed][:1]"),
            cause="The search stopped at the first one.",
            cure="Report all of them.", see="one entry where several are expected"),
        Mistake("what is allowed in place of what is not", edit("not in", "in"),
            cause="The imports on the list were returned.",
            cure="Return those that are not on it.", see="the harmless ones reported"),
    ),
)
