"""A run is kept under all that decides its numbers."""

from pages.ui import runs
from pages.ui.config import GRUConfig
from pages.ui.memory import DeepConfig


def test_lessons_with_other_defaults_do_not_share_a_run():
    """The deep lesson's default is another model than the GRU's; both are ``gru`` with nothing in the link."""
    deep, plain = runs.run("gru", DeepConfig()), runs.run("gru", GRUConfig())
    assert runs.key("gru", DeepConfig()) != runs.key("gru", GRUConfig())
    assert "layers.1.forward.H" in deep.trace
    assert "H" in plain.trace
    assert "layers.1.forward.H" not in plain.trace


def test_where_one_looks_is_not_part_of_the_key():
    assert runs.key("gru", GRUConfig(step=3, unit=2, symbol="Z")) == runs.key("gru", GRUConfig())
