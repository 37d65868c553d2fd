// Instances of the program, each in a worker of its own. The WebAssembly is compiled once.
import { decompress } from 'fzstd';
import { bytesOf } from './letters.mjs';

const block = (id) => document.getElementById(id);

/** Bytes of a block of the page that is packed with gzip and written in base64. */
async function unpacked(id) {
  const packed = Uint8Array.from(atob(block(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const turn = () => new Promise((done) => setTimeout(done));

/** The bytes of the WebAssembly; whoever uses the page meanwhile is answered. */
async function unpackedProgram() {
  await turn();
  const packed = bytesOf(block('program').textContent, Number(block('program').dataset.bytes));
  await turn();
  return decompress(packed);
}

let module = null;
let workerUrl = null;

/** The program, compiled; begun when the page is opened. */
export function compiled() {
  module ??= unpackedProgram().then((bytes) => WebAssembly.compile(bytes));
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
