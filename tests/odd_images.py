"""Images in every dtype and memory layout, and checks that the tests of all applications share."""

import numpy as np
import pytest

DTYPES = (
    "bool",
    "uint8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "longdouble",
    ">u2",
    ">f8",
)


def of_dtype(image, dtype):
    """A uint8 image converted to another dtype, over much of its range."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return image > 127
    if dtype.kind == "f":
        return (image / 255).astype(dtype)
    return image.astype(dtype) if dtype.itemsize == 1 else (image.astype(np.int64) * 100).astype(dtype)


def layouts(image):
    """The same image in several memory layouts."""
    wide = np.zeros([2 * n for n in image.shape], image.dtype)
    every_second = wide[tuple(np.s_[::2] for _ in image.shape)]
    every_second[...] = image
    read_only = image.copy()
    read_only.flags.writeable = False
    back = tuple(np.s_[::-1] for _ in image.shape)
    return {
        "list": image.tolist() if image.dtype.kind == "i" else image,
        "Fortran order": np.asfortranarray(image),
        "every second": every_second,
        "backwards": image[back].copy()[back],
        "read-only": read_only,
        "byte-swapped": image.astype(image.dtype.newbyteorder()),
    }


def check_result(res):
    """Raise unless energy, bound and labelling of a result agree with its model."""
    assert res.fun == res.mrf.energy(res.x)
    assert not res.lower_bound > res.fun
    assert res.x.shape == res.mrf.shape


def check_options(call):
    """Raise unless `call` passes the keywords of `minimize` on and names unknown ones; its model must have cycles."""
    energies = []

    def stop(res):
        energies.append(res.fun)
        raise StopIteration

    _, res = call(callback=stop, tol=0, full_output=True)
    assert len(energies) == 1 and res.fun <= energies[0]
    assert "callback" in res.message
    _, res = call(time_limit=0, tol=0, full_output=True)
    assert "time" in res.message
    _, res = call(maxiter=1, tol=0, full_output=True)
    assert res.nit <= 1
    _, res = call(method="scan_line", rng=0, full_output=True)
    assert res.method == "scan_line"
    check_result(res)
    x0 = np.zeros(res.mrf.shape, int)
    _, res = call(method="t_icm", x0=x0, maxiter=0, full_output=True)
    np.testing.assert_array_equal(res.x, x0)
    for keywords in ({"lambda_": 3}, {"method": "t_icm", "tol": 0.1}):
        name = list(keywords)[-1]
        with pytest.raises(TypeError, match=f"takes no {name}"):
            call(**keywords)
    with pytest.raises(ValueError, match="method must be one of"):
        call(method="best")


def check_same_seed(call):
    """Raise unless the same seed gives the same answer and the same energy."""
    (first, res), (again, same) = (call(rng=np.random.default_rng(3), full_output=True) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert res.fun == same.fun
    np.testing.assert_array_equal(first, call(rng=3))


def check_raises_in_one_line(call, error, message):
    """Raise unless the call raises this error, in one line."""
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
