"""The list of questions: every filter, the search, and what two sources say of the same question."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.web.models import HANG_S

from rechain.errors import QuestionError
from rechain.formats.datasets import Entry
from rechain.schema import Chain, Gold, GoldChain, Link, LinkKind, Passage, Problem, Question, Recovered, Verdict
from rechain.text.words import Text
from rechain.web.filters import CANNOT, Filters
from rechain.web.question_index import PAGE_SIZE, Index, Row
from rechain.web.question_rows import Stored


def asked(
    name: str, text: str = "Who was it?", answer: str = "Anna", titles: Sequence[str] = ("Head", "Tail", "Other")
) -> Question:
    passages = [Passage(id=str(number), title=title, text="Text.") for number, title in enumerate(titles)]
    return Question(id=name, question=text, answer=answer, passages=passages)


def entry(content: Question | QuestionError, name: str | None = None) -> tuple[Entry, Gold | None]:
    return Entry("", content.id if isinstance(content, Question) else name, content), None


def index_of(*questions: Question, golds: Sequence[Gold] = ()) -> Index:
    index, known = Index(), {gold.id: gold for gold in golds}
    index.add((Entry("", question.id, question), known.get(question.id)) for question in questions)
    return index


def chain(*passages: str, kind: LinkKind = "name", confidence: float | None = None, entity: str = "Bob") -> Chain:
    link = Link(entity=entity, kind=kind, weight=8.0, mentions=(None, None))
    return Chain(passages=list(passages), links=[link] * (len(passages) - 1), score=1.0, confidence=confidence)


def tell(
    index: Index, source: int, name: str, *chains: Chain, error: str | None = None, verdict: Verdict | None = None
) -> None:
    problem = None if error is None else Problem(code="no_tail", message=error)
    stored = index.named(name)
    assert stored is not None
    index.store(source, [(stored, Recovered(id=name, verdict=verdict, chains=list(chains), error=problem))])


def ids(index: Index, wanted: Filters, source: int = 0) -> list[str]:
    listing = index.select(source, wanted)
    assert listing.total == len(listing.rows)
    return [row.id for row in listing.rows]


def test_questions_stand_in_the_order_of_their_file_and_come_back_as_they_were() -> None:
    questions = [asked("b", "Ü?\0"), asked("a", titles=["", "x"])]
    index = index_of(*questions)
    assert (len(index), index.ids()) == (2, ["b", "a"])
    assert [index.at(place).content for place in (0, 1)] == questions
    assert index.named("a") == Stored(1, "a", questions[1], None)
    assert index.named("c") is None
    index.add([entry(asked("c"))])
    assert (index.ids(), index.at(2).id) == (["b", "a", "c"], "c")


def test_ids_that_are_missing_or_taken_name_the_place() -> None:
    index = Index()
    index.add([entry(asked("a")), entry(asked("a")), entry(QuestionError("bad_json", "not JSON."), None)])
    assert index.ids() == ["a", "a #2", "#3"]


def test_an_id_that_looks_like_a_made_up_one_is_no_trouble() -> None:
    index = index_of(asked("a #3"), asked("a"), asked("a"))
    assert len(set(index.ids())) == 3
    assert [index.at(place).content.id for place in range(3)] == index.ids()  # type: ignore[union-attr]


def test_a_question_that_cannot_be_read_is_listed_and_found_by_its_error() -> None:
    index = Index()
    index.add([entry(asked("a")), entry(QuestionError("bad_field", "line 2: hops is peculiar."), "b")])
    stored = index.at(1)
    assert isinstance(stored.content, QuestionError)
    assert (stored.content.code, str(stored.content)) == ("bad_field", "line 2: hops is peculiar.")
    assert ids(index, Filters(text="peculiar")) == ["b"]
    assert index.select(0, Filters()).rows[1] == Row(1, "b", "line 2: hops is peculiar.", "", *[None] * 8)


def test_what_fails_while_questions_are_added_leaves_none_of_them() -> None:
    def broken() -> object:
        yield entry(asked("b"))
        raise ValueError

    index = index_of(asked("a"))
    with pytest.raises(ValueError):
        index.add(broken())  # type: ignore[arg-type]
    assert (index.ids(), ids(index, Filters(text="b"))) == (["a"], [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("dvorak", ["accents"]),
        ("DVOŘÁK", ["accents"]),
        ("dvor", ["accents"]),
        ("symphony dvo", ["accents"]),
        ("symphony anna", ["accents"]),  # question and answer
        ("dvorak nowhere", []),
        ("vorak", []),
        ("c++", ["signs"]),
        ("c#", ["signs"]),
        ("1234", ["signs"]),
        ("1,234", ["signs"]),
        ("北京", ["signs"]),
        ("slovak dance", ["titles"]),
        ("titles", ["titles"]),  # the id
        ("", ["accents", "signs", "titles"]),
        ("?! -- *", ["accents", "signs", "titles"]),
        ('"dvorak"', ["accents"]),
        ('dvorak"', ["accents"]),
        ("dvorak*", ["accents"]),
        ("-dvorak", ["accents"]),
        ("words:dvorak", []),
        ("dvorak AND symphony", []),  # "and" is a word like others
        ("NEAR(dvorak symphony)", []),
        ("dvorak OR nothing", []),
        ("'; DROP TABLE questions; --", []),
        ("(((", ["accents", "signs", "titles"]),
        ("^dvorak", ["accents"]),
        ("dvorak\0", ["accents"]),
        ("{dvorak} + \\ %", ["accents"]),
    ],
)
def test_search(text: str, found: list[str]) -> None:
    index = index_of(
        asked("accents", "Which Symphony did Dvořák write?"),
        asked("signs", "C++, C# or 1,234?", answer="北京"),
        asked("titles", titles=["Slovak", "Dances"]),
    )
    assert ids(index, Filters(text=text)) == found


@settings(max_examples=60)
@given(st.text(min_size=1, max_size=20).filter(str.strip))
@example("\u0e33")  # a character that folds to two
def test_every_word_of_a_question_finds_it(text: str) -> None:
    index = index_of(asked("1", text=text))
    for word in Text(text).words:
        # Folded, Thai U+0E33 is a mark and a vowel; the mark begins no word that is typed, so the whole is searched.
        typed = word if Text(word).words == [word] else text
        assert ids(index, Filters(text=typed)) == ["1"]
        assert ids(index, Filters(text=typed[:1])) == ["1"]


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30))
def test_no_search_is_a_mistake(text: str) -> None:
    assert len(ids(index_of(asked("1")), Filters(text=text))) <= 1


def test_a_search_of_thousands_of_words_is_no_mistake() -> None:
    index = index_of(asked("1"), asked("2", text="Where?"))
    assert ids(index, Filters.model_construct(text="who " * 5000)) == ["1"]


@pytest.fixture
def judged() -> Index:
    """Right and sure, wrong and less sure, without a chain, and not looked for yet."""
    golds = [
        Gold(id=name, chains=[GoldChain(passages=["0", "1"])], same="passages") for name in ("right", "wrong", "none")
    ]
    index = index_of(*(asked(name) for name in ("right", "wrong", "none", "later")), golds=golds)
    both = chain("0", "1", kind="title part", confidence=0.9), chain("0", "2", kind="word")
    tell(index, 0, "right", *both, verdict="supported")
    beside = chain("0", "2", kind="title", confidence=0.4).model_copy(update={"shape": "parallel"})
    tell(index, 0, "wrong", beside, verdict="partly")
    tell(index, 0, "none", error="no tail", verdict="unsupported")
    return index


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Filters(), ["right", "wrong", "none", "later"]),
        (Filters(min_confidence=0.4), ["right", "wrong"]),
        (Filters(min_confidence=0.41), ["right"]),
        (Filters(max_confidence=0.4), ["wrong"]),
        (Filters(min_confidence=0.0, max_confidence=1.0), ["right", "wrong"]),
        (Filters(min_confidence=0.9, max_confidence=0.4), []),
        (Filters(judgement="right"), ["right"]),
        (Filters(judgement="wrong"), ["wrong", "none"]),
        (Filters(kind="title"), ["wrong"]),
        (Filters(kind="title part"), ["right"]),
        (Filters(kind="word"), []),  # that of the best chain alone
        (Filters(verdict="partly"), ["wrong"]),
        (Filters(verdict="unsupported"), ["none"]),
        (Filters(verdict="no_answer"), []),
        (Filters(shape="chain"), ["right"]),
        (Filters(shape="parallel"), ["wrong"]),
        (Filters(shape="single"), []),
        (Filters(has_chain=True), ["right", "wrong"]),
        (Filters(has_chain=False), ["none"]),
        (Filters(text="right", judgement="right", kind="title part", has_chain=True, min_confidence=0.5), ["right"]),
        (Filters(text="right", judgement="wrong"), []),
        (Filters(text="who", judgement="wrong", order="most confident"), ["wrong", "none"]),
        (Filters(order="least confident"), ["wrong", "right", "none", "later"]),
        (Filters(order="most confident"), ["right", "wrong", "none", "later"]),
        (Filters(tenth=9), ["right"]),
        (Filters(tenth=4), ["wrong"]),
        (Filters(hops=2), ["right", "wrong", "none"]),  # by gold
        (Filters(length=2), ["right", "wrong"]),
        (Filters(reason="no_tail"), ["none"]),
        (Filters(reason="not_sought"), ["later"]),
        (Filters(reverse=True), ["later", "none", "wrong", "right"]),
        (Filters(order="id"), ["later", "none", "right", "wrong"]),
        (Filters(order="id", reverse=True), ["wrong", "right", "none", "later"]),
        (Filters(order="judgement"), ["right", "wrong", "none", "later"]),
        (Filters(order="judgement", reverse=True), ["wrong", "none", "right", "later"]),  # none comes last in either
        (Filters(order="verdict"), ["wrong", "right", "none", "later"]),
        (Filters(order="chain", reverse=True), ["right", "wrong", "none", "later"]),
        (Filters(order="least confident", reverse=True), ["right", "wrong", "none", "later"]),
        (Filters(order="hops"), ["right", "wrong", "none", "later"]),
    ],
)
def test_filters(judged: Index, wanted: Filters, found: list[str]) -> None:
    assert ids(judged, wanted) == found


def test_texts_are_ordered_without_regard_to_case() -> None:
    index = index_of(asked("1", "b", "y"), asked("2", "C", "x"), asked("3", "A", "Z"))
    assert ids(index, Filters(order="question")) == ["3", "1", "2"]
    assert ids(index, Filters(order="answer", reverse=True)) == ["3", "1", "2"]


def test_questions_are_found_by_one_passage_that_holds_all_words() -> None:
    def told(name: str, *texts: str) -> Question:
        passages = [Passage(id=str(place), title=f"T{place}", text=text) for place, text in enumerate(texts)]
        return Question(id=name, question="Who?", answer="Anna", passages=passages)

    shared = "The Zorilla clock struck."
    index = index_of(told("a", "Nothing.", shared), told("b", shared, shared), told("c", "A zorilla.", "A clock."))
    assert ids(index, Filters(text="zorilla clock")) == []
    assert ids(index, Filters(text="zorilla clock", scope="passages")) == ["a", "b"]
    assert ids(index, Filters(text="zor", scope="passages")) == ["a", "b", "c"]
    assert ids(index, Filters(text="anna", scope="passages")) == ["a", "b", "c"]  # what finds a question finds it still
    assert index.passages_with('"zorilla"*', [0, 2]) == {0: 1, 2: 0}


def test_what_was_worked_out_does_not_outlive_a_change(judged: Index) -> None:
    wanted = Filters(judgement="right")
    before = judged.change
    assert ids(judged, wanted) == ["right"]
    assert judged.figures(0, wanted)["judgement"]["right"].questions == 1
    tell(judged, 0, "later", chain("0", "1", confidence=1.0))
    tell(judged, 0, "wrong", chain("0", "1", confidence=1.0))
    assert judged.change > before
    assert ids(judged, wanted) == ["right", "wrong"]
    assert judged.figures(0, wanted)["judgement"]["right"].questions == 2
    recovered = judged.recovered(0, 1)
    assert recovered is not None and recovered.chains == [chain("0", "1", confidence=1.0)]
    judged.add([entry(asked("new"))])
    assert ids(judged, Filters(has_chain=None, text="new")) == ["new"]


@pytest.mark.parametrize(
    ("content", "code", "is_apart"),
    [
        (QuestionError("bad_json", "not JSON."), "bad_json", True),
        (asked("b", answer=" "), "no_answer", True),
        (asked("b", answer="I do not know."), "no_answer", True),
        (asked("b", titles=()), "too_few_passages", True),
        (asked("b").model_copy(update={"hops": 4}), "too_few_passages", True),
        (asked("b").model_copy(update={"hops": 3}), "no_link", False),
        (asked("b"), "no_tail", False),
    ],
)
def test_questions_that_cannot_have_a_chain_are_neither_right_nor_wrong(
    content: Question | QuestionError, code: str, is_apart: bool
) -> None:
    index = Index()
    index.add([(Entry("", "b", content), Gold(id="b", chains=[GoldChain(passages=["0", "1"])], same="passages"))])
    stored = index.at(0)
    problem = Problem(code=code, message="none.")
    reasons = index.figures(0, Filters())["reason"]
    assert ("not_sought" in reasons) is not is_apart  # nobody need look to know it
    index.store(0, [(stored, Recovered(id="b", chains=[], error=problem))])
    assert index.select(0, Filters()).rows[0].judgement == (None if is_apart else "wrong")
    (reason,) = index.figures(0, Filters())["reason"]
    assert (reason in CANNOT) is is_apart


def test_a_row_tells_what_was_found(judged: Index) -> None:
    right, _, none, later = judged.select(0, Filters()).rows
    best = ("Head —Bob→ Tail", 0.9, "right", None, "supported", "chain")
    assert right == Row(0, "right", "Who was it?", "Anna", None, 2, *best)
    assert none[6:] == (None, None, "wrong", "no tail", "unsupported", None)
    assert later[6:] == (None, None, None, None, None, None)


def test_a_source_knows_nothing_of_what_another_found(judged: Index) -> None:
    assert ids(judged, Filters(has_chain=True), source=1) == []
    assert (judged.count_found(0), judged.count_found(1)) == (3, 0)
    assert judged.recovered(1, 0) is None
    tell(judged, 1, "right", chain("0", "1"))
    assert (judged.has_confidence(0), judged.has_confidence(1), judged.has_confidence(2)) == (True, False, False)


def test_a_chain_is_told_by_names_and_not_by_identifiers() -> None:
    mentions = [{"entity": "gene:1", "start": 0, "end": 8}]
    passages = [Passage(id=name, text="Ca(v)1.3 channels", mentions=mentions) for name in ("7", "8")]  # type: ignore[arg-type]
    index = index_of(Question(id="a", question="Who?", answer="Anna", passages=passages))
    tell(index, 0, "a", chain("7", "8", kind="mention", entity="gene:1"))
    assert index.select(0, Filters()).rows[0].summary == "“Ca(v)1.3 channels” —Ca(v)1.3→ “Ca(v)1.3 channels”"


def test_a_chain_of_passages_that_are_not_there_is_drawn_by_their_ids() -> None:
    index = index_of(asked("a"))
    tell(index, 0, "a", Chain(passages=["0", "x", "1"], links=[], score=0.0))
    assert index.select(0, Filters()).rows[0].summary == "Head → x → Tail"


def test_pages_hold_every_question_once() -> None:
    index = index_of(*(asked(str(number)) for number in range(2 * PAGE_SIZE + 3)))
    pages = [index.select(0, Filters(text="who"), number) for number in (1, 2, 3, 4)]
    assert [len(page.rows) for page in pages] == [PAGE_SIZE, PAGE_SIZE, 3, 0]
    assert {page.total for page in pages} == {2 * PAGE_SIZE + 3}
    assert [row.id for page in pages for row in page.rows] == index.ids()


def test_missing_tells_what_has_not_been_looked_for(judged: Index) -> None:
    assert judged.missing(0, 0, 9) == [3]
    assert judged.missing(1, 1, 2) == [1, 2]
    assert judged.missing(0, 4, 9) == []


def test_neighbours_and_the_place_in_the_list(judged: Index) -> None:
    assert [judged.neighbours(0, Filters(), place) for place in (0, 2, 3)] == [
        (0, None, "wrong", 4, True),
        (2, "wrong", "later", 4, True),
        (3, "none", None, 4, True),
    ]
    assert judged.neighbours(0, Filters(judgement="wrong"), 0) == (0, None, "wrong", 2, False)
    assert judged.neighbours(0, Filters(judgement="right"), 2) == (1, "right", None, 1, False)
    assert judged.neighbours(0, Filters(order="least confident"), 0) == (1, "wrong", "none", 4, True)
    assert judged.neighbours(0, Filters(reverse=True), 0) == (3, "wrong", None, 4, True)
    # it has no place there
    assert judged.neighbours(0, Filters(order="id", judgement="right"), 2) == (0, None, None, 1, False)


@pytest.fixture
def compared() -> Index:
    """Five questions on which two sources are both right, right and wrong, wrong and right, both wrong, not judged."""
    names = ("both", "first", "second", "neither", "unjudged", "alone")
    golds = [Gold(id=name, chains=[GoldChain(passages=["0", "1"])], same="passages") for name in names[:4]]
    index = index_of(*map(asked, names), golds=golds)
    good, bad = chain("0", "1"), chain("0", "2")
    for name, one, two in (("both", good, good), ("first", good, bad), ("second", bad, good), ("neither", bad, bad)):
        tell(index, 0, name, one)
        tell(index, 1, name, two)
    tell(index, 0, "unjudged")
    tell(index, 1, "unjudged")
    tell(index, 0, "alone", good)
    return index


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("different", ["first", "second"]),
        ("same", ["both", "neither", "unjudged"]),
        ("only the first right", ["first"]),
        ("only the second right", ["second"]),
        ("both right", ["both"]),
        ("both wrong", ["neither"]),
        ("all", ["both", "first", "second", "neither", "unjudged"]),
    ],
)
def test_comparisons(compared: Index, wanted: str, found: list[str]) -> None:
    pairs, total = compared.compare(0, 1, wanted), compared.count_compared(0, 1, wanted)
    assert ([pair.id for pair in pairs], total) == (found, len(found))
    assert compared.compare(0, 1, wanted, page=2) == []


def test_verdicts_are_counted_where_both_have_looked(compared: Index) -> None:
    counts = {("right", "right"): 1, ("right", "wrong"): 1, ("wrong", "right"): 1, ("wrong", "wrong"): 1, ("", ""): 1}
    assert compared.judgements(0, 1) == counts


def test_chains_are_the_same_by_passages_and_by_the_entities_that_the_data_gives() -> None:
    index = index_of(asked("names"), asked("ids"))
    for name, kind in (("names", "name"), ("ids", "mention")):
        tell(index, 0, name, chain("0", "1", kind=kind, entity="a"))  # type: ignore[arg-type]
        tell(index, 1, name, chain("0", "1", kind=kind, entity="b"))  # type: ignore[arg-type]
    assert [pair.id for pair in index.compare(0, 1, "same")] == ["names"]


def test_threads_read_while_others_write() -> None:
    index = index_of(*(asked(str(number)) for number in range(40)))
    problems: list[Exception] = []

    def trying(work: Callable[[int], None]) -> Thread:
        def run() -> None:
            try:
                for number in range(40):
                    work(number)
            except Exception as error:
                problems.append(error)

        return Thread(target=run)

    def read(number: int) -> None:
        listing = index.select(0, Filters(text="who", has_chain=True))
        assert listing.total <= 40
        assert index.at(number).id == str(number)

    threads = [trying(lambda number: tell(index, 0, str(number), chain("0", "1")))] + [trying(read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert index.count_found(0) == index.select(0, Filters(has_chain=True)).total == 40


def test_a_search_looks_for_every_word_once_and_for_the_longest_of_those_that_begin_alike() -> None:
    index = index_of(asked("a", "Paris in spring"), asked("b", "Paris in parts"))
    assert ids(index, Filters(text="p pa par paris p sp " * 10)) == ["a"]
    assert ids(index, Filters(text="i p")) == ["a", "b"]


def test_the_index_is_removed_from_the_disk_when_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    index = index_of(asked("a"))
    assert list(tmp_path.iterdir())
    index.close()
    assert not list(tmp_path.iterdir())


def test_a_reader_does_not_wait_for_whoever_writes() -> None:
    index = index_of(asked("a"))
    with index._transaction() as connection:
        connection.execute("DELETE FROM questions")
        reader = ThreadPoolExecutor(1).submit(index.ids)
        assert reader.result(HANG_S) == ["a"]
    assert index.ids() == []


def test_it_is_known_whether_there_is_chinese_text() -> None:
    index = Index()
    index.add([entry(asked("a"))])
    assert not index.has_chinese
    chinese = Question(id="b", question="Who?", answer="x", passages=[Passage(id="1", text="北京故宫")])
    index.add([entry(chinese), entry(asked("c"))])
    index.add([entry(asked("d"))])
    assert index.has_chinese


def test_the_folders_of_killed_servers_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    killed = (
        "import os; from rechain.web.question_index import Index; kept = Index(); kept.ids(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", killed])
    assert len(list(tmp_path.iterdir())) == 1
    one, two = Index(), Index()
    assert len(list(tmp_path.iterdir())) == 2
    one.close()
    two.close()
    assert list(tmp_path.iterdir()) == []
