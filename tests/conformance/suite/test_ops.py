"""Operators of tinygrad's tensor class over types and shapes, against numpy."""

import numpy as np
import pytest
from tinygrad import Tensor, dtypes

FLOATS = {dtypes.half: (np.float16, 2e-3), dtypes.float: (np.float32, 1e-5), dtypes.double: (np.float64, 1e-12)}
INTEGERS = {dtypes.int8: np.int8, dtypes.uint8: np.uint8, dtypes.int16: np.int16, dtypes.uint16: np.uint16,
            dtypes.int32: np.int32, dtypes.uint32: np.uint32, dtypes.int64: np.int64, dtypes.uint64: np.uint64}
SHAPES = [(1,), (7,), (33, 65), (3, 4, 5)]


def floats(shape, kind, low=-3.0, high=3.0, seed=0):
  return np.random.default_rng(seed).uniform(low, high, shape).astype(kind)


def integers(shape, kind, seed=0):
  limits = np.iinfo(kind)
  return np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)


def close(tensor, expected, tolerance):
  result = tensor.numpy()
  assert result.shape == expected.shape
  np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance)


UNARY = {
  "neg": (lambda t: -t, lambda a: -a, -3, 3), "abs": (Tensor.abs, np.abs, -3, 3), "exp": (Tensor.exp, np.exp, -3, 3),
  "exp2": (Tensor.exp2, np.exp2, -3, 3), "log": (Tensor.log, np.log, 0.1, 9), "log2": (Tensor.log2, np.log2, 0.1, 9),
  "sqrt": (Tensor.sqrt, np.sqrt, 0, 9), "rsqrt": (Tensor.rsqrt, lambda a: 1 / np.sqrt(a), 0.1, 9),
  "sin": (Tensor.sin, np.sin, -9, 9), "cos": (Tensor.cos, np.cos, -9, 9), "tanh": (Tensor.tanh, np.tanh, -3, 3),
  "sigmoid": (Tensor.sigmoid, lambda a: 1 / (1 + np.exp(-a)), -3, 3), "relu": (Tensor.relu, lambda a: np.maximum(a, 0), -3, 3),
  "reciprocal": (Tensor.reciprocal, lambda a: 1 / a, 0.2, 5), "floor": (Tensor.floor, np.floor, -9, 9),
  "ceil": (Tensor.ceil, np.ceil, -9, 9), "trunc": (Tensor.trunc, np.trunc, -9, 9), "square": (Tensor.square, np.square, -3, 3),
}


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, kind):
  function, reference, low, high = UNARY[name]
  numpy_kind, tolerance = FLOATS[kind]
  for shape in SHAPES:
    a = floats(shape, numpy_kind, low, high)
    close(function(Tensor(a)), reference(a.astype(np.float64)), max(tolerance, 1e-7) * (8 if kind == dtypes.half else 1))


BINARY = {"add": (lambda a, b: a + b), "sub": (lambda a, b: a - b), "mul": (lambda a, b: a * b)}


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("name", [*BINARY, "div", "maximum", "minimum", "pow"])
def test_binary_float(name, kind):
  numpy_kind, tolerance = FLOATS[kind]
  for shape in SHAPES:
    a, b = floats(shape, numpy_kind, 0.2, 3, 1), floats(shape, numpy_kind, 0.2, 3, 2)
    function, reference = {
      "div": (lambda x, y: x / y, np.divide), "maximum": (Tensor.maximum, np.maximum), "minimum": (Tensor.minimum, np.minimum),
      "pow": (lambda x, y: x ** y, np.power)}.get(name, (BINARY.get(name), BINARY.get(name)))
    close(function(Tensor(a), Tensor(b)), reference(a.astype(np.float64), b.astype(np.float64)), tolerance * 4)


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("name", [*BINARY, "and", "or", "xor", "maximum", "idiv", "mod"])
def test_binary_integer(name, kind):
  numpy_kind = INTEGERS[kind]
  a, b = integers((33, 65), numpy_kind, 1), integers((33, 65), numpy_kind, 2)
  with np.errstate(all="ignore"):
    if name in ("idiv", "mod"):
      b[b == 0] = 1
      # Division rounds toward zero as in C; Python's integers are exact.
      pairs = [(int(x), int(y)) for x, y in zip(a.flat, b.flat)]
      exact = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]
      if name == "mod": exact = [x - x // y * y for x, y in pairs]
      expected = np.array([value & (2 ** (8 * numpy_kind().itemsize) - 1) for value in exact], dtype=np.uint64)
      expected = expected.astype(f"u{numpy_kind().itemsize}").view(numpy_kind).reshape(a.shape)
      result = Tensor(a).div(Tensor(b), rounding_mode="trunc") if name == "idiv" else Tensor(a) % Tensor(b)
    else:
      function = {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}.get(name, BINARY.get(name))
      expected = np.maximum(a, b) if name == "maximum" else function(a, b)
      result = Tensor(a).maximum(Tensor(b)) if name == "maximum" else function(Tensor(a), Tensor(b))
  np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS], ids=str)
def test_comparison(kind):
  make = integers if kind in INTEGERS else floats
  numpy_kind = INTEGERS[kind] if kind in INTEGERS else FLOATS[kind][0]
  a, b = make((33, 65), numpy_kind, seed=1), make((33, 65), numpy_kind, seed=2)
  b[::2] = a[::2]
  for function in (lambda x, y: x < y, lambda x, y: x <= y, lambda x, y: x == y, lambda x, y: x != y, lambda x, y: x > y):
    np.testing.assert_array_equal(function(Tensor(a), Tensor(b)).numpy(), function(a, b))


