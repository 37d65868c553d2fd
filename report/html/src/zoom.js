// One stretch of the horizontal axis for all charts of a section: buttons, numbers and keys set it, and so does
// dragging or pinching in any chart.
import { make } from './look.js';

export class Zoom {
  constructor(low, high, unit, units = `${unit}s`) {
    Object.assign(this, { low, high, unit, units, from: low, to: high, listeners: [], members: [] });
  }

  /** A chart that follows and leads; its data zooms all have the id `zoom`. */
  join(chart) {
    this.members.push(chart);
    chart.on('datazoom', () => {
      if (this.telling) return;
      const { startValue, endValue } = chart.getOption().dataZoom[0];
      this.set(startValue, endValue, chart);
    });
    if (this.from !== this.low || this.to !== this.high) this.tell(chart);
  }

  set(from, to, source = null) {
    const least = Math.min(4, this.high - this.low);
    const span = Math.max(least, Math.min(to - from, this.high - this.low));
    this.from = Math.max(this.low, Math.min(from, this.high - span));
    this.to = this.from + span;
    for (const chart of this.members) if (chart !== source) this.tell(chart);
    for (const listener of this.listeners) listener(this);
  }

  tell(chart) {
    this.telling = true;
    chart.dispatchAction({ type: 'dataZoom', dataZoomIndex: 0, startValue: this.from, endValue: this.to });
    this.telling = false;
  }

  scale(factor) {
    const middle = (this.from + this.to) / 2;
    const half = (this.to - this.from) * factor / 2;
    this.set(middle - half, middle + half);
  }

  move(share) {
    const step = (this.to - this.from) * share;
    this.set(this.from + step, this.to + step);
  }

  reset() { this.set(this.low, this.high); }

  key(event) {
    const actions = { '+': () => this.scale(0.5), '=': () => this.scale(0.5), '-': () => this.scale(2),
                      ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25), 0: () => this.reset() };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
    actions[event.key]();
    event.preventDefault();
  }

  /** The bar of buttons and the two numbers. */
  bar() {
    const button = (text, name, action) =>
      make('button', { type: 'button', title: name, 'aria-label': name, onclick: action }, text);
    const number = (name, take) => make('input', { type: 'number', 'aria-label': name, min: this.low, max: this.high,
                                                   onchange: (event) => take(Number(event.target.value)) });
    const from = number(`first ${this.unit}`, (value) => this.set(value, Math.max(value, this.to)));
    const to = number(`last ${this.unit}`, (value) => this.set(Math.min(value, this.from), value));
    const show = () => {
      from.value = Math.round(this.from);
      to.value = Math.round(this.to);
    };
    this.listeners.push(show);
    show();
    return make('div', { class: 'zoom', role: 'group', 'aria-label': `${this.units} shown` },
      make('span', { class: 'label' }, this.units), from, make('span', {}, 'to'), to,
      button('+', 'zoom in (key +)', () => this.scale(0.5)), button('−', 'zoom out (key −)', () => this.scale(2)),
      button('◀', 'earlier (key ←)', () => this.move(-0.5)), button('▶', 'later (key →)', () => this.move(0.5)),
      button('All', 'show everything (key 0)', () => this.reset()),
      make('span', { class: 'hint' }, 'Ctrl + wheel or pinch zooms, dragging moves, all charts follow'));
  }
}

/** The data zoom that goes with it, for the axes `xAxisIndex`. */
export const zoomOf = (zoom, xAxisIndex) => [{
  type: 'inside', xAxisIndex, startValue: zoom.from, endValue: zoom.to, filterMode: 'none',
  zoomOnMouseWheel: 'ctrl', moveOnMouseMove: true, moveOnMouseWheel: false, preventDefaultMouseMove: false,
  minValueSpan: Math.min(4, zoom.high - zoom.low),
}];
