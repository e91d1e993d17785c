"""The documentation as a site: it builds, has all pages, loads nothing from other servers; its drawings are correct."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from docs import architecture_picture, pictures

ROOT = Path(__file__).resolve().parents[1]
#: What a browser fetches by itself when a page is opened.
FETCHED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "audio": "src",
    "video": "src",
    "source": "src",
    "link": "href",
}


class Page(HTMLParser):
    """The resources, links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched, self.links, self.ids = list[str](), list[str](), {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "link" and attributes.get("rel") in ("canonical", "next", "prev"):
            return
        if address := attributes.get(FETCHED.get(tag, "")):
            self.fetched.append(address)
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        self.ids.update(attributes[name] for name in ("id", "name") if name in attributes)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not importlib.util.find_spec("mkdocs") or not importlib.util.find_spec("material"):
        pytest.skip("pip install 'deepcruiser[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_every_document_is_a_page_and_in_the_navigation(site: Path) -> None:
    documents = {path.stem for path in (ROOT / "docs").glob("*.md")}
    made = {"reference-commands", "reference-python"}
    assert {path.stem for path in (site / "docs").glob("*.html")} == documents | made
    linked = {urldefrag(link).url for link in Page(site / "index.html").links}
    assert {f"docs/{name}.html" for name in documents} <= linked


def test_no_page_asks_another_server_for_anything(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    for path in pages:
        page = Page(path)
        assert page.fetched
        outside = [address for address in page.fetched if re.match(r"(\w+:)?//", address)]
        assert not outside, f"{path.relative_to(site)} fetches {outside}"
    for path in sorted(site.rglob("*.css")):
        imported = re.findall(r"(?:@import|url\()\s*[\"']?((?:\w+:)?//[^\"')]+)", path.read_text(encoding="utf-8"))
        assert not imported, f"{path.relative_to(site)} fetches {imported}"


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    for path, page in pages.items():
        for link in [*page.links, *page.fetched]:
            target, anchor = urldefrag(unquote(link))
            if re.match(r"\w+:", target):
                continue
            file = (path.parent / target).resolve() if target else path
            file = file / "index.html" if file.is_dir() else file
            assert file.is_file(), f"{path.relative_to(site)} links to {link}"
            if file in pages and not anchor.startswith("__"):  # those are of the theme's own script
                assert anchor in pages[file].ids, f"{path.relative_to(site)} links to {link}"


def test_the_picture_of_the_architecture_names_files_that_are_there() -> None:
    """And so does every table of the page."""
    assert (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8") == architecture_picture.picture()
    package = ROOT / "src" / "deepcruiser"
    names = [name for _, boxes in architecture_picture.ROWS for _, _, files in boxes for name in files.split(", ")]
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    names += re.findall(r"`([a-z_/]+(?:\.py|/))`", page)
    assert len(names) > 40
    assert not [name for name in names if not (package / name).exists() and not (ROOT / name).exists()]


@pytest.mark.parametrize("name", ["bscov", "sbcov", "btcov", "iscov", "wicov"])
def test_the_drawings_are_those_of_their_script(name: str) -> None:
    """Which, in turn, checks what it counts against the criteria."""
    drawn = getattr(pictures.Example(), name)()
    assert (ROOT / "docs" / "criteria" / f"{name}.svg").read_text(encoding="utf-8") == drawn