@pytest.mark.parametrize("to", [*INTEGERS, *FLOATS, dtypes.bool, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("source", [dtypes.int8, dtypes.int32, dtypes.int64, dtypes.uint8, *FLOATS], ids=str)
def test_cast(source, to):
  kind = INTEGERS.get(source) or FLOATS[source][0]
  # Values that every type holds.
  a = np.arange(0, 100).astype(kind)
  result = Tensor(a).cast(to).float().numpy()
  np.testing.assert_array_equal(result, (a != 0).astype(np.float32) if to == dtypes.bool else a.astype(np.float32))


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "prod", "std"])
def test_reduction(name, kind):
  numpy_kind, tolerance = FLOATS[kind]
  for shape, axis in [((1,), 0), ((1000,), 0), ((33, 65), 0), ((33, 65), 1), ((8, 9, 10), (0, 2))]:
    a = floats(shape, numpy_kind, 0.9, 1.1)
    if name == "std" and np.prod([shape[i] for i in np.atleast_1d(axis)]) < 2: continue
    reference = {"std": lambda x, axis: x.std(axis=axis, ddof=1)}.get(name) or (lambda x, axis: getattr(x, name)(axis=axis))
    # Half sums are kept in float and rounded once.
    close(getattr(Tensor(a), name)(axis), np.asarray(reference(a.astype(np.float64), axis)), tolerance * 8)


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(1, 1, 1), (16, 16, 16), (64, 64, 64), (33, 65, 17), (128, 256, 64)], ids=str)
def test_matmul(shape, kind):
  n, k, m = shape
  numpy_kind, tolerance = FLOATS[kind]
  a, b = floats((n, k), numpy_kind, -1, 1, 1), floats((k, m), numpy_kind, -1, 1, 2)
  close(Tensor(a) @ Tensor(b), a.astype(np.float64) @ b.astype(np.float64), tolerance * 20)


@pytest.mark.parametrize("kind", [dtypes.half, dtypes.bfloat16], ids=str)
def test_tensor_cores(kind):
  a, b = floats((128, 128), np.float32, -1, 1, 1), floats((128, 128), np.float32, -1, 1, 2)
  # Realized: two casts in a row may be taken for one.
  x, y = Tensor(a).cast(kind).realize(), Tensor(b).cast(kind).realize()
  expected = x.float().numpy().astype(np.float64) @ y.float().numpy().astype(np.float64)
  close(x.matmul(y, dtype=dtypes.float), expected, 1e-4)


@pytest.mark.parametrize("kind", [dtypes.fp8e4m3, dtypes.fp8e5m2], ids=str)
def test_fp8(kind):
  a = np.array([0, 1, -1, 0.5, 1.5, 2, -4, 16, 0.25, 448], dtype=np.float32)
  np.testing.assert_array_equal(Tensor(a[:9]).cast(kind).float().numpy(), a[:9])


def test_softmax_and_norm():
  a = floats((17, 129), np.float32)
  e = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
  close(Tensor(a).softmax(), e / e.sum(1, keepdims=True), 1e-5)
  close(Tensor(a).layernorm(), (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5), 1e-4)


def test_convolution():
  a, w = floats((2, 3, 9, 9), np.float32, seed=1), floats((4, 3, 3, 3), np.float32, seed=2)
  windows = np.lib.stride_tricks.sliding_window_view(a.astype(np.float64), (3, 3), axis=(2, 3))
  close(Tensor(a).conv2d(Tensor(w)), np.einsum("bchwij,ocij->bohw", windows, w.astype(np.float64)), 1e-4)
  close(Tensor(a).max_pool2d((3, 3), stride=1), windows.max(axis=(4, 5)), 1e-6)


def test_movement():
  a = floats((6, 7, 8), np.float32)
  t = Tensor(a)
  for result, expected in [(t.permute(2, 0, 1), a.transpose(2, 0, 1)), (t.reshape(42, 8), a.reshape(42, 8)), (t.flip(1), a[:, ::-1]),
                           (t[1:5, ::2, -3:], a[1:5, ::2, -3:]), (t.pad(((1, 2), (0, 0), (3, 0))), np.pad(a, ((1, 2), (0, 0), (3, 0)))),
                           (Tensor.cat(t, t, dim=1), np.concatenate([a, a], 1)), (t[Tensor([5, 0, 3])], a[[5, 0, 3]]),
                           (t.repeat(2, 1, 3), np.tile(a, (2, 1, 3))), (t.cumsum(1), a.cumsum(1, dtype=np.float64))]:
    close(result.contiguous(), expected, 1e-5)


def test_order():
  a = floats((257,), np.float32)
  np.testing.assert_array_equal(Tensor(a).argmax().numpy(), a.argmax())
  np.testing.assert_array_equal(Tensor(a).sort()[0].numpy(), np.sort(a))
  np.testing.assert_array_equal(Tensor(a).topk(5)[1].numpy(), np.argsort(-a)[:5])
  np.testing.assert_array_equal((Tensor(a) > 0).where(Tensor(a), 0).numpy(), np.where(a > 0, a, 0))


def test_random_numbers_are_those_of_the_processor():
  Tensor.manual_seed(7)
  here = Tensor.rand(1000).numpy()
  Tensor.manual_seed(7)
  there = Tensor.rand(1000, device="CPU").numpy()
  np.testing.assert_array_equal(here, there)
  assert 0.4 < here.mean() < 0.6
