"""A page with nothing but the stage, for the browser tests. Its link: model, text, lang, mini, step, unit, symbol."""

import streamlit as st

from pages.ui import stage
from tests.stage.runs import TEXT, packed, trace_of

st.set_page_config(layout="wide")
state, link = st.session_state, st.query_params
state["run"] = state.get("run", 0) + 1
name, hidden_size = link.get("model", "lstm"), int(link.get("hidden", "7"))
text = st.text_input("text", link.get("text", TEXT), key="text")
lang = st.radio("language", ("en", "zh"), key="language", horizontal=True, index=("en", "zh").index(link.get("lang", "en")))


def told(changes: tuple[stage.Change, ...]) -> None:
    state["changes"] = changes


changes: tuple[stage.Change, ...] = state.get("changes", ())
do = {
    symbol: tuple(change.intervention() for change in changes if change.symbol == symbol)
    for symbol in dict.fromkeys(change.symbol for change in changes)
}
baseline = trace_of(name, text, hidden_size)
stage.mount(
    packed(
        trace_of(name, text, hidden_size, do) if do else baseline,
        text,
        model=name.partition("-")[0],
        lang=lang,
        baseline=baseline if do else None,
        start={key: int(link[key]) if key != "symbol" else link[key] for key in ("step", "unit", "symbol") if key in link},
        mini="mini" in link,
        link="?model=gru" if "mini" in link else "",
    ),
    key="stage",
    on_change=told,
)
st.button("again")
if st.button("write"):
    link.from_dict({"model": name})
st.text(f"run {state['run']}, {len(changes)} changes")
