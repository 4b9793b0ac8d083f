"""The reference itself, against plain NumPy and published numbers."""

from __future__ import annotations

import cases
import formats
import images
import numpy as np
import philox
import pytest
import reference
from formats import FLOATS, INTS, STORAGE, cast


@pytest.mark.parametrize("target", ["float16", "float32"])
def test_rounding_is_numpys(target: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    x = np.concatenate([x, rng.normal(size=20_000) * 10.0 ** rng.integers(-50, 50, 20_000)])
    x = x[~np.isnan(x)]
    with np.errstate(all="ignore"):
        want = x.astype(target).astype(np.float64)
    np.testing.assert_array_equal(formats.round_float(x, target), want)


def test_rounding_to_bfloat16() -> None:
    rows = [
        (1.0, 1.0),
        (1 + 2**-8, 1.0),  # ties to even
        (1 + 3 * 2**-8, 1 + 2**-6),
        (1 + 2**-8 + 2**-40, 1 + 2**-7),
        (3.3895313892515355e38, 3.3895313892515355e38),
        (3.39e38, 3.3895313892515355e38),
        (3.4e38, np.inf),
        (2.0**-133, 2.0**-133),
        (2.0**-134, 0.0),
        (2.0**-134 * 1.0001, 2.0**-133),
    ]
    for x, want in rows:
        assert formats.round_float(np.array(x), "bfloat16") == want
        assert formats.round_float(np.array(-x), "bfloat16") == -want


@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("target", INTS)
def test_integers_wrap_as_numpys(source: str, target: str) -> None:
    low, high = formats.RANGE[source]
    x = np.array([low, low + 1, -1 if low else 0, 0, 1, high // 2, high - 1, high], dtype=source)
    np.testing.assert_array_equal(cast(x, source, target), x.astype(target))


def test_floats_in_range_truncate_as_numpys() -> None:
    x = np.linspace(-120, 120, 997)
    for target in ("int8", "int16", "int32", "int64"):
        np.testing.assert_array_equal(cast(x, "float64", target), x.astype(target))


def test_saturation() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -0.9, 255.9, 256.0])
    assert cast(x, "float64", "uint8").tolist() == [0, 255, 0, 255, 0, 0, 255, 255]
    assert cast(x, "float64", "int64").tolist()[:5] == [0, 2**63 - 1, -(2**63), 2**63 - 1, -(2**63)]
    assert cast(x, "float64", "bool").tolist() == [1, 1, 1, 1, 1, 1, 1, 1]


def test_round_int() -> None:
    for n in (0, 1, 255, 256, 257, 258, 259, 2**53 + 1, 2**63 - 1, -(2**63), 12345678901234567):
        assert formats.round_int(n, 53) == int(float(n))
        assert float(formats.round_int(n, 24)) == float(np.float32(n))


def test_philox_known_answers() -> None:
    # kat_vectors of Random123
    assert philox.philox(0, 0) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)


def test_promotion_is_numpys_where_they_agree() -> None:
    for a in (*INTS, "bool", "float32", "float64"):
        for b in (*INTS, "bool"):
            if a in FLOATS or b in FLOATS:
                assert formats.promote(a, b) == a
            else:
                assert formats.promote(a, b) == np.promote_types(a, b).name
                assert formats.promote(b, a) == formats.promote(a, b)
    assert formats.promote("float16", "bfloat16") == "float32"
    assert formats.promote("int64", "float16") == "float16"


@pytest.mark.parametrize("case", cases.CASES, ids=str)
def test_every_case_has_an_answer(case: cases.Case) -> None:
    """Whose dtype holds it, and which NumPy's own functions confirm where it has them."""
    for dtype in case.dtypes:
        wide = [
            cases.make_values(o, dtype, f"{case.op}{i}") if isinstance(o, cases.Operand) else o
            for i, o in enumerate(case.operands)
        ]
        names = [o.dtype or dtype if isinstance(o, cases.Operand) else "" for o in case.operands]
        if case.op == "where":
            names = names[1:]
        args = [wide] if case.listed else wide
        want = reference.expected(case.op, args, names, **case.parameters)
        for values, result in want if isinstance(want, list) else [want]:
            assert result in STORAGE
            again = formats.bits_to_wide(formats.wide_to_bits(values, result), result)
            np.testing.assert_array_equal(again, values)
        if case.op in ("matmul", "mm", "bmm", "mv", "dot"):
            np.testing.assert_allclose(want[0], formats.round_float(np.matmul(*wide), want[1]), rtol=1e-2, atol=1e-2)


def test_conv2d_against_a_correlation_by_definition() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(1, 2, 6, 5)), rng.normal(size=(3, 2, 3, 2))
    got = images.conv2d(x, w, stride=(2, 1), padding=(1, 0))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), axis=(2, 3))[:, :, ::2]
    np.testing.assert_allclose(got, np.einsum("nchwij,kcij->nkhw", windows, w))
