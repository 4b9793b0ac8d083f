"""Programs that fail at `x @ w`, and by the time that this is shown may have given w another value.

They use X, W, OTHER (the other value), show(error) and block(), a context manager that lets exceptions through.
"""

from __future__ import annotations

# name: (the program, whether the operands are still told)
PROGRAMS = {
    "finally": (
        """
def work(x, w):
    try:
        return x @ w
    finally:
        w = OTHER
work(X, W)
""",
        False,
    ),
    "finally, another variable": (
        """
def work(x, w):
    done = False
    try:
        return x @ w
    finally:
        done = True
work(X, W)
""",
        True,
    ),
    "after it was caught": (
        """
def work(x, w):
    try:
        x @ w
    except RuntimeError as error:
        w = OTHER
        show(error)
work(X, W)
""",
        False,
    ),
    "before and after": (
        """
def work(x, w):
    w = w + 0
    try:
        x @ w
    except RuntimeError as error:
        show(error)
        w = OTHER
work(X, W)
""",
        True,
    ),
    "in one branch of a handler": (
        """
def work(x, w, again=False):
    try:
        x @ w
    except RuntimeError as error:
        if again:
            w = OTHER
        show(error)
work(X, W)
""",
        False,
    ),
    "in a handler within the handler": (
        """
def work(x, w):
    try:
        x @ w
    except RuntimeError as error:
        try:
            {}["a"]
        except KeyError:
            w = OTHER
        show(error)
work(X, W)
""",
        False,
    ),
    "kept, the loop has gone on": (
        """
def work(x, ws):
    errors = []
    for w in ws:
        try:
            x @ w
        except RuntimeError as error:
            errors.append(error)
    show(errors[0])
work(X, [W, OTHER])
""",
        False,
    ),
    "shown within a loop": (
        """
def work(x, ws):
    for w in ws:
        try:
            x @ w
        except RuntimeError as error:
            show(error)
            return
work(X, [W, OTHER])
""",
        True,
    ),
    "raised within a loop and a with": (
        """
def work(x, ws):
    for w in ws:
        with block():
            x @ w
work(X, [W, OTHER])
""",
        True,
    ),
    "raised again from a handler in a loop": (
        """
def work(x, ws):
    for w in ws:
        try:
            x @ w
        except RuntimeError:
            if x is None:
                continue
            raise
work(X, [W, OTHER])
""",
        True,
    ),
    "kept, and raised later": (
        """
def work(x, w):
    kept = None
    try:
        x @ w
    except RuntimeError as error:
        kept = error
    w = OTHER
    raise kept
work(X, W)
""",
        False,
    ),
    "an attribute": (
        """
class Layer:
    def work(self, x):
        try:
            return x @ self.w
        finally:
            self.w = OTHER
layer = Layer()
layer.w = W
layer.work(X)
""",
        False,
    ),
    "an entry": (
        """
def work(x, held):
    try:
        return x @ held["w"]
    finally:
        held["w"] = OTHER
work(X, {"w": W})
""",
        False,
    ),
    "of the function around": (
        """
def work(x, w):
    def inner():
        return x @ w
    try:
        inner()
    finally:
        w = OTHER
work(X, W)
""",
        False,
    ),
    "of the function around, by nonlocal": (
        """
def work(x, w):
    def inner():
        nonlocal w
        try:
            return x @ w
        finally:
            w = OTHER
    inner()
work(X, W)
""",
        False,
    ),
    "of the module": (
        """
x, w = X, W
def work():
    return x @ w
try:
    work()
except RuntimeError as error:
    w = OTHER
    show(error)
""",
        False,
    ),
    "of the module, caught by a function": (
        """
x, w = X, W
def work():
    try:
        x @ w
    except RuntimeError as error:
        return error
error = work()
w = OTHER
show(error)
""",
        False,
    ),
    "of the module, unchanged": (
        """
x, w = X, W
def work():
    return x @ w
done = False
try:
    work()
finally:
    done = True
""",
        True,
    ),
    "at module level": (
        """
x, w = X, W
try:
    x @ w
finally:
    w = OTHER
""",
        False,
    ),
    "at module level, in a loop with a block": (
        """
x = X
for w in [W, OTHER]:
    with block():
        x @ w
""",
        True,
    ),
    "deleted and made again": (
        """
def work(x, w):
    try:
        x @ w
    finally:
        del w
        w = OTHER
work(X, W)
""",
        False,
    ),
    "a generator": (
        """
def work(x, w):
    try:
        yield x @ w
    finally:
        w = OTHER
list(work(X, W))
""",
        False,
    ),
    "a generator that changes nothing": (
        """
def work(x, ws):
    for w in ws:
        yield x @ w
list(work(X, [W, W]))
""",
        True,
    ),
    "an attribute, by a function that was called": (
        """
class Held:
    pass
def swap(held):
    held.w = OTHER
def work(x, held):
    try:
        x @ held.w
    except RuntimeError as error:
        swap(held)
        show(error)
held = Held()
held.w = W
work(X, held)
""",
        False,
    ),
    "an attribute, by setattr": (
        """
class Held:
    pass
def work(x, held):
    try:
        x @ held.w
    except RuntimeError as error:
        setattr(held, "w", OTHER)
        show(error)
held = Held()
held.w = W
work(X, held)
""",
        False,
    ),
    "an entry, by update": (
        """
def work(x, batch):
    try:
        x @ batch["w"]
    except RuntimeError as error:
        batch.update(w=OTHER)
        show(error)
work(X, {"w": W})
""",
        False,
    ),
    "an entry, by a function in the loop": (
        """
def work(x, batch, change):
    errors = []
    for _ in range(2):
        try:
            x @ batch["w"]
        except RuntimeError as error:
            errors.append(error)
            change(batch)
    show(errors[0])
work(X, {"w": W}, lambda batch: batch.update(w=OTHER))
""",
        False,
    ),
}
# Calls of a handler that change nothing: the operands are told, an attribute among them.
HARMLESS = """
class Held:
    pass
def work(x, held):
    try:
        x @ held.w
    except RuntimeError as error:
        print("failed", len(str(error)), type(error).__name__, tuple(x.size()))
        logging.getLogger("quiet").info("%s", error)
        show(error)
import logging
held = Held()
held.w = W
work(X, held)
"""
