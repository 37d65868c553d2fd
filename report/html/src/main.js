// The page: what came out in a sentence, then one part a section.
import { make } from './look.js';
import { lookButton, part, printing } from './sections.js';

const report = JSON.parse(document.getElementById('data').textContent);
document.getElementById('page').append(
  make('header', {}, make('h1', {}, report.title), lookButton()),
  make('main', { id: 'content' }, ...report.sections.map((section) => part(section))));
printing();
document.documentElement.dataset.ready = 'yes';
