// Instances of the program, each in a worker of its own. The WebAssembly is compiled once.
import { decompress } from 'fzstd';

/** Bytes of a block of the page, which is written in base64. */
function packed(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** The same of one that is packed with gzip. */
async function unpacked(id) {
  const stream = new Blob([packed(id)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

let module = null;
let workerUrl = null;

/** The program, compiled; begun when the page is opened. */
export function compiled() {
  module ??= new Promise((done) => setTimeout(done)).then(() => WebAssembly.compile(decompress(packed('program'))));
  return module;
}

/** What is shipped, by path: scenarios and the files that they name. */
export async function shippedFiles() {
  return JSON.parse(new TextDecoder().decode(await unpacked('scenarios')));
}

async function newWorker() {
  workerUrl ??= URL.createObjectURL(new Blob([await unpacked('worker')], { type: 'text/javascript' }));
  return new Worker(workerUrl);
}

/** What a question ends in when its session is ended. */
export class Cancelled extends Error {
  constructor() { super('Cancelled. Choose the file again to ask more of it.'); }
}

export class Session {
  /** `files`: {name, data} of what is dropped, all read in place; `texts`: files by path, for the program alone. */
  constructor({ files = [], texts = {} }) {
    this.files = files;
    this.texts = texts;
    this.turn = null;
  }

  /** Called while a file is read: with {read, total, file}, and with {device, points}. */
  onProgress() {}
  onTimeline() {}

  async start() {
    const module = await compiled();
    const worker = await newWorker();
    if (this.ended) {
      worker.terminate();
      throw new Cancelled();
    }
    this.worker = worker;
    this.worker.onmessage = ({ data }) => {
      if (data.progress) this.onProgress(data.progress);
      else if (data.timeline) this.onTimeline(data.timeline);
      else if (data.failure !== undefined) this.turn?.bad(new Error(data.failure));
      else this.turn?.good(data.answer);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.turn?.bad(new Error(event.message || 'the worker ended'));
    };
    await this.send({ begin: { module, files: this.files, texts: this.texts } });
  }

  send(message) {
    return new Promise((good, bad) => {
      this.turn = { good, bad };
      this.worker.postMessage(message);
    });
  }

  /** The answer to a command line: {code, json, text, error}; with `page` also `page`, the data of the report page, and
   *  `rows` of the JSON. Throws Cancelled, or an Error if the instance died. Questions wait for each other. */
  ask(words, { texts = {}, page = false } = {}) { return this.inTurn({ ask: { words, texts, page } }); }

  /** The page of --report, with %TITLE%, %VERSION% and %DATA% where these go. */
  template() { return this.inTurn({ template: true }); }

  inTurn(message) {
    this.begun ??= this.start();
    const answer = Promise.allSettled([this.before]).then(() => this.begun).then(() => {
      if (this.ended) throw new Cancelled();
      return this.send(message);
    });
    this.before = answer;
    return answer;
  }

  /** Ends the instance at once, whatever it is doing. */
  end() {
    this.ended = true;
    this.worker?.terminate();
    this.turn?.bad(new Cancelled());
  }
}
