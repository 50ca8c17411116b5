"""What the default model's judge learns from beside real questions: made-up records, and gaps in real sentences.

Both ask for a value that stands in a text among others of its kind, as in handbooks, price lists and leaflets: which
one is right is told by the row, the sentence or the heading that it stands in, and by nothing else. Neither needs a
label, and neither is made from any set that is measured on.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random

from rechain.preparation.pseudo.wording import PassageReading
from rechain.schema import Passage, Question
from rechain.text.passages import PassageView
from rechain.text.rarity import idf

Material = Iterator[tuple[Question, list[str]]]
"""questions, each with wrong answers"""
Value = Callable[[Random], str]

# ---- values


def _money(random: Random) -> str:
    amount = random.choice((random.randint(5, 99), 5 * random.randint(4, 120), 50 * random.randint(3, 90)))
    return f"¤{amount:,}"  # in what currency, the record says


def _of(unit: str, least: int, most: int, step: int = 1) -> Value:
    return lambda random: f"{step * random.randint(least // step or 1, most // step)} {unit}".strip()


def _time(random: Random) -> str:
    return f"{random.randint(6, 21)}:{random.choice(('00', '15', '30', '45'))}"


def _date(random: Random) -> str:
    return f"{random.randint(1, 28)} {random.choice(_MONTHS)} {random.randint(2015, 2027)}"


def _person(random: Random) -> str:
    return f"{random.choice(_FIRST)} {random.choice(_LAST)}"


_MONTHS = ("January", "February", "March", "April", "June", "July", "August", "September", "October", "December")
_FIRST = ("Anna", "Ben", "Carla", "Deniz", "Elif", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Keiko", "Lars", "Mina")
_LAST = ("Aydin", "Berg", "Costa", "Diaz", "Ekman", "Fischer", "Gruber", "Haas", "Ito", "Jansen", "Keller", "Lund")

# ---- what records are about: names, and attributes in several wordings, the first of which is also a heading

Attribute = tuple[tuple[str, ...], Value]
_TOPICS: Sequence[tuple[str, Sequence[str], Sequence[Attribute]]] = (
    (
        "office",
        (
            "Zurich",
            "Oslo",
            "Porto",
            "Vienna",
            "Lyon",
            "Dublin",
            "Tallinn",
            "Osaka",
            "Denver",
            "Leeds",
            "Ghent",
            "Turin",
        ),
        (
            (("hotel limit per night", "maximum hotel rate", "most that a hotel room may cost"), _money),
            (("meal allowance", "daily allowance for food", "amount paid for meals a day"), _money),
            (("head count", "number of employees", "size of the team"), _of("people", 6, 400)),
            (("office manager", "person in charge", "head of the office"), _person),
            (("closing time", "hour at which the doors close"), _time),
            (("emergency extension", "number to call in an emergency"), _of("", 1000, 9999)),
        ),
    ),
    (
        "plan",
        ("Basic", "Plus", "Team", "Business", "Enterprise", "Starter", "Family", "Student", "Premium", "Lite"),
        (
            (("monthly price", "price per month", "monthly fee"), _money),
            (("storage", "disk space", "storage limit"), _of("GB", 5, 2000, 5)),
            (("seats", "number of users", "accounts included"), _of("users", 1, 500)),
            (("response time of support", "time within which support replies"), _of("hours", 1, 72)),
            (("notice period", "time of notice to cancel"), _of("days", 7, 90)),
        ),
    ),
    (
        "tablet",
        (
            "Norvalin",
            "Cetapril",
            "Dolomex",
            "Ferrosan",
            "Ibutrel",
            "Lorasin",
            "Metoxan",
            "Pantrix",
            "Quetral",
            "Zolpamed",
        ),
        (
            (("maximum daily dose", "most that may be taken in a day"), _of("mg", 5, 4000, 5)),
            (("single dose", "usual dose", "amount to take at once"), _of("mg", 5, 800, 5)),
            (("interval between doses", "time to wait before the next dose"), _of("hours", 4, 24)),
            (("minimum age", "age from which it may be taken"), _of("years", 2, 18)),
            (("storage temperature", "temperature at which to keep it"), _of("°C", 2, 30)),
        ),
    ),
    (
        "programme",
        ("Cotton", "Wool", "Eco", "Quick", "Delicate", "Intensive", "Rinse", "Steam", "Mixed", "Sport"),
        (
            (("temperature", "heat of the water"), _of("°C", 20, 95, 5)),
            (("duration", "running time", "length of the cycle"), _of("minutes", 14, 240)),
            (("water consumption", "water used"), _of("litres", 6, 90)),
            (("maximum load", "heaviest load"), _of("kg", 1, 12)),
            (("spin speed", "revolutions of the drum"), _of("rpm", 400, 1600, 100)),
        ),
    ),
    (
        "model",
        ("AX-10", "AX-20", "BT-300", "C7", "Delta 4", "Echo S", "Falcon", "GX 550", "Halo", "K-2", "Nova", "Orion"),
        (
            (("weight", "how heavy it is"), _of("kg", 1, 95)),
            (("warranty", "warranty period", "guarantee"), _of("months", 6, 60, 6)),
            (("rated power", "power consumption"), _of("W", 20, 3000, 10)),
            (("noise level", "loudness in use"), _of("dB", 28, 80)),
            (("release date", "day it came out"), _date),
            (("price", "retail price", "cost"), _money),
        ),
    ),
    (
        "leave",
        ("parental leave", "sick leave", "study leave", "unpaid leave", "care leave", "annual leave", "moving leave"),
        (
            (("length", "number of days", "days granted"), _of("days", 1, 60)),
            (("notice", "how early it must be requested"), _of("weeks", 1, 12)),
            (("approver", "person who approves it"), _person),
            (("deadline", "last day to apply"), _date),
        ),
    ),
    (
        "endpoint",
        ("/users", "/orders", "/search", "/export", "/login", "/reports", "/webhooks", "/files", "/events", "/status"),
        (
            (("rate limit", "requests allowed per minute"), _of("requests", 5, 2000, 5)),
            (("timeout", "time before a call is cut off"), _of("seconds", 2, 300)),
            (("page size", "default number of results"), _of("items", 10, 500, 10)),
            (("owner", "responsible developer"), _person),
        ),
    ),
    (
        "tariff",
        ("Home Classic", "Home Top", "Travel Safe", "Dental 50", "Dental 90", "Cargo", "Bike", "Pet Care", "Legal"),
        (
            (("deductible", "excess", "share that the customer pays"), _money),
            (("coverage limit", "sum insured", "highest amount paid out"), _money),
            (("waiting period", "time before cover begins"), _of("months", 1, 24)),
            (("yearly premium", "annual contribution"), _money),
        ),
    ),
)
_FILLING = (
    "Please ask the service desk in case of doubt.",
    "This page is reviewed once a year.",
    "Exceptions need approval in writing.",
    "See also the general terms.",
    "Values are subject to change.",
)


class _Record:
    """A table of values: some things of a topic, and some attributes, worded as the document words them."""

    def __init__(self, random: Random) -> None:
        self.topic, names, attributes = random.choice(_TOPICS)
        self.names = random.sample(names, random.randint(2, min(6, len(names))))
        self.attributes = random.sample(attributes, random.randint(1, min(3, len(attributes))))
        self.words = [random.choice(wordings) for wordings, _ in self.attributes]
        money = random.choice(("EUR ", "€", "$", "CHF ", "£", "USD ", "EUR ", "€"))
        self.values = [[value(random).replace("¤", money) for _, value in self.attributes] for _ in self.names]

    def write(self, random: Random) -> list[Passage]:
        """Return it as one passage, or as one for each thing."""
        title = random.choice((f"{self.topic.capitalize()} overview", f"Guide: {self.topic}", "Handbook", ""))
        style = random.choice((self._table, self._list, self._prose, self._prose, None))
        if style is not None:
            lines = [style(), *random.sample(_FILLING, random.randint(0, 2))]
            random.shuffle(lines)
            return [Passage(id="0", title=title, text="\n".join(lines))]
        texts = [f"{self._sentence(row, random)} {random.choice(_FILLING)}" for row in range(len(self.names))]
        return [Passage(id=str(row), title=f"{self.names[row]} ({self.topic})", text=t) for row, t in enumerate(texts)]

    def _table(self) -> str:
        rows = [[self.topic, *self.words], ["---"] * (len(self.words) + 1)]
        rows += [[name, *values] for name, values in zip(self.names, self.values, strict=True)]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def _list(self) -> str:
        pairs = [zip(self.words, values, strict=True) for values in self.values]
        return "\n".join(
            f"- {name}: {', '.join(f'{words} {value}' for words, value in of_name)}"
            for name, of_name in zip(self.names, pairs, strict=True)
        )

    def _prose(self) -> str:
        return " ".join(self._sentence(row, Random(f"{self.names} {row}")) for row in range(len(self.names)))

    def _sentence(self, row: int, random: Random) -> str:
        name, parts = self.names[row], []
        for words, value in zip(self.words, self.values[row], strict=True):
            frame = random.choice(("the {w} is {v}", "the {w} comes to {v}", "{v} is the {w}", "{v} applies as {w}"))
            parts.append(frame.format(w=words, v=value))
        return f"{random.choice(('For', 'In the case of', 'With'))} {name}, {' and '.join(parts)}."


_ASKED = (
    "What is the {words} for {name}?",
    "What {words} applies to {name}?",
    "{name}: {words}?",
    "Can you tell me the {words} of {name}?",
    "For {name}, what is the {words}?",
    "I need the {words} of the {topic} {name}.",
    "Which {words} does {name} have?",
)


def records(count: int, seed: int = 0) -> Material:
    """Yield questions about made-up records; wrong are the values of other rows and other columns."""
    for number in range(count):
        random = Random(f"record {seed} {number}")
        record = _Record(random)
        row, column = random.randrange(len(record.names)), random.randrange(len(record.words))
        right = record.values[row][column]
        wordings = record.attributes[column][0]
        asked = random.choice(_ASKED).format(words=random.choice(wordings), name=record.names[row], topic=record.topic)
        others = [values[column] for values in record.values] + record.values[row]
        wrong = sorted({value for value in others if value not in right and right not in value})
        random.shuffle(wrong)
        passages = record.write(random)
        yield Question(id=f"record{number}", question=asked, answer=right, passages=passages), wrong[:4]


# ---- gaps in real sentences

_ASKING = {
    "date": ("when", "on what date"),
    "year": ("when", "in which year"),
    "number": ("how many", "how much", "what number"),
}
_KEPT = 0.75
"""share of a sentence's other words that a question keeps"""


