"""Chats as OpenAI's interface has them: messages with roles, among them the results of tools.

{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "tool_calls": […]},
              {"role": "tool", "content": "…"}, {"role": "assistant", "content": "the answer"}]}
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from rechain.errors import QuestionError
from rechain.formats.datasets.formats import Format, MissingFieldsError, has_text, make_passages, split_text
from rechain.formats.datasets.tool_logs import first_of, logged_question, present_of
from rechain.schema import Question

_CHATS = ("messages", "user_input")  # fields of the messages; the second is that of Ragas' samples of several turns
_ANSWERS = ("answer", "response", "completion", "output")  # fields of an answer that is not the last message
_ROLES = {"human": "user", "ai": "assistant", "function": "tool", "developer": "system", "context": "tool"}
"""roles by the names of other libraries"""
_LISTS = ("results", "documents", "passages", "contexts", "chunks", "hits", "matches", "nodes", "sources", "data")
"""where the result of a tool keeps its passages"""
# "Context: …", "Use the following documents to answer:", "<context>": what comes after it was retrieved.
# Bounded, so that a text full of tags without ends, or a long line without a colon, does not take quadratic time.
_CONTEXT = re.compile(
    r"<(context|documents|sources)>(?P<tagged>(?:(?!</?\1>).)*+)</\1>|^[^\w\n]*context[^\w\n]*:[^\S\n]*(?P<inline>\S.*)"
    r"|^[^\n]{0,200}\b(?:context|documents|passages|sources|excerpts)\b[^\n]{0,200}:[^\S\n]*\n(?P<rest>.+)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
# The question of a prompt that has its context before or after it, and the label of the answer at its end.
_ASKED = re.compile(
    r"^[^\w\n]*(?:(?:user )?(?:question|query)|frage)[^\w\n]*:[*\s]*(?P<query>[^*\s][^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER_LABEL = re.compile(r"\n[^\w\n]*(?:\w+ )?(?:answer|antwort)[^\w\n]*+\s*+$", re.IGNORECASE)


class _Message(NamedTuple):
    role: str
    text: str


class Chats(Format):
    """The answer is the assistant's last message, the question is the user's last before it.

    The passages are what tools returned and what system messages or, without any, the question give as a context.
    """

    name = "chat"
    same = "links"

    def recognises(self, record: dict[str, Any]) -> bool:
        messages = record.get(first_of(_CHATS, record) or "")
        return (
            isinstance(messages, list) and bool(messages) and isinstance(messages[0], dict) and _role(messages[0]) != ""
        )

    def question(self, record: dict[str, Any]) -> Question:
        field = first_of(_CHATS, record)
        if field is None or not isinstance(record[field], list):
            raise MissingFieldsError([_CHATS[0]])
        messages = list(_messages(field, record[field]))
        last = _last(messages, "assistant", len(messages))
        other = first_of(_ANSWERS, record) if last is not None else present_of(_ANSWERS, record)
        end = len(messages) if other else last
        query = _last(messages, "user", end or 0)
        if query is None or end is None:
            who = "user" if query is None and end is not None else "assistant"
            raise QuestionError("missing_field", f"{field} hold no message of the {who}")
        answer = record[other] if other else messages[end].text
        question, texts = messages[query].text, []
        for role, text in messages[:end]:
            if role == "tool":
                texts += _results(text)
            elif role == "system":
                texts += [part for context in _CONTEXT.finditer(text) for part in _texts_of(context)]
        if not texts:
            question, texts = _split_prompt(question)
        passages = make_passages(field, texts, logged=True)
        return logged_question(record, {field, other or field}, question, answer, passages)


def _messages(field: str, messages: list[Any]) -> Iterator[_Message]:
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise QuestionError("bad_field", f"{field}[{number}] should be an object, in braces")
        role, parts = _role(message), message.get("content")
        if role == "tool":
            yield from _tool_messages(parts)
            continue
        # Anthropic's interface has what a tool returned as a part of a user's message.
        of_parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        results = [part for part in of_parts if part.get("type") == "tool_result"]
        for part in results:
            yield from _tool_messages(part.get("content"))
        text = _text(parts)
        if text or not results:
            yield _Message(role, text)


def _tool_messages(content: Any) -> Iterator[_Message]:
    """Yield what a tool returned, each part by itself: a part is a document, and may be JSON."""
    return (_Message("tool", _text(part)) for part in (content if isinstance(content, list) else [content]))


def _role(message: dict[str, Any]) -> str:
    role = message.get("role") or message.get("type")
    return _ROLES.get(role, role) if isinstance(role, str) else ""


def _text(content: Any) -> str:
    """Return the text of a message, which may come in parts, among them images."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = (part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, str | dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _last(messages: Sequence[_Message], role: str, end: int) -> int | None:
    """Return the place of the last message of a role before an end; a blank one only if there is no other."""
    places = [place for place in range(end) if messages[place].role == role]
    return next((place for place in reversed(places) if messages[place].text.strip()), places[-1] if places else None)


def _texts_of(context: re.Match[str]) -> list[Any]:
    return split_text(context["tagged"] or context["inline"] or context["rest"] or "")


def _split_prompt(prompt: str) -> tuple[str, list[Any]]:
    """Return the question of a prompt and the passages of its context; one without a context is the question."""
    label = _ASKED.search(prompt)
    rest = _ANSWER_LABEL.sub("", f"{prompt[: label.start()]}{prompt[label.end() :]}" if label else prompt)
    context = _CONTEXT.search(rest)
    if context is None or not (label or context["tagged"]):
        return prompt, []
    question = label["query"] if label else f"{rest[: context.start()]}{rest[context.end() :]}"
    return question.strip() or prompt, _texts_of(context)


def _results(text: str) -> list[Any]:
    """Return the passages of what a tool has returned: those of its JSON, else its parts as they are."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return split_text(text)
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), [value])
    items = value if isinstance(value, list) else [text]
    return [item if has_text(item) else orjson.dumps(item).decode() for item in items if item not in (None, {}, [])]
