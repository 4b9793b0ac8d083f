/* ops.h: examples of all other ops: see ../examples.h. */
#ifndef DEVTENSOR_EXAMPLES_OPS_H
#define DEVTENSOR_EXAMPLES_OPS_H

/* ---------------------------------------------------------------- reductions */

#define EXAMPLE_sum                                                                                                    \
    EXAMPLE(">>> dt.sum(dt.tensor([[1, 2], [3, 4]]), dim=0)\n"                                                         \
            "DeviceArray([4, 6], device='cpu', dtype=int64)")
#define EXAMPLE_prod                                                                                                   \
    EXAMPLE(">>> dt.prod(dt.tensor([2.0, 3.0, 4.0]))\n"                                                                \
            "DeviceArray(24., device='cpu', dtype=float32)")
#define EXAMPLE_mean                                                                                                   \
    EXAMPLE(">>> dt.mean(dt.tensor([[1.0, 3.0], [5.0, 7.0]]), dim=1)\n"                                                \
            "DeviceArray([2., 6.], device='cpu', dtype=float32)")
#define EXAMPLE_amax                                                                                                   \
    EXAMPLE(">>> dt.amax(dt.tensor([[1, 9], [5, 3]]), dim=1)\n"                                                        \
            "DeviceArray([9, 5], device='cpu', dtype=int64)")
#define EXAMPLE_amin                                                                                                   \
    EXAMPLE(">>> dt.amin(dt.tensor([[1, 9], [5, 3]]), dim=1)\n"                                                        \
            "DeviceArray([1, 3], device='cpu', dtype=int64)")
#define EXAMPLE_argmax                                                                                                 \
    EXAMPLE(">>> dt.argmax(dt.tensor([1.0, 9.0, 5.0]))\n"                                                              \
            "DeviceArray(1, device='cpu', dtype=int64)")
#define EXAMPLE_argmin                                                                                                 \
    EXAMPLE(">>> dt.argmin(dt.tensor([4.0, 1.0, 5.0]))\n"                                                              \
            "DeviceArray(1, device='cpu', dtype=int64)")
#define EXAMPLE_any                                                                                                    \
    EXAMPLE(">>> dt.any(dt.tensor([0, 3]))\n"                                                                          \
            "DeviceArray(True, device='cpu', dtype=bool)")
#define EXAMPLE_all                                                                                                    \
    EXAMPLE(">>> dt.all(dt.tensor([0, 3]))\n"                                                                          \
            "DeviceArray(False, device='cpu', dtype=bool)")
#define EXAMPLE_max                                                                                                    \
    EXAMPLE(">>> dt.max(dt.tensor([[1, 9], [5, 3]]), dim=1).indices\n"                                                 \
            "DeviceArray([1, 0], device='cpu', dtype=int64)")
#define EXAMPLE_min                                                                                                    \
    EXAMPLE(">>> dt.min(dt.tensor([[1, 9], [5, 3]]))\n"                                                                \
            "DeviceArray(1, device='cpu', dtype=int64)")
#define EXAMPLE_cumsum                                                                                                 \
    EXAMPLE(">>> dt.cumsum(dt.tensor([1, 2, 3]), dim=0)\n"                                                             \
            "DeviceArray([1, 3, 6], device='cpu', dtype=int64)")
#define EXAMPLE_cumprod                                                                                                \
    EXAMPLE(">>> dt.cumprod(dt.tensor([1, 2, 3]), dim=0)\n"                                                            \
            "DeviceArray([1, 2, 6], device='cpu', dtype=int64)")
#define EXAMPLE_cumsum_                                                                                                \
    EXAMPLE(">>> dt.tensor([1, 2, 3]).cumsum_(0)\n"                                                                    \
            "DeviceArray([1, 3, 6], device='cpu', dtype=int64)")
#define EXAMPLE_cumprod_                                                                                               \
    EXAMPLE(">>> dt.tensor([1, 2, 3]).cumprod_(0)\n"                                                                   \
            "DeviceArray([1, 2, 6], device='cpu', dtype=int64)")
#define EXAMPLE_logcumsumexp                                                                                           \
    EXAMPLE(">>> dt.logcumsumexp(dt.tensor([0.0, 0.0]), dim=0)\n"                                                      \
            "DeviceArray([0.0000, 0.6931], device='cpu', dtype=float32)")
