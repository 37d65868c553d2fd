// What is being done now: progress, a way to cancel it, and what went wrong.
import { bytes, make } from '../../report/html/src/look.js';
import { growingTimeline } from '../../report/html/src/timeline.js';

export class Work {
  constructor() {
    this.spoken = make('p', { role: 'status', class: 'spoken' });
    this.host = make('div', { class: 'work', hidden: true });
    this.failures = make('div', { role: 'alert' });
    this.element = make('section', { class: 'doing', 'aria-label': 'Progress' }, this.spoken, this.failures, this.host);
  }

  /** Shows `title` until the next of these calls; `cancel` is called at most once. */
  begin(title, cancel) {
    this.title = title;
    this.failures.replaceChildren();
    this.words = make('p', { class: 'words' }, `${title} …`);
    this.bar = make('progress', { 'aria-label': title });
    this.chart = null;
    this.host.replaceChildren(make('div', { class: 'row' }, this.words, this.bar,
      make('button', { type: 'button', class: 'cancel', onclick: cancel }, 'Cancel')));
    this.host.hidden = false;
    this.element.scrollIntoView({ block: 'nearest' });
    this.say(title);
  }

  say(text) { this.spoken.textContent = text; }

  /** {read, total, file} of the file that is read. */
  progress({ read, total, file }) {
    const name = String(file ?? '').replace(/^.*\//, '');
    this.bar.max = total;
    this.bar.value = read;
    this.words.textContent = read < total ? `Reading ${name}: ${bytes(read)} of ${bytes(total)}` : `${this.title}: replaying …`;
    if (read >= total) this.bar.removeAttribute('value');
  }

  /** {device, points}: more of the time line; another device, or another file, begins a new one. */
  timeline({ device, points }) {
    if (!this.chart || device !== this.device || points[0][0] < this.last) {
      this.chart?.figure.remove();
      this.chart = growingTimeline('entry', 'entries');
      this.device = device;
      this.host.append(this.chart.figure);
      this.element.scrollIntoView({ block: 'nearest' });
    }
    this.last = points.at(-1)[0];
    this.chart.add(points);
  }

  end(text) {
    this.host.hidden = true;
    this.host.replaceChildren();
    this.say(text);
  }

  /** Ends with what went wrong, a line each. */
  fail(text) {
    this.end('');
    const lines = text.trim().split('\n');
    this.failures.replaceChildren(...lines.map((line) => make('p', { class: 'failure' }, line)));
    this.element.scrollIntoView({ block: 'nearest' });
  }
}
