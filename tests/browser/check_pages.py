#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Opens our pages in a headless Chromium and checks what a reader relies on.

usage: check_pages.py BROWSER SHOTS DIR...    folders that normbench wrote; screenshots go to SHOTS
Exit: 0, 1 when anything is wrong."""
import os
import pathlib
import sys

from chromium import Browser

wrong = []

LARGEST = 1 << 20  # bytes of the page of a run
PHONE = 390

TABLES = "[...document.querySelectorAll('table')].filter(t => t.rows.length > 3 && t.querySelector('th[tabindex]') && t.checkVisibility())"

# Left and right edge of each name and main figure that is shown, and whether it is empty.
NAMES = """[...document.querySelectorAll('table.rows tr')].filter(r => r.checkVisibility()).slice(0, 300).flatMap(row =>
    [...row.cells].filter(c => c.tagName == 'TD' && (c.matches('.k') || c.matches('.m') && c.textContent)).map(c => {
        const box = c.getBoundingClientRect();
        return [box.left, box.right, box.height, c.textContent];
    }))"""

# Contrast of text by WCAG 2: of the first element of each kind that is shown.
CONTRAST = """(() => {
    const channels = text => text.match(/[\\d.]+/g).map(Number);
    const light = c => { const [r, g, b] = c.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                         return .2126 * r + .7152 * g + .0722 * b; };
    const ground = e => { for (; e; e = e.parentElement) { const c = channels(getComputedStyle(e).backgroundColor);
                          if (c.length < 4 || c[3] == 1) return c; } return [255, 255, 255]; };
    return ['p', '.dim', 'a', 'th', 'td.n', 'tr.bad td', 'tr.doubt td', 'td.gA', 'td.gB', 'td.gF', 'figcaption', 'nav input'].flatMap(kind => {
        const e = [...document.querySelectorAll(kind)].find(e => e.checkVisibility() && (e.textContent || e.placeholder));
        if (!e) return [];
        const [a, b] = [light(channels(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
        return [[kind, (a + .05) / (b + .05)]];
    });
})()"""


def expect(condition, message):
    if not condition:
        wrong.append(message)


def check_load(browser, page, name):
    """The console stays empty, and nothing is fetched but the page."""
    said, fetched = [], []
    for event in browser.open(page.as_uri()):
        method, p = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown" or method == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert") or \
                method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            said.append(str(p)[:300])
        elif method == "Network.requestWillBeSent" and p["request"]["url"] != page.as_uri() and not p["request"]["url"].startswith("data:"):
            fetched.append(p["request"]["url"])
    expect(not said, f"{name}: the console says {said[:3]}")
    expect(not fetched, f"{name}: fetches {fetched[:3]}")


def check_order(browser, name):
    """The answer, then a picture, then the tables."""
    answer, picture, table = (browser.evaluate(f"document.querySelector({query!r})?.getBoundingClientRect().top ?? null")
                              for query in ("h1 ~ p, .answer", "img", "table.rows"))
    expect(answer is not None and (table is None or answer < table), f"{name}: the answer is behind the tables")
    expect(picture is None or table is None or picture < table, f"{name}: the first picture is behind the tables")
    expect(browser.evaluate("[...document.images].filter(i => i.checkVisibility()).every(i => i.decode && i.getAttribute('alt'))"),
           f"{name}: a picture without words for it")


def check_pictures(browser, name):
    """Every picture can be drawn, folded ones too."""
    bad = browser.evaluate("""Promise.all([...document.images].map(async i => { const p = new Image(); p.src = i.src;
        try { await p.decode(); return p.naturalWidth ? '' : i.alt; } catch (e) { return i.alt + ': ' + e; } })).then(l => l.filter(Boolean))""")
    expect(not bad, f"{name}: pictures that cannot be drawn: {bad[:3]}")


def value_of(text):
    """What a cell sorts by: a number with its unit, else its text."""
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "KiB": 2**10, "MiB": 2**20}
    word = text.split()
    try:
        return (0, float(word[0].rstrip("%,")) * (units.get(word[1].rstrip(","), 1) if len(word) > 1 else 1))
    except ValueError:
        return (1, text.lower())


def check_sort(browser, name):
    column = browser.evaluate(f"""(() => {{ const t = {TABLES}.find(t => t.rows[0].querySelector('th.n')); if (!t) return -1;
        t.id = 'sorted'; t.scrollIntoView(); return t.rows[0].querySelector('th.m.n, th.n').cellIndex; }})()""")
    if column < 0:
        return
    cells = f"[...document.querySelector('#sorted').rows].slice(1).map(r => r.cells[{column}].textContent)"
    before = browser.evaluate(cells)
    heading = f"document.querySelector('#sorted').rows[0].cells[{column}]"
    for direction in ("ascending", "descending"):
        browser.evaluate(heading + ".click()")
        after = browser.evaluate(cells)
        full = [value_of(t) for t in after if t]
        expect(sorted(before) == sorted(after), f"{name}: sorting loses rows")
        expect(full == sorted(full, reverse=direction == "descending") and not any(after[len(full):]),
               f"{name}: not {direction}: {after[:6]}")
        expect(browser.evaluate(heading + ".ariaSort") == direction, f"{name}: no aria-sort {direction}")
    # The keyboard: from the table's one stop along the headings, then Enter.
    first = browser.evaluate("document.querySelector('#sorted th[tabindex=\"0\"]').focus(), document.activeElement.cellIndex")
    browser.key("ArrowRight", 39)
    expect(browser.evaluate("document.activeElement.cellIndex") == first + 1, f"{name}: the arrow key does not go along the headings")
    browser.key("Enter", 13)
    expect(browser.evaluate("document.activeElement.ariaSort") == "ascending", f"{name}: Enter does not sort")


def check_filter(browser, name):
    shown = "[...document.querySelectorAll('th[tabindex=\"0\"]')].flatMap(h => [...h.closest('table').rows].slice(1)).filter(r => !r.hidden).length"
    if not browser.evaluate("!!document.querySelector('nav input')"):
        expect(not browser.evaluate(TABLES + ".length"), f"{name}: no box to filter")
        return
    # Folded tables of a large page are made by the first word.
    clear = "(box => { box.value = ''; box.dispatchEvent(new Event('input')); })(document.querySelector('nav input'))"
    browser.evaluate(clear)
    before, opened = browser.evaluate(shown), browser.evaluate("[...document.querySelectorAll('details')].map(d => d.open)")
    browser.evaluate("document.querySelector('nav input').focus()")
    browser.type("rmsnorm")
    kept = browser.evaluate(shown)
    said = browser.evaluate("document.querySelector('output').value")
    expect(said == f"{kept} of {before} rows", f"{name}: says '{said}', and {kept} rows of {before} are left")
    expect(0 < kept < before, f"{name}: 'rmsnorm' leaves {kept} of {before} rows")
    browser.type(" nothingofthatkind")
    expect("0 of" in browser.evaluate("document.querySelector('output').value"), f"{name}: words that no row has leave rows")
    browser.evaluate(clear)
    expect(browser.evaluate(shown) == before and browser.evaluate("[...document.querySelectorAll('details')].map(d => d.open)") == opened,
           f"{name}: an empty box does not show the page as it was")


def check_links(browser, name):
    """A link inside the page leads to something that is there, and opens what is folded."""
    dead = browser.evaluate("[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash.slice(1)).filter(id => !document.getElementById(id))")
    expect(not dead, f"{name}: links that lead nowhere: {dead[:3]}")
    shut = browser.evaluate("""(async () => {
        const link = [...document.querySelectorAll('a[href^="#"]')].find(a => document.getElementById(a.hash.slice(1))?.matches('details:not([open])'));
        if (!link) return '';
        link.click();
        await new Promise(r => setTimeout(r, 200));
        const target = document.getElementById(link.hash.slice(1)), open = target.open;
        target.open = false;
        return open ? '' : link.hash;
    })()""")
    expect(not shut, f"{name}: a link leaves {shut} folded")


def check_tab(browser, name):
    """The tab key visits what can be seen, in the order of the page, and nothing is a trap."""
    browser.evaluate("window.seen = []; document.activeElement.blur(); scrollTo(0, 0)")
    for _ in range(40):
        browser.key("Tab", 9)
        browser.evaluate("document.activeElement != document.body && seen.push(document.activeElement)")
    visited = browser.evaluate("seen.length")
    # Behind the last comes the first again.
    ordered = browser.evaluate("""(first => seen.every((e, i) => !i || e == first || e.compareDocumentPosition(seen[i - 1]) &
        (Node.DOCUMENT_POSITION_PRECEDING | Node.DOCUMENT_POSITION_CONTAINS)))(seen.reduce((a, b) =>
        a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_PRECEDING ? b : a))""")
    hidden = browser.evaluate("seen.filter(e => !e.checkVisibility()).length")
    expect(visited > 3 and ordered and not hidden, f"{name}: the tab key: {visited} stops, in order {ordered}, {hidden} hidden")
    outlined = browser.evaluate("getComputedStyle(seen.at(-1)).outlineStyle")
    expect(outlined != "none", f"{name}: the focus cannot be seen")


def check_phone(browser, page, name, shots):
    browser.screen(PHONE)
    browser.open(page.as_uri())
    expect(browser.evaluate("document.documentElement.scrollWidth") <= PHONE,
           f"{name}: {browser.evaluate('document.documentElement.scrollWidth')} px wide on a phone of {PHONE}")
    cells = browser.evaluate(NAMES)
    cut = [c for c in cells if c[0] < 0 or c[1] > PHONE + 0.5 or not c[2]]
    expect(not cut, f"{name}: off a phone's screen: {cut[:3]}")
    if page.name == "index.html":
        expect(any(c[3] for c in cells), f"{name}: a phone shows no names")
    (shots / f"{name.replace('/', '-')}-phone.png").write_bytes(browser.picture(PHONE))


def check_colours(browser, page, name, shots):
    grounds = []
    for dark in (False, True):
        browser.screen(1280, dark=dark)
        browser.open(page.as_uri())
        grounds.append(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
        low = [(kind, round(ratio, 2)) for kind, ratio in browser.evaluate(CONTRAST) if ratio < 4.5]
        expect(not low, f"{name}: too little contrast{' in the dark' if dark else ''}: {low}")
        (shots / f"{name.replace('/', '-')}-{'dark' if dark else 'light'}.png").write_bytes(browser.picture(1280))
    expect(grounds[0] != grounds[1], f"{name}: dark and light are the same")


def check_without_script(browser, page, name):
    browser.screen(1280)
    count = "[...document.querySelectorAll('table tr')].filter(r => r.checkVisibility()).length"
    browser.open(page.as_uri())
    with_script = browser.evaluate(count)
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.events.clear()
    browser.call("Page.navigate", url=page.as_uri())
    browser.wait("Page.loadEventFired")
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    expect(browser.evaluate(count) == with_script and not browser.evaluate("!!document.querySelector('nav input')"),
           f"{name}: without scripts other rows are shown")


def check_many(browser, page, name):
    """Folded tables of a large page are made when they are opened."""
    browser.open(page.as_uri())
    rows = browser.evaluate("""(() => { document.querySelector('details:has(> noscript)').open = true;
        document.querySelector('nav input').dispatchEvent(new Event('input')); return document.querySelectorAll('table.rows td.k').length; })()""")
    expect(rows >= 10000, f"{name}: {rows} rows, not 10,000, when all are unfolded")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    shots = pathlib.Path(sys.argv[2])
    shots.mkdir(parents=True, exist_ok=True)
    browser = Browser(sys.argv[1])
    try:
        for folder in map(pathlib.Path, sys.argv[3:]):
            for page in [folder.resolve() / p for p in ("index.html", "precision.html", "claims.html")]:
                if not page.exists():
                    continue
                name = f"{folder.name}/{page.name}"
                browser.screen(1280)
                check_load(browser, page, name)
                if folder.name == "many":
                    check_filter(browser, name)
                    check_many(browser, page, name)
                    continue
                for check in (check_order, check_pictures, check_sort, check_filter, check_links, check_tab):
                    check(browser, name)
                check_phone(browser, page, name, shots)
                check_colours(browser, page, name, shots)
                check_without_script(browser, page, name)
                if page.name == "index.html":
                    expect(page.stat().st_size <= LARGEST, f"{name}: {page.stat().st_size} bytes")
                print(f"{name}: {page.stat().st_size} bytes, seen")
    finally:
        browser.close()
    for line in wrong:
        print("wrong:", line, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    os.environ.setdefault("LANG", "C.UTF-8")
    main()
