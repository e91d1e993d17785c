"""Recipes: to plain data and back, and from a seed to its mutant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepcruiser.audio import Audio
from deepcruiser.errors import InputError
from deepcruiser.transformations import (
    EXTRA,
    PAPER,
    AddBackgroundNoise,
    AddWhiteNoise,
    ChangeSpeed,
    Transformation,
    Trim,
    apply,
    from_dict,
    to_dict,
)
from tests.test_transformations import voice


@pytest.mark.parametrize("kind", PAPER + EXTRA, ids=lambda kind: kind.__name__)
def test_json_and_back_is_the_same_value_and_the_same_samples(kind: type[Transformation], tmp_path: Path) -> None:
    Audio(voice(seed=1), 16000).write(tmp_path / "a.wav")
    audio, rng = Audio(voice(), 16000), np.random.default_rng(0)
    for _ in range(5):
        change = kind.draw(rng, **({"folder": tmp_path} if kind is AddBackgroundNoise else {}))
        back = from_dict(json.loads(json.dumps(to_dict(change))))
        assert back == change
        assert type(back) is kind
        assert back(audio).samples.tobytes() == change(audio).samples.tobytes()


def test_it_reads_well() -> None:
    assert to_dict(AddWhiteNoise(24.1, 91)) == {"name": "AddWhiteNoise", "snr_db": 24.1, "seed": 91}


def test_a_recipe_is_applied_in_its_order() -> None:
    audio = Audio(np.pad(voice(), 8000), 16000)
    speed, noise, trim = ChangeSpeed(1.1), AddWhiteNoise(30, 5), Trim(40)
    assert apply([], audio) is audio
    result = apply([trim, speed, noise], audio)
    assert result.samples.tobytes() == noise(speed(trim(audio))).samples.tobytes()
    assert result.samples.tobytes() != apply([noise, speed, trim], audio).samples.tobytes()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"name": "os.system", "command": "ls"}, "no transformation 'os.system'; those known are: ChangeVolume, "),
        ({"name": "Transformation"}, "no transformation 'Transformation'"),
        ({"snr_db": 20.0}, "no transformation None"),
        ({"name": ["AddWhiteNoise"]}, "no transformation ['AddWhiteNoise']"),
        ({"name": "AddWhiteNoise", "snr_db": 20.0}, "AddWhiteNoise needs the parameters snr_db, seed, not snr_db"),
        ({"name": "Trim"}, "Trim needs the parameters top_db, not none"),
        ({"name": "Trim", "top_db": 30.0, "seed": 1}, "needs the parameters top_db, not top_db, seed"),
        ({"name": "Trim", "top_db": "30"}, "Trim: top_db must be a number from 1 to 200, not '30'"),
        ("Trim", "must be a mapping with a name and its parameters, not 'Trim'"),
    ],
)
def test_wrong_data_is_refused(data: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        from_dict(data)
    assert message in str(error.value)


def test_a_change_of_the_users_own_is_read_back_with_its_class() -> None:
    class Mine(Trim):
        pass

    data = to_dict(Mine(30))
    assert from_dict(data, kinds=[Mine]) == Mine(30)
    with pytest.raises(InputError, match="no transformation 'Mine'; those known are: "):
        from_dict(data)


def test_a_change_whose_class_is_not_at_hand_can_be_shown_and_not_applied() -> None:
    unknown = from_dict({"name": "Theirs", "level": 3, "kind": "x"}, strict=False)
    assert str(unknown) == "Theirs(level=3, kind='x')"
    assert to_dict(unknown) == {"name": "Theirs", "level": 3, "kind": "x"}
    with pytest.raises(InputError, match="cannot be applied: pass the mutations that define Theirs"):
        unknown("anything")
