"""Cheats and escapes as cells, for the tests of both walls, and how a notebook of such cells is graded."""

# ruff: noqa: E501 a cell is one line here, so that the tables can be read

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
from places import ROOT

from miniquant.lab import exercises
from miniquant.lab.grading import grade as grading
from miniquant.lab.grading.inside.wire import encode
from miniquant.lab.grading.room import PACKAGE

START = """
import ctypes, gc, importlib, inspect, json, os, shutil, signal, socket, struct, subprocess, sys, threading, time, types
import numpy as np
from miniquant.lab import exercise, exercises, find, check
libc = ctypes.CDLL(None, use_errno=True)
"""
PACKING = (
    "def pack_int4(values):\n    n = values.astype(np.uint8) & 15\n    return n[..., 0::2] | (n[..., 1::2] << 4)\n"
)

# what a cheat is called, the exercise that it is for, and a cell in which NAME is that exercise and ARGS its parameters
CHEATS = [
    ("the solution looked up", "magic_bytes", "NAME = exercise('NAME')(find('NAME').reference)"),
    ("the oracle looked up", "read_magic", "@exercise('NAME')\ndef NAME(ARGS):\n    return find('NAME').oracle(ARGS)"),
    ("every solution at once", "byte_order", "globals().update({n: s.reference for n, s in exercises().items()})"),
    (
        "the lesson imported",
        "pack_fields",
        "from miniquant.lessons.bytes.NAME import NAME as f\nNAME = exercise('NAME')(f)",
    ),
    (
        "the lesson imported in the call",
        "png_size",
        "@exercise('NAME')\ndef NAME(ARGS):\n    return importlib.import_module('miniquant.lessons.bytes.NAME').NAME(ARGS)",
    ),
    (
        "the lesson's text run",
        "get_bits",
        "@exercise('NAME')\ndef NAME(ARGS):\n"
        "    text = open(LESSONS + '/bytes/NAME.py').read()\n    exec(text, globals())\n    return oracle(ARGS)",
    ),
    (
        "the solutions' folder read",
        "join_nibbles",
        "@exercise('NAME')\ndef NAME(ARGS):\n    exec(open(SOLUTIONS + '/01-bytes.ipynb').read())",
    ),
    (
        "a neighbour's notebook read",
        "float16_value",
        "@exercise('NAME')\ndef NAME(ARGS):\n    exec(open(NEIGHBOUR).read())",
    ),
    (
        "the expected value found through frames",
        "rmse",
        "@exercise('NAME')\ndef NAME(ARGS):\n    frame = sys._getframe()\n    while frame:\n"
        "        for value in frame.f_locals.values():\n"
        "            if hasattr(value, 'oracle') and value.oracle:\n                return value.oracle(ARGS)\n"
        "        frame = frame.f_back",
    ),
    (
        "the exercise found among all objects",
        "gradients",
        "@exercise('NAME')\ndef NAME(ARGS):\n    for value in gc.get_objects():\n"
        "        if type(value).__name__ == 'Exercise' and value.name == 'NAME':\n            return value.oracle(ARGS)",
    ),
    (
        "bytes that equal everything",
        "header_bytes",
        "class Any(bytes):\n    def __eq__(self, other):\n        return True\n    __hash__ = bytes.__hash__\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    return Any()",
    ),
    (
        "an array that equals everything",
        "group_scales",
        "class Alike(np.ndarray):\n    def __eq__(self, other):\n        return np.ones(np.shape(other), bool)\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    return np.zeros(1, np.float32).view(Alike)",
    ),
    (
        "an integer that equals everything",
        "from_twos_complement",
        "class All(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\n"
        "    def __ne__(self, other):\n        return False\n@exercise('NAME')\ndef NAME(ARGS):\n    return All(7)",
    ),
    (
        "a number that equals everything",
        "bits_per_weight",
        "class Near(float):\n    def __eq__(self, other):\n        return True\n    __hash__ = float.__hash__\n"
        "    def __sub__(self, other):\n        return 0.0\n    __rsub__ = __sub__\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    return Near(1)",
    ),
    (
        "a text that equals everything",
        "format_of",
        "class Word(str):\n    def __eq__(self, other):\n        return True\n    __hash__ = str.__hash__\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    return Word('x')",
    ),
    (
        "a dict that equals everything",
        "tensor_offsets",
        "class Book(dict):\n    def keys(self):\n        return Same()\n    def __getitem__(self, key):\n        return Same()\n"
        "class Same:\n    def __eq__(self, other):\n        return True\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    return Book()",
    ),
    (
        "a list of objects that equal everything",
        "predict_jars",
        "class Same2:\n    def __eq__(self, other):\n        return True\n    def __len__(self):\n        return 3\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    return [Same2()] * 8",
    ),
    (
        "a tuple that lies about its length",
        "read_string",
        "class Pair(tuple):\n    def __len__(self):\n        return 2\n    def __eq__(self, other):\n        return True\n"
        "    __hash__ = None\n@exercise('NAME')\ndef NAME(ARGS):\n    return Pair()",
    ),
    (
        "a mock as the answer",
        "ungroup",
        "from unittest.mock import MagicMock, ANY\n@exercise('NAME')\ndef NAME(ARGS):\n    return ANY",
    ),
    (
        "an array of objects",
        "channel_scales",
        "@exercise('NAME')\ndef NAME(ARGS):\n    return np.array([ANY] * len(w), object)",
    ),
    (
        "an error of every class",
        "metadata_bytes",
        "class Every(Exception):\n    __class__ = property(lambda self: ValueError)\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    raise Every('no')",
    ),
    ("an error returned", "gguf_header", "@exercise('NAME')\ndef NAME(ARGS):\n    return ValueError('no')"),
    (
        "an object that is its own exercise",
        "descriptor_bytes",
        "class Own:\n    exercise = 'NAME'\n    student = staticmethod(lambda *a: b'')\n"
        "    status = 'passed'\nNAME = Own()",
    ),
    (
        "a report line forged",
        "gguf_string",
        "os.write(3, b'{\"exercise\": \"NAME\", \"status\": \"passed\"}\\n')\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    return b''",
    ),
    (
        "a number in place of a message",
        "key_value",
        "@exercise('NAME')\ndef NAME(ARGS):\n    os.write(3, b'7\\n')\n    return b''",
    ),
    (
        "bytes in place of a message",
        "tensor_info",
        "@exercise('NAME')\ndef NAME(ARGS):\n    os.write(3, b'\\xff\\x00{[\\n')\n    return b''",
    ),
    (
        "a result tagged as the grader's own object",
        "read_key_value",
        "@exercise('NAME')\ndef NAME(ARGS):\n    os.write(3, b'{\"result\": [\"H\", 0, \"\"]}\\n')\n    return b''",
    ),
    (
        "a result that is a function of the grader",
        "aligned_offsets",
        "@exercise('NAME')\ndef NAME(ARGS):\n    os.write(3, b'{\"result\": [\"m\", \"os\", \"system\"]}\\n')\n    return b''",
    ),
    (
        "a set of numbers with one hash",
        "effective_bits",
        "@exercise('NAME')\ndef NAME(ARGS):\n    return {n * (2**61 - 1) for n in range(10_001)}",
    ),
    (
        "a fraction that takes for ever",
        "tensor_bytes",
        "@exercise('NAME')\ndef NAME(ARGS):\n    digits = b'f' * 4_000_000\n"
        "    os.write(3, b'{\"result\": [\"q\", [\"i\", \"' + digits + b'\"], [\"i\", \"' + digits[1:] + b'\"]]}\\n')",
    ),
    (
        "endless messages",
        "bytes_by_dtype",
        "@exercise('NAME')\ndef NAME(ARGS):\n    for _ in range(100_000):\n        os.write(3, b'{\"problem\": \"x\"}\\n')",
    ),
    (
        "requests for objects that are not there",
        "overhead_bytes",
        "@exercise('NAME')\ndef NAME(ARGS):\n    for name in ('method', 'attribute', 'reference'):\n"
        "        os.write(3, json.dumps({'ask': name, 'number': 0, 'name': '__class__', 'arguments': ['l', []], 'named': {}}).encode() + b'\\n')\n"
        "    return 0",
    ),
    (
        "a deep result",
        "encode_q8_0",
        "@exercise('NAME')\ndef NAME(ARGS):\n    found = []\n    for _ in range(900):\n        found = [found]\n    return found",
    ),
    (
        "a result that holds itself",
        "encode_q4_0",
        "@exercise('NAME')\ndef NAME(ARGS):\n    found = []\n    found.append(found)\n    return found",
    ),
    (
        "a huge result",
        "decode_q4_0",
        "@exercise('NAME')\ndef NAME(ARGS):\n    return np.zeros((1 << 26), np.uint8)",
    ),
    (
        "a huge integer",
        "size_and_bits",
        "@exercise('NAME')\ndef NAME(ARGS):\n    return 1 << 30_000_000",
    ),
    (
        "the comparison patched",
        "affine_parameters",
        "import miniquant.lab.compare as c\nc.equal = c.difference = lambda *a, **k: None\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    return None",
    ),
    (
        "the judge patched",
        "round_with_minimum",
        "import miniquant.lab.judging as j\nj.evaluate = lambda *a, **k: None\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    return None",
    ),
    (
        "the check patched",
        "where_zero_lands",
        "import miniquant.lab as lab\nlab.check = lambda f: types.SimpleNamespace(status='passed', passed=True)\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    return None",
    ),
    (
        "the answers of another lab",
        "decode_q4_1",
        "from miniquant.lab.answers import answers\n@exercise('NAME')\ndef NAME(ARGS):\n"
        "    return answers('17-q4_1-bridge.ipynb').NAME(ARGS)",
    ),
    (
        "a stub that falls back, kept under another name",
        "activation_size",
        "@exercise('NAME')\ndef NAME(ARGS):\n    raise NotImplementedError\nspare = NAME\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    return spare(ARGS)",
    ),
    (
        "a stub asked before it is answered",
        "fold_into_norm",
        "@exercise('NAME')\ndef NAME(ARGS):\n    raise NotImplementedError\n"
        "KEPT = {}\nstub = NAME\n"
        "try:\n    KEPT['x'] = stub(*[np.ones((2, 2), np.float32)] * 3)\nexcept Exception:\n    pass\n"
        "@exercise('NAME')\ndef NAME(*a):\n    return KEPT",
    ),
    (
        "a thread that asks for the solution",
        "output_error",
        "@exercise('NAME')\ndef NAME(ARGS):\n    raise NotImplementedError\nother = NAME\n"
        "@exercise('NAME')\ndef NAME(ARGS):\n    found = []\n"
        "    t = threading.Thread(target=lambda: found.append(other(ARGS)))\n    t.start(); t.join(2)\n    return found[0]",
    ),
    ("an exit", "second_weight", "@exercise('NAME')\ndef NAME(ARGS):\n    sys.exit(0)"),
    ("an end without a word", "damped_hessian", "@exercise('NAME')\ndef NAME(ARGS):\n    os._exit(0)"),
    ("an endless recursion", "best_changes", "@exercise('NAME')\ndef NAME(ARGS):\n    return NAME(ARGS)"),
    (
        "the line to the grader closed",
        "gptq_column",
        "@exercise('NAME')\ndef NAME(ARGS):\n    os.close(3)",
    ),
    (
        "a signature that lies",
        "widest_sum",
        "@exercise('NAME')\ndef NAME(*a):\n    return 0\n"
        "NAME.student.__signature__ = inspect.Signature([inspect.Parameter('ok', 1)])",
    ),
]  # fmt: skip

