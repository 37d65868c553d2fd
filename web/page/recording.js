// A recorded program under several settings and cards: the answer of `whatif`, and rows that are added to it.
import { make } from '../../report/html/src/look.js';
import { settingsTable } from '../../report/html/src/memory.js';

const kConfs = ['expandable_segments:True', 'max_split_size_mb:64', 'max_split_size_mb:256', 'roundup_power2_divisions:8', 'garbage_collection_threshold:0.8',
  'per_process_memory_fraction:0.5', 'expandable_segments:True,garbage_collection_threshold:0.8'];

/** Settings worth trying on a recording that is too long to try them all before the first answer. */
const kTried = ['', ...kConfs.slice(0, 4)];
export const furtherConfs = (recorded) => kTried.filter((conf) => conf !== recorded);

const hasCards = (settings) => settings.columns.some(({ name }) => name === 'card');
const roomOf = (settings) => settings.caption.replace(/^Settings, /, '');
const nameOf = (room) => room.replace(/ \([^)]*usable[^)]*\)$/, '');
const isPlan = (row) => row.cells[0] === 'planned';

/** Gives every row of a table on one card the name of that card. */
function nameCards(settings) {
  if (hasCards(settings)) return;
  const room = nameOf(roomOf(settings));
  settings.columns.splice(1, 0, { name: 'card', number: false });
  for (const row of settings.rows) row.cells.splice(1, 0, room);
  settings.caption = 'Settings and cards';
}

/** Adds the rows of `other`, an answer on one card, to `settings`; a plan of a card is shown once. */
export function grow(settings, other) {
  const room = nameOf(roomOf(other));
  if (!hasCards(settings) && roomOf(settings) !== roomOf(other)) nameCards(settings);
  if (hasCards(settings)) nameCards(other);
  const isThere = (row) => !hasCards(settings) || row.cells[1] === room;
  const last = settings.rows.findIndex((row) => isPlan(row) && isThere(row));
  const rows = other.rows.filter((row) => last < 0 || !isPlan(row));
  settings.rows.splice(last < 0 ? settings.rows.length : last, 0, ...rows);
}

const isSize = (card) => /^\d+(\.\d+)?\s*[KMGT]?i?B?$/i.test(card);

/** The options of a row that a person typed. */
export const rowWords = ({ conf, card, limit }) => ['--alloc-conf', conf,
  ...(card ? [isSize(card) ? '--capacity' : '--gpu', isSize(card) ? card.replaceAll(' ', '') : card] : []),
  ...(limit ? ['--limit', limit.replaceAll(' ', '')] : [])];

function field(name, label, attributes, values) {
  const list = values && make('datalist', { id: `known-${name}` }, ...values.map((value) => make('option', { value })));
  return make('label', {}, label, make('input', { name, autocomplete: 'off', spellcheck: 'false', list: list ? list.id : null, ...attributes }), list ?? '');
}

/** The form below the settings. `ask(row)` resolves to the settings of an answer with that row, or throws. */
function rowForm(cards, section, part, ask) {
  const failure = make('div', { role: 'alert' });
  const button = make('button', { type: 'submit' }, 'Add the row');
  const form = make('form', { class: 'rows', 'aria-label': 'Another setting or card', onsubmit: async (event) => {
    event.preventDefault();
    const { conf, card, limit } = form.elements;
    button.disabled = true;
    failure.replaceChildren();
    try {
      const settings = await ask({ conf: conf.value.trim(), card: card.value.trim(), limit: limit.value.trim() });
      grow(section.settings, settings);
      part.replaceChildren(...settingsTable(section));
    } catch (error) {
      failure.replaceChildren(...error.message.trim().split('\n').map((line) => make('p', { class: 'failure' }, line)));
    }
    button.disabled = false;
  } },
  field('conf', 'setting', { placeholder: '(default)', class: 'long' }, kConfs),
  field('card', 'card', { placeholder: 'as recorded' }, cards),
  field('limit', 'limit', { placeholder: 'none' }), button);
  return [form, failure];
}

/** Adds rows that come without being asked for, one after the other. */
export async function tryOthers(section, part, confs, ask) {
  for (const conf of confs) {
    grow(section.settings, await ask({ conf, card: '', limit: '' }));
    part.replaceChildren(...settingsTable(section));
  }
}

/** Puts the form for further rows below the settings of `shown`, the part of the page for `section`. */
export function growable(shown, section, cards, ask) {
  const part = shown.querySelector('.settings-part');
  part.after(...rowForm(cards, section, part, ask));
}