#define EXAMPLE_cummax                                                                                                 \
    EXAMPLE(">>> dt.cummax(dt.tensor([2, 1, 3]), dim=0).indices\n"                                                     \
            "DeviceArray([0, 0, 2], device='cpu', dtype=int64)")
#define EXAMPLE_cummin                                                                                                 \
    EXAMPLE(">>> dt.cummin(dt.tensor([2, 1, 3]), dim=0).values\n"                                                      \
            "DeviceArray([2, 1, 1], device='cpu', dtype=int64)")
#define EXAMPLE_sort                                                                                                   \
    EXAMPLE(">>> dt.sort(dt.tensor([3, 1, 2])).values\n"                                                               \
            "DeviceArray([1, 2, 3], device='cpu', dtype=int64)")
#define EXAMPLE_argsort                                                                                                \
    EXAMPLE(">>> dt.argsort(dt.tensor([3, 1, 2]))\n"                                                                   \
            "DeviceArray([1, 2, 0], device='cpu', dtype=int64)")
#define EXAMPLE_topk                                                                                                   \
    EXAMPLE(">>> dt.topk(dt.tensor([3, 1, 2]), k=2).values\n"                                                          \
            "DeviceArray([3, 2], device='cpu', dtype=int64)")
#define EXAMPLE_softmax                                                                                                \
    EXAMPLE(">>> dt.softmax(dt.tensor([0.0, 0.0]), dim=0)\n"                                                           \
            "DeviceArray([0.5000, 0.5000], device='cpu', dtype=float32)")
#define EXAMPLE_log_softmax                                                                                            \
    EXAMPLE(">>> dt.log_softmax(dt.tensor([0.0, 0.0]), dim=0)\n"                                                       \
            "DeviceArray([-0.6931, -0.6931], device='cpu', dtype=float32)")

/* ---------------------------------------------------------------- matmul, conv, pool */

#define EXAMPLE_matmul                                                                                                 \
    EXAMPLE(">>> dt.matmul(dt.tensor([[1.0, 2.0], [3.0, 4.0]]), dt.tensor([1.0, 1.0]))\n"                              \
            "DeviceArray([3., 7.], device='cpu', dtype=float32)")
#define EXAMPLE_mm                                                                                                     \
    EXAMPLE(">>> dt.mm(dt.ones(2, 3), dt.ones(3, 2))\n"                                                                \
            "DeviceArray([[3., 3.],\n"                                                                                 \
            "             [3., 3.]], device='cpu', dtype=float32)")
#define EXAMPLE_bmm                                                                                                    \
    EXAMPLE(">>> dt.bmm(dt.ones(5, 2, 3), dt.ones(5, 3, 4)).shape\n"                                                   \
            "(5, 2, 4)")
#define EXAMPLE_mv                                                                                                     \
    EXAMPLE(">>> dt.mv(dt.tensor([[1.0, 2.0], [3.0, 4.0]]), dt.tensor([1.0, 1.0]))\n"                                  \
            "DeviceArray([3., 7.], device='cpu', dtype=float32)")
#define EXAMPLE_dot                                                                                                    \
    EXAMPLE(">>> dt.dot(dt.tensor([1.0, 2.0]), dt.tensor([3.0, 4.0]))\n"                                               \
            "DeviceArray(11., device='cpu', dtype=float32)")
#define EXAMPLE_outer                                                                                                  \
    EXAMPLE(">>> dt.outer(dt.tensor([1.0, 2.0]), dt.tensor([3.0, 4.0]))\n"                                             \
            "DeviceArray([[3., 4.],\n"                                                                                 \
            "             [6., 8.]], device='cpu', dtype=float32)")
#define EXAMPLE_addmm                                                                                                  \
    EXAMPLE(">>> dt.addmm(dt.ones(2, 2), dt.eye(2), dt.eye(2), beta=0.5)\n"                                            \
            "DeviceArray([[1.5000, 0.5000],\n"                                                                         \
            "             [0.5000, 1.5000]], device='cpu', dtype=float32)")
#define EXAMPLE_baddbmm                                                                                                \
    EXAMPLE(">>> dt.baddbmm(dt.zeros(1, 2, 2), dt.ones(1, 2, 3), dt.ones(1, 3, 2))\n"                                  \
            "DeviceArray([[[3., 3.],\n"                                                                                \
            "              [3., 3.]]], device='cpu', dtype=float32)")
