"""Small valid examples of every format that is read, of invented names."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Record = dict[str, Any]
_SYLLABLES = [start + end for start in ("b", "br", "d", "g", "kl", "m", "st", "z") for end in ("al", "ek", "om", "ur")]
_TYPES = ("bridge", "comparison", "compositional", "inference")


def _name(draw: Random) -> str:
    return "".join(draw.choices(_SYLLABLES, k=3)).capitalize()


def plain(draw: Random, number: int) -> Record:
    """Return a question about the maker of a work: the work's passage names the maker, the maker's the town."""
    work, maker, guest, town, far = (_name(draw) for _ in range(5))
    passages = [
        {"id": "work", "title": work, "text": f"{work} was made by {maker} and sold by {guest}."},
        {"id": "maker", "title": maker, "text": f"{maker} was a painter and was born in {town}."},
        {"id": "guest", "title": guest, "text": f"{guest} sold pictures in {draw.choice((town, far))}."},
    ]
    asked = f"Of which town was the maker of {work} a native?"
    record = {"id": f"q{number}", "question": asked, "answer": town, "passages": passages}
    extras = {"hops": 2, "type": draw.choice(_TYPES), "answer_aliases": [f"{town} town"], "question_entities": [work]}
    return record | {name: value for name, value in extras.items() if draw.random() < 0.4}


def with_mentions(draw: Random, number: int) -> Record:
    """Return a question whose entities are given, as DrugHop has them."""
    record = plain(draw, number)
    names = [passage["title"] for passage in record["passages"]] + [record["answer"]]
    for passage in record["passages"]:
        found = [(name, passage["text"].find(name)) for name in names]
        passage["mentions"] = [
            {"entity": f"gene:{name}", "start": at, "end": at + len(name)} for name, at in found if at >= 0
        ]
    return record | {"answer_entity": f"gene:{record['answer']}", "hops": 2, "link_types": ["gene"]}


def by_ids(draw: Random, number: int) -> Record:
    """Return a question that names its passages by their ids."""
    record = plain(draw, number)
    del record["passages"]
    return record | {"passage_ids": draw.sample([f"p{n}" for n in range(6)], 3)}


def hotpotqa(draw: Random, number: int) -> Record:
    """Return a question as HotpotQA has it, or as the Hub has that."""
    record = plain(draw, number)
    context = [[passage["title"], [passage["text"], " Yes."]] for passage in record["passages"]]
    facts = [[context[0][0], 0], [context[1][0], 0]]
    fields = {"_id": record["id"], "question": record["question"], "answer": record["answer"], "type": "bridge"}
    if draw.random() < 0.3:
        titles, sentences = map(list, zip(*context, strict=True))
        of_facts = {"title": [title for title, _ in facts], "sent_id": [0, 0]}
        return fields | {"context": {"title": titles, "sentences": sentences}, "supporting_facts": of_facts}
    return fields | {"context": context, "supporting_facts": facts, "level": "hard"}


def twowiki(draw: Random, number: int) -> Record:
    """Return a question as 2WikiMultihopQA has it."""
    record = hotpotqa(draw, number)
    maker = record["question"].split()[-3]
    evidences = [[maker, "maker", "someone"], ["someone", "town", record["answer"]]]
    return record | {"type": "compositional", "evidences": evidences}


def musique(draw: Random, number: int) -> Record:
    """Return a question as MuSiQue has it."""
    record = plain(draw, number)
    paragraphs = [
        {"idx": place, "title": passage["title"], "paragraph_text": passage["text"], "is_supporting": place < 2}
        for place, passage in enumerate(record["passages"])
    ]
    steps = [
        {"id": 1, "question": "Who made it?", "answer": paragraphs[1]["title"], "paragraph_support_idx": 0},
        {"id": 2, "question": "Where was #1 born?", "answer": record["answer"], "paragraph_support_idx": 1},
    ]
    fields = {"id": f"2hop__{number}", "question": record["question"], "answer": record["answer"]}
    fields |= {"paragraphs": paragraphs, "question_decomposition": steps}
    return fields | {"answer_aliases": [], "answerable": True}


def medhop(draw: Random, number: int) -> Record:
    """Return a question as MedHop has it: drug, protein, protein, drug."""
    one, two = (f"DB{draw.randrange(10_000):05}" for _ in range(2))
    first, second = (f"P{draw.randrange(10_000, 99_999)}" for _ in range(2))
    supports = [f"{one} binds {first} .", f"{first} activates {second} .", f"{second} is cut by {two} ."]
    fields = {"id": f"MH_{number}", "query": f"interacts_with {one}?", "answer": two}
    return fields | {"supports": supports, "candidates": [two, "DB99999"]}


QUESTIONS: Sequence[Callable[[Random, int], Record]] = (
    *(plain, plain, with_mentions, by_ids, hotpotqa, twowiki, musique, medhop),
)


def passages(draw: Random) -> list[Record]:
    """Return the passages that `by_ids` names."""
    town, names = _name(draw), [_name(draw) for _ in range(6)]
    return [
        {"id": f"p{n}", "title": name, "text": f"{name} knew {names[n - 1]} and lived in {town}."}
        for n, name in enumerate(names)
    ]


def _texts(record: Record) -> list[tuple[str, str]]:
    """Return the ids and texts of a question's passages."""
    if "passages" in record:
        return [(passage["id"], passage["text"]) for passage in record["passages"]]
    if "context" in record:
        context = record["context"]
        pairs = zip(context["title"], context["sentences"], strict=True) if isinstance(context, dict) else context
        return [(title, " ".join(sentence.strip() for sentence in texts)) for title, texts in pairs]
    if "paragraphs" in record:
        return [(str(paragraph["idx"]), paragraph["paragraph_text"]) for paragraph in record["paragraphs"]]
    if "supports" in record:
        return [(str(place), text) for place, text in enumerate(record["supports"])]
    return [(name, "Anybody knew somebody.") for name in record.get("passage_ids", ())]


