"""2WikiMultihopQA: HotpotQA's layout, with evidence triples as additional gold."""

from typing import Annotated, Any

import orjson
from pydantic import BaseModel, BeforeValidator

from rechain.datasets.hotpotqa import Context, HotpotQA, HotpotQuestion, SupportingFacts
from rechain.schema import Gold, GoldChain, Shape

_CHAIN_TYPES = ("compositional", "inference")  # the others compare, or compare two chains


def _parsed(value: Any) -> Any:
    """Parse JSON text, as which the Hub's Parquet files hold the nested fields."""
    return orjson.loads(value) if isinstance(value, str) else value


class _Question(HotpotQuestion):
    context: Annotated[Context, BeforeValidator(_parsed)]


class _Gold(BaseModel):
    supporting_facts: Annotated[SupportingFacts, BeforeValidator(_parsed)] = []
    evidences: Annotated[list[tuple[str, str, str]], BeforeValidator(_parsed)] = []


class TwoWiki(HotpotQA):
    """Compositional and inference questions are chains; the object of the first triple links their passages."""

    name = "2wiki"
    gold_tail_holds_answer = False
    _fields = _Question

    def recognises(self, record: dict[str, Any]) -> bool:
        return super().recognises(record) and "evidences" in record

    def gold(self, record: dict[str, Any]) -> Gold | None:
        gold = _Gold.model_validate(record)
        titles = list(dict.fromkeys(title for title, _ in gold.supporting_facts))
        if not titles:
            return None
        if record.get("type") in _CHAIN_TYPES:
            chain = GoldChain(passages=titles, links=[triple[2] for triple in gold.evidences[:-1]])
        else:
            shape: Shape | None = "parallel" if record.get("type") == "comparison" else None
            chain = GoldChain(shape=shape, passages=titles, ordered=False)
        return Gold(id=self.question(record).id, chains=[chain], same=self.same)
