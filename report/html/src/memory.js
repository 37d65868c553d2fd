// A recorded program under several settings: whether it fits, who holds its memory, and what keeps idle memory.
import { blockMap } from './blocks.js';
import { flameGraph } from './flame.js';
import { bytes, count, make } from './look.js';
import { segments } from './segments.js';
import { timelineChart } from './timeline.js';

/** `columns`: {name, number}; `rows`: lists of cells, the first of which is the row's heading. */
export function table(caption, columns, rows, more = '') {
  return make('div', { class: `scroll ${more}`, tabindex: '0', role: 'region', 'aria-label': caption },
    make('table', {}, make('caption', {}, caption),
      make('thead', {}, make('tr', {}, ...columns.map(({ name, number }) => make('th', { scope: 'col', class: number ? 'number' : '' }, name)))),
      make('tbody', {}, ...rows.map((cells) => make('tr', {}, ...cells.map((cell, i) =>
        (i === 0 ? make('th', { scope: 'row', class: columns[0].number ? 'number' : '' }, cell) : make('td', { class: columns[i].number ? 'number' : '' }, cell))))))));
}

/** A string of settings, which may be broken behind its colons and underscores. */
const breakable = (name) => make('span', {}, ...name.split(/(?<=[_:])/).flatMap((part) => [part, make('wbr')]));

/** The settings; the button of a row shows the address space under it, below the table. */
export function settingsTable(section) {
  const shown = make('div', { 'aria-live': 'polite' });
  const buttons = [];
  const choose = (number) => {
    const { map } = section.settings.rows[number];
    buttons.forEach((button, i) => button?.setAttribute('aria-pressed', i === number));
    shown.replaceChildren(make('h3', {}, 'Address space with ', section.settings.rows[number].cells[0]), ...segments(map));
  };
  const rows = section.settings.rows.map((row, number) => {
    if (!row.map) return [breakable(row.cells[0]), ...row.cells.slice(1)];
    buttons[number] = make('button', { type: 'button', 'aria-pressed': 'false', onclick: () => choose(number) }, 'map');
    return [make('span', {}, breakable(row.cells[0]), ' ', buttons[number]), ...row.cells.slice(1)];
  });
  return [table(section.settings.caption, section.settings.columns, rows, 'wordy settings'), shown];
}

export const number = (name) => ({ name, number: true });
export const text = (name) => ({ name, number: false });

function categories(section) {
  const total = section.categories.reduce((sum, category) => sum + category.bytes, 0);
  const rows = section.categories.map(({ name, bytes: held, how, inferred }, i) => [
    make('span', {}, make('span', { class: 'box', style: `background:var(--category-${i % 10})`, 'aria-hidden': 'true' }), ' ', name),
    bytes(held), `${(100 * held / total).toFixed(1)} %`, how + (inferred ? ' (inferred)' : '')]);
  return table(`Allocated at ${section.categories_at.moment}, by category`, [text('category'), number('bytes'), number('share'), text('known by')],
    rows.filter((row, i) => section.categories[i].bytes > 0));
}

/** What a pin is: blocks with the first of their frames, a pool, or nothing. */
function holder(pin) {
  if (pin.held_by === 'nothing') return 'nothing: empty_cache() gives it back';
  if (pin.held_by === 'pool') return 'a private pool in use';
  const more = pin.blocks > 1 ? ` and ${count(pin.blocks - 1)} more` : '';
  return make('span', {}, pin.stack ? make('code', {}, pin.stack[0]) : 'a block', ` (${pin.category ?? 'the allocator’s own'})${more}`);
}

const kMostPins = 12;

function pins(section) {
  const sorted = [...section.pins].sort((a, b) => b.bytes_held - a.bytes_held);
  const shown = sorted.slice(0, kMostPins);
  const rest = sorted.slice(kMostPins);
  const rows = shown.map((pin) => [bytes(pin.bytes_held), holder(pin), pin.size ? bytes(pin.size) : '–', pin.since ?? '–',
    pin.freed_by?.join(', ') ?? '–']);
  if (rest.length) rows.push([bytes(rest.reduce((sum, pin) => sum + pin.bytes_held, 0)), `${count(rest.length)} others`, '–', '–', '–']);
  return table(`What keeps idle memory from being given back, at ${section.pins_at.moment}`,
    [number('idle'), text('held by'), number('size of the holder'), text('since'), text('freed by')], rows, 'wordy');
}

/** The parts of the view, each made when it is called: one after the other they freeze no page. */
export function memoryParts(section) {
  const part = (title, content) => () => make('div', { class: 'part' }, make('h3', {}, title), ...content());
  const parts = [() => make('div', { class: 'settings-part' }, ...settingsTable(section))];
  if (section.timeline) parts.push(part('Over the history', () => timelineChart(section.timeline)));
  if (section.categories?.length) parts.push(part('Who holds it', () => [categories(section)]));
  if (section.moment) parts.push(part('Where it lies', () => [blockMap(section, section.moment)]));
  if (section.flame) parts.push(part('Where it was allocated', () => [flameGraph(section.flame)]));
  if (section.pins?.length) parts.push(part('Pins', () => [pins(section), section.pins_tried && make('p', { class: 'hint' }, section.pins_tried)]));
  if (section.failures) parts.push(part('Failures', () => [table('Requests that failed', section.failures.columns, section.failures.rows)]));
  return parts;
}

export const memory = (section) => memoryParts(section).map((part) => part());
