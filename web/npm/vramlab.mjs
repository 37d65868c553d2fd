#!/usr/bin/env node
// The program `vramlab` under node: the same words, files and exit codes, but for what needs a card, plugins, gnuplot
// or other processes.
import fs from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

const folder = path.dirname(fileURLToPath(import.meta.url));
const createVramlab = createRequire(import.meta.url)('./vramlab.js');

/** Takes bytes one by one and writes them to `descriptor`; who reads them may go. */
function writer(descriptor) {
  let bytes = [];
  const flush = () => {
    const all = Buffer.from(bytes);
    bytes = [];
    for (let at = 0; at < all.length;) {
      try {
        at += fs.writeSync(descriptor, all, at);
      } catch (error) {
        if (error.code !== 'EAGAIN') return;
      }
    }
  };
  return {flush, put: (byte) => {
    if (byte !== null) bytes.push(byte);
    if (byte === null || bytes.length === 1 << 16) flush();
  }};
}

/** Standard input byte by byte; null at its end. */
function reader() {
  const piece = Buffer.alloc(1 << 16);
  let size = 0;
  let at = 0;
  return () => {
    while (at === size) {
      try {
        size = fs.readSync(0, piece, 0, piece.length, null);
      } catch (error) {
        if (error.code === 'EAGAIN') continue;
        size = 0;
      }
      at = 0;
      if (size === 0) return null;
    }
    return piece[at++];
  };
}

/** The folders of this machine at the same paths. */
function mountFolders(module) {
  const {FS} = module;
  const {NODEFS} = FS.filesystems;
  NODEFS.node_ops.readlink = (node) => {  // emscripten's own knows links within one folder alone
    try {
      return fs.readlinkSync(NODEFS.realPath(node));
    } catch (error) {
      throw new FS.ErrnoError(NODEFS.convertNodeCode(error));
    }
  };
  for (const name of fs.readdirSync('/')) {
    if (name === 'dev' || name === 'proc' || !fs.statSync('/' + name, {throwIfNoEntry: false})?.isDirectory()) continue;
    FS.mkdirTree('/' + name);
    FS.mount(NODEFS, {root: '/' + name}, '/' + name);
  }
  FS.mkdirTree('/proc/self');
  FS.symlink(path.join(folder, 'vramlab'), '/proc/self/exe');  // beside it lies its data
  FS.chdir(process.cwd());
}

const [out, err] = [writer(1), writer(2)];
const module = await createVramlab({
  wasmBinary: fs.readFileSync(path.join(folder, 'vramlab.wasm')),
  thisProgram: 'vramlab',
  quit: (status, ending) => { throw ending; },
  preRun: [(module) => {
    module.FS.init(reader(), out.put, err.put);
    Object.assign(module.ENV, process.env, {PATH: ''});  // no other program can be started from here
    mountFolders(module);
  }],
});
let code = 3;
try {
  code = module.callMain(process.argv.slice(2));
} catch (error) {
  if (error?.name !== 'ExitStatus') err.flush(), fs.writeSync(2, `internal error: ${error}\n`);
  code = error?.status ?? 3;
}
out.flush();
err.flush();
process.exitCode = code;
