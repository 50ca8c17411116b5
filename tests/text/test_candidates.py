"""C: hand-worked cases, a brute force written apart from the code, and questions of 1,000 passages."""

import gzip
import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise, permutations, product, takewhile
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rechain.errors import QuestionError, RechainError
from rechain.evaluation.gold import read_gold
from rechain.evaluation.judging import is_correct
from rechain.formats.datasets import read_questions
from rechain.schema import Mention, Passage, Question
from rechain.text.candidates import Candidate, Candidates, CandidateSettings, find_candidates
from rechain.text.evidence.search import find_evidence
from rechain.text.languages import MAX_PHRASE_IDF, idf
from rechain.text.linking import DEFAULT_MIN_WEIGHT, KINDS
from rechain.text.linking.content import find_overlaps
from rechain.text.passage_views import PassageView
from rechain.text.words import phrase

EVERYTHING = CandidateSettings(limit=1_000_000)


def text_question(passages: Sequence[tuple[str, str]], *, answer: str = "Ostrela", asked: str = "Who?", **fields):
    rows = [Passage(id=str(n), title=title, text=text) for n, (title, text) in enumerate(passages)]
    return Question(id="q", question=asked, answer=answer, passages=rows, **fields)


def given_question(entities: Sequence[Sequence[str]], *, text: str = "of the", **fields) -> Question:
    rows = [
        Passage(id=str(n), text=text, mentions=[Mention(entity=entity, start=0, end=2) for entity in held])
        for n, held in enumerate(entities)
    ]
    return Question(**{"id": "q", "question": "Who?", "answer": "of", "passages": rows, **fields})


def rows(found: Candidates) -> list[tuple[int, ...]]:
    return [chain.passages for chain in found.chains]


def keys(chain: Candidate) -> tuple[str, ...]:
    return tuple(edge.key for edge in chain.edges)


def error_code(question: Question, settings: CandidateSettings | None = None) -> str:
    with pytest.raises(QuestionError) as caught:
        find_candidates(question, settings)
    return caught.value.code


# ---- two hops


def test_a_chain_leads_to_the_passage_that_holds_the_answer(bridge_question: Question) -> None:
    found = find_candidates(bridge_question)
    assert list(found.tails) == [1, 2]
    assert rows(found) == [(0, 1), (2, 1), (1, 2)]
    (link,) = found.chains[0].links
    assert (link.entity, link.kind) == ("Anton Quillfeather", "title")
    assert link.mentions == ((23, 41), (0, 18))


def test_two_is_the_number_of_hops_where_nobody_tells() -> None:
    found = find_candidates(text_question([("", "by Quorvath"), ("", "Quorvath of Ostrela")]))
    assert rows(found) == [(0, 1)]


def test_passages_with_several_links_count_once_with_the_strongest() -> None:
    passages = [("", "by Quorvath and Zimbelot"), ("Zimbelot", "Quorvath of Ostrela")]
    (chain,) = find_candidates(text_question(passages)).chains
    assert [link.entity for link in chain.links] == ["Zimbelot"]
    assert chain.weight == pytest.approx(KINDS["title"].bonus + idf("zimbelot"))


def test_both_directions_count_where_both_passages_hold_the_answer() -> None:
    passages = [("", "Quorvath of Ostrela"), ("", "Quorvath in Ostrela")]
    assert sorted(rows(find_candidates(text_question(passages)))) == [(0, 1), (1, 0)]


def test_every_choice_of_given_entities_is_a_chain_of_its_own() -> None:
    found = find_candidates(
        given_question([["gene:1", "gene:2"], ["gene:2", "gene:1", "drug:9"]], answer_entity="drug:9")
    )
    assert sorted(map(keys, found.chains)) == [("gene:1",), ("gene:2",)]
    assert set(rows(found)) == {(0, 1)}


def test_the_answers_entity_is_no_link() -> None:
    both = given_question([["gene:1", "drug:9"], ["gene:1", "drug:9"]], answer_entity="drug:9")
    assert {keys(chain) for chain in find_candidates(both).chains} == {("gene:1",)}
    assert error_code(given_question([["drug:9"], ["drug:9"]], answer_entity="drug:9")) == "no_link"