#define EXAMPLE_linear                                                                                                 \
    EXAMPLE(">>> dt.linear(dt.tensor([[1.0, 2.0]]), weight=dt.eye(2), bias=dt.tensor([10.0, 20.0]))\n"                 \
            "DeviceArray([[11., 22.]], device='cpu', dtype=float32)")
#define EXAMPLE_conv2d                                                                                                 \
    EXAMPLE(">>> dt.conv2d(dt.ones(1, 3, 8, 8), dt.ones(16, 3, 3, 3), stride=2, padding=1).shape\n"                    \
            "(1, 16, 4, 4)")
#define EXAMPLE_max_pool2d                                                                                             \
    EXAMPLE(">>> dt.max_pool2d(dt.arange(16.0).reshape(1, 4, 4), 2)\n"                                                 \
            "DeviceArray([[[ 5.,  7.],\n"                                                                              \
            "              [13., 15.]]], device='cpu', dtype=float32)")
#define EXAMPLE_avg_pool2d                                                                                             \
    EXAMPLE(">>> dt.avg_pool2d(dt.arange(16.0).reshape(1, 4, 4), 2)\n"                                                 \
            "DeviceArray([[[ 2.5000,  4.5000],\n"                                                                      \
            "              [10.5000, 12.5000]]], device='cpu', dtype=float32)")
#define EXAMPLE_adaptive_avg_pool2d                                                                                    \
    EXAMPLE(">>> dt.adaptive_avg_pool2d(dt.arange(16.0).reshape(1, 4, 4), 1)\n"                                        \
            "DeviceArray([[[7.5000]]], device='cpu', dtype=float32)")

/* ---------------------------------------------------------------- shape */

#define EXAMPLE_reshape                                                                                                \
    EXAMPLE(">>> dt.reshape(dt.arange(6), (2, -1))\n"                                                                  \
            "DeviceArray([[0, 1, 2],\n"                                                                                \
            "             [3, 4, 5]], device='cpu', dtype=int64)")
#define EXAMPLE_view                                                                                                   \
    EXAMPLE(">>> dt.arange(6).view(2, 3)\n"                                                                            \
            "DeviceArray([[0, 1, 2],\n"                                                                                \
            "             [3, 4, 5]], device='cpu', dtype=int64)")
#define EXAMPLE_flatten                                                                                                \
    EXAMPLE(">>> dt.flatten(dt.zeros(2, 3, 4), 1).shape\n"                                                             \
            "(2, 12)")
#define EXAMPLE_unflatten                                                                                              \
    EXAMPLE(">>> dt.unflatten(dt.arange(6), 0, (2, 3))\n"                                                              \
            "DeviceArray([[0, 1, 2],\n"                                                                                \
            "             [3, 4, 5]], device='cpu', dtype=int64)")
#define EXAMPLE_transpose                                                                                              \
    EXAMPLE(">>> dt.transpose(dt.tensor([[1, 2], [3, 4]]), 0, 1)\n"                                                    \
            "DeviceArray([[1, 3],\n"                                                                                   \
            "             [2, 4]], device='cpu', dtype=int64)")
#define EXAMPLE_permute                                                                                                \
    EXAMPLE(">>> dt.permute(dt.zeros(2, 3, 4), (2, 0, 1)).shape\n"                                                     \
            "(4, 2, 3)")
#define EXAMPLE_movedim                                                                                                \
    EXAMPLE(">>> dt.movedim(dt.zeros(2, 3, 4), 0, -1).shape\n"                                                         \
            "(3, 4, 2)")
#define EXAMPLE_t                                                                                                      \
    EXAMPLE(">>> dt.tensor([[1, 2], [3, 4]]).t()\n"                                                                    \
            "DeviceArray([[1, 3],\n"                                                                                   \
            "             [2, 4]], device='cpu', dtype=int64)")
#define EXAMPLE_squeeze                                                                                                \
    EXAMPLE(">>> dt.squeeze(dt.zeros(1, 3, 1)).shape\n"                                                                \
            "(3,)")
#define EXAMPLE_unsqueeze                                                                                              \
    EXAMPLE(">>> dt.unsqueeze(dt.zeros(3), 0).shape\n"                                                                 \
            "(1, 3)")
