"""Our own networks: their parts, output shapes, and rendered images."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from torch_ttnn.zoo.inputs import Camera
from torch_ttnn.zoo.networks import hardnet, unet
from torch_ttnn.zoo.networks.autoencoders import ConvAutoencoder, LinearAutoencoder
from torch_ttnn.zoo.networks.gaussian_splatting import GaussianScene, rotations
from torch_ttnn.zoo.networks.openpose import LightweightOpenPose
from torch_ttnn.zoo.networks.yolov3 import YOLOv3
from torch_ttnn.zoo.networks.yolov5 import YOLOv5s

AHEAD = torch.eye(4)  # a camera at the origin that looks along z


@pytest.mark.parametrize(
    ("network", "given", "wanted"),
    [
        (LinearAutoencoder, (2, 784), [(2, 784)]),
        (ConvAutoencoder, (2, 1, 28, 28), [(2, 1, 28, 28)]),
        (hardnet.HarDNet68, (1, 3, 64, 64), [(1, 1000)]),
        (unet.brain, (1, 3, 32, 48), [(1, 1, 32, 48)]),
        (LightweightOpenPose, (1, 3, 64, 96), [(1, 57, 8, 12)]),
        (YOLOv3, (1, 3, 64, 96), [(1, 255, 2, 3), (1, 255, 4, 6), (1, 255, 8, 12)]),
        (YOLOv5s, (1, 3, 64, 96), [(1, 3 * (8 * 12 + 4 * 6 + 2 * 3), 85)]),
    ],
)
def test_shapes(network: type[nn.Module], given: tuple[int, ...], wanted: list) -> None:
    with torch.no_grad():
        result = network().eval()(torch.rand(given))
    assert [tuple(each.shape) for each in (result if isinstance(result, list) else [result])] == wanted


def test_layers_of_hardnet_read_back_by_powers_of_two() -> None:
    assert [hardnet.links(layer) for layer in (1, 2, 3, 4, 6, 8)] == [[0], [1, 0], [2], [3, 2, 0], [5, 4], [7, 6, 4, 0]]
    assert [hardnet.width(layer, 64, 14) for layer in (0, 1, 2, 4, 8)] == [64, 14, 24, 40, 68]


def test_only_the_brain_has_probabilities() -> None:
    image = 50 * torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        brain, car = unet.brain().eval()(image), unet.carvana().eval()(image)
    assert brain.min() > 0 and brain.max() < 1
    assert car.min() < 0


def test_boxes_of_yolo_are_around_their_cells() -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        boxes = YOLOv5s().eval()(torch.rand(1, 3, 64, 64))[0]
    centres = boxes[: 3 * 64, :2].reshape(3, 8, 8, 2)  # the finest scale: cells of 8 pixels
    columns = 8 * torch.arange(8.0) + 4
    assert (centres[..., 0] - columns).abs().max() <= 8
    assert (centres[..., 1] - columns[:, None]).abs().max() <= 8


# -- Gaussians --------------------------------------------------------------------------------------------------------


def scene(centres: list[list[float]], colours: list[list[float]], opacity: float = 10.0) -> GaussianScene:
    """Small round Gaussians, each of one colour."""
    result = GaussianScene(gaussians=len(centres), pixels=16)
    with torch.no_grad():
        result.centres.copy_(torch.tensor(centres))
        result.log_scales.fill_(-2.0)
        result.turns.copy_(torch.tensor([1.0, 0, 0, 0]))
        result.opacities.fill_(opacity)
        result.colours.zero_()
        result.colours[:, 0] = (torch.tensor(colours) - 0.5) / 0.28209479  # the constant harmonic
    return result


def rendered(gaussians: GaussianScene) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        colour, depth, coverage = gaussians(AHEAD)
    return colour.reshape(16, 16, 3), depth.reshape(16, 16), coverage.reshape(16, 16)


def test_a_gaussian_is_where_it_should_be() -> None:
    colour, depth, coverage = rendered(scene([[0.6, -0.6, 3.0]], [[1.0, 0.0, 0.5]]))
    right, down = (coverage * torch.arange(16.0)).sum() / coverage.sum(), (coverage.T * torch.arange(16.0)).sum()
    assert right > 9  # x to the right
    assert down / coverage.sum() < 6  # y down
    brightest = divmod(int(coverage.argmax()), 16)
    assert torch.allclose(colour[brightest] / coverage[brightest], torch.tensor([1.0, 0.0, 0.5]), atol=1e-5)
    assert depth[brightest] / coverage[brightest] == pytest.approx(3.0)
    assert coverage.min() >= 0 and coverage.max() <= 0.99


def test_the_nearer_hides_the_farther_in_any_storage_order() -> None:
    near, far = [0.0, 0.0, 2.0], [0.0, 0.0, 4.0]
    red, green = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    for result in (scene([near, far], [red, green]), scene([far, near], [green, red])):
        colour, _, _ = rendered(result)
        assert colour[8, 8, 0] > 8 * colour[8, 8, 1]


def test_turning_a_long_gaussian_turns_its_picture() -> None:
    result = scene([[0.0, 0.0, 3.0]], [[1.0, 1.0, 1.0]])
    with torch.no_grad():
        result.log_scales[0, 0] = -0.5
        flat = rendered(result)[2]
        result.turns.copy_(torch.tensor([1.0, 0, 0, 1.0]))  # a quarter turn around z, of any length
        upright = rendered(result)[2]
    assert torch.allclose(upright, flat.T, atol=1e-5)
    assert flat.sum(0).count_nonzero() >= flat.sum(1).count_nonzero()


def test_quaternions_are_rotations() -> None:
    torch.manual_seed(0)
    result = rotations(torch.randn(5, 4))
    assert torch.allclose(result @ result.transpose(1, 2), torch.eye(3).expand(5, 3, 3), atol=1e-6)
    assert torch.allclose(torch.linalg.det(result), torch.ones(5))


def test_cameras_look_at_the_middle_of_the_scene() -> None:
    generator = torch.Generator().manual_seed(3)
    one, other = (Camera(4.0).draw(generator, 1, None) for _ in range(2))
    for matrix in (one, other):
        assert torch.allclose(matrix @ torch.tensor([0.0, 0, 0, 1]), torch.tensor([0.0, 0, 4, 1]))
        assert torch.linalg.det(matrix) == pytest.approx(1.0, abs=1e-5)
    assert not torch.allclose(one, other)