def test_the_head_of_two_hops_need_not_hold_an_entity_of_the_question() -> None:
    question = given_question([["gene:1"], ["gene:1", "drug:9"]], answer_entity="drug:9", question_entities=["gene:7"])
    assert rows(find_candidates(question)) == [(0, 1)]


# ---- three hops and more


def three_hops(head: str = "Zimbelot", asked: str = "Who knew Zimbelot?") -> Question:
    passages = [("", f"{head} met Quorvath"), ("", "Quorvath met Brimlad"), ("", "Brimlad saw Ostrela")]
    return text_question(passages, asked=asked, hops=3)


def test_three_hops_go_over_a_middle_passage() -> None:
    (chain,) = find_candidates(three_hops()).chains
    assert chain.passages == (0, 1, 2)
    assert [link.entity for link in chain.links] == ["Quorvath", "Brimlad"]
    assert chain.weight == pytest.approx(idf("quorvath") + idf("brimlad"))


def test_the_head_of_three_hops_holds_an_entity_of_the_question() -> None:
    assert error_code(three_hops(head="Nobody")) == "no_head"
    assert rows(find_candidates(three_hops(asked="Who knew a zimbelot?"))) == [(0, 1, 2)]


def test_a_head_that_only_others_have_gives_no_chain() -> None:
    assert error_code(three_hops(asked="Who knew Brimlad?")) == "no_link"


def test_the_questions_given_entities_decide_on_heads_and_do_not_link() -> None:
    entities = [["drug:1", "gene:1"], ["gene:1", "drug:2", "drug:1"], ["drug:2", "drug:1", "gene:9"]]
    ends = {"answer_entity": "gene:9", "question_entities": ["drug:1"], "hops": 3}
    found = find_candidates(given_question(entities, **ends))
    assert [(chain.passages, keys(chain)) for chain in found.chains] == [((0, 1, 2), ("gene:1", "drug:2"))]
    assert error_code(given_question(entities, **{**ends, "question_entities": ["drug:7"]})) == "no_head"


def test_entities_along_a_chain_differ() -> None:
    passages = [("", "Zimbelot met Quorvath"), ("", "Quorvath sang"), ("", "Quorvath of Ostrela")]
    assert error_code(text_question(passages, asked="Who knew Zimbelot?", hops=3)) == "no_link"
    entities = [["drug:1", "gene:1"], ["gene:1"], ["gene:1", "gene:9"]]
    ends = {"answer_entity": "gene:9", "question_entities": ["drug:1"], "hops": 3}
    assert error_code(given_question(entities, **ends)) == "no_link"


def test_a_weaker_link_steps_in_where_the_strongest_is_used_elsewhere() -> None:
    passages = [("", "Zimbelot met Quorvath"), ("", "Quorvath and Brimlad"), ("", "Quorvath and Brimlad of Ostrela")]
    (chain,) = find_candidates(text_question(passages, asked="Who knew Zimbelot?", hops=3)).chains
    assert keys(chain) == (" quorvath ", " brimlad ")


def test_four_hops_are_found_too() -> None:
    entities = [["drug:1", "a:1"], ["a:1", "a:2"], ["a:2", "a:3"], ["a:3", "gene:9"]]
    question = given_question(entities, answer_entity="gene:9", question_entities=["drug:1"], hops=4)
    (chain,) = find_candidates(question).chains
    assert (chain.passages, keys(chain)) == ((0, 1, 2, 3), ("a:1", "a:2", "a:3"))


# ---- link types and settings

TYPED = given_question(
    [["drug:1", "gene:1", "drug:5"], ["gene:1", "drug:2", "drug:5", "gene:2"], ["drug:2", "gene:2", "gene:9"]],
    answer_entity="gene:9",
    question_entities=["drug:1"],
    link_types=["gene", "drug"],
    hops=3,
)


def test_links_obey_their_types_first_to_last() -> None:
    (chain,) = find_candidates(TYPED).chains
    assert keys(chain) == ("gene:1", "drug:2")


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (("drug", "gene"), {("drug:5", "gene:2")}),
        (("gene", "gene"), {("gene:1", "gene:2")}),
        ((), {("gene:1", "drug:2"), ("gene:1", "gene:2"), ("drug:5", "drug:2"), ("drug:5", "gene:2")}),
    ],
)
def test_settings_override_the_link_types(types: tuple[str, ...], expected: set[tuple[str, ...]]) -> None:
    assert set(map(keys, find_candidates(TYPED, CandidateSettings(link_types=types)).chains)) == expected


