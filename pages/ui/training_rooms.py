"""Lesson 9: what is chosen, the run and its buttons, what can be changed. Only the run's fragment runs again by itself."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from engine.notes import Note
from engine.training.files import ALIVE
from engine.training.jobs import Refused, Seen
from engine.training.models import KINDS
from engine.training.spec import MOST_MEMBERS, Examined, Member, examine, fitting, rate_faults
from pages.ui import lesson as rooms
from pages.ui import link, training, training_stage
from pages.ui.training import BOUNDS, LAYERS, WIDTHS, LanguageModelConfig
from pages.ui.words import language, words

EVERY = 0.4  # seconds between two looks at a run
GENTLER = 0.1  # the learning rate after a divergence, as a share of what it was


def config_now() -> LanguageModelConfig:
    """The page's config; in a callback it may be newer than what the page was run with."""
    config: LanguageModelConfig = st.session_state["config"]
    return config


def choose(config: LanguageModelConfig) -> None:
    """The two controls beside the text: what is trained on, and which models."""
    rooms.control("corpus", LanguageModelConfig.choices["corpus"])
    key = "control-members"
    link.show(key, list(dict.fromkeys(member.kind for member in config.members)))
    st.multiselect(
        words("members"),
        KINDS,
        format_func=lambda kind: words(f"member.{kind}"),
        key=key,
        max_selections=MOST_MEMBERS,
        on_change=_kinds,
        placeholder=words("members.choose"),
        label_visibility="collapsed",
    )


def _kinds() -> None:
    """The models that are chosen; those that were there keep their sizes."""
    before = config_now().members
    wanted = st.session_state["control-members"] or [before[0].kind]
    sizes = before[0]
    found: list[Member] = []
    for kind in wanted:
        own = [member for member in before if member.kind == kind]
        found += own or [Member(kind=kind, width=sizes.width, layers=sizes.layers)]
    link.change(members=tuple(found[:MOST_MEMBERS]))


def judged(config: LanguageModelConfig) -> Examined:
    """What can be said of the run that is asked for."""
    found = examine(config.spec(), training.material_of(config), training.service().limits)
    faults = rate_faults(config.rate)
    notes = tuple(note for note in found.notes if not faults or note.key != "training.rate_zero")
    return replace(found, refusals=(*found.refusals, *faults), notes=notes)


# ---------------------------------------------------------------------------------------------------------------- the run


def stage(config: LanguageModelConfig) -> None:
    """Buttons, progress and stage. While the run lives it looks at it by itself, and nothing else of the page runs."""
    training.service().warm()
    seen = training.seen_of(config)
    live = seen is not None and (seen.place > 0 or seen.status.state in ALIVE)
    with st.container(key="training"):
        st.fragment(_stage, run_every=EVERY if live else None)(live)


def _stage(live: bool) -> None:
    config = config_now()
    seen = training.seen_of(config)
    if config.run and seen is None:
        st.text(words("training.gone"))
    _buttons(config, seen)
    if seen is not None:
        _progress(seen)
        _offers(seen)
        training_stage.mount(training_stage.pack_live(seen, language()), key="stage-training")
    else:
        data = training_stage.pack_recorded(training_stage.recorded_of(config.members), config.probe, config.begun, language())
        training_stage.mount(data, key="stage-training")
    alive = seen is not None and (seen.place > 0 or seen.status.state in ALIVE)
    if alive != live:  # the whole page, so that it begins, or stops, to look by itself
        st.rerun()


def _buttons(config: LanguageModelConfig, seen: Seen | None) -> None:
    """What can be asked of the run in its present state; a run that has ended can always be followed by another."""
    state = "" if seen is None else seen.status.state
    over = seen is not None and seen.log.step >= seen.spec.training.steps
    busy = state in ALIVE or (seen is not None and seen.place > 0)
    pressed = False
    with st.container(horizontal=True, vertical_alignment="center", key="training-buttons"):
        if not busy:
            judgement = judged(config)
            label = words("training.train" if seen is None else "training.anew")
            kind: Any = "primary" if seen is None or over else "secondary"
            pressed |= st.button(label, on_click=_train, type=kind, disabled=bool(judgement.refusals), key="train")
        if seen is not None and state in ("running", "starting"):
            pressed |= _button("pause", lambda: training.service().pause(seen.id), kind="primary")
        if seen is not None and not over and state not in ("running", "starting", "queued"):
            pressed |= _button("resume", lambda: training.service().resume(seen.id, training.visitor()), kind="primary")
            pressed |= _button("step", lambda: training.service().step(seen.id, training.visitor()))
        if busy and seen is not None:
            pressed |= _button("stop", lambda: training.service().stop(seen.id))
        if seen is not None:
            st.caption(_state(seen))
    if not busy:
        rooms.say((*judgement.refusals, *judgement.notes, *_refused()), key="training-notes")
        if any(note.key == "training.text_short" for note in judgement.refusals) and judgement.plan.length > 1:
            pressed |= st.button(words("training.fit"), on_click=_fit, key="training-fit")
    if pressed:
        st.rerun()


