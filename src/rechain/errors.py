"""Errors of users; the message is one sentence."""


class RechainError(Exception):
    """An error that the user can fix: the command line prints its message and exits with code 2."""


class ResumableError(RechainError):
    """An external error, such as a full disk: when it is fixed, --resume continues the run."""


class InputError(RechainError):
    """A file that has another format than it should have, or cannot be read."""


class DamagedInputError(InputError, ResumableError):
    """A file that is truncated or damaged, or fails while it is read."""


class QuestionError(RechainError):
    """One question that cannot be read or has no chain; the run continues with the others."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """Return how pickle makes it again."""
        return type(self), (self.code, str(self))


class MissingExtraError(RechainError):
    """A feature whose library is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        self._made_of = feature, extra
        super().__init__(f"{feature} needs an extra that is not installed: pip install 'rechain[{extra}]'.")

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """Return how pickle makes it again."""
        return type(self), self._made_of
