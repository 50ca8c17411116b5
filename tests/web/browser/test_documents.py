"""From a question, or from words, to the place in a document, without a mouse."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.web


def sees_passage(page: Page, text: str) -> None:
    """Check that the highlighted passage is on the screen, wherever it stands in the document."""
    mark = page.locator("mark#passage")
    expect(mark).to_contain_text(text)
    expect(mark).to_be_in_viewport()


def test_documents_are_searched_and_read_by_keyboard(visit: Any, indexed: Any, keyboard: Any) -> None:
    page = visit(indexed)
    keyboard.tab_to(page, "input[name=text]")
    page.keyboard.type("zorilla clock")
    keyboard.tab_to(page, "select[name=scope]")
    page.keyboard.type("doc")
    expect(page.locator("select[name=scope]")).to_have_value("documents")
    keyboard.tab_to(page, ".filter button")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Documents")
    expect(page.get_by_role("status")).to_contain_text("passage")
    expect(page.locator("mark.match").first).to_have_text("Zorilla")
    keyboard.tab_to(page, ".hit a")
    page.keyboard.press("Enter")
    sees_passage(page, "sold by Kasimir Underbrook")
    expect(page.get_by_text("part ").first).to_be_visible()
    page.get_by_role("navigation", name="Parts below").get_by_role("link", name="Before").click()
    expect(page.locator("mark#passage")).to_have_count(0)
    page.get_by_role("link", name="To the passage").click()
    sees_passage(page, "sold by Kasimir Underbrook")


def test_the_passages_of_a_chain_lead_to_their_documents(visit: Any, indexed: Any) -> None:
    page = visit(indexed, "/question?id=bare")
    page.locator("section[aria-labelledby=chain-heading] .place a").first.click()
    sees_passage(page, "Parental leave is approved by the Kinship Bureau.")
