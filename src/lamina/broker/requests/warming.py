"""Getting ready for first requests after the broker began to listen, on a thread.

The code for a message version is imported and compiled on first use, which takes milliseconds that the loop
should not lose to a client. Must not know what any message means.
"""

from collections.abc import Callable, Sequence

from lamina.broker.requests.api import Api
from lamina.broker.threads import giving_way
from lamina.wire.codec import prepare


def warm(apis: Sequence[Api], is_stopping: Callable[[], bool]) -> None:
    """Prepare every version of every API, the newest of each first: current clients speak those."""
    versions = [(age, api.key, version) for api in apis for age, version in enumerate(reversed(api.versions))]
    with giving_way():
        for _, api_key, version in sorted(versions):
            if is_stopping():
                return
            prepare(api_key, version)
