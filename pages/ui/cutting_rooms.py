"""Lesson 2: what stands above and below its stage."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from engine import tables
from engine.notation import format_number
from engine.text.batches import Plan
from engine.text.cutting import WAYS, Cutting, batches
from engine.text.display import visible
from engine.text.frequencies import rank_frequency
from engine.text.reading import read_text
from engine.text.script import script
from engine.text.tokenizers import LEVELS, tokenize_like
from engine.text.vocabulary import vocabulary_cost
from pages.figures import zipf
from pages.figures.figure import percent
from pages.ui import cutting, link, show
from pages.ui import lesson as rooms
from pages.ui.config import MAX_SEED
from pages.ui.cutting import LIMITS, Material, TokensConfig
from pages.ui.words import words

HIDDEN = 64  # width of the models of later lessons
LEAST = (1, 2, 3, 5, 10)
OTHER = "The serpent beguiled me, and I did eat: 2 figs & a naïve apple."
Tabs = dict[str, Callable[[], None]]


def choose(config: TokensConfig) -> None:
    """Beside the text: at which level it is split, and whether a longer one is taken instead."""
    rooms.control("level", config.choices["level"])
    rooms.control("material", config.choices["material"])


def what_if(config: TokensConfig, found: Cutting) -> None:
    """The other decisions, and what they come to."""
    rooms.room("whatif")
    with st.container(horizontal=True, key="switches"):
        _number("min_freq", *LIMITS["min_freq"])
        rooms.control("reserved", config.choices["reserved"], label=True)
        if config.level == "bpe":
            _number("pieces", *LIMITS["pieces"])
        if config.level in ("word", "chinese"):
            rooms.control("blanks", config.choices["blanks"], label=True)
        _number("size", *LIMITS["size"])
        _number("steps", *LIMITS["steps"])
        _number("seed", 0, MAX_SEED)
    plan = cutting.placed(config, found)
    cost = vocabulary_cost(len(found.vocabulary), hidden_size=HIDDEN, num_steps=config.steps, batch_size=config.size)
    with st.container(horizontal=True, key="measures"):
        st.metric(words("tokens.size"), f"{len(found.vocabulary):,}")
        st.metric(words("tokens.unknown"), _share(found.unknown, len(found.tokens)))
        st.metric(words("tokens.needed"), f"{plan.needed:,}", help=words("tokens.needed.about"))
        st.metric(words("tokens.one_hot"), _bytes(cost.one_hot_bytes), help=words("tokens.one_hot.about"))
        st.metric(words("tokens.output"), f"{cost.output_parameters:,}", help=words("tokens.output.about", hidden=HIDDEN))
    st.caption(_plan(plan))


def _plan(plan: Plan) -> str:
    values: dict[str, Any] = {
        "length": plan.length,
        "needed": plan.needed,
        "longest": plan.largest_steps,
        "most": plan.largest_batch,
    }
    if plan.enough:
        return words("tokens.plan", count=plan.batches, used=plan.used, unused=plan.unused, **values)
    return words("tokens.plan.short", **values)


def _number(field: str, low: int, high: int) -> None:
    key = f"control-{field}"
    link.show(key, getattr(st.session_state["config"], field))
    st.number_input(words(field), low, high, key=key, on_change=lambda: link.change(**{field: st.session_state[key]}))


def tabs(config: TokensConfig, text: Material, found: Cutting) -> Tabs:
    """The tabs, by name."""
    return {
        "frequencies": lambda: _frequencies(config, text, found),
        "levels": lambda: _levels(config, text),
        "unknown": lambda: _unknown(config, found),
        "code": lambda: _code(config, found),
        "data": lambda: _data(config, found),
    }


def _frequencies(config: TokensConfig, text: Material, found: Cutting) -> None:
    if not found.tokens:
        st.text(words("text.empty"))
        return
    lines = [
        zipf.Named(found=rank_frequency(found.tokens, n), name=words("tokens.grams", n=n))
        for n in (1, 2, 3)
        if len(found.tokens) >= n
    ]
    figure = zipf.rank_lines(
        lines,
        title=words("figure.zipf.title"),
        note=words("figure.zipf.note", count=len(found.tokens)),
        x_title=words("figure.zipf.x"),
        y_title=words("figure.zipf.y"),
        exponent="α",
        hover=(words("figure.token"), words("figure.zipf.x"), words("figure.zipf.y")),
        theme=show.theme(),
    )
    show.figure(figure, "frequencies")
    if any(line.found.exponent is None for line in lines):
        st.text(words("tokens.no_fit"))
    if config.material == "own" and len(text.text) < 2000:
        st.caption(words("tokens.longer"))
    st.dataframe(_top(lines), hide_index=True, width="stretch", key="top")


def _top(lines: list[zipf.Named], count: int = 10) -> pd.DataFrame:
    """The most frequent runs, a column pair for each length."""
    columns: dict[str, list[str]] = {words("figure.zipf.x"): [str(rank) for rank in range(1, count + 1)]}
    for line in lines:
        listed = [" ".join(map(visible, ngram)) for ngram in line.found.ngrams[:count]]
        counts = [f"{int(each):,}" for each in line.found.counts[:count]]
        empty = [""] * (count - len(listed))
        columns[line.name] = listed + empty
        columns[f"{line.name} · {words('figure.zipf.y')}"] = counts + empty
    return pd.DataFrame(columns)


def _levels(config: TokensConfig, text: Material) -> None:
    """The same text at every level."""
    rows = []
    for level in LEVELS:
        other = cutting.cutting(_at(config, level), text.text)
        rows.append(
            {
                words("level"): words(f"level.{level}"),
                words("tokens.count"): f"{len(other.tokens):,}",
                words("tokens.distinct"): f"{other.distinct:,}",
                words("tokens.per_token"): format_number(len(text.text) / max(len(other.tokens), 1), 2),
                words("tokens.back"): words("yes" if "".join(other.tokens) == text.text else "no"),
                words("tokens.begins"): " | ".join(visible(token) for token in other.tokens[:12]),
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="levels")
    st.caption(words("tokens.levels.about"))


def _at(config: TokensConfig, level: str) -> TokensConfig:
    return TokensConfig(**{name: getattr(config, name) for name in ("text", "material", "min_freq", "pieces")}, level=level)


def _unknown(config: TokensConfig, found: Cutting) -> None:
    """What a minimal frequency costs, and what this vocabulary makes of another text."""
    rows = []
    for least in LEAST:
        kept = [count for count in found.vocabulary.counts.values() if count >= least]
        lost = len(found.tokens) - sum(kept)
        size = 1 + len(kept)
        cost = vocabulary_cost(size, hidden_size=HIDDEN, num_steps=config.steps, batch_size=config.size)
        rows.append(
            {
                words("min_freq"): str(least) + (f"  ({words('tokens.here')})" if least == config.min_freq else ""),
                words("tokens.size"): f"{size:,}",
                words("tokens.unknown"): _share(lost, len(found.tokens)),
                words("tokens.output"): f"{cost.output_parameters:,}",
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="least")
    st.subheader(words("tokens.other"), anchor=False)
    given = st.text_input(words("tokens.other.label"), OTHER, key="other", max_chars=500)
    given = read_text(given).text or ""
    split = tokenize_like(given, found.text, config.level, keep_blanks=config.kept_blanks, vocabulary_size=config.pieces)
    ids = found.vocabulary[split]
    if config.level == "bpe":
        st.caption(words("tokens.other.bpe"))
    table = {
        words("figure.token"): [visible(token) for token in split],
        words("tokens.id"): [str(index) for index in ids],
        words("tokens.read_as"): [visible(token) for token in found.vocabulary.to_tokens(ids)],
    }
    st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch", height=260, key="other-table")
    st.text(words("tokens.other.says", count=len(ids), unknown=ids.count(0)))


def _code(config: TokensConfig, found: Cutting) -> None:
    written = script(found, cutting.placed(config, found), config.min_freq, config.reserved_tokens)
    show.download("download.script", "tokens.py", "text/x-python", written.encode)
    st.code(written, language="python", height=460)


def _data(config: TokensConfig, found: Cutting) -> None:
    plan = cutting.placed(config, found)
    made = {
        "vocabulary": lambda: tables.to_csv(vocabulary_rows(found)),
        "tokens": lambda: tables.to_csv(token_rows(found)),
        "batches": lambda: tables.to_csv(batch_rows(found, plan, config.seed)),
    }
    for name, make in made.items():
        show.download(f"download.{name}", f"{name}.csv", "text/csv", make)
        st.caption(words(f"download.{name}.about"))


def vocabulary_rows(found: Cutting) -> list[tables.Row]:
    """A row for each entry of the vocabulary."""
    counts = found.vocabulary.counts
    rows = [(i, token, found.unknown if i == 0 else counts.get(token, 0)) for i, token in enumerate(found.vocabulary)]
    return [("id", "token", "count"), *rows]


def token_rows(found: Cutting) -> list[tables.Row]:
    """A row for each token of the text."""
    listed = enumerate(zip(found.tokens, found.ids, strict=True), 1)
    return [("place", "token", "id"), *((place, token, index) for place, (token, index) in listed)]


def batch_rows(found: Cutting, plan: Plan, seed: int) -> list[tables.Row]:
    """A row for each row of each minibatch, in both ways to cut: where it begins, its inputs and its targets."""
    rows: list[tables.Row] = [("way", "offset", "minibatch", "row", "first_token", "X", "Y")]
    if not plan.enough:
        return rows
    for way in WAYS:
        made = batches(found.ids[: plan.length], way, plan, seed)
        for number, ((inputs, targets), starts) in enumerate(zip(made, made.starts.tolist(), strict=True), 1):
            for row, start in enumerate(starts):
                written = [" ".join(map(str, part[row].tolist())) for part in (inputs, targets)]
                rows.append((way, plan.offset, number, row + 1, start + 1, *written))
    return rows


def _share(part: int, whole: int) -> str:
    return "0%" if not whole else percent(part / whole)


def _bytes(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:,.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"
