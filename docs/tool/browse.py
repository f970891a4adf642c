# SPDX-License-Identifier: BSL-1.0
"""browse.py <folder of the site> <folder for pictures>: looks at the site in Chromium, headless.

On a wide and on a narrow window: no page scrolls sideways (on the wide one no table either), the console has no error,
nothing is loaded from another host, the search finds `scan`. Needs python3-selenium and chromium-driver; run by hand
(`--all`: each page).
"""
import functools
import http.server
import os
import sys
import threading
import time

from selenium import webdriver

WIDTHS = {1280: 900, 390: 844}
SHOWN = {"start": "index.html", "name": "reference/softmax.html", "options": "reference/optim.adam.html",
         "topic": "reference/topic_optimizers_and_fits.html", "tutorial": "docs/tutorial.html",
         "operators": "docs/operators.html", "search": "search.html?q=scan"}


def browser(width, height):
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"):
        options.add_argument(option)
    options.add_experimental_option("mobileEmulation", {
        "deviceMetrics": {"width": width, "height": height, "pixelRatio": 1}})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options)


def found(chrome):
    """The titles that the search page shows, once they are there."""
    for _ in range(50):
        titles = [a.text for a in chrome.find_elements("css selector", "#search-results ul.search li > a")]
        if titles:
            return titles
        time.sleep(0.2)
    return []


def main(site, pictures, *how):
    bad, host = [], http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=host.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{host.server_port}/"
    pages = sorted(os.path.relpath(os.path.join(at, f), site) for at, _, some in os.walk(site) for f in some
                   if f.endswith(".html"))
    if "--all" not in how:
        pages = [p for k, p in enumerate(pages) if not p.startswith("reference/") or "topic" in p or k % 20 == 0]
    os.makedirs(pictures, exist_ok=True)
    for width, height in WIDTHS.items():
        chrome = browser(width, height)
        for page in pages + list(SHOWN.values()):
            chrome.get(base + page)
            if "search" in page and "?" in page and not any(t == "scan" for t in found(chrome)[:3]):
                bad.append(f"{page}: scan is not among the first results: {found(chrome)[:5]}")
            for name in [n for n, p in SHOWN.items() if p == page]:
                chrome.save_screenshot(f"{pictures}/{name}-{width}.png")
            if (wide := chrome.execute_script("return document.documentElement.scrollWidth")) > width:
                bad.append(f"{page}: {wide} pixels wide in a window of {width}")
            if width > 1000 and chrome.execute_script("return [...document.querySelectorAll('.table-wrapper')].some("
                                                      "t => t.scrollWidth > t.clientWidth + 1)"):
                bad.append(f"{page}: a table is cut at {width} pixels")
            loaded = chrome.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
            bad += [f"{page}: loads {u}" for u in loaded if not u.startswith((base, "data:"))]
            bad += [f"{page}: {e['message']}" for e in chrome.get_log("browser")
                    if e["level"] == "SEVERE" and "favicon.ico" not in e["message"]]
        chrome.quit()
    print(*bad, f"{len(pages)} pages, {len(WIDTHS)} widths, {len(bad)} faults", sep="\n")
    return bool(bad)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
