"""What the Reasoner names: linking entities on 2Wiki, which it was not trained on, and interacting pairs on MedHop.

    python benchmarks/reasoner.py ../shared/data [--hotpotqa FOLDER] [--drughop FOLDER]

The Reasoner of the default model reads the right last passage alone and names what leads there, among all entities that
link it to any other passage, or among those that it shares with the right first passage. The folders are those of
`rechain reproduce`: with them the Reasoners of the game are asked as well, the cooperative ones of fold 0 and seed 0,
which saw four fifths of the questions. Bootstrap: seed 0.
"""

from collections import defaultdict
from pathlib import Path

from common import candidates_of, parser, percent, print_heading, print_rows, two_wiki_pairs

from rechain.candidates import Candidates
from rechain.datasets import read_questions
from rechain.evaluation.judging import is_same_entity
from rechain.evaluation.statistics import mean_with_interval
from rechain.game.decoding import decode
from rechain.game.model import TrainedModel
from rechain.preparation.lexicon import Lexicon
from rechain.preparation.questions import Preparation, entity_names
from rechain.preparation.vectors import read_vectors
from rechain.reader.model import ChainReaderModel
from rechain.reader.pretrained import load
from rechain.reader.texts import Arrival, ChainTexts
from rechain.schema import Gold
from rechain.tables.pairs import judge_pairs, pairs_of, read_pair_labels
from rechain.training.game_runs import load_game

MODEL = "plays/cooperative.0.0.model"


def gold_chain(candidates: Candidates, gold: Gold) -> tuple[int, str] | None:
    """Return where in C the gold passages stand, and their linking entity."""
    ids = [passage.id for passage in candidates.question.passages]
    for chain in gold.chains:
        for number, candidate in enumerate(candidates.chains):
            if chain.links and [ids[place] for place in candidate.passages] == chain.passages:
                return number, chain.links[0]
    return None


def named_by(model: TrainedModel, candidates: Candidates, number: int) -> str:
    """Return the entity that the Reasoner names for a chain, among those that its passages share."""
    preparation = Preparation(Lexicon(model.rows))
    preparation.add(candidates)
    named = decode(model.players, model.read(preparation)).named[0, number, 0]
    return entity_names(candidates, is_merged=model.settings.entities == "merged")[int(named)].strip()


def shared(candidates: Candidates, number: int) -> list[str]:
    """Return the entities that both passages of a chain hold."""
    graph, (head, tail) = candidates.all_links(), candidates.chains[number].passages
    return [entity.name.strip() for entity in graph.entities(tail) if head in entity.holders]


def named_by_reader(model: ChainReaderModel, candidates: Candidates, number: int, is_shared: bool) -> str:
    """Return the entity that the default model's Reasoner names for the last passage of a chain."""
    head, tail = candidates.chains[number].passages
    edges = {edge.key: edge for edge in candidates.all_links().edges(tail) if not is_shared or edge.before == head}
    if not edges:
        return ""
    arrival = Arrival(tail, None, list(edges.values()))
    text = ChainTexts(candidates, model.tokenizer, model.settings.max_tokens).arrival(
        arrival, model.settings.passage_tokens
    )
    ((named,),) = model.read("name_links", [[text]], len(edges))
    return arrival.ways[int(named.argmax())].link.entity


def two_wiki(data: Path, model: TrainedModel | None) -> None:
    """Print how often the link is right, given the right passages."""
    pairs, reader = two_wiki_pairs(data), load()
    golds = {question.id: gold for question, gold in pairs}
    hits: dict[str, list[bool]] = defaultdict(list)
    for candidates in candidates_of(question for question, _ in pairs):
        if (known := gold_chain(candidates, golds[candidates.question.id])) is None:
            continue
        number, link = known
        strongest = candidates.chains[number].links[0].entity
        hits["the strongest link"].append(is_same_entity(strongest, link))
        for name, is_shared in (("of any passage", False), ("of the two passages", True)):
            named = named_by_reader(reader, candidates, number, is_shared)
            hits[f"named by the default model's Reasoner, among links {name}"].append(is_same_entity(named, link))
        if model:
            hits["named by the game's Reasoner"].append(is_same_entity(named_by(model, candidates, number), link))
        hits["any shared entity"].append(any(is_same_entity(name, link) for name in shared(candidates, number)))
    rows = [(name, percent(mean_with_interval(right)), len(right)) for name, right in hits.items()]
    print_rows(("2Wiki, linking entity given the right passages", "right, %", "questions"), rows)


def med_hop(data: Path, model: TrainedModel) -> None:
    """Print how well pairs that interact are told from others."""
    folder = data / "medhop"
    files = ("train_11.json.gz", "dev_5.json.gz")
    questions = [question for file in files for question in read_questions(folder / file)]
    pairs = pairs_of(questions, read_pair_labels(folder / "interactions.jsonl"))
    figures = judge_pairs(pairs, model, "DrugHop")
    rows = [(name, percent(figure), figure.questions) for name, figure in figures.items()]
    print_rows(("MedHop, interacting pairs", "AUC, %", "pairs"), rows)


def main() -> None:
    """Print both tables, the second where there is a game of DrugHop."""
    options = parser(__doc__)
    for name in ("--hotpotqa", "--drughop"):
        options.add_argument(name, type=Path)
    told = options.parse_args()
    print_heading()
    game = None
    if told.hotpotqa:
        game = load_game(told.hotpotqa / MODEL, read_vectors(told.data / "vectors/glove.6B.100d.subset.npz"))
    two_wiki(told.data, game)
    if told.drughop:
        med_hop(told.data, load_game(told.drughop / MODEL, read_vectors(told.data / "vectors/bio.100d.npz")))


if __name__ == "__main__":
    main()
