// The allocator's address space over time: what is reserved, how much of it is live, and where it lies idle.
import { addChart, clipToRectangle } from './charts.js';
import { axisLook, bytes, count, escaped, gib, lastAtMost, make, tooltipLook } from './look.js';
import { Zoom, zoomOf } from './zoom.js';

const kLeft = 104;
const kRight = 14;
const kCurves = 150;
const kTop = 10;
const kGap = 16;
const kRowHeight = 2;
const kNames = ['idle', 'up to a quarter live', 'up to half live', 'up to three quarters live', 'live'];

const address = (value) => `0x${BigInt(value).toString(16)}`;

function fill(look, state) {
  if (state === 0) return look.idle;
  return ['', look['live-1'], look['live-2'], look['live-3'], look.live][state];
}

/** Cells, five numbers each, out of one array of numbers. */
export const grouped = (numbers) => Array.from({ length: numbers.length / 5 }, (_, i) => Array.from(numbers.subarray(5 * i, 5 * i + 5)));

// Rows are pieces of address space; a range is a stretch of rows without a hole.
function placeOf(section, row) {
  const range = section.ranges[Math.max(0, lastAtMost(section.ranges, row))];
  const start = BigInt(range[1]) + BigInt(row - range[0]) * BigInt(section.row_bytes);
  return { from: start, to: start + BigInt(section.row_bytes) };
}

function hover(section, [from, to, first, last, state]) {
  const begin = placeOf(section, first);
  const end = placeOf(section, last - 1);
  return `<b>${escaped(kNames[state])}</b><br>${escaped(section.units)} ${count(from)} to ${count(to)}<br>` +
    `${address(begin.from)} to ${address(end.to)}, ${bytes((last - first) * section.row_bytes)}`;
}

function curvesHover(section, at) {
  const value = (curve) => bytes(curve[Math.max(0, lastAtMost(curve, at))]?.[1] ?? 0);
  const mark = section.marks.length ? section.marks[Math.max(0, lastAtMost(section.marks, at))][1] : '';
  return `<b>${escaped(section.unit)} ${count(at)}</b>${mark ? `<br>${escaped(mark)}` : ''}<table>` +
    `<tr><td>live</td><td class="number">${value(section.live)}</td></tr>` +
    `<tr><td>reserved</td><td class="number">${value(section.reserved)}</td></tr></table>`;
}

function options(section, zoom, look) {
  const axis = axisLook(look);
  const map = kTop + kCurves + kGap;
  const grids = [{ outerBoundsMode: 'none', left: kLeft, right: kRight, top: kTop, height: kCurves },
                 { outerBoundsMode: 'none', left: kLeft, right: kRight, top: map, height: section.rows * kRowHeight }];
  const xAxis = grids.map((_, i) => ({ ...axis, type: 'value', gridIndex: i, min: zoom.low, max: zoom.high, splitLine: { show: false },
    axisLabel: { ...axis.axisLabel, show: i === 1, formatter: count }, axisTick: { show: i === 1 },
    name: i === 1 ? section.unit : '', nameLocation: 'middle', nameGap: 26 }));
  const starts = new Map(section.ranges.map(([row, start]) => [row, address(start)]));
  let labelled = -99;
  const shown = new Set(section.ranges.map(([row]) => row).filter((row) => {
    if ((row - labelled) * kRowHeight < 13) return false;
    labelled = row;
    return true;
  }));
  const line = (id, data, colour) => ({ id, type: 'line', step: 'end', silent: true, showSymbol: false, xAxisIndex: 0, yAxisIndex: 0,
    data: data.map(([x, y]) => [x, gib(y)]), lineStyle: { color: colour, width: 1.6 }, itemStyle: { color: colour } });
  return {
    backgroundColor: 'transparent',
    grid: grids,
    xAxis,
    yAxis: [
      { ...axis, type: 'value', gridIndex: 0, min: 0, name: 'GiB', nameLocation: 'middle', nameGap: 40 },
      { ...axis, type: 'value', gridIndex: 1, min: 0, max: section.rows, inverse: true, splitLine: { show: false },
        interval: 1, axisTick: { show: false }, axisLabel: { ...axis.axisLabel, fontSize: 10, fontFamily: 'monospace', hideOverlap: false,
          formatter: (row) => (shown.has(row) ? starts.get(row) : '') } },
    ],
    tooltip: { ...tooltipLook(look), trigger: 'item', formatter: ({ seriesId, value }) => (seriesId === 'map' ? hover(section, value) : '') },
    dataZoom: zoomOf(zoom, [0, 1]),
    series: [
      line('reserved', section.reserved, look.reserved),
      line('live', section.live, look.live),
      { id: 'map', type: 'custom', xAxisIndex: 1, yAxisIndex: 1, data: Array.isArray(section.cells) ? section.cells : grouped(section.cells), progressive: 0, clip: true,
        encode: { x: [0, 1], y: [2, 3] },
        renderItem: (params, api) => {
          const [x, y] = api.coord([api.value(0), api.value(2)]);
          const [right, bottom] = api.coord([api.value(1), api.value(3)]);
          const shape = clipToRectangle({ x, y, width: Math.max(1, right - x), height: bottom - y }, params.coordSys);
          return shape && { type: 'rect', shape, style: { fill: fill(look, api.value(4)) } };
        } },
    ],
  };
}

function legend() {
  const box = (name, text) => make('li', {}, make('span', { class: 'box', style: `background:var(--${name})`, 'aria-hidden': 'true' }), text);
  return make('ul', { class: 'legend' }, box('idle', 'reserved and idle'), box('live-1', 'up to a quarter live'), box('live-2', 'up to half'),
              box('live-3', 'up to three quarters'), box('live', 'live'), box('reserved', 'curve: reserved bytes'));
}

export function segments(section) {
  const zoom = new Zoom(0, Math.max(2, section.entries), section.unit, section.units);
  const height = kTop + kCurves + kGap + section.rows * kRowHeight + 48;
  const spoken = make('p', { class: 'spoken', 'aria-live': 'polite' });
  const host = make('div', { class: 'chart', style: `height:${height}px`, tabindex: '0', role: 'img', onkeydown: (event) => zoom.key(event),
    'aria-label': `Reserved and live memory over ${section.units}, and the address ranges of every segment. Keys + and − zoom, arrows move, 0 shows all.` });
  const under = make('p', { class: 'hint under' }, '\u00a0');
  addChart(host, (look) => options(section, zoom, look), (chart) => {
    zoom.join(chart);
    chart.getZr().on('mousemove', ({ offsetX, offsetY }) => {
      const inside = chart.containPixel({ gridIndex: 0 }, [offsetX, offsetY]) || chart.containPixel({ gridIndex: 1 }, [offsetX, offsetY]);
      if (!inside) return;
      const at = Math.round(chart.convertFromPixel({ xAxisIndex: 0 }, offsetX));
      under.innerHTML = curvesHover(section, at).replaceAll(/<\/?t(able|r|d)[^>]*>|<br>/g, ' ');
    });
  });
  return [make('div', { class: 'tools' }, zoom.bar(), legend()),
          make('figure', { class: 'wide' }, make('figcaption', {},
            make('p', {}, `A row is ${bytes(section.row_bytes)} of address space; holes between segments are left out. A cell shows the most that was live in ${section.stride === 1 ? `one ${section.unit}` : `${count(section.stride)} ${section.units}`}.`)), host, under, spoken)];
}
