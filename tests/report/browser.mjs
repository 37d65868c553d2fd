// A headless Chromium, spoken to in its debugging protocol through a pipe: no port, no package.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const kPrograms = ['chromium', 'chromium-browser', 'google-chrome'];

/** The name of the browser that is installed; undefined if there is none. */
export const installed = () => kPrograms.find((name) => spawnSync(name, ['--version']).status === 0);

export class Browser {
  constructor(program) {
    this.profile = mkdtempSync(join(tmpdir(), 'vramlab-browser-'));
    this.process = spawn(program, ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
      '--no-first-run', '--hide-scrollbars', `--user-data-dir=${this.profile}`, '--remote-debugging-pipe'],
      { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    this.number = 0;
    this.waiting = new Map();
    this.listeners = [];
    let rest = '';
    this.process.stdio[4].on('data', (piece) => {
      const messages = (rest + piece).split('\0');
      rest = messages.pop();
      for (const message of messages) this.take(JSON.parse(message));
    });
  }

  take(message) {
    if (message.id === undefined) return this.listeners.forEach((listener) => listener(message));
    const { good, bad } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    message.error ? bad(new Error(JSON.stringify(message.error))) : good(message.result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.number;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
    return new Promise((good, bad) => this.waiting.set(id, { good, bad }));
  }

  async page(width, height, dark = false) {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId, targetId);
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await page.send(`${domain}.enable`);
    await page.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
    await page.size(width, height);
    await page.send('Emulation.setEmulatedMedia',
                    { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] });
    return page;
  }

  async close() {
    const ended = new Promise((done) => this.process.once('exit', done));
    await this.send('Browser.close').catch(() => {});
    await ended;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

export class Page {
  constructor(browser, session, target) {
    Object.assign(this, { browser, session, target, errors: [], requests: [], workers: new Set() });
    browser.listeners.push(({ method, params, sessionId }) => {
      if (this.workers.has(sessionId) && method === 'Network.requestWillBeSent') this.requests.push(params.request.url);
      if (sessionId !== session) return;
      if (method === 'Target.attachedToTarget') {
        this.workers.add(params.sessionId);
        browser.send('Network.enable', {}, params.sessionId).catch(() => {});  // it may be gone already
      }
      if (method === 'Runtime.exceptionThrown') this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type)) {
        this.errors.push(params.args.map((one) => one.value ?? one.description).join(' '));
      }
      if (method === 'Log.entryAdded' && params.entry.level === 'error') this.errors.push(params.entry.text);
      if (method === 'Network.requestWillBeSent') this.requests.push(params.request.url);
      if (method === 'Page.loadEventFired') this.loaded?.();
    });
  }

  send(method, params) { return this.browser.send(method, params, this.session); }

  size(width, height) {
    return this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 600 });
  }

  /** Opens a file; comes back when the page has drawn itself. */
  async open(file) {
    const loaded = new Promise((done) => { this.loaded = done; });
    await this.send('Page.navigate', { url: `file://${file}` });
    await loaded;
    await this.frame();
  }

  /** Waits until what was asked for is on the screen. */
  frame() {
    return this.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60))))');
  }

  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate',
      { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async picture(whole = false) {
    const params = { format: 'png' };
    if (whole) {
      const height = await this.evaluate('document.documentElement.scrollHeight');
      const width = await this.evaluate('innerWidth');
      Object.assign(params, { captureBeyondViewport: true, clip: { x: 0, y: 0, width, height, scale: 1 } });
    }
    return Buffer.from((await this.send('Page.captureScreenshot', params)).data, 'base64');
  }

  async mouse(type, x, y, more = {}) {
    await this.send('Input.dispatchMouseEvent', { type, x, y, ...more });
    await this.frame();
  }

  async press(key, code = key) {
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', key, code, text: key.length === 1 ? key : undefined });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', key, code });
    await this.frame();
  }

  /** Chooses files in the field that `selector` finds, as a person does in the dialogue. */
  async choose(selector, files) {
    const { root } = await this.send('DOM.getDocument');
    const { nodeId } = await this.send('DOM.querySelector', { nodeId: root.nodeId, selector });
    await this.send('DOM.setFileInputFiles', { files, nodeId });
  }

  /** Drops files at a place of the window. */
  async drop(x, y, files) {
    const data = { items: [], files, dragOperationsMask: 1 };
    for (const type of ['dragEnter', 'dragOver', 'drop']) await this.send('Input.dispatchDragEvent', { type, x, y, data });
  }

  /** Waits until the expression is true; at most `seconds`. */
  async until(expression, seconds = 60) {
    for (const end = Date.now() + 1000 * seconds; Date.now() < end;) {
      if (await this.evaluate(expression)) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`not so within ${seconds} s: ${expression}`);
  }

  close() { return this.browser.send('Target.closeTarget', { targetId: this.target }); }
}
