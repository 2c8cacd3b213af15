"""The recurrent equations once more, in plain NumPy float64 and written apart from the engine: what the engine is held to."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Change = Callable[[str, int, Array], Array]


def untouched(_name: str, _t: int, value: Array) -> Array:
    return value


def sigma(a: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-a))


def numpy_rnn(w: Mapping[str, Array], X: Array, H0: Array, phi: Callable[[Array], Array] = np.tanh, change: Change = untouched):
    states = []
    H = H0
    for t, x in enumerate(X):
        H = change("H", t, phi(x.dot(w["W_xh"]) + H.dot(w["W_hh"]) + w["b_h"]))
        states.append(H)
    return {"H": np.stack(states)}


def numpy_lstm(w: Mapping[str, Array], X: Array, H0: Array, C0: Array, change: Change = untouched):
    kept: dict[str, list[Array]] = {name: [] for name in ("F", "I", "O", "C_tilde", "C", "H")}
    H, C = H0, C0
    for t, x in enumerate(X):
        gate = {k: x.dot(w[f"W_x{k}"]) + H.dot(w[f"W_h{k}"]) + w[f"b_{k}"] for k in "fioc"}
        F, I, O = (change(name, t, sigma(gate[k])) for name, k in (("F", "f"), ("I", "i"), ("O", "o")))
        C_tilde = change("C_tilde", t, np.tanh(gate["c"]))
        C = change("C", t, np.multiply(F, C) + np.multiply(I, C_tilde))
        H = change("H", t, np.multiply(O, np.tanh(C)))
        for name, value in (("F", F), ("I", I), ("O", O), ("C_tilde", C_tilde), ("C", C), ("H", H)):
            kept[name].append(value)
    return {name: np.stack(values) for name, values in kept.items()}


def numpy_gru(
    w: Mapping[str, Array], X: Array, H0: Array, reset: str = "before", update: str = "keeps", change: Change = untouched
):
    kept: dict[str, list[Array]] = {name: [] for name in ("R", "Z", "H_tilde", "H")}
    H = H0
    for t, x in enumerate(X):
        R = change("R", t, sigma(x.dot(w["W_xr"]) + H.dot(w["W_hr"]) + w["b_r"]))
        Z = change("Z", t, sigma(x.dot(w["W_xz"]) + H.dot(w["W_hz"]) + w["b_z"]))
        before = np.multiply(R, H).dot(w["W_hh"])
        past = before if reset == "before" else np.multiply(R, H.dot(w["W_hh"]) + w.get("b_hh", 0.0))
        H_tilde = change("H_tilde", t, np.tanh(x.dot(w["W_xh"]) + past + w["b_h"]))
        old = Z if update == "keeps" else 1.0 - Z
        H = change("H", t, np.multiply(old, H) + np.multiply(1.0 - old, H_tilde))
        for name, value in (("R", R), ("Z", Z), ("H_tilde", H_tilde), ("H", H)):
            kept[name].append(value)
    return {name: np.stack(values) for name, values in kept.items()}
