"""deepcruiser language-model: build an n-gram model of words, for beam search."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path

import click

from deepcruiser.cli import options
from deepcruiser.errors import FileError, reason

OPENERS = {".gz": gzip.open, ".xz": lzma.open}


@click.command("language-model")
@click.argument("texts", metavar="TEXT...", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.output("The file to write.")
@click.option("--order", default=4, show_default=True, help="Largest number of words in an n-gram.")
@click.option(
    "--prune",
    default=0.0,
    show_default=True,
    help="Leave out n-grams without which the perplexity grows, relatively, by less than this: 1e-8 to 1e-6.",
)
@click.option("--vocabulary", type=int, help="Number of the most frequent words to keep.  [default: all]")
@click.option("--held-out", type=click.Path(path_type=Path), help="A text to measure the perplexity on.")
@options.json_output()
def language_model(
    texts: tuple[Path, ...],
    output: Path,
    order: int,
    prune: float,
    vocabulary: int | None,
    held_out: Path | None,
    as_json: bool,
) -> None:
    """Build a language model of words from texts.

    \b
    deepcruiser language-model books.txt.xz -o books.lm --prune 3e-8 --vocabulary 60000

    The texts have one sentence per line (plain, .gz or .xz). Words are separated by spaces: normalise the texts like
    transcripts, in lower case and without punctuation. The result is one compact file, or a file in ARPA format if the
    name ends in .arpa or .arpa.gz.
    """
    from deepcruiser.decoding.ngrams import NgramModel

    for given in (*texts, *([held_out] if held_out else [])):
        if not given.is_file():
            raise FileError(f"there is no file {str(given)!r}")
    if not output.parent.is_dir():  # fail now, not after the work
        raise FileError(f"cannot write {str(output)!r}: there is no folder {str(output.parent)!r}; create it first")
    model = NgramModel.build(
        (line for text in texts for line in lines(text)), order=order, prune=prune, vocabulary=vocabulary
    )
    model.save(output)
    size = output.stat().st_size
    perplexity = None if held_out is None else NgramModel.load(output).perplexity(lines(held_out))
    if as_json:
        about = {"ngrams": [len(keys) for keys in model.keys], "bytes": size, "perplexity": perplexity}
        click.echo(json.dumps({"output": str(output), **about}))
        return
    click.echo(f"{model}, {size / 1e6:.1f} MB, written to {output}")
    if perplexity is not None:
        click.echo(f"perplexity {perplexity:.1f} on {held_out}")


def lines(path: Path) -> Iterator[str]:
    """The lines of a text."""
    try:
        with OPENERS.get(path.suffix.lower(), open)(path, "rt", encoding="utf-8") as file:  # type: ignore[operator]
            yield from file
    except UnicodeDecodeError as error:
        raise FileError(f"{str(path)!r} is no text in UTF-8: {error.reason} at byte {error.start}") from None
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise FileError(f"cannot read {str(path)!r}: {reason(error)}") from None
