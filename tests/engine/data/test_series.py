"""The series of an installation and a made one: always the same, and the noise from the generator that was passed."""

import numpy as np
import pytest

from engine.data import series as module
from engine.data.series import MEASURED, STOCKS, Series, SeriesMissing, measured, noisy_sine
from tests.support import seeded


def test_the_noisy_sine():
    made = noisy_sine(1000, 0.2, generator=seeded(3))
    t = np.arange(1, 1001)
    np.testing.assert_allclose(made.clean, np.sin(0.01 * t), rtol=0, atol=1e-12)
    assert np.std(made.values - made.clean) == pytest.approx(0.2, rel=0.1)
    np.testing.assert_array_equal(made.values, noisy_sine(1000, 0.2, generator=seeded(3)).values)
    assert not np.array_equal(made.values, noisy_sine(1000, 0.2, generator=seeded(4)).values)
    np.testing.assert_array_equal(noisy_sine(7, 0.0, generator=seeded(3)).values, made.clean[:7])
    for length, noise in ((0, 0.2), (5, -1.0), (5, float("nan"))):
        with pytest.raises(ValueError, match="at least"):
            noisy_sine(length, noise, generator=seeded(3))


@pytest.mark.parametrize(
    ("name", "length", "first", "last"),
    [
        ("seattle_temperature", 1461, 12.8, "2015-12-31"),
        ("sf_temperature", 8759, 47.8, "2010-12-31 23:00"),
        ("stocks", 105, 1.0, "2019-12-30"),
    ],
)
def test_the_measured_series(name, length, first, last):
    found = measured(name)
    assert len(found) == len(found.labels) == length
    assert found.values[0] == first
    assert found.labels[-1] == last
    assert not found.values.flags.writeable


def test_every_company_has_its_prices():
    assert len({measured("stocks", company).values[-1] for company in STOCKS}) == len(STOCKS)
    with pytest.raises(ValueError, match="company is one of GOOG"):
        measured("stocks", "ACME")
    with pytest.raises(ValueError, match=f"one of {', '.join(MEASURED)}"):
        measured("rain")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    measured.cache_clear()
    with pytest.raises(SeriesMissing, match="vega_datasets") as caught:
        measured("seattle_temperature")
    assert caught.value.package == "vega_datasets"


def test_a_series_is_finite_and_its_labels_fit():
    with pytest.raises(ValueError, match="finite"):
        Series(name="x", values=np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match="2 values have 1 labels"):
        Series(name="x", values=np.array([1.0, 2.0]), labels=("a",))
