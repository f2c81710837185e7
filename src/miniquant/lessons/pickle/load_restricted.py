"""A loader that imports nothing off a list."""

import cmath
import io
import math
import pickle
import sys
from collections import OrderedDict
from fractions import Fraction

from ...formats.pickle.scan import imports, off_list
from ...lab import Exercise, Mistake, body, edit
from .stage import BYSTANDER, loaded
from .toys import Call, short_text, watched


def load_restricted(data, allowed):
    """Load a pickle that imports nothing off the list.

    data: bytes, allowed: a set of pairs (module, name), letter by letter as
        in the pickle
    ->   the object

    Raises pickle.UnpicklingError if the pickle imports any pair that is not
    allowed. By then your function has imported no module and called no
    function of such a pair. (The numbers of EXT1, EXT2
    and EXT4 are not part of this exercise.)
    """

    class Loader(pickle.Unpickler):
        def find_class(self, module, name):
            if (module, name) not in allowed:
                raise pickle.UnpicklingError(f"{module}.{name} is not on the list")
            return super().find_class(module, name)

    return Loader(io.BytesIO(data)).load()


def oracle(data, allowed):
    """Scanned first, without running it; loaded only if there is nothing to object to."""
    if off_list(imports(data), allowed):
        raise pickle.UnpicklingError("a name is not on the list")
    return pickle.loads(data)