#define EXAMPLE_expand                                                                                                 \
    EXAMPLE(">>> dt.tensor([[1], [2]]).expand(2, 3)\n"                                                                 \
            "DeviceArray([[1, 1, 1],\n"                                                                                \
            "             [2, 2, 2]], device='cpu', dtype=int64)")
#define EXAMPLE_expand_as                                                                                              \
    EXAMPLE(">>> dt.tensor([1, 2]).expand_as(dt.zeros(2, 2))\n"                                                        \
            "DeviceArray([[1, 2],\n"                                                                                   \
            "             [1, 2]], device='cpu', dtype=int64)")
#define EXAMPLE_view_as                                                                                                \
    EXAMPLE(">>> dt.arange(4).view_as(dt.zeros(2, 2))\n"                                                               \
            "DeviceArray([[0, 1],\n"                                                                                   \
            "             [2, 3]], device='cpu', dtype=int64)")
#define EXAMPLE_broadcast_to                                                                                           \
    EXAMPLE(">>> dt.broadcast_to(dt.tensor([1, 2]), (2, 2))\n"                                                         \
            "DeviceArray([[1, 2],\n"                                                                                   \
            "             [1, 2]], device='cpu', dtype=int64)")
#define EXAMPLE_narrow                                                                                                 \
    EXAMPLE(">>> dt.narrow(dt.arange(5), 0, 1, 3)\n"                                                                   \
            "DeviceArray([1, 2, 3], device='cpu', dtype=int64)")
#define EXAMPLE_diagonal                                                                                               \
    EXAMPLE(">>> dt.diagonal(dt.tensor([[1, 2], [3, 4]]))\n"                                                           \
            "DeviceArray([1, 4], device='cpu', dtype=int64)")
#define EXAMPLE_select                                                                                                 \
    EXAMPLE(">>> dt.select(dt.tensor([[1, 2], [3, 4]]), 1, 0)\n"                                                       \
            "DeviceArray([1, 3], device='cpu', dtype=int64)")
#define EXAMPLE_split                                                                                                  \
    EXAMPLE(">>> dt.split(dt.arange(3), 2)\n"                                                                          \
            "(DeviceArray([0, 1], device='cpu', dtype=int64), DeviceArray([2], device='cpu', dtype=int64))")
#define EXAMPLE_chunk                                                                                                  \
    EXAMPLE(">>> dt.chunk(dt.arange(4), 2)\n"                                                                          \
            "(DeviceArray([0, 1], device='cpu', dtype=int64), DeviceArray([2, 3], device='cpu', dtype=int64))")
#define EXAMPLE_unbind                                                                                                 \
    EXAMPLE(">>> dt.unbind(dt.tensor([[1, 2], [3, 4]]))\n"                                                             \
            "(DeviceArray([1, 2], device='cpu', dtype=int64), DeviceArray([3, 4], device='cpu', dtype=int64))")
#define EXAMPLE_cat                                                                                                    \
    EXAMPLE(">>> dt.cat([dt.tensor([1, 2]), dt.tensor([3])])\n"                                                        \
            "DeviceArray([1, 2, 3], device='cpu', dtype=int64)")
#define EXAMPLE_stack                                                                                                  \
    EXAMPLE(">>> dt.stack([dt.tensor([1, 2]), dt.tensor([3, 4])])\n"                                                   \
            "DeviceArray([[1, 2],\n"                                                                                   \
            "             [3, 4]], device='cpu', dtype=int64)")
#define EXAMPLE_numel                                                                                                  \
    EXAMPLE(">>> dt.numel(dt.zeros(2, 3))\n"                                                                           \
            "6")
#define EXAMPLE_clone                                                                                                  \
    EXAMPLE(">>> x = dt.zeros(2)\n"                                                                                    \
            ">>> y = dt.clone(x)\n"                                                                                    \
            ">>> y[0] = 1\n"                                                                                           \
            ">>> x\n"                                                                                                  \
            "DeviceArray([0., 0.], device='cpu', dtype=float32)")
#define EXAMPLE_as_subclass                                                                                            \
    EXAMPLE(">>> class Image(dt.Tensor):\n"                                                                            \
            "...     pass\n"                                                                                           \
            ">>> x = dt.zeros(2).as_subclass(Image)\n"                                                                 \
            ">>> x + 1\n"                                                                                              \
            "Image([1., 1.], device='cpu', dtype=float32)")
