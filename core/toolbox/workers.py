"""Bounds for code that may block or never return: plugins' hooks, tools' handlers. Owns the threads.

Invariant: nobody waits longer than asked, neither a turn nor the end of exod: the threads are daemons
(asyncio.to_thread's are joined at exit), and a task that ignores its cancellation is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from exo.core.base.errors import ExoError

T = TypeVar("T")
_clock: ContextVar[asyncio.Timeout] = ContextVar("clock")  # of what the caller is in
LIMIT = 32  # threads at once; more, for longer than GRACE, means that calls before never came back
GRACE = 3.0  # seconds a cancelled task may take to clean up, and a call may wait for a thread
_free = threading.Semaphore(LIMIT)


async def in_thread(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Return what `function` returns, from a daemon thread. Raises what it raises, and ExoError when
    too many threads hang."""
    loop = asyncio.get_running_loop()
    end = loop.time() + GRACE
    while not _free.acquire(blocking=False):
        if loop.time() > end:
            why = f"{LIMIT} calls before it still hang"
            raise ExoError("start a thread", why, "look for the plugin in the log, restart exod")
        await asyncio.sleep(0.02)
    future: asyncio.Future[T] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if not future.done():  # else the caller gave up
            future.set_result(value) if error is None else future.set_exception(error)

    def work() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = function(*args, **kwargs)
        except BaseException as caught:  # noqa: BLE001 - handed to the caller
            error = _tame(caught)
        finally:
            _free.release()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
            loop.call_soon_threadsafe(settle, value, error)

    try:
        threading.Thread(target=work, daemon=True, name=f"tool-{function!r:.40}").start()
    except RuntimeError as error:
        _free.release()
        raise ExoError("start a thread", str(error)) from error
    return await future


async def within(seconds: float | None, work: Awaitable[T]) -> T:
    """Await `work` for `seconds` at most (None: for ever). Raises TimeoutError. When it is stopped, by
    time or by a cancellation, it has GRACE to clean up and is then left behind."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(_look)
    on_time = False
    try:
        on_time = bool((await asyncio.wait({task}, timeout=seconds))[0])
    finally:
        if not on_time:
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE)
    if not on_time:
        raise TimeoutError
    if task.cancelled():
        raise RuntimeError("it cancelled itself")
    return task.result()


@contextlib.asynccontextmanager
async def bounded(seconds: float) -> AsyncIterator[None]:
    """Raises TimeoutError once the block has taken `seconds`, what `standing` encloses not counted."""
    async with asyncio.timeout(seconds) as clock:
        _clock.set(clock)
        yield


@contextlib.contextmanager
def standing() -> Iterator[None]:
    """While a person is asked: the clock of `bounded` stands."""
    loop, clock = asyncio.get_running_loop(), _clock.get(asyncio.timeout(None))
    left = (clock.when() or 0.0) - loop.time()
    with contextlib.suppress(RuntimeError):  # it is over, or was never begun
        clock.reschedule(None)
    try:
        yield
    finally:
        with contextlib.suppress(RuntimeError):
            clock.reschedule(loop.time() + left)


async def call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call `function`: a coroutine function here, any other in a thread. What it raises is an
    Exception: its sys.exit() would end the loop, and so exod."""
    try:
        inner = getattr(function, "__call__", None)  # noqa: B004 - of objects, it may be async
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inner):
            return await function(*args, **kwargs)
        value = await in_thread(function, *args, **kwargs)
        return await value if inspect.isawaitable(value) else value
    except asyncio.CancelledError:
        raise
    except BaseException as caught:  # noqa: BLE001 - handed to the caller
        raise _tame(caught) from caught.__cause__


def _tame(caught: BaseException) -> Exception:
    """What was raised; in another's place when no future takes it or `except Exception` lets it pass."""
    if isinstance(caught, Exception) and not isinstance(caught, StopIteration):
        return caught
    return RuntimeError(f"{type(caught).__name__}: {caught}")


def _look(task: asyncio.Future[Any]) -> None:
    """Take the error of a task that was left behind, so that nothing warns of it at exit."""
    if not task.cancelled():
        task.exception()