def test_a_type_is_the_whole_beginning_of_an_id() -> None:
    question = given_question([["gen:1", "genes:2"], ["gen:1", "genes:2", "x:9"]], answer_entity="x:9")
    (chain,) = find_candidates(question, CandidateSettings(link_types=["gen"])).chains
    assert keys(chain) == ("gen:1",)


def test_names_found_in_the_text_have_no_type() -> None:
    question = text_question([("", "by Quorvath"), ("", "Quorvath of Ostrela")], link_types=["gene"])
    assert error_code(question) == "no_link"


def test_settings_override_the_hops(bridge_question: Question) -> None:
    assert {len(row) for row in rows(find_candidates(bridge_question, CandidateSettings(hops=3)))} == {3}
    assert rows(find_candidates(three_hops(), CandidateSettings(hops=2))) == [(1, 2)]


def test_types_that_do_not_fit_the_hops_are_an_error() -> None:
    assert error_code(TYPED, CandidateSettings(link_types=["gene"])) == "bad_field"


@pytest.mark.parametrize(
    ("passages", "code"),
    [
        ([("", "Quorvath of Ostrela")], "too_few_passages"),
        ([("", "by Quorvath"), ("", "Quorvath")], "no_tail"),
        ([("", "by Quorvath"), ("", "Brimlad of Ostrela")], "no_link"),
    ],
)
def test_an_empty_c_says_why(passages: list[tuple[str, str]], code: str) -> None:
    assert error_code(text_question(passages)) == code


def test_links_below_the_least_weight_do_not_count() -> None:
    question = text_question([("", "by Quorvath"), ("", "Quorvath of Ostrela")])
    weight = find_candidates(question).chains[0].weight
    assert len(find_candidates(question, CandidateSettings(min_weight=weight)).chains) == 1
    assert error_code(question, CandidateSettings(min_weight=weight + 0.1)) == "no_link"


def test_two_hop_chains_do_not_depend_on_the_question(bridge_question: Question) -> None:
    other = bridge_question.model_copy(update={"question": "What rains in autumn?"})
    assert rows(find_candidates(other)) == rows(find_candidates(bridge_question))


def test_a_limit_keeps_the_heaviest_chains(bridge_question: Question) -> None:
    everything = rows(find_candidates(bridge_question))
    for limit in (1, 2, 3, 4):
        assert rows(find_candidates(bridge_question, CandidateSettings(limit=limit))) == everything[:limit]


def test_a_low_limit_does_not_lose_the_only_chain_among_stronger_dead_ends() -> None:
    dead_ends = [(f"Brimlad{letter}", "It ends here.") for letter in "abcdefgh"]
    tail = ("", f"Quorvath of Ostrela with {' and '.join(title for title, _ in dead_ends)}")
    passages = [("", "Zimbelot met Dexanir"), ("", "Dexanir met Quorvath"), tail, *dead_ends]
    question = text_question(passages, asked="Who knew Zimbelot?", hops=3)
    assert rows(find_candidates(question, CandidateSettings(limit=1))) == [(0, 1, 2)]


# ---- compared with brute force, from the definition


class Words:
    """A passage as lists of words. All its names are capitalised, or none is."""

    def __init__(self, title: list[str], text: list[str], is_capitalised: bool) -> None:
        self.title, self.text, self.is_capitalised = title, text, is_capitalised

    def row(self) -> tuple[str, str]:
        return " ".join(map(self.written, self.title)), " ".join(map(self.written, self.text))

    def written(self, word: str) -> str:
        return word.title() if self.is_capitalised and word not in FILLERS else word

    def place(self, words: Sequence[str]) -> tuple[list[str], int] | None:
        """The list that holds these words in a row, text before title, and where."""
        for where in (self.text, self.title):
            for start in range(len(where) - len(words) + 1):
                if where[start : start + len(words)] == list(words):
                    return where, start
        return None


NAMES = ["zuvok", "brimla", "quorth", "dexan"]
FILLERS = ["of", "the"]
RAREST = idf("zuvok")


