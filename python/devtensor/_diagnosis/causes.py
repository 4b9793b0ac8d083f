"""Why each kind of error happens and what puts it right: what explain() adds, and docs/errors.md."""

from __future__ import annotations

CAUSES = {
    "device-mismatch": (
        "Arrays on different devices met in one op. devtensor never moves an array by itself, not even one of 0 "
        "dimensions, because a hidden copy is what makes code slow. Move the odd one once, where it is made or where "
        "the batch comes in, with .to(device); create it there directly with device=."
    ),
    "dtype-mismatch": (
        "The op takes arrays of one dtype. float64 usually comes from NumPy, whose default it is: cast when the data "
        "comes in, from_numpy(a).to(device, float32), which also halves the bytes of the copy. In place the left side "
        "keeps its dtype, and out= must have that of the result."
    ),
    "dtype-not-supported": (
        "The op does not exist for this dtype, on any device. Products, convolutions and most functions of analysis "
        "take floats: cast with .float()."
    ),
    "dtype-of-index": (
        "Places are counted by int64 or int32, and chosen by masks of bool. .long() makes integers of floats that are "
        "whole; a comparison such as x > 0 makes a mask."
    ),
    "shape-mismatch": (
        "The sizes do not go together. linear takes weight as (out, in); conv2d takes images as (N, C, H, W) and "
        "weight as (K, C / groups, R, S); elementwise ops align shapes at the last dimension, where sizes are equal or "
        "1."
    ),
    "rank-mismatch": (
        "An array has another number of dimensions than the op takes. unsqueeze adds a dimension of size 1, such as a "
        "missing batch; reshape and flatten join some."
    ),
    "host-access": (
        "NumPy, or another reader of host memory, was given an array on a CUDA device. .cpu() copies it to the host; "
        "devtensor does not do that unasked."
    ),
    "numpy-operand": (
        "A NumPy array and a DeviceArray met in one operator. from_numpy makes a DeviceArray that shares the memory; "
        ".cpu().numpy() goes the other way."
    ),
    "transfer-forbidden": (
        "A copy between devices was asked for inside of `with forbid_transfers():`. .item(), .tolist(), float(), an if "
        "on an array and .cpu() are such copies, as .to(device) is: each makes the host wait. Move data before the "
        "block and read results after it, or name the place with allow=. Nothing had moved when this was raised."
    ),
    "kernel-argument": (
        "A kernel of yours was called with what its declaration does not take: another number of arguments, a number "
        "where an array is due, one that does not fit its C type, or a launch that the device cannot make. Nothing was "
        "sent."
    ),
    "kernel-compile": (
        "The compiler refuses the source of a kernel. error.log is all that it said; docs/raw-kernel.md lists what a "
        "simulated GPU can run."
    ),
    "stream-race": (
        "Work on two streams, or of a stream and the host, uses the same memory, one of them writes, and nothing says "
        "which comes first: the result may differ from run to run. Only simulated devices can tell, where they are "
        'asked to (races="strict", races=True or DEVTENSOR_SIM_RACES). stream.wait_stream(other) lets what is sent to '
        "stream from now on wait for all that other was sent; docs/races.md has the rules. The call that raised was "
        "not made."
    ),
    "not-contiguous": (
        "A kernel is given the address of an array and nothing about its strides, so the elements must lie one after "
        "the other. .contiguous() makes such a copy; a kernel that writes must be given the copy itself."
    ),
    "read-only": "The array shares memory that may not be written. .clone() makes a copy that can.",
    "overlapping-write": (
        "Several elements of the array share one address, as those of an expanded dimension do. .clone() gives each "
        "its own."
    ),
    "view-needs-copy": "A view cannot have this shape without a copy. .reshape() copies where it must.",
    "empty-reduction": (
        "There is no largest or smallest of no elements. Test .numel() first, or reduce another dimension."
    ),
    "index-out-of-range": (
        "There is no such element: indices go from 0 to the size of the dimension less one, or from -1 backwards. The "
        "size is that of the array at that moment, which the notes show with the line that made it."
    ),
    "dimension-out-of-range": (
        "The array has fewer dimensions than dim asks for: they count from 0, or from -1 backwards. keepdim=True keeps "
        "a dimension of size 1 where a reduction would remove it; unsqueeze adds one."
    ),
    "invalid-index": (
        "An index has a type or a number of entries that indexing does not take. x[i, j] needs two dimensions at least."
    ),
    "invalid-argument": (
        "A parameter was given something that the op does not take there; the table shows what, under the name that "
        "the caller gave it. An array where a number is wanted needs .item(), which waits for a device."
    ),
    "ambiguous-bool": (
        "An array of several elements is neither true nor false. (x > 0).all() or .any() says what is meant; between "
        "arrays stand & and | in the place of `and` and `or`, and (a < x) & (x < b) in that of a < x < b."
    ),
    "not-a-scalar": "Only an array of one element becomes a Python number: reduce it first, with .mean() or .sum().",
    "not-a-sequence": "An array of 0 dimensions has no length and no entries: .item() is its number.",
    "device-not-available": (
        "There is no such device here. `python -m devtensor` shows what was looked for and found; "
        "DEVTENSOR_CUDA=sim:2 simulates two devices on any machine."
    ),
    "grad-moved": (
        "An op was recorded with an operand that is on another device now, so its gradient has nowhere to go. "
        "model.to(device) between the forward pass and backward() does that."
    ),
    "grad-missing": (
        "Ops were not recorded between the leaves and this array: nothing wanted a gradient, or detach(), no_grad, a "
        "Python number (.item(), float()) or an integer op stands in between."
    ),
    "grad-not-scalar": (
        "backward() begins with the gradient of one number, which is 1. For an array of several, reduce it first, or "
        "give its gradient."
    ),
    "grad-freed": (
        "backward() gives back what the graph kept for it. A second call needs retain_graph=True at the first, or a "
        "new forward pass; a state that goes on to the next step needs .detach()."
    ),
    "grad-modified": (
        "An op kept this array for its gradient, and it was written to before backward(). Write to a copy (clone), or "
        "use the op that makes a new array."
    ),
    "grad-leaf-in-place": (
        "A leaf that wants a gradient would become the result of an op. An update of parameters belongs in `with "
        "no_grad():`, or to an optimizer."
    ),
    "grad-leaf-view-in-place": (
        "A view of a leaf that wants a gradient was written to. An update of parameters belongs in `with no_grad():`."
    ),
    "grad-view-in-place": (
        "Nothing was recorded when this view was made, so nobody can say what its source becomes. Make the view where "
        "gradients are on, or write to a copy (clone)."
    ),
    "grad-shared": (
        "The write would have to be recorded, and other arrays see the memory in a way that cannot be followed: views "
        "of a detached array, or views of another dtype. Write to a copy (clone)."
    ),
    "grad-out": ("An op that writes to out= is not recorded. Use its result, or no_grad."),
    "grad-flag": (
        "Only leaves have a flag to set: the result of a recorded op wants a gradient because an operand does. "
        ".detach() gives one that does not."
    ),
    "grad-dtype": ("A gradient is a float. .float() makes an array that can have one."),
    "grad-assign": ("What is given as a gradient has the shape, the dtype and the device of its array."),
    "grad-host-access": (
        "NumPy would see numbers whose history it does not know. .detach() leaves the history, and says so."
    ),
    "grad-function": (
        "backward of a Function gives one gradient for each argument of forward, None for what is no array. Each has "
        "the shape, the dtype and the device of its argument; more dimensions are summed."
    ),
    "grad-nan": (
        "A block of detect_anomaly() found the first NaN here. The line named is that of the op in the forward pass: "
        "its operand has a value at which the slope is infinite, or was NaN before."
    ),
    "grad-checkpoint": (
        "backward() calls a function of checkpoint() a second time, and it must do the same as the first time: no "
        "counters, no branches on what changes between the calls."
    ),
    "selected-out-of-range": (
        "An op was asked for more elements of a dimension than it has. Take fewer, min(k, x.shape[dim]), or another "
        "dimension with dim=."
    ),
    "grad-unused": (
        "An array that gradients are asked for does not lead to the outputs. allow_unused=True gives None for it."
    ),
}
