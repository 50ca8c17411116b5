"""How many pseudo questions can be made, how hard they are, and how fast.

    python benchmarks/pseudo.py ../shared/data

Five are made from each of the first 1,000 sources, where possible. Lexical accuracy: the passages of the chain in order
and, where the data gives the entities, the linking entities too. Seed 0; bootstrap: seed 0.
"""

import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from statistics import mean

from common import data_folder, drughop_questions, percent, print_heading, print_rows

from rechain.candidates import Candidates, find_candidates
from rechain.datasets import read_questions
from rechain.evaluation.statistics import mean_with_interval
from rechain.preparation.pseudo import PseudoQuestion, make_pseudo_questions
from rechain.schema import Question
from rechain.scoring import Lexical

SOURCES = 1000
COUNT = 5 * SOURCES
EXAMPLES = 3
HEADER = (
    "sources",
    "sources used",
    "made",
    "words a question",
    "passages",
    "C, chains",
    "tails",
    "lexical accuracy, %",
    "made a second, on one core",
)


def sets(data: Path) -> dict[str, Iterable[Question]]:
    """Return the sources by name."""
    return {"HotpotQA open": read_questions(data / "hotpotqa/open.json.gz"), "DrugHop open": drughop_questions(data)}


def is_solved(pseudo: PseudoQuestion, candidates: Candidates) -> bool:
    """Return whether the lexical rule picks the chain that a question was made from."""
    scores = [sum(contributions.values()) for contributions in Lexical().score(candidates)]
    best = candidates.chains[scores.index(max(scores))]
    links = tuple(edge.key for edge in best.edges if edge.is_given)
    return best.passages == pseudo.chain and (not links or links == pseudo.links)


def measure(name: str, made: Sequence[PseudoQuestion], seconds: float) -> tuple[object, ...]:
    """Return a row of the table."""
    built = [find_candidates(pseudo.question) for pseudo in made]
    solved = [is_solved(*pair) for pair in zip(made, built, strict=True)]
    return (
        name,
        len({pseudo.source for pseudo in made}),
        len(made),
        f"{mean(len(pseudo.question.question.split()) for pseudo in made):.1f}",
        f"{mean(len(pseudo.question.passages) for pseudo in made):.1f}",
        f"{mean(len(candidates.chains) for candidates in built):.2f}",
        f"{mean(len(candidates.tails) for candidates in built):.2f}",
        percent(mean_with_interval(solved)),
        round(len(made) / seconds),
    )


def print_examples(name: str, made: Sequence[PseudoQuestion]) -> None:
    """Print some questions with their answers and the passages that they were made from."""
    print(f"{name}:\n")
    for pseudo in made[:: len(made) // EXAMPLES][:EXAMPLES]:
        passages = [pseudo.question.passages[number] for number in pseudo.chain]
        chain = " -> ".join(passage.title or passage.id for passage in passages)
        print(f"- {pseudo.question.question} *{pseudo.question.answer}* ({chain}, by {', '.join(pseudo.links)})")
    print()


def main() -> None:
    """Print the table and the examples."""
    data = data_folder()
    print_heading()
    rows, examples = [], {}
    for name, questions in sets(data).items():
        sources = list(islice(questions, SOURCES))
        start = time.perf_counter()
        made = list(make_pseudo_questions(sources, COUNT))
        rows.append(measure(name, made, time.perf_counter() - start))
        examples[name] = made
    print_rows(HEADER, rows)
    for name, made in examples.items():
        print_examples(name, made)


if __name__ == "__main__":
    main()
