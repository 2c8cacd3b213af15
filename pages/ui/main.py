"""The frame: which page, in which language, and the way to the others. Streamlit runs this script at every rerun."""

import streamlit as st

from pages import catalog
from pages.ui import link, opened
from pages.ui.serving import painted
from pages.ui.words import LANGUAGES, language, words

home = st.Page(catalog.FOLDER / "home.py", default=True)
lessons = {one.key: st.Page(one.script, url_path=one.key) for one in catalog.LESSONS if one.ready}
page = st.navigation([home, *lessons.values()], position="hidden")

with link.visit(page.url_path):
    title = words(f"lesson.{page.url_path}.title") if page.url_path else words("home.title")
    st.set_page_config(
        page_title=f"{title} · {words('name')}",
        layout="wide",
        menu_items={"About": words("home.idea")},
    )

    with st.container(horizontal=True, vertical_alignment="center", key="bar"):
        st.page_link(home, label=f"**{words('name')}**", query_params=link.to(""))
        with st.container(horizontal=True, key="near", width="content"):
            for lesson in catalog.near(page.url_path):
                label = f"{lesson.number} {words(f'lesson.{lesson.key}.title')}"
                st.page_link(lessons[lesson.key], label=label, query_params=link.to(lesson.key))
        st.space("stretch")
        for code, name in LANGUAGES.items():
            if code != language():
                st.button(name, key=f"language-{code}", type="tertiary", on_click=link.choose_language, args=(code,))

    opened.interested(st.session_state["links"].get("language_model", {}).get("run", ""))
    page.run()

painted.set()
