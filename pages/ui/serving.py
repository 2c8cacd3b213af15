"""What the server does beside running pages: headers on every answer, heavy packages loaded before they are needed."""

import base64
import gc
import hashlib
import importlib
import re
import threading
from pathlib import Path

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHELL = (Path(st.__file__).parent / "static" / "index.html").read_bytes()
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
