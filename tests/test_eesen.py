"""EESEN's networks: against the same in numpy, step by step, in every spelling, and against EESEN's own programs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.decoding.beam import has_beam_search
from deepcruiser.systems.by_suffix import is_model_file, system_from_file
from deepcruiser.systems.kaldi.files import read_network, write_network
from deepcruiser.systems.kaldi.system import read_units
from tests.support import kaldi_files
from tests.support.kaldi_files import NetLayer

LAYERS = kaldi_files.random_layers(np.random.default_rng(0))
UNITS = ("<NOISE>", "<SPACE>", "A", "B")
SPELLINGS = ("new", "parallel", "training", "2015")


def write(path: Path, layers: list[NetLayer] = LAYERS, **options: Any) -> Path:
    path.write_bytes(kaldi_files.network(layers, **options))
    return path


def write_units(path: Path, units: tuple[str, ...] = UNITS) -> Path:
    path.write_text("".join(f"{unit} {number}\n" for number, unit in enumerate(units, 1)))
    return path


def rows(*lengths: int, size: int = 6) -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((length, size)).astype(np.float32) for length in lengths]


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return write(tmp_path / "final.nnet")


def expected_states(passes: list[dict[str, Any]], layer: int, part: str, direction: str) -> Any:
    recorded = passes[layer]
    if direction == "backward":
        return recorded[f"{part} back"]
    both = direction == "both" and f"{part} back" in recorded
    return np.concatenate([recorded[part], recorded[f"{part} back"][::-1]], axis=1) if both else recorded[part]


@pytest.mark.parametrize("part", ["h", "c"])
@pytest.mark.parametrize(
    ("layer", "direction"),
    [(-1, None), (0, "both"), (0, "forward"), (2, "backward"), (1, None), ("all", None), ("all", "forward")],
)
def test_every_step_is_that_of_the_network_in_numpy(net: Path, part: Any, layer: Any, direction: Any) -> None:
    system = dc.EesenSystem(net, part=part, layer=layer, direction=direction)
    numbers = range(3) if layer == "all" else [layer % 3]
    batch = rows(9, 1, 14)
    for x, run in zip(batch, system.run(batch), strict=True):
        output, passes = kaldi_files.plain(LAYERS, x)
        states = [expected_states(passes, number, part, direction or "both") for number in numbers]
        inputs = passes[numbers[0]]["x"]
        assert not run.traced.states[0].any()
        np.testing.assert_allclose(run.traced.states[1:], np.concatenate(states, axis=1), atol=1e-5)
        np.testing.assert_allclose(run.traced.inputs, inputs[::-1] if direction == "backward" else inputs, atol=1e-5)
        np.testing.assert_allclose(run.output, output, atol=1e-5)


def test_a_hand_worked_step() -> None:
    """One cell, one input: W_x = (1, 0, 0, 0), p = (0, 0, 1), x = 1."""
    weights = [np.array([[1.0], [0], [0], [0]]), np.zeros((4, 1)), np.zeros(4), np.zeros(1), np.zeros(1), np.ones(1)]
    (m,), (c,) = kaldi_files._lstm(NetLayer("Lstm", 1, 1, cells=1), tuple(weights), np.ones((1, 1)))
    np.testing.assert_allclose([*c, *m], [0.3808, 0.2159], atol=1e-4)


def test_all_spellings_are_the_same_network(tmp_path: Path, net: Path) -> None:
    whole = read_network(net).state_dict()
    (tmp_path / "bare").write_bytes(kaldi_files.network(LAYERS, as_text=True).rstrip())
    assert read_network(tmp_path / "bare").state_dict().keys() == whole.keys()
    for spelling in SPELLINGS:
        for as_text, letter in ((False, "F"), (False, "D"), (True, "F")):
            path = write(tmp_path / "other", spelling=spelling, as_text=as_text, letter=letter)
            for name, weight in read_network(path).state_dict().items():
                assert torch.equal(weight, whole[name]), (spelling, as_text, letter, name)
            assert dc.EesenSystem(path).fingerprint == dc.EesenSystem(net).fingerprint


@pytest.mark.parametrize("binary", [True, False])
def test_writer_and_reader_are_inverse(tmp_path: Path, net: Path, binary: bool) -> None:
    network = read_network(net)
    write_network(network, tmp_path / "again.nnet", binary=binary)
    again = read_network(tmp_path / "again.nnet")
    assert repr(again) == repr(network)
    for one, other in zip(again.parameters(), network.parameters(), strict=True):
        assert torch.equal(one, other)
    written = (tmp_path / "again.nnet").read_bytes()
    write_network(again, tmp_path / "third.nnet", binary=binary)
    assert (tmp_path / "third.nnet").read_bytes() == written


def test_batches_give_what_single_inputs_give(net: Path) -> None:
    system = dc.EesenSystem(net, layer="all", part="c")
    batch = rows(30, 3, 17, 1, 30, 8)
    alone = [system.run([x])[0] for x in batch]
    for one, other in zip(system.run(batch), alone, strict=True):
        np.testing.assert_allclose(one.traced.states, other.traced.states, rtol=0, atol=1e-7)
        np.testing.assert_allclose(one.traced.inputs, other.traced.inputs, rtol=0, atol=1e-7)
        np.testing.assert_allclose(one.output, other.output, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", ["LstmProjected", "LstmProjectedStreams", "BlstmProjected", "BLstmProjectedStreams"])
def test_nnet1_networks_are_read_for_their_states(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(3)
    ways = 2 if kind.startswith("B") else 1
    layers = [
        kaldi_files.layer(kind, 6, 3 * ways, rng, cells=4, clip=0.3),
        kaldi_files.layer("AffineTransform", 3 * ways, 9, rng),
        kaldi_files.layer("Softmax", 9, 9, rng),
    ]
    path = write(tmp_path / "final.nnet", layers, spelling="nnet1", as_text=ways == 2)
    batch = rows(12, 5)
    for part in ("h", "c"):
        system = dc.EesenSystem(path, part=part)
        for x, run in zip(batch, system.run(batch), strict=True):
            output, passes = kaldi_files.plain(layers, x)
            np.testing.assert_allclose(run.traced.states[1:], expected_states(passes, 0, part, "both"), atol=1e-5)
            np.testing.assert_allclose(run.output, output, atol=1e-5)
    assert "nnet1: scores of HMM states, no texts" in repr(system)
    assert len(set(np.abs(run.traced.states).max(1).round(6))) < len(run.traced.states)  # the clipping takes effect
    with pytest.raises(dc.InputError, match="outputs for states of hidden Markov models and not for units: leave out"):
        dc.EesenSystem(path, units=write_units(tmp_path / "units.txt"))
    with pytest.raises(dc.InputError, match="EESEN has no projected LSTM"):
        write_network(read_network(path), tmp_path / "x.nnet")


def certain(*columns: int, classes: int = 5) -> Any:
    return np.eye(classes, dtype=np.float32)[list(columns)] * 0.9 + 0.1 / classes


def test_answers_and_doubt(tmp_path: Path, net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = dc.EesenSystem(net, units=write_units(tmp_path / "chars.txt"))
    assert system._text(certain(0, 3, 3, 0, 3, 2, 4, 1, 1, 0)) == "AA B"
    assert isinstance(dc.EesenSystem(net).run(rows(4))[0].output, np.ndarray)
    phones = dc.EesenSystem(net, units=write_units(tmp_path / "phones.txt", ("<NSN>", "AA1", "B", "K")))
    assert phones._text(certain(2, 2, 0, 2, 1, 3, 4)) == "AA1 AA1 B K"
    write_units(tmp_path / "units.txt")
    beside = dc.EesenSystem(net)
    assert beside.units == list(UNITS)
    run = beside.run(rows(20))[0]
    best = kaldi_files.plain(LAYERS, rows(20)[0])[0].max(1)
    assert run.doubt == pytest.approx(-np.log(best).mean(), rel=1e-4)


@pytest.mark.skipif(not has_beam_search(), reason="flashlight-text is not installed")
def test_beam_search_over_characters_and_over_phones(tmp_path: Path, net: Path) -> None:
    model = Path(__file__).parent / "data" / "tiny.kenlm"  # its words: a, b, aa, ab, bba
    letters = write_units(tmp_path / "chars.txt", ("<NOISE>", "<SPACE>", "a", "b"))
    scores = certain(4, 0, 4, 4, 3, 2, 3)
    assert dc.EesenSystem(net, units=letters)._text(scores) == "bba a"
    assert dc.EesenSystem(net, units=letters, language_model=model)._text(scores) == "bba a"
    phones = write_units(tmp_path / "phones.txt", ("<NSN>", "a", "b", "aa"))
    system = dc.EesenSystem(net, units=phones, language_model=model, alpha=0.5)
    assert system._text(certain(2, 3, 3, 0, 3, 1, 4)) == "a b b aa"
    with pytest.raises(dc.InputError, match="a language model needs units="):
        dc.EesenSystem(net, language_model=model)


def test_audio_arrays_and_log_mel_features(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    layers = [kaldi_files.layer("BiLstm", 120, 8, rng)]
    path = write(tmp_path / "wsj.nnet", layers)
    audio = dc.Audio((0.1 * rng.standard_normal(9000)).astype(np.float32), 16000)
    front = dc.KaldiFeatures.recipe("wsj")
    system = dc.EesenSystem(path)
    runs = system.run([audio, front(audio), front.fbank(audio), torch.from_numpy(front(audio))])
    expected = kaldi_files.plain(layers, front(audio))[0]
    for run in runs:
        np.testing.assert_allclose(run.traced.states[1:], expected, atol=1e-4)
    own: Callable[[Any], Any] = lambda value: front(value)[::2]  # noqa: E731
    assert len(dc.EesenSystem(path, features=own).run([audio])[0].traced) == (len(expected) + 1) // 2
    for value, says in (
        (np.zeros((5, 39)), "input 0 of the batch is rows of 39 values, but must be Audio or features: rows of 120"),
        ("text", "input 0 of the batch is a str, but must be Audio"),
        (np.zeros((0, 120)), r"input 0 of the batch has the shape \(0, 120\)"),
    ):
        with pytest.raises(dc.InputError, match=says):
            system.run([value])
    wide = write(tmp_path / "wide.nnet", [kaldi_files.layer("Lstm", 360, 4, rng)])
    fits = "the network reads rows of 360: give EesenSystem features='librispeech' or features='tedlium', or one of"
    with pytest.raises(dc.InputError, match=f"the front end gives 120 values a frame, but {fits}"):
        dc.EesenSystem(wide, features="wsj")
    with pytest.raises(dc.InputError, match=f"input 0 of the batch is Audio, and no front end is given, but {fits}"):
        dc.EesenSystem(wide).run([audio])
    assert len(dc.EesenSystem(wide, features="librispeech").run([audio])[0].traced) == 18
    with pytest.raises(dc.InputError, match=r"have the shape \(54, 120\), but the network reads rows of 360"):
        dc.EesenSystem(wide, features=lambda value: front(value)).run([audio])


def test_a_file_of_any_name_is_a_system_by_itself(tmp_path: Path, net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"".join(f"utt{n} ".encode() + kaldi_files.binary(x) for n, x in enumerate(rows(9, 12, 7, 20)))
    (tmp_path / "feats.ark").write_bytes(content)
    named = write(tmp_path / "nnet.iter7", as_text=True)
    assert is_model_file(str(named))
    assert not is_model_file(tmp_path / "feats.ark")
    system = system_from_file(named)
    corpus = dc.read_corpus(tmp_path / "feats.ark")
    model = dc.profile(system, corpus, components=2).abstract(5)
    assert dc.cover(model, system, corpus)["BSCov"] == 1.0
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["init", "nnet.iter7", "--data", "feats.ark"])
    assert result.exit_code == 0, result.output
    assert 'system = "nnet.iter7"' in (tmp_path / "deepcruiser.toml").read_text()
    assert system.state_name == "LSTM: h of the last of 3 layers, both directions"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"part": "x"}, "part must be 'h' or 'c', not 'x'"),
        ({"layer": 3}, r"no layer 3 in final\.nnet, which has 3"),
        ({"layer": 1, "direction": "backward"}, "reads forward only, so direction='backward' does not exist"),
        ({"layer": "all", "direction": "backward"}, r"not every layer of final\.nnet reads backward: choose another"),
        ({"features": "swb"}, "there is no recipe 'swb'; there are wsj, swbd, librispeech, tedlium"),
        ({"features": 7}, "features must be a function"),
        ({"path": "/dev/zero"}, "cannot read '/dev/zero': it is not a file"),
        ({"units": "no.txt"}, r"cannot read 'no\.txt': no such file"),
    ],
)
def test_options_that_cannot_be_are_refused(net: Path, options: Any, says: str) -> None:
    with pytest.raises(dc.DeepCruiserError, match=says):
        dc.EesenSystem(**{"path": net, **options})


def test_units_that_do_not_fit_are_refused(tmp_path: Path, net: Path) -> None:
    short = write_units(tmp_path / "short.txt", UNITS[:3])
    with pytest.raises(dc.InputError, match=r"short\.txt' has 3 units, but final\.nnet gives 5 scores, one for each"):
        dc.EesenSystem(net, units=short)
    for text, says in (
        ("<eps> 0\n<blk> 1\nA 2\n", r"must be 1, 2, \.\.\. without gaps; is it tokens\.txt"),
        ("A 1\nB 1\n", "line 2: expected another unit and its number, not 'B 1'"),
        ("A 1\nA 2\n", "line 2: expected another unit"),
        ("A\n", "line 1: expected"),
        ("", "must be 1, 2"),
    ):
        (tmp_path / "bad.txt").write_text(text)
        with pytest.raises(dc.FileError, match=says):
            read_units(tmp_path / "bad.txt")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "expected <Nnet>, not the end of the file"),
        (b"hello there", r"bad\.nnet is not a network of EESEN: such a file begins with <Nnet>"),
        (b"<Nnet> </Nnet> \n", "bad.nnet has no recurrent layer"),
        (b"<Nnet> <Gru> <InputDim> 3 ", "'<Gru>' is not a layer that EESEN has"),
        (b"<Nnet> <Lstm> <InputDim> 3 <OutputDim> 4 ", "byte 41: a layer needs <InputDim> and <CellDim> first"),
        (b"<Nnet> <Lstm> <InputDim> 3 <CellDim> 0 ", "a layer cannot make 0 values of 3"),
        (b"<Nnet> <BiLstm> <InputDim> 3 <CellDim> 5 ", "5 outputs do not divide into two directions"),
        (b"<Nnet> <Tanh> <InputDim> 3 <OutputDim> 5 ", "<Tanh> cannot make 5 values of 3"),
        (b"<Nnet> <Lstm> <InputDim> 3 <CellDim> 4 <Speed> 3 ", "'<Speed>' is not an option of a layer"),
        (b"<Nnet> <Lstm> <InputDim> 3 <CellDim> 1 [ 1 2 ]", "an array of 2, but the sizes of its layer need 4 x 3"),
        (b"<Nnet> <AffineTransform> 1 1 [\n nan ]", "there is NaN or infinity among the weights"),
        (b"<Nnet> <Tanh> 3 3 <Sigmoid> 4 4 ", "<Sigmoid> reads 4 values, but the layer before it gives 3"),
        (b"<Nnet> <Tanh> 3 3 ", "expected a layer or </Nnet>, not the end of the file; is the file damaged"),
    ],
)
def test_files_that_are_no_networks_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "bad.nnet").write_bytes(content)
    with pytest.raises(dc.DeepCruiserError, match=says):
        dc.EesenSystem(tmp_path / "bad.nnet")


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    """The file cut short, with bytes changed, with a piece lost or doubled, or with a great number in it."""
    data = bytearray(whole)
    place, way = int(rng.integers(len(data))), int(rng.integers(5))
    if way == 0:
        return bytes(data[:place])
    if way == 1:
        for _ in range(int(rng.integers(1, 6))):
            data[int(rng.integers(min(len(data), 400)))] = int(rng.integers(256))
        return bytes(data)
    if way == 2:
        return bytes(data[:place] + data[place + int(rng.integers(1, 40)) :])
    if way == 3:
        return bytes(data[:place] + data[max(0, place - int(rng.integers(1, 40))) :])
    sizes = [
        at for at in range(len(data) - 5) if data[at] == 4 and data[at + 1] > 0 and data[at + 3 : at + 5] == b"\0\0"
    ]
    at = int(rng.choice(sizes)) if sizes else place
    data[at + 1 : at + 5] = int(rng.integers(2**20, 2**31)).to_bytes(4, "little")
    return bytes(data)


@pytest.mark.parametrize("kind", ["network", "text network", "2015 network", "archive", "text archive", "list"])
def test_damaged_files_give_a_clear_error_or_an_answer(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    values, places = kaldi_files.archive(tmp_path / "feats.ark")
    lines = "".join(f"{key} feats.ark:{place}\n" for key, place in places.items()).encode()
    text = b"".join(f"{key} ".encode() + kaldi_files.text(value) for key, value in values.items())
    name, whole = {
        "network": ("final.nnet", kaldi_files.network(LAYERS, "training")),
        "text network": ("final.nnet", kaldi_files.network(LAYERS, as_text=True)),
        "2015 network": ("final.nnet", kaldi_files.network(LAYERS, "2015")),
        "archive": ("a.ark", (tmp_path / "feats.ark").read_bytes()),
        "text archive": ("a.ark", text),
        "list": ("feats.scp", lines),
    }[kind]
    path, answered = tmp_path / name, 0
    messages: list[str] = []
    tracemalloc.start()
    for _ in range(100):
        path.write_bytes(damaged(whole, rng))
        try:
            if "network" in kind:
                (run,) = dc.EesenSystem(path).run(rows(4))
                assert np.isfinite(run.output).all()
            else:
                for sample in dc.read_corpus(path):
                    assert isinstance(sample.input, np.ndarray)
            answered += 1
        except dc.DeepCruiserError as error:
            messages.append(str(error))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(name in message or str(tmp_path) in message for message in messages)
    assert not [message for message in messages if "\n" in message]
    assert len(messages) > 10
    assert answered + len(messages) == 100
    assert peak < 20e6  # however large the sizes in the file


@pytest.mark.parametrize("as_text", [False, True])
def test_a_network_that_is_cut_short_is_refused(tmp_path: Path, as_text: bool) -> None:
    whole = kaldi_files.network(LAYERS, as_text=as_text)
    for end in range(0, len(whole) - 1, 97):
        (tmp_path / "cut.nnet").write_bytes(whole[:end])
        with pytest.raises(dc.FileError, match=r"cut\.nnet"):
            dc.EesenSystem(tmp_path / "cut.nnet")


@pytest.mark.shared
@pytest.mark.parametrize("name", ["final.nnet", "final.txt.nnet", "iter0.nnet"])
def test_posteriors_are_those_of_eesens_programs(shared: Path, name: str) -> None:
    folder = shared / "models" / "eesen"
    expected, same = (dc.read_corpus(folder / f"{each}.ark")[0].input for each in ("post", "post_par"))
    system = dc.EesenSystem(folder / name)
    features = dc.read_corpus(folder / "feats.ark")[0].input
    for source in (features, dc.Audio.read(folder / "a.wav"), dc.read_corpus(folder / "fbank.ark")[0].input):
        (run,) = system.run([source])
        np.testing.assert_allclose(run.output, expected, atol=1e-5)  # type: ignore[arg-type]
        np.testing.assert_allclose(run.output, same, atol=1e-5)  # type: ignore[arg-type]
