"""Headers of every answer, and what the server loads when."""

import gc
import re
import sys
import threading

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from pages.ui import serving


def answer(_: object) -> PlainTextResponse:
    return PlainTextResponse("here")


def test_every_answer_has_the_headers():
    inner = Starlette(routes=[Route("/here", answer)])
    client = TestClient(serving.Headers(inner))
    for path, status in (("/here", 200), ("/nowhere", 404)):
        response = client.get(path)
        assert response.status_code == status
        assert serving.HEADERS.items() <= {name.title(): value for name, value in response.headers.items()}.items()


def test_no_script_but_ours_may_run():
    policy = dict(part.strip().split(" ", 1) for part in serving.HEADERS["Content-Security-Policy"].split(";"))
    assert "unsafe" not in policy["script-src"]
    assert policy["script-src"].count("'sha256-") == 1
    assert policy["object-src"] == policy["default-src"].replace("self", "none")


def test_every_page_comes_with_the_style_sheet():
    client = TestClient(Starlette(routes=serving.routes(("", "lstm"))))
    for path in ("/", "/lstm"):
        page = client.get(path)
        assert page.headers["content-type"].startswith("text/html")
        (address,) = re.findall(r'<link rel="stylesheet" href="\./(frame\.css[^"]*)"', page.text)
        assert "<title>Unrolled</title>" in page.text
        assert page.text.count("<script>") == serving.HEADERS["Content-Security-Policy"].count("sha256-")
    style = client.get(f"/{address}")
    assert style.headers["content-type"].startswith("text/css")
    assert style.content == serving.STYLE
    assert client.get("/favicon.png").content == serving.ICON


def test_warming_waits_for_the_first_page(monkeypatch):
    monkeypatch.setattr(serving, "HEAVY", ("json",))
    monkeypatch.setattr(serving, "painted", threading.Event())
    frozen = threading.Event()
    monkeypatch.setattr(gc, "freeze", frozen.set)
    thread = threading.Thread(target=serving.warm, args=(60.0,))
    thread.start()
    assert not frozen.wait(0.2)
    serving.painted.set()
    thread.join(60)
    assert frozen.is_set()
    assert "torch" in sys.modules


def test_without_a_visitor_warming_begins_by_itself(monkeypatch):
    monkeypatch.setattr(serving, "HEAVY", ("json",))
    monkeypatch.setattr(serving, "painted", threading.Event())
    frozen = threading.Event()
    monkeypatch.setattr(gc, "freeze", frozen.set)
    serving.warm(0.01)
    assert frozen.is_set()


def test_a_visitor_is_known_by_a_cookie_that_comes_once():
    client = TestClient(Starlette(routes=serving.routes(("", "lstm"))))
    first, style = client.get("/lstm"), client.get("/frame.css")
    cookie = first.headers["set-cookie"]
    assert re.match(r"visitor=[0-9a-f]{16};", cookie)
    assert {"HttpOnly", "SameSite=lax"} <= set(re.split("; *", cookie))
    assert "set-cookie" not in style.headers
    assert "set-cookie" not in client.get("/").headers
