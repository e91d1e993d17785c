"""Files of Keras: their code is never run, and errors name what cannot be used."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from tests.support.keras2 import (
    Array,
    dense,
    functional,
    input_layer,
    lambda_layer,
    rnn,
    rnn_weights,
    sequential,
    states,
    wrapped,
    write,
)

pytestmark = [
    pytest.mark.skipif(not find_spec("keras") or not find_spec("h5py"), reason="pip install 'deepcruiser[keras]'"),
    # Of Keras itself, when it saves: it makes arrays of tensors in a way that numpy 2 does not like.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"),
]

SIZE, UNITS = 3, 4


@pytest.fixture
def keras() -> Any:
    from deepcruiser.systems.keras.layers import import_keras

    return import_keras()


@pytest.fixture
def x() -> Array:
    return np.random.default_rng(1).normal(0, 2, (6, SIZE)).astype(np.float32)


def recogniser(path: Path, *, head: dict[str, Any]) -> tuple[Path, list[Array], dict[str, Any]]:
    """A network with a loss as its last layer, as those trained with CTC have it: four inputs, one of them sound."""
    rng = np.random.default_rng(0)
    layer, weights = rnn("GRU", "rnn", UNITS, reset_after=False), rnn_weights("GRU", SIZE, UNITS, rng)
    top = [rng.normal(0, 1, (UNITS, 5)).astype(np.float32), np.zeros(5, np.float32)]
    names = ("the_labels", "input_length", "label_length")
    model = functional(
        [
            (input_layer("the_input", [None, None, SIZE]), []),
            (layer, ["the_input"]),
            (wrapped(dense("dense", 5), "top"), ["rnn"]),
            ({"class_name": "Activation", "config": {"name": "softmax", "activation": "softmax"}}, ["top"]),
            *((input_layer(name, [None, 1]), []) for name in names),
            (lambda_layer("half"), ["input_length"]),
            (head, ["softmax", "the_labels", "half", "label_length"]),
        ],
        ["the_input", *names],
        [head["config"]["name"]],
    )
    return write(path, model, {"rnn": weights, "top": top}, version="2.1.0"), weights, layer["config"]


def test_a_loss_in_a_lambda_is_cut_off(tmp_path: Path, x: Array) -> None:
    path, weights, config = recogniser(tmp_path / "ctc.h5", head=lambda_layer("ctc"))
    with pytest.raises(
        dc.InputError, match=r"layer 'ctc' is a Lambda, and code in a file is not run: .* output='softmax'; or"
    ):
        dc.KerasSystem(path)
    (run,) = dc.KerasSystem(path, output="softmax").run([x])
    assert np.allclose(run.traced.states, states("GRU", weights, x, config)[0], atol=1e-6)
    assert run.output.shape == (6, 5)
    assert np.allclose(run.output.sum(1), 1, atol=1e-6)
    with pytest.raises(dc.InputError, match=r"no layer 'soft' in the network; its layers are: the_input, rnn"):
        dc.KerasSystem(path, output="soft")


def test_a_function_of_ones_own_in_place_of_a_lambda(tmp_path: Path, x: Array) -> None:
    layer = rnn("SimpleRNN", "rnn", UNITS)
    layer["config"]["batch_input_shape"] = [None, None, SIZE]
    weights = rnn_weights("SimpleRNN", SIZE, UNITS, np.random.default_rng(0))
    path = write(tmp_path / "net.h5", sequential([layer, lambda_layer("double")]), {"rnn": weights})
    with pytest.raises(dc.InputError, match=r"output='rnn'; or give a function of your own, custom_objects=\{'double'"):
        dc.KerasSystem(path)
    (run,) = dc.KerasSystem(path, custom_objects={"double": lambda values: values * 2}).run([x])
    assert np.allclose(run.output, 2 * np.asarray(run.traced.states)[1:])


def test_code_in_an_archive_runs_only_if_it_is_trusted(keras: Any, tmp_path: Path, x: Array) -> None:
    fed = keras.Input((None, SIZE))
    first = keras.layers.Dense(7)(keras.layers.Dense(6)(fed))
    hidden = keras.layers.LSTM(UNITS, return_sequences=True, name="rnn")(first)
    model = keras.Model(fed, keras.layers.Lambda(lambda values: values * 2, name="double")(hidden))
    model.save(tmp_path / "net.keras")
    with pytest.raises(dc.InputError, match=r"layer 'double' is a Lambda.*output='rnn'"):
        dc.KerasSystem(tmp_path / "net.keras")
    (cut,) = dc.KerasSystem(tmp_path / "net.keras", output="rnn").run([x])
    (whole,) = dc.KerasSystem(tmp_path / "net.keras", trusted=True).run([x])
    wanted = keras.ops.convert_to_numpy(model(x[None]).detach())[0]
    assert np.allclose(whole.output, wanted, atol=1e-6)
    assert np.allclose(2 * cut.output, wanted, atol=1e-6)
    assert np.allclose(np.asarray(cut.traced.states)[1:], cut.output, atol=1e-6)


def test_the_same_word_means_what_it_meant_then(keras: Any, tmp_path: Path, x: Array) -> None:
    """hard_sigmoid of Keras 3 is another function, in archives and in its own HDF5 files."""
    model = keras.Sequential(
        [keras.Input((None, SIZE)), keras.layers.LSTM(UNITS, recurrent_activation="hard_sigmoid", name="rnn")]
    )
    model.save(tmp_path / "net.keras")
    weights = [np.array(weight) for weight in model.get_weights()]
    wanted = keras.ops.convert_to_numpy(model(x[None]).detach())[0]
    layer = rnn("LSTM", "rnn", UNITS, return_sequences=False, batch_input_shape=[None, None, SIZE])
    new = write(tmp_path / "new.h5", sequential([layer]), {"rnn": weights}, version="3.5.0")
    old = write(tmp_path / "old.h5", sequential([layer]), {"rnn": weights}, version="2.3.0-tf")
    renamed = tmp_path / "net.model"  # files are known by their content
    renamed.write_bytes((tmp_path / "net.keras").read_bytes())
    for path in (tmp_path / "net.keras", renamed, new):
        assert np.allclose(dc.KerasSystem(path).run([x])[0].output, wanted, atol=1e-6)
    then = states("LSTM", weights, x, layer["config"])[0][-1]
    assert np.allclose(dc.KerasSystem(old).run([x])[0].output, then, atol=1e-6)
    assert not np.allclose(then, wanted, atol=1e-3)


def test_a_model_is_left_as_it_was_found(keras: Any, x: Array) -> None:
    layers = keras.layers
    fed = keras.Input(batch_shape=(1, None, SIZE))
    hidden = layers.Bidirectional(layers.GRU(UNITS, return_sequences=True), name="bi")(fed)
    stack = layers.RNN([layers.LSTMCell(3), layers.LSTMCell(5)], stateful=True, name="stack")(hidden)
    model = keras.Model(fed, layers.Dense(2)(stack))
    model(x[None])  # its state is no longer zeros
    before = [np.array(value.value.detach()) for value in keras.tree.flatten(model.get_layer("stack").states)]
    names = {key: set(vars(layer)) for key, layer in enumerate(model.layers)}
    whole = dc.KerasSystem(model, part="c", layer=-2).run([x, x[:4]])
    assert dc.KerasSystem(model, "stack", layer="all").state_name == "stack[0], stack[1]: h side by side"
    assert [run.traced.states.shape for run in whole] == [(7, 3), (5, 3)]
    after = [np.array(value.value.detach()) for value in keras.tree.flatten(model.get_layer("stack").states)]
    assert all(map(np.array_equal, before, after))
    assert {key: set(vars(layer)) for key, layer in enumerate(model.layers)} == names
    for value in keras.tree.flatten(model.get_layer("stack").states):
        value.assign(keras.ops.zeros_like(value.value))
    assert np.allclose(whole[0].output, np.array(model(x[None]).detach())[0], atol=1e-6)


def test_a_network_without_recurrent_layers_and_other_wrong_choices(keras: Any, tmp_path: Path, x: Array) -> None:
    dense_only = keras.Sequential([keras.Input((None, SIZE)), keras.layers.Dense(2, name="one")], name="flat")
    with pytest.raises(dc.InputError, match=r"no recurrent layer .* in 'flat'; its layers are: one \(Dense\)"):
        dc.KerasSystem(dense_only)
    net = keras.Sequential([keras.Input((5, SIZE)), keras.layers.GRU(2, name="gru")], name="small")
    with pytest.raises(dc.InputError, match=r"no recurrent layer 'lstm' in 'small'; it has: gru"):
        dc.KerasSystem(net, "lstm")
    with pytest.raises(dc.InputError, match=r"'gru' is a GRU, and only an LSTM has c"):
        dc.KerasSystem(net, part="c")
    with pytest.raises(dc.InputError, match=r"has 6 steps, but the network takes exactly 5: cut or pad it"):
        dc.KerasSystem(net).run([x])
    with pytest.raises(dc.InputError, match=r"makes steps of \[2\], but .* takes \[any, 5, 3\]"):
        dc.KerasSystem(net).run([x[:5, :2]])
    with pytest.raises(dc.InputError, match=r"shape \(15,\), but .* takes \[any, 5, 3\]"):
        dc.KerasSystem(net).run([x[:5].reshape(-1)])
    with pytest.raises(dc.InputError, match=r"must be a keras.Model or the path of a file, not a int"):
        dc.KerasSystem(3)
    assert len(dc.KerasSystem(net, batch="padded").run([x[:3]])[0].traced) == 3


def unusable(folder: Path) -> dict[str, tuple[Path, str]]:
    layer = rnn("GRU", "rnn", UNITS, batch_input_shape=[None, None, SIZE])
    weights = rnn_weights("GRU", SIZE, UNITS, np.random.default_rng(0))
    own = {"class_name": "Attend", "config": {"name": "attend", "units": 3}}
    odd = rnn("GRU", "rnn", UNITS, activation="clipped", batch_input_shape=[None, None, SIZE])
    (folder / "text.h5").write_text("not HDF5 at all")
    (folder / "empty.keras").write_bytes(b"")
    with zipfile.ZipFile(folder / "zip.keras", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with zipfile.ZipFile(folder / "evil.keras", "w") as archive:
        evil = {"module": "os", "class_name": "system", "config": {"name": "rnn"}, "registered_name": None}
        archive.writestr("config.json", json.dumps(evil))
    made = {
        "weights only": (
            write(folder / "weights.h5", None, {"rnn": weights}),
            r"it contains weights only \(of rnn\) .*weights=path",
        ),
        "Keras 1": (write(folder / "1.h5", sequential([layer]), {"rnn": weights}, version="1.2.2"), "by Keras 1.2.2"),
        "no weights": (write(folder / "none.h5", sequential([layer]), {}), "it has no weights for layer 'rnn'"),
        "other weights": (
            write(folder / "o.h5", sequential([layer]), {"rnn": weights[:2]}),
            "needs weights of the shapes",
        ),
        "a layer of one's own": (
            write(folder / "own.h5", sequential([layer, own]), {"rnn": weights}),
            "is a Attend, which",
        ),
        "a function of one's own": (
            write(folder / "odd.h5", sequential([odd]), {"rnn": weights}),
            "activation 'clipped'",
        ),
        "a class of one's own": (
            write(folder / "sub.h5", {"class_name": "Net", "config": {"name": "n"}}, {}),
            "custom Net, which a file does not describe",
        ),
        "a text": (folder / "text.h5", "neither a .keras archive nor an HDF5 file"),
        "an empty file": (folder / "empty.keras", "neither a .keras archive nor an HDF5 file"),
        "another archive": (folder / "zip.keras", "without a config.json"),
        "code of a module": (folder / "evil.keras", "it uses system, which Keras does not have"),
        "a folder": (folder, "is a folder"),
        "nothing": (folder / "nothing.h5", "there is no file"),
    }
    whole = write(folder / "whole.h5", sequential([layer]), {"rnn": weights}).read_bytes()
    (folder / "cut.h5").write_bytes(whole[: len(whole) // 2])
    return {**made, "a file cut short": (folder / "cut.h5", "cannot be loaded with Keras")}


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    for path, message in unusable(tmp_path).values():
        with pytest.raises(dc.FileError, match=message) as raised:
            dc.KerasSystem(path)
        assert str(path) in str(raised.value)


def test_layers_and_functions_of_ones_own(keras: Any, tmp_path: Path, x: Array) -> None:
    layer = rnn("SimpleRNN", "rnn", UNITS, activation="clipped", batch_input_shape=[None, None, SIZE])
    weights = rnn_weights("SimpleRNN", SIZE, UNITS, np.random.default_rng(0))
    path = write(tmp_path / "net.h5", sequential([layer]), {"rnn": weights})
    (run,) = dc.KerasSystem(path, custom_objects={"clipped": lambda v: keras.ops.clip(v, 0, 1)}).run([x])
    h = np.zeros(UNITS)
    for step in x:
        h = np.clip(step @ weights[0] + weights[2] + h @ weights[1], 0, 1)
    assert np.allclose(np.asarray(run.traced.states)[-1], h, atol=1e-6)


def test_a_missing_package_and_another_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "h5py", None)
        with pytest.raises(dc.InputError, match=r"packages keras and h5py: pip install 'deepcruiser\[keras\]'"):
            dc.KerasSystem("net.h5")
    code = (
        "import deepcruiser as dc, os, sys\ntry:\n dc.KerasSystem('net.h5')\nexcept dc.DeepCruiserError as e: print(e)"
    )
    code += (
        "\nprint(os.environ.get('KERAS_BACKEND'), sys.modules.get('keras') and sys.modules['keras'].config.backend())"
    )
    for backend, message in (
        (None, "there is no file 'net.h5'\nNone torch"),
        ("nonsense", "KERAS_BACKEND is 'nonsense'"),
    ):
        environment = {key: value for key, value in os.environ.items() if key != "KERAS_BACKEND"}
        environment |= {"KERAS_BACKEND": backend} if backend else {}
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert message in result.stdout, result.stderr


@pytest.mark.shared
def test_the_recogniser_of_somebody_else(shared: Path) -> None:
    """Trained on LibriSpeech by others; about half of its letters are right."""
    corpus = dc.read_corpus(shared / "speech" / "librispeech-dev-clean")
    front = dc.LogSpectrogram.ba_dls()
    frames = np.concatenate([front(sample.input) for sample in corpus[::27]])
    mean, deviation = frames.mean(0), frames.std(0)
    alphabet = ["'", " ", *map(chr, range(ord("a"), ord("z") + 1))]
    system = dc.KerasSystem(
        shared / "models" / "keras-ctc" / "gru_2x200_spectrogram.h5",
        output="softmax",
        features=lambda audio: (front(audio) - mean) / deviation,
        rate=16_000,
        batch="padded",
        transcribe=lambda scores: dc.ctc_greedy(scores, alphabet, blank=28),
    )
    tests = sorted(corpus[5::130], key=lambda sample: len(sample.input))[:10]
    runs = system.run([sample.input for sample in tests])
    rate = dc.CharacterErrorRate()
    scores = [rate.score(sample.text, run.output) for sample, run in zip(tests, runs, strict=True)]
    assert 0.2 < np.mean(scores) < 0.6
    assert all(run.traced.size == 200 and len(run.traced) > 50 for run in runs)


@pytest.mark.shared
def test_the_example(shared: Path, tmp_path: Path) -> None:
    """On the 30 shortest of 600 utterances, so that it takes seconds."""
    example = Path(__file__).resolve().parents[1] / "examples" / "keras_ctc.py"
    corpus = sorted(dc.read_corpus(shared / "speech" / "librispeech-dev-clean")[:600], key=lambda one: len(one.input))
    lines = [
        json.dumps(
            {"audio_filepath": str(shared / "speech" / "librispeech-dev-clean" / f"{one.id}.opus"), "text": one.text}
        )
        for one in corpus[:30]
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines))
    model = shared / "models" / "keras-ctc" / "gru_2x200_spectrogram.h5"
    command = [sys.executable, str(example), str(model), str(tmp_path / "corpus.jsonl"), "--runs", "32"]
    command += ["--output", str(tmp_path / "run")]
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert result.returncode == 0, result.stderr
    assert ": 32 runs, " in result.stdout
    (failing, of) = re.findall(r"(\d+) of (\d+) failing tests fail again", result.stdout)[0]
    assert failing == of


@pytest.mark.parametrize("kind", ["external storage", "external link", "virtual"])
def test_a_file_that_reads_other_files_is_refused(tmp_path: Path, kind: str) -> None:
    import h5py

    weights = rnn_weights("GRU", SIZE, UNITS, np.random.default_rng(0))
    path = write(tmp_path / "net.h5", sequential([rnn("GRU", "rnn", UNITS, reset_after=False)]), {"rnn": weights})
    secret = tmp_path / "secret"
    secret.write_bytes(b"password" * 100)
    with h5py.File(path, "a") as file:
        group = file["model_weights"]["rnn"]
        name = group.visititems(lambda name, item: name if isinstance(item, h5py.Dataset) else None)
        shape = group[name].shape
        del group[name]
        if kind == "external storage":
            group.create_dataset(name, shape, "f4", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])
        elif kind == "external link":
            group[name] = h5py.ExternalLink(str(secret), "/weights")
        else:
            layout = h5py.VirtualLayout(shape, "f4")
            layout[:] = h5py.VirtualSource(str(secret), "weights", shape)
            group.create_virtual_dataset(name, layout)
    with pytest.raises(dc.FileError, match=r"(from|in) another file.*: save it as one file"):
        dc.KerasSystem(path)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_weights_alone_compute_as_in_keras_2(kind: str, named: bool, tmp_path: Path, keras: Any, x: Array) -> None:
    rng = np.random.default_rng(3)
    weights, top = rnn_weights(kind, SIZE, UNITS, rng), [rng.normal(0, 1, (UNITS, 2)), np.zeros(2)]
    path = write(tmp_path / "w.h5", None, {"drop": [], "rnn": weights, "top": top})
    options = {"reset_after": False} if kind == "GRU" else {}
    layer = getattr(keras.layers, kind)(
        UNITS, recurrent_activation="hard_sigmoid", return_sequences=True, name="rnn" if named else "mine", **options
    )
    model = keras.Sequential([keras.Input((None, SIZE)), layer, keras.layers.Dense(2, name="top" if named else "out")])
    before = [np.array(weight) for weight in model.get_weights()]
    (run,) = dc.KerasSystem(model, weights=path).run([x])
    h, _ = states(kind, weights, x, {"activation": "tanh", "recurrent_activation": "hard_sigmoid"})
    np.testing.assert_allclose(run.traced.states, h, atol=1e-5)
    np.testing.assert_allclose(run.output, h[1:] @ top[0], atol=1e-4)
    assert all(np.array_equal(*pair) for pair in zip(model.get_weights(), before, strict=True))


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_weights_of_cudnn_alone_are_converted(kind: str, both: bool, tmp_path: Path, keras: Any, x: Array) -> None:
    from deepcruiser.systems.keras.files import _from_cudnn

    rng, gates = np.random.default_rng(4), 4 if kind == "LSTM" else 3
    shapes = ((SIZE, gates * UNITS), (UNITS, gates * UNITS), (2 * gates * UNITS,))
    stored = [rng.normal(0, 0.5, shape).astype(np.float32) for _ in range(1 + both) for shape in shapes]
    path = write(tmp_path / "w.h5", None, {"rnn": stored})
    layer = getattr(keras.layers, kind)(UNITS, return_sequences=True)
    layer = keras.layers.Bidirectional(layer, name="rnn") if both else layer
    (run,) = dc.KerasSystem(keras.Sequential([keras.Input((None, SIZE)), layer]), weights=path).run([x])
    plain = {"activation": "tanh", "recurrent_activation": "sigmoid"}
    forward, _ = states(kind, _from_cudnn(kind, stored[:3]), x, plain)
    right = forward[1:]
    if both:
        backward, _ = states(kind, _from_cudnn(kind, stored[3:]), x[::-1], plain)
        right = np.concatenate([right, backward[:0:-1]], axis=1)
    np.testing.assert_allclose(run.output, right, atol=1e-5)


def test_weights_that_do_not_fit_a_model_are_refused(tmp_path: Path, keras: Any) -> None:
    path = write(tmp_path / "w.h5", None, {"rnn": rnn_weights("GRU", SIZE, UNITS, np.random.default_rng(0))})
    model = keras.Sequential(
        [keras.Input((None, SIZE)), keras.layers.GRU(UNITS, name="a"), keras.layers.Dense(2, name="b")]
    )
    with pytest.raises(dc.FileError, match=r"weights for 1 layers \(rnn\), but the model has 2 with weights \(a, b\)"):
        dc.KerasSystem(model, weights=path)
    with pytest.raises(dc.InputError, match="weights= is for a model that you built"):
        dc.KerasSystem(tmp_path / "m.h5", weights=path)
    (tmp_path / "no.h5").write_bytes(b"no such thing")
    with pytest.raises(dc.FileError, match=r"no.h5' cannot be read as weights of Keras 2"):
        dc.KerasSystem(model, weights=tmp_path / "no.h5")
