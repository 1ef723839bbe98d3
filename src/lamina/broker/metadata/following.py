"""Following the controller: a broker asks for changes, applies them, and reports what it did.

Owns how far this broker has followed which controller, and that changes are applied one after another and never
backwards: what a controller of an older epoch says is not believed. Must not know who the controller is, nor how it is
reached: ``ask`` does.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import reduce

from lamina.broker.backoff import RetryWait
from lamina.broker.metadata.applied import Applied
from lamina.broker.metadata.change_messages import patched
from lamina.broker.metadata.follow_messages import LONGEST_WAIT_MS, NOTHING_YET, FollowRequest, FollowResponse
from lamina.broker.metadata.publisher import Publisher
from lamina.broker.metadata.reports import OwnFacts, Report
from lamina.broker.tasks import Tasks
from lamina.broker.threads import Threads, giving_way
from lamina.controller.election import LogEnd
from lamina.errors import KafkaError, UnknownServerError
from lamina.image.going_back import gone_back
from lamina.image.image import Image
from lamina.store.interface import WrongCluster
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_BACKOFF_MAX_SECONDS = 0.5
_LARGE_BYTES = 32 * 1024


class Following:
    def __init__(
        self,
        facts: OwnFacts,
        publisher: Publisher,
        threads: Threads,
        offline: Callable[[], Collection[TopicPartition]],
        ask: Callable[[FollowRequest], Awaitable[FollowResponse]],
        cluster_id: str,
        on_fatal: Callable[[str], None],
    ) -> None:
        """``offline`` tells the replicas that cannot be used now; ``ask`` raises `KafkaError` where nobody answers."""
        self._facts = facts
        self.decided = Image(cluster_id)
        """The metadata as this broker has followed it; the publisher's image is what of it is served."""
        self._publisher = publisher
        self._threads = threads
        self._offline = offline
        self._ask = ask
        self._on_fatal = on_fatal
        self._controller_epoch = NOTHING_YET
        self._version = NOTHING_YET
        self._applied = (NOTHING_YET, NOTHING_YET)
        """The controller epoch and version of what this broker serves: it may be one change behind."""
        self._has_applied = False
        self._changes = Tasks()
        self._applying = asyncio.Lock()
        self._followed = asyncio.Condition()
        self._told: Report | None = None
        self._has_news = asyncio.Event()
        self._backoff = RetryWait(_BACKOFF_MAX_SECONDS)

    @property
    def position(self) -> tuple[int, int]:
        """The controller epoch and the version of what is decided, as far as this broker has followed."""
        return self._controller_epoch, self._version

    # Following

    async def start(self, opened: Callable[[int, int], None] | None) -> Applied:
        """Get the whole image from whoever is the controller, and open the logs that it names."""
        async with self._applying:
            await self._take_first()
            applied = await self._publisher.apply(None, self.decided, opened)
            self._facts.did(applied, self.decided)
            self._applied = (self._controller_epoch, self._version)
            self._has_applied = True
        return applied

    def obey(self) -> None:
        """Have the access rules hold that are decided now, whatever is being applied."""
        self._publisher.obey()

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._poll()
                self._backoff.succeeded()
            except WrongCluster as error:
                self._on_fatal(str(error))
                return
            except KafkaError as error:
                logger.debug("the controller cannot be followed now: %s", error)
                await self._backoff.wait()
            except Exception as error:
                logger.critical("following the controller failed", exc_info=error)
                self._on_fatal(f"following the controller failed: {error}")
                return

    async def _poll(self) -> None:
        """Ask once and wait for the answer; while it waits, what is new to be reported is said at once."""
        waiting = asyncio.ensure_future(self._exchange(LONGEST_WAIT_MS))
        try:
            while not waiting.done():
                news = asyncio.ensure_future(self._has_news.wait())
                try:
                    await asyncio.wait({waiting, news}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
                if self._has_news.is_set() and not waiting.done():
                    await self._exchange(0)
            await waiting
        finally:
            waiting.cancel()

    async def _exchange(self, max_wait_ms: int) -> None:
        self._has_news.clear()
        report = self._report()
        if report != self._told:
            # The sooner the controller knows it, the better: it need not wait for changes before it answers.
            max_wait_ms = 0
        answer = await self._ask(FollowRequest(*self._applied, max_wait_ms, report))
        self._told = report
        # A change that has begun is applied to its end, whatever becomes of this question: half of one is not resumed.
        await self._changes.finish(self._follow(answer))

    async def finish(self) -> None:
        """Wait for the changes that are being applied: logs are about to be closed."""
        await self._changes.wait()

    async def _take_first(self) -> None:
        told = ""
        while True:
            try:
                await self._take(await self._ask(FollowRequest(NOTHING_YET, NOTHING_YET, 0, self._report())))
                self._backoff.succeeded()
                return
            except KafkaError as error:
                if self._backoff.is_longest and str(error) != told:
                    told = str(error)
                    logger.warning("this broker waits for the controller: %s", told)
            await self._backoff.wait()

    def retry_now(self) -> None:
        """There is another controller, which waits for this broker's report."""
        self._backoff.retry_now()

    def _report(self) -> Report:
        return self._facts.report(self.decided, self._offline())

    def ready(self, ends: Mapping[TopicPartition, LogEnd] | None) -> None:
        """The logs are open. ``ends`` tells how far they reach, after an unclean stop."""
        self._facts.is_ready = True
        self._facts.ends = ends

    def drain(self) -> None:
        """This broker is about to stop."""
        self._facts.is_draining = True
        self.tell()

    def tell(self) -> None:
        """There is something new to be reported."""
        self._has_news.set()

    @property
    def is_ready(self) -> bool:
        """Whether the logs are open, and no controller has to hear first how far they reach."""
        return self._facts.is_ready and not self.is_stop_unanswered

    @property
    def is_stop_unanswered(self) -> bool:
        """Whether the last stop was unclean, and elections have not taken that into account yet."""
        return self._facts.ends is not None

    async def _follow(self, answer: FollowResponse) -> None:
        async with self._applying:
            old = self.decided
            if not await self._take(answer):
                return
            try:
                self._facts.did(await self._publisher.apply(old, self.decided), self.decided)
            except Exception as error:
                logger.critical("a metadata change failed", exc_info=error)
                self._on_fatal(f"a metadata change failed: {error}")
                raise
            self._applied = (self._controller_epoch, self._version)
        if self._report() != self._told:
            self.tell()
        async with self._followed:
            self._followed.notify_all()

    async def _take(self, answer: FollowResponse) -> bool:
        """Go on to the image that an answer leads to. Returns whether there is anything new in it.

        Raises UNKNOWN_SERVER_ERROR for one that cannot be read; the next question then asks for the whole image.
        Raises :class:`WrongCluster` for an older one than this broker has followed.
        """
        if answer.controller_epoch < self._controller_epoch:
            return False
        is_other = answer.controller_epoch != self._controller_epoch
        if (is_other and not answer.is_full) or (not is_other and answer.version <= self._version):
            return False
        try:
            if answer.is_full:
                image = await self._patched(Image(self.decided.cluster_id), answer.lines)
            else:
                image = await self._patched(self.decided, self._news(answer))
        except ValueError as error:
            logger.error("%s", error)
            self._version = NOTHING_YET
            self._applied = (NOTHING_YET, NOTHING_YET)
            raise UnknownServerError(str(error)) from None
        if answer.is_full:
            check_is_later(self.decided, image)
        self.decided = image
        self._controller_epoch, self._version = answer.controller_epoch, answer.version
        return True

    async def _patched(self, image: Image, lines: list[bytes]) -> Image:
        """Much is read on a thread: it would hold the loop up."""

        def read() -> Image:
            return reduce(patched, lines, image)

        def read_apart() -> Image:
            with giving_way():
                return read()

        is_large = sum(map(len, lines)) > _LARGE_BYTES
        return await self._threads.run(read_apart) if is_large else read()

    def _news(self, answer: FollowResponse) -> list[bytes]:
        """One line for each version: another answer may have brought the first of them meanwhile."""
        count = answer.version - self._version
        if count > len(answer.lines):
            raise ValueError(f"changes {self._version + 1} to {answer.version} were to come, {len(answer.lines)} came")
        return answer.lines[-count:]

    # Who waits for it

    async def wait_until(self, holds: Callable[[Image], bool]) -> None:
        """Until what this broker has applied is so."""
        async with self._followed:
            await self._followed.wait_for(lambda: self._has_applied and holds(self._publisher.image))

    async def make_waiting(self) -> None:
        """Open new partitions for which descriptors were missing, as far as there are some now."""
        async with self._applying:
            self._facts.did(await self._publisher.make_waiting(self.decided), self.decided)
        if self._report() != self._told:
            self.tell()


def check_is_later(old: Image, new: Image) -> None:
    """Raise :class:`WrongCluster` if an image is older than one that was stored before: epochs never go back."""
    found = gone_back(old, new)
    if found is not None:
        raise WrongCluster(f"{found}: the ensemble was restored from an old copy, or is another one")
