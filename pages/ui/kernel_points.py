"""Lesson 10: the points that are fed in. Drawn from the textbook's curve, typed, from a CSV file, or clicked on the stage."""

import streamlit as st

from engine.data.points import LARGEST, MOST, read_points, rounded, sort
from engine.notes import Note
from engine.text.reading import read_bytes
from pages.ui import kernels, link
from pages.ui.config import MAX_SEED
from pages.ui.kernels import KernelConfig
from pages.ui.stage import Touch
from pages.ui.words import words

LIMIT_BYTES = 512 * 1024


def feed(config: KernelConfig) -> None:
    """What the points are; below it other draws, one's own, and the way back."""
    with st.container(key="given", gap="xsmall"):
        if config.points:
            st.markdown(words("kernel.own", count=len(config.points)))
        else:
            st.markdown(words("kernel.drawn", count=config.count, noise=config.noise))
        with st.container(horizontal=True, vertical_alignment="center", key="source"):
            if config.points:
                st.button(words("kernel.back"), type="tertiary", on_click=link.change, kwargs={"points": (), "key": 0})
            else:
                again = {"seed": (config.seed + 1) % (MAX_SEED + 1), "key": 0}
                st.button(words("kernel.again"), type="tertiary", icon=":material/casino:", on_click=link.change, kwargs=again)
                with st.popover(words("kernel.draw"), type="tertiary"):
                    _number("count")
                    _number("noise")
            with st.popover(words("kernel.give"), type="tertiary"):
                _given()


def _number(field: str) -> None:
    """How many points, or how noisy."""
    key, value = f"control-{field}", getattr(st.session_state["config"], field)
    link.show(key, value)

    def told() -> None:
        link.change(**{field: st.session_state[key], "key": 0})

    if field == "count":
        st.number_input(words("kernel.count"), 1, MOST, key=key, on_change=told)
    else:
        st.slider(words("kernel.noise"), *KernelConfig.limits["noise"], step=0.1, key=key, on_change=told)


def _given() -> None:
    """Points as text, or a file of them."""
    st.text_area(
        words("kernel.typed", most=MOST),
        key="points-typed",
        height=120,
        placeholder="0.5, 1.2\n1, 2.7\n2.5, 3.1",
        on_change=_typed,
    )
    key = f"points-file-{st.session_state.setdefault('uploads', 0)}"
    st.file_uploader(words("kernel.file", limit=LIMIT_BYTES // 1024), key=key, on_change=lambda: _uploaded(key))


def _typed() -> None:
    adopt(st.session_state["points-typed"], ())


def _uploaded(key: str) -> None:
    upload = st.session_state[key]
    if upload is None:
        return
    reading = read_bytes(upload.getvalue(), limit=LIMIT_BYTES)
    if reading.text is None and reading.candidates:  # numbers read the same in every encoding that has them
        reading = read_bytes(upload.getvalue(), encoding=reading.candidates[0].encoding, limit=LIMIT_BYTES)
    if reading.text is None:
        link.change(notes=reading.notes)
        return
    st.session_state["uploads"] += 1
    adopt(reading.text, reading.notes)


def adopt(text: str, notes: tuple[Note, ...]) -> None:
    """Take the points of a text; without any, the ones that are there stay and a sentence says why."""
    points, found = read_points(text)
    if points:
        link.change(points=points, notes=(*notes, *found), key=0)
    else:
        link.change(notes=(*notes, *found))


def touched(touch: Touch) -> None:
    """Callback of the stage: a point is added where the learner clicked, or taken away."""
    config = st.session_state["config"]
    x, y = kernels.points_of(config)
    points = list(config.points) or [rounded(*pair) for pair in zip(x.tolist(), y.tolist(), strict=True)]
    if touch.kind == "remove" and touch.at < len(points):
        if len(points) == 1:
            link.change(notes=(Note("kernel.last"),))
            return
        del points[touch.at]
    elif touch.kind == "add":
        if len(points) == MOST:
            link.change(notes=(Note("kernel.full", {"most": MOST}),))
            return
        points.append(rounded(*(min(max(value, -LARGEST), LARGEST) for value in (touch.x, touch.y))))
    link.change(points=sort(points), key=min(config.key, len(points) - 1))