def cases(random):
    """Data without imports; listed and unlisted names, in each way in which a pickle imports; random numbers."""
    ordered, numbers = ("collections", "OrderedDict"), ("fractions", "Fraction")
    module, factorial = short_text("math"), short_text("factorial")
    computed = b"\x80\x04" + module + b"coperator\nadd\n" + short_text("facto") + short_text("rial") + b"\x86R\x93K\x05\x85R."
    memo = b"\x80\x04%b\x94%b\x9400%b0h\x00h\x01\x93K\x05\x85R." % (module, factorial, short_text("sqrt"))
    return [
        (pickle.dumps([1, "two"]), set()),
        (pickle.dumps(OrderedDict(a=1)), {ordered}),
        (pickle.dumps(OrderedDict(a=1)), set()),
        (pickle.dumps(Fraction(1, 3), 2), {ordered, numbers}),
        (pickle.dumps(Fraction(1, 3), 4), {ordered}),
        (pickle.dumps([Call(math.factorial, (5,)), Call(math.gcd, (4, 6))]), {("math", "factorial"), ("math", "gcd")}),
        (pickle.dumps(Call(math.factorial, (5,))), {("math", "sqrt"), ordered}),
        (pickle.dumps(Call(math.factorial, (5,))), {("mat", "factorial"), ("math", "fact"), ("", "math.factorial")}),
        (pickle.dumps(Call(len, ("abc",))), {("operator", "len"), ("builtins", "max")}),
        (pickle.dumps({"w": [Call(math.gcd, (4, 6)), Fraction(1, 3)]}), {("fractions", "gcd"), numbers}),
        (b"(cmath\ngcd\nK\x04K\x06\x86Rcmath\ngcd\nK\x09K\x06\x86Rl.", {("math", "gcd")}),  # imported twice
        (pickle.dumps([Call(math.sqrt, (4,)), Call(cmath.sqrt, (4,))]), {("math", "sqrt"), ("cmath", "sqrt")}),
        (pickle.dumps({1, 2}, 2), {("__builtin__", "set"), ("builtins", "set")}),
        (pickle.dumps(random.integers(0, 100, 5).tolist()), {ordered}),
        (f"]c{BYSTANDER}\ncalled\n)Ra.".encode(), {(BYSTANDER, "called")}),
        (pickle.dumps(Call(sys.intern, ("a",))), {ordered}),
        (pickle.dumps([OrderedDict(a=1), Call(math.gcd, (4, 6))], 4), {ordered}),
        (pickle.dumps(["math", "factorial"]), set()),
        (b"(K\x05imath\nfactorial\n.", {ordered}),
        (b"(U\x031/3ifractions\nFraction\n.", {numbers}),  # a text of Python 2
        (memo, {("math", "sqrt")}),
        (memo, {("math", "factorial")}),
        (computed, {("operator", "add")}),
        (b"\x80\x04" + module + short_text("factorial.__self__") + b"\x93.", {("math", "factorial")}),
        (b"\x80\x04" + short_text("os") + short_text("path.join") + b"\x93.", {("os.path", "join")}),
        (f"c{BYSTANDER}\ncalled\n)R.".encode(), {ordered}),
        (pickle.dumps(math.factorial), {("Math", "factorial"), ("math", "Factorial"), ("MATH", "FACTORIAL")}),
        (pickle.dumps(math.factorial), {("math", "factorial "), (" math", "factorial"), ("math.", "factorial")}),
        (pickle.dumps(math.factorial), {("math", "factorials"), ("maths", "factorial"), ("cmath", "factorial")}),
        (pickle.dumps(math.factorial), {("factorial", "math")}),
        (b"\x80\x04" + module + short_text("gcd.__self__.factorial") + b"\x93.", {("math", "factorial")}),
        (b"\x80\x04" + short_text("collections") + short_text("OrderedDict.fromkeys") + b"\x93.", {("collections", "OrderedDict.fromkeys")}),
        (b"\x80\x04" + short_text("os.path") + short_text("join") + b"\x93.", {("path", "join"), ("os", "join")}),
        (b"cMath\nfactorial\n.", {("math", "factorial")}),
        (b"cmath\na:b/factorial\n.", {("matha", ":b/factorial"), ("math:a", "b/factorial"), ("math/a:b", "factorial")}),
        (pickle.dumps({1, 2}, 2), {("__builtin__", "set")}),  # an old name of Python 2
        (pickle.dumps({1, 2}, 2), {("builtins", "set")}),
        (b"cbuiltins\nset\n.", {("__builtin__", "set")}),
        (b"ccopy_reg\n_reconstructor\n.", {("copy_reg", "_reconstructor")}),
        (b"ccopy_reg\n_reconstructor\n.", {("copyreg", "_reconstructor")}),
        (b"cmath \nfactorial\n.", {("math", "factorial")}),
        (b"cmath\n factorial\n.", {("math", "factorial")}),
        (b"cmath\nfactorial\n.", {("m.th", "fact.*"), ("math*", "*")}),
        (b"ccollections.abc\nSized\n.", {ordered}),
        (b"cos.path\njoin\n.", {("os.path", "join")}),
        (b"ccopyreg\n_reconstructor\n.", {("copyreg", "_reconstructor")}),
        (b"\x80\x04Vmath\nVfactori\\u0061l\n\x93.", {("math", "gcd")}),
        (b"\x80\x04" + module + factorial + short_text("math") + short_text("gcd") + b"00\x93.", {("math", "gcd")}),
        (b"\x80\x04" + module + factorial + short_text("math") + short_text("gcd") + b"00\x93.", {("math", "factorial")}),
        (b"\x80\x04" + short_text(BYSTANDER) + short_text("called") + b"\x93.", set()),
    ]


