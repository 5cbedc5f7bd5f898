"""Several GPUs in one process."""

import numpy as np
import pytest
from tinygrad import Tensor, TinyJit

DEVICES = tuple(f"NV:{i}" for i in range(3))


def test_each_device_computes():
  for device in DEVICES:
    assert (Tensor([1, 2, 3], device=device) + 1).tolist() == [2, 3, 4]


def test_copies_between_devices():
  a = np.arange(5000, dtype=np.float32)
  t = Tensor(a, device=DEVICES[0])
  for device in (*DEVICES[1:], DEVICES[0]): t = (t.to(device) + 1).realize()
  np.testing.assert_array_equal(t.numpy(), a + 3)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_shards_add_up(axis):
  a = np.random.default_rng(0).standard_normal((6, 9)).astype(np.float32)
  t = Tensor(a).shard(DEVICES, axis=axis).realize()
  np.testing.assert_allclose((t * 2).sum(0).numpy(), (a * 2).sum(0), rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose((t @ t.T).numpy() if axis is None else (t * t).sum().numpy(),
                             a @ a.T if axis is None else (a * a).sum(), rtol=1e-4, atol=1e-4)


def test_a_replayed_graph_over_devices():
  @TinyJit
  def step(t): return (t.to(DEVICES[1]) * 2).to(DEVICES[2]).add(1).realize()
  for i in range(5):
    assert step(Tensor([i, i + 1.0], device=DEVICES[0]).realize()).tolist() == [2 * i + 1, 2 * i + 3]
