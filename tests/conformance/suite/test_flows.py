"""Whole flows: replayed graphs, training, copies."""

import numpy as np
from tinygrad import Context, Tensor, TinyJit, dtypes, nn


def test_a_replayed_graph_takes_new_inputs():
  @TinyJit
  def step(a, b): return ((a @ b).relu() + 1).sum(1).realize()
  for seed in range(6):
    r = np.random.default_rng(seed)
    a, b = r.standard_normal((8, 16)).astype(np.float32), r.standard_normal((16, 8)).astype(np.float32)
    np.testing.assert_allclose(step(Tensor(a), Tensor(b)).numpy(), (np.maximum(a @ b, 0) + 1).sum(1), rtol=1e-4, atol=1e-4)


def test_a_small_network_learns():
  Tensor.manual_seed(1)
  r = np.random.default_rng(1)
  x = r.standard_normal((64, 8)).astype(np.float32)
  y = (x[:, :1] * 2 - x[:, 1:2]).astype(np.float32)
  first, second = nn.Linear(8, 16), nn.Linear(16, 1)
  optimizer = nn.optim.SGD(nn.state.get_parameters([first, second]), lr=0.05)
  losses = []
  for _ in range(24):
    loss = (second(first(Tensor(x)).relu()) - Tensor(y)).square().mean()
    parameters = optimizer.params
    for parameter, gradient in zip(parameters, loss.gradient(*parameters)): parameter.grad = gradient
    losses.append(loss.item())
    # Releases before 0.14 have a class of their own for it.
    with Tensor.train() if hasattr(Tensor, "train") else Context(TRAINING=1): optimizer.step()
  assert losses[-1] < losses[0] / 2, losses


def test_gradients_match_differences():
  a = np.array([0.3, -0.7, 1.2], dtype=np.float64)
  t = Tensor(a, dtype=dtypes.double)
  np.testing.assert_allclose((t.sin() * t.exp()).sum().gradient(t)[0].numpy(), np.exp(a) * (np.sin(a) + np.cos(a)), rtol=1e-6)


def test_large_copies_come_back():
  a = np.random.default_rng(0).integers(0, 255, 9_000_001, dtype=np.uint8)
  np.testing.assert_array_equal(Tensor(a).realize().numpy(), a)
  np.testing.assert_array_equal((Tensor(a).realize() + 1).numpy(), a + 1)


def test_to_the_processor_and_back():
  a = np.arange(1000, dtype=np.float32)
  t = Tensor(a).to("CPU").realize() + 1
  np.testing.assert_array_equal((t.to("NV").realize() * 2).numpy(), (a + 1) * 2)


def test_symbolic_shapes_use_one_kernel():
  from tinygrad import Variable
  a = np.random.default_rng(0).standard_normal((10, 3)).astype(np.float32)
  for n in range(1, 6):
    v = Variable("n", 1, 10).bind(n)
    np.testing.assert_allclose(Tensor(a).shrink(((0, v), (0, 3))).sum(0).numpy(), a[:n].sum(0), rtol=1e-5, atol=1e-5)
