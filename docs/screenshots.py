"""Pictures of a campaign's report for the README: python -m docs.screenshots [FOLDER OF A CAMPAIGN]"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.browser import browser
from deepcruiser.report.data import CampaignData
from deepcruiser.report.page import write_page

HERE = Path(__file__).parent
#: Name, colours, and what has to be at the upper edge.
PICTURES = (("report-summary", "light", "summary"), ("report-failure", "light", "failures"))
LARGEST = 450_000


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo/campaign")
    with tempfile.TemporaryDirectory() as temporary, browser(1100, 820) as chromium:
        page = Path(temporary) / "report.html"
        write_page([CampaignData(folder)], page)
        chromium.get(page.as_uri())
        for name, colours, section in PICTURES:
            picture(chromium, HERE / f"{name}.png", colours, section)


def picture(chromium: Any, path: Path, colours: str, section: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": colours}]
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    chromium.execute_script("document.getElementById(arguments[0]).scrollIntoView()", section)
    time.sleep(2)  # for the spectrograms
    path.write_bytes(chromium.get_screenshot_as_png())
    size = path.stat().st_size
    print(f"{path}: {size / 1000:.0f} kB")
    if size > LARGEST:
        raise SystemExit(f"{path} is larger than {LARGEST / 1000:.0f} kB")


if __name__ == "__main__":
    main()
