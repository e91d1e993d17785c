"""The report in a real browser: Debian's chromium and its driver, where they are installed."""

from __future__ import annotations

import base64
import csv
import io
import json
import shutil
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.campaign.paths import keep_paths
from deepcruiser.report.data import CampaignData
from deepcruiser.report.page import write_page
from deepcruiser.report.sections import SECTIONS
from deepcruiser.report.seed_listing import COLUMNS, ListedSeed, order, read_choice
from deepcruiser.report.seed_listing import write_page as write_seeds
from deepcruiser.report.server import serving
from deepcruiser.serialise import digest_of
from tests.support import reports, toy
from tests.support.reports import page_data

#: What Chromium needs as root and without a screen, and so that it asks nobody for anything by itself.
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --autoplay-policy=no-user-gesture-required --mute-audio "
    "--force-prefers-reduced-motion"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install selenium")
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("there is no chromium with its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.add_argument("--window-size=1200,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    sounds = reports.sound_campaign(folder / "sounds")
    assert len(sounds.failed) > 25, "one page of the table holds them all"
    reports.sound_campaign(folder / "unguided", guide="none", runs=48)
    texts = toy.campaign(folder / "texts")
    keep_paths(texts, toy.Reader(), texts.failed)  # of all, not the ten worst
    reports.series_campaign(folder / "series")
    toy.campaign(folder / "nothing", runs=16, oracle=dc.WordErrorRate(above=99))
    made = {name: folder / name / "report.html" for name in ("sounds", "texts", "series", "nothing")}
    for name, path in made.items():
        write_page([CampaignData(folder / name)], path, embed=5)
    made["compared"] = folder / "compared.html"
    write_page([CampaignData(folder / "sounds"), CampaignData(folder / "unguided")], made["compared"], embed=5)
    return made


@pytest.fixture
def opened(browser: Any, pages: dict[str, Path]) -> Iterator[Callable[[str], Any]]:
    """Opens a page; afterwards, it must have loaded nothing from outside and logged no errors."""
    browser.get_log("browser")
    browser.get_log("performance")

    def open_page(name: str) -> Any:
        browser.get(pages[name].as_uri())
        browser.execute_script("window.alert = () => { document.title = 'attacked'; };")
        return browser

    yield open_page
    assert browser.title != "attacked"
    complaints = [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert not complaints
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    inside = [path.parent.as_uri() for path in pages.values()]
    outside = [url for url in asked if not url.startswith(("data:", "blob:", *inside))]
    assert not outside
    assert asked, "no request was seen at all, so the test shows nothing"


def eventually(check: Callable[[], Any], seconds: float = 15.0) -> Any:
    end = time.monotonic() + seconds
    while not (result := check()):
        assert time.monotonic() < end, f"still {result!r}"
        time.sleep(0.05)
    return result


def find(browser: Any, css: str) -> Any:
    return browser.find_element("css selector", css)


def texts(browser: Any, css: str) -> Any:
    # At once, since the page may draw itself anew between two questions.
    return browser.execute_script("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", css)


def test_all_sections_are_there_and_fit_on_a_phone(opened: Callable[[str], Any]) -> None:
    browser = opened("sounds")
    titles = [section.title for section in SECTIONS if section.name != "comparison"]
    assert texts(browser, "nav a") == titles
    assert texts(browser, "h2") == titles[1:]  # the summary has the name of the campaign as its heading
    assert len(browser.find_elements("css selector", ".uplot canvas")) >= 2
    assert all(canvas.size["width"] > 300 for canvas in browser.find_elements("css selector", ".uplot canvas"))
    for chart in browser.find_elements("css selector", "section > .chart > .uplot"):
        assert len(chart.get_attribute("aria-label")) > 40
    for width in (390, 1200):
        metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        time.sleep(0.3)
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_seed_and_mutant_are_compared_by_ear(opened: Callable[[str], Any], pages: dict[str, Path]) -> None:
    """Inside the page and beside it; the switch keeps the time, and one of them plays at most."""
    browser = opened("sounds")
    data, inside = page_data(Path(browser.current_url.removeprefix("file://"))), 'a[href^="blob:"]'
    embedded = json.loads(browser.execute_script("return document.getElementById('sounds').textContent"))
    beside = {test["number"] for test in data["failures"] if f"0/{test['input']['mutant']['file']}" not in embedded}
    numbers = [int(text) for text in texts(browser, "tr.row td:first-child")]
    row, number = next((row, number) for row, number in enumerate(numbers) if number in beside)
    (about,) = [test["input"] for test in data["failures"] if test["number"] == number]
    for part in ("seed", "mutant"):  # Chromium cannot seek in a FLAC file of fewer than three blocks
        path = pages["sounds"].parent / about[part]["file"]
        dc.Audio.read(path).resample(32_000).write(path)
    browser.find_elements("css selector", "tr.row .more button")[row].click()
    eventually(lambda: len(browser.find_elements("css selector", ".sounds")) == 2)
    sources = [
        link.get_attribute("href").partition(":")[0] for link in browser.find_elements("css selector", ".sounds a")
    ]
    assert sources[:2] == ["blob", "blob"]
    assert sources[3] == "file"
    eventually(lambda: len(browser.find_elements("css selector", ".spectrogram")) == 3)
    for which in (0, 1):
        pair = browser.find_elements("css selector", ".sounds")[which]
        play, seed, _ = pair.find_elements("css selector", ".tools button")
        heard = "return [...arguments[0].querySelectorAll('audio')].map(a => [a.paused, a.currentTime, a.duration])"
        # Slowly, since a busy machine may take a second from one click to the next.
        browser.execute_script(
            "arguments[0].querySelectorAll('audio').forEach(a => { a.defaultPlaybackRate = a.playbackRate = 0.1; })",
            pair,
        )
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", play)
        play.click()
        eventually(lambda: browser.execute_script(heard, pair)[1][1] > 0.2)  # noqa: B023
        seed.click()
        eventually(lambda: not browser.execute_script(heard, pair)[0][0])  # noqa: B023
        (_, at, length), (stopped, *_) = browser.execute_script(heard, pair)
        assert stopped
        assert 0.2 < at < length < 2
        play.click()
        eventually(lambda: browser.execute_script(heard, pair)[0][0])  # noqa: B023
        assert seed.get_attribute("aria-pressed") == "true"
    assert browser.execute_script("return [...document.querySelectorAll('audio')].every(a => a.paused)")
    wave = pair.find_element("css selector", "canvas.wave")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", wave)
    wave.click()
    longest = max(about[which]["seconds"] for which in ("seed", "mutant"))
    assert float(pair.find_element("css selector", "input[type=range]").get_attribute("value")) == pytest.approx(
        longest / 2, abs=0.03
    )
    assert find(browser, inside).get_attribute("download").endswith(".mp3")


def test_both_waves_have_one_scale_in_time_and_loudness(opened: Callable[[str], Any], pages: dict[str, Path]) -> None:
    browser = opened("sounds")
    eventually(lambda: browser.find_elements("css selector", ".spectrogram"))
    measured = browser.execute_script(
        """
        return [...document.querySelectorAll(".sounds canvas.wave")].map((canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const drawn = (x, y) => data[4 * (y * canvas.width + x) + 3] > 0;
          const columns = [...Array(canvas.width).keys()].filter((x) => drawn(x, canvas.height / 2));
          const rows = [...Array(canvas.height).keys()].filter((y) => columns.some((x) => drawn(x, y)));
          return [columns.length / canvas.width, rows.length / canvas.height];
        });
        """
    )
    worst = page_data(pages["sounds"])["failures"][0]["input"]
    read = [dc.Audio.read(pages["sounds"].parent / worst[which]["file"]) for which in ("seed", "mutant")]
    seconds, peaks = [audio.seconds for audio in read], [float(np.abs(audio.samples).max()) for audio in read]
    for (long, high), length, peak in zip(measured, seconds, peaks, strict=True):
        assert long == pytest.approx(length / max(seconds), abs=0.02)
        assert high == pytest.approx(0.95 * peak / max(peaks), abs=0.08)


def test_a_spectrogram_is_the_fourier_transform(opened: Callable[[str], Any]) -> None:
    browser = opened("nothing")  # without failing tests there are none of its scripts' pictures, but the functions
    samples = np.random.default_rng(0).normal(0, 0.1, 4000)
    result = browser.execute_script("return [...spectrogram(arguments[0], 8000, 0.5, 5).values]", samples.tolist())
    for column, centre in enumerate((400, 1200, 2000, 2800, 3600)):
        window = np.hanning(257)[:256]
        power = np.abs(np.fft.fft(samples[centre - 128 : centre + 128] * window)[:128]) ** 2
        assert np.reshape(result, (128, 5))[::-1, column] == pytest.approx(10 * np.log10(power + 1e-9), abs=0.01)


def test_the_path_follows_the_sound_and_the_steps(opened: Callable[[str], Any], pages: dict[str, Path]) -> None:
    browser = opened("sounds")
    path = page_data(pages["sounds"])["failures"][0]["path"]
    steps = len(path["test"]["cells"]) - 1
    eventually(lambda: browser.find_elements("css selector", ".trace canvas"))
    place = texts(browser, ".trace .answer")[0]
    assert f"They diverge at step {path['parting']}, " in place
    before, now = (path[which]["texts"][-1][1].split() for which in ("seed", "test"))
    other = next(i for i, word in enumerate(now) if word != (before[i] if i < len(before) else None))
    begins = next(step for step, text in path["test"]["texts"] if len(text.split()) > other)
    wanted = before[other] if other < len(before) else "nothing"
    assert f"The first other word is “{now[other]}” instead of “{wanted}”, written at step {begins}, at " in place
    assert step_of(browser).startswith(f"step {path['parting']} of {steps}, ")
    slider = find(browser, ".trace input[type=range]")
    set_step = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
    for step in (0, steps // 2, steps):
        browser.execute_script(set_step, slider, step)
        eventually(lambda: step_of(browser).startswith(f"step {step} of "))  # noqa: B023
        written = [text for at, text in path["test"]["texts"] if at <= step]
        assert texts(browser, ".trace .pair > div:nth-child(2) .answer") == [written[-1] if written else "(nothing)"]
        cell = ", ".join(map(str, path["test"]["cells"][step]))
        assert f"cell ({cell})" in texts(browser, ".trace .pair > div:nth-child(2) .mark")[0]
    next(
        each for each in browser.find_elements("css selector", ".trace button") if each.text == "First other word"
    ).click()
    eventually(lambda: step_of(browser).startswith(f"step {begins} of "))
    browser.execute_script(set_step, slider, steps)
    eventually(lambda: step_of(browser).startswith(f"step {steps} of "))
    seconds = float(find(browser, ".sounds input[type=range]").get_attribute("value"))
    assert seconds == pytest.approx(page_data(pages["sounds"])["failures"][0]["input"]["mutant"]["seconds"], abs=0.02)
    browser.execute_script(set_step, slider, 0)
    find(browser, ".sounds .play").click()
    eventually(lambda: not step_of(browser).startswith("step 0 "))
    browser.execute_script("for (const audio of document.querySelectorAll('audio')) audio.pause()")


def test_the_path_of_a_text_is_played_and_its_symbols_shown(opened: Callable[[str], Any]) -> None:
    browser = opened("texts")
    eventually(lambda: browser.find_elements("css selector", ".trace canvas"))
    back, play, forward = (
        f".trace button[aria-label='Step {way}']" if way else ".trace .tools button" for way in ("back", "", "forward")
    )
    symbol = ".trace .pair > div:nth-child(2) ins"
    worst = "table.data.failures.find((test) => table.open.has(idOf(test)))"
    text = browser.execute_script(f"return textOf({worst})")
    slider = find(browser, ".trace input[type=range]")
    browser.execute_script("arguments[0].value = 0; arguments[0].dispatchEvent(new Event('input'))", slider)
    find(browser, forward).click()
    find(browser, forward).click()
    assert (step_of(browser), texts(browser, symbol)) == (f"step 2 of {len(text)}", [text[1]])
    place = texts(browser, ".trace > .answer")[0]
    parting = browser.execute_script(f"return {worst}.path.parting")
    assert f"They diverge at step {parting}, in cell (" in place
    assert f"after “{text[:parting][-20:]}”" in place
    find(browser, back).click()
    assert (step_of(browser), texts(browser, symbol)) == (f"step 1 of {len(text)}", [text[0]])
    find(browser, play).click()
    eventually(lambda: step_of(browser) == f"step {len(text)} of {len(text)}")


def step_of(browser: Any) -> str:
    return str(texts(browser, ".trace .tools .time")[0])


def test_a_cell_leads_to_the_failing_tests_through_it(opened: Callable[[str], Any], pages: dict[str, Path]) -> None:
    browser = opened("sounds")
    from selenium.webdriver import ActionChains

    (pair, *_) = page_data(pages["sounds"])["state_space"][0]["pairs"]
    place, (count, *numbers) = max(pair["through"].items(), key=lambda item: item[1][0] if item[1][0] < 13 else 0)
    x, y = (int(part) for part in place.split(","))
    for chart in (".trace .chart", "#state-space-chart"):
        over = eventually(lambda: browser.find_elements("css selector", f"{chart} .u-over"))[0]  # noqa: B023
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", over)
        at = browser.execute_script(
            """
            const chart = arguments[0].closest(".chart").cells;
            return [chart.valToPos(arguments[1] + 0.5, "x"), chart.valToPos(arguments[2] + 0.5, "y")];
            """,
            over, x, y,
        )  # fmt: skip
        box = over.size
        offset = round(at[0] - box["width"] / 2), round(at[1] - box["height"] / 2)
        ActionChains(browser).move_to_element_with_offset(over, *offset).click().perform()
        shown = eventually(
            lambda: f"cell=0%2F1-2%2F{x}%2C{y}" in browser.current_url and texts(browser, "tr.row td:first-child")
        )
        assert set(map(int, shown)) == set(numbers)
        assert count == len(numbers)
        find(browser, "#failures-tools button").click()
        eventually(lambda: "cell=" not in browser.current_url)
        browser.execute_script("table.open.add(idOf(table.data.failures[0])); table.draw()")


def test_findings_come_first_and_lead_to_their_tests(opened: Callable[[str], Any], pages: dict[str, Path]) -> None:
    browser, data = opened("sounds"), page_data(pages["sounds"])
    cards = browser.find_elements("css selector", "#findings article")
    assert len(cards) == min(6, len(data["findings"]))
    for card, finding in zip(cards, data["findings"], strict=False):
        assert finding["title"][0].upper() + finding["title"][1:] in card.text
        assert f"{len(finding['tests'])} failing test" in card.text
        assert f"Worst: test {finding['tests'][0]}" in card.text
    find(browser, "#findings article button").click()
    eventually(lambda: browser.execute_script("return document.querySelector('#findings audio').currentTime > 0.1"))
    finding = max(data["findings"][: len(cards)], key=lambda each: len(each["tests"]))
    find(browser, f"#finding-{finding['id']} > a:last-child").click()
    eventually(lambda: set(map(int, texts(browser, "tr.row td:first-child"))) <= set(finding["tests"]))
    assert f"finding={finding['id']}" in browser.current_url


def test_the_address_has_the_filters_and_the_open_test(opened: Callable[[str], Any], pages: dict[str, Path]) -> None:
    browser = opened("sounds")
    find(browser, "#failures-tools input").send_keys("say-2")
    eventually(lambda: "#failures&q=say-2" in browser.current_url)
    before = texts(browser, "tr.row td:first-child")
    find(browser, "tr.row .more button").click()
    eventually(lambda: f"#test-{before[0]}&q=say-2" in browser.current_url)
    address = browser.current_url
    browser.get("about:blank")
    browser.get(address)
    assert texts(browser, "tr.row td:first-child") == before
    assert browser.execute_script("return document.querySelector('.detail').id") == f"test-{before[0]}-details"
    top = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
    eventually(lambda: 0 <= browser.execute_script(top, f"#test-{before[0]}") < 200)
    finding = page_data(pages["sounds"])["findings"][-1]["id"]
    browser.get("about:blank")
    browser.get(f"{pages['sounds'].as_uri()}#finding-{finding}")
    eventually(lambda: 0 <= browser.execute_script(top, f"#finding-{finding}") < 700)
    last = page_data(pages["sounds"])["failures"][-1]["number"]
    browser.execute_script("location.hash = arguments[0]", f"#test-{last}")  # as someone follows a link
    eventually(lambda: browser.find_elements("css selector", f"#test-{last}-details"))
    assert find(browser, "#failures-tools input").get_attribute("value") == ""


@pytest.mark.parametrize("name", ["sounds", "texts"])
def test_a_table_of_the_tests_is_saved(opened: Callable[[str], Any], pages: dict[str, Path], name: str) -> None:
    browser = opened(name)
    browser.execute_script(
        "URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return '#'; }"
    )
    find(browser, "#failures-pager button:last-child").click()
    saved = eventually(lambda: browser.execute_script("return window.saved"))
    rows = list(csv.DictReader(io.StringIO(saved, newline="")))
    shown = {test["number"]: test for test in page_data(pages[name])["failures"] if not test.get("again")}
    assert {int(row["test"]) for row in rows} == set(shown)
    for row in rows:
        test = shown[int(row["test"])]
        assert row["got"] == test["output"]
        assert row["recipe"] == " -> ".join(test["recipe"])
    browser.execute_script("table.data.failures[0].output = '=1+1'; saveCsv(table.data)")
    eventually(lambda: '"\'=1+1"' in browser.execute_script("return window.saved"))


def test_markup_in_a_transcript_is_text(opened: Callable[[str], Any]) -> None:
    browser = opened("sounds")
    eventually(lambda: browser.find_elements("css selector", ".trace canvas"))
    seek = "const at = document.querySelector('.trace [type=range]'); at.value = at.max;"
    browser.execute_script(f"{seek} at.dispatchEvent(new Event('input'))")  # where everything is written
    for place in ("tr.row .what", "#findings article", ".detail .answer", ".trace .answer", "#mistakes td"):
        assert any(reports.NASTY in text for text in texts(browser, place)), place
    assert browser.execute_script("return document.querySelectorAll('main script').length") == 0


def test_sorting_filtering_and_turning_pages(opened: Callable[[str], Any]) -> None:
    browser = opened("sounds")
    heads = {head.text.strip(" ↓↑"): head for head in browser.find_elements("css selector", ".sortable button")}
    heads["Run"].click()
    numbers = [int(text) for text in texts(browser, "tr.row td:first-child")]
    assert numbers == sorted(numbers)
    assert len(numbers) == 25
    assert find(browser, ".sortable th:first-child").get_attribute("aria-sort") == "ascending"
    find(browser, "#failures-pager button:nth-of-type(2)").click()
    more = [int(text) for text in texts(browser, "tr.row td:first-child")]
    assert min(more) > max(numbers)
    search = find(browser, "#failures-tools input")
    search.send_keys("say-2 changespeed")
    result = eventually(
        lambda: (rows := texts(browser, "tr.row .seed")) and all("say-2" in row for row in rows) and rows
    )
    assert all("ChangeSpeed" in row for row in result)
    search.send_keys(" nothing like this")
    eventually(lambda: texts(browser, "#failures-pager span") == ["no matches"])


def test_by_keyboard_alone(opened: Callable[[str], Any]) -> None:
    browser = opened("texts")
    from selenium.webdriver.common.keys import Keys

    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to the failing tests"
    button = find(browser, "tr.row .more button")
    assert button.get_attribute("aria-expanded") == "true"  # the worst is open from the start
    browser.execute_script("arguments[0].focus()", button)
    button.send_keys(Keys.ENTER)
    eventually(lambda: not browser.find_elements("css selector", ".detail"))
    button.send_keys(Keys.SPACE)
    eventually(lambda: browser.find_elements("css selector", ".detail"))


def test_hovering_tells_of_cells_and_of_coverage(opened: Callable[[str], Any]) -> None:
    browser = opened("sounds")
    from selenium.webdriver import ActionChains

    for section, expected in (("coverage", "BSCov"), ("state-space", "cell (")):
        over = find(browser, f"#{section}-chart .u-over")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", over)
        width, height = over.size["width"], over.size["height"]
        for x in range(-width // 2 + 10, width // 2 - 10, 40):
            ActionChains(browser).move_to_element_with_offset(over, x, height // 20).perform()
            if expected in find(browser, f"#{section}-chart .tip").text:
                break
        assert expected in find(browser, f"#{section}-chart .tip").text
    before = browser.execute_script("return document.querySelector('#state-space-chart canvas').toDataURL()")
    start = ActionChains(browser).move_to_element_with_offset(over, -width // 4, -height // 4).click_and_hold()
    start.move_by_offset(width // 3, height // 3).release().perform()
    zoomed = "return document.querySelector('#state-space-chart canvas').toDataURL() !== arguments[0]"
    eventually(lambda: browser.execute_script(zoomed, before))
    ActionChains(browser).double_click(over).perform()
    eventually(lambda: not browser.execute_script(zoomed, before))


def test_the_theme_is_switched_and_follows_the_system(opened: Callable[[str], Any]) -> None:
    browser = opened("sounds")
    paper = "return getComputedStyle(document.body).backgroundColor"
    for scheme, expected in (("dark", "rgb(18, 24, 31)"), ("light", "rgb(255, 255, 255)")):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        assert browser.execute_script(paper) == expected
    find(browser, "#theme").click()
    assert browser.execute_script(paper) == "rgb(18, 24, 31)"
    find(browser, "#theme").click()
    assert browser.execute_script(paper) == "rgb(255, 255, 255)"


def test_texts_are_compared_and_series_drawn(opened: Callable[[str], Any]) -> None:
    browser = opened("texts")
    assert texts(browser, ".detail ins")
    browser = opened("series")
    assert eventually(lambda: browser.find_elements("css selector", ".detail .uplot canvas"))


@pytest.mark.parametrize("name", ["sounds", "texts", "series"])
def test_the_code_to_copy_runs(opened: Callable[[str], Any], capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Also that of campaigns begun in Python, of whose system the folder does not know where it is."""
    browser = opened(name)
    code = find(browser, ".detail .command:last-of-type code").text
    assert len(browser.find_elements("css selector", ".detail .command")) == 1, "a command that cannot run"
    find(browser, ".detail .copy").click()
    eventually(lambda: find(browser, ".detail .copy").text == "Copied")
    space: dict[str, Any] = {}
    exec(code, space)
    assert str(space["test"]) in capsys.readouterr().out
    assert digest_of(space["value"]) == space["test"].digest or name == "sounds"  # which are stored in 16 bits


def test_campaigns_side_by_side(opened: Callable[[str], Any]) -> None:
    browser = opened("compared")
    assert "Compared with sounds, unguided is " in find(browser, ".verdict").text
    assert texts(browser, "h1") == ["unguided compared with sounds"]
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    )
    right = (
        "return Math.max(...[...document.querySelectorAll('.compared *')].map(e => e.getBoundingClientRect().right))"
    )
    eventually(lambda: browser.execute_script(right) <= 390)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    from selenium.webdriver.support.ui import Select

    Select(find(browser, "#failures-tools select[aria-label='Found in']")).select_by_value("gone")
    assert {text.split("\n")[0] for text in texts(browser, "tr.row td:nth-child(4)")} == {"sounds"}


def test_no_failing_tests(opened: Callable[[str], Any]) -> None:
    browser = opened("nothing")
    assert find(browser, "#failures-lead").text == "No failing tests."


def test_on_paper_nothing_is_lost(opened: Callable[[str], Any]) -> None:
    """The legend keeps its colours, the tables their shades, and what cannot be pressed on paper is gone."""
    browser = opened("sounds")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    adjust = "return [...document.querySelectorAll(arguments[0])].map(e => getComputedStyle(e).printColorAdjust)"
    for part in (".toggle i", ".key i", ".heat td", ".track"):
        assert set(browser.execute_script(adjust, part)) == {"exact"}, part
    shown = "return [...document.querySelectorAll(arguments[0])].filter(e => e.getClientRects().length).length"
    assert browser.execute_script(shown, ".toggle i") >= 5
    for part in (".top", ".pager", ".copy", ".sounds .tools", "#failures-tools"):
        assert browser.execute_script(shown, part) == 0, part
    paper = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert paper.count(b"/Type /Page\n") > 3
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_rate_leads_to_its_tests(opened: Callable[[str], Any], pages: dict[str, Path]) -> None:
    browser = opened("sounds")
    heat = page_data(pages["sounds"])["mistakes"][0]["heat_map"]
    worst = max(heat["rows"], key=lambda row: max(cell[0] for cell in row["cells"] if cell))
    written = [f"{cell[0]} of {cell[1]}" for cell in worst["cells"] if cell]
    assert all(any(count in cell for cell in texts(browser, ".heat td")) for count in written)
    colours = browser.execute_script(
        "return [...document.querySelectorAll('.heat td')]"
        ".map(e => [parseFloat(e.innerText), getComputedStyle(e).backgroundColor])"
    )
    rates, shades = zip(*colours, strict=True)
    least, most = shades[rates.index(min(rates))], shades[rates.index(max(rates))]
    assert min(rates) < max(rates)
    assert least != most
    browser.find_element("link text", worst["kind"]).click()
    eventually(lambda: f"change={worst['kind']}" in browser.current_url)
    # The address is there before the page follows it.
    eventually(lambda: all(worst["kind"] in recipe for recipe in texts(browser, "tr.row .steps") or [""]))


def test_a_page_that_grows(browser: Any, tmp_path: Path) -> None:
    """The campaign goes on while the page is open, and the page follows; what is not asked properly is not answered."""
    with serving(tmp_path / "x") as url:
        browser.get(url)
        assert "Running the seeds" in texts(browser, "h1")
        toy.campaign(tmp_path / "x", runs=1)
        eventually(lambda: texts(browser, "#failures"))
        assert not browser.find_elements("css selector", "#findings"), "there is nothing to show yet"
        toy.campaign(tmp_path / "x", runs=32)
        eventually(lambda: browser.find_elements("css selector", "#findings article"))
        tile = "return document.querySelector('.tiles li:nth-child(2) b').textContent"
        assert browser.execute_script(tile) == "32"
        thread = threading.Thread(target=lambda: toy.campaign(tmp_path / "x", runs=96))
        thread.start()
        eventually(lambda: browser.execute_script(tile) == "96", 30)
        thread.join()
        browser.get("about:blank")
        before = sorted(path.name for path in (tmp_path / "x").iterdir())
        host = url.split("/")[2]
        wrong = [
            urllib.request.Request(url, headers={"Host": "evil.example"}),
            urllib.request.Request(f"http://{host}/"),
            urllib.request.Request(f"http://{host}/wrong/"),
            urllib.request.Request(f"{url}campaign.db"),
            urllib.request.Request(f"{url}failed/../campaign.db"),
            urllib.request.Request(url, method="POST"),
        ]
        for request in wrong:
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(request)
            assert caught.value.code in (404, 501)
            caught.value.close()
        assert sorted(path.name for path in (tmp_path / "x").iterdir()) == before


def test_seeds_are_sorted_marked_and_saved(browser: Any, tmp_path: Path) -> None:
    seeds = [
        ListedSeed(f"take {n}, a<b", "passes", "yes", "yes", 0.0, None, distance, None, doubtful)
        for n, (distance, doubtful) in enumerate([(0.5, ()), (10.0, ()), (None, ("noisy",)), (2.0, ())])
    ]
    write_seeds(order(seeds), tmp_path / "seeds.html", read=str, sounds=0)
    browser.get((tmp_path / "seeds.html").as_uri())
    browser.execute_script(
        "URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return '#'; }"
    )
    names = "#seeds tbody td:first-child"
    assert texts(browser, names) == [seeds[n].name for n in (2, 1, 3, 0)]
    assert find(browser, "#count").text == "1 of 4 left out"
    heading = find(browser, f"#seeds th:nth-child({COLUMNS.index('distance') + 2}) button")  # after "listen"
    heading.click()
    assert texts(browser, names) == [seeds[n].name for n in (0, 3, 1, 2)], "by size, and what is not known last"
    find(browser, "#seeds tbody input").click()
    assert find(browser, "#count").text == "2 of 4 left out"
    find(browser, "#save").click()
    (tmp_path / "leave-out.txt").write_text(eventually(lambda: browser.execute_script("return window.saved")))
    assert set(read_choice(tmp_path / "leave-out.txt")) == {seeds[0].name, seeds[2].name}
