"""Every kind of page: for screen readers, keyboards, phones, in light and dark, with nothing from elsewhere."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.web

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], "resultTypes": ["violations"]}
PAGES = {
    "list": "/",
    "list of the second source": "/?source=2&text=the",
    "empty list": "/?text=zzzz",
    "list with hits and filters": "/?text=the&scope=passages&verdict=supported&order=most+confident",
    "question": "/question?id=d07",
    "candidate": "/question?id=d01&chain=3&source=2",
    "form": "/try",
    "example": "/try?example=record",
    "comparison": "/compare?show=all",
    "compared question": "/compare/question?id=d04",
    "overview": "/label",
    "desk": "/label/question?id=d01",
    "desk without pairs": "/label/question?id=d07&mode=pairs",
    "desk with the model's suggestion": "/label/question?id=d02&suggestion=shown",
    "questions by their labels": "/label/questions?state=in+doubt",
    "annotator": "/label/annotator?annotator=Ben",
    "disagreements": "/label/disagreements",
    "nothing there": "/no/such/page",
}
"""kinds of pages, and where there is one of each"""


@pytest.fixture(scope="module")
def served(serve: Any, demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The examples with two sources, one of which tells a confidence and its steps, and two annotators who differ."""
    lexical = serve("--model", "lexical")
    chains = tmp_path_factory.mktemp("chains") / "chains.jsonl"
    rows = [lexical.get(f"/questions/{json.loads(line)['id']}")["recovered"] for line in demo.read_text().splitlines()]
    for number, chain in enumerate(chain for row in rows for chain in row["chains"]):
        step = {"player": "ranker", "passage": chain["passages"][0], "probability": 0.25}
        chain.update(confidence=number % 100 / 100, why={**chain["why"], "steps": [step]})
    for number, row in enumerate(rows):
        verdict = ("supported", "partly", "unsupported", "no_answer")[number % 4]
        held = {"match": "words", "passage": row["chains"][0]["passages"][-1], "span": [0, 9]}
        claim = {"text": "A claim.", "verdict": verdict, "passage": held["passage"], "span": [0, 30]}
        row.update(
            verdict=verdict, verdict_probability=0.7, claims=[claim, {"text": "More.", "verdict": "unsupported"}]
        )
        row["chains"][0].update(answer=held, shape="parallel" if number % 2 else "chain")
    chains.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    told = serve("--chains", chains, "--model", "bm25", "--overlap", "1")
    give_labels(told)
    return told


def give_labels(served: Any) -> None:
    for name, values in (("Ada", "supported"), ("Ben", "unsure")):
        given = [
            {"question": one, "annotator": name, "value": values, "evidence": [{"passages": ["p4", "p6"]}]}
            for one in ("d01", "d02")
        ]
        assert served.post("/labels", given) == 2


Open = Callable[..., Page]


@pytest.fixture
def open_as_ada(visit: Any, served: Any) -> Open:
    """Open pages in a window in which somebody has said who she is."""
    windows: dict[str, Page] = {}

    def open_page(path: str, **options: Any) -> Page:
        key = repr(options)
        if key not in windows:
            windows[key] = visit(served, "/label", **options)
            windows[key].context.add_cookies([{"name": "rechain_annotator", "value": "Ada", "url": served.address}])
        windows[key].goto(served.address + path)
        return windows[key]

    return open_page


