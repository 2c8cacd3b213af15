"""Home and frame without a browser: nothing heavy before they are painted, and the way to every lesson."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Streamlit itself loads plotly's names; what is heavy in it is the figure class.
HEAVY = {"torch", "altair", "pandas", "plotly.graph_objs._figure"}

PAINT = f"""
import sys, types
seen = []
stand_in = types.ModuleType("pages.ui.miniature")
stand_in.show = lambda link: seen.append((link, sorted({HEAVY} & sys.modules.keys())))
import pages.ui
sys.modules["pages.ui.miniature"] = pages.ui.miniature = stand_in
from streamlit.testing.v1 import AppTest
page = AppTest.from_file("pages/ui/main.py", default_timeout=60)
page.query_params["text"] = "a&b"
page.query_params["lang"] = "zh"
page.run()
assert not page.exception, page.exception
print(seen)
"""


def printed(code: str) -> object:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return ast.literal_eval(done.stdout.strip().splitlines()[-1])


def test_the_application_starts_without_heavy_packages():
    assert printed(f"import sys, app; print(sorted({HEAVY} & sys.modules.keys()))") == []


def test_frame_and_home_are_painted_before_a_heavy_package_is_loaded():
    seen = printed(PAINT)
    assert isinstance(seen, list)
    ((link, heavy),) = seen
    assert heavy == []
    assert link == "lstm?lang=zh&text=a%26b"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_home_names_every_lesson_once(lang: str, monkeypatch):
    from streamlit.testing.v1 import AppTest

    from pages.catalog import LESSONS
    from pages.ui import miniature
    from pages.ui.words import words

    monkeypatch.setattr(miniature, "show", lambda link: None)
    page = AppTest.from_file(str(ROOT / "pages" / "ui" / "main.py"), default_timeout=60)
    page.query_params["lang"] = lang
    page.run()
    assert not page.exception
    ideas = [caption.value for caption in page.caption]
    shown = " ".join(markdown.value for markdown in page.markdown)
    for lesson in LESSONS:
        assert ideas.count(words(f"lesson.{lesson.key}.idea", lang=lang)) == 1
        if not lesson.ready:
            assert f"**{words(f'lesson.{lesson.key}.title', lang=lang)}** :small[· {words('frame.coming', lang=lang)}]" in shown
