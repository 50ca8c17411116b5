"""How well recovered chains tell HotpotQA's supporting facts, by three rules for a passage's sentences.

    python benchmarks/exports.py ../shared/data

As in the official hotpot_evaluate_v1.py: means over all questions, of which those without a chain count 0. Bootstrap:
seed 0. The lexical rule recovers the chains, since it has learnt from no question.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from common import data_folder, percent, print_heading, print_rows
from pydantic import TypeAdapter

from rechain.evaluation.statistics import mean_with_interval
from rechain.formats.datasets import read_entries
from rechain.formats.datasets.published import SupportingFacts
from rechain.formats.datasets.records import read_records
from rechain.formats.exports.joining import Joined, Selection, join, with_sentences
from rechain.formats.exports.predictions import Evidence, Fact, Rule, facts, supporting
from rechain.recoverer import Recoverer

TYPE = "bridge"
COLUMNS = ("exact match, %", "F1, %", "precision, %", "recall, %")


def every_answering(evidence: Evidence) -> Iterable[int]:
    """Take all sentences with the answer, and not the first of them alone."""
    return [*supporting(evidence), *evidence.answering]


def with_first(evidence: Evidence) -> Iterable[int]:
    """Take the first sentence always."""
    return [*evidence.sentences[:1], *every_answering(evidence)]


RULES: Mapping[str, Rule] = {
    "with a link, and the first with the answer; else the first (what is exported)": supporting,
    "with a link, and all with the answer; else the first": every_answering,
    "with a link, and all with the answer, and always the first": with_first,
}


def exported(path: Path) -> Iterator[Joined]:
    """Yield the questions with their chains, as the export joins them."""
    recovered = Recoverer("lexical").recover_many(read_entries(path, only=[TYPE]))
    return join((("", one) for one in recovered), with_sentences(read_entries(path), path), Selection())


def correct_facts(path: Path) -> dict[str, set[Fact]]:
    """Return the supporting facts of the questions."""
    read = TypeAdapter(SupportingFacts).validate_python
    values = (record.value for record in read_records(path))
    records = (value for value in values if isinstance(value, dict))
    return {one["_id"]: set(read(one["supporting_facts"])) for one in records if one["type"] == TYPE}


def compare(predicted: set[Fact], correct: set[Fact]) -> tuple[float, float, float, float]:
    """Return exact match, F1, precision and recall of one question."""
    both = len(predicted & correct)
    precision, recall = both / len(predicted) if predicted else 0.0, both / len(correct) if correct else 0.0
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    return float(predicted == correct), f1, precision, recall


def figures(chains: Sequence[Joined], correct: Mapping[str, set[Fact]], rule: Rule) -> list[str]:
    """Return the figures of a rule, a column each."""
    predicted = {joined.question.id: set(facts(joined, rule)) for joined in chains}
    compared = [compare(predicted.get(name, set()), facts) for name, facts in correct.items()]
    return [percent(mean_with_interval(column)) for column in zip(*compared, strict=True)]


def main() -> None:
    """Print the table."""
    path = data_folder() / "hotpotqa/open.json.gz"
    print_heading()
    chains, correct = list(exported(path)), correct_facts(path)
    print(f"HotpotQA open, {len(correct)} {TYPE} questions, {len(chains)} with a chain:\n")
    print_rows(("sentences", *COLUMNS), [(name, *figures(chains, correct, rule)) for name, rule in RULES.items()])


if __name__ == "__main__":
    main()
