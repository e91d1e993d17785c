"""Whole networks, saved by Keras 3 in both of its formats: the outputs that Keras gives, and traces of every layer."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import deepcruiser as dc
from tests.support.keras2 import bidirectional, rnn, rnn_weights, sequential, states, write

pytestmark = [
    pytest.mark.skipif(not find_spec("keras") or not find_spec("h5py"), reason="pip install 'deepcruiser[keras]'"),
    # Of Keras itself, when it saves: it makes arrays of tensors in a way that numpy 2 does not like.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"),
]


def networks() -> Iterator[tuple[str, Any, tuple[int, ...] | None, dict[str, int]]]:
    """A name, a network, the shape of an input (None: words), and the steps of its recurrent layers."""
    from deepcruiser.systems.keras.layers import import_keras
    from deepcruiser.systems.keras.recording import recurrent

    keras = import_keras()
    layers, fed = keras.layers, keras.Input((None, 5))

    def named(name: str, net: Any, shape: tuple[int, ...] | None, *steps: int) -> Any:
        return name, net, shape, dict(zip(dict(recurrent(net)), steps, strict=True))

    front = layers.LeakyReLU()(layers.BatchNormalization()(layers.Conv1D(6, 3, strides=2, padding="same")(fed)))
    both = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(front)
    yield named("subsampling", keras.Model(fed, layers.Dense(3, activation="softmax")(both)), (9, 5), 5)
    for mode in ("sum", "ave", "mul"):
        merged = layers.Bidirectional(layers.GRU(4, return_sequences=True), merge_mode=mode)(fed)
        yield named(mode, keras.Model(fed, merged), (7, 5), 7)
    one, other = layers.Bidirectional(layers.SimpleRNN(4, return_sequences=True), merge_mode=None)(fed)
    yield named("apart", keras.Model(fed, layers.Add()([one, other])), (7, 5), 7)
    output, h, c = layers.LSTM(4, return_state=True, return_sequences=True)(fed)
    yield named("handed on", keras.Model(fed, layers.LSTM(4)(output, initial_state=[h, c])), (6, 5), 6, 6)
    words = keras.Input((None,))
    embedded = layers.SpatialDropout1D(0.2)(layers.Embedding(20, 6, mask_zero=True)(words))
    read = layers.Dense(1)(layers.Bidirectional(layers.LSTM(4))(embedded))
    yield named("words", keras.Model(words, read), None, 8)
    stack = layers.RNN([layers.GRUCell(3), layers.LSTMCell(4)], return_sequences=True)
    yield named("cells", keras.Sequential([fed, stack, layers.GlobalMaxPooling1D(), layers.Dense(2)]), (8, 5), 8)
    video = keras.Input((4, 6, 6, 1))
    yield named("video", keras.Sequential([video, layers.ConvLSTM2D(2, 3), layers.Flatten()]), (4, 6, 6, 1), 4)
    frames = [layers.TimeDistributed(layers.Conv2D(2, 3)), layers.TimeDistributed(layers.Flatten())]
    yield named("frames", keras.Sequential([video, *frames, layers.GRU(5)]), (4, 6, 6, 1), 4)
    inner = keras.Sequential([keras.Input((None, 5)), layers.GRU(4, return_sequences=True)], name="encoder")
    yield named("nested", keras.Sequential([fed, inner, layers.LayerNormalization()]), (8, 5), 8)
    hidden = layers.GRU(6, return_sequences=True, go_backwards=True)(layers.Masking()(fed))
    yield named("two outputs", keras.Model(fed, [hidden, layers.Dense(3)(hidden)]), (8, 5), 8)
    pair = [layers.LSTM(4), layers.RepeatVector(3), layers.LSTM(5, return_sequences=True)]
    yield named("repeated", keras.Sequential([keras.Input((7, 5)), *pair]), (7, 5), 7, 3)


@pytest.mark.filterwarnings("error:The structure of `inputs`")
def test_inputs_in_a_list_or_a_dictionary() -> None:
    from deepcruiser.systems.keras.layers import import_keras

    keras = import_keras()
    x, y = (np.random.default_rng(seed).normal(size=(6, 3)).astype(np.float32) for seed in (0, 1))
    one, other = keras.Input((None, 3), name="one"), keras.Input((None, 3), name="other")
    single = keras.layers.LSTM(4)(one)
    both = keras.layers.GRU(4)(keras.layers.Subtract()([one, other]))
    for inputs, output, fed in (
        ([one], single, x),
        ([one, other], both, (x, y)),
        ([other, one], both, (y, x)),
        ({"other": other, "one": one}, both, {"one": x, "other": y}),
    ):
        net = keras.Model(inputs, output)
        (run,) = dc.KerasSystem(net).run([fed])
        values = list(fed) if isinstance(fed, tuple) else fed
        batch = keras.tree.map_structure(lambda value: torch.tensor(value)[None], [x] if fed is x else values)
        np.testing.assert_allclose(run.output, net(batch, training=False).detach().numpy()[0], atol=1e-6)


@pytest.mark.parametrize("suffix", ["h5", "keras"])
def test_the_outputs_are_those_of_keras(suffix: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, net, shape, steps in networks():
        x: Any = rng.integers(1, 20, 8) if shape is None else rng.normal(size=shape).astype(np.float32)
        wanted = net(torch.tensor(x)[None], training=False)
        wanted = [one.detach().numpy()[0] for one in (wanted if isinstance(wanted, list) else [wanted])]
        net.save(tmp_path / f"net.{suffix}")
        assert steps
        for layer, count in steps.items():
            _, run = dc.KerasSystem(tmp_path / f"net.{suffix}", layer).run([x, x])
            result = run.output if isinstance(run.output, list) else [run.output]
            for one, other in zip(result, wanted, strict=True):
                assert np.allclose(one, other, atol=1e-6), name
            assert len(run.traced) == count, name


@pytest.mark.filterwarnings("ignore:Layer 'top' .* was passed an input with a mask:UserWarning")
@pytest.mark.parametrize(("version", "zeros"), [("2.2.4", False), ("2.2.4-tf", True), ("2.11.0", True)])
def test_behind_a_masked_end(version: str, zeros: bool, tmp_path: Path) -> None:
    """Keras 2 repeats the last output at masked steps; tf.keras has zeros there, in both directions."""
    rng = np.random.default_rng(0)
    masking = {"class_name": "Masking", "config": {"name": "mask", "batch_input_shape": [None, 6, 3]}}
    inner = {"zero_output_for_mask": True} if zeros else {}
    layer = rnn("LSTM", "one", 4, **inner)
    weights = [rnn_weights("LSTM", 3, 4, rng) for _ in range(2)]
    top = {"class_name": "GlobalMaxPooling1D", "config": {"name": "top", "data_format": "channels_last"}}
    model = sequential([masking, bidirectional(layer, "bi"), top])
    path = write(tmp_path / "net.h5", model, {"bi": [*weights[0], *weights[1]]}, version=version)
    x = rng.normal(size=(4, 3)).astype(np.float32)
    (run,) = dc.KerasSystem(path, batch="padded", direction="forward").run([x])
    fore = states("LSTM", weights[0], x, layer["config"])[0][1:]
    back = states("LSTM", weights[1], x[::-1], layer["config"])[0][1:]
    behind = np.zeros((1, 4)) if zeros else fore[-1:]
    # The backward layer meets the padding first, when there is no output to repeat: zeros in any case.
    wanted = np.concatenate((np.concatenate((fore, behind)).max(0), np.concatenate((back, np.zeros((1, 4)))).max(0)))
    assert np.allclose(run.output, wanted, atol=1e-6)
    assert len(run.traced) == 4