# answers that are right, and have the library do it; all are for pack_int4, each in a notebook of its own
BY_THE_LIBRARY = {
    "imported": "from miniquant import pack_nibbles\n@exercise('pack_int4')\ndef pack_int4(values):\n    return pack_nibbles(values)",
    "imported in the call": "@exercise('pack_int4')\ndef pack_int4(values):\n    import miniquant.quantization.packing as p\n    return p.pack_nibbles(values)",
    "by a name that is put together": "@exercise('pack_int4')\ndef pack_int4(values):\n    m = importlib.import_module('mini' + 'quant')\n    return getattr(m, 'pack_' + 'nibbles')(values)",
    "by its code": "import miniquant\nf = types.FunctionType(miniquant.pack_nibbles.__code__, miniquant.pack_nibbles.__globals__)\n@exercise('pack_int4')\ndef pack_int4(values):\n    return f(values)",
    "kept from a cell": "import miniquant\nTOOLS = [miniquant.pack_nibbles]\n@exercise('pack_int4')\ndef pack_int4(values):\n    return TOOLS[0](values)",
    "by its text": "import miniquant.quantization.packing as p\nexec(inspect.getsource(p).replace('from ..', 'from miniquant.'), globals())\n@exercise('pack_int4')\ndef pack_int4(values):\n    return pack_nibbles(values)",
}  # fmt: skip

