"""Every operator of tinygrad's tensor class at least once, against tinygrad's own CPU device."""

import contextlib, inspect

import numpy as np
import pytest
import tinygrad
from tinygrad import Context, Tensor, dtypes

R = np.random.default_rng(3)
# Inputs by name. Shapes are odd so that no dimension fits a block of threads.
INPUTS = {
  "x": R.uniform(-2, 2, (7, 9)), "y": R.uniform(-2, 2, (7, 9)), "positive": R.uniform(0.1, 3, (7, 9)), "unit": R.uniform(-0.95, 0.95, (7, 9)),
  "probability": R.uniform(0.05, 0.95, (7, 9)), "above": R.uniform(1.1, 4, (7, 9)), "square": R.uniform(-1, 1, (5, 5)) + 3 * np.eye(5),
  "column": R.uniform(-2, 2, (9, 4)), "vector": R.uniform(-2, 2, 9), "cube": R.uniform(-2, 2, (3, 4, 5)), "image": R.uniform(-1, 1, (2, 4, 11, 11)),
  "weight": R.uniform(-1, 1, (6, 4, 3, 3)), "back": R.uniform(-1, 1, (4, 6, 3, 3)), "heads": R.uniform(-1, 1, (2, 3, 8, 16)),
}
INTEGERS = {
  "i": R.integers(-50, 50, (7, 9)), "j": R.integers(1, 30, (7, 9)), "bits": R.integers(0, 1 << 20, (7, 9)), "few": R.integers(0, 9, (7, 9)),
  "rows": R.integers(0, 7, (5, 9)), "classes": R.integers(0, 9, 7), "shift": R.integers(0, 7, (7, 9)),
}

# Operators on floating-point tensors. Those of HALF run in half as well.
FLOATING = {name: [(lambda name: lambda x: getattr(x, name)())(name)] for name in """
  abs asinh atan bool ceil clone contiguous contiguous_backward detach cos cosh elu erf exp exp2 flatten float floor gelu
  hardsigmoid hardswish hardtanh isfinite isinf isnan layernorm leaky_relu log_softmax logcumsumexp logical_not logsigmoid
  logsumexp max mean min mish neg normalize quick_gelu relu relu6 round selu sigmoid sign silu sin sinh softmax softmin softplus
  softsign square std std_mean sum swish tan tanh transpose trunc var var_mean argmax argmin any all celu cummax
  cummin cumsum diagonal double half prod realize squeeze tril triu int long short bfloat16 nonzero
  zeros_like ones_like""".split()}
