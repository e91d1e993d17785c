"""A system with a simple weakness, in a file as users have it: a judge that fails at three square brackets."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import deepcruiser as dc
from deepcruiser.campaign.record import CampaignRecord
from tests.support.toy import MUTATIONS, Text

SOURCE = """
import deepcruiser as dc

class Judge:
    '''Says "fine" of every text, but for those with too many square brackets.'''

    def __init__(self, limit, answer="confused"):
        self.limit, self.answer, self.fingerprint = limit, answer, f"judge {limit} {answer}"

    def run(self, batch):
        return [dc.Run("fine" if text.count("[") < self.limit else self.answer) for text in batch]

class Crashing(Judge):
    def run(self, batch):
        if any(text.count("[") >= self.limit for text in batch):
            raise ValueError("too many")
        return super().run(batch)

broken, mended, worse = Judge(3), Judge(1000), Crashing(2)
"""
SEEDS = [Text(f"t{i}", text, "fine") for i, text in enumerate(["a(b)", "([])", "[][]ab", "(()())", "ab[a]b"])]


def judges(folder: Path) -> Any:
    """The module `judge.py`, written to the folder."""
    path = folder / "judge.py"
    path.write_text(SOURCE)
    spec = spec_from_file_location("judge", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop("judge", None)
    return module


def campaign(system: Any, folder: Path, **options: Any) -> CampaignRecord:
    options = {"oracle": dc.Disagreement("text"), "mutations": MUTATIONS, "workers": 0, "runs": 160, **options}
    return dc.fuzz(system, None, SEEDS, folder=folder, guide="none", **options)
