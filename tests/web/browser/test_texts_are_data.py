"""Whatever a text holds, it is shown as text: nothing of it runs, and nothing is fetched for it."""

import json
from html import unescape
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Page, expect

from rechain.web.passages import short

pytestmark = pytest.mark.web

RUN = "window.hacked=1;alert(1)"
EVIL = (
    f"<script>{RUN}</script><img src=https://example.org/x onerror={RUN}></p></textarea></title></style>"
    f"""'"><svg onload="{RUN}"><a href="javascript:{RUN}">&lt;&amp;</a>{{{{7*7}}}}{{% raw %}}<!-- ]]> -->"""
    "\u202emirrored\u202c\u2066isolated\u2069 \u0001\u0008\u001b\u007f\ufeff."
)
NAME = "<b onclick=alert(1)>Eve</b>"
LISTED = 300
"""characters of a question in a list"""
CHAIN = "section[aria-labelledby=chain-heading]"


def evil(what: str) -> str:
    """Return a text of its own with everything in it that might run."""
    return f"{what} {EVIL}"


def passage(name: str, *marked: str, text: str = "") -> dict[str, Any]:
    """Return a passage that mentions some entities."""
    text = text or f"{evil('text of ' + name)} {' and '.join(marked)} {evil('end of ' + name)}"
    places = [(one, text.index(one)) for one in marked]
    mentions = [{"entity": evil(f"entity {one}"), "start": at, "end": at + len(one)} for one, at in places]
    return {"id": evil(f"id of {name}"), "title": evil(f"title of {name}"), "text": text, "mentions": mentions}


def question(name: str, *passages: dict[str, Any]) -> dict[str, Any]:
    told = {"id": evil(name), "type": evil("type"), "question": evil(f"question {name}"), "answer": evil("answer")}
    ends = {"question_entities": [evil("entity Quux")], "answer_entity": evil("entity Zanzibar")}
    return {**told, **ends, "hops": 2, "passages": list(passages)}


def huge_text() -> str:
    """Return more than a megabyte that is never at rest, and holds one word of 50,000 letters."""
    words = (f"word{number} {EVIL if number % 500 == 0 else '<b> &amp;'}" for number in range(50_000))
    return f"Quux met Wibble. {' '.join(words)} {'x' * 50_000} Wibble went to Zanzibar."


THREE = [passage("one", "Quux", "Wibble"), passage("two", "Wibble", "Zanzibar"), passage("three", "Wibble", "Zanzibar")]
SMALL = question("small", *THREE)
HUGE = question("huge", passage("one", "Quux", "Wibble", text=huge_text()), passage("two", "Wibble", "Zanzibar"))
NUL = question("nul \0 nul", *({**one, "text": f"\0{one['text']}\0", "mentions": []} for one in THREE))
BROKEN = {"id": evil("broken"), "question": evil("question"), "answer": [7], "passages": []}


