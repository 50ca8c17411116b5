"""The explorer's pages: what they show, that all text is text, and that mistakes are one sentence."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from tests.web.models import Held

from rechain.errors import QuestionError
from rechain.formats.datasets.inputs import as_entry
from rechain.recoverer import Recoverer
from rechain.schema import Chain, Gold, GoldChain, Link, Passage, Question, Recovered
from rechain.scoring.results import Options
from rechain.web.question_index import PAGE_SIZE
from rechain.web.site import Site

HTML = {"accept": "text/html,*/*"}
Make = Callable[..., Any]


def test_the_list_shows_questions_answers_chains_and_verdicts(client: TestClient, seen: Make, town_site: Site) -> None:
    page = seen(client.get("/").text)
    first = town_site.index.at(1).content
    assert isinstance(first, Question)
    assert "6 of 6 questions" in page.text
    assert f"{first.question} answer: {first.answer}" in page.text
    assert "→" in page.text
    assert page.text.count("✓ right") + page.text.count("✗ wrong") == 6
    assert "/question?id=town-1" in page.links
    assert "/compare" not in page.links


def test_a_filtered_list_keeps_its_filter(make_site: Make, connect: Make, seen: Make, towns: Make) -> None:
    client = connect(make_site(towns(PAGE_SIZE + 2)))
    page = seen(client.get("/", params={"text": "maker", "order": "least confident"}).text)
    assert f"{PAGE_SIZE + 2} of {PAGE_SIZE + 2} questions" in page.text
    assert "/?page=2&text=maker&order=least+confident" in page.links
    assert "maker" in page.attributes("input", "value")
    second = seen(client.get("/?page=2&text=maker&order=least+confident").text)
    assert f"/question?id=town-{PAGE_SIZE}&text=maker&order=least+confident" in second.links
    assert "No matching questions." in client.get("/?text=zzz").text


def test_a_question_is_shown_with_its_chain_and_its_neighbours(client: TestClient, seen: Make) -> None:
    page = seen(client.get("/question?id=town-1").text)
    for wanted in (
        "The chain",
        "Score breakdown",
        "The answer appears word for word in passage 2.",
        "✓ right",
        "other passages",
    ):
        assert wanted in page.text
    assert {"/question?id=town-0", "/question?id=town-2", "/label/question?id=town-1"} <= set(page.links)
    assert any(classes and "link-1" in classes for classes in page.attributes("mark", "class"))


def test_any_candidate_is_a_link_away(client: TestClient, seen: Make) -> None:
    page = seen(client.get("/question?id=town-0&chain=2").text)
    assert "Candidate 2" in page.text
    assert "/question?id=town-0&chain=1" in page.links


def test_a_question_that_cannot_be_read_says_why(make_site: Make, connect: Make, towns: Make) -> None:
    client = connect(make_site([QuestionError("bad_field", "line 1: hops is <odd>."), *towns(1)]))
    assert (
        "This question cannot be read: <bdi>line 1: hops is &lt;odd&gt;.</bdi>" in client.get("/question?id=bad-0").text
    )


def test_a_question_without_a_chain_says_why(make_site: Make, connect: Make, bridge_question: Question) -> None:
    client = connect(make_site([bridge_question.model_copy(update={"answer": "Nowhere"})]))
    for path in ("/", "/question?id=q1"):
        assert "holds the answer &#39;Nowhere&#39;" in client.get(path).text


@pytest.fixture
def compared(town_site: Site, connect: Make) -> TestClient:
    """The six questions with a second source, which is the rule of chance."""
    recoverer = Recoverer("random", top=9)
    contents = (town_site.index.at(place).content for place in range(6))
    found = [recoverer.recover(one) for one in contents if isinstance(one, Question)]
    assert town_site.add_file("random.jsonl", found) == 0
    client: TestClient = connect(town_site)
    return client


def test_two_sources_are_compared(compared: TestClient, seen: Make) -> None:
    page = seen(compared.get("/compare?show=all").text)
    assert "6 questions: all" in page.text
    assert "Accuracy on 6 questions with gold" in page.text
    for text in ("95 % interval", "only lexical.jsonl right", "only random.jsonl right", "often than lexical.jsonl"):
        assert text in page.text
    assert "/compare/question?id=town-3&one=1&two=2&show=all" in page.links
    counts = [
        len(seen(compared.get("/compare", params={"show": show}).text).attributes("dl", "class"))
        for show in ("same", "different")
    ]
    assert sum(counts) == 6
    both = seen(compared.get("/compare/question?id=town-3&one=1&two=2").text)
    assert "lexical.jsonl" in both.text
    assert "random.jsonl" in both.text
    assert "/question?id=town-3&source=2" in both.links
    assert "/compare" in seen(compared.get("/").text).links


MISTAKES = [
    ("/nothing", 404, "there is no such page."),
    ("/question?id=x", 404, "there is no question 'x'."),
    ("/?source=2", 404, "there is no source 2; there are 1."),
    ("/?page=0", 422, "page: input should be greater than or equal to 1."),
    ("/compare", 404, "comparing needs two sources: give `rechain serve` two of --chains and --model."),
    ("/static/none.css", 404, "there is no such page."),
]


@pytest.mark.parametrize(("path", "status", "message"), MISTAKES)
def test_mistakes_are_a_page_for_browsers_and_json_for_programs(
    client: TestClient, seen: Make, path: str, status: int, message: str
) -> None:
    for headers in (HTML, {"accept": "application/json"}):
        answer = client.get(path, headers=headers)
        assert answer.status_code == status
        assert "content-security-policy" in answer.headers
        if headers is HTML:
            assert message in seen(answer.text).text
        else:
            assert answer.json()["error"]["message"] == message


def test_all_text_is_shown_as_text(make_site: Make, connect: Make, seen: Make, evil_question: Question) -> None:
    site = make_site([evil_question])
    site.add_file('<script>alert("source")</script>', [Recoverer("random").recover(evil_question)])
    client = connect(site)
    name = quote(evil_question.id)
    client.cookies.set("rechain_annotator", quote("<script>alert(3)</script>"))
    passages = "\n\n".join(f"# {passage.title}\n{passage.text}" for passage in evil_question.passages)
    form = {"question": evil_question.question, "answer": evil_question.answer, "passages": passages, "hops": "<b>"}
    statuses = {
        "/": 200,
        f"/?text={name}": 200,
        f"/question?id={name}": 200,
        f"/question?id={name}x": 404,
        f"/?min_confidence={name}": 422,
        f"/compare?show={name}": 404,
        "/compare?show=all": 200,
        f"/compare/question?id={name}": 200,
        "/label": 200,
        f"/label/question?id={name}": 200,
        f"/label/question?id={name}&mode=pairs": 200,
        f"/label/question?id={name}&mode={name}": 422,
        "/label/disagreements": 200,
    }
    answers = [client.get(path, headers=HTML) for path in statuses]
    assert [answer.status_code for answer in answers] == list(statuses.values())
    answers.append(client.post("/try", data=form))
    assert answers[-1].status_code == 200
    for answer in answers:
        page = seen(answer.text)
        scripts = [attributes for tag, attributes in page.elements if tag == "script"]
        assert all((one.get("src") or "").startswith("/static/") for one in scripts)
        assert all((source or "").startswith("/static/") for source in page.attributes("img", "src"))
        assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
        assert not [one for _, attributes in page.elements if "style" in attributes for one in attributes]
    shown = " ".join(evil_question.passages[0].text.split())
    assert shown in seen(client.get(f"/question?id={name}").text).text
    assert evil_question.question in seen(answers[-1].text).text


def test_a_page_does_not_wait_for_a_slow_model_but_loads_again(town_site: Site, connect: Make, seen: Make) -> None:
    model = Held()
    town_site.add_model("slow", lambda: Recoverer(model))
    with connect(town_site) as client:
        try:
            early = seen(client.get("/question?id=town-3&source=2").text)
            assert "The question is being recovered" in early.text
            assert ("meta", {"http-equiv": "refresh", "content": "1"}) in early.elements
            assert "not scored by this source" in early.text
        finally:
            model.may_go_on.set()
        asked = (client.get("/question?id=town-3&source=2").text for _ in range(100))
        late = next(text for text in asked if "The question is being recovered" not in text)
        assert "score" in seen(late).text and "refresh" not in late


def test_pages_leave_the_queue_to_others_when_it_is_long(town_site: Site, connect: Make, seen: Make) -> None:
    model = Held()
    service = town_site.add_model("slow", lambda: Recoverer(model))
    with connect(town_site) as client:
        try:
            asked = service.ask([as_entry("", "a", town_site.question("town-1").content)] * 40, Options())
            waiting = service.waiting
            assert "The question is being recovered" in seen(client.get("/question?id=town-3&source=2").text).text
            assert service.waiting == waiting
        finally:
            model.may_go_on.set()
        assert len(asked.result(20)) == 40


def test_gold_is_shown_and_leads_to_its_candidate(client: TestClient, seen: Make) -> None:
    page = seen(client.get("/question?id=town-0").text)
    assert "Gold" in page.text
    assert any(link.startswith("/question?id=town-0&chain=") for link in page.links)


def test_gold_that_is_no_candidate_says_so(make_site: Make, connect: Make, towns: Make, seen: Make) -> None:
    golds = [Gold(id="town-1", chains=[GoldChain(passages=["other", "guest"])]), Gold(id="town-2", chains=[])]
    client = connect(make_site(towns(3), golds=golds))
    assert "not a candidate" in seen(client.get("/question?id=town-1").text).text
    assert "No correct chain." in seen(client.get("/question?id=town-2").text).text


def test_a_filter_is_kept_from_question_to_question(client: TestClient, seen: Make) -> None:
    listed = seen(client.get("/?judgement=wrong").text)
    first, second = [link for link in listed.links if link.startswith("/question")]
    assert first.endswith("judgement=wrong")
    page = seen(client.get(first).text)
    assert second in page.links and "/?judgement=wrong" in page.links
    assert "1 of 2" in page.text


def test_a_question_leads_back_to_its_page_of_the_list(make_site: Make, connect: Make, seen: Make, towns: Make) -> None:
    client = connect(make_site(towns(PAGE_SIZE + 2)))
    page = seen(client.get(f"/question?id=town-{PAGE_SIZE}").text)
    assert "/?page=2" in page.links and f"{PAGE_SIZE + 1} of {PAGE_SIZE + 2}" in page.text


def test_what_is_recovered_so_far_can_be_asked(client: TestClient) -> None:
    assert client.get("/progress").json() == {"recovered": 6, "questions": 6}
    assert client.get("/progress?source=9").status_code == 404


@pytest.mark.parametrize("steps", ["none", [7], [{"player": "ranker"}], {"a": 1}])
def test_odd_steps_of_a_chains_file_are_left_out(town_site: Site, connect: Make, steps: Any) -> None:
    stored = town_site.question("town-1")
    found = Recoverer("lexical").recover(stored.content)  # type: ignore[arg-type]
    odd = found.model_copy(update={"chains": [found[0].model_copy(update={"why": {"steps": steps, "links": 1.0}})]})
    town_site.add_file("odd.jsonl", [odd])
    assert connect(town_site).get("/question?id=town-1&source=2").status_code == 200


def test_a_question_without_a_chain_says_why_where_sources_are_compared(
    make_site: Make, connect: Make, towns: Make, seen: Make
) -> None:
    site = make_site([towns(1)[0].model_copy(update={"answer": "Nowhere"})])
    site.add_file("again.jsonl", [site.index.recovered(0, 0)])
    page = seen(connect(site).get("/compare/question?id=town-0").text)
    assert page.text.count("no passage holds the answer 'Nowhere'") == 2


def test_a_source_without_a_chain_is_in_no_legend_and_gold_is_not_its_chain(
    town_site: Site, connect: Make, seen: Make
) -> None:
    question = town_site.index.at(0).content
    assert isinstance(question, Question)
    town_site.add_file("none.jsonl", [Recovered(id=question.id, chains=[])])
    client = connect(town_site)
    text = client.get(f"/compare/question?id={question.id}&one=2&two=1").text
    assert "key rival" in text and "on-rival" in text
    text = client.get(f"/compare/question?id={question.id}&one=1&two=2").text
    assert "key chain" in text
    assert "key rival" not in text and "on-rival" not in text


def test_shapes_verdicts_and_claims_are_shown(make_site: Make, connect: Make, seen: Make, towns: Make) -> None:
    site, question = make_site(towns(1)), towns(1)[0]
    held = {"match": "normalised", "passage": "maker", "span": [0, 4]}
    chain = {"shape": "parallel", "passages": ["work", "maker"], "links": [], "answer": held, "score": 1.0}
    claim = {"text": "A <b>claim</b>.", "verdict": "unsupported"}
    fields = {"id": question.id, "verdict": "partly", "verdict_probability": 0.71, "claims": [claim], "chains": [chain]}
    site.add_file("new.jsonl", [Recovered.model_validate(fields)])
    client = connect(site)
    page = seen(client.get("/question", params={"id": question.id, "source": 2}).text)
    for text in (
        "partly supported (71 % sure)",
        "The passages, side by side",
        "The answer appears in another notation in passage 2.",
        "unsupported A <b>claim</b>.",
    ):
        assert text in page.text
    assert '<span class="verdict partly"' in client.get("/?source=2").text
    listed = client.get("/questions?source=2&verdict=partly&shape=parallel").json()["questions"][0]
    assert (listed["verdict"], listed["shape"]) == ("partly", "parallel")
    assert "1 of 1 questions" in seen(client.get("/?source=2&verdict=partly&shape=parallel").text).text
    assert "0 of 1 questions" in seen(client.get("/?source=2&verdict=supported").text).text
    assert "0 of 1 questions" in seen(client.get("/?source=2&shape=single").text).text
    assert client.get(f"/questions/{question.id}?source=2").json()["recovered"]["verdict"] == "partly"


def test_another_source_of_a_question_keeps_the_filter(compared: TestClient, seen: Make) -> None:
    page = seen(compared.get("/question?id=town-3&text=maker&order=question&chain=2").text)
    other = "/question?id=town-3&text=maker&order=question&source=2"
    assert {other, "/question?id=town-3&text=maker&order=question"} <= set(page.links)
    assert "/?text=maker&order=question&source=2" in seen(compared.get(other).text).links


def test_a_source_without_a_question_says_so(town_site: Site, connect: Make, seen: Make) -> None:
    some = [town_site.index.recovered(0, position) for position in (1, 2)]
    town_site.add_file("some.jsonl", [one for one in some if one])
    client = connect(town_site)
    page = seen(client.get("/question?id=town-4&source=2").text)
    assert "some.jsonl does not have this question" in page.text
    for never in ("✓ right ", "The chain", "Score breakdown", "% sure"):
        assert never not in page.text.split("candidates")[0]
    assert "/question?id=town-4&source=2&chain=1" in page.links
    asked = seen(client.get("/question?id=town-4&source=2&chain=1").text)
    assert "Candidate 1" in asked.text and "The chain " not in asked.text
    both = seen(client.get("/compare/question?id=town-4").text)
    assert both.text.count("This source does not have this question.") == 1
    listed = seen(client.get("/?source=2").text).text
    assert listed.count("not in this source") >= 4


def test_a_comparison_keeps_its_filter_and_has_neighbours_and_gold(compared: TestClient, seen: Make) -> None:
    address = "one=2&two=1&show=same"
    listed = seen(compared.get(f"/compare?{address}").text)
    questions = [link for link in listed.links if link.startswith("/compare/question")]
    assert len(questions) > 2 and all(link.endswith(address) for link in questions)
    page = seen(compared.get(questions[1]).text)
    assert {f"/compare?{address}", questions[0], questions[2]} <= set(page.links)
    assert "gold" in page.text and page.attributes("ol", "aria-label")[-1] == "Gold chain 1"
    assert page.attributes("ol", "aria-label")[:2] == ["The chain of random.jsonl", "The chain of lexical.jsonl"]
    first, last = seen(compared.get(questions[0]).text), seen(compared.get(questions[-1]).text)
    assert "← Before" not in first.text and "Next →" not in last.text


def test_the_way_back_from_a_comparison_leads_to_the_page_it_was_on(
    make_site: Make, connect: Make, towns: Make, seen: Make
) -> None:
    site = make_site(towns(PAGE_SIZE + 2))
    site.add_file("again.jsonl", [site.index.recovered(0, place) for place in range(PAGE_SIZE + 2)])
    client = connect(site)
    page = seen(client.get(f"/compare/question?id=town-{PAGE_SIZE}&show=same").text)
    assert "/compare?page=2&one=1&two=2&show=same" in page.links
    beyond = seen(client.get("/compare?page=9999&show=same").text)  # the last page stands for those that there are not
    assert "page 2 of 2" in beyond.text
    assert f"/compare/question?id=town-{PAGE_SIZE + 1}&one=1&two=2&show=same" in beyond.links


def test_tabs_of_the_browser_show_the_question(compared: TestClient, seen: Make) -> None:
    asked = "Of which town was the maker of Sturstalgek a native?"
    for path, title in (
        ("/question?id=town-0", f"{asked} · rechain"),
        ("/compare/question?id=town-0", f"{asked} · Compare · rechain"),
    ):
        assert seen(compared.get(path).text).text.startswith(title)


def test_passages_without_titles_are_not_called_by_numbers(client: TestClient, seen: Make) -> None:
    passages = "Polonium was named by Marie Curie.\n\nMarie Curie was born in Warsaw."
    form = {"question": "Where was the finder of polonium born?", "answer": "Warsaw", "passages": passages, "hops": "2"}
    page = seen(client.post("/try", data=form).text)
    assert "“Polonium was named by Marie Curie.” → to “Marie Curie was born in Warsaw.”" in page.text
    assert "0 → to 1" not in page.text


def test_the_graph_leads_to_candidates_and_is_told_in_words(client: TestClient, seen: Make) -> None:
    page = seen(client.get("/question?id=town-0").text)
    assert "Passages and their links" in page.text and "As text" in page.text
    nodes = [
        attributes for tag, attributes in page.elements if tag == "a" and "node" in (attributes.get("class") or "")
    ]
    assert nodes and all((node["href"] or "").startswith("/question?id=town-0&chain=") for node in nodes)
    drawn = {attributes["data-line"] for _, attributes in page.elements if "data-line" in attributes}
    lit = {number for _, attributes in page.elements for number in (attributes.get("data-lines") or "").split()}
    assert lit and lit <= drawn
    assert "linked by" in page.text


def test_a_question_without_a_chain_shows_where_the_link_is_missing(
    make_site: Make, connect: Make, seen: Make, bridge_question: Question
) -> None:
    apart = [passage for passage in bridge_question.passages if passage.id in ("opera", "city", "other")]
    client = connect(make_site([bridge_question.model_copy(update={"passages": apart})]))
    page = seen(client.get("/question?id=q1").text)
    assert "The link is missing: nothing leads from the names of the question to the answer." in page.text
    assert "Zorilla: mentions the question; linked to none." in page.text
    assert "Prague: contains the answer; linked to none." in page.text


@pytest.mark.parametrize("path", ["/", "/question?id=town-1", "/try", "/label"])
def test_scripts_are_modules_so_that_none_takes_the_names_of_another(client: TestClient, seen: Make, path: str) -> None:
    page = seen(client.get(path).text)
    assert page.attributes("script", "src")
    assert set(page.attributes("script", "type")) == {"module"}


def test_tabs_of_the_browser_cut_a_long_question_after_a_word(make_site: Make, connect: Make, towns: Make) -> None:
    (question,) = towns(1)
    long = question.model_copy(update={"question": "Where was the maker of it born " * 9 + "?"})
    title = connect(make_site([long])).get("/question?id=town-0").text.partition("<title>")[2].partition("</title>")[0]
    assert title == "Where was the maker of it born " * 3 + "Where was the maker of it… · rechain"


def test_a_graph_is_drawn_as_lines_of_evidence(
    make_site: Make, connect: Make, seen: Make, films_question: Question
) -> None:
    site = make_site([films_question])
    links = [
        Link(entity=name, kind="title", weight=9.0, mentions=(None, None), between=ends)
        for name, ends in (("Ivo Brandt", (0, 1)), ("Lena Osterman", (2, 3)))
    ]
    graph = Chain(shape="graph", passages=["f1", "d1", "f2", "d2"], links=links, score=1.0)
    site.add_file("graphs.jsonl", [Recovered(id="q", chains=[graph])])
    page = connect(site).get("/question?id=q&source=2").text
    assert "The lines of evidence" in page
    drawn = page.partition('<div class="side-by-side">')[2].partition("</div>")[0]
    assert drawn.count('<ol class="chain">') == 2
    assert drawn.count("links to the next") == 2
    assert "Zimbelot → to Ivo Brandt | beside Quorvath → to Lena Osterman" in " ".join(seen(page).text.split())


def answered(make_site: Make, connect: Make, question: Question, **fields: Any) -> TestClient:
    """Return a client of a question and what a second source says of it."""
    site = make_site([question])
    site.add_file("told.jsonl", [Recovered.model_validate({"id": question.id, "chains": [], **fields})])
    client: TestClient = connect(site)
    return client


def test_an_answer_that_says_nothing_is_no_alarm(make_site: Make, connect: Make, bridge_question: Question) -> None:
    question = bridge_question.model_copy(update={"answer": "I don't know."})
    error = {"code": "no_answer", "message": "no answer is given."}
    client = answered(make_site, connect, question, verdict="no_answer", error=error)
    text = client.get("/question?id=q1&source=2").text
    assert "No answer was given, so there is nothing to support." in text and 'role="alert"' not in text


@pytest.mark.parametrize(
    ("answer", "verdict", "sentence"),
    [
        ("Prague", "supported", "The answer appears word for word in passage 1."),
        ("Prag ue", "supported", "The answer appears in another spelling in passage 1."),
        ("Prague", "unsupported", None),
    ],
)
def test_how_the_answer_appears_is_said_only_as_it_is(
    make_site: Make, connect: Make, bridge_question: Question, answer: str, verdict: str, sentence: str | None
) -> None:
    (passage,) = (one for one in bridge_question.passages if one.id == "composer")
    start = passage.text.index("Prague")
    held = {"match": "phrase", "passage": "composer", "span": [start, start + 6]}
    chain = {"shape": "single", "passages": ["composer"], "links": [], "answer": held, "score": 1.0}
    question = bridge_question.model_copy(update={"answer": answer})
    text = answered(make_site, connect, question, verdict=verdict, chains=[chain]).get("/question?id=q1&source=2").text
    assert (sentence in text) if sentence else "The answer appears" not in text


def test_markup_and_entities_are_drawn_as_what_they_mean(make_site: Make, connect: Make, seen: Make) -> None:
    text = "A fee of **€38** is due.\n| Ticket | Price |\n|---|---|\n| Standard | £12 <b>now</b> |"
    passages = [Passage(id="1", title="Fees &amp; fares", text=text), Passage(id="2", title="Other", text="Nothing.")]
    question = Question(id="q", question="What does a Standard ticket cost?", answer="£12 **now**", passages=passages)
    html = answered(make_site, connect, question).get("/question?id=q&source=2&chain=1&passages=all").text
    page = seen(html)
    assert "Fees & fares" in page.text and "|---|" not in page.text
    assert "**" not in page.text.split("Details")[0]
    assert "<td>" in html and "<b>" not in html


def test_error_pages_keep_the_tabs(make_site: Make, connect: Make, towns: Make, seen: Make) -> None:
    site = make_site(towns(1))
    site.add_file("more.jsonl", [])
    client = connect(site)
    assert "/compare" in seen(client.get("/question?id=none", headers=HTML).text).links


def test_candidates_beyond_the_best_five_are_folded(make_site: Make, connect: Make) -> None:
    works = [Passage(id=f"w{n}", title=f"Work {n}", text=f"Work {n} is by Anton Quill.") for n in range(40)]
    last = Passage(id="quill", title="Anton Quill", text="Anton Quill was born in Prague.")
    question = Question(id="q", question="Where was the maker born?", answer="Prague", hops=2, passages=[*works, last])
    html = connect(make_site([question])).get("/question?id=q").text
    before, after = html.split(" more</summary>")
    assert before.count('<ol class="candidates">') == 1 and after.count('<ol class="candidates">') == 1