def traits(data, allowed):
    """How the pickle imports, and how what it imports resembles the list."""
    found = imports(data)
    pairs = [(entry.module, entry.name) for entry in found]
    off = [pair for pair in pairs if pair not in allowed]
    opcodes, ran = {entry.opcode for entry in found}, watched(data)
    steps = [one.opcode for one in ran]
    tops = [one.stack[-2:] for one in ran if one.opcode == "STACK_GLOBAL"]
    listed = [pair in allowed for pair in pairs]
    lower = {(m.lower(), n.lower()) for m, n in allowed}
    joined = {".".join(pair) for pair in allowed}
    modules, names = {m for m, _ in allowed}, {n for _, n in allowed}
    return {
        "nothing is imported": not found,
        "an import of a listed pair comes before one that is not listed": any(True in listed[:i] and not x for i, x in enumerate(listed)),
        "module and name of an unlisted import, joined by a dot, read like a listed pair": any(f"{m}.{n}" in joined for m, n in off),
        "an unlisted import is on the list in other letters, large for small": any((m.lower(), n.lower()) in lower for m, n in off),
        "an unlisted import is on the list with spaces or points around module or name": any((m, n) in {(a.strip(" ."), b.strip(" .")) for a, b in allowed} for m, n in off),
        "an unlisted import is on the list without the white space around its module or name": any((m.strip(), n.strip()) in allowed for m, n in off),
        "an unlisted import is on the list with module and name exchanged": any((n, m) in allowed for m, n in off),
        "module and name of an import are listed, but not as a pair": any(m in modules and n in names for m, n in off),
        "an unlisted import has a listed module and a name that is not listed": any(m in modules and n not in names for m, n in off),
        "an unlisted import has a listed name and a module that is not listed": any(n in names and m not in modules for m, n in off),
        "the name of an unlisted import has dots, and its last part is listed with the module": any("." in n and (m, n.split(".")[-1]) in allowed for m, n in off),
        "the name of an unlisted import has dots, and its first part is listed with the module": any("." in n and (m, n.split(".")[0]) in allowed for m, n in off),
        "the name of an unlisted import has dots, and a part of it is a listed name": any("." in n and set(n.split(".")) & names for _, n in off),
        "of the modules of an unlisted import and a listed pair one contains the other, and of their names, too": any((m in a or a in m) and (n in b or b in n) for m, n in off for a, b in allowed),
        "a POP comes before a STACK_GLOBAL": any(a == "POP" and "STACK_GLOBAL" in steps[i:] for i, a in enumerate(steps)),
        "STACK_GLOBAL takes something that is no text of the pickle as module or name": any(None in top for top in tops),
        "the pickle has the escape \\u0061": b"\\u0061" in data,
        "something is called": not {"REDUCE", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"}.isdisjoint(steps),
        "a module is `__builtin__` or `copy_reg`, old names of Python 2": any(m in ("__builtin__", "copy_reg") for m, _ in pairs),
        "an import is of the module of the check that nothing has imported yet": any(m == BYSTANDER for m, _ in pairs),
        **{f"{opcode} imports": True for opcode in opcodes},
        "something is imported": bool(found),
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Load a pickle, and refuse it at the first name that is not on an allow-list.",
    reference=load_restricted, oracle=oracle, cases=cases, minutes=6, difficulty="core", observe=loaded,
    hints=(
        "Change one thing of Python's machine: what it does when a pickle asks for a name. Ask the list there, before anything is imported.",
        "Override `find_class` in a subclass of `pickle.Unpickler`; `super()` still does the import itself. An unpickler reads from a file, and `io.BytesIO` makes one of bytes.",
    ),
    why="`weights_only=True` is the same idea, with a list that the authors of PyTorch keep.",
    mistakes=(
        Mistake("everything allowed", edit("Loader(io.BytesIO(data)).load()", "pickle.loads(data)"),
            cause="The list is never asked: whatever the pickle asks for is imported, and called if it asks for a call.",
            cure="Subclass `pickle.Unpickler` and override `find_class`.",
            see="a result where UnpicklingError is expected"),
        Mistake("refused after the load",
            edit("return Loader(io.BytesIO(data)).load()",
                "result = pickle.loads(data)\n    if off_list(imports(data), allowed):\n        raise pickle.UnpicklingError\n    return result"),
            cause="The pickle runs first, and the list is asked afterwards. By then all its imports and calls have happened.",
            cure="Ask the list in `find_class`, which is called before the import.",
            see="the refusal comes too late: a function was called"),
        Mistake("old names renamed before the list is asked",
            edit("if (module, name) not in allowed", 'if (module.replace("__builtin__", "builtins"), name) not in allowed'),
            cause="`__builtin__` was changed to `builtins` before you asked the list, and the list spells a name as the pickle does.",
            cure="Compare the pair as it comes; `super().find_class` knows the old names.",
            see="an UnpicklingError for `__builtin__`, `set`, which is listed"),
        Mistake("the list asked after the import",
            edit("if (module, name) not in allowed", "found = super().find_class(module, name)\n            if (module, name) not in allowed")
            .edit("return super().find_class(module, name)", "return found"),
            cause="The module is imported before the list is asked. The first import of a module runs its code.",
            cure="Ask the list first.", see="the refusal comes too late: a function was imported"),
        Mistake("the module alone compared",
            edit("(module, name) not in allowed", "module not in {m for m, _ in allowed}"),
            cause="Every name of a listed module gets through, and modules import other modules.",
            cure="Compare the pair (module, name).", see="math.factorial let through because math.sqrt is listed"),
        Mistake("the name alone compared",
            edit("(module, name) not in allowed", "name not in {n for _, n in allowed}"),
            cause="A listed name gets through from any module.",
            cure="Compare the pair (module, name).", see="builtins.len let through because operator.len is listed"),
        Mistake("a list of what is bad",
            edit("(module, name) not in allowed", 'module in ("os", "posix", "nt", "subprocess", "sys")'),
            cause="Some names off the list are refused and others pass, as with a list of what is forbidden: there is always one more.",
            cure="List what is allowed, and refuse all else.", see="an import that is not on the list let through"),
        Mistake("None for what is refused",
            edit('raise pickle.UnpicklingError(f"{module}.{name} is not on the list")', "return None"),
            cause="A refused name became None, and the pickle runs on with it.",
            cure="Raise `pickle.UnpicklingError`.",
            see="None where a refusal is expected, or an error that None cannot be called"),
        Mistake("the import not returned", edit("return super()", "super()"),
            cause="A listed name becomes None, and the pickle runs on with it, as if `find_class` returned nothing.",
            cure="Return what `super().find_class(module, name)` gives.",
            see="the refusals right, and `'NoneType' object is not callable` for a name that is listed"),
        Mistake("everything refused", edit("if (module, name) not in allowed", "if module"),
            cause="Listed names are refused as well.",
            cure="Return `super().find_class(module, name)` for a listed pair.",
            see="an UnpicklingError for an OrderedDict that is listed"),
        Mistake("imported by hand", edit("super().find_class(module, name)", "getattr(__import__(module), name)"),
            cause="Old names, such as `__builtin__`, and names with dots are not found, as if you imported by yourself. pickle's own `find_class` finds them.",
            cure="Let `super().find_class` do the import.", see="No module named `__builtin__`"),
        Mistake("only GLOBAL searched", body("""
                import pickletools

                for opcode, argument, _ in pickletools.genops(data):
                    if opcode.name == "GLOBAL" and tuple(argument.split(" ")) not in allowed:
                        raise pickle.UnpicklingError
                return pickle.loads(data)
            """),
            cause="Only imports by GLOBAL are refused. Since protocol 4 Python writes STACK_GLOBAL, and there are others.",
            cure="Override `find_class`, to which all of them come.", see="a result for an import of protocol 4"),
        Mistake("module and name compared one by one",
            edit("(module, name) not in allowed", "module not in {m for m, _ in allowed} or name not in {n for _, n in allowed}"),
            cause="The module of one listed pair and the name of another pass together.",
            cure="Compare the pair.", see="a name let through that is in no listed pair"),
        Mistake("the beginning of the module compared",
            edit("(module, name) not in allowed", "not any(module.startswith(m) and name == n for m, n in allowed)"),
            cause="A listed name passes from every module that begins with the listed module: from math, if mat is listed.",
            cure="Compare the whole pair.", see="math.factorial let through because mat.factorial is listed"),
        Mistake("the first part of the name compared",
            edit("(module, name) not in allowed", '(module, name.split(".")[0]) not in allowed'),
            cause="Since protocol 4 a name may have dots: `factorial.__self__` is an attribute of a listed function, and not listed.",
            cure="Compare the whole name.", see="math.factorial.__self__ let through"),
        Mistake("the refusal caught", edit("return Loader(io.BytesIO(data)).load()",
                "try:\n        return Loader(io.BytesIO(data)).load()\n    except pickle.UnpicklingError:\n        return None"),
            cause="None comes back, and the error must reach the caller.",
            cure="Let the error reach the caller.", see="None where an UnpicklingError is expected"),
        Mistake("the pair returned", edit("return super().find_class(module, name)", "return (module, name)"),
            cause="`find_class` must return the object itself, and you return its name.",
            cure="Return what `super().find_class` gives.", see="an error that a tuple is not callable"),
    ),
)
