"""What the tests share: the real data where it is, and small questions written for them."""

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from rechain.errors import QuestionError
from rechain.schema import Mention, Passage, Question
from rechain.scoring.interface import Scores
from rechain.text.candidates import Candidates

if TYPE_CHECKING:
    from rechain.reader.model import ChainReaderModel

# A busy machine may take longer than 200 ms for an example: no test depends on the clock.
settings.register_profile("rechain", deadline=None)
settings.load_profile("rechain")

# So that no log begins in a run that takes long on a busy machine; tests of logs choose their own seconds.
os.environ["RECHAIN_LOG_SECONDS"] = "1e6"

# What a shell starts in the background ignores Ctrl+C, and so would the processes that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

REAL_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with real data; tests that need it are skipped where it is absent."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"the real data is not at {REAL_DATA}")
    return REAL_DATA


@pytest.fixture
def films_question() -> Question:
    """A question whose evidence is a graph: two films, each with its director."""
    texts = {
        "f1": ("Zimbelot", "Zimbelot is a film by Ivo Brandt."),
        "d1": ("Ivo Brandt", "Ivo Brandt was born in 1931."),
        "f2": ("Quorvath", "Quorvath is a film by Lena Osterman."),
        "d2": ("Lena Osterman", "Lena Osterman was born in 1944."),
    }
    passages = [Passage(id=name, title=title, text=text) for name, (title, text) in texts.items()]
    asked = "Which has the older director, Zimbelot or Quorvath?"
    return Question(id="q", question=asked, answer="Zimbelot", passages=passages)


@pytest.fixture
def bridge_question() -> Question:
    """A 2-hop question whose head names the tail by its title, with distractors."""
    return Question(
        id="q1",
        question="Where was the composer of the Zorilla opera born?",
        answer="Prague",
        hops=2,
        passages=[
            Passage(id="opera", title="Zorilla", text="Zorilla is an opera by Anton Quillfeather."),
            Passage(id="composer", title="Anton Quillfeather", text="Anton Quillfeather was born in Prague."),
            Passage(id="city", title="Prague", text="Prague lies on a river and has many bridges."),
            Passage(id="other", title="Weather", text="It rains often in autumn."),
        ],
    )


@pytest.fixture
def medhop() -> Question:
    """Two candidate chains, drug 1 - protein - protein - drug 2: over passages 0, 1, 2 and over 0, 3, 2."""
    return Question(
        id="MH_1",
        question="interacts_with DB00001?",
        answer="DB00002",
        question_entities=["drug:DB00001"],
        answer_entity="drug:DB00002",
        hops=3,
        link_types=["protein", "protein"],
        passages=[
            Passage(id="0", text="DB00001 binds P12345 and P99999 ."),
            Passage(id="1", text="P12345 activates Q23456 ."),
            Passage(id="2", text="Q23456 is cut by DB00002 ."),
            Passage(id="3", text="P99999 activates Q23456 ."),
        ],
    )


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny tensors are slower on several threads."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def default_model() -> "ChainReaderModel":
    """The model that comes with the package, loaded once."""
    from rechain.reader.pretrained import load

    return load()


_SYLLABLES = [start + end for start in ("b", "br", "d", "g", "kl", "m", "st", "z") for end in ("al", "ek", "om", "ur")]


def _town_question(number: int, is_trap: bool) -> Question:
    """Who made the work stands in `work`, where they were born in `maker`; `guest` has more of the question's words.

    In a trap the guest's passage holds the answer too: C has wrong chains, and the lexical rule takes one of them.
    """
    draw = Random(number)
    work, maker, guest, town, elsewhere, other, far = (
        "".join(draw.choices(_SYLLABLES, k=3)).capitalize() for _ in range(7)
    )
    year = draw.randint(1700, 1900)
    passages = [
        Passage(id="work", title=work, text=f"{work} was made in {year} by {maker} and sold by {guest}."),
        Passage(id="maker", title=maker, text=f"{maker} was a painter with many friends and was born in {town}."),
        Passage(
            id="guest",
            title=guest,
            text=f"{guest} sold many pictures to a native maker of the town {town if is_trap else elsewhere}.",
        ),
        Passage(id="other", title=other, text=f"{other} was made in {year} for the people of {far}."),
    ]
    draw.shuffle(passages)
    asked = f"Of which town was the maker of {work} a native?"
    return Question(id=f"town-{number}", question=asked, answer=town, hops=2, passages=passages)


Towns = Callable[..., list[Question]]


@pytest.fixture(scope="session")
def towns() -> Towns:
    """Make questions of two passages out of invented names: `towns(10)`, `towns(10, first=50, traps=True)`.

    Every third is a trap, or all of them.
    """

    def make(count: int, first: int = 0, traps: bool = False) -> list[Question]:
        return [_town_question(number, traps or number % 3 == 0) for number in range(first, first + count)]

    return make


