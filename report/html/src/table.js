// Tables of metrics: policies as rows, what is better marked by a sign and not by colour alone.
import { figure, make } from './look.js';

const direction = { more: '↑', less: '↓' };
const directionText = { more: 'more is better', less: 'less is better' };

/** Whether the row has the best figure of its column, by the one rule of the program. */
const isBestOf = (row, metric) => (row.best_in ?? []).includes(metric.name);

/** What stands below a row's label. */
function notes(row) {
  return [row.note ? make('small', {}, row.note) : null, row.lost ? make('small', { class: 'lost' }, `✗ ${row.lost}`) : null];
}

function heading(metric, sort) {
  const button = make('button', { type: 'button', title: `${metric.about}. Sort by it.`, onclick: sort }, metric.title);
  if (metric.better) {
    button.append(' ', make('span', { class: 'direction', 'aria-label': directionText[metric.better] },
                            direction[metric.better]));
  }
  return make('th', { scope: 'col', class: 'number' }, button);
}

/** `rows`: {label, note, lost, best_in, metrics, reference}; `metrics`: those shown as columns, in order. */
export function metricsTable(rows, metrics, caption) {
  let order = rows;
  let sorted = null;
  const body = make('tbody');
  const heads = [];
  const fill = () => {
    body.replaceChildren(...order.map((row) => make(
      'tr', { class: row.reference ? 'reference' : '' },
      make('th', { scope: 'row' }, row.label, ...notes(row)),
      ...metrics.map((metric) => {
        const text = figure(row.metrics[metric.name], metric.unit);
        const isBest = isBestOf(row, metric);
        return make('td', { class: isBest ? 'number best' : 'number' }, text,
                    isBest ? make('span', { class: 'star', 'aria-label': 'best' }, '★') : null);
      }))));
  };
  const sortBy = (metric, head) => () => {
    const sign = sorted === metric.name ? 1 : -1;
    sorted = sorted === metric.name ? null : metric.name;
    const value = (row) => row.metrics[metric.name] ?? -Infinity;
    const way = metric.better === 'less' ? -1 : 1;
    order = [...rows].sort((a, b) => sign * way * (value(a) - value(b)));
    heads.forEach((other) => other.removeAttribute('aria-sort'));
    head().setAttribute('aria-sort', sign * way < 0 ? 'descending' : 'ascending');
    fill();
  };
  metrics.forEach((metric, i) => heads.push(heading(metric, sortBy(metric, () => heads[i]))));
  fill();
  return make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
              make('table', {}, make('caption', {}, caption),
                   make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'policy'), ...heads)), body));
}

/** Every metric with its unit and meaning, one a row. */
export function allMetrics(rows, metrics) {
  const shown = metrics.filter((metric) => rows.some((row) => metric.name in row.metrics));
  return make('details', {}, make('summary', {}, `All ${shown.length} metrics, with their meaning`),
    make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'All metrics' },
      make('table', { class: 'all' },
        make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'metric'),
          ...rows.map((row) => make('th', { scope: 'col', class: 'number' }, row.label)),
          make('th', { scope: 'col' }, 'meaning'))),
        make('tbody', {}, ...shown.map((metric) => make('tr', {},
          make('th', { scope: 'row' }, make('code', {}, metric.name)),
          ...rows.map((row) => {
            const isBest = isBestOf(row, metric);
            return make('td', { class: isBest ? 'number best' : 'number' },
                        figure(row.metrics[metric.name], metric.unit),
                        isBest ? make('span', { class: 'star', 'aria-label': 'best' }, '★') : null);
          }),
          make('td', { class: 'meaning' }, metric.about, metric.better ? `; ${directionText[metric.better]}` : '')))))));
}
