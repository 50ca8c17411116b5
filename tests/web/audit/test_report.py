"""The page and the JSON of an audit: counts, evidence, and the most doubtful answers."""

import io
import json
import re
from datetime import date, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rechain.errors import QuestionError
from rechain.formats.datasets.questions import Entry
from rechain.schema import Passage, Recovered
from rechain.web import audit_report as counting
from rechain.web.audit_answers import audited
from rechain.web.audit_report import JsonReport, MostDoubtful, Summary, bars, evidence_of, lines_of, write_page


def of(*answers: Any) -> Summary:
    summary = Summary()
    for answer in answers:
        summary.add(answer)
    return summary


def test_shares_are_of_the_answers_that_were_given(answered: Any) -> None:
    summary = of(*map(answered, ["supported", "supported", "supported", "unsupported", "no_answer", None]))
    assert (summary.answers, summary.given, summary.errors) == (6, 4, {"no_verdict": 1})
    assert summary.supported is not None
    assert (summary.supported.value, summary.supported.questions) == (0.75, 4)
    told = summary.to_dict()
    assert told["verdicts"] == {"supported": 3, "partly": 0, "unsupported": 1, "no_answer": 1}
    assert told["shares"]["supported"]["value"] == 0.6
    assert of().supported is None
    assert of().to_dict()["shares"]["partly"] is None


def test_confidence_is_that_of_the_best_chain(answered: Any, chain: Any) -> None:
    made = [answered(chains=[chain | {"confidence": value}]) for value in (0.0, 0.05, 0.83, 1.0, None)]
    assert of(*made).confidences == [2, 0, 0, 0, 0, 0, 0, 0, 1, 1]


def test_tags_beyond_a_number_are_counted_together(answered: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_MOST_NAMES", 2)
    summary = of(*(answered("partly", tag=tag) for tag in "abacdd"))
    assert {tag: counts["partly"] for tag, counts in summary.by_tag.items()} == {"a": 2, "b": 1, "other": 3}


@pytest.mark.parametrize(("days", "first", "periods"), [(60, "2024-01-01", 60), (61, "2024-01", 3), (2200, "2024", 7)])
def test_many_days_are_counted_by_month_and_many_months_by_year(
    answered: Any, days: int, first: str, periods: int
) -> None:
    start = date(2024, 1, 1)
    summary = of(*(answered(day=(start + timedelta(number)).isoformat()) for number in reversed(range(days))))
    assert (next(iter(summary.by_day)), len(summary.by_day)) == (first, periods)
    assert sum(counts.total() for counts in summary.by_day.values()) == days
    assert len(summary.to_dict()["by_day"]) == days


HELD = {"text": "It is EUR 180.", "verdict": "supported", "passage": "rates", "span": [0, 23]}


def texts(pieces: Any, role: str) -> list[str]:
    return [piece.text for piece in pieces if role in piece.roles]


def test_claims_are_marked_in_the_answer_and_their_sentences_in_the_passages(answered: Any, chain: Any) -> None:
    free = {"text": "Taxis are free.", "verdict": "unsupported"}
    gone = {"text": "said otherwise", "verdict": "unsupported"}
    answer = answered("partly", answer="It is EUR 180. Taxis are free.", chains=[chain], claims=[HELD, free, gone])
    found = evidence_of(answer)
    assert found is not None
    assert texts(found.answer, "supported") == ["It is EUR 180."]
    assert texts(found.answer, "unsupported") == ["Taxis are free."]
    assert [(step.title, step.link and step.link.entity) for step in found.steps] == [
        ("Travel", "City rates"),
        ("City rates", None),
    ]
    assert "".join(texts(found.steps[1].pieces, "claim")) == "Hotels: Zurich EUR 180."
    assert texts(found.steps[1].pieces, "answer") == ["EUR 180"]
    assert found.others == []


def test_passages_side_by_side_have_no_links_and_other_holders_are_shown(answered: Any, chain: Any) -> None:
    parallel = chain | {"shape": "parallel", "passages": ["leave", "travel"], "answer": None}
    found = evidence_of(answered(chains=[parallel], claims=[HELD]))
    assert found is not None
    assert [(step.title, step.link) for step in found.steps] == [("Leave", None), ("Travel", None)]
    assert [step.title for step in found.others] == ["City rates"]


def test_of_a_long_text_the_part_around_the_answer_is_shown(answered: Any) -> None:
    text = f"{'It rains. ' * 1000}It costs 180. {'It rains. ' * 1000}"
    at = text.index("180")
    held = {"match": "phrase", "passage": "p", "span": [at, at + 3]}
    chain = {"shape": "single", "passages": ["p"], "links": [], "answer": held, "score": 1.0}
    long = answered(passages=[Passage(id="p", text=text)], chains=[chain], answer="a" * 5000)
    found = evidence_of(long)
    assert found is not None
    (step,) = found.steps
    shown = "".join(piece.text for piece in step.pieces)
    assert len(shown) < 2100
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert texts(step.pieces, "answer") == ["180"]
    assert sum(len(piece.text) for piece in found.answer) == 2001


def test_chains_of_other_texts_show_what_there_is(answered: Any, chain: Any) -> None:
    found = evidence_of(answered(chains=[chain | {"passages": ["gone", "rates"]}], claims=[HELD | {"span": [0, 999]}]))
    assert found is not None
    assert [step.title for step in found.steps] == ["City rates"]


def test_a_record_that_could_not_be_read_has_no_evidence() -> None:
    assert evidence_of(audited(Entry("", None, QuestionError("bad_json", "no")), Recovered(chains=[]))) is None


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