def chains(draw: Random, record: Record) -> Record:
    """Return chains of a question, as recover writes them."""
    texts = _texts(record)[:2]
    words = [texts[0][1].split(" ")[0], texts[-1][1].split(" ")[0]]
    spans = [[0, len(words[0])], None if draw.random() < 0.3 else [0, len(words[1])]]
    link = {"entity": words[0], "kind": draw.choice(("title", "name", "mention")), "weight": 6.1, "mentions": spans}
    chain: Record = {"passages": [name for name, _ in texts], "links": [link], "score": -0.41}
    chain |= {"confidence": draw.choice((None, 0.0, 0.5, 0.93, 1.0))}
    if draw.random() < 0.2:
        chain["why"] = {"evidence": {"idf": 1.0}, "steps": [0.1, 0.2]}
    judged: Record = {}
    if draw.random() < 0.5:
        name, span = texts[-1][0], draw.choice((None, [0, len(words[1])], [0, 10**6]))
        verdict = draw.choice(("supported", "partly", "unsupported", "no_answer"))
        claim = {"text": words[0], "verdict": verdict, "passage": draw.choice((None, name)), "span": span}
        judged = {"verdict": verdict, "verdict_probability": draw.choice((None, 0.0, 0.7)), "claims": [claim]}
        chain["shape"] = draw.choice(("chain", "parallel"))
        chain["answer"] = {"match": "words", "passage": name, "span": span}
    if draw.random() < 0.2:
        error = {"code": "no_candidates", "message": "there is no chain."}
        return {"id": _id(record), **judged, "chains": [], "error": error}
    return {"id": _id(record), **judged, "chains": [chain] * draw.choice((1, 1, 2)), "error": None}


def gold(draw: Random, record: Record) -> Record:
    """Return the gold chains of a question."""
    names = [name for name, _ in _texts(record)[:2]]
    chain: Record = {"passages": names, "links": ["Someone"]}
    if draw.random() < 0.3:
        chain = {"passages": names, "ordered": False}
    return {"id": _id(record), "chains": [chain]}


def pair(draw: Random, record: Record) -> Record:
    """Return a labelled pair of a question, as MedHop's have it."""
    names = (record.get("query", "DB00001") + record["answer"]).split()
    row = {"id": _id(record), "support": draw.randrange(3), "a": names[0], "b": record["answer"]}
    return row | {"interacts": draw.random() < 0.5} | ({"evidence": "binds"} if draw.random() < 0.3 else {})


def _id(record: Record) -> str:
    return str(record.get("id") or record.get("_id"))