@pytest.fixture(scope="module")
def served(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Evil questions, and a file of chains with an evil name; the model finds another chain than the file's."""
    folder = tmp_path_factory.mktemp("evil")
    questions, chains, gold, guidelines = (
        folder / name for name in ("<i>q.jsonl", "<img src=x onerror=alert(1)>.jsonl", "gold.jsonl", "guidelines.txt")
    )
    questions.write_text("".join(f"{json.dumps(one)}\n" for one in (SMALL, HUGE, NUL, BROKEN)))
    one, two, three = (passage["id"] for passage in THREE)
    link = {"entity": evil("entity Wibble"), "kind": "mention", "weight": 1.0, "mentions": [None, None]}
    why = {evil("part"): 1.5, "steps": [{"player": evil("player"), "passage": evil("passage"), "probability": 0.5}]}
    recovered = {"passages": [one, three], "links": [link], "score": 1.5, "confidence": 0.5, "why": why}
    chains.write_text(json.dumps({"id": SMALL["id"], "chains": [recovered]}) + "\n")
    gold.write_text(json.dumps({"id": SMALL["id"], "chains": [{"passages": [one, two]}]}) + "\n")
    guidelines.write_text(evil("guidelines"))
    return serve(questions, "--chains", chains, "--model", "lexical", "--gold", gold, "--guidelines", guidelines)


def at(path: str, **query: object) -> str:
    return f"{path}?{urlencode(query)}"


def shown(page: Page, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).evaluate_all("all => all.map(one => one.textContent)")
    return found


def listed(text: str) -> str:
    """Return a text as the list shows it: how it is cut is not what is tested here."""
    return short(text, LISTED)


def named(one: dict[str, Any]) -> str:
    """Return the name of a passage: what titles of Wikipedia write as `&amp;` is read as `&`."""
    return unescape(one["title"])


def check(page: Page) -> None:
    """Nothing of the texts has run or become part of the page."""
    assert page.evaluate("window.hacked === undefined")
    drawn = "[viewBox], .graph svg"  # by the server; the texts have one without a viewBox
    strays = f"iframe, svg:not({drawn}), [onerror], [onload], [onclick], a[href^=javascript]"
    strays += ", main img, main script, main style"
    assert page.locator(strays).count() == 0


def test_the_watch_notices_what_must_not_happen(visit: Any, served: Any) -> None:
    page: Page = visit(served)
    watch = visit.watches.pop()
    with page.context.expect_event("weberror"):
        page.evaluate("() => { setTimeout(() => { throw new Error('oh') }) }")
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        page.evaluate("text => { document.querySelector('main').innerHTML = text }", EVIL)
    with pytest.raises(AssertionError):
        check(page)
    with page.expect_event("dialog"):
        page.evaluate("() => { setTimeout(() => alert(1)) }")
    with page.expect_request("http://localhost:*/**"):
        page.evaluate("address => { location = address }", f"http://localhost:{served.port}/")
    assert {bad.partition(":")[0] for bad in watch.bad} == {"error", "console", "dialog", "request"}


@pytest.mark.parametrize("source", [1, 2])
def test_the_list_and_its_search_show_text(visit: Any, served: Any, source: int) -> None:
    page: Page = visit(served, at("/", source=source))
    check(page)
    assert shown(page, ".questions .entry")[:2] == [listed(SMALL["question"]), listed(HUGE["question"])]
    assert shown(page, ".tabs a bdi")[0].endswith("<img src=x onerror=alert(1)>.jsonl")
    text = evil("title of three")[:200]
    page.get_by_role("searchbox", name="Search").fill(text)
    with page.expect_navigation():
        page.get_by_role("button", name="Search", exact=True).click()
    check(page)
    assert page.get_by_role("searchbox", name="Search").input_value() == text
    assert shown(page, ".questions .entry")[0] == listed(SMALL["question"])


@pytest.mark.parametrize(("source", "chain"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_a_question_and_each_of_its_candidates_are_text(visit: Any, served: Any, source: int, chain: int) -> None:
    page: Page = visit(served, at("/question", id=SMALL["id"], source=source, chain=chain, passages="all"))
    check(page)
    assert shown(page, "h1 bdi") == [SMALL["question"]]
    assert shown(page, ".given .text") == [SMALL["answer"]]
    assert page.title().startswith("question small <script>") and page.title().endswith("… · rechain")
    texts = shown(page, f"{CHAIN} .passage .text:not(.excerpt)")
    assert texts[0] == THREE[0]["text"] and texts[1] in (THREE[1]["text"], THREE[2]["text"])
    others = [one["text"] for one in THREE[1:] if one["text"] != texts[1]]
    assert shown(page, "#others .passage .text:not(.excerpt)") == others
    assert shown(page, f"{CHAIN} .passage h3 > bdi")[0] == named(THREE[0])
    assert shown(page, ".join mark bdi") == ["Wibble"]
    assert page.locator(".why mark bdi").first.get_attribute("title") == evil("entity Wibble")
    (excerpt,) = shown(page, "#passage-1 .excerpt")
    assert all(sentence in THREE[0]["text"] for sentence in excerpt.split(" … "))
    assert shown(page, f"{CHAIN} .passage .text:not(.excerpt) mark.link-1") == ["Wibble", "Wibble"]
    said = [evil("part"), "score"] if (source, chain) == (1, 1) else []
    assert shown(page, ".why tbody tr :is(td, th):first-child")[1 : 1 + len(said)] == said


def test_the_comparison_is_text(visit: Any, served: Any) -> None:
    page: Page = visit(served, at("/question", id=SMALL["id"], source=2))  # so that both have looked
    page.goto(served.address + "/compare?show=all")
    check(page)
    assert shown(page, ".questions a bdi") == [listed(SMALL["question"])]
    with page.expect_navigation():
        page.locator(".questions a").click()
    check(page)
    texts = shown(page, ".side-by-side .passage .text:not(.excerpt)")
    assert texts[0] == texts[2] == THREE[0]["text"]
    assert {texts[1], texts[3]} <= {THREE[1]["text"], THREE[2]["text"]}


def open_desk(visit: Any, served: Any, keyboard: Any, name: str, **query: object) -> Page:
    page: Page = visit(served, "/label")
    keyboard.start(page, NAME)
    page.goto(served.address + at("/label/question", id=name, **query))
    keyboard.ready(page)
    check(page)
    return page


def test_evil_answers_are_labelled_as_any(visit: Any, served: Any, keyboard: Any) -> None:
    page = open_desk(visit, served, keyboard, SMALL["id"], suggestion="shown")
    assert shown(page, ".around .soft bdi") == [NAME]
    assert shown(page, ".in-sight h1 bdi") == [SMALL["question"]]
    assert shown(page, ".given .text") == [SMALL["answer"]]
    assert shown(page, ".guidelines p")[0] == evil("guidelines")
    assert shown(page, ".suggestion .stop bdi")[0] == named(THREE[0])
    assert shown(page, ".picks .passage h2 > bdi") == [named(one) for one in THREE]
    assert shown(page, ".picks .passage .text:not(.excerpt)") == [one["text"] for one in THREE]
    page.locator("[name=note]").fill(evil("note"))
    page.locator("h1").click()
    keyboard.label(page, "12s")
    (label,) = [one for one in served.get(at("/labels", question=SMALL["id"])) if one["annotator"] == NAME]
    (evidence,) = label["evidence"]
    assert (label["value"], label["note"]) == ("supported", evil("note"))
    assert (evidence["shape"], evidence["passages"]) == ("chain", [one["id"] for one in THREE[:2]])
    page.goto(served.address + at("/label/question", id=SMALL["id"]))
    keyboard.ready(page)
    check(page)
    assert page.locator("[name=note]").input_value() == evil("note")
    assert page.locator(".pick[aria-pressed=true]").count() == 2
    page.goto(f"{served.address}/label")
    check(page)
    assert shown(page, "tbody th bdi") == [NAME]


def test_evil_pairs_are_labelled_as_any(visit: Any, served: Any, keyboard: Any) -> None:
    page = open_desk(visit, served, keyboard, SMALL["id"], mode="pairs")
    assert shown(page, ".around .soft bdi") == [NAME]
    assert shown(page, "h1 bdi") == [SMALL["question"]]
    assert shown(page, ".guidelines p")[0] == evil("guidelines")
    pairs, seen = page.get_by_role("navigation", name="Pairs").get_by_role("link").count(), set[str]()
    assert pairs > 2
    for number in range(1, pairs + 1):
        page.goto(served.address + at("/label/question", id=SMALL["id"], mode="pairs", pair=number))
        keyboard.ready(page)
        check(page)
        seen |= set(shown(page, ".passage .text:not(.excerpt)"))
        keyboard.label(page, "y")
    assert seen == {one["text"] for one in THREE}
    labels = served.get(at("/labels", question=SMALL["id"]))
    own = [one["unit"] for one in labels if one["annotator"] == NAME and one["unit"]["passages"]]
    assert len(own) == pairs
    assert all(evil("entity Wibble") in unit["entities"] for unit in own)


def test_disagreements_and_their_notes_are_text(visit: Any, served: Any, keyboard: Any) -> None:
    page = open_desk(visit, served, keyboard, HUGE["id"])
    keyboard.label(page, "1s")
    told = {"annotator": "Ben", "question": HUGE["id"], "value": "unsupported", "note": evil("note")}
    served.post("/labels", [told])
    page.goto(f"{served.address}/label/disagreements")
    check(page)
    unit = page.locator(".unit").filter(has_text=HUGE["question"][:10])
    expect(unit).to_have_count(1)
    assert shown(page, ".said li bdi") == [NAME, short(named(HUGE["passages"][0]), 60), "Ben", evil("note")]
    page.get_by_role("button", name="Accept").last.click()
    expect(page.get_by_role("heading", name="Resolved", exact=True)).to_be_visible()
    check(page)
    assert shown(page, ".unit > p:not(.given) > bdi") == [NAME, evil("note")]
    assert served.post("/labels/undo", {"annotator": "Ben"})["note"] == evil("note")


FORM = {
    "question": evil("Who discovered polonium?"),
    "answer": "Warsaw",
    "passages": f"# {EVIL}\nPolonium was named by Marie Curie. {EVIL}\n\n# Marie Curie\n{EVIL} was in Warsaw.",
}


def test_what_is_pasted_is_text(visit: Any, served: Any) -> None:
    page: Page = visit(served, "/try")
    for name, text in FORM.items():
        page.locator(f"[name={name}]").fill(text)
    with page.expect_navigation():
        page.get_by_role("button", name="Recover the chain").click()
    check(page)
    assert shown(page, ".result bdi") == [FORM["question"]]
    assert shown(page, f"{CHAIN} .passage .text:not(.excerpt)") == [
        f"Polonium was named by Marie Curie. {EVIL}",
        f"{EVIL} was in Warsaw.",
    ]
    page.get_by_role("link", name="Edit", exact=True).click()
    check(page)
    for name, text in FORM.items():
        assert page.locator(f"[name={name}]").input_value() == text


@pytest.mark.parametrize(
    "path",
    [
        at("/question", id=EVIL),
        at("/label/question", id=SMALL["id"], mode=EVIL),
        at("/compare", show=EVIL),
        at("/", judgement=EVIL),
        at("/", verdict=EVIL),
        at("/question", id=BROKEN["id"]),
        f"/{quote(EVIL)}",
    ],
)
def test_what_is_refused_is_told_as_text(visit: Any, served: Any, path: str) -> None:
    page: Page = visit(served, path)
    check(page)
    expect(page.get_by_role("alert")).to_be_visible()


def test_nul_characters_break_nothing(visit: Any, served: Any) -> None:
    page: Page = visit(served, at("/question", id=NUL["id"], source=2, passages="all"))
    check(page)
    assert shown(page, "h1 bdi") == [NUL["question"].replace("\0", "")]
    texts = [one["text"].replace("\0", "") for one in NUL["passages"]]
    assert set(shown(page, ".passage .text:not(.excerpt)")) == set(texts)


@pytest.mark.parametrize("path", ["/question", "/compare/question", "/label/question"])
def test_a_passage_of_a_megabyte_is_shown_whole_and_does_not_hang(
    visit: Any, served: Any, keyboard: Any, path: str
) -> None:
    page: Page = visit(served, "/label")
    keyboard.start(page, NAME)
    page.goto(served.address + at(path, id=HUGE["id"], source=2))
    told = max(shown(page, ".passage .text:not(.excerpt)"), key=len)
    check(page)
    assert len(told) > 1_000_000 and told == HUGE["passages"][0]["text"]
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_count(1)
    page.get_by_role("link", name="Explore", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Questions")
