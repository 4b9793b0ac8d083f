/* arrays.h: examples of arrays and what is around them: see ../examples.h. */
#ifndef DEVTENSOR_EXAMPLES_ARRAYS_H
#define DEVTENSOR_EXAMPLES_ARRAYS_H

/* ---------------------------------------------------------------- creation */

#define EXAMPLE_zeros                                                                                                  \
    EXAMPLE(">>> dt.zeros(2, 3)\n"                                                                                     \
            "DeviceArray([[0., 0., 0.],\n"                                                                             \
            "             [0., 0., 0.]], device='cpu', dtype=float32)")
#define EXAMPLE_ones                                                                                                   \
    EXAMPLE(">>> dt.ones(2, dtype=dt.int32)\n"                                                                         \
            "DeviceArray([1, 1], device='cpu', dtype=int32)")
#define EXAMPLE_empty                                                                                                  \
    EXAMPLE(">>> dt.empty(2, 3).shape\n"                                                                               \
            "(2, 3)")
#define EXAMPLE_full                                                                                                   \
    EXAMPLE(">>> dt.full((2, 2), 7)\n"                                                                                 \
            "DeviceArray([[7, 7],\n"                                                                                   \
            "             [7, 7]], device='cpu', dtype=int64)")
#define EXAMPLE_empty_like                                                                                             \
    EXAMPLE(">>> dt.empty_like(dt.ones(2, 3)).shape\n"                                                                 \
            "(2, 3)")
#define EXAMPLE_zeros_like                                                                                             \
    EXAMPLE(">>> dt.zeros_like(dt.tensor([1, 2]))\n"                                                                   \
            "DeviceArray([0, 0], device='cpu', dtype=int64)")
#define EXAMPLE_ones_like                                                                                              \
    EXAMPLE(">>> dt.ones_like(dt.tensor([1, 2]), dtype=dt.float64)\n"                                                  \
            "DeviceArray([1., 1.], device='cpu', dtype=float64)")
#define EXAMPLE_full_like                                                                                              \
    EXAMPLE(">>> dt.full_like(dt.zeros(2), 0.5)\n"                                                                     \
            "DeviceArray([0.5000, 0.5000], device='cpu', dtype=float32)")
#define EXAMPLE_arange                                                                                                 \
    EXAMPLE(">>> dt.arange(0, 1, 0.25)\n"                                                                              \
            "DeviceArray([0.0000, 0.2500, 0.5000, 0.7500], device='cpu', dtype=float32)")
#define EXAMPLE_linspace                                                                                               \
    EXAMPLE(">>> dt.linspace(0, 1, 5)\n"                                                                               \
            "DeviceArray([0.0000, 0.2500, 0.5000, 0.7500, 1.0000], device='cpu',\n"                                    \
            "            dtype=float32)")
#define EXAMPLE_eye                                                                                                    \
    EXAMPLE(">>> dt.eye(2)\n"                                                                                          \
            "DeviceArray([[1., 0.],\n"                                                                                 \
            "             [0., 1.]], device='cpu', dtype=float32)")
#define EXAMPLE_tril                                                                                                   \
    EXAMPLE(">>> dt.tril(dt.ones(3, 3, dtype=dt.int64))\n"                                                             \
            "DeviceArray([[1, 0, 0],\n"                                                                                \
            "             [1, 1, 0],\n"                                                                                \
            "             [1, 1, 1]], device='cpu', dtype=int64)")
#define EXAMPLE_triu                                                                                                   \
    EXAMPLE(">>> dt.triu(dt.ones(3, 3, dtype=dt.int64), diagonal=1)\n"                                                 \
            "DeviceArray([[0, 1, 1],\n"                                                                                \
            "             [0, 0, 1],\n"                                                                                \
            "             [0, 0, 0]], device='cpu', dtype=int64)")
#define EXAMPLE_new_empty                                                                                              \
    EXAMPLE(">>> dt.zeros(2, dtype=dt.int8).new_empty(3).dtype\n"                                                      \
            "devtensor.int8")
#define EXAMPLE_new_zeros                                                                                              \
    EXAMPLE(">>> dt.ones(2, dtype=dt.float64).new_zeros(3)\n"                                                          \
            "DeviceArray([0., 0., 0.], device='cpu', dtype=float64)")
#define EXAMPLE_new_ones                                                                                               \
    EXAMPLE(">>> dt.zeros(2, dtype=dt.int8).new_ones(3)\n"                                                             \
            "DeviceArray([1, 1, 1], device='cpu', dtype=int8)")
