"""The rules of the house that a machine can check. Each holds for folders that do not exist yet and bites once they do.

The tests at the end plant faults and see them found, so that no check can pass by looking at nothing.
"""

import ast
import importlib
import re
import subprocess
from pathlib import Path

import pytest

from tests.rules import (
    EXCEPTIONS,
    HOUSE,
    LANGUAGES,
    ROOT,
    SCREEN,
    TEXT_FILES,
    TOP_LEVEL,
    called,
    calls,
    catalog_entries,
    files,
    imported,
    message_faults,
    places,
    reaches,
    sections,
    shared_draws,
    shown,
    text,
    unnamed_encodings,
    written,
)


def test_the_top_level_is_closed():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = listed.stdout.splitlines() if listed.returncode == 0 else [each.name for each in ROOT.iterdir()]
    top = {name.split("/")[0] for name in names} - {"__pycache__"}
    assert {name for name in top if not name.startswith(".")} <= TOP_LEVEL
    assert {"engine", "tests", "Makefile", "pyproject.toml"} <= top


def test_the_engine_knows_no_screen():
    sources = files("engine", suffix=".py")
    assert len(sources) > 10
    assert {shown(path): found for path in sources if (found := reaches(text(path), SCREEN))} == {}


def test_figures_know_neither_streamlit_nor_torch():
    found = {shown(path): reaches(text(path), {"streamlit", "torch"}) for path in files("pages/figures", suffix=".py")}
    assert {path: names for path, names in found.items() if names} == {}


def test_nothing_that_is_delivered_imports_the_tests_or_the_application():
    found = {shown(path): reaches(text(path), {"tests", "app", "pytest", "hypothesis"}) for path in files(*HOUSE, suffix=".py")}
    assert {path: names for path, names in found.items() if names} == {}


def test_pages_do_no_mathematics():
    scripts = [path for path in files("pages", suffix=".py") if path.parent.name == "pages"]
    found = {shown(path): reaches(text(path), {"torch", "numpy", "math", "statistics"}) for path in scripts}
    assert {path: names for path, names in found.items() if names} == {}


def test_files_stay_short():
    limits = {shown(path): 100 for path in files("pages", suffix=".py") if path.parent.name == "pages"}
    limits |= {"app.py": 60, "pages/ui/main.py": 60}
    sources = [path for path in files(*HOUSE, "tests") if path.suffix in (".py", ".js", ".css")]
    lengths = {shown(path): len(text(path).splitlines()) for path in sources}
    assert {path: lines for path, lines in lengths.items() if lines >= limits.get(path, 400)} == {}


def test_nothing_forbidden_is_written():
    sources = [path for path in files(*HOUSE) if path.suffix in TEXT_FILES]
    assert len(sources) > 10
    found = {shown(path): written(text(path)).keys() - EXCEPTIONS.get(shown(path), set()) for path in sources}
    assert {path: what for path, what in found.items() if what} == {}


def test_every_random_number_comes_from_a_passed_generator():
    found = {shown(path): shared_draws(text(path)) for path in files("app.py", "pages", "engine", suffix=".py")}
    assert {path: draws for path, draws in found.items() if draws} == {}


def test_txt_03_every_text_file_is_opened_in_a_named_encoding():
    found = {shown(path): unnamed_encodings(text(path)) for path in files(*HOUSE, "tests", suffix=".py")}
    assert {path: opened for path, opened in found.items() if opened} == {}


def test_no_test_is_skipped_or_expected_to_fail():
    own = Path(__file__).resolve()
    pattern = re.compile(r"pytest\.(?:mark\.)?(?:skip|skipif|xfail|importorskip)\b|unittest\.skip")
    assert [shown(path) for path in files("tests", suffix=".py") if path != own and pattern.search(text(path))] == []


def test_both_languages_have_the_same_words():
    catalogs = {lang: {path.name: path for path in files(f"assets/locale/{lang}", suffix=".po")} for lang in LANGUAGES}
    assert catalogs["en"].keys() == catalogs["zh"].keys()
    if (ROOT / "assets" / "locale").exists():
        assert catalogs["en"]
    for name in catalogs["en"]:
        one, other = (catalog_entries(text(catalogs[lang][name])) for lang in LANGUAGES)
        assert one, f"{name} has no message"
        assert message_faults(one, other) == [], name


def test_both_languages_have_the_same_lessons_with_the_same_sections():
    lessons = {lang: {path.name: path for path in files(f"assets/lessons/{lang}", suffix=".md")} for lang in LANGUAGES}
    assert lessons["en"].keys() == lessons["zh"].keys()
    for name in lessons["en"]:
        one, other = (text(lessons[lang][name]) for lang in LANGUAGES)
        assert sections(one) == sections(other), name
        assert sections(one), f"{name} has no section"


def all_words() -> dict[str, tuple[str, ...]]:
    return {
        key: forms for path in files("assets/locale/en", suffix=".po") for key, forms in catalog_entries(text(path)).items()
    }


def test_words_that_the_pages_ask_for_exist():
    known = all_words()
    asked = {
        (shown(path), node.args[0].value)
        for path in files("app.py", "pages", suffix=".py")
        for node in calls(text(path))
        if called(node) == "words" and node.args and isinstance(node.args[0], ast.Constant)
    }
    assert {(path, key) for path, key in asked if key not in known} == set()