def gaps(passages: Sequence[Passage], count: int, seed: int = 0) -> Material:
    """Yield questions that ask for a value or name of a sentence; wrong are those of other sentences of the passage."""
    random = Random(f"gaps {seed}")
    order = random.sample(range(len(passages)), len(passages))
    found = (made for number in order if (made := _gap(passages[number], number, random)))
    return islice(found, count)


def _gap(passage: Passage, number: int, random: Random) -> tuple[Question, list[str]] | None:
    reading = PassageReading(PassageView(passage))
    forms = [(answer, answer.kind if answer.kind in _ASKING else "name") for answer in reading.answers]
    random.shuffle(forms)
    for answer, form in forms:
        sentence = reading.sentences[answer.sentence]
        wrong = {
            other.phrase: other.text
            for other, of in forms
            if of == form and other.phrase not in sentence.joined and answer.phrase not in other.phrase
        }
        words = [w for w in sentence.joined.replace(answer.phrase, " ").split() if random.random() < _KEPT]
        if wrong and sum(idf(word) > 3 for word in words) >= 3 and passage.title not in answer.text:
            asking = random.choice(_ASKING.get(form, ("what", "which", "who")))
            title = [passage.title] if random.random() < 0.5 else []
            asked = " ".join([asking, *words, *title])
            others = random.sample(sorted(wrong.values()), min(4, len(wrong)))
            return Question(id=f"gap{number}", question=f"{asked}?", answer=answer.text, passages=[passage]), others
    return None
