"""Lesson 3: embeddings."""

import streamlit as st

from engine.embedding_questions import Run
from engine.embeddings import PretrainedMissing
from pages.ui import embedding, embedding_rooms, lesson, link, text_stage
from pages.ui.check import check_yourself
from pages.ui.embedding import EmbeddingsConfig
from pages.ui.stage import stage_words
from pages.ui.words import language, words

config = lesson.head(EmbeddingsConfig, embedding_rooms.choose)
try:
    found = embedding.embedded(config)
except PretrainedMissing as reason:
    embedding_rooms.missing(reason)
else:
    if found.ids:
        data = embedding.packed(config, found, stage_words(), language(), link.moves())
        text_stage.mount_embedding(data, key="stage-embeddings")
    else:
        st.text(words("embeddings.nothing"))
    embedding_rooms.what_if(config, found)
    lesson.room("try")
    lesson.things_to_try()
    lesson.see_more(embedding_rooms.tabs(config, found))
    lesson.room("check")
    check_yourself("embeddings", Run(found=found, step=config.step), None, found.tokens.__getitem__)
    lesson.notes_on()