#define EXAMPLE_new_full                                                                                               \
    EXAMPLE(">>> dt.zeros(2).new_full((2,), 0.5)\n"                                                                    \
            "DeviceArray([0.5000, 0.5000], device='cpu', dtype=float32)")
#define EXAMPLE_array                                                                                                  \
    EXAMPLE(">>> dt.array([[1.0, 2.0], [3.0, 4.0]])\n"                                                                 \
            "DeviceArray([[1., 2.],\n"                                                                                 \
            "             [3., 4.]], device='cpu', dtype=float32)")
#define EXAMPLE_tensor                                                                                                 \
    EXAMPLE(">>> dt.tensor([1, 2, 3])\n"                                                                               \
            "DeviceArray([1, 2, 3], device='cpu', dtype=int64)")
#define EXAMPLE_asarray                                                                                                \
    EXAMPLE(">>> a = np.zeros(2)\n"                                                                                    \
            ">>> x = dt.asarray(a)\n"                                                                                  \
            ">>> a[0] = 1\n"                                                                                           \
            ">>> x\n"                                                                                                  \
            "DeviceArray([1., 0.], device='cpu', dtype=float64)")
#define EXAMPLE_as_tensor                                                                                              \
    EXAMPLE(">>> a = np.zeros(2)\n"                                                                                    \
            ">>> x = dt.as_tensor(a)\n"                                                                                \
            ">>> a[0] = 1\n"                                                                                           \
            ">>> x\n"                                                                                                  \
            "DeviceArray([1., 0.], device='cpu', dtype=float64)")
#define EXAMPLE_from_numpy                                                                                             \
    EXAMPLE(">>> dt.from_numpy(np.arange(3.0))\n"                                                                      \
            "DeviceArray([0., 1., 2.], device='cpu', dtype=float64)")
#define EXAMPLE_from_dlpack                                                                                            \
    EXAMPLE(">>> dt.from_dlpack(np.arange(3))\n"                                                                       \
            "DeviceArray([0, 1, 2], device='cpu', dtype=int64)")
#define EXAMPLE_frombuffer                                                                                             \
    EXAMPLE(">>> dt.frombuffer(bytearray(b\"\\x01\\x02\"), dtype=dt.uint8)\n"                                          \
            "DeviceArray([1, 2], device='cpu', dtype=uint8)")

/* ---------------------------------------------------------------- random */

#define EXAMPLE_manual_seed                                                                                            \
    EXAMPLE(">>> dt.manual_seed(1).initial_seed()\n"                                                                   \
            "1")
#define EXAMPLE_initial_seed                                                                                           \
    EXAMPLE(">>> generator = dt.manual_seed(1)\n"                                                                      \
            ">>> dt.initial_seed()\n"                                                                                  \
            "1")
#define EXAMPLE_seed                                                                                                   \
    EXAMPLE(">>> dt.seed() == dt.initial_seed()\n"                                                                     \
            "True")
#define EXAMPLE_rand                                                                                                   \
    EXAMPLE(">>> generator = dt.manual_seed(0)\n"                                                                      \
            ">>> dt.rand(3)\n"                                                                                         \
            "DeviceArray([0.3990, 0.8805, 0.7357], device='cpu', dtype=float32)")
#define EXAMPLE_randn                                                                                                  \
    EXAMPLE(">>> generator = dt.manual_seed(0)\n"                                                                      \
            ">>> dt.randn(3)\n"                                                                                        \
            "DeviceArray([ 0.9911, -0.9247, -0.6176], device='cpu', dtype=float32)")
#define EXAMPLE_randint                                                                                                \
    EXAMPLE(">>> generator = dt.manual_seed(0)\n"                                                                      \
            ">>> dt.randint(0, 10, (5,))\n"                                                                            \
            "DeviceArray([8, 6, 3, 0, 3], device='cpu', dtype=int64)")
#define EXAMPLE_randperm                                                                                               \
    EXAMPLE(">>> generator = dt.manual_seed(0)\n"                                                                      \
            ">>> dt.randperm(5)\n"                                                                                     \
            "DeviceArray([4, 2, 1, 3, 0], device='cpu', dtype=int64)")
#define EXAMPLE_rand_like                                                                                              \
    EXAMPLE(">>> dt.rand_like(dt.zeros(2, 3)).shape\n"                                                                 \
            "(2, 3)")
