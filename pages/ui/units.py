"""Units that follow something a reader can name: found by correlation on the learner's text, pinned and named."""

import pandas as pd
import streamlit as st

from engine.notation import format_number
from engine.recurrent.units import correlate, token_features
from pages.figures.tracking import Followed, tracking_strips
from pages.ui import link, show
from pages.ui.memory import MAX_NAME, MAX_PINS, Pin, RNNConfig, named
from pages.ui.runs import Run
from pages.ui.words import words


def tab(run: Run, config: RNNConfig) -> None:
    """The correlations, the best unit of each feature beside it, and the learner's pins."""
    if config.pin != st.session_state["config"].pin:
        st.rerun()  # the tab ran alone, but the stage shows pins as well
    found, constant = correlate(run.trace["H"][:, 0], run.tokens)
    if constant:
        st.caption(words("units.constant", names=", ".join(words(f"units.{name}") for name in constant)))
    if found:
        rows = [
            {
                words("units.feature"): words(f"units.{name}"),
                words("units.unit"): each.unit,
                words("units.correlation"): format_number(each.best, minus="−"),
                words("units.chance"): format_number(each.by_chance, minus="−"),
                words("units.next"): ", ".join(map(str, each.ranked()[1:4])),
            }
            for name, each in found.items()
        ]
        st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="units")
        st.caption(words("units.chance.about"))
        with st.container(horizontal=True, key="pin-found"):
            for name, each in found.items():
                if abs(each.best) <= each.by_chance:
                    continue
                label = words("units.pin", unit=each.unit, name=words(f"units.{name}"))
                st.button(label, key=f"pin-{name}", on_click=_pin, args=(each.unit, words(f"units.{name}")))
        _picture(run, config, {name: each.unit for name, each in found.items()})
    _own(run, config)


def _picture(run: Run, config: RNNConfig, units: dict[str, int]) -> None:
    features = token_features(run.tokens)
    given = dict(config.pins)
    pairs = [
        Followed(key=name, name=words(f"units.{name}"), feature=features[name], unit=unit, state=run.trace["H"][:, 0, unit])
        for name, unit in units.items()
    ]
    labels = {unit: words("units.named", unit=unit, name=given.get(unit, "")).rstrip(" ·") for unit in units.values()}
    figure = tracking_strips(
        pairs,
        run.tokens,
        state=run.trace.symbol("H"),
        unit_names=labels,
        title=words("figure.tracking.title"),
        note=words("figure.tracking.note"),
        hover=show.hover("step", "token"),
        theme=show.theme(),
    )
    show.figure(figure, "tracking")


def _own(run: Run, config: RNNConfig) -> None:
    """Pin any unit under any name, and let pins go."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="pin-own"):
        last = run.trace["H"].shape[-1] - 1
        st.number_input(words("units.which", last=last), 0, last, key="pin-unit", width=160, persist_state="session")
        st.text_input(words("units.name"), max_chars=MAX_NAME, key="pin-name", width=260, persist_state="session")
        st.button(words("units.pin.own"), on_click=_pin_own, disabled=len(config.pin) >= MAX_PINS)
    with st.container(horizontal=True, key="pins"):
        for pin in config.pin:
            st.button(
                words("units.unpin", unit=pin.unit),
                key=f"unpin-{pin.unit}",
                icon=":material/close:",
                type="tertiary",
                on_click=_let_go,
                args=(pin.unit,),
            )


def _pin_own() -> None:
    _pin(int(st.session_state["pin-unit"]), st.session_state["pin-name"])


def _pin(unit: int, name: str) -> None:
    """Pin a unit, under another name if it was pinned already; the stage goes to it."""
    others = tuple(pin for pin in st.session_state["config"].pin if pin.unit != unit)
    link.change(pin=(*others, Pin(unit=unit, name=named(name)))[-MAX_PINS:])


def _let_go(unit: int) -> None:
    link.change(pin=tuple(pin for pin in st.session_state["config"].pin if pin.unit != unit))
