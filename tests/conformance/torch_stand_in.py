"""A pytest plugin for upstream test files that use torch only as a reference.

Where torch is not installed, a stand-in takes the import; helpers that compare with torch run tinygrad's own function a
second time, on its CPU device, and compare with that. A test that really needs torch fails or skips as it will.
"""

import importlib.util, sys
from unittest import mock


class Anything(mock.MagicMock):
  """Takes any use that is only prepared and never looked at."""
  __version__ = "0"


def install():
  if importlib.util.find_spec("torch") is not None: return False
  torch = Anything(name="torch")
  torch.__spec__ = None
  for name in ("torch", "torch.nn", "torch.nn.functional", "torch.optim"): sys.modules[name] = torch
  return True


STANDS_IN = install()


def on_the_processor(module):
  import numpy as np
  from tinygrad import Tensor, dtypes
  from tinygrad.helpers import Context
  from tinygrad.tensor import _to_np_dtype

  def inputs(low, high, shapes, values):
    if shapes is None: arrays = [np.array(value) for value in values]
    else:
      np.random.seed(0)
      arrays = [np.random.uniform(low=low, high=high, size=shape).astype(_to_np_dtype(dtypes.default_float)) for shape in shapes]
    return [a.astype(np.int32) if a.dtype == np.int64 else a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays]

  def helper_test_op(shps, torch_fxn, tinygrad_fxn=None, atol=1e-6, rtol=1e-3, grad_atol=1e-4, grad_rtol=1e-3, forward_only=False,
                     vals=None, low=-2, high=2):
    function = tinygrad_fxn or torch_fxn
    arrays = inputs(low, high, shps, vals)
    result = function(*[Tensor(a) for a in arrays]).numpy()
    with Context(DEV="CPU"): expected = function(*[Tensor(a) for a in arrays]).numpy()
    assert result.shape == expected.shape and result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, atol=atol, rtol=rtol)

  def helper_test_exception(self, shps, torch_fxn, tinygrad_fxn=None, expected=None, forward_only=False, exact=False, vals=None,
                            low=-1.5, high=1.5):
    with self.assertRaises(expected): (tinygrad_fxn or torch_fxn)(*[Tensor(a) for a in inputs(low, high, shps, vals)])

  if hasattr(module, "helper_test_op"): module.helper_test_op = helper_test_op
  if hasattr(module, "TestOps"): module.TestOps.helper_test_exception = helper_test_exception


def pytest_collection_modifyitems(items):
  if not STANDS_IN: return
  for module in {item.module for item in items if getattr(item, "module", None)}: on_the_processor(module)
