// Colours, numbers and small pieces of the page that every view shares.

/** The page's colours as they are now: the style sheet holds them, once for light and once for dark. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  return new Proxy({}, { get: (known, name) => (known[name] ??= style.getPropertyValue(`--${String(name)}`).trim()) });
}

export const parameterColour = (look, index) => look[`parameter-${index % 4}`];

const kGiB = 2 ** 30;

/** Bytes as people read them; up to 100 GiB with one digit more than the terminal shows of GiB. */
export function bytes(value) {
  const size = Math.abs(value);
  if (value === 0) return '0';
  if (size >= kGiB) return `${(value / kGiB).toFixed(size >= 100 * kGiB ? 0 : 2)} GiB`;
  if (size >= 2 ** 20) return `${(value / 2 ** 20).toFixed(1)} MiB`;
  if (size >= 2 ** 10) return `${(value / 2 ** 10).toFixed(1)} KiB`;
  return `${value} B`;
}

export const gib = (value) => value / kGiB;

export function seconds(value) {
  if (value === 0) return '0 s';
  if (value < 1) return `${(value * 1000).toPrecision(3)} ms`;
  if (value < 120) return `${value.toFixed(1)} s`;
  if (value < 7200) return `${(value / 60).toFixed(1)} min`;
  if (value < 172800) return `${(value / 3600).toFixed(1)} h`;
  return `${(value / 86400).toFixed(1)} d`;
}

export const count = (value) => Math.round(value).toLocaleString('en-GB').replaceAll(',', '\u202f');

/** A metric's value in its unit; what is not there is a dash. */
export function figure(value, unit) {
  if (value === null || value === undefined) return '–';
  if (unit === 'share') return `${(100 * value).toFixed(1)} %`;
  if (unit === 'bytes') return bytes(value);
  if (unit === 's') return seconds(value);
  const size = Math.abs(value);
  if (unit === 'count') return count(value);
  if (size >= 1e5) return `${(value / 1e6).toFixed(size >= 1e8 ? 0 : 2)} M`;
  if (Number.isInteger(value)) return count(value);
  return size >= 1e4 ? count(value) : size >= 10 ? value.toFixed(1) : value.toPrecision(3);
}

/** An element: make('p', {class: 'x'}, 'text', child, ...). Text is never taken for markup. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const escaped = (text) =>
  String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** The place of the last element whose x is at most `x`, in a list of [x, ...] that ascends; -1 if none. */
export function lastAtMost(list, x, key = (one) => one[0]) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(list[middle]) <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** What every chart's axes have in common. */
export function axisLook(look) {
  return {
    axisLine: { lineStyle: { color: look.axis } },
    axisTick: { lineStyle: { color: look.axis } },
    axisLabel: { color: look.muted, fontSize: 11, hideOverlap: true },
    splitLine: { lineStyle: { color: look.grid } },
    nameTextStyle: { color: look.muted, fontSize: 11 },
  };
}

/** What every hover box has in common. */
export function tooltipLook(look) {
  return {
    confine: true,
    backgroundColor: look.raised,
    borderColor: look.line,
    padding: [8, 10],
    textStyle: { color: look.text, fontSize: 12 },
    extraCssText: 'max-width:min(420px,88vw);white-space:normal;box-shadow:0 4px 16px rgb(0 0 0 / .18)',
  };
}

/** What draws itself again when the look changes: [host, draw]. */
let drawings = [];

export function onRedraw(host, draw) { drawings.push([host, draw]); }

export function redrawDrawings() {
  for (const [, draw] of drawings) draw();
}

/** Lets go of what was taken out of the page. */
export function forgetRemovedDrawings() { drawings = drawings.filter(([host]) => host.isConnected); }
