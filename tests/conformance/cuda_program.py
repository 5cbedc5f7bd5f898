"""A program that uses NVIDIA's libcuda and nothing of ours: contexts, memory, modules, streams, events, faults.

    python3 cuda_program.py CUBINS      CUBINS is a folder like fixtures/cubin/sm_89

It prints a line for each part that gave the right result, and ends with 1 at the first that did not. It needs Python alone.
"""

import array, ctypes, pathlib, sys

CUBINS = pathlib.Path(sys.argv[1])
cuda = ctypes.CDLL("libcuda.so.1")
ILLEGAL_ADDRESS = 700
# Calls whose newest form has a suffix.
VERSIONS = {name: name + "_v2" for name in ("cuMemAlloc", "cuMemFree", "cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD", "cuMemcpyHtoDAsync",
            "cuMemcpyDtoHAsync", "cuMemsetD32", "cuMemsetD8", "cuCtxCreate", "cuCtxDestroy", "cuStreamDestroy", "cuEventDestroy",
            "cuModuleGetGlobal", "cuDeviceTotalMem")}


def status(name, *arguments): return getattr(cuda, VERSIONS.get(name, name))(*arguments)


def call(name, *arguments):
  code = status(name, *arguments)
  if code:
    text = ctypes.c_char_p()
    cuda.cuGetErrorName(code, ctypes.byref(text))
    sys.exit(f"{name} -> {code} {(text.value or b'').decode()}")


def check(what, good):
  print(f"{'ok   ' if good else 'WRONG'} {what}", flush=True)
  if not good: sys.exit(1)


def alloc(size):
  address = ctypes.c_uint64()
  call("cuMemAlloc", ctypes.byref(address), ctypes.c_size_t(size))
  return address.value


def upload(kind, values):
  data = array.array(kind, values)
  address = alloc(len(data) * data.itemsize)
  call("cuMemcpyHtoD", ctypes.c_uint64(address), (ctypes.c_char * (len(data) * data.itemsize)).from_buffer(data), ctypes.c_size_t(len(data) * data.itemsize))
  return address


def download(kind, address, count):
  data = array.array(kind, [0] * count)
  call("cuMemcpyDtoH", (ctypes.c_char * (count * data.itemsize)).from_buffer(data), ctypes.c_uint64(address), ctypes.c_size_t(count * data.itemsize))
  return data


def function(cubin, name):
  module, handle = ctypes.c_void_p(), ctypes.c_void_p()
  call("cuModuleLoadData", ctypes.byref(module), (CUBINS / f"{cubin}.cubin").read_bytes())
  call("cuModuleGetFunction", ctypes.byref(handle), module, name.encode())
  return handle


def launch(handle, grid, block, *arguments, shared=0, stream=None):
  pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(ctypes.pointer(a), ctypes.c_void_p) for a in arguments])
  call("cuLaunchKernel", handle, grid, 1, 1, block, 1, 1, shared, stream, pointers, None)


def pointer(address): return ctypes.c_uint64(address)


def number(value): return ctypes.c_uint32(value)


def main():
  call("cuInit", 0)
  device, context = ctypes.c_int(), ctypes.c_void_p()
  call("cuDeviceGet", ctypes.byref(device), 0)
  name, total, major, minor = ctypes.create_string_buffer(100), ctypes.c_size_t(), ctypes.c_int(), ctypes.c_int()
  call("cuDeviceGetName", name, 100, device)
  call("cuDeviceTotalMem", ctypes.byref(total), device)
  for attribute, value in ((75, major), (76, minor)): call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
  check(f"{name.value.decode()}, {total.value >> 20} MiB, sm_{major.value}{minor.value}", CUBINS.name == f"sm_{major.value}{minor.value}")
  call("cuCtxCreate", ctypes.byref(context), 0, device)

  n = 4096
  a, b, c = upload("f", range(n)), upload("f", [0.5] * n), alloc(4 * n)
  add = function("vector_add", "vector_add")
  launch(add, n // 256, 256, pointer(c), pointer(a), pointer(b), number(n))
  call("cuCtxSynchronize")
  check("a kernel", list(download("f", c, n)) == [i + 0.5 for i in range(n)])

  call("cuMemsetD32", pointer(c), number(0x01020304), ctypes.c_size_t(n))
  call("cuMemsetD8", pointer(c), ctypes.c_ubyte(7), ctypes.c_size_t(5))
  words = download("I", c, n)
  check("memory set", list(words[:3]) == [0x07070707, 0x01020307, 0x01020304] and set(words[3:]) == {0x01020304})
  call("cuMemcpyDtoD", pointer(c), pointer(a), ctypes.c_size_t(4 * n))
  check("a copy on the GPU", list(download("f", c, n)) == list(range(n)))
  big = array.array("I", range(3 << 18))
  check("large copies", download("I", upload("I", big), len(big)) == big)

  streams = [ctypes.c_void_p() for _ in range(3)]
  for stream in streams: call("cuStreamCreate", ctypes.byref(stream), 1)
  start, done = ctypes.c_void_p(), ctypes.c_void_p()
  for event in (start, done): call("cuEventCreate", ctypes.byref(event), 0)
  call("cuEventRecord", start, streams[0])
  # Each stream waits for the one before it: 40 additions of 0.5 in a row.
  for turn in range(40):
    stream = streams[turn % 3]
    if turn: call("cuStreamWaitEvent", stream, done, 0)
    launch(add, n // 256, 256, pointer(c), pointer(c), pointer(b), number(n), stream=stream)
    call("cuEventRecord", done, stream)
  call("cuEventSynchronize", done)
  time = ctypes.c_float(-1)
  call("cuEventElapsedTime", ctypes.byref(time), start, done)
  check("three streams that wait for each other", list(download("f", c, n)) == [i + 20.0 for i in range(n)] and time.value >= 0)

  count = 300
  values = upload("I", [i * 2654435761 % 2**32 for i in range(count)])
  local, shared = alloc(4 * count), alloc(4 * 256)
  launch(function("local_array", "recursion"), 2, 160, pointer(local), pointer(values), number(count))
  launch(function("dynamic_shared", "reverse"), 1, 256, pointer(shared), pointer(values), shared=1024)
  call("cuCtxSynchronize")
  check("recursion finishes", len(set(download("I", local, count))) > 1)
  check("dynamic shared memory", list(download("I", shared, 256)) == list(download("I", values, 256))[::-1])

  graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
  call("cuStreamBeginCapture_v2", streams[0], 0)
  for _ in range(5): launch(add, n // 256, 256, pointer(c), pointer(c), pointer(b), number(n), stream=streams[0])
  call("cuStreamEndCapture", streams[0], ctypes.byref(graph))
  call("cuGraphInstantiateWithFlags", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
  for _ in range(3): call("cuGraphLaunch", ready, streams[0])
  call("cuStreamSynchronize", streams[0])
  check("a graph, three times", list(download("f", c, n)) == [i + 27.5 for i in range(n)])

  module, address, size = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t()
  call("cuModuleLoadData", ctypes.byref(module), (CUBINS / "constants.cubin").read_bytes())
  call("cuModuleGetGlobal", ctypes.byref(address), ctypes.byref(size), module, b"visits")
  check("a module's variable", address.value != 0 and size.value == 64)

  launch(add, 1, 256, pointer(0x10), pointer(a), pointer(b), number(n))
  check("an illegal address is said", status("cuCtxSynchronize") == ILLEGAL_ADDRESS)
  check("and the context is lost", status("cuMemAlloc", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(16)) == ILLEGAL_ADDRESS)


main()
