"""The import rules, the public names, and what must never be in the package."""

from __future__ import annotations

import ast
from pathlib import Path

import deepcruiser as dc

PACKAGE = Path(dc.__file__).parent

#: From the ground up; a part may import those before it and itself. ARCHITECTURE.md says the same in words.
LAYERS = (
    ("errors",),
    ("files",),
    ("alignment", "normaliser"),
    ("notebook",),
    ("workers",),
    ("cluster",),
    ("audio", "trace"),
    ("serialise",),
    ("corpora", "decoding", "features", "transformations"),
    ("stream",),
    ("progress",),
    ("abstraction",),
    ("criteria", "export"),
    ("coverage", "oracles"),
    ("value_oracles",),
    ("campaign",),
    ("monitor",),
    ("findings",),
    ("evaluate", "report"),
    ("systems",),
    ("cli",),
    ("pytest_plugin",),
)
#: Systems implement trace.System and know nothing of what is made with them.
SYSTEMS_MAY_IMPORT = {"errors", "files", "audio", "trace", "decoding", "features", "systems"}


def imports() -> list[tuple[str, str, str]]:
    """(file, its part, the part it imports) for every import within the package."""
    result = []
    for path in PACKAGE.rglob("*.py"):
        inside = path.relative_to(PACKAGE)
        if inside.name in ("__init__.py", "__main__.py") and len(inside.parts) == 1:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                if module.startswith("deepcruiser."):
                    result.append((str(inside), inside.parts[0].removesuffix(".py"), module.split(".")[1]))
    return result


def test_imports_point_one_way() -> None:
    rank = {part: level for level, parts in enumerate(LAYERS) for part in parts}
    wrong = [
        f"{file} imports {target}" for file, part, target in imports() if part != target and rank[target] >= rank[part]
    ]
    wrong += [
        f"{file} imports {target}"
        for file, part, target in imports()
        if part == "systems" and target not in SYSTEMS_MAY_IMPORT
    ]
    assert not wrong
    assert len(imports()) > 50, "the test found too few imports to mean anything"


def test_every_part_has_a_layer() -> None:
    parts = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert parts - {"__init__", "__main__"} <= {part for layer in LAYERS for part in layer}


def test_public_names_are_sorted_and_there() -> None:
    assert dc.__all__ == sorted(dc.__all__)
    assert all(hasattr(dc, name) for name in dc.__all__)
    assert set(dir(dc)) == {*dc.__all__, "__version__"}


def test_nothing_is_unpickled_and_no_random_state_is_shared() -> None:
    forbidden = ("import pickle", "allow_pickle=True", "weights_only=False", "np.random.seed", "torch.manual_seed")
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not [word for word in forbidden if word in text], path


def test_long_files_say_why() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if len(text.splitlines()) > 400:
            first = ast.get_docstring(ast.parse(text)) or ""
            assert "long" in first.partition("\n\n")[0], f"{path.name} has over 400 lines and does not say why"
