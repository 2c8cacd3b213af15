"""A state of a live run as a checkpoint, so that every lesson can open the model as it was at that step."""

from __future__ import annotations

import torch
from safetensors import SafetensorError

from engine.language_models import LanguageModel
from engine.training.checkpoints import Checkpoint, CheckpointError, described
from engine.training.files import RunFolder, read_states
from engine.training.models import build, config_of


def checkpoint_of(folder: RunFolder, step: int, member: int) -> Checkpoint[LanguageModel]:
    """The model of a member after a kept step, shared read-only like every checkpoint.

    Raises:
        CheckpointError: there is no such member, the step is not kept (any more), or the file does not fit the run.
    """
    try:
        spec, text = folder.spec, folder.text
        states, _ = read_states(folder.kept_file(step))
        one = spec.members[member]
        config = config_of(one.kind, one.width, one.layers, len(text.vocabulary), spec.num_steps)
        model = build(config, torch.Generator().manual_seed(spec.seed))
        model.load_state_dict(dict(states[member].weights))
    except (OSError, SafetensorError, IndexError, KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"run {folder.id}: member {member} after step {step} cannot be opened ({error})") from error
    return Checkpoint(
        name=f"{folder.id}.{step}.{member}",
        model=model.eval().requires_grad_(False),
        vocabulary=text.vocabulary,
        config=config,
        data={"name": "run", "characters": len(text.train), "held_out_characters": len(text.held_out)},
        training=described(spec.training) | {"seed": spec.seed, "step": states[member].step},
        losses={},
        weights_sha256="",
        versions={"torch": torch.__version__},
    )
