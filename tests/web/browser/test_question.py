"""A chain understood in three seconds: the strip, the sentences that matter, the graph, and two sources compared."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.web

WIDTHS = (360, 768, 1280, 2560)
STRIP = ["amlodipine", "1", "Ca(v)1.2", "2", "dihydropyridine", "3", "Ca(v)1.3"]
BOX = "one => { const box = one.getBoundingClientRect(); return [box.top, box.bottom, box.left, box.right]; }"


def read_strip(page: Page) -> list[str]:
    """The strip as eyes read it: what is there for screen readers alone is left out."""
    return page.locator(".strip").first.evaluate(
        "one => [...one.querySelectorAll('li')].map(li => [...li.querySelectorAll('bdi:not(.hidden), .count')]"
        ".map(part => part.textContent).join(' '))"
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_a_chain_of_long_abstracts_is_read_at_once(visit: Any, hard: Any, width: int) -> None:
    page: Page = visit(hard, "/question?id=long", viewport={"width": width, "height": 740})
    assert read_strip(page) == STRIP
    _, bottom, left, right = page.locator(".strip").evaluate(BOX)
    assert bottom < 740 and left >= 0 and right <= width, "all of it is in sight"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    expect(page).to_have_title(re.compile("^interacts_with amlodipine"))
    shown = page.locator("section[aria-labelledby=chain-heading] .passage").first.locator(".excerpt")
    expect(shown).to_have_text("The rise was unaffected by the Ca(v)1.2 antagonist amlodipine.")
    assert "gene:" not in page.locator("main").inner_text() and "drug:" not in page.locator("main").inner_text()


def test_the_full_text_is_there_on_demand_without_scripts(visit: Any, hard: Any) -> None:
    page: Page = visit(hard, "/question?id=long", java_script_enabled=False)
    passage = page.locator("#passage-2")
    expect(passage.locator("details .text")).to_be_hidden()
    passage.get_by_text("Full text").click()
    expect(passage.locator("details .text")).to_contain_text("Nothing of note was seen")
    page.locator(".strip a.stop").nth(2).click()
    assert page.url.endswith("#passage-3")


def test_the_graph_shows_chain_gold_and_candidates(visit: Any, hard: Any, open_details: Any) -> None:
    page: Page = visit(hard, "/question?id=long")
    expect(page.locator(".graph")).to_be_hidden()
    open_details(page)
    graph = page.locator(".graph")
    expect(graph.locator(".line.chain")).to_have_count(2)
    expect(graph.locator(".line.gold")).to_have_count(2)
    other = graph.locator("a.node:not(.on-chain)")
    expect(other).to_have_count(1)
    expect(graph.locator(".line.lit")).to_have_count(0)
    other.hover()
    expect(graph.locator(".line.lit")).to_have_count(2)
    page.locator("ol.candidates > li").nth(1).locator("a").hover()
    expect(graph.locator(".line.lit")).to_have_count(2)
    other.click()
    expect(page.locator("#chain-heading")).to_have_text("Candidate 2")
    expect(page.locator(".graph .node.on-chain").nth(2)).to_contain_text("Expression and binding")


def test_the_graph_is_used_by_keyboard(visit: Any, hard: Any, keyboard: Any) -> None:
    page: Page = visit(hard, "/question?id=long")
    keyboard.tab_to(page, "details.more > summary")
    page.keyboard.press("Enter")
    keyboard.tab_to(page, ".graph a.node:not(.on-chain)")
    expect(page.locator(".graph .line.lit")).to_have_count(2)
    page.keyboard.press("Enter")
    expect(page.locator("#chain-heading")).to_have_text("Candidate 2")
    keyboard.tab_to(page, ".graph-section summary")
    page.keyboard.press("Enter")
    expect(page.locator(".graph-section details")).to_contain_text("number 1 on the chain; gold; mentions the question")


@pytest.mark.parametrize("width", WIDTHS)
def test_lines_end_at_the_passages_that_they_link(visit: Any, hard: Any, open_details: Any, width: int) -> None:
    page: Page = visit(hard, "/question?id=long", viewport={"width": width, "height": 740})
    open_details(page)
    first, second, third = (page.locator(".graph .node.on-chain").nth(n).evaluate(BOX) for n in range(3))
    for left, right, line in ((first, second, 0), (second, third, 1)):
        top, bottom, start, end = page.locator(".graph .line.chain").nth(line).locator("path, line").evaluate(BOX)
        assert abs(start - left[3]) < 3 and abs(end - right[2]) < 3
        assert left[0] < top <= bottom < left[1], "at half its height"


def test_one_compares_question_by_question_and_comes_back(visit: Any, hard: Any) -> None:
    page: Page = visit(hard, "/compare?show=same")
    page.locator(".questions a").first.click()
    assert read_strip(page) == STRIP
    expect(page.locator(".strips dt")).to_have_count(3)
    expect(page.locator(".strips .strip").last).to_contain_text("4")
    page.get_by_role("link", name="All compared questions").click()
    expect(page.get_by_label("Show")).to_have_value("same")
