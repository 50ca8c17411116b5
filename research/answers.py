"""Short answers put into sentences, as chatbots write them: are they found again, and are the chains the same?

    python research/answers.py ../shared/data --set train_300
    python research/answers.py ../shared/data --set open --limit 400 --forms one place polite
    python research/answers.py ../shared/data --set open --chains

HotpotQA, unambiguous bridge questions. The first table needs no gold: how often the short answer (but for its article)
is the first telling phrase of the sentence, and how often the only claim's. With `--chains` the second compares exact
passages of the default model for the short answers with those for each form, question by question. Seed 0.
"""

import random
import re
from argparse import Namespace
from collections.abc import Callable, Sequence

from common import Pair, bridge_pairs, parser, percent, print_heading, print_rows, verdicts

from rechain.evaluation.judging import JudgedChain, compare, summarise
from rechain.evaluation.statistics import mean_with_interval
from rechain.schema import Question
from rechain.text.answers.claims import AnswerReading, read_answer
from rechain.text.languages import naming_words
from rechain.text.words import Text, phrase

ARTICLES = ("the", "a", "an")
ASKING = re.compile(r"\b(?:who|whom|what|which|when|where|how many|how)\b", re.IGNORECASE)
WHAT_IS = re.compile(r"^(?:what|who|which|where) (is|was|are|were) (.*)$", re.IGNORECASE)
WITHOUT_THING = ("in", "of", "on", "for", "to", "is", "was", "at", "by")
"""words after "what" where no word for the thing follows that is asked for"""
FRAMES = (
    "Based on the provided context, ",
    "According to the documents, ",
    "Great question! From the information above, ",
    "Sure, I'd be happy to help. ",
    "As stated in the retrieved passages, ",
    "I looked into this. Based on the search results, ",
)
OFFERS = (
    "Let me know if you have any further questions!",
    "I hope this helps!",
    "If you need more details about this topic, feel free to ask.",
    "Is there anything else you would like to know?",
)
Form = Callable[[str, str, random.Random], str]


def bare(question: str) -> str:
    """Return a question without its question mark, as it goes on in a sentence."""
    text = " ".join(question.split()).rstrip(" ?")
    return text[:1].lower() + text[1:] if ASKING.match(text) else text


def after_asking(question: str) -> str:
    """Return the question without the word that it asks with."""
    return ASKING.sub("", bare(question), count=1).strip()


def statement(question: str, answer: str) -> str:
    """Return the question as a statement that has the answer in the place of what it asks for."""
    text = bare(question)
    if found := WHAT_IS.match(text):
        return f"{found[2][:1].upper()}{found[2][1:]} {found[1]} {answer}."
    places = list(ASKING.finditer(text))
    asking = [place for place in places if place[0].lower() in ("what", "which")]
    place = places[0] if places and places[0].start() == 0 else next(iter(reversed(asking or places)), None)
    if place is None or place[0].startswith(("how", "when", "where")):
        return f"As for {text}, it is {answer}."
    before, thing = text[: place.start()], text[place.end() :].split()
    if place not in asking or not thing or thing[0] in WITHOUT_THING:
        return " ".join((before.strip(), answer, *thing)).strip() + "."
    if before and len(thing) <= 3:
        the_thing = "" if thing[-1].lower() in answer.lower() else f"the {' '.join(thing)} "
        return f"{before}{the_thing}{answer}."
    verb = next((n for n, word in enumerate(thing[1:5], 1) if word.endswith("ed")), None)
    return f"{before}{answer} {' '.join(thing[verb:])}." if verb else f"As for {text}, it is {answer}."


def topic(question: str, draw: random.Random) -> str:
    """Return some of the names in a question."""
    read = Text(question)
    names = naming_words(read)
    named = [raw for raw, word in zip(read.raw_words, read.words, strict=True) if word in names]
    return ", ".join(draw.sample(named, min(3, len(named)))) or "this"


