// Makes the page of `vramlab --report` one piece of text: node bundle.mjs OUTPUT.cpp
// Scripts are bundled with the parts of ECharts they use; style, script and licences go into the template, and
// the template into a C++ source.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { licences } from './licences.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const read = (...parts) => readFileSync(join(here, ...parts), 'utf8');

const bundle = (entry, loader) =>
  build({ entryPoints: [join(here, 'src', entry)], bundle: true, minify: true, write: false, legalComments: 'none',
          target: 'es2020', charset: 'utf8', loader })
    .then((result) => result.outputFiles[0].text);

const script = (await bundle('main.js')).replaceAll('</script', '<\\/script');
const page = read('src', 'page.html')
  .replace('%STYLE%', () => read('node_modules/uplot/dist/uPlot.min.css').trim() + '\n' + read('src', 'style.css').trim())
  .replace('%SCRIPT%', () => script.trim())
  .replace('%LICENCES%', () => licences);

// Compilers limit the length of one literal; adjacent ones are joined.
const kPiece = 15000;
const bytes = [...page];
const pieces = [];
for (let i = 0; i < bytes.length; i += kPiece) pieces.push(`R"~page~(${bytes.slice(i, i + kPiece).join('')})~page~"`);
writeFileSync(process.argv[2], `#include "report/html_page.hpp"

namespace vramlab {

std::string_view html_template() {
  static constexpr char kPage[] =
${pieces.join('\n')};
  return {kPage, sizeof kPage - 1};
}

}  // namespace vramlab
`);
