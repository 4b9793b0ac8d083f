"""pytest plugin: --simulate-cuda=N, --explain-torch, a `device` fixture, and the markers devtensor_cuda,
devtensor_cuda_real and devtensor_no_transfers.

pytest loads it wherever devtensor is installed, also for suites that never heard of it. So it has no say in a test
that neither uses its fixture nor carries one of its markers, and a `device` fixture of anybody else goes first.

A module of its own, as importing anything from the package devtensor would load the extension in every pytest run.
"""

import re

import pytest

NO_CUDA = "devtensor has no CUDA device here; --simulate-cuda=2 gives simulated ones"

MARKERS = {
    "cuda": "needs a CUDA device of devtensor, real or simulated; the device fixture then leaves the cpu out",
    "cuda_real": "needs a real CUDA device of devtensor",
    "no_transfers": "fails at the line that copies an array of devtensor between devices",
}
_names = pytest.StashKey()


def pytest_addoption(parser):
    parser.getgroup("devtensor").addoption(
        "--simulate-cuda",
        type=int,
        default=0,
        metavar="N",
        dest="devtensor_simulate_cuda",
        help="give devtensor N simulated CUDA devices",
    )
    parser.getgroup("devtensor").addoption(
        "--explain-torch",
        action="store_true",
        dest="devtensor_explain_torch",
        help="explain errors of PyTorch: the variable, the odd one, the fix",
    )
    parser.addini(
        "devtensor_short_markers",
        "cuda, cuda_real and no_transfers are markers of devtensor here, as devtensor_cuda and the others are",
        type="bool",
        default=False,
    )


def pytest_configure(config):
    asked = asked_for(config)
    config.stash[_names] = {name: [f"devtensor_{name}", *([name] if asked else [])] for name in MARKERS}
    for name, text in MARKERS.items():
        for marker in config.stash[_names][name]:
            config.addinivalue_line("markers", f"{marker}: {text}")
    if config.getoption("devtensor_explain_torch"):
        import devtensor

        explained = devtensor.explain_torch()
        config.add_cleanup(lambda: explained.__exit__(None, None, None))
    count = config.getoption("devtensor_simulate_cuda")
    if count < 0:
        raise pytest.UsageError(f"--simulate-cuda: {count} is not a number of devices")
    if count:
        import devtensor.testing

        devtensor.testing.simulate_cuda(count)


def asked_for(config):
    """Whether the configuration file of the suite asks for this plugin: then the short names of its markers are meant.

    It does so by devtensor_short_markers = true, by devtensor in required_plugins, or by --simulate-cuda in addopts.
    """
    return (
        config.getini("devtensor_short_markers")
        or any(re.match(r"devtensor(?![\w.-])", plugin) for plugin in config.getini("required_plugins"))
        or any(option.partition("=")[0] == "--simulate-cuda" for option in config.getini("addopts"))
    )


def is_marked(item, name):
    """Whether a test carries one of the names of a marker."""
    return any(item.get_closest_marker(marker) is not None for marker in item.config.stash[_names][name])


def needs_cuda(item):
    """Whether a test is marked as one for CUDA devices of devtensor."""
    return is_marked(item, "cuda") or is_marked(item, "cuda_real")


class Fixtures:
    """Registered by itself, since a fixture of this module would hide that of a plugin that was loaded before."""

    @pytest.fixture
    def device(self, request):
        """Each device of devtensor: "cpu", "cuda:0", ...; in a test marked devtensor_cuda without the cpu."""
        return request.param


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    """When the other plugins are there: their fixture goes first."""
    node = session if pytest.version_tuple >= (8,) else ""
    if not session._fixturemanager.getfixturedefs("device", node):
        session.config.pluginmanager.register(Fixtures(), "devtensor_fixtures")


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc):
    """After the suite's own hooks, which may have chosen the devices of a test."""
    fixtures = getattr(metafunc, "_arg2fixturedefs", {}).get("device")
    if not fixtures or getattr(fixtures[-1].func, "__module__", None) != __name__:
        return
    if any("device" in call.params or "device" in getattr(call, "funcargs", ()) for call in metafunc._calls):
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
    if is_marked(item, "cuda_real") and dt.cuda.is_simulated():
        pytest.skip("the CUDA devices here are simulated")


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """The test function alone: what fixtures do before and after it is not looked at."""
    if not is_marked(pyfuncitem, "no_transfers"):
        yield
        return
    import devtensor as dt

    with dt.forbid_transfers():
        yield
