"""Does classifier.py work on a GPU? `pytest --simulate-cuda=2` tells without one.

`device` runs a test on the cpu and on each GPU, real or simulated. `devtensor_cuda` leaves the cpu out, and skips where
there is no GPU at all. `devtensor_no_transfers` fails at the line that copies something between devices.
"""

import pytest
from classifier import Classifier, accuracy, with_noise

import devtensor as dt


@pytest.fixture
def model(device):
    dt.manual_seed(0)
    return Classifier().to(device).eval()


@pytest.fixture
def images(device):
    return dt.rand(16, 3, 8, 8, device=device)


def test_everything_moves_with_the_model(model, device):
    for name, array in model.state_dict().items():
        assert array.device == device, name


def test_results_are_where_the_input_is(model, images, device):
    assert model(images).device == device
    assert with_noise(images).device == device


@pytest.mark.devtensor_cuda
def test_the_gpu_agrees_with_the_cpu(model, images):
    expected = Classifier().eval()
    expected.load_state_dict(model.cpu().state_dict())
    on_the_cpu = expected(images.cpu())
    dt.testing.assert_close(model.to(images.device)(images).cpu(), on_the_cpu)


@pytest.mark.devtensor_no_transfers
def test_nothing_goes_back_and_forth(model, images):
    """Neither an .item() nor a helper array made on the cpu hides in a step."""
    labels = dt.zeros(16, dtype=dt.int64, device=images.device)
    for _ in range(3):
        accuracy(model, with_noise(images), labels)


@pytest.mark.devtensor_cuda
def test_a_forgotten_batch_is_refused(model, images):
    with pytest.raises(dt.DeviceMismatchError, match="input on cuda:0, other on cpu|input on cpu, other on cuda:0"):
        model.to("cuda:0")(images.cpu())


def test_half_precision(model, images):
    model.half()
    assert model(images.half()).dtype == dt.float16
