// Every segment at one moment, as long as it is, one behind the other in the order of addresses: who owns which block,
// since when, and what lies idle between them.
import { bytes, colours, count, escaped, lastAtMost, make, onRedraw } from './look.js';
import { categoryColour } from './timeline.js';

const kRow = 15;
const kRowGap = 3;
const kSegmentGap = 3;
const kMostRows = 40;

/** Blocks with the place of their first byte, as if all segments lay one behind the other. */
function placed(moment) {
  const blocks = [];
  let at = 0;
  moment.segments.forEach((segment, number) => {
    let inside = 0;
    for (const [size, category, stack, since] of segment.blocks) {
      blocks.push({ at: at + inside, size, category, stack, since, segment: number, offset: inside });
      inside += size;
    }
    at += segment.bytes;
  });
  return { blocks, total: at };
}

class Layout {
  constructor(moment, width) {
    this.width = width;
    // As many bytes a row as let all rows fit, and a round number of MiB.
    const total = moment.segments.reduce((sum, segment) => sum + segment.bytes, 0);
    this.perRow = Math.max(2 ** 21, 2 ** Math.ceil(Math.log2(total / kMostRows)));
    this.rows = Math.max(1, Math.ceil(total / this.perRow));
    this.height = this.rows * (kRow + kRowGap);
  }

  /** The rectangles that `size` bytes from `at` on cover. */
  pieces(at, size) {
    const pieces = [];
    for (let row = Math.floor(at / this.perRow); row * this.perRow < at + size; ++row) {
      const from = Math.max(at, row * this.perRow) - row * this.perRow;
      const to = Math.min(at + size, (row + 1) * this.perRow) - row * this.perRow;
      const x = from / this.perRow * this.width;
      pieces.push([x, row * (kRow + kRowGap), to / this.perRow * this.width - x, kRow]);
    }
    return pieces;
  }

  place(x, y) {
    const row = Math.min(this.rows - 1, Math.max(0, Math.floor(y / (kRow + kRowGap))));
    return (row + Math.min(0.999999, Math.max(0, x / this.width))) * this.perRow;
  }
}

function paint(canvas, layout, moment, all, chosen) {
  const look = colours();
  const scale = devicePixelRatio;
  canvas.width = Math.round(layout.width * scale);
  canvas.height = Math.round(layout.height * scale);
  canvas.style.height = `${layout.height}px`;
  const context = canvas.getContext('2d');
  context.scale(scale, scale);
  const rectangle = (colour, at, size) => {
    context.fillStyle = colour;
    for (const [x, y, width, height] of layout.pieces(at, size)) context.fillRect(x, y, width, height);
  };
  let at = 0;
  for (const segment of moment.segments) {
    rectangle(look.idle, at, segment.bytes);
    at += segment.bytes;
  }
  const narrow = layout.perRow / layout.width;  // bytes a pixel: what is smaller is drawn as part of its pixel
  let drawnTo = -1;
  for (const block of all.blocks) {
    if (block.category < 0) continue;
    if (block.size < narrow && block.at < drawnTo) continue;
    rectangle(categoryColour(look, block.category), block.at, Math.max(block.size, narrow));
    drawnTo = block.at + Math.max(block.size, narrow);
  }
  at = 0;
  for (const segment of moment.segments) {  // a line where one ends
    const [[x, y, , height]] = layout.pieces(at, 1);
    context.fillStyle = look.page;
    context.fillRect(x, y, Math.min(kSegmentGap, 1.5), height);
    at += segment.bytes;
  }
  if (chosen) {
    context.strokeStyle = look.text;
    context.lineWidth = 2;
    for (const [x, y, width, height] of layout.pieces(chosen.at, chosen.size)) context.strokeRect(x, y, Math.max(2, width), height);
  }
}

function wordsOf(section, moment, block) {
  const segment = moment.segments[block.segment];
  const owner = block.category < 0 ? 'idle' : section.categories[block.category].name;
  const address = `0x${(BigInt(segment.address) + BigInt(block.offset)).toString(16)}`;
  const since = block.since === null || block.since === undefined ? '' : `, since ${escaped(moment.unit)} ${count(block.since)}`;
  const stack = block.stack >= 0 ? section.stacks[block.stack] : [];
  return `<b>${escaped(owner)}</b>, ${bytes(block.size)} at ${address}${since}<br>in a segment of ${bytes(segment.bytes)}${segment.stream ? `, ${escaped(segment.stream)}` : ''}` +
    (stack.length ? `<br><code>${stack.slice(0, 12).map(escaped).join('<br>')}</code>` : '');
}

/** The map of `moment`, with what lies under the pointer, or is chosen by the arrow keys, told below it. */
export function blockMap(section, moment) {
  const all = placed(moment);
  const canvas = make('canvas', { class: 'map', tabindex: '0', role: 'img',
    'aria-label': `${moment.segments.length} segments with ${all.blocks.length} blocks. Arrow keys go from block to block.` });
  const under = make('p', { class: 'under', 'aria-live': 'polite' }, ' ');
  let layout = null;
  let chosen = -1;
  const draw = () => {
    if (canvas.parentElement.clientWidth === 0) return;
    layout = new Layout(moment, canvas.parentElement.clientWidth);
    paint(canvas, layout, moment, all, all.blocks[chosen]);
  };
  const choose = (number) => {
    if (number < 0 || number >= all.blocks.length) return;
    chosen = number;
    under.innerHTML = wordsOf(section, moment, all.blocks[number]);
    draw();
  };
  canvas.addEventListener('mousemove', ({ offsetX, offsetY }) => {
    const number = lastAtMost(all.blocks, layout.place(offsetX, offsetY), (block) => block.at);
    if (number !== chosen) choose(number);
  });
  canvas.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    choose(Math.max(0, chosen + step));
    event.preventDefault();
  });
  const frame = make('div', {}, canvas);
  new ResizeObserver(() => { if (layout?.width !== frame.clientWidth) draw(); }).observe(frame);
  onRedraw(frame, draw);
  return make('figure', { class: 'wide' }, make('figcaption', {}, make('p', {}, moment.text)), frame, under);
}