def reference_links(one: Words, two: Words) -> dict[tuple[str, ...], float]:
    """Every name that two passages share, with the greatest weight it has."""
    links: dict[tuple[str, ...], float] = {}

    def add(words: Sequence[str], weight: float, widened: bool = True) -> None:
        if one.place(words) and two.place(words) and weight >= DEFAULT_MIN_WEIGHT:
            name = reference_widening(one, two, words) if widened else tuple(words)
            links[name] = max(weight, links.get(name, 0.0))

    both = one.is_capitalised and two.is_capitalised
    for passage in (one, two):
        if passage.title:
            add(passage.title, KINDS["title"].bonus + min(len(passage.title) * RAREST, MAX_PHRASE_IDF), widened=False)
        for word in passage.title:
            add([word], KINDS["title part"].bonus + RAREST)
        for pair in pairwise(passage.text):
            if both and not set(pair) & set(FILLERS):
                add(pair, KINDS["name"].bonus + min(1.5 * RAREST, MAX_PHRASE_IDF))
    for word in NAMES:
        add([word], (KINDS["name"].bonus if both else KINDS["word"].bonus) + RAREST)
    return links


def reference_widening(one: Words, two: Words, words: Sequence[str]) -> tuple[str, ...]:
    first, second = one.place(words), two.place(words)
    assert first and second
    (a, i), (b, j), size = first, second, len(words)
    if not (one.is_capitalised and two.is_capitalised):
        return tuple(words)
    before = zip(reversed(a[:i]), reversed(b[:j]), strict=False)
    after = zip(a[i + size :], b[j + size :], strict=False)
    left, right = (sum(1 for _ in takewhile(is_shared_name, pairs)) for pairs in (before, after))
    return tuple(a[i - left : i + size + right])


def is_shared_name(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1] and pair[0] not in FILLERS


def reference_text_chains(
    passages: list[Words], answer: str, asked: list[str], hops: int
) -> dict[tuple[int, ...], float]:
    """Every row of passages that is a chain, with the greatest sum of weights over all choices of different names."""
    chains: dict[tuple[int, ...], float] = {}
    for row in permutations(range(len(passages)), hops):
        if not passages[row[-1]].place([answer]):
            continue
        if hops > 2 and not any(passages[row[0]].place([name]) for name in asked):
            continue
        steps = [reference_links(passages[a], passages[b]).items() for a, b in pairwise(row)]
        sums = [
            sum(w for _, w in choice) for choice in product(*steps) if len({name for name, _ in choice}) == hops - 1
        ]
        if sums:
            chains[row] = max(sums)
    return chains


def found_or_nothing(question: Question) -> Sequence[Candidate]:
    try:
        return find_candidates(question, EVERYTHING).chains
    except QuestionError as error:
        assert error.code in ("no_tail", "no_head", "no_link", "too_few_passages")
        return []


def assert_best_first(chains: Sequence[Candidate]) -> None:
    for chain, following in pairwise(chains):
        assert chain.weight >= following.weight - 1e-9


words_of_passages = st.builds(
    Words,
    title=st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
    text=st.lists(st.sampled_from([*NAMES, *FILLERS]), min_size=1, max_size=6),
    is_capitalised=st.sampled_from([True, True, True, False]),
)


@settings(max_examples=250)
@given(
    st.lists(words_of_passages, min_size=2, max_size=6),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2),
    st.integers(2, 4),
)
def test_c_from_texts_is_what_brute_force_finds(
    passages: list[Words], answer: str, asked: list[str], hops: int
) -> None:
    # Other entries, as what nearly all passages share does not link, nor what many parts of documents share.
    rows = [*(p.row() for p in passages), *((f"Other{n}", f"Other{n} is.") for n in range(30))]
    question = text_question(rows, answer=answer, asked=f"who {' or '.join(asked)}?", hops=hops)
    assume(not find_overlaps([PassageView(passage) for passage in question.passages]))  # which have tests of their own
    chains = found_or_nothing(question)
    assert len({chain.passages for chain in chains}) == len(chains)
    assert {chain.passages: pytest.approx(chain.weight) for chain in chains} == reference_text_chains(
        passages, answer, asked, hops
    )
    for chain in chains:
        assert len(set(keys(chain))) == hops - 1
        assert chain.weight == pytest.approx(sum(link.weight for link in chain.links))
    assert_best_first(chains)


