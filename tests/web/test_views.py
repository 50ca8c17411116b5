"""What pages show of a question: steps with their links, the other passages, all candidates, and why."""

from rechain.recoverer import Recoverer
from rechain.schema import Chain, Claim, Gold, GoldChain, HeldAnswer, Link, Passage, Question, Recovered
from rechain.text.candidates import CandidateSettings
from rechain.web.chains import ChainList, best_chain
from rechain.web.site import MOST_SHOWN, Source
from rechain.web.views import ComparisonView, QuestionView, chain_steps, comparison_view, question_view

SETTINGS = CandidateSettings()
GOLD = Gold(id="q1", chains=[GoldChain(passages=["opera", "composer"])], same="passages")


def view(
    question: Question, recovered: Recovered | None, number: int | None = None, gold: Gold | None = None
) -> QuestionView:
    return question_view(ChainList(question, recovered.chains if recovered else (), SETTINGS), recovered, number, gold)


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
    assert [part.name for part in view(bridge_question, Recovered(chains=[chain])).candidates[0].line.passages] == [
        "gone",
        "Anton Quillfeather",
    ]


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
    assert (shown.candidates[0].line.shape, shown.candidates[0].is_right) == ("parallel", True)
    assert all("claim" in piece.roles for piece in shown.steps[1].pieces)
    assert {piece.text for piece in shown.steps[1].pieces if "answer" in piece.roles} == {"Prague"}


def test_a_source_that_has_nothing_shows_no_chain_and_no_verdict(bridge_question: Question) -> None:
    shown = view(bridge_question, None, gold=GOLD)
    assert (shown.number, shown.chain, shown.steps, shown.is_right, shown.strip) == (None, None, [], None, None)
    assert shown.candidates, "which anybody may look at"
    asked = view(bridge_question, None, 0, gold=GOLD)
    assert (asked.number, asked.is_right) == (0, True)


def many_chains() -> Question:
    """A question with 15 times 20 chains, of which those over the last passages come last."""
    makers = [Passage(id=f"m{n:02}", title=f"Zorin Mak{n:02}", text=f"Zorin Mak{n:02} left Prague.") for n in range(15)]
    names = ", ".join(maker.title for maker in makers)
    works = [Passage(id=f"w{n:02}", title=f"Work {n:02}", text=f"A work by {names}.") for n in range(20)]
    return Question(id="q", question="Where is it?", answer="Prague", hops=2, passages=[*works, *makers])


def test_all_candidates_are_counted_and_gold_is_sought_among_all() -> None:
    question = many_chains()
    everything = Recoverer("lexical", top=999).recover(question)
    last = everything.chains[-1]
    gold = Gold(id="q", chains=[GoldChain(passages=last.passages)])
    shown = view(question, everything, gold=gold)
    assert (len(shown.candidates), len(shown.chains)) == (MOST_SHOWN, len(everything))
    assert shown.golds is not None
    number = shown.golds[0].candidate
    assert number is not None and number >= MOST_SHOWN
    there = view(question, everything, number, gold)
    assert there.chain is not None and there.chain.passages == last.passages and there.is_right


def test_other_candidates_are_what_differs_from_the_best(bridge_question: Question) -> None:
    recovered = Recoverer("lexical", top=9).recover(bridge_question)
    best, *others = view(bridge_question, recovered).candidates
    assert [part.number for part in best.line.passages] == [None, None], "the best is written out"
    numbers = {name: number for number, name in enumerate(["Zorilla", "Anton Quillfeather"], start=1)}
    for one in others:
        assert [part.number for part in one.line.passages] == [numbers.get(part.name) for part in one.line.passages]
    assert any(part.number for one in others for part in one.line.passages)


def test_passages_have_the_same_number_in_all_chains_that_are_compared(bridge_question: Question) -> None:
    links = [Link(entity="Zorilla", kind="title", weight=9.0, mentions=(None, None))]
    one = Recovered(chains=[Chain(passages=["opera", "composer"], links=links, score=1.0)])
    two = Recovered(chains=[Chain(passages=["composer", "city"], links=[], score=1.0)])
    shown = compare(bridge_question, one, two)
    assert [[step.number for step in side.steps] for side in shown.sources] == [[1, 2], [2, 3]]
    assert [side.is_right for side in shown.sources] == [True, False]
    assert shown.golds is not None
    assert [stop.number for stop in shown.golds[0].stops if stop.kind == "passage"] == [1, 2]


def test_a_source_that_has_nothing_is_compared_as_nothing(bridge_question: Question) -> None:
    one = Recovered(chains=[Chain(passages=["opera", "composer"], links=[], score=1.0)])
    shown = compare(bridge_question, one, None)
    assert [side.is_right for side in shown.sources] == [True, None]
    assert shown.sources[1].strip is None and not shown.sources[1].is_late


