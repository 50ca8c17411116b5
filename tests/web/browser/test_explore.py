"""Explore in a real browser: the dashboard that follows the filter, and the keys of all pages."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.web


@pytest.fixture(scope="module")
def served(serve: Any, demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The examples with two sources: one without confidence, one with it."""
    folder = tmp_path_factory.mktemp("sources")
    lexical = serve("--model", "lexical")
    questions = [json.loads(line) for line in demo.read_text().splitlines()]
    rows = [lexical.get(f"/questions/{question['id']}")["recovered"] for question in questions]
    (folder / "plain.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for number, row in enumerate(rows):
        row["verdict"] = "supported" if number % 2 else "unsupported"
        for chain in row["chains"]:
            chain["confidence"] = number % 10 / 10
    (folder / "sure.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    lexical.stop()
    return serve("--chains", folder / "plain.jsonl", "--chains", folder / "sure.jsonl")


def entries(page: Page) -> int:
    return page.locator(".questions .entry").count()


def facet(page: Page, title: str) -> Any:
    return page.locator("table.facet").filter(has=page.locator("caption", has_text=title))


def test_every_bar_is_a_filter_that_can_be_taken_off(visit: Any, served: Any) -> None:
    page: Page = visit(served, "/?source=2")
    key = page.locator("#figures .key").first
    assert key.evaluate("one => getComputedStyle(one, '::before').content") == "none"  # a line is the key of the graph
    everything = entries(page)
    row = facet(page, "Verdict").get_by_role("row").filter(has_text="unsupported")
    count = int(row.locator("td.number").first.inner_text())
    row.get_by_role("link").click()
    expect(page.locator(".questions .entry")).to_have_count(count)
    assert 0 < count < everything
    expect(page).to_have_title(f"unsupported: {count} questions · rechain")
    assert facet(page, "Verdict").locator("tbody tr").count() > 1  # others can be added
    facet(page, "Confidence").locator("tbody a").first.click()
    expect(page.locator(".choices > li")).to_have_count(3)
    page.locator(".choices").get_by_role("link", name="confidence 0.0 to 0.1").click()
    facet(page, "Verdict").get_by_role("link", name="unsupported").click()  # a bar that is on takes its filter off
    expect(page.locator(".questions .entry")).to_have_count(everything)


def test_the_list_is_ordered_by_its_columns(visit: Any, served: Any) -> None:
    page: Page = visit(served, "/?source=2")
    order = page.locator(".questions thead")
    for name, is_up in (("Question", True), ("Question", False)):
        order.get_by_role("link", name=name).click()
        texts = [text.casefold() for text in page.locator(".questions .entry").all_inner_texts()]
        assert texts == sorted(texts, reverse=not is_up)
    order.get_by_role("link", name="Confidence").click()
    shown = [float(value.rstrip(" %")) for value in page.locator(".questions .confidence").all_inner_texts()]
    assert shown == sorted(shown)
    page.locator(".questions .entry").first.click()
    page.locator("main a[rel=next]").click()  # the next question is the next of this list
    page.get_by_role("link", name="All questions").click()
    expect(page.locator(".questions [aria-sort]")).to_contain_text("Confidence")


FOCUSED = "document.activeElement.textContent"


def test_keys_search_and_move_through_a_list(visit: Any, served: Any) -> None:
    page: Page = visit(served)
    links = page.locator(".questions .entry").all_inner_texts()
    page.keyboard.press("j")
    assert page.evaluate(FOCUSED) == links[0]
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate(FOCUSED) == links[1]
    page.keyboard.press("Control+k")  # the browser's own
    page.keyboard.press("Alt+j")
    assert page.evaluate(FOCUSED) == links[1]
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()
    page.keyboard.type("jk/?polonium")  # in a field they are letters
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("jk/?polonium")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("searchbox", name="Search").fill("polonium")
    page.keyboard.press("Enter")
    expect(page.locator(".questions .entry")).to_have_count(1)
    page.wait_for_load_state()  # scripts, and so keys, come after the list
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("olonium")


def test_keys_go_from_question_to_question_and_back_to_the_search(visit: Any, served: Any) -> None:
    page: Page = visit(served, "/question?id=d01")
    with page.expect_navigation():
        page.keyboard.press("j")
    assert "id=d02" in page.url
    with page.expect_navigation():
        page.keyboard.press("k")
    assert "id=d01" in page.url
    page.keyboard.press("k")  # there is none before the first
    assert "id=d01" in page.url
    with page.expect_navigation():
        page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()


@pytest.mark.parametrize("path", ["/", "/question?id=d01", "/try", "/compare", "/label", "/no/such/page"])
def test_a_question_mark_helps_on_every_page(visit: Any, served: Any, path: str) -> None:
    page: Page = visit(served, path)
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("next and previous")
    page.keyboard.press("j")  # nothing moves behind it
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Keys").click()
    expect(dialog).to_be_visible()


def test_keys_can_be_turned_off(visit: Any, served: Any) -> None:
    page: Page = visit(served)
    page.get_by_role("button", name="Keys").click()
    page.get_by_role("checkbox").uncheck()
    page.get_by_role("button", name="Close").click()
    page.reload()
    page.keyboard.press("/")
    page.keyboard.press("?")
    expect(page.get_by_role("searchbox", name="Search")).not_to_be_focused()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Keys").click()
    page.get_by_role("checkbox").check()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()
