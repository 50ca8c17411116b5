"""The page of an audit in a real browser: filtered by its script, readable without, and in need of nothing else."""

from typing import Any, Literal

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.web


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_renders_and_filters(open_report: Any, scheme: Literal["light", "dark"]) -> None:
    bad: list[str] = []
    page = open_report(bad, color_scheme=scheme, viewport={"width": 360, "height": 740})
    records = page.locator("article.record")
    expect(records).to_have_count(4)
    assert records.evaluate_all("all => all.map(one => one.dataset.verdict)") == [
        "unsupported",
        "partly",
        "supported",
        "no_answer",
    ]
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 360
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    assert bad == []
    page.locator("select[name=verdict]").select_option("partly")
    expect(records.locator("visible=true")).to_have_count(1)
    page.locator("select[name=verdict]").select_option("")
    page.locator("select[name=tag]").select_option("tag 0")
    expect(page.get_by_text("2 of 4 shown")).to_be_visible()
    page.get_by_role("searchbox").fill("ZURICH")
    expect(page.get_by_text("2 of 4 shown")).to_be_visible()
    assert bad == []


def test_the_page_can_be_read_without_script(open_report: Any) -> None:
    page = open_report([], java_script_enabled=False)
    assert page.locator("article.record").count() == 4
    assert not page.locator("#filter").is_visible()
