"""How long the loop works on a request whose response has to wait.

Owns the steps between its waits, each of which is charged. Must not know what is waited for, nor what time costs.
"""

from collections.abc import Awaitable, Generator
from typing import Any

from lamina.broker.requests.client_quotas import Charge
from lamina.broker.requests.request import Response


class LoopTime:
    """The same response, awaited in the same way."""

    def __init__(self, response: Awaitable[Response], charge: Charge) -> None:
        """The request was under way until now."""
        charge.paused()
        self._response = response
        self._charge = charge

    def __await__(self) -> Generator[Any, Any, Response]:
        steps: Any = self._response.__await__()
        given: Any = None
        charge, step = self._charge, steps.send
        while True:
            charge.resumed()
            try:
                waits_for = step(given)
            except StopIteration as ended:
                response: Response = ended.value
                return response
            finally:
                charge.paused()
            try:
                given, step = (yield waits_for), steps.send
            except BaseException as error:
                given, step = error, steps.throw
