"""The device `ttnn` as torch sees it: its registration, its module, its boards, its kernels."""
