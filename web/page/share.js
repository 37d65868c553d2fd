// An answer as a file: what the page has is handed to the browser as a download.
import { make } from '../../report/html/src/look.js';

function download(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  make('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const kTypes = { html: 'text/html', json: 'application/json', csv: 'text/csv' };

/** A bar of buttons: `files` are [text, name, () => content]. */
export const shareBar = (files, more = []) => make('div', { class: 'share', role: 'group', 'aria-label': 'This answer' },
  ...files.map(([text, name, content]) => make('button', { type: 'button', onclick: () => download(name, content(), kTypes[name.split('.').at(-1)]) }, text)), ...more);
