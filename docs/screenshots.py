"""Take the pictures of `rechain serve` that README and the guide show, on the examples that come with the package.

CHROMIUM=/usr/bin/chromium python docs/screenshots.py
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

_RECHAIN = [sys.executable, "-c", "from rechain.cli.main import main; main()"]
_PICTURES = Path(__file__).parent / "screenshots"
_WIDE, _PHONE = (1280, 900), (390, 844)
_QUESTION = "/question?id=d01"
_LONGEST_WAIT_S = 120
_COLOURS = 256
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


def main() -> None:
    """Write docs/screenshots/*.png."""
    _PICTURES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, _served(Path(folder)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=_ARGUMENTS)
        _wait_for_chains(browser, address)
        _take(_opened(browser, address + "/"), "explore")
        _take(_opened(browser, address + _QUESTION), "question")
        _take(_opened(browser, address + "/compare?show=all"), "compare")
        _take(_labelling(_opened(browser, address + "/label")), "label")
        _take(_opened(browser, address + _QUESTION, _PHONE, "dark"), "phone-dark")
        browser.close()


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve the examples with two models, and yield the address."""
    options = ["--model", "default", "--model", "lexical", "--port", "0", "--labels", str(folder / "labels.sqlite")]
    with subprocess.Popen([*_RECHAIN, "serve", *options], stderr=subprocess.PIPE, text=True) as server:
        try:
            yield _address(server)
        finally:
            server.terminate()


def _address(server: "subprocess.Popen[str]") -> str:
    for line in server.stderr or ():
        if found := re.search(r"Serving at (\S+)/ until", line):
            return found[1]
    raise SystemExit("rechain serve did not start.")


def _chromium() -> str | None:
    return os.environ.get("CHROMIUM") or shutil.which("chromium")


def _opened(
    browser: Browser, address: str, size: tuple[int, int] = _WIDE, scheme: Literal["light", "dark"] = "light"
) -> Page:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page.goto(address)
    return page


def _wait_for_chains(browser: Browser, address: str) -> None:
    """Wait until both models have looked at all questions."""
    page, start = _opened(browser, address + "/compare?show=all"), monotonic()
    while page.get_by_text("So far").count():
        if monotonic() - start > _LONGEST_WAIT_S:
            raise SystemExit("the chains were not recovered in time.")
        sleep(0.2)
        page.reload()
    page.close()


def _labelling(page: Page) -> Page:
    """Label the first pairs of a question, so that the desk shows what that looks like."""
    page.get_by_label("Your name").fill("Ada")
    page.get_by_role("button", name="Start labelling").click()
    page.locator(".unit.current").wait_for()
    for key in "yn":
        page.keyboard.press(key)
    page.get_by_text("2 of").wait_for()
    page.locator(".unit.saving").first.wait_for(state="detached")
    return page


def _take(page: Page, name: str) -> None:
    with Image.open(BytesIO(page.screenshot())) as picture:
        few = picture.convert("RGB").quantize(_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(_PICTURES / f"{name}.png", optimize=True)
    page.context.close()


if __name__ == "__main__":
    main()
