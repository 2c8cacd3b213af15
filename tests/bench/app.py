"""The app against bare Streamlit pages: a step on the stage, a rerun, a cold start, and the bytes that a lesson sends.

Everything is measured in the same browser, served in the same way, in turns within each round; a figure is the median over
the rounds and a ratio the median of the rounds' ratios, so that a busy neighbour disturbs both sides alike.
"""

import asyncio
import statistics
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.bench.served import Counter, Served
from tests.browsing import FLAGS, find_chromium, settle
from tests.clients import Client, together

ROUNDS, PRESSES, RERUNS, STARTS = 5, 8, 8, 4

# From the event to the frame that shows what it changed: a task after the frame's callbacks runs when it has been painted.
PAINTED = """
    const LIMIT = 20_000;
    const painted = (start, done) => requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => done(performance.now() - start);
        channel.port2.postMessage(0);
    });
"""
ARM = (
    "(selector) => {"
    + PAINTED
    + """
    const roots = [document, ...[...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean)];
    const text = () => roots.map((root) => root.querySelector(selector)).find(Boolean)?.textContent;
    const before = text();
    window.measured = new Promise((done, fail) => {
        let start = null;
        setTimeout(() => fail(new Error(`nothing new in ${selector} after a key`)), LIMIT);
        addEventListener('keydown', (event) => { start = event.timeStamp; }, { capture: true, once: true });
        const watch = new MutationObserver(() => {
            if (start === null || text() === before) return;
            watch.disconnect();
            painted(start, done);
        });
        for (const root of roots) watch.observe(root, { subtree: true, childList: true, characterData: true });
    });
}"""
)
# Notes when a run of the script has ended: the message of this kind, found by its field number, has come.
HEAR = (
    f"const FINISHED = {ForwardMsg.DESCRIPTOR.fields_by_name['script_finished'].number};"
    """
    const varint = (bytes, at) => {
        let value = 0;
        for (let shift = 0; ; shift += 7) {
            const byte = bytes[at++];
            value += (byte & 127) * 2 ** shift;
            if (byte < 128) return [value, at];
        }
    };
    const fields = (bytes) => {
        const found = [];
        let at = 0;
        while (at < bytes.length) {
            let tag, length = 0;
            [tag, at] = varint(bytes, at);
            found.push(tag >> 3);
            if ((tag & 7) === 2) [length, at] = varint(bytes, at);
            else if ((tag & 7) === 0) at = varint(bytes, at)[1];
            else length = (tag & 7) === 1 ? 8 : 4;
            at += length;
        }
        return found;
    };
    window.WebSocket = class extends WebSocket {
        constructor(...given) {
            super(...given);
            this.addEventListener('message', async ({ data }) => {
                const bytes = new Uint8Array(data instanceof Blob ? await data.arrayBuffer() : data);
                if (bytes.length < 4096 && fields(bytes).includes(FINISHED)) window.finished = performance.now();
            });
        }
    };
"""
)
# A press of a pager, to the frame that shows the last thing that its rerun has changed.
RERUN = (
    "([pager, number]) => new Promise((done, fail) => {"
    + PAINTED
    + """
    let shown = null;
    window.finished = null;
    const start = performance.now();
    const watch = new MutationObserver(() => painted(start, (seconds) => { shown = seconds; }));
    watch.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    const look = setInterval(() => {
        const now = performance.now();
        if (now - start > LIMIT) fail(new Error(`no rerun of page ${number}`));
        if (window.finished === null || now - Math.max(window.finished, start + shown) < 150) return;
        clearInterval(look);
        watch.disconnect();
        done(Math.max(shown, window.finished - start));
    }, 20);
    document.querySelector(`.st-key-${pager} button[aria-label="Page ${number}"]`).click();
})"""
)


def run() -> list[str]:
    """Measure and report, a line for each target."""
    lines = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        with ExitStack() as stack:
            servers = {name: stack.enter_context(Served(name)) for name in ("app", "empty", "slider")}
            bare = {name: stack.enter_context(Served(name, plain=True)) for name in ("slider", "heatmap")}
            servers |= {f"bare {name}": server for name, server in bare.items()}
            lines += steps(browser, servers)
            lines += reruns(browser, servers)
            lines += sent(browser, servers)
        lines += cold_starts(browser)
        browser.close()
    return lines


