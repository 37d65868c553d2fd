// Searches side by side: which batch was tried when, what it needed, and where the search came to rest.
import { addChart } from './charts.js';
import { axisLook, bytes, count, escaped, gib, make, tooltipLook } from './look.js';
import { allMetrics, metricsTable } from './table.js';
import { Zoom, zoomOf } from './zoom.js';

const kCross = 'path://M2,0 L5,3 L8,0 L10,2 L7,5 L10,8 L8,10 L5,7 L2,10 L0,8 L3,5 L0,2 Z';
const kLadder = 190;
const kMemory = 120;

const fits = (trial) => trial.outcome === 'ok';
const ranOut = (trial) => trial.outcome === 'oom';

function hover(policy, index) {
  const trial = policy.trials[index];
  if (!trial) return '';
  const row = (name, value) => (value === undefined || value === null ? '' : `<tr><td>${escaped(name)}</td><td class="number">${escaped(value)}</td></tr>`);
  const size = (value) => (typeof value === 'number' ? bytes(value) : value);
  return `<b>trial ${index + 1}: batch ${count(trial.batch)}</b><table>` + row('outcome', trial.outcome) + row('phase', trial.phase) +
    row('before', size(trial.start_bytes)) + row('peak', size(trial.peak_bytes)) + row('after', size(trial.current_bytes)) +
    row('a sample', size(trial.bytes_per_sample)) + '</table>';
}

const kColumns = ['found', 'batch', 'edge_batch', 'probes', 'probe_s', 'probe_ooms', 'extrapolated', 'headroom_bytes', 'epoch_survived',
                  'epoch_peak_ratio', 'epoch_samples_per_s'];

function options(section, policy, zoom, look) {
  const axis = axisLook(look);
  const { trials } = policy;
  const high = Math.max(...section.policies.flatMap((one) => one.trials.map((trial) => trial.batch)), policy.batch ?? 1, 2);
  const xAxis = [0, 1].map((i) => ({ ...axis, type: 'value', gridIndex: i, min: zoom.low, max: zoom.high,
    splitLine: { show: false }, axisLabel: { ...axis.axisLabel, show: i === 1, formatter: (value) => (Number.isInteger(value) ? value : '') }, axisTick: { show: i === 1 },
    name: i === 1 ? 'trial' : '', nameLocation: 'middle', nameGap: 24, axisPointer: { show: true, label: { show: false } } }));
  const found = policy.found ? { silent: true, symbol: 'none', label: { formatter: `found ${policy.batch}`, color: look.text, position: 'insideEndTop' },
                                 lineStyle: { color: look.accent, type: 'solid', width: 1.4 }, data: [{ yAxis: policy.batch }] } : undefined;
  const limit = section.limit ? { silent: true, symbol: 'none', label: { formatter: 'limit', color: look.muted, position: 'insideEndTop' },
                                  lineStyle: { color: look.limit, type: [6, 4] }, data: [{ yAxis: gib(section.limit) }] } : undefined;
  const mark = (id, grid, choose, value, symbol, colour) => ({ id, type: 'scatter', xAxisIndex: grid, yAxisIndex: grid, symbol, symbolSize: 10, z: 4,
    itemStyle: { color: colour }, data: trials.flatMap((trial, i) => (choose(trial) ? [[i + 1, value(trial)]] : [])) });
  return {
    backgroundColor: 'transparent',
    grid: [{ outerBoundsMode: 'none', left: 58, right: 16, top: 12, height: kLadder }, { outerBoundsMode: 'none', left: 58, right: 16, top: 12 + kLadder + 16, height: kMemory }],
    xAxis,
    yAxis: [
      { ...axis, type: 'log', logBase: 2, gridIndex: 0, min: 1, max: 2 ** Math.ceil(Math.log2(high * 1.05)), name: 'batch', nameLocation: 'middle', nameGap: 38 },
      { ...axis, type: 'value', gridIndex: 1, min: 0, name: 'peak, GiB', nameLocation: 'middle', nameGap: 38,
        max: section.limit ? gib(section.limit) * 1.08 : undefined, axisLabel: { ...axis.axisLabel, showMaxLabel: false } },
    ],
    axisPointer: { link: [{ xAxisIndex: 'all' }] },
    dataZoom: zoomOf(zoom, [0, 1]),
    tooltip: { trigger: 'axis', ...tooltipLook(look), formatter: (shown) => hover(policy, Math.round(shown[0].axisValue) - 1) },
    series: [
      { id: 'ladder', type: 'line', step: 'middle', xAxisIndex: 0, yAxisIndex: 0, showSymbol: false, silent: true, data: trials.map((trial, i) => [i + 1, trial.batch]),
        lineStyle: { color: look.reserved, width: 1.4 }, markLine: found },
      mark('fits', 0, fits, (trial) => trial.batch, 'circle', look.allocated),
      mark('fails', 0, ranOut, (trial) => trial.batch, kCross, look.oom),
      mark('others', 0, (trial) => !fits(trial) && !ranOut(trial), (trial) => trial.batch, 'diamond', look.retry),
      { id: 'peaks', type: 'custom', xAxisIndex: 1, yAxisIndex: 1, silent: true, encode: { x: 0, y: 1 },
        data: trials.map((trial, i) => [i + 1, gib(trial.peak_bytes ?? 0), fits(trial) ? 0 : ranOut(trial) ? 1 : 2]), markLine: limit,
        renderItem: (params, api) => {
          const [x, y] = api.coord([api.value(0), api.value(1)]);
          const [, base] = api.coord([api.value(0), 0]);
          const width = Math.max(2, Math.min(26, api.size([1, 0])[0] * 0.7));
          return { type: 'rect', shape: { x: x - width / 2, y, width, height: base - y }, style: { fill: [look.allocated, look.oom, look.retry][api.value(2)], opacity: 0.8 } };
        } },
    ],
  };
}

