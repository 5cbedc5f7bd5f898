"""Teaches tinygrad's NV backend the classes and the launch descriptor of Hopper, which it lacks.

With it the same programs run on a real H200 and on the simulated one, and tinygrad's own tests can be asked of both. It
changes tinygrad in memory and nothing else: everything but the numbers of the classes and the layout of the descriptor is
the client's own. It also leaves out the request for higher clocks, so that a card stays as it was.

    python3 -c "import hopper; hopper.teach(); …"      with PYTHONPATH=tests/conformance
    python3 -m pytest -p hopper FILE …
"""

import pathlib

HEADER = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "class_headers" / "clcbc0qmd.txt"
VERSION, WORDS = "V04_00", 0x60
# The backend's newest classes before Blackwell, and Hopper's in their place (NVIDIA's class headers).
CLASSES = {"AMPERE_CHANNEL_GPFIFO_A": "HOPPER_CHANNEL_GPFIFO_A", "AMPERE_COMPUTE_B": "HOPPER_COMPUTE_A", "AMPERE_DMA_COPY_B": "HOPPER_DMA_COPY_A"}
# How the backend names a field of the older descriptor, and the newer one's name; None where it is gone.
NAMES = {"REGISTER_COUNT_V": "REGISTER_COUNT", "SM_GLOBAL_CACHING_ENABLE": None,
         "RELEASE0_ENABLE": "RELEASE_ENABLE_0", "RELEASE1_ENABLE": "RELEASE_ENABLE_1", "DEPENDENT_QMD0_ENABLE": "DEPENDENT_QMD_ENABLE_0",
         "DEPENDENT_QMD0_ACTION": "DEPENDENT_QMD_ACTION_0", "DEPENDENT_QMD0_PREFETCH": "DEPENDENT_QMD_PREFETCH_0"}
GRID_CTA = 2


def fields() -> dict[str, tuple[int, int]]:
  """Each field's highest and lowest bit, arrays by NAME_0 to NAME_7."""
  found, version = {}, None
  for line in HEADER.read_text().splitlines():
    match line.split():
      case ["version", name]: version = name
      case ["field", name, high, low, *stride] if version == VERSION:
        high, low = int(high), int(low)
        if not stride: found[name] = (high, low)
        else: found.update({f"{name}_{i}": (high + i * int(stride[1]), low + i * int(stride[1])) for i in range(8)})
  return found


def teach():
  from tinygrad.runtime import ops_nv
  if getattr(ops_nv, "taught_hopper", False): return
  ops_nv.taught_hopper = True
  for headers in {ops_nv.nv_570, ops_nv.nv_580, ops_nv.nv_610}:
    for older, newer in CLASSES.items(): setattr(headers, older, getattr(headers, newer))
  rows = fields()

  class QMD(ops_nv.QMD):
    def __init__(self, dev, view=None, **kwargs):
      self.ver, self.sz, self.pref = 4, WORDS, VERSION
      self.mv = memoryview(bytearray(self.sz * 4)) if view is None else view
      if kwargs: self.write(**{**kwargs, "qmd_major_version": 4, "qmd_type": GRID_CTA} if "qmd_major_version" in kwargs else kwargs)

    def bits(self, name): return rows[NAMES.get(name.upper(), name.upper())]

    def write(self, **kwargs):
      for name, value in kwargs.items():
        if NAMES.get(name.upper(), name) is not None: self._rw_bits(*self.bits(name), value=value)

    def read(self, k, val=0): return self._rw_bits(*self.bits(k))

    def field_offset(self, k): return self.bits(k)[1] // 8

  ops_nv.QMD = QMD
  control = ops_nv.NVKIface.rm_control

  def rm_control(self, obj, cmd, params=None, **kwargs):
    if cmd == ops_nv.nv_gpu.NV2080_CTRL_CMD_PERF_BOOST: return params
    return control(self, obj, cmd, params, **kwargs)

  ops_nv.NVKIface.rm_control = rm_control


def pytest_configure(config): teach()
