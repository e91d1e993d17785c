"""The files of the documentation site: those of the repository, each in its own place (a hook of mkdocs.yml)."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PATTERNS = (
    "*.md",
    "LICENSE",
    "CITATION.cff",
    "benchmarks/README.md",
    "examples/README.md",
    "examples/*.py",
    "docs/*.md",
    "docs/*.png",
    "docs/*.svg",
    "docs/*.css",
    "docs/criteria/*.svg",
    "docs/results*/*.svg",
    "docs/results*/*.csv",
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Those of the theme, and the repository's instead of those below docs/ alone."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    paths = sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern))
    ours = [File(path.relative_to(ROOT).as_posix(), str(ROOT), config.site_dir, False) for path in paths]
    return Files([*theme, *ours])