def problems(page: Page) -> list[str]:
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{page.url}: {one['id']}: {node['html'][:200]} {node['any'] and node['any'][0]['message']}"
        for one in found
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_kind_of_page(open_as_ada: Open, scheme: Literal["light", "dark"]) -> None:
    assert [bad for path in PAGES.values() for bad in problems(open_as_ada(path, color_scheme=scheme))] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_after_something_was_done(
    open_as_ada: Open, served: Any, keyboard: Any, open_details: Any, scheme: Literal["light", "dark"]
) -> None:
    page = open_as_ada("/try", color_scheme=scheme)
    page.get_by_label("Question").fill("Where was the discoverer of polonium born?")
    with page.expect_navigation():
        page.get_by_role("button", name="Recover the chain").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert problems(page) == []
    for width in (360, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{served.address}/try?example=sentences")
        with page.expect_navigation():
            page.get_by_role("button", name="Recover the chain").click()
        assert problems(page) == []
    page.goto(f"{served.address}/question?id=d01")
    open_details(page)
    assert problems(page) == []
    page.get_by_text("other passages").click()
    assert problems(page) == []
    page = open_as_ada("/label/question?id=d12", color_scheme=scheme)
    keyboard.ready(page)
    page.context.set_offline(True)
    page.keyboard.type("1u")
    expect(page.get_by_role("alert")).to_be_visible()
    assert problems(page) == []


INDEXED = (
    "/",
    "/question?id=noted&passages=all",
    "/find",
    "/find?q=kinship+bureau",
    "/find?q=xylograph",
    "/document?name=leave.md&start=20&end=60",
    "/document?name=chronicle.txt&start=90000&end=90500",
    "/document?name=none",
)
"""pages of a server with an index"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_pages_of_documents(
    visit: Any, indexed: Any, scheme: Literal["light", "dark"]
) -> None:
    page = visit(indexed, "/try", color_scheme=scheme)
    page.get_by_label("Question").fill("Who leads the Kinship Bureau?")
    page.get_by_label("Answer").fill("Anton Quillfeather")
    with page.expect_navigation():
        page.get_by_role("button", name="Recover the chain").click()
    found = problems(page)
    for path in INDEXED:
        page.goto(indexed.address + path)
        found += problems(page)
    assert found == []


def test_no_page_of_documents_is_wider_than_a_phone(visit: Any, indexed: Any) -> None:
    page = visit(indexed, "/try", viewport={"width": 360, "height": 740})
    for path in ("/try", *INDEXED):
        page.goto(indexed.address + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_help(open_as_ada: Open, scheme: Literal["light", "dark"]) -> None:
    page = open_as_ada("/", color_scheme=scheme)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert problems(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 640, 1280, 2560])  # 640 is 1,280 at a zoom of 200 %
def test_the_dashboard_fits_every_width(open_as_ada: Open, width: int, scheme: Literal["light", "dark"]) -> None:
    for path in (PAGES["list"], PAGES["list with hits and filters"]):
        page = open_as_ada(path, viewport={"width": width, "height": 800}, color_scheme=scheme)
        expect(page.locator("table.facet").first).to_be_attached()
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        assert problems(page) == []


HARD = (
    "/question?id=long",
    "/question?id=long&chain=2",
    "/question?id=apart",
    "/question?id=apart&source=2",
    "/compare/question?id=long&show=all",
    "/compare/question?id=apart&show=all",
)
"""pages with strips and graphs: of long texts, another candidate, no chain, a source without the question"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280, 2560])
def test_axe_finds_nothing_about_strips_and_graphs(
    visit: Any, hard: Any, scheme: Literal["light", "dark"], width: int
) -> None:
    page = visit(hard, HARD[0], color_scheme=scheme, viewport={"width": width, "height": 800})
    found = []
    for path in HARD:
        page.goto(hard.address + path)
        page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
        found += problems(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    assert found == []


def test_axe_notices_a_page_that_is_wrong(open_as_ada: Open) -> None:
    page = open_as_ada("/")
    page.evaluate("document.querySelector('main').innerHTML = '<img src=/static/icon.svg>'")
    assert any("image-alt" in problem for problem in problems(page))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_where_one_signs_in(serve: Any, visit: Any, scheme: Literal["light", "dark"]) -> None:
    page = visit(serve("--model", "lexical", "--token", "long enough"), color_scheme=scheme)
    expect(page.get_by_label("Token")).to_be_visible()
    assert problems(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_page_of_an_audit(open_report: Any, scheme: Literal["light", "dark"]) -> None:
    page = open_report([], color_scheme=scheme, bypass_csp=True)  # its policy refuses scripts, such as axe
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    assert problems(page) == []


def test_no_page_is_wider_than_a_phone(open_as_ada: Open) -> None:
    phone = {"viewport": {"width": 360, "height": 740}}
    wide = {}
    for kind, path in PAGES.items():
        page = open_as_ada(path, **phone)
        width = page.evaluate("document.scrollingElement.scrollWidth")
        if width > 360:
            wide[kind] = width, page.evaluate(_WIDEST)
    assert wide == {}


_WIDEST = """() => [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > 361)
  .map((one) => one.tagName + "." + one.className).slice(0, 5)"""

_FOCUS = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  const isSeen = box.width > 0 && box.height > 0 && box.right > 0 && box.bottom > 0 && box.top < innerHeight;
  const isMarked = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const all = [...document.querySelectorAll("*")];
  return [all.indexOf(one), one.tagName, one.outerHTML.slice(0, 120), isSeen, isMarked];
}"""


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES.keys())
def test_tab_leads_through_the_page_and_shows_where_it_is(open_as_ada: Open, path: str) -> None:
    page = open_as_ada(path)
    page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0)")
    page.evaluate("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to content")
    seen: list[int] = []
    for _ in range(25):
        place, tag, html, is_seen, is_marked = page.evaluate(_FOCUS)
        if tag == "BODY" or place in seen:
            break
        assert is_seen and is_marked, html
        seen.append(place)
        page.keyboard.press("Tab")
    assert len(seen) > 5


def test_the_skip_link_leads_past_the_navigation(open_as_ada: Open) -> None:
    page = open_as_ada("/question?id=d01")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_a_question_is_found_and_opened_without_a_mouse(open_as_ada: Open, keyboard: Any) -> None:
    page = open_as_ada("/")
    keyboard.tab_to(page, "input[name=text]")
    page.keyboard.type("polonium")
    page.keyboard.press("Enter")
    expect(page.locator(".questions .entry")).to_have_count(1)
    keyboard.tab_to(page, ".questions .entry")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Polonium")
    keyboard.tab_to(page, "details.more > summary")
    page.keyboard.press("Enter")
    keyboard.tab_to(page, "ol.candidates > li:nth-child(2) a")
    page.keyboard.press("Enter")
    expect(page.locator("#chain-heading")).to_have_text("Candidate 2")


def test_no_page_asks_for_anything_from_elsewhere(open_as_ada: Open, visit: Any, served: Any) -> None:
    for path in PAGES.values():
        open_as_ada(path)
    (watch,) = visit.watches
    assert {request[: len(served.address) + 1] for request in watch.requests} == {f"{served.address}/"}
    kinds = {request.partition("?")[0].rpartition(".")[2] for request in watch.requests}
    assert kinds >= {"css", "js", "svg"}


def test_without_scripts_one_explores_all_the_same(visit: Any, served: Any, open_details: Any) -> None:
    page: Page = visit(served, java_script_enabled=False)
    page.get_by_role("searchbox", name="Search").fill("polonium")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".questions .entry")).to_have_count(1)
    page.locator(".questions .entry").click()
    expect(page.locator(".chain .passage mark.link-1").first).to_be_visible()
    open_details(page)
    page.locator("ol.candidates a").nth(1).click()
    expect(page.locator("#chain-heading")).to_have_text("Candidate 2")
    page.get_by_role("link", name="other passages").click()
    expect(page.locator("#others .passage").first).to_be_visible()
    page.get_by_role("link", name="Try", exact=True).click()
    page.get_by_label("Question").fill("Where was the discoverer of polonium born?")
    page.get_by_label("Answer").fill("Warsaw")
    page.get_by_label("Passages", exact=True).fill(
        "# Marie Curie\nBorn in Warsaw.\n\nPolonium was found by Marie Curie."
    )
    page.get_by_role("button", name="Recover the chain").click()
    expect(page.locator(".chain .passage")).to_have_count(2, timeout=60_000)
    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare")


def test_the_address_of_a_page_is_copied(visit: Any, served: Any) -> None:
    page: Page = visit(served, "/question?id=d02&chain=2", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{served.address}/question?id=d02&chain=2"
