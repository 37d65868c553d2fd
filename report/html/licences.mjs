// The licences of what a page is bundled from, as text for HTML.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const read = (...parts) => readFileSync(join(here, ...parts), 'utf8');

export const licences = [
  ['Apache ECharts', read('node_modules/echarts/NOTICE') + '\n' + read('node_modules/echarts/LICENSE')],
  ['ZRender', read('node_modules/zrender/LICENSE')],
  ['uPlot', read('node_modules/uplot/LICENSE')],
  ['tslib', read('node_modules/tslib/LICENSE.txt')],
].map(([name, text]) => `${name}\n\n${text.trim()}`).join('\n\n\n').replaceAll('&', '&amp;').replaceAll('<', '&lt;');
