"""The figures of a filter: counted by hand, and as many as the list shows behind every bar."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from rechain.errors import QuestionError
from rechain.schema import Gold, GoldChain, Question, Recovered
from rechain.web.dashboard import Dashboard, Facet, choices, columns, dashboard, facets
from rechain.web.filters import PageFilters
from rechain.web.site import Site

Make = Callable[..., Any]


@pytest.fixture
def site(make_site: Make, towns: Make) -> Site:
    """Seven questions and one that cannot be read; the second source is sure of what is right and says nothing of one.

    The source's best chains are right for town-0 to town-3 and wrong for town-4; town-5 has none, town-6 no answer.
    """
    questions: list[Question | QuestionError] = [
        question.model_copy(update={"type": "bridge" if number < 3 else "comparison"})
        for number, question in enumerate(towns(8))
    ]
    assert isinstance(questions[6], Question)
    questions[6] = questions[6].model_copy(update={"answer": " "})
    golds = [Gold(id=f"town-{n}", chains=[GoldChain(passages=["work", "maker"])], same="passages") for n in range(8)]
    site: Site = make_site([*questions, QuestionError("bad_json", "not JSON.")], golds=golds)
    link = {"entity": "Bob", "kind": "name", "weight": 1.0, "mentions": [None, None]}

    def told(number: int) -> Recovered:
        passages = ["work", "maker"] if number < 4 else ["other", "guest"]
        chain = {
            "passages": passages,
            "links": [link],
            "score": 1.0,
            "confidence": (0.95, 0.95, 1.0, 0.31, 0.39)[number],
        }
        return Recovered.model_validate({"id": f"town-{number}", "verdict": "supported", "chains": [chain]})

    rows = [told(number) for number in range(5)]
    rows += [
        Recovered.model_validate({"id": f"town-{number}", "chains": [], "error": {"code": code, "message": "none."}})
        for number, code in ((5, "no_link"), (6, "no_answer"))
    ]
    site.add_file("sure.jsonl", rows)
    return site


def figures_of(site: Site, **filters: Any) -> Dashboard:
    query = PageFilters(source=2, **filters)
    return dashboard(site.index.figures(1, query), query)


def facets_of(site: Site, **filters: Any) -> list[Facet]:
    query = PageFilters(source=2, **filters)
    return facets(site.index.facets(1, query), query)


def bars_of(site: Site, name: str, **filters: Any) -> dict[str, tuple[int, int, int]]:
    (facet,) = (facet for facet in facets_of(site, **filters) if facet.name == name)
    return {bar.label: (bar.sums.questions, bar.sums.right, bar.sums.judged) for bar in facet.bars}


def test_questions_coverage_and_accuracy(site: Site) -> None:
    board = figures_of(site)
    assert (board.total, board.found.questions, board.able.questions) == (9, 5, 6)
    assert (board.cannot, board.not_sought) == (2, 1)  # no answer, unreadable; town-7 is not in the file
    assert board.coverage is not None and board.coverage.value == pytest.approx(5 / 6)
    assert board.accuracy is not None and board.accuracy.value == pytest.approx(4 / 6)


def test_bars_by_each_property(site: Site) -> None:
    assert bars_of(site, "judgement") == {"right": (4, 4, 4), "wrong": (2, 0, 2)}
    assert bars_of(site, "verdict") == {"supported": (5, 4, 5)}
    assert bars_of(site, "tenth") == {"0.3 to 0.4": (2, 1, 2), "0.9 to 1.0": (3, 3, 3)}
    assert bars_of(site, "type") == {"comparison": (5, 1, 3), "bridge": (3, 3, 3)}
    assert bars_of(site, "hops") == {"2": (8, 4, 6)}
    assert bars_of(site, "length") == {"2": (5, 4, 5)}
    assert bars_of(site, "kind") == {"name": (5, 4, 5)}
    assert bars_of(site, "reason") == {"no linked passages lead to the answer": (1, 0, 1), "pending": (1, 0, 0)}
    assert bars_of(site, "cannot") == {"invalid record": (1, 0, 0), "no answer is given": (1, 0, 0)}
    (types,) = (facet for facet in facets_of(site) if facet.name == "type")
    assert [(bar.right, bar.wrong, bar.other) for bar in types.bars] == [(20, 40, 40), (60, 0, 0)]


def test_calibration_compares_confidence_with_accuracy(site: Site) -> None:
    error = abs(0.31 + 0.39 - 1) + abs(0.95 + 0.95 + 1.0 - 3)
    assert figures_of(site).calibration_error == pytest.approx(error / 5)
    (tenths,) = (facet for facet in facets_of(site) if facet.name == "tenth")
    assert [bar.confidence for bar in tenths.bars] == pytest.approx([0.35, 2.9 / 3])


def test_figures_are_those_of_the_filter(site: Site) -> None:
    board = figures_of(site, type="bridge")
    assert (board.total, board.able.judged, board.cannot) == (3, 3, 0)
    assert bars_of(site, "tenth", type="bridge") == {"0.9 to 1.0": (3, 3, 3)}
    assert figures_of(site, text="zzzz").total == 0
    assert figures_of(site, judgement="wrong").accuracy is None  # it would say what the filter says


def test_every_bar_adds_its_questions_or_takes_them_away(site: Site) -> None:
    seen = 0
    for filters in ({}, {"judgement": "right"}, {"type": "comparison"}, {"tenth": (9, 3)}):
        for facet in facets_of(site, **filters):
            on = sum(bar.sums.questions for bar in facet.bars if bar.is_on)
            for bar in facet.bars if facet.name != "kind" else ():
                listed = site.index.select(1, PageFilters.model_validate(bar.query)).total
                expected = on - bar.sums.questions if bar.is_on else on + bar.sums.questions
                if expected:  # with none chosen all are listed
                    assert listed == expected, (filters, facet.name, bar.label)
                seen += 1
    assert seen > 40
    assert bars_of(site, "judgement", judgement="right") == {"right": (4, 4, 4), "wrong": (2, 0, 2)}


def test_filters_that_are_on_can_be_taken_off_one_by_one() -> None:
    filters = PageFilters(text="who", scope="passages", type="bridge", has_chain=False, tenth=0, source=2)
    taken = {one.label: one.query for one in choices(filters)}
    assert list(taken) == ["“who” (passages too)", "without a chain", "confidence 0.0 to 0.1", "type bridge"]
    assert taken["type bridge"] == {"text": "who", "scope": "passages", "tenth": (0,), "found": "no", "source": 2}
    assert choices(PageFilters(order="type", reverse=True, source=2)) == []


def test_a_column_orders_up_then_down() -> None:
    def of(label: str, **filters: Any) -> tuple[Any, Any, str | None]:
        (column,) = (one for one in columns(PageFilters(**filters), True, True) if one.label == label)
        return column.query.get("order"), column.query.get("reverse"), column.direction

    assert of("Chain") == ("chain", None, None)
    assert of("Chain", order="chain") == ("chain", "yes", "up")
    assert of("Chain", order="chain", reverse=True) == ("chain", None, "down")
    assert of("Confidence") == ("least confident", None, None)
    assert of("Confidence", order="least confident") == ("most confident", None, "up")
    assert of("Confidence", order="most confident") == ("least confident", None, "down")
    labels = [one.label for one in columns(PageFilters(), False, False)]
    assert labels == ["#", "Question", "Chain", "Verdict"]


@pytest.fixture
def client(site: Site, connect: Make) -> TestClient:
    client: TestClient = connect(site)
    return client


def test_the_page_shows_the_figures_as_tables(client: TestClient, seen: Make) -> None:
    page = seen(client.get("/?source=2").text)
    for text in ("With a chain83 % 5 of 6", "Not applicable2 excluded", "0.9 to 1.0 3 100 % 97 %"):
        assert text in page.text
    assert "/?tenth=9&source=2" in page.links


def test_confidence_is_offered_only_where_a_source_tells_it(client: TestClient, seen: Make) -> None:
    without, told = (seen(client.get(f"/?source={source}").text) for source in (1, 2))
    assert ["order=least+confident" in " ".join(page.links) for page in (without, told)] == [False, True]
    # a filter for it that stands in an address can be seen and taken off
    assert "confidence from 0.5" in seen(client.get("/?min_confidence=0.5").text).text


def test_a_page_past_the_last_is_the_last(make_site: Make, connect: Make, towns: Make, seen: Make) -> None:
    client = connect(make_site(towns(27)))
    page = seen(client.get("/?page=9999").text)
    assert "page 2 of 2" in page.text and "/question?id=town-26" in page.links
    assert "26" in page.text and "27" in page.text
    assert "/?page=1" in page.links


def test_the_form_keeps_the_other_filters(client: TestClient, seen: Make) -> None:
    page = seen(client.get("/?source=2&judgement=wrong&text=town").text)
    hidden = {one["name"]: one["value"] for tag, one in page.elements if one.get("type") == "hidden"}
    assert hidden == {"judgement": "wrong", "source": "2"}


def test_words_are_marked_and_the_passage_that_holds_them_is_shown(client: TestClient, seen: Make, site: Site) -> None:
    content = site.index.at(0).content
    assert isinstance(content, Question)
    word = content.passages[0].text.split()[0].strip(".,")
    html = client.get("/", params={"text": word, "scope": "passages"}).text
    assert f'<mark class="match " title="match">{word}</mark>' in html
    assert '<p class="snippet soft"' in html
    title = client.get("/", params={"text": content.passages[0].title}).text
    assert '<mark class="match "' in title


def test_the_title_of_the_tab_says_what_is_listed(client: TestClient) -> None:
    assert "<title>9 questions · rechain</title>" in client.get("/").text
    assert (
        "<title>right, type bridge: 3 questions · rechain</title>"
        in client.get("/?source=2&judgement=right&type=bridge").text
    )


def test_links_of_the_page_lead_to_pages(client: TestClient, seen: Make) -> None:
    page = seen(client.get("/?source=2&type=comparison").text)
    lists = {link for link in page.links if link.startswith("/?")}
    assert len(lists) > 15
    for link in lists:
        assert client.get(link).status_code == 200
        values = parse_qs(urlsplit(link).query)
        assert all(len(given) == len(set(given)) for given in values.values())
