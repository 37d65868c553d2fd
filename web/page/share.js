// An answer as a file: what the page has is handed to the browser as a download.
import { escaped, make } from '../../report/html/src/look.js';
import { grouped } from '../../report/html/src/segments.js';

function download(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  make('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

let template = null;

/** Asks for the page of --report once; later answers, and those whose instance has ended, need no more than that. */
export function keepTemplate(session) {
  template ??= session.template();
  template.catch(() => { template = null; });
}

/** A section as the program writes it. */
function plain(section) {
  if (!section.settings) return section;
  const row = (one) => (one.map ? { ...one, map: { ...one.map, cells: grouped(one.map.cells) } } : one);
  return { ...section, settings: { ...section.settings, rows: section.settings.rows.map(row) } };
}

/** The page of --report that shows `data`, {title, sections}. */
export async function pageOf(data) {
  const title = `vramlab: ${data.title}`;
  const version = document.documentElement.dataset.version;
  const json = JSON.stringify({ title, sections: data.sections.map(plain) }).replaceAll('<', '\\u003c');
  const parts = { TITLE: escaped(title), VERSION: version, DATA: json };
  return (await template).replace(/%(TITLE|VERSION|DATA)%/g, (mark, name) => parts[name]);
}

const kTypes = { html: 'text/html', json: 'application/json', csv: 'text/csv' };

/** A bar of buttons: `files` are [text, name, () => content, or a promise of it]. */
export const shareBar = (files, more = []) => make('div', { class: 'share', role: 'group', 'aria-label': 'This answer' },
  ...files.map(([text, name, content]) => make('button', { type: 'button', onclick: async () => download(name, await content(), kTypes[name.split('.').at(-1)]) }, text)), ...more);
