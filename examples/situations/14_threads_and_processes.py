"""14. Threads and processes that use a GPU: threads share it, a fork of the process cannot.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import devtensor as dt


def total(n):
    """A little work on the device of the process."""
    device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
    return dt.full((100,), float(n), device=device).sum().item()


def attempt(n):
    """The same, or what went wrong, as text."""
    try:
        return total(n)
    except dt.DeviceNotAvailableError as error:
        return str(error)


if __name__ == "__main__":
    # Threads may call anything at any time, also on the same arrays.
    with ThreadPoolExecutor(4) as pool:
        print(f"threads: {list(pool.map(total, range(4)))}")

    # The mistake: fork, after this process has used the GPU. The child has a copy of its parent's memory, but not of
    # its connection to the driver. It is told so, and where the GPU was used first. Without a GPU a fork may go on.
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(f"forked: {pool.map(attempt, [1])[0]}")

    # The correction: "spawn" starts each process afresh. It is what DataLoader(num_workers=...) does.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(f"spawned: {pool.map(attempt, [1])[0]}")