#define EXAMPLE_randn_like                                                                                             \
    EXAMPLE(">>> dt.randn_like(dt.zeros(2, 3, dtype=dt.float64)).dtype\n"                                              \
            "devtensor.float64")

/* ---------------------------------------------------------------- settings */

#define EXAMPLE_get_default_device                                                                                     \
    EXAMPLE(">>> dt.get_default_device()\n"                                                                            \
            "device(type='cpu')")
#define EXAMPLE_set_default_device                                                                                     \
    EXAMPLE(">>> dt.set_default_device(\"cpu\")\n"                                                                     \
            ">>> dt.zeros(1).device\n"                                                                                 \
            "device(type='cpu')")
#define EXAMPLE_get_default_dtype                                                                                      \
    EXAMPLE(">>> dt.get_default_dtype()\n"                                                                             \
            "devtensor.float32")
#define EXAMPLE_set_default_dtype                                                                                      \
    EXAMPLE(">>> dt.set_default_dtype(dt.float64)\n"                                                                   \
            ">>> x = dt.zeros(1)\n"                                                                                    \
            ">>> dt.set_default_dtype(dt.float32)\n"                                                                   \
            ">>> x\n"                                                                                                  \
            "DeviceArray([0.], device='cpu', dtype=float64)")
#define EXAMPLE_get_float32_precision                                                                                  \
    EXAMPLE(">>> dt.get_float32_precision()\n"                                                                         \
            "'highest'")
#define EXAMPLE_set_float32_precision                                                                                  \
    EXAMPLE(">>> dt.set_float32_precision(\"highest\")\n"                                                              \
            ">>> dt.get_float32_precision()\n"                                                                         \
            "'highest'")
#define EXAMPLE_get_num_threads                                                                                        \
    EXAMPLE(">>> dt.get_num_threads() >= 1\n"                                                                          \
            "True")
#define EXAMPLE_set_num_threads EXAMPLE(">>> dt.set_num_threads(dt.get_num_threads())")
#define EXAMPLE_counters                                                                                               \
    EXAMPLE(">>> before = dt.counters()[\"transfers\"]\n"                                                              \
            ">>> x = dt.zeros(3) + 1\n"                                                                                \
            ">>> dt.counters()[\"transfers\"] - before\n"                                                              \
            "0")

/* ---------------------------------------------------------------- methods */

#define EXAMPLE_to                                                                                                     \
    EXAMPLE(">>> dt.tensor([1.5, 2.5], dtype=dt.float64).to(dt.float32)\n"                                             \
            "DeviceArray([1.5000, 2.5000], device='cpu', dtype=float32)")
#define EXAMPLE_astype                                                                                                 \
    EXAMPLE(">>> dt.tensor([1.5, -2.5]).astype(dt.int32)\n"                                                            \
            "DeviceArray([ 1, -2], device='cpu', dtype=int32)")
#define EXAMPLE_float                                                                                                  \
    EXAMPLE(">>> dt.tensor([1, 2]).float()\n"                                                                          \
            "DeviceArray([1., 2.], device='cpu', dtype=float32)")
#define EXAMPLE_double                                                                                                 \
    EXAMPLE(">>> dt.tensor([1, 2]).double()\n"                                                                         \
            "DeviceArray([1., 2.], device='cpu', dtype=float64)")
#define EXAMPLE_half                                                                                                   \
    EXAMPLE(">>> dt.tensor([1, 2]).half()\n"                                                                           \
            "DeviceArray([1., 2.], device='cpu', dtype=float16)")
#define EXAMPLE_bfloat16                                                                                               \
    EXAMPLE(">>> dt.tensor([1, 2]).bfloat16()\n"                                                                       \
            "DeviceArray([1., 2.], device='cpu', dtype=bfloat16)")
#define EXAMPLE_bool                                                                                                   \
    EXAMPLE(">>> dt.tensor([1, 0]).bool()\n"                                                                           \
            "DeviceArray([ True, False], device='cpu', dtype=bool)")
#define EXAMPLE_byte                                                                                                   \
    EXAMPLE(">>> dt.tensor([1.0, 300.0]).byte()\n"                                                                     \
            "DeviceArray([  1, 255], device='cpu', dtype=uint8)")
#define EXAMPLE_char                                                                                                   \
    EXAMPLE(">>> dt.tensor([1.0, 300.0]).char()\n"                                                                     \
            "DeviceArray([  1, 127], device='cpu', dtype=int8)")
