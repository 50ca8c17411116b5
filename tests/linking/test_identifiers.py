"""Database identifiers that link passages."""

from rechain.candidates import CandidateSettings, find_candidates
from rechain.linking.identifiers import find
from rechain.linking.linkers import Context
from rechain.schema import Mention, Passage, Question
from rechain.text.passages import PassageView


def context(*texts: str) -> Context:
    views = [PassageView(Passage(id=str(number), text=text)) for number, text in enumerate(texts)]
    return Context(views, range(len(views)), 0.0)


def test_an_identifier_in_two_passages_is_found() -> None:
    (entity,) = find(context("DB00072 binds P04637", "P04637 acts", "DB00073 rests, not XP04637"), {})
    assert (entity.name, entity.kind, entity.holders) == ("protein:P04637", "identifier", [0, 1])
    assert entity.is_given


def test_masks_link_as_well() -> None:
    (entity,) = find(context("___MASK3___ binds", "on ___MASK3___"), {})
    assert entity.name == "mask:___MASK3___"


def chain_question(answer: str, passages: list[Passage]) -> Question:
    return Question(id="q", question="interacts_with DB00001?", answer=answer, hops=2, passages=passages)


def test_identifiers_link_where_the_answer_is_one() -> None:
    passages = [Passage(id="a", text="DB00001 binds P04637"), Passage(id="b", text="P04637 binds DB00072")]
    (chain,) = find_candidates(chain_question("DB00072", passages), CandidateSettings(linkers=["identifiers"])).chains
    (link,) = chain.links
    assert (link.entity, link.kind, link.mentions) == ("protein:P04637", "identifier", ((14, 20), (0, 6)))


def test_an_identifier_link_tells_its_offsets_also_where_other_mentions_are_given() -> None:
    given = [Mention(entity="drug:x", start=0, end=7)]
    passages = [
        Passage(id="a", text="DB00001 binds P04637", mentions=given),
        Passage(id="b", text="P04637 binds DB00072"),
    ]
    (chain,) = find_candidates(chain_question("DB00072", passages)).chains
    assert chain.links[0].mentions == ((14, 20), (0, 6))
