"""A whole fuzzer in forty lines, built from the public parts of DeepCruiser: no folder, no clock, no screen.

python examples/small_fuzzer.py

It tests the built-in network `brackets`, whose weakness is deep nesting.
"""

import numpy as np

import deepcruiser as dc
from deepcruiser.systems.builtin import bracket_changes as changes
from deepcruiser.systems.builtin import brackets


def main(runs: int = 400) -> list[str]:
    # The target: a network that says whether brackets are balanced, and records its states.
    system = dc.load_system("brackets")

    # The reference map: where the states went on training data, divided into cells.
    model = dc.profile(system, brackets.training_texts(), batch_size=256).abstract(partitions=20)

    # The corpus: seeds that the network gets right.
    seeds = brackets.ordinary_tests(50)
    kept: dict[str, tuple[object, ...]] = dict.fromkeys(seeds, ())
    answer = {text: run.output for text, run in zip(seeds, system.run(seeds), strict=True)}
    coverage = dc.Coverage(model, dc.SBCov(2))

    # The mutations: changes that do not affect the right answer, and the rule for combining them.
    mutations = dc.Mutations(changes.KINDS, changes.FAMILIES, changes.UNAFFECTED, changes.too_long)

    # The objective: what counts as a failure.
    oracle = dc.Disagreement()

    failing, rng = [], np.random.default_rng(0)
    for _ in range(runs):
        # The scheduler: any test that may still be changed, and any change that is allowed.
        parent = rng.choice([text for text, recipe in kept.items() if mutations.allowed(recipe)])
        kind = rng.choice(mutations.allowed(kept[parent]))
        change = mutations.draw(kind, rng)
        mutant = change(str(parent))
        if mutations.invalid(parent, mutant):
            continue

        # The executor: run the target and observe its trace.
        (run,) = system.run([mutant])

        # The objective first; if it passes, the feedback: does it cover anything new?
        if oracle.fails(oracle.score(answer[parent], run.output)):
            failing.append(f"{mutant!r} is {run.output!r}")
        elif coverage.add(run.traced):
            kept[mutant], answer[mutant] = (*kept[parent], change), answer[parent]

    print(f"{coverage}\n{len(kept) - len(seeds)} tests kept, {len(failing)} failing tests", *failing[:3], sep="\n")
    return failing


if __name__ == "__main__":
    main()
