"""The records of docs/formats.md: what they accept, refuse and keep."""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from rechain.formats.datasets.formats import describe
from rechain.schema import NOT_BLANK as PATTERN
from rechain.schema import (
    Chain,
    Claim,
    Gold,
    GoldChain,
    HeldAnswer,
    Link,
    Mention,
    NotBlank,
    Passage,
    Problem,
    Question,
    Recovered,
)

LINK = Link(entity="Anton", kind="title", weight=6.1, mentions=((0, 5), None))
CHAIN = Chain(passages=["p1", "p2"], links=[LINK], score=-0.4)
NOT_BLANK = st.text(min_size=1).filter(str.strip)


def question(**changes: object) -> Question:
    fields = {"id": "q", "question": "Who?", "answer": "Anton", "passages": [{"id": "p", "text": "Anton."}]}
    return Question.model_validate(fields | changes)


def test_blank_is_what_strip_leaves_nothing_of() -> None:
    blank = [character for character in map(chr, range(sys.maxunicode + 1)) if not character.strip()]
    assert "\x85" in blank
    assert [one for one in map(chr, range(sys.maxunicode + 1)) if not re.search(PATTERN, one)] == blank
    for character in blank:
        with pytest.raises(ValidationError, match="String should match pattern"):
            TypeAdapter(NotBlank).validate_python(character)


def test_unknown_fields_are_kept() -> None:
    read = question(source="log 7", passages=[{"id": "p", "text": "Anton.", "url": "https://a.example"}])
    written = json.loads(read.model_dump_json())
    assert written["source"] == "log 7"
    assert written["passages"][0]["url"] == "https://a.example"


@pytest.mark.parametrize("field", ["id", "question", "answer", "passages"])
def test_a_question_needs_its_fields(field: str) -> None:
    fields = json.loads(question().model_dump_json())
    del fields[field]
    with pytest.raises(ValidationError, match=field):
        Question.model_validate(fields)


