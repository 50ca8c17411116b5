"""Examples for the form in which people try questions of their own: one of each way to fill it in."""

import json

from rechain.web.forms import PastedQuestion

_PASSAGES = {
    "Polonium": "Polonium is a chemical element that Marie Curie found in pitchblende in 1898. She named it after the "
    "country that she came from.",
    "Marie Curie": "Marie Curie was born in Warsaw in 1867, studied in Paris, and was the first woman to receive a "
    "Nobel Prize.",
    "Radium": "Radium was found in the same year. It glows in the dark, and was used for the hands of watches.",
    "Pierre Curie": "Pierre Curie was born in Paris. He taught physics at the Sorbonne.",
}
_QUESTION = "Where was the discoverer of polonium born?"
_SENTENCES = "She was born in Warsaw in 1867. She received a Nobel Prize. Her watch is kept in London."
_RAGAS = {
    "user_input": _QUESTION,
    "response": _SENTENCES,
    "retrieved_contexts": [f"{title}. {text}" for title, text in _PASSAGES.items()],
}
_TEXT = "\n\n".join(f"# {title}\n{text}" for title, text in _PASSAGES.items())

EXAMPLES = {
    "text": PastedQuestion(question=_QUESTION, answer="Warsaw", passages=_TEXT),
    "sentences": PastedQuestion(question=_QUESTION, answer=_SENTENCES, passages=_TEXT),
    "record": PastedQuestion(passages=json.dumps(_RAGAS, indent=2)),
}
EXAMPLE_NAMES = {"text": "a short answer", "sentences": "an answer in sentences", "record": "a record of Ragas"}
