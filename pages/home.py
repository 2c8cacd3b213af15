"""Home: what Unrolled is, a model at work, and the road of lessons."""

from urllib.parse import urlencode

import streamlit as st

from pages import catalog
from pages.ui import link
from pages.ui.words import words

SHOWN = "lstm"  # the model at work at the top

with st.container(key="hero"):
    with st.container(key="claim"):
        st.title(words("home.title"), anchor=False)
        st.markdown(words("home.idea"))
        label = words("home.start", lesson=words(f"lesson.{SHOWN}.title"))
        with st.container(key="start"):
            st.page_link(
                catalog.FOLDER / f"{SHOWN}.py", label=label, query_params=link.to(SHOWN), icon=":material/arrow_forward:"
            )
    stage = st.container(key="hero-stage")

st.header(words("home.road"), anchor=False)
st.caption(words("home.road.idea", count=sum(lesson.ready for lesson in catalog.LESSONS)))

with st.container(key="road"):
    for chapter, lessons in catalog.chapters().items():
        with st.container(key=f"chapter-{chapter}", gap=None):
            st.subheader(words(f"chapter.{chapter}.title"), anchor=False)
            st.caption(words(f"chapter.{chapter}.idea"))
            for lesson in lessons:
                title, idea = (words(f"lesson.{lesson.key}.{part}") for part in ("title", "idea"))
                with st.container(key=f"{'ready' if lesson.ready else 'coming'}-{lesson.key}", gap=None):
                    if lesson.ready:
                        st.page_link(lesson.script, label=f"**{title}**", query_params=link.to(lesson.key))
                    else:
                        st.markdown(f"**{title}** :small[· {words('frame.coming')}]")
                    st.caption(idea)

# The page is painted by now: only the model at work needs torch, which takes seconds to load on a fresh server.
from pages.ui import miniature  # noqa: E402

with stage:
    miniature.show(f"{SHOWN}?{urlencode(link.to(SHOWN))}")
