"""What is shown of a training run: a bar, a line an epoch, TensorBoard where it is installed; checkpoints are kept."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from rechain.training.runs import CHECKPOINT, KeepCheckpoints, RunFolder


class Shown(KeepCheckpoints):
    """Watches a run for people to see."""

    def __init__(self, folder: RunFolder, shows_bar: bool, tell: Callable[[str, str, Mapping[str, Any]], None]) -> None:
        """Show a bar or not, and `tell` of every epoch: what it is, as text and as figures."""
        super().__init__(folder.path / CHECKPOINT)
        self._shows_bar = shows_bar
        self._tell = tell
        self._open = ExitStack()
        self._log: Any = None
        self._bar: Any = None

    def __enter__(self) -> "Shown":
        if self._shows_bar:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = self._open.enter_context(Progress(console=Console(stderr=True), transient=True))
            self._bar.add_task("")
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def on_step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        """Move the bar."""
        if self._bar:
            self._bar.update(0, description=f"{phase}, epoch {epoch + 1}", total=steps, completed=step)

    def on_epoch(self, figures: Mapping[str, Any]) -> None:
        """Print a line, and log the figures."""
        numbers = {name: value for name, value in figures.items() if isinstance(value, float)}
        line = ", ".join(f"{name} {value:.3f}" for name, value in numbers.items())
        self._tell("epoch", f"{figures['phase']}, epoch {figures['epoch'] + 1}: {line}", figures)
        if self._log is None:  # only now: a run that fails at once leaves no log
            self._log = self._open_log()
        for name, value in numbers.items() if self._log else ():
            self._log.add_scalar(f"{figures['phase']}/{name}", value, figures["epoch"])

    def _open_log(self) -> Any:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            missing = "Nothing is logged for TensorBoard, which pip install 'rechain[train]' brings."
            self._tell("note", missing, {"note": missing})
            return False
        return self._open.enter_context(SummaryWriter(str(self.path.parent / "log")))
