"""`exo footprint`: every budget as used, allowed and left. Owns how lines are counted; what has to be
measured on running processes is in weigh.py and asked for with --measure.

Invariant: a line counts when it carries code after ruff's format at 100 columns: docstrings, comments
and blank lines are free; *.sql and prompts count, a prompt's long line as if it were wrapped."""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import shutil
import subprocess
import sys
import time
import tokenize
import tomllib
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import exo.core.base
from exo.core.base.errors import ExoError

CORE = Path(exo.core.base.__file__).parents[1]
ROOT = CORE.parent
COLUMNS = 100
FAST_AREAS = ("base", "protocol", "server", "engine", "context", "router", "plugins")
COUNTED, MEASURED = "counted", "measured"
_FREE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Row:
    """One budget: what is used of what is allowed."""

    name: str
    used: float
    allowed: float
    unit: str

    @property
    def left(self) -> float:
        return self.allowed - self.used


@dataclass(frozen=True)
class Count:
    """What one file adds: lines carrying code, physical lines, tokens (Python only)."""

    code: int
    physical: int
    tokens: int


# ---- counting ------------------------------------------------------------------------------------


def python_lines(text: str) -> Count:
    """Count one Python source. Raises SyntaxError."""
    docstrings = _docstring_lines(ast.parse(text))
    carrying: set[int] = set()
    tokens = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _FREE or token.start[0] in docstrings:
            continue
        tokens += 1
        carrying.update(range(token.start[0], token.end[0] + 1))
    lines = text.splitlines()
    code = sum(1 for number in carrying if number <= len(lines) and lines[number - 1].strip())
    return Count(code, len(lines), tokens)


def _docstring_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            found.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found


def sql_lines(text: str) -> Count:
    """Count the lines of SQL that are neither blank nor a comment."""
    lines = text.splitlines()
    carrying = [line for line in lines if line.strip() and not line.strip().startswith("--")]
    return Count(len(carrying), len(lines), 0)


