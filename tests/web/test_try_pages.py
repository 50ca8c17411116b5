"""Questions of one's own: a form, examples, and results that have an address."""

import json
import shlex
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from rechain.schema import Problem, Question, Recovered
from rechain.web.forms import PastedQuestion
from rechain.web.site import Site
from rechain.web.try_pages import EXAMPLES, Result

Make = Callable[..., Any]

PASSAGES = "# Polonium\nPolonium was named by Marie Curie.\n\n# Marie Curie\nMarie Curie was born in Warsaw."
FORM = {
    "question": "Where was the finder of polonium born?",
    "answer": "Warsaw",
    "passages": PASSAGES,
    "hops": "2",
}
DOCUMENTS = [
    {"page_content": "Polonium was named by Marie Curie.", "metadata": {"title": "Polonium"}},
    {"page_content": "Marie Curie was born in Warsaw.", "metadata": {"title": "Marie Curie"}},
]
RAGAS = {
    "user_input": FORM["question"],
    "response": "Marie Curie was born in Warsaw.",
    "retrieved_contexts": ["Polonium was named by Marie Curie.", "Marie Curie was born in Warsaw."],
}
LANGCHAIN = {"input": FORM["question"], "answer": "Warsaw", "context": DOCUMENTS}
TABLE = 'title,text\nPolonium,"Polonium was named by Marie Curie."\nMarie Curie,Marie Curie was born in Warsaw.\n'


def test_a_pasted_question_leads_to_the_address_of_its_chain(client: TestClient, seen: Make) -> None:
    assert "Recover the chain" in client.get("/try").text
    answer = client.post("/try", data=FORM, follow_redirects=False)
    address = answer.headers["location"]
    assert (answer.status_code, address.startswith("/try/")) == (303, True)
    first = client.get(address)
    page = seen(first.text)
    assert "Polonium → to Marie Curie by Marie Curie" in page.text
    assert client.get(address).text == first.text
    assert client.post("/try", data=FORM, follow_redirects=False).headers["location"] == address  # the same question
    changed = FORM | {"answer": "in Warsaw"}
    assert client.post("/try", data=changed, follow_redirects=False).headers["location"] != address


def test_the_form_is_filled_in_again_to_change_it(client: TestClient, seen: Make) -> None:
    page = seen(client.post("/try", data=FORM).text)
    (change,) = [one for one in page.links if one.startswith("/try?from=")]
    form = client.get(change)
    assert FORM["question"] in seen(form.text).attributes("input", "value")
    assert PASSAGES.split("\n")[1] in form.text
    assert "<option selected>2</option>" in form.text


@pytest.mark.parametrize("name", ["text", "sentences", "record"])
def test_every_example_has_a_chain(client: TestClient, seen: Make, name: str) -> None:
    form = client.get(f"/try?example={name}")
    assert form.status_code == 200
    page = seen(client.post("/try", data=EXAMPLES[name].model_dump(exclude_defaults=True)).text)
    assert "The chain" in page.text
    assert "No chain" not in page.text


@pytest.mark.parametrize(
    "form",
    [
        FORM | {"passages": json.dumps(DOCUMENTS)},
        FORM | {"passages": json.dumps(RAGAS["retrieved_contexts"])},
        FORM | {"passages": TABLE},
        {"passages": json.dumps(RAGAS)},
        {"passages": json.dumps([RAGAS, RAGAS])},
        {"passages": f"{json.dumps(RAGAS)}\n{json.dumps(LANGCHAIN)}\n", "record": "2"},
        {"passages": json.dumps(LANGCHAIN)},
        {"question": FORM["question"], "answer": "Warsaw", "passages": json.dumps({"context": DOCUMENTS})},
    ],
)
def test_passages_and_records_of_tools_are_pasted(client: TestClient, seen: Make, form: dict[str, str]) -> None:
    page = seen(client.post("/try", data=form).text)
    assert FORM["question"] in page.text
    assert "was named by Marie Curie" in page.text and "No chain" not in page.text
    several = form["passages"].count("user_input") + form["passages"].count('"input"') > 1
    assert (f"record {form.get('record', '1')} of 2" in page.text) is several


@pytest.mark.parametrize(
    ("form", "status", "message"),
    [
        ({}, 422, "the form: question is empty."),
        ({"question": "{"}, 422, "begins like JSON but is not valid JSON"),
        (FORM | {"passages": '[{"text": '}, 422, "the passages begin like JSON but are not valid JSON"),
        (FORM | {"passages": '{"a": 1}'}, 422, "neither passages nor a question"),
        ({"passages": json.dumps(RAGAS), "record": "2"}, 422, "there is no record 2: 1 were pasted."),
        ({"question": "Who?", "answer": "x"}, 422, "the question has no passages"),
        ({"question": "Who?", "answer": "x", "passages": "a\n\nb"}, 200, "No chain: no tail: no passage holds"),
        ({"question": "Who?", "answer": "x", "passages": "a\n\nb", "hops": "²"}, 200, "No chain: no tail"),
    ],
)
def test_a_pasted_question_with_a_mistake(
    client: TestClient, seen: Make, form: dict[str, str], status: int, message: str
) -> None:
    answer = client.post("/try", data=form)
    assert answer.status_code == status
    assert message in seen(answer.text).text


