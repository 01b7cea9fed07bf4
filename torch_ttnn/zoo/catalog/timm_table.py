"""One small model for each of many architectures of timm."""

from __future__ import annotations

KINDS: tuple[str, ...] = tuple(
    """
    beit_base_patch16_224 cait_xxs24_224 coatnet_pico_rw_224 convit_tiny convmixer_768_32 convnextv2_atto
    crossvit_tiny_240 cspresnet50 davit_tiny deit3_small_patch16_224 dla34 edgenext_xx_small efficientformer_l1
    efficientvit_b0 eva02_tiny_patch14_224 fastvit_t8 focalnet_tiny_srf ghostnet_100 hrnet_w18_small levit_128s
    maxvit_pico_rw_256 mixer_s16_224 mobilenetv4_conv_small mobilevit_xxs nfnet_l0 pit_ti_224 poolformer_s12 pvt_v2_b0
    regnety_002 repvgg_a0 res2net50_26w_4s rexnet_100 swinv2_tiny_window8_256 tf_efficientnet_lite0 tnt_s_patch16_224
    twins_pcpvt_small vit_tiny_patch16_224 volo_d1_224 xception41 xcit_nano_12_p16_224
    """.split()
)
