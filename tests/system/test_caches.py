"""A cache: up to a limit, the oldest dropped first, and every value made once."""

import pickle

from rechain.system.caches import BoundedCache


def test_a_value_is_made_once() -> None:
    cache, made = BoundedCache[str](10, len), list[str]()

    def make(value: str) -> str:
        made.append(value)
        return value

    assert [cache.get("a", lambda: make("abc")) for _ in range(3)] == ["abc"] * 3
    assert made == ["abc"]


def test_what_nobody_asked_for_longest_is_dropped() -> None:
    cache = BoundedCache[str](6, len)
    for key in "abac":  # a is asked for again before there is too much
        cache.get(key, lambda key=key: key * 3)  # type: ignore[misc]
    assert [cache.get(key, lambda: "new") for key in "acb"] == ["aaa", "ccc", "new"]


def test_what_is_too_long_is_not_kept() -> None:
    cache = BoundedCache[str](3, len)
    assert cache.get("a", lambda: "long") == "long"
    assert cache.get("a", lambda: "b") == "b"


def test_a_copy_is_empty() -> None:
    cache = BoundedCache[str](3, len)
    cache.add("a", "old")
    assert pickle.loads(pickle.dumps(cache)).get("a", lambda: "new") == "new"
