// Choices of what is computed again or kept in host memory: their memory over their time, and what to write.
import { addChart } from './charts.js';
import { axisLook, bytes, escaped, gib, make, tooltipLook } from './look.js';

const lost = (point) => `${((point.time - 1) * 100).toFixed(1)} %`;

function hover(point) {
  const row = (name, value) => `<tr><td>${escaped(name)}</td><td class="number">${escaped(value)}</td></tr>`;
  return `<b>${escaped(point.what)}</b><table>${row('time lost', lost(point))}${row('reserved', bytes(point.reserved))}` +
    `${row('allocated', bytes(point.allocated))}${row('fits', point.fits)}</table>`;
}

function options(section, look) {
  const axis = axisLook(look);
  const curve = (id, colour, value, more = {}) => ({ id, name: id, type: 'line', data: section.points.map((point) => [(point.time - 1) * 100, gib(value(point))]),
    symbol: 'circle', symbolSize: (_, { dataIndex }) => (dataIndex === section.best ? 13 : 7), lineStyle: { color: colour, width: 1.4 },
    itemStyle: { color: colour }, ...more });
  const usable = section.usable ? { silent: true, symbol: 'none', label: { formatter: 'usable', color: look.muted, position: 'insideEndTop' },
                                    lineStyle: { color: look.limit, type: [6, 4] }, data: [{ yAxis: gib(section.usable) }] } : undefined;
  return {
    backgroundColor: 'transparent',
    grid: { outerBoundsMode: 'none', left: 58, right: 16, top: 16, bottom: 46 },
    xAxis: { ...axis, type: 'value', min: 0, name: 'time lost, % of a step', nameLocation: 'middle', nameGap: 28 },
    yAxis: { ...axis, type: 'value', scale: true, name: 'peak, GiB', nameLocation: 'middle', nameGap: 40 },
    tooltip: { ...tooltipLook(look), formatter: ({ dataIndex }) => hover(section.points[dataIndex]) },
    series: [curve('reserved', look.reserved, (point) => point.reserved, { markLine: usable }), curve('allocated', look.allocated, (point) => point.allocated)],
  };
}

function pointsTable(section) {
  const number = (text) => make('td', { class: 'number' }, text);
  const head = (text, kind = 'number') => make('th', { scope: 'col', class: kind }, text);
  const caption = 'Each choice was replayed; times are assumed';
  return make('div', { class: 'scroll wordy choices', tabindex: '0', role: 'region', 'aria-label': caption }, make('table', {},
    make('caption', {}, caption),
    make('thead', {}, make('tr', {}, head('computed again in backward', ''), head('time lost'), head('reserved'), head('allocated'), head('fits', ''), head('to write', ''))),
    make('tbody', {}, ...section.points.map((point, i) => make('tr', {},
      make('th', { scope: 'row' }, `${i === section.best ? '★ ' : ''}${point.what}`), number(lost(point)), number(bytes(point.reserved)),
      number(bytes(point.allocated)), make('td', {}, point.fits), make('td', {}, ...point.pytorch.map((line) => make('div', {}, make('code', {}, line)))))))));
}

export function advice(section) {
  const ends = section.points.length ? `${bytes(section.points[0].reserved)} reserved as recorded, ${bytes(section.points.at(-1).reserved)} at ${lost(section.points.at(-1))}` : '';
  const host = make('div', { class: 'chart', style: 'height:340px', role: 'img', 'aria-label': `Memory over time lost: ${ends}. The table below has every point.` });
  addChart(host, (look) => options(section, look));
  return [
    make('div', { class: 'tools' }, make('ul', { class: 'legend' }, make('li', {}, make('span', { class: 'box', style: 'background:var(--reserved)', 'aria-hidden': 'true' }), ' reserved'),
      make('li', {}, make('span', { class: 'box', style: 'background:var(--allocated)', 'aria-hidden': 'true' }), ' allocated'))),
    host, pointsTable(section)];
}
