// A flame graph of bytes by stack: the outermost frame above, what it called below it, as wide as what was allocated
// there. A frame is a button that makes it the whole width.
import { bytes, make } from './look.js';

const kRow = 22;
const kLeastShare = 0.002;  // of the width: what is narrower is left out
const kNamed = 0.03;
const kAtOnce = 600;  // frames: thousands in one go would hold the page up

/** A frame without the folders that all share: the last two parts of its path. */
const shortName = (name) => name.replace(/^\S*[/\\](?=[^/\\\s]*[/\\][^/\\\s]*)/, '');

const kHues = [24, 32, 14, 40, 8, 46];
const hueOf = (name) => kHues[[...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 9973, 7) % kHues.length];

function frames(part, whole, left, depth, out) {
  out.push({ part, left, width: part.bytes / whole, depth });
  let at = left;
  for (const child of [...(part.parts ?? [])].sort((a, b) => b.bytes - a.bytes)) {
    const width = child.bytes / whole;
    if (width >= kLeastShare) frames(child, whole, at, depth + 1, out);
    at += width;
  }
}

/** `root`: {name, bytes, parts}. */
export function flameGraph(root) {
  const host = make('div', { class: 'flame' });
  const path = [root];
  const frame = ({ part, left, width, depth }) => {
    const text = `${part.name}: ${bytes(part.bytes)}, ${(100 * part.bytes / root.bytes).toFixed(1)} %`;
    return make('button', { type: 'button', title: text, 'aria-label': text, onclick: () => zoomTo(part),
      style: `left:${(100 * left).toFixed(3)}%;width:calc(${(100 * width).toFixed(3)}% - 1px);top:${depth * kRow}px;--hue:${hueOf(part.name)}${width > kNamed ? '' : ';padding:0'}` },
      width > kNamed ? shortName(part.name) : '');
  };
  let shown = null;
  const add = (all, from) => {
    if (all !== shown) return;  // another part was chosen meanwhile
    host.append(...all.slice(from, from + kAtOnce).map(frame));
    if (from + kAtOnce < all.length) setTimeout(() => add(all, from + kAtOnce), 20);
  };
  const show = () => {
    const top = path.at(-1);
    const all = [];
    frames(top, top.bytes, 0, path.length - 1, all);
    path.slice(0, -1).forEach((part, depth) => all.push({ part, left: 0, width: 1, depth }));
    host.style.height = `${(Math.max(...all.map(({ depth }) => depth)) + 1) * kRow}px`;
    host.replaceChildren();
    shown = all;
    add(all, 0);
  };
  const lineTo = (part, wanted) => {
    if (part === wanted) return [part];
    for (const child of part.parts ?? []) {
      const rest = lineTo(child, wanted);
      if (rest) return [part, ...rest];
    }
    return null;
  };
  const zoomTo = (part) => {
    path.splice(0, path.length, ...lineTo(root, part));
    show();
  };
  show();
  return make('figure', { class: 'wide' }, host);
}
