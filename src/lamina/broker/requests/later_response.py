"""A response that is made, and leaves, in the turn of the loop in which what it waits for has come.

Owns that it is made once or given up, and that what fails in the making is told like any error of its handler. No task
waits for it: of one acks=all produce, three requests wait, and each task would take two turns of the loop more. Whoever
awaits it gets it too, like any other future. Must not know what is waited for.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from lamina.broker.requests.request import Response
from lamina.log.lease import Lease

Make = Callable[[], "Response | Coroutine[Any, Any, Response]"]
"""Makes the response now, or gives the work that makes it in turns of the loop."""
Told = Callable[["LaterResponse"], None]


class LaterResponse(asyncio.Future[Response]):
    __slots__ = ("_made_from_error", "_told", "give_up")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self.give_up: Callable[[], object] | None = None
        """Called if it is cancelled before it is made."""
        self._made_from_error: Callable[[Exception], Response] | None = None
        self._told: Told | None = None

    def guard(self, made_from_error: Callable[[Exception], Response]) -> None:
        """What is told where it cannot be made. Without it, the error itself is raised to who waits."""
        self._made_from_error = made_from_error

    def tell(self, told: Told) -> None:
        """Tell the one who sends it, in the same turn. May be in the midst of another request."""
        self._told = told

    def finish(self, make: Make) -> None:
        """What was waited for has come, or never will: ``make`` raises what is wrong."""
        self.give_up = None
        if self.done():
            return
        try:
            response = self._made(make)
        except Exception as error:
            self.set_exception(error)
        else:
            if isinstance(response, Coroutine):
                task = self.get_loop().create_task(response)
                self.give_up = task.cancel
                task.add_done_callback(self._worked)
                return
            self.set_result(response)
        if self._told is not None:
            self._told(self)

    def _made(self, make: Make) -> "Response | Coroutine[Any, Any, Response]":
        try:
            return make()
        except Exception as error:
            if self._made_from_error is None:
                raise
            return self._made_from_error(error)

    def _worked(self, task: "asyncio.Task[Response]") -> None:
        if task.cancelled():
            self.give_up = None
            # Whoever sends it learns that there is none; one who cancelled it knows.
            if super().cancel() and self._told is not None:
                self._told(self)
        elif not self.done():
            self.finish(task.result)
        elif task.exception() is None:
            for piece in task.result() or ():
                if isinstance(piece, Lease):
                    piece.give_back()

    def cancel(self, msg: Any | None = None) -> bool:
        give_up, self.give_up = self.give_up, None
        if give_up is not None:
            give_up()
        return super().cancel(msg)
