"""Which imports are not on an allow-list."""

from itertools import pairwise

from ...lab import Exercise, Mistake, edit


def off_the_list(found, allowed):
    """The imports that are not allowed.

    found: [(offset, module, name), ...], allowed: a set of pairs (module,
        name)
    ->   a list of the entries of found whose (module, name) is not in
         allowed, all of them, also those that come twice, in their order
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
    """Listed and unlisted names, and names that resemble listed ones; `?` on the list; nothing allowed, nothing found; random imports."""
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
        [(2**33 + 1, "copyreg extension", "7")],
        [(0, "os", "system"), (9, "os", "system"), (18, "os", "system")],
        [(0, "collections", "ordereddict"), (9, "Collections", "OrderedDict"), (20, "collections", "OrderedDict ")],
        [(0, "OrderedDict", "collections"), (5, "collections", ""), (9, "", "OrderedDict"), (9, "", "")],
        [(3, *ordered), (1, *rebuild), (2, *ordered)],
        [(0, "collections", "_rebuild_tensor_v2"), (7, "torch._utils", "OrderedDict")],
        [(0, "torch._utils_evil", "_rebuild_tensor_v2"), (7, "torch", "_rebuild_tensor_v2")],
        [(9, "sys", "exit"), (4, "os", "system"), (6, *ordered)],
        [(0, " collections", "OrderedDict"), (3, "collection", "sOrderedDict"), (6, "collections.abc", "OrderedDict"), (9, "collections", "OrderedDict\n"), (9, "collections\0", "OrderedDict")],
        [(0, "collections", "evil.OrderedDict"), (3, "collections", "NotOrderedDict"), (6, "builtins", "__import__")],
        [(4, "os", "system"), (4, "os", "system")],
        [(n, "os", f"name{n}") for n in range(300)],
        [],
        *drawn,
    ]
    several = {("builtins", name) for name in ("set", "len", "dict")} | {("operator", "len")}
    known = [(n, *pair) for n, pair in enumerate([*sorted(several), ("operator", "set")])]
    odd = {("torch*", "*"), ("my tools", "run"), ("os", "[a-z]*"), ("módulo", "größe"), ("x", "a:b/c,d")}  # no patterns: names like others
    like = [(0, "torch._utils", "run"), (3, "my", "tools run"), (5, "my tools", "run"), (9, "os", "system"), (12, "torch*", "*"), (15, "módulo", "größe"), (18, "mo\u0301dulo", "größe"), (21, "mdulo", "grosse"), (24, "x:a", "b/c,d"), (27, "x/a:b", "c,d"), (30, "x,a:b/c", "d")]
    old = [(0, "__builtin__", "set"), (8, "builtins", "set")]
    unknown = [(0, "?", "?"), (3, "builtins", "?"), (5, "?", "print")]
    return [*((found, listed) for found in made), (unknown, {("?", "?"), ("builtins", "?")}), ([(0, *ordered)], set()), (known, several), (like, odd), (old, {("builtins", "set")})]


def traits(found, allowed):
    """How the entries resemble the listed ones, and how they follow each other."""
    listed = [(module, name) in allowed for _, module, name in found]
    off = [(module, name) for (_, module, name), known in zip(found, listed) if not known]
    joined, modules, names = {".".join(pair) for pair in allowed}, {m for m, _ in allowed}, {n for _, n in allowed}
    return {
        "an unlisted import comes more than once": len(set(off)) < len(off),
        "an unlisted import comes after a listed one": any(True in listed[:i] and not x for i, x in enumerate(listed)),
        "a listed import comes after an unlisted one": any(False in listed[:i] and x for i, x in enumerate(listed)),
        "two listed imports follow each other": any(a and b for a, b in pairwise(listed)),
        "an unlisted import has a listed module": any(m in modules for m, _ in off),
        "an unlisted import has a listed name": any(n in names for _, n in off),
        "module and name of an import are listed, but not as a pair": any(m in modules and n in names for m, n in off),
        "module and name of an unlisted import, joined by a dot, read like a listed pair": any(f"{m}.{n}" in joined for m, n in off),
        "an unlisted import, with a dot between module and name, begins or ends with a listed one or is the beginning of one": any(
            f"{m}.{n}".startswith(one) or f"{m}.{n}".endswith(one) or one.startswith(f"{m}.{n}") for m, n in off for one in joined
        ),
        "the module of an unlisted import begins with that of a listed pair of the same name": any(m != a and n == b and m.startswith(a) for m, n in off for a, b in allowed),
        "the module of an unlisted import ends with that of a listed pair of the same name": any(m != a and n == b and m.endswith(a) for m, n in off for a, b in allowed),
        "the module of an unlisted import is not empty and the beginning of that of a listed pair of the same name": any(m and m != a and n == b and a.startswith(m) for m, n in off for a, b in allowed),
        "an unlisted import is on the list with module and name exchanged": any((n, m) in allowed for m, n in off),
        "a module or a name of an unlisted import is empty": any("" in pair for pair in off),
        "a module or a name of an unlisted import is `?`": any("?" in pair for pair in off),
        "a module or a name of a listed import is `?`": any("?" in pair for pair in allowed & {(m, n) for _, m, n in found}),
        "a listed import is found": any(listed),
        "an unlisted import is found": bool(off),
        "more than one unlisted import is found": len(off) > 1,
        "several names of one module are listed": len(modules) < len(allowed),
        "the offsets are not in order": [row[0] for row in found] != sorted(row[0] for row in found),
        "nothing is found": not found,
        "a listed pair has a star, a `[` or a space in it": any(set("* [") & set(m + n) for m, n in allowed),
        "a module is `__builtin__`, an old name of Python 2": any(m == "__builtin__" for _, m, _ in found),
        "`allowed` is empty": not allowed,
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Say which imports are not on an allow-list of (module, name) pairs.",
    reference=off_the_list, oracle=oracle, cases=cases, minutes=3, difficulty="warm-up",
    hints=(
        "An import passes if the list has its module and its name as one pair, letter for letter.",
        "`in` and `not in` ask a set; what you ask for must be a pair, as the items of the set are.",
    ),
    why="an allow-list refuses what nobody thought of; a list of bad names lets it through.",
    mistakes=(
        Mistake("the module alone compared",
            edit("(module, name) not in allowed", "module not in {m for m, _ in allowed}"),
            cause="Every name in a listed module passes. A module also holds the names that it imports itself.",
            cure="Compare the pair.", see="torch._utils.warnings let through"),
        Mistake("the name alone compared",
            edit("(module, name) not in allowed", "name not in {n for _, n in allowed}"),
            cause="A listed name passes from any module, also from one that an attacker wrote.",
            cure="Compare the pair.", see="mycollections.OrderedDict let through"),
        Mistake("module and name compared one by one",
            edit("(module, name) not in allowed",
                "module not in {m for m, _ in allowed} or name not in {n for _, n in allowed}"),
            cause="The module of one listed pair and the name of another pass together.",
            cure="Compare the pair.", see="collections._rebuild_tensor_v2 let through"),
        Mistake("the beginning compared", edit(
                "(module, name) not in allowed",
                'not any(f"{module}.{name}".startswith(f"{m}.{n}") for m, n in allowed)',
            ),
            cause="What begins with a listed pair, written with a dot, passes; since protocol 4 a dot in a name means an attribute.",
            cure="Compare the whole pair.", see="_rebuild_tensor_v2.__globals__ let through"),
        Mistake("module and name joined",
            edit("(module, name) not in allowed", 'f"{module}.{name}" not in {f"{m}.{n}" for m, n in allowed}'),
            cause="Joined with a dot, different pairs can become the same text.",
            cure="Compare pairs; they need no joining.", see="the module torch with a dotted name let through"),
        Mistake("a list of what is bad",
            edit("(module, name) not in allowed", 'module in ("os", "posix", "nt", "subprocess", "builtins")'),
            cause="Some unlisted modules are reported and others pass, as with a list of bad ones.",
            cure="Report what is not in `allowed`.", see="an extension code let through"),
        Mistake("unknown names let through", edit("if (module", 'if "?" not in (module, name) and (module'),
            cause="`?` stands for a module or a name that is not known, and it was let through.",
            cure="Treat `?` like any other name: it is not on the list.", see="('?', '?') let through"),
        Mistake("each name once",
            edit("return [(offset, module, name) for offset, module, name in found if (module, name) not in allowed]",
                "bad = {(m, n): (o, m, n) for o, m, n in reversed(found) if (m, n) not in allowed}\n    return [entry for entry in found if entry in bad.values()]"),
            cause="A name that the pickle imports at several offsets was reported for the first offset alone.",
            cure="Report every entry, each with its own offset.", see="one entry where three are expected"),
        Mistake("only the first", edit("allowed]", "allowed][:1]"),
            cause="Only the first unlisted import is reported.",
            cure="Report all of them.", see="one entry where several are expected"),
        Mistake("what is allowed in place of what is not", edit("not in", "in"),
            cause="The imports on the list were returned.",
            cure="Return those that are not on it.", see="the harmless ones reported"),
        Mistake("every import reported", edit("(module, name) not in allowed", "(offset, module, name) not in allowed"),
            cause="Listed imports are reported as well, as if none were found in the list. It holds pairs (module, name).",
            cure="Compare the pair of module and name.", see="every import reported, also the listed ones"),
        Mistake("pairs in place of entries", edit("[(offset, module, name) for", "[(module, name) for"),
            cause="You returned pairs, and the entries with their offsets are asked for.",
            cure="Return each entry as it is in `found`.", see="two items where three are expected"),
        Mistake("capitals ignored",
            edit("(module, name) not in allowed", "(module.lower(), name.lower()) not in {(m.lower(), n.lower()) for m, n in allowed}"),
            cause="Small and capital letters were treated alike. In Python they are different names.",
            cure="Compare letter for letter.", see="collections.ordereddict let through"),
        Mistake("spaces ignored", edit("(module, name) not in allowed", "(module.strip(), name.strip()) not in allowed"),
            cause="Spaces were taken off the names before they were compared.",
            cure="Compare letter for letter.", see="a name that ends in a space let through"),
        Mistake("the end compared",
            edit("(module, name) not in allowed", 'not any(f"{module}.{name}".endswith(f"{m}.{n}") for m, n in allowed)'),
            cause="What ends with a listed pair, written with a dot, passes: mycollections.OrderedDict, if collections.OrderedDict is listed.",
            cure="Compare the whole pair.", see="mycollections.OrderedDict let through"),
        Mistake("sorted", edit("return [", "return sorted([").edit("allowed]", "allowed])"),
            cause="The entries were sorted.",
            cure="Leave them in the order of `found`.", see="the right entries in another order"),
        Mistake("yes or no", edit("return [", "return any([").edit("allowed]", "allowed])"),
            cause="You answer whether there is any; the entries themselves are asked for.",
            cure="Return the list.", see="True where a list is expected"),
    ),
)
