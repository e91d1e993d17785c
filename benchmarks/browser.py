"""Chromium under control of a program, for measurements and screenshots."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: What it needs as root and without a screen, and so that it asks nobody for anything by itself.
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --force-prefers-reduced-motion"
)


@contextmanager
def browser(width: int = 1200, height: int = 900) -> Iterator[Any]:
    """A new browser of this size, without history."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        raise SystemExit("there is no chromium with its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS.split(), f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        opened = webdriver.Chrome(options=options, service=Service(driver))
        try:
            opened.set_script_timeout(60)
            yield opened
        finally:
            opened.quit()
