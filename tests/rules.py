"""Checks over source text, used by ``tests/test_architecture.py``; each says what it found, so that a test can show it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from babel.messages.pofile import read_po

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ("app.py", "pages", "engine", "assets")  # what is delivered; tests and set-up stand outside
TOP_LEVEL = {
    *("app.py", "pages", "engine", "assets", "tests"),
    *("README.md", "LICENSE", "Makefile", "pyproject.toml", "Dockerfile"),
    *("requirements.txt", "requirements-dev.txt", "requirements-data.txt", "requirements-lock.txt"),
}
LANGUAGES = ("en", "zh")
SCREEN = {"streamlit", "plotly", "altair", "pydeck", "pages", "app"}
TEXT_FILES = {".py", ".js", ".css", ".md", ".po", ".json", ".html", ".toml"}

WRITTEN = {
    "unescaped HTML": r"unsafe_allow_html|unsafe_allow_javascript|innerHTML|outerHTML|insertAdjacentHTML|document\.write\b",
    "code from strings": r"(?<![\w.])eval\(|\bnew Function\(",  # model.eval() is another thing
    "pickle": r"\bimport (?:pickle|dill|joblib|cloudpickle|shelve)\b|\bfrom (?:pickle|dill|joblib|shelve) import"
    r"|weights_only\s*=\s*False|\btorch\.load\(|allow_pickle\s*=\s*True",
    "a random generator that visitors share": r"\btorch\.(?:manual_seed|seed|random\.manual_seed|cuda\.manual_seed)\w*\("
    r"|\b(?:np|numpy)\.random\.(?!default_rng\b|Generator\b|SeedSequence\b|PCG64\b)\w+|\bMath\.random\b"
    r"|^\s*(?:import random\b|from random import)",
    "work left for later": r"\b(?:TODO|FIXME|XXX)\b",
}
# One place may do it: the recorder of an equation is compiled from the equation's own syntax tree.
EXCEPTIONS = {"engine/syntax.py": {"code from strings"}}
# Calls that draw from torch's global generator unless one is passed.
DRAWS = {
    *("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson"),
    *("uniform_", "normal_", "bernoulli_", "exponential_", "random_", "log_normal_", "geometric_", "cauchy_"),
    *("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "trunc_normal_"),
}
NO_GENERATOR = {"rand_like", "randn_like", "randint_like", "dropout", "dropout_", "feature_dropout", "Dropout"}
# Layers whose constructor draws its weights from the global generator.
DRAWN_LAYERS = {"Linear", "Bilinear", "Embedding", "RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell", "MultiheadAttention"}


def files(*places: str, suffix: str | None = None) -> list[Path]:
    """Files under these places of the repository, without caches."""
    found: list[Path] = []
    for place in places:
        path = ROOT / place
        if path.is_file():
            found.append(path)
        elif path.is_dir():
            found += [each for each in sorted(path.rglob("*")) if each.is_file() and "__pycache__" not in each.parts]
    return [each for each in found if suffix is None or each.suffix == suffix]


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def imported(source: str) -> set[str]:
    """Full names of everything that a source imports anywhere, by statement or by ``import_module("...")``."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their package"
            names.add(node.module or "")
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__") and node.args:
            name = node.args[0]
            names.add(name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else "")
    return names


def reaches(source: str, packages: set[str]) -> set[str]:
    """Which of these packages a source imports."""
    return {name.split(".")[0] for name in imported(source)} & packages


def called(node: ast.Call) -> str:
    """The last part of the name that is called."""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def calls(source: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))


def shared_draws(source: str) -> list[str]:
    """Calls that would draw from torch's global generator."""
    found = []
    torch_used = reaches(source, {"torch"})
    for node in calls(source):
        name, keywords = called(node), {each.arg for each in node.keywords}
        if not torch_used:
            continue
        drawn = name in DRAWS and "generator" not in keywords and None not in keywords
        layer = (
            name in DRAWN_LAYERS and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in ("nn", "torch.nn")
        )
        if drawn or layer or name in NO_GENERATOR:
            found.append(f"line {node.lineno}: {ast.unparse(node.func)}")
    return found


def unnamed_encodings(source: str) -> list[str]:
    """Text files opened in whatever encoding the machine has."""
    found = []
    for node in calls(source):
        name, keywords = called(node), {each.arg: each.value for each in node.keywords}
        if "encoding" in keywords or name not in ("open", "read_text", "write_text"):
            continue
        place = 1 if isinstance(node.func, ast.Name) else 0
        mode = keywords.get("mode") or (node.args[place] if name == "open" and len(node.args) > place else None)
        if name == "read_text" and isinstance(node.func, ast.Name):
            continue  # engine.text.reading.read_text takes a text, not a file
        if not (isinstance(mode, ast.Constant) and "b" in str(mode.value)):
            found.append(f"line {node.lineno}: {ast.unparse(node)[:80]}")
    return found


def written(source: str) -> dict[str, str]:
    """Which of the forbidden things stand in a text, and in what words."""
    found = {what: re.search(pattern, source, re.MULTILINE) for what, pattern in WRITTEN.items()}
    return {what: match[0] for what, match in found.items() if match}


def catalog_entries(content: str) -> dict[str, tuple[str, ...]]:
    """The messages of a gettext catalog by key; several where they depend on a count."""
    return {
        message.id if isinstance(message.id, str) else message.id[0]: (message.string,)
        if isinstance(message.string, str)
        else tuple(message.string or ())
        for message in read_po(content.splitlines(keepends=True), abort_invalid=True)
        if message.id
    }


def places(message: str) -> set[str]:
    """Names of the values that a message takes: ``{name}``."""
    return set(re.findall(r"\{(\w*)[^{}]*\}", message.replace("{{", "").replace("}}", "")))


def message_faults(one: dict[str, tuple[str, ...]], other: dict[str, tuple[str, ...]]) -> list[str]:
    """Keys of one language that the other lacks, empty messages, and values that only one of two messages takes."""
    faults = [f"{key} stands in one language only" for key in one.keys() ^ other.keys()]
    for key in one.keys() & other.keys():
        if not all(form.strip() for form in (*one[key], *other[key])):
            faults.append(f"{key} has no words")
        first, second = (set().union(*map(places, each[key])) for each in (one, other))
        if first != second:
            faults.append(f"{key} takes {first} in one language and {second} in the other")
    return faults


def sections(content: str) -> list[str]:
    """Headings of a lesson text, which are names for the page."""
    return re.findall(r"^## +(\S+) *$", content, re.MULTILINE)
