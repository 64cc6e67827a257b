"""Where the tasks of a batch run: side by side on this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

from agent.batch import task as batch_task
from agent.exits import Exit, Stop

Job = dict[str, Any]
Result = dict[str, Any]

RAY_RETRIES = 2
"""How often Ray runs a task again whose worker died."""


class Pool(Protocol):
    """Runs jobs and gives each result as soon as it is there, in the order of their ends."""

    def results(self, jobs: Sequence[Job], side_by_side: int) -> Iterator[Result]:
        """At most `side_by_side` jobs at a time."""
        ...


class Here:
    """This machine: each job is a process of its own, watched by a thread."""

    def results(self, jobs: Sequence[Job], side_by_side: int) -> Iterator[Result]:
        """See Pool."""
        with ThreadPoolExecutor(side_by_side) as pool:
            waiting: set[Future[Result]] = {pool.submit(batch_task.run_task, job) for job in jobs}
            try:
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                batch_task.stop_all()


class Ray:
    """A Ray cluster: "ray" starts one on this machine, "ray://HOST:PORT" goes to one that runs. Its machines need
    refold, and the folders of the tasks under the same paths."""

    def __init__(self, address: str) -> None:
        try:
            import ray  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise Stop(Exit.USAGE, "--on ray needs the extra `ray`: pip install 'refold[ray]'") from None
        self._ray: Any = ray
        self._address = None if address == "ray" else address

    def results(self, jobs: Sequence[Job], side_by_side: int) -> Iterator[Result]:
        """See Pool. A worker that dies is Ray's to replace; the task is then done again from its beginning."""
        ray = self._ray
        own = {"num_cpus": side_by_side, "include_dashboard": False} if self._address is None else {}
        ray.init(address=self._address, log_to_driver=False, logging_level="ERROR", **own)
        try:
            ray.cloudpickle.register_pickle_by_value(batch_task)
            remote = ray.remote(num_cpus=1, max_retries=RAY_RETRIES)(batch_task.run_task)
            left = list(jobs)
            running: list[Any] = []
            while left or running:
                while left and len(running) < side_by_side:
                    running.append(remote.remote(left.pop(0)))
                done, running = ray.wait(running, num_returns=1)
                yield from ray.get(done)
        finally:
            ray.shutdown()


def make_pool(where: str) -> Pool:
    """The pool of this name: "" or "here", "ray", "ray://HOST:PORT". Raises Stop."""
    if where in ("", "here"):
        return Here()
    if where == "ray" or where.startswith("ray://"):
        return Ray(where)
    raise Stop(Exit.USAGE, f"--on takes here, ray or ray://HOST:PORT, not {where!r}")
