"""A question of one's own: an example, a file, the result in view at once, its address, and the same as code."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.web

SIZES = [(1280, 720), (360, 740)]
DOCUMENTS = [
    {"page_content": "Polonium was named by Marie Curie.", "metadata": {"source": "polonium.md"}},
    {"page_content": "Marie Curie was born in Warsaw.", "metadata": {"source": "curie.md"}},
]


@pytest.fixture(scope="module")
def served(serve: Any) -> Any:
    return serve("--model", "lexical")


def try_example(page: Page, name: str) -> None:
    page.get_by_role("link", name=name).click()
    page.get_by_role("button", name="Recover the chain").click()
    page.wait_for_url("**/try/*")


def in_view(page: Page, selector: str) -> bool:
    """Return whether the beginning of something is seen without scrolling."""
    return bool(
        page.locator(selector).first.evaluate(
            "one => { const box = one.getBoundingClientRect(); return box.top >= 0 && box.top + 24 <= innerHeight }"
        )
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("example", ["a short answer", "an answer in sentences", "a record of Ragas"])
def test_an_example_leads_to_a_result_that_is_in_view(
    visit: Any, served: Any, open_details: Any, size: tuple[int, int], example: str
) -> None:
    page: Page = visit(served, "/try", viewport={"width": size[0], "height": size[1]})
    try_example(page, example)
    assert page.evaluate("scrollY") == 0
    assert all(in_view(page, selector) for selector in ("h1.result", ".strip", ".given", "#chain-heading"))
    open_details(page)
    page.locator("ol.candidates a").nth(1).click()
    expect(page.locator("#chain-heading")).to_have_text("Candidate 2")
    assert all(in_view(page, selector) for selector in ("h1.result", ".strip", "#chain-heading"))
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_a_result_has_an_address_that_others_can_open(visit: Any, served: Any) -> None:
    page: Page = visit(served, "/try")
    try_example(page, "a short answer")
    shown = page.locator("main").inner_text()
    page.reload()
    assert page.locator("main").inner_text() == shown
    other: Page = visit(served, page.url.removeprefix(served.address))
    assert other.locator("main").inner_text() == shown
    page.get_by_role("link", name="Edit", exact=True).click()
    expect(page.get_by_label("Answer")).to_have_value("Warsaw")


def test_a_file_is_taken_as_if_it_were_pasted(visit: Any, served: Any, tmp_path: Path) -> None:
    file = tmp_path / "documents.json"
    file.write_text(json.dumps(DOCUMENTS))
    page: Page = visit(served, "/try")
    page.get_by_label("Question").fill("Where was the discoverer of polonium born?")
    page.get_by_label("Answer").fill("Warsaw")
    page.locator("input[type=file]").set_input_files(file)
    expect(page.locator(".from-file [role=status]")).to_have_text("documents.json is in the field above.")
    page.get_by_role("button", name="Recover the chain").click()
    names = page.locator("section[aria-labelledby=chain-heading] .passage h3 > bdi")
    expect(names).to_have_text(["polonium.md", "curie.md"])


def pasted(page: Page, served: Any) -> str:
    """Return what is in the clipboard, as somebody would see it who pastes it."""
    page.goto(f"{served.address}/try")
    page.get_by_label("Passages", exact=True).focus()
    page.keyboard.press("Control+v")
    return page.get_by_label("Passages", exact=True).input_value()


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_link_python_and_curl_are_copied_also_without_a_clipboard_for_scripts(
    visit: Any, served: Any, has_clipboard: bool
) -> None:
    page: Page = visit(served, "/try", permissions=["clipboard-read", "clipboard-write"])
    if not has_clipboard:  # as over plain HTTP on another machine
        page.context.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    try_example(page, "a short answer")
    address = page.url
    begins = {"Copy link": address, "Copy as Python": "from rechain import", "Copy as curl": "curl -s"}
    for name, begin in begins.items():
        page.goto(address)
        page.get_by_role("button", name=name).click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert pasted(page, served).startswith(begin)
