// Tables of metrics: policies as rows, what is better marked by a sign and not by colour alone.
import { figure, make } from './look.js';

const direction = { more: '↑', less: '↓' };
const directionText = { more: 'more is better', less: 'less is better' };

/** Those rows whose figure is the best of its column, if there is anything to choose between. */
function best(rows, metric) {
  if (!metric.better) return [];
  const values = rows.filter((row) => !row.reference).map((row) => row.metrics[metric.name])
                     .filter((value) => value !== null && value !== undefined);
  if (new Set(values).size < 2) return [];
  const top = metric.better === 'more' ? Math.max(...values) : Math.min(...values);
  return rows.filter((row) => !row.reference && row.metrics[metric.name] === top);
}

function heading(metric, sort) {
  const button = make('button', { type: 'button', title: `${metric.about}. Sort by it.`, onclick: sort }, metric.title);
  if (metric.better) {
    button.append(' ', make('span', { class: 'direction', 'aria-label': directionText[metric.better] },
                            direction[metric.better]));
  }
  return make('th', { scope: 'col', class: 'number' }, button);
}

/** `rows`: {label, note, metrics, reference}; `metrics`: those shown as columns, in order. */
export function metricsTable(rows, metrics, caption) {
  let order = rows;
  let sorted = null;
  const body = make('tbody');
  const heads = [];
  const fill = () => {
    body.replaceChildren(...order.map((row) => make(
      'tr', { class: row.reference ? 'reference' : '' },
      make('th', { scope: 'row' }, row.label, row.note ? make('small', {}, row.note) : null),
      ...metrics.map((metric) => {
        const text = figure(row.metrics[metric.name], metric.unit);
        const isBest = best(rows, metric).includes(row);
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
            const isBest = best(rows, metric).includes(row);
            return make('td', { class: isBest ? 'number best' : 'number' },
                        figure(row.metrics[metric.name], metric.unit),
                        isBest ? make('span', { class: 'star', 'aria-label': 'best' }, '★') : null);
          }),
          make('td', { class: 'meaning' }, metric.about, metric.better ? `; ${directionText[metric.better]}` : '')))))));
}
