"""Dense prediction, video and scenes: segmentation, pose, depth, optical flow, and image generation."""

from __future__ import annotations

from typing import Any

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import Camera, Fixed, Numbers, image, takes
from torch_ttnn.zoo.networks import unet
from torch_ttnn.zoo.networks.autoencoders import ConvAutoencoder, LinearAutoencoder
from torch_ttnn.zoo.networks.gaussian_splatting import GaussianScene
from torch_ttnn.zoo.networks.openpose import LightweightOpenPose
from torch_ttnn.zoo.sources import Diffusers, Ours, Transformers
from torch_ttnn.zoo.torchvision_kinds import entry as torchvision

SEGMENTATION = "semantic segmentation"
DPT_SETTINGS: dict[str, Any] = {"num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3]}

ENTRIES = (
    ModelEntry(
        "autoencoder-linear", "autoencoder", "reconstruction", Ours(LinearAutoencoder), takes(Numbers((784,))),
        train=True,
    ),
    ModelEntry(
        "autoencoder-conv", "autoencoder", "reconstruction", Ours(ConvAutoencoder), takes(image(28, channels=1)),
        train=True,
    ),
    ModelEntry("unet-brain", "unet", SEGMENTATION, Ours(unet.brain), takes(image(256)), train=True),
    ModelEntry("unet-carvana", "unet", SEGMENTATION, Ours(unet.carvana), takes(image(224)), train=True),
    torchvision("deeplabv3_mobilenet_v3_large", "segmentation"),
    torchvision("lraspp_mobilenet_v3_large", "segmentation"),
    torchvision("fcn_resnet50", "segmentation"),
    ModelEntry(
        "lightweight-openpose", "openpose", "pose estimation", Ours(LightweightOpenPose), takes(image(224)), train=True
    ),
    ModelEntry(
        "glpn-kitti", "glpn", "depth estimation",
        Transformers(
            "GLPNForDepthEstimation", "GLPNConfig",
            {"depths": [3, 8, 27, 3], "hidden_sizes": [64, 128, 320, 512], "max_depth": 80},
            hub="vinvino02/glpn-kitti",
        ),
        takes(image(480, 640)),
    ),
    ModelEntry(
        "dpt-4L", "dpt", "depth estimation",
        Transformers("DPTForDepthEstimation", "DPTConfig", DPT_SETTINGS), takes(image(384)),
        reduced="4 layers in place of 12.",
    ),
    ModelEntry(
        "gaussian-splatting", "gaussian-splatting", "rendering", Ours(GaussianScene), takes(Camera(4.0)),
        reduced="512 Gaussians, harmonics of degree 2 and 64 × 64 pixels in place of 16,384, 4 and 256 × 256.",
        train=True,
    ),
    torchvision("raft_small", "optical_flow", feed=takes(image(128), image(128)),
                reduced="images of 128 × 128 in place of 368 × 496."),
    torchvision("r3d_18", "video", family="resnet-video"),
    torchvision("s3d", "video"),
    torchvision("mvit_v1_b", "video", family="mvit"),
    ModelEntry(
        "stable-diffusion-unet", "stable-diffusion", "image generation",
        Diffusers("UNet2DConditionModel", {"cross_attention_dim": 768, "sample_size": 64}),
        takes(sample=Numbers((4, 64, 64)), timestep=Fixed(500.0), encoder_hidden_states=Numbers((77, 768))),
    ),
)  # fmt: skip