#define EXAMPLE_short                                                                                                  \
    EXAMPLE(">>> dt.tensor([1.9, -1.9]).short()\n"                                                                     \
            "DeviceArray([ 1, -1], device='cpu', dtype=int16)")
#define EXAMPLE_int                                                                                                    \
    EXAMPLE(">>> dt.tensor([1.9, -1.9]).int()\n"                                                                       \
            "DeviceArray([ 1, -1], device='cpu', dtype=int32)")
#define EXAMPLE_long                                                                                                   \
    EXAMPLE(">>> dt.tensor([1.9, -1.9]).long()\n"                                                                      \
            "DeviceArray([ 1, -1], device='cpu', dtype=int64)")
#define EXAMPLE_cpu                                                                                                    \
    EXAMPLE(">>> x = dt.zeros(2)\n"                                                                                    \
            ">>> x.cpu() is x\n"                                                                                       \
            "True")
#define EXAMPLE_cuda                                                                                                   \
    EXAMPLE(">>> dt.zeros(2).cuda().device  # doctest: +SKIP\n"                                                        \
            "device('cuda:0')")
#define EXAMPLE_contiguous                                                                                             \
    EXAMPLE(">>> dt.zeros(2, 3).T.contiguous().stride()\n"                                                             \
            "(2, 1)")
#define EXAMPLE_is_contiguous                                                                                          \
    EXAMPLE(">>> dt.zeros(2, 3).T.is_contiguous()\n"                                                                   \
            "False")
#define EXAMPLE_copy_                                                                                                  \
    EXAMPLE(">>> dt.zeros(2).copy_(dt.tensor([1, 2]))\n"                                                               \
            "DeviceArray([1., 2.], device='cpu', dtype=float32)")
#define EXAMPLE_fill_                                                                                                  \
    EXAMPLE(">>> dt.zeros(2).fill_(7)\n"                                                                               \
            "DeviceArray([7., 7.], device='cpu', dtype=float32)")
#define EXAMPLE_zero_                                                                                                  \
    EXAMPLE(">>> dt.ones(2).zero_()\n"                                                                                 \
            "DeviceArray([0., 0.], device='cpu', dtype=float32)")
#define EXAMPLE_storage_offset                                                                                         \
    EXAMPLE(">>> dt.zeros(3)[1:].storage_offset()\n"                                                                   \
            "1")
#define EXAMPLE_data_ptr                                                                                               \
    EXAMPLE(">>> x = dt.zeros(3)\n"                                                                                    \
            ">>> x[1:].data_ptr() - x.data_ptr()\n"                                                                    \
            "4")
#define EXAMPLE_dim                                                                                                    \
    EXAMPLE(">>> dt.zeros(2, 3).dim()\n"                                                                               \
            "2")
#define EXAMPLE_element_size                                                                                           \
    EXAMPLE(">>> dt.zeros(2).element_size()\n"                                                                         \
            "4")
#define EXAMPLE_size                                                                                                   \
    EXAMPLE(">>> dt.zeros(2, 3).size(1)\n"                                                                             \
            "3")
#define EXAMPLE_stride                                                                                                 \
    EXAMPLE(">>> dt.zeros(2, 3).stride()\n"                                                                            \
            "(3, 1)")
#define EXAMPLE_item                                                                                                   \
    EXAMPLE(">>> dt.tensor([2.5]).item()\n"                                                                            \
            "2.5")
#define EXAMPLE_tolist                                                                                                 \
    EXAMPLE(">>> dt.tensor([[1, 2], [3, 4]]).tolist()\n"                                                               \
            "[[1, 2], [3, 4]]")
#define EXAMPLE_numpy                                                                                                  \
    EXAMPLE(">>> dt.tensor([1.0, 2.0]).numpy()\n"                                                                      \
            "array([1., 2.], dtype=float32)")
#define EXAMPLE_is_pinned                                                                                              \
    EXAMPLE(">>> dt.zeros(2).is_pinned()\n"                                                                            \
            "False")
#define EXAMPLE_pin_memory                                                                                             \
    EXAMPLE(">>> dt.zeros(2).pin_memory().is_pinned()  # doctest: +SKIP\n"                                             \
            "True")
