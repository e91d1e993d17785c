"""deepcruiser transcribe: transcribe recordings with the built-in recogniser."""

from __future__ import annotations

import json
from pathlib import Path

import click

from deepcruiser.audio import AUDIO_SUFFIXES, Audio
from deepcruiser.cli import builtin, options
from deepcruiser.cli.output import say
from deepcruiser.corpora.corpus import Sample
from deepcruiser.corpora.read import read_corpus
from deepcruiser.errors import DeepCruiserError


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--greedy", is_flag=True, help="Decode letter by letter, without the language model.")
@options.device
@options.json_output("Print one JSON object per line.")
def transcribe(files: tuple[Path, ...], greedy: bool, device: str, as_json: bool) -> None:
    """Transcribe recordings with the built-in recogniser.

    \b
    deepcruiser transcribe question.wav answer.flac
    deepcruiser transcribe LibriSpeech/test-clean --json > heard.jsonl

    Takes files, folders and corpora, at any sample rate. The recogniser knows English and writes the letters a to z in
    lower case and the apostrophe. Files that cannot be read are reported and left out; the exit status is then 2.
    """
    samples: list[Sample] = []
    unread = 0
    for path in files:
        try:
            samples += [Sample(str(path), path)] if path.suffix.lower() in AUDIO_SUFFIXES else read_corpus(path)
        except DeepCruiserError as error:
            unread += 1
            say(f"error: {error}", err=True)
    system = builtin.system("english-letters" if greedy else "english", device=device)
    for sample in samples:
        try:
            audio = sample.input
            assert isinstance(audio, Audio)
            (run,) = system.run([audio])
        except DeepCruiserError as error:
            unread += 1
            say(f"error: {error}", err=True)
            continue
        if as_json:
            line = {"file": str(sample.path), "text": run.output, "seconds": round(audio.seconds, 3)}
            say(json.dumps(line))
        else:
            say(f"{sample.path}: {run.output}" if len(samples) > 1 else run.output)
    raise click.exceptions.Exit(2 if unread else 0)