# what is tried from inside; each must raise, or give what follows the arrow
ESCAPES = {
    "the descriptors": "open_files() -> [0, 1, 2, 3]",
    "read a system file": "open('/etc/passwd').read()",
    "read a neighbour's notebook": "open(NEIGHBOUR).read()",
    "see the class": "os.listdir(CLASS)",
    "read a solution": "open(SOLUTIONS + '/09-writer.ipynb').read()",
    "read a lesson": "open(LESSONS + '/writer/pack_int4.py').read()",
    "read a lesson's bytecode": "[open(e, 'rb').read(9) for e in os.scandir(LESSONS + '/writer/__pycache__')][0]",
    "read the home": "os.listdir(HOME)",
    "read the grader's memory": "open(f'/proc/{GRADER}/mem', 'rb').read(1)",
    "read the grader's environment": "open(f'/proc/{GRADER}/environ', 'rb').read()",
    "read the grader's folder": "os.listdir(f'/proc/{GRADER}/cwd')",
    "read the grader's files": "os.listdir(f'/proc/{GRADER}/fd')",
    "read by way of the root": "open(f'/proc/self/root{NEIGHBOUR}').read()",
    "create a file": "open(CLASS + '/stolen', 'w')",
    "append to a file": "open(PRECIOUS, 'a')",
    "truncate a file": "os.truncate(PRECIOUS, 0)",
    "remove a file": "os.remove(PRECIOUS)",
    "rename a file": "os.rename(PRECIOUS, CLASS + '/stolen')",
    "move a file": "shutil.move(PRECIOUS, 'here')",
    "link to a file and read it": "(os.symlink(PRECIOUS, 'soft'), open('soft').read())",
    "link a file": "os.link(PRECIOUS, 'hard')",
    "make a link there": "os.symlink('/', CLASS + '/stolen')",
    "make a folder there": "os.mkdir(CLASS + '/stolen')",
    "make a pipe there": "os.mkfifo(CLASS + '/stolen')",
    "make a device": "os.mknod('device', 0o20666, os.makedev(1, 8))",
    "save an array there": "np.save(CLASS + '/stolen', np.zeros(2))",
    "make a database there": "__import__('sqlite3').connect(CLASS + '/stolen').execute('create table t (a)')",
    "write by the C library": "must(libc.creat(os.fsencode(CLASS + '/stolen'), 0o600))",
    "set an attribute": "os.setxattr(PRECIOUS, 'user.a', b'1')",
    "write to the shared memory": "open('/dev/shm/stolen', 'w')",
    "make a queue": "must(libc.syscall(240, b'stolen', 0o102, 0o600, None))",
    "keep shared memory": "must(libc.shmget(0, 4096, 0o1600))",
    "keep semaphores": "must(libc.semget(0, 1, 0o1600))",
    "keep a file in memory": "os.memfd_create('a')",
    "fork": "os.fork()",
    "fork by the C library": "must(libc.fork())",
    "run a program": "subprocess.run(['true'])",
    "run a shell": "bad(os.system('true'))",
    "run a shell by the C library": "bad(libc.system(b'true'))",
    "become a program": "os.execv(sys.executable, [sys.executable, '-c', ''])",
    "spawn a program": "os.posix_spawn('/bin/true', ['true'], {})",
    "start a process of Python's": "__import__('multiprocessing').get_context('fork').Process(target=print).start()",
    "open a socket": "socket.socket()",
    "connect to a server": "socket.create_connection(('127.0.0.1', PORT), 2)",
    "send a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
    "open a local socket": "socket.socket(socket.AF_UNIX)",
    "open a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "look up a host": "socket.getaddrinfo('localhost.example', 80)",
    "fetch a page": "__import__('urllib.request').request.urlopen(f'http://127.0.0.1:{PORT}', timeout=2)",
    "kill the grader": "os.kill(GRADER, 9)",
    "stop the parent": "os.kill(os.getppid(), signal.SIGSTOP)",
    "kill the group": "os.killpg(0, 9)",
    "kill everything": "os.kill(-1, 9)",
    "trace the parent": "must(libc.ptrace(16, os.getppid(), 0, 0))",
    "outlive the parent": "must(libc.prctl(1, 0, 0, 0, 0))",
    "raise a limit": "__import__('resource').setrlimit(7, (100_000, 100_000))",
    "take much memory": "bytearray(6 << 30)",
    "map much memory": "__import__('mmap').mmap(-1, 6 << 30)",
    "write a large file": "open('large', 'wb').truncate(1 << 30)",
    "open many files": "[open('/dev/null') for _ in range(1000)]",
    "make a namespace": "must(libc.unshare(0x10000000))",
    "mount": "must(libc.mount(b'none', b'.', b'tmpfs', 0, None))",
    "change the root": "os.chroot('.')",
    "use io_uring": "must(libc.syscall(425, 1, None))",
    "load a program into the kernel": "must(libc.syscall(321, 0, None, 0))",
    "change the clock": "time.clock_settime(time.CLOCK_REALTIME, 0)",
    "change the host's name": "socket.sethostname('owned')",
    "use another processor's calls": "must(libc.syscall(0x40000000 + 57))",
    "use a call of tomorrow": "must(libc.syscall(500))",
    "the lessons": "importlib.import_module('miniquant.lessons.writer.pack_int4').EXERCISE.oracle.__code__",
    "the catalogue": "importlib.import_module('miniquant.lab.catalogue').find('pack_int4').oracle.__code__",
    "a secret of the grader's": "os.environ['MINIQUANT_TEST_SECRET']",
    "other folders of work": "os.listdir(os.path.dirname(os.getcwd()))",
}  # fmt: skip
HELP = """
def must(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), 'refused')
    return result
def bad(result):
    if result != 0:
        raise OSError('it failed')
    return result
def open_files():
    found = []
    for number in range(256):
        try:
            os.fstat(number); found.append(number)
        except OSError:
            pass
    return found
def pack_int4(values):
    tried = {}
    for name, code in ESCAPES.items():
        try:
            tried[name] = 'DONE ' + repr(eval(code.split(' -> ')[0]))[:60]
        except BaseException as error:
            tried[name] = type(error).__name__
    return tried
pack_int4 = exercise('pack_int4')(pack_int4)
"""


