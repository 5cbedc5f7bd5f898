#!/usr/bin/env python3
"""Opens the page of a capture in a headless browser, clicks through it, and keeps screenshots; reads the trace as well, and
opens it in Perfetto.

    python3 tests/browser/run.py [--mockgpu target/debug/mockgpu] [--screenshots FOLDER] [--perfetto FOLDER]

Needs Chromium (or Chrome) and a built mockgpu. Perfetto's interface is fetched with pip into its folder if it is not there;
where pip gives nothing, that is told and the trace is read without it.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import perfetto

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
// Blocks that would be drawn over each other are one box: look at the grid alone.
const grid = work.find((w) => w.track === "grids");
view = [grid.start, grid.end];
draw();
seen.work = document.querySelectorAll("rect.work").length;
view = [...whole];
draw();
seen.tracks = [...document.querySelectorAll("#drawing text")].map((text) => text.textContent);
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


def read_trace(events):
    """What a viewer of traces relies on, by the Trace Event Format."""
    slices = [event for event in events if event["ph"] == "X"]
    names = {(event["pid"], event.get("tid")) for event in events if event["ph"] == "M"}
    blocks = [event for event in slices if event["cat"] == "block"]
    grids = [event for event in slices if event["cat"] == "grid"]
    arrows = {phase: sorted(event["id"] for event in events if event["ph"] == phase) for phase in "sf"}
    inside = lambda block, grid: grid["ts"] <= block["ts"] and block["ts"] + block["dur"] <= grid["ts"] + grid["dur"]
    return {
        "the trace names every track": all((event["pid"], event["tid"]) in names for event in slices),
        "the trace has no slice before the beginning": all(min(e["ts"], e["dur"]) >= 0 for e in slices),
        "every arrow of the trace has two ends": arrows["s"] == arrows["f"],
        "the trace has the grid's four blocks": len(blocks) == 4,
        "blocks run while a grid does": all(any(inside(block, grid) for grid in grids) for block in blocks),
    }


def in_perfetto(browser, folder, trace, screenshots):
    """What Perfetto's own interface shows of a trace."""
    folder.mkdir(parents=True, exist_ok=True)
    interface = perfetto.fetch(folder)
    if interface is None:
        print("pip does not give Perfetto's interface: the trace is NOT opened in it")
        return {}
    events = json.loads(trace.read_text())["traceEvents"]
    names = sorted(event["name"] for event in events if event["ph"] == "X")
    tracks = {event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    found = perfetto.look(browser, interface, trace, screenshots and screenshots.resolve() / "perfetto.png")
    return {
        "Perfetto reads the trace without complaint": not found["trouble"],
        "Perfetto finds every slice by its name": sorted(found["slices"]) == names,
        "Perfetto finds every track": tracks <= set(found["tracks"]),
        "Perfetto finds every arrow": found["flows"] == [str(sum(event["ph"] == "s" for event in events))],
        "Perfetto shows channels, grids and workers": all(
            any(line.startswith(start) for line in found["shown"]) for start in ("channel 0x", "grids", "SM worker 0")
        ),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mockgpu", type=pathlib.Path, default=ROOT / "target/debug/mockgpu")
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--perfetto", type=pathlib.Path, default=ROOT / "target/browser/perfetto")
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"no browser: one of {', '.join(BROWSERS)} must be installed")
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        capture, page = pathlib.Path(folder, "saxpy.capture"), pathlib.Path(folder, "saxpy.html")
        trace = pathlib.Path(folder, "saxpy.json")
        arguments = ["--arg", "f32[1000]=ones,out", "--arg", "f32[1000]=iota", "--arg", "f32:2", "--arg", "u32:1000"]
        cubin = ROOT / "fixtures/cubin/sm_89/saxpy.cubin"
        launch = ["launch", cubin, "--grid", "4", "--block", "256", *arguments, "--capture", capture]
        timelines = ["timeline", "--html", capture, "-o", page], ["timeline", capture, "-o", trace]
        for command in (launch, *timelines):
            subprocess.run([options.mockgpu, *command], check=True, capture_output=True)
        text = page.read_text()
        clicked = pathlib.Path(folder, "clicked.html")
        clicked.write_text(text.replace("</body>", CLICKS.replace("KERNEL", "saxpy") + "</body>"))
        dom = browse(browser, "--dump-dom", f"file://{clicked}#submission-3")
        found = re.search(r'<script type="application/json" id="seen">(.*?)</script>', dom, re.S)
        if found is None:
            sys.exit("the page's script did not run to its end")
        seen = json.loads(found[1])
        traced = read_trace(json.loads(trace.read_text())["traceEvents"])
        traced.update(in_perfetto(browser, options.perfetto, trace, options.screenshots))
        if options.screenshots:
            last = len(json.loads(re.search(r"^const capture = (.*);$", text, re.M)[1])["submissions"])
            for name, shown in (("first", 1), ("launch", last - 1)):
                file = options.screenshots.resolve() / f"{name}.png"
                browse(browser, f"--screenshot={file}", f"file://{page}#submission-{shown}")
    checks = {
        "an address opens its submission": seen["opened"].startswith("3. "),
        "a line of the list opens its submission": seen["listed"].startswith("2. "),
        "the address follows": seen["address"] == "#submission-2",
        "the arrow keys go on": seen["key"].startswith("3. "),
        "a slice opens its submission": seen["drawn"].startswith("1. "),
        "the wheel zooms": seen["zoomed"],
        "a grid and its four blocks are drawn": seen["work"] == 5,
        "workers have tracks": "SM worker 0" in seen["tracks"] and "grids" in seen["tracks"],
        **traced,
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
