"""Image classifiers of timm, under timm's names."""

from __future__ import annotations

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import image, takes
from torch_ttnn.zoo.sources import Timm


def timm(name: str, family: str, size: int = 224, *, train: bool = False, model: str = "") -> ModelEntry:
    """A row for a model of one RGB image; `model` is its name in timm, where that has a tag."""
    architecture = Timm(model or name)
    return ModelEntry(name, family, "image classification", architecture, takes(image(size)), train=train)


ENTRIES = (
    timm("beit_base_patch16_224", "beit"),
    timm("cait_xxs24_224", "cait"),
    timm("coatnet_pico_rw_224", "coatnet"),
    timm("convit_tiny", "convit"),
    timm("convmixer_768_32", "convmixer"),
    timm("convnext_atto", "convnext"),
    timm("convnextv2_atto", "convnext"),
    timm("crossvit_tiny_240", "crossvit", 240),
    timm("cspresnet50", "cspnet", 256),
    timm("davit_tiny", "davit"),
    timm("deit3_small_patch16_224", "deit"),
    timm("dla34", "dla", train=True),
    timm("edgenext_xx_small", "edgenext", 256),
    timm("efficientformer_l1", "efficientformer"),
    timm("efficientvit_b0", "efficientvit"),
    timm("ese_vovnet19b_dw", "vovnet", train=True),
    timm("eva02_tiny_patch14_224", "eva"),
    timm("fastvit_t8", "fastvit", 256),
    timm("focalnet_tiny_srf", "focalnet"),
    timm("ghostnet_100", "ghostnet", train=True),
    timm("ghostnetv2_100", "ghostnet", train=True),
    timm("hrnet_w18_small", "hrnet"),
    timm("hrnet_w18", "hrnet", train=True),
    timm("inception_resnet_v2", "inception", 299),
    timm("inception_v4", "inception", 299, train=True),
    timm("lcnet_050", "lcnet"),
    timm("levit_128s", "levit"),
    timm("maxvit_pico_rw_256", "maxvit", 256),
    timm("mixer_s16_224", "mixer"),
    timm("mixer_b16_224", "mixer", model="mixer_b16_224.goog_in21k", train=True),
    timm("mobilenetv1_100", "mobilenet", train=True),
    timm("mobilenetv3_small_050", "mobilenet"),
    timm("mobilenetv4_conv_small", "mobilenet"),
    timm("mobileone_s0", "mobileone"),
    timm("mobilevit_xxs", "mobilevit", 256),
    timm("mobilevitv2_050", "mobilevit", 256),
    timm("nfnet_l0", "nfnet"),
    timm("pit_ti_224", "pit"),
    timm("poolformer_s12", "poolformer"),
    timm("pvt_v2_b0", "pvt"),
    timm("regnety_002", "regnet"),
    timm("repvgg_a0", "repvgg"),
    timm("res2net50_26w_4s", "res2net"),
    timm("resnetv2_50", "resnet"),
    timm("rexnet_100", "rexnet"),
    timm("seresnet18", "resnet"),
    timm("swinv2_tiny_window8_256", "swin", 256),
    timm("tf_efficientnet_lite0", "efficientnet", train=True),
    timm("tf_efficientnet_lite1", "efficientnet", 240, train=True),
    timm("tf_efficientnet_lite2", "efficientnet", 260, train=True),
    timm("tf_efficientnet_lite3", "efficientnet", 300, train=True),
    timm("tf_efficientnet_lite4", "efficientnet", 380, train=True),
    timm("tinynet_e", "efficientnet", 106),
    timm("tnt_s_patch16_224", "tnt"),
    timm("twins_pcpvt_small", "twins"),
    timm("visformer_tiny", "visformer"),
    timm("vit_small_patch14_dinov2", "vit", 518),
    timm("vit_tiny_patch16_224", "vit"),
    timm("volo_d1_224", "volo"),
    timm("xception41", "xception", 299),
    timm("xception71", "xception", 299, train=True),
    timm("xcit_nano_12_p16_224", "xcit"),
)