def write(path, *cells):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]}))
    return path


def words_of(folder, precious, neighbour):
    """The first lines of a hostile notebook: where what it is after lies."""
    words = {
        "CLASS": str(folder), "PRECIOUS": str(precious), "NEIGHBOUR": str(neighbour), "GRADER": os.getpid(),
        "LESSONS": str(PACKAGE / "lessons"), "SOLUTIONS": str(ROOT / "solutions"), "HOME": str(Path.home()),
        "PORT": 9, "ESCAPES": ESCAPES,
    }  # fmt: skip
    return START + "\n".join(f"{name} = {value!r}" for name, value in words.items())


def graded(desk, path, seconds=90):
    result = grading.Result("x")
    grading.grade_notebook(path, result, desk, seconds)
    return result


def parameters(name):
    code = exercises()[name].reference.__code__
    return ", ".join(code.co_varnames[: code.co_argcount])


def try_escapes(child, path):
    """What each escape of a hostile notebook comes to in a room: DONE and a value, or the name of an error."""
    about = {"name": path.name, "skip": [], "labs": {"pack_int4": "09"}, "seconds": 30, "sliced": False}
    child.until = time.monotonic() + 120
    child.say(notebook=encode(path.read_bytes()), **about)
    while "found" not in child.hear(child.until):
        pass
    child.say(call="pack_int4", arguments=["l", [encode(np.zeros(2, np.int8))]], clock=30.0, seconds=None)
    reply = child.hear(child.until)
    return {key[1]: value[1] for key, value in reply["result"][1]}