FLOATING |= {
  "cumprod": [lambda x: x.cumprod(1)], "sort": [lambda vector: vector.sort()], "argsort": [lambda vector: vector.argsort()],
  "acos": [lambda unit: unit.acos()], "asin": [lambda unit: unit.asin()], "atanh": [lambda unit: unit.atanh()], "acosh": [lambda above: above.acosh()],
  "log": [lambda positive: positive.log()], "log2": [lambda positive: positive.log2()], "log10": [lambda positive: positive.log10()],
  "sqrt": [lambda positive: positive.sqrt()], "rsqrt": [lambda positive: positive.rsqrt()], "reciprocal": [lambda positive: positive.reciprocal()],
  "add": [lambda x, y: x + y, lambda x, vector: x + vector, lambda x: 2 + x], "sub": [lambda x, y: x - y, lambda x: 1 - x],
  "mul": [lambda x, y: x * y], "div": [lambda x, positive: x / positive], "pow": [lambda positive, y: positive ** y, lambda x: x ** 3, lambda positive: 2 ** positive],
  "fmod": [lambda x, positive: x.fmod(positive)], "maximum": [lambda x, y: x.maximum(y)], "minimum": [lambda x, y: x.minimum(y)],
  "eq": [lambda x: x == x.round()], "ne": [lambda x, y: x != y], "copysign": [lambda x, y: x.copysign(y)], "logaddexp": [lambda x, y: x.logaddexp(y)],
  "where": [lambda x, y: (x > 0).where(x, y)], "lerp": [lambda x, y, probability: x.lerp(y, probability)], "clamp": [lambda x: x.clamp(-1, 1)],
  "clip": [lambda x: x.clip(-1, 0.5)], "isclose": [lambda x, y: x.isclose(x + (y > 0) * 0.5)], "allclose": [lambda x: x.allclose(x)],
  "masked_fill": [lambda x, y: x.masked_fill(y > 0, -1)], "masked_select": [lambda x: x.masked_select(x > 0)],
  "dot": [lambda x, column: x.dot(column)], "matmul": [lambda x, column: x @ column], "linear": [lambda x, column: x.linear(column)],
  "einsum": [lambda x, y: Tensor.einsum("ij,kj->ik", x, y)], "newton_schulz": [lambda x: x.newton_schulz(3, (2.0, -1.5, 0.5))],
  "batchnorm": [lambda image: image.batchnorm(None, None, image.mean((0, 2, 3)), image.var((0, 2, 3)).add(1e-5).rsqrt())],
  "conv2d": [lambda image, weight: image.conv2d(weight, padding=1, stride=2), lambda image, weight: image.conv2d(weight, dilation=2)],
  "conv_transpose2d": [lambda image, back: image.conv_transpose2d(back, stride=2)],
  "avg_pool2d": [lambda image: image.avg_pool2d((3, 3), 2)], "max_pool2d": [lambda image: image.max_pool2d((2, 2))],
  "max_unpool2d": [lambda image: (lambda pooled: pooled[0].max_unpool2d(pooled[1]))(image.max_pool2d((2, 2), return_indices=True))],
  "interpolate": [lambda image: image.interpolate((7, 15), mode="linear"), lambda image: image.interpolate((22, 22), mode="nearest")],
  "scaled_dot_product_attention": [lambda heads: heads.scaled_dot_product_attention(heads, heads, is_causal=True)],
  "binary_crossentropy": [lambda probability, x: probability.binary_crossentropy((x > 0).float())],
  "binary_crossentropy_logits": [lambda y, x: y.binary_crossentropy_logits((x > 0).float())],
  "diag": [lambda vector: vector.diag()], "qr": [lambda square: (lambda q, r: q @ r)(*square[:3, :3].qr())],
  "permute": [lambda cube: cube.permute(2, 0, 1)], "reshape": [lambda cube: cube.reshape(12, 5)], "view": [lambda cube: cube.view(6, 10)],
  "expand": [lambda vector: vector.reshape(1, 9).expand(4, 9)], "flip": [lambda cube: cube.flip(0, 2)], "pad": [lambda x: x.pad(((1, 2), (0, 3)), value=4)],
  "pad_to": [lambda x: x.pad_to(8, 12)], "shrink": [lambda x: x.shrink(((1, 5), (2, 9)))], "shrink_to": [lambda x: x.shrink_to(3, 4)],
  "cat": [lambda x, y: x.cat(y, dim=1)], "stack": [lambda x, y: Tensor.stack(x, y, dim=1)], "chunk": [lambda x: x.chunk(4, 1)[2]],
  "split": [lambda x: x.split([2, 5], 0)[1]], "repeat": [lambda x: x.repeat(2, 3)], "repeat_interleave": [lambda x: x.repeat_interleave(3, 1)],
  "roll": [lambda x: x.roll((2, -3), (0, 1))], "unfold": [lambda x: x.unfold(1, 3, 2)], "unflatten": [lambda cube: cube.unflatten(1, (2, 2))],
  "unsqueeze": [lambda x: x.unsqueeze(1)], "rearrange": [lambda cube: cube.rearrange("a (b c) d -> b (a d) c", b=2)],
  "meshgrid": [lambda vector: Tensor.meshgrid(vector, vector[:3])[0]], "T": [lambda x: x.T], "topk": [lambda x: x.topk(4)],
  "assign": [lambda x, y: x.contiguous().realize().assign(y + 1)], "cast": [lambda x: x.cast(dtypes.int8)],
  "gradient": [lambda x, y: (x.sin() * y).sum().gradient(x, y)], "backward": [lambda x: differentiate(x)],
  "full_like": [lambda x: x.full_like(3)], "const_like": [lambda x: x + x.const_like(2)], "sequential": [lambda x: x.sequential([Tensor.exp, Tensor.sum])],
  "cross_entropy": [lambda x, classes: x.cross_entropy(classes)], "nll_loss": [lambda x, classes: x.log_softmax().nll_loss(classes)],
  "sparse_categorical_crossentropy": [lambda x, classes: x.sparse_categorical_crossentropy(classes)],
  "gather": [lambda x, rows: x.gather(0, rows)], "scatter": [lambda x, y, rows: x.scatter(0, rows[:1], y[:1])],
  "scatter_reduce": [lambda x, y, rows: x.scatter_reduce(0, rows, y[:5], "sum"), lambda x, y, rows: x.scatter_reduce(0, rows, y[:5], "amax")],
}
HALF = """abs exp log sqrt sin gelu softmax layernorm cumsum max mean argmax add mul div pow where clamp dot einsum conv2d avg_pool2d
  scaled_dot_product_attention permute pad flip gather scatter_reduce cat gradient batchnorm isnan cast round""".split()
