"""Language models: against Kneser-Ney smoothing in dictionaries, and against the ARPA format by hand."""

from __future__ import annotations

import contextlib
import gzip
import json
import lzma
import math
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.decoding.ngram_building import discounts

Gram = tuple[str, ...]


def sentences(seed: int, count: int, words: int = 12) -> list[str]:
    """Sentences of words that like to follow one another."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        word, sentence = rng.randrange(words), []
        for _ in range(rng.randrange(1, 9)):
            sentence.append(f"w{word}")
            word = (word * 2 + rng.choice([0, 0, 0, 1, 1, 5, 7])) % words
        found.append(" ".join(sentence))
    return found


def plain_kneser_ney(texts: list[str], order: int) -> Callable[[str, Gram], float]:
    """P(word | context), interpolated modified Kneser-Ney as Chen and Goodman wrote it down."""
    raw: list[dict[Gram, int]] = [defaultdict(int) for _ in range(order + 1)]
    for text in texts:
        words = ["<s>", *text.split(), "</s>"]
        for length in range(1, order + 1):
            for at in range(len(words) - length + 1):
                raw[length][tuple(words[at : at + length])] += 1
    counts: list[dict[Gram, int]] = [{} for _ in range(order + 1)]
    for length in range(1, order + 1):
        for gram, count in raw[length].items():
            if length < order and gram[0] != "<s>":
                count = len({longer[0] for longer in raw[length + 1] if longer[1:] == gram})
            counts[length][gram] = count
    counts[1].pop(("<s>",))
    vocabulary = {gram[0] for gram in counts[1]} | {"<unk>"}

    def discount(length: int, count: int) -> float:
        return float(discounts(np.array(list(counts[length].values())))[min(count, 3)])

    def probability(word: str, context: Gram) -> float:
        length = len(context) + 1
        followers = {gram[-1]: count for gram, count in counts[length].items() if gram[:-1] == context}
        total = sum(followers.values())
        if length == 1:
            left = sum(discount(1, count) for count in followers.values()) / total
            own = followers.get(word, 0)
            return (own - (discount(1, own) if own else 0)) / total + left / len(vocabulary)
        lower = probability(word, context[1:])
        if not total:
            return lower
        left = sum(discount(length, count) for count in followers.values()) / total
        own = followers.get(word, 0)
        return (own - (discount(length, own) if own else 0)) / total + left * lower

    return probability


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 60))
def test_probabilities_are_kneser_neys(seed: int, order: int, count: int) -> None:
    texts = sentences(seed, count)
    model = dc.NgramModel.build(texts, order=order)
    plain = plain_kneser_ney(texts, order)
    for text in [*texts[:4], "w1 w2 nonsense w3", "w0 w0 w0 w0 w0"]:
        words = ["<s>", *text.split(), "</s>"]
        known = [word if word in model.words else "<unk>" for word in words]
        for at in range(1, len(words)):
            context = tuple(known[max(0, at - order + 1) : at])
            expected = plain(known[at], context)
            assert 10 ** model.score([words[at]], words[:at]) == pytest.approx(expected, rel=1e-4)
            everything = model.probabilities(words[:at])
            assert everything[model.words.index(known[at])] == pytest.approx(expected, rel=1e-4)
            assert everything.sum() == pytest.approx(1, abs=1e-5)


def test_discounts_follow_the_counts_of_counts() -> None:
    counts = np.repeat([1, 2, 3, 4, 7], [60, 20, 10, 5, 3])
    share = 60 / (60 + 40)
    expected = [0, 1 - 2 * share * 20 / 60, 2 - 3 * share * 10 / 20, 3 - 4 * share * 5 / 10]
    np.testing.assert_allclose(discounts(counts), expected)
    np.testing.assert_allclose(discounts(np.array([1, 1, 2])), [0, 0.5, 1, 1.5])


@pytest.mark.parametrize("prune", [1e-5, 1e-3, 1e-1, 1e3])
def test_pruned_models_are_smaller_and_still_sum_to_one(prune: float) -> None:
    texts = sentences(1, 400)
    whole, model = dc.NgramModel.build(texts), dc.NgramModel.build(texts, prune=prune)
    assert sum(map(len, model.keys)) < sum(map(len, whole.keys))
    for context in ("<s>", "", *texts[:20], "w3 nonsense", "nonsense w3 w6"):
        assert model.probabilities(context).sum() == pytest.approx(1, abs=1e-5)
    assert whole.perplexity(texts) <= model.perplexity(texts)


def test_pruning_takes_what_matters_least() -> None:
    """What is left out costs little: half of the n-grams, and nothing that a held-out text would notice."""
    texts, held_out = sentences(2, 3000), sentences(3, 300)
    whole = dc.NgramModel.build(texts)
    model = dc.NgramModel.build(texts, prune=1e-4)
    assert sum(map(len, model.keys)) < 0.6 * sum(map(len, whole.keys))
    assert model.perplexity(held_out) < 1.02 * whole.perplexity(held_out)


def test_perplexity_is_the_mean_of_the_scores() -> None:
    model = dc.NgramModel.build(sentences(4, 50))
    scores = [model.score("w1 w2 </s>"), model.score("w5 </s>")]
    assert model.perplexity(["w1 w2", "w5"]) == pytest.approx(10 ** (-sum(scores) / 5))


def test_states_and_whole_texts_agree() -> None:
    model = dc.NgramModel.build(sentences(5, 100))
    state, total = model.begin(), 0.0
    for word in "w1 w2 nonsense w4 w9".split():
        log, state = model.word(state, word)
        total += log
    assert total + model.end(state) == pytest.approx(model.score("w1 w2 nonsense w4 w9 </s>"))
    assert state == model.state("<s> w1 w2 nonsense w4 w9")


def test_rare_words_share_the_probability_of_the_unknown() -> None:
    texts = sentences(6, 300)
    model = dc.NgramModel.build(texts, vocabulary=8)
    assert len(model.words) == 8 + 3
    assert model.rare == 4
    inside = model.probabilities("<s> w2")[0]
    assert 10 ** model.score("nonsense", "<s> w2") == pytest.approx(inside / 4)


def test_beginnings_of_words() -> None:
    model = dc.NgramModel.build(["to tea tea two", "tea to to to the zoo"] * 9, order=1, vocabulary=4)
    scores = {word: model.score(word, context=()) for word in ("to", "tea", "nonsense")}
    assert set(model.words[3:]) >= {"to", "tea"}
    assert model.ahead("t") == model.ahead("to") == pytest.approx(scores["to"])
    assert model.ahead("te") == pytest.approx(scores["tea"])
    assert model.ahead("tx") == model.ahead("nonsense") == pytest.approx(scores["nonsense"])


@pytest.mark.parametrize("prune", [0.0, 1e-4])
def test_saved_models_score_almost_alike(tmp_path: Path, prune: float) -> None:
    texts = sentences(7, 500)
    model = dc.NgramModel.build(texts, prune=prune, vocabulary=9)
    model.save(tmp_path / "a.lm")
    again = dc.NgramModel.load(tmp_path / "a.lm")
    assert list(again.words) == list(model.words)
    assert again.rare == model.rare
    for one, two in zip(model.keys, again.keys, strict=True):
        np.testing.assert_array_equal(one, two)
    for one, two in zip(model.logs, again.logs, strict=True):  # type: ignore[assignment]
        np.testing.assert_allclose(np.maximum(one, -15), np.maximum(two, -15), atol=1 / 32 + 1e-6)
    for one, two in zip(model.backoffs, again.backoffs, strict=True):  # type: ignore[assignment]
        np.testing.assert_allclose(one, two, atol=1 / 32 + 1e-6)
    assert again.perplexity(texts) == pytest.approx(model.perplexity(texts), rel=0.02)
    assert again.probabilities("<s> w1").sum() == pytest.approx(1, abs=0.05)
    dc.NgramModel.build(texts, prune=prune, vocabulary=9).save(tmp_path / "b.lm")
    assert (tmp_path / "a.lm").read_bytes() == (tmp_path / "b.lm").read_bytes()


@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
def test_arpa_round_trip(tmp_path: Path, name: str) -> None:
    texts = sentences(8, 200)
    model = dc.NgramModel.build(texts, prune=1e-4, vocabulary=10)
    model.save(tmp_path / name)
    again = dc.read_language_model(tmp_path / name)
    assert isinstance(again, dc.NgramModel)
    for text in [*texts[:50], "w1 nonsense w2", "nonsense nonsense"]:
        assert again.score(f"{text} </s>") == pytest.approx(model.score(f"{text} </s>"), abs=1e-4)


ARPA = """\
made by hand

