"""Which passages are found for a question whose entities the data names."""

from collections.abc import Callable, Sequence

import pytest

from rechain.linking.content import read_contents
from rechain.recovery import Recoverer
from rechain.retrieval import FindSettings, Index, find_passages
from rechain.retrieval.index import open_shard
from rechain.retrieval.shard import Ask, Condition, Hit, Shard
from rechain.retrieval.vectors import Near
from rechain.schema import Mention, Passage, Question
from rechain.system.tensors import Array
from rechain.text.passages import PassageView


def passage(name: str, *entities: str) -> Passage:
    text = " ".join(entities)
    mentions, start = [], 0
    for entity in entities:
        mentions.append(Mention(entity=entity, start=start, end=start + len(entity)))
        start += len(entity) + 1
    return Passage(id=name, text=text, mentions=mentions)


@pytest.fixture
def index(make_index: Callable[[Sequence[Passage]], Index]) -> Index:
    return make_index(
        [
            passage("head", "drug:A", "gene:X"),
            passage("middle", "gene:X", "drug:C"),
            passage("tail", "drug:C", "gene:Y"),
            passage("dead end", "drug:A", "gene:Z"),
            passage("of another kind", "gene:X", "gene:Y"),
            passage("far", "drug:Q", "gene:R"),
        ]
    )


def question(**fields: object) -> Question:
    whole = {
        "id": "q",
        "question": "interacts_with A?",
        "answer": "Y",
        "question_entities": ["drug:A"],
        "answer_entity": "gene:Y",
        "hops": 3,
        "link_types": ["gene", "drug"],
        "passages": [],
        **fields,
    }
    return Question.model_validate(whole)


def test_passages_on_a_path_of_entities_are_found(index: Index) -> None:
    (found,) = find_passages(index, [question()])
    assert {passage.id for passage in found} == {"head", "middle", "tail"}


def test_the_chain_is_recovered_from_them(index: Index) -> None:
    (chain,) = Recoverer("lexical", corpus=index).recover(question())
    assert chain.passages == ["head", "middle", "tail"]
    assert [link.entity for link in chain.links] == ["gene:X", "drug:C"]


def test_without_types_any_entity_links(index: Index) -> None:
    (found,) = find_passages(index, [question(hops=2, link_types=None)])
    assert {passage.id for passage in found} == {"head", "of another kind"}


@pytest.mark.parametrize(
    "fields",
    [
        {"question_entities": ["drug:none"]},
        {"answer_entity": "gene:none"},
        {"question_entities": []},
        {"answer_entity": None},
        {"answer_entity": "gene:R"},
    ],
)
def test_words_find_passages_where_no_path_of_entities_does(index: Index, fields: dict[str, object]) -> None:
    asked = question(**fields)
    by_words = asked.model_copy(update={"question_entities": [], "answer_entity": None})
    (found,) = find_passages(index, [asked])
    assert "tail" in {passage.id for passage in found}
    assert [found] == find_passages(index, [by_words])


def test_one_passage_mentions_the_entities_of_question_and_answer_alike(
    make_index: Callable[[Sequence[Passage]], Index],
) -> None:
    index = make_index([passage("both", "drug:A", "gene:Y"), passage("one", "drug:A"), passage("other", "gene:Y")])
    asked = question(hops=1, link_types=None)
    (found,) = find_passages(index, [asked])
    assert [one.id for one in found] == ["both"]
    assert Recoverer("lexical", corpus=index).recover(asked)[0].passages == ["both"]


def test_as_many_passages_as_are_asked_for_lie_on_paths(make_index: Callable[[Sequence[Passage]], Index]) -> None:
    heads = [passage(f"head {n}", "drug:A", "gene:X") for n in range(70)]
    index = make_index([*heads, passage("tail", "gene:X", "gene:Y")])
    asked = [question(hops=2, link_types=["gene"])]
    for settings, most in ((None, 60), (FindSettings(), 60), (FindSettings(5), 5), (FindSettings(100), 71)):
        assert len(find_passages(index, asked, settings)[0]) == most


def test_rarer_links_come_first(make_index: Callable[[Sequence[Passage]], Index]) -> None:
    common = [passage(f"common {n}", "drug:A", "gene:common") for n in range(5)]
    index = make_index(
        [*common, passage("rare", "drug:A", "gene:rare"), passage("tail", "gene:Y", "gene:rare", "gene:common")]
    )
    (found,) = find_passages(index, [question(hops=2, link_types=["gene"])])
    assert [one.id for one in found[:2]] == ["rare", "tail"]


class Noting:
    """A shard that notes what it is asked to count, call by call."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.calls: list[list[str]] = []

    def search(self, asks: Sequence[Ask]) -> list[list[Hit]]:
        return self._shard.search(asks)

    def count(self, conditions: Sequence[Condition]) -> list[int]:
        self.calls.append([condition.field for condition in conditions])
        return self._shard.count(conditions)

    def nearest(self, queries: Array, limit: int) -> list[list[Near]]:
        return self._shard.nearest(queries, limit)


def test_what_is_asked_of_entities_is_counted_together(index: Index) -> None:
    shard = Noting(open_shard(index.folder, index.info, 0))
    spied = Recoverer("lexical", corpus=Index(index.folder, [shard], index.info)).recover(question())
    assert spied == Recoverer("lexical", corpus=index).recover(question())
    assert shard.calls == [["entity"] * 4]


def test_lines_of_all_passages_are_counted_together(make_index: Callable[[Sequence[Passage]], Index]) -> None:
    texts = [f"Menu {word}\nZorilla is by Quillfeather the {word}.\nFooter {word}" for word in ("elder", "younger")]
    here = make_index([Passage(id=str(number), text=text) for number, text in enumerate(texts)])
    shard = Noting(open_shard(here.folder, here.info, 0))
    there = Index(here.folder, [shard], here.info)
    views = [PassageView(there[name]) for name in ("0", "1")]
    read_contents(views, there)
    ((*fields,),) = shard.calls
    assert set(fields) == {"line"}
    assert len(fields) > 2
