"""Connections: one on which nothing comes is closed, so that those who only hold one cannot shut others out.

uvicorn closes a connection that is idle after an answer, but waits for ever for a first request or the rest of one, and
its own limit on connections counts the idle ones too.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PATIENCE_S = 20.0
"""seconds in which the head of the next request has to come: browsers open connections some seconds ahead"""
MOST_CONNECTIONS = 900
"""within the 1,024 files that a process may usually open"""
MOST_HEAD = 64 * 1024
"""bytes of a request's address and headers"""


class Connection(HttpToolsProtocol):
    """A connection that waits so long for a request and no longer."""

    patience = PATIENCE_S
    most = MOST_CONNECTIONS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.due = 0.0
        """when the head of the next request has to be whole, by the clock of the event loop"""
        self._head = 0

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait; where there are too many connections the one that has been idle longest is closed."""
        super().connection_made(transport)
        self._expect_request()
        if len(self.connections) > self.most:
            idle = (one for one in self.connections if isinstance(one, Connection) and one.is_idle)
            min(idle, key=lambda one: one.due).transport.close()  # this one, if all others are at work

    def data_received(self, data: bytes) -> None:
        """Go on to wait while the head of a request is not whole, but not beyond when it is due."""
        super().data_received(data)
        if self.is_idle and not self.transport.is_closing():
            self._head += len(data)
            self._close_when_due()
            if self._head > MOST_HEAD:
                self.send_400_response("The address or the headers are too long.")

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self.is_idle:  # no other request had come already
            self._expect_request()

    def _expect_request(self) -> None:
        self.due, self._head = self.loop.time() + self.patience, 0
        self._close_when_due()

    def _close_when_due(self) -> None:
        self._unset_keepalive_if_required()  # uvicorn's timer, which it stops when anything comes
        self.timeout_keep_alive_task = self.loop.call_at(self.due, self.timeout_keep_alive_handler)
