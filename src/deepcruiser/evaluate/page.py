"""One page with the sections of all results. Each section lies between two marks; the text around them is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from deepcruiser.errors import FileError, reason
from deepcruiser.files.atomic import atomic_write

#: The order of the sections on a new page.
SECTIONS = ("configurations", "abstraction", "rq1", "rq2", "rq3", "rq4", "schedulers", "monitor")


def update_page(folders: Sequence[Path], page: Path) -> list[str]:
    """Add the sections in the folders to the page or replace them there; copy figures and tables beside it.

    The section `rq1` stands between `<!-- rq1 -->` and `<!-- end of rq1 -->`. A section without marks goes to the end
    of the page. Returns the names of the sections.
    """
    text = page.read_text(encoding="utf-8") if page.is_file() else "# Results\n"
    beside = page.with_suffix("")
    sections = [(name, folder) for name in SECTIONS for folder in folders if (folder / f"{name}.md").is_file()]
    if not sections:
        where = ", ".join(repr(os.fspath(folder)) for folder in folders)
        raise FileError(
            f"there are no results in {where}: run a question first, for example `deepcruiser evaluate rq1`"
        )
    if not page.parent.is_dir():
        raise FileError(
            f"cannot write {os.fspath(page)!r}: there is no folder {os.fspath(page.parent)!r}; create it first"
        )
    beside.mkdir(exist_ok=True)
    for name, folder in sections:
        section = (folder / f"{name}.md").read_text(encoding="utf-8").rstrip()
        section = section.replace(f"]({name}.svg)", f"]({beside.name}/{name}.svg)")
        tables = [path.name for path in sorted(folder.glob(f"{name}*.csv")) if not path.stem.endswith("-data")]
        for file_name in (f"{name}.svg", *tables):
            _copy(folder / file_name, beside / file_name)
        links = ", ".join(f"[{table}]({beside.name}/{table})" for table in tables)
        text = _placed(text, name, f"{section}\n* tables: {links}")
    with atomic_write(page) as file:
        file.write(text.encode())
    return [name for name, _ in sections]


def _copy(path: Path, to: Path) -> None:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(
            f"cannot read {os.fspath(path)!r}: {reason(error)}; ask the question again to write it"
        ) from None
    with atomic_write(to) as file:
        file.write(data)


def _placed(text: str, name: str, section: str) -> str:
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    block = f"{first}\n{section}\n{last}"
    marks = re.compile(re.escape(first) + r".*?" + re.escape(last), re.DOTALL)
    if marks.search(text):
        return marks.sub(lambda _: block, text, count=1)
    return f"{text.rstrip()}\n\n{block}\n"