FORMS: dict[str, Form] = {
    "answer is": lambda q, a, d: f"The answer is {a}.",
    "bold": lambda q, a, d: f"The answer to your question is **{a}**.",
    "citation": lambda q, a, d: f"It is {a} [1][3].",
    "one": lambda q, a, d: f"Based on the context, the one that {after_asking(q)} is {a}.",
    "asked": lambda q, a, d: f"The answer to the question {bare(q)} is {a}.",
    "subject": lambda q, a, d: f"{a} is the answer to the question {bare(q)}.",
    "place": lambda q, a, d: statement(q, a),
    "place, polite": lambda q, a, d: f"{d.choice(FRAMES)}{statement(q, a)} {d.choice(OFFERS)}",
    "polite": lambda q, a, d: f"{d.choice(FRAMES)}it is {a}. {d.choice(OFFERS)}",
    "offer": lambda q, a, d: f"{a}. {d.choice(OFFERS)}",
    "repeats": lambda q, a, d: f"You want to know {bare(q)}. {d.choice(FRAMES)}the answer is {a}.",
    "quotes": lambda q, a, d: f'Regarding your question "{q.strip()}": {a}.',
    "topic": lambda q, a, d: f"The documents discuss {topic(q, d)}. Therefore, the answer is {a}.",
    "lower case": lambda q, a, d: f"the one that {after_asking(q)} is {a}.".lower(),
    "heading": lambda q, a, d: f"## Answer\n\n{statement(q, '**' + a + '**')}\n\n---\n*{d.choice(OFFERS)}*",
    "item": lambda q, a, d: f"**{q.strip()}**\n\n- {a}\n",
    "html": lambda q, a, d: f"<p>{d.choice(FRAMES)}the answer is <b>{a}</b>.</p><p>{d.choice(OFFERS)}</p>",
}
"""ways to put a short answer into a sentence"""


def put(question: Question, form: str) -> str:
    """Return the answer of a question in a form; the same whatever other forms are wanted."""
    return FORMS[form](question.question, question.answer.strip().rstrip("."), random.Random(f"0 {form} {question.id}"))


def without_article(words: str) -> str:
    """Return a phrase without its article."""
    first, _, rest = words.strip().partition(" ")
    return rest if rest and first in ARTICLES else words.strip()


def is_found(question: Question, reading: AnswerReading) -> bool:
    """Return whether the short answer is the first telling phrase of an answer."""
    wanted = without_article(phrase(question.answer))
    return any(map(wanted.__eq__, (without_article(p) for claim in reading.claims[:1] for p in claim.phrases[:1])))


def found_rows(questions: Sequence[Question], forms: Sequence[str], misses: int) -> list[tuple[object, ...]]:
    """Return, by form, how often the short answer is found in its sentence."""
    rows: list[tuple[object, ...]] = []
    everywhere: list[bool] = []
    for form in forms:
        readings = [read_answer(question.question, put(question, form)) for question in questions]
        found = [is_found(*pair) for pair in zip(questions, readings, strict=True)]
        single = [len(reading.claims) == 1 for reading in readings]
        everywhere += found
        rows.append((form, percent(mean_with_interval(found)), percent(mean_with_interval(single))))
        missed = [pair for pair, ok in zip(zip(questions, readings, strict=True), found, strict=True) if not ok]
        for question, reading in missed[:misses]:
            print(f"{form}: {put(question, form)!r}\n    {question.answer!r} {[c.phrases for c in reading.claims]}")
    return [*rows, ("all forms", f"{100 * sum(everywhere) / len(everywhere):.1f}", "")]


def chain_rows(pairs: Sequence[Pair], forms: Sequence[str]) -> list[tuple[object, ...]]:
    """Return, by form, how often the default model finds the right passages, beside the short answers."""
    short = verdicts(pairs, "default")
    rows: list[tuple[object, ...]] = [("short answers", accuracy(short), "")]
    for form in forms:
        longer = [(question.model_copy(update={"answer": put(question, form)}), gold) for question, gold in pairs]
        found = verdicts(longer, "default")
        rows.append((form, accuracy(found), percent(compare(short, found)["chain accuracy"].gain)))
    return rows


def accuracy(found: Sequence[JudgedChain]) -> str:
    """Return how many chains have exactly the right passages."""
    return percent(summarise(found)["chain accuracy"])


def options() -> Namespace:
    """Return what the command line asks for."""
    asked = parser(__doc__)
    asked.add_argument("--set", default="open", help="the HotpotQA file")
    asked.add_argument("--limit", type=int, help="so many questions, drawn with seed 0")
    asked.add_argument("--forms", nargs="+", choices=list(FORMS), default=list(FORMS), metavar="FORM")
    asked.add_argument("--chains", action="store_true", help="compare the chains of the default model too")
    asked.add_argument("--misses", type=int, default=0, help="print so many answers of each form that are not found")
    return asked.parse_args()


def main() -> None:
    """Print the tables."""
    asked = options()
    pairs = bridge_pairs(asked.data, asked.set)
    if asked.limit and asked.limit < len(pairs):
        pairs = random.Random(0).sample(pairs, asked.limit)
    print_heading()
    print(f"{len(pairs)} unambiguous bridge questions of HotpotQA {asked.set}\n")
    rows = found_rows([question for question, _ in pairs], asked.forms, asked.misses)
    print_rows(("form", "short answer is the first phrase, %", "one claim, %"), rows)
    if asked.chains:
        rows = chain_rows(pairs, asked.forms)
        print_rows(("form", "exact passages, %", "difference to short answers"), rows)


if __name__ == "__main__":
    main()
