"""The page is one file that needs nothing else and in which texts are texts; the JSON has every record."""

import io
import json
import re
from html.parser import HTMLParser
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rechain.audit.report import JsonReport, MostDoubtful, bars, lines_of, write_page
from rechain.audit.summary import Summary
from rechain.schema import Passage

MADE_BY = {"rechain": "0.1.0", "command": "audit", "model": {"name": "default"}}
EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\u202e</style>"


def page(*answers: Any, most: int = 10, serve_url: str | None = None) -> str:
    summary, doubtful, file = Summary(), MostDoubtful(most), io.BytesIO()
    for place, answer in enumerate(answers, start=1):
        summary.add(answer)
        doubtful.add(place, answer)
    write_page(file, "log.jsonl", summary, doubtful, MADE_BY, serve_url)
    return file.getvalue().decode()


class Elements(HTMLParser):
    """The elements of a page, and its text outside style and script."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] not in ("style", "script"):
            self.text += data


def test_the_page_tells_how_many_answers_are_supported_and_why_others_are_not(answered: Any, chain: Any) -> None:
    html = page(
        answered("supported", 0.97, chains=[chain], tag="travel", day="2024-06-11"),
        answered("unsupported", 0.8, answer="It is EUR 999.", tag="hotels"),
        answered("no_answer", 0.9, answer="I don't know."),
        answered(None, error={"code": "bad_json", "message": "no"}),
    )
    text = " ".join(Elements(html).text.split())
    assert "50.0 % of the 2 answers given are supported" in text
    assert "1 of 4 records could not be judged: 1 bad_json" in text
    assert "No passage holds '999'." in text
    assert text.index("It is EUR 999.") < text.index("It is EUR 180.") < text.index("I don't know.")
    assert "97.0 % sure" in text
    assert 'aria-label="Histogram of confidence' in html
    assert "2024-06-11" in text
    assert '"name": "default"' in text  # the provenance


def test_the_page_needs_nothing_from_elsewhere_and_allows_nothing_but_its_own_style_and_script(
    answered: Any, chain: Any
) -> None:
    seen = Elements(page(answered(chains=[chain])))
    addresses = [(tag, name) for tag, attrs in seen.elements for name in attrs if name in ("src", "style", "onclick")]
    assert addresses == []
    assert [tag for tag, _ in seen.elements if tag in ("link", "img", "iframe", "base")] == []
    policy = next(a["content"] for tag, a in seen.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'; base-uri 'none'; form-action 'none'",
        policy or "",
    )


def test_texts_of_a_log_are_texts(answered: Any) -> None:
    passages = [Passage(id=f"p{EVIL}", title=EVIL, text=f"{EVIL} 180 {EVIL}")]
    chain = {"shape": "single", "passages": [f"p{EVIL}"], "links": [], "score": 1.0}
    claims = [{"text": EVIL, "verdict": "partly", "passage": f"p{EVIL}", "span": [0, 5]}] * 2
    evil = answered(question=EVIL, answer=EVIL, passages=passages, chains=[chain], claims=claims, tag=EVIL)
    seen = Elements(page(evil, serve_url="http://127.0.0.1:8000/"))
    assert [tag for tag, _ in seen.elements].count("script") == 1
    assert not any(tag == "img" or "onerror" in attrs for tag, attrs in seen.elements)
    assert seen.text.count("alert(1)") >= 5
    assert json.loads(next(attrs["data-tags"] for tag, attrs in seen.elements if tag == "article") or "") == [EVIL]


def test_answers_link_into_the_server(answered: Any) -> None:
    assert '<a href="http://127.0.0.1:8000/question?id=q1">' in page(answered(), serve_url="http://127.0.0.1:8000/")
    assert '<a href="http' not in page(answered())


def test_a_log_without_answers_is_a_page(answered: Any) -> None:
    assert "No answer was given." in page()
    assert "No answer was given." in page(answered("no_answer", answer="I don't know."))


TOLD = st.tuples(st.sampled_from(["supported", "partly", "unsupported"]), st.floats(0, 1))


@settings(max_examples=30)
@given(st.lists(TOLD, max_size=15), st.integers(0, 4))
def test_the_most_doubtful_are_kept_in_little_memory(answered: Any, told: list[tuple[str, float]], most: int) -> None:
    answers = [answered(*one) for one in told]
    doubtful = MostDoubtful(most)
    for place, answer in enumerate(answers):
        doubtful.add(place, answer)
        assert len(doubtful._kept) <= 2 * most
    expected = sorted(range(len(answers)), key=lambda place: (answers[place].doubt, place))[:most]
    assert [one.place for one in doubtful.listed()] == expected


def test_bars_are_as_wide_as_their_shares(answered: Any) -> None:
    summary = Summary()
    for verdict, tag in [("supported", "a"), ("unsupported", "a"), ("no_answer", "b")]:
        summary.add(answered(verdict, tag=tag))
    assert bars(summary.by_tag) == [
        ("a", 2, [("supported", 0.0, 50.0), ("unsupported", 50.0, 50.0)], "50 %"),
        ("b", 1, [("no_answer", 0.0, 50.0)], "–"),
    ]


def test_the_json_has_every_record_and_all_counts(answered: Any) -> None:
    for answers in ([], [answered()], [answered(), answered("partly")]):
        summary, file = Summary(), io.BytesIO()
        report = JsonReport(file)
        for answer in answers:
            summary.add(answer)
            report.add(answer)
        report.finish(summary, MADE_BY)
        told = json.loads(file.getvalue())
        assert [record["verdict"] for record in told["records"]] == [answer.verdict for answer in answers]
        assert (told["summary"], told["made_by"]) == (json.loads(json.dumps(summary.to_dict())), MADE_BY)


def test_lines_for_people(answered: Any) -> None:
    summary = Summary()
    summary.add(answered())
    summary.add(answered(None))
    assert list(lines_of(summary)) == [
        "2 answers: 1 supported, 0 partly supported, 0 unsupported, 0 no answer given.",
        "Not judged: 1 no_verdict.",
    ]


def test_of_a_long_question_the_beginning_is_shown(answered: Any) -> None:
    html = page(answered(question="What is it? " * 8000))
    assert "What is it? What is it?" in html
    assert len(html) < 50_000
