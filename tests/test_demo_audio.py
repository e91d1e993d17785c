"""The audio of the demo as it is shipped, and how its files are made."""

from __future__ import annotations

import io
import re
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

import deepcruiser as dc
from deepcruiser.decoding.beam import has_beam_search
from deepcruiser.systems.builtin.speech import LANGUAGE_MODEL, WEIGHTS
from training import demo_audio

DEMO = WEIGHTS.with_name("demo")
SENTENCES = demo_audio.SENTENCES.read_text().splitlines()


@pytest.fixture(scope="module")
def seeds() -> dc.Corpus:
    return dc.read_corpus(DEMO / "seeds")


@pytest.fixture(scope="module")
def profile() -> dc.Corpus:
    return dc.read_corpus(DEMO / "profile")


def voices(corpus: dc.Corpus) -> Counter[str]:
    """The voices in the file names, with their counts."""
    return Counter(re.sub(r"-\d{3}$", "", sample.id) for sample in corpus)


def test_sentences_are_plain_and_differ() -> None:
    assert len(SENTENCES) == len(set(SENTENCES)) >= 250
    for text in SENTENCES:
        assert re.fullmatch(r"[a-z]+('[a-z]+)?( [a-z]+('[a-z]+)?){2,8}", text), text


def test_seeds_are_many_short_and_of_many_voices(seeds: dc.Corpus) -> None:
    assert len(seeds) >= 120
    assert all(1 <= sample.input.seconds <= 5 for sample in seeds)  # type: ignore[union-attr]
    counts = voices(seeds)
    assert len(counts) >= 6
    assert {name.partition("-")[0] for name in counts} == {"espeak", "festival", "flite"}
    assert max(counts.values()) <= len(seeds) / 4


def test_profile_has_ten_to_fifteen_minutes(profile: dc.Corpus) -> None:
    assert len(profile) >= 280
    assert 10 <= sum(sample.input.seconds for sample in profile) / 60 <= 15  # type: ignore[misc, union-attr]
    assert len(voices(profile)) >= 6


def test_texts_are_our_own_and_no_seed_is_profiled(seeds: dc.Corpus, profile: dc.Corpus) -> None:
    message = {sample.text for sample in seeds}
    assert message <= set(SENTENCES)
    assert len(message) == len(seeds)
    assert message.isdisjoint(sample.text for sample in profile)


def test_all_of_it_is_small() -> None:
    assert sum(path.stat().st_size for path in DEMO.rglob("*") if path.is_file()) <= 6_000_000


@pytest.mark.skipif(not has_beam_search(), reason="flashlight-text is not installed")
def test_a_hundred_seeds_are_recognised_without_error_and_some_are_not(seeds: dc.Corpus) -> None:
    runs = dc.load_system("english").run([sample.input for sample in seeds])
    perfect = sum(run.output == sample.text for run, sample in zip(runs, seeds, strict=True))
    assert 100 <= perfect < len(seeds)
    known = set(dc.read_language_model(LANGUAGE_MODEL).words)
    assert {word for sample in seeds for word in (sample.text or "").split()} <= known
    assert not any(demo_audio.has_same_letters(s.text or "", run.output) for s, run in zip(seeds, runs, strict=True))


def test_texts_of_the_same_letters() -> None:
    assert demo_audio.has_same_letters("after sunset", "after sun set")
    assert demo_audio.has_same_letters("the cats", "the cat's")
    assert not demo_audio.has_same_letters("after sunset", "after sunset")
    assert not demo_audio.has_same_letters("after sunset", "after sun sat")


def test_no_sentence_is_in_the_texts_of_training(shared: Path) -> None:
    for path in [shared / "speech" / "sentences.txt", *(shared / "speech").glob("*/transcripts.tsv")]:
        assert demo_audio.occurring(SENTENCES, path) == []


def test_occurring_finds_sentences_within_lines_and_across_them(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_text("He said: 'Don't leave\nthe knife near the edge!' A spider's web.")
    sentences = ["don't leave the knife near the edge", "a spider", "spider's web", "knife"]
    assert demo_audio.occurring(sentences, path) == [sentences[0], sentences[2], sentences[3]]


def test_opus_gives_the_same_bytes_and_whole_pages() -> None:
    tone = dc.Audio(0.3 * np.sin(np.arange(20_000) / 9), 16_000)
    data = demo_audio.opus(tone)
    assert data == demo_audio.opus(tone)
    samples, rate = sf.read(io.BytesIO(data))
    assert (len(samples), rate) == (20_000, 16_000)
    assert np.corrcoef(samples[2000:18_000], tone.samples[2000:18_000])[0, 1] > 0.99
    assert set(re.findall(rb"OggS.{10}(.{4})", data, re.DOTALL)) == {struct.pack("<I", 1)}


def test_choice_spreads_over_voices_and_takes_each_sentence_once() -> None:
    rng = np.random.default_rng(0)
    tried = [demo_audio.Said(f"text {n}", voice, b"") for n in range(200) for voice in demo_audio.VOICES]
    perfect = [bool(right) for right in rng.random(len(tried)) < 0.5]
    right = {(message.text, message.voice) for message, is_right in zip(tried, perfect, strict=True) if is_right}
    chosen = demo_audio.choose(np.random.default_rng(1), tried, perfect)
    assert chosen == demo_audio.choose(np.random.default_rng(1), tried, perfect)
    assert sum((message.text, message.voice) in right for message in chosen) == demo_audio.PERFECT
    assert len({message.text for message in chosen}) == len(chosen) == demo_audio.PERFECT + demo_audio.IMPERFECT
    right_ones = [message for message in chosen if (message.text, message.voice) in right]
    by_text = Counter(message.text for message, is_right in zip(tried, perfect, strict=True) if is_right)
    left = {message.text for message in tried} - {message.text for message in chosen}
    assert max(by_text[message.text] for message in right_ones) <= min(by_text[text] for text in left)
    counts = Counter(message.voice for message in chosen)
    assert max(counts.values()) - min(counts.values()) <= 4
