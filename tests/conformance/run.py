#!/usr/bin/env python3
"""Runs the suite in this folder against tinygrad on simulated GPUs, and prints a table.

    tests/conformance/run.py [--tinygrad VERSION] [--gpu ad102] [--driver 580.159.04] [pytest arguments]

It installs what it needs with pip into the target folder. The exit code is 0 if everything passed and no GPU faulted
or was asked for something that is not simulated.
"""

import argparse, concurrent.futures, os, pathlib, sys

import environment


def main() -> int:
  parser = argparse.ArgumentParser()
  parser.add_argument("--tinygrad", default="0.14.0")
  parser.add_argument("--gpu", default="ad102", choices=["ad102", "ga102"])
  parser.add_argument("--driver", default="580.159.04")
  options, rest = parser.parse_known_args()
  environment.require()
  suite = pathlib.Path(__file__).resolve().parent / "suite"
  python, tool = environment.python(options.tinygrad), environment.tool()
  print(f"{environment.versions(python)}; on {options.gpu}, driver {options.driver}")
  print(f"{'file':24}{environment.HEADINGS}", flush=True)

  def run(file: pathlib.Path) -> tuple[str, environment.Result]:
    gpus = "3" if file.stem == "test_devices" else "1"
    report = environment.folder() / f"{file.stem}-{options.tinygrad}.xml"
    arguments = ["--gpu", options.gpu, "--driver", options.driver, "--gpus", gpus]
    return gpus, environment.run(tool, python, arguments, [str(file), *rest], suite, report, 1800)

  bad = []
  files = sorted(suite.glob("test_*.py"))
  # Most of the time goes to Python and the compilers, which have one thread each.
  with concurrent.futures.ThreadPoolExecutor(min(len(files), os.cpu_count() or 1)) as pool:
    for file, (gpus, result) in zip(files, pool.map(run, files)):
      print(f"{file.name:24}{gpus:>5}{result.row()}", flush=True)
      if not result.is_good(): bad.append((file, result))
  for file, result in bad: print(f"\n{file.name}: exit code {result.code}\n{result.said[-6000:]}")
  return 1 if bad else 0


if __name__ == "__main__":
  sys.exit(main())
