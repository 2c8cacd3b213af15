"""A shipped checkpoint is what its recipe makes: ``make bake NAME`` trains it again with the same settings."""

import pytest

from engine.training import checkpoints
from engine.training.bake import RECALL_BATCHES, RECIPES, TEXT_BATCHES


def test_every_recipe_is_shipped_and_every_checkpoint_has_a_recipe():
    assert checkpoints.names() == sorted(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_the_recipe_is_the_one_that_made_the_checkpoint(name):
    recipe, shipped = RECIPES[name], checkpoints.load_any(name)
    given = shipped.training | {"vocabulary_size": len(shipped.vocabulary)}
    for key, value in checkpoints.described(recipe.training).items():
        assert given[key] == value, key
    batches = (RECALL_BATCHES if recipe.task == "recall" else TEXT_BATCHES) | dict(recipe.batches)
    batches = {key: value for key, value in batches.items() if recipe.task != "windows" or key != "sampling"}
    assert {key: given[key] for key in batches} == batches
    assert shipped.config == dict(recipe.model) | {"vocabulary_size": len(shipped.vocabulary)}
    assert given["seed"] == recipe.seed
