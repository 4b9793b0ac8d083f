"""Threads that share a cache of two plans: each takes the plan of another out while that one may be about to run it.

The arrays are so large that ops give the GIL up, and the call that runs a plan is made so late that other threads could
plan twice between a look into the cache and the run. Without the lock of the libraries both tests fail.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import devtensor as dt
from devtensor.nn import functional as F

THREADS, ROUNDS, LARGE = 4, 20, 60_000


@pytest.fixture(autouse=True)
def room_for_two_plans() -> Iterator[None]:
    dt._C._test.kernel_settings(attention_work=1, attention_shapes=1 << 20)
    dt._C._test.set_plan_limit(2)
    yield
    dt._C._test.slow_calls(None, 0)
    dt._C._test.set_plan_limit(0)
    dt._C._test.kernel_settings()


def multiply(cuda: str, n: int) -> bool:
    x = dt.ones(LARGE // 1000, 1000 + n, device=cuda)
    return bool((x @ x.t() == 1000 + n).all())


def attend(cuda: str, n: int) -> bool:
    x = dt.ones(1, 1, 400 + n, 8, dtype=dt.float16, device=cuda)
    return bool((F.scaled_dot_product_attention(x, x, x) == 1).all())


# What is called, and the call that runs a plan.
OPS: dict[str, tuple[Callable[[str, int], bool], str]] = {
    "products": (multiply, "cublasLtMatmul"),
    "attention": (attend, "cudnnBackendExecute"),
}


@pytest.mark.parametrize("op", OPS)
def test_threads_take_plans_from_each_other(op: str, cuda: str) -> None:
    function, runs = OPS[op]
    wrong: list[Any] = []
    begin = threading.Barrier(THREADS)

    def work(me: int) -> None:
        try:
            begin.wait()
            with dt.cuda.stream(dt.cuda.Stream(cuda)):
                for k in range(ROUNDS):
                    n = 8 + (me + k) % (THREADS - 1)  # sizes that others have just used, or are about to
                    if not function(cuda, n):
                        wrong.append((me, k, n))
        except Exception as error:
            wrong.append(error)

    dt._C._test.slow_calls(runs, 5000)
    threads = [threading.Thread(target=work, args=(me,)) for me in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    dt.cuda.synchronize(cuda)
