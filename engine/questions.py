"""The questions of every lesson, by its key."""

from typing import Final

from engine.attention.head_questions import HEADS
from engine.attention.kernel_questions import KERNELS_ASKED
from engine.attention.order_questions import POSITIONS
from engine.attention.score_questions import SCORING
from engine.embedding_questions import EMBEDDINGS
from engine.recurrent import questions as recurrent
from engine.recurrent.asking import Question
from engine.recurrent.truncation_questions import TRUNCATION
from engine.sequences.questions import AUTOREGRESSION
from engine.text.questions import TOKENS
from engine.training.questions import LANGUAGE_MODEL
from engine.transformer.depth_questions import RESIDUALS

QUESTIONS: Final[dict[str, tuple[Question, ...]]] = {
    "autoregression": AUTOREGRESSION,
    "tokens": TOKENS,
    "embeddings": EMBEDDINGS,
    "kernel_regression": KERNELS_ASKED,
    "scoring": SCORING,
    "language_model": LANGUAGE_MODEL,
    "multihead": HEADS,
    "positions": POSITIONS,
    "residual_norm": RESIDUALS,
    "truncation": TRUNCATION,
} | recurrent.QUESTIONS