def _button(name: str, asked: Callable[[], None], kind: Any = "secondary") -> bool:
    return st.button(words(f"training.{name}"), on_click=asked, type=kind, key=f"training-{name}")


def _refused() -> tuple[Note, ...]:
    note = st.session_state.get("training-refused")
    return (note,) if isinstance(note, Note) else ()


def _train() -> None:
    """Begin a run with what is chosen. The run that was shown ends; it stays under its own link."""
    config, service = config_now(), training.service()
    if config.run:
        service.stop(config.run)
    st.session_state["training-refused"] = None
    try:
        run = service.start(config.spec(), training.material_of(config), training.visitor())
    except Refused as refused:
        st.session_state["training-refused"] = refused.note
        return
    service.sampling(run, config.how)
    link.change(run=run)


def _fit() -> None:
    """Smaller minibatches, for a text that is too short for those that are chosen."""
    config = config_now()
    spec = fitting(config.spec(), len(training.material_of(config).train))
    if spec is not None:
        link.change(rows=spec.batch_size, piece=spec.num_steps)


def _state(seen: Seen) -> str:
    """The state of a run in a sentence."""
    state, reason = seen.status.state, seen.status.reason
    if seen.place:
        return words("training.state.queued", place=seen.place)
    if state == "stopped" and reason in ("seconds", "turned"):
        minutes = round(training.service().limits.seconds / 60)
        return words(f"training.state.{reason}", minutes=minutes)
    if state in ("failed", "interrupted") and reason in ("memory", "disk"):
        return words(f"training.state.{reason}")
    return words(f"training.state.{state}")


def _progress(seen: Seen) -> None:
    step, steps = seen.log.step, seen.spec.training.steps
    left = seen.log.left(steps) if seen.status.state == "running" else None
    done = words("training.progress", step=step, steps=steps, seconds=_time(seen.log.seconds[-1] if step else 0.0))
    rest = "" if left is None or step >= steps else " · " + words("training.left", seconds=_time(left))
    st.progress(min(step / steps, 1.0), text=done + rest)


def _time(seconds: float) -> str:
    """12 s, 3:05."""
    whole = round(seconds)
    return words("training.seconds", count=whole) if whole < 60 else f"{whole // 60}:{whole % 60:02d}"


def _offers(seen: Seen) -> None:
    """Where a run has diverged, or held-out perplexity has turned: what happened, and the way back."""
    service, names = training.service(), training_stage.names_of(seen.spec.members)
    for one in [each for each in seen.log.happened if each.kind == "diverged"]:
        values = one.values
        st.text(words(f"training.diverged.{values['what']}", model=names[values["m"]], step=one.step, tensor=values["tensor"]))
        back = max((step for step in seen.kept if step < one.step), default=None)
        if back is None:
            continue
        with st.container(horizontal=True, key=f"training-diverged-{values['m']}"):
            calmer = seen.spec.with_training(learning_rate=seen.spec.training.learning_rate * GENTLER)
            clipped = seen.spec.with_training(max_norm=1.0)
            for name, spec in (("slower", calmer), ("clipped", clipped)):
                if spec != seen.spec and not (name == "clipped" and math.isfinite(seen.spec.training.max_norm)):
                    label = words(f"training.back.{name}", step=back, rate=f"{spec.training.learning_rate:g}")
                    if st.button(label, key=f"training-{name}-{values['m']}"):
                        service.rewind(seen.id, back, training.visitor(), spec, go=True)
                        if name == "slower":
                            link.change(rate=spec.training.learning_rate)
                        else:
                            link.change(clip=1.0)
                        st.rerun()
    turned = [(place, step) for place in range(len(names)) if (step := seen.log.turned(place)) is not None]
    for place, step in turned:
        if step not in seen.kept:
            continue
        with st.container(horizontal=True, vertical_alignment="center", key=f"training-turned-{place}"):
            st.caption(words("training.turned", model=names[place], step=step))
            if st.button(words("training.back.best", step=step), key=f"training-best-{place}"):
                service.rewind(seen.id, step, training.visitor())
                st.rerun()


