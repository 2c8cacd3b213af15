"""The frame: which page, in which language, and the way to the others. Streamlit runs this script at every rerun."""

import streamlit as st

from pages import catalog
from pages.ui import link, theme
from pages.ui.serving import painted
from pages.ui.words import LANGUAGES, language, words

home = st.Page(catalog.FOLDER / "home.py", default=True)
lessons = {one.key: st.Page(one.script, url_path=one.key) for one in catalog.LESSONS if one.ready}
page = st.navigation([home, *lessons.values()], position="hidden")
link.begin(page.url_path)

title = words(f"lesson.{page.url_path}.title") if page.url_path else words("home.title")
st.set_page_config(page_title=f"{title} · {words('name')}", page_icon=str(theme.ICON), layout="wide")
theme.apply()

with st.container(horizontal=True, vertical_alignment="center", key="frame-bar"):
    st.page_link(home, label=f"**{words('name')}**", query_params=link.to(""))
    for one in catalog.LESSONS:
        if one.ready:
            label = f"{one.number} {words(f'lesson.{one.key}.title')}"
            st.page_link(lessons[one.key], label=label, query_params=link.to(one.key))
    st.space("stretch")
    st.session_state["language"] = language()
    st.segmented_control(
        words("frame.language"),
        LANGUAGES,
        format_func=LANGUAGES.__getitem__,
        required=True,
        key="language",
        on_change=link.choose_language,
        label_visibility="collapsed",
    )

page.run()
painted.set()
