"""What the conformance scripts share: a Python environment with the packages that clients need, and the tool."""

import os, pathlib, shutil, stat, subprocess, sys, xml.etree.ElementTree

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# numpy is what results are compared with; the compilers are those that tinygrad loads.
PACKAGES = ["numpy", "pytest", "pytest-timeout", "hypothesis", "nvidia-cuda-nvrtc", "nvidia-nvjitlink",
            "nvidia-cuda-runtime", "nvidia-cuda-crt"]


def target() -> pathlib.Path:
  return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


def tool() -> pathlib.Path:
  """The mockgpu binary, built if need be."""
  if given := os.environ.get("MOCKGPU"): return pathlib.Path(given)
  subprocess.run(["cargo", "build", "--quiet", "--package", "mockgpu"], cwd=REPOSITORY, check=True)
  return target() / "debug" / "mockgpu"


def python(tinygrad: str | None) -> pathlib.Path:
  """Python of an environment with the packages, and with that version of tinygrad if one is named."""
  folder = target() / "conformance" / f"venv-{tinygrad or 'checkout'}"
  binary = folder / "bin" / "python"
  if not binary.exists(): subprocess.run([sys.executable, "-m", "venv", folder], check=True)
  wanted = PACKAGES + ([f"tinygrad=={tinygrad}"] if tinygrad else [])
  # tinygrad's CPU device calls a program named clang.
  if shutil.which("clang") is None: wanted.append("ziglang")
  subprocess.run([binary, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True)
  if shutil.which("clang") is None:
    wrapper = folder / "bin" / "clang"
    wrapper.write_text(f'#!/bin/sh\nexec "{binary}" -m ziglang clang "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
  return binary


def run(python: pathlib.Path, options: list[str], arguments: list[str], folder: pathlib.Path, report: pathlib.Path,
        limit: int, **variables: str) -> tuple[dict[str, str], str]:
  """Runs pytest on simulated GPUs. Gives the outcome of each test by name, and what the tool said at the end."""
  report.unlink(missing_ok=True)
  environment = {**os.environ, "DEV": "NV", "PATH": f"{python.parent}:{os.environ['PATH']}", "VIRTUAL_ENV": str(python.parents[1]),
                 "CACHEDB": str(target() / "conformance" / "cache.db"), **variables}
  command = [tool(), "run", "--report", *options, "--", python, "-m", "pytest", "-q", "--timeout", "120", "--tb=short",
             "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
  try:
    done = subprocess.run([str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
    said = done.stdout[-20000:] + done.stderr
  except subprocess.TimeoutExpired as late:
    said = f"stopped after {limit} s\n" + ((late.stdout or b"")[-2000:]).decode(errors="replace")
  outcomes = {}
  if report.exists():
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
      name = f"{case.get('classname')}.{case.get('name')}"
      kinds = {child.tag for child in case}
      outcomes[name] = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
  return outcomes, said


def count(outcomes: dict[str, str], kind: str) -> int:
  return sum(outcome == kind for outcome in outcomes.values())