# Operators on integers.
INTEGRAL = {
  "mod": [lambda i, j: i % j], "bitwise_and": [lambda bits, i: bits & i], "bitwise_or": [lambda bits, i: bits | i], "bitwise_xor": [lambda bits, i: bits ^ i],
  "bitwise_not": [lambda bits: ~bits], "lshift": [lambda few: few << 3], "rshift": [lambda bits: bits >> 2], "one_hot": [lambda classes: classes.one_hot(9)],
  "threefry": [lambda bits: bits.cast(dtypes.uint64).threefry(bits.cast(dtypes.uint64) + 5)], "uprod": [lambda few: few.uprod(0)],
  "usum": [lambda few: few.usum(few, few)], "bitcast": [lambda i: i.bitcast(dtypes.float32).bitcast(dtypes.uint8)],
}
INTEGRAL |= {f"{name} of integers": [function] for name, function in {
  "add": lambda i, j: i + j, "mul": lambda bits, j: bits * j, "div": lambda i, j: i.div(j, rounding_mode="floor"), "sum": lambda i: i.sum(1),
  "max": lambda i: i.max(0), "sort": lambda classes: classes.sort()[0], "cumsum": lambda i: i.cumsum(1), "matmul": lambda i, j: i @ j.T,
  "where": lambda i, j: (i > j).where(i, j), "pow": lambda few: few ** 3, "argmax": lambda i: i.argmax(1), "abs": lambda i: i.abs()}.items()}
# Tensors made from nothing. Random ones are a function of the seed, whatever the device.
MADE = {
  "arange": lambda: Tensor.arange(3, 40, 3), "linspace": lambda: Tensor.linspace(-1, 2, 13), "eye": lambda: Tensor.eye(5, 7), "zeros": lambda: Tensor.zeros(4, 5),
  "ones": lambda: Tensor.ones(3), "full": lambda: Tensor.full((3, 5), 2.5), "rand": lambda: Tensor.rand(33, 5), "randn": lambda: Tensor.randn(33, 5),
  "randint": lambda: Tensor.randint(50, low=-3, high=9), "normal": lambda: Tensor.normal(40, mean=2, std=3), "uniform": lambda: Tensor.uniform(40, low=-2, high=9),
  "scaled_uniform": lambda: Tensor.scaled_uniform(4, 5), "glorot_uniform": lambda: Tensor.glorot_uniform(4, 5), "kaiming_uniform": lambda: Tensor.kaiming_uniform(4, 5),
  "kaiming_normal": lambda: Tensor.kaiming_normal(4, 5), "randperm": lambda: Tensor.randperm(8), "rand_like": lambda: Tensor.ones(5, 4).rand_like(),
  "randn_like": lambda: Tensor.ones(5, 4).randn_like(), "multinomial": lambda: Tensor([0.1, 0.2, 0.7]).multinomial(20, replacement=True),
  "random_bits": lambda: Tensor.rand(17, dtype=dtypes.half), "dropout": lambda: dropped(),
}
# Names that compute nothing by themselves, or that the other files of this suite use throughout.
WITHOUT_COMPUTATION = set("""
  alu as_param call callify const data device dtype element_size empty empty_like from_blob from_url grad invalids is_floating_point
  is_param is_param_ item linear_with_vars manual_seed max_numel max_shape nbytes ndim numel numpy replace schedule_linear shape shard
  shard_ shard_like size to to_ tolist ufix uop custom_kernel""".split())