ENTITIES = ["gene:1", "gene:2", "gene:3", "drug:1", "drug:2", "drug:3"]


def reference_given_chains(
    entities: Sequence[set[str]], answer: str, asked: set[str], hops: int, types: Sequence[str] | None
) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
    """Every row of passages with every choice of different shared entities; the chain's two ends do not link."""
    for row in permutations(range(len(entities)), hops):
        if answer not in entities[row[-1]] or (hops > 2 and not asked & entities[row[0]]):
            continue
        for choice in product(*(entities[a] & entities[b] for a, b in pairwise(row))):
            ends = {answer} | (asked if hops > 2 else set())
            fits = types is None or all(e.split(":")[0] == kind for e, kind in zip(choice, types, strict=True))
            if fits and len(set(choice)) == len(choice) and not ends & set(choice):
                yield row, choice


@settings(max_examples=250)
@given(
    st.lists(st.sets(st.sampled_from(ENTITIES), max_size=4), min_size=2, max_size=6),
    st.sampled_from(ENTITIES),
    st.sets(st.sampled_from(ENTITIES), min_size=1, max_size=2),
    st.integers(2, 4),
    st.data(),
)
def test_c_from_given_entities_is_what_brute_force_finds(
    entities: list[set[str]], answer: str, asked: set[str], hops: int, data: st.DataObject
) -> None:
    kinds = st.lists(st.sampled_from(["gene", "drug"]), min_size=hops - 1, max_size=hops - 1)
    types = data.draw(st.one_of(st.none(), kinds))
    question = given_question(
        [sorted(held) for held in entities],
        answer_entity=answer,
        question_entities=sorted(asked),
        hops=hops,
        link_types=types,
    )
    chains = found_or_nothing(question)
    found = [(chain.passages, keys(chain)) for chain in chains]
    assert sorted(found) == sorted(reference_given_chains(entities, answer, asked, hops, types))
    assert_best_first(chains)


# ---- mentions of links

PIECES = [
    *("Quorvath", "QUORVATH", "Zimbelo\u0301t", "Zimbelót", "Straßenka", "ﬁlmoruk", "Fılmoruk", "Ölvark", "x\u030cy"),
    *(
        "東京",
        "京都",
        "ไทย",
        "हिन्दी",
        "ﾞ",
        "\ufe70",
        "\u0958",
        "e\u0301",
        "1,234",
        "🎻",
        "\u200d",
        "\x00",
        "\x01",
        "\x1c",
    ),
    *("of", " ", ". ", ", ", "-", "\n"),
]
written = st.lists(
    st.one_of(st.sampled_from(PIECES), st.just(" "), st.characters(exclude_categories=["Cs"])), max_size=12
)
texts = written.map(lambda pieces: "".join(pieces) + " Ostrela")


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.one_of(st.just(""), written.map("".join)), texts), min_size=3, max_size=4), st.integers(2, 3)
)
def test_every_mention_of_a_link_cuts_out_the_words_of_the_link(passages: list[tuple[str, str]], hops: int) -> None:
    question = text_question(passages, asked="Who knew ostrela?", hops=hops)
    for chain in found_or_nothing(question):
        for edge, before, after in zip(chain.edges, chain.passages, chain.passages[1:], strict=False):
            assert phrase(edge.link.entity) == edge.key
            for number, span in zip((before, after), edge.link.mentions, strict=True):
                text = question.passages[number].text
                if span is None:
                    assert edge.key not in phrase(text)
                else:  # underscores of emphasis are no part of a link, and a key is folded already
                    shown = phrase(text[slice(*span)].replace("_", " "))
                    assert shown.split() == edge.key.replace("_", " ").split()