@contextmanager
def opened(browser: Browser, address: str) -> Iterator[Page]:
    """A page in a context of its own, at rest."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.add_init_script(HEAR)
    page.goto(address)
    settle(page, quiet=0.6)
    yield page
    context.close()


def verdict(ratio: float, target: float) -> str:
    return f"ratio {ratio:.2f}, at most {target:.2f}: {'met' if ratio <= target else 'MISSED'}"


def against(ours: list[float], other: list[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(ours, other, strict=True))


def milliseconds(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} ms"


# ----------------------------------------------------------------------------------------------------------------- steps


def steps(browser: Browser, servers: dict[str, Served]) -> list[str]:
    """From the press of a key to the painted frame; Streamlit's own pages as Streamlit serves them, and one as we do."""
    text = "[data-testid=stMarkdown]"
    found = {"app": ".position", "bare slider": text, "bare heatmap": ".gtitle", "slider": text}
    times: dict[str, list[float]] = {name: [] for name in found}
    with ExitStack() as stack:
        pages = {name: stack.enter_context(opened(browser, servers[name].url + "/lstm" * (name == "app"))) for name in found}
        for name, page in pages.items():
            page.locator(found[name]).first.wait_for()
            if name != "app":
                page.get_by_role("slider").focus()
        for turn in range(ROUNDS + 1):
            for name, page in pages.items():
                page.bring_to_front()
                taken = [press(page, found[name]) for _ in range(PRESSES)]
                if turn:  # the first round warms up
                    times[name].append(statistics.median(taken))
    ours, served = milliseconds(times["app"]), against(times["app"], times["slider"])
    return [
        f"a step, key to painted frame: stage {ours}, {name} rerun {milliseconds(times[name])}; "
        f"{verdict(against(times['app'], times[name]), target)}"
        for name, target in (("bare slider", 1 / 3), ("bare heatmap", 1 / 10))
    ] + [f"   (a slider served with the settings of this app: {milliseconds(times['slider'])}, ratio {served:.2f})"]


def press(page: Page, selector: str) -> float:
    """Milliseconds of one press."""
    page.evaluate(ARM, selector)
    page.keyboard.press("ArrowRight")
    taken: float = page.evaluate("window.measured")
    page.wait_for_timeout(50)
    return taken


# ---------------------------------------------------------------------------------------------------------------- reruns


def reruns(browser: Browser, servers: dict[str, Served]) -> list[str]:
    """The same widget on a lesson and on an empty page: in the browser, and the server's part of it."""
    addresses = {"lstm": servers["app"].url + "/lstm", "gru": servers["app"].url + "/gru", "empty": servers["empty"].url}
    rounds: dict[str, list[float]] = {name: [] for name in addresses}
    with ExitStack() as stack:
        pages = {name: stack.enter_context(opened(browser, address)) for name, address in addresses.items()}
        for turn in range(ROUNDS + 1):
            for name, page in pages.items():
                page.bring_to_front()
                taken = [page.evaluate(RERUN, ["try", 1 + (k + 1) % 6]) for k in range(RERUNS)]
                if turn:
                    rounds[name].append(statistics.median(taken))
    server, whole = together(server_reruns({"lstm": servers["app"], "gru": servers["app"], "empty": servers["empty"]}))
    lines = []
    for name in ("lstm", "gru"):
        both = f"{name} {milliseconds(server[name])}, empty page {milliseconds(server['empty'])}"
        ratio = against(server[name], server["empty"])
        lines.append(f"a rerun, server, message to last answer: {both}; {verdict(ratio, 1.5)}")
    # Streamlit's front end draws every element of the page again at each rerun, also those that the answer does not touch.
    for name in ("lstm", "gru"):
        both = f"{name} {milliseconds(rounds[name])}, empty page {milliseconds(rounds['empty'])}"
        lines.append(f"   (in the browser, click to painted frame: {both}, ratio {against(rounds[name], rounds['empty']):.2f})")
    entire = ", ".join(f"{name} {milliseconds(whole[name])}" for name in whole)
    return [*lines, f"   (the whole page, which a new text or model asks for, server: {entire})"]