def prompt_lines(text: str) -> Count:
    """Count a prompt as it would stand wrapped at 100 columns."""
    lines = text.splitlines()
    return Count(sum(-(-len(line.strip()) // COLUMNS) for line in lines), len(lines), 0)


def counter(path: str) -> Callable[[str], Count] | None:
    """Return what counts a file of that path, None when the budget does not see it."""
    if path.endswith(".py"):
        return python_lines
    if path.endswith(".sql"):
        return sql_lines
    if "/prompts/" in path:
        return prompt_lines
    return None


def core_files() -> dict[str, str]:
    """Return {path below core: text} of every counted file in the checkout."""
    found = {}
    for path in sorted(CORE.rglob("*")):
        name = path.relative_to(CORE).as_posix()
        if path.is_file() and counter("/" + name) and "__pycache__" not in name:
            found[name] = path.read_text()
    return found


def formatted(files: dict[str, str]) -> dict[str, str]:
    """Return the files as ruff would format them; as they are where ruff is not installed."""
    ruff = shutil.which("ruff") or shutil.which("ruff", path=str(Path(sys.executable).parent))
    if ruff is None:
        return files
    command = [ruff, "format", "--diff", "--line-length", str(COLUMNS), "--no-cache", str(CORE)]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return files  # formatted already: the usual case costs one process
    result = dict(files)
    for name, text in files.items():
        if name.endswith(".py"):
            one = [ruff, "format", "--line-length", str(COLUMNS), "--stdin-filename", name, "-"]
            done = subprocess.run(one, input=text, capture_output=True, text=True, check=False)
            result[name] = done.stdout if done.returncode == 0 else text
    return result


def count(files: dict[str, str]) -> dict[str, Count]:
    """Return {path: Count}. Raises ExoError for a file that does not parse."""
    result = {}
    for name, text in files.items():
        reader = counter("/" + name)
        if reader is None:
            continue
        try:
            result[name] = reader(text)
        except SyntaxError as error:
            raise ExoError(f"count core/{name}", str(error), "mend the file") from error
    return result


def code_total(counts: dict[str, Count], areas: Iterable[str] = ()) -> int:
    """Return the lines carrying code, of `areas` alone when some are named."""
    wanted = tuple(f"{area}/" for area in areas)
    return sum(row.code for name, row in counts.items() if not wanted or name.startswith(wanted))


def main_files() -> dict[str, str]:
    """Return the counted files of core as git's branch main has them; {} without git or that branch."""
    listed = _git("ls-tree", "-r", "--name-only", "main", "--", "core/")
    found = {}
    for path in listed.splitlines():
        if counter("/" + path):
            found[path.removeprefix("core/")] = _git("show", f"main:{path}")
    return found


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


# ---- the rows ------------------------------------------------------------------------------------


def dependencies() -> list[str]:
    """Return the names of the distributions that core needs at run time."""
    pyproject = ROOT / "pyproject.toml"
    if pyproject.exists():
        rows = tomllib.loads(pyproject.read_text())["project"]["dependencies"]
    else:
        from importlib.metadata import requires

        rows = [row for row in requires("exo-companion") or [] if "extra ==" not in row]
    return [re.split(r"[^\w.-]", row)[0] for row in rows]


def wheel_bytes() -> int:
    """Return the size of core packed as in a wheel (its own metadata apart)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(CORE.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, f"exo/core/{path.relative_to(CORE).as_posix()}")
    return len(buffer.getvalue())


def import_ms(module: str = "exo.core.server.app") -> float:
    """Return how long a fresh interpreter takes to import `module`: the best of three, less the
    interpreter's own start."""

    def best(code: str) -> float:
        times = []
        for _ in range(3):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True)
            times.append(time.perf_counter() - start)
        return min(times)

    try:
        return max(0.0, best(f"import {module}") - best("")) * 1000
    except subprocess.CalledProcessError as error:
        why = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ExoError(f"import {module}", "".join(why), "run `./flash.sh setup`") from error


def counted_rows(counts: dict[str, Count]) -> list[Row]:
    """The rows that are the same on every machine."""
    return [
        Row("core, lines carrying code", code_total(counts), 11_000, "lines"),
        Row(f"of these {' + '.join(FAST_AREAS)}", code_total(counts, FAST_AREAS), 6_000, "lines"),
        Row("runtime dependencies of core", len(dependencies()), 2, "packages"),
    ]


def quick_rows(counts: dict[str, Count]) -> list[Row]:
    """The rows that differ a little with Python's version or the machine, and cost no time."""
    python = [row for name, row in counts.items() if name.endswith(".py")]
    density = sum(row.tokens for row in python) / max(1, sum(row.code for row in python))
    return [
        Row("core packed as a wheel", round(wheel_bytes() / 1000), 1_000, "kB"),
        Row("tokens on a line carrying code", round(density, 1), 10.1, "tokens"),
        Row("import of exod", round(import_ms()), 1_000, "ms"),
    ]


def table(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| what | used | allowed | left |", "|---|---:|---:|---:|"]
    for row in rows:
        used, allowed = f"{row.used:,.10g} {row.unit}", f"{row.allowed:,.10g} {row.unit}"
        lines.append(f"| {row.name} | {used} | {allowed} | {row.left:,.6g} |")
    return "\n".join(lines)


def section(text: str, name: str) -> str:
    """Return what stands between the markers of `name` in a page. Raises ExoError."""
    return _markers(text, name).group(2).strip()


def with_section(text: str, name: str, body: str) -> str:
    """Return the page with that section replaced. Raises ExoError."""
    found = _markers(text, name)
    return f"{text[: found.start()]}{found.group(1)}\n{body}\n{found.group(3)}{text[found.end() :]}"


def _markers(text: str, name: str) -> re.Match[str]:
    pattern = rf"(<!-- footprint: {name} -->)(.*?)(<!-- /footprint: {name} -->)"
    found = re.search(pattern, text, re.DOTALL)
    if found is None:
        raise ExoError(
            f"find the budgets ({name})",
            "the page has no markers",
            f"put <!-- footprint: {name} --> and <!-- /footprint: {name} --> into it",
        )
    return found


# ---- the command -----------------------------------------------------------------------------------


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `footprint` to the command line."""
    text = "every budget: used, allowed, left"
    command = sub.add_parser("footprint", help=text, description=text)
    command.add_argument(
        "--measure", action="store_true", help="also start processes and weigh them"
    )
    command.add_argument("--files", action="store_true", help="also list the files of core")
    command.add_argument("--write", metavar="FILE", help="renew the budgets table of a page")
    command.add_argument(
        "--home", metavar="DIR", help="taken and not used: nothing is read from it"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.set_defaults(run=footprint)


def footprint(options: argparse.Namespace) -> int:
    """Print the budgets; exit code 1 when one is exceeded."""
    counts = count(formatted(core_files()))
    counted, others = counted_rows(counts), quick_rows(counts)
    note = ""
    if options.measure:
        from exo.tools import weigh

        others += weigh.rows()
        note = f"\n\nMeasured {weigh.when_and_where()}."
    if options.write:
        page = Path(options.write)
        text = with_section(page.read_text(), COUNTED, table(counted))
        if options.measure:
            text = with_section(text, MEASURED, table(others) + note)
        page.write_text(text)
    rows = counted + others
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in rows]}))
    else:
        _print(rows, counts, options.files)
    return int(any(row.left < 0 for row in rows))


def _print(rows: list[Row], counts: dict[str, Count], files: bool) -> None:
    width = max(len(row.name) for row in rows)
    print(f"{'':{width}}  {'used':>10} {'allowed':>10} {'left':>10}")
    for row in rows:
        print(
            f"{row.name:{width}}  {row.used:>10,g} {row.allowed:>10,g} {row.left:>10,.6g} {row.unit}"
        )
    print(f"\ncore: {sum(row.physical for row in counts.values()):,} lines in all")
    if before := main_files():
        change = code_total(counts) - code_total(count(before))
        print(f"against main: {change:+,} lines carrying code")
    if files:
        for name, size in sorted(counts.items(), key=lambda item: -item[1].code):
            density = f"{size.tokens / size.code:.1f} tokens a line" if size.tokens else ""
            print(f"{size.code:6} {size.physical:6} core/{name}  {density}")
