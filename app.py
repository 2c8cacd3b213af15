"""The application: start hook and headers around the frame. Serve it with ``uvicorn app:app``.

The frame's script stands in a folder that has no ``pages/`` beside it: with one beside it, Streamlit would run a page
alone, without frame and language, for everyone who opens a link to it on a fresh server.
"""

import contextlib
import logging
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two threads and a busy neighbour wait for each other

import streamlit as st
from starlette.middleware import Middleware

from pages import catalog
from pages.ui.serving import Headers, routes, warm

FRAME = Path(__file__).resolve().parent / "pages" / "ui" / "main.py"


@contextlib.asynccontextmanager
async def started(_: st.App) -> AsyncIterator[dict[str, Any] | None]:
    """Load the heavy packages beside the server, so that no visitor waits for them; log no addresses (they hold texts)."""
    logging.getLogger("uvicorn.access").disabled = True
    threading.Thread(target=warm, name="warm", daemon=True).start()
    yield None


PAGES = ("", *(lesson.key for lesson in catalog.LESSONS if lesson.ready))

app = st.App(FRAME, lifespan=started, routes=routes(PAGES), middleware=[Middleware(Headers)])