async def server_reruns(servers: dict[str, Served]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Milliseconds from a rerun's message to the last of its answers, without a browser: as one asks, and the whole page."""
    times: dict[str, list[float]] = {name: [] for name in servers}
    whole: dict[str, list[float]] = {name: [] for name in servers if name != "empty"}
    clients = {name: Client(server.url) for name, server in servers.items()}
    pagers = {}
    for name, client in clients.items():
        await client.__aenter__()
        pagers[name] = (await client.run("" if name == "empty" else name)).pagination("try")
    for turn in range(ROUNDS + 1):
        for name, client in clients.items():
            taken = []
            for k in range(RERUNS):
                taken.append(1000 * (await client.turn(pagers[name], 1 + (k + 1) % 6)).seconds)
                await asyncio.sleep(0.02)
            if turn:
                times[name].append(statistics.median(taken))
        for name, entire in whole.items():
            taken = [1000 * (await clients[name].turn(pagers[name], 1 + k % 2, whole=True)).seconds for k in range(RERUNS)]
            if turn:
                entire.append(statistics.median(taken))
    for client in clients.values():
        await client.__aexit__(None, None, None)
    return times, whole


# ----------------------------------------------------------------------------------------------------------------- bytes


def sent(browser: Browser, servers: dict[str, Served]) -> list[str]:
    """What goes over the wire to open a lesson, beyond what an empty page sends."""
    lines = []
    empty = transfer(browser, servers["empty"], "")
    for lesson in ("lstm", "gru"):
        ours = transfer(browser, servers["app"], lesson)
        beyond = ours["wire"] - empty["wire"]
        static = sum(size for name, size in ours["files"].items() if "/static/" in name and name not in empty["files"])
        lines.append(
            f"bytes to open /{lesson} beyond Streamlit's own: {(beyond - static) / 1000:.0f} kB on the wire, at most 400 kB: "
            f"{'met' if beyond - static <= 400_000 else 'MISSED'} (parts of Streamlit that an empty page does not load: "
            f"{static / 1000:.0f} kB; "
            f"messages before compression {(ours['messages'] - empty['messages']) / 1000:.0f} kB; "
            f"the empty page itself {empty['wire'] / 1000:.0f} kB)"
        )
    return lines


def transfer(browser: Browser, server: Served, path: str) -> dict[str, Any]:
    """Bytes from the server to a browser that has nothing cached, and the files by their path."""
    with Counter(server.port) as counter:
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        watch = context.new_cdp_session(page)
        watch.send("Network.enable")
        names: dict[str, str] = {}
        files: dict[str, int] = {}
        messages = [0]

        def asked(event: Any) -> None:
            names[event["requestId"]] = event["request"]["url"]

        def loaded(event: Any) -> None:
            path = names[event["requestId"]].partition(f":{counter.port}")[2]
            files[path] = files.get(path, 0) + int(event["encodedDataLength"])

        def received(event: Any) -> None:
            messages[0] += len(event["response"]["payloadData"]) * 3 // 4

        watch.on("Network.requestWillBeSent", asked)
        watch.on("Network.loadingFinished", loaded)
        watch.on("Network.webSocketFrameReceived", received)
        page.goto(f"http://127.0.0.1:{counter.port}/{path}")
        settle(page, quiet=1.5)
        context.close()
        return {"wire": counter.bytes, "files": files, "messages": messages[0]}


# ------------------------------------------------------------------------------------------------------------ cold start


def cold_starts(browser: Browser) -> list[str]:
    """From the start of the server's process to the first paint of a page's own words."""
    seen = {"empty": ("empty", "", "h1"), "home": ("app", "", "h1"), "lstm": ("app", "lstm", "textarea")}
    times: dict[str, list[float]] = {name: [] for name in seen}
    for turn in range(STARTS + 1):
        for name, (server, path, selector) in seen.items():
            taken = cold_start(browser, server, path, selector)
            if turn:
                times[name].append(1000 * taken)
    empty = milliseconds(times["empty"])
    return [
        f"cold start to first paint: {name} {milliseconds(times[name])}, empty app {empty}; "
        f"{verdict(against(times[name], times['empty']), 1.3)}"
        for name in ("home", "lstm")
    ]


def cold_start(browser: Browser, name: str, path: str, selector: str) -> float:
    """Seconds of one start."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    with Served(name, wait=False) as server:
        server.answers()
        page.goto(f"{server.url}/{path}", wait_until="commit")
        page.locator(selector).first.wait_for()
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
        seconds = server.age()
        context.close()
    return seconds