@pytest.mark.parametrize(
    "change",
    [
        {"id": " "},
        {"id": 7},
        {"question": ""},
        {"answer": "a" * 100_001},
        {"answer": ["Anton"]},
        {"answer_aliases": [""]},
        {"answer_aliases": "Anton"},
        {"question_entities": [""]},
        {"hops": 0},
        {"hops": 9},
        {"hops": 2.0},
        {"hops": "2"},
        {"hops": True},
        {"hops": 3, "link_types": ["gene"]},
        {"passages": {}},
        {"passages": [{"id": "p"}]},
        {"passages": [{"id": "p", "text": ""}]},
        {"passages": [{"id": "p", "text": "a"}, {"id": "p", "text": "b"}]},
    ],
    ids=str,
)
def test_a_question_refuses(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        question(**change)


def test_an_answer_may_be_blank_which_is_none_and_one_passage_may_suffice() -> None:
    assert [question(answer=answer).answer for answer in ("", " \n")] == ["", " \n"]
    assert question(hops=1).hops == 1


def test_link_types_may_come_without_hops() -> None:
    assert question(link_types=["gene", "drug"]).link_types == ["gene", "drug"]


def test_mentions_count_code_points_and_may_overlap() -> None:
    mentions = [Mention(entity="a", start=0, end=3), Mention(entity="b", start=1, end=3)]
    assert Passage(id="p", text="𝒜né", mentions=mentions).mentions == mentions


@given(text=NOT_BLANK, start=st.integers(0, 20), length=st.integers(1, 20))
def test_a_mention_is_accepted_just_where_it_cuts_out_text(text: str, start: int, length: int) -> None:
    mention = Mention(entity="e", start=start, end=start + length)
    if len(text[start : start + length]) == length:
        assert Passage(id="p", text=text, mentions=[mention]).mentions == [mention]
    else:
        with pytest.raises(ValidationError, match="mentions"):
            Passage(id="p", text=text, mentions=[mention])


@pytest.mark.parametrize("field", ["id", "question", "answer"])
def test_a_lone_surrogate_is_no_text(field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        question(**{field: "a \ud800"})


def test_records_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        CHAIN.score = 1.0  # type: ignore[misc]


def test_chains_are_written_as_the_format_says() -> None:
    assert json.loads(Recovered(id="q1", chains=[CHAIN]).to_json()) == {
        "id": "q1",
        "chains": [
            {
                "shape": "chain",
                "passages": ["p1", "p2"],
                "links": [{"entity": "Anton", "kind": "title", "weight": 6.1, "mentions": [[0, 5], None]}],
                "score": -0.4,
                "confidence": None,
            }
        ],
        "error": None,
    }


def test_an_error_is_written_with_code_and_message() -> None:
    written = json.loads(Recovered(id=None, chains=[], error=Problem(code="bad_json", message="line 3")).to_json())
    assert written == {"id": None, "chains": [], "error": {"code": "bad_json", "message": "line 3"}}


def test_why_is_written_only_where_it_was_asked_for() -> None:
    explained = CHAIN.model_copy(update={"why": {"overlap": 1.5}})
    assert '"why":{"overlap":1.5}' in Recovered(id="q1", chains=[explained]).to_json()
    assert "why" not in Recovered(id="q1", chains=[CHAIN]).to_json()


OLD = """{"id":"q1","chains":[{"passages":["p1","p2"],"links":[],"score":1.0,"confidence":0.9}],"error":null}"""
"""a line of a chains file from before there were shapes and verdicts"""


def test_a_line_of_an_older_file_reads_as_a_chain_without_a_verdict() -> None:
    read = Recovered.model_validate_json(OLD)
    assert read == Recovered(id="q1", chains=[Chain(passages=["p1", "p2"], links=[], score=1.0, confidence=0.9)])
    assert (read[0].shape, read[0].answer, read.verdict, read.claims) == ("chain", None, None, [])
    assert json.loads(read.to_json()) == json.loads(OLD.replace('{"passages"', '{"shape":"chain","passages"'))


def test_what_a_verdict_rests_on_is_written_where_there_is_one() -> None:
    held = HeldAnswer(match="words", passage="p2", span=(3, 9))
    claim = Claim(text="It rains.", verdict="unsupported")
    one = CHAIN.model_copy(update={"shape": "parallel", "answer": held})
    recovered = Recovered(id="q1", verdict="partly", verdict_probability=0.5, claims=[claim], chains=[one, CHAIN])
    written = json.loads(recovered.to_json())
    assert list(written) == ["id", "verdict", "verdict_probability", "claims", "chains", "error"]
    assert written["claims"] == [{"text": "It rains.", "verdict": "unsupported", "passage": None, "span": None}]
    assert written["chains"][0]["answer"] == {"match": "words", "passage": "p2", "span": [3, 9]}
    assert "answer" not in written["chains"][1]
    assert written == recovered.to_dict()
    assert Recovered.model_validate(written) == recovered


def test_links_lead_on_but_for_passages_side_by_side() -> None:
    assert (CHAIN.joining_links, CHAIN.between) == ([LINK], [(0, 1)])
    assert CHAIN.model_copy(update={"links": [LINK, LINK]}).joining_links == [LINK]  # two passages have one between
    assert CHAIN.model_copy(update={"shape": "parallel"}).joining_links == []
    assert [CHAIN.model_copy(update={"shape": shape}).lines for shape in ("chain", "parallel")] == [
        [[0, 1]],
        [[0], [1]],
    ]


def graph(*between: tuple[int, int] | None) -> Chain:
    links = [
        LINK.model_copy(update={"entity": name, "between": ends}) for name, ends in zip("xyz", between, strict=False)
    ]
    return Chain(shape="graph", passages=["a", "b", "c", "d"], links=links, score=1.0)


@pytest.mark.parametrize(
    ("between", "lines", "line"),
    [
        (((0, 1), (2, 3)), [[0, 1], [2, 3]], "1.00  a --[x]--> b | c --[y]--> d"),
        (((0, 2), (1, 2), (2, 3)), [[0, 2], [1, 2, 3]], "1.00  a --[x]--> c | b --[y]--> c --[z]--> d"),
        (((0, 3), (1, 3), (2, 3)), [[0, 3], [1, 3], [2, 3]], "1.00  a --[x]--> d | b --[y]--> d | c --[z]--> d"),
        (((0, 1),), [[0, 1], [2], [3]], "1.00  a --[x]--> b | c | d"),
        ((None, (1, 3)), [[0, 1, 3], [2]], "1.00  a --[x]--> b --[y]--> d | c"),  # without "between" it is the next
    ],
)
def test_a_graph_is_lines_of_evidence_that_meet_or_stand_side_by_side(
    between: tuple[tuple[int, int] | None, ...], lines: list[list[int]], line: str
) -> None:
    one = graph(*between)
    assert (one.lines, str(one)) == (lines, line)
    assert one.ends == {places[-1] for places in lines} - {0}


def test_a_graph_is_written_with_the_places_that_its_links_join_and_read_back() -> None:
    one = graph((0, 1), (2, 3))
    written = one.to_dict()
    assert [link["between"] for link in written["links"]] == [[0, 1], [2, 3]]
    assert Chain.model_validate(written) == one
    assert all("between" not in link for link in CHAIN.to_dict()["links"])
    assert (
        graph((0, 1), (2, 3)).identity
        == Chain(shape="graph", passages=["c", "d", "a", "b"], links=one.links, score=0.0).identity
    )


@pytest.mark.parametrize("ends", [(1, 0), (0, 4), (2, 2), (-1, 1)])
def test_a_link_of_a_graph_leads_to_a_later_passage(ends: tuple[int, int]) -> None:
    with pytest.raises(ValidationError, match="does not lead on"):
        graph(ends)


def test_a_confidence_is_a_probability() -> None:
    for confidence in (1.01, -0.01):
        with pytest.raises(ValidationError, match="confidence"):
            Chain(passages=["p"], links=[], score=0.0, confidence=confidence)


# ---- what recover returns, in Python

SURE = CHAIN.model_copy(update={"confidence": 0.974})
FAILED = Recovered(id="q1", chains=[], error=Problem(code="no_tail", message="no passage\nholds it"))


def test_recovered_chains_are_a_sequence() -> None:
    recovered = Recovered(id="q1", chains=[SURE, CHAIN])
    assert (len(recovered), recovered[0], recovered[-1], recovered[:1]) == (2, SURE, CHAIN, [SURE])
    assert list(recovered) == [SURE, CHAIN]
    assert CHAIN in recovered
    with pytest.raises(IndexError):
        recovered[2]


def test_without_a_chain_it_is_false() -> None:
    assert Recovered(id="q1", chains=[CHAIN])
    assert not FAILED
    assert list(FAILED) == []


def test_shapes_and_verdicts_are_printed() -> None:
    parallel = SURE.model_copy(update={"shape": "parallel"})
    assert str(parallel) == "0.97  p1 | p2"
    recovered = Recovered(id="q1", verdict="partly", verdict_probability=0.7, chains=[parallel])
    assert str(recovered) == "partly supported (0.70)\n0.97  p1 | p2"
    unknown = FAILED.model_copy(update={"verdict": "unsupported"})
    assert str(unknown) == "unsupported\nno chain (no_tail): no passage holds it"


def test_passages_side_by_side_are_the_same_in_any_order() -> None:
    one = Chain(shape="parallel", passages=["a", "b"], links=[], score=0.0)
    other = one.model_copy(update={"passages": ["b", "a"]})
    assert one.identity == other.identity
    assert one.model_copy(update={"shape": "chain"}).identity != other.model_copy(update={"shape": "chain"}).identity


def test_a_chain_prints_as_one_line() -> None:
    assert str(SURE) == "0.97  p1 --[Anton]--> p2"
    assert str(CHAIN) == "-0.40  p1 --[Anton]--> p2"
    assert str(SURE.model_copy(update={"confidence": 0.0})) == "0.00  p1 --[Anton]--> p2"


@pytest.mark.parametrize(
    ("passages", "links", "shown"),
    [
        (["a", "b", "c"], [LINK, LINK], "a --[Anton]--> b --[Anton]--> c"),
        (["a", "b", "c"], [LINK], "a --[Anton]--> b --> c"),
        (["a"], [LINK], "a"),
        (["a\nb", "c\t d"], [LINK.model_copy(update={"entity": "An\r\nton"})], "a b --[An ton]--> c d"),
    ],
)
def test_chains_of_any_file_print_too(passages: list[str], links: list[Link], shown: str) -> None:
    assert str(Chain(passages=passages, links=links, score=1.0)) == f"1.00  {shown}"


def test_recovered_chains_print_a_line_each_or_the_error_in_one() -> None:
    assert str(Recovered(id="q1", chains=[SURE, CHAIN])) == f"{SURE}\n{CHAIN}"
    assert str(FAILED) == "no chain (no_tail): no passage holds it"
    assert str(Recovered(id="q1", chains=[])) == "no chain"


@pytest.mark.parametrize("why", [None, {"overlap": 1.5}])
def test_dicts_are_what_is_written(why: dict[str, float] | None) -> None:
    chain = SURE.model_copy(update={"why": why})
    recovered = Recovered(id="q1", chains=[chain])
    assert recovered.to_dict() == json.loads(recovered.to_json())
    assert chain.to_dict() == recovered.to_dict()["chains"][0]
    assert ("why" in chain.to_dict()) == (why is not None)
    assert json.loads(json.dumps(recovered.to_dict())) == recovered.to_dict()
    assert FAILED.to_dict() == json.loads(FAILED.to_json())


def test_a_chain_has_at_least_one_passage() -> None:
    with pytest.raises(ValidationError, match="passages"):
        Chain.model_validate({"passages": [], "links": [], "score": 0.0})


def test_a_gold_chain_is_ordered_unless_told() -> None:
    gold = Gold.model_validate({"id": "q", "chains": [{"passages": ["a", "b"], "links": ["x"]}]})
    assert gold.chains == [GoldChain(passages=["a", "b"], links=["x"], ordered=True)]
    assert gold.same is None


@pytest.mark.parametrize("chain", [{}, {"passages": []}, {"passages": [""]}, {"passages": "ab"}])
def test_a_gold_chain_names_passages(chain: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="passages"):
        Gold.model_validate({"id": "q", "chains": [chain]})


@pytest.mark.parametrize(
    ("field", "most", "fill"),
    [
        ("answer_aliases", 1_000, lambda n: ["Prague"] * n),
        ("question_entities", 1_000, lambda n: ["opera:zorilla"] * n),
        ("link_types", 7, lambda n: ["gene"] * n),
        ("passages", 10_000, lambda n: [{"id": str(number), "text": "Anton."} for number in range(n)]),
        ("passages[0].mentions", 10_000, lambda n: [{"entity": "e", "start": 0, "end": 1}] * n),
        ("id", 10_000, lambda n: "x" * n),
        ("type", 10_000, lambda n: "x" * n),
        ("question", 100_000, lambda n: "x" * n),
        ("answer", 100_000, lambda n: "x" * n),
        ("answer_entity", 10_000, lambda n: "x" * n),
        ("passages[0].id", 10_000, lambda n: "x" * n),
        ("passages[0].title", 10_000, lambda n: "x" * n),
    ],
)
def test_no_list_or_name_of_a_question_is_without_a_limit(field: str, most: int, fill: Callable[[int], Any]) -> None:
    def of_length(length: int) -> Question:
        place, _, inner = field.partition("[0].")
        value = fill(length)
        return question(**{place: [{"id": "p", "text": "Anton.", inner: value}] if inner else value})

    assert of_length(most)
    with pytest.raises(ValidationError) as refused:
        of_length(most + 1)
    unit = "characters" if isinstance(fill(1), str) else "items"
    message = f"{field} has {most + 1:,} {unit}; the most are {most:,}"
    assert describe(refused.value) == ("too_large", message)


def test_a_number_too_long_to_be_written_is_no_answer() -> None:
    with pytest.raises(ValidationError, match="should be a valid string"):
        Question(id="q", question="How many?", answer=10**5000, passages=[])  # type: ignore[arg-type]
