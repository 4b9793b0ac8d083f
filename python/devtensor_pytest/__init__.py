"""pytest plugin: --simulate-cuda=N, a `device` fixture, and the markers `cuda`, `cuda_real` and `no_transfers`.

A module of its own, as importing anything from the package devtensor would load the extension in every pytest run.
"""

import pytest

NO_CUDA = "devtensor has no CUDA device here; --simulate-cuda=2 gives simulated ones"


def pytest_addoption(parser):
    parser.getgroup("devtensor").addoption(
        "--simulate-cuda",
        type=int,
        default=0,
        metavar="N",
        help="give devtensor N simulated CUDA devices",
    )


def pytest_configure(config):
    for line in (
        "cuda: needs a CUDA device of devtensor, real or simulated; the device fixture then leaves the cpu out",
        "cuda_real: needs a real CUDA device of devtensor",
        "no_transfers: fails at the line that copies an array of devtensor between devices",
    ):
        config.addinivalue_line("markers", line)
    count = config.getoption("--simulate-cuda")
    if count < 0:
        raise pytest.UsageError(f"--simulate-cuda: {count} is not a number of devices")
    if count:
        import devtensor.testing

        devtensor.testing.simulate_cuda(count)


def needs_cuda(item):
    """Whether a test is marked as one for CUDA devices."""
    return item.get_closest_marker("cuda") is not None or item.get_closest_marker("cuda_real") is not None


@pytest.fixture
def device(request):
    """Each device there is: "cpu", "cuda:0", ...; in a test marked cuda or cuda_real without the cpu."""
    return request.param


def pytest_generate_tests(metafunc):
    fixtures = getattr(metafunc, "_arg2fixturedefs", {}).get("device")
    if not fixtures or getattr(fixtures[-1].func, "__module__", None) != __name__:
        return
    if any("device" in str(mark.args[:1]) for mark in metafunc.definition.iter_markers("parametrize")):
        return
    import devtensor.testing

    devices = devtensor.testing.devices()
    if needs_cuda(metafunc.definition):
        devices = devices[1:] or ["cuda"]  # which is skipped
    metafunc.parametrize("device", devices, indirect=True, ids=devices)


def pytest_runtest_setup(item):
    if not needs_cuda(item):
        return
    import devtensor as dt

    if not dt.cuda.is_available():
        pytest.skip(NO_CUDA)
    if item.get_closest_marker("cuda_real") and dt.cuda.is_simulated():
        pytest.skip("the CUDA devices here are simulated")


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """The test function alone: what fixtures do before and after it is not looked at."""
    if pyfuncitem.get_closest_marker("no_transfers") is None:
        yield
        return
    import devtensor as dt

    with dt.forbid_transfers():
        yield