def test_both_chains_are_in_one_graph(bridge_question: Question) -> None:
    link = Link(entity="Zorilla", kind="title", weight=9.0, mentions=(None, None))
    one = Recovered(chains=[Chain(passages=["opera", "composer"], links=[link], score=1.0)])
    two = Recovered(chains=[Chain(passages=["composer", "city"], links=[link], score=1.0)])
    graph = compare(bridge_question, one, two).graph
    assert {node.id: node.step for node in graph.words if node.step} == {"opera": 1, "composer": 2, "city": 3}
    assert {node.id for node in graph.words if node.is_on_chain} == {"opera", "composer"}
    assert {node.id for node in graph.words if node.is_on_rival} == {"composer", "city"}
    drawn = {line.number: line.kind for line in graph.lines}
    kinds = {frozenset(ends): drawn[number] for ends, number in graph.numbers.items()}
    assert kinds[frozenset(("opera", "composer"))] == "chain"
    assert kinds[frozenset(("composer", "city"))] == "rival"
    alone = compare(bridge_question, None, two).graph
    assert "chain" not in {line.kind for line in alone.lines} and not alone.has_chain
    assert "rival" in {line.kind for line in alone.lines}


def test_a_passage_of_gold_alone_is_on_no_chain(bridge_question: Question) -> None:
    one = Recovered(chains=[Chain(passages=["composer", "city"], links=[], score=1.0)])
    graph = compare(bridge_question, one, None).graph
    (opera,) = (node for node in graph.words if node.id == "opera")
    assert (opera.step, opera.is_gold, opera.is_on_chain, opera.is_on_rival) == (3, True, False, False)
    assert not graph.has_rival


def compare(question: Question, one: Recovered | None, two: Recovered | None) -> ComparisonView:
    found = [(Source(0, "one"), one), (Source(1, "two"), two)]
    best = [chain for recovered in (one, two) if (chain := best_chain(recovered))]
    return comparison_view(ChainList(question, best, SETTINGS), found, GOLD)


FILMS = [
    Passage(id="f1", title="Zimbelot", text="Zimbelot is a film by Ivo Brandt."),
    Passage(id="d1", title="Ivo Brandt", text="Ivo Brandt was born in 1931."),
    Passage(id="f2", title="Quorvath", text="Quorvath is a film by Lena Osterman."),
    Passage(id="d2", title="Lena Osterman", text="Lena Osterman was born in 1944."),
]
COMPARED = Question(
    id="q1", question="Whose director is older, Zimbelot or Quorvath?", answer="Zimbelot", passages=FILMS
)


def of_graph(passages: list[str], *between: tuple[int, int]) -> Chain:
    names = ("Ivo Brandt", "Lena Osterman")
    links = [
        Link(entity=name, kind="title", weight=9.0, mentions=(None, None), between=ends)
        for name, ends in zip(names, between, strict=True)
    ]
    return Chain(shape="graph", passages=passages, links=links, score=1.0)


def test_two_lines_of_evidence_stand_side_by_side() -> None:
    lines = of_graph(["f1", "d1", "f2", "d2"], (0, 1), (2, 3))
    shown = view(COMPARED, Recovered(id="q1", chains=[lines]))
    assert [(step.id, step.line, step.link_name, step.leads_to) for step in shown.steps] == [
        ("f1", 0, "Ivo Brandt", None),
        ("d1", 0, "", None),
        ("f2", 1, "Lena Osterman", None),
        ("d2", 1, "", None),
    ]
    assert [(part.name, part.leads_on) for part in shown.candidates[0].line.passages] == [
        ("Zimbelot", True),
        ("Ivo Brandt", False),
        ("Quorvath", True),
        ("Lena Osterman", False),
    ]
    assert shown.strip is not None
    assert [stop.kind for stop in shown.strip.stops] == [
        *("question", "passage", "link", "passage", "passage", "link", "passage", "answer"),
    ]
    drawn = [line for line in shown.graph.lines if line.kind == "chain"]
    assert sorted(line.number for line in drawn) == sorted(shown.candidates[0].lines) and len(drawn) == 2


def test_lines_of_evidence_that_meet_say_where() -> None:
    meeting = of_graph(["f1", "f2", "d1"], (0, 2), (1, 2))
    shown = view(COMPARED, Recovered(id="q1", chains=[meeting]))
    assert [(step.id, step.line, step.leads_to) for step in shown.steps] == [
        ("f1", 0, 3),
        ("f2", 1, None),
        ("d1", 1, None),
    ]
    assert shown.strip is not None
    said = [(stop.kind, stop.number) for stop in shown.strip.stops]
    assert said[1:-1] == [("passage", 1), ("link", 1), ("passage", 3), ("passage", 2), ("link", 2), ("passage", 3)]
    assert {frozenset(pair) for pair in (("f1", "d1"), ("f2", "d1"))} <= shown.graph.numbers.keys()
    assert frozenset(("f1", "f2")) not in shown.graph.numbers
