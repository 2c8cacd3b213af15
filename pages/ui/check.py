"""Check yourself: predict first, then reveal. Words come from the lesson's text, answers from the learner's own run."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import streamlit as st

from engine.notes import Note
from engine.questions import QUESTIONS
from engine.recurrent.asking import Answer, Question
from engine.trace import Trace
from pages.ui.lesson import pager
from pages.ui.texts import Token, fill, sections
from pages.ui.texts import token as shown_token
from pages.ui.words import language, words


class Asked(Protocol):
    """What questions are asked about."""

    def same(self, other: Any) -> bool:
        """Whether another asks about the same."""


OPTION = re.compile(r"^- +(\w+): +(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Wording:
    """The words of a question: section ``ask-<name>`` with the question, options as ``- name: text``, and the reason."""

    question: str
    options: Mapping[str, str]
    because: str

    @classmethod
    def read(cls, section: str) -> "Wording":
        """Parse a section. Raises ``ValueError`` where it has no options."""
        found = list(OPTION.finditer(section))
        if not found:
            raise ValueError(f"a question without options: {section[:60]!r}")
        before, after = section[: found[0].start()], section[found[-1].end() :]
        return cls(before.strip(), {match[1]: match[2] for match in found}, after.strip())


def check_yourself(lesson: str, run: Asked, trace: Trace | None, token: Callable[[int], str]) -> None:
    """One question of ``lesson`` at a time, about ``run``. ``token`` gives the raw token of an id."""
    _questions(lesson, run, trace, token)


@st.fragment
def _questions(lesson: str, run: Asked, trace: Trace | None, token: Callable[[int], str]) -> None:
    questions = QUESTIONS[lesson]
    with st.container(key="check", border=True):
        question = questions[pager("question", len(questions)) - 1]
        answer = _answer(question, run)
        wording = Wording.read(sections(lesson, language())[f"ask-{question.id.partition('.')[2]}"])
        if isinstance(answer, Note):
            st.text(words(answer.key, **answer.values))
        else:
            _ask(question.id, wording, answer, trace, token)


def _answer(question: Question, run: Asked) -> Answer | Note:
    """The question's answer for this run; asked again only for another run, not at every rerun of the page."""
    known = st.session_state.setdefault("answers", {})
    before, answer = known.get(question.id, (None, None))
    if type(before) is not type(run) or not run.same(before):
        answer = question.ask(run)
        known[question.id] = run, answer
    found: Answer | Note = answer
    return found


def _ask(name: str, wording: Wording, answer: Answer, trace: Trace | None, token: Callable[[int], str]) -> None:
    values = _shown(answer.values, token)
    of_option = {option: values | _shown(answer.each.get(option, {}), token) for option in answer.options}
    texts = {option: fill(wording.options[option.partition(":")[0]], trace, of_option[option]) for option in answer.options}
    st.markdown(fill(wording.question, trace, values))
    key = f"{name} {hash((answer.options, tuple(answer.values.values()), answer.choice))}"  # another run asks anew
    revealed = st.session_state.get(f"{key} revealed", False)
    guess = st.radio(
        words("check.guess"),
        answer.options,
        index=None,
        format_func=texts.__getitem__,
        key=key,
        disabled=revealed,
        label_visibility="collapsed",
        persist_state="session",
    )
    if not revealed:
        st.button(words("check.reveal"), disabled=guess is None, on_click=_reveal, args=(f"{key} revealed",))
        return
    verdict = words("check.right" if guess == answer.choice else "check.wrong")
    st.markdown(f"**{verdict}** {texts[answer.choice]}")
    st.markdown(fill(wording.because, trace, of_option[answer.choice]))


def _reveal(key: str) -> None:
    st.session_state[key] = True


def _shown(values: Mapping[str, float], token: Callable[[int], str]) -> dict[str, float | Token]:
    """The engine's values as the text shows them: tokens for their ids, steps counted from 1."""

    def show(name: str, value: float) -> float | Token:
        if name.startswith("token"):
            return shown_token(token(int(value)))
        return int(value) + 1 if name.endswith("step") else value

    return {name: show(name, value) for name, value in values.items()}
