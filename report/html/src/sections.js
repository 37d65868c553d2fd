// What every section begins with, the view of each kind, and the look of the page.
import { advice } from './advice.js';
import { beginAll, forgetRemovedCharts, redrawAll } from './charts.js';
import { jobs } from './jobs.js';
import { forgetRemovedDrawings, make, redrawDrawings } from './look.js';
import { memory } from './memory.js';
import { regression } from './regression.js';
import { search } from './search.js';
import { segments } from './segments.js';
import { sweep } from './sweep.js';
import { epoch, training } from './training.js';

const kViews = { training, epoch, jobs, sweep, search, segments, memory, regression, advice };

function redraw() {
  redrawAll();
  redrawDrawings();
}

/** After parts were taken out of the page: their charts are not drawn again. */
export function forgetRemoved() {
  forgetRemovedCharts();
  forgetRemovedDrawings();
}

/** The button that changes between light and dark. */
export function lookButton() {
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.look ?? (system.matches ? 'dark' : 'light')) === 'dark';
  const button = make('button', { type: 'button', class: 'look' });
  const show = () => {
    button.textContent = isDark() ? 'Light' : 'Dark';
    button.title = `show the page ${isDark() ? 'light' : 'dark'}`;
    redraw();
  };
  button.addEventListener('click', () => {
    root.dataset.look = isDark() ? 'light' : 'dark';
    show();
  });
  system.addEventListener('change', show);
  show();
  return button;
}

/** The part of a page that shows `section`, one of the sections of lab/page, with these views of it. */
export function part(section, views = kViews[section.kind](section)) {
  return make('section', {}, make('h2', {}, section.title),
    section.verdict ? make('p', { class: 'verdict' }, section.verdict) : null,
    section.head ? make('p', { class: 'head' }, section.head) : null,
    section.rule ? make('p', { class: 'head' }, section.rule) : null,
    section.description ? make('p', { class: 'description' }, section.description) : null,
    ...(section.notes ?? []).map((note) => make('p', { class: 'note' }, note)),
    ...views);
}

// Paper is white, and nobody can scroll it: everything is drawn, in the light look, at its width.
export function printing() {
  const root = document.documentElement;
  let before;
  addEventListener('beforeprint', () => {
    before = root.dataset.look;
    root.dataset.look = 'light';
    beginAll();
  });
  addEventListener('afterprint', () => {
    if (before === undefined) delete root.dataset.look;
    else root.dataset.look = before;
    redraw();
  });
}
