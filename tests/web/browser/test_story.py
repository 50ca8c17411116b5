"""From the first look at a question to gold chains made of labels, all in the browser."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.web

RIGHT = (["p4"], ["", "antonin dvorak"]), (["p6"], ["Prague", "antonin dvorak"])
"""the pairs of the first example that are right"""


CHAIN = "section[aria-labelledby=chain-heading]"


def searched(page: Page, text: str) -> list[str]:
    """Search the list of questions, and return the ids of those that are left."""
    with page.expect_navigation():
        page.get_by_role("link", name="Explore", exact=True).click()
    page.locator("input[name=text]").fill(text)
    with page.expect_navigation():
        page.get_by_role("button", name="Search", exact=True).click()
    return ids(page)


def by_confidence(page: Page) -> dict[str, list[str]]:
    """Click every bar of the confidence, and return the ids of the questions of each."""
    with page.expect_navigation():
        page.get_by_role("link", name="Explore", exact=True).click()
    everything, found = page.url, dict[str, list[str]]()
    bars = page.locator("table.facet").filter(has=page.locator("caption", has_text="Confidence")).locator("tbody a")
    for name in bars.all_inner_texts():
        with page.expect_navigation():
            bars.filter(has_text=name).click()
        found[name] = ids(page)
        page.goto(everything)
    return found


def judged(page: Page, judgement: str) -> list[str]:
    """Click the bar of what is right or wrong, and return the ids of those questions; none where there is no bar."""
    with page.expect_navigation():
        page.get_by_role("link", name="Explore", exact=True).click()
    bar = page.locator("table.facet").first.get_by_role("link", name=judgement)
    if not bar.count():
        return []
    with page.expect_navigation():
        bar.click()
    return ids(page)


def ids(page: Page) -> list[str]:
    """Return the ids of the questions that are listed."""
    links = [str(row.get_attribute("href")) for row in page.locator(".questions .entry").all()]
    return [parse_qs(link.partition("?")[2])["id"][0] for link in links]


def explore(page: Page, listed: list[dict[str, Any]]) -> None:
    everything = {row["id"] for row in listed}
    assert searched(page, "symphony new world") == ["d01"]
    tenths: dict[str, set[str]] = {}
    for row in listed:
        tenth = min(int(row["confidence"] * 10), 9)
        tenths.setdefault(f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f}", set()).add(row["id"])
    assert len(tenths) > 1
    assert {name: set(found) for name, found in by_confidence(page).items() if found} == tenths
    wrong = {row["id"] for row in listed if row["judgement"] == "wrong"}
    assert set(judged(page, "wrong")) == wrong
    assert set(judged(page, "right")) == everything - wrong
    assert searched(page, "no such words anywhere") == []


def see_the_link(page: Page) -> None:
    chain = page.locator(f"{CHAIN} .passage")
    expect(chain).to_have_count(2)
    for passage in chain.all():
        expect(passage.locator("mark.link-1").first).to_have_text("Antonín Dvořák")
    expect(chain.nth(1).locator("mark.answer")).to_have_text("Prague")
    expect(chain.nth(0).locator("mark.question").first).to_be_visible()
    colours = [page.locator(f"mark.{role}").first.evaluate(_LOOK) for role in ("link-1", "answer", "question")]
    assert len(set(colours)) == 3


_LOOK = "mark => { const s = getComputedStyle(mark); return [s.backgroundColor, s.boxShadow, s.textDecoration].join() }"


def see_another_candidate(page: Page, open_details: Callable[[Page], None]) -> None:
    expect(page.locator("ol.candidates").first).to_be_hidden()
    open_details(page)
    second = page.locator("ol.candidates > li").nth(1)
    titles = second.locator("a > bdi, a > .hidden > bdi").all_inner_texts()
    second.get_by_role("link").click()
    expect(page.locator("#chain-heading")).to_have_text("Candidate 2")
    assert [one.rstrip() for one in page.locator(f"{CHAIN} .passage h3 > bdi").all_inner_texts()] == titles
    expect(page.locator("ol.candidates > li[aria-current]")).to_have_count(1)
    expect(page.locator("ol.candidates > li").nth(1)).to_have_attribute("aria-current", "true")


def paste_a_question(page: Page) -> None:
    page.get_by_role("link", name="Try", exact=True).click()
    page.get_by_label("Question").fill("Where was the discoverer of polonium born?")
    page.get_by_label("Answer").fill("Warsaw")
    passages = "# Polonium\nPolonium was named by Marie Curie, who found it in 1898.\n\n"
    page.get_by_label("Passages", exact=True).fill(f"{passages}# Marie Curie\nMarie Curie was born in Warsaw.")
    page.get_by_role("button", name="Recover the chain").click()
    expect(page.locator(f"{CHAIN} .passage h3 > bdi")).to_have_text(["Polonium", "Marie Curie"])
    expect(page.locator(f"{CHAIN} .join mark.link-1")).to_have_text("Marie Curie")


def labels_of(served: Any) -> list[tuple[str, str]]:
    return [(json.dumps(label["unit"]), label["value"]) for label in served.get("/labels?question=d01")]


def test_from_exploring_the_examples_to_gold_by_labels_that_outlive_a_kill(
    serve: Any, visit: Any, keyboard: Any, command: Callable[..., str], demo: Path, open_details: Any, tmp_path: Path
) -> None:
    labels = tmp_path / "labels.sqlite"
    served = serve("--labels", labels)
    served.wait_for_chains()
    page: Page = visit(served)
    explore(page, served.get("/questions")["questions"])

    searched(page, "symphony new world")
    page.locator(".questions .entry").click()
    see_the_link(page)
    see_another_candidate(page, open_details)
    shared: Page = visit(served, page.url.removeprefix(served.address))
    assert shared.locator("main").inner_text() == page.locator("main").inner_text()
    paste_a_question(page)

    page.goto(f"{served.address}/label")
    keyboard.start(page, "Ada")
    listed = served.get("/questions")["questions"]
    unsure = min(listed, key=lambda row: row["confidence"])  # the one of which the model is least sure comes first
    expect(page).to_have_url(f"{served.address}/label/question?id={unsure['id']}")
    page.goto(f"{served.address}/label/question?id=d01")
    keyboard.ready(page)
    keyboard.label(page, "46s")
    given = labels_of(served)
    assert [value for _, value in given] == ["supported"]

    served.kill()
    served = serve("--labels", labels, "--model", "lexical", port=served.port)
    assert labels_of(served) == given
    page.goto(f"{served.address}/label/question?id=d01")
    keyboard.ready(page)
    expect(page.locator(".pick[aria-pressed=true]")).to_have_count(2)
    with page.expect_navigation():
        page.keyboard.press("z")
    assert labels_of(served) == []
    keyboard.ready(page, "d01")
    keyboard.label(page, "46s")
    export(page, served, command, labels, demo, tmp_path)


def export(page: Page, served: Any, command: Callable[..., str], labels: Path, demo: Path, folder: Path) -> None:
    page.goto(f"{served.address}/label")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Export gold").click()
    downloaded = Path(downloading.value.path()).read_text()
    written, chains = folder / "gold.jsonl", folder / "chains.jsonl"
    command("labels", "export", labels, demo, "--out", written)
    assert downloaded == written.read_text()
    chain = {"shape": "chain", "passages": ["p4", "p6"]}
    assert json.loads(downloaded) == {"id": "d01", "chains": [chain], "verdict": "supported"}
    command("recover", demo, "--model", "lexical", "--out", chains)
    figures = json.loads(command("evaluate", chains, demo, "--gold", written, "--json"))
    accuracy = figures["figures"]["ordered accuracy"]
    assert (accuracy["value"], accuracy["questions"]) == (1.0, 1)
