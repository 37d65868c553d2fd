// A sweep: one metric over two of the things that were varied, the rest fixed or averaged.
import { addChart } from './charts.js';
import { axisLook, escaped, figure, make, tooltipLook } from './look.js';

const kMean = 'mean';
const kMostRows = 50;

class Sweep {
  constructor(section) {
    this.section = section;
    this.dimensions = [...section.axes, { name: 'policy', values: section.policies }];
    this.policyDimension = this.dimensions.length - 1;
    this.x = 0;
    this.y = section.axes.length > 1 ? 1 : this.policyDimension;
    this.metric = Math.max(0, section.metrics.findIndex((metric) => metric.name === section.shown));
    this.fixed = this.dimensions.map((_, i) => (i === this.policyDimension ? 0 : kMean));
  }

  /** Sum and number of what falls into each cell of x and y. */
  cells() {
    const sums = new Map();
    this.section.runs.forEach((run) => this.section.policies.forEach((_, policy) => {
      const at = [...run.at, policy];
      const value = run.values[policy]?.[this.metric];
      if (value === null || value === undefined) return;
      if (this.fixed.some((fixed, i) => i !== this.x && i !== this.y && fixed !== kMean && at[i] !== fixed)) return;
      const key = `${at[this.x]},${at[this.y]}`;
      const sum = sums.get(key) ?? { x: at[this.x], y: at[this.y], sum: 0, runs: 0 };
      sum.sum += value;
      ++sum.runs;
      sums.set(key, sum);
    }));
    return [...sums.values()].map(({ x, y, sum, runs }) => [x, y, sum / runs, runs]).sort((a, b) => a[1] - b[1] || a[0] - b[0]);
  }

  get description() { return this.section.metrics[this.metric]; }

  text([x, y, value, runs]) {
    const [first, second] = [this.dimensions[this.x], this.dimensions[this.y]];
    const spread = runs > 1 ? ` (mean of ${runs} runs)` : '';
    return `${first.name} ${first.values[x]}, ${second.name} ${second.values[y]}: ${this.description.title} ${figure(value, this.description.unit)}${spread}`;
  }
}

// Where black text has more contrast than white: a relative luminance of 0.18, which is grey 118.
const light = (colour) => {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 118;
};

function between(low, high, share) {
  const part = (i) => Math.round(parseInt(low.slice(i, i + 2), 16) * (1 - share) + parseInt(high.slice(i, i + 2), 16) * share);
  return `#${[1, 3, 5].map((i) => part(i).toString(16).padStart(2, '0')).join('')}`;
}

function options(sweep, look, width) {
  const axis = axisLook(look);
  const [x, y] = [sweep.dimensions[sweep.x], sweep.dimensions[sweep.y]];
  const cells = sweep.cells();
  const values = cells.map((cell) => cell[2]);
  const low = values.length ? Math.min(...values) : 0;
  const high = values.length ? Math.max(...values) : 1;
  const longest = Math.max(...y.values.map((value) => String(value).length), y.name.length);
  const left = Math.min(width * 0.35, 20 + longest * 6.6);
  const room = (width - left - 20) / x.values.length;
  const roomy = room > 52;
  const { unit } = sweep.description;
  const colour = (value) => between(look.low, look.high, high > low ? (value - low) / (high - low) : 0.5);
  return {
    backgroundColor: 'transparent',
    grid: { left, right: 20, top: 24, bottom: 92 },
    xAxis: { ...axis, type: 'category', data: x.values, name: x.name, nameLocation: 'middle', nameGap: 26, splitLine: { show: false } },
    yAxis: { ...axis, type: 'category', data: y.values, inverse: true, name: y.name, nameLocation: 'start', splitLine: { show: false },
             axisLabel: { ...axis.axisLabel, width: left - 12, overflow: 'truncate' } },
    tooltip: { ...tooltipLook(look), formatter: ({ value }) => escaped(sweep.text(value)) },
    dataZoom: [{ type: 'inside', xAxisIndex: 0, zoomOnMouseWheel: 'ctrl' }, { type: 'inside', yAxisIndex: 0, zoomOnMouseWheel: 'ctrl' }]
      .map((one) => ({ ...one, filterMode: 'empty', moveOnMouseWheel: false, preventDefaultMouseMove: false })),
    visualMap: { min: low, max: high > low ? high : low + 1, dimension: 2, calculable: true, orient: 'horizontal', left: 'center', bottom: 6,
                 itemWidth: 14, itemHeight: Math.min(260, width * 0.5), inRange: { color: [look.low, look.high] },
                 textStyle: { color: look.muted, fontSize: 11 }, formatter: (value) => figure(value, unit) },
    series: [{ type: 'heatmap', data: cells.map((cell) => ({ value: cell, label: { color: light(colour(cell[2])) ? '#10161d' : '#ffffff' } })),
               label: { show: roomy, fontSize: 11, formatter: ({ value }) => figure(value[2], unit) },
               itemStyle: { borderColor: look.raised, borderWidth: x.values.length > 60 ? 0 : 1 },
               emphasis: { itemStyle: { borderColor: look.text, borderWidth: 2 } } }],
  };
}

