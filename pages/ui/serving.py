"""What the server does beside running pages: headers on every answer, Streamlit's shell with our style sheet in it, heavy
packages loaded before they are needed.

The style sheet stands in the shell, not in a page's run: the first thing painted is painted right, and nothing jumps.
"""

import base64
import gc
import hashlib
import importlib
import re
import secrets
import threading
from functools import partial
from pathlib import Path

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

THEME = Path(__file__).resolve().parents[2] / "assets" / "theme"
STYLE = (THEME / "frame.css").read_bytes()
ICON = (THEME / "icon.png").read_bytes()
SHELL = (Path(st.__file__).parent / "static" / "index.html").read_bytes()
LINK = f'<link rel="stylesheet" href="./frame.css?{hashlib.sha256(STYLE).hexdigest()[:12]}" />\n  </head>'.encode()
INLINE = [hashlib.sha256(script).digest() for script in re.findall(rb"<script>(.*?)</script>", SHELL, re.DOTALL)]
ALLOWED = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in INLINE)  # Streamlit's own inline script

HEADERS = {
    # `blob:` carries the stage's module, inline styles are how Streamlit's own interface is drawn.
    "Content-Security-Policy": f"default-src 'self'; script-src 'self' blob: {ALLOWED}; worker-src 'self' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'",
    "Referrer-Policy": "no-referrer",  # the address holds the learner's text
    "X-Content-Type-Options": "nosniff",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

HEAVY = ("torch", "pages.ui.recurrent")  # all that a lesson page imports

FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}  # its address changes with its content

painted = threading.Event()  # set when the first page has been run


class Headers:
    """ASGI middleware that adds ``HEADERS`` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, answer)


def routes(pages: tuple[str, ...]) -> list[Route]:
    """The shell at the address of every page, the style sheet, and the icon (in place of Streamlit's)."""
    shell = SHELL.replace(b"<title>Streamlit</title>", b"<title>Unrolled</title>").replace(b"</head>", LINK)
    page = partial(_answer, body=shell, kind="text/html", headers={"Cache-Control": "no-cache"})
    style = partial(_answer, body=STYLE, kind="text/css", headers=FOREVER)
    icon = partial(_answer, body=ICON, kind="image/png", headers={"Cache-Control": "public, max-age=86400"})
    own = [Route("/frame.css", style), Route("/favicon.png", icon)]
    return [*(Route(f"/{name}", page) for name in pages), *own]


async def _answer(request: Request, body: bytes, kind: str, headers: dict[str, str]) -> Response:
    """The body. With a page comes a cookie, once: a number without meaning, by which one visitor's trainings are counted."""
    response = Response(body, media_type=kind, headers=headers)
    if kind == "text/html" and "visitor" not in request.cookies:
        response.set_cookie("visitor", secrets.token_hex(8), max_age=30 * 86400, httponly=True, samesite="lax")
    return response


def warm(patience: float = 5.0) -> None:
    """Import the heavy packages once the first page is painted, or after ``patience`` seconds without a visitor.

    Freezing what they leave behind takes it out of every later garbage collection: a rerun falls from 180 to 11 ms.
    """
    painted.wait(patience)
    for name in HEAVY:
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)
    gc.collect()
    gc.freeze()
