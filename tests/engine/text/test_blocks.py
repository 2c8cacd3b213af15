"""Minibatches drawn over their text: spans, rows, what is left out, and where a state may be carried."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.text.batches import Plan, random_sampling, sequential_partition
from engine.text.blocks import block_layout
from tests.support import seeded


def test_the_sequential_cut_by_hand():
    layout = block_layout(sequential_partition(list(range(35)), 2, 5, offset=0))
    assert [(b.start, b.end, b.batch, b.row) for b in layout.blocks] == [
        (0, 5, 0, 0),
        (5, 10, 1, 0),
        (10, 15, 2, 0),
        (17, 22, 0, 1),
        (22, 27, 1, 1),
        (27, 32, 2, 1),
    ]
    assert layout.carries
    assert [b.continues for b in layout.row(1)] == [False, True, True]
    assert layout.unused == ((15, 17), (32, 35))
    assert layout.at(16) is None
    assert layout.at(21).batch == 0
    assert layout.at(21).targets == (18, 23)
    with pytest.raises(IndexError, match="token 35"):
        layout.at(35)


def test_random_pieces_carry_nothing():
    layout = block_layout(random_sampling(list(range(211)), 3, 7, seeded(4), offset=4))
    assert not layout.carries
    assert layout.offset == 4
    assert layout.unused[0] == (0, 4)
    assert all((block.start - 4) % 7 == 0 for block in layout.blocks)
    one = block_layout(random_sampling(list(range(16)), 2, 7, seeded(4), offset=0))
    assert one.carries, "a single minibatch has nothing that it could continue"


@given(st.integers(12, 90), st.integers(1, 3), st.integers(1, 5), st.booleans(), st.integers(0, 99))
def test_blocks_are_the_minibatches_and_together_with_what_is_unused_the_text(length, batch_size, steps, random, seed):
    plan = Plan(length=length, batch_size=batch_size, num_steps=steps)
    if not plan.enough:
        return
    ids = torch.arange(length)
    cut = random_sampling if random else sequential_partition
    batches = cut(ids, batch_size, steps, seeded(seed))
    layout = block_layout(batches)
    for number, (X, Y) in enumerate(batches):
        for row in range(batch_size):
            block = layout.row(row)[number]
            assert X[row].tolist() == list(range(block.start, block.end))
            assert Y[row].tolist() == list(range(*block.targets))
    spans = sorted([*((block.start, block.end) for block in layout.blocks), *layout.unused])
    assert [place for start, end in spans for place in range(start, end)] == list(range(length))
    assert sum(end - start for start, end in layout.unused) == batches.plan.unused
    if not random:
        assert layout.carries
