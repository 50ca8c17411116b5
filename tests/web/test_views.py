"""What pages show of a question: steps with their links, the other passages, all candidates, and why."""

from rechain.candidates import CandidateSettings
from rechain.recovery import Recoverer
from rechain.schema import Chain, Claim, Gold, GoldChain, HeldAnswer, Link, Question, Recovered
from rechain.web.views import QuestionView, chain_steps, question_view

SETTINGS = CandidateSettings()
GOLD = Gold(id="q1", chains=[GoldChain(passages=["opera", "composer"])], same="passages")


def view(question: Question, recovered: Recovered, number: int = 0, gold: Gold | None = None) -> QuestionView:
    return question_view(question, recovered, number, gold, SETTINGS)


def test_a_chain_is_shown_with_its_link_highlighted(bridge_question: Question) -> None:
    recovered = Recoverer("lexical", top=9, explain=True).recover(bridge_question)
    shown = view(bridge_question, recovered, gold=GOLD)
    assert [step.id for step in shown.steps] == ["opera", "composer"]
    link = shown.steps[0].link
    assert link is not None
    assert (link.entity, link.kind) == ("Anton Quillfeather", "title")
    assert shown.steps[1].link is None
    marked = {piece.text: tuple(piece.roles) for piece in shown.steps[1].pieces if piece.roles}
    assert marked == {"Anton Quillfeather": ("link 1",), "Prague": ("answer",)}
    assert "".join(piece.text for piece in shown.steps[1].pieces) == bridge_question.passages[1].text
    assert {step.id for step in shown.others} == {"city", "other"}
    assert abs(sum(shown.parts.values()) - recovered.chains[0].score) < 1e-9
    assert shown.candidates[0].is_right is True


def test_a_number_beyond_the_candidates_is_the_first(bridge_question: Question) -> None:
    recovered = Recoverer("lexical").recover(bridge_question)
    assert view(bridge_question, recovered, 99).number == view(bridge_question, recovered, -1).number == 0


def test_candidates_of_which_a_source_says_nothing_have_no_score(bridge_question: Question) -> None:
    all_of_them = Recoverer("lexical", top=99).recover(bridge_question)
    shown = view(bridge_question, Recovered(id="q1", chains=all_of_them.chains[:1]))
    assert len(shown.candidates) >= len(all_of_them.chains)
    assert [one.score is None for one in shown.candidates] == [False] + [True] * (len(shown.candidates) - 1)
    assert [one.number for one in shown.candidates] == list(range(len(shown.candidates)))


def test_without_a_chain_all_passages_are_shown(bridge_question: Question) -> None:
    lost = bridge_question.model_copy(update={"answer": "Nowhere"})
    shown = view(lost, Recoverer("lexical").recover(lost), gold=GOLD)
    assert (shown.chain, shown.steps, shown.candidates, shown.parts) == (None, [], [], {})
    assert len(shown.others) == 4


def test_a_chain_of_passages_that_are_not_there_shows_the_others(bridge_question: Question) -> None:
    link = Link(entity="x", kind="name", weight=1.0, mentions=(None, None))
    chain = Chain(passages=["gone", "composer"], links=[link], score=1.0)
    steps = chain_steps(bridge_question, chain)
    assert [(step.id, step.link) for step in steps] == [("composer", None)]
    assert view(bridge_question, Recovered(chains=[chain])).candidates[0].passages == ["gone", "Anton Quillfeather"]


def test_steps_of_the_players_are_kept_apart_from_what_adds_up(bridge_question: Question) -> None:
    said = [{"player": "ranker", "passage": "opera", "probability": 0.5}]
    why = {"ranker": 1.5, "steps": said, "odd": "text"}
    chain = Chain(passages=["opera", "composer"], links=[], score=1.5, why=why)
    shown = view(bridge_question, Recovered(chains=[chain]))
    assert (shown.parts, shown.player_steps) == ({"ranker": 1.5}, said)
    assert chain.why == why


def test_other_shapes_and_claims_are_shown(bridge_question: Question) -> None:
    held = HeldAnswer(match="phrase", passage="composer", span=(31, 37))
    chain = Chain(shape="parallel", passages=["opera", "composer"], links=[], answer=held, score=1.0)
    claim = Claim(text="Born in Prague.", verdict="supported", passage="composer", span=(0, 38))
    recovered = Recovered(id="q1", verdict="supported", claims=[claim], chains=[chain])
    gold = Gold(id="q1", chains=[GoldChain(shape="parallel", passages=["composer", "opera"])])
    shown = view(bridge_question, recovered, gold=gold)
    assert [(step.id, step.link) for step in shown.steps] == [("opera", None), ("composer", None)]
    assert (shown.candidates[0].shape, shown.candidates[0].is_right) == ("parallel", True)
    assert all("claim" in piece.roles for piece in shown.steps[1].pieces)
    assert {piece.text for piece in shown.steps[1].pieces if "answer" in piece.roles} == {"Prague"}
