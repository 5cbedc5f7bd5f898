#!/usr/bin/env python3
"""Runs the suite in this folder against tinygrad on simulated GPUs, and prints a table.

    tests/conformance/run.py [--tinygrad VERSION] [--gpu ad102] [--driver 580.159.04] [pytest arguments]

It installs what it needs with pip into the target folder. Unless a version is named it runs the whole suite against
0.14.0, and the flows and the several devices against an older release and against the newest that pip finds; before them the
program of the README under several drivers, on one GPU and on six. The exit code is 0 if everything passed and no GPU
faulted or was asked for something that is not simulated.
"""

import argparse, concurrent.futures, os, pathlib, subprocess, sys

import environment

WHOLE, OLDER = "0.14.0", "0.13.0"
# Layouts of driver 610 are known to tinygrad from 0.14.0 on.
DRIVERS = {"570.124.06": (1, 6), "580.159.04": (1, 6), "610.43.02": (1, 6)}
PROGRAM, ANSWER = "from tinygrad import Tensor; print((Tensor([1,2,3])+1).tolist())", "[2, 3, 4]"
SUITE = pathlib.Path(__file__).resolve().parent / "suite"
# What is run against a release that is not run whole.
SHORT = ("test_flows.py", "test_devices.py")


def first_lines(tool, python, gpu) -> list[str]:
  """Runs the README's program under each driver; gives what went wrong."""
  wrong = []
  for driver, counts in DRIVERS.items():
    for gpus in counts:
      command = [tool, "run", "--gpu", gpu, "--driver", driver, "--gpus", str(gpus), "--", python, "-c", PROGRAM]
      done = subprocess.run([str(part) for part in command], env=environment.variables(python), capture_output=True, text=True)
      good = done.returncode == 0 and done.stdout.strip() == ANSWER
      print(f"driver {driver}, {gpus} GPU(s): {done.stdout.strip()} {'' if good else 'WRONG'}", flush=True)
      if not good: wrong.append(f"driver {driver}, {gpus} GPU(s): exit code {done.returncode}\n{done.stdout}{done.stderr[-3000:]}")
  return wrong


def suite(tool, python, version, files, options, rest) -> list[str]:
  """Runs files of the suite, prints a row for each; gives what went wrong."""
  print(f"\n{environment.versions(python)}; on {options.gpu}, driver {options.driver}")
  print(f"{'file':24}{environment.HEADINGS}", flush=True)

  def run(file: pathlib.Path) -> tuple[str, environment.Result]:
    gpus = "3" if file.stem == "test_devices" else "1"
    report = environment.folder() / f"{file.stem}-{version}.xml"
    arguments = ["--gpu", options.gpu, "--driver", options.driver, "--gpus", gpus]
    return gpus, environment.run(tool, python, arguments, [str(file), *rest], SUITE, report, 3600)

  wrong = []
  # Most of the time goes to Python and the compilers, which have one thread each.
  with concurrent.futures.ThreadPoolExecutor(min(len(files), os.cpu_count() or 1)) as pool:
    for file, (gpus, result) in zip(files, pool.map(run, files)):
      print(f"{file.name:24}{gpus:>5}{result.row()}", flush=True)
      if not result.is_good(): wrong.append(f"{file.name}, tinygrad {version}: exit code {result.code}\n{result.said[-6000:]}")
  return wrong


def main() -> int:
  parser = argparse.ArgumentParser()
  parser.add_argument("--tinygrad", metavar="VERSION")
  parser.add_argument("--gpu", default="ad102", choices=["ad102", "ga102"])
  parser.add_argument("--driver", default="580.159.04")
  options, rest = parser.parse_known_args()
  environment.require()
  tool, every = environment.tool(), sorted(SUITE.glob("test_*.py"))
  whole = options.tinygrad or WHOLE
  python = environment.python(whole)
  wrong = first_lines(tool, python, options.gpu) if whole == WHOLE else []
  wrong += suite(tool, python, whole, every, options, rest)
  if not options.tinygrad:
    for version in (OLDER, environment.NEWEST):
      python = environment.python(version)
      if version == environment.NEWEST and (found := environment.version(python, "tinygrad")) in (WHOLE, OLDER):
        print(f"\nThe newest release is {found}.")
      else: wrong += suite(tool, python, version, [SUITE / name for name in SHORT], options, rest)
  for words in wrong: print(f"\n{words}")
  return 1 if wrong else 0


if __name__ == "__main__":
  sys.exit(main())