@settings(max_examples=100)
@given(st.lists(st.tuples(texts, st.data()), min_size=2, max_size=2))
def test_every_mention_of_a_given_link_is_a_given_mention(rows: list[tuple[str, st.DataObject]]) -> None:
    passages = []
    for number, (text, data) in enumerate(rows):
        starts = data.draw(st.lists(st.integers(0, len(text) - 1), min_size=1, max_size=3))
        mentions = [Mention(entity="gene:1", start=s, end=data.draw(st.integers(s + 1, len(text)))) for s in starts]
        passages.append(Passage(id=str(number), text=text, mentions=mentions))
    question = Question(id="q", question="Who?", answer="Ostrela", link_types=["gene"], passages=passages)
    for chain in find_candidates(question).chains:
        for number, span in zip(chain.passages, chain.links[0].mentions, strict=True):
            assert span in [(m.start, m.end) for m in passages[number].mentions]


# ---- 1,000 passages

TEN_TIMES = 10 * 1.5
"""ten times the passages may take ten times as much, and half as much again for the noise of measuring milliseconds"""
FILLING = "It has been said of this that many were there and some of them went on to the other side. " * 2


def rare(number: int) -> str:
    """A name for a number, of letters alone."""
    return "Zu" + "".join("bdfgklmnpr"[int(digit)] + "aeiouaeiou"[int(digit)] for digit in str(number))


SHAPES: dict[str, Callable[[int], dict[str, object]]] = {
    "one name shared by all": lambda n: {"text": f"{FILLING} by Quorvath with {rare(n)} of Ostrela"},
    "two names shared by all": lambda n: {"text": f"{FILLING} by Quorvath with Zimbelot of Ostrela {rare(n)}"},
    "one title for all": lambda n: {"title": "Quorvath", "text": f"{FILLING} Quorvath with {rare(n)} of Ostrela"},
    "a title part for all": lambda n: {"title": f"Quorvath {rare(n)}", "text": f"{FILLING} a Zimbelot of Ostrela"},
    "one tail": lambda n: {"text": f"{FILLING} by Quorvath and Zimbelot with {rare(n)} {'Ostrela' * (n == 0)}"},
    "a row of neighbours": lambda n: {
        "title": rare(n),
        "text": f"{FILLING} near {rare(n + 1)} {'Ostrela' * (n % 3 == 0)}",
    },
    "given entities": lambda n: {
        "text": f"Quorvath {FILLING}",
        "mentions": [{"entity": e, "start": 0, "end": 8} for e in ("gene:1", "gene:2", f"gene:{n + 3}", "drug:9")],
    },
}


def large_question(shape: str, size: int, hops: int) -> Question:
    passages = [Passage.model_validate({"id": str(n), **SHAPES[shape](n)}) for n in range(size)]
    ends = {"answer_entity": "drug:9", "question_entities": ["gene:1"]} if shape == "given entities" else {}
    asked = f"Who knew Quorvath or {rare(7)}?"
    return Question(id="q", question=asked, answer="Ostrela", hops=hops, passages=passages, **ends)


