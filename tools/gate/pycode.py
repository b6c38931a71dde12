"""What Python code given on a command line may do. Owns the lists of modules and of their harmless parts;
runs nothing.

Invariant: what is not on a list is not harmless; code that Python cannot read is not either."""

from __future__ import annotations

import ast

_SAFE = """json math cmath re datetime time random string collections itertools functools statistics decimal fractions
textwrap pprint hashlib hmac uuid calendar platform struct operator typing dataclasses enum unicodedata difflib ast
    tokenize inspect numpy bisect heapq copy types colorsys locale secrets zlib ipaddress keyword sysconfig warnings
    contextlib abc csv html configparser tomllib base64 binascii codecs glob fnmatch pathlib array numbers graphlib
    zoneinfo token stat errno mimetypes quopri shlex this __future__"""
PARTS = {
    "sys": """argv stdin stdout stderr version version_info platform executable maxsize exit getsizeof byteorder flags
    implementation getrecursionlimit float_info int_info hexversion prefix path""",
    "os": """path getcwd listdir sep linesep cpu_count getpid uname stat scandir walk getloadavg name curdir pathsep
    getuid access get_terminal_size""",
    "os.path": "join exists isfile isdir basename dirname getsize abspath realpath expanduser splitext relpath getmtime",
    "shutil": "which disk_usage get_terminal_size",
    "socket": "gethostname",
    "importlib": "metadata",
    "importlib.metadata": "version distributions",
    "urllib": "parse",
    "urllib.parse": "quote unquote urlparse urlsplit urlencode parse_qs urljoin quote_plus unquote_plus",
}
_OF_ANY = frozenset(["__version__", "__file__", "__name__"])
_CALLS = """exec eval compile getattr setattr delattr globals vars locals breakpoint input memoryview open"""
_CHANGES = """write write_text write_bytes writelines unlink rmdir mkdir touch rename chmod lchmod symlink_to hardlink_to link_to
    system popen rmtree remove_file open os sys subprocess shutil builtins socket modules save savez savetxt tofile memmap
    fromfile ctypeslib f2py extract extractall run spawn fork execv putenv environ dump sethook settrace loader
    load_module exec_module run_module runcode runsource runctx getmodule currentframe stack f_globals gi_frame attrgetter methodcaller"""
SAFE, _NAMES, _METHODS = (frozenset(each.split()) for each in (_SAFE, _CALLS, _CHANGES))


def harmless(code: str) -> bool:
    """Whether `code` only computes, prints and reads files that it names."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    partly = set[str]()
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.partition(".")[0]
                if top not in SAFE:
                    if each.asname or top != each.name and each.name not in PARTS:
                        return False
                    partly.add(top)
        elif isinstance(node, ast.ImportFrom):
            names = {each.name for each in node.names}
            given = names if node.module in SAFE else PARTS.get(node.module or "", "").split()
            if node.level or names - set(given) or names & {"*", *_METHODS}:
                return False
    paths = any(
        "pathlib" in ast.dump(n) for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)
    )
    shown = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    called = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
    if paths and any(getattr(node, "attr", "") == "replace" for node in nodes):
        return False  # of a path: it moves a file
    return all(_fine(node, partly, shown, called) for node in nodes)


def _fine(node: ast.AST, partly: set[str], shown: set[int], called: dict[int, ast.Call]) -> bool:
    if isinstance(node, ast.Name):
        if node.id in partly and id(node) not in shown:
            return False  # a module under another name
        if node.id == "open" and id(node) in called:
            return _reads(called[id(node)])
        return node.id not in _NAMES and (node.id[:2] != "__" or node.id == "__name__")
    if isinstance(node, ast.Attribute):
        name = node.attr
        if isinstance(node.value, ast.Name) and node.value.id in partly:
            return name in PARTS.get(node.value.id, "").split() or name in _OF_ANY
        if name == "write" and isinstance(node.value, ast.Attribute):
            return node.value.attr in ("stdout", "stderr")
        if name == "load" and "numpy" in ast.dump(node.value):
            return False
        return name not in _METHODS and (name[:1] != "_" or name in _OF_ANY)
    return True


def _reads(call: ast.Call) -> bool:
    """Whether an open() opens for reading."""
    mode = call.args[1:2] + [each.value for each in call.keywords if each.arg in ("mode", None)]
    if any(isinstance(each, ast.Starred) for each in call.args):
        return False
    return all(isinstance(m, ast.Constant) and m.value in ("r", "rb", "rt") for m in mode)
