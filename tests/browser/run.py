#!/usr/bin/env python3
"""Opens the page of a capture in a headless browser, clicks through it, and keeps a screenshot.

    python3 tests/browser/run.py [--mockgpu target/debug/mockgpu] [--screenshot FILE]

Needs Chromium (or Chrome) and a built mockgpu; nothing of the network.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]

# Put behind the page's own script: does what a person would, and leaves what it saw where --dump-dom shows it.
CLICKS = """
<script>
{
const seen = {};
const heading = () => document.querySelector("#detail h2").textContent;
const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
seen.opened = heading();
document.querySelector('#list li[data-index="1"]').click();
seen.listed = heading();
seen.address = location.hash;
key("ArrowDown");
seen.key = heading();
const boxes = [...document.querySelectorAll("rect.slice")];
boxes[0].dispatchEvent(new MouseEvent("click", { bubbles: true }));
seen.drawn = heading();
seen.slices = boxes.length;
const before = document.querySelector("rect.slice").getAttribute("width");
document.querySelector("#tracks").dispatchEvent(new WheelEvent("wheel", { deltaY: -100, clientX: 200, bubbles: true }));
seen.zoomed = before !== document.querySelector("rect.slice").getAttribute("width");
const filter = document.querySelector("#filter");
filter.value = "KERNEL";
filter.dispatchEvent(new Event("input"));
seen.count = document.querySelector("#count").textContent;
[...document.querySelectorAll("#list li:not([hidden])")].pop().click();
seen.launch = heading();
seen.text = document.querySelector("#detail pre").textContent;
const out = document.createElement("script");
out.type = "application/json";
out.id = "seen";
out.textContent = JSON.stringify(seen).replaceAll("<", "\\u003c");
document.body.append(out);
}
</script>
"""


def browse(browser, *arguments):
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,800", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mockgpu", type=pathlib.Path, default=ROOT / "target/debug/mockgpu")
    parser.add_argument("--screenshot", type=pathlib.Path)
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"no browser: one of {', '.join(BROWSERS)} must be installed")
    with tempfile.TemporaryDirectory() as folder:
        capture, page = pathlib.Path(folder, "saxpy.capture"), pathlib.Path(folder, "saxpy.html")
        arguments = ["--arg", "f32[1000]=ones,out", "--arg", "f32[1000]=iota", "--arg", "f32:2", "--arg", "u32:1000"]
        cubin = ROOT / "fixtures/cubin/sm_89/saxpy.cubin"
        launch = ["launch", cubin, "--grid", "4", "--block", "256", *arguments, "--capture", capture]
        for command in (launch, ["timeline", "--html", capture, "-o", page]):
            subprocess.run([options.mockgpu, *command], check=True, capture_output=True)
        text = page.read_text()
        clicked = pathlib.Path(folder, "clicked.html")
        clicked.write_text(text.replace("</body>", CLICKS.replace("KERNEL", "saxpy") + "</body>"))
        dom = browse(browser, "--dump-dom", f"file://{clicked}#submission-3")
        found = re.search(r'<script type="application/json" id="seen">(.*?)</script>', dom, re.S)
        if found is None:
            sys.exit("the page's script did not run to its end")
        seen = json.loads(found[1])
        if options.screenshot:
            last = len(json.loads(re.search(r"^const capture = (.*);$", text, re.M)[1])["submissions"])
            browse(browser, f"--screenshot={options.screenshot.resolve()}", f"file://{page}#submission-{last - 1}")
    checks = {
        "an address opens its submission": seen["opened"].startswith("3. "),
        "a line of the list opens its submission": seen["listed"].startswith("2. "),
        "the address follows": seen["address"] == "#submission-2",
        "the arrow keys go on": seen["key"].startswith("3. "),
        "a slice opens its submission": seen["drawn"].startswith("1. "),
        "the wheel zooms": seen["zoomed"],
        "the filter leaves what has the word": not seen["count"].startswith(("0 ", f"{seen['slices']} ")),
        "the launch is named by its kernel": "saxpy" in seen["launch"],
        "the launch shows its pushbuffer": "SEND_SIGNALING_PCAS" in seen["text"],
        "the launch shows its descriptor": "CTA_RASTER_WIDTH" in seen["text"],
    }
    for what, holds in checks.items():
        print(f"{'ok    ' if holds else 'FAILED'}  {what}")
    if not all(checks.values()):
        print(json.dumps(seen, indent=1))
        sys.exit(1)


if __name__ == "__main__":
    main()