NOT_FOR_THIS = {"decode_hevc_frame": "video decoding is not simulated", "image_conv2d": "for devices with image types",
                "image_dot": "for devices with image types",
                "svd": "takes minutes in tinygrad's scheduler", "keccak": "likewise", "hash": "likewise"}


@contextlib.contextmanager
def on(device):
  if hasattr(tinygrad.helpers, "DEV"):
    with Context(DEV=device): yield
  else:
    before, tinygrad.Device.DEFAULT = tinygrad.Device.DEFAULT, device
    yield
    tinygrad.Device.DEFAULT = before


def differentiate(x):
  x = x.detach().requires_grad_() if hasattr(x, "requires_grad_") else x.detach()
  (x.exp() * x).sum().backward()
  return x.grad


def dropped():
  if "TRAINING" in inspect.getsource(Tensor.dropout):
    with Context(TRAINING=1): return Tensor.ones(50).dropout(0.3)
  with Tensor.train(): return Tensor.ones(50).dropout(0.3)


def results(made):
  if isinstance(made, (tuple, list)): return [part for each in made for part in results(each)]
  if not isinstance(made, Tensor): return [np.asarray(made)]
  return [(made.float() if made.dtype in (dtypes.half, dtypes.bfloat16) else made).numpy()]


def compare(function, kind, tolerance):
  names = list(inspect.signature(function).parameters)
  outcome = {}
  for device in ("NV", "CPU"):
    with on(device):
      Tensor.manual_seed(11)
      given = [Tensor(INPUTS[name].astype(np.float32), device=device).cast(kind).realize() if name in INPUTS else
               Tensor(INTEGERS[name].astype(np.int32), device=device).realize() for name in names]
      outcome[device] = results(function(*given))
  for here, there in zip(outcome["NV"], outcome["CPU"], strict=True):
    assert here.shape == there.shape and here.dtype == there.dtype
    np.testing.assert_allclose(here.astype(np.float64), there.astype(np.float64), rtol=tolerance, atol=tolerance)


def cases(table): return [pytest.param(function, id=f"{name}-{n}") for name, functions in table.items() for n, function in enumerate(functions)]


@pytest.mark.parametrize("function", cases(FLOATING))
def test_float(function): compare(function, dtypes.float, 2e-5)


@pytest.mark.parametrize("function", cases({name: FLOATING[name][:1] for name in HALF}))
def test_half(function): compare(function, dtypes.half, 2e-2)


@pytest.mark.parametrize("function", cases(INTEGRAL))
def test_integers(function): compare(function, dtypes.float, 0)


@pytest.mark.parametrize("function", MADE.values(), ids=MADE)
def test_made(function): compare(function, dtypes.float, 1e-5)


def test_no_operator_is_forgotten():
  known = {name.split()[0] for table in (FLOATING, INTEGRAL, MADE) for name in table} | WITHOUT_COMPUTATION | set(NOT_FOR_THIS)
  forgotten = {name for name in dir(Tensor) if not name.startswith("_")} - known
  version = tinygrad.__version__ if hasattr(tinygrad, "__version__") else ""
  if forgotten and not version.startswith("0.14"): pytest.skip(f"written for tinygrad 0.14; not in it: {sorted(forgotten)}")
  assert not forgotten
