"""Lesson 9: the tabs of See more, and Check yourself: about the learner's run, or the recorded one where there is none."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
import torch

from engine import tables
from engine.decoding import BeamSearch, Choice, Generation, Step, beam_search, encode_prefix, greedy, sample
from engine.metrics import bits_per_token, perplexity_text
from engine.notation import format_number
from engine.text.display import visible
from engine.text.vocabulary import Vocabulary
from engine.training.checkpoints import CheckpointError
from engine.training.files import Sampling
from engine.training.jobs import Seen
from engine.training.kept import checkpoint_of
from engine.training.questions import Progress, progress_of
from engine.training.spec import Member
from engine.training.viewing import UNKNOWN_ID, stepper
from pages import catalog
from pages.figures.figure import percent
from pages.ui import opened, show, training, training_stage
from pages.ui.check import check_yourself
from pages.ui.training import LanguageModelConfig
from pages.ui.words import words

LESSONS = {"rnn": "rnn", "relu": "rnn", "gru": "gru", "lstm": "lstm"}
WRITTEN = 80
DIE = 12  # tokens whose draw is shown
EMPTY = Progress(run="", size=1, losses=[np.zeros(0)], norms=[np.zeros(0)], held_steps=np.zeros(0), held=[np.zeros(0)])


def tabs(config: LanguageModelConfig) -> dict[str, Callable[[], None]]:
    """See more, by name."""
    return {"kept": partial(_kept, config), "write": partial(_write, config), "data": partial(_data, config)}


# ------------------------------------------------------------------------------------------------------- kept states


def _members(config: LanguageModelConfig, seen: Seen | None) -> list[Member]:
    """The models of a live or the recorded run."""
    if seen is not None:
        return list(seen.spec.members)
    return [training_stage.recorded_member(name) for name in training_stage.recorded_of(config.members)]


def _chosen(members: list[Member], seen: Seen | None, key: str) -> tuple[int, int] | None:
    """Which state: a kept step and a member; None where none is kept yet."""
    names = training_stage.names_of(members)
    if seen is not None and not seen.kept:
        st.text(words("training.nothing_kept"))
        return None
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"state-{key}"):
        member = st.selectbox(
            words("training.which"), range(len(names)), format_func=names.__getitem__, key=f"{key}-member", width=220
        )
        steps = list(seen.kept) if seen is not None else list(training_stage.recording(members[member].kind).steps)
        labels = {step: f"{step:,}" for step in steps}
        step = st.selectbox(
            words("training.kept_step"),
            steps,
            index=len(steps) - 1,
            format_func=labels.__getitem__,
            key=f"{key}-step",
            width=180,
        )
    return int(step), int(member)


def _kept(config: LanguageModelConfig) -> None:
    """Every kept state: its losses, the lessons it can be opened in, and the way back to it."""
    seen = training.seen_of(config)
    members = _members(config, seen)
    chosen = _chosen(members, seen, "kept")
    if chosen is None:
        return
    step, member = chosen
    one = members[member]
    name = f"recorded.{one.kind}.{step}" if seen is None else opened.name_of(seen.id, step, member)
    if seen is not None:
        held = dict(zip(map(int, seen.log.held_steps), seen.log.held[member], strict=True)).get(step)
        if held is not None and held == held:
            st.caption(
                words(
                    "training.kept_held",
                    perplexity=perplexity_text(held),
                    bits=format_number(bits_per_token(held), 2),
                    count=seen.log.measured,
                )
            )
    lessons = ([LESSONS[one.kind]] if one.layers == 1 else []) if one.kind in LESSONS else []
    lessons += ["deep_rnn"] if one.kind in LESSONS else []
    lessons[1:1] = ["truncation"] if one.kind in ("rnn", "gru", "lstm") and one.layers == 1 else []
    if not lessons:
        st.text(words("training.no_lesson"))
    with st.container(horizontal=True, key="kept-lessons"):
        for lesson in lessons if name else []:
            params = {"text": config.text, "model": name}
            params |= {"lang": st.query_params["lang"]} if "lang" in st.query_params else {}
            params |= {"activation": "relu"} if one.kind == "relu" and lesson == "rnn" else {}
            params |= {"network": one.kind} if lesson == "truncation" else {}
            label = words("training.open_in", lesson=words(f"lesson.{lesson}.title"))
            st.page_link(catalog.FOLDER / f"{lesson}.py", label=label, query_params=params, icon=":material/open_in_new:")
    if seen is not None and st.button(words("training.back", step=step), key="rewind", disabled=step == seen.log.step):
        if training.service().rewind(seen.id, step, training.visitor()):
            st.rerun()
        st.text(words("training.not_kept"))


# ------------------------------------------------------------------------------------------------------------ writing


def _write(config: LanguageModelConfig) -> None:
    """Let a kept state write, and show how each of its first characters was chosen."""
    seen = training.seen_of(config)
    members = _members(config, seen)
    chosen = _chosen(members, seen, "write")
    if chosen is None:
        return
    step, member = chosen
    try:
        if seen is None:
            replay = training_stage.recording(members[member].kind)
            model, vocabulary = replay.model_at(replay.nearest(step)), replay.vocabulary
        else:
            folder = training.service().find(seen.id)
            if folder is None:
                raise CheckpointError(seen.id)
            found = checkpoint_of(folder, step, member)
            model, vocabulary = found.model, found.vocabulary
    except CheckpointError:
        st.text(words("training.not_kept"))
        return
    how = config.how
    again = int(st.number_input(words("training.draw_seed"), 0, 9999, how.seed, key="write-seed", width=180))
    written = _written(stepper(model), vocabulary, config.begun, how, again)
    if isinstance(written, BeamSearch):
        best = written.best
        st.code(config.begun + "".join(vocabulary.to_tokens(list(best.tokens))), language=None, wrap_lines=True)
        st.caption(words("training.beams", count=len(written.hypotheses), score=format_number(best.log_probability, 2)))
        return
    st.code(config.begun + "".join(vocabulary.to_tokens(list(written.tokens))), language=None, wrap_lines=True)
    rows = [
        {
            words("training.die.token"): visible(vocabulary.to_tokens(each.token)),
            words("training.die.probability"): percent(each.probability),
            words("training.die.from"): _drawn(each, float(each.cumulative[each.token]) - each.probability),
            words("training.die.to"): _drawn(each, float(each.cumulative[each.token])),
            words("training.die.draw"): _drawn(each, each.draw or 0.0),
        }
        for each in written.steps[:DIE]
    ]
    st.table(pd.DataFrame(rows, index=pd.Index(range(1, len(rows) + 1))))
    st.caption(words("training.die.about"))


def _drawn(each: Choice, value: float) -> str:
    """A number of the draw; a dash where nothing was drawn."""
    return "–" if each.draw is None else format_number(value)


def _written(step: Step, vocabulary: Vocabulary, prefix: str, how: Sampling, seed: int) -> Generation | BeamSearch:
    """What is added to a beginning, with every choice."""
    start, _ = encode_prefix(list(prefix), vocabulary)
    forbidden = (UNKNOWN_ID,)
    if how.beam > 1:
        return beam_search(step, start, WRITTEN, how.beam, forbidden=forbidden)
    if how.temperature == 0:
        return greedy(step, start, WRITTEN, forbidden=forbidden)
    return sample(
        step,
        start,
        WRITTEN,
        torch.Generator().manual_seed(seed),
        temperature=how.temperature,
        top_k=how.top_k,
        top_p=how.top_p,
        forbidden=forbidden,
    )


# --------------------------------------------------------------------------------------------------------------- data


def _data(config: LanguageModelConfig) -> None:
    """The curves as a table."""
    seen = training.seen_of(config)
    if seen is None:
        st.text(words("training.no_run"))
        return
    names = training_stage.names_of(seen.spec.members)
    header, *rows = seen.log.rows()
    named = [(*row[:2], names[int(str(row[2]))], *row[3:]) for row in rows]
    show.download("download.training", "training.csv", "text/csv", lambda: tables.to_csv([header, *named]))
    st.caption(words("training.data", rows=len(rows), count=seen.log.measured))


# -------------------------------------------------------------------------------------------------------------- check


def check(config: LanguageModelConfig) -> None:
    """Questions on the learner's run, or on the recorded one."""
    seen = training.seen_of(config)
    names = training_stage.names_of(_members(config, seen))
    if seen is None:
        st.caption(words("training.check.recorded"))
        progress = _recorded(training_stage.recorded_of(config.members))
    elif seen.log.uniform is None:
        progress = EMPTY
    else:
        size = round(math.exp(seen.log.uniform))
        progress = progress_of(seen.log, seen.id, size, seen.spec.training.max_norm)
    check_yourself("language_model", progress, None, names.__getitem__)


@st.cache_resource(show_spinner=False)
def _recorded(names: tuple[str, ...]) -> Progress:
    replays = [training_stage.recording(name) for name in names]
    steps = sorted(set.intersection(*(set(replay.held_out) for replay in replays)))
    last = steps[-1]  # trainings of several lengths are compared where all of them were measured
    return Progress(
        run=f"recorded {' '.join(names)}",
        size=len(replays[0].vocabulary),
        losses=[replay.events.loss[:last].double().numpy() for replay in replays],
        norms=[replay.events.gradient_norm[:last].double().numpy() for replay in replays],
        held_steps=np.array(steps, dtype=np.float64),
        held=[np.array([replay.held_out[step] for step in steps]) for replay in replays],
        limit=replays[0].events.config.max_norm,
    )
