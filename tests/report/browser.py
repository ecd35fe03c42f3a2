"""Chromium over its DevTools protocol, through pipes: no library, no port.

    with Browser() as b:
        page = b.open("file:///…/report.html", width=1400, height=900)
        page.run("document.title")

Everything that a page complains of or asks for is kept: page.errors (messages of the console,
exceptions, violations of its policy) and page.requests (addresses).
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--hide-scrollbars", "--disable-extensions", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--force-color-profile=srgb",
         "--disable-dev-shm-usage"]
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35,
        " ": 32, "/": 191}


class BrowserError(Exception):
    pass


def find_program():
    return next((p for p in map(shutil.which, PROGRAMS) if p), None)


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="cutepilot-browser-")
        there, self.to = os.pipe()
        self.back, here = os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4.
        words = ["bash", "-c", 'exec "$@" 3<&%d 4>&%d' % (there, here), "bash", find_program(),
                 *FLAGS, "--user-data-dir=" + self.profile, "about:blank"]
        self.process = subprocess.Popen(words, pass_fds=(there, here), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(here)
        self.number = 0
        self.unread = b""
        self.pages = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except BrowserError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)

    def read(self, deadline):
        """The next message."""
        while b"\0" not in self.unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise BrowserError("the browser does not answer")
            piece = os.read(self.back, 1 << 20)
            if not piece:
                raise BrowserError("the browser has ended")
            self.unread += piece
        text, _, self.unread = self.unread.partition(b"\0")
        return json.loads(text)

    def call(self, method, session=None, seconds=300, **params):
        """The result of a command; events that come before it go to their pages."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + seconds
        while True:
            answer = self.read(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise BrowserError("%s: %s" % (method, answer["error"]["message"]))
                return answer["result"]
            self.take_event(answer)

    def take_event(self, event):
        page = self.pages.get(event.get("sessionId"))
        if page and "method" in event:
            page.take_event(event["method"], event["params"])

    def wait(self, page, condition, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            self.take_event(self.read(deadline))

    def open(self, address, width=1400, height=900, dark=False, media="", script=True):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, target, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(domain + ".enable")
        page.resize(width, height)
        page.look(dark, media)
        if not script:
            page.call("Emulation.setScriptExecutionDisabled", value=True)
        begun = time.monotonic()
        page.call("Page.navigate", url=address)
        self.wait(page, lambda: page.loaded)
        if script:  # two frames: it has been laid out and painted
            page.run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
        page.seconds = time.monotonic() - begun
        return page


class Page:
    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session
        self.loaded = False
        self.errors, self.requests = [], []

    def call(self, method, **params):
        return self.browser.call(method, session=self.session, **params)

    def take_event(self, method, params):
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(params["args"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def run(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                      awaitPromise=True)
        if "exceptionDetails" in r:
            raise BrowserError(json.dumps(r["exceptionDetails"])[:800])
        return r["result"].get("value")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def look(self, dark=False, media=""):
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"Enter": "\r", " ": " ", "/": "/"}.get(key, "") if kind == "keyDown" else ""
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text,
                      windowsVirtualKeyCode=KEYS[key])

    def type(self, text):
        self.call("Input.insertText", text=text)

    def point(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path, whole=False, clip=None):
        params = {"captureBeyondViewport": True} if whole or clip else {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = (0, 0, size["width"], size["height"])
        if clip:
            params["clip"] = dict(zip(("x", "y", "width", "height"), clip), scale=1)
        data = self.call("Page.captureScreenshot", format="png", **params)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