# ------------------------------------------------------------------------------------------------------------ what if


def what_if(config: LanguageModelConfig) -> None:
    """How the next run is trained, and how this one's models are sampled."""
    rooms.room("whatif")
    _settings(config)


def _settings(config: LanguageModelConfig) -> None:
    st.markdown(words("training.whatif"))
    with st.container(horizontal=True, vertical_alignment="bottom", key="training-settings"):
        _free("rate", config.rate, "%g")
        rooms.control("optimizer", LanguageModelConfig.choices["optimizer"], label=True)
        _free("clip", config.clip, "%g")
        rooms.control("sampling", LanguageModelConfig.choices["sampling"], label=True)
        for field in ("rows", "piece", "total", "patience"):
            _whole(field)
        _whole("seed")
    with st.container(horizontal=True, vertical_alignment="bottom", key="training-sizes"):
        for place, member in enumerate(config.members):
            _size(place, member)
    found = judged(config)
    names = training_stage.names_of(config.members)
    counted = " · ".join(
        words("training.counted", model=name, count=count) for name, count in zip(names, found.parameters, strict=True)
    )
    st.caption(
        counted + " · " + words("training.plan", batches=found.plan.batches, tokens=found.plan.used, length=found.plan.length)
    )
    st.markdown(words("training.sampling"))
    with st.container(horizontal=True, vertical_alignment="bottom", key="training-sampling"):
        _line("prefix", config.begun)
        _free("temperature", config.temperature, "%g", 0.0, 5.0)
        _whole("top_k")
        _free("top_p", config.top_p, "%g", 0.01, 1.0)
        _whole("beam")
    if config.beam > 1:
        st.caption(words("training.beam_note", beam=config.beam))
    elif config.temperature == 0:
        st.caption(words("decoding.greedy"))


def _changed(**values: Any) -> None:
    """Take a setting; a live run samples in the new way at once."""
    link.change(**values)
    config = config_now()
    if config.run:
        training.service().sampling(config.run, config.how)


def _free(field: str, value: float, form: str, low: float | None = None, high: float | None = None) -> None:
    """A number; of the learning rate any, so that what is wrong with it is said and not swallowed."""
    key = f"control-{field}"
    link.show(key, value)
    st.number_input(
        words(field),
        low,
        high,
        step=None if low is None else 0.1,
        format=form,
        key=key,
        width=130,
        on_change=lambda: _changed(**{field: float(st.session_state[key] if st.session_state[key] is not None else value)}),
    )


def _whole(field: str) -> None:
    key, (low, high) = f"control-{field}", BOUNDS[field]
    link.show(key, getattr(config_now(), field))
    st.number_input(
        words(field), low, high, key=key, width=130, on_change=lambda: _changed(**{field: int(st.session_state[key] or low)})
    )


def _line(field: str, value: str) -> None:
    key = f"control-{field}"
    link.show(key, value)
    st.text_input(words(field), max_chars=24, key=key, width=180, on_change=lambda: _changed(**{field: st.session_state[key]}))


def _size(place: int, member: Member) -> None:
    """Width and layers of one model."""
    name = words(f"member.{member.kind}")
    for part, (low, high) in (("width", WIDTHS), ("layers", LAYERS)):
        key = f"control-{part}-{place}"
        link.show(key, getattr(member, part))
        st.number_input(
            words(f"training.{part}", model=name), low, high, key=key, width=170, on_change=_sized, args=(place, part, key)
        )


def _sized(place: int, part: str, key: str) -> None:
    members = list(config_now().members)
    if place < len(members) and st.session_state[key]:
        sizes: dict[str, Any] = {part: int(st.session_state[key])}
        members[place] = replace(members[place], **sizes)
        link.change(members=tuple(members))
