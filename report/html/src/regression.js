// Two recordings of a program over each other: what they held at the same requests, and what is to blame.
import { addChart } from './charts.js';
import { axisLook, bytes, count, escaped, gib, lastAtMost, make, tooltipLook } from './look.js';
import { table } from './memory.js';
import { Zoom, zoomOf } from './zoom.js';

const kHeight = 340;
const kColours = ['allocated', 'reserved', 'parameter-0', 'oom'];  // golden, golden, new, new

function hover(section, at) {
  const rows = section.curves.map(({ name, points }) =>
    `<tr><td>${escaped(name)}</td><td class="number">${bytes(points[Math.max(0, lastAtMost(points, at))]?.[1] ?? 0)}</td></tr>`);
  return `<b>request ${count(at)}</b><table>${rows.join('')}</table>`;
}

function options(section, zoom, look) {
  const axis = axisLook(look);
  return {
    backgroundColor: 'transparent',
    grid: { outerBoundsMode: 'none', left: 64, right: 14, top: 14, bottom: 44 },
    xAxis: { ...axis, type: 'value', min: zoom.low, max: zoom.high, splitLine: { show: false },
      axisLabel: { ...axis.axisLabel, formatter: count }, name: 'request that both make', nameLocation: 'middle', nameGap: 26 },
    yAxis: { ...axis, type: 'value', min: 0, name: 'GiB', nameLocation: 'middle', nameGap: 40 },
    tooltip: { ...tooltipLook(look), trigger: 'axis', formatter: (shown) => hover(section, Math.round(shown[0].axisValue)) },
    dataZoom: zoomOf(zoom, [0]),
    series: section.curves.map(({ name, points }, i) => ({ id: name, name, type: 'line', step: 'end', showSymbol: false,
      data: points.map(([x, y]) => [x, gib(y)]), itemStyle: { color: look[kColours[i]] },
      lineStyle: { color: look[kColours[i]], width: 1.6, type: i % 2 === 0 ? 'solid' : 'dashed' } })),
  };
}

function chart(section) {
  const last = Math.max(2, ...section.curves.map(({ points }) => points.at(-1)?.[0] ?? 0));
  const zoom = new Zoom(0, last, 'request', 'requests');
  const host = make('div', { class: 'chart', style: `height:${kHeight}px`, tabindex: '0', role: 'img', onkeydown: (event) => zoom.key(event),
    'aria-label': 'Allocated and reserved memory of both recordings over the requests that both make. Keys + and − zoom, arrows move, 0 shows all.' });
  addChart(host, (look) => options(section, zoom, look), (made) => zoom.join(made));
  const legend = make('ul', { class: 'legend' }, ...section.curves.map(({ name }, i) =>
    make('li', {}, make('span', { class: 'box', style: `background:var(--${kColours[i]})`, 'aria-hidden': 'true' }), name)));
  return [make('div', { class: 'tools' }, zoom.bar(), legend), make('figure', { class: 'wide' }, host)];
}

export function regression(section) {
  const part = (title, ...children) => make('div', { class: 'part' }, make('h3', {}, title), ...children);
  const tables = ['blame', 'figures', 'cards'].filter((name) => section[name])
    .map((name) => table(section[name].caption, section[name].columns, section[name].rows, 'wordy'));
  const curves = section.curves.some(({ points }) => points.length) ? [part('Both time lines', ...chart(section))] : [];
  return [...tables.slice(0, 1), ...curves, ...tables.slice(1)];
}
