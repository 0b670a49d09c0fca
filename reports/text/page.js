// SPDX-License-Identifier: Apache-2.0
// Tables sort by a heading (a click, Enter or the space bar; arrow keys go along the headings), and a box leaves the rows that
// have all of its words, or stand under a heading that has them. Without this script everything can be read as it is.
'use strict';
{
    const units = {ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30};
    const numberOf = text => {
        const found = /^([-+]?[\d.]+(?:e[-+]?\d+)?)\s*([a-z]+)?/i.exec(text);
        return found ? parseFloat(found[1]) * (units[found[2]] || 1) : NaN;
    };
    const textOf = (row, column) => row.cells[column] ? row.cells[column].textContent.trim() : '';
    const headingsOf = table => [...table.rows[0].cells];
    const tablesIn = e => [...e.querySelectorAll('table')].filter(t => t.rows.length > 1 && headingsOf(t).at(-1).tagName == 'TH');

    // Numbers before words, empty cells last in either direction.
    const compare = (a, b, direction) => {
        if (!a.text || !b.text) return !a.text - !b.text;
        const [x, y] = [numberOf(a.text), numberOf(b.text)];
        if (isNaN(x) != isNaN(y)) return isNaN(x) - isNaN(y);
        return direction * (x - y || a.text.localeCompare(b.text, 'en', {numeric: true}));
    };
    const sort = heading => {
        const table = heading.closest('table'), column = heading.cellIndex;
        const direction = heading.ariaSort == 'ascending' ? -1 : 1;
        const rows = [...table.rows].slice(1).map(row => ({row, text: textOf(row, column)}));
        rows.sort((a, b) => compare(a, b, direction));
        for (const other of headingsOf(table)) other.removeAttribute('aria-sort');
        heading.setAttribute('aria-sort', direction > 0 ? 'ascending' : 'descending');
        table.tBodies[0].append(...rows.map(r => r.row));
    };

    // One stop of the tab key for each table.
    const prepare = part => {
        for (const table of tablesIn(part)) headingsOf(table).forEach((heading, i) => { heading.tabIndex = i ? -1 : 0; });
    };
    prepare(document);
    // Folded tables of a large page are the text of a noscript until they are opened.
    const unfold = fold => {
        const text = fold.querySelector(':scope > noscript');
        if (!text) return;
        text.outerHTML = text.textContent;
        prepare(fold);
    };
    addEventListener('toggle', event => { if (event.target.open) unfold(event.target); }, true);
    const headingAt = event => event.target.closest && event.target.closest('th[tabindex]');
    addEventListener('click', event => { if (headingAt(event)) sort(headingAt(event)); });
    addEventListener('keydown', event => {
        const heading = headingAt(event), step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
        if (!heading || !(step || event.key == 'Enter' || event.key == ' ')) return;
        event.preventDefault();
        if (!step) return sort(heading);
        const next = headingsOf(heading.closest('table'))[heading.cellIndex + step];
        if (!next) return;
        heading.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
    });

    // A link to something folded opens it.
    const openTarget = () => {
        const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
        if (target && target.tagName == 'DETAILS') target.open = true;
    };
    addEventListener('hashchange', openTarget);
    openTarget();

    const MOST_SHOWN = 500; // rows that are unfolded for the reader
    const above = element => {
        const found = [];
        for (let e = element.closest('details'); e; e = e.parentElement.closest('details')) found.push(e);
        return found;
    };
    let rows = null;
    const rowsOnce = () => {
        if (rows) return rows;
        document.querySelectorAll('details').forEach(unfold);
        return rows = tablesIn(document).flatMap(table => {
            const folds = above(table), heading = folds.map(f => f.firstElementChild.textContent).join(' ');
            for (const fold of folds) fold.wasOpen = fold.open;
            return [...table.rows].slice(1).map(row => ({row, folds, text: (heading + ' ' + row.textContent).toLowerCase()}));
        });
    };
    const filter = (words, count) => {
        const kept = new Set(), all = rowsOnce();
        let n = 0;
        for (const {row, folds, text} of all) {
            row.hidden = !words.every(word => text.includes(word));
            if (row.hidden) continue;
            n++;
            for (const fold of folds) kept.add(fold);
        }
        for (const fold of new Set(all.flatMap(r => r.folds))) {
            fold.hidden = !kept.has(fold);
            if (!words.length || n <= MOST_SHOWN) fold.open = words.length ? kept.has(fold) : fold.wasOpen;
        }
        count.value = words.length ? n + ' of ' + all.length + ' rows' : '';
    };
    const nav = document.querySelector('nav');
    if (nav && tablesIn(document).length) {
        const box = document.createElement('input'), count = document.createElement('output');
        box.type = 'search';
        box.placeholder = 'filter the tables';
        box.setAttribute('aria-label', 'Words that the rows of the tables must have');
        box.addEventListener('input', () => filter(box.value.toLowerCase().split(/\s+/).filter(Boolean), count));
        nav.append(box, count);
    }
}
