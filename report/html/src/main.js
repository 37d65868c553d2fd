// The page: what came out in a sentence, then one part a section.
import { advice } from './advice.js';
import { beginAll, redrawAll } from './charts.js';
import { jobs } from './jobs.js';
import { redrawMaps } from './blocks.js';
import { make } from './look.js';
import { memory } from './memory.js';
import { regression } from './regression.js';
import { search } from './search.js';
import { segments } from './segments.js';
import { sweep } from './sweep.js';
import { redrawTimelines } from './timeline.js';
import { epoch, training } from './training.js';

const kViews = { training, epoch, jobs, sweep, search, segments, memory, regression, advice };

function redraw() {
  redrawAll();
  redrawTimelines();
  redrawMaps();
}

function lookButton() {
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

function part(section) {
  return make('section', {}, make('h2', {}, section.title),
    section.verdict ? make('p', { class: 'verdict' }, section.verdict) : null,
    section.head ? make('p', { class: 'head' }, section.head) : null,
    section.rule ? make('p', { class: 'head' }, section.rule) : null,
    section.description ? make('p', { class: 'description' }, section.description) : null,
    ...(section.notes ?? []).map((note) => make('p', { class: 'note' }, note)),
    ...kViews[section.kind](section));
}

// Paper is white, and nobody can scroll it: everything is drawn, in the light look, at its width.
function printing() {
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

const report = JSON.parse(document.getElementById('data').textContent);
document.getElementById('page').append(
  make('header', {}, make('h1', {}, report.title), lookButton()),
  make('main', { id: 'content' }, ...report.sections.map(part)));
printing();
document.documentElement.dataset.ready = 'yes';
