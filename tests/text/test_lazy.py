"""Attributes computed when first asked for."""

from rechain.text.lazy import lazy


class Counted:
    def __init__(self) -> None:
        self.times = 0

    @lazy
    def value(self) -> int:
        """What it is worth."""
        self.times += 1
        return 42


def test_a_lazy_attribute_is_computed_once_and_only_when_asked_for() -> None:
    counted = Counted()
    assert counted.times == 0
    assert (counted.value, counted.value) == (42, 42)
    assert counted.times == 1


def test_every_instance_has_its_own_value() -> None:
    one, two = Counted(), Counted()
    assert one.value == 42
    assert (one.times, two.times) == (1, 0)


def test_a_lazy_attribute_keeps_its_docstring() -> None:
    assert vars(Counted)["value"].__doc__ == "What it is worth."


def test_asked_of_the_class_it_is_itself_as_a_cached_property_is() -> None:
    assert Counted.value is vars(Counted)["value"]