def calls(question: Question) -> int:
    """How many functions are called and generators resumed: what time would tell, without a clock."""
    count = 0

    def on_event(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(on_event)
    try:
        found_by_default(question)
    finally:
        sys.setprofile(None)
    return count


def peak_memory(question: Question) -> int:
    tracemalloc.start()
    try:
        found_by_default(question)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def found_by_default(question: Question) -> int:
    try:
        return len(find_candidates(question).chains)
    except QuestionError:
        return 0


@pytest.mark.parametrize("hops", [2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_thousand_passages_take_no_more_than_ten_times_the_work_of_a_hundred(shape: str, hops: int) -> None:
    small, large = large_question(shape, 100, hops), large_question(shape, 1000, hops)
    found_by_default(small)  # what is computed once for all questions
    assert calls(large) <= TEN_TIMES * calls(small)


@pytest.mark.parametrize(
    ("shape", "hops"),
    [("one name shared by all", 2), ("one name shared by all", 3), ("one title for all", 2), ("given entities", 2)],
)
def test_a_thousand_passages_take_no_more_than_ten_times_the_memory_of_a_hundred(shape: str, hops: int) -> None:
    small, large = large_question(shape, 100, hops), large_question(shape, 1000, hops)
    assert peak_memory(large) <= TEN_TIMES * peak_memory(small)


def test_nothing_but_the_limit_cuts_c() -> None:
    question = large_question("one tail", 300, 2)
    # entries about their titles: what many parts of documents share would not link
    others = [Passage(id=f"other {n}", title=f"Other{n}", text=f"Other{n} is.") for n in range(100)]
    found = find_candidates(question.model_copy(update={"passages": [*question.passages, *others]}))
    assert sorted(rows(found)) == [(head, 0) for head in range(1, 300)]


@pytest.mark.parametrize("hops", [2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_more_passages_never_lose_the_chains_of_fewer(shape: str, hops: int) -> None:
    assert found_by_default(large_question(shape, 300, hops)) >= found_by_default(large_question(shape, 30, hops))


# ---- real data


def test_the_gold_chain_of_bridge_questions_is_in_c(real_data: Path) -> None:
    path = real_data / "hotpotqa" / "open.json.gz"
    questions = list(islice(read_questions(path, only=["bridge"]), 300))
    golds = read_gold(path, [])
    held = [
        any(is_correct([question.passages[p].id for p in row], [], golds[question.id]) for row in rows(found))
        for question in questions
        for found in [find_candidates(question)]
    ]
    assert len(held) == 300
    assert sum(held) >= 0.97 * 300


def test_every_gold_chain_of_drughop_is_in_c(real_data: Path) -> None:
    folder = real_data / "drughop"
    questions = read_questions(folder / "open.jsonl.gz", passages=folder / "passages.jsonl.gz")
    with gzip.open(folder / "open.gold.jsonl.gz", "rt", encoding="utf-8") as lines:
        golds = {row["id"]: row["chains"] for row in map(json.loads, lines)}
    checked = 0
    for question in islice(questions, 200):
        found = {
            (tuple(question.passages[p].id for p in chain.passages), keys(chain))
            for chain in find_candidates(question).chains
        }
        wanted = {(tuple(chain["passages"]), tuple(chain["links"])) for chain in golds[question.id]}
        assert wanted <= found
        checked += len(wanted)
    assert checked >= 200


@pytest.mark.parametrize(
    "wrong",
    [{"hops": 0}, {"hops": 9}, {"limit": 0}, {"limit": 2**63}, {"min_weight": float("nan")}, {"linkers": "titles"}],
)
def test_a_wrong_setting_is_said_at_once(wrong: dict[str, object]) -> None:
    with pytest.raises(RechainError):
        CandidateSettings(**wrong)


def test_other_hops_than_the_files_set_its_link_types_aside() -> None:
    mentions = [{"entity": "gene:1", "start": 0, "end": 1}]
    passages = [Passage.model_validate({"id": name, "text": "A Ostrela", "mentions": mentions}) for name in "ab"]
    question = Question(id="q", question="?", answer="Ostrela", hops=3, link_types=["drug", "drug"], passages=passages)
    assert len(find_candidates(question, CandidateSettings(hops=2)).chains) == 2


# ---- any shape

LADDER = [
    ("", "Zimbelot met Quorvath"),
    ("", "Quorvath met Brimlad"),
    ("", "Brimlad met Vexlor"),
    ("", "Vexlor saw Ostrela"),
]
ASKED = "Who knew Zimbelot, Quorvath and Brimlad?"


def of_shape(found: Candidates, shape: str = "chain") -> list[tuple[int, ...]]:
    return [chain.passages for chain in found.chains if chain.shape == shape]


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_where_someone_says_the_hops_only_those_are_found(hops: int) -> None:
    for said, told in ((hops, None), (None, CandidateSettings(hops=hops)), (2, CandidateSettings(hops=hops))):
        question = text_question(LADDER, asked=ASKED, hops=said)
        assert {len(row) for row in rows(find_evidence(question, told))} == {hops}
        assert {len(row) for row in rows(find_candidates(question, told))} == {hops}


def test_single_passages_are_those_that_hold_the_answer() -> None:
    found = find_candidates(text_question([("", "of Ostrela"), ("", "by Quorvath"), ("", "in Ostrela")], hops=1))
    assert [(chain.passages, chain.shape, chain.links) for chain in found.chains] == [
        ((0,), "single", []),
        ((2,), "single", []),
    ]


def test_passages_side_by_side_need_no_link() -> None:
    passages = [("Quorvath", "of 1900"), ("Vexlor", "of 1910"), ("Ostrela", "of 1920")]
    question = text_question(passages, asked="Which is older, Vexlor or Quorvath?", answer="Quorvath")
    two = find_evidence(question.model_copy(update={"hops": 2}))
    assert {chain.shape for chain in two.chains} == {"parallel"}
    assert (two.chains[0].passages, two.chains[0].links) == ((1, 0), [])
    assert error_code(question) == "no_link"


@pytest.mark.parametrize("answer", ["yes", "No."])
def test_a_judgement_of_things_that_the_question_names_has_evidence(answer: str) -> None:
    passages = [("Quorvath", "of 1900"), ("Vexlor", "of 1910"), ("Ostrela", "of 1920")]
    question = text_question(passages, asked="Is Vexlor older than Quorvath?", answer=answer)
    found = find_evidence(question)
    assert found.holdings.is_judgement
    assert found.chains[0].shape == "parallel" and rows(found)[0] == (1, 0)
    with pytest.raises(QuestionError, match=f"no tail: the answer '{answer}' judges") as caught:
        find_candidates(question)
    assert caught.value.code == "no_tail"
    with pytest.raises(QuestionError, match="no passage holds what the question says"):
        find_evidence(question.model_copy(update={"question": "Does it rain in Ysgar?"}))


@pytest.mark.parametrize("answer", ["", "I don't know."])
def test_where_no_answer_is_given_nothing_is_sought(answer: str) -> None:
    for find in (find_candidates, find_evidence):
        with pytest.raises(QuestionError) as caught:
            find(text_question(LADDER, asked=ASKED, answer=answer))
        assert caught.value.code == "no_answer"


def test_an_answer_of_a_sentence_has_the_chains_of_its_telling_words() -> None:
    short, long = (find_evidence(text_question(LADDER, asked=ASKED, answer=a)) for a in ("Ostrela", "It's Ostrela."))
    assert rows(short) == rows(long)
    assert [held.holdings[3].match for found in (short, long) for held in found.holdings.claims] == ["phrase", "words"]


def test_meaning_finds_the_tail_that_words_do_not() -> None:
    def meaning(claims: Sequence[str], sentences: Sequence[str]) -> list[list[float]]:
        return [[float("Vexlor saw" in sentence) for sentence in sentences] for _ in claims]

    question = text_question(LADDER, asked=ASKED, answer="Some other town")
    assert list(find_evidence(question, meaning=meaning).tails) == [3]
    with pytest.raises(QuestionError, match="no tail"):
        find_evidence(question)


def test_link_types_decide_on_the_hops() -> None:
    entities = [["drug:1", "gene:1"], ["gene:1", "gene:9", "drug:1"]]
    ends = {"answer_entity": "gene:9", "question_entities": ["drug:1"], "link_types": ["gene"]}
    assert rows(find_evidence(given_question(entities, **ends))) == [(0, 1)]


def test_lengths_without_a_chain_of_given_entities_do_not_disturb_the_others() -> None:
    entities = [["drug:1", "gene:1"], ["gene:1", "drug:2"], ["drug:2", "gene:9"]]
    ends = {"answer_entity": "gene:9", "question_entities": ["drug:1"]}
    assert rows(find_evidence(given_question(entities, **ends))) == [(1, 2), (0, 1, 2)]
    assert find_evidence(given_question(entities, **ends)).hops == 2


@pytest.mark.parametrize(
    ("passages", "code"),
    [([], "too_few_passages"), ([("", "by Quorvath"), ("", "Quorvath sang")], "no_tail")],
)
def test_without_evidence_an_error_says_why(passages: list[tuple[str, str]], code: str) -> None:
    with pytest.raises(QuestionError) as caught:
        find_evidence(text_question(passages, asked="Who knew?"))
    assert caught.value.code == error_code(text_question(passages, asked="Who knew?")) == code


def test_one_passage_is_evidence_though_it_makes_no_chain() -> None:
    question = text_question([("", "of Ostrela")], asked="Who knew?")
    assert rows(find_evidence(question)) == [(0,)]
    with pytest.raises(QuestionError, match="1 passages cannot make a chain of 2"):
        find_evidence(question.model_copy(update={"hops": 2}))


def test_a_judgement_without_a_passage_that_holds_the_question_has_no_single() -> None:
    question = text_question([("", "of the"), ("", "in the")], asked="Is Vexlor older?", answer="yes", hops=1)
    assert error_code(question) == "no_tail"