def test_other_candidates_have_addresses_of_their_own(client: TestClient, seen: Make) -> None:
    passages = "# Zorilla\nSung by Anna Quill.\n\n# Anna Quill\nBorn in Prague.\n\nAnna Quill left Prague."
    form = {"question": "Where was the singer of Zorilla born?", "answer": "Prague", "passages": passages, "hops": "2"}
    first = client.post("/try", data=form)
    path = first.request.url.path
    links = [link for link in seen(first.text).links if link.startswith(f"{path}?chain=")]
    assert len(links) > 1
    assert "The chain" in seen(first.text).text
    assert "Candidate 2" in seen(client.get(next(link for link in links if link.endswith("=2"))).text).text


def test_an_answer_without_a_chain_has_its_verdict(client: TestClient, town_site: Site, seen: Make) -> None:
    question, problem = town_site.index.at(0).content, Problem(code="no_tail", message="no passage holds it")
    assert isinstance(question, Question)
    recovered = Recovered(verdict="unsupported", verdict_probability=0.95, chains=[], error=problem)
    key = town_site.results.add(Result(form=PastedQuestion(**FORM), question=question, own=None, recovered=recovered))
    page = seen(client.get(f"/try/{key}").text)
    assert "unsupported (95 % sure)" in page.text and "No chain: no passage holds it" in page.text


def test_a_result_that_is_not_kept_says_so(client: TestClient) -> None:
    for path in ("/try/none", "/try?from=none", "/try/none/question.json"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["message"]) == (
            404,
            "this result is gone: a server keeps the latest 1,000 until it stops; try the question again.",
        )


def code_of(text: str, name: str) -> str:
    """Return the code on a page, as a browser shows it."""
    return unescape(text.partition(f'<pre id="as-{name}" tabindex="0">')[2].partition("</pre>")[0])


def test_the_python_code_recovers_the_same(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    page = client.post("/try", data=FORM)
    code = code_of(page.text, "python").replace("from_pretrained(", 'from_pretrained("lexical", ')
    exec(compile(code, "snippet", "exec"), {})
    assert "Marie Curie" in capsys.readouterr().out


def test_the_curl_command_asks_this_server(town_site: Site, connect: Make) -> None:
    evil = FORM | {"question": 'Where\'s "the" $HOME `finder` of\\ polonium born?\nJSON\n'}
    client = connect(town_site)
    command, body, end = code_of(client.post("/try", data=evil).text, "curl").rstrip("\n").split("\n")
    words = shlex.split(command.removesuffix(" <<'JSON'"))
    assert (words[:3], end) == (["curl", "-s", "http://127.0.0.1:8000/recover?top=5"], "JSON")
    assert "Authorization" not in command
    answer = client.post("/recover?top=5", content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["chains"][0]["passages"] == ["Polonium", "Marie Curie"]


def test_curl_needs_the_token_where_the_server_does(town_site: Site, connect: Make) -> None:
    client = connect(town_site, token="a secret")
    client.headers["Authorization"] = "Bearer a secret"
    command = code_of(client.post("/try", data=FORM).text, "curl")
    assert '-H "Authorization: Bearer $RECHAIN_TOKEN"' in command
    assert "a secret" not in command


def test_a_long_question_is_code_with_a_file(client: TestClient, seen: Make) -> None:
    page = client.post("/try", data=FORM | {"passages": f"{PASSAGES}\n\n{'Something else was said. ' * 4000}"})
    assert "--data-binary @question.json" in code_of(page.text, "curl")
    assert "question.json" in code_of(page.text, "python")
    (file,) = [link for link in seen(page.text).links if link.endswith("/question.json")]
    content = client.get(file).json()
    assert len(Question.model_validate({"id": "q", **content}).passages) == 3
    assert client.post("/recover", json=content).json()["chains"]


def test_where_an_index_finds_passages_only_ones_own_are_in_the_code(handbook_site: Site, connect: Make) -> None:
    client = connect(handbook_site)
    form = {"question": "Who leads the bureau that approves parental leave?", "answer": "Anton Quillfeather"}
    page = client.post("/try", data=form)
    assert 'corpus="INDEX"' in code_of(page.text, "python")
    body = json.loads(code_of(page.text, "curl").split("\n")[1])
    assert body.get("passages", []) == []
    page = client.post("/try", data=form | {"passages": "# Note\nThe Kinship Bureau is near."})
    assert [one["title"] for one in json.loads(code_of(page.text, "curl").split("\n")[1])["passages"]] == ["Note"]