#define EXAMPLE_detach                                                                                                 \
    EXAMPLE(">>> x = dt.zeros(2)\n"                                                                                    \
            ">>> x.detach().fill_(1).device == x.device\n"                                                             \
            "True")

/* ---------------------------------------------------------------- indexing */

#define EXAMPLE_scatter_add                                                                                            \
    EXAMPLE(">>> dt.scatter_add(dt.tensor([1, 1, 1]), 0, dt.tensor([0, 2, 2]), dt.tensor([10, 20, 30]))\n"             \
            "DeviceArray([11,  1, 51], device='cpu', dtype=int64)")
#define EXAMPLE_scatter_add_                                                                                           \
    EXAMPLE(">>> dt.tensor([1, 1, 1]).scatter_add_(0, dt.tensor([0, 2, 2]), dt.tensor([10, 20, 30]))\n"                \
            "DeviceArray([11,  1, 51], device='cpu', dtype=int64)")
#define EXAMPLE_index_add                                                                                              \
    EXAMPLE(">>> dt.index_add(dt.tensor([1, 1, 1]), 0, dt.tensor([2, 2]), dt.tensor([10, 20]), alpha=2).tolist()\n"    \
            "[1, 1, 61]")
#define EXAMPLE_index_add_                                                                                             \
    EXAMPLE(">>> dt.tensor([1, 1, 1]).index_add_(0, dt.tensor([2, 2]), dt.tensor([10, 20]), alpha=2).tolist()\n"       \
            "[1, 1, 61]")
#define EXAMPLE_gather                                                                                                 \
    EXAMPLE(">>> dt.gather(dt.tensor([[1, 2], [3, 4]]), 1, dt.tensor([[1], [0]]))\n"                                   \
            "DeviceArray([[2],\n"                                                                                      \
            "             [3]], device='cpu', dtype=int64)")
#define EXAMPLE_take                                                                                                   \
    EXAMPLE(">>> dt.take(dt.tensor([[1, 2], [3, 4]]), dt.tensor([0, -1]))\n"                                           \
            "DeviceArray([1, 4], device='cpu', dtype=int64)")
#define EXAMPLE_take_along_dim                                                                                         \
    EXAMPLE(">>> dt.take_along_dim(dt.tensor([[1, 2], [3, 4]]), dt.tensor([[1], [0]]), dim=1)\n"                       \
            "DeviceArray([[2],\n"                                                                                      \
            "             [3]], device='cpu', dtype=int64)")
#define EXAMPLE_index_select                                                                                           \
    EXAMPLE(">>> dt.index_select(dt.tensor([[1, 2], [3, 4]]), 0, dt.tensor([1, 1]))\n"                                 \
            "DeviceArray([[3, 4],\n"                                                                                   \
            "             [3, 4]], device='cpu', dtype=int64)")
#define EXAMPLE_embedding                                                                                              \
    EXAMPLE(">>> dt.embedding(dt.tensor([1, 0]), dt.tensor([[1.0, 2.0], [3.0, 4.0]]))\n"                               \
            "DeviceArray([[3., 4.],\n"                                                                                 \
            "             [1., 2.]], device='cpu', dtype=float32)")
#define EXAMPLE_masked_fill                                                                                            \
    EXAMPLE(">>> dt.masked_fill(dt.tensor([1, 2]), dt.tensor([True, False]), 0)\n"                                     \
            "DeviceArray([0, 2], device='cpu', dtype=int64)")
#define EXAMPLE_masked_fill_                                                                                           \
    EXAMPLE(">>> dt.tensor([1, 2]).masked_fill_(dt.tensor([True, False]), 0)\n"                                        \
            "DeviceArray([0, 2], device='cpu', dtype=int64)")
#define EXAMPLE_masked_select                                                                                          \
    EXAMPLE(">>> dt.masked_select(dt.tensor([1, 2, 3]), dt.tensor([True, False, True]))\n"                             \
            "DeviceArray([1, 3], device='cpu', dtype=int64)")
#define EXAMPLE_nonzero                                                                                                \
    EXAMPLE(">>> dt.nonzero(dt.tensor([[0, 3], [4, 0]]))\n"                                                            \
            "DeviceArray([[0, 1],\n"                                                                                   \
            "             [1, 0]], device='cpu', dtype=int64)")

#endif