#define EXAMPLE_backward                                                                                               \
    EXAMPLE(">>> x = dt.array([1.0, 2.0], requires_grad=True)\n"                                                       \
            ">>> (x * x).sum().backward()\n"                                                                           \
            ">>> x.grad\n"                                                                                             \
            "DeviceArray([2., 4.], device='cpu', dtype=float32)")
#define EXAMPLE_requires_grad_                                                                                         \
    EXAMPLE(">>> dt.zeros(2).requires_grad_().requires_grad\n"                                                         \
            "True")
#define EXAMPLE_detach_                                                                                                \
    EXAMPLE(">>> y = dt.ones(2, requires_grad=True) * 2\n"                                                             \
            ">>> y.detach_().requires_grad\n"                                                                          \
            "False")
#define EXAMPLE_retain_grad                                                                                            \
    EXAMPLE(">>> y = dt.ones(2, requires_grad=True) * 2\n"                                                             \
            ">>> y.retain_grad()\n"                                                                                    \
            ">>> y.sum().backward()\n"                                                                                 \
            ">>> y.grad\n"                                                                                             \
            "DeviceArray([1., 1.], device='cpu', dtype=float32)")
#define EXAMPLE_is_grad_enabled                                                                                        \
    EXAMPLE(">>> with dt.no_grad():\n"                                                                                 \
            "...     print(dt.is_grad_enabled())\n"                                                                    \
            "False")
#define EXAMPLE_from_cuda_array_interface                                                                              \
    EXAMPLE(">>> dt.from_cuda_array_interface(cupy.arange(3))  # doctest: +SKIP\n"                                     \
            "DeviceArray([0, 1, 2], device='cuda:0', dtype=int64)")
#define EXAMPLE_set_printoptions                                                                                       \
    EXAMPLE(">>> dt.set_printoptions(precision=2)\n"                                                                   \
            ">>> dt.tensor([1 / 3])\n"                                                                                 \
            "DeviceArray([0.33], device='cpu', dtype=float32)\n"                                                       \
            ">>> dt.set_printoptions(profile=\"default\")")
#define EXAMPLE_get_printoptions                                                                                       \
    EXAMPLE(">>> dt.get_printoptions()[\"precision\"]\n"                                                               \
            "4")

/* ---------------------------------------------------------------- types */

#define EXAMPLE_device                                                                                                 \
    EXAMPLE(">>> dt.device(\"cuda\", 1) == \"cuda:1\"\n"                                                               \
            "True")
#define EXAMPLE_Size                                                                                                   \
    EXAMPLE(">>> dt.Size([2, 3]).numel(), dt.ones(2, 3).shape[1:], type(dt.ones(2).shape)\n"                           \
            "(6, (3,), <class 'devtensor.Size'>)")
#define EXAMPLE_Generator                                                                                              \
    EXAMPLE(">>> generator = dt.Generator().manual_seed(1)\n"                                                          \
            ">>> dt.randn(2, generator=generator).shape\n"                                                             \
            "(2,)")
#define EXAMPLE_Stream                                                                                                 \
    EXAMPLE(">>> s = dt.cuda.Stream(\"cuda:0\")\n"                                                                     \
            ">>> s.synchronize()")
#define EXAMPLE_Event                                                                                                  \
    EXAMPLE(">>> start, end = dt.cuda.Event(enable_timing=True), dt.cuda.Event(enable_timing=True)\n"                  \
            ">>> start.record()\n"                                                                                     \
            ">>> y = dt.ones(1000, device=\"cuda\") + 1\n"                                                             \
            ">>> end.record()\n"                                                                                       \
            ">>> end.synchronize()\n"                                                                                  \
            ">>> start.elapsed_time(end) >= 0\n"                                                                       \
            "True")
#define EXAMPLE_Parameter                                                                                              \
    EXAMPLE(">>> nn.Parameter(dt.zeros(2))\n"                                                                          \
            "Parameter([0., 0.], device='cpu', dtype=float32, requires_grad=True)")
#define EXAMPLE_Buffer                                                                                                 \
    EXAMPLE(">>> nn.Buffer(dt.zeros(2))\n"                                                                             \
            "Buffer([0., 0.], device='cpu', dtype=float32)")
#define EXAMPLE_DeviceArray                                                                                            \
    EXAMPLE(">>> x = dt.zeros(2, 3)\n"                                                                                 \
            ">>> x.shape, x.dtype, x.device\n"                                                                         \
            "((2, 3), devtensor.float32, device(type='cpu'))")

#endif
