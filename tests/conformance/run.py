#!/usr/bin/env python3
"""Runs the suite in this folder against tinygrad on simulated GPUs, and prints a table.

    tests/conformance/run.py [--tinygrad VERSION] [--gpu ad102] [--driver 580.159.04] [pytest arguments]

It installs what it needs with pip into the target folder. The exit code is 0 if everything passed.
"""

import argparse, pathlib, sys

import environment


def main() -> int:
  parser = argparse.ArgumentParser()
  parser.add_argument("--tinygrad", default="0.14.0")
  parser.add_argument("--gpu", default="ad102", choices=["ad102", "ga102"])
  parser.add_argument("--driver", default="580.159.04")
  options, rest = parser.parse_known_args()
  suite = pathlib.Path(__file__).resolve().parent / "suite"
  python = environment.python(options.tinygrad)
  bad = 0
  print(f"tinygrad {options.tinygrad} on {options.gpu}, driver {options.driver}")
  print(f"{'file':24}{'GPUs':>5}{'passed':>8}{'skipped':>8}{'failed':>8}")
  for file in sorted(suite.glob("test_*.py")):
    gpus = "3" if file.stem == "test_devices" else "1"
    report = environment.target() / "conformance" / f"{file.stem}.xml"
    arguments = ["--gpu", options.gpu, "--driver", options.driver, "--gpus", gpus]
    outcomes, said = environment.run(python, arguments, [str(file), *rest], suite, report, 1800)
    counts = [environment.count(outcomes, kind) for kind in ("passed", "skipped", "failed")]
    print(f"{file.name:24}{gpus:>5}" + "".join(f"{n:>8}" for n in counts), flush=True)
    if counts[2] or not counts[0] or "fault:" in said:
      bad += 1
      print(said[-6000:])
  return 1 if bad else 0


if __name__ == "__main__":
  sys.exit(main())
