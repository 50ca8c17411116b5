"""What a user can get wrong, said in one sentence each."""


class RechainError(Exception):
    """A mistake that the user can mend: the command line prints its message and exits with code 2."""


class ResumableError(RechainError):
    """What stops a run from outside, such as a full disk: once it is mended, --resume goes on where the run stopped."""


class InputError(RechainError):
    """A file that is not what it claims to be, or cannot be read on."""


class DamagedInputError(InputError, ResumableError):
    """A file that is cut off or damaged, or fails while it is read."""


class QuestionError(RechainError):
    """One question that cannot be read or has no chain; the others go on."""

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
