"""Entities given with the data."""

from rechain.linking.anchors import MENTION, find
from rechain.linking.linkers import Context, Entity
from rechain.schema import Mention, Passage
from rechain.text.passages import PassageView
from rechain.text.rarity import idf


def view(number: int, text: str, *entities: tuple[str, str], title: str = "") -> PassageView:
    mentions = [Mention(entity=e, start=text.index(name), end=text.index(name) + len(name)) for e, name in entities]
    return PassageView(Passage(id=f"p{number}", title=title, text=text, mentions=mentions))


def found(*views: PassageView) -> dict[str, Entity]:
    return {entity.name: entity for entity in find(Context(views, range(len(views)), 0.0), {})}


def test_an_entity_that_two_passages_mention_is_found_whatever_it_is_called_there() -> None:
    one, two = view(0, "p53 acts", ("gene:1", "p53")), view(1, "TP53 rests", ("gene:1", "TP53"))
    assert found(one, two)["gene:1"].holders == [0, 1]


def test_an_entity_of_one_passage_links_nothing() -> None:
    assert found(view(0, "p53 acts", ("gene:1", "p53")), view(1, "p53 rests", ("gene:2", "p53"))) == {}


def test_several_mentions_in_one_passage_count_once() -> None:
    text = "p53 and TP53"
    assert found(view(0, text, ("gene:1", "p53"), ("gene:1", "TP53")), view(1, "none here")) == {}


def test_a_passage_holds_the_entity_that_is_its_title_or_id() -> None:
    anchor = view(0, "She lives in Prague now", ("Prague", "Prague"), ("p2", "She"))
    entities = found(anchor, view(1, "A city.", title="Prague"), view(2, "A woman."))
    assert entities["Prague"].holders == [0, 1]
    assert entities["p2"].holders == [0, 2]


def test_data_without_mentions_gives_nothing() -> None:
    assert found(view(0, "Prague", title="Prague"), view(1, "Prague", title="Prague")) == {}


def test_the_weight_is_that_of_a_given_entity_plus_the_rarity_of_its_name() -> None:
    one, two = view(0, "the river", ("e", "river")), view(1, "the river", ("e", "river"))
    entity = found(one, two)["e"]
    assert entity.weight == MENTION.bonus + idf("river")
    assert (entity.kind, entity.is_given) == ("mention", True)
