"""A page with nothing but a board, for the browser tests. Its link: show, length, heads, width, kind, lang, and a place."""

import streamlit as st

from pages.ui import stage
from tests.stage import boards

st.set_page_config(layout="wide")
state, link = st.session_state, st.query_params
state["run"] = state.get("run", 0) + 1


def told(changes: tuple[stage.Change, ...]) -> None:
    state["heads"] = changes[0].heads if changes else ()


heads = state.get("heads", ())
place: dict[str, int | str] = {key: int(link[key]) for key in ("step", "key", "head", "unit", "cut") if key in link}
place |= {"symbol": link["symbol"]} if "symbol" in link else {}
show = link.get("show", "attention")
if show == "attention":
    options = {name: int(link[name]) for name in ("length", "heads", "width") if name in link} | {
        "kind": link.get("kind", "causal")
    }
    plain = boards.attention_of(**options)
    trace = boards.attention_of(**options, removed=heads) if heads else plain
    payload = boards.packed(trace, link.get("lang", "en"), baseline=plain if heads else None, start=place)
else:
    payload = getattr(boards, show)()
stage.mount(payload, key="board", on_change=told)
st.text(f"run {state['run']}, heads {list(heads)}, {len(payload)} bytes")
