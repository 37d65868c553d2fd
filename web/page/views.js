// Answers that the report page has no section for: an explained message, what grew between two files, plans.
import { bytes, count, make } from '../../report/html/src/look.js';
import { number, table, text } from '../../report/html/src/memory.js';

const part = (title, ...children) => make('div', { class: 'part' }, make('h3', {}, title), ...children);
const list = (entries) => make('ul', {}, ...entries.map((entry) => make('li', {}, entry)));
const capital = (sentence) => sentence.charAt(0).toUpperCase() + sentence.slice(1);
const words = (name) => name.replaceAll('_', ' ');

/** What stands below an answer: all that the program prints in a terminal. */
export const terminal = (answer) => make('details', { class: 'terminal' }, make('summary', {}, 'As in a terminal'),
  make('pre', { tabindex: '0' }, answer.text.trim()));

/** What `explain` said. */
export function explained(answer) {
  const parts = [make('p', { class: 'verdict' }, `Cause: ${answer.cause}. ${capital(answer.verdict)}.`)];
  parts.push(...answer.notes.map((note) => make('p', { class: 'note' }, note)));
  const todo = [...answer.commands.map((command) => make('code', {}, command)), ...answer.steps, ...answer.checks_next];
  if (todo.length) parts.push(part('What to do', list(todo)));
  if (answer.possible_causes.length) {
    parts.push(part('Possible causes', table('Causes that the figures leave open', [text('cause'), text('speaks for it'), text('how to tell')],
      answer.possible_causes.map((one) => [one.cause, one.speaks_for, one.how_to_tell]), 'wordy')));
  }
  const computed = new Set(answer.computed);
  parts.push(part('Figures', table('What the message says; computed is what follows from it', [text('figure'), number('size'), number('bytes'), text('from')],
    Object.entries(answer.figures).map(([name, value]) => [words(name), bytes(value), count(value), computed.has(name) ? 'computed' : 'message']))));
  if (answer.advice.length) {
    parts.push(part('What each measure would do', table('Measures', [text('measure'), text('helps'), text('why')],
      answer.advice.map((one) => [one.measure, one.helps, one.why]), 'wordy')));
  }
  if (answer.checks.length) {
    parts.push(part('What was checked', table('Checks of the figures against each other', [text('check'), text('outcome'), text('remark')],
      answer.checks.map((one) => [one.check, one.outcome, one.remark]), 'wordy')));
  }
  return parts;
}

const signed = (value) => (value > 0 ? `+${bytes(value)}` : value < 0 ? `−${bytes(-value)}` : '0');
const kMostGrown = 20;

function grownTable(caption, key, rows) {
  const sorted = [...rows].sort((a, b) => Math.abs(b.growth_bytes) - Math.abs(a.growth_bytes));
  const shown = sorted.slice(0, kMostGrown).map((row) => [row[key], bytes(row.a_bytes), bytes(row.b_bytes), signed(row.growth_bytes), count(row.a_blocks), count(row.b_blocks)]);
  const rest = sorted.slice(kMostGrown);
  const sum = (name) => rest.reduce((total, row) => total + row[name], 0);
  if (rest.length) shown.push([`${count(rest.length)} others`, bytes(sum('a_bytes')), bytes(sum('b_bytes')), signed(sum('growth_bytes')), count(sum('a_blocks')), count(sum('b_blocks'))]);
  return table(caption, [text(words(key)), number('A'), number('B'), number('growth'), number('blocks A'), number('blocks B')], shown, 'wordy');
}

/** What `diff` said of two snapshots. */
export function differences(answer) {
  const parts = [make('p', { class: 'head' }, `A is ${answer.a}, B is ${answer.b}; each at its peak.`)];
  for (const device of answer.devices) {
    const whole = [['requested', device.requested], ['rounding, tails, cached', device.rest], ['reserved', device.reserved]];
    parts.push(part(`Device ${device.device}`,
      table('All memory', [text('memory'), number('A'), number('B'), number('growth')],
        whole.map(([name, one]) => [name, bytes(one.a_bytes), bytes(one.b_bytes), signed(one.growth_bytes)])),
      grownTable('By place', 'frame', device.by_frame), grownTable('By size of block', 'size_class', device.by_size_class)));
  }
  return parts;
}

/** What `plan` said: the least memory there is. */
export function plans(answer) {
  const rows = answer.plans.map((plan) => [plan.file, count(plan.device), count(plan.blocks), bytes(plan.load_bytes), bytes(plan.bound_bytes), bytes(plan.planned_bytes),
    plan.certified ? 'none needs less' : `at most ${(100 * plan.gap).toFixed(2)} % too much`, plan.recorded_reserved_bytes ? bytes(plan.recorded_reserved_bytes) : '–']);
  return [table('A plan of all addresses', [text('file'), number('device'), number('blocks'), number('most live'), number('bound'), number('plan'), text('proof'), number('reserved as recorded')], rows)];
}