\\data\\
ngram 1=4
ngram 2=3
ngram 3=1

\\1-grams:
-99 <s> -0.3
-0.5\t</s>
-0.6\tyes\t-0.2
-1.0\tno

\\2-grams:
-0.1 <s> yes -0.7
-0.4 yes no
-0.9 no </s>

\\3-grams:
-0.05 <s> yes no

\\end\\
"""


def test_arpa_by_hand(tmp_path: Path) -> None:
    """Backing off word by word, unsorted words, tabs or spaces, and no <unk>."""
    (tmp_path / "a.arpa").write_text(ARPA)
    model = dc.NgramModel.load(tmp_path / "a.arpa")
    assert model.order == 3
    assert model.score("yes") == pytest.approx(-0.1)
    assert model.score("yes no") == pytest.approx(-0.1 - 0.05)
    assert model.score("yes no </s>") == pytest.approx(-0.15 - 0.9)
    assert model.score("yes yes") == pytest.approx(-0.1 + (-0.7 - 0.2 - 0.6))
    assert model.score("no") == pytest.approx(-0.3 - 1.0)
    assert model.score("no", context=()) == pytest.approx(-1.0)
    assert model.score("maybe", context=()) == pytest.approx(-2.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("\\data\\", "data"), r"there is no line '\\data\\'"),
        (("ngram 2=3", "ngram 2=4"), "4 2-grams are announced and 3 are there"),
        (("-0.4 yes no", "-0.4 yes maybe"), "'-0.4 yes maybe' is no 2-gram of known words"),
        (("-0.4 yes no", "many yes no"), "'many yes no' is no 2-gram of known words with its logarithm .line 16"),
        (("-0.05 <s> yes no", "-0.05 no no no"), "the beginning of a 3-gram is not among the 2-grams"),
        (("-0.9 no </s>", "-0.9 yes no"), "a 2-gram is there twice"),
        (("\\end\\", ""), r"there is no '\\end\\'"),
    ],
)
def test_arpa_that_is_not_sound(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    (tmp_path / "a.arpa").write_text(ARPA.replace(*change))
    with pytest.raises(dc.FileError, match=words):
        dc.NgramModel.load(tmp_path / "a.arpa")


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(dc.FileError, match=r"cannot read the language model '.*none.lm': no such file"):
        dc.read_language_model(tmp_path / "none.lm")
    file = tmp_path / "a.lm"
    dc.NgramModel.build(sentences(9, 200)).save(file)
    data = file.read_bytes()
    for at in range(40, len(data), len(data) // 25):
        file.write_bytes(data[:at])
        with pytest.raises(dc.FileError, match="damaged or cut short"):
            dc.NgramModel.load(file)
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        with contextlib.suppress(dc.FileError):  # a date, say, may be changed without harm
            dc.NgramModel.load(file)
    (tmp_path / "b.lm").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0" + bytes(99))
    with pytest.raises(dc.DeepCruiserError, match=r"needs the package kenlm: pip install|as a model of KenLM"):
        dc.read_language_model(tmp_path / "b.lm")


def test_kenlm_reads_and_agrees(tmp_path: Path) -> None:
    pytest.importorskip("kenlm", reason="needs kenlm, which compiles for minutes: pip install 'deepcruiser[lm]'")
    from deepcruiser.decoding import KenlmModel

    model = dc.NgramModel.build(sentences(10, 100))
    model.save(tmp_path / "a.arpa")
    other = KenlmModel(tmp_path / "a.arpa")
    state, total = other.begin(), 0.0
    for word in "w1 w2 nonsense w4".split():
        log, state = other.word(state, word)
        total += log
    assert total + other.end(state) == pytest.approx(model.score("w1 w2 nonsense w4 </s>"), abs=1e-3)


def test_beam_search_prefers_what_the_model_knows() -> None:
    """The sound says 'w1 w2' and 'w1 w3' alike; the text knows only one."""
    model = dc.NgramModel.build(["w1 w3"] * 20 + ["w2 w1"] * 20)
    alphabet = " w123"
    rows = []
    for likely in ("w", "1", " ", "w", "23"):
        row = np.full(6, 1e-4)
        for symbol in likely:
            row[alphabet.index(symbol)] = (0.52 if symbol == "2" else 0.48) if len(likely) > 1 else 1.0
        rows.append(row / row.sum())
    steps = np.log(np.array(rows))
    assert dc.ctc_beam(steps, alphabet, blank=5) == "w1 w2"
    assert dc.ctc_beam(steps, alphabet, blank=5, language_model=model) == "w1 w3"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": 0}, "order must be from 1 to 9 words, not 0"),
        ({"prune": -1.0}, "prune must be 0 or more, not -1.0"),
        ({"vocabulary": 0}, "vocabulary must be 1 word or more, not 0"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(dc.InputError, match=words):
        dc.NgramModel.build(["a b"], **options)  # type: ignore[arg-type]
    with pytest.raises(dc.InputError, match="there is no word in the text"):
        dc.NgramModel.build([" ", ""])
    with pytest.raises(dc.InputError, match="sentences must be texts, not int"):
        dc.NgramModel.build([1])  # type: ignore[list-item]


def test_command(tmp_path: Path) -> None:
    texts = sentences(11, 300)
    with gzip.open(tmp_path / "a.gz", "wt") as file:
        file.write("\n".join(texts[:150]))
    with lzma.open(tmp_path / "b.xz", "wt") as file:
        file.write("\n".join(texts[150:]) + "\n\n")
    (tmp_path / "held.txt").write_text("\n".join(sentences(12, 20)))
    given = [str(tmp_path / name) for name in ("a.gz", "b.xz")]
    out = str(tmp_path / "x.lm")
    done = CliRunner().invoke(
        main, ["language-model", *given, "-o", out, "--order", "3", "--json", "--held-out", str(tmp_path / "held.txt")]
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    model = dc.NgramModel.load(out)
    assert told["ngrams"] == [len(keys) for keys in model.keys]
    assert told["perplexity"] == pytest.approx(model.perplexity(sentences(12, 20)))
    expected = dc.NgramModel.build(texts, order=3)
    assert [len(keys) for keys in expected.keys] == told["ngrams"]
    done = CliRunner().invoke(main, ["language-model", *given, "-o", out, "--prune", "1e-3", "--vocabulary", "9"])
    assert "NgramModel of order" in done.output
    assert math.isfinite(dc.NgramModel.load(out).perplexity(texts))


def test_command_with_wrong_files(tmp_path: Path) -> None:
    (tmp_path / "a.xz").write_bytes(b"not compressed at all")
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00")
    for name, words in (("none.txt", "there is no file"), ("a.xz", "cannot read"), ("b.txt", "no text in UTF-8")):
        done = CliRunner().invoke(main, ["language-model", str(tmp_path / name), "-o", str(tmp_path / "x.lm")])
        assert done.exit_code == 2
        assert words in done.output
        assert not (tmp_path / "x.lm").exists()
    (tmp_path / "c.txt").write_text("a b")
    done = CliRunner().invoke(main, ["language-model", str(tmp_path / "c.txt"), "-o", str(tmp_path / "no" / "x.lm")])
    assert done.exit_code == 2
    assert "create it first" in done.output