@pytest.fixture
def town_file(tmp_path: Path, towns: Towns) -> Path:
    """A file of twelve such questions."""
    path = tmp_path / "towns.jsonl"
    path.write_text("".join(question.model_dump_json(exclude_none=True) + "\n" for question in towns(12)))
    return path


def _drug_passage(id: str, text: str) -> Passage:
    """Return a passage in which every word of capitals is an entity: one of D a drug, others genes."""
    words = re.finditer(r"[A-Z]+[0-9]*", text)
    mentions = [(f"{'drug' if word[0].startswith('D') else 'gene'}:{word[0]}", *word.span()) for word in words]
    return Passage(id=id, text=text, mentions=[Mention(entity=e, start=a, end=b) for e, a, b in mentions])


def _drug_question(number: int, genes: str) -> Question:
    drug = f"D{number}"
    passages = [
        _drug_passage(f"head-{number}", f"{drug} binds {genes}."),
        _drug_passage("good", "it is known that X is cut by DA."),
        *(_drug_passage(f"bad-{gene}", f"it is known that {gene} is cut by DA.") for gene in "ZYW"),
    ]
    ends = {"question_entities": [f"drug:{drug}"], "answer_entity": "drug:DA"}
    return Question(
        id=f"drug-{number}", question=f"interacts_with {drug}?", answer="DA", hops=2, passages=passages, **ends
    )


@pytest.fixture(scope="session")
def drugs() -> Callable[[int, int], list[Question]]:
    """Make questions whose entities the data names: `drugs(3, 2)` are three in doubt and two that are sure.

    By themselves, those in doubt choose the chain over gene Z, which stands nearest; the sure ones know only gene X.
    """

    def make(doubtful: int, sure: int) -> list[Question]:
        in_doubt = [_drug_question(number, "Z, Y, W and X") for number in range(doubtful)]
        return in_doubt + [_drug_question(100 + number, "X") for number in range(sure)]

    return make


class _BatchFake:
    """Ranks candidates by their place, is half as confident of each as of the one before, and notes what it was asked.

    A batch with a question that it `refuses` is an error.
    """

    chooses_hops = False

    def __init__(self, confidence: float = 0.8, refuses: Sequence[str] = ()) -> None:
        self.confidence = confidence
        self.refuses = refuses
        self.batches: list[list[str]] = []
        self.device = "nowhere"

    def score_many(self, batch: Sequence[Candidates]) -> Sequence[Scores]:
        self.batches.append([candidates.question.id for candidates in batch])
        for name in self.batches[-1]:
            if name in self.refuses:
                raise QuestionError("refused", f"the model refuses {name}")
        return [self._scores(len(candidates.chains)) for candidates in batch]

    def _scores(self, chains: int) -> Scores:
        return Scores([{"place": -float(n)} for n in range(chains)], [self.confidence / 2**n for n in range(chains)])

    def to(self, device: str) -> "_BatchFake":
        self.device = device
        return self


@pytest.fixture
def batch_fake() -> type[_BatchFake]:
    """The class of a model that scores many questions together and tells its confidence."""
    return _BatchFake


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A Ray cluster of two nodes of one core each; `nodes.add_node` adds one that may be killed."""
    import ray
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        nodes.add_node(num_cpus=1)
        nodes.wait_for_nodes()
        ray.init(nodes.address, log_to_driver=False)
        yield nodes
    finally:
        ray.shutdown()
        nodes.shutdown()


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an encoder with eight numbers a token, as the transformers library writes it."""
    import shutil

    import torch

    from rechain.reader.encoders import PretrainedEncoder
    from rechain.reader.pretrained import BUNDLED, TOKENIZER, find
    from rechain.reader.settings import TEXT_MARKS

    torch.manual_seed(0)
    shape = {"model_type": "bert", "vocab_size": 30522, "hidden_size": 8, "num_hidden_layers": 1}
    shape |= {"num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 320}
    folder = tmp_path_factory.mktemp("tiny") / "encoder"
    encoder: Any = PretrainedEncoder(shape, TEXT_MARKS)
    encoder.model.save_pretrained(folder)
    shutil.copy(find(BUNDLED) / TOKENIZER, folder)
    return folder


@pytest.fixture
def make_pipe() -> Callable[[Path], None]:
    """Make a pipe that nobody writes to; who opens it all the same finds it empty, instead of waiting for ever."""

    def make(path: Path) -> None:
        os.mkfifo(path)
        threading.Thread(target=path.write_bytes, args=(b"",), daemon=True).start()

    return make
