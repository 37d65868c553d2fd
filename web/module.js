// What the page and the npm package call: asking in JavaScript, and files read without copying. Linked into vramlab.js.
//
// const vramlab = await createVramlab({wasmBinary, print, printErr});
// vramlab.ask(["whatif", "/in/run.pickle", "--capacity", "24GiB"]) → {code, json, text, error}
//
// See docs/web.md for the rest.

/** Puts `text` into the module's memory. */
function placed(text) {
  const size = lengthBytesUTF8(text) + 1;
  const place = _malloc(size);
  if (place === 0) throw new RangeError('there is no memory for the question');
  stringToUTF8(text, place, size);
  return place;
}

/** No more than `mostMemory` bytes, where whoever made the module says so: what needs more is refused. */
function limitMemory() {
  const most = Module['mostMemory'];
  if (!most) return;
  const grow = wasmMemory.grow;
  wasmMemory.grow = (pages) => {
    if (wasmMemory.buffer.byteLength + pages * 65536 > most) throw new RangeError('no more memory');
    return grow.call(wasmMemory, pages);
  };
}

let session = 0;

/**
 * Does what the program would do with `words`. `json` is the exact text of `--json -`, or "" where the verb has none;
 * `text` is for people; `error` is what the program says on standard error; `code` is its exit code. `texts` stand for
 * files of these names where a scenario is read; "-" is standard input. With `page`, `page` of the answer is what
 * --report would show: {title, sections} as JSON.
 */
Module['ask'] = (words, texts = {}, page = false) => {
  if (session === 0) {
    limitMemory();
    session = _web_open();
  }
  const question = placed(JSON.stringify({words, texts, page}));
  try {
    const code = _web_ask(session, question);
    return {
      code,
      json: UTF8ToString(_web_json(session)),
      text: UTF8ToString(_web_text(session)),
      error: UTF8ToString(_web_error(session)),
      page: UTF8ToString(_web_page(session)),
    };
  } finally {
    _free(question);
    _web_taken(session);
  }
};

/** The page of --report, with %TITLE%, %VERSION% and %DATA% where these go. */
Module['reportTemplate'] = () => UTF8ToString(_web_template());

/** Drops what is kept of the recordings that `ask` has read. */
Module['forget'] = () => {
  if (session !== 0) _web_forget(session);
};

// Tells onProgress how far a file of the browser or of node has been read.
for (const files of [typeof WORKERFS === 'undefined' ? null : WORKERFS, typeof NODEFS === 'undefined' ? null : NODEFS]) {
  if (!files) continue;
  const read = files.stream_ops.read;
  files.stream_ops.read = (stream, buffer, offset, length, position) => {
    const got = read(stream, buffer, offset, length, position);
    if (Module['onProgress']) {
      if (stream.total === undefined) stream.total = stream.node.node_ops.getattr(stream.node).size;
      Module['onProgress']({file: stream.path, read: position + got, total: stream.total});
    }
    return got;
  };
}

Module['WORKERFS'] = typeof WORKERFS === 'undefined' ? undefined : WORKERFS;

/** What the module has taken of the browser's memory; it never gives any back. */
Module['memoryBytes'] = () => wasmMemory.buffer.byteLength;