def notes_of_the_engine() -> dict[str, set[str]]:
    """Every note that the engine can make, with the names of its values."""
    found: dict[str, set[str]] = {}
    for path in files("engine", suffix=".py"):
        for node in calls(text(path)):
            if called(node) == "Note" and node.args and isinstance(node.args[0], ast.Constant):
                values = node.args[1] if len(node.args) > 1 else None
                keys = values.keys if isinstance(values, ast.Dict) else []
                found[str(node.args[0].value)] = {str(key.value) for key in keys if isinstance(key, ast.Constant)}
    for line in (importlib.import_module("engine.text.reading").__doc__ or "").splitlines():
        if row := re.match(r"(text\.\w+)  +(\S.*?)  ", line):
            found[row[1]] = set() if row[2] == "(none)" else set(row[2].split(", "))
    return found


def test_every_note_of_the_engine_has_words():
    notes, known = notes_of_the_engine(), all_words()
    assert len(notes) > 15
    if not known:
        return
    missing = {key for key in notes if key not in known}
    assert missing == set()
    for key, values in notes.items():
        assert set().union(*map(places, known[key])) <= values, f"{key} has only the values {values}"


def test_the_catalog_is_the_navigation():
    if not (ROOT / "pages" / "catalog.py").exists():
        return
    catalog = importlib.import_module("pages.catalog")
    keys = [lesson.key for lesson in catalog.LESSONS]
    assert len(set(keys)) == len(keys) == 20
    assert [lesson.number for lesson in catalog.LESSONS] == list(range(1, 21))
    scripts = {path.stem for path in files("pages", suffix=".py") if path.parent.name == "pages"}
    assert scripts - {"__init__", "catalog", "home"} <= set(keys), "a page that no list of lessons knows"
    assert {lesson.key for lesson in catalog.LESSONS if lesson.ready} == scripts & set(keys)
    for lesson in catalog.LESSONS:
        if lesson.ready:
            for lang in LANGUAGES:
                assert (ROOT / "assets" / "lessons" / lang / f"{lesson.key}.md").exists(), f"{lesson.key} has no text in {lang}"
    makers = {
        shown(path) for path in files("app.py", "pages", suffix=".py") for node in calls(text(path)) if called(node) == "Page"
    }
    assert makers <= {"pages/ui/main.py"}, "pages are registered in one place"
    if (ROOT / "pages" / "ui" / "main.py").exists():
        assert "pages.catalog" in imported(text(ROOT / "pages" / "ui" / "main.py"))


# The checks find what they look for


@pytest.mark.parametrize(
    "source",
    [
        "import streamlit as st",
        "from streamlit.components import v2",
        "def late():\n    import streamlit",
        "import importlib\nimportlib.import_module('streamlit.web')",
        "try:\n    from streamlit import x\nexcept ImportError:\n    pass",
    ],
)
def test_imports_are_found_wherever_they_stand(source):
    assert reaches(source, SCREEN) == {"streamlit"}
    assert reaches("import streamlit_free\nfrom engine import pages_of_a_book", SCREEN) == set()


@pytest.mark.parametrize(
    "source",
    [
        "st.markdown(x, unsafe_allow_html=True)",
        "node.innerHTML = text",
        "import pickle",
        "torch.load(path)",
        "torch.manual_seed(0)",
        "torch.cuda.manual_seed_all(0)",
        "np.random.rand(3)",
        "  import random",
        "const x = Math.random()",
        "# TODO: later",
    ],
)
def test_forbidden_things_are_found(source):
    assert written(source)


@pytest.mark.parametrize(
    "source", ["np.random.default_rng(3)", "import randomness", "torch.Generator().manual_seed(3)", "module.evaluate(x)"]
)
def test_allowed_things_are_left_alone(source):
    assert written(source) == {}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("torch.rand(3)", 1),
        ("torch.rand(3, generator=g)", 0),
        ("x.uniform_(-1, 1)", 1),
        ("nn.init.normal_(x)", 1),
        ("torch.randn_like(x)", 1),
        ("torch.nn.Linear(3, 4)", 1),
        ("nn.LSTM(3, 4)", 1),
        ("GRU(3, 4)", 0),
        ("functional.dropout(x)", 1),
        ("torch.randperm(5, **options)", 0),
    ],
)
def test_shared_draws_are_found(source, count):
    assert len(shared_draws("import torch\n" + source)) == count
    assert shared_draws("import numpy\n" + source) == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("open(p)", 1),
        ("open(p, 'r')", 1),
        ("p.open('rb')", 0),
        ("p.open()", 1),
        ("open(p, mode='wb')", 0),
        ("open(p, encoding='utf-8')", 0),
        ("p.read_text()", 1),
        ("p.write_text(t, encoding='utf-8')", 0),
        ("read_text(pasted)", 0),
    ],
)
def test_unnamed_encodings_are_found(source, count):
    assert len(unnamed_encodings(source)) == count


def test_differences_between_languages_are_found():
    head = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
    )
    one = catalog_entries(head + 'msgid "a"\nmsgstr "{n} of {total}"\n\nmsgid "b"\nmsgstr "x"\n\nmsgid "c"\nmsgstr "x"\n')
    other = catalog_entries(head + 'msgid "a"\nmsgstr "{n}"\n\nmsgid "b"\nmsgstr ""\n\nmsgid "d"\nmsgstr "x"\n')
    assert len(message_faults(one, other)) == 4
    assert message_faults(one, one) == []
    assert sections("# t\n## one\ntext\n## two \n### no\n") == ["one", "two"]
