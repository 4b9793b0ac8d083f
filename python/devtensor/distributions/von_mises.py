"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.creating.rejection import by_rejection
from devtensor.autograd.grad_mode import no_grad
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape

# Coefficients of approximations of the Bessel functions I0 and I1 (Abramowitz and Stegun 9.8.1 to 9.8.4).
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
)
_LARGE = (
    (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377),
    (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654, -0.00420059),
)


def _polynomial(x: DeviceArray, coefficients: tuple[float, ...]) -> DeviceArray:
    result = _C.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = c + x * result
    return result


def _log_bessel(x: DeviceArray, order: int) -> DeviceArray:
    """log(I0(x)) or log(I1(x))."""
    small = _polynomial((x / 3.75).square(), _SMALL[order])
    small = (x.abs() * small if order else small).log()
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return _C.where(x < 3.75, small, large)


class VonMises(Distribution):
    """Angles from -pi to pi, in radians, whose density is that of exp(concentration * cos(x - loc)).

    >>> dt.distributions.VonMises(0.0, 1.0).log_prob(dt.tensor(0.0))
    DeviceArray(-1.0738, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"loc": constraints.real, "concentration": constraints.positive}
    support: ClassVar[Constraint] = constraints.real
    _names: tuple[str, ...] = ("loc", "concentration")

    loc: DeviceArray
    concentration: DeviceArray

    def __init__(
        self, loc: DeviceArray | float, concentration: DeviceArray | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.concentration = self._broadcast(loc=loc, concentration=concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        return self.loc

    @property
    def mode(self) -> DeviceArray:
        return self.loc

    @property
    def variance(self) -> DeviceArray:
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        with no_grad():
            shape, device = self._extended_shape(sample_shape), self.loc.device
            kappa = self.concentration.detach().double()
            tau = 1 + (1 + 4 * kappa.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
            r = _C.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho.square()) / (2 * rho))

            def propose() -> tuple[DeviceArray, DeviceArray]:
                u, v, w = (_C.rand(shape, dtype=_C.float64, device=device) for _ in range(3))
                z = (math.pi * u).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                return (w - 0.5).sign() * f.acos(), (c * (2 - c) > v) | ((c / v).log() + 1 - c >= 0)

            angle = by_rejection(24, _C.zeros(shape, dtype=_C.float64, device=device), propose)
            return ((angle + math.pi + self.loc.double()) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "loc")
        near = self.concentration * (value - self.loc).cos()
        return near - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)
