"""A visitor without a browser: the websocket and the messages that Streamlit's own front end uses.

For what many visitors do at once (tests/load) and for the server's share of a rerun (tests/bench).
"""

import asyncio
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

Result = TypeVar("Result")

LIMIT = 60.0  # seconds until an answer must be there
DONE = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)


def together(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of ``work``, run in a thread of its own: Playwright has a loop in the main one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@dataclass
class Answer:
    """What came back for one run of the script."""

    seconds: float = 0.0
    received: int = 0  # bytes of all messages, uncompressed
    elements: list[Element] = field(default_factory=list)

    def exceptions(self) -> list[str]:
        return [f"{each.exception.type}: {each.exception.message}" for each in self.elements if each.HasField("exception")]

    def stage(self) -> bytes | None:
        """The trace that was sent to the stage; None where the browser has it already."""
        return next((bytes(each.bidi_component.bytes) for each in self.elements if each.HasField("bidi_component")), None)

    def pagination(self, key: str) -> str:
        """The id of the pager with a key."""
        return next(e.pagination.id for e in self.elements if e.HasField("pagination") and e.pagination.id.endswith(f"-{key}"))


class Client:
    """One visitor: ``async with Client(url) as client: await client.run("lstm", "text=hello")``."""

    def __init__(self, url: str) -> None:
        self.address = url.replace("http://", "ws://") + "/_stcore/stream"
        self.known: dict[str, None] = {}  # hashes of the messages that need not be sent again
        self.page = self.query = ""
        self.pages = {"": ""}  # the scripts' hashes by address
        self.fragments: dict[str, str] = {}  # of pagers, by their ids

    async def __aenter__(self) -> Self:
        self.socket: ClientConnection = await connect(self.address, subprotocols=[Subprotocol("streamlit")], max_size=None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.socket.close()

    async def run(self, page: str = "", query: str = "") -> Answer:
        """Open a page, as a link from outside does."""
        self.page, self.query = page, query
        return await self._ask(BackMsg())

    async def turn(self, pager: str, number: int, *, whole: bool = False) -> Answer:
        """Turn a pager to a page (from 1); ``pager`` is its id. Its fragment runs where it stands in one, as from a browser;
        ``whole`` runs the page.
        """
        message = BackMsg()
        fragment = self.fragments.get(pager)
        if fragment and not whole:
            message.rerun_script.fragment_id = fragment
        widget = message.rerun_script.widget_states.widgets.add()
        widget.id, widget.int_value = pager, number
        return await self._ask(message)

    async def _ask(self, message: BackMsg) -> Answer:
        message.rerun_script.query_string = self.query
        message.rerun_script.page_name = self.page
        message.rerun_script.page_script_hash = self.pages.get(self.page, "")
        message.rerun_script.cached_message_hashes.extend(self.known)
        message.rerun_script.context_info.locale = "en"
        start = time.perf_counter()
        await self.socket.send(message.SerializeToString())
        async with asyncio.timeout(LIMIT):
            return await self._answer(start)

    async def _answer(self, start: float) -> Answer:
        answer = Answer()
        while True:
            data = await self.socket.recv(decode=False)
            answer.received += len(data)
            message = ForwardMsg.FromString(bytes(data))
            if message.metadata.cacheable:
                self.known[message.hash] = None
            kind = message.WhichOneof("type")
            if kind == "delta" and message.delta.WhichOneof("type") == "new_element":
                answer.elements.append(message.delta.new_element)
                if message.delta.new_element.HasField("pagination"):
                    self.fragments[message.delta.new_element.pagination.id] = message.delta.fragment_id
            elif kind == "navigation":
                self.pages |= {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
                self.pages[""] = next(page.page_script_hash for page in message.navigation.app_pages if page.is_default)
            elif kind == "script_finished":
                assert message.script_finished in DONE
                answer.seconds = time.perf_counter() - start
                return answer
