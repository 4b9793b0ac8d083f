"""Why each kind of error happens and what puts it right: what explain() adds, and docs/errors.md."""

from __future__ import annotations

CAUSES = {
    "device-mismatch": (
        "An op got arrays on different devices. devtensor never moves an array by itself, not even one of 0 "
        "dimensions, because hidden copies make code slow. Move the odd one once, where it is made or where the batch "
        "comes in, with .to(device). Or create it on the right device with device=."
    ),
    "dtype-mismatch": (
        "The op takes arrays of one dtype. float64 usually comes from NumPy, where it is the default. Cast when the "
        "data comes in: from_numpy(a).to(device, float32) also halves the bytes of the copy. An in-place op keeps the "
        "dtype of its left side, and out= must have the dtype of the result."
    ),
    "dtype-not-supported": (
        "The op does not support this dtype, on any device. Products, convolutions and most mathematical functions "
        "take floats: cast with .float()."
    ),
    "dtype-of-index": (
        "Index with int32 or int64 arrays, or with a bool mask. .long() converts floats that are whole numbers; a "
        "comparison such as x > 0 makes a mask."
    ),
    "shape-mismatch": (
        "The sizes do not fit together. linear takes weight as (out, in). conv2d takes images as (N, C, H, W) and "
        "weight as (K, C / groups, R, S). Elementwise ops align shapes at the last dimension; sizes there must be "
        "equal, or one of them 1."
    ),
    "rank-mismatch": (
        "An array has more or fewer dimensions than the op takes. unsqueeze adds a dimension of size 1, such as a "
        "missing batch. reshape and flatten join dimensions."
    ),
    "host-access": (
        "NumPy, or other code that reads host memory, was given an array on a CUDA device. .cpu() copies the array to "
        "the host; devtensor never does that by itself."
    ),
    "numpy-operand": (
        "An operator got a NumPy array and a DeviceArray. from_numpy makes a DeviceArray that shares the memory of the "
        "NumPy array. .cpu().numpy() goes the other way."
    ),
    "numpy-function": (
        "A function of NumPy was called with a DeviceArray. NumPy would have to copy the array, or compute on the host "
        "what belongs on the device. devtensor has most of these functions under the same name; x.numpy() makes a "
        "NumPy array that shares the memory."
    ),
    "transfer-forbidden": (
        "Code inside `with forbid_transfers():` asked for a copy between devices. .item(), .tolist(), float(), `if` on "
        "an array and .cpu() copy to the host, and .to(device) copies to a device. Move data before the block and read "
        "results after it, or allow one place with allow=. Nothing was moved."
    ),
    "kernel-argument": (
        "A RawKernel was called with arguments that its declaration does not accept: a wrong number of arguments, a "
        "number in place of an array, a value that does not fit its C type, or a launch that the device cannot make. "
        "The kernel was not launched."
    ),
    "kernel-compile": (
        "The compiler rejects the source of the kernel. error.log has everything that it said. A simulated GPU has no "
        "inline PTX, cooperative groups, textures, surfaces, tensor-core fragments, __match_*, __reduce_*, launches "
        "from kernels, managed memory, and no __device__ variables that are not const."
    ),
    "stream-race": (
        "Work on two streams, or of a stream and the host, uses the same memory, one of them writes, and nothing says "
        "which comes first: the result may differ from run to run. Only simulated devices can tell, where they are "
        'asked to (races="strict", races=True or DEVTENSOR_SIM_RACES). stream.wait_stream(other) lets what is sent to '
        "stream from now on wait for all that other was sent; docs/races.md has the rules. The call that raised was "
        "not made."
    ),
    "not-contiguous": (
        "A kernel gets the address of an array and does not know its strides, so the elements must lie one after the "
        "other. .contiguous() makes such a copy. If the kernel writes to the array, keep the copy: it has the results."
    ),
    "read-only": "The array shares memory that must not be written to. .clone() makes a copy that you can write to.",
    "overlapping-write": (
        "Several elements of the array share one address, as in an expanded dimension. .clone() gives each element its "
        "own."
    ),
    "view-needs-copy": (
        "A view of this shape, or of this dtype, is impossible without a copy. .reshape() copies where it must; before "
        "view(dtype), .contiguous() makes a copy whose elements lie side by side."
    ),
    "empty-reduction": (
        "An empty array has no largest or smallest element. Check .numel() first, or reduce another dimension."
    ),
    "index-out-of-range": (
        "There is no such element. Indices go from 0 to the size of the dimension minus 1, or from -1 backwards. The "
        "notes show the size that the array had at that moment, and the line that made it."
    ),
    "dimension-out-of-range": (
        "The array has fewer dimensions than dim asks for. Dimensions count from 0, or from -1 backwards. A reduction "
        "removes its dimension unless keepdim=True is given; unsqueeze adds a dimension."
    ),
    "invalid-index": (
        "The index has a type that indexing does not take, or too many entries: x[i, j] needs at least two dimensions."
    ),
    "invalid-argument": (
        "A parameter got a value that the op does not take. The table shows the value under the parameter's name. "
        "Where a number is wanted and you have an array, use .item(), which waits for the device."
    ),
    "ambiguous-bool": (
        "An array of several elements is neither true nor false. Say what you mean with (x > 0).all() or .any(). "
        "Between arrays, write & and | instead of `and` and `or`, and (a < x) & (x < b) instead of a < x < b."
    ),
    "not-a-scalar": "Only an array of one element converts to a number. Reduce it first, with .mean() or .sum().",
    "not-a-sequence": "An array of 0 dimensions has no length and no entries. .item() returns its number.",
    "device-not-available": (
        "This machine has no such device. `python -m devtensor` shows what was looked for and what was found. "
        "DEVTENSOR_CUDA=sim:2 simulates two devices on any machine."
    ),
    "not-probabilities": (
        "binary_cross_entropy takes probabilities, which sigmoid() makes of the scores of a model. "
        "binary_cross_entropy_with_logits takes the scores themselves and is exact for large ones too. On a GPU the "
        "next call that waits for the device raises this."
    ),
    "grad-moved": (
        "An op was recorded with an operand that is now on another device or has another dtype, so its gradient does "
        "not fit. Calling model.to(...) between the forward pass and backward() does that."
    ),
    "grad-missing": (
        "No ops were recorded between the leaves and this array. Either no array needed a gradient, or detach(), "
        "no_grad, a Python number (.item(), float()) or an integer op cut the graph."
    ),
    "grad-not-scalar": (
        "backward() starts from a single number. Reduce an array of several first, with .sum() or .mean(), or pass its "
        "gradient."
    ),
    "grad-freed": (
        "backward() frees what the graph kept. For a second call, pass retain_graph=True to the first one, or run the "
        "forward pass again. If a state goes on to the next step, detach it with .detach()."
    ),
    "grad-modified": (
        "An op kept this array for its gradient, and it was written to before backward(). Write to a copy (clone), or "
        "use the op that makes a new array."
    ),
    "grad-leaf-in-place": (
        "An in-place op would turn a leaf that requires a gradient into the result of an op. Update parameters inside "
        "`with no_grad():`, or with an optimizer."
    ),
    "grad-leaf-view-in-place": (
        "A view of a leaf that requires a gradient was written to. Update parameters inside `with no_grad():`."
    ),
    "grad-view-in-place": (
        "This view was made while gradients were off, so a write through it cannot be recorded. Make the view where "
        "gradients are on, or write to a copy (clone)."
    ),
    "grad-captured": (
        "A function that dt.func or vmap transforms may write only to its arguments and to what it makes itself: the "
        "write would stay when the transform is over, and vmap would make it once for each entry. Give the array as "
        "an argument, or write to a copy (clone)."
    ),
    "grad-transform": (
        "dt.func and vmap call a function for its result. backward() inside of it would add to the .grad of arrays "
        "from outside. Take gradients there with dt.func.grad, dt.func.vjp or dt.autograd.grad."
    ),
    "grad-shared": (
        "The write must be recorded, but other arrays share the memory in a way that cannot be followed: views of a "
        "detached array, or views of another dtype. Write to a copy (clone)."
    ),
    "grad-out": ("Ops that write to out= are not recorded. Use the result of the op instead, or no_grad."),
    "grad-flag": (
        "Only leaves let you set requires_grad. The result of a recorded op requires a gradient because an operand "
        "does. .detach() returns an array that does not."
    ),
    "grad-dtype": ("Only float arrays have gradients. .float() makes one."),
    "grad-assign": ("A gradient must have the shape, the dtype and the device of its array."),
    "grad-host-access": (
        "NumPy cannot record what happens to an array that requires a gradient. .detach() returns an array without "
        "the history, and says so in your code."
    ),
    "grad-function": (
        "backward of a Function returns one gradient for each argument of forward, and None for arguments that are no "
        "arrays. Each gradient has the shape, the dtype and the device of its argument; extra dimensions are summed."
    ),
    "grad-nan": (
        "detect_anomaly() found the first NaN here. The line is that of the op in the forward pass. Its operand has a "
        "value where the slope is infinite, or it was NaN already."
    ),
    "grad-checkpoint": (
        "backward() calls a function of checkpoint() a second time, and it must do the same as the first time: no "
        "counters, and no branches on something that changes between the calls."
    ),
    "selected-out-of-range": (
        "The op was asked for more elements than the dimension has. Take fewer, min(k, x.shape[dim]), or choose "
        "another dimension with dim=."
    ),
    "grad-unused": (
        "A gradient was asked for an array that the outputs do not depend on. allow_unused=True gives None for it."
    ),
}


def see(code: str | None, library: str = "devtensor") -> list[str]:
    """The last note of an error of devtensor's own: the command that shows more about its code."""
    return [f"See: python -m devtensor explain {code}"] if code in CAUSES and library == "devtensor" else []
