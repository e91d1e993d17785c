"""Workers of a campaign that the command line starts, each of which makes its parts anew from the spec."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from multiprocessing.reduction import ForkingPickler

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.executors.workers import CampaignWorker
from deepcruiser.campaign.mutations import Mutations, never_invalid
from deepcruiser.campaign.spec import CampaignSpec
from deepcruiser.cli.campaign_options import build_mutations, load_data
from deepcruiser.cli.output import say
from deepcruiser.cli.workers import SystemLoader, start
from deepcruiser.errors import InputError
from deepcruiser.trace import System
from deepcruiser.workers import Workers


@dataclass(frozen=True)
class CampaignLoader:
    """The parts of a campaign."""

    system: SystemLoader
    spec: CampaignSpec
    model: AbstractModel | None

    def __call__(self, number: int) -> CampaignWorker:
        system, spec = self.system.load(number), self.spec
        mutations = build_mutations(spec)
        mutations = mutations if spec.validity else replace(mutations, invalid=never_invalid)
        return CampaignWorker.of(
            system, self.model, load_data(spec), mutations=mutations, limit_seconds=spec.limit_seconds
        )


def campaign_workers(
    system: System,
    model: AbstractModel | None,
    mutations: Mutations,
    spec: CampaignSpec,
    count: int | None,
    address: str | None,
    *,
    device: str = "cpu",
) -> Workers[CampaignWorker] | int:
    """The workers of a campaign; 0 if mutants are made and run in this process alone."""
    try:
        ForkingPickler.dumps(mutations.kinds)
    except Exception as error:  # a user's objects may raise anything
        if count or address:
            raise InputError(
                f"the mutations cannot be sent to other processes ({error}): define them at the top level of a file "
                "whose name is not that of another module, or use --workers 0"
            ) from None
        say(f"running in one process, because the mutations cannot be sent to others ({error})", err=True)
        return 0
    if count is None and address is None:
        count = min(os.cpu_count() or 1, spec.ahead)
    load = CampaignLoader(SystemLoader.of(spec.system or "", system, device=device), spec, model)
    workers = start(load, count, address, device=device)
    if workers is None:
        return 0
    if workers.count > spec.ahead:
        say(
            f"note: this window keeps only {spec.ahead} of {workers.count} workers busy; --window "
            f"{2 * workers.count * spec.batch_size} keeps all of them busy",
            err=True,
        )
    return workers
