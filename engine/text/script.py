"""A script that cuts a text again without this program: it imports nothing and prints the numbers of the page."""

from engine.text.batches import Plan
from engine.text.cutting import Cutting

MOST = 4000  # tokens that a script carries

HEAD = '''"""Number the tokens of a text and cut them into minibatches. Plain Python, nothing to install."""

from collections import Counter

# The tokens, as they were split at the level "{level}".
tokens = {tokens}
min_freq, reserved = {min_freq}, {reserved}
batch_size, num_steps, offset = {batch}, {steps}, {offset}

# Number: <unk> has 0; then by frequency, equals by code point.
counts = Counter(tokens)
known = ["<unk>", *reserved]
known += [t for t, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n >= min_freq and t not in known]
number = {{token: index for index, token in enumerate(known)}}
ids = [number.get(token, 0) for token in tokens]
print(f"{{len(tokens)}} tokens, {{len(known)}} numbers, {{ids.count(0)}} unknown")
print("ids", *ids[:20])

# Batch, sequential partition: the text in rows that are read in step. Row i goes on from minibatch to minibatch.
length = {length}
row = (length - offset - 1) // batch_size
batches = (length - offset - 1) // (batch_size * num_steps)
for b in range(batches):
    print(f"minibatch {{b + 1}}")
    for i in range(batch_size):
        start = offset + i * row + b * num_steps
        print(" X", *ids[start : start + num_steps])
        print(" Y", *ids[start + 1 : start + num_steps + 1])
'''


def script(found: Cutting, plan: Plan, min_freq: int, reserved: tuple[str, ...] = ()) -> str:
    """The script for a cutting and the sizes of its minibatches; of a long text it carries the first tokens.

    The numbers are those of the page where the text is carried whole.
    """
    tokens = list(found.tokens[:MOST])
    return HEAD.format(
        level=found.level,
        tokens=tokens,
        min_freq=min_freq,
        reserved=list(reserved),
        batch=plan.batch_size,
        steps=plan.num_steps,
        offset=plan.offset,
        length=min(plan.length, len(tokens)),
    )
