"""Trained models on disk: the weights as safetensors, and beside them a JSON file that says what they are.

``name.json`` holds the model's config, its vocabulary, the data with the sha256 of its text, how it was trained and with
which seed, the losses, the sha256 of ``name.safetensors`` and the versions that made it. Both files are written whole or not
at all, the JSON last, so a checkpoint that can be read is complete. Reading never runs code from a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensor_bytes

from engine.language_models import LanguageModel, language_model
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.text.vocabulary import Vocabulary

SHIPPED = Path(__file__).resolve().parents[2] / "assets" / "checkpoints"
FORMAT = 1
Model = TypeVar("Model", bound=LanguageModel)


class CheckpointError(ValueError):
    """A checkpoint that is not what it says it is: files missing or changed, or weights that do not fit the model."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Generic[Model]):
    """A trained model, shared read-only by all who load it: its parameters take no gradient. Copy it to train it on.

    ``model``: in evaluation mode; ``config``: the arguments it was made with; ``data``, ``training``, ``losses``,
    ``versions``: as stored.
    """

    name: str
    model: Model = field(repr=False)
    vocabulary: Vocabulary = field(repr=False)
    config: Mapping[str, Any]
    data: Mapping[str, Any]
    training: Mapping[str, Any]
    losses: Mapping[str, Any]
    weights_sha256: str
    versions: Mapping[str, str]


def sha256(content: bytes | str) -> str:
    """Hexadecimal sha256 of bytes, or of a text in UTF-8."""
    return hashlib.sha256(content.encode("utf-8") if isinstance(content, str) else content).hexdigest()


def names(folder: Path = SHIPPED) -> list[str]:
    """The checkpoints in a folder."""
    return sorted(path.stem for path in folder.glob("*.json"))


def save(
    name: str,
    model: LanguageModel,
    vocabulary: Vocabulary,
    *,
    config: Mapping[str, Any],
    data: Mapping[str, Any],
    training: Mapping[str, Any],
    losses: Mapping[str, Any],
    folder: Path = SHIPPED,
) -> Path:
    """Write a checkpoint and return the path of its JSON file. ``config`` are the keyword arguments that made the model."""
    weights = tensor_bytes(
        {key: value.detach().clone(memory_format=torch.contiguous_format) for key, value in model.state_dict().items()}
    )
    content = {
        "format": FORMAT,
        "config": dict(config),
        "data": dict(data),
        "training": dict(training),
        "losses": dict(losses),
        "weights": {"sha256": sha256(weights), "bytes": len(weights)},
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "vocabulary": list(vocabulary.tokens),
    }
    path = folder / f"{name}.json"
    write(path.with_suffix(".safetensors"), weights)
    write(path, (json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode("utf-8"))
    return path


def load(name: str, folder: Path = SHIPPED) -> Checkpoint[RecurrentLanguageModel]:
    """The checkpoint of a recurrent model, as ``load_any`` reads it. Raises ``CheckpointError`` also for a Transformer."""
    found = load_any(name, folder)
    if not isinstance(found.model, RecurrentLanguageModel):
        raise CheckpointError(f"{name} is no recurrent model")
    return cast(Checkpoint[RecurrentLanguageModel], found)


def load_any(name: str, folder: Path = SHIPPED) -> Checkpoint[LanguageModel]:
    """Read a checkpoint and check it. Costs milliseconds; callers that share it cache it.

    Raises:
        CheckpointError: a file is missing or was changed, or the weights do not fit the model of the config.
    """
    path = folder / f"{name}.json"
    if "\0" in name or path.parent.resolve() != folder.resolve():
        raise CheckpointError(f"a checkpoint is named without its folder, not {name!r}")
    content, weights = read_files(path)
    try:
        vocabulary = Vocabulary.from_tokens(content["vocabulary"])
        model = language_model(**content["config"])
        state = read_tensors(weights)
        _check(name, state, model, vocabulary)
        model.load_state_dict(state)
        return Checkpoint(
            name=name,
            model=model.eval().requires_grad_(False),
            vocabulary=vocabulary,
            config=content["config"],
            data=content["data"],
            training=content["training"],
            losses=content["losses"],
            weights_sha256=content["weights"]["sha256"],
            versions=content["versions"],
        )
    except CheckpointError:
        raise
    except (ValueError, SafetensorError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{name}: not a checkpoint ({type(error).__name__}: {error})") from error


def read_files(path: Path) -> tuple[dict[str, Any], bytes]:
    """What a checkpoint's JSON file says, and the weights beside it (safetensors), which are those that it describes.

    Raises:
        CheckpointError: a file is missing or damaged, of another format, or the weights are others.
    """
    name = path.stem
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        weights = path.with_suffix(".safetensors").read_bytes()
        if content["format"] != FORMAT:
            raise CheckpointError(f"{name}: format {content['format']!r} is not the format {FORMAT} that is read here")
        if sha256(weights) != content["weights"]["sha256"]:
            raise CheckpointError(f"{name}: the weights are not those that its JSON file describes (sha256 differs)")
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"{name}: {error.strerror} ({error.filename})") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{name}: not a checkpoint ({type(error).__name__}: {error})") from error
    return content, weights


def described(training: Any) -> dict[str, Any]:
    """A config dataclass as it is stored: its fields, with infinity as the string JSON has no number for."""
    return {key: str(value) if value == float("inf") else value for key, value in asdict(training).items()}


def _check(name: str, state: Mapping[str, torch.Tensor], model: LanguageModel, vocabulary: Vocabulary) -> None:
    wanted = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    found = {key: tuple(value.shape) for key, value in state.items()}
    if wanted != found:
        differing = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))
        raise CheckpointError(f"{name}: the weights do not fit the model of its config: {', '.join(differing)}")
    if len(vocabulary) != model.vocabulary_size:
        raise CheckpointError(f"{name}: {len(vocabulary)} tokens in the vocabulary, {model.vocabulary_size} in the model")
    broken = sorted(key for key, value in state.items() if not bool(value.isfinite().all()))
    if broken:
        raise CheckpointError(f"{name}: weights that are not numbers in {', '.join(broken)}")


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: a reader sees the old one or the new one. Its folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(part).chmod(0o644)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
