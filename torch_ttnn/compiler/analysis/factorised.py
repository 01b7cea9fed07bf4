"""Matrices that torch factorises or inverts: the operations that compute them stay on the host.

The host factorises in float32. A Gram matrix is symmetric and positive, a product of two thin matrices has their rank,
a sum with a multiple of the identity is invertible. Rounding to bfloat16 breaks these properties: `pinv` finds spurious
singular values, `cholesky` fails, a determinant changes its sign.
"""

from __future__ import annotations

import operator

import torch
import torch.fx

from torch_ttnn.compiler.analysis.never_nan import is_float, overloads
from torch_ttnn.compiler.ir.source_lines import source_line

FACTORISING = overloads(
    "linalg_pinv", "linalg_svd", "_linalg_svd", "linalg_svdvals", "svd", "linalg_qr", "geqrf", "linalg_eig",
    "linalg_eigh", "_linalg_eigh", "linalg_eigvals", "_linalg_eigvals", "linalg_eigvalsh", "linalg_inv",
    "linalg_inv_ex", "inverse", "linalg_solve", "linalg_solve_ex", "_linalg_solve_ex", "linalg_lstsq",
    "linalg_cholesky", "linalg_cholesky_ex", "cholesky", "cholesky_inverse", "cholesky_solve", "linalg_lu",
    "linalg_lu_factor", "linalg_lu_factor_ex", "_lu_with_info", "lu_unpack", "linalg_lu_solve", "lu_solve",
    "linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_ldl_solve", "linalg_det", "_linalg_det", "det", "logdet",
    "linalg_slogdet", "_linalg_slogdet", "slogdet", "linalg_solve_triangular", "triangular_solve",
    "linalg_matrix_rank", "linalg_tensorinv", "linalg_tensorsolve", "linalg_cond", "linalg_householder_product",
    "ormqr", "lobpcg",
)  # fmt: skip
# Operations that compute matrices from matrices. Others, such as a layer of a network, are not exact anyway.
MAKING = overloads(
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "matmul", "dot", "mv", "addmv", "addr", "outer", "add", "sub", "rsub",
    "mul", "div", "neg", "square", "pow", "sum", "mean", "diag_embed", "diagonal", "diagonal_scatter", "diag", "tril",
    "triu", "cat", "stack", "flip", "roll", "index", "index_select", "slice", "select", "slice_scatter",
    "select_scatter", "where", "masked_fill", "view", "_unsafe_view", "reshape", "expand", "permute", "transpose", "t",
    "unsqueeze", "squeeze", "clone", "detach", "alias", "_to_copy", "lift_fresh_copy", "copy",
)  # fmt: skip


def host_reasons(graph: torch.fx.Graph) -> dict[torch.fx.Node, str]:
    """The operations that stay on the host because a factorisation reads their results, with the reasons."""
    reasons: dict[torch.fx.Node, str] = {}
    for node in graph.nodes:
        if node.target not in FACTORISING:
            continue
        line = source_line(node)
        reason = (
            f"{node.target}{' at ' + line if line else ''} factorises what is computed from it, and the device's "
            "rounding would change its rank"
        )
        waiting = list(node.all_input_nodes)
        while waiting:
            each = waiting.pop()
            if each.target is operator.getitem:
                continue
            if each not in reasons and each.target in MAKING and is_float(each.meta.get("val")):
                reasons[each] = reason
                waiting += each.all_input_nodes
    return reasons