function choice(name, entries, chosen, take) {
  const select = make('select', { onchange: (event) => take(event.target.value) },
    ...entries.map(([value, text]) => make('option', { value, selected: String(value) === String(chosen) }, text)));
  return make('label', {}, name, select);
}

// The best of the runs by the metric shown, those that did not finish behind the others; the oracle is what
// they are measured by, and no choice.
function runsTable(sweep) {
  const { section } = sweep;
  const way = sweep.description.better === 'less' ? 1 : -1;
  const last = section.metrics.findIndex((metric) => metric.name === 'finished');
  const lost = (row) => (last >= 0 && row.values[last] !== 1 ? 1 : 0);
  const rows = section.runs.flatMap((run) => section.policies.map((policy, i) => ({ run, policy, values: run.values[i] })))
    .filter((row) => row.policy !== 'oracle' && typeof row.values?.[sweep.metric] === 'number')
    .sort((a, b) => lost(a) - lost(b) || way * (a.values[sweep.metric] - b.values[sweep.metric]));
  const order = [sweep.metric, ...section.columns.filter((i) => i !== sweep.metric)];
  const head = (text, kind) => make('th', { scope: 'col', class: kind }, text);
  const caption = rows.length > kMostRows ? `The first ${kMostRows} of ${rows.length} results by ${sweep.description.title}` : `All results by ${sweep.description.title}`;
  return make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption }, make('table', {},
    make('caption', {}, caption),
    make('thead', {}, make('tr', {}, ...section.axes.map((axis) => head(axis.name)), head('policy'),
                          ...order.map((i) => head(section.metrics[i].title, 'number')))),
    make('tbody', {}, ...rows.slice(0, kMostRows).map((row) => make('tr', {},
      ...row.run.at.map((at, i) => make('td', {}, String(section.axes[i].values[at]))),
      make('td', {}, row.policy, lost(row) ? make('small', { class: 'lost' }, ' ✗ did not finish') : null),
      ...order.map((i) => make('td', { class: 'number' }, figure(row.values[i], section.metrics[i].unit))))))));
}

export function sweep(section) {
  const state = new Sweep(section);
  const choices = make('div', { class: 'choices' });
  const table = make('div');
  const spoken = make('p', { class: 'spoken', 'aria-live': 'polite' });
  let cursor = 0;
  const height = () => 116 + Math.max(3, state.dimensions[state.y].values.length) * (state.dimensions[state.y].values.length > 30 ? 16 : 30) + 24;
  const host = make('div', { class: 'chart', tabindex: '0', role: 'img', onkeydown: (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: state.dimensions[state.x].values.length, ArrowUp: -state.dimensions[state.x].values.length };
    if (!(event.key in steps) || !entry.chart) return;
    const cells = state.cells();
    cursor = Math.max(0, Math.min(cells.length - 1, cursor + steps[event.key]));
    entry.chart.dispatchAction({ type: 'showTip', seriesIndex: 0, dataIndex: cursor });
    spoken.textContent = state.text(cells[cursor]);
    event.preventDefault();
  } });
  const entry = addChart(host, (look, width) => options(state, look, width));
  const show = () => {
    const names = state.dimensions.map((dimension, i) => [i, dimension.name]);
    const set = (name) => (value) => {
      const other = name === 'x' ? 'y' : 'x';
      if (Number(value) === state[other]) state[other] = state[name];
      state[name] = Number(value);
      show();
    };
    choices.replaceChildren(
      choice('metric', section.metrics.map((metric, i) => [i, metric.title]), state.metric, (value) => { state.metric = Number(value); show(); }),
      choice('across', names, state.x, set('x')), choice('down', names, state.y, set('y')),
      ...state.dimensions.flatMap((dimension, i) => {
        if (i === state.x || i === state.y) return [];
        const entries = dimension.values.map((value, v) => [v, String(value)]);
        if (i !== state.policyDimension) entries.unshift([kMean, 'mean of all']);
        return [choice(dimension.name, entries, state.fixed[i], (value) => { state.fixed[i] = value === kMean ? kMean : Number(value); show(); })];
      }));
    host.style.height = `${height()}px`;
    host.setAttribute('aria-label', `Heat map of ${state.description.title} over ${state.dimensions[state.x].name} and ${state.dimensions[state.y].name}; arrow keys walk the cells.`);
    cursor = 0;
    if (entry.chart) {
      entry.chart.resize();
      entry.redraw();
    }
    table.replaceChildren(runsTable(state));
    caption.textContent = `${state.description.about}${state.description.better ? `; ${state.description.better} is better` : ''}`;
  };
  const caption = make('p');
  show();
  return [choices, make('figure', { class: 'wide' }, make('figcaption', {}, caption), host, spoken), table];
}
