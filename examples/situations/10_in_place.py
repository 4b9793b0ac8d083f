"""10. mat1 += mat2 stays where mat1 is, or refuses.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
mat1 = dt.ones(2, 3, device=device)
mat2 = dt.full((2, 3), 0.5)

# The mistake: a running sum on the GPU, and a term of it on the cpu. It is refused before anything changes.
try:
    mat1 += mat2
except dt.DeviceMismatchError:
    traceback.print_exc(limit=0)
    print(f"mat1 is what it was: {mat1.tolist()}")
else:
    print("no GPU here, so nothing can be on the wrong device")

# A dtype that the left side cannot hold is refused too, on every device: in place, the left side stays what it is.
counts = dt.zeros(3, dtype=dt.int64, device=device)
try:
    counts += 0.5
except dt.DTypeMismatchError as error:
    print(error)
print(f"counts is what it was: {counts.tolist()}")

# The correction. The sum goes into the memory of mat1: whoever looks at that memory sees it.
mat1 = dt.ones(2, 3, device=device)
row, place = mat1[0], mat1.data_ptr()
mat1 += mat2.to(device)
print(f"same memory: {mat1.data_ptr() == place}, on {mat1.device.type}, seen through a view: {row.tolist()}")
