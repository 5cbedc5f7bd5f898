"""What the conformance scripts share: a Python environment with the packages that clients need, and the tool."""

import dataclasses, importlib.util, os, pathlib, shutil, stat, subprocess, sys, time, xml.etree.ElementTree

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# numpy is what results are compared with; the compilers are those that tinygrad loads.
PACKAGES = ["numpy", "pytest", "pytest-timeout", "hypothesis", "nvidia-cuda-nvrtc", "nvidia-nvjitlink",
            "nvidia-cuda-runtime", "nvidia-cuda-crt"]
# What a table names beside its results.
TOLD = ["tinygrad", "numpy", "nvidia-cuda-nvrtc"]
# The version that pip finds by itself.
NEWEST = "newest"


def target() -> pathlib.Path:
  return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


def folder() -> pathlib.Path:
  path = target() / "conformance"
  path.mkdir(parents=True, exist_ok=True)
  return path


def require():
  """Ends with a plain word where the machine lacks what nobody can install here."""
  missing = []
  if sys.version_info < (3, 11): missing.append(f"Python 3.11 or newer (this is {sys.version.split()[0]})")
  missing += [f"Python's module {name} (Debian and Ubuntu: apt-get install python3-venv)"
              for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
  if "MOCKGPU" not in os.environ and shutil.which("cargo") is None:
    missing.append("cargo, or a built mockgpu named by the variable MOCKGPU")
  if missing: sys.exit("The conformance tests need " + "; ".join(missing) + ".")


def tool() -> pathlib.Path:
  """The mockgpu binary, built if need be."""
  if given := os.environ.get("MOCKGPU"): return pathlib.Path(given).resolve()
  if subprocess.run(["cargo", "build", "--quiet", "--package", "mockgpu"], cwd=REPOSITORY).returncode != 0:
    sys.exit("mockgpu does not build.")
  return target() / "debug" / "mockgpu"


def python(tinygrad: str | None) -> pathlib.Path:
  """Python of an environment with the packages, and with that version of tinygrad if one is named. The variable
  CONFORMANCE_PYTHON names one that has them all, for a machine that reaches no index."""
  if given := os.environ.get("CONFORMANCE_PYTHON"): return pathlib.Path(given)
  place = folder() / f"venv-{tinygrad or 'checkout'}"
  binary = place / "bin" / "python"
  if not binary.exists() and subprocess.run([sys.executable, "-m", "venv", place]).returncode != 0:
    sys.exit(f"No Python environment could be made in {place}.")
  wanted = PACKAGES + (["--upgrade", "tinygrad"] if tinygrad == NEWEST else [f"tinygrad=={tinygrad}"] if tinygrad else [])
  # tinygrad's CPU device calls a program named clang.
  if shutil.which("clang") is None: wanted.append("ziglang")
  if subprocess.run([binary, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]).returncode != 0:
    sys.exit(f"pip could not install {' '.join(wanted)}. It needs an index that it can reach.")
  if shutil.which("clang") is None:
    wrapper = place / "bin" / "clang"
    wrapper.write_text(f'#!/bin/sh\nexec "{binary}" -m ziglang clang "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
  return binary


def version(python: pathlib.Path, package: str) -> str:
  ask = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
  return subprocess.run([python, "-c", ask, package], capture_output=True, text=True).stdout.strip()


def versions(python: pathlib.Path) -> str:
  ask = "import sys, importlib.metadata as m; print(', '.join(f'{d.metadata[\"Name\"]} {d.version}' for d in m.distributions()" \
        " if d.metadata['Name'] in sys.argv[1:]))"
  answer = subprocess.run([python, "-c", ask, *TOLD], capture_output=True, text=True).stdout.strip()
  return f"{answer}; Python {sys.version.split()[0]}; {time.strftime('%Y-%m-%d')}"


@dataclasses.dataclass
class Result:
  """What came of a run of pytest: the outcome of each test, the exit code, what was said, and the seconds that tests took."""
  outcomes: dict[str, str]
  code: int | None
  said: str
  seconds: float

  def count(self, kind: str) -> int: return sum(outcome == kind for outcome in self.outcomes.values())

  def is_good(self) -> bool: return self.code == 0 and self.count("passed") > 0 and self.count("failed") == 0

  def row(self) -> str: return "".join(f"{self.count(kind):>8}" for kind in ("passed", "skipped", "failed")) + f"{self.seconds:>8.0f}"


HEADINGS = f"{'GPUs':>5}{'passed':>8}{'skipped':>8}{'failed':>8}{'seconds':>8}"


def merge(results: list[Result]) -> Result:
  """The results of several runs as one."""
  outcomes = {name: outcome for result in results for name, outcome in result.outcomes.items()}
  code = next((result.code for result in results if result.code != 0), 0)
  return Result(outcomes, code, "".join(result.said for result in results), sum(result.seconds for result in results))


def key(test: str) -> str:
  """The name in a report of what pytest's command line calls `folder/file.py::Class::test`."""
  return test.replace(".py::", ".").replace("/", ".").replace("::", ".")


def variables(python: pathlib.Path) -> dict[str, str]:
  # Workers that tinygrad replaces after 16 compilations each cost more than they save.
  # And tinygrad gives a GPU up after 30 s, which a long kernel takes on a busy machine.
  return {"PARALLEL": "0", "HCQDEV_WAIT_TIMEOUT_MS": "600000", **os.environ, "DEV": "NV", "PATH": f"{python.parent}:{os.environ['PATH']}",
          "VIRTUAL_ENV": str(python.parents[1]), "CACHEDB": str(folder() / "cache.db"), "PYTHONDONTWRITEBYTECODE": "1"}


PYTEST = ["-m", "pytest", "-q", "--timeout", "300", "--tb=short", "-p", "no:cacheprovider"]


def collect(python: pathlib.Path, file: str, folder: pathlib.Path, **more: str) -> list[str]:
  """The names of a file's tests, as pytest's command line takes them."""
  said = subprocess.run([python, *PYTEST, "-p", "torch_stand_in", "--collect-only", file], cwd=folder, env=variables(python) | more,
                        capture_output=True, text=True).stdout
  return [line for line in said.splitlines() if "::" in line and not line.startswith("ERROR")]


def run(tool: pathlib.Path | None, python: pathlib.Path, gpus: list[str] | None, arguments: list[str], folder: pathlib.Path,
        report: pathlib.Path, limit: float, **more: str) -> Result:
  """Runs pytest, on the simulated GPUs that the tool's options `gpus` describe, or as it is."""
  report.unlink(missing_ok=True)
  command = [] if gpus is None else [tool, "run", "--report", *gpus, "--"]
  command += [python, *PYTEST, f"--junitxml={report}", *arguments]
  start = time.monotonic()
  try:
    done = subprocess.run([str(part) for part in command], cwd=folder, env=variables(python) | more, capture_output=True, text=True, timeout=limit)
    code, said = done.returncode, done.stdout[-20000:] + done.stderr
  except subprocess.TimeoutExpired as late:
    code, said = None, f"stopped after {limit:.0f} s\n" + ((late.stdout or b"")[-2000:]).decode(errors="replace")
  outcomes, seconds = {}, time.monotonic() - start
  if report.exists():
    cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    seconds = sum(float(case.get("time") or 0) for case in cases)
    for case in cases:
      kinds = {child.tag for child in case}
      outcomes[f"{case.get('classname')}.{case.get('name')}"] = \
        "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
  return Result(outcomes, code, said, seconds)