function card(section, policy, zoom) {
  const outcome = policy.found ? `found batch ${policy.batch}` : 'found none';
  const edge = policy.edge_batch ? `; the edge is at ${policy.edge_batch}` : '';
  const room = typeof policy.headroom_bytes === 'number' ? `, ${bytes(policy.headroom_bytes)} to spare` : '';
  const facts = `${outcome} in ${policy.trials.length} trials${edge}${room}`;
  const host = make('div', { class: 'chart', style: `height:${12 + kLadder + 16 + kMemory + 44}px`, tabindex: '0', role: 'img', 'aria-label': `${policy.label}: ${facts}. Keys + and − zoom, arrows move, 0 shows all.`, onkeydown: (event) => zoom.key(event) });
  addChart(host, (look) => options(section, policy, zoom, look), (chart) => zoom.join(chart));
  return make('figure', { class: 'card' }, make('figcaption', {}, make('h3', {}, policy.label), make('p', {}, facts), policy.reason ? make('p', {}, policy.reason) : null), host);
}

export function search(section) {
  const zoom = new Zoom(0.5, Math.max(2, ...section.policies.map((one) => one.trials.length)) + 0.5, 'trial');
  const columns = kColumns.map((name) => section.metrics.find((metric) => metric.name === name))
                          .filter((metric) => section.results.some((row) => metric.name in row.metrics));
  return [
    metricsTable(section.results, columns, 'Searchers; ★ marks the best of a column, of those that finished'),
    allMetrics(section.results, section.metrics),
    make('div', { class: 'tools' }, zoom.bar(),
      make('ul', { class: 'legend' }, make('li', {}, '● fits'), make('li', {}, '× runs out of memory'), make('li', {}, '◆ ends otherwise'), make('li', {}, 'bars: peak of each trial'))),
    make('div', { class: 'cards' }, ...section.policies.map((policy) => card(section, policy, zoom))),
  ];
}
