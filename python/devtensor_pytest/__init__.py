"""pytest plugin: --simulate-cuda=N, a `device` fixture, and the markers `cuda` and `cuda_real`.

A module of its own, as importing anything from the package devtensor would load the extension in every pytest run.
"""

import sys

import pytest


def pytest_addoption(parser):
    parser.getgroup("devtensor").addoption(
        "--simulate-cuda",
        type=int,
        default=0,
        metavar="N",
        help="give devtensor N simulated CUDA devices",
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "cuda: needs a CUDA device of devtensor, real or simulated")
    config.addinivalue_line("markers", "cuda_real: needs a real CUDA device of devtensor")
    count = config.getoption("--simulate-cuda")
    if count < 0:
        raise pytest.UsageError(f"--simulate-cuda: {count} is not a number of devices")
    if count:
        import devtensor.testing

        devtensor.testing.simulate_cuda(count)


@pytest.fixture
def device(request):
    """Each device there is: "cpu", "cuda:0", ..."""
    return request.param


def pytest_generate_tests(metafunc):
    fixtures = getattr(metafunc, "_arg2fixturedefs", {}).get("device")
    if not fixtures or getattr(fixtures[-1].func, "__module__", None) != __name__:
        return
    if any("device" in str(mark.args[:1]) for mark in metafunc.definition.iter_markers("parametrize")):
        return
    import devtensor.testing

    devices = [str(d) for d in devtensor.testing.devices()]
    metafunc.parametrize("device", devices, indirect=True, ids=devices)


def pytest_runtest_setup(item):
    dt = sys.modules.get("devtensor")
    if dt is None:
        return
    if item.get_closest_marker("cuda") or item.get_closest_marker("cuda_real"):
        if not dt.cuda.is_available():
            pytest.skip("devtensor has no CUDA device here; --simulate-cuda=2 gives simulated ones")
        if item.get_closest_marker("cuda_real") and dt.cuda.is_simulated():
            pytest.skip("the CUDA devices here are simulated")
